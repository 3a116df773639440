/* vertex/spread.h - what processes tell each other while they load a graph of which each reads a piece of the text.
 *
 *     ids       each has counted those of its piece. Sums of all counts make the census that a reader of the whole text
 *               would have
 *     entries   each edge goes to the part that has it. Readers hold entries back until they have some thousand, and
 *               exchange them then, all at once: nobody is a round ahead, so what is on the way is bounded. Who has
 *               come to the end of its piece takes part until all have
 *
 * Where edges between two vertices have several weights, their order in the file decides which row has what: a part
 * notes whose piece an entry is from, and sorts by that, too. */
#ifndef PLI_VERTEX_SPREAD_H
#define PLI_VERTEX_SPREAD_H

#include <plait/comm.h>

#include "vertex/census.h"

/** Adds up the counts of all workers' censuses. Errors: ENOMEM; those of collectives. Collective over the workers. */
plait_status pli_census_merge(plait_comm *comm, pli_census *c);

/* An entry of a row of edges in, or out. */
typedef struct pli_row_entry {
    uint32_t row, near;
    float    weight;
    uint16_t part;
    bool     out;
} pli_row_entry;

/* Takes an entry of a worker's piece. false: there is no place for it. */
typedef bool pli_row_entry_fn(void *user, const pli_row_entry *e, int32_t from);

typedef struct pli_spread {
    plait_comm   *comm; /* NULL: the text is read as a whole, and nothing is sent */
    pli_row_entry_fn *take;
    void         *user;
    bool          weighted, broken; /* broken: somebody could not go on */
    plait_status  status;           /* of this worker */
    pli_row_entry    *held;
    int64_t       n;
} pli_spread;

/** Errors: ENOMEM. Not collective. */
plait_status pli_spread_begin(pli_spread *s);
/** Hands the entry to its part, perhaps later, and perhaps after a round. false: the reader need not go on. */
bool pli_spread_put(pli_spread *s, const pli_row_entry *e);
/** Rounds until all are at the end of their pieces. status: how this worker's piece went. Errors: that; EPEER another
 *  worker could not go on; those of collectives. Collective over the workers, as are rounds within. */
plait_status pli_spread_end(pli_spread *s, plait_status status);

#endif
