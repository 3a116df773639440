/* onebit - a value's sign, beside two means: of the values from 0 up, and of those below, for each column of each block
 * of 256 rows. The error is larger than the value more often than not; what makes it work is that all of it joins the
 * next push. Blocks keep rows of small gradients (pixels that are always dark) from the means of large ones, whose
 * error would drown them: with one pair of means for a net's first layer adam takes noise for gradients there.
 *
 * Papers: Seide, Fu, Droppo, Li, Yu, "1-Bit Stochastic Gradient Descent and its Application to Data-Parallel
 * Distributed Training of Speech DNNs", Interspeech 2014; Alistarh et al., "QSGD", NIPS 2017 (means by blocks). */
#include "table/filter/filter.h"

#include <string.h>

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)state, (void)table;
    return pli_filter_takes_none("onebit", parameters, err);
}

enum { BLOCK_ROWS = 256 };

/* Bytes of all means. */
static int64_t means_of(const plait_part *part, int64_t n) {
    const int64_t rows = n / part->cols, blocks = (rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    return 2 * (blocks > 0 ? blocks : 1) * part->cols * pli_value_bytes(part->type);
}

static int64_t size_of(const plait_part *part, int64_t n) { return means_of(part, n) + (n + 7) / 8; }

static int64_t bound(const void *state, const plait_part *part, int64_t n) {
    (void)state;
    return size_of(part, n);
}

/* Writes for each column of values from .. to - 1 the mean of those from 0 up (side 0) and of those below (side 1). NaN
 * counts as 0 or more. */
static void put_means(const plait_part *part, int64_t from, int64_t to, const void *values, void *means) {
    for (int64_t c = 0; c < part->cols; c++) {
        double  sum[2] = { 0, 0 };
        int64_t count[2] = { 0, 0 };
        for (int64_t i = from + c; i < to; i += part->cols) {
            double x = pli_value_at(part->type, values, i);
            sum[x < 0] += x;
            count[x < 0]++;
        }
        for (int side = 0; side < 2; side++)
            pli_value_put(part->type, means, 2 * c + side, count[side] > 0 ? sum[side] / (double)count[side] : 0);
    }
}

static int64_t encode(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                      void *bytes) {
    const int64_t  means = means_of(part, n), size = size_of(part, n), block = BLOCK_ROWS * part->cols;
    unsigned char *bit = (unsigned char *)bytes + means;
    void          *mean = pli_malloc((size_t)means); /* bytes need not be aligned */
    (void)state, (void)row;
    if (mean == NULL) return PLAIT_ENOMEM;
    memset(mean, 0, (size_t)means);
    for (int64_t from = 0; from < n; from += block)
        put_means(part, from, n - from < block ? n : from + block, values,
                  (unsigned char *)mean + from / block * 2 * part->cols * pli_value_bytes(part->type));
    memcpy(bytes, mean, (size_t)means);
    pli_free(mean);
    memset(bit, 0, (size_t)(size - means));
    for (int64_t i = 0; i < n; i++)
        if (pli_value_at(part->type, values, i) < 0) bit[i / 8] |= (unsigned char)(1 << i % 8);
    return size;
}

static plait_status decode(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                           void *values) {
    const int64_t        width = pli_value_bytes(part->type), means = means_of(part, n);
    const unsigned char *mean = bytes, *bit = mean + means;
    (void)state;
    if (size != size_of(part, n)) return PLAIT_EFORMAT;
    for (int64_t i = 0; i < n; i++)
        memcpy((unsigned char *)values + i * width,
               mean + (2 * (i / (BLOCK_ROWS * part->cols) * part->cols + i % part->cols) + (bit[i / 8] >> i % 8 & 1)) *
                          width,
               (size_t)width);
    return PLAIT_OK;
}

const plait_filter pli_onebit_filter = {
    .name = "onebit",
    .parameters = "",
    .summary = "sends of a push only the sign of each value, and two means for each column of 256 rows",
    .state_bytes = 1,
    .loss = PLAIT_ROUNDED,
    .parse = parse,
    .values = { .bound = bound, .encode = encode, .decode = decode },
};
