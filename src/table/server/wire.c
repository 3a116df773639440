/* See wire.h. */
#include "comm/comm.h"
#include "table/server/wire.h"

pli_msg *pli_wire_late(const pli_msg *msg, uint32_t port) {
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) return NULL;
    const bool log = (msg->head.flags & PLI_FLAG_LOG) != 0;
    ack->head.kind = log ? PLI_LOGGED : PLI_ACK;
    ack->head.flags = msg->head.flags & (PLI_MSG_UNCOUNTED | PLI_FLAG_LOG);
    ack->head.port = (uint16_t)(msg->head.flags & PLI_FLAG_REPLICA ? PLI_PORT_REPLICA : log ? PLI_PORT_SERVER : port);
    ack->head.server = msg->head.server;
    ack->head.arg64 = msg->head.seq;
    ack->head.clock = log ? INT64_MAX : 0; /* all that was ever logged */
    return ack;
}
