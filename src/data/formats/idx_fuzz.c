/* Feeds any bytes as an IDX file: if its header is accepted, every element can be read. */
#include "data/formats/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_idx_array array;
    plait_error   err;
    if (pli_idx_read("fuzzed", data, size, &array, &err) < 0) return 0;
    int64_t n = 1;
    for (int32_t i = 0; i < array.axes; i++) n *= array.length[i];
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += pli_idx_element(&array, data + array.begin, i);
    return sum == 0.5 && n < 0; /* never true; it forces the sum to be computed */
}
