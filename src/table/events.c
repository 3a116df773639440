/* See events.h. */
#include "table/events.h"

#include <string.h>

#include "table/copies/replicas.h"
#include "table/state/values.h"

/* --- of a rank ---------------------------------------------------------------------------------------------------- */

/* event: holds the rank, and whether it is a server. */
static void raise_job(const pli_event_sink *sink, pli_event event, const pli_layout *layout) {
    const pli_event_job job = { .workers = layout->workers,
                                .servers = layout->servers,
                                .first_server = layout->first_server,
                                .backup = layout->backup,
                                .replicas = layout->replicas > 1 ? layout->replicas : 1,
                                .spares = layout->spares,
                                .homes = layout->homes };
    event.kind = PLI_EVENT_JOB;
    event.table = -1;
    event.info.job = &job;
    pli_event_raise(sink, &event);
}

static void raise_table(const pli_event_sink *sink, pli_event event, const pli_spec *spec, pli_event_way way) {
    const pli_event_table table = { .name = spec->name, .topology = spec->topology.text,
                                    .consistency = spec->consistency, .rows = spec->rows, .cols = spec->cols,
                                    .way = way, .shards = way == PLI_WAY_SERVED ? spec->placement.shards : 0,
                                    .ruled = spec->ruled, .combine = spec->combine->name };
    event.kind = PLI_EVENT_TABLE;
    event.table = spec->id;
    event.info.table = &table;
    pli_event_raise(sink, &event);
}

static void keep(const pli_event_sink *sink, const pli_layout *layout, int32_t rank, int side) {
    if (sink != NULL && sink->keep != NULL && layout->replicas > 1) sink->keep(sink->user, NULL, rank, side);
}

void pli_raise(const pli_event_sink *sink, int32_t rank, bool server, pli_event_kind kind) {
    pli_event_raise(sink, &(pli_event){ .kind = kind, .server = server, .rank = rank, .table = -1 });
}

/* --- of a worker -------------------------------------------------------------------------------------------------- */

void pli_raise_job(const pli_event_sink *sink, int32_t rank, uint32_t life, const pli_layout *layout) {
    raise_job(sink, (pli_event){ .rank = rank, .life = (int32_t)life }, layout);
}

void pli_raise_table(const pli_event_sink *sink, int32_t rank, const pli_spec *spec, pli_event_way way) {
    raise_table(sink, (pli_event){ .rank = rank }, spec, way);
}

void pli_client_listen(pli_client *client, const pli_event_sink *sink) {
    client->sink = sink;
    if (sink != NULL) client->flags |= PLI_FLAG_STATE;
}

void pli_raise_inc(const pli_event_sink *sink, int32_t rank, const pli_spec *spec, int64_t n, const uint64_t *keys,
                   int64_t first, const void *delta) {
    double norm;
    if (sink == NULL) return;
    if (pli_update_norm(spec, n, keys, delta, &norm, NULL) < 0) /* out of memory: the norm of each row by itself */
        (void)pli_update_norm(spec, n, NULL, delta, &norm, NULL);
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_INC, .rank = rank, .table = spec->id, .rows = n, .norm = norm,
                                        .row = keys == NULL || n == 0 ? (uint64_t)first : keys[0] });
}

void pli_raise_push(const pli_event_sink *sink, int32_t rank, pli_event_kind kind, int32_t table, int64_t clock) {
    pli_event_raise(sink, &(pli_event){ .kind = kind, .rank = rank, .table = table, .clock = clock });
}

void pli_raise_send(const pli_client *client, int32_t server, const pli_msg *msg) {
    enum { MOST = 64 };
    pli_event_part few[MOST], *parts = few;
    uint32_t       n = msg->head.arg32;
    if (client->sink == NULL || n == 0) return;
    if (n > MOST && (parts = pli_array(n, sizeof *parts)) == NULL) return;
    for (uint32_t i = 0; i < n; i++) {
        pli_wire_part wire;
        memcpy(&wire, pli_at_const(pli_msg_body(msg), (int64_t)(i * sizeof wire)), sizeof wire);
        parts[i].table = (int32_t)wire.table;
        const pli_client_table *table = pli_client_table_of(client, wire.table);
        parts[i].shard = pli_placement_shard_at(&table->spec.placement, client->layout.first_server + server);
    }
    pli_event_raise(client->sink, &(pli_event){ .kind = PLI_EVENT_SEND, .rank = client->rank, .peer = server,
                                                .table = -1, .clock = msg->head.clock,
                                                .seq = client->link[server].tx.next, .n = n, .info.part = parts });
    if (parts != few) pli_free(parts);
}

void pli_raise_clock(const pli_event_sink *sink, int32_t rank, int64_t clock) {
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_CLOCK, .rank = rank, .table = -1, .clock = clock });
}

void pli_raise_zero(const pli_event_sink *sink, int32_t rank, int32_t table, int64_t clock) {
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_ZERO, .rank = rank, .table = table, .shard = -1,
                                        .clock = clock });
}

void pli_raise_begin(const pli_event_sink *sink, int32_t rank, int64_t clock, const char *from) {
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_BEGIN, .rank = rank, .table = -1, .clock = clock,
                                        .info.from = from });
}

void pli_raise_drop(const pli_event_sink *sink, int32_t rank, int32_t table, int64_t clock) {
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_ZERO, .rank = rank, .table = table,
                                        .shard = PLI_ZERO_DROP, .clock = clock });
}

plait_status pli_raise_fellows(const pli_event_sink *sink, int32_t rank, int64_t clock, const plait_group *group,
                               plait_error *err) {
    const int32_t size = plait_group_size(group);
    int32_t      *fellow = sink == NULL ? NULL : pli_array((size_t)size + 1, sizeof *fellow), n = 0;
    if (sink == NULL) return PLAIT_OK;
    if (fellow == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of ranks");
    for (int32_t i = 0; i < size; i++)
        if (i != plait_group_rank(group)) fellow[n++] = plait_group_member(group, i);
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_FELLOWS, .rank = rank, .table = -1, .clock = clock, .n = n,
                                        .info.fellow = fellow });
    pli_free(fellow);
    return PLAIT_OK;
}

void pli_raise_view(const pli_client *client, int32_t server, int32_t whom) {
    pli_event_raise(client->sink, &(pli_event){ .kind = PLI_EVENT_VIEW,
                                                .rank = client->rank,
                                                .peer = server,
                                                .table = -1,
                                                .clock = client->clock,
                                                .seq = client->link[server].tx.next,
                                                .whom = whom,
                                                .whose = client->life[whom] });
}

void pli_client_keep_events(const pli_client *client) {
    keep(client->sink, &client->layout, client->rank, pli_event_side(false, 0));
}

/* --- gets --------------------------------------------------------------------------------------------------------- */

void pli_note_rows(const pli_client *client, pli_client_table *table, const pli_msg *answer, int64_t n,
                   const uint64_t *keys) {
    int64_t            at[PLI_BLOCK];
    const pli_row_seen seen = { .state = answer->note, .from = table->pushes };
    if (client->sink == NULL ||
        !pli_grow((void **)&table->row_seen, &table->row_seen_capacity, table->rows.n, sizeof *table->row_seen))
        return;
    for (int64_t from = 0; from < n; from += PLI_BLOCK) {
        int64_t m = n - from < PLI_BLOCK ? n - from : PLI_BLOCK;
        pli_rowset_find(&table->rows, m, keys + from, at);
        for (int64_t i = 0; i < m; i++)
            if (at[i] >= 0) table->row_seen[at[i]] = seen;
    }
}

void pli_note_taken(const pli_client *client, pli_ask *ask, const uint32_t *missing, int64_t m) {
    const pli_client_table *table = ask->table;
    int64_t                 at[PLI_BLOCK], next = 0;
    if (client->sink == NULL || m == ask->n) return;
    ask->taken = pli_array((size_t)(ask->n - m), sizeof *ask->taken);
    for (int64_t from = 0; ask->taken != NULL && from < ask->n; from += PLI_BLOCK) {
        int64_t count = ask->n - from < PLI_BLOCK ? ask->n - from : PLI_BLOCK;
        pli_rowset_find(&table->rows, count, ask->keys + from, at);
        for (int64_t i = 0; i < count; i++) {
            if (next < m && missing[next] == (uint32_t)(from + i)) {
                next++;
                continue;
            }
            const pli_row_seen *seen = &table->row_seen[at[i]];
            ask->taken[ask->n_taken++] = (pli_taken){ .key = ask->keys[from + i], .seen = *seen,
                                                      .to = table->rows_to > seen->from ? table->rows_to : seen->from,
                                                      .fetched = table->row_age[at[i]].fetched };
        }
    }
}

/* The version that was noted, without the place of the replica, which stands in the upper bits (client.c). */
static uint64_t version_of(uint64_t state) { return state & ((UINT64_C(1) << PLI_PLACE_AT_BIT) - 1); }
static int32_t  place_of(uint64_t state) { return (int32_t)(state >> PLI_PLACE_AT_BIT); }

/* The pieces of a get, while they are gathered. */
typedef struct pieces {
    pli_event_piece *piece;
    uint64_t        *keys; /* of the rows taken from copies, piece by piece */
    int64_t          n, capacity;
} pieces;

static bool add_piece(pieces *p, const pli_event_piece *piece) {
    if (!pli_grow((void **)&p->piece, &p->capacity, p->n + 1, sizeof *p->piece)) return false;
    p->piece[p->n++] = *piece;
    return true;
}

static bool add_range(const pli_client *client, const pli_ask *ask, pieces *p) {
    for (int32_t shard = 0; shard < ask->table->spec.placement.shards; shard++) {
        const pli_held *held = &ask->piece[shard];
        if (held->msg == NULL) continue;
        int64_t low = held->first > ask->first ? held->first : ask->first;
        int64_t high = held->first + held->n < ask->first + ask->n ? held->first + held->n : ask->first + ask->n;
        if (!add_piece(p, &(pli_event_piece){ .shard = shard,
                                              .place = place_of(held->state),
                                              .version = version_of(held->state),
                                              .from = held->from,
                                              .to = held->to,
                                              .age = client->clock - held->age.fetched,
                                              .first = low,
                                              .rows = high - low }))
            return false;
    }
    return true;
}

/* Adds the rows that were asked for: one piece for each answer. */
static bool add_answers(const pli_ask *ask, pieces *p) {
    for (const pli_msg *reply = ask->ticket.replies; reply != NULL; reply = reply->next) {
        int32_t shard = pli_placement_shard_at(&ask->table->spec.placement, reply->head.src);
        int64_t begin = ask->start[shard], n = ask->start[shard + 1] - begin;
        if (n > 0 && !add_piece(p, &(pli_event_piece){ .shard = shard,
                                                       .place = place_of(reply->note),
                                                       .version = version_of(reply->note),
                                                       .from = ask->table->pushes,
                                                       .to = ask->table->pushes,
                                                       .first = -1,
                                                       .rows = n,
                                                       .keys = ask->fetch + begin,
                                                       .n_keys = n }))
            return false;
    }
    return true;
}

static bool is_of(const pli_client *client, const pli_event_piece *piece, int32_t shard, const pli_taken *taken) {
    return piece->shard == shard && piece->version == version_of(taken->seen.state) &&
           piece->place == place_of(taken->seen.state) && piece->from == taken->seen.from && piece->to == taken->to &&
           piece->age == client->clock - taken->fetched;
}

/* Adds the rows from copies: one piece for each shard and age, of which there are few. The keys are counted, then
 * filled in. */
static bool add_taken(const pli_client *client, const pli_ask *ask, pieces *p) {
    const pli_placement *placement = &ask->table->spec.placement;
    int64_t              first = p->n, at = 0;
    uint32_t            *of = pli_array((size_t)ask->n_taken, sizeof *of);
    p->keys = pli_array((size_t)ask->n_taken, sizeof *p->keys);
    bool done = of != NULL && p->keys != NULL;
    for (int64_t i = 0; done && i < ask->n_taken; i++) {
        const pli_taken *taken = &ask->taken[i];
        int32_t          shard = pli_placement_shard_of(placement, taken->key);
        if (at < first || at >= p->n || !is_of(client, &p->piece[at], shard, taken))
            for (at = first; at < p->n && !is_of(client, &p->piece[at], shard, taken);) at++;
        if (at == p->n)
            done = add_piece(p, &(pli_event_piece){ .shard = shard,
                                                    .place = place_of(taken->seen.state),
                                                    .version = version_of(taken->seen.state),
                                                    .from = taken->seen.from,
                                                    .to = taken->to,
                                                    .age = client->clock - taken->fetched,
                                                    .first = -1 });
        if (done) p->piece[at].rows++;
        of[i] = (uint32_t)at;
    }
    const uint64_t *keys = p->keys;
    for (int64_t i = first; done && i < p->n; i++) {
        p->piece[i].keys = keys;
        keys += p->piece[i].rows;
    }
    for (int64_t i = 0; done && i < ask->n_taken; i++) {
        pli_event_piece *piece = &p->piece[of[i]];
        p->keys[piece->keys - p->keys + piece->n_keys++] = ask->taken[i].key;
    }
    pli_free(of);
    return done;
}

/* Out of memory, the get is not raised: the log is a witness, not a part of the job. */
void pli_raise_get(const pli_client *client, const pli_ask *ask) {
    pieces p = { 0 };
    if (client->sink == NULL) return;
    bool done = ask->by_key ? add_answers(ask, &p) && (ask->n_taken == 0 || add_taken(client, ask, &p))
                            : add_range(client, ask, &p);
    if (done)
        pli_event_raise(client->sink, &(pli_event){ .kind = PLI_EVENT_GET, .rank = client->rank,
                                                    .table = ask->table->spec.id, .clock = client->clock,
                                                    .incs = ask->incs, .n = p.n, .info.piece = p.piece,
                                                    .asked_ns = ask->asked_ns, .met = ask->met });
    pli_free(p.piece);
    pli_free(p.keys);
}

void pli_raise_mirror_get(const pli_event_sink *sink, int32_t rank, const pli_spec *spec, int64_t clock,
                           const pli_mirror_seen *seen, int64_t n, const uint64_t *keys, int64_t first) {
    const pli_event_piece piece = { .shard = -1, .version = seen->version, .from = seen->from, .to = seen->to,
                                    .first = keys == NULL ? first : -1, .rows = n, .keys = keys,
                                    .n_keys = keys == NULL ? 0 : n };
    if (sink == NULL || n == 0) return;
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_GET, .rank = rank, .table = spec->id, .clock = clock,
                                        .incs = seen->incs, .n = 1, .info.piece = &piece });
}

/* --- of a server -------------------------------------------------------------------------------------------------- */

pli_event pli_event_of_server(const pli_server *server, pli_event_kind kind) {
    const int32_t place = server->replicas == NULL ? 0 : server->replicas->place;
    return (pli_event){ .kind = kind,
                        .server = true,
                        .home = server->home - server->layout.first_server,
                        .place = place,
                        .rank = server->rank,
                        .table = -1 };
}

void pli_raise_server_job(const pli_server *server) {
    raise_job(server->sink, pli_event_of_server(server, PLI_EVENT_JOB), &server->layout);
}

void pli_raise_server_table(const pli_server *server, const pli_spec *spec) {
    raise_table(server->sink, pli_event_of_server(server, PLI_EVENT_TABLE), spec, PLI_WAY_SERVED);
}

static void raise_part(const pli_server *server, pli_event_kind kind, int32_t worker, uint64_t seq, int64_t clock,
                       pli_server_table *table) {
    if (kind == PLI_EVENT_APPLY) table->state++;
    if (server->sink == NULL) return;
    pli_event event = pli_event_of_server(server, kind);
    event.peer = worker;
    event.table = table->shard.spec.id;
    event.shard = table->shard.index;
    event.clock = clock;
    event.seq = seq;
    event.version = table->state;
    pli_event_raise(server->sink, &event);
}

void pli_raise_part(const pli_server *server, pli_event_kind kind, const pli_msg *msg, pli_server_table *table) {
    raise_part(server, kind, msg->head.src, msg->head.seq, msg->head.clock, table);
}

void pli_raise_zeroed(const pli_server *server, pli_server_table *table) {
    pli_event event = pli_event_of_server(server, PLI_EVENT_ZERO);
    event.table = table->shard.spec.id;
    event.shard = table->shard.index;
    event.version = ++table->state;
    pli_event_raise(server->sink, &event);
}

void pli_raise_summed(const pli_server *server, pli_server_table *table, int32_t worker, uint64_t seq, int64_t clock) {
    raise_part(server, PLI_EVENT_APPLY, worker, seq, clock, table);
}

void pli_raise_summed_tick(const pli_server *server, int32_t worker, uint64_t seq, int64_t clock) {
    pli_event event = pli_event_of_server(server, PLI_EVENT_TICK);
    event.peer = worker;
    event.clock = clock;
    event.seq = seq;
    pli_event_raise(server->sink, &event);
}

void pli_raise_tick(const pli_server *server, const pli_msg *msg) {
    pli_raise_summed_tick(server, msg->head.src, msg->head.seq, msg->head.clock);
}

void pli_raise_gone(const pli_server *server, int32_t worker) {
    pli_event event = pli_event_of_server(server, PLI_EVENT_GONE);
    event.peer = worker;
    event.whose = server->replicas != NULL ? server->replicas->roster.life[worker] : 1;
    pli_event_raise(server->sink, &event);
}

void pli_raise_serve(const pli_server *server) {
    const pli_event event = pli_event_of_server(server, PLI_EVENT_SERVE);
    pli_event_raise(server->sink, &event);
}

void pli_raise_out(const pli_server *server) {
    const pli_event event = pli_event_of_server(server, PLI_EVENT_OUT);
    pli_event_raise(server->sink, &event);
}

static void raise_between_replicas(const pli_server *server, pli_event_kind kind, int32_t rank, int32_t place) {
    pli_event event = pli_event_of_server(server, kind);
    event.peer = rank;
    event.whom = place;
    pli_event_raise(server->sink, &event);
}

void pli_raise_handed(const pli_server *server, int32_t rank, int32_t place) {
    raise_between_replicas(server, PLI_EVENT_HAND, rank, place);
}

void pli_raise_copied(const pli_server *server, int32_t rank, int32_t place) {
    raise_between_replicas(server, PLI_EVENT_REPLICA, rank, place);
}

void pli_server_keep_events(const pli_server *server) {
    if (server->replicas != NULL)
        keep(server->sink, &server->layout, server->rank, pli_event_side(true, server->replicas->place));
}
