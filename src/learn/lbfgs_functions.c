/* The server functions of L-BFGS and OWL-QN. Each goes once over its part of the vectors, element by element. */
#include "learn/lbfgs.h"

#include <math.h>
#include <string.h>

/* The vectors of a call on one shard. */
typedef struct vectors {
    plait_type type;
    int64_t    n, free_first, free_last; /* elements; those of the intercepts */
    void      *w, *g, *q, *h, *x, *s[PLI_LBFGS_MEMORY_MAX], *y[PLI_LBFGS_MEMORY_MAX];
} vectors;

static plait_status open_vectors(const plait_slice *slice, int32_t n_slices, const void *args_bytes, size_t bytes,
                                 pli_lbfgs_args *args, vectors *v) {
    if (bytes != sizeof *args) return PLAIT_EINVAL;
    memcpy(args, args_bytes, sizeof *args);
    if (args->memory < 1 || args->memory > PLI_LBFGS_MEMORY_MAX || args->slot < 0 || args->slot >= args->memory) return PLAIT_EINVAL;
    if (n_slices != 2 + args->has_penalty + args->has_metric + args->has_old + 2 * args->memory) return PLAIT_EINVAL;
    int32_t i = 0;
    *v = (vectors){ .type = slice[0].type, .n = slice[0].rows * slice[0].cols };
    v->w = slice[i++].values;
    v->g = slice[i++].values;
    if (args->has_penalty) v->q = slice[i++].values;
    if (args->has_metric) v->h = slice[i++].values;
    if (args->has_old) v->x = slice[i++].values;
    for (int32_t j = 0; j < args->memory; j++) v->s[j] = slice[i++].values;
    for (int32_t j = 0; j < args->memory; j++) v->y[j] = slice[i++].values;
    int64_t row = args->free_row - slice[0].first; /* of this shard */
    v->free_first = v->free_last = v->n;
    if (args->free_row >= 0 && row >= 0 && row < slice[0].rows) {
        v->free_first = row * slice[0].cols;
        v->free_last = v->free_first + slice[0].cols;
    }
    return PLAIT_OK;
}

static inline double at(plait_type type, const void *vector, int64_t i) {
    return type == PLAIT_F32 ? (double)((const float *)vector)[i] : ((const double *)vector)[i];
}

static inline void put(plait_type type, void *vector, int64_t i, double x) {
    if (type == PLAIT_F32) ((float *)vector)[i] = (float)x;
    else ((double *)vector)[i] = x;
}

/* The penalty's factor on element i. */
static inline double factor(const vectors *v, int64_t i) {
    if (i >= v->free_first && i < v->free_last) return 0;
    return v->q != NULL ? at(v->type, v->q, i) : 1;
}

static inline double inverse_metric(const vectors *v, int64_t i) { return v->h != NULL ? 1 / at(v->type, v->h, i) : 1; }

/* The pseudo-gradient of smooth part + l1 |w| (Andrew and Gao, "Scalable training of L1-regularized log-linear
 * models", ICML 2007): the one-sided derivative that is steepest downhill. */
static inline double pseudo(double g, double w, double l1) {
    if (w > 0) return g + l1;
    if (w < 0) return g - l1;
    return g + l1 < 0 ? g + l1 : g - l1 > 0 ? g - l1 : 0;
}

/* "lbfgs.step": w moves along d; g becomes 0, to receive the next gradient. */
static plait_status run_step(void *user, const plait_slice *slices, int32_t n_slices, const void *args_bytes,
                             size_t bytes, void *answer, size_t answer_bytes) {
    pli_lbfgs_args  args;
    vectors         v;
    pli_lbfgs_moved moved = { 0, 0, 0 };
    (void)user;
    PLI_TRY(open_vectors(slices, n_slices, args_bytes, bytes, &args, &v));
    if (answer_bytes != sizeof moved) return PLAIT_EINVAL;
    const void *d = v.s[args.slot], *minus_g = v.y[args.slot];
    for (int64_t i = 0; i < v.n; i++) {
        double p = factor(&v, i), w;
        if (v.x != NULL && args.step > 0) {
            double x = at(v.type, v.x, i), slope = pseudo(-at(v.type, minus_g, i), x, p * args.l1);
            double side = x != 0 ? x : -slope; /* the orthant that the step must not leave */
            w = x + args.step * at(v.type, d, i);
            if (p * args.l1 > 0 && w * side <= 0) w = 0;
            put(v.type, v.w, i, w);
            moved.vmove += slope * (w - x);
        } else if (args.step != args.step_before) {
            w = at(v.type, v.w, i) + (args.step - args.step_before) * at(v.type, d, i);
            put(v.type, v.w, i, w);
        }
        w = at(v.type, v.w, i); /* as stored */
        moved.square += p * w * w;
        moved.absolute += p * fabs(w);
        put(v.type, v.g, i, 0);
    }
    memcpy(answer, &moved, sizeof moved);
    return PLAIT_OK;
}

/* "lbfgs.gradient": the step was accepted, g holds the mean gradient of the losses. Completes g, the new pair, and
 * takes the dot products that the next direction needs. */
static plait_status run_gradient(void *user, const plait_slice *slices, int32_t n_slices, const void *args_bytes,
                                 size_t bytes, void *answer, size_t answer_bytes) {
    pli_lbfgs_args args;
    vectors        v;
    pli_lbfgs_dots dots;
    (void)user;
    PLI_TRY(open_vectors(slices, n_slices, args_bytes, bytes, &args, &v));
    if (answer_bytes != sizeof dots) return PLAIT_EINVAL;
    memset(&dots, 0, sizeof dots);
    for (int64_t i = 0; i < v.n; i++) {
        double p = factor(&v, i), w = at(v.type, v.w, i);
        put(v.type, v.g, i, at(v.type, v.g, i) + args.l2 * p * w);
        double g = at(v.type, v.g, i), slope = args.l1 > 0 ? pseudo(g, w, p * args.l1) : g;
        double hinv = inverse_metric(&v, i), s = 0, y = 0;
        if (!args.first) {
            s = v.x != NULL ? w - at(v.type, v.x, i) : args.step * at(v.type, v.s[args.slot], i);
            put(v.type, v.s[args.slot], i, s);
            put(v.type, v.y[args.slot], i, at(v.type, v.y[args.slot], i) + g);
            s = at(v.type, v.s[args.slot], i);
            y = at(v.type, v.y[args.slot], i);
        }
        dots.vv += slope * slope;
        dots.vhv += slope * hinv * slope;
        for (int32_t j = 0; j < args.memory; j++) {
            if (!args.used[j]) continue;
            double sj = at(v.type, v.s[j], i), yj = at(v.type, v.y[j], i);
            dots.sy[j] += s * yj;
            dots.ys[j] += y * sj;
            dots.yhy[j] += y * hinv * yj;
            dots.sv[j] += sj * slope;
            dots.yhv[j] += yj * hinv * slope;
        }
    }
    memcpy(answer, &dots, sizeof dots);
    return PLAIT_OK;
}

/* "lbfgs.direction": d into slot `slot` of s (whose old pair is used up element by element), -g into that of y. */
static plait_status run_direction(void *user, const plait_slice *slices, int32_t n_slices, const void *args_bytes,
                                  size_t bytes, void *answer, size_t answer_bytes) {
    pli_lbfgs_args  args;
    vectors         v;
    pli_lbfgs_slope out = { 0, 0 };
    (void)user;
    PLI_TRY(open_vectors(slices, n_slices, args_bytes, bytes, &args, &v));
    if (answer_bytes != sizeof out) return PLAIT_EINVAL;
    for (int64_t i = 0; i < v.n; i++) {
        double g = at(v.type, v.g, i), w = at(v.type, v.w, i);
        double slope = args.l1 > 0 ? pseudo(g, w, factor(&v, i) * args.l1) : g;
        double up = slope, along = 0;
        for (int32_t j = 0; j < args.memory; j++) {
            if (!args.used[j]) continue;
            up += args.a[j] * at(v.type, v.y[j], i);
            along += args.b[j] * at(v.type, v.s[j], i);
        }
        double d = -(args.gamma * inverse_metric(&v, i) * up + along);
        if (args.l1 > 0 && d * slope >= 0) d = 0; /* OWL-QN: keep what goes downhill */
        put(v.type, v.s[args.slot], i, d);
        put(v.type, v.y[args.slot], i, -g);
        if (v.x != NULL) put(v.type, v.x, i, w);
        out.vd += slope * d;
        out.dd += d * d;
    }
    memcpy(answer, &out, sizeof out);
    return PLAIT_OK;
}

const plait_function pli_lbfgs_functions[] = {
    { .name = "lbfgs.step", .updates = 1, .run = run_step },
    { .name = "lbfgs.gradient", .updates = 1, .run = run_gradient },
    { .name = "lbfgs.direction", .updates = 1, .run = run_direction },
};
const int32_t pli_lbfgs_n_functions = sizeof pli_lbfgs_functions / sizeof *pli_lbfgs_functions;
