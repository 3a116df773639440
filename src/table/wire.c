/* See wire.h. */
#include "table/wire.h"

pli_msg *pli_wire_late(const pli_msg *msg, uint32_t port) {
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) return NULL;
    ack->head.kind = PLI_ACK;
    ack->head.flags = msg->head.flags & PLI_MSG_UNCOUNTED;
    ack->head.port = (uint16_t)port;
    ack->head.arg64 = msg->head.seq;
    return ack;
}
