/* Feeds any bytes as a file of another program: nothing is read behind them, and a refusal says what they are. */
#include <stdlib.h>
#include <string.h>

#include "data/formats/foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *copy = pli_malloc(size > 0 ? size : 1); /* of exactly that length */
    plait_error    err = { 0 };
    if (copy == NULL || size == 0) {
        pli_free(copy);
        return 0;
    }
    memcpy(copy, data, size);
    pli_source source = { .path = (char *)(uintptr_t) "fuzz", .data = copy, .bytes = size };
    if (pli_foreign_check("fuzz", copy, size, &err) < 0 && strstr(err.text, "fuzz: is ") != err.text) abort();
    if (pli_foreign_check_text(&source, &err) < 0 && strstr(err.text, "fuzz: is ") != err.text) abort();
    pli_free(copy);
    return 0;
}
