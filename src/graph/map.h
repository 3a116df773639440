/* graph/map.h - driving ops that work element by element.
 *
 * Their `map` sees n elements in a row of each input. Where an input is as large as the output it is read where it lies. One
 * that is broadcast (a scalar, a repeated row, a column) is spread, a block at a time, into a buffer that stays in the first
 * cache; BF16 is widened to F32 the same way, and the result narrowed. So an op is one plain loop a type, whatever the
 * shapes. */
#ifndef PLI_GRAPH_MAP_H
#define PLI_GRAPH_MAP_H

#include "graph/graph.h"

enum { PLI_MAP_BLOCK = 1024, PLI_MAP_INPUTS = 32 };

/* How one input is read. */
typedef struct pli_map_input {
    bool    direct;                  /* element i of the output comes of element i, as it lies  */
    bool    widened;                 /* BF16 -> F32                                             */
    int32_t rank;                    /* else: the axes, those that go on without a break joined */
    int64_t dim[PLAIT_RANK_MAX];
    int64_t stride[PLAIT_RANK_MAX];  /* in elements; 0: repeated                                */
    size_t  bytes;                   /* of an element                                           */
} pli_map_input;

typedef struct pli_map {
    plait_map_fn *fn;
    int64_t       elements;
    int32_t       n_in;
    bool          all_direct;
    bool          narrowed; /* F32 -> BF16 */
    size_t        out_bytes;
    pli_map_input in[];
} pli_map;

/** bytes of a pli_map of n_in inputs */
static inline size_t pli_map_bytes(int32_t n_in) { return sizeof(pli_map) + (size_t)n_in * sizeof(pli_map_input); }
/** Fills map for shapes that are known. false: the op has no loop for the type. */
bool pli_map_plan(pli_map *map, const plait_op *op, const plait_tensor *in, int32_t n_in, const plait_tensor *out);
size_t  pli_map_scratch(const pli_map *map);
int64_t pli_map_items(const pli_map *map);
void    pli_map_run(const pli_map *map, const plait_tensor *in, const plait_tensor *out, const plait_attr *attr,
                    void *scratch, int64_t item);

#endif
