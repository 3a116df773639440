/* Prepares the centres and takes rows a chunk at a time: rows are laid out in full for tiles where that pays,
 * scored, and the wanted results are taken while the chunk is in the cache. */
#include "tensor/nearest/nearest.h"

#include <math.h>
#include <string.h>

/* How many centres' scores a chunk holds at once; the floats of rows in a chunk; the least and most rows of a chunk. */
enum { GROUP = 256, CHUNK_FLOATS = 1 << 15, CHUNK_LEAST = 28, CHUNK_MOST = 224 };

const pli_nearest_kernels *pli_nearest_kernels_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return pli_nearest_kernels_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_nearest_kernels_avx2();
#endif
    return pli_nearest_kernels_ref();
}

/* --- centres ---------------------------------------------------------------------------------------------------- */

static int64_t up(int64_t k) { return (k + PLI_TILE_COLS - 1) / PLI_TILE_COLS * PLI_TILE_COLS; }

/* Doubles come first, then floats: the moved centres twice, once in rows and once packed or transposed. */
size_t pli_centres_bytes(int64_t k, int64_t d) {
    return (size_t)(k + d) * sizeof(double) + (size_t)(2 * up(k) * d + up(k)) * sizeof(float);
}

static void find_mean(pli_centres *c) {
    memset(c->mean, 0, (size_t)c->d * sizeof *c->mean);
    for (int64_t j = 0; j < c->k; j++)
        for (int64_t l = 0; l < c->d; l++) c->mean[l] += (double)c->centre[j * c->d + l];
    for (int64_t l = 0; l < c->d; l++) c->mean[l] /= (double)c->k;
}

/* Computes moved [up(k), d], with zeros where there is no centre, the bias, and the squares. */
static void move(const pli_centres *c, float *moved) {
    for (int64_t j = 0; j < c->k; j++) {
        const float *centre = c->centre + j * c->d;
        float       *to = moved + j * c->d;
        double       half = 0, along = 0;
        for (int64_t l = 0; l < c->d; l++) {
            to[l] = (float)((double)centre[l] - c->mean[l]);
            half += (double)to[l] * (double)to[l];
            along += (double)to[l] * c->mean[l];
        }
        c->bias[j] = (float)(along + half / 2);
        c->square[j] = c->plain->dot_f32(c->d, centre, centre);
    }
    for (int64_t j = c->k; j < up(c->k); j++) c->bias[j] = INFINITY;
    memset(moved + c->k * c->d, 0, (size_t)((up(c->k) - c->k) * c->d) * sizeof *moved);
}

/* Transposes moved to across [d, k], with zeros where there is no centre. It goes square by square, so that both
 * sides stay in the cache. */
static void transpose(const pli_centres *c, const float *moved) {
    enum { SIDE = 32 };
    const int64_t k = up(c->k);
    for (int64_t l0 = 0; l0 < c->d; l0 += SIDE)
        for (int64_t j0 = 0; j0 < k; j0 += SIDE)
            for (int64_t l = l0; l < c->d && l < l0 + SIDE; l++)
                for (int64_t j = j0; j < j0 + SIDE; j++) c->across[l * k + j] = j < c->k ? moved[j * c->d + l] : 0;
}

static int64_t group_of(const pli_centres *c, int64_t first) { return c->k - first < GROUP ? c->k - first : GROUP; }

/* As many columns as find_by_tiles multiplies by: tiles may be narrower than PLI_TILE_COLS, and the panels of one
 * stretch of d then lie behind all panels of the stretch before. */
static void pack(const pli_centres *c, const float *moved) {
    for (int64_t j = 0; j < c->k; j += GROUP)
        pli_sgemm_pack(c->tiles, true, up(group_of(c, j)), c->d, moved + j * c->d, c->d, c->packed + j * c->d);
}

void pli_centres_prepare(pli_centres *c, int64_t k, int64_t d, const float *centre, bool dense, void *memory) {
    *c = (pli_centres){ .k = k, .d = d, .centre = centre, .kernels = pli_nearest_kernels_get() };
    c->plain = pli_kernels_get();
    c->tiles = dense ? pli_tiles_get() : NULL;
    c->square = memory;
    c->mean = c->square + k;
    c->bias = (float *)(c->mean + d);
    float *ready = c->bias + up(k), *moved = ready + up(k) * d;
    find_mean(c);
    move(c, moved);
    if (c->tiles != NULL) {
        c->packed = ready;
        pack(c, moved);
    } else {
        c->across = ready;
        transpose(c, moved);
    }
}

/* --- chunks of rows --------------------------------------------------------------------------------------------- */

static int64_t chunk_rows(int64_t d) {
    const int64_t rows = CHUNK_FLOATS / d;
    return rows < CHUNK_LEAST ? CHUNK_LEAST : rows > CHUNK_MOST ? CHUNK_MOST : rows;
}

typedef struct scratch {
    float *dot;  /* [chunk, GROUP]                               */
    float *best; /* [chunk]                                      */
    float *full; /* [chunk, d] rows laid out                     */
    float *ones; /* [d] a full row of ones, for matrices without values */
} scratch;

size_t pli_nearest_scratch_bytes(int64_t k, int64_t d) {
    (void)k;
    return (size_t)(chunk_rows(d) * (GROUP + 1 + d) + d) * sizeof(float);
}

static scratch scratch_at(int64_t d, void *memory) {
    scratch s = { .dot = memory };
    s.best = s.dot + chunk_rows(d) * GROUP;
    s.full = s.best + chunk_rows(d);
    s.ones = s.full + chunk_rows(d) * d;
    return s;
}

/* Rows of either kind, sparse or dense. */
typedef struct source {
    const pli_csr *x; /* NULL: dense */
    pli_rows       rows;
    const float   *dense;
    int64_t        stride, d;
} source;

static pli_entries row_of(const source *from, int64_t i) {
    if (from->x != NULL) return pli_entries_of(from->x, from->rows, i);
    return (pli_entries){ .value = from->dense + i * from->stride, .n = from->d, .ahead = from->d };
}

/* A row with as many entries as columns has each column once, in order: its values are already the full row. */
static const float *full_row(const source *from, pli_entries row, const scratch *s) {
    if (row.n != from->d) return NULL;
    return row.value != NULL ? row.value : s->ones;
}

/* If n rows from `first` on are full and lie one behind the other: their values; else NULL. */
static const float *full_rows(const source *from, int64_t first, int64_t n, int64_t *stride_out) {
    *stride_out = from->x == NULL ? from->stride : from->d;
    if (from->x == NULL) return from->dense + first * from->stride;
    if (from->rows.order != NULL || from->x->value == NULL) return NULL;
    const int64_t *start = from->x->row_start + from->rows.first + first;
    for (int64_t i = 0; i < n; i++)
        if (start[i + 1] - start[i] != from->d) return NULL;
    return from->x->value + start[0];
}

static void lay_out(const source *from, int64_t first, int64_t n, const scratch *s) {
    for (int64_t i = 0; i < n; i++) {
        const pli_entries row = row_of(from, first + i);
        const float   *values = full_row(from, row, s);
        float         *to = s->full + i * from->d;
        if (values != NULL) {
            memcpy(to, values, (size_t)from->d * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)from->d * sizeof *to);
        for (int64_t e = 0; e < row.n; e++) to[pli_entries_column(row, e)] = row.value == NULL ? 1.0F : row.value[e];
    }
}

static void find_by_tiles(const pli_centres *c, const source *from, int64_t first, int64_t n, const scratch *s,
                          uint32_t *nearest) {
    int64_t      stride;
    const float *rows = full_rows(from, first, n, &stride);
    if (rows == NULL) {
        lay_out(from, first, n, s);
        rows = s->full;
    }
    for (int64_t j = 0; j < c->k; j += GROUP) {
        const int64_t k = up(group_of(c, j));
        pli_sgemm_packed(c->tiles, n, k, c->d, rows, stride, c->packed + j * c->d, false, s->dot, k);
        c->kernels->highest(n, k, s->dot, c->bias + j, (uint32_t)j, s->best, nearest);
    }
}

static void find_by_entries(const pli_centres *c, const source *from, int64_t first, int64_t n, const scratch *s,
                            uint32_t *nearest) {
    const int64_t k = up(c->k);
    for (int64_t i = 0; i < n; i++) {
        const pli_entries row = row_of(from, first + i);
        for (int64_t j = 0; j < k; j += GROUP) {
            const int64_t some = k - j < GROUP ? k - j : GROUP;
            c->kernels->chain(row, some, k, c->across + j, s->dot);
            c->kernels->highest(1, some, s->dot, c->bias + j, (uint32_t)j, s->best + i, nearest + i);
        }
    }
}

/* --- the wanted results of a row -------------------------------------------------------------------------------- */

/* ||x||^2 - 2 x.c + ||c||^2 over the entries that exist; every fourth entry goes to the same partial sum. */
static double sparse_distance(const pli_centres *c, pli_entries x, uint32_t nearest) {
    const float *centre = c->centre + (int64_t)nearest * c->d;
    double       sum[4] = { 0 };
    for (int64_t e = 0; e < x.n; e++) {
        const double v = pli_entries_value(x, e);
        sum[e & 3] += v * (v - 2 * (double)centre[pli_entries_column(x, e)]);
    }
    const double distance = (sum[0] + sum[2]) + (sum[1] + sum[3]) + c->square[nearest];
    return distance > 0 ? distance : 0;
}

static void add_sparse(pli_entries x, double weight, double *sum) {
    for (int64_t e = 0; e < x.n; e++) sum[pli_entries_column(x, e)] += weight * pli_entries_value(x, e);
}

static void take_row(const pli_centres *c, const source *from, int64_t i, const scratch *s, const pli_assigned *out) {
    const pli_entries row = row_of(from, i);
    const float      *full = full_row(from, row, s);
    const int64_t     at = out->nearest[i], r = from->x != NULL ? pli_row_at(from->rows, i) : i;
    const double      weight = out->weight != NULL ? (double)out->weight[r] : 1;
    if (out->distance != NULL)
        out->distance[i] = full != NULL ? c->plain->distance_f32(c->d, full, c->centre + at * c->d)
                                        : sparse_distance(c, row, (uint32_t)at);
    if (out->sum != NULL && full != NULL) c->plain->axpy_f32_f64(c->d, weight, full, out->sum + at * c->d);
    else if (out->sum != NULL) add_sparse(row, weight, out->sum + at * c->d);
    if (out->mass != NULL) out->mass[at] += weight;
}

static void find(const pli_centres *c, const source *from, int64_t n, void *memory, const pli_assigned *out) {
    const scratch s = scratch_at(c->d, memory);
    const int64_t chunk = chunk_rows(c->d);
    const bool    take = out->distance != NULL || out->sum != NULL || out->mass != NULL;
    for (int64_t l = 0; from->x != NULL && from->x->value == NULL && l < c->d; l++) s.ones[l] = 1;
    for (int64_t first = 0; first < n; first += chunk) {
        const int64_t some = n - first < chunk ? n - first : chunk;
        for (int64_t i = 0; i < some; i++) {
            s.best[i] = -INFINITY;
            out->nearest[first + i] = 0;
        }
        if (c->tiles != NULL) find_by_tiles(c, from, first, some, &s, out->nearest + first);
        else find_by_entries(c, from, first, some, &s, out->nearest + first);
        if (out->score != NULL) memcpy(out->score + first, s.best, (size_t)some * sizeof *s.best);
        for (int64_t i = first; take && i < first + some; i++) take_row(c, from, i, &s, out);
    }
}

void pli_nearest_csr(const pli_centres *c, const pli_csr *x, pli_rows rows, void *scratch_memory,
                     const pli_assigned *out) {
    const source from = { .x = x, .rows = rows, .d = c->d };
    find(c, &from, rows.n, scratch_memory, out);
}

void pli_nearest_dense(const pli_centres *c, int64_t n, const float *x, int64_t stride, void *scratch_memory,
                       const pli_assigned *out) {
    const source from = { .dense = x, .stride = stride, .d = c->d };
    find(c, &from, n, scratch_memory, out);
}

void pli_centres_distances(const pli_centres *c, const pli_csr *x, pli_rows rows, double *out) {
    const pli_kernels *kernels = pli_kernels_get();
    for (int64_t i = 0; i < rows.n; i++) {
        const pli_entries row = pli_entries_of(x, rows, i);
        const float      *full = row.n == c->d ? row.value : NULL;
        for (int64_t j = 0; j < c->k; j++)
            out[i * c->k + j] = full != NULL ? kernels->distance_f32(c->d, full, c->centre + j * c->d)
                                             : sparse_distance(c, row, (uint32_t)j);
    }
}
