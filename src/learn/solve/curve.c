/* The curve: the objective at some moments of a run, measured when the run is over.
 *
 * While the run lasts, the reporting worker keeps copies of weights that it reads anyway; only if batches read by key
 * does it read the whole table for a copy. The copies lie closer together at the beginning, where the loss falls. Each
 * worker notes how many bytes it has sent by then. Afterwards all workers judge each copy on their rows. So the
 * objective costs the run nothing but a copy, and every point is exact. */
#include <math.h>
#include <string.h>

#include "learn/solve/progress.h"
#include "table/table.h"

#define KEPT_BYTES ((int64_t)64 << 20)

static bool reports(const pli_run *run) { return pli_comm_leads(run->comm); }

plait_status pli_curve_begin(pli_run *run, int64_t values, plait_type type, int64_t clocks) {
    int64_t bytes = values * (int64_t)plait_type_bytes(type), n = run->opts->curve;
    if (n <= 0 || run->stream || bytes <= 0 || run->learner->more == NULL || run->learner->more->worth == NULL)
        return PLAIT_OK;
    if (n > KEPT_BYTES / bytes) n = KEPT_BYTES / bytes;
    if (n > clocks) n = clocks;
    if (n < 1) return PLAIT_OK;
    pli_curve *c = run->curve = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a curve");
    *c = (pli_curve){ .values = values, .type = type };
    c->mark = pli_calloc((size_t)n, sizeof *c->mark);
    c->clock = pli_calloc((size_t)n, sizeof *c->clock);
    c->seconds = pli_calloc((size_t)n, sizeof *c->seconds);
    c->bytes = pli_calloc((size_t)n + 1, sizeof *c->bytes);
    c->taken = pli_calloc((size_t)n, sizeof *c->taken);
    if (reports(run)) c->weights = pli_calloc((size_t)n, (size_t)bytes);
    if (c->mark == NULL || c->clock == NULL || c->seconds == NULL || c->bytes == NULL || c->taken == NULL ||
        (reports(run) && c->weights == NULL))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a curve of %lld points", (long long)n);
    for (int64_t i = 0; i < n; i++) { /* squares, but no clock twice: 0, 1, 2, ..., then ever farther apart */
        double square = (double)clocks * ((double)i / (double)n) * ((double)i / (double)n);
        c->mark[i] = (int64_t)square > i ? (int64_t)square : i;
    }
    c->points = n;
    while (c->next < n && c->mark[c->next] < run->clocks_done) c->next++; /* points that the run before has passed */
    return PLAIT_OK;
}

static double sent(const pli_run *run) {
    return (double)(plait_comm_bytes_sent(run->comm) - run->training_bytes) + run->curve->carried;
}

int64_t pli_curve_marks(const pli_run *run) { return run->curve != NULL ? run->curve->points + 1 : 0; }

void pli_curve_give(pli_run *run, double *bytes) {
    pli_curve *c = run->curve;
    if (c == NULL) return;
    const double all = sent(run);
    for (int64_t i = 0; i <= c->points; i++) {
        bytes[i] = i < c->next ? c->bytes[i] : all;
        if (i < c->next) c->bytes[i] = 0;
    }
    c->carried -= all;
}

void pli_curve_get(pli_run *run, const double *bytes) {
    pli_curve *c = run->curve;
    if (c == NULL) return;
    for (int64_t i = 0; i < c->next; i++) c->bytes[i] += bytes[i];
    c->carried += bytes[c->points];
}

void pli_curve_skip(pli_run *run) {
    pli_curve *c = run->curve;
    if (c == NULL) return;
    while (c->next < c->points && c->mark[c->next] < run->clocks_done) c->bytes[c->next++] = sent(run);
}

bool pli_curve_due(pli_run *run) {
    pli_curve *c = run->curve;
    if (c == NULL) return false;
    if (c->next == c->points || run->clocks_done < c->mark[c->next]) return c->due;
    c->bytes[c->next] = sent(run);
    c->next++;
    c->due = reports(run) && c->weights != NULL; /* a worker that came to lead later has no memory for copies */
    return c->due;
}

void pli_curve_keep(pli_run *run, const void *weights) {
    pli_curve *c = run->curve;
    if (!pli_curve_waits(run)) return;
    size_t  bytes = (size_t)(c->values * (int64_t)plait_type_bytes(c->type));
    int64_t i = c->next - 1;
    c->due = false;
    c->taken[i] = true;
    c->clock[i] = run->clocks_done;
    c->seconds[i] = (double)(pli_comm_now(run->comm) - run->training_ns) * 1e-9;
    memcpy(c->weights + (size_t)i * bytes, weights, bytes);
}

void pli_curve_end(pli_run *run) {
    if (run->curve != NULL) run->curve->bytes[run->curve->points] = sent(run);
}

/* --- afterwards -------------------------------------------------------------------------------------------- */

/* The lead sends each copy to all workers, and they judge it. sums [points, 3]. */
static plait_status measure_all(pli_run *run, unsigned char *copy, double *sums) {
    pli_curve *c = run->curve;
    size_t     bytes = (size_t)(c->values * (int64_t)plait_type_bytes(c->type));
    for (int64_t i = 0; i < c->points; i++) {
        if (!c->taken[i]) continue;
        if (c->weights != NULL) memcpy(copy, c->weights + (size_t)i * bytes, bytes);
        PLI_TRY(plait_comm_broadcast(run->comm, copy, bytes, pli_comm_lead(run->comm)));
        PLI_TRY(run->learner->more->worth(run, c->type, copy, &sums[3 * i], &sums[3 * i + 1], &sums[3 * i + 2]));
    }
    return PLAIT_OK;
}

static void tell(const pli_run *run, const double *sums, const plait_report *report) {
    const pli_curve *c = run->curve;
    for (int64_t i = 0; i <= c->points; i++) {
        plait_point p = { .clock = report->clocks,
                          .seconds = report->train_seconds,
                          .objective = report->objective,
                          .train_loss = report->train_loss,
                          .bytes = c->bytes[c->points] };
        if (i < c->points && !c->taken[i]) continue;
        if (i < c->points) {
            p = (plait_point){ .clock = c->clock[i], .seconds = c->seconds[i], .bytes = c->bytes[i] };
            p.train_loss = sums[3 * i] / sums[3 * i + 1];
            p.objective = sums[3 * i] / (double)run->train_rows + sums[3 * i + 2];
        }
        run->opts->point(run->opts->user, &p);
    }
}

plait_status pli_curve_measure(pli_run *run, const plait_report *report) {
    pli_curve *c = run->curve;
    bool       reported = reports(run);
    if (c == NULL) return PLAIT_OK;
    double        *sums = pli_calloc((size_t)c->points, 3 * sizeof *sums);
    unsigned char *copy = pli_calloc((size_t)c->values, plait_type_bytes(c->type));
    plait_status   status =
        sums != NULL && copy != NULL ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for a curve");
    if (status == PLAIT_OK)
        status = plait_comm_broadcast(run->comm, c->taken, (size_t)c->points * sizeof *c->taken,
                                      pli_comm_lead(run->comm));
    if (status == PLAIT_OK) status = plait_comm_allreduce(run->comm, c->bytes, c->points + 1, PLAIT_F64, PLAIT_SUM);
    if (status == PLAIT_OK) status = measure_all(run, copy, sums);
    if (pli_comm_absent(run->comm) > pli_job_away(run->job))
        reported = false; /* copies, or parts of sums, were lost with a worker */
    if (status == PLAIT_OK && reported && run->opts->point != NULL) tell(run, sums, report);
    pli_free(copy);
    pli_free(sums);
    return status;
}

void pli_curve_free(pli_run *run) {
    pli_curve *c = run->curve;
    if (c == NULL) return;
    pli_free(c->mark);
    pli_free(c->clock);
    pli_free(c->seconds);
    pli_free(c->bytes);
    pli_free(c->taken);
    pli_free(c->weights);
    pli_free(c);
    run->curve = NULL;
}
