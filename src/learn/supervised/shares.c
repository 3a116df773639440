/* Do workers see different labels? Rows are dealt, so a file that is sorted by label gives each worker nearly the same
 * shares; where they still differ (few rows of many classes, a file whose order has a period, workers with files of
 * their own), steps that are applied as they come pull the model to and fro, and the last worker has the last word.
 *
 * Chance must not raise the alarm. A worker's count of a label is compared with what drawing its rows from all rows
 * without return would give, whose mean and deviation are those of the hypergeometric distribution (for numbers, the
 * mean of rows so drawn; Cochran, "Sampling Techniques", 1977, theorems 2.1 and 3.2). More than SIGMAS deviations come
 * by chance less than once in 10^8. A difference must also be large enough to matter. */
#include "learn/supervised/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/consistency/consistency.h"

static const double SIGMAS = 6;
static const double MUCH = 0.2;   /* so many of a worker's rows would need another label          */
static const double WIDE = 0.5;   /* of the labels' spread, between a worker's mean and that of all */

/* One worker's finding. */
typedef struct finding {
    double size; /* by how much it differs, in units of MUCH or WIDE; 0: not, or by chance */
    double label, own, all;
} finding;

/* How many deviations a count or mean of m of n rows lies from what is expected. */
static double sigmas(double off, double variance, double m, double n) {
    const double square = variance / m * (n > 1 ? (n - m) / (n - 1) : 0);
    return square > 0 ? fabs(off) / sqrt(square) : 0;
}

static finding compare_classes(int64_t classes, const double *own, const double *all) {
    double  m = 0, n = 0, apart = 0, most = 0;
    finding f = { 0 };
    for (int64_t k = 0; k < classes; k++) {
        m += own[k];
        n += all[k];
    }
    for (int64_t k = 0; k < classes && m > 0; k++) {
        const double share = all[k] / n, off = own[k] / m - share;
        apart += fabs(off) / 2;
        if (!(sigmas(off, share * (1 - share), m, n) > SIGMAS) || !(fabs(off) > most)) continue;
        most = fabs(off);
        f = (finding){ .label = (double)k, .own = own[k] / m, .all = share };
    }
    f.size = most > 0 && apart > MUCH ? apart / MUCH : 0;
    return f;
}

/* sums: weights, weighted labels, weighted squares. n: rows of all, m: own rows. */
static finding compare_numbers(const double own[3], const double all[3], double m, double n) {
    if (!(own[0] > 0) || !(m > 0)) return (finding){ 0 };
    const double mean = all[1] / all[0], variance = fmax(0, all[2] / all[0] - mean * mean);
    finding      f = { .own = own[1] / own[0], .all = mean };
    const double off = f.own - mean;
    if (sigmas(off, variance, m, n) > SIGMAS && fabs(off) > WIDE * sqrt(variance))
        f.size = fabs(off) / sqrt(variance) / WIDE;
    return f;
}

plait_status pli_shares_settle(pli_run *run, int64_t classes, const double *own, const double *all, double own_rows) {
    const int32_t workers = plait_comm_workers(run->comm);
    pli_fit      *fit = pli_fit_of(run);
    fit->shares.worker = -1;
    if (workers == 1) return PLAIT_OK;
    const finding mine = classes > 0 ? compare_classes(classes, own, all)
                                     : compare_numbers(own, all, own_rows, (double)run->seen_rows);
    double        worst = 0;
    finding      *found = pli_calloc((size_t)workers, sizeof *found);
    if (found == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to compare labels");
    plait_status status = plait_comm_allgather(run->comm, &mine, sizeof mine, found);
    for (int32_t w = 0; status == PLAIT_OK && w < workers; w++) {
        if (!(found[w].size > worst)) continue;
        worst = found[w].size;
        fit->shares = (pli_shares){ w, (int64_t)found[w].label, found[w].own, found[w].all };
    }
    pli_free(found);
    return status;
}

void pli_shares_tell(const pli_run *run) {
    const pli_fit    *fit = pli_fit_of(run);
    const pli_shares *s = &fit->shares;
    pli_text          what = { 0 };
    const bool whole = (pli_promises_of(run->consistency, NULL) & PLAIT_WHOLE_CLOCKS) != 0;
    if (s->worker < 0 || whole || run->solver != NULL || !pli_comm_leads(run->comm)) return;
    if (fit->goal.classes > 0) {
        pli_text_add(&what, "%.3g %% of its rows have label ", 100 * s->own);
        pli_schema_label_text(run->schema, s->label, &what);
        pli_text_add(&what, ", and %.3g %% of all rows", 100 * s->all);
    } else {
        pli_text_add(&what, "the mean of its labels is %.4g, and %.4g of all", s->own, s->all);
    }
    if (what.data != NULL)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "note: worker %d has other labels than the rest: %s; under %s this may harm: shuffle the rows of the "
                "file, or take --consistency bsp", (int)s->worker, what.data, run->consistency);
    pli_text_free(&what);
}
