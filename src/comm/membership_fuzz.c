/* Feeds any bytes as the messages of others to a membership machine: it stays within bounds, and never counts on a rank
 * that does not exist. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "comm/membership.h"

enum { RANKS = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_membership m;
    uint64_t       now_ns = 0;
    if (!pli_membership_init(&m, RANKS, 1, 1, 1000, 100000, false)) return 0;
    while (size >= 4) { /* kind, sender, how much later, bytes */
        const uint8_t *head = data;
        size_t         n = head[3] < size - 4 ? head[3] : size - 4;
        pli_msg       *msg = pli_msg_new(n);
        pli_out        out;
        if (msg == NULL) break;
        pli_out_init(&out);
        now_ns += (uint64_t)head[2] * 100;
        msg->head.kind = (uint16_t)(PLI_MEMBERSHIP_STATE + head[0] % 10);
        msg->head.src = (int8_t)head[1];
        msg->head.incarnation = 1 + (head[0] > 200);
        if (n > 0) memcpy(pli_msg_body(msg), data + 4, n);
        if (head[0] % 10 == 7) pli_membership_suspect(&m, now_ns, head[1] % RANKS, &out);
        else if (head[0] % 10 == 8) pli_membership_attest(&m, now_ns, head[1] % RANKS, &out);
        else if (head[0] % 10 == 9)
            pli_membership_take_leave(&m, now_ns, head[1] % RANKS, pli_msg_body(msg), n, &out);
        else pli_membership_take(&m, now_ns, msg, &out);
        pli_membership_wake(&m, now_ns, &out);
        for (const pli_msg *sent = out.first; sent != NULL; sent = sent->next)
            if (sent->head.dst < 0 || sent->head.dst >= RANKS || sent->head.dst == 1) abort();
        if (m.members[0] >> RANKS != 0) abort();
        pli_out_drop(&out);
        pli_msg_free(&msg);
        data += 4 + n;
        size -= 4 + n;
    }
    pli_membership_destroy(&m);
    return 0;
}
