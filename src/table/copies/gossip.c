/* See gossip.h.
 *
 * Invariants: at most a few clocks' copies of each neighbour are kept, since a neighbour cannot pass a round without a
 * copy that depends on this worker's. held_by is -1 exactly when all that is awaited has come. */
#include "table/copies/gossip.h"

#include <string.h>

#include "comm/comm.h"
#include "comm/reduce.h"
#include "table/state/values.h"

/* --- what is awaited ---------------------------------------------------------------------------------------------- */

static pli_msg **find(pli_gossip_table *table, int64_t clock, int32_t from) {
    for (pli_msg **at = &table->first; *at != NULL; at = &(*at)->next)
        if ((*at)->head.src == from && (*at)->head.clock == clock) return at;
    return NULL;
}

static bool is_there(pli_gossip_table *table, int32_t from) {
    if (table->of == PLI_GOSSIP_COPY) return find(table, table->clock, from) != NULL;
    return (table->of == PLI_GOSSIP_MET ? table->met : table->marked)[from] >= table->clock;
}

static void look(pli_gossip_table *table) {
    int32_t held_by = -1;
    for (int32_t i = table->n_from; i-- > 0;)
        if (!is_there(table, table->from[i])) held_by = table->from[i];
    atomic_store_explicit(&table->held_by, held_by, memory_order_release);
}

void pli_gossip_await(pli_gossip_table *table, pli_gossip_kind kind, int64_t clock, int32_t n, const int32_t *from) {
    table->of = kind;
    table->clock = clock;
    table->n_from = n;
    memcpy(table->from, from, (size_t)n * sizeof *from);
    look(table);
}

pli_msg *pli_gossip_take(pli_gossip_table *table, int64_t clock, int32_t from) {
    pli_msg **at = find(table, clock, from), *msg = at == NULL ? NULL : *at;
    if (msg == NULL) return NULL;
    *at = msg->next;
    if (*at == NULL) table->last = at;
    msg->next = NULL;
    return msg;
}

/* --- what comes --------------------------------------------------------------------------------------------------- */

static void add_to_box(pli_gossip_table *table, const pli_msg *msg, pli_out *out) {
    const void *values = pli_at_const(pli_msg_body(msg), sizeof(double));
    plait_error err = { 0 };
    double      weight;
    memcpy(&weight, pli_msg_body(msg), sizeof weight);
    if (table->estimates != NULL &&
        pli_estimates_take(table->estimates, msg->head.src, msg->head.clock, values,
                           (int64_t)(msg->head.body_bytes - sizeof weight), &values, &err) < 0) {
        pli_out_fail(out, err.code, "%s", err.text);
        return;
    }
    if (table->box == NULL) table->box = pli_calloc((size_t)table->n, pli_type_bytes(table->type));
    if (table->box_weight == 0) table->n_come = 0; /* the box was emptied */
    if (table->box == NULL ||
        !pli_grow((void **)&table->come, &table->come_capacity, table->n_come + 1, sizeof *table->come)) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory for a neighbour's mirror of a table");
        return;
    }
    table->come[table->n_come++] = (pli_gossip_come){ .peer = msg->head.src, .clock = msg->head.clock };
    pli_values_add_scaled(table->type, table->n, weight, values, table->box);
    table->box_weight += weight;
    pli_out_work(out, PLI_WORK_SUMS, (uint64_t)table->n);
}

static bool is_sound(const pli_gossip_table *table, const pli_msg *msg) {
    uint64_t values = (uint64_t)table->n * pli_type_bytes(table->type);
    double   weight = 1;
    if (msg->head.kind == PLI_GOSSIP_MARK || msg->head.kind == PLI_GOSSIP_MET) return msg->head.body_bytes == 0;
    if (msg->head.kind != PLI_GOSSIP_COPY) return false;
    if (table->estimates == NULL && msg->head.body_bytes != values + (table->rounds ? 0 : sizeof weight)) return false;
    if (table->estimates != NULL && msg->head.body_bytes < (table->rounds ? 0 : sizeof weight)) return false;
    if (!table->rounds) memcpy(&weight, pli_msg_body(msg), sizeof weight);
    return weight > 0 && weight <= 1e9;
}

/* The message is taken. */
static void take(pli_gossip *gossip, pli_msg *msg, pli_out *out) {
    pli_gossip_table *table = gossip->tables;
    while (table != NULL && (uint32_t)table->id != msg->head.arg32) table = table->next;
    if (table == NULL || !is_sound(table, msg)) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent a mirror of table %u that does not fit", msg->head.src,
                     msg->head.arg32);
        pli_msg_free(&msg);
        return;
    }
    if (msg->head.kind != PLI_GOSSIP_COPY) {
        int64_t *last = &(msg->head.kind == PLI_GOSSIP_MET ? table->met : table->marked)[msg->head.src];
        if (msg->head.clock > *last) *last = msg->head.clock;
    } else if (table->rounds || table->holds) {
        msg->next = NULL;
        *table->last = msg;
        table->last = &msg->next;
        msg = NULL;
    } else {
        add_to_box(table, msg, out);
    }
    pli_msg_free(&msg);
    look(table);
    if (pli_gossip_is_there(table)) pli_out_ring(out);
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_gossip *gossip = state;
    int32_t     src = msg->head.src;
    for (msg = pli_links_take(&gossip->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&gossip->links, src))
        take(gossip, msg, out);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_gossip *gossip = state;
    pli_links_wakeup(&gossip->links, now_ns, out);
}

/* The worker has died: nothing of it is awaited. */
static void await_no_more(pli_gossip *gossip, int32_t worker, pli_out *out) {
    gossip->dead[worker] = 1;
    for (pli_gossip_table *table = gossip->tables; table != NULL; table = table->next) {
        table->marked[worker] = table->met[worker] = INT64_MAX;
        look(table);
    }
    pli_out_ring(out);
}

/* A worker that has left in good order has sent all that others need. */
static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    (void)now_ns;
    pli_gossip *gossip = state;
    if (event->kind == PLI_MEMBER_JOINED || event->rank >= gossip->workers) return;
    pli_links_forget(&gossip->links, event->rank);
    if (event->kind == PLI_MEMBER_DIED && gossip->survives) await_no_more(gossip, event->rank, out);
    else if (event->kind == PLI_MEMBER_DIED)
        pli_out_lost(out, event->rank, "rank %d is lost, and others average with its mirror: %s", event->rank,
                     event->why.text);
}

static pli_msg *late(const pli_msg *msg) {
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) return NULL;
    ack->head.kind = PLI_LINK_ACK;
    ack->head.port = PLI_PORT_GOSSIP;
    ack->head.arg64 = msg->head.seq;
    return ack;
}

const pli_machine_ops pli_gossip_ops = {
    .name = "gossip", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member, .late = late
};

/* --- what goes ---------------------------------------------------------------------------------------------------- */

static plait_status send(pli_gossip *gossip, const pli_gossip_table *table, uint64_t now_ns, int64_t clock, int32_t to,
                         pli_gossip_kind kind, pli_msg *msg, pli_out *out, plait_error *err) {
    if (msg != NULL) {
        msg->head.kind = (uint16_t)kind;
        msg->head.arg32 = (uint32_t)table->id;
        msg->head.clock = clock;
        msg->head.dst = to;
        if (pli_links_send(&gossip->links, now_ns, msg, out)) return PLAIT_OK;
    }
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a message to rank %d", to);
}

plait_status pli_gossip_give(pli_gossip *gossip, const pli_gossip_table *table, uint64_t now_ns, int64_t clock,
                             int32_t to, pli_msg *copy, pli_out *out, plait_error *err) {
    return send(gossip, table, now_ns, clock, to, PLI_GOSSIP_COPY, copy, out, err);
}

plait_status pli_gossip_mark(pli_gossip *gossip, const pli_gossip_table *table, uint64_t now_ns, pli_gossip_kind kind,
                             int64_t clock, int32_t n, const int32_t *to, pli_out *out, plait_error *err) {
    for (int32_t i = 0; i < n; i++)
        if (!gossip->dead[to[i]])
            PLI_TRY(send(gossip, table, now_ns, clock, to[i], kind, pli_msg_new(0), out, err));
    return PLAIT_OK;
}

void pli_gossip_release(pli_gossip_table *table, pli_out *out) {
    table->holds = false;
    for (pli_msg *msg = table->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        add_to_box(table, msg, out);
        pli_msg_free(&msg);
    }
    table->first = NULL;
    table->last = &table->first;
}

void pli_gossip_mix(pli_gossip_table *table, double *weight, void *values) {
    if (table->box_weight <= 0) {
        table->n_come = 0;
        return;
    }
    double whole = *weight + table->box_weight;
    size_t bytes = (size_t)table->n * pli_type_bytes(table->type);
    pli_values_scale(table->type, table->n, *weight / whole, values);
    pli_values_add_scaled(table->type, table->n, 1 / whole, table->box, values);
    memset(table->box, 0, bytes);
    *weight = whole;
    table->box_weight = 0;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

bool pli_gossip_init(pli_gossip *gossip, int32_t me, int32_t workers, uint64_t resend_after_ns) {
    *gossip = (pli_gossip){ .me = me, .workers = workers };
    gossip->dead = pli_calloc((size_t)workers, 1);
    return pli_links_init(&gossip->links, workers, PLI_PORT_GOSSIP, resend_after_ns) && gossip->dead != NULL;
}

static void free_table(pli_gossip_table *table) {
    pli_msg_free_list(&table->first);
    pli_free(table->box);
    pli_free(table->come);
    pli_estimates_close(&table->estimates);
    pli_free(table->marked);
    pli_free(table);
}

void pli_gossip_destroy(pli_gossip *gossip) {
    for (pli_gossip_table *table = gossip->tables, *next; table != NULL; table = next) {
        next = table->next;
        free_table(table);
    }
    gossip->tables = NULL;
    pli_free(gossip->dead);
    gossip->dead = NULL;
    if (gossip->links.link != NULL) pli_links_destroy(&gossip->links);
}

pli_gossip_table *pli_gossip_add(pli_gossip *gossip, int32_t id, plait_type type, int64_t n, bool rounds) {
    pli_gossip_table *table = pli_calloc(1, sizeof *table);
    if (table == NULL) return NULL;
    *table = (pli_gossip_table){ .next = gossip->tables, .id = id, .type = type, .n = n, .rounds = rounds };
    table->last = &table->first;
    table->marked = pli_array((size_t)gossip->workers * 2, sizeof *table->marked);
    table->of = PLI_GOSSIP_COPY;
    atomic_init(&table->held_by, -1);
    if (table->marked == NULL) {
        free_table(table);
        return NULL;
    }
    table->met = table->marked + gossip->workers;
    for (int32_t w = 0; w < gossip->workers; w++)
        table->marked[w] = table->met[w] = gossip->dead[w] ? INT64_MAX : -1;
    gossip->tables = table;
    return table;
}
