/* learn/keep/row_values.h - values that a learner keeps for each row of the data (plait_learner.row_cols), such as a
 * word's topic or a row's leaf.
 *
 * They lie beside the tables, with the worker that has the row, and travel to nobody, unless the row does: they are as
 * large as the data. A
 * block's values are memory of their own, made when the worker first has rows of the block. A checkpoint has a tensor
 * "row_values.BLOCK" for each block whose values are there; blocks do not depend on how many workers there are, so a
 * resumed run finds the values of its own blocks, whoever wrote them. A worker that takes over blocks of a dead one
 * begins with zeros: a learner must be able to make good values out of them. One that copies the values into a table
 * has better ones there (pli_row_values_lie_elsewhere). */
#ifndef PLI_LEARN_ROW_VALUES_H
#define PLI_LEARN_ROW_VALUES_H

#include "learn/keep/writer.h"
#include "learn/learner.h"

enum { PLI_ROW_VALUES_NAME = 40 };

/** This call, and all others, do nothing if the learner keeps no values. Errors: ENOMEM. */
plait_status pli_row_values_begin(pli_run *run);
/** The same for a solver that keeps `cols` values of this type for each row. */
plait_status pli_row_values_begin_with(pli_run *run, plait_type type, int64_t cols);
void         pli_row_values_end(pli_run *run);
/** Before a step: makes memory for all rows of the batch. Errors: ENOMEM. */
plait_status pli_row_values_hold(pli_run *run, const pli_batch *batch);

/** Forgets the values of all other blocks: other workers have them. */
void pli_row_values_keep(pli_run *run, const pli_batch *batch);

/** Blocks have changed hands: each worker gets the values of the blocks that it has now from the worker that had them.
 *  before, after: [blocks] the holder of each, then and now. A holder that has died sends nothing: its values become
 *  zeros. Collective. */
plait_status pli_row_values_carry(pli_run *run, const int32_t *before, const int32_t *after);

/** The values lie in a table, too: checkpoints leave them out. */
void pli_row_values_lie_elsewhere(pli_run *run);

/** All values of a block, once memory for them was made; NULL before. */
void *pli_row_values_of_block(const pli_run *run, int64_t block);

/** plan adds their tensors to this worker's part of a checkpoint; put hands over their bytes in the same order, and
 *  fails if the callback returns false. */
void pli_row_values_plan(const pli_run *run, pli_part_plan *plan);
bool pli_row_values_put(const pli_run *run, bool (*put)(void *user, const void *bytes, int64_t n), void *user);
/** The name of a block's tensor. */
void pli_row_values_name(int32_t block, char name[PLI_ROW_VALUES_NAME]);
/** Reads the values of own blocks back. Errors: EMISMATCH, ECHECKSUM, EIO, ENOMEM. */
plait_status pli_row_values_restore(pli_run *run);

#endif
