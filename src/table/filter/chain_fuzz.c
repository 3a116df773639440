/* Every decoder of filters gets arbitrary bytes. It reports an error, or returns as many keys and values as the part
 * has; nothing is read or written outside of them. Input: frames of list of filters, way and shape, rows (two bytes),
 * length (two bytes), a body. */
#include <stdlib.h>
#include <string.h>

#include "table/filter/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const lists[] = {
    "key-cache",
    "key-delta",
    "zstd",
    "fixed8",
    "fixed16",
    "fp16",
    "bf16",
    "topk:0.1",
    "onebit",
    "kkt",
    "key-cache,key-delta,kkt,fixed8,zstd",
    "key-delta,onebit,zstd",
};
enum { LISTS = sizeof lists / sizeof *lists, SHAPES = 3, ROWS = 4096 };

typedef struct fuzzed {
    pli_filters_list list;
    pli_chain        chain[SHAPES]; /* dense, keyed, sparse */
} fuzzed;

static void open_list(fuzzed *f, const char *names) {
    if (pli_filters_read(names, NULL, &f->list, NULL) < 0) abort();
    for (int shape = 0; shape < SHAPES; shape++) {
        const plait_filter_table table = { .name = "t", .type = shape == 1 ? PLAIT_F64 : PLAIT_F32,
                                           .rows = shape == 2 ? 0 : ROWS, .cols = 1 + shape, .keyed = shape > 0,
                                           .rule = "sgd", .l1 = 1, .workers = 1, .servers = 1,
                                           .count = shape == 2 ? 0 : ROWS };
        if (pli_chain_open(&f->chain[shape], &f->list, &table, NULL) < 0) abort();
    }
}

static void decode(fuzzed *f, uint8_t how, int64_t n, const void *bytes, int64_t size) {
    static uint64_t keys[1 << 16];
    pli_chain      *chain = &f->chain[how / 4 % SHAPES];
    plait_part      part = { .way = (plait_way)(how % 3), .type = chain->table.type, .n = n,
                             .cols = chain->table.cols };
    bool            keyed = chain->table.keyed && part.way != PLAIT_ANSWERED;
    pli_decoded     decoded;
    if (!chain->table.keyed && n > ROWS) part.n = ROWS; /* ranges are checked before */
    if (part.way == PLAIT_PULLED && !keyed) return;
    if (part.way == PLAIT_ANSWERED && chain->table.keyed)
        for (part.keys = keys; n > 0; n--) keys[n - 1] = (uint64_t)n % ROWS;
    if (pli_chain_decode(chain, &part, keyed, bytes, size, &decoded, NULL) < 0) return;
    if (part.way == PLAIT_ANSWERED && pli_chain_seen(chain, &part, decoded.values, NULL) < 0) abort();
    if (!decoded.missing && decoded.n > part.n) abort();
    pli_decoded_free(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzzed all[LISTS];
    memset(all, 0, sizeof all);
    for (int i = 0; i < LISTS; i++) open_list(&all[i], lists[i]);
    while (size >= 6) {
        size_t bytes = (size_t)data[4] | (size_t)data[5] << 8;
        if (bytes > size - 6) bytes = size - 6;
        decode(&all[data[0] % LISTS], data[1], (int64_t)data[2] | (int64_t)data[3] << 8, data + 6, (int64_t)bytes);
        data += 6 + bytes;
        size -= 6 + bytes;
    }
    for (int i = 0; i < LISTS; i++)
        for (int shape = 0; shape < SHAPES; shape++) pli_chain_close(&all[i].chain[shape]);
    return 0;
}
