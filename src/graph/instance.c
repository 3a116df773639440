/* The memory of one run of a plan: a block that holds the values, tensors that point into it, states of kernels, and
 * scratch memory. */
#include <string.h>

#include "graph/crew.h"
#include "graph/plan.h"

static size_t scratch_of_thread(const pli_plan *plan) { return (plan->scratch_bytes + 63) & ~(size_t)63; }

plait_call pli_plan_call(const pli_plan *plan, const pli_instance *x, int64_t k, int32_t thread, plait_error *err) {
    const pli_plan_node *n = &plan->node[k];
    const bool           epilogue = n->work == PLI_WORK_KERNEL && n->map != NULL;
    return (plait_call){ .in = x->in + n->input,
                         .out = x->value + n->output + (epilogue ? n->raw : 0),
                         .n_in = epilogue ? n->kernel_in : n->n_in,
                         .n_out = epilogue ? 1 : n->n_out,
                         .attr = n->attr,
                         .state = x->state[k],
                         .scratch = pli_plan_scratch(plan, x, thread),
                         .user = n->op->user,
                         .error = err };
}

void *pli_plan_scratch(const pli_plan *plan, const pli_instance *x, int32_t thread) {
    return x->scratch + (size_t)thread * scratch_of_thread(plan);
}

void pli_instance_bind(const pli_plan *plan, pli_instance *x, int64_t value, void *data) {
    const pli_plan_value *v = &plan->value[value];
    if (x->value[value].data == data) return; /* nothing has changed since the last run */
    x->value[value].data = data;
    for (int32_t i = v->patch; i < v->patch + v->n_patches; i++) {
        const int32_t at = plan->patch[i];
        if (at < 0) {
            x->value[~at].data = data;
        } else {
            x->in[at].data = data;
            x->lane[at] = data;
        }
    }
}

static void describe(const pli_plan *plan, pli_instance *x) {
    for (int64_t v = 0; v < plan->n_values; v++) {
        const pli_plan_value *value = &plan->value[v];
        x->value[v] = value->t;
        if (value->place == PLI_PLACE_MEMORY) x->value[v].data = x->block + value->offset;
    }
    for (int64_t v = 0; v < plan->n_values; v++) {
        int32_t from = (int32_t)v;
        while (plan->value[from].place == PLI_PLACE_VIEW) from = plan->value[from].number;
        x->value[v].data = x->value[from].data;
    }
    for (int64_t i = 0; i < plan->n_inputs; i++) {
        x->in[i] = x->value[plan->input[i]];
        x->lane[i] = x->in[i].data;
    }
}

static plait_status open_kernels(const pli_plan *plan, pli_instance *x, plait_error *err) {
    for (int64_t k = 0; k < plan->n_nodes; k++) {
        const pli_plan_node *n = &plan->node[k];
        if (n->kernel == NULL || n->kernel->open == NULL) continue;
        const plait_call   call = pli_plan_call(plan, x, k, 0, err);
        const plait_status status = n->kernel->open(&call, &x->state[k]);
        if (status == PLAIT_OK) continue;
        char name[80];
        pli_value_text(plan->graph, n->origin, name);
        (void)pli_fail_at(err, "%s", name);
        return status;
    }
    return PLAIT_OK;
}

plait_status pli_instance_create(const pli_plan *plan, int32_t threads, pli_instance **instance_out, plait_error *err) {
    pli_instance *x = pli_calloc(1, sizeof *x);
    if (x == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to run a plan");
    plait_error own;
    size_t      scratch;
    if (__builtin_mul_overflow(scratch_of_thread(plan), (size_t)threads, &scratch)) scratch = SIZE_MAX;
    x->block = pli_aligned(plan->block_bytes);
    x->scratch = scratch < SIZE_MAX / 4 ? pli_aligned(scratch) : NULL;
    x->value = pli_array((size_t)plan->n_values, sizeof *x->value);
    x->in = pli_array((size_t)plan->n_inputs, sizeof *x->in);
    x->lane = pli_array((size_t)plan->n_inputs, sizeof *x->lane);
    x->state = pli_calloc((size_t)plan->n_nodes, sizeof *x->state);
    plait_status status = PLAIT_OK;
    if (x->block == NULL || x->scratch == NULL || x->value == NULL || x->in == NULL || x->lane == NULL ||
        x->state == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory to run a plan: %zu bytes for its values", plan->block_bytes);
    if (status == PLAIT_OK && plan->n_tasks > 0) status = pli_crew_create(plan, &x->crew, err);
    if (status == PLAIT_OK) {
        describe(plan, x);
        status = open_kernels(plan, x, err != NULL ? err : &own);
    }
    if (status == PLAIT_OK)
        *instance_out = x;
    else
        pli_instance_destroy(plan, &x);
    return status;
}

void pli_instance_destroy(const pli_plan *plan, pli_instance **instance) {
    pli_instance *x = *instance;
    if (x == NULL) return;
    for (int64_t k = 0; x->state != NULL && k < plan->n_nodes; k++)
        if (x->state[k] != NULL && plan->node[k].kernel->close != NULL) plan->node[k].kernel->close(x->state[k]);
    pli_crew_destroy(&x->crew);
    pli_free(x->block);
    pli_free(x->scratch);
    pli_free(x->value);
    pli_free(x->in);
    pli_free(x->lane);
    pli_free(x->state);
    pli_free(x);
    *instance = NULL;
}
