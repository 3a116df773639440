/* op_case.h - one use of an op outside of any graph, for tests of kernels: its inputs are filled from a seed, and
 * what each kernel that suits computes is held against the last one of the list, the reference. Items run last to
 * first, in scratch full of rubbish. */
#ifndef PLI_TESTS_OP_CASE_H
#define PLI_TESTS_OP_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "graph/kernel.h"
#include "graph/ops/ops.h"

typedef struct op_case {
    const plait_op *op;
    plait_tensor    in[12], out[8];
    plait_attr      attr[16];
    int32_t         n_in;
    uint32_t        apart; /* bit k: output k is not differentiated */
    plait_error     error;
} op_case;

static inline op_case op_case_of(const plait_op *op) {
    op_case c = { .op = op };
    assert_int_equal(pli_op_check(op, &c.error), PLAIT_OK);
    for (int32_t i = 0; i < op->n_attrs; i++) c.attr[i] = op->attrs[i].preset;
    return c;
}

static inline plait_attr *op_case_attr(op_case *c, const char *name) {
    for (int32_t i = 0; i < c->op->n_attrs; i++)
        if (strcmp(c->attr[i].name, name) == 0) return &c->attr[i];
    fail_msg("%s has no attribute %s", c->op->name, name);
    return NULL;
}

/* Of floats: normal; of others: 0 <= x < below. */
static inline plait_tensor *op_case_input(op_case *c, plait_type type, plait_shape shape, uint64_t below) {
    plait_tensor *t = &c->in[c->n_in++];
    const int64_t n = plait_shape_elements(&shape);
    pli_random    r = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)c->n_in, (uint64_t)n);
    *t = (plait_tensor){ .type = type, .shape = shape, .data = malloc((size_t)n * plait_type_bytes(type) + 1) };
    for (int64_t i = 0; i < n; i++)
        pli_element_set(t, i, pli_type_is_float(type) ? pli_random_normal(&r) : (double)pli_random_below(&r, below));
    return t;
}

static inline plait_call op_case_call(op_case *c) {
    const int32_t n_out = c->op->outputs > 0 ? c->op->outputs : (int32_t)c->attr[0].u.i;
    return (plait_call){ .in = c->in,
                         .out = c->out,
                         .n_in = c->n_in,
                         .n_out = n_out,
                         .attr = c->attr,
                         .user = c->op->user,
                         .seed = 1,
                         .step = 2,
                         .error = &c->error };
}

static inline void op_case_free(plait_tensor *t, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        free(t[i].data);
        t[i].data = NULL;
    }
}

static inline plait_status op_case_infer(op_case *c) {
    const plait_call call = op_case_call(c);
    op_case_free(c->out, 8);
    return c->op->infer != NULL ? c->op->infer(&call) : pli_infer_map(c->op, &call);
}

static inline void op_case_end(op_case *c) {
    op_case_free(c->in, c->n_in);
    op_case_free(c->out, 8);
    c->n_in = 0;
}

/* Computes c->out, anew. */
static inline plait_status op_case_run(op_case *c, const plait_kernel *k) {
    plait_call call = op_case_call(c);
    for (int32_t i = 0; i < call.n_out; i++) {
        const size_t bytes = (size_t)plait_shape_elements(&c->out[i].shape) * plait_type_bytes(c->out[i].type);
        free(c->out[i].data);
        c->out[i].data = malloc(bytes + 1);
        memset(c->out[i].data, 0xff, bytes + 1);
    }
    if (k->open != NULL && k->open(&call, &call.state) != PLAIT_OK) return c->error.code;
    const size_t scratch = k->scratch != NULL ? k->scratch(&call) : 0;
    call.scratch = aligned_alloc(64, (scratch + 64) / 64 * 64);
    plait_status status = PLAIT_OK;
    for (int64_t item = (k->items != NULL ? k->items(&call) : 1) - 1; item >= 0 && status == PLAIT_OK; item--) {
        memset(call.scratch, 0xff, scratch);
        status = k->run(&call, item);
    }
    free(call.scratch);
    if (k->close != NULL) k->close(call.state);
    return status;
}

static inline const plait_kernel *op_case_ref(const op_case *c) {
    int32_t last = 0;
    while (c->op->kernels[last + 1] != NULL) last++;
    assert_string_equal(c->op->kernels[last]->name, "ref");
    return c->op->kernels[last];
}

/* Answers how many kernels beside the reference suit. Each agrees with it: |x - ref| <= tolerance (1 + |ref|). */
static inline int32_t op_case_agree(op_case *c, double tolerance) {
    int32_t n = 0;
    if (op_case_infer(c) != PLAIT_OK) fail_msg("%s: %s", c->op->name, c->error.text);
    const plait_call call = op_case_call(c);
    assert_int_equal(op_case_run(c, op_case_ref(c)), PLAIT_OK);
    plait_tensor want[8];
    memcpy(want, c->out, sizeof want);
    for (int32_t i = 0; i < 8; i++) c->out[i].data = NULL;
    for (int32_t k = 0; c->op->kernels[k + 1] != NULL; k++) {
        if (c->op->kernels[k]->suits != NULL && !c->op->kernels[k]->suits(&call)) continue;
        n++;
        if (op_case_run(c, c->op->kernels[k]) != PLAIT_OK) fail_msg("%s: %s", c->op->kernels[k]->name, c->error.text);
        for (int32_t o = 0; o < call.n_out; o++) {
            for (int64_t i = 0; i < plait_shape_elements(&want[o].shape); i++) {
                const double x = pli_element(&c->out[o], i), y = pli_element(&want[o], i);
                if (x != y && !(fabs(x - y) <= tolerance * (1 + fabs(y))))
                    fail_msg("%s: %s: output %d [%lld] is %.9g, not %.9g", c->op->name, c->op->kernels[k]->name, o,
                             (long long)i, x, y);
            }
        }
    }
    op_case_free(want, 8);
    return n;
}

/* infer answers ESHAPE (or code), and its text has part. */
static inline void op_case_refused(op_case *c, plait_status code, const char *part) {
    assert_int_equal(op_case_infer(c), code);
    if (strstr(c->error.text, part) == NULL) fail_msg("'%s' does not say '%s'", c->error.text, part);
    op_case_end(c);
}

static inline plait_shape shape3(int64_t a, int64_t b, int64_t c) { return (plait_shape){ 3, { a, b, c } }; }

#endif
