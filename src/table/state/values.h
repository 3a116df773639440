/* table/state/values.h - the few operations on rows of any type that tables need, beside those of combine/combine.h.
 * Each type has one real function; x and y do not overlap. */
#ifndef PLI_TABLE_VALUES_H
#define PLI_TABLE_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include <plait/comm.h>

/** y [n] += scale x [n]. Whole numbers: scale is whole. */
void pli_values_add_scaled(plait_type type, int64_t n, double scale, const void *x, void *y);
/** y [n] *= scale; floats only. */
void pli_values_scale(plait_type type, int64_t n, double scale, void *y);
/** y[at[i], :] = x[i, :], rows of row_bytes. */
void pli_rows_scatter(int64_t n, int64_t row_bytes, const uint32_t *at, const void *x, void *y);

/** The largest absolute value of x [n]; 0 if n is 0, NaN if any value is. */
double pli_values_max_norm(plait_type type, int64_t n, const void *x);

static inline void *pli_at(void *base, int64_t bytes) { return (unsigned char *)base + bytes; }
static inline const void *pli_at_const(const void *base, int64_t bytes) { return (const unsigned char *)base + bytes; }

#endif
