/* Makes a plan: its key, its kernels, the places of its values; calls the other files that make parts of a plan, in
 * order. */
#include "graph/plan.h"

#include <stdio.h>
#include <string.h>

#include "graph/cut.h"
#include "graph/dump.h"
#include "graph/passes/passes.h"

enum { ARENA_CHUNK_BYTES = 1 << 16 };

plait_status pli_plan_no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a plan of the graph");
}

/* --- the key --------------------------------------------------------------------------------------------------- */

static bool wants_data(const plait_fetch *fetch) { return fetch->tensor.data != NULL; }

uint64_t pli_plan_hash(const pli_plan_key *key) {
    uint64_t h = (uint64_t)(uint32_t)key->n_feeds << 32 | (uint32_t)key->n_fetches;
    for (int32_t i = 0; i < key->n_feeds; i++) {
        const plait_feed *f = &key->feeds[i];
        h = pli_hash_u64(h + (uint32_t)f->value);
        for (int32_t k = 0; k < f->tensor.shape.rank; k++) h = pli_hash_u64(h + (uint64_t)f->tensor.shape.dim[k]);
    }
    for (int32_t i = 0; i < key->n_fetches; i++)
        h = pli_hash_u64(h + 2 * (uint64_t)(uint32_t)key->fetches[i].value + wants_data(&key->fetches[i]));
    for (int32_t i = 0; i < key->n_exclude; i++) h = pli_hash_u64(h + (uint32_t)key->exclude[i]);
    return h;
}

static bool same_shape(const plait_tensor *a, const plait_tensor *b) {
    return a->type == b->type && a->shape.rank == b->shape.rank &&
           memcmp(a->shape.dim, b->shape.dim, (size_t)a->shape.rank * sizeof *a->shape.dim) == 0;
}

bool pli_plan_is_for(const pli_plan *plan, uint64_t hash, const pli_plan_key *key) {
    const pli_plan_key *own = &plan->key;
    if (plan->hash != hash || own->n_feeds != key->n_feeds || own->n_fetches != key->n_fetches ||
        own->n_exclude != key->n_exclude)
        return false;
    for (int32_t i = 0; i < key->n_feeds; i++)
        if (own->feeds[i].value != key->feeds[i].value || !same_shape(&own->feeds[i].tensor, &key->feeds[i].tensor))
            return false;
    for (int32_t i = 0; i < key->n_fetches; i++)
        if (own->fetches[i].value != key->fetches[i].value ||
            wants_data(&own->fetches[i]) != wants_data(&key->fetches[i]))
            return false;
    return key->n_exclude == 0 ||
           memcmp(own->exclude, key->exclude, (size_t)key->n_exclude * sizeof *key->exclude) == 0;
}

static void *copy(pli_arena *arena, const void *from, size_t n, size_t bytes) {
    void *to = pli_arena_take(arena, n * bytes);
    if (to != NULL && n > 0) memcpy(to, from, n * bytes);
    return to;
}

static bool keep_key(pli_plan *plan, const pli_plan_key *key) {
    plan->hash = pli_plan_hash(key);
    plan->key = *key;
    plan->key.feeds = copy(&plan->arena, key->feeds, (size_t)key->n_feeds, sizeof *key->feeds);
    plan->key.fetches = copy(&plan->arena, key->fetches, (size_t)key->n_fetches, sizeof *key->fetches);
    plan->key.exclude = copy(&plan->arena, key->exclude, (size_t)key->n_exclude, sizeof *key->exclude);
    return plan->key.feeds != NULL && plan->key.fetches != NULL && plan->key.exclude != NULL;
}

/* --- kernels --------------------------------------------------------------------------------------------------- */

static plait_status no_kernel(const pli_plan *p, const pli_plan_node *n, plait_error *err) {
    char name[80], shape[128];
    pli_value_text(p->graph, n->origin, name);
    pli_shape_text(&p->value[n->n_in > 0 ? p->input[n->input] : n->output].t, shape);
    return pli_fail(err, PLAIT_EINVAL, "%s: the op has no kernel for %s", name, shape);
}

static void need_scratch(pli_plan *p, size_t bytes) {
    if (bytes > p->scratch_bytes) p->scratch_bytes = bytes;
}

static plait_status choose_map(pli_plan *p, pli_plan_node *n, const plait_call *call, plait_error *err) {
    if (n->map == NULL) { /* if not, the pass fuse has made it */
        int32_t in[PLI_MAP_INPUTS];
        for (int32_t i = 0; i < n->n_in && i < PLI_MAP_INPUTS; i++) in[i] = i;
        const pli_map_op one = { .op = n->op, .attr = n->attr, .n_in = n->n_in, .in = in, .type = call->out[0].type };
        PLI_TRY(pli_map_create(&p->arena, &one, 1, call->in, n->n_in, &call->out[0].shape, &n->map, err));
        if (n->map == NULL) return no_kernel(p, n, err);
    }
    n->items = pli_map_items(n->map);
    n->cost_ns = 0.4 * (double)n->map->n_steps * (double)n->map->elements;
    need_scratch(p, pli_map_scratch(n->map));
    return PLAIT_OK;
}

static plait_status choose_kernel(pli_plan *p, pli_plan_node *n, const plait_call *call, plait_error *err) {
    n->kernel = pli_kernel_choose(p->kernels, n->op, call, &n->region);
    if (n->kernel == NULL) return no_kernel(p, n, err);
    n->items = n->kernel->items != NULL ? n->kernel->items(call) : 1;
    double bytes = 0;
    for (int32_t i = 0; i < n->n_in; i++) bytes += pli_plan_reads(n, i) ? (double)pli_tensor_bytes(&call->in[i]) : 0;
    n->cost_ns =
        (n->op->flops != NULL ? n->op->flops(call) / 64 : (double)plait_shape_elements(&call->out[0].shape) / 16) +
        bytes / 8;
    need_scratch(p, n->kernel->scratch != NULL ? n->kernel->scratch(call) : 0);
    return PLAIT_OK;
}

plait_status pli_plan_choose_node(pli_plan *p, pli_plan_node *n, plait_error *err) {
    enum { FEW = 8 };
    if ((n->work != PLI_WORK_KERNEL && n->work != PLI_WORK_MAP) || n->kernel != NULL) return PLAIT_OK;
    plait_tensor few[FEW], out[64], *in = n->n_in <= FEW ? few : pli_array((size_t)n->n_in, sizeof *in);
    if (in == NULL) return pli_plan_no_memory(err);
    for (int32_t i = 0; i < n->n_in; i++) {
        in[i] = p->value[p->input[n->input + i]].t;
        in[i].data = NULL;
    }
    for (int32_t i = 0; i < n->n_out; i++) out[i] = p->value[n->output + i].t;
    const plait_call call = {
        .in = in, .out = out, .n_in = n->n_in, .n_out = n->n_out, .attr = n->attr, .user = n->op->user, .error = err
    };
    const plait_status status =
        n->work == PLI_WORK_MAP ? choose_map(p, n, &call, err) : choose_kernel(p, n, &call, err);
    if (in != few) pli_free(in);
    return status;
}

plait_status pli_plan_choose(pli_plan *p, plait_error *err) {
    for (int64_t k = 0; k < p->n_nodes; k++) PLI_TRY(pli_plan_choose_node(p, &p->node[k], err));
    return PLAIT_OK;
}

/* --- places ---------------------------------------------------------------------------------------------------- */

/* Gives each value its own memory; the pass `memory` does better. */
static plait_status place(pli_plan *p, plait_error *err) {
    for (int64_t k = 0; k < p->n_nodes; k++)
        for (int32_t v = p->node[k].output; v < p->node[k].output + p->node[k].n_out; v++) {
            if (p->value[v].place != PLI_PLACE_MEMORY) continue;
            p->value[v].offset = p->block_bytes;
            if (__builtin_add_overflow(p->block_bytes, pli_place_bytes(&p->value[v].t), &p->block_bytes) ||
                p->block_bytes > SIZE_MAX / 4)
                return pli_fail(err, PLAIT_ENOMEM, "the values of a run are larger than any memory");
        }
    return PLAIT_OK;
}

/* The feed, variable or received value that a value is, or is a view of; -1: none, so it lies in the same
 * place in every run. */
static int32_t external(const pli_plan *p, int32_t v) {
    while (p->value[v].place == PLI_PLACE_VIEW) v = p->value[v].number;
    const pli_place place = p->value[v].place;
    return place == PLI_PLACE_FEED || place == PLI_PLACE_VARIABLE || place == PLI_PLACE_RECEIVED ? v : -1;
}

/* Lists for each feed and variable the inputs and views that point to it: counts first, then fills. */
static plait_status list_patches(pli_plan *p, plait_error *err) {
    int32_t total = 0;
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < p->n_inputs + p->n_values; i++) {
            const int32_t v = i < p->n_inputs ? p->input[i] : (int32_t)(i - p->n_inputs), to = external(p, v);
            if (to < 0 || (i >= p->n_inputs && to == v)) continue;
            pli_plan_value *x = &p->value[to];
            if (round == 1) p->patch[x->patch + x->n_patches] = i < p->n_inputs ? (int32_t)i : ~v;
            x->n_patches++;
        }
        for (int64_t v = 0; round == 0 && v < p->n_values; v++) {
            p->value[v].patch = total;
            total += p->value[v].n_patches;
            p->value[v].n_patches = 0;
        }
        if (round == 0 && (p->patch = pli_arena_take(&p->arena, (size_t)total * sizeof *p->patch)) == NULL)
            return pli_plan_no_memory(err);
    }
    p->n_patches = total;
    p->fed = pli_arena_take(&p->arena, (size_t)p->key.n_feeds * sizeof *p->fed);
    if (p->fed == NULL) return pli_plan_no_memory(err);
    for (int32_t v = 0; v < p->n_values; v++)
        if (p->value[v].place == PLI_PLACE_FEED) p->fed[p->n_fed++] = v;
    return PLAIT_OK;
}

/* --- texts ----------------------------------------------------------------------------------------------------- */

/* The name of a node in traces, "matmul#12". A fused node has the names of all its ops and its last number: "fused add,
 * relu#3", or "matmul + add, relu#3" for an epilogue; "send relu#3 to part 1". */
static void node_text(const plait_graph *graph, const pli_plan_node *n, const char *called, char name[256]) {
    char text[80], *number;
    int  at = 0;
    pli_value_text_as(graph, n->origin, called, text);
    if (n->work == PLI_WORK_SEND || n->work == PLI_WORK_RECV) {
        const bool sends = n->work == PLI_WORK_SEND;
        snprintf(name, 256, "%s %s %s part %d", n->op->name, text, sends ? "to" : "from", n->peer);
        return;
    }
    if (n->n_members > 0) at = snprintf(name, 256, "%.60s%s", n->op->name, n->work == PLI_WORK_KERNEL ? " + " : " ");
    for (int32_t i = 0; i < n->n_members && at < 160; i++)
        at += snprintf(name + at, 256 - (size_t)at, "%s%.24s", i > 0 ? ", " : "", n->member[i]->name);
    number = text + (n->n_members > 0 ? strcspn(text, "# ") : 0);
    snprintf(name + at, 256 - (size_t)at, "%s", number);
}

/* Makes the texts with the plan, so that a traced run spends no time on names. */
static plait_status keep_texts(pli_plan *p, plait_error *err) {
    const char **names = pli_value_names(p->graph);
    p->text = pli_arena_take(&p->arena, (size_t)p->n_nodes * sizeof *p->text);
    bool ok = names != NULL && p->text != NULL;
    for (int64_t k = 0; ok && k < p->n_nodes; k++) {
        char text[256];
        node_text(p->graph, &p->node[k], names[p->node[k].origin], text);
        p->text[k] = copy(&p->arena, text, strlen(text) + 1, 1);
        ok = p->text[k] != NULL;
    }
    pli_free(names);
    return ok ? PLAIT_OK : pli_plan_no_memory(err);
}

/* --- life ------------------------------------------------------------------------------------------------------ */

static plait_status run_passes(pli_plan *p, const pli_plan_opts *opts, bool late, plait_error *err) {
    for (int32_t k = 0; k < PLI_PASSES; k++) {
        const pli_pass *pass = pli_passes[k];
        if ((opts->passes >> k & 1) == 0 || pass->late != late) continue;
        PLI_TRY(pli_dump(p, opts->dump, pass->name, "before", err));
        PLI_TRY(pass->run(p, err));
        if (!late) PLI_TRY(pli_plan_order(p, err));
        PLI_TRY(pli_dump(p, opts->dump, pass->name, "after", err));
    }
    return PLAIT_OK;
}

static plait_status make(pli_plan *p, const pli_plan_opts *opts, plait_error *err) {
    PLI_TRY(pli_plan_copy(p, err));
    PLI_TRY(pli_plan_order(p, err));
    PLI_TRY(run_passes(p, opts, false, err));
    PLI_TRY(pli_plan_choose(p, err));
    PLI_TRY(place(p, err));
    PLI_TRY(run_passes(p, opts, true, err));
    PLI_TRY(list_patches(p, err));
    if (p->cut != NULL) pli_cut_find_turn(p);
    if (opts->texts) PLI_TRY(keep_texts(p, err));
    PLI_TRY(pli_plan_weigh(p, err));
    return pli_plan_tasks(p, err);
}

plait_status pli_plan_create(const plait_graph *graph, const pli_plan_key *key, const pli_plan_opts *opts,
                             pli_plan **plan_out, plait_error *err) {
    pli_plan *p = pli_calloc(1, sizeof *p);
    if (p == NULL) return pli_plan_no_memory(err);
    p->graph = graph;
    p->threads = opts->threads;
    p->grain_ns = opts->grain_ns;
    p->kernels = opts->kernels;
    p->cut = opts->cut;
    p->choice = opts->choice;
    pli_arena_init(&p->arena, ARENA_CHUNK_BYTES);
    pli_arena_init(&p->work, ARENA_CHUNK_BYTES);
    plait_status status = keep_key(p, key) ? PLAIT_OK : pli_plan_no_memory(err);
    if (status == PLAIT_OK) status = make(p, opts, err);
    pli_arena_destroy(&p->work);
    if (status == PLAIT_OK)
        *plan_out = p;
    else
        pli_plan_destroy(&p);
    return status;
}

void pli_plan_destroy(pli_plan **plan) {
    pli_plan *p = *plan;
    if (p == NULL) return;
    while (p->free != NULL) {
        pli_instance *next = p->free->next;
        pli_instance_destroy(p, &p->free);
        p->free = next;
    }
    pli_arena_destroy(&p->arena);
    pli_free(p->node);
    pli_free(p->input);
    pli_free(p->value);
    pli_free(p->task);
    pli_free(p->next_task);
    pli_free(p->after);
    pli_free(p);
    *plan = NULL;
}
