/* vertex/beliefs.h - what belief propagation works on: a pairwise Markov random field over the simple graph.
 *
 *     p(x) ~ product over vertices of prior_v(x_v)  *  product over edges of exp(-cost_uv [x_u != x_v])
 *
 * x_v is one of `labels`, and cost_uv the edge's weight times --smoothing (Potts' model). So a graph's file and one
 * of priors describe it: a noisy picture is a grid of pixels, whose priors say how probable each color is by what was
 * seen of the pixel alone.
 *
 *     beliefs_data.c  reads the priors, and finds where neighbors have each other in their rows
 *     beliefs.c       the program */
#ifndef PLI_VERTEX_BELIEFS_H
#define PLI_VERTEX_BELIEFS_H

#include "vertex/vertex.h"

enum { PLI_BELIEF_LABELS = 256 }; /* the most labels */

typedef struct pli_beliefs {
    int32_t              labels, slots; /* slots: neighbors of the vertex that has the most      */
    bool                 most_probable; /* messages take the largest over labels, not the sum    */
    double               smoothing;
    double              *prior;  /* [vertices, labels] logarithms; all 0 where the file has none */
    const pli_neighbors *simple; /* the graph's                                                  */
    int32_t             *back;   /* [entries of simple] which entry of the neighbor's row is the vertex itself */
    float               *weight; /* [entries of simple]; NULL: all 1 */
    uint64_t             hash;
} pli_beliefs;

/** As pli_vertex_named has them. Errors: EIO; EFORMAT what is wrong with the priors, by file and line; EREFUSED edges
 *  between two vertices have different weights, or a value would have more than PLI_VERTEX_MOST numbers; ENOMEM. */
plait_status pli_beliefs_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err);
void         pli_beliefs_release(void **own);
uint64_t     pli_beliefs_sign(const void *own);
plait_status pli_beliefs_make(const pli_vertex_choice *choice, plait_vertex_program *program, plait_error *err);
int32_t      pli_beliefs_shown(const pli_vertex_choice *choice);
pli_figures_fn pli_figures_beliefs;

/** The priors of a text in memory [bytes]: lines ID NUMBER NUMBER ..., a number of 0 or more for each label. Fills
 *  b->labels and b->prior, also after an error. */
plait_status pli_beliefs_parse(const char *name, const char *text, size_t bytes, const plait_edges *edges,
                               pli_beliefs *b, plait_error *err);

#endif
