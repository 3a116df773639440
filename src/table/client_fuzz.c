/* A client whose servers answer anything: its gets end with values or an error, and nothing is read or written outside
 * of a message. Input: frames of kind, source, ticket, flags (a byte each), two bytes of length, a body. */
#include <stdlib.h>
#include <string.h>

#include "table/client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLES = 6, ROWS = 2000 };

typedef struct fuzzed {
    pli_client        client;
    pli_client_table *table[TABLES];
    pli_ask           ask[2 * TABLES];
    float             values[2 * TABLES][ROWS];
    uint64_t          seq[2];
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
    spec.placement = pli_placement_make(rows, 4, false, 2, 1);
    if (pli_client_table_open(&spec, &f->client.layout, &f->table[id], NULL) < 0) abort();
    if (pli_client_add_table(&f->client, f->table[id], NULL) < 0) abort();
}

static void begin(fuzzed *f, pli_out *out) {
    for (int t = 0; t < TABLES; t++) {
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

static void end(fuzzed *f) {
    for (int i = 0; i < 2 * TABLES; i++) {
        if (f->ask[i].table == NULL) continue;
        pli_ticket_unlink(&f->client, &f->ask[i].ticket);
        if (pli_ticket_done(&f->ask[i].ticket)) pli_ask_finish(&f->client, &f->ask[i], NULL);
        pli_ask_abandon(&f->ask[i]);
    }
    for (int t = 0; t < TABLES; t++) pli_client_table_close(&f->table[t]);
    pli_client_close(&f->client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzzed    f;
    const pli_layout layout = { .workers = 1, .servers = 2, .first_server = 1 };
    pli_out          out;
    memset(&f, 0, sizeof f);
    pli_out_init(&out);
    if (pli_client_open(&f.client, &layout, 0, 0, 1, NULL) < 0) abort();
    add_table(&f, 0, ROWS, "bsp", NULL);
    add_table(&f, 1, ROWS, "ssp:1", NULL);
    add_table(&f, 2, 0, "ssp:1", NULL);
    add_table(&f, 3, ROWS, "essp:1", NULL);
    add_table(&f, 4, 0, "essp:1", NULL);
    add_table(&f, 5, ROWS, "bsp", "key-cache,fixed8,zstd");
    begin(&f, &out);
    while (size >= 6) {
        size_t bytes = (size_t)data[4] | (size_t)data[5] << 8;
        if (bytes > size - 6) bytes = size - 6;
        deliver(&f, data, bytes, &out);
        data += 6 + bytes;
        size -= 6 + bytes;
    }
    for (int t = 3; t < 5; t++) pli_cache_take_fresh(&f.client, f.table[t]);
    pli_out_drop(&out);
    end(&f);
    return 0;
}
