/* A worker of a schedule of replicas: it reads, adds as its policies let it, ends its clock, stands in for the dead,
 * meets the others, and leaves. It never blocks: what it cannot do yet it tries again later. See replicas_world.h. */
#include "table/replicas_world.h"

enum { MANY = 90 /* reads of a clock that has many messages */ };

static pli_out *enter(world *w, int32_t k, uint64_t *now) { return direct_enter(w->d, k, PLI_PORT_CLIENT, now); }

static void     leave(world *w, int32_t k) { direct_leave(w->d, k, PLI_PORT_CLIENT); }

/* --- reads -------------------------------------------------------------------------------------------------------- */

static void begin_read(world *w, int32_t k) {
    worker     *me = &w->worker[k];
    uint64_t    now;
    pli_out    *out = enter(w, k, &now);
    plait_status status;
    if (w->spec[me->reads].rows > 0 && pick(w, 2) == 0)
        status = pli_ask_range(&me->client, now, me->table[me->reads], 0, ROWS, me->values, &me->ask, out, NULL);
    else
        status = pli_ask_keys(&me->client, now, me->table[me->reads], HOT, w->hot, me->values, &me->ask, out, NULL);
    leave(w, k);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    me->asking = true; /* whatever came of it, the ask is given up at the end */
    if (status < 0) me->state = DEAD; /* it has heard that it is taken for dead */
}

static bool end_read(world *w, int32_t k, bool last) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (!pli_ticket_done(&me->ask.ticket)) return false;
    SURE(w, w->zombie[k] || me->ask.ticket.failure.code == 0);
    enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ask.ticket);
    leave(w, k);
    SURE(w, pli_ask_finish(&me->client, &me->ask, NULL) == PLAIT_OK);
    if (!w->zombie[k]) check_read(w, k, last);
    pli_ask_abandon(&me->ask);
    me->asking = false;
    me->reads++;
    return true;
}

/* --- server functions --------------------------------------------------------------------------------------------- */

/* Calls the next table that is due in the clock. false: there is none. */
static bool begin_call(world *w, int32_t k) {
    worker *me = &w->worker[k];
    while (me->calls < w->tables && !is_called(w, me->calls)) me->calls++;
    if (!(w->calls >> me->clock & 1) || me->calls == w->tables) return false;
    if (w->strikes_calls && w->death_at == INT64_MAX) w->death_at = direct_events(w->d) + (int64_t)pick(w, 60);
    const int32_t        t = me->calls;
    const pli_placement *placement = &w->spec[t].placement;
    const pli_wire_call  call = { .updates = 1, .n_tables = 1, .rows = w->spec[t].rows,
                                  .number = ++me->client.calls, .answer_bytes = sizeof(double) };
    plait_status status = PLAIT_OK;
    uint64_t     now;
    pli_out     *out = enter(w, k, &now);
    pli_ticket_open(&me->client, &me->ticket);
    pli_cache_forget(me->table[t]);
    for (int32_t i = 0; i < placement->shards && status >= 0; i++) {
        pli_msg *msg = pli_msg_new(sizeof call + 8);
        memcpy(pli_msg_body(msg), &call, sizeof call);
        memcpy(pli_at(pli_msg_body(msg), sizeof call), &(uint32_t[]){ (uint32_t)w->spec[t].id, 0 }, 8);
        msg->head.clock = me->client.clock;
        status = pli_client_send(&me->client, now, pli_placement_rank(placement, i) - placement->first_rank, PLI_CALL,
                                 msg, &me->ticket, out, NULL);
    }
    leave(w, k);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    me->waiting = true;
    me->state = status < 0 ? DEAD : CALLING;
    return true;
}

/* What the log says of the answers: each server's, by shard. */
static void raise_call(const world *w, int32_t k) {
    const worker           *me = &w->worker[k];
    const int32_t           t = me->calls, shards = w->spec[t].placement.shards;
    const pli_function_call call = { .fn = &w->function, .rows = w->spec[t].rows };
    pli_event_ran           ran[RANKS_MAX] = { { 0 } };
    for (const pli_msg *reply = me->ticket.replies; reply != NULL; reply = reply->next) {
        const int32_t shard = pli_placement_shard_at(&w->spec[t].placement, reply->head.src);
        ran[shard] = (pli_event_ran){ .shard = shard, .answer = pli_function_answered(pli_msg_body(reply),
                                                                                     reply->head.body_bytes) };
    }
    pli_raise_call(sink_of(w), k, me->client.clock, me->client.calls, 1, &w->spec[t].id, &call, shards, ran);
}

static bool end_call(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (!pli_ticket_done(&me->ticket)) return false;
    SURE(w, w->zombie[k] || me->ticket.failure.code == 0);
    if (!w->zombie[k]) check_call(w, k);
    if (!w->zombie[k]) raise_call(w, k);
    enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ticket);
    leave(w, k);
    pli_ticket_free(&me->ticket);
    me->waiting = false;
    me->calls++;
    me->state = READY;
    return true;
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

/* The worker that computes what belongs to v's rows, of hot row h. */
static int32_t holder(const world *w, int32_t k, int32_t v, int h, const uint8_t *dead) {
    const pli_client one = { .layout = w->layout, .replaced = (uint8_t *)(uintptr_t)dead,
                             .dead = w->worker[k].client.dead };
    return pli_client_holder(&one, v, (uint64_t)h, false);
}

/* The hot rows of worker v that worker k holds when `now` are dead, and did not hold when `before` were (NULL: nobody
 * has computed). Returns how many. */
static int64_t held(const world *w, int32_t k, int32_t v, int t, const uint8_t *before, const uint8_t *now,
                    uint64_t *keys, double *delta) {
    const worker *me = &w->worker[k];
    const double  bits = (double)(UINT64_C(1) << (me->in_vain ? BAD : me->clock));
    int64_t       n = 0;
    memset(delta, 0, HOT * WORKERS_MAX * sizeof *delta);
    for (int h = 0; h < HOT; h++) {
        if (!adds(w, t, v, me->clock, h) || holder(w, k, v, h, now) != k) continue;
        if (before != NULL && holder(w, k, v, h, before) == k) continue;
        delta[n * w->workers + v] = bits * share(w, t, h);
        for (int32_t i = 0; w->replaces[t] && i < w->workers; i++)
            delta[n * w->workers + i] = me->in_vain ? -1 : mark_of(v, me->clock);
        keys[n++] = w->hot[h];
    }
    return n;
}

static void add_update(world *w, int32_t k, int t, int64_t n, const uint64_t *keys, const double *delta) {
    worker *me = &w->worker[k];
    SURE(w, pli_pending_add(&me->table[t]->pending, n, keys, delta, 0, NULL) == PLAIT_OK);
    me->table[t]->incs++;
    pli_raise_inc(sink_of(w), k, &w->spec[t], n, keys, 0, delta);
}

/* Where updates apply at once nobody stands in. */
static void add_held(world *w, int32_t k, const uint8_t *before, const uint8_t *now) {
    for (int32_t v = 0; v < w->workers; v++)
        for (int t = 0; t < w->tables; t++) {
            double   delta[HOT * WORKERS_MAX];
            uint64_t keys[HOT];
            const int64_t n = w->stale[t] ? 0 : held(w, k, v, t, before, now, keys, delta);
            if (n > 0 || (v == k && !w->stale[t])) add_update(w, k, t, n, keys, delta);
        }
}

/* To who is only taken for dead all that serve may die. */
static void send_push(world *w, int32_t k, pli_client_table *table, pli_kind kind) {
    worker  *me = &w->worker[k];
    uint64_t now;
    SURE(w, pli_client_build_push(&me->client, table, kind, NULL) == PLAIT_OK);
    pli_out           *out = enter(w, k, &now);
    const plait_status status = pli_client_send_push(&me->client, now, kind, out, NULL);
    leave(w, k);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    if (status < 0) me->state = DEAD;
}

/* Asks the servers for a turn, or until they have applied what was sent. */
static void ask_turn(world *w, int32_t k, pli_client_table *table, int what) {
    uint64_t now;
    if (what == PLAIT_SETTLE && table->pending.touched) send_push(w, k, table, PLI_PUSH);
    if (w->worker[k].state == DEAD) return;
    pli_out *out = enter(w, k, &now);
    SURE(w, pli_ask_turn(&w->worker[k].client, now, table, what, &w->worker[k].ask, out, NULL) == PLAIT_OK);
    leave(w, k);
    w->worker[k].asking = true;
}

static bool turn_has_come(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (!me->asking) return true;
    if (!pli_ticket_done(&me->ask.ticket)) return false;
    SURE(w, w->zombie[k] || me->ask.ticket.failure.code == 0);
    enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ask.ticket);
    leave(w, k);
    SURE(w, pli_ask_finish(&me->client, &me->ask, NULL) == PLAIT_OK);
    pli_ask_abandon(&me->ask);
    me->asking = false;
    return true;
}

/* Adds what the worker holds, one update after the other, each as its policy wants it (served_inc). false: it waits.
 * *done_out: all is added. */
static bool step_adding(world *w, int32_t k, bool *done_out) {
    worker           *me = &w->worker[k];
    const int         t = me->item / w->workers;
    const int32_t     v = me->item % w->workers;
    double            delta[HOT * WORKERS_MAX];
    uint64_t          keys[HOT];
    *done_out = false;
    if (!turn_has_come(w, k)) return false;
    if (t == w->tables) {
        me->item = me->phase = 0;
        *done_out = true;
        return true;
    }
    pli_client_table *table = me->table[t];
    /* Items of one that was ahead may be done twice where updates apply at once (docs/failures.md). */
    const int64_t     n = held(w, k, v, t, NULL, w->stale[t] ? NULL : me->covers, keys, delta);
    if (n == 0 && v != k) me->phase = 4;
    if (me->phase == 0) SURE(w, pli_client_on_inc(&me->client, table, n, keys, delta, &me->want, NULL) == PLAIT_OK);
    if (me->phase == 0 && (me->want & PLAIT_TURN)) ask_turn(w, k, table, PLAIT_TURN);
    if (me->phase == 1 && (me->want & PLAIT_SETTLE_FIRST)) ask_turn(w, k, table, PLAIT_SETTLE);
    if (me->phase == 2) add_update(w, k, t, n, keys, delta);
    if (n > 0 && v != k) w->mixed |= UINT64_C(1) << me->clock;
    if (me->phase == 3 && (me->want & PLAIT_SETTLE)) ask_turn(w, k, table, PLAIT_SETTLE);
    me->item += me->phase == 4;
    me->phase = (me->phase + 1) % 5;
    return true;
}

static void send_kept(world *w, int32_t k) {
    for (int t = 0; t < w->tables; t++)
        if (w->worker[k].table[t]->kept && w->worker[k].state != DEAD)
            send_push(w, k, w->worker[k].table[t], PLI_PUSH);
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

static bool has_ended(const worker *me) { return me->clock == CLOCKS || me->left; }

static plait_status send_gather(worker *me, int32_t k, uint64_t now, pli_out *out) {
    uint64_t mine[WORKERS_MAX];
    me->gathering = me->client.barriers + 1;
    for (int32_t i = 0; i <= k; i++) mine[i] = brought(k, me->gathering);
    return pli_client_send_gather(&me->client, now, mine, (size_t)(k + 1) * sizeof *mine, &me->ticket, out, NULL);
}

static void ask_all(world *w, int32_t k, pli_kind kind) {
    worker      *me = &w->worker[k];
    const bool   meets = kind == PLI_BARRIER;
    const bool   gathers = meets && !has_ended(me) && (w->gathers >> (me->client.barriers + 1) & 1);
    uint64_t     now;
    plait_status status;
    pli_out     *out = enter(w, k, &now);
    pli_ticket_open(&me->client, &me->ticket);
    me->waiting = true;
    if (gathers && me->client.barriers + 1 == w->strikes_at) w->death_at = direct_events(w->d) + (int64_t)pick(w, 40);
    if (gathers) status = send_gather(me, k, now, out);
    else status = pli_client_send_all(&me->client, now, kind, &me->ticket, out, NULL);
    SURE(w, status == PLAIT_OK);
    leave(w, k);
}

static bool answered(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (!pli_ticket_done(&me->ticket)) return false;
    SURE(w, me->ticket.failure.code == 0);
    if (me->gathering > 0 && !w->zombie[k]) check_gathered(w, k);
    me->gathering = 0;
    enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ticket);
    leave(w, k);
    pli_ticket_free(&me->ticket);
    me->waiting = false;
    return true;
}

/* As after every barrier. */
static void forget_copies(world *w, int32_t k) {
    uint64_t now;
    enter(w, k, &now);
    for (int t = 0; t < w->tables; t++) {
        pli_cache_forget(w->worker[k].table[t]);
        pli_cache_drop_fresh(w->worker[k].table[t]);
    }
    leave(w, k);
}

/* --- the end of a clock ------------------------------------------------------------------------------------------- */

/* Does it leave with this clock? */
static bool goes(world *w, int32_t k) {
    worker *me = &w->worker[k];
    if (me->goes == 0 || pick(w, 3) > 0) return false;
    me->goes--;
    return true;
}

static void begin_clock_end(world *w, int32_t k) {
    worker *me = &w->worker[k];
    me->state = ENDING;
    me->client.leaving = goes(w, k);
    note_kept(w, k);
    if (pick(w, 4) == 0 && w->layout.backup == 0) send_push(w, k, me->table[0], PLI_PUSH); /* some leaves early */
    if (me->state == ENDING) send_push(w, k, NULL, PLI_CLOCK);
}

static void enter_clock(world *w, worker *me) {
    me->again = me->clock == w->many_in ? MANY : 0;
    me->reads = me->calls = 0;
    me->state = READY;
}

static void leave_early(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    pli_out *out = enter(w, k, &now);
    SURE(w, pli_client_send_all(&me->client, now, PLI_LEAVE, NULL, out, NULL) == PLAIT_OK);
    me->client.left = me->left = true;
    leave(w, k);
    pli_raise(sink_of(w), k, false, PLI_EVENT_LEAVE);
}

/* It is in the next clock: perhaps all meet first. */
static void after_clock(world *w, int32_t k) {
    worker *me = &w->worker[k];
    enter_clock(w, me);
    if (!has_ended(me) && !(w->barriers >> me->clock & 1)) return;
    send_kept(w, k);
    if (me->state == DEAD) return;
    ask_all(w, k, PLI_BARRIER);
    me->state = IN_BARRIER;
}

/* Without slots nobody comes again: the first server may have no shard, and so may not say who is in. */
void ask_join(world *w, int32_t k) {
    worker       *me = &w->worker[k];
    const bool    never = w->layout.slots == 0 || pick(w, 6) == 0;
    const int64_t from = never ? INT64_MAX : me->clock + (int64_t)pick(w, 4);
    const uint64_t sooner = w->layout.slots > 0 && pick(w, 3) == 0 ? pick(w, 2000000) : PLI_NEVER;
    uint64_t      now;
    pli_out      *out = enter(w, k, &now);
    pli_ticket_open(&me->client, &me->ticket);
    const plait_status status = pli_client_ask_join(
        &me->client, now, from, sooner == PLI_NEVER ? PLI_NEVER : now + sooner, &me->ticket, out, NULL);
    me->told = never && sooner != PLI_NEVER;
    leave(w, k);
    if (w->strikes_joins && w->death_at == INT64_MAX && me->clock > 0)
        w->death_at = direct_events(w->d) + (int64_t)pick(w, pick(w, 2) == 0 ? 40 : 400);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    me->waiting = status == PLAIT_OK;
    me->state = status == PLAIT_OK ? AWAY : DEAD;
}

static bool end_away(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    bool     over = false;
    if (!pli_ticket_done(&me->ticket)) return false;
    SURE(w, me->ticket.failure.code == 0);
    pli_out *out = enter(w, k, &now);
    pli_ticket_unlink(&me->client, &me->ticket);
    SURE(w, pli_client_take_join(&me->client, now, me->ticket.replies, &over, out, NULL) == PLAIT_OK);
    leave(w, k);
    pli_ticket_free(&me->ticket);
    me->waiting = false;
    me->clock = me->client.clock;
    memcpy(me->covers, me->client.replaced, (size_t)w->workers);
    if (!over) {
        w->sooner += me->told;
        w->returned_in += w->back[k] && me->clock < CLOCKS;
        after_clock(w, k);
        return true;
    }
    SURE(w, me->clock == CLOCKS || w->zombie[k]);
    ask_all(w, k, PLI_BYE);
    me->state = LEAVING;
    return true;
}

static void go_away(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    pli_out *out = enter(w, k, &now);
    SURE(w, pli_client_say_leaves(&me->client, now, out, NULL) == PLAIT_OK || w->zombie[k]);
    leave(w, k);
    ask_join(w, k);
}

static bool end_clock(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint64_t now;
    if (pli_client_is_safe(&me->client)) {
        pli_out *out = enter(w, k, &now);
        pli_client_end_clock(&me->client);
        if (w->elastic) SURE(w, pli_client_follow_roster(&me->client, now, out, NULL) == PLAIT_OK || w->zombie[k]);
        leave(w, k);
        me->clock++;
        if (w->elastic) memcpy(me->covers, me->client.replaced, (size_t)w->workers);
        SURE(w, w->zombie[k] || me->client.leaving == (me->client.left && !me->left));
        me->client.leaving = false;
        enter_clock(w, me);
        if (me->client.left && !me->left) {
            go_away(w, k);
            return true;
        }
        if (k == w->leaver && me->clock == w->leaves_at) {
            send_kept(w, k);
            leave_early(w, k);
        }
        after_clock(w, k);
        return true;
    }
    if (!pli_client_must_stand_in(&me->client)) return false;
    enter(w, k, &now);
    pli_client_begin_standing_in(&me->client, NULL);
    leave(w, k);
    me->in_vain = false;
    me->reads = 0;
    me->state = STANDING_IN;
    return true;
}

static void send_stand_in(world *w, int32_t k) {
    worker  *me = &w->worker[k];
    uint8_t  before[WORKERS_MAX];
    uint64_t now;
    memcpy(before, me->covers, sizeof before);
    memcpy(me->covers, me->client.next, (size_t)w->workers);
    bool earlier = false; /* items of one that died before may have been the dead one's */
    for (int32_t v = 0; v < w->workers; v++) {
        if (me->covers[v] && !before[v]) w->fell[me->clock] |= 1U << v;
        earlier = earlier || before[v];
    }
    if (earlier || __builtin_popcount(w->fell[me->clock]) > 1) w->mixed |= UINT64_C(1) << me->clock;
    add_held(w, k, before, me->covers);
    me->in_vain = false;
    SURE(w, pli_client_build_push(&me->client, NULL, PLI_PUSH, NULL) == PLAIT_OK);
    pli_out           *out = enter(w, k, &now);
    const plait_status status = pli_client_send_view(&me->client, now, out, NULL);
    leave(w, k);
    SURE(w, status == PLAIT_OK || w->zombie[k]);
    me->state = status < 0 ? DEAD : ENDING;
    if (k == w->second && w->second_stands_in) w->second_at = direct_events(w->d) + (int64_t)pick(w, 50);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

bool step_worker(world *w, int32_t k) {
    worker *me = &w->worker[k];
    bool    done;
    switch (me->state) {
    case READY:
        if (begin_call(w, k)) return true;
        me->state = READING;
        begin_read(w, k);
        return true;
    case CALLING: return end_call(w, k);
    case READING:
        if (!end_read(w, k, false)) return false;
        me->state = me->reads < w->tables ? READY : ADDING;
        if (me->again-- > 0) { /* once more, from the server */
            forget_copies(w, k);
            me->reads--;
            me->state = READY;
        }
        return true;
    case ADDING:
        if (!step_adding(w, k, &done)) return false;
        if (done) begin_clock_end(w, k);
        return true;
    case ENDING: return end_clock(w, k);
    case STANDING_IN:
        me->state = STANDING_READS;
        begin_read(w, k);
        return true;
    case STANDING_READS:
        if (!end_read(w, k, false)) return false;
        me->state = STANDING_IN;
        if (me->reads == w->tables) send_stand_in(w, k);
        return true;
    case IN_BARRIER:
        done = me->gathering == 0; /* else the first server alone was asked */
        if (!answered(w, k)) return false;
        if (done) pli_raise(sink_of(w), k, false, PLI_EVENT_BARRIER);
        forget_copies(w, k);
        me->reads = 0;
        me->client.met = has_ended(me); /* what it reads is not rounded */
        me->state = has_ended(me) ? LAST_READ : READY;
        return true;
    case LAST_READ:
        if (!me->asking) {
            if (me->reads == w->tables) {
                ask_all(w, k, PLI_BYE);
                me->state = LEAVING;
                return true;
            }
            begin_read(w, k);
            return true;
        }
        return end_read(w, k, true);
    case LEAVING:
        if (!answered(w, k)) return false;
        me->state = DONE;
        pli_raise(sink_of(w), k, false, PLI_EVENT_DONE);
        direct_member(w->d, PLI_MEMBER_LEFT, k, NULL);
        return true;
    case AWAY: return end_away(w, k);
    case DONE:
    case DEAD: break;
    }
    return false;
}
