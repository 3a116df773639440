/* learn/keep/kept_rests.h - what filters have kept of each worker's updates (table/state/rest.h), as tensors of a
 * checkpoint: TABLE.rest.W of worker W, and of a sparse table the rows' keys, TABLE.rest_keys.W.
 *
 * A run goes on with any number of workers: W's rest goes to the worker that is W by the new number of those that are
 * not spares, or to its heir. */
#ifndef PLI_LEARN_KEPT_RESTS_H
#define PLI_LEARN_KEPT_RESTS_H

#include "learn/keep/kept_pieces.h"
#include "learn/keep/writer.h"
#include "table/state/rest.h"

typedef struct pli_kept_rest {
    char     name[PLI_KEPT_NAME]; /* of the table */
    int32_t  worker;
    pli_rest rest;
} pli_kept_rest;

/** Takes this worker's: pli_rest_take. The caller frees out->rest, and an error leaves it empty. */
plait_status pli_kept_rest_take(plait_table *table, pli_kept_rest *out, plait_error *err);
/** Adds its tensors to this worker's part; none if nothing is kept. */
void pli_kept_rest_plan(const pli_kept_rest *kept, pli_part_plan *plan);
/** Hands over the tensors' bytes in the plan's order, in messages. Errors: ENOMEM. */
plait_status pli_kept_rest_put(const pli_kept_rest *kept, void (*take)(void *user, pli_msg *bytes), void *user,
                               plait_error *err);

/** Is this the end of such a tensor's name, "rest.3"? */
bool pli_kept_rest_is(const char *what);
/** Gives the table what the checkpoint holds for this worker, instead of what its filters keep. name, where: as of
 *  pli_kept_put. looks: changes nothing. Errors: EMISMATCH, ECHECKSUM, EIO, ENOMEM. Not collective. */
plait_status pli_kept_rest_back(pli_checkpoint *checkpoint, const char *where, const char *name, plait_table *table,
                                bool looks, plait_error *err);

#endif
