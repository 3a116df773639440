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
 * Under async workers go on to add. Between two barriers from which nobody is missing what those who live have added is
 * there, once: so behind the meeting their weights add up to their number, and no copy is lost, or counts twice, that
 * was under way.
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
#include "comm/agreed_run.h"
#include "table/table.h"

enum { WORKERS_MAX = 9, ITEMS = 3, CLOCKS = 12, QUIET = 60, VALUES = ITEMS * WORKERS_MAX, RUNS = 120, RUNS_FULL = 2000,
       SIM_RUNS = 60, SIM_RUNS_FULL = 1000, STREAM = 41, WHOLE_FIRST = 0, GAPS = 4, TWO_UNTIL = CLOCKS,
       WINDOW_MS = 40 };
#define PLAN_MORE                                                                                                     \
    const char *topology, *filter; /* filter NULL: none */                                                            \
    int64_t     period;            /* of local-sgd, 0: bsp */                                                         \
    bool        keyed, lossy, async;
#define SHOWN_MORE                                                                                                    \
    double     left[VALUES]; /* as the first that has ended reads counts */                                           \
    atomic_int compared;     /* how often what was added between two barriers was compared with what was seen */
#include "drawn_deaths.h"

static const double TOLERANCE = 1e-6;

/* --- a worker ----------------------------------------------------------------------------------------------------- */

/* Nothing is added from this clock on. */
static int64_t adds_until(void) { return p.async ? CLOCKS + QUIET : CLOCKS; }

static plait_status add(plait_table *const *table, int32_t me, int64_t clock, bool inherited) {
    double seen[WORKERS_MAX];
    for (int32_t v = 0; clock < adds_until() && v < p.workers - p.spares; v++)
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

static plait_status check_counts(plait_table *table, int32_t me, int64_t clock) {
    double         values[VALUES];
    const double   due = (double)(clock < adds_until() ? clock : adds_until());
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

/* --- without rounds: what is added from one barrier to the next --------------------------------------------------- */

/* What a worker has seen behind a barrier. */
typedef struct sight {
    int64_t clock;
    uint8_t dead[WORKERS_MAX]; /* whom the barrier has left out */
    double  values[VALUES];
} sight;

/* Has the worker heard of nobody's death but of theirs? */
static bool knows_only(plait_job *job, const uint8_t *dead) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->client_port, &now_ns, &out);
    const bool same = memcmp(job->client.dead, dead, (size_t)p.workers) == 0;
    pli_port_leave(job->client_port, &out);
    return same;
}

/* Between the two: what belongs to those who live. */
static plait_status compare(const sight *from, const sight *to, int32_t me) {
    for (int32_t n = 0; n < ITEMS * p.workers; n++) {
        const int32_t v = n % p.workers;
        const double  more = to->values[n] - from->values[n], due = (double)(to->clock - from->clock);
        if (v >= p.workers - p.spares || dies(v) || fabs(more - due) <= TOLERANCE) continue;
        return wrong("rank %d: from clock %lld to %lld item %d of worker %d grows by %.9g", me, (long long)from->clock,
                     (long long)to->clock, n / p.workers, v, more);
    }
    return PLAIT_OK;
}

/* A worker may hear of a death before the barrier that it stands at leaves the dead one out. So two sights are compared
 * when a third one has come, from which nobody else is missing. past [2]: the two before. */
static plait_status look(plait_job *job, plait_table *table, int32_t me, int64_t clock, sight *past) {
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    sight          here = { .clock = clock };
    plait_status   status = PLAIT_OK;
    if (!p.async || p.workers == 1) return PLAIT_OK;
    memcpy(here.dead, pli_agreed_run_next(job->agreed), (size_t)p.workers);
    PLI_TRY(plait_table_get(table, ITEMS, keys, here.values));
    if (!knows_only(job, here.dead)) here.clock = -1;
    if (past[0].clock > 0 && past[1].clock > 0 && here.clock > 0 &&
        memcmp(past[0].dead, here.dead, sizeof here.dead) == 0 &&
        memcmp(past[1].dead, here.dead, sizeof here.dead) == 0) {
        status = compare(&past[0], &past[1], me);
        atomic_fetch_add(&run->compared, 1);
    }
    past[0] = past[1];
    past[1] = here;
    return status;
}

/* What filters keep back may be missing. */
static plait_status check_model(plait_table *table, int32_t me) {
    double         values[VALUES], sum = 0;
    const double   due = (double)(adds_until() * ITEMS * (p.workers - p.spares));
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
    sight          past[2] = { { .clock = -1 }, { .clock = -1 } };
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(make_tables(job, table));
    PLI_TRY(plait_job_barrier(job));
    atomic_fetch_add(&run->created, 1);
    for (int64_t clock = 0; clock < CLOCKS + QUIET; clock++) {
        PLI_TRY(end_clock(job, table, me, clock));
        if (clock % 4 != (int64_t)(p.seed % 4) || (clock > CLOCKS && !p.async)) continue;
        PLI_TRY(plait_job_barrier(job));
        PLI_TRY(check_counts(table[0], me, clock + 1));
        PLI_TRY(look(job, table[0], me, clock + 1, past));
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(check_counts(table[0], me, CLOCKS + QUIET));
    PLI_TRY(check_model(table[1], me));
    PLI_TRY(plait_table_get(table[0], ITEMS, keys, average));
    PLI_TRY(as_the_others(me, average));
    PLI_TRY(end_clock(job, table, me, CLOCKS + QUIET));
    PLI_TRY(check_mirror(table[0], me, average));
    atomic_fetch_add(&run->ended, 1);
    return PLAIT_OK;
}

static plait_status body(plait_comm *comm, void *unused) {
    plait_job_opts o;
    char           consistency[32] = "bsp";
    (void)unused;
    plait_job_opts_init(&o);
    o.topology = p.topology;
    if (p.period > 0) snprintf(consistency, sizeof consistency, "local-sgd:%d", (int)p.period);
    if (p.async) snprintf(consistency, sizeof consistency, "async");
    o.consistency = consistency;
    o.replicas = 2;
    o.spares = p.spares;
    return run_job(comm, &o, work);
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
