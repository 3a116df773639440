/* See slice.h. */
#include "table/state/slice.h"

#include <string.h>

#include "table/server/wire.h"
#include "table/state/snap.h"
#include "table/state/values.h"

enum { SLICE_BYTES = 1 << 20,
       SLOTS = 1 << 17,   /* of a map, looked through at a time */
       FORESEEN = 1 << 24 /* keys for which a new map may have room at once, on the word of a message */ };

#ifdef PLI_TESTING
_Atomic int64_t pli_slice_bytes = SLICE_BYTES;
int64_t         pli_slice_size(void) { return pli_slice_bytes; }
static uint64_t slots_at_a_time(void) { return pli_slice_bytes < SLICE_BYTES ? 2 : SLOTS; }
#else
int64_t         pli_slice_size(void) { return SLICE_BYTES; }
static uint64_t slots_at_a_time(void) { return SLOTS; }
#endif

/* Bytes of a row in each array of a slice with these flags, the penalty factors in the place of keys. */
static int64_t row_bytes_of(const pli_store *store, int32_t array, uint32_t flags) {
    if (array < PLI_STATE_KEYS) return pli_state_row_bytes(store->spec, array);
    return flags & PLI_SLICE_PENALTY ? pli_row_bytes(store->spec) : 0;
}

/* Bytes of a row's key and stamp, in front of the arrays. */
static int64_t bytes_in_front(const pli_store *store, uint32_t flags) {
    return (store->first < 0 ? (int64_t)sizeof(uint64_t) : 0) +
           (flags & PLI_SLICE_STAMPS ? (int64_t)sizeof(int64_t) : 0);
}

static int64_t all_bytes_of_row(const pli_store *store, uint32_t flags) {
    int64_t bytes = bytes_in_front(store, flags);
    for (int32_t a = PLI_STATE_VALUES; a <= PLI_STATE_KEYS; a++) bytes += row_bytes_of(store, a, flags);
    return bytes;
}

static uint64_t array_bytes(const pli_store *store, int32_t array, uint32_t flags, int64_t n) {
    return pli_pad8((uint64_t)(n * row_bytes_of(store, array, flags)));
}

static uint64_t bytes_of(const pli_store *store, uint32_t flags, int64_t n) {
    uint64_t bytes = (uint64_t)(n * bytes_in_front(store, flags));
    for (int32_t a = PLI_STATE_VALUES; a <= PLI_STATE_KEYS; a++) bytes += array_bytes(store, a, flags, n);
    return bytes;
}

/* --- sending ------------------------------------------------------------------------------------------------------ */

void pli_slices_open(pli_slices *slices) {
    pli_slices_close(slices);
    slices->open = true;
}

void pli_slices_close(pli_slices *slices) {
    pli_free(slices->keys);
    *slices = (pli_slices){ 0 };
}

void pli_slices_zeroed(pli_slices *slices, const pli_shard *shard) {
    if (slices->open && shard->spec.rows == 0) pli_slices_open(slices);
}

/* Looks on for the keys of the next rows. false: out of memory. *ready_out: they are known, if there are such rows. */
static bool find_keys(pli_slices *s, const pli_store *store, bool *ready_out) {
    const pli_keymap *map = &store->map;
    *ready_out = store->first >= 0 || s->sent == map->n || (s->sent < s->known && s->at > map->mask);
    if (*ready_out) return true;
    if (s->sent == s->known) { /* of those that have come since, too */
        pli_free(s->keys);
        s->keys = pli_array((size_t)(map->n - s->sent), sizeof *s->keys);
        if (s->keys == NULL) return false;
        s->found = s->sent;
        s->known = map->n;
        s->at = 0;
        s->mask = map->mask;
    }
    if (s->mask != map->mask) s->at = 0; /* it has grown, so its keys lie elsewhere */
    s->mask = map->mask;
    *ready_out = pli_keymap_keys_within(map, &s->at, slots_at_a_time(), s->found, s->known - s->found, s->keys);
    return true;
}

static uint32_t flags_of_next(const pli_slices *s, const pli_store *store) {
    return (store->penalty != NULL ? PLI_SLICE_PENALTY : 0) |
           (pli_store_has_stamps(store, s->sent, store->rows - s->sent) ? PLI_SLICE_STAMPS : 0);
}

static int64_t rows_of_next(const pli_slices *s, const pli_store *store) {
    const int64_t rest = (store->first < 0 && s->known > s->sent ? s->known : store->rows) - s->sent;
    const int64_t each = pli_slice_size() / all_bytes_of_row(store, flags_of_next(s, store));
    return rest < each ? rest : rest < 1 ? 0 : each < 1 ? 1 : each;
}

pli_msg *pli_slices_next(pli_slices *slices, const pli_shard *shard) {
    const pli_store *store = &shard->store;
    const uint32_t   flags = flags_of_next(slices, store);
    bool             ready;
    if (!find_keys(slices, store, &ready)) return NULL;
    const int64_t  n = ready ? rows_of_next(slices, store) : 0;
    const bool     last = ready && slices->sent + n == store->rows;
    pli_wire_slice slice = { .table = (uint32_t)shard->spec.id, .first = slices->sent, .n = n, .rows = store->rows };
    slice.flags = (last ? PLI_SLICE_LAST : 0) | flags;
    pli_msg *msg = pli_msg_new(sizeof slice + bytes_of(store, flags, n));
    if (msg == NULL) return NULL;
    unsigned char *at = pli_msg_body(msg);
    memcpy(at, &slice, sizeof slice);
    at += sizeof slice;
    if (store->first < 0 && n > 0) {
        memcpy(at, slices->keys + (slices->sent - slices->found), (size_t)n * sizeof *slices->keys);
        at += n * (int64_t)sizeof *slices->keys;
    }
    if (flags & PLI_SLICE_STAMPS) {
        pli_store_copy_stamps(store, slices->sent, n, (int64_t *)at);
        at += n * (int64_t)sizeof(int64_t);
    }
    for (int32_t a = PLI_STATE_VALUES; a <= PLI_STATE_KEYS; a++) {
        const uint64_t bytes = array_bytes(store, a, flags, n);
        if (bytes == 0) continue;
        memset(at + bytes - 8, 0, 8); /* what it is padded with */
        if (a < PLI_STATE_KEYS) pli_snap_copy(store, a, slices->sent, n, at);
        else memcpy(at, pli_at(store->penalty, slices->sent * pli_row_bytes(store->spec)),
                    (size_t)(n * pli_row_bytes(store->spec)));
        at += bytes;
    }
    slices->sent += n;
    if (last) pli_slices_close(slices);
    msg->head.kind = PLI_SLICE;
    return msg;
}

/* --- taking ------------------------------------------------------------------------------------------------------- */

static plait_status malformed(const pli_shard *shard, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "table %s: a slice of its rows is malformed", shard->spec.name);
}

static plait_status no_memory(const pli_shard *shard, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of table %s", shard->spec.name);
}

/* Do these rows come next, and is all of them there? */
static bool is_sound(const pli_store *store, const pli_wire_slice *slice, uint64_t bytes) {
    const bool    penalty = (slice->flags & PLI_SLICE_PENALTY) != 0;
    const bool    last = (slice->flags & PLI_SLICE_LAST) != 0, sparse = store->first < 0;
    const int64_t most = (int64_t)(bytes / (uint64_t)all_bytes_of_row(store, slice->flags));
    if (!pli_store_lacks_rows(store) || slice->first != store->here || slice->n < 0 || slice->n > most) return false;
    if (penalty && sparse) return false;
    if ((slice->flags & PLI_SLICE_STAMPS) && !store->spec->combine->replaces) return false;
    if (!sparse && (slice->n > store->rows - slice->first || last != (slice->first + slice->n == store->rows)))
        return false;
    return bytes == bytes_of(store, slice->flags, slice->n);
}

/* Adds the keys of a sparse shard, which are all new. */
static plait_status take_keys(pli_shard *shard, const pli_wire_slice *slice, const uint64_t *keys, plait_error *err) {
    pli_store *store = &shard->store;
    for (int64_t i = 0; i < slice->n; i++)
        if (pli_placement_shard_of(&shard->spec.placement, keys[i]) != shard->index) return malformed(shard, err);
    const int64_t most = store->map.n < FORESEEN / 16 ? FORESEEN : 16 * store->map.n;
    (void)pli_keymap_reserve(&store->map, slice->rows < most ? slice->rows : most); /* whenever it grows it moves all */
    if (!pli_grow((void **)&shard->at, &shard->at_capacity, slice->n, sizeof *shard->at) ||
        !pli_store_take_rows(store, slice->n, keys, shard->at))
        return no_memory(shard, err);
    return store->rows == slice->first + slice->n ? PLAIT_OK : malformed(shard, err);
}

static plait_status take_penalty(pli_shard *shard, const pli_wire_slice *slice, const void *from, plait_error *err) {
    pli_store    *store = &shard->store;
    const int64_t row_bytes = pli_row_bytes(store->spec);
    if (store->penalty == NULL) store->penalty = pli_aligned((size_t)(store->rows * row_bytes));
    if (store->penalty == NULL) return no_memory(shard, err);
    memcpy(pli_at(store->penalty, slice->first * row_bytes), from, (size_t)(slice->n * row_bytes));
    return PLAIT_OK;
}

plait_status pli_slice_take(pli_shard *shard, const pli_msg *msg, plait_error *err) {
    pli_store     *store = &shard->store;
    pli_wire_slice slice;
    if (msg->head.body_bytes < sizeof slice || msg->offset % 8 != 0) return malformed(shard, err);
    memcpy(&slice, pli_msg_body(msg), sizeof slice);
    const bool penalty = (slice.flags & PLI_SLICE_PENALTY) != 0;
    if (!is_sound(store, &slice, msg->head.body_bytes - sizeof slice)) return malformed(shard, err);
    const unsigned char *at = (const unsigned char *)pli_msg_body(msg) + sizeof slice;
    if (store->first < 0 && slice.n > 0) {
        PLI_TRY(take_keys(shard, &slice, (const uint64_t *)at, err));
        at += slice.n * (int64_t)sizeof(uint64_t);
    }
    if (!pli_store_own(store)) return no_memory(shard, err);
    if (slice.flags & PLI_SLICE_STAMPS) {
        if (!pli_store_put_stamps(store, slice.first, slice.n, (const int64_t *)at)) return no_memory(shard, err);
        at += slice.n * (int64_t)sizeof(int64_t);
    }
    store->here += slice.n;
    for (int32_t a = PLI_STATE_VALUES; a < PLI_STATE_KEYS; a++) {
        const uint64_t bytes = array_bytes(store, a, slice.flags, slice.n);
        if (bytes > 0) pli_snap_put(store, a, slice.first, slice.n, NULL, at);
        at += bytes;
    }
    if (penalty && slice.n > 0) PLI_TRY(take_penalty(shard, &slice, at, err));
    if (slice.flags & PLI_SLICE_LAST) store->here = PLI_ALL_HERE;
    return PLAIT_OK;
}
