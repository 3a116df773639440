/* vertex/ranked.h - the simple graph by ranks: see ranked.c. */
#ifndef PLI_VERTEX_RANKED_H
#define PLI_VERTEX_RANKED_H

#include "vertex/vertex.h"

typedef struct pli_ranked {
    uint32_t     *rank_of, *vertex_of; /* [n] by vertices, by ranks */
    pli_neighbors up;                  /* by ranks: neighbors of a higher rank, increasing */
} pli_ranked;

typedef struct pli_ranked_made pli_ranked_made; /* the making of it */

pli_ranked_made *pli_ranked_begin(void); /* NULL: no memory */
void         pli_ranked_free(pli_ranked_made *ranking);
/** The ranked form of the simple graph, always the same one. Who calls while it is being made helps, with the threads
 *  of pool (NULL: none). Any thread. NULL: no memory. */
const pli_ranked *pli_ranked_of(pli_ranked_made *ranking, const pli_neighbors *simple, pli_pool *pool);
/** Kept with the graph, as pli_edges_simple is. */
const pli_ranked *pli_edges_ranked(const plait_edges *edges, pli_pool *pool);

#endif
