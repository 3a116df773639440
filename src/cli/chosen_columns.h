/* chosen_columns.h - train --columns auto: in how many columns an mlp's layers are cut is chosen before the run begins.
 *
 * Columns divide a layer's products and its weights' bytes among ranks, and cost messages for each row; replicas
 * divide the rows, and cost the sum of all gradients. Which is cheaper follows from the layers, the batch, the links
 * and the memory. So each number that divides the workers is simulated for a few clocks on the cluster's file
 * (foretell.h), with all its messages, and the one with the shortest clock is taken: a clock has the same rows, and
 * moves the weights by the same gradients, whatever the number is. (The search over layouts by simulated steps: Jia,
 * Zaharia, Aiken, "Beyond Data and Model Parallelism for Deep Neural Networks", MLSys 2019.) */
#ifndef PLI_CLI_CHOSEN_COLUMNS_H
#define PLI_CLI_CHOSEN_COLUMNS_H

#include "cli/foretell.h"

typedef struct pli_columns_choice {
    int32_t columns;
    char    why[256];
} pli_columns_choice;

/** like: the job, its pair and workers; its plan has any number of columns. Takes at most *left_ns of the processor,
 *  and less is left afterwards. Errors: what the simulations say if none runs; EIO, EINTERRUPTED, ENOMEM. */
plait_status pli_columns_choose(const pli_ahead *like, uint64_t *left_ns, pli_columns_choice *out, plait_error *err);

#endif
