/* Any bytes from a wire give a message within bounds, or an error. */
#include <stdlib.h>

#include "comm/transport.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_msg    *msg = NULL;
    size_t      rest = 0;
    plait_error err;
    /* a message that claims terabytes may fail for lack of memory, so such claims are left out here */
    if (size >= sizeof(pli_head) && (data[59] | data[60] | data[61] | data[62] | data[63]) != 0 && data[62] == 0)
        return 0;
    plait_status status = pli_msg_decode(data, size, 2, 4, 1, 1, &msg, &rest, &err);
    if ((status < 0) != (msg == NULL)) abort();
    if (msg == NULL) return 0;
    if (msg->head.src != 2 || msg->head.dst != 1 || msg->head.port >= PLI_PORTS_ALL) abort();
    if (rest != 0 && rest != msg->head.body_bytes) abort();
    if (msg->head.body_bytes > 0 && msg->body->bytes < msg->head.body_bytes) abort();
    pli_msg_free(&msg);
    return 0;
}
