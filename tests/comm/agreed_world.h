/* tests/comm/agreed_world.h - a world of bare machines that agree on steps (comm/agreed.h), and what may happen in it.
 *
 * A world has ranks, and messages in order between each two of them. Rank h has an item, which must be in the sum of
 * each step once. A rank gives its part of an attempt: its items, and those that it has from the dead. The sum of an
 * attempt is there for a rank when all ranks of the attempt have given their parts (a real collective comes later at
 * most). Any of these may be next:
 *
 *   a message arrives; a rank stands in for the dead; a rank gives its part; a rank gets a sum; a rank is killed; a
 *   rank hears of a death (in any order; then it hears no more from the dead)
 *   a rank is cut off: the others take it for dead, each at its time, but it goes on. It still hears of deaths before,
 *   and from those that have not heard of its own
 *
 * When a rank commits a step, each item must be in that attempt's sum once: none is lost, none is doubled. All ranks
 * must commit the same attempt, those that are cut off, too. When nothing more can happen, all ranks that nobody takes
 * for dead must have ended all steps. */
#ifndef PLI_TESTS_COMM_AGREED_WORLD_H
#define PLI_TESTS_COMM_AGREED_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/agreed.h"

enum { RANKS = 6, STEPS = 3, QUEUE = 24, GIVEN = 12 };

typedef struct letter {
    uint8_t kind, arg, dead_count, step;
    uint8_t dead; /* a bit each */
} letter;

/* A rank's part of an attempt: how often it has each item. */
typedef struct given {
    uint8_t step, dead, count[RANKS];
} given;

typedef struct rank {
    pli_agreed a;
    uint8_t    lives, heard; /* the dead that it knows                   */
    uint8_t    cut_off;      /* the others take it for dead, and it hears of nobody but ... */
    uint8_t    before;       /* ... those who were dead before            */
    uint8_t    stood;        /* the dead whose items it takes as shared out */
    uint8_t    count[RANKS]; /* how often each item is in its part of the step */
    uint8_t    gives;        /* how many parts it has given               */
    given      part[GIVEN];
    uint8_t    gave;         /* in the attempt that is under way          */
} rank;

typedef struct world {
    int32_t ranks, steps, kills, cuts; /* how many ranks may die yet; may be cut off yet */
    uint8_t dead;
    int16_t of[STEPS]; /* whom the committed attempt left out; -1: no rank has committed the step */
    uint8_t queued[RANKS][RANKS];
    letter  queue[RANKS][RANKS][QUEUE];
    rank    rank[RANKS];
} world;

/* The living rank that has the item when these are dead. It is the next one: another death moves the items of that rank
 * alone. */
static inline int32_t holder(const world *w, uint8_t dead, int32_t item) {
    while ((dead >> item & 1) != 0) item = (item + 1) % w->ranks;
    return item;
}

static inline void begin_step(const world *w, int32_t r) {
    rank *me = &((world *)w)->rank[r];
    for (int32_t i = 0; i < w->ranks; i++) me->count[i] = holder(w, me->stood, i) == r;
}

static inline void make(world *w, int32_t ranks, int32_t steps, int32_t kills, int32_t cuts) {
    memset(w, 0, sizeof *w);
    w->ranks = ranks;
    w->steps = steps;
    w->kills = kills;
    w->cuts = cuts;
    for (int32_t s = 0; s < STEPS; s++) w->of[s] = -1;
    for (int32_t r = 0; r < ranks; r++) {
        assert_true(pli_agreed_init(&w->rank[r].a, r, ranks));
        w->rank[r].lives = 1;
        begin_step(w, r);
    }
}

static inline void end(world *w) {
    for (int32_t r = 0; r < w->ranks; r++) pli_agreed_destroy(&w->rank[r].a);
}

static inline void copy_agreed(pli_agreed *to, const pli_agreed *from) {
    const pli_agreed own = *to;
    *to = *from;
    to->dead = own.dead;
    to->of = own.of;
    to->attempt = own.attempt;
    to->word = own.word;
    to->word_of = own.word_of;
    *to->dead = *from->dead;
    *to->of = *from->of;
    *to->attempt = *from->attempt;
    memcpy(to->word, from->word, (size_t)from->ranks * sizeof *from->word);
    memcpy(to->word_of, from->word_of, (size_t)from->ranks * sizeof *from->word_of);
}

/* to: made with as many ranks. */
static inline void copy(world *to, const world *from) {
    pli_agreed a[RANKS];
    for (int32_t r = 0; r < from->ranks; r++) a[r] = to->rank[r].a;
    *to = *from;
    for (int32_t r = 0; r < from->ranks; r++) {
        copy_agreed(&a[r], &from->rank[r].a);
        to->rank[r].a = a[r];
    }
}

/* --- what is wrong ------------------------------------------------------------------------------------------------ */

static const char *wrong; /* the first thing that went wrong in this schedule */

static inline const given *part_of(const rank *r, int64_t step, uint64_t dead) {
    for (int i = 0; i < r->gives; i++)
        if (r->part[i].step == step && r->part[i].dead == dead) return &r->part[i];
    return NULL;
}

static inline void check_commit(world *w, int32_t r, int64_t step) {
    const uint64_t of = *w->rank[r].a.of;
    if (w->of[step] >= 0 && (uint64_t)w->of[step] != of) wrong = "two attempts of a step are committed";
    if (w->rank[r].stood != of) wrong = "a rank has stood in for others than those that the attempt left out";
    w->of[step] = (int16_t)of;
    for (int32_t i = 0; i < w->ranks; i++) {
        int times = 0;
        for (int32_t v = 0; v < w->ranks; v++) {
            if ((of >> v & 1) != 0) continue;
            const given *part = part_of(&w->rank[v], step, of);
            times += part != NULL ? part->count[i] : 0;
        }
        if (times == 0) wrong = "an update is lost";
        if (times > 1) wrong = "an update is doubled";
    }
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static inline void put(world *w, int32_t from, const pli_msg *msg) {
    uint8_t *n = &w->queued[from][msg->head.dst];
    assert_true(*n < QUEUE);
    letter *at = &w->queue[from][msg->head.dst][(*n)++];
    *at = (letter){ .kind = (uint8_t)msg->head.kind, .arg = (uint8_t)msg->head.arg32, .step = (uint8_t)msg->head.clock,
                    .dead_count = (uint8_t)msg->head.flags };
    if (msg->head.body_bytes > 0) at->dead = (uint8_t)*(const uint64_t *)pli_msg_body(msg);
}

/* Takes what an event has brought to rank r, which was in this step and attempt. */
static inline void finish(world *w, int32_t r, int64_t step, pli_out *out) {
    rank *me = &w->rank[r];
    if (out->error.code < 0) wrong = "a machine has failed";
    for (const pli_msg *msg = out->first; msg != NULL; msg = msg->next)
        if (w->rank[msg->head.dst].lives && (w->rank[msg->head.dst].heard >> r & 1) == 0) put(w, r, msg);
    pli_out_drop(out);
    if (me->a.step > step + 1) wrong = "two steps are committed at once";
    if (me->a.step > step) {
        check_commit(w, r, step);
        me->gave = 0;
        begin_step(w, r);
    }
}

static inline void deliver(world *w, int32_t from, int32_t to) {
    const letter  l = w->queue[from][to][0];
    const int64_t step = w->rank[to].a.step;
    pli_msg      *msg = pli_msg_new(l.kind == PLI_AGREED_TELLS ? sizeof(uint64_t) : 0);
    pli_out       out;
    pli_out_init(&out);
    assert_non_null(msg);
    memmove(w->queue[from][to], w->queue[from][to] + 1, (size_t)--w->queued[from][to] * sizeof l);
    w->queue[from][to][w->queued[from][to]] = (letter){ 0 };
    msg->head.kind = l.kind;
    msg->head.src = from;
    msg->head.dst = to;
    msg->head.arg32 = l.arg;
    msg->head.flags = l.dead_count;
    msg->head.clock = l.step;
    if (l.kind == PLI_AGREED_TELLS) *(uint64_t *)pli_msg_body(msg) = l.dead;
    pli_agreed_take(&w->rank[to].a, msg, &out);
    pli_msg_free(&msg);
    finish(w, to, step, &out);
}

static inline bool may_work(const world *w, int32_t r) {
    const rank *me = &w->rank[r];
    return me->lives && me->a.decided && !me->a.summed && me->a.step < w->steps;
}

static inline bool may_stand(const world *w, int32_t r) {
    return may_work(w, r) && w->rank[r].stood != *w->rank[r].a.attempt;
}

static inline void stand(world *w, int32_t r) {
    rank *me = &w->rank[r];
    for (int32_t i = 0; i < w->ranks; i++)
        me->count[i] += holder(w, (uint8_t)*me->a.attempt, i) == r && holder(w, me->stood, i) != r;
    me->stood = (uint8_t)*me->a.attempt;
}

static inline bool may_give(const world *w, int32_t r) {
    return may_work(w, r) && !w->rank[r].gave && w->rank[r].stood == *w->rank[r].a.attempt;
}

static inline void give(world *w, int32_t r) {
    rank *me = &w->rank[r];
    assert_true(me->gives < GIVEN);
    given *part = &me->part[me->gives++];
    *part = (given){ .step = (uint8_t)me->a.step, .dead = me->stood };
    memcpy(part->count, me->count, sizeof part->count);
    me->gave = 1;
}

/* A sum may be there late, too: when the rank has told of a death, and has not decided. Then it must not count. (One
 * that is cut off may never decide, and would get it for ever.) */
static inline bool may_sum(const world *w, int32_t r) {
    const rank *me = &w->rank[r];
    if (!me->lives || me->a.summed || me->a.step >= w->steps || (me->cut_off && !me->a.decided)) return false;
    for (int32_t v = 0; v < w->ranks; v++)
        if ((*me->a.attempt >> v & 1) == 0 && part_of(&w->rank[v], me->a.step, *me->a.attempt) == NULL) return false;
    return true;
}

static inline void sum(world *w, int32_t r) {
    const int64_t step = w->rank[r].a.step;
    pli_out       out;
    pli_out_init(&out);
    pli_agreed_summed(&w->rank[r].a, &out);
    finish(w, r, step, &out);
}

static inline void kill_rank(world *w, int32_t r) {
    w->rank[r].lives = 0;
    w->dead |= (uint8_t)(1 << r);
    w->kills--;
    for (int32_t v = 0; v < w->ranks; v++) {
        memset(w->queue[v][r], 0, sizeof w->queue[v][r]);
        w->queued[v][r] = 0;
    }
}

static inline void cut_off(world *w, int32_t r) {
    w->rank[r].cut_off = 1;
    w->rank[r].before = w->dead;
    w->dead |= (uint8_t)(1 << r);
    w->cuts--;
}

static inline bool may_hear(const world *w, int32_t r, int32_t whom) {
    const rank *me = &w->rank[r];
    return r != whom && (w->dead >> whom & 1) != 0 && (me->heard >> whom & 1) == 0 &&
           (!me->cut_off || (me->before >> whom & 1) != 0);
}

static inline void hear(world *w, int32_t r, int32_t whom) {
    const int64_t step = w->rank[r].a.step;
    pli_out       out;
    pli_out_init(&out);
    w->rank[r].heard |= (uint8_t)(1 << whom);
    w->rank[r].gave = 0;
    memset(w->queue[whom][r], 0, sizeof w->queue[whom][r]);
    w->queued[whom][r] = 0;
    pli_agreed_died(&w->rank[r].a, whom, &out);
    finish(w, r, step, &out);
}

/* --- schedules ---------------------------------------------------------------------------------------------------- */

typedef struct event {
    enum { DELIVER, STAND, GIVE, SUM, HEAR, KILL, CUT_OFF } kind;
    int32_t rank, other;
} event;

enum { EVENTS = 2 * RANKS * RANKS + 5 * RANKS };

static inline int list(const world *w, event *all) {
    int n = 0;
    for (int32_t r = 0; r < w->ranks; r++) {
        if (!w->rank[r].lives) continue;
        for (int32_t v = 0; v < w->ranks; v++) {
            if (w->queued[v][r] > 0) all[n++] = (event){ DELIVER, r, v };
            if (may_hear(w, r, v)) all[n++] = (event){ HEAR, r, v };
        }
        if (may_stand(w, r)) all[n++] = (event){ STAND, r, 0 };
        if (may_give(w, r)) all[n++] = (event){ GIVE, r, 0 };
        if (may_sum(w, r)) all[n++] = (event){ SUM, r, 0 };
    }
    return n;
}

/* Somebody dies, or is cut off. One rank remains. */
static inline int list_losses(const world *w, event *all) {
    int n = 0, left = 0;
    for (int32_t r = 0; r < w->ranks; r++) left += (w->dead >> r & 1) == 0;
    for (int32_t r = 0; left > 1 && r < w->ranks; r++) {
        if ((w->dead >> r & 1) != 0) continue;
        if (w->kills > 0) all[n++] = (event){ KILL, r, 0 };
        if (w->cuts > 0) all[n++] = (event){ CUT_OFF, r, 0 };
    }
    return n;
}

static inline void happen(world *w, const event *e) {
    switch (e->kind) {
    case DELIVER: deliver(w, e->other, e->rank); return;
    case STAND: stand(w, e->rank); return;
    case GIVE: give(w, e->rank); return;
    case SUM: sum(w, e->rank); return;
    case HEAR: hear(w, e->rank, e->other); return;
    case KILL: kill_rank(w, e->rank); return;
    case CUT_OFF: cut_off(w, e->rank); return;
    }
}

static inline void check_end(const world *w) {
    for (int32_t r = 0; r < w->ranks; r++)
        if ((w->dead >> r & 1) == 0 && w->rank[r].a.step < w->steps) wrong = "a living rank waits for ever";
}

static inline uint64_t hash_of(const world *w) {
    uint64_t hash = pli_hash_bytes(w->queue, sizeof w->queue, pli_hash_bytes(w->of, sizeof w->of, w->dead));
    for (int32_t r = 0; r < w->ranks; r++) {
        const rank       *me = &w->rank[r];
        const pli_agreed *a = &me->a;
        const uint64_t    own[] = { me->lives,        me->heard,           me->stood,         me->gave, me->gives,
                                    me->cut_off,      me->before,
                                    (uint64_t)a->step, a->decided,         a->summed,         *a->dead, *a->of,
                                    *a->attempt,      (uint64_t)a->round, a->come[0],        a->come[1] };
        hash = pli_hash_bytes(own, sizeof own, pli_hash_bytes(me->part, sizeof me->part, hash));
        hash = pli_hash_bytes(me->count, sizeof me->count, hash);
        for (int32_t v = 0; v < w->ranks; v++) {
            const uint64_t told[] = { (uint64_t)a->word[v].step, a->word[v].summed, a->word_of[v] };
            hash = pli_hash_bytes(told, sizeof told, hash);
        }
    }
    return hash;
}

#endif
