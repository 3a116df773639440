/* Two replicas (--replicas 2): what becomes of the topics of a dead worker's tokens.
 *
 * They lie in a table, `tokens`, and so are copied as the counts are. All values of a block's rows are a range of it:
 *
 *     z  of clock c       the topics of the block's tokens, and whether they were drawn at all
 *     n  of clock c       the counts
 *     clock c             z, n -> z', n': reads z and n, draws, incs z' - z and n' - n
 *
 * The draw is a function of the seed, the epoch, the rows, z and n: each block begins with the counts of the clock's
 * beginning, as under --reduce exact. So whoever computes a block pushes the same, and a server may take the push of
 * the dead worker or that of its heir. Under bsp it takes exactly one of them, in `tokens` as in the counts: the counts
 * are those of the topics after each clock, whoever dies when. (Under ssp and async part of a dead worker's clock may
 * be missing, in one table but not in the other; they are refused.)
 *
 * A worker that stands in for a dead one has sent its own part of the clock before, and reads the counts of the clock's
 * beginning once more: without it.
 *
 * The table alone is right at every clock. Beside it a block's values are what its worker last read: those of an heir
 * are zeros until the block has rows in one of its clocks. So checkpoints of two replicas keep the table, those of one
 * the values, and a resumed run makes of either what it needs. */
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/keep/row_values.h"
#include "learn/solve/inherit.h"
#include "learn/topics/topics.h"
#include "table/state/state.h"

static plait_status no_memory(const pli_run *run) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for copies of the tokens' topics");
}

/* How many values each block has: [blocks], those of dead workers too. */
static plait_status measure_blocks(pli_run *run, int64_t *values) {
    const int32_t blocks = pli_dataset_blocks(run->data);
    int32_t       absent = pli_comm_absent(run->comm);
    do {
        pli_living   held;
        plait_status status = pli_living_blocks(run, run->data, &held);
        memset(values, 0, (size_t)blocks * sizeof *values);
        for (int32_t i = 0; status >= 0 && i < held.n; i++)
            for (int64_t r = 0; r < held.block[i]->rows; r++)
                values[held.block[i]->number] += pli_lda_row_values(held.block[i], r);
        pli_living_blocks_free(&held);
        PLI_TRY(status);
        PLI_TRY(plait_comm_allreduce(run->comm, values, blocks, PLAIT_I64, PLAIT_SUM));
    } while (pli_run_again(run, &absent));
    return PLAIT_OK;
}

/* Finds where each block's values begin in the table; *most_out: those of the largest. Collective. */
static plait_status place_blocks(pli_run *run, int64_t *most_out) {
    pli_lda      *m = pli_lda_of(run);
    const int32_t blocks = pli_dataset_blocks(run->data);
    *most_out = 0;
    m->base = pli_calloc((size_t)blocks + 1, sizeof *m->base);
    if (m->base == NULL) return no_memory(run);
    PLI_TRY(measure_blocks(run, m->base + 1));
    for (int32_t b = 0; b < blocks; b++) {
        if (m->base[b + 1] > *most_out) *most_out = m->base[b + 1];
        m->base[b + 1] += m->base[b];
    }
    return PLAIT_OK;
}

plait_status pli_lda_copies_begin(pli_run *run) {
    pli_lda *m = pli_lda_of(run);
    int64_t  most;
    PLI_TRY(place_blocks(run, &most));
    pli_row_values_lie_elsewhere(run);
    m->before = pli_array((size_t)most + 1, sizeof *m->before);
    if (m->before == NULL) return no_memory(run);
    return pli_run_table(run, "tokens", PLAIT_I64, m->base[pli_dataset_blocks(run->data)], 1, NULL, &m->token);
}

void pli_lda_copies_end(pli_lda *m) {
    pli_free(m->base);
    pli_free(m->before);
}

plait_status pli_lda_copies_read(pli_run *run, int64_t block) {
    pli_lda      *m = pli_lda_of(run);
    const int64_t n = m->base[block + 1] - m->base[block];
    int64_t      *values = pli_row_values_of_block(run, block);
    PLI_TRY(plait_table_get_range(m->token, m->base[block], n, values));
    memcpy(m->before, values, (size_t)n * sizeof *values);
    return PLAIT_OK;
}

/* Topics are packed four in a number, and differences of numbers wrap around: the sum is the number that was meant. */
plait_status pli_lda_copies_push(pli_run *run, int64_t block) {
    pli_lda       *m = pli_lda_of(run);
    const int64_t  n = m->base[block + 1] - m->base[block];
    const int64_t *values = pli_row_values_of_block(run, block);
    for (int64_t i = 0; i < n; i++) m->before[i] = (int64_t)((uint64_t)values[i] - (uint64_t)m->before[i]);
    return plait_table_inc_range(m->token, m->base[block], n, m->before, 0);
}

/* --- resumed with another number of replicas ---------------------------------------------------------------------- */

#define KEPT_TOKENS "tokens.values"

static plait_status other_shape(const pli_run *run, const char *name) {
    return pli_fail(run->err, PLAIT_EMISMATCH, "%s/%s: tensor %s does not have the shape of this run's tokens",
                    run->opts->resume, run->resume->folder, name);
}

/* The values of a block, out of the table that the checkpoint kept. */
static plait_status take_block(pli_run *run, const pli_checkpoint_tensor *kept, const pli_block *block) {
    const int64_t *base = pli_lda_of(run)->base + block->number;
    pli_part       part = { .block = block };
    PLI_TRY(pli_row_values_hold(run, &(pli_batch){ .part = &part, .parts = 1 }));
    return pli_checkpoint_read(run->resume->checkpoint, kept, base[0], base[1] - base[0],
                               pli_row_values_of_block(run, block->number), run->err);
}

plait_status pli_lda_copies_take(pli_run *run) {
    pli_lda                     *m = pli_lda_of(run);
    const pli_checkpoint_tensor *kept;
    int64_t                      most;
    if (m->token != NULL) return PLAIT_OK;
    kept = pli_checkpoint_find(run->resume->checkpoint, KEPT_TOKENS);
    if (kept == NULL) return PLAIT_OK;
    PLI_TRY(place_blocks(run, &most));
    if (kept->shape[0] != m->base[pli_dataset_blocks(run->data)] || pli_checkpoint_row_bytes(kept) != sizeof *m->base)
        return other_shape(run, KEPT_TOKENS);
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++)
        PLI_TRY(take_block(run, kept, pli_dataset_block(run->data, b)));
    return PLAIT_OK;
}

/* Puts the values that were kept of a block into the table; zeros, "not yet drawn", stay if there are none. */
static plait_status put_block(pli_run *run, int32_t block) {
    pli_lda      *m = pli_lda_of(run);
    const int64_t n = m->base[block + 1] - m->base[block];
    char          name[PLI_ROW_VALUES_NAME];
    pli_row_values_name(block, name);
    if (!pli_resume_has(run, name, NULL)) return PLAIT_OK;
    PLI_TRY(pli_resume_array(run, name, n, sizeof *m->before, m->before));
    return pli_state_put(m->token, PLI_STATE_VALUES, m->base[block], n, NULL, m->before, run->err);
}

plait_status pli_lda_copies_put(pli_run *run, const plait_table *table, bool *done_out) {
    const pli_lda *m = pli_lda_of(run);
    int64_t        first = 0, n = pli_dataset_blocks(run->data);
    *done_out = m->token != NULL && table == m->token && !pli_resume_has(run, KEPT_TOKENS, NULL);
    if (!*done_out) return PLAIT_OK;
    if (!pli_state_is_copied(m->token)) pli_state_share(m->token, n, &first, &n);
    for (int64_t b = first; b < first + n; b++) PLI_TRY(put_block(run, (int32_t)b));
    return PLAIT_OK;
}
