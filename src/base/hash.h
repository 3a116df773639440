/* base/hash.h - hashing: XXH3 for tables and checks, SHA-256 for model_hash. */
#ifndef PLI_BASE_HASH_H
#define PLI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t pli_hash_bytes(const void *data, size_t bytes, uint64_t seed); /* XXH3-64 */
void     pli_hash128(const void *data, size_t bytes, void *hash);          /* XXH3-128, 16 bytes in canonical order */

/* The same hashes (with seed 0) of bytes that come in pieces; how the bytes are cut does not matter. */
typedef struct pli_hasher pli_hasher;
pli_hasher *pli_hasher_create(void); /* NULL: out of memory */
void        pli_hasher_reset(pli_hasher *hasher);
void        pli_hasher_add(pli_hasher *hasher, const void *data, size_t bytes);
uint64_t    pli_hasher_64(const pli_hasher *hasher); /* of the bytes added so far */
void        pli_hasher_128(const pli_hasher *hasher, void *hash);
void        pli_hasher_destroy(pli_hasher **hasher);

/* A bijective mixer of 64 bits (the finaliser of SplitMix64, Steele et al. 2014): spreads small dense keys. */
static inline uint64_t pli_hash_u64(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

typedef struct pli_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t  block[64];
} pli_sha256;
void pli_sha256_init(pli_sha256 *sha);
void pli_sha256_add(pli_sha256 *sha, const void *data, size_t bytes);
void pli_sha256_end(pli_sha256 *sha, char hex[65]);

#endif
