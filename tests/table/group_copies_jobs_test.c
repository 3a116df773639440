/* A group with two replicas that has a table in one job after another; and the end of clocks in which the job has no
 * table of all workers. Ranks are threads. Where an order matters, one rank watches what the other waits for. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <plait/table.h>

#include "comm/world.h"
#include "one_group.h"

enum { WORKERS = 3, MEMBERS = 2, JOBS = 3, ROWS = 10 };

static const int32_t members[MEMBERS] = { 0, 1 };

/* --- one job after another ---------------------------------------------------------------------------------------- */

static plait_comm *_Atomic early; /* of rank 1, when it is about to create its table; release, pairs with acquire */

/* Returns when the rank waits in the call that it was about to make: what it sends before has been sent then. */
static void watch(plait_comm *_Atomic *rank) {
    plait_comm *comm;
    bool        waits = false;
    while ((comm = atomic_load_explicit(rank, memory_order_acquire)) == NULL) sched_yield();
    while (!waits) {
        sched_yield();
        pthread_mutex_lock(&comm->reason_lock);
        waits = comm->reason != NULL;
        pthread_mutex_unlock(&comm->reason_lock);
    }
    atomic_store_explicit(rank, NULL, memory_order_relaxed);
}

/* Rank 1 comes to the group's table before rank 0, whose server the first collective of the table goes through. */
static plait_status use_group(plait_comm *comm, plait_group *group, plait_job *job) {
    plait_table *table = NULL;
    const float  one[ROWS] = { 1 };
    float        value[ROWS];
    if (plait_comm_rank(comm) == 0) watch(&early);
    else atomic_store_explicit(&early, comm, memory_order_release);
    CHECK(make(job, group, ROWS, &table) == PLAIT_OK);
    CHECK(plait_table_inc_range(table, 0, ROWS, one, 0) == PLAIT_OK);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_table_get_range(table, 0, ROWS, value) == PLAIT_OK);
    CHECK(value[0] == MEMBERS);
    return PLAIT_OK;
}

static plait_status use_in_each_job(plait_comm *comm, void *unused) {
    plait_group *group = NULL;
    (void)unused;
    CHECK(plait_group_create(comm, "g", MEMBERS, members, &group) == PLAIT_OK);
    for (int i = 0; i < JOBS; i++) {
        plait_job *job = NULL;
        CHECK(open_job(comm, 0, &job) == PLAIT_OK);
        if (plait_group_rank(group) >= 0) PLI_TRY(use_group(comm, group, job));
        else CHECK(plait_job_clock(job) == PLAIT_OK);
        CHECK(plait_job_destroy(&job) == PLAIT_OK);
    }
    return plait_group_destroy(&group);
}

static void run(plait_body_fn *body) {
    plait_error     err = { 0 };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = WORKERS;
    opts.transport = "threads";
    opts.timeout_ns = UINT64_C(60000000000);
    if (plait_comm_run(&opts, body, NULL, &err) < 0) fail_msg("%s", err.text);
}

static void test_a_group_serves_job_after_job(void **unused) {
    (void)unused;
    run(use_in_each_job);
}

/* --- a member without memory -------------------------------------------------------------------------------------- */

plait_status __real_pli_client_open(pli_client *client, const pli_layout *layout, int32_t rank, uint32_t epoch,
                                    uint32_t incarnation, plait_error *err);
plait_status __wrap_pli_client_open(pli_client *client, const pli_layout *layout, int32_t rank, uint32_t epoch,
                                    uint32_t incarnation, plait_error *err);

static _Thread_local bool has_no_memory;
static bool               alone; /* written by rank 1, read behind the run */

plait_status __wrap_pli_client_open(pli_client *client, const pli_layout *layout, int32_t rank, uint32_t epoch,
                                    uint32_t incarnation, plait_error *err) {
    if (has_no_memory) return pli_fail(err, PLAIT_ENOMEM, "no memory, says the test");
    return __real_pli_client_open(client, layout, rank, epoch, incarnation, err);
}

static plait_status make_without_memory(plait_comm *comm, void *unused) {
    static const int32_t all[WORKERS] = { 0, 1, 2 };
    plait_group         *group = NULL;
    plait_job           *job = NULL;
    plait_table         *table = NULL;
    plait_status         status;
    (void)unused;
    CHECK(open_job(comm, 0, &job) == PLAIT_OK);
    CHECK(plait_group_create(comm, "g", WORKERS, all, &group) == PLAIT_OK);
    has_no_memory = plait_comm_rank(comm) == 1;
    const uint64_t waits = (uint64_t)comm->waits;
    status = make(job, group, ROWS, &table);
    if (has_no_memory) {
        CHECK(status == PLAIT_ENOMEM);
        alone = (uint64_t)comm->waits == waits;
        return die(job);
    }
    CHECK(status == PLAIT_OK);
    CHECK(end_clock_at_last(job) == PLAIT_OK);
    return plait_job_destroy(&job);
}

static void test_a_member_without_memory_fails_alone(void **unused) {
    (void)unused;
    run(make_without_memory);
    assert_true(alone); /* in vain it would have waited for the others, who bring theirs elsewhere */
}

/* --- the end of a clock without servers --------------------------------------------------------------------------- */

void __real_pli_client_end_clock(pli_client *client);
void __wrap_pli_client_end_clock(pli_client *client);

static _Atomic bool unguarded; /* some client's clock ended while nobody held its port */

void __wrap_pli_client_end_clock(pli_client *client) {
    const plait_job *job = (const plait_job *)((const char *)client - offsetof(plait_job, client));
    if (atomic_load(&job->client_port->lock) == 0) atomic_store(&unguarded, true);
    __real_pli_client_end_clock(client);
}

/* News of a death come to the client by any thread, which holds its port meanwhile. */
static void test_a_clock_ends_within_the_port(void **unused) {
    (void)unused;
    atomic_store(&unguarded, false);
    run(use_in_each_job); /* there is no table of all workers */
    assert_false(atomic_load(&unguarded));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_group_serves_job_after_job),
        cmocka_unit_test(test_a_member_without_memory_fails_alone),
        cmocka_unit_test(test_a_clock_ends_within_the_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
