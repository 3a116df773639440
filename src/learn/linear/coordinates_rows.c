/* A worker's own rows, what the columns come to over all rows, and what becomes of both when a worker dies
 * (--replicas 2).
 *
 * Weights, slopes, curvature and the working set are the same on all workers. What a worker alone has is its rows'
 * scores and residuals, and these follow from the weights. So nothing is lost with a worker but the part that it had in
 * sums. A sum that lacks a part leads nowhere in particular, and nothing is decided by it: at the next look all workers
 * see that one has died, read its blocks of rows once more, each those that fall to it, and look again, over all rows,
 * from the weights at hand. What was screened out before stays so, since those bounds were of all rows.
 *
 * There are two lists of the dead (solve/inherit.h). The rows are cut by that of the sums, and so is all that the
 * workers decide: it is the same on all of them after the same sum. The list of the clocks is not. A worker that hears
 * of a death before it hears that its clock is safe counts the dead one out a clock before others do. */
#include <string.h>

#include "learn/linear/coordinates.h"

static plait_status take_memory(pli_coordinates *c) {
    const size_t   n = (size_t)c->columns.rows + 1;
    double **const of_rows[] = { &c->score, &c->q, &c->step };
    bool           ok = true;
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
        ok = (*of_rows[i] = pli_calloc(n, sizeof(double))) != NULL && ok;
    if (c->logistic || !c->columns.even) ok = (c->omega = pli_calloc(n, sizeof *c->omega)) != NULL && ok;
    return ok ? PLAIT_OK : pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for %zu rows", n - 1);
}

void pli_coordinates_rows_free(pli_coordinates *c) {
    pli_free(c->score);
    pli_free(c->q);
    pli_free(c->step);
    pli_free(c->omega);
    c->score = c->q = c->step = c->omega = NULL;
    pli_columns_free(&c->columns);
}

/* Means, curvature and spread of the columns, by the rows' weights. Collective. */
static plait_status measure_columns(pli_coordinates *c) {
    const pli_columns *x = &c->columns;
    c->all = 0;
    for (int64_t i = 0; i < x->rows; i++) c->all += x->v[i];
    for (int64_t j = 0; j < x->features; j++) pli_column_sums(x, j, x->v, &c->first[j], &c->spread[j]);
    PLI_TRY(pli_coordinates_sum(c, &c->all, 1));
    PLI_TRY(pli_coordinates_sum(c, c->first, x->features));
    PLI_TRY(pli_coordinates_sum(c, c->spread, x->features));
    for (int64_t j = 0; j < x->features; j++) {
        const double whole = c->spread[j];
        if (c->intercept) {
            c->mean[j] = c->first[j] / c->all;
            c->spread[j] -= c->first[j] * c->mean[j];
        }
        if (!(c->spread[j] > 1e-12 * whole)) c->spread[j] = 0; /* a column without spread has no weight */
        c->h[j] = c->spread[j];
    }
    c->mass = c->all;
    if (c->omega != NULL) memcpy(c->omega, x->v, (size_t)x->rows * sizeof *x->v);
    return PLAIT_OK;
}

plait_status pli_coordinates_gather(pli_coordinates *c) {
    pli_run *run = c->run;
    int32_t  absent = pli_comm_absent(run->comm);
    do {
        pli_coordinates_rows_free(c);
        PLI_TRY(pli_columns_make(run, &c->columns));
        PLI_TRY(take_memory(c));
        PLI_TRY(measure_columns(c));
    } while (pli_run_again(run, &absent));
    for (int32_t w = 0; w < plait_comm_workers(run->comm); w++) c->gone[w] = pli_comm_is_absent(run->comm, w);
    return PLAIT_OK;
}

void pli_coordinates_score(pli_coordinates *c) {
    for (int64_t i = 0; i < c->columns.rows; i++) c->score[i] = c->bias;
    for (int64_t j = 0; j < c->columns.features; j++)
        if (c->w[j] != 0) pli_column_add(&c->columns, j, c->w[j], NULL, c->score);
}

bool pli_coordinates_died(const pli_coordinates *c) {
    for (int32_t w = 0; w < plait_comm_workers(c->run->comm); w++)
        if (!c->gone[w] && pli_comm_is_absent(c->run->comm, w)) return true;
    return false;
}

plait_status pli_coordinates_revive(pli_coordinates *c) {
    pli_run_tell_lost(c->run);
    PLI_TRY(pli_coordinates_gather(c));
    pli_coordinates_score(c);
    return pli_coordinates_steps_anew(c);
}

plait_status pli_coordinates_clock(pli_coordinates *c) {
    plait_status status;
    while ((status = plait_job_clock(c->run->job)) == PLAIT_STAND_IN) {} /* nobody has pushed */
    PLI_TRY(status);
    c->run->clocks_done++;
    return PLAIT_OK;
}

plait_status pli_coordinates_lead_adds(pli_coordinates *c, const double *values) {
    plait_job    *job = c->run->job;
    const int32_t lead = pli_comm_lead(c->run->comm);
    bool          mine = plait_job_holder(job, lead, 0) == plait_comm_rank(c->run->comm);
    plait_status  status;
    do {
        status = mine ? plait_table_inc_range(c->table, 0, c->columns.features + 1, values, 0) : PLAIT_OK;
        if (status == PLAIT_OK) status = plait_job_clock(job);
        mine = status == PLAIT_STAND_IN && plait_job_inherits(job, lead, 0) != 0;
    } while (status == PLAIT_STAND_IN);
    PLI_TRY(status);
    c->run->clocks_done++;
    return PLAIT_OK;
}
