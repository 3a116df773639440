/* Feeds any bytes as a gzip or zstd stream. The output of a short input is bounded. */
#include "data/source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_spool           *spool = NULL;
    plait_error          err;
    const unsigned char *bytes;
    size_t               n;
    if (size > 4096 || !pli_is_packed(data, size) || pli_spool_create(64 << 20, NULL, &spool, &err) != PLAIT_OK)
        return 0;
    pli_intake in = { .name = "fuzz", .spool = spool };
    if (pli_inflate(data, size, &in, &err) == PLAIT_OK) (void)pli_spool_end(spool, &bytes, &n, &err);
    pli_spool_destroy(&spool);
    return 0;
}
