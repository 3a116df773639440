/* The same model by every way: a small least-squares job, trained on threads by 1, 2 and 4 workers under each pair of
 * topology and consistency, with each update rule, on dense, keyed and sparse tables, beside a serial loop over the
 * bare rule that knows of no table. Under bsp the models agree up to the order of sums; under the stale policies they
 * come as near to the same loss. */
#include <math.h>
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

enum { EXAMPLES = 96, FEATURES = 6, BATCH = 24, CLOCKS = 40 };

typedef struct problem {
    int64_t  rows;
    uint64_t key[EXAMPLES][FEATURES]; /* strictly increasing */
    double   value[EXAMPLES][FEATURES], target[EXAMPLES];
} problem;

static void make_problem(problem *p, int64_t rows) {
    pli_random random = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)rows, 0);
    p->rows = rows;
    for (int i = 0; i < EXAMPLES; i++) {
        p->target[i] = 0;
        for (int k = 0; k < FEATURES; k++) {
            int64_t part = rows / FEATURES;
            /* few keys are often used, most seldom */
            uint64_t within = pli_random_below(&random, 1 + pli_random_below(&random, (uint64_t)part));
            p->key[i][k] = (uint64_t)(k * part) + within;
            p->value[i][k] = pli_random_normal(&random);
            p->target[i] += p->value[i][k] * ((double)(k + 1) / 4 + (double)(within % 3));
        }
    }
}

static double loss_of(const problem *p, const double *w) {
    double loss = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        double r = -p->target[i];
        for (int k = 0; k < FEATURES; k++) r += p->value[i][k] * w[p->key[i][k]];
        loss += r * r / (2 * EXAMPLES);
    }
    return loss;
}

typedef struct setting {
    const problem *problem;
    const char    *topology, *consistency, *filter;
    plait_rule_opts rule;
    plait_type     type;
    int            keyed, sparse;
    int32_t        workers, servers;
    double        *model; /* [rows]: filled by worker 0 */
} setting;

/* --- the serial loop ---------------------------------------------------------------------------------------------- */

/* A step touches all rows (dense), or only those with a gradient (keyed), and makes up for the penalties they
 * missed. */
static void serial(const setting *s, double *w) {
    const problem *p = s->problem;
    plait_rule_numbers rule;
    assert_int_equal(pli_rule_make(&s->rule, NULL, &rule, NULL), PLAIT_OK);
    double *g = calloc((size_t)p->rows, sizeof *g), *slot[2];
    int64_t *paid = calloc((size_t)p->rows, sizeof *paid);
    int     *touched = calloc((size_t)p->rows, sizeof *touched);
    for (int k = 0; k < 2; k++) slot[k] = calloc((size_t)p->rows, sizeof(double));
    memset(w, 0, (size_t)p->rows * sizeof *w);
    for (int64_t clock = 0; clock <= CLOCKS; clock++) {
        int     last = clock == CLOCKS;
        int64_t from = clock * BATCH % EXAMPLES;
        memset(g, 0, (size_t)p->rows * sizeof *g);
        memset(touched, 0, (size_t)p->rows * sizeof *touched);
        for (int64_t i = from; i < from + BATCH; i++)
            for (int k = 0; k < FEATURES; k++) touched[p->key[i][k]] = 1;
        for (int64_t j = 0; s->keyed && j < p->rows; j++) {
            double *at[2] = { &slot[0][j], &slot[1][j] };
            if ((!touched[j] && !last) || clock == paid[j]) continue;
            plait_step step = pli_rule_step(&rule, clock, 1, BATCH, 1);
            if (rule.l1 + rule.l2 > 0) rule.ops->catch_up_f64(&rule, &step, clock - paid[j], 1, &w[j], at, NULL);
            paid[j] = clock;
        }
        if (last) break;
        for (int64_t i = from; i < from + BATCH; i++) {
            double r = -p->target[i];
            for (int k = 0; k < FEATURES; k++) r += p->value[i][k] * w[p->key[i][k]];
            for (int k = 0; k < FEATURES; k++) g[p->key[i][k]] += r * p->value[i][k];
        }
        plait_step step = pli_rule_step(&rule, clock, BATCH, BATCH, 1);
        for (int64_t j = 0; j < p->rows; j++) {
            double *at[2] = { &slot[0][j], &slot[1][j] };
            if (s->keyed && !touched[j]) continue;
            rule.ops->apply_f64(&rule, &step, 1, &w[j], at, &g[j], NULL);
            paid[j] = clock + 1;
        }
    }
    free(g);
    free(paid);
    free(touched);
    for (int k = 0; k < 2; k++) free(slot[k]);
}

/* --- the same by a table ------------------------------------------------------------------------------------------ */

static double at(const setting *s, const void *values, int64_t i) {
    return s->type == PLAIT_F32 ? ((const float *)values)[i] : ((const double *)values)[i];
}

static void put(const setting *s, void *values, int64_t i, double x) {
    if (s->type == PLAIT_F32) ((float *)values)[i] = (float)x;
    else ((double *)values)[i] = x;
}

/* Trains on one example: reads its keys, pushes its gradient, counts one row. */
static plait_status one_example(const setting *s, plait_comm *comm, plait_table *table, int64_t i, const void *all) {
    const problem *p = s->problem;
    double         w[FEATURES], g[FEATURES], r = -p->target[i];
    if (all == NULL) CHECK(plait_table_get(table, FEATURES, p->key[i], w) == PLAIT_OK);
    for (int k = 0; k < FEATURES; k++)
        r += p->value[i][k] * (all != NULL ? at(s, all, (int64_t)p->key[i][k]) : at(s, w, k));
    for (int k = 0; k < FEATURES; k++) put(s, g, k, r * p->value[i][k]);
    CHECK(plait_table_inc(table, FEATURES, p->key[i], g, 1) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status keep_model(const setting *s, plait_comm *comm, plait_table *table) {
    int64_t   n;
    uint64_t *keys;
    void     *values;
    CHECK(plait_table_dump(table, &n, &keys, &values) == PLAIT_OK);
    for (int64_t i = 0; plait_comm_rank(comm) == 0 && i < n; i++) s->model[keys[i]] = at(s, values, i);
    CHECK(s->sparse || n == s->problem->rows);
    plait_comm_free(keys);
    plait_comm_free(values);
    return PLAIT_OK;
}

static plait_status train(plait_job *job, void *user) {
    const setting   *s = user;
    plait_comm      *comm = plait_job_comm(job);
    int32_t          me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    plait_table     *table = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.type = s->type;
    opts.rows = s->sparse ? 0 : s->problem->rows;
    opts.keyed = s->keyed;
    opts.rule = s->rule;
    PLI_TRY(plait_table_create(job, &opts, &table));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        const void *all = NULL;
        int64_t     from = clock * BATCH % EXAMPLES;
        CHECK(plait_job_clock_now(job) == clock);
        if (!s->keyed) CHECK(plait_table_read(table, 0, s->problem->rows, &all) == PLAIT_OK);
        for (int64_t i = from; i < from + BATCH; i++)
            if (i % workers == me) PLI_TRY(one_example(s, comm, table, i, all));
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    return keep_model(s, comm, table);
}

static void run(setting *s) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_error     err = { 0 };
    int64_t         live = pli_alloc_live();
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.transport = "threads";
    comm_opts.workers = s->workers;
    comm_opts.servers = s->servers;
    comm_opts.timeout_ns = UINT64_C(60) * 1000000000;
    job_opts.topology = s->topology;
    job_opts.consistency = s->consistency;
    job_opts.batch = BATCH;
    job_opts.filter = s->filter;
    memset(s->model, 0, (size_t)s->problem->rows * sizeof *s->model);
    if (plait_run(&comm_opts, &job_opts, train, s, &err) < 0)
        fail_msg("%s x %s, rule %s, %d+%d ranks: rank %d: %s", s->topology, s->consistency, s->rule.name, s->workers,
                 s->servers, err.rank, err.text);
    assert_int_equal(pli_alloc_live(), live);
}

static double distance(const double *a, const double *b, int64_t n) {
    double d = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) d += (a[i] - b[i]) * (a[i] - b[i]), norm += b[i] * b[i];
    return sqrt(d / norm);
}

static const char *const rules[] = { "sgd", "momentum", "adagrad", "adam", "ftrl" };
enum { RULES = 5 };

static void each_setting(const char *topology, const char *consistency, int stale) {
    static const struct {
        int keyed, sparse;
        int64_t rows;
        plait_type type;
    } tables[] = {
        { 0, 0, 60, PLAIT_F64 },   { 0, 0, 3000, PLAIT_F64 }, { 1, 0, 3000, PLAIT_F64 },
        { 1, 1, 3000, PLAIT_F64 }, { 1, 0, 3000, PLAIT_F32 },
    };
    static const int32_t ranks[][2] = { { 1, 0 }, { 2, 0 }, { 4, 0 }, { 3, 2 } };
    problem *p = malloc(sizeof *p);
    double  *expected = malloc(3000 * sizeof *expected), *model = malloc(3000 * sizeof *model);
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        make_problem(p, tables[t].rows);
        for (int r = 0; r < RULES * 2; r++) {
            if (stale && r % 2 == 0 && t > 0) continue; /* the same with a penalty says more */
            setting s = { .problem = p, .topology = topology, .consistency = consistency, .type = tables[t].type,
                          .keyed = tables[t].keyed, .sparse = tables[t].sparse, .model = model };
            plait_rule_opts_init(&s.rule);
            s.rule.name = rules[r / 2];
            if (r % 2 == 1) s.rule.l1 = 0.001, s.rule.l2 = 0.01;
            if (r / 2 == 0) s.rule.learning_rate = 0.1;
            if (r / 2 == 1) s.rule.learning_rate = 0.02;
            serial(&s, expected);
            for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
                if (ranks[k][1] > 0 && strcmp(topology, "ps") != 0) continue;
                s.workers = ranks[k][0];
                s.servers = ranks[k][1];
                run(&s);
                double far = distance(model, expected, p->rows), loss = loss_of(p, model);
                static const double zeros[3000];
                double start = loss_of(p, zeros);
                if (!stale && far > (s.type == PLAIT_F32 ? 1e-5 : 1e-10))
                    fail_msg("%s x %s, rule %s %d, table %d, %d+%d ranks: %g away", topology, consistency, s.rule.name,
                             r % 2, (int)t, s.workers, s.servers, far);
                /* with steps for single rows they are slow */
                double best = loss_of(p, expected), most = s.rule.name[0] == 'a' ? 1.0 : 0.6;
                if (stale && !(loss < best + most * (start - best)))
                    fail_msg("%s x %s, rule %s %d, table %d, %d+%d ranks: loss %g from %g, serial %g", topology,
                             consistency, s.rule.name, r % 2, (int)t, s.workers, s.servers, loss, start, best);
            }
        }
    }
    free(p);
    free(expected);
    free(model);
}

static void test_local_bsp(void **state) { (void)state; each_setting("local", "bsp", 0); }
static void test_ps_bsp(void **state) { (void)state; each_setting("ps", "bsp", 0); }
static void test_local_ssp(void **state) { (void)state; each_setting("local", "ssp:2", 1); }
static void test_ps_ssp(void **state) { (void)state; each_setting("ps", "ssp:2", 1); }
static void test_allreduce_bsp(void **state) { (void)state; each_setting("allreduce", "bsp", 0); }
static void test_allreduce_delay_0(void **state) { (void)state; each_setting("allreduce", "bounded-delay:0", 0); }
static void test_allreduce_delay(void **state) { (void)state; each_setting("allreduce", "bounded-delay:1", 1); }
static void test_local_async(void **state) { (void)state; each_setting("local", "async", 1); }
static void test_ps_async(void **state) { (void)state; each_setting("ps", "async", 1); }

/* --- copies that are averaged ------------------------------------------------------------------------------------- */

/* A round of one clock by plain steps is bsp; longer ones come about as far. */
static void test_local_sgd(void **state) {
    static const char *const topologies[] = { "ps", "allreduce", "hybrid" }, *const rounds[] = { "local-sgd:1",
                                                                                                 "local-sgd:3",
                                                                                                 "local-sgd:7" };
    static const double      zeros[3000];
    problem *p = malloc(sizeof *p);
    double  *expected = malloc(3000 * sizeof *expected), *model = malloc(3000 * sizeof *model);
    (void)state;
    make_problem(p, 3000);
    for (int i = 0; i < 3 * 3 * 3 * RULES; i++) {
        int     shape = i % 3, h = i / 3 % 3, t = i / 9 % 3, rule = i / 27; /* dense, keyed, sparse */
        setting s = { .problem = p, .topology = topologies[t], .consistency = rounds[h], .type = PLAIT_F64,
                      .keyed = shape > 0, .sparse = shape == 2, .model = model, .workers = 1 + i % 4,
                      .servers = t == 0 ? i % 3 : 0 };
        plait_rule_opts_init(&s.rule);
        s.rule.name = rules[rule];
        if (strcmp(s.rule.name, "ftrl") == 0) continue;
        if (rule < 2) s.rule.learning_rate = rule == 0 ? 0.1 : 0.02;
        if (h > 0 || rule > 0) s.rule.l1 = 0.001, s.rule.l2 = 0.01;
        serial(&s, expected);
        run(&s);
        double far = distance(model, expected, p->rows), loss = loss_of(p, model), start = loss_of(p, zeros),
               best = loss_of(p, expected);
        bool   same = h == 0 && rule == 0;
        double most = s.rule.name[0] == 'a' ? 1.0 : 0.6;
        if (same ? far > 1e-10 : !(loss < best + most * (start - best)))
            fail_msg("%s x %s, rule %s, shape %d, %d+%d ranks: %g away, loss %g from %g, serial %g", s.topology,
                     s.consistency, s.rule.name, shape, s.workers, s.servers, far, loss, start, best);
    }
    free(p);
    free(expected);
    free(model);
}

/* --- filters ------------------------------------------------------------------------------------------------------ */

static const struct filtered {
    const char *filter, *consistency, *rule;
    double      most; /* of the way from the start to the serial loop's loss may be left; 0: the model is the same
                         bits */
} filtered[] = {
    { "key-cache", "bsp", "adam", 0 },
    { "key-delta", "bsp", "ftrl", 0 },
    { "zstd", "bsp", "momentum", 0 },
    { "key-cache,key-delta,zstd", "bsp", "adagrad", 0 },
    { "key-cache,key-delta,zstd", "bounded-delay:0", "adagrad", 0 },
    { "fp16", "bsp", "adagrad", 0.001 },
    { "bf16,zstd", "bsp", "sgd", 0.005 },
    { "fixed16", "ssp:1", "sgd", 0.6 },
    { "key-cache,fixed8", "bsp", "adagrad", 0.02 },
    { "onebit", "bsp", "sgd", 0.2 },
    { "kkt,fixed16", "bsp", "adagrad", 0.005 },
    { "topk:0.2", "async", "sgd", 0.6 },
    { "significant:0.01,key-delta", "async", "sgd", 0.6 },
    { "randk:0.5,fp16", "async", "sgd", 0.6 },
};

static void test_filters(void **state) {
    static const double zeros[600];
    static double       expected[600], plain[600], model[600];
    problem            *p = malloc(sizeof *p);
    (void)state;
    make_problem(p, 600);
    for (size_t i = 0; i < sizeof filtered / sizeof *filtered; i++)
        for (int shape = 0; shape < 3; shape++) { /* dense, keyed, sparse */
            const struct filtered *f = &filtered[i];
            setting s = { .problem = p, .topology = "ps", .consistency = f->consistency, .type = PLAIT_F64,
                          .keyed = shape > 0, .sparse = shape == 2, .model = plain, .workers = 3, .servers = 2 };
            plait_rule_opts_init(&s.rule);
            s.rule.name = f->rule;
            s.rule.l1 = 0.001;
            if (f->rule[0] == 's') s.rule.learning_rate = 0.1;
            serial(&s, expected);
            if (f->most == 0) run(&s);
            s.filter = f->filter;
            s.model = model;
            run(&s);
            if (f->most == 0) assert_memory_equal(model, plain, sizeof model);
            double start = loss_of(p, zeros), best = loss_of(p, expected), loss = loss_of(p, model);
            if (f->most > 0 && !(loss < best + f->most * (start - best)))
                fail_msg("filter %s x %s, shape %d: loss %g from %g, serial %g", f->filter, f->consistency, shape, loss,
                         start, best);
        }
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_local_bsp),         cmocka_unit_test(test_ps_bsp),
        cmocka_unit_test(test_local_ssp),         cmocka_unit_test(test_ps_ssp),
        cmocka_unit_test(test_ps_async),          cmocka_unit_test(test_allreduce_bsp),
        cmocka_unit_test(test_allreduce_delay_0), cmocka_unit_test(test_allreduce_delay),
        cmocka_unit_test(test_local_async),       cmocka_unit_test(test_local_sgd),
        cmocka_unit_test(test_filters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
