/* gradcheck.h - gradients of whole graphs against central differences in double, through sessions as a program uses
 * them.
 *
 * A check is a graph with float inputs x and a scalar L. Its symbolic derivative is compared with (L(x + h) - L(x - h))
 * / 2 h, element by element or along a direction. Where a kink lies between x - h and x + h that says nothing, so it is
 * enough that one of a few h agrees: a wrong rule agrees with none. For the second order L is the sum of <dL/dx, q>, q
 * from a seed. */
#ifndef PLI_TESTS_GRADCHECK_H
#define PLI_TESTS_GRADCHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <plait/session.h>

#include "base/base.h"
#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { GC_INPUTS = 12, GC_ELEMENTS = 4096 };

typedef struct gc {
    plait_graph   *g;
    plait_session *s;
    char           name[200]; /* what is checked: for texts */
    pli_random     random;
    plait_value    in[GC_INPUTS];
    plait_tensor   data[GC_INPUTS];
    int32_t        n_in;
} gc;

static inline void gc_begin(gc *c, const char *name, uint64_t seed) {
    memset(c, 0, sizeof *c);
    snprintf(c->name, sizeof c->name, "%s", name);
    c->random = pli_random_at(seed, PLI_RANDOM_DATA, 3, 0);
    assert_int_equal(plait_graph_create(NULL, 0, &c->g, NULL), PLAIT_OK);
}

static inline void gc_end(gc *c) {
    plait_session_destroy(&c->s);
    plait_graph_destroy(&c->g);
    for (int32_t i = 0; i < c->n_in; i++) free(c->data[i].data);
}

static inline void gc_check_graph(const gc *c) {
    plait_error err;
    if (plait_graph_check(c->g, &err) != PLAIT_OK) fail_msg("%s: %s", c->name, err.text);
}

/* A value of kind f: floats away from 0; p: above 0; u: between 0 and 1; b: bools; i, j: i64, i32 below `below`. */
static inline double gc_draw(gc *c, char kind, int64_t below) {
    const double u = pli_random_f64(&c->random);
    if (kind == 'b') return u < 0.5;
    if (kind == 'i' || kind == 'j') return floor(u * (double)below);
    if (kind == 'u') return 0.05 + 0.9 * u;
    const double size = 0.2 + 1.6 * u;
    return kind == 'p' || pli_random_f64(&c->random) < 0.5 ? size : -size;
}

/* A fed input; unknown: the graph is told its rank and none of its lengths. */
static inline plait_value gc_input(gc *c, char kind, int64_t below, plait_shape shape, bool unknown) {
    const plait_type type = kind == 'b' ? PLAIT_BOOL : kind == 'i' ? PLAIT_I64 : kind == 'j' ? PLAIT_I32 : PLAIT_F64;
    const int64_t    n = plait_shape_elements(&shape);
    plait_shape      told = shape;
    char             name[16];
    assert_true(c->n_in < GC_INPUTS && n <= GC_ELEMENTS);
    for (int32_t i = 0; unknown && i < told.rank; i++) told.dim[i] = PLAIT_ANY;
    plait_tensor *t = &c->data[c->n_in];
    *t = plait_tensor_of(type, shape, malloc((size_t)n * plait_type_bytes(type) + 1));
    for (int64_t i = 0; i < n; i++) pli_element_set(t, i, gc_draw(c, kind, below));
    snprintf(name, sizeof name, "in%d", c->n_in);
    return c->in[c->n_in++] = plait_graph_placeholder(c->g, name, type, told);
}

/* Computes values; out [n], each with memory of its own, to be freed. */
static inline void gc_run(gc *c, const plait_value *values, int32_t n, plait_tensor *out) {
    plait_feed  feeds[GC_INPUTS];
    plait_fetch fetches[GC_INPUTS];
    plait_error err;
    gc_check_graph(c);
    if (c->s == NULL && plait_session_create(c->g, NULL, &c->s, &err) != PLAIT_OK)
        fail_msg("%s: %s", c->name, err.text);
    for (int32_t i = 0; i < c->n_in; i++) feeds[i] = (plait_feed){ c->in[i], c->data[i] };
    for (int32_t i = 0; i < n; i++)
        fetches[i] =
            (plait_fetch){ .value = values[i], .tensor.data = malloc(GC_ELEMENTS * 8), .bytes = GC_ELEMENTS * 8 };
    if (plait_session_run(c->s, feeds, c->n_in, fetches, n, NULL, 0, &err) != PLAIT_OK)
        fail_msg("%s: %s", c->name, err.text);
    for (int32_t i = 0; i < n; i++) out[i] = fetches[i].tensor;
}

static inline double gc_scalar(gc *c, plait_value value) {
    plait_tensor out;
    gc_run(c, &value, 1, &out);
    const double x = pli_element(&out, 0);
    free(out.data);
    return x;
}

/* The sum over the floats among values of <value, weights from the seed>, as a value of the graph. */
static inline plait_value gc_total(gc *c, const plait_value *values, int32_t n) {
    plait_value total = plait_graph_scalar(c->g, PLAIT_F64, 0);
    for (int32_t i = 0; i < n; i++) {
        plait_tensor t;
        if (plait_graph_describe(c->g, values[i]).type != PLAIT_F64) continue;
        gc_run(c, &values[i], 1, &t);
        for (int64_t k = 0; k < plait_shape_elements(&t.shape); k++) pli_element_set(&t, k, gc_draw(c, 'f', 0));
        const plait_value weighted = pli_op2(c->g, &pli_op_mul, values[i], plait_graph_constant(c->g, t));
        free(t.data);
        total = pli_op2(c->g, &pli_op_add, total, plait_graph_op(c->g, "sum", &weighted, 1, NULL, 0));
    }
    gc_check_graph(c);
    return total;
}

static inline bool gc_close(double a, double b, double tolerance) {
    return fabs(a - b) <= tolerance * (1 + fabs(a) + fabs(b));
}

/* total by element i of input k, against got. */
static inline void gc_element(gc *c, plait_value total, int32_t k, int64_t i, double got, int order) {
    double *x = (double *)c->data[k].data + i, was = *x, slope = 0;
    for (double h = 1e-5; h >= 1e-7; h *= 0.1) {
        *x = was + h;
        const double above = gc_scalar(c, total);
        *x = was - h;
        slope = (above - gc_scalar(c, total)) / (2 * h);
        *x = was;
        if (gc_close(got, slope, 1e-6)) return;
    }
    fail_msg("%s: order %d by input %d [%lld]: %.12g, differences say %.12g", c->name, order, k, (long long)i, got,
             slope);
}

/* total along a direction in all float inputs at once; d: the derivatives by them. */
static inline void gc_direction(gc *c, plait_value total, const plait_tensor *d, int order) {
    static double was[GC_INPUTS][GC_ELEMENTS], v[GC_INPUTS][GC_ELEMENTS];
    double        got = 0, slope = 0;
    for (int32_t k = 0, at = 0; k < c->n_in; k++) {
        if (c->data[k].type != PLAIT_F64) continue;
        for (int64_t i = 0; i < plait_shape_elements(&c->data[k].shape); i++) {
            was[k][i] = ((double *)c->data[k].data)[i];
            v[k][i] = gc_draw(c, 'f', 0);
            got += v[k][i] * pli_element(&d[at], i);
        }
        at++;
    }
    for (double h = 1e-5; h >= 1e-7; h *= 0.1) {
        double at[2];
        for (int side = 0; side < 2; side++) {
            for (int32_t k = 0; k < c->n_in; k++)
                for (int64_t i = 0; c->data[k].type == PLAIT_F64 && i < plait_shape_elements(&c->data[k].shape); i++)
                    ((double *)c->data[k].data)[i] = was[k][i] + (side == 0 ? h : -h) * v[k][i];
            at[side] = gc_scalar(c, total);
        }
        slope = (at[0] - at[1]) / (2 * h);
        if (gc_close(got, slope, 1e-6)) break;
    }
    for (int32_t k = 0; k < c->n_in; k++)
        if (c->data[k].type == PLAIT_F64)
            memcpy(c->data[k].data, was[k], (size_t)plait_shape_elements(&c->data[k].shape) * sizeof(double));
    if (!gc_close(got, slope, 1e-6))
        fail_msg("%s: order %d along a direction: %.12g, differences say %.12g", c->name, order, got, slope);
}

/* Derivatives of total to the given order; every element up to `elements` of an input, or (0) along a direction. */
static inline void gc_check(gc *c, plait_value total, int orders, int64_t elements) {
    for (int order = 1; order <= orders; order++) {
        plait_value  x[GC_INPUTS], dx[GC_INPUTS];
        plait_tensor d[GC_INPUTS];
        int32_t      n = 0;
        for (int32_t k = 0; k < c->n_in; k++)
            if (c->data[k].type == PLAIT_F64) x[n++] = c->in[k];
        if (n == 0) return;
        (void)plait_graph_gradients(c->g, total, n, x, dx);
        gc_run(c, dx, n, d);
        if (elements == 0) gc_direction(c, total, d, order);
        for (int32_t k = 0, at = 0; k < c->n_in && elements > 0; k++) {
            if (c->data[k].type != PLAIT_F64) continue;
            const int64_t all = plait_shape_elements(&c->data[k].shape), step = all > elements ? all / elements : 1;
            if (plait_shape_elements(&d[at].shape) != all)
                fail_msg("%s: order %d by input %d: of another shape", c->name, order, k);
            for (int64_t i = 0; i < all; i += step) gc_element(c, total, k, i, pli_element(&d[at], i), order);
            at++;
        }
        for (int32_t i = 0; i < n; i++) free(d[i].data);
        if (order < orders) total = gc_total(c, dx, n);
    }
}

/* --- an op by texts -------------------------------------------------------------------------------------------- */

/* "2,3" -> a shape; answers what comes behind it. */
static inline const char *gc_shape(const char *text, plait_shape *shape) {
    shape->rank = 0;
    while (*text >= '0' && *text <= '9') {
        char *end;
        shape->dim[shape->rank++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return text;
}

/* "axis=1 axes=0,2 type=f64": the attributes of an op, of which ints lie in `ints`. */
static inline int32_t gc_attrs(const plait_op *op, const char *text, plait_attr *attrs, int64_t *ints, char *texts) {
    int32_t n = 0;
    for (; *text != '\0'; text += strspn(text, " ")) {
        const size_t name = strcspn(text, "="), length = strcspn(text, " ");
        const char  *value = text + name + 1;
        int32_t      k = 0;
        while (k < op->n_attrs &&
               (strlen(op->attrs[k].preset.name) != name || memcmp(op->attrs[k].preset.name, text, name) != 0))
            k++;
        if (k == op->n_attrs) fail_msg("%s has no attribute as in '%s'", op->name, text);
        plait_attr *a = &attrs[n++];
        *a = op->attrs[k].preset;
        if (a->kind == PLAIT_ATTR_INT) a->u.i = strtoll(value, NULL, 10);
        if (a->kind == PLAIT_ATTR_FLOAT) a->u.f = strtod(value, NULL);
        if (a->kind == PLAIT_ATTR_TYPE)
            for (int t = 0; t < PLAIT_TYPES; t++)
                if (strncmp(plait_type_name((plait_type)t), value, strcspn(value, " ")) == 0) a->u.i = t;
        if (a->kind == PLAIT_ATTR_TEXT) {
            memcpy(texts, value, strcspn(value, " "));
            texts[strcspn(value, " ")] = '\0';
            a->u.text = texts;
            texts += 40;
        }
        if (a->kind == PLAIT_ATTR_INTS) {
            a->u.ints = ints;
            a->n = 0;
            for (const char *at = value; *at != ' ' && *at != '\0';) {
                char *end;
                ints[a->n++] = strtoll(at, &end, 10);
                at = *end == ',' ? end + 1 : end;
            }
            ints += a->n;
        }
        text += length;
    }
    return n;
}

/* inputs: "f2,3; i5:4; b2" - kind (f if left out), for i the bound, and lengths. Answers output 0. */
static inline plait_value gc_op(gc *c, const char *name, const char *inputs, const char *attr_text, bool unknown) {
    const plait_op *op = pli_op_find(c->g, name);
    plait_attr      attrs[16];
    int64_t         ints[64], below = 0;
    char            texts[200];
    const int32_t   first = c->n_in;
    if (op == NULL) fail_msg("there is no op %s", name);
    for (const char *at = inputs; *at != '\0'; at += strspn(at, "; ")) {
        plait_shape shape;
        char        kind = 'f', *end;
        if (*at >= 'a' && *at <= 'z') kind = *at++;
        if (kind == 'i' || kind == 'j') {
            below = strtoll(at, &end, 10);
            at = end + (*end == ':');
        }
        if (*at == '-') { /* a scalar */
            shape.rank = 0;
            at++;
        } else
            at = gc_shape(at, &shape);
        gc_input(c, kind, below, shape, unknown);
    }
    const int32_t     n = gc_attrs(op, attr_text, attrs, ints, texts);
    const plait_value y = plait_graph_op(c->g, name, c->in + first, c->n_in - first, attrs, n);
    gc_check_graph(c);
    return y;
}

/* One use of an op, with lengths known and unknown. */
static inline void gc_case(const char *op, const char *inputs, const char *attrs, int orders) {
    for (int unknown = 0; unknown < 2; unknown++) {
        gc   c;
        char name[200];
        snprintf(name, sizeof name, "%s (%s) %s%s", op, inputs, attrs, unknown ? ", lengths unknown" : "");
        gc_begin(&c, name, 11);
        const plait_value y = gc_op(&c, op, inputs, attrs, unknown);
        plait_value       out[64];
        const int32_t     n = pli_value_node(c.g, y)->n_values;
        for (int32_t i = 0; i < n; i++) out[i] = y + i;
        gc_check(&c, gc_total(&c, out, n), orders, 12);
        gc_end(&c);
    }
}

#endif
