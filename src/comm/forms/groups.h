/* comm/forms/groups.h - workers in P groups, where P is the largest power of two that is at most W: halving and
 * doubling need a power of two. The first W - P groups have two workers side by side, of which the *second* gives its
 * values to the first before the rounds and gets the result after them. Every other group is one worker. The lowest
 * worker of a group acts for it.
 *
 * In a round, groups meet whose numbers differ in one bit, the highest bit first. So a sum has the same bits however
 * the vector is cut. */
#ifndef PLI_COMM_GROUPS_H
#define PLI_COMM_GROUPS_H

#include "comm/forms/forms.h"

typedef struct pli_groups {
    int32_t rounds, p, extra; /* P = 2^rounds = W - extra */
    int32_t group;            /* my group's number */
    bool    paired, second;   /* my group has two workers; I am its second */
} pli_groups;

static inline pli_groups pli_groups_of(int32_t me, int32_t workers) {
    pli_groups g = { .rounds = pli_floor_log2(workers) };
    g.p = 1 << g.rounds;
    g.extra = workers - g.p;
    g.paired = me < 2 * g.extra;
    g.second = g.paired && me % 2 != 0;
    g.group = g.paired ? me / 2 : me - g.extra;
    return g;
}

static inline int32_t pli_group_lowest(const pli_groups *g, int32_t group) {
    return group < g->extra ? 2 * group : group + g->extra;
}

/** The group that mine meets in round 1 .. rounds. */
static inline int32_t pli_group_other(const pli_groups *g, int32_t round) { return g->group ^ g->p >> round; }

/** Before the rounds: the second sends its values to the first. */
static inline void pli_group_give(const pli_groups *g, const pli_coll *c, int32_t me, pli_coll_move *m) {
    if (g->paired) pli_form_whole(c, g->second ? me - 1 : -1, g->second ? -1 : me + 1, true, m);
}
/** After the rounds: the first sends the result to the second. */
static inline void pli_group_hear(const pli_groups *g, const pli_coll *c, int32_t me, pli_coll_move *m) {
    if (g->paired) pli_form_whole(c, g->second ? -1 : me + 1, g->second ? me - 1 : -1, false, m);
}

#endif
