/* The server's way with pushes: checked as they come, applied at once or when their clock is complete, or dropped. */
#include <string.h>

#include "table/copies/copies.h"
#include "table/events.h"
#include "table/state/values.h"

/* The i-th part of a PUSH or CLOCK message; offsets and sizes are checked against the body, nothing else is. */
static plait_status decode_part(const pli_server *server, const pli_msg *msg, uint32_t i, pli_push_part *part_out,
                                pli_server_table **table_out, plait_error *err) {
    const unsigned char *body = pli_msg_body(msg);
    uint64_t             bytes = msg->head.body_bytes;
    pli_wire_part        wire;
    memcpy(&wire, body + i * sizeof wire, sizeof wire);
    pli_server_table *table = pli_server_table_of(server, wire.table);
    if (table == NULL) return pli_fail(err, PLAIT_EFORMAT, "a push to table number %u, which is not here", wire.table);
    bool     keyed = (wire.flags & PLI_PART_KEYED) != 0, dropped = (wire.flags & PLI_PART_DROPPED) != 0;
    uint64_t row_bytes = (uint64_t)pli_sum_row_bytes(&table->shard.spec), n = (uint64_t)wire.n;
    if (wire.n < 0 || n > bytes / row_bytes || wire.values_at % 8 != 0 || wire.values_at > bytes ||
        n * row_bytes > bytes - wire.values_at)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a push is cut short", table->shard.spec.name);
    if (keyed && (n > bytes / 8 || wire.keys_at % 8 != 0 || wire.keys_at > bytes || n * 8 > bytes - wire.keys_at))
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a push's keys are cut short", table->shard.spec.name);
    *table_out = table;
    *part_out = (pli_push_part){ .touched = !dropped, .keyed = keyed, .examples = wire.examples,
                                 .first = wire.first, .n = wire.n,
                                 .keys = keyed ? (const uint64_t *)(body + wire.keys_at) : NULL,
                                 .values = body + wire.values_at };
    return PLAIT_OK;
}

static bool failed(const pli_msg *msg, const plait_error *why, pli_out *out) {
    pli_out_fail(out, why->code, "push of rank %d: %s", msg->head.src, why->text);
    return false;
}

/* --- how stale a push is ------------------------------------------------------------------------------------ */

struct pli_progress {
    int64_t own;     /* pushes of the worker that were applied              */
    int64_t fetched; /* pushes of others that were, when it fetched values  */
};

plait_status pli_server_progress_open(pli_server_table *table, int32_t workers, plait_error *err) {
    if (!table->shard.spec.staleness_aware) return PLAIT_OK;
    table->progress = pli_calloc((size_t)workers, sizeof *table->progress);
    return table->progress != NULL ? PLAIT_OK
                                   : pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", table->shard.spec.name);
}

static int64_t pushes_of_others(const pli_server_table *table, int32_t worker) {
    return table->shard.applied - table->progress[worker].own;
}

void pli_server_note_fetch(pli_server_table *table, int32_t worker) {
    if (table->progress != NULL) table->progress[worker].fetched = pushes_of_others(table, worker);
}

/* 1 + how often, in the meantime, all workers together have pushed. Counts the push. */
static int64_t staleness_of_next(pli_server_table *table, int32_t workers, int32_t worker) {
    if (table->progress == NULL) return 1;
    int64_t staleness = 1 + (pushes_of_others(table, worker) - table->progress[worker].fetched) / workers;
    table->progress[worker].own++;
    return staleness;
}

/* --- what is dropped ---------------------------------------------------------------------------------------- */

/* Late: its clock is complete already. Else the policy is asked. */
static bool is_dropped(const pli_server *server, uint64_t now_ns, const pli_server_table *table, const pli_msg *msg,
                       const pli_push_part *part) {
    const plait_consistency *policy = table->policy.ops;
    const pli_spec          *spec = &table->shard.spec;
    if (table->at_clock && msg->head.clock < server->applied) return true;
    if (policy->server.on_push == NULL) return false;
    plait_view view = pli_server_view(server, now_ns, msg->head.src, msg->head.clock);
    if (policy->reads_norms)
        view.norm = pli_values_max_norm(spec->type, part->n * spec->cols, part->values) /
                    (spec->ruled ? (double)spec->batch : 1);
    return policy->server.on_push(table->policy.state, &view) == PLAIT_DROP;
}

/* Nothing of part i is to be applied at the clock's end: noted in a body of the server's own. */
static bool mark_dropped(pli_msg *msg, uint32_t i) {
    pli_wire_part part;
    if (!pli_slab_is_mine(msg->body)) {
        pli_msg *copy = pli_msg_new(msg->head.body_bytes);
        if (copy == NULL) return false;
        memcpy(pli_msg_body(copy), pli_msg_body(msg), msg->head.body_bytes);
        pli_slab_unref(&msg->body);
        msg->body = pli_slab_ref(copy->body);
        msg->offset = copy->offset;
        pli_msg_free(&copy);
    }
    void *at = pli_at(pli_msg_body(msg), (int64_t)(i * sizeof part));
    memcpy(&part, at, sizeof part);
    part.flags |= PLI_PART_DROPPED;
    memcpy(at, &part, sizeof part);
    return true;
}

/* Does one of the first `parts` parts of msg name the table, to be applied at the clock's end? */
static bool names(const pli_server *server, const pli_msg *msg, uint32_t parts, const pli_server_table *wanted) {
    pli_push_part     part;
    pli_server_table *table;
    for (uint32_t i = 0; i < parts; i++)
        if (decode_part(server, msg, i, &part, &table, NULL) == PLAIT_OK && table == wanted && part.touched)
            return true;
    return false;
}

/* A worker's clock has one part a table: of two only one would be applied. */
static plait_status check_is_only(const pli_server *server, const pli_msg *msg, uint32_t i,
                                  const pli_server_table *table, plait_error *err) {
    bool twice = names(server, msg, i, table);
    for (const pli_msg *at = server->peer[msg->head.src].queue; at != NULL && !twice; at = at->next)
        twice = at->head.clock == msg->head.clock && names(server, at, at->head.arg32, table);
    if (!twice) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "table %s: worker %d pushes a second part of clock %lld",
                    table->shard.spec.name, msg->head.src, (long long)msg->head.clock);
}

plait_status pli_server_check_push(const pli_server *server, const pli_msg *msg, plait_error *err) {
    pli_push_part     part;
    pli_server_table *table;
    uint32_t          parts = msg->head.arg32;
    if (parts > msg->head.body_bytes / sizeof(pli_wire_part) || (parts > 0 && msg->offset % 8 != 0))
        return pli_fail(err, PLAIT_EFORMAT, "%u parts are cut short", parts);
    for (uint32_t i = 0; i < parts; i++) {
        PLI_TRY(decode_part(server, msg, i, &part, &table, err));
        PLI_TRY(pli_shard_check(&table->shard, &part, err));
    }
    return PLAIT_OK;
}

bool pli_server_take_push(pli_server *server, uint64_t now_ns, pli_msg *msg, bool *keep_out, pli_out *out) {
    plait_error       why = { 0 };
    pli_push_part     part;
    pli_server_table *table;
    uint32_t          parts = msg->head.arg32;
    if (pli_server_check_push(server, msg, &why) < 0) return failed(msg, &why, out); /* all, before any is applied */
    for (uint32_t i = 0; i < parts; i++) {
        decode_part(server, msg, i, &part, &table, &why);
        if (table->at_clock && part.touched && check_is_only(server, msg, i, table, &why) < 0)
            return failed(msg, &why, out);
    }
    for (uint32_t i = 0; i < parts; i++) {
        decode_part(server, msg, i, &part, &table, &why);
        if (is_dropped(server, now_ns, table, msg, &part)) {
            server->dropped++;
            pli_raise_part(server, PLI_EVENT_DROP, msg, table);
            if (table->at_clock && msg->head.clock >= server->applied && !mark_dropped(msg, i)) {
                pli_out_fail(out, PLAIT_ENOMEM, "no memory to drop a push of rank %d", msg->head.src);
                return false;
            }
            continue;
        }
        if (table->at_clock) {
            *keep_out = true;
            continue;
        }
        pli_out_work(out, PLI_WORK_VALUES, (uint64_t)(part.n * table->shard.spec.cols));
        int64_t staleness = staleness_of_next(table, server->layout.workers, msg->head.src);
        if (pli_shard_apply_push(&table->shard, msg->head.clock, staleness, &part, &why) < 0)
            return failed(msg, &why, out);
        pli_raise_part(server, PLI_EVENT_APPLY, msg, table);
    }
    return true;
}

void pli_server_forget_unended(pli_server *server, int32_t worker) {
    pli_peer *peer = &server->peer[worker];
    pli_msg **at = &peer->queue;
    while (*at != NULL && (*at)->head.clock < peer->ended) at = &(*at)->next;
    pli_msg_free_list(at);
    peer->queue_last = at;
}

/* A worker's push of the clock to one table, untouched where there is none. queue: all that it has sent of the clock
 * stands first, in no more than one part. */
static pli_push_part part_for(const pli_server *server, const pli_msg *queue, const pli_server_table *wanted,
                              int64_t clock) {
    pli_push_part     part;
    pli_server_table *table;
    for (const pli_msg *msg = queue; msg != NULL && msg->head.clock == clock; msg = msg->next)
        for (uint32_t i = 0; i < msg->head.arg32; i++)
            if (decode_part(server, msg, i, &part, &table, NULL) == PLAIT_OK && table == wanted && part.touched) {
                if (server->copies == NULL)
                    pli_raise_part(server, PLI_EVENT_APPLY, msg, table);
                else
                    pli_copies_list(server, msg, table);
                return part;
            }
    return (pli_push_part){ .keyed = wanted->shard.spec.keyed };
}

plait_status pli_server_part(const pli_server *server, const pli_msg *msg, uint32_t i, pli_push_part *part_out,
                             pli_server_table **table_out, plait_error *err) {
    return decode_part(server, msg, i, part_out, table_out, err);
}

int32_t pli_server_parts_of(const pli_server *server, pli_msg *const *redo, const pli_server_table *table,
                            int64_t clock, pli_push_part *parts, int32_t *whose) {
    int32_t workers = server->layout.workers, n = workers;
    for (int32_t w = 0; whose != NULL && w < workers; w++) whose[w] = w;
    for (int32_t w = 0; w < workers; w++) parts[w] = part_for(server, server->peer[w].queue, table, clock);
    for (int32_t w = 0; redo != NULL && w < workers; w++)
        for (const pli_msg *msg = redo[w]; msg != NULL; msg = msg->next) {
            const pli_msg alone = { .head = msg->head, .body = msg->body, .offset = msg->offset };
            pli_push_part part = part_for(server, &alone, table, clock);
            if (!part.touched) continue;
            if (whose != NULL) whose[n] = w;
            parts[n++] = part;
        }
    return n;
}

void pli_server_forget_clock(pli_server *server, int64_t clock) {
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        while (peer->queue != NULL && peer->queue->head.clock == clock) {
            pli_msg *head = peer->queue;
            peer->queue = head->next;
            pli_msg_free(&head);
        }
        if (peer->queue == NULL) peer->queue_last = &peer->queue;
    }
}

bool pli_server_apply_clock(pli_server *server, int64_t clock, pli_out *out) {
    int32_t     workers = server->layout.workers;
    plait_error why = { 0 };
    for (int64_t i = 0; i < server->tables; i++) {
        pli_server_table *table = server->table[i];
        if (table == NULL || !table->at_clock) continue;
        (void)pli_server_parts_of(server, NULL, table, clock, server->parts, NULL);
        for (int32_t w = 0; w < workers; w++)
            pli_out_work(out, PLI_WORK_VALUES, (uint64_t)(server->parts[w].n * table->shard.spec.cols));
        if (pli_shard_apply_clock(&table->shard, clock, workers, server->parts, &why) < 0) {
            pli_out_fail(out, why.code, "%s", why.text);
            return false;
        }
    }
    pli_server_forget_clock(server, clock);
    return true;
}
