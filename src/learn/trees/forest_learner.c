/* The learner forest: its options, and the rules that its trees grow by. All else it shares with gbdt (trees.h,
 * bag.c). */
#include <math.h>
#include <string.h>

#include "learn/trees/trees.h"

static const plait_learner_table tables[] = {
    { .name = "histogram", .what = "sums of labels by bin, of the nodes of a step: two whole numbers a bin" },
    PLI_TREES_TABLES,
    { .name = NULL },
};

/* Trees are large; their newest leaves are split first, so many at a time: fewer where a histogram is large. */
enum { ROUNDS = 100, LEAVES_MOST = 65536, DEPTH_MOST = 64, FEW_SLOTS = 8, LARGE = 1 << 15, USUAL_DEPTH = 24,
       LEAST_OF_NUMBERS = 5 };

/* A set of texts has few of them, and each many rows: else large trees learn texts by heart. */
enum { TEXTS_MOST = 32, TEXT_ROWS = 10 };

static const plait_learner_option options[] = {
    { .name = "leaves", .kind = PLAIT_OPTION_COUNT, .preset = "0", .high = LEAVES_MOST,
      .help = "most leaves of a tree; 0: 65536" },
    { .name = "depth", .kind = PLAIT_OPTION_COUNT, .preset = "0", .high = DEPTH_MOST,
      .help = "most splits on the way to a leaf; 0: any number" },
    { .name = "bins", .kind = PLAIT_OPTION_COUNT, .preset = "255", .low = 2, .high = PLI_BINS_MOST,
      .help = "most bins that a feature's values are cut into" },
    { .name = "min-rows", .kind = PLAIT_OPTION_COUNT, .preset = "0",
      .help = "least rows of a leaf; 0: 1 for classes, 5 for numbers" },
    { .name = "min-weight", .kind = PLAIT_OPTION_NUMBER, .preset = "0", .low = 0,
      .help = "least sum of the weights of a leaf's rows, as the bag has them" },
    { .name = "min-gain", .kind = PLAIT_OPTION_NUMBER, .preset = "0", .low = 0,
      .help = "a split must gain more than this" },
    { .name = "tries", .kind = PLAIT_OPTION_COUNT, .preset = "0",
      .help = "how many features each split chooses from, drawn anew; 0: the square root of their number for classes, "
              "a third for numbers" },
    PLI_TREES_BY,
    PLI_TREES_CATEGORIES("apart"),
    { .name = "subsample", .kind = PLAIT_OPTION_NUMBER, .preset = "1", .low = 1e-6, .high = 4,
      .help = "rows in a tree's bag, as a share of all; they are drawn with repeats" },
    { .name = NULL },
};

static plait_status check(pli_run *run) {
    const char *loss = run->opts->loss;
    if (run->opts->learning_rate > 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "learning-rate with model %s is refused: all its trees count the "
                                                  "same; leave it out", run->learner->name);
    if (loss == NULL || strcmp(loss, "logistic") == 0 || strcmp(loss, "squared") == 0) return pli_trees_check(run);
    return pli_fail(run->err, PLAIT_EREFUSED,
                    "loss %s with model %s is refused: its leaves are shares of classes, or means of numbers; take "
                    "--loss %s, or --model gbdt",
                    loss, run->learner->name, strcmp(loss, "softmax") == 0 ? "logistic" : "squared");
}

/* How many features a split chooses from: by Breiman, 2001, sections 5 and 11. */
static int64_t tries(const pli_run *run, int32_t used) {
    const int64_t asked = plait_training_count(run, "tries");
    const double  usual = pli_fit_of(run)->goal.classes > 0 ? floor(sqrt(used)) : floor(used / 3.0);
    if (asked > 0) return asked < used ? asked : 0;
    return usual < 1 ? 1 : (int64_t)usual;
}

static plait_status prepare(pli_run *run) {
    pli_tree_rules *r = &pli_gbdt_of(run)->grower.rules;
    PLI_TRY(pli_trees_prepare(run));
    run->rate = 1;
    run->l2 = isnan(run->opts->l2) ? 0 : run->opts->l2;
    pli_trees_settle(run, ROUNDS);
    const int64_t leaves = plait_training_count(run, "leaves"), rows = plait_training_count(run, "min-rows");
    *r = (pli_tree_rules){ .l1 = run->l1, .l2 = run->l2, .rate = 1, .depth = plait_training_count(run, "depth"),
                           .colsample = 1, .bagged = true };
    r->leaves = leaves > 0 ? leaves : LEAVES_MOST;
    if (r->leaves > run->train_rows && run->train_rows > 0) r->leaves = run->train_rows;
    r->min_rows = rows > 0 ? rows : pli_fit_of(run)->goal.classes > 0 ? 1 : LEAST_OF_NUMBERS;
    pli_run_took(run, "leaves", leaves > 0 ? leaves : LEAVES_MOST);
    pli_run_took(run, "min-rows", r->min_rows);
    r->min_hessian = plait_training_number(run, "min-weight"); /* a row's second derivative is its weight */
    r->min_gain = plait_training_number(run, "min-gain");
    r->text_most = TEXTS_MOST;
    r->text_smooth = TEXT_ROWS;
    r->text_rows = TEXT_ROWS;
    r->subsample = plait_training_number(run, "subsample");
    return PLAIT_OK;
}

static plait_status measured(pli_run *run) {
    pli_gbdt       *t = pli_gbdt_of(run);
    pli_tree_rules *r = &t->grower.rules;
    PLI_TRY(pli_trees_bin(run));
    r->tries = tries(run, t->bins.used);
    pli_trees_note_most(run, "tries");
    pli_run_took(run, "tries", r->tries > 0 ? r->tries : t->bins.used);
    const int64_t slots = t->bins.offset[t->bins.used] > LARGE ? FEW_SLOTS : PLI_GROW_SLOTS;
    PLI_TRY(pli_trees_measured(run, slots, fmin((double)r->leaves, (double)(slots * USUAL_DEPTH))));
    t->trees.shares = t->fit.goal.classes > 0;
    t->gradients.base = t->trees.base;
    t->gradients.seed = run->opts->seed;
    t->gradients.mean = r->subsample;
    t->rows.votes = pli_calloc((size_t)t->rows.n, sizeof *t->rows.votes);
    return t->rows.votes != NULL ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for votes");
}

static void describe(const pli_run *run, pli_text *json) { pli_json_text(json, "loss", pli_fit_of(run)->loss); }

static void report(const pli_run *run, plait_report *to) {
    const pli_gbdt *t = pli_gbdt_of(run);
    pli_fit_report(run, to);
    if (!(t->left_out.weight > 0)) return;
    to->oob_loss = pli_sums_loss(&t->left_out);
    if (t->fit.goal.classes > 0) to->oob_accuracy = t->left_out.right / t->left_out.weight;
}

static const pli_learner_more more = { .settles = true, .reads = pli_trees_reads,
                                       .check_judged = pli_fit_check_judged, .judge = pli_fit_judge,
                                       .options = pli_trees_options, .describe = describe,
                                       .kept = pli_gbdt_kept, .restore = pli_gbdt_restore, .report = report,
                                       .model = &pli_gbdt_model_ops };

const plait_learner pli_forest_learner = {
    .size = sizeof(plait_learner),
    .name = "forest",
    .summary = "a forest: the mean of trees that each see other rows and features",
    .help = "a random forest: each round grows a large tree on rows drawn with repeats (of more than two classes, one "
            "for each class), and each split chooses from a few features. The model is the mean of the trees.\n"
            "  labels   classes, or numbers with --loss squared\n"
            "  rounds   --epochs N (default 100)\n"
            "  texts    each is a feature, or a column is one that is split by sets (--categories sets)\n"
            "  missing  each split learns which side rows without a value take\n"
            "  judged   oob_loss and oob_accuracy are of each row, by the trees that have not seen it\n"
            "  workers  have rows, features, or vote for features (--trees-by)\n"
            "The model has the same bits with any topology, and with any number of workers unless they vote. "
            "'plait inspect --trees N' prints trees, 'plait inspect --weights' each feature's gain and splits.\n",
    .labels = PLAIT_LABELS_EITHER,
    .ways = PLAIT_LEARNER_PASSES | PLAIT_LEARNER_VALIDATES | PLAIT_LEARNER_STEPS,
    .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY,
    .options = options,
    .tables = tables,
    .state_bytes = sizeof(pli_gbdt),
    .model_bytes = sizeof(pli_gbdt_model),
    .check = check,
    .prepare = prepare,
    .measured = measured,
    .train = pli_gbdt_train,
    .finish = pli_trees_finish,
    .end = pli_trees_end,
    .close = pli_gbdt_close,
    .export_onnx = pli_gbdt_export,
    .more = &more,
};
