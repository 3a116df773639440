/* The log between the two copies of a server's shards, and what each makes of it; copies.h has the idea. */
#include "table/copies.h"

#include <string.h>

#include "table/events.h"
#include "table/values.h"

enum { SEQ_BITS = 40 }; /* of arg64 in the log; the worker's number stands above */

static uint64_t whose(int32_t worker, uint64_t seq) { return (uint64_t)worker << SEQ_BITS | seq; }

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_copies_open(pli_server *server, int32_t place, plait_error *err) {
    const pli_layout *layout = &server->layout;
    size_t            workers = (size_t)layout->workers;
    pli_copies       *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a copy of a server's shards");
    c->place = place;
    c->serves = place == 0;
    c->whole = place <= 1;
    c->other_place = place == 0 ? 1 : 0;
    c->other = place <= 1 && pli_copy_places(layout) > 1 ? pli_copy_rank(layout, server->number, c->other_place) : -1;
    pli_tx_init(&c->tx, layout->resend_after_ns);
    pli_rx_init(&c->rx);
    c->last = &c->first;
    c->early_last = &c->early;
    c->safe = pli_calloc(workers, 4 * sizeof *c->safe);
    c->redo = pli_calloc(workers, 2 * sizeof *c->redo);
    c->views = pli_calloc(workers + 2, workers);
    server->copies = c;
    if (c->safe == NULL || c->redo == NULL || c->views == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a copy of a server's shards");
    c->ended = c->safe + workers;
    c->again = c->ended + workers;
    c->in_log = c->again + workers;
    c->dead = c->views + workers * workers;
    c->logged = c->dead + workers;
    return PLAIT_OK;
}

static void free_entry(pli_entry *entry) {
    pli_msg_free_list(&entry->requests);
    pli_msg_free_list(&entry->answers);
    pli_free(entry->all);
    pli_free(entry);
}

void pli_copies_close(pli_server *server) {
    pli_copies *c = server->copies;
    if (c == NULL) return;
    while (c->first != NULL) {
        pli_entry *entry = c->first;
        c->first = entry->next;
        free_entry(entry);
    }
    for (int32_t i = 0; c->redo != NULL && i < 2 * server->layout.workers; i++) pli_msg_free_list(&c->redo[i]);
    pli_tx_destroy(&c->tx);
    pli_rx_destroy(&c->rx);
    pli_msg_free(&c->sum);
    pli_msg_free(&c->gathered);
    pli_msg_free_list(&c->early);
    pli_free(c->safe);
    pli_free(c->redo);
    pli_free(c->views);
    pli_free(c->events);
    pli_free(c->listed);
    pli_free(c);
    server->copies = NULL;
}

/* --- who serves: what is safe ------------------------------------------------------------------------------------- */

static void tell_safe(pli_server *server, int32_t worker, uint64_t seq, pli_out *out) {
    pli_copies *c = server->copies;
    if (seq <= c->safe[worker]) return;
    c->safe[worker] = seq;
    if (!server->peer[worker].gone) pli_server_tell(server, worker, PLI_SAFE, (int64_t)seq, out);
}

/* The entry (taken) is with the other copy, or there is none. */
static void release(pli_server *server, uint64_t now_ns, pli_entry *entry, pli_out *out) {
    while (entry->requests != NULL) {
        pli_msg *request = entry->requests, *answer = entry->answers;
        entry->requests = request->next;
        entry->answers = answer->next;
        answer->next = NULL;
        if (entry->ends || !server->peer[request->head.src].gone)
            pli_server_reply(server, now_ns, request, answer, out);
        else pli_msg_free(&answer);
        pli_msg_free(&request);
    }
    if (entry->all == NULL && entry->seq > 0) tell_safe(server, entry->worker, entry->seq, out);
    for (int32_t w = 0; entry->all != NULL && w < server->layout.workers; w++)
        tell_safe(server, w, entry->all[w], out);
    if (entry->ends) pli_server_end(server, out);
    free_entry(entry);
}

static void release_to(pli_server *server, uint64_t now_ns, uint64_t number, pli_out *out) {
    pli_copies *c = server->copies;
    while (c->first != NULL && c->first->number <= number) {
        pli_entry *entry = c->first;
        c->first = entry->next;
        if (c->first == NULL) c->last = &c->first;
        release(server, now_ns, entry, out);
    }
}

static void address_to_other(const pli_server *server, pli_msg *msg) {
    const pli_copies *c = server->copies;
    msg->head.flags |= (uint16_t)(PLI_FLAG_LOG | (c->place > 0 ? PLI_FLAG_BACKUP : 0));
    msg->head.server = server->number;
    msg->head.src = server->rank;
    msg->head.dst = c->other;
    msg->head.port = pli_copy_port(c->other_place);
    msg->head.epoch = server->epoch;
    msg->head.incarnation = server->incarnation;
}

static bool send_to_other(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    msg->head.flags &= PLI_MSG_UNCOUNTED;
    address_to_other(server, msg);
    return pli_tx_send(&server->copies->tx, now_ns, msg, out);
}

static void note(pli_server *server, const pli_entry *entry) {
    pli_copies *c = server->copies;
    if (entry->all == NULL && entry->seq > 0 && entry->seq > c->in_log[entry->worker])
        c->in_log[entry->worker] = entry->seq;
    for (int32_t w = 0; entry->all != NULL && w < server->layout.workers; w++)
        if (entry->all[w] > c->in_log[w]) c->in_log[w] = entry->all[w];
}

/* The next entry of the log: msg (taken; NULL: no memory), and what it makes safe (taken; NULL: no memory). */
static void append(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_entry *entry, pli_out *out) {
    pli_copies *c = server->copies;
    bool        well = msg != NULL && entry != NULL;
    if (well) note(server, entry);
    if (well && c->other < 0) {
        if (c->abandoned && !entry->ends)
            free_entry(entry);
        else
            release(server, now_ns, entry, out);
        pli_msg_free(&msg);
        return;
    }
    if (well) entry->number = c->tx.next;
    if (well && send_to_other(server, now_ns, msg, out)) {
        *c->last = entry;
        c->last = &entry->next;
        return;
    }
    pli_out_fail(out, PLAIT_ENOMEM, "no memory for the log of the shards of rank %d", server->home);
    pli_msg_free(&msg);
    if (entry != NULL) free_entry(entry);
}

static pli_entry *entry_of(int32_t worker, uint64_t seq) {
    pli_entry *entry = pli_calloc(1, sizeof *entry);
    if (entry == NULL) return NULL;
    entry->worker = worker;
    entry->seq = seq;
    return entry;
}

/* The message as the log has it. */
static pli_msg *logged(const pli_msg *msg) {
    pli_msg *copy = pli_msg_copy(msg);
    if (copy == NULL) return NULL;
    copy->head.arg64 = whose(msg->head.src, msg->head.seq);
    return copy;
}

void pli_copies_log(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    if (server->copies == NULL || !server->copies->serves || out->error.code < 0) return;
    append(server, now_ns, logged(msg), entry_of(msg->head.src, msg->head.seq), out);
}

static bool add_answer(pli_entry *entry, const pli_msg *request, pli_msg *answer) {
    pli_msg *head = pli_msg_new(0);
    if (head == NULL || answer == NULL) {
        pli_msg_free(&head);
        pli_msg_free(&answer);
        return false;
    }
    head->head = request->head;
    head->head.body_bytes = 0;
    head->next = entry->requests;
    answer->next = entry->answers;
    entry->requests = head;
    entry->answers = answer;
    return true;
}

/* The worker's message goes into the log, and is answered (taken) when it is safe. */
static void log_with(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out) {
    pli_entry *entry = entry_of(msg->head.src, msg->head.seq);
    if (entry != NULL && !add_answer(entry, msg, answer)) {
        free_entry(entry);
        entry = NULL;
    }
    append(server, now_ns, logged(msg), entry, out);
}

void pli_copies_created(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out) {
    pli_copies *c = server->copies;
    int64_t     tables = 0;
    for (int64_t i = 0; i < server->tables; i++) tables += server->table[i] != NULL;
    if (!c->serves) {
        c->created = tables;
        pli_msg_free(&answer);
        return;
    }
    if (tables == c->created) {
        pli_server_reply(server, now_ns, msg, answer, out);
        return;
    }
    c->created = tables;
    log_with(server, now_ns, msg, answer, out);
}

void pli_copies_restored(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out) {
    if (server->copies->serves) log_with(server, now_ns, msg, answer, out);
    else pli_msg_free(&answer);
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

void pli_copies_ended(pli_server *server, const pli_msg *msg) {
    if (server->copies != NULL) server->copies->ended[msg->head.src] = msg->head.seq;
}

void pli_copies_released(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    if (server->copies == NULL || !server->copies->serves || out->error.code < 0) return;
    append(server, now_ns, pli_msg_copy(msg), entry_of(-1, 0), out);
}

/* Behind its parts a SUM has ... */
typedef struct sum_body {
    uint64_t      *ended;   /* [workers]                                              */
    uint64_t      *version; /* [parts]                                                */
    unsigned char   *gone;    /* [workers] PLI_LOG_HERE ..; padded to 8 */
    uint64_t        *n_listed;
    pli_wire_summed *listed; /* [*n_listed] */
} sum_body;

static uint64_t sum_bytes(uint64_t parts, uint64_t workers) { /* what is listed and parts' data apart */
    return parts * sizeof(pli_wire_part) + 8 * workers + 8 * parts + pli_pad8(workers) + 8;
}

static sum_body sum_layout(unsigned char *body, uint64_t parts, uint64_t workers) {
    uint64_t      *ended = (uint64_t *)(body + parts * sizeof(pli_wire_part));
    unsigned char *gone = (unsigned char *)(ended + workers + parts);
    uint64_t      *n_listed = (uint64_t *)(gone + pli_pad8(workers));
    return (sum_body){ .ended = ended,
                       .version = ended + workers,
                       .gone = gone,
                       .n_listed = n_listed,
                       .listed = (pli_wire_summed *)(n_listed + 1) };
}

void pli_copies_list(const pli_server *server, const pli_msg *msg, pli_server_table *table) {
    pli_copies *c = server->copies;
    table->state++;
    if (server->sink == NULL) return;
    if (!pli_grow((void **)&c->listed, &c->listed_capacity, c->n_listed + 1, sizeof *c->listed))
        c->unlisted = true;
    else
        c->listed[c->n_listed++] = (pli_wire_summed){ .table = (uint32_t)table->shard.spec.id,
                                                      .worker = (uint32_t)msg->head.src,
                                                      .seq = msg->head.seq };
}

/* What the event log tells of a clock, now that it is applied. */
static void raise_sum(const pli_server *server, const sum_body *b) {
    for (uint64_t i = 0; server->sink != NULL && i < *b->n_listed; i++)
        pli_raise_summed(server, server->table[b->listed[i].table], (int32_t)b->listed[i].worker, b->listed[i].seq,
                         server->applied);
    for (int32_t w = 0; server->sink != NULL && w < server->layout.workers; w++)
        if (b->ended[w] > 0) pli_raise_summed_tick(server, w, b->ended[w], server->applied);
}

static bool apply_sum(pli_server *server, pli_out *out) {
    pli_copies       *c = server->copies;
    plait_error       why = { 0 };
    pli_push_part     part;
    pli_server_table *table;
    sum_body          b = sum_layout(pli_msg_body(c->sum), c->sum->head.arg32, (uint64_t)server->layout.workers);
    for (uint32_t i = 0; i < c->sum->head.arg32; i++) {
        plait_status status = pli_server_part(server, c->sum, i, &part, &table, &why);
        if (status >= 0) {
            pli_out_work(out, PLI_WORK_VALUES, (uint64_t)(part.n * table->shard.spec.cols));
            status = pli_shard_apply_clock(&table->shard, server->applied, 1, &part, &why);
        }
        if (status < 0) {
            pli_out_fail(out, why.code, "%s", why.text);
            return false;
        }
    }
    raise_sum(server, &b);
    for (uint32_t i = 0; i < c->sum->head.arg32; i++)
        if (pli_server_part(server, c->sum, i, &part, &table, &why) >= 0) table->state = b.version[i];
    pli_msg_free(&c->sum);
    server->applied++;
    return true;
}

bool pli_copies_reach(pli_server *server, int64_t clock, pli_out *out) {
    if (server->copies == NULL || server->copies->sum == NULL || clock <= server->applied) return true;
    return apply_sum(server, out);
}

/* Has every worker that is left stood in for all who died? */
static bool are_replaced(const pli_server *server) {
    const pli_copies *c = server->copies;
    int32_t           workers = server->layout.workers;
    for (int32_t v = 0; c->deaths > 0 && v < workers; v++)
        for (int32_t w = 0; c->dead[v] && w < workers; w++)
            if (server->clocks[w] != PLAIT_LEFT && !c->views[(int64_t)w * workers + v]) return false;
    return true;
}

typedef struct table_sum {
    pli_server_table *table;
    pli_push_part     part;
    uint64_t          version;
} table_sum;

/* What all workers have pushed to each table in the clock. *n_out tables were touched. */
static plait_status sum_tables(pli_server *server, int64_t clock, table_sum *sums, int64_t *n_out, pli_out *out,
                               plait_error *err) {
    const pli_copies *c = server->copies;
    int64_t           most = server->layout.workers, n = 0;
    for (int32_t w = 0; w < server->layout.workers; w++)
        for (const pli_msg *msg = c->redo[w]; msg != NULL; msg = msg->next) most++;
    pli_push_part *parts = pli_array((size_t)most, sizeof *parts);
    plait_status   status = parts == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory to add up a clock") : PLAIT_OK;
    for (int64_t i = 0; status >= 0 && i < server->tables; i++) {
        pli_server_table *table = server->table[i];
        if (table == NULL || !table->at_clock) continue;
        uint64_t before = table->state;
        int32_t  m = pli_server_parts_of(server, c->redo, table, clock, parts);
        for (int32_t k = 0; k < m; k++)
            pli_out_work(out, PLI_WORK_SUMS, (uint64_t)(parts[k].n * table->shard.spec.cols));
        sums[n] = (table_sum){ .table = table, .version = table->state };
        table->state = before; /* until the sum is applied */
        status = pli_shard_sum_clock(&table->shard, m, parts, &sums[n].part, err);
        n += sums[n].part.touched;
    }
    pli_free(parts);
    *n_out = n;
    return status;
}

static uint64_t data_bytes(const table_sum *sum) {
    return (sum->part.keyed ? (uint64_t)sum->part.n * 8 : 0) +
           pli_pad8((uint64_t)(sum->part.n * pli_sum_row_bytes(&sum->table->shard.spec)));
}

static pli_msg *make_sum(const pli_server *server, int64_t clock, const table_sum *sums, int64_t n) {
    const pli_copies *c = server->copies;
    uint64_t          workers = (uint64_t)server->layout.workers;
    uint64_t          listed = (uint64_t)c->n_listed * sizeof *c->listed;
    uint64_t          at = sum_bytes((uint64_t)n, workers) + listed, bytes = at;
    for (int64_t i = 0; i < n; i++) bytes += data_bytes(&sums[i]);
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    unsigned char *body = pli_msg_body(msg);
    sum_body       b = sum_layout(body, (uint64_t)n, workers);
    memset(body, 0, at);
    for (uint64_t w = 0; w < workers; w++) b.ended[w] = server->peer[w].ended > clock && !c->dead[w] ? c->ended[w] : 0;
    for (uint64_t w = 0; w < workers; w++)
        b.gone[w] = c->logged[w] = c->dead[w]                        ? PLI_LOG_DEAD
                                   : server->clocks[w] == PLAIT_LEFT ? PLI_LOG_LEFT
                                                                     : PLI_LOG_HERE;
    *b.n_listed = (uint64_t)c->n_listed;
    if (listed > 0) memcpy(b.listed, c->listed, listed);
    for (int64_t i = 0; i < n; i++) {
        const pli_push_part *p = &sums[i].part;
        const pli_spec      *spec = &sums[i].table->shard.spec;
        pli_wire_part wire = { .table = (uint32_t)spec->id, .flags = p->keyed ? PLI_PART_KEYED : 0,
                               .examples = p->examples, .first = p->keyed ? -1 : p->first, .n = p->n, .keys_at = at };
        wire.values_at = at + (p->keyed ? (uint64_t)p->n * 8 : 0);
        memcpy(body + (uint64_t)i * sizeof wire, &wire, sizeof wire);
        b.version[i] = sums[i].version;
        if (p->keyed && p->n > 0) memcpy(body + at, p->keys, (size_t)p->n * 8);
        if (p->n > 0) memcpy(body + wire.values_at, p->values, (size_t)(p->n * pli_sum_row_bytes(spec)));
        at += data_bytes(&sums[i]);
    }
    msg->head.kind = PLI_SUM_ENTRY;
    msg->head.clock = clock;
    msg->head.arg32 = (uint32_t)n;
    return msg;
}

static void drop_redo(pli_server *server) {
    for (int32_t i = 0; i < 2 * server->layout.workers; i++) pli_msg_free_list(&server->copies->redo[i]);
}

/* The clock's pushes become its SUM. */
static bool prepare(pli_server *server, uint64_t now_ns, int64_t clock, pli_out *out) {
    pli_copies  *c = server->copies;
    size_t       workers = (size_t)server->layout.workers;
    plait_error  why = { .code = PLAIT_ENOMEM, .text = "no memory to add up a clock" };
    int64_t      n = 0;
    table_sum   *sums = pli_array((size_t)server->tables + 1, sizeof *sums);
    pli_entry   *entry = entry_of(-1, 0);
    pli_msg     *msg = NULL;
    c->n_listed = 0;
    plait_status status = sums == NULL ? PLAIT_ENOMEM : sum_tables(server, clock, sums, &n, out, &why);
    if (status >= 0 && !c->unlisted) msg = make_sum(server, clock, sums, n);
    if (entry != NULL) entry->all = pli_array(workers, sizeof *entry->all);
    if (msg != NULL) c->sum = pli_msg_copy(msg);
    pli_free(sums);
    if (c->sum == NULL || entry == NULL || entry->all == NULL) {
        pli_msg_free(&msg);
        if (entry != NULL) free_entry(entry);
        pli_out_fail(out, why.code, "%s", why.text);
        return false;
    }
    memcpy(entry->all, sum_layout(pli_msg_body(msg), (uint64_t)n, workers).ended, workers * sizeof *entry->all);
    pli_server_forget_clock(server, clock);
    drop_redo(server);
    append(server, now_ns, msg, entry, out);
    return out->error.code >= 0;
}

bool pli_copies_prepare(pli_server *server, uint64_t now_ns, int64_t target, pli_out *out) {
    pli_copies *c = server->copies;
    if (!pli_server_has_clocks(server)) {
        server->applied = target > server->applied ? target : server->applied;
        return true;
    }
    while (c->serves && pli_copies_prepared(server) < target && are_replaced(server)) {
        if (c->sum != NULL && !apply_sum(server, out)) return false; /* all have ended a later clock */
        if (!prepare(server, now_ns, server->applied, out)) return false;
    }
    return server->slowest != PLAIT_LEFT || pli_copies_reach(server, INT64_MAX, out);
}

/* --- who stands in for the dead ----------------------------------------------------------------------------------- */

void pli_copies_bury(pli_server *server, int32_t worker) {
    pli_copies *c = server->copies;
    pli_peer   *peer = &server->peer[worker];
    int64_t     prepared = pli_copies_prepared(server);
    pli_msg   **at = &peer->queue;
    c->deaths += c->dead[worker] == 0;
    c->dead[worker] = 1;
    while (*at != NULL && (*at)->head.clock < prepared) at = &(*at)->next;
    pli_msg_free_list(at);
    *at = NULL;
    peer->queue_last = at;
    pli_msg_free_list(&c->redo[worker]);
    pli_msg_free_list(&c->redo[server->layout.workers + worker]);
}

static void link_at_end(pli_msg **list, pli_msg *msg) {
    while (*list != NULL) list = &(*list)->next;
    *list = msg;
}

bool pli_copies_redo(pli_server *server, pli_msg *msg, pli_out *out) {
    pli_copies     *c = server->copies;
    int32_t         worker = msg->head.src;
    const pli_peer *peer = &server->peer[worker];
    plait_error     why = { 0 };
    if (c != NULL && msg->head.clock < pli_copies_prepared(server)) return false; /* also of one who has left since */
    if (c == NULL || msg->head.clock != peer->ended - 1 || server->clocks[worker] == PLAIT_LEFT) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d stands in for another in clock %lld, it is in clock %lld", worker,
                     (long long)msg->head.clock, (long long)peer->ended);
        return false;
    }
    if (pli_server_check_push(server, msg, &why) < 0) {
        pli_out_fail(out, why.code, "push of rank %d: %s", worker, why.text);
        return false;
    }
    link_at_end(&c->redo[server->layout.workers + worker], msg);
    return true;
}

void pli_copies_view(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_copies *c = server->copies;
    int32_t     worker = msg->head.src, workers = server->layout.workers;
    uint64_t    n = msg->head.body_bytes / sizeof(uint32_t);
    uint32_t    id;
    if (c == NULL || n * sizeof id != msg->head.body_bytes) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d stands in for nobody", worker);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&id, pli_at_const(pli_msg_body(msg), (int64_t)(i * sizeof id)), sizeof id);
        if (id >= (uint32_t)workers || id == (uint32_t)worker) {
            pli_out_fail(out, PLAIT_EFORMAT, "rank %d stands in for rank %u", worker, (unsigned)id);
            return;
        }
        c->views[(int64_t)worker * workers + id] = 1;
        if (!c->dead[id] && server->clocks[id] != PLAIT_LEFT) pli_server_lose(server, now_ns, (int32_t)id);
    }
    if (msg->head.clock >= pli_copies_prepared(server)) c->ended[worker] = msg->head.seq;
    link_at_end(&c->redo[worker], c->redo[workers + worker]);
    c->redo[workers + worker] = NULL;
    pli_server_look_again(server, now_ns, out);
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const pli_copies *c, const pli_msg *barrier) {
    uint64_t number = c->met + 1;
    if (barrier->head.body_bytes >= sizeof number) memcpy(&number, pli_msg_body(barrier), sizeof number);
    return number;
}

static pli_msg *barrier_answer(const pli_server *server) {
    const pli_msg *gathered = server->copies->gathered;
    if (gathered != NULL) return pli_msg_of_slab(gathered->body, gathered->offset, gathered->head.body_bytes);
    pli_msg *answer = pli_msg_new(sizeof server->dropped);
    if (answer != NULL) memcpy(pli_msg_body(answer), &server->dropped, sizeof server->dropped);
    return answer;
}

/* What each has brought who is at the barrier. */
static pli_msg *gather(const pli_server *server) {
    const size_t workers = (size_t)server->layout.workers;
    uint64_t     bytes = workers * sizeof(uint64_t), own = sizeof(uint64_t);
    for (size_t w = 0; w < workers; w++)
        if (server->peer[w].barrier != NULL) bytes += pli_pad8(server->peer[w].barrier->head.body_bytes - own);
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    uint64_t      *brought = pli_msg_body(msg);
    unsigned char *at = (unsigned char *)(brought + workers);
    memset(brought, 0, bytes);
    for (size_t w = 0; w < workers; w++) {
        pli_msg *barrier = server->peer[w].barrier;
        brought[w] = barrier == NULL ? PLI_GONE : barrier->head.body_bytes - own;
        if (barrier == NULL || brought[w] == 0) continue;
        memcpy(at, pli_at_const(pli_msg_body(barrier), (int64_t)own), brought[w]);
        at += pli_pad8(brought[w]);
    }
    return msg;
}

/* Everybody is there: with the same in mind? */
static bool gathers(const pli_server *server, bool *gathers_out, pli_out *out) {
    int32_t first = -1;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        const pli_msg *barrier = server->peer[w].barrier;
        if (barrier == NULL) continue;
        if (first < 0) first = w;
        if (barrier->head.kind == server->peer[first].barrier->head.kind) continue;
        pli_out_fail(out, PLAIT_EMISMATCH, "rank %d is at a barrier of tables, rank %d in a collective",
                     barrier->head.kind == PLI_GATHER ? first : w, barrier->head.kind == PLI_GATHER ? w : first);
        return false;
    }
    *gathers_out = server->peer[first].barrier->head.kind == PLI_GATHER;
    return true;
}

void pli_copies_meet(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_copies *c = server->copies;
    int32_t     waiting = 0;
    bool        all = true;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        if (peer->barrier != NULL && number_of(c, peer->barrier) <= c->met) {
            pli_server_reply(server, now_ns, peer->barrier, barrier_answer(server), out);
            pli_msg_free(&peer->barrier);
        }
        waiting += peer->barrier != NULL;
        all = all && (peer->barrier != NULL || peer->gone);
    }
    bool brings = false;
    if (!all || waiting == 0 || !pli_copies_reach(server, INT64_MAX, out) || !gathers(server, &brings, out)) return;
    pli_entry *entry = entry_of(-1, 0);
    pli_msg   *msg = brings ? gather(server) : pli_msg_new(0);
    pli_msg_free(&c->gathered);
    if (brings && msg != NULL) c->gathered = pli_msg_of_slab(msg->body, msg->offset, msg->head.body_bytes);
    if (brings && c->gathered == NULL) pli_msg_free(&msg);
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        if (peer->barrier == NULL) continue;
        c->met = number_of(c, peer->barrier);
        if (entry != NULL && !add_answer(entry, peer->barrier, barrier_answer(server))) {
            free_entry(entry);
            entry = NULL;
        }
        pli_msg_free(&peer->barrier);
    }
    if (msg != NULL) {
        msg->head.kind = PLI_MET;
        msg->head.clock = (int64_t)c->met;
    }
    append(server, now_ns, msg, entry, out);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* The other copy hears of it first, so that whoever is left answers who has not been answered. */
void pli_copies_end(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_copies *c = server->copies;
    if (!c->serves || (server->present > 0 && !c->over)) return;
    pli_entry *entry = c->over ? NULL : entry_of(-1, 0);
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        if (peer->bye == NULL) continue;
        if (c->over) {
            pli_server_reply(server, now_ns, peer->bye, pli_msg_new(0), out);
        } else if (entry != NULL && !add_answer(entry, peer->bye, pli_msg_new(0))) {
            free_entry(entry);
            entry = NULL;
        }
        pli_msg_free(&peer->bye);
    }
    if (c->over) return;
    c->over = true;
    pli_msg *msg = pli_msg_new(0);
    if (msg != NULL) msg->head.kind = PLI_END;
    if (entry != NULL) entry->ends = true;
    append(server, now_ns, msg, entry, out);
}

/* --- who does not serve ------------------------------------------------------------------------------------------- */

static bool is_sum(const pli_server *server, const pli_msg *msg, plait_error *err) {
    pli_push_part     part;
    pli_server_table *table;
    uint64_t          parts = msg->head.arg32, bytes = msg->head.body_bytes;
    if (parts > bytes / sizeof(pli_wire_part) || msg->offset % 8 != 0 ||
        sum_bytes(parts, (uint64_t)server->layout.workers) > bytes)
        return pli_fail(err, PLAIT_EFORMAT, "a sum is cut short"), false;
    for (uint32_t i = 0; i < parts; i++)
        if (pli_server_part(server, msg, i, &part, &table, err) < 0 || pli_shard_check(&table->shard, &part, err) < 0)
            return false;
    const uint64_t workers = (uint64_t)server->layout.workers;
    const sum_body b = sum_layout(pli_msg_body(msg), parts, workers);
    if (*b.n_listed > (bytes - sum_bytes(parts, workers)) / sizeof *b.listed)
        return pli_fail(err, PLAIT_EFORMAT, "a sum is cut short"), false;
    for (uint64_t i = 0; i < *b.n_listed; i++)
        if (b.listed[i].worker >= workers || pli_server_table_of(server, b.listed[i].table) == NULL)
            return pli_fail(err, PLAIT_EFORMAT, "a sum of what nobody has pushed"), false;
    return msg->head.clock == pli_copies_prepared(server) ||
           (pli_fail(err, PLAIT_EFORMAT, "a sum of clock %lld, clock %lld was due", (long long)msg->head.clock,
                     (long long)pli_copies_prepared(server)), false);
}

/* true: kept */
static bool take_sum(pli_server *server, pli_msg *msg, pli_out *out) {
    pli_copies *c = server->copies;
    plait_error why = { 0 };
    int32_t     workers = server->layout.workers;
    if (!is_sum(server, msg, &why)) {
        pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
        return false;
    }
    if (c->sum != NULL && !apply_sum(server, out)) return false;
    c->sum = msg;
    sum_body b = sum_layout(pli_msg_body(msg), msg->head.arg32, (uint64_t)workers);
    for (int32_t v = 0; v < workers; v++) {
        c->logged[v] = b.gone[v];
        if (b.gone[v] == PLI_LOG_DEAD && !c->dead[v]) pli_copies_bury(server, v);
        if (b.gone[v] == PLI_LOG_LEFT && server->clocks[v] != PLAIT_LEFT) pli_server_move_clock(server, v, PLAIT_LEFT);
        for (int32_t w = 0; b.gone[v] == PLI_LOG_DEAD && w < workers; w++) c->views[(int64_t)w * workers + v] = 1;
        if (b.ended[v] == 0) continue;
        if (b.ended[v] >= server->peer[v].rx.expected) server->peer[v].rx.expected = b.ended[v] + 1;
        server->peer[v].ended = msg->head.clock + 1;
        c->ended[v] = b.ended[v];
        if (server->clocks[v] != PLAIT_LEFT) pli_server_move_clock(server, v, msg->head.clock + 1);
    }
    return true;
}

/* A worker's message, as who serves has acted upon it. Nothing is answered. */
static void take_message(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    uint64_t worker = msg->head.arg64 >> SEQ_BITS, seq = msg->head.arg64 & ((UINT64_C(1) << SEQ_BITS) - 1);
    pli_out  quiet;
    if (worker >= (uint64_t)server->layout.workers) {
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: there is no worker %llu", msg->head.src,
                     (unsigned long long)worker);
        pli_msg_free(&msg);
        return;
    }
    msg->head.src = (int32_t)worker;
    msg->head.seq = seq;
    msg->head.flags &= (uint16_t)~PLI_FLAG_LOG;
    if (seq >= server->peer[worker].rx.expected) server->peer[worker].rx.expected = seq + 1;
    pli_out_init(&quiet);
    pli_server_act(server, now_ns, msg, &quiet);
    for (int kind = 0; kind < PLI_WORK_KINDS; kind++) out->work[kind] += quiet.work[kind];
    if (quiet.error.code < 0 && out->error.code >= 0) out->error = quiet.error;
    pli_out_drop(&quiet);
}

/* Of what a new copy begins with. */
static void hear(pli_server *server, pli_msg *msg, pli_out *out) {
    pli_copies *c = server->copies;
    plait_error why = { 0 };
    pli_out_work(out, PLI_WORK_VALUES, msg->head.body_bytes / 8);
    if (msg->head.kind == PLI_SUM_ENTRY && c->sum == NULL) {
        c->sum = msg; /* until the rest is here */
        return;
    }
    pli_msg *sum = c->sum;
    c->sum = NULL;
    if (pli_copies_hear(server, msg, &why) < 0) {
        pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
        pli_msg_free(&sum);
    } else if (!c->whole) {
        c->sum = sum;
    } else {
        pli_raise_copied(server, c->other, c->other_place);
        if (sum != NULL && !take_sum(server, sum, out)) pli_msg_free(&sum);
    }
    pli_msg_free(&msg);
}

static void take_entry(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    msg->next = NULL;
    if (!server->copies->whole) {
        hear(server, msg, out);
        return;
    }
    switch (msg->head.kind) {
    case PLI_SUM_ENTRY:
        if (take_sum(server, msg, out)) return;
        break;
    case PLI_MET:
        server->copies->met = (uint64_t)msg->head.clock;
        (void)pli_copies_reach(server, INT64_MAX, out);
        pli_msg_free(&server->copies->gathered);
        if (msg->head.body_bytes == 0) break;
        server->copies->gathered = msg;
        return;
    case PLI_END:
        server->copies->over = true;
        (void)pli_copies_reach(server, INT64_MAX, out);
        pli_server_end(server, out);
        break;
    case PLI_SNAP:
        if (msg->head.body_bytes == sizeof(pli_wire_taken)) {
            (void)pli_server_snap(server, now_ns, msg, out);
            break;
        }
        take_message(server, now_ns, msg, out);
        return;
    case PLI_CREATE:
    case PLI_RESTORE:
    case PLI_PUSH:
    case PLI_CLOCK: take_message(server, now_ns, msg, out); return;
    default:
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: an entry of unknown kind %u", msg->head.src,
                     (unsigned)msg->head.kind);
    }
    pli_msg_free(&msg);
}

static void take_log(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_copies *c = server->copies;
    switch (pli_rx_take(&c->rx, &msg)) {
    case PLI_RX_TAKE:
        for (; msg != NULL; msg = pli_rx_next(&c->rx)) take_entry(server, now_ns, msg, out);
        break;
    case PLI_RX_DUPLICATE: pli_msg_free(&msg); break;
    case PLI_RX_OLD: pli_msg_free(&msg); return;
    case PLI_RX_EARLY: return;
    }
    if (out->error.code < 0) return;
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to confirm the log of rank %d", c->other);
        return;
    }
    ack->head.kind = PLI_LOGGED;
    address_to_other(server, ack);
    ack->head.arg64 = c->rx.expected - 1;
    pli_out_send(out, ack);
}

/* A log begins to come: from the copy that serves, which makes this one anew. */
static void adopt(pli_server *server, const pli_msg *msg, pli_out *out) {
    pli_copies   *c = server->copies;
    const int32_t place = pli_copy_place(&server->layout, server->number, msg->head.src);
    if (place > c->place || c->place == 1 || c->rx.expected > 1) {
        pli_out_fail(out, PLAIT_EPEER,
                     "ranks %d and %d, which hold the same shards, take each other for dead: the link between them is "
                     "cut",
                     pli_copy_rank(&server->layout, server->number, c->other_place), msg->head.src);
        return;
    }
    pli_rx_destroy(&c->rx); /* what came of another's log ahead of its first entry */
    pli_rx_init(&c->rx);
    c->other = msg->head.src;
    c->other_place = place;
}

/* Of a place before the one that the log came from so far, too: who is there came to serve since it is dead. */
static bool is_dead(const pli_server *server, int32_t rank) {
    const pli_copies *c = server->copies;
    const int32_t     place = pli_copy_place(&server->layout, server->number, rank);
    return place < 0 || (c->died & UINT64_C(1) << place) != 0 || ((c->rx.expected > 1 || c->rx.stash != NULL) && place < c->other_place);
}

static void take_from_copy(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_copies *c = server->copies;
    if (c->serves && msg->head.src == c->other && msg->head.kind == PLI_LOGGED && msg->head.arg64 < c->tx.next) {
        pli_tx_acked(&c->tx, msg->head.arg64);
        release_to(server, now_ns, msg->head.arg64, out);
    }
    if (!c->serves && !is_dead(server, msg->head.src) && msg->head.kind != PLI_LOGGED && msg->head.seq > 0) {
        if (msg->head.src != c->other) adopt(server, msg, out);
        if (out->error.code >= 0) {
            take_log(server, now_ns, msg, out);
            return;
        }
    }
    pli_msg_free(&msg); /* or of one who has died */
}

static void tell_none(pli_server *server, const pli_msg *msg, pli_out *out) {
    pli_server_tell(server, msg->head.src, PLI_NONE, 0, out);
}

bool pli_copies_take(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_copies *c = server->copies;
    if (msg->head.flags & PLI_FLAG_LOG) {
        take_from_copy(server, now_ns, msg, out);
        return true;
    }
    if (c->serves) return false;
    if (msg->head.src < 0 || msg->head.src >= server->layout.workers || (msg->head.seq == 0 && !c->empty)) {
        pli_msg_free(&msg);
        return true;
    }
    if (c->empty) {
        tell_none(server, msg, out);
        pli_msg_free(&msg);
        return true;
    }
    msg->next = NULL;
    *c->early_last = msg;
    c->early_last = &msg->next;
    return true;
}

bool pli_copies_serves_again(const pli_server *server, const pli_msg *msg) {
    if (msg->head.seq >= server->copies->again[msg->head.src] || (msg->head.flags & PLI_FLAG_FILTERED)) return false;
    switch (msg->head.kind) {
    case PLI_PULL:
    case PLI_CREATE:
    case PLI_SNAP:
    case PLI_PIECE: return true;
    default: return false; /* while such a one was open, the worker has sent nothing that the log has */
    }
}

/* It is applied, and more may have been added to its rows since. */
bool pli_copies_was_restored(const pli_server *server, const pli_msg *msg) {
    return msg->head.kind == PLI_RESTORE && msg->head.seq < server->copies->again[msg->head.src];
}

/* --- deaths ------------------------------------------------------------------------------------------------------- */

static void append_all(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    append(server, now_ns, msg, entry_of(-1, 0), out);
}

/* The other copy is no more: one is made at the next place that lives. What is not confirmed waits for it. false: there
 * is no such place. */
static bool make_copy(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_copies   *c = server->copies;
    const int32_t places = pli_copy_places(&server->layout);
    int32_t       place = (c->other_place > c->place ? c->other_place : c->place) + 1;
    while (place < places && ((c->died | c->left) & UINT64_C(1) << place) != 0) place++;
    if (place >= places || c->over || c->left != 0) return false;
    c->other_place = place;
    c->other = pli_copy_rank(&server->layout, server->number, place);
    pli_tx_destroy(&c->tx);
    pli_tx_init(&c->tx, server->layout.resend_after_ns);
    pli_raise_handed(server, c->other, place);
    pli_server_keep_events(server);
    pli_entry *waiting = c->first;
    c->first = NULL;
    c->last = &c->first;
    pli_copies_tell_all(server, now_ns, append_all, out);
    while (waiting != NULL) {
        pli_entry *entry = waiting;
        waiting = entry->next;
        entry->next = NULL;
        entry->number = c->tx.next - 1;
        *c->last = entry;
        c->last = &entry->next;
    }
    return true;
}

/* What the log has of all workers becomes safe with its last entry. */
static void await_all(pli_server *server, pli_out *out) {
    pli_copies  *c = server->copies;
    const size_t bytes = (size_t)server->layout.workers * sizeof *c->in_log;
    pli_entry   *entry = entry_of(-1, 0);
    if (entry != NULL) entry->all = pli_array(bytes, 1);
    if (entry == NULL || entry->all == NULL) {
        if (entry != NULL) free_entry(entry);
        pli_out_fail(out, PLAIT_ENOMEM, "no memory for the log of the shards of rank %d", server->home);
        return;
    }
    memcpy(entry->all, c->in_log, bytes);
    entry->number = c->tx.next - 1;
    *c->last = entry;
    c->last = &entry->next;
}

/* The other copy is no more; this one serves from now on. */
static void take_over(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_copies *c = server->copies;
    pli_msg    *early = c->early;
    c->serves = true;
    pli_raise_serve(server);
    pli_rx_destroy(&c->rx);
    pli_rx_init(&c->rx);
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        pli_tx_destroy(&peer->tx); /* whatever it would have said as a shadow */
        pli_tx_init(&peer->tx, server->layout.resend_after_ns);
        c->again[w] = peer->rx.expected;
        c->in_log[w] = peer->rx.expected - 1;
    }
    if (make_copy(server, now_ns, out))
        await_all(server, out);
    else
        memcpy(c->safe, c->in_log, (size_t)server->layout.workers * sizeof *c->safe);
    for (int64_t i = 0; i < c->n_events; i++) pli_server_ops.on_member(server, now_ns, &c->events[i], out);
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (!server->peer[w].gone) pli_server_tell(server, w, PLI_SAFE, (int64_t)c->safe[w], out);
    c->early = NULL;
    c->early_last = &c->early;
    while (early != NULL) {
        pli_msg *msg = early;
        early = msg->next;
        msg->next = NULL;
        pli_server_ops.on_message(server, now_ns, msg, out);
    }
    pli_server_look_again(server, now_ns, out);
}

/* Nobody can make this copy whole any more. */
static void remain_empty(pli_server *server, pli_out *out) {
    pli_copies *c = server->copies;
    c->empty = true;
    for (const pli_msg *msg = c->early; msg != NULL; msg = msg->next) tell_none(server, msg, out);
    pli_msg_free_list(&c->early);
    c->early_last = &c->early;
    pli_server_end(server, out);
}

/* A place before this one's has gone: does it serve now? */
static void look_up(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_copies    *c = server->copies;
    const uint64_t before = (UINT64_C(1) << c->place) - 1;
    if (c->other >= 0 || c->empty || (before & ~(c->died | c->left)) != 0) return;
    if (c->whole)
        take_over(server, now_ns, out);
    else
        remain_empty(server, out);
}

static void lose_other(pli_server *server, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_copies *c = server->copies;
    c->other = -1;
    if (!c->serves) return;
    c->abandoned = event->kind == PLI_MEMBER_LEFT && c->first != NULL && !c->over;
    pli_tx_acked(&c->tx, c->tx.next - 1);
    if (c->abandoned) return;
    if (!make_copy(server, now_ns, out)) release_to(server, now_ns, UINT64_MAX, out);
}

bool pli_copies_member(pli_server *server, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_copies   *c = server->copies;
    const bool    gone = event->kind != PLI_MEMBER_JOINED;
    const int32_t place = pli_copy_place(&server->layout, server->number, event->rank);
    if (!c->serves && gone && event->rank >= 0 && event->rank < server->layout.workers) {
        if (!pli_grow((void **)&c->events, &c->events_capacity, c->n_events + 1, sizeof *c->events)) {
            pli_out_fail(out, PLAIT_ENOMEM, "no memory to remember who has gone");
            return true;
        }
        c->events[c->n_events++] = *event;
    }
    if (!gone || place < 0) return !c->serves;
    *(event->kind == PLI_MEMBER_DIED ? &c->died : &c->left) |= UINT64_C(1) << place;
    const bool served = c->serves;
    if (event->rank == c->other && !served && event->kind == PLI_MEMBER_LEFT) {
        pli_server_end(server, out); /* all workers had said good-bye */
        return true;
    }
    if (event->rank == c->other) lose_other(server, now_ns, event, out);
    if (!c->serves) look_up(server, now_ns, out);
    return !served;
}

void pli_copies_wakeup(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_tx_wakeup(&server->copies->tx, now_ns, out);
}
