/* Tests of ops: results of the functions of plait/ops.h against values computed by hand, kernels against references,
 * random numbers, print and assert, and refusals. */
#include <plait/nn.h>
#include <plait/session.h>

#include "op_case.h"

typedef struct bench {
    plait_graph       *g;
    plait_session_opts opts;
} bench;

static bench begin(void) {
    bench b;
    assert_int_equal(plait_graph_create(NULL, 0, &b.g, NULL), PLAIT_OK);
    plait_session_opts_init(&b.opts);
    return b;
}

static plait_value numbers(const bench *b, plait_type type, plait_shape shape, const double *x) {
    double       room[64] = { 0 };
    plait_tensor t = plait_tensor_of(type, shape, room);
    for (int64_t i = 0; i < plait_shape_elements(&shape); i++) pli_element_set(&t, i, x[i]);
    return plait_graph_constant(b->g, t);
}

/* Runs the graph and returns the fetched tensor, whose data is static. */
static plait_tensor run(const bench *b, plait_value value) {
    static double  room[1 << 15];
    plait_session *s = NULL;
    plait_error    err;
    plait_fetch    fetch = { .value = value, .tensor.data = room, .bytes = sizeof room };
    if (plait_graph_check(b->g, &err) != PLAIT_OK || plait_session_create(b->g, &b->opts, &s, &err) != PLAIT_OK ||
        plait_session_run(s, NULL, 0, &fetch, 1, NULL, 0, &err) != PLAIT_OK)
        fail_msg("%s", err.text);
    plait_session_destroy(&s);
    return fetch.tensor;
}

static void expect_at(int line, const bench *b, plait_value value, int64_t n, const double *want) {
    const plait_tensor t = run(b, value);
    if (plait_shape_elements(&t.shape) != n)
        fail_msg("line %d: %lld elements", line, (long long)plait_shape_elements(&t.shape));
    for (int64_t i = 0; i < n; i++) {
        const double got = pli_element(&t, i);
        if (!(fabs(got - want[i]) <= 1e-6 * (1 + fabs(want[i]))) && got != want[i] && !(isnan(got) && isnan(want[i])))
            fail_msg("line %d: element %lld is %.9g, not %.9g", line, (long long)i, got, want[i]);
    }
}
#define EXPECT(b, value, ...)                                                                                          \
    expect_at(__LINE__, b, value, sizeof((double[]){ __VA_ARGS__ }) / sizeof(double), (const double[]){ __VA_ARGS__ })

static void test_numbers(void **state) {
    (void)state;
    bench             b = begin();
    plait_graph      *g = b.g;
    const plait_value x = numbers(&b, PLAIT_F32, plait_shape_1(4), (double[]){ -2, -0.5, 0, 3 });
    const plait_value y = numbers(&b, PLAIT_F32, plait_shape_1(4), (double[]){ 4, 2, 0, 3 });
    const double      inf = HUGE_VAL;
    EXPECT(&b, plait_op_add(g, x, y), 2, 1.5, 0, 6);
    EXPECT(&b, plait_op_sub(g, x, y), -6, -2.5, 0, 0);
    EXPECT(&b, plait_op_mul(g, x, y), -8, -1, 0, 9);
    EXPECT(&b, plait_op_div(g, x, y), -0.5, -0.25, NAN, 1);
    EXPECT(&b, plait_op_pow(g, y, x), 0.0625, 0.70710678118, 1, 27);
    EXPECT(&b, plait_op_maximum(g, x, y), 4, 2, 0, 3);
    EXPECT(&b, plait_op_minimum(g, x, y), -2, -0.5, 0, 3);
    EXPECT(&b, plait_op_neg(g, x), 2, 0.5, 0, -3);
    EXPECT(&b, plait_op_reciprocal(g, y), 0.25, 0.5, inf, 1.0 / 3);
    EXPECT(&b, plait_op_abs(g, x), 2, 0.5, 0, 3);
    EXPECT(&b, plait_op_sign(g, x), -1, -1, 0, 1);
    EXPECT(&b, plait_op_sign(g, numbers(&b, PLAIT_F64, plait_shape_1(2), (double[]){ NAN, -inf })), NAN, -1);
    EXPECT(&b, plait_op_extend(g, x, 0, 2, 4, "reflect"), 0, -0.5, -2, -0.5, 0, 3, 0, -0.5, -2, -0.5);
    EXPECT(&b, plait_op_extend(g, x, 0, 1, 5, "wrap"), 3, -2, -0.5, 0, 3, -2, -0.5, 0, 3, -2);
    EXPECT(&b, plait_op_extend(g, x, -1, 1, 2, "edge"), -2, -2, -0.5, 0, 3, 3, 3);
    EXPECT(&b, plait_op_resize(g, y, 0, 2, "nearest"), 4, 0);
    EXPECT(&b, plait_op_resize(g, y, 0, 2, "linear"), 3, 1.5);
    EXPECT(&b, plait_op_resize(g, x, 0, 1, "cubic"), -0.390625);
    EXPECT(&b, plait_op_square(g, x), 4, 0.25, 0, 9);
    EXPECT(&b, plait_op_sqrt(g, y), 2, sqrt(2), 0, sqrt(3));
    EXPECT(&b, plait_op_exp(g, x), exp(-2), exp(-0.5), 1, exp(3));
    EXPECT(&b, plait_op_log(g, y), log(4), log(2), -inf, log(3));
    EXPECT(&b, plait_op_erf(g, x), erf(-2), erf(-0.5), 0, erf(3));
    EXPECT(&b, plait_op_sigmoid(g, x), 1 / (1 + exp(2)), 1 / (1 + exp(0.5)), 0.5, 1 / (1 + exp(-3)));
    EXPECT(&b, plait_op_tanh(g, x), tanh(-2), tanh(-0.5), 0, tanh(3));
    EXPECT(&b, plait_op_relu(g, x), 0, 0, 0, 3);
    EXPECT(&b, plait_op_leaky_relu(g, x, 0.1), -0.2, -0.05, 0, 3);
    EXPECT(&b, plait_op_elu(g, x, 2), 2 * expm1(-2), 2 * expm1(-0.5), 0, 3);
    EXPECT(&b, plait_op_softplus(g, x), log1p(exp(-2)), log1p(exp(-0.5)), log(2), log1p(exp(3)));
    EXPECT(&b, plait_op_gelu(g, x), -1 - erf(-sqrt(2)), -0.25 * (1 + erf(-0.5 / sqrt(2))), 0,
           1.5 * (1 + erf(3 / sqrt(2))));
    EXPECT(&b, plait_op_clip(g, x, -1, 2), -1, -0.5, 0, 2);
    plait_graph_destroy(&b.g);
}

static void test_choices_and_types(void **state) {
    (void)state;
    bench             b = begin();
    plait_graph      *g = b.g;
    const plait_value x = numbers(&b, PLAIT_F64, plait_shape_1(4), (double[]){ 1, 2, 3, NAN });
    const plait_value y = numbers(&b, PLAIT_F64, plait_shape_1(4), (double[]){ 1, 3, 2, 0 });
    const plait_value less = plait_op_less(g, x, y), equal = plait_op_equal(g, x, y);
    EXPECT(&b, equal, 1, 0, 0, 0);
    EXPECT(&b, plait_op_not_equal(g, x, y), 0, 1, 1, 1);
    EXPECT(&b, less, 0, 1, 0, 0);
    EXPECT(&b, plait_op_less_equal(g, x, y), 1, 1, 0, 0);
    EXPECT(&b, plait_op_greater(g, x, y), 0, 0, 1, 0);
    EXPECT(&b, plait_op_greater_equal(g, x, y), 1, 0, 1, 0);
    EXPECT(&b, plait_op_logical_or(g, less, equal), 1, 1, 0, 0);
    EXPECT(&b, plait_op_logical_and(g, less, equal), 0, 0, 0, 0);
    EXPECT(&b, plait_op_logical_not(g, less), 1, 0, 1, 1);
    EXPECT(&b, plait_op_where(g, less, x, plait_graph_scalar(g, PLAIT_F64, 7)), 7, 2, 7, 7);
    EXPECT(&b, plait_op_maximum(g, x, y), 1, 3, 3, NAN);
    EXPECT(&b, plait_op_minimum(g, y, x), 1, 2, 2, NAN);

    const plait_value wild = numbers(&b, PLAIT_F64, plait_shape_1(5), (double[]){ -1.9, 1e30, -1e30, NAN, 257 });
    EXPECT(&b, plait_op_cast(g, wild, PLAIT_I32), -1, INT32_MAX, INT32_MIN, 0, 257);
    EXPECT(&b, plait_op_cast(g, wild, PLAIT_BF16), -1.8984375, 1.000255552e30, -1.000255552e30, NAN, 256);
    EXPECT(&b, plait_op_cast(g, wild, PLAIT_BOOL), 1, 1, 1, 1, 1);
    const plait_value whole = plait_op_cast(g, wild, PLAIT_I64);
    assert_true(*(int64_t *)run(&b, plait_op_slice(g, whole, 1, (int64_t[]){ 1 }, (int64_t[]){ 2 }, NULL)).data ==
                INT64_MAX);
    const plait_value wrapped = plait_op_add(g, whole, plait_graph_scalar(g, PLAIT_I64, 1));
    assert_true(((int64_t *)run(&b, wrapped).data)[1] == INT64_MIN);
    const plait_value large =
        plait_op_slice(g, wrapped, 1, (int64_t[]){ 1 }, (int64_t[]){ 3 }, NULL); /* both near the end */
    assert_true(*(int64_t *)run(&b, plait_op_sum(g, large, 0, NULL, 0)).data == 1);
    plait_graph_destroy(&b.g);
}

static void test_shapes_and_axes(void **state) {
    (void)state;
    bench             b = begin();
    plait_graph      *g = b.g;
    const plait_value x = numbers(&b, PLAIT_F32, plait_shape_2(2, 3), (double[]){ 1, 5, 3, 4, 2, 6 });
    const int64_t     first[] = { 0 }, last[] = { -1 }, one[] = { 1 }, both[] = { 0, 1 }, starts[] = { 1, -1 },
                  ends[] = { 2, -4 }, steps[] = { 1, -2 };
    EXPECT(&b, plait_op_sum(g, x, 0, NULL, 0), 21);
    EXPECT(&b, plait_op_sum(g, x, 1, first, 0), 5, 7, 9);
    EXPECT(&b, plait_op_mean(g, x, 1, last, 1), 3, 4);
    EXPECT(&b, plait_op_max(g, x, 1, first, 0), 4, 5, 6);
    EXPECT(&b, plait_op_min(g, x, 2, both, 0), 1);
    EXPECT(&b, plait_op_argmax(g, x, -1), 1, 2);
    EXPECT(&b, plait_op_argmax(g, x, 0), 1, 0, 1);
    const plait_value top = plait_op_top_k(g, x, 2);
    EXPECT(&b, top, 5, 3, 6, 4);
    EXPECT(&b, plait_graph_output(g, top, 1), 1, 2, 2, 0);
    EXPECT(&b, plait_op_transpose(g, x, 0, NULL), 1, 4, 5, 2, 3, 6);
    EXPECT(&b, plait_op_reshape(g, x, plait_shape_2(3, -1)), 1, 5, 3, 4, 2, 6);
    EXPECT(&b, plait_op_squeeze(g, plait_op_expand_dims(g, x, 1, one), 1, one), 1, 5, 3, 4, 2, 6);
    EXPECT(&b, plait_op_concat(g, 2, (plait_value[]){ x, x }, 1), 1, 5, 3, 1, 5, 3, 4, 2, 6, 4, 2, 6);
    const plait_value parts = plait_op_split(g, x, 1, 2, (int64_t[]){ 1, 2 });
    EXPECT(&b, parts, 1, 4);
    EXPECT(&b, plait_graph_output(g, parts, 1), 5, 3, 2, 6);
    EXPECT(&b, plait_op_slice(g, x, 2, starts, ends, steps), 6, 4);
    EXPECT(&b, plait_op_pad(g, x, 2, (int64_t[]){ 0, 1 }, (int64_t[]){ 1, 0 }, 9), 9, 1, 5, 3, 9, 4, 2, 6, 9, 9, 9, 9);
    const plait_value rows = numbers(&b, PLAIT_I64, plait_shape_1(3), (double[]){ 1, 0, 1 });
    EXPECT(&b, plait_op_gather(g, x, rows), 4, 2, 6, 1, 5, 3, 4, 2, 6);
    EXPECT(&b, plait_op_scatter_add(g, x, rows, plait_op_gather(g, x, rows)), 2, 10, 6, 12, 6, 18);
    EXPECT(&b, plait_op_one_hot(g, rows, 2, PLAIT_F32), 0, 1, 1, 0, 0, 1);
    EXPECT(&b, plait_op_identity(g, plait_op_stop_gradient(g, x)), 1, 5, 3, 4, 2, 6);
    EXPECT(&b, plait_op_matmul(g, x, plait_op_transpose(g, x, 0, NULL)), 35, 32, 32, 56);
    const plait_value p = plait_op_softmax(g, x, -1), scores = plait_op_log(g, p);
    EXPECT(&b, plait_op_sub(g, plait_op_log_softmax(g, x, -1), scores), 0, 0, 0, 0, 0, 0);
    const plait_value labels = numbers(&b, PLAIT_I64, plait_shape_1(2), (double[]){ 1, 2 });
    EXPECT(&b, plait_op_softmax_cross_entropy(g, x, labels), log(1 + exp(-4) + exp(-2)), log(1 + exp(-2) + exp(-4)));

    const plait_value one_score = numbers(&b, PLAIT_F32, plait_shape_1(1), (double[]){ 0.5 });
    const plait_value target = numbers(&b, PLAIT_F32, plait_shape_1(1), (double[]){ 1 });
    EXPECT(&b, plait_op_sigmoid_cross_entropy(g, one_score, target), log1p(exp(-0.5)));
    EXPECT(&b, plait_op_squared_loss(g, one_score, target), 0.125);
    EXPECT(&b, plait_op_hinge_loss(g, one_score, target), 0.5);
    EXPECT(&b, plait_op_dropout(g, one_score, 0), 0.5);

    const int64_t     two[] = { 2, 2 };
    const plait_value image =
        plait_op_reshape(g, plait_op_concat(g, 2, (plait_value[]){ x, x }, 0), (plait_shape){ 4, { 1, 1, 4, 3 } });
    const plait_value filter = numbers(&b, PLAIT_F32, plait_shape_4(1, 1, 2, 2), (double[]){ 1, 0, 0, -1 });
    EXPECT(&b, plait_op_conv2d(g, image, filter, two, NULL, NULL, 1), -1, -1);
    EXPECT(&b, plait_op_pool2d(g, "max_pool2d", image, two, NULL, NULL), 5, 5);
    EXPECT(&b, plait_op_layer_norm(g, numbers(&b, PLAIT_F32, plait_shape_2(1, 2), (double[]){ 1, 3 }), -1, 1e-9), -1,
           1);
    EXPECT(&b, plait_op_batch_norm(g, numbers(&b, PLAIT_F32, plait_shape_2(2, 1), (double[]){ 1, 3 }), 1e-9), -1, 1);
    const plait_value nought = numbers(&b, PLAIT_F32, plait_shape_2(1, 1), (double[]){ 0 });
    const plait_value z = numbers(&b, PLAIT_F32, (plait_shape){ 3, { 1, 1, 4 } }, (double[]){ 0, 0, 1, 0 });
    const plait_value r = numbers(&b, PLAIT_F32, plait_shape_2(1, 4), (double[]){ 0, 0, 0, 0 });
    EXPECT(&b, plait_op_lstm(g, z, r, nought, nought), 0.5 * tanh(0.5 * tanh(1)));
    const plait_value three = numbers(&b, PLAIT_F32, plait_shape_2(1, 3), (double[]){ 0, 0, 0 });
    const plait_value zero = numbers(&b, PLAIT_F32, plait_shape_1(1), (double[]){ 0 });
    const plait_value z3 = numbers(&b, PLAIT_F32, (plait_shape){ 3, { 1, 1, 3 } }, (double[]){ 0, 0, 1 });
    EXPECT(&b, plait_op_gru(g, z3, three, zero, nought), 0.5 * tanh(1));
    plait_graph_destroy(&b.g);
}

/* --- kernels --------------------------------------------------------------------------------------------------- */

static const plait_shape shapes[] = { { 0, { 0 } },         { 1, { 1 } },         { 1, { 40000 } },
                                      { 2, { 3, 700 } },    { 2, { 700, 3 } },    { 2, { 5, 1 } },
                                      { 3, { 7, 5, 300 } }, { 3, { 4, 600, 2 } }, { 4, { 2, 3, 4, 5 } },
                                      { 2, { 0, 3 } } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void test_reductions_agree(void **state) {
    (void)state;
    const plait_op *ops[] = { &pli_op_sum, &pli_op_mean, &pli_op_max, &pli_op_min };
    int32_t         compared = 0;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < SHAPES; i++)
            for (uint32_t mask = 0; mask < 1u << shapes[i].rank; mask++) { /* each choice of axes; none means all */
                op_case     c = op_case_of(ops[k]);
                int64_t     axes[PLAIT_RANK_MAX];
                plait_attr *attr = op_case_attr(&c, "axes");
                attr->u.ints = axes;
                for (int32_t a = 0; a < shapes[i].rank; a++)
                    if ((mask >> a & 1) != 0) axes[attr->n++] = a;
                op_case_input(&c, PLAIT_F32, shapes[i], 0);
                if (k < 2 || shapes[i].dim[0] != 0) compared += op_case_agree(&c, 1e-6);
                op_case_end(&c);
            }
    assert_true(compared > 100);
}

static void agree(const plait_op *op, plait_type type, plait_shape a, plait_shape b, int32_t others) {
    op_case c = op_case_of(op);
    if (op == &pli_op_cast) c.attr[0].u.i = PLAIT_BF16;
    op_case_input(&c, type, a, 2);
    if (op->min_inputs == 2) op_case_input(&c, type, b, 2);
    const int32_t agreed = op_case_agree(&c, 1e-6);
    assert_true(others < 0 || agreed == others); /* below 0: any number */
    op_case_end(&c);
}

static void test_other_kernels_agree(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        const plait_shape s = shapes[i];
        agree(&pli_op_ones_like, PLAIT_F32, s, s, 1);
        agree(&pli_op_zeros_like, PLAIT_F32, s, s, 1);
        agree(&pli_op_cast, PLAIT_F32, s, s, 1);
        agree(&pli_op_transpose, PLAIT_F32, s, s, s.rank == 2);
        for (int32_t a = 0; a < s.rank; a++) {
            plait_shape narrow = s;
            narrow.dim[a] = 1;
            agree(&pli_op_broadcast_like, PLAIT_F64, narrow, s, 1);
            agree(&pli_op_sum_like, PLAIT_F32, s, narrow, -1);
        }
    }
    op_case c =
        op_case_of(&pli_op_sum_like); /* a bias of channels, which is neither the first axes, nor the last, nor all */
    op_case_input(&c, PLAIT_F32, plait_shape_4(3, 5, 8, 9), 0);
    op_case_input(&c, PLAIT_F32, shape3(5, 1, 1), 0);
    assert_int_equal(op_case_agree(&c, 1e-6), 1);
    op_case_end(&c);
    c = op_case_of(&pli_op_cast);
    c.attr[0].u.i = PLAIT_F32;
    op_case_input(&c, PLAIT_BOOL, plait_shape_1(100), 2);
    assert_int_equal(op_case_agree(&c, 0), 1);
    op_case_end(&c);
}

/* --- random, print, assert ------------------------------------------------------------------------------------- */

static void test_random(void **state) {
    (void)state;
    enum { N = 40000 };
    static float first[N], again[N];
    bench        b = begin();
    plait_value  u = plait_op_random_uniform(b.g, PLAIT_F32, plait_shape_1(N), -1, 3),
                n = plait_op_random_normal(b.g, PLAIT_F64, plait_shape_1(30000), 5, 2);
    double sum = 0, squares = 0;
    memcpy(first, run(&b, u).data, sizeof first);
    memcpy(again, run(&b, u).data, sizeof again); /* a new session with the same seed */
    assert_memory_equal(first, again, sizeof first);
    b.opts.seed++;
    memcpy(again, run(&b, u).data, sizeof again);
    assert_memory_not_equal(first, again, sizeof first);
    for (int i = 0; i < N; i++) {
        assert_true(first[i] >= -1 && first[i] < 3);
        sum += (double)first[i];
    }
    assert_true(fabs(sum / N - 1) < 0.03);
    const double *x = run(&b, n).data;
    sum = 0;
    for (int i = 0; i < 30000; i++) {
        sum += x[i];
        squares += (x[i] - 5) * (x[i] - 5);
    }
    assert_true(fabs(sum / 30000 - 5) < 0.06 && fabs(squares / 30000 - 4) < 0.2);
    plait_graph_destroy(&b.g);
}

static void hear(void *user, plait_log_level level, int32_t rank, const char *room, const char *text) {
    (void)rank, (void)level, (void)room;
    snprintf(user, 200, "%s", text);
}

static void test_print_and_assert(void **state) {
    (void)state;
    char            heard[200] = "";
    const plait_log log = { .fn = hear, .user = heard, .max_level = PLAIT_LOG_INFO };
    bench           b = begin();
    plait_error     err;
    plait_session  *s = NULL;
    b.opts.log = &log;
    const plait_value x = numbers(&b, PLAIT_F32, plait_shape_1(3), (double[]){ 1, -2.5, 3 });
    EXPECT(&b, plait_op_print(b.g, x, "weights"), 1);
    assert_string_equal(heard, "weights f32[3]: 1 -2.5 3");
    const plait_value limit = plait_graph_scalar(b.g, PLAIT_F32, 3), low = plait_op_less(b.g, x, limit);
    EXPECT(&b, plait_op_assert(b.g, plait_op_less_equal(b.g, x, limit), "at most 3"), 1);
    plait_fetch fetch = { .value = plait_op_assert(b.g, low, "below 3") };
    assert_int_equal(plait_session_create(b.g, &b.opts, &s, &err), PLAIT_OK);
    assert_int_equal(plait_session_run(s, NULL, 0, &fetch, 1, NULL, 0, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "below 3 (element 2)"));
    plait_session_destroy(&s);
    plait_graph_destroy(&b.g);
}

/* --- refusals -------------------------------------------------------------------------------------------------- */

static void assert_refused(bench *b, plait_value value, const char *part) {
    plait_error err;
    assert_int_equal(value, PLAIT_NONE);
    assert_int_equal(plait_graph_check(b->g, &err), PLAIT_ESHAPE);
    if (strstr(err.text, part) == NULL) fail_msg("'%s' does not say '%s'", err.text, part);
    plait_graph_destroy(&b->g);
    *b = begin();
}

static plait_value any(const bench *b, plait_type type) {
    return plait_graph_placeholder(b->g, "x", type, plait_shape_2(2, 3));
}

static void test_refuses(void **state) {
    (void)state;
    const int64_t two[] = { 2 }, twice[] = { 0, -2 }, zero[] = { 0 };
    bench         b = begin();
    assert_refused(&b, plait_op_sum(b.g, any(&b, PLAIT_F32), 1, two, 0), "axis 2 of an array of 2 axes");
    assert_refused(&b, plait_op_sum(b.g, any(&b, PLAIT_F32), 2, twice, 0), "axis 0 twice");
    assert_refused(&b, plait_op_sum(b.g, any(&b, PLAIT_BOOL), 0, NULL, 0), "cast them to i64");
    assert_refused(&b, plait_op_mean(b.g, any(&b, PLAIT_I64), 0, NULL, 0), "the mean is of floats");
    assert_refused(&b, plait_op_exp(b.g, any(&b, PLAIT_I64)), "not for elements of type i64");
    assert_refused(&b, plait_op_div(b.g, any(&b, PLAIT_I32), plait_graph_scalar(b.g, PLAIT_I32, 2)),
                   "not for elements of type i32");
    assert_refused(&b, plait_op_logical_not(b.g, any(&b, PLAIT_F32)), "not for elements of type f32");
    assert_refused(&b,
                   plait_op_where(b.g, any(&b, PLAIT_F32), plait_graph_scalar(b.g, PLAIT_F32, 2),
                                  plait_graph_scalar(b.g, PLAIT_F32, 2)),
                   "not bool");
    assert_refused(&b, plait_op_cast(b.g, any(&b, PLAIT_F32), PLAIT_U8), "do not compute with u8");
    assert_refused(&b, plait_op_reshape(b.g, any(&b, PLAIT_F32), plait_shape_2(4, -1)),
                   "6 elements do not fill rows of 4");
    assert_refused(&b, plait_op_reshape(b.g, any(&b, PLAIT_F32), plait_shape_1(7)), "6 elements do not fill 7 places");
    assert_refused(&b, plait_op_squeeze(b.g, any(&b, PLAIT_F32), 1, zero), "axis 0 has length 2, not 1");
    assert_refused(&b, plait_op_split(b.g, any(&b, PLAIT_F32), 1, 2, NULL), "length 3 in 2 equal parts");
    assert_refused(&b, plait_op_split(b.g, any(&b, PLAIT_F32), 1, 2, (int64_t[]){ 1, 1 }),
                   "parts of 2 together, axis 1 has length 3");
    assert_refused(&b, plait_op_slice(b.g, any(&b, PLAIT_F32), 1, zero, two, zero), "a step of 0");
    assert_refused(&b, plait_op_pad(b.g, any(&b, PLAIT_F32), 1, zero, zero, 0), "before and after of 1 and 1 axes");
    assert_refused(&b, plait_op_extend(b.g, any(&b, PLAIT_F32), 0, -1, 0, "edge"), "cannot extend by -1");
    assert_refused(&b, plait_op_resize(b.g, any(&b, PLAIT_I64), 0, 4, "linear"), "not for elements of type i64");
    assert_refused(&b, plait_op_resize(b.g, any(&b, PLAIT_F32), 0, -1, "linear"), "a scale of 0");
    assert_refused(&b, plait_op_transpose(b.g, any(&b, PLAIT_F32), 1, zero), "perm has 1 of 2 axes");
    assert_refused(&b, plait_op_one_hot(b.g, any(&b, PLAIT_F32), 3, PLAIT_F32), "numbers of type i64");
    assert_refused(&b, plait_op_top_k(b.g, any(&b, PLAIT_F32), 4), "the largest 4 of 3");
    assert_refused(&b, plait_op_assert(b.g, any(&b, PLAIT_F32), "no"), "asserts a bool");
    assert_refused(&b, plait_op_random_normal(b.g, PLAIT_I32, plait_shape_1(3), 0, 1), "random numbers are floats");
    const plait_value x = any(&b, PLAIT_F32);
    const plait_value parts[] = { x, plait_graph_scalar(b.g, PLAIT_F32, 1) };
    assert_refused(&b, plait_op_concat(b.g, 2, parts, 0), "input 1 differs");
    plait_graph_destroy(&b.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_choices_and_types),
        cmocka_unit_test(test_shapes_and_axes),
        cmocka_unit_test(test_reductions_agree),
        cmocka_unit_test(test_other_kernels_agree),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_print_and_assert),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
