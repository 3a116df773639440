/* How much work each node of a plan is: operations by its op's count (flops.h), and the bytes of the arrays that it
 * reads and writes. A simulation charges both, node by node, and a placement divides them. The store charges its own
 * calls, so a get has neither; an inc has bytes where those of several micro-batches are added up (gather.c). */
#include "graph/flops.h"
#include "graph/ops/ops.h"
#include "graph/plan.h"

static double bytes_of(const pli_plan *p, const pli_plan_node *n) {
    double bytes = 0;
    for (int32_t i = 0; i < n->n_in; i++)
        if (pli_plan_reads(n, i)) bytes += (double)pli_tensor_bytes(&p->value[p->input[n->input + i]].t);
    for (int32_t i = 0; i < n->n_out; i++)
        if (p->value[n->output + i].place != PLI_PLACE_NONE)
            bytes += (double)pli_tensor_bytes(&p->value[n->output + i].t);
    return bytes;
}

/* The ops of a fused node, or of an epilogue. Their counts depend on the shape of their output alone. */
static double members_of(const pli_plan_node *n, const plait_tensor *out) {
    const plait_call call = {
        .in = out, .out = (plait_tensor *)(uintptr_t)out, .n_in = 1, .n_out = 1, .attr = n->attr
    };
    double flops = 0;
    for (int32_t j = 0; j < n->n_members; j++) flops += pli_flops_of(n->member[j], &call);
    return flops;
}

static double *operations_of(const plait_op *op, pli_weight *w) {
    if (op == &pli_op_conv2d || op == &pli_op_conv2d_input || op == &pli_op_conv2d_filter) return &w->taps;
    return op->flops == pli_flops_window || op->flops == pli_flops_added ? &w->steps : &w->flops;
}

static plait_status weigh(const pli_plan *p, pli_plan_node *n, plait_error *err) {
    enum { FEW = 8 };
    const bool   fused = n->work == PLI_WORK_MAP && n->n_members > 0;
    plait_tensor few[FEW], out[PLI_OUTPUTS_MAX], *in = n->n_in <= FEW ? few : pli_array((size_t)n->n_in, sizeof *in);
    if (in == NULL) return pli_plan_no_memory(err);
    for (int32_t i = 0; i < n->n_in; i++) in[i] = p->value[p->input[n->input + i]].t;
    for (int32_t i = 0; i < n->n_out; i++) out[i] = p->value[n->output + i].t;
    const plait_call call = {
        .in = in, .out = out, .n_in = n->n_in, .n_out = n->n_out, .attr = n->attr, .user = n->op->user, .error = err
    };
    n->weight = (pli_weight){ .flops = members_of(n, &out[0]), .moved = bytes_of(p, n) };
    if (!fused) *operations_of(n->op, &n->weight) += pli_flops_of(n->op, &call);
    if (in != few) pli_free(in);
    return PLAIT_OK;
}

/* What gather.c does: it reads the delta and the sum so far, and writes the sum. Rows are only kept, one after the
 * other. */
static void weigh_inc(const pli_plan *p, pli_plan_node *n) {
    const bool   rows = n->work == PLI_WORK_INC_ROWS;
    const double bytes = (double)pli_tensor_bytes(&p->value[p->input[n->input + (rows ? 2 : 1)]].t);
    n->weight = (pli_weight){ .moved = (rows ? 2 : 3) * bytes };
}

bool pli_plan_adds_up(const pli_plan_node *n) { return n->work == PLI_WORK_INC || n->work == PLI_WORK_INC_ROWS; }

plait_status pli_plan_weigh(pli_plan *p, plait_error *err) {
    for (int64_t k = 0; k < p->n_nodes; k++)
        if (p->node[k].work == PLI_WORK_KERNEL || p->node[k].work == PLI_WORK_MAP) PLI_TRY(weigh(p, &p->node[k], err));
        else if (pli_plan_adds_up(&p->node[k])) weigh_inc(p, &p->node[k]);
    return PLAIT_OK;
}
