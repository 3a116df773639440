/* graph/extreme.h - what max and min share: they find the element along some axes that beats all others.
 *
 * An op's user is a pli_extreme. A NaN beats all numbers. All elements equal to the result share the derivative
 * equally.
 */
#ifndef PLI_GRAPH_EXTREME_H
#define PLI_GRAPH_EXTREME_H

#include "graph/reduce.h"

typedef struct pli_extreme {
    bool        largest; /* false: the smallest */
    const char *what;    /* for messages: "the largest" */
} pli_extreme;

plait_status                     pli_extreme_infer(const plait_call *call);
void                             pli_extreme_gradient(const plait_gradient *at);
extern const plait_kernel *const pli_extreme_kernels[];

#endif
