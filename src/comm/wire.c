/* Bytes from a wire are untrusted: every number of a header is checked before it is used. */
#include <inttypes.h>
#include <string.h>

#include "comm/transport.h"

#define BODY_MAX ((uint64_t)1 << 44)

static plait_status check_head(const pli_head *head, int32_t src, int32_t size, int32_t first, int32_t count,
                               plait_error *err) {
    if (head->version > PLI_WIRE_VERSION)
        return pli_fail(err, PLAIT_EVERSION, "rank %d speaks version %u of the wire format, this is version %d", src,
                        head->version, PLI_WIRE_VERSION);
    if (head->version != PLI_WIRE_VERSION)
        return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d has no version", src);
    if (head->src != src || src < 0 || src >= size)
        return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d says it comes from rank %d", src, head->src);
    if (head->dst < first || head->dst - first >= count)
        return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d is for rank %d, which is not here", src, head->dst);
    if (head->port >= PLI_PORTS_ALL || (head->port > 0 && head->port % PLI_PORT_MAX == 0))
        return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d is for port %u", src, head->port);
    if (head->incarnation == 0) return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d is of no incarnation", src);
    if (head->body_bytes > BODY_MAX)
        return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d claims %" PRIu64 " bytes", src, head->body_bytes);
    return PLAIT_OK;
}

plait_status pli_msg_decode(const void *data, size_t bytes, int32_t src, int32_t size, int32_t first, int32_t count,
                            pli_msg **msg_out, size_t *rest_out, plait_error *err) {
    pli_head head;
    if (bytes < sizeof head)
        return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d is cut after %zu bytes", src, bytes);
    memcpy(&head, data, sizeof head);
    PLI_TRY(check_head(&head, src, size, first, count, err));
    size_t here = bytes - sizeof head;
    if (here > 0 && here != head.body_bytes)
        return pli_fail(err, PLAIT_EFORMAT, "a message of rank %d claims %" PRIu64 " bytes and brings %zu", src,
                        head.body_bytes, here);
    pli_msg *msg = pli_msg_new(head.body_bytes);
    if (msg == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a message of %" PRIu64 " bytes", head.body_bytes);
    msg->head = head;
    if (here > 0) memcpy(pli_msg_body(msg), (const unsigned char *)data + sizeof head, here);
    *msg_out = msg;
    *rest_out = head.body_bytes - here;
    return PLAIT_OK;
}
