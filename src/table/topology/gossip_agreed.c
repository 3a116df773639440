/* Mirrors that are averaged with neighbours, when a worker dies and the others go on (plait_job_opts.replicas).
 *
 * A round is a step that all living workers end, or none does (comm/agreed_run.h): each gives its mirror to its
 * neighbours of that round, and mixes what it has got when the step has ended. So nobody mixes a mirror of a round that
 * others do not have. When a worker dies, the step is dropped, plait_job_clock answers PLAIT_STAND_IN, and heirs add
 * what the dead one would have added. The step that follows is no round. In it those who live *meet*: they sum all
 * mirrors, and each goes on with the average of all. Then
 *
 *   the graph is one over those who live (copies/neighbours.h), so it is connected, and its matrix of weights is doubly
 *   stochastic; an update moves the own mirror as many times as far as there are living workers;
 *   filters begin anew: nothing is known of the dead one's mirror, and all know each other's, which are equal;
 *   a further death is dealt with in the same way.
 *
 * What is the dead one's mirror? It went into the last round as y_d, and came out as (y_d + sum of its neighbours' y) /
 * (k + 1), since a round has ended for all or for none. Those to whom it gave y_d have it, and the neighbours have
 * theirs. So each y is added once, by the first of those who live and have it; the sum of all mirrors is what it was,
 * and no update of a clock that has ended is lost. What is lost:
 *
 *   a y, if all who have it die at once;
 *   what the mirror has moved since the last round, under local-sgd:H;
 *   what filters with a loss have kept back of it: what neighbours know of the mirror stands for it then;
 *   all of it without rounds (async: nobody knows what it has given away), or before the first round of a run that was
 *   resumed from a checkpoint. Then those who live go on with the average of their own, by their weights.
 *
 * Without rounds clocks are no steps, and nobody waits, save to meet: whoever hears of a death calls the others
 * together (pli_agreed_meet), and they come at the end of their clocks, or from a barrier or another collective. Before
 * they sum, all copies that are under way among them are gathered, so that no weight of theirs is lost; what comes
 * behind that is of somebody who has met already.
 *
 * At a barrier the same sum is made, without changing mirrors.
 *
 * Papers: those of gossip.h; the meeting is what a run does that begins from a checkpoint with fewer workers. */
#include <string.h>

#include "table/state/updates.h"
#include "table/state/values.h"
#include "table/topology/agreed_clock.h"
#include "table/topology/averaged.h"

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to go on without the dead", table->spec.name);
}

/* --- what is known of the last round ------------------------------------------------------------------------------ */

void pli_averaged_unknown(struct pli_averaged *a) {
    pli_slab_unref(&a->last.own);
    for (int32_t i = 0; i < a->last.heard.n; i++) pli_msg_free(&a->last.heard.msg[i]);
    a->last.heard.n = 0;
    a->last.equal = false;
}

void pli_averaged_equal(struct pli_averaged *a) {
    if (a->gone == NULL) return;
    pli_averaged_unknown(a);
    a->last.own = pli_slab_ref(a->shard.store.slab);
    a->last.equal = true;
}

plait_status pli_averaged_agree(plait_table *table, plait_error *err) {
    struct pli_averaged *a = table->state;
    const size_t         workers = (size_t)table->job->layout.workers, width = (size_t)table->spec.width;
    a->gone = pli_calloc(workers, 1);
    a->hears = pli_calloc(workers, 1);
    a->gives = pli_calloc(workers, sizeof(pli_msg *));
    a->piece = pli_calloc(workers, sizeof(pli_msg *));
    a->part = pli_aligned((size_t)(a->n + 1) * width);
    a->sum = pli_aligned((size_t)(a->n + 1) * width);
    if (a->gone == NULL || a->hears == NULL || a->gives == NULL || a->piece == NULL || a->part == NULL ||
        a->sum == NULL)
        return no_memory(table, err);
    pli_averaged_equal(a);
    return pli_agreed_clock_open(table->job, pli_policy_at_clock(&a->policy), err);
}

void pli_averaged_forget(struct pli_averaged *a) {
    pli_averaged_unknown(a);
    pli_free(a->gone);
    pli_free(a->hears);
    pli_free((void *)a->gives);
    pli_free((void *)a->piece);
    pli_free(a->part);
    pli_free(a->sum);
}

/* --- the sum of all mirrors --------------------------------------------------------------------------------------- */

static bool is_estimated(const struct pli_averaged *a) { return a->estimates != NULL && !a->estimates->exact; }

static bool is_in(const int32_t *list, int32_t n, int32_t worker) {
    for (int32_t i = 0; i < n; i++)
        if (list[i] == worker) return true;
    return false;
}

/* Is this worker the first of those who live and have what worker v gave? have [n]: those who got it. */
static bool speaks(const plait_table *table, const uint8_t *dead, int32_t v, const int32_t *have, int32_t n) {
    const struct pli_averaged *a = table->state;
    for (int32_t i = 0; i < a->among.n; i++) {
        const int32_t w = a->living[i];
        if (!dead[w] && (w == v || is_in(have, n, w))) return w == pli_job_me(table->job);
    }
    return false;
}

/* What worker v took into the last round; NULL: this worker does not know. */
static const void *given_by(const plait_table *table, int32_t v) {
    const struct pli_averaged *a = table->state;
    if (v == pli_job_me(table->job)) return a->last.own->memory;
    for (int32_t i = 0; i < a->last.heard.n; i++)
        if (a->last.heard.from[i] == v)
            return a->estimates != NULL ? pli_estimates_of(a->estimates, v) : pli_msg_body(a->last.heard.msg[i]);
    return NULL;
}

static void add_share(const plait_table *table, const void *values, double share, double *weight) {
    struct pli_averaged *a = table->state;
    pli_values_add_scaled(table->spec.type, a->n, share, values, a->part);
    *weight += share;
}

/* A mirror of which neighbours have an estimate, or that was equal to all others. */
static void add_known(const plait_table *table, const uint8_t *dead, int32_t d, double *weight) {
    const struct pli_averaged *a = table->state;
    int32_t                    have[PLI_NEIGHBOURS_MAX], n = pli_among_ever_to(a->graph, &a->among, d, have);
    if (a->last.equal && speaks(table, dead, d, a->living, a->among.n))
        add_share(table, a->last.own->memory, 1, weight);
    if (!a->last.equal && speaks(table, dead, d, have, n))
        add_share(table, pli_estimates_of(a->estimates, d), 1, weight);
}

/* What the last round made of it: an average, of which each part lies with others. */
static void add_mixed(const plait_table *table, const uint8_t *dead, int32_t d, double *weight) {
    const struct pli_averaged *a = table->state;
    int32_t parts[PLI_NEIGHBOURS_MAX + 1], have[PLI_NEIGHBOURS_MAX];
    int32_t k = pli_among_from(a->graph, &a->among, d, a->rounds - 1, parts);
    parts[k] = d;
    for (int32_t i = 0; i <= k; i++) {
        const int32_t n = pli_among_to(a->graph, &a->among, parts[i], a->rounds - 1, have);
        if (speaks(table, dead, parts[i], have, n))
            add_share(table, given_by(table, parts[i]), 1 / (double)(k + 1), weight);
    }
}

/* Writes the worker's part of the sum. dead [workers]: who takes no part in it. */
static void fill(const plait_table *table, const uint8_t *dead) {
    struct pli_averaged *a = table->state;
    double               weight = a->weight;
    pli_store_pay_all(&a->shard.store);
    pli_store_get_rows(&a->shard.store, 0, table->spec.rows, a->part);
    pli_values_scale(table->spec.type, a->n, a->weight, a->part);
    for (int32_t i = 0; a->peers->rounds && a->last.own != NULL && i < a->among.n; i++) {
        if (!dead[a->living[i]]) continue;
        (a->last.equal || is_estimated(a) ? add_known : add_mixed)(table, dead, a->living[i], &weight);
    }
    pli_updates_set(&table->spec, a->part, a->n, weight);
}

static pli_agreed_part part_of(const plait_table *table, void *sum) {
    const struct pli_averaged *a = table->state;
    return (pli_agreed_part){ .type = table->spec.type, .op = PLAIT_SUM, .n = a->n + 1, .given = a->part,
                              .values = sum };
}

plait_status pli_averaged_sum(plait_table *table, void *sum, plait_error *err) {
    plait_job            *job = table->job;
    const pli_agreed_part part = part_of(table, sum);
    plait_status          status;
    do {
        fill(table, pli_agreed_run_next(job->agreed));
        status = pli_agreed_run_step(job->agreed, 1, &part, err);
    } while (status == PLAIT_STAND_IN && job->agreed_clocks);
    if (status == PLAIT_STAND_IN) PLI_TRY(pli_agreed_meet(job, err));
    return status;
}

/* --- the clock ---------------------------------------------------------------------------------------------------- */

bool pli_averaged_must_meet(const plait_table *table) {
    const struct pli_averaged *a = table->state;
    const uint8_t             *dead = pli_agreed_run_next(table->job->agreed);
    return memcmp(dead, a->gone, (size_t)table->job->layout.workers) != 0;
}

/* Without rounds copies may be under way. */
static plait_status gather(plait_table *table, plait_error *err) {
    const uint8_t *dead = pli_agreed_run_next(table->job->agreed);
    int64_t        n = 0;
    if (pli_averaged_of(table)->peers->rounds) return PLAIT_OK;
    for (int32_t w = 0; w < table->job->layout.workers; w++) n += dead[w];
    return pli_averaged_gather(table, PLI_GOSSIP_MET, n, err);
}

static plait_status give_round(plait_table *table, pli_agreed_part *part, plait_error *err) {
    struct pli_averaged *a = table->state;
    int32_t              to[PLI_NEIGHBOURS_MAX], from[PLI_NEIGHBOURS_MAX], me = pli_job_me(table->job);
    const int32_t        n_to = pli_among_to(a->graph, &a->among, me, a->rounds, to);
    const int32_t        n_from = pli_among_from(a->graph, &a->among, me, a->rounds, from);
    pli_msg             *copy[PLI_NEIGHBOURS_MAX] = { NULL };
    pli_store_pay_all(&a->shard.store);
    PLI_TRY(pli_averaged_copies(table, table->job->clock, n_to, to, copy, err));
    memset(a->hears, 0, (size_t)table->job->layout.workers);
    for (int32_t i = 0; i < n_to; i++) a->gives[to[i]] = copy[i];
    for (int32_t i = 0; i < n_from; i++) a->hears[from[i]] = 1;
    *part = (pli_agreed_part){ .gives = a->gives, .piece = a->piece, .hears = a->hears };
    return PLAIT_OK;
}

plait_status pli_averaged_give(plait_table *table, pli_agreed_part *part, int64_t *n, plait_error *err) {
    struct pli_averaged *a = table->state;
    if (a->gone == NULL) return PLAIT_OK;
    a->meets = pli_averaged_must_meet(table);
    if (a->meets) {
        const plait_status status = gather(table, err);
        if (status != PLAIT_OK) return status;
        fill(table, pli_agreed_run_next(table->job->agreed));
        *part = part_of(table, a->sum);
    } else if (a->peers->rounds && pli_averaged_meets(table, table->job->clock)) {
        PLI_TRY(give_round(table, part, err));
    } else {
        return PLAIT_OK;
    }
    ++*n;
    return PLAIT_OK;
}

static void free_round(const plait_table *table) {
    struct pli_averaged *a = table->state;
    for (int32_t w = 0; w < table->job->layout.workers; w++) {
        pli_msg_free(&a->gives[w]);
        pli_msg_free(&a->piece[w]);
    }
}

/* Keeps what went into the round, beside what comes out. */
static plait_status end_round(plait_table *table, plait_error *err) {
    struct pli_averaged *a = table->state;
    const int64_t        clock = table->job->clock;
    pli_heard            h = { .n = 0 };
    pli_slab            *own = pli_slab_ref(a->shard.store.slab);
    for (int32_t i = 0; i < a->among.n; i++) {
        const int32_t w = a->living[i];
        if (a->gives[w] != NULL) pli_averaged_raise(table, PLI_EVENT_GIVE, w, clock, clock);
        if (!a->hears[w]) continue;
        h.from[h.n] = w;
        h.msg[h.n++] = a->piece[w];
        a->piece[w] = NULL;
    }
    const plait_status status = pli_averaged_mix(table, clock, &h, err);
    pli_averaged_unknown(a);
    a->last = (pli_last){ .own = own, .heard = h };
    a->rounds++;
    return status;
}

/* From now on those who live average. */
static void leave_out(const plait_table *table) {
    struct pli_averaged *a = table->state;
    int32_t              n = 0;
    memcpy(a->gone, pli_agreed_run_next(table->job->agreed), (size_t)table->job->layout.workers);
    for (int32_t i = 0; i < a->among.n; i++)
        if (!a->gone[a->living[i]]) a->living[n++] = a->living[i];
    a->among.n = n;
}

/* To the event log a meeting is a round in which each gives its mirror to each. Without rounds workers are in different
 * clocks, and it is no matter of copies. */
static void note_meeting(const plait_table *table) {
    const struct pli_averaged *a = table->state;
    const int64_t              clock = table->job->clock;
    for (int kind = 0; a->peers->rounds && kind < 2; kind++)
        for (int32_t i = 0; i < a->among.n; i++)
            if (a->living[i] != pli_job_me(table->job))
                pli_averaged_raise(table, kind == 0 ? PLI_EVENT_GIVE : PLI_EVENT_MIX, a->living[i], clock, clock);
}

static plait_status end_meeting(plait_table *table, plait_error *err) {
    struct pli_averaged *a = table->state;
    pli_slab            *all = pli_slab_new(a->shard.store.slab->bytes);
    uint64_t             now_ns;
    pli_out              out;
    if (all == NULL) return no_memory(table, err);
    pli_values_scale(table->spec.type, a->n, 1 / pli_updates_at(&table->spec, a->sum, a->n), a->sum);
    memcpy(all->memory, a->sum, (size_t)(a->n * table->spec.width));
    pli_store_swap(&a->shard.store, all);
    leave_out(table);
    note_meeting(table);
    a->weight = 1;
    a->rounds = 0;
    pli_averaged_equal(a);
    pli_port_enter(table->job->gossip_port, &now_ns, &out); /* the machine decodes where there are no rounds */
    const plait_status status = pli_averaged_filters(table, err);
    a->peers->estimates = a->estimates;
    if (status >= 0) pli_gossip_release(a->peers, &out);
    pli_port_leave(table->job->gossip_port, &out);
    return status;
}

plait_status pli_averaged_gave(plait_table *table, plait_status status, plait_error *err) {
    struct pli_averaged *a = table->state;
    const bool           round = a->peers->rounds && !a->meets && pli_averaged_meets(table, table->job->clock);
    if (a->gone == NULL) return PLAIT_OK;
    if (status == PLAIT_OK && a->meets) status = end_meeting(table, err);
    else if (status == PLAIT_OK && round) status = end_round(table, err);
    free_round(table);
    if (status == PLAIT_OK && !a->peers->rounds && table->job->agreed_clocks)
        status = pli_averaged_pass_on(table, table->job->clock, err);
    return status < 0 ? status : PLAIT_OK;
}
