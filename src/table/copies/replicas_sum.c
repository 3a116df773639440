/* Clocks of shards that have two replicas: a clock's pushes become one SUM, which goes into the log and is applied when
 * it is known to be prepared everywhere. If a worker died in the clock, the others do its part. replicas.h has the
 * idea. */
#include "table/copies/replicas.h"

#include <string.h>

#include "table/events.h"
#include "table/state/values.h"

/* --- clocks ------------------------------------------------------------------------------------------------------- */

void pli_replicas_ended(pli_server *server, const pli_msg *msg) {
    pli_replicas *c = server->replicas;
    if (c == NULL) return;
    c->ended[msg->head.src] = msg->head.seq;
    c->roster.leaves[msg->head.src] = (msg->head.flags & PLI_FLAG_LEAVES) != 0;
    c->roster.shut = (msg->head.flags & PLI_FLAG_SHUT) != 0;
    c->ahead[msg->head.src] = (msg->head.flags & PLI_FLAG_AHEAD) != 0;
}

/* What a SUM has behind its parts ... */
typedef struct sum_body {
    uint64_t      *ended;   /* [workers]                                              */
    uint64_t      *version; /* [parts]                                                */
    unsigned char   *gone;    /* [workers] PLI_LOG_HERE ..                     */
    unsigned char   *life;    /* [workers] of the rank; padded to 8, with gone */
    uint64_t        *n_listed;
    pli_wire_summed *listed; /* [*n_listed] */
} sum_body;

static uint64_t sum_bytes(uint64_t parts, uint64_t workers) { /* without the list and the parts' data */
    return parts * sizeof(pli_wire_part) + 8 * workers + 8 * parts + pli_pad8(2 * workers) + 8;
}

static sum_body sum_layout(unsigned char *body, uint64_t parts, uint64_t workers) {
    uint64_t      *ended = (uint64_t *)(body + parts * sizeof(pli_wire_part));
    unsigned char *gone = (unsigned char *)(ended + workers + parts);
    uint64_t      *n_listed = (uint64_t *)(gone + pli_pad8(2 * workers));
    return (sum_body){ .ended = ended,
                       .version = ended + workers,
                       .gone = gone,
                       .life = gone + workers,
                       .n_listed = n_listed,
                       .listed = (pli_wire_summed *)(n_listed + 1) };
}

pli_summed pli_replicas_summed(const pli_server *server, const pli_msg *sum) {
    const sum_body b = sum_layout(pli_msg_body(sum), sum->head.arg32, (uint64_t)server->layout.workers);
    return (pli_summed){ .ended = b.ended, .version = b.version, .gone = b.gone };
}

void pli_replicas_list(const pli_server *server, const pli_msg *msg, pli_server_table *table) {
    pli_replicas *c = server->replicas;
    table->state++;
    if (server->sink == NULL) return;
    if (!pli_grow((void **)&c->listed, &c->listed_capacity, c->n_listed + 1, sizeof *c->listed))
        c->unlisted = true;
    else
        c->listed[c->n_listed++] = (pli_wire_summed){ .table = (uint32_t)table->shard.spec.id,
                                                      .worker = (uint32_t)msg->head.src,
                                                      .seq = msg->head.seq };
}

/* Tells the event log of the clock that is prepared: what is read of it may have been worked out ahead. The tables have
 * its versions once it is applied. */
static void raise_sum(const pli_server *server) {
    const pli_msg *sum = server->replicas->sum;
    const sum_body b = sum_layout(pli_msg_body(sum), sum->head.arg32, (uint64_t)server->layout.workers);
    if (server->sink == NULL) return;
    for (uint64_t i = 0; i < *b.n_listed; i++)
        pli_raise_summed(server, server->table[b.listed[i].table], (int32_t)b.listed[i].worker, b.listed[i].seq,
                         server->applied);
    for (uint64_t i = 0; i < *b.n_listed; i++) server->table[b.listed[i].table]->state--;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        /* The clock of one that is away is empty. One that was let in, and died, may seem to be away here. */
        const bool empty = server->replicas->roster.away[w] && (b.gone[w] & ~PLI_LOG_AHEAD) != PLI_LOG_DEAD;
        if (b.ended[w] > 0 || empty)
            pli_raise_summed_tick(server, w, b.ended[w] > 0 ? b.ended[w] : pli_seq_before(b.life[w]), server->applied);
    }
}

static bool apply_sum(pli_server *server, pli_out *out) {
    pli_replicas      *c = server->replicas;
    plait_error      why = { 0 };
    pli_decoded_part d;
    sum_body         b = sum_layout(pli_msg_body(c->sum), c->sum->head.arg32, (uint64_t)server->layout.workers);
    for (uint32_t i = 0; i < c->sum->head.arg32; i++) {
        plait_status status = pli_server_part(server, c->sum, i, &d, &why);
        if (status >= 0) {
            pli_out_work(out, PLI_WORK_VALUES, (uint64_t)(d.part.n * d.table->shard.spec.cols));
            status = pli_shard_apply_clock(&d.table->shard, server->applied, 1, &d.part, &why);
        }
        if (status < 0) {
            pli_out_fail(out, why.code, "%s", why.text);
            return false;
        }
    }
    for (uint32_t i = 0; i < c->sum->head.arg32; i++)
        if (pli_server_part(server, c->sum, i, &d, &why) >= 0) d.table->state = b.version[i];
    pli_msg_free(&c->sum);
    server->applied++;
    return true;
}

bool pli_replicas_reach(pli_server *server, int64_t clock, pli_out *out) {
    if (server->replicas == NULL || server->replicas->sum == NULL || clock <= server->applied) return true;
    return apply_sum(server, out);
}

/* Has every remaining worker stood in for all that died? */
static bool are_replaced(const pli_server *server) {
    const pli_replicas *c = server->replicas;
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

/* Sums what all workers have pushed to each table in the clock. *n_out tables were touched. */
static plait_status sum_tables(pli_server *server, int64_t clock, table_sum *sums, int64_t *n_out, pli_out *out,
                               plait_error *err) {
    const pli_replicas *c = server->replicas;
    int64_t           most = server->layout.workers, n = 0;
    for (int32_t w = 0; w < server->layout.workers; w++)
        for (const pli_waiting_push *push = c->redo[w]; push != NULL; push = push->next) most++;
    pli_push_part *parts = pli_array((size_t)most, sizeof *parts);
    int32_t       *whose = pli_array((size_t)most, sizeof *whose);
    plait_status   status = PLAIT_OK;
    if (parts == NULL || whose == NULL || !pli_same_begin(server, clock))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory to add up a clock");
    for (int64_t i = 0; status >= 0 && i < server->tables; i++) {
        pli_server_table *table = server->table[i];
        if (table == NULL || !table->at_clock) continue;
        uint64_t before = table->state;
        int32_t  m = pli_server_parts_of(server, c->redo, table, clock, parts, whose);
        for (int32_t k = 0; k < m; k++)
            pli_out_work(out, PLI_WORK_SUMS, (uint64_t)(parts[k].n * table->shard.spec.cols));
        for (int32_t k = 0; k < m; k++) pli_same_pushed(server, i, whose[k], &parts[k]);
        sums[n] = (table_sum){ .table = table, .version = table->state };
        table->state = before; /* until the sum is applied */
        status = pli_shard_sum_clock(&table->shard, m, parts, &sums[n].part, err);
        n += sums[n].part.touched;
    }
    for (int32_t w = 0; status >= 0 && w < server->layout.workers; w++)
        for (const pli_waiting_push *p = c->redo[server->layout.workers + w]; p != NULL; p = p->next)
            pli_same_redone(server, p);
    pli_free(parts);
    pli_free(whose);
    *n_out = n;
    return status;
}

static uint64_t data_bytes(const table_sum *sum) {
    return (sum->part.keyed ? (uint64_t)sum->part.n * 8 : 0) +
           pli_pad8((uint64_t)(sum->part.n * pli_sum_row_bytes(&sum->table->shard.spec)));
}

/* What the SUM of the clock says of a worker. */
static uint8_t state_after(const pli_server *server, int32_t worker, int64_t clock) {
    const pli_replicas *c = server->replicas;
    const bool over = c->logged[worker] == PLI_LOG_DEAD && pli_roster_has_returned(server, worker);
    if (over) return PLI_LOG_AWAY;
    if (c->dead[worker]) return PLI_LOG_DEAD;
    if (pli_roster_is_away_after(server, worker, clock)) return PLI_LOG_AWAY;
    return server->clocks[worker] == PLAIT_LEFT && !c->roster.away[worker] ? PLI_LOG_LEFT : PLI_LOG_HERE;
}

static pli_msg *make_sum(const pli_server *server, int64_t clock, const table_sum *sums, int64_t n) {
    const pli_replicas *c = server->replicas;
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
        b.gone[w] = c->logged[w] = state_after(server, (int32_t)w, clock);
    memcpy(b.life, c->roster.life, workers);
    for (uint64_t w = 0; w < workers; w++) b.gone[w] |= b.ended[w] > 0 && c->ahead[w] ? PLI_LOG_AHEAD : 0;
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
    for (int32_t i = 0; i < 2 * server->layout.workers; i++) pli_waiting_free_list(&server->replicas->redo[i]);
}

/* From the next clock on those take part who the SUM says do. */
static void follow_roster(pli_server *server, const pli_msg *sum) {
    const sum_body b = sum_layout(pli_msg_body(sum), sum->head.arg32, (uint64_t)server->layout.workers);
    for (int32_t w = 0; w < server->layout.workers; w++) {
        const uint8_t state = b.gone[w] & (uint8_t)~PLI_LOG_AHEAD;
        const bool    away = server->replicas->roster.away[w] != 0;
        if (state != PLI_LOG_DEAD) pli_roster_return(server, w, b.life[w]);
        /* One that was let in and leaves at once: a replica that was made in between does not know that it was in. */
        if (state == PLI_LOG_DEAD && away) pli_roster_was_in(server, w);
        if (state == PLI_LOG_AWAY && (!away || b.ended[w] > 0)) pli_roster_retire(server, w);
        if (state != PLI_LOG_HERE || (!away && b.ended[w] > 0)) continue;
        if (server->layout.backup > 0) continue; /* it is late; nobody comes or goes */
        pli_roster_admit(server, w, sum->head.clock + (b.ended[w] == 0)); /* else it has been in this clock */
    }
}

/* Makes the SUM of the clock's pushes. */
static bool prepare(pli_server *server, uint64_t now_ns, int64_t clock, pli_out *out) {
    pli_replicas  *c = server->replicas;
    size_t       workers = (size_t)server->layout.workers;
    plait_error  why = { .code = PLAIT_ENOMEM, .text = "no memory to add up a clock" };
    int64_t      n = 0;
    table_sum   *sums = pli_array((size_t)server->tables + 1, sizeof *sums);
    pli_entry   *entry = pli_entry_of(-1, 0);
    pli_msg     *msg = NULL;
    c->n_listed = 0;
    plait_status status = sums == NULL ? PLAIT_ENOMEM : sum_tables(server, clock, sums, &n, out, &why);
    if (status >= 0 && !c->unlisted) msg = make_sum(server, clock, sums, n);
    if (entry != NULL) entry->all = pli_array(workers, sizeof *entry->all);
    if (msg != NULL) c->sum = pli_msg_copy(msg);
    pli_free(sums);
    if (c->sum == NULL || entry == NULL || entry->all == NULL) {
        pli_msg_free(&msg);
        if (entry != NULL) pli_entry_free(entry);
        pli_out_fail(out, why.code, "%s", why.text);
        return false;
    }
    memcpy(entry->all, sum_layout(pli_msg_body(msg), (uint64_t)n, workers).ended, workers * sizeof *entry->all);
    raise_sum(server);
    follow_roster(server, c->sum);
    pli_server_forget_clock(server, clock);
    drop_redo(server);
    pli_replicas_append(server, now_ns, msg, entry, out);
    return out->error.code >= 0;
}

bool pli_replicas_prepare(pli_server *server, uint64_t now_ns, int64_t target, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (!pli_server_has_clocks(server)) {
        server->applied = target > server->applied ? target : server->applied;
        return true;
    }
    while (c->serves && pli_replicas_prepared(server) < target && are_replaced(server)) {
        if (c->sum != NULL && !apply_sum(server, out)) return false; /* all have ended a later clock */
        if (!prepare(server, now_ns, server->applied, out)) return false;
    }
    return server->slowest != PLAIT_LEFT || pli_replicas_reach(server, INT64_MAX, out);
}

/* --- who stands in for the dead ----------------------------------------------------------------------------------- */

void pli_replicas_bury(pli_server *server, int32_t worker) {
    pli_replicas *c = server->replicas;
    c->deaths += c->dead[worker] == 0;
    c->dead[worker] = 1;
    c->roster.fell[worker] = c->roster.life[worker];
    pli_server_forget_from(&server->peer[worker], pli_replicas_prepared(server));
    pli_waiting_free_list(&c->redo[worker]);
    pli_waiting_free_list(&c->redo[server->layout.workers + worker]);
}

static void link_at_end(pli_waiting_push **list, pli_waiting_push *push) {
    while (*list != NULL) list = &(*list)->next;
    *list = push;
}

/* The parts of a push in a dead one's stead that wait for the clock's end: all of them if there are replicas. NULL: out
 * of memory, or malformed. */
static pli_waiting_push *decode_redo(pli_server *server, pli_msg *msg, plait_error *err) {
    int64_t n = 0;
    if (pli_server_decode(server, msg, err) < 0) return NULL;
    for (uint32_t i = 0; i < msg->head.arg32; i++)
        if (server->decoded[i].table->at_clock) server->decoded[n++] = server->decoded[i];
    pli_waiting_push *push = pli_waiting_new(msg, n, server->decoded);
    if (push == NULL) pli_fail(err, PLAIT_ENOMEM, "no memory to keep it");
    return push;
}

bool pli_replicas_redo(pli_server *server, pli_msg *msg, pli_out *out) {
    pli_replicas     *c = server->replicas;
    int32_t         worker = msg->head.src;
    const pli_peer *peer = &server->peer[worker];
    plait_error     why = { 0 };
    pli_waiting_push *push;
    if (c != NULL && msg->head.clock < pli_replicas_prepared(server)) { /* also from a worker that has left since */
        push = decode_redo(server, msg, &why);
        if (push != NULL) pli_same_redone(server, push);
        else if (why.code == PLAIT_ENOMEM) pli_out_fail(out, why.code, "push of rank %d: %s", worker, why.text);
        pli_free(push);
        return false;
    }
    if (c == NULL || msg->head.clock != peer->ended - 1 || server->clocks[worker] == PLAIT_LEFT) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d stands in for another in clock %lld, it is in clock %lld", worker,
                     (long long)msg->head.clock, (long long)peer->ended);
        return false;
    }
    push = decode_redo(server, msg, &why);
    if (push == NULL) {
        pli_out_fail(out, why.code, "push of rank %d: %s", worker, why.text);
        return false;
    }
    link_at_end(&c->redo[server->layout.workers + worker], push);
    return true;
}

/* Gives the worker's redone pushes the number of the highest rank in whose stead they are. (A worker tells of an
 * earlier clock again when another replica serves: its pushes of this clock are for others.) */
static void take_redone(pli_replicas *c, int32_t worker, int32_t workers, int64_t clock, int32_t highest) {
    pli_waiting_push *first = c->redo[workers + worker];
    if (first == NULL || first->msg->head.clock > clock) return;
    for (pli_waiting_push *push = first; push != NULL; push = push->next) push->stead = highest;
    link_at_end(&c->redo[worker], first);
    c->redo[workers + worker] = NULL;
}

void pli_replicas_view(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    int32_t     worker = msg->head.src, workers = server->layout.workers, highest = 0;
    uint64_t    n = msg->head.body_bytes / sizeof(uint32_t);
    uint32_t    id;
    if (c == NULL || n * sizeof id != msg->head.body_bytes) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d reports that it stands in, but not for whom", worker);
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&id, pli_at_const(pli_msg_body(msg), (int64_t)(i * sizeof id)), sizeof id);
        if (id >= (uint32_t)workers || id == (uint32_t)worker) {
            pli_out_fail(out, PLAIT_EFORMAT, "rank %d stands in for rank %u", worker, (unsigned)id);
            return;
        }
        c->views[(int64_t)worker * workers + id] = 1;
        highest = (int32_t)id > highest ? (int32_t)id : highest;
        if (!c->dead[id] && server->clocks[id] != PLAIT_LEFT) pli_server_lose(server, now_ns, (int32_t)id);
    }
    if (msg->head.clock >= pli_replicas_prepared(server)) c->ended[worker] = msg->head.seq;
    take_redone(c, worker, workers, msg->head.clock, highest);
    pli_same_viewed(server, worker, msg->head.clock, out);
    pli_server_look_again(server, now_ns, out);
}

/* --- a SUM of the log --------------------------------------------------------------------------------------------- */

static bool is_sum(const pli_server *server, const pli_msg *msg, plait_error *err) {
    pli_decoded_part d;
    uint64_t         parts = msg->head.arg32, bytes = msg->head.body_bytes;
    if (parts > bytes / sizeof(pli_wire_part) || msg->offset % 8 != 0 ||
        sum_bytes(parts, (uint64_t)server->layout.workers) > bytes)
        return pli_fail(err, PLAIT_EFORMAT, "a sum is cut short"), false;
    for (uint32_t i = 0; i < parts; i++)
        if (pli_server_part(server, msg, i, &d, err) < 0 || pli_shard_check(&d.table->shard, &d.part, err) < 0)
            return false;
    const uint64_t workers = (uint64_t)server->layout.workers;
    const sum_body b = sum_layout(pli_msg_body(msg), parts, workers);
    if (*b.n_listed > (bytes - sum_bytes(parts, workers)) / sizeof *b.listed)
        return pli_fail(err, PLAIT_EFORMAT, "a sum is cut short"), false;
    for (uint64_t i = 0; i < *b.n_listed; i++)
        if (b.listed[i].worker >= workers || pli_server_table_of(server, b.listed[i].table) == NULL)
            return pli_fail(err, PLAIT_EFORMAT, "a sum of updates that nobody has pushed"), false;
    return msg->head.clock == pli_replicas_prepared(server) ||
           (pli_fail(err, PLAIT_EFORMAT, "a sum of clock %lld, clock %lld was due", (long long)msg->head.clock,
                     (long long)pli_replicas_prepared(server)), false);
}

/* true: kept */
bool pli_replicas_take_sum(pli_server *server, pli_msg *msg, bool told, pli_out *out) {
    pli_replicas *c = server->replicas;
    plait_error why = { 0 };
    int32_t     workers = server->layout.workers;
    pli_roster_begin_at(server, msg->head.clock);
    if (!is_sum(server, msg, &why)) {
        pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
        return false;
    }
    if (c->sum != NULL && !apply_sum(server, out)) return false;
    c->sum = msg;
    if (!told) raise_sum(server);
    follow_roster(server, msg);
    sum_body b = sum_layout(pli_msg_body(msg), msg->head.arg32, (uint64_t)workers);
    for (int32_t v = 0; v < workers; v++) {
        const uint8_t gone = c->logged[v] = b.gone[v] & ~PLI_LOG_AHEAD;
        if (gone == PLI_LOG_DEAD && !c->dead[v]) pli_replicas_bury(server, v);
        if (gone == PLI_LOG_LEFT && server->clocks[v] != PLAIT_LEFT) pli_server_move_clock(server, v, PLAIT_LEFT);
        for (int32_t w = 0; gone == PLI_LOG_DEAD && w < workers; w++) c->views[(int64_t)w * workers + v] = 1;
        if (b.ended[v] == 0) continue;
        if (b.ended[v] >= server->peer[v].rx.expected) server->peer[v].rx.expected = b.ended[v] + 1;
        server->peer[v].ended = msg->head.clock + 1;
        c->ended[v] = b.ended[v];
        if (server->clocks[v] <= msg->head.clock) pli_server_move_clock(server, v, msg->head.clock + 1);
    }
    pli_server_forget_clock(server, msg->head.clock); /* what was logged one by one is in the sum */
    return true;
}
