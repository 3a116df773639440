/* table/client/aggregate.h - inside a host by memory, then one push out: at the end of a clock the workers of a host
 * hand what they have pending to their *lead*, the lowest of them, who adds it to its own and pushes the sum. A server
 * hears from the others only that their clock has ended; it applies a clock when all have ended it, and by then their
 * part is there, since the lead's has come. So no server knows of this, and it needs a consistency that applies updates
 * at clocks (bsp).
 *
 * Bytes of a host's pushes do not grow with its workers, where these touch the same rows.
 *
 * Paper: Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, section 4.2
 * (aggregation before the network). */
#ifndef PLI_TABLE_AGGREGATE_H
#define PLI_TABLE_AGGREGATE_H

#include "comm/msg.h"
#include "table/client/client.h"

/** What is pending on the client's tables, as one message for the lead; it is pending no more. NULL: no memory. */
pli_msg *pli_aggregate_hand(pli_client *client);

/** Adds what another worker has handed over to what is pending here. Errors: EFORMAT it does not fit, ENOMEM. */
plait_status pli_aggregate_add(pli_client *client, const pli_msg *msg, plait_error *err);

#endif
