/* Online learning: the tables, batches by key, the solution. See online.h.
 *
 * A worker reads the values of the features of its batch, learns from its rows one after another in this copy, and
 * pushes how much each value has grown. */
#include "learn/linear/online.h"

#include <math.h>
#include <string.h>

#include "table/table.h"

enum { TAIL = 16, LONG_TAIL = 4 }; /* with several workers, one clock of so many is of a review */

static pli_online *online_of(const pli_run *run) { return pli_linear_fit_of(run)->online; }

static plait_status no_memory(plait_error *err) { return pli_fail(err, PLAIT_ENOMEM, "no memory for a batch's rows"); }

/* --- a row -------------------------------------------------------------------------------------------------------- */

static plait_status reserve(pli_online_thread *thread, pli_online_row *row, int64_t n) {
    if (n < row->capacity) return PLAIT_OK;
    const int64_t capacity = n + n / 2 + 64;
    float       **at = pli_realloc(row->at, (size_t)capacity, sizeof *at);
    if (at != NULL) row->at = at;
    float *x = pli_realloc(row->x, (size_t)capacity, sizeof *x);
    if (x != NULL) row->x = x;
    if (at == NULL || x == NULL) return no_memory(&thread->error);
    row->capacity = capacity;
    return PLAIT_OK;
}

plait_status pli_online_take(const pli_run *run, pli_online_thread *thread, const pli_block *block, int64_t number,
                             pli_online_row *row) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    const int64_t  from = block->row_start[number], given = block->row_start[number + 1] - from;
    const double  *factor = l->fit.scale.factor, *centre = l->fit.scale.centre;
    const int64_t  n = centre != NULL ? l->linear.features : given;
    row->known = pli_goal_target(&l->linear.goal, block->label[number], &row->y, &row->weight);
    if (!row->known && run->live) return pli_online_unknown(run, block, number, &thread->error);
    if (block->weight != NULL) row->weight *= (double)block->weight[number];
    PLI_TRY(reserve(thread, row, n + 1));
    row->ones = centre == NULL; /* by its own values, whatever the block has: a pipe is cut into other blocks */
    if (centre != NULL) { /* a value that is not given is not 0 */
        if (given > 0 && (block->col == NULL || block->col[from + given - 1] >= n))
            return pli_fail(&thread->error, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH,
                            (long long)(block->first_row + number + 1));
        for (int64_t j = 0; j < n; j++) row->x[j] = (float)(-centre[j] * factor[j]);
        for (int64_t e = from; e < from + given; e++) {
            const uint32_t j = block->col[e];
            row->x[j] = (float)(factor[j] * ((block->value != NULL ? (double)block->value[e] : 1) - centre[j]));
        }
    } else if (block->value != NULL) {
        memcpy(row->x, block->value + from, (size_t)n * sizeof *row->x);
        for (int64_t e = 0; e < n && row->ones; e++) row->ones = row->x[e] == 1;
    } else {
        for (int64_t e = 0; e < n; e++) row->x[e] = 1;
    }
    row->n = n;
    row->share = 1;
    row->intercept = l->linear.intercept;
    if (row->intercept) row->x[row->n++] = 1;
    return PLAIT_OK;
}

/* Few parts have rows, and they mostly are in order already. */
plait_status pli_online_find_order(pli_run *run, int32_t parts, const pli_part *part) {
    pli_online *o = online_of(run);
    if (!pli_grow((void **)&o->order, &o->order_capacity, parts, sizeof *o->order))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch");
    o->ordered = 0;
    for (int32_t p = 0; p < parts; p++) {
        if (part[p].rows == 0) continue;
        int64_t i = o->ordered++;
        for (; i > 0 && part[o->order[i - 1]].block->first_row > part[p].block->first_row; i--)
            o->order[i] = o->order[i - 1];
        o->order[i] = p;
    }
    return PLAIT_OK;
}

/* --- a batch by key ----------------------------------------------------------------------------------------------- */

/* The keys of the batch's features, then those of the intercepts and of the totals if w has them. */
static plait_status find_keys(pli_run *run, int64_t *n_out) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    pli_online     *o = l->online;
    const int64_t   d = l->linear.features;
    int64_t         n = l->unique;
    if (n > 0 && pli_linear_lacks(&l->linear, l->keys[n - 1]))
        return pli_fail(run->err, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH,
                        (long long)run->loop->batch.part[0].block->first_row + 1);
    if (!pli_grow((void **)&l->keys, &l->keys_capacity, n + 2, sizeof *l->keys) ||
        !pli_grow((void **)&o->now, &o->now_capacity, (n + 2) * o->cols, sizeof *o->now) ||
        !pli_grow((void **)&o->before, &o->before_capacity, (n + 2) * o->cols, sizeof *o->before))
        return no_memory(run->err);
    if (l->b == NULL && l->linear.intercept) l->keys[n++] = (uint64_t)d;
    if (l->b == NULL) l->keys[n++] = o->total_key;
    *n_out = n;
    return PLAIT_OK;
}

/* The values of the intercepts and the totals follow those of the features in `now`, whichever table has them. */
static float *intercept_values(const pli_linear_fit *l) { return l->online->now + l->unique * l->online->cols; }
static float *total_values(const pli_linear_fit *l) {
    return intercept_values(l) + (l->linear.intercept || l->b != NULL ? l->online->cols : 0);
}

/* How many values `now` has. */
static int64_t now_values(const pli_linear_fit *l) { return total_values(l) - l->online->now + l->online->cols; }

/* Workers that learn from rows of this clock, or have died in it. */
static double learners(const pli_run *run) { return pli_run_holders(run) - pli_job_away(run->job); }

static plait_status learn_part(pli_run *run, const pli_part *part, const uint32_t *local, double earlier,
                               double *own) {
    pli_linear_fit    *l = pli_linear_fit_of(run);
    pli_online        *o = l->online;
    pli_online_thread *h = pli_online_alone(o);
    pli_online_row    *row = &h->row[0];
    for (int64_t i = 0; i < part->rows; i++) {
        const int64_t number = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        PLI_TRY(pli_online_take(run, h, part->block, number, row));
        const int64_t entries = row->n - row->intercept;
        for (int64_t e = 0; e < entries; e++) row->at[e] = o->now + (local != NULL ? (int64_t)*local++ : e) * o->cols;
        if (row->intercept) row->at[entries] = intercept_values(l);
        const double all = earlier + ++*own * learners(run), seen = h->totals.rows + 1;
        row->share = o->paced && seen < all ? sqrt(seen / all) : 1;
        if (pli_online_learn(&o->rule, row, &h->totals, &h->sums, &h->scratch) < 0) return no_memory(&h->error);
    }
    return PLAIT_OK;
}

static plait_status learn_batch(pli_run *run, const pli_batch *batch) {
    pli_linear_fit    *l = pli_linear_fit_of(run);
    pli_online_thread *h = pli_online_alone(l->online);
    const float       *was = total_values(l);
    const double       earlier = (double)run->clocks_done * (double)run->train_rows / (double)(run->clocks - run->tail);
    double             own = 0;
    h->totals = (pli_online_totals){ .weight = (double)was[0], .norm = (double)was[1], .rows = (double)was[2] };
    PLI_TRY(pli_online_find_order(run, batch->parts, batch->part));
    pli_loop_work_begin(run);
    for (int64_t i = 0; i < l->online->ordered; i++) {
        const int32_t   p = l->online->order[i];
        const uint32_t *local = l->fit.scale.centre == NULL ? l->local + l->local_start[p] : NULL;
        plait_status    status = learn_part(run, &batch->part[p], local, earlier, &own);
        if (status == PLAIT_OK && !l->online->reviews) status = pli_online_keep(run, h, &batch->part[p]);
        if (status < 0) {
            *run->err = h->error;
            return status;
        }
    }
    pli_run_charge(run, batch, l->linear.goal.columns, l->unique * l->online->cols);
    pli_loop_work_end(run);
    float *to = total_values(l);
    to[0] = (float)h->totals.weight;
    to[1] = (float)h->totals.norm;
    to[2] = (float)h->totals.rows;
    return PLAIT_OK;
}

/* Pushes `share` of what the values have grown by. */
static plait_status step_by_key(pli_run *run, const pli_batch *batch, float share, pli_sums *sums_out) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    pli_online     *o = l->online;
    int64_t         n;
    PLI_TRY(find_keys(run, &n));
    uint64_t at = pli_comm_span_begin(run->comm);
    PLI_TRY(plait_table_get(l->w, n, l->keys, o->now));
    if (l->b != NULL) PLI_TRY(plait_table_get_range(l->b, 0, 2, intercept_values(l)));
    pli_run_step(run, "get", &at);
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    const int64_t values = now_values(l);
    memcpy(o->before, o->now, (size_t)values * sizeof *o->now);
    pli_online_alone(o)->sums = (pli_sums){ 0 };
    PLI_TRY(learn_batch(run, batch));
    *sums_out = pli_online_alone(o)->sums;
    if (o->rule.judges) return PLAIT_OK;
    for (int64_t i = 0; i < values; i++) o->now[i] = share * (o->now[i] - o->before[i]);
    pli_run_step(run, "compute", &at);
    PLI_TRY(plait_table_inc(l->w, n, l->keys, o->now, 0));
    if (l->b != NULL) PLI_TRY(plait_table_inc_range(l->b, 0, 2, intercept_values(l), 0));
    pli_run_step(run, "inc", &at);
    return PLAIT_OK;
}

/* --- for the loop ------------------------------------------------------------------------------------------------- */

/* Where features are centred, each row has all of them. */
static plait_status take_all(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    const int64_t   d = l->linear.features;
    if (!pli_grow((void **)&l->keys, &l->keys_capacity, d + 2, sizeof *l->keys)) return no_memory(run->err);
    for (int64_t j = 0; j < d; j++) l->keys[j] = (uint64_t)j;
    l->unique = d;
    return PLAIT_OK;
}

static plait_status fetched(pli_run *run, const pli_batch *batch) {
    if (online_of(run)->in_place) return PLAIT_OK;
    return pli_linear_fit_of(run)->fit.scale.centre != NULL ? take_all(run) : pli_linear_steps.fetched(run, batch);
}

/* Workers in the files' order learn best from neighbouring rows. */
static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    if (run->lanes > 1 && !online_of(run)->paced) pli_online_give_way(run);
    if (online_of(run)->in_place) return pli_online_step_in_place(run, batch, clock, sums_out);
    return step_by_key(run, batch, 1, sums_out);
}

plait_status pli_online_again(pli_run *run, const pli_batch *batch, double share, pli_sums *sums_out) {
    pli_online *o = online_of(run);
    const bool  paced = o->paced;
    o->reviews = true;
    o->rule.shared = o->in_place; /* by threads side by side */
    o->paced = false; /* the push is a share already */
    plait_status status = o->in_place ? pli_online_again_in_place(run, batch, sums_out) : fetched(run, batch);
    if (status == PLAIT_OK && !o->in_place) status = step_by_key(run, batch, (float)share, sums_out);
    o->reviews = false;
    o->rule.shared = o->unlocked;
    o->paced = paced;
    return status;
}

/* Threads that learn side by side in shared memory count as workers. Workers that see each other's steps late review
 * in many clocks. */
static int32_t lanes(const pli_run *run, int64_t *tail_out) {
    const pli_online *o = pli_linear_fit_of(run)->online;
    const int64_t     part = run->clocks < PLI_ONLINE_FEW ? LONG_TAIL : TAIL;
    *tail_out = pli_run_holders(run) > 1 && !o->unlocked ? run->clocks / part : 0;
    return pli_run_holders(run) * (o->unlocked ? o->threads : 1);
}

/* A spare reads one row, to keep in step. */
static plait_status idle(pli_run *run) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    const uint64_t        any = 0;
    return plait_table_get(l->w, 1, &any, l->online->any);
}

/* Turns values [rows, cols] into weights [rows, K]. */
static void to_weights(const pli_online *o, int64_t rows, const float *values, float *weights) {
    const int64_t k = o->rule.columns;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t c = 0; c < k; c++)
            weights[j * k + c] = (float)pli_online_weight(&o->rule, values + j * o->cols, c);
}

static plait_status keep_table(pli_run *run) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    pli_online           *o = l->online;
    const int64_t         rows = l->linear.features + l->linear.intercept;
    const void           *values;
    if (o->weights == NULL) o->weights = pli_array((size_t)(rows * o->rule.columns), sizeof *o->weights);
    if (o->weights == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a curve");
    PLI_TRY(plait_table_read(l->w, 0, rows, &values));
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    to_weights(o, rows, values, o->weights);
    pli_curve_keep(run, o->weights);
    return PLAIT_OK;
}

/* --- the solution ------------------------------------------------------------------------------------------------- */

static void put(const pli_online *o, int64_t rows, const float *values, double *weight) {
    const int64_t k = o->rule.columns;
    for (int64_t j = 0; j < rows; j++)
        for (int64_t c = 0; c < k; c++) /* the model's file holds them in single precision */
            weight[j * k + c] = (double)(float)pli_online_weight(&o->rule, values + j * o->cols, c);
}

static plait_status extract_keyed(pli_run *run, pli_solution *solution_out) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    const int64_t         d = l->linear.features;
    const void           *values = l->online->memory; /* behind a barrier nobody changes them */
    if (!l->online->in_place) PLI_TRY(plait_table_read(l->w, 0, d + l->linear.intercept, &values));
    PLI_TRY(pli_solution_make(d, l->online->rule.columns, false, solution_out, run->err));
    put(l->online, d, values, solution_out->weight);
    put(l->online, l->linear.intercept, (const float *)values + d * l->online->cols, solution_out->bias);
    pli_scale_weights(&l->fit.scale, l->online->rule.columns, solution_out->weight, solution_out->bias);
    return PLAIT_OK;
}

static plait_status extract_grown(pli_run *run, pli_solution *solution_out) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t               n = 0;
    uint64_t             *keys = NULL;
    void                 *values = NULL;
    plait_status          status = plait_table_dump(l->w, &n, &keys, &values);
    if (status == PLAIT_OK)
        status = pli_solution_make(n, l->online->rule.columns, true, solution_out, run->err);
    if (status == PLAIT_OK) {
        memcpy(solution_out->key, keys, (size_t)n * sizeof *keys);
        put(l->online, n, values, solution_out->weight);
        status = plait_table_get_range(l->b, 0, 2, l->online->any);
        if (status == PLAIT_OK) put(l->online, l->linear.intercept, l->online->any, solution_out->bias);
        else pli_solution_free(solution_out);
    }
    plait_comm_free(keys);
    plait_comm_free(values);
    return status;
}

plait_status pli_online_extract(pli_run *run, pli_solution *solution_out) {
    PLI_TRY(plait_job_barrier(run->job));
    pli_online_settle(run);
    return pli_linear_fit_of(run)->form == PLI_SPARSE ? extract_grown(run, solution_out)
                                                      : extract_keyed(run, solution_out);
}

/* --- tables and memory -------------------------------------------------------------------------------------------- */

/* The intercept begins at the mean label, if labels are numbers; its scale is 1 from the start. */
static void begin_intercept(const pli_linear_fit *l, float *values) {
    values[0] = (float)l->fit.label_mean;
    values[2] = values[3] = 1e-6F;
}

static plait_status make_tables(pli_run *run) {
    pli_linear_fit  *l = pli_linear_fit_of(run);
    pli_online      *o = l->online;
    const int64_t    d = l->linear.features;
    const bool       grows = l->form == PLI_SPARSE, begins = l->linear.intercept && l->fit.label_mean != 0;
    const int64_t    rows = grows ? 2 : d + l->linear.intercept + 1;
    plait_table_opts t;
    float           *initial = begins ? pli_calloc((size_t)(rows * o->cols), sizeof *initial) : NULL;
    if (begins && initial == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the first weights");
    if (begins) begin_intercept(l, grows ? initial : initial + d * o->cols);
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F32;
    t.cols = o->cols;
    t.rows = grows ? 0 : rows;
    t.keyed = 1;
    t.initial = grows ? NULL : initial;
    plait_status status = pli_online_make_table(run, &t, &l->w);
    if (status == PLAIT_OK && grows) {
        t.name = "b";
        t.rows = 2;
        t.keyed = 0;
        t.initial = initial;
        status = pli_run_make_table(run, &t, &l->b);
    }
    pli_free(initial);
    return status;
}

static plait_status make_threads(pli_run *run, pli_online *o) {
    o->threads = pli_pool_threads(run->pool);
    o->thread = pli_calloc((size_t)o->threads + 1, sizeof *o->thread);
    o->any = pli_calloc((size_t)o->cols, 2 * sizeof *o->any);
    bool ok = o->thread != NULL && o->any != NULL;
    for (int32_t t = 0; ok && t <= o->threads; t++) {
        o->thread[t].grown = pli_calloc((size_t)o->cols, sizeof *o->thread[t].grown);
        ok = pli_online_scratch_make(&o->thread[t].scratch, o->rule.columns) && o->thread[t].grown != NULL;
    }
    return ok ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for %d threads", (int)o->threads);
}

/* Scores that are logarithms of counts spread by less than 1 if the counts spread by less than their mean. */
static double spread_of_scores(const pli_linear_fit *l) {
    if (!l->linear.goal.loss->log_mean) return l->fit.label_spread;
    return l->linear.intercept ? fmin(1, l->fit.slope_spread / exp(l->fit.label_mean)) : 1;
}

static plait_status begin(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    pli_online     *o = l->online = pli_calloc(1, sizeof *o);
    if (o == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for training");
    o->rule = (pli_online_rule){ .goal = &l->linear.goal, .columns = l->linear.goal.columns, .rate = run->rate,
                                 .unit = spread_of_scores(l), .slope = l->fit.slope_spread, .raw = l->fit.raw };
    o->cols = pli_online_cols(o->rule.columns);
    o->total_key = (uint64_t)(l->linear.features + l->linear.intercept);
    /* Where reads are bounded, the others are about as far; else they may not have begun, or have ended. */
    o->paced = pli_run_holders(run) > 1 && (pli_promises_of(run->consistency, NULL) & PLAIT_BOUNDED_READS) != 0;
    PLI_TRY(make_threads(run, o));
    PLI_TRY(make_tables(run));
    return pli_online_side_begin(run);
}

static void free_thread(pli_online_thread *thread) {
    for (int i = 0; i < 2; i++) {
        pli_free(thread->row[i].at);
        pli_free(thread->row[i].x);
    }
    pli_free(thread->grown);
    pli_online_sample_free(&thread->sample);
    pli_online_scratch_free(&thread->scratch);
}

static void end(pli_run *run) {
    pli_online *o = online_of(run);
    for (int32_t t = 0; o != NULL && o->thread != NULL && t <= o->threads; t++) free_thread(&o->thread[t]);
    if (o != NULL) {
        pli_online_side_end(run);
        pli_free(o->review.part);
        pli_free(o->thread);
        pli_free(o->any);
        pli_free(o->now);
        pli_free(o->before);
        pli_free(o->weights);
        pli_free(o->order);
        for (int i = 0; i < 2; i++) pli_free(o->part[i]);
    }
    pli_free(o);
    pli_linear_fit_of(run)->online = NULL;
    pli_linear_end(run);
}

#define STEPS                                                                                                          \
    .lanes = lanes, .begin = begin, .end = end, .fetched = fetched, .step = step, .idle = idle, .curve = keep_table,   \
    .behind = pli_online_review, .skipped = pli_online_skipped, .finite = pli_fit_finite, .told = pli_fit_told,        \
    .epoch = pli_fit_epoch, .finish = pli_fit_finish

const pli_steps pli_online_steps = { STEPS };
const pli_steps pli_online_steps_in_place = { STEPS, .parses = true };
