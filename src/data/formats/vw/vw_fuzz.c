/* Feeds any bytes as Vowpal Wabbit text. The first byte chooses the rules. */
#include <stdlib.h>

#include "data/formats/vw/vw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The parser promises rows that can be walked, with increasing keys below 2^bits. */
static void check(const pli_block *b, int32_t bits) {
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t i = b->row_start[row]; i < b->row_start[row + 1]; i++)
            if (b->col[i] >> bits != 0 || (i > b->row_start[row] && b->col[i] <= b->col[i - 1])) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const unsigned flags = size > 0 ? data[0] : 0;
    pli_vw_rules   rules = { .hash_bits = flags & 1 ? 5 : 18,
                             .label_is_optional = (flags & 6) != 0,
                             .unlabelled = (flags & 4) != 0 };
    pli_rows       rows = { .row_capacity = 0 };
    pli_found      found = { .max_index = 0 };
    pli_names      names = { 0 };
    pli_bad        bad;
    plait_error    err;
    unsigned char *text = malloc(size + 1 + PLI_PARSE_PAD);
    if (text == NULL) return 0;
    if (size > 0) memcpy(text, data, size);
    memset(text + size, 0, 1 + PLI_PARSE_PAD);
    text[size] = '\n';
    if (pli_vw_cross_read(flags & 8 ? "ab,aa" : NULL, flags & 16 ? "3" : NULL, &rules.cross, &err) != PLAIT_OK) abort();
    if (flags & 32 && pli_names_init(&names, rules.hash_bits, &err) == PLAIT_OK) {
        for (uint64_t key = 0; key < UINT64_C(1) << rules.hash_bits; key++) pli_names_want(&names, key);
        found.names = &names;
    }
    if (pli_vw_parse(&rules, text, text + size + 1, &rows, &found, &bad) == PLAIT_OK) check(&rows.b, rules.hash_bits);
    for (const unsigned char *p = pli_vw_reader.row(text, text + size), *end; p < text + size;
         p = pli_vw_reader.row(end, text + size)) {
        end = memchr(p, '\n', (size_t)(text + size + 1 - p));
        (void)pli_vw_reader.look(&rules, p, end, &found);
    }
    const pli_source source = { .data = text, .bytes = size };
    (void)pli_vw_is(&source);
    pli_names_free(&names);
    pli_rows_free(&rows);
    pli_found_free(&found);
    free(text);
    return 0;
}
