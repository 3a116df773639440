/* Sums of a mirror to which each worker brings a message: a list of rows, or what filters have made of its part. All
 * workers gather all messages, and add them in the order of workers, so mirrors stay equal. See mirror.h, and coded.h
 * for filters. */
#include "table/copies/mirror_impl.h"

#include <string.h>

#include "table/server/wire.h"
#include "table/state/updates.h"
#include "table/state/values.h"

/* --- filtered parts of ranges ------------------------------------------------------------------------------------- */

/* Behind the worker's own part: in whose stead it adds, and what. */
static plait_status put_stood(pli_mirror *mirror, const pli_sum *sum, pli_bytes *body, plait_error *err) {
    unsigned char *at = pli_bytes_room(body, PLI_VARINT_MAX);
    if (at == NULL) return pli_mirror_no_memory(mirror, err);
    body->n += pli_varint_put(at, (uint64_t)sum->stead);
    return pli_coded_put(mirror->coded, 0, sum->clock, &sum->stood, body, err);
}

/* This worker's part as a message. Values that are in nobody's way are made when all parts are there. */
plait_status pli_mirror_make_coded(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    pli_bytes    body = { 0 };
    plait_status status = pli_coded_put(mirror->coded, 0, sum->clock, &sum->own, &body, err);
    if (status >= 0 && sum->stood.touched) status = put_stood(mirror, sum, &body, err);
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
    sum->touched = push->touched;
    sum->examples = push->examples;
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

enum { TOUCHED = 1, INCREASING = 2, STEAD = 8 /* flags from this bit on: 1 + the number in whose stead it is */ };

/* A worker's list: head, keys [n], values [n, cols], padded to 8. Where rows are replaced there may be another behind
 * it, of what the worker has added in dead ones' stead. */
typedef struct list_head {
    int64_t flags, examples, n;
} list_head;

/* What a worker's message holds. */
typedef struct list {
    pli_push_part own, stood;
    int32_t       stead; /* -1: nothing was stood in for */
    pli_decoded   decoded[2];
} list;

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

/* Returns where the next one goes. */
static unsigned char *write_list(const pli_spec *spec, const list_head *head, const void *keys, const void *values,
                                 unsigned char *at) {
    const size_t bytes = list_bytes(spec, head->n);
    memset(at + bytes - 8, 0, 8);
    memcpy(at, head, sizeof *head);
    if (head->n > 0) {
        memcpy(at + sizeof *head, keys, (size_t)head->n * 8);
        memcpy(at + sizeof *head + head->n * 8, values, (size_t)(head->n * pli_sum_row_bytes(spec)));
    }
    return at + bytes;
}

static unsigned char *write_part(const pli_spec *spec, const pli_push_part *part, int32_t stead, unsigned char *at) {
    const int64_t   flags = (part->touched ? TOUCHED : 0) | (part->increasing ? INCREASING : 0);
    const list_head head = { .flags = flags | (int64_t)(stead + 1) << STEAD, .examples = part->examples, .n = part->n };
    return write_list(spec, &head, part->keys, part->values, at);
}

static unsigned char *write_pending(const pli_pending *own, int32_t stead, unsigned char *at) {
    pli_push_part part = pli_push_part_of(own);
    part.increasing = pli_rowset_is_increasing(&own->set);
    return write_part(own->spec, &part, stead, at);
}

plait_status pli_mirror_make_list(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const pli_spec *spec = mirror->spec;
    const bool      stood = sum->stood.touched;
    if (mirror->coded != NULL) return pli_mirror_make_coded(mirror, sum, err);
    const size_t bytes = list_bytes(spec, sum->own.set.n) + (stood ? list_bytes(spec, sum->stood.set.n) : 0);
    sum->list = new_list(mirror, sum->clock, bytes);
    sum->piece = pli_calloc((size_t)mirror->workers, sizeof *sum->piece);
    if (sum->list == NULL || sum->piece == NULL) return pli_mirror_no_memory(mirror, err);
    unsigned char *at = write_pending(&sum->own, -1, pli_msg_body(sum->list));
    if (stood) (void)write_pending(&sum->stood, sum->stead, at);
    return PLAIT_OK;
}

/* Reads one list; *at moves on. */
static plait_status read_part(const pli_shard *shard, int32_t worker, const unsigned char **at,
                              const unsigned char *end, pli_push_part *part, int32_t *stead, plait_error *err) {
    const unsigned char *body = *at;
    const uint64_t       bytes = (uint64_t)(end - body);
    list_head            head = { 0 };
    if (bytes >= sizeof head) memcpy(&head, body, sizeof head);
    if (bytes < sizeof head || head.n < 0 || (uint64_t)head.n > bytes / (uint64_t)pli_sum_row_bytes(&shard->spec) ||
        list_bytes(&shard->spec, head.n) > bytes)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: the push of rank %d is cut short", shard->spec.name, worker);
    *part = (pli_push_part){ .touched = (head.flags & TOUCHED) != 0,
                             .keyed = true,
                             .increasing = (head.flags & INCREASING) != 0,
                             .examples = head.examples,
                             .n = head.n,
                             .keys = (const uint64_t *)(body + sizeof head),
                             .values = body + sizeof head + head.n * 8 };
    const int64_t who = (head.flags >> STEAD) - 1;
    *stead = who >= -1 && who < INT32_MAX ? (int32_t)who : INT32_MAX; /* no worker has that number */
    *at += list_bytes(&shard->spec, head.n);
    return pli_shard_check(shard, part, err);
}

static plait_status must_be_in_stead(const pli_mirror *mirror, int32_t worker, int32_t stead, plait_error *err) {
    return mirror->spec->combine->replaces && stead >= 0 && stead < mirror->workers
               ? PLAIT_OK
               : pli_fail(err, PLAIT_EFORMAT, "table %s: rank %d pushes in the stead of rank %d", mirror->spec->name,
                          worker, stead);
}

static plait_status read_plain(const pli_mirror *mirror, int32_t worker, const unsigned char *at,
                               const unsigned char *end, list *l, plait_error *err) {
    int32_t none;
    PLI_TRY(read_part(&mirror->shard, worker, &at, end, &l->own, &none, err));
    if (at == end) return PLAIT_OK;
    PLI_TRY(read_part(&mirror->shard, worker, &at, end, &l->stood, &l->stead, err));
    PLI_TRY(must_be_in_stead(mirror, worker, l->stead, err));
    return must_end(mirror, worker, at == end, err);
}

static plait_status read_filtered(const pli_mirror *mirror, const pli_sum *sum, int32_t worker,
                                  const unsigned char *at, const unsigned char *end, list *l, plait_error *err) {
    uint64_t number;
    PLI_TRY(pli_coded_take_rows(mirror->coded, worker, sum->clock, &at, end, &l->own, &l->decoded[0], err));
    PLI_TRY(pli_shard_check(&mirror->shard, &l->own, err));
    if (at == end) return PLAIT_OK;
    PLI_TRY(must_end(mirror, worker, pli_varint_get(&at, end, &number) && number < INT32_MAX, err));
    l->stead = (int32_t)number;
    PLI_TRY(must_be_in_stead(mirror, worker, l->stead, err));
    PLI_TRY(pli_coded_take_rows(mirror->coded, worker, sum->clock, &at, end, &l->stood, &l->decoded[1], err));
    PLI_TRY(must_end(mirror, worker, at == end, err));
    return pli_shard_check(&mirror->shard, &l->stood, err);
}

/* Reads what a worker has brought; the caller frees what was decoded. Of a worker that is absent from a carried
 * collective (comm/carried.h), or left out of a step (comm/agreed_sums.h), there is nothing, not even a head. */
static plait_status read_list(const pli_mirror *mirror, const pli_sum *sum, int32_t worker, list *l,
                              plait_error *err) {
    const pli_msg       *msg = sum->piece[worker];
    const unsigned char *at = pli_msg_body(msg), *end = at + msg->head.body_bytes;
    *l = (list){ .own = { .keyed = true }, .stood = { .keyed = true }, .stead = -1 };
    if (at == end) return PLAIT_OK;
    return mirror->coded != NULL && !sum->decoded ? read_filtered(mirror, sum, worker, at, end, l, err)
                                                  : read_plain(mirror, worker, at, end, l, err);
}

static void free_decoded(list *l) {
    for (int i = 0; i < 2; i++) pli_decoded_free(&l->decoded[i]);
}

/* Makes a worker's filtered list a plain one. */
static plait_status decode_list(const pli_mirror *mirror, pli_sum *sum, int32_t worker, plait_error *err) {
    const pli_spec *spec = mirror->spec;
    list            l;
    pli_msg        *plain = NULL;
    sum->decoded = false;
    plait_status status = read_list(mirror, sum, worker, &l, err);
    sum->decoded = true;
    if (status >= 0) {
        plain = pli_msg_new(list_bytes(spec, l.own.n) + (l.stead < 0 ? 0 : list_bytes(spec, l.stood.n)));
        if (plain == NULL) status = pli_mirror_no_memory(mirror, err);
    }
    if (status >= 0) {
        unsigned char *at = write_part(spec, &l.own, -1, pli_msg_body(plain));
        if (l.stead >= 0) (void)write_part(spec, &l.stood, l.stead, at);
        pli_msg_free(&sum->piece[worker]);
        sum->piece[worker] = plain;
    }
    free_decoded(&l);
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

/* Puts the parts in the order in which they count. Returns how many. */
static int32_t in_order(int32_t workers, const list *lists, pli_push_part *parts) {
    int32_t n = 0;
    for (int32_t w = 0; w < workers; w++) {
        parts[n++] = lists[w].own;
        for (int32_t heir = 0; heir < workers; heir++)
            if (lists[heir].stead == w) parts[n++] = lists[heir].stood;
    }
    return n;
}

plait_status pli_mirror_apply_lists(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const int32_t  workers = mirror->workers;
    pli_push_part *parts = pli_array((size_t)workers, 2 * sizeof *parts);
    list          *lists = pli_calloc((size_t)workers, sizeof *lists);
    plait_status   status = parts == NULL || lists == NULL ? pli_mirror_no_memory(mirror, err) : PLAIT_OK;
    mirror->keys = 0;
    for (int32_t w = 0; status >= 0 && w < workers; w++) {
        status = read_list(mirror, sum, w, &lists[w], err);
        if (status >= 0) mirror->keys += lists[w].own.n + lists[w].stood.n;
    }
    if (status >= 0)
        status = pli_shard_apply_clock(&mirror->shard, sum->clock, in_order(workers, lists, parts), parts, err);
    for (int32_t w = 0; lists != NULL && w < workers; w++) free_decoded(&lists[w]);
    pli_free(lists);
    pli_free(parts);
    return status;
}
