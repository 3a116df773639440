/* marks.h - what a schedule's worker pushes in a clock, and what a value that is read tells of it, whatever the table
 * makes of updates. A worker has a column of its own in every row, and pushes to it, once a clock at most:
 *
 *   add        2^clock: a value is the set of the worker's clocks that it holds (by sgd of rate 1: minus that)
 *   max        2^clock: a value is the last of them; min: minus that
 *
 * In the other columns it pushes what changes nothing. */
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

static inline void mark_put(const pli_spec *spec, void *delta, int64_t i, int64_t clock) {
    const double x = (marks_min(spec) ? -1.0 : 1.0) * (double)(UINT64_C(1) << clock);
    if (spec->type == PLAIT_I64) ((int64_t *)delta)[i] = (int64_t)x;
    else if (spec->type == PLAIT_F64) ((double *)delta)[i] = x;
    else ((float *)delta)[i] = (float)x;
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

/** What a table of a schedule holds and makes of updates: draws of their own. sums: its promise speaks of sums. */
static inline void draw_marks(pli_random random, bool sums, plait_table_opts *opts) {
    static const char *const combines[] = { NULL, "min", "max" };
    if (opts->rule.name != NULL) return;
    if (pli_random_below(&random, 3) == 0) opts->type = PLAIT_I64;
    if (!sums) opts->combine = combines[pli_random_below(&random, 3)];
}

#endif
