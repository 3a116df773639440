/* A cut through tables, taken piece by piece while the workers train on, and put back into new tables of a job that
 * begins where the cut was, of other workers, topologies and shards: the run that goes on has the bits of the one that
 * went straight through, for every rule and shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/state/state.h"
#include "table/table.h"
#include "table/topology/buckets.h"

enum { ROWS = 700, COLS = 3, TABLES = 3, BLOCKS = 12, CUT = 5, CLOCKS = 12, KEYS_MOST = 400 };

/* What a cut holds, in the memory that all workers share: each writes its own rows. */
typedef struct cut {
    unsigned char *array[TABLES][PLI_STATE_ARRAYS];
    int64_t        rows[TABLES], units[TABLES];
} cut;

typedef struct job {
    const char     *rule, *topology, *consistency;
    plait_type      type;
    int32_t         plain;                       /* 1: sums are not exact */
    int32_t         sharded;                     /* 1: the dense table's rule state lies in slices */
    const char     *collective;                  /* NULL: the transport's own */
    cut            *taken;                       /* at clock CUT, if this run takes one */
    const cut      *from;                        /* where it goes on; NULL: from the beginning */
    double          values[TABLES][ROWS * COLS]; /* at the end, of worker 0; sparse: by key */
    _Atomic int32_t late;                        /* workers that still took of the cut when training was over */
} job;

/* --- training: what a block pushes in a clock is its own affair ------------------------------------------------ */

static void put(plait_type type, void *to, int64_t i, double x) {
    if (type == PLAIT_I64)
        ((int64_t *)to)[i] = (int64_t)(x * 1e15);
    else if (type == PLAIT_F64)
        ((double *)to)[i] = x;
    else
        ((float *)to)[i] = (float)x;
}

static double at(plait_type type, const void *from, int64_t i) {
    if (type == PLAIT_I64) return (double)((const int64_t *)from)[i];
    return type == PLAIT_F64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

static double number(int64_t block, int64_t clock, int64_t i) {
    return (double)((i * 37 + block * 101 + clock * 13) % 211 - 105) / (double)(7 + block);
}

/* Keys of a block in a clock: other ones each time, so that most rows are not touched at once. */
static int64_t keys_of(int64_t block, int64_t clock, uint64_t *keys) {
    int64_t n = 0;
    for (uint64_t key = 0; key < ROWS; key++)
        if (pli_hash_u64(key * 31 + (uint64_t)block * 7 + (uint64_t)clock) % 23 == 0) keys[n++] = key;
    return n;
}

static plait_status push(const job *j, plait_table *const *table, int64_t block, int64_t clock, void *room) {
    uint64_t keys[ROWS];
    int64_t  n = keys_of(block, clock, keys);
    for (int64_t i = 0; i < ROWS * COLS; i++) put(j->type, room, i, number(block, clock, i));
    if ((block + clock) % 5 != 0) PLI_TRY(plait_table_inc_range(table[0], 0, ROWS, room, 2));
    PLI_TRY(plait_table_inc(table[1], n, keys, room, 2));
    for (int64_t i = 0; i < n; i++) keys[i] = keys[i] * UINT64_C(0x100000001b3) + 5;
    return plait_table_inc(table[2], n, keys, room, 2);
}

static plait_status train_clock(plait_job *pj, const job *j, plait_table *const *table, void *room) {
    plait_comm *comm = plait_job_comm(pj);
    int64_t     clock = plait_job_clock_now(pj);
    const void *values;
    PLI_TRY(plait_table_read(table[0], 0, ROWS, &values));
    for (int64_t block = plait_comm_rank(comm); block < BLOCKS; block += plait_comm_workers(comm))
        PLI_TRY(push(j, table, block, clock, room));
    return plait_job_clock(pj);
}

/* --- taking and putting back ------------------------------------------------------------------------------------ */

typedef struct taker {
    cut                *to;
    const pli_capture  *capture;
    plait_table *const *table;
    int64_t             part, bytes; /* of the part at hand, so far */
} taker;

static void take(void *user, pli_msg *rows) {
    taker                *t = user;
    int64_t               parts;
    plait_type            type;
    const pli_state_part *part = pli_capture_parts(t->capture, &parts);
    assert_true(t->part < parts);
    part += t->part;
    int64_t row_bytes = pli_state_bytes(t->table[part->table], part->array, &type);
    memcpy(t->to->array[part->table][part->array] + part->first * row_bytes + t->bytes, pli_msg_body(rows),
           rows->head.body_bytes);
    t->bytes += (int64_t)rows->head.body_bytes;
    t->to->rows[part->table] = part->all;
    if (t->bytes == part->rows * row_bytes) t->part++, t->bytes = 0;
    pli_msg_free(&rows);
}

static plait_status put_array(const cut *from, plait_table *const *table, int32_t t, int32_t array, int64_t first,
                              int64_t n, plait_error *err) {
    plait_type      type;
    int64_t         row_bytes = pli_state_bytes(table[t], array, &type);
    const uint64_t *keys = (const uint64_t *)from->array[t][PLI_STATE_KEYS];
    return pli_state_put(table[t], array, first, n, plait_table_rows(table[t]) == 0 ? keys + first : NULL,
                         from->array[t][array] + first * row_bytes, err);
}

static plait_status put_back(plait_job *pj, const cut *from, plait_table *const *table) {
    plait_comm *comm = plait_job_comm(pj);
    int64_t     me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    for (int32_t t = 0; t < TABLES; t++) {
        int32_t arrays[PLI_STATE_ARRAYS], n = pli_state_arrays(table[t], arrays);
        bool    copied = pli_state_is_copied(table[t]);
        int64_t first = copied ? 0 : from->rows[t] * me / workers;
        int64_t end = copied ? from->rows[t] : from->rows[t] * (me + 1) / workers;
        if (copied || me == 0) PLI_TRY(pli_state_put_units(table[t], from->units[t], pli_comm_error(comm)));
        PLI_TRY(plait_comm_barrier(comm));
        for (int32_t i = 0; i < n; i++)
            if (arrays[i] != PLI_STATE_KEYS)
                PLI_TRY(put_array(from, table, t, arrays[i], first, end - first, pli_comm_error(comm)));
    }
    return plait_job_barrier(pj);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static plait_status create(plait_job *pj, const job *j, plait_table **table) {
    static const char *const names[] = { "dense", "keyed", "sparse" };
    double                   penalty[ROWS * COLS];
    for (int64_t i = 0; i < ROWS * COLS; i++) put(j->type, penalty, i, (double)(i % 3));
    for (int32_t t = 0; t < TABLES; t++) {
        plait_table_opts opts;
        plait_table_opts_init(&opts);
        opts.name = names[t];
        opts.rows = t == 2 ? 0 : ROWS;
        opts.cols = COLS;
        opts.keyed = t == 1;
        opts.type = j->type;
        opts.exact = !j->plain;
        opts.sharded = j->sharded != 0 && t == 0;
        opts.rule.name = j->rule;
        opts.rule.l2 = j->rule != NULL ? 0.01 : 0;
        opts.rule.learning_rate = 0.05;
        if (j->rule != NULL && strcmp(j->rule, "ftrl") != 0) {
            opts.rule.schedule = "cosine";
            opts.rule.schedule_clocks = CLOCKS + 3;
        }
        opts.penalty = j->rule != NULL && t < 2 ? penalty : NULL;
        PLI_TRY(plait_table_create(pj, &opts, &table[t]));
    }
    return PLAIT_OK;
}

static plait_status gather_end(plait_job *pj, job *j, plait_table *const *table) {
    int64_t   n;
    uint64_t *keys;
    void     *values;
    PLI_TRY(plait_job_barrier(pj));
    for (int32_t t = 0; t < 2; t++) {
        const void *rows;
        PLI_TRY(plait_table_read(table[t], 0, ROWS, &rows));
        for (int64_t i = 0; plait_comm_rank(plait_job_comm(pj)) == 0 && i < ROWS * COLS; i++)
            j->values[t][i] = at(j->type, rows, i);
    }
    PLI_TRY(plait_table_dump(table[2], &n, &keys, &values));
    for (int64_t i = 0; plait_comm_rank(plait_job_comm(pj)) == 0 && i < n; i++) {
        uint64_t row = 0;
        while (row * UINT64_C(0x100000001b3) + 5 != keys[i]) row++;
        for (int64_t c = 0; c < COLS; c++) j->values[2][(int64_t)row * COLS + c] = at(j->type, values, i * COLS + c);
    }
    plait_comm_free(keys);
    plait_comm_free(values);
    return PLAIT_OK;
}

static plait_status work(plait_job *pj, void *user) {
    job         *j = user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_error *err = pli_comm_error(comm);
    plait_table *table[TABLES];
    pli_capture *capture = NULL;
    taker        t = { .to = j->taken, .table = table };
    bool         done = true;
    void        *room = malloc(sizeof(double) * ROWS * COLS);
    plait_status status = create(pj, j, table);
    if (status == PLAIT_OK && j->from != NULL) status = put_back(pj, j->from, table);
    while (status == PLAIT_OK && plait_job_clock_now(pj) < CLOCKS) {
        if (j->taken != NULL && plait_job_clock_now(pj) == CUT) {
            status = pli_capture_begin(pj, TABLES, table, &capture, err);
            t.capture = capture;
            for (int32_t i = 0; status == PLAIT_OK && i < TABLES; i++)
                j->taken->units[i] = pli_capture_units(capture, i);
        }
        if (status == PLAIT_OK) status = train_clock(pj, j, table, room);
        if (status == PLAIT_OK && capture != NULL) status = pli_capture_pump(capture, 500, false, take, &t, &done, err);
    }
    if (status == PLAIT_OK && capture != NULL) {
        j->late += !done;
        while (status == PLAIT_OK && !done) status = pli_capture_pump(capture, 1 << 20, true, take, &t, &done, err);
    }
    pli_capture_end(&capture);
    if (status == PLAIT_OK) status = gather_end(pj, j, table);
    free(room);
    return status;
}

static void run(int32_t workers, int32_t servers, job *j) {
    plait_comm_opts comm_opts;
    plait_job_opts  opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm_opts);
    comm_opts.workers = workers;
    comm_opts.servers = servers;
    comm_opts.threads = 1;
    if (j->collective != NULL) comm_opts.collective = j->collective;
    plait_job_opts_init(&opts);
    opts.topology = j->topology;
    opts.consistency = j->consistency;
    opts.batch = 2 * BLOCKS;
    opts.first_clock = j->from != NULL ? CUT : 0;
    plait_status status = plait_run(&comm_opts, &opts, work, j, &err);
    if (status != PLAIT_OK) fail_msg("%s x %s, rule %s: %s", j->topology, j->consistency, j->rule, err.text);
}

static void open_cut(cut *c) {
    memset(c, 0, sizeof *c);
    for (int32_t t = 0; t < TABLES; t++)
        for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++) c->array[t][a] = calloc(ROWS * COLS, 8);
}

static void close_cut(cut *c) {
    for (int32_t t = 0; t < TABLES; t++)
        for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++) free(c->array[t][a]);
}

static void check_same(const job *a, const job *b) {
    for (int32_t t = 0; t < TABLES; t++)
        if (memcmp(a->values[t], b->values[t], sizeof a->values[t]) != 0)
            fail_msg("table %d, rule %s: %s goes on as %s to other values", t, a->rule, a->topology, b->topology);
}

/* A run of N that takes a cut, and one of M that goes on from it. */
static void check_goes_on(const char *rule, plait_type type, const char *from, int32_t n, int32_t n_servers,
                          const char *to, int32_t m, int32_t m_servers) {
    static job straight, again;
    cut        taken;
    open_cut(&taken);
    straight = (job){ .rule = rule, .topology = from, .consistency = "bsp", .type = type, .taken = &taken };
    again = (job){ .rule = rule, .topology = to, .consistency = "bsp", .type = type, .from = &taken };
    run(n, n_servers, &straight);
    run(m, m_servers, &again);
    check_same(&straight, &again);
    assert_true(straight.late > 0);
    assert_true(taken.rows[2] > KEYS_MOST / 4);
    close_cut(&taken);
}

/* Slices of a rule's state: from and to pairs that have them or not. By messages the sum is cut into several parts, so
 * that a worker's slices lie apart from the rows that it writes. */
static void test_slices_go_on(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *rule;
        int32_t     n, m, sharded, then; /* sharded: before, and then */
    } runs[] = {
        { "allreduce", "allreduce", "adam", 1, 3, 1, 1 }, { "allreduce", "allreduce", "momentum", 3, 2, 1, 1 },
        { "allreduce", "ps", "adam", 4, 2, 1, 0 },        { "ps", "allreduce", "adagrad", 2, 3, 0, 1 },
        { "allreduce", "allreduce", "adam", 2, 2, 1, 0 }, { "hybrid", "allreduce", "adam", 3, 4, 1, 1 },
    };
    const int64_t usual = pli_bucket_bytes;
    pli_bucket_bytes = 6400;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        static job straight, again;
        cut        taken;
        open_cut(&taken);
        straight = (job){ .rule = runs[i].rule, .topology = runs[i].from, .consistency = "bsp", .taken = &taken,
                          .sharded = runs[i].sharded, .collective = i % 3 == 1 ? NULL : "ring" };
        again = (job){ .rule = runs[i].rule, .topology = runs[i].to, .consistency = "bsp", .from = &taken,
                       .sharded = runs[i].then };
        run(runs[i].n, 0, &straight);
        run(runs[i].m, 0, &again);
        check_same(&straight, &again);
        assert_true(straight.late > 0);
        close_cut(&taken);
    }
    pli_bucket_bytes = usual;
}

static const char *const rules[] = { NULL, "sgd", "momentum", "adagrad", "adam", "ftrl" };
static const char *const topologies[] = { "local", "ps", "allreduce" };
enum { RULES = sizeof rules / sizeof *rules };

static void test_every_rule_goes_on_to_the_same_bits(void **state) {
    (void)state;
    for (int32_t r = 0; r < RULES; r++)
        for (int32_t k = 0; k < 3; k++)
            check_goes_on(rules[r], r % 2 == 0 ? PLAIT_F32 : PLAIT_F64, topologies[k], 2, 0, topologies[k], 2, 0);
}

static void test_any_number_of_workers_goes_on(void **state) {
    (void)state;
    for (int32_t n = 1; n <= 4; n++)
        for (int32_t m = 1; m <= 4; m++)
            check_goes_on("adam", PLAIT_F32, topologies[(n + m) % 3], n, 0, topologies[(n * m) % 3], m, 0);
}

static void test_servers_apart_are_taken_from_and_put_to(void **state) {
    (void)state;
    check_goes_on("adagrad", PLAIT_F32, "ps", 2, 3, "ps", 3, 2);
    check_goes_on("momentum", PLAIT_F32, "ps", 3, 1, "local", 2, 0);
    check_goes_on(NULL, PLAIT_F64, "ps", 1, 4, "allreduce", 4, 0);
    check_goes_on(NULL, PLAIT_I64, "ps", 3, 2, "allreduce", 2, 0);
    check_goes_on(NULL, PLAIT_I64, "allreduce", 2, 0, "local", 3, 0);
}

/* Under a stale policy the pushes of one worker are in order, so that a run of one repeats; and the cut is what the
 * barrier saw, whatever was applied behind it. */
static void test_a_stale_policy_goes_on(void **state) {
    (void)state;
    static const char *const policies[] = {
        "ssp:2", "essp:1", "async", "bounded-delay:2", "downpour:2:3", "sequential"
    };
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        static job straight, again;
        cut        taken;
        open_cut(&taken);
        straight =
            (job){ .rule = "adagrad", .topology = "ps", .consistency = policies[i], .taken = &taken, .plain = 1 };
        again = (job){ .rule = "adagrad", .topology = "ps", .consistency = policies[i], .from = &taken, .plain = 1 };
        run(1, 0, &straight);
        run(1, 2, &again);
        check_same(&straight, &again);
        close_cut(&taken);
    }
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status refused_work(plait_job *pj, void *user) {
    (void)user;
    plait_comm      *comm = plait_job_comm(pj);
    plait_table     *table;
    pli_capture     *capture = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = 100;
    opts.rule.name = "sgd";
    PLI_TRY(plait_table_create(pj, &opts, &table));
    CHECK(pli_capture_begin(pj, 1, &table, &capture, pli_comm_error(comm)) == PLAIT_EREFUSED && capture == NULL);
    CHECK(strstr(pli_comm_error(comm)->text, "nearest is") != NULL);
    return PLAIT_OK;
}

static void test_what_has_no_cut_is_refused_by_name(void **state) {
    (void)state;
    plait_comm_opts comm_opts;
    plait_job_opts  opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm_opts);
    comm_opts.workers = 2;
    plait_job_opts_init(&opts);
    opts.topology = "local"; /* its workers write without locks */
    opts.consistency = "async";
    if (plait_run(&comm_opts, &opts, refused_work, NULL, &err) != PLAIT_OK) fail_msg("%s", err.text);
}

static int small_pieces(void **state) {
    (void)state;
    pli_snap_piece_bytes = 200;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_goes_on_to_the_same_bits),
        cmocka_unit_test(test_any_number_of_workers_goes_on),
        cmocka_unit_test(test_servers_apart_are_taken_from_and_put_to),
        cmocka_unit_test(test_a_stale_policy_goes_on),
        cmocka_unit_test(test_slices_go_on),
        cmocka_unit_test(test_what_has_no_cut_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, small_pieces, NULL);
}
