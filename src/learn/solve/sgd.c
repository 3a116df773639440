/* Batch by batch: next batch, get, compute, inc, clock. The same loop serves every update rule, topology and
 * consistency; what differs is how weights lie in their table (pli_form):
 *
 *   dense   the whole table is read, a whole gradient is pushed
 *   keyed   the batch's columns are renumbered 0 .. u-1 in increasing order (Li et al. 2014); only these rows travel
 *   sparse  the same, rows grow by key; intercepts have a table of their own
 *
 * Row by row (hogwild.c) and block by block (blocks.c) share begin and end. */
#include "learn/keep/keep.h"

#include <math.h>
#include <string.h>

#include "table/table.h"

/* --- tables ---------------------------------------------------------------------------------------------- */

static plait_status create_weights(pli_run *run) {
    const plait_train_opts *o = run->opts;
    plait_table_opts        t;
    void                   *initial = NULL, *penalty = NULL;
    const float             mean = (float)run->label_mean;
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F32;
    t.cols = run->linear.columns;
    t.rows = run->form == PLI_SPARSE ? 0 : run->linear.features + run->linear.intercept;
    t.keyed = run->form != PLI_DENSE || run->rowwise;
    t.sharded = run->sharded;
    t.rule.name = run->optimizer;
    t.rule.learning_rate = run->rate;
    t.rule.momentum = o->momentum;
    t.rule.l1 = run->l1;
    t.rule.l2 = run->l2;
    t.rule.schedule = run->schedule;
    t.rule.staleness_aware = o->staleness_aware;
    t.rule.schedule_clocks = run->clocks * run->epochs > 0 ? run->clocks * run->epochs : 1;
    if (run->schedule != NULL && strcmp(run->schedule, "invsqrt") == 0)
        t.rule.schedule_clocks = run->clocks > 0 ? run->clocks : 1;
    const pli_rule_scope rules = pli_run_rules(run);
    PLI_TRY(pli_rule_make(&t.rule, &rules, &run->rule, run->err));
    if (run->form == PLI_NET) return pli_net_create_tables(run, &t);
    plait_status status = PLAIT_OK;
    if (run->form != PLI_SPARSE) status = pli_run_initial(run, t.type, &initial);
    if (run->form != PLI_SPARSE && status == PLAIT_OK) status = pli_run_penalty(run, t.type, &penalty);
    t.initial = initial;
    t.penalty = penalty;
    if (status == PLAIT_OK) status = plait_table_create(run->job, &t, &run->w);
    if (status == PLAIT_OK && run->form == PLI_SPARSE && run->linear.intercept) {
        t.name = "b";
        const pli_travel b = pli_run_travel(run, "b");
        t.topology = b.topology;
        t.consistency = b.consistency;
        t.filter = b.filter;
        t.rows = 1;
        t.keyed = run->rowwise;
        t.sharded = 0;
        t.rule.l1 = t.rule.l2 = 0;
        t.initial = run->start == NULL && run->label_mean != 0 ? &mean : NULL; /* of numbers there is one column */
        status = plait_table_create(run->job, &t, &run->b);
    }
    pli_free(initial);
    pli_free(penalty);
    return status;
}

/* The batch's gradient; a balanced run measures how long it takes. */
static plait_status compute(pli_sgd *sgd, const pli_weights *weights, int64_t rows, const pli_batch *batch,
                            const uint32_t *local) {
    pli_run *run = sgd->run;
    if (run->balanced) pli_balance_begin_work(&sgd->balance);
    PLI_TRY(pli_gradient_run(&sgd->gradient, weights, rows, batch, local, sgd->local_start, run->err));
    pli_run_charge(run, batch, sgd->gradient.size);
    if (run->balanced) pli_balance_end_work(&sgd->balance);
    return PLAIT_OK;
}

/* --- a batch, dense -------------------------------------------------------------------------------------- */

/* A stream's highest index is known only as far as rows are in order. */
static plait_status check_indices(const pli_run *run, const pli_batch *batch) {
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part  *part = &batch->part[p];
        const pli_block *block = part->block;
        for (int64_t r = part->first; r < part->first + part->rows; r++) {
            int64_t last = block->row_start[r + 1] - 1;
            if (last < block->row_start[r]) continue;
            if (block->col == NULL || block->col[last] >= run->linear.features)
                return pli_fail(run->err, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH, (long long)(block->first_row + r + 1));
        }
    }
    return PLAIT_OK;
}

static plait_status dense_step(pli_sgd *sgd, const pli_batch *batch) {
    pli_run     *run = sgd->run;
    if (run->stream) PLI_TRY(check_indices(run, batch));
    int64_t      k = run->linear.columns, d = run->linear.features, rows = d + run->linear.intercept;
    const void  *values;
    uint64_t     at = pli_comm_span_begin(run->comm);
    PLI_TRY(plait_table_read(run->w, 0, rows, &values));
    pli_run_step(run, "get", &at);
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    pli_curve_keep(run, values);
    const float *w = values;
    pli_weights  weights = { .f32 = w, .bias = sgd->bias };
    for (int64_t c = 0; c < k; c++) sgd->bias[c] = run->linear.intercept ? (double)w[d * k + c] : 0;
    if (run->scale.factor != NULL) {
        for (int64_t j = 0; j < d; j++)
            for (int64_t c = 0; c < k; c++) {
                double raw = (double)w[j * k + c] * run->scale.factor[j];
                sgd->raw[j * k + c] = raw;
                if (run->scale.centre != NULL) sgd->bias[c] -= run->scale.centre[j] * raw;
            }
        weights = (pli_weights){ .f64 = sgd->raw, .bias = sgd->bias };
    }
    if (run->exact) {
        PLI_TRY(pli_blocks_push_dense(sgd, &weights, batch));
        pli_run_step(run, "compute", &at);
        return PLAIT_OK;
    }
    PLI_TRY(compute(sgd, &weights, d, batch, NULL));
    pli_scale_gradient(&run->scale, k, sgd->gradient.sum, sgd->gradient.bias);
    for (int64_t i = 0; i < d * k; i++) sgd->push[i] = (float)sgd->gradient.sum[i];
    for (int64_t c = 0; c < k && run->linear.intercept; c++) sgd->push[d * k + c] = (float)sgd->gradient.bias[c];
    pli_run_step(run, "compute", &at);
    PLI_TRY(plait_table_inc_range(run->w, 0, rows, sgd->push, batch->rows));
    pli_run_step(run, "inc", &at);
    return PLAIT_OK;
}

/* --- a batch by key -------------------------------------------------------------------------------------- */

/* Renumbers the batch's columns: keys [unique] increasing, local [entries] in the order of rows. */
static plait_status localise(pli_sgd *sgd, const pli_batch *batch) {
    int64_t n = 0;
    if (!pli_grow((void **)&sgd->local_start, &sgd->start_capacity, batch->parts, sizeof *sgd->local_start))
        return PLAIT_ENOMEM;
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        sgd->local_start[p] = n;
        for (int64_t i = 0; i < part->rows; i++) {
            int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
            n += part->block->row_start[r + 1] - part->block->row_start[r];
        }
    }
    if (!pli_grow((void **)&sgd->keys, &sgd->keys_capacity, n + 1, sizeof *sgd->keys) ||
        !pli_grow((void **)&sgd->order, &sgd->order_capacity, n, sizeof *sgd->order) ||
        !pli_grow((void **)&sgd->local, &sgd->local_capacity, n, sizeof *sgd->local) || n > UINT32_MAX)
        return PLAIT_ENOMEM;
    int64_t at = 0;
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        for (int64_t i = 0; i < part->rows; i++) {
            int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
            for (int64_t e = part->block->row_start[r]; e < part->block->row_start[r + 1]; e++, at++)
                sgd->keys[at] = part->block->col != NULL ? part->block->col[e] : part->block->key[e];
        }
    }
    for (int64_t i = 0; i < n; i++) sgd->order[i] = (uint32_t)i;
    if (!pli_sort_u64(n, sgd->keys, sgd->order)) return PLAIT_ENOMEM;
    int64_t unique = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || sgd->keys[i] != sgd->keys[unique - 1]) sgd->keys[unique++] = sgd->keys[i];
        sgd->local[sgd->order[i]] = (uint32_t)(unique - 1);
    }
    sgd->unique = unique;
    pli_comm_work(sgd->run->comm, PLI_WORK_KEYS, (uint64_t)unique);
    return PLAIT_OK;
}

static plait_status keyed_step(pli_sgd *sgd, const pli_batch *batch) {
    pli_run *run = sgd->run;
    int64_t  k = run->linear.columns, d = run->linear.features, unique = sgd->unique, n = unique;
    if (unique > 0 && pli_linear_lacks(&run->linear, sgd->keys[unique - 1]))
        return pli_fail(run->err, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH, (long long)batch->part[0].block->first_row + 1);
    if (run->linear.intercept && run->b == NULL) sgd->keys[n++] = (uint64_t)d; /* the last row */
    if (!pli_grow((void **)&sgd->push, &sgd->push_capacity, n * k, sizeof *sgd->push))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch's weights");
    uint64_t at = pli_comm_span_begin(run->comm);
    PLI_TRY(plait_table_get(run->w, n, sgd->keys, sgd->push));
    if (run->b != NULL) PLI_TRY(plait_table_get_range(run->b, 0, 1, sgd->narrow));
    pli_run_step(run, "get", &at);
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    for (int64_t c = 0; c < k; c++)
        sgd->bias[c] = run->b != NULL ? (double)sgd->narrow[c] : n > unique ? (double)sgd->push[unique * k + c] : 0;
    if (run->scale.factor != NULL)
        for (int64_t i = 0; i < unique; i++)
            for (int64_t c = 0; c < k; c++)
                sgd->push[i * k + c] = (float)((double)sgd->push[i * k + c] * run->scale.factor[sgd->keys[i]]);
    pli_weights weights = { .f32 = sgd->push, .bias = sgd->bias };
    if (run->exact) {
        PLI_TRY(pli_blocks_push_keyed(sgd, &weights, unique, batch));
        pli_run_step(run, "compute", &at);
        return PLAIT_OK;
    }
    PLI_TRY(compute(sgd, &weights, unique, batch, sgd->local));
    for (int64_t i = 0; i < unique; i++) {
        double factor = run->scale.factor != NULL ? run->scale.factor[sgd->keys[i]] : 1;
        for (int64_t c = 0; c < k; c++) sgd->push[i * k + c] = (float)(factor * sgd->gradient.sum[i * k + c]);
    }
    float *bias = run->b != NULL ? sgd->narrow : sgd->push + unique * k;
    for (int64_t c = 0; c < k && run->linear.intercept; c++) bias[c] = (float)sgd->gradient.bias[c];
    pli_run_step(run, "compute", &at);
    if (run->b != NULL) PLI_TRY(plait_table_inc_range(run->b, 0, 1, sgd->narrow, batch->rows));
    PLI_TRY(plait_table_inc(run->w, n, sgd->keys, sgd->push, batch->rows));
    pli_run_step(run, "inc", &at);
    return PLAIT_OK;
}

/* --- reading the tables ---------------------------------------------------------------------------------- */

static plait_status dump(pli_run *run, pli_solution *solution_out) {
    int64_t      n = 0, k = run->linear.columns;
    uint64_t    *keys = NULL;
    void        *values = NULL;
    float       *bias = NULL;
    plait_status status = plait_table_dump(run->w, &n, &keys, &values);
    if (status == PLAIT_OK) status = pli_solution_make(n, k, true, solution_out, run->err);
    if (status == PLAIT_OK) {
        memcpy(solution_out->key, keys, (size_t)n * sizeof *keys);
        for (int64_t i = 0; i < n * k; i++) solution_out->weight[i] = (double)((const float *)values)[i];
        bias = pli_array((size_t)k, sizeof *bias);
        if (bias == NULL) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for intercepts");
    }
    if (status == PLAIT_OK && run->b != NULL) {
        status = plait_table_get_range(run->b, 0, 1, bias);
        for (int64_t c = 0; c < k; c++) solution_out->bias[c] = (double)bias[c];
    }
    if (status < 0) pli_solution_free(solution_out);
    pli_free(bias);
    plait_comm_free(keys);
    plait_comm_free(values);
    return status;
}

/* What the tables hold, after a barrier: the same on every worker. */
static plait_status extract(pli_run *run, pli_solution *solution_out) {
    PLI_TRY(plait_job_barrier(run->job));
    if (run->form == PLI_SPARSE) return dump(run, solution_out);
    if (run->form == PLI_NET) return pli_net_extract(run, solution_out);
    const void *values;
    PLI_TRY(plait_table_read(run->w, 0, run->linear.features + run->linear.intercept, &values));
    return pli_run_solution(run, PLAIT_F32, values, solution_out);
}

/* What the tables hold, where the caller wants to hear it. Collective. */
static plait_status tell_weights(pli_run *run) {
    pli_solution now = { 0 };
    if (run->opts->weights == NULL) return PLAIT_OK;
    PLI_TRY(extract(run, &now));
    pli_run_tell_weights(run, &now);
    pli_solution_free(&now);
    return PLAIT_OK;
}

/* --- validation ------------------------------------------------------------------------------------------ */

/* What the weights are worth on what is held back. Collective. */
static plait_status measure(pli_run *run, pli_solution *now, double *loss, double *accuracy) {
    int32_t absent = pli_comm_absent(run->comm);
    do {
        pli_solution_free(now);
        PLI_TRY(extract(run, now));
        PLI_TRY(pli_run_validate(run, now, loss, accuracy));
    } while (pli_run_again(run, &absent));
    return PLAIT_OK;
}

/* Loss on what is held back; keeps the best weights; *end_out: stop now. Collective: so all workers stop at once. */
static plait_status validate(pli_sgd *sgd, int64_t epoch, bool *end_out) {
    pli_run     *run = sgd->run;
    pli_solution now = { 0 };
    double       stopped = pli_run_stopped(run), loss = NAN, accuracy = NAN;
    plait_status status = measure(run, &now, &loss, &accuracy);
    if (status == PLAIT_OK) pli_run_tell_weights(run, &now);
    if (status == PLAIT_OK) status = plait_comm_allreduce(run->comm, &stopped, 1, PLAIT_F64, PLAIT_MAX);
    if (status == PLAIT_OK) {
        run->validation_loss = loss;
        run->validation_accuracy = accuracy;
        if (!(loss >= sgd->best_loss)) {
            sgd->best_loss = loss;
            sgd->best_epoch = epoch;
            pli_solution_free(&sgd->best);
            sgd->best = now;
            now = (pli_solution){ 0 };
        }
        run->interrupted = run->interrupted || stopped != 0;
        const bool patient = run->opts->patience == 0 || epoch - sgd->best_epoch < run->opts->patience;
        run->stopped_early = !patient && stopped == 0 && epoch + 1 < run->epochs;
        *end_out = stopped != 0 || !patient;
    }
    pli_solution_free(&now);
    return status;
}

/* --- the loop -------------------------------------------------------------------------------------------- */

/* The batch of a clock, as far as it can be prepared before the clock has begun; inherited: of those who died in it. */
static plait_status fetch(pli_sgd *sgd, int64_t epoch, int64_t clock, bool inherited) {
    pli_run   *run = sgd->run;
    pli_batch *batch = &sgd->batch;
    uint64_t   at = pli_comm_span_begin(run->comm);
    if (run->balanced) PLI_TRY(pli_balance_batch(&sgd->balance, epoch, clock, batch));
    else if (sgd->heir.part != NULL) PLI_TRY(pli_heir_batch(&sgd->heir, epoch, clock, inherited, batch));
    else PLI_TRY(pli_batches_get(sgd->batches, epoch, clock, batch, run->err));
    if (run->stream) pli_run_charge_parsed(run, batch);
    if (batch->rows > 0 && !run->rowwise && run->form != PLI_DENSE && run->form != PLI_NET && localise(sgd, batch) < 0)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch's columns");
    pli_run_step(run, "fetch", &at);
    sgd->fetched = true;
    return PLAIT_OK;
}

static plait_status net_step(pli_sgd *sgd, const pli_batch *batch, pli_sums *sums_out) {
    pli_run *run = sgd->run;
    if (run->balanced) pli_balance_begin_work(&sgd->balance);
    if (!plait_job_is_late(run->job)) PLI_TRY(pli_net_step(sgd, batch, sums_out));
    if (run->balanced) pli_balance_end_work(&sgd->balance);
    if (plait_job_is_late(run->job)) run->clocks_skipped++;
    return PLAIT_OK;
}

/* A spare without rows reads nevertheless where only that keeps it in step with the others: it may have rows soon. */
static plait_status stay_in_step(pli_sgd *sgd) {
    pli_run       *run = sgd->run;
    plait_table   *table = run->form == PLI_NET ? run->net_table[0] : run->w;
    const uint64_t any = 0;
    const void    *values;
    if (!run->paced || !pli_run_is_spare(run)) return PLAIT_OK;
    return run->form == PLI_SPARSE ? plait_table_get(table, 1, &any, sgd->narrow)
                                   : plait_table_read(table, 0, 1, &values);
}

static plait_status step(pli_sgd *sgd, int64_t epoch, int64_t clock, pli_sums *sums_out) {
    pli_run         *run = sgd->run;
    const pli_batch *batch = &sgd->batch;
    *sums_out = (pli_sums){ 0 };
    sgd->clock = (pli_total){ 0 };
    if (run->rowwise && run->stream) return pli_hogwild_step(sgd, NULL, clock, sums_out);
    if (!sgd->fetched) PLI_TRY(fetch(sgd, epoch, clock, false));
    sgd->fetched = false;
    if (batch->rows == 0) return stay_in_step(sgd);
    if (run->rowwise) return pli_hogwild_step(sgd, batch, clock, sums_out);
    if (run->form == PLI_NET) return net_step(sgd, batch, sums_out);
    if (!plait_job_is_late(run->job)) PLI_TRY(run->form == PLI_DENSE ? dense_step(sgd, batch) : keyed_step(sgd, batch));
    if (plait_job_is_late(run->job))
        run->clocks_skipped++; /* known before, or since the step's get: nothing was computed */
    else *sums_out = run->exact ? pli_total_sums(&sgd->clock) : sgd->gradient.sums[0];
    return PLAIT_OK;
}

/* For the curve, where no step reads the whole table. */
static plait_status keep_table(pli_run *run) {
    const void *values;
    PLI_TRY(plait_table_read(run->w, 0, run->linear.features + run->linear.intercept, &values));
    if (!plait_job_is_late(run->job)) pli_curve_keep(run, values);
    return PLAIT_OK;
}

enum { STOP_EVERY = 16 };

static plait_status hear_others(pli_sgd *sgd, bool *stop_out) {
    if (sgd->asked == NULL) return PLAIT_OK;
    PLI_TRY(plait_request_wait(&sgd->asked));
    *stop_out = sgd->stopped > 0;
    return PLAIT_OK;
}

/* Has anybody been asked to stop? A worker may leave by itself, the others notice when it does not come any more;
 * but sums need all workers, who ask each other now and then. Where they are not in step they go on meanwhile, and hear
 * the answer when they ask again. */
static plait_status should_stop(pli_sgd *sgd, int64_t epoch, int64_t clock, bool *stop_out) {
    pli_run *run = sgd->run;
    if (sgd->keep != NULL) return pli_keep_clock(sgd, epoch, clock, stop_out);
    *stop_out = pli_run_stopped(run);
    if (run->opts->stop == NULL || !sgd->sums_need_all) return PLAIT_OK;
    double stopped = *stop_out;
    *stop_out = false;
    if ((clock + 1) % STOP_EVERY != 0 && clock + 1 < run->clocks) return PLAIT_OK;
    PLI_TRY(hear_others(sgd, stop_out));
    if (*stop_out) return PLAIT_OK;
    sgd->stopped = stopped;
    PLI_TRY(plait_comm_allreduce_begin(run->comm, &sgd->stopped, 1, PLAIT_F64, PLAIT_MAX, &sgd->asked));
    return run->paced ? PLAIT_OK : hear_others(sgd, stop_out);
}

/* Checks and counts the losses of a step. */
static plait_status count(pli_sgd *sgd, int64_t epoch, const pli_sums *sums) {
    pli_run *run = sgd->run;
    PLI_TRY(pli_run_finite(run, sums->loss, run->clocks_done));
    if (!run->exact) pli_total_add(&sgd->clock, sums);
    if (run->first.rows == 0) run->first = *sums;
    if (epoch == 0) pli_total_merge(&run->progressive, &sgd->clock);
    return PLAIT_OK;
}

/* Ends the clock, in which others may have died: then it has another batch. */
static plait_status end_together(pli_sgd *sgd, int64_t epoch, int64_t clock) {
    plait_status status;
    while ((status = plait_job_clock(sgd->run->job)) == PLAIT_STAND_IN) {
        pli_sums sums;
        PLI_TRY(fetch(sgd, epoch, clock, true));
        PLI_TRY(step(sgd, epoch, clock, &sums));
        PLI_TRY(count(sgd, epoch, &sums));
    }
    return status;
}

/* Ends the clock. Where its sums travel by themselves, the next batch of the epoch is fetched meanwhile. */
static plait_status end_clock(pli_sgd *sgd, int64_t epoch, int64_t clock) {
    pli_run       *run = sgd->run;
    plait_request *ended;
    if (!sgd->overlaps) return end_together(sgd, epoch, clock);
    PLI_TRY(plait_job_clock_begin(run->job, &ended));
    plait_status fetched = clock + 1 < run->clocks ? fetch(sgd, epoch, clock + 1, false) : PLAIT_OK;
    plait_error  why = *run->err;
    plait_status status = plait_request_wait(&ended);
    if (fetched < 0) *run->err = why;
    return fetched < 0 ? fetched : status;
}

/* One epoch, from clock `first` on; PLAIT_END: the caller has asked to stop. */
static plait_status epoch_run(pli_sgd *sgd, int64_t epoch, int64_t first) {
    pli_run *run = sgd->run;
    for (int64_t clock = first; clock < run->clocks; clock++) {
        pli_sums sums;
        uint64_t at = pli_comm_span_begin(run->comm);
        if (pli_curve_due(run) && ((run->form != PLI_DENSE && run->form != PLI_NET) || run->rowwise))
            PLI_TRY(keep_table(run));
        PLI_TRY(step(sgd, epoch, clock, &sums));
        PLI_TRY(count(sgd, epoch, &sums));
        PLI_TRY(end_clock(sgd, epoch, clock));
        pli_run_phase(run, "clock", run->clocks_done, &at);
        run->clocks_done++;
        pli_run_tell_lost(run);
        pli_pace_clock(run);
        pli_meter_tell(&sgd->meter, &sums, epoch, clock, false);
        bool stop;
        PLI_TRY(should_stop(sgd, epoch, clock, &stop));
        if (stop) {
            run->interrupted = true;
            return PLAIT_END;
        }
    }
    return PLAIT_OK;
}

static plait_status all_epochs(pli_sgd *sgd) {
    pli_run *run = sgd->run;
    bool     validated = run->validation != NULL || run->fraction > 0, end = false;
    PLI_TRY(plait_job_barrier(run->job)); /* nobody begins before all are there: async would run ahead */
    PLI_TRY(tell_weights(run));
    PLI_TRY(pli_pace_begin(run));
    pli_job_resume(run->job);
    const int64_t begin = run->resume != NULL ? run->resume->epoch : 0;
    for (int64_t epoch = begin; epoch < run->epochs && !end; epoch++) {
        uint64_t      at = pli_comm_span_begin(run->comm);
        const int64_t first = run->resume != NULL && epoch == begin ? run->resume->epoch_clock : 0;
        plait_status  status = epoch_run(sgd, epoch, first);
        if (status < 0) return status;
        pli_run_phase(run, "epoch", epoch, &at);
        end = status == PLAIT_END;
        run->epochs_done += !end;
        if (end && !sgd->sums_need_all && sgd->keep == NULL) PLI_TRY(plait_job_leave(run->job));
        if (validated) {
            PLI_TRY(validate(sgd, epoch, &end));
            pli_run_phase(run, "validate", epoch, &at);
        } else {
            PLI_TRY(tell_weights(run));
        }
        pli_job_resume(run->job);
        if (status != PLAIT_END) pli_meter_tell(&sgd->meter, &(pli_sums){ 0 }, epoch, run->clocks - 1, true);
    }
    PLI_TRY(hear_others(sgd, &end)); /* too late: all is done */
    PLI_TRY(pli_keep_settle(sgd));
    pli_pace_end(run);
    return PLAIT_OK;
}

/* How many rows each worker has computed, epoch by epoch: what a balanced run is about. Collective. */
static plait_status tell_shares(const pli_sgd *sgd) {
    const pli_run *run = sgd->run;
    int32_t        workers = plait_comm_workers(run->comm);
    int64_t        epochs = run->epochs, *all = pli_array((size_t)(epochs * workers), sizeof *all);
    int64_t       *rows = pli_array((size_t)workers, sizeof *rows);
    plait_status   status =
        all != NULL && rows != NULL
              ? plait_comm_allgather(run->comm, sgd->balance.computed, (size_t)epochs * sizeof *all, all)
              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the workers' shares");
    bool tells = status == PLAIT_OK && run->opts->shares != NULL && pli_comm_leads(run->comm);
    for (int64_t epoch = 0; tells && epoch < run->epochs_done; epoch++) {
        for (int32_t w = 0; w < workers; w++) rows[w] = all[w * epochs + epoch];
        run->opts->shares(run->opts->user, &(plait_shares){ .epoch = epoch + 1, .workers = workers, .rows = rows });
    }
    pli_free(rows);
    pli_free(all);
    return status;
}

static plait_status begin_batches(pli_sgd *sgd) {
    pli_run *run = sgd->run;
    if (run->stream) {
        PLI_TRY(pli_batches_stream(run->data, run->batch, run->pool, &sgd->batches, run->err));
        run->clocks = pli_batches_clocks(sgd->batches);
        return PLAIT_OK;
    }
    PLI_TRY(pli_batches_create(run->data, run->opts->seed, run->clocks, run->epochs > 1,
                               run->fraction > 0 ? pli_run_holds_back : NULL, run, &sgd->batches, run->err));
    if (run->opts->replicas > 1) return pli_heir_begin(&sgd->heir, run, sgd->batches);
    return run->balanced ? pli_balance_begin(&sgd->balance, run, sgd->batches) : PLAIT_OK;
}

static plait_status begin(pli_sgd *sgd) {
    pli_run *run = sgd->run;
    int64_t  k = run->linear.columns, d = run->linear.features;
    /* Few groups where a gradient is large beside what a batch adds to it: a property of data and batch alone. */
    double   touched = (double)run->entries / (double)run->rows * (double)run->batch;
    int32_t  groups = run->form == PLI_DENSE && (double)d > touched ? 1 : 8;
    if (run->form == PLI_NET) {
        PLI_TRY(pli_net_begin(sgd));
        return begin_batches(sgd);
    }
    PLI_TRY(run->exact ? pli_gradient_init_apart(&sgd->gradient, &run->linear, run->pool, run->err)
                       : pli_gradient_init(&sgd->gradient, &run->linear, run->pool, run->data,
                                           run->balanced || run->opts->replicas > 1, groups, run->err));
    sgd->bias = pli_calloc((size_t)k, sizeof *sgd->bias);
    sgd->narrow = pli_calloc((size_t)k, sizeof *sgd->narrow);
    bool ok = sgd->bias != NULL && sgd->narrow != NULL;
    if (run->form == PLI_DENSE && !run->rowwise) {
        ok = ok && pli_grow((void **)&sgd->push, &sgd->push_capacity, (d + 1) * k, sizeof *sgd->push);
        if (run->scale.factor != NULL) sgd->raw = pli_calloc((size_t)(d * k), sizeof *sgd->raw);
        ok = ok && (run->scale.factor == NULL || sgd->raw != NULL);
    }
    if (!ok) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients");
    if (run->rowwise) PLI_TRY(pli_hogwild_begin(sgd));
    return begin_batches(sgd);
}

static void end(pli_sgd *sgd) {
    pli_comm_drop(&sgd->asked);
    pli_hogwild_end(sgd);
    pli_net_end(sgd);
    sgd->run->kept = pli_keep_last(sgd, &sgd->run->unkept);
    pli_keep_end(sgd);
    pli_balance_end(&sgd->balance);
    pli_heir_end(&sgd->heir);
    pli_batches_destroy(&sgd->batches);
    pli_gradient_destroy(&sgd->gradient);
    pli_solution_free(&sgd->best);
    pli_free(sgd->raw);
    pli_free(sgd->bias);
    pli_free(sgd->narrow);
    pli_free(sgd->push);
    pli_free(sgd->keys);
    pli_free(sgd->order);
    pli_free(sgd->local);
    pli_free(sgd->local_start);
    pli_blocks_end(sgd);
}

/* Each of a net's tables may have a topology of its own. */
static bool some_sum_needs_all(const pli_run *run) {
    if (run->form != PLI_NET) return pli_table_needs_all(run->w) || (run->b != NULL && pli_table_needs_all(run->b));
    for (int32_t p = 0; p < run->net->n_params; p++)
        if (pli_table_needs_all(run->net_table[p])) return true;
    return false;
}

/* A stream is read from its beginning: what an earlier run has trained on is passed over. */
static plait_status skip(pli_sgd *sgd) {
    pli_run *run = sgd->run;
    for (int64_t clock = 0; run->stream && run->resume != NULL && clock < run->resume->epoch_clock; clock++)
        PLI_TRY(pli_batches_get(sgd->batches, 0, clock, &sgd->batch, run->err));
    return PLAIT_OK;
}

int64_t pli_run_weights(const pli_run *run) {
    if (run->net != NULL) return run->net->values;
    return run->form == PLI_SPARSE ? 0 : (run->linear.features + run->linear.intercept) * run->linear.columns;
}

plait_status pli_sgd_train(pli_run *run) {
    pli_sgd      sgd = { .run = run, .best_loss = INFINITY };
    plait_status status = create_weights(run);
    sgd.sums_need_all = status == PLAIT_OK && (run->opts->replicas > 1 || some_sum_needs_all(run));
    sgd.overlaps = status == PLAIT_OK && !run->balanced && !run->rowwise && pli_job_overlaps(run->job);
    if (status == PLAIT_OK) status = begin(&sgd);
    if (status == PLAIT_OK) status = pli_keep_begin(&sgd);
    if (status == PLAIT_OK) status = pli_resume_tables(&sgd);
    if (status == PLAIT_OK) status = skip(&sgd);
    if (status == PLAIT_OK)
        status = pli_curve_begin(run, pli_run_weights(run), PLAIT_F32, run->clocks * run->epochs);
    pli_meter_start(&sgd.meter, run);
    if (status == PLAIT_OK) status = all_epochs(&sgd);
    if (status == PLAIT_OK && run->balanced) status = tell_shares(&sgd);
    if (status == PLAIT_OK && (sgd.best.weight != NULL || sgd.best.net != NULL)) {
        run->solution = sgd.best;
        run->validation_loss = sgd.best_loss;
        run->best_epoch = sgd.best_epoch + 1;
        sgd.best = (pli_solution){ 0 };
    } else if (status == PLAIT_OK) {
        status = extract(run, &run->solution);
    }
    end(&sgd);
    return status;
}
