/* The server functions of L-BFGS and OWL-QN. Each goes once over its part of the vectors, some elements at a time, in
 * double precision. Under --reduce exact its sums are cells, and each element's term is added to them by itself, so the
 * result does not depend on how the vectors are cut. */
#include "learn/solve/lbfgs.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "learn/solve/lbfgs_run.h"
#include "tensor/exact_cells.h"
#include "tensor/tensor.h"

enum { STRIP = 256 };

/* The vectors of a call on one shard. */
typedef struct vectors {
    plait_type type;
    bool       packed;                   /* s and y share the words of s, as bfloat16     */
    int64_t    n, free_first, free_last; /* elements; the intercepts are first .. last - 1 */
    void      *w, *g, *q, *h, *o, *x, *s[PLI_LBFGS_MEMORY_MAX], *y[PLI_LBFGS_MEMORY_MAX];
} vectors;

static plait_status open_vectors(const plait_slice *slice, int32_t n_slices, const void *args_bytes, size_t bytes,
                                 pli_lbfgs_args *args, vectors *v) {
    if (bytes != sizeof *args) return PLAIT_EINVAL;
    memcpy(args, args_bytes, sizeof *args);
    if (args->memory < 1 || args->memory > PLI_LBFGS_MEMORY_MAX || args->slot < 0 || args->slot >= args->memory)
        return PLAIT_EINVAL;
    if (n_slices != 4 + args->has_penalty + args->has_old + (args->packed ? 1 : 2) * args->memory) return PLAIT_EINVAL;
    if (args->packed && slice[0].type != PLAIT_F32) return PLAIT_EINVAL;
    int32_t i = 0;
    *v = (vectors){ .type = slice[0].type, .packed = args->packed, .n = slice[0].rows * slice[0].cols };
    v->w = slice[i++].values;
    v->g = slice[i++].values;
    if (args->has_penalty) v->q = slice[i++].values;
    v->h = slice[i++].values;
    v->o = slice[i++].values;
    if (args->has_old) v->x = slice[i++].values;
    for (int32_t j = 0; j < args->memory; j++) v->s[j] = slice[i++].values;
    for (int32_t j = 0; !args->packed && j < args->memory; j++) v->y[j] = slice[i++].values;
    int64_t row = args->free_row - slice[0].first; /* of this shard */
    v->free_first = v->free_last = v->n;
    if (args->free_row >= 0 && row >= 0 && row < slice[0].rows) {
        v->free_first = row * slice[0].cols;
        v->free_last = v->free_first + slice[0].cols;
    }
    return PLAIT_OK;
}

/* --- strips: elements [first, first + n) of a vector ------------------------------------------------------- */

static void load(const vectors *v, const void *vector, int64_t first, int64_t n, double *out) {
    const float  *f32 = vector;
    const double *f64 = vector;
    if (v->type == PLAIT_F64) memcpy(out, f64 + first, (size_t)n * sizeof *out);
    else
        for (int64_t i = 0; i < n; i++) out[i] = (double)f32[first + i];
}

/* Stores x, and sets x to the values as stored. */
static void store(const vectors *v, void *vector, int64_t first, int64_t n, double *x) {
    float  *f32 = vector;
    double *f64 = vector;
    if (v->type == PLAIT_F64) memcpy(f64 + first, x, (size_t)n * sizeof *x);
    else
        for (int64_t i = 0; i < n; i++) x[i] = (double)(f32[first + i] = (float)x[i]);
}

/* The nearest bfloat16 of a finite number, as the upper half of a word. */
static inline uint32_t upper_half(double x) {
    float    f = (float)x;
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    return (word + 0x7fff + (word >> 16 & 1)) & 0xffff0000;
}

static inline double of_upper_half(uint32_t word) {
    float f;
    word &= 0xffff0000;
    memcpy(&f, &word, sizeof f);
    return (double)f;
}

/* Loads the pair in slot j. Until y is there, s is the direction. */
static void load_pair(const vectors *v, int32_t j, int64_t first, int64_t n, double *s, double *y) {
    const uint32_t *word = v->s[j];
    if (!v->packed) {
        load(v, v->s[j], first, n, s);
        load(v, v->y[j], first, n, y);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        s[i] = of_upper_half(word[first + i]);
        y[i] = of_upper_half(word[first + i] << 16);
    }
}

/* Stores s and y, and sets them to the values as stored. */
static void store_pair(const vectors *v, int32_t j, int64_t first, int64_t n, double *s, double *y) {
    uint32_t *word = v->s[j];
    if (!v->packed) {
        store(v, v->s[j], first, n, s);
        store(v, v->y[j], first, n, y);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint32_t of_s = upper_half(s[i]), of_y = upper_half(y[i]);
        word[first + i] = of_s | of_y >> 16;
        s[i] = of_upper_half(of_s);
        y[i] = of_upper_half(of_y);
    }
}

/* The penalty's factors. */
static void load_factors(const vectors *v, int64_t first, int64_t n, double *p) {
    if (v->q != NULL) load(v, v->q, first, n, p);
    for (int64_t i = 0; v->q == NULL && i < n; i++) p[i] = 1;
    for (int64_t i = v->free_first > first ? v->free_first : first; i < v->free_last && i < first + n; i++)
        p[i - first] = 0;
}

static void load_inverse_metric(const vectors *v, int64_t first, int64_t n, double *inverse) {
    load(v, v->h, first, n, inverse);
    for (int64_t i = 0; i < n; i++) inverse[i] = 1 / inverse[i];
}

/* The pseudo-gradient of smooth part + l1 |w| (Andrew and Gao, "Scalable training of L1-regularized log-linear
 * models", ICML 2007): the one-sided derivative that is steepest downhill. */
static inline double pseudo(double g, double w, double l1) {
    if (w > 0) return g + l1;
    if (w < 0) return g - l1;
    return g + l1 < 0 ? g + l1 : g - l1 > 0 ? g - l1 : 0;
}

static void load_slopes(const vectors *v, double l1, int64_t first, int64_t n, const double *g, double *slope) {
    double w[STRIP], p[STRIP];
    memcpy(slope, g, (size_t)n * sizeof *slope);
    if (l1 == 0) return;
    load(v, v->w, first, n, w);
    load_factors(v, first, n, p);
    for (int64_t i = 0; i < n; i++) slope[i] = pseudo(g[i], w[i], p[i] * l1);
}

static int64_t strip_of(int64_t first, int64_t end) { return end - first < STRIP ? end - first : STRIP; }

/* --- segments: pieces of one size, whatever the number of threads, whose sums are added in order ------------------ */

enum { SEGMENT = 1 << 15 };

/* The answer of a function, an array of sums: numbers, or cells. */
typedef struct sums {
    double        *number; /* NULL: cells */
    unsigned char *cell;
} sums;

static void add_terms(const sums *to, size_t sum, int64_t n, const double *term) {
    if (to->number == NULL) pli_cell_add_all(n, term, to->cell + sum * PLI_CELL_BYTES_F64);
    for (int64_t i = 0; to->number != NULL && i < n; i++) to->number[sum] += term[i];
}

static void add_dot(const sums *to, size_t sum, int64_t n, const double *x, const double *y) {
    double term[STRIP];
    if (to->number != NULL) {
        to->number[sum] += pli_kernels_get()->dot_f64(n, x, y);
        return;
    }
    for (int64_t i = 0; i < n; i++) term[i] = x[i] * y[i];
    add_terms(to, sum, n, term);
}

/* The index of a sum in an answer. */
#define SUM(answer, field) (offsetof(answer, field) / sizeof(double))

typedef void segment_fn(const vectors *v, const pli_lbfgs_args *args, int64_t first, int64_t end, const sums *to);

typedef struct call {
    vectors        v;
    pli_lbfgs_args args;
    segment_fn    *fn;
    unsigned char *sums; /* [segments, bytes] */
    int64_t        bytes;
} call;

static void run_segment(void *user, int64_t i, int32_t thread) {
    const call *c = user;
    int64_t     first = i * SEGMENT, end = first + SEGMENT < c->v.n ? first + SEGMENT : c->v.n;
    void       *at = c->sums + i * c->bytes;
    const sums  to = { .number = c->args.exact ? NULL : at, .cell = at };
    (void)thread;
    c->fn(&c->v, &c->args, first, end, &to);
}

static void merge_exactly(void *user, void *answer, const void *other, size_t answer_bytes) {
    (void)user;
    pli_cells_merge(true, (int64_t)(answer_bytes / PLI_CELL_BYTES_F64), answer, other, answer);
}

/* Runs a function over all segments. user: the pool, or NULL. expected: how many bytes the answer has as numbers. */
static plait_status run_segments(void *user, segment_fn *fn, const plait_slice *slices, int32_t n_slices,
                                 const void *args_bytes, size_t bytes, void *answer, size_t answer_bytes,
                                 size_t expected) {
    call c = { .fn = fn, .bytes = (int64_t)answer_bytes };
    PLI_TRY(open_vectors(slices, n_slices, args_bytes, bytes, &c.args, &c.v));
    if (answer_bytes != expected * (c.args.exact ? PLI_CELL_BYTES_F64 / sizeof(double) : 1)) return PLAIT_EINVAL;
    int64_t segments = (c.v.n + SEGMENT - 1) / SEGMENT;
    c.sums = pli_calloc((size_t)segments, answer_bytes);
    if (c.sums == NULL) return PLAIT_ENOMEM;
    pli_pool_for(user, segments, run_segment, &c);
    for (int64_t i = 0; i < segments; i++) {
        if (c.args.exact) merge_exactly(NULL, answer, c.sums + i * c.bytes, answer_bytes);
        for (size_t k = 0; !c.args.exact && k < answer_bytes / sizeof(double); k++)
            ((double *)answer)[k] += ((const double *)(c.sums + i * c.bytes))[k];
    }
    pli_free(c.sums);
    return PLAIT_OK;
}

/* --- "lbfgs.step": w moves along d; g becomes 0, to receive the next gradient --------------------------------- */

/* OWL-QN: steps from x along d, but not beyond the orthant where the step begins. */
static void step_in_orthant(const vectors *v, const pli_lbfgs_args *args, int64_t first, int64_t n, const double *d,
                            const double *p, double *w, double *move) {
    double x[STRIP], o[STRIP];
    load(v, v->x, first, n, x);
    load(v, v->o, first, n, o);
    for (int64_t i = 0; i < n; i++) {
        double slope = pseudo(o[i], x[i], p[i] * args->l1), side = x[i] != 0 ? x[i] : -slope;
        w[i] = x[i] + args->step * d[i];
        if (p[i] * args->l1 > 0 && w[i] * side <= 0) w[i] = 0;
        move[i] = slope * (w[i] - x[i]);
    }
}

static void step_segment(const vectors *v, const pli_lbfgs_args *args, int64_t segment, int64_t end, const sums *to) {
    bool   projected = v->x != NULL && args->step > 0;
    double d[STRIP], w[STRIP], p[STRIP], y[STRIP], zero[STRIP] = { 0 };
    for (int64_t first = segment, n; first < end; first += n) {
        n = strip_of(first, end);
        load(v, v->w, first, n, w);
        load_factors(v, first, n, p);
        if (projected || args->step != args->step_before) {
            load_pair(v, args->slot, first, n, d, y);
            if (projected) step_in_orthant(v, args, first, n, d, p, w, y);
            if (projected) add_terms(to, SUM(pli_lbfgs_moved, vmove), n, y);
            for (int64_t i = 0; !projected && i < n; i++) w[i] += (args->step - args->step_before) * d[i];
            store(v, v->w, first, n, w);
        }
        for (int64_t i = 0; i < n; i++) {
            y[i] = p[i] * w[i] * w[i];
            d[i] = p[i] * fabs(w[i]);
        }
        add_terms(to, SUM(pli_lbfgs_moved, square), n, y);
        add_terms(to, SUM(pli_lbfgs_moved, absolute), n, d);
        store(v, v->g, first, n, zero);
    }
}

static plait_status run_step(void *user, const plait_slice *slices, int32_t n_slices, const void *args, size_t bytes,
                             void *answer, size_t answer_bytes) {
    return run_segments(user, step_segment, slices, n_slices, args, bytes, answer, answer_bytes,
                        sizeof(pli_lbfgs_moved));
}

/* --- "lbfgs.gradient": the step was accepted, g holds the mean gradient of the losses ---------------------------
 *
 * Completes g and the new pair, and takes the dot products that the next direction needs. */

static void add_products(const vectors *v, const pli_lbfgs_args *args, int64_t first, int64_t n, const double *s,
                         const double *y, const double *hy, const double *slope, const double *hslope, const sums *to) {
    double sj[STRIP], yj[STRIP];
    add_dot(to, SUM(pli_lbfgs_dots, vv), n, slope, slope);
    add_dot(to, SUM(pli_lbfgs_dots, vhv), n, slope, hslope);
    for (int32_t j = 0; j < args->memory; j++) {
        if (!args->used[j]) continue;
        load_pair(v, j, first, n, sj, yj);
        add_dot(to, SUM(pli_lbfgs_dots, sy) + (size_t)j, n, s, yj);
        add_dot(to, SUM(pli_lbfgs_dots, ys) + (size_t)j, n, y, sj);
        add_dot(to, SUM(pli_lbfgs_dots, yhy) + (size_t)j, n, hy, yj);
        add_dot(to, SUM(pli_lbfgs_dots, sv) + (size_t)j, n, sj, slope);
        add_dot(to, SUM(pli_lbfgs_dots, yhv) + (size_t)j, n, yj, hslope);
    }
}

/* Completes the pair of the accepted step, in its slot. */
static void complete_pair(const vectors *v, const pli_lbfgs_args *args, int64_t first, int64_t n, const double *w,
                          const double *g, double *s, double *y) {
    load_pair(v, args->slot, first, n, s, y);
    if (v->x != NULL) load(v, v->x, first, n, s);
    load(v, v->o, first, n, y);
    for (int64_t i = 0; i < n; i++) {
        s[i] = v->x != NULL ? w[i] - s[i] : args->step * s[i];
        y[i] = g[i] - y[i];
    }
    store_pair(v, args->slot, first, n, s, y);
}

static void gradient_segment(const vectors *v, const pli_lbfgs_args *args, int64_t segment, int64_t end,
                             const sums *to) {
    double g[STRIP], w[STRIP], p[STRIP], slope[STRIP], hslope[STRIP], hy[STRIP], s[STRIP] = { 0 }, y[STRIP] = { 0 };
    for (int64_t first = segment, n; first < end; first += n) {
        n = strip_of(first, end);
        load(v, v->g, first, n, g);
        load(v, v->w, first, n, w);
        load_factors(v, first, n, p);
        for (int64_t i = 0; i < n; i++) g[i] += args->l2 * p[i] * w[i];
        store(v, v->g, first, n, g);
        load_slopes(v, args->l1, first, n, g, slope);
        if (!args->first) complete_pair(v, args, first, n, w, g, s, y);
        load_inverse_metric(v, first, n, hslope);
        for (int64_t i = 0; i < n; i++) {
            hy[i] = hslope[i] * y[i];
            hslope[i] *= slope[i];
        }
        add_products(v, args, first, n, s, y, hy, slope, hslope, to);
    }
}

static plait_status run_gradient(void *user, const plait_slice *slices, int32_t n_slices, const void *args,
                                 size_t bytes, void *answer, size_t answer_bytes) {
    return run_segments(user, gradient_segment, slices, n_slices, args, bytes, answer, answer_bytes,
                        sizeof(pli_lbfgs_dots));
}

/* --- "lbfgs.direction": d into slot `slot` (whose old pair is used up element by element), g into o ------------- */

static void direction_segment(const vectors *v, const pli_lbfgs_args *args, int64_t segment, int64_t end,
                              const sums *to) {
    double g[STRIP], slope[STRIP], h[STRIP], up[STRIP], d[STRIP], s[STRIP], y[STRIP];
    for (int64_t first = segment, n; first < end; first += n) {
        n = strip_of(first, end);
        load(v, v->g, first, n, g);
        load_slopes(v, args->l1, first, n, g, slope);
        load_inverse_metric(v, first, n, h);
        for (int64_t i = 0; i < n; i++) {
            up[i] = slope[i];
            d[i] = 0;
        }
        for (int32_t j = 0; j < args->memory; j++) {
            if (!args->used[j]) continue;
            double a = args->a[j], b = args->b[j];
            load_pair(v, j, first, n, s, y);
            for (int64_t i = 0; i < n; i++) {
                up[i] += a * y[i];
                d[i] -= b * s[i];
            }
        }
        for (int64_t i = 0; i < n; i++) {
            d[i] -= args->gamma * h[i] * up[i];
            if (args->l1 > 0 && d[i] * slope[i] >= 0) d[i] = 0; /* OWL-QN: keep only what goes downhill */
            y[i] = 0;
        }
        store_pair(v, args->slot, first, n, d, y);
        store(v, v->o, first, n, g);
        for (int64_t i = 0; i < n; i++) {
            slope[i] *= d[i];
            d[i] *= d[i];
        }
        add_terms(to, SUM(pli_lbfgs_slope, vd), n, slope);
        add_terms(to, SUM(pli_lbfgs_slope, dd), n, d);
        if (v->x == NULL) continue;
        load(v, v->w, first, n, s);
        store(v, v->x, first, n, s);
    }
}

static plait_status run_direction(void *user, const plait_slice *slices, int32_t n_slices, const void *args,
                                  size_t bytes, void *answer, size_t answer_bytes) {
    return run_segments(user, direction_segment, slices, n_slices, args, bytes, answer, answer_bytes,
                        sizeof(pli_lbfgs_slope));
}

static const plait_function functions[] = {
    { .name = "lbfgs.step", .updates = 1, .run = run_step },
    { .name = "lbfgs.gradient", .updates = 1, .run = run_gradient },
    { .name = "lbfgs.direction", .updates = 1, .run = run_direction },
};

int32_t pli_lbfgs_add_functions(plait_comm *comm, bool exact, plait_function *functions_out) {
    const int32_t n = sizeof functions / sizeof *functions;
    for (int32_t i = 0; i < n; i++) {
        functions_out[i] = functions[i];
        functions_out[i].user = pli_comm_pool(comm);
        if (exact) functions_out[i].merge = merge_exactly;
    }
    return n;
}
