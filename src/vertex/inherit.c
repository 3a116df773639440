/* Parts of a run that fall to others when their worker dies. See inherit.h. */
#include "vertex/inherit.h"

#include <string.h>

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/beside.h"

struct pli_inherit {
    pli_inherit_opts opts;
    int32_t          workers, me;
    bool             survives;
    void           **part;    /* [workers] of others, once this worker needs them      */
    plait_table     *figures; /* NULL without replicas                                 */
    int64_t         *figure;  /* [workers, figures] as they are before this superstep  */
};

static plait_status make_figures(pli_inherit *h) {
    return pli_beside_make(h->opts.job,
                           &(pli_beside){ .program = h->opts.name, .what = "figures", .type = PLAIT_I64,
                                          .rows = h->workers, .cols = h->opts.figures },
                           &h->figures);
}

plait_status pli_inherit_create(const pli_inherit_opts *opts, pli_inherit **inherit_out) {
    pli_inherit *h = pli_calloc(1, sizeof *h);
    if (h == NULL) return pli_fail(opts->err, PLAIT_ENOMEM, "%s: no memory for heirs", opts->name);
    h->opts = *opts;
    h->workers = plait_comm_workers(opts->job->comm);
    h->me = plait_comm_rank(opts->job->comm);
    h->survives = opts->job->layout.replicas > 1;
    h->part = pli_calloc((size_t)h->workers, sizeof *h->part);
    h->figure = pli_calloc((size_t)h->workers * (size_t)opts->figures, sizeof *h->figure);
    plait_status status = h->part != NULL && h->figure != NULL
                              ? PLAIT_OK
                              : pli_fail(opts->err, PLAIT_ENOMEM, "%s: no memory for heirs", opts->name);
    if (status == PLAIT_OK && h->survives) status = make_figures(h);
    if (status < 0) pli_inherit_destroy(&h);
    *inherit_out = h;
    return status;
}

void pli_inherit_destroy(pli_inherit **inherit) {
    pli_inherit *h = *inherit;
    if (h == NULL) return;
    for (int32_t w = 0; h->part != NULL && w < h->workers; w++)
        if (h->part[w] != NULL) h->opts.release(h->part[w]);
    pli_free(h->part);
    pli_free(h->figure);
    pli_free(h);
    *inherit = NULL;
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

void *pli_inherit_made(const pli_inherit *h, int32_t home) { return home == h->me ? h->opts.own : h->part[home]; }

plait_status pli_inherit_part(pli_inherit *h, int32_t home, void **part_out) {
    *part_out = pli_inherit_made(h, home);
    if (*part_out != NULL) return PLAIT_OK;
    PLI_TRY(h->opts.make(h->opts.own, home, part_out));
    h->part[home] = *part_out;
    return PLAIT_OK;
}

plait_status pli_inherit_each(pli_inherit *h, pli_inherit_fn *fn, void *user) {
    PLI_TRY(fn(user, h->opts.own));
    for (int32_t w = 0; h->survives && w < h->workers; w++) {
        void *part;
        if (w == h->me || plait_job_holder(h->opts.job, w, 0) != h->me) continue;
        PLI_TRY(pli_inherit_part(h, w, &part));
        PLI_TRY(fn(user, part));
    }
    return PLAIT_OK;
}

static plait_status each_inherited(pli_inherit *h, pli_inherit_fn *fn, void *user) {
    for (int32_t w = 0; w < h->workers; w++) {
        void *part;
        if (!plait_job_inherits(h->opts.job, w, 0)) continue;
        PLI_TRY(pli_inherit_part(h, w, &part));
        PLI_TRY(fn(user, part));
    }
    return PLAIT_OK;
}

plait_status pli_inherit_clock(pli_inherit *h, pli_inherit_fn *again, pli_inherit_fn *push, void *user) {
    plait_status status;
    while ((status = plait_job_clock(h->opts.job)) == PLAIT_STAND_IN) {
        PLI_TRY(each_inherited(h, again, user));
        PLI_TRY(each_inherited(h, push, user));
    }
    return status;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

plait_status pli_inherit_tell(pli_inherit *h, int32_t home, const int64_t *figure) {
    const uint64_t key = (uint64_t)home;
    int64_t       *old = h->figure + (int64_t)h->opts.figures * home, change[PLI_INHERIT_FIGURES];
    if (!h->survives) {
        memcpy(old, figure, (size_t)h->opts.figures * sizeof *old);
        return PLAIT_OK;
    }
    for (int32_t i = 0; i < h->opts.figures; i++) change[i] = (int64_t)((uint64_t)figure[i] - (uint64_t)old[i]);
    return plait_table_inc(h->figures, 1, &key, change, 0);
}

plait_status pli_inherit_hear(pli_inherit *h, const int64_t **figure_out) {
    const int64_t n = h->opts.figures;
    *figure_out = h->figure;
    if (h->survives) return plait_table_get_range(h->figures, 0, h->workers, h->figure);
    for (int64_t k = 0; k < n * h->workers; k++)
        if (k / n != h->me) h->figure[k] = 0;
    if (h->workers == 1) return PLAIT_OK;
    return plait_comm_allreduce(h->opts.job->comm, h->figure, n * h->workers, PLAIT_I64, PLAIT_SUM);
}

plait_status pli_inherit_sum(pli_inherit *h, int64_t *sum) {
    const int32_t  n = h->opts.figures;
    const int64_t *figure = h->figure + (int64_t)n * h->me;
    memcpy(sum, figure, (size_t)n * sizeof *sum);
    if (!h->survives)
        return h->workers > 1 ? plait_comm_allreduce(h->opts.job->comm, sum, n, PLAIT_I64, PLAIT_SUM) : PLAIT_OK;
    PLI_TRY(pli_inherit_hear(h, &figure));
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int32_t k = 0; k < h->workers * n; k++) sum[k % n] += figure[k];
    return PLAIT_OK;
}
