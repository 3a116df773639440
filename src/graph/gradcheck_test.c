/* Compares every gradient rule of the registry with central differences, to the second order: each op alone, over
 * several shapes, and in seeded random graphs. If no case reaches an op, the test fails: add a line for it. */
#include "gradcheck.h"

/* inputs is read by gc_op: a kind (f: float, p: float > 0, u: float in (0, 1), b: bool, iN and jN: i64 and i32 below N)
 * and lengths; "-" is a scalar. */
/* clang-format off */
static const struct grad_case {
    const char *op, *inputs, *attrs;
} cases[] = {
    { "add", "2,3; 2,3", "" }, { "add", "2,3; 3", "" }, { "add", "2,1; 1,3", "" }, { "add", "-; 2,2", "" },
    { "sub", "2,3; 2,3", "" }, { "sub", "3; 2,3", "" },
    { "mul", "2,3; 2,3", "" }, { "mul", "2,3; 2,1", "" }, { "mul", "4,1,2; 3,1", "" },
    { "neg", "2,3", "" }, { "add_n", "2,2; 2,2; 2,2", "" },
    { "div", "2,3; 2,3", "" }, { "div", "2,3; p3", "" }, { "div", "-; p2,2", "" },
    { "pow", "p2,3; 2,3", "" }, { "pow", "p2,3; 3", "" }, { "pow", "p-; 2,2", "" },
    { "exp", "2,3", "" }, { "log", "p2,3", "" }, { "sqrt", "p2,3", "" }, { "square", "2,3", "" }, { "abs", "2,3", "" },
    { "reciprocal", "2,3", "" }, { "erf", "2,3", "" },  { "clip", "3,4", "low=-0.7 high=0.9" },
    { "maximum", "2,3; 2,3", "" }, { "maximum", "2,3; 3", "" }, { "minimum", "2,3; 2,3", "" },
    { "minimum", "2,1; 2,3", "" },
    { "where", "b2,3; 2,3; 2,3", "" }, { "where", "b3; 2,1; -", "" }, { "cast", "2,3", "type=f64" },
    { "sigmoid", "2,3", "" }, { "tanh", "2,3", "" }, { "relu", "3,4", "" }, { "leaky_relu", "3,4", "slope=0.2" },
    { "relu_gradient", "3,4; 3,4", "slope=0.3" }, { "relu_gradient", "1,4; 3,4", "" }, { "elu", "3,4", "alpha=0.7" },
    { "softplus", "2,3", "" }, { "gelu", "3,4", "" },
    { "sum", "2,3", "" }, { "sum", "2,3,4", "axes=1" }, { "sum", "2,3,4", "axes=0,-1 keep=1" },
    { "sum", "3,1", "axes=1" },
    { "mean", "2,3", "" }, { "mean", "2,3,4", "axes=1,2" }, { "mean", "2,3,4", "axes=-2 keep=1" },
    { "max", "2,3", "" }, { "max", "2,3,4", "axes=1" }, { "max", "2,3,4", "axes=0,2 keep=1" },
    { "min", "2,3", "" }, { "min", "2,3,4", "axes=-1" },
    { "top_k", "3,5", "k=2" }, { "top_k", "4", "k=4" },
    { "gather_last", "2,5; i5:2,3", "" }, { "scatter_last", "2,5; i5:2,7; 2,7", "" },
    { "ones_like", "2,2", "" }, { "zeros_like", "2,2", "" },
    { "sum_like", "2,3; 3", "" }, { "sum_like", "4,2,3; 2,1", "" }, { "broadcast_like", "3; 2,3", "" },
    { "broadcast_like", "2,1; 4,2,3", "" },
    { "reshape", "2,6", "shape=3,-1" }, { "reshape", "2,3", "shape=6" }, { "reshape_like", "2,6; 4,3", "" },
    { "squeeze", "2,1,3", "axes=1" }, { "expand_dims", "2,3", "axes=0,-1" }, { "identity", "2,3", "" },
    { "transpose", "2,3", "" }, { "transpose", "2,3,4", "perm=1,2,0" }, { "transpose", "2,3,4", "perm=0,2,1" },
    { "concat", "2,3; 2,1; 2,2", "axis=1" }, { "concat", "1,3; 4,3", "" }, { "concat", "2,3", "axis=-1" },
    { "concat_part", "2,6; 2,3; 2,1; 2,2", "axis=1 part=1" },
    { "split", "2,6", "parts=3 axis=1" }, { "split", "5,2", "parts=2 axis=0 lengths=2,3" },
    { "slice", "4,5", "starts=1,-3 ends=3,5" }, { "slice", "7,3", "starts=1 ends=7 steps=2" },
    { "slice", "3,5", "axes=1 starts=-1 ends=-9 steps=-2" },
    { "unslice", "7,3; 3,3", "starts=1 ends=7 steps=2 axes=0" }, { "pad", "2,3", "before=1,0 after=0,2 value=3" },
    { "extend", "2,3,2", "axis=1 before=2 after=4 mode=reflect" }, { "extend", "3,4", "before=5 after=1 mode=wrap" },
    { "extend", "4,2", "axis=0 after=3" }, { "extend_gradient", "2,3; 2,6", "before=1 after=2 mode=reflect" },
    { "resize", "2,5,2", "axis=1 length=3" }, { "resize", "2,4", "scale=2.5 mode=linear" },
    { "resize", "2,4", "length=7 mode=linear places=align_corners" },
    { "resize", "5,2", "axis=0 scale=0.7 mode=cubic places=half_pixel_symmetric" },
    { "resize", "2,4", "length=6 mode=cubic exclude=1 cubic=-0.5" },
    { "resize_gradient", "2,4; 2,7", "length=7 mode=cubic" },
    { "scatter_add", "4,2; i4:3; 3,2", "" }, { "gather", "4,2; i4:3", "" }, { "gather", "4,2; i4:2,2", "" },
    { "scatter_rows", "4,2; i4:3; 3,2", "" },
    { "matmul", "2,3; 3,4", "" }, { "matmul", "3,2; 4,3", "ta=1 tb=1" }, { "matmul", "2,2,3; 3,2", "" },
    { "matmul", "2,1,2,3; 2,4,3", "tb=1" },
    { "sparse_matmul", "i4:6; i3:6; 6; 3,2; 4,1", "" }, { "sparse_matmul", "i2:5; i40:5; 5; 40,35; 2", "" },
    { "softmax", "2,3", "" }, { "softmax", "2,3,2", "axis=1" }, { "log_softmax", "2,3", "" },
    { "softmax_gradient", "2,3; 2,3", "" }, { "row_dot", "2,3; 2,3", "" }, { "row_scale", "2,3; 2", "" },
    { "conv2d", "2,2,4,4; 3,2,2,2", "stride=2,1 padding=1,0,0,1" }, { "conv2d_input", "3,2,2,2; 2,3,3,3; 2,2,4,4", "" },
    { "conv2d_filter", "2,2,4,4; 2,3,3,3; 3,2,2,2", "" },
    { "max_pool2d", "1,2,4,4", "window=2,2 stride=2,2" }, { "avg_pool2d", "1,2,4,4", "window=2,2" },
    { "avg_pool2d_gradient", "1,2,4,4; 1,2,2,2", "window=2,2" },
    { "plane_gather", "1,2,2,3; j6:1,2,2,1", "" }, { "plane_scatter", "1,2,2,3; j6:1,2,2,1; 1,2,2,1", "" },
    { "softmax_cross_entropy", "3,4; i4:3", "" }, { "softmax_cross_entropy_gradient", "3,4; i4:3; 3", "" },
    { "sigmoid_cross_entropy", "3,4; 1,4", "" }, { "squared_loss", "3,4; 4", "" }, { "hinge_loss", "3,4; 3,1", "" },
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof *cases };

/* Ops that cases cannot express; their own tests check them. */
static const struct {
    const char *op, *why;
} elsewhere[] = {
    { "lstm", "lstm_test.c: of its outputs the gates are not differentiated" },
    { "lstm_gradient", "lstm_test.c: refuses by name" },
    { "recurrent_product", "lstm_test.c" },
    { "gru", "gru_test.c: as lstm" },
    { "gru_gradient", "gru_test.c: refuses by name" },
    { "layer_norm", "norm_test.c: of its outputs the statistics are not differentiated" },
    { "layer_norm_gradient", "norm_test.c: refuses by name" },
    { "batch_norm", "norm_test.c: as layer_norm" },
    { "batch_norm_gradient", "norm_test.c: refuses by name" },
    { "dropout", "losses_test.c: its mask is not differentiated" },
};

/* Does the op read a variable of the store? Then no case can feed its input 0; its gradient rule is scatter_rows and
 * gather. */
static bool is_of_the_store(const plait_op *op) { return (op->flags & PLAIT_OP_STORE) != 0; }

static void test_every_rule_is_reached(void **state) {
    (void)state;
    for (int i = 0; pli_ops()[i] != NULL; i++) {
        const plait_op *op = pli_ops()[i];
        bool            reached = op->gradient == NULL || is_of_the_store(op);
        for (int k = 0; k < CASES && !reached; k++) reached = strcmp(cases[k].op, op->name) == 0;
        for (size_t k = 0; k < sizeof elsewhere / sizeof *elsewhere && !reached; k++)
            reached = strcmp(elsewhere[k].op, op->name) == 0;
        if (!reached) fail_msg("no case checks the gradient of %s: add one to the list", op->name);
    }
}

static void test_ops(void **state) {
    (void)state;
    for (int k = 0; k < CASES; k++) gc_case(cases[k].op, cases[k].inputs, cases[k].attrs, 2);
}

/* --- random graphs --------------------------------------------------------------------------------------------- */

enum { POOL = 64 };

typedef struct grown {
    gc         *c;
    plait_value pool[POOL];
    int32_t     n;
} grown;

static int64_t      below(grown *r, int64_t n) { return (int64_t)pli_random_below(&r->c->random, (uint64_t)n); }
static plait_value  any(grown *r) { return r->pool[below(r, r->n)]; }
static plait_tensor of(grown *r, plait_value v) { return plait_graph_describe(r->c->g, v); }
static plait_value  op1(grown *r, const char *op, plait_value a, const plait_attr *attrs, int32_t n) {
     return plait_graph_op(r->c->g, op, &a, 1, attrs, n);
}
static plait_value op2(grown *r, const char *op, plait_value a, plait_value b) {
    return plait_graph_op(r->c->g, op, (plait_value[]){ a, b }, 2, NULL, 0);
}
static plait_value scalar(grown *r, double x) { return plait_graph_scalar(r->c->g, PLAIT_F64, x); }
/* 1 + a^2: above 0 */
static plait_value positive(grown *r, plait_value a) {
    return op2(r, "add", op1(r, "square", a, NULL, 0), scalar(r, 1));
}
static plait_value held(grown *r, plait_value a) { return op1(r, "tanh", a, NULL, 0); }

/* A value of the pool that broadcasts with a; a itself if there is no other. */
static plait_value mate(grown *r, plait_value a) {
    for (int try = 0; try < 10; try++) {
        const plait_value  b = any(r);
        const plait_tensor ta = of(r, a), tb = of(r, b);
        plait_shape        wide;
        if (pli_broadcast(&ta.shape, &tb.shape, &wide) && plait_shape_elements(&wide) <= 100) return b;
    }
    return a;
}

static plait_value grow_unary(grown *r) {
    static const char *const ops[] = { "tanh", "sigmoid", "softplus", "gelu", "elu",      "relu", "leaky_relu",
                                       "abs",  "neg",     "square",   "erf",  "identity", "clip" };
    const char              *op = ops[below(r, sizeof ops / sizeof *ops)];
    return op1(r, op, any(r), NULL, 0);
}
static plait_value grow_bounded(grown *r) {
    static const char *const ops[] = { "log", "sqrt", "reciprocal" };
    if (below(r, 4) == 0) return op1(r, "exp", held(r, any(r)), NULL, 0);
    return op1(r, ops[below(r, 3)], positive(r, any(r)), NULL, 0);
}
static plait_value grow_binary(grown *r) {
    static const char *const ops[] = { "add", "sub", "mul", "maximum", "minimum" };
    const plait_value        a = any(r);
    return op2(r, ops[below(r, 5)], a, mate(r, a));
}
static plait_value grow_quotient(grown *r) {
    const plait_value a = any(r), b = mate(r, a);
    if (below(r, 2) == 0) return op2(r, "div", a, positive(r, b));
    return op2(r, "pow", positive(r, held(r, a)), held(r, b));
}
static plait_value grow_choice(grown *r) {
    static const char *const ops[] = { "less", "greater", "less_equal", "greater_equal" };
    const plait_value        a = any(r), b = mate(r, a), test = op2(r, ops[below(r, 4)], a, b);
    return plait_graph_op(r->c->g, "where", (plait_value[]){ test, a, b }, 3, NULL, 0);
}
static plait_value grow_reduction(grown *r) {
    static const char *const ops[] = { "sum", "mean", "max", "min" };
    const plait_value        a = any(r);
    const int32_t            rank = of(r, a).shape.rank;
    const int64_t            axis = rank > 0 ? below(r, rank) - rank : 0;
    const plait_attr         attrs[] = { pli_attr_int("keep", below(r, 2)),
                                         pli_attr_ints("axes", rank > 0 && below(r, 4) > 0, &axis) };
    return op1(r, ops[below(r, 4)], a, attrs, 2);
}
static plait_value grow_shape(grown *r) {
    const plait_value  a = any(r);
    const plait_tensor t = of(r, a);
    const int64_t      flat = -1, axis = t.shape.rank > 0 ? below(r, t.shape.rank + 1) : 0;
    const plait_attr   shape = pli_attr_ints("shape", 1, &flat), axes = pli_attr_ints("axes", 1, &axis);
    if (t.shape.rank == 3 || below(r, 3) == 0) return op1(r, "reshape", a, &shape, 1);
    return below(r, 2) == 0 ? op1(r, "transpose", a, NULL, 0) : op1(r, "expand_dims", a, &axes, 1);
}
static plait_value grow_pieces(grown *r) {
    const plait_value  a = any(r);
    const plait_tensor t = of(r, a);
    if (t.shape.rank == 0) return a;
    const int64_t axis = below(r, t.shape.rank), length = t.shape.dim[axis], start = below(r, length),
                  end = start + 1 + below(r, length - start);
    const int64_t    one = 1, lengths[] = { start, length - start };
    const plait_attr slice[] = { pli_attr_ints("axes", 1, &axis), pli_attr_ints("starts", 1, &start),
                                 pli_attr_ints("ends", 1, &end), pli_attr_ints("steps", 1, &one) };
    const plait_attr split[] = { pli_attr_int("parts", 2), pli_attr_int("axis", axis),
                                 pli_attr_ints("lengths", 2, lengths) };
    const plait_attr along = pli_attr_int("axis", axis);
    if (start > 0 && below(r, 2) == 0)
        return plait_graph_output(r->c->g, op1(r, "split", a, split, 3), (int32_t)below(r, 2) * (start < length));
    if (length < 4 && below(r, 2) == 0) return plait_graph_op(r->c->g, "concat", (plait_value[]){ a, a }, 2, &along, 1);
    return op1(r, "slice", a, slice, 4);
}
static plait_value grow_rows(grown *r) {
    const plait_value  a = any(r);
    const plait_tensor t = of(r, a);
    if (t.shape.rank == 0) return a;
    int64_t           number[3] = { below(r, t.shape.dim[0]), below(r, t.shape.dim[0]), below(r, t.shape.dim[0]) };
    const plait_value rows = plait_graph_constant(r->c->g, plait_tensor_of(PLAIT_I64, plait_shape_1(3), number));
    if (t.shape.rank > 2) return a;
    const plait_value taken = op2(r, "gather", a, rows);
    if (below(r, 2) == 0) return taken;
    return plait_graph_op(r->c->g, "scatter_add", (plait_value[]){ a, rows, held(r, taken) }, 3, NULL, 0);
}
static plait_value grow_product(grown *r) {
    const plait_value  a = any(r);
    const plait_tensor t = of(r, a);
    const plait_attr   tb = pli_attr_int("tb", 1), ta = pli_attr_int("ta", 1);
    if (t.shape.rank < 2) return a;
    if (below(r, 2) == 0) return plait_graph_op(r->c->g, "matmul", (plait_value[]){ a, held(r, a) }, 2, &tb, 1);
    return plait_graph_op(r->c->g, "matmul", (plait_value[]){ a, a }, 2, &ta, 1);
}
static plait_value grow_best(grown *r) {
    const plait_value a = any(r);
    const plait_attr  k = pli_attr_int("k", 1), axis = pli_attr_int("axis", -1);
    if (of(r, a).shape.rank == 0) return a;
    return below(r, 2) == 0 ? op1(r, "top_k", a, &k, 1) : op1(r, "softmax", a, &axis, 1);
}

typedef plait_value   grow_fn(grown *r);
static grow_fn *const growths[] = { grow_unary,    grow_unary,   grow_bounded,   grow_binary, grow_binary,
                                    grow_quotient, grow_choice,  grow_reduction, grow_shape,  grow_pieces,
                                    grow_rows,     grow_product, grow_best };

/* Makes three inputs and up to 20 more values of at most 100 elements; tanh keeps large ones small. L sums the values
 * that no op uses, and some of the others. */
static void check_random_graph(uint64_t seed) {
    gc    c;
    grown r = { .c = &c };
    char  name[40];
    snprintf(name, sizeof name, "random graph %d", (int)seed);
    gc_begin(&c, name, seed);
    for (int i = 0; i < 3; i++) {
        plait_shape shape = { .rank = (int32_t)below(&r, 4) };
        for (int32_t k = 0; k < shape.rank; k++) shape.dim[k] = 1 + below(&r, 4);
        r.pool[r.n++] = gc_input(&c, 'f', 0, shape, false);
    }
    for (int64_t i = 0, n = 4 + below(&r, 17); i < n; i++) {
        plait_value v = growths[below(&r, sizeof growths / sizeof *growths)](&r);
        gc_check_graph(&c);
        const plait_tensor t = of(&r, v);
        plait_tensor       now;
        if (plait_shape_elements(&t.shape) > 100 || plait_shape_elements(&t.shape) == 0) continue;
        gc_run(&c, &v, 1, &now);
        double most = 0;
        for (int64_t k = 0; k < plait_shape_elements(&now.shape); k++) most = fmax(most, fabs(pli_element(&now, k)));
        free(now.data);
        r.pool[r.n++] = most > 4 ? held(&r, v) : v;
    }
    plait_value   sinks[8];
    const int32_t n = r.n < 8 ? r.n : 8;
    for (int32_t i = 0; i < n; i++) sinks[i] = r.pool[r.n - 1 - i];
    gc_check(&c, gc_total(&c, sinks, n), 2, 0);
    gc_end(&c);
}

static void test_random_graphs(void **state) {
    (void)state;
    const uint64_t n = getenv("PLAIT_TEST_FULL") != NULL ? 5000 : 500;
    for (uint64_t seed = 1; seed <= n; seed++) check_random_graph(seed);
}

/* --- memory ---------------------------------------------------------------------------------------------------- */

/* If any allocation fails while a rule adds its nodes, the graph reports it and leaks nothing. */
static void test_rules_survive_failed_allocations(void **state) {
    (void)state;
    static const char *const ops[] = { "concat", "max", "mean", "clip", "gelu", "transpose", "pow", "div" };
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (int64_t k = 0;; k++) {
            const int64_t live = pli_alloc_live();
            plait_graph  *g = NULL;
            pli_alloc_fail_after(k);
            plait_status status = plait_graph_create(NULL, 0, &g, NULL);
            if (status == PLAIT_OK) {
                plait_value dx, d2x,
                    x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, PLAIT_ANY));
                const plait_value in[] = { x, x }, y = plait_graph_op(g, ops[o], in, o == 0 || o > 5 ? 2 : 1, NULL, 0);
                if (y >= 0 && plait_graph_gradients(g, y, 1, &x, &dx) == PLAIT_OK)
                    plait_graph_gradients(g, dx, 1, &x, &d2x);
                status = plait_graph_check(g, NULL);
            }
            plait_graph_destroy(&g);
            pli_alloc_fail_after(-1);
            assert_int_equal(pli_alloc_live(), live);
            if (status == PLAIT_OK) break;
            assert_int_equal(status, PLAIT_ENOMEM);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule_is_reached),
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_rules_survive_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
