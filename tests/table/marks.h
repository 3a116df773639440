/* marks.h - what a schedule's worker pushes in a clock, and what a value that is read tells of it, whatever the table
 * makes of updates. A worker has a column of its own in every row, and pushes to it, once a clock at most:
 *
 *   add        2^clock: a value is the set of the worker's clocks that it holds (by sgd of rate 1: minus that)
 *   max        2^clock: a value is the last of them; min: minus that
 *
 * In the other columns it pushes what changes nothing. Where rows are replaced (last) there is no such thing: it pushes
 * 64 clock + worker + 1 in all columns, and mark_last judges the row. */
#ifndef PLI_TESTS_TABLE_MARKS_H
#define PLI_TESTS_TABLE_MARKS_H

#include "table/state/spec.h"

static inline bool marks_min(const pli_spec *spec) { return spec->combine == &pli_min_combine; }

static inline double mark_at(plait_type type, const void *values, int64_t i) {
    if (type == PLAIT_I64) return (double)((const int64_t *)values)[i];
    return type == PLAIT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/** delta [n]: nothing. */
static inline void marks_clear(const pli_spec *spec, int64_t n, void *delta) { pli_merge_clear(spec->merge, n, delta); }

static inline void mark_set(plait_type type, void *delta, int64_t i, double x) {
    if (type == PLAIT_I64) ((int64_t *)delta)[i] = (int64_t)x;
    else if (type == PLAIT_F64) ((double *)delta)[i] = x;
    else ((float *)delta)[i] = (float)x;
}

/** What the worker pushes to row `row` of delta [.., cols] in the clock. */
static inline void mark_put(const pli_spec *spec, void *delta, int64_t row, int32_t worker, int64_t clock) {
    const double x = (marks_min(spec) ? -1.0 : 1.0) * (double)(UINT64_C(1) << clock);
    if (!spec->combine->replaces) mark_set(spec->type, delta, row * spec->cols + worker, x);
    for (int64_t i = 0; spec->combine->replaces && i < spec->cols; i++)
        mark_set(spec->type, delta, row * spec->cols + i, (double)(64 * clock + worker + 1));
}

/** Which clocks the value holds, of those that were issued. false: it is none of what was pushed. */
static inline bool mark_read(const pli_spec *spec, double value, uint64_t issued, uint64_t *seen_out) {
    const double   x = spec->ruled || marks_min(spec) ? -value : value;
    const uint64_t bits = x > 0 && x < 0x1p62 ? (uint64_t)x : 0;
    if (spec->combine->adds) {
        *seen_out = bits;
        return (double)bits == x;
    }
    *seen_out = bits == 0 ? 0 : issued & (2 * bits - 1);
    return bits == 0 ? x < 0 : (double)bits == x && (bits & (bits - 1)) == 0 && (bits & issued) != 0;
}

/* A worker that reads a row of a table whose rows are replaced, in its clock. Bit c of must [w], may [w]: the row must,
 * or may, hold what worker w pushed in clock c. */
typedef struct mark_reader {
    int32_t  worker;
    int64_t  clock;
    uint64_t must[16], may[16];
} mark_reader;

/** Is the row the last of what it may hold, and not before the last of what it must hold? The worker's own push of its
 *  clock lies over all others. *seen: the latest push that it has read of the row; it never reads an earlier one. */
static inline bool mark_last(const pli_spec *spec, const void *row, const mark_reader *r, int64_t *seen) {
    const int64_t x = (int64_t)mark_at(spec->type, row, 0), clock = (x - 1) / 64, worker = (x - 1) % 64;
    for (int64_t i = 0; i < spec->cols; i++)
        if (mark_at(spec->type, row, i) != (double)x) return false; /* torn */
    if (x < 0 || (x > 0 && (worker >= spec->cols || (r->may[worker] >> clock & 1) == 0))) return false;
    if (x > 0 && worker == r->worker && clock == r->clock) return true;
    for (int64_t k = 0; k < spec->cols; k++)
        if (r->must[k] != 0 && 64 * (63 - __builtin_clzll(r->must[k])) + k + 1 > x) return false;
    if (x < *seen) return false;
    *seen = x;
    return true;
}

/** What a table of a schedule holds and how it combines updates: draws of their own. sums: its promise speaks of sums;
 *  orders: each push is of one clock. */
static inline void draw_marks(pli_random random, bool sums, bool orders, plait_table_opts *opts) {
    static const char *const combines[] = { NULL, "min", "max", "last" };
    if (opts->rule.name != NULL) return;
    if (pli_random_below(&random, 3) == 0) opts->type = PLAIT_I64;
    if (!sums) opts->combine = combines[pli_random_below(&random, orders ? 4 : 3)];
}

/* What all tables of a schedule are, where it is not drawn: how they combine, or counts. */
typedef struct marks_kind {
    const char *name, *combine;
    plait_type  type;
} marks_kind;

static const marks_kind marks_kinds[] = { { "min", "min", PLAIT_F64 },
                                          { "max", "max", PLAIT_F64 },
                                          { "last", "last", PLAIT_F64 },
                                          { "counts", NULL, PLAIT_I64 } };
enum { MARKS_KINDS = sizeof marks_kinds / sizeof *marks_kinds };

/** Does the consistency go with tables of the kind? vap bounds sums, local-sgd averages; downpour gathers clocks. */
static inline bool marks_go_with(const marks_kind *kind, const char *consistency) {
    const bool sums = strncmp(consistency, "vap", 3) == 0 || strncmp(consistency, "local-sgd", 9) == 0;
    const bool gathers = strncmp(consistency, "downpour", 8) == 0;
    return !(sums && kind->combine != NULL) && !(gathers && strcmp(kind->name, "last") == 0);
}

/** By name; NULL: none. */
static inline const marks_kind *marks_kind_of(const char *name) {
    for (int k = 0; name != NULL && k < MARKS_KINDS; k++)
        if (strcmp(name, marks_kinds[k].name) == 0) return &marks_kinds[k];
    return NULL;
}

static inline void marks_force(const marks_kind *kind, plait_table_opts *opts) {
    if (kind == NULL) return;
    opts->rule = (plait_rule_opts){ .size = opts->rule.size };
    opts->combine = kind->combine;
    opts->type = kind->type;
}

#endif
