/* vertex/signals.h - which vertices a dead worker had signaled: told by a table. See signals.c. */
#ifndef PLI_VERTEX_SIGNALS_H
#define PLI_VERTEX_SIGNALS_H

#include "vertex/active.h"

/** Makes the table NAME.before. Collective over the workers. */
plait_status pli_signals_make(pli_vertex_run *run);
/** Pushes what the part's own vertices had in this superstep, and who takes part again: behind apply, before anything
 *  else is pushed. */
plait_status pli_signals_push(pli_vertex_run *part, pli_active *a);
/** Sets a to what the dead worker's was before this superstep. Then pli_active_next finds who takes part. */
plait_status pli_signals_recall(pli_vertex_run *part, pli_active *a);

#endif
