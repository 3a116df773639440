/* Tables whose policy averages (local-sgd:H), over allreduce and over ps. Each worker has a copy of its own, which its
 * updates move by the table's rule; no message carries these. Behind the copy lies the *common* table, additive and of
 * the same topology, which holds the average of all copies as of the last round:
 *
 *     in a round                the copy begins with what the common table holds. At the end of a clock the worker's
 *                               own gradient moves it, `workers` times as far as its share of the clock, so that the
 *                               average moves as the one copy of bsp would (pli_shard_apply_own)
 *     at the end of a round     the worker adds to the common table what its copy has moved since the round began,
 *                               divided by the number of workers. So the common table becomes the average. The next
 *                               read begins another round
 *     at a barrier              what all copies have moved since the round began is summed. Until its next clock the
 *                               worker reads the common table plus that sum, which is the average; its own copy stays
 *                               as it was
 *
 * On an additive table each inc moves the copy by itself, and nothing is divided: the common table is the sum of all
 * incs. If updates come by key, a copy holds only the rows that were read or updated in this round. These pay the
 * penalty's steps since the worker last had them. A rule's state stays with its worker. */
#include <stdio.h>
#include <string.h>

#include "table/copies/mirror.h"
#include "table/state/own.h"
#include "table/state/rest.h"
#include "table/state/values.h"
#include "table/table.h"

struct pli_local {
    plait_table common; /* ops: the topology's own */
    bool        is_open, has_copy;
    bool        met; /* the worker has passed a barrier in this clock, so it reads the average */
    pli_policy  policy;
    pli_spec    own;      /* of the copy, which is all in one place */
    pli_shard   copy;
    pli_pending pending;  /* own updates of the clock                                                        */
    pli_pending moved;    /* between two calls empty: what is added to the common table, or to all copies'  */
    pli_spec    whole;    /* of average: its updates are of ranges where the table is dense                  */
    pli_pending average;  /* what the average of all copies has moved since the round began, as of a barrier */
    bool        fresh;    /* a round has begun, and the copy has nothing of it yet */
    pli_rowset  held;     /* by key: the rows of the copy that are of this round                            */
    void       *base;     /* where the copy was when the round began: [rows, cols], by key [held.n, cols]   */
    bool        rebase;   /* base is still to be read: a checkpoint was put back in the middle of a round   */
    int64_t     base_capacity, *at, at_capacity;
};

static struct pli_local *local_of(const plait_table *table) { return table->state; }

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a mirror", table->spec.name);
}

static bool is_sparse(const plait_table *table) { return table->spec.rows == 0; }

/* --- life -------------------------------------------------------------------------------------------------------- */

static plait_status open_copy(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    const pli_spec   *spec = &table->spec;
    const pli_scope   scope = pli_layout_scope(&table->job->layout);
    struct pli_local *l = pli_calloc(1, sizeof *l);
    if (l == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec->name);
    table->state = l;
    l->fresh = true;
    l->common = (plait_table){ .job = table->job, .spec = pli_spec_additive(spec), .ops = spec->topology.kind->ops };
    pli_rowset_init(&l->held, 0, (uint64_t)spec->rows);
    pli_pending_init(&l->pending, spec, 0);
    pli_pending_init(&l->moved, &l->common.spec, 0);
    l->own = *spec;
    l->own.placement = pli_placement_make(spec->rows, pli_row_bytes(spec), 1, table->job->layout.servers,
                                          table->job->layout.first_server);
    l->whole = pli_spec_additive(&l->own);
    l->whole.keyed = is_sparse(table);
    pli_pending_init(&l->average, &l->whole, 0);
    PLI_TRY(pli_policy_make(spec->consistency, &scope, &l->policy, err));
    PLI_TRY(pli_shard_open(&l->copy, &l->own, 0, false, initial, penalty, err));
    l->has_copy = true;
    if (spec->keyed) return PLAIT_OK;
    l->base = pli_aligned((size_t)(spec->rows * pli_row_bytes(spec)));
    return l->base != NULL ? PLAIT_OK : no_memory(table, err);
}

static plait_status local_open(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    char what[80 + sizeof table->spec.name];
    snprintf(what, sizeof what, "the copies of table %s", table->spec.name);
    plait_status status = open_copy(table, initial, penalty, err);
    PLI_TRY(pli_job_agree(table->job, what, 0, status, err));
    local_of(table)->is_open = true;
    return local_of(table)->common.ops->open(&local_of(table)->common, initial, NULL, err);
}

static void local_close(plait_table *table) {
    struct pli_local *l = table->state;
    pli_table_unpin(table);
    table->state = NULL;
    if (l == NULL) return;
    if (l->is_open) l->common.ops->close(&l->common);
    pli_pending_destroy(&l->pending);
    pli_pending_destroy(&l->moved);
    pli_pending_destroy(&l->average);
    if (l->has_copy) pli_shard_close(&l->copy);
    pli_policy_destroy(&l->policy);
    pli_rowset_destroy(&l->held);
    pli_free(l->at);
    pli_free(l->base);
    pli_free(l);
}

/* --- the beginning of a round ----------------------------------------------------------------------------------- */

/* At the round's first read or update: fetches the whole copy. By key it fetches nothing: no row is of this round
 * yet. */
static plait_status begin_round(plait_table *table, plait_error *err) {
    struct pli_local *l = table->state;
    const pli_spec   *spec = &table->spec;
    if (!l->fresh) return PLAIT_OK;
    if (spec->keyed) {
        pli_rowset_clear(&l->held);
    } else {
        if (!pli_store_own(&l->copy.store)) return no_memory(table, err);
        PLI_TRY(l->common.ops->get(&l->common, &(pli_rows){ .n = spec->rows }, l->base, err));
        memcpy(l->copy.store.slab->memory, l->base, (size_t)(spec->rows * pli_row_bytes(spec)));
    }
    l->fresh = false;
    return PLAIT_OK;
}

/* Takes rows that the round has not had yet, held from `from` on. */
static plait_status fetch_rows(plait_table *table, int64_t from, plait_error *err) {
    struct pli_local *l = table->state;
    pli_store        *store = &l->copy.store;
    int64_t           n = l->held.n - from, row_bytes = pli_row_bytes(&table->spec);
    const uint64_t   *keys = l->held.keys + from;
    void             *base = pli_at(l->base, from * row_bytes);
    PLI_TRY(l->common.ops->get(&l->common, &(pli_rows){ .keys = keys, .n = n }, base, err));
    if (is_sparse(table) ? !pli_store_add_rows(store, n, keys, l->at) : !pli_store_own(store))
        return no_memory(table, err);
    for (int64_t i = 0; i < n; i++)
        memcpy(pli_store_row(store, is_sparse(table) ? l->at[i] : (int64_t)keys[i], row_bytes),
               pli_at(base, i * row_bytes), (size_t)row_bytes);
    return PLAIT_OK;
}

static plait_status hold(plait_table *table, int64_t n, const uint64_t *keys, plait_error *err) {
    struct pli_local *l = table->state;
    PLI_TRY(begin_round(table, err));
    if (!table->spec.keyed || n == 0) return PLAIT_OK;
    int64_t before = l->held.n, row_bytes = pli_row_bytes(&table->spec);
    if (!pli_grow((void **)&l->at, &l->at_capacity, n, sizeof *l->at) || !pli_rowset_add(&l->held, n, keys, l->at) ||
        !pli_grow(&l->base, &l->base_capacity, l->held.n, (size_t)row_bytes))
        return no_memory(table, err);
    return l->held.n == before ? PLAIT_OK : fetch_rows(table, before, err);
}

/* --- reads and updates ------------------------------------------------------------------------------------------- */

/* Behind a barrier no copy moves until the clock ends. The worker reads the average, and over it what it has added in
 * this clock itself. */
static plait_status get_average(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    struct pli_local *l = table->state;
    double            scale = table->spec.ruled ? 0 : 1;
    PLI_TRY(l->common.ops->get(&l->common, rows, values, err));
    if (rows->keys != NULL) {
        pli_pending_overlay(&l->average, 1, rows->n, rows->keys, values);
        pli_pending_overlay(&l->pending, scale, rows->n, rows->keys, values);
    } else {
        pli_pending_overlay_range(&l->average, 1, rows->first, rows->n, values);
        pli_pending_overlay_range(&l->pending, scale, rows->first, rows->n, values);
    }
    return PLAIT_OK;
}

/* Reads a range of a copy that holds rows by key: rows that it does not hold are as the common table has them. */
static plait_status get_mixed(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    struct pli_local *l = table->state;
    int64_t           row_bytes = pli_row_bytes(&table->spec);
    PLI_TRY(l->common.ops->get(&l->common, rows, values, err));
    for (int64_t i = 0; i < l->held.n; i++) {
        int64_t at = (int64_t)l->held.keys[i] - rows->first;
        if (at >= 0 && at < rows->n) pli_store_get(&l->copy.store, 1, &l->held.keys[i], pli_at(values, at * row_bytes));
    }
    return PLAIT_OK;
}

static plait_status local_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    struct pli_local *l = table->state;
    double            scale = table->spec.ruled ? 0 : 1;
    if (l->met) return get_average(table, rows, values, err);
    PLI_TRY(hold(table, rows->keys == NULL ? 0 : rows->n, rows->keys, err));
    if (rows->keys != NULL) {
        pli_store_get(&l->copy.store, rows->n, rows->keys, values);
        pli_pending_overlay(&l->pending, scale, rows->n, rows->keys, values);
    } else {
        if (table->spec.keyed) PLI_TRY(get_mixed(table, rows, values, err));
        else pli_store_get_rows(&l->copy.store, rows->first, rows->n, values);
        pli_pending_overlay_range(&l->pending, scale, rows->first, rows->n, values);
    }
    return PLAIT_OK;
}

static plait_status local_read(plait_table *table, int64_t first, int64_t n, const void **values_out,
                               plait_error *err) {
    struct pli_local *l = table->state;
    if (!l->met && !table->spec.keyed && (table->spec.ruled || !l->pending.touched)) {
        PLI_TRY(begin_round(table, err));
        *values_out = pli_at_const(l->copy.store.slab->memory, first * pli_row_bytes(&table->spec));
        return PLAIT_OK;
    }
    return pli_table_read_copy(table, first, n, values_out, err);
}

static plait_status local_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                              plait_error *err) {
    pli_pending *pending = &local_of(table)->pending;
    pli_job_resume(table->job);
    return pli_pending_add_rows(pending, rows->n, rows->keys, rows->first, delta, examples, err);
}

/* --- the end of a clock ------------------------------------------------------------------------------------------ */

static plait_status move_own(plait_table *table, plait_error *err) {
    struct pli_local *l = table->state;
    const pli_spec   *spec = &table->spec;
    pli_pending      *p = &l->pending;
    plait_job        *job = table->job;
    if (!p->touched) return PLAIT_OK;
    PLI_TRY(hold(table, p->set.n, p->set.keys, err));
    const pli_push_part part = pli_push_part_of(p);
    PLI_TRY(spec->ruled ? pli_shard_apply_own(&l->copy, job->clock, job->layout.workers, &part, err)
                        : pli_shard_apply_push(&l->copy, 0, job->clock, 1, &part, err));
    pli_comm_work(job->comm, PLI_WORK_VALUES, (uint64_t)(part.n * spec->cols));
    pli_pending_clear(p);
    return PLAIT_OK;
}

/* Makes of now [n, cols] what is added for it: how far it has moved from base. */
static void take_way(const plait_table *table, int64_t n, const void *base, void *now) {
    const pli_spec *spec = &table->spec;
    pli_values_add_scaled(spec->type, n * spec->cols, -1, base, now);
    if (spec->ruled) pli_values_scale(spec->type, n * spec->cols, 1 / (double)table->job->layout.workers, now);
}

static bool is_zero(const unsigned char *row, int64_t bytes) {
    return row[0] == 0 && memcmp(row, row + 1, (size_t)bytes - 1) == 0;
}

/* By key: only the rows that have moved. */
static plait_status add_rows(plait_table *table, int64_t n, const unsigned char *way, plait_error *err) {
    struct pli_local *l = table->state;
    int64_t           row_bytes = pli_row_bytes(&table->spec);
    for (int64_t i = 0; i < n; i++) {
        if (is_zero(way + i * row_bytes, row_bytes)) continue;
        PLI_TRY(pli_pending_add(&l->moved, 1, &l->held.keys[i], way + i * row_bytes, 0, err));
    }
    return PLAIT_OK;
}

/* The common table stays as it is until the round ends, so it tells where the copy has begun. */
static plait_status read_base(plait_table *table, plait_error *err) {
    struct pli_local *l = table->state;
    const bool        keyed = table->spec.keyed;
    const pli_rows    rows = { .keys = keyed ? l->held.keys : NULL, .n = keyed ? l->held.n : table->spec.rows };
    if (!l->rebase) return PLAIT_OK;
    if (rows.n > 0) PLI_TRY(l->common.ops->get(&l->common, &rows, l->base, err));
    l->rebase = false;
    return PLAIT_OK;
}

/* Adds to l->moved what the copy's way since the round began adds to the average. */
static plait_status measure(plait_table *table, plait_error *err) {
    struct pli_local *l = table->state;
    bool              keyed = table->spec.keyed;
    int64_t           n = keyed ? l->held.n : table->spec.rows;
    plait_status      status;
    if (l->fresh || n == 0) return PLAIT_OK;
    PLI_TRY(read_base(table, err));
    unsigned char *way = pli_aligned((size_t)(n * pli_row_bytes(&table->spec)));
    if (way == NULL) return no_memory(table, err);
    if (keyed) pli_store_get(&l->copy.store, n, l->held.keys, way);
    else pli_store_get_rows(&l->copy.store, 0, n, way);
    take_way(table, n, l->base, way);
    status = keyed ? add_rows(table, n, way, err) : pli_pending_add_range(&l->moved, 0, n, way, 0, err);
    pli_comm_work(table->job->comm, PLI_WORK_SUMS, (uint64_t)(n * table->spec.cols));
    pli_free(way);
    return status;
}

static plait_status give_moved(plait_table *table, plait_error *err) {
    struct pli_local *l = table->state;
    const pli_push_part part = pli_push_part_of(&l->moved);
    if (!part.touched) return PLAIT_OK;
    const pli_rows rows = { .keys = part.keys, .first = part.first, .n = part.n };
    plait_status   status = l->common.ops->inc(&l->common, &rows, part.values, 0, err);
    pli_pending_clear(&l->moved);
    return status;
}

/* Must the next clock wait for all to have ended this one? */
static bool ends_round(const plait_table *table) {
    const plait_job *job = table->job;
    int64_t          clock = job->clock;
    return !pli_policy_may_start(&local_of(table)->policy, job->layout.workers, pli_job_me(job), clock + 1,
                                 clock);
}

/* What the copy has moved is given: from now on only what it moves from here is. With replicas the round's last clock
 * may be ended once more, by workers that stand in for a dead one, and then only the dead one's part is to be given. */
static void note_given(const plait_table *table) {
    struct pli_local *l = table->state;
    if (table->job->layout.replicas <= 1 || l->fresh) return;
    if (table->spec.keyed) pli_store_get(&l->copy.store, l->held.n, l->held.keys, l->base);
    else pli_store_get_rows(&l->copy.store, 0, table->spec.rows, l->base);
}

static plait_status local_ends(plait_table *table, plait_error *err) {
    local_of(table)->met = false;
    PLI_TRY(move_own(table, err));
    if (!ends_round(table)) return PLAIT_OK;
    PLI_TRY(measure(table, err));
    note_given(table);
    return give_moved(table, err);
}

static plait_status local_clock_begin(plait_table *table, plait_error *err) {
    struct pli_local       *l = table->state;
    const pli_topology_ops *ops = l->common.ops;
    if (!ends_round(table)) return PLAIT_OK;
    l->fresh = true;
    if (ops->clock_begin != NULL) return ops->clock_begin(&l->common, err);
    return ops->clock == NULL ? PLAIT_OK : ops->clock(&l->common, err);
}

static plait_status local_clock_end(plait_table *table, plait_error *err) {
    plait_table *common = &local_of(table)->common;
    return common->ops->clock_end == NULL ? PLAIT_OK : common->ops->clock_end(common, err);
}

static plait_table *local_summed(plait_table *table) {
    plait_table *common = &local_of(table)->common;
    return ends_round(table) && common->ops->summed != NULL ? common->ops->summed(common) : NULL;
}

static plait_table *local_coded(plait_table *table) {
    plait_table *common = &local_of(table)->common;
    return common->ops->coded != NULL ? common->ops->coded(common) : NULL;
}

static pli_mirror *local_held(plait_table *table) {
    plait_table *common = &local_of(table)->common;
    return ends_round(table) ? pli_table_held(common) : NULL;
}

static void local_ended(plait_table *table) {
    if (ends_round(table)) local_of(table)->fresh = true;
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

/* Sums l->moved of all workers into l->average, by a mirror that lives as long as that takes. */
static plait_status sum_moved(plait_table *table, plait_table *sums, plait_error *err) {
    struct pli_local  *l = table->state;
    const pli_pending *m = &l->moved;
    pli_mirror       *mirror = sums->state;
    uint64_t          *keys = NULL;
    void              *values = NULL;
    int64_t            n = 0, row_bytes = pli_row_bytes(&sums->spec);
    if (m->touched && sums->spec.keyed) PLI_TRY(pli_mirror_inc(mirror, m->set.n, m->set.keys, 0, m->sum, 0, err));
    if (m->touched && !sums->spec.keyed)
        PLI_TRY(
            pli_mirror_inc(mirror, m->high - m->low, NULL, m->low, pli_at_const(m->sum, m->low * row_bytes), 0, err));
    PLI_TRY(pli_mirror_ops.clock(sums, err));
    if (!is_sparse(table))
        return pli_pending_add_range(&l->average, 0, sums->spec.rows, mirror->shard.store.slab->memory, 0, err);
    PLI_TRY(pli_mirror_dump(mirror, sums->job->clock, &n, &keys, &values, err));
    plait_status status = n == 0 ? PLAIT_OK : pli_pending_add(&l->average, n, keys, values, 0, err);
    pli_free(keys);
    pli_free(values);
    return status;
}

static plait_status local_settle(plait_table *table, plait_error *err) {
    struct pli_local *l = table->state;
    const pli_scope   scope = pli_layout_scope(&table->job->layout);
    plait_table       sums = { .job = table->job, .spec = l->common.spec, .ops = &pli_mirror_ops };
    strcpy(sums.spec.consistency, "bsp");
    sums.spec.placement = l->own.placement;
    pli_pending_clear(&l->average);
    pli_mirror *mirror = NULL;
    PLI_TRY(pli_mirror_open(&sums.spec, &scope, pli_job_me(table->job), NULL, NULL, NULL, &mirror, err));
    sums.state = mirror;
    plait_status status = measure(table, err);
    if (status >= 0) status = sum_moved(table, &sums, err);
    pli_pending_clear(&l->moved);
    pli_mirror_ops.close(&sums);
    return status;
}

static void local_refresh(plait_table *table) {
    struct pli_local *l = table->state;
    if (!table->job->quiet) l->met = true;
    if (l->common.ops->refresh != NULL) l->common.ops->refresh(&l->common);
}

/* Begins another round, which starts with zeros. */
static plait_status local_zero(plait_table *table, int64_t number, plait_error *err) {
    struct pli_local *l = table->state;
    PLI_TRY(l->common.ops->zero(&l->common, number, err));
    if (!pli_store_zero(&l->copy.store)) return no_memory(table, err);
    pli_pending_clear(&l->average);
    pli_rowset_clear(&l->held);
    l->fresh = true;
    l->rebase = false;
    return PLAIT_OK;
}

/* The rows of a dump while it is made: with room for `most`. */
typedef struct rows_dumped {
    int64_t   n, most;
    uint64_t *keys;
    void     *values;
} rows_dumped;

static plait_status dump_common(plait_table *table, int64_t more, rows_dumped *d, plait_error *err) {
    struct pli_local *l = table->state;
    uint64_t         *keys = NULL;
    void             *values = NULL;
    int64_t           row_bytes = pli_row_bytes(&table->spec);
    PLI_TRY(l->common.ops->dump(&l->common, &d->n, &keys, &values, err));
    d->most = d->n + more;
    d->keys = pli_realloc(keys, (size_t)d->most, sizeof *keys);
    if (d->keys == NULL) pli_free(keys);
    d->values = pli_realloc(values, (size_t)d->most, (size_t)row_bytes);
    if (d->values == NULL) pli_free(values);
    return d->keys != NULL && d->values != NULL ? PLAIT_OK : no_memory(table, err);
}

/* Puts the rows that the copy holds of this round in place of those of the common table. A row that was only read, and
 * that nobody holds, is not in the dump. */
static plait_status dump_held(const plait_table *table, rows_dumped *d, plait_error *err) {
    const struct pli_local *l = table->state;
    int64_t                 row_bytes = pli_row_bytes(&table->spec);
    pli_keymap              map;
    plait_status            status = PLAIT_OK;
    if (l->fresh || l->held.n == 0) return PLAIT_OK;
    pli_keymap_init(&map);
    for (int64_t i = 0; status >= 0 && i < d->n; i++)
        if (pli_keymap_add(&map, d->keys[i]) < 0) status = no_memory(table, err);
    for (int64_t i = 0; status >= 0 && i < l->held.n; i++) {
        int64_t at = pli_keymap_find(&map, l->held.keys[i]), to = at < 0 ? d->n : at;
        pli_store_get(&l->copy.store, 1, &l->held.keys[i], pli_at(d->values, to * row_bytes));
        if (at < 0 && !is_zero(pli_at(d->values, to * row_bytes), row_bytes)) d->keys[d->n++] = l->held.keys[i];
    }
    pli_keymap_destroy(&map);
    return status;
}

/* Returns what get returns: behind a barrier the average, else the copy. */
static plait_status local_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out,
                               plait_error *err) {
    struct pli_local *l = table->state;
    rows_dumped       d = { 0 };
    plait_status      status = dump_common(table, l->average.set.n + l->held.n + l->pending.set.n, &d, err);
    if (status >= 0 && !l->met) status = dump_held(table, &d, err);
    if (status >= 0 && l->met && !pli_pending_append(&l->average, 1, d.n, d.keys, d.values, &d.n))
        status = no_memory(table, err);
    if (status >= 0 && !table->spec.ruled && !pli_pending_append(&l->pending, 1, d.n, d.keys, d.values, &d.n))
        status = no_memory(table, err);
    if (status < 0) {
        pli_free(d.keys);
        pli_free(d.values);
        return status;
    }
    *n_out = d.n;
    *keys_out = d.keys;
    *values_out = d.values;
    return PLAIT_OK;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

enum { WAY = 2 }; /* pli_own_numbers.way */

static double way_of(const plait_table *table) {
    (void)table;
    return WAY;
}

static pli_shard   *mirror_of(const plait_table *table) { return &local_of(table)->copy; }
static plait_table *common_of(plait_table *table) { return &local_of(table)->common; }

/* The average has moved alike on all workers since the round began. Each takes its share of a range; of a sparse table
 * one takes all. */
static plait_status take_moved(const plait_table *table, pli_own *own, plait_error *err) {
    const pli_pending *moved = &local_of(table)->average;
    const int64_t      row_bytes = pli_row_bytes(&table->spec);
    if (!moved->touched) return PLAIT_OK;
    if (!is_sparse(table)) pli_state_share(table, table->spec.rows, &own->first, &own->n);
    else own->n = pli_state_leads(table) ? moved->set.n : 0;
    if (own->n == 0) return PLAIT_OK;
    own->common = pli_calloc((size_t)own->n, (size_t)row_bytes);
    if (is_sparse(table)) own->keys = pli_array((size_t)own->n, sizeof *own->keys);
    if (own->common == NULL || (is_sparse(table) && own->keys == NULL)) return no_memory(table, err);
    if (own->keys != NULL) {
        memcpy(own->keys, moved->set.keys, (size_t)own->n * sizeof *own->keys);
        memcpy(own->common, moved->sum, (size_t)(own->n * row_bytes));
    } else {
        pli_pending_overlay_range(moved, 1, own->first, own->n, own->common);
    }
    return PLAIT_OK;
}

static plait_status take_own(plait_table *table, pli_own *own, plait_error *err) {
    const struct pli_local *l = table->state;
    own->numbers = (pli_own_numbers){ .way = WAY, .weight = 1, .met = l->met, .fresh = l->fresh };
    if (l->common.ops == &pli_mirror_ops) own->numbers.keys = (double)pli_mirror_of(&l->common)->keys;
    own->n_held = l->fresh ? 0 : l->held.n;
    if (own->n_held > 0) {
        own->held = pli_array((size_t)own->n_held, sizeof *own->held);
        if (own->held == NULL) return no_memory(table, err);
        memcpy(own->held, l->held.keys, (size_t)own->n_held * sizeof *own->held);
    }
    return take_moved(table, own, err);
}

static plait_status put_own(plait_table *table, const pli_own *own, plait_error *err) {
    struct pli_local *l = table->state;
    l->fresh = own->numbers.way != WAY || own->numbers.fresh != 0;
    l->met = own->numbers.way == WAY && own->numbers.met != 0;
    pli_rowset_clear(&l->held);
    l->rebase = !l->fresh;
    if (l->common.ops == &pli_mirror_ops) pli_mirror_of(&l->common)->keys = (int64_t)own->numbers.keys;
    if (l->fresh || own->n_held == 0) return PLAIT_OK;
    if (!pli_grow((void **)&l->at, &l->at_capacity, own->n_held, sizeof *l->at) ||
        !pli_rowset_add(&l->held, own->n_held, own->held, l->at) ||
        !pli_grow(&l->base, &l->base_capacity, l->held.n, (size_t)pli_row_bytes(&table->spec)))
        return no_memory(table, err);
    return PLAIT_OK;
}

static const pli_own_ops own_ops = {
    .way = way_of, .mirror = mirror_of, .common = common_of, .take = take_own, .put = put_own
};

/* What filters keep is of the sums that move the common table. */
static plait_status local_rest_take(plait_table *table, pli_rest *rest) {
    plait_table *common = &local_of(table)->common;
    return common->ops->rest_take != NULL ? common->ops->rest_take(common, rest) : PLAIT_OK;
}

static plait_status local_rest_add(plait_table *table, const pli_rest *rest) {
    plait_table *common = &local_of(table)->common;
    return common->ops->rest_add != NULL ? common->ops->rest_add(common, rest) : PLAIT_OK;
}

static void local_rest_forget(plait_table *table) {
    plait_table *common = &local_of(table)->common;
    if (common->ops->rest_forget != NULL) common->ops->rest_forget(common);
}

const pli_topology_ops pli_local_sgd_ops = {
    .open = local_open,
    .close = local_close,
    .get = local_get,
    .read = local_read,
    .inc = local_inc,
    .ends = local_ends,
    .clock_begin = local_clock_begin,
    .clock_end = local_clock_end,
    .summed = local_summed,
    .coded = local_coded,
    .held = local_held,
    .ended = local_ended,
    .settle = local_settle,
    .refresh = local_refresh,
    .zero = local_zero,
    .dump = local_dump,
    .rest_take = local_rest_take,
    .rest_add = local_rest_add,
    .rest_forget = local_rest_forget,
    .own = &own_ops,
};
