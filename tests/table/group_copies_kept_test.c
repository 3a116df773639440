/* Checkpoints of a group's table with two replicas when a member has died. Ranks are threads. */
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

#include "one_group.h"

enum { WORKERS = 4, MEMBERS = 3, ROWS = 600 };

static const int32_t members[MEMBERS] = { 0, 1, 2 };

typedef struct story {
    char                dir[64];
    int32_t             victim;
    bool                late;  /* it dies in the group's table, not before it */
} story;

static plait_status run(story *s, int32_t workers, plait_body_fn *body, plait_error *err) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = workers;
    opts.transport = "threads";
    opts.timeout_ns = UINT64_C(60000000000);
    return plait_comm_run(&opts, body, s, err);
}

static plait_status add_ones(plait_table *table) {
    float one[ROWS];
    for (int i = 0; i < ROWS; i++) one[i] = 1;
    return table == NULL ? PLAIT_OK : plait_table_inc_range(table, 0, ROWS, one, 0);
}

static plait_status save(plait_job *job, plait_table *table, const story *s) {
    plait_checkpoint_opts opts;
    plait_checkpoint_opts_init(&opts);
    opts.dir = s->dir;
    return plait_checkpoint_save(job, &table, table != NULL, &opts);
}

static int rows_that_differ(const float value[ROWS], float due) {
    int n = 0;
    for (int i = 0; i < ROWS; i++) n += value[i] != due;
    return n;
}

static void clean(story *s) {
    char command[96];
    snprintf(s->dir, sizeof s->dir, "group_copies_kept.%d", (int)getpid());
    snprintf(command, sizeof command, "rm -rf %s", s->dir);
    assert_int_equal(system(command), 0);
}

/* A job, the group of its first members, and the group's table; *table_out NULL: the rank is no member. */
static plait_status begin(plait_comm *comm, plait_job **job_out, plait_group **group_out, plait_table **table_out) {
    CHECK(open_job(comm, 0, job_out) == PLAIT_OK);
    CHECK(plait_group_create(comm, "g", MEMBERS, members, group_out) == PLAIT_OK);
    if (plait_group_rank(*group_out) >= 0) CHECK(make(*job_out, *group_out, ROWS, table_out) == PLAIT_OK);
    return PLAIT_OK;
}

/* --- restoring ---------------------------------------------------------------------------------------------------- */

static plait_status save_ones(plait_comm *comm, void *user) {
    plait_job   *job = NULL;
    plait_group *group = NULL;
    plait_table *table = NULL;
    PLI_TRY(begin(comm, &job, &group, &table));
    if (plait_group_rank(group) == 0) CHECK(add_ones(table) == PLAIT_OK);
    CHECK(end_clock_at_last(job) == PLAIT_OK);
    CHECK(save(job, table, user) == PLAIT_OK);
    return plait_job_destroy(&job);
}

/* No table of all workers is there, so nothing but the group's own collectives says who is gone. */
static plait_status restore_without_one(plait_comm *comm, void *user) {
    const story      *s = user;
    const bool        dies = plait_comm_rank(comm) == s->victim;
    plait_job        *job = NULL;
    plait_group      *group = NULL;
    plait_table      *table = NULL;
    plait_checkpoint *from = NULL;
    float             value[ROWS];
    CHECK(open_job(comm, 1, &job) == PLAIT_OK);
    CHECK(plait_group_create(comm, "g", MEMBERS, members, &group) == PLAIT_OK);
    if (dies && !s->late) return die(job);
    if (!s->late) CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    if (plait_group_rank(group) >= 0) {
        CHECK(make(job, group, ROWS, &table) == PLAIT_OK);
        if (dies) return die(job);
        CHECK(plait_checkpoint_open(s->dir, NULL, &from, pli_comm_error(comm)) == PLAIT_OK);
        const plait_status status = plait_checkpoint_restore(from, table, NULL);
        plait_checkpoint_close(&from);
        CHECK(status == PLAIT_OK);
        CHECK(plait_table_get_range(table, 0, ROWS, value) == PLAIT_OK);
        CHECK(rows_that_differ(value, 1) == 0);
    }
    CHECK(end_clock_at_last(job) == PLAIT_OK);
    return plait_job_destroy(&job);
}

static void test_the_living_restore_what_the_dead_would(void **unused) {
    (void)unused;
    for (int i = 0; i < 2 * MEMBERS; i++) {
        story       s = { .victim = i / 2, .late = i % 2 != 0 };
        plait_error err = { 0 };
        clean(&s);
        if (run(&s, WORKERS, save_ones, &err) < 0) fail_msg("%s", err.text);
        if (run(&s, WORKERS, restore_without_one, &err) < 0)
            fail_msg("rank %d died%s: %s", s.victim, s.late ? " late" : "", err.text);
        clean(&s);
    }
}

/* --- saving ------------------------------------------------------------------------------------------------------- */

/* Between the death and the save there is no collective of the group. */
static plait_status save_without_one(plait_comm *comm, void *user) {
    const story *s = user;
    plait_job   *job = NULL;
    plait_group *group = NULL;
    plait_table *table = NULL;
    PLI_TRY(begin(comm, &job, &group, &table));
    CHECK(add_ones(table) == PLAIT_OK);
    CHECK(end_clock_at_last(job) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    if (plait_comm_rank(comm) == s->victim) return die(job);
    CHECK(add_ones(table) == PLAIT_OK);
    CHECK(end_clock_at_last(job) == PLAIT_OK);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(save(job, table, s) == PLAIT_OK);
    return plait_job_destroy(&job);
}

static void test_the_living_save_what_the_dead_would(void **unused) {
    (void)unused;
    for (int32_t victim = 0; victim < MEMBERS; victim++) {
        story             s = { .victim = victim };
        plait_error       err = { 0 };
        plait_checkpoint *kept = NULL;
        float             value[ROWS];
        clean(&s);
        if (run(&s, WORKERS, save_without_one, &err) < 0) fail_msg("rank %d died: %s", victim, err.text);
        assert_int_equal(plait_checkpoint_open(s.dir, NULL, &kept, &err), PLAIT_OK);
        assert_int_equal(plait_checkpoint_clock(kept), 2);
        assert_int_equal(plait_checkpoint_read(kept, "w.values", 0, ROWS, value, &err), PLAIT_OK);
        assert_int_equal(rows_that_differ(value, 2 * MEMBERS - 1), 0);
        plait_checkpoint_close(&kept);
        clean(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_living_restore_what_the_dead_would),
        cmocka_unit_test(test_the_living_save_what_the_dead_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
