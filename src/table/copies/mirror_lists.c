/* Sums of a mirror to which each worker brings a message: a list of rows, or what filters have made of its part. All
 * workers gather all messages, and add them in the order of workers, so mirrors stay equal. See mirror.h, and coded.h
 * for filters. */
#include "table/copies/mirror_impl.h"

#include <string.h>

#include "table/server/wire.h"
#include "table/state/updates.h"
#include "table/state/values.h"

/* --- filtered parts of ranges ------------------------------------------------------------------------------------- */

/* This worker's part as a message. Values that are in nobody's way are made when all parts are there. */
plait_status pli_mirror_make_coded(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    pli_bytes    body = { 0 };
    plait_status status = pli_coded_put(mirror->coded, 0, sum->clock, &sum->own, &body, err);
    sum->piece = pli_calloc((size_t)mirror->workers, sizeof *sum->piece);
    if (status >= 0) sum->list = pli_msg_new((size_t)body.n);
    if (status >= 0 && (sum->list == NULL || sum->piece == NULL)) status = pli_mirror_no_memory(mirror, err);
    if (status >= 0) memcpy(pli_msg_body(sum->list), body.data, (size_t)body.n);
    pli_bytes_free(&body);
    return status;
}

static plait_status must_end(const pli_mirror *mirror, int32_t worker, bool ends, plait_error *err) {
    return ends ? PLAIT_OK
                : pli_fail(err, PLAIT_EFORMAT, "table %s: the push of rank %d has bytes behind its end",
                           mirror->spec->name, worker);
}

static void put_whole_push(const pli_mirror *mirror, pli_sum *sum, const pli_coded_push *push) {
    const pli_pending whole = { .spec = mirror->spec, .touched = push->touched, .examples = push->examples };
    pli_mirror_put_extra(&whole, sum->values, sum->n - PLI_SUM_EXTRA);
    sum->to_code = false;
}

void pli_mirror_was_coded(pli_mirror *mirror, const pli_coded_push *push) {
    put_whole_push(mirror, mirror->first, push);
}

/* Adds the parts up, in the order of workers. */
static plait_status add_coded(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const pli_spec *spec = mirror->spec;
    pli_coded_push  push = { 0 };
    sum->n = pli_mirror_sum_values(mirror, PLI_SUM_CODED);
    sum->values = pli_aligned((size_t)(sum->n * spec->sum_width));
    if (sum->values == NULL) return pli_mirror_no_memory(mirror, err);
    pli_updates_clear(spec, sum->n, sum->values);
    for (int32_t w = 0; w < mirror->workers; w++) {
        const unsigned char *at = pli_msg_body(sum->piece[w]);
        const unsigned char *end = at + sum->piece[w]->head.body_bytes;
        if (at == end) continue; /* as of read_list */
        PLI_TRY(pli_coded_add(mirror->coded, w, sum->clock, &at, end, sum->values, &push, err));
        PLI_TRY(must_end(mirror, w, at == end, err));
    }
    put_whole_push(mirror, sum, &push);
    return PLAIT_OK;
}

plait_status pli_mirror_apply_coded(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    PLI_TRY(add_coded(mirror, sum, err));
    return pli_mirror_apply_dense(mirror, sum, 0, sum->n, err);
}

/* --- lists of rows ------------------------------------------------------------------------------------------------ */

enum { TOUCHED = 1, INCREASING = 2 };

/* A worker's list: head, keys [n], values [n, cols], padded to 8. */
typedef struct list_head {
    int64_t flags, examples, n;
} list_head;

static size_t list_bytes(const pli_spec *spec, int64_t n) {
    return sizeof(list_head) + (size_t)n * 8 + (size_t)pli_pad8((uint64_t)(n * pli_sum_row_bytes(spec)));
}

/* Makes a message for a list, in the memory of the one before the last if nobody reads that any more. */
static pli_msg *new_list(pli_mirror *mirror, int64_t clock, size_t bytes) {
    pli_slab **kept = &mirror->lists[clock & 1];
    if (*kept == NULL || !pli_slab_is_mine(*kept) || (*kept)->bytes < bytes || (*kept)->bytes / 4 > bytes) {
        pli_slab_unref(kept);
        *kept = pli_slab_new(bytes + bytes / 8);
    }
    return *kept == NULL ? NULL : pli_msg_of_slab(*kept, 0, bytes);
}

static void write_list(const pli_spec *spec, const list_head *head, const void *keys, const void *values,
                       pli_msg *msg) {
    unsigned char *at = pli_msg_body(msg);
    memset(at + msg->head.body_bytes - 8, 0, 8);
    memcpy(at, head, sizeof *head);
    if (head->n == 0) return;
    memcpy(at + sizeof *head, keys, (size_t)head->n * 8);
    memcpy(at + sizeof *head + head->n * 8, values, (size_t)(head->n * pli_sum_row_bytes(spec)));
}

plait_status pli_mirror_make_list(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const pli_spec    *spec = mirror->spec;
    const pli_pending *own = &sum->own;
    list_head          head = { .examples = own->examples, .n = own->set.n };
    if (mirror->coded != NULL) return pli_mirror_make_coded(mirror, sum, err);
    head.flags = (own->touched ? TOUCHED : 0) | (pli_rowset_is_increasing(&own->set) ? INCREASING : 0);
    sum->list = new_list(mirror, sum->clock, list_bytes(spec, head.n));
    sum->piece = pli_calloc((size_t)mirror->workers, sizeof *sum->piece);
    if (sum->list == NULL || sum->piece == NULL) return pli_mirror_no_memory(mirror, err);
    write_list(spec, &head, own->set.keys, own->sum, sum->list);
    return PLAIT_OK;
}

/* Of a worker that is absent from a carried collective (comm/carried.h), or left out of a step (comm/agreed_sums.h),
 * there is nothing, not even a head. */
static plait_status read_list(const pli_shard *shard, const pli_msg *msg, int32_t worker, pli_push_part *part,
                              plait_error *err) {
    const unsigned char *list = pli_msg_body(msg);
    size_t               bytes = msg->head.body_bytes;
    list_head            head = { 0 };
    *part = (pli_push_part){ .keyed = true };
    if (bytes == 0) return PLAIT_OK;
    if (bytes >= sizeof head) memcpy(&head, list, sizeof head);
    if (bytes < sizeof head || head.n < 0 || (uint64_t)head.n > bytes / (uint64_t)pli_sum_row_bytes(&shard->spec) ||
        list_bytes(&shard->spec, head.n) != bytes)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: the push of rank %d is cut short", shard->spec.name, worker);
    *part = (pli_push_part){ .touched = (head.flags & TOUCHED) != 0,
                             .keyed = true,
                             .increasing = (head.flags & INCREASING) != 0,
                             .examples = head.examples,
                             .n = head.n,
                             .keys = (const uint64_t *)(list + sizeof head),
                             .values = list + sizeof head + head.n * 8 };
    return pli_shard_check(shard, part, err);
}

static plait_status read_filtered(const pli_mirror *mirror, const pli_sum *sum, int32_t worker, pli_push_part *part,
                                  pli_decoded *decoded, plait_error *err) {
    const pli_msg       *msg = sum->piece[worker];
    const unsigned char *at = pli_msg_body(msg), *end = at + msg->head.body_bytes;
    *part = (pli_push_part){ .keyed = true };
    if (at == end) return PLAIT_OK; /* as of read_list */
    PLI_TRY(pli_coded_take_rows(mirror->coded, worker, sum->clock, &at, end, part, decoded, err));
    PLI_TRY(must_end(mirror, worker, at == end, err));
    return pli_shard_check(&mirror->shard, part, err);
}

/* Makes a worker's filtered list a plain one. */
static plait_status decode_list(pli_mirror *mirror, pli_sum *sum, int32_t worker, plait_error *err) {
    pli_push_part part;
    pli_decoded   decoded = { 0 };
    pli_msg      *plain = NULL;
    plait_status  status = read_filtered(mirror, sum, worker, &part, &decoded, err);
    if (status >= 0 && (plain = pli_msg_new(list_bytes(mirror->spec, part.n))) == NULL)
        status = pli_mirror_no_memory(mirror, err);
    if (status >= 0) {
        const list_head head = { .flags = (part.touched ? TOUCHED : 0) | (part.increasing ? INCREASING : 0),
                                 .examples = part.examples, .n = part.n };
        write_list(mirror->spec, &head, part.keys, part.values, plain);
        pli_msg_free(&sum->piece[worker]);
        sum->piece[worker] = plain;
    }
    pli_decoded_free(&decoded);
    return status;
}

plait_status pli_mirror_decode(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    sum->decoded = true;
    if (sum->form == PLI_SUM_CODED) {
        sum->form = PLI_SUM_DENSE;
        PLI_TRY(add_coded(mirror, sum, err));
        sum->rest = sum->n;
        return PLAIT_OK;
    }
    for (int32_t w = 0; w < mirror->workers; w++)
        if (sum->piece[w]->head.body_bytes > 0) PLI_TRY(decode_list(mirror, sum, w, err));
    return PLAIT_OK;
}

plait_status pli_mirror_apply_lists(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const int32_t  workers = mirror->workers;
    pli_push_part *parts = pli_array((size_t)workers, sizeof *parts);
    pli_decoded   *decoded = pli_calloc((size_t)workers, sizeof *decoded);
    plait_status   status = parts == NULL || decoded == NULL ? pli_mirror_no_memory(mirror, err) : PLAIT_OK;
    mirror->keys = 0;
    for (int32_t w = 0; status >= 0 && w < workers; w++) {
        status = mirror->coded != NULL && !sum->decoded ? read_filtered(mirror, sum, w, &parts[w], &decoded[w], err)
                                       : read_list(&mirror->shard, sum->piece[w], w, &parts[w], err);
        if (status >= 0) mirror->keys += parts[w].n;
    }
    if (status >= 0) status = pli_shard_apply_clock(&mirror->shard, sum->clock, workers, parts, err);
    for (int32_t w = 0; decoded != NULL && w < workers; w++) pli_decoded_free(&decoded[w]);
    pli_free(decoded);
    pli_free(parts);
    return status;
}
