/* The lead of a host receives arbitrary bytes from another worker. It refuses them by name, or adds them to rows that
 * its tables have; it neither reads nor writes outside of the message. Input: the body of such a message. */
#include <stdlib.h>
#include <string.h>

#include "table/client/aggregate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLES = 4, ROWS = 40, COLS = 3 };

static const pli_layout layout = { .workers = 2, .servers = 1, .first_server = 2 };

/* The four kinds: dense, dense by key, sparse, sparse and exact. */
static pli_client_table *add_table(pli_client *client, int32_t id) {
    plait_table_opts  opts;
    pli_spec          spec;
    pli_client_table *table;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.type = id % 2 == 0 ? PLAIT_F32 : PLAIT_F64;
    opts.rows = id < 2 ? ROWS : 0;
    opts.cols = COLS;
    opts.keyed = id == 1;
    opts.exact = id == 3;
    if (pli_spec_make(id, &opts, "ps", "bsp", 1, NULL, &spec, NULL) < 0) abort();
    spec.placement = pli_placement_make(spec.rows, pli_row_bytes(&spec), 0, 1, 2);
    if (pli_client_table_open(&spec, &layout, &table, NULL) < 0 || pli_client_add_table(client, table, NULL) < 0)
        abort();
    return table;
}

static void check(const pli_pending *p) {
    if (p->low < 0 || p->high < p->low || p->high > p->spec->rows || p->examples < 0) abort();
    for (int64_t i = 0; p->spec->rows > 0 && i < p->set.n; i++)
        if (p->set.keys[i] >= (uint64_t)p->spec->rows) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pli_client        client;
    pli_client_table *table[TABLES];
    pli_msg          *msg = pli_msg_new(size);
    if (msg == NULL || pli_client_open(&client, &layout, 0, 0, 1, NULL) < 0) abort();
    for (int32_t t = 0; t < TABLES; t++) table[t] = add_table(&client, t);
    if (size > 0) memcpy(pli_msg_body(msg), data, size);
    plait_status status = pli_aggregate_add(&client, msg, NULL);
    if (status != PLAIT_OK && status != PLAIT_EFORMAT) abort();
    for (int32_t t = 0; t < TABLES; t++) {
        check(&table[t]->pending);
        pli_client_table_close(&table[t]);
    }
    pli_msg_free(&msg);
    pli_client_close(&client);
    return 0;
}
