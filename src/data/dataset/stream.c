/* Batches of one pass over data that may be larger than memory.
 *
 * Each own block has a cursor in its (mapped) text. A clock takes its share of rows from each block, in their own
 * order, so all cursors move together, and the batch is the same that loaded blocks would give without a shuffle.
 * Pages behind a cursor are dropped. There are three ways to read: pli_batches_get parses some clocks of all blocks at
 * once with the pool's threads; pli_stream_part parses one block's share in the thread that is about to train on it,
 * so that it is still in the cache; pli_stream_cut and pli_stream_piece let several threads parse one clock, also where
 * all its rows are of one block. The rows of a pipe that is read while they come are cut in live.c. */
#include <string.h>

#include "data/cache/cache.h"
#include "data/dataset/stream.h"

enum { GROUP_BYTES = 8 << 20, DROP_BYTES = 256 << 10 };

/* --- taking rows from a block ------------------------------------------------------------------------------- */

size_t pli_end_of_rows(const pli_dataset *d, const pli_source *source, size_t from, size_t to, int64_t *rows) {
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

static void drop(const pli_dataset *d, const pli_spot *from, size_t to) {
    pli_source_drop(&d->sources->source[d->segment[from->segment].source], from->at, to);
}

static pli_spot start_of(const pli_dataset *d, int64_t segment, int64_t row) {
    return (pli_spot){ .segment = segment, .row = row, .at = segment < d->segments ? d->segment[segment].from : 0 };
}

/* Gives back the pages of the rows before the cursor, which have been parsed. */
static void drop_behind(const pli_dataset *d, pli_cursor *cursor) {
    const pli_spot *now = &cursor->now;
    pli_spot       *from = &cursor->dropped;
    if (from->row == now->row) return;
    while (from->segment < now->segment) {
        drop(d, from, d->segment[from->segment].to);
        *from = start_of(d, from->segment + 1, from->row);
    }
    if (now->at - from->at < DROP_BYTES && now->row < cursor->rows) return;
    drop(d, from, now->at);
    *from = *now;
    from->at = pli_drop_again(now->at);
}

static plait_status changed(const pli_source *source, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: changed while it is read", source->path);
}

/* Moves the spot over marked rows of its segment, to at most `rows` rows farther. */
static void pass_marked(const pli_dataset *d, int64_t rows, pli_spot *spot) {
    if (d->marks == NULL) return;
    const pli_marks *marks = &d->marks[spot->segment];
    const int64_t    end = spot->segment_row + rows, at = end / PLI_MARK < marks->n ? end / PLI_MARK : marks->n;
    const int64_t    passed = at * PLI_MARK - spot->segment_row;
    if (passed <= 0) return;
    spot->at = marks->at[at - 1];
    spot->segment_row += passed;
    spot->row += passed;
}

/* Moves the spot behind row `end` of its block. */
static plait_status pass_rows(const pli_dataset *d, int32_t block, int64_t end, pli_spot *spot, plait_error *err) {
    while (spot->row < end) {
        if (spot->segment >= pli_segments_of(d, block).to) return changed(&d->sources->source[0], err);
        const pli_segment *segment = &d->segment[spot->segment];
        pass_marked(d, end - spot->row, spot);
        int64_t took = end - spot->row;
        spot->at = pli_end_of_rows(d, &d->sources->source[segment->source], spot->at, segment->to, &took);
        spot->segment_row += took;
        spot->row += took;
        if (spot->row < end) *spot = start_of(d, spot->segment + 1, spot->row);
    }
    return PLAIT_OK;
}

/* Adds the rows of a segment between two spots. */
static plait_status parse_between(const pli_batches *s, const pli_spot *from, const pli_spot *to, pli_slot *slot,
                                  plait_error *err) {
    const pli_dataset *d = s->dataset;
    const pli_segment *segment = &d->segment[from->segment];
    const pli_source  *source = &d->sources->source[segment->source];
    const int64_t      before = slot->rows.b.rows, rows = to->segment_row - from->segment_row;
    PLI_TRY(pli_parse_bytes(d, segment, from->at, to->at, &slot->rows, &slot->found, err));
    if (slot->rows.b.rows - before != rows) return changed(source, err);
    return pli_weigh_rows(&slot->rows, before, rows, source, s->stream->source_row[from->segment] + from->segment_row,
                          err);
}

/* Replaces the contents of the slot by the rows between two spots of a block. */
static plait_status parse_rows(const pli_batches *s, int32_t block, pli_spot from, const pli_spot *to, pli_slot *slot,
                               plait_error *err) {
    const pli_dataset *d = s->dataset;
    const bool         own = block >= d->first && block < d->first + d->own;
    pli_rows          *rows = &slot->rows;
    pli_rows_clear(rows);
    if (!pli_rows_reserve_rows(rows, 1) || !pli_rows_reserve(rows, 1))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a batch");
    rows->b.number = block;
    rows->b.first_row = from.row + (own ? d->rows[block - d->first].b.first_row
                                        : pli_first_row_of(d, block, d->schema->segment_rows));
    if (from.row == to->row) return PLAIT_OK;
    for (; from.segment < to->segment; from = start_of(d, from.segment + 1, 0)) {
        const pli_spot end = { .at = d->segment[from.segment].to,
                               .segment_row = d->schema->segment_rows[from.segment] };
        PLI_TRY(parse_between(s, &from, &end, slot, err));
    }
    PLI_TRY(parse_between(s, &from, to, slot, err));
    if (d->table != NULL) pli_table_fill(d, rows);
    if (d->adds_means && !pli_table_add_sums(d, &slot->sums, rows))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for means");
    return PLAIT_OK;
}

plait_status pli_stream_take(const pli_batches *s, int32_t block, int64_t from, int64_t end, pli_cursor *cursor,
                             pli_slot *slot, plait_error *err) {
    pli_spot begin = cursor->now, to;
    PLI_TRY(pass_rows(s->dataset, block, from, &begin, err));
    to = begin;
    PLI_TRY(pass_rows(s->dataset, block, end, &to, err));
    PLI_TRY(parse_rows(s, block, begin, &to, slot, err));
    cursor->now = to;
    drop_behind(s->dataset, cursor);
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

/* The rows [*from_out, *to_out) of a block that a clock takes, which must be its next ones. */
static plait_status next_rows(const pli_batches *s, int32_t own, int64_t clock, int64_t *from_out, int64_t *to_out,
                              plait_error *err) {
    const pli_cursor *cursor = &s->stream->cursor[own];
    const int64_t     block = s->dataset->first + own;
    *from_out = pli_batches_share(s, block, cursor->rows, clock);
    *to_out = pli_batches_share(s, block, cursor->rows, clock + 1);
    if (*from_out != cursor->now.row)
        return pli_fail(err, PLAIT_EINVAL, "clock %lld of a stream out of order", (long long)clock);
    return PLAIT_OK;
}

plait_status pli_stream_part(pli_batches *s, int64_t clock, int32_t part, int32_t thread, pli_part *part_out,
                             plait_error *err) {
    pli_stream *stream = s->stream;
    int64_t     from, to;
    if (stream == NULL) return loaded_part(s, clock, part, part_out, err);
    if (part < 0 || part >= s->dataset->own || thread < 0 || thread >= stream->slots)
        return pli_fail(err, PLAIT_EINVAL, "part %d, thread %d of a stream", part, thread);
    if (clock >= s->clocks) return PLAIT_END;
    PLI_TRY(next_rows(s, part, clock, &from, &to, err));
    PLI_TRY(pli_stream_take(s, s->dataset->first + part, from, to, &stream->cursor[part], &stream->slot[thread], err));
    *part_out = (pli_part){ .block = &stream->slot[thread].rows.b, .rows = to - from };
    return clock == s->clocks - 1 ? pli_sources_check(s->dataset->sources, err) : PLAIT_OK;
}

/* --- a clock in pieces ------------------------------------------------------------------------------------------ */

plait_status pli_stream_slots(pli_batches *s, int32_t slots, plait_error *err) {
    pli_stream *stream = s->stream;
    if (stream == NULL || slots <= stream->slots) return PLAIT_OK; /* loaded blocks stay where they are */
    pli_slot *slot = pli_realloc(stream->slot, (size_t)slots, sizeof *slot);
    if (slot == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a stream");
    memset(slot + stream->slots, 0, (size_t)(slots - stream->slots) * sizeof *slot);
    stream->slot = slot;
    stream->slots = slots;
    return PLAIT_OK;
}

/* Cuts the next rows of a block, up to its row `end`. */
static plait_status cut_block(pli_batches *s, int32_t own, int64_t end, int64_t piece_rows, plait_error *err) {
    pli_stream *stream = s->stream;
    pli_cursor *cursor = &stream->cursor[own];
    drop_behind(s->dataset, cursor);
    while (cursor->now.row < end) {
        if (!pli_grow((void **)&stream->piece, &stream->piece_capacity, stream->pieces + 1, sizeof *stream->piece))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for a batch");
        pli_piece    *piece = &stream->piece[stream->pieces];
        const int64_t left = end - cursor->now.row;
        *piece = (pli_piece){ .own = own, .from = cursor->now, .to = cursor->now };
        PLI_TRY(pass_rows(s->dataset, s->dataset->first + own,
                          cursor->now.row + (left < piece_rows ? left : piece_rows), &piece->to, err));
        cursor->now = piece->to;
        stream->pieces++;
    }
    return PLAIT_OK;
}

plait_status pli_stream_cut(pli_batches *s, int64_t clock, int32_t most, int32_t *pieces_out, plait_error *err) {
    pli_stream *stream = s->stream;
    int64_t     rows = 0, from, to;
    if (clock >= s->clocks) return PLAIT_END;
    if (most < 1) return pli_fail(err, PLAIT_EINVAL, "a clock in %d pieces", (int)most);
    *pieces_out = s->dataset->own;
    if (stream == NULL) return PLAIT_OK;
    if (stream->live) return pli_live_cut(s, most, pieces_out, err);
    for (int32_t i = 0; i < s->dataset->own; i++) {
        PLI_TRY(next_rows(s, i, clock, &from, &to, err));
        rows += to - from;
    }
    stream->pieces = 0;
    for (int32_t i = 0; i < s->dataset->own; i++) {
        const int64_t n = stream->cursor[i].rows;
        to = pli_batches_share(s, s->dataset->first + i, n, clock + 1);
        PLI_TRY(cut_block(s, i, to, (rows + most - 1) / most, err));
    }
    *pieces_out = stream->pieces;
    return rows == 0 && clock == s->clocks - 1 ? pli_sources_check(s->dataset->sources, err) : PLAIT_OK;
}

plait_status pli_stream_piece(pli_batches *s, int64_t clock, int32_t piece, int32_t slot, pli_part *part_out,
                              plait_error *err) {
    pli_stream *stream = s->stream;
    if (stream == NULL) return loaded_part(s, clock, piece, part_out, err);
    if (piece < 0 || piece >= stream->pieces || slot < 0 || slot >= stream->slots)
        return pli_fail(err, PLAIT_EINVAL, "piece %d, slot %d of a stream", (int)piece, (int)slot);
    const pli_piece *p = &stream->piece[piece];
    PLI_TRY(parse_rows(s, s->dataset->first + p->own, p->from, &p->to, &stream->slot[slot], err));
    *part_out = (pli_part){ .block = &stream->slot[slot].rows.b, .rows = p->to.row - p->from.row };
    return clock == s->clocks - 1 ? pli_sources_check(s->dataset->sources, err) : PLAIT_OK;
}

/* --- some clocks at once ---------------------------------------------------------------------------------------- */

static void take_group(void *user, int64_t i, int32_t thread) {
    pli_batches  *s = user;
    pli_stream   *stream = s->stream;
    const int32_t block = s->dataset->first + (int32_t)i;
    const int64_t n = stream->cursor[i].rows, from = pli_batches_share(s, block, n, stream->first_clock),
                  end = pli_batches_share(s, block, n, stream->first_clock + stream->clocks);
    (void)thread;
    if (s->turn != NULL && end == from) pli_rows_free(&stream->held[i].rows); /* not its turn */
    stream->status[i] = pli_stream_take(s, block, from, end, &stream->cursor[i], &stream->held[i], &stream->error[i]);
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

/* The part of an own block in a clock that is at hand. */
static pli_part held_part(const pli_batches *s, int32_t i, int64_t clock) {
    const pli_stream *stream = s->stream;
    const int64_t     n = stream->cursor[i].rows, block = s->dataset->first + i;
    const int64_t     base = pli_batches_share(s, block, n, stream->first_clock);
    const int64_t     from = pli_batches_share(s, block, n, clock), to = pli_batches_share(s, block, n, clock + 1);
    return (pli_part){ .block = &stream->held[i].rows.b, .first = from - base, .rows = to - from };
}

/* Has the clock at hand; skips: clocks may be left out. */
static plait_status hold_clock(pli_batches *s, int64_t clock, bool skips, plait_error *err) {
    const pli_stream *stream = s->stream;
    const int64_t     next = stream->first_clock + stream->clocks;
    if (clock < stream->first_clock || (clock > next && !skips))
        return pli_fail(err, PLAIT_EINVAL, "clock %lld of a stream out of order", (long long)clock);
    return clock < next ? PLAIT_OK : next_group(s, clock, err);
}

static plait_status get_streamed(pli_batches *s, int64_t epoch, int64_t clock, pli_batch *batch_out, plait_error *err) {
    if (epoch > 0 || clock >= s->clocks) return PLAIT_END;
    PLI_TRY(hold_clock(s, clock, false, err));
    *batch_out = (pli_batch){ .part = s->part, .parts = s->dataset->own };
    for (int32_t i = 0; i < s->dataset->own; i++) {
        s->part[i] = held_part(s, i, clock);
        batch_out->rows += s->part[i].rows;
    }
    return PLAIT_OK;
}

plait_status pli_stream_own_part(pli_batches *s, int32_t own, int64_t clock, pli_part *part_out, plait_error *err) {
    PLI_TRY(hold_clock(s, clock, true, err));
    *part_out = held_part(s, own, clock);
    return PLAIT_OK;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

void pli_stream_free_slot(pli_slot *slot) {
    pli_rows_free(&slot->rows);
    pli_found_free(&slot->found);
    pli_table_free_sums(&slot->sums);
}

static void add_sums(const pli_slot *slot, int64_t column, pli_superacc *sum, int64_t *rows) {
    if (slot->sums.sum == NULL) return;
    pli_superacc_merge(sum, &slot->sums.sum[column]);
    *rows += slot->sums.rows - slot->sums.missing[column];
}

void pli_stream_take_means(const pli_batches *s, pli_schema *schema) {
    const pli_stream *stream = s->stream;
    for (int64_t c = 0; stream != NULL && s->dataset->adds_means && c < schema->columns; c++) {
        pli_superacc sum = { { 0 } };
        int64_t      rows = 0;
        for (int32_t i = 0; i < s->dataset->own; i++) add_sums(&stream->held[i], c, &sum, &rows);
        for (int32_t i = 0; i < stream->slots; i++) add_sums(&stream->slot[i], c, &sum, &rows);
        if (schema->column[c].role == PLI_ROLE_NUMBER) pli_schema_set_mean(&schema->column[c], &sum, rows);
    }
}

void pli_stream_destroy(pli_batches *s) {
    pli_stream *stream = s->stream;
    if (stream == NULL) return;
    if (stream->live) pli_live_rewind(&s->dataset->sources->source[0]);
    for (int32_t i = 0; stream->held != NULL && i < s->dataset->own; i++) pli_stream_free_slot(&stream->held[i]);
    for (int32_t i = 0; stream->slot != NULL && i < stream->slots; i++) pli_stream_free_slot(&stream->slot[i]);
    for (int32_t b = 0; stream->guest != NULL && b < s->dataset->blocks; b++) pli_stream_drop_guest(stream, b);
    pli_free(stream->guest);
    pli_free(stream->cursor);
    pli_free(stream->source_row);
    pli_free(stream->held);
    pli_free(stream->slot);
    pli_free(stream->piece);
    pli_free(stream->error);
    pli_free(stream->status);
    pli_free(stream);
}

static const pli_batches_ops stream_ops = { .get = get_streamed, .destroy = pli_stream_destroy };

bool pli_stream_allocate(pli_batches *s, pli_pool *pool) {
    size_t own = (size_t)s->dataset->own;
    s->part = pli_calloc(own, sizeof *s->part);
    pli_stream *stream = s->stream = pli_calloc(1, sizeof *stream);
    if (stream == NULL) return false;
    stream->pool = pool;
    stream->slots = pli_pool_threads(pool);
    stream->cursor = pli_calloc(own, sizeof *stream->cursor);
    stream->source_row = pli_calloc((size_t)s->dataset->segments, sizeof *stream->source_row);
    stream->held = pli_calloc(own, sizeof *stream->held);
    stream->slot = pli_calloc((size_t)stream->slots, sizeof *stream->slot);
    stream->error = pli_calloc(own, sizeof *stream->error);
    stream->status = pli_calloc(own, sizeof *stream->status);
    return s->part != NULL && stream->cursor != NULL && stream->source_row != NULL && stream->held != NULL &&
           stream->slot != NULL && stream->error != NULL && stream->status != NULL;
}

pli_cursor pli_stream_cursor(const pli_dataset *d, int32_t block) {
    const pli_run_of_segments own = pli_segments_of(d, block);
    pli_cursor                cursor = { .now = start_of(d, own.from, 0), .dropped = start_of(d, own.from, 0) };
    for (int64_t k = own.from; k < own.to; k++) cursor.rows += d->schema->segment_rows[k];
    return cursor;
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
        stream->cursor[i] = pli_stream_cursor(d, d->first + i);
        for (int64_t k = own.from; k < own.to; k++) bytes += d->segment[k].to - d->segment[k].from;
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
    if (!pli_stream_allocate(s, pool)) {
        pli_batches_destroy(&s);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a stream");
    }
    place_cursors(s);
    d->libsvm.base_is_sure = true; /* when a 0 comes late, keys have already been handed out */
    *batches_out = s;
    return PLAIT_OK;
}
