/* fixed16 - values as two bytes each beside one scale a message, rounded by chance. See fixed.c. */
#include "table/filter/filter.h"

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)state, (void)table;
    return pli_filter_takes_none("fixed16", parameters, err);
}

static int64_t bound(const void *state, const plait_part *part, int64_t n) {
    (void)state;
    return pli_fixed_bound(part, n, 2);
}

static int64_t encode(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values, void *bytes) {
    (void)state;
    return pli_fixed_encode(part, n, row, values, bytes, 2);
}

static plait_status decode(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size, void *values) {
    (void)state;
    return pli_fixed_decode(part, n, bytes, size, values, 2);
}

const plait_filter pli_fixed16_filter = {
    .name = "fixed16",
    .parameters = "",
    .summary = "values as 16-bit whole numbers beside one scale a message, rounded by chance",
    .state_bytes = 1,
    .loss = PLAIT_ROUNDED,
    .answers = 1,
    .parse = parse,
    .values = { .bound = bound, .encode = encode, .decode = decode },
};
