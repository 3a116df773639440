/* See callback.h. */
#include "comm/callback.h"

#include <stdbool.h>
#include <stddef.h>

static _Thread_local struct {
    bool        inside;
    const char *refused; /* the first call that was refused */
} callback;

void pli_callback_begin(void) {
    callback.inside = true;
    callback.refused = NULL;
}

const char *pli_callback_end(void) {
    callback.inside = false;
    return callback.refused;
}

plait_status pli_callback_refuses(const char *call) {
    if (!callback.inside) return PLAIT_OK;
    if (callback.refused == NULL) callback.refused = call;
    return PLAIT_EINVAL;
}
