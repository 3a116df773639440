/* graph/dump.h - draws a plan: a Graphviz file of its nodes, the values between them, and where the values lie. */
#ifndef PLI_GRAPH_DUMP_H
#define PLI_GRAPH_DUMP_H

#include "graph/plan.h"

/** Writes folder/plan-HASH-PASS-WHEN.dot; folder NULL: nothing. Errors: EIO, ENOMEM. */
plait_status pli_dump(const pli_plan *plan, const char *folder, const char *pass, const char *when, plait_error *err);

#endif
