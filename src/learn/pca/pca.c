/* The learner pca: options, clocks, and the components out of the tables. See pca.h. */
#include "learn/pca/pca.h"

#include <math.h>
#include <string.h>

#include "tensor/spectral/eigen.h"

enum { EXACT_MAX = 4096, COMPONENTS = 8, MORE = 10, PASSES = 7 };

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static plait_status prepare(pli_run *run) {
    PLI_TRY(pli_rows_settle(run));
    pli_pca      *p = pli_pca_of(run);
    const char   *solver = plait_training_name(run, "pca-solver");
    const int64_t d = run->features, most = d < run->train_rows ? d : run->train_rows;
    p->k = plait_training_count(run, "components");
    if (d == 0)
        return pli_fail(
            run->err, PLAIT_EREFUSED,
            "model pca on features that grow by key is refused: a component has a value for each feature; hash them, "
            "as with --hash-bits 20");
    if (p->k == 0) p->k = most < COMPONENTS ? most : COMPONENTS;
    if (p->k > most)
        return pli_fail(run->err, PLAIT_EINVAL, "components is %lld, but %lld rows of %lld features have at most %lld",
                        (long long)p->k, (long long)run->train_rows, (long long)d, (long long)most);
    const bool exact = strcmp(solver, "exact") == 0 || (strcmp(solver, "auto") == 0 && d <= EXACT_MAX);
    pli_run_took(run, "components", p->k);
    p->d = d;
    p->q = exact ? 0 : p->k + MORE < d ? p->k + MORE : d;
    run->epochs = exact ? 2 : 1 + plait_training_count(run, "power-passes");
    if (exact) pli_run_note_unused(run, "power-passes", "on the exact solver, which takes two passes");
    if (run->opts->epochs > 0 && run->opts->epochs < run->epochs) run->epochs = run->opts->epochs; /* at the most */
    run->batch = run->examples = run->train_rows;
    run->clocks = 1;
    run->weights = d * pli_pca_columns(p) + d + 2;
    const double bytes = 3.0 * 8 * (double)run->weights, there = (double)pli_memory_bytes();
    if (there <= 0 || bytes < there) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM,
                    "model pca of %lld features needs about %.1f GB, but only %.1f GB are free; take --pca-solver "
                    "randomised, or fewer --components",
                    (long long)d, bytes / 1e9, there / 1e9);
}

static plait_status begin(pli_run *run) {
    pli_pca      *p = pli_pca_of(run);
    const int64_t n = p->d * pli_pca_columns(p), most = n > p->d + 2 ? n : p->d + 2;
    PLI_TRY(pli_run_table(run, "moments", PLAIT_F64, 1, p->d + 2, NULL, &p->moments));
    PLI_TRY(pli_run_table(run, "product", PLAIT_F64, p->d, pli_pca_columns(p), NULL, &p->product));
    p->mean = pli_calloc((size_t)p->d, sizeof *p->mean);
    p->values = pli_array((size_t)most, sizeof *p->values);
    p->sum = pli_array((size_t)most, sizeof *p->sum);
    p->basis = p->q > 0 ? pli_array((size_t)n, sizeof *p->basis) : NULL;
    if (p->mean != NULL && p->values != NULL && p->sum != NULL && (p->q == 0 || p->basis != NULL)) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld components of %lld features", (long long)p->k,
                    (long long)p->d);
}

static void end(pli_run *run) {
    pli_pca *p = pli_pca_of(run);
    pli_free(p->mean);
    pli_free(p->values);
    pli_free(p->sum);
    pli_free(p->basis);
}

/* --- what the tables say ------------------------------------------------------------------------------------------ */

static plait_status read_mean(pli_run *run) {
    pli_pca *p = pli_pca_of(run);
    PLI_TRY(plait_table_get_range(p->moments, 0, 1, p->values));
    p->mass = p->values[p->d];
    if (!(p->mass > 0) || !isfinite(p->values[p->d + 1]))
        return pli_fail(run->err, PLAIT_EFORMAT, p->mass > 0 ? "values are too large for sums of their squares"
                                                             : "all rows to train on have weight 0");
    for (int64_t j = 0; j < p->d; j++) p->mean[j] = p->values[j] / p->mass;
    return PLAIT_OK;
}

/* Q of clock t from Z of the clock before, which is in values then. */
static plait_status make_basis(pli_run *run, int64_t clock) {
    pli_pca      *p = pli_pca_of(run);
    const int64_t n = p->d * p->q;
    memset(p->values, 0, (size_t)n * sizeof *p->values);
    if (clock > 1) PLI_TRY(plait_table_get_range(p->product, 0, p->d, p->values));
    memcpy(p->basis, p->values, (size_t)n * sizeof *p->basis);
    for (int64_t i = 0; clock == 1 && i < n; i++) {
        pli_random random = pli_random_at(run->opts->seed, PLI_RANDOM_INIT, 0, (uint64_t)i);
        p->basis[i] = 2 * pli_random_f64(&random) - 1;
    }
    return pli_orthonormalise(p->d, p->q, p->basis, run->err);
}

/* --- a clock ------------------------------------------------------------------------------------------------------ */

/* The part that holds the first row: who has it takes off what is there already. It is an item like any other, whoever
 * computes it. */
static bool is_first(const pli_part *part) { return part->rows > 0 && part->block->first_row == 0; }

static plait_status add_part(pli_run *run, int64_t clock, const pli_part *part) {
    pli_pca *p = pli_pca_of(run);
    if (clock == 0) return pli_pca_add_moments(run, part, p->sum);
    if (p->q == 0) return pli_pca_add_gram(run, part);
    if (is_first(part))
        for (int64_t i = 0; i < p->d * p->q; i++) p->sum[i] -= p->values[i];
    return pli_pca_add_power(run, part);
}

static plait_status push(pli_run *run, int64_t clock) {
    pli_pca *p = pli_pca_of(run);
    if (clock == 0) return plait_table_inc_range(p->moments, 0, 1, p->sum, 0);
    for (int64_t i = 1; p->q == 0 && i < p->d; i++) memset(p->sum + i * p->d, 0, (size_t)i * sizeof *p->sum);
    return plait_table_inc_range(p->product, 0, p->d, p->sum, 0);
}

static void clear(pli_pca *p) {
    const int64_t n = p->d * pli_pca_columns(p);
    memset(p->sum, 0, (size_t)(n > p->d + 2 ? n : p->d + 2) * sizeof *p->sum);
}

static plait_status step(pli_run *run, const plait_batch *rows, plait_step_sums *sums_out) {
    pli_pca         *p = pli_pca_of(run);
    const pli_batch *batch = (const pli_batch *)rows;
    const int64_t    clock = run->clocks_done;
    if (batch->rows == 0) return PLAIT_OK;
    if (clock > 0) PLI_TRY(read_mean(run));
    if (clock > 0 && p->q > 0) PLI_TRY(make_basis(run, clock));
    pli_run_charge(run, batch, p->q > 0 ? p->q : p->d, p->d * pli_pca_columns(p));
    clear(p);
    for (int32_t i = 0; i < batch->parts; i++) {
        if (batch->part[i].rows == 0) continue;
        PLI_TRY(add_part(run, clock, &batch->part[i]));
        if (!run->exact) continue;
        PLI_TRY(push(run, clock));
        clear(p);
    }
    sums_out->rows = (double)batch->rows;
    return run->exact ? PLAIT_OK : push(run, clock);
}

/* --- the components ----------------------------------------------------------------------------------------------- */

/* The eigenvectors of the Gram matrix. variance [k], component [k, d]. */
static plait_status solve_exact(pli_run *run, double *variance, double *component, double *total_out) {
    pli_pca *p = pli_pca_of(run);
    *total_out = 0;
    for (int64_t j = 0; j < p->d; j++) *total_out += p->values[j * p->d + j];
    return pli_eigen_top(p->d, p->values, p->k, variance, component, run->err);
}

/* r [q, q] = Bt Z, and gram = r rt, of which what is on and right of the diagonal is enough. */
static void small_products(const pli_pca *p, double *r, double *gram) {
    const int64_t q = p->q;
    for (int64_t j = 0; j < p->d; j++)
        for (int64_t a = 0; a < q; a++)
            for (int64_t b = 0; b < q; b++) r[a * q + b] += p->basis[j * q + a] * p->values[j * q + b];
    for (int64_t a = 0; a < q; a++)
        for (int64_t b = a; b < q; b++)
            for (int64_t c = 0; c < q; c++) gram[a * q + b] += r[a * q + c] * r[b * q + c];
}

/* The basis times a vector [q], turned so that its largest element is positive. */
static void turn(const pli_pca *p, const double *vector, double *component) {
    double largest = 0;
    for (int64_t j = 0; j < p->d; j++) {
        component[j] = 0;
        for (int64_t a = 0; a < p->q; a++) component[j] += p->basis[j * p->q + a] * vector[a];
        if (fabs(component[j]) > fabs(largest)) largest = component[j];
    }
    for (int64_t j = 0; largest < 0 && j < p->d; j++) component[j] = -component[j];
}

/* Of Z = C Q its singular values and left vectors: within an orthonormal basis B of Z's columns, so that the vectors
 * are orthonormal whatever the values. */
static plait_status solve_power(pli_run *run, double *variance, double *component) {
    pli_pca      *p = pli_pca_of(run);
    const int64_t q = p->q;
    double       *r = pli_calloc((size_t)(q * q), 3 * sizeof *r), *gram = r + q * q, *vector = gram + q * q;
    if (r == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld components", (long long)p->k);
    memcpy(p->basis, p->values, (size_t)(p->d * q) * sizeof *p->basis);
    plait_status status = pli_orthonormalise(p->d, q, p->basis, run->err);
    if (status >= 0) small_products(p, r, gram);
    if (status >= 0) status = pli_eigen_top(q, gram, p->k, variance, vector, run->err);
    for (int64_t c = 0; status >= 0 && c < p->k; c++) {
        variance[c] = variance[c] > 0 ? sqrt(variance[c]) : 0;
        turn(p, vector + c * q, component + c * p->d);
    }
    pli_free(r);
    return status;
}

static plait_status solve(pli_run *run, double *variance, double *component, double *total_out) {
    pli_pca *p = pli_pca_of(run);
    PLI_TRY(read_mean(run));
    *total_out = p->values[p->d + 1]; /* squared lengths about 0; then about the mean */
    for (int64_t j = 0; j < p->d; j++) *total_out -= p->mass * p->mean[j] * p->mean[j];
    PLI_TRY(plait_table_get_range(p->product, 0, p->d, p->values));
    if (p->q == 0) PLI_TRY(solve_exact(run, variance, component, total_out));
    else PLI_TRY(solve_power(run, variance, component));
    const double less = p->mass > 1 ? p->mass - 1 : 1;
    for (int64_t c = 0; c < p->k; c++) variance[c] = variance[c] > 0 ? variance[c] / less : 0;
    *total_out = *total_out > 0 ? *total_out / less : 0;
    return PLAIT_OK;
}

static plait_status put(pli_run *run, plait_model *model, const double *variance, const double *component,
                        double total) {
    const pli_pca *p = pli_pca_of(run);
    PLI_TRY(plait_model_put(model, "components", PLAIT_F64, 2, (const int64_t[]){ p->k, p->d }, component, run->err));
    PLI_TRY(plait_model_put(model, "mean", PLAIT_F64, 1, (const int64_t[]){ p->d }, p->mean, run->err));
    PLI_TRY(plait_model_put(model, "variance", PLAIT_F64, 1, (const int64_t[]){ p->k }, variance, run->err));
    return plait_model_put(model, "variance_of_all", PLAIT_F64, 1, (const int64_t[]){ 1 }, &total, run->err);
}

static plait_status finish(pli_run *run, plait_model *model) {
    const pli_pca *p = pli_pca_of(run);
    double         total = 0, *variance = pli_array((size_t)p->k, sizeof *variance),
           *component = pli_array((size_t)(p->k * p->d), sizeof *component);
    plait_status status = variance != NULL && component != NULL
                              ? PLAIT_OK
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld components", (long long)p->k);
    if (status >= 0) status = solve(run, variance, component, &total);
    if (status >= 0) status = put(run, model, variance, component, total);
    pli_free(variance);
    pli_free(component);
    return status;
}

/* --- the learner -------------------------------------------------------------------------------------------------- */

static const plait_learner_option options[] = {
    { .name = "components",
      .kind = PLAIT_OPTION_COUNT,
      .preset = "0",
      .high = 1 << 16,
      .help = "number of components; 0: 8, or the number of features if that is smaller" },
    { .name = "whiten", .kind = PLAIT_OPTION_FLAG, .preset = "0", .help =
        "scale the output of transform so that each component has variance 1" },
    { .name = "pca-solver",
      .kind = PLAIT_OPTION_NAME,
      .preset = "auto",
      .names = "auto exact randomised",
      .help = "exact: eigenvectors of the covariance; randomised: block power iteration; auto: exact up to 4,096 "
              "features" },
    { .name = "power-passes",
      .kind = PLAIT_OPTION_COUNT,
      .preset = "7",
      .low = 1,
      .high = 1000,
      .help = "passes of the randomised solver" },
    { .name = NULL },
};

static const plait_learner_table tables[] = {
    { .name = "moments", .what = "one row: sums of the features, of the weights and of the squares" },
    { .name = "product", .what = "one row for each feature: the covariance, or its product with a basis" },
    { .name = NULL },
};

static const pli_learner_more more = { .two_passes = true };

const plait_learner pli_pca_learner = {
    .size = sizeof(plait_learner),
    .name = "pca",
    .summary = "principal components: the directions in which rows vary most",
    .help = "principal components: the directions in which rows vary most. Labels are ignored.\n"
            "  solver   exact: eigenvectors of the covariance, in two passes; randomised: for wide data, dense or "
            "sparse\n"
            "  reports  explained variance, as a share of the whole; 'plait transform' gives a row's coordinates\n",
    .labels = PLAIT_LABELS_NONE,
    .ways = PLAIT_LEARNER_PASSES,
    .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY,
    .options = options,
    .tables = tables,
    .state_bytes = sizeof(pli_pca),
    .model_bytes = sizeof(pli_pca_model),
    .prepare = prepare,
    .begin = begin,
    .step = step,
    .finish = finish,
    .end = end,
    .open = pli_pca_open,
    .close = pli_pca_close,
    .width = pli_pca_width,
    .predict = pli_pca_predict,
    .measure = pli_pca_measure,
    .figures = pli_pca_figures,
    .export_onnx = pli_pca_export,
    .more = &more,
};
