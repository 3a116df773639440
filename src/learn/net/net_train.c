/* A batch through a net: its rows made dense, the tables' values, one run of the graph, whose incs push the gradients.
 *
 * The graph's variables are the tables (learn/table_store.h): a clock asks for all of them, in the order in which the last
 * run needed them, and the forward pass waits for each just before its first use. A gradient leaves as soon as the backward
 * pass has it, those of the last layers first (plait_table_flush). Under --reduce exact each block's rows are a run of
 * their own, and gradients leave in the last one. */
#include <string.h>

#include "graph/session.h"
#include "learn/net/net.h"
#include "learn/solve/sgd.h"
#include "learn/net/table_store.h"

struct pli_net_worker {
    pli_run           *run;
    plait_session     *session;
    plait_table_store *store;
    float             *values; /* [net->values] as the tables have them */
    pli_net_rows       rows;
};

/* --- tables ------------------------------------------------------------------------------------------------------ */

static bool is_scaled(const pli_run *run, int32_t p) {
    return p == 0 && run->scale.factor != NULL && (run->l1 > 0 || run->l2 > 0);
}

void pli_net_penalty_factors(const pli_run *run, int32_t p, float *factor) {
    const pli_net_param *param = &run->net->param[p];
    for (int64_t r = 0; r < param->rows; r++)
        for (int64_t c = 0; c < param->cols; c++)
            factor[r * param->cols + c] =
                is_scaled(run, p) ? (float)pli_scale_penalty(&run->scale, run->net->even ? 0 : r, run->l1, run->l2)
                                  : param->penalised;
}

/* NULL: all 1. */
static plait_status penalty_of(const pli_run *run, int32_t p, float **penalty_out) {
    const pli_net_param *param = &run->net->param[p];
    *penalty_out = NULL;
    if (param->penalised && !is_scaled(run, p)) return PLAIT_OK;
    float *factor = pli_array((size_t)(param->rows * param->cols), sizeof *factor);
    if (factor == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for penalties");
    pli_net_penalty_factors(run, p, factor);
    *penalty_out = factor;
    return PLAIT_OK;
}

void pli_net_first_values(const pli_run *run, float *values) {
    const pli_net *net = run->net;
    if (run->start == NULL) {
        if (run->file.text != NULL) memcpy(values, run->file.first, (size_t)net->values * sizeof *values);
        else pli_net_initial(net, run->opts->seed, values);
        return;
    }
    memcpy(values, run->start->solution.net, (size_t)net->values * sizeof *values);
    pli_net_from_data_units(net, &run->scale, values);
}

plait_status pli_net_create_tables(pli_run *run, const plait_table_opts *like) {
    const pli_net *net = run->net;
    float         *initial = pli_array((size_t)net->values, sizeof *initial);
    if (initial == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the first weights");
    plait_status status = PLAIT_OK;
    pli_net_first_values(run, initial);
    for (int32_t p = 0; status == PLAIT_OK && p < net->n_params; p++) {
        const pli_net_param *param = &net->param[p];
        const pli_travel     travel = pli_run_travel(run, param->name);
        plait_table_opts     t = *like;
        float               *penalty = NULL;
        t.name = param->name;
        t.topology = travel.topology;
        t.consistency = travel.consistency;
        t.filter = travel.filter;
        t.rows = param->rows;
        t.cols = param->cols;
        t.keyed = pli_net_by_row(net, p);
        if (t.keyed) t.sharded = 0;
        t.initial = initial + param->at;
        status = penalty_of(run, p, &penalty);
        t.penalty = penalty;
        if (status == PLAIT_OK) status = plait_table_create(run->job, &t, &run->net_table[p]);
        pli_free(penalty);
    }
    pli_free(initial);
    run->w = run->net_table[0];
    return status;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

/* Of the trace. A simulation charges a batch as a whole: there an op takes no time of its own. */
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

static plait_status bind(pli_net_worker *w) {
    const pli_net *net = w->run->net;
    pli_stored     stored[PLI_NET_PARAMS];
    for (int32_t p = 0; p < net->n_params; p++)
        stored[p] = (pli_stored){ .table = w->run->net_table[p],
                                  .values = w->values + net->param[p].at,
                                  .by_row = pli_net_by_row(net, p) };
    return pli_table_store_bind(w->run->comm, net->n_params, stored, &w->store);
}

plait_status pli_net_begin(pli_sgd *sgd) {
    pli_run        *run = sgd->run;
    pli_net_worker *w = sgd->net = pli_calloc(1, sizeof *w);
    if (w == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's batches");
    w->run = run;
    w->values = pli_array((size_t)run->net->values, sizeof *w->values);
    if (w->values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
    PLI_TRY(bind(w));
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.store = plait_table_store_calls(w->store);
    opts.seed = run->opts->seed;
    opts.kernels = pli_run_kernels(run);
    if (pli_comm_spans(run->comm) != NULL) {
        opts.trace = tell_op;
        opts.trace_user = run;
    }
    return pli_session_create(run->net->graph, &opts, run->pool, &w->session, run->err);
}

void pli_net_end(pli_sgd *sgd) {
    pli_net_worker *w = sgd->net;
    if (w == NULL) return;
    plait_session_destroy(&w->session);
    plait_table_store_destroy(&w->store);
    pli_free(w->values);
    pli_net_rows_free(&w->rows);
    pli_free(w);
    sgd->net = NULL;
}

/* --- a batch ----------------------------------------------------------------------------------------------------- */

/* All tables' values; every get is under way before the first is waited for. */
static plait_status read_values(const pli_run *run, float *values) {
    const pli_net *net = run->net;
    plait_request *got[PLI_NET_PARAMS] = { NULL };
    plait_status   status = PLAIT_OK;
    int32_t        begun = 0;
    for (; status == PLAIT_OK && begun < net->n_params; begun++)
        status = plait_table_get_range_begin(run->net_table[begun], 0, net->param[begun].rows,
                                             values + net->param[begun].at, &got[begun]);
    for (int32_t p = 0; p < begun; p++) {
        if (got[p] == NULL) continue;
        plait_status waited = plait_request_wait(&got[p]);
        if (status == PLAIT_OK) status = waited;
    }
    return status;
}

int64_t pli_net_take_rows(const pli_run *run, const pli_part *part, int64_t from, int64_t n, pli_net_rows *to,
                          int64_t at) {
    int64_t labels = 0;
    for (int64_t i = from; i < from + n; i++, at++) {
        const int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        const int64_t own = pli_net_rows_put(run->net, part->block, r, &run->scale, to, at);
        if (own < 0) return own;
        labels += own;
    }
    return labels;
}

int32_t pli_net_feed_rows(const pli_net *net, pli_net_rows *from, int64_t n, plait_feed feeds[PLI_NET_FEEDS + 2]) {
    const int32_t fed = pli_net_rows_feed(net, from, n, &feeds[2]);
    feeds[0] = (plait_feed){ net->label, plait_tensor_of(PLAIT_F64, plait_shape_1(n * net->row_labels), from->label) };
    feeds[1] =
        (plait_feed){ net->weight, plait_tensor_of(PLAIT_F64, plait_shape_1(n * net->row_labels), from->weight) };
    return fed < 0 ? fed : fed + 2;
}

static plait_status no_memory(const pli_run *run, int64_t rows) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch of %lld rows", (long long)rows);
}

/* The worker's first n rows through the graph, forward and backward; adds to sums. */
static plait_status run_rows(pli_net_worker *w, int64_t n, int64_t examples, pli_sums *sums) {
    const pli_run *run = w->run;
    const pli_net *net = run->net;
    plait_fetch    fetches[PLI_NET_PARAMS + 1];
    pli_sums       own = { 0 };
    plait_feed     feeds[PLI_NET_FEEDS + 2];
    const int32_t  fed = examples < 0 ? -1 : pli_net_feed_rows(net, &w->rows, n, feeds);
    if (fed < 0) return no_memory(run, n);
    for (int32_t p = 0; p < net->n_params; p++) fetches[p] = (plait_fetch){ .value = net->param[p].inc };
    fetches[net->n_params] = (plait_fetch){ .value = net->sums, .tensor = { .data = &own }, .bytes = sizeof own };
    plait_table_store_examples(w->store, examples);
    PLI_TRY(plait_session_run(w->session, feeds, fed, fetches, net->n_params + 1, NULL, 0, run->err));
    pli_sums_add(sums, &own);
    return PLAIT_OK;
}

static plait_status step_by_blocks(pli_sgd *sgd, const pli_batch *batch, pli_sums *sums_out) {
    pli_net_worker *w = sgd->net;
    int64_t         rows = batch->rows; /* still to come */
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        pli_sums        own = { 0 };
        if (part->rows == 0) continue;
        rows -= part->rows;
        pli_table_store_flushes(w->store, rows == 0);
        PLI_TRY(run_rows(w, part->rows, pli_net_take_rows(w->run, part, 0, part->rows, &w->rows, 0), &own));
        pli_total_add(&sgd->clock, &own);
    }
    *sums_out = pli_total_sums(&sgd->clock);
    return PLAIT_OK;
}

static plait_status step_at_once(pli_net_worker *w, const pli_batch *batch, pli_sums *sums_out) {
    int64_t at = 0, labels = 0;
    for (int32_t p = 0; p < batch->parts; at += batch->part[p++].rows) {
        const int64_t own = pli_net_take_rows(w->run, &batch->part[p], 0, batch->part[p].rows, &w->rows, at);
        if (own < 0) return no_memory(w->run, batch->rows);
        labels += own;
    }
    pli_table_store_flushes(w->store, true);
    return run_rows(w, batch->rows, labels, sums_out);
}

plait_status pli_net_step(pli_sgd *sgd, const pli_batch *batch, pli_sums *sums_out) {
    pli_run        *run = sgd->run;
    pli_net_worker *w = sgd->net;
    uint64_t        since = pli_comm_span_begin(run->comm);
    PLI_TRY(pli_table_store_clock(w->store));
    /* Who has no rows reads, too, or would run ahead; who is late hears of it by what he has read. */
    if (batch->rows == 0 || run->opts->backup > 0 || run->curve.due)
        PLI_TRY(pli_table_store_read(w->store, run->curve.due));
    pli_run_step(run, "get", &since);
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    pli_curve_keep(run, w->values);
    if (!pli_net_rows_reserve(run->net, &w->rows, batch->rows))
        return no_memory(run, batch->rows);
    pli_run_charge(run, batch, run->net->values);
    PLI_TRY(run->exact ? step_by_blocks(sgd, batch, sums_out) : step_at_once(w, batch, sums_out));
    pli_run_step(run, "compute", &since); /* and inc: a gradient leaves as soon as it is there */
    return PLAIT_OK;
}

/* --- what was learned -------------------------------------------------------------------------------------------- */

plait_status pli_net_solution(const pli_run *run, const float *values, pli_solution *solution_out) {
    const size_t bytes = (size_t)run->net->values * sizeof *values;
    pli_solution s = { .rows = run->net->values, .net = pli_malloc(bytes) };
    if (s.net == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
    memcpy(s.net, values, bytes);
    pli_net_to_data_units(run->net, &run->scale, s.net);
    *solution_out = s;
    return PLAIT_OK;
}

plait_status pli_net_extract(pli_run *run, pli_solution *solution_out) {
    float *values = pli_array((size_t)run->net->values, sizeof *values);
    if (values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
    plait_status status = read_values(run, values);
    if (status == PLAIT_OK) status = pli_net_solution(run, values, solution_out);
    pli_free(values);
    return status;
}
