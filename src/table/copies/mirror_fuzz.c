/* A mirror receives an arbitrary list, or filtered part, as another worker's part of a sum. It refuses it by name, or
 * adds it to rows that the table has; nothing is read or written outside of it. Input: which table (a byte), what
 * came. */
#include <stdlib.h>
#include <string.h>

#include "table/copies/mirror.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORKERS = 2, ROWS = 300, SHAPES = 8 };

static const char *const filters[SHAPES] = { [4] = "key-cache,key-delta,topk:0.5,fixed8,zstd", [5] = "onebit",
                                             [6] = "topk:0.1", [7] = "zstd" };

/* The shapes: sparse; sparse with a rule whose penalty is lazy; of fixed rows; of fixed rows, exact; and with filters:
 * sparse; ranges, three times. */
static pli_spec spec_of(int shape) {
    plait_table_opts opts;
    pli_spec         spec;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.type = shape % 2 == 0 ? PLAIT_F32 : PLAIT_F64;
    opts.rows = shape < 2 || shape == 4 ? 0 : ROWS;
    opts.cols = 2;
    opts.keyed = shape == 2 || shape == 3;
    opts.exact = shape == 3;
    opts.rule.name = shape % 2 == 0 && shape < 4 ? NULL : "adam";
    opts.rule.l2 = shape == 1 ? 0.1 : 0;
    if (pli_spec_make(0, &opts, "allreduce", "bsp", 1, NULL, &spec, NULL) < 0) abort();
    if (filters[shape] != NULL) strcpy(spec.filter, filters[shape]);
    spec.placement = pli_placement_make(spec.rows, pli_row_bytes(&spec), 1, 1, 0);
    return spec;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const int       shape = data[0] % SHAPES;
    const pli_spec  spec = spec_of(shape);
    const pli_scope scope = { .setting = { .workers = WORKERS } };
    const uint64_t  keys[] = { 7, 8, 250 };
    const double    delta[2 * 3] = { 1, 2, 3, 4, 5, 6 }; /* any bits are floats, too */
    pli_mirror    *mirror;
    pli_sum        *sum;
    int64_t         n = 0;
    uint64_t       *held = NULL;
    void           *values = NULL;
    if (pli_mirror_open(&spec, &scope, 0, NULL, NULL, NULL, &mirror, NULL) < 0) abort();
    if (filters[shape] != NULL && pli_mirror_filter(mirror, &(pli_filter_scope){ 0 }, 1, NULL) < 0) abort();
    if (pli_mirror_inc(mirror, 3, spec.keyed ? keys : NULL, 0, delta, 3, NULL) < 0) abort();
    if (pli_mirror_take(mirror, 0, pli_mirror_form(mirror, true), false, &sum, NULL) < 0) abort();
    sum->piece[0] = sum->list;
    sum->list = NULL;
    sum->piece[1] = pli_msg_new(size - 1);
    if (sum->piece[1] == NULL) abort();
    if (size > 1) memcpy(pli_msg_body(sum->piece[1]), data + 1, size - 1);
    plait_status status = pli_mirror_apply(mirror, NULL);
    if (status != PLAIT_OK && status != PLAIT_EFORMAT) abort();
    if (spec.rows == 0 && pli_mirror_dump(mirror, 0, &n, &held, &values, NULL) < 0) abort();
    if (spec.rows == 0 && status == PLAIT_OK && n < (shape < 4 ? 3 : 2)) abort();
    pli_free(held);
    pli_free(values);
    pli_mirror_close(&mirror);
    return 0;
}
