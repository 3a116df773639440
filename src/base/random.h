/* base/random.h - counter-based random numbers: a value is a function of (seed, purpose, a, b, counter),
 * so it never depends on ranks, threads or order. Philox 4x32-10: Salmon et al., "Parallel Random Numbers:
 * As Easy as 1, 2, 3", SC 2011. */
#ifndef PLI_BASE_RANDOM_H
#define PLI_BASE_RANDOM_H

#include <stdint.h>

/* What a stream is used for. It is part of the key, so that two uses of one seed never meet. */
typedef enum pli_purpose {
    PLI_RANDOM_PERMUTE = 1, /* a: block, b: epoch           */
    PLI_RANDOM_INIT = 2,    /* a: table, b: row             */
    PLI_RANDOM_SPLIT = 3,   /* a: block, b: row             */
    PLI_RANDOM_SCHEDULE = 4, /* tests: order of events      */
    PLI_RANDOM_DATA = 5,    /* generators of data           */
    PLI_RANDOM_ROUND = 6,   /* random rounding in filters   */
    PLI_RANDOM_CLUSTER = 7, /* events of a simulated cluster */
    PLI_RANDOM_GRAPH = 8,   /* a: run, b: piece of an array  */
    PLI_RANDOM_CENTRES = 9, /* a: round, b: row of the data  */
    PLI_RANDOM_TREES = 10,  /* a: round, b: row of the data  */
    PLI_RANDOM_SCHED = 11,  /* a: step of a schedule        */
    PLI_RANDOM_DUAL = 12,   /* a: first own block, or -1 for the order of turns; b: pass */
    PLI_RANDOM_FACTORS = 13, /* a: epoch, b: worker, block and tile */
    PLI_RANDOM_TOPICS = 14, /* a: 0, or epoch + 1; b: row of the data */
    PLI_RANDOM_HALVES = 15, /* a: 0, or particle + 1; b: a document: in which half of it a token is, or the particle */
    PLI_RANDOM_SAMPLE = 16, /* a: character of a text that is written */
    PLI_RANDOM_CLASSES = 17 /* a: clock                     */
} pli_purpose;

typedef struct pli_random {
    uint32_t key[2], counter[4], buffer[4];
    int      used; /* how much of buffer is used */
} pli_random;

pli_random pli_random_at(uint64_t seed, pli_purpose purpose, uint64_t a, uint64_t b);
uint32_t   pli_random_u32(pli_random *r);
uint64_t   pli_random_u64(pli_random *r);
double     pli_random_f64(pli_random *r);                   /* [0, 1), 53 bits         */
double     pli_random_normal(pli_random *r);                /* mean 0, variance 1      */
uint64_t   pli_random_below(pli_random *r, uint64_t bound); /* unbiased; bound > 0     */

/** Fisher-Yates: order [n] becomes a permutation of 0 .. n-1. */
void pli_random_permutation(pli_random *r, int64_t n, uint32_t *order);

#endif
