/* draw.c - a program from a seed: the job and its tables. Which calls its workers make: draw_calls.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

/* splitmix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014. */
uint64_t draw_bits(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

int64_t draw_below(uint64_t *state, int64_t n) { return (int64_t)(draw_bits(state) % (uint64_t)n); }

bool draw_one_in(uint64_t *state, int64_t n) { return draw_below(state, n) == 0; }

/* The pairs that train (docs/topologies.md); processes and simulated ranks share no memory. */
static const struct {
    const char *topology;
    way         way;
    policy      policy;
} pairs[] = {
    { "ps", SERVERS, BSP },
    { "allreduce", SUMS, DELAY },
    { "ps", SERVERS, VAP },
    { "ps", SERVERS, SSP },
    { "ps", SERVERS, LOCAL_SGD },
    { "allreduce", SUMS, BSP },
    { "ps", SERVERS, DOWNPOUR },
    { "gossip:ring", GOSSIP, BSP },
    { "ps", SERVERS, ASYNC },
    { "allreduce", SUMS, LOCAL_SGD },
    { "ps", SERVERS, ESSP },
    { "ps", SERVERS, SEQUENTIAL },
    { "gossip:torus", GOSSIP, ASYNC },
    { "ps", SERVERS, ASP },
    { "ps", SERVERS, DELAY },
    { "gossip:exp", GOSSIP, LOCAL_SGD },
    { "local", LOCAL, ASYNC },
    { "local", LOCAL, VAP },
    { "local", LOCAL, BSP },
    { "local", LOCAL, SSP },
    { "local", LOCAL, ASP },
    { "local", LOCAL, DELAY },
    { "local", LOCAL, SEQUENTIAL },
};
enum { PAIRS = sizeof pairs / sizeof *pairs, PAIRS_APART = 16 };

static void draw_policy(plan *t, policy chosen, uint64_t *s) {
    static const char *const names[POLICIES] = { "bsp",        "ssp", "essp",     "asp",       "bounded-delay",
                                                 "sequential", "vap", "downpour", "local-sgd", "async" };
    const char              *name = names[chosen];
    t->policy = chosen;
    switch (chosen) {
    case SSP:
    case ESSP:
    case DELAY:
        t->bound = draw_below(s, 4);
        snprintf(t->consistency, sizeof t->consistency, "%s:%" PRId64, name, t->bound);
        break;
    case ASP:
    case DOWNPOUR:
        t->bound = chosen == ASP ? 1 + draw_below(s, 3) : 1 + draw_below(s, 4);
        t->period = 1 + draw_below(s, 4);
        snprintf(t->consistency, sizeof t->consistency, "%s:%" PRId64 ":%" PRId64, name, t->bound, t->period);
        break;
    case VAP: /* the bound is about as large as some of the updates */
        t->norm = (double)(UINT64_C(1) << (2 * (2 + draw_below(s, 4)))) * (double)(2 + draw_below(s, 8));
        t->weak = draw_one_in(s, 4);
        snprintf(t->consistency, sizeof t->consistency, "vap:%.17g%s", t->norm, t->weak ? ":weak" : "");
        break;
    case LOCAL_SGD:
        t->bound = 1 + draw_below(s, 4);
        snprintf(t->consistency, sizeof t->consistency, "local-sgd:%" PRId64, t->bound);
        break;
    default: snprintf(t->consistency, sizeof t->consistency, "%s", name);
    }
}

/* How an update is written: as digits of a base, all of which a value of its type holds exactly. */
static void choose_digits(const program *p, plan *t) {
    bool averaged = t->way == GOSSIP || (t->policy == LOCAL_SGD && t->ruled);
    t->base = averaged && p->workers > 3 ? 8 : 4; /* a worker's own count `workers` times until they are averaged */
    t->unit = t->hammered ? 2 * HAMMER : 8;       /* so that a part of an update is whole, too */
    int32_t bits = (t->wide ? 50 : 21) - (t->hammered ? 10 : 0);
    if (averaged) bits -= t->wide ? 20 : 6; /* averages are rounded */
    t->digits = bits / (t->base == 4 ? 2 : 3);
    if (t->digits > DIGITS) t->digits = DIGITS;
}

static void add_group(plan *t, uint64_t first, int64_t rows) {
    if (rows > 0 && t->n_groups < GROUPS) t->groups[t->n_groups++] = (group){ .first = first, .rows = rows };
}

/* Draws keys of a sparse table: half of the time the last key of all is among them; the others are edges, or any
 * number. */
static void draw_keys(plan *t, uint64_t *s) {
    static const uint64_t edges[] = { UINT64_MAX,
                                      0,
                                      1,
                                      UINT64_MAX - 1,
                                      UINT32_MAX,
                                      UINT64_C(1) << 32,
                                      UINT64_C(1) << 63,
                                      (UINT64_C(1) << 63) - 1,
                                      UINT64_C(1) << 31,
                                      (UINT64_C(1) << 53) + 1,
                                      255,
                                      4096 };
    int64_t               n = 2 + draw_below(s, 9);
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = draw_one_in(s, 3) ? draw_bits(s) >> draw_below(s, 64) : edges[draw_below(s, 12)];
        if (i == 0 && draw_one_in(s, 2)) key = UINT64_MAX;
        if (group_of(t, key) < 0) add_group(t, key, 1);
    }
}

/* Draws rows of a dense table: the first, the last and some between by themselves, and those between them as groups. */
static void draw_rows(plan *t, uint64_t *s) {
    t->rows = draw_one_in(s, 3) ? 1 + draw_below(s, 12) : 1 + draw_below(s, draw_one_in(s, 3) ? 2500 : 600);
    int64_t at = 0;
    while (at < t->rows && t->n_groups < GROUPS - 2) {
        add_group(t, (uint64_t)at++, 1);
        int64_t left = t->rows - 1 - at;
        if (left <= 0) break;
        int64_t n = draw_one_in(s, 4) ? 0 : 1 + draw_below(s, left);
        if (t->n_groups >= GROUPS - 4) n = left;
        add_group(t, (uint64_t)at, n);
        at += n;
    }
    if (at < t->rows - 1) add_group(t, (uint64_t)at, t->rows - 1 - at);
    if (at < t->rows) add_group(t, (uint64_t)t->rows - 1, 1);
}

/* Chooses the rule that subtracts a gradient as it is. Where the table takes the steps, that is "take", the program's
 * own. Where the rule moves copies `workers` times as far, it is plain sgd at rate 1, for a batch of 1. */
static void draw_rule(const program *p, plan *t, int64_t cycle, uint64_t *s) {
    bool averaged = t->way == GOSSIP || t->policy == LOCAL_SGD;
    bool whole = t->policy == BSP || (t->policy == DELAY && (t->bound == 0 || t->way == SUMS));
    t->ruled = t == p->tables ? cycle % 2 == 0 : draw_one_in(s, 2);
    t->own_rule = !averaged && (whole || draw_one_in(s, 2));
}

/* Are values whole numbers? This has draws of its own, so that nothing else that is drawn depends on it. */
static bool counts(const program *p, const plan *t) {
    uint64_t own = p->seed * UINT64_C(0x9fb21c651e98df25) + (uint64_t)(t - p->tables);
    return t->wide && !t->ruled && t->way != GOSSIP && draw_one_in(&own, 3);
}

/* Chooses what a table makes of its updates. Averages, and bounds on what is added, need sums. */
static combine draw_combine(const program *p, const plan *t) {
    uint64_t own = p->seed * UINT64_C(0xd6e8feb86659fd93) + (uint64_t)(t - p->tables);
    if (t->ruled || t->way == GOSSIP || t->policy == LOCAL_SGD || t->policy == VAP || t->hammered) return ADD_UP;
    if (!draw_one_in(&own, 3)) return ADD_UP;
    const combine drawn = (combine)(LEAST + (int)draw_below(&own, 3));
    const bool    orders = t->policy != DOWNPOUR && !(t->policy == ASYNC && t->way == LOCAL) && p->replicas == 1 &&
                        !p->aggregate && !p->hybrid;
    return drawn == LATEST && !orders ? ADD_UP : drawn;
}

/* Draws the clock before which the table is zeroed; -1: never. (What gossip's copies hold together is judged from the
 * first clock on, so a gossip table is never zeroed.) */
static int32_t draw_zeroing(const program *p, const plan *t) {
    uint64_t own = p->seed * UINT64_C(0xc2b2ae3d27d4eb4f) + (uint64_t)(t - p->tables);
    return t->way == GOSSIP || !draw_one_in(&own, 3) ? -1 : (int32_t)draw_below(&own, p->clocks);
}

static void draw_shape(const program *p, plan *t, int64_t cycle, uint64_t *s) {
    static const char *const filters[] = { "key-cache",           "key-delta",      "zstd",
                                           "key-cache,key-delta", "key-cache,zstd", "key-cache,key-delta,zstd" };
    t->cols = 1 + (int32_t)draw_below(s, COLS);
    t->wide = !draw_one_in(s, 4);
    draw_rule(p, t, cycle, s);
    if (t->way == LOCAL && t->policy == ASYNC) t->hammered = draw_one_in(s, 2) || t->ruled;
    t->wide |= t->hammered;
    t->sparse = t->way != GOSSIP && (t == p->tables ? (cycle + 1) / 2 % 2 == 0 : draw_one_in(s, 2));
    if (p->hybrid) t->sparse = t->way == SERVERS && draw_one_in(s, 2);
    t->keyed = !t->sparse && t->way != GOSSIP && draw_one_in(s, 3);
    if (p->hybrid) t->keyed = t->way == SERVERS && !t->sparse;
    t->exact = t->policy == BSP && t->way != GOSSIP && draw_one_in(s, 5);
    t->sharded =
        t->policy == BSP && t->way == SUMS && t->ruled && !t->sparse && !t->keyed && !t->exact && draw_one_in(s, 3);
    if (t->way == SERVERS && p->replicas == 1 && draw_one_in(s, 4)) t->filter = filters[draw_below(s, 6)];
    t->initial = !t->sparse && !t->hammered && draw_one_in(s, 3);
    t->whole = counts(p, t);
    t->combine = draw_combine(p, t);
    t->zeroed = draw_zeroing(p, t);
    choose_digits(p, t);
    if (t->sparse)
        draw_keys(t, s);
    else
        draw_rows(t, s);
}

static bool suits(const program *p, int pair, policy first) {
    bool copied = pairs[pair].policy == SSP || pairs[pair].policy == ESSP || pairs[pair].policy == ASYNC;
    if (p->over != OVER_THREADS && pairs[pair].way == LOCAL) return false;
    if (pairs[pair].way == LOCAL && p->servers > 0) return false;
    if (p->replicas == 2) return pairs[pair].way == SERVERS && (first == BSP ? pairs[pair].policy == BSP : copied);
    if (p->aggregate) return pairs[pair].policy == BSP && (pairs[pair].way == SERVERS || pairs[pair].way == SUMS);
    if (p->hybrid) return pairs[pair].way == SERVERS || (pairs[pair].way == SUMS && pairs[pair].policy != LOCAL_SGD);
    return true;
}

static void draw_tables(program *p, int64_t first, int64_t cycle, uint64_t *s) {
    p->n_tables = 1 + (int32_t)(draw_one_in(s, 2) ? draw_below(s, TABLES) : 0);
    for (int32_t i = 0; i < p->n_tables; i++) {
        plan   *t = &p->tables[i];
        int64_t pair = first;
        while (i > 0 && !suits(p, (int)(pair = draw_below(s, PAIRS)), pairs[first].policy)) {}
        snprintf(t->name, sizeof t->name, "t%d", i);
        t->topology = p->hybrid ? "hybrid" : pairs[pair].topology;
        t->way = pairs[pair].way;
        draw_policy(t, pairs[pair].policy, s);
        draw_shape(p, t, cycle, s);
    }
}

/* Draws those of the job's options that go with its first table. */
static void draw_job(program *p, int64_t first, int32_t ranks, uint64_t *s) {
    static const char *const forms[] = {
        "ring", "tree", "recursive", "rabenseifner", "messages", "hierarchical", "auto"
    };
    const bool   served = pairs[first].way == SERVERS;
    const policy chosen = pairs[first].policy;
    p->workers = draw_one_in(s, 6) ? 1 : 2 + (int32_t)draw_below(s, WORKERS - 1);
    if (served || draw_one_in(s, 4)) p->servers = (int32_t)draw_below(s, 3);
    if (pairs[first].way == LOCAL) p->servers = 0;
    if (ranks > 0 && p->servers >= ranks) p->servers = 0;
    if (ranks > 0) p->workers = ranks - p->servers;
    p->replicas = 1;
    if (served && (chosen == BSP || chosen == SSP || chosen == ESSP || chosen == ASYNC) && draw_one_in(s, 5) &&
        (p->servers == 0 ? p->workers : p->servers) >= 2 && p->over != OVER_MPI)
        p->replicas = 2;
    if (p->replicas == 1 && chosen == BSP && (served || pairs[first].way == SUMS)) p->aggregate = draw_one_in(s, 4);
    p->hybrid = p->replicas == 1 && !p->aggregate && draw_one_in(s, 6) && suits(p, (int)first, chosen) &&
                (served || (pairs[first].way == SUMS && chosen != LOCAL_SGD));
    p->clocks = 1 + (int32_t)draw_below(s, p->workers > 3 ? 6 : 10);
    if (chosen == VAP && ranks == 0)
        p->workers = 2 + (int32_t)draw_below(s, 3), p->clocks = 4 + (int32_t)draw_below(s, 4);
    p->cost = (int32_t)draw_below(s, 4);
    if (draw_one_in(s, 3)) p->collective = forms[draw_below(s, 7)];
    if (p->aggregate) p->collective = "hierarchical";
}

program *draw_program(uint64_t seed, carrier over, int32_t ranks) {
    uint64_t state = seed * UINT64_C(0x2545f4914f6cdd1d) + (uint64_t)over;
    program *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->seed = seed;
    p->over = over;
    const uint64_t n = over == OVER_THREADS ? PAIRS : PAIRS_APART;
    const int64_t  first = (int64_t)(seed % n), cycle = (int64_t)(seed / n); /* all pairs, one after the other */
    draw_job(p, first, ranks, &state);
    draw_tables(p, first, cycle, &state);
    draw_calls(p, &state);
    return p;
}

void program_free(program *p) {
    free(p->keys);
    free(p->in);
    free(p);
}
