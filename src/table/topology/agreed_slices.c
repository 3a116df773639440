/* See agreed_slices.h. */
#include "table/topology/agreed_slices.h"

#include <stdio.h>
#include <string.h>

#include "comm/agreed_run.h"
#include "table/copies/mirror.h"
#include "table/state/state.h"
#include "table/state/values.h"

enum { WHAT_BYTES = 128 };

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for slices of an optimizer's state");
}

plait_status pli_agreed_slices_open(const plait_table *table, plait_error *err) {
    const plait_job *job = table->job;
    pli_mirror      *mirror = table->state;
    pli_keepers      *keepers = pli_calloc(1, sizeof *keepers);
    if (keepers == NULL || !pli_keepers_init(keepers, mirror->workers, job->layout.replicas,
                                           table->spec.rows * table->spec.cols, pli_agreed_run_next(job->agreed))) {
        pli_free(keepers);
        return no_memory(err);
    }
    mirror->keepers = keepers;
    return pli_store_open_state(&mirror->shard.store,
                                pli_keepers_state(keepers, pli_job_me(job), pli_keepers_held(keepers)), err);
}

plait_status pli_agreed_slices_must_live(const plait_table *table, const uint8_t *dead, plait_error *err) {
    const pli_keepers *keepers = pli_mirror_of(table)->keepers;
    const int32_t     lost = pli_keepers_lost(keepers, dead);
    if (lost < 0) return PLAIT_OK;
    return pli_fail(err, PLAIT_EPEER,
                    "table %s: the %d workers that held slice %d of its optimizer's state have died before others had "
                    "it; a checkpoint has it, and --replicas 3 holds it once more", table->spec.name,
                    pli_keepers_held(keepers), lost);
}

/* --- the values --------------------------------------------------------------------------------------------------- */

/* With a sum that is to be applied. */
static pli_mirror *in_slices(const plait_job *job, int64_t table) {
    pli_mirror *mirror = pli_table_held(job->table[table]);
    return mirror != NULL && mirror->keepers != NULL && mirror->first != NULL ? mirror : NULL;
}

/* If anybody has pushed to it in this clock. */
static pli_mirror *touched(const plait_job *job, int64_t table, int64_t *examples_out) {
    pli_mirror *mirror = in_slices(job, table);
    return mirror != NULL && pli_mirror_is_touched(mirror, examples_out) ? mirror : NULL;
}

/* What a worker's message of values is, as it is counted, written and read. */
typedef struct carrying {
    size_t         bytes;
    unsigned char *at;
} carrying;

typedef void values_fn(void *values, size_t bytes, carrying *c);

static void count(void *values, size_t bytes, carrying *c) {
    (void)values;
    c->bytes += bytes;
}

static void put(void *values, size_t bytes, carrying *c) {
    memcpy(c->at, values, bytes);
    c->at += bytes;
}

static void take(void *values, size_t bytes, carrying *c) {
    memcpy(values, c->at, bytes);
    c->at += bytes;
}

/* Goes through the values for which a worker speaks if these are dead, in the same order whoever asks. */
static void go_through(const plait_job *job, int32_t worker, const uint8_t *dead, values_fn *fn, carrying *c) {
    for (int64_t t = 0; t < job->tables; t++) {
        int64_t           examples;
        const pli_mirror *mirror = touched(job, t, &examples);
        for (int32_t s = 0; mirror != NULL && s < mirror->keepers->n_living; s++) {
            const pli_stretch part = pli_keepers_range(mirror->keepers, s);
            const int64_t     width = mirror->spec->width;
            if (pli_keepers_speaker(mirror->keepers, s, dead) == worker && part.n > 0)
                fn(pli_at(mirror->shard.store.slab->memory, part.first * width), (size_t)(part.n * width), c);
        }
    }
}

static plait_status put_values(const plait_job *job, const uint8_t *dead, pli_msg **msg_out, plait_error *err) {
    carrying c = { 0 };
    for (int64_t t = 0; t < job->tables; t++)
        if (in_slices(job, t) != NULL) PLI_TRY(pli_agreed_slices_must_live(job->table[t], dead, err));
    go_through(job, pli_job_me(job), dead, count, &c);
    *msg_out = pli_msg_new(c.bytes);
    if (*msg_out == NULL) return no_memory(err);
    c.at = pli_msg_body(*msg_out);
    go_through(job, pli_job_me(job), dead, put, &c);
    return PLAIT_OK;
}

static plait_status take_values(const plait_job *job, const uint8_t *dead, pli_msg *const *piece, plait_error *err) {
    for (int32_t w = 0; w < job->layout.workers; w++) {
        carrying c = { 0 };
        if (dead[w] || w == pli_job_me(job)) continue;
        go_through(job, w, dead, count, &c);
        if (piece[w]->head.body_bytes != c.bytes)
            return pli_fail(err, PLAIT_EFORMAT, "rank %d sent other slices than it speaks for",
                            pli_job_rank_of(job, w));
        c.at = pli_msg_body(piece[w]);
        go_through(job, w, dead, take, &c);
    }
    return PLAIT_OK;
}

/* One attempt; dead [workers] is written. */
static plait_status try_gather(plait_job *job, uint8_t *dead, pli_msg **piece, plait_error *err) {
    pli_msg *mine = NULL;
    memcpy(dead, pli_agreed_run_next(job->agreed), (size_t)job->layout.workers);
    plait_status status = put_values(job, dead, &mine, err);
    const pli_agreed_part part = { .list = mine, .piece = piece };
    if (status >= 0) status = pli_agreed_run_step(job->agreed, 1, &part, err);
    pli_msg_free(&mine);
    return status;
}

static void free_pieces(const plait_job *job, pli_msg **piece) {
    for (int32_t w = 0; piece != NULL && w < job->layout.workers; w++) pli_msg_free(&piece[w]);
    pli_free(piece);
}

static plait_status gather_values(plait_job *job, plait_error *err) {
    uint8_t     *dead = pli_calloc((size_t)job->layout.workers, 1);
    pli_msg    **piece = pli_calloc((size_t)job->layout.workers, sizeof *piece);
    plait_status status = dead != NULL && piece != NULL ? PLAIT_STAND_IN : no_memory(err);
    while (status == PLAIT_STAND_IN) status = try_gather(job, dead, piece, err);
    if (status >= 0) status = take_values(job, dead, piece, err);
    free_pieces(job, piece);
    pli_free(dead);
    return status;
}

/* Applies the sum to all slices that the worker holds. */
static plait_status apply_held(const plait_job *job, pli_mirror *mirror, int64_t examples, plait_error *err) {
    const pli_keepers *keepers = mirror->keepers;
    const int32_t     me = pli_job_me(job);
    pli_store        *store = &mirror->shard.store;
    if (store->snap != NULL) pli_snap_range_changes(store->snap, 0, mirror->spec->rows);
    for (int32_t i = 0; i < pli_keepers_held(keepers); i++) {
        const pli_stretch held = pli_keepers_range(keepers, pli_keepers_at(keepers, me, i));
        PLI_TRY(pli_mirror_apply_slice(mirror, examples, held.first, held.n, pli_keepers_state(keepers, me, i), err));
        pli_comm_work(job->comm, PLI_WORK_VALUES, (uint64_t)held.n);
    }
    return PLAIT_OK;
}

plait_status pli_agreed_slices_apply(plait_job *job, plait_error *err) {
    bool any = false;
    for (int64_t t = 0; t < job->tables; t++) {
        int64_t     examples;
        pli_mirror *mirror = touched(job, t, &examples);
        if (mirror == NULL) continue;
        PLI_TRY(apply_held(job, mirror, examples, err));
        any = true;
    }
    if (any) PLI_TRY(gather_values(job, err));
    for (int64_t t = 0; t < job->tables; t++)
        if (in_slices(job, t) != NULL) pli_mirror_end_slices(in_slices(job, t));
    return PLAIT_OK;
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

/* What goes to a worker of the rows that it writes. */
typedef struct keeping {
    plait_table   *table;
    const uint8_t *dead; /* [workers] */
    int32_t        to;
    pli_msg      **gives, **came; /* [workers] */
} keeping;

typedef void kept_fn(const keeping *k, int32_t slot, pli_stretch part, int64_t state, void *user);

static pli_stretch share_of(const keeping *k, int32_t worker) {
    const pli_spec *spec = &k->table->spec;
    int64_t         first, n;
    pli_state_share_of(k->table, worker, spec->rows, &first, &n);
    return (pli_stretch){ first * spec->cols, n * spec->cols };
}

/* Goes through the states that `from` has for k->to, in the same order whoever asks. */
static void go_through_kept(const keeping *k, int32_t from, kept_fn *fn, void *user) {
    const pli_keepers *keepers = pli_mirror_of(k->table)->keepers;
    const pli_stretch share = share_of(k, k->to);
    for (int32_t slot = 0; slot < k->table->spec.rule.ops->slots; slot++)
        for (int32_t s = 0; s < keepers->n_living; s++) {
            const pli_stretch held = pli_keepers_range(keepers, s), part = pli_stretch_common(held, share);
            if (part.n == 0 || pli_keepers_speaker(keepers, s, k->dead) != from) continue;
            const int64_t state = pli_keepers_state(keepers, from, pli_keepers_place(keepers, from, s));
            fn(k, slot, part, state + part.first - held.first, user);
        }
}

static void *state_at(const keeping *k, int32_t slot, int64_t state) {
    return pli_at(pli_mirror_of(k->table)->shard.store.chunk->slot[slot], state * k->table->spec.width);
}

static void count_kept(const keeping *k, int32_t slot, pli_stretch part, int64_t state, void *user) {
    (void)slot;
    (void)state;
    ((carrying *)user)->bytes += (size_t)(part.n * k->table->spec.width);
}

static void put_kept(const keeping *k, int32_t slot, pli_stretch part, int64_t state, void *user) {
    put(state_at(k, slot, state), (size_t)(part.n * k->table->spec.width), user);
}

/* What has come of the worker's own rows, or (at NULL) what it holds of them, is set aside. */
typedef struct setting {
    pli_snap            *snap;
    const unsigned char *at;
} setting;

static void set_kept(const keeping *k, int32_t slot, pli_stretch part, int64_t state, void *user) {
    setting    *s = user;
    const void *from = s->at != NULL ? s->at : state_at(k, slot, state);
    pli_snap_keep_values(s->snap, PLI_STATE_SLOT + slot, part.first, part.n, from);
    if (s->at != NULL) s->at += part.n * k->table->spec.width;
}

static plait_status give(keeping *k, int32_t worker, plait_error *err) {
    const int32_t me = pli_job_me(k->table->job);
    carrying      c = { 0 };
    k->to = worker;
    go_through_kept(k, me, count_kept, &c);
    pli_msg_free(&k->gives[worker]); /* of an attempt that was dropped */
    k->gives[worker] = pli_msg_new(c.bytes);
    if (k->gives[worker] == NULL) return no_memory(err);
    c.at = pli_msg_body(k->gives[worker]);
    go_through_kept(k, me, put_kept, &c);
    return PLAIT_OK;
}

/* One attempt; dead [workers] is written. */
static plait_status try_keep(keeping *k, uint8_t *dead, plait_error *err) {
    plait_job *job = k->table->job;
    memcpy(dead, pli_agreed_run_next(job->agreed), (size_t)job->layout.workers);
    PLI_TRY(pli_agreed_slices_must_live(k->table, dead, err));
    for (int32_t w = 0; w < job->layout.workers; w++)
        if (!dead[w] && w != pli_job_me(job)) PLI_TRY(give(k, w, err));
    const pli_agreed_part part = { .gives = k->gives, .piece = k->came };
    return pli_agreed_run_step(job->agreed, 1, &part, err);
}

static plait_status set_all(keeping *k, pli_snap *snap, plait_error *err) {
    const plait_job *job = k->table->job;
    k->to = pli_job_me(job);
    for (int32_t w = 0; w < job->layout.workers; w++) {
        carrying c = { 0 };
        setting  s = { .snap = snap };
        if (k->dead[w]) continue;
        go_through_kept(k, w, count_kept, &c);
        if (w != k->to && k->came[w]->head.body_bytes != c.bytes)
            return pli_fail(err, PLAIT_EFORMAT, "rank %d sent other states than it speaks for",
                            pli_job_rank_of(job, w));
        if (w != k->to) s.at = pli_msg_body(k->came[w]);
        go_through_kept(k, w, set_kept, &s);
    }
    return PLAIT_OK;
}

plait_status pli_agreed_slices_keep(plait_table *table, pli_snap *snap, plait_error *err) {
    plait_job   *job = table->job;
    char         what[WHAT_BYTES];
    uint8_t     *dead = pli_calloc((size_t)job->layout.workers, 1);
    keeping      k = { .table = table, .dead = dead,
                       .gives = pli_calloc((size_t)job->layout.workers, sizeof *k.gives),
                       .came = pli_calloc((size_t)job->layout.workers, sizeof *k.came) };
    plait_status status = snap != NULL && dead != NULL && k.gives != NULL && k.came != NULL ? PLAIT_OK : no_memory(err);
    snprintf(what, sizeof what, "a capture of table %s", table->spec.name);
    status = pli_job_agree(job, what, 0, status, err);
    if (status >= 0) status = PLAIT_STAND_IN;
    while (status == PLAIT_STAND_IN) status = try_keep(&k, dead, err);
    if (status >= 0) status = set_all(&k, snap, err);
    free_pieces(job, k.gives);
    free_pieces(job, k.came);
    pli_free(dead);
    return status;
}

void pli_agreed_slices_put_back(plait_table *table, int32_t slot, int64_t first, int64_t n, const void *rows) {
    const pli_mirror *mirror = pli_mirror_of(table);
    const pli_keepers *keepers = mirror->keepers;
    const int64_t     width = table->spec.width;
    const pli_stretch put = { first * table->spec.cols, n * table->spec.cols };
    const int32_t     me = pli_job_me(table->job);
    for (int32_t i = 0; i < pli_keepers_held(keepers); i++) {
        const pli_stretch held = pli_keepers_range(keepers, pli_keepers_at(keepers, me, i));
        const pli_stretch part = pli_stretch_common(held, put);
        const int64_t     state = pli_keepers_state(keepers, me, i) + part.first - held.first;
        if (part.n > 0)
            memcpy(pli_at(mirror->shard.store.chunk->slot[slot], state * width),
                   pli_at_const(rows, (part.first - put.first) * width), (size_t)(part.n * width));
    }
}
