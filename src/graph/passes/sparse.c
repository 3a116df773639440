/* sparse: an inc whose delta is a scatter_rows or a sum of them (the gradient of an embedding) pushes the rows alone,
 * and the dense array is never made. The store adds a row that comes twice in two steps, so the sum may be rounded
 * differently from the dense sum. */
#include <string.h>

#include "graph/ops/ops.h"
#include "graph/passes/passes.h"

enum { PARTS = 32 };

/* Joins several arrays one after the other: row numbers, or their deltas. */
static plait_status join(const plait_call *call, int64_t item) {
    unsigned char *to = call->out[0].data;
    for (int32_t i = 0; i < item; i++) to += pli_tensor_bytes(&call->in[i]);
    const size_t bytes = pli_tensor_bytes(&call->in[item]);
    if (bytes > 0) memcpy(to, call->in[item].data, bytes);
    return PLAIT_OK;
}

static int64_t join_items(const plait_call *call) { return call->n_in; }

static const plait_kernel        copy = { .name = "copy", .items = join_items, .run = join };
static const plait_kernel *const kernels[] = { &copy, NULL };
static const plait_op            join_op = { .size = sizeof(plait_op),
                                             .name = "join",
                                             .summary = "arrays one behind the other",
                                             .min_inputs = 1,
                                             .max_inputs = PARTS,
                                             .outputs = 1,
                                             .kernels = kernels };

/* Finds the scatter_rows whose sum is the value. Returns how many, 0 .. PARTS; -1: it is no such sum. */
static int32_t parts_of(const pli_plan *p, int32_t value, const pli_plan_node **part) {
    const pli_plan_node *n = p->value[value].node >= 0 ? &p->node[p->value[value].node] : NULL;
    if (n == NULL || p->value[value].place != PLI_PLACE_MEMORY) return -1;
    part[0] = n;
    if (n->op == &pli_op_scatter_rows) return 1;
    if ((n->op != &pli_op_add && n->op != &pli_op_add_n) || n->n_in > PARTS) return -1;
    for (int32_t i = 0; i < n->n_in; i++) {
        const int32_t from = p->value[p->input[n->input + i]].node;
        if (from < 0 || p->node[from].op != &pli_op_scatter_rows) return -1;
        part[i] = &p->node[from];
    }
    return n->n_in;
}

/* Makes a new value that joins input k of all parts. -1: no memory. */
static int32_t joined(pli_plan *p, const pli_plan_node *parts, int32_t n, int32_t k) {
    if (n == 1) return p->input[parts[0].input + k];
    plait_tensor t = p->value[p->input[parts[0].input + k]].t;
    int64_t      elements = 0;
    if (!pli_grow((void **)&p->input, &p->input_capacity, p->n_inputs + n, sizeof *p->input) ||
        !pli_grow((void **)&p->node, &p->node_capacity, p->n_nodes + 1, sizeof *p->node))
        return -1;
    for (int32_t i = 0; i < n; i++) {
        p->input[p->n_inputs + i] = p->input[parts[i].input + k];
        elements += plait_shape_elements(&p->value[p->input[parts[i].input + k]].t.shape);
    }
    t.shape = plait_shape_1(elements);
    const int32_t v = pli_plan_add_value(p, p->value[parts[0].output].origin, t, PLI_PLACE_MEMORY, 0);
    if (v < 0) return -1;
    p->node[p->n_nodes++] = (pli_plan_node){ .op = &join_op,
                                             .origin = p->value[v].origin,
                                             .input = (int32_t)p->n_inputs,
                                             .n_in = n,
                                             .output = v,
                                             .n_out = 1,
                                             .variable = -1,
                                             .work = PLI_WORK_KERNEL };
    p->n_inputs += n;
    return v;
}

static plait_status push_rows(pli_plan *p, int64_t k, const pli_plan_node *const *part, int32_t n, plait_error *err) {
    pli_plan_node parts[PARTS];
    for (int32_t i = 0; i < n; i++) parts[i] = *part[i];
    const int32_t variable = p->input[p->node[k].input], rows = joined(p, parts, n, 1), delta = joined(p, parts, n, 2);
    if (rows < 0 || delta < 0 || !pli_grow((void **)&p->input, &p->input_capacity, p->n_inputs + 3, sizeof *p->input))
        return pli_plan_no_memory(err);
    const int32_t in[] = { variable, rows, delta };
    memcpy(p->input + p->n_inputs, in, sizeof in);
    p->node[k].op = &pli_op_inc_rows;
    p->node[k].work = PLI_WORK_INC_ROWS;
    p->node[k].input = (int32_t)p->n_inputs;
    p->node[k].n_in = 3;
    p->n_inputs += 3;
    return PLAIT_OK;
}

static plait_status run(pli_plan *p, plait_error *err) {
    const int64_t n_nodes = p->n_nodes;
    for (int64_t k = 0; k < n_nodes; k++) {
        const pli_plan_node *part[PARTS];
        if (p->node[k].work != PLI_WORK_INC) continue;
        const int32_t n = parts_of(p, p->input[p->node[k].input + 1], part);
        if (n > 0) PLI_TRY(push_rows(p, k, part, n, err));
    }
    return PLAIT_OK;
}

const pli_pass pli_pass_sparse = { .name = "sparse", .run = run };
