/* lost.h - the ranks that a run has lost and gone on without (train --replicas 2), as the run's user hears of them. */
#ifndef PLI_CLI_LOST_H
#define PLI_CLI_LOST_H

#include "base/base.h"

typedef struct pli_lost {
    int32_t *rank; /* [n] in the order of their deaths */
    int64_t  n, capacity;
} pli_lost;

/** Of a job with so many workers, the last `spares` of which stand ready: what becomes of the run without this rank,
 *  "the run goes on without it, and spare rank 4 takes its place". Into text. */
void pli_lost_add(pli_lost *lost, int32_t rank, int32_t workers, int32_t spares, pli_text *text);
/** A row of the result's table; nothing where none was lost. */
void pli_lost_row(const pli_lost *lost, int32_t workers, int32_t spares, pli_text *text);
void pli_lost_free(pli_lost *lost);

#endif
