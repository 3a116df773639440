/* Building graphs: what is refused, and with which text; path tables of graphs whose derivatives follow from their
 * structure. */
#include "graph/ops/ops.h"
#include "graph/paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/ops.h>

#include "new_graph.h"

static plait_value input(plait_graph *g, const char *name, int64_t rows, int64_t cols) {
    return plait_graph_placeholder(g, name, PLAIT_F32, plait_shape_2(rows, cols));
}

static void assert_shape(const plait_graph *g, plait_value v, const char *want) {
    char         text[128];
    plait_tensor t = plait_graph_describe(g, v);
    pli_shape_text(&t, text);
    assert_string_equal(text, want);
}

static void test_shapes_are_inferred(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", PLAIT_ANY, 784), w = input(g, "w", 784, 10),
                b = plait_graph_placeholder(g, "b", PLAIT_F32, plait_shape_1(10));
    plait_value y = plait_op_2(g, "add", plait_op_2(g, "matmul", x, w), b);
    assert_shape(g, y, "f32[?, 10]");
    assert_shape(g, plait_op_2(g, "mul", y, plait_graph_op(g, "ones_like", &y, 1, NULL, 0)), "f32[?, 10]");
    assert_int_equal(plait_graph_find(g, "w"), w);
    assert_int_equal(plait_graph_find(g, "nothing"), PLAIT_NONE);
    assert_int_equal(plait_graph_check(g, NULL), PLAIT_OK);
    plait_graph_destroy(&g);
    assert_null(g);
}

static void test_scalars_are_rounded_to_their_type(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  v = plait_graph_scalar(g, PLAIT_BF16, 1.0 + 1.0 / 512), w = plait_graph_scalar(g, PLAIT_I32, -3);
    assert_shape(g, v, "bf16[]");
    assert_int_equal(*(uint16_t *)g->attr[pli_value_node(g, v)->attr].u.tensor->data, 0x3f80);
    assert_int_equal(*(int32_t *)g->attr[pli_value_node(g, w)->attr].u.tensor->data, -3);
    plait_graph_destroy(&g);
}

static void assert_failed(plait_graph *g, plait_status code, const char *part) {
    plait_error err;
    assert_int_equal(plait_graph_check(g, &err), code);
    if (strstr(err.text, part) == NULL) fail_msg("'%s' does not say '%s'", err.text, part);
    plait_graph_destroy(&g);
}

static void test_the_first_failure_is_kept(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  a = input(g, "a", 3, 4), b = input(g, "b", 5, 6);
    assert_int_equal(plait_op_2(g, "matmul", a, b), PLAIT_NONE);
    assert_int_equal(plait_op_2(g, "add", a, a), PLAIT_NONE);
    assert_failed(
        g, PLAIT_ESHAPE,
        "matmul: inner lengths 4 and 5 differ; its inputs are placeholder 'a' f32[3, 4], placeholder 'b' f32[5, 6]");

    g = new_graph();
    a = input(g, "a", 3, 4);
    assert_int_equal(plait_op_2(g, "matmull", a, a), PLAIT_NONE);
    assert_failed(g, PLAIT_ENAME, "did you mean 'matmul'");

    g = new_graph();
    a = input(g, "a", 3, 3);
    const plait_value in[] = { a, a };
    const plait_attr  attr = { .name = "tc", .kind = PLAIT_ATTR_INT, .u.i = 1 };
    plait_graph_op(g, "matmul", in, 2, &attr, 1);
    assert_failed(g, PLAIT_ENAME, "matmul: unknown attribute 'tc'");

    g = new_graph();
    input(g, "a", 3, 3);
    input(g, "a", 3, 3);
    assert_failed(g, PLAIT_EINVAL, "two values named 'a'");

    g = new_graph();
    a = input(g, "a", INT64_MAX / 4, 3);
    assert_failed(g, PLAIT_ESHAPE, "larger than any array");

    g = new_graph();
    a = input(g, "a", 2, 2);
    plait_op_2(g, "inc", a, a);
    assert_failed(g, PLAIT_EINVAL, "is to be a variable");

    g = new_graph();
    a = input(g, "a", 2, 2);
    plait_graph_op(g, "add", &a, 1, NULL, 0);
    assert_failed(g, PLAIT_EINVAL, "add takes 2 inputs, not 1");
}

static void test_own_ops_are_held_to_be_whole(void **state) {
    (void)state;
    plait_op        half = { .size = sizeof half, .name = "half", .min_inputs = 1, .max_inputs = 1, .outputs = 1 };
    const plait_op *list[] = { &half };
    plait_graph    *g = NULL;
    plait_error     err;
    assert_int_equal(plait_graph_create(list, 1, &g, &err), PLAIT_EINVAL);
    half.summary = "x / 2";
    assert_int_equal(plait_graph_create(list, 1, &g, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "half needs infer"));
    half.infer = pli_op_zeros_like.infer;
    half.name = "add";
    assert_int_equal(plait_graph_create(list, 1, &g, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "add exists already"));
    half.name = "half";
    assert_int_equal(plait_graph_create(list, 1, &g, &err), PLAIT_OK);
    plait_value x = input(g, "x", 2, 2);
    assert_true(plait_graph_op(g, "half", &x, 1, NULL, 0) > x);
    plait_graph_destroy(&g);
}

/* --- path tables ----------------------------------------------------------------------------------------------- */

typedef struct seen {
    int64_t n;
    int32_t longest, stop_at;
} seen;

static int see(void *user, const plait_path *path) {
    seen *s = user;
    s->n++;
    if (path->n > s->longest) s->longest = path->n;
    for (int32_t i = 0; i + 1 < path->n; i++)
        assert_true(path->partial[i] >= 0 && path->values[i] > path->values[i + 1]);
    return s->stop_at > 0 && s->n >= s->stop_at;
}

/* x0 -> x1 = x0 + x0 -> ... : 2^depth paths, each of depth + 1 vertices. */
static void test_paths_are_chains_of_edges(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  x = input(g, "x", 2, 2), y = x, aside = input(g, "aside", 2, 2), dx, d_aside, again;
    for (int i = 0; i < 6; i++) y = plait_op_2(g, "add", y, y);
    assert_int_equal(plait_graph_paths(g, y, x, see, NULL), 0); /* not differentiated yet */
    assert_int_equal(plait_graph_gradients(g, y, 1, &x, &dx), PLAIT_OK);
    seen s = { 0 };
    assert_int_equal(plait_graph_paths(g, y, x, see, &s), 64);
    assert_int_equal(s.longest, 7);
    s = (seen){ .stop_at = 5 };
    assert_int_equal(plait_graph_paths(g, y, x, see, &s), 5);
    assert_int_equal(plait_graph_paths(g, y, aside, see, &s), 0);

    int64_t nodes = plait_graph_nodes(g);
    assert_int_equal(plait_graph_gradients(g, y, 1, &x, &again), PLAIT_OK);
    assert_int_equal(again, dx);
    assert_int_equal(plait_graph_nodes(g), nodes); /* a look-up */
    assert_int_equal(plait_graph_gradients(g, y, 1, &aside, &d_aside), PLAIT_OK);
    assert_string_equal(pli_value_node(g, d_aside)->op->name, "zeros_like");
    assert_shape(g, dx, "f32[2, 2]");
    plait_graph_destroy(&g);
}

/* Each edge has its partial, and a vertex's gradient is the sum of the edges that leave it. */
static void test_a_vertex_sums_its_edges(void **state) {
    (void)state;
    plait_graph      *g = new_graph();
    plait_value       x = input(g, "x", 2, 3), w = input(g, "w", 3, 4), h = plait_op_2(g, "matmul", x, w);
    plait_value       y = plait_op_2(g, "add", plait_op_2(g, "mul", h, h), plait_op_2(g, "sub", h, h)), d[2];
    const plait_value of[] = { x, w };
    assert_int_equal(plait_graph_gradients(g, y, 2, of, d), PLAIT_OK);
    const pli_paths *p = pli_paths_of(g, y);
    int32_t          edges = 0;
    for (int32_t e = p->head[h]; e >= 0; e = p->next[e]) {
        assert_int_equal(g->input[e], h);
        edges++;
    }
    assert_int_equal(edges, 4);
    assert_string_equal(pli_value_node(g, p->grad[h])->op->name, "add_n");
    assert_int_equal(pli_value_node(g, p->grad[h])->n_inputs, 4);
    assert_int_equal(plait_graph_paths(g, y, x, see, &(seen){ 0 }), 4);
    assert_shape(g, d[0], "f32[2, 3]");
    assert_shape(g, d[1], "f32[3, 4]");

    plait_value dd; /* a gradient is a value like others */
    assert_int_equal(plait_graph_gradients(g, d[1], 1, &x, &dd), PLAIT_OK);
    assert_shape(g, dd, "f32[2, 3]");
    plait_graph_destroy(&g);
}

static void test_integers_have_no_gradient(void **state) {
    (void)state;
    plait_graph *g = new_graph();
    plait_value  i = plait_graph_placeholder(g, "i", PLAIT_I64, plait_shape_1(3)), di;
    assert_int_equal(plait_graph_gradients(g, plait_op_2(g, "add", i, i), 1, &i, &di), PLAIT_EINVAL);
    assert_failed(g, PLAIT_EINVAL, "cast it to f32");
}

/* For a chain of n nodes, the sweep adds at most a constant number of nodes an edge. */
static void test_the_sweep_is_linear(void **state) {
    (void)state;
    int64_t added[2];
    for (int k = 0; k < 2; k++) {
        plait_graph *g = new_graph();
        plait_value  x = input(g, "x", 2, 2), y = x, dx;
        for (int i = 0; i < 1000 << k; i++) y = plait_op_2(g, "mul", y, i % 2 == 0 ? x : y);
        const int64_t before = plait_graph_nodes(g);
        assert_int_equal(plait_graph_gradients(g, y, 1, &x, &dx), PLAIT_OK);
        added[k] = plait_graph_nodes(g) - before;
        plait_graph_destroy(&g);
    }
    assert_true(added[1] <= 2 * added[0]);
    assert_true(added[0] <= 4 * 1000);
}

static void test_survives_every_failed_allocation(void **state) {
    (void)state;
    for (int64_t k = 0;; k++) {
        const int64_t live = pli_alloc_live();
        plait_graph  *g = NULL;
        pli_alloc_fail_after(k);
        plait_status status = plait_graph_create(NULL, 0, &g, NULL);
        if (status == PLAIT_OK) {
            plait_value x = input(g, "x", 2, 2), dx, y = plait_op_2(g, "add", plait_op_2(g, "mul", x, x), x);
            if (y >= 0) plait_graph_gradients(g, y, 1, &x, &dx);
            status = plait_graph_check(g, NULL);
        }
        plait_graph_destroy(&g);
        pli_alloc_fail_after(-1);
        assert_int_equal(pli_alloc_live(), live);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
}

/* A name made for an unnamed node is never the name of another value. */
static void test_names_that_are_made_are_free(void **state) {
    (void)state;
    plait_graph *g = NULL;
    char         text[80];
    assert_int_equal(plait_graph_create(NULL, 0, &g, NULL), PLAIT_OK);
    const plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_1(2)), y = plait_op_2(g, "add", x, x);
    pli_node_name(g, g->value[y].node, text);
    assert_string_equal(text, "add_1");
    plait_graph_name(g, x, "add_1");
    plait_graph_name(g, x, "add_1_");
    pli_node_name(g, g->value[y].node, text);
    assert_string_equal(text, "add_1__");
    const char **names = pli_value_names(g);
    assert_string_equal(names[x], "x"); /* the first name that was given */
    assert_null(names[y]);
    pli_free(names);
    plait_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_are_inferred),          cmocka_unit_test(test_scalars_are_rounded_to_their_type),
        cmocka_unit_test(test_the_first_failure_is_kept),    cmocka_unit_test(test_own_ops_are_held_to_be_whole),
        cmocka_unit_test(test_paths_are_chains_of_edges),    cmocka_unit_test(test_a_vertex_sums_its_edges),
        cmocka_unit_test(test_integers_have_no_gradient),    cmocka_unit_test(test_the_sweep_is_linear),
        cmocka_unit_test(test_names_that_are_made_are_free), cmocka_unit_test(test_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
