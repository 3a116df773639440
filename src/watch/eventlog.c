/* The writer of event logs: each stream has a buffer, and only a full buffer takes the lock. See eventlog.h. */
#include "watch/eventlog.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "watch/eventcalls.h"
#include "watch/eventcode.h"
#include "watch/eventlocks.h"

enum { BUFFER_BYTES = 1 << 16, SMALL_RECORD_BYTES = 128 /* with room for every record without lists */ };

typedef struct log_stream {
    _Alignas(64) unsigned char *at; /* only the thread of this side writes it */
    unsigned char    *begin, *end;
    pli_stream_memory memory;
    int32_t           life;   /* the one before the life of the rank whose stream it is: 0 as a rule */
    bool              failed; /* set by prepare: the stream ends here */
} log_stream;

/* The streams of all ranks about the tables of one group, or (group 0) of all workers. */
typedef struct log_part {
    uint32_t    group;
    int32_t     n;
    int32_t    *rank;   /* [n] by number; NULL: a number is a rank */
    log_stream *stream; /* [PLI_SIDES * n]                         */
} log_part;

struct pli_eventlog {
    pli_event_sink sink;
    char          *path;
    /* [PLI_LOG_GROUPS_MAX] by group; made by the first event of one, under the lock; release, pairs with part_of's
     * acquire */
    _Atomic(log_part *) *part;
    uint64_t (*now)(void *user);
    void           *user;
    pthread_mutex_t lock; /* guards the fields below */
    FILE           *file;
    uint64_t        chunks;
    bool            lacks; /* streams for which there was no memory */
    int             errnum; /* of the first write that failed */
};

/* --- chunks ------------------------------------------------------------------------------------------------------ */

static void write_chunk(pli_eventlog *log, const unsigned char kind[4], int32_t rank, const void *records,
                        size_t bytes) {
    unsigned char head[PLI_LOG_CHUNK_BYTES];
    memcpy(head, kind, 4);
    pli_put_u32(head + 4, (uint32_t)rank);
    pli_put_u32(head + 8, (uint32_t)bytes);
    pli_put_u32(head + 12, pli_log_checksum(head, records, bytes));
    pthread_mutex_lock(&log->lock);
    if (log->errnum == 0 && (fwrite(head, 1, sizeof head, log->file) != sizeof head ||
                             fwrite(records, 1, bytes, log->file) != bytes || fflush(log->file) != 0))
        log->errnum = errno;
    log->chunks++;
    pthread_mutex_unlock(&log->lock);
}

static void flush(pli_eventlog *log, const log_part *part, int32_t index) {
    log_stream         *s = &part->stream[index];
    const int32_t       number = index / PLI_SIDES;
    const unsigned char kind[4] = { 'R', (unsigned char)(index % PLI_SIDES + PLI_SIDES * s->life),
                                    (unsigned char)part->group, (unsigned char)(part->group >> 8) };
    if (s->at > s->begin)
        write_chunk(log, kind, part->rank == NULL ? number : part->rank[number], s->begin, (size_t)(s->at - s->begin));
    s->at = s->begin;
}

/* Makes room for a record of that many bytes: flushes the buffer, and grows it if the record is longer. */
static bool reserve(pli_eventlog *log, const log_part *part, int32_t index, size_t bytes) {
    log_stream *s = &part->stream[index];
    if (s->begin != NULL && (size_t)(s->end - s->at) >= bytes) return true;
    flush(log, part, index);
    if ((size_t)(s->end - s->begin) >= bytes) return true;
    size_t         capacity = bytes > BUFFER_BYTES ? bytes : BUFFER_BYTES;
    unsigned char *begin = pli_malloc(capacity);
    if (begin == NULL) return false;
    pli_free(s->begin);
    s->begin = s->at = begin;
    s->end = begin + capacity;
    return true;
}

/* --- records, kind by kind ---------------------------------------------------------------------------------------- */

static unsigned char *put(unsigned char *at, uint64_t x) { return pli_put_varint(at, x); }
static unsigned char *put_z(unsigned char *at, int64_t x) { return pli_put_varint(at, pli_zigzag(x)); }

static unsigned char *put_text(unsigned char *at, const char *text) {
    size_t length = strnlen(text, PLI_LOG_TEXT_MAX - 1);
    at = put(at, length);
    memcpy(at, text, length);
    return at + length;
}

static unsigned char *put_table(unsigned char *at, const pli_event *event) {
    const pli_event_table *table = event->info.table;
    const bool             adds = table->combine == NULL || strcmp(table->combine, "add") == 0;
    at = put(at, (uint64_t)event->table);
    at = put(at, (uint64_t)table->rows);
    at = put(at, (uint64_t)table->cols);
    at = put(at, (uint64_t)table->shards);
    at = put(at, (table->ruled ? 1u : 0u) | 2u * (unsigned)table->way | (adds ? 0u : 8u));
    at = put_text(at, table->name);
    at = put_text(at, table->topology);
    at = put_text(at, table->consistency);
    return adds ? at : put_text(at, table->combine);
}

/* Copies the sample of a piece's keys to `to` [PLI_EVENTLOG_SAMPLE * 2]; returns how many. */
static int32_t sample(const pli_event_piece *piece, uint64_t *to) {
    uint64_t mask = (UINT64_C(1) << pli_eventlog_sample_bits(piece->n_keys)) - 1;
    int32_t  n = 1;
    to[0] = piece->keys[0];
    for (int64_t i = 1; i < piece->n_keys && n < 2 * PLI_EVENTLOG_SAMPLE; i++)
        if ((piece->keys[i] & mask) == 0) to[n++] = piece->keys[i];
    return n;
}

static unsigned char *put_keys(unsigned char *at, const pli_event_piece *piece) {
    uint64_t key[2 * PLI_EVENTLOG_SAMPLE], last = 0;
    int32_t  n = sample(piece, key);
    at = put(at, (uint64_t)n);
    for (int32_t i = 0; i < n; last = key[i++]) at = put_z(at, (int64_t)(key[i] - last));
    return at;
}

static unsigned char *put_piece(unsigned char *at, const pli_event_piece *piece, bool met, pli_memory_piece *memory) {
    bool same = piece->first >= 0 && piece->first == memory->first && piece->rows == memory->rows;
    at = put(at, (uint64_t)(piece->shard + 1));
    at = put_z(at, (int64_t)(piece->version - memory->version));
    at = put_z(at, (int64_t)(piece->from - memory->from));
    at = put(at, piece->to - piece->from);
    at = put(at, (uint64_t)piece->age);
    at = put(at, (uint64_t)(same + 2 * met) + 4 * (uint64_t)piece->place);
    memory->version = piece->version;
    memory->from = piece->from;
    if (same) return at;
    memory->first = piece->first;
    memory->rows = piece->rows;
    at = put(at, (uint64_t)piece->rows);
    at = put_z(at, piece->first);
    return piece->first < 0 ? put_keys(at, piece) : at;
}

static unsigned char *put_get(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    uint64_t took_ns =
        event->asked_ns == 0 || event->asked_ns > memory->time_ns ? 0 : memory->time_ns - event->asked_ns;
    at = put(at, (uint64_t)event->table);
    at = put_z(at, event->clock - memory->clock);
    at = put(at, took_ns);
    at = put(at, event->incs);
    at = put(at, (uint64_t)event->n);
    for (int64_t i = 0; i < event->n; i++) {
        const pli_event_piece *piece = &event->info.piece[i];
        at = put_piece(at, piece, event->met, pli_memory_piece_of(memory, event->table, piece->shard));
    }
    return at;
}

static unsigned char *put_norm(unsigned char *at, double norm) {
    float    value = (float)norm;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return pli_put_u32(at, bits);
}

static unsigned char *put_seq(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    pli_memory_peer *peer = pli_memory_peer_of(memory, event->peer);
    at = put_z(at, (int64_t)(event->seq - peer->seq));
    at = put_z(at, event->clock - peer->clock);
    peer->seq = event->seq;
    peer->clock = event->clock;
    return at;
}

static unsigned char *put_clock(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    at = put_z(at, event->clock - memory->clock);
    if (event->kind == PLI_EVENT_CLOCK) memory->clock = event->clock + 1;
    return at;
}

static unsigned char *put_send(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    at = put_seq(put(at, (uint64_t)event->peer), event, memory);
    at = put(at, (uint64_t)event->n);
    for (int64_t i = 0; i < event->n; i++)
        at = put(put(at, (uint64_t)event->info.part[i].table), (uint64_t)event->info.part[i].shard);
    return at;
}

static unsigned char *put_turn(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    int64_t  variable = 0;
    uint64_t key = 0;
    at = put(put_clock(put(at, event->seq), event, memory), event->row | (uint64_t)event->rows << 2);
    at = put(at, (uint64_t)event->n);
    for (int64_t i = 0; i < event->n; i++) {
        const pli_event_touch *touch = &event->info.touch[i];
        at = put_z(at, touch->variable - variable);
        at = put(at, 2 * (uint64_t)(touch->space + 1) + touch->writes);
        at = put_z(at, (int64_t)(touch->key - key));
        variable = touch->variable;
        key = touch->key;
    }
    return at;
}

static unsigned char *put_group(unsigned char *at, const pli_event_group *group) {
    int32_t next = 0;
    at = put_z(put_text(at, group->name), group->first_clock);
    at = put(at, (uint64_t)group->n);
    for (int32_t i = 0; i < group->n; next = group->rank[i++] + 1) at = put(at, (uint64_t)(group->rank[i] - next));
    return at;
}

static unsigned char *put_fellows(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    int32_t next = 0;
    at = put(put_clock(at, event, memory), (uint64_t)event->n);
    for (int64_t i = 0; i < event->n; next = event->info.fellow[i++] + 1)
        at = put(at, (uint64_t)(event->info.fellow[i] - next));
    return at;
}

static unsigned char *put_job(unsigned char *at, const pli_event *event) {
    const pli_event_job *job = event->info.job;
    at = put(put(at, (uint64_t)job->workers), (uint64_t)job->servers);
    at = put(put(at, (uint64_t)job->first_server), (uint64_t)job->backup);
    at = put(put(at, (uint64_t)job->replicas + 4 * (uint64_t)job->homes), (uint64_t)job->spares);
    return event->group == NULL ? at : put_group(at, event->group);
}

/* A worker that has died, and in which of its lives. */
static unsigned char *put_dead(unsigned char *at, int32_t worker, int32_t life) {
    return put(at, (uint64_t)worker + PLI_LOG_LIFE * (uint64_t)(life > 1 ? life - 1 : 0));
}

/* In a stream about several copies: says to which copy the record belongs. */
static unsigned char *put_whose(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    if (!event->server || event->place == 0) return at;
    if (event->home == memory->home && event->place == memory->place) return at;
    memory->home = event->home;
    memory->place = event->place;
    *at++ = PLI_LOG_WHOSE;
    return put(put(at, (uint64_t)event->home), (uint64_t)event->place);
}

static unsigned char *put_fields(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    if (pli_event_is_lock(event->kind)) return pli_put_of_locks(at, event, memory);
    switch (event->kind) {
    case PLI_EVENT_JOB: return put_job(at, event);
    case PLI_EVENT_TABLE: return put_table(at, event);
    case PLI_EVENT_GET: return put_get(at, event, memory);
    case PLI_EVENT_INC:
        at = put(put(put(at, (uint64_t)event->table), (uint64_t)event->rows), event->row);
        return put_norm(at, event->norm);
    case PLI_EVENT_PUSH:
    case PLI_EVENT_SUM: return put_clock(put(at, (uint64_t)event->table), event, memory);
    case PLI_EVENT_SEND: return put_send(at, event, memory);
    case PLI_EVENT_ZERO: return put_z(put_clock(put(at, (uint64_t)event->table), event, memory), event->shard);
    case PLI_EVENT_GIVE:
    case PLI_EVENT_MIX:
        at = put_clock(put(put(at, (uint64_t)event->table), (uint64_t)event->peer), event, memory);
        return event->kind == PLI_EVENT_GIVE ? at : put_z(at, (int64_t)event->seq - event->clock);
    case PLI_EVENT_CLOCK: return put_clock(at, event, memory);
    case PLI_EVENT_APPLY:
    case PLI_EVENT_DROP:
        at = put_seq(put(put(at, (uint64_t)event->table), (uint64_t)event->peer), event, memory);
        return put_z(at, event->shard);
    case PLI_EVENT_TICK: return put_seq(put(at, (uint64_t)event->peer), event, memory);
    case PLI_EVENT_GONE: return put_dead(at, event->peer, event->whose);
    case PLI_EVENT_VIEW:
        at = put_seq(put(at, (uint64_t)event->peer), event, memory);
        return put_dead(at, event->whom, event->whose);
    case PLI_EVENT_TURN: return put_turn(at, event, memory);
    case PLI_EVENT_FELLOWS: return put_fellows(at, event, memory);
    case PLI_EVENT_BEGIN: return put_text(put_z(at, event->clock), event->info.from);
    case PLI_EVENT_CALL: return pli_put_call(put_clock(at, event, memory), event);
    case PLI_EVENT_HAND:
    case PLI_EVENT_REPLICA: return put(put(at, (uint64_t)event->peer), (uint64_t)event->whom);
    default: return at;
    }
}

/* --- the sink ----------------------------------------------------------------------------------------------------- */

static size_t bytes_of(const pli_event *event) {
    if (event->kind == PLI_EVENT_JOB && event->group != NULL)
        return SMALL_RECORD_BYTES + PLI_LOG_TEXT_MAX + 10 * (size_t)event->group->n;
    if (event->kind == PLI_EVENT_TABLE) return SMALL_RECORD_BYTES + 4 * (PLI_LOG_TEXT_MAX + 10);
    if (event->kind == PLI_EVENT_SEND) return SMALL_RECORD_BYTES + 20 * (size_t)event->n;
    if (event->kind == PLI_EVENT_FELLOWS) return SMALL_RECORD_BYTES + 10 * (size_t)event->n;
    if (event->kind == PLI_EVENT_TURN) return SMALL_RECORD_BYTES + 22 * (size_t)event->n;
    if (event->kind == PLI_EVENT_SCOPES || event->kind == PLI_EVENT_BEGIN)
        return SMALL_RECORD_BYTES + PLI_LOG_TEXT_MAX;
    if (event->kind == PLI_EVENT_CALL)
        return SMALL_RECORD_BYTES + PLI_LOG_TEXT_MAX + 10 * (size_t)event->info.call->tables +
               PLI_LOG_RAN_BYTES * (size_t)event->n;
    if (event->kind == PLI_EVENT_USE) return SMALL_RECORD_BYTES + PLI_LOG_USE_BYTES * (size_t)event->n;
    if (event->kind == PLI_EVENT_GET)
        return SMALL_RECORD_BYTES + (size_t)event->n * (90 + 10 * 2 * PLI_EVENTLOG_SAMPLE);
    return SMALL_RECORD_BYTES;
}

/* Prepares the stream's memory for the record. false: out of memory, or the record is about a table or rank that the
 * stream does not know. */
static bool prepare(log_stream *s, const pli_event *event) {
    switch (event->kind) {
    case PLI_EVENT_JOB: return pli_memory_job(&s->memory, event->info.job, event->server);
    case PLI_EVENT_TABLE: return pli_memory_table(&s->memory, event->table, event->info.table);
    case PLI_EVENT_SEND:
    case PLI_EVENT_APPLY:
    case PLI_EVENT_DROP:
    case PLI_EVENT_VIEW:
    case PLI_EVENT_TICK: return pli_memory_peer_of(&s->memory, event->peer) != NULL;
    case PLI_EVENT_GET:
        for (int64_t i = 0; i < event->n; i++)
            if (pli_memory_piece_of(&s->memory, event->table, event->info.piece[i].shard) == NULL) return false;
        return true;
    case PLI_EVENT_CALL: return pli_call_is_known(&s->memory, event);
    default: return true;
    }
}

/* Does the event get its own time? An event that directly follows another of its stream has that event's time, because
 * reading the clock costs more than the record. */
static bool has_own_time(pli_event_kind kind) {
    return kind != PLI_EVENT_PUSH && kind != PLI_EVENT_SEND && kind != PLI_EVENT_TICK && kind != PLI_EVENT_VIEW;
}

static void free_part(log_part *part) {
    if (part == NULL) return;
    for (int32_t i = 0; part->stream != NULL && i < PLI_SIDES * part->n; i++) {
        pli_memory_free(&part->stream[i].memory);
        pli_free(part->stream[i].begin);
    }
    pli_free(part->stream);
    pli_free(part->rank);
    pli_free(part);
}

/* rank [n]: NULL for group 0. NULL: out of memory. */
static log_part *make_part(uint32_t group, int32_t n, const int32_t *rank) {
    log_part    *part = pli_calloc(1, sizeof *part);
    const size_t bytes = PLI_SIDES * (size_t)n * sizeof *part->stream;
    if (part == NULL) return NULL;
    part->group = group;
    part->n = n;
    part->stream = pli_aligned(bytes);
    part->rank = rank == NULL ? NULL : pli_array((size_t)n, sizeof *rank);
    if (part->stream == NULL || (rank != NULL && part->rank == NULL)) {
        free_part(part);
        return NULL;
    }
    memset(part->stream, 0, bytes);
    if (rank != NULL) memcpy(part->rank, rank, (size_t)n * sizeof *rank);
    return part;
}

/* The streams to which an event of the group belongs. NULL: no memory for them; then the log is cut. */
static log_part *part_of(pli_eventlog *log, const pli_event_group *group) {
    if (group == NULL) return atomic_load_explicit(&log->part[0], memory_order_relaxed); /* made before any event */
    if (group->id == 0 || group->id >= PLI_LOG_GROUPS_MAX) return NULL;
    log_part *part = atomic_load_explicit(&log->part[group->id], memory_order_acquire);
    if (part != NULL) return part;
    pthread_mutex_lock(&log->lock);
    part = atomic_load_explicit(&log->part[group->id], memory_order_relaxed);
    if (part == NULL) part = make_part(group->id, group->n, group->rank);
    log->lacks = log->lacks || part == NULL;
    atomic_store_explicit(&log->part[group->id], part, memory_order_release);
    pthread_mutex_unlock(&log->lock);
    return part;
}

/* The worker's rank was started anew: another stream follows, which has nothing of the one before. */
static void begin_life(pli_eventlog *log, const log_part *part, int32_t index, int32_t life) {
    log_stream *s = &part->stream[index];
    flush(log, part, index);
    pli_memory_free(&s->memory);
    s->failed = s->failed || life > PLI_LOG_LIVES_MAX || part->group != 0 || index % PLI_SIDES != 0;
    if (!s->failed) s->life = life - 1;
}

static void raise_event(void *user, const pli_event *event) {
    pli_eventlog   *log = user;
    const log_part *part = part_of(log, event->group);
    const int       side = pli_event_is_lock(event->kind) ? PLI_SIDE_LOCKS
                                                          : pli_event_side(event->server, event->place);
    const int32_t   index = PLI_SIDES * event->rank + side;
    if (part == NULL || event->rank < 0 || event->rank >= part->n) return;
    log_stream *s = &part->stream[index];
    if (event->kind == PLI_EVENT_JOB && event->life - 1 > s->life) begin_life(log, part, index, event->life);
    if (s->failed) return;
    if (!reserve(log, part, index, bytes_of(event)) || !prepare(s, event)) {
        s->failed = true;
        return;
    }
    uint64_t now_ns = has_own_time(event->kind) ? log->now(log->user) : s->memory.time_ns;
    s->at = put_whose(s->at, event, &s->memory);
    *s->at++ = (unsigned char)event->kind;
    s->at = put(s->at, now_ns > s->memory.time_ns ? now_ns - s->memory.time_ns : 0);
    if (now_ns > s->memory.time_ns) s->memory.time_ns = now_ns;
    s->at = put_fields(s->at, event, &s->memory);
    /* so that even a log that is cut says who took part */
    if (event->kind == PLI_EVENT_JOB || event->kind == PLI_EVENT_TABLE) flush(log, part, index);
}

static void keep(void *user, const pli_event_group *group, int32_t rank, int side) {
    pli_eventlog   *log = user;
    const log_part *part = part_of(log, group);
    if (part == NULL || rank < 0 || rank >= part->n || part->stream[PLI_SIDES * rank + side].begin == NULL) return;
    flush(log, part, PLI_SIDES * rank + side);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static uint64_t wall(void *user) {
    (void)user;
    return pli_now_ns();
}

static void free_log(pli_eventlog *log) {
    for (int32_t g = 0; log->part != NULL && g < PLI_LOG_GROUPS_MAX; g++)
        free_part(atomic_load_explicit(&log->part[g], memory_order_relaxed));
    pthread_mutex_destroy(&log->lock);
    pli_free((void *)log->part);
    pli_free(log->path);
    pli_free(log);
}

static void write_head(pli_eventlog *log, const char *run) {
    unsigned char head[PLI_LOG_HEAD_BYTES] = "plaitlog";
    pli_put_u32(head + 8, PLI_EVENTLOG_VERSION);
    memcpy(head + 16, run, strnlen(run, 16));
    if (fwrite(head, 1, sizeof head, log->file) != sizeof head) log->errnum = errno;
}

plait_status pli_eventlog_open(const char *path, int32_t ranks, const char *run, uint64_t (*now)(void *user),
                               void *user, pli_eventlog **log_out, plait_error *err) {
    pli_eventlog *log = pli_calloc(1, sizeof *log);
    if (log == NULL) return pli_fail(err, PLAIT_ENOMEM, "event log: no memory");
    pthread_mutex_init(&log->lock, NULL);
    log->sink = (pli_event_sink){ .raise = raise_event, .keep = keep, .user = log };
    log->now = now != NULL ? now : wall;
    log->user = user;
    log->path = pli_strdup(path);
    log->part = pli_calloc(PLI_LOG_GROUPS_MAX, sizeof *log->part);
    if (log->part != NULL) atomic_init(&log->part[0], make_part(0, ranks, NULL));
    if (log->path == NULL || log->part == NULL || part_of(log, NULL) == NULL) {
        free_log(log);
        return pli_fail(err, PLAIT_ENOMEM, "event log: no memory");
    }
    log->file = fopen(path, "wb");
    if (log->file == NULL) {
        int errnum = errno;
        free_log(log);
        return pli_fail_errno(err, errnum, "%s: cannot be written (--events)", path);
    }
    write_head(log, run);
    *log_out = log;
    return PLAIT_OK;
}

const pli_event_sink *pli_eventlog_sink(const pli_eventlog *log) { return &log->sink; }

plait_status pli_eventlog_close(pli_eventlog **log_ptr, plait_error *err) {
    pli_eventlog *log = *log_ptr;
    *log_ptr = NULL;
    if (log == NULL) return PLAIT_OK;
    bool                whole = !log->lacks;
    const unsigned char end[4] = { 'E' };
    unsigned char       chunks[8];
    for (int32_t g = 0; g < PLI_LOG_GROUPS_MAX; g++) {
        const log_part *part = atomic_load_explicit(&log->part[g], memory_order_relaxed);
        for (int32_t i = 0; part != NULL && i < PLI_SIDES * part->n; i++) {
            flush(log, part, i);
            whole = whole && !part->stream[i].failed;
        }
    }
    pli_put_u32(chunks, (uint32_t)log->chunks);
    pli_put_u32(chunks + 4, (uint32_t)(log->chunks >> 32));
    if (whole) write_chunk(log, end, 0, chunks, sizeof chunks);
    if (fclose(log->file) != 0 && log->errnum == 0) log->errnum = errno;
    plait_status status =
        whole ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "%s: the event log is cut: no memory for it", log->path);
    if (log->errnum != 0)
        status = pli_fail_errno(err, log->errnum, "%s: could not be written to its end (--events)", log->path);
    free_log(log);
    return status;
}
