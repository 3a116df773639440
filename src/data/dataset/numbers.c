/* Row numbers and weights: what a row is in the files, whichever block holds it. Segments lie in the files' order, so
 * a row's number is the number of rows in the segments before its own, and its place there. FILE.weight has a weight
 * for each row of FILE. */
#include "data/dataset/dataset.h"

int64_t pli_first_row_of(const pli_dataset *d, int32_t block, const int64_t *segment_rows) {
    const int64_t first = pli_segments_of(d, block).from;
    int64_t       row = 0;
    for (int64_t i = 0; i < first; i++) row += segment_rows[i];
    return row;
}

int64_t pli_source_row_of(const pli_dataset *d, int64_t segment, const int64_t *segment_rows) {
    int64_t row = 0;
    for (int64_t i = segment - 1; i >= 0 && d->segment[i].source == d->segment[segment].source; i--)
        row += segment_rows[i];
    return row;
}

plait_status pli_weigh_rows(pli_rows *rows, int64_t first, int64_t n, const pli_source *source, int64_t row,
                            plait_error *err) {
    if (source->weight == NULL) return PLAIT_OK;
    if (!pli_rows_need_weights(rows)) return pli_fail(err, PLAIT_ENOMEM, "%s: no memory for the weights", source->path);
    for (int64_t i = 0; i < n && row + i < source->weights; i++) rows->b.weight[first + i] *= source->weight[row + i];
    return PLAIT_OK;
}

plait_status pli_weigh_block(const pli_dataset *d, int32_t block, pli_rows *rows, const int64_t *segment_rows,
                             plait_error *err) {
    const pli_run_of_segments own = pli_segments_of(d, block);
    int64_t                   row = 0;
    for (int64_t i = own.from; d->has_weights && i < own.to; i++) {
        PLI_TRY(pli_weigh_rows(rows, row, segment_rows[i], &d->sources->source[d->segment[i].source],
                               pli_source_row_of(d, i, segment_rows), err));
        row += segment_rows[i];
    }
    return PLAIT_OK;
}

/* Has each FILE.weight a weight for each row? */
static plait_status check_weights(const pli_dataset *d, const int64_t *segment_rows, plait_error *err) {
    for (int64_t i = 0; i < d->segments; i++) {
        const pli_source *source = &d->sources->source[d->segment[i].source];
        const bool        last = i + 1 == d->segments || d->segment[i + 1].source != d->segment[i].source;
        const int64_t     rows = last ? pli_source_row_of(d, i, segment_rows) + segment_rows[i] : 0;
        if (last && source->weight != NULL && source->weights != rows)
            return pli_fail(err, PLAIT_EFORMAT, "%s.weight: expected a weight for each of %lld rows, found %lld",
                            source->path, (long long)rows, (long long)source->weights);
    }
    return PLAIT_OK;
}

plait_status pli_number_rows(pli_dataset *d, const int64_t *segment_rows, bool weights, plait_error *err) {
    int64_t rows = 0;
    PLI_TRY(check_weights(d, segment_rows, err));
    for (int64_t i = 0; i < d->segments; i++) rows += segment_rows[i];
    for (int32_t b = 0; b < d->own; b++) {
        d->rows[b].b.first_row = pli_first_row_of(d, d->first + b, segment_rows);
        if (weights) PLI_TRY(pli_weigh_block(d, d->first + b, &d->rows[b], segment_rows, err));
    }
    return rows > 0 ? PLAIT_OK : pli_fail(err, PLAIT_EFORMAT, "%s: no rows", d->sources->source[0].path);
}
