/* A client receives arbitrary answers from its servers. Its gets end with values or an error, and it neither reads nor
 * writes outside of a message. Input: frames of kind, source, ticket, flags (a byte each), two bytes of length, a body.
 *
 * If the first byte is 0x7e, servers (ranks 2 and 3) have two replicas (replicas.h), and the client is at the end of a
 * clock. Then bits 2 and 3 of flags name the server whose shards the frame is about, and there are more kinds: 250
 * SAFE, up to message number `ticket`; 251 the worker looks whether the clock has ended, or stands in; 252 a wake-up;
 * 253 `source` has left; 254 has died. */
#include <stdlib.h>
#include <string.h>

#include "table/client/client.h"
#include "table/copies/replicas.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLES = 6, ROWS = 2000, PUSHED = TABLES, WITH_COPIES = 0x7e, SAFE = 250, LOOK, WAKEUP, LEFT, DIED };

typedef struct fuzzed {
    pli_client        client;
    pli_client_table *table[TABLES + 1]; /* the table with number PUSHED gets the clock's updates, if there are
                                          * replicas */
    pli_ask           ask[2 * TABLES];
    float             values[2 * TABLES][ROWS];
    uint64_t          seq[2], now_ns;
    uint32_t          epoch;
} fuzzed;

static const uint64_t keys[] = { 1999, 3, 700, 3 };

static void add_table(fuzzed *f, int32_t id, int64_t rows, const char *consistency, const char *filter) {
    plait_table_opts opts;
    pli_spec         spec;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = rows;
    opts.filter = filter;
    opts.rule.name = filter == NULL ? NULL : "sgd";
    if (pli_spec_make(id, &opts, "ps", consistency, 1, NULL, &spec, NULL) < 0) abort();
    spec.placement = pli_placement_make(rows, 4, 0, 2, f->client.layout.first_server);
    if (pli_client_table_open(&spec, &f->client.layout, &f->table[id], NULL) < 0) abort();
    if (pli_client_add_table(&f->client, f->table[id], NULL) < 0) abort();
}

static void begin(fuzzed *f, pli_out *out) {
    for (int t = 0; t < TABLES; t++) {
        if (f->table[t] == NULL) continue;
        if (pli_ask_keys(&f->client, 1, f->table[t], 4, keys, f->values[t], &f->ask[t], out, NULL) < 0) abort();
        pli_ask *range = &f->ask[TABLES + t];
        if (f->table[t]->spec.rows == 0) *range = (pli_ask){ 0 };
        else if (pli_ask_range(&f->client, 1, f->table[t], 10, ROWS - 10, f->values[TABLES + t], range, out, NULL) < 0)
            abort();
    }
}

static void deliver(fuzzed *f, const uint8_t *head, size_t bytes, pli_out *out) {
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) abort();
    msg->head.kind = head[0] % 2 == 0 ? PLI_REPLY : head[0];
    msg->head.src = (int8_t)head[1];
    msg->head.arg32 = head[2];
    msg->head.flags = (head[3] & 1 ? PLI_FLAG_FAILED : 0) | (head[3] & 2 ? PLI_FLAG_FILTERED : 0);
    msg->head.clock = (int8_t)head[3];
    msg->head.incarnation = 1;
    if (msg->head.src == 1 || msg->head.src == 2) msg->head.seq = ++f->seq[msg->head.src - 1];
    if (bytes > 0) memcpy(pli_msg_body(msg), head + 6, bytes);
    pli_client_ops.on_message(&f->client, 1, msg, out);
}

/* --- with copies -------------------------------------------------------------------------------------------------- */

static void push(fuzzed *f, pli_kind kind, pli_out *out) {
    static const uint64_t at[] = { 5, 1200 };
    static const float    one[] = { 1, 1 };
    if (pli_pending_add(&f->table[PUSHED]->pending, 2, at, one, 0, NULL) < 0) abort();
    if (pli_client_build_push(&f->client, f->table[PUSHED], kind, NULL) < 0) abort();
    if (kind == PLI_CLOCK) (void)pli_client_send_push(&f->client, f->now_ns, kind, out, NULL); /* may be lost */
    else (void)pli_client_send_view(&f->client, f->now_ns, out, NULL);
}

static void look(fuzzed *f, pli_out *out) {
    if (pli_client_is_safe(&f->client)) {
        pli_client_end_clock(&f->client);
        push(f, PLI_CLOCK, out);
    } else if (pli_client_must_stand_in(&f->client)) {
        pli_client_begin_standing_in(&f->client, NULL);
        push(f, PLI_PUSH, out);
    }
}

static void take_from_copy(fuzzed *f, const uint8_t *head, size_t bytes, pli_out *out) {
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) abort();
    msg->head.kind = head[0] == SAFE ? PLI_SAFE : head[0] % 2 == 0 ? PLI_REPLY : head[0];
    msg->head.src = (int8_t)head[1];
    msg->head.arg32 = head[2];
    msg->head.flags = head[3] & 1 ? PLI_FLAG_FAILED : 0;
    msg->head.server = head[3] >> 2 & 3;
    msg->head.clock = (int8_t)head[head[0] == SAFE ? 2 : 3];
    msg->head.incarnation = 1;
    if (bytes > 0) memcpy(pli_msg_body(msg), head + 6, bytes);
    const int32_t server = pli_client_server_of(&f->client, msg);
    if (server >= 0 && head[0] != SAFE) msg->head.seq = f->client.link[server].rx.expected;
    pli_client_ops.on_message(&f->client, ++f->now_ns, msg, out);
}

static void happen(fuzzed *f, const uint8_t *head, size_t bytes, pli_out *out) {
    const pli_member_event event = { .kind = head[0] == DIED ? PLI_MEMBER_DIED : PLI_MEMBER_LEFT,
                                     .rank = (int8_t)head[1], .epoch = ++f->epoch };
    switch (head[0]) {
    case LOOK: look(f, out); break;
    case WAKEUP: pli_client_ops.on_wakeup(&f->client, f->now_ns += 1000, out); break;
    case LEFT:
    case DIED: pli_client_ops.on_member(&f->client, ++f->now_ns, &event, out); break;
    default: take_from_copy(f, head, bytes, out);
    }
}

static void end(fuzzed *f) {
    for (int i = 0; i < 2 * TABLES; i++) {
        if (f->ask[i].table == NULL) continue;
        pli_ticket_unlink(&f->client, &f->ask[i].ticket);
        if (pli_ticket_done(&f->ask[i].ticket)) pli_ask_finish(&f->client, &f->ask[i], NULL);
        pli_ask_abandon(&f->ask[i]);
    }
    for (int t = 0; t <= TABLES; t++) pli_client_table_close(&f->table[t]);
    pli_client_close(&f->client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzzed f;
    const bool    copies = size > 0 && data[0] == WITH_COPIES;
    pli_layout    layout = { .workers = 1, .servers = 2, .first_server = 1 };
    pli_out       out;
    if (copies) layout = (pli_layout){ .workers = 2, .servers = 2, .first_server = 2, .replicas = 2,
                                       .resend_after_ns = 500 };
    memset(&f, 0, sizeof f);
    pli_out_init(&out);
    if (pli_client_open(&f.client, &layout, 0, 0, 1, NULL) < 0) abort();
    add_table(&f, 0, ROWS, "bsp", NULL);
    add_table(&f, 1, ROWS, "ssp:1", NULL);
    add_table(&f, 2, 0, "ssp:1", NULL);
    add_table(&f, 3, ROWS, "essp:1", NULL);
    add_table(&f, 4, 0, "essp:1", NULL);
    if (copies) add_table(&f, PUSHED, ROWS, "bsp", NULL);
    else add_table(&f, 5, ROWS, "bsp", "key-cache,fixed8,zstd");
    if (copies) push(&f, PLI_CLOCK, &out);
    begin(&f, &out);
    for (data += copies, size -= copies; size >= 6;) {
        size_t bytes = (size_t)data[4] | (size_t)data[5] << 8;
        if (bytes > size - 6) bytes = size - 6;
        if (copies) happen(&f, data, bytes, &out);
        else deliver(&f, data, bytes, &out);
        data += 6 + bytes;
        size -= 6 + bytes;
    }
    for (int t = 3; t < 5; t++) pli_cache_take_fresh(&f.client, f.table[t]);
    pli_out_drop(&out);
    end(&f);
    return 0;
}
