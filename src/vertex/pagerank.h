/* vertex/pagerank.h - PageRank, vertex by vertex and in loops over many. */
#ifndef PLI_VERTEX_PAGERANK_H
#define PLI_VERTEX_PAGERANK_H

#include "vertex/vertex.h"

/** As pli_vertex_named has them. */
plait_status pli_pagerank_make(const pli_vertex_choice *choice, plait_vertex_program *program, plait_error *err);
void         pli_pagerank_finish(const pli_vertex_choice *choice, int64_t *value);

/* What a program's functions do for one vertex after the other, to the bit, in a loop without calls. A vertex tells its
 * value, which is one double, as is what it gathers; vertices are numbered as in the graph. */
typedef struct pli_vertex_loops {
    /* Takes gathered [v] from sum [v] for first <= v < last, and puts there by what value [v] changes. Returns the
     * largest change that apply would return; infinity, if one is NaN. */
    double (*apply)(const void *user, const plait_edges *edges, int64_t first, int64_t last, const double *value,
                    double *sum);
} pli_vertex_loops;

/** NULL: the program has functions for one vertex alone. */
const pli_vertex_loops *pli_vertex_loops_of(const plait_vertex_program *program);

#endif
