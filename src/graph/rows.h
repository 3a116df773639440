/* graph/rows.h - softmax of rows, for several ops. */
#ifndef PLI_GRAPH_ROWS_H
#define PLI_GRAPH_ROWS_H

#include <stdint.h>

/** y [rows, n] = softmax of each row of x; log_sum [rows] (may be NULL): log sum e^x. y may be x. */
void pli_softmax_rows_f32(int64_t rows, int64_t n, const float *x, float *y, double *log_sum);

#endif
