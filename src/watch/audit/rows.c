/* What a worker has read of a row never goes back, except if the replica that it reads from died: the one that took
 * over may lack updates that were not yet acknowledged. */
#include "watch/audit/reads.h"

enum { PLACE_AT_BIT = 44 };

/* Versions of a replica come after all those of replicas at places before it. */
static uint64_t version_of(const view *v) { return v->piece->version | (uint64_t)v->piece->place << PLACE_AT_BIT; }

static void went_back(pli_audit *audit, const reader *r, const view *v, uint64_t row, uint64_t before) {
    audit_wrong_row(audit, r, v, "monotone reads", row, "after it had got the row from version %llu",
                    (unsigned long long)(before & ((UINT64_C(1) << PLACE_AT_BIT) - 1)));
}

static bool note_row(pli_audit *audit, const reader *r, const view *v, uint64_t row, uint64_t version, bool check) {
    table_reads *reads = v->reads;
    int64_t      known = reads->rows.n, at = pli_keymap_add(&reads->rows, row);
    if (at < 0 || !pli_grow((void **)&reads->version, &reads->capacity, reads->rows.n, sizeof *reads->version))
        return false;
    if (check && at < known && version < reads->version[at]) went_back(audit, r, v, row, reads->version[at]);
    reads->version[at] = version;
    return true;
}

/* The sampled rows of a range: its first, and multiples of a power of two. */
static bool note_range(pli_audit *audit, const reader *r, const view *v, int64_t first, int64_t rows, uint64_t version,
                       bool check) {
    uint64_t from = (uint64_t)first, end = from + (uint64_t)rows, step = UINT64_C(1) << pli_eventlog_sample_bits(rows);
    if (!note_row(audit, r, v, from, version, check)) return false;
    for (uint64_t at = (from / step + 1) * step; at < end; at += step)
        if (!note_row(audit, r, v, at, version, check)) return false;
    return true;
}

/* Enters what the last range has seen into the map, before rows are looked up there. */
static bool settle(pli_audit *audit, const reader *r, const view *v) {
    last_seen *seen = v->seen;
    if (seen->rows == 0 || seen->in_map) return true;
    seen->in_map = true;
    return note_range(audit, r, v, seen->first, seen->rows, seen->version, false);
}

static bool check_range(pli_audit *audit, const reader *r, const view *v) {
    const pli_event_piece *piece = v->piece;
    last_seen             *seen = v->seen;
    bool                   same = seen->rows == piece->rows && seen->first == piece->first;
    if (piece->rows == 0) return true;
    if (same && version_of(v) < seen->version) went_back(audit, r, v, (uint64_t)piece->first, seen->version);
    if (!same || seen->mixed) {
        if (!settle(audit, r, v) || !note_range(audit, r, v, piece->first, piece->rows, version_of(v), true))
            return false;
        seen->mixed = false;
    }
    seen->in_map = !same;
    seen->first = piece->first;
    seen->rows = piece->rows;
    seen->version = version_of(v);
    return true;
}

bool audit_check_rows(pli_audit *audit, const reader *r, const view *v) {
    if (v->piece->first >= 0) return check_range(audit, r, v);
    if (!settle(audit, r, v)) return false;
    v->seen->mixed = true;
    for (int64_t i = 0; i < v->piece->n_keys; i++)
        if (!note_row(audit, r, v, v->piece->keys[i], version_of(v), true)) return false;
    return true;
}
