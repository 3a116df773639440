/* What calls cost: a get's entries of its port, how often a push has the shard of a key computed, how often servers
 * decode its parts. Functions of the test stand before the library's (the linker's --wrap) and count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "table/table.h"

enum { WORKERS = 3, TABLES = 3, ROWS = 3000, KEYS = 700, CLOCKS = 6, COLS = 2 };

/* Counts of this thread, which is one rank. */
static _Thread_local pli_port *counted;
static _Thread_local int       entries;
static _Thread_local int64_t   keys_placed;

static _Atomic int64_t parts_decoded; /* of all ranks */

void __real_pli_port_enter(pli_port *port, uint64_t *now_ns, pli_out *out);
void __wrap_pli_port_enter(pli_port *port, uint64_t *now_ns, pli_out *out);
void __real_pli_placement_shards(const pli_placement *placement, int64_t n, const uint64_t *keys, uint16_t *out);
void __wrap_pli_placement_shards(const pli_placement *placement, int64_t n, const uint64_t *keys, uint16_t *out);

void __wrap_pli_port_enter(pli_port *port, uint64_t *now_ns, pli_out *out) {
    entries += port == counted;
    __real_pli_port_enter(port, now_ns, out);
}

void __wrap_pli_placement_shards(const pli_placement *placement, int64_t n, const uint64_t *keys, uint16_t *out) {
    keys_placed += n;
    __real_pli_placement_shards(placement, n, keys, out);
}

plait_status __real_pli_server_part(const pli_server *server, const pli_msg *msg, uint32_t i, pli_decoded_part *part,
                                    plait_error *err);
plait_status __wrap_pli_server_part(const pli_server *server, const pli_msg *msg, uint32_t i, pli_decoded_part *part,
                                    plait_error *err);

plait_status __wrap_pli_server_part(const pli_server *server, const pli_msg *msg, uint32_t i, pli_decoded_part *part,
                                    plait_error *err) {
    atomic_fetch_add(&parts_decoded, 1);
    return __real_pli_server_part(server, msg, i, part, err);
}

typedef struct setting {
    const char *consistency;
    bool        sparse;
} setting;

/* In a rank's thread, where cmocka's assertions cannot end the test. */
#define MUST(err, condition)                                                                                      \
    do {                                                                                                          \
        if (!(condition))                                                                                         \
            return pli_fail(err, PLAIT_EINVAL, "line %d: %s; %d entries, %lld keys placed", __LINE__, #condition, \
                            entries, (long long)keys_placed);                                                     \
    } while (0)

static void count_anew(void) {
    entries = 0;
    keys_placed = 0;
}

static plait_status count_get(plait_table *table, const uint64_t *keys, bool sparse, plait_error *err) {
    static _Thread_local float values[ROWS * COLS];
    const void                *lent;
    count_anew();
    PLI_TRY(plait_table_get(table, KEYS, keys, values));
    MUST(err, entries == 1 && keys_placed <= KEYS); /* no shard is asked for rows of which a copy is held */
    if (sparse) return PLAIT_OK;
    count_anew();
    PLI_TRY(plait_table_get_range(table, 5, ROWS / 2, values));
    MUST(err, entries == 1);
    count_anew();
    PLI_TRY(plait_table_read(table, 0, ROWS, &lent));
    MUST(err, entries == 1);
    return PLAIT_OK;
}

static plait_status count_push(plait_job *job, plait_table *const *tables, const uint64_t *keys, plait_error *err) {
    static const float delta[KEYS * COLS];
    for (int t = 0; t < TABLES; t++) {
        PLI_TRY(plait_table_inc(tables[t], KEYS, keys, delta, 1));
        PLI_TRY(plait_table_inc(tables[t], KEYS / 2, keys, delta, 1));
    }
    count_anew();
    PLI_TRY(plait_job_clock(job));
    MUST(err, keys_placed == TABLES * KEYS);
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    const setting   *s = user;
    plait_error     *err = pli_comm_error(plait_job_comm(job));
    plait_table     *tables[TABLES];
    plait_table_opts opts;
    uint64_t         keys[KEYS];
    plait_table_opts_init(&opts);
    opts.rows = s->sparse ? 0 : ROWS;
    opts.cols = COLS;
    opts.keyed = 1;
    for (int t = 0; t < TABLES; t++) {
        opts.name = (const char *[TABLES]){ "a", "b", "c" }[t];
        PLI_TRY(plait_table_create(job, &opts, &tables[t]));
        MUST(err, tables[t]->spec.placement.shards == WORKERS);
    }
    counted = job->client_port;
    for (int c = 0; c < CLOCKS; c++) {
        for (int i = 0; i < KEYS; i++) keys[i] = (uint64_t)((i * 4 + c * 7 + plait_comm_rank(job->comm)) % ROWS);
        PLI_TRY(count_get(tables[c % TABLES], keys, s->sparse, err));
        PLI_TRY(count_push(job, tables, keys, err));
    }
    counted = NULL;
    return PLAIT_OK;
}

static void run(const setting *s) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.transport = "threads";
    comm.workers = WORKERS;
    job.topology = "ps";
    job.consistency = s->consistency;
    atomic_store(&parts_decoded, 0);
    if (plait_run(&comm, &job, work, (void *)(uintptr_t)s, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(atomic_load(&parts_decoded), WORKERS * WORKERS * TABLES * CLOCKS); /* as many as were sent */
}

/* A get enters its port once, whether answers are there at once, come while the worker waits, or wait for the slowest.
 * A push has each key placed once, and each of its parts decoded once. */
static void test_everything_is_done_once(void **state) {
    (void)state;
    const setting settings[] = { { "bsp", false },   { "bsp", true },   { "ssp:1", false },
                                 { "essp:1", true }, { "async", false }, { "sequential", true } };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) run(&settings[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_is_done_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
