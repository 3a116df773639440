/* Feeds any bytes as another process's look: it is within bounds, or an error; and the graph takes any looks. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "comm/doctor.h"

enum { RANKS = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_look    look[RANKS];
    bool        stuck[RANKS];
    plait_error err;
    memset(look, 0, sizeof look);
    for (int32_t r = 0; r < RANKS && size > 0; r++) {
        size_t n = size < sizeof *look ? size : sizeof *look;
        if (pli_look_decode(data, n, RANKS, &look[r], &err) < 0) look[r] = (pli_look){ .state = PLI_LOOK_NONE };
        data += n;
        size -= n;
    }
    pli_ward ward = { .look = look, .size = RANKS, .workers = RANKS - 1 };
    pli_doctor_stuck(&ward, stuck);
    for (int32_t r = 0; r < RANKS; r++) {
        char    text[480];
        int32_t other = pli_doctor_mismatch(&ward, r);
        pli_doctor_tell(&look[r], r, text, sizeof text);
        if (other >= 0) pli_doctor_explain_mismatch(&ward, r, other, &err);
        if (stuck[r]) pli_doctor_explain_stuck(&ward, stuck, r, &err);
        if (stuck[r] && look[r].state != PLI_LOOK_WAITS) abort();
    }
    return 0;
}
