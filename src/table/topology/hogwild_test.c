/* Hogwild: threads of one worker, and of several, increment at once. An additive table loses nothing, and rows that
 * are new to several threads at a time are inserted once. Under the thread sanitizer this test is the proof of
 * hogwild_rows.h. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/table.h"

enum { KEYS = 20000, PER_CALL = 50, THREADS = 3, WORKERS = 2, HOT_CALLS = 3000 /* on the last key */ };

static const struct shape {
    int64_t    rows;
    plait_type type;
} shapes[] = { { 0, PLAIT_F32 }, { KEYS, PLAIT_F32 }, { KEYS, PLAIT_F64 } };

typedef struct part {
    plait_table *table;
    plait_type   type;
    uint64_t     seed;
    int          ruled;
    plait_status status;
} part;

static double at(plait_type type, const void *values, int64_t i) {
    return type == PLAIT_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

static void put(plait_type type, void *values, int64_t i, double x) {
    if (type == PLAIT_F32) ((float *)values)[i] = (float)x;
    else ((double *)values)[i] = x;
}

/* Adds 1 to every key, in an order of its own, and reads now and then. Then it adds to one key alone, where all
 * threads meet. */
static void *add_all(void *arg) {
    part    *p = arg;
    double   ones[PER_CALL], values[PER_CALL]; /* of either type */
    uint64_t keys[PER_CALL];
    for (int i = 0; i < PER_CALL; i++) put(p->type, ones, i, 1);
    for (uint64_t block = 0; p->status >= 0 && block < KEYS / PER_CALL; block++) {
        for (uint64_t i = 0; i < PER_CALL; i++) keys[i] = ((block * 7 + p->seed) % (KEYS / PER_CALL)) * PER_CALL + i;
        if (p->seed % 2) keys[0] = keys[1], keys[1]--; /* out of order */
        p->status = plait_table_inc(p->table, PER_CALL, keys, ones, p->ruled);
        if (block % 8 == 0 && p->status >= 0) p->status = plait_table_get(p->table, PER_CALL, keys, values);
        if (!p->ruled && block % 8 == 0 && p->status >= 0 && !(at(p->type, values, 5) >= 1))
            p->status = PLAIT_EDIVERGED;
    }
    for (uint64_t i = 0; i < PER_CALL; i++) keys[i] = KEYS - 1;
    for (int i = 0; i < HOT_CALLS && !p->ruled && p->status >= 0; i++)
        p->status = plait_table_inc(p->table, PER_CALL, keys, ones, 0);
    return NULL;
}

static plait_status add_by_threads(plait_comm *comm, plait_table *table, plait_type type, int ruled) {
    pthread_t thread[THREADS];
    part      parts[THREADS];
    for (int t = 0; t < THREADS; t++) {
        parts[t] = (part){ .table = table, .type = type, .seed = (uint64_t)(plait_comm_rank(comm) * THREADS + t) * 31,
                           .ruled = ruled };
        CHECK(pthread_create(&thread[t], NULL, add_all, &parts[t]) == 0);
    }
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    for (int t = 0; t < THREADS; t++) CHECK(parts[t].status == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *sum, *ruled;
    const struct shape *shape = user;
    plait_table_opts opts;
    int64_t          n;
    uint64_t        *keys;
    void            *values;
    plait_table_opts_init(&opts);
    opts.name = "sum";
    opts.rows = shape->rows;
    opts.type = shape->type;
    CHECK(plait_table_create(job, &opts, &sum) == PLAIT_OK);
    opts.name = "ruled";
    opts.rule.name = "adagrad";
    opts.rule.l2 = 0.01;
    opts.keyed = 1;
    CHECK(plait_table_create(job, &opts, &ruled) == PLAIT_OK);
    PLI_TRY(add_by_threads(comm, sum, shape->type, 0));
    PLI_TRY(add_by_threads(comm, ruled, shape->type, 1));
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(plait_table_dump(sum, &n, &keys, &values) == PLAIT_OK && n == KEYS);
    for (int64_t i = 0; i < n; i++)
        CHECK(keys[i] == (uint64_t)i &&
              at(shape->type, values, i) == WORKERS * THREADS * (i < KEYS - 1 ? 1 : 1 + HOT_CALLS * PER_CALL));
    plait_comm_free(keys);
    plait_comm_free(values);
    CHECK(plait_table_dump(ruled, &n, &keys, &values) == PLAIT_OK && n == KEYS);
    for (int64_t i = 0; i < n; i++) CHECK(at(shape->type, values, i) < 0);
    plait_comm_free(keys);
    plait_comm_free(values);
    return PLAIT_OK;
}

static void run_async(int32_t workers, plait_work_fn *body, void *user) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.transport = "threads";
    comm_opts.workers = workers;
    job_opts.consistency = "async";
    if (plait_run(&comm_opts, &job_opts, body, user, &err) < 0) fail_msg("rank %d: %s", err.rank, err.text);
}

static void test_threads_of_workers(void **state) {
    (void)state;
    int64_t live = pli_alloc_live();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) run_async(WORKERS, work, (void *)(uintptr_t)&shapes[i]);
    assert_int_equal(pli_alloc_live(), live);
}

/* A key stands twice in one call: that may be two steps, or one step of the sum, but none is lost. */
static plait_status repeat_keys(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *table;
    plait_table_opts opts;
    uint64_t         keys[4] = { 3, 3, 5, 3 };
    float            g[4] = { 1, 2, 8, 4 }, w[2];
    (void)user;
    plait_table_opts_init(&opts);
    opts.rows = 10;
    for (int ruled = 0; ruled < 2; ruled++) {
        opts.name = ruled ? "ruled" : "sum";
        opts.rule.name = ruled ? "sgd" : NULL;
        opts.rule.learning_rate = 1;
        CHECK(plait_table_create(job, &opts, &table) == PLAIT_OK);
        CHECK(plait_table_inc(table, 4, keys, g, 1) == PLAIT_OK);
        CHECK(plait_table_get(table, 2, &keys[1], w) == PLAIT_OK);
        CHECK(w[0] == (ruled ? -7 : 7) && w[1] == (ruled ? -8 : 8));
    }
    return PLAIT_OK;
}

/* Dense rows lie beside their rule's state, sparse ones apart from it. From the same start both give the same bits. */
static plait_status compare_layouts(plait_job *job, void *user) {
    static const char *const rules[] = { "sgd", "momentum", "adagrad", "adam", "ftrl" };
    enum { ROWS = 12, N = 5, COLS_MAX = 3, STEPS = 7 };
    plait_comm      *comm = plait_job_comm(job);
    const uint64_t   keys[N] = { 1, 4, 5, 9, 11 };
    plait_table     *dense, *sparse;
    plait_table_opts opts;
    char             name[32];
    (void)user;
    for (int i = 0; i < 5 * 2 * 2; i++) {
        int        rule = i / 4, cols = i & 1 ? COLS_MAX : 1;
        plait_type type = i & 2 ? PLAIT_F64 : PLAIT_F32;
        double     zero[ROWS * COLS_MAX] = { 0 }, g[N * COLS_MAX], a[N * COLS_MAX] = { 0 }, b[N * COLS_MAX] = { 0 };
        plait_table_opts_init(&opts);
        snprintf(name, sizeof name, "dense %d", i);
        opts.name = name;
        opts.rows = ROWS;
        opts.cols = cols;
        opts.type = type;
        opts.rule.name = rules[rule];
        opts.keyed = 1;
        opts.initial = zero;
        CHECK(plait_table_create(job, &opts, &dense) == PLAIT_OK);
        snprintf(name, sizeof name, "sparse %d", i);
        opts.rows = 0;
        opts.initial = NULL;
        CHECK(plait_table_create(job, &opts, &sparse) == PLAIT_OK);
        for (int step = 0; step < STEPS; step++) {
            for (int j = 0; j < N * cols; j++) put(type, g, j, 0.25 * (j + 1) + 0.5 * step);
            CHECK(plait_table_inc(dense, N, keys, g, 1) == PLAIT_OK &&
                  plait_table_inc(sparse, N, keys, g, 1) == PLAIT_OK);
            CHECK(plait_table_get(dense, N, keys, a) == PLAIT_OK && plait_table_get(sparse, N, keys, b) == PLAIT_OK);
            CHECK(at(type, a, 0) != 0 && memcmp(a, b, sizeof a) == 0);
        }
        const void *all;
        CHECK(plait_table_read(dense, 0, ROWS, &all) == PLAIT_OK);
        for (int64_t j = 0; j < N * cols; j++)
            CHECK(at(type, all, (int64_t)keys[j / cols] * cols + j % cols) == at(type, a, j));
        for (int64_t j = 0; j < cols; j++) CHECK(at(type, all, 2 * cols + j) == 0 && at(type, all, 10 * cols + j) == 0);
    }
    return PLAIT_OK;
}

/* A dense table starts from what is given. */
static plait_status start_dense(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *table;
    plait_table_opts opts;
    const float      initial[6] = { 1, 2, 3, 4, 5, 6 };
    const void      *values;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "start";
    opts.rows = 3;
    opts.cols = 2;
    opts.rule.name = "adam";
    opts.initial = initial;
    CHECK(plait_table_create(job, &opts, &table) == PLAIT_OK);
    CHECK(plait_table_read(table, 0, 3, &values) == PLAIT_OK && memcmp(values, initial, sizeof initial) == 0);
    return PLAIT_OK;
}

static void run_alone(plait_work_fn *body) {
    const int64_t live = pli_alloc_live();
    run_async(1, body, NULL);
    assert_int_equal(pli_alloc_live(), live);
}

static void test_repeated_keys(void **state) {
    (void)state;
    run_alone(repeat_keys);
}

static void test_layouts(void **state) {
    (void)state;
    run_alone(compare_layouts);
    run_alone(start_dense);
}

/* --- what is lost ------------------------------------------------------------------------------------------------- */

enum { STEPPERS = 4, STEPS = 50000, ROWS_EACH = 4000, ROW_KEYS = 150, WIDTH = 100000 };

/* The keys of a row of data, increasing: key k is in a row with a probability of about 12 / k, as words of a text. */
static int64_t draw_text(pli_random *random, uint64_t keys[ROW_KEYS]) {
    double  place = 0;
    int64_t n = 0;
    while (n < ROW_KEYS) {
        place += 1 - place / 12 * log(1 - pli_random_f64(random));
        if (place >= WIDTH) break;
        keys[n++] = (uint64_t)place;
    }
    return n;
}

/* Rows of text, or one key over and over. */
static plait_status step_on(plait_table *table, bool ruled, int32_t seed, bool text) {
    float    ones[ROW_KEYS];
    uint64_t keys[ROW_KEYS] = { 7 };
    for (int i = 0; i < ROW_KEYS; i++) ones[i] = 1;
    for (uint64_t row = 0; row < (text ? ROWS_EACH : STEPS); row++) {
        pli_random    random = pli_random_at((uint64_t)seed, PLI_RANDOM_SCHEDULE, row, 0);
        const int64_t n = text ? draw_text(&random, keys) : 1;
        PLI_TRY(plait_table_inc(table, n, keys, ones, ruled));
    }
    return PLAIT_OK;
}

static plait_status step_all(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *table[4]; /* one key without a rule, and by a rule; text without, and by one */
    plait_table_opts opts;
    double           kept[4] = { 0 };
    float           *values = malloc(WIDTH * sizeof *values);
    (void)user;
    plait_table_opts_init(&opts);
    opts.rows = WIDTH;
    opts.keyed = 1;
    for (int t = 0; t < 4; t++) {
        opts.name = (char[]){ (char)('a' + t), 0 };
        opts.rule.name = t % 2 == 0 ? NULL : "sgd";
        opts.rule.learning_rate = 1;
        CHECK(plait_table_create(job, &opts, &table[t]) == PLAIT_OK);
    }
    for (int t = 0; t < 4; t++) {
        CHECK(plait_comm_barrier(comm) == PLAIT_OK);
        CHECK(step_on(table[t], t % 2 != 0, plait_comm_rank(comm), t >= 2) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    for (int t = 0; t < 4; t++) {
        CHECK(plait_table_get_range(table[t], 0, WIDTH, values) == PLAIT_OK);
        for (int64_t i = 0; i < WIDTH; i++) {
            CHECK(t % 2 == 0 ? values[i] >= 0 : values[i] <= 0);
            kept[t] += fabs((double)values[i]);
        }
    }
    free(values);
    CHECK(kept[0] == STEPPERS * STEPS);
    CHECK(kept[1] > 0 && kept[1] <= kept[0]);
    CHECK(kept[2] > STEPPERS * ROWS_EACH * 50.0);
    CHECK(kept[3] > 0 && kept[3] <= kept[2]);
    if (plait_comm_rank(comm) == 0)
        printf("lost without a rule: none; by a rule: %.0f of %.0f to one row, %.0f of %.0f to text (%.4f %%)\n",
               kept[0] - kept[1], kept[0], kept[2] - kept[3], kept[2], 100 - 100 * kept[3] / kept[2]);
    return PLAIT_OK;
}

/* Increments are never lost. Steps of a rule may be, if two workers step on one value at the same time. */
static void test_increments_are_kept(void **state) {
    (void)state;
    run_async(STEPPERS, step_all, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads_of_workers), cmocka_unit_test(test_repeated_keys),
                                        cmocka_unit_test(test_layouts), cmocka_unit_test(test_increments_are_kept) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
