/* A worker averages with neighbours who send arbitrary messages, through filters or not. The job fails by name, or the
 * copies have the sizes of their tables; nothing is read or written outside of a message. Input: frames of kind,
 * source, table, clock (a byte each), two bytes of length, a body. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "table/copies/gossip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Four tables: with rounds, without; and both with filters. */
enum { WORKERS = 3, ROUNDS = 1, PUSHES = 2, FILTERED = 3, FILTERED_PUSHES = 4, F32S = 5, F64S = 3 };

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
    pli_gossip_await(table, PLI_GOSSIP_COPY, clock, 2, from);
    for (int32_t i = 0; i < 2; i++) {
        pli_msg *copy = pli_gossip_take(table, clock, from[i]);
        if (copy == NULL && pli_gossip_is_there(table)) abort();
        if (copy != NULL && copy->head.body_bytes != F32S * sizeof(float)) abort();
        pli_msg_free(&copy);
    }
}

/* What has come for a filtered table goes through the filters: it fits, or is refused by name. */
static void hear_copies(pli_gossip_table *table, int64_t clock) {
    const int32_t from[] = { 1, 2 };
    pli_gossip_await(table, PLI_GOSSIP_COPY, clock, 2, from);
    for (int32_t i = 0; i < 2; i++) {
        pli_msg     *copy = pli_gossip_take(table, clock, from[i]);
        const void  *known = NULL;
        plait_error  err = { 0 };
        if (copy == NULL) continue;
        const plait_status status = pli_estimates_take(table->estimates, from[i], clock, pli_msg_body(copy),
                                                       (int64_t)copy->head.body_bytes, &known, &err);
        if (status < 0 ? err.code >= 0 : known != pli_estimates_of(table->estimates, from[i])) abort();
        pli_msg_free(&copy);
    }
}

static void add_filters(pli_gossip_table *table, plait_type type, int64_t rows, const char *filter, bool rounds) {
    const pli_estimates_place place = { .seed = 1, .workers = WORKERS, .graph = PLI_RING, .rounds = rounds };
    plait_table_opts          opts;
    pli_spec                  spec;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.type = type;
    opts.rows = rows;
    if (pli_spec_make(table->id, &opts, "gossip:ring", rounds ? "bsp" : "async", 1, NULL, &spec, NULL) < 0) abort();
    strcpy(spec.filter, filter);
    if (pli_estimates_open(&spec, &place, NULL, &table->estimates, NULL) < 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_gossip gossip;
    uint64_t   seq[WORKERS] = { 0 };
    double     weight = 1, values[F64S] = { 1, 2, 3 };
    if (!pli_gossip_init(&gossip, 0, WORKERS, 0)) abort();
    pli_gossip_table *rounds = pli_gossip_add(&gossip, ROUNDS, PLAIT_F32, F32S, true);
    pli_gossip_table *pushes = pli_gossip_add(&gossip, PUSHES, PLAIT_F64, F64S, false);
    pli_gossip_table *filtered = pli_gossip_add(&gossip, FILTERED, PLAIT_F32, F32S, true);
    pli_gossip_table *filtered_pushes = pli_gossip_add(&gossip, FILTERED_PUSHES, PLAIT_F64, F64S, false);
    if (rounds == NULL || pushes == NULL || filtered == NULL || filtered_pushes == NULL) abort();
    add_filters(filtered, PLAIT_F32, F32S, "topk:0.5,fixed8,zstd", true);
    add_filters(filtered_pushes, PLAIT_F64, F64S, "fp16", false);
    while (size >= 6) {
        size_t bytes = (size_t)data[4] | (size_t)data[5] << 8;
        if (bytes > size - 6) bytes = size - 6;
        deliver(&gossip, data, bytes, seq);
        data += 6 + bytes;
        size -= 6 + bytes;
    }
    for (int64_t clock = 0; clock < 4; clock++) take_copies(rounds, clock);
    for (int64_t clock = 0; clock < 4; clock++) hear_copies(filtered, clock);
    pli_gossip_mix(pushes, &weight, values);
    if (!(weight >= 1) || isinf(weight)) abort();
    pli_gossip_destroy(&gossip);
    return 0;
}
