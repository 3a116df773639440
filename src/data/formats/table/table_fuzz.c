/* Feeds any bytes as a csv or tsv file, through opening, loading and agreeing. The first byte chooses the options. */
#include <stdlib.h>
#include <string.h>

#include "data/formats/table/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sources that hold the bytes as if a file had been mapped. */
static pli_sources *sources_of(const uint8_t *data, size_t size) {
    pli_sources *all = pli_calloc(1, sizeof *all);
    if (all == NULL) abort();
    all->source = pli_calloc(1, sizeof *all->source);
    if (all->source == NULL || (all->source->path = pli_strdup("fuzz.csv")) == NULL) abort();
    all->n = 1;
    all->users = 1;
    all->source->data = data;
    all->source->bytes = size;
    return all;
}

static void check(const pli_dataset *d) {
    for (int32_t i = 0; i < pli_dataset_own_blocks(d); i++) {
        const pli_block *b = pli_dataset_block(d, i);
        for (int64_t row = 0; row < b->rows; row++)
            for (int64_t k = b->row_start[row]; k < b->row_start[row + 1]; k++) {
                bool increasing = k == b->row_start[row] || b->col[k] > b->col[k - 1];
                if (!increasing || b->col[k] >= pli_schema_features(d->schema)) abort();
                if (b->value != NULL && b->value[k] - b->value[k] != 0) abort(); /* a mean was not filled in */
            }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const headers[] = { "auto", "yes", "no", "auto" }, *const formats[] = { "csv", "tsv" };
    if (size < 2) return 0;
    plait_data_opts opts;
    plait_error     err;
    pli_dataset    *d = NULL;
    plait_data_opts_init(&opts);
    opts.header = headers[data[0] & 3];
    opts.format = formats[data[0] >> 2 & 1];
    opts.label = data[0] & 8 ? "-1" : NULL;
    opts.weight_column = data[0] & 16 ? "2" : NULL;
    opts.hash_bits = data[0] & 32 ? 6 : 0;
    opts.text_columns = data[0] & 64 ? "1,-1" : NULL;
    if (data[0] & 128) opts.format = "csv", opts.delimiter = data[0] & 4 ? ";" : "|";
    pli_sources      *sources = sources_of(data + 1, size - 1);
    const pli_dataset other = { .sources = sources };
    if (pli_dataset_open_beside(&other, &opts, NULL, 0, 1, &d, &err) == PLAIT_OK &&
        pli_dataset_load(d, NULL, &err) == PLAIT_OK) {
        const pli_schema *part = pli_dataset_schema(d);
        pli_schema       *joined = NULL;
        check(d);
        if (pli_schema_merge(&part, 1, &joined, &err) != PLAIT_OK || pli_dataset_agree(d, joined, &err) != PLAIT_OK)
            abort();
        check(d);
        pli_schema_destroy(&joined);
    }
    pli_dataset_destroy(&d);
    pli_sources_release(&sources);
    return 0;
}
