/* key-delta - keys as the gaps between them, in as few bytes as each needs. A batch's keys come sorted, so the gaps of
 * n keys out of r are about r / n: one byte or two where rows are touched densely. Unsorted keys cost at most ten bytes
 * each; the sign sits in the lowest bit ("zigzag").
 *
 * Papers: Li et al., OSDI 2014, section 3.7; Lemire and Boytsov, "Decoding Billions of Integers per Second through
 * Vectorization", Software: Practice and Experience 45(1), 2015 (differential coding by bytes, and what else there
 * is). */
#include "table/filter/filter.h"

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)state, (void)table;
    return pli_filter_takes_none("key-delta", parameters, err);
}

static int64_t bound(const void *state, int64_t n) {
    (void)state;
    return n * PLI_VARINT_MAX;
}

static uint64_t zigzag(uint64_t difference) { return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0); }
static uint64_t unzigzag(uint64_t x) { return x >> 1 ^ (x & 1 ? UINT64_MAX : 0); }

static int64_t encode(void *state, int64_t n, const uint64_t *keys, void *bytes) {
    unsigned char *at = bytes;
    uint64_t       last = 0;
    (void)state;
    for (int64_t i = 0; i < n; i++) {
        at += pli_varint_put(at, zigzag(keys[i] - last));
        last = keys[i];
    }
    return at - (unsigned char *)bytes;
}

static plait_status decode(void *state, int64_t n, const void *bytes, int64_t size, uint64_t *keys) {
    const unsigned char *at = bytes, *end = at + size;
    uint64_t             last = 0, x;
    (void)state;
    for (int64_t i = 0; i < n; i++) {
        if (!pli_varint_get(&at, end, &x)) return PLAIT_EFORMAT;
        keys[i] = last += unzigzag(x);
    }
    return at == end ? PLAIT_OK : PLAIT_EFORMAT;
}

const plait_filter pli_key_delta_filter = {
    .name = "key-delta",
    .parameters = "",
    .summary = "sends sorted keys as the gaps between them",
    .state_bytes = 1,
    .loss = PLAIT_EXACT,
    .parse = parse,
    .keys = { .bound = bound, .encode = encode, .decode = decode },
};
