/* Feeds any bytes as a text by characters, through opening and loading; then as the test text of the model that
 * learned it. The first two bytes choose the window, and how windows lie. */
#include <stdlib.h>
#include <string.h>

#include "data/formats/chars.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static pli_sources *sources_of(const uint8_t *data, size_t size) {
    pli_sources *all = pli_calloc(1, sizeof *all);
    if (all == NULL) abort();
    all->source = pli_calloc(1, sizeof *all->source);
    if (all->source == NULL || (all->source->path = pli_strdup("fuzz.txt")) == NULL) abort();
    all->n = 1;
    all->users = 1;
    all->source->data = data;
    all->source->bytes = size;
    return all;
}

/* Each byte must be answered once, and every key must be a feature of its row. */
static void check(const pli_dataset *d, size_t bytes) {
    size_t labels = 0;
    for (int32_t i = 0; i < pli_dataset_own_blocks(d); i++) {
        const pli_block *b = pli_dataset_block(d, i);
        for (int64_t row = 0; row < b->rows; row++) {
            labels += (size_t)pli_block_labels(b, row);
            for (int64_t k = b->row_start[row]; k < b->row_start[row + 1]; k++)
                if (b->col[k] >= pli_schema_features(d->schema) ||
                    (k > b->row_start[row] && b->col[k] <= b->col[k - 1]))
                    abort();
        }
    }
    if (labels != bytes) abort();
}

static void read_text(const pli_dataset *other, const plait_data_opts *opts, const pli_schema *fixed, size_t bytes,
                      pli_dataset **out) {
    plait_error err;
    if (pli_dataset_open_beside(other, opts, fixed, 0, 1, out, &err) < 0 || pli_dataset_load(*out, NULL, &err) < 0)
        return;
    check(*out, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    opts.format = data[1] & 2 ? "text" : "auto";
    opts.window = 1 + data[0];
    opts.apart = data[1] & 1;
    pli_sources      *sources = sources_of(data + 2, size - 2);
    const pli_dataset other = { .sources = sources };
    pli_dataset      *d = NULL, *test = NULL;
    if (strcmp(opts.format, "text") == 0 || pli_chars_is(&sources->source[0])) {
        read_text(&other, &opts, NULL, size - 2, &d);
        opts.apart = 0;
        opts.window = 0;
        if (d != NULL && d->loaded) read_text(&other, &opts, pli_dataset_schema(d), size - 2, &test);
    }
    pli_dataset_destroy(&test);
    pli_dataset_destroy(&d);
    pli_sources_release(&sources);
    return 0;
}
