/* Training row by row, without locks: each thread takes parts of the batch; for each row it gets the weights, computes,
 * and pushes the gradient at once (Niu et al., "HOGWILD!: A Lock-Free Approach to Parallelizing Stochastic Gradient
 * Descent", NIPS 2011). The last key of a row is the intercept's. */
#include "learn/linear/fit.h"

#include <string.h>

#include "table/table.h"

/* A row as training sees it. */
typedef struct row {
    int64_t   n, capacity;
    uint64_t *keys;
    double   *x;
    double    y, weight;
    bool      known; /* is its label known? */
} row;

typedef struct pli_row_worker {
    row       row[2];   /* the row at hand, and the next one, whose weights are prefetched */
    int64_t   capacity; /* keys */
    float    *values;   /* [capacity, K] */
    double   *score;  /* [2K]          */
    float    *bias;   /* [K]           */
    pli_sums  sums;
    plait_error error;
    char      apart[64]; /* keeps the next thread's worker on another cache line */
} pli_row_worker;

typedef struct row_pass {
    pli_run        *run;
    const pli_part *part;  /* of loaded data                                        */
    int64_t         clock; /* of a stream: the thread at work parses its part itself */
} row_pass;

static plait_status reserve(pli_row_worker *h, row *r, int64_t n, int64_t k) {
    int64_t capacity = n + n / 2 + 64;
    bool    ok = true;
    if (n > r->capacity) {
        uint64_t *keys = pli_realloc(r->keys, (size_t)capacity, sizeof *keys);
        if (keys != NULL) r->keys = keys;
        double *x = pli_realloc(r->x, (size_t)capacity, sizeof *x);
        if (x != NULL) r->x = x;
        ok = keys != NULL && x != NULL;
        if (ok) r->capacity = capacity;
    }
    if (n > h->capacity) {
        float *values = pli_realloc(h->values, (size_t)(capacity * k), sizeof *values);
        if (values != NULL) h->values = values;
        ok = ok && values != NULL;
        if (ok) h->capacity = capacity;
    }
    return ok ? PLAIT_OK : pli_fail(&h->error, PLAIT_ENOMEM, "no memory for a row of %lld entries", (long long)n);
}

/* Takes a row of the block, and prefetches its weights. The intercept comes last, if it is a row of the table. */
static plait_status take_row(const pli_run *run, pli_row_worker *h, const pli_block *block, int64_t number, row *r) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t       at = block->row_start[number], n = block->row_start[number + 1] - at, d = l->linear.features;
    const float  *value = block->value != NULL ? block->value + at : NULL;
    const double *factor = l->fit.scale.factor, *centre = l->fit.scale.centre;
    r->known = pli_goal_target(&l->linear.goal, block->label[number], &r->y, &r->weight);
    if (block->weight != NULL) r->weight *= (double)block->weight[number];
    PLI_TRY(reserve(h, r, (centre != NULL ? d : n) + 1, l->linear.goal.columns));
    if (centre != NULL) { /* centred: a value that is not given is not 0 */
        for (int64_t j = 0; j < d; j++) {
            r->keys[j] = (uint64_t)j;
            r->x[j] = -centre[j] * factor[j];
        }
        for (int64_t e = 0; e < n; e++)
            r->x[block->col[at + e]] += factor[block->col[at + e]] * (value != NULL ? (double)value[e] : 1.0);
        n = d;
    } else {
        for (int64_t e = 0; e < n; e++) r->keys[e] = block->col != NULL ? block->col[at + e] : block->key[at + e];
        for (int64_t e = 0; e < n; e++) r->x[e] = value != NULL ? (double)value[e] : 1.0;
        for (int64_t e = 0; e < n && factor != NULL; e++) r->x[e] *= factor[r->keys[e]];
    }
    if (n > 0 && pli_linear_lacks(&l->linear, r->keys[n - 1]))
        return pli_fail(&h->error, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH, (long long)(block->first_row + number + 1));
    if (l->linear.intercept && l->b == NULL) {
        r->keys[n] = (uint64_t)d;
        r->x[n++] = 1;
    }
    r->n = n;
    pli_table_ahead(l->w, n, r->keys);
    return PLAIT_OK;
}

static plait_status train_row(pli_run *run, pli_row_worker *h, const row *r) {
    pli_linear_fit   *l = pli_linear_fit_of(run);
    const pli_goal   *goal = &l->linear.goal;
    int64_t           k = goal->columns;
    double           *score = h->score, *slope = h->score + k;
    if (!r->known) return PLAIT_OK;
    PLI_TRY(plait_table_get(l->w, r->n, r->keys, h->values));
    for (int64_t c = 0; c < k; c++) score[c] = 0;
    if (l->b != NULL) {
        PLI_TRY(plait_table_get(l->b, 1, &(uint64_t){ 0 }, h->bias));
        for (int64_t c = 0; c < k; c++) score[c] = (double)h->bias[c];
    }
    for (int64_t e = 0; e < r->n; e++)
        for (int64_t c = 0; c < k; c++) score[c] += r->x[e] * (double)h->values[e * k + c];
    h->sums.loss += r->weight * goal->loss->at(goal->parameter, k, score, r->y, slope);
    h->sums.weight += r->weight;
    h->sums.rows++;
    for (int64_t c = 0; c < k; c++) slope[c] *= r->weight;
    for (int64_t e = 0; e < r->n; e++)
        for (int64_t c = 0; c < k; c++) h->values[e * k + c] = (float)(r->x[e] * slope[c]);
    if (l->b != NULL) {
        for (int64_t c = 0; c < k; c++) h->bias[c] = (float)slope[c];
        PLI_TRY(plait_table_inc(l->b, 1, &(uint64_t){ 0 }, h->bias, 1));
    }
    return plait_table_inc(l->w, r->n, r->keys, h->values, 1);
}

static int64_t row_number(const pli_part *part, int64_t j) {
    return part->order != NULL ? (int64_t)part->order[j] : part->first + j;
}

static void part_rows(void *user, int64_t i, int32_t thread) {
    const row_pass *pass = user;
    pli_run        *run = pass->run;
    pli_row_worker *h = &pli_linear_fit_of(run)->hogwild[thread];
    pli_part        part = { 0 };
    plait_status    status = h->error.code;
    if (run->stream && status == PLAIT_OK)
        status = pli_stream_part(run->loop->batches, pass->clock, (int32_t)i, thread, &part, &h->error);
    else if (status == PLAIT_OK)
        part = pass->part[i];
    if (part.rows > 0 && status == PLAIT_OK) status = take_row(run, h, part.block, row_number(&part, 0), &h->row[0]);
    for (int64_t j = 0; j < part.rows && status == PLAIT_OK; j++) {
        if (j + 1 < part.rows) status = take_row(run, h, part.block, row_number(&part, j + 1), &h->row[(j + 1) & 1]);
        if (status == PLAIT_OK) status = train_row(run, h, &h->row[j & 1]);
        if (status < 0 && h->error.code == PLAIT_OK) h->error = *plait_comm_error(run->comm);
    }
}

static plait_status begin(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    int32_t         threads = pli_pool_threads(run->pool);
    PLI_TRY(pli_linear_begin(run));
    l->hogwild = pli_calloc((size_t)threads, sizeof *l->hogwild);
    bool ok = l->hogwild != NULL;
    for (int32_t t = 0; ok && t < threads; t++) {
        l->hogwild[t].score = pli_calloc((size_t)l->linear.goal.columns, 2 * sizeof(double));
        l->hogwild[t].bias = pli_calloc((size_t)l->linear.goal.columns, sizeof(float));
        ok = l->hogwild[t].score != NULL && l->hogwild[t].bias != NULL &&
             reserve(&l->hogwild[t], &l->hogwild[t].row[0], 64, l->linear.goal.columns) == PLAIT_OK;
    }
    return ok ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for %d threads", (int)threads);
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    row_pass pass = { .run = run, .part = batch != NULL ? batch->part : NULL, .clock = clock };
    int32_t  threads = pli_pool_threads(run->pool);
    uint64_t at = pli_comm_span_begin(run->comm);
    pli_loop_work_begin(run);
    pli_pool_for(run->pool, batch != NULL ? batch->parts : pli_dataset_own_blocks(run->data), part_rows, &pass);
    pli_loop_work_end(run);
    for (int32_t t = 0; t < threads; t++) {
        pli_row_worker *h = &l->hogwild[t];
        if (h->error.code < 0) {
            *run->err = h->error;
            return h->error.code;
        }
        pli_sums_add(sums_out, &h->sums);
        h->sums = (pli_sums){ 0 };
    }
    pli_run_step(run, "compute", &at);
    return PLAIT_OK;
}

static void end(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    for (int32_t t = 0; l->hogwild != NULL && t < pli_pool_threads(run->pool); t++) {
        for (int i = 0; i < 2; i++) {
            pli_free(l->hogwild[t].row[i].keys);
            pli_free(l->hogwild[t].row[i].x);
        }
        pli_free(l->hogwild[t].values);
        pli_free(l->hogwild[t].bias);
        pli_free(l->hogwild[t].score);
    }
    pli_free(l->hogwild);
    pli_linear_end(run);
}

/* The curve and a spare read as in steps.c. */
static plait_status curve(pli_run *run) { return pli_linear_steps.curve(run); }
static plait_status idle(pli_run *run) { return pli_linear_steps.idle(run); }

const pli_steps pli_hogwild_steps = {
    .parses = true, .begin = begin, .end = end, .step = step, .idle = idle, .curve = curve, .finite = pli_fit_finite,
    .told = pli_fit_told, .epoch = pli_fit_epoch, .finish = pli_fit_finish
};
