/* Where Gaussian sums are measured from. A sum of squares less the square of a sum loses the digits that the mean has
 * before the spread: of 10^6 + N(0, 1) twelve of sixteen. Measured from a value near the mean it loses none (Chan,
 * Golub and LeVeque, "Algorithms for computing the sample variance", 1983). All workers take the same, whoever has
 * which block: the mean of each feature in the first rows of each block, class by class. */
#include "learn/bayes/bayes.h"
#include "tensor/exact_cells.h"

enum { ROWS_OF_BLOCK = 64 };

/* Sums of a block's first rows by feature and class, and behind them the rows of each class. */
static void add_block(const pli_bayes_fit *b, const pli_block *block, double *sum) {
    const int64_t k = b->fit.goal.classes, rows = block->rows < ROWS_OF_BLOCK ? block->rows : ROWS_OF_BLOCK;
    for (int64_t r = 0; r < rows; r++) {
        double y, ignored;
        if (!pli_goal_target(&b->fit.goal, block->label[r], &y, &ignored)) continue;
        const int64_t class = b->fit.goal.loss->target == PLI_CLASSES ? (int64_t)y : y > 0;
        sum[b->tally.features * k + class]++;
        for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++)
            sum[(int64_t)block->col[e] * k + class] += block->value != NULL ? (double)block->value[e] : 1;
    }
}

/* Sums [values] of all workers, exactly: the cut among workers does not show. */
static plait_status add_up(pli_run *run, int64_t values, double *sum, uint64_t *cells) {
    for (int32_t own = 0; own < pli_dataset_own_blocks(run->data); own++) {
        for (int64_t i = 0; i < values; i++) sum[i] = 0;
        add_block(pli_bayes_fit_of(run), pli_run_block(run, own), sum);
        pli_cells_add(true, values, sum, cells);
    }
    PLI_TRY(pli_comm_sum_cells(run->comm, true, values, cells));
    pli_cells_round(true, values, cells, sum);
    return PLAIT_OK;
}

plait_status pli_bayes_centre(pli_run *run) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    const int64_t  k = b->fit.goal.classes, d = b->tally.features, values = (d + 1) * k;
    double        *sum = b->centre = pli_calloc((size_t)values, sizeof *sum);
    uint64_t      *cells = pli_calloc((size_t)values, PLI_CELL_BYTES_F64);
    plait_status   status =
        sum != NULL && cells != NULL
              ? add_up(run, values, sum, cells)
              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for the means of %lld features", (long long)d);
    for (int64_t i = 0; status >= 0 && i < d * k; i++)
        sum[i] = sum[d * k + i % k] > 0 ? sum[i] / sum[d * k + i % k] : 0;
    b->tally.centre = b->centre;
    pli_free(cells);
    return status;
}
