/* bench/parse.c - reads text (LIBSVM, VW, CSV) into CSR: seconds and bytes as one JSON object.
 *
 *   parse FILE [THREADS] */
#include <stdio.h>

#include "data/data.h"

static plait_status load(const char *path, pli_pool *pool, double *seconds_out, int64_t *rows_out, plait_error *err) {
    plait_data_opts opts;
    pli_dataset    *dataset = NULL;
    plait_data_opts_init(&opts);
    opts.paths = &path;
    opts.n_paths = 1;
    const uint64_t start = pli_now_ns();
    plait_status   status = pli_dataset_open(&opts, NULL, 0, 1, &dataset, err);
    if (status == PLAIT_OK) status = pli_dataset_load(dataset, pool, err);
    if (status == PLAIT_OK) *rows_out = pli_dataset_rows(dataset);
    *seconds_out = (double)(pli_now_ns() - start) * 1e-9;
    pli_dataset_destroy(&dataset);
    return status;
}

int main(int argc, char **argv) {
    int64_t     threads = 2, rows = 0;
    double      seconds = 0.0;
    pli_pool   *pool = NULL;
    plait_error err = { 0 };
    if (argc < 2 || (argc > 2 && (!pli_parse_i64(argv[2], &threads) || threads < 1 || threads > 1024))) {
        fputs("parse FILE [THREADS]\n", stderr);
        return 2;
    }
    plait_status status = pli_pool_create((int32_t)threads, &pool, &err);
    if (status == PLAIT_OK) status = load(argv[1], pool, &seconds, &rows, &err);
    pli_pool_destroy(&pool);
    if (status != PLAIT_OK) {
        fprintf(stderr, "parse: %s\n", err.text);
        return 1;
    }
    printf("{\"rows\":%lld,\"bytes\":%lld,\"seconds\":%.6f,\"peak_rss_bytes\":%lld}\n", (long long)rows,
           (long long)pli_file_bytes(argv[1]), seconds, (long long)pli_peak_rss_bytes());
    return 0;
}
