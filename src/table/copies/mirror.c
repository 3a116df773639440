/* A mirror of a table, and the sums that change it; mirror.h has the ideas. Sums whose parts travel as messages are in
 * mirror_lists.c. */
#include "table/copies/mirror_impl.h"

#include <string.h>

#include "comm/collective.h"
#include "table/events.h"
#include "table/state/updates.h"
#include "table/state/values.h"

enum { EXTRA = PLI_SUM_EXTRA /* touched, examples mod 4096, examples / 4096: exact in float32 as well */, LOW = 4096 };

plait_status pli_mirror_open(const pli_spec *spec, const pli_scope *scope, int32_t rank, const pli_event_sink *sink,
                              const void *initial, const void *penalty, pli_mirror **mirror_out, plait_error *err) {
    pli_mirror *mirror = pli_calloc(1, sizeof *mirror);
    if (mirror == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec->name);
    mirror->spec = spec;
    mirror->rank = rank;
    mirror->workers = scope->setting.workers;
    mirror->sink = sink;
    mirror->stead = -1;
    pli_pending_init(&mirror->stood, spec, EXTRA);
    mirror->last = &mirror->first;
    pli_pending_init(&mirror->pending, spec, EXTRA);
    pli_pending_init(&mirror->spare, spec, EXTRA);
    plait_status status = pli_policy_make(spec->consistency, scope, &mirror->policy, err);
    if (status >= 0) status = pli_shard_open(&mirror->shard, spec, 0, true, initial, penalty, err);
    if (status < 0) {
        pli_policy_destroy(&mirror->policy);
        pli_free(mirror);
        return status;
    }
    *mirror_out = mirror;
    return PLAIT_OK;
}

void pli_mirror_free_sum(pli_sum *sum, int32_t workers) {
    if (sum->values != sum->own.sum) pli_free(sum->values);
    pli_pending_destroy(&sum->own);
    pli_pending_destroy(&sum->stood);
    pli_msg_free(&sum->list);
    for (int32_t w = 0; sum->piece != NULL && w < workers; w++) pli_msg_free(&sum->piece[w]);
    pli_free(sum->piece);
    pli_free(sum);
}

void pli_mirror_close(pli_mirror **mirror_ptr) {
    pli_mirror *mirror = *mirror_ptr;
    *mirror_ptr = NULL;
    if (mirror == NULL) return;
    for (pli_sum *sum = mirror->first, *next; sum != NULL; sum = next) {
        next = sum->next;
        pli_mirror_free_sum(sum, mirror->workers);
    }
    pli_free(mirror->result);
    if (mirror->keeps) pli_pending_destroy(&mirror->kept);
    pli_pending_destroy(&mirror->stood);
    for (int i = 0; i < 2; i++) pli_slab_unref(&mirror->lists[i]);
    pli_coded_close(&mirror->coded);
    if (mirror->keepers != NULL) pli_keepers_free(mirror->keepers);
    pli_free(mirror->keepers);
    pli_shard_close(&mirror->shard);
    pli_pending_destroy(&mirror->pending);
    pli_pending_destroy(&mirror->spare);
    pli_policy_destroy(&mirror->policy);
    pli_free(mirror);
}

plait_status pli_mirror_filter(pli_mirror *mirror, const pli_filter_scope *scope, uint64_t seed, plait_error *err) {
    const pli_coded_place place = { .scope = *scope, .seed = seed, .rank = mirror->rank, .workers = mirror->workers,
                                    .whole = !mirror->policy.ops->averages && pli_mirror_may_start(mirror, 1, 0),
                                    .holds = mirror->holds };
    return pli_coded_open(mirror->spec, &place, &mirror->coded, err);
}

void pli_mirror_skip(pli_mirror *mirror, int64_t clock) {
    mirror->sums++;
    mirror->taken = clock + 1;
    pli_raise_push(mirror->sink, mirror->rank, PLI_EVENT_SUM, mirror->spec->id, clock);
}

bool pli_mirror_may_start(const pli_mirror *mirror, int64_t clock, int64_t applied) {
    return pli_policy_may_start(&mirror->policy, mirror->workers, mirror->rank, clock, applied);
}

/* --- updates and reads -------------------------------------------------------------------------------------------- */

plait_status pli_mirror_inc(pli_mirror *mirror, int64_t n, const uint64_t *keys, int64_t first, const void *delta,
                             int64_t examples, plait_error *err) {
    pli_pending *pending = &mirror->pending;
    PLI_TRY(pli_pending_add_rows(pending, n, keys, first, delta, examples, err));
    mirror->incs++;
    pli_raise_inc(mirror->sink, mirror->rank, mirror->spec, n, keys, first, delta);
    return PLAIT_OK;
}

/* A get reads the clocks that are applied, plus the worker's own part of a sum times this factor. */
static double scale_of(const pli_mirror *mirror, const pli_sum *sum) {
    const pli_spec *spec = mirror->spec;
    return spec->ruled ? -pli_rule_step(&spec->rule, sum->clock, spec->batch, spec->batch, 1).rate / (double)spec->batch
                       : 1;
}

static double scale_of_pending(const pli_mirror *mirror) { return mirror->spec->ruled ? 0 : 1; }

static void raise_get(const pli_mirror *mirror, int64_t clock, int64_t n, const uint64_t *keys, int64_t first) {
    uint64_t unseen = 0;
    for (const pli_sum *sum = mirror->first; sum != NULL; sum = sum->next)
        unseen += sum->pushed && sum->clock >= clock;
    const pli_mirror_seen seen = { .version = mirror->sums, .incs = mirror->spec->ruled ? 0 : mirror->incs,
                                    .from = mirror->landed, .to = mirror->pushes - unseen };
    pli_raise_mirror_get(mirror->sink, mirror->rank, mirror->spec, clock, &seen, n, keys, first);
}

/* Is the sum's own part added to reads of the clock? A sum of the current clock was taken before its end. */
static bool is_read_over(const pli_sum *sum, int64_t clock) { return sum->clock < clock; }

static void lay_over(const pli_pending *own, double scale, int64_t n, const uint64_t *keys, int64_t first,
                     void *values) {
    if (keys != NULL) pli_pending_overlay(own, scale, n, keys, values);
    else pli_pending_overlay_range(own, scale, first, n, values);
}

void pli_mirror_get(const pli_mirror *mirror, int64_t clock, int64_t n, const uint64_t *keys, int64_t first,
                     void *values) {
    const pli_store *store = &mirror->shard.store;
    if (keys != NULL) pli_store_get(store, n, keys, values);
    else pli_store_get_rows(store, first, n, values);
    for (const pli_sum *sum = mirror->first; sum != NULL && is_read_over(sum, clock); sum = sum->next) {
        lay_over(&sum->own, scale_of(mirror, sum), n, keys, first, values);
        lay_over(&sum->stood, scale_of(mirror, sum), n, keys, first, values);
    }
    lay_over(&mirror->pending, scale_of_pending(mirror), n, keys, first, values);
    raise_get(mirror, clock, n, keys, first);
}

const void *pli_mirror_read(const pli_mirror *mirror, int64_t clock, int64_t first, int64_t n) {
    const pli_spec *spec = mirror->spec;
    bool            laid_over = !spec->ruled && mirror->pending.touched;
    for (const pli_sum *sum = mirror->first; sum != NULL && is_read_over(sum, clock); sum = sum->next)
        laid_over |= sum->own.touched || sum->stood.touched;
    if (spec->lazy || laid_over) return NULL;
    raise_get(mirror, clock, n, NULL, first);
    return pli_at_const(mirror->shard.store.slab->memory, first * pli_row_bytes(spec));
}

plait_status pli_mirror_dump(const pli_mirror *mirror, int64_t clock, int64_t *n_out, uint64_t **keys_out,
                              void **values_out, plait_error *err) {
    const pli_store *store = &mirror->shard.store;
    int64_t          most = store->rows + mirror->pending.set.n, n = store->rows;
    for (const pli_sum *sum = mirror->first; sum != NULL; sum = sum->next) most += sum->own.set.n + sum->stood.set.n;
    uint64_t *keys = pli_array((size_t)most, sizeof *keys);
    void     *values = pli_array((size_t)most, (size_t)pli_row_bytes(mirror->spec));
    bool      done = keys != NULL && values != NULL;
    if (done) {
        pli_keymap_keys(&store->map, keys);
        pli_store_get_rows(store, 0, store->rows, values);
    }
    for (const pli_sum *sum = mirror->first; done && sum != NULL && is_read_over(sum, clock); sum = sum->next)
        done = pli_pending_append(&sum->own, scale_of(mirror, sum), n, keys, values, &n) &&
               pli_pending_append(&sum->stood, scale_of(mirror, sum), n, keys, values, &n);
    done = done && pli_pending_append(&mirror->pending, scale_of_pending(mirror), n, keys, values, n_out);
    if (done) {
        *keys_out = keys;
        *values_out = values;
        return PLAIT_OK;
    }
    pli_free(keys);
    pli_free(values);
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a dump", mirror->spec->name);
}

/* --- sums of values ----------------------------------------------------------------------------------------------- */

/* Behind the values stands what is known of the whole push. */
void pli_mirror_put_extra(const pli_pending *own, void *values, int64_t at) {
    if (!own->spec->combine->adds) { /* if nobody has touched the table, nothing has come */
        pli_updates_clear(own->spec, EXTRA, pli_at(values, at * own->spec->sum_width));
        if (own->touched) pli_updates_set(own->spec, values, at, 0);
        return;
    }
    pli_updates_set(own->spec, values, at, own->touched);
    pli_updates_set(own->spec, values, at + 1, (double)(own->examples % LOW));
    pli_updates_set(own->spec, values, at + 2, (double)(own->examples / LOW));
}

static void take_extra(const pli_spec *spec, const void *values, int64_t at, pli_push_part *part) {
    if (!spec->combine->adds) {
        part->touched = !(pli_updates_at(spec, values, at) < 0 || pli_updates_at(spec, values, at) > 0);
        return;
    }
    part->touched = pli_updates_at(spec, values, at) > 0;
    part->examples =
        (int64_t)pli_updates_at(spec, values, at + 1) + (int64_t)pli_updates_at(spec, values, at + 2) * LOW;
}

static plait_status make_dense(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const pli_spec *spec = mirror->spec;
    size_t          bytes;
    sum->n = pli_mirror_sum_values(mirror, PLI_SUM_DENSE);
    bytes = (size_t)(sum->n * spec->sum_width);
    if (!sum->flies) {
        PLI_TRY(pli_pending_reserve(&sum->own, err));
        sum->values = sum->own.sum;
    } else {
        sum->values = pli_aligned(bytes);
        if (sum->values == NULL) return pli_mirror_no_memory(mirror, err);
        if (sum->own.sum != NULL) memcpy(sum->values, sum->own.sum, bytes);
        else pli_updates_clear(spec, sum->n, sum->values);
    }
    pli_mirror_put_extra(&sum->own, sum->values, sum->n - EXTRA);
    return PLAIT_OK;
}

/* Applies the values first .. to - 1, of which the last came first. */
plait_status pli_mirror_apply_dense(pli_mirror *mirror, pli_sum *sum, int64_t first, int64_t to, plait_error *err) {
    const pli_spec *spec = mirror->spec;
    int64_t         values = sum->n - EXTRA;
    if (to == sum->n) {
        pli_push_part whole = { 0 };
        take_extra(spec, sum->values, values, &whole);
        sum->touched = whole.touched;
        sum->examples = whole.examples;
        to = values;
    }
    if (sum->values == sum->own.sum) { /* it holds all workers' updates now, to be cleared from end to end */
        sum->own.low = 0;
        sum->own.high = spec->rows;
    }
    if (!sum->touched) return PLAIT_OK;
    return pli_shard_apply_values(&mirror->shard, sum->clock, sum->examples, first, to - first, first,
                                  pli_at_const(sum->values, first * spec->sum_width), err);
}

/* Makes one array: values [rows, cols]; for each row how many workers have touched it; and what put_extra says. */
static plait_status make_marked(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const pli_spec    *spec = mirror->spec;
    const pli_pending *own = &sum->own;
    int64_t            values = spec->rows * spec->cols, row_bytes = pli_sum_row_bytes(spec);
    sum->n = pli_mirror_sum_values(mirror, PLI_SUM_MARKED);
    sum->values = pli_calloc((size_t)sum->n, (size_t)spec->sum_width);
    if (sum->values == NULL) return pli_mirror_no_memory(mirror, err);
    for (int64_t i = 0; i < own->set.n; i++) {
        int64_t row = (int64_t)own->set.keys[i];
        memcpy(pli_at(sum->values, row * row_bytes), pli_at_const(own->sum, i * row_bytes), (size_t)row_bytes);
        pli_updates_set(spec, sum->values, values + row, 1);
    }
    pli_mirror_put_extra(own, sum->values, sum->n - EXTRA);
    return PLAIT_OK;
}

static plait_status apply_marked(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    const pli_spec *spec = mirror->spec;
    int64_t         values = spec->rows * spec->cols, row_bytes = pli_sum_row_bytes(spec), n = 0;
    uint64_t       *keys = pli_array((size_t)spec->rows, sizeof *keys);
    if (keys == NULL) return pli_mirror_no_memory(mirror, err);
    pli_push_part part = { .keyed = true, .keys = keys, .values = sum->values };
    take_extra(spec, sum->values, sum->n - EXTRA, &part);
    mirror->keys = 0;
    for (int64_t row = 0; row < spec->rows; row++) {
        int64_t workers = (int64_t)pli_updates_at(spec, sum->values, values + row);
        if (workers == 0) continue;
        mirror->keys += workers;
        if (n < row)
            memcpy(pli_at(sum->values, n * row_bytes), pli_at_const(sum->values, row * row_bytes), (size_t)row_bytes);
        keys[n++] = (uint64_t)row;
    }
    part.n = n;
    plait_status status = pli_shard_apply_clock(&mirror->shard, sum->clock, 1, &part, err);
    pli_free(keys);
    return status;
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

pli_sum_form pli_mirror_form(const pli_mirror *mirror, bool flies) {
    const pli_spec *spec = mirror->spec;
    if (!spec->keyed) return mirror->coded != NULL && flies ? PLI_SUM_CODED : PLI_SUM_DENSE;
    if (mirror->coded != NULL || !spec->combine->adds) return PLI_SUM_LISTS; /* marks need sums */
    return spec->rows > 0 && mirror->workers > 1 && mirror->keys > spec->rows / 4 ? PLI_SUM_MARKED : PLI_SUM_LISTS;
}

int64_t pli_mirror_sum_values(const pli_mirror *mirror, pli_sum_form form) {
    const pli_spec *spec = mirror->spec;
    if (form == PLI_SUM_LISTS) return 0;
    return spec->rows * (spec->cols + (form == PLI_SUM_MARKED)) + EXTRA;
}

static plait_status make(pli_mirror *mirror, pli_sum *sum, plait_error *err) {
    switch (sum->form) {
    case PLI_SUM_DENSE: return make_dense(mirror, sum, err);
    case PLI_SUM_MARKED: return make_marked(mirror, sum, err);
    case PLI_SUM_CODED: return pli_mirror_make_coded(mirror, sum, err);
    case PLI_SUM_LISTS: break;
    }
    return pli_mirror_make_list(mirror, sum, err);
}

plait_status pli_mirror_take(pli_mirror *mirror, int64_t clock, pli_sum_form form, bool flies, pli_sum **sum_out,
                              plait_error *err) {
    if (mirror->keeps) PLI_TRY(pli_mirror_join(mirror, err));
    pli_sum *sum = pli_calloc(1, sizeof *sum);
    if (sum == NULL) return pli_mirror_no_memory(mirror, err);
    sum->clock = clock;
    sum->form = form;
    sum->flies = flies;
    sum->incs = mirror->incs;
    sum->pushed = mirror->incs > 0;
    sum->to_code = form == PLI_SUM_DENSE && mirror->coded != NULL;
    sum->own = mirror->pending;
    sum->stood = mirror->stood;
    sum->stead = mirror->stead;
    pli_pending_init(&mirror->stood, mirror->spec, EXTRA);
    mirror->pending = mirror->spare;
    pli_pending_init(&mirror->spare, mirror->spec, EXTRA);
    if (sum->pushed) {
        mirror->pushes++;
        if (!mirror->holds) pli_raise_push(mirror->sink, mirror->rank, PLI_EVENT_PUSH, mirror->spec->id, clock);
    }
    mirror->incs = 0;
    mirror->taken = clock + 1;
    *mirror->last = sum;
    mirror->last = &sum->next;
    *sum_out = sum;
    plait_status status = make(mirror, sum, err);
    sum->rest = sum->n;
    return status;
}

/* Gives the memory of the own part back to pending, emptied: at once if pending has none yet, else for the next
 * clock. */
static void keep_memory(pli_mirror *mirror, pli_sum *sum) {
    pli_pending *into = mirror->pending.sum == NULL && !mirror->pending.touched ? &mirror->pending : &mirror->spare;
    if (mirror->holds) pli_mirror_keep_result(mirror, sum);
    if (sum->values == sum->own.sum) sum->values = NULL;
    pli_pending_clear(&sum->own);
    if (into->sum != NULL) return;
    pli_pending_destroy(into);
    *into = sum->own;
    pli_pending_init(&sum->own, mirror->spec, EXTRA);
}

/* The first sum is applied and leaves the list. */
static void end_sum(pli_mirror *mirror) {
    pli_sum *sum = mirror->first;
    mirror->landed += sum->pushed;
    mirror->sums++;
    pli_raise_push(mirror->sink, mirror->rank, PLI_EVENT_SUM, mirror->spec->id, sum->clock);
    mirror->first = sum->next;
    if (mirror->first == NULL) mirror->last = &mirror->first;
    keep_memory(mirror, sum);
    pli_mirror_free_sum(sum, mirror->workers);
}

plait_status pli_mirror_land(pli_mirror *mirror, pli_sum *sum, int64_t first, plait_error *err) {
    int64_t to = sum->rest;
    sum->rest = first;
    return pli_sum_in_parts(sum) ? pli_mirror_apply_dense(mirror, sum, first, to, err) : PLAIT_OK;
}

plait_status pli_mirror_apply(pli_mirror *mirror, plait_error *err) {
    pli_sum *sum = mirror->first;
    if (pli_sum_in_parts(sum)) PLI_TRY(sum->rest > 0 ? pli_mirror_land(mirror, sum, 0, err) : PLAIT_OK);
    else if (sum->form == PLI_SUM_DENSE) PLI_TRY(pli_mirror_apply_dense(mirror, sum, 0, sum->n, err));
    else if (sum->form == PLI_SUM_CODED) PLI_TRY(pli_mirror_apply_coded(mirror, sum, err));
    else if (sum->form == PLI_SUM_MARKED) PLI_TRY(apply_marked(mirror, sum, err));
    else PLI_TRY(pli_mirror_apply_lists(mirror, sum, err));
    end_sum(mirror);
    return PLAIT_OK;
}

bool pli_mirror_is_touched(const pli_mirror *mirror, int64_t *examples_out) {
    pli_push_part whole = { 0 };
    take_extra(mirror->spec, mirror->first->values, mirror->first->n - EXTRA, &whole);
    *examples_out = whole.examples;
    return whole.touched;
}

plait_status pli_mirror_apply_slice(pli_mirror *mirror, int64_t examples, int64_t first, int64_t n, int64_t state,
                                     plait_error *err) {
    const pli_sum *sum = mirror->first;
    return pli_shard_apply_values(&mirror->shard, sum->clock, examples, first, n, state,
                                  pli_at_const(sum->values, first * mirror->spec->sum_width), err);
}

void pli_mirror_end_slices(pli_mirror *mirror) {
    pli_sum *sum = mirror->first;
    sum->own.low = 0; /* the others' parts are in it, too */
    sum->own.high = mirror->spec->rows;
    end_sum(mirror);
}
