/* The reader of event logs. It maps the files and checks their chunks once; then it reads each stream record by record.
 * It checks all sizes and numbers of a file before it uses them. See eventlog.h. */
#include <string.h>

#include "watch/eventcode.h"
#include "watch/eventlog.h"

typedef struct log_chunk {
    const unsigned char *begin, *end;
    int64_t              next; /* the stream's next chunk; -1: none */
} log_chunk;

typedef struct log_side {
    int32_t rank;
    int     side;
    bool    cut;         /* the file of its last chunk is cut */
    int64_t first, last; /* chunks */
} log_side;

struct pli_logfile {
    int32_t     files;
    pli_mapped *mapped; /* [files] */
    char       *cut;    /* path of the first file that is cut; NULL: none */
    log_chunk  *chunk;
    int64_t     chunks, chunks_capacity;
    log_side   *stream;
    int64_t     streams, streams_capacity;
    int32_t    *index; /* [PLI_SIDES * indexed]: the stream of a rank and side; -1: none */
    int64_t     indexed;
};

static uint32_t get_u32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* --- files and chunks --------------------------------------------------------------------------------------------- */

static bool reserve_index(pli_logfile *file, int32_t rank) {
    int64_t before = file->indexed, capacity = before;
    if (rank < before) return true;
    if (!pli_grow((void **)&file->index, &capacity, (int64_t)rank + 1, PLI_SIDES * sizeof *file->index)) return false;
    for (int64_t i = PLI_SIDES * before; i < PLI_SIDES * capacity; i++) file->index[i] = -1;
    file->indexed = capacity;
    return true;
}

static bool add_chunk(pli_logfile *file, int32_t rank, int side, const unsigned char *begin, const unsigned char *end) {
    if (!reserve_index(file, rank)) return false;
    if (!pli_grow((void **)&file->chunk, &file->chunks_capacity, file->chunks + 1, sizeof *file->chunk)) return false;
    int32_t *of = &file->index[PLI_SIDES * (int64_t)rank + side];
    if (*of < 0) {
        if (!pli_grow((void **)&file->stream, &file->streams_capacity, file->streams + 1, sizeof *file->stream))
            return false;
        *of = (int32_t)file->streams;
        file->stream[file->streams++] = (log_side){ .rank = rank, .side = side, .first = file->chunks };
    } else {
        file->chunk[file->stream[*of].last].next = file->chunks;
    }
    file->stream[*of].last = file->chunks;
    file->chunk[file->chunks++] = (log_chunk){ .begin = begin, .end = end, .next = -1 };
    return true;
}

static plait_status check_head(const pli_logfile *file, const char *path, const pli_mapped *mapped, plait_error *err) {
    const unsigned char *head = mapped->data;
    if (mapped->bytes < PLI_LOG_HEAD_BYTES || memcmp(head, "plaitlog", 8) != 0)
        return pli_fail(err, PLAIT_EFORMAT, "%s: %s", path,
                        mapped->bytes == 0 ? "is empty: no event log"
                                           : "is no event log (train --events FILE writes one)");
    uint32_t version = get_u32(head + 8);
    if (version != PLI_EVENTLOG_VERSION)
        return pli_fail(err, PLAIT_EFORMAT, "%s: event log of version %u; this plait reads version %d", path, version,
                        PLI_EVENTLOG_VERSION);
    if (memcmp(head + 16, file->mapped[0].data + 16, 16) != 0)
        return pli_fail(err, PLAIT_EFORMAT, "%s: is of another run (%.16s) than the first file (%.16s)", path,
                        (const char *)head + 16, (const char *)file->mapped[0].data + 16);
    return PLAIT_OK;
}

static plait_status garbled(const char *path, const unsigned char *at, const pli_mapped *mapped, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: is garbled at byte %zu", path, (size_t)(at - mapped->data));
}

/* Reads the chunks of one file. *whole_out: the file has its end. */
static plait_status read_chunks(pli_logfile *file, const char *path, const pli_mapped *mapped, bool *whole_out,
                                plait_error *err) {
    const unsigned char *at = mapped->data + PLI_LOG_HEAD_BYTES, *end = mapped->data + mapped->bytes;
    *whole_out = false;
    for (uint64_t n = 0; end - at >= PLI_LOG_CHUNK_BYTES; n++) {
        uint32_t             rank = get_u32(at + 4), bytes = get_u32(at + 8);
        const unsigned char *records = at + PLI_LOG_CHUNK_BYTES;
        bool                 is_end = at[0] == 'E';
        if ((at[0] != 'R' && !is_end) || at[1] >= PLI_SIDES || rank >= PLI_LOG_RANKS_MAX)
            return garbled(path, at, mapped, err);
        if (bytes > (size_t)(end - records)) return PLAIT_OK; /* the chunk is cut */
        if (get_u32(at + 12) != pli_log_checksum(at, records, bytes)) return garbled(path, at, mapped, err);
        if (is_end) {
            *whole_out = true;
            bool right =
                bytes == 8 && records + 8 == end && (get_u32(records) | (uint64_t)get_u32(records + 4) << 32) == n;
            return right ? PLAIT_OK : garbled(path, at, mapped, err);
        }
        if (!add_chunk(file, (int32_t)rank, at[1], records, records + bytes))
            return pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
        at = records + bytes;
    }
    return PLAIT_OK;
}

static plait_status open_one(pli_logfile *file, const char *path, plait_error *err) {
    pli_mapped *mapped = &file->mapped[file->files];
    bool        whole;
    PLI_TRY(pli_map_file(path, mapped, err));
    file->files++;
    PLI_TRY(check_head(file, path, mapped, err));
    int64_t before = file->chunks;
    PLI_TRY(read_chunks(file, path, mapped, &whole, err));
    for (int64_t i = 0; !whole && i < file->streams; i++)
        file->stream[i].cut = file->stream[i].cut || file->stream[i].last >= before;
    if (whole || file->cut != NULL) return PLAIT_OK;
    file->cut = pli_strdup(path);
    return file->cut != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "%s: no memory to read it", path);
}

plait_status pli_logfile_open(const char *const *paths, int32_t n, pli_logfile **file_out, plait_error *err) {
    pli_logfile *file = pli_calloc(1, sizeof *file);
    if (file == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for an event log");
    plait_status status = PLAIT_OK;
    file->mapped = pli_calloc((size_t)n, sizeof *file->mapped);
    if (file->mapped == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for an event log");
    for (int32_t i = 0; status >= 0 && i < n; i++) status = open_one(file, paths[i], err);
    if (status < 0) pli_logfile_close(&file);
    *file_out = file;
    return status;
}

void pli_logfile_close(pli_logfile **file_ptr) {
    pli_logfile *file = *file_ptr;
    *file_ptr = NULL;
    if (file == NULL) return;
    for (int32_t i = 0; i < file->files; i++) pli_unmap_file(&file->mapped[i]);
    pli_free(file->mapped);
    pli_free(file->cut);
    pli_free(file->chunk);
    pli_free(file->stream);
    pli_free(file->index);
    pli_free(file);
}

const char *pli_logfile_cut(const pli_logfile *file) { return file->cut; }
int32_t     pli_logfile_streams(const pli_logfile *file) { return (int32_t)file->streams; }
int32_t     pli_logfile_rank(const pli_logfile *file, int32_t stream) { return file->stream[stream].rank; }
bool        pli_logfile_is_server(const pli_logfile *file, int32_t stream) { return file->stream[stream].side > 0; }
bool        pli_logfile_stream_is_cut(const pli_logfile *file, int32_t stream) { return file->stream[stream].cut; }

/* --- records ------------------------------------------------------------------------------------------------------ */

struct pli_log_cursor {
    const pli_logfile   *file;
    int32_t              stream;
    int64_t              chunk; /* -1: the end */
    const unsigned char *at, *end;
    pli_stream_memory    memory;
    pli_event            event;
    pli_event_job        job;
    pli_event_table      table;
    char                 text[4][PLI_LOG_TEXT_MAX];
    pli_event_piece     *piece;
    uint64_t            *keys; /* of all pieces; the pieces point to them when the last is read */
    pli_event_part      *part;
    int64_t              pieces_capacity, keys_capacity, parts_capacity, n_keys;
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

static bool take_job(pli_log_cursor *c) {
    if (!take_i32(c, PLI_LOG_RANKS_MAX, &c->job.workers) || !take_i32(c, PLI_LOG_SHARDS_MAX, &c->job.servers) ||
        !take_i32(c, PLI_LOG_RANKS_MAX, &c->job.first_server) || !take_i32(c, PLI_LOG_RANKS_MAX, &c->job.backup) ||
        !take_i32(c, PLI_LOG_COPIES_MAX, &c->job.replicas) || !take_i32(c, PLI_LOG_RANKS_MAX, &c->job.spares))
        return false;
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
    uint32_t bits = get_u32(c->at);
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

/* Reads WHOSE: the copy to which the following records belong. */
static bool take_whose(pli_log_cursor *c) {
    return take_i32(c, PLI_LOG_SHARDS_MAX - 1, &c->memory.home) &&
           take_i32(c, PLI_LOG_PLACES_MAX - 1, &c->memory.place) && c->memory.place > 0;
}

static bool take_fields(pli_log_cursor *c) {
    pli_event *event = &c->event;
    switch (event->kind) {
    case PLI_EVENT_JOB: return take_job(c);
    case PLI_EVENT_TABLE: return take_table(c);
    case PLI_EVENT_GET: return take_get(c);
    case PLI_EVENT_INC: return take_inc(c);
    case PLI_EVENT_SEND: return take_send(c);
    case PLI_EVENT_APPLY:
    case PLI_EVENT_DROP: return take_apply(c);
    case PLI_EVENT_TICK: return take_seq(c);
    case PLI_EVENT_VIEW: return take_seq(c) && take_i32(c, PLI_LOG_RANKS_MAX, &event->whom);
    case PLI_EVENT_HAND:
    case PLI_EVENT_REPLICA:
        return take_i32(c, 2 * PLI_LOG_RANKS_MAX, &event->peer) && take_i32(c, PLI_LOG_PLACES_MAX - 1, &event->whom);
    case PLI_EVENT_GONE: return take_i32(c, PLI_LOG_RANKS_MAX, &event->peer);
    case PLI_EVENT_PUSH:
    case PLI_EVENT_SUM:
        return take_i32(c, PLI_LOG_TABLES_MAX - 1, &event->table) && take_clock(c, c->memory.clock, &event->clock);
    case PLI_EVENT_ZERO: return take_zero(c);
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
                            .server = s->side > 0,
                            .home = c->memory.home,
                            .place = c->memory.place,
                            .rank = s->rank,
                            .peer = -1,
                            .table = -1,
                            .shard = -1,
                            .clock = c->memory.clock };
    if (!take(c, UINT64_MAX - c->memory.time_ns, &passed_ns)) return false;
    c->event.time_ns = c->memory.time_ns += passed_ns;
    if (!take_fields(c)) return false;
    if (s->side == 1) c->event.home = s->rank - c->job.first_server;
    return true;
}

const pli_event *pli_log_cursor_next(pli_log_cursor *c, plait_error *err) {
    static const char *const sides[PLI_SIDES] = { "worker", "server", "copies" };
    while (c->chunk >= 0 && c->at == c->end) {
        c->chunk = c->file->chunk[c->chunk].next;
        if (c->chunk < 0) return NULL;
        c->at = c->file->chunk[c->chunk].begin;
        c->end = c->file->chunk[c->chunk].end;
    }
    if (c->chunk < 0) return NULL;
    const log_side *s = &c->file->stream[c->stream];
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
    pli_free(c);
}
