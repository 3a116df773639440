/* See agreed_clock.h. */
#include "table/topology/agreed_clock.h"

#include <stdatomic.h>
#include <string.h>

#include "comm/agreed_run.h"
#include "comm/reduce.h"
#include "table/copies/mirror.h"
#include "table/events.h"
#include "table/topology/agreed_coded.h"
#include "table/topology/agreed_recut.h"
#include "table/topology/agreed_slices.h"

plait_status pli_agreed_clock_open(plait_job *job, bool clocks, plait_error *err) {
    job->agreed_clocks = job->agreed_clocks || clocks;
    return job->agreed != NULL ? PLAIT_OK : pli_agreed_run_open(job->comm, job->group, &job->agreed, err);
}

void pli_agreed_clock_close(plait_job *job) { pli_agreed_run_close(&job->agreed); }

/* --- the sums ----------------------------------------------------------------------------------------------------- */

/* NULL: the table has no part in this clock's sums. */
static pli_mirror *mirror_at(const plait_job *job, int64_t table) {
    return pli_table_held(job->table[table]);
}

/* Takes the worker's part of a table's sum, and says how it is to be made: by one more of the parts, unless it is made
 * of filtered ones (agreed_coded.h). */
static plait_status take(const plait_job *job, int64_t table, pli_agreed_part *part, int64_t *n, plait_error *err) {
    pli_mirror     *mirror = mirror_at(job, table);
    const pli_spec *spec = mirror->spec;
    const bool      flies = pli_mirror_may_start(mirror, job->clock + 1, job->clock);
    pli_sum        *sum;
    mirror->form = pli_mirror_form(mirror, flies);
    PLI_TRY(pli_mirror_take(mirror, job->clock, mirror->form, flies, &sum, err));
    if (sum->to_code) return PLAIT_OK;
    ++*n;
    if (pli_sum_is_gathered(sum->form)) {
        *part = (pli_agreed_part){ .list = sum->list, .piece = sum->piece };
        return PLAIT_OK;
    }
    *part = (pli_agreed_part){ .type = spec->exact ? pli_cells_of(spec->type) : spec->type,
                               .op = spec->combine->reduce, .n = sum->n, .given = sum->values,
                               .spares_bytes = job->table[table]->spares_bytes };
    return pli_mirror_result(mirror, &part->values, err);
}

static plait_status take_all(const plait_job *job, pli_agreed_part *parts, int64_t *n, plait_error *err) {
    for (int64_t t = 0; t < job->tables; t++)
        if (mirror_at(job, t) != NULL) PLI_TRY(take(job, t, &parts[*n], n, err));
    return PLAIT_OK;
}

/* The same of tables without mirrors that are summed. */
static plait_status give_all(const plait_job *job, pli_agreed_part *parts, int64_t *n, plait_error *err) {
    plait_status status = PLAIT_OK;
    for (int64_t t = 0; status == PLAIT_OK && t < job->tables; t++)
        if (job->table[t]->ops->give != NULL) status = job->table[t]->ops->give(job->table[t], &parts[*n], n, err);
    return status;
}

static plait_status gave_all(const plait_job *job, plait_status status, plait_error *err) {
    plait_status ended = status;
    for (int64_t t = 0; t < job->tables; t++)
        if (job->table[t]->ops->gave != NULL && job->table[t]->ops->gave(job->table[t], status, err) < 0)
            ended = err->code;
    return ended;
}

static plait_status put_back(const plait_job *job, plait_error *err) {
    plait_status status = PLAIT_OK;
    for (int64_t t = 0; t < job->tables; t++)
        if (mirror_at(job, t) != NULL && pli_mirror_put_back(mirror_at(job, t), err) < 0) status = err->code;
    return status;
}

/* Applies the sums that the next clock could not start without. */
static plait_status apply(const plait_job *job, pli_mirror *mirror, plait_error *err) {
    if (mirror->keepers != NULL) return PLAIT_OK; /* agreed_slices.h: together, and last */
    while (mirror->first != NULL && !pli_mirror_may_start(mirror, job->clock + 1, mirror->first->clock)) {
        const bool    dense = mirror->first->form == PLI_SUM_DENSE;
        const int64_t n = mirror->first->n;
        PLI_TRY(pli_mirror_apply(mirror, err));
        pli_comm_work(job->comm, PLI_WORK_VALUES, (uint64_t)(dense ? n : mirror->keys * mirror->spec->cols));
    }
    return PLAIT_OK;
}

static plait_status made_all(const plait_job *job, plait_error *err) {
    for (int64_t t = 0; t < job->tables; t++)
        if (mirror_at(job, t) != NULL) PLI_TRY(pli_mirror_made(mirror_at(job, t), err));
    return PLAIT_OK;
}

static plait_status apply_all(plait_job *job, plait_error *err) {
    for (int64_t t = 0; t < job->tables; t++) {
        plait_table *table = job->table[t];
        if (mirror_at(job, t) != NULL) PLI_TRY(apply(job, mirror_at(job, t), err));
        if (table->ops->ended != NULL) table->ops->ended(table);
    }
    return pli_agreed_slices_apply(job, err);
}

/* Makes the sums, and applies none. */
static plait_status make_sums(plait_job *job, pli_agreed_part *parts, plait_error *err) {
    pli_agreed_coded coded = { 0 };
    pli_agreed_recut recut = { 0 };
    int64_t          n = 0;
    plait_status     status = pli_agreed_coded_cut(job, err);
    if (status >= 0) status = take_all(job, parts, &n, err);
    if (status >= 0) status = give_all(job, parts, &n, err);
    if (status == PLAIT_STAND_IN) status = pli_agreed_run_step(job->agreed, 0, parts, err); /* no step ends now */
    else if (status >= 0) status = pli_agreed_coded_begin(&coded, job, err);
    if (status == PLAIT_OK) status = pli_agreed_recut_begin(&recut, job, err);
    if (status == PLAIT_OK) {
        n += pli_agreed_coded_parts(&coded, parts + n);
        n += pli_agreed_recut_parts(&recut, parts + n);
        status = pli_agreed_run_step(job->agreed, n, parts, err);
    }
    if (status == PLAIT_STAND_IN && put_back(job, err) < 0) status = err->code;
    if (status == PLAIT_OK) status = pli_agreed_coded_end(&coded);
    if (status == PLAIT_OK) status = pli_agreed_recut_end(&recut, err);
    if (status == PLAIT_OK) status = made_all(job, err);
    status = gave_all(job, status, err);
    pli_agreed_coded_close(&coded);
    pli_agreed_recut_close(&recut);
    return status;
}

/* --- who has what of the dead ------------------------------------------------------------------------------------- */

/* The client answers for the worker who holds what (pli_client_holder), and whether it is in the middle of a clock. */

/* Has a collective since the last clock left out a worker for which this one does not stand in yet? All workers know
 * the same of it, as they have ended the same steps. */
static bool has_lost_one(const plait_job *job) {
    const uint8_t *next = pli_agreed_run_next(job->agreed);
    for (int32_t w = 0; w < job->layout.workers; w++)
        if (next[w] && !job->client.next[w]) return true;
    return false;
}

static plait_status set_aside(const plait_job *job) {
    for (int64_t t = 0; t < job->tables; t++)
        if (mirror_at(job, t) != NULL) pli_mirror_set_aside(mirror_at(job, t));
    return PLAIT_STAND_IN;
}

static plait_status try_sums(plait_job *job, plait_error *err) {
    pli_agreed_part *parts = pli_calloc((size_t)job->tables + PLI_AGREED_CODED_PARTS + 1, sizeof *parts);
    if (parts == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of a clock");
    const plait_status status = has_lost_one(job) ? set_aside(job) : make_sums(job, parts, err);
    pli_free(parts);
    return status;
}

/* The client hears of deaths from other threads. */
static void begin_standing_in(plait_job *job) {
    pli_client    *client = &job->client;
    const uint8_t *next = pli_agreed_run_next(job->agreed);
    int32_t        highest = 0;
    uint64_t       now_ns;
    pli_out        out;
    pli_port_enter(job->client_port, &now_ns, &out);
    client->ending = true;
    for (int32_t w = 0; w < job->layout.workers; w++) client->next[w] = client->replaced[w] || next[w];
    for (int32_t w = 0; w < job->layout.workers; w++)
        if (client->next[w] && !client->replaced[w]) highest = w;
    for (int64_t t = 0; t < job->tables; t++)
        if (mirror_at(job, t) != NULL) pli_mirror_stand_in(mirror_at(job, t), highest);
    pli_raise(client->sink, client->rank, false, PLI_EVENT_STAND);
    pli_port_leave(job->client_port, &out);
}

static void end_clock(plait_job *job) {
    pli_client *client = &job->client;
    uint64_t    now_ns;
    pli_out     out;
    pli_port_enter(job->client_port, &now_ns, &out);
    pli_raise_clock(client->sink, client->rank, client->clock);
    pli_client_keep_events(client);
    client->ending = false;
    client->clock++;
    pli_port_leave(job->client_port, &out);
}

static plait_status end_sums(plait_job *job, plait_error *err) {
    pli_client *client = &job->client;
    if (client->ending) memcpy(client->replaced, client->next, (size_t)job->layout.workers);
    plait_status status = try_sums(job, err);
    if (status == PLAIT_OK) status = apply_all(job, err);
    if (status < 0) return status;
    if (status == PLAIT_STAND_IN) begin_standing_in(job);
    else end_clock(job);
    return status;
}

/* --- beside tables on servers ------------------------------------------------------------------------------------- */

/* The worker's part of the clock goes to the servers; or what it has added since in a dead one's stead, which servers
 * must not take for its own. */
static plait_status give_servers(plait_job *job, plait_error *err) {
    pli_client *client = &job->client;
    const size_t workers = (size_t)job->layout.workers;
    if (!client->ending) return pli_job_push(job, NULL, PLI_CLOCK, err);
    if (memcmp(client->replaced, client->next, workers) == 0) return PLAIT_OK;
    if (pli_client_has_clocks(client)) return pli_job_give_stead(job, err);
    memcpy(client->replaced, client->next, workers);
    return PLAIT_OK;
}

static plait_status meet(plait_job *job, plait_error *err) {
    pli_agreed_run_tell(job->agreed, job->client.next);
    const plait_status status = try_sums(job, err);
    if (status < 0) return status;
    PLI_TRY(give_servers(job, err));
    job->sums_made = status == PLAIT_OK;
    if (status == PLAIT_STAND_IN) begin_standing_in(job);
    return status;
}

static plait_status end_both(plait_job *job, plait_error *err) {
    plait_status status = PLAIT_OK;
    if (job->sums_made) status = give_servers(job, err);
    else status = meet(job, err);
    if (status != PLAIT_OK) return status;
    status = pli_job_wait_until_safe(job, err);
    if (status != PLAIT_OK) return status;
    job->sums_made = false;
    return apply_all(job, err);
}

plait_status pli_agreed_clock_end(plait_job *job, plait_error *err) {
    return job->client.n_used > 0 ? end_both(job, err) : end_sums(job, err);
}

/* --- clocks that are no steps ------------------------------------------------------------------------------------- */

plait_status pli_agreed_meet(plait_job *job, plait_error *err) {
    pli_agreed_part *parts = pli_calloc((size_t)job->tables + 1, sizeof *parts);
    plait_status     status = PLAIT_STAND_IN;
    if (parts == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to go on without the dead");
    while (status == PLAIT_STAND_IN) {
        int64_t n = 0;
        status = give_all(job, parts, &n, err);
        if (status == PLAIT_STAND_IN) n = 0; /* another has died */
        if (status >= 0) status = pli_agreed_run_step(job->agreed, n, parts, err);
        status = gave_all(job, status, err);
    }
    pli_free(parts);
    return status;
}

/* --- the job's own collectives ------------------------------------------------------------------------------------ */

/* Lays what has come side by side in one message. */
static plait_status lay(const plait_job *job, pli_msg *const *piece, pli_carried *came, pli_msg **held_out,
                        plait_error *err) {
    size_t bytes = 0;
    for (int32_t w = 0; w < job->layout.workers; w++) bytes += (size_t)pli_pad8(piece[w]->head.body_bytes);
    *held_out = pli_msg_new(bytes);
    if (*held_out == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a collective");
    unsigned char *at = pli_msg_body(*held_out);
    for (int32_t w = 0; w < job->layout.workers; w++) {
        const size_t n = piece[w]->head.body_bytes;
        came[w] = (pli_carried){ n > 0 ? at : NULL, n };
        if (n > 0) memcpy(at, pli_msg_body(piece[w]), n);
        at += pli_pad8(n);
    }
    return PLAIT_OK;
}

plait_status pli_agreed_gather(plait_job *job, const void *mine, size_t bytes, pli_carried *came, pli_msg **held_out,
                               plait_error *err) {
    const int32_t         workers = job->layout.workers;
    pli_msg             **piece = pli_calloc((size_t)workers, sizeof *piece);
    const pli_agreed_part part = { .list = pli_msg_new(bytes), .piece = piece };
    pli_msg              *list = part.list;
    plait_status          status = PLAIT_STAND_IN;
    if (piece == NULL || list == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for a collective");
    if (status >= 0) memcpy(pli_msg_body(list), mine, bytes);
    while (status == PLAIT_STAND_IN) {
        status = pli_agreed_run_step(job->agreed, 1, &part, err);
        if (status == PLAIT_STAND_IN && !job->agreed_clocks && pli_agreed_meet(job, err) < 0) status = err->code;
    }
    if (status >= 0) status = lay(job, piece, came, held_out, err);
    for (int32_t w = 0; piece != NULL && w < workers; w++) pli_msg_free(&piece[w]);
    pli_free(piece);
    pli_msg_free(&list);
    return status;
}
