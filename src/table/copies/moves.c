/* Shards that move: which list of places a server should have, and the steps towards it. moves.h has the idea. */
#include "table/copies/moves.h"

#include <stdatomic.h>
#include <string.h>

#include "table/copies/replicas.h"
#include "table/events.h"

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* The first place of the rank that is behind `last`. */
static int32_t place_after(const pli_layout *layout, int32_t last, int32_t rank) {
    int32_t place = last + 1;
    place += (rank - place % layout->workers + layout->workers) % layout->workers;
    return place;
}

/* Which of n that are in has the server, if its own rank is not in. Each has a share of that rank's. */
static int32_t share_of(const pli_layout *layout, int32_t server, int32_t n) {
    return (server / layout->workers + server % layout->workers) % n;
}

/* Is the greatest share of a home at most 1.15 times the mean one, with `each` servers for every worker? A home has its
 * own, and servers of slots by share_of. */
static bool is_even(const pli_layout *layout, int32_t each) {
    const int64_t homes = layout->homes, slots = layout->workers - homes, rest = slots % homes;
    const int64_t turn = each % homes < rest ? each % homes : rest; /* each round of slots begins one home further on */
    const int64_t most = each + each * (slots / homes) + each / homes * rest + turn;
    return 100 * most * homes <= 115 * each * layout->workers;
}

int32_t pli_moves_cut(const pli_layout *layout, int64_t large) {
    const int64_t most = large < layout->servers ? large : layout->servers;
    for (int32_t each = 1; each * layout->workers <= most; each++)
        if (is_even(layout, each)) return each * layout->workers;
    return layout->homes;
}

pli_placement pli_moves_placement(const pli_layout *layout, const pli_spec *spec) {
    const int32_t most = spec->most_shards < layout->servers ? spec->most_shards : layout->servers;
    return pli_placement_make(spec->rows, pli_row_bytes(spec), spec->most_shards,
                              most > layout->homes ? most : layout->homes, 0);
}

pli_list pli_moves_first(const pli_layout *layout, int32_t server) {
    const int32_t n = layout->replicas < layout->homes ? layout->replicas : layout->homes;
    const int32_t own = server % layout->workers;
    const int32_t home = own < layout->homes ? own : share_of(layout, server, layout->homes);
    pli_list      list = { 0 };
    for (int32_t i = 0, last = layout->workers - 1; i < n; i++)
        last = list.last = list.at[list.n++] = place_after(layout, last, (home + i) % layout->homes);
    return list;
}

int32_t pli_list_on(const pli_layout *layout, const pli_list *list, int32_t rank) {
    for (int32_t i = 0; i < list->n; i++)
        if (list->at[i] % layout->workers == rank) return list->at[i];
    return -1;
}

bool pli_list_read(const pli_layout *layout, const pli_msg *msg, pli_list *list_out, uint64_t *key_out) {
    pli_wire_list wire;
    if (msg->head.body_bytes != sizeof wire) return false;
    memcpy(&wire, pli_msg_body(msg), sizeof wire);
    if (wire.n < 1 || wire.n > PLI_CHAIN_MAX) return false;
    for (int32_t i = 0; i < wire.n; i++)
        if (wire.at[i] < 0 || wire.at[i] >= PLI_MOVED_MAX || (i > 0 && wire.at[i] <= wire.at[i - 1])) return false;
    if (wire.last < wire.at[wire.n - 1] || wire.last >= PLI_MOVED_MAX) return false;
    *list_out = (pli_list){ .n = wire.n, .last = wire.last };
    memcpy(list_out->at, wire.at, sizeof wire.at);
    for (int32_t i = 0; i + 1 < wire.n; i++)
        for (int32_t j = i + 1; j < wire.n; j++)
            if (wire.at[i] % layout->workers == wire.at[j] % layout->workers) return false;
    *key_out = wire.key;
    return true;
}

static pli_msg *body_of(const pli_list *list, uint64_t key) {
    pli_wire_list wire = { .key = key, .n = list->n, .last = list->last };
    pli_msg      *msg = pli_msg_new(sizeof wire);
    memcpy(wire.at, list->at, sizeof wire.at);
    if (msg != NULL) memcpy(pli_msg_body(msg), &wire, sizeof wire);
    return msg;
}

/* --- what should be ----------------------------------------------------------------------------------------------- */

/* The rank on which the server should be: its own, if that is in; else one of those who are. -1: nobody is. */
static int32_t home_of(const pli_layout *layout, int32_t server, const uint8_t *in) {
    int32_t n = 0, home = server % layout->workers;
    if (in[home]) return home;
    for (int32_t w = 0; w < layout->workers; w++) n += in[w] != 0;
    for (int32_t w = 0, at = n == 0 ? -1 : share_of(layout, server, n); w < layout->workers && at >= 0; w++)
        if (in[w] && at-- == 0) return w;
    return -1;
}

/* The first rank behind `home`, in the circle of all, that is marked and has no place of the list; -1: none. */
static int32_t next_free(const pli_layout *layout, int32_t home, const uint8_t *marked, const pli_list *list) {
    for (int32_t i = 0; i < layout->workers; i++) {
        const int32_t rank = (home + i) % layout->workers;
        if (marked[rank] && pli_list_on(layout, list, rank) < 0) return rank;
    }
    return -1;
}

/* Is the rank one of the first n that are in, from home on? */
static bool is_near(const pli_layout *layout, int32_t home, const uint8_t *in, int32_t n, int32_t rank) {
    for (int32_t i = 0; i < layout->workers && n > 0; i++) {
        const int32_t at = (home + i) % layout->workers;
        if (!in[at]) continue;
        if (at == rank) return true;
        n--;
    }
    return false;
}

/* A place that is to go in any case: of a rank that is not in, or before that of `home`. -1: none. */
static int32_t misplaced(const pli_layout *layout, int32_t home, const uint8_t *in, const pli_list *list) {
    const int32_t should = pli_list_on(layout, list, home);
    for (int32_t i = 0; i < list->n; i++)
        if (!in[list->at[i] % layout->workers]) return list->at[i];
    return should > list->at[0] ? list->at[0] : -1;
}

static pli_step add(int32_t rank) {
    return rank < 0 ? (pli_step){ .kind = PLI_STEP_NONE } : (pli_step){ .kind = PLI_STEP_ADD, .rank = rank };
}

static pli_step drop(int32_t place) { return (pli_step){ .kind = PLI_STEP_DROP, .place = place }; }

pli_step pli_moves_next(const pli_layout *layout, int32_t server, const pli_list *list, const uint8_t *in,
                        const uint8_t *lives) {
    const int32_t home = home_of(layout, server, in);
    int32_t       want = 0;
    for (int32_t w = 0; w < layout->workers && want < layout->replicas; w++) want += lives[w] != 0;
    if (home < 0) return add(list->n < want ? next_free(layout, 0, lives, list) : -1);
    if (list->n < want) {
        const int32_t rank = next_free(layout, home, in, list);
        return add(rank >= 0 ? rank : next_free(layout, home, lives, list));
    }
    if (list->n >= PLI_CHAIN_MAX) return drop(list->at[0]);
    if (pli_list_on(layout, list, home) < 0) return add(home);
    const int32_t place = misplaced(layout, home, in, list);
    if (place >= 0) return list->n > want ? drop(place) : add(next_free(layout, home, in, list));
    for (int32_t i = list->n; list->n > want && i-- > 0;)
        if (!is_near(layout, home, in, want, list->at[i] % layout->workers)) return drop(list->at[i]);
    if (list->n > want) return drop(list->at[list->n - 1]);
    const int32_t rank = next_free(layout, home, in, list);
    return add(rank >= 0 && is_near(layout, home, in, want, rank) ? rank : -1);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

bool pli_moves_open(pli_server *server) {
    const pli_layout *layout = &server->layout;
    pli_moves        *m = &server->replicas->moves;
    m->plan = -1;
    m->linked = true;
    if (!pli_moves_are_on(layout)) return true;
    m->list = m->told = pli_moves_first(layout, server->number);
    m->gone = pli_calloc((size_t)layout->workers, 1);
    m->heard = pli_calloc((size_t)layout->workers, sizeof *m->heard);
    return m->gone != NULL && m->heard != NULL;
}

void pli_moves_close(pli_server *server) {
    pli_free(server->replicas->moves.gone);
    pli_free(server->replicas->moves.heard);
}

void pli_moves_gone(pli_server *server, int32_t rank, bool ended) {
    if (rank >= 0 && rank < server->layout.workers) server->replicas->moves.gone[rank] = ended ? PLI_ENDED : 1;
}

/* --- who serves: what it tells ------------------------------------------------------------------------------------ */

static bool hears(const pli_server *server, int32_t worker) {
    return !server->replicas->moves.gone[worker] && !server->peer[worker].gone;
}

static int32_t rank_of_plan(const pli_server *server) {
    const pli_moves *m = &server->replicas->moves;
    return m->plan < 0 ? -1 : m->plan % server->layout.workers;
}

/* Tells those who have not answered. */
static void say(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas  *c = server->replicas;
    pli_moves     *m = &c->moves;
    const uint64_t patience = server->layout.resend_after_ns;
    bool           waits = m->plan >= 0 && !m->opened;
    if (waits) {
        pli_msg *msg = body_of(&m->told, m->told_key);
        if (msg != NULL) {
            msg->head.kind = PLI_PLACES;
            msg->head.clock = c->place;
            pli_replicas_address(server, m->plan, msg);
            pli_out_send(out, msg);
        }
    }
    for (int32_t w = 0; w < server->layout.workers; w++) {
        if (m->heard[w] >= m->told_key || !hears(server, w)) continue;
        pli_server_tell_with(server, w, PLI_PLACES, c->place, body_of(&m->told, m->told_key), out);
        waits = true;
    }
    if (patience == 0 || !waits) return;
    m->again_at_ns = now_ns + patience;
    pli_out_wake(out, m->again_at_ns);
}

static bool all_have_heard(const pli_server *server) {
    const pli_moves *m = &server->replicas->moves;
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (m->heard[w] < m->told_key && hears(server, w)) return false;
    return m->plan < 0 || m->opened;
}

static void tell(pli_server *server, uint64_t now_ns, const pli_list *list, pli_out *out) {
    pli_moves *m = &server->replicas->moves;
    m->told = *list;
    m->told_key = m->told_key > m->key ? m->told_key : m->key;
    const uint64_t mine = (uint64_t)server->replicas->place << 32;
    m->told_key = (m->told_key > mine ? m->told_key : mine) + 1;
    m->opened = false;
    say(server, now_ns, out);
}

void pli_moves_wakeup(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    pli_moves    *m = &c->moves;
    if (!pli_moves_are_on(&server->layout)) return;
    if (c->making && m->moved->slice_at_ns > 0) pli_replicas_slice(server, now_ns, out);
    if (!c->serves || m->again_at_ns == 0 || all_have_heard(server)) return;
    if (now_ns >= m->again_at_ns) say(server, now_ns, out);
    else pli_out_wake(out, m->again_at_ns);
}

void pli_moves_answer(const pli_layout *layout, int32_t rank, const pli_msg *places, pli_out *out) {
    pli_list list;
    uint64_t key;
    pli_msg *msg = pli_list_read(layout, places, &list, &key) ? pli_msg_new(0) : NULL;
    if (msg == NULL) return;
    const int32_t to = (int32_t)places->head.clock;
    msg->head.kind = PLI_PLACED;
    msg->head.flags = places->head.flags & (PLI_FLAG_LOG | PLI_MSG_UNCOUNTED);
    msg->head.server = places->head.server;
    if (msg->head.flags & PLI_FLAG_LOG)
        msg->head.server = (uint16_t)((places->head.server & (PLI_LOGICAL_MAX - 1)) | pli_moves_life(layout, to));
    msg->head.src = rank;
    msg->head.dst = to % layout->workers;
    msg->head.port = PLI_PORT_REPLICA;
    msg->head.epoch = places->head.epoch;
    msg->head.incarnation = 1;
    msg->head.clock = (int64_t)key;
    pli_out_send(out, msg);
}

void pli_moves_tell_none(pli_server *server, pli_out *out) {
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (hears(server, w)) pli_server_tell(server, w, PLI_NONE, (int64_t)server->replicas->moves.key, out);
}

/* --- who serves: steps -------------------------------------------------------------------------------------------- */

/* Those of the list that live. */
static pli_list living(const pli_server *server, const pli_list *list) {
    pli_list lives = { .last = list->last };
    for (int32_t i = 0; i < list->n; i++)
        if (!server->replicas->moves.gone[list->at[i] % server->layout.workers]) lives.at[lives.n++] = list->at[i];
    return lives;
}

static bool has_snapshot(const pli_server *server) {
    for (int64_t t = 0; t < server->tables; t++)
        if (server->table[t] != NULL && server->table[t]->snap != NULL) return true;
    return false;
}

/* It is out: it keeps nothing but what it has to pass on. */
static void rest(pli_server *server, pli_out *out) {
    pli_replicas *c = server->replicas;
    c->moves.out = true;
    c->moves.leaving = c->serves = false;
    pli_raise_out(server);
    for (int64_t t = 0; t < server->tables; t++) pli_server_drop(server, t);
    pli_msg_free_list(&server->parked);
    server->parked_last = &server->parked;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        pli_tx_end(&peer->tx);
        pli_waiting_free_list(&peer->queue);
        peer->queue_last = &peer->queue;
        pli_waiting_free_list(&c->redo[w]);
        pli_waiting_free_list(&c->redo[server->layout.workers + w]);
        pli_msg_free(&peer->barrier);
        pli_msg_free(&peer->call);
        pli_msg_free(&peer->bye);
        pli_roster_forget(server, w);
    }
    pli_msg_free_list(&c->early);
    c->early_last = &c->early;
    pli_msg_free(&c->sum);
    pli_server_end(server, out);
}

/* The list is this from here on. */
static void set(pli_server *server, const pli_list *list, uint64_t key) {
    pli_replicas *c = server->replicas;
    pli_moves    *m = &c->moves;
    m->before = m->list;
    m->list = *list;
    m->key = key;
    m->entry = c->log;
    m->leaving = !pli_list_has(list, c->place);
    m->linked = false;
    m->whole_behind = false; /* until those behind have it, too, and say so again */
}

static void count(_Atomic uint64_t *of, uint64_t more) { atomic_fetch_add_explicit(of, more, memory_order_relaxed); }

static void append(pli_server *server, uint64_t now_ns, const pli_list *list, uint64_t key, pli_out *out) {
    pli_replicas *c = server->replicas;
    pli_msg      *msg = body_of(list, key);
    if (msg != NULL) msg->head.kind = PLI_LIST;
    pli_replicas_append(server, now_ns, msg, pli_entry_of(-1, 0), out);
    if (out->error.code < 0) return;
    set(server, list, key);
    c->serves = !c->moves.leaving;
    if (c->moves.leaving) count(&c->moves.moved->moves, 1);
    pli_relay_look_behind(server, now_ns, out);
    if (c->to < 0) pli_moves_confirmed(server, now_ns, out);
}

/* The planned place goes into the log when all know of it. */
static void go_on(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_moves *m = &server->replicas->moves;
    if (m->gone[rank_of_plan(server)]) {
        m->plan = -1;
        return;
    }
    if (!all_have_heard(server)) return;
    const pli_list list = m->told;
    m->plan = -1;
    append(server, now_ns, &list, m->told_key, out);
}

static bool is_settled(const pli_server *server) {
    const pli_replicas *c = server->replicas;
    if (!c->moves.linked || c->making || c->first != NULL) return false;
    return c->to < 0 || (c->moves.whole_behind && c->confirmed >= c->log);
}

static void take_step(pli_server *server, uint64_t now_ns, pli_out *out) {
    const pli_replicas *c = server->replicas;
    const pli_layout   *layout = &server->layout;
    const int32_t       workers = layout->workers;
    uint8_t            *in = pli_calloc((size_t)workers, 2), *lives = in == NULL ? NULL : in + workers;
    pli_list            list = living(server, &c->moves.list);
    if (in == NULL) return; /* later, then */
    for (int32_t w = 0; w < workers; w++) {
        lives[w] = hears(server, w);
        in[w] = lives[w] && !c->roster.away[w] && !c->dead[w];
    }
    const pli_step step = pli_moves_next(layout, server->number, &list, in, lives);
    pli_free(in);
    if (step.kind == PLI_STEP_ADD && list.n < PLI_CHAIN_MAX) {
        const int32_t place = place_after(layout, list.last, step.rank);
        if (place >= PLI_MOVED_MAX) return;
        server->replicas->moves.plan = list.last = list.at[list.n++] = place;
        tell(server, now_ns, &list, out);
        go_on(server, now_ns, out);
    }
    if (step.kind != PLI_STEP_DROP || (step.place == c->place && has_snapshot(server))) return;
    const pli_moves *m = &c->moves;
    pli_list         less = { .last = list.last };
    for (int32_t i = 0; i < list.n; i++)
        if (list.at[i] != step.place) less.at[less.n++] = list.at[i];
    append(server, now_ns, &less, (m->told_key > m->key ? m->told_key : m->key) + 1, out);
}

void pli_moves_look(pli_server *server, uint64_t now_ns, pli_out *out) {
    const pli_replicas *c = server->replicas;
    if (c == NULL || !pli_moves_are_on(&server->layout) || !c->serves || c->moves.busy || out->error.code < 0)
        return;
    if (c->moves.plan >= 0) go_on(server, now_ns, out);
    const bool holds = server->tables > 0 || server->number == 0;
    if (c->moves.plan >= 0 || !holds || c->over || c->left != 0 || c->roster.ends || !is_settled(server)) return;
    take_step(server, now_ns, out);
}

void pli_moves_serve(pli_server *server, uint64_t now_ns, pli_out *out) {
    if (!pli_moves_are_on(&server->layout)) return;
    const pli_list list = living(server, &server->replicas->moves.list);
    tell(server, now_ns, &list, out);
}

void pli_moves_placed(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_replicas  *c = server->replicas;
    pli_moves     *m = &c->moves;
    const uint64_t key = (uint64_t)msg->head.clock;
    if (!c->serves || msg->head.src < 0 || msg->head.src >= server->layout.workers) return;
    if (msg->head.flags & PLI_FLAG_LOG)
        m->opened = m->opened || (msg->head.src == rank_of_plan(server) && key == m->told_key);
    else if (key > m->heard[msg->head.src]) m->heard[msg->head.src] = key;
    if (m->plan >= 0) pli_moves_look(server, now_ns, out);
}

/* Nobody lives who has acted on the list that lacks this place: the one before counts again. */
static void stay(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    pli_moves    *m = &c->moves;
    m->list = living(server, &m->before);
    m->list.last = m->before.last;
    m->leaving = false;
    if (!c->leads) {
        pli_relay_follow_list(server, now_ns, out);
        return;
    }
    atomic_fetch_sub_explicit(&m->moved->moves, 1, memory_order_relaxed);
    c->serves = m->busy = true; /* as it did before: it told nobody that it did not */
    for (int64_t i = 0; i < c->n_events; i++) pli_server_ops.on_member(server, now_ns, &c->events[i], out);
    c->n_events = 0;
    for (pli_msg *early = pli_replicas_give_early(server); early != NULL;) {
        pli_msg *msg = early;
        early = msg->next;
        msg->next = NULL;
        pli_server_ops.on_message(server, now_ns, msg, out);
    }
    m->busy = false;
    tell(server, now_ns, &m->list, out);
    m->key = m->told_key;
    pli_server_look_again(server, now_ns, out);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

void pli_moves_take(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_list list;
    uint64_t key;
    if (!pli_moves_are_on(&server->layout) || !pli_list_read(&server->layout, msg, &list, &key)) {
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: a list of places that makes no sense", msg->head.src);
        return;
    }
    set(server, &list, key);
    pli_relay_follow_list(server, now_ns, out);
}

void pli_moves_confirmed(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    pli_moves    *m = &c->moves;
    if (!pli_moves_are_on(&server->layout) || m->linked || (c->to >= 0 && c->confirmed < m->entry)) return;
    m->linked = true;
    if (m->leaving && living(server, &m->list).n == 0) {
        stay(server, now_ns, out);
        return;
    }
    if (m->leaving) rest(server, out);
    if (c->serves && m->key > m->told_key) { /* not sooner: a place that is to go still counted */
        m->told = m->list;
        m->told_key = m->key;
        say(server, now_ns, out);
    }
    if (c->to >= 0 && !m->out && !pli_list_has(&m->list, c->to_place)) pli_relay_pass_over(server, now_ns, out);
    pli_moves_look(server, now_ns, out);
}

/* --- slices ------------------------------------------------------------------------------------------------------- */

/* A rank has died, and fewer replicas are left than there should be: nothing slows the new one down. */
static bool makes_good(const pli_server *server) {
    return living(server, &server->replicas->moves.list).n <= server->layout.replicas;
}

bool pli_moves_may_slice(pli_server *server, uint64_t now_ns, pli_out *out) {
    const pli_moved *moved = server->replicas->moves.moved;
    if (moved == NULL || moved->slice_at_ns <= now_ns || makes_good(server)) return true;
    pli_out_wake(out, moved->slice_at_ns);
    return false;
}

void pli_moves_sliced(pli_server *server, uint64_t now_ns, int64_t bytes) {
    pli_moved     *moved = server->replicas->moves.moved;
    const uint64_t rate = server->layout.move_rate;
    if (moved == NULL) return;
    count(&moved->bytes, (uint64_t)bytes);
    if (rate == 0 || makes_good(server)) return;
    const uint64_t from_ns = moved->slice_at_ns > now_ns ? moved->slice_at_ns : now_ns;
    moved->slice_at_ns = from_ns + (uint64_t)((double)bytes * 1e9 / (double)rate);
}
