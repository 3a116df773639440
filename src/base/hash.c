/* base/hash.c - two hashes for two questions.
 *
 * XXH3 answers "are these the same bytes, barring bad luck?" at memory speed: it checks messages and files and names
 * key lists. SHA-256 (FIPS 180-4) answers the same question even against an attacker, and gives the same text on
 * every machine: it makes the model_hash. It is written out here because libplait links no cryptographic library for
 * one function; names and numbers follow the standard, sections 4.1.2, 5.3.3 and 6.2.2. */
#include "base/hash.h"

#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/hash_blocks.h"
#ifdef __x86_64__
#include <cpuid.h>
#endif

uint64_t pli_hash_bytes(const void *data, size_t bytes, uint64_t seed) {
    return XXH3_64bits_withSeed(data, bytes, seed);
}

void pli_hash128(const void *data, size_t bytes, void *hash) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, bytes));
    memcpy(hash, &canonical, sizeof canonical);
}

/* XXH3 keeps one state for both lengths; the caller chooses the length only at the end. */
struct pli_hasher {
    XXH3_state_t *state;
};

pli_hasher *pli_hasher_create(void) {
    pli_hasher *hasher = pli_malloc(sizeof *hasher);
    if (hasher == NULL) return NULL;
    hasher->state = XXH3_createState();
    if (hasher->state == NULL) pli_hasher_destroy(&hasher);
    else pli_hasher_reset(hasher);
    return hasher;
}

void pli_hasher_reset(pli_hasher *hasher) { (void)XXH3_64bits_reset(hasher->state); }

void pli_hasher_add(pli_hasher *hasher, const void *data, size_t bytes) {
    if (bytes > 0) (void)XXH3_64bits_update(hasher->state, data, bytes);
}

uint64_t pli_hasher_64(const pli_hasher *hasher) { return XXH3_64bits_digest(hasher->state); }

void pli_hasher_128(const pli_hasher *hasher, void *hash) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(hasher->state));
    memcpy(hash, &canonical, sizeof canonical);
}

void pli_hasher_destroy(pli_hasher **hasher) {
    if (hasher == NULL || *hasher == NULL) return;
    if ((*hasher)->state != NULL) (void)XXH3_freeState((*hasher)->state);
    pli_free(*hasher);
    *hasher = NULL;
}

const uint32_t pli_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static inline uint32_t rotr(uint32_t x, int n) { return x >> n | x << (32 - n); }

static inline uint32_t load_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The message schedule W of one block. */
static void schedule(const uint8_t *block, uint32_t w[64]) {
    for (int t = 0; t < 16; t++) w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], v[8];
    schedule(block, w);
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t s1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        uint32_t s0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + pli_sha256_k[t] + w[t];
        uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        v[7] = v[6], v[6] = v[5], v[5] = v[4], v[4] = v[3] + t1;
        v[3] = v[2], v[2] = v[1], v[1] = v[0], v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

/* --- the processor's own instructions ----------------------------------------------------------------------------- */

#ifdef __x86_64__
/* Has the processor instructions for SHA-256? The question costs some microseconds under a hypervisor. */
static bool has_instructions(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1");
}
static void compress_many(uint32_t state[8], const uint8_t *block, size_t blocks) {
    pli_sha256_blocks_shani(state, block, blocks);
}
#else
static bool has_instructions(void) { return false; }
static void compress_many(uint32_t state[8], const uint8_t *block, size_t blocks) {
    for (; blocks > 0; block += 64, blocks--) compress(state, block);
}
#endif

enum { MANY_BYTES = 1 << 16 };

void pli_sha256_init(pli_sha256 *sha) {
    *sha = (pli_sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
                                    0x5be0cd19 } };
}

void pli_sha256_add(pli_sha256 *sha, const void *data, size_t bytes) {
    const uint8_t *at = data;
    size_t         held = (size_t)(sha->bytes % 64);
    if (bytes == 0) return; /* data may be NULL */
    sha->bytes += bytes;
    if (held > 0) {
        size_t take = bytes < 64 - held ? bytes : 64 - held;
        memcpy(sha->block + held, at, take);
        at += take, bytes -= take;
        if (held + take < 64) return;
        compress(sha->state, sha->block);
    }
    if (bytes >= MANY_BYTES && has_instructions()) {
        compress_many(sha->state, at, bytes / 64);
        at += bytes / 64 * 64, bytes %= 64;
    }
    for (; bytes >= 64; at += 64, bytes -= 64) compress(sha->state, at);
    if (bytes > 0) memcpy(sha->block, at, bytes);
}

void pli_sha256_end(pli_sha256 *sha, char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    uint64_t          bits = sha->bytes * 8;
    uint8_t           tail[72] = { 0x80 };
    size_t            held = (size_t)(sha->bytes % 64), zeros_end = held < 56 ? 56 - held : 120 - held;
    for (int i = 0; i < 8; i++) tail[zeros_end + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
    pli_sha256_add(sha, tail, zeros_end + 8);
    for (int i = 0; i < 32; i++) {
        uint8_t byte = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
        hex[2 * i] = digits[byte >> 4];
        hex[2 * i + 1] = digits[byte & 15];
    }
    hex[64] = '\0';
}
