/* table/client/aggregate.h - the workers of a host add their updates up in memory, then one of them pushes the sum. At
 * the end of a clock each worker hands its pending updates to the host's *lead*, the worker with the lowest number, who
 * adds them to its own and pushes the sum. A server hears from the others only that their clock has ended; it applies a
 * clock when all have ended it, and by then their part is there, since the lead's has come. So no server knows of this,
 * and it needs a consistency that applies updates at clocks (bsp).
 *
 * If a host's workers touch the same rows, the bytes that it pushes do not grow with their number.
 *
 * Paper: Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, section 4.2
 * (aggregation before the network). */
#ifndef PLI_TABLE_AGGREGATE_H
#define PLI_TABLE_AGGREGATE_H

#include "comm/msg.h"
#include "table/client/client.h"

/** Moves all pending updates of the client's tables into one message for the lead. NULL: no memory. */
pli_msg *pli_aggregate_hand(pli_client *client);

/** Adds the updates that another worker has handed over to those pending here. Errors: EFORMAT the message does not
 *  fit the tables, ENOMEM. */
plait_status pli_aggregate_add(pli_client *client, const pli_msg *msg, plait_error *err);

#endif
