/* From the bytes of a segment to rows. The parsers may read a little beyond a row's end and need a newline at the
 * end, so the last lines of a source are parsed from a copy. */
#include <string.h>

#include "data/dataset/dataset.h"

static plait_status place_error(const pli_dataset *d, const pli_source *source, plait_status status, const pli_bad *bad,
                                size_t at, plait_error *err) {
    if (status == PLAIT_ENOMEM) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory for its rows", source->path);
    if (d->row_bytes > 0) return pli_fail(err, status, "%s: %s", source->path, bad->text);
    return pli_fail(err, status, "%s:%lld: %s", strcmp(source->path, "-") == 0 ? "standard input" : source->path,
                    (long long)pli_source_line(source, at), bad->text);
}

/* Parses the lines from `from` to the source's end, from a copy that ends as the parsers need it. */
static plait_status parse_tail(const pli_dataset *d, const pli_source *source, size_t from, size_t to, pli_rows *rows,
                               pli_found *found, plait_error *err) {
    size_t         bytes = to - from;
    unsigned char *copy = pli_malloc(bytes + 1 + PLI_PARSE_PAD);
    pli_bad        bad = { 0 };
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory for its last lines", source->path);
    memcpy(copy, source->data + from, bytes);
    memset(copy + bytes, 0, 1 + PLI_PARSE_PAD);
    if (bytes > 0 && copy[bytes - 1] != '\n') copy[bytes++] = '\n';
    plait_status status = d->reader->parse(d->rules, copy, copy + bytes, rows, found, &bad);
    if (status < 0)
        status = place_error(d, source, status, &bad, bad.at != NULL ? from + (size_t)(bad.at - copy) : from, err);
    pli_free(copy);
    return status;
}

plait_status pli_parse_bytes(const pli_dataset *d, const pli_segment *segment, size_t from, size_t to, pli_rows *rows,
                             pli_found *found, plait_error *err) {
    const pli_source *source = &d->sources->source[segment->source];
    size_t            safe = to;
    pli_bad           bad = { 0 };
    /* libsvm's parser refuses a NUL by itself; in a cell or a name it would end the text. */
    const bool           whole = (d->table != NULL && d->npy == NULL) || d->chars != NULL || d->vw != NULL;
    const unsigned char *nul = whole ? memchr(source->data + from, 0, to - from) : NULL;
    if (nul != NULL) return pli_source_found_nul(source, (size_t)(nul - source->data), err);
    /* Find the last newline with enough bytes behind it; the tail begins there. */
    if (d->row_bytes == 0 && source->bytes - to < PLI_PARSE_PAD) {
        size_t               limit = source->bytes > PLI_PARSE_PAD ? source->bytes - PLI_PARSE_PAD : 0;
        const unsigned char *newline = limit > from ? memrchr(source->data + from, '\n', limit - from) : NULL;
        safe = newline != NULL ? (size_t)(newline + 1 - source->data) : from;
    }
    if (safe > from) {
        plait_status status = d->reader->parse(d->rules, source->data + from, source->data + safe, rows, found, &bad);
        if (status < 0)
            return place_error(d, source, status, &bad, bad.at != NULL ? (size_t)(bad.at - source->data) : from, err);
    }
    return safe < to ? parse_tail(d, source, safe, to, rows, found, err) : PLAIT_OK;
}

plait_status pli_parse_block(const pli_dataset *d, int32_t block, pli_rows *rows, pli_found *found,
                             int64_t *segment_rows, plait_error *err) {
    const pli_run_of_segments own = pli_segments_of(d, block);
    for (int64_t i = own.from; i < own.to; i++) {
        const pli_segment *segment = &d->segment[i];
        int64_t            before = rows->b.rows;
        PLI_TRY(pli_parse_bytes(d, segment, segment->from, segment->to, rows, found, err));
        segment_rows[i] = rows->b.rows - before;
        for (int64_t r = before; rows->b.query != NULL && r < rows->b.rows; r++) /* files have queries of their own */
            if (rows->b.query[r] != 0) rows->b.query[r] |= (uint64_t)segment->source << PLI_QUERY_BITS;
        pli_source_drop(&d->sources->source[segment->source], segment->from, segment->to);
    }
    return PLAIT_OK;
}
