/* Tests plait/checkpoint.h: what is saved is listed, read and put back; what cannot be put back is refused with a
 * reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/checkpoint.h>
#include <plait/model.h>

#include "base/base.h"
#include "learn/checkpoint_dir.h"

enum { ROWS = 40, KEYS = 30 };

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("line %d: %s: %s\n", __LINE__, #condition, plait_comm_error(comm)->text);                      \
            return PLAIT_EDIVERGED;                                                                                    \
        }                                                                                                              \
    } while (0)

static void run(int32_t workers, const char *topology, const char *consistency, int64_t first_clock,
                plait_work_fn *work, void *user) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    comm.workers = workers;
    plait_job_opts_init(&job);
    job.topology = topology;
    job.consistency = consistency;
    job.first_clock = first_clock;
    if (plait_run(&comm, &job, work, user, &err) != PLAIT_OK) fail_msg("%s", err.text);
}

static plait_status create(plait_job *job, const char *name, int64_t rows, const char *rule, plait_table **table) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = rows;
    opts.cols = 2;
    opts.rule.name = rule;
    return plait_table_create(job, &opts, table);
}

/* Saves, after two clocks, a dense table with momentum and a sparse table without a rule; a third is not saved. */
static plait_status save(plait_job *job, void *user) {
    plait_comm           *comm = plait_job_comm(job);
    plait_table          *table[3];
    plait_checkpoint_opts opts;
    float                 delta[ROWS * 2];
    uint64_t              keys[KEYS];
    (void)user;
    CHECK(create(job, "dense", ROWS, "momentum", &table[0]) == PLAIT_OK);
    CHECK(create(job, "sparse", 0, NULL, &table[1]) == PLAIT_OK);
    CHECK(create(job, "other", ROWS, NULL, &table[2]) == PLAIT_OK);
    for (int i = 0; i < ROWS * 2; i++) delta[i] = (float)i;
    for (int i = 0; i < KEYS; i++) keys[i] = (uint64_t)i * 1000003;
    for (int clock = 0; clock < 2; clock++) {
        CHECK(plait_table_inc_range(table[0], 0, ROWS, delta, 1) == PLAIT_OK);
        CHECK(plait_table_inc(table[1], KEYS, keys, delta, 0) == PLAIT_OK);
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    plait_checkpoint_opts_init(&opts);
    CHECK(plait_checkpoint_save(job, table, 2, &opts) == PLAIT_EINVAL); /* without a directory */
    opts.dir = dir;
    opts.note = "mine: \"\xc3\xa9\"\n";
    CHECK(plait_checkpoint_save(job, table, 2, &opts) == PLAIT_OK);
    return PLAIT_OK;
}

static void test_what_is_saved_is_listed_and_read(void **state) {
    (void)state;
    plait_checkpoint_entry *entry;
    plait_checkpoint       *c;
    plait_checkpoint_tensor tensor;
    plait_error             err;
    int64_t                 n;
    float                   rows[4];
    run(3, "ps", "bsp", 0, save, NULL);
    assert_int_equal(plait_checkpoint_list(dir, &n, &entry, &err), PLAIT_OK);
    assert_int_equal(n, 1);
    assert_string_equal(entry[0].folder, "checkpoint-000000000002");
    assert_true(entry[0].clock == 2 && entry[0].complete && entry[0].parts == 3 && entry[0].bytes > 0);
    assert_int_equal(plait_checkpoint_open(dir, entry[0].folder, &c, &err), PLAIT_OK);
    plait_comm_free(entry);
    assert_string_equal(plait_checkpoint_note(c), "mine: \"\xc3\xa9\"\n");
    assert_int_equal(plait_checkpoint_clock(c), 2);
    static const char *const names[] = { "dense.slot.m", "dense.values", "sparse.keys", "sparse.values" };
    for (int64_t i = 0; plait_checkpoint_tensor_at(c, i, &tensor) == PLAIT_OK; i++) {
        assert_true(i < 4);
        assert_string_equal(tensor.name, names[i]);
        assert_int_equal(tensor.rows, i < 2 ? ROWS : KEYS);
    }
    assert_int_equal(plait_checkpoint_tensor_at(c, 4, &tensor), PLAIT_ENAME);
    assert_int_equal(plait_checkpoint_read(c, "dense.values", 7, 2, rows, &err), PLAIT_OK);
    assert_true(rows[0] < 0 && rows[1] < rows[0]);
    assert_int_equal(plait_checkpoint_read(c, "other.values", 0, 1, rows, &err), PLAIT_ENAME);
    assert_int_equal(plait_checkpoint_read(c, "dense.values", ROWS, 1, rows, &err), PLAIT_EINVAL);
    plait_checkpoint_close(&c);
    assert_null(c);
    assert_int_equal(plait_checkpoint_open(dir, "checkpoint-000000000009", &c, &err), PLAIT_ENAME);
    assert_null(c);
}

/* Restores single tables, one by another name; a table that does not fit is refused by name. */
static plait_status restore(plait_job *job, void *user) {
    plait_comm       *comm = plait_job_comm(job);
    plait_table      *sparse, *short_one, *adam;
    plait_checkpoint *c;
    plait_error       err;
    float             values[2];
    (void)user;
    CHECK(create(job, "again", 0, NULL, &sparse) == PLAIT_OK);
    CHECK(create(job, "dense", ROWS - 1, "momentum", &short_one) == PLAIT_OK);
    CHECK(create(job, "adam", ROWS, "sgd", &adam) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, NULL, &c, &err) == PLAIT_OK);
    CHECK(plait_checkpoint_restore(c, sparse, NULL) == PLAIT_EMISMATCH);
    CHECK(plait_checkpoint_restore(c, short_one, NULL) == PLAIT_EMISMATCH);
    CHECK(strstr(plait_comm_error(comm)->text, "dense.") != NULL);
    CHECK(plait_checkpoint_restore(c, adam, "dense") == PLAIT_EMISMATCH); /* would forget its momentum */
    CHECK(plait_checkpoint_restore(c, sparse, "sparse") == PLAIT_OK);
    CHECK(plait_table_get(sparse, 1, &(uint64_t){ 29 * 1000003 }, values) == PLAIT_OK);
    CHECK(values[0] == 2 * 3 * 58 && values[1] == 2 * 3 * 59); /* two clocks of three workers */
    CHECK(plait_job_clock(job) == PLAIT_OK && plait_job_clock_now(job) == 3);
    CHECK(plait_checkpoint_restore(c, sparse, "sparse") == PLAIT_EINVAL);
    plait_checkpoint_close(&c);
    return PLAIT_OK;
}

static void test_chosen_tables_are_put_back(void **state) {
    (void)state;
    run(2, "local", "bsp", 2, restore, NULL);
    run(4, "allreduce", "bsp", 2, restore, NULL);
    run(1, "ps", "ssp:1", 2, restore, NULL);
}

static plait_status too_late(plait_job *job, void *user) {
    plait_comm       *comm = plait_job_comm(job);
    plait_table      *table;
    plait_checkpoint *c;
    plait_error       err;
    (void)user;
    CHECK(create(job, "sparse", 0, NULL, &table) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, NULL, &c, &err) == PLAIT_OK);
    CHECK(plait_checkpoint_restore(c, table, NULL) == PLAIT_EINVAL);
    CHECK(strstr(plait_comm_error(comm)->text, "first_clock") != NULL);
    plait_checkpoint_close(&c);
    return PLAIT_OK;
}

static void test_a_job_of_another_clock_is_refused(void **state) {
    (void)state;
    run(2, "ps", "bsp", 0, too_late, NULL);
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    job.first_clock = -1;
    assert_int_equal(plait_run(&comm, &job, too_late, NULL, &err), PLAIT_EINVAL);
}

static plait_status save_nowhere(plait_job *job, void *user) {
    plait_comm           *comm = plait_job_comm(job);
    plait_table          *table;
    plait_checkpoint_opts opts;
    (void)user;
    CHECK(create(job, "w", ROWS, NULL, &table) == PLAIT_OK);
    plait_checkpoint_opts_init(&opts);
    opts.dir = "/dev/null/x";
    CHECK(plait_checkpoint_save(job, &table, 1, &opts) == PLAIT_EIO);
    CHECK(plait_job_clock(job) == PLAIT_OK); /* nothing else is lost */
    return PLAIT_OK;
}

static void test_what_cannot_be_written_is_told_on_all(void **state) {
    (void)state;
    run(3, "allreduce", "bsp", 0, save_nowhere, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_saved_is_listed_and_read),
        cmocka_unit_test(test_chosen_tables_are_put_back),
        cmocka_unit_test(test_a_job_of_another_clock_is_refused),
        cmocka_unit_test(test_what_cannot_be_written_is_told_on_all),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
