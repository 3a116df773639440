/* Captures of tables: the cut, and the rows as they were at that moment, taken piece by piece. See state.h. */
#include <string.h>

#include "table/state/own.h"
#include "table/state/state.h"
#include "table/state/values.h"
#include "table/table.h"

enum { PIECES_AHEAD = 16 };

static pli_store *copy_of(const plait_table *table) { return &table->ops->copy(table)->store; }

/* --- who takes what ------------------------------------------------------------------------------------ */

typedef struct source {
    int32_t shard; /* -1: the worker's own copy */
    int64_t first; /* of the part's rows, by the numbers of their owner */
} source;

/* A piece that was asked for. */
typedef struct piece {
    pli_ticket ticket;
    bool       asked; /* else msg is there already */
    pli_msg   *msg;
    int64_t    bytes; /* how many it must have */
} piece;

struct pli_capture {
    plait_job          *job;
    plait_table *const *table; /* [n], a copy; of tables with mirrors that differ, the common ones (own.h) */
    int32_t             n;
    int64_t            *units;
    int64_t            *shard_rows; /* [n, servers] of shard s of table t, also for dense tables */
    pli_state_part     *part;       /* [parts] */
    source             *source;     /* [parts] */
    int64_t             parts, capacity, source_capacity;
    int64_t             next_part, next_row; /* the next piece to ask for */
    piece              *ahead;               /* [PIECES_AHEAD], a ring: `flying` of them, from `oldest` on */
    int32_t             oldest, flying;
    uint64_t            number; /* of the barrier that it begins behind: the same on all workers, and ascending */
    pli_snap          **snap; /* [n] of own copies */
    bool                released; /* servers know that everything was taken */
    bool                torn;     /* a server has not got the snapshot */
};

/* A shard's rows are taken by the worker on its server's rank, or by an heir of that worker. */
static int32_t taker_of(const plait_job *job, const pli_placement *placement, int32_t shard) {
    const int32_t server = pli_placement_rank(placement, shard) - placement->first_rank, workers = job->layout.workers;
    return pli_heir_of(pli_job_absentees(job), workers, job->layout.spares, server % workers,
                       (uint64_t)server);
}

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a capture of tables");
}

static plait_status add_part(pli_capture *c, const pli_state_part *part, const source *from, plait_error *err) {
    if (part->rows == 0) return PLAIT_OK;
    if (!pli_grow((void **)&c->part, &c->capacity, c->parts + 1, sizeof *c->part) ||
        !pli_grow((void **)&c->source, &c->source_capacity, c->parts + 1, sizeof *c->source))
        return no_memory(err);
    c->part[c->parts] = *part;
    c->source[c->parts++] = *from;
    return PLAIT_OK;
}

static int64_t rows_of_shard(const pli_capture *c, int32_t table, int32_t shard) {
    return c->shard_rows[table * c->job->layout.servers + shard];
}

static plait_status add_served(pli_capture *c, int32_t t, int32_t array, plait_error *err) {
    const plait_job     *job = c->job;
    const pli_spec      *spec = &c->table[t]->spec;
    const pli_placement *placement = &spec->placement;
    int64_t              first = 0, all = 0;
    for (int32_t s = 0; s < placement->shards; s++) all += rows_of_shard(c, t, s);
    for (int32_t s = 0; s < placement->shards; s++) {
        const pli_state_part part = {
            .table = t, .array = array, .first = first, .rows = rows_of_shard(c, t, s), .all = all
        };
        if (taker_of(job, placement, s) == pli_job_me(job))
            PLI_TRY(add_part(c, &part, &(source){ .shard = s, .first = spec->rows > 0 ? first : 0 }, err));
        first += part.rows;
    }
    return PLAIT_OK;
}

static plait_status add_copied(pli_capture *c, int32_t t, int32_t array, plait_error *err) {
    const pli_snap      *snap = c->snap[t];
    const pli_state_part part = { .table = t,
                                  .array = array,
                                  .first = snap->first,
                                  .rows = snap->rows,
                                  .all = copy_of(c->table[t])->rows };
    return add_part(c, &part, &(source){ .shard = -1, .first = snap->first }, err);
}

static plait_status lay_out(pli_capture *c, plait_error *err) {
    for (int32_t t = 0; t < c->n; t++) {
        int32_t arrays[PLI_STATE_ARRAYS];
        int32_t n = pli_state_arrays(c->table[t], arrays);
        for (int32_t i = 0; i < n; i++)
            PLI_TRY(c->snap[t] != NULL ? add_copied(c, t, arrays[i], err) : add_served(c, t, arrays[i], err));
    }
    return PLAIT_OK;
}

/* --- the cut --------------------------------------------------------------------------------------------- */

static plait_status note_rows(pli_capture *c, const pli_msg *reply, plait_error *err) {
    pli_wire_snap snap;
    if (reply->head.body_bytes % sizeof snap != 0)
        return pli_fail(err, PLAIT_EFORMAT, "rank %d answered a snapshot wrongly", reply->head.src);
    for (uint64_t at = 0; at < reply->head.body_bytes; at += sizeof snap) {
        memcpy(&snap, pli_at_const(pli_msg_body(reply), (int64_t)at), sizeof snap);
        for (int32_t t = 0; t < c->n; t++) {
            const pli_spec *spec = &c->table[t]->spec;
            int32_t         shard = pli_placement_shard_at(&spec->placement, reply->head.src);
            int64_t         first, rows = snap.rows;
            if (pli_state_is_copied(c->table[t]) || (uint32_t)spec->id != snap.table || shard < 0) continue;
            if (spec->rows > 0) pli_placement_range(&spec->placement, shard, &first, &rows);
            if (snap.rows != rows || rows < 0)
                return pli_fail(err, PLAIT_EFORMAT, "table %s: rank %d has %lld rows", spec->name, reply->head.src,
                                (long long)snap.rows);
            c->shard_rows[t * c->job->layout.servers + shard] = rows;
            c->units[t] = snap.units;
        }
    }
    return PLAIT_OK;
}

/* With replicas, the one that serves now may have been made after the cut; then it says so. */
static bool tears(pli_capture *c, const pli_ticket *ticket) {
    c->torn = c->torn || (ticket->failure.code == PLAIT_EPEER && pli_client_has_replicas(&c->job->client));
    return c->torn;
}

static plait_status snap_servers(pli_capture *c, plait_error *err) {
    plait_job   *job = c->job;
    pli_ticket   ticket;
    pli_exchange x;
    const uint64_t number = c->number;
    plait_status status = PLAIT_OK;
    pli_exchange_begin(&x, job, &ticket);
    for (int32_t s = 0; status >= 0 && s < job->layout.servers; s++) {
        if (!job->client.link[s].used) continue;
        pli_msg *msg = pli_msg_new(sizeof number);
        if (msg != NULL) memcpy(pli_msg_body(msg), &number, sizeof number);
        status = pli_client_send(&job->client, x.now_ns, s, PLI_SNAP, msg, &ticket, &x.out, err);
    }
    status = pli_exchange_wait(&x, status, "a snapshot of the tables", err);
    if (status < 0 && tears(c, &ticket)) status = PLAIT_OK;
    for (const pli_msg *reply = ticket.replies; status >= 0 && !c->torn && reply != NULL; reply = reply->next)
        status = note_rows(c, reply, err);
    pli_ticket_free(&ticket);
    return status;
}

static plait_status snap_copies(pli_capture *c, plait_error *err) {
    for (int32_t t = 0; t < c->n; t++) {
        int64_t first, rows;
        if (!pli_state_is_copied(c->table[t])) continue;
        pli_store *store = copy_of(c->table[t]);
        pli_state_share(c->table[t], store->rows, &first, &rows);
        const plait_status begun = pli_snap_begin(store, first, rows, &c->snap[t], err);
        if (c->table[t]->spec.sharded) PLI_TRY(c->table[t]->ops->keep_slices(c->table[t], c->snap[t], err));
        PLI_TRY(begun);
        c->units[t] = c->snap[t]->units;
    }
    return PLAIT_OK;
}

static plait_status begin(pli_capture *c, int32_t n, plait_table *const *tables, plait_error *err) {
    plait_table **copy = pli_calloc((size_t)n, sizeof(plait_table *));
    c->table = copy;
    c->units = pli_calloc((size_t)n, sizeof *c->units);
    c->shard_rows = pli_calloc((size_t)n * (size_t)c->job->layout.servers, sizeof *c->shard_rows);
    c->snap = pli_calloc((size_t)n, sizeof(pli_snap *));
    c->ahead = pli_calloc(PIECES_AHEAD, sizeof *c->ahead);
    if (copy == NULL || c->units == NULL || c->shard_rows == NULL || c->snap == NULL || c->ahead == NULL)
        return no_memory(err);
    for (int32_t t = 0; t < n; t++) copy[t] = pli_own_common(tables[t]);
    c->n = n;
    PLI_TRY(snap_servers(c, err));
    PLI_TRY(snap_copies(c, err));
    return lay_out(c, err);
}

plait_status pli_capture_begin(plait_job *job, int32_t n, plait_table *const *tables, pli_capture **capture_out,
                               plait_error *err) {
    for (int32_t t = 0; t < n; t++) PLI_TRY(pli_state_check(tables[t], err));
    PLI_TRY(pli_job_pass(job));
    const bool some_may_lack = (job->group != NULL && job->layout.replicas > 1) || pli_job_away(job) > 0;
    if (some_may_lack) PLI_TRY(pli_job_meet(job)); /* so all know who is absent */
    pli_capture *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return no_memory(err);
    c->job = job;
    c->number = job->client.barriers;
    job->captures++;
    pli_comm_enter(job->comm, "a capture of tables");
    plait_status status = pli_comm_leave(job->comm, begin(c, n, tables, err));
    if (status < 0) pli_capture_end(&c);
    *capture_out = c;
    return status;
}

const pli_state_part *pli_capture_parts(const pli_capture *capture, int64_t *n_out) {
    *n_out = capture->parts;
    return capture->part;
}

const pli_state_part *pli_capture_follow(const pli_capture *capture, pli_capture_place *place, uint64_t bytes,
                                         int64_t *first_out, int64_t *rows_out) {
    const pli_state_part *part = &capture->part[place->part];
    *first_out = part->first + place->row;
    *rows_out = (int64_t)bytes / pli_state_row_bytes(&capture->table[part->table]->spec, part->array);
    place->row += *rows_out;
    if (place->row == part->rows) *place = (pli_capture_place){ .part = place->part + 1 };
    return part;
}

int64_t pli_capture_units(const pli_capture *capture, int32_t table) { return capture->units[table]; }

/* --- pieces ----------------------------------------------------------------------------------------------- */

static plait_status ask(pli_capture *c, piece *p, const pli_wire_state *state, int32_t server, plait_error *err) {
    pli_exchange x;
    pli_msg     *msg = pli_msg_new(sizeof *state);
    if (msg != NULL) memcpy(pli_msg_body(msg), state, sizeof *state);
    p->asked = true;
    pli_exchange_begin(&x, c->job, &p->ticket);
    return pli_exchange_send(
        &x, pli_client_send(&c->job->client, x.now_ns, server, PLI_PIECE, msg, &p->ticket, &x.out, err));
}

/* Gets the next piece: asks a server for it, or takes it from the copy. */
static plait_status ask_next(pli_capture *c, plait_error *err) {
    const pli_state_part *part = &c->part[c->next_part];
    const source         *from = &c->source[c->next_part];
    plait_table          *table = c->table[part->table];
    const pli_spec       *spec = &table->spec;
    piece                *p = &c->ahead[(c->oldest + c->flying) % PIECES_AHEAD];
    const int64_t         rest = part->rows - c->next_row, most = pli_snap_piece_rows(spec);
    const int64_t         n = rest < most ? rest : most, first = from->first + c->next_row;
    *p = (piece){ .bytes = n * pli_state_row_bytes(spec, part->array) };
    c->flying++;
    c->next_row += n;
    if (c->next_row == part->rows) {
        c->next_part++;
        c->next_row = 0;
    }
    if (from->shard < 0) return pli_snap_take(c->snap[part->table], part->array, first, n, &p->msg, err);
    const pli_wire_state state = {
        .table = (uint32_t)spec->id, .array = (uint32_t)part->array, .first = first, .n = n
    };
    return ask(c, p, &state, pli_placement_rank(&spec->placement, from->shard) - spec->placement.first_rank, err);
}

static plait_status take_answer(piece *p, plait_error *err) {
    if (p->ticket.failure.code < 0) {
        *err = p->ticket.failure;
        return err->code;
    }
    p->msg = p->ticket.replies;
    p->ticket.replies = NULL;
    if (p->msg != NULL && p->msg->head.body_bytes == (uint64_t)p->bytes) return PLAIT_OK;
    pli_msg_free(&p->msg);
    return pli_fail(err, PLAIT_EFORMAT, "a piece of a snapshot came with the wrong size");
}

/* Receives the oldest piece, if it has come (or wait is set). */
static plait_status receive(pli_capture *c, bool wait, bool *there_out, plait_error *err) {
    piece *p = &c->ahead[c->oldest];
    *there_out = !p->asked || wait || pli_ticket_done(&p->ticket);
    if (!p->asked || !*there_out) return PLAIT_OK;
    plait_status status = pli_job_wait(c->job, &p->ticket, "a piece of a snapshot", err); /* unlinks the ticket */
    p->asked = false;
    if (status < 0 && tears(c, &p->ticket)) {
        pli_ticket_free(&p->ticket);
        *there_out = false;
        return PLAIT_OK;
    }
    if (status >= 0) status = take_answer(p, err);
    pli_ticket_free(&p->ticket);
    return status;
}

static plait_status pump(pli_capture *c, int64_t bytes, bool wait, pli_capture_take_fn *take, void *user,
                         plait_error *err) {
    bool there = !c->torn;
    while (there && bytes > 0) {
        while (c->flying < PIECES_AHEAD && c->next_part < c->parts) PLI_TRY(ask_next(c, err));
        if (c->flying == 0) return PLAIT_OK;
        PLI_TRY(receive(c, wait, &there, err));
        if (!there) return PLAIT_OK;
        piece *p = &c->ahead[c->oldest];
        bytes -= p->bytes;
        take(user, p->msg);
        p->msg = NULL;
        c->oldest = (c->oldest + 1) % PIECES_AHEAD;
        c->flying--;
    }
    return PLAIT_OK;
}

static bool takes_from(const pli_capture *c, int32_t server) {
    for (int64_t i = 0; i < c->parts; i++) {
        const pli_placement *placement = &c->table[c->part[i].table]->spec.placement;
        const int32_t        shard = c->source[i].shard;
        if (shard >= 0 && pli_placement_rank(placement, shard) - placement->first_rank == server) return true;
    }
    return false;
}

/* Everything was taken: the other replicas, from which nobody took the snapshot, need not keep it. */
static plait_status release(pli_capture *c, plait_error *err) {
    plait_job           *job = c->job;
    const pli_wire_taken taken = { .number = c->number };
    plait_status         status = PLAIT_OK;
    uint64_t             now_ns;
    pli_out              out;
    if (c->released || !pli_client_has_replicas(&job->client)) return PLAIT_OK;
    c->released = true;
    pli_port_enter(job->client_port, &now_ns, &out);
    for (int32_t s = 0; status >= 0 && s < job->layout.servers; s++) {
        if (!takes_from(c, s)) continue;
        pli_msg *msg = pli_msg_new(sizeof taken);
        if (msg != NULL) memcpy(pli_msg_body(msg), &taken, sizeof taken);
        status = pli_client_send(&job->client, now_ns, s, PLI_SNAP, msg, NULL, &out, err);
    }
    pli_port_leave(job->client_port, &out);
    return status;
}

plait_status pli_capture_pump(pli_capture *capture, int64_t bytes, bool wait, pli_capture_take_fn *take, void *user,
                              bool *done_out, plait_error *err) {
    pli_comm_enter(capture->job->comm, "a capture of tables");
    plait_status status = pump(capture, bytes, wait, take, user, err);
    *done_out = status >= 0 && !capture->torn && capture->flying == 0 && capture->next_part == capture->parts;
    if (*done_out) status = release(capture, err);
    return pli_comm_leave(capture->job->comm, status);
}

bool pli_capture_is_torn(const pli_capture *capture) { return capture->torn; }

void pli_capture_end(pli_capture **capture_ptr) {
    pli_capture *c = *capture_ptr;
    *capture_ptr = NULL;
    if (c == NULL) return;
    c->job->captures--;
    for (int32_t i = 0; c->ahead != NULL && i < PIECES_AHEAD; i++) {
        piece *p = &c->ahead[i];
        if (p->asked) {
            pli_job_drop_ticket(c->job, &p->ticket);
            pli_ticket_free(&p->ticket);
        }
        pli_msg_free(&p->msg);
    }
    for (int32_t t = 0; c->snap != NULL && t < c->n; t++) pli_snap_end(&c->snap[t]);
    pli_free(c->ahead);
    pli_free((void *)c->table);
    pli_free(c->units);
    pli_free(c->shard_rows);
    pli_free(c->snap);
    pli_free(c->part);
    pli_free(c->source);
    pli_free(c);
}
