/* Seeded random graphs have the same values, bit for bit, with all choices of passes and numbers of threads; and each
 * pass does its job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"
#include "graph/passes/passes.h"
#include "graph/session.h"

#include <cmocka.h>

#include <plait/ops.h>

#include "new_graph.h"

static plait_session *session_of(const plait_graph *g, const char *passes, int32_t threads) {
    plait_session_opts opts;
    plait_session     *s = NULL;
    plait_session_opts_init(&opts);
    opts.passes = passes;
    opts.threads = threads;
    assert_int_equal(plait_session_create(g, &opts, &s, NULL), PLAIT_OK);
    s->plan_opts.grain_ns = 100; /* so that small graphs have many tasks, and small nodes are shared */
    return s;
}

/* --- random graphs --------------------------------------------------------------------------------------------- */

enum { NODES = 60, FEEDS = 4, VARIABLES = 2, FETCHES = 12, BYTES = 1 << 20 };

typedef struct example {
    plait_graph *g;
    plait_feed   feeds[FEEDS];
    plait_value  fetch[FETCHES + VARIABLES];
    int32_t      n_fetches;
    plait_value  pool[NODES + 2 * FEEDS];
    int32_t      n_pool;
} example;

static const plait_shape shapes[] = {
    { 2, { 40, 30 } }, { 1, { 30 } }, { 2, { 40, 1 } }, { 0, { 0 } }, { 3, { 20, 40, 30 } }
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static plait_tensor random_tensor(pli_random *r, plait_type type) {
    plait_tensor  t = { .type = type, .shape = shapes[pli_random_below(r, SHAPES)] };
    const int64_t n = plait_shape_elements(&t.shape);
    t.data = malloc(pli_tensor_bytes(&t) + 1);
    for (int64_t i = 0; i < n; i++)
        pli_element_set(&t, i, type == PLAIT_I32 ? (double)pli_random_below(r, 9) : pli_random_normal(r));
    return t;
}

static plait_value any(const example *e, pli_random *r) { return e->pool[pli_random_below(r, (uint64_t)e->n_pool)]; }

static plait_value random_node(const example *e, pli_random *r) {
    static const char *const binary[] = { "add", "sub", "mul", "maximum" };
    static const char *const unary[] = {
        "neg", "sigmoid", "tanh", "relu", "square", "abs", "identity", "stop_gradient"
    };
    plait_graph       *g = e->g;
    const plait_value  a = any(e, r), b = any(e, r);
    const plait_tensor ta = plait_graph_describe(g, a), tb = plait_graph_describe(g, b);
    plait_shape        wide;
    const plait_value  pair[] = { a, b };
    const bool         wider =
        ta.type == tb.type && pli_broadcast(&ta.shape, &tb.shape, &wide) && plait_shape_elements(&wide) <= 24000;
    switch (pli_random_below(r, 16)) {
    case 0:
    case 6:
    case 7:
        return plait_graph_op(g, pli_type_is_float(ta.type) ? unary[pli_random_below(r, 8)] : "neg", &a, 1, NULL, 0);
    case 5: {
        const plait_value choice[] = { wider ? plait_op_2(g, "less", a, b) : PLAIT_NONE, b, a };
        return wider ? plait_graph_op(g, "where", choice, 3, NULL, 0) : PLAIT_NONE;
    }
    case 8: return pli_type_is_float(ta.type) ? plait_graph_op(g, "mean", &a, 1, NULL, 0) : PLAIT_NONE;
    case 9: {
        const int64_t    flat[] = { 30, 40 };
        const plait_attr to = { .name = "shape", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = flat };
        return plait_shape_elements(&ta.shape) == 1200 ? plait_graph_op(g, "reshape", &a, 1, &to, 1) : PLAIT_NONE;
    }
    case 1: return plait_graph_op(g, "ones_like", &a, 1, NULL, 0);
    case 2:
        return ta.shape.rank == tb.shape.rank && ta.type == tb.type &&
                       memcmp(&ta.shape, &tb.shape, sizeof(int32_t) + (size_t)ta.shape.rank * 8) == 0
                   ? plait_graph_op(g, "add_n", pair, 2, NULL, 0)
                   : PLAIT_NONE;
    case 3:
        return pli_broadcast(&ta.shape, &tb.shape, &wide) && wide.rank == ta.shape.rank &&
                       memcmp(wide.dim, ta.shape.dim, (size_t)wide.rank * 8) == 0
                   ? plait_op_2(g, "sum_like", a, b)
                   : PLAIT_NONE;
    case 4: {
        const plait_attr tb_on = { .name = "tb", .kind = PLAIT_ATTR_INT, .u.i = 1 };
        return ta.type == PLAIT_F32 && tb.type == PLAIT_F32 && ta.shape.rank == 2 && tb.shape.rank == 2 &&
                       ta.shape.dim[1] == 30 && tb.shape.dim[1] == 30
                   ? plait_graph_op(g, "matmul", pair, 2, &tb_on, 1)
                   : PLAIT_NONE;
    }
    default: return wider ? plait_op_2(g, binary[pli_random_below(r, 4)], a, b) : PLAIT_NONE;
    }
}

static void build(example *e, uint64_t seed) {
    static const plait_type types[] = { PLAIT_F32, PLAIT_F32, PLAIT_F64, PLAIT_BF16, PLAIT_I32 };
    pli_random              r = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    const plait_type        type = types[pli_random_below(&r, 5)];
    char                    name[16];
    *e = (example){ .g = new_graph() };
    for (int32_t i = 0; i < FEEDS; i++) {
        snprintf(name, sizeof name, "x%d", i);
        e->feeds[i].tensor = random_tensor(&r, type);
        e->feeds[i].value = e->pool[e->n_pool++] = plait_graph_placeholder(e->g, name, type, e->feeds[i].tensor.shape);
    }
    for (int32_t i = 0; i < VARIABLES; i++) {
        snprintf(name, sizeof name, "w%d", i);
        plait_tensor t = random_tensor(&r, type);
        e->pool[e->n_pool++] = plait_graph_variable(e->g, name, t);
        free(t.data);
    }
    e->pool[e->n_pool++] = plait_graph_scalar(e->g, type, 3);
    e->pool[e->n_pool++] = plait_graph_scalar(e->g, type, 3);
    while (e->n_pool < NODES) {
        const plait_value v = random_node(e, &r);
        if (v >= 0) e->pool[e->n_pool++] = v;
    }
    for (int32_t i = 0; i < FETCHES; i++) e->fetch[e->n_fetches++] = i < 4 ? e->pool[e->n_pool - 1 - i] : any(e, &r);
    for (int32_t i = 0; i < VARIABLES; i++) {
        const plait_value  w = plait_graph_find(e->g, i == 0 ? "w0" : "w1"), x = any(e, &r);
        const plait_tensor tw = plait_graph_describe(e->g, w), tx = plait_graph_describe(e->g, x);
        plait_shape        wide;
        if (pli_broadcast(&tw.shape, &tx.shape, &wide))
            e->fetch[e->n_fetches++] =
                plait_op_2(e->g, "inc", w, plait_op_2(e->g, "sum_like", plait_op_2(e->g, "add", x, w), w));
    }
    plait_error err;
    if (plait_graph_check(e->g, &err) != PLAIT_OK) fail_msg("%s", err.text);
}

/* A hash of all values and variables after two runs; the second shows values that the first has left in memory. */
static uint64_t values_of(const example *e, const char *passes, int32_t threads) {
    static unsigned char memory[FETCHES + VARIABLES][BYTES / 4];
    plait_session       *s = session_of(e->g, passes, threads);
    plait_fetch          fetches[FETCHES + VARIABLES];
    uint64_t             h = 0;
    for (int round = 0; round < 2; round++) {
        plait_error err = { .code = PLAIT_OK };
        for (int32_t i = 0; i < e->n_fetches; i++)
            fetches[i] =
                (plait_fetch){ .value = e->fetch[i], .tensor = { .data = memory[i] }, .bytes = sizeof memory[i] };
        if (plait_session_run(s, e->feeds, FEEDS, fetches, e->n_fetches, NULL, 0, &err) != PLAIT_OK)
            fail_msg("%s", err.text);
        for (int32_t i = 0; i < e->n_fetches; i++)
            h = pli_hash_bytes(memory[i], pli_tensor_bytes(&fetches[i].tensor), h);
    }
    for (int32_t k = 0; k < VARIABLES; k++) {
        const plait_tensor t = plait_graph_variable_initial(e->g, k);
        assert_int_equal(plait_session_variable(s, k, memory[0], NULL), PLAIT_OK);
        h = pli_hash_bytes(memory[0], pli_tensor_bytes(&t), h);
    }
    plait_session_destroy(&s);
    return h;
}

static void test_passes_and_threads_change_no_bit(void **state) {
    (void)state;
    static const char *const choices[] = { "fold",       "merge",       "fuse",         "memory",
                                           "merge,fuse", "fuse,memory", "merge,memory", NULL };
    const uint64_t           seeds = getenv("PLAIT_TEST_FULL") != NULL ? 500 : 15;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        example e;
        build(&e, seed);
        const uint64_t plain = values_of(&e, "none", 1);
        for (size_t c = 0; c < sizeof choices / sizeof *choices; c++)
            if (values_of(&e, choices[c], 1) != plain)
                fail_msg("seed %llu: other values with passes %s", (unsigned long long)seed, choices[c]);
        for (int32_t threads = 2; threads <= 4; threads++) {
            if (values_of(&e, NULL, threads) != plain)
                fail_msg("seed %llu: other values with %d threads", (unsigned long long)seed, threads);
            if (values_of(&e, "memory", threads) != plain)
                fail_msg("seed %llu: other values with %d threads, memory alone", (unsigned long long)seed, threads);
        }
        for (int32_t i = 0; i < FEEDS; i++) free(e.feeds[i].tensor.data);
        plait_graph_destroy(&e.g);
    }
}

/* --- the job of each pass
 * ------------------------------------------------------------------------------------------ */

typedef struct made {
    int64_t nodes;
    size_t  bytes;
} made;

static made plan_of(const plait_graph *g, plait_value fetched, const char *passes) {
    plait_session     *s = session_of(g, passes, 1);
    plait_fetch        fetch = { .value = fetched, .tensor = { .data = &fetch } };
    const pli_plan_key key = { .fetches = &fetch, .n_fetches = 1 };
    pli_plan          *p = NULL;
    plait_error        err = { .code = PLAIT_OK };
    if (pli_plan_create(g, &key, &s->plan_opts, &p, &err) != PLAIT_OK) fail_msg("%s", err.text);
    const made m = { .nodes = p->n_nodes, .bytes = p->block_bytes };
    pli_plan_destroy(&p);
    plait_session_destroy(&s);
    return m;
}

static void test_fold(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  two = plait_graph_scalar(g, PLAIT_F32, 2),
                w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(9), NULL));
    plait_value c = plait_op_2(g, "mul", plait_op_2(g, "add", two, two),
                               plait_graph_op(g, "ones_like", &w, 1, NULL, 0)),
                y = plait_op_2(g, "add", c, w);
    assert_int_equal(plan_of(g, y, "none").nodes, 5); /* add, ones_like, mul, variable, add */
    assert_int_equal(plan_of(g, y, "fold").nodes, 2);
    assert_int_equal(plan_of(g, c, "fold").nodes, 0);
    plait_graph_destroy(&g);
}

static void test_merge(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(9), NULL));
    plait_value  a = plait_op_2(g, "mul", w, plait_graph_scalar(g, PLAIT_F32, 2)),
                b = plait_op_2(g, "mul", w, plait_graph_scalar(g, PLAIT_F32, 2));
    plait_value y = plait_op_2(g, "add", plait_op_2(g, "sub", a, w), plait_op_2(g, "sub", b, w));
    assert_int_equal(plan_of(g, y, "none").nodes, 6);
    assert_int_equal(plan_of(g, y, "merge").nodes, 4);
    plait_value       v = plait_graph_variable(g, "v", plait_tensor_of(PLAIT_F32, plait_shape_2(3, 3), NULL));
    const plait_attr  turned = { .name = "tb", .kind = PLAIT_ATTR_INT, .u.i = 1 };
    const plait_value pair[] = { v, v };
    y = plait_op_2(g, "add", plait_op_2(g, "matmul", v, v),
                   plait_graph_op(g, "matmul", pair, 2, &turned, 1)); /* not the same */
    assert_int_equal(plan_of(g, y, "merge").nodes, 4);
    plait_graph_destroy(&g);
}

/* A diamond and a chain of the same shape become one node, even if other nodes read a value in the middle. */
static void test_fuse(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_2(30, 30), NULL));
    plait_value  a = plait_op_2(g, "add", w, w), b = plait_op_2(g, "mul", a, w), c = plait_op_2(g, "sub", a, w),
                d = plait_op_2(g, "mul", b, c);
    plait_value  m = plait_op_2(g, "matmul", d, w), y = plait_op_2(g, "add", plait_op_2(g, "mul", m, d), d);
    assert_int_equal(plan_of(g, d, "fuse").nodes, 2);
    assert_int_equal(plan_of(g, y, "none").nodes, 8);
    assert_int_equal(plan_of(g, y, "fuse").nodes, 3);               /* variable, fused, matmul with what follows */
    y = plait_op_2(g, "add", plait_op_2(g, "mul", m, d), plait_op_2(g, "matmul", m, w)); /* m has another reader, too */
    assert_int_equal(plan_of(g, y, "fuse").nodes, 4); /* variable, fused, matmul, matmul with mul and add */
    y = plait_graph_op(g, "cast", &m, 1, &(plait_attr){ .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = PLAIT_I32 }, 1);
    assert_int_equal(plan_of(g, y, "fuse").nodes, 4); /* a kernel cannot be an epilogue */
    plait_graph_destroy(&g);
}

static void test_memory(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_2(16, 16), NULL)), y = w;
    for (int i = 0; i < 10; i++) y = plait_op_2(g, "matmul", y, w);
    assert_int_equal(plan_of(g, y, "none").bytes, 10 * 1024);
    assert_int_equal(plan_of(g, y, "memory").bytes, 2 * 1024); /* one is read while the other is written */
    for (int i = 0; i < 10; i++) y = plait_op_2(g, "add", y, w);
    assert_int_equal(plan_of(g, y, "memory").bytes, 2 * 1024); /* in place */
    plait_graph_destroy(&g);
}

/* A store that records its calls. */
typedef struct spy {
    char  text[256];
    float values[6];
} spy;

static plait_status spy_expect(void *user, int32_t n, const int32_t *variables, plait_error *err) {
    (void)err;
    spy *s = user;
    strcat(s->text, "expect");
    for (int32_t i = 0; i < n; i++) snprintf(s->text + strlen(s->text), 16, " %d", variables[i]);
    return PLAIT_OK;
}
static plait_status spy_get(void *user, int32_t variable, const void **values_out, plait_error *err) {
    (void)err;
    spy *s = user;
    snprintf(s->text + strlen(s->text), 16, ", get %d", variable);
    *values_out = s->values;
    return PLAIT_OK;
}
static plait_status spy_get_rows(void *user, int32_t variable, int64_t n, const int64_t *rows, void *values,
                                 plait_error *err) {
    (void)rows;
    (void)err;
    memset(values, 0, (size_t)n * 2 * sizeof(float));
    snprintf(((spy *)user)->text + strlen(((spy *)user)->text), 32, ", get %lld rows of %d", (long long)n, variable);
    return PLAIT_OK;
}
static plait_status spy_inc(void *user, int32_t variable, const void *delta, plait_error *err) {
    (void)delta;
    (void)err;
    snprintf(((spy *)user)->text + strlen(((spy *)user)->text), 16, ", inc %d", variable);
    return PLAIT_OK;
}
static plait_status spy_inc_rows(void *user, int32_t variable, int64_t n, const int64_t *rows, const void *delta,
                                 plait_error *err) {
    (void)err;
    const float *d = delta;
    snprintf(((spy *)user)->text + strlen(((spy *)user)->text), 64, ", inc %lld rows of %d, last %lld by %g",
             (long long)n, variable, (long long)rows[n - 1], (double)d[2 * n - 1]);
    return PLAIT_OK;
}
static plait_status spy_end(void *user, plait_status how, plait_error *err) {
    (void)err;
    snprintf(((spy *)user)->text + strlen(((spy *)user)->text), 16, ", end %d", (int)how);
    return PLAIT_OK;
}

static void assert_calls(const plait_graph *g, const char *passes, const plait_feed *feeds, int32_t n_feeds,
                         plait_fetch *fetches, int32_t n_fetches, const char *want) {
    spy                told = { .text = "" };
    const plait_store   store = { .user = &told,
                                  .expect = spy_expect,
                                  .get = spy_get,
                                  .get_rows = spy_get_rows,
                                  .inc = spy_inc,
                                  .inc_rows = spy_inc_rows,
                                  .end = spy_end };
    plait_session_opts opts;
    plait_variable_info info;
    plait_session     *s = NULL;
    plait_error        err = { .code = PLAIT_OK };
    plait_session_opts_init(&opts);
    opts.store = &store;
    opts.passes = passes;
    opts.threads = 1;
    assert_int_equal(plait_session_create(g, &opts, &s, NULL), PLAIT_OK);
    if (plait_session_run(s, feeds, n_feeds, fetches, n_fetches, NULL, 0, &err) != PLAIT_OK) fail_msg("%s", err.text);
    assert_string_equal(told.text, want);
    assert_int_equal(plait_session_variable_info(s, 0, &info, NULL), PLAIT_OK);
    assert_string_equal(info.owner, "store");
    plait_session_destroy(&s);
}

/* Gets come in the order of their first use; an inc comes as soon as its delta is computed and all gets of its variable
 * are done. */
static void test_the_order_of_a_store(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  w[3];
    for (int k = 0; k < 3; k++)
        w[k] = plait_graph_variable(g,
                                    k == 0   ? "a"
                                    : k == 1 ? "b"
                                             : "c",
                                    plait_tensor_of(PLAIT_F32, plait_shape_1(2), NULL));
    plait_value h = plait_op_2(g, "add", w[2], w[2]), i = plait_op_2(g, "mul", h, w[0]),
                y = plait_op_2(g, "mul", i, w[1]);
    plait_fetch fetches[] = { { .value = plait_op_2(g, "inc", w[0], h) },
                              { .value = plait_op_2(g, "inc", w[1], i) },
                              { .value = plait_op_2(g, "inc", w[2], h) },
                              { .value = y } };
    assert_calls(g, "none", NULL, 0, fetches, 4, "expect 2 0 1, get 2, inc 2, get 0, inc 0, get 1, inc 1, end 0");
    plait_graph_destroy(&g);
}

static void test_sparse(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_2(3, 2), NULL)), d;
    plait_value  at = plait_graph_placeholder(g, "at", PLAIT_I64, plait_shape_1(PLAIT_ANY)),
                at2 = plait_graph_placeholder(g, "at2", PLAIT_I64, plait_shape_2(1, 1));
    plait_value r = plait_op_2(g, "get_rows", w, at), y = plait_op_2(g, "add", r, plait_op_2(g, "get_rows", w, at2));
    const int64_t    ats[] = { 2, 0 };
    const plait_feed feeds[] = { { at, plait_tensor_of(PLAIT_I64, plait_shape_1(2), ats) },
                                 { at2, plait_tensor_of(PLAIT_I64, plait_shape_2(1, 1), ats) } };
    assert_int_equal(plait_graph_gradients(g, r, 1, &w, &d), PLAIT_OK);
    plait_fetch one = { .value = plait_op_2(g, "inc", w, d) };
    assert_calls(g, "sparse", feeds, 1, &one, 1, ", inc 2 rows of 0, last 0 by 1, end 0");
    assert_calls(g, "none", feeds, 1, &one, 1, ", inc 0, end 0");
    assert_int_equal(plait_graph_gradients(g, y, 1, &w, &d), PLAIT_OK);
    one.value = plait_op_2(g, "inc", w, d);
    assert_calls(g, NULL, feeds, 2, &one, 1, ", inc 3 rows of 0, last 2 by 2, end 0");
    plait_graph_destroy(&g);
}

static void test_unknown_passes_are_refused(void **state) {
    (void)state;
    plait_graph       *g = new_graph();
    plait_session     *s = NULL;
    plait_session_opts opts;
    plait_error        err;
    plait_session_opts_init(&opts);
    opts.passes = "fold,fuze";
    assert_int_equal(plait_session_create(g, &opts, &s, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "did you mean 'fuse'"));
    plait_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_fuse),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_the_order_of_a_store),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_unknown_passes_are_refused),
        cmocka_unit_test(test_passes_and_threads_change_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
