/* stories.h - runs of vertex programs on ranks that are threads, with two replicas, in which ranks die: what is drawn
 * by a seed, and how somebody is killed. For survive_test.c, which looks at the values, and scopes_test.c, which has
 * the audit look at the locks. Needs cmocka.h before.
 *
 * The killer strikes within a call of the program's own functions, whose number is drawn, or between supersteps. So
 * it may be anywhere in its superstep, and the victim in its own. In half of the runs it does so by a thread that
 * waits for a drawn while, and the victim dies in the midst of clocks and votes, too. Programs that have a run of their
 * own call nothing of the test's: there the killer's reads, pushes and clocks are counted, as its event log tells
 * them, and the thread strikes.
 *
 * In half of the runs whose program and cut allow it each worker has its own part of the graph alone, and who takes
 * over another part reads it again. */
#ifndef PLI_TESTS_VERTEX_STORIES_H
#define PLI_TESTS_VERTEX_STORIES_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "comm/comm.h"
#include "named.h"
#include "table/mortal.h"
#include "vertex/als.h"
#include "vertex/gcn.h"
#include "vertex/ingress.h"
#include "vertex/vertex.h"

enum { N = 60, M = 170, USERS = 35, RANKS_MAX = 7, ENOUGH = 3000 }; /* supersteps: all runs end sooner by themselves */

typedef struct story {
    uint64_t     seed;
    const char  *program, *cut_by, *engine, *scope, *order;
    int32_t      workers, servers, victim, second, killer; /* second -1: nobody */
    int64_t      at;      /* the killer's call in which it strikes; 0: it does not */
    int64_t      limit;
    bool         exact, asynchronous; /* asynchronous: by no other engine */
    bool         parts;               /* each worker reads its own: */
    char         path[40];            /* of this file               */
    plait_edges *edges, *own[RANKS_MAX];
    plait_vertex_cut    *cut, *own_cut[RANKS_MAX];
    plait_vertex_program of;
    pli_vertex_choice    choice;
    plait_comm *_Atomic  comm[RANKS_MAX]; /* release, pairs with the killer's acquire */
    _Atomic int64_t      calls;           /* of the killer */
    int64_t              struck;          /* the killer's clock in which the victim died; -1: not yet */
    int64_t              delay;           /* 0: the killer kills; else a reaper does, after so many additions */
    pthread_mutex_t      mutex;
    pthread_cond_t       told;
    bool                 reaps, reaps_again, over; /* under mutex */
    atomic_bool          reaped;                   /* the victim is dead */
    const pli_vertex_named *itself; /* it runs itself; NULL: by an engine */
    void (*release)(void **own);    /* of choice.own; NULL: it has none   */
    pli_event_sink       sink;      /* of a program that runs itself       */
    _Atomic int64_t      spins;
    atomic_int           ended;
    bool                 has_ended[RANKS_MAX];
    int64_t              value[RANKS_MAX][2 * N];
    plait_vertex_report  report[RANKS_MAX];
    const pli_event_sink *events; /* NULL: no event log */
} story;

/* A worker's hold on the program: its functions are called by way of it. */
typedef struct hand {
    story     *s;
    plait_job *job;
    int32_t    me;
} hand;

static inline void kill_rank(story *s, int32_t rank) {
    pthread_mutex_lock(&s->mutex);
    plait_comm *victim = atomic_load_explicit(&s->comm[rank], memory_order_acquire);
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed by the test" };
    if (victim != NULL) pli_comm_kill(victim, &why);
    pthread_mutex_unlock(&s->mutex);
}

static inline bool waits_for(story *s, const bool *what) {
    pthread_mutex_lock(&s->mutex);
    while (!*what && !s->over) pthread_cond_wait(&s->told, &s->mutex);
    const bool is = *what;
    pthread_mutex_unlock(&s->mutex);
    return is;
}

/* Kills the victim in a while, from a thread of its own: so it dies in the midst of clocks and votes, too. */
static inline void *reap(void *user) {
    story *s = user;
    if (!waits_for(s, &s->reaps)) return NULL;
    for (int64_t i = 0; i < s->delay; i++) atomic_fetch_add(&s->spins, 1);
    kill_rank(s, s->victim);
    atomic_store(&s->reaped, true);
    if (s->itself != NULL && waits_for(s, &s->reaps_again)) kill_rank(s, s->second);
    return NULL;
}

static inline void tell_reaper(story *s, bool *what) {
    pthread_mutex_lock(&s->mutex);
    *what = true;
    pthread_cond_signal(&s->told);
    pthread_mutex_unlock(&s->mutex);
}

static inline void strike(const hand *h) {
    story *s = h->s;
    if (h->me != s->killer || atomic_fetch_add(&s->calls, 1) + 1 != s->at) return;
    s->struck = plait_job_clock_now(h->job);
    if (s->delay > 0) tell_reaper(s, &s->reaps);
    else kill_rank(s, s->victim);
}

/* The killer has read or pushed, or ended a clock. Four clocks behind a death that had come before, all shards
 * have two replicas again. */
static inline void strike_by_event(void *user, const pli_event *e) {
    story *s = user;
    if (e->server || e->rank != s->killer) return;
    if (atomic_fetch_add(&s->calls, 1) + 1 == s->at) tell_reaper(s, &s->reaps);
    if (s->struck < 0 && atomic_load(&s->reaped)) s->struck = e->clock;
    if (s->second < 0 || s->struck < 0 || e->clock < s->struck + 4) return;
    s->struck = INT64_MAX - 4; /* once */
    tell_reaper(s, &s->reaps_again);
}

/* Asked in each superstep. Three clocks later all shards have two replicas again. */
static inline int strike_again(void *user) {
    const hand *h = user;
    story      *s = h->s;
    if (h->me != s->killer) return 0;
    strike(h);
    if (s->second < 0 || s->struck < 0 || plait_job_clock_now(h->job) < s->struck + 3) return 0;
    kill_rank(s, s->second);
    s->struck = INT64_MAX - 3; /* once */
    return 0;
}

static inline void init(void *user, const plait_vertex *v, void *value) {
    const hand *h = user;
    if (h->s->of.init != NULL) h->s->of.init(h->s->of.user, v, value);
}

static inline void tell(void *user, const plait_vertex *v, const void *value, void *told) {
    const hand *h = user;
    strike(h);
    if (h->s->of.tell != NULL) h->s->of.tell(h->s->of.user, v, value, told);
    else memcpy(told, value, sizeof(int64_t));
}

static inline double apply(void *user, const plait_vertex *v, const void *gathered, void *value) {
    const hand *h = user;
    strike(h);
    return h->s->of.apply(h->s->of.user, v, gathered, value);
}

static inline double update(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    const hand *h = user;
    strike(h);
    return h->s->of.update(h->s->of.user, v, n, edge, value);
}

static inline int scatter(void *user, const plait_vertex_edge *edge) {
    const hand *h = user;
    strike(h);
    return h->s->of.scatter(h->s->of.user, edge);
}

static inline int starts(void *user, const plait_vertex *v) {
    const hand *h = user;
    return h->s->of.starts(h->s->of.user, v);
}

static inline void total(void *user, const plait_vertex *v, const void *value, double *sum) {
    const hand *h = user;
    strike(h);
    h->s->of.total(h->s->of.user, v, value, sum);
}

static inline void total_edge(void *user, const plait_vertex_edge *edge, double *sum) {
    const hand *h = user;
    h->s->of.total_edge(h->s->of.user, edge, sum);
}

static inline int stop(void *user, int64_t superstep, const double *sum) {
    const hand *h = user;
    return h->s->of.stop(h->s->of.user, superstep, sum);
}

/* --- programs of the test's own ----------------------------------------------------------------------------------- */

/* PageRank that ends by the sum of ranks and of what edges carry, for which each vertex and edge must count once. */
static inline void rank_total(void *user, const plait_vertex *v, const void *value, double *sum) {
    (void)user;
    (void)v;
    sum[0] += *(const double *)value;
}
static inline void flow_total(void *user, const plait_vertex_edge *edge, double *sum) {
    (void)user;
    sum[1] += *(const double *)edge->told;
}
static inline int is_enough(void *user, int64_t superstep, const double *sum) {
    (void)user;
    (void)superstep;
    return sum[0] < 0.8 && sum[1] < 0.75;
}

/* Each vertex moves half of the way to the largest of its neighbors' floats: update sees all of them at once. */
static inline void spread_init(void *user, const plait_vertex *v, void *value) {
    (void)user;
    *(float *)value = (float)(v->index % 17) / 3;
}
static inline double spread_update(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge,
                                   void *value) {
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
static inline void token(void *user, const plait_vertex *v, void *value) {
    (void)user;
    ((int64_t *)value)[0] = v->index;
    ((int64_t *)value)[1] = 0;
}
static inline double swap_token(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge,
                                void *value) {
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
static inline int no_signal(void *user, const plait_vertex_edge *edge) {
    (void)user;
    (void)edge;
    return 0;
}

/* Who starts, who is signaled and who takes part again decide each bit: a vertex mixes what its neighbors have into its
 * own number each time that it takes part, MIXES times at most. */
enum { MIXES = 9 };
static inline double mix(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *edge, void *value) {
    int64_t *mine = value;
    uint64_t sum = (uint64_t)mine[1] * 31 + 1;
    (void)user;
    if (mine[0] == MIXES) return 0;
    for (int64_t k = 0; k < n; k++) sum += (uint64_t)((const int64_t *)edge[k].told)[1];
    mine[0]++;
    mine[1] = (int64_t)sum;
    return (mine[0] + v->index) % 3 > 0;
}
static inline int mixes_first(void *user, const plait_vertex *v) {
    (void)user;
    return v->index % 5 == 0;
}
static inline int mixes_too(void *user, const plait_vertex_edge *edge) {
    const int64_t *was = edge->was, *told = edge->told;
    (void)user;
    return (was[1] ^ told[1]) % 3 == 0;
}

/* A vertex lives while 2 edges come to it from the living. Its gathers are cached. */
static inline void alive(void *user, const plait_vertex *v, void *value) {
    (void)user;
    (void)v;
    *(int64_t *)value = 1;
}
static inline void count_living(void *user, const plait_vertex_edge *edge, void *gathered) {
    (void)user;
    *(int64_t *)gathered += *(const int64_t *)edge->told;
}
static inline double live_or_die(void *user, const plait_vertex *v, const void *gathered, void *value) {
    int64_t      *living = value;
    const int64_t old = *living;
    (void)user;
    (void)v;
    *living = old != 0 && *(const int64_t *)gathered >= 2;
    return (double)(old - *living);
}
static inline int has_died(void *user, const plait_vertex_edge *edge) {
    (void)user;
    return *(const int64_t *)edge->told != *(const int64_t *)edge->was;
}
static inline int post_death(void *user, const plait_vertex_edge *edge, void *gathered) {
    (void)user;
    *(int64_t *)gathered += *(const int64_t *)edge->told - *(const int64_t *)edge->was;
    return 1;
}

static inline plait_vertex_program program_of(const story *s) {
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
    if (pli_is(s->program, "mixed")) {
        plait_vertex_program_init(&p);
        p.name = "mixed";
        p.type = PLAIT_I64;
        p.values = 2;
        p.near = PLAIT_NEAR_BOTH;
        p.update = mix;
        p.starts = mixes_first;
        p.scatter = mixes_too;
        p.again = 1;
        return p;
    }
    if (pli_is(s->program, "core")) {
        plait_vertex_program_init(&p);
        p.name = "core";
        p.type = PLAIT_I64;
        p.init = alive;
        p.gather = count_living;
        p.apply = live_or_die;
        p.scatter = has_died;
        p.post_delta = post_death;
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

static inline plait_vertex_program by_way_of(hand *h) {
    const plait_vertex_program *of = &h->s->of;
    plait_vertex_program        p = *of;
    p.user = h;
    p.init = init;
    if (of->update == NULL) p.tell = tell;
    if (of->apply != NULL) p.apply = apply;
    if (of->update != NULL) p.update = update;
    if (of->scatter != NULL) p.scatter = scatter;
    if (of->starts != NULL) p.starts = starts;
    if (of->total != NULL) p.total = total;
    if (of->total_edge != NULL) p.total_edge = total_edge;
    if (of->stop != NULL) p.stop = stop;
    return p;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static inline plait_status work(void *user, plait_job *job) {
    story                     *s = user;
    hand                       h = { s, job, plait_comm_rank(plait_job_comm(job)) };
    const plait_vertex_program p = by_way_of(&h);
    plait_vertex_opts          opts;
    if (!pli_comm_is_worker(plait_job_comm(job))) return PLAIT_OK;
    const plait_edges      *edges = s->parts ? s->own[h.me] : s->edges;
    const plait_vertex_cut *cut = s->parts ? s->own_cut[h.me] : s->cut;
    if (s->itself != NULL) {
        pli_vertex_choice choice = s->choice;
        choice.edges = edges;
        PLI_TRY(s->itself->run(job, &choice, cut, s->limit, s->value[h.me], &s->report[h.me]));
        s->has_ended[h.me] = true;
        atomic_fetch_add(&s->ended, 1);
        return PLAIT_OK;
    }
    plait_vertex_opts_init(&opts);
    opts.supersteps = s->limit;
    opts.interrupted = strike_again;
    opts.engine = s->engine;
    opts.scope = s->scope;
    opts.order = s->order;
    opts.user = &h;
    PLI_TRY(plait_vertex_run_with(job, edges, cut, &p, &opts, s->value[h.me], &s->report[h.me]));
    s->has_ended[h.me] = true;
    atomic_fetch_add(&s->ended, 1);
    return PLAIT_OK;
}

static inline plait_status body(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.exact = s->exact;
    const int32_t    me = plait_comm_rank(comm);
    const plait_near near = s->itself != NULL ? s->itself->near : s->of.near;
    if (s->parts && pli_comm_is_worker(comm))
        PLI_TRY(pli_ingress_read(comm, s->path, NULL, near, s->cut_by, &s->own[me], &s->own_cut[me]));
    const plait_status status = run_mortal(comm, &o, s->events, &s->comm[me], work, s);
    pthread_mutex_lock(&s->mutex); /* nobody strikes a rank that is gone */
    atomic_store_explicit(&s->comm[me], NULL, memory_order_release);
    pthread_mutex_unlock(&s->mutex);
    return status;
}

static inline plait_status live(story *s, plait_error *err) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = s->workers;
    opts.servers = s->servers;
    opts.transport = "threads";
    opts.threads = 1;
    opts.timeout_ns = UINT64_C(60000000000);
    s->struck = -1;
    atomic_store(&s->calls, 0);
    atomic_store(&s->ended, 0);
    for (int i = 0; i < RANKS_MAX; i++) atomic_store(&s->comm[i], NULL);
    memset(s->has_ended, 0, sizeof s->has_ended);
    memset(s->value, 0, sizeof s->value);
    s->reaps = s->reaps_again = s->over = false;
    atomic_store(&s->reaped, false);
    s->sink = (pli_event_sink){ .raise = strike_by_event, .user = s };
    if (s->itself != NULL) s->events = &s->sink;
    pthread_t reaper;
    assert_int_equal(pthread_create(&reaper, NULL, reap, s), 0);
    const plait_status status = plait_comm_run(&opts, body, s, err);
    tell_reaper(s, &s->over);
    pthread_join(reaper, NULL);
    return status;
}

/* Ratings: the first vertices are users, and edges go from them to the others. For strong components most edges lead
 * up. */
static inline void draw_graph(story *s) {
    const bool  rated = pli_is(s->program, "als"), strong = pli_is(s->program, "strong");
    pli_random  random = pli_random_at(s->seed, PLI_RANDOM_DATA, 5, 0);
    uint64_t    from[M], to[M];
    float       weight[M];
    plait_error err;
    for (int k = 0; k < M; k++) {
        const double a = pli_random_f64(&random);
        from[k] = k < N ? (uint64_t)k : (uint64_t)(a * a * N); /* each vertex has an edge */
        to[k] = (uint64_t)(pli_random_f64(&random) * N);
        if (rated && from[k] < USERS) to[k] = USERS + to[k] % (N - USERS);
        else if (rated) to[k] = from[k], from[k] = (uint64_t)(a * USERS);
        else if (strong) to[k] = a < 0.15 ? from[k] - from[k] % 7 : from[k] + (from[k] < N - 9 ? to[k] % 9 : 0);
        weight[k] = (float)(1 + (int)(pli_random_f64(&random) * 5));
    }
    if (plait_edges_from_memory(M, from, to, weight, NULL, &s->edges, &err) < 0) fail_msg("%s", err.text);
}

/* A third goes by the asynchronous engine, whose cut is range. */
static inline void draw_engine(story *s, pli_random *r) {
    static const char *const programs[] = { "pagerank", "sssp", "bfs", "components", "tokens", "tokens" };
    static const char *const scopes[] = { "vertex", "edge", "full" }, *const orders[] = { "fifo", "priority", "sweep" };
    if (pli_random_below(r, 3) > 0 && !s->asynchronous) return;
    s->engine = "async";
    s->cut_by = "range";
    s->program = programs[pli_random_below(r, 6)];
    s->scope = scopes[pli_is(s->program, "tokens") ? 2 : pli_random_below(r, 3)];
    s->order = orders[pli_random_below(r, 3)];
}

static inline void prepare_als(story *s) {
    const pli_vertex_asked asked = { .components = 3, .l2 = 0.1 }; /* a value has 4 floats */
    plait_error            err;
    s->choice.tolerance = 1e-3;
    s->release = pli_als_release;
    if (pli_als_prepare(&asked, &s->choice, &err) < 0) fail_msg("%s", err.text);
}

/* Rows of features whose label is mostly told by them; a third of them trains. */
static inline void prepare_gcn(story *s) {
    pli_random       random = pli_random_at(s->seed, PLI_RANDOM_DATA, 8, 0);
    char             rows[40] = "/tmp/plait_rows_XXXXXX", split[40] = "/tmp/plait_split_XXXXXX";
    FILE            *row = fdopen(mkstemp(rows), "w"), *word = fdopen(mkstemp(split), "w");
    pli_vertex_asked asked = { .features = rows, .split = split };
    plait_error      err;
    assert_true(row != NULL && word != NULL);
    for (int v = 0; v < N; v++) {
        fprintf(row, "%d %d:1", v % 3, 1 + v % 3);
        for (int f = 4; f < 12; f++)
            if (pli_random_below(&random, 2) == 0) fprintf(row, " %d:1", f);
        fprintf(row, "\n");
        fprintf(word, v % 3 == 0 ? "train\n" : "test\n");
    }
    fclose(row);
    fclose(word);
    s->choice.seed = s->seed;
    const plait_status status = pli_gcn_prepare(&asked, &s->choice, &err);
    unlink(rows);
    unlink(split);
    if (status < 0) fail_msg("%s", err.text);
    s->release = pli_gcn_release;
    s->exact = true; /* else the order of sums is in the bits */
    s->limit = 1 + (int64_t)(s->seed % 4);
}

/* Drawn by a generator of its own. */
static inline void draw_parts(story *s) {
    pli_random     r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 9, 0);
    const uint64_t own = pli_random_below(&r, 2);
    if (own == 0 || pli_is(s->program, "als") || pli_is(s->program, "gcn") || pli_is(s->cut_by, "hdrf")) return;
    s->parts = true;
    snprintf(s->path, sizeof s->path, "/tmp/plait_edges_XXXXXX");
    FILE *f = fdopen(mkstemp(s->path), "w");
    assert_non_null(f);
    for (int64_t v = 0; v < N; v++)
        for (int64_t k = s->edges->in.start[v]; k < s->edges->in.start[v + 1]; k++)
            fprintf(f, "%u %lld %g\n", s->edges->in.near[k], (long long)v, (double)s->edges->in.weight[k]);
    assert_int_equal(fclose(f), 0);
}

static inline void draw(story *s) {
    static const char *const programs[] = { "pagerank", "sssp", "bfs", "components", "summed", "halves", "mixed",
                                            "core", "als", "gcn", "gcn", "strong", "strong", "triangles" };
    enum { PROGRAMS = sizeof programs / sizeof *programs, WHOLE_ROWS = 5 /* from "halves" on */, ITSELF = 9,
           ANY_CUT = 11 };
    static const char *const cuts[] = { "range", "random", "hdrf", "grid" };
    pli_random               r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 6, 0);
    plait_error              err;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->told, NULL);
    const uint64_t program = pli_random_below(&r, PROGRAMS);
    s->program = programs[program];
    s->cut_by = program >= WHOLE_ROWS && program < ANY_CUT ? "range" : cuts[pli_random_below(&r, 4)];
    if (pli_is(s->program, "triangles")) s->cut_by = "range"; /* as its own run has it */
    s->exact = pli_is(s->cut_by, "range") && pli_random_below(&r, 2) == 0;
    s->workers = 2 + (int32_t)pli_random_below(&r, 4);
    s->servers = pli_random_below(&r, 4) == 0 ? 2 : 0;
    draw_engine(s, &r);
    draw_graph(s);
    if (s->engine == NULL && program >= ITSELF) s->itself = pli_vertex_find(s->program, &err);
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
    if (pli_is(s->program, "als")) prepare_als(s);
    if (pli_is(s->program, "gcn")) prepare_gcn(s);
    s->of = program_of(s);
    if (plait_vertex_cut_create(s->edges, s->of.near, s->cut_by, s->workers, &s->cut, &err) < 0)
        fail_msg("%s", err.text);
    draw_parts(s);
}

static inline void free_story(story *s) {
    for (int w = 0; w < RANKS_MAX; w++) {
        plait_vertex_cut_destroy(&s->own_cut[w]);
        plait_edges_destroy(&s->own[w]);
    }
    if (s->parts) unlink(s->path);
    if (s->release != NULL) s->release(&s->choice.own);
    plait_vertex_cut_destroy(&s->cut);
    plait_edges_destroy(&s->edges);
    free(s);
}

/** How many runs a test makes: PLAIT_SEED one, PLAIT_SCHEDULES so many, else few, or many under PLAIT_TEST_FULL. */
static inline int64_t runs_of(int64_t few, int64_t full) {
    const char *many = getenv("PLAIT_SCHEDULES");
    if (getenv("PLAIT_SEED") != NULL) return 1;
    if (many != NULL) return strtoll(many, NULL, 10);
    return getenv("PLAIT_TEST_FULL") != NULL ? full : few;
}
static inline uint64_t seed_of(int64_t run) {
    const char *seed = getenv("PLAIT_SEED");
    return seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)run + 1;
}

#endif
