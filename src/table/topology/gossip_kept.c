/* What a checkpoint takes of mirrors that are averaged with neighbours: the mirror with its weight, and with filters
 * the estimates of both ends of its links. See table/state/own.h. */
#include <stdio.h>
#include <string.h>

#include "table/state/values.h"
#include "table/topology/averaged.h"

/* Mirrors that meet other neighbours, or know of each other otherwise, go on as the average of all. */
static double way_of(const plait_table *table) {
    const struct pli_averaged *a = table->state;
    const bool                 estimated = a->estimates != NULL && !a->estimates->exact;
    return 10 + (double)a->graph + (estimated ? 100 : 0) + (a->peers->rounds ? 0 : 1000) +
           10000.0 * (table->job->layout.workers - a->among.n);
}

static pli_shard *mirror_of(const plait_table *table) { return &pli_averaged_of(table)->shard; }

static plait_table *common_of(plait_table *table) {
    (void)table;
    return NULL;
}

static bool keep_estimate(pli_own *own, const char *which, const pli_estimate *e, size_t bytes) {
    pli_own_more *more = &own->more[own->n_more];
    if (e->values == NULL) return true;
    more->values = pli_array(bytes, 1);
    if (more->values == NULL) return false;
    own->n_more++;
    snprintf(more->name, sizeof more->name, "%s.%d", which, (int)e->peer);
    memcpy(more->values, e->values, bytes);
    return true;
}

static bool keep_estimates(const struct pli_averaged *a, pli_own *own) {
    const pli_estimates *e = a->estimates;
    const size_t         bytes = a->shard.store.slab->bytes;
    bool                 done = true;
    if (e == NULL || e->exact) return true;
    for (int32_t i = 0; done && i < e->n_to; i++) done = keep_estimate(own, "to", &e->to[i], bytes);
    for (int32_t i = 0; done && i < e->n_from; i++) done = keep_estimate(own, "from", &e->from[i], bytes);
    return done;
}

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a mirror in a checkpoint", table->spec.name);
}

/* Behind a barrier nothing is on its way: all weights are in mirrors. A lone worker's mirror is the average. */
static plait_status take_own(plait_table *table, pli_own *own, plait_error *err) {
    const struct pli_averaged *a = table->state;
    const int64_t              row_bytes = pli_row_bytes(&table->spec);
    own->numbers = (pli_own_numbers){ .way = way_of(table), .weight = a->weight, .rounds = (double)a->rounds,
                                      .met = a->met };
    if (!keep_estimates(a, own)) return no_memory(table, err);
    pli_state_share(table, table->spec.rows, &own->first, &own->n);
    own->common = pli_array((size_t)own->n, (size_t)row_bytes);
    if (own->common == NULL && own->n > 0) return no_memory(table, err);
    if (a->average != NULL)
        memcpy(own->common, pli_at(a->average, own->first * row_bytes), (size_t)(own->n * row_bytes));
    else pli_store_get_rows(&a->shard.store, own->first, own->n, own->common);
    return PLAIT_OK;
}

/* A link's estimate that is missing would be another one than at its other end: mirrors would drift apart. */
static plait_status put_estimate(const plait_table *table, const pli_own *own, const char *which, const pli_estimate *e,
                                 plait_error *err) {
    char name[sizeof own->more[0].name];
    snprintf(name, sizeof name, "%s.%d", which, (int)e->peer);
    if (e->values == NULL) return PLAIT_OK;
    for (int32_t i = 0; i < own->n_more; i++) {
        if (strcmp(own->more[i].name, name) != 0) continue;
        memcpy(e->values, own->more[i].values, mirror_of(table)->store.slab->bytes);
        return PLAIT_OK;
    }
    return pli_fail(err, PLAIT_EMISMATCH,
                    "table %s: %s.own.%d.%s is missing: what neighbours know of each other's mirrors, by filter %s",
                    table->spec.name, table->spec.name, (int)pli_job_me(table->job), name, table->spec.filter);
}

/* If all begin with the average, all know each other's mirrors. */
static plait_status put_estimates(const plait_table *table, const pli_own *own, bool same, plait_error *err) {
    const struct pli_averaged *a = table->state;
    pli_estimates             *e = a->estimates;
    if (e == NULL) return PLAIT_OK;
    if (!same) pli_estimates_reset(e, a->shard.store.slab->memory);
    for (int32_t i = 0; same && i < e->n_to; i++) PLI_TRY(put_estimate(table, own, "to", &e->to[i], err));
    for (int32_t i = 0; same && !e->exact && i < e->n_from; i++)
        PLI_TRY(put_estimate(table, own, "from", &e->from[i], err));
    return PLAIT_OK;
}

static plait_status put_own(plait_table *table, const pli_own *own, plait_error *err) {
    struct pli_averaged *a = table->state;
    const bool           same = own->numbers.way == way_of(table);
    a->weight = same ? own->numbers.weight : 1;
    a->rounds = same ? (int64_t)own->numbers.rounds : 0;
    a->met = same && own->numbers.met != 0; /* a barrier follows, which makes the average */
    pli_averaged_unknown(a);
    return put_estimates(table, own, same, err);
}

const pli_own_ops pli_averaged_own = {
    .way = way_of, .mirror = mirror_of, .common = common_of, .take = take_own, .put = put_own
};
