/* Jobs whose tables are mirrors (allreduce), or of which some are and others lie on servers, with replicas: any one
 * worker dies at some moment, with it or later perhaps a second one, and the others end with what a run in which nobody
 * died ends with. The interleavings of the bare machine are in src/comm/agreed_test.c; here are sums, tables, ports,
 * waits, threads, processes.
 *
 * A job has two tables, of all workers or, `grouped`, of two groups: all workers but the last, and all but the first.
 * To `counts`, worker v's item h adds 2^c to column v of row h in clock c, whoever holds it, so that an update that is
 * lost or doubled shows which one it was. `model` is ruled by adam and summed exactly: what an item adds depends on all
 * that it reads, so that its bits at the end are those of a run in which nobody died only if every clock had every
 * update once.
 *
 * With `filter` the sums pass through filters. Where these keep something back, counts is ruled by sgd of rate 1, and
 * an update of clock c is 4^c, so that no number hides a doubled one. At the end come clocks of zeros, until nothing is
 * kept. Then what is missing is what the dead kept, to the bit: of their own updates, and of the sums of their stripes.
 *
 * To `latest`, whose rows are replaced (combine last; not under local-sgd, nor by hosts), each item writes who it is:
 * to a row of its own, and to row h as in counts. So in each clock all workers write row h, and the highest one's item
 * is what is left: also in the clock in which a worker dies, if the others stand in for it. From the next one on heirs
 * push under their own numbers.
 *
 * With `delay` the job is under bounded-delay: a read may lack the last clocks of others, but has nothing twice. With
 * `period` it is under local-sgd, where a dead worker's part of the round that is under way may be lost. What an heir
 * adds to `model` depends on its own part of what is under way, so the bits at the end need only be the same on all.
 *
 * With `served` some of the tables lie on servers, and the others are summed, in one job. Then there is one more on
 * servers, `loose` (ssp:1), to which each worker adds 1 in each of its own clocks, and no heir does. The victim may die
 * (`where` 3) when the clock's sums are made and its push has not gone to the servers.
 *
 * With `sharded` the state of model's rule lies in slices, each at two workers or at three, and that of counts where
 * filters keep something back. Of those that three hold two may die at once; of two, if all slices have two again. The
 * victim may die (`where` 4) when the clock's sums are made and its slice's values have not gone.
 *
 * Who dies when is drawn (drawn_deaths.h). As `test_table_sums_survive processes SEED` it is one rank of such a job,
 * of many more clocks, and the victims are killed by SIGKILL at instants of their own: sums_killed.sh. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/table.h>

#include "base/base.h"
#include "table/copies/mirror.h"
#include "table/table.h"

enum { WORKERS_MAX = 6, ITEMS = 5, ROWS = 300, CLOCKS = 10, RUNS = 120, RUNS_FULL = 2000, SIM_RUNS = 60,
       SIM_RUNS_FULL = 1000, VALUES = ITEMS * WORKERS_MAX, DRAIN = 60, STREAM = 21, WHOLE_FIRST = 1,
       GAPS = 3, TWO_UNTIL = CLOCKS - 5, WINDOW_MS = 30 };
#define PLAN_MORE                                                                                                     \
    int64_t     clocks;                                                                                               \
    int         shape; /* of counts: 0 dense, 1 keyed, 2 sparse */                                                    \
    bool        grouped;                                                                                              \
    const char *filter;        /* NULL: none */                                                                       \
    bool        by_hosts;      /* sums inside each host first */                                                      \
    int         served;        /* a bit for each table that lies on servers; 0: none, and there is no `loose` */      \
    int64_t     delay, period; /* of bounded-delay, local-sgd; 0: bsp */                                              \
    bool        keeps;         /* it keeps something back */                                                          \
    bool        by_counts;     /* an item adds 1 a clock to counts, and there is no model to compare with */          \
    bool        sharded;       /* the state of ruled dense tables that are summed lies in slices ... */               \
    int32_t     replicas;      /* ... each of which so many workers hold; else 2 */
#define SHOWN_MORE                                                                                                    \
    double     model[VALUES];      /* at the end of the run in which nobody died */                                   \
    double     model_left[VALUES]; /* of model, as the first that has ended has it: `ends` */                         \
    double     left[VALUES];       /* of counts, as some living worker ends */                                        \
    double     lost[2][2][VALUES]; /* of the victim, and of the second: what it kept as it died; and before the sum   \
                                    * that was under way then, if there was one */
#include "drawn_deaths.h"
#include "life.h"

static _Atomic uint64_t longest_ns;
static long             life_ns; /* of this process since the job's tables are there; 0: it dies otherwise */
static int64_t          changed[WORKERS_MAX]; /* each worker's: the first clock in which heirs hold items */

static uint64_t key_of(int item) { return (uint64_t)(item * (ROWS / ITEMS)); }

/* --- a worker ----------------------------------------------------------------------------------------------------- */

plait_status __real_pli_job_push(plait_job *job, pli_client_table *only, pli_kind kind, plait_error *err);
plait_status __wrap_pli_job_push(plait_job *job, pli_client_table *only, pli_kind kind, plait_error *err);
plait_status __wrap_pli_job_push(plait_job *job, pli_client_table *only, pli_kind kind, plait_error *err) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    if (kind == PLI_CLOCK && p.where == 3 && me == p.victim && plait_job_clock_now(job) == p.at) kill_rank(me);
    return __real_pli_job_push(job, only, kind, err);
}

/* Of tables in slices: the sums are made, and no slice's values have gone. */
plait_status __real_pli_agreed_slices_apply(plait_job *job, plait_error *err);
plait_status __wrap_pli_agreed_slices_apply(plait_job *job, plait_error *err);
plait_status __wrap_pli_agreed_slices_apply(plait_job *job, plait_error *err) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    const int64_t clock = plait_job_clock_now(job);
    const bool    now = (me == p.victim && clock == p.at) || (me == p.second && clock == p.at + p.gap);
    if (p.where == 4 && now) kill_rank(me);
    return __real_pli_agreed_slices_apply(job, err);
}

static plait_status read_all(plait_table *table, double values[VALUES]) {
    uint64_t keys[ITEMS];
    for (int i = 0; i < ITEMS; i++) keys[i] = key_of(i);
    return plait_table_get(table, ITEMS, keys, values);
}

/* Does worker v have table t, and items that are added to it? */
static bool has(int t, int32_t v) { return !p.grouped || v != (t == 0 ? p.workers - 1 : 0); }

static double part_of_model(int32_t v, int i, int32_t column, int64_t clock, double value) {
    return 0.3 * value + (double)((v + 1) * (i + 2) - 3 * column) / (double)(clock + 3);
}

/* What an item adds to counts. */
static double count_of(int64_t clock) {
    if (clock >= p.clocks) return 0;
    return p.by_counts ? 1 : (double)(UINT64_C(1) << (p.keeps ? 2 * clock : clock));
}

/* With a rule that divides by it, one item has the whole batch. */
static int64_t examples_of(int t, int32_t v, int i) { return p.keeps && t == 0 ? v == 0 && i == 0 : t; }

static plait_status add_item(plait_table *table, int t, int32_t v, int i, int64_t clock, const double *values) {
    const uint64_t key = key_of(i);
    double         delta[WORKERS_MAX] = { 0 };
    if (t == 0) delta[v] = count_of(clock);
    for (int32_t j = 0; t == 1 && j < p.workers; j++)
        delta[j] = part_of_model(v, i, j, clock, values[i * p.workers + j]);
    return plait_table_inc(table, 1, &key, delta, examples_of(t, v, i));
}

/* Touches all rows, so that what is kept of them may leave. */
static plait_status add_zeros(plait_table *table) {
    const double zeros[VALUES] = { 0 };
    uint64_t     keys[ITEMS];
    for (int i = 0; i < ITEMS; i++) keys[i] = key_of(i);
    return plait_table_inc(table, ITEMS, keys, zeros, 0);
}

static plait_status add(plait_table *table, int t, int32_t me, int64_t clock, bool inherited) {
    double values[VALUES];
    PLI_TRY(read_all(table, values));
    for (int32_t v = 0; v < p.workers - p.spares; v++)
        for (int i = 0; i < ITEMS; i++) {
            const bool mine = has(t, v) && (inherited ? plait_table_inherits(table, v, (uint64_t)i) != 0
                                                      : plait_table_holder(table, v, (uint64_t)i) == me);
            if (mine) PLI_TRY(add_item(table, t, v, i, clock, values));
        }
    return PLAIT_OK;
}

static plait_status add_to_all(plait_table *const *table, int32_t me, int64_t clock, bool inherited) {
    for (int t = 0; t < 2; t++)
        if (table[t] != NULL && (t == 0 || clock < p.clocks)) PLI_TRY(add(table[t], t, me, clock, inherited));
    return table[0] != NULL && clock >= p.clocks ? add_zeros(table[0]) : PLAIT_OK;
}

static uint64_t due_of(int32_t v, int64_t clock) {
    if (v >= p.workers - p.spares || !has(0, v)) return 0;
    if (clock > p.clocks) clock = p.clocks;
    if (p.keeps) return ((UINT64_C(1) << 2 * clock) - 1) / 3;
    return p.by_counts ? (uint64_t)clock : (UINT64_C(1) << clock) - 1;
}

/* May this be seen in the clock, where filters keep something back? Each update may be missing, and none is there
 * twice. */
static bool is_part_of(double seen, uint64_t due) {
    const uint64_t n = (uint64_t)seen;
    return seen >= 0 && seen == (double)n && (n & ~due) == 0;
}

/* The clocks of the round in which a copy that moved by itself was lost, as bits. */
static uint64_t round_of(int64_t at) {
    const int64_t before = at > 0 ? at - 1 : 0; /* the victim may be a clock behind its killer, or ahead */
    return due_of(0, at + 2) & ~due_of(0, before - before % p.period);
}

/* The updates of counts that may be lost so: those of a dead worker, and those of its heirs, if one of them dies. */
static uint64_t may_be_lost(int32_t v) {
    if (p.period == 0 || !dies(v)) return 0;
    if (p.at < 0) return UINT64_MAX; /* in simulated time: nobody knows when */
    return (v == p.victim ? round_of(p.at) : 0) | (p.second >= 0 ? round_of(p.at + p.gap) : 0);
}

/* May a worker see so much of counts in the clock? What filters keep back may be missing of all; of others, what the
 * policy lets a read lack; and of the dead, what was lost with them. */
static bool may_be_seen(int32_t me, int32_t v, int64_t clock, bool again, double value) {
    /* a copy that moves by itself shows, to who stands in, what it has moved in this clock */
    const uint64_t due = due_of(v, clock + (again && p.period > 0)), seen = (uint64_t)value;
    int64_t        sure = v == me ? clock : clock - p.delay; /* what it has added itself it sees */
    if (p.period > 0 && clock < p.clocks && v != me) sure -= clock % p.period;
    if (p.keeps) return is_part_of(-value, due);
    if (value < 0 || value != (double)seen) return false;
    if (p.by_counts) return seen <= due && seen >= (p.period > 0 && dies(v) ? 0 : due_of(v, sure > 0 ? sure : 0));
    if ((seen & ~due) != 0) return false;
    return ((due_of(v, sure > 0 ? sure : 0) & ~seen) & ~may_be_lost(v)) == 0;
}

/* --- rows that are replaced --------------------------------------------------------------------------------------- */

/* Of a row that this item alone writes. */
static uint64_t own_key(int32_t v, int i) { return key_of(i) + 1 + (uint64_t)v; }

static plait_status add_latest(plait_table *table, int32_t me, int64_t clock, bool inherited) {
    for (int32_t v = 0; table != NULL && clock < p.clocks && v < p.workers - p.spares; v++)
        for (int i = 0; has(0, v) && i < ITEMS; i++) {
            const uint64_t keys[2] = { key_of(i), own_key(v, i) };
            double         mark[2 * WORKERS_MAX];
            for (int32_t j = 0; j < 2 * p.workers; j++) mark[j] = (double)(8 * clock + v + 1);
            if (inherited ? plait_table_inherits(table, v, (uint64_t)i) != 0
                          : plait_table_holder(table, v, (uint64_t)i) == me)
                PLI_TRY(plait_table_inc(table, 2, keys, mark, 0));
        }
    return PLAIT_OK;
}

static plait_status check_own_rows(plait_table *table, int32_t me, int64_t clock) {
    for (int32_t v = 0; v < p.workers - p.spares; v++)
        for (int i = 0; has(0, v) && i < ITEMS; i++) {
            const uint64_t key = own_key(v, i);
            double         row[WORKERS_MAX];
            PLI_TRY(plait_table_get(table, 1, &key, row));
            const int64_t of = row[0] > 0 ? (int64_t)(row[0] - 1) / 8 : -1;
            if (of < clock && of >= clock - 1 - p.delay && (of < 0 || ((int64_t)row[0] - 1) % 8 == v)) continue;
            return wrong("rank %d in clock %lld: item %d of worker %d has written last in clock %lld", me,
                         (long long)clock, i, v, (long long)of);
        }
    return PLAIT_OK;
}

/* The last clock that must be seen is there, all of one item; and the highest one's, where none pushes for others. */
static plait_status check_latest(plait_table *table, int32_t me, int64_t clock) {
    double  values[VALUES];
    int32_t highest = p.workers - p.spares - 1;
    while (!has(0, highest)) highest--;
    if (table == NULL || clock > p.clocks) return PLAIT_OK;
    for (int32_t v = 0; v < p.workers - p.spares; v++)
        for (int i = 0; has(0, v) && i < ITEMS; i++)
            if (plait_table_holder(table, v, (uint64_t)i) != v && changed[me] > clock) changed[me] = clock;
    PLI_TRY(read_all(table, values));
    for (int i = 0; i < ITEMS; i++) {
        const double *row = values + i * p.workers;
        const int64_t x = (int64_t)row[0], of = (x - 1) / 8, v = (x - 1) % 8;
        bool          good = x == 0 && clock <= p.delay;
        if (x > 0) good = of < clock && of >= clock - 1 - p.delay && v <= highest && has(0, (int32_t)v);
        if (x > 0 && p.delay == 0 && of < changed[me] - (p.second >= 0)) good = good && v == highest;
        for (int32_t j = 0; j < p.workers; j++) good = good && row[j] == (double)x;
        if (!good)
            return wrong("rank %d in clock %lld: row %d holds what worker %lld has written in clock %lld", me,
                         (long long)clock, i, (long long)v, (long long)of);
    }
    return check_own_rows(table, me, clock);
}

/* In the beginning of a clock, and when the worker begins to stand in: what it has added itself is not shown then. */
static plait_status check_counts(plait_table *table, int32_t me, int64_t clock, bool again) {
    double values[VALUES];
    if (table == NULL) return PLAIT_OK;
    PLI_TRY(read_all(table, values));
    for (int i = 0; i < ITEMS; i++)
        for (int32_t v = 0; v < p.workers; v++) {
            const double value = values[i * p.workers + v];
            /* perhaps it was the other group's clock that did not end; or it has on servers, as others know */
            const bool   ended = again && (p.grouped || (p.served & 1) != 0);
            if (!may_be_seen(me, v, clock, again, value) && !(ended && may_be_seen(me, v, clock + 1, false, value)))
                return wrong("rank %d in clock %lld%s: item %d of worker %d is %.0f, due %llx", me, (long long)clock,
                             again ? " again" : "", i, v, value, (unsigned long long)due_of(v, clock));
        }
    return PLAIT_OK;
}

/* The same bits on all workers. */
static bool as_the_others(const double values[VALUES]) {
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    if (!run->ends) memcpy(run->model_left, values, sizeof run->model_left);
    run->ends = true;
    const bool same = memcmp(run->model_left, values, sizeof run->model_left) == 0;
    pthread_mutex_unlock(&one);
    return same;
}

/* What is left at the end, as any of the workers has read it. */
static plait_status note_left(plait_table *table) {
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    double                 values[VALUES];
    PLI_TRY(read_all(table, values));
    pthread_mutex_lock(&one);
    memcpy(run->left, values, sizeof values);
    pthread_mutex_unlock(&one);
    return PLAIT_OK;
}

/* Behind a barrier, so nothing is under way. */
static plait_status check_end(plait_table *const *table, int32_t me) {
    double values[VALUES] = { 0 };
    PLI_TRY(check_counts(table[0], me, p.clocks + p.delay, false));
    if (table[0] != NULL && p.keeps) PLI_TRY(note_left(table[0]));
    if (p.by_counts || table[1] == NULL) return PLAIT_OK;
    PLI_TRY(read_all(table[1], values));
    if (!as_the_others(values)) return wrong("rank %d ends with other bits than another", me);
    if (p.victim < 0) { /* the first worker that has the table notes it for all */
        if (me == (has(1, 0) ? 0 : 1)) memcpy(run->model, values, sizeof values);
        return PLAIT_OK;
    }
    if (p.delay > 0 || p.period > 0) return PLAIT_OK;
    return memcmp(run->model, values, sizeof values) == 0 ? PLAIT_OK : wrong("rank %d ends with other bits", me);
}

/* Adds what filters keep of a table with a dead worker to kept. */
static void add_kept(const pli_coded *coded, double *kept) {
    static _Thread_local double all[ROWS * WORKERS_MAX];
    const pli_residual         *r = &coded->up[0].residual;
    for (int64_t i = 0; p.shape > 0 && i < r->set.n; i++)
        for (int32_t v = 0; v < p.workers; v++)
            kept[(int64_t)r->set.keys[i] / (ROWS / ITEMS) * p.workers + v] +=
                ((const double *)r->values)[i * p.workers + v];
    for (int of_sums = 0; p.shape == 0 && of_sums < 2; of_sums++) {
        pli_coded_kept(coded, of_sums != 0, all);
        for (int i = 0; i < ITEMS; i++)
            for (int32_t v = 0; v < p.workers; v++)
                kept[i * p.workers + v] += all[(int64_t)key_of(i) * p.workers + v];
    }
}

/* The worker is dead. If a sum is under way, the others may end its clock with it, or without. */
static void note_lost(const plait_table *table, int32_t me) {
    plait_error err;
    if (table == NULL || !p.keeps || (me != p.victim && me != p.second)) return;
    const pli_mirror *mirror = pli_mirror_of(table);
    double(*lost)[VALUES] = run->lost[me == p.second];
    if (mirror->coded == NULL) return;
    add_kept(mirror->coded, lost[0]);
    const pli_sum *newest = pli_mirror_newest(mirror);
    if (newest != NULL && !newest->made) (void)pli_coded_put_back(mirror->coded, &newest->own, &err);
    add_kept(mirror->coded, lost[1]);
}

/* When all threads have ended. */
static bool all_is_there_but_what_was_lost(void) {
    for (int way = 0; way < 4; way++) {
        bool good = true;
        for (int32_t v = 0; v < p.workers; v++)
            for (int i = 0; i < ITEMS; i++) {
                const int n = i * p.workers + v;
                good = good && -run->left[n] + run->lost[0][way & 1][n] + run->lost[1][way >> 1][n] ==
                                   (double)due_of(v, p.clocks);
            }
        if (good) return true;
    }
    return false;
}

static plait_status make_group(plait_job *job, int t, plait_group **group_out) {
    static const char *const names[] = { "all but the last", "all but the first" };
    int32_t                  n = 0, members[WORKERS_MAX];
    for (int32_t v = 0; v < p.workers; v++)
        if (has(t, v)) members[n++] = v;
    return p.grouped ? plait_group_create(plait_job_comm(job), names[t], n, members, group_out) : PLAIT_OK;
}

/* Where a table lies in a job that has tables of both kinds. On servers a late table would have no stand-ins. */
static void place(plait_table_opts *o, int table) {
    if (p.served == 0) return;
    o->topology = (p.served >> table & 1) != 0 ? "ps" : "allreduce";
    if ((p.served >> table & 1) != 0 && p.delay > 0) o->consistency = "bsp";
}

static plait_status make_loose(plait_job *job, plait_table **table_out) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "loose";
    o.type = PLAIT_F64;
    o.rows = p.workers;
    o.topology = "ps";
    o.consistency = "ssp:1";
    return p.served != 0 ? plait_table_create(job, &o, table_out) : PLAIT_OK;
}

static plait_status add_loose(plait_table *table, int32_t me, int64_t clock) {
    const uint64_t key = (uint64_t)me;
    const double   one = 1;
    double         seen = 0;
    if (table == NULL || clock >= p.clocks) return PLAIT_OK;
    PLI_TRY(plait_table_get(table, 1, &key, &seen));
    return plait_table_inc(table, 1, &key, &one, 0);
}

/* Each worker's own clocks, each once; a dead one's as far as it has come. */
static plait_status check_loose(plait_table *table, int32_t me) {
    double   seen[WORKERS_MAX];
    if (table == NULL) return PLAIT_OK;
    PLI_TRY(plait_table_get_range(table, 0, p.workers, seen));
    for (int32_t v = 0; v < p.workers; v++)
        if (seen[v] > (double)p.clocks || (!dies(v) && seen[v] < (double)p.clocks))
            return wrong("rank %d: of worker %d's clocks %.0f are there", me, v, seen[v]);
    return PLAIT_OK;
}

static plait_status make_tables(plait_job *job, plait_table **table) {
    const int32_t    me = plait_comm_rank(plait_job_comm(job));
    plait_group     *group[2] = { NULL };
    plait_table_opts o;
    plait_table_opts_init(&o);
    for (int t = 0; t < 2; t++) PLI_TRY(make_group(job, t, &group[t]));
    o.name = "counts";
    o.type = PLAIT_F64;
    o.rows = p.shape == 2 ? 0 : ROWS;
    o.keyed = p.shape == 1;
    o.cols = p.workers;
    o.group = group[0];
    o.filter = p.filter;
    place(&o, 0);
    if (p.keeps) {
        o.rule.name = "sgd";
        o.rule.learning_rate = 1;
        o.sharded = p.sharded && p.shape == 0;
    }
    if (has(0, me)) PLI_TRY(plait_table_create(job, &o, &table[0]));
    o.name = "model";
    o.filter = p.filter != NULL ? "zstd" : NULL;
    o.group = group[1];
    o.rows = ROWS;
    o.keyed = 0;
    o.exact = p.delay == 0 && p.period == 0; /* a promise of whole clocks */
    o.topology = o.consistency = NULL;
    place(&o, 1);
    o.rule.name = "adam";
    o.rule.learning_rate = 0.05;
    o.sharded = p.sharded && (p.served & 2) == 0;
    if (has(1, me)) PLI_TRY(plait_table_create(job, &o, &table[1]));
    plait_table_opts_init(&o);
    changed[me] = INT64_MAX;
    o.name = "latest";
    o.type = PLAIT_F64;
    o.rows = p.shape == 2 ? 0 : ROWS;
    o.cols = p.workers;
    o.group = group[0];
    o.combine = "last";
    place(&o, 2);
    o.filter = p.filter != NULL ? "key-cache,zstd" : NULL;
    if (p.period == 0 && !p.by_hosts && has(0, me)) PLI_TRY(plait_table_create(job, &o, &table[2]));
    return make_loose(job, &table[3]);
}

static void note_clock(uint64_t took_ns) {
    uint64_t longest = atomic_load(&longest_ns);
    while (took_ns > longest && !atomic_compare_exchange_weak(&longest_ns, &longest, took_ns)) {}
}

static plait_status do_clocks(plait_job *job, plait_table **table) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    PLI_TRY(make_tables(job, table));
    PLI_TRY(plait_job_barrier(job));
    atomic_fetch_add(&run->created, 1);
    if (life_ns > 0) begin_life(&life_ns);
    for (int64_t clock = 0; clock < p.clocks + (p.keeps ? DRAIN : 0); clock++) {
        const uint64_t begun_ns = pli_comm_now(comm);
        plait_status   status;
        bool           again = false;
        strike(me, clock, 0);
        PLI_TRY(check_latest(table[2], me, clock));
        do {
            PLI_TRY(check_counts(table[0], me, clock, again));
            PLI_TRY(add_to_all(table, me, clock, again));
            PLI_TRY(add_latest(table[2], me, clock, again));
            if (!again) PLI_TRY(add_loose(table[3], me, clock));
            strike(me, clock, 1);
            if (again) atomic_fetch_add(&run->stood, 1);
            again = true;
        } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
        if (status < 0) return status;
        note_clock(pli_comm_now(comm) - begun_ns);
        strike(me, clock, 2);
        if (clock % 4 == 1) PLI_TRY(plait_comm_barrier(comm));
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(check_end(table, me));
    PLI_TRY(check_loose(table[3], me));
    atomic_fetch_add(&run->ended, 1);
    return PLAIT_OK;
}

static plait_status work(plait_job *job) {
    plait_table       *table[4] = { NULL };
    const plait_status status = do_clocks(job, table);
    if (status < 0) note_lost(table[0], plait_comm_rank(plait_job_comm(job)));
    return status;
}

static plait_status body(plait_comm *comm, void *unused) {
    plait_job_opts o;
    char           consistency[32];
    (void)unused;
    plait_job_opts_init(&o);
    o.topology = p.served != 0 ? "hybrid" : "allreduce";
    snprintf(consistency, sizeof consistency, "bsp");
    if (p.delay > 0) snprintf(consistency, sizeof consistency, "bounded-delay:%d", (int)p.delay);
    if (p.period > 0) snprintf(consistency, sizeof consistency, "local-sgd:%d", (int)p.period);
    o.consistency = consistency;
    if (p.by_hosts) o.aggregate = "host";
    o.replicas = p.replicas;
    o.spares = p.spares;
    return run_job(comm, &o, work);
}

static void prepare(plait_comm_opts *opts) {
    if (p.by_hosts) opts->collective = "hierarchical";
    memset(run->lost, 0, sizeof run->lost);
    /* The victim may have given its part of the killer's next clock, but not of the one behind that: with its sums
     * each slice has two holders again. */
    if (p.sharded && p.replicas == 2 && p.second >= 0) p.gap = 3;
}

static void tell(const char *text) {
    print_message("PLAIT_SEED=%llu on %s: %d workers (%d spares), shape %d%s, served %x, filter %s, delay %d, "
                  "period %d%s%s of %d, "
                  "rank %d dies at %lld.%d of rank %d, then %d: %s\n%s",
                  (unsigned long long)p.seed, p.transport, p.workers, p.spares, p.shape,
                  p.grouped ? " in groups" : "", (unsigned)p.served,
                  p.filter != NULL ? p.filter : "none", (int)p.delay, (int)p.period,
                  p.by_hosts ? ", by hosts" : "", p.sharded ? ", in slices" : "", (int)p.replicas, p.victim,
                  (long long)p.at, p.where, p.killer, p.second, text, p.cluster);
}

static void draw_filter(pli_random *r) {
    static const char *const without_loss[] = { "zstd", "key-cache,key-delta,zstd" };
    static const char *const keep[] = { "topk:0.3", "randk:0.3", "topk:0.02", "significant:3", "topk:0.3,zstd",
                                        "key-cache,key-delta,randk:0.4" };
    const int kind = (int)pli_random_below(r, 4);
    p.keeps = kind == 3;
    if (kind == 2) p.filter = without_loss[pli_random_below(r, p.shape == 0 ? 1 : 2)];
    if (kind == 3) p.filter = keep[pli_random_below(r, p.shape == 0 ? 5 : 6)];
}

static void draw_policy(pli_random *r) {
    const int kind = (int)pli_random_below(r, 4);
    if (kind == 2) p.delay = 1 + (int64_t)pli_random_below(r, 3);
    if (kind == 3) p.period = 2 + (int64_t)pli_random_below(r, 4);
    if (p.period > 0) p.keeps = false; /* what is summed then is what copies have moved, no update of a clock */
    if (p.period > 0) p.filter = NULL;
}

/* By the seed alone, so that what follows is drawn as it was. */
static void draw_slices(void) {
    p.sharded = p.delay == 0 && p.period == 0 && p.seed % 5 < 3;
    if (p.sharded && p.workers > 2 && !p.grouped && p.seed % 2 == 0) p.replicas = 3;
}

static void draw(pli_random *r) {
    p.workers = 2 + (int32_t)pli_random_below(r, WORKERS_MAX - 1);
    p.spares = pli_random_below(r, 3) == 0 ? 1 + (int32_t)pli_random_below(r, (uint64_t)p.workers - 1) : 0;
    p.shape = (int)pli_random_below(r, 3);
    p.grouped = p.workers - p.spares > 2 && pli_random_below(r, 3) == 0;
    p.clocks = CLOCKS;
    draw_filter(r);
    draw_policy(r);
    p.by_hosts = p.filter == NULL && !p.grouped && pli_random_below(r, 3) == 0;
    if (!p.keeps && !p.by_hosts && pli_random_below(r, 2) == 0) p.served = 1 + (int)pli_random_below(r, 6);
    p.replicas = 2;
    draw_slices();
}

/* Both replicas of a shard may be lost with two ranks, until it has two again. So may both holders of a slice: on
 * threads it is known when they have, see prepare. */
static bool may_lose_two(void) {
    const bool known = !p.sharded || p.replicas > 2 || strcmp(p.transport, "threads") == 0;
    return p.workers >= 3 && !p.grouped && p.served == 0 && known;
}

static int places(void) { return p.sharded ? 5 : p.served != 0 ? 4 : 3; }
static int cores(void) { return p.by_hosts ? 2 : 1; }

static const char *lacks(void) {
    return p.keeps && !all_is_there_but_what_was_lost() ? "more is missing than the dead kept, or less" : NULL;
}

/* --- a rank of a job of processes --------------------------------------------------------------------------------- */

enum { PROCESS_CLOCKS = 600, LIFE_US = 400000 };

/* A third of the jobs that have no groups lose two ranks. In every fifth job their lives begin with the job itself, so
 * that they may end before the tables are there. */
static plait_status process_body(plait_comm *comm, void *user) {
    pli_random    r = pli_random_at(p.seed, PLI_RANDOM_SCHEDULE, 23, 0);
    const int32_t me = plait_comm_rank(comm);
    p.workers = plait_comm_workers(comm);
    p.victim = (int32_t)pli_random_below(&r, (uint64_t)p.workers);
    const long first_ns = 1 + (long)pli_random_below(&r, LIFE_US) * 1000;
    if (p.seed % 3 == 2 && may_lose_two())
        p.second = (p.victim + 1 + (int32_t)pli_random_below(&r, (uint64_t)p.workers - 1)) % p.workers;
    const long second_ns = (LIFE_US / 4 + (long)pli_random_below(&r, LIFE_US)) * 1000;
    if (dies(me)) life_ns = me == p.second ? second_ns : first_ns;
    if (dies(me) && p.seed % 5 == 0) begin_life(&life_ns);
    return body(comm, user);
}

static int run_process(const char *seed) {
    plait_comm_opts opts;
    plait_error     err = { 0 };
    p = (plan){ .seed = strtoull(seed, NULL, 10), .transport = "mpi", .clocks = PROCESS_CLOCKS, .by_counts = true,
                .killer = -1, .at = -1, .second = -1, .replicas = 2 };
    p.shape = (int)(p.seed % 3);
    p.grouped = p.seed % 4 == 1;
    p.delay = p.seed % 5 == 3 ? 2 : 0;
    p.period = p.seed % 5 == 4 ? 3 : 0;
    if (p.seed / 4 % 2 == 1) p.served = 1 + (int)(p.seed % 6);
    p.sharded = p.delay == 0 && p.period == 0 && p.seed % 3 != 2; /* of two that die at once both may hold a slice */
    if (p.seed / 2 % 2 == 1) p.filter = p.shape == 0 ? "zstd" : "key-cache,key-delta,zstd";
    plait_comm_opts_init(&opts);
    opts.transport = "mpi";
    const plait_status status = plait_comm_run(&opts, process_body, NULL, &err);
    if (status < 0) fprintf(stderr, "seed %s: %s %s\n", seed, err.text, run->why);
    else printf("ended well, longest clock %.1f ms\n", (double)atomic_load(&longest_ns) * 1e-6);
    return status < 0;
}

int main(int argc, char **argv) {
    if (!show_runs()) return 1;
    return argc >= 3 && strcmp(argv[1], "processes") == 0 ? run_process(argv[2]) : main_of_deaths(argc, argv);
}
