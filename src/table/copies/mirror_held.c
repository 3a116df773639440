/* Sums that may have to be made again: a mirror's own part is kept until the sum is applied. See mirror.h. */
#include "table/copies/mirror_impl.h"

#include "table/events.h"
#include "table/state/values.h"

plait_status pli_mirror_result(pli_mirror *mirror, void **values_out, plait_error *err) {
    const size_t bytes = (size_t)(pli_mirror_newest(mirror)->n * mirror->spec->sum_width);
    if (mirror->result == NULL || mirror->result_bytes < bytes) {
        pli_free(mirror->result);
        mirror->result = pli_aligned(bytes);
        mirror->result_bytes = mirror->result != NULL ? bytes : 0;
    }
    *values_out = mirror->result;
    return mirror->result != NULL || bytes == 0 ? PLAIT_OK : pli_mirror_no_memory(mirror, err);
}

static void use_result(pli_mirror *mirror, pli_sum *sum) {
    if (sum->values == NULL) return; /* a list */
    if (sum->values != sum->own.sum) pli_free(sum->values);
    sum->values = mirror->result;
    mirror->result = NULL;
}

plait_status pli_mirror_made(pli_mirror *mirror, plait_error *err) {
    pli_sum *sum = pli_mirror_newest(mirror);
    if (sum->made) return PLAIT_OK;
    sum->made = true;
    mirror->stead = -1;
    if (mirror->coded != NULL) pli_coded_settle(mirror->coded);
    if (sum->pushed) pli_raise_push(mirror->sink, mirror->rank, PLI_EVENT_PUSH, mirror->spec->id, sum->clock);
    if (pli_sum_is_gathered(sum->form)) return mirror->coded != NULL ? pli_mirror_decode(mirror, sum, err) : PLAIT_OK;
    use_result(mirror, sum);
    return PLAIT_OK;
}

void pli_mirror_keep_result(pli_mirror *mirror, pli_sum *sum) {
    if (sum->values == NULL || sum->values == sum->own.sum || mirror->result != NULL) return;
    mirror->result = sum->values;
    mirror->result_bytes = (size_t)(sum->n * mirror->spec->sum_width);
    sum->values = NULL;
}

static void unlink_newest(pli_mirror *mirror) {
    mirror->last = &mirror->first;
    while ((*mirror->last)->next != NULL) mirror->last = &(*mirror->last)->next;
    *mirror->last = NULL;
}

plait_status pli_mirror_put_back(pli_mirror *mirror, plait_error *err) {
    pli_sum           *sum = pli_mirror_newest(mirror);
    const plait_status status = mirror->coded != NULL ? pli_coded_put_back(mirror->coded, &sum->own, err) : PLAIT_OK;
    unlink_newest(mirror);
    mirror->keeps = true;
    mirror->kept = sum->own;
    mirror->stood = sum->stood;
    mirror->kept_incs = sum->incs;
    mirror->pushes -= sum->pushed;
    mirror->taken = sum->clock;
    if (sum->values == sum->own.sum) sum->values = NULL;
    pli_pending_init(&sum->own, mirror->spec, PLI_SUM_EXTRA);
    pli_pending_init(&sum->stood, mirror->spec, PLI_SUM_EXTRA);
    pli_mirror_free_sum(sum, mirror->workers);
    return status;
}

void pli_mirror_stand_in(pli_mirror *mirror, int32_t highest) {
    if (highest > mirror->stead) mirror->stead = highest;
}

void pli_mirror_set_aside(pli_mirror *mirror) {
    mirror->keeps = true;
    mirror->kept = mirror->pending;
    mirror->kept_incs = mirror->incs;
    mirror->incs = 0;
    mirror->pending = mirror->spare;
    pli_pending_init(&mirror->spare, mirror->spec, PLI_SUM_EXTRA);
}

/* The pushes that have come since join those that were put back, and all are pending. Rows that are replaced stay
 * apart: they have another turn among the clock's pushes. */
plait_status pli_mirror_join(pli_mirror *mirror, plait_error *err) {
    pli_pending *more = &mirror->pending;
    const bool   keyed = mirror->spec->keyed;
    if (more->touched)
        PLI_TRY(pli_pending_merge(mirror->spec->combine->replaces ? &mirror->stood : &mirror->kept,
                                  keyed ? more->set.n : more->high - more->low, keyed ? more->set.keys : NULL,
                                  more->low,
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
