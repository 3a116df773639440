/* The learner mf: its options, and what follows from them and the data. See factors.h. */
#include <math.h>
#include <string.h>

#include "learn/factors/factors.h"
#include "learn/solve/rotation.h"
#include "learn/solve/solver.h"

static const plait_learner_table tables[] = {
    { .name = "items", .what = "one row for each item: its bias, the mean square of its slopes (sgd), its factors" },
    { .name = "users", .what = "one row for each user, likewise" },
    { .name = NULL },
};

/* Steps divide by a row's past slopes, so they shrink: on few ratings more passes come nearer to the optimum
 * (docs/factors.md), and take milliseconds. probe.c may double them once more. */
enum { EPOCHS_FEW = 40, RATINGS_FEW = 300000 };

enum { EPOCHS_SGD = 20, EPOCHS_ALS = 15, BLOCKS = 16, RANK_MOST = 4096 };

static const plait_learner_option options[] = {
    { .name = "components", .kind = PLAIT_OPTION_COUNT, .preset = "32", .low = 1, .high = RANK_MOST,
      .help = "rank: how many factors a user and an item have" },
    { .name = "confidence", .kind = PLAIT_OPTION_NUMBER, .preset = "40", .low = 0,
      .help = "with --loss implicit: how much a value of 1 adds to the weight of its pair, which is 1 without" },
    { .name = "item-blocks", .kind = PLAIT_OPTION_COUNT, .preset = "0", .high = PLI_ROTATION_MOST,
      .help = "with --optimizer sgd: in how many blocks items rotate over workers; 0: 16, or as many as the workers "
              "and the staleness need" },
    { .name = NULL },
};

static const char *const losses[] = { "squared", "implicit", "bpr" };
enum { LOSSES = sizeof losses / sizeof *losses };

pli_factor_loss pli_mf_loss_of(const char *name) {
    for (int i = 0; name != NULL && i < LOSSES; i++)
        if (strcmp(losses[i], name) == 0) return (pli_factor_loss)i;
    return PLI_FACTORS_SQUARED;
}

/* --- what follows from options ------------------------------------------------------------------------------------ */

static plait_status check_loss(const pli_run *run) {
    for (int i = 0; i < LOSSES; i++)
        if (run->opts->loss == NULL || strcmp(losses[i], run->opts->loss) == 0) return PLAIT_OK;
    return pli_fail_unknown(run->err, "loss of model mf", run->opts->loss, losses, LOSSES);
}

static plait_status refuse(const pli_run *run, const char *what, const char *why, const char *nearest) {
    return pli_fail(run->err, PLAIT_EREFUSED, "%s with model mf is refused: %s; nearest is %s", what, why, nearest);
}

/* Is the optimizer one that the loss can have? */
static plait_status check_optimizer(const pli_run *run) {
    const char *asked = run->opts->optimizer;
    if (pli_is(asked, "momentum") || pli_is(asked, "adagrad") || pli_is(asked, "adam") || pli_is(asked, "ftrl"))
        return refuse(run, "an update rule", "its steps on a row divide by the row's past slopes already",
                      "--optimizer sgd");
    if (pli_is(run->opts->loss, "implicit") && pli_is(asked, "sgd"))
        return refuse(run, "--optimizer sgd and --loss implicit", "it counts all pairs, also those without a value",
                      "--optimizer als, or --loss bpr");
    if (pli_is(run->opts->loss, "bpr") && pli_is(asked, "als"))
        return refuse(run, "--optimizer als and --loss bpr", "it is no sum of squares", "--optimizer sgd");
    return PLAIT_OK;
}

/* Refuses what other models take, and this one would leave unused. */
static plait_status check_useless(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    if (o->init_model != NULL)
        return refuse(run, "--init-model", "a saved model lacks the step sizes", "--checkpoint DIR, and --resume DIR");
    if (o->layers != NULL || o->graph_file != NULL)
        return refuse(run, "--layers or --graph", "it is no net", "--components N");
    return PLAIT_OK;
}

static plait_status check(pli_run *run) {
    const plait_train_opts *o = run->opts;
    PLI_TRY(check_loss(run));
    PLI_TRY(check_optimizer(run));
    if (o->backup > 0)
        return refuse(run, "--backup", "a step of the rotation may then lack a worker's part", "--backup 0");
    const pli_topology_kind *topology = pli_topology_find(run->topology); /* unknown names are told later */
    if (o->replicas > 1 && topology != NULL &&
        (pli_pair_properties(topology, run->consistency, NULL) & PLAIT_WHOLE_CLOCKS) == 0)
        return refuse(run, "--replicas 2 where reads may be stale",
                      "the heir of a dead worker's turn needs the values that it had", "bsp");
    if (run->balanced && o->replicas > 1)
        return refuse(run, "--balance dynamic with --replicas 2",
                      "users move between workers that must not die meanwhile", "--balance static");
    if (o->l1 > 0) return refuse(run, "--l1", "its penalty is on squares", "--l2");
    return check_useless(run);
}

static void reads(const pli_run *run, plait_data_opts *files) {
    (void)run;
    files->pairs = 1;
}

/* --- what follows from the data ----------------------------------------------------------------------------------- */

static plait_status settle_pairs(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    if (pli_schema_pairs(run->schema, &m->pair) && m->pair.users > 0 && m->pair.items > 0) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EREFUSED,
                    "model mf is refused on these rows: it needs a user, an item and a value in each; write lines "
                    "\"user item value\" (--format ratings), or a table with columns of these names, and without "
                    "--hash-bits");
}

/* Counts rows, and the mean of the values; exactly, so that it does not depend on the workers. */
static plait_status settle_rows(pli_run *run) {
    pli_mf   *m = pli_mf_of(run);
    pli_total total = { 0 };
    pli_sums  all;
    double    bad = 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        pli_sums         sums = { 0 };
        for (int64_t i = 0; i < block->rows; i++) {
            const double w = block->weight != NULL ? (double)block->weight[i] : 1;
            const double value = isnan(block->label[i]) ? 1 : block->label[i];
            sums.loss += w * value;
            sums.weight += w;
            sums.rows++;
            if (value < 0 && value < bad) bad = value;
        }
        pli_total_add(&total, &sums);
    }
    PLI_TRY(pli_total_agree(run->comm, &total, &all));
    PLI_TRY(plait_comm_allreduce(run->comm, &bad, 1, PLAIT_F64, PLAIT_MIN));
    if (m->loss == PLI_FACTORS_IMPLICIT && bad < 0)
        return pli_fail(run->err, PLAIT_EFORMAT, "a value is %g: --loss implicit takes values as counts or times, 0 or "
                                                 "more; take --loss squared for ratings", bad);
    if (!(all.weight > 0)) return pli_fail(run->err, PLAIT_EFORMAT, "there is no rating to train on");
    m->mean = m->loss == PLI_FACTORS_SQUARED ? all.loss / all.weight : 0;
    run->rows = run->train_rows = run->train_labels = run->seen_rows = (int64_t)all.rows;
    run->entries = run->seen_entries = 2 * run->rows;
    run->features = pli_schema_features(run->schema);
    if (!pli_schema_has_labels(run->schema) && m->loss == PLI_FACTORS_SQUARED)
        return pli_fail(run->err, PLAIT_EINVAL, "--loss squared needs a value for each user and item; without values "
                                                "take --loss implicit or --loss bpr");
    return pli_label_describe(run->data, 0, run->label_text, run->err);
}

static int64_t usual_epochs(const pli_run *run) {
    const pli_mf *m = pli_mf_of(run);
    if (m->als) return EPOCHS_ALS;
    return m->loss == PLI_FACTORS_SQUARED && run->train_rows <= RATINGS_FEW ? EPOCHS_FEW : EPOCHS_SGD;
}

/* With auto, implicit feedback is solved and all else takes steps. */
static plait_status settle_solver(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    if (run->chooses && m->loss == PLI_FACTORS_IMPLICIT &&
        !pli_run_try_solver(run, &pli_solver_als, "implicit feedback counts all pairs, which only als can"))
        return refuse(run, "--loss implicit", "its solver als needs whole clocks and one copy of each row, which this "
                                              "consistency or topology does not promise", "--consistency bsp");
    m->als = run->solver == &pli_solver_als;
    return PLAIT_OK;
}

static void settle_numbers(pli_run *run) {
    static const double rates[] = { 0.1, 0, 0.1 }, penalties[] = { 0.1, 0.01, 0.01 };
    const plait_train_opts *o = run->opts;
    pli_mf                 *m = pli_mf_of(run);
    m->rank = plait_training_count(run, "components");
    m->cols = m->rank + PLI_FACTOR_FIRST;
    m->confidence = plait_training_number(run, "confidence");
    m->seed = o->seed;
    m->own.worker = plait_comm_rank(run->comm);
    run->batch = run->examples = run->train_rows;
    run->clocks = 1;
    run->epochs = o->epochs > 0 ? o->epochs : usual_epochs(run);
    run->rate = o->learning_rate > 0 ? o->learning_rate : rates[m->loss];
    run->l2 = isnan(o->l2) ? penalties[m->loss] : o->l2;
    run->l1 = 0;
    run->schedule = m->als ? NULL : o->schedule != NULL ? o->schedule : "cosine";
    run->weights = 0;
    if (m->loss != PLI_FACTORS_IMPLICIT) pli_run_note_unused(run, "confidence", "without --loss implicit");
    if (m->als) pli_run_note_unused(run, "item-blocks", "on --optimizer als, which solves all items in a clock");
}

static plait_status prepare(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    m->loss = pli_mf_loss_of(run->opts->loss);
    PLI_TRY(settle_pairs(run));
    PLI_TRY(settle_solver(run));
    PLI_TRY(settle_rows(run));
    settle_numbers(run);
    return pli_mf_probe(run, usual_epochs(run));
}

/* --- shares ------------------------------------------------------------------------------------------------------- */

int64_t pli_mf_staleness(const pli_run *run) {
    return pli_rotation_staleness(pli_topology_find(run->topology), run->consistency);
}

/* So many that a block rests long enough for a stale read to miss nothing, if reads are bounded at all. */
static plait_status settle_blocks(pli_run *run) {
    pli_mf       *m = pli_mf_of(run);
    const int64_t workers = pli_run_holders(run), asked = plait_training_count(run, "item-blocks");
    const int64_t least = workers * (pli_mf_staleness(run) + 1);
    m->blocks = asked > 0 ? asked : BLOCKS > least ? BLOCKS : least;
    if (asked == 0 && m->blocks % workers != 0) m->blocks += workers - m->blocks % workers;
    if (!m->als) pli_run_took(run, "item-blocks", m->blocks);
    if (m->blocks >= workers && m->blocks <= PLI_ROTATION_MOST) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL, "%lld blocks of items for %lld workers: expected one for each at least, "
                                            "and %d at most",
                    (long long)m->blocks, (long long)workers, (int)PLI_ROTATION_MOST);
}

/* Spares have no rows until somebody dies. */
static void cut_rows(const pli_run *run, int64_t n, const int64_t *count, int64_t *cut) {
    const int32_t holders = pli_run_holders(run);
    pli_ratings_cut(n, count, holders, cut);
    for (int32_t w = holders; w < plait_comm_workers(run->comm); w++) cut[w + 1] = n;
}

static plait_status measured(pli_run *run) {
    pli_mf       *m = pli_mf_of(run);
    const int64_t workers = plait_comm_workers(run->comm);
    PLI_TRY(settle_blocks(run));
    int64_t *users = pli_calloc((size_t)m->pair.users, sizeof *users), *items = pli_calloc((size_t)m->pair.items,
                                                                                            sizeof *items);
    m->user_cut = pli_array((size_t)workers + 1, sizeof *m->user_cut);
    m->item_cut = pli_array((size_t)workers + 1, sizeof *m->item_cut);
    m->block_cut = pli_array((size_t)m->blocks + 1, sizeof *m->block_cut);
    const bool good = users != NULL && items != NULL && m->user_cut != NULL && m->item_cut != NULL &&
                      m->block_cut != NULL;
    plait_status status = good ? pli_ratings_count(run, &m->pair, users, items)
                               : pli_fail(run->err, PLAIT_ENOMEM, "no memory to count ratings");
    if (status >= 0) {
        cut_rows(run, m->pair.users, users, m->user_cut);
        cut_rows(run, m->pair.items, items, m->item_cut);
        pli_ratings_cut(m->pair.items, items, m->blocks, m->block_cut);
        status = pli_ratings_share(run, &m->pair, false, m->user_cut, &m->own.ratings);
    }
    if (status >= 0 && m->als) status = pli_ratings_share(run, &m->pair, true, m->item_cut, &m->of_items);
    pli_free(users);
    pli_free(items);
    return status;
}

static void end(pli_run *run) {
    pli_mf *m = pli_mf_of(run);
    pli_rotate_end(m);
    pli_ratings_free(&m->own.ratings);
    pli_ratings_free(&m->of_items);
    pli_mf_heirs_end(m, plait_comm_workers(run->comm));
    pli_free(m->user_cut);
    pli_free(m->item_cut);
    pli_free(m->block_cut);
}

/* --- what was learnt ---------------------------------------------------------------------------------------------- */

/* A table's biases and factors as two arrays of the model. */
static plait_status put(pli_run *run, plait_model *model, plait_table *table, const char *bias, const char *factors) {
    const pli_mf *m = pli_mf_of(run);
    const int64_t n = plait_table_rows(table), shape[2] = { n, m->rank };
    const void   *held;
    PLI_TRY(plait_table_read(table, 0, n, &held));
    float *values = pli_array((size_t)n, (size_t)(m->rank + 1) * sizeof *values), *row = values + n;
    if (values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the model");
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        const float *from = (const float *)held + i * m->cols;
        values[i] = from[PLI_FACTOR_BIAS];
        memcpy(row + i * m->rank, from + PLI_FACTOR_FIRST, (size_t)m->rank * sizeof *row);
        for (int64_t k = 0; k < m->cols; k++) finite = finite && isfinite(from[k]);
    }
    plait_status status = finite ? PLAIT_OK : pli_fail(run->err, PLAIT_EDIVERGED, "factors are not finite: give a "
                                                       "smaller --learning-rate or a larger --l2");
    if (status >= 0) status = plait_model_put(model, bias, PLAIT_F32, 1, shape, values, run->err);
    if (status >= 0) status = plait_model_put(model, factors, PLAIT_F32, 2, shape, row, run->err);
    pli_free(values);
    return status;
}

static plait_status finish(pli_run *run, plait_model *model) {
    const pli_mf *m = pli_mf_of(run);
    const double  about[3] = { m->mean, (double)m->loss, run->l2 };
    PLI_TRY(plait_model_put(model, "mean_loss_l2", PLAIT_F64, 1, (const int64_t[]){ 3 }, about, run->err));
    PLI_TRY(put(run, model, m->users, "user_bias", "user_factors"));
    return put(run, model, m->items, "item_bias", "item_factors");
}

static void more_options(const pli_run *run, pli_text *text) {
    pli_text_add(text, "--loss %s\n", losses[pli_mf_of(run)->loss]);
}

static void describe(const pli_run *run, pli_text *json) {
    pli_json_text(json, "loss", losses[pli_mf_of(run)->loss]);
    if (!pli_mf_of(run)->als) pli_json_short(json, "learning_rate", run->rate);
    pli_json_i64(json, "rank", pli_mf_of(run)->rank);
}

/* The rate may have been found by trying (probe.c). */
static void report(const pli_run *run, plait_report *to) {
    if (pli_mf_of(run)->als || to->n_figures >= PLAIT_FIGURES) return;
    to->figures[to->n_figures++] = (plait_figure){ "learning_rate", run->rate };
}

static const pli_solver *const solvers[] = { &pli_solver_als, NULL };

static const pli_learner_more more = { .solvers = solvers, .by_name_only = true, .adds = true, .reads = reads,
                                       .intercept = "a mean and biases are part of it",
                                       .options = more_options, .describe = describe, .report = report,
                                       .recommend = pli_mf_recommend };

const plait_learner pli_mf_learner = {
    .size = sizeof(plait_learner),
    .name = "mf",
    .summary = "matrix factorisation: what a user would say of an item",
    .help = "a matrix of ratings as mean + biases + products of users' and items' factors.\n"
            "  rows      user, item, value: text (--format ratings) or a table with such columns\n"
            "  losses    --loss squared: ratings; implicit: counts of use, all other pairs are weak zeros; bpr: each "
            "pair ranks above pairs without a value\n"
            "  solvers   --optimizer sgd: blocks of items rotate over the workers; als: least squares, side by side\n"
            "  l2        the penalty, once for each rating (implicit: for each row); default 0.1 for squared, "
            "0.01 for others\n"
            "  new rows  what the model does not know counts 0: the mean, and the bias of the other side\n"
            "'plait predict' gives values of pairs, 'plait recommend' the best items for users.\n",
    .labels = PLAIT_LABELS_NONE, /* implicit feedback needs no values; settle_rows asks for them otherwise */
    .ways = PLAIT_LEARNER_PASSES | PLAIT_LEARNER_STEPS,
    .needs = PLAIT_ONE_COPY,
    .optimizer = "sgd",
    .options = options,
    .tables = tables,
    .state_bytes = sizeof(pli_mf),
    .model_bytes = sizeof(pli_mf_model),
    .check = check,
    .prepare = prepare,
    .measured = measured,
    .train = pli_mf_train,
    .finish = finish,
    .end = end,
    .open = pli_mf_open,
    .close = pli_mf_close,
    .width = pli_mf_width,
    .predict = pli_mf_predict,
    .measure = pli_mf_measure,
    .figures = pli_mf_figures,
    .more = &more,
};
