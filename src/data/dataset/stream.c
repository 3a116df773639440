/* Batches of one pass over data that may be larger than memory.
 *
 * Each own block has a cursor in its (mapped) text. A clock takes its share of rows from each block, in their own
 * order, so all cursors move together, and the batch is the same that loaded blocks would give without a shuffle.
 * Pages behind a cursor are dropped. There are two ways to read: pli_batches_get parses some clocks of all blocks at
 * once with the pool's threads; pli_stream_part parses one block's share in the thread that is about to train on it,
 * so that it is still in the cache. */
#include <string.h>

#include "data/cache/cache.h"
#include "data/dataset/batches.h"
#include "data/formats/table/table.h"

enum { GROUP_BYTES = 8 << 20, DROP_BYTES = 256 << 10 };

/* How far reading a block has come. Written by the thread that reads the block. */
typedef struct pli_cursor {
    int64_t segment, segment_row; /* rows taken of the segment */
    size_t  at, dropped;          /* places in its source */
    int64_t row, rows;            /* rows taken of the block, and all its rows */
} pli_cursor;

typedef struct pli_stream {
    pli_pool     *pool;
    int32_t       threads;
    pli_cursor   *cursor;                     /* [own] */
    int64_t      *source_row;                 /* [segments] how many rows of the source come before each */
    pli_rows     *held;                       /* [own] the rows of the clocks at hand, for get */
    pli_rows     *scratch;                    /* [threads] for part                      */
    bool          slotted;                    /* each part has memory of its own there   */
    pli_found    *found;                      /* [own]                                   */
    int64_t       first_clock, clocks, group; /* the clocks at hand; how many clocks to take at once */
    plait_error  *error;                      /* [own] */
    plait_status *status;                     /* [own] */
} pli_stream;

/* --- taking rows from a block ------------------------------------------------------------------------------- */

/* The place behind the last of up to *rows rows from `from` on; *rows becomes the number found. */
static size_t end_of_rows(const pli_dataset *d, const pli_source *source, size_t from, size_t to, int64_t *rows) {
    const unsigned char *p = source->data + from, *end = source->data + to;
    int64_t              n = 0;
    if (d->row_bytes > 0) {
        const int64_t left = (int64_t)((to - from + d->row_bytes - 1) / d->row_bytes);
        if (*rows >= left) {
            *rows = left;
            return to;
        }
        return from + (size_t)*rows * d->row_bytes;
    }
    while (n < *rows && (p = d->reader->row(p, end)) < end) {
        const unsigned char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline != NULL ? newline + 1 : end;
        n++;
    }
    *rows = n;
    return (size_t)(p - source->data);
}

static void drop_behind(const pli_source *source, pli_cursor *cursor, bool all) {
    if (!all && cursor->at - cursor->dropped < DROP_BYTES) return;
    pli_source_drop(source, cursor->dropped, cursor->at);
    cursor->dropped = pli_drop_again(cursor->at);
}

/* Adds rows of the segment at the cursor to `rows`, at most `want`; *took_out is how many. */
static plait_status take_from_segment(pli_batches *s, pli_cursor *cursor, int64_t want, pli_rows *rows,
                                      pli_found *found, int64_t *took_out, plait_error *err) {
    const pli_dataset *d = s->dataset;
    const pli_segment *segment = &d->segment[cursor->segment];
    const pli_source  *source = &d->sources->source[segment->source];
    int64_t            before = rows->b.rows, took = want;
    size_t             end = end_of_rows(d, source, cursor->at, segment->to, &took);
    PLI_TRY(pli_parse_bytes(d, segment, cursor->at, end, rows, found, err));
    if (rows->b.rows - before != took)
        return pli_fail(err, PLAIT_EFORMAT, "%s: changed while it is read", source->path);
    PLI_TRY(
        pli_weigh_rows(rows, before, took, source, s->stream->source_row[cursor->segment] + cursor->segment_row, err));
    cursor->at = end;
    cursor->segment_row += took;
    drop_behind(source, cursor, end >= segment->to);
    *took_out = took;
    return PLAIT_OK;
}

static void enter_segment(const pli_dataset *d, pli_cursor *cursor, int64_t segment) {
    cursor->segment = segment;
    cursor->segment_row = 0;
    if (segment < d->segments) cursor->at = cursor->dropped = d->segment[segment].from;
}

/* Replaces the contents of `rows` by the block's next rows, up to its row `end`. */
static plait_status take_rows(pli_batches *s, int32_t own, int64_t end, pli_rows *rows, plait_error *err) {
    const pli_dataset *d = s->dataset;
    pli_cursor        *cursor = &s->stream->cursor[own];
    pli_rows_clear(rows);
    if (!pli_rows_reserve_rows(rows, 1) || !pli_rows_reserve(rows, 1))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a batch");
    rows->b.number = d->first + own;
    rows->b.first_row = d->rows[own].b.first_row + cursor->row;
    while (cursor->row < end) {
        int64_t took = 0;
        if (cursor->segment >= pli_segments_of(d, d->first + own).to)
            return pli_fail(err, PLAIT_EFORMAT, "%s: changed while it is read", d->sources->source[0].path);
        PLI_TRY(take_from_segment(s, cursor, end - cursor->row, rows, &s->stream->found[own], &took, err));
        cursor->row += took;
        if (cursor->row < end) enter_segment(d, cursor, cursor->segment + 1);
    }
    if (d->table != NULL) pli_table_fill(d, rows);
    return PLAIT_OK;
}

/* --- a clock's part in the calling thread --------------------------------------------------------------------- */

/* The same for blocks that are in memory already (a cache). */
static plait_status loaded_part(pli_batches *s, int64_t clock, int32_t part, pli_part *part_out, plait_error *err) {
    if (s->shuffle || part < 0 || part >= s->dataset->own)
        return pli_fail(err, PLAIT_EINVAL, "part %d of a stream", part);
    if (clock >= s->clocks) return PLAIT_END;
    const pli_block *block = &s->dataset->rows[part].b;
    const int64_t    from = pli_batches_share(s, block->number, block->rows, clock),
                     to = pli_batches_share(s, block->number, block->rows, clock + 1);
    *part_out = (pli_part){ .block = block, .first = from, .rows = to - from };
    return clock == s->clocks - 1 ? pli_datacache_check(s->dataset, err) : PLAIT_OK;
}

plait_status pli_stream_part(pli_batches *s, int64_t clock, int32_t part, int32_t thread, pli_part *part_out,
                             plait_error *err) {
    pli_stream *stream = s->stream;
    if (stream == NULL) return loaded_part(s, clock, part, part_out, err);
    if (part < 0 || part >= s->dataset->own || thread < 0 || thread >= stream->threads)
        return pli_fail(err, PLAIT_EINVAL, "part %d, thread %d of a stream", part, thread);
    if (clock >= s->clocks) return PLAIT_END;
    pli_cursor *cursor = &stream->cursor[part];
    int64_t     block = s->dataset->first + part, n = cursor->rows;
    int64_t from = pli_batches_share(s, block, n, clock), to = pli_batches_share(s, block, n, clock + 1);
    if (from != cursor->row)
        return pli_fail(err, PLAIT_EINVAL, "clock %lld of a stream out of order", (long long)clock);
    if (s->turn != NULL && stream->slotted && from == to) pli_rows_free(&stream->scratch[thread]);
    PLI_TRY(take_rows(s, part, to, &stream->scratch[thread], err));
    *part_out = (pli_part){ .block = &stream->scratch[thread].b, .rows = to - from };
    return clock == s->clocks - 1 ? pli_sources_check(s->dataset->sources, err) : PLAIT_OK;
}

plait_status pli_stream_slots(pli_batches *s, int32_t slots, plait_error *err) {
    pli_stream *stream = s->stream;
    if (stream == NULL || slots <= stream->threads) return PLAIT_OK; /* loaded blocks stay where they are */
    pli_rows *scratch = pli_realloc(stream->scratch, (size_t)slots, sizeof *scratch);
    if (scratch == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a stream");
    memset(scratch + stream->threads, 0, (size_t)(slots - stream->threads) * sizeof *scratch);
    stream->scratch = scratch;
    stream->threads = slots;
    stream->slotted = true;
    return PLAIT_OK;
}

/* --- some clocks at once ---------------------------------------------------------------------------------------- */

static void take_group(void *user, int64_t i, int32_t thread) {
    pli_batches *s = user;
    pli_stream  *stream = s->stream;
    int64_t      end = pli_batches_share(s, s->dataset->first + i, stream->cursor[i].rows,
                                         stream->first_clock + stream->clocks);
    (void)thread;
    if (s->turn != NULL && end == stream->cursor[i].row) pli_rows_free(&stream->held[i]); /* its turn is not now */
    stream->status[i] = take_rows(s, (int32_t)i, end, &stream->held[i], &stream->error[i]);
}

static plait_status next_group(pli_batches *s, int64_t clock, plait_error *err) {
    pli_stream *stream = s->stream;
    stream->first_clock = clock;
    stream->clocks = stream->group < s->clocks - clock ? stream->group : s->clocks - clock;
    pli_pool_for(stream->pool, s->dataset->own, take_group, s);
    for (int32_t i = 0; i < s->dataset->own; i++) {
        if (stream->status[i] >= 0) continue;
        if (err != NULL) *err = stream->error[i];
        stream->clocks = 0;
        return stream->status[i];
    }
    return clock + stream->clocks == s->clocks ? pli_sources_check(s->dataset->sources, err) : PLAIT_OK;
}

static plait_status get_streamed(pli_batches *s, int64_t epoch, int64_t clock, pli_batch *batch_out, plait_error *err) {
    pli_stream *stream = s->stream;
    if (epoch > 0 || clock >= s->clocks) return PLAIT_END;
    int64_t next = stream->first_clock + stream->clocks;
    if (clock < stream->first_clock || clock > next)
        return pli_fail(err, PLAIT_EINVAL, "clock %lld of a stream out of order", (long long)clock);
    if (clock == next) PLI_TRY(next_group(s, clock, err));
    *batch_out = (pli_batch){ .part = s->part, .parts = s->dataset->own };
    for (int32_t i = 0; i < s->dataset->own; i++) {
        int64_t n = stream->cursor[i].rows, block = s->dataset->first + i;
        int64_t base = pli_batches_share(s, block, n, stream->first_clock);
        int64_t from = pli_batches_share(s, block, n, clock), to = pli_batches_share(s, block, n, clock + 1);
        s->part[i] = (pli_part){ .block = &stream->held[i].b, .first = from - base, .rows = to - from };
        batch_out->rows += to - from;
    }
    return PLAIT_OK;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void destroy_stream(pli_batches *s) {
    pli_stream *stream = s->stream;
    if (stream == NULL) return;
    for (int32_t i = 0; i < s->dataset->own; i++) {
        if (stream->held != NULL) pli_rows_free(&stream->held[i]);
        if (stream->found != NULL) pli_found_free(&stream->found[i]);
    }
    for (int32_t i = 0; stream->scratch != NULL && i < stream->threads; i++) pli_rows_free(&stream->scratch[i]);
    pli_free(stream->cursor);
    pli_free(stream->source_row);
    pli_free(stream->held);
    pli_free(stream->scratch);
    pli_free(stream->found);
    pli_free(stream->error);
    pli_free(stream->status);
    pli_free(stream);
}

static const pli_batches_ops stream_ops = { .get = get_streamed, .destroy = destroy_stream };

static bool allocate(pli_batches *s, pli_pool *pool) {
    size_t own = (size_t)s->dataset->own;
    s->part = pli_calloc(own, sizeof *s->part);
    pli_stream *stream = s->stream = pli_calloc(1, sizeof *stream);
    if (stream == NULL) return false;
    stream->pool = pool;
    stream->threads = pli_pool_threads(pool);
    stream->cursor = pli_calloc(own, sizeof *stream->cursor);
    stream->source_row = pli_calloc((size_t)s->dataset->segments, sizeof *stream->source_row);
    stream->held = pli_calloc(own, sizeof *stream->held);
    stream->scratch = pli_calloc((size_t)stream->threads, sizeof *stream->scratch);
    stream->found = pli_calloc(own, sizeof *stream->found);
    stream->error = pli_calloc(own, sizeof *stream->error);
    stream->status = pli_calloc(own, sizeof *stream->status);
    return s->part != NULL && stream->cursor != NULL && stream->source_row != NULL && stream->held != NULL &&
           stream->scratch != NULL && stream->found != NULL && stream->error != NULL && stream->status != NULL;
}

static void place_cursors(pli_batches *s) {
    pli_dataset *d = s->dataset;
    pli_stream  *stream = s->stream;
    size_t       bytes = 0;
    for (int64_t i = 1; i < d->segments; i++)
        if (d->segment[i].source == d->segment[i - 1].source)
            stream->source_row[i] = stream->source_row[i - 1] + d->schema->segment_rows[i - 1];
    for (int32_t i = 0; i < d->own; i++) {
        const pli_run_of_segments own = pli_segments_of(d, d->first + i);
        enter_segment(d, &stream->cursor[i], own.from);
        for (int64_t k = own.from; k < own.to; k++) {
            stream->cursor[i].rows += d->schema->segment_rows[k];
            bytes += d->segment[k].to - d->segment[k].from;
        }
    }
    double clock_bytes = (double)bytes / (double)s->clocks; /* bytes of the own text in a clock */
    stream->group = clock_bytes > 0 ? (int64_t)(GROUP_BYTES / clock_bytes) : 1;
    if (stream->group < 1) stream->group = 1;
}

plait_status pli_batches_stream(pli_dataset *d, int64_t b, pli_pool *pool, pli_batches **batches_out,
                                plait_error *err) {
    if (b < 1) return pli_fail(err, PLAIT_EINVAL, "a batch of %lld rows: expected at least 1", (long long)b);
    if (d->loaded && d->agreed)
        return pli_batches_create(d, 0, (d->schema->rows + b - 1) / b, false, NULL, NULL, batches_out, err);
    if (!d->scanned || !d->agreed)
        return pli_fail(err, PLAIT_EINVAL, "a stream needs a data set that was scanned and agreed on");
    pli_batches *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a stream");
    *s = (pli_batches){ .ops = &stream_ops, .dataset = d, .clocks = (d->schema->rows + b - 1) / b };
    if (!allocate(s, pool)) {
        pli_batches_destroy(&s);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a stream");
    }
    place_cursors(s);
    d->libsvm.base_is_sure = true; /* when a 0 comes late, keys have already been handed out */
    *batches_out = s;
    return PLAIT_OK;
}
