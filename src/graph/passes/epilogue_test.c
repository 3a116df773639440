/* A training step of a net with convolutions and products has the same bits with elementwise ops as epilogues or as
 * nodes of their own, and with one thread or several. The regions that kernels give for their items are true. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/kernel.h"
#include "graph/session.h"

#include <cmocka.h>

#include <plait/ops.h>

#include "new_graph.h"

/* Makes a session with these passes, threads and kernels. NULL: there is no such module. */
static plait_session *session_of(const plait_graph *g, const char *passes, int32_t threads, const char *kernels) {
    plait_session_opts opts;
    plait_session     *s = NULL;
    plait_session_opts_init(&opts);
    opts.passes = passes;
    opts.threads = threads;
    opts.kernels = kernels;
    const plait_status status = plait_session_create(g, &opts, &s, NULL);
    if (kernels != NULL && status == PLAIT_EMODULE) return NULL;
    assert_int_equal(status, PLAIT_OK);
    s->plan_opts.grain_ns = 100; /* so that small graphs have many tasks, and small nodes are shared */
    return s;
}

/* A step of a net with two convolutions and two layers, each large enough for many items; it fetches the loss and the
 * incs of variables. */
static plait_graph *small_net(plait_type type, plait_value fetch[8]) {
    static const int64_t     one[] = { 1, 1, 1, 1 }, flat[] = { 6, 12 * 15 * 13 };
    plait_graph             *g = new_graph();
    plait_value              w[7], d[7], h;
    static const plait_shape shapes_of[7] = {
        { 4, { 9, 3, 3, 3 } },        { 3, { 9, 1, 1 } }, { 4, { 12, 9, 3, 3 } }, { 0, { 0 } },
        { 2, { 12 * 15 * 13, 260 } }, { 1, { 260 } },     { 2, { 260, 5 } }
    };
    static float  values[12 * 15 * 13 * 260];
    static double wide[12 * 15 * 13 * 260];
    pli_random    r = pli_random_at(3, PLI_RANDOM_DATA, 0, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)(wide[i] = 0.1 * pli_random_normal(&r));
    void *data = type == PLAIT_F32 ? (void *)values : (void *)wide;
    char  name[8];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "w%d", i);
        w[i] = plait_graph_variable(g, name, plait_tensor_of(type, shapes_of[i], data));
    }
    const plait_attr  padding = { .name = "padding", .kind = PLAIT_ATTR_INTS, .n = 4, .u.ints = one };
    const plait_attr  shape = { .name = "shape", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = flat };
    const plait_value first[] = { plait_graph_constant(g, plait_tensor_of(type, plait_shape_4(6, 3, 15, 13), data)),
                                  w[0] };
    h = plait_op_2(g, "add", plait_graph_op(g, "conv2d", first, 2, &padding, 1), w[1]);
    h = plait_graph_op(g, "relu", &h, 1, NULL, 0);
    const plait_value second[] = { h, w[2] };
    h = plait_op_2(g, "mul", plait_graph_op(g, "conv2d", second, 2, &padding, 1), w[3]);
    h = plait_graph_op(g, "tanh", &h, 1, NULL, 0);
    h = plait_op_2(g, "add", plait_op_2(g, "matmul", plait_graph_op(g, "reshape", &h, 1, &shape, 1), w[4]), w[5]);
    h = plait_graph_op(g, "relu", &h, 1, NULL, 0);
    h = plait_op_2(g, "matmul", h, w[6]);
    h = plait_graph_op(g, "square", &h, 1, NULL, 0);
    const plait_value loss = fetch[0] = plait_op_2(g, "sum_like", h, plait_graph_scalar(g, type, 0));
    assert_int_equal(plait_graph_gradients(g, loss, 7, w, d), PLAIT_OK);
    for (int i = 0; i < 7; i++)
        fetch[1 + i] = plait_op_2(g, "inc", w[i], plait_op_2(g, "mul", d[i], plait_graph_scalar(g, type, -1e-4)));
    return g;
}

/* A hash of the variables after two steps. */
static uint64_t stepped(const plait_graph *g, const plait_value fetch[8], const char *passes, int32_t threads,
                        const char *kernels) {
    static double  values[12 * 15 * 13 * 260];
    plait_session *s = session_of(g, passes, threads, kernels);
    uint64_t       h = 0;
    if (s == NULL) return 0;
    for (int step = 0; step < 2; step++) {
        double      loss = 0;
        plait_fetch fetches[8] = { { .value = fetch[0], .tensor = { .data = &loss }, .bytes = sizeof loss } };
        plait_error err = { .code = PLAIT_OK };
        for (int i = 1; i < 8; i++) fetches[i] = (plait_fetch){ .value = fetch[i] };
        if (plait_session_run(s, NULL, 0, fetches, 8, NULL, 0, &err) != PLAIT_OK) fail_msg("%s", err.text);
        h = pli_hash_bytes(&loss, sizeof loss, h);
    }
    for (int32_t k = 0; k < 7; k++) {
        const plait_tensor t = plait_graph_variable_initial(g, k);
        assert_int_equal(plait_session_variable(s, k, values, NULL), PLAIT_OK);
        h = pli_hash_bytes(values, pli_tensor_bytes(&t), h);
    }
    plait_session_destroy(&s);
    return h;
}

static void test_epilogues_change_no_bit(void **state) {
    (void)state;
    for (int t = 0; t < 3; t++) { /* floats, doubles, and floats by the module's kernels */
        const char    *kernels = t == 2 ? "onednn" : NULL;
        plait_value    fetch[8];
        plait_graph   *g = small_net(t == 1 ? PLAIT_F64 : PLAIT_F32, fetch);
        const uint64_t plain = stepped(g, fetch, "none", 1, kernels);
        assert_true(stepped(g, fetch, "fuse", 1, kernels) == plain);
        assert_true(stepped(g, fetch, "fuse", 3, kernels) == plain);
        for (int32_t threads = 1; threads < 4; threads++)
            assert_true(stepped(g, fetch, NULL, threads, kernels) == plain);
        plait_graph_destroy(&g);
    }
}

/* Each kernel's region is what `run` writes for an item, and each element is written by one item. */
static void test_regions(void **state) {
    (void)state;
    plait_value    fetch[8];
    plait_graph   *g = small_net(PLAIT_F32, fetch);
    plait_session *s = session_of(g, "fuse", 1, NULL);
    plait_fetch    fetches[8] = { { .value = fetch[0], .tensor = { .data = &fetches }, .bytes = 4 } };
    for (int i = 1; i < 8; i++) fetches[i] = (plait_fetch){ .value = fetch[i] };
    const pli_plan_key key = { .fetches = fetches, .n_fetches = 8 };
    pli_plan          *p = NULL;
    plait_error        err = { .code = PLAIT_OK };
    if (pli_plan_create(g, &key, &s->plan_opts, &p, &err) != PLAIT_OK) fail_msg("%s", err.text);
    int epilogues = 0, shared = 0;
    for (int64_t k = 0; k < p->n_nodes; k++) {
        const pli_plan_node *n = &p->node[k];
        if (n->work != PLI_WORK_KERNEL || n->map == NULL) continue;
        plait_tensor  in[8], out = p->value[n->output + n->raw].t;
        const int64_t elements = plait_shape_elements(&out.shape);
        uint8_t      *seen = calloc((size_t)elements, 1);
        for (int32_t i = 0; i < n->kernel_in; i++) in[i] = p->value[p->input[n->input + i]].t;
        const plait_call call = { .in = in, .out = &out, .n_in = n->kernel_in, .n_out = 1, .attr = n->attr };
        for (int64_t item = 0; item < n->items; item++) {
            const pli_region at = n->region(&call, item);
            for (int64_t i = 0; i < at.count; i++)
                for (int64_t j = 0; j < at.length; j++) assert_true(seen[at.first + i * at.step + j]++ == 0);
        }
        for (int64_t i = 0; i < elements; i++) assert_true(seen[i] == 1);
        free(seen);
        epilogues++;
        shared += n->items > 1;
    }
    assert_true(epilogues >= 8 && shared >= 4);
    pli_plan_destroy(&p);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_epilogues_change_no_bit),
        cmocka_unit_test(test_regions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
