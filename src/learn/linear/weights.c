/* The tables of a linear model: creates them, in training's units, and reads the solution from them, in the data's. */
#include <math.h>
#include <string.h>

#include "learn/linear/fit.h"
#include "table/table.h"

/* --- to and from training's units ------------------------------------------------------------------------- */

static void store(plait_type type, void *values, int64_t i, double x) {
    if (type == PLAIT_F32) ((float *)values)[i] = (float)x;
    else ((double *)values)[i] = x;
}

static int64_t table_rows(const pli_run *run) {
    return pli_linear_fit_of(run)->linear.features + pli_linear_fit_of(run)->linear.intercept;
}

plait_status pli_linear_initial(const pli_run *run, plait_type type, void **initial_out) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    *initial_out = NULL;
    bool from_mean = run->start == NULL && l->linear.intercept && l->fit.label_mean != 0;
    if (run->start == NULL && !from_mean) return PLAIT_OK;
    int64_t      k = l->linear.goal.columns, d = l->linear.features;
    pli_solution scaled;
    const pli_solution *start = run->start != NULL ? pli_fitted_solution(run->start) : NULL;
    void        *values = pli_calloc((size_t)(table_rows(run) * k), plait_type_bytes(type));
    if (values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the first weights");
    *initial_out = values;
    if (from_mean) {
        store(type, values, d * k, l->fit.label_mean);
        return PLAIT_OK;
    }
    plait_status status = pli_solution_make(d, k, false, &scaled, run->err);
    if (status < 0) {
        pli_free(values);
        *initial_out = NULL;
        return status;
    }
    pli_scale_back(&l->fit.scale, k, start->weight, start->bias, scaled.weight, scaled.bias);
    for (int64_t i = 0; i < d * k; i++) store(type, values, i, scaled.weight[i]);
    for (int64_t c = 0; c < k && l->linear.intercept; c++) store(type, values, d * k + c, scaled.bias[c]);
    pli_solution_free(&scaled);
    return PLAIT_OK;
}

plait_status pli_linear_penalty(const pli_run *run, plait_type type, void **penalty_out) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    *penalty_out = NULL;
    bool plain = l->fit.scale.factor == NULL || (run->l1 == 0 && run->l2 == 0);
    if (plain && !l->linear.intercept) return PLAIT_OK;
    int64_t k = l->linear.goal.columns, d = l->linear.features;
    void   *values = pli_array((size_t)(table_rows(run) * k), plait_type_bytes(type));
    if (values == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for penalties");
    for (int64_t j = 0; j < d; j++)
        for (int64_t c = 0; c < k; c++)
            store(type, values, j * k + c, pli_scale_penalty(&l->fit.scale, j, run->l1, run->l2));
    for (int64_t c = 0; c < k && l->linear.intercept; c++) store(type, values, d * k + c, 0);
    *penalty_out = values;
    return PLAIT_OK;
}

static plait_status solution(const pli_run *run, plait_type type, const void *values, pli_solution *solution_out) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t      k = l->linear.goal.columns, d = l->linear.features, n = d * k;
    pli_solution scaled;
    PLI_TRY(pli_solution_make(d, k, false, &scaled, run->err));
    for (int64_t i = 0; i < n; i++)
        scaled.weight[i] = type == PLAIT_F32 ? (double)((const float *)values)[i] : ((const double *)values)[i];
    for (int64_t c = 0; c < k && l->linear.intercept; c++)
        scaled.bias[c] = type == PLAIT_F32 ? (double)((const float *)values)[n + c] : ((const double *)values)[n + c];
    pli_scale_weights(&l->fit.scale, k, scaled.weight, scaled.bias);
    *solution_out = scaled;
    return PLAIT_OK;
}

/* --- tables ------------------------------------------------------------------------------------------------ */

static plait_status create_weights(pli_run *run, plait_table_opts *t) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    void           *initial = NULL, *penalty = NULL;
    plait_status    status = PLAIT_OK;
    t->name = "w";
    t->rows = l->form == PLI_SPARSE ? 0 : l->linear.features + l->linear.intercept;
    t->keyed = l->form != PLI_DENSE || l->rowwise;
    if (l->form != PLI_SPARSE) status = pli_linear_initial(run, t->type, &initial);
    if (l->form != PLI_SPARSE && status == PLAIT_OK) status = pli_linear_penalty(run, t->type, &penalty);
    t->initial = initial;
    t->penalty = penalty;
    if (status == PLAIT_OK) status = pli_run_make_table(run, t, &l->w);
    pli_free(initial);
    pli_free(penalty);
    return status;
}

plait_status pli_linear_tables(pli_run *run) {
    pli_linear_fit  *l = pli_linear_fit_of(run);
    const float      mean = (float)l->fit.label_mean;
    plait_table_opts t;
    PLI_TRY(pli_run_table_opts(run, &t));
    t.cols = l->linear.goal.columns;
    PLI_TRY(create_weights(run, &t));
    if (l->form != PLI_SPARSE || !l->linear.intercept) return PLAIT_OK;
    t.name = "b";
    t.rows = 1;
    t.keyed = l->rowwise;
    t.sharded = 0;
    t.rule.l1 = t.rule.l2 = 0;
    t.penalty = NULL;
    t.initial = run->start == NULL && l->fit.label_mean != 0 ? &mean : NULL; /* with numbers K is 1 */
    return pli_run_make_table(run, &t, &l->b);
}

/* --- the solution ------------------------------------------------------------------------------------------ */

static plait_status dump(pli_run *run, pli_solution *solution_out) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t      n = 0, k = l->linear.goal.columns;
    uint64_t    *keys = NULL;
    void        *values = NULL;
    float       *bias = NULL;
    plait_status status = plait_table_dump(l->w, &n, &keys, &values);
    if (status == PLAIT_OK) status = pli_solution_make(n, k, true, solution_out, run->err);
    if (status == PLAIT_OK) {
        memcpy(solution_out->key, keys, (size_t)n * sizeof *keys);
        for (int64_t i = 0; i < n * k; i++) solution_out->weight[i] = (double)((const float *)values)[i];
        bias = pli_array((size_t)k, sizeof *bias);
        if (bias == NULL) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for intercepts");
    }
    if (status == PLAIT_OK && l->b != NULL) {
        status = plait_table_get_range(l->b, 0, 1, bias);
        for (int64_t c = 0; c < k; c++) solution_out->bias[c] = (double)bias[c];
    }
    if (status < 0) pli_solution_free(solution_out);
    pli_free(bias);
    plait_comm_free(keys);
    plait_comm_free(values);
    return status;
}

/* Reads the tables after a barrier, so the solution is the same on every worker. */
static plait_status extract(pli_run *run, pli_solution *solution_out) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    if (l->online != NULL) return pli_online_extract(run, solution_out);
    PLI_TRY(plait_job_barrier(run->job));
    if (l->form == PLI_SPARSE) return dump(run, solution_out);
    const void *values;
    PLI_TRY(plait_table_read(l->w, 0, l->linear.features + l->linear.intercept, &values));
    return solution(run, PLAIT_F32, values, solution_out);
}

static double penalty_of(const pli_run *run, const pli_solution *solution) {
    double  square = 0, absolute = 0;
    int64_t n = solution->rows * pli_linear_fit_of(run)->linear.goal.columns;
    for (int64_t i = 0; i < n; i++) {
        square += solution->weight[i] * solution->weight[i];
        absolute += fabs(solution->weight[i]);
    }
    return run->l2 / 2 * square + run->l1 * absolute;
}

static void tell(const pli_run *run, const pli_solution *solution) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    const int64_t         k = l->linear.goal.columns;
    pli_fit_tell(run, "w", PLAIT_F64, solution->rows * k, solution->weight);
    if (l->linear.intercept) pli_fit_tell(run, "b", PLAIT_F64, k, solution->bias);
}

static pli_scoring scoring(const pli_run *run, const pli_solution *of) {
    return (pli_scoring){ &pli_linear_scoring, &pli_linear_fit_of(run)->linear, of, 1 };
}

const pli_fit_ops pli_linear_fit_ops = {
    .extract = extract, .solution = solution, .penalty = penalty_of, .tell = tell, .scoring = scoring,
    .gap = pli_linear_gap
};
