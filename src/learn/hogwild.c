/* Row by row, without locks: each thread takes parts of the batch, and for each row gets its weights, computes, and pushes
 * its gradient at once (Niu et al., "HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent", NIPS
 * 2011). A row's keys end with the intercept's. */
#include "learn/sgd.h"

#include <string.h>

typedef struct pli_hogwild {
    int64_t   capacity; /* keys */
    uint64_t *keys;
    double   *x;      /* [capacity] as training sees them */
    float    *values; /* [capacity, K] */
    double   *score;  /* [2K]          */
    float    *bias;   /* [K]           */
    pli_sums  sums;
    plait_error error;
    char      apart[64]; /* from the next thread's */
} pli_hogwild;

typedef struct row_pass {
    pli_sgd  *sgd;
    pli_batch batch; /* of loaded data                                            */
    int64_t   clock; /* of a stream, whose parts are parsed by the thread at work */
} row_pass;

static plait_status reserve(pli_hogwild *h, int64_t n, int64_t k) {
    if (n <= h->capacity) return PLAIT_OK;
    int64_t   capacity = n + n / 2 + 64;
    uint64_t *keys = pli_realloc(h->keys, (size_t)capacity, sizeof *keys);
    if (keys != NULL) h->keys = keys;
    double *x = pli_realloc(h->x, (size_t)capacity, sizeof *x);
    if (x != NULL) h->x = x;
    float *values = pli_realloc(h->values, (size_t)(capacity * k), sizeof *values);
    if (values != NULL) h->values = values;
    if (keys == NULL || x == NULL || values == NULL)
        return pli_fail(&h->error, PLAIT_ENOMEM, "no memory for a row of %lld entries", (long long)n);
    h->capacity = capacity;
    return PLAIT_OK;
}

/* The row as training sees it: keys and x [n], the intercept last, where it is a row of the table. */
static plait_status take_row(const pli_run *run, pli_hogwild *h, const pli_block *block, int64_t r, int64_t *n_out) {
    int64_t       at = block->row_start[r], n = block->row_start[r + 1] - at, d = run->linear.features;
    const float  *value = block->value != NULL ? block->value + at : NULL;
    const double *factor = run->scale.factor, *centre = run->scale.centre;
    PLI_TRY(reserve(h, (centre != NULL ? d : n) + 1, run->linear.columns));
    if (centre != NULL) { /* centred: a value that is not given is no 0 */
        for (int64_t j = 0; j < d; j++) {
            h->keys[j] = (uint64_t)j;
            h->x[j] = -centre[j] * factor[j];
        }
        for (int64_t e = 0; e < n; e++) h->x[block->col[at + e]] += factor[block->col[at + e]] * (value != NULL ? (double)value[e] : 1.0);
        n = d;
    } else {
        for (int64_t e = 0; e < n; e++) h->keys[e] = block->col != NULL ? block->col[at + e] : block->key[at + e];
        for (int64_t e = 0; e < n; e++) h->x[e] = value != NULL ? (double)value[e] : 1.0;
        for (int64_t e = 0; e < n && factor != NULL; e++) h->x[e] *= factor[h->keys[e]];
    }
    if (run->linear.intercept && run->b == NULL) {
        h->keys[n] = (uint64_t)d;
        h->x[n++] = 1;
    }
    *n_out = n;
    return PLAIT_OK;
}

static plait_status one_row(pli_run *run, pli_hogwild *h, const pli_block *block, int64_t r) {
    const pli_linear *linear = &run->linear;
    int64_t           k = linear->columns, n;
    double            y, weight, *score = h->score, *slope = h->score + k;
    if (!pli_linear_target(linear, block->label[r], &y, &weight)) return PLAIT_OK;
    if (block->weight != NULL) weight *= (double)block->weight[r];
    PLI_TRY(take_row(run, h, block, r, &n));
    PLI_TRY(plait_table_get(run->w, n, h->keys, h->values));
    for (int64_t c = 0; c < k; c++) score[c] = 0;
    if (run->b != NULL) {
        PLI_TRY(plait_table_get(run->b, 1, &(uint64_t){ 0 }, h->bias));
        for (int64_t c = 0; c < k; c++) score[c] = (double)h->bias[c];
    }
    for (int64_t e = 0; e < n; e++)
        for (int64_t c = 0; c < k; c++) score[c] += h->x[e] * (double)h->values[e * k + c];
    h->sums.loss += weight * linear->loss->at(linear->parameter, k, score, y, slope);
    h->sums.weight += weight;
    h->sums.rows++;
    for (int64_t c = 0; c < k; c++) slope[c] *= weight;
    for (int64_t e = 0; e < n; e++)
        for (int64_t c = 0; c < k; c++) h->values[e * k + c] = (float)(h->x[e] * slope[c]);
    if (run->b != NULL) {
        for (int64_t c = 0; c < k; c++) h->bias[c] = (float)slope[c];
        PLI_TRY(plait_table_inc(run->b, 1, &(uint64_t){ 0 }, h->bias, 1));
    }
    return plait_table_inc(run->w, n, h->keys, h->values, 1);
}

static void part_rows(void *user, int64_t i, int32_t thread) {
    const row_pass *pass = user;
    pli_run        *run = pass->sgd->run;
    pli_hogwild    *h = &pass->sgd->hogwild[thread];
    pli_part        part = { 0 };
    plait_status    status = h->error.code;
    if (run->stream && status == PLAIT_OK)
        status = pli_stream_part(pass->sgd->batches, pass->clock, (int32_t)i, thread, &part, &h->error);
    else if (status == PLAIT_OK)
        part = pass->batch.part[i];
    for (int64_t j = 0; j < part.rows && status == PLAIT_OK; j++) {
        status = one_row(run, h, part.block, part.order != NULL ? (int64_t)part.order[j] : part.first + j);
        if (status < 0 && h->error.code == PLAIT_OK) h->error = *plait_comm_error(run->comm);
    }
}

plait_status pli_hogwild_begin(pli_sgd *sgd) {
    int32_t threads = pli_pool_threads(sgd->run->pool);
    sgd->hogwild = pli_calloc((size_t)threads, sizeof *sgd->hogwild);
    bool ok = sgd->hogwild != NULL;
    for (int32_t t = 0; ok && t < threads; t++) {
        sgd->hogwild[t].score = pli_calloc((size_t)sgd->run->linear.columns, 2 * sizeof(double));
        sgd->hogwild[t].bias = pli_calloc((size_t)sgd->run->linear.columns, sizeof(float));
        ok = sgd->hogwild[t].score != NULL && sgd->hogwild[t].bias != NULL && reserve(&sgd->hogwild[t], 64, sgd->run->linear.columns) == PLAIT_OK;
    }
    return ok ? PLAIT_OK : pli_fail(sgd->run->err, PLAIT_ENOMEM, "no memory for %d threads", (int)threads);
}

plait_status pli_hogwild_step(pli_sgd *sgd, int64_t epoch, int64_t clock, pli_sums *sums_out) {
    pli_run *run = sgd->run;
    row_pass pass = { .sgd = sgd, .clock = clock };
    int32_t  threads = pli_pool_threads(run->pool);
    if (!run->stream) PLI_TRY(pli_batches_get(sgd->batches, epoch, clock, &pass.batch, run->err));
    pli_pool_for(run->pool, pli_dataset_own_blocks(run->data), part_rows, &pass);
    for (int32_t t = 0; t < threads; t++) {
        pli_hogwild *h = &sgd->hogwild[t];
        if (h->error.code < 0) {
            *run->err = h->error;
            return h->error.code;
        }
        pli_sums_add(sums_out, &h->sums);
        h->sums = (pli_sums){ 0 };
    }
    return PLAIT_OK;
}

void pli_hogwild_end(pli_sgd *sgd) {
    for (int32_t t = 0; sgd->hogwild != NULL && t < pli_pool_threads(sgd->run->pool); t++) {
        pli_free(sgd->hogwild[t].keys);
        pli_free(sgd->hogwild[t].values);
        pli_free(sgd->hogwild[t].x);
        pli_free(sgd->hogwild[t].bias);
        pli_free(sgd->hogwild[t].score);
    }
    pli_free(sgd->hogwild);
}
