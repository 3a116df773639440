/* Sums that may have to be made again: a mirror's own part is kept until the sum is applied. See mirror.h. */
#include "table/copies/mirror_impl.h"

#include "table/state/values.h"

plait_status pli_mirror_result(pli_mirror *mirror, void **values_out, plait_error *err) {
    const size_t bytes = (size_t)(mirror->first->n * mirror->spec->sum_width);
    if (mirror->result == NULL || mirror->result_bytes < bytes) {
        pli_free(mirror->result);
        mirror->result = pli_aligned(bytes);
        mirror->result_bytes = mirror->result != NULL ? bytes : 0;
    }
    *values_out = mirror->result;
    return mirror->result != NULL || bytes == 0 ? PLAIT_OK : pli_mirror_no_memory(mirror, err);
}

void pli_mirror_use_result(pli_mirror *mirror) {
    pli_sum *sum = mirror->first;
    if (sum->values == NULL) return; /* a list */
    if (sum->values != sum->own.sum) pli_free(sum->values);
    sum->values = mirror->result;
    mirror->result = NULL;
}

void pli_mirror_keep_result(pli_mirror *mirror, pli_sum *sum) {
    if (sum->values == NULL || sum->values == sum->own.sum || mirror->result != NULL) return;
    mirror->result = sum->values;
    sum->values = NULL;
}

plait_status pli_mirror_put_back(pli_mirror *mirror, plait_error *err) {
    pli_sum           *sum = mirror->first;
    const plait_status status = mirror->coded != NULL ? pli_coded_put_back(mirror->coded, &sum->own, err) : PLAIT_OK;
    mirror->first = NULL;
    mirror->last = &mirror->first;
    mirror->keeps = true;
    mirror->kept = sum->own;
    mirror->kept_incs = sum->incs;
    mirror->pushes -= sum->pushed;
    mirror->taken = sum->clock;
    if (sum->values == sum->own.sum) sum->values = NULL;
    pli_pending_init(&sum->own, mirror->spec, PLI_SUM_EXTRA);
    pli_mirror_free_sum(sum, mirror->workers);
    return status;
}

/* What has come since becomes part of what was put back, and all of it is pending. */
plait_status pli_mirror_join(pli_mirror *mirror, plait_error *err) {
    pli_pending *more = &mirror->pending;
    const bool   keyed = mirror->spec->keyed;
    if (more->touched)
        PLI_TRY(pli_pending_merge(&mirror->kept, keyed ? more->set.n : more->high - more->low,
                                  keyed ? more->set.keys : NULL, more->low,
                                  keyed || more->sum == NULL
                                      ? more->sum
                                      : pli_at(more->sum, more->low * pli_sum_row_bytes(mirror->spec)),
                                  more->examples, err));
    pli_pending_clear(more);
    pli_pending_destroy(&mirror->spare);
    mirror->spare = *more;
    mirror->pending = mirror->kept;
    mirror->incs += mirror->kept_incs;
    mirror->keeps = false;
    return PLAIT_OK;
}
