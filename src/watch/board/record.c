/* Writes TFRecord frames (record.h). */
#include "watch/board/record.h"

/* Computed bit by bit, without a table, because event files are small. */
uint32_t pli_crc32c(const void *bytes, size_t n) {
    uint32_t crc = UINT32_MAX;
    for (const unsigned char *at = bytes, *end = at + n; at < end; at++) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

static void put(unsigned char *to, uint64_t x, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(x >> 8 * i);
}

static void put_crc(unsigned char *to, const void *bytes, size_t n) {
    const uint32_t crc = pli_crc32c(bytes, n);
    put(to, (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u), 4);
}

bool pli_record_write(FILE *file, const void *bytes, size_t n) {
    unsigned char head[12], foot[4];
    put(head, n, 8);
    put_crc(head + 8, head, 8);
    put_crc(foot, bytes, n);
    return fwrite(head, 1, sizeof head, file) == sizeof head && fwrite(bytes, 1, n, file) == n &&
           fwrite(foot, 1, sizeof foot, file) == sizeof foot;
}
