/* Which sums of a clock travel together: small tables share one collective, and a large one is cut, in as many bytes
 * as one sum takes and a few headers. Values come out right for mixed kinds of tables and both ways to end a clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "comm/collective.h"
#include "comm/forms/forms.h"
#include "comm/reduce.h"
#include "table/topology/buckets.h"
#include "end_clock.h"

enum { TABLES_MAX = 12, CLOCKS = 4 };

typedef struct job {
    int32_t     tables;
    plait_table_opts table[TABLES_MAX];
    int         begun;      /* clocks are begun and waited for: 0 never, 1 always, 2 every other time */
    uint64_t    bytes;      /* sent by worker 0 in the first clock                                    */
} job;

static void run(void *j, int32_t workers, const char *collective, plait_work_fn *work) {
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
    if (plait_run(&comm, &opts, work, j, &err) < 0) fail_msg("%s, %d workers: %s", collective, workers, err.text);
    assert_int_equal(pli_alloc_live(), live);
}

static plait_table_opts *add(job *j, int64_t rows) {
    static const char *const names[TABLES_MAX] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" };
    plait_table_opts *opts = &j->table[j->tables];
    plait_table_opts_init(opts);
    opts->name = names[j->tables++];
    opts->rows = rows;
    return opts;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static double delta_at(int64_t i, int32_t rank, int64_t clock, int t) {
    return (double)((i + 3 * rank + 7 * clock + t) % 5);
}

static plait_status push(plait_table *table, const job *j, int t, int32_t rank, int64_t clock) {
    const plait_table_opts *opts = &j->table[t];
    int64_t                 n = opts->rows;
    double                 *wide = malloc((size_t)n * sizeof *wide);
    float                  *narrow = (float *)wide;
    for (int64_t i = 0; i < n; i++) {
        double x = delta_at(i, rank, clock, t);
        if (opts->type == PLAIT_F64) wide[i] = x;
        else narrow[i] = (float)x;
    }
    plait_status status = plait_table_inc_range(table, 0, n, wide, opts->rule.name != NULL);
    free(wide);
    return status;
}

/* Sums of whole numbers, exact in any order; under a rule sgd with rate 1, so that a clock of W rows subtracts their
 * mean. */
static double expected(const job *j, int t, int64_t i, int32_t workers, int64_t clocks) {
    double sum = 0;
    for (int64_t clock = 0; clock < clocks; clock++)
        for (int32_t w = 0; w < workers; w++) sum += delta_at(i, w, clock, t);
    return j->table[t].rule.name != NULL ? -sum / workers : sum;
}

static plait_status check(plait_comm *comm, plait_table *table, const job *j, int t, int64_t clocks) {
    const plait_table_opts *opts = &j->table[t];
    const void             *values;
    PLI_TRY(plait_table_read(table, 0, opts->rows, &values));
    for (int64_t i = 0; i < opts->rows; i += opts->rows > 5000 ? 997 : 1) {
        double x = opts->type == PLAIT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
        double away = x - expected(j, t, i, plait_comm_workers(comm), clocks);
        CHECK(away > -1e-4 && away < 1e-4);
    }
    return PLAIT_OK;
}

static plait_status train(plait_job *pj, void *user) {
    job         *j = user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *table[TABLES_MAX];
    for (int t = 0; t < j->tables; t++) PLI_TRY(plait_table_create(pj, &j->table[t], &table[t]));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        uint64_t before = plait_comm_bytes_sent(comm);
        for (int t = 0; t < j->tables; t++) PLI_TRY(push(table[t], j, t, plait_comm_rank(comm), clock));
        PLI_TRY(end_clock(pj, j->begun == 1 || (j->begun == 2 && clock % 2)));
        if (clock == 0 && plait_comm_rank(comm) == 0) j->bytes = plait_comm_bytes_sent(comm) - before;
        for (int t = 0; t < j->tables; t++)
            if (j->table[t].consistency == NULL) PLI_TRY(check(comm, table[t], j, t, clock + 1));
    }
    PLI_TRY(plait_job_barrier(pj));
    for (int t = 0; t < j->tables; t++) PLI_TRY(check(comm, table[t], j, t, CLOCKS));
    return PLAIT_OK;
}

static void test_tables_of_all_kinds(void **state) {
    (void)state;
    static const char *const collectives[] = { "auto", "messages", "ring", "recursive", "tree", "hierarchical" };
    for (int k = 0; k < 18; k++) {
        job j = { .begun = k / 6 % 3 };
        for (int t = 0; t < 10; t++) {
            plait_table_opts *opts = add(&j, 1 + t * 37);
            opts->type = t % 2 ? PLAIT_F64 : PLAIT_F32;
            opts->exact = t % 5 == 3;
            if (t % 3 == 1) opts->consistency = "bounded-delay:2";
            if (t % 4 == 2) opts->rule.name = "sgd", opts->rule.learning_rate = 1;
            if (t == 9) opts->consistency = "local-sgd:2";
        }
        add(&j, 40000); /* 160 kB: small */
        if (k % 6 == 1 || k % 6 == 5) add(&j, 700000)->type = PLAIT_F64; /* 5.6 MB: cut */
        run(&j, 1 + k % 4, collectives[k % 6], train);
    }
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(int64_t n, plait_type type, int32_t workers) {
    pli_coll call = { .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .n = n };
    pli_coll_choose(&call, &pli_form_ring, workers, NULL);
    return pli_coll_bytes(&call, 0, workers);
}

/* Eight tables of 96 values, or one of as many, send the same messages; the eight have only a few bytes more, at the
 * ends of their sums. */
static void test_eight_small_tables_cost_the_messages_of_one(void **state) {
    (void)state;
    for (int32_t workers = 2; workers <= 6; workers++)
        for (int begun = 0; begun < 2; begun++) {
            job eight = { .begun = begun }, one = { .begun = begun };
            for (int t = 0; t < 8; t++) add(&eight, 96);
            add(&one, 8 * (96 + PLI_SUM_EXTRA) - PLI_SUM_EXTRA);
            run(&eight, workers, "ring", train);
            run(&one, workers, "ring", train);
            assert_int_equal(eight.bytes, bytes_of(8 * (96 + PLI_SUM_EXTRA), PLAIT_F32, workers));
            assert_int_equal(one.bytes, eight.bytes);
        }
}

/* A sum of M bytes, cut into buckets: 2 M (W - 1) / W, and a header a message. */
static void test_a_large_table_sends_what_one_sum_does(void **state) {
    (void)state;
    for (int32_t workers = 2; workers <= 3; workers++) {
        const int64_t rows = 1200000, n = rows + PLI_SUM_EXTRA, cut = PLI_BUCKET_BYTES / 8;
        job           j = { 0 };
        add(&j, rows)->type = PLAIT_F64;
        run(&j, workers, "ring", train);
        assert_int_equal(j.bytes, 2 * bytes_of(cut, PLAIT_F64, workers) + bytes_of(n - 2 * cut, PLAIT_F64, workers));
        uint64_t m = (uint64_t)n * 8, w = (uint64_t)workers,
                 messages = 3 * 2 * (w - 1) * (PLI_BUCKET_BYTES / w / (128 << 10) + 1);
        assert_true(j.bytes >= 2 * m / w * (w - 1) &&
                    j.bytes <= 2 * m * (w - 1) / w + messages * sizeof(pli_head) + 3 * 64);
    }
}

/* Sums of different types, exact ones, and those that fly have a bucket each. If the transport sums by itself, nothing
 * is cut. */
static void test_what_is_unlike_goes_apart(void **state) {
    (void)state;
    job j = { 0 };
    add(&j, 10);
    add(&j, 10)->type = PLAIT_F64;
    add(&j, 10)->consistency = "bounded-delay:1";
    add(&j, 10)->exact = 1;
    add(&j, 10);
    run(&j, 2, "ring", train);
    assert_int_equal(j.bytes, bytes_of(26, PLAIT_F32, 2) + bytes_of(13, PLAIT_F64, 2) + bytes_of(13, PLAIT_F32, 2) +
                                  bytes_of(13, PLI_CELLS_F32, 2));
    job large = { 0 };
    add(&large, 1200000)->type = PLAIT_F64;
    run(&large, 2, "auto", train);
    assert_int_equal(large.bytes, bytes_of(1200000 + PLI_SUM_EXTRA, PLAIT_F64, 2));
}

/* --- an optimizer's state in parts: the bits of the whole state, of a table of several buckets -------------------- */

enum { WIDE = 1200000 };

typedef struct sharded {
    bool     is;
    uint64_t hash;
    int64_t  states; /* of worker 0 */
} sharded;

static plait_status train_wide(plait_job *pj, void *user) {
    sharded         *s = user;
    plait_comm      *comm = plait_job_comm(pj);
    plait_table     *table;
    plait_table_opts opts;
    const void      *values;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = WIDE;
    opts.type = PLAIT_F64;
    opts.rule.name = "adam";
    opts.sharded = s->is;
    double *delta = malloc(WIDE * sizeof *delta);
    for (int64_t i = 0; i < WIDE; i++)
        delta[i] = (double)((i * 37 + plait_comm_rank(comm) * 101) % 211 - 105) / (7 + plait_comm_rank(comm));
    plait_status status = plait_table_create(pj, &opts, &table);
    for (int clock = 0; status >= 0 && clock < 3; clock++) {
        if (clock != 1) status = plait_table_inc_range(table, 0, WIDE, delta, 1);
        if (status >= 0) status = plait_job_clock(pj);
    }
    free(delta);
    if (status >= 0) status = plait_table_read(table, 0, WIDE, &values);
    if (status < 0 || plait_comm_rank(comm) != 0) return status;
    s->hash = pli_hash_bytes(values, WIDE * sizeof(double), 1);
    s->states = pli_mirror_of(table)->shard.store.states;
    return PLAIT_OK;
}

static void test_slices_of_buckets_have_the_bits_of_the_whole(void **state) {
    (void)state;
    static const char *const collectives[] = { "ring", "tree", "auto" };
    for (int c = 0; c < 3; c++) {
        sharded whole = { 0 }, parts = { .is = true };
        int32_t workers = 2 + c % 2;
        run(&whole, workers, collectives[c], train_wide);
        run(&parts, workers, collectives[c], train_wide);
        assert_true(whole.hash == parts.hash);
        assert_int_equal(whole.states, WIDE);
        assert_true(parts.states >= WIDE / workers && parts.states <= WIDE / workers + 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_of_all_kinds),
        cmocka_unit_test(test_eight_small_tables_cost_the_messages_of_one),
        cmocka_unit_test(test_a_large_table_sends_what_one_sum_does),
        cmocka_unit_test(test_what_is_unlike_goes_apart),
        cmocka_unit_test(test_slices_of_buckets_have_the_bits_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
