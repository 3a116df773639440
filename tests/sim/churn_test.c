/* Whole jobs in virtual time, in which all goes wrong together: ranks die; dead ranks are started anew, vote again and,
 * in jobs with slots, work again; workers join and leave as the cluster's file has it; ranks are parted into two to
 * four sides, which heal or do not; and messages are late, lost and doubled. Some of a dead rank's come when a view
 * without it has been decided, or when its rank lives anew, and must not count. Jobs with slots (table/copies/roster.h)
 * run under bsp with two or three replicas of each shard; others, with a fixed number of workers, under ssp, async and
 * allreduce as well. Every split of four servers is there, with the workers apart or on the same ranks, and heals
 * before anybody is suspected, while the vote may be under way, or never. Each job runs in a process of its own
 * (SimGrid takes one platform a process).
 *
 * Of worker v's rows in clock c, whoever computes them adds 2^c to column v, so a value is the set of the clocks that
 * it contains: lost or doubled, it shows. The test keeps its own ledger of what was acknowledged to whom, and when:
 *   - who ends well reads, under bsp, all clocks of all columns, once: so all that was acknowledged to anybody is
 *     there. Under other policies it reads each clock that was acknowledged to a worker, and at most the next one;
 *   - once the sides have had time to notice, at most one of them acknowledges anything while they are parted, and if
 *     nobody dies, only one with a majority;
 *   - if the ranks are never together again, all who end well are on one side;
 *   - if nobody dies, the side with a majority, a replica of every shard and a worker that is in ends well, and all do
 *     if they are together again before anybody is suspected;
 *   - no collective counts more workers than there are.
 * The audit proves each job from its events.
 *
 * To replay a failing job, set PLAIT_SEED=number. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <plait/table.h>

#include "sim/apart.h"
#include "sim/clock_sets.h"
#include "table/table.h"
#include "table/witness.h"

enum { HEALS = 3, SPLITS = 14, EVERY = 2 * SPLITS * HEALS };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* there actors are threads, and slow */
enum { DRAWN = 20, DRAWN_FULL = 200 };
#else
enum { DRAWN = 120, DRAWN_FULL = 1200 };
#endif
enum { WORKERS_MAX = 6, RANKS_MAX = 10, CLOCKS = 14, TURNS = 6 };
#define MS          UINT64_C(1000000)
#define PATIENCE_NS (20 * MS)
#define NOTICED_NS  (36 * MS) /* after which a side without the right to go on has stopped */
#define FULL        ((UINT64_C(1) << CLOCKS) - 1)

typedef enum heal { BEFORE, MEANWHILE, NEVER } heal;

typedef struct plan {
    uint64_t    seed;
    policy      kind;
    bool        lossy, returns; /* returns: workers die, all of which are started anew */
    int32_t     workers, servers, slots, replicas, kills, turns, revives;
    int32_t     logical; /* shards for each worker, which move (table/copies/moves.h); 0: as the table has them */
    bool        killed[RANKS_MAX];
    bool        stays[WORKERS_MAX]; /* it is in from the first to the last clock, unless it dies */
    int32_t     sides, side[RANKS_MAX];
    heal        heals;
    uint64_t    from_ns, until_ns;
    text        cluster;
} plan;

typedef struct board {
    uint64_t acknowledged[WORKERS_MAX]; /* a set of clocks */
    uint64_t seen[WORKERS_MAX][ITEMS][WORKERS_MAX];
    bool     read[WORKERS_MAX], well[WORKERS_MAX]; /* well: it has read all, or was away when the others had */
    bool     again[WORKERS_MAX];                   /* a later life of it was in for a clock */
    uint64_t began_ns;                             /* when the last worker had its table */
    int32_t  with_table;
    uint64_t late_ns[WORKERS_MAX]; /* the last acknowledgement while the ranks were apart, after NOTICED_NS */
    char     why[400];
    int64_t  all, some, nobody, early, joined, left, away, counted, moved; /* counts of all jobs */
    int64_t  begun, worked; /* later lives whose body began; jobs in which one of them ended a clock */
} board;

static board *shown;

static struct {
    plan    p;
    witness heard;
    bool    listening;
} run;

__attribute__((format(printf, 1, 2))) static plait_status wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (shown->why[0] == '\0') vsnprintf(shown->why, sizeof shown->why, format, list);
    va_end(list);
    return PLAIT_EDIVERGED;
}

/* --- a plan ------------------------------------------------------------------------------------------------------- */

static int32_t ranks_of(const plan *p) { return p->workers + p->servers; }

static uint64_t between(pli_random *r, uint64_t low, uint64_t high) { return low + pli_random_below(r, high - low); }

static void say_deaths(plan *p, pli_random *r, uint64_t dies_ns[RANKS_MAX]) {
    for (int32_t k = 0; k < ranks_of(p); k++) dies_ns[k] = UINT64_MAX;
    for (int32_t i = 0; i < p->kills; i++) {
        const int32_t victim = (int32_t)pli_random_below(r, (uint64_t)(p->returns ? p->workers : ranks_of(p)));
        if (p->killed[victim]) continue;
        p->killed[victim] = true;
        dies_ns[victim] = between(r, 6 * MS, p->returns ? 20 * MS : 60 * MS);
        say(&p->cluster, "  - kill: {ranks: %d, at: %llu ns}\n", victim, (unsigned long long)dies_ns[victim]);
        if (!p->returns && pli_random_below(r, 2) > 0) continue;
        say(&p->cluster, "  - revive: {ranks: %d, at: %llu ns}\n", victim,
            (unsigned long long)(dies_ns[victim] + pli_random_below(r, (p->returns ? 8 : 30) * MS)));
        p->revives++;
    }
}

/* Workers come and go, but for the MIN that are always in. */
static void say_turns(plan *p, pli_random *r, const uint64_t dies_ns[RANKS_MAX]) {
    const int32_t least = p->workers - p->slots;
    uint64_t      at = 4 * MS;
    int32_t       n_in = least;
    bool          in[WORKERS_MAX];
    for (int32_t w = 0; w < p->workers; w++) p->stays[w] = in[w] = w < least;
    for (int32_t i = 0; p->slots > 0 && i < TURNS; i++) {
        const int32_t w = (int32_t)pli_random_below(r, (uint64_t)p->workers);
        at += pli_random_below(r, 10 * MS);
        if (dies_ns[w] <= at || (in[w] && n_in == least)) continue;
        say(&p->cluster, "  - %s: {ranks: %d, at: %llu ns}\n", in[w] ? "leave" : "join", w, (unsigned long long)at);
        n_in += in[w] ? -1 : 1;
        in[w] = !in[w];
        p->stays[w] = false;
        p->turns++;
    }
}

static void say_sides(plan *p, pli_random *r) {
    if (p->returns) return;
    p->from_ns = between(r, 10 * MS, 30 * MS);
    p->until_ns = p->heals == BEFORE      ? p->from_ns + PATIENCE_NS - 1 - pli_random_below(r, 18 * MS)
                  : p->heals == MEANWHILE ? p->from_ns + PATIENCE_NS + pli_random_below(r, 24 * MS)
                                          : UINT64_MAX;
    if (p->sides == 1) return;
    say(&p->cluster, "  - partition: {sides: [");
    for (int32_t side = 0; side < p->sides; side++) {
        const char *comma = "";
        say(&p->cluster, "%s[", side > 0 ? ", " : "");
        for (int32_t k = 0; k < ranks_of(p); k++) {
            if (p->side[k] != side) continue;
            say(&p->cluster, "%s%d", comma, k);
            comma = ", ";
        }
        say(&p->cluster, "]");
    }
    say(&p->cluster, "], from: %llu ns", (unsigned long long)p->from_ns);
    if (p->heals != NEVER) say(&p->cluster, ", until: %llu ns", (unsigned long long)p->until_ns);
    say(&p->cluster, "}\n");
}

static void say_cluster(plan *p, pli_random *r) {
    uint64_t dies_ns[RANKS_MAX];
    say(&p->cluster, "version: 1\nhosts: [{count: %d}]\n", ranks_of(p));
    say(&p->cluster, "cost: {clock: 2 ms, notice: 4 ms, patience: 20 ms, resend: 5 ms}\nevents:\n"
                     "  - jitter: {sigma: 0.2}\n");
    say_deaths(p, r, dies_ns);
    say_turns(p, r, dies_ns);
    say_sides(p, r);
    if (p->lossy)
        say(&p->cluster, "  - messages: {delay: %s, delayed: 0.1, doubled: 0.1, dropped: 0.05}\n",
            pli_random_below(r, 2) == 0 ? "1 ms" : "9 ms"); /* longer than until a death is noticed */
    /* A long cut long after the job, so that a short one meets a membership machine for each rank as well. */
    if (p->heals == BEFORE && p->sides > 1) say(&p->cluster, "  - partition: {sides: [[0]], from: 3000 s}\n");
}

static void plan_init(uint64_t seed, plan *p, pli_random *r) {
    *r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 17, 0);
    *p = (plan){ .seed = seed, .replicas = 2, .sides = 1 };
}

/* Number n of the splits of four into two to four sides: each is on a side that is there, or on the next one. */
static void split_four(int64_t n, int32_t side[4], int32_t *sides_out) {
    for (int32_t code = 1; code < 64; code++) { /* two bits for each but the first */
        int32_t most = 0;
        side[0] = 0;
        for (int i = 1; i < 4; i++) {
            side[i] = code >> (2 * (i - 1)) & 3;
            if (side[i] > most + 1) most = 9;
            if (side[i] > most) most = side[i];
        }
        if (most == 0 || most > 3 || n-- > 0) continue;
        *sides_out = most + 1;
        return;
    }
}

static void plan_every(int64_t n, plan *p) {
    pli_random r;
    int32_t    side[4];
    plan_init((uint64_t)n + 1, p, &r);
    p->kind = policies[0];
    split_four(n % SPLITS, side, &p->sides);
    p->heals = (heal)(n / SPLITS % HEALS);
    const bool apart = n >= SPLITS * HEALS;
    p->servers = apart ? 4 : 0;
    p->workers = apart ? 3 : 5;
    p->slots = 1;
    for (int32_t k = 0; k < ranks_of(p); k++) p->side[k] = (int32_t)pli_random_below(&r, (uint64_t)p->sides);
    for (int32_t i = 0; i < 4; i++) p->side[apart ? p->workers + i : i] = side[i];
    say_cluster(p, &r);
}

/* Two sides, each with half of the ranks: none may go on. */
static void halve(plan *p, pli_random *r) {
    uint32_t order[RANKS_MAX];
    pli_random_permutation(r, ranks_of(p), order);
    for (int32_t k = 0; k < ranks_of(p); k++) p->side[order[k]] = k % 2;
    p->sides = 2;
}

static void draw_sides(plan *p, pli_random *r) {
    const int32_t most = 1 + (int32_t)pli_random_below(r, 3);
    int32_t       number[4] = { -1, -1, -1, -1 };
    p->sides = 0;
    for (int32_t k = 0; k < ranks_of(p); k++) {
        int32_t *of = &number[pli_random_below(r, 3) == 0 ? pli_random_below(r, (uint64_t)most) : 0]; /* one is large */
        if (*of < 0) *of = p->sides++;
        p->side[k] = *of;
    }
}

static void plan_drawn(uint64_t seed, plan *p) {
    pli_random r;
    plan_init(seed, p, &r);
    p->kind = policies[pli_random_below(&r, 3) > 0 ? 0 : pli_random_below(&r, 4)];
    const bool elastic = p->kind.bsp && !p->kind.sums;
    p->workers = 3 + (int32_t)pli_random_below(&r, WORKERS_MAX - 2);
    p->servers = pli_random_below(&r, 3) > 0 || p->kind.sums ? 0 : 2 + (int32_t)pli_random_below(&r, 3);
    p->slots = elastic ? 1 + (int32_t)pli_random_below(&r, (uint64_t)p->workers - 2) : 0;
    const int32_t holders = p->servers > 0 ? p->servers : p->workers - p->slots;
    p->logical = p->slots > 0 && p->servers == 0 ? (int32_t)(seed % 3) : 0;
    p->replicas = holders >= 3 && !p->kind.sums && pli_random_below(&r, 3) == 0 ? 3 : 2;
    p->heals = (heal)pli_random_below(&r, HEALS);
    p->lossy = pli_random_below(&r, 3) == 0;
    p->kills = pli_random_below(&r, 2) == 0 ? 0 : 1 + (int32_t)pli_random_below(&r, 2);
    if (ranks_of(p) % 2 == 0 && pli_random_below(&r, 4) == 0) halve(p, &r);
    else draw_sides(p, &r);
    say_cluster(p, &r);
}

/* Nobody is cut off. Workers with and without shards die, one or two, and their ranks are started anew soon after. */
static void plan_returning(uint64_t seed, plan *p) {
    pli_random r;
    plan_init(seed, p, &r);
    r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 18, 0);
    p->kind = policies[0];
    p->returns = true;
    p->workers = 3 + (int32_t)pli_random_below(&r, WORKERS_MAX - 2);
    p->servers = pli_random_below(&r, 3) > 0 ? 0 : 2 + (int32_t)pli_random_below(&r, 3);
    p->slots = 1 + (int32_t)pli_random_below(&r, (uint64_t)p->workers - 2);
    const int32_t holders = p->servers > 0 ? p->servers : p->workers - p->slots;
    p->replicas = holders >= 3 && pli_random_below(&r, 2) == 0 ? 3 : 2;
    p->lossy = pli_random_below(&r, 3) == 0;
    p->kills = 1 + (int32_t)pli_random_below(&r, 2);
    p->from_ns = p->until_ns = UINT64_MAX;
    say_cluster(p, &r);
}

static bool has_majority(const plan *p, int32_t side) {
    int32_t n = 0;
    for (int32_t r = 0; r < ranks_of(p); r++) n += p->side[r] == side;
    return 2 * n > ranks_of(p);
}

/* May the side go on, or must it? It needs a majority, a replica of every shard, and a worker that is in: one that
 * stays is. (Of sums only the first server's shards count, which are empty, and carry the run's collectives.) */
static bool may_go_on(const plan *p, int32_t side, bool must) {
    const int32_t first = p->servers > 0 ? p->workers : 0;
    const int32_t holders = p->servers > 0 ? p->servers : p->workers - p->slots;
    int32_t       workers = 0, others = 0;
    bool          all = true;
    for (int32_t w = 0; w < p->workers; w++) workers += p->side[w] == side && (p->stays[w] || !must);
    for (int32_t w = 0; w < p->workers; w++) others += p->side[w] != side;
    if (p->logical > 0) all = others < p->replicas || !must; /* shards may lie anywhere */
    for (int32_t s = 0; s < (p->kind.sums ? 1 : holders) && p->logical == 0; s++) {
        bool some = false;
        for (int32_t i = 0; i < p->replicas; i++) some = some || p->side[first + (s + i) % holders] == side;
        all = all && some;
    }
    return all && workers > 0 && has_majority(p, side);
}

/* --- a worker ----------------------------------------------------------------------------------------------------- */

static void acknowledge(plait_comm *comm, int32_t me, int64_t clock) {
    const uint64_t now_ns = pli_comm_now(comm);
    shown->acknowledged[me] |= UINT64_C(1) << clock;
    if (run.p.sides > 1 && now_ns >= run.p.from_ns + NOTICED_NS && now_ns < run.p.until_ns) shown->late_ns[me] = now_ns;
}

/* Ends a clock. *away_out: by leaving. */
static plait_status one_clock(plait_job *job, plait_table *table, bool *away_out) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    const int64_t clock = plait_job_clock_now(job);
    const bool    leaves = run.p.slots > 0 && clock + 1 < CLOCKS && !plait_job_wanted(job);
    plait_status  status;
    bool          again = false;
    do {
        PLI_TRY(add_clock(table, &run.p.kind, run.p.workers, me, clock, again));
        again = true;
    } while ((status = leaves ? plait_job_leave(job) : plait_job_clock(job)) == PLAIT_STAND_IN);
    if (status < 0) return status;
    acknowledge(comm, me, clock);
    shown->again[me] = shown->again[me] || plait_comm_life(comm) > 1;
    shown->left += leaves;
    *away_out = leaves;
    return PLAIT_OK;
}

/* All who are in meet now and then. */
static plait_status count(plait_job *job) {
    int64_t n = 1;
    if (plait_job_clock_now(job) % 4 != 2) return PLAIT_OK;
    PLI_TRY(plait_comm_allreduce(plait_job_comm(job), &n, 1, PLAIT_I64, PLAIT_SUM));
    shown->counted++;
    return n >= 1 && n <= run.p.workers ? PLAIT_OK : wrong("%lld workers are counted", (long long)n);
}

static plait_status clocks(plait_job *job, plait_table *table, bool *away_out) {
    while (plait_job_clock_now(job) < CLOCKS) {
        if (*away_out) {
            const bool         again = plait_comm_life(plait_job_comm(job)) > 1 && !run.p.turns;
            const plait_status status = plait_job_join(job, again ? 0 : CLOCKS);
            if (status != PLAIT_OK) return status;
            *away_out = false;
            shown->joined += plait_job_clock_now(job) < CLOCKS;
        } else {
            PLI_TRY(one_clock(job, table, away_out));
        }
        if (!*away_out) PLI_TRY(count(job));
    }
    return PLAIT_OK;
}

static plait_status work(plait_job *job) {
    plait_comm      *comm = plait_job_comm(job);
    const int32_t    me = plait_comm_rank(comm);
    const bool       again = plait_comm_life(comm) > 1;
    bool             away = me >= run.p.workers - run.p.slots || again;
    double           values[ITEMS * SETS_WORKERS] = { 0 };
    plait_table     *table = NULL;
    PLI_TRY(make_sets(job, run.p.workers, &table));
    shown->with_table += !again;
    shown->begun += again;
    if (!again) shown->began_ns = pli_comm_now(comm);
    const plait_status status = clocks(job, table, &away);
    if (status < 0) return status;
    if (status == PLAIT_OK) {
        PLI_TRY(plait_job_barrier(job));
        PLI_TRY(read_sets(table, values));
        for (int i = 0; i < ITEMS; i++)
            for (int32_t v = 0; v < run.p.workers; v++) shown->seen[me][i][v] = (uint64_t)values[i * run.p.workers + v];
        shown->read[me] = true;
    }
    shown->away += status == PLAIT_END;
    shown->well[me] = true;
    return PLAIT_OK;
}

static uint64_t stamp(void *comm) { return pli_comm_stamp(comm); }

static plait_status body(plait_comm *comm, void *unused) {
    plait_job     *job = NULL;
    plait_job_opts o;
    (void)unused;
    if (!run.listening && !witness_open(&run.heard, plait_comm_size(comm), stamp, comm)) return PLAIT_EIO;
    run.listening = true;
    pli_comm_set_events(comm, witness_sink(&run.heard));
    plait_job_opts_init(&o);
    o.topology = run.p.kind.topology;
    o.consistency = run.p.kind.consistency;
    o.replicas = run.p.replicas;
    o.slots = run.p.slots;
    o.logical_servers = run.p.logical;
    o.revives = run.p.slots > 0 && run.p.logical == 0;
    PLI_TRY(plait_job_create(comm, &o, &job));
    plait_status status = pli_comm_is_worker(comm) ? work(job) : PLAIT_OK;
    shown->moved += plait_job_moved(job);
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

/* --- the ledger --------------------------------------------------------------------------------------------------- */

static void check_seen(const plan *p, int32_t reader) {
    for (int i = 0; i < ITEMS; i++)
        for (int32_t v = 0; v < p->workers; v++) {
            const uint64_t seen = shown->seen[reader][i][v], least = p->kind.bsp ? FULL : shown->acknowledged[v];
            const uint64_t most = least < FULL ? least * 2 + 1 : FULL;
            if (seen != least && (shown->well[v] || seen != most))
                (void)wrong("rank %d ends with clocks %llx of rank %d, to which %llx were acknowledged", reader,
                            (unsigned long long)seen, v, (unsigned long long)shown->acknowledged[v]);
        }
}

static void check_sides(const plan *p) {
    int32_t late = -1, well = -1;
    for (int32_t v = 0; v < p->workers; v++) {
        if (shown->late_ns[v] > 0 && late >= 0 && late != p->side[v])
            (void)wrong("two sides acknowledge: one of them to rank %d at %llu ns", v,
                        (unsigned long long)shown->late_ns[v]);
        if (shown->late_ns[v] > 0) late = p->side[v];
        if (shown->well[v] && p->heals == NEVER && well >= 0 && well != p->side[v])
            (void)wrong("two sides end well, one of them with rank %d", v);
        if (shown->well[v]) well = p->side[v];
    }
    if (late >= 0 && p->kills == 0 && !has_majority(p, late))
        (void)wrong("a side without a majority acknowledges clocks");
}

static void check_ledger(const plan *p, plait_status status, const plait_error *err) {
    int32_t n = 0;
    bool    may = false, must = false;
    if (shown->began_ns >= p->from_ns || shown->with_table < p->workers) {
        shown->early++; /* the job was not there yet: all end, or all go on */
        return;
    }
    for (int32_t v = 0; v < p->workers; v++) n += shown->well[v];
    for (int32_t side = 0; side < p->sides; side++) {
        may = may || may_go_on(p, side, false);
        must = must || may_go_on(p, side, true);
    }
    if (n == 0 && status != PLAIT_EPEER) (void)wrong("nobody ends well, but: %s", err->text);
    if (n > 0 && status < 0) (void)wrong("%d end well, but: %s", n, err->text);
    for (int32_t v = 0; v < p->workers; v++)
        if (shown->read[v]) check_seen(p, v);
    check_sides(p);
    shown->all += n == p->workers;
    shown->some += n > 0 && n < p->workers;
    shown->nobody += n == 0;
    for (int32_t v = 0; p->returns && p->kills == 1 && v < p->workers; v++)
        if (!shown->well[v] && !p->killed[v]) (void)wrong("one died, and rank %d does not end well: %s", v, err->text);
    if (p->kills > 0) return; /* with some ranks less another side, or none, may have what it takes */
    if ((p->heals == BEFORE || p->sides == 1) && n < p->workers)
        (void)wrong("the ranks were soon together again, but only %d end well: %s", n, err->text);
    if (p->heals == NEVER && must && n == 0) (void)wrong("a side that can does not go on: %s", err->text);
    if (p->heals == NEVER && !may && n > 0) (void)wrong("%d end well, though no side can go on", n);
}

/* --- a run, in a process of its own ------------------------------------------------------------------------------- */

static int run_here(const void *drawn) {
    const plan *p = drawn;
    plait_error err = { 0 };
    char        why[640];
    run.p = *p;
    const plait_status status =
        simulate(p->cluster.bytes, p->cluster.length, p->workers, p->servers, p->seed, body, &err);
    check_ledger(p, status, &err);
    if (run.listening && !witness_close(&run.heard, status >= 0, why, sizeof why)) (void)wrong("the audit: %s", why);
    return shown->why[0] != '\0';
}

static bool run_apart(const plan *p) {
    board *b = shown;
    *b = (board){ .all = b->all, .some = b->some, .nobody = b->nobody, .early = b->early, .joined = b->joined,
                  .left = b->left, .away = b->away, .counted = b->counted, .moved = b->moved, .begun = b->begun,
                  .worked = b->worked };
    const char *end = run_in_process(run_here, p);
    bool        again = false;
    for (int32_t w = 0; w < p->workers; w++) again = again || b->again[w];
    b->worked += again;
    if (end == NULL) return true;
    print_message("PLAIT_SEED=%llu, %s %s, %d replicas, %d workers, %d of them slots, %d servers: %s\n%s\n",
                  (unsigned long long)p->seed, p->kind.topology, p->kind.consistency, p->replicas, p->workers, p->slots,
                  p->servers, end[0] != '\0' ? end : b->why, p->cluster.bytes);
    return false;
}

static void tell(int64_t n, const board *b) {
    printf("%lld jobs: %lld went on whole, %lld in part, %lld not at all; in %lld the sides came before the job; %lld "
           "workers joined, %lld left, %lld were away at the end; %lld collectives; %lld shards moved; %lld dead ones "
           "began anew, and in %lld jobs one of them worked again\n",
           (long long)n, (long long)(shown->all - b->all), (long long)(shown->some - b->some),
           (long long)(shown->nobody - b->nobody), (long long)(shown->early - b->early),
           (long long)(shown->joined - b->joined), (long long)(shown->left - b->left),
           (long long)(shown->away - b->away), (long long)(shown->counted - b->counted),
           (long long)(shown->moved - b->moved), (long long)(shown->begun - b->begun),
           (long long)(shown->worked - b->worked));
}

/* Draws and runs them all; returns how many they were. */
static int64_t run_all(void (*draw)(uint64_t seed, plan *p)) {
    const char *seed = getenv("PLAIT_SEED"), *many = getenv("PLAIT_SCHEDULES");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? DRAWN_FULL : DRAWN, from = 1, failed = 0;
    const board before = *shown;
    if (many != NULL) n = atoll(many);
    if (seed != NULL) from = atoll(seed), n = 1;
    for (int64_t i = 0; i < n && failed < (many != NULL ? 1 : 5); i++) {
        plan p;
        draw((uint64_t)(from + i), &p);
        failed += !run_apart(&p);
    }
    tell(n, &before);
    assert_int_equal(failed, 0);
    return n;
}

static void test_every_split_of_four_servers(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED");
    int64_t     failed = 0;
    const board before = *shown;
    for (int64_t n = 0; n < EVERY && failed < (getenv("PLAIT_SCHEDULES") != NULL ? 1 : 5); n++) {
        plan p;
        if (seed != NULL && atoll(seed) != n + 1) continue;
        plan_every(n, &p);
        failed += !run_apart(&p);
    }
    tell(EVERY, &before);
    assert_int_equal(failed, 0);
    if (seed != NULL) return;
    assert_true(shown->all - before.all >= EVERY / HEALS && shown->early == before.early);
    assert_true(shown->some - before.some >= 8 && shown->nobody - before.nobody >= 8);
}

/* Of three ranks one dies, and votes again; then another is cut off. Who is left has a replica of every shard and, with
 * the vote of the one that returned, a majority. Without it, it has half of the view, and stops. */
static void test_who_returns_votes(void **unused) {
    (void)unused;
    for (int32_t back = 0; back < 2; back++)
        for (int32_t dead = 1; dead < 3; dead++) {
            pli_random r;
            plan       p;
            plan_init((uint64_t)(1 + back), &p, &r);
            p.kind = policies[0];
            p.workers = 3;
            p.kills = 1;
            p.killed[dead] = true;
            p.sides = 2;
            p.side[3 - dead] = 1;
            p.heals = NEVER;
            p.from_ns = 24 * MS;
            p.until_ns = UINT64_MAX;
            say(&p.cluster, "version: 1\nhosts: [{count: 3}]\ncost: {clock: 2 ms, notice: 2 ms, patience: 20 ms}\n"
                            "events:\n  - kill: {ranks: %d, at: 6 ms}\n"
                            "  - partition: {sides: [[0, %d], [%d]], from: 24 ms}\n",
                dead, dead, 3 - dead);
            if (back > 0) say(&p.cluster, "  - revive: {ranks: %d, at: 9 ms}\n", dead);
            assert_true(run_apart(&p));
            if (shown->well[0] != (back > 0) || shown->well[3 - dead])
                fail_msg("rank %d dies, and %s: rank 0 %s, rank %d %s", dead, back > 0 ? "returns" : "does not return",
                         shown->well[0] ? "goes on" : "stops", 3 - dead, shown->well[3 - dead] ? "goes on" : "stops");
        }
}

/* At least one in three of the jobs has a dead one that ends a clock in its second life. */
static void test_who_returns_works(void **unused) {
    (void)unused;
    const board   before = *shown;
    const int64_t n = run_all(plan_returning);
    if (n < DRAWN) return;
    assert_true(shown->worked - before.worked >= n / 3 && shown->begun - before.begun >= shown->worked - before.worked);
}

static plait_status move_under_lives(plait_comm *comm, void *unused) {
    plait_job     *job = NULL;
    plait_job_opts o;
    (void)unused;
    plait_job_opts_init(&o);
    o.topology = "ps";
    o.replicas = 2;
    o.slots = 1;
    o.revives = 1;
    o.move_rate = 1000;
    return plait_job_create(comm, &o, &job);
}

static int run_move_under_lives(const void *unused) {
    static const char  cluster[] = "version: 1\nhosts: [{count: 3}]\n";
    plait_error        err = { 0 };
    const plait_status status = simulate(cluster, sizeof cluster - 1, 3, 0, 1, move_under_lives, &err);
    (void)unused;
    return status != PLAIT_EREFUSED || strstr(err.text, "plait_job_opts.move_rate with revives is refused") == NULL;
}

static void test_no_shard_moves_where_the_dead_return(void **unused) {
    (void)unused;
    assert_null(run_in_process(run_move_under_lives, NULL));
}

static void test_drawn_jobs(void **unused) {
    (void)unused;
    const board   before = *shown;
    const int64_t n = run_all(plan_drawn);
    if (n < DRAWN) return;
    assert_true(shown->some > before.some && shown->nobody > before.nobody && shown->all > before.all);
    assert_true(shown->joined - before.joined > n / 4 && shown->left - before.left > n / 8);
    assert_true(shown->moved - before.moved > n / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_split_of_four_servers),
        cmocka_unit_test(test_who_returns_votes),
        cmocka_unit_test(test_who_returns_works),
        cmocka_unit_test(test_no_shard_moves_where_the_dead_return),
        cmocka_unit_test(test_drawn_jobs),
    };
    void       *module, *entry; /* loaded once here, not by each process */
    plait_error err;
    if (pli_module_open("sim", "plait_transport_module", &module, &entry, &err) < 0) return 1;
    shown = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shown == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
