/* graph/passes/epilogue.h - elementwise ops that follow a product run on each piece of it as soon as it is made,
 * while it lies in a cache: the part of `fuse` that knows kernels. (Epilogues of products: Tillet, Kung and Cox,
 * "Triton", MAPL 2019; NVIDIA's CUTLASS.) */
#ifndef PLI_GRAPH_EPILOGUE_H
#define PLI_GRAPH_EPILOGUE_H

#include "graph/plan.h"

/** May a map over `shape` take in what node k makes, piece by piece? k has no other reader. Chooses the node's
 * kernel. */
plait_status pli_epilogue_host(pli_plan *plan, int32_t k, const plait_shape *shape, bool *good_out, plait_error *err);
/** `node`, which runs a map whose input 0 is what node k makes, becomes that kernel with the map behind it; its
 * inputs are the kernel's, then the map's others. false: no output of the map can hold what the kernel makes;
 * nothing has changed. */
bool pli_epilogue_make(pli_plan *plan, int32_t k, pli_plan_node *node, const int32_t *map_out);

#endif
