/* Cuts the sources into pieces and segments, at newlines or at rows of equal length. Each piece becomes a block. */
#include <string.h>

#include "data/dataset/dataset.h"

/* If all rows were one text: sets where each source would begin, and returns the length. */
static size_t total_bytes(const pli_sources *sources, const size_t *begin, size_t *start) {
    size_t total = 0;
    for (int64_t i = 0; i < sources->n; i++) {
        start[i] = total;
        total += sources->source[i].bytes - begin[i];
    }
    start[sources->n] = total;
    return total;
}

/* The source that holds a place, start[it] <= at < start[it + 1]; the last source if none does. */
static int64_t source_at(const pli_sources *sources, const size_t *start, size_t at) {
    int64_t low = 0, high = sources->n;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (start[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The first place at or behind `at` where a row of row_bytes begins. */
static size_t next_row(const pli_dataset *d, const size_t *start, size_t at) {
    const int64_t source = source_at(d->sources, start, at);
    const size_t  row = start[source] + (at - start[source] + d->row_bytes - 1) / d->row_bytes * d->row_bytes;
    return row < start[source + 1] ? row : start[source + 1];
}

/* The first place at or behind `at` of the whole text where a line begins. */
static size_t next_line(const pli_sources *sources, const size_t *begin, const size_t *start, size_t at) {
    const int64_t     low = source_at(sources, start, at);
    const pli_source *source = &sources->source[low];
    if (at == start[low] || at >= start[sources->n]) return at;
    const unsigned char *from = source->data + begin[low] + (at - start[low]), *end = source->data + source->bytes;
    const unsigned char *newline = memchr(from - 1, '\n', (size_t)(end - from) + 1);
    return newline != NULL ? start[low] + (size_t)(newline + 1 - source->data - begin[low]) : start[low + 1];
}

static size_t behind_query(const pli_dataset *d, const size_t *start, size_t at) {
    const int64_t i = source_at(d->sources, start, at);
    if (at == start[i] || at >= start[d->sources->n]) return at;
    return start[i] + pli_query_end(&d->sources->source[i], d->begin[i], d->begin[i] + at - start[i]) - d->begin[i];
}

/* The share at/parts of total, without overflow. */
static size_t share(size_t total, int32_t at, int32_t parts) {
    return (size_t)((unsigned __int128)total * (uint32_t)at / (uint32_t)parts);
}

static void add_segments(pli_dataset *d, const size_t *start, int32_t piece, size_t from, size_t to) {
    for (int32_t i = 0; i < d->sources->n; i++) {
        size_t low = from > start[i] ? from : start[i], high = to < start[i + 1] ? to : start[i + 1];
        size_t begin = d->begin[i];
        if (low < high)
            d->segment[d->segments++] = (pli_segment){ piece, i, low - start[i] + begin, high - start[i] + begin };
    }
}

void pli_dataset_own(pli_dataset *d) {
    const int32_t next = d->worker < d->workers ? d->worker + 1 : d->workers, me = d->worker < next ? d->worker : next;
    d->first = (int32_t)share((size_t)d->blocks, me, d->workers);
    d->own = (int32_t)share((size_t)d->blocks, next, d->workers) - d->first;
}

int32_t pli_dataset_home(const pli_dataset *d, int32_t block) {
    int32_t worker = (int32_t)share((size_t)d->workers, block, d->blocks); /* the quotients round, so it may be one
                                                                            * worker too many or too few */
    while (worker > 0 && (int32_t)share((size_t)d->blocks, worker, d->workers) > block) worker--;
    while ((int32_t)share((size_t)d->blocks, worker + 1, d->workers) <= block) worker++;
    return worker;
}

int32_t pli_blocks_for(uint64_t bytes) {
    int32_t blocks = PLI_MIN_BLOCKS;
    while (blocks < PLI_OWN_BLOCKS && bytes > (uint64_t)blocks * PLI_BLOCK_BYTES) blocks *= 2;
    return blocks;
}

static int32_t count_blocks(const pli_dataset *d, uint64_t bytes) {
    return d->sources->is_pipe ? 1 : d->asked > 0 ? d->asked : pli_blocks_for(bytes);
}

plait_status pli_dataset_cut(pli_dataset *d, plait_error *err) {
    int64_t n = d->sources->n;
    if (n > INT32_MAX) return pli_fail(err, PLAIT_EINVAL, "more than 2^31 files");
    if (d->sources->is_pipe && d->asked > 0)
        return pli_fail(err, PLAIT_EINVAL, "blocks %d is refused with data from a pipe, which is one block; leave it "
                        "out, or read the rows from a file", d->asked);
    size_t *start = pli_array((size_t)n + 1, sizeof *start);
    if (start == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the list of files");
    const size_t total = total_bytes(d->sources, d->begin, start);
    d->blocks = count_blocks(d, total);
    d->segment = pli_array((size_t)(n + d->blocks), sizeof *d->segment);
    d->piece_segment = pli_array((size_t)d->blocks + 1, sizeof *d->piece_segment);
    if (d->segment == NULL || d->piece_segment == NULL) {
        pli_free(start);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the list of blocks");
    }
    size_t from = 0;
    for (int32_t p = 0; p < d->blocks; p++) {
        size_t to = share(total, p + 1, d->blocks);
        if (p + 1 < d->blocks)
            to = d->row_bytes > 0 ? next_row(d, start, to) : next_line(d->sources, d->begin, start, to);
        if (d->by_query) to = behind_query(d, start, to);
        if (to < from) to = from;
        d->piece_segment[p] = d->segments;
        add_segments(d, start, p, from, to);
        from = to;
    }
    d->piece_segment[d->blocks] = d->segments;
    pli_dataset_own(d);
    pli_free(start);
    return pli_dataset_deal(d, err);
}
