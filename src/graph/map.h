/* graph/map.h - runs one or several elementwise ops in one pass.
 *
 * An op's `map` sees n consecutive elements of each input. Work goes block by block; a block fits into the first-level
 * cache. An input as large as the output is read where it lies. A broadcast input (a scalar, a repeated row, a column)
 * is spread into a buffer, and BF16 is widened to F32. Each of several fused ops is a *step*; a step's result lies in a
 * buffer of one block. So an op needs one plain loop a type for all shapes and all fusions, and the values are the same
 * bit for bit. (Compilers of arrays call this strip mining: Allen and Kennedy, "Optimizing Compilers for Modern
 * Architectures", 2001.) */
#ifndef PLI_GRAPH_MAP_H
#define PLI_GRAPH_MAP_H

#include "graph/graph.h"

enum { PLI_MAP_BLOCK = 1024, PLI_MAP_INPUTS = 32, PLI_MAP_STEPS = 32 };

/* How one input is read. */
typedef struct pli_map_input {
    bool    direct;  /* element i of the output needs element i, read in place  */
    bool    uniform; /* one element for all outputs                             */
    bool    widened; /* BF16 -> F32                                             */
    int32_t buffer;  /* in scratch; -1: none                                    */
    int32_t rank;    /* number of axes after joining those without gaps         */
    int64_t dim[PLAIT_RANK_MAX];
    int64_t stride[PLAIT_RANK_MAX]; /* in elements; 0: repeated                                */
    size_t  bytes;                  /* of one element                                          */
} pli_map_input;

/* One op. */
typedef struct pli_map_step {
    plait_map_fn     *fn;
    const plait_attr *attr;
    int32_t           n_in;
    int32_t           in[PLI_MAP_INPUTS]; /* an input of the map, or PLI_MAP_INPUTS + the step that makes it */
    int32_t           output;             /* the map's output that it makes; -1: none */
    int32_t           buffer;             /* in scratch; -1: it writes its output     */
    bool              rounded;            /* its F32 are rounded to BF16              */
    size_t            bytes;              /* of one element of the output             */
} pli_map_step;

typedef struct pli_map {
    int64_t        elements, block;
    int32_t        n_in, n_steps, n_buffers;
    bool           plain; /* one step whose inputs are all read in place: a single call */
    size_t         lane_bytes;
    pli_map_input *in;
    pli_map_step  *step;
} pli_map;

/* One op of a map. Its inputs are numbered as in pli_map_step. */
typedef struct pli_map_op {
    const plait_op   *op;
    const plait_attr *attr;
    int32_t           n_in;
    const int32_t    *in;
    plait_type        type; /* of its result */
    int32_t           output;
} pli_map_op;

/** Makes a map of ops [n_ops] over inputs [n_in], whose outputs all have shape `shape`, in memory of the arena.
 *  *map_out NULL: an op has no loop for its type, or there are too many ops or inputs. */
plait_status pli_map_create(pli_arena *arena, const pli_map_op *ops, int32_t n_ops, const plait_tensor *in,
                            int32_t n_in, const plait_shape *shape, pli_map **map_out, plait_error *err);
size_t       pli_map_scratch(const pli_map *map);
int64_t      pli_map_items(const pli_map *map);
/** May output `output` be written over input `input`? */
bool pli_map_in_place(const pli_map *map, int32_t input, int32_t output);
/** Runs one item. in [n_in] and out: the inputs and outputs. */
void pli_map_run(const pli_map *map, const void *const *in, const plait_tensor *out, void *scratch, int64_t item);
/** Runs n elements from `first` on. */
void pli_map_run_some(const pli_map *map, const void *const *in, const plait_tensor *out, void *scratch, int64_t first,
                      int64_t n);

#endif
