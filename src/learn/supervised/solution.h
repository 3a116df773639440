/* learn/supervised/solution.h - what training a supervised model finds, in the data's units. */
#ifndef PLI_LEARN_SOLUTION_H
#define PLI_LEARN_SOLUTION_H

#include "base/spool.h"
#include "data/data.h"

/* Weights [rows, K] and intercepts [K] of a linear model: row j belongs to feature j, or, if rows lie by key, to
 * feature key[j] (increasing). A net has flat values instead. */
typedef struct pli_solution {
    int64_t   rows;
    uint64_t *key; /* NULL: row j is feature j */
    double   *weight, *bias;
    float    *flat; /* [rows] values of a net; then the others are NULL */
    pli_spool *spool; /* has flat, which may be a mapped file; NULL: flat is memory of its own */
} pli_solution;

plait_status pli_solution_make(int64_t rows, int64_t columns, bool keyed, pli_solution *solution_out, plait_error *err);
/** Makes a solution of flat values. */
plait_status pli_solution_make_flat(int64_t values, pli_solution *solution_out, plait_error *err);
void         pli_solution_free(pli_solution *solution);

/** Makes a map from keys to rows; NULL: row j is feature j. */
plait_status pli_solution_map(const pli_solution *solution, pli_keymap **map_out, plait_error *err);
void         pli_solution_unmap(pli_keymap *map);
/** Finds the row of the solution for each entry of a block, or UINT32_MAX if it has none. The caller frees *rows_out
 *  [entries]. */
plait_status pli_solution_find(const pli_solution *solution, const pli_keymap *map, const pli_block *block,
                               uint32_t **rows_out, plait_error *err);

#endif
