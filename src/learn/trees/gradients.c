/* The gradients of a round: slope g and curvature h of the loss at each row's score, as whole numbers.
 *
 * h is the second derivative. A loss that is straight, or nearly, has the curvature of a parabola that lies above it
 * and touches it at the score: for the quantile loss 1 / 2|r| with r = y - s (Hunter and Lange, "Quantile Regression
 * via an MM Algorithm", Journal of Computational and Graphical Statistics 2000), whose |r| is bounded from below. So
 * leaf values are steps in the label's own unit. Of K classes, h is that of one score times K / (K - 1), since the
 * scores have one degree of freedom too many (Friedman, 2001, section 4.6).
 *
 * A bin's sum of g needs as many bits as the largest |g| and the number of rows have together. h shares its cell with
 * the number of rows. So the more rows, the coarser h: with a million rows it has 22 bits. */
#include <math.h>
#include <string.h>

#include "learn/solve/inherit.h"
#include "learn/trees/trees.h"
#include "tensor/tensor.h"

enum { ROWS = 2048, TOGETHER = 512, LANES = 4, G_BITS = 44, H_BITS = 30, COLUMNS_ON_STACK = 64 };

/* Between the two passes a cell holds g and h as they are. */
typedef struct real {
    double g, h;
} real;
_Static_assert(sizeof(real) == sizeof(pli_sum_cell), "a cell holds both");

typedef struct work {
    pli_gradients      *to;
    const pli_bin_rows *rows;
    int64_t             from; /* the first row */
    bool                losses;
    double             *most; /* [chunks, 2, columns] */
    pli_sums           *sums; /* [chunks] */
} work;

/* --- as they are -------------------------------------------------------------------------------------------------- */

/* The larger one; NaN, once there is one. */
static inline double larger(double most, double x) { return x > most || isnan(x) ? x : most; }

/* As loss/logistic.c has them, by one exponential for loss, slope and curvature: e = e^-|margin|. No branch is taken,
 * so several rows go at once. */
static void slopes_of_two(int64_t n, const double *restrict score, const double *restrict y,
                          const float *restrict weight, const double *restrict e, double *restrict g,
                          double *restrict h) {
    for (int64_t i = 0; i < n; i++) {
        const double likelier = 1 / (1 + e[i]);
        const double wrong = likelier * (y[i] * score[i] >= 0 ? e[i] : 1); /* probability of the other class */
        g[i] = -y[i] * wrong * (double)weight[i];
        h[i] = wrong * (1 - wrong) * (double)weight[i];
    }
}

/* The losses of n rows of weight 1, n <= TOGETHER. Those of log(1 + e) are the logarithm of a product, whose factors
 * are at most 2. */
static double losses_of_two(int64_t n, const double *restrict score, const double *restrict y,
                            const double *restrict e) {
    double  sum[LANES] = { 0 }, product[LANES];
    int64_t i = 0;
    for (int j = 0; j < LANES; j++) product[j] = 1;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const double below = -(y[i + j] * score[i + j]);
            sum[j] += below > 0 ? below : 0;
            product[j] *= 1 + e[i + j];
        }
    for (; i < n; i++) {
        sum[0] += fmax(-(y[i] * score[i]), 0);
        product[0] *= 1 + e[i];
    }
    for (int j = 1; j < LANES; j++) {
        sum[0] += sum[j];
        product[0] *= product[j];
    }
    return sum[0] + log(product[0]);
}

static double curvature(const pli_gradients *to, double score, double y) {
    const pli_loss *loss = to->goal->loss;
    double          h = 1;
    if (loss->second != NULL) loss->second(to->goal->parameter, 1, &score, y, &h);
    else h = 1 / (2 * fmax(fabs(y - score), to->kink));
    return h;
}

/* All scores of a row. slope [columns] is scratch. */
static double of_row(const work *w, int64_t r, double *score, double *slope, real *out) {
    const pli_goal *goal = w->to->goal;
    const int64_t   k = goal->columns, n = w->rows->n;
    const double    y = w->rows->target[r];
    for (int64_t c = 0; c < k; c++) score[c] = w->rows->score[c * n + r];
    const double loss = goal->loss->at(goal->parameter, k, score, y, slope);
    if (goal->loss->target == PLI_NUMBER) {
        *out = (real){ slope[0], curvature(w->to, score[0], y) };
        return loss;
    }
    for (int64_t c = 0; c < k; c++) {
        const double p = slope[c] + (c == (int64_t)y ? 1 : 0);
        out[c] = (real){ slope[c], p * (1 - p) * (double)k / (double)(k - 1) };
    }
    return loss;
}

/* The gradients of a forest: those of the rows in the round's bag. */
static void take_bag(const work *w, int64_t first, int64_t end, double *room, double *most) {
    const pli_gradients *to = w->to;
    const int64_t        k = to->goal->columns, n = w->rows->n;
    real                *all = (real *)(void *)to->cell;
    for (int64_t r = first; r < end; r++) {
        if (w->rows->held != NULL && w->rows->held[r]) continue;
        const int32_t times = pli_bag_draw(to->seed, to->round, w->rows->number[r], to->mean);
        pli_bag_gradient(to->goal, w->rows->target[r], times * (double)w->rows->weight[r], to->base, room, room + k);
        for (int64_t c = 0; c < k; c++) {
            all[c * n + r] = (real){ room[c], room[k + c] };
            most[c] = larger(most[c], fabs(room[c]));
            most[k + c] = larger(most[k + c], room[k + c]);
        }
    }
}

/* e^-|score| of some rows. */
static void exponentials(int64_t n, const double *score, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = -fabs(score[i]);
    pli_kernels_get()->exp_f64(n, out, out);
}

/* Some rows, n <= TOGETHER. */
static void take_twos(const work *w, int64_t first, int64_t n, double most[2], pli_sums *sums) {
    const pli_bin_rows *rows = w->rows;
    const double       *score = rows->score + first, *y = rows->target + first;
    const float        *weight = rows->weight + first;
    const bool         *held = rows->held != NULL ? rows->held + first : NULL;
    real               *out = (real *)(void *)w->to->cell + first;
    double              e[TOGETHER], g[TOGETHER], h[TOGETHER], total = 0;
    int64_t             taken = 0, ones = 0;
    exponentials(n, score, e);
    slopes_of_two(n, score, y, weight, e, g, h);
    for (int64_t i = 0; i < n; i++) {
        if (held != NULL && held[i]) {
            g[i] = h[i] = 0;
            continue;
        }
        out[i] = (real){ g[i], h[i] };
        total += (double)weight[i];
        ones += weight[i] == 1;
        taken++;
    }
    sums->weight += total;
    sums->rows += (double)taken;
    most[0] = larger(most[0], pli_kernels_get()->max_abs_f64(n, g));
    most[1] = larger(most[1], pli_kernels_get()->max_abs_f64(n, h));
    if (w->losses && ones == n) sums->loss += losses_of_two(n, score, y, e);
    else if (w->losses)
        for (int64_t i = 0; i < n; i++)
            if (held == NULL || !held[i]) sums->loss += (double)weight[i] * (fmax(-(y[i] * score[i]), 0) + log1p(e[i]));
}

/* Threads have neighbouring chunks at the same time, so what they add up stays their own until the end. */
static void take_two(const work *w, int64_t first, int64_t end, double most[2], pli_sums *sums) {
    for (int64_t r = first; r < end; r += TOGETHER)
        take_twos(w, r, end - r < TOGETHER ? end - r : TOGETHER, most, sums);
}

/* room [4 columns] is scratch. */
static void take_any(const work *w, int64_t first, int64_t end, double *room, double *most, pli_sums *sums) {
    const int64_t k = w->to->goal->columns, n = w->rows->n;
    real         *all = (real *)(void *)w->to->cell, *out = (real *)(void *)(room + 2 * k);
    for (int64_t r = first; r < end; r++) {
        if (w->rows->held != NULL && w->rows->held[r]) continue;
        const double weight = (double)w->rows->weight[r], loss = of_row(w, r, room, room + k, out);
        for (int64_t c = 0; c < k; c++) {
            const real x = { out[c].g * weight, out[c].h * weight };
            all[c * n + r] = x;
            most[c] = larger(most[c], fabs(x.g));
            most[k + c] = larger(most[k + c], x.h);
        }
        sums->loss += weight * loss;
        sums->weight += weight;
        sums->rows++;
    }
}

/* The queries that begin in the chunk. Their last rows may lie in the next one, which leaves them alone. */
static void take_queries(const work *w, int64_t first, int64_t end, double most[2], pli_sums *sums) {
    const pli_bin_rows *rows = w->rows;
    real               *all = (real *)(void *)w->to->cell;
    for (int64_t q = pli_bin_rows_query_from(rows, first); q < rows->queries && rows->query[q] < end; q++) {
        const int64_t from = rows->query[q], n = rows->query[q + 1] - from;
        double       *slope = pli_array((size_t)n, 2 * sizeof *slope), ndcg, loss = (double)NAN;
        if (slope == NULL) most[0] = (double)NAN;
        else loss = w->to->goal->loss->query(n, rows->score + from, rows->target + from, slope, slope + n, &ndcg);
        for (int64_t i = 0; slope != NULL && i < n; i++) {
            const double weight = (double)rows->weight[from + i];
            const real   x = { slope[i] * weight, slope[n + i] * weight };
            all[from + i] = x;
            most[0] = larger(most[0], fabs(x.g));
            most[1] = larger(most[1], x.h);
        }
        sums->loss += loss;
        sums->weight++;
        sums->rows += (double)n;
        pli_free(slope);
    }
}

static void take_chunk(void *user, int64_t chunk, int32_t thread) {
    work         *w = user;
    const int64_t k = w->to->goal->columns, n = w->rows->n;
    const int64_t first = w->from + chunk * ROWS, end = first + ROWS < n ? first + ROWS : n;
    double        on_stack[6 * COLUMNS_ON_STACK];
    double       *room = k <= COLUMNS_ON_STACK ? on_stack : pli_array((size_t)k, 6 * sizeof *room);
    double       *most = w->most + chunk * 2 * k;
    pli_sums      sums = { 0 };
    (void)thread;
    for (int64_t c = 0; room == NULL && c < 2 * k; c++) most[c] = (double)NAN;
    if (room == NULL) return;
    memset(room, 0, 2 * (size_t)k * sizeof *room);
    if (w->to->base != NULL) take_bag(w, first, end, room + 2 * k, room);
    else if (w->to->goal->loss->query != NULL) take_queries(w, first, end, room, &sums);
    else if (w->to->goal->loss->target == PLI_TWO_CLASSES) take_two(w, first, end, room, &sums);
    else take_any(w, first, end, room + 2 * k, room, &sums);
    memcpy(most, room, 2 * (size_t)k * sizeof *room);
    w->sums[chunk] = sums;
    if (room != on_stack) pli_free(room);
}

/* --- as whole numbers --------------------------------------------------------------------------------------------- */

static int32_t bits_of(int64_t n) {
    int32_t bits = 0;
    while (n >> bits != 0) bits++;
    return bits;
}

/* 2^bits units hold `most`. */
static double unit_of(double most, int32_t bits) {
    int exponent;
    (void)frexp(most, &exponent); /* most < 2^exponent */
    return most > 0 ? ldexp(1, exponent - bits) : 1;
}

static void set_scales(const pli_run *run, pli_gradients *to) {
    const int64_t k = to->goal->columns;
    const int32_t count = bits_of(run->train_rows), g = 62 - count < G_BITS ? 62 - count : G_BITS,
                  h = 62 - 2 * count < H_BITS ? 62 - 2 * count : H_BITS;
    for (int64_t c = 0; c < k; c++)
        to->scale[c] = (pli_sum_scale){ .count_bits = count, .g = unit_of(to->most[c], g),
                                        .h = unit_of(to->most[k + c], h) };
}

/* x as a whole number, the even one of two that are as near: llrint without a call. |x| < 2^51. */
static inline int64_t whole_of(double x) {
    const double magic = 0x1.8p52, shifted = x + magic; /* the whole number lies in the low bits */
    int64_t      bits, none;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&none, &magic, sizeof none);
    return bits - none;
}

static void round_chunk(void *user, int64_t chunk, int32_t thread) {
    const work   *w = user;
    const int64_t k = w->to->goal->columns, n = w->rows->n;
    const int64_t first = w->from + chunk * ROWS, end = first + ROWS < n ? first + ROWS : n;
    (void)thread;
    for (int64_t c = 0; c < k; c++) {
        const pli_sum_scale *s = &w->to->scale[c];
        const double         g = 1 / s->g, h = 1 / s->h;
        for (int64_t r = first; r < end; r++) {
            pli_sum_cell *cell = &w->to->cell[c * n + r];
            real          x;
            if (w->rows->held != NULL && w->rows->held[r]) continue;
            memcpy(&x, cell, sizeof x);
            *cell = (pli_sum_cell){ whole_of(x.g * g), (whole_of(x.h * h) << s->count_bits) + 1 };
        }
    }
}

/* --- a round ------------------------------------------------------------------------------------------------------ */

static pli_sum_cell *make_cells(const pli_run *run, int64_t k, int64_t n) {
    const size_t  cells = (size_t)k * (size_t)n;
    pli_sum_cell *cell = cells <= SIZE_MAX / sizeof *cell ? pli_aligned(cells * sizeof *cell) : NULL;
    if (cell == NULL) (void)pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients of %lld rows", (long long)n);
    return cell;
}

plait_status pli_gradients_make(pli_run *run, const pli_bin_rows *rows, pli_gradients *to) {
    const size_t k = (size_t)to->goal->columns;
    to->cell = make_cells(run, to->goal->columns, rows->n);
    to->scale = pli_array(k, sizeof *to->scale);
    to->most = pli_array(k, 2 * sizeof *to->most);
    if (to->cell != NULL && to->scale != NULL && to->most != NULL) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients of %lld rows", (long long)rows->n);
}

plait_status pli_gradients_resize(const pli_run *run, const pli_bin_rows *rows, int64_t before, pli_gradients *to) {
    const int64_t k = to->goal->columns, n = rows->n;
    if (to->cell == NULL) return PLAIT_OK; /* they are made later */
    pli_sum_cell *cell = make_cells(run, k, n);
    if (cell == NULL) return PLAIT_ENOMEM;
    for (int64_t c = 0; c < k; c++)
        memcpy(cell + c * n, to->cell + c * before, (size_t)before * sizeof *cell);
    pli_free(to->cell);
    to->cell = cell;
    return PLAIT_OK;
}

/* A worker that has the rows of all counts the losses of those chunks whose first row lies in a block of its own.
 * Chunks and parts come in the order of their rows: `part` is where the chunk before began. */
static bool counts(const pli_run *run, const work *w, int64_t chunk, int32_t *part) {
    const pli_bin_rows *rows = w->rows;
    const int64_t       row = w->from + chunk * ROWS;
    if (!rows->of_all) return true;
    while (*part < rows->parts && rows->part[*part].first + rows->part[*part].n <= row) ++*part;
    return *part < rows->parts && rows->part[*part].first <= row &&
           pli_living_is_mine(run, run->data, rows->part[*part].block);
}

static plait_status agree(pli_run *run, const work *w, int64_t chunks) {
    pli_gradients *to = w->to;
    const int64_t  k = to->goal->columns;
    int32_t        part = 0;
    to->loss = (pli_total){ 0 };
    memset(to->most, 0, (size_t)(2 * k) * sizeof *to->most);
    for (int64_t i = 0; i < chunks; i++) {
        if (counts(run, w, i, &part)) pli_total_add(&to->loss, &w->sums[i]);
        for (int64_t c = 0; c < 2 * k; c++) { /* the maximum of all workers takes infinity, and not NaN */
            const double most = w->most[i * 2 * k + c];
            to->most[c] = isfinite(most) ? fmax(to->most[c], most) : (double)INFINITY;
        }
    }
    PLI_TRY(plait_comm_allreduce(run->comm, to->most, 2 * k, PLAIT_F64, PLAIT_MAX));
    for (int64_t c = 0; c < 2 * k; c++)
        if (!isfinite(to->most[c]))
            return pli_fail(run->err, PLAIT_EDIVERGED,
                            "the gradients are not finite in round %lld: take a smaller --learning-rate, or look for "
                            "huge labels in the data", (long long)run->epochs_done + 1);
    return PLAIT_OK;
}

/* Memory for what chunks find; the number of chunks. -1: there is none. */
static int64_t make_work(work *w) {
    const int64_t chunks = (w->rows->n - w->from + ROWS - 1) / ROWS;
    w->most = pli_array((size_t)chunks, 2 * (size_t)w->to->goal->columns * sizeof *w->most);
    w->sums = pli_calloc((size_t)chunks, sizeof *w->sums);
    return w->most != NULL && w->sums != NULL ? chunks : -1;
}

static void end_work(work *w) {
    pli_free(w->most);
    pli_free(w->sums);
}

static plait_status take(pli_run *run, work *w) {
    PLI_TRY(pli_heirs_gather(run));
    const int64_t chunks = make_work(w);
    if (chunks < 0) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients");
    pli_pool_for(run->pool, chunks, take_chunk, w);
    PLI_TRY(agree(run, w, chunks));
    set_scales(run, w->to);
    pli_pool_for(run->pool, chunks, round_chunk, w);
    return PLAIT_OK;
}

plait_status pli_gradients_take(pli_run *run, const pli_bin_rows *rows, bool losses, pli_gradients *to) {
    int32_t      absent = pli_comm_absent(run->comm);
    plait_status status;
    do {
        work w = { .to = to, .rows = rows, .losses = losses };
        status = take(run, &w);
        end_work(&w);
    } while (status >= 0 && pli_run_again(run, &absent));
    return status;
}

plait_status pli_gradients_add(const pli_run *run, const pli_bin_rows *rows, int64_t from, pli_gradients *to) {
    work          w = { .to = to, .rows = rows, .from = from };
    const int64_t chunks = make_work(&w);
    if (chunks >= 0) {
        pli_pool_for(run->pool, chunks, take_chunk, &w);
        pli_pool_for(run->pool, chunks, round_chunk, &w);
    }
    end_work(&w);
    return chunks >= 0 ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients");
}
