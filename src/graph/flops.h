/* graph/flops.h - how many operations an op takes, where several ops count alike (plait_op.flops).
 *
 * A count is of additions, multiplications and comparisons on numbers; a multiplication with an addition is two. It
 * depends on shapes alone. Functions such as exp count as 20, about what their polynomials take. An op that only moves
 * numbers takes none: what it costs are the bytes that it reads and writes. Ops with a formula of their own (matmul,
 * conv2d, lstm) have it in their file. */
#ifndef PLI_GRAPH_FLOPS_H
#define PLI_GRAPH_FLOPS_H

#include <plait/op.h>

double pli_flops_none(const plait_call *call);   /* 0: numbers are moved                                          */
double pli_flops_input(const plait_call *call);  /* one for each element of input 0: sums, maxima                 */
double pli_flops_dot(const plait_call *call);    /* two for each element of input 0: products that are summed     */
double pli_flops_curve(const plait_call *call);  /* 20 for each element of output 0: exp, log, tanh, erf          */
double pli_flops_norm(const plait_call *call);   /* 8 for each element: two sums, differences, squares, a product */
double pli_flops_lines(const plait_call *call);  /* 4 for each element: a dot product along lines, then a product */
double pli_flops_adds(const plait_call *call);   /* the addition of all inputs                                    */
double pli_flops_window(const plait_call *call); /* one for each element of each pooling window                   */
double pli_flops_added(const plait_call *call);  /* one for each element of the last input, which is added        */

/** The count of one use of an op: its own, or one for each element of output 0. Never negative. */
double pli_flops_of(const plait_op *op, const plait_call *call);

#endif
