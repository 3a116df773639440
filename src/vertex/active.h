/* vertex/active.h - which vertices take part in a superstep: all, or those that are signaled. */
#ifndef PLI_VERTEX_ACTIVE_H
#define PLI_VERTEX_ACTIVE_H

#include "vertex/vertex.h"

typedef struct pli_active {
    uint8_t  *now;     /* [n of part] 1: it takes part; NULL: all do                 */
    uint8_t  *stays;   /* [n of part] 1: it also takes part in the next superstep     */
    uint8_t  *changed; /* [n of part] 1: it tells what it has not told before         */
    char     *seen;    /* [n of part] what was told when it was last looked at        */
    uint8_t  *cached;  /* [n of part] 1: sum has what it has gathered; NULL: no gathers are cached */
    char     *sum;     /* [n of part] lent by the engine                              */
    uint64_t *key;     /* [owned] of those whose changes are packed                   */
    int64_t  *rows;    /* of signals.c; NULL: not used yet                            */
    int64_t   applied; /* of the last superstep, own                                  */
    bool      begun;
    bool      behind; /* what was gathered may be of more than what was seen: others were ahead */
    bool      ready; /* who takes part was found before the superstep */
} pli_active;

bool pli_active_make(const pli_vertex_run *run, pli_active *a); /* false: no memory */
void pli_active_free(pli_active *a);
/** Vertex v of the part had this value when it was last looked at. */
void pli_active_see(pli_active *a, const pli_vertex_run *run, int64_t v, const void *value);
/** Before a superstep, when run->told is there: who takes part. */
void pli_active_next(pli_active *a, pli_vertex_run *run);
/** Notes whether others are ahead of what this worker has seen, after what vertices tell was read once more. */
void pli_active_reread(pli_active *a, const pli_vertex_run *run);
/** An own vertex has applied and changed by so much. */
void pli_active_stays(pli_active *a, const pli_vertex_run *run, int64_t v, double change);
/** Were so few active that their changes are pushed by key? */
bool pli_active_is_sparse(const pli_active *a, const pli_vertex_run *run);
/** Moves the changes of active vertices to the front of change [owned]; a->key [returned] has their numbers. */
int64_t pli_active_pack(pli_active *a, const pli_vertex_run *run, char *change);

/** Is what the vertex has gathered cached? If not, and gathers are cached, what it gathers now is from here on. */
static inline bool pli_active_takes_sum(pli_active *a, int64_t v) {
    const bool cached = a->cached != NULL && a->cached[v];
    if (a->cached != NULL) a->cached[v] = 1;
    return cached;
}

static inline bool pli_is_active(const pli_active *a, int64_t v) { return a->now == NULL || a->now[v]; }

#endif
