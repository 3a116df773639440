/* Vertex programs in jobs with two replicas, on ranks that are threads: a rank dies at any moment of another's, in half
 * of the runs with many ranks a second one some supersteps later, and the others end with what a run in which nobody
 * died ends with: the same values, bit for bit (over a vertex cut, where a plain sum may be added up in another order,
 * within 1e-12), the same number of supersteps, the same number of updates.
 *
 * The killer strikes within a call of the program's own functions, whose number is drawn, or between supersteps. So it
 * may be anywhere in its superstep, and the victim in its own. In half of the runs it does so by a thread that waits
 * for a drawn while, and the victim dies in the midst of clocks and votes, too. A failing seed is replayed by
 * PLAIT_SEED=seed; PLAIT_SCHEDULES=n runs n of them.
 *
 * Under the asynchronous engine there is no one order of updates: monotone programs come to the same values, ranks to
 * the same within 1e-9, and tokens that vertices change with each other are all there, once, each vertex having changed
 * its own as often as it should.
 *
 * What an heir could not make anew is refused by name. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "comm/comm.h"
#include "named.h"
#include "table/mortal.h"
#include "vertex/vertex.h"

enum { N = 60, M = 170, RANKS_MAX = 7, RUNS = 150, RUNS_FULL = 2000,
       ENOUGH = 3000 }; /* supersteps: all runs end sooner by themselves */

typedef struct story {
    uint64_t     seed;
    const char  *program, *cut_by, *engine, *scope, *order;
    int32_t      workers, servers, victim, second, killer; /* second -1: nobody */
    int64_t      at;      /* the killer's call in which it strikes; 0: it does not */
    int64_t      limit;
    bool         exact;
    plait_edges *edges;
    plait_vertex_cut    *cut;
    plait_vertex_program of;
    pli_vertex_choice    choice;
    plait_comm *_Atomic  comm[RANKS_MAX]; /* release, pairs with the killer's acquire */
    _Atomic int64_t      calls;           /* of the killer */
    int64_t              struck;          /* the killer's clock in which the victim died; -1: not yet */
    int64_t              delay;           /* 0: the killer kills; else a reaper does, after so many additions */
    pthread_mutex_t      mutex;
    pthread_cond_t       told;
    bool                 reaps, over; /* under mutex */
    _Atomic int64_t      spins;
    atomic_int           ended;
    bool                 has_ended[RANKS_MAX];
    int64_t              value[RANKS_MAX][2 * N];
    plait_vertex_report  report[RANKS_MAX];
} story;

/* A worker's hold on the program: its functions are called by way of it. */
typedef struct hand {
    story     *s;
    plait_job *job;
    int32_t    me;
} hand;

static void kill_rank(story *s, int32_t rank) {
    pthread_mutex_lock(&s->mutex);
    plait_comm *victim = atomic_load_explicit(&s->comm[rank], memory_order_acquire);
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed by the test" };
    if (victim != NULL) pli_comm_kill(victim, &why);
    pthread_mutex_unlock(&s->mutex);
}

/* Kills the victim in a while, from a thread of its own: so it dies in the midst of clocks and votes, too. */
static void *reap(void *user) {
    story *s = user;
    pthread_mutex_lock(&s->mutex);
    while (!s->reaps && !s->over) pthread_cond_wait(&s->told, &s->mutex);
    const bool kills = s->reaps;
    pthread_mutex_unlock(&s->mutex);
    for (int64_t i = 0; kills && i < s->delay; i++) atomic_fetch_add(&s->spins, 1);
    if (kills) kill_rank(s, s->victim);
    return NULL;
}

static void tell_reaper(story *s, bool *what) {
    pthread_mutex_lock(&s->mutex);
    *what = true;
    pthread_cond_signal(&s->told);
    pthread_mutex_unlock(&s->mutex);
}

static void strike(const hand *h) {
    story *s = h->s;
    if (h->me != s->killer || atomic_fetch_add(&s->calls, 1) + 1 != s->at) return;
    s->struck = plait_job_clock_now(h->job);
    if (s->delay > 0) tell_reaper(s, &s->reaps);
    else kill_rank(s, s->victim);
}

/* Asked in each superstep. Three clocks later all shards have two replicas again. */
static int strike_again(void *user) {
    const hand *h = user;
    story      *s = h->s;
    if (h->me != s->killer) return 0;
    strike(h);
    if (s->second < 0 || s->struck < 0 || plait_job_clock_now(h->job) < s->struck + 3) return 0;
    kill_rank(s, s->second);
    s->struck = INT64_MAX - 3; /* once */
    return 0;
}

static void init(void *user, const plait_vertex *v, void *value) {
    const hand *h = user;
    if (h->s->of.init != NULL) h->s->of.init(h->s->of.user, v, value);
}

static void tell(void *user, const plait_vertex *v, const void *value, void *told) {
    const hand *h = user;
    strike(h);
    if (h->s->of.tell != NULL) h->s->of.tell(h->s->of.user, v, value, told);
    else memcpy(told, value, sizeof(int64_t));
}

static double apply(void *user, const plait_vertex *v, const void *gathered, void *value) {
    const hand *h = user;
    strike(h);
    return h->s->of.apply(h->s->of.user, v, gathered, value);
}

static double update(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    const hand *h = user;
    strike(h);
    return h->s->of.update(h->s->of.user, v, n, edge, value);
}

static void total(void *user, const plait_vertex *v, const void *value, double *sum) {
    const hand *h = user;
    strike(h);
    h->s->of.total(h->s->of.user, v, value, sum);
}

static void total_edge(void *user, const plait_vertex_edge *edge, double *sum) {
    const hand *h = user;
    h->s->of.total_edge(h->s->of.user, edge, sum);
}

static int stop(void *user, int64_t superstep, const double *sum) {
    const hand *h = user;
    return h->s->of.stop(h->s->of.user, superstep, sum);
}

/* --- programs of the test's own ----------------------------------------------------------------------------------- */

/* PageRank that ends by the sum of ranks and of what edges carry, for which each vertex and edge must count once. */
static void rank_total(void *user, const plait_vertex *v, const void *value, double *sum) {
    (void)user;
    (void)v;
    sum[0] += *(const double *)value;
}
static void flow_total(void *user, const plait_vertex_edge *edge, double *sum) {
    (void)user;
    sum[1] += *(const double *)edge->told;
}
static int is_enough(void *user, int64_t superstep, const double *sum) {
    (void)user;
    (void)superstep;
    return sum[0] < 0.8 && sum[1] < 0.75;
}

/* Each vertex moves half of the way to the largest of its neighbors' floats: update sees all of them at once. */
static void spread_init(void *user, const plait_vertex *v, void *value) {
    (void)user;
    *(float *)value = (float)(v->index % 17) / 3;
}
static double spread_update(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    const float old = *(float *)value;
    float       most = old;
    (void)user;
    (void)v;
    for (int64_t k = 0; k < n; k++) most = fmaxf(most, *(const float *)edge[k].told);
    *(float *)value = old + (most - old) / 2;
    return (double)(*(float *)value - old);
}

/* Tokens that vertices change with a neighbor, TIMES times each: none may get lost or double. */
enum { TIMES = 4 };
static void token(void *user, const plait_vertex *v, void *value) {
    (void)user;
    ((int64_t *)value)[0] = v->index;
    ((int64_t *)value)[1] = 0;
}
static double swap_token(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    int64_t *mine = value;
    (void)user;
    if (n > 0) {
        const plait_vertex_edge *e = &edge[(v->index + mine[1]) % n];
        int64_t                 *theirs = e->told;
        if (e->other->index != v->index) {
            const int64_t was = mine[0];
            mine[0] = theirs[0];
            theirs[0] = was;
        }
    }
    return ++mine[1] < TIMES;
}
static int no_signal(void *user, const plait_vertex_edge *edge) {
    (void)user;
    (void)edge;
    return 0;
}

static plait_vertex_program program_of(const story *s) {
    plait_vertex_program p;
    if (pli_is(s->program, "tokens")) {
        plait_vertex_program_init(&p);
        p.name = "tokens";
        p.type = PLAIT_I64;
        p.values = 2;
        p.init = token;
        p.update = swap_token;
        p.scatter = no_signal;
        p.again = 1;
        return p;
    }
    if (pli_is(s->program, "halves")) {
        plait_vertex_program_init(&p);
        p.name = "halves";
        p.type = PLAIT_F32;
        p.init = spread_init;
        p.update = spread_update;
        p.tolerance = 1e-3;
        return p;
    }
    make(pli_is(s->program, "summed") ? "pagerank" : s->program, &s->choice, &p);
    if (!pli_is(s->program, "summed")) return p;
    p.totals = 2;
    p.total = rank_total;
    p.total_edge = flow_total;
    p.stop = is_enough;
    return p;
}

static plait_vertex_program by_way_of(hand *h) {
    const plait_vertex_program *of = &h->s->of;
    plait_vertex_program        p = *of;
    p.user = h;
    p.init = init;
    if (of->update == NULL) p.tell = tell;
    if (of->apply != NULL) p.apply = apply;
    if (of->update != NULL) p.update = update;
    if (of->total != NULL) p.total = total;
    if (of->total_edge != NULL) p.total_edge = total_edge;
    if (of->stop != NULL) p.stop = stop;
    return p;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static plait_status work(void *user, plait_job *job) {
    story                     *s = user;
    hand                       h = { s, job, plait_comm_rank(plait_job_comm(job)) };
    const plait_vertex_program p = by_way_of(&h);
    plait_vertex_opts          opts;
    if (!pli_comm_is_worker(plait_job_comm(job))) return PLAIT_OK;
    plait_vertex_opts_init(&opts);
    opts.supersteps = s->limit;
    opts.interrupted = strike_again;
    opts.engine = s->engine;
    opts.scope = s->scope;
    opts.order = s->order;
    opts.user = &h;
    PLI_TRY(plait_vertex_run_with(job, s->edges, s->cut, &p, &opts, s->value[h.me], &s->report[h.me]));
    s->has_ended[h.me] = true;
    atomic_fetch_add(&s->ended, 1);
    return PLAIT_OK;
}

static plait_status body(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.exact = s->exact;
    const int32_t      me = plait_comm_rank(comm);
    const plait_status status = run_mortal(comm, &o, NULL, &s->comm[me], work, s);
    pthread_mutex_lock(&s->mutex); /* nobody strikes a rank that is gone */
    atomic_store_explicit(&s->comm[me], NULL, memory_order_release);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static plait_status live(story *s, plait_error *err) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = s->workers;
    opts.servers = s->servers;
    opts.transport = "threads";
    opts.threads = 1;
    opts.timeout_ns = UINT64_C(20000000000);
    s->struck = -1;
    atomic_store(&s->calls, 0);
    atomic_store(&s->ended, 0);
    for (int i = 0; i < RANKS_MAX; i++) atomic_store(&s->comm[i], NULL);
    memset(s->has_ended, 0, sizeof s->has_ended);
    memset(s->value, 0, sizeof s->value);
    s->reaps = s->over = false;
    pthread_t reaper;
    assert_int_equal(pthread_create(&reaper, NULL, reap, s), 0);
    const plait_status status = plait_comm_run(&opts, body, s, err);
    tell_reaper(s, &s->over);
    pthread_join(reaper, NULL);
    return status;
}

static void draw_graph(story *s) {
    pli_random  random = pli_random_at(s->seed, PLI_RANDOM_DATA, 5, 0);
    uint64_t    from[M], to[M];
    float       weight[M];
    plait_error err;
    for (int k = 0; k < M; k++) {
        const double a = pli_random_f64(&random);
        from[k] = k < N ? (uint64_t)k : (uint64_t)(a * a * N); /* each vertex has an edge */
        to[k] = (uint64_t)(pli_random_f64(&random) * N);
        weight[k] = (float)(1 + (int)(pli_random_f64(&random) * 5));
    }
    if (plait_edges_from_memory(M, from, to, weight, NULL, &s->edges, &err) < 0) fail_msg("%s", err.text);
}

/* A third goes by the asynchronous engine, whose cut is range. */
static void draw_engine(story *s, pli_random *r) {
    static const char *const programs[] = { "pagerank", "sssp", "bfs", "components", "tokens", "tokens" };
    static const char *const scopes[] = { "vertex", "edge", "full" }, *const orders[] = { "fifo", "priority", "sweep" };
    if (pli_random_below(r, 3) > 0) return;
    s->engine = "async";
    s->cut_by = "range";
    s->program = programs[pli_random_below(r, 6)];
    s->scope = scopes[pli_is(s->program, "tokens") ? 2 : pli_random_below(r, 3)];
    s->order = orders[pli_random_below(r, 3)];
}

static void draw(story *s) {
    static const char *const programs[] = { "pagerank", "sssp", "bfs", "components", "summed", "halves" };
    static const char *const cuts[] = { "range", "random", "hdrf", "grid" };
    pli_random               r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 6, 0);
    plait_error              err;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->told, NULL);
    draw_graph(s);
    s->program = programs[pli_random_below(&r, 6)];
    s->cut_by = pli_is(s->program, "halves") ? "range" : cuts[pli_random_below(&r, 4)];
    s->exact = pli_is(s->cut_by, "range") && pli_random_below(&r, 2) == 0;
    s->workers = 2 + (int32_t)pli_random_below(&r, 4);
    s->servers = pli_random_below(&r, 4) == 0 ? 2 : 0;
    draw_engine(s, &r);
    s->limit = s->engine == NULL && pli_random_below(&r, 4) == 0 ? 3 + (int64_t)pli_random_below(&r, 5) : ENOUGH;
    s->killer = (int32_t)pli_random_below(&r, (uint64_t)s->workers);
    do s->victim = (int32_t)pli_random_below(&r, (uint64_t)(s->workers + s->servers));
    while (s->victim == s->killer);
    s->second = -1;
    if (s->servers == 0 && s->workers > 3 && pli_random_below(&r, 2) == 0)
        do s->second = (int32_t)pli_random_below(&r, (uint64_t)s->workers);
        while (s->second == s->killer || s->second == s->victim);
    const bool sourced = pli_is(s->program, "sssp") || pli_is(s->program, "bfs");
    s->choice = (pli_vertex_choice){ s->edges, sourced ? 0 : -1, 0.85, s->engine != NULL ? 1e-12 : 1e-6, 0, NULL };
    s->of = program_of(s);
    if (plait_vertex_cut_create(s->edges, s->of.near, s->cut_by, s->workers, &s->cut, &err) < 0)
        fail_msg("%s", err.text);
}

static void tell_failure(const story *s, const char *what) {
    fail_msg("%s: %s, %s over %s, %d workers, %d servers, rank %d dies at call %lld of rank %d, rank %d later\n"
             "replay: PLAIT_SEED=%llu test_vertex_survive", what, s->program, s->engine != NULL ? s->engine : "sync",
             s->cut_by, (int)s->workers, (int)s->servers, (int)s->victim, (long long)s->at, (int)s->killer,
             (int)s->second, (unsigned long long)s->seed);
}

/* Is each token there once, and has each vertex changed its own as often as it should? */
static bool are_tokens(const int64_t *value) {
    bool there[N] = { false };
    for (int v = 0; v < N; v++) {
        const int64_t *of = value + 2 * v;
        if (of[0] < 0 || of[0] >= N || there[of[0]] || of[1] != TIMES) return false;
        there[of[0]] = true;
    }
    return true;
}

/* Are these the values of the run in which nobody died? Asynchronous ranks come to them up to the tolerance. */
static bool are_same(const story *s, const int64_t *value, const int64_t *wanted) {
    const bool   shared = !pli_is(s->cut_by, "range") && s->of.apply != NULL;
    const size_t bytes = s->of.type == PLAIT_F32 ? 4 : 8;
    const bool   stale = s->engine != NULL && s->of.apply != NULL;
    if (pli_is(s->program, "tokens")) return are_tokens(value);
    if (!shared && !stale) return memcmp(value, wanted, N * bytes) == 0;
    for (int v = 0; v < N; v++)
        if (!(fabs(double_of(value[v]) - double_of(wanted[v])) < (stale ? 1e-9 : 1e-12))) return false;
    return true;
}

static void judge(const story *s, const story *straight) {
    for (int32_t w = 0; w < s->workers; w++) {
        if (!s->has_ended[w]) continue;
        if (!are_same(s, s->value[w], straight->value[0])) tell_failure(s, "other values");
        if (s->engine != NULL && s->report[w].still) continue;
        if (s->report[w].supersteps != straight->report[0].supersteps ||
            s->report[w].still != straight->report[0].still ||
            s->report[w].stopped != straight->report[0].stopped ||
            s->report[w].updates != straight->report[0].updates)
            tell_failure(s, "another number of supersteps or updates");
    }
}

static void test_any_one_may_die(void **state) {
    const char   *seed = getenv("PLAIT_SEED"), *many = getenv("PLAIT_SCHEDULES");
    const int64_t runs = seed != NULL                       ? 1
                         : many != NULL                     ? strtoll(many, NULL, 10)
                         : getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL
                                                            : RUNS;
    int64_t     deaths = 0;
    plait_error err;
    (void)state;
    for (int64_t i = 0; i < runs; i++) {
        story *straight = calloc(1, sizeof *straight), *s = calloc(1, sizeof *s);
        assert_non_null(straight);
        assert_non_null(s);
        s->seed = straight->seed = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)i + 1;
        draw(straight);
        draw(s);
        if (live(straight, &err) < 0) tell_failure(straight, err.text);
        pli_random r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 7, 0);
        const int64_t calls = atomic_load(&straight->calls);
        s->delay = pli_random_below(&r, 2) == 0 ? 0 : (int64_t)pli_random_below(&r, 1 << pli_random_below(&r, 16));
        s->at = calls > 0 ? 1 + (int64_t)pli_random_below(&r, (uint64_t)calls) : 0;
        if (live(s, &err) < 0) tell_failure(s, err.text);
        const int lost = s->workers - atomic_load(&s->ended);
        if (lost > 2 || (lost > 1 && s->second < 0) || !s->has_ended[s->killer]) tell_failure(s, "too few ended");
        judge(s, straight);
        deaths += lost;
        story *const both[] = { straight, s };
        for (int k = 0; k < 2; k++) {
            plait_vertex_cut_destroy(&both[k]->cut);
            plait_edges_destroy(&both[k]->edges);
            free(both[k]);
        }
    }
    if (seed == NULL) assert_true(deaths > runs / 2);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *says, *engine, *consistency;
    bool        scatters, numbers, stops;
} refusal;

typedef struct refusing {
    const refusal *r;
    plait_edges   *edges;
} refusing;

static int never(void *user, const plait_vertex_edge *edge) {
    (void)user;
    (void)edge;
    return 0;
}
static void nothing(void *user, const plait_vertex_edge *edge) {
    (void)user;
    (void)edge;
}

static plait_status save_nothing(void *user, plait_job *job, plait_table *const *tables, int32_t n) {
    (void)user;
    (void)job;
    (void)tables;
    (void)n;
    return PLAIT_OK;
}

static plait_status be_refused(plait_job *job, void *user) {
    const refusing      *f = user;
    pli_vertex_choice    choice = { f->edges, -1, 0.85, 1e-6, 0, NULL };
    plait_vertex_program p;
    plait_vertex_opts    opts;
    plait_vertex_cut    *cut = NULL;
    plait_vertex_opts_init(&opts);
    make("pagerank", &choice, &p);
    opts.engine = f->r->engine;
    if (f->r->stops) opts.pause = save_nothing;
    if (f->r->scatters) p.scatter = never;
    if (f->r->numbers) {
        p.edge_values = 1;
        p.edge_init = nothing;
    }
    PLI_TRY(plait_vertex_cut_create(f->edges, p.near, NULL, 2, &cut, NULL));
    const plait_status status = plait_vertex_run_with(job, f->edges, cut, &p, &opts, NULL, NULL);
    plait_vertex_cut_destroy(&cut);
    return status;
}

static void test_what_nobody_could_make_anew_is_refused(void **state) {
    static const refusal refusals[] = {
        { .says = "nearest is consistency bsp", .consistency = "ssp:2" },
        { .says = "checkpoints of engine async with replicas 2 are refused", .engine = "async", .stops = true },
        { .says = "which vertices are signaled is known to their worker alone", .scatters = true },
        { .says = "these numbers are in no table, and die with their worker", .numbers = true },
    };
    static const uint64_t from[] = { 1, 2, 3 }, to[] = { 2, 3, 1 };
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        refusing        f = { .r = &refusals[i] };
        plait_error     err;
        plait_comm_opts comm;
        plait_job_opts  job;
        plait_comm_opts_init(&comm);
        plait_job_opts_init(&job);
        comm.workers = 2;
        job.topology = "ps";
        job.replicas = 2;
        job.consistency = refusals[i].consistency;
        assert_int_equal(plait_edges_from_memory(3, from, to, NULL, NULL, &f.edges, &err), PLAIT_OK);
        assert_int_equal(plait_run(&comm, &job, be_refused, &f, &err), PLAIT_EREFUSED);
        if (strstr(err.text, refusals[i].says) == NULL) fail_msg("%s", err.text);
        plait_edges_destroy(&f.edges);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_one_may_die),
        cmocka_unit_test(test_what_nobody_could_make_anew_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
