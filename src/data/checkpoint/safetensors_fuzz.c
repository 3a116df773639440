/* Feeds any bytes as a safetensors file: an error, or tensors that can be read and nothing beyond them. */
#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_safetensors *file = NULL;
    plait_error      err;
    if (pli_safetensors_parse(data, size, &file, &err) != PLAIT_OK) return 0;
    const pli_tensor *w = pli_safetensors_find(file, "w");
    char              hex[65];
    if (w != NULL) pli_tensors_hash(w, 1, hex);
    (void)pli_safetensors_metadata(file, "plait.checksum");
    pli_safetensors_close(&file);
    return 0;
}
