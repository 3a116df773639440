/* vertex/census.h - the ids of a graph: who is there, how many edges come to each and leave it, and which number each
 * gets. The first pass over the edges counts; then ids get numbers, in order; further passes look them up.
 *
 * Small ids have a place in a table by id, others in a hash table. How much memory that takes follows from the number
 * of vertices, and not from that of edges: a graph's edges need not be there all at once. */
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
} pli_census;

/** An empty census; limit: such that a table by smaller ids is no waste. */
void pli_census_begin(pli_census *c, uint64_t limit);
void pli_census_free(pli_census *c);
/** Ids are 1 .. n, all of them are there, and no other. false: no memory. */
bool pli_census_give(pli_census *c, int64_t n);
/** Counts the id, with so many edges that come to it and leave it. false: no memory. */
bool pli_census_add(pli_census *c, uint64_t id, uint32_t in, uint32_t out);
/** How many ids are there? */
int64_t pli_census_count(const pli_census *c);
/** Writes all ids that are there to id [n], increasing, and their counts to in and out [n], and gives them the numbers
 *  0 .. n - 1. false: no memory. */
bool pli_census_number(pli_census *c, int64_t n, uint64_t *id, int64_t *in, uint32_t *out);
/** The id's number; -1: it was not counted. */
int64_t pli_census_find(const pli_census *c, uint64_t id);

#endif
