/* Runs a plan: one node after the other, or by a crew of threads. */
#include <string.h>

#include "graph/crew.h"
#include "graph/gather.h"
#include "graph/session.h"

typedef struct run {
    plait_session  *session;
    const pli_plan *plan;
    pli_instance   *x;
    uint64_t        step;
} run;

static plait_status failed_at(const run *r, const pli_plan_node *n, plait_status status, plait_error *err) {
    char name[80];
    pli_value_text(r->plan->graph, n->origin, name);
    if (err->code != status) return pli_fail(err, status, "%s: failed and did not say why", name);
    (void)pli_fail_at(err, "%s", name);
    return status;
}

/* --- nodes of the channel -------------------------------------------------------------------------------------- */

static plait_edge edge_of(const plait_session *s, const pli_plan_node *n, const pli_instance *x) {
    const bool sends = n->work == PLI_WORK_SEND;
    return (plait_edge){ .value = n->origin,
                         .from = sends ? s->cut.own : n->peer,
                         .to = sends ? n->peer : s->cut.own,
                         .replica = s->cut.replica,
                         .micro_batch = x->run - 1 };
}

/* Sends or receives, if that is possible now. */
static plait_status run_channel(const run *r, const pli_plan_node *n, bool *done_out, plait_error *err) {
    const plait_channel *c = &r->session->channel;
    const plait_edge     edge = edge_of(r->session, n, r->x);
    if (n->work == PLI_WORK_SEND) {
        int                taken = 0;
        const plait_status status = c->send(c->user, &edge, &r->x->in[n->input], &taken, err);
        *done_out = taken != 0;
        return status;
    }
    const void *data = NULL;
    PLI_TRY(c->receive(c->user, &edge, &r->plan->value[n->output].t, &data, err));
    *done_out = data != NULL;
    if (data != NULL) pli_instance_bind(r->plan, r->x, n->output, (void *)(uintptr_t)data);
    return PLAIT_OK;
}

/* --- nodes of the store ---------------------------------------------------------------------------------------- */

static plait_status check_rows(const run *r, const plait_tensor *rows, int32_t variable, plait_error *err) {
    const int64_t all = r->plan->graph->variable[variable].initial.shape.dim[0], n = plait_shape_elements(&rows->shape);
    const int64_t *row = rows->data;
    for (int64_t i = 0; i < n; i++)
        if (row[i] < 0 || row[i] >= all)
            return pli_fail(err, PLAIT_EINVAL, "row %lld of variable '%s', which has %lld", (long long)row[i],
                            r->plan->graph->variable[variable].name, (long long)all);
    return PLAIT_OK;
}

static plait_status run_store(const run *r, const pli_plan_node *n, plait_error *err) {
    const plait_store *store = &r->session->store;
    plait_tensor      *in = r->x->in + n->input, *out = r->x->value + n->output;
    if (n->work == PLI_WORK_GET) {
        const void        *values = NULL;
        const plait_status status = store->get(store->user, n->variable, &values, err);
        if (status == PLAIT_OK) pli_instance_bind(r->plan, r->x, n->output, (void *)(uintptr_t)values);
        return status;
    }
    if (n->work == PLI_WORK_INC) {
        *(uint8_t *)out->data = 1;
        if (r->session->gather != NULL)
            return pli_gather_inc(r->session->gather, store, n->origin, n->variable, &in[1], err);
        return store->inc(store->user, n->variable, in[1].data, err);
    }
    const int64_t rows = plait_shape_elements(&in[1].shape);
    PLI_TRY(check_rows(r, &in[1], n->variable, err));
    if (n->work == PLI_WORK_GET_ROWS)
        return store->get_rows(store->user, n->variable, rows, in[1].data, out->data, err);
    *(uint8_t *)out->data = 1;
    if (r->session->gather != NULL)
        return pli_gather_inc_rows(r->session->gather, store, n->origin, n->variable, &in[1], &in[2], err);
    return store->inc_rows(store->user, n->variable, rows, in[1].data, in[2].data, err);
}

/* --- nodes ----------------------------------------------------------------------------------------------------- */

/* Runs the map over the elements that the item has just made; they lie in an output of the map. */
static void run_epilogue(const run *r, const pli_plan_node *n, const plait_call *call, int64_t item) {
    const pli_region made = n->region(call, item);
    const void      *in[PLI_MAP_INPUTS] = { call->out[0].data };
    for (int32_t i = 1; i < n->map->n_in; i++) in[i] = r->x->lane[n->input + n->kernel_in + i - 1];
    for (int64_t i = 0; i < made.count && made.length > 0; i++)
        pli_map_run_some(n->map, in, r->x->value + n->output, call->scratch, made.first + i * made.step, made.length);
}

static plait_status run_items(const run *r, int64_t k, int64_t first, int64_t end, int32_t thread, plait_error *err) {
    const pli_plan_node *n = &r->plan->node[k];
    if (n->work == PLI_WORK_MAP) {
        void *scratch = pli_plan_scratch(r->plan, r->x, thread);
        for (int64_t i = first; i < end; i++)
            pli_map_run(n->map, r->x->lane + n->input, r->x->value + n->output, scratch, i);
        return PLAIT_OK;
    }
    plait_call call = pli_plan_call(r->plan, r->x, k, thread, err);
    call.seed = pli_hash_u64(r->session->opts.seed + pli_hash_u64((uint64_t)(uint32_t)n->origin));
    call.step = r->step + r->session->draws;
    call.log = r->session->opts.log;
    plait_status status = PLAIT_OK;
    for (int64_t i = first; i < end && status == PLAIT_OK; i++) {
        status = n->kernel->run(&call, i);
        if (status == PLAIT_OK && n->map != NULL) run_epilogue(r, n, &call, i);
    }
    return status;
}

static plait_status run_node(const run *r, int64_t k, int64_t first, int64_t end, int32_t thread, plait_error *err) {
    const pli_plan_node *n = &r->plan->node[k];
    plait_status         status = PLAIT_OK;
    if (n->work == PLI_WORK_KERNEL || n->work == PLI_WORK_MAP)
        status = run_items(r, k, first, end, thread, err);
    else if (n->work != PLI_WORK_NONE)
        status = run_store(r, n, err);
    return status == PLAIT_OK ? status : failed_at(r, n, status, err);
}

static plait_status run_traced(const run *r, int64_t k, int64_t first, int64_t end, int32_t thread, plait_error *err) {
    const plait_session_opts *opts = &r->session->opts;
    const uint64_t            begin = pli_now_ns();
    const plait_status        status = run_node(r, k, first, end, thread, err);
    opts->trace(opts->trace_user, r->plan->text[k], thread, begin, pli_now_ns());
    return status;
}

static plait_status run_one(void *user, int64_t k, int64_t first, int64_t end, int32_t thread, plait_error *err) {
    const run *r = user;
    const plait_status status =
        (r->session->opts.trace != NULL ? run_traced : run_node)(r, k, first, end, thread, err);
    const pli_plan_node *n = &r->plan->node[k];
    const pli_weight nothing = { 0 };
    if (r->session->charge != NULL && n->work != PLI_WORK_NONE)
        r->session->charge(r->session->charge_user,
                           pli_plan_adds_up(n) && r->session->gather == NULL ? &nothing : &n->weight);
    return status;
}

/* --- a plan ---------------------------------------------------------------------------------------------------- */

plait_status pli_run_plan(plait_session *session, const pli_plan *plan, pli_instance *instance, const pli_plan_key *key,
                          plait_error *err) {
    plait_error own;
    run         r = { .session = session,
                      .plan = plan,
                      .x = instance,
                      .step = atomic_fetch_add_explicit(&session->runs, 1, memory_order_relaxed) };
    instance->run = (int64_t)r.step + 1;
    if (err == NULL) err = &own;
    err->code = PLAIT_OK;
    for (int32_t i = 0; i < plan->n_fed; i++)
        pli_instance_bind(plan, instance, plan->fed[i], key->feeds[plan->value[plan->fed[i]].number].tensor.data);
    if (session->store.expect != NULL && plan->n_expect > 0)
        PLI_TRY(session->store.expect(session->store.user, (int32_t)plan->n_expect, plan->expect, err));
    /* Work is charged to the simulated rank that calls: its nodes run one after the other, on its own thread. */
    if (instance->crew != NULL && session->pool != NULL && session->charge == NULL)
        return pli_crew_run(instance->crew, session->pool, run_one, &r, err);
    plait_status status = PLAIT_OK;
    for (int64_t k = 0; k < plan->n_nodes && status == PLAIT_OK; k++)
        status = run_one(&r, k, 0, plan->node[k].items, 0, err);
    return status;
}

/* --- a plan of a cut graph, by steps --------------------------------------------------------------------------- */

void pli_plan_begin(const pli_plan *plan, pli_instance *x, const pli_plan_key *key, int64_t number) {
    x->at = 0;
    x->run = number + 1;
    for (int32_t i = 0; i < plan->n_fed; i++)
        pli_instance_bind(plan, x, plan->fed[i], key->feeds[plan->value[plan->fed[i]].number].tensor.data);
}

/* The threads share the items of a large node. */
typedef struct shared {
    run         *run;
    int64_t      k, items;
    int32_t      pieces;
    _Atomic int  failed; /* relaxed: pli_pool_for publishes what comes before its return */
    plait_error  error;
} shared;

static void run_piece(void *user, int64_t i, int32_t thread) {
    shared       *s = user;
    const int64_t first = s->items * i / s->pieces, end = s->items * (i + 1) / s->pieces;
    plait_error   own = { .code = PLAIT_OK };
    if (first >= end || run_one(s->run, s->k, first, end, thread, &own) == PLAIT_OK) return;
    if (atomic_exchange_explicit(&s->failed, 1, memory_order_relaxed) == 0) s->error = own;
}

static plait_status run_shared(run *r, int64_t k, plait_error *err) {
    enum { SHARED = 2, PIECES = 4 }; /* grains of work, as in tasks.c; pieces for each thread */
    const pli_plan_node *n = &r->plan->node[k];
    const int32_t        threads = pli_pool_threads(r->session->pool);
    if (threads == 1 || n->items <= 1 || n->cost_ns <= SHARED * r->plan->grain_ns)
        return run_one(r, k, 0, n->items, 0, err);
    shared s = { .run = r, .k = k, .items = n->items, .pieces = PIECES * threads };
    pli_pool_for(r->session->pool, s.pieces, run_piece, &s);
    if (s.failed != 0) *err = s.error;
    return s.failed != 0 ? s.error.code : PLAIT_OK;
}

plait_status pli_plan_step(plait_session *session, const pli_plan *plan, pli_instance *x, int64_t until,
                          bool *waits_out, bool *sends_out, plait_edge *edge_out, plait_error *err) {
    plait_error own;
    run         r = { .session = session, .plan = plan, .x = x, .step = (uint64_t)(x->run - 1) };
    if (err == NULL) err = &own;
    err->code = PLAIT_OK;
    *waits_out = false;
    for (; x->at < until; x->at++) {
        const pli_plan_node *n = &plan->node[x->at];
        if (n->work != PLI_WORK_SEND && n->work != PLI_WORK_RECV) {
            PLI_TRY(run_shared(&r, x->at, err));
            continue;
        }
        bool         done = false;
        plait_status status = run_channel(&r, n, &done, err);
        if (status != PLAIT_OK) return failed_at(&r, n, status, err);
        if (done) continue;
        *waits_out = true;
        *sends_out = n->work == PLI_WORK_SEND;
        *edge_out = edge_of(session, n, x);
        return PLAIT_OK;
    }
    return PLAIT_OK;
}

void pli_plan_release(plait_session *session, const pli_plan *plan, pli_instance *x) {
    const plait_channel *c = &session->channel;
    for (int64_t k = 0; k < x->at; k++) {
        const pli_plan_node *n = &plan->node[k];
        if (n->work != PLI_WORK_RECV) continue;
        const plait_edge edge = edge_of(session, n, x);
        c->release(c->user, &edge, x->value[n->output].data);
    }
    x->at = 0;
}
