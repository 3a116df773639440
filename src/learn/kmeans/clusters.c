/* The model: answers, figures, its form in ONNX. */
#include <math.h>
#include <string.h>

#include "graph/form/export.h"
#include "learn/kmeans/kmeans.h"
#include "learn/solve/block.h"

enum { ROWS = 1024 };

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_clusters_open(plait_model *model, plait_error *err) {
    pli_clusters *c = plait_model_state(model);
    int64_t       shape[2];
    const float  *centre = plait_model_value(model, "centres", PLAIT_F32, 2, shape);
    if (centre == NULL || shape[0] < 1 || shape[1] < 1 || shape[1] != plait_model_features(model))
        return pli_fail(err, PLAIT_EFORMAT, "not a model of clusters: it has no centres, or they do not match its "
                                            "features");
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        if (!isfinite(centre[i]))
            return pli_fail(err, PLAIT_EFORMAT, "not a model of clusters: a centre is not finite");
    *c = (pli_clusters){ .k = shape[0], .d = shape[1] };
    for (int i = 0; i < 2; i++) {
        c->memory[i] = pli_array(1, pli_centres_bytes(c->k, c->d));
        if (c->memory[i] == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld centres", (long long)c->k);
        pli_centres_prepare(i == 0 ? &c->dense : &c->sparse, c->k, c->d, centre, i == 0, c->memory[i]);
    }
    return PLAIT_OK;
}

void pli_clusters_close(plait_model *model) {
    pli_clusters *c = plait_model_state(model);
    pli_free(c->memory[0]);
    pli_free(c->memory[1]);
    *c = (pli_clusters){ 0 };
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* A block's rows without features that the model does not know; what was made for that. */
typedef struct known_rows {
    pli_csr   x;
    int64_t  *start;
    uint32_t *col;
    float    *value;
} known_rows;

static bool knows_all(const pli_block *block, int64_t d) {
    uint64_t highest = 0;
    for (int64_t e = 0; e < block->entries; e++) {
        const uint64_t column = pli_block_column(block, e);
        highest = column > highest ? column : highest;
    }
    return block->key == NULL && highest < (uint64_t)d;
}

static plait_status leave_out(const pli_block *block, int64_t d, known_rows *rows, plait_error *err) {
    int64_t n = 0;
    rows->start = pli_array((size_t)block->rows + 1, sizeof *rows->start);
    rows->col = pli_array((size_t)block->entries + 1, sizeof *rows->col);
    rows->value = pli_array((size_t)block->entries + 1, sizeof *rows->value);
    if (rows->start == NULL || rows->col == NULL || rows->value == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)block->rows);
    for (int64_t r = 0; r < block->rows; r++) {
        rows->start[r] = n;
        for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
            const uint64_t column = pli_block_column(block, e);
            if (column >= (uint64_t)d) continue;
            rows->col[n] = (uint32_t)column;
            rows->value[n++] = block->value != NULL ? block->value[e] : 1;
        }
    }
    rows->start[block->rows] = n;
    rows->x = (pli_csr){ .rows = block->rows, .row_start = rows->start, .col = rows->col, .value = rows->value };
    return PLAIT_OK;
}

static plait_status know(const pli_block *block, int64_t d, known_rows *rows, plait_error *err) {
    *rows = (known_rows){ .start = NULL };
    if (!knows_all(block, d)) return leave_out(block, d, rows, err);
    rows->x = pli_kmeans_csr(block);
    return PLAIT_OK;
}

static void forget(known_rows *rows) {
    pli_free(rows->start);
    pli_free(rows->col);
    pli_free(rows->value);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* What is done with some rows, of which the nearest centres and distances are known. */
typedef struct asked {
    const pli_clusters *c;
    const pli_block    *block;
    plait_answer        answer;
    double             *out;
} asked;
typedef void rows_fn(const asked *a, const pli_centres *centres, const pli_csr *x, int64_t first, int64_t n,
                     const uint32_t *nearest, const double *distance);

static plait_status each_rows(const asked *a, rows_fn *fn, plait_error *err) {
    const pli_clusters *c = a->c;
    const double        cells = (double)a->block->rows * (double)c->d;
    const pli_centres  *centres = (double)a->block->entries >= PLI_NEAREST_DENSE * cells ? &c->dense : &c->sparse;
    uint32_t            nearest[ROWS];
    double              distance[ROWS];
    const pli_assigned  to = { .nearest = nearest, .distance = distance };
    known_rows          rows;
    void               *scratch = pli_array(1, pli_nearest_scratch_bytes(c->k, c->d));
    plait_status        status = know(a->block, c->d, &rows, err);
    if (scratch == NULL && status >= 0) status = pli_fail(err, PLAIT_ENOMEM, "no memory to compare rows with centres");
    for (int64_t first = 0, n; status >= 0 && first < a->block->rows; first += n) {
        n = a->block->rows - first < ROWS ? a->block->rows - first : ROWS;
        pli_nearest_csr(centres, &rows.x, (pli_rows){ .first = first, .n = n }, scratch, &to);
        fn(a, centres, &rows.x, first, n, nearest, distance);
    }
    pli_free(scratch);
    forget(&rows);
    return status;
}

int64_t pli_clusters_width(const plait_model *model, plait_answer answer) {
    const pli_clusters *c = plait_model_state((plait_model *)model);
    return answer == PLAIT_ANSWER_LABEL ? 1 : answer == PLAIT_ANSWER_TRANSFORM ? c->k : 0;
}

static void answer(const asked *a, const pli_centres *centres, const pli_csr *x, int64_t first, int64_t n,
                   const uint32_t *nearest, const double *distance) {
    const int64_t k = a->c->k;
    (void)distance;
    if (a->answer == PLAIT_ANSWER_LABEL) {
        for (int64_t i = 0; i < n; i++) a->out[first + i] = (double)nearest[i];
        return;
    }
    double *to = a->out + first * k;
    pli_centres_distances(centres, x, (pli_rows){ .first = first, .n = n }, to);
    for (int64_t i = 0; i < n * k; i++) to[i] = sqrt(to[i]);
}

plait_status pli_clusters_predict(const plait_model *model, plait_answer what, const plait_rows *rows, double *out,
                                  plait_error *err) {
    const asked a = { .c = plait_model_state((plait_model *)model), .block = (const pli_block *)rows, .answer = what,
                      .out = out };
    return each_rows(&a, answer, err);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

enum { INERTIA, WEIGHT, COUNTS }; /* and how many rows each cluster has */

int64_t pli_clusters_measures(const plait_model *model) {
    return COUNTS + ((const pli_clusters *)plait_model_state((plait_model *)model))->k;
}

static void add(const asked *a, const pli_centres *centres, const pli_csr *x, int64_t first, int64_t n,
                const uint32_t *nearest, const double *distance) {
    (void)centres;
    (void)x;
    for (int64_t i = 0; i < n; i++) {
        const double weight = pli_kmeans_weight(a->block, first + i);
        a->out[INERTIA] += weight * distance[i];
        a->out[WEIGHT] += weight;
        a->out[COUNTS + nearest[i]] += weight > 0;
    }
}

plait_status pli_clusters_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err) {
    const asked a = { .c = plait_model_state((plait_model *)model), .block = (const pli_block *)rows, .out = sums };
    return each_rows(&a, add, err);
}

int32_t pli_clusters_figures(const plait_model *model, const double *sums, plait_figure *figures) {
    const pli_clusters *c = plait_model_state((plait_model *)model);
    double              empty = 0, mean = sums[WEIGHT] > 0 ? sums[INERTIA] / sums[WEIGHT] : (double)NAN;
    for (int64_t j = 0; j < c->k; j++) empty += !(sums[COUNTS + j] > 0);
    figures[0] = (plait_figure){ .name = "loss", .value = mean };
    figures[1] = (plait_figure){ .name = "inertia", .value = sums[INERTIA] };
    figures[2] = (plait_figure){ .name = "empty", .value = empty };
    return 3;
}

/* --- export ------------------------------------------------------------------------------------------------------- */

/* Values [n] or [rows, n]; the caller has filled them. */
static const char *array(pli_export *to, const char *name, plait_shape shape, double *values) {
    const plait_tensor t = plait_tensor_of(PLAIT_F64, shape, values);
    return pli_export_array(to, name, &t, false);
}

/* Rows and centres less the centres' mean, as the kernels have it: centres across [d, k], half their squares [k]. */
static plait_status move(const pli_clusters *c, double *mean, double *across, double *half, plait_error *err) {
    if (mean == NULL || across == NULL || half == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory to export a model");
    memcpy(mean, c->dense.mean, (size_t)c->d * sizeof *mean);
    for (int64_t j = 0; j < c->k; j++) {
        double sum = 0;
        for (int64_t l = 0; l < c->d; l++) {
            const double moved = (double)c->dense.centre[j * c->d + l] - mean[l];
            across[l * c->k + j] = moved;
            sum += moved * moved;
        }
        half[j] = sum / 2;
    }
    return PLAIT_OK;
}

/* score = x.c - ||c||^2 / 2, whose highest is the nearest; ||x||^2 - 2 score is the squared distance. In double, since
 * the difference of two large squares may be small. */
static void write(const pli_clusters *c, pli_export *to, double *mean, double *across, double *half) {
    const int64_t       axis = 1;
    const pli_onnx_attr highest[] = { pli_export_int("axis", 1), pli_export_int("keepdims", 0) };
    const char         *x =
        pli_export_cast(to, pli_export_input(to, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, c->d), "rows"), PLAIT_F64);
    x = pli_export_2(to, "Sub", x, array(to, "mean", plait_shape_1(c->d), mean));
    const char *dot = pli_export_2(to, "MatMul", x, array(to, "centres", plait_shape_2(c->d, c->k), across));
    const char *score = pli_export_2(to, "Sub", dot, array(to, "half", plait_shape_1(c->k), half));
    const char *square = pli_export_2(to, "ReduceSum", pli_export_2(to, "Mul", x, x), pli_export_ints(to, 1, &axis));
    const char *twice = pli_export_2(to, "Mul", score, pli_export_number(to, PLAIT_F64, 2));
    const char *apart = pli_export_1(to, "Sqrt", pli_export_1(to, "Relu", pli_export_2(to, "Sub", square, twice)));
    const char *label = pli_export_node(to, "ArgMax", (const char *const[]){ score, NULL }, highest, 2);
    pli_export_output(to, label, "label", PLAIT_I64, false, plait_shape_1(PLAIT_ANY), "rows");
    pli_export_output(to, pli_export_cast(to, apart, PLAIT_F32), "distances", PLAIT_F32, false,
                      plait_shape_2(PLAIT_ANY, c->k), "rows");
}

plait_status pli_clusters_export(const plait_model *model, pli_export *to, plait_error *err) {
    const pli_clusters *c = plait_model_state((plait_model *)model);
    double      *mean = pli_array((size_t)c->d, sizeof *mean), *half = pli_array((size_t)c->k, sizeof *half);
    double      *across = pli_array((size_t)(c->k * c->d), sizeof *across);
    plait_status status = move(c, mean, across, half, err);
    if (status >= 0) write(c, to, mean, across, half);
    pli_free(mean);
    pli_free(half);
    pli_free(across);
    return status;
}
