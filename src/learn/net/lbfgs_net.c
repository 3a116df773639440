/* A net's passes for L-BFGS. One table holds all values of the net, in the order of pli_net_param. The worker's rows go
 * through the graph some at a time, forward and backward, and the gradients of all variables are added up in double. A
 * net has no known bound of its Hessian, so the metric is one number everywhere.
 *
 * Sandblaster L-BFGS (Dean et al., "Large Scale Distributed Deep Networks", NIPS 2012, section 4.2): replicas of the
 * model get the weights, compute gradients on portions of the data and push these sums, while the vectors stay on the
 * shards. */
#include <string.h>

#include "graph/session.h"
#include "learn/net/fit.h"
#include "learn/solve/lbfgs_run.h"

enum { ROWS = 1024 }; /* rows of one run of the graph; the number is fixed, so results depend on no setting */

struct net_pass {
    const pli_run *run;
    const pli_net *net;
    plait_session *session;
    float         *values; /* [net->values] at which the pass computes */
    double        *sum;    /* [net->values] gradients so far            */
    pli_net_rows   rows;
    int64_t        n;      /* rows that are not computed yet            */
};

/* --- the graph's store --------------------------------------------------------------------------------------- */

static plait_status get(void *user, int32_t variable, const void **values_out, plait_error *err) {
    struct net_pass *n = user;
    (void)err;
    *values_out = n->values + n->net->param[variable].at;
    return PLAIT_OK;
}

static plait_status get_rows(void *user, int32_t variable, int64_t rows, const int64_t *row, void *values,
                             plait_error *err) {
    const struct net_pass *n = user;
    const pli_net_param        *param = &n->net->param[variable];
    (void)err;
    for (int64_t i = 0; i < rows; i++)
        memcpy((float *)values + i * param->cols, n->values + param->at + row[i] * param->cols,
               (size_t)param->cols * sizeof(float));
    return PLAIT_OK;
}

static plait_status add(void *user, int32_t variable, const void *delta, plait_error *err) {
    struct net_pass *n = user;
    const pli_net_param  *param = &n->net->param[variable];
    (void)err;
    if (pli_net_stays(n->run, param)) return PLAIT_OK;
    for (int64_t i = 0; i < param->rows * param->cols; i++) n->sum[param->at + i] += (double)((const float *)delta)[i];
    return PLAIT_OK;
}

static plait_status add_rows(void *user, int32_t variable, int64_t rows, const int64_t *row, const void *delta,
                             plait_error *err) {
    struct net_pass *n = user;
    const pli_net_param  *param = &n->net->param[variable];
    (void)err;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < param->cols; c++)
            n->sum[param->at + row[i] * param->cols + c] += (double)((const float *)delta)[i * param->cols + c];
    return PLAIT_OK;
}

static plait_status end_run(void *user, plait_status how, plait_error *err) {
    (void)user;
    (void)how;
    (void)err;
    return PLAIT_OK;
}

static plait_status no_memory(const pli_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch's rows");
}

/* --- life ------------------------------------------------------------------------------------------------------ */

static void end(pli_lbfgs *l) {
    struct net_pass *n = l->own;
    if (n == NULL) return;
    plait_session_destroy(&n->session);
    pli_free(n->values);
    pli_free(n->sum);
    pli_net_rows_free(&n->rows);
    pli_free(n);
    l->own = NULL;
}

static plait_status begin(pli_lbfgs *l) {
    pli_run              *run = l->run;
    struct net_pass *n = l->own = pli_calloc(1, sizeof *n);
    if (n == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's passes");
    n->run = run;
    n->net = pli_net_fit_of(run)->net;
    if (pli_net_fit_of(run)->net->row_labels > 1)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "lbfgs for a net on text is refused: it needs one label for each row, but a row of text has "
                        "several; take adam");
    l->single = true;
    l->rows = l->values = pli_net_fit_of(run)->net->values;
    l->columns = 1;
    l->type = l->values <= 1 << 17 ? PLAIT_F64 : PLAIT_F32;
    l->args.packed = l->type == PLAIT_F32;
    l->args.memory = l->values <= 1 << 17 ? 16 : 8;
    l->args.free_row = -1;
    n->values = pli_array((size_t)l->values, sizeof *n->values);
    n->sum = pli_calloc((size_t)l->values, sizeof *n->sum);
    if (n->values == NULL || n->sum == NULL || !pli_net_rows_reserve(pli_net_fit_of(run)->net, &n->rows, ROWS))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld weights", (long long)l->values);
    const plait_store store = {
        .user = n, .get = get, .get_rows = get_rows, .inc = add, .inc_rows = add_rows, .end = end_run
    };
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.store = &store;
    opts.seed = run->opts->seed;
    opts.kernels = pli_net_kernels(run);
    return pli_net_session_create(run, &opts, &n->session);
}

static plait_status in_type(const pli_lbfgs *l, float *values, void **out) {
    double *wide = l->type == PLAIT_F64 ? pli_array((size_t)l->values, sizeof *wide) : NULL;
    *out = l->type == PLAIT_F64 ? (void *)wide : values;
    if (l->type == PLAIT_F32) return PLAIT_OK;
    for (int64_t i = 0; wide != NULL && i < l->values; i++) wide[i] = (double)values[i];
    pli_free(values);
    return wide != NULL ? PLAIT_OK : pli_fail(l->run->err, PLAIT_ENOMEM, "no memory for a net's values");
}

static plait_status initial(const pli_lbfgs *l, void **initial_out) {
    float *values = pli_array((size_t)l->values, sizeof *values);
    if (values == NULL) return pli_fail(l->run->err, PLAIT_ENOMEM, "no memory for the first weights");
    pli_net_first_values(l->run, values);
    return in_type(l, values, initial_out);
}

static plait_status penalty(const pli_lbfgs *l, void **penalty_out) {
    const pli_net *net = ((const struct net_pass *)l->own)->net;
    float         *factors = pli_array((size_t)l->values, sizeof *factors);
    if (factors == NULL) return pli_fail(l->run->err, PLAIT_ENOMEM, "no memory for penalties");
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *param = &net->param[p];
        double               l1, l2;
        pli_net_last_factors(net, p, &l1, &l2);
        pli_net_penalty_factors(l->run, p, factors + param->at);
        for (int64_t i = 0; i < param->rows * param->cols; i++)
            factors[param->at + i] = (float)((l->run->l1 > 0 ? l1 : l2) * (double)factors[param->at + i]);
    }
    return in_type(l, factors, penalty_out);
}

/* --- passes ---------------------------------------------------------------------------------------------------- */

/* Pushes an array of doubles, narrowed in place to the tables' type. */
static plait_status push(pli_lbfgs *l, plait_table *table, double *sum) {
    for (int64_t i = 0; l->type == PLAIT_F32 && i < l->values; i++) {
        const float x = (float)sum[i];
        memcpy((unsigned char *)sum + i * (int64_t)sizeof x, &x, sizeof x);
    }
    return plait_table_inc_range(table, 0, l->rows, sum, 0);
}

/* The objective is in the data's units, so the metric is the unit. Only who has the first block pushes it, so that it
 * does not depend on the number of workers. */
static plait_status metric(pli_lbfgs *l) {
    if (l->batch.parts == 0 || l->batch.part[0].block->number != 0) return PLAIT_OK;
    struct net_pass *n = l->own;
    for (int64_t i = 0; i < l->values; i++) n->sum[i] = n->net->units.unit;
    return push(l, l->h, n->sum);
}

/* The rows in x, forward and backward. */
static plait_status run_rows(pli_lbfgs *l, pli_total *total) {
    struct net_pass *n = l->own;
    const pli_net        *net = n->net;
    plait_fetch           fetches[PLI_NET_PARAMS + 1];
    pli_sums              sums = { 0 };
    plait_feed            feeds[PLI_NET_TRAIN_FEEDS];
    if (n->n == 0) return PLAIT_OK;
    const int32_t fed = pli_net_feed_rows(net, &n->rows, n->n, feeds);
    if (fed < 0) return no_memory(l->run);
    for (int32_t p = 0; p < net->n_params; p++) fetches[p] = (plait_fetch){ .value = net->param[p].inc };
    fetches[net->n_params] = (plait_fetch){ .value = net->sums, .tensor = { .data = &sums }, .bytes = sizeof sums };
    PLI_TRY(plait_session_run(n->session, feeds, fed, fetches, net->n_params + 1, NULL, 0, l->run->err));
    sums.right = 0; /* lbfgs.c uses this field for the wish to stop */
    pli_total_add(total, &sums);
    n->n = 0;
    return PLAIT_OK;
}

static plait_status push_gradient(pli_lbfgs *l) {
    struct net_pass *n = l->own;
    for (int64_t i = 0; i < l->values; i++) n->sum[i] *= n->net->units.unit / (double)l->run->train_rows;
    if (!l->looks) PLI_TRY(push(l, l->g, n->sum));
    memset(n->sum, 0, (size_t)l->values * sizeof *n->sum);
    return PLAIT_OK;
}

static plait_status run_part(pli_lbfgs *l, const pli_part *part, pli_total *total) {
    struct net_pass *n = l->own;
    for (int64_t from = 0, take; from < part->rows; from += take) {
        take = part->rows - from < ROWS - n->n ? part->rows - from : ROWS - n->n;
        if (pli_net_take_rows(l->run, &pli_net_fit_of(l->run)->fit.scale, part, from, take, &n->rows, n->n) < 0)
            return no_memory(l->run);
        n->n += take;
        if (n->n == ROWS) PLI_TRY(run_rows(l, total));
    }
    return PLAIT_OK;
}

static plait_status compute(pli_lbfgs *l, const void *values, pli_total *total) {
    struct net_pass *n = l->own;
    const pli_run        *run = l->run;
    for (int64_t i = 0; i < l->values; i++)
        n->values[i] = l->type == PLAIT_F64 ? (float)((const double *)values)[i] : ((const float *)values)[i];
    memset(n->sum, 0, (size_t)l->values * sizeof *n->sum);
    pli_net_charge_rows(run, &l->batch);
    for (int32_t p = 0; p < l->batch.parts; p++) {
        PLI_TRY(run_part(l, &l->batch.part[p], total));
        if (!run->exact || l->batch.part[p].rows == 0) continue;
        PLI_TRY(run_rows(l, total));
        PLI_TRY(push_gradient(l));
    }
    if (run->exact) return PLAIT_OK;
    PLI_TRY(run_rows(l, total));
    return push_gradient(l);
}

const pli_lbfgs_pass pli_lbfgs_nets = {
    .begin = begin, .end = end, .initial = initial, .penalty = penalty, .metric = metric, .compute = compute,
    .finite = pli_fit_finite, .solved = pli_fit_solved_at
};
