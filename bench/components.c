/* bench/components.c - times principal components by the kernels alone, over dense rows in memory.
 *
 *   components FILE ROWS FEATURES COMPONENTS [--threads N] [--turns N] [--products floats|doubles]
 *
 * FILE holds ROWS x FEATURES floats. The covariance is summed in double, shifted by the mean of the first rows; threads
 * share the panels of each chunk. Prints one JSON object: the best seconds of some turns (5), the part of them for
 * eigenvectors, the share of the variance that the components explain, multiplications and additions a second in the
 * products, and in products of floats of 512 to 1024 rows and columns on as many threads; doubles can reach half of
 * that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "limit.h"
#include "tensor/spectral/eigen.h"
#include "tensor/spectral/gram.h"

enum { FIRST_ROWS = 1000 };

typedef struct job {
    int64_t rows, d, q;
    bool    narrow;
    float  *x;
    double *shift, *gram, *sum, *value, *vector;
    void   *scratch;
} job;

static int die(const char *what) {
    fprintf(stderr, "components: %s\n", what);
    exit(1);
}

static void *memory(int64_t n, size_t bytes) {
    void *p = malloc((size_t)n * bytes);
    if (p == NULL) die("no memory");
    return p;
}

static void load(job *j, const char *path) {
    FILE *f = fopen(path, "rb");
    j->x = memory(j->rows * j->d, sizeof *j->x);
    if (f == NULL || fread(j->x, sizeof *j->x, (size_t)(j->rows * j->d), f) != (size_t)(j->rows * j->d))
        die("the file is not there, or too short");
    fclose(f);
    j->shift = memory(j->d, sizeof(double));
    j->sum = memory(j->d, sizeof(double));
    j->gram = memory(j->d * j->d, sizeof(double));
    j->value = memory(j->q, sizeof(double));
    j->vector = memory(j->q * j->d, sizeof(double));
    j->scratch = memory(1, pli_gram_scratch_bytes(j->d));
}

static void find_shift(job *j) {
    const int64_t n = j->rows < FIRST_ROWS ? j->rows : FIRST_ROWS;
    memset(j->shift, 0, (size_t)j->d * sizeof(double));
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < j->d; l++) j->shift[l] += (double)j->x[i * j->d + l] / (double)n;
}

/* Returns the share of the variance that is explained. */
static double turn(job *j, pli_pool *pool, double *seconds_out, double *eigen_seconds_out) {
    const uint64_t start = pli_now_ns();
    plait_error    err;
    double         all = 0, found = 0;
    pli_gram       to = { .d = j->d, .narrow = j->narrow, .shift = j->shift, .gram = j->gram, .sum = j->sum,
                          .scratch = j->scratch };
    memset(j->gram, 0, (size_t)(j->d * j->d) * sizeof(double));
    memset(j->sum, 0, (size_t)j->d * sizeof(double));
    find_shift(j);
    pli_gram_dense(pool, &to, j->rows, j->x, j->d, NULL);
    pli_gram_centre(j->d, to.mass, j->sum, j->gram);
    for (int64_t l = 0; l < j->d; l++) all += j->gram[l * j->d + l];
    const uint64_t middle = pli_now_ns();
    if (pli_eigen_top(j->d, j->gram, j->q, j->value, j->vector, &err) != PLAIT_OK) die(err.text);
    for (int64_t i = 0; i < j->q; i++) found += j->value[i];
    *eigen_seconds_out = (double)(pli_now_ns() - middle) * 1e-9;
    *seconds_out = (double)(pli_now_ns() - start) * 1e-9;
    return found / all;
}

int main(int argc, char **argv) {
    int64_t     threads = 2, turns = 5;
    pli_pool   *pool = NULL;
    plait_error err;
    job         j = { 0 };
    if (argc < 5 || !pli_parse_i64(argv[2], &j.rows) || !pli_parse_i64(argv[3], &j.d) || !pli_parse_i64(argv[4], &j.q))
        return die("FILE ROWS FEATURES COMPONENTS [--threads N] [--turns N] [--products floats|doubles]");
    for (int i = 5; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0) pli_parse_i64(argv[i + 1], &threads);
        if (strcmp(argv[i], "--products") == 0) j.narrow = strcmp(argv[i + 1], "floats") == 0;
        if (strcmp(argv[i], "--turns") == 0) pli_parse_i64(argv[i + 1], &turns);
    }
    if (threads < 1 || threads > 64 || turns < 1 || j.rows < 2 || j.d < 1 || j.q < 1 || j.q > j.d)
        return die("1 to 64 threads, at least a turn, two rows and a feature, no more components than features");
    if (pli_pool_create((int32_t)threads, &pool, &err) != PLAIT_OK) return die(err.text);
    load(&j, argv[1]);
    double best = INFINITY, eigen = 0, share = 0;
    for (int64_t t = 0; t < turns; t++) {
        double seconds, eigen_seconds;
        share = turn(&j, pool, &seconds, &eigen_seconds);
        if (seconds >= best) continue;
        best = seconds;
        eigen = eigen_seconds;
    }
    printf("{\"threads\": %lld, \"seconds\": %.9g, \"eigen_seconds\": %.9g, \"explained\": %.12g, \"first\": %.12g, "
           "\"gflop_s\": %.4g, \"sgemm_gflop_s\": %.4g}\n", (long long)threads, best, eigen, share,
           j.value[0] / (double)(j.rows - 1), (double)(j.rows * j.d * (j.d + 1)) / (best - eigen) / 1e9,
           limit_sgemm(pool) / 1e9);
    return 0;
}
