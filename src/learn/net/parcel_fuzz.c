/* A tensor's message may be any bytes: it is refused, or it is whole and is written back as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "learn/net/parcel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    plait_edge   edge;
    plait_tensor t;
    plait_error  err;
    void        *body = malloc(size + 1);
    if (body == NULL) return 0;
    memcpy(body, data, size);
    if (pli_parcel_read(body, size, &edge, &t, &err) == PLAIT_OK) {
        plait_edge   again;
        plait_tensor copy;
        void        *written = malloc(size);
        if (pli_parcel_bytes(&t) != size) abort();
        if (written != NULL) {
            pli_parcel_write(&edge, &t, written);
            if (pli_parcel_read(written, size, &again, &copy, &err) != PLAIT_OK || again.value != edge.value) abort();
            if (memcmp((char *)written + PLI_PARCEL_BYTES, data + PLI_PARCEL_BYTES, size - PLI_PARCEL_BYTES) != 0)
                abort();
        }
        free(written);
    }
    free(body);
    return 0;
}
