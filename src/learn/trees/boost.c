/* The rounds. In each, all workers take gradients at the scores of their rows, and grow one tree for each score. A
 * round is an epoch of the run; its clocks are the steps of its trees.
 *
 * Checkpoints are cut between rounds. They hold the trees; the scores of a resumed run are added up from them, in the
 * order in which they were added up before, so they have the same bits. Between rounds workers come and go, too
 * (--workers MIN:MAX): who comes takes the trees from the others, as a checkpoint would give them, and goes through
 * its rows anew. */
#include <math.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/solve/inherit.h"
#include "learn/solve/progress.h"
#include "learn/solve/settled.h"
#include "learn/trees/trees.h"
#include "table/table.h"

#define START "trees.start"
#define WHOLE "trees.whole"
#define REAL  "trees.real"
#define SETS  "trees.sets"

/* --- the base ----------------------------------------------------------------------------------------------------- */

/* The weight of class k, block by block: exact, whoever has the block. */
static plait_status class_weight(pli_run *run, int64_t k, double *out) {
    const pli_gbdt *t = pli_gbdt_of(run);
    const double    wanted = t->fit.goal.loss->target == PLI_CLASSES ? (double)k : k == 1 ? 1 : -1;
    pli_total       total = { 0 };
    pli_sums        all;
    PLI_TRY(pli_heirs_gather(run));
    for (int32_t p = 0; p < t->rows.parts; p++) {
        const pli_rows_part *part = &t->rows.part[p];
        pli_sums             sums = { 0 };
        if (!pli_living_is_mine(run, run->data, part->block)) continue;
        for (int64_t row = part->first; row < part->first + part->n; row++)
            if ((t->rows.held == NULL || !t->rows.held[row]) && t->rows.target[row] == wanted)
                sums.weight += (double)t->rows.weight[row];
        pli_total_add(&total, &sums);
    }
    PLI_TRY(pli_total_agree(run->comm, &total, &all));
    *out = all.weight;
    return PLAIT_OK;
}

/* The score of a model without trees: the log odds, the logarithms of the classes' shares, or the mean label. */
static plait_status add_base(pli_run *run) {
    pli_gbdt     *t = pli_gbdt_of(run);
    const int64_t k = t->trees.columns, classes = t->fit.goal.classes;
    double        weight[2] = { 0 }, sum = 0;
    if (classes == 0 && t->fit.goal.loss->query == NULL) t->trees.base[0] = t->fit.label_mean;
    if (t->trees.shares) return PLAIT_OK; /* trees of a forest have the shares themselves */
    for (int64_t c = 0; c < classes; c++) {
        double *to = k > 1 ? &t->trees.base[c] : &weight[c];
        PLI_TRY(class_weight(run, c, to));
        sum += *to;
    }
    if (classes == 2) {
        const double least = 1e-6 * sum;
        t->trees.base[0] = log(fmax(weight[1], least) / fmax(weight[0], least));
    }
    for (int64_t c = 0; k > 1 && c < k; c++) t->trees.base[c] = log(fmax(t->trees.base[c] / sum, 1e-6));
    return PLAIT_OK;
}

static plait_status set_base(pli_run *run) {
    int32_t absent = pli_comm_absent(run->comm);
    do PLI_TRY(add_base(run));
    while (pli_run_again(run, &absent));
    return PLAIT_OK;
}

/* --- validation --------------------------------------------------------------------------------------------------- */

/* Of rows that may be held back, those that are, or the others. */
typedef struct judging {
    const pli_run      *run;
    const pli_dataset  *data;
    const pli_gbdt     *trees;
    const pli_goal     *goal;
    const pli_bin_rows *rows;
    bool                held;
    pli_sums           *sums; /* [parts] */
} judging;

/* Score and slope of a row, at most so many classes on the stack. */
enum { COLUMNS = 64 };

/* The queries of a block: each counts 1. */
static void judge_queries(const judging *j, int64_t first, int64_t end, pli_sums *sums) {
    const pli_bin_rows *rows = j->rows;
    for (int64_t q = pli_bin_rows_query_from(rows, first); q < rows->queries && rows->query[q] < end; q++) {
        const int64_t from = rows->query[q], n = rows->query[q + 1] - from;
        pli_goal_judge_query(j->goal, n, rows->score + from, rows->target + from, sums);
    }
}

static void judge_part(void *user, int64_t b, int32_t thread) {
    const judging *j = user;
    const int64_t  k = j->goal->columns, n = j->rows->n;
    const int64_t  first = j->rows->part[b].first, end = first + j->rows->part[b].n;
    double         on_stack[2 * COLUMNS], *score = k <= COLUMNS ? on_stack : pli_array((size_t)k, 2 * sizeof *score);
    (void)thread;
    if (!pli_living_is_mine(j->run, j->data, j->rows->part[b].block)) return;
    if (j->goal->loss->query != NULL) {
        judge_queries(j, first, end, &j->sums[b]);
        return;
    }
    if (score == NULL) j->sums[b].loss = NAN;
    for (int64_t r = first; score != NULL && r < end; r++) {
        const double weight = (double)j->rows->weight[r], y = j->rows->target[r];
        if (j->rows->held != NULL && j->rows->held[r] != j->held) continue;
        for (int64_t c = 0; c < k; c++) score[c] = j->rows->score[c * n + r];
        if (j->trees->grower.rules.bagged)
            pli_bag_scores(&j->trees->trees, (double)(j->trees->trees.n / k), score);
        j->sums[b].loss += weight * j->goal->loss->at(j->goal->parameter, k, score, y, score + k);
        j->sums[b].weight += weight;
        j->sums[b].rows++;
        const double hit = (double)pli_goal_class(j->goal, score);
        if (j->goal->classes > 0) j->sums[b].right += hit == (k > 1 ? y : y > 0) ? weight : 0;
    }
    if (score != on_stack) pli_free(score);
}

/* The sums of the blocks that are this worker's now. */
static plait_status judge_own(const pli_run *run, const pli_dataset *data, const pli_bin_rows *rows, bool held,
                              pli_total *total_out) {
    judging j = { .run = run, .data = data, .trees = pli_gbdt_of(run), .goal = &pli_gbdt_of(run)->fit.goal,
                  .rows = rows, .held = held };
    *total_out = (pli_total){ 0 };
    j.sums = pli_calloc((size_t)rows->parts + 1, sizeof *j.sums);
    if (j.sums == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to judge rows");
    pli_pool_for(run->pool, rows->parts, judge_part, &j);
    for (int32_t p = 0; p < rows->parts; p++) pli_total_add(total_out, &j.sums[p]);
    pli_free(j.sums);
    return PLAIT_OK;
}

static plait_status judge_once(pli_run *run, const pli_dataset *data, const pli_bin_rows *rows, pli_sums *out) {
    pli_total total;
    PLI_TRY(pli_heirs_gather(run));
    PLI_TRY(judge_own(run, data, rows, true, &total));
    return pli_total_agree(run->comm, &total, out);
}

static plait_status judge(pli_run *run, const pli_dataset *data, const pli_bin_rows *rows, pli_sums *out) {
    int32_t absent = pli_comm_absent(run->comm);
    do PLI_TRY(judge_once(run, data, rows, out));
    while (pli_run_again(run, &absent));
    return pli_sums_check(out, "the validation", run->err);
}

static bool validates(const pli_run *run) { return run->fraction > 0 || run->validation != NULL; }

/* Judges the rows held back, and remembers the best round. *end_out: patience is over. Collective. */
static plait_status validate(pli_run *run, int64_t round, bool *end_out) {
    pli_gbdt *t = pli_gbdt_of(run);
    pli_sums  sums;
    if (!validates(run)) return PLAIT_OK;
    if (run->fraction > 0) PLI_TRY(judge(run, run->data, &t->rows, &sums));
    else PLI_TRY(judge(run, run->validation, &t->validation, &sums));
    run->validation_loss = pli_sums_loss(&sums);
    if (t->fit.goal.classes > 0 && sums.weight > 0) run->validation_accuracy = sums.right / sums.weight;
    if (run->validation_loss < run->best_loss) {
        run->best_loss = run->validation_loss;
        run->best_epoch = round;
    }
    run->stopped_early =
        run->opts->patience > 0 && round - run->best_epoch >= run->opts->patience && round + 1 < run->epochs;
    *end_out = *end_out || run->stopped_early;
    return PLAIT_OK;
}

/* A row's score is the model's unless it is that of a forest's other trees, or the model has fewer rounds. Whoever has
 * rows of a dead worker judges them from the data. */
plait_status pli_gbdt_judged(const pli_run *run, const pli_goal *goal, const pli_solution *solution,
                             const pli_dataset *data, bool (*want)(void *user, int64_t row), pli_total *total_out,
                             bool *done_out) {
    const pli_gbdt *t = pli_gbdt_of(run);
    (void)solution, (void)want;
    *done_out = data == run->data && goal == &t->fit.goal && !t->grower.rules.bagged &&
                (run->best == 0 || run->best == run->epochs_done) && pli_comm_absent(run->comm) == 0 && !t->moved;
    return *done_out ? judge_own(run, data, &t->rows, false, total_out) : PLAIT_OK;
}

/* --- a round ------------------------------------------------------------------------------------------------------ */

static plait_status grow_trees(pli_run *run, int64_t round) {
    pli_gbdt     *t = pli_gbdt_of(run);
    const int64_t k = t->trees.columns;
    t->exhausted = t->grower.rules.subsample >= 1 && t->grower.rules.colsample >= 1 && !t->grower.rules.bagged;
    for (int64_t c = 0; c < k; c++) {
        PLI_TRY(pli_grow_tree(&t->grower, round * k + c, t->gradients.cell + c * t->rows.n, &t->gradients.scale[c]));
        PLI_TRY(pli_trees_add(&t->trees, t->grower.nodes, t->grower.node, t->grower.code, run->err));
        pli_scores_add(run, &t->validation, 0, t->trees.n - 1, t->trees.n);
        t->exhausted = t->exhausted && t->grower.nodes == 1;
    }
    return PLAIT_OK;
}

static plait_status run_round(pli_run *run, pli_meter *meter, int64_t round, bool *end_out) {
    pli_gbdt *t = pli_gbdt_of(run);
    uint64_t  at = pli_comm_span_begin(run->comm);
    bool      stop = false;
    t->gradients.round = round;
    PLI_TRY(pli_gradients_take(run, &t->rows, run->opts->progress != NULL || round == 0, &t->gradients));
    pli_run_step(run, "gradients", &at);
    pli_sums sums = pli_total_sums(&t->gradients.loss);
    if (round == 0) pli_total_merge(&run->progressive, &t->gradients.loss);
    t->in_round = true;
    PLI_TRY(grow_trees(run, round));
    t->in_round = false;
    pli_run_tell_lost(run);
    if (t->grower.rules.bagged) {
        PLI_TRY(pli_bag_judge(run, &t->left_out));
        sums = t->left_out;
    }
    if (round == 0) run->first = sums;
    run->epochs_done = round + 1;
    *end_out = t->exhausted;
    PLI_TRY(validate(run, round, end_out));
    pli_run_phase(run, "epoch", round, &at);
    pli_meter_tell(meter, &sums, round, 0, true);
    if (*end_out || round + 1 == run->epochs) return PLAIT_OK;
    PLI_TRY(pli_keep_epoch(run, round, &stop));
    run->interrupted = stop;
    *end_out = stop;
    return stop ? PLAIT_OK : pli_heirs_move(run);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

/* The worker's features of the rows of all. */
static plait_status take_columns(pli_run *run) {
    pli_gbdt *t = pli_gbdt_of(run);
    if (run->opts->replicas < 2) return pli_bin_rows_exchange(run, &t->bins, &t->rows);
    PLI_TRY(pli_cut_features_hold(run));
    return pli_bin_rows_read(run, &t->bins, &t->rows);
}

/* Scores and resumed trees are there: from now on a worker may have other rows. */
static plait_status make_grower(pli_run *run) {
    pli_gbdt *t = pli_gbdt_of(run);
    if (t->grower.cut->exchanges) PLI_TRY(take_columns(run));
    PLI_TRY(pli_gradients_make(run, &t->rows, &t->gradients));
    return pli_grower_make(&t->grower);
}

static plait_status begin(pli_run *run) {
    pli_gbdt *t = pli_gbdt_of(run);
    PLI_TRY(t->grower.cut->tables(&t->grower));
    PLI_TRY(pli_keep_begin(run));
    PLI_TRY(pli_settled_begin(run, NULL));
    if (run->resume == NULL) PLI_TRY(set_base(run));
    pli_scores_begin(&t->trees, &t->rows, 0);
    pli_scores_begin(&t->trees, &t->validation, 0);
    PLI_TRY(pli_resume_tables(run));
    PLI_TRY(make_grower(run));
    PLI_TRY(run->resume != NULL ? pli_job_pass(run->job) : plait_job_barrier(run->job));
    if (t->grower.cut->begin != NULL) PLI_TRY(t->grower.cut->begin(&t->grower));
    pli_job_resume(run->job);
    return PLAIT_OK;
}

/* Past a door. Who has come notes what tables hold. */
static plait_status turn(pli_run *run, bool came) {
    pli_gbdt *t = pli_gbdt_of(run);
    if (run->opts->slots == 0) return PLAIT_OK;
    PLI_TRY(pli_heirs_turn(run, came));
    return came && t->grower.cut->begin != NULL ? t->grower.cut->begin(&t->grower) : PLAIT_OK;
}

/* Those who are away at first wait. PLAIT_END: until the others have ended. */
static plait_status begin_turns(pli_run *run) {
    static const pli_steps none;
    bool                   came;
    const plait_status     status = pli_doors_begin(&pli_gbdt_of(run)->doors, run, &none, &came);
    return status == PLAIT_OK ? turn(run, came) : status;
}

/* Between two rounds workers come and go. */
static plait_status open_door(pli_run *run) {
    bool               came, changed;
    const plait_status status = pli_doors_open(&pli_gbdt_of(run)->doors, &came, &changed);
    return status == PLAIT_OK ? turn(run, came) : status;
}

static plait_status all_rounds(pli_run *run) {
    pli_meter    meter;
    plait_status status;
    bool         end = false;
    PLI_TRY(begin(run));
    pli_meter_start(&meter, run);
    PLI_TRY(status = begin_turns(run));
    while (status == PLAIT_OK && run->epochs_done < run->epochs && !end) {
        PLI_TRY(run_round(run, &meter, run->epochs_done, &end));
        if (!end && run->epochs_done < run->epochs) PLI_TRY(status = open_door(run));
    }
    if (status != PLAIT_OK) return status;
    PLI_TRY(pli_keep_settle(run));
    return plait_job_barrier(run->job);
}

plait_status pli_gbdt_train(pli_run *run) {
    const plait_status status = all_rounds(run);
    pli_doors_end(&pli_gbdt_of(run)->doors);
    run->kept = pli_keep_last(run, &run->unkept);
    pli_keep_end(run);
    pli_settled_end(run);
    return status;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

/* kept is asked for the sizes first, and again for the values: at the same round, so the arrays are made anew only if
 * trees have come. */
static bool lay_out(pli_gbdt *t) {
    const int64_t nodes = t->trees.start[t->trees.n];
    pli_free(t->kept_whole);
    pli_free(t->kept_real);
    pli_free(t->kept_sets);
    t->kept_whole = pli_array((size_t)nodes, PLI_TREES_WHOLE * sizeof *t->kept_whole);
    t->kept_real = pli_array((size_t)nodes, PLI_TREES_REAL * sizeof *t->kept_real);
    t->kept_sets = pli_array((size_t)pli_trees_lay_out_sets(&t->trees, NULL), sizeof *t->kept_sets);
    if (t->kept_whole == NULL || t->kept_real == NULL || t->kept_sets == NULL) return false;
    pli_trees_lay_out(&t->trees, t->kept_whole, t->kept_real);
    (void)pli_trees_lay_out_sets(&t->trees, t->kept_sets);
    return true;
}

int32_t pli_gbdt_kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]) {
    pli_gbdt *t = pli_gbdt_of(run);
    if (t->trees.start == NULL || !lay_out(t)) return 0;
    const int64_t nodes = t->trees.start[t->trees.n];
    kept_out[0] = (pli_kept){ START, "I64", t->trees.n + 1, 0, t->trees.start };
    kept_out[1] = (pli_kept){ WHOLE, "I64", nodes, PLI_TREES_WHOLE, t->kept_whole };
    kept_out[2] = (pli_kept){ REAL, "F64", nodes, PLI_TREES_REAL, t->kept_real };
    const int64_t sets = pli_trees_lay_out_sets(&t->trees, NULL);
    kept_out[3] = (pli_kept){ SETS, "I64", sets, 0, t->kept_sets };
    return sets > 0 ? 4 : 3;
}

/* Which bin a split's cut stands for; -1: none. Of a split by texts each must have a bin. */
static int32_t bin_of_cut(const pli_bins *bins, const pli_tree_node *node, const int32_t *code) {
    const int32_t j = node->feature < bins->features ? bins->place[node->feature] : -1;
    if (j >= 0 && node->codes > 0) {
        for (int32_t c = 0; c < node->codes; c++)
            if (bins->of_code[j][code[node->code + c]] == bins->count[j]) return -1;
        return 0;
    }
    for (int32_t b = 0; j >= 0 && b + 1 < bins->count[j]; b++)
        if (bins->cut[bins->cut_start[j] + b] == node->cut) return b;
    return j >= 0 && isinf(node->cut) ? bins->count[j] - 1 : -1;
}

static plait_status find_bins(pli_run *run) {
    pli_gbdt *t = pli_gbdt_of(run);
    for (int64_t i = 0; i < t->trees.start[t->trees.n]; i++) {
        pli_tree_node *node = &t->trees.node[i];
        if (node->feature < 0) continue;
        node->bin = bin_of_cut(&t->bins, node, t->trees.code);
        if (node->bin < 0)
            return pli_fail(run->err, PLAIT_EMISMATCH, "%s: its trees have cuts that these data do not have",
                            run->opts->resume);
    }
    return PLAIT_OK;
}

static plait_status read_trees(pli_run *run, int64_t starts, int64_t nodes, int64_t length, int64_t *start,
                               int64_t *whole, double *real, int64_t *sets) {
    pli_gbdt *t = pli_gbdt_of(run);
    if (start == NULL || whole == NULL || real == NULL || sets == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld trees", (long long)starts);
    PLI_TRY(pli_resume_array(run, START, starts, sizeof *start, start));
    PLI_TRY(pli_resume_array(run, WHOLE, nodes, PLI_TREES_WHOLE * sizeof *whole, whole));
    PLI_TRY(pli_resume_array(run, REAL, nodes, PLI_TREES_REAL * sizeof *real, real));
    if (length > 0) PLI_TRY(pli_resume_array(run, SETS, length, sizeof *sets, sets));
    PLI_TRY(pli_trees_take(&t->trees, &(pli_trees_arrays){ .n = starts - 1, .nodes = nodes, .length = length,
                                                           .start = start, .whole = whole, .real = real,
                                                           .sets = sets }, run->err));
    return find_bins(run);
}

plait_status pli_gbdt_restore(pli_run *run) {
    pli_gbdt *t = pli_gbdt_of(run);
    int64_t   starts = 0, nodes = 0, length = 0;
    if (!pli_resume_has(run, START, &starts) || !pli_resume_has(run, WHOLE, &nodes) || starts < 1)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s holds no trees", run->opts->resume);
    (void)pli_resume_has(run, SETS, &length);
    int64_t     *start = pli_array((size_t)starts, sizeof *start);
    int64_t     *whole = pli_array((size_t)nodes, PLI_TREES_WHOLE * sizeof *whole);
    double      *real = pli_array((size_t)nodes, PLI_TREES_REAL * sizeof *real);
    int64_t     *sets = pli_array((size_t)length, sizeof *sets);
    plait_status status = read_trees(run, starts, nodes, length, start, whole, real, sets);
    pli_free(start);
    pli_free(whole);
    pli_free(real);
    pli_free(sets);
    if (status < 0) return status;
    const bool comes = run->handed != NULL; /* it knows the base; its rows are found behind the door */
    if (!comes) PLI_TRY(set_base(run)); /* it follows from the labels */
    pli_scores_begin(&t->trees, &t->validation, 0);
    pli_scores_add(run, &t->validation, 0, 0, t->trees.n);
    if (comes) return PLAIT_OK;
    pli_scores_begin(&t->trees, &t->rows, 0);
    pli_scores_add(run, &t->rows, 0, 0, t->trees.n);
    return PLAIT_OK;
}
