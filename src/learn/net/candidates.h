/* learn/net/candidates.h - the classes that some rows are scored on by a sampled softmax (draws.h): those drawn at the
 * clock, and the rows' own ones. */
#ifndef PLI_LEARN_CANDIDATES_H
#define PLI_LEARN_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#include "learn/net/draws.h"

struct pli_net;

/* They lie part by part (pli_net.columns), increasing within each. A part may have none. */
typedef struct pli_candidates {
    const pli_draws *draws; /* borrowed */
    int64_t *of_part; /* [parts] how many each part has         */
    int64_t *row;     /* [n] the class's number within its part */
    double  *bonus;   /* [n] -infinity: it counts for rows of this class alone */
    int64_t  n;
    uint64_t *own; /* room: the rows' classes */
    int64_t  parts_capacity, row_capacity, bonus_capacity, own_capacity;
} pli_candidates;

/** For rows with these labels; false: no memory. An unknown label adds nothing. */
bool pli_candidates_find(const struct pli_net *net, pli_candidates *c, int64_t labels, const double *label);
void pli_candidates_free(pli_candidates *c);

#endif
