/* chosen.h - train --topology auto, --consistency auto: the pair is chosen before the run begins; and so are --columns
 * auto (chosen_columns.h), first, with the pair that was named, or the first that could be chosen.
 *
 * The cluster's file says what messages and computing cost, so the job can be simulated there (foretell.h). First
 * allreduce x bsp, the pair that is surest to learn; then each other pair until it has reached the same loss, or needs
 * longer than the best so far. What counts is simulated time to a loss, not time for a clock: a clock of async costs
 * less, and may teach less. The stragglers are drawn by another seed than the run's, because the real ones are not
 * known. Another pair is taken only where it promises a clear gain. A resumed run keeps the pair of its checkpoint. */
#ifndef PLI_CLI_CHOSEN_H
#define PLI_CLI_CHOSEN_H

#include "cli/chosen_columns.h"
#include "cli/job_words.h"
#include "cli/settings.h"
#include "cli/talk.h"

typedef struct pli_chosen {
    plait_status status; /* below 0: err says why nothing could be chosen */
    plait_error  err;
    pli_job_pair pair; /* "": it was named */
    char         why[256];
    pli_columns_choice columns; /* columns 0: they were named */
} pli_chosen;

/** Are topology, consistency or columns left to the command? */
bool pli_chosen_is_wanted(const pli_train_settings *settings);
/** The first of them: "topology". */
const char *pli_chosen_option(const pli_train_settings *settings);
/** Chooses a pair for the plan, by at most ten seconds of this machine's processor; in one process of the job, before
 *  it opens a communicator. The outcome is in out. */
void pli_chosen_find(const pli_train_settings *settings, const pli_train_plan *plan, pli_chosen *out);
/** Gives what rank 0 has found to all ranks of a job of processes. Collective over all ranks. */
plait_status pli_chosen_share(plait_comm *comm, pli_chosen *chosen);

#endif
