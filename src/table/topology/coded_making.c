/* See coded_making.h. */
#include "table/topology/coded_making.h"

#include <string.h>

#include "table/state/updates.h"
#include "table/state/values.h"

static plait_status no_memory(const pli_making *m) {
    return pli_fail(m->err, PLAIT_ENOMEM, "no memory to make a clock's filtered sums");
}

static void add(pli_making *m, pli_mirror *mirror) {
    m->cut = mirror->coded;
    m->sum[m->n] = mirror->first->values;
    m->mirror[m->n++] = mirror;
}

plait_status pli_making_open(pli_making *m, plait_job *job, bool in_stripes, plait_error *err) {
    *m = (pli_making){ .job = job, .in_stripes = in_stripes, .clock = job->clock, .workers = job->layout.workers,
                       .me = pli_job_me(job), .err = err };
    m->mirror = pli_array((size_t)job->tables, sizeof *m->mirror);
    m->sum = pli_array((size_t)job->tables, sizeof *m->sum);
    m->push = pli_calloc((size_t)job->tables, sizeof *m->push);
    m->given = pli_calloc((size_t)m->workers, sizeof *m->given);
    m->came = pli_calloc((size_t)m->workers, sizeof *m->came);
    if (m->mirror == NULL || m->sum == NULL || m->push == NULL || m->given == NULL || m->came == NULL)
        return no_memory(m);
    for (int64_t t = 0; t < job->tables; t++) {
        const pli_topology_ops *ops = job->table[t]->ops;
        plait_table            *coded = ops->coded != NULL ? ops->coded(job->table[t]) : NULL;
        if (coded != NULL && pli_mirror_of(coded)->coded->in_stripes == in_stripes) add(m, pli_mirror_of(coded));
    }
    /* encoding and adding up cost about as much as a plain sum of the values */
    for (int64_t i = 0; i < m->n; i++) pli_comm_work(job->comm, PLI_WORK_SUMS, (uint64_t)m->mirror[i]->coded->rows);
    return PLAIT_OK;
}

void pli_making_free_messages(pli_making *m) {
    for (int32_t w = 0; w < m->workers; w++) {
        if (m->given != NULL) pli_msg_free(&m->given[w]);
        if (m->came != NULL) pli_msg_free(&m->came[w]);
    }
}

void pli_making_close(pli_making *m) {
    pli_making_free_messages(m);
    pli_free(m->given);
    pli_free(m->came);
    pli_free(m->mirror);
    pli_free(m->sum);
    pli_free(m->push);
    *m = (pli_making){ 0 };
}

static plait_status message_of(const pli_making *m, pli_bytes *body, pli_msg **msg_out) {
    *msg_out = pli_msg_new((size_t)body->n);
    if (*msg_out == NULL) return no_memory(m);
    if (body->n > 0) memcpy(pli_msg_body(*msg_out), body->data, (size_t)body->n);
    return PLAIT_OK;
}

static plait_status must_end(const pli_making *m, int32_t worker, bool ends) {
    return ends ? PLAIT_OK
                : pli_fail(m->err, PLAIT_EFORMAT, "rank %d sent more of a clock's filtered sums than there are",
                           pli_job_rank_of(m->job, worker));
}

/* --- all that a worker has pushed --------------------------------------------------------------------------------- */

plait_status pli_making_put_parts(pli_making *m, int32_t stripe, pli_msg **msg_out) {
    pli_bytes    body = { 0 };
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < m->n; i++)
        status = pli_coded_put(m->mirror[i]->coded, stripe, m->clock, &m->mirror[i]->first->own, &body, m->err);
    if (status >= 0) status = message_of(m, &body, msg_out);
    pli_bytes_free(&body);
    return status;
}

plait_status pli_making_add_parts(pli_making *m, int32_t w) {
    const unsigned char *at = pli_msg_body(m->came[w]), *end = at + m->came[w]->head.body_bytes;
    for (int64_t i = 0; i < m->n; i++)
        PLI_TRY(pli_coded_add(m->mirror[i]->coded, w, m->clock, &at, end, m->sum[i], &m->push[i], m->err));
    return must_end(m, w, at == end);
}

plait_status pli_making_add_all(pli_making *m) {
    for (int64_t i = 0; i < m->n; i++) pli_updates_clear(m->mirror[i]->spec, m->mirror[i]->first->n, m->sum[i]);
    for (int32_t i = 0; m->n > 0 && i < m->cut->n_living; i++) PLI_TRY(pli_making_add_parts(m, m->cut->living[i]));
    return PLAIT_OK;
}

/* --- in stripes --------------------------------------------------------------------------------------------------- */

plait_status pli_making_put_stripes(pli_making *m) {
    for (int32_t s = 0; s < m->cut->stripes; s++)
        if (s != m->cut->mine) PLI_TRY(pli_making_put_parts(m, s, &m->given[m->cut->living[s]]));
    return PLAIT_OK;
}

plait_status pli_making_add_stripes(pli_making *m) {
    for (int64_t i = 0; i < m->n; i++) {
        const pli_pending *own = &m->mirror[i]->first->own;
        m->push[i] = (pli_coded_push){ .touched = own->touched, .examples = own->touched ? own->examples : 0 };
    }
    for (int32_t s = 0; s < m->cut->stripes; s++)
        if (s != m->cut->mine) PLI_TRY(pli_making_add_parts(m, m->cut->living[s]));
    for (int64_t i = 0; i < m->n; i++)
        if (m->mirror[i]->spec->sharded && m->push[i].touched)
            PLI_TRY(pli_coded_spend(m->mirror[i]->coded, m->sum[i], m->err));
    return PLAIT_OK;
}

bool pli_making_gathers(const pli_making *m) {
    bool gathers = false;
    for (int64_t i = 0; i < m->n; i++) gathers = gathers || !m->mirror[i]->spec->sharded;
    return gathers;
}

plait_status pli_making_put_sums(pli_making *m, pli_msg **msg_out) {
    pli_bytes    body = { 0 };
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < m->n; i++)
        if (!m->mirror[i]->spec->sharded)
            status = pli_coded_put_sum(m->mirror[i]->coded, m->clock, &m->push[i], m->sum[i], &body, m->err);
    if (status >= 0) status = message_of(m, &body, msg_out);
    pli_bytes_free(&body);
    return status;
}

static plait_status take_stripe(pli_making *m, int32_t stripe) {
    const int32_t        owner = m->cut->living[stripe];
    const unsigned char *at = pli_msg_body(m->came[owner]), *end = at + m->came[owner]->head.body_bytes;
    for (int64_t i = 0; i < m->n; i++)
        if (!m->mirror[i]->spec->sharded)
            PLI_TRY(pli_coded_take_sum(m->mirror[i]->coded, stripe, m->clock, &m->push[i], &at, end, m->sum[i],
                                       m->err));
    return must_end(m, owner, at == end);
}

plait_status pli_making_take_sums(pli_making *m) {
    for (int32_t s = 0; s < m->cut->stripes; s++) PLI_TRY(take_stripe(m, s));
    return PLAIT_OK;
}

/* --- stripes that have several holders ---------------------------------------------------------------------------- */

static void *stripe_at(const pli_making *m, int64_t i, int32_t stripe, size_t *bytes_out) {
    const pli_mirror *mirror = m->mirror[i];
    int64_t           first, n;
    pli_coded_stripe(mirror->coded, stripe, &first, &n);
    *bytes_out = mirror->spec->sharded ? (size_t)(n * mirror->spec->sum_width) : 0;
    return pli_at(m->sum[i], first * mirror->spec->sum_width);
}

plait_status pli_making_put_held(const pli_making *m, pli_msg **msg_out) {
    size_t bytes = 0, n;
    for (int64_t i = 0; i < m->n; i++, bytes += n) (void)stripe_at(m, i, m->cut->mine, &n);
    *msg_out = pli_msg_new(bytes);
    if (*msg_out == NULL) return no_memory(m);
    unsigned char *at = pli_msg_body(*msg_out);
    for (int64_t i = 0; i < m->n; i++, at += n) {
        const void *from = stripe_at(m, i, m->cut->mine, &n);
        if (n > 0) memcpy(at, from, n);
    }
    return PLAIT_OK;
}

plait_status pli_making_take_held(const pli_making *m, int32_t stripe, const pli_msg *msg) {
    const unsigned char *at = pli_msg_body(msg);
    size_t               bytes = 0, n;
    for (int64_t i = 0; i < m->n; i++, bytes += n) (void)stripe_at(m, i, stripe, &n);
    PLI_TRY(must_end(m, m->cut->living[stripe], msg->head.body_bytes == bytes));
    for (int64_t i = 0; i < m->n; i++, at += n) {
        void *to = stripe_at(m, i, stripe, &n);
        if (n > 0) memcpy(to, at, n);
    }
    return PLAIT_OK;
}
