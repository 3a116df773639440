/* A pipe whose rows are taken as they come.
 *
 * Its *front* is received first: what the data are, their labels and their units, is found there. The front ends when
 * FRONT_BYTES have come, or PATIENCE_NS after its first lines, so a slow writer's rows are not held back for long. A
 * pipe that has ended by then is a source as any other. Behind the front, whole lines are handed out as they arrive,
 * from one buffer that is used again; the front stays, since names of features are looked up in it at the end. */
#include <string.h>

#include "data/formats/number.h"
#include "data/source/source.h"

enum { FRONT_BYTES = 16 << 20, READ_BYTES = 256 << 10, TAKE_BYTES = 1 << 20, WAIT_MS = 100, FRONT_LINES = 2 };
#define PATIENCE_NS UINT64_C(500000000)

struct pli_live {
    pli_intake     in; /* into the spool */
    int            fd;
    bool           ended;
    size_t         received;          /* bytes in the spool */
    int64_t        lines;             /* newlines among them */
    bool           began;             /* lines were handed out */
    const unsigned char *front;       /* [front_bytes] its whole lines */
    size_t         front_bytes, at;   /* at: handed out before it */
    unsigned char *buffer;            /* [held] behind the front; [0, taken) was handed out last */
    int64_t        held, capacity, taken;
};

static int64_t newlines(const unsigned char *data, size_t bytes) {
    int64_t n = 0;
    for (const unsigned char *p = data, *end = data + bytes; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) n++;
    return n;
}

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to receive data");
}

/* Room for READ_BYTES more, and for parsers that read a little beyond. */
static bool reserve(pli_live *live) {
    return pli_grow((void **)&live->buffer, &live->capacity, live->held + READ_BYTES + PLI_PARSE_PAD, 1);
}

/* Reads what is there, at most READ_BYTES, behind the held bytes. It may wait. */
static plait_status read_some(pli_live *live, size_t *got_out, plait_error *err) {
    if (!reserve(live)) return no_memory(err);
    plait_status status = pli_pipe_read(live->fd, live->buffer + live->held, READ_BYTES, got_out, err);
    if (status == PLAIT_EIO) pli_fail_at(err, "%s", live->in.name);
    if (status == PLAIT_OK && *got_out == 0) live->ended = true;
    return status;
}

/* --- the front ---------------------------------------------------------------------------------------------------- */

/* Receives up to `bytes` in all; lines > 0: not longer than PATIENCE_NS after so many lines are there. */
static plait_status fill(pli_live *live, size_t bytes, int64_t lines, plait_error *err) {
    uint64_t until_ns = 0;
    while (!live->ended && live->received < bytes) {
        const uint64_t now_ns = pli_now_ns();
        if (lines > 0 && until_ns == 0 && live->lines >= lines) until_ns = now_ns + PATIENCE_NS;
        if (until_ns != 0 && now_ns >= until_ns) return PLAIT_OK;
        const int ms = until_ns != 0 ? 1 + (int)((until_ns - now_ns) / 1000000) : -1;
        size_t    got = 0;
        if (!pli_pipe_is_ready(live->fd, ms)) continue;
        PLI_TRY(read_some(live, &got, err));
        PLI_TRY(pli_intake_add(&live->in, live->buffer, got, err));
        live->received += got;
        live->lines += newlines(live->buffer, got);
    }
    return PLAIT_OK;
}

plait_status pli_live_open(int fd, const char *name, pli_spool *spool, pli_live **live_out, plait_error *err) {
    pli_live *live = pli_calloc(1, sizeof *live);
    if (live == NULL) {
        pli_pipe_close(fd);
        return no_memory(err);
    }
    live->in = (pli_intake){ .name = name, .spool = spool };
    live->fd = fd;
    *live_out = live;
    return fill(live, FRONT_BYTES, FRONT_LINES, err);
}

/* What follows the front's last newline waits in the buffer. */
static plait_status cut(pli_live *live, pli_source *source, plait_error *err) {
    const unsigned char *newline = memrchr(source->data, '\n', source->bytes);
    const size_t         whole = newline != NULL ? (size_t)(newline + 1 - source->data) : 0;
    live->held = 0;
    if (!pli_grow((void **)&live->buffer, &live->capacity, (int64_t)(source->bytes - whole) + PLI_PARSE_PAD, 1))
        return no_memory(err);
    memcpy(live->buffer, source->data + whole, source->bytes - whole);
    live->held = (int64_t)(source->bytes - whole);
    live->front = source->data;
    live->front_bytes = source->bytes = whole;
    return PLAIT_OK;
}

plait_status pli_live_take_front(pli_source *source, plait_error *err) {
    PLI_TRY(pli_spool_end(source->spool, &source->data, &source->bytes, err));
    source->droppable = pli_spool_is_file(source->spool);
    if (!source->live->ended) return cut(source->live, source, err);
    pli_live_close(&source->live);
    return PLAIT_OK;
}

plait_status pli_live_more(pli_source *source, bool all, plait_error *err) {
    source->live->held = 0; /* the spool has it */
    const pli_live *live = source->live;
    const int64_t   lines = all || live->received >= FRONT_BYTES ? 0 : live->lines + 1;
    PLI_TRY(fill(source->live, all ? SIZE_MAX : 2 * live->received, lines, err));
    return pli_live_take_front(source, err);
}

/* --- what comes --------------------------------------------------------------------------------------------------- */

static bool has_line(const pli_live *live) {
    return live->held > 0 && memrchr(live->buffer, '\n', (size_t)live->held) != NULL;
}

static plait_status check_length(const pli_live *live, const pli_source *source, plait_error *err) {
    if (live->held <= PLI_LINE_BYTES_MAX) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "%s:%lld: a line is longer than %d MiB, the limit for a row", live->in.name,
                    (long long)source->lines_before + 1, PLI_LINE_BYTES_MAX >> 20);
}

/* Receives until there is a line, then what is there without a wait. true in *stopped_out: it was told to stop. */
static plait_status receive(pli_live *live, const pli_source *source, const int *stop, bool *stopped_out,
                            plait_error *err) {
    bool line = has_line(live);
    while (!live->ended) {
        size_t got = 0;
        if (line && (live->held >= TAKE_BYTES || !pli_pipe_is_ready(live->fd, 0))) return PLAIT_OK;
        *stopped_out = stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
        if (*stopped_out) return PLAIT_OK;
        if (!line && !pli_pipe_is_ready(live->fd, WAIT_MS)) continue;
        PLI_TRY(read_some(live, &got, err));
        line = line || (got > 0 && memchr(live->buffer + live->held, '\n', got) != NULL);
        live->held += (int64_t)got;
        if (!line) PLI_TRY(check_length(live, source, err));
    }
    return PLAIT_OK;
}

/* The next lines of the front. */
static void take_front(pli_live *live, const pli_source *source, size_t *from_out, size_t *to_out) {
    const size_t         from = live->at, left = live->front_bytes - from;
    const unsigned char *newline = NULL;
    if (left > TAKE_BYTES) newline = memchr(source->data + from + TAKE_BYTES, '\n', left - TAKE_BYTES);
    *from_out = from;
    *to_out = live->at = newline != NULL ? (size_t)(newline + 1 - source->data) : live->front_bytes;
}

plait_status pli_live_next(pli_source *source, size_t begin, const int *stop, size_t *from_out, size_t *to_out,
                           plait_error *err) {
    pli_live *live = source->live;
    bool      stopped = false;
    if (!live->began) live->at = begin;
    live->began = true;
    if (live->at < live->front_bytes) {
        take_front(live, source, from_out, to_out);
        return PLAIT_OK;
    }
    const size_t taken = source->data == live->front ? live->front_bytes : (size_t)live->taken;
    source->lines_before += newlines(source->data, taken);
    memmove(live->buffer, live->buffer + live->taken, (size_t)(live->held - live->taken));
    live->held -= live->taken;
    live->taken = 0;
    source->data = live->buffer;
    source->bytes = 0;
    PLI_TRY(receive(live, source, stop, &stopped, err));
    if (stopped || live->held == 0) return PLAIT_END;
    const unsigned char *newline = live->ended ? NULL : memrchr(live->buffer, '\n', (size_t)live->held);
    live->taken = newline != NULL ? newline + 1 - live->buffer : live->held;
    source->data = live->buffer; /* it may have moved */
    source->bytes = (size_t)live->held;
    *from_out = 0;
    *to_out = (size_t)live->taken;
    return PLAIT_OK;
}

bool pli_live_waits(const pli_live *live, int ms) {
    if (live->ended || live->at < live->front_bytes || !live->began) return false;
    const int64_t left = live->held - live->taken;
    if (left > 0 && memchr(live->buffer + live->taken, '\n', (size_t)left) != NULL) return false;
    return !pli_pipe_is_ready(live->fd, ms);
}

bool pli_live_has_ended(const pli_live *live) {
    return live->ended && live->at == live->front_bytes && live->held == live->taken;
}

void pli_live_rewind(pli_source *source) {
    source->data = source->live->front;
    source->bytes = source->live->front_bytes;
    source->lines_before = 0;
}

void pli_live_close(pli_live **live) {
    if (*live == NULL) return;
    pli_pipe_close((*live)->fd);
    pli_free((*live)->buffer);
    pli_free(*live);
    *live = NULL;
}
