/* Jobs with replicas whose tables are zeroed and saved while workers die: any worker dies at some moment, with it or
 * later perhaps a second one, and the others go on.
 *
 * To both tables worker v's item h adds 1 in each clock, whoever holds it. `counts` is zeroed in every other clock, and
 * `sums` never. Where reads hold whole clocks, each shows in each clock as many as were added since, and else behind a
 * barrier: so no update of before outlives a zeroing, none of after is lost with it, and nobody's zeroing comes later
 * than another's. Both are saved from time to time: the newest checkpoint is good, and of the clock in which it was
 * written.
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

#include <plait/checkpoint.h>
#include <plait/table.h>

#include "base/base.h"
#include "table/table.h"

enum { WORKERS_MAX = 6, ITEMS = 3, CLOCKS = 12, VALUES = ITEMS * WORKERS_MAX, RUNS = 120, RUNS_FULL = 2000,
       SIM_RUNS = 40, SIM_RUNS_FULL = 1000, STREAM = 47, WHOLE_FIRST = 0, GAPS = 4, TWO_UNTIL = CLOCKS, ZEROS = 2,
       SAVES = 4, WINDOW_MS = 40 };
#define PLAN_MORE                                                                                                     \
    const char *topology, *consistency;                                                                               \
    int         served;  /* of hybrid: a bit for each table that lies on servers */                                   \
    int         shape;   /* 0 dense, 1 keyed, 2 sparse */                                                             \
    bool        mirrors; /* each worker reads its own, and all the same behind barriers alone */                      \
    int32_t     replicas;                                                                                             \
    char        dir[40];
#define SHOWN_MORE int64_t saved; /* the clock of the newest checkpoint; 0: none */
#include "drawn_deaths.h"

enum { BEFORE_CLOCK, ADDED, ENDED, BEFORE_ZERO, ZEROED, BEFORE_SAVE, PLACES };

/* --- a worker ----------------------------------------------------------------------------------------------------- */

static uint64_t key_of(int64_t item) { return (uint64_t)(item * 100); }

static plait_status read_all(plait_table *table, double values[VALUES]) {
    const uint64_t keys[ITEMS] = { key_of(0), key_of(1), key_of(2) };
    return plait_table_get(table, ITEMS, keys, values);
}

static plait_status add(plait_table *const *table, int32_t me, bool inherited) {
    for (int32_t v = 0; v < p.workers - p.spares; v++)
        for (int64_t i = 0; i < ITEMS; i++) {
            const uint64_t key = key_of(i);
            double         delta[WORKERS_MAX] = { 0 };
            delta[v] = 1;
            for (int t = 0; t < 2; t++) {
                const bool mine = inherited ? plait_table_inherits(table[t], v, (uint64_t)i) != 0
                                            : plait_table_holder(table[t], v, (uint64_t)i) == me;
                if (mine) PLI_TRY(plait_table_inc(table[t], 1, &key, delta, 0));
            }
        }
    return PLAIT_OK;
}

static plait_status check(plait_table *const *table, int32_t me, int64_t clock, int64_t zeroed, const char *when) {
    double values[VALUES];
    for (int t = 0; t < 2; t++) {
        const double due = (double)(t == 0 ? clock - zeroed : clock);
        PLI_TRY(read_all(table[t], values));
        for (int32_t n = 0; n < ITEMS * p.workers; n++) {
            const double want = n % p.workers < p.workers - p.spares ? due : 0;
            if (fabs(values[n] - want) > 1e-6)
                return wrong("rank %d in clock %lld, %s: item %d of worker %d of table %d is %.9g, due %g", me,
                             (long long)clock, when, n / p.workers, n % p.workers, t, values[n], want);
        }
    }
    return PLAIT_OK;
}

static plait_status make_tables(plait_job *job, plait_table **table) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    for (int t = 0; t < 2; t++) {
        o.name = t == 0 ? "counts" : "sums";
        o.type = PLAIT_F64;
        o.rows = p.shape == 2 ? 0 : 300;
        o.keyed = p.shape == 1;
        o.cols = p.workers;
        if (strcmp(p.topology, "hybrid") == 0) o.topology = (p.served >> t & 1) != 0 ? "ps" : "allreduce";
        PLI_TRY(plait_table_create(job, &o, &table[t]));
    }
    return PLAIT_OK;
}

static plait_status end_clock(plait_job *job, plait_table *const *table, int32_t me, int64_t clock) {
    plait_status status;
    bool         again = false;
    do {
        PLI_TRY(add(table, me, again));
        strike(me, clock, ADDED);
        if (again) atomic_fetch_add(&run->stood, 1);
        again = true;
    } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
    return status;
}

static plait_status save(plait_job *job, plait_table *const *table, int32_t me, int64_t clock) {
    plait_checkpoint_opts o;
    plait_checkpoint_opts_init(&o);
    o.dir = p.dir;
    strike(me, clock, BEFORE_SAVE);
    PLI_TRY(plait_checkpoint_save(job, table, 2, &o));
    run->saved = clock; /* the same by all */
    return PLAIT_OK;
}

static plait_status work(plait_job *job) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    plait_table  *table[2];
    int64_t       zeroed = 0;
    PLI_TRY(make_tables(job, table));
    PLI_TRY(plait_job_barrier(job));
    atomic_fetch_add(&run->created, 1);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        strike(me, clock, BEFORE_CLOCK);
        if (!p.mirrors) PLI_TRY(check(table, me, clock, zeroed, "read"));
        if (clock % ZEROS == 1) {
            strike(me, clock, BEFORE_ZERO);
            PLI_TRY(plait_table_zero(table[0]));
            zeroed = clock;
            strike(me, clock, ZEROED);
            if (!p.mirrors) PLI_TRY(check(table, me, clock, zeroed, "zeroed"));
        }
        if (p.dir[0] != '\0' && clock % SAVES == 2) PLI_TRY(save(job, table, me, clock));
        PLI_TRY(end_clock(job, table, me, clock));
        strike(me, clock, ENDED);
        if (clock % 3 != (int64_t)(p.seed % 3)) continue;
        PLI_TRY(plait_job_barrier(job));
        PLI_TRY(check(table, me, clock + 1, zeroed, "behind a barrier"));
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(check(table, me, CLOCKS, zeroed, "at the end"));
    atomic_fetch_add(&run->ended, 1);
    return PLAIT_OK;
}

static plait_status body(plait_comm *comm, void *unused) {
    plait_job_opts o;
    (void)unused;
    plait_job_opts_init(&o);
    o.topology = p.topology;
    o.consistency = p.consistency;
    o.replicas = p.replicas;
    o.spares = p.spares;
    return run_job(comm, &o, work);
}

static void tell(const char *text) {
    print_message("PLAIT_SEED=%llu on %s: %s x %s, served %x, shape %d, %d replicas, %d workers (%d spares), rank %d "
                  "dies at %lld.%d of rank %d, then %d, %d later: %s\n%s",
                  (unsigned long long)p.seed, p.transport, p.topology, p.consistency, p.served, p.shape, p.replicas,
                  p.workers, p.spares, p.victim, (long long)p.at, p.where, p.killer, p.second, (int)p.gap, text,
                  p.cluster);
}

/* --- the draw ----------------------------------------------------------------------------------------------------- */

static bool has_servers(void) { return strcmp(p.topology, "hybrid") == 0 || strcmp(p.topology, "ps") == 0; }

static void draw(pli_random *r) {
    static const struct {
        const char *topology, *consistency;
        bool        mirrors;
    } pairs[] = { { "allreduce", "bsp", false }, { "hybrid", "bsp", false },
                  { "ps", "bsp", false },        { "gossip:ring", "bsp", true },
                  { "gossip:torus", "bsp", true }, { "allreduce", "bounded-delay:2", true } };
    const int kind = (int)pli_random_below(r, sizeof pairs / sizeof *pairs);
    p.topology = pairs[kind].topology;
    p.consistency = pairs[kind].consistency;
    p.mirrors = pairs[kind].mirrors;
    p.served = 1 + (int)pli_random_below(r, 2);
    p.workers = 3 + (int32_t)pli_random_below(r, WORKERS_MAX - 2);
    p.spares = pli_random_below(r, 4) == 0 ? 1 : 0;
    p.replicas = p.workers > 3 && has_servers() ? 2 + (int32_t)pli_random_below(r, 2) : 2;
    p.shape = (int)pli_random_below(r, strncmp(p.topology, "gossip", 6) == 0 ? 2 : 3);
    if (strcmp(p.transport, "threads") != 0 || strncmp(p.topology, "gossip", 6) == 0) return;
    snprintf(p.dir, sizeof p.dir, "zeroed_survive.%lld.%llu", (long long)getpid(), (unsigned long long)p.seed);
}

/* Two ranks may have both replicas of a shard. */
static bool may_lose_two(void) { return !has_servers() || p.replicas == 3; }
static int  places(void) { return PLACES; }
static int  cores(void) { return 1; }
static void prepare(plait_comm_opts *opts) {
    (void)opts;
    run->saved = 0;
}

/* Is the newest checkpoint good, and that of the last save? The folder is removed. */
static const char *lacks(void) {
    plait_checkpoint *newest = NULL;
    plait_error       err;
    char              command[80];
    if (p.dir[0] == '\0') return NULL;
    const bool good = plait_checkpoint_open(p.dir, NULL, &newest, &err) >= 0 &&
                      plait_checkpoint_clock(newest) == run->saved;
    plait_checkpoint_close(&newest);
    snprintf(command, sizeof command, "rm -rf %s", p.dir);
    if (system(command) != 0) return "its folder stays";
    return good ? NULL : "the newest checkpoint is not that of the last save";
}

int main(int argc, char **argv) { return show_runs() ? main_of_deaths(argc, argv) : 1; }
