/* vertex/census.h - the ids of a graph: who is there, how many edges come to each and leave it, and which number each
 * gets. The first pass over the edges counts; then ids get numbers, in order; further passes look them up.
 *
 * Small ids have a place in a table by id, others in a hash table. How much memory that takes follows from the number
 * of vertices, and not from that of edges: a graph's edges need not be there all at once.
 *
 * Once ids have numbers, of each small id only a bit is left: is it there? An id's number is how many are there before
 * it (bits.h). */
#ifndef PLI_VERTEX_CENSUS_H
#define PLI_VERTEX_CENSUS_H

#include "base/base.h"

typedef struct pli_counted {      /* an id                                                              */
    uint32_t in; /* 1 and how many edges come to it, or later 1 and its number; 0: nobody has it       */
    uint32_t out;
} pli_counted;

typedef struct pli_census {
    uint64_t     limit;  /* ids below are small                         */
    pli_counted *small;  /* [smalls] by id                              */
    int64_t      smalls;
    pli_counted *other;  /* [slots] of the others: a power of two, at most half full, open addressing by a hash */
    uint64_t    *other_id;
    int64_t      slots, others;
    uint64_t    *bit;    /* [words] once they have numbers: bit id % 64 of word id / 64, a small id is there */
    uint32_t    *before; /* [words] how many small ids are in the words before */
    int64_t      words, nears; /* small ids that are there: they have the numbers 0 .. nears - 1 */
    uint64_t    *far;    /* [others] of the other ids, increasing: they have the numbers from nears on */
} pli_census;

/** An empty census; limit: such that a table by smaller ids is no waste. */
void pli_census_begin(pli_census *c, uint64_t limit);
void pli_census_free(pli_census *c);
/** Ids are 1 .. n, all of them are there, and no other. false: no memory. */
bool pli_census_give(pli_census *c, int64_t n);
/** Counts the id, with so many edges that come to it and leave it. false: no memory. */
bool pli_census_add(pli_census *c, uint64_t id, uint32_t in, uint32_t out);
/** Makes room for small ids below n. false: no memory. */
bool pli_census_reach(pli_census *c, int64_t n);
/** How many ids are there? */
int64_t pli_census_count(const pli_census *c);
/** Gives the ids that are there the numbers 0 .. n - 1, as they increase, and writes their counts to in and out [n].
 *  The counts are let go of. false: no memory. */
bool pli_census_number(pli_census *c, int64_t n, int64_t *in, uint32_t *out);
/** Lets go of what makes pli_census_find fast for large ids: 24 bytes or more each. */
void pli_census_slim(pli_census *c);
/** The id's number; -1: it was not counted. */
int64_t pli_census_find(const pli_census *c, uint64_t id);
/** The id of this number, 0 .. n - 1. */
uint64_t pli_census_id(const pli_census *c, int64_t number);
/** All of them, to id [n]. */
void pli_census_ids(const pli_census *c, uint64_t *id);

#endif
