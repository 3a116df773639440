/* Sessions. A run finds or makes its plan, takes a free instance of the plan, runs it, and fills the fetches. */
#include "graph/session.h"

#include <string.h>

#include "graph/batches.h"
#include "graph/cut.h"
#include "graph/passes/passes.h"

void (plait_session_opts_init)(plait_session_opts *opts) {
    if (opts != NULL) *opts = (plait_session_opts){ .size = sizeof *opts };
}

void plait_session_opts_init_sized(plait_session_opts *opts, size_t size) {
    plait_session_opts all;
    (plait_session_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- life ------------------------------------------------------------------------------------------------------ */

static plait_status check(const plait_graph *graph, const plait_session_opts *opts, plait_error *err) {
    const plait_store *s = opts->store;
    if (s != NULL && (s->get == NULL || s->get_rows == NULL || s->inc == NULL || s->inc_rows == NULL || s->end == NULL))
        return pli_fail(err, PLAIT_EINVAL, "a store needs get, get_rows, inc, inc_rows and end");
    return opts->cut != NULL ? pli_cut_check(graph, opts->cut, err) : PLAIT_OK;
}

/* Keeps a copy of the cut. */
static plait_status keep_cut(plait_session *s, const plait_cut *cut, plait_error *err) {
    s->cut = *cut;
    if (cut->channel != NULL) s->channel = *cut->channel;
    s->cut.channel = &s->channel;
    s->place = pli_array((size_t)cut->n_places, sizeof *s->place);
    if (s->place == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a session");
    if (cut->n_places > 0) memcpy(s->place, cut->place, (size_t)cut->n_places * sizeof *s->place);
    s->cut.place = s->place;
    s->plan_opts.cut = &s->cut;
    return PLAIT_OK;
}

/* The options of an older caller as ours. *cut_own holds those of the cut, to which own->cut then points. */
static plait_status take(const plait_session_opts *given, plait_session_opts *own, plait_cut *cut_own,
                         plait_error *err) {
    plait_session_opts_init(own);
    plait_cut_init(cut_own);
    PLI_TRY(pli_sized_take(own, sizeof *own, PLI_SIZED_END(plait_session_opts, trace_user), given,
                           "plait_session_opts", err));
    PLI_TRY(pli_sized_take(cut_own, sizeof *cut_own, PLI_SIZED_END(plait_cut, channel), own->cut, "plait_cut", err));
    if (own->cut != NULL) own->cut = cut_own;
    return PLAIT_OK;
}

plait_status pli_session_create(const plait_graph *graph, const plait_session_opts *given, pli_pool *pool,
                                plait_session **session_out, plait_error *err) {
    plait_session_opts opts;
    plait_cut          cut;
    uint32_t           passes = 0;
    PLI_TRY(plait_graph_check(graph, err));
    PLI_TRY(take(given, &opts, &cut, err));
    PLI_TRY(check(graph, &opts, err));
    PLI_TRY(pli_passes_parse(opts.passes, &passes, err));
    plait_session *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a session");
    s->graph = graph;
    s->pool = pool;
    s->opts = opts;
    pthread_mutex_init(&s->lock, NULL);
    plait_status status = PLAIT_OK;
    if (s->opts.dump != NULL && (s->dump = pli_strdup(s->opts.dump)) == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for a session");
    s->plan_opts = (pli_plan_opts){ .passes = passes,
                                    .threads = pli_pool_threads(pool),
                                    .dump = s->dump,
                                    .texts = s->opts.trace != NULL,
                                    .grain_ns = 20000 };
    if (status == PLAIT_OK && s->opts.cut != NULL) status = keep_cut(s, s->opts.cut, err);
    if (status == PLAIT_OK) status = pli_choice_read(graph, s->opts.exclude, s->opts.train, &s->choice, err);
    if (pli_choice_any(&s->choice)) s->plan_opts.choice = &s->choice;
    if (status == PLAIT_OK && s->opts.kernels != NULL)
        status = pli_kernel_set_open(s->opts.kernels, &s->module, &s->plan_opts.kernels, err);
    if (s->opts.store != NULL)
        s->store = *s->opts.store;
    else if (status == PLAIT_OK)
        status = pli_memory_create(graph, pool, &s->memory, &s->store, err);
    if (status == PLAIT_OK)
        *session_out = s;
    else
        plait_session_destroy(&s);
    return status;
}

plait_status plait_session_create(const plait_graph *graph, const plait_session_opts *opts, plait_session **session_out,
                                  plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, graph));
    PLI_TRY(PLI_GIVEN(error_out, session_out));
    plait_session_opts own;
    plait_cut          cut;
    PLI_TRY(plait_graph_check(graph, error_out));
    PLI_TRY(take(opts, &own, &cut, error_out));
    PLI_TRY(check(graph, &own, error_out));
    const int32_t threads = own.threads != 0 ? own.threads : pli_cores();
    pli_pool     *pool = NULL;
    if (threads != 1) PLI_TRY(pli_pool_create(threads, &pool, error_out));
    const plait_status status = pli_session_create(graph, &own, pool, session_out, error_out);
    if (status == PLAIT_OK)
        (*session_out)->own_pool = pool != NULL;
    else
        pli_pool_destroy(&pool);
    return status;
}

void plait_session_destroy(plait_session **session) {
    plait_session *s = session == NULL ? NULL : *session;
    if (s == NULL) return;
    while (s->plans != NULL) {
        pli_plan *next = s->plans->next;
        pli_plan_destroy(&s->plans);
        s->plans = next;
    }
    pli_memory_destroy(&s->memory);
    pli_free(s->use);
    if (s->own_pool) pli_pool_destroy(&s->pool);
    if (s->module != NULL) pli_module_close(&s->module);
    pli_free(s->dump);
    pli_free(s->place);
    pli_choice_free(&s->choice);
    pthread_mutex_destroy(&s->lock);
    pli_free(s);
    *session = NULL;
}

/* --- plans ----------------------------------------------------------------------------------------------------- */

/* Gives an instance back. well: a run used it, and succeeded. */
void pli_session_give(plait_session *s, pli_plan *plan, pli_instance *instance, bool well) {
    pthread_mutex_lock(&s->lock);
    plan->runs--;
    if (well) pli_metadata_note(s, plan, instance->run);
    if (instance != NULL) {
        instance->next = plan->free;
        plan->free = instance;
    }
    pthread_mutex_unlock(&s->lock);
}

enum { PLANS_MAX = 64 }; /* plans that are kept, so that ever new lengths of feeds do not fill the memory */

/* Finds a plan, and moves it to the front of the list. */
static pli_plan *find(plait_session *s, uint64_t hash, const pli_plan_key *key) {
    pli_plan **link = &s->plans;
    while (*link != NULL && !pli_plan_is_for(*link, hash, key)) link = &(*link)->next;
    pli_plan *p = *link;
    if (p == NULL) return NULL;
    *link = p->next;
    p->next = s->plans;
    s->plans = p;
    return p;
}

/* Frees the least recently used plan that is not running now. */
static void forget_one(plait_session *s) {
    pli_plan **oldest = NULL;
    int32_t    n = 0;
    for (pli_plan **link = &s->plans; *link != NULL; link = &(*link)->next, n++)
        if ((*link)->runs == 0) oldest = link;
    if (n < PLANS_MAX || oldest == NULL) return;
    pli_plan *p = *oldest;
    *oldest = p->next;
    pli_plan_destroy(&p);
}

/* Takes the plan of a key, and an instance to run it in; makes what is missing. */
plait_status pli_session_take(plait_session *s, const pli_plan_key *key, pli_plan **plan_out,
                              pli_instance **instance_out, plait_error *err) {
    const uint64_t hash = pli_plan_hash(key);
    plait_status   status = PLAIT_OK;
    pthread_mutex_lock(&s->lock);
    pli_plan *p = find(s, hash, key);
    if (p == NULL) {
        status = pli_metadata_reserve(s, err);
        if (status == PLAIT_OK) status = pli_plan_create(s->graph, key, &s->plan_opts, &p, err);
        if (status == PLAIT_OK) {
            forget_one(s);
            p->next = s->plans;
            s->plans = p;
        }
    }
    pli_instance *x = p != NULL ? p->free : NULL;
    if (x != NULL) p->free = x->next;
    if (p != NULL) p->runs++;
    pthread_mutex_unlock(&s->lock);
    if (status == PLAIT_OK && x == NULL) status = pli_instance_create(p, s->plan_opts.threads, &x, err);
    if (status != PLAIT_OK && p != NULL) pli_session_give(s, p, NULL, false);
    *plan_out = p;
    *instance_out = x;
    return status;
}

/* --- a run ----------------------------------------------------------------------------------------------------- */

/* Does this part of a cut graph read the data of feed i? */
static bool is_read(const pli_plan *p, int32_t i) {
    for (int32_t k = 0; k < p->n_fed; k++)
        if (p->value[p->fed[k]].number == i) return p->value[p->fed[k]].n_patches > 0;
    return false;
}

plait_status pli_session_check_memory(const pli_plan *p, const pli_plan_key *key, plait_error *err) {
    char name[80];
    for (int32_t i = 0; i < key->n_feeds; i++) {
        if (key->feeds[i].tensor.data != NULL || plait_shape_elements(&key->feeds[i].tensor.shape) == 0 ||
            (p->cut != NULL && !is_read(p, i)))
            continue;
        pli_value_text(p->graph, key->feeds[i].value, name);
        return pli_fail(err, PLAIT_EINVAL, "feed of %s: no data", name);
    }
    for (int32_t i = 0; i < key->n_fetches; i++) {
        if (p->fetch[i] < 0 || key->fetches[i].tensor.data == NULL ||
            pli_tensor_bytes(&p->value[p->fetch[i]].t) <= key->fetches[i].bytes)
            continue;
        pli_value_text(p->graph, key->fetches[i].value, name);
        return pli_fail(err, PLAIT_EINVAL, "fetch of %s: it has %zu bytes, and the memory for it %zu", name,
                        pli_tensor_bytes(&p->value[p->fetch[i]].t), key->fetches[i].bytes);
    }
    return PLAIT_OK;
}

void pli_session_hand_out(const pli_plan *p, const pli_instance *x, plait_fetch *fetches) {
    for (int32_t i = 0; i < p->key.n_fetches; i++) {
        if (p->fetch[i] < 0 || fetches[i].tensor.data == NULL) continue;
        const plait_tensor *from = &x->value[p->fetch[i]];
        const size_t        bytes = pli_tensor_bytes(from);
        if (bytes > 0) memcpy(fetches[i].tensor.data, from->data, bytes);
        fetches[i].tensor.type = from->type;
        fetches[i].tensor.shape = from->shape;
    }
}

static plait_status run_in(plait_session *s, const pli_plan *plan, pli_instance *x, const pli_plan_key *key,
                           plait_fetch *fetches, plait_error *err) {
    if (s->memory != NULL)
        PLI_TRY(pli_memory_enter(s->memory, plan->n_expect + plan->n_push, plan->expect, plan->incs, err));
    plait_status status = pli_run_plan(s, plan, x, key, err);
    if (status == PLAIT_OK) pli_session_hand_out(plan, x, fetches);
    const plait_status ended = s->store.end(s->store.user, status, status == PLAIT_OK ? err : NULL);
    if (s->memory != NULL) pli_memory_leave(s->memory);
    return status == PLAIT_OK ? ended : status;
}

plait_status pli_session_check_key(const plait_session *session, const pli_plan_key *key, plait_error *err) {
    if (key->n_feeds < 0 || key->n_fetches < 0 || key->n_exclude < 0)
        return pli_fail(err, PLAIT_EINVAL,
                        "plait_session_run: %d feeds, %d fetches, %d values to exclude; expected 0 or more of each",
                        key->n_feeds, key->n_fetches, key->n_exclude);
    PLI_TRY(plait_graph_check(session->graph, err));
    for (int32_t i = 0; i < key->n_feeds; i++)
        if (key->feeds[i].tensor.shape.rank < 0 || key->feeds[i].tensor.shape.rank > PLAIT_RANK_MAX)
            return pli_fail(err, PLAIT_ESHAPE, "feed %d has %d axes, which no array has", i,
                            key->feeds[i].tensor.shape.rank);
    return PLAIT_OK;
}

plait_status plait_session_run(plait_session *session, const plait_feed *feeds, int32_t n_feeds, plait_fetch *fetches,
                               int32_t n_fetches, const plait_value *exclude, int32_t n_exclude,
                               plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, session));
    PLI_TRY(PLI_GIVEN_OF(error_out, n_feeds, feeds));
    PLI_TRY(PLI_GIVEN_OF(error_out, n_fetches, fetches));
    PLI_TRY(PLI_GIVEN_OF(error_out, n_exclude, exclude));
    const pli_plan_key key = { .feeds = feeds,
                               .fetches = fetches,
                               .exclude = exclude,
                               .n_feeds = n_feeds,
                               .n_fetches = n_fetches,
                               .n_exclude = n_exclude };
    PLI_TRY(pli_session_check_key(session, &key, error_out));
    if (session->plan_opts.cut != NULL) return pli_batches_run_one(session, &key, fetches, error_out);
    pli_plan          *plan = NULL;
    pli_instance      *x = NULL;
    PLI_TRY(pli_session_take(session, &key, &plan, &x, error_out));
    plait_status status = pli_session_check_memory(plan, &key, error_out);
    if (status == PLAIT_OK) status = run_in(session, plan, x, &key, fetches, error_out);
    pli_session_give(session, plan, x, status == PLAIT_OK);
    return status;
}

plait_status plait_session_variable(plait_session *session, int32_t k, void *data, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, session));
    PLI_TRY(PLI_GIVEN(error_out, data));
    if (k < 0 || k >= session->graph->n_variables)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_session_variable: there is no variable %d", k);
    if (session->memory != NULL) PLI_TRY(pli_memory_enter(session->memory, 1, &k, false, error_out));
    const void  *values = NULL;
    plait_status status = session->store.get(session->store.user, k, &values, error_out);
    const size_t bytes = pli_tensor_bytes(&session->graph->variable[k].initial);
    if (status == PLAIT_OK && bytes > 0) memcpy(data, values, bytes);
    const plait_status ended = session->store.end(session->store.user, status, status == PLAIT_OK ? error_out : NULL);
    if (session->memory != NULL) pli_memory_leave(session->memory);
    return status == PLAIT_OK ? ended : status;
}

plait_status plait_session_set_variable(plait_session *session, int32_t k, const void *data, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, session));
    PLI_TRY(PLI_GIVEN(error_out, data));
    if (k < 0 || k >= session->graph->n_variables)
        return pli_fail(error_out, PLAIT_EINVAL, "plait_session_set_variable: there is no variable %d", k);
    if (session->memory == NULL)
        return pli_fail(error_out, PLAIT_EREFUSED,
                        "variable '%s' lies in a store of yours; set it there, as by an inc of its table",
                        session->graph->variable[k].name);
    PLI_TRY(pli_memory_enter(session->memory, 1, &k, true, error_out));
    pthread_mutex_lock(&session->lock);
    const plait_status status = pli_metadata_reserve(session, error_out);
    if (status == PLAIT_OK) {
        pli_memory_set(session->memory, k, data);
        session->use[k].version++;
    }
    pthread_mutex_unlock(&session->lock);
    pli_memory_leave(session->memory);
    return status;
}
