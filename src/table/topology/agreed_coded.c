/* See agreed_coded.h. */
#include "table/topology/agreed_coded.h"

#include <string.h>

#include "table/state/updates.h"
#include "table/state/values.h"

plait_status pli_agreed_coded_cut(plait_job *job, plait_error *err) {
    for (int64_t t = 0; t < job->tables; t++) {
        const pli_mirror *mirror = pli_table_held(job->table[t]);
        pli_coded        *coded = mirror != NULL ? mirror->coded : NULL;
        if (coded != NULL) PLI_TRY(pli_coded_recut(coded, pli_agreed_run_next(job->agreed), err));
    }
    return PLAIT_OK;
}

/* The worker's own part stays as it is, so the sums are made elsewhere. */
static plait_status open_results(pli_making *m) {
    for (int64_t i = 0; i < m->n; i++) PLI_TRY(pli_mirror_result(m->mirror[i], &m->sum[i], m->err));
    return PLAIT_OK;
}

/* The others' parts of the own stripe are added to the own one. */
static void begin_stripe(pli_making *m) {
    for (int64_t i = 0; i < m->n; i++) {
        const pli_mirror *mirror = m->mirror[i];
        int64_t           first, n;
        pli_coded_stripe(mirror->coded, m->cut->mine, &first, &n);
        const int64_t at = first * mirror->spec->sum_width, bytes = n * mirror->spec->sum_width;
        if (bytes > 0) memcpy(pli_at(m->sum[i], at), pli_at_const(mirror->first->own.sum, at), (size_t)bytes);
    }
}

static plait_status exchange(pli_making *m) {
    const pli_agreed_part part = { .gives = m->given, .piece = m->came };
    PLI_TRY(pli_making_put_stripes(m));
    return pli_agreed_run_step(m->job->agreed, 1, &part, m->err);
}

/* The workers behind this one in the ring of the living hold its slice too, and this one holds those of the workers
 * before it (copies/keepers.h). */
static plait_status put_held(pli_agreed_coded *c) {
    const pli_making *m = &c->striped;
    const int32_t     living = m->cut->n_living, copies = m->job->layout.replicas;
    pli_msg          *mine = NULL;
    c->held = pli_calloc((size_t)m->workers, sizeof *c->held);
    c->heard = pli_calloc((size_t)m->workers, sizeof *c->heard);
    c->hears = pli_calloc((size_t)m->workers, 1);
    if (c->held == NULL || c->heard == NULL || c->hears == NULL)
        return pli_fail(m->err, PLAIT_ENOMEM, "no memory to make a clock's filtered sums");
    PLI_TRY(pli_making_put_held(m, &mine));
    for (int32_t i = 1; i < copies && i < living; i++) {
        c->hears[m->cut->living[(m->cut->mine + living - i) % living]] = 1;
        c->held[m->cut->living[(m->cut->mine + i) % living]] = pli_msg_of_slab(mine->body, mine->offset,
                                                                               mine->head.body_bytes);
    }
    pli_msg_free(&mine);
    return PLAIT_OK;
}

static bool has_held(const pli_making *m) {
    bool has = false;
    for (int64_t i = 0; i < m->n; i++) has = has || m->mirror[i]->spec->sharded;
    return has;
}

static plait_status begin_striped(pli_agreed_coded *c) {
    pli_making *m = &c->striped;
    if (m->n == 0) return PLAIT_OK;
    const plait_status status = exchange(m);
    if (status != PLAIT_OK) return status;
    begin_stripe(m);
    PLI_TRY(pli_making_add_stripes(m));
    pli_making_free_messages(m);
    if (has_held(m)) PLI_TRY(put_held(c));
    return pli_making_gathers(m) ? pli_making_put_sums(m, &c->sums) : PLAIT_OK;
}

plait_status pli_agreed_coded_begin(pli_agreed_coded *c, plait_job *job, plait_error *err) {
    *c = (pli_agreed_coded){ 0 };
    PLI_TRY(pli_making_open(&c->striped, job, true, err));
    PLI_TRY(pli_making_open(&c->whole, job, false, err));
    PLI_TRY(open_results(&c->striped));
    PLI_TRY(open_results(&c->whole));
    if (c->whole.n > 0) PLI_TRY(pli_making_put_parts(&c->whole, 0, &c->parts));
    return begin_striped(c);
}

int64_t pli_agreed_coded_parts(pli_agreed_coded *c, pli_agreed_part *parts) {
    int64_t n = 0;
    if (c->sums != NULL) parts[n++] = (pli_agreed_part){ .list = c->sums, .piece = c->striped.came };
    if (c->held != NULL) parts[n++] = (pli_agreed_part){ .gives = c->held, .hears = c->hears, .piece = c->heard };
    if (c->whole.n > 0) parts[n++] = (pli_agreed_part){ .list = c->parts, .piece = c->whole.came };
    return n;
}

static plait_status hand_over(const pli_making *m) {
    for (int64_t i = 0; i < m->n; i++) {
        PLI_TRY(pli_mirror_made(m->mirror[i], m->err));
        pli_mirror_was_coded(m->mirror[i], &m->push[i]);
    }
    return PLAIT_OK;
}

plait_status pli_agreed_coded_end(pli_agreed_coded *c) {
    if (c->sums != NULL) PLI_TRY(pli_making_take_sums(&c->striped));
    for (int32_t s = 0; c->held != NULL && s < c->striped.cut->stripes; s++) {
        const int32_t owner = c->striped.cut->living[s];
        if (c->hears[owner]) PLI_TRY(pli_making_take_held(&c->striped, s, c->heard[owner]));
    }
    PLI_TRY(pli_making_add_all(&c->whole));
    PLI_TRY(hand_over(&c->striped));
    return hand_over(&c->whole);
}

void pli_agreed_coded_close(pli_agreed_coded *c) {
    for (int32_t w = 0; w < c->striped.workers; w++) {
        if (c->held != NULL) pli_msg_free(&c->held[w]);
        if (c->heard != NULL) pli_msg_free(&c->heard[w]);
    }
    pli_free(c->held);
    pli_free(c->heard);
    pli_free(c->hears);
    c->held = c->heard = NULL;
    c->hears = NULL;
    pli_making_close(&c->striped);
    pli_making_close(&c->whole);
    pli_msg_free(&c->sums);
    pli_msg_free(&c->parts);
}
