/* Tests of subgraphs: what is left out needs no feed, computes nothing and keeps its variables' bits; what is not
 * trained keeps them too, and its backward pass is not computed. Nodes are counted as they are run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#include <plait/ops.h>
#include <plait/session.h>

#include "graph/graph.h"
#include "new_graph.h"

enum { VARIABLES = 4 };

/* x -> body (w1, b1) -> head (w2) -> loss; y -> aux (wa); total = loss + sum of aux, differentiated by all. */
typedef struct net {
    plait_graph *g;
    plait_value  x, y, h, loss, inc[VARIABLES];
} net;

static plait_value variable(plait_graph *g, const char *name, int64_t rows, int64_t cols) {
    float value[64];
    for (int i = 0; i < 64; i++) value[i] = (float)(i % 7) * 0.125f - 0.25f;
    return plait_graph_variable(g, name, plait_tensor_of(PLAIT_F32, plait_shape_2(rows, cols), value));
}

static net make(bool declare) {
    net               n = { .g = new_graph() };
    plait_error       err = { 0 };
    plait_value       v[VARIABLES], d[VARIABLES];
    const plait_shape rows = plait_shape_2(PLAIT_ANY, 4);
    n.x = plait_graph_placeholder(n.g, "x", PLAIT_F32, rows);
    n.y = plait_graph_placeholder(n.g, "y", PLAIT_F32, rows);
    v[0] = variable(n.g, "w1", 4, 8);
    v[1] = variable(n.g, "b1", 1, 8);
    v[2] = variable(n.g, "w2", 8, 2);
    v[3] = variable(n.g, "wa", 4, 3);
    const plait_value product = plait_op_matmul(n.g, n.x, v[0]), moved = plait_op_add(n.g, product, v[1]);
    n.h = plait_op_tanh(n.g, moved);
    const plait_value scores = plait_op_tanh(n.g, plait_op_matmul(n.g, n.h, v[2]));
    const plait_value aux = plait_op_matmul(n.g, n.y, v[3]), aux_sum = plait_op_sum(n.g, aux, 0, NULL, 0);
    n.loss = plait_op_sum(n.g, scores, 0, NULL, 0);
    const plait_value body[] = { product, moved, n.h }, head[] = { scores, v[2] }, side[] = { n.y, aux, aux_sum };
    if (declare) {
        assert_int_equal(plait_graph_subgraph(n.g, "body", body, 3, &err), PLAIT_OK);
        assert_int_equal(plait_graph_subgraph(n.g, "head", head, 2, &err), PLAIT_OK);
        assert_int_equal(plait_graph_subgraph(n.g, "aux", side, 3, &err), PLAIT_OK);
    }
    const plait_value total = plait_op_add(n.g, n.loss, aux_sum);
    assert_int_equal(plait_graph_gradients(n.g, total, VARIABLES, v, d), PLAIT_OK);
    for (int i = 0; i < VARIABLES; i++) n.inc[i] = plait_op_inc(n.g, v[i], d[i]);
    if (plait_graph_check(n.g, &err) < 0) fail_msg("%s", err.text);
    return n;
}

/* What is left of a session after some runs. */
typedef struct outcome {
    plait_status status;
    plait_error  err;
    float        loss, value[VARIABLES][32];
    int          nodes; /* in the last run */
    bool         kept[VARIABLES];
} outcome;

static void count(void *user, const char *name, int32_t thread, uint64_t begin_ns, uint64_t end_ns) {
    (void)name, (void)thread, (void)begin_ns, (void)end_ns;
    atomic_fetch_add((_Atomic int *)user, 1);
}

/* Runs two steps with the feeds of the values fed [n_fed] (a row each of given or more), fetching the loss and incs
 * [n_incs]. */
static outcome run(const net *n, const char *exclude, const char *train, const plait_value *fed, int32_t n_fed,
                   const plait_value *inc, int32_t n_incs) {
    static const float data[24] = { 1, 2, 3, -1, 0.5f, 0.25f, 1, 1, -2, 1, 0, 3, 1, 1, 2, 2, 0, 1, 0, 1, 3, -1, 1, 0 };
    outcome            o = { .nodes = 0 };
    _Atomic int        nodes = 0;
    plait_session_opts opts;
    plait_session     *s = NULL;
    plait_feed         feed[4];
    plait_fetch        fetch[VARIABLES + 1];
    plait_session_opts_init(&opts);
    opts.exclude = exclude;
    opts.train = train;
    opts.threads = 1;
    opts.passes = "none";
    opts.trace = count;
    opts.trace_user = &nodes;
    o.status = plait_session_create(n->g, &opts, &s, &o.err);
    if (o.status < 0) return o;
    for (int32_t i = 0; i < n_fed; i++) {
        const int64_t cols = plait_graph_describe(n->g, fed[i]).shape.dim[1];
        feed[i] = (plait_feed){ fed[i], plait_tensor_of(PLAIT_F32, plait_shape_2(3, cols), data) };
    }
    for (int32_t i = 0; i < n_incs; i++) fetch[i] = (plait_fetch){ .value = inc[i] };
    fetch[n_incs] = (plait_fetch){ .value = n->loss, .tensor = { .data = &o.loss }, .bytes = sizeof o.loss };
    for (int step = 0; step < 2 && o.status >= 0; step++) {
        nodes = 0;
        o.status = plait_session_run(s, feed, n_fed, fetch, n_incs + 1, NULL, 0, &o.err);
    }
    o.nodes = nodes;
    for (int32_t k = 0; k < VARIABLES; k++) {
        const plait_tensor first = plait_graph_variable_initial(n->g, k);
        assert_int_equal(plait_session_variable(s, k, o.value[k], NULL), PLAIT_OK);
        o.kept[k] = memcmp(first.data, o.value[k], (size_t)plait_shape_elements(&first.shape) * sizeof(float)) == 0;
    }
    plait_session_destroy(&s);
    return o;
}

static void test_excluded(void **state) {
    (void)state;
    net           n = make(true);
    const outcome all = run(&n, NULL, NULL, (plait_value[]){ n.x, n.y }, 2, n.inc, VARIABLES);
    const outcome least = run(&n, NULL, NULL, (plait_value[]){ n.x, n.y }, 2, n.inc, 3); /* by hand: no inc of wa */
    const outcome off = run(&n, "aux", NULL, &n.x, 1, n.inc, VARIABLES);
    assert_int_equal(all.status, PLAIT_OK);
    if (off.status < 0) fail_msg("%s", off.err.text);
    assert_true(!all.kept[0] && !all.kept[1] && !all.kept[2] && !all.kept[3]);
    assert_true(!off.kept[0] && !off.kept[1] && !off.kept[2] && off.kept[3]);
    assert_memory_equal(off.value, least.value, sizeof off.value);
    assert_true(off.loss == all.loss); /* the others learn the same bits */
    assert_memory_equal(off.value, all.value, 3 * sizeof off.value[0]);
    assert_int_equal(off.nodes, least.nodes);
    assert_true(off.nodes < all.nodes);
    const outcome unfed = run(&n, NULL, NULL, &n.x, 1, n.inc, VARIABLES);
    assert_int_equal(unfed.status, PLAIT_EINVAL); /* without exclude, y is needed */
    plait_graph_destroy(&n.g);
}

static void test_excluded_body_is_fed(void **state) {
    (void)state;
    net           n = make(true);
    const outcome off = run(&n, "body,aux", NULL, &n.h, 1, n.inc, VARIABLES);
    if (off.status < 0) fail_msg("%s", off.err.text);
    assert_true(off.kept[0] && off.kept[1] && !off.kept[2] &&
                off.kept[3]); /* w1 and b1 belong to body by their readers */
    const outcome least = run(&n, NULL, NULL, (plait_value[]){ n.h, n.y }, 2, &n.inc[2], 1);
    assert_int_equal(off.nodes, least.nodes);
    const outcome needed = run(&n, "body", NULL, &n.x, 1, n.inc, VARIABLES);
    assert_int_equal(needed.status, PLAIT_EINVAL);
    assert_non_null(strstr(needed.err.text, "is needed but excluded"));
    plait_graph_destroy(&n.g);
}

static void test_trained(void **state) {
    (void)state;
    net           n = make(true);
    const outcome all = run(&n, NULL, NULL, (plait_value[]){ n.x, n.y }, 2, n.inc, VARIABLES);
    const outcome head = run(&n, "aux", "head", &n.x, 1, n.inc, VARIABLES);
    const outcome least = run(&n, NULL, NULL, (plait_value[]){ n.x, n.y }, 2, &n.inc[2], 1);
    if (head.status < 0) fail_msg("%s", head.err.text);
    assert_true(head.kept[0] && head.kept[1] && !head.kept[2] && head.kept[3]);
    assert_int_equal(head.nodes, least.nodes); /* the gradients of the body are not computed */
    assert_true(head.nodes + 4 < all.nodes);
    assert_memory_equal(head.value, least.value, sizeof head.value);
    const outcome both = run(&n, "aux", "head,body", &n.x, 1, n.inc, VARIABLES);
    if (both.status < 0) fail_msg("%s", both.err.text);
    assert_true(!both.kept[0] && !both.kept[1] && !both.kept[2] && both.kept[3]);
    plait_graph_destroy(&n.g);
}

static void test_refusals(void **state) {
    (void)state;
    net         n = make(true), none = make(false);
    plait_error err;
    static const struct {
        const char  *exclude, *train, *part;
        plait_status code;
    } wrong[] = {
        { "haed", NULL, "did you mean 'head'", PLAIT_ENAME },
        { "head,", NULL, "unknown subgraph ''", PLAIT_ENAME },
        { "head", "body,head", "'head' is to be trained and to be excluded", PLAIT_EINVAL },
        { NULL, "loss", "unknown subgraph 'loss'", PLAIT_ENAME },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const outcome o = run(&n, wrong[i].exclude, wrong[i].train, &n.x, 1, n.inc, 1);
        assert_int_equal(o.status, wrong[i].code);
        if (strstr(o.err.text, wrong[i].part) == NULL) fail_msg("'%s' does not say '%s'", o.err.text, wrong[i].part);
    }
    const outcome o = run(&none, "head", NULL, &none.x, 1, none.inc, 1);
    assert_int_equal(o.status, PLAIT_ENAME);
    assert_non_null(strstr(o.err.text, "has no subgraphs"));
    assert_int_equal(plait_graph_subgraph(n.g, "loss", &n.loss, 1, &err), PLAIT_OK);
    assert_int_equal(run(&n, NULL, "loss", &n.x, 1, n.inc, 1).status, PLAIT_EINVAL); /* no variable */
    assert_int_equal(plait_graph_subgraph(n.g, "loss", &n.loss, 1, &err), PLAIT_EINVAL);
    assert_int_equal(plait_graph_subgraph(n.g, "a,b", &n.loss, 1, &err), PLAIT_EINVAL);
    assert_int_equal(plait_graph_subgraph(n.g, "", &n.loss, 1, &err), PLAIT_EINVAL);
    assert_int_equal(plait_graph_subgraph(n.g, "empty", &n.loss, 0, &err), PLAIT_EINVAL);
    assert_int_equal(plait_graph_subgraph(n.g, "far", &(plait_value){ 1 << 20 }, 1, &err), PLAIT_EINVAL);
    assert_int_equal(plait_graph_subgraphs(n.g), 4);
    assert_string_equal(plait_graph_subgraph_name(n.g, 2), "aux");
    assert_null(plait_graph_subgraph_name(n.g, 4));
    plait_graph_destroy(&n.g);
    plait_graph_destroy(&none.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_excluded),
        cmocka_unit_test(test_excluded_body_is_fed),
        cmocka_unit_test(test_trained),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
