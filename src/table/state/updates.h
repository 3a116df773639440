/* table/state/updates.h - sums of updates; a "sum" is whatever the table's combine makes of them. It is an array of the
 * table's type or, if spec->exact is set, of cells (tensor/exact_cells.h), whose sum depends neither on who added what
 * nor in which order. n counts values, each spec->sum_width bytes of a sum. */
#ifndef PLI_TABLE_UPDATES_H
#define PLI_TABLE_UPDATES_H

#include "table/state/spec.h"

/** Makes sum [n] a sum of nothing. */
void pli_updates_clear(const pli_spec *spec, int64_t n, void *sum);
/** sum [n] += delta [n], values of the table's type. */
void pli_updates_add(const pli_spec *spec, int64_t n, const void *delta, void *sum);
/** sum [at[i], :] += delta [i, :] for rows i in [0, rows), in order. */
void pli_updates_scatter(const pli_spec *spec, int64_t rows, const int64_t *at, const void *delta, void *sum);
/** sum [n] += other [n], which is a sum, too. */
void pli_updates_merge(const pli_spec *spec, int64_t n, const void *other, void *sum);
/** sum [at[i], :] += other [i, :], whose rows are sums, too. */
void pli_updates_merge_rows(const pli_spec *spec, int64_t rows, const int64_t *at, const void *other, void *sum);
/** values [n] += scale sum [n]; scale is 1 if the combine does not add. */
void pli_updates_lay_over(const pli_spec *spec, double scale, int64_t n, const void *sum, void *values);

/** Reads value i of a sum; makes a sum of one value alone. */
double pli_updates_at(const pli_spec *spec, const void *sum, int64_t i);
void   pli_updates_set(const pli_spec *spec, void *sum, int64_t i, double x);

/** Filters see the cells of a part as so many doubles: no filter of an exact table looks at values (table/pairs/). */
static inline void pli_part_of_sums(const pli_spec *spec, plait_part *part) {
    if (!spec->exact) return;
    part->type = PLAIT_F64;
    part->cols = pli_sum_row_bytes(spec) / (int64_t)sizeof(double);
}

#endif
