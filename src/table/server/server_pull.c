/* How a server answers pulls: it checks them, asks the policy, and serves them from the published values. */
#include <string.h>

#include "table/server/server.h"
#include "table/state/values.h"

static pli_wire_pull decode(const pli_msg *msg, bool *met_out) {
    pli_wire_pull pull;
    memcpy(&pull, pli_msg_body(msg), sizeof pull);
    *met_out = (pull.flags & PLI_PULL_MET) != 0;
    pull.flags &= ~(uint32_t)(PLI_PULL_MET | PLI_PULL_LEAPS);
    return pull;
}

static const uint64_t *keys_of(const pli_msg *msg) {
    return (const uint64_t *)((const unsigned char *)pli_msg_body(msg) + sizeof(pli_wire_pull));
}

static bool check_keys(const pli_shard *shard, const pli_msg *msg, int64_t n, plait_error *err) {
    uint64_t first = (uint64_t)shard->first, rows = (uint64_t)shard->rows, outside = 0;
    if (n < 0 || msg->head.body_bytes - sizeof(pli_wire_pull) != (uint64_t)n * 8 || msg->offset % 8 != 0 ||
        n > INT64_MAX / 16 / shard->spec.cols) {
        pli_fail(err, PLAIT_EFORMAT, "table %s: a pull of keys is cut short", shard->spec.name);
        return false;
    }
    if (shard->spec.rows == 0) return true;
    const uint64_t *keys = keys_of(msg);
    for (int64_t i = 0; i < n; i++) outside |= (uint64_t)(keys[i] - first >= rows);
    if (outside != 0)
        pli_fail(err, PLAIT_EFORMAT, "table %s: a pulled key is outside of shard %d", shard->spec.name, shard->index);
    return outside == 0;
}

bool pli_server_check_pull(const pli_server *server, const pli_msg *msg, plait_error *err) {
    if (msg->head.body_bytes < sizeof(pli_wire_pull)) {
        pli_fail(err, PLAIT_EFORMAT, "a pull is cut short");
        return false;
    }
    bool                    met;
    pli_wire_pull           pull = decode(msg, &met);
    const pli_server_table *table = pli_server_table_of(server, pull.table);
    if (table == NULL) {
        pli_fail(err, PLAIT_EFORMAT, "a pull from table number %u, which is not here", pull.table);
        return false;
    }
    const pli_shard *shard = &table->shard;
    if (pull.flags == PLI_PULL_KEYS) return check_keys(shard, msg, pull.n, err);
    if (pull.flags == PLI_PULL_ALL && shard->spec.rows == 0) return true;
    uint64_t at = (uint64_t)pull.first - (uint64_t)shard->first;
    if (pull.flags == 0 && pull.n >= 0 && at <= (uint64_t)shard->rows &&
        (uint64_t)pull.n <= (uint64_t)shard->rows - at && shard->spec.rows > 0)
        return true;
    pli_fail(err, PLAIT_EFORMAT, "table %s: a pull of rows outside of shard %d", shard->spec.name, shard->index);
    return false;
}

static bool table_may_serve(const pli_server *server, uint64_t now_ns, const pli_server_table *table,
                            const pli_msg *msg) {
    plait_view view = pli_server_view(server, now_ns, msg->head.src, msg->head.clock);
    /* a worker that has left, or whose whole job has, waits for nothing */
    if (server->clocks[msg->head.src] == PLAIT_LEFT && view.slowest == PLAIT_LEFT) return true;
    return table->policy.ops->server.on_pull(table->policy.state, &view) == PLAIT_SERVE;
}

bool pli_server_may_serve(const pli_server *server, uint64_t now_ns, const pli_msg *msg) {
    bool met;
    if (msg->head.kind != PLI_CALL) {
        pli_wire_pull pull = decode(msg, &met);
        return met || table_may_serve(server, now_ns, server->table[pull.table], msg);
    }
    const pli_wire_call *call = pli_msg_body(msg);
    if (call->met) return true;
    const uint32_t      *tables = (const uint32_t *)(call + 1);
    for (uint32_t i = 0; i < call->n_tables; i++)
        if (!table_may_serve(server, now_ns, server->table[tables[i]], msg)) return false;
    return true;
}

static pli_msg *range_answer(pli_shard *shard, const pli_wire_pull *pull) {
    pli_store *store = &shard->store;
    int64_t    row_bytes = pli_row_bytes(&shard->spec), at = pull->first - shard->first;
    if (!shard->spec.lazy)
        return pli_msg_of_slab(store->slab, (size_t)(at * row_bytes), (size_t)(pull->n * row_bytes));
    pli_msg *answer = pli_msg_new((size_t)(pull->n * row_bytes));
    if (answer != NULL) pli_store_get_rows(store, at, pull->n, pli_msg_body(answer));
    return answer;
}

static pli_msg *all_answer(pli_shard *shard) {
    pli_store *store = &shard->store;
    int64_t    row_bytes = pli_row_bytes(&shard->spec), n = store->rows;
    pli_msg   *answer = pli_msg_new((size_t)(n * (8 + row_bytes)));
    if (answer == NULL || n == 0) return answer;
    pli_keymap_keys(&store->map, pli_msg_body(answer));
    pli_store_get_rows(store, 0, n, pli_at(pli_msg_body(answer), n * 8));
    return answer;
}

static pli_msg *keys_answer(pli_shard *shard, const pli_msg *msg, int64_t n) {
    pli_msg *answer = pli_msg_new((size_t)(n * pli_row_bytes(&shard->spec)));
    if (answer != NULL && n > 0) pli_store_get(&shard->store, n, keys_of(msg), pli_msg_body(answer));
    return answer;
}

static void tell_leap(pli_server *server, uint64_t now_ns, const pli_server_table *table, const pli_msg *msg,
                      pli_out *out) {
    pli_wire_pull pull;
    memcpy(&pull, pli_msg_body(msg), sizeof pull);
    if (!(pull.flags & PLI_PULL_LEAPS) || table->policy.ops->server.leap == NULL) return;
    const plait_view view = pli_server_view(server, now_ns, msg->head.src, msg->head.clock);
    const int64_t    to = table->policy.ops->server.leap(table->policy.state, &view);
    if (to > msg->head.clock) pli_server_tell_leap(server, now_ns, msg, to, out);
}

void pli_server_serve(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    if (msg->head.kind == PLI_CALL) {
        pli_msg *request = (pli_msg *)msg;
        pli_server_run_call(server, now_ns, &request, 1, out);
        return;
    }
    bool              met;
    pli_wire_pull     pull = decode(msg, &met);
    pli_server_table *table = server->table[pull.table];
    pli_msg *answer = pull.flags == PLI_PULL_KEYS ? keys_answer(&table->shard, msg, pull.n)
                      : pull.flags == PLI_PULL_ALL ? all_answer(&table->shard)
                                                   : range_answer(&table->shard, &pull);
    if (pull.flags == PLI_PULL_KEYS) pli_out_work(out, PLI_WORK_KEYS, (uint64_t)pull.n);
    if (table->chain != NULL && pull.flags != PLI_PULL_ALL && pull.n > 0 && answer != NULL)
        answer = pli_server_filter_answer(server, table, msg, &pull, met, answer, out);
    if (answer != NULL) answer->head.clock = pli_server_version(server, table);
    if (pull.n > 0) pli_server_note_fetch(table, msg->head.src);
    if (pull.flags != PLI_PULL_ALL)
        pli_server_note_reader(table, msg->head.src, pull.n, pull.flags == 0 ? NULL : keys_of(msg));
    tell_leap(server, now_ns, table, msg, out);
    pli_server_tell_state(server, now_ns, msg, table->state, out);
    pli_server_reply(server, now_ns, msg, answer, out);
}
