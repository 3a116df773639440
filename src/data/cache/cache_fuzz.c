/* Feeds any bytes as FILE.plait-cache: it is refused, or its blocks can be walked. Hashes are not compared, since
 * few inputs would get past them. */
#include <stdlib.h>
#include <string.h>

#include "data/cache/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t walk(const pli_block *b) {
    uint64_t sum = 0;
    for (int64_t row = 0; row < b->rows; row++) {
        sum += (uint64_t)(b->label[row] > 0) + (uint64_t)(b->weight != NULL && b->weight[row] > 0);
        for (int64_t i = b->row_start[row]; i < b->row_start[row + 1]; i++)
            sum += pli_block_key(b, i) + (uint64_t)(b->value != NULL && b->value[i] > 0);
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_dataset   *d = pli_calloc(1, sizeof *d);
    unsigned char *copy = malloc(size + 1); /* arrays are aligned in a mapped file */
    uint64_t       stamp = 0, sum = 0;
    plait_error    err;
    if (d == NULL || copy == NULL) abort();
    if (size > 0) memcpy(copy, data, size);
    if (size >= 64) memcpy(&stamp, copy + size - 64 + 16, sizeof stamp);
    d->workers = 1;
    if (pli_datacache_parse(d, copy, size, stamp, false, &err) == PLAIT_OK)
        for (int32_t i = 0; i < d->own; i++) sum += walk(&d->rows[i].b);
    pli_datacache_detach(d);
    pli_dataset_destroy(&d);
    free(copy);
    (void)sum;
    return 0;
}
