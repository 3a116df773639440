#include "graph/passes/epilogue.h"

#include <string.h>

plait_status pli_epilogue_host(pli_plan *p, int32_t k, const plait_shape *shape, bool *good_out, plait_error *err) {
    pli_plan_node        *n = &p->node[k];
    const pli_plan_value *made = &p->value[n->output];
    *good_out = false;
    if (n->work != PLI_WORK_KERNEL || n->map != NULL || n->n_out != 1 || (n->op->flags & PLAIT_OP_STATEFUL) != 0 ||
        made->place != PLI_PLACE_MEMORY || made->t.shape.rank != shape->rank ||
        memcmp(made->t.shape.dim, shape->dim, (size_t)shape->rank * sizeof *shape->dim) != 0)
        return PLAIT_OK;
    PLI_TRY(pli_plan_choose_node(p, n, err));
    *good_out = n->region != NULL;
    return PLAIT_OK;
}

bool pli_epilogue_make(pli_plan *p, int32_t k, pli_plan_node *node, const int32_t *map_out) {
    const pli_plan_node *host = &p->node[k];
    int32_t              raw = 0;
    while (raw < node->n_out &&
           !(p->value[map_out[raw]].t.type == p->value[host->output].t.type && pli_map_in_place(node->map, 0, raw)))
        raw++;
    if (raw == node->n_out) return false;
    node->work = PLI_WORK_KERNEL;
    node->op = host->op;
    node->attr = host->attr;
    node->kernel = host->kernel;
    node->region = host->region;
    node->items = host->items;
    node->cost_ns = host->cost_ns + 0.2 * (double)node->map->n_steps * (double)node->map->elements;
    node->kernel_in = host->n_in;
    node->raw = raw;
    node->n_in += host->n_in - 1;
    const size_t scratch = pli_map_scratch(node->map);
    if (scratch > p->scratch_bytes) p->scratch_bytes = scratch;
    return true;
}
