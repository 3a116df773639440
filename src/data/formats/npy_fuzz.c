/* Feeds any bytes as an npy file: if its header is accepted, every element can be read. */
#include "data/formats/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_npy_array array;
    plait_error   err;
    double        sum = 0;
    if (pli_npy_read("fuzzed", data, size, &array, &err) < 0) return 0;
    for (int64_t row = 0; row < array.rows; row++)
        for (int64_t column = 0; column < array.columns; column++)
            sum += pli_npy_element(&array, data + pli_npy_at(&array, row, column));
    return sum == 0.5 && array.rows < 0; /* never true; it forces the sum to be computed */
}
