/* Values of rows that change hands, by two sums over the workers: how much memory the values of each block take, and
 * that memory, as whole numbers, of which one worker has each and all others add 0. See row_values.h. */
#include "learn/keep/row_values.h"

#include <string.h>

#include "learn/keep/row_values_impl.h"

static int64_t bytes_of(const pli_row_values *v, int32_t b) {
    return pli_row_values_count(v, b) / v->cols * v->row_bytes;
}

/* Of a block whose values are there: words of 8 bytes. */
static int64_t words_of(const pli_row_values *v, int32_t b) { return (bytes_of(v, b) + 7) / 8; }

/* Adds up. all [total] and count [blocks], in words, are of the blocks that move. */
static plait_status carry(pli_run *run, const int32_t *before, const int32_t *after, int64_t *count,
                          unsigned char **all) {
    pli_row_values *v = run->row_values;
    const int32_t   me = plait_comm_rank(run->comm);
    int64_t         total = 0, at = 0;
    for (int32_t b = 0; b < v->blocks; b++)
        if (before[b] != after[b] && before[b] == me && v->values[b] != NULL) count[b] = words_of(v, b);
    PLI_TRY(plait_comm_allreduce(run->comm, count, v->blocks, PLAIT_I64, PLAIT_SUM));
    for (int32_t b = 0; b < v->blocks; b++) total += count[b];
    if (total == 0) return PLAIT_OK;
    *all = pli_calloc((size_t)total, 8);
    if (*all == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the values of rows that change hands");
    for (int32_t b = 0; b < v->blocks; at += count[b++])
        if (count[b] > 0 && before[b] == me) memcpy(*all + at * 8, v->values[b], (size_t)bytes_of(v, b));
    PLI_TRY(plait_comm_allreduce(run->comm, *all, total, PLAIT_I64, PLAIT_SUM));
    at = 0;
    for (int32_t b = 0; b < v->blocks; at += count[b++])
        if (count[b] > 0 && after[b] == me && v->values[b] != NULL && count[b] == words_of(v, b))
            memcpy(v->values[b], *all + at * 8, (size_t)bytes_of(v, b));
    return PLAIT_OK;
}

plait_status pli_row_values_carry(pli_run *run, const int32_t *before, const int32_t *after) {
    unsigned char *all = NULL;
    if (run->row_values == NULL || run->row_values->elsewhere) return PLAIT_OK;
    int64_t     *count = pli_calloc((size_t)run->row_values->blocks, sizeof *count);
    plait_status status = count != NULL ? carry(run, before, after, count, &all)
                                        : pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    pli_free(all);
    pli_free(count);
    return status;
}
