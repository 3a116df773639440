/* tests/learn/survive.h - runs with two replicas of each shard, in which a rank dies: what the tests of such runs
 * share.
 *
 * It wraps some functions of the library (the linker's --wrap). From the job on, each rank counts its calls of them,
 * and at the killer's n-th call the victim dies. (A death before the job is there ends the run.) */
#ifndef PLAIT_TESTS_LEARN_SURVIVE_H
#define PLAIT_TESTS_LEARN_SURVIVE_H

#include <stdatomic.h>

#include "learn/train.h"

#include <unistd.h>

#include <plait/checkpoint.h>
#include <plait/events.h>

#include "comm/comm.h"
#include "data/checkpoint/checkpoint.h"
#include "table/state/state.h"
#include "table/table.h"

enum { RANKS_MAX = 12, HOLDERS = 3, ROWS = 900 };
#define TOLERANCE 1e-4 /* of a solver by all rows */
enum { ITEMS = 12, TABLE_ROWS = ITEMS * 3 }; /* of a program's own job */

typedef struct story {
    plait_train_opts     opts;
    int32_t              workers, servers, victim, killer;
    int64_t              at;     /* at which call of the killer the victim dies; -1: nobody dies */
    int32_t              second; /* who dies at a later call */
    int64_t              second_at; /* that call; 0: nobody */
    int64_t              second_clocks; /* or behind so many clocks of the killer since the first death; 0: nobody */
    int64_t              clocks; /* of the killer since then; its own */
    int64_t              late_clock; /* the victim dies behind this clock of the killer; 0: see above. Rank `late` hears
                                      * of the death before it hears that this clock of its own is safe */
    int32_t              late;
    int64_t              ended_clocks[RANKS_MAX]; /* each its rank's own */
    _Atomic bool         stood; /* late stands in */
    _Atomic int64_t      clocks_of[RANKS_MAX], lead; /* the same; how far a spare was ahead of the slowest worker */
    plait_comm *_Atomic  comm[RANKS_MAX]; /* release, pairs with the killer's acquire */
    _Atomic int64_t      calls[RANKS_MAX];
    int64_t              before_tables[RANKS_MAX]; /* how many of them came before its first table */
    _Atomic bool         begun; /* the job is there, on all ranks */
    plait_report         report[RANKS_MAX];
    bool                 ended[RANKS_MAX];
    int64_t              kept_clocks, points; /* the leading rank's, as kept_hash */
    char                 kept_hash[65];
    _Atomic int32_t      told;   /* deaths that the caller has heard of */
    _Atomic bool         stray;  /* one of them was none of the test's */
    char                 stray_why[400];
    _Atomic int64_t      checkpoints; /* that the caller has heard of */
    _Atomic int64_t      commits;
    int64_t              at_commit;   /* the lead dies at this commit of a checkpoint; -1: it does not */
    bool                 committed;   /* after the commit, else before */
    _Atomic int64_t              looked;      /* how often somebody has asked whether a capture is torn */
    int64_t                      tears_at;    /* when so often, it is torn; -1: never */
    _Atomic(const pli_capture *) torn;
    plait_events        *events;      /* NULL: no event log */
    bool                 restores;    /* a program's own job restores what it has saved */
    bool                 loads;       /* and once more, a clock later */
    float                held[RANKS_MAX][TABLE_ROWS * 2]; /* what each worker has read of it in the end */
} story;

static story *now; /* one at a time */

/* --- which seeds a test tries: PLAIT_SEED alone, or from 1 on ----------------------------------------------------- */

static inline const char *only_seed(void) { return getenv("PLAIT_SEED"); }

static inline int64_t runs_of(int64_t few, int64_t many) {
    if (only_seed() != NULL) return 1;
    return getenv("PLAIT_TEST_FULL") != NULL ? many : few;
}

static inline uint64_t seed_of(int64_t run) {
    return only_seed() != NULL ? strtoull(only_seed(), NULL, 10) : (uint64_t)run + 1;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static void kill_rank(int32_t rank) {
    plait_comm *victim = atomic_load_explicit(&now->comm[rank], memory_order_acquire);
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed by the test" };
    if (victim != NULL) pli_comm_kill(victim, &why);
}

static void come_by(const plait_comm *comm) {
    const int32_t me = plait_comm_rank(comm);
    if (now == NULL || !atomic_load(&now->begun)) return;
    const int64_t call = atomic_fetch_add(&now->calls[me], 1);
    if (me == now->killer && call == now->at) kill_rank(now->victim);
    if (me == now->killer && now->second_at > 0 && call == now->second_at) kill_rank(now->second);
}

/* The killer has ended a clock. */
static void end_clock(const plait_comm *comm) {
    const int32_t me = plait_comm_rank(comm);
    if (now == NULL || me != now->killer || now->at < 0 || atomic_load(&now->calls[me]) <= now->at) return;
    if (++now->clocks == now->second_clocks) kill_rank(now->second);
}

/* A spare is never far ahead of the slowest, though it has nothing to compute. */
static void note_lead(int32_t me, int64_t clocks) {
    const int32_t holders = now->workers - now->opts.spares;
    int64_t       slowest = INT64_MAX;
    for (int32_t w = 0; w < holders; w++) {
        const int64_t other = atomic_load(&now->clocks_of[w]);
        slowest = other < slowest ? other : slowest;
    }
    if (me >= holders && clocks - slowest > atomic_load(&now->lead)) atomic_store(&now->lead, clocks - slowest);
}

static void note_clock(int32_t me, plait_status status) {
    if (status == PLAIT_STAND_IN && me == now->late) atomic_store(&now->stood, true);
    if (status != PLAIT_OK) return;
    now->ended_clocks[me]++;
    note_lead(me, atomic_fetch_add(&now->clocks_of[me], 1) + 1);
    if (me == now->killer && now->ended_clocks[me] == now->late_clock) kill_rank(now->victim);
}

/* The lead dies in the thread of its writer, before or after the commit, as if its process were killed there. */
plait_status __real_pli_checkpoint_commit(const char *dir, const char *folder, const char *meta,
                                          const char *const *digests, int32_t n, plait_error *err);
plait_status __wrap_pli_checkpoint_commit(const char *dir, const char *folder, const char *meta,
                                          const char *const *digests, int32_t n, plait_error *err);
plait_status __wrap_pli_checkpoint_commit(const char *dir, const char *folder, const char *meta,
                                          const char *const *digests, int32_t n, plait_error *err) {
    const bool dies = now != NULL && atomic_fetch_add(&now->commits, 1) == now->at_commit;
    if (dies && !now->committed) {
        kill_rank(now->victim);
        return pli_fail(err, PLAIT_EIO, "died before it wrote a manifest");
    }
    plait_status status = __real_pli_checkpoint_commit(dir, folder, meta, digests, n, err);
    if (dies) kill_rank(now->victim);
    return status;
}

#define STAND_BEFORE(name, arguments, call, comm)                                                                      \
    plait_status __real_##name arguments;                                                                              \
    plait_status __wrap_##name arguments;                                                                              \
    plait_status __wrap_##name arguments {                                                                             \
        come_by(comm);                                                                                                 \
        plait_status status = __real_##name call;                                                                      \
        come_by(comm);                                                                                                 \
        return status;                                                                                                 \
    }
STAND_BEFORE(plait_job_barrier, (plait_job * job), (job), plait_job_comm(job))
STAND_BEFORE(plait_comm_broadcast, (plait_comm * comm, void *buf, size_t bytes, int32_t root), (comm, buf, bytes, root),
             comm)
STAND_BEFORE(plait_comm_barrier, (plait_comm * comm), (comm), comm)
STAND_BEFORE(plait_comm_allreduce, (plait_comm * comm, void *buf, int64_t n, plait_type type, plait_reduce op),
             (comm, buf, n, type, op), comm)
STAND_BEFORE(plait_comm_allreduce_begin,
             (plait_comm * comm, void *buf, int64_t n, plait_type type, plait_reduce op, plait_request **request_out),
             (comm, buf, n, type, op, request_out), comm)
STAND_BEFORE(plait_comm_allgatherv, (plait_comm * comm, const void *mine, size_t bytes, size_t *sizes, void **all_out),
             (comm, mine, bytes, sizes, all_out), comm)

static _Thread_local int32_t ending; /* the rank whose thread has last called plait_job_clock */

plait_status __real_plait_job_clock(plait_job *job);
plait_status __wrap_plait_job_clock(plait_job *job);
plait_status __wrap_plait_job_clock(plait_job *job) {
    come_by(plait_job_comm(job));
    ending = plait_comm_rank(plait_job_comm(job));
    plait_status status = __real_plait_job_clock(job);
    come_by(plait_job_comm(job));
    if (status == PLAIT_OK) end_clock(plait_job_comm(job));
    if (now != NULL) note_clock(plait_comm_rank(plait_job_comm(job)), status);
    return status;
}

bool __real_pli_client_is_safe(const pli_client *client);
bool __wrap_pli_client_is_safe(const pli_client *client);
bool __wrap_pli_client_is_safe(const pli_client *client) {
    const bool late = now != NULL && ending == now->late && now->late_clock > 0 && !atomic_load(&now->stood) &&
                      now->ended_clocks[ending] + 1 == now->late_clock;
    return !late && __real_pli_client_is_safe(client);
}

plait_status __real_plait_table_create(plait_job *job, const plait_table_opts *opts, plait_table **table_out);
plait_status __wrap_plait_table_create(plait_job *job, const plait_table_opts *opts, plait_table **table_out);
plait_status __wrap_plait_table_create(plait_job *job, const plait_table_opts *opts, plait_table **table_out) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    if (now != NULL && now->before_tables[me] == 0) now->before_tables[me] = atomic_load(&now->calls[me]);
    plait_status status = __real_plait_table_create(job, opts, table_out);
    come_by(plait_job_comm(job));
    return status;
}

plait_status __real_pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells);
plait_status __wrap_pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells);
plait_status __wrap_pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells) {
    come_by(comm);
    plait_status status = __real_pli_comm_sum_cells(comm, wide, n, cells);
    come_by(comm);
    return status;
}

/* Where it returns to one worker, all have agreed on the job. */
plait_status __real_plait_job_create(plait_comm *comm, const plait_job_opts *opts, plait_job **job_out);
plait_status __wrap_plait_job_create(plait_comm *comm, const plait_job_opts *opts, plait_job **job_out);
plait_status __wrap_plait_job_create(plait_comm *comm, const plait_job_opts *opts, plait_job **job_out) {
    plait_status status = __real_plait_job_create(comm, opts, job_out);
    if (now != NULL && status >= 0 && pli_comm_is_worker(comm)) atomic_store(&now->begun, true);
    if (status >= 0 && pli_comm_is_worker(comm)) come_by(comm);
    return status;
}

/* Says from some call on that the capture is torn, until it ends: as if a server that came after the cut lacked it. */
bool __real_pli_capture_is_torn(const pli_capture *capture);
bool __wrap_pli_capture_is_torn(const pli_capture *capture);
bool __wrap_pli_capture_is_torn(const pli_capture *capture) {
    if (now != NULL && atomic_fetch_add(&now->looked, 1) == now->tears_at) atomic_store(&now->torn, capture);
    return (now != NULL && atomic_load(&now->torn) == capture) || __real_pli_capture_is_torn(capture);
}

void __real_pli_capture_end(pli_capture **capture);
void __wrap_pli_capture_end(pli_capture **capture);
void __wrap_pli_capture_end(pli_capture **capture) {
    const pli_capture *ends = *capture;
    if (now != NULL && ends != NULL) atomic_compare_exchange_strong(&now->torn, &ends, NULL);
    __real_pli_capture_end(capture);
}

/* Which replica of a net in stages the rank belongs to; of another model each rank is one. Those of a replica die
 * together. */
static int32_t replica_of(const story *s, int32_t rank) {
    const int32_t cut = s->opts.cut;
    if (cut < 2) return rank;
    const int32_t holders = (s->workers - s->opts.spares) / cut, spares = s->opts.spares / cut;
    return rank < cut * holders ? rank % holders : holders + (rank - cut * holders) % spares;
}

static void on_lost(void *user, int32_t rank, const char *why) {
    story *s = user;
    const bool second = s->second_at > 0 || s->second_clocks > 0;
    const bool meant = (replica_of(s, rank) == replica_of(s, s->victim) ||
                        (second && replica_of(s, rank) == replica_of(s, s->second))) &&
                       strstr(why, "killed by the test") != NULL;
    /* an assertion would end the test without a word here, on a rank's thread */
    if (!meant && !atomic_exchange(&s->stray, true)) snprintf(s->stray_why, sizeof s->stray_why, "%s", why);
    atomic_fetch_add(&s->told, 1);
}

static void on_trained(void *user, const plait_report *report, const plait_model *model) {
    story *s = user;
    assert_non_null(model);
    s->kept_clocks = report->clocks;
    plait_model_hash(model, s->kept_hash);
}

static void on_point(void *user, const plait_point *point) {
    story *s = user;
    assert_true(isfinite(point->objective));
    s->points++;
}

static plait_status body(plait_comm *comm, void *user) {
    story       *s = user;
    const int32_t me = plait_comm_rank(comm);
    plait_model *model = NULL;
    atomic_store_explicit(&s->comm[me], comm, memory_order_release);
    plait_status status = s->events != NULL ? plait_events_record(comm, s->events) : PLAIT_OK;
    if (status >= 0) status = plait_train(comm, &s->opts, &s->report[me], &model);
    s->ended[me] = status >= 0;
    if (status >= 0 && model != NULL)
        plait_model_hash(model, s->report[me].model_hash); /* if ranks share a process, only one's report has it */
    plait_model_destroy(&model);
    return status;
}

static plait_status run_body(story *s, plait_body_fn *work, plait_error *err) {
    plait_comm_opts c;
    plait_comm_opts_init(&c);
    c.transport = "threads";
    c.workers = s->workers;
    c.servers = s->servers;
    c.timeout_ns = UINT64_C(60000000000);
    s->opts.user = s;
    now = s;
    plait_status status = plait_comm_run(&c, work, s, err);
    now = NULL;
    if (status >= 0 && atomic_load(&s->stray)) status = pli_fail(err, PLAIT_EPEER, "%s", s->stray_why);
    return status;
}

static plait_status run(story *s, plait_error *err) { return run_body(s, body, err); }

typedef struct kind {
    const char *name, *model, *consistency, *optimizer, *validation;
    bool        exact, keyed, passes; /* passes: a clock is a pass over all rows */
    const struct own *own; /* NULL: it has the defaults, and two classes */
    const char *filter;
} kind;

/* What a kind of trees has of its own. */
typedef struct own {
    plait_learner_setting set[4];
    int32_t               n;
    bool                  three; /* classes */
    bool                  votes; /* what a death changes stays: the votes of other rows elect other features */
    bool                  solves; /* it goes on until the objective is near its least value, in any number of clocks */
    double                l2;     /* of one that solves; 0: it has l1 instead */
    bool                  revotes; /* a death costs a clock */
    int64_t               sampled; /* classes that a net draws */
    bool        aged;    /* steps by staleness */
} own;

static const own few_leaves = { .set = { { "leaves", "8" } }, .n = 1 },
                 three_classes = { .set = { { "leaves", "8" } }, .n = 1, .three = true },
                 levels = { .set = { { "grow", "depth" }, { "depth", "3" }, { "subsample", "0.7" },
                                     { "colsample", "0.6" } }, .n = 4 },
                 features = { .set = { { "leaves", "8" }, { "trees-by", "features" } }, .n = 2 },
                 features_of_three = { .set = { { "leaves", "8" }, { "trees-by", "features" } }, .n = 2,
                                       .three = true },
                 voting = { .set = { { "leaves", "8" }, { "trees-by", "voting" }, { "elect", "3" } }, .n = 3,
                            .votes = true },
                 voting_for_all = { .set = { { "leaves", "8" }, { "trees-by", "voting" }, { "elect", "6" },
                                      { "min-rows", "1" } }, .n = 4, .revotes = true },
                 solved = { .solves = true }, by_all_rows = { .solves = true, .l2 = 0.01 },
                 rotating_words = { .set = { { "words", "rotate" }, { "components", "4" } }, .n = 2 },
                 few_factors = { .set = { { "components", "4" } }, .n = 1 },
                 drawn = { .three = true, .sampled = 2 }, aged = { .aged = true };

static const kind kinds[] = {
    { "dense", "logistic", "bsp", "adagrad", NULL, true, false, false, NULL, NULL },
    { "dense, validated", "logistic", "bsp", "adam", "0.2", true, false, false, NULL, NULL },
    { "keyed", "logistic", "bsp", "ftrl", NULL, true, true, false, NULL, NULL },
    { "net", "mlp", "bsp", "adam", "0.2", true, false, false, NULL, NULL },
    { "sums not exact", "logistic", "bsp", "sgd", NULL, false, false, false, NULL, NULL },
    { "ssp", "logistic", "ssp:2", "adagrad", NULL, false, false, false, NULL, NULL },
    { "essp, keyed", "logistic", "essp:1", "adagrad", NULL, false, true, false, NULL, NULL },
    { "async", "mlp", "async", "sgd", NULL, false, false, false, NULL, NULL },
    { "bounded-delay", "logistic", "bounded-delay:2", "sgd", NULL, false, true, false, NULL, "key-cache" },
    { "asp", "logistic", "asp:3:8", "adagrad", NULL, false, false, false, NULL, "fixed8" },
    { "downpour", "logistic", "downpour:3:2", "sgd", NULL, false, false, false, NULL, NULL },
    { "vap", "logistic", "vap:0.5", "sgd", NULL, false, false, false, NULL, NULL },
    { "sequential", "logistic", "sequential", "sgd", NULL, false, false, false, NULL, "zstd" },
    { "local-sgd", "mlp", "local-sgd:4", "sgd", NULL, false, false, false, NULL, NULL },
    { "keyed, filtered", "logistic", "bsp", "ftrl", NULL, true, true, false, NULL, "key-cache,key-delta,zstd" },
    { "net, rounded", "mlp", "bsp", "adam", "0.2", false, false, false, NULL, "fp16" },
    { "topk", "logistic", "async", "adagrad", NULL, false, true, false, NULL, "key-cache,topk:0.3" },
    { "clusters", "kmeans", "bsp", NULL, NULL, true, false, true, NULL, NULL },
    { "clusters by mini-batches", "kmeans", "bsp", NULL, NULL, true, false, false, NULL, NULL },
    { "components", "pca", "bsp", NULL, NULL, true, false, true, NULL, NULL },
    { "counts", "bayes", "bsp", NULL, NULL, true, false, false, NULL, NULL },
    { "counts by key", "bayes", "bsp", NULL, NULL, true, true, false, NULL, NULL },
    { "topics", "lda", "bsp", NULL, NULL, true, false, true, NULL, NULL },
    { "topics by mini-batches", "lda", "bsp", NULL, NULL, true, false, false, NULL, NULL },
    { "trees", "gbdt", "bsp", NULL, NULL, true, false, true, &few_leaves, NULL },
    { "trees of classes, validated", "gbdt", "bsp", NULL, "0.2", true, false, true, &three_classes, NULL },
    { "trees by levels, of samples", "gbdt", "bsp", NULL, NULL, true, false, true, &levels, NULL },
    { "trees of sparse rows", "gbdt", "bsp", NULL, NULL, true, true, true, &few_leaves, NULL },
    { "forest", "forest", "bsp", NULL, NULL, true, false, true, &few_leaves, NULL },
    { "coordinates", "logistic", "bsp", "cd", NULL, false, false, true, &solved, NULL },
    { "coordinates, validated", "logistic", "bsp", "cd", "0.2", false, false, true, &solved, NULL },
    { "coordinates by products", "squared", "bsp", "cd", NULL, false, false, true, &solved, NULL },
    { "newton", "logistic", "bsp", "newton", NULL, false, false, true, &by_all_rows, NULL },
    { "newton, a loss made sharper", "hinge", "bsp", "newton", NULL, false, false, true, &by_all_rows, NULL },
    { "newton, many weights", "logistic", "bsp", "newton", NULL, false, true, true, &by_all_rows, NULL },
    { "newton, stale", "logistic", "ssp:2", "newton", NULL, false, false, true, &by_all_rows, NULL },
    { "newton, many weights, stale", "logistic", "async", "newton", NULL, false, true, true, &by_all_rows, NULL },
    { "dual", "hinge", "bsp", "cd", NULL, false, false, true, &by_all_rows, NULL },
    { "dual, many weights, stale", "hinge", "ssp:1", "cd", NULL, false, true, true, &by_all_rows, NULL },
    { "trees by features", "gbdt", "bsp", NULL, NULL, true, false, true, &features, NULL },
    { "trees by features, of sparse rows", "gbdt", "bsp", NULL, NULL, true, true, true, &features, NULL },
    { "trees by features, of classes, validated", "gbdt", "bsp", NULL, "0.2", true, false, true, &features_of_three,
      NULL },
    { "forest by features", "forest", "bsp", NULL, NULL, true, false, true, &features, NULL },
    { "trees by voting", "gbdt", "bsp", NULL, NULL, false, false, true, &voting, NULL },
    { "trees by voting for all features", "gbdt", "bsp", NULL, NULL, true, false, true, &voting_for_all, NULL },
    { "factors", "mf", "bsp", "als", NULL, true, false, true, &few_factors, NULL },
    { "forest of classes, validated", "forest", "bsp", NULL, "0.2", true, false, true, &three_classes, NULL },
    { "net that draws classes, validated", "mlp", "bsp", "adam", "0.2", true, false, false, &drawn, NULL },
    { "lbfgs, vectors on servers", "logistic", "bsp", "lbfgs", NULL, true, false, true, &by_all_rows, NULL },
    { "lbfgs, vectors on servers, validated", "squared", "bsp", "lbfgs", "0.2", true, false, true, &by_all_rows, NULL },
    { "lbfgs, a loss made sharper", "hinge", "bsp", "lbfgs", NULL, false, false, true, &by_all_rows, NULL },
    { "lbfgs, many weights", "logistic", "bounded-delay:0", "lbfgs", NULL, false, true, true, &by_all_rows,
      "key-cache,key-delta,zstd" },
    { "lbfgs, few weights", "logistic", "bsp", "lbfgs", NULL, false, false, true, &by_all_rows, NULL },
    { "lbfgs of a net", "mlp", "bsp", "lbfgs", NULL, true, false, true, NULL, NULL },
    { "steps by staleness", "logistic", "ssp:2", "adagrad", NULL, false, false, false, &aged, NULL },
};
enum { WORDS = 2, THREE, RATINGS, SETS }; /* sets of data: words, three classes, ratings; how many */
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Many features, few of them in a row. */
static plait_data *by_key(void) {
    enum { PER_ROW = 8, FEATURES = 20000 };
    int64_t  *start = pli_array(ROWS + 1, sizeof *start);
    uint32_t *column = pli_array(ROWS * PER_ROW, sizeof *column);
    double   *label = pli_array(ROWS, sizeof *label);
    for (int64_t i = 0; i <= ROWS; i++) start[i] = i * PER_ROW;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(3, PLI_RANDOM_DATA, 0, (uint64_t)i);
        for (int64_t e = 0; e < PER_ROW; e++)
            column[i * PER_ROW + e] = (uint32_t)(e * (FEATURES / PER_ROW) + (int64_t)exp(pli_random_f64(&r) * 7));
        label[i] = column[i * PER_ROW] % 3 == 0 ? 1 : -1;
    }
    plait_data *data = NULL;
    assert_int_equal(plait_data_from_csr(ROWS, FEATURES, start, column, NULL, label, NULL, &data, NULL), PLAIT_OK);
    pli_free(start);
    pli_free(column);
    pli_free(label);
    return data;
}

/* Documents of ten words of forty; those of a document are neighbours. */
static plait_data *words(void) {
    enum { PER_ROW = 10, FEATURES = 40 };
    static int64_t  start[ROWS + 1];
    static uint32_t column[ROWS * PER_ROW];
    static double   label[ROWS];
    for (int64_t i = 0; i <= ROWS; i++) start[i] = i * PER_ROW;
    for (int64_t i = 0; i < ROWS * PER_ROW; i++) column[i] = (uint32_t)(i / PER_ROW % 4 * PER_ROW + i % PER_ROW);
    plait_data *data = NULL;
    assert_int_equal(plait_data_from_csr(ROWS, FEATURES, start, column, NULL, label, NULL, &data, NULL), PLAIT_OK);
    return data;
}

/* What 60 users say of 40 items. */
static plait_data *ratings(void) {
    char            path[] = "/tmp/plait-ratings-XXXXXX";
    const int       fd = mkstemp(path);
    FILE           *file = fdopen(fd, "w");
    plait_data_opts o;
    plait_data     *data = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(4, PLI_RANDOM_DATA, 0, (uint64_t)i);
        const int  user = (int)(i % 60), item = (int)pli_random_below(&r, 40);
        fprintf(file, "u%d i%d %.3f\n", user, item, 3 + sin(user * 1.3) * cos(item * 0.7) + 0.1 * pli_random_f64(&r));
    }
    assert_int_equal(fclose(file), 0);
    plait_data_opts_init(&o);
    o.paths = (const char *const[]){ path };
    o.n_paths = 1;
    o.format = "ratings";
    o.pairs = 1;
    assert_int_equal(plait_data_read(&o, &data, NULL), PLAIT_OK);
    assert_int_equal(unlink(path), 0);
    return data;
}

static inline void make_data(plait_data *data[SETS]) {
    data[0] = points(ROWS, 6, 2, 5);
    data[1] = by_key();
    data[WORDS] = words();
    data[THREE] = points(ROWS, 6, 3, 9);
    data[RATINGS] = ratings();
}

static inline void free_data(plait_data *data[SETS]) {
    for (int i = 0; i < SETS; i++) plait_data_destroy(&data[i]);
}

static story story_of(const kind *k, plait_data *const data[SETS], const int *stop) {
    story s = { .at = -1, .at_commit = -1, .tears_at = -1, .workers = HOLDERS };
    plait_train_opts_init(&s.opts);
    const int set = strcmp(k->model, "lda") == 0  ? WORDS
                    : strcmp(k->model, "mf") == 0 ? RATINGS
                    : k->own != NULL && k->own->three ? THREE
                                                  : k->keyed;
    s.opts.memory = s.opts.test_memory = data[set];
    if (k->own != NULL) s.opts.settings = k->own->set, s.opts.n_settings = k->own->n, s.opts.sampled = k->own->sampled;
    s.opts.staleness_aware = k->own != NULL && k->own->aged;
    s.opts.model = k->model;
    s.opts.layers = strcmp(k->model, "mlp") == 0 ? "8" : NULL;
    s.opts.topology = "ps";
    s.opts.consistency = k->consistency;
    s.opts.filter = k->filter;
    s.opts.optimizer = k->optimizer;
    s.opts.validation = k->validation;
    s.opts.exact = k->exact;
    const bool solves = k->own != NULL && k->own->solves;
    const double l2 = solves ? k->own->l2 : 0;
    if (solves) s.opts.l1 = l2 > 0 ? 0 : 0.02, s.opts.l2 = l2, s.opts.tolerance = l2 > 0 ? TOLERANCE : 1e-7;
    s.opts.replicas = 2;
    s.opts.epochs = l2 > 0 ? 0 : solves ? 100 : k->passes ? 6 : strcmp(k->model, "bayes") == 0 ? 1 : 2;
    s.opts.batch = k->passes ? 0 : 100;
    s.opts.stop = stop;
    s.opts.lost = on_lost;
    s.opts.trained = on_trained;
    s.opts.curve = 4;
    s.opts.point = on_point;
    return s;
}

/* Draws who dies, at which call of whom. whole: the run in which nobody died, with its numbers of calls. */
static void draw_death(story *s, pli_random *r, const story *whole) {
    s->victim = (int32_t)pli_random_below(r, (uint64_t)(s->workers + s->servers));
    do s->killer = (int32_t)pli_random_below(r, (uint64_t)s->workers);
    while (s->killer == s->victim);
    s->at = (int64_t)pli_random_below(r, (uint64_t)whole->calls[s->killer % whole->workers]);
}

/* Draws a rank that dies behind a clock that it has ended, and that is safe: one of the others knows, and goes on; the
 * other hears of the death first, and stands in in vain. So they count the dead one out a clock apart. */
static inline void draw_late(story *s, pli_random *r, const story *whole) {
    const int32_t turn = (int32_t)pli_random_below(r, 2);
    s->at = -1;
    s->victim = (int32_t)pli_random_below(r, HOLDERS);
    s->killer = (s->victim + 1 + turn) % HOLDERS;
    s->late = (s->victim + 2 - turn) % HOLDERS;
    s->late_clock = 1 + (int64_t)pli_random_below(r, (uint64_t)whole->ended_clocks[0]);
}

/* The report of the lowest worker that has ended well. */
static const plait_report *report_of(const story *s, int32_t *ended) {
    const plait_report *report = NULL;
    *ended = 0;
    for (int32_t w = s->workers - 1; w >= 0; w--) {
        if (!s->ended[w]) continue;
        report = &s->report[w];
        ++*ended;
    }
    return report;
}

/* Figures that a model does not have are NaN in both. */
static bool differ(double a, double b, double by) { return !(isnan(a) && isnan(b)) && !(fabs(a - b) <= by); }

static inline void check(const story *s, const kind *k, const story *whole, const char *seed) {
    int32_t             ended, all;
    const plait_report *r = report_of(s, &ended), *want = report_of(whole, &all);
    const bool     second = (s->second_at > 0 || s->second_clocks > 0) && s->second < s->workers;
    const int32_t  each = s->opts.cut > 1 ? s->opts.cut : 1, lost = s->victim >= s->workers ? 0 : each;
    if (ended < s->workers - lost - second * each) fail_msg("%s: %d have ended", seed, (int)ended);
    if (r->workers != s->workers || r->spares != s->opts.spares)
        fail_msg("%s: %lld spares", seed, (long long)r->spares);
    const bool votes = k->own != NULL && k->own->votes, solves = k->own != NULL && k->own->solves;
    const bool any_clocks = votes || solves || (k->own != NULL && k->own->revotes);
    const bool opens = strcmp(k->model, "gbdt") == 0 || strcmp(k->model, "forest") == 0 ||
                       pli_is(k->optimizer, "lbfgs");
    const int64_t doors = s->opts.slots > 0 && opens ? r->epochs : 0; /* clocks more at most (solve/doors.h) */
    const bool right = want->clocks <= r->clocks && r->clocks <= want->clocks + doors;
    if ((!right && !any_clocks) || !isfinite(r->train_loss))
        fail_msg("%s: %lld clocks", seed, (long long)r->clocks);
    if (s->kept_clocks != r->clocks)
        fail_msg("%s: the model was handed over in clock %lld, not %lld", seed, (long long)s->kept_clocks,
                 (long long)r->clocks);
    if (k->exact && strcmp(s->kept_hash, want->model_hash) != 0) fail_msg("%s: another model was kept", seed);
    const double near = solves && k->own->l2 > 0 ? TOLERANCE : 1e-7;
    if (solves && (!r->converged || !(fabs(r->objective - want->objective) <= 2 * near * want->objective)))
        fail_msg("%s: the objective is %.17g instead of %.17g", seed, r->objective, want->objective);
    if (strcmp(k->consistency, "bsp") != 0 || (k->filter != NULL && !k->exact) || votes) { /* what a death changes
                                                                                               stays */
        assert_true(r->test_accuracy > want->test_accuracy - 0.15);
        return;
    }
    const double bound = k->exact ? 0 : near > 1e-7 ? 1e-3 : 1e-4; /* else floats are added in another order */
    if (k->exact && strcmp(r->model_hash, want->model_hash) != 0) fail_msg("%s: another model", seed);
    if (!(fabs(r->train_loss - want->train_loss) <= bound) || !(fabs(r->objective - want->objective) <= bound) ||
        !(fabs(r->test_loss - want->test_loss) <= bound) || differ(r->test_auc, want->test_auc, k->exact ? 0 : 1e-3) ||
        (k->validation != NULL && !(fabs(r->validation_loss - want->validation_loss) <= bound)))
        fail_msg("%s: losses %.17g %.17g %.17g instead of %.17g %.17g %.17g", seed, r->train_loss, r->test_loss,
                 r->validation_loss, want->train_loss, want->test_loss, want->validation_loss);
}

/* Does it go on without the dead under allreduce, too? There each worker has all tables, and none is on a server. */
static inline bool is_summed(const kind *k) { return strcmp(k->consistency, "bsp") == 0 && k->filter == NULL; }

static inline void take_spares(story *s, int32_t spares) {
    s->opts.spares = spares;
    s->workers += spares;
}

#endif
