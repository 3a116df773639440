/* Batches of a pipe whose rows are taken as they come (source/live.c). A clock has the rows that are there when it
 * begins, about a MiB of text at most; if there are none, it waits. So how many clocks there are depends on time. */
#include <string.h>

#include "data/dataset/stream.h"

#define ENDLESS (INT64_C(1) << 60) /* clocks, as long as nobody knows how many */

static plait_status take_piece(pli_batches *s, size_t from, size_t to, plait_error *err) {
    pli_stream *stream = s->stream;
    int64_t     rows = INT64_MAX;
    if (!pli_grow((void **)&stream->piece, &stream->piece_capacity, stream->pieces + 1, sizeof *stream->piece))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a batch");
    (void)pli_end_of_rows(s->dataset, &s->dataset->sources->source[0], from, to, &rows);
    const pli_spot first = { .at = from, .row = stream->rows, .segment_row = stream->rows };
    stream->rows += rows;
    const pli_spot last = { .at = to, .row = stream->rows, .segment_row = stream->rows };
    stream->piece[stream->pieces++] = (pli_piece){ .own = 0, .from = first, .to = last };
    return PLAIT_OK;
}

plait_status pli_live_cut(pli_batches *s, int32_t most, int32_t *pieces_out, plait_error *err) {
    const pli_dataset *d = s->dataset;
    pli_source        *source = &d->sources->source[0];
    size_t             from = 0, to = 0;
    s->stream->pieces = *pieces_out = 0;
    plait_status status = pli_live_next(source, d->segment[0].from, s->stream->stop, &from, &to, err);
    if (status == PLAIT_END) s->stream->ended = pli_live_has_ended(source->live);
    if (status != PLAIT_OK) return status;
    for (const size_t share = (to - from + (size_t)most - 1) / (size_t)most; from < to;) {
        const unsigned char *newline = NULL;
        if (to - from > share) newline = memchr(source->data + from + share, '\n', to - from - share);
        const size_t end = newline != NULL ? (size_t)(newline + 1 - source->data) : to;
        PLI_TRY(take_piece(s, from, end, err));
        from = end;
    }
    *pieces_out = s->stream->pieces;
    return PLAIT_OK;
}

static plait_status get(pli_batches *s, int64_t epoch, int64_t clock, pli_batch *batch_out, plait_error *err) {
    int32_t pieces = 0;
    if (epoch > 0) return PLAIT_END;
    s->part[0] = (pli_part){ .block = &s->stream->slot[0].rows.b };
    if (pli_live_cut(s, 1, &pieces, err) < 0) return err->code;
    if (pieces > 0) PLI_TRY(pli_stream_piece(s, clock, 0, 0, &s->part[0], err));
    *batch_out = (pli_batch){ .part = s->part, .parts = 1, .rows = s->part[0].rows };
    return PLAIT_OK;
}

static const pli_batches_ops live_ops = { .get = get, .destroy = pli_stream_destroy };

plait_status pli_batches_live(pli_dataset *d, const int *stop, pli_pool *pool, pli_batches **batches_out,
                              plait_error *err) {
    if (!pli_dataset_is_live(d) || !d->scanned || !d->agreed)
        return pli_fail(err, PLAIT_EINVAL, "a live stream needs a pipe whose front was scanned and agreed on");
    pli_batches *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a stream");
    *s = (pli_batches){ .ops = &live_ops, .dataset = d, .clocks = ENDLESS };
    if (!pli_stream_allocate(s, pool)) {
        pli_batches_destroy(&s);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a stream");
    }
    s->stream->live = true;
    s->stream->stop = stop;
    d->libsvm.base_is_sure = true;
    *batches_out = s;
    return PLAIT_OK;
}

bool pli_dataset_is_live(const pli_dataset *d) {
    return d->sources != NULL && d->sources->n == 1 && d->sources->source[0].live != NULL;
}

bool pli_stream_waits(const pli_batches *s, int ms) {
    return pli_live_waits(s->dataset->sources->source[0].live, ms);
}

bool pli_stream_has_ended(const pli_batches *s) { return s->stream->ended; }

int64_t pli_stream_rows(const pli_batches *s) { return s->stream->rows; }

/* Only libsvm rows by index bring new features; those of all other rows are known from the front. */
static bool grows(const pli_dataset *d) { return d->reader == &pli_libsvm_reader && d->schema->hash_bits == 0; }

uint64_t pli_stream_features(const pli_batches *s) {
    const pli_dataset *d = s->dataset;
    uint64_t           n = pli_schema_keys(d->schema);
    for (int32_t i = 0; grows(d) && i < s->stream->slots; i++) {
        const pli_found *found = &s->stream->slot[i].found;
        const uint64_t   own = found->any_index ? found->max_index - (uint64_t)d->schema->index_base + 1 : 0;
        n = own > n ? own : n;
    }
    return n;
}

int64_t pli_stream_unknown_texts(const pli_batches *s) {
    int64_t n = 0;
    for (int32_t i = 0; i < s->stream->slots; i++) n += s->stream->slot[i].found.unknown_texts;
    return n;
}

void pli_stream_describe(const pli_batches *s, pli_schema *schema) {
    schema->rows = s->stream->rows;
    if (!grows(s->dataset)) return;
    schema->max_index = pli_stream_features(s) + (uint64_t)schema->index_base - 1;
    pli_schema_number(schema);
}

plait_status pli_dataset_wait_for_more(pli_dataset *d, plait_error *err) {
    return pli_live_more(&d->sources->source[0], false, err);
}
