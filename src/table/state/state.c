/* Captures of tables, and rows put back. See state.h. */
#include "table/state/state.h"

#include <stdio.h>
#include <string.h>

#include "table/copies/replica.h"
#include "table/state/values.h"
#include "table/table.h"

enum { PIECES_AHEAD = 16, WHAT_BYTES = 128 };

/* --- what a table has ------------------------------------------------------------------------------------------- */

plait_status pli_state_check(const plait_table *table, plait_error *err) {
    const pli_spec *spec = &table->spec;
    const char     *why = NULL, *nearest = "consistency bsp";
    if (table->averaged != NULL || table->local != NULL)
        why = "each worker has a copy of its own";
    else if (table->hogwild != NULL)
        why = "its workers write the values without a lock, so that there is no moment at which they are whole",
        nearest = "topology ps";
    else if (spec->sharded)
        why = "its rule's state lies in slices", nearest = "--optimizer-state whole";
    else if (table->served != NULL && pli_filters_have(&table->served->filters, PLAIT_ROUNDED))
        why = "its filters keep what rounding has left of each worker's updates",
        nearest = "a filter without loss, as zstd";
    if (why == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED, "a checkpoint of table %s under %s x %s is refused: %s; nearest is %s",
                    spec->name, spec->topology.text, spec->consistency, why, nearest);
}

int32_t pli_state_arrays(const plait_table *table, int32_t arrays[PLI_STATE_ARRAYS]) {
    int32_t n = 0;
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++)
        if (pli_state_row_bytes(&table->spec, a) > 0) arrays[n++] = a;
    return n;
}

const char *pli_state_name(const plait_table *table, int32_t array, char text[64]) {
    const plait_rule *rule = table->spec.rule.ops;
    const int32_t     slot = array - PLI_STATE_SLOT;
    if (array == PLI_STATE_VALUES) return "values";
    if (array == PLI_STATE_PAID) return "paid";
    if (array == PLI_STATE_KEYS) return "keys";
    if (rule->slot_name[slot] != NULL)
        snprintf(text, 64, "slot.%.40s", rule->slot_name[slot]);
    else
        snprintf(text, 64, "slot.%d", (int)slot);
    return text;
}

int64_t pli_state_bytes(const plait_table *table, int32_t array, plait_type *type_out) {
    *type_out = array >= PLI_STATE_PAID ? PLAIT_I64 : table->spec.type;
    return pli_state_row_bytes(&table->spec, array);
}

bool pli_state_is_copied(const plait_table *table) { return table->replica != NULL; }

void pli_state_share(const plait_comm *comm, int64_t rows, int64_t *first_out, int64_t *n_out) {
    int32_t me, workers;
    pli_comm_living(comm, &me, &workers);
    *first_out = rows / workers * me + (me < rows % workers ? me : rows % workers);
    *n_out = rows / workers + (me < rows % workers);
}

/* --- taking: who takes what ------------------------------------------------------------------------------------ */

typedef struct source {
    int32_t shard; /* -1: of the worker's copy */
    int64_t first; /* of the part's rows, as who has them numbers them */
} source;

/* A piece that was asked for. */
typedef struct piece {
    pli_ticket ticket;
    bool       asked; /* else msg is there already */
    pli_msg   *msg;
    int64_t    bytes; /* that it must have */
} piece;

struct pli_capture {
    plait_job          *job;
    plait_table *const *table; /* [n], a copy */
    int32_t             n;
    int64_t            *units;
    int64_t            *shard_rows; /* [n, servers] of shard s of table t; of dense ones too */
    pli_state_part     *part;       /* [parts] */
    source             *source;     /* [parts] */
    int64_t             parts, capacity, source_capacity;
    int64_t             next_part, next_row; /* the next piece to ask for */
    piece              *ahead;               /* [PIECES_AHEAD], a ring: from `oldest`, `flying` of them */
    int32_t             oldest, flying;
    pli_snap          **snap; /* [n] of copies */
    bool                released; /* servers know that all has come */
    bool                torn;     /* a server has not got the snapshot */
};

/* A shard's rows go to the worker that lives with it, or to an heir of that. */
static int32_t taker_of(const plait_job *job, const pli_placement *placement, int32_t shard) {
    const int32_t server = pli_placement_rank(placement, shard) - placement->first_rank, workers = job->layout.workers;
    return pli_heir_of(pli_comm_absentees(job->comm), workers, job->layout.spares, server % workers,
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
        if (taker_of(job, placement, s) == plait_comm_rank(job->comm))
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
                                  .all = c->table[t]->replica->shard.store.rows };
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

/* --- taking: the cut --------------------------------------------------------------------------------------------- */

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
            if (c->table[t]->served == NULL || (uint32_t)spec->id != snap.table || shard < 0) continue;
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

/* Where servers have copies one that serves now may have been made behind the cut, and says so. */
static bool tears(pli_capture *c, const pli_ticket *ticket) {
    c->torn = c->torn || (ticket->failure.code == PLAIT_EPEER && pli_client_has_copies(&c->job->client));
    return c->torn;
}

static plait_status snap_servers(pli_capture *c, plait_error *err) {
    plait_job   *job = c->job;
    pli_ticket   ticket;
    pli_exchange x;
    uint64_t     number = ++job->snaps;
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
        if (c->table[t]->replica == NULL) continue;
        pli_store *store = &c->table[t]->replica->shard.store;
        pli_state_share(c->job->comm, store->rows, &first, &rows);
        PLI_TRY(pli_snap_begin(store, first, rows, &c->snap[t], err));
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
    memcpy(copy, tables, (size_t)n * sizeof(plait_table *));
    c->n = n;
    PLI_TRY(snap_servers(c, err));
    PLI_TRY(snap_copies(c, err));
    return lay_out(c, err);
}

plait_status pli_capture_begin(plait_job *job, int32_t n, plait_table *const *tables, pli_capture **capture_out,
                               plait_error *err) {
    for (int32_t t = 0; t < n; t++) PLI_TRY(pli_state_check(tables[t], err));
    PLI_TRY(plait_job_barrier(job));
    pli_capture *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return no_memory(err);
    c->job = job;
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

int64_t pli_capture_units(const pli_capture *capture, int32_t table) { return capture->units[table]; }

/* --- taking: pieces ----------------------------------------------------------------------------------------------- */

static plait_status ask(pli_capture *c, piece *p, const pli_wire_state *state, int32_t server, plait_error *err) {
    pli_exchange x;
    pli_msg     *msg = pli_msg_new(sizeof *state);
    if (msg != NULL) memcpy(pli_msg_body(msg), state, sizeof *state);
    p->asked = true;
    pli_exchange_begin(&x, c->job, &p->ticket);
    return pli_exchange_send(
        &x, pli_client_send(&c->job->client, x.now_ns, server, PLI_PIECE, msg, &p->ticket, &x.out, err));
}

/* The next piece: asked for, or taken from the copy. */
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

/* The oldest piece, if it has come (or is waited for). */
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

/* All has come: the other copies, of which nobody has taken it, need not keep it. */
static plait_status release(pli_capture *c, plait_error *err) {
    plait_job           *job = c->job;
    const pli_wire_taken taken = { .number = job->snaps };
    plait_status         status = PLAIT_OK;
    uint64_t             now_ns;
    pli_out              out;
    if (c->released || !pli_client_has_copies(&job->client)) return PLAIT_OK;
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

/* --- putting back ------------------------------------------------------------------------------------------------- */

static pli_msg *make_restore(const pli_wire_state *state, const void *keys, size_t key_bytes, const void *rows,
                             size_t bytes) {
    pli_msg *msg = pli_msg_new(sizeof *state + key_bytes + bytes);
    if (msg == NULL) return NULL;
    unsigned char *body = pli_msg_body(msg);
    memcpy(body, state, sizeof *state);
    if (key_bytes > 0) memcpy(body + sizeof *state, keys, key_bytes);
    if (bytes > 0) memcpy(body + sizeof *state + key_bytes, rows, bytes);
    return msg;
}

typedef struct sending {
    plait_table *table;
    pli_ticket   ticket;
    pli_exchange x;
    uint16_t    *shard_of; /* [n] of keys; NULL: a range, or units */
    plait_error *err;
} sending;

static plait_status send_to(sending *s, int32_t shard, pli_msg *msg) {
    const pli_placement *placement = &s->table->spec.placement;
    return pli_client_send(&s->table->job->client, s->x.now_ns,
                           pli_placement_rank(placement, shard) - placement->first_rank, PLI_RESTORE, msg, &s->ticket,
                           &s->x.out, s->err);
}

static plait_status send_range(sending *s, int32_t array, int64_t first, int64_t n, const void *rows) {
    const pli_placement *placement = &s->table->spec.placement;
    const int64_t        row_bytes = pli_state_row_bytes(&s->table->spec, array);
    for (int32_t shard = 0; shard < placement->shards; shard++) {
        int64_t begin, count;
        pli_placement_range(placement, shard, &begin, &count);
        const int64_t low = begin > first ? begin : first;
        const int64_t high = begin + count < first + n ? begin + count : first + n;
        if (low >= high) continue;
        const pli_wire_state state = {
            .table = (uint32_t)s->table->spec.id, .array = (uint32_t)array, .first = low, .n = high - low
        };
        PLI_TRY(send_to(s, shard,
                        make_restore(&state, NULL, 0, pli_at_const(rows, (low - first) * row_bytes),
                                     (size_t)((high - low) * row_bytes))));
    }
    return PLAIT_OK;
}

static plait_status send_keys_of(sending *s, int32_t shard, int32_t array, int64_t n, const uint64_t *keys,
                                 const void *rows) {
    const int64_t  row_bytes = pli_state_row_bytes(&s->table->spec, array);
    pli_wire_state state = { .table = (uint32_t)s->table->spec.id, .array = (uint32_t)array, .first = 0 };
    for (int64_t i = 0; i < n; i++) state.n += s->shard_of[i] == shard;
    if (state.n == 0) return PLAIT_OK;
    pli_msg *msg = pli_msg_new(sizeof state + (size_t)(state.n * (8 + row_bytes)));
    if (msg == NULL) return send_to(s, shard, NULL);
    unsigned char *body = pli_msg_body(msg);
    memcpy(body, &state, sizeof state);
    unsigned char *key_at = body + sizeof state, *row_at = key_at + state.n * 8;
    for (int64_t i = 0; i < n; i++) {
        if (s->shard_of[i] != shard) continue;
        memcpy(key_at, &keys[i], 8);
        memcpy(row_at, pli_at_const(rows, i * row_bytes), (size_t)row_bytes);
        key_at += 8;
        row_at += row_bytes;
    }
    return send_to(s, shard, msg);
}

static plait_status send_all(sending *s, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                             const void *rows) {
    const pli_wire_state units = { .table = (uint32_t)s->table->spec.id, .array = PLI_STATE_UNITS };
    if (array != PLI_STATE_UNITS && keys == NULL) return send_range(s, array, first, n, rows);
    for (int32_t shard = 0; shard < s->table->spec.placement.shards; shard++) {
        if (array == PLI_STATE_UNITS)
            PLI_TRY(send_to(s, shard, make_restore(&units, NULL, 0, rows, sizeof(int64_t))));
        else
            PLI_TRY(send_keys_of(s, shard, array, n, keys, rows));
    }
    return PLAIT_OK;
}

static plait_status put_served(plait_table *table, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                               const void *rows, plait_error *err) {
    sending s = { .table = table, .err = err };
    char    what[WHAT_BYTES];
    snprintf(what, sizeof what, "the restoring of table %s", table->spec.name);
    if (keys != NULL) {
        s.shard_of = pli_array((size_t)n, sizeof *s.shard_of);
        if (s.shard_of == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", table->spec.name);
        pli_placement_shards(&table->spec.placement, n, keys, s.shard_of);
    }
    pli_exchange_begin(&s.x, table->job, &s.ticket);
    plait_status status = pli_exchange_wait(&s.x, send_all(&s, array, first, n, keys, rows), what, err);
    pli_ticket_free(&s.ticket);
    pli_free(s.shard_of);
    return status;
}

static plait_status put_copy(plait_table *table, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                             const void *rows, plait_error *err) {
    pli_shard *shard = &table->replica->shard;
    if (keys != NULL && (!pli_grow((void **)&shard->at, &shard->at_capacity, n, sizeof *shard->at) ||
                         !pli_store_add_rows(&shard->store, n, keys, shard->at)))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", table->spec.name);
    if (!pli_store_own(&shard->store))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", table->spec.name);
    pli_snap_put(&shard->store, array, first, n, keys != NULL ? shard->at : NULL, rows);
    return PLAIT_OK;
}

plait_status pli_state_put(plait_table *table, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                           const void *rows, plait_error *err) {
    const pli_spec *spec = &table->spec;
    bool            in_range = keys != NULL || (first >= 0 && n >= 0 && first <= spec->rows && n <= spec->rows - first);
    if (array < 0 || array >= PLI_STATE_KEYS || pli_state_row_bytes(spec, array) == 0 || !in_range || n < 0 ||
        (keys != NULL) != (spec->rows == 0))
        return pli_fail(err, PLAIT_EFORMAT, "table %s: no such rows of its state", spec->name);
    if (n == 0) return PLAIT_OK;
    if (table->replica != NULL) return put_copy(table, array, first, n, keys, rows, err);
    pli_comm_enter(table->job->comm, "the restoring of a table");
    return pli_comm_leave(table->job->comm, put_served(table, array, first, n, keys, rows, err));
}

plait_status pli_state_put_units(plait_table *table, int64_t units, plait_error *err) {
    if (units < 0)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: penalties of %lld units", table->spec.name, (long long)units);
    if (table->replica != NULL) {
        table->replica->shard.store.units = units;
        return PLAIT_OK;
    }
    pli_comm_enter(table->job->comm, "the restoring of a table");
    return pli_comm_leave(table->job->comm, put_served(table, PLI_STATE_UNITS, 0, 0, NULL, &units, err));
}
