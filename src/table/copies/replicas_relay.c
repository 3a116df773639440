/* The chain of the replicas of a server's shards: which there are, how the log goes from each to the next, what is
 * confirmed, and how the chain closes when a rank has died. replicas.h has the idea. */
#include "table/copies/replicas.h"
#include "table/events.h"

/* --- who is in the chain ------------------------------------------------------------------------------------------ */

static bool is_gone(const pli_replicas *c, int32_t place) { return ((c->died | c->left) >> place & 1) != 0; }

static int32_t living_before(const pli_replicas *c) {
    int32_t n = 0;
    for (int32_t place = 0; place < c->place; place++) n += !is_gone(c, place);
    return n;
}

/* Where shards move: is the place in the list, and does its rank live? */
static bool is_listed(const pli_server *server, int32_t place) {
    const pli_moves *m = &server->replicas->moves;
    return pli_list_has(&m->list, place) && !m->gone[place % server->layout.workers];
}

/* The nearest place of the list before this one (by 1: behind it) whose rank lives; -1: none. */
static int32_t nearest_listed(const pli_server *server, int by) {
    const pli_replicas *c = server->replicas;
    const pli_list     *list = &c->moves.list;
    int32_t             best = -1;
    for (int32_t i = 0; i < list->n; i++) {
        const int32_t place = list->at[i];
        const bool    side = by < 0 ? place < c->place : place > c->place;
        if (side && is_listed(server, place) && (best < 0 || by < 0)) best = place;
    }
    for (int32_t i = 0; by > 0 && !c->moves.linked && i < c->moves.before.n; i++) { /* who is out must hear so first */
        const int32_t place = c->moves.before.at[i];
        const bool    lives = !c->moves.gone[place % server->layout.workers];
        if (place > c->place && lives && (best < 0 || place < best)) best = place;
    }
    return best;
}

/* The place of the replica that the log comes from; -1: there is none. */
static int32_t place_before(const pli_server *server) {
    const pli_replicas *c = server->replicas;
    if (pli_moves_are_on(&server->layout)) return nearest_listed(server, -1);
    int32_t place = c->place - 1;
    while (place >= 0 && is_gone(c, place)) place--;
    return place;
}

/* The one that the log comes from has died: the place of who sends it from now on. Where shards move, that may be one
 * that is out, which still passes on what came before its end is confirmed. */
static int32_t next_source(const pli_server *server) {
    const pli_replicas *c = server->replicas;
    const pli_list     *lists[2] = { &c->moves.list, &c->moves.before };
    int32_t             best = -1;
    if (!pli_moves_are_on(&server->layout)) return place_before(server);
    for (int l = 0; l < 2; l++)
        for (int32_t i = 0; i < lists[l]->n; i++) {
            const int32_t place = lists[l]->at[i];
            const bool    lives = !c->moves.gone[place % server->layout.workers];
            if (lives && place < c->from_place && place > best) best = place;
        }
    return best;
}

/* The place of the replica that the log goes to; -1: this one is the last. */
static int32_t place_behind(const pli_server *server) {
    const pli_replicas *c = server->replicas;
    if (pli_moves_are_on(&server->layout)) return c->over || c->left != 0 ? -1 : nearest_listed(server, 1);
    const int32_t places = pli_replica_places(&server->layout);
    int32_t       place = c->place + 1;
    while (place < places && is_gone(c, place)) place++;
    const bool is_full = living_before(c) >= pli_relay_length(server) - 1;
    return place >= places || is_full || c->over || c->left != 0 ? -1 : place;
}

/* The place of a rank from which the log may come; -1: none. */
static int32_t place_on(const pli_server *server, int32_t rank) {
    return pli_moves_are_on(&server->layout) ? pli_list_on(&server->layout, &server->replicas->moves.list, rank)
                                             : pli_replica_place(&server->layout, server->number, rank);
}

static int32_t rank_at(const pli_server *server, int32_t place) {
    return place < 0 ? -1 : pli_replica_rank(&server->layout, server->number, place);
}

static void come_from(pli_server *server, int32_t place) {
    pli_replicas *c = server->replicas;
    c->from_place = place;
    c->from = rank_at(server, place);
    c->takes_state = false;
    pli_replicas_drop_parked(server);
    pli_rx_destroy(&c->rx);
    pli_rx_init(&c->rx);
}

static void go_to(pli_server *server, int32_t place) {
    pli_replicas *c = server->replicas;
    c->to_place = place;
    c->to = rank_at(server, place);
    c->sends_state = false;
    c->taken = c->begins = c->slice = 0;
    c->moves.whole_behind = false;
    pli_tx_destroy(&c->tx);
    pli_tx_init(&c->tx, server->layout.resend_after_ns);
}

void pli_relay_open(pli_server *server) {
    const pli_replicas *c = server->replicas;
    const int32_t before = pli_moves_are_on(&server->layout) ? place_before(server) : c->place - 1;
    come_from(server, c->whole ? before : -1);
    go_to(server, c->whole ? place_behind(server) : -1);
}

/* --- the log, as it comes ----------------------------------------------------------------------------------------- */

bool pli_relay_takes_from(const pli_server *server, int32_t rank) {
    const pli_replicas *c = server->replicas;
    const int32_t       place = place_on(server, rank);
    if (pli_moves_are_on(&server->layout)) {
        if (c->leads || rank < 0 || rank >= server->layout.workers || c->moves.gone[rank]) return false;
        if (rank == c->from) return true; /* also if it is out: what it passes on may not be all here */
        if (place < 0 || place >= c->place) return false;
    } else if (c->leads || place < 0 || place >= c->place || (c->died >> place & 1) != 0) {
        return false;
    }
    return place >= c->maker && (c->from < 0 || place <= c->from_place);
}

/* The rank sends its log to this one, so those between are dead. */
static void adopt(pli_server *server, uint64_t now_ns, int32_t rank, pli_out *out) {
    pli_replicas *c = server->replicas;
    const int32_t place = place_on(server, rank);
    const pli_list *list = &c->moves.list;
    come_from(server, place);
    for (int32_t i = 0; pli_moves_are_on(&server->layout) && i < list->n; i++)
        if (list->at[i] > place && list->at[i] < c->place)
            pli_moves_gone(server, list->at[i] % server->layout.workers, false);
    for (int32_t p = place + 1; !pli_moves_are_on(&server->layout) && p < c->place; p++) c->died |= UINT64_C(1) << p;
    if (pli_relay_is_long(server)) pli_relay_look_behind(server, now_ns, out);
}

/* Where shards move: are all replicas from this one on whole? */
static bool is_whole_from_here(const pli_replicas *c) { return c->whole && (c->to < 0 || c->moves.whole_behind); }

/* How much of the stream need not be sent again. What is not confirmed is, where messages may be lost: the sender so
 * asks whether it is by now. So it asks, where shards move, whether all behind are whole. */
static uint64_t settled(const pli_server *server) {
    const pli_replicas *c = server->replicas;
    const uint64_t      taken = c->rx.expected - 1 - c->n_parked;
    const bool          all = c->confirmed + 1 >= c->coming;
    if (c->whole && all && !c->leads && taken > 0 && pli_moves_are_on(&server->layout) && !is_whole_from_here(c))
        return taken - 1;
    if (!c->whole || c->confirmed + 1 >= c->coming) return taken;
    return c->confirmed + 1 >= c->opened ? taken - (c->coming - 1 - c->confirmed) : taken - (c->coming - c->opened) - 1;
}

static void answer(pli_server *server, pli_kind kind, pli_out *out) {
    pli_replicas *c = server->replicas;
    pli_msg      *msg = pli_msg_new(0);
    if (msg == NULL) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to confirm the log of rank %d", c->from);
        return;
    }
    msg->head.kind = (uint16_t)kind;
    if (pli_moves_are_on(&server->layout) && is_whole_from_here(c))
        msg->head.flags |= PLI_FLAG_WHOLE;
    pli_replicas_address(server, c->from_place, msg);
    msg->head.arg64 = kind == PLI_LOGGED ? settled(server) : 0;
    msg->head.clock = c->begun ? (int64_t)c->confirmed : 0;
    pli_out_send(out, msg);
}

bool pli_relay_admits(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    const bool    state = (msg->head.flags & PLI_FLAG_ANEW) != 0;
    if (msg->head.src != c->from) adopt(server, now_ns, msg->head.src, out);
    if (state != c->takes_state && (!state || c->whole)) return false; /* it was asked for the state since */
    if (state && !c->takes_state) {
        come_from(server, c->from_place);
        c->takes_state = true;
    }
    if (!state && !c->whole) {
        answer(server, PLI_LACKS, out);
        return false;
    }
    c->heard = c->heard || state;
    return true;
}

bool pli_relay_starts_over(const pli_server *server, const pli_msg *msg) {
    const pli_replicas *c = server->replicas;
    const uint16_t      both = PLI_FLAG_LOG | PLI_FLAG_ANEW;
    return c->heard && !c->whole && (msg->head.flags & both) == both && pli_relay_takes_from(server, msg->head.src) &&
           (msg->head.src != c->from || !c->takes_state);
}

void pli_relay_take_link(pli_server *server, const pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (c->whole && msg->head.arg64 > c->log + 1)
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: entries %llu to %llu are missing", msg->head.src,
                     (unsigned long long)c->log + 1, (unsigned long long)msg->head.arg64 - 1);
    if (msg->head.clock > c->maker) c->maker = (int32_t)msg->head.clock;
    c->coming = c->opened = msg->head.arg64;
    c->linked = true;
}

bool pli_relay_takes_entry(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (c->coming++ <= c->log) return false;
    c->log++;
    if (c->to < 0) return true;
    pli_entry *entry = pli_entry_of(-1, 0);
    pli_msg   *on = pli_msg_copy(msg);
    if (entry != NULL) {
        entry->number = c->log;
        entry->sent = pli_msg_copy(msg);
    }
    if (entry != NULL && entry->sent != NULL && on != NULL && pli_replicas_send(server, now_ns, on, 0, out)) {
        pli_replicas_await(c, entry);
        return true;
    }
    pli_out_fail(out, PLAIT_ENOMEM, "no memory to pass on the log of rank %d", c->from);
    pli_msg_free(&on);
    if (entry != NULL) pli_entry_free(entry);
    return true;
}

/* --- what is confirmed -------------------------------------------------------------------------------------------- */

/* A new replica confirms what it has of the log before it has all rows. */
static bool is_last(const pli_replicas *c) { return c->begun && c->to < 0 && !c->abandoned; }

bool pli_relay_tells(const pli_server *server) { return is_last(server->replicas) && server->replicas->speaks; }

static void confirm(pli_server *server, uint64_t now_ns, uint64_t number, pli_out *out) {
    pli_replicas  *c = server->replicas;
    const uint64_t before = c->confirmed;
    if (number > c->log) number = c->log;
    if (number > c->confirmed) c->confirmed = number;
    pli_replicas_release(server, now_ns, c->confirmed, out);
    if (c->leads) {
        if (c->from >= 0 && c->confirmed > before) answer(server, PLI_LOGGED, out); /* to one that is out */
        pli_replicas_settle(server, now_ns, out);
        pli_moves_confirmed(server, now_ns, out);
        return;
    }
    if (c->over && c->confirmed == c->log) pli_server_end(server, out);
    if (c->from >= 0 && c->confirmed > before) answer(server, PLI_LOGGED, out);
    pli_moves_confirmed(server, now_ns, out);
}

/* Whoever passes the log on has nothing to say before it is confirmed, unless messages may be lost. */
void pli_relay_taken(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas  *c = server->replicas;
    const uint64_t before = c->confirmed;
    if (out->error.code < 0) return;
    if (is_last(c)) confirm(server, now_ns, c->log, out);
    const bool said = c->confirmed > before, asked = c->linked || server->layout.resend_after_ns > 0;
    if (!said && (c->to < 0 || asked)) answer(server, PLI_LOGGED, out);
    c->linked = false;
}

/* --- the log, as it goes on --------------------------------------------------------------------------------------- */

/* Opens the stream. */
static void send_link(pli_server *server, uint64_t now_ns, uint64_t coming, pli_out *out) {
    pli_msg *msg = pli_msg_new(0);
    if (msg != NULL) {
        msg->head.kind = PLI_CHAIN;
        msg->head.clock = server->replicas->maker;
        msg->head.arg64 = coming;
    }
    pli_replicas_say(server, now_ns, msg, out);
}

/* The replica behind has died; the next one may have less of the log than it had. */
static void send_rest(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas    *c = server->replicas;
    const pli_entry *entry = c->first;
    while (entry != NULL && entry->sent == NULL) entry = entry->next;
    send_link(server, now_ns, entry == NULL ? c->log + 1 : entry->number, out);
    for (; entry != NULL && out->error.code >= 0; entry = entry->next) {
        pli_msg *msg = entry->sent == NULL ? NULL : pli_msg_copy(entry->sent);
        if (entry->sent == NULL || (msg != NULL && pli_replicas_send(server, now_ns, msg, 0, out))) continue;
        pli_out_fail(out, PLAIT_ENOMEM, "no memory for the log of the shards of rank %d", server->home);
        pli_msg_free(&msg);
    }
}

/* The replica behind is new. What is not confirmed waits until it is whole. */
static void send_state(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    go_to(server, c->to_place);
    c->sends_state = true;
    pli_raise_handed(server, c->to, c->to_place);
    pli_server_keep_events(server);
    send_link(server, now_ns, c->log + 1, out);
    pli_replicas_tell_all(server, now_ns, out);
}

/* Nobody else has told the workers of what came with a state, or what the last one of the chain, which has died, had
 * not told yet. */
static void tell_as_last(pli_server *server, pli_out *out) {
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (!server->replicas->dead[w]) /* else its last clock may have ended without it */
            pli_server_tell(server, w, PLI_SAFE, (int64_t)pli_replicas_safe_by_log(server, w), out);
}

void pli_relay_look_behind(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (!c->whole || c->to >= 0 || c->abandoned) return;
    const int32_t place = place_behind(server);
    if (place >= 0) {
        go_to(server, place);
        if (pli_relay_is_long(server)) send_rest(server, now_ns, out);
        else send_state(server, now_ns, out);
        return;
    }
    const uint64_t before = c->confirmed;
    if (!c->leads && c->confirmed < c->log) tell_as_last(server, out);
    if (c->leads) pli_replicas_release(server, now_ns, UINT64_MAX, out);
    else confirm(server, now_ns, c->log, out);
    if (!c->leads && pli_moves_are_on(&server->layout) && c->from >= 0 && c->confirmed == before)
        answer(server, PLI_LOGGED, out); /* all from here on are whole, perhaps for the first time */
    if (!c->leads || !pli_moves_are_on(&server->layout)) return;
    c->confirmed = c->log;
    pli_replicas_settle(server, now_ns, out);
    pli_moves_confirmed(server, now_ns, out);
}

void pli_relay_answer_late(pli_server *server, pli_out *out) {
    if (server->replicas->from >= 0) answer(server, PLI_LOGGED, out);
}

void pli_relay_take_answer(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (msg->head.src != c->to || msg->head.arg64 >= c->tx.next) return;
    if (msg->head.kind == PLI_LOGGED) {
        pli_tx_acked(&c->tx, msg->head.arg64);
        if (msg->head.arg64 > c->taken) c->taken = msg->head.arg64;
        const bool has_begun = !c->sends_state || c->taken >= c->begins;
        const bool whole = (msg->head.flags & PLI_FLAG_WHOLE) != 0 && (uint64_t)msg->head.clock >= c->moves.entry;
        const bool news = whole && !c->moves.whole_behind && !c->making;
        c->moves.whole_behind = c->moves.whole_behind || news;
        const uint64_t before = c->confirmed;
        if (has_begun && msg->head.clock > 0) confirm(server, now_ns, (uint64_t)msg->head.clock, out);
        if (news && !c->leads && c->from >= 0 && c->confirmed == before) answer(server, PLI_LOGGED, out);
        const bool making = c->making;
        pli_replicas_slice(server, now_ns, out);
        pli_moves_look(server, now_ns, out);
        if (c->serves && making && !c->making) pli_server_look_again(server, now_ns, out); /* calls have waited */
    } else if (!c->sends_state) {
        send_state(server, now_ns, out);
        pli_replicas_settle(server, now_ns, out);
    }
}

void pli_relay_speak(pli_server *server, pli_out *out) {
    server->replicas->speaks = true;
    if (pli_relay_is_long(server)) tell_as_last(server, out);
}

void pli_relay_whole(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (pli_relay_is_long(server)) pli_relay_look_behind(server, now_ns, out);
    c->linked = true; /* what it has is confirmed, even if the chain goes on behind it */
    c->speaks = true;
    if (c->to < 0) pli_relay_speak(server, out);
}

/* --- deaths ------------------------------------------------------------------------------------------------------- */

static void lose_behind(pli_server *server, bool left) {
    pli_replicas *c = server->replicas;
    c->to = -1;
    c->abandoned = left && !c->over;
    pli_tx_end(&c->tx);
    pli_replicas_stop_making(server);
}

/* Has a replica before this one ended in good order? Then all workers have said good-bye. */
static bool is_ended_before(const pli_server *server) {
    const pli_replicas *c = server->replicas;
    const pli_list     *list = &c->moves.list;
    for (int32_t i = 0; i < list->n && list->at[i] < c->place; i++)
        if (c->moves.gone[list->at[i] % server->layout.workers] == PLI_ENDED) return true;
    return false;
}

/* Comes first, if no replica before it is left. One that is out never does. */
static bool follow_first(pli_server *server, uint64_t now_ns, pli_out *out) {
    const pli_replicas *c = server->replicas;
    const bool          moves = pli_moves_are_on(&server->layout);
    if (c->leads || c->empty || c->moves.out || c->moves.leaving || (c->from >= 0 && !moves)) return false;
    if (place_before(server) >= 0) return false;
    if (moves && is_ended_before(server)) return false;
    pli_replicas_come_first(server, now_ns, out);
    return true;
}

void pli_relay_gone(pli_server *server, uint64_t now_ns, const pli_member_event *event, int32_t place, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (!pli_moves_are_on(&server->layout))
        *(event->kind == PLI_MEMBER_DIED ? &c->died : &c->left) |= UINT64_C(1) << place;
    else if (event->kind == PLI_MEMBER_LEFT) c->left |= 1;
    if (event->rank == c->from && event->kind == PLI_MEMBER_LEFT) {
        pli_server_end(server, out); /* all workers had said good-bye */
        return;
    }
    if (event->rank == c->from) come_from(server, next_source(server));
    const bool was_next = event->rank == c->to;
    if (was_next) lose_behind(server, event->kind == PLI_MEMBER_LEFT);
    if (c->serves && !c->abandoned && (was_next || pli_relay_is_long(server))) pli_replicas_tell_again(server, out);
    if (was_next || pli_relay_is_long(server)) pli_relay_look_behind(server, now_ns, out);
    if (was_next && c->serves && !c->making) pli_server_look_again(server, now_ns, out); /* calls have waited */
    if (!follow_first(server, now_ns, out) && c->leads) pli_replicas_settle(server, now_ns, out);
    pli_moves_look(server, now_ns, out);
}

void pli_replicas_hear_list(pli_server *server, const pli_list *list, uint64_t key, int32_t maker) {
    pli_replicas *c = server->replicas;
    c->moves.list = *list;
    c->moves.key = key;
    if (maker > c->maker) c->maker = maker;
}

void pli_relay_follow_list(pli_server *server, uint64_t now_ns, pli_out *out) {
    (void)follow_first(server, now_ns, out);
    pli_relay_look_behind(server, now_ns, out);
}

void pli_relay_pass_over(pli_server *server, uint64_t now_ns, pli_out *out) {
    lose_behind(server, false);
    if (server->replicas->serves) pli_replicas_tell_again(server, out);
    pli_relay_look_behind(server, now_ns, out);
}
