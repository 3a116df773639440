/* Reader of event logs, the records: goes through one stream event by event, and checks each number before it uses it.
 * See eventlog.h. */
#include <string.h>

#include "watch/eventcalls.h"
#include "watch/eventfile.h"
#include "watch/eventlocks.h"

struct pli_log_cursor {
    const pli_logfile   *file;
    int32_t              stream;
    int64_t              chunk; /* -1: the end */
    const unsigned char *at, *end;
    pli_stream_memory    memory;
    pli_event            event;
    pli_event_job        job;
    pli_event_group      group; /* of a group's stream, known since JOB */
    int32_t              number; /* there: the rank's in the group; -1: it has none, or it is not known yet */
    int32_t             *ranks; /* of the group */
    pli_event_table      table;
    char                 text[5][PLI_LOG_TEXT_MAX];
    pli_event_piece     *piece;
    uint64_t            *keys; /* of all pieces; the pieces point to them when the last is read */
    pli_event_part      *part;
    pli_event_touch     *touch;
    pli_locks_read       locks;
    pli_call_read        call;
    int32_t             *fellow;
    int64_t              pieces_capacity, keys_capacity, parts_capacity, touches_capacity, ranks_capacity, n_keys;
    int64_t              fellows_capacity;
    bool                 no_memory;
};

/* Reads a number that is at most max; false: there is none. */
static bool take(pli_log_cursor *c, uint64_t max, uint64_t *out) {
    const unsigned char *after = pli_get_varint(c->at, c->end, out);
    if (after == NULL || *out > max) return false;
    c->at = after;
    return true;
}

static bool take_i32(pli_log_cursor *c, int32_t max, int32_t *out) {
    uint64_t x;
    if (!take(c, (uint64_t)max, &x)) return false;
    *out = (int32_t)x;
    return true;
}

static bool take_i64(pli_log_cursor *c, int64_t *out) {
    uint64_t x;
    if (!take(c, INT64_MAX, &x)) return false;
    *out = (int64_t)x;
    return true;
}

/* Reads a signed difference and adds it to base. */
static bool take_near(pli_log_cursor *c, uint64_t base, uint64_t *out) {
    uint64_t x;
    if (!take(c, UINT64_MAX, &x)) return false;
    *out = base + (uint64_t)pli_unzigzag(x);
    return true;
}

static bool take_clock(pli_log_cursor *c, int64_t base, int64_t *out) {
    enum { CLOCKS_MAX = INT32_MAX }; /* the audit counts clocks in 32 bits */
    uint64_t x;
    if (!take_near(c, (uint64_t)base, &x) || (int64_t)x < -1 || (int64_t)x > CLOCKS_MAX) return false;
    *out = (int64_t)x;
    return true;
}

static bool take_text(pli_log_cursor *c, char text[PLI_LOG_TEXT_MAX]) {
    uint64_t length;
    if (!take(c, PLI_LOG_TEXT_MAX - 1, &length) || length > (size_t)(c->end - c->at)) return false;
    memcpy(text, c->at, length);
    text[length] = '\0';
    c->at += length;
    return memchr(text, '\0', length) == NULL;
}

static const log_side *side_of(const pli_log_cursor *c) { return &c->file->stream[c->stream]; }

/* n ranks of the run, which ascend. */
static bool take_ascending(pli_log_cursor *c, int32_t n, int32_t **ranks, int64_t *capacity) {
    int32_t next = 0;
    if (!pli_grow((void **)ranks, capacity, n + 1, sizeof **ranks)) {
        c->no_memory = true;
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        if (next >= PLI_LOG_RANKS_MAX || !take_i32(c, PLI_LOG_RANKS_MAX - 1 - next, &(*ranks)[i])) return false;
        (*ranks)[i] += next;
        next = (*ranks)[i] + 1;
    }
    return true;
}

static bool take_ranks(pli_log_cursor *c) {
    if (!take_ascending(c, c->group.n, &c->ranks, &c->ranks_capacity)) return false;
    c->number = -1;
    for (int32_t i = 0; i < c->group.n; i++)
        if (c->ranks[i] == side_of(c)->rank) c->number = i;
    c->group.rank = c->ranks;
    return true;
}

/* The group to which the stream belongs. Its job has its ranks alone, workers first. */
static bool take_group(pli_log_cursor *c) {
    if (!take_text(c, c->text[4]) || !take_clock(c, 0, &c->group.first_clock) ||
        !take_i32(c, PLI_LOG_RANKS_MAX, &c->group.n) || c->group.n > c->end - c->at || c->group.first_clock < 0)
        return false;
    c->group.id = side_of(c)->group;
    c->group.name = c->text[4];
    const pli_event_job *job = &c->job;
    if (job->workers > c->group.n || job->first_server > c->group.n - job->servers || !take_ranks(c)) return false;
    c->event.group = &c->group;
    c->event.rank = c->number;
    return true;
}

static bool take_job(pli_log_cursor *c) {
    if (!take_i32(c, PLI_LOG_RANKS_MAX, &c->job.workers) || !take_i32(c, PLI_LOG_SHARDS_MAX, &c->job.servers) ||
        !take_i32(c, PLI_LOG_RANKS_MAX, &c->job.first_server) || !take_i32(c, PLI_LOG_RANKS_MAX, &c->job.backup) ||
        !take_i32(c, 4 * PLI_LOG_RANKS_MAX + PLI_LOG_COPIES_MAX, &c->job.replicas) ||
        !take_i32(c, PLI_LOG_RANKS_MAX, &c->job.spares))
        return false;
    c->job.homes = c->job.replicas / 4;
    c->job.replicas %= 4;
    if (side_of(c)->group != 0 && !take_group(c)) return false;
    c->event.info.job = &c->job;
    if (pli_memory_job(&c->memory, &c->job, c->event.server)) return true;
    c->no_memory = true;
    return false;
}

static bool take_table(pli_log_cursor *c) {
    int32_t flags;
    if (!take_i32(c, PLI_LOG_TABLES_MAX - 1, &c->event.table) || !take_i64(c, &c->table.rows) ||
        !take_i64(c, &c->table.cols) || !take_i32(c, PLI_LOG_SHARDS_MAX, &c->table.shards) ||
        !take_i32(c, 4 * PLI_WAYS - 1, &flags))
        return false;
    c->table.way = (pli_event_way)(flags >> 1 & (PLI_WAYS - 1));
    if ((c->table.way == PLI_WAY_SERVED) != (c->table.shards > 0)) return false;
    strcpy(c->text[3], "add");
    for (int i = 0; i < ((flags & 2 * PLI_WAYS) != 0 ? 4 : 3); i++)
        if (!take_text(c, c->text[i])) return false;
    c->table.ruled = flags & 1;
    c->table.name = c->text[0];
    c->table.topology = c->text[1];
    c->table.consistency = c->text[2];
    c->table.combine = c->text[3];
    c->event.info.table = &c->table;
    if (pli_memory_table(&c->memory, c->event.table, &c->table)) return true;
    c->no_memory = true;
    return false;
}

static bool take_keys(pli_log_cursor *c, pli_event_piece *piece) {
    int32_t  n;
    uint64_t last = 0;
    if (!take_i32(c, PLI_LOG_KEYS_MAX, &n) || n < 1) return false;
    if (!pli_grow((void **)&c->keys, &c->keys_capacity, c->n_keys + n, sizeof *c->keys)) {
        c->no_memory = true;
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        if (!take_near(c, last, &last)) return false;
        c->keys[c->n_keys++] = last;
    }
    piece->n_keys = n;
    return true;
}

static bool take_piece(pli_log_cursor *c, pli_event_piece *piece) {
    uint64_t laid, flags, first;
    if (!take_i32(c, PLI_LOG_SHARDS_MAX, &piece->shard)) return false;
    piece->shard--;
    pli_memory_piece *memory = pli_memory_piece_of(&c->memory, c->event.table, piece->shard);
    if (memory == NULL || !take_near(c, memory->version, &piece->version) ||
        !take_near(c, memory->from, &piece->from) || !take(c, UINT64_MAX - piece->from, &laid) ||
        !take_i64(c, &piece->age) || !take(c, 4 * PLI_LOG_PLACES_MAX - 1, &flags))
        return false;
    bool same = (flags & 1) != 0;
    c->event.met = c->event.met || (flags & 2) != 0;
    piece->place = (int32_t)(flags >> 2);
    piece->to = piece->from + laid;
    memory->version = piece->version;
    memory->from = piece->from;
    if (!same) {
        if (!take_i64(c, &memory->rows) || !take_near(c, 0, &first) || (int64_t)first < -1) return false;
        memory->first = (int64_t)first;
    }
    piece->rows = memory->rows;
    piece->first = memory->first;
    piece->n_keys = 0;
    if (piece->first >= 0) return piece->rows <= INT64_MAX - piece->first;
    return !same && take_keys(c, piece);
}

static bool take_get(pli_log_cursor *c) {
    pli_event *event = &c->event;
    uint64_t   took_ns, n;
    if (!take_i32(c, PLI_LOG_TABLES_MAX - 1, &event->table) || !take_clock(c, c->memory.clock, &event->clock) ||
        !take(c, c->memory.time_ns, &took_ns) || !take(c, UINT64_MAX, &event->incs) || !take(c, UINT32_MAX, &n))
        return false;
    event->asked_ns = c->memory.time_ns - took_ns;
    event->n = (int64_t)n;
    if (n > (uint64_t)(c->end - c->at)) return false; /* each piece takes more than a byte */
    if (!pli_grow((void **)&c->piece, &c->pieces_capacity, event->n, sizeof *c->piece)) {
        c->no_memory = true;
        return false;
    }
    c->n_keys = 0;
    for (int64_t i = 0; i < event->n; i++)
        if (!take_piece(c, &c->piece[i])) return false;
    const uint64_t *keys = c->keys;
    for (int64_t i = 0; i < event->n; i++) {
        c->piece[i].keys = keys;
        keys += c->piece[i].n_keys;
    }
    event->info.piece = c->piece;
    return true;
}

static bool take_inc(pli_log_cursor *c) {
    float norm;
    if (!take_i32(c, PLI_LOG_TABLES_MAX - 1, &c->event.table) || !take_i64(c, &c->event.rows) ||
        !take(c, UINT64_MAX, &c->event.row) || c->end - c->at < 4)
        return false;
    uint32_t bits = pli_log_u32(c->at);
    memcpy(&norm, &bits, sizeof norm);
    c->event.norm = norm;
    c->at += 4;
    return true;
}

/* Reads a peer, and the sequence number of its message. */
static bool take_seq(pli_log_cursor *c) {
    int32_t peer;
    if (!take_i32(c, PLI_LOG_RANKS_MAX, &peer)) return false;
    pli_memory_peer *memory = pli_memory_peer_of(&c->memory, peer);
    if (memory == NULL || !take_near(c, memory->seq, &memory->seq) || !take_clock(c, memory->clock, &memory->clock))
        return false;
    c->event.peer = peer;
    c->event.seq = memory->seq;
    c->event.clock = memory->clock;
    return true;
}

/* A worker that has died, and in which of its lives. */
static bool take_dead(pli_log_cursor *c, int32_t *worker) {
    if (!take_i32(c, PLI_LOG_LIFE * PLI_LOG_LIVES_MAX - 1, worker)) return false;
    c->event.whose = 1 + *worker / PLI_LOG_LIFE;
    *worker %= PLI_LOG_LIFE;
    return *worker <= PLI_LOG_RANKS_MAX;
}

static bool take_send(pli_log_cursor *c) {
    uint64_t n;
    if (!take_seq(c) || !take(c, PLI_LOG_TABLES_MAX, &n)) return false;
    c->event.n = (int64_t)n;
    if (!pli_grow((void **)&c->part, &c->parts_capacity, c->event.n, sizeof *c->part)) {
        c->no_memory = true;
        return false;
    }
    for (uint64_t i = 0; i < n; i++)
        if (!take_i32(c, PLI_LOG_TABLES_MAX - 1, &c->part[i].table) ||
            !take_i32(c, PLI_LOG_SHARDS_MAX, &c->part[i].shard))
            return false;
    c->event.info.part = c->part;
    return true;
}

static bool take_apply(pli_log_cursor *c) {
    uint64_t shard;
    if (!take_i32(c, PLI_LOG_TABLES_MAX - 1, &c->event.table) || !take_seq(c) || !take_near(c, 0, &shard)) return false;
    c->event.shard = (int32_t)shard;
    return pli_memory_piece_of(&c->memory, c->event.table, (int64_t)shard) != NULL;
}

static bool take_zero(pli_log_cursor *c) {
    uint64_t shard;
    if (!take_i32(c, PLI_LOG_TABLES_MAX - 1, &c->event.table) || !take_clock(c, c->memory.clock, &c->event.clock) ||
        !take_near(c, 0, &shard))
        return false;
    c->event.shard = (int32_t)shard;
    if (c->event.shard == PLI_ZERO_DROP) return !c->event.server;
    return pli_memory_piece_of(&c->memory, c->event.table, (int64_t)shard) != NULL &&
           (c->event.server ? c->event.shard >= 0 : c->event.shard == -1);
}

static bool take_copy(pli_log_cursor *c) {
    pli_event *event = &c->event;
    int64_t    given;
    if (!take_i32(c, PLI_LOG_TABLES_MAX - 1, &event->table) || !take_i32(c, PLI_LOG_RANKS_MAX, &event->peer) ||
        !take_clock(c, c->memory.clock, &event->clock))
        return false;
    if (event->kind == PLI_EVENT_GIVE) return true;
    if (!take_clock(c, event->clock, &given)) return false;
    event->seq = (uint64_t)given;
    return true;
}

static bool take_turn(pli_log_cursor *c) {
    enum { SPACES = 256 };
    pli_event *event = &c->event;
    uint64_t   n, kind, flags, key = 0, variable = 0;
    if (event->server || !take(c, INT64_MAX, &event->seq) || !take_clock(c, c->memory.clock, &event->clock) ||
        !take(c, INT64_MAX, &flags) || !take(c, UINT32_MAX, &n) || n > (uint64_t)(c->end - c->at))
        return false;
    event->n = (int64_t)n;
    event->row = flags & 3;
    event->rows = (int64_t)(flags >> 2);
    if (!pli_grow((void **)&c->touch, &c->touches_capacity, event->n + 1, sizeof *c->touch)) {
        c->no_memory = true;
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        if (!take_near(c, variable, &variable) || variable > INT64_MAX || !take(c, 2 * SPACES + 1, &kind) ||
            !take_near(c, key, &key))
            return false;
        c->touch[i] = (pli_event_touch){ .variable = (int64_t)variable, .space = (int32_t)(kind >> 1) - 1,
                                         .writes = (kind & 1) != 0, .key = key };
    }
    event->info.touch = c->touch;
    return true;
}

static bool take_of_locks(pli_log_cursor *c) {
    const unsigned char *after = pli_take_of_locks(&c->locks, c->at, c->end, &c->memory, &c->event, &c->no_memory);
    if (after != NULL) c->at = after;
    return after != NULL;
}

static bool take_call(pli_log_cursor *c) {
    if (!take_clock(c, c->memory.clock, &c->event.clock)) return false;
    const unsigned char *after = pli_take_call(&c->call, c->at, c->end, &c->memory, &c->event, &c->no_memory);
    if (after != NULL) c->at = after;
    return after != NULL;
}

static bool take_fellows(pli_log_cursor *c) {
    int32_t n;
    if (c->event.server || !take_clock(c, c->memory.clock, &c->event.clock) || !take_i32(c, PLI_LOG_RANKS_MAX, &n) ||
        n > c->end - c->at || !take_ascending(c, n, &c->fellow, &c->fellows_capacity))
        return false;
    c->event.n = n;
    c->event.info.fellow = c->fellow;
    return true;
}

/* Reads WHOSE: the copy to which the following records belong. */
static bool take_whose(pli_log_cursor *c) {
    return take_i32(c, PLI_LOG_SHARDS_MAX - 1, &c->memory.home) &&
           take_i32(c, PLI_LOG_PLACES_MAX - 1, &c->memory.place) && c->memory.place > 0;
}

static bool take_fields(pli_log_cursor *c) {
    pli_event *event = &c->event;
    if (pli_event_is_lock(event->kind) != (side_of(c)->side == PLI_SIDE_LOCKS)) return false;
    if (pli_event_is_lock(event->kind)) return take_of_locks(c);
    switch (event->kind) {
    case PLI_EVENT_JOB: return take_job(c);
    case PLI_EVENT_TABLE: return take_table(c);
    case PLI_EVENT_GET: return take_get(c);
    case PLI_EVENT_INC: return take_inc(c);
    case PLI_EVENT_SEND: return take_send(c);
    case PLI_EVENT_APPLY:
    case PLI_EVENT_DROP: return take_apply(c);
    case PLI_EVENT_TICK: return take_seq(c);
    case PLI_EVENT_VIEW: return take_seq(c) && take_dead(c, &event->whom);
    case PLI_EVENT_HAND:
    case PLI_EVENT_REPLICA:
        return take_i32(c, 2 * PLI_LOG_RANKS_MAX, &event->peer) && take_i32(c, PLI_LOG_PLACES_MAX - 1, &event->whom);
    case PLI_EVENT_GONE: return take_dead(c, &event->peer);
    case PLI_EVENT_PUSH:
    case PLI_EVENT_SUM:
        return take_i32(c, PLI_LOG_TABLES_MAX - 1, &event->table) && take_clock(c, c->memory.clock, &event->clock);
    case PLI_EVENT_ZERO: return take_zero(c);
    case PLI_EVENT_TURN: return take_turn(c);
    case PLI_EVENT_FELLOWS: return take_fellows(c);
    case PLI_EVENT_CALL: return take_call(c);
    case PLI_EVENT_BEGIN:
        event->info.from = c->text[0];
        return !event->server && take_clock(c, 0, &event->clock) && event->clock >= 0 && take_text(c, c->text[0]);
    case PLI_EVENT_GIVE:
    case PLI_EVENT_MIX: return take_copy(c);
    case PLI_EVENT_CLOCK:
        if (!take_clock(c, c->memory.clock, &event->clock)) return false;
        c->memory.clock = event->clock + 1;
        return true;
    case PLI_EVENT_BARRIER:
    case PLI_EVENT_LEAVE:
    case PLI_EVENT_STAND:
    case PLI_EVENT_SERVE:
    case PLI_EVENT_OUT:
    case PLI_EVENT_DONE: return true;
    default: return false;
    }
}

plait_status pli_log_cursor_open(const pli_logfile *file, int32_t stream, pli_log_cursor **cursor_out,
                                 plait_error *err) {
    pli_log_cursor *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to read an event log");
    c->file = file;
    c->stream = stream;
    c->number = -1;
    c->chunk = file->stream[stream].first;
    c->at = file->chunk[c->chunk].begin;
    c->end = file->chunk[c->chunk].end;
    *cursor_out = c;
    return PLAIT_OK;
}

/* Reads the next record; WHOSE has been read before. */
static bool take_event(pli_log_cursor *c, const log_side *s) {
    uint64_t passed_ns;
    while (s->side == 2 && c->at < c->end && *c->at == PLI_LOG_WHOSE) {
        c->at++;
        if (!take_whose(c)) return false;
    }
    if (c->at == c->end || (s->side == 2 && c->memory.place == 0)) return false;
    c->event = (pli_event){ .kind = (pli_event_kind)*c->at++,
                            .server = s->side > 0 && s->side != PLI_SIDE_LOCKS,
                            .home = c->memory.home,
                            .place = c->memory.place,
                            .group = s->group == 0 || c->group.id == 0 ? NULL : &c->group,
                            .rank = s->group == 0 ? s->rank : c->number,
                            .life = s->life,
                            .peer = -1,
                            .table = -1,
                            .shard = -1,
                            .clock = c->memory.clock };
    if (!take(c, UINT64_MAX - c->memory.time_ns, &passed_ns)) return false;
    c->event.time_ns = c->memory.time_ns += passed_ns;
    if (!take_fields(c)) return false;
    if (s->side == 1) c->event.home = c->event.rank - c->job.first_server;
    return true;
}

const pli_event *pli_log_cursor_next(pli_log_cursor *c, plait_error *err) {
    static const char *const sides[PLI_SIDES] = { "worker", "server", "copies", "locks" };
    while (c->chunk >= 0 && c->at == c->end) {
        c->chunk = c->file->chunk[c->chunk].next;
        if (c->chunk < 0) return NULL;
        c->at = c->file->chunk[c->chunk].begin;
        c->end = c->file->chunk[c->chunk].end;
    }
    if (c->chunk < 0) return NULL;
    const log_side *s = side_of(c);
    if (take_event(c, s)) return &c->event;
    if (c->no_memory) pli_fail(err, PLAIT_ENOMEM, "no memory to read an event log");
    else
        pli_fail(err, PLAIT_EFORMAT, "the event log is garbled: the %s of rank %d wrote what is no event",
                 sides[s->side], s->rank);
    c->chunk = -1;
    return NULL;
}

void pli_log_cursor_close(pli_log_cursor **cursor_ptr) {
    pli_log_cursor *c = *cursor_ptr;
    *cursor_ptr = NULL;
    if (c == NULL) return;
    pli_memory_free(&c->memory);
    pli_free(c->piece);
    pli_free(c->keys);
    pli_free(c->part);
    pli_free(c->touch);
    pli_free(c->locks.use);
    pli_free(c->call.ran);
    pli_free(c->fellow);
    pli_free(c->ranks);
    pli_free(c);
}
