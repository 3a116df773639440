/* topology gossip - each worker has a copy of the table, moves it by its own updates, and averages it with the copies
 * of its neighbours (neighbours.h) only. No message goes to all workers, and no worker waits for all. So the cost of a
 * clock does not grow with the number of workers. get returns the own copy; the model is the average of all copies.
 *
 *     at the end of a clock     own updates move the own copy, `workers` times as far as their share of the clock, so
 *                               that the average moves as the one copy of bsp would (and exactly by what was added,
 *                               where a table is additive)
 *     bsp, local-sgd:H          a round follows, in each clock or each H clocks: workers exchange copies with their
 *                               neighbours, and mix them
 *     async                     one neighbour, another in each clock, gets the copy and a part of its weight; the
 *                               worker mixes what has come (gossip.h)
 *     with replicas             a round is a step of all (gossip_agreed.c), and the others go on when a worker dies
 *     with filters              messages carry differences to what neighbours know of the copy (estimates.h)
 *     at a barrier              a sum over all workers makes the average of all copies. The worker reads the average
 *                               until its next clock; its own copy stays as it was
 *
 * Papers: those of gossip.h. */
#include <stdio.h>
#include <string.h>

#include "table/events.h"
#include "table/state/shard.h"
#include "table/state/updates.h"
#include "table/state/values.h"
#include "table/table.h"
#include "table/topology/agreed_clock.h"
#include "table/topology/averaged.h"

enum { WHAT_BYTES = 128, MIX = 4096 /* values at a time */ };

/* A worker of less weight has sent away much more weight than it has received. It waits until somebody sends it
 * some. */
static const double LEAST_WEIGHT = 1.0 / 64;

/* The part of its weight that a worker gives to one neighbour in a clock. With a half, as the papers have it, weights
 * soon differ much, and a step of a light mirror is long (its updates move it by `workers` / weight). With an eighth
 * runs end nearer to the optimum on all nine sets of docs/topologies.md, and mix more slowly. */
static const double GIVEN = 1.0 / 8;

/* --- life --------------------------------------------------------------------------------------------------------- */

static plait_status open_machine(plait_job *job, plait_error *err) {
    if (job->gossip_port != NULL) return PLAIT_OK;
    int32_t rank = pli_job_me(job);
    if (!pli_gossip_init(&job->gossip, rank, job->layout.workers, job->layout.resend_after_ns))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to average with %d workers", job->layout.workers);
    job->gossip.survives = job->layout.replicas > 1;
    return pli_port_open_in(job->comm, job->group, PLI_PORT_GOSSIP, &pli_gossip_ops, &job->gossip, &job->gossip_port,
                            err);
}

plait_status pli_averaged_filters(plait_table *table, plait_error *err) {
    struct pli_averaged      *a = table->state;
    const plait_job          *job = table->job;
    const pli_estimates_place place = { .scope = pli_layout_filters(&job->layout), .seed = job->layout.seed,
                                        .rank = pli_job_me(job), .workers = job->layout.workers, .among = a->among,
                                        .graph = a->graph, .rounds = pli_policy_at_clock(&a->policy) };
    pli_estimates_close(&a->estimates);
    if (table->spec.filter[0] == '\0' || a->among.n == 1) return PLAIT_OK;
    return pli_estimates_open(&table->spec, &place, a->shard.store.slab->memory, &a->estimates, err);
}

static plait_status open_living(plait_table *table, plait_error *err) {
    struct pli_averaged *a = table->state;
    const int32_t        workers = table->job->layout.workers;
    a->living = pli_array((size_t)workers, sizeof *a->living);
    if (a->living == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", table->spec.name);
    for (int32_t w = 0; w < workers; w++) a->living[w] = w;
    a->among = (pli_among){ .n = workers, .worker = a->living };
    return PLAIT_OK;
}

static plait_status open_copy(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    const pli_spec  *spec = &table->spec;
    plait_job       *job = table->job;
    const pli_scope  scope = pli_layout_scope(&job->layout);
    struct pli_averaged *a = pli_calloc(1, sizeof *a);
    uint64_t         now_ns;
    pli_out          out;
    if (a == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec->name);
    table->state = a;
    a->n = spec->rows * spec->cols;
    a->weight = 1;
    a->graph = (pli_graph)spec->topology.word;
    pli_pending_init(&a->pending, spec, 0);
    PLI_TRY(pli_policy_make(spec->consistency, &scope, &a->policy, err));
    PLI_TRY(pli_shard_open(&a->shard, spec, 0, false, initial, penalty, err));
    PLI_TRY(open_living(table, err));
    PLI_TRY(pli_averaged_filters(table, err));
    if (job->layout.replicas > 1) PLI_TRY(pli_averaged_agree(table, err));
    PLI_TRY(open_machine(job, err));
    pli_port_enter(job->gossip_port, &now_ns, &out);
    a->peers = pli_gossip_add(&job->gossip, spec->id, spec->type, a->n, pli_policy_at_clock(&a->policy));
    if (a->peers != NULL) a->peers->estimates = a->estimates;
    pli_port_leave(job->gossip_port, &out);
    return a->peers != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec->name);
}

static plait_status gossip_open(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    plait_job *job = table->job;
    char       what[WHAT_BYTES];
    snprintf(what, sizeof what, "table %s", table->spec.name);
    plait_status status = open_copy(table, initial, penalty, err);
    pli_raise_table(pli_job_events(job), pli_job_me(job), &table->spec, PLI_WAY_AVERAGED);
    status = pli_job_agree(job, what, 0, status, err);
    job->agreed_carries = status >= 0 && job->agreed != NULL; /* from here on the same on all workers */
    return status;
}

static void gossip_close(plait_table *table) {
    struct pli_averaged *a = table->state;
    pli_table_unpin(table);
    table->state = NULL;
    if (a == NULL) return;
    pli_pending_destroy(&a->pending);
    if (a->peers == NULL) pli_estimates_close(&a->estimates); /* else they are the machine's */
    if (a->shard.store.chunk != NULL) pli_shard_close(&a->shard);
    pli_policy_destroy(&a->policy);
    pli_averaged_forget(a);
    pli_free(a->average);
    pli_free(a->living);
    pli_free(a);
}

/* --- reads and updates -------------------------------------------------------------------------------------------- */

/* Behind a barrier no copy moves until the clock ends, so the average is read. */
static const void *average_of(const plait_table *table) {
    return pli_averaged_of(table)->met ? pli_averaged_of(table)->average : NULL;
}

/* An inc moves the average by what it adds, so it moves the own copy by more. */
static double scale_of_pending(const plait_table *table) {
    return table->spec.ruled ? 0 : (double)pli_averaged_of(table)->among.n / pli_averaged_of(table)->weight;
}

/* The part of what is pending that is laid over what is read: over the average, or over the own copy. */
static double scale_of_own(const plait_table *table) {
    return average_of(table) != NULL && !table->spec.ruled ? 1 : scale_of_pending(table);
}

static void raise_get(const plait_table *table, const pli_rows *rows) {
    const struct pli_averaged *a = table->state;
    const pli_mirror_seen     seen = { .version = a->pushes, .from = a->pushes, .to = a->pushes,
                                        .incs = table->spec.ruled ? 0 : a->incs };
    pli_raise_mirror_get(pli_job_events(table->job), pli_job_me(table->job), &table->spec,
                          table->job->clock, &seen, rows->n, rows->keys, rows->first);
}

static void get_average(const plait_table *table, const pli_rows *rows, void *values) {
    const void *average = average_of(table);
    int64_t     row_bytes = pli_row_bytes(&table->spec);
    if (rows->keys == NULL)
        memcpy(values, pli_at_const(average, rows->first * row_bytes), (size_t)(rows->n * row_bytes));
    for (int64_t i = 0; rows->keys != NULL && i < rows->n; i++)
        memcpy(pli_at(values, i * row_bytes), pli_at_const(average, (int64_t)rows->keys[i] * row_bytes),
               (size_t)row_bytes);
}

static plait_status gossip_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    (void)err;
    const struct pli_averaged *a = table->state;
    double                     scale = scale_of_own(table);
    raise_get(table, rows);
    if (average_of(table) != NULL) get_average(table, rows, values);
    else if (rows->keys != NULL) pli_store_get(&a->shard.store, rows->n, rows->keys, values);
    else pli_store_get_rows(&a->shard.store, rows->first, rows->n, values);
    if (rows->keys != NULL) pli_pending_overlay(&a->pending, scale, rows->n, rows->keys, values);
    else pli_pending_overlay_range(&a->pending, scale, rows->first, rows->n, values);
    return PLAIT_OK;
}

static plait_status gossip_read(plait_table *table, int64_t first, int64_t n, const void **values_out,
                                plait_error *err) {
    const struct pli_averaged *a = table->state;
    const pli_rows             rows = { .first = first, .n = n };
    bool                       laid_over = !table->spec.ruled && a->pending.touched;
    const void                *values = average_of(table);
    if (values == NULL && !table->spec.lazy) values = a->shard.store.slab->memory;
    if (values != NULL && !laid_over) {
        raise_get(table, &rows);
        *values_out = pli_at_const(values, first * pli_row_bytes(&table->spec));
        return PLAIT_OK;
    }
    return pli_table_read_copy(table, first, n, values_out, err);
}

static plait_status gossip_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                               plait_error *err) {
    struct pli_averaged *a = table->state;
    pli_job_resume(table->job);
    PLI_TRY(pli_pending_add_rows(&a->pending, rows->n, rows->keys, rows->first, delta, examples, err));
    a->incs++;
    pli_raise_inc(pli_job_events(table->job), pli_job_me(table->job), &table->spec, rows->n,
                  rows->keys, rows->first, delta);
    return PLAIT_OK;
}

/* --- waiting for neighbours --------------------------------------------------------------------------------------- */

static bool is_there(void *arg) { return pli_gossip_is_there(arg); }

static int32_t held_by(const plait_table *table) {
    return atomic_load_explicit(&pli_averaged_of(table)->peers->held_by, memory_order_acquire);
}

static void tell(const void *arg, char *text, size_t bytes) {
    const plait_table *table = arg;
    int32_t            rank = held_by(table);
    long long          clock = (long long)plait_job_clock_now(table->job);
    if (rank < 0) snprintf(text, bytes, "mirrors of table %s for clock %lld, which have arrived",
                           table->spec.name, clock);
    else snprintf(text, bytes, "a mirror of table %s for clock %lld, held up by rank %d",
                  table->spec.name, clock, rank);
}

static void show(const void *arg, pli_wait *wait) {
    wait->kind = PLI_WAIT_RECV;
    wait->peer = held_by(arg);
}

static plait_status wait_for_neighbours(plait_table *table, plait_error *err) {
    const pli_reason reason = { .tell = tell, .show = show, .arg = table };
    return pli_comm_wait(table->job->comm, is_there, pli_averaged_of(table)->peers, &reason, err);
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to average mirrors", table->spec.name);
}

void pli_averaged_raise(const plait_table *table, pli_event_kind kind, int32_t peer, int64_t sent, int64_t clock) {
    pli_event_raise(pli_job_events(table->job),
                    &(pli_event){ .kind = kind, .rank = pli_job_me(table->job), .peer = peer,
                                  .table = table->spec.id, .clock = clock, .seq = (uint64_t)sent });
}

static plait_status apply_own(plait_table *table, int64_t clock, const pli_push_part *part, plait_error *err) {
    struct pli_averaged *a = table->state;
    const pli_spec      *spec = &table->spec;
    if (spec->ruled) return pli_shard_apply_own(&a->shard, clock, a->among.n, part, err);
    int64_t values = (spec->keyed ? part->n : spec->rows) * spec->cols;
    pli_values_scale(spec->type, values, scale_of_pending(table), a->pending.sum);
    return pli_shard_apply_push(&a->shard, 0, clock, 1, part, err);
}

static plait_status move_own(plait_table *table, int64_t clock, plait_error *err) {
    struct pli_averaged *a = table->state;
    const pli_spec      *spec = &table->spec;
    const pli_pending   *p = &a->pending;
    if (!p->touched) return PLAIT_OK;
    const pli_push_part part = pli_push_part_of(p);
    pli_raise_push(pli_job_events(table->job), pli_job_me(table->job), PLI_EVENT_PUSH, spec->id,
                   clock);
    PLI_TRY(apply_own(table, clock, &part, err));
    pli_comm_work(table->job->comm, PLI_WORK_VALUES, (uint64_t)(part.n * spec->cols));
    a->incs = 0;
    a->pushes++;
    pli_pending_clear(&a->pending);
    return PLAIT_OK;
}

/* Mixes the copies of one block with equal weights: the own one, and those that were heard. */
static void mix_block(const plait_table *table, const pli_heard *h, int64_t at, int64_t count, void *into) {
    const struct pli_averaged *a = table->state;
    plait_type                 type = table->spec.type;
    int64_t                    bytes = at * table->spec.width;
    double                     weight = 1 / (double)(h->n + 1);
    int32_t                    me = pli_job_me(table->job), i = 0;
    memset(pli_at(into, bytes), 0, (size_t)(count * table->spec.width));
    for (; i < h->n && h->from[i] < me; i++)
        pli_values_add_scaled(type, count, weight, pli_at_const(h->values[i], bytes), pli_at(into, bytes));
    pli_values_add_scaled(type, count, weight, pli_at_const(a->shard.store.slab->memory, bytes), pli_at(into, bytes));
    for (; i < h->n; i++)
        pli_values_add_scaled(type, count, weight, pli_at_const(h->values[i], bytes), pli_at(into, bytes));
}

/* The same out of estimates: what was heard pulls, what the others know of this copy pulls back. */
static void mix_estimates(const plait_table *table, const pli_heard *h, int64_t at, int64_t count, void *into) {
    const struct pli_averaged *a = table->state;
    plait_type                 type = table->spec.type;
    int64_t                    bytes = at * table->spec.width;
    double                     step = a->estimates->share / (double)(h->n + 1);
    int32_t                    to[PLI_NEIGHBOURS_MAX];
    int32_t n = pli_among_to(a->graph, &a->among, pli_job_me(table->job), a->rounds, to);
    memcpy(pli_at(into, bytes), pli_at_const(a->shard.store.slab->memory, bytes), (size_t)(count * table->spec.width));
    for (int32_t i = 0; i < h->n; i++)
        pli_values_add_scaled(type, count, step, pli_at_const(h->values[i], bytes), pli_at(into, bytes));
    for (int32_t i = 0; i < n; i++)
        pli_values_add_scaled(type, count, -step, pli_at_const(pli_estimates_own(a->estimates, to[i]), bytes),
                              pli_at(into, bytes));
}

/* What goes to one neighbour, through the filters, behind `head` bytes of the caller's. */
static plait_status filtered_copy(plait_table *table, int64_t clock, int32_t to, size_t head, pli_msg **copy_out,
                                  plait_error *err) {
    struct pli_averaged *a = table->state;
    pli_bytes            bytes = { 0 };
    plait_status         status =
        pli_estimates_put(a->estimates, to, clock, a->shard.store.slab->memory, &bytes, err);
    pli_msg *msg = status >= 0 ? pli_msg_new(head + (size_t)bytes.n) : NULL;
    if (msg != NULL) memcpy(pli_at(pli_msg_body(msg), (int64_t)head), bytes.data, (size_t)bytes.n);
    pli_bytes_free(&bytes);
    *copy_out = msg;
    return status >= 0 && msg == NULL ? no_memory(table, err) : status;
}

/* A message for each of to [n]: the copy itself; through filters, one for all where all hear the same. */
plait_status pli_averaged_copies(plait_table *table, int64_t clock, int32_t n, const int32_t *to, pli_msg **copy,
                                 plait_error *err) {
    struct pli_averaged *a = table->state;
    plait_status         status = PLAIT_OK;
    for (int32_t i = 0; status >= 0 && i < n; i++) {
        if (a->estimates == NULL) copy[i] = pli_msg_of_slab(a->shard.store.slab, 0, a->shard.store.slab->bytes);
        else if (i > 0 && a->estimates->shared) copy[i] = pli_msg_copy(copy[0]);
        else status = filtered_copy(table, clock, to[i], 0, &copy[i], err);
        if (status >= 0 && copy[i] == NULL) status = no_memory(table, err);
    }
    for (int32_t i = 0; status < 0 && i < n; i++) pli_msg_free(&copy[i]);
    return status;
}

static plait_status give_to_all(plait_table *table, int64_t clock, plait_error *err) {
    struct pli_averaged *a = table->state;
    plait_job           *job = table->job;
    int32_t              to[PLI_NEIGHBOURS_MAX], from[PLI_NEIGHBOURS_MAX], me = pli_job_me(job);
    int32_t  n_to = pli_among_to(a->graph, &a->among, me, a->rounds, to);
    int32_t  n_from = pli_among_from(a->graph, &a->among, me, a->rounds, from);
    uint64_t now_ns;
    pli_out  out;
    plait_status status = PLAIT_OK;
    pli_msg *copy[PLI_NEIGHBOURS_MAX] = { NULL };
    PLI_TRY(pli_averaged_copies(table, clock, n_to, to, copy, err));
    for (int32_t i = 0; i < n_to; i++) pli_averaged_raise(table, PLI_EVENT_GIVE, to[i], clock, clock);
    pli_port_enter(job->gossip_port, &now_ns, &out);
    for (int32_t i = 0; status >= 0 && i < n_to; i++) {
        status = pli_gossip_give(&job->gossip, a->peers, now_ns, clock, to[i], copy[i], &out, err);
        copy[i] = NULL;
    }
    pli_gossip_await(a->peers, PLI_GOSSIP_COPY, clock, n_from, from);
    pli_port_leave(job->gossip_port, &out);
    for (int32_t i = 0; i < n_to; i++) pli_msg_free(&copy[i]);
    return status;
}

/* Takes what has come, and through the filters learns from it. */
static void hear(plait_table *table, int64_t clock, pli_heard *h) {
    struct pli_averaged *a = table->state;
    uint64_t             now_ns;
    pli_out              out;
    h->n = a->peers->n_from;
    pli_port_enter(table->job->gossip_port, &now_ns, &out);
    for (int32_t i = 0; i < h->n; i++) {
        h->from[i] = a->peers->from[i];
        h->msg[i] = pli_gossip_take(a->peers, clock, h->from[i]);
    }
    pli_port_leave(table->job->gossip_port, &out);
}

/* Through the filters the worker learns from what has come. */
static plait_status learn(const struct pli_averaged *a, int64_t clock, pli_heard *h, plait_error *err) {
    for (int32_t i = 0; i < h->n; i++) {
        h->values[i] = pli_msg_body(h->msg[i]);
        if (a->estimates != NULL)
            PLI_TRY(pli_estimates_take(a->estimates, h->from[i], clock, pli_msg_body(h->msg[i]),
                                       (int64_t)h->msg[i]->head.body_bytes, &h->values[i], err));
    }
    return PLAIT_OK;
}

plait_status pli_averaged_mix(plait_table *table, int64_t clock, pli_heard *h, plait_error *err) {
    struct pli_averaged *a = table->state;
    const bool           estimated = a->estimates != NULL && !a->estimates->exact;
    pli_slab            *mixed = pli_slab_new(a->shard.store.slab->bytes);
    if (mixed == NULL) return no_memory(table, err);
    plait_status status = learn(a, clock, h, err);
    for (int64_t at = 0; status >= 0 && at < a->n; at += MIX)
        (estimated ? mix_estimates : mix_block)(table, h, at, a->n - at < MIX ? a->n - at : MIX, mixed->memory);
    if (status >= 0) pli_store_swap(&a->shard.store, mixed);
    else pli_slab_unref(&mixed);
    pli_comm_work(table->job->comm, PLI_WORK_SUMS, (uint64_t)(a->n * (h->n + 1)));
    for (int32_t i = 0; i < h->n; i++) pli_averaged_raise(table, PLI_EVENT_MIX, h->from[i], clock, clock);
    return status;
}

static plait_status mix_round(plait_table *table, int64_t clock, plait_error *err) {
    pli_heard h;
    hear(table, clock, &h);
    const plait_status status = pli_averaged_mix(table, clock, &h, err);
    for (int32_t i = 0; i < h.n; i++) pli_msg_free(&h.msg[i]);
    return status;
}

static plait_status round_of(plait_table *table, int64_t clock, plait_error *err) {
    struct pli_averaged *a = table->state;
    pli_store_pay_all(&a->shard.store);
    PLI_TRY(give_to_all(table, clock, err));
    PLI_TRY(wait_for_neighbours(table, err));
    PLI_TRY(mix_round(table, clock, err));
    a->rounds++;
    return PLAIT_OK;
}

static void mix_box(plait_table *table, int64_t clock) {
    struct pli_averaged *a = table->state;
    bool                 came = a->peers->box_weight > 0;
    pli_gossip_mix(a->peers, &a->weight, a->shard.store.slab->memory);
    for (int64_t i = 0; came && i < a->peers->n_come; i++)
        pli_averaged_raise(table, PLI_EVENT_MIX, a->peers->come[i].peer, a->peers->come[i].clock, clock);
    if (came) pli_comm_work(table->job->comm, PLI_WORK_SUMS, (uint64_t)(2 * a->n));
}

static plait_status plain_copy(plait_table *table, size_t head, pli_msg **copy_out, plait_error *err) {
    const pli_slab *values = pli_averaged_of(table)->shard.store.slab;
    pli_msg        *msg = pli_msg_new(head + values->bytes);
    if (msg == NULL) return no_memory(table, err);
    memcpy(pli_at(pli_msg_body(msg), (int64_t)head), values->memory, values->bytes);
    *copy_out = msg;
    return PLAIT_OK;
}

/* The weight goes with what the neighbour knows of the copy; what it does not know stays, in what is left of the
 * weight. */
static void keep_rest(plait_table *table, int32_t to, double gone) {
    struct pli_averaged *a = table->state;
    const double         part = gone / a->weight;
    if (a->estimates == NULL || a->estimates->exact) return;
    pli_values_scale(table->spec.type, a->n, 1 + part, a->shard.store.slab->memory);
    pli_values_add_scaled(table->spec.type, a->n, -part, pli_estimates_own(a->estimates, to),
                          a->shard.store.slab->memory);
    pli_comm_work(table->job->comm, PLI_WORK_SUMS, (uint64_t)a->n);
}

/* Less goes through filters that let less through. */
static plait_status weighted_copy(plait_table *table, int64_t clock, int32_t to, pli_msg **copy_out,
                                  plait_error *err) {
    struct pli_averaged *a = table->state;
    const double         most = a->estimates != NULL ? a->estimates->share / 2 : 1;
    const double         gone = a->weight * (most < GIVEN ? most : GIVEN);
    PLI_TRY(a->estimates == NULL ? plain_copy(table, sizeof gone, copy_out, err)
                                 : filtered_copy(table, clock, to, sizeof gone, copy_out, err));
    memcpy(pli_msg_body(*copy_out), &gone, sizeof gone);
    a->weight -= gone;
    keep_rest(table, to, gone);
    return PLAIT_OK;
}

/* Mixes what has come, and sends the copy to the next neighbour with a part of its weight. */
plait_status pli_averaged_pass_on(plait_table *table, int64_t clock, plait_error *err) {
    struct pli_averaged *a = table->state;
    plait_job           *job = table->job;
    plait_status         status = PLAIT_OK;
    uint64_t             now_ns;
    pli_out              out;
    int32_t to = pli_among_next(a->graph, &a->among, pli_job_me(job), a->rounds++);
    pli_store_pay_all(&a->shard.store);
    if (!pli_store_own(&a->shard.store)) return no_memory(table, err);
    pli_port_enter(job->gossip_port, &now_ns, &out);
    mix_box(table, clock);
    if (to >= 0 && !job->gossip.dead[to] && a->weight >= LEAST_WEIGHT) {
        pli_msg *copy = NULL;
        status = weighted_copy(table, clock, to, &copy, err);
        if (status >= 0) pli_averaged_raise(table, PLI_EVENT_GIVE, to, clock, clock);
        if (status >= 0) status = pli_gossip_give(&job->gossip, a->peers, now_ns, clock, to, copy, &out, err);
    }
    pli_port_leave(job->gossip_port, &out);
    return status;
}

bool pli_averaged_meets(const plait_table *table, int64_t clock) {
    const plait_job *job = table->job;
    return !pli_policy_may_start(&pli_averaged_of(table)->policy, job->layout.workers, pli_job_me(job),
                                 clock + 1, clock);
}

static plait_status gossip_ends(plait_table *table, plait_error *err) {
    pli_free(pli_averaged_of(table)->average);
    pli_averaged_of(table)->average = NULL;
    pli_averaged_of(table)->met = false;
    if (!pli_store_own(&pli_averaged_of(table)->shard.store)) return no_memory(table, err);
    return move_own(table, table->job->clock, err);
}

/* Nobody waits, save when a worker has died. */
static plait_status clock_alone(plait_table *table, int64_t clock, plait_error *err) {
    plait_job *job = table->job;
    if (job->agreed != NULL && (pli_agreed_run_lost(job->agreed) || pli_averaged_must_meet(table)))
        PLI_TRY(pli_agreed_meet(job, err));
    return pli_averaged_pass_on(table, clock, err);
}

static plait_status gossip_clock(plait_table *table, plait_error *err) {
    const int64_t clock = table->job->clock;
    if (!pli_averaged_of(table)->peers->rounds) return clock_alone(table, clock, err);
    return pli_averaged_meets(table, clock) ? round_of(table, clock, err) : PLAIT_OK;
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

/* Others must not wait for who waits here, if a worker has died: they meet, at another table perhaps, and it comes,
 * too. */
static bool may_go_on(void *arg) {
    plait_table *table = arg;
    plait_job   *job = table->job;
    return pli_gossip_is_there(pli_averaged_of(table)->peers) ||
           (job->agreed != NULL && (!job->agreed_clocks || pli_averaged_of(table)->peers->of == PLI_GOSSIP_MET) &&
            pli_agreed_run_lost(job->agreed));
}

plait_status pli_averaged_gather(plait_table *table, pli_gossip_kind kind, int64_t number, plait_error *err) {
    struct pli_averaged *a = table->state;
    plait_job           *job = table->job;
    const pli_reason     reason = { .tell = tell, .show = show, .arg = table };
    int32_t  list[PLI_NEIGHBOURS_MAX], me = pli_job_me(job);
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->gossip_port, &now_ns, &out);
    plait_status status = pli_gossip_mark(&job->gossip, a->peers, now_ns, kind, number,
                                          pli_among_ever_to(a->graph, &a->among, me, list), list, &out, err);
    int32_t n = pli_among_ever_from(a->graph, &a->among, me, list);
    pli_gossip_await(a->peers, kind, number, n, list);
    pli_port_leave(job->gossip_port, &out);
    if (status >= 0) status = pli_comm_wait(job->comm, may_go_on, table, &reason, err);
    if (status >= 0 && !pli_gossip_is_there(a->peers)) return PLAIT_STAND_IN;
    if (status < 0 || !pli_store_own(&a->shard.store)) return status < 0 ? status : no_memory(table, err);
    pli_port_enter(job->gossip_port, &now_ns, &out);
    mix_box(table, job->clock);
    a->peers->holds = kind == PLI_GOSSIP_MET;
    pli_port_leave(job->gossip_port, &out);
    return PLAIT_OK;
}

/* All copies have come, and those who live have met if they must. */
static plait_status gather_all(plait_table *table, plait_error *err) {
    struct pli_averaged *a = table->state;
    plait_status         status = a->peers->rounds ? PLAIT_OK : PLAIT_STAND_IN;
    while (status == PLAIT_STAND_IN) {
        status = pli_averaged_gather(table, PLI_GOSSIP_MARK, a->marks, err);
        if (status == PLAIT_STAND_IN) PLI_TRY(pli_agreed_meet(table->job, err));
    }
    return status;
}

static plait_status sum_mirrors(plait_table *table, plait_error *err) {
    struct pli_averaged *a = table->state;
    if (a->gone != NULL) return pli_averaged_sum(table, a->average, err);
    pli_store_get_rows(&a->shard.store, 0, table->spec.rows, a->average);
    pli_values_scale(table->spec.type, a->n, a->weight, a->average);
    pli_updates_set(&table->spec, a->average, a->n, a->weight);
    return pli_job_allreduce(table->job, a->average, a->n + 1, table->spec.type);
}

static plait_status gossip_settle(plait_table *table, plait_error *err) {
    struct pli_averaged *a = table->state;
    plait_status         status;
    if (table->job->layout.workers == 1) return PLAIT_OK;
    if (a->average == NULL) a->average = pli_aligned((size_t)((a->n + 1) * table->spec.width));
    if (a->average == NULL) return no_memory(table, err);
    do {
        PLI_TRY(gather_all(table, err));
        status = sum_mirrors(table, err);
    } while (status == PLAIT_STAND_IN);
    if (status < 0) return status;
    a->marks++;
    pli_values_scale(table->spec.type, a->n, 1 / pli_updates_at(&table->spec, a->average, a->n), a->average);
    return PLAIT_OK;
}

static void gossip_refresh(plait_table *table) {
    if (!table->job->quiet) pli_averaged_of(table)->met = true;
}

/* Behind the barrier all that was sent has come. Weights stay; their sum is the number of workers. */
static plait_status gossip_zero(plait_table *table, int64_t number, plait_error *err) {
    struct pli_averaged *a = pli_averaged_of(table);
    (void)number;
    if (!pli_store_zero(&a->shard.store)) return no_memory(table, err);
    if (a->estimates != NULL) pli_estimates_reset(a->estimates, NULL);
    pli_averaged_equal(a);
    if (a->average != NULL) memset(a->average, 0, (size_t)(a->n * table->spec.width));
    return PLAIT_OK;
}

const pli_topology_ops pli_averaged_ops = {
    .open = gossip_open, .close = gossip_close, .get = gossip_get, .read = gossip_read, .inc = gossip_inc,
    .ends = gossip_ends, .clock = gossip_clock, .give = pli_averaged_give, .gave = pli_averaged_gave,
    .settle = gossip_settle, .refresh = gossip_refresh, .zero = gossip_zero,
    .own = &pli_averaged_own,
};
