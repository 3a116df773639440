/* graph/batches.h - runs of a cut graph. */
#ifndef PLI_GRAPH_BATCHES_H
#define PLI_GRAPH_BATCHES_H

#include "graph/session.h"

/** A run of a session whose graph is cut, as plait_session_run makes it: one micro-batch. */
plait_status pli_batches_run_one(plait_session *session, const pli_plan_key *key, plait_fetch *fetches,
                                 plait_error *err);

#endif
