/* learn/net/handover.h - a table's rows go from one group of ranks to another while a run lasts.
 *
 * A table belongs to a group for life (plait/group.h), so a table that goes to other ranks ends, and another one of its
 * name begins there. What a checkpoint would hold of it goes along: values, the rule's state, and how far lazy
 * penalties are paid. It goes by message, from memory to memory, and bit for bit:
 *
 *          giving group                                taking group
 *     capture (table/state/state.h)
 *     pieces of rows  ------------------------->  received by the rank, kept until the table is there
 *     plait_table_drop                            plait_table_create, without first values
 *                                                 pli_state_put of all pieces, then a barrier
 *
 * Both groups have equally many ranks, one after the other in the run. Each giver takes a share of the rows, as for a
 * checkpoint. Where a table lies on servers, each giver sends its share to one taker; where each member has a copy, to
 * all takers. What filters have kept of a member's updates (table/state/rest.h) goes to the member of its number.
 */
#ifndef PLI_LEARN_HANDOVER_H
#define PLI_LEARN_HANDOVER_H

#include <plait/table.h>

#include "comm/comm.h"

/* A table that goes. */
typedef struct pli_handed {
    plait_table *table;
    int32_t      number; /* the same on both sides */
    int32_t      first;  /* the first rank of the other group */
} pli_handed;

/** Sends tables [n], n > 0, of the caller's group of `ranks` members, of which it is number `me`, to the groups that
 *  take them. At a clock's edge. The tables stay as they are; the caller drops them. Errors: EREFUSED a checkpoint
 *  could not hold such a table; ENOMEM. Collective over the group. */
plait_status pli_handover_give(plait_comm *comm, const pli_handed *tables, int32_t n, int32_t ranks, int32_t me,
                               plait_error *err);
/** Receives tables [n], which are new. A barrier must follow. Errors: EFORMAT, ENOMEM. */
plait_status pli_handover_take(plait_comm *comm, const pli_handed *tables, int32_t n, int32_t ranks, plait_error *err);

#endif
