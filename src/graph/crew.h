/* graph/crew.h - threads that run the tasks of a plan together. */
#ifndef PLI_GRAPH_CREW_H
#define PLI_GRAPH_CREW_H

#include "graph/plan.h"

typedef struct pli_crew pli_crew;

/* Runs items [first, end) of node k; a node that the store does has no items. */
typedef plait_status pli_node_fn(void *user, int64_t k, int64_t first, int64_t end, int32_t thread, plait_error *err);

plait_status pli_crew_create(const pli_plan *plan, pli_crew **crew_out, plait_error *err);
void         pli_crew_destroy(pli_crew **crew);
/** Runs all tasks of the plan on the threads of pool, of which the caller is one; the caller alone runs tasks of the
 *  store. Returns when all are done, or when one failed and no thread works any more. */
plait_status pli_crew_run(pli_crew *crew, pli_pool *pool, pli_node_fn *fn, void *user, plait_error *err);

#endif
