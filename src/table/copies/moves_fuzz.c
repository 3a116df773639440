/* Fuzzes a rank on which shards may lie that move (moves.h): whatever other ranks send, lists of places above all, it
 * neither crashes nor reads beyond a message. Frames are of 6 bytes and a body: kind, sender, clock, server and how
 * often the rank had it, the body's length. The body of a list comes from its bytes one by one, so that lists make
 * sense more often than not. */
#include <stdlib.h>
#include <string.h>

#include "table/client/client.h"
#include "table/copies/hosted.h"

enum { RANK = 1, WORKERS = 3, WAKEUP = 61, LEFT = 62, DIED = 63 };

typedef struct fuzzed {
    pli_hosted hosted;
    pli_client client;
    uint64_t   now_ns, seq[WORKERS];
    uint32_t   epoch;
} fuzzed;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_list(uint16_t kind) { return kind == PLI_PLACES || kind == PLI_LIST; }

static pli_msg *body_of(uint16_t kind, const uint8_t *from, size_t bytes) {
    pli_wire_list wire = { .n = 1 };
    if (has_list(kind) && bytes > 2) {
        wire.key = (uint64_t)from[0] << 32 | from[1];
        wire.n = (int32_t)(bytes - 2 < PLI_CHAIN_MAX ? bytes - 2 : PLI_CHAIN_MAX);
        for (int32_t i = 0; i < wire.n; i++) wire.at[i] = from[2 + i];
        wire.last = wire.at[wire.n - 1] + (from[1] & 1);
        from = (const uint8_t *)&wire;
        bytes = sizeof wire;
    }
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) abort();
    if (bytes > 0) memcpy(pli_msg_body(msg), from, bytes);
    return msg;
}

static void deliver(fuzzed *f, const uint8_t *head, size_t bytes, pli_out *out) {
    const uint16_t kind = head[0] & 63;
    pli_msg       *msg = body_of(kind, head + 6, bytes);
    msg->head.kind = kind;
    msg->head.src = (int8_t)head[1];
    msg->head.clock = (int8_t)head[2];
    msg->head.incarnation = 1;
    msg->head.epoch = f->epoch;
    msg->head.server = (uint16_t)((head[3] & 7) | (head[3] >> 3 & 3) << PLI_LIFE_BIT);
    if (head[0] & 64) {
        msg->head.server &= PLI_LOGICAL_MAX - 1;
        pli_client_ops.on_message(&f->client, ++f->now_ns, msg, out);
        return;
    }
    const int32_t     number = head[3] & 7;
    const pli_server *replica = number < f->hosted.layout.servers ? f->hosted.replica[number] : NULL;
    if (head[0] & 128) msg->head.flags = head[3] & 128 ? PLI_FLAG_LOG | PLI_FLAG_ANEW : PLI_FLAG_LOG;
    if (head[0] & 128 && kind != PLI_PLACES && kind != PLI_PLACED && replica != NULL)
        msg->head.seq = replica->replicas->rx.expected;
    else if (!(head[0] & 128) && msg->head.src >= 0 && msg->head.src < WORKERS)
        msg->head.seq = ++f->seq[msg->head.src];
    pli_hosted_ops.on_message(&f->hosted, ++f->now_ns, msg, out);
}

static void take_frame(fuzzed *f, const uint8_t *head, size_t bytes) {
    const pli_member_event event = { .kind = head[0] == DIED ? PLI_MEMBER_DIED : PLI_MEMBER_LEFT,
                                     .rank = (int8_t)head[1], .epoch = ++f->epoch };
    pli_out                out;
    pli_out_init(&out);
    if (head[0] == WAKEUP) {
        pli_hosted_ops.on_wakeup(&f->hosted, f->now_ns += 1000, &out);
    } else if (head[0] == LEFT || head[0] == DIED) {
        pli_hosted_ops.on_member(&f->hosted, ++f->now_ns, &event, &out);
        pli_client_ops.on_member(&f->client, f->now_ns, &event, &out);
    } else {
        deliver(f, head, bytes, &out);
    }
    pli_out_drop(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const pli_layout layout = { .workers = WORKERS, .servers = 2 * WORKERS, .replicas = 2, .slots = 1, .homes = 2,
                                .resend_after_ns = 500, .move_rate = 1000000 };
    fuzzed           f = { .now_ns = 1 };
    if (pli_hosted_open(&f.hosted, &layout, RANK, 0, 1, NULL, NULL) < 0 ||
        pli_client_open(&f.client, &layout, RANK, 0, 1, NULL) < 0)
        abort();
    while (size >= 6) {
        size_t bytes = (size_t)data[4] | (size_t)data[5] << 8;
        if (bytes > size - 6) bytes = size - 6;
        take_frame(&f, data, bytes);
        data += 6 + bytes;
        size -= 6 + bytes;
    }
    pli_hosted_close(&f.hosted);
    pli_client_close(&f.client);
    return 0;
}
