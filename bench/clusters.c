/* bench/clusters.c - times Lloyd's iterations by the kernels alone, over rows in memory.
 *
 *   clusters FILE ROWS FEATURES CLUSTERS [--iterations N] [--threads N] [--form dense|laid-out|entries]
 *
 * FILE holds ROWS x FEATURES floats; the first rows are the first centres. All forms give the same answer: dense rows
 * in place; rows without their zeros, which the kernels lay out densely; and entry by entry. Prints one JSON object:
 * the median seconds of an iteration (assignment and sums); the sum of squared distances in the last iteration, which
 * also computes distances and takes judged_seconds; multiplications and additions a second in the products, and in
 * products of 512 to 1024 rows and columns on as many threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "limit.h"
#include "tensor/nearest/nearest.h"

enum { SLICES = 64, ITERATIONS_MAX = 1000 };

typedef struct job {
    int64_t       rows, d, k;
    const float  *x;
    const char   *form;
    bool          judged; /* distances are computed, too */
    pli_csr       csr;
    pli_centres   centres;
    uint32_t     *nearest;
    double       *distance, *sum[SLICES], *mass[SLICES];
    void         *scratch[64];
} job;

static int die(const char *what) {
    fprintf(stderr, "clusters: %s\n", what);
    exit(1);
}

static void *memory(size_t bytes) {
    void *p = malloc(bytes);
    if (p == NULL) die("no memory");
    return p;
}

static float *load(const char *path, int64_t n) {
    float *x = memory((size_t)n * sizeof *x);
    FILE  *f = fopen(path, "rb");
    if (f == NULL || fread(x, sizeof *x, (size_t)n, f) != (size_t)n) die("the file is not there, or too short");
    fclose(f);
    return x;
}

static pli_csr compress(const job *j) {
    int64_t  *start = memory((size_t)(j->rows + 1) * sizeof *start), n = 0;
    uint32_t *col = memory((size_t)(j->rows * j->d) * sizeof *col);
    float    *value = memory((size_t)(j->rows * j->d) * sizeof *value);
    start[0] = 0;
    for (int64_t i = 0; i < j->rows; i++) {
        for (int64_t l = 0; l < j->d; l++) {
            const float v = j->x[i * j->d + l];
            col[n] = (uint32_t)l;
            value[n] = v;
            n += v != 0;
        }
        start[i + 1] = n;
    }
    return (pli_csr){ .rows = j->rows, .row_start = start, .col = col, .value = value };
}

static void slice(void *user, int64_t s, int32_t thread) {
    job               *j = user;
    const int64_t      from = j->rows * s / SLICES, n = j->rows * (s + 1) / SLICES - from;
    const pli_assigned out = {
        .nearest = j->nearest + from,
        .distance = j->judged ? j->distance + from : NULL,
        .sum = j->sum[s],
        .mass = j->mass[s],
    };
    memset(j->sum[s], 0, (size_t)(j->k * j->d) * sizeof(double));
    memset(j->mass[s], 0, (size_t)j->k * sizeof(double));
    if (strcmp(j->form, "dense") == 0)
        pli_nearest_dense(&j->centres, n, j->x + from * j->d, j->d, j->scratch[thread], &out);
    else
        pli_nearest_csr(&j->centres, &j->csr, (pli_rows){ NULL, from, n }, j->scratch[thread], &out);
}

/* Moves each centre to the mean of its nearest rows; a centre without such rows stays. */
static void move(const job *j, float *centre) {
    for (int64_t c = 0; c < j->k; c++) {
        double mass = 0;
        for (int s = 0; s < SLICES; s++) mass += j->mass[s][c];
        for (int64_t l = c * j->d; mass > 0 && l < (c + 1) * j->d; l++) {
            double sum = 0;
            for (int s = 0; s < SLICES; s++) sum += j->sum[s][l];
            centre[l] = (float)(sum / mass);
        }
    }
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void prepare(job *j, int32_t threads) {
    j->nearest = memory((size_t)j->rows * sizeof *j->nearest);
    j->distance = memory((size_t)j->rows * sizeof *j->distance);
    if (strcmp(j->form, "dense") != 0) j->csr = compress(j);
    for (int s = 0; s < SLICES; s++) {
        j->sum[s] = memory((size_t)(j->k * j->d) * sizeof(double));
        j->mass[s] = memory((size_t)j->k * sizeof(double));
    }
    for (int32_t t = 0; t < threads; t++) j->scratch[t] = memory(pli_nearest_scratch_bytes(j->k, j->d));
}

int main(int argc, char **argv) {
    int64_t     iterations = 10, threads = 2;
    pli_pool   *pool = NULL;
    plait_error err;
    job         j = { .form = "dense" };
    if (argc < 5 || !pli_parse_i64(argv[2], &j.rows) || !pli_parse_i64(argv[3], &j.d) || !pli_parse_i64(argv[4], &j.k))
        return die("FILE ROWS FEATURES CLUSTERS [--iterations N] [--threads N] [--form dense|laid-out|entries]");
    for (int i = 5; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--iterations") == 0) pli_parse_i64(argv[i + 1], &iterations);
        if (strcmp(argv[i], "--threads") == 0) pli_parse_i64(argv[i + 1], &threads);
        if (strcmp(argv[i], "--form") == 0) j.form = argv[i + 1];
    }
    if (iterations < 2 || iterations > ITERATIONS_MAX || threads < 1 || threads > 64 || j.rows < j.k || j.k < 1)
        return die("2 to 1000 iterations, 1 to 64 threads, at least as many rows as clusters");
    if (pli_pool_create((int32_t)threads, &pool, &err) != PLAIT_OK) return die(err.text);
    j.x = load(argv[1], j.rows * j.d);
    prepare(&j, (int32_t)threads);
    float *centre = memory((size_t)(j.k * j.d) * sizeof *centre);
    void  *ready = memory(pli_centres_bytes(j.k, j.d));
    double seconds[ITERATIONS_MAX], inertia = 0;
    memcpy(centre, j.x, (size_t)(j.k * j.d) * sizeof *centre);
    for (int64_t i = 0; i < iterations; i++) {
        j.judged = i + 1 == iterations;
        const uint64_t start = pli_now_ns();
        pli_centres_prepare(&j.centres, j.k, j.d, centre, strcmp(j.form, "entries") != 0, ready);
        pli_pool_for(pool, SLICES, slice, &j);
        seconds[i] = (double)(pli_now_ns() - start) * 1e-9;
        if (!j.judged) move(&j, centre);
    }
    for (int64_t r = 0; r < j.rows; r++) inertia += j.distance[r];
    const double judged = seconds[iterations - 1];
    qsort(seconds, (size_t)(iterations - 1), sizeof *seconds, by_size);
    const double median = seconds[(iterations - 1) / 2];
    printf("{\"form\": \"%s\", \"threads\": %lld, \"seconds\": %.9g, \"judged_seconds\": %.9g, \"inertia\": %.12g, "
           "\"gflop_s\": %.4g, \"sgemm_gflop_s\": %.4g}\n", j.form, (long long)threads, median, judged, inertia,
           2.0 * (double)(j.rows * j.d * j.k) / median / 1e9, limit_sgemm(pool) / 1e9);
    return 0;
}
