/* A block that another worker owns, read from data that all workers can reach: from the caller's rows or a cache,
 * which hold all blocks; otherwise it is parsed once more from the files. */
#include <string.h>

#include "data/cache/cache.h"
#include "data/dataset/dataset.h"
#include "data/formats/table/table.h"

static plait_status changed(const pli_dataset *d, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: it was changed while it was being read", d->sources->source[0].path);
}

static plait_status parse(const pli_dataset *d, int32_t block, int64_t *segment_rows, pli_rows *rows,
                          plait_error *err) {
    pli_found    found = { 0 };
    plait_status status = pli_parse_block(d, block, rows, &found, segment_rows, err);
    pli_found_free(&found);
    PLI_TRY(status);
    const pli_run_of_segments own = pli_segments_of(d, block);
    for (int64_t i = own.from; i < own.to; i++)
        if (segment_rows[i] != d->schema->segment_rows[i]) return changed(d, err);
    if (d->table != NULL) pli_table_fill(d, rows);
    rows->b.number = block;
    rows->b.first_row = pli_first_row_of(d, block, d->schema->segment_rows);
    PLI_TRY(pli_weigh_block(d, block, rows, d->schema->segment_rows, err));
    pli_rows_shrink(rows);
    return PLAIT_OK;
}

static plait_status read_again(const pli_dataset *d, int32_t block, pli_rows *rows, plait_error *err) {
    int64_t     *segment_rows = pli_calloc((size_t)d->segments, sizeof *segment_rows);
    plait_status status = segment_rows != NULL && pli_rows_reserve_rows(rows, 1) && pli_rows_reserve(rows, 1)
                              ? parse(d, block, segment_rows, rows, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for a block of rows");
    pli_free(segment_rows);
    if (status == PLAIT_OK) status = pli_sources_check(d->sources, err);
    if (status < 0) pli_rows_free(rows);
    return status;
}

plait_status pli_dataset_fetch(const pli_dataset *d, int32_t block, pli_rows *rows, bool *owned_out, plait_error *err) {
    *rows = (pli_rows){ 0 };
    *owned_out = false;
    if (block < 0 || block >= d->blocks || !d->loaded || !d->agreed)
        return pli_fail(err, PLAIT_EINVAL, "block %d of a data set of %d blocks, or one that is not loaded", block,
                        d->blocks);
    if (block >= d->first && block < d->first + d->own) rows->b = d->rows[block - d->first].b;
    else if (d->of_memory) rows->b = pli_memory_block(d, block);
    else if (d->cached != NULL) return pli_datacache_block(d, block, rows, err);
    else {
        *owned_out = true;
        return read_again(d, block, rows, err);
    }
    return PLAIT_OK;
}

/* --- one block, for a caller who counts no rows ------------------------------------------------------------- */

struct pli_borrowed {
    pli_rows rows;
    bool     owned;
};

plait_status pli_dataset_borrow(const pli_dataset *dataset, int32_t block, pli_borrowed **borrowed_out,
                                plait_error *err) {
    pli_borrowed *b = pli_calloc(1, sizeof *b);
    if (b == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a block");
    plait_status status = pli_dataset_fetch(dataset, block, &b->rows, &b->owned, err);
    if (status < 0) pli_borrowed_free(&b);
    *borrowed_out = b;
    return status;
}

const pli_block *pli_borrowed_block(const pli_borrowed *borrowed) { return &borrowed->rows.b; }

void pli_borrowed_free(pli_borrowed **borrowed) {
    if (*borrowed != NULL && (*borrowed)->owned) pli_rows_free(&(*borrowed)->rows);
    pli_free(*borrowed);
    *borrowed = NULL;
}
