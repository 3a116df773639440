/* Sums over rows and workers; the area under the ROC curve. */
#include "learn/loss/metrics.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "comm/comm.h"
#include "tensor/exact_cells.h"

void pli_sums_add(pli_sums *sums, const pli_sums *other) {
    sums->loss += other->loss;
    sums->weight += other->weight;
    sums->right += other->right;
    sums->square += other->square;
    sums->absolute += other->absolute;
    sums->rows += other->rows;
}

_Static_assert(sizeof(pli_sums) == PLI_SUMS * sizeof(double), "pli_cells_add takes sums as an array");
_Static_assert(sizeof(pli_total) == PLI_SUMS * PLI_CELL_BYTES_F64, "one cell for each sum");

void pli_total_add(pli_total *total, const pli_sums *part) { pli_cells_add(true, PLI_SUMS, part, total->cell); }

void pli_total_merge(pli_total *total, const pli_total *other) {
    pli_cells_merge(true, PLI_SUMS, total->cell, other->cell, total->cell);
}

pli_sums pli_total_sums(const pli_total *total) {
    pli_sums sums;
    pli_cells_round(true, PLI_SUMS, total->cell, &sums);
    return sums;
}

plait_status pli_total_agree(plait_comm *comm, const pli_total *total, pli_sums *sums_out) {
    pli_total all = *total;
    PLI_TRY(pli_comm_sum_cells(comm, true, PLI_SUMS, all.cell));
    *sums_out = pli_total_sums(&all);
    return PLAIT_OK;
}

plait_status pli_sums_agree(plait_comm *comm, pli_sums *sums) {
    double flat[6] = { sums->loss, sums->weight, sums->right, sums->square, sums->absolute, sums->rows };
    PLI_TRY(plait_comm_allreduce(comm, flat, 6, PLAIT_F64, PLAIT_SUM));
    *sums = (pli_sums){ flat[0], flat[1], flat[2], flat[3], flat[4], flat[5] };
    return PLAIT_OK;
}

double pli_sums_loss(const pli_sums *sums) { return sums->weight > 0 ? sums->loss / sums->weight : (double)NAN; }

plait_status pli_sums_check(const pli_sums *sums, const char *what, plait_error *err) {
    if (sums->rows == 0 || sums->weight > 0) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "all rows of %s have weight 0: the sum of weights must be above 0", what);
}

/* The results, as integers, are in the order of the doubles. */
static uint64_t sortable(double x) {
    uint64_t bits;
    x += 0.0; /* -0 becomes +0: they tie */
    memcpy(&bits, &x, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

plait_status pli_auc(int64_t n, const double *score, const uint8_t *positive, const float *weight, double *auc_out,
                     plait_error *err) {
    *auc_out = NAN;
    if (n == 0 || n > UINT32_MAX) return PLAIT_OK;
    uint64_t    *key = pli_array((size_t)n, sizeof *key);
    uint32_t    *row = pli_array((size_t)n, sizeof *row);
    plait_status status = PLAIT_ENOMEM;
    if (key == NULL || row == NULL) goto out;
    for (int64_t i = 0; i < n; i++) {
        key[i] = sortable(score[i]);
        row[i] = (uint32_t)i;
    }
    if (!pli_sort_u64(n, key, row)) goto out;
    double above = 0, positives = 0, negatives = 0; /* above: the weight of pairs in the right order */
    for (int64_t i = 0; i < n;) {
        double tie[2] = { 0, 0 };
        int64_t j = i;
        for (; j < n && key[j] == key[i]; j++) tie[positive[row[j]]] += weight != NULL ? (double)weight[row[j]] : 1.0;
        above += tie[1] * (negatives + tie[0] / 2);
        negatives += tie[0];
        positives += tie[1];
        i = j;
    }
    if (positives > 0 && negatives > 0) *auc_out = above / positives / negatives;
    status = PLAIT_OK;
out:
    pli_free(key);
    pli_free(row);
    return status < 0 ? pli_fail(err, status, "no memory to rank %lld scores", (long long)n) : status;
}

plait_status pli_ranking_add(pli_ranking *r, double score, bool positive, double weight, plait_error *err) {
    if (!pli_grow((void **)&r->score, &r->score_capacity, r->n + 1, sizeof *r->score) ||
        !pli_grow((void **)&r->weight, &r->weight_capacity, r->n + 1, sizeof *r->weight) ||
        !pli_grow((void **)&r->positive, &r->positive_capacity, r->n + 1, sizeof *r->positive))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld scores", (long long)r->n + 1);
    r->score[r->n] = score;
    r->weight[r->n] = (float)weight;
    r->positive[r->n++] = positive;
    return PLAIT_OK;
}

void pli_ranking_free(pli_ranking *r) {
    pli_free(r->score);
    pli_free(r->weight);
    pli_free(r->positive);
    *r = (pli_ranking){ 0 };
}

static plait_status gather(plait_comm *comm, const void *mine, int64_t n, size_t bytes, void **all_out,
                           int64_t *total_out) {
    size_t *sizes = pli_array((size_t)plait_comm_workers(comm), sizeof *sizes);
    if (sizes == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allgatherv(comm, mine, (size_t)n * bytes, sizes, all_out);
    size_t       total = 0;
    for (int32_t w = 0; status == PLAIT_OK && w < plait_comm_workers(comm); w++) total += sizes[w];
    *total_out = (int64_t)(total / bytes);
    pli_free(sizes);
    return status;
}

plait_status pli_ranking_auc(const pli_ranking *r, plait_comm *comm, double *auc_out, plait_error *err) {
    if (comm == NULL || plait_comm_workers(comm) == 1)
        return pli_auc(r->n, r->score, r->positive, r->weight, auc_out, err);
    void        *score = NULL, *weight = NULL, *positive = NULL;
    int64_t      n = 0;
    plait_status status = gather(comm, r->score, r->n, sizeof *r->score, &score, &n);
    if (status == PLAIT_OK) status = gather(comm, r->weight, r->n, sizeof *r->weight, &weight, &n);
    if (status == PLAIT_OK) status = gather(comm, r->positive, r->n, sizeof *r->positive, &positive, &n);
    if (status == PLAIT_OK) status = pli_auc(n, score, positive, weight, auc_out, err);
    plait_comm_free(score);
    plait_comm_free(weight);
    plait_comm_free(positive);
    return status;
}
