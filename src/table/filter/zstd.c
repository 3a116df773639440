/* zstd - what is left is packed, without loss: the last filter of a list. Floats hardly shrink; keys, bits and small
 * whole numbers do. Where a part does not get smaller it travels as it is.
 *
 * Paper: Collet and Kucherawy, "Zstandard Compression and the 'application/zstd' Media Type", RFC 8878, 2021. */
#include "table/filter/filter.h"

#include <zstd.h>

/* A block of 128 KiB takes three bytes and one at least: more than that cannot come out of a message. */
enum { LEVEL = 1, MOST_RATIO = 1 << 15, MOST_SMALL = 1 << 17 };

typedef struct contexts {
    ZSTD_CCtx *pack;
    ZSTD_DCtx *unpack;
} contexts;

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)state, (void)table;
    return pli_filter_takes_none("zstd", parameters, err);
}

static void close_contexts(void *state) {
    contexts *c = state;
    ZSTD_freeCCtx(c->pack);
    ZSTD_freeDCtx(c->unpack);
    *c = (contexts){ 0 };
}

static int64_t bound(const void *state, int64_t size) {
    (void)state;
    return (int64_t)ZSTD_compressBound((size_t)size);
}

static int64_t encode(void *state, int64_t size, const void *from, void *bytes) {
    contexts *c = state;
    if (c->pack == NULL) c->pack = ZSTD_createCCtx();
    if (c->pack == NULL) return PLAIT_ENOMEM;
    size_t packed = ZSTD_compressCCtx(c->pack, bytes, ZSTD_compressBound((size_t)size), from, (size_t)size, LEVEL);
    return ZSTD_isError(packed) ? (int64_t)PLAIT_ENOMEM : (int64_t)packed;
}

static int64_t unpacked(void *state, const void *bytes, int64_t size) {
    (void)state;
    unsigned long long raw = ZSTD_getFrameContentSize(bytes, (size_t)size);
    if (raw == ZSTD_CONTENTSIZE_UNKNOWN || raw == ZSTD_CONTENTSIZE_ERROR) return PLAIT_EFORMAT;
    if (raw > MOST_SMALL && raw / MOST_RATIO > (unsigned long long)size) return PLAIT_EFORMAT;
    return (int64_t)raw;
}

static plait_status decode(void *state, const void *bytes, int64_t size, void *to, int64_t to_size) {
    contexts *c = state;
    if (c->unpack == NULL) c->unpack = ZSTD_createDCtx();
    if (c->unpack == NULL) return PLAIT_ENOMEM;
    size_t raw = ZSTD_decompressDCtx(c->unpack, to, (size_t)to_size, bytes, (size_t)size);
    return ZSTD_isError(raw) || raw != (size_t)to_size ? PLAIT_EFORMAT : PLAIT_OK;
}

const plait_filter pli_zstd_filter = {
    .name = "zstd",
    .parameters = "",
    .summary = "compresses what is left, without loss; comes last",
    .state_bytes = sizeof(contexts),
    .loss = PLAIT_EXACT,
    .parse = parse,
    .close = close_contexts,
    .bytes = { .bound = bound, .encode = encode, .unpacked = unpacked, .decode = decode },
};
