/* graph/passes/epilogue.h - the part of `fuse` that knows kernels. Elementwise ops that follow a product run on each
 * piece of it as soon as the piece is made, while it lies in a cache: they are its epilogue. (Tillet, Kung and Cox,
 * "Triton", MAPL 2019; NVIDIA's CUTLASS.) */
#ifndef PLI_GRAPH_EPILOGUE_H
#define PLI_GRAPH_EPILOGUE_H

#include "graph/plan.h"

/** Sets *good_out: may a map over `shape` read the output of node k piece by piece? The map is its only reader. Chooses
 * the kernel of node k. */
plait_status pli_epilogue_host(pli_plan *plan, int32_t k, const plait_shape *shape, bool *good_out, plait_error *err);
/** Makes `node`, which runs a map whose input 0 is the output of node k, run the kernel of node k followed by the map.
 *  Its
 * inputs are the kernel's, then the other inputs of the map. false: no output of the map can hold the kernel's output;
 * nothing has changed. */
bool pli_epilogue_make(pli_plan *plan, int32_t k, pli_plan_node *node, const int32_t *map_out);

#endif
