/* A step of a net: makes the batch's rows dense, gets the tables' values, and runs the graph, whose incs push the
 * gradients.
 *
 * The graph's variables are the tables (table_store.h). A clock asks for all of them, in the order in which the last
 * run needed them, and the forward pass waits for each just before its first use. A gradient leaves as soon as the
 * backward pass has it, those of the last layers first (plait_table_flush). Under --reduce exact each block's rows are
 * a run of their own, and gradients leave in the last run.
 *
 * A rank of a net in stages (stages.h) has the tables and values of its own stage alone. */
#include <string.h>

#include "graph/session.h"
#include "learn/net/shift.h"
#include "learn/net/table_store.h"

struct pli_net_worker {
    pli_run           *run;
    plait_session     *session;
    plait_table_store *store;
    float             *values; /* as the tables have them; [net->values] if this rank has all */
    int64_t            at[PLI_NET_PARAMS]; /* the first value of each own parameter */
    pli_net_rows       rows;
    pli_stage_pace     pace;  /* of a cut net */
    pli_shift          shift; /* of one whose layers move */
    bool               finished;
};

/* --- life -------------------------------------------------------------------------------------------------------- */

/* Adds an op to the trace. A simulation charges a batch as a whole, so there an op takes no time of its own. */
static void tell_op(void *user, const char *name, int32_t thread, uint64_t begin_ns, uint64_t end_ns) {
    const pli_run       *run = user;
    const pli_span_sink *sink = pli_comm_spans(run->comm);
    if (pli_comm_charges(run->comm)) begin_ns = end_ns = pli_comm_stamp(run->comm);
    sink->take(sink->user, &(pli_span){ .kind = PLI_SPAN_OP,
                                        .rank = plait_comm_rank(run->comm),
                                        .thread = thread,
                                        .name = name,
                                        .number = run->clocks_done,
                                        .begin_ns = begin_ns,
                                        .end_ns = end_ns });
}

/* --- what computing costs, in a simulation ------------------------------------------------------------------------ */

/* Judging costs nothing, as it does where the net is whole. */
static void charge_node(void *user, const pli_weight *w) {
    const pli_run *run = user;
    plait_comm    *comm = run->comm;
    if (pli_stages_judges(pli_net_fit_of(run)->stages)) return;
    pli_comm_work(comm, PLI_WORK_FLOPS, (uint64_t)w->flops);
    pli_comm_work(comm, PLI_WORK_TAPS, (uint64_t)w->taps);
    pli_comm_work(comm, PLI_WORK_STEPS, (uint64_t)w->steps);
    pli_comm_work(comm, PLI_WORK_MOVED, (uint64_t)w->moved);
    pli_comm_work(comm, PLI_WORK_NODES, 1);
}

plait_status pli_net_session_create(pli_run *run, const plait_session_opts *opts, plait_session **session_out) {
    PLI_TRY(pli_session_create(pli_net_trained(run)->graph, opts, run->pool, session_out, run->err));
    if (pli_comm_charges(run->comm)) pli_session_charge(*session_out, charge_node, run);
    return PLAIT_OK;
}

void pli_net_charge_rows(const pli_run *run, const pli_batch *batch) {
    enum { ENTRY_BYTES = 16 }; /* column and value are read, a number is written */
    if (!pli_comm_charges(run->comm)) return;
    for (int32_t p = 0; p < batch->parts; p++)
        pli_comm_work(run->comm, PLI_WORK_MOVED, (uint64_t)pli_part_entries(&batch->part[p]) * ENTRY_BYTES);
}

static plait_status bind(pli_net_worker *w) {
    const pli_net *net = pli_net_trained(w->run);
    pli_stored     stored[PLI_NET_PARAMS];
    for (int32_t p = 0; p < net->n_params; p++)
        stored[p] = (pli_stored){ .table = pli_net_fit_of(w->run)->table[p],
                                  .values = w->values + w->at[p],
                                  .stays = pli_net_stays(w->run, &net->param[p]),
                                  .by_row = pli_net_by_row(net, p) };
    return pli_table_store_bind(w->run->comm, net->n_params, stored, &w->store);
}

static plait_status make_values(pli_net_worker *w) {
    w->values = pli_array((size_t)pli_net_own_values(w->run, w->at), sizeof *w->values);
    return w->values != NULL ? PLAIT_OK : pli_fail(w->run->err, PLAIT_ENOMEM, "no memory for a net's values");
}

static plait_status open_sessions(pli_net_worker *w) {
    pli_run           *run = w->run;
    pli_stages        *stages = pli_net_fit_of(run)->stages;
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.store = plait_table_store_calls(w->store);
    opts.seed = run->opts->seed;
    opts.kernels = pli_net_kernels(run);
    opts.exclude = run->opts->exclude;
    opts.train = run->opts->train;
    if (pli_comm_spans(run->comm) != NULL) {
        opts.trace = tell_op;
        opts.trace_user = run;
    }
    return stages != NULL ? pli_stages_open(stages, &opts) : pli_net_session_create(run, &opts, &w->session);
}

static plait_status begin(pli_run *run) {
    pli_stages     *stages = pli_net_fit_of(run)->stages;
    pli_net_worker *w = pli_net_fit_of(run)->worker = pli_calloc(1, sizeof *w);
    if (w == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's batches");
    w->run = run;
    if (pli_run_stages(run) > 1) PLI_TRY(pli_stage_pace_begin(run, &w->pace));
    PLI_TRY(pli_stages_meet(stages));
    PLI_TRY(pli_net_create_tables(run));
    PLI_TRY(pli_stages_outlive(stages));
    PLI_TRY(make_values(w));
    PLI_TRY(bind(w));
    PLI_TRY(open_sessions(w));
    return pli_shift_begin(run, &w->shift);
}

void pli_net_end_worker(pli_run *run) {
    pli_net_worker *w = pli_net_fit_of(run)->worker;
    if (w == NULL) return;
    pli_stages_close(pli_net_fit_of(run)->stages);
    pli_stage_pace_end(&w->pace);
    pli_shift_end(&w->shift);
    plait_session_destroy(&w->session);
    plait_table_store_destroy(&w->store);
    pli_free(w->values);
    pli_net_rows_free(&w->rows);
    pli_free(w);
    pli_net_fit_of(run)->worker = NULL;
}

/* A net in parts judges rows when training is over: then its sessions stay until the run ends. */
static void end(pli_run *run) {
    const pli_net_worker *w = pli_net_fit_of(run)->worker;
    if (w == NULL || !w->finished || !pli_net_in_parts(run)) pli_net_end_worker(run);
}

/* Layers or columns move to other ranks. */
static plait_status move(pli_net_worker *w) {
    pli_stages_close_sessions(pli_net_fit_of(w->run)->stages);
    plait_table_store_destroy(&w->store);
    PLI_TRY(pli_shift_move(w->run, &w->shift));
    pli_free(w->values);
    PLI_TRY(make_values(w));
    PLI_TRY(bind(w));
    return open_sessions(w);
}

/* --- a batch ----------------------------------------------------------------------------------------------------- */

/* Begins every get before it waits for the first. */
plait_status pli_net_read_values(const pli_run *run, const int64_t at[PLI_NET_PARAMS], float *values) {
    const pli_net *net = pli_net_trained(run);
    plait_request *got[PLI_NET_PARAMS] = { NULL };
    plait_status   status = PLAIT_OK;
    int32_t        begun = 0;
    for (; status == PLAIT_OK && begun < net->n_params; begun++)
        if (pli_stages_have(pli_net_fit_of(run)->stages, begun))
            status = plait_table_get_range_begin(pli_net_fit_of(run)->table[begun], 0, net->param[begun].rows,
                                                 values + at[begun], &got[begun]);
    for (int32_t p = 0; p < begun; p++) {
        if (got[p] == NULL) continue;
        plait_status waited = plait_request_wait(&got[p]);
        if (status == PLAIT_OK) status = waited;
    }
    return status;
}

int64_t pli_net_take_rows(const pli_run *run, const pli_scale *scale, const pli_part *part, int64_t from, int64_t n,
                          pli_net_rows *to, int64_t at) {
    int64_t labels = 0;
    for (int64_t i = from; i < from + n; i++, at++) {
        const int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        const int64_t own = pli_net_rows_put(pli_net_fit_of(run)->net, part->block, r, scale, to, at);
        if (own < 0) return own;
        labels += own;
    }
    return labels;
}

static plait_status no_memory(const pli_run *run, int64_t rows) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch of %lld rows", (long long)rows);
}

/* Runs the first n rows through the graph, forward and backward; adds to sums. examples < 0: no memory for the rows. */
static plait_status run_rows(pli_net_worker *w, int64_t n, int64_t examples, pli_sums *sums) {
    const pli_run *run = w->run;
    const pli_net *net = pli_net_trained(run);
    plait_fetch    fetches[PLI_NET_PARAMS + 1];
    pli_sums       own = { 0 };
    plait_feed     feeds[PLI_NET_TRAIN_FEEDS];
    const int32_t  fed = examples < 0 ? -1 : pli_net_feed_rows(net, &w->rows, n, feeds);
    if (fed < 0) return no_memory(run, n);
    for (int32_t p = 0; p < net->n_params; p++) fetches[p] = (plait_fetch){ .value = net->param[p].inc };
    fetches[net->n_params] = (plait_fetch){ .value = net->sums, .tensor = { .data = &own }, .bytes = sizeof own };
    plait_table_store_examples(w->store, examples);
    PLI_TRY(plait_session_run(w->session, feeds, fed, fetches, net->n_params + 1, NULL, 0, run->err));
    pli_sums_add(sums, &own);
    return PLAIT_OK;
}

static const pli_scale *scale_of(const pli_net_worker *w) { return &pli_net_fit_of(w->run)->fit.scale; }

static plait_status step_by_blocks(pli_net_worker *w, const pli_batch *batch) {
    int64_t rows = batch->rows; /* rows still to come */
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        pli_sums        own = { 0 };
        if (part->rows == 0) continue;
        rows -= part->rows;
        pli_table_store_flushes(w->store, rows == 0);
        const int64_t labels = pli_net_take_rows(w->run, scale_of(w), part, 0, part->rows, &w->rows, 0);
        PLI_TRY(run_rows(w, part->rows, labels, &own));
        pli_total_add(&w->run->loop->total, &own);
    }
    return PLAIT_OK;
}

static plait_status step_at_once(pli_net_worker *w, const pli_batch *batch, pli_sums *sums_out) {
    int64_t at = 0, labels = 0;
    for (int32_t p = 0; p < batch->parts; at += batch->part[p++].rows) {
        const int64_t own = pli_net_take_rows(w->run, scale_of(w), &batch->part[p], 0, batch->part[p].rows, &w->rows,
                                              at);
        if (own < 0) return no_memory(w->run, batch->rows);
        labels += own;
    }
    pli_table_store_flushes(w->store, true);
    return run_rows(w, batch->rows, labels, sums_out);
}

/* Random ops draw by the clock, so a run that resumes draws what a straight one does. */
static void begin_draws(pli_net_worker *w, pli_stages *stages) {
    pli_draws *draws = pli_net_fit_of(w->run)->draws;
    if (draws != NULL) pli_draws_clock(draws, w->run->clocks_done);
    w->rows.candidates.draws = draws;
    const uint64_t first = (uint64_t)w->run->clocks_done << 24; /* far more than the runs of a clock */
    if (stages != NULL) pli_stages_draw_from(stages, first);
    else pli_session_draw_from(w->session, first);
}

static plait_status compute(pli_run *run, const pli_batch *batch, pli_sums *sums_out) {
    pli_net_worker *w = pli_net_fit_of(run)->worker;
    pli_stages     *stages = pli_net_fit_of(run)->stages;
    uint64_t        since = pli_comm_span_begin(run->comm);
    PLI_TRY(pli_table_store_clock(w->store));
    begin_draws(w, stages);
    /* A worker without rows reads, too, or it would run ahead; a worker that is late hears of it by reading. */
    if ((batch->rows == 0 && stages == NULL) || run->opts->backup > 0 || run->leaps || pli_curve_waits(run))
        PLI_TRY(pli_table_store_read(w->store, pli_curve_waits(run)));
    pli_run_step(run, "get", &since);
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    pli_curve_keep(run, w->values);
    pli_net_charge_rows(run, batch);
    if (stages != NULL)
        PLI_TRY(pli_stages_step(stages, w->store, batch, sums_out));
    else if (!pli_net_rows_reserve(pli_net_fit_of(run)->net, &w->rows, batch->rows))
        return no_memory(run, batch->rows);
    else
        PLI_TRY(run->exact ? step_by_blocks(w, batch) : step_at_once(w, batch, sums_out));
    pli_run_step(run, "compute", &since); /* with inc: a gradient leaves as soon as it is there */
    return PLAIT_OK;
}

/* --- what was learned -------------------------------------------------------------------------------------------- */

static plait_status in_data_units(const pli_run *run, plait_type type, const void *values, pli_solution *solution_out) {
    const pli_net_fit *n = pli_net_fit_of(run);
    PLI_TRY(pli_solution_make_flat(n->net->values, solution_out, run->err));
    for (int64_t i = 0; i < n->net->values; i++)
        solution_out->flat[i] = type == PLAIT_F64 ? (float)((const double *)values)[i] : ((const float *)values)[i];
    pli_net_to_data_units(n->net, &n->fit.scale, solution_out->flat);
    return PLAIT_OK;
}

/* Values of the whole net out of those of its pieces. */
static plait_status join_pieces(const pli_run *run, float *values) {
    const pli_net *pieces = pli_net_fit_of(run)->pieces, *net = pli_net_fit_of(run)->net;
    float         *apart = pli_array((size_t)net->values, sizeof *apart);
    if (apart == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
    memcpy(apart, values, (size_t)net->values * sizeof *apart);
    for (int32_t p = 0; p < pieces->n_params; p++) {
        const pli_net_param *whole = &net->param[pieces->param[p].of];
        pli_columns_put(whole, &pieces->param[p], apart + pieces->param[p].at, values + whole->at);
    }
    pli_free(apart);
    return PLAIT_OK;
}

/* Of values that a worker has read. */
static plait_status solution(const pli_run *run, plait_type type, const void *values, pli_solution *solution_out) {
    const pli_net_fit *n = pli_net_fit_of(run);
    if (n->pieces == NULL) return in_data_units(run, type, values, solution_out);
    float *whole = pli_array((size_t)n->net->values, sizeof *whole);
    if (whole == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
    memcpy(whole, values, (size_t)n->net->values * sizeof *whole); /* no solver of f64 trains in pieces */
    plait_status status = join_pieces(run, whole);
    if (status >= 0) status = in_data_units(run, PLAIT_F32, whole, solution_out);
    pli_free(whole);
    return status;
}

/* Reads the tables after a barrier, so the solution is the same on every worker. */
static plait_status extract(pli_run *run, pli_solution *solution_out) {
    const pli_net_fit *n = pli_net_fit_of(run);
    int64_t            at[PLI_NET_PARAMS];
    if (pli_net_in_parts(run)) return pli_parts_extract(run, solution_out);
    for (int32_t p = 0; p < pli_net_trained(run)->n_params; p++) at[p] = pli_net_trained(run)->param[p].at;
    PLI_TRY(plait_job_barrier(run->job));
    float *values = pli_array((size_t)n->net->values, sizeof *values);
    if (values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
    plait_status status = pli_net_read_values(run, at, values);
    if (status == PLAIT_OK) status = pli_stages_gather(n->stages, values);
    if (status == PLAIT_OK && n->pieces != NULL) status = join_pieces(run, values);
    if (status == PLAIT_OK) status = in_data_units(run, PLAIT_F32, values, solution_out);
    pli_free(values);
    return status;
}

static double penalty(const pli_run *run, const pli_solution *of) {
    if (pli_net_in_parts(run)) return pli_net_fit_of(run)->parts.penalty;
    return pli_net_penalty(pli_net_fit_of(run)->net, of->flat, run->l1, run->l2);
}

static void tell(const pli_run *run, const pli_solution *of) {
    const pli_net *net = pli_net_fit_of(run)->net;
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *param = &net->param[p];
        pli_fit_tell(run, param->name, PLAIT_F32, param->rows * param->cols, of->flat + param->at);
    }
}

static pli_scoring scoring(const pli_run *run, const pli_solution *of) {
    const pli_net *net = pli_net_fit_of(run)->net;
    if (pli_net_in_parts(run)) return pli_parts_scoring(run, of);
    return (pli_scoring){ &pli_net_scoring, net, of, net->row_labels };
}

const pli_fit_ops pli_net_fit_ops = {
    .extract = extract, .solution = solution, .penalty = penalty, .tell = tell, .scoring = scoring,
    .whole = pli_parts_join, .judged = pli_parts_judged
};

/* --- for the loop ------------------------------------------------------------------------------------------------- */

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    (void)clock;
    const pli_stages *stages = pli_net_fit_of(run)->stages;
    pli_net_worker   *w = pli_net_fit_of(run)->worker;
    bool              moves;
    PLI_TRY(pli_shift_look(run, &w->shift, &moves));
    if (moves) PLI_TRY(move(w));
    const uint64_t waited_ns = pli_stages_waited_ns(stages), begun_ns = pli_comm_own_ns(run->comm);
    const int64_t  rows = pli_stages_rows(stages);
    pli_loop_work_begin(run);
    PLI_TRY(compute(run, batch, sums_out));
    const uint64_t own_ns = pli_comm_own_ns(run->comm) - begun_ns;
    pli_stage_pace_add(&w->pace, run, own_ns);
    pli_shift_add(&w->shift, own_ns, pli_stages_rows(stages) - rows);
    pli_loop_work_end_within(run, pli_stages_waited_ns(stages) - waited_ns);
    return PLAIT_OK;
}

static plait_status finish(pli_run *run) {
    PLI_TRY(pli_shift_finish(&pli_net_fit_of(run)->worker->shift));
    PLI_TRY(pli_stage_pace_tell(run, &pli_net_fit_of(run)->worker->pace));
    PLI_TRY(pli_fit_finish(run));
    if (pli_net_in_parts(run)) PLI_TRY(pli_parts_finish(run));
    pli_net_fit_of(run)->worker->finished = true;
    return PLAIT_OK;
}

static plait_status idle(pli_run *run) {
    const void *values;
    return plait_table_read(pli_net_fit_of(run)->table[0], 0, 1, &values);
}

const pli_steps pli_net_steps = {
    .leaves_out = true, .reads = true, .begin = begin, .end = end, .step = step, .idle = idle,
    .finite = pli_fit_finite, .told = pli_fit_told, .epoch = pli_fit_epoch, .finish = finish
};
