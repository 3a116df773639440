/* learn/supervised/solution.h - what a solver of a supervised model finds, in the data's units. */
#ifndef PLI_LEARN_SOLUTION_H
#define PLI_LEARN_SOLUTION_H

#include "data/data.h"

/* Weights [rows, K], row j that of feature j, or of feature key[j] (increasing) where features are few of many; or
 * values in one row, as a net has them. */
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

/** Where keys have their rows; NULL: row j is feature j. */
plait_status pli_solution_map(const pli_solution *solution, pli_keymap **map_out, plait_error *err);
void         pli_solution_unmap(pli_keymap *map);
/** Rows of the solution for the entries of a block, UINT32_MAX where it has none: *rows_out [entries], to be freed. */
plait_status pli_solution_find(const pli_solution *solution, const pli_keymap *map, const pli_block *block,
                               uint32_t **rows_out, plait_error *err);

#endif
