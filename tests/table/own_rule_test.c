/* Update rules of a program's own: under every topology a copy of one of Plait's, by another name, gives its bits, and
 * a rule with as many slots as there can be finds its state again; what cannot be registered, or is not there, is
 * refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "table/table.h"

enum { ROWS = 50, COLS = 3, CLOCKS = 12, WORKERS = 3, RULES = 4 };

/* Each application adds to every slot, differently; the value shows that all slots were there. */
static void count_f32(const plait_rule_numbers *rule, const plait_step *step, int64_t n, float *w, float *const *slot,
                      const float *g, const float *penalty) {
    const float *most = rule->ops->user;
    (void)step, (void)penalty;
    for (int64_t i = 0; i < n; i++) {
        if (g[i] == 0) continue; /* dense tables push whole rows */
        for (int k = 0; k < PLAIT_RULE_SLOTS; k++) slot[k][i] += (float)(k + 1);
        w[i] = 0;
        for (int k = 0; k < PLAIT_RULE_SLOTS; k++) w[i] += slot[k][i] / (float)(k + 1) / PLAIT_RULE_SLOTS;
        if (w[i] > *most) w[i] = -1;
    }
}

static const float      most = 1000;
static const plait_rule count = { .name = "count",
                                  .slots = PLAIT_RULE_SLOTS,
                                  .learning_rate = 1,
                                  .apply_f32 = count_f32,
                                  .user = (void *)(uintptr_t)&most };

typedef struct setting {
    const char *topology, *consistency, *rule;
    plait_type  type;
    int         keyed, sparse, sharded, exact, servers;
    double      model[ROWS * COLS]; /* of worker 0 */
    plait_status status;
    char        text[256];
} setting;

/* Worker w touches in clock c the rows r with (r + w + c) % 4 == 0. */
static bool touches(int w, int c, int r) { return (r + w + c) % 4 == 0; }

static plait_status push(plait_table *table, const setting *s, int me, int clock) {
    float    f32[ROWS * COLS] = { 0 };
    double   f64[ROWS * COLS] = { 0 };
    uint64_t keys[ROWS];
    int      n = 0;
    for (int r = 0; r < ROWS; r++) {
        if (!touches(me, clock, r) && !s->sparse && !s->keyed) {
            n++;
            continue;
        }
        if (!touches(me, clock, r)) continue;
        for (int c = 0; c < COLS; c++) {
            const double g = (double)(1 + (r * 7 + c * 3 + me + clock) % 11) / 8;
            f64[n * COLS + c] = g;
            f32[n * COLS + c] = (float)g;
        }
        keys[n++] = (uint64_t)r;
    }
    const void *delta = s->type == PLAIT_F64 ? (const void *)f64 : (const void *)f32;
    if (s->sparse || s->keyed) return plait_table_inc(table, n, keys, delta, 2);
    return plait_table_inc_range(table, 0, ROWS, delta, 2);
}

static plait_status work(plait_job *job, void *user) {
    setting         *s = user;
    plait_comm      *comm = plait_job_comm(job);
    const int        me = plait_comm_rank(comm);
    plait_table     *table = NULL;
    plait_table_opts opts;
    float            f32[ROWS * COLS];
    double           f64[ROWS * COLS];
    uint64_t         keys[ROWS];
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.type = s->type;
    opts.rows = s->sparse ? 0 : ROWS;
    opts.cols = COLS;
    opts.keyed = s->keyed;
    opts.sharded = s->sharded;
    opts.exact = s->exact;
    opts.rule.name = s->rule;
    opts.rule.learning_rate = 0.05;
    opts.rule.l2 = strcmp(s->rule, "count") == 0 ? 0 : 0.01;
    plait_status status = plait_table_create(job, &opts, &table);
    for (int clock = 0; clock < CLOCKS && status >= 0; clock++) {
        status = push(table, s, me, clock);
        if (status >= 0) status = plait_job_clock(job);
    }
    if (status >= 0) status = plait_job_barrier(job);
    for (int r = 0; r < ROWS; r++) keys[r] = (uint64_t)r;
    void *to = s->type == PLAIT_F64 ? (void *)f64 : (void *)f32;
    if (status >= 0) status = plait_table_get(table, ROWS, keys, to);
    for (int i = 0; me == 0 && status >= 0 && i < ROWS * COLS; i++)
        s->model[i] = s->type == PLAIT_F64 ? f64[i] : (double)f32[i];
    return status;
}

static void run(setting *s, const plait_rule *rules, int32_t n) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.workers = WORKERS;
    comm.servers = s->servers;
    job.topology = s->topology;
    job.consistency = s->consistency;
    job.batch = 2 * WORKERS;
    job.rules = rules;
    job.n_rules = n;
    s->status = plait_run(&comm, &job, work, s, &err);
    snprintf(s->text, sizeof s->text, "%s", err.text);
}

static const setting places[] = {
    { .topology = "local", .consistency = "bsp" },
    { .topology = "local", .consistency = "bsp", .keyed = 1 },
    { .topology = "local", .consistency = "bsp", .sparse = 1 },
    { .topology = "allreduce", .consistency = "bsp" },
    { .topology = "allreduce", .consistency = "bsp", .sharded = 1 },
    { .topology = "allreduce", .consistency = "bsp", .exact = 1 },
    { .topology = "allreduce", .consistency = "bounded-delay:2" },
    { .topology = "ps", .consistency = "bsp" },
    { .topology = "ps", .consistency = "bsp", .servers = 2 },
    { .topology = "ps", .consistency = "bsp", .keyed = 1 },
    { .topology = "ps", .consistency = "bsp", .sparse = 1 },
    { .topology = "ps", .consistency = "bsp", .exact = 1 },
    { .topology = "ps", .consistency = "sequential", .sparse = 1 },
};
enum { PLACES = sizeof places / sizeof *places };

static void test_a_copy_has_the_bits(void **state) {
    (void)state;
    plait_rule own[RULES];
    char       names[RULES][16];
    for (int k = 0; k < RULES; k++) {
        own[k] = *pli_rules()[k];
        snprintf(names[k], sizeof names[k], "my-%s", own[k].name);
        own[k].name = names[k];
    }
    for (size_t p = 0; p < PLACES; p++)
        for (int k = 0; k < RULES; k++)
            for (int wide = 0; wide < 2; wide++) {
                setting theirs = places[p], ours;
                theirs.type = wide ? PLAIT_F64 : PLAIT_F32;
                ours = theirs;
                theirs.rule = pli_rules()[k]->name;
                ours.rule = names[k];
                run(&theirs, NULL, 0);
                run(&ours, own, RULES);
                if (theirs.status < 0 || ours.status < 0)
                    fail_msg("%s %s: %s%s", ours.rule, ours.topology, theirs.text, ours.text);
                assert_true(theirs.model[3 * COLS] != 0);
                assert_memory_equal(theirs.model, ours.model, sizeof ours.model);
            }
}

/* How often a row counts: once a clock in which anybody touched it, if a clock's pushes are applied as one; otherwise
 * once a push. */
static void test_state_is_found_again(void **state) {
    (void)state;
    for (size_t p = 0; p < PLACES; p++) {
        setting s = places[p];
        s.rule = "count";
        run(&s, &count, 1);
        if (s.status < 0) fail_msg("%s %s: %s", s.topology, s.consistency, s.text);
        const bool each = strcmp(s.consistency, "sequential") == 0;
        for (int r = 0; r < ROWS; r++) {
            int times = 0;
            for (int c = 0; c < CLOCKS; c++) {
                int by = 0;
                for (int w = 0; w < WORKERS; w++) by += touches(w, c, r);
                times += each ? by : by > 0;
            }
            for (int c = 0; c < COLS; c++)
                if (s.model[r * COLS + c] != times)
                    fail_msg("%s %s place %zu row %d: %g applications instead of %d", s.topology, s.consistency, p, r,
                             s.model[r * COLS + c], times);
        }
    }
}

static void test_unlocked(void **state) {
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) { /* lost updates are allowed there, others' state is not */
        setting s = {
            .topology = "local", .consistency = "async", .sparse = sparse, .keyed = !sparse, .rule = "count"
        };
        run(&s, &count, 1);
        if (s.status < 0) fail_msg("%s", s.text);
        for (int i = 0; i < ROWS * COLS; i++) assert_in_range(s.model[i], 1, CLOCKS * WORKERS);
    }
}

static void refused(const plait_rule *rules, int32_t n, const char *rule, plait_type type, plait_status status,
                    const char *text) {
    setting s = { .topology = "ps", .consistency = "bsp", .rule = rule, .type = type };
    run(&s, rules, n);
    assert_int_equal(s.status, status);
    if (strstr(s.text, text) == NULL) fail_msg("'%s' does not say '%s'", s.text, text);
}

static void test_refusals(void **state) {
    (void)state;
    plait_rule own[2] = { count, count };
    refused(&count, 1, "cuont", PLAIT_F32, PLAIT_ENAME, "count");
    refused(&count, 1, "adagrda", PLAIT_F32, PLAIT_ENAME, "adagrad");
    refused(NULL, 0, "count", PLAIT_F32, PLAIT_ENAME, "optimizer");
    refused(&count, 1, "count", PLAIT_F64, PLAIT_EREFUSED, "float32");
    refused(own, 2, "count", PLAIT_F32, PLAIT_EINVAL, "exists already");
    refused(NULL, 1, "sgd", PLAIT_F32, PLAIT_EINVAL, "1 update rules");
    own[0].name = "adam";
    refused(own, 1, "adam", PLAIT_F32, PLAIT_EINVAL, "exists already");
    own[0].name = "with space";
    refused(own, 1, "sgd", PLAIT_F32, PLAIT_EINVAL, "needs a name");
    own[0] = count;
    own[0].apply_f32 = NULL;
    refused(own, 1, "sgd", PLAIT_F32, PLAIT_EINVAL, "apply_f32");
    own[0] = count;
    own[0].slots = PLAIT_RULE_SLOTS + 1;
    refused(own, 1, "sgd", PLAIT_F32, PLAIT_EINVAL, "slots");
    /* what derives its values goes with no average of copies */
    own[0] = count;
    own[0].derives = 1;
    setting s = { .topology = "gossip:ring", .consistency = "bsp", .rule = "count" };
    run(&s, own, 1);
    assert_int_equal(s.status, PLAIT_EREFUSED);
    own[0].derives = 0;
    run(&s, own, 1);
    assert_int_equal(s.status, PLAIT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_has_the_bits),
        cmocka_unit_test(test_state_is_found_again),
        cmocka_unit_test(test_unlocked),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
