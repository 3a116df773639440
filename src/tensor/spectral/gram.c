/* Packs rows as panels of columns; threads share the products of panels. */
#include "tensor/spectral/gram.h"

#include <math.h>
#include <string.h>

#include "tensor/entries.h"

/* Rows of a chunk; columns of a panel of floats if there are no tiles; rows that one thread packs at once. */
enum { DEPTH = 128, NARROW_DEPTH = 512, NARROW_PANEL = 32, PACKED_AT_ONCE = 16 };

const pli_gram_kernels *pli_gram_kernels_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return pli_gram_kernels_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_gram_kernels_avx2();
#endif
    return pli_gram_kernels_ref();
}

static int64_t up(int64_t d, int64_t width) { return (d + width - 1) / width * width; }

/* Holds the chunk's panels, one [depth, width] behind the other, of doubles or of twice as many floats, and the
 * roots of its rows' weights. */
size_t pli_gram_scratch_bytes(int64_t d) {
    return (size_t)(NARROW_DEPTH / 2 * up(d, NARROW_PANEL) + NARROW_DEPTH) * sizeof(double);
}

/* A chunk in work. */
typedef struct chunk {
    pli_gram               *to;
    const pli_gram_kernels *kernels;
    const pli_tiles        *tiles;
    const pli_kernels      *plain;
    const pli_csr          *x; /* NULL: dense */
    pli_rows                rows;
    const float            *dense, *weight;
    int64_t                 stride, first, n, depth, width;
    double                 *root;
} chunk;

static int64_t panels_of(const chunk *c) { return up(c->to->d, c->width) / c->width; }

/* --- packing ---------------------------------------------------------------------------------------------------- */

/* The place of an element: its panel, its row in the panel, its column in the row. */
static int64_t place_of(const chunk *c, int64_t row, int64_t column) {
    return (column / c->width * c->depth + row) * c->width + column % c->width;
}

static inline void put(const chunk *c, int64_t at, double v, const bool narrow) {
    if (narrow) ((float *)c->to->scratch)[at] = (float)v;
    else ((double *)c->to->scratch)[at] = v;
}

/* Packs a full row x (NULL: zeros). Places beyond the last column become 0. */
static inline void pack_full(const chunk *c, int64_t row, const float *x, const bool narrow) {
    const double  root = c->root[row];
    const int64_t d = c->to->d;
    for (int64_t l = 0; l < d; l += c->width) {
        const int64_t at = place_of(c, row, l), n = d - l < c->width ? d - l : c->width;
        const float  *from = x != NULL ? x + l : NULL;
        const double *shift = c->to->shift != NULL ? c->to->shift + l : NULL;
        if (narrow) c->kernels->shift_f32(n, from, shift, root, (float *)c->to->scratch + at);
        else c->kernels->shift_f64(n, from, shift, root, (double *)c->to->scratch + at);
        for (int64_t j = n; j < c->width; j++) put(c, at + j, 0, narrow);
    }
}

static inline void pack_row(const chunk *c, int64_t i, const bool narrow) {
    const double *shift = c->to->shift, root = c->root[i];
    if (c->x == NULL) {
        pack_full(c, i, c->dense + (c->first + i) * c->stride, narrow);
        return;
    }
    const pli_entries row = pli_entries_of(c->x, c->rows, c->first + i);
    const bool        full = row.n == c->to->d && row.value != NULL;
    pack_full(c, i, full ? row.value : NULL, narrow);
    for (int64_t e = 0; !full && e < row.n; e++) {
        const int64_t l = pli_entries_column(row, e);
        put(c, place_of(c, i, l), (pli_entries_value(row, e) - (shift != NULL ? shift[l] : 0)) * root, narrow);
    }
}

static double weight_of(const chunk *c, int64_t i) {
    const int64_t at = c->first + i;
    return c->weight == NULL ? 1 : (double)c->weight[c->x != NULL ? pli_row_at(c->rows, at) : at];
}

static void pack_rows(void *user, int64_t item, int32_t thread) {
    const chunk  *c = user;
    const int64_t from = item * PACKED_AT_ONCE, to = from + PACKED_AT_ONCE < c->n ? from + PACKED_AT_ONCE : c->n;
    (void)thread;
    for (int64_t i = from; i < to; i++) {
        c->root[i] = sqrt(weight_of(c, i));
        if (c->to->narrow) pack_row(c, i, true);
        else pack_row(c, i, false);
    }
}

/* --- products --------------------------------------------------------------------------------------------------- */

/* Copies a block of g, which may reach over its right and lower edge, out to edge or back. */
static void copy_block(const chunk *c, int64_t p, int64_t q, double *edge, bool back) {
    const int64_t d = c->to->d, m = d - p * c->width, n = d - q * c->width;
    const size_t  bytes = (size_t)(n < c->width ? n : c->width) * sizeof(double);
    for (int64_t i = 0; i < c->width && i < m; i++) {
        double *g = c->to->gram + (p * c->width + i) * d + q * c->width, *beside = edge + i * c->width;
        memcpy(back ? g : beside, back ? beside : g, bytes);
    }
}

static void multiply_wide(const chunk *c, int64_t p, int64_t q) {
    const int64_t d = c->to->d;
    const double *panels = c->to->scratch, *a = panels + p * c->depth * c->width, *b = panels + q * c->depth * c->width;
    double        edge[PLI_GRAM_PANEL * PLI_GRAM_PANEL] = { 0 };
    if ((p + 1) * c->width <= d && (q + 1) * c->width <= d) {
        c->kernels->block(c->n, a, b, c->to->gram + p * c->width * d + q * c->width, d);
        return;
    }
    copy_block(c, p, q, edge, false);
    c->kernels->block(c->n, a, b, edge, c->width);
    copy_block(c, p, q, edge, true);
}

/* out [width, width] = at b, as chains of floats by the tiles; without tiles, by loops that give the same bits. */
static void multiply_floats(const chunk *c, const float *a, const float *b, float *out) {
    const int64_t w = c->width, rows = c->tiles != NULL ? pli_even(w, c->tiles->rows) : 0;
    for (int64_t i = 0; c->tiles != NULL && i < w; i += rows)
        c->tiles->tile(w - i < rows ? w - i : rows, w, c->n, a + i, 1, w, b, false, out + i * w, w);
    if (c->tiles != NULL) return;
    memset(out, 0, (size_t)(w * w) * sizeof *out);
    for (int64_t l = 0; l < c->n; l++)
        for (int64_t i = 0; i < w; i++)
            for (int64_t j = 0; j < w; j++) out[i * w + j] = fmaf(a[l * w + i], b[l * w + j], out[i * w + j]);
}

/* The block of gram is fetched while the product is computed. */
static void multiply_narrow(const chunk *c, int64_t p, int64_t q) {
    const int64_t d = c->to->d, w = c->width, m = d - p * w, n = d - q * w < w ? d - q * w : w;
    const float  *panels = c->to->scratch;
    float         out[NARROW_PANEL * NARROW_PANEL];
    for (int64_t i = 0; i < w && i < m; i++)
        for (int64_t j = 0; j < n; j += 8) __builtin_prefetch(c->to->gram + (p * w + i) * d + q * w + j, 1);
    multiply_floats(c, panels + p * c->depth * w, panels + q * c->depth * w, out);
    for (int64_t i = 0; i < w && i < m; i++)
        c->plain->axpy_f32_f64(n, 1, out + i * w, c->to->gram + (p * w + i) * d + q * w);
}

static void add_sums(const chunk *c, int64_t q) {
    const int64_t d = c->to->d, n = d - q * c->width < c->width ? d - q * c->width : c->width;
    const double *wide = c->to->scratch;
    const float  *narrow = c->to->scratch;
    double       *sum = c->to->sum + q * c->width;
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t at = place_of(c, i, q * c->width);
        if (c->to->narrow) c->plain->axpy_f32_f64(n, c->root[i], narrow + at, sum);
        else c->plain->axpy_f64(n, c->root[i], wide + at, sum);
    }
}

/* Multiplies one panel by itself and all before it. The longest work comes first, so that threads end together. */
static void multiply(void *user, int64_t item, int32_t thread) {
    const chunk  *c = user;
    const int64_t q = panels_of(c) - 1 - item;
    (void)thread;
    add_sums(c, q);
    for (int64_t p = 0; p <= q; p++) {
        if (c->to->narrow) multiply_narrow(c, p, q);
        else multiply_wide(c, p, q);
    }
}

static void add(pli_pool *pool, chunk *c, int64_t n) {
    const bool narrow = c->to->narrow;
    c->kernels = c->to->kernels != NULL ? c->to->kernels : pli_gram_kernels_get();
    c->tiles = c->to->tiles != NULL ? c->to->tiles : pli_tiles_get();
    c->plain = pli_kernels_get();
    c->depth = narrow ? NARROW_DEPTH : DEPTH;
    c->width = !narrow ? PLI_GRAM_PANEL : c->tiles != NULL ? c->tiles->cols : NARROW_PANEL;
    c->root = (double *)c->to->scratch + NARROW_DEPTH / 2 * up(c->to->d, NARROW_PANEL);
    for (c->first = 0; c->first < n; c->first += c->depth) {
        c->n = n - c->first < c->depth ? n - c->first : c->depth;
        pli_pool_for(pool, (c->n + PACKED_AT_ONCE - 1) / PACKED_AT_ONCE, pack_rows, c);
        pli_pool_for(pool, panels_of(c), multiply, c);
        for (int64_t i = 0; i < c->n; i++) c->to->mass += weight_of(c, i);
    }
}

void pli_gram_csr(pli_pool *pool, pli_gram *to, const pli_csr *x, pli_rows rows, const float *weight) {
    chunk c = { .to = to, .x = x, .rows = rows, .weight = weight };
    add(pool, &c, rows.n);
}

void pli_gram_dense(pli_pool *pool, pli_gram *to, int64_t n, const float *x, int64_t stride, const float *weight) {
    chunk c = { .to = to, .dense = x, .stride = stride, .weight = weight };
    add(pool, &c, n);
}

void pli_gram_centre(int64_t d, double mass, const double *sum, double *gram) {
    for (int64_t i = 0; i < d; i++) {
        const double mean = sum[i] / mass;
        for (int64_t j = i; j < d; j++) {
            gram[i * d + j] -= mean * sum[j];
            gram[j * d + i] = gram[i * d + j];
        }
    }
}
