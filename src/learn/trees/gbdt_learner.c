/* The learner gbdt: its options, and what follows from them and the data; the latter is shared with the learner
 * forest. */
#include <math.h>
#include <string.h>

#include "learn/trees/trees.h"

static const plait_learner_table tables[] = {
    { .name = "histogram", .what = "sums of gradients by bin, of the nodes of a step: two whole numbers a bin" },
    PLI_TREES_TABLES,
    { .name = NULL },
};

enum { TEXT_ROWS = 100 };
enum { ROUNDS = 100, LEAVES = 31, DEPTH = 6, DEPTH_MOST = 16, LEAVES_MOST = 65536 };
#define RATE 0.1

/* A histogram's cell shares 62 bits between twice the number of rows and h. */
enum { ROWS_MOST = 1 << 26 };

static const plait_learner_option options[] = {
    { .name = "grow", .kind = PLAIT_OPTION_NAME, .preset = "leaf", .names = "leaf depth",
      .help = "leaf: always split the leaf with the largest gain; depth: all leaves of a level, up to 32 in a clock" },
    { .name = "leaves", .kind = PLAIT_OPTION_COUNT, .preset = "0", .high = LEAVES_MOST,
      .help = "most leaves of a tree; 0: 31, or as many as the depth allows under --grow depth" },
    { .name = "depth", .kind = PLAIT_OPTION_COUNT, .preset = "0", .high = DEPTH_MOST,
      .help = "most splits on the way to a leaf; 0: any number, or 6 under --grow depth" },
    { .name = "bins", .kind = PLAIT_OPTION_COUNT, .preset = "255", .low = 2, .high = PLI_BINS_MOST,
      .help = "most bins that a feature's values are cut into" },
    { .name = "min-rows", .kind = PLAIT_OPTION_COUNT, .preset = "20", .low = 1,
      .help = "least rows of a leaf" },
    { .name = "min-hessian", .kind = PLAIT_OPTION_NUMBER, .preset = "1e-3", .low = 0,
      .help = "least sum of second derivatives in a leaf" },
    { .name = "min-gain", .kind = PLAIT_OPTION_NUMBER, .preset = "0", .low = 0,
      .help = "a split must gain more than this" },
    { .name = "subsample", .kind = PLAIT_OPTION_NUMBER, .preset = "1", .low = 1e-6, .high = 1,
      .help = "share of the rows that a round sees, drawn anew for each round" },
    { .name = "colsample", .kind = PLAIT_OPTION_NUMBER, .preset = "1", .low = 1e-6, .high = 1,
      .help = "share of the features that a tree may split by, drawn anew for each tree" },
    { .name = "monotone", .kind = PLAIT_OPTION_TEXT, .preset = "",
      .help = "features along which scores may only rise or fall, as in +age,-price" },
    PLI_TREES_BY,
    PLI_TREES_CATEGORIES("sets"),
    { .name = "category-most", .kind = PLAIT_OPTION_COUNT, .preset = "32", .low = 1, .high = PLI_BINS_MOST,
      .help = "most texts that a split by a column of texts names" },
    { .name = "category-smooth", .kind = PLAIT_OPTION_NUMBER, .preset = "10", .low = 0,
      .help = "pulls a text's mean gradient to 0, as so many rows would; a text of fewer rows is not named" },
    { .name = "category-l2", .kind = PLAIT_OPTION_NUMBER, .preset = "10", .low = 0,
      .help = "added to l2 where a split names one of more than four texts" },
    { .name = NULL },
};

/* --- what follows from options ------------------------------------------------------------------------------------ */

static plait_status settle_cut(pli_run *run) {
    static const pli_tree_cut *const cuts[] = { &pli_cut_rows, &pli_cut_features, &pli_cut_voting };
    const char                      *by = plait_training_name(run, "trees-by");
    size_t                           c = 0;
    while (strcmp(cuts[c]->name, by) != 0) c++; /* the option's names are theirs */
    pli_gbdt_of(run)->grower.cut = cuts[c];
    if (pli_is(run->opts->balance, "dynamic") && cuts[c]->exchanges)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "balance dynamic with --trees-by features is refused: each worker has all rows, and blocks of "
                        "rows are what changes hands; take --trees-by rows, or --balance static");
    if (cuts[c]->votes || plait_training_count(run, "elect") == 0) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EREFUSED, "--elect with --trees-by %s is refused: no worker votes; take --trees-by "
                                              "voting", by);
}

plait_status pli_trees_check(pli_run *run) {
    const plait_train_opts *o = run->opts;
    PLI_TRY(settle_cut(run));
    pli_fit                *fit = pli_fit_of(run);
    fit->ops = &pli_gbdt_fit_ops;
    fit->wanted = o->loss;
    if (o->loss != NULL && strcmp(o->loss, "hinge") == 0)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "loss hinge with model %s is refused: it has no curvature to fit leaves by; take --loss "
                        "logistic", run->learner->name);
    return PLAIT_OK;
}

void pli_trees_reads(const pli_run *run, plait_data_opts *files) {
    (void)run;
    files->keep_missing = files->origins = 1;
}

static void settle_rules(pli_run *run) {
    pli_tree_rules *r = &pli_gbdt_of(run)->grower.rules;
    const int64_t   leaves = plait_training_count(run, "leaves"), depth = plait_training_count(run, "depth");
    *r = (pli_tree_rules){ .l1 = run->l1, .l2 = run->l2, .rate = run->rate, .depth = depth };
    r->level = strcmp(plait_training_name(run, "grow"), "depth") == 0;
    if (r->level && depth == 0) r->depth = DEPTH;
    r->leaves = leaves > 0 ? leaves : r->level ? (int64_t)1 << r->depth : LEAVES;
    pli_run_took(run, "leaves", r->leaves);
    pli_run_took(run, "depth", r->depth);
    r->min_rows = plait_training_count(run, "min-rows");
    r->min_hessian = plait_training_number(run, "min-hessian");
    r->min_gain = plait_training_number(run, "min-gain");
    r->subsample = plait_training_number(run, "subsample");
    r->colsample = plait_training_number(run, "colsample");
    r->text_most = plait_training_count(run, "category-most");
    r->text_smooth = plait_training_number(run, "category-smooth");
    r->text_l2 = plait_training_number(run, "category-l2");
    r->text_rows = TEXT_ROWS;
}

/* By features, no sums travel. */
static plait_status settle_tables(pli_run *run) {
    const bool        features = pli_gbdt_of(run)->grower.cut->exchanges;
    const char *const no_sums = "with --trees-by features no sums travel",
               *const no_splits = "splits travel only with --trees-by features";
    const pli_planned planned[] = { { .name = "histogram", .absent = features ? no_sums : NULL },
                                    { .name = "splits", .sparse = true, .absent = features ? NULL : no_splits },
                                    { .name = "sides", .sparse = true, .absent = features ? NULL : no_splits } };
    return pli_tables_settle(run, planned, sizeof planned / sizeof *planned);
}

/* A round is an epoch. Its clocks are not known before, so the run counts it as one. */
void pli_trees_settle(pli_run *run, int64_t rounds) {
    const plait_train_opts *o = run->opts;
    run->batch = run->examples = run->train_rows;
    run->clocks = 1;
    run->epochs = o->epochs > 0 ? o->epochs : rounds;
    run->l1 = o->l1;
    pli_shares_tell(run);
}

plait_status pli_trees_prepare(pli_run *run) {
    PLI_TRY(pli_labels_settle(run));
    if (run->features == 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "model %s is refused on features that grow by key: hash them, as "
                                                  "with --hash-bits 16", run->learner->name);
    if (run->train_rows >= ROWS_MOST)
        return pli_fail(run->err, PLAIT_EREFUSED, "model %s is refused on %lld rows: its exact sums have room for "
                                                  "fewer than %d", run->learner->name, (long long)run->train_rows,
                        (int)ROWS_MOST);
    return settle_tables(run);
}

static plait_status prepare(pli_run *run) {
    PLI_TRY(pli_trees_prepare(run));
    if (pli_fit_of(run)->goal.loss->query != NULL && run->fraction > 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "--validation %g with loss %s is refused: it would part queries; "
                                                  "take --validation FILE, of other queries", run->fraction,
                        pli_fit_of(run)->goal.loss->model);
    run->rate = run->opts->learning_rate > 0 ? run->opts->learning_rate : RATE;
    run->l2 = isnan(run->opts->l2) ? 1 : run->opts->l2;
    pli_trees_settle(run, ROUNDS);
    settle_rules(run);
    return PLAIT_OK;
}

/* --- what follows from the data ----------------------------------------------------------------------------------- */

/* Each leaf that may still be split has a histogram. */
static plait_status check_memory(const pli_run *run, double waiting) {
    const pli_gbdt *t = pli_gbdt_of(run);
    const double    cells = (double)t->bins.offset[t->bins.used] + 1, there = (double)pli_memory_bytes();
    const double    histograms = waiting + 4 * (double)t->grower.slots;
    const double    bytes = cells * sizeof(pli_sum_cell) * histograms;
    if (there <= 0 || bytes < there) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM,
                    "histograms of %.0f bins for %.0f leaves need about %.1f GB, but only %.1f GB are free; take fewer "
                    "--bins or --leaves, or hash the features, as with --hash-bits 16",
                    cells, waiting, bytes / 1e9, there / 1e9);
}

static plait_status settle_monotone(pli_run *run) {
    pli_gbdt   *t = pli_gbdt_of(run);
    const char *text = plait_training_name(run, "monotone");
    if (text[0] == '\0') return PLAIT_OK;
    if (t->fit.goal.columns > 1)
        return pli_fail(run->err, PLAIT_EREFUSED, "--monotone with %lld classes is refused: a probability of one class "
                                                  "depends on the scores of all", (long long)t->fit.goal.columns);
    t->grower.rules.sign = pli_array((size_t)t->bins.used, sizeof *t->grower.rules.sign);
    if (t->grower.rules.sign == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for signs of features");
    return pli_monotone_read(run->schema, &t->bins, text, t->grower.rules.sign, run->err);
}

/* Why an option for columns of texts has no effect; NULL: it has one. */
static const char *no_texts(const pli_run *run) {
    if (strcmp(plait_training_name(run, "categories"), "sets") != 0) return "with --categories apart";
    return pli_gbdt_of(run)->trees.fields.first == NULL ? "on data without columns of texts" : NULL;
}

plait_status pli_trees_bin(pli_run *run) {
    pli_gbdt  *t = pli_gbdt_of(run);
    const bool sets = strcmp(plait_training_name(run, "categories"), "sets") == 0;
    PLI_TRY(pli_trees_make(&t->trees, sets ? run->schema : NULL, run->features, t->fit.goal.columns, run->err));
    if (sets && no_texts(run) != NULL) pli_run_note_unused(run, "categories", no_texts(run));
    return pli_bins_make(run, plait_training_count(run, "bins"), &t->trees, &t->bins);
}

void pli_trees_note_most(const pli_run *run, const char *option) {
    const int64_t asked = plait_training_count(run, option), used = pli_gbdt_of(run)->bins.used;
    if (asked > used && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "note: --%s %lld is taken as %lld, since no more features have two bins", option, (long long)asked,
                (long long)used);
}

/* By rows a step sends all features of one leaf; by voting, a seventh of them for each of two. Heads of messages and
 * votes are some bytes more, which count where histograms are small: then there are fewer. */
static int64_t usual_elected(const pli_bins *bins) {
    enum { USUAL_PART = 7, USUAL_LEAST = 2, USUAL_MOST = 40, HEADS = 800, HEADS_AND_VOTES = 950 };
    const double  used = bins->used, bytes = (double)(bins->offset[bins->used] * (int64_t)sizeof(pli_sum_cell));
    const double  room = 0.295 * (bytes + HEADS) - HEADS_AND_VOTES; /* of two leaves */
    const double  a_feature = (bytes / sizeof(pli_sum_cell) - used) / used * sizeof(pli_sum_cell);
    const int64_t fit = room > 0 ? (int64_t)(room / (2 * a_feature)) : 0, share = bins->used / USUAL_PART,
                  n = fit < share ? fit : share;
    return n < USUAL_LEAST ? USUAL_LEAST : n > USUAL_MOST ? USUAL_MOST : n;
}

static void settle_elected(pli_run *run) {
    pli_grower   *g = &pli_gbdt_of(run)->grower;
    const int64_t asked = plait_training_count(run, "elect");
    if (!g->cut->votes) return;
    g->elected = asked > 0 ? asked : usual_elected(g->bins);
    if (g->elected > g->bins->used) g->elected = g->bins->used;
    pli_trees_note_most(run, "elect");
    pli_run_took(run, "elect", g->elected);
}

plait_status pli_trees_measured(pli_run *run, int64_t slots, double waiting) {
    pli_gbdt   *t = pli_gbdt_of(run);
    pli_grower *g = &t->grower;
    g->slots = slots;
    g->run = run;
    g->bins = &t->bins;
    g->rows = &t->rows;
    PLI_TRY(check_memory(run, waiting));
    PLI_TRY(pli_bin_rows_make(run, &t->bins, run->data, run->fraction > 0, &t->rows));
    if (run->validation != NULL) PLI_TRY(pli_bin_rows_make(run, &t->bins, run->validation, false, &t->validation));
    t->gradients.goal = &t->fit.goal;
    t->gradients.kink = fmax(1e-2 * t->fit.label_spread, 1e-300);
    settle_elected(run);
    return PLAIT_OK;
}

static const char *const of_texts[] = { "category-most", "category-smooth", "category-l2" };

static plait_status measured(pli_run *run) {
    pli_gbdt             *t = pli_gbdt_of(run);
    const pli_tree_rules *r = &t->grower.rules;
    PLI_TRY(pli_trees_bin(run));
    for (size_t i = 0; no_texts(run) != NULL && i < sizeof of_texts / sizeof *of_texts; i++)
        pli_run_note_unused(run, of_texts[i], no_texts(run));
    PLI_TRY(settle_monotone(run));
    const int64_t slots = !r->level ? 1 : r->depth > 5 ? PLI_GROW_SLOTS : (int64_t)1 << (r->depth - 1);
    return pli_trees_measured(run, slots, (double)r->leaves);
}

void pli_trees_end(pli_run *run) {
    pli_gbdt *t = pli_gbdt_of(run);
    pli_grower_free(&t->grower);
    pli_bin_rows_free(&t->rows);
    pli_bin_rows_free(&t->validation);
    pli_bins_free(&t->bins);
    pli_trees_free(&t->trees);
    pli_free(t->gradients.cell);
    pli_free(t->gradients.scale);
    pli_free(t->gradients.most);
    pli_free(t->kept_whole);
    pli_free(t->kept_real);
    pli_free(t->kept_sets);
    pli_fit_end(run);
}

/* --- what was learnt ---------------------------------------------------------------------------------------------- */

static double penalty(const pli_run *run, const pli_solution *solution) {
    (void)run;
    (void)solution;
    return 0; /* the penalties shape leaves; the objective is the loss */
}

static pli_scoring scoring(const pli_run *run, const pli_solution *of) {
    return (pli_scoring){ &pli_trees_scoring, &pli_gbdt_of(run)->trees, of, 1 };
}

const pli_fit_ops pli_gbdt_fit_ops = { .penalty = penalty, .scoring = scoring, .judged = pli_gbdt_judged };

/* A model has the mean of a forest's trees as a sum. */
static void share_out(pli_trees *trees) {
    const double rounds = (double)(trees->n / trees->columns);
    for (int64_t i = 0; i < trees->start[trees->n]; i++) trees->node[i].value /= rounds;
}

static plait_status copy_trees(pli_run *run, plait_model *model) {
    const pli_trees *from = &pli_gbdt_of(run)->trees;
    pli_trees       *to = &((pli_gbdt_model *)model->own)->trees;
    const bool grouped = from->fields.first != NULL;
    PLI_TRY(pli_trees_make(to, grouped ? model->schema : NULL, from->fields.keys, from->columns, run->err));
    memcpy(to->base, from->base, (size_t)from->columns * sizeof *to->base);
    for (int64_t t = 0; t < from->n; t++)
        PLI_TRY(pli_trees_add(to, from->start[t + 1] - from->start[t], from->node + from->start[t], from->code,
                              run->err));
    to->shares = from->shares;
    return PLAIT_OK;
}

/* With validation, the model is that of the best round. */
plait_status pli_trees_finish(pli_run *run, plait_model *model) {
    pli_gbdt *t = pli_gbdt_of(run);
    if (run->best_loss < (double)INFINITY) {
        pli_trees_cut(&t->trees, (run->best_epoch + 1) * t->trees.columns);
        run->validation_loss = run->best_loss;
        run->best = run->best_epoch + 1;
    }
    if (t->grower.rules.bagged) share_out(&t->trees);
    PLI_TRY(pli_fitted_take(run, model));
    PLI_TRY(copy_trees(run, model));
    pli_gbdt_open_model(model);
    return PLAIT_OK;
}

void pli_trees_options(const pli_run *run, pli_text *text) {
    pli_text_add(text, "--loss %s\n", pli_fit_of(run)->loss);
}

static void describe(const pli_run *run, pli_text *json) {
    pli_json_text(json, "loss", pli_fit_of(run)->loss);
    pli_json_short(json, "learning_rate", run->rate);
}

static const pli_learner_more more = { .settles = true, .reads = pli_trees_reads,
                                       .check_judged = pli_fit_check_judged, .judge = pli_fit_judge,
                                       .options = pli_trees_options, .describe = describe, .kept = pli_gbdt_kept,
                                       .restore = pli_gbdt_restore, .report = pli_fit_report,
                                       .model = &pli_gbdt_model_ops };

const plait_learner pli_gbdt_learner = {
    .size = sizeof(plait_learner),
    .name = "gbdt",
    .summary = "gradient-boosted trees, by histograms",
    .help = "gradient-boosted trees: each round grows a tree (of more than two classes, one for each) that the rows' "
            "gradients choose, by histograms of binned values.\n"
            "  labels   classes, or numbers with --loss squared, huber, quantile or poisson; grades of rows "
            "with qid:N, to be ranked, with --loss ndcg or pairwise\n"
            "  rounds   --epochs N (default 100); --learning-rate X (default 0.1) times each leaf's value\n"
            "  missing  each split learns which side rows without a value take\n"
            "  texts    a column of texts is one feature, split by sets of texts (--categories)\n"
            "  l1, l2   shrink the values of leaves; default 0 and 1\n"
            "  ends     with --validation and --patience; the model keeps the rounds up to the best one\n"
            "  workers  have rows, features, or vote for features (--trees-by)\n"
            "Sums are whole numbers: the model has the same bits with any topology, and with any number of workers "
            "unless they vote. "
            "'plait inspect --trees N' prints trees, 'plait inspect --weights' each feature's gain and splits.\n",
    .labels = PLAIT_LABELS_EITHER,
    .ways = PLAIT_LEARNER_PASSES | PLAIT_LEARNER_VALIDATES | PLAIT_LEARNER_STEPS,
    .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY,
    .options = options,
    .tables = tables,
    .state_bytes = sizeof(pli_gbdt),
    .model_bytes = sizeof(pli_gbdt_model),
    .check = pli_trees_check,
    .prepare = prepare,
    .measured = measured,
    .train = pli_gbdt_train,
    .finish = pli_trees_finish,
    .end = pli_trees_end,
    .close = pli_gbdt_close,
    .export_onnx = pli_gbdt_export,
    .more = &more,
};
