/* graph/map.h - driving ops that work element by element, one or many of them in one pass.
 *
 * An op's `map` sees n elements in a row of each input. Work goes block by block, of a size that stays in the first
 * cache. An input as large as the output is read where it lies; one that is broadcast (a scalar, a repeated row, a
 * column) is spread into a buffer, BF16 is widened to F32. Of several ops that were fused each is a *step*; what one
 * hands to another lies in a register, which is a buffer of a block. So an op is one plain loop a type, whatever the
 * shapes and whatever it is fused with, and the values are the same bit for bit. (Compilers of arrays call this strip
 * mining: Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2001.) */
#ifndef PLI_GRAPH_MAP_H
#define PLI_GRAPH_MAP_H

#include "graph/graph.h"

enum { PLI_MAP_BLOCK = 1024, PLI_MAP_INPUTS = 32, PLI_MAP_STEPS = 32 };

/* How one input is read. */
typedef struct pli_map_input {
    bool    direct;  /* element i of the output comes of element i, as it lies  */
    bool    uniform; /* one element for all                                     */
    bool    widened; /* BF16 -> F32                                             */
    int32_t buffer;  /* in scratch; -1: none                                    */
    int32_t rank;    /* the axes, those that go on without a break joined       */
    int64_t dim[PLAIT_RANK_MAX];
    int64_t stride[PLAIT_RANK_MAX]; /* in elements; 0: repeated                                */
    size_t  bytes;                  /* of an element                                           */
} pli_map_input;

/* One op. */
typedef struct pli_map_step {
    plait_map_fn     *fn;
    const plait_attr *attr;
    int32_t           n_in;
    int32_t           in[PLI_MAP_INPUTS]; /* an input of the map, or PLI_MAP_INPUTS + the step that makes it */
    int32_t           output;             /* of the map that it makes; -1: none    */
    int32_t           buffer;             /* in scratch; -1: it writes its output  */
    bool              rounded;            /* its F32 are BF16                      */
    size_t            bytes;              /* of an element of the output           */
} pli_map_step;

typedef struct pli_map {
    int64_t        elements, block;
    int32_t        n_in, n_steps, n_buffers;
    bool           plain; /* one step, all as it lies: one call */
    size_t         lane_bytes;
    pli_map_input *in;
    pli_map_step  *step;
} pli_map;

/* One op of those that a map is made of: its inputs are numbered as in pli_map_step. */
typedef struct pli_map_op {
    const plait_op   *op;
    const plait_attr *attr;
    int32_t           n_in;
    const int32_t    *in;
    plait_type        type; /* of what it makes */
    int32_t           output;
} pli_map_op;

/** A map of ops [n_ops] over inputs [n_in], of which the outputs all have shape `shape`. *map_out NULL: an op has no
 *  loop for its type, or there are too many. Memory of the arena. */
plait_status pli_map_create(pli_arena *arena, const pli_map_op *ops, int32_t n_ops, const plait_tensor *in,
                            int32_t n_in, const plait_shape *shape, pli_map **map_out, plait_error *err);
size_t       pli_map_scratch(const pli_map *map);
int64_t      pli_map_items(const pli_map *map);
/** May output `output` lie where input `input` lies? */
bool pli_map_in_place(const pli_map *map, int32_t input, int32_t output);
/** in [n_in], out: where inputs and outputs lie. */
void pli_map_run(const pli_map *map, const void *const *in, const plait_tensor *out, void *scratch, int64_t item);
/** The same of n elements from `first` on. */
void pli_map_run_some(const pli_map *map, const void *const *in, const plait_tensor *out, void *scratch, int64_t first,
                      int64_t n);

#endif
