/* Who is in, at a server's replica: those who leave with a clock's end, and those who are let in at one. roster.h has
 * the idea. */
#include "table/copies/roster.h"

#include <string.h>

#include "table/copies/replicas.h"
#include "table/state/values.h"

bool pli_roster_open(pli_server *server) {
    const pli_layout *layout = &server->layout;
    const size_t      workers = (size_t)layout->workers;
    pli_roster       *r = &server->replicas->roster;
    r->away = pli_calloc(workers, 5);
    r->join = pli_calloc(workers, sizeof *r->join);
    if (r->away == NULL || r->join == NULL) return false;
    r->leaves = r->away + workers;
    r->parked = r->leaves + workers;
    r->life = r->parked + workers;
    r->fell = r->life + workers;
    memset(r->life, 1, workers);
    for (int32_t w = layout->workers - layout->slots; w < layout->workers; w++) {
        r->away[w] = 1;
        r->parked[w] = server->number > 0; /* at the first it is once it has asked to join: before, it prepares */
        r->n_away++;
        server->replicas->logged[w] = PLI_LOG_AWAY;
        pli_server_move_clock(server, w, PLAIT_LEFT);
    }
    return true;
}

void pli_roster_close(pli_server *server) {
    pli_roster *r = &server->replicas->roster;
    for (int32_t w = 0; r->join != NULL && w < server->layout.workers; w++) pli_msg_free(&r->join[w]);
    pli_free(r->join);
    pli_free(r->away);
}

void pli_roster_begin_at(pli_server *server, int64_t clock) {
    if (clock <= 0 || server->tables > 0 || !pli_roster_counts(server)) return;
    if (server->first_clock > 0 || pli_replicas_prepared(server) > 0 || server->slowest > 0) return; /* it knows */
    (void)pli_server_begin_at(server, clock);
}

bool pli_roster_is_parked(const pli_server *server, int32_t worker) {
    return server->replicas != NULL && server->replicas->roster.parked[worker] != 0;
}

bool pli_roster_is_away_after(const pli_server *server, int32_t worker, int64_t clock) {
    const pli_roster *r = &server->replicas->roster;
    const pli_msg    *join = r->join[worker];
    int64_t           from = INT64_MAX;
    if (join != NULL) memcpy(&from, pli_msg_body(join), sizeof from);
    return r->leaves[worker] || (r->away[worker] && (r->shut || from > clock + 1 || server->peer[worker].gone));
}

/* The dead one's part in the job is over: all have stood in for it. */
static void unbury(pli_server *server, int32_t worker) {
    pli_replicas *c = server->replicas;
    const int64_t workers = server->layout.workers;
    if (!c->dead[worker]) return;
    c->dead[worker] = 0;
    c->deaths--;
    for (int64_t v = 0; v < workers; v++) c->views[v * workers + worker] = 0;
}

void pli_roster_retire(pli_server *server, int32_t worker) {
    pli_roster *r = &server->replicas->roster;
    unbury(server, worker);
    r->n_away += !r->away[worker];
    r->away[worker] = r->parked[worker] = 1;
    r->leaves[worker] = 0;
    if (server->clocks[worker] != PLAIT_LEFT) pli_server_move_clock(server, worker, PLAIT_LEFT);
}

void pli_roster_admit(pli_server *server, int32_t worker, int64_t from) {
    pli_replicas *c = server->replicas;
    pli_roster   *r = &c->roster;
    r->n_away -= r->away[worker] != 0;
    r->away[worker] = r->parked[worker] = r->leaves[worker] = 0;
    server->peer[worker].ended = from;
    const int64_t workers = server->layout.workers;
    for (int64_t v = 0; v < workers; v++) c->views[worker * workers + v] = c->views[v * workers + worker] = 0;
    pli_server_enter_clock(server, worker, from);
}

void pli_roster_was_in(pli_server *server, int32_t worker) {
    pli_roster *r = &server->replicas->roster;
    r->n_away -= r->away[worker] != 0;
    r->away[worker] = r->parked[worker] = 0;
}

void pli_roster_forget(pli_server *server, int32_t worker) {
    if (server->replicas != NULL) pli_msg_free(&server->replicas->roster.join[worker]);
}

/* --- lives -------------------------------------------------------------------------------------------------------- */

static uint32_t life_of(const pli_member_event *event) { return event->life > 0 ? event->life : 1; }

bool pli_roster_is_past(const pli_server *server, const pli_member_event *event) {
    const uint32_t known = server->replicas->roster.life[event->rank];
    return life_of(event) < known || (life_of(event) == known && event->kind == PLI_MEMBER_JOINED);
}

bool pli_roster_is_stranger(const pli_server *server, const pli_msg *msg) {
    return msg->head.incarnation != server->replicas->roster.life[msg->head.src];
}

bool pli_roster_has_returned(const pli_server *server, int32_t worker) {
    const pli_roster *r = &server->replicas->roster;
    return server->replicas->dead[worker] && r->life[worker] > r->fell[worker];
}

void pli_roster_return(pli_server *server, int32_t worker, uint32_t life) {
    pli_replicas  *c = server->replicas;
    pli_roster    *r = &c->roster;
    pli_peer      *peer = &server->peer[worker];
    const uint64_t before = pli_seq_before(life);
    if (life <= r->life[worker] || life > PLI_LIVES_MAX) return;
    r->life[worker] = (uint8_t)life;
    r->anew = true;
    r->parked[worker] = 1;
    pli_msg_free(&r->join[worker]);
    pli_rx_destroy(&peer->rx);
    if (peer->rx.expected <= before) peer->rx.expected = before + 1;
    peer->rx.incarnation = life;
    pli_tx_destroy(&peer->tx);
    pli_tx_init(&peer->tx, server->layout.resend_after_ns);
    peer->tx.next = before + 1;
    peer->tx.acked = before;
    c->again[worker] = 0;
    server->present += peer->gone;
    peer->gone = false;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* A JOIN that has an answer already may be sent once more (sooner): then it gets another, and nobody waits for that. */
bool pli_roster_join(pli_server *server, pli_msg *msg, pli_out *out) {
    const int32_t worker = msg->head.src;
    pli_roster   *r = server->replicas == NULL ? NULL : &server->replicas->roster;
    const pli_msg *before = r == NULL ? NULL : r->join[worker];
    if (r == NULL || msg->head.body_bytes != sizeof(int64_t) ||
        (before != NULL && before->head.arg32 != msg->head.arg32)) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d asks to join twice, or does not say when", worker);
        return false;
    }
    pli_msg_free(&r->join[worker]);
    r->parked[worker] = r->away[worker] || server->replicas->dead[worker];
    r->join[worker] = msg;
    return true;
}

/* The worker that has sent the roster does, with the others, what belongs to those who are not in. (One who died as it
 * left may be dead here, and away at the first server.) */
static void note_views(pli_server *server, uint64_t now_ns, int32_t worker, const uint8_t *state) {
    pli_replicas  *c = server->replicas;
    const uint8_t *life = state + server->layout.workers;
    for (int32_t v = 0; v < server->layout.workers; v++) {
        if (state[v] == PLI_LOG_HERE) continue;
        c->views[(int64_t)worker * server->layout.workers + v] = 1;
        if (state[v] == PLI_LOG_DEAD && !c->dead[v] && life[v] == c->roster.life[v] && server->clocks[v] != PLAIT_LEFT)
            pli_server_lose(server, now_ns, v);
    }
}

void pli_roster_take(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    const int32_t  workers = server->layout.workers;
    const uint8_t *state = pli_msg_body(msg), *life = state + workers;
    if (server->replicas == NULL || msg->head.body_bytes != pli_roster_size(&server->layout)) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d says who is in, but not of all workers", msg->head.src);
        return;
    }
    if (msg->head.clock < pli_replicas_prepared(server)) return; /* the clock has its SUM: all were in it */
    for (int32_t v = 0; v < workers; v++) {
        const bool dead = server->replicas->dead[v] && life[v] > server->replicas->roster.fell[v];
        if (state[v] != PLI_LOG_HERE || !(server->replicas->roster.away[v] || dead)) continue;
        pli_roster_return(server, v, life[v]);
        if (dead) pli_roster_retire(server, v);
        pli_roster_admit(server, v, msg->head.clock);
        if (!server->peer[v].gone && life[v] == server->replicas->roster.life[v]) continue;
        pli_replicas_bury(server, v);
        server->replicas->roster.fell[v] = life[v];
        server->replicas->roster.parked[v] = server->replicas->roster.life[v] > life[v];
        pli_server_move_clock(server, v, PLAIT_LEFT);
    }
    if (msg->head.arg32 != 0) note_views(server, now_ns, msg->head.src, state);
    pli_server_look_again(server, now_ns, out);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void write_states(const pli_server *server, uint8_t *state) {
    const pli_replicas *c = server->replicas;
    memset(state, PLI_LOG_HERE, (size_t)pli_roster_size(&server->layout));
    for (int32_t w = 0; w < server->layout.workers; w++)
        state[server->layout.workers + w] = c->dead[w] ? c->roster.fell[w] : c->roster.life[w];
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (c->roster.away[w]) state[w] = PLI_LOG_AWAY;
        else if (c->logged[w] == PLI_LOG_DEAD) state[w] = PLI_LOG_DEAD;
}

/* Are all others gone, or do they ask to join? */
static bool nobody_is_in(const pli_server *server) {
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (!server->peer[w].gone && server->replicas->roster.join[w] == NULL) return false;
    return true;
}

static void answer(pli_server *server, uint64_t now_ns, int32_t worker, bool over, pli_out *out) {
    pli_roster *r = &server->replicas->roster;
    const uint64_t met[2] = { over ? PLI_GONE : server->replicas->met, r->barriers };
    pli_msg       *msg = pli_msg_new(sizeof met + (size_t)pli_roster_size(&server->layout));
    if (msg != NULL) {
        msg->head.clock = over ? pli_replicas_prepared(server) : server->peer[worker].ended;
        memcpy(pli_msg_body(msg), met, sizeof met);
        write_states(server, pli_at(pli_msg_body(msg), sizeof met));
    }
    pli_server_reply(server, now_ns, r->join[worker], msg, out);
    pli_msg_free(&r->join[worker]);
}

static void refuse(pli_server *server, uint64_t now_ns, int32_t worker, pli_out *out) {
    pli_msg   **join = &server->replicas->roster.join[worker];
    plait_error why;
    (void)pli_fail(&why, PLAIT_EPEER, "all workers that were in the job have died");
    pli_server_reply_failure(server, now_ns, *join, &why, out);
    pli_msg_free(join);
}

void pli_roster_answer(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (!c->serves) return;
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (c->roster.join[w] != NULL && !c->roster.away[w] && !c->dead[w] && server->applied >= server->peer[w].ended)
            answer(server, now_ns, w, false, out);
    if (!nobody_is_in(server)) return;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        if (c->roster.join[w] == NULL) continue;
        if (c->roster.ends) answer(server, now_ns, w, true, out);
        else refuse(server, now_ns, w, out);
    }
}

pli_msg *pli_roster_before(const pli_server *server, pli_msg *msg) {
    const pli_roster *r = server->replicas == NULL ? NULL : &server->replicas->roster;
    if (msg == NULL || r == NULL || (r->n_away == 0 && !r->anew)) return msg;
    const uint64_t bytes = pli_roster_size(&server->layout);
    pli_msg       *all = pli_msg_new(bytes + msg->head.body_bytes);
    if (all != NULL) {
        write_states(server, pli_msg_body(all));
        if (msg->head.body_bytes > 0)
            memcpy(pli_at(pli_msg_body(all), (int64_t)bytes), pli_msg_body(msg), msg->head.body_bytes);
        all->head.arg32 = (uint32_t)bytes;
    }
    pli_msg_free(&msg);
    return all;
}
