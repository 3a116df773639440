/* See coded_sums.h. */
#include "table/topology/coded_sums.h"

#include <string.h>

#include "table/copies/mirror.h"
#include "table/state/updates.h"
#include "table/topology/buckets.h"

/* A clock's filtered sums, while they are made. */
typedef struct making {
    plait_job      *job;
    pli_mirror    **mirror; /* [n], in the order of the job's tables: the same on all workers */
    pli_coded_push *push;   /* [n] of all workers, as far as it is known */
    int64_t         n, clock;
    int32_t         workers, me;
    bool            in_stripes;
    pli_msg       **given, **came; /* [workers] */
    plait_error    *err;
} making;

static plait_status no_memory(const making *m) {
    return pli_fail(m->err, PLAIT_ENOMEM, "no memory to make a clock's filtered sums");
}

static plait_status list_sums(making *m) {
    const plait_job *job = m->job;
    m->mirror = pli_array((size_t)job->tables, sizeof *m->mirror);
    m->push = pli_calloc((size_t)job->tables, sizeof *m->push);
    m->given = pli_calloc((size_t)m->workers, sizeof *m->given);
    m->came = pli_calloc((size_t)m->workers, sizeof *m->came);
    if (m->mirror == NULL || m->push == NULL || m->given == NULL || m->came == NULL) return no_memory(m);
    for (int64_t t = 0; t < job->tables; t++) {
        const pli_topology_ops *ops = job->table[t]->ops;
        plait_table            *coded = ops->coded != NULL ? ops->coded(job->table[t]) : NULL;
        if (coded != NULL && pli_mirror_of(coded)->coded->in_stripes == m->in_stripes)
            m->mirror[m->n++] = pli_mirror_of(coded);
    }
    return PLAIT_OK;
}

static void free_messages(making *m) {
    for (int32_t w = 0; w < m->workers; w++) {
        if (m->given != NULL) pli_msg_free(&m->given[w]);
        if (m->came != NULL) pli_msg_free(&m->came[w]);
    }
}

static plait_status message_of(const making *m, pli_bytes *body, pli_msg **msg_out) {
    *msg_out = pli_msg_new((size_t)body->n);
    if (*msg_out == NULL) return no_memory(m);
    if (body->n > 0) memcpy(pli_msg_body(*msg_out), body->data, (size_t)body->n);
    body->n = 0;
    return PLAIT_OK;
}

/* Encoding and adding up cost about as much as a plain sum of the values. */
static void charge(const making *m) {
    for (int64_t i = 0; i < m->n; i++)
        pli_comm_work(m->job->comm, PLI_WORK_SUMS, (uint64_t)(m->mirror[i]->coded->rows));
}

static plait_status must_end(const making *m, int32_t worker, bool ends) {
    return ends ? PLAIT_OK
                : pli_fail(m->err, PLAIT_EFORMAT, "rank %d sent more of a clock's filtered sums than there are",
                           pli_job_rank_of(m->job, worker));
}

/* --- all that a worker has pushed --------------------------------------------------------------------------------- */

static plait_status put_parts(making *m, int32_t stripe, pli_msg **msg_out) {
    pli_bytes    body = { 0 };
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < m->n; i++)
        status = pli_coded_put(m->mirror[i]->coded, stripe, m->clock, &m->mirror[i]->first->own, &body, m->err);
    if (status >= 0) status = message_of(m, &body, msg_out);
    pli_bytes_free(&body);
    return status;
}

/* Adds worker w's message to the sums. */
static plait_status add_parts(making *m, int32_t w) {
    const unsigned char *at = pli_msg_body(m->came[w]), *end = at + m->came[w]->head.body_bytes;
    for (int64_t i = 0; i < m->n; i++)
        PLI_TRY(pli_coded_add(m->mirror[i]->coded, w, m->clock, &at, end, m->mirror[i]->first->values, &m->push[i],
                              m->err));
    return must_end(m, w, at == end);
}

static plait_status gather(making *m, pli_msg *mine) {
    plait_request *request = NULL;
    PLI_TRY(pli_comm_pieces_begin(m->job->comm, m->job->group, mine, m->came, &request));
    return plait_request_wait(&request);
}

/* Whole: everybody gets everything, and decodes it in the order of workers, its own part too. */
static plait_status sum_whole(making *m) {
    pli_msg *mine = NULL;
    PLI_TRY(put_parts(m, 0, &mine));
    PLI_TRY(gather(m, mine));
    for (int64_t i = 0; i < m->n; i++) {
        pli_sum *sum = m->mirror[i]->first;
        pli_updates_clear(m->mirror[i]->spec, sum->n, sum->values);
    }
    for (int32_t w = 0; w < m->workers; w++) PLI_TRY(add_parts(m, w));
    return PLAIT_OK;
}

/* --- in stripes --------------------------------------------------------------------------------------------------- */

/* What the others have for this worker's stripes is added to its own part, which lies there. */
static plait_status sum_own_stripes(making *m) {
    plait_request *request = NULL;
    for (int32_t w = 0; w < m->workers; w++)
        if (w != m->me) PLI_TRY(put_parts(m, w, &m->given[w]));
    PLI_TRY(pli_comm_exchange_begin(m->job->comm, m->job->group, m->given, m->came, &request));
    PLI_TRY(plait_request_wait(&request));
    for (int64_t i = 0; i < m->n; i++) {
        const pli_pending *own = &m->mirror[i]->first->own;
        m->push[i] = (pli_coded_push){ .touched = own->touched, .examples = own->touched ? own->examples : 0 };
    }
    for (int32_t w = 0; w < m->workers; w++)
        if (w != m->me) PLI_TRY(add_parts(m, w));
    return PLAIT_OK;
}

static plait_status put_sums(making *m, pli_msg **msg_out) {
    pli_bytes    body = { 0 };
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < m->n; i++)
        status = pli_coded_put_sum(m->mirror[i]->coded, m->clock, &m->push[i], m->mirror[i]->first->values, &body,
                                   m->err);
    if (status >= 0) status = message_of(m, &body, msg_out);
    pli_bytes_free(&body);
    return status;
}

static plait_status take_sums(making *m, int32_t owner) {
    const unsigned char *at = pli_msg_body(m->came[owner]), *end = at + m->came[owner]->head.body_bytes;
    for (int64_t i = 0; i < m->n; i++)
        PLI_TRY(pli_coded_take_sum(m->mirror[i]->coded, owner, m->clock, &m->push[i], &at, end,
                                   m->mirror[i]->first->values, m->err));
    return must_end(m, owner, at == end);
}

static plait_status sum_in_stripes(making *m) {
    pli_msg *mine = NULL;
    PLI_TRY(sum_own_stripes(m));
    PLI_TRY(put_sums(m, &mine));
    free_messages(m);
    PLI_TRY(gather(m, mine));
    for (int32_t w = 0; w < m->workers; w++) PLI_TRY(take_sums(m, w));
    return PLAIT_OK;
}

/* --- both --------------------------------------------------------------------------------------------------------- */

static plait_status make_listed(making *m) {
    PLI_TRY(list_sums(m));
    if (m->n == 0) return PLAIT_OK;
    charge(m);
    PLI_TRY(m->in_stripes ? sum_in_stripes(m) : sum_whole(m));
    for (int64_t i = 0; i < m->n; i++) pli_mirror_was_coded(m->mirror[i], &m->push[i]);
    return PLAIT_OK;
}

static plait_status make_sums(plait_job *job, bool in_stripes, plait_error *err) {
    making m = { .job = job, .clock = job->clock, .workers = job->layout.workers, .me = pli_job_me(job),
                 .in_stripes = in_stripes, .err = err };
    plait_status status = make_listed(&m);
    free_messages(&m);
    pli_free(m.given);
    pli_free(m.came);
    pli_free(m.mirror);
    pli_free(m.push);
    return status;
}

plait_status pli_coded_sums(plait_job *job, plait_error *err) {
    PLI_TRY(pli_buckets_begin_all(job, err));
    PLI_TRY(make_sums(job, true, err));
    return make_sums(job, false, err);
}
