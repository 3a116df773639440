/* See draw.h. */
#include "sim/draw.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define X(name, text) text,
const char *const feature_names[N_FEATURES] = { FEATURES(X) };
#undef X

typedef struct policy {
    const char *spec;
    feature     is;
    int64_t     bound;
    bool        exact;
    bool        ages; /* servers know how old the values were that a push is based on: steps may shrink by staleness */
} policy;

static const policy policies[] = {
    { "bsp", BSP, 0, true, false },
    { "bsp", BSP, 0, true, false },
    { "ssp:0", SSP, 0, false, true },
    { "ssp:1", SSP, 1, false, true },
    { "ssp:4", SSP, 4, false, true },
    { "essp:0", ESSP, 0, false, false },
    { "essp:2", ESSP, 2, false, false },
    { "asp:3:4", ASP, 3, false, true },
    { "asp:1:9", ASP, 1, false, true },
    { "bounded-delay:0", BOUNDED_DELAY, 0, false, false },
    { "bounded-delay:2", BOUNDED_DELAY, 2, false, false },
    { "sequential", SEQUENTIAL, 0, false, false },
    { "vap:60", VAP, CLOCKS_MAX, false, true },
    { "vap:9:weak", VAP, CLOCKS_MAX, false, true },
    { "downpour:2:3", DOWNPOUR, CLOCKS_MAX, false, true },
    { "downpour:3:1", DOWNPOUR, CLOCKS_MAX, false, true },
    { "async", ASYNC, CLOCKS_MAX, false, true },
    { "local-sgd:1", LOCAL_SGD, 0, true, false },
    { "local-sgd:3", LOCAL_SGD, 2, true, false },
    { "majority", MAJORITY, CLOCKS_MAX, false, true },
};

enum { POLICIES = sizeof policies / sizeof *policies };

const marks_kind *forced_kind;
int               forced_policy = -1;

const char *policy_name(int i) { return i < POLICIES ? policies[i].spec : NULL; }

typedef struct dice {
    pli_random random;
    plan      *plan;
    size_t     length; /* length of the cluster's text */
} dice;

static uint64_t pick(dice *d, uint64_t below) { return pli_random_below(&d->random, below); }
static double   between(dice *d, double low, double high) { return low + (high - low) * pli_random_f64(&d->random); }

static bool chance(dice *d, feature f, uint64_t of) {
    if (pick(d, of) != 0) return false;
    d->plan->drawn |= UINT64_C(1) << f;
    return true;
}

static void note(dice *d, feature f) { d->plan->drawn |= UINT64_C(1) << f; }

/* --- the job ------------------------------------------------------------------------------------------------- */

static void draw_table(dice *d, table_plan *t) {
    plan   *p = d->plan;
    policy  drawn = policies[pick(d, POLICIES)];
    if (forced_policy >= 0) drawn = policies[forced_policy];
    bool    sums = p->backup == 0 && chance(d, ALLREDUCE, 5);
    if (p->backup > 0 || (sums && drawn.is != BOUNDED_DELAY && drawn.is != LOCAL_SGD)) drawn = policies[0];
    if (!sums) note(d, PS);
    note(d, drawn.is);
    *t = (table_plan){ .topology = sums ? "allreduce" : "ps", .consistency = drawn.spec, .bound = drawn.bound,
                       .exact = drawn.exact };
    t->ruled = chance(d, RULED, 3);
    t->sparse = chance(d, SPARSE, 3);
    t->keyed = !t->sparse && chance(d, KEYED, 3);
    t->staleness_aware = t->ruled && drawn.ages && chance(d, STALENESS_AWARE, 3);
}

static void draw_job(dice *d) {
    plan *p = d->plan;
    bool  stay = false; /* some table needs every worker until the end */
    p->workers = 1 + (int32_t)pick(d, WORKERS_MAX);
    p->servers = chance(d, SERVERS, 2) ? 1 + (int32_t)pick(d, SERVERS_MAX) : 0;
    p->clocks = 6 + (int64_t)pick(d, CLOCKS_MAX - 6 + 1);
    if (p->workers > 2 && chance(d, BACKUP, 6) && forced_policy < 0)
        p->backup = 1 + (int32_t)pick(d, (uint64_t)p->workers / 2);
    p->tables = 1 + (int32_t)pick(d, TABLES_MAX);
    for (int32_t t = 0; t < p->tables; t++) {
        draw_table(d, &p->table[t]);
        stay = stay || strcmp(p->table[t].topology, "allreduce") == 0 ||
               strncmp(p->table[t].consistency, "local-sgd", 9) == 0;
    }
    if (chance(d, LEASES, 3)) {
        p->blocks = 2 * p->workers + (int64_t)pick(d, (uint64_t)(BLOCKS_MAX - 2 * p->workers + 1));
        p->epoch = 3 + (int64_t)pick(d, 8);
    }
    for (int32_t k = 0; k < p->workers; k++)
        p->leaves[k] = !stay && chance(d, LEAVE, 12) ? (int64_t)pick(d, (uint64_t)p->clocks) : -1;
    chance(d, MEET, 2);
    chance(d, COLLECTIVES, 3);
}

/* Draws how tables combine updates, and when one is zeroed, with dice of their own. Averages and bounds on values
 * need sums. */
static void draw_kinds(uint64_t seed, plan *p) {
    dice d = { .random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 6, 0), .plan = p };
    bool stay = true;
    for (int32_t k = 0; k < p->workers; k++) stay = stay && p->leaves[k] < 0;
    for (int32_t i = 0; i < p->tables; i++) {
        table_plan *t = &p->table[i];
        const bool  sums = strncmp(t->consistency, "vap", 3) == 0 || strncmp(t->consistency, "local-sgd", 9) == 0;
        t->whole = !t->ruled && chance(&d, WHOLE, 3);
        if (!t->ruled && !sums) t->combine = chance(&d, LEAST, 3) ? "min" : chance(&d, GREATEST, 2) ? "max" : NULL;
        if (t->combine == NULL && !t->ruled && !sums && strncmp(t->consistency, "downpour", 8) != 0 &&
            chance(&d, LATEST, 2))
            t->combine = "last";
        if (forced_kind != NULL) {
            t->ruled = t->staleness_aware = false;
            t->combine = forced_kind->combine;
            t->whole = forced_kind->type == PLAIT_I64;
        }
        t->zeroed = stay && chance(&d, ZEROED, 4) ? (int64_t)pick(&d, (uint64_t)p->clocks) : -1;
        t->anew = t->zeroed >= 0 && strncmp(t->consistency, "local-sgd", 9) != 0 && chance(&d, ANEW, 2);
    }
}

/* --- the cluster ----------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(dice *d, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(d->plan->cluster + d->length, CLUSTER_BYTES - d->length, format, list);
    va_end(list);
    d->length += n > 0 ? (size_t)n : 0;
}

static void draw_hosts(dice *d) {
    plan   *p = d->plan;
    int32_t ranks = p->workers + p->servers;
    bool    unlike = chance(d, HETEROGENEOUS, 3), racks = chance(d, RACKS, 3), wan = racks && chance(d, WAN, 2);
    if (wan)
        say(d, "sites:\n  - {name: home, bandwidth: 1 Gb/s, latency: %.3f ms}\n  - {name: away, latency: %.3f ms}\n",
            between(d, 0.2, 5), between(d, 0.2, 5));
    if (racks) say(d, "racks:\n  - {name: a%s}\n  - {name: b, latency: %.1f us%s}\n", wan ? ", site: home" : "",
                   between(d, 1, 100), wan ? ", site: away" : "");
    say(d, "hosts:\n");
    for (int32_t at = 0; at < ranks; at++) {
        uint64_t cores = 1 + pick(d, 2); /* two ranks on one host, or one */
        say(d, "  - {cores: %d, speed: %.2f", (int)cores, unlike ? between(d, 0.2, 2) : 1.0);
        if (racks) say(d, ", rack: %s", pick(d, 2) == 0 ? "a" : "b");
        if (unlike) say(d, ", bandwidth: %.2f Gb/s, latency: %.1f us", between(d, 0.05, 10), between(d, 1, 200));
        say(d, "}\n");
        at += (int32_t)cores - 1;
    }
    say(d, "cost: {clock: %.2f ms, notice: %.1f ms, resend: %.1f ms}\n", between(d, 0, 2), between(d, 0.1, 20),
        between(d, 2, 10));
}

/* Names the ranks that an event hits: one, some, or all. */
static void say_ranks(dice *d) {
    uint64_t ranks = (uint64_t)(d->plan->workers + d->plan->servers), first = pick(d, ranks);
    if (pick(d, 3) == 0) say(d, "ranks: all");
    else if (pick(d, 2) == 0) say(d, "ranks: %d", (int)first);
    else say(d, "ranks: %d-%d", (int)first, (int)(first + pick(d, ranks - first)));
}

/* In milliseconds; a run takes some tens of milliseconds. */
static void say_while(dice *d, double longest) {
    double from = pick(d, 2) == 0 ? 0 : between(d, 0, 20);
    say(d, ", from: %.3f ms, until: %.3f ms", from, from + between(d, 1, longest));
}

static void draw_slowness(dice *d) {
    if (chance(d, SLOW, 4)) {
        say(d, "  - slow: {");
        say_ranks(d);
        say(d, ", factor: %.1f", between(d, 1.5, 8));
        if (pick(d, 2) == 0) say_while(d, 40);
        say(d, "}\n");
    }
    if (chance(d, BURST, 5))
        say(d, "  - burst: {factor: %.1f, every: %.2f ms, length: %.2f ms, hosts: %s}\n", between(d, 2, 8),
            between(d, 4, 10), between(d, 0.5, 4), pick(d, 3) > 0 ? "one" : "all");
    if (chance(d, JITTER, 3)) say(d, "  - jitter: {sigma: %.2f}\n", between(d, 0.1, 1));
}

static void draw_links(dice *d) {
    if (chance(d, LINK, 5)) {
        say(d, "  - link: {");
        say_ranks(d);
        say(d, ", factor: %.4f", between(d, 0.001, 0.5));
        say_while(d, 40);
        say(d, "}\n");
    }
    if (chance(d, CUT, 8)) {
        say(d, "  - link: {");
        say_ranks(d);
        say(d, ", factor: 0");
        say_while(d, 30);
        say(d, "}\n");
    }
}

static void draw_messages(dice *d) {
    bool delayed = chance(d, DELAYED, 4), doubled = chance(d, DOUBLED, 4), dropped = chance(d, DROPPED, 5);
    if (!delayed && !doubled && !dropped) return;
    say(d, "  - messages: {");
    say_ranks(d);
    if (delayed) say(d, ", delay: %.2f ms, delayed: %.2f", between(d, 0.05, 15), between(d, 0.01, 0.4));
    if (doubled) say(d, ", doubled: %.2f", between(d, 0.01, 0.4));
    if (dropped) say(d, ", dropped: %.2f", between(d, 0.01, 0.3));
    say(d, "}\n");
}

static void draw_deaths(dice *d) {
    plan *p = d->plan;
    int   rank = (int)pick(d, (uint64_t)(p->workers + p->servers));
    if (chance(d, FREEZE, 8)) {
        say(d, "  - freeze: {ranks: %d", rank);
        say_while(d, 60);
        say(d, "}\n");
    }
    if (chance(d, KILL, 10)) say(d, "  - kill: {ranks: %d, at: %.3f ms}\n", rank, between(d, 0, 60));
    else if (chance(d, FROZEN, 25)) say(d, "  - freeze: {ranks: %d, from: %.3f ms}\n", rank, between(d, 0, 30));
    p->loses = is_drawn(p, KILL) || is_drawn(p, FROZEN);
    p->quiet = !p->loses && !is_drawn(p, FREEZE) && !is_drawn(p, CUT);
}

void draw_plan(uint64_t seed, plan *plan_out) {
    *plan_out = (plan){ .seed = seed };
    dice d = { .random = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 2, 0), .plan = plan_out };
    draw_job(&d);
    draw_kinds(seed, plan_out);
    say(&d, "version: 1\n");
    draw_hosts(&d);
    say(&d, "events:\n");
    size_t none = d.length;
    draw_slowness(&d);
    draw_links(&d);
    draw_messages(&d);
    draw_deaths(&d);
    if (d.length == none) say(&d, "  - slow: {factor: 1}\n");
}

void print_plan(const plan *p) {
    printf("%d workers, %d servers, %d clocks, backup %d, %d blocks on lease, epochs of %d\n", p->workers, p->servers,
           (int)p->clocks, p->backup, (int)p->blocks, (int)p->epoch);
    for (int32_t t = 0; t < p->tables; t++)
        printf("table t%d: %s%s x %s%s%s%s%s%s%s\n", t, p->table[t].anew          ? "created anew, "
               : p->table[t].zeroed >= 0 ? "zeroed, "
                                         : "",
               p->table[t].topology, p->table[t].consistency,
               p->table[t].ruled ? ", ruled" : "", p->table[t].sparse ? ", sparse" : "",
               p->table[t].keyed ? ", keyed" : "", p->table[t].staleness_aware ? ", staleness-aware" : "",
               p->table[t].whole ? ", whole numbers, " : ", ",
               p->table[t].combine == NULL ? "add" : p->table[t].combine);
    for (int32_t k = 0; k < p->workers; k++)
        if (p->leaves[k] >= 0) printf("worker %d leaves in clock %d\n", k, (int)p->leaves[k]);
    printf("%s", p->cluster);
}
