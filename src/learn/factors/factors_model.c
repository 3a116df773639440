/* A factorisation that has been fitted: values of pairs, how good they are, and the best items of a user. */
#include <math.h>
#include <string.h>

#include "learn/factors/factors.h"

/* --- opened ------------------------------------------------------------------------------------------------------- */

/* Copies rows [n, rank] to rows of whole registers. */
static float *widen(int64_t n, int64_t rank, int64_t width, const float *from) {
    float *to = pli_aligned((size_t)n * (size_t)width * sizeof *to);
    if (to == NULL) return NULL;
    memset(to, 0, (size_t)n * (size_t)width * sizeof *to);
    for (int64_t i = 0; i < n; i++) memcpy(to + i * width, from + i * rank, (size_t)rank * sizeof *to);
    return to;
}

plait_status pli_mf_open(plait_model *model, plait_error *err) {
    pli_mf_model *m = model->own;
    int64_t       users[2] = { 0 }, items[2] = { 0 }, n[3] = { 0 };
    const double *about = plait_model_value(model, "mean_loss_l2", PLAIT_F64, 1, &n[0]);
    const float  *user = plait_model_value(model, "user_factors", PLAIT_F32, 2, users),
                 *item = plait_model_value(model, "item_factors", PLAIT_F32, 2, items);
    m->user_bias = plait_model_value(model, "user_bias", PLAIT_F32, 1, &n[1]);
    m->item_bias = plait_model_value(model, "item_bias", PLAIT_F32, 1, &n[2]);
    const bool there = about != NULL && user != NULL && item != NULL && m->user_bias != NULL && m->item_bias != NULL &&
                       pli_schema_pairs(model->schema, &m->pair);
    if (!there || n[0] != 3 || users[1] != items[1] || users[1] < 1 || users[0] != m->pair.users ||
        items[0] != m->pair.items || n[1] != users[0] || n[2] != items[0] || !(about[1] >= 0 && about[1] <= 2))
        return pli_fail(err, PLAIT_EFORMAT, "a model mf needs the mean, and biases and factors of all its users and "
                                            "items");
    m->mean = about[0];
    m->loss = (pli_factor_loss)about[1];
    m->l2 = about[2];
    m->rank = users[1];
    m->width = (m->rank + PLI_FACTOR_LANES - 1) / PLI_FACTOR_LANES * PLI_FACTOR_LANES;
    m->user = widen(users[0], m->rank, m->width, user);
    m->item = widen(items[0], m->rank, m->width, item);
    if (m->user == NULL || m->item == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for factors");
    return PLAIT_OK;
}

void pli_mf_close(plait_model *model) {
    pli_mf_model *m = model->own;
    pli_free(m->user);
    pli_free(m->item);
}

/* --- values of pairs ---------------------------------------------------------------------------------------------- */

void pli_mf_pair(const pli_mf_model *m, const plait_row *row, int64_t *user, int64_t *item) {
    *user = *item = -1;
    for (int64_t e = 0; e < row->n; e++) {
        const uint64_t key = row->column != NULL ? row->column[e] : row->key[e];
        if (key - m->pair.first_user < (uint64_t)m->pair.users) *user = (int64_t)(key - m->pair.first_user);
        else if (key - m->pair.first_item < (uint64_t)m->pair.items) *item = (int64_t)(key - m->pair.first_item);
    }
}

double pli_mf_value(const pli_mf_model *m, int64_t user, int64_t item) {
    double value = m->mean;
    if (user >= 0) value += (double)m->user_bias[user];
    if (item >= 0) value += (double)m->item_bias[item];
    if (user >= 0 && item >= 0)
        value += (double)pli_factor_kernels_get()->dot(m->width, m->user + user * m->width, m->item + item * m->width);
    return value;
}

int64_t pli_mf_width(const plait_model *model, plait_answer answer) {
    (void)model;
    return answer == PLAIT_ANSWER_LABEL ? 1 : 0;
}

plait_status pli_mf_predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                            plait_error *err) {
    const pli_mf_model *m = model->own;
    (void)answer, (void)err;
    for (int64_t i = 0; i < plait_rows_count(rows); i++) {
        plait_row row;
        int64_t   user, item;
        PLI_TRY(plait_rows_row(rows, i, &row));
        pli_mf_pair(m, &row, &user, &item);
        out[i] = pli_mf_value(m, user, item);
    }
    return PLAIT_OK;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

enum { WEIGHT, SQUARE, ABSOLUTE, PENALTY, KNOWN, BELOW, OTHERS = 64 };

/* The share of the items drawn for a pair that score lower than its own. */
static double share_below(const pli_mf_model *m, int64_t user, int64_t item) {
    const double score = pli_mf_value(m, user, item);
    double       below = 0;
    for (uint64_t k = 0; k < OTHERS; k++) {
        const uint64_t drawn = pli_hash_u64(((uint64_t)user << 32 ^ (uint64_t)item) + k * UINT64_C(0x9e3779b97f4a7c15));
        const double   other = pli_mf_value(m, user, (int64_t)(drawn % (uint64_t)m->pair.items));
        below += other < score ? 1 : other > score ? 0 : 0.5;
    }
    return below / OTHERS;
}

static double square(int64_t rank, double bias, const float *row) {
    double sum = bias * bias;
    for (int64_t k = 0; k < rank; k++) sum += (double)row[k] * (double)row[k];
    return sum;
}

/* What a rating adds to the penalty. */
static double penalty_of(const pli_mf_model *m, int64_t user, int64_t item) {
    double sum = 0;
    if (user >= 0) sum += square(m->rank, (double)m->user_bias[user], m->user + user * m->width);
    if (item >= 0) sum += square(m->rank, (double)m->item_bias[item], m->item + item * m->width);
    return m->l2 / 2 * sum;
}

plait_status pli_mf_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err) {
    const pli_mf_model *m = model->own;
    (void)err;
    for (int64_t i = 0; i < plait_rows_count(rows); i++) {
        plait_row row;
        int64_t   user, item;
        PLI_TRY(plait_rows_row(rows, i, &row));
        pli_mf_pair(m, &row, &user, &item);
        if (m->loss != PLI_FACTORS_SQUARED) {
            if (user < 0 || item < 0) continue;
            sums[KNOWN] += row.weight;
            sums[BELOW] += row.weight * share_below(m, user, item);
            continue;
        }
        if (isnan(row.label)) continue;
        const double off = pli_mf_value(m, user, item) - row.label;
        sums[WEIGHT] += row.weight;
        sums[SQUARE] += row.weight * off * off;
        sums[ABSOLUTE] += row.weight * fabs(off);
        sums[PENALTY] += row.weight * penalty_of(m, user, item);
    }
    return PLAIT_OK;
}

int32_t pli_mf_figures(const plait_model *model, const double *sums, plait_figure *figures) {
    const pli_mf_model *m = model->own;
    if (m->loss != PLI_FACTORS_SQUARED) {
        figures[0] = (plait_figure){ "auc", sums[KNOWN] > 0 ? sums[BELOW] / sums[KNOWN] : (double)NAN };
        return 1;
    }
    const bool any = sums[WEIGHT] > 0; /* false: no row has a value */
    figures[0] = (plait_figure){ "rmse", any ? sqrt(sums[SQUARE] / sums[WEIGHT]) : (double)NAN };
    figures[1] = (plait_figure){ "mae", any ? sums[ABSOLUTE] / sums[WEIGHT] : (double)NAN };
    figures[2] = (plait_figure){ "loss", any ? sums[SQUARE] / sums[WEIGHT] / 2 : (double)NAN };
    figures[3] = (plait_figure){ "objective", any ? (sums[SQUARE] / 2 + sums[PENALTY]) / sums[WEIGHT] : (double)NAN };
    return 4;
}
