/* Convolutions: columns and products against plain sums, over strides, paddings, dilations, groups and extreme lengths.
 * The three ops are each other's first and second gradients. */
#include "graph/kernel_set.h"
#include "op_gradient.h"

typedef struct shape_of_conv {
    int64_t images, channels, in[2], filters, tap[2], stride[2], padding[4], dilation[2], groups;
} shape_of_conv;

static const shape_of_conv convs[] = {
    { 2, 3, { 8, 7 }, 4, { 3, 3 }, { 1, 1 }, { 1, 1, 1, 1 }, { 1, 1 }, 1 },
    { 2, 1, { 9, 9 }, 40, { 5, 3 }, { 2, 3 }, { 2, 0, 1, 3 }, { 1, 1 }, 1 }, /* filters divided into items */
    { 1, 6, { 7, 8 }, 4, { 2, 3 }, { 1, 2 }, { 0, 1, 0, 1 }, { 2, 2 }, 2 },
    { 3, 4, { 5, 5 }, 4, { 3, 3 }, { 1, 1 }, { 1, 1, 1, 1 }, { 1, 1 }, 4 }, /* one channel a group */
    { 2, 5, { 4, 6 }, 3, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 }, { 1, 1 }, 1 }, /* the image is its own columns */
    { 2, 5, { 4, 6 }, 3, { 1, 1 }, { 2, 2 }, { 1, 1, 1, 1 }, { 1, 1 }, 1 },
    { 1, 1, { 1, 1 }, 1, { 3, 3 }, { 1, 1 }, { 4, 4, 4, 4 }, { 1, 1 }, 1 },  /* patches in the padding only */
    { 1, 19, { 3, 3 }, 2, { 3, 3 }, { 1, 1 }, { 0, 0, 0, 0 }, { 1, 1 }, 1 }, /* channels divided into items */
    { 0, 2, { 4, 4 }, 3, { 3, 3 }, { 1, 1 }, { 0, 0, 0, 0 }, { 1, 1 }, 1 },
    { 1, 2, { 40, 300 }, 2, { 3, 3 }, { 1, 1 }, { 1, 1, 1, 1 }, { 1, 1 }, 1 }, /* more than one block of rows */
};

static plait_shape image_of(const shape_of_conv *s) {
    return plait_shape_4(s->images, s->channels, s->in[0], s->in[1]);
}
static plait_shape filter_of(const shape_of_conv *s) {
    return plait_shape_4(s->filters, s->channels / s->groups, s->tap[0], s->tap[1]);
}
static plait_shape out_of(const shape_of_conv *s) {
    plait_shape y = { 4, { s->images, s->filters } };
    for (int i = 0; i < 2; i++)
        y.dim[2 + i] =
            (s->in[i] + s->padding[i] + s->padding[i + 2] - (s->tap[i] - 1) * s->dilation[i] - 1) / s->stride[i] + 1;
    return y;
}

static op_case case_of(const plait_op *op, const shape_of_conv *s, plait_type type) {
    op_case c = op_case_of(op);
    op_case_attr(&c, "stride")->u.ints = s->stride;
    op_case_attr(&c, "padding")->u.ints = s->padding;
    op_case_attr(&c, "dilation")->u.ints = s->dilation;
    op_case_attr(&c, "groups")->u.i = s->groups;
    op_case_input(&c, type, op == &pli_op_conv2d_input ? filter_of(s) : image_of(s), 0);
    op_case_input(&c, type, op == &pli_op_conv2d ? filter_of(s) : out_of(s), 0);
    if (op != &pli_op_conv2d) op_case_input(&c, type, op == &pli_op_conv2d_input ? image_of(s) : filter_of(s), 0);
    return c;
}

static const plait_op *const ops[] = { &pli_op_conv2d, &pli_op_conv2d_input, &pli_op_conv2d_filter };

static void test_columns_agree(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        for (int k = 0; k < 3; k++) {
            op_case c = case_of(ops[k], &convs[i], PLAIT_F32);
            assert_int_equal(op_case_agree(&c, 1e-4), 1);
            op_case_end(&c);
        }
    op_case c = case_of(&pli_op_conv2d, &convs[9], PLAIT_F32);
    assert_int_equal(op_case_infer(&c), PLAIT_OK);
    const plait_call call = op_case_call(&c);
    assert_true(pli_op_conv2d.kernels[0]->items(&call) > 1);
    op_case_end(&c);
}

/* If the module onednn is there, its kernels compute the same sums, and each item writes the region that they name. */
static void test_module_agrees(void **state) {
    (void)state;
    void                 *module = NULL;
    const pli_kernel_set *set = NULL;
    plait_error           err = { .code = PLAIT_OK };
    if (pli_kernel_set_open("onednn", &module, &set, &err) == PLAIT_EMODULE) skip();
    assert_int_equal(err.code, PLAIT_OK);
    int32_t taken = 0;
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        for (int32_t k = 0; k < 3; k++) {
            op_case             c = case_of(ops[k], &convs[i], PLAIT_F32);
            plait_op            op = *ops[k];
            const plait_kernel *pair[] = { set->kernel[k].kernel, op_case_ref(&c), NULL };
            assert_string_equal(set->kernel[k].op, op.name);
            op.kernels = pair;
            c.op = &op;
            const int32_t suited = op_case_agree(&c, 1e-4);
            taken += suited;
            const plait_call call = op_case_call(&c);
            const int64_t    n = plait_shape_elements(&c.out[0].shape);
            int64_t          covered = 0;
            for (int64_t item = 0; suited > 0 && item < pair[0]->items(&call); item++) {
                const pli_region at = set->kernel[k].region(&call, item);
                assert_true(at.count == 1 && at.first == covered);
                covered += at.length;
            }
            assert_true(suited == 0 || covered == n);
            op_case_end(&c);
        }
    assert_true(taken >= 20);
    pli_module_close(&module);
}

static void test_module_is_refused_by_name(void **state) {
    (void)state;
    void                 *module = NULL;
    const pli_kernel_set *set = NULL;
    plait_error           err = { .code = PLAIT_OK };
    assert_int_equal(pli_kernel_set_open("onedn", &module, &set, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "did you mean 'onednn'"));
}

static void test_gradients(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) {
            op_case c = case_of(ops[k], &convs[2 * i], PLAIT_F64);
            op_case_gradients(&c, 2, 1e-6);
        }
}

static void test_refuses(void **state) {
    (void)state;
    shape_of_conv s = convs[0];
    s.groups = 2;
    op_case c = case_of(&pli_op_conv2d, &s, PLAIT_F32);
    op_case_refused(&c, PLAIT_ESHAPE, "3 channels in 2 groups");
    s = convs[2];
    s.filters = 3;
    c = case_of(&pli_op_conv2d, &s, PLAIT_F32);
    op_case_refused(&c, PLAIT_ESHAPE, "3 filters do not fall into 2 groups");
    s = convs[0];
    s.tap[1] = 10;
    c = case_of(&pli_op_conv2d, &s, PLAIT_F32);
    op_case_refused(&c, PLAIT_ESHAPE, "reaches beyond the padded image");
    s = convs[0];
    s.stride[0] = 0;
    c = op_case_of(&pli_op_conv2d);
    op_case_input(&c, PLAIT_F32, image_of(&s), 0);
    op_case_input(&c, PLAIT_F32, filter_of(&s), 0);
    op_case_attr(&c, "stride")->u.ints = s.stride;
    op_case_refused(&c, PLAIT_ESHAPE, "stride [2]");
    c = case_of(&pli_op_conv2d_input, &convs[0], PLAIT_F32);
    c.in[1].shape.dim[2]++;
    op_case_refused(&c, PLAIT_ESHAPE, "not of the shape of the convolution's output");
    c = case_of(&pli_op_conv2d, &convs[0], PLAIT_F32);
    c.in[0].shape.dim[2] = PLAIT_ANY; /* a length that is not known before a run is not refused */
    assert_int_equal(op_case_infer(&c), PLAIT_OK);
    assert_true(c.out[0].shape.dim[2] == PLAIT_ANY && c.out[0].shape.dim[3] == 7);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_agree),
        cmocka_unit_test(test_module_agrees),
        cmocka_unit_test(test_module_is_refused_by_name),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
