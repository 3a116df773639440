/* table/filter/bytes.h - growing bytes, and numbers in seven bits a byte (LEB128): small ones take one. */
#ifndef PLI_TABLE_FILTER_BYTES_H
#define PLI_TABLE_FILTER_BYTES_H

#include "base/base.h"

#include <string.h>

typedef struct pli_bytes {
    unsigned char *data;
    int64_t        n, capacity;
} pli_bytes;

static inline void pli_bytes_free(pli_bytes *bytes) {
    pli_free(bytes->data);
    *bytes = (pli_bytes){ 0 };
}

/* Room for `more` bytes behind the last; they are counted by whoever writes them. NULL: out of memory. */
static inline unsigned char *pli_bytes_room(pli_bytes *bytes, int64_t more) {
    if (more < 0 || more > INT64_MAX - bytes->n ||
        !pli_grow((void **)&bytes->data, &bytes->capacity, bytes->n + more > 0 ? bytes->n + more : 1, 1))
        return NULL;
    return bytes->data + bytes->n;
}

static inline bool pli_bytes_add(pli_bytes *bytes, const void *from, int64_t n) {
    unsigned char *to = pli_bytes_room(bytes, n);
    if (to == NULL) return false;
    if (n > 0) memcpy(to, from, (size_t)n);
    bytes->n += n;
    return true;
}

/* Zeros up to the next multiple of 8. false: out of memory. */
static inline bool pli_bytes_pad8(pli_bytes *bytes) {
    static const unsigned char zeros[8];
    return pli_bytes_add(bytes, zeros, -bytes->n & 7);
}

enum { PLI_VARINT_MAX = 10 };

static inline int64_t pli_varint_put(unsigned char *to, uint64_t x) {
    int64_t n = 0;
    for (; x >= 0x80; x >>= 7) to[n++] = (unsigned char)(x | 0x80);
    to[n++] = (unsigned char)x;
    return n;
}

/* Reads at *at, moves it on. false: cut short, or more than 64 bits. */
static inline bool pli_varint_get(const unsigned char **at, const unsigned char *end, uint64_t *out) {
    uint64_t x = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint64_t byte = *(*at)++;
        if (shift == 63 && byte > 1) return false;
        x |= (byte & 0x7f) << shift;
        if (byte < 0x80) return *out = x, true;
    }
    return false;
}

#endif
