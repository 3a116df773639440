/* Feeds any bytes as LIBSVM text. The first byte chooses the rules. */
#include <stdlib.h>
#include <string.h>

#include "data/formats/libsvm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The parser promises rows that can be walked, with increasing keys. */
static void check(const pli_block *b) {
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t i = b->row_start[row] + 1; i < b->row_start[row + 1]; i++)
            if (b->col != NULL ? b->col[i] + 1 <= b->col[i - 1] + 1 : b->key[i] + 1 <= b->key[i - 1] + 1) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned         flags = size > 0 ? data[0] : 0;
    pli_libsvm_rules rules = { .base = 1,
                               .base_is_sure = flags & 1,
                               .label_is_optional = flags & 2,
                               .hash_bits = flags & 4 ? 5 : 0,
                               .limit = flags & 8 ? 100 : UINT64_MAX };
    pli_rows         rows = { .row_capacity = 0 };
    pli_found        found = { .max_index = 0 };
    pli_bad          bad;
    unsigned char   *text = malloc(size + 1 + PLI_PARSE_PAD);
    if (text == NULL) return 0;
    if (size > 0) memcpy(text, data, size);
    memset(text + size, 0, 1 + PLI_PARSE_PAD);
    text[size] = '\n';
    if (pli_libsvm_parse(&rules, text, text + size + 1, &rows, &found, &bad) == PLAIT_OK) check(&rows.b);
    (void)pli_libsvm_has_zero(text, text + size);
    pli_rows_free(&rows);
    pli_found_free(&found);
    free(text);
    return 0;
}
