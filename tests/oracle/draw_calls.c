/* draw_calls.c - what each worker of a program calls, and which digit each of its updates gets.
 *
 * All workers make as many clocks, meet at the same barriers, and end each clock by the same call; what lies between
 * is each one's own. One worker may leave: it then comes to the barriers only. In the end all meet, and read
 * everything. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

/* A worker while its calls are drawn. */
typedef struct hand {
    program  *p;
    uint64_t *s;
    int32_t   me, clock;
    int32_t   open[8], n_open;                  /* calls that have been begun */
    bool      flushed[TABLES], counted[TABLES]; /* in this clock: it makes no more incs; it has said its examples */
} hand;

static act *add_call(hand *h, verb kind, int32_t table) {
    int32_t *n = &h->p->n_calls[h->me];
    act     *c = &h->p->calls[h->me][*n];
    if (*n >= CALLS) abort();
    ++*n;
    *c = (act){ .kind = kind, .table = table, .of = -1, .until = *n - 1, .times = 1 };
    return c;
}

static int32_t room_for_calls(const hand *h) { return CALLS - h->p->n_calls[h->me] - 40; }

/* --- lists of keys ------------------------------------------------------------------------------------------------ */

static void add_key(program *p, act *c, uint64_t key, int32_t in) {
    if (p->n_keys == p->room) {
        p->room = p->room * 2 + 256;
        p->keys = realloc(p->keys, p->room * sizeof *p->keys);
        p->in = realloc(p->in, p->room * sizeof *p->in);
        if (p->keys == NULL || p->in == NULL) abort();
    }
    if (c->n == 0) c->at = p->n_keys;
    p->keys[p->n_keys] = key;
    p->in[p->n_keys++] = (int16_t)in;
    c->n++;
}

static void swap_keys(program *p, size_t a, size_t b) {
    const uint64_t key = p->keys[a];
    const int16_t  in = p->in[a];
    p->keys[a] = p->keys[b], p->in[a] = p->in[b];
    p->keys[b] = key, p->in[b] = in;
}

/* Puts keys in increasing or in any order. */
static void order_keys(program *p, const act *c, uint64_t *s) {
    const bool shuffled = draw_one_in(s, 2);
    for (int64_t i = c->n - 1; i > 0; i--) {
        if (shuffled) swap_keys(p, c->at + (size_t)i, c->at + (size_t)draw_below(s, i + 1));
        for (int64_t j = i; !shuffled && j < c->n && p->keys[c->at + (size_t)j - 1] > p->keys[c->at + (size_t)j]; j++)
            swap_keys(p, c->at + (size_t)j - 1, c->at + (size_t)j);
    }
}

/* --- updates ------------------------------------------------------------------------------------------------------ */

/* Updates of about the size of vap's bound reach it; larger ones wait, and small ones do not matter. */
static int32_t digit_near(hand *h, const plan *t, const bool used[DIGITS], int32_t otherwise) {
    int32_t near = 0;
    while (near < t->digits - 1 && weight(t, near, 0) < t->norm) near++;
    near -= (int32_t)draw_below(h->s, 3);
    return near >= 0 && !used[near] ? near : otherwise;
}

/* Gives the update that the call makes to the group a digit, if one is left. Not all are given at once, so that late
 * clocks have some. */
static bool take_digit(hand *h, plan *t, group *g, int32_t call) {
    bool    used[DIGITS] = { false };
    int32_t now = (t->digits * (h->clock + 1) + h->p->clocks - 1) / h->p->clocks, digit;
    if (g->n_updates >= (now > t->digits ? t->digits : now)) return false;
    for (int32_t i = 0; i < g->n_updates; i++) used[g->updates[i].digit] = true;
    do digit = (int32_t)draw_below(h->s, t->digits);
    while (used[digit]);
    if (t->policy == VAP) digit = digit_near(h, t, used, digit);
    g->updates[g->n_updates++] = (update){ .worker = h->me, .clock = h->clock, .call = call, .digit = digit };
    return true;
}

static int64_t draw_examples(hand *h, int32_t table) {
    if (!h->p->tables[table].ruled || h->counted[table]) return 0;
    h->counted[table] = true;
    return INT64_C(1) << draw_below(h->s, 3);
}

static void draw_inc(hand *h, int32_t table, bool begun) {
    program      *p = h->p;
    plan         *t = &p->tables[table];
    const int32_t at = p->n_calls[h->me];
    const int64_t most = t->policy == VAP ? 1 : draw_one_in(h->s, 3) ? GROUPS : 4;
    const int64_t n = draw_one_in(h->s, 12) ? 0 : 1 + draw_below(h->s, most);
    act          *c = add_call(h, begun ? INC_BEGIN : INC, table);
    for (int64_t i = 0; i < n; i++) {
        const int32_t in = (int32_t)draw_below(h->s, t->n_groups);
        group        *g = &t->groups[in];
        if (g->rows > 600 || update_of(g, h->me, at) != NULL || !take_digit(h, t, g, at)) continue;
        int64_t parts = g->rows > 1 || t->hammered || draw_below(h->s, 8) < (t->policy == VAP ? 2 : 5)
                            ? 1
                            : INT64_C(2) << (t->policy == VAP ? 2 : draw_below(h->s, 3));
        for (int64_t r = 0; r < g->rows; r++)
            for (int64_t part = 0; part < parts; part++) add_key(p, c, g->first + (uint64_t)r, in);
    }
    order_keys(p, c, h->s);
    c->examples = draw_examples(h, table);
    if (t->hammered) c->times = HAMMER;
}

/* Rows that follow each other, of whole groups. */
static void draw_add(hand *h, int32_t table, bool begun) {
    plan         *t = &h->p->tables[table];
    const int32_t at = h->p->n_calls[h->me];
    int32_t       from = (int32_t)draw_below(h->s, t->n_groups);
    const int32_t most = from + 1 + (int32_t)draw_below(h->s, t->n_groups - from);
    act          *c = add_call(h, begun ? ADD_BEGIN : ADD, table);
    c->first = (int64_t)t->groups[from].first;
    for (; from < most && take_digit(h, t, &t->groups[from], at); from++) c->n += t->groups[from].rows;
    c->examples = draw_examples(h, table);
    if (c->n == 0)
        c->kind = PAUSE; /* nothing is left to add */
    else if (t->hammered)
        c->times = HAMMER;
}

/* --- reads -------------------------------------------------------------------------------------------------------- */

static void draw_get(hand *h, int32_t table, verb kind) {
    const plan   *t = &h->p->tables[table];
    const int64_t n = draw_one_in(h->s, 20) ? 0 : 1 + draw_below(h->s, draw_one_in(h->s, 3) ? 2 * GROUPS : 5);
    act          *c = add_call(h, kind, table);
    for (int64_t i = 0; i < n; i++) {
        const int32_t in = (int32_t)draw_below(h->s, t->n_groups);
        const group  *g = &t->groups[in];
        add_key(h->p, c, g->first + (uint64_t)draw_below(h->s, g->rows), in);
    }
    order_keys(h->p, c, h->s);
}

static void draw_range(hand *h, int32_t table, verb kind) {
    const plan *t = &h->p->tables[table];
    act        *c = add_call(h, kind, table);
    c->first = draw_below(h->s, t->rows);
    c->n = 1 + draw_below(h->s, t->rows - c->first);
    if (draw_one_in(h->s, 3)) c->first = 0, c->n = t->rows;
}

static void get_all(hand *h, int32_t table) {
    const plan *t = &h->p->tables[table];
    act        *c = add_call(h, t->sparse ? GET : RANGE, table);
    if (!t->sparse) c->n = t->rows;
    for (int32_t i = 0; t->sparse && i < t->n_groups; i++) add_key(h->p, c, t->groups[i].first, i);
    if (t->sparse) order_keys(h->p, c, h->s);
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

static void end_open(hand *h, int32_t which) {
    const int32_t begun = h->open[which];
    act          *c = add_call(h, WAIT, h->p->calls[h->me][begun].table);
    c->of = begun;
    h->p->calls[h->me][begun].until = h->p->n_calls[h->me] - 1;
    h->open[which] = h->open[--h->n_open];
}

static void end_all_open(hand *h) {
    while (h->n_open > 0) end_open(h, (int32_t)draw_below(h->s, h->n_open));
}

static void opened(hand *h) { h->open[h->n_open++] = h->p->n_calls[h->me] - 1; }

/* A server function does not see a worker's own copy. */
static bool calls_functions(const plan *t) { return t->way != GOSSIP && t->policy != LOCAL_SGD; }

static void draw_one_call(hand *h) {
    const int32_t table = (int32_t)draw_below(h->s, h->p->n_tables);
    const plan   *t = &h->p->tables[table];
    const bool    begun = h->n_open < 3 && draw_one_in(h->s, 5);
    const int64_t what = draw_below(h->s, 16);
    if (h->n_open > 0 && draw_one_in(h->s, 3)) return end_open(h, (int32_t)draw_below(h->s, h->n_open));
    if (what == 0) {
        add_call(h, PAUSE, 0)->examples = draw_below(h->s, 200);
        return;
    }
    if (what < 8) { /* reads */
        if (!t->sparse && draw_one_in(h->s, 2))
            draw_range(h, table, begun ? RANGE_BEGIN : draw_one_in(h->s, 2) ? READ : RANGE);
        else if (!begun && draw_one_in(h->s, 3))
            add_call(h, DUMP, table);
        else if (!begun && t->policy == VAP)
            get_all(h, table);
        else if (!begun && calls_functions(t) && draw_one_in(h->s, 4))
            draw_get(h, table, CALL);
        else
            draw_get(h, table, begun ? GET_BEGIN : GET);
        if (begun) opened(h);
        return;
    }
    if (h->flushed[table]) {
        if (!(t->way == LOCAL && t->policy == ASYNC)) add_call(h, REFUSED, table);
        return;
    }
    if (t->sparse || draw_one_in(h->s, 2))
        draw_inc(h, table, begun);
    else
        draw_add(h, table, begun);
    if (t->policy == VAP && !begun)
        add_call(h, PAUSE, 0)->examples = 50 + draw_below(h->s, 200); /* for others to read */
    if (begun && h->p->calls[h->me][h->p->n_calls[h->me] - 1].kind != PAUSE) opened(h);
}

static void draw_some(hand *h, int64_t n) {
    for (int64_t i = 0; i < n && room_for_calls(h) > 0; i++) draw_one_call(h);
}

static void draw_flushes(hand *h) {
    for (int32_t i = 0; i < h->p->n_tables; i++)
        if (draw_one_in(h->s, 6)) {
            end_all_open(h);
            add_call(h, FLUSH, i);
            h->flushed[i] = true;
        }
    draw_some(h, draw_below(h->s, 3));
}

/* What all workers do alike in a clock. */
typedef struct shared {
    int32_t barriers; /* before its first call, and (2) in its middle, too */
    bool    middle, begins;
} shared;

static void draw_clock(hand *h, const shared *all, bool leaves) {
    memset(h->flushed, 0, sizeof h->flushed);
    memset(h->counted, 0, sizeof h->counted);
    for (int32_t i = 0; i < h->p->n_tables; i++)
        if (h->p->tables[i].zeroed == h->clock) add_call(h, ZERO, i);
    for (int32_t i = 0; i < all->barriers; i++) {
        if (i > 0 || all->middle) draw_some(h, draw_below(h->s, 4));
        end_all_open(h);
        add_call(h, BARRIER, 0);
    }
    draw_some(h, draw_below(h->s, 5));
    if (leaves) {
        end_all_open(h);
        add_call(h, LEAVE, 0);
        return;
    }
    draw_flushes(h);
    end_all_open(h);
    add_call(h, all->begins ? CLOCK_BEGIN : CLOCK, 0);
    if (!all->begins) return;
    act *c = add_call(h, WAIT, 0);
    c->of = h->p->n_calls[h->me] - 2;
    h->p->calls[h->me][c->of].until = c->of + 1;
}

/* After a worker has left it makes barriers and reads only. */
static void draw_absent(hand *h, const shared *all) {
    for (int32_t i = 0; i < all->barriers; i++) {
        add_call(h, BARRIER, 0);
        if (draw_one_in(h->s, 2)) get_all(h, (int32_t)draw_below(h->s, h->p->n_tables));
    }
}

static shared draw_shared(const program *p, uint64_t *s) {
    shared all = { .barriers = draw_one_in(s, 3) ? 1 + draw_one_in(s, 4) : 0, .middle = draw_one_in(s, 2) };
    all.begins = p->replicas == 1 && draw_one_in(s, 4);
    for (int32_t i = 0; i < p->n_tables; i++) /* who has its turn must not wait for those who wait for theirs */
        if (p->tables[i].policy == SEQUENTIAL) {
            all.middle = false;
            if (all.barriers > 1) all.barriers = 1;
        }
    return all;
}

/* Sums, averages and a host's sum need a part of each worker, and replicas allow no leaving: there leaving is
 * refused. */
static int32_t draw_leaver(const program *p, uint64_t *s) {
    if (p->replicas == 2 || p->aggregate || !draw_one_in(s, 3)) return -1;
    for (int32_t i = 0; i < p->n_tables; i++)
        if (p->tables[i].way == GOSSIP || p->tables[i].way == SUMS || p->tables[i].policy == LOCAL_SGD ||
            p->tables[i].zeroed >= 0)
            return -1;
    return (int32_t)draw_below(s, p->workers);
}

void draw_calls(program *p, uint64_t *state) {
    shared        all[16];
    const int32_t leaver = draw_leaver(p, state), last = (int32_t)draw_below(state, p->clocks);
    for (int32_t c = 0; c < p->clocks; c++) all[c] = draw_shared(p, state);
    for (int32_t me = 0; me < p->workers; me++) {
        hand h = { .p = p, .s = state, .me = me };
        for (h.clock = 0; h.clock < p->clocks; h.clock++) {
            if (me != leaver || h.clock <= last)
                draw_clock(&h, &all[h.clock], me == leaver && h.clock == last);
            else
                draw_absent(&h, &all[h.clock]);
        }
        add_call(&h, BARRIER, 0);
        for (int32_t i = 0; i < p->n_tables; i++) {
            if (me != leaver && draw_one_in(state, 2)) add_call(&h, DUMP, i);
            get_all(&h, i);
        }
    }
}
