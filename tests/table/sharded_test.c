/* An optimizer's state in parts: the bits of the whole state, whatever the collective, rule, shape and number of
 * workers, and with filters that lose nothing; what filters keep is applied once; as many bytes as promised; refused by
 * name where it has no meaning. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "comm/collective.h"
#include "comm/forms/forms.h"
#include "table/copies/mirror.h"
#include "table/table.h"

enum { CLOCKS = 5, LARGEST = 6000 };

typedef struct job {
    const char *rule, *filter;
    int64_t     rows, cols;
    plait_type  type;
    bool        sharded, exact, penalised;
    int32_t     replicas; /* 0: 1 */
    double      values[LARGEST]; /* the bits at the end: of worker 0 */
    uint64_t    bytes;           /* sent by worker 0 in the last clock */
    int64_t     state;           /* values whose state worker 0 holds  */
} job;

static void gradient(const job *j, int32_t rank, int64_t clock, void *to) {
    for (int64_t i = 0; i < j->rows * j->cols; i++) {
        double g = (double)((i * 37 + rank * 101 + clock * 13) % 211 - 105) / (double)(7 + rank);
        if (j->type == PLAIT_F64) ((double *)to)[i] = g;
        else ((float *)to)[i] = (float)g;
    }
}

static plait_status train(plait_job *pj, job *j, void *room, plait_table *table) {
    plait_comm *comm = plait_job_comm(pj);
    int32_t     me = plait_comm_rank(comm);
    const void *values;
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        uint64_t before = plait_comm_bytes_sent(comm);
        gradient(j, me, clock, room);
        /* in one clock nobody pushes */
        if (clock != 2) PLI_TRY(plait_table_inc_range(table, 0, j->rows, room, 3 + me));
        PLI_TRY(plait_job_clock(pj));
        if (me == 0) j->bytes = plait_comm_bytes_sent(comm) - before;
    }
    PLI_TRY(plait_table_read(table, 0, j->rows, &values));
    size_t  bytes = (size_t)(j->rows * j->cols) * (j->type == PLAIT_F64 ? 8 : 4);
    int64_t low = (int64_t)(pli_hash_bytes(values, bytes, 0) >> 1), high = low;
    PLI_TRY(plait_comm_allreduce(comm, &low, 1, PLAIT_I64, PLAIT_MIN));
    PLI_TRY(plait_comm_allreduce(comm, &high, 1, PLAIT_I64, PLAIT_MAX));
    CHECK(low == high); /* all copies alike */
    if (me != 0) return PLAIT_OK;
    j->state = pli_mirror_of(table)->shard.store.states;
    memcpy(j->values, values, bytes);
    return PLAIT_OK;
}

static plait_status work(plait_job *pj, void *user) {
    job             *j = user;
    plait_table     *table = NULL;
    plait_table_opts opts;
    double           penalty[LARGEST];
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = j->rows;
    opts.cols = j->cols;
    opts.type = j->type;
    opts.sharded = j->sharded;
    opts.filter = j->filter;
    opts.exact = j->exact;
    opts.rule.name = j->rule;
    opts.rule.l2 = 0.01;
    for (int64_t i = 0; i < j->rows * j->cols; i++) {
        double p = (double)(i % 3);
        if (j->type == PLAIT_F64) penalty[i] = p;
        else ((float *)penalty)[i] = (float)p;
    }
    if (j->penalised) opts.penalty = penalty;
    PLI_TRY(plait_table_create(pj, &opts, &table));
    void        *room = malloc(LARGEST * sizeof(double));
    plait_status status = room == NULL ? PLAIT_ENOMEM : train(pj, j, room, table);
    free(room);
    return status;
}

static void run(job *j, int32_t workers, const char *collective) {
    plait_comm_opts comm;
    plait_job_opts  opts;
    plait_error     err;
    int64_t         live = pli_alloc_live();
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&opts);
    comm.transport = "threads";
    comm.workers = workers;
    comm.collective = collective;
    comm.timeout_ns = UINT64_C(60) * 1000000000;
    opts.topology = "allreduce";
    opts.batch = 12;
    if (j->replicas > 0) opts.replicas = j->replicas;
    memset(j->values, 0, sizeof j->values);
    if (plait_run(&comm, &opts, work, j, &err) < 0)
        fail_msg("%s, %d workers, %s: %s", collective, workers, j->rule, err.text);
    assert_int_equal(pli_alloc_live(), live);
}

static void compare(job *j, int32_t workers, const char *collective) {
    static job whole;
    j->sharded = false;
    run(j, workers, collective);
    whole = *j;
    j->sharded = true;
    run(j, workers, collective);
    assert_memory_equal(j->values, whole.values, sizeof j->values);
    const int64_t values = j->rows * j->cols, cut = values + (j->filter != NULL && workers > 1 ? 0 : 3);
    const int64_t own = pli_slice_first(cut, 1, workers);
    if (j->replicas < 2) assert_int_equal(j->state, own < values ? own : values);
}

static void test_the_bits_are_those_of_the_whole_state(void **state) {
    (void)state;
    static job                     j;
    static const char *const       rules[] = { "sgd", "momentum", "adagrad", "adam", "ftrl" };
    static const struct { int64_t rows, cols; } shapes[] = { { 1, 1 }, { 7, 3 }, { 5000, 1 }, { 60, 100 } };
    int k = 0;
    for (int c = 0; c < PLI_COLLECTIVES; c++)
        for (int32_t workers = 1; workers <= 6; workers++, k++) {
            j = (job){ .rule = rules[k % 5], .rows = shapes[k % 4].rows, .cols = shapes[k % 4].cols,
                       .type = k % 3 ? PLAIT_F32 : PLAIT_F64, .exact = k % 7 == 3, .penalised = k % 2 == 0 };
            compare(&j, workers, pli_collectives[c]);
        }
    for (k = 0; k < 5; k++) {
        j = (job){ .rule = rules[k], .rows = 5000, .cols = 1, .type = PLAIT_F64, .penalised = true };
        compare(&j, 4, "ring");
    }
}

/* --- with replicas ------------------------------------------------------------------------------------------------ */

/* As many shares of the state as there are holders, and a gather of the values besides the sum. */
static void test_replicas_change_no_bit(void **state) {
    (void)state;
    static job               j;
    static const char *const rules[] = { "momentum", "adagrad", "adam", "ftrl" };
    static const struct { int64_t rows, cols; } shapes[] = { { 1, 1 }, { 7, 3 }, { 5000, 1 }, { 60, 100 } };
    for (int32_t workers = 2; workers <= 6; workers++)
        for (int k = 0; k < 8; k++) {
            j = (job){ .rule = rules[(k + workers) % 4], .filter = k < 4 ? NULL : "zstd", .rows = shapes[k % 4].rows,
                       .cols = shapes[k % 4].cols, .type = k % 3 ? PLAIT_F32 : PLAIT_F64,
                       .exact = (k + workers) % 3 == 0, .penalised = k % 2 == 0,
                       .replicas = 2 + (workers > 2 && k % 2) };
            compare(&j, workers, "ring");
            const int32_t held = j.replicas < workers ? j.replicas : workers;
            const int64_t share = j.rows * j.cols / workers;
            assert_true(j.state >= held * share && j.state <= held * (share + 1));
        }
}

static void test_replicas_cost_a_gather(void **state) {
    (void)state;
    static job j;
    uint64_t   whole;
    for (int32_t workers = 2; workers <= 6; workers++) {
        j = (job){ .rule = "adam", .rows = 3600, .cols = 1, .type = PLAIT_F64, .replicas = 2 };
        run(&j, workers, "ring");
        whole = j.bytes;
        j.sharded = true;
        run(&j, workers, "ring");
        const double ratio = (double)j.bytes / (double)whole;
        assert_true(ratio > 1.45 && ratio < 1.55);
    }
}

static plait_comm *_Atomic comms[4];
static atomic_int          ended_by_name;

/* Workers 1 and 2 hold slice 1, and die at once. */
static plait_status lose(plait_job *pj, void *user) {
    plait_comm      *comm = plait_job_comm(pj);
    const int32_t    me = plait_comm_rank(comm);
    plait_table     *table = NULL;
    plait_table_opts opts;
    plait_error      why = { .code = PLAIT_EPEER, .text = "killed by the test" };
    const double     one[100] = { 0 };
    plait_status     status = PLAIT_OK;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.type = PLAIT_F64;
    opts.rows = 100;
    opts.sharded = 1;
    opts.rule.name = "adam";
    PLI_TRY(plait_table_create(pj, &opts, &table));
    atomic_store(&comms[me], comm);
    PLI_TRY(plait_job_barrier(pj));
    for (int64_t clock = 0; clock < 4 && status >= 0; clock++) {
        for (why.rank = 1; me == 0 && clock == 2 && why.rank < 3; why.rank++)
            pli_comm_kill(atomic_load(&comms[why.rank]), &why);
        do {
            status = plait_table_inc_range(table, 0, 100, one, 1);
            if (status >= 0) status = plait_job_clock(pj);
        } while (status == PLAIT_STAND_IN);
    }
    if (me % 3 != 0) return status;
    CHECK(status == PLAIT_EPEER);
    /* or it hears first that the other has ended for that reason */
    if (strstr(plait_comm_error(comm)->text, "held slice 1 of its optimizer's state have died") != NULL)
        atomic_fetch_add(&ended_by_name, 1);
    return status;
}

static plait_status lose_job(plait_comm *comm, void *user) {
    plait_job     *pj = NULL;
    plait_job_opts opts;
    plait_job_opts_init(&opts);
    opts.topology = "allreduce";
    opts.replicas = 2;
    PLI_TRY(plait_job_create(comm, &opts, &pj));
    const plait_status status = lose(pj, user);
    pli_job_abandon(&pj);
    return status;
}

static void test_a_slice_is_lost_by_name(void **state) {
    (void)state;
    plait_comm_opts comm;
    plait_error     err;
    plait_comm_opts_init(&comm);
    comm.transport = "threads";
    comm.workers = 4;
    assert_int_equal(plait_comm_run(&comm, lose_job, NULL, &err), PLAIT_EPEER);
    assert_true(atomic_load(&ended_by_name) >= 1);
}

/* --- with filters ------------------------------------------------------------------------------------------------- */

static void test_filters_without_loss_change_no_bit(void **state) {
    (void)state;
    static job               j;
    static const char *const filters[] = { "zstd", "key-cache,key-delta,zstd" };
    static const struct { int64_t rows, cols; } shapes[] = { { 1, 1 }, { 7, 3 }, { 5000, 1 }, { 60, 100 } };
    for (int32_t workers = 1; workers <= 6; workers++)
        for (int k = 0; k < 4; k++) {
            j = (job){ .rule = k % 2 ? "adam" : "momentum", .filter = filters[(k + workers) % 2],
                       .rows = shapes[k].rows, .cols = shapes[k].cols, .type = k % 3 ? PLAIT_F32 : PLAIT_F64,
                       .exact = (k + workers) % 3 == 0, .penalised = k % 2 == 0 };
            compare(&j, workers, "ring");
        }
}

/* All pushes are zeros of 1 example. What a worker keeps of its own slice, since the run before had its slices
 * elsewhere, is in the next sum whole; of another's slice, as much as the filter sends, and the rest goes later. */
static plait_status keep_and_spend(plait_job *pj, void *user) {
    enum { N = 400, LASTS = 40 };
    plait_comm      *comm = plait_job_comm(pj);
    const int32_t    me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    plait_table     *table = NULL;
    plait_table_opts opts;
    const void      *values;
    float            zeros[N] = { 0 }, kept[N];
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = N;
    opts.cols = 1;
    opts.sharded = 1;
    opts.filter = "topk:0.1";
    opts.rule.name = "sgd";
    opts.rule.learning_rate = 1;
    PLI_TRY(plait_table_create(pj, &opts, &table));
    for (int64_t i = 0; i < N; i++) kept[i] = (float)(1 + i);
    if (me == 1) PLI_TRY(pli_coded_keep(pli_mirror_of(table)->coded, false, kept, NULL));
    for (int64_t clock = 0; clock < LASTS; clock++) {
        PLI_TRY(plait_table_inc_range(table, 0, N, zeros, 1));
        PLI_TRY(plait_job_clock(pj));
        PLI_TRY(plait_table_read(table, 0, N, &values));
        const float  *w = values;
        int64_t       went = 0;
        const int64_t first = pli_slice_first(N, 1, workers), end = pli_slice_first(N, 2, workers);
        for (int64_t i = 0; i < N; i++) {
            const bool there = fabsf(w[i] * (float)workers + kept[i]) < 1e-5F * kept[i];
            CHECK(there || fabsf(w[i]) < 1e-30F);
            CHECK(there || workers == 2 || i < first || i >= end);
            went += there;
        }
        CHECK(clock > 0 || went < N);
        CHECK(clock + 1 < LASTS || went == N);
    }
    return PLAIT_OK;
}

static void test_what_filters_keep_is_applied_once(void **state) {
    (void)state;
    for (int32_t workers = 2; workers <= 5; workers++) {
        plait_comm_opts comm;
        plait_job_opts  opts;
        plait_error     err;
        plait_comm_opts_init(&comm);
        plait_job_opts_init(&opts);
        comm.transport = "threads";
        comm.workers = workers;
        opts.topology = "allreduce";
        if (plait_run(&comm, &opts, keep_and_spend, NULL, &err) < 0) fail_msg("%d workers: %s", workers, err.text);
    }
}

static uint64_t bytes_of(pli_coll call, int32_t workers) {
    pli_coll_choose(&call, &pli_form_ring, workers, NULL);
    return pli_coll_bytes(&call, 0, workers);
}

/* A clock's sum and gather by ring are 2 M (W - 1) / W, and headers; what the push was is two numbers more. */
static void test_a_clock_sends_what_an_allreduce_sends(void **state) {
    (void)state;
    static job j;
    for (int32_t workers = 2; workers <= 6; workers++) {
        j = (job){ .rule = "adam", .rows = 60 * 60 - 3, .cols = 1, .type = PLAIT_F64, .sharded = true };
        run(&j, workers, "ring");
        size_t   starts[8], m = 3600 * 8, w = (size_t)workers;
        pli_coll push = { .kind = PLI_ALLREDUCE, .type = PLAIT_I64, .n = 2 }, gather = { .kind = PLI_ALLGATHER,
                                                                                         .type = PLAIT_U8,
                                                                                         .starts = starts };
        for (int32_t r = 0; r <= workers; r++) starts[r] = (size_t)r * m / w < m - 24 ? (size_t)r * m / w : m - 24;
        uint64_t sum = (w - 1) * (m / w + sizeof(pli_head)), gathered = pli_coll_bytes(&gather, 0, workers);
        assert_int_equal(j.bytes, sum + gathered + bytes_of(push, workers));
        uint64_t headers = (w - 1 + 2 * (uint64_t)pli_ceil_log2(workers)) * sizeof(pli_head) + bytes_of(push, workers);
        assert_true(j.bytes <= 2 * m * (w - 1) / w + headers);
    }
}

static plait_status refuse(plait_job *pj, void *user) {
    plait_comm      *comm = plait_job_comm(pj);
    plait_table     *table = NULL;
    plait_table_opts opts;
    const char      *text = plait_comm_error(comm)->text;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = 10;
    opts.sharded = 1;
    opts.topology = "allreduce";
    CHECK(plait_table_create(pj, &opts, &table) == PLAIT_EREFUSED && strstr(text, "without a rule") != NULL);
    opts.rule.name = "adam";
    opts.keyed = 1;
    CHECK(plait_table_create(pj, &opts, &table) == PLAIT_EREFUSED && strstr(text, "sparse updates") != NULL);
    opts.keyed = 0;
    opts.topology = "ps";
    CHECK(plait_table_create(pj, &opts, &table) == PLAIT_EREFUSED &&
          strstr(text, "nearest is allreduce x bsp") != NULL);
    opts.topology = "gossip:ring";
    CHECK(plait_table_create(pj, &opts, &table) == PLAIT_EREFUSED &&
          strstr(text, "nearest is allreduce x bsp") != NULL);
    opts.topology = "allreduce";
    opts.consistency = "bounded-delay:1";
    CHECK(plait_table_create(pj, &opts, &table) == PLAIT_EREFUSED &&
          strstr(text, "nearest is allreduce x bsp") != NULL);
    opts.consistency = "bsp";
    opts.topology = "hybrid";
    return plait_table_create(pj, &opts, &table);
}

static void test_refusals_name_the_reason(void **state) {
    (void)state;
    plait_comm_opts comm;
    plait_error     err;
    plait_comm_opts_init(&comm);
    comm.transport = "threads";
    comm.workers = 2;
    if (plait_run(&comm, NULL, refuse, NULL, &err) < 0) fail_msg("%s", err.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bits_are_those_of_the_whole_state),
        cmocka_unit_test(test_replicas_change_no_bit),
        cmocka_unit_test(test_replicas_cost_a_gather),
        cmocka_unit_test(test_a_slice_is_lost_by_name),
        cmocka_unit_test(test_filters_without_loss_change_no_bit),
        cmocka_unit_test(test_what_filters_keep_is_applied_once),
        cmocka_unit_test(test_a_clock_sends_what_an_allreduce_sends),
        cmocka_unit_test(test_refusals_name_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
