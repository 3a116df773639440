/* A projection that has been fitted: rows in its space, what it explains, its form in ONNX. See pca.h. */
#include <math.h>
#include <string.h>

#include "graph/form/export.h"
#include "learn/pca/pca.h"
#include "tensor/tensor.h"

/* --- opened ------------------------------------------------------------------------------------------------------- */

static bool has_values(plait_model *model) {
    pli_pca_model *m = model->own;
    int64_t        shape[2] = { 0 }, d = 0, k = 0;
    m->component = plait_model_value(model, "components", PLAIT_F64, 2, shape);
    m->mean = plait_model_value(model, "mean", PLAIT_F64, 1, &d);
    m->variance = plait_model_value(model, "variance", PLAIT_F64, 1, &k);
    m->k = shape[0];
    m->d = shape[1];
    return m->component != NULL && m->mean != NULL && m->variance != NULL && m->k > 0 && d == m->d && k == m->k &&
           m->d == model->features;
}

plait_status pli_pca_open(plait_model *model, plait_error *err) {
    pli_pca_model *m = model->own;
    const bool     whiten = plait_model_number(model, "whiten") > 0;
    if (!has_values(model))
        return pli_fail(err, PLAIT_EFORMAT,
                        "a model pca needs components [k, features], mean [features] and variance [k]");
    m->turned = pli_array((size_t)(m->d * m->k), sizeof *m->turned);
    m->offset = pli_calloc((size_t)m->k, sizeof *m->offset);
    if (m->turned == NULL || m->offset == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld components", (long long)m->k);
    for (int64_t j = 0; j < m->d; j++) {
        m->mean_square += m->mean[j] * m->mean[j];
        for (int64_t c = 0; c < m->k; c++) {
            const double scale = whiten && m->variance[c] > 0 ? 1 / sqrt(m->variance[c]) : 1;
            m->turned[j * m->k + c] = m->component[c * m->d + j] * scale;
            m->offset[c] += m->mean[j] * m->turned[j * m->k + c];
        }
    }
    return PLAIT_OK;
}

void pli_pca_close(plait_model *model) {
    pli_pca_model *m = model->own;
    pli_free(m->turned);
    pli_free(m->offset);
}

/* --- used --------------------------------------------------------------------------------------------------------- */

int64_t pli_pca_width(const plait_model *model, plait_answer answer) {
    return answer == PLAIT_ANSWER_TRANSFORM ? ((const pli_pca_model *)model->own)->k : 0;
}

/* out [k] of one row: features that the model does not know are left out. */
static void project(const pli_pca_model *m, const plait_row *row, double *out) {
    for (int64_t c = 0; c < m->k; c++) out[c] = -m->offset[c];
    for (int64_t e = 0; e < row->n; e++) {
        const uint64_t j = row->column != NULL ? row->column[e] : row->key[e];
        const double   x = row->value != NULL ? (double)row->value[e] : 1;
        if (j >= (uint64_t)m->d) continue;
        for (int64_t c = 0; c < m->k; c++) out[c] += x * m->turned[(int64_t)j * m->k + c];
    }
}

plait_status pli_pca_predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                             plait_error *err) {
    const pli_pca_model *m = model->own;
    (void)answer;
    (void)err;
    for (int64_t i = 0; i < plait_rows_count(rows); i++) {
        plait_row row;
        PLI_TRY(plait_rows_row(rows, i, &row));
        project(m, &row, out + i * m->k);
    }
    return PLAIT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

enum { WEIGHT, ALL, EXPLAINED };

/* The squared length of x - mean. */
static double length_of(const pli_pca_model *m, const plait_row *row) {
    double square = m->mean_square;
    for (int64_t e = 0; e < row->n; e++) {
        const uint64_t j = row->column != NULL ? row->column[e] : row->key[e];
        const double   x = row->value != NULL ? (double)row->value[e] : 1;
        if (j < (uint64_t)m->d) square += x * x - 2 * x * m->mean[j];
    }
    return square;
}

plait_status pli_pca_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err) {
    const pli_pca_model *m = model->own;
    const bool           whiten = plait_model_number(model, "whiten") > 0;
    double              *at = pli_array((size_t)m->k, sizeof *at);
    if (at == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld components", (long long)m->k);
    for (int64_t i = 0; i < plait_rows_count(rows); i++) {
        plait_row row;
        (void)plait_rows_row(rows, i, &row);
        project(m, &row, at);
        sums[WEIGHT] += row.weight;
        sums[ALL] += row.weight * length_of(m, &row);
        for (int64_t c = 0; c < m->k; c++)
            sums[EXPLAINED] += row.weight * at[c] * at[c] * (whiten ? m->variance[c] : 1);
    }
    pli_free(at);
    return PLAIT_OK;
}

int32_t pli_pca_figures(const plait_model *model, const double *sums, plait_figure *figures) {
    const double left = fmax(sums[ALL] - sums[EXPLAINED], 0); /* both are rounded: nothing left may be less than 0 */
    (void)model;
    figures[0] = (plait_figure){ "explained_share", sums[ALL] > 0 ? sums[EXPLAINED] / sums[ALL] : (double)NAN };
    figures[1] = (plait_figure){ "loss", sums[WEIGHT] > 0 ? left / sums[WEIGHT] : (double)NAN };
    return 2;
}

/* --- export ------------------------------------------------------------------------------------------------------- */

static const char *matrix(pli_export *to, const char *name, plait_shape shape, const double *values) {
    const plait_tensor t = { .type = PLAIT_F64, .shape = shape, .data = (void *)(uintptr_t)values };
    return pli_export_array(to, name, &t, false);
}

/* transformed [rows, k] = x turned - offset, in double, as transform takes it. */
plait_status pli_pca_export(const plait_model *model, pli_export *to, plait_error *err) {
    const pli_pca_model *m = model->own;
    (void)err;
    const char *x =
        pli_export_cast(to, pli_export_input(to, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, m->d), "rows"), PLAIT_F64);
    const char *y = pli_export_2(to, "MatMul", x, matrix(to, "components", plait_shape_2(m->d, m->k), m->turned));
    y = pli_export_2(to, "Sub", y, matrix(to, "offset", plait_shape_1(m->k), m->offset));
    pli_export_output(to, pli_export_cast(to, y, PLAIT_F32), "transformed", PLAIT_F32, false,
                      plait_shape_2(PLAIT_ANY, m->k), "rows");
    return PLAIT_OK;
}
