/* fold: values that depend only on constants, or on shapes (which a plan knows), are computed once, when the plan is
 * made, by the kernels that would compute them in each run. Large values are left to the run, because they would take
 * memory for the plan's life. */
#include "graph/passes/passes.h"

enum { FOLD_BYTES = 1 << 16 };

static bool is_fixed(const pli_plan *p, const pli_plan_node *n) {
    if (n->work != PLI_WORK_KERNEL && n->work != PLI_WORK_MAP && n->work != PLI_WORK_NONE) return false;
    if ((n->op->flags & PLAIT_OP_STATEFUL) != 0) return false;
    size_t bytes = 0;
    for (int32_t i = 0; i < n->n_out; i++) bytes += pli_tensor_bytes(&p->value[n->output + i].t);
    for (int32_t i = 0; i < n->n_in; i++)
        if (pli_plan_reads(n, i) && p->value[p->input[n->input + i]].place != PLI_PLACE_CONSTANT) return false;
    return bytes <= FOLD_BYTES;
}

static plait_status run_items(const pli_plan_node *n, plait_call *call, void *scratch) {
    const void *lane[PLI_MAP_INPUTS];
    for (int32_t i = 0; n->work == PLI_WORK_MAP && i < n->n_in; i++) lane[i] = call->in[i].data;
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; i < n->items && status == PLAIT_OK; i++) {
        if (n->work == PLI_WORK_MAP)
            pli_map_run(n->map, lane, call->out, scratch, i);
        else
            status = n->kernel->run(call, i);
    }
    return status;
}

static plait_status run_node(const pli_plan_node *n, plait_call *call, size_t scratch_bytes) {
    call->scratch = pli_aligned(scratch_bytes);
    if (call->scratch == NULL) return PLAIT_ENOMEM;
    plait_status status = n->kernel != NULL && n->kernel->open != NULL ? n->kernel->open(call, &call->state) : PLAIT_OK;
    if (status == PLAIT_OK) status = run_items(n, call, call->scratch);
    if (call->state != NULL && n->kernel->close != NULL) n->kernel->close(call->state);
    pli_free(call->scratch);
    return status;
}

/* Folds a node. If its kernel fails, the node stays, so that the run reports the failure. */
static plait_status fold(pli_plan *p, pli_plan_node *n, plait_error *err) {
    plait_error   own;
    plait_tensor *in = pli_arena_take(&p->work, (size_t)n->n_in * sizeof *in), out[64];
    if (in == NULL) return pli_plan_no_memory(err);
    for (int32_t i = 0; i < n->n_in; i++) in[i] = p->value[p->input[n->input + i]].t;
    for (int32_t i = 0; i < n->n_out; i++) {
        out[i] = p->value[n->output + i].t;
        out[i].data = n->work == PLI_WORK_NONE ? in[0].data : pli_arena_take(&p->arena, pli_tensor_bytes(&out[i]));
        if (out[i].data == NULL) return pli_plan_no_memory(err);
    }
    plait_call call = {
        .in = in, .out = out, .n_in = n->n_in, .n_out = n->n_out, .attr = n->attr, .user = n->op->user, .error = &own
    };
    if (n->work != PLI_WORK_NONE) {
        PLI_TRY(pli_plan_choose_node(p, n, err));
        const plait_status status = run_node(n, &call, p->scratch_bytes);
        if (status != PLAIT_OK) return status == PLAIT_ENOMEM ? pli_plan_no_memory(err) : PLAIT_OK;
    }
    for (int32_t i = 0; i < n->n_out; i++) {
        p->value[n->output + i].place = PLI_PLACE_CONSTANT;
        p->value[n->output + i].t.data = out[i].data;
    }
    return PLAIT_OK;
}

static plait_status run(pli_plan *p, plait_error *err) {
    for (int64_t k = 0; k < p->n_nodes; k++)
        if (is_fixed(p, &p->node[k])) PLI_TRY(fold(p, &p->node[k], err));
    return PLAIT_OK;
}

const pli_pass pli_pass_fold = { .name = "fold", .run = run };
