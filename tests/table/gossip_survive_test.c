/* Jobs whose mirrors are averaged with neighbours (gossip), with replicas: any worker dies at some moment, with it or
 * later perhaps a second one, and the others go on.
 *
 * To `counts`, worker v's item h adds 1 in each clock, whoever holds it. Behind a barrier everybody reads the average
 * of all mirrors, which is the number of clocks if every update is there once: under rounds, whoever has died, as what
 * went into the last round lies with neighbours. (Under local-sgd what a dead mirror had moved since the last round may
 * be missing; and where two die at once in exp, what only they had. Under async what a dead mirror held is missing.)
 * `model` is ruled by sgd and passes through the filters; of those with a loss something may be missing, and nothing
 * counts twice.
 *
 * At the end come clocks without updates: by rounds alone each worker's own mirror must come near the average of all,
 * so the graph of those who live is connected.
 *
 * Who dies when is drawn (drawn_deaths.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/table.h>

#include "base/base.h"
#include "table/table.h"

enum { WORKERS_MAX = 9, ITEMS = 3, CLOCKS = 12, QUIET = 60, VALUES = ITEMS * WORKERS_MAX, RUNS = 120, RUNS_FULL = 2000,
       SIM_RUNS = 60, SIM_RUNS_FULL = 1000, STREAM = 41, WHOLE_FIRST = 0, GAPS = 4, TWO_UNTIL = CLOCKS,
       WINDOW_MS = 40 };
#define PLAN_MORE                                                                                                     \
    const char *topology, *filter; /* filter NULL: none */                                                            \
    int64_t     period;            /* of local-sgd, 0: bsp */                                                         \
    bool        keyed, lossy, async;
#define SHOWN_MORE double left[VALUES]; /* as the first that has ended reads counts */
#include "drawn_deaths.h"

/* --- a worker ----------------------------------------------------------------------------------------------------- */

static plait_status add(plait_table *const *table, int32_t me, int64_t clock, bool inherited) {
    double seen[WORKERS_MAX];
    for (int32_t v = 0; clock < CLOCKS && v < p.workers - p.spares; v++)
        for (uint64_t i = 0; i < ITEMS; i++) {
            double     delta[WORKERS_MAX] = { 0 };
            const bool mine = inherited ? plait_table_inherits(table[0], v, i) != 0
                                        : plait_table_holder(table[0], v, i) == me;
            if (!mine) continue;
            delta[v] = 1;
            PLI_TRY(plait_table_get(table[0], 1, &i, seen));
            PLI_TRY(plait_table_inc(table[0], 1, &i, delta, 0));
            PLI_TRY(plait_table_inc(table[1], 1, &i, delta, v == 0 && i == 0)); /* one item has the whole batch */
        }
    return PLAIT_OK;
}

/* May something be missing of what worker v's items have added? */
static bool may_lack(int32_t v) {
    const bool at_once = p.second >= 0 && (p.at < 0 || p.gap < 2);
    if (p.async) return true;
    if (p.period > 0) return dies(v) || (at_once && strcmp(p.topology, "gossip:exp") == 0);
    return at_once && strcmp(p.topology, "gossip:exp") == 0;
}

static const double TOLERANCE = 1e-6;

static plait_status check_counts(plait_table *table, int32_t me, int64_t clock) {
    double         values[VALUES];
    const double   due = (double)(clock < CLOCKS ? clock : CLOCKS);
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(plait_table_get(table, ITEMS, keys, values));
    for (int32_t n = 0; n < ITEMS * p.workers; n++) {
        const int32_t v = n % p.workers;
        const double  want = v < p.workers - p.spares ? due : 0, slack = may_lack(v) ? 2.0 * due : 0;
        if (!(values[n] <= want + slack + TOLERANCE && values[n] >= want - slack - TOLERANCE))
            return wrong("rank %d in clock %lld: item %d of worker %d is %.9g, due %g", me, (long long)clock,
                         n / p.workers, v, values[n], want);
    }
    return PLAIT_OK;
}

/* What filters keep back may be missing. */
static plait_status check_model(plait_table *table, int32_t me) {
    double         values[VALUES], sum = 0;
    const double   due = (double)(CLOCKS * ITEMS * (p.workers - p.spares));
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(plait_table_get(table, ITEMS, keys, values));
    for (int32_t n = 0; n < ITEMS * p.workers; n++) sum -= values[n];
    /* without rounds the average of those who live counts, which is less or more by what a dead one had */
    const double most = due * (p.async ? 3 : p.second >= 0 ? 1.8 : 1.4);
    const double least = due * (p.async ? 0 : p.second >= 0 ? 0.2 : 0.4);
    if (sum <= most && sum >= least) return PLAIT_OK;
    return wrong("rank %d ends with %g in all, where %g were added", me, sum, due);
}

/* Without a barrier: the worker's own mirror, beside the average that all have read before. */
static plait_status check_mirror(plait_table *table, int32_t me, const double average[VALUES]) {
    double         own[VALUES];
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(plait_table_get(table, ITEMS, keys, own));
    for (int32_t n = 0; p.period == 0 && !p.async && n < ITEMS * p.workers; n++)
        if (!(fabs(own[n] - average[n]) < 0.01 * CLOCKS))
            return wrong("rank %d: value %d of its mirror is %g, of the average %g", me, n, own[n], average[n]);
    return PLAIT_OK;
}

/* The same bits on all workers, as all have the sum of the same step. */
static plait_status as_the_others(int32_t me, const double values[VALUES]) {
    static atomic_flag one = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&one)) {}
    if (!run->ends) memcpy(run->left, values, sizeof run->left);
    run->ends = true;
    const bool same = memcmp(run->left, values, sizeof run->left) == 0;
    atomic_flag_clear(&one);
    return same ? PLAIT_OK : wrong("rank %d reads other bits than another", me);
}

static plait_status make_tables(plait_job *job, plait_table **table) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "counts";
    o.type = PLAIT_F64;
    o.rows = 40;
    o.cols = p.workers;
    o.keyed = p.keyed;
    o.filter = p.filter != NULL && !p.lossy ? p.filter : NULL;
    PLI_TRY(plait_table_create(job, &o, &table[0]));
    o.name = "model";
    o.filter = p.filter;
    o.rule.name = "sgd";
    o.rule.learning_rate = 1;
    return plait_table_create(job, &o, &table[1]);
}

static plait_status end_clock(plait_job *job, plait_table *const *table, int32_t me, int64_t clock) {
    plait_status status;
    bool         again = false;
    strike(me, clock, 0);
    do {
        PLI_TRY(add(table, me, clock, again));
        strike(me, clock, 1);
        if (again) atomic_fetch_add(&run->stood, 1);
        again = true;
    } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
    if (status >= 0) strike(me, clock, 2);
    return status;
}

static plait_status work(plait_job *job) {
    const int32_t  me = plait_comm_rank(plait_job_comm(job));
    plait_table   *table[2];
    double         average[VALUES] = { 0 };
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(make_tables(job, table));
    PLI_TRY(plait_job_barrier(job));
    atomic_fetch_add(&run->created, 1);
    for (int64_t clock = 0; clock < CLOCKS + QUIET; clock++) {
        PLI_TRY(end_clock(job, table, me, clock));
        if (clock % 4 != (int64_t)(p.seed % 4) || clock > CLOCKS) continue;
        PLI_TRY(plait_job_barrier(job));
        PLI_TRY(check_counts(table[0], me, clock + 1));
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(check_counts(table[0], me, CLOCKS));
    PLI_TRY(check_model(table[1], me));
    PLI_TRY(plait_table_get(table[0], ITEMS, keys, average));
    PLI_TRY(as_the_others(me, average));
    PLI_TRY(end_clock(job, table, me, CLOCKS + QUIET));
    PLI_TRY(check_mirror(table[0], me, average));
    atomic_fetch_add(&run->ended, 1);
    return PLAIT_OK;
}

static plait_status body(plait_comm *comm, void *unused) {
    plait_job     *job = NULL;
    plait_job_opts o;
    char           consistency[32] = "bsp";
    (void)unused;
    if (!listen_to(comm)) return PLAIT_EIO;
    plait_job_opts_init(&o);
    o.topology = p.topology;
    if (p.period > 0) snprintf(consistency, sizeof consistency, "local-sgd:%d", (int)p.period);
    if (p.async) snprintf(consistency, sizeof consistency, "async");
    o.consistency = consistency;
    o.replicas = 2;
    o.spares = p.spares;
    PLI_TRY(plait_job_create(comm, &o, &job));
    is_there(comm);
    const plait_status status = work(job);
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

static void tell(const char *text) {
    print_message("PLAIT_SEED=%llu on %s: %s, %d workers (%d spares), filter %s%s, period %d, rank %d dies at %lld.%d "
                  "of rank %d, then %d, %d later: %s\n%s",
                  (unsigned long long)p.seed, p.transport, p.topology, p.workers, p.spares,
                  p.filter != NULL ? p.filter : "none", p.keyed ? ", keyed" : "", p.async ? -1 : (int)p.period,
                  p.victim,
                  (long long)p.at, p.where, p.killer, p.second, (int)p.gap, text, p.cluster);
}

static void draw(pli_random *r) {
    static const char *const graphs[] = { "gossip:ring", "gossip:torus", "gossip:exp" };
    static const char *const filters[] = { NULL, NULL, "zstd", "fixed8", "topk:0.3", "fp16" };
    const int kind = (int)pli_random_below(r, 6);
    p.topology = graphs[pli_random_below(r, 3)];
    p.filter = filters[kind];
    p.lossy = kind > 2;
    p.workers = 2 + (int32_t)pli_random_below(r, WORKERS_MAX - 1);
    p.spares = pli_random_below(r, 4) == 0 ? 1 + (int32_t)pli_random_below(r, (uint64_t)p.workers - 1) : 0;
    p.keyed = pli_random_below(r, 2) == 0;
    p.period = pli_random_below(r, 4) == 0 ? 2 + (int64_t)pli_random_below(r, 3) : 0;
    p.async = p.period == 0 && pli_random_below(r, 3) == 0;
}

static bool        may_lose_two(void) { return p.workers >= 3; }
static int         places(void) { return 3; }
static int         cores(void) { return 1; }
static void        prepare(plait_comm_opts *opts) { (void)opts; }
static const char *lacks(void) { return NULL; }

int main(int argc, char **argv) { return show_runs() ? main_of_deaths(argc, argv) : 1; }
