/* Checks, before training, that every row of the test and validation sets can be judged. */
#include "learn/supervised/fit.h"

#include <math.h>

/* Are the earlier labels of a text's window, which are symbols of its row, all known? */
static bool knows_earlier(const pli_run *run, const pli_block *block, int64_t row) {
    const uint32_t width = (uint32_t)pli_schema_symbols(run->schema) + 1;
    const int64_t  end = block->row_start[row + 1];
    for (int64_t e = end + 1 - pli_block_labels(block, row); e < end; e++)
        if (block->col[e] % width == width - 1) return false;
    return true;
}

plait_status pli_fit_check_judged(pli_run *run, const pli_dataset *data, const char *name) {
    const bool text = pli_schema_symbols(run->schema) > 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(data); b++) {
        const pli_block *block = pli_dataset_block(data, b);
        for (int64_t r = 0; r < block->rows; r++) {
            double y, weight;
            bool   known = pli_goal_target(&pli_fit_of(run)->goal, block->label[r], &y, &weight);
            if (known && text && block->earlier > 0) known = knows_earlier(run, block, r);
            if (known) continue;
            if (pli_dataset_has_label_file(data) && isnan(block->label[r]))
                return pli_fail(run->err, PLAIT_EINVAL,
                                "%s: there is no file of labels beside these images; it must have the same name, with "
                                "labels for images (of an array X.npy: y.npy)",
                                name);
            pli_fail(run->err, PLAIT_EFORMAT, text ? PLI_UNKNOWN_CHARACTER : PLI_UNKNOWN_LABEL,
                     (long long)(block->first_row + r + 1));
            return pli_fail_at(run->err, "%s", name);
        }
    }
    return PLAIT_OK;
}
