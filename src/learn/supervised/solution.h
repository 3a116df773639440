/* learn/supervised/solution.h - what a solver of a supervised model finds, in the data's units. */
#ifndef PLI_LEARN_SOLUTION_H
#define PLI_LEARN_SOLUTION_H

#include "base/base.h"

/* Weights [rows, K], row j that of feature j, or of feature key[j] (increasing) where features are few of many; or values in
 * one row, as a net has them. */
typedef struct pli_solution {
    int64_t   rows;
    uint64_t *key; /* NULL: row j is feature j */
    double   *weight, *bias;
    float    *flat; /* [rows] values, and none of the others */
} pli_solution;

plait_status pli_solution_make(int64_t rows, int64_t columns, bool keyed, pli_solution *solution_out, plait_error *err);
/** Of `flat` alone. */
plait_status pli_solution_make_flat(int64_t values, pli_solution *solution_out, plait_error *err);
void         pli_solution_free(pli_solution *solution);

#endif
