/* Tests that a run with two replicas of each shard goes on when a rank dies, whether the others train, judge or end at
 * that moment. Under bsp with exact sums the model and its losses have the bits of the run in which nobody died; else
 * the model is like that one. The same holds with spares, which have no rows until then, whether nobody dies, one rank,
 * or two (that do not hold all copies of a shard). It holds for checkpoints, too: a run that is resumed from one, by
 * any number of workers, with two replicas or one, and with another death, ends with these bits.
 *
 * The test wraps some functions of the library (the linker's --wrap). From the job on, each rank counts its calls of
 * them, and at the killer's n-th call the victim dies. (A death before the job is there ends the run.) */
#include <stdatomic.h>

#include "learn/train.h"

#include <unistd.h>

#include <plait/checkpoint.h>

#include "comm/comm.h"
#include "data/checkpoint/checkpoint.h"
#include "table/state/state.h"
#include "table/table.h"

enum { RANKS_MAX = 8, HOLDERS = 3, ROWS = 900, RUNS = 120, RUNS_FULL = 400, KEPT = 60, KEPT_FULL = 400 };
enum { ITEMS = 12, TABLE_ROWS = ITEMS * 3, SAVED_AT = 3, SAVES = 40, SAVES_FULL = 300 }; /* a program's own job */

typedef struct story {
    plait_train_opts     opts;
    int32_t              workers, servers, victim, killer;
    int64_t              at;     /* at which call of the killer the victim dies; -1: nobody dies */
    int32_t              second; /* who dies at a later call */
    int64_t              second_at; /* that call; 0: nobody */
    plait_comm *_Atomic  comm[RANKS_MAX]; /* release, pairs with the killer's acquire */
    _Atomic int64_t      calls[RANKS_MAX];
    int64_t              before_tables[RANKS_MAX]; /* how many of them came before its first table */
    _Atomic bool         begun; /* the job is there, on all ranks */
    plait_report         report[RANKS_MAX];
    bool                 ended[RANKS_MAX];
    int64_t              kept_clocks, points; /* the leading rank's, as kept_hash */
    char                 kept_hash[65];
    _Atomic int32_t      told;   /* deaths that the caller has heard of */
    _Atomic int64_t      checkpoints; /* that the caller has heard of */
    _Atomic int64_t      commits;
    int64_t              at_commit;   /* the lead dies at this commit of a checkpoint; -1: it does not */
    bool                 committed;   /* after the commit, else before */
    _Atomic int64_t              looked;      /* how often somebody has asked whether a capture is torn */
    int64_t                      tears_at;    /* when so often, it is torn; -1: never */
    _Atomic(const pli_capture *) torn;
    bool                 restores;    /* a program's own job restores what it has saved */
    float                held[RANKS_MAX][TABLE_ROWS * 2]; /* what each worker has read of it in the end */
} story;

static story *now; /* one at a time */

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
STAND_BEFORE(plait_job_clock, (plait_job * job), (job), plait_job_comm(job))
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

static void on_lost(void *user, int32_t rank, const char *why) {
    story *s = user;
    const int32_t replicas = s->workers / (s->opts.cut > 1 ? s->opts.cut : 1); /* ranks of a replica die together */
    assert_true((rank % replicas == s->victim % replicas || (s->second_at > 0 && rank == s->second)) &&
                strstr(why, "killed by the test") != NULL);
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

static void on_checkpointed(void *user, const plait_checkpointed *checkpointed) {
    story *s = user;
    assert_true(checkpointed->bytes >= 0 && checkpointed->clock > 0);
    atomic_fetch_add(&s->checkpoints, 1);
}

static plait_status body(plait_comm *comm, void *user) {
    story       *s = user;
    const int32_t me = plait_comm_rank(comm);
    plait_model *model = NULL;
    atomic_store_explicit(&s->comm[me], comm, memory_order_release);
    plait_status status = plait_train(comm, &s->opts, &s->report[me], &model);
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
    return status;
}

static plait_status run(story *s, plait_error *err) { return run_body(s, body, err); }

typedef struct kind {
    const char *name, *model, *consistency, *optimizer, *validation;
    bool        exact, keyed, passes; /* passes: a clock is a pass over all rows */
} kind;

static const kind kinds[] = {
    { "dense", "logistic", "bsp", "adagrad", NULL, true, false, false },
    { "dense, validated", "logistic", "bsp", "adam", "0.2", true, false, false },
    { "keyed", "logistic", "bsp", "ftrl", NULL, true, true, false },
    { "net", "mlp", "bsp", "adam", "0.2", true, false, false },
    { "sums not exact", "logistic", "bsp", "sgd", NULL, false, false, false },
    { "ssp", "logistic", "ssp:2", "adagrad", NULL, false, false, false },
    { "essp, keyed", "logistic", "essp:1", "adagrad", NULL, false, true, false },
    { "async", "mlp", "async", "sgd", NULL, false, false, false },
    { "clusters", "kmeans", "bsp", NULL, NULL, true, false, true },
    { "clusters by mini-batches", "kmeans", "bsp", NULL, NULL, true, false, false },
    { "components", "pca", "bsp", NULL, NULL, true, false, true },
    { "counts", "bayes", "bsp", NULL, NULL, true, false, false },
    { "counts by key", "bayes", "bsp", NULL, NULL, true, true, false },
    { "topics", "lda", "bsp", NULL, NULL, true, false, true },
    { "topics by mini-batches", "lda", "bsp", NULL, NULL, true, false, false },
};
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

static story story_of(const kind *k, plait_data *const data[3], const int *stop) {
    story s = { .at = -1, .at_commit = -1, .tears_at = -1, .workers = HOLDERS };
    plait_train_opts_init(&s.opts);
    s.opts.memory = s.opts.test_memory = data[strcmp(k->model, "lda") == 0 ? 2 : k->keyed];
    s.opts.model = k->model;
    s.opts.layers = strcmp(k->model, "mlp") == 0 ? "8" : NULL;
    s.opts.topology = "ps";
    s.opts.consistency = k->consistency;
    s.opts.optimizer = k->optimizer;
    s.opts.validation = k->validation;
    s.opts.exact = k->exact;
    s.opts.replicas = 2;
    s.opts.epochs = k->passes ? 6 : strcmp(k->model, "bayes") == 0 ? 1 : 2;
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

static void check(const story *s, const kind *k, const story *whole, const char *seed) {
    int32_t             ended, all;
    const plait_report *r = report_of(s, &ended), *want = report_of(whole, &all);
    const bool second = s->second_at > 0 && s->second < s->workers;
    const int32_t  lost = s->victim >= s->workers ? 0 : s->opts.cut > 1 ? s->opts.cut : 1;
    if (ended < s->workers - lost - second) fail_msg("%s: %d have ended", seed, (int)ended);
    if (r->workers != s->workers || r->spares != s->opts.spares)
        fail_msg("%s: %lld spares", seed, (long long)r->spares);
    if (r->clocks != want->clocks || !isfinite(r->train_loss)) fail_msg("%s: %lld clocks", seed, (long long)r->clocks);
    if (s->kept_clocks != want->clocks) fail_msg("%s: the model was not handed over", seed);
    if (k->exact && strcmp(s->kept_hash, want->model_hash) != 0) fail_msg("%s: another model was kept", seed);
    if (strcmp(k->consistency, "bsp") != 0) {
        assert_true(r->test_accuracy > want->test_accuracy - 0.15);
        return;
    }
    const double bound = k->exact ? 0 : 1e-4; /* else floats are added in another order */
    if (k->exact && strcmp(r->model_hash, want->model_hash) != 0) fail_msg("%s: another model", seed);
    if (!(fabs(r->train_loss - want->train_loss) <= bound) || !(fabs(r->objective - want->objective) <= bound) ||
        !(fabs(r->test_loss - want->test_loss) <= bound) || differ(r->test_auc, want->test_auc, k->exact ? 0 : 1e-3) ||
        (k->validation != NULL && !(fabs(r->validation_loss - want->validation_loss) <= bound)))
        fail_msg("%s: losses %.17g %.17g %.17g instead of %.17g %.17g %.17g", seed, r->train_loss, r->test_loss,
                 r->validation_loss, want->train_loss, want->test_loss, want->validation_loss);
}

/* Adds spares; not under async, where nothing would keep them in step. */
static void take_spares(story *s, const kind *k, int32_t spares) {
    if (strcmp(k->consistency, "async") == 0) return;
    s->opts.spares = spares;
    s->workers += spares;
}

/* Draws who dies second, and when. If the first held no shards, the second may die at any moment. */
static void draw_second(story *s, pli_random *r) {
    const bool     apart = s->servers > 0, shards = apart ? s->victim >= s->workers
                                                          : s->victim < s->workers - s->opts.spares;
    const uint64_t ranks = (uint64_t)(s->workers + s->servers);
    if (shards || s->workers < 3) return;
    do s->second = (int32_t)pli_random_below(r, ranks);
    while (s->second == s->victim || s->second == s->killer);
    s->second_at = s->at + 1 + (int64_t)pli_random_below(r, 12);
}

/* If nobody dies, spares change nothing. */
static void stand_ready(const kind *k, plait_data *const data[3], const int *stop, const story *whole) {
    for (int32_t holders = 1; holders <= HOLDERS; holders += 2) {
        plait_error err = { 0 };
        char        what[80];
        story       s = story_of(k, data, stop);
        s.workers = holders;
        s.servers = strcmp(k->consistency, "async") == 0 ? 2 : 0; /* async takes no spares */
        s.victim = RANKS_MAX;
        take_spares(&s, k, 2);
        snprintf(what, sizeof what, "%s, %d workers and 2 spares", k->name, (int)holders);
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check(&s, k, whole, what);
    }
}

static void test_any_rank_may_die_at_any_moment(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[3] = { points(ROWS, 6, 2, 5), by_key(), words() };
    const char      *one = getenv("PLAIT_SEED");
    int64_t          runs = one != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL : RUNS, died = 0;
    story           *whole = pli_calloc(KINDS, sizeof *whole);
    plait_error      err = { 0 };
    for (size_t k = 0; k < KINDS; k++) {
        whole[k] = story_of(&kinds[k], data, &stop);
        if (run(&whole[k], &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
        if (one == NULL) stand_ready(&kinds[k], data, &stop, &whole[k]);
    }
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = one != NULL ? strtoull(one, NULL, 10) : (uint64_t)i + 1;
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 7, 0);
        const size_t   k = pli_random_below(&r, KINDS);
        story          s = story_of(&kinds[k], data, &stop);
        char           what[200];
        s.servers = pli_random_below(&r, 3) == 0 ? 2 : 0;
        take_spares(&s, &kinds[k], (int32_t)pli_random_below(&r, 3));
        if (s.opts.spares > 0 && pli_random_below(&r, 4) == 0) s.workers -= HOLDERS - 1; /* one holder, and spares */
        draw_death(&s, &r, &whole[k]);
        draw_second(&s, &r);
        snprintf(what, sizeof what,
                 "seed %llu (%s): rank %d of %d (%d spare) + %d at call %lld of rank %d, then rank %d at %lld",
                 (unsigned long long)seed, kinds[k].name, (int)s.victim, (int)s.workers, (int)s.opts.spares,
                 (int)s.servers, (long long)s.at, (int)s.killer, (int)s.second, (long long)s.second_at);
        if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
        err = (plait_error){ 0 };
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check(&s, &kinds[k], &whole[k], what);
        died += atomic_load(&s.told) > 0;
    }
    if (one == NULL && died * 2 < runs)
        fail_msg("only %lld of %lld deaths were told", (long long)died, (long long)runs);
    pli_free(whole);
    plait_data_destroy(&data[0]);
    plait_data_destroy(&data[1]);
    plait_data_destroy(&data[2]);
}

/* --- a net in stages ---------------------------------------------------------------------------------------------- */

static const kind staged[] = {
    { "net in stages", "mlp", "bsp", "adam", NULL, true, false, false },
    { "net in stages, validated", "mlp", "bsp", "adagrad", "0.2", true, false, false },
    { "net in stages, sums not exact", "mlp", "bsp", "sgd", NULL, false, false, false },
    { "net in stages, ssp", "mlp", "ssp:2", "sgd", NULL, false, false, false },
    { "net in stages, async", "mlp", "async", "sgd", NULL, false, false, false },
};
enum { STAGED = sizeof staged / sizeof staged[0], STAGED_RUNS = 40, STAGED_RUNS_FULL = 1000 };

static story story_in_stages(const kind *k, plait_data *const data[3], const int *stop, int32_t replicas, int32_t cut) {
    story s = story_of(k, data, stop);
    s.opts.layers = "8,6";
    s.opts.curve = 0;
    s.opts.cut = cut;
    s.opts.micro_batches = cut;
    s.workers = replicas * cut;
    return s;
}

/* The ranks of a dead one's replica die with it, and each clock still has all its rows once: under bsp with exact sums
 * the model has the bits of the run in which nobody died. */
static void test_any_rank_of_a_net_in_stages_may_die(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[3] = { points(ROWS, 6, 2, 5), by_key(), words() };
    const char      *one = getenv("PLAIT_SEED");
    int64_t runs = one != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? STAGED_RUNS_FULL : STAGED_RUNS, died = 0;
    story  *whole = pli_calloc(STAGED, sizeof *whole);
    plait_error err = { 0 };
    for (size_t k = 0; k < STAGED; k++) {
        whole[k] = story_in_stages(&staged[k], data, &stop, 2, 2);
        if (run(&whole[k], &err) < 0) fail_msg("%s: %s", staged[k].name, err.text);
    }
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = one != NULL ? strtoull(one, NULL, 10) : (uint64_t)i + 1;
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 11, 0);
        const size_t   k = pli_random_below(&r, STAGED);
        const int32_t  cut = 2 + (int32_t)pli_random_below(&r, 2);
        const int32_t  replicas = cut == 3 ? 2 : 2 + (int32_t)pli_random_below(&r, 2);
        story          s = story_in_stages(&staged[k], data, &stop, replicas, cut);
        char           what[160];
        draw_death(&s, &r, &whole[k]);
        snprintf(what, sizeof what, "seed %llu (%s): rank %d of %d x %d at call %lld of rank %d",
                 (unsigned long long)seed, staged[k].name, (int)s.victim, (int)replicas, (int)cut, (long long)s.at,
                 (int)s.killer);
        if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
        err = (plait_error){ 0 };
        if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
        check(&s, &staged[k], &whole[k], what);
        died += atomic_load(&s.told) > 0;
    }
    if (one == NULL && died * 2 < runs)
        fail_msg("only %lld of %lld deaths were told", (long long)died, (long long)runs);
    pli_free(whole);
    for (int i = 0; i < 3; i++) plait_data_destroy(&data[i]);
}

/* Between the making of the job and that of the first table kmeans draws its first centres. At each call there a rank
 * dies; under PLAIT_TEST_FULL each of them in turn. */
static void test_any_rank_may_die_while_first_centres_are_drawn(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[3] = { points(ROWS, 6, 2, 5), by_key(), words() };
    for (size_t k = 0; k < KINDS; k++) {
        story       whole = story_of(&kinds[k], data, &stop);
        plait_error err = { 0 };
        if (strcmp(kinds[k].model, "kmeans") != 0) continue;
        if (run(&whole, &err) < 0) fail_msg("%s: %s", kinds[k].name, err.text);
        assert_true(whole.before_tables[0] > 10);
        for (int64_t at = 0; at < whole.before_tables[0] * HOLDERS; at += getenv("PLAIT_TEST_FULL") != NULL ? 1 : 4) {
            story s = story_of(&kinds[k], data, &stop);
            char  what[100];
            s.at = at / HOLDERS;
            s.victim = (int32_t)(at % HOLDERS);
            s.killer = (s.victim + 1) % HOLDERS;
            take_spares(&s, &kinds[k], (int32_t)(at % 2));
            snprintf(what, sizeof what, "%s: rank %d at call %lld of rank %d", kinds[k].name, (int)s.victim,
                     (long long)s.at, (int)s.killer);
            if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
            check(&s, &kinds[k], &whole, what);
            assert_true(atomic_load(&s.told) > 0);
        }
    }
    plait_data_destroy(&data[0]);
    plait_data_destroy(&data[1]);
    plait_data_destroy(&data[2]);
}

/* --- with checkpoints --------------------------------------------------------------------------------------------- */

static char dir[40];

static void make_directory(void) {
    strcpy(dir, "/tmp/plait-survive-XXXXXX");
    assert_non_null(mkdtemp(dir));
}

/* Makes one of the checkpoints that are there the newest; false: there is none. Each checkpoint that the caller heard
 * of is there; one more may be, of which the dead rank was to tell. Nothing half written is left, unless the dead rank
 * alone knew of it. */
static bool choose_checkpoint(pli_random *r, int64_t told, const char *what) {
    pli_checkpoint_list list = { 0 };
    plait_error         err = { 0 };
    int64_t             good = 0, unfinished = 0;
    if (!pli_is_directory(dir)) return false;
    if (pli_checkpoint_list_read(dir, &list, &err) < 0) fail_msg("%s: %s", what, err.text);
    for (int64_t i = 0; i < list.n; i++) {
        good += list.entry[i].state == PLI_CHECKPOINT_COMPLETE;
        unfinished += list.entry[i].state == PLI_CHECKPOINT_UNFINISHED;
    }
    if (good < told || good > told + 1)
        fail_msg("%s: %lld checkpoints, %lld told", what, (long long)good, (long long)told);
    if (unfinished > 1) fail_msg("%s: %lld checkpoints half written stay", what, (long long)unfinished);
    int64_t drop = good > 0 ? (int64_t)pli_random_below(r, (uint64_t)good) : 0;
    for (int64_t i = list.n - 1; i >= 0 && drop > 0; i--) {
        if (list.entry[i].state != PLI_CHECKPOINT_COMPLETE) continue;
        assert_int_equal(pli_checkpoint_discard(dir, list.entry[i].folder, &err), PLAIT_OK);
        drop--;
    }
    pli_checkpoint_list_free(&list);
    return good > 0;
}

static void remove_checkpoints(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s/*", dir);
    assert_int_equal(system(command), 0);
}

/* Resumes from what is there, with any number of workers and replicas, and perhaps another death. */
static void go_on(const kind *k, plait_data *const data[3], const int *stop, pli_random *r, const story *whole,
                  const char *what) {
    plait_error err = { 0 };
    story       s = story_of(k, data, stop);
    char        more[320];
    s.opts.resume = dir;
    s.opts.checkpoint = pli_random_below(r, 2) == 0 ? dir : NULL;
    s.opts.checkpoint_clocks = 5;
    s.opts.curve = 0;
    s.opts.replicas = 1 + (int32_t)pli_random_below(r, 2);
    s.workers = k->exact ? 2 + (int32_t)pli_random_below(r, 3) : 3;
    if (s.opts.replicas == 2) take_spares(&s, k, (int32_t)pli_random_below(r, 2));
    if (s.opts.replicas == 2 && pli_random_below(r, 2) == 0) {
        draw_death(&s, r, whole);
        /* A resumed run makes fewer calls; the first ones put tables back. */
        s.at = pli_random_below(r, 2) == 0 ? s.at / 3 : s.at % 8;
    }
    snprintf(more, sizeof more, "%s; then %d replicas by %d (%d spare): rank %d at call %lld of rank %d", what,
             (int)s.opts.replicas, (int)s.workers, (int)s.opts.spares, (int)s.victim, (long long)s.at, (int)s.killer);
    if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", more);
    if (run(&s, &err) < 0) fail_msg("%s: %s", more, err.text);
    s.kept_clocks = s.opts.replicas == 1 ? whole->kept_clocks : s.kept_clocks;
    if (s.opts.replicas == 1) memcpy(s.kept_hash, whole->kept_hash, sizeof s.kept_hash);
    check(&s, k, whole, more);
}

static void test_checkpoints_outlive_any_rank(void **unused) {
    (void)unused;
    static const int stop = 0;
    plait_data      *data[3] = { points(ROWS, 6, 2, 5), by_key(), words() };
    const char      *one = getenv("PLAIT_SEED");
    int64_t     runs = one != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? KEPT_FULL : KEPT, resumed = 0, died = 0;
    story      *whole = pli_calloc(KINDS, sizeof *whole);
    plait_error err = { 0 };
    make_directory();
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = one != NULL ? strtoull(one, NULL, 10) : (uint64_t)i + 1;
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 8, 0);
        const size_t   k = pli_random_below(&r, KINDS);
        char           what[200];
        for (int nobody = 1; nobody >= 0; nobody--) { /* each kind once without a death */
            story s = story_of(&kinds[k], data, &stop);
            if (nobody && whole[k].workers > 0) continue;
            s.opts.checkpoint = dir;
            s.opts.checkpoint_keep = 1000;
            s.opts.checkpoint_clocks = nobody || pli_random_below(&r, 3) > 0 ? 2 : 0;
            s.opts.checkpoint_seconds = 1e-4;
            s.servers = !nobody && pli_random_below(&r, 3) == 0 ? 2 : 0;
            if (!nobody) take_spares(&s, &kinds[k], (int32_t)pli_random_below(&r, 3));
            const bool lead = pli_random_below(&r, 4) == 0;
            if (!nobody && !lead) draw_death(&s, &r, &whole[k]);
            if (!nobody && lead) s.at_commit = (int64_t)pli_random_below(&r, (uint64_t)whole[k].commits);
            s.committed = pli_random_below(&r, 2) == 0;
            if (!nobody && pli_random_below(&r, 4) == 0)
                s.tears_at = (int64_t)pli_random_below(&r, (uint64_t)atomic_load(&whole[k].looked));
            snprintf(what, sizeof what,
                     "seed %llu (%s): rank %d of %d (%d spare) + %d at call %lld of rank %d, or %s commit %lld; torn "
                     "at %lld",
                     (unsigned long long)seed, kinds[k].name, (int)s.victim, (int)s.workers, (int)s.opts.spares,
                     (int)s.servers, (long long)s.at, (int)s.killer, s.committed ? "behind" : "before",
                     (long long)s.at_commit, (long long)s.tears_at);
            if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
            s.opts.checkpointed = on_checkpointed;
            if (run(&s, &err) < 0) fail_msg("%s: %s", what, err.text);
            if (nobody) whole[k] = s;
            check(&s, &kinds[k], &whole[k], what);
            died += atomic_load(&s.told) > 0;
            const bool there = choose_checkpoint(&r, atomic_load(&s.checkpoints), what);
            if (there) go_on(&kinds[k], data, &stop, &r, &whole[k], what);
            resumed += there;
            remove_checkpoints();
        }
    }
    assert_int_equal(rmdir(dir), 0);
    if (one == NULL && (died * 2 < runs || resumed * 4 < runs * 3))
        fail_msg("%lld runs, %lld deaths, %lld resumed", (long long)runs, (long long)died, (long long)resumed);
    pli_free(whole);
    plait_data_destroy(&data[0]);
    plait_data_destroy(&data[1]);
    plait_data_destroy(&data[2]);
}

/* --- a clock has rows of few blocks ------------------------------------------------------------------------------- */

static const kind few_rows = { "topics by very small batches", "lda", "bsp", NULL, NULL, true, false, false };

/* Trains topics of which a clock has ten rows, so that an heir has rows of most blocks only many clocks after a death.
 * at: the call at which rank 1 dies; -1: it does not. */
static void train_few_rows(plait_data *const data[3], int32_t replicas, int64_t at, const char *resume, story *s,
                           const char *what) {
    static const int stop = 0;
    plait_error      err = { 0 };
    *s = story_of(&few_rows, data, &stop);
    s->opts.batch = 10;
    s->opts.curve = 0;
    s->opts.replicas = replicas;
    s->opts.resume = resume;
    s->opts.checkpoint = resume == NULL ? dir : NULL;
    s->opts.checkpoint_keep = 1000;
    s->opts.checkpoint_clocks = 35;
    s->victim = 1;
    s->at = at;
    if (run(s, &err) < 0) fail_msg("%s: %s", what, err.text);
}

/* Resumes from each checkpoint with another number of replicas; with two, rank 1 dies at the given call. */
static void resume_from_each(plait_data *const data[3], int32_t replicas, int64_t at, const story *whole,
                             const char *what) {
    pli_checkpoint_list list = { 0 };
    plait_error         err = { 0 };
    char                more[120];
    if (pli_checkpoint_list_read(dir, &list, &err) < 0) fail_msg("%s: %s", what, err.text);
    assert_true(list.n > 3);
    for (int64_t i = list.n - 1; i >= 0; i--) {
        story s;
        snprintf(more, sizeof more, "%s, %d replicas go on from %s", what, (int)replicas, list.entry[i].folder);
        train_few_rows(data, replicas, at, dir, &s, more);
        assert_true((atomic_load(&s.told) > 0) == (at >= 0));
        if (replicas == 1) s.kept_clocks = whole->kept_clocks;
        if (replicas == 1) memcpy(s.kept_hash, whole->kept_hash, sizeof s.kept_hash);
        check(&s, &few_rows, whole, more);
        assert_int_equal(pli_checkpoint_discard(dir, list.entry[i].folder, &err), PLAIT_OK);
    }
    pli_checkpoint_list_free(&list);
    remove_checkpoints();
}

static void test_topics_go_on_with_another_number_of_replicas(void **unused) {
    (void)unused;
    plait_data *data[3] = { points(ROWS, 6, 2, 5), by_key(), words() };
    story      *whole = pli_calloc(1, sizeof *whole), *s = pli_calloc(1, sizeof *s);
    make_directory();
    train_few_rows(data, 2, -1, NULL, whole, "nobody dies");
    remove_checkpoints();
    for (int64_t tenth = 3; tenth < 10; tenth += 4) {
        char what[60];
        snprintf(what, sizeof what, "a death after %lld tenths", (long long)tenth);
        train_few_rows(data, 2, whole->calls[0] * tenth / 10, NULL, s, what);
        assert_true(atomic_load(&s->told) > 0);
        check(s, &few_rows, whole, what);
        resume_from_each(data, 1, -1, whole, what);
    }
    for (int64_t at = 5; at < 40; at += 20) {
        train_few_rows(data, 1, -1, NULL, s, "one replica");
        resume_from_each(data, 2, at, whole, "one replica");
    }
    pli_free(whole);
    pli_free(s);
    assert_int_equal(rmdir(dir), 0);
    for (int i = 0; i < 3; i++) plait_data_destroy(&data[i]);
}

/* --- a program's own job ------------------------------------------------------------------------------------------ */

/* Adds what a worker adds in a clock: for each item that it holds, or (inherited) has inherited in the clock that is
 * ending. */
static plait_status add_items(plait_job *job, plait_table *const table[2], bool inherited) {
    const int32_t me = plait_comm_rank(plait_job_comm(job)), workers = plait_comm_workers(plait_job_comm(job));
    for (int32_t i = 0; i < ITEMS; i++) {
        const float delta[2] = { (float)i, 1 };
        const int   mine = inherited ? plait_job_inherits(job, i % workers, (uint64_t)i)
                                     : plait_job_holder(job, i % workers, (uint64_t)i) == me;
        if (!mine) continue;
        PLI_TRY(plait_table_inc_range(table[0], 3 * i, 1, delta, 1));
        PLI_TRY(plait_table_inc(table[1], 1, &(uint64_t){ (uint64_t)i * 1000003 }, delta, 0));
    }
    return PLAIT_OK;
}

static plait_status one_clock(plait_job *job, plait_table *const table[2]) {
    PLI_TRY(add_items(job, table, false));
    plait_status status;
    while ((status = plait_job_clock(job)) == PLAIT_STAND_IN) PLI_TRY(add_items(job, table, true));
    return status;
}

/* Runs three clocks and saves a checkpoint; or restores it, runs one clock more, and reads the tables. */
static plait_status save_or_restore(plait_job *job, story *s) {
    plait_table          *table[2];
    plait_checkpoint     *c = NULL;
    plait_table_opts      t;
    plait_checkpoint_opts to;
    float                 row[2], *held = s->held[plait_comm_rank(plait_job_comm(job))];
    plait_table_opts_init(&t);
    t.name = "dense";
    t.rows = TABLE_ROWS;
    t.cols = 2;
    t.rule.name = "momentum";
    PLI_TRY(plait_table_create(job, &t, &table[0]));
    t.name = "sparse";
    t.rows = 0;
    t.rule.name = NULL;
    PLI_TRY(plait_table_create(job, &t, &table[1]));
    for (int clock = 0; !s->restores && clock < SAVED_AT; clock++) PLI_TRY(one_clock(job, table));
    plait_checkpoint_opts_init(&to);
    to.dir = dir;
    if (!s->restores) return plait_checkpoint_save(job, table, 2, &to);
    PLI_TRY(plait_checkpoint_open(dir, NULL, &c, pli_comm_error(plait_job_comm(job))));
    plait_status status = plait_checkpoint_restore(c, table[0], NULL);
    if (status >= 0) status = plait_checkpoint_restore(c, table[1], NULL);
    plait_checkpoint_close(&c);
    if (status >= 0) status = one_clock(job, table);
    PLI_TRY(status);
    PLI_TRY(plait_table_get_range(table[0], 0, TABLE_ROWS, held));
    for (uint64_t i = 0; i < ITEMS; i++) {
        PLI_TRY(plait_table_get(table[1], 1, &(uint64_t){ i * 1000003 }, row));
        if (row[0] != (SAVED_AT + 1) * (float)i || row[1] != SAVED_AT + 1)
            return pli_fail(pli_comm_error(plait_job_comm(job)), PLAIT_EMISMATCH, "item %d has %g and %g", (int)i,
                            (double)row[0], (double)row[1]);
    }
    return PLAIT_OK;
}

static plait_status own_job(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job     *job = NULL;
    plait_job_opts_init(&o);
    o.topology = "ps";
    o.replicas = 2;
    o.first_clock = s->restores ? SAVED_AT : 0;
    atomic_store_explicit(&s->comm[plait_comm_rank(comm)], comm, memory_order_release);
    PLI_TRY(plait_job_create(comm, &o, &job));
    plait_status status = plait_comm_rank(comm) < s->workers ? save_or_restore(job, s) : PLAIT_OK;
    if (status >= 0) status = plait_job_destroy(&job);
    s->ended[plait_comm_rank(comm)] = status >= 0;
    if (status < 0) pli_job_abandon(&job);
    return status;
}

/* Saves, restores, and copies to held what the lowest worker that has ended well has read. */
static void save_and_restore(story *s, float held[TABLE_ROWS * 2], const char *what) {
    plait_error err = { 0 };
    for (int restores = 0; restores < 2; restores++) {
        s->restores = restores != 0;
        memset(s->ended, 0, sizeof s->ended);
        for (int32_t w = 0; w < RANKS_MAX; w++) atomic_store(&s->comm[w], NULL);
        for (int32_t w = 0; w < RANKS_MAX; w++) atomic_store(&s->calls[w], 0);
        atomic_store(&s->begun, false);
        if (run_body(s, own_job, &err) < 0) fail_msg("%s, %s: %s", what, s->restores ? "restored" : "saved", err.text);
    }
    int32_t w = 0;
    while (w < s->workers && !s->ended[w]) w++;
    assert_true(w < s->workers);
    memcpy(held, s->held[w], sizeof s->held[w]);
    remove_checkpoints();
}

static void test_a_programs_own_checkpoints_outlive_any_rank(void **unused) {
    (void)unused;
    const char *one = getenv("PLAIT_SEED");
    int64_t     runs = one != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? SAVES_FULL : SAVES;
    float       want[TABLE_ROWS * 2], held[TABLE_ROWS * 2];
    make_directory();
    story *whole = pli_calloc(1, sizeof *whole), *s = pli_calloc(1, sizeof *s);
    *whole = (story){ .at = -1, .at_commit = -1, .tears_at = -1, .workers = 3 };
    save_and_restore(whole, want, "nobody dies");
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t seed = one != NULL ? strtoull(one, NULL, 10) : (uint64_t)i + 1;
        pli_random     r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 9, 0);
        char           what[200];
        *s = (story){ .at = -1, .at_commit = -1, .tears_at = -1, .workers = 3 };
        s->servers = pli_random_below(&r, 3) == 0 ? 2 : 0;
        if (pli_random_below(&r, 4) == 0) s->tears_at = (int64_t)pli_random_below(&r, 12);
        if (pli_random_below(&r, 4) > 0)
            draw_death(s, &r, whole);
        else
            s->at_commit = 0;
        s->committed = pli_random_below(&r, 2) == 0;
        snprintf(what, sizeof what, "seed %llu: rank %d of %d + %d at call %lld of rank %d, or %s commit %lld",
                 (unsigned long long)seed, (int)s->victim, (int)s->workers, (int)s->servers, (long long)s->at,
                 (int)s->killer, s->committed ? "behind" : "before", (long long)s->at_commit);
        if (getenv("PLAIT_TRACE") != NULL) print_message("%s\n", what);
        save_and_restore(s, held, what);
        if (memcmp(held, want, sizeof want) != 0) fail_msg("%s: other rows", what);
    }
    pli_free(whole);
    pli_free(s);
    assert_int_equal(rmdir(dir), 0);
}

static void refused(plait_train_opts *opts, const char *says) {
    training t = { .opts = *opts };
    assert_true(train(&t, 2, 1) == PLAIT_EREFUSED);
    if (strstr(t.error.text, says) == NULL) fail_msg("%s", t.error.text);
}

static void test_what_cannot_go_on_is_refused_by_name(void **unused) {
    (void)unused;
    plait_data *data = points(ROWS, 6, 2, 5);
    story       s = story_of(&kinds[0], (plait_data *[]){ data, data, data }, NULL);
    plait_train_opts o = s.opts;
    o.topology = "local";
    refused(&o, "nearest is ps");
    o = s.opts;
    o.balance = "dynamic";
    refused(&o, "nearest is --balance static");
    o = s.opts;
    o.optimizer = "lbfgs";
    o.exact = 0;
    refused(&o, "2 replicas with lbfgs are refused: its server functions update tables; take adagrad");
    o = s.opts;
    o.spares = 1;
    o.replicas = 1;
    refused(&o, "nearest are 2 replicas");
    o = s.opts;
    o.spares = 1;
    o.consistency = "async";
    o.exact = 0;
    refused(&o, "nearest is ssp:4");
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_rank_may_die_at_any_moment),
                                        cmocka_unit_test(test_any_rank_of_a_net_in_stages_may_die),
                                        cmocka_unit_test(test_any_rank_may_die_while_first_centres_are_drawn),
                                        cmocka_unit_test(test_checkpoints_outlive_any_rank),
                                        cmocka_unit_test(test_topics_go_on_with_another_number_of_replicas),
                                        cmocka_unit_test(test_a_programs_own_checkpoints_outlive_any_rank),
                                        cmocka_unit_test(test_what_cannot_go_on_is_refused_by_name) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
