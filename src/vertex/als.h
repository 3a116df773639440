/* vertex/als.h - what alternating least squares work on: ratings as the weights of edges from users to items.
 *
 * The objective is that of `train --model mf` with squared loss (docs/factors.md), for n ratings r of user u, item i:
 *
 *     (1/n) sum of ((r - mean - b_u - b_i - p_u.q_i)^2 + l2 (b_u^2 + b_i^2 + |p_u|^2 + |q_i|^2)) / 2 */
#ifndef PLI_VERTEX_ALS_H
#define PLI_VERTEX_ALS_H

#include "vertex/vertex.h"

enum { PLI_ALS_RANK = 64 }; /* the most factors */

typedef struct pli_als {
    int32_t   rank;
    double    l2, mean;
    uint64_t  seed;
    int64_t   users;
    uint32_t *row; /* [vertices] which user, or item, it is, by increasing id */
} pli_als;

/** As pli_vertex_named has them. Errors: EINVAL l2 is 0; EREFUSED a vertex is user and item; ENOMEM. */
plait_status pli_als_prepare(const pli_vertex_asked *asked, pli_vertex_choice *choice, plait_error *err);
void         pli_als_release(void **own);
uint64_t     pli_als_sign(const void *own);
plait_status pli_als_make(const pli_vertex_choice *choice, plait_vertex_program *program, plait_error *err);
pli_figures_fn pli_figures_als;

#endif
