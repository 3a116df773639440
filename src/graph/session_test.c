/* Tests of runs: values computed by hand, broadcasting, partial runs, variables in the session's memory and in the
 * test's own store, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"
#include "graph/session.h"

#include <cmocka.h>

#include <plait/ops.h>

#include "new_graph.h"

static plait_session *session_of(const plait_graph *g, const plait_session_opts *opts) {
    plait_session *s = NULL;
    plait_error    err = { .code = PLAIT_OK };
    if (plait_session_create(g, opts, &s, &err) != PLAIT_OK) fail_msg("%s", err.text);
    return s;
}

static plait_value input(plait_graph *g, const char *name, plait_shape shape) {
    return plait_graph_placeholder(g, name, PLAIT_F32, shape);
}

static plait_feed feed(plait_value value, plait_type type, plait_shape shape, const void *data) {
    return (plait_feed){ value, plait_tensor_of(type, shape, data) };
}

static plait_fetch fetch(plait_value value, void *data, size_t bytes) {
    return (plait_fetch){ .value = value, .tensor = { .data = data }, .bytes = bytes };
}

static void run(plait_session *s, const plait_feed *feeds, int32_t n_feeds, plait_fetch *fetches, int32_t n_fetches) {
    plait_error err = { .code = PLAIT_OK };
    if (plait_session_run(s, feeds, n_feeds, fetches, n_fetches, NULL, 0, &err) != PLAIT_OK) fail_msg("%s", err.text);
}

static void refused(plait_session *s, const plait_feed *feeds, int32_t n_feeds, plait_fetch *fetches, int32_t n_fetches,
                    plait_status code, const char *part) {
    plait_error err = { .code = PLAIT_OK };
    assert_int_equal(plait_session_run(s, feeds, n_feeds, fetches, n_fetches, NULL, 0, &err), code);
    if (strstr(err.text, part) == NULL) fail_msg("'%s' does not say '%s'", err.text, part);
}

/* --- values ---------------------------------------------------------------------------------------------------- */

static void test_a_small_graph(void **state) {
    (void)state;
    plait_graph   *g = new_graph();
    plait_value    x = input(g, "x", plait_shape_2(PLAIT_ANY, 2)), b = input(g, "b", plait_shape_1(2));
    plait_value    y = plait_op_2(g, "mul", plait_op_2(g, "add", x, b), plait_graph_scalar(g, PLAIT_F32, 10));
    plait_session *s = session_of(g, NULL);
    const float    xs[] = { 1, 2, 3, 4, 5, 6 }, bs[] = { 100, 200 };
    for (int64_t rows = 3; rows >= 0; rows--) {
        const plait_feed feeds[] = { feed(x, PLAIT_F32, plait_shape_2(rows, 2), xs),
                                     feed(b, PLAIT_F32, plait_shape_1(2), bs) };
        float            ys[6] = { 0 };
        plait_fetch      f = fetch(y, ys, sizeof ys);
        run(s, feeds, 2, &f, 1);
        assert_int_equal(f.tensor.type, PLAIT_F32);
        assert_int_equal(f.tensor.shape.rank, 2);
        assert_int_equal(f.tensor.shape.dim[0], rows);
        for (int64_t i = 0; i < 6; i++) assert_true(ys[i] == (i < 2 * rows ? 10 * (xs[i] + bs[i % 2]) : 0));
    }
    plait_session_destroy(&s);
    assert_null(s);
    plait_graph_destroy(&g);
}

enum { BIG = 3 * 5 * 7 * 401 };

/* Compares an elementwise op on shapes that broadcast with a plain computation by indices. */
static void check_broadcast(plait_shape sa, plait_shape sb, plait_type type) {
    static union {
        float    f[BIG];
        uint16_t h[BIG];
    } a, b, y;
    plait_graph *g = new_graph();
    plait_value  va = plait_graph_placeholder(g, "a", type, sa), vb = plait_graph_placeholder(g, "b", type, sb),
                vy = plait_op_2(g, "sub", va, vb);
    plait_session     *s = session_of(g, NULL);
    const plait_tensor ta = plait_tensor_of(type, sa, &a), tb = plait_tensor_of(type, sb, &b);
    for (int64_t i = 0; i < plait_shape_elements(&sa); i++) pli_element_set(&ta, i, (double)(i % 113));
    for (int64_t i = 0; i < plait_shape_elements(&sb); i++) pli_element_set(&tb, i, (double)(3 * i % 17));
    const plait_feed feeds[] = { { va, ta }, { vb, tb } };
    plait_fetch      f = fetch(vy, &y, sizeof y);
    run(s, feeds, 2, &f, 1);
    const plait_shape *shape = &f.tensor.shape;
    int64_t            own[PLAIT_RANK_MAX], by_a[PLAIT_RANK_MAX], by_b[PLAIT_RANK_MAX];
    pli_strides(shape, own);
    pli_broadcast_strides(&sa, shape, by_a);
    pli_broadcast_strides(&sb, shape, by_b);
    for (int64_t i = 0; i < plait_shape_elements(shape); i++) {
        int64_t at_a = 0, at_b = 0;
        for (int32_t k = 0; k < shape->rank; k++) {
            at_a += i / own[k] % shape->dim[k] * by_a[k];
            at_b += i / own[k] % shape->dim[k] * by_b[k];
        }
        if (pli_element(&f.tensor, i) != (double)(at_a % 113) - (double)(3 * at_b % 17))
            fail_msg("element %lld", (long long)i);
    }
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static void test_broadcasting(void **state) {
    (void)state;
    const plait_shape all = { 4, { 3, 5, 7, 401 } };
    const plait_shape shapes[] = { all,
                                   { 0, { 0 } },
                                   { 1, { 401 } },
                                   { 1, { 1 } },
                                   { 2, { 7, 1 } },
                                   { 4, { 3, 1, 7, 1 } },
                                   { 4, { 1, 5, 1, 401 } },
                                   { 4, { 3, 5, 1, 1 } },
                                   { 4, { 1, 1, 1, 1 } },
                                   { 3, { 5, 7, 401 } } };
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        check_broadcast(all, shapes[k], PLAIT_F32);
        check_broadcast(shapes[k], all, PLAIT_BF16);
        check_broadcast(shapes[k], shapes[(k + 3) % 10], PLAIT_F32);
    }
}

static void test_a_product_and_its_gradient(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", plait_shape_2(2, 3)), w = input(g, "w", plait_shape_2(3, 1)),
                y = plait_op_2(g, "matmul", x, w), d[2];
    const plait_value by[] = { x, w };
    assert_int_equal(plait_graph_gradients(g, y, 2, by, d), PLAIT_OK);
    plait_session   *s = session_of(g, NULL);
    const float      xs[] = { 1, 2, 3, 4, 5, 6 }, ws[] = { 7, 8, 9 };
    float            ys[2], dx[6], dw[3];
    const plait_feed feeds[] = { feed(x, PLAIT_F32, plait_shape_2(2, 3), xs),
                                 feed(w, PLAIT_F32, plait_shape_2(3, 1), ws) };
    plait_fetch      fetches[] = { fetch(y, ys, sizeof ys), fetch(d[0], dx, sizeof dx), fetch(d[1], dw, sizeof dw) };
    run(s, feeds, 2, fetches, 3);
    assert_true(ys[0] == 50 && ys[1] == 122);
    for (int i = 0; i < 6; i++) assert_true(dx[i] == ws[i % 3]);
    for (int i = 0; i < 3; i++) assert_true(dw[i] == xs[i] + xs[i + 3]);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

/* --- partial runs ---------------------------------------------------------------------------------------------- */

static void test_any_value_may_be_fed(void **state) {
    (void)state;
    plait_graph   *g = new_graph();
    plait_value    x = input(g, "x", plait_shape_1(2)), h = plait_op_2(g, "add", x, x), y = plait_op_2(g, "mul", h, h);
    plait_session *s = session_of(g, NULL);
    const float    hs[] = { 3, 4 };
    float          ys[2];
    plait_feed     by_h = feed(h, PLAIT_F32, plait_shape_1(2), hs), by_x = feed(x, PLAIT_F32, plait_shape_1(2), hs);
    plait_fetch    f = fetch(y, ys, sizeof ys);
    run(s, &by_h, 1, &f, 1);
    assert_true(ys[0] == 9 && ys[1] == 16);
    plait_error err = { .code = PLAIT_OK };
    assert_int_equal(plait_session_run(s, &by_x, 1, &f, 1, &h, 1, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "is needed but excluded"));
    assert_int_equal(plait_session_run(s, &by_h, 1, &f, 1, &h, 1, &err), PLAIT_OK);
    run(s, &by_x, 1, &f, 1);
    assert_true(ys[0] == 36 && ys[1] == 64);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static void test_shapes_alone_need_no_values(void **state) {
    (void)state;
    plait_graph   *g = new_graph();
    plait_value    x = input(g, "x", plait_shape_1(3)), o = plait_graph_op(g, "ones_like", &x, 1, NULL, 0);
    plait_session *s = session_of(g, NULL);
    float          ys[3];
    plait_fetch    f = fetch(o, ys, sizeof ys);
    run(s, NULL, 0, &f, 1);
    assert_true(ys[0] == 1 && ys[2] == 1);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

/* --- variables ------------------------------------------------------------------------------------------------- */

static void test_all_gets_of_a_run_see_what_was_before(void **state) {
    (void)state;
    plait_graph   *g = new_graph();
    const float    start[] = { 1, 2 };
    plait_value    w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(2), start));
    plait_value    i1 = plait_op_2(g, "inc", w, w), later = plait_op_2(g, "add", w, w),
                i2 = plait_op_2(g, "inc", w, later);
    plait_session *s = session_of(g, NULL);
    float          ws[2], ls[2];
    plait_fetch    fetches[] = { fetch(i1, NULL, 0), fetch(i2, NULL, 0), fetch(later, ls, sizeof ls),
                                 fetch(w, ws, sizeof ws) };
    run(s, NULL, 0, fetches, 4);
    assert_true(ls[0] == 2 && ls[1] == 4 && ws[0] == 1 && ws[1] == 2);
    assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
    assert_true(ws[0] == 4 && ws[1] == 8);
    run(s, NULL, 0, fetches + 2, 1); /* no inc was fetched */
    assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
    assert_true(ws[0] == 4 && ws[1] == 8);
    assert_int_equal(plait_session_run(s, NULL, 0, fetches, 2, &i2, 1, NULL), PLAIT_OK); /* i2 is left out */
    assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
    assert_true(ws[0] == 8 && ws[1] == 16);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static void test_rows(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    const float  start[] = { 1, 2, 3, 4, 5, 6 };
    plait_value  w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_2(3, 2), start));
    plait_value  at = plait_graph_placeholder(g, "at", PLAIT_I64, plait_shape_1(PLAIT_ANY)),
                rows = plait_op_2(g, "get_rows", w, at);
    const plait_value in[] = { w, at, rows };
    plait_value       push = plait_graph_op(g, "inc_rows", in, 3, NULL, 0);
    plait_session    *s = session_of(g, NULL);
    int64_t           ats[] = { 2, 0, 2 };
    float             rs[6], ws[6];
    uint8_t           done = 0;
    const plait_feed  f = feed(at, PLAIT_I64, plait_shape_1(3), ats);
    plait_fetch       fetches[] = { fetch(rows, rs, sizeof rs), fetch(push, &done, 1) };
    run(s, &f, 1, fetches, 2);
    const float want_r[] = { 5, 6, 1, 2, 5, 6 }, want_w[] = { 2, 4, 3, 4, 15, 18 };
    assert_memory_equal(rs, want_r, sizeof rs);
    assert_int_equal(done, 1);
    assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
    assert_memory_equal(ws, want_w, sizeof ws);
    ats[1] = 3;
    refused(s, &f, 1, fetches, 2, PLAIT_EINVAL, "get_rows#2: row 3 of variable 'w', which has 3");
    assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
    assert_memory_equal(ws, want_w, sizeof ws);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static void test_rows_of_a_fed_variable_are_the_feeds(void **state) {
    (void)state;
    plait_graph      *g = new_graph();
    const float       start[] = { 1, 2, 3 }, fed[] = { 10, 20, 30 };
    const int64_t     at[] = { 2, 0 };
    plait_value       w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(3), start));
    plait_value       i = plait_graph_placeholder(g, "i", PLAIT_I64, plait_shape_1(2)),
                rows = plait_op_2(g, "get_rows", w, i);
    plait_session    *s = session_of(g, NULL);
    float             rs[2];
    const plait_feed  feeds[] = { feed(i, PLAIT_I64, plait_shape_1(2), at), feed(w, PLAIT_F32, plait_shape_1(3), fed) };
    plait_fetch       f = fetch(rows, rs, sizeof rs);
    run(s, feeds, 2, &f, 1);
    assert_true(rs[0] == 30 && rs[1] == 10);
    run(s, feeds, 1, &f, 1);
    assert_true(rs[0] == 3 && rs[1] == 1);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static void test_the_graph_may_grow(void **state) {
    (void)state;
    plait_graph   *g = new_graph();
    plait_session *s = session_of(g, NULL);
    plait_value    w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(2), NULL));
    float          ws[2] = { 1, 1 };
    plait_fetch    f = fetch(w, ws, sizeof ws);
    run(s, NULL, 0, &f, 1);
    assert_true(ws[0] == 0 && ws[1] == 0);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static plait_variable_info info_of(plait_session *s, int32_t k) {
    plait_variable_info info;
    plait_error         err = { .code = PLAIT_OK };
    if (plait_session_variable_info(s, k, &info, &err) != PLAIT_OK) fail_msg("%s", err.text);
    return info;
}

static void assert_uses(plait_session *s, int32_t k, int64_t version, int64_t last_get, int64_t last_inc) {
    const plait_variable_info info = info_of(s, k);
    assert_int_equal(info.version, version);
    assert_int_equal(info.last_get, last_get);
    assert_int_equal(info.last_inc, last_inc);
}

/* Three variables: one is got whole, rows are got of another, and the last is added after the session was made. */
static void test_what_is_known_of_variables(void **state) {
    (void)state;
    plait_graph      *g = new_graph();
    plait_value       w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F64, plait_shape_1(2), NULL));
    plait_value       r = plait_graph_variable(g, "r", plait_tensor_of(PLAIT_F32, plait_shape_2(3, 2), NULL));
    plait_value       at = plait_graph_placeholder(g, "at", PLAIT_I64, plait_shape_1(1));
    plait_value       rows = plait_op_2(g, "get_rows", r, at);
    plait_value       ones = plait_graph_op(g, "ones_like", &w, 1, NULL, 0);
    const plait_value in[] = { r, at, plait_graph_op(g, "ones_like", &rows, 1, NULL, 0) };
    plait_value       push = plait_graph_op(g, "inc_rows", in, 3, NULL, 0);
    plait_session    *s = session_of(g, NULL);
    int64_t           ats[] = { 1 };
    double            ws[2];
    float             rs[6];
    const plait_feed  f = feed(at, PLAIT_I64, plait_shape_1(1), ats);
    plait_fetch       get_w = fetch(w, ws, sizeof ws), get_r = fetch(rows, rs, sizeof rs);
    plait_fetch       twice[] = { fetch(plait_op_2(g, "inc", w, ones), NULL, 0),
                                  fetch(plait_op_2(g, "inc", w, plait_op_2(g, "add", w, ones)), NULL, 0) };
    plait_fetch       both[] = { get_w, fetch(push, NULL, 0) };
    assert_uses(s, 0, 0, 0, 0);
    const plait_variable_info info = info_of(s, 1);
    assert_string_equal(info.name, "r");
    assert_string_equal(info.owner, "session");
    assert_true(info.type == PLAIT_F32 && info.shape.rank == 2 && info.shape.dim[0] == 3 && info.shape.dim[1] == 2);
    run(s, NULL, 0, &get_w, 1); /* run 1 */
    assert_uses(s, 0, 0, 1, 0);
    run(s, NULL, 0, twice, 2); /* 2: two incs, one of which also gets */
    assert_uses(s, 0, 2, 2, 2);
    run(s, NULL, 0, twice, 1); /* 3: needs w's shape alone */
    assert_uses(s, 0, 3, 2, 3);
    assert_uses(s, 1, 0, 0, 0);
    run(s, &f, 1, both, 2); /* 4 */
    assert_uses(s, 0, 3, 4, 3);
    assert_uses(s, 1, 1, 0, 4);
    run(s, &f, 1, &get_r, 1); /* 5 */
    assert_uses(s, 1, 1, 5, 4);
    ats[0] = 3;
    refused(s, &f, 1, both, 2, PLAIT_EINVAL, "row 3"); /* 6: a run that fails does not count */
    assert_uses(s, 0, 3, 4, 3);
    assert_uses(s, 1, 1, 5, 4);
    const plait_feed fed = feed(w, PLAIT_F64, plait_shape_1(2), ws);
    run(s, &fed, 1, &get_w, 1); /* 7: a variable that is fed is not got */
    assert_uses(s, 0, 3, 4, 3);
    assert_int_equal(plait_session_set_variable(s, 0, ws, NULL), PLAIT_OK);
    assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK); /* this does not count as a run */
    assert_uses(s, 0, 4, 4, 3);
    plait_value late = plait_graph_variable(g, "late", plait_tensor_of(PLAIT_F64, plait_shape_1(2), NULL));
    assert_uses(s, 2, 0, 0, 0);
    assert_int_equal(plait_session_set_variable(s, 2, ws, NULL), PLAIT_OK);
    assert_uses(s, 2, 1, 0, 0);
    plait_fetch get_late = fetch(late, ws, sizeof ws);
    run(s, NULL, 0, &get_late, 1); /* 8 */
    assert_uses(s, 2, 1, 8, 0);
    plait_variable_info none;
    plait_error         err = { .code = PLAIT_OK };
    assert_int_equal(plait_session_variable_info(s, 3, &none, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "there is no variable 3"));
    assert_int_equal(plait_session_variable_info(s, 0, NULL, NULL), PLAIT_EINVAL);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

/* A variable that no run gets or changes takes no memory: this one would not fit into any memory. */
static void test_what_nobody_needs_takes_no_memory(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_graph_variable(g, "huge", plait_tensor_of(PLAIT_F32, plait_shape_1(INT64_C(1) << 45), NULL));
    plait_value    w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(1), NULL));
    plait_session *s = session_of(g, NULL);
    float          ws = 1;
    plait_fetch    f = fetch(w, &ws, sizeof ws);
    run(s, NULL, 0, &f, 1);
    assert_true(ws == 0);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

/* --- refusals -------------------------------------------------------------------------------------------------- */

static void test_refusals(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", plait_shape_2(PLAIT_ANY, 2)),
                at = plait_graph_placeholder(g, "at", PLAIT_I64, plait_shape_1(1));
    plait_value      y = plait_graph_name(g, plait_op_2(g, "gather", x, at), "y");
    plait_session   *s = session_of(g, NULL);
    const float      xs[] = { 1, 2, 3, 4 };
    const int64_t    ats[] = { 2 };
    float            ys[2];
    plait_fetch      f = fetch(y, ys, sizeof ys), small = fetch(y, ys, 4), none = fetch(99, ys, 4);
    const plait_feed good[] = { feed(x, PLAIT_F32, plait_shape_2(2, 2), xs),
                                feed(at, PLAIT_I64, plait_shape_1(1), ats) };
    const plait_feed wide[] = { feed(x, PLAIT_F32, plait_shape_2(2, 3), xs), good[1] };
    const plait_feed typed[] = { feed(x, PLAIT_F64, plait_shape_2(2, 2), xs), good[1] };
    const plait_feed twice[] = { good[0], good[0] };
    const plait_feed nowhere[] = { feed(x, PLAIT_F32, plait_shape_2(2, 2), NULL), good[1] };
    const plait_feed unknown = feed(-1, PLAIT_F32, plait_shape_1(1), xs);
    const plait_feed deep = feed(x, PLAIT_F32, (plait_shape){ .rank = 9 }, xs);
    refused(s, good, 2, &f, 1, PLAIT_EINVAL, "gather 'y': number 2 of 2");
    refused(s, good, 1, &f, 1, PLAIT_EINVAL, "placeholder 'at' is needed and was not fed");
    refused(s, good, 2, &small, 1, PLAIT_EINVAL, "gather 'y': it has 8 bytes, and the memory for it 4");
    refused(s, good, 2, &none, 1, PLAIT_EINVAL, "fetch 0 is no value");
    refused(s, wide, 2, &f, 1, PLAIT_ESHAPE, "placeholder 'x': it is f32[?, 2], and was fed f32[2, 3]");
    refused(s, typed, 2, &f, 1, PLAIT_ESHAPE, "was fed f64[2, 2]");
    refused(s, twice, 2, &f, 1, PLAIT_EINVAL, "fed twice");
    refused(s, nowhere, 2, &f, 1, PLAIT_EINVAL, "placeholder 'x': no data");
    refused(s, &unknown, 1, &f, 1, PLAIT_EINVAL, "feed 0 is no value");
    refused(s, &deep, 1, &f, 1, PLAIT_ESHAPE, "9 axes");
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static void test_every_failed_allocation(void **state) {
    (void)state;
    plait_graph  *g = new_graph();
    plait_value   w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_2(3, 2), NULL));
    plait_value   b = plait_graph_scalar(g, PLAIT_F32, 1), done = plait_op_2(g, "inc", w, plait_op_2(g, "add", w, b));
    const int64_t live = pli_alloc_live();
    for (int64_t k = 0;; k++) {
        plait_session *s = NULL;
        plait_fetch    f = fetch(done, NULL, 0);
        pli_alloc_fail_after(k);
        plait_status status = plait_session_create(g, NULL, &s, NULL);
        if (status == PLAIT_OK) status = plait_session_run(s, NULL, 0, &f, 1, NULL, 0, NULL);
        pli_alloc_fail_after(-1);
        plait_session_destroy(&s);
        assert_int_equal(pli_alloc_live(), live);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
    plait_graph_destroy(&g);
}

/* After the first run of a plan, runs allocate nothing: any allocation would fail. */
static void test_a_step_allocates_nothing(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", plait_shape_2(PLAIT_ANY, 300)),
                w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_2(300, 30), NULL)), d;
    plait_value y = plait_op_2(g, "matmul", x, w), done;
    assert_int_equal(plait_graph_gradients(g, plait_op_2(g, "mul", y, y), 1, &w, &d), PLAIT_OK);
    done = plait_op_2(g, "inc", w, d);
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        plait_session_opts opts;
        plait_session_opts_init(&opts);
        opts.threads = threads;
        plait_session   *s = session_of(g, &opts);
        const float      xs[60 * 300] = { 1 };
        float            ys[60 * 30];
        const plait_feed f = feed(x, PLAIT_F32, plait_shape_2(60, 300), xs);
        plait_fetch      fetches[] = { fetch(y, ys, sizeof ys), fetch(done, NULL, 0) };
        run(s, &f, 1, fetches, 2);
        pli_alloc_fail_after(0);
        run(s, &f, 1, fetches, 2);
        run(s, &f, 1, fetches, 2);
        pli_alloc_fail_after(-1);
        plait_session_destroy(&s);
    }
    plait_graph_destroy(&g);
}

/* Several runs of one session at once, with and without incs. */
typedef struct runner {
    plait_session *session;
    plait_value    x, y, done;
    int            wrong;
} runner;

static void *run_many(void *user) {
    runner *r = user;
    float   xs[4000], ys[4000];
    for (int i = 0; i < 4000; i++) xs[i] = (float)i;
    for (int round = 0; round < 20; round++) {
        const plait_feed f = feed(r->x, PLAIT_F32, plait_shape_1(4000 - round % 2), xs);
        plait_fetch      fetches[] = { fetch(r->y, ys, sizeof ys), fetch(r->done, NULL, 0) };
        r->wrong += plait_session_run(r->session, &f, 1, fetches, 1 + round % 2, NULL, 0, NULL) != PLAIT_OK;
        for (int i = 0; i < 4000 - round % 2; i++) r->wrong += ys[i] != (float)(i + i) + (float)i;
    }
    return NULL;
}

static void test_several_runs_at_once(void **state) {
    (void)state;
    enum { RUNNERS = 3 };
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", plait_shape_1(PLAIT_ANY)),
                w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(4), NULL));
    plait_value y = plait_op_2(g, "add", plait_op_2(g, "add", x, x), x),
                done = plait_op_2(g, "inc", w, plait_graph_op(g, "ones_like", &w, 1, NULL, 0));
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.threads = 2;
    plait_session *s = session_of(g, &opts);
    s->plan_opts.grain_ns = 100;
    runner    r[RUNNERS];
    pthread_t thread[RUNNERS];
    for (int i = 0; i < RUNNERS; i++) {
        r[i] = (runner){ s, x, y, done, 0 };
        assert_int_equal(pthread_create(&thread[i], NULL, run_many, &r[i]), 0);
    }
    for (int i = 0; i < RUNNERS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < RUNNERS; i++) assert_int_equal(r[i].wrong, 0);
    float ws[4];
    assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
    assert_true(ws[0] == RUNNERS * 10 && ws[3] == RUNNERS * 10);
    const plait_variable_info info = info_of(s, 0);
    assert_int_equal(info.version, RUNNERS * 10);
    assert_true(info.last_get == 0 && info.last_inc >= RUNNERS * 10 && info.last_inc <= RUNNERS * 20);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

/* All threads add the deltas of a large variable, one delta after the other, also if the last piece is short. */
static void test_a_large_variable(void **state) {
    (void)state;
    enum { N = 3 * 8192 + 5 };
    plait_graph       *g = new_graph();
    plait_value        w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_1(N), NULL));
    plait_value        x = input(g, "x", plait_shape_1(N)), tiny = plait_graph_scalar(g, PLAIT_F32, 0x1p-24);
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.threads = 3;
    plait_session *s = session_of(g, &opts);
    static float   xs[N], ws[N];
    for (int i = 0; i < N; i++) xs[i] = (float)(i + 1);
    const plait_feed f = feed(x, PLAIT_F32, plait_shape_1(N), xs);
    /* each addition rounds, so another order would give other sums */
    plait_value last = plait_op_2(g, "inc", w, plait_op_2(g, "mul", plait_op_2(g, "add", w, tiny), tiny));
    plait_fetch fetches[] = { fetch(plait_op_2(g, "inc", w, x), NULL, 0), fetch(last, NULL, 0) };
    for (int round = 1; round <= 5; round++) {
        run(s, &f, 1, fetches, 2);
        assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
        for (int i = 0; i < N; i++) {
            float want = 0;
            for (int k = 0; k < round; k++) {
                const float push = (want + 0x1p-24F) * 0x1p-24F;
                want += xs[i];
                want += push;
            }
            if (ws[i] != want)
                fail_msg("round %d, element %d: %g instead of %g", round, i, (double)ws[i], (double)want);
        }
    }
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

/* A kernel fails while several threads run tasks: the text names the node, nothing is added, and the next run succeeds.
 */
static void test_a_failure_among_threads(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  w = plait_graph_variable(g, "w", plait_tensor_of(PLAIT_F32, plait_shape_2(300, 4), NULL));
    plait_value  at = plait_graph_placeholder(g, "at", PLAIT_I64, plait_shape_1(300)),
                y = plait_graph_name(g, plait_op_2(g, "gather", w, at), "y");
    plait_value        done = plait_op_2(g, "inc", w, plait_op_2(g, "add", y, plait_graph_scalar(g, PLAIT_F32, 1)));
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.threads = 3;
    plait_session *s = session_of(g, &opts);
    s->plan_opts.grain_ns = 1;
    int64_t          ats[300] = { 0 };
    float            ws[1200];
    const plait_feed f = feed(at, PLAIT_I64, plait_shape_1(300), ats);
    plait_fetch      fetched = fetch(done, NULL, 0);
    for (int round = 0; round < 20; round++) {
        ats[17 * round % 300] = 300;
        refused(s, &f, 1, &fetched, 1, PLAIT_EINVAL, "gather 'y': number 300 of 300");
        ats[17 * round % 300] = 0;
        run(s, &f, 1, &fetched, 1);
        assert_int_equal(plait_session_variable(s, 0, ws, NULL), PLAIT_OK);
        assert_true(ws[1] == (float)((1 << (round + 1)) - 1));
    }
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

/* Runs inside a loop of the pool: they are serial, and nested loops stay on their thread. */
typedef struct nest {
    plait_graph *g;
    plait_value  x, y;
    pli_pool    *pool;
    _Atomic int  wrong;
} nest;

static void run_nested(void *user, int64_t i, int32_t thread) {
    (void)thread;
    nest          *n = user;
    plait_session *s = NULL;
    float          xs[5000] = { (float)i }, ys[5000];
    if (pli_session_create(n->g, NULL, n->pool, &s, NULL) != PLAIT_OK) return;
    s->plan_opts.grain_ns = 100;
    const plait_feed f = feed(n->x, PLAIT_F32, plait_shape_1(5000), xs);
    plait_fetch      fetched = fetch(n->y, ys, sizeof ys);
    if (plait_session_run(s, &f, 1, &fetched, 1, NULL, 0, NULL) != PLAIT_OK || ys[0] != (float)(i * i)) n->wrong++;
    plait_session_destroy(&s);
}

static void test_nested_runs(void **state) {
    (void)state;
    nest n = { .g = new_graph() };
    n.x = input(n.g, "x", plait_shape_1(5000));
    n.y = plait_op_2(n.g, "mul", n.x, n.x);
    assert_int_equal(pli_pool_create(3, &n.pool, NULL), PLAIT_OK);
    pli_pool_for(n.pool, 20, run_nested, &n);
    assert_int_equal(n.wrong, 0);
    pli_pool_destroy(&n.pool);
    plait_graph_destroy(&n.g);
}

/* With ever new lengths, old plans are dropped; a plan that is made again computes the same. */
static void test_old_plans_are_forgotten(void **state) {
    (void)state;
    plait_graph   *g = new_graph();
    plait_value    x = input(g, "x", plait_shape_1(PLAIT_ANY)), y = plait_op_2(g, "mul", x, x);
    plait_session *s = session_of(g, NULL);
    float          xs[200], ys[200];
    int64_t        live = 0;
    for (int i = 0; i < 200; i++) xs[i] = (float)i;
    for (int64_t n = 1; n <= 200; n++) {
        const plait_feed f[] = { feed(x, PLAIT_F32, plait_shape_1(n), xs), feed(x, PLAIT_F32, plait_shape_1(7), xs) };
        plait_fetch      fetched = fetch(y, ys, sizeof ys);
        run(s, &f[0], 1, &fetched, 1);
        assert_true(ys[n - 1] == (float)((n - 1) * (n - 1)));
        run(s, &f[1], 1, &fetched, 1);
        assert_int_equal(fetched.tensor.shape.dim[0], 7);
        if (n == 100) live = pli_alloc_live();
    }
    assert_int_equal(pli_alloc_live(), live);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

typedef struct traced {
    _Atomic int64_t n;
    _Atomic int     bad;
} traced;

static void trace(void *user, const char *name, int32_t thread, uint64_t begin_ns, uint64_t end_ns) {
    traced *t = user;
    atomic_fetch_add(&t->n, 1);
    if (thread < 0 || thread > 1 || end_ns < begin_ns ||
        (strcmp(name, "fused add, mul 'x2'") != 0 && strcmp(name, "matmul + mul, add 'y'") != 0))
        atomic_fetch_add(&t->bad, 1);
}

static void test_traces(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", plait_shape_2(3, 3));
    plait_value  x2 = plait_graph_name(g, plait_op_2(g, "mul", plait_op_2(g, "add", x, x), x), "x2");
    plait_value  m = plait_op_2(g, "matmul", x2, x2),
                y = plait_graph_name(g, plait_op_2(g, "add", plait_op_2(g, "mul", m, m), m), "y");
    traced       t = { 0 };
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.threads = 2;
    opts.trace = trace;
    opts.trace_user = &t;
    plait_session   *s = session_of(g, &opts);
    const float      xs[9] = { 1 };
    float            ys[9];
    const plait_feed f = feed(x, PLAIT_F32, plait_shape_2(3, 3), xs);
    plait_fetch      fetched = fetch(y, ys, sizeof ys);
    run(s, &f, 1, &fetched, 1);
    assert_true(t.n == 2 && t.bad == 0);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

static void test_dumps(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", plait_shape_2(3, 3)), y = plait_op_2(g, "add", plait_op_2(g, "mul", x, x), x);
    y = plait_op_2(g, "mul", plait_op_2(g, "matmul", y, y), x);
    char              *folder = pli_temporary_directory("plait-dump");
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.dump = folder;
    plait_session   *s = session_of(g, &opts);
    const float      xs[9] = { 1 };
    float            ys[9];
    const plait_feed f = feed(x, PLAIT_F32, plait_shape_2(3, 3), xs);
    plait_fetch      fetched = fetch(y, ys, sizeof ys);
    run(s, &f, 1, &fetched, 1);
    pli_text names = { 0 }, picture = { 0 };
    char     path[512];
    assert_int_equal(pli_list_directory(folder, &names, NULL), PLAIT_OK);
    assert_non_null(strstr(names.data, "-fuse-before.dot"));
    assert_non_null(strstr(names.data, "-memory-after.dot"));
    const char *name = strstr(names.data, "-fuse-after.dot");
    assert_non_null(name);
    snprintf(path, sizeof path, "%s/%.*s", folder, 21 + 15, name - 21);
    assert_int_equal(pli_read_whole(path, 1 << 16, &picture, NULL), PLAIT_OK);
    assert_non_null(strstr(picture.data, "fused mul, add"));
    assert_non_null(strstr(picture.data, "matmul + mul"));
    pli_remove_directory(folder);
    pli_text_free(&names);
    pli_text_free(&picture);
    pli_free(folder);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_graph),
        cmocka_unit_test(test_broadcasting),
        cmocka_unit_test(test_a_product_and_its_gradient),
        cmocka_unit_test(test_any_value_may_be_fed),
        cmocka_unit_test(test_shapes_alone_need_no_values),
        cmocka_unit_test(test_all_gets_of_a_run_see_what_was_before),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_rows_of_a_fed_variable_are_the_feeds),
        cmocka_unit_test(test_the_graph_may_grow),
        cmocka_unit_test(test_what_is_known_of_variables),
        cmocka_unit_test(test_what_nobody_needs_takes_no_memory),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_every_failed_allocation),
        cmocka_unit_test(test_a_step_allocates_nothing),
        cmocka_unit_test(test_several_runs_at_once),
        cmocka_unit_test(test_a_large_variable),
        cmocka_unit_test(test_a_failure_among_threads),
        cmocka_unit_test(test_nested_runs),
        cmocka_unit_test(test_old_plans_are_forgotten),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_dumps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
