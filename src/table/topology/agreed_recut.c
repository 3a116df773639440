/* See agreed_recut.h. */
#include "table/topology/agreed_recut.h"

#include <string.h>

#include "table/copies/mirror.h"
#include "table/state/values.h"
#include "table/topology/agreed_slices.h"

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to cut an optimizer's state anew");
}

/* A table that is cut otherwise than for those who live, and its new cut. */
typedef struct anew {
    pli_mirror *mirror;
    pli_keepers  cut;
} anew;

static pli_mirror *to_cut(const plait_job *job, int64_t table, const uint8_t *dead) {
    pli_mirror *mirror = pli_table_held(job->table[table]);
    if (mirror == NULL || mirror->keepers == NULL) return NULL;
    return memcmp(mirror->keepers->dead, dead, (size_t)job->layout.workers) != 0 ? mirror : NULL;
}

static plait_status make_cut(const pli_agreed_recut *recut, pli_mirror *mirror, anew *anew_out, plait_error *err) {
    const pli_keepers *old = mirror->keepers;
    anew_out->mirror = mirror;
    return pli_keepers_init(&anew_out->cut, old->workers, old->copies, old->values, recut->dead) ? PLAIT_OK
                                                                                               : no_memory(err);
}

/* --- what travels ------------------------------------------------------------------------------------------------- */

/* What goes from one worker to another, as it is counted, written and read. */
typedef struct carrying {
    const pli_mirror    *mirror;
    int32_t              from;
    int64_t              bytes;
    unsigned char       *at;
    const unsigned char *read;
    void *const         *slot; /* [slots] the new states */
} carrying;

static int32_t slots_of(const carrying *c) { return c->mirror->spec->rule.ops->slots; }

static void *held_at(const carrying *c, int32_t slot, int64_t state) {
    return pli_at(c->mirror->shard.store.chunk->slot[slot], state * c->mirror->spec->width);
}

static void *new_at(const carrying *c, int32_t slot, int64_t state) {
    return pli_at(c->slot[slot], state * c->mirror->spec->width);
}

static size_t bytes_of(const carrying *c, const pli_keepers_moved *m) {
    return (size_t)(m->n * c->mirror->spec->width);
}

static void count(const pli_keepers_moved *m, void *user) {
    carrying *c = user;
    if (m->from == c->from) c->bytes += (int64_t)bytes_of(c, m) * slots_of(c);
}

static void put(const pli_keepers_moved *m, void *user) {
    carrying *c = user;
    for (int32_t k = 0; m->from == c->from && k < slots_of(c); k++, c->at += bytes_of(c, m))
        memcpy(c->at, held_at(c, k, m->state), bytes_of(c, m));
}

static void take(const pli_keepers_moved *m, void *user) {
    carrying *c = user;
    for (int32_t k = 0; m->from == c->from && k < slots_of(c); k++, c->read += bytes_of(c, m))
        memcpy(new_at(c, k, m->to), c->read, bytes_of(c, m));
}

static void keep(const pli_keepers_moved *m, void *user) {
    carrying *c = user;
    for (int32_t k = 0; m->from == c->from && k < slots_of(c); k++)
        memcpy(new_at(c, k, m->to), held_at(c, k, m->state), bytes_of(c, m));
}

/* All that a worker needs, of all tables. */
static plait_status go_through(const pli_agreed_recut *recut, int32_t worker, pli_keepers_fn *fn, carrying *c,
                               plait_error *err) {
    for (int64_t t = 0; t < recut->job->tables; t++) {
        anew        a;
        pli_mirror *mirror = to_cut(recut->job, t, recut->dead);
        if (mirror == NULL) continue;
        PLI_TRY(make_cut(recut, mirror, &a, err));
        c->mirror = mirror;
        pli_keepers_move(mirror->keepers, &a.cut, worker, fn, c);
        pli_keepers_free(&a.cut);
    }
    return PLAIT_OK;
}

static plait_status give(const pli_agreed_recut *recut, int32_t worker, plait_error *err) {
    carrying c = { .from = pli_job_me(recut->job) };
    PLI_TRY(go_through(recut, worker, count, &c, err));
    recut->gives[worker] = pli_msg_new((size_t)c.bytes);
    if (recut->gives[worker] == NULL) return no_memory(err);
    c.at = pli_msg_body(recut->gives[worker]);
    return go_through(recut, worker, put, &c, err);
}

/* Is a table cut otherwise, and is nothing of its state lost? */
static plait_status look(const plait_job *job, const uint8_t *dead, bool *any_out, plait_error *err) {
    for (int64_t t = 0; t < job->tables; t++) {
        if (to_cut(job, t, dead) == NULL) continue;
        PLI_TRY(pli_agreed_slices_must_live(job->table[t], dead, err));
        *any_out = true;
    }
    return PLAIT_OK;
}

plait_status pli_agreed_recut_begin(pli_agreed_recut *recut, plait_job *job, plait_error *err) {
    const size_t workers = (size_t)job->layout.workers;
    bool         any = false;
    *recut = (pli_agreed_recut){ .job = job };
    PLI_TRY(look(job, pli_agreed_run_next(job->agreed), &any, err));
    if (!any) return PLAIT_OK;
    recut->dead = pli_calloc(workers, 1);
    recut->gives = pli_calloc(workers, sizeof *recut->gives);
    recut->came = pli_calloc(workers, sizeof *recut->came);
    if (recut->dead == NULL || recut->gives == NULL || recut->came == NULL) return no_memory(err);
    memcpy(recut->dead, pli_agreed_run_next(job->agreed), workers);
    for (int32_t w = 0; w < job->layout.workers; w++)
        if (!recut->dead[w] && w != pli_job_me(job)) PLI_TRY(give(recut, w, err));
    return PLAIT_OK;
}

int64_t pli_agreed_recut_parts(const pli_agreed_recut *recut, pli_agreed_part *part) {
    if (recut->gives == NULL) return 0;
    *part = (pli_agreed_part){ .gives = recut->gives, .piece = recut->came };
    return 1;
}

void pli_agreed_recut_close(pli_agreed_recut *recut) {
    for (int32_t w = 0; recut->job != NULL && w < recut->job->layout.workers; w++) {
        if (recut->gives != NULL) pli_msg_free(&recut->gives[w]);
        if (recut->came != NULL) pli_msg_free(&recut->came[w]);
    }
    pli_free(recut->gives);
    pli_free(recut->came);
    pli_free(recut->dead);
    *recut = (pli_agreed_recut){ 0 };
}

/* --- the new slices ----------------------------------------------------------------------------------------------- */

/* What has come must be what this worker needs. */
static plait_status check(const pli_agreed_recut *recut, plait_error *err) {
    for (int32_t w = 0; w < recut->job->layout.workers; w++) {
        carrying c = { .from = w };
        if (recut->dead[w] || w == pli_job_me(recut->job)) continue;
        PLI_TRY(go_through(recut, pli_job_me(recut->job), count, &c, err));
        if (recut->came[w]->head.body_bytes != (uint64_t)c.bytes)
            return pli_fail(err, PLAIT_EFORMAT, "rank %d sent other states than it speaks for",
                            pli_job_rank_of(recut->job, w));
    }
    return PLAIT_OK;
}

/* New memory takes what the worker has itself, and what has come: read [workers] moves on. */
static void fill(const pli_agreed_recut *recut, const anew *a, void *const *slot, const unsigned char **read) {
    const int32_t me = pli_job_me(recut->job);
    for (int32_t w = 0; w < recut->job->layout.workers; w++) {
        carrying c = { .mirror = a->mirror, .from = w, .read = read[w], .slot = slot };
        if (!recut->dead[w]) pli_keepers_move(a->mirror->keepers, &a->cut, me, w == me ? keep : take, &c);
        read[w] = c.read;
    }
}

static plait_status cut(const pli_agreed_recut *recut, anew *a, const unsigned char **read, plait_error *err) {
    pli_store    *store = &a->mirror->shard.store;
    const int32_t me = pli_job_me(recut->job), slots = a->mirror->spec->rule.ops->slots;
    const int64_t states = pli_keepers_state(&a->cut, me, pli_keepers_held(&a->cut));
    void         *slot[PLI_RULE_SLOTS_MAX] = { 0 };
    bool          made = true;
    for (int32_t k = 0; k < slots; k++)
        made = (slot[k] = pli_aligned((size_t)(states * a->mirror->spec->width))) != NULL && made;
    if (made) fill(recut, a, slot, read);
    for (int32_t k = 0; k < slots; k++) {
        pli_free(made ? store->chunk->slot[k] : slot[k]);
        if (made) store->chunk->slot[k] = slot[k];
    }
    if (!made) return no_memory(err);
    store->states = states;
    pli_keepers_free(a->mirror->keepers);
    *a->mirror->keepers = a->cut;
    a->cut = (pli_keepers){ 0 };
    return PLAIT_OK;
}

plait_status pli_agreed_recut_end(pli_agreed_recut *recut, plait_error *err) {
    plait_status status = PLAIT_OK;
    if (recut->gives == NULL) return PLAIT_OK;
    PLI_TRY(check(recut, err));
    const unsigned char **read = pli_calloc((size_t)recut->job->layout.workers, sizeof *read);
    if (read == NULL) return no_memory(err);
    for (int32_t w = 0; w < recut->job->layout.workers; w++) read[w] = pli_msg_body(recut->came[w]);
    for (int64_t t = 0; status >= 0 && t < recut->job->tables; t++) {
        anew        a = { 0 };
        pli_mirror *mirror = to_cut(recut->job, t, recut->dead);
        if (mirror == NULL) continue;
        status = make_cut(recut, mirror, &a, err);
        if (status >= 0) status = cut(recut, &a, read, err);
        pli_keepers_free(&a.cut);
    }
    pli_free(read);
    return status;
}
