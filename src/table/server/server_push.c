/* How a server takes pushes: it checks them as they come, then applies them at once or when their clock is complete, or
 * drops them. */
#include <string.h>

#include "table/copies/replicas.h"
#include "table/events.h"
#include "table/state/values.h"

static bool failed(const pli_msg *msg, const plait_error *why, pli_out *out) {
    pli_out_fail(out, why->code, "push of rank %d: %s", msg->head.src, why->text);
    return false;
}

/* --- how stale a push is ------------------------------------------------------------------------------------ */

struct pli_progress {
    int64_t own;     /* how many pushes of the worker were applied          */
    int64_t fetched; /* how many of others were applied when the worker last fetched values */
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

/* The push's staleness: 1 + the clocks' worth of pushes by all other workers in the meantime. Counts the push. */
static int64_t staleness_of_next(pli_server_table *table, int32_t workers, int32_t worker) {
    if (table->progress == NULL) return 1;
    int64_t staleness = 1 + (pushes_of_others(table, worker) - table->progress[worker].fetched) / workers;
    table->progress[worker].own++;
    return staleness < 1 ? 1 : staleness; /* less only if another replica has said nonsense */
}

static pli_wire_age age_of(const pli_server_table *table, int32_t worker, bool whole) {
    const struct pli_progress *p = &table->progress[worker];
    return (pli_wire_age){ .table = (uint32_t)table->shard.spec.id, .worker = (uint32_t)worker, .fetched = p->fetched,
                           .applied = whole ? table->shard.applied : 0, .own = whole ? p->own : 0 };
}

static pli_msg *new_ages(size_t n) {
    pli_msg *msg = pli_msg_new(n * sizeof(pli_wire_age));
    if (msg != NULL) msg->head.kind = PLI_AGES;
    return msg;
}

bool pli_server_ages_of_push(const pli_server *server, const pli_msg *msg, pli_msg **ages_out) {
    pli_decoded_part part;
    size_t           n = 0, at = 0;
    *ages_out = NULL;
    for (uint32_t i = 0; i < msg->head.arg32; i++)
        n += pli_server_part(server, msg, i, &part, NULL) >= 0 && part.table->progress != NULL;
    if (n == 0) return true;
    *ages_out = new_ages(n);
    if (*ages_out == NULL) return false;
    for (uint32_t i = 0; i < msg->head.arg32; i++) {
        if (pli_server_part(server, msg, i, &part, NULL) < 0 || part.table->progress == NULL) continue;
        const pli_wire_age age = age_of(part.table, msg->head.src, false);
        memcpy(pli_at(pli_msg_body(*ages_out), (int64_t)(at++ * sizeof age)), &age, sizeof age);
    }
    return true;
}

pli_msg *pli_server_ages_of_table(const pli_server *server, const pli_server_table *table) {
    pli_msg *msg = new_ages((size_t)server->layout.workers);
    for (int32_t w = 0; msg != NULL && w < server->layout.workers; w++) {
        const pli_wire_age age = age_of(table, w, true);
        memcpy(pli_at(pli_msg_body(msg), w * (int64_t)sizeof age), &age, sizeof age);
    }
    return msg;
}

plait_status pli_server_take_ages(pli_server *server, const pli_msg *msg, bool whole, plait_error *err) {
    const uint64_t n = msg->head.body_bytes / sizeof(pli_wire_age);
    for (uint64_t i = 0; i < n; i++) {
        pli_wire_age age;
        memcpy(&age, pli_at_const(pli_msg_body(msg), (int64_t)(i * sizeof age)), sizeof age);
        pli_server_table *table = pli_server_table_of(server, age.table);
        if (table == NULL || table->progress == NULL || age.worker >= (uint32_t)server->layout.workers ||
            age.applied < 0 || age.own < 0 || age.own > age.applied || age.fetched < 0)
            return pli_fail(err, PLAIT_EFORMAT, "how stale a push is to table number %u, which does not ask",
                            age.table);
        table->progress[age.worker].fetched = age.fetched;
        if (!whole) continue;
        table->progress[age.worker].own = age.own;
        table->shard.applied = age.applied;
    }
    return n * sizeof(pli_wire_age) == msg->head.body_bytes
               ? PLAIT_OK
               : pli_fail(err, PLAIT_EFORMAT, "how stale pushes are is cut short");
}

/* --- what is dropped ---------------------------------------------------------------------------------------- */

/* A push is late if its clock is complete already; otherwise the policy is asked. */
static bool is_dropped(const pli_server *server, uint64_t now_ns, const pli_server_table *table, const pli_msg *msg,
                       const pli_push_part *part) {
    const plait_consistency *policy = table->policy.ops;
    const pli_spec          *spec = &table->shard.spec;
    const int64_t complete = server->replicas != NULL ? pli_replicas_prepared(server) : server->applied;
    if (table->at_clock && msg->head.clock < complete) return true;
    if (policy->server.on_push == NULL) return false;
    plait_view view = pli_server_view(server, now_ns, msg->head.src, msg->head.clock);
    if (policy->reads_norms)
        view.norm = pli_values_max_norm(spec->type, part->n * spec->cols, part->values) /
                    (spec->ruled ? (double)spec->batch : 1);
    return policy->server.on_push(table->policy.state, &view) == PLAIT_DROP;
}

/* Refuses a second part for the same table in a worker's clock: only one of the two would be applied. */
static plait_status check_is_only(const pli_server *server, const pli_msg *msg, uint32_t i, plait_error *err) {
    const pli_server_table *table = server->decoded[i].table;
    bool                    twice = false;
    for (uint32_t k = 0; k < i && !twice; k++) twice = server->decoded[k].table == table;
    for (pli_waiting_push *at = server->peer[msg->head.src].queue; at != NULL && !twice; at = at->next)
        twice = at->msg->head.clock == msg->head.clock && pli_waiting_part(at, table) != NULL;
    if (!twice) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "table %s: worker %d pushes a second part of clock %lld",
                    table->shard.spec.name, msg->head.src, (long long)msg->head.clock);
}

plait_status pli_server_decode(pli_server *server, const pli_msg *msg, plait_error *err) {
    uint32_t parts = msg->head.arg32;
    if (parts > msg->head.body_bytes / sizeof(pli_wire_part) || (parts > 0 && msg->offset % 8 != 0))
        return pli_fail(err, PLAIT_EFORMAT, "%u parts are cut short", parts);
    if (!pli_grow((void **)&server->decoded, &server->decoded_capacity, parts, sizeof *server->decoded))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %u parts", parts);
    for (uint32_t i = 0; i < parts; i++) {
        pli_decoded_part *part = &server->decoded[i];
        PLI_TRY(pli_server_part(server, msg, i, part, err));
        PLI_TRY(pli_shard_check(&part->table->shard, &part->part, err));
    }
    return PLAIT_OK;
}

/* Drops a part, or applies it at once, or says (true) that it waits for its clock's end. */
static plait_status take_part(pli_server *server, uint64_t now_ns, const pli_msg *msg, const pli_decoded_part *decoded,
                              bool *waits_out, pli_out *out, plait_error *err) {
    pli_server_table    *table = decoded->table;
    const pli_push_part *part = &decoded->part;
    if (is_dropped(server, now_ns, table, msg, part)) {
        server->dropped++;
        pli_raise_part(server, PLI_EVENT_DROP, msg, table);
        return PLAIT_OK;
    }
    if (table->at_clock) {
        *waits_out = true;
        return PLAIT_OK;
    }
    pli_out_work(out, PLI_WORK_VALUES, (uint64_t)(part->n * table->shard.spec.cols));
    int64_t staleness = staleness_of_next(table, server->layout.workers, msg->head.src);
    PLI_TRY(pli_shard_apply_push(&table->shard, msg->head.src, msg->head.clock, staleness, part, err));
    pli_raise_part(server, PLI_EVENT_APPLY, msg, table);
    return PLAIT_OK;
}

bool pli_server_take_push(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_waiting_push **waits_out,
                          pli_out *out) {
    plait_error why = { 0 };
    uint32_t    parts = msg->head.arg32;
    int64_t     n = 0; /* how many parts wait; they are moved to the front of decoded */
    if (pli_server_decode(server, msg, &why) < 0) return failed(msg, &why, out); /* all, before any is applied */
    for (uint32_t i = 0; i < parts; i++)
        if (server->decoded[i].table->at_clock && check_is_only(server, msg, i, &why) < 0)
            return failed(msg, &why, out);
    for (uint32_t i = 0; i < parts; i++) {
        const pli_decoded_part part = server->decoded[i];
        bool                   waits = false;
        if (take_part(server, now_ns, msg, &part, &waits, out, &why) < 0) return failed(msg, &why, out);
        if (waits) server->decoded[n++] = part;
    }
    if (n == 0) return true;
    *waits_out = pli_waiting_new(msg, n, server->decoded);
    if (*waits_out == NULL) pli_out_fail(out, PLAIT_ENOMEM, "no memory to keep a push of rank %d", msg->head.src);
    return *waits_out != NULL;
}

/* Finds the push's part for the table, if the push counts in its clock. */
static bool find_part(const pli_server *server, pli_waiting_push *push, pli_server_table *table,
                      pli_push_part *part_out) {
    const pli_push_part *part = pli_waiting_part(push, table);
    if (part == NULL) return false;
    if (server->replicas == NULL) pli_raise_part(server, PLI_EVENT_APPLY, push->msg, table);
    else pli_replicas_list(server, push->msg, table);
    *part_out = *part;
    return true;
}

/* A worker's push to one table in the clock, untouched if there is none. The worker's messages of the clock stand first
 * in queue, and no more than one of them has a part for the table. */
static pli_push_part part_for(const pli_server *server, pli_waiting_push *queue, pli_server_table *table,
                              int64_t clock) {
    pli_push_part part = { .keyed = table->shard.spec.keyed };
    for (pli_waiting_push *at = queue; at != NULL && at->msg->head.clock == clock; at = at->next)
        if (find_part(server, at, table, &part)) break;
    return part;
}

/* Adds what workers have redone (redo NULL: nothing) in that one's stead; stead -1: in anybody's. Returns how many
 * parts there are. */
static int32_t add_redone(const pli_server *server, pli_waiting_push *const *redo, pli_server_table *table,
                          int64_t clock, int32_t stead, int32_t n, pli_push_part *parts, int32_t *whose) {
    for (int32_t w = 0; redo != NULL && w < server->layout.workers; w++)
        for (pli_waiting_push *push = redo[w]; push != NULL; push = push->next) {
            if (push->msg->head.clock != clock || (stead >= 0 && push->stead != stead)) continue;
            if (!find_part(server, push, table, &parts[n])) continue;
            if (whose != NULL) whose[n] = w;
            n++;
        }
    return n;
}

int32_t pli_server_parts_of(const pli_server *server, pli_waiting_push *const *redo, pli_server_table *table,
                            int64_t clock, pli_push_part *parts, int32_t *whose) {
    const int32_t workers = server->layout.workers;
    const bool    by_number = table->shard.spec.combine->replaces;
    int32_t       n = 0;
    for (int32_t w = 0; w < workers; w++) {
        if (whose != NULL) whose[n] = w;
        parts[n++] = part_for(server, server->peer[w].queue, table, clock);
        if (by_number) n = add_redone(server, redo, table, clock, w, n, parts, whose);
    }
    return by_number ? n : add_redone(server, redo, table, clock, -1, n, parts, whose);
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
