/* base/random.c - random numbers by counting.
 *
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011) is a keyed
 * bijection of 128-bit blocks, ten rounds of two multiplications: block i of a stream is just the image of i. So there
 * is no state to pass on, and a number does not depend on which thread or rank computes it, or when.
 *
 * A stream is named by (seed, purpose, a, b). Seed and purpose make a key under which the block (a, b) is mapped
 * once; half of the resulting 128 bits become the stream's key and half the upper part of its counter. Since the map
 * is a bijection, two different (a, b) under one seed and purpose never share a stream. */
#include "base/random.h"

#include <math.h>

#include "base/hash.h"

enum { ROUNDS = 10 };

static void philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]) {
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * c0, p1 = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u; /* Weyl sequence: golden ratio, sqrt(3) - 1 */
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

pli_random pli_random_at(uint64_t seed, pli_purpose purpose, uint64_t a, uint64_t b) {
    uint64_t   mixed = pli_hash_u64(seed + (uint64_t)purpose * UINT64_C(0x9E3779B97F4A7C15));
    uint32_t   key[2] = { (uint32_t)mixed, (uint32_t)(mixed >> 32) };
    uint32_t   name[4] = { (uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32) };
    uint32_t   out[4];
    pli_random r = { .used = 4 };
    philox(key, name, out);
    r.key[0] = out[0], r.key[1] = out[1];
    r.counter[2] = out[2], r.counter[3] = out[3];
    return r;
}

uint32_t pli_random_u32(pli_random *r) {
    if (r->used == 4) {
        philox(r->key, r->counter, r->buffer);
        r->used = 0;
        if (++r->counter[0] == 0) r->counter[1]++; /* 2^64 blocks; the upper half names the stream */
    }
    return r->buffer[r->used++];
}

uint64_t pli_random_u64(pli_random *r) {
    uint64_t low = pli_random_u32(r);
    return low | (uint64_t)pli_random_u32(r) << 32;
}

double pli_random_f64(pli_random *r) { return (double)(pli_random_u64(r) >> 11) * 0x1p-53; }

/* Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958. The second deviate is dropped, so that a
 * number costs the same amount of counter wherever it is drawn. */
double pli_random_normal(pli_random *r) {
    const double two_pi = 6.283185307179586476925286766559;
    double       u = 1.0 - pli_random_f64(r); /* (0, 1]: the logarithm is finite */
    double       v = pli_random_f64(r);
    return sqrt(-2.0 * log(u)) * cos(two_pi * v);
}

/* Lemire, "Fast Random Integer Generation in an Interval", TOMACS 2019: the high half of a product; the test for
 * rejection is hardly ever needed. */
uint64_t pli_random_below(pli_random *r, uint64_t bound) {
    __extension__ typedef unsigned __int128 u128;
    u128                                    product = (u128)pli_random_u64(r) * bound;
    if ((uint64_t)product < bound) {
        uint64_t reject_below = -bound % bound;
        while ((uint64_t)product < reject_below) product = (u128)pli_random_u64(r) * bound;
    }
    return (uint64_t)(product >> 64);
}

/* The same in 32 bits, for permutations: it needs half the random numbers. */
static uint32_t below_u32(pli_random *r, uint32_t bound) {
    uint64_t product = (uint64_t)pli_random_u32(r) * bound;
    if ((uint32_t)product < bound) {
        uint32_t reject_below = -bound % bound;
        while ((uint32_t)product < reject_below) product = (uint64_t)pli_random_u32(r) * bound;
    }
    return (uint32_t)(product >> 32);
}

/* Durstenfeld's form of Fisher and Yates (CACM algorithm 235, 1964), built inside out. */
void pli_random_permutation(pli_random *r, int64_t n, uint32_t *order) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t j = below_u32(r, (uint32_t)(i + 1));
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
}
