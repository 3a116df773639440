/* lost.h - describes to the user the ranks that a run has lost while it went on (train --replicas 2). */
#ifndef PLI_CLI_LOST_H
#define PLI_CLI_LOST_H

#include <plait/train.h>

#include "base/base.h"

typedef struct pli_lost {
    int32_t *rank; /* [n] in the order of their deaths */
    int64_t  n, capacity;
} pli_lost;

/** Adds to text what happens after the loss of a rank: "the run goes on without it, and spare rank 4 takes its place".
 *  The last `spares` of the job's workers are spares. */
void pli_lost_add(pli_lost *lost, int32_t rank, int32_t workers, int32_t spares, pli_text *text);
/** Adds what is lost with a worker, of updates that it had made and not sent: what filters keep back, what a policy
 *  gathers from clock to clock, what its own mirror has moved. Nothing where all is sent. The run's own filter and
 *  consistency count, and those of single tables. */
void pli_lost_with(const plait_train_opts *train, pli_text *text);
/** Adds a row to the table of results; nothing if no rank was lost. */
void pli_lost_row(const pli_lost *lost, int32_t workers, int32_t spares, pli_text *text);
void pli_lost_free(pli_lost *lost);

#endif
