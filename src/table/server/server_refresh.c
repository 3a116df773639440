/* How a server keeps its readers fresh: it notes which worker reads what of a table, and sends all of them fresh rows
 * when a policy says PLAIT_REFRESH. A worker that reads a dense table by range is sent the shard's whole published
 * slab, by reference. A worker that reads by key is sent all keys that it has ever read here. */
#include <string.h>

#include "table/server/server.h"
#include "table/state/values.h"

struct pli_reader {
    bool       whole; /* the worker has read by range */
    pli_rowset keys;  /* the keys that it has read */
};

plait_status pli_server_readers_open(pli_server_table *table, int32_t workers, plait_error *err) {
    if (!table->policy.ops->refreshes) return PLAIT_OK;
    table->reader = pli_calloc((size_t)workers, sizeof *table->reader);
    if (table->reader == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", table->shard.spec.name);
    table->readers = workers;
    for (int32_t w = 0; w < workers; w++)
        pli_rowset_init(&table->reader[w].keys, (uint64_t)table->shard.first, (uint64_t)table->shard.rows);
    return PLAIT_OK;
}

void pli_server_readers_close(pli_server_table *table) {
    for (int32_t w = 0; w < table->readers; w++) pli_rowset_destroy(&table->reader[w].keys);
    pli_free(table->reader);
    table->reader = NULL;
    table->readers = 0;
}

/* Out of memory, the worker is not noted and gets no fresh rows: it pulls. */
void pli_server_note_reader(pli_server_table *table, int32_t worker, int64_t n, const uint64_t *keys) {
    int64_t at[PLI_BLOCK];
    if (table->reader == NULL) return;
    if (keys == NULL) table->reader[worker].whole = true;
    for (int64_t from = 0; keys != NULL && from < n; from += PLI_BLOCK)
        if (!pli_rowset_add(&table->reader[worker].keys, n - from < PLI_BLOCK ? n - from : PLI_BLOCK, keys + from, at))
            return;
}

static pli_msg *whole_shard(const pli_server_table *table) {
    const pli_shard *shard = &table->shard;
    size_t           bytes = (size_t)(shard->rows * pli_row_bytes(&shard->spec));
    if (!shard->spec.lazy) return pli_msg_of_slab(shard->store.slab, 0, bytes);
    pli_msg *msg = pli_msg_new(bytes);
    if (msg != NULL) pli_store_get_rows(&shard->store, 0, shard->rows, pli_msg_body(msg));
    return msg;
}

static pli_msg *rows_of(const pli_server_table *table, const pli_rowset *keys) {
    pli_msg *msg = pli_msg_new((size_t)(keys->n * (8 + pli_row_bytes(&table->shard.spec))));
    if (msg == NULL) return NULL;
    memcpy(pli_msg_body(msg), keys->keys, (size_t)keys->n * 8);
    pli_store_get(&table->shard.store, keys->n, keys->keys, pli_at(pli_msg_body(msg), keys->n * 8));
    return msg;
}

/* Is the worker about to be answered anyway? */
static bool has_asked(const pli_server *server, const pli_server_table *table, int32_t worker) {
    const uint32_t id = (uint32_t)table->shard.spec.id;
    for (const pli_msg *msg = server->parked; msg != NULL; msg = msg->next)
        if (msg->head.src == worker && msg->head.kind == PLI_PULL && memcmp(pli_msg_body(msg), &id, sizeof id) == 0)
            return true;
    return false;
}

void pli_server_refresh(pli_server *server, uint64_t now_ns, const pli_server_table *table, pli_out *out) {
    for (int32_t w = 0; w < table->readers; w++) {
        const struct pli_reader *reader = &table->reader[w];
        if (server->clocks[w] == PLAIT_LEFT || server->peer[w].gone || has_asked(server, table, w)) continue;
        if (reader->whole) pli_server_send_fresh(server, now_ns, table, w, PLI_FRESH, whole_shard(table), out);
        if (reader->keys.n > 0)
            pli_server_send_fresh(server, now_ns, table, w, PLI_FRESH_KEYS, rows_of(table, &reader->keys), out);
    }
}
