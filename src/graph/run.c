/* Running a plan: its nodes one after the other, each item of a node's kernel in turn. */
#include <string.h>

#include "graph/session.h"

typedef struct run {
    plait_session      *session;
    const pli_plan     *plan;
    pli_instance       *x;
    const pli_plan_key *key;
    uint64_t            step;
    plait_error        *err;
} run;

static plait_status failed_at(const run *r, const pli_plan_node *n, plait_status status, plait_error *err) {
    char name[80];
    pli_value_text(r->plan->graph, n->origin, name);
    if (err->code != status) return pli_fail(err, status, "%s: failed and did not say why", name);
    (void)pli_fail_at(err, "%s", name);
    return status;
}

/* --- nodes of the store ---------------------------------------------------------------------------------------- */

static plait_status check_rows(const run *r, const plait_tensor *rows, int32_t variable, plait_error *err) {
    const int64_t  all = r->plan->graph->variable[variable].initial.shape.dim[0], n = plait_shape_elements(&rows->shape);
    const int64_t *row = rows->data;
    for (int64_t i = 0; i < n; i++)
        if (row[i] < 0 || row[i] >= all)
            return pli_fail(err, PLAIT_EINVAL, "row %lld of variable '%s', which has %lld", (long long)row[i],
                            r->plan->graph->variable[variable].name, (long long)all);
    return PLAIT_OK;
}

static plait_status run_store(run *r, const pli_plan_node *n, plait_error *err) {
    const plait_store *store = &r->session->store;
    plait_tensor      *in = r->x->in + n->input, *out = r->x->value + n->output;
    if (n->work == PLI_WORK_GET) {
        const void        *values = NULL;
        const plait_status status = store->get(store->user, n->variable, &values, err);
        out->data = (void *)(uintptr_t)values;
        return status;
    }
    if (n->work == PLI_WORK_INC) {
        *(uint8_t *)out->data = 1;
        return store->inc(store->user, n->variable, in[1].data, err);
    }
    const int64_t rows = plait_shape_elements(&in[1].shape);
    PLI_TRY(check_rows(r, &in[1], n->variable, err));
    if (n->work == PLI_WORK_GET_ROWS) return store->get_rows(store->user, n->variable, rows, in[1].data, out->data, err);
    *(uint8_t *)out->data = 1;
    return store->inc_rows(store->user, n->variable, rows, in[1].data, in[2].data, err);
}

/* --- nodes ----------------------------------------------------------------------------------------------------- */

static plait_status run_items(const run *r, int64_t k, int64_t first, int64_t end, plait_error *err) {
    const pli_plan_node *n = &r->plan->node[k];
    if (n->work == PLI_WORK_MAP) {
        for (int64_t i = first; i < end; i++) pli_map_run(n->map, r->x->in + n->input, r->x->value + n->output, n->attr, r->x->scratch, i);
        return PLAIT_OK;
    }
    plait_call call = pli_plan_call(r->plan, r->x, k, err);
    call.scratch = r->x->scratch;
    call.seed = pli_hash_u64(r->session->opts.seed + pli_hash_u64((uint64_t)(uint32_t)n->origin));
    call.step = r->step;
    call.log = r->session->opts.log;
    for (int64_t i = first; i < end; i++) PLI_TRY(n->kernel->run(&call, i));
    return PLAIT_OK;
}

static void bind_inputs(const run *r, const pli_plan_node *n) {
    for (int32_t i = n->input; i < n->input + n->n_in; i++) r->x->in[i].data = r->x->value[r->plan->input[i]].data;
}

static plait_status run_node(run *r, int64_t k, plait_error *err) {
    const pli_plan_node *n = &r->plan->node[k];
    bind_inputs(r, n);
    if (n->work == PLI_WORK_KERNEL || n->work == PLI_WORK_MAP) return run_items(r, k, 0, n->items, err);
    if (n->work != PLI_WORK_NONE) return run_store(r, n, err);
    r->x->value[n->output].data = r->x->in[n->input].data;
    return PLAIT_OK;
}

static plait_status run_traced(run *r, int64_t k, plait_error *err) {
    const plait_session_opts *opts = &r->session->opts;
    if (opts->trace == NULL) return run_node(r, k, err);
    const uint64_t     begin = pli_now_ns();
    const plait_status status = run_node(r, k, err);
    char               name[80];
    pli_value_text(r->plan->graph, r->plan->node[k].origin, name);
    opts->trace(opts->trace_user, name, 0, begin, pli_now_ns());
    return status;
}

plait_status pli_run_plan(plait_session *session, const pli_plan *plan, pli_instance *instance, const pli_plan_key *key,
                          plait_error *err) {
    plait_error own;
    run         r = { .session = session, .plan = plan, .x = instance, .key = key, .err = err != NULL ? err : &own,
                      .step = atomic_fetch_add_explicit(&session->runs, 1, memory_order_relaxed) };
    r.err->code = PLAIT_OK;
    for (int64_t v = 0; v < plan->n_values; v++)
        if (plan->value[v].place == PLI_PLACE_FEED) instance->value[v].data = key->feeds[plan->value[v].number].tensor.data;
    for (int64_t k = 0; k < plan->n_nodes; k++) {
        const plait_status status = run_traced(&r, k, r.err);
        if (status != PLAIT_OK) return failed_at(&r, &plan->node[k], status, r.err);
    }
    return PLAIT_OK;
}
