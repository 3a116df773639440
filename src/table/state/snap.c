/* Copy on write by pieces. See snap.h. */
#include "table/state/snap.h"

#include <string.h>

#include "table/state/values.h"

enum { PIECE_BYTES = 1 << 20 };

#ifdef PLI_TESTING
_Atomic int64_t pli_snap_piece_bytes = PIECE_BYTES;
static int64_t  piece_bytes(void) { return pli_snap_piece_bytes; }
#else
static int64_t piece_bytes(void) { return PIECE_BYTES; }
#endif

/* One piece: what was set aside of each array, and which arrays were taken or are no longer needed. */
struct pli_snap_piece {
    pli_slab *aside[PLI_STATE_KEYS];
    uint8_t   taken; /* bit a: array a was taken */
    bool      safe;  /* the store need keep nothing of it any more */
};
_Static_assert(PLI_STATE_KEYS <= 7, "a bit each, and one for the keys");

int64_t pli_state_row_bytes(const pli_spec *spec, int32_t array) {
    if (array == PLI_STATE_VALUES) return pli_row_bytes(spec);
    if (array == PLI_STATE_PAID) return spec->lazy ? 8 : 0;
    if (array == PLI_STATE_KEYS) return spec->rows == 0 ? 8 : 0;
    const bool slot = array >= PLI_STATE_SLOT && spec->ruled && array - PLI_STATE_SLOT < spec->rule.ops->slots;
    return slot ? pli_row_bytes(spec) : 0;
}

/* A power of two, so that all arrays' pieces are the same rows. */
int64_t pli_snap_piece_rows(const pli_spec *spec) {
    int64_t rows = 1, row_bytes = pli_row_bytes(spec) > 8 ? pli_row_bytes(spec) : 8;
    while (rows * 2 * row_bytes <= piece_bytes()) rows *= 2;
    return rows;
}

static int64_t rows_in(const pli_snap *snap, int64_t piece) {
    const int64_t rest = snap->rows - piece * snap->piece_rows;
    return rest < snap->piece_rows ? rest : snap->piece_rows;
}

/* Is this an array of which the store has not all rows? */
static bool is_in_slices(const pli_spec *spec, int32_t array) {
    return spec->sharded && array >= PLI_STATE_SLOT && array < PLI_STATE_PAID && pli_state_row_bytes(spec, array) > 0;
}

static bool make_aside(pli_snap *snap) {
    for (int32_t a = PLI_STATE_SLOT; a < PLI_STATE_PAID; a++)
        for (int64_t i = 0; is_in_slices(snap->store->spec, a) && i < snap->pieces; i++) {
            const int64_t row_bytes = pli_state_row_bytes(snap->store->spec, a);
            snap->piece[i].aside[a] = pli_slab_new((size_t)(rows_in(snap, i) * row_bytes));
            if (snap->piece[i].aside[a] == NULL) return false;
        }
    return true;
}

void pli_snap_keep_values(pli_snap *snap, int32_t array, int64_t first, int64_t n, const void *values) {
    const pli_spec *spec = snap->store->spec;
    for (int64_t i = 0; i < snap->pieces; i++) {
        const int64_t begin = (snap->first + i * snap->piece_rows) * spec->cols;
        const int64_t end = begin + rows_in(snap, i) * spec->cols;
        const int64_t low = first > begin ? first : begin, high = first + n < end ? first + n : end;
        if (low >= high) continue;
        memcpy(pli_at(snap->piece[i].aside[array]->memory, (low - begin) * spec->width),
               pli_at_const(values, (low - first) * spec->width), (size_t)((high - low) * spec->width));
    }
}

plait_status pli_snap_begin(pli_store *store, int64_t first, int64_t rows, pli_snap **snap_out, plait_error *err) {
    pli_snap *snap = pli_calloc(1, sizeof *snap);
    if (snap == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a snapshot of table %s", store->spec->name);
    *snap = (pli_snap){ .store = store, .first = first, .rows = rows, .units = store->units };
    snap->piece_rows = pli_snap_piece_rows(store->spec);
    snap->pieces = rows / snap->piece_rows + (rows % snap->piece_rows > 0);
    snap->piece = pli_calloc((size_t)snap->pieces, sizeof *snap->piece);
    if ((snap->piece == NULL && snap->pieces > 0) || !make_aside(snap)) {
        if (snap->piece == NULL) snap->pieces = 0;
        pli_snap_end(&snap);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a snapshot of table %s", store->spec->name);
    }
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++)
        if (pli_state_row_bytes(store->spec, a) > 0) snap->left += snap->pieces;
    store->snap = *snap_out = snap;
    return PLAIT_OK;
}

void pli_snap_end(pli_snap **snap_ptr) {
    pli_snap *snap = *snap_ptr;
    *snap_ptr = NULL;
    if (snap == NULL) return;
    snap->store->snap = NULL;
    for (int64_t i = 0; i < snap->pieces; i++)
        for (int32_t a = 0; a < PLI_STATE_KEYS; a++) pli_slab_unref(&snap->piece[i].aside[a]);
    pli_free(snap->keys);
    pli_free(snap->piece);
    pli_free(snap);
}

void pli_snap_release(pli_snap *snap) {
    for (int64_t i = 0; i < snap->pieces; i++) {
        pli_snap_piece *piece = &snap->piece[i];
        for (int32_t a = 0; a < PLI_STATE_KEYS; a++) pli_slab_unref(&piece->aside[a]);
        *piece = (pli_snap_piece){ .taken = UINT8_MAX, .safe = true };
    }
    snap->left = 0;
    pli_free(snap->keys);
    snap->keys = NULL;
}

/* --- copying ------------------------------------------------------------------------------------------------- */

static unsigned char *array_at(const pli_store *store, int32_t array, int64_t row, int64_t row_bytes) {
    const pli_chunk *chunk = &store->chunk[row >> store->shift];
    void            *base = array == PLI_STATE_VALUES ? chunk->values
                            : array == PLI_STATE_PAID ? (void *)chunk->paid
                                                      : chunk->slot[array - PLI_STATE_SLOT];
    return pli_at(base, (row & store->mask) * row_bytes);
}

/* How many rows from `row` on lie side by side. */
static int64_t run_of(const pli_store *store, int64_t row, int64_t n) {
    const int64_t rest = store->mask - (row & store->mask);
    return rest < n ? rest + 1 : n;
}

void pli_snap_copy(const pli_store *store, int32_t array, int64_t first, int64_t n, void *to) {
    const int64_t  row_bytes = pli_state_row_bytes(store->spec, array);
    unsigned char *at = to;
    for (int64_t m; n > 0; first += m, n -= m, at += m * row_bytes) {
        m = run_of(store, first, n);
        memcpy(at, array_at(store, array, first, row_bytes), (size_t)(m * row_bytes));
    }
}

void pli_snap_put(pli_store *store, int32_t array, int64_t first, int64_t n, const int64_t *rows, const void *data) {
    const int64_t row_bytes = pli_state_row_bytes(store->spec, array);
    if (store->snap != NULL && rows != NULL)
        pli_snap_rows_change(store->snap, n, rows);
    else if (store->snap != NULL)
        pli_snap_range_changes(store->snap, first, n);
    const unsigned char *from = data;
    if (rows == NULL && n > store->here - first) n = store->here - first;
    for (int64_t i = 0, m; i < n; i += m, from += m * row_bytes) {
        const int64_t row = rows != NULL ? rows[i] : first + i;
        m = 1;
        if (row < 0) continue; /* it will come with its slice */
        m = rows != NULL ? 1 : run_of(store, row, n - i);
        memcpy(array_at(store, array, row, row_bytes), from, (size_t)(m * row_bytes));
    }
}

/* --- setting aside ---------------------------------------------------------------------------------------------- */

static void set_aside(pli_snap *snap, int64_t number) {
    pli_snap_piece *piece = &snap->piece[number];
    const int64_t   n = rows_in(snap, number);
    piece->safe = true;
    for (int32_t a = 0; a < PLI_STATE_KEYS; a++) {
        const int64_t row_bytes = pli_state_row_bytes(snap->store->spec, a);
        if (row_bytes == 0 || (piece->taken & 1 << a) || is_in_slices(snap->store->spec, a)) continue;
        piece->aside[a] = pli_slab_new((size_t)(n * row_bytes));
        if (piece->aside[a] == NULL) {
            snap->starved = true;
            return;
        }
        pli_snap_copy(snap->store, a, snap->first + number * snap->piece_rows, n, piece->aside[a]->memory);
    }
}

void pli_snap_rows_change(pli_snap *snap, int64_t n, const int64_t *rows) {
    if (snap->left == 0) return;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t at = (uint64_t)(rows[i] - snap->first);
        if (at >= (uint64_t)snap->rows) continue;
        const int64_t piece = (int64_t)(at / (uint64_t)snap->piece_rows);
        if (!snap->piece[piece].safe) set_aside(snap, piece);
    }
}

void pli_snap_range_changes(pli_snap *snap, int64_t first, int64_t n) {
    int64_t low = first > snap->first ? first - snap->first : 0, high = first + n - snap->first;
    if (high > snap->rows) high = snap->rows;
    if (snap->left == 0 || low >= high) return;
    for (int64_t piece = low / snap->piece_rows; piece <= (high - 1) / snap->piece_rows; piece++)
        if (!snap->piece[piece].safe) set_aside(snap, piece);
}

/* --- taking ------------------------------------------------------------------------------------------------------ */

/* Rows are numbered in the order in which keys came, so the snapshot's rows are the first. */
static bool find_keys(pli_snap *snap) {
    if (snap->keys != NULL) return true;
    snap->keys = pli_array((size_t)snap->store->map.n, sizeof *snap->keys);
    if (snap->keys != NULL) pli_keymap_keys(&snap->store->map, snap->keys);
    return snap->keys != NULL;
}

bool pli_snap_keep_all(pli_snap *snap) {
    if (snap->left == 0) return true;
    if (snap->store->first < 0 && !find_keys(snap)) return false;
    pli_snap_range_changes(snap, snap->first, snap->rows);
    return true;
}

static pli_msg *copy_piece(pli_snap *snap, int32_t array, int64_t number, int64_t n) {
    pli_snap_piece *piece = &snap->piece[number];
    const int64_t   row_bytes = pli_state_row_bytes(snap->store->spec, array);
    const int64_t   first = snap->first + number * snap->piece_rows;
    const size_t    bytes = (size_t)(n * row_bytes);
    if (array != PLI_STATE_KEYS && piece->aside[array] != NULL) {
        pli_msg *msg = pli_msg_of_slab(piece->aside[array], 0, bytes);
        if (msg != NULL) pli_slab_unref(&piece->aside[array]);
        return msg;
    }
    if (array == PLI_STATE_KEYS && !find_keys(snap)) return NULL;
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    if (array == PLI_STATE_KEYS)
        memcpy(pli_msg_body(msg), snap->keys + first, bytes);
    else
        pli_snap_copy(snap->store, array, first, n, pli_msg_body(msg));
    return msg;
}

/* All arrays of the piece are taken or set aside: whoever changes it need not look. */
static bool is_done(const pli_snap *snap, const pli_snap_piece *piece) {
    for (int32_t a = 0; a < PLI_STATE_KEYS; a++)
        if (pli_state_row_bytes(snap->store->spec, a) > 0 && !(piece->taken & 1 << a)) return false;
    return true;
}

plait_status pli_snap_take(pli_snap *snap, int32_t array, int64_t first, int64_t n, pli_msg **msg_out,
                           plait_error *err) {
    const char    *name = snap->store->spec->name;
    const uint64_t at = (uint64_t)first - (uint64_t)snap->first;
    if (snap->starved) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to keep a snapshot's rows aside", name);
    if (array < 0 || array >= PLI_STATE_ARRAYS || pli_state_row_bytes(snap->store->spec, array) == 0 ||
        at >= (uint64_t)snap->rows || at % (uint64_t)snap->piece_rows != 0)
        return pli_fail(err, PLAIT_EINVAL, "table %s: array %d has no piece of a snapshot at row %lld", name,
                        (int)array, (long long)first);
    const int64_t   number = (int64_t)(at / (uint64_t)snap->piece_rows);
    pli_snap_piece *piece = &snap->piece[number];
    if (n != rows_in(snap, number) || (piece->taken & 1 << array))
        return pli_fail(err, PLAIT_EINVAL,
                        "table %s: the piece of a snapshot at row %lld is not %lld rows, or was taken", name,
                        (long long)first, (long long)n);
    *msg_out = copy_piece(snap, array, number, n);
    if (*msg_out == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a piece of a snapshot", name);
    piece->taken |= (uint8_t)(1 << array);
    piece->safe = piece->safe || is_done(snap, piece);
    if (--snap->left == 0) {
        pli_free(snap->keys);
        snap->keys = NULL;
    }
    return PLAIT_OK;
}
