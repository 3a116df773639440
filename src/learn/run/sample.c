/* Keeps the first rows of every block of a stream. What a single pass must know before it begins (how large values and
 * labels are) is measured on them. Which rows these are is a property of the data alone. */
#include "learn/run/run.h"

#include <string.h>

enum { SAMPLE_ROWS = 2048 }; /* of all workers */

static bool reserve(pli_block *to, int64_t rows, int64_t entries, const pli_block *from) {
    to->row_start = pli_array((size_t)rows + 1, sizeof *to->row_start);
    to->col = pli_array((size_t)entries, sizeof *to->col);
    to->label = pli_array((size_t)rows, sizeof *to->label);
    to->value = from->value != NULL ? pli_array((size_t)entries, sizeof *to->value) : NULL;
    to->weight = from->weight != NULL ? pli_array((size_t)rows, sizeof *to->weight) : NULL;
    return to->row_start != NULL && to->col != NULL && to->label != NULL &&
           (to->value != NULL || from->value == NULL) && (to->weight != NULL || from->weight == NULL);
}

/* Keys that grow without bound have no columns: rows are then kept without entries. */
static plait_status keep(const pli_run *run, const pli_part *part, pli_block *to) {
    const pli_block *from = part->block;
    const int64_t   *start = from->row_start + part->first;
    bool             columns = run->features > 0 && from->col != NULL;
    int64_t          entries = columns ? start[part->rows] - start[0] : 0;
    to->number = from->number;
    to->first_row = from->first_row + part->first;
    to->earlier = from->earlier;
    if (!reserve(to, part->rows, entries, from))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a sample of rows");
    to->rows = part->rows;
    to->entries = entries;
    for (int64_t r = 0; r <= part->rows; r++) to->row_start[r] = columns ? start[r] - start[0] : 0;
    memcpy(to->label, from->label + part->first, (size_t)part->rows * sizeof *to->label);
    if (to->weight != NULL) memcpy(to->weight, from->weight + part->first, (size_t)part->rows * sizeof *to->weight);
    if (entries == 0) return PLAIT_OK;
    memcpy(to->col, from->col + start[0], (size_t)entries * sizeof *to->col);
    if (to->value != NULL) memcpy(to->value, from->value + start[0], (size_t)entries * sizeof *to->value);
    for (int64_t e = 0; e < entries; e++)
        if (to->col[e] >= run->features)
            return pli_fail(run->err, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH, (long long)(to->first_row + 1));
    return PLAIT_OK;
}

plait_status pli_sample_take(pli_run *run) {
    int32_t      own = pli_dataset_own_blocks(run->data);
    pli_batches *stream = NULL;
    run->sample = pli_calloc((size_t)own, sizeof *run->sample);
    if (run->sample == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a sample of rows");
    plait_status status = pli_batches_stream(run->data, SAMPLE_ROWS, run->pool, &stream, run->err);
    for (int32_t i = 0; i < own && status == PLAIT_OK; i++) {
        pli_part part;
        status = pli_stream_part(stream, 0, i, 0, &part, run->err);
        if (status == PLAIT_OK) status = keep(run, &part, &run->sample[i]);
    }
    pli_batches_destroy(&stream);
    return status == PLAIT_END ? PLAIT_OK : status;
}

void pli_sample_free(pli_run *run) {
    for (int32_t i = 0; run->sample != NULL && i < pli_dataset_own_blocks(run->data); i++) {
        pli_free(run->sample[i].row_start);
        pli_free(run->sample[i].col);
        pli_free(run->sample[i].label);
        pli_free(run->sample[i].value);
        pli_free(run->sample[i].weight);
    }
    pli_free(run->sample);
    run->sample = NULL;
}
