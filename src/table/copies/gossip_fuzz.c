/* A worker averages with neighbours who send arbitrary messages. The job fails by name, or the copies have the sizes of
 * their tables; nothing is read or written outside of a message. Input: frames of kind, source, table, clock (a byte
 * each), two bytes of length, a body. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "table/copies/gossip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORKERS = 3, ROUNDS = 1, PUSHES = 2 /* two tables: with rounds, without */, F32S = 5, F64S = 3 };

static void deliver(pli_gossip *gossip, const uint8_t *head, size_t bytes, uint64_t *seq) {
    pli_msg *msg = pli_msg_new(bytes);
    pli_out  out;
    if (msg == NULL) abort();
    msg->head.kind = head[0];
    msg->head.src = (int8_t)head[1];
    msg->head.arg32 = head[2];
    msg->head.clock = (int8_t)head[3];
    msg->head.incarnation = 1;
    if (msg->head.src >= 0 && msg->head.src < WORKERS) msg->head.seq = ++seq[msg->head.src];
    if (bytes > 0) memcpy(pli_msg_body(msg), head + 6, bytes);
    pli_out_init(&out);
    pli_gossip_ops.on_message(gossip, 1, msg, &out);
    pli_out_drop(&out);
}

/* Takes the copies of a clock that have come. With rounds, each is as long as the table says. */
static void take_copies(pli_gossip_table *table, int64_t clock) {
    const int32_t from[] = { 1, 2 };
    pli_gossip_await(table, false, clock, 2, from);
    for (int32_t i = 0; i < 2; i++) {
        pli_msg *copy = pli_gossip_take(table, clock, from[i]);
        if (copy == NULL && pli_gossip_is_there(table)) abort();
        if (copy != NULL && copy->head.body_bytes != F32S * sizeof(float)) abort();
        pli_msg_free(&copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_gossip gossip;
    uint64_t   seq[WORKERS] = { 0 };
    double     weight = 1, values[F64S] = { 1, 2, 3 };
    if (!pli_gossip_init(&gossip, 0, WORKERS, 0)) abort();
    pli_gossip_table *rounds = pli_gossip_add(&gossip, ROUNDS, PLAIT_F32, F32S, true);
    pli_gossip_table *pushes = pli_gossip_add(&gossip, PUSHES, PLAIT_F64, F64S, false);
    if (rounds == NULL || pushes == NULL) abort();
    while (size >= 6) {
        size_t bytes = (size_t)data[4] | (size_t)data[5] << 8;
        if (bytes > size - 6) bytes = size - 6;
        deliver(&gossip, data, bytes, seq);
        data += 6 + bytes;
        size -= 6 + bytes;
    }
    for (int64_t clock = 0; clock < 4; clock++) take_copies(rounds, clock);
    pli_gossip_mix(pushes, &weight, values);
    if (!(weight >= 1) || isinf(weight)) abort();
    pli_gossip_destroy(&gossip);
    return 0;
}
