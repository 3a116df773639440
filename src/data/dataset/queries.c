/* Queries: the rows of one are ranked together, so they must come to one worker. A block is therefore cut between two
 * queries, where an ordinary one is cut between two lines. This depends on the files alone, as every cut does. */
#include <string.h>

#include "data/dataset/dataset.h"

/* The query of the last row before `at`; 0: it names none, or there is no row. */
static uint64_t query_before(const pli_source *source, size_t begin, size_t at) {
    const unsigned char *first = source->data + begin, *end = source->data + at;
    while (end > first) {
        const unsigned char *newline = end - 1 > first ? memrchr(first, '\n', (size_t)(end - 1 - first)) : NULL;
        const unsigned char *line = newline != NULL ? newline + 1 : first, *row = pli_libsvm_row(line, end);
        if (row < end) return pli_libsvm_query(row, end);
        end = line;
    }
    return 0;
}

size_t pli_query_end(const pli_source *source, size_t begin, size_t at) {
    const unsigned char *end = source->data + source->bytes, *p = source->data + at;
    const uint64_t       query = query_before(source, begin, at);
    while (query != 0 && p < end) {
        const unsigned char *row = pli_libsvm_row(p, end);
        if (row == end || pli_libsvm_query(row, end) != query) break;
        const unsigned char *newline = memchr(row, '\n', (size_t)(end - row));
        p = newline != NULL ? newline + 1 : end;
    }
    return (size_t)(p - source->data);
}

/* Where row number `row` of a segment begins. */
static const unsigned char *row_in(const pli_dataset *d, const pli_segment *segment, int64_t row) {
    const pli_source    *source = &d->sources->source[segment->source];
    const unsigned char *end = source->data + segment->to, *p = d->reader->row(source->data + segment->from, end);
    for (; row > 0 && p < end; row--) {
        const unsigned char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline != NULL ? d->reader->row(newline + 1, end) : end;
    }
    return p;
}

void pli_dataset_place(const pli_dataset *d, int64_t row, pli_text *text) {
    if (d->sources == NULL || d->cached != NULL || d->reader == NULL || d->reader->row == NULL) return;
    for (int64_t i = 0; i < d->segments; row -= d->schema->segment_rows[i++]) {
        if (row >= d->schema->segment_rows[i]) continue;
        const pli_source *source = &d->sources->source[d->segment[i].source];
        const size_t      at = (size_t)(row_in(d, &d->segment[i], row) - source->data);
        pli_text_add(text, "%s:%lld", strcmp(source->path, "-") == 0 ? "standard input" : source->path,
                     (long long)pli_source_line(source, at));
        return;
    }
}
