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

#include "learn/trees/trees.h"

enum { ROWS = 2048, G_BITS = 44, H_BITS = 30, COLUMNS_ON_STACK = 64 };

/* Between the two passes a cell holds g and h as they are. */
typedef struct real {
    double g, h;
} real;
_Static_assert(sizeof(real) == sizeof(pli_sum_cell), "a cell holds both");

typedef struct work {
    pli_gradients      *to;
    const pli_bin_rows *rows;
    bool                losses;
    double             *most; /* [chunks, 2, columns] */
    pli_sums           *sums; /* [chunks] */
} work;

/* --- as they are -------------------------------------------------------------------------------------------------- */

/* As loss/logistic.c has them, by one exponential e for loss, slope and curvature; returns e. */
static double of_two(double score, double y, real *out) {
    const double margin = y * score, e = exp(-fabs(margin)), likelier = 1 / (1 + e);
    const double wrong = margin >= 0 ? e * likelier : likelier; /* probability of the other class */
    *out = (real){ -y * wrong, wrong * (1 - wrong) };
    return e;
}

/* The losses of rows of two classes. Those of log(1 + e) are added up as a product, whose logarithm is taken now and
 * then. */
typedef struct two_losses {
    double sum, product;
} two_losses;

static void add_two(two_losses *l, double margin, double e, double weight, int64_t row) {
    if (margin < 0) l->sum -= weight * margin;
    if (weight == 1) l->product *= 1 + e;
    else l->sum += weight * log1p(e);
    if ((row & 255) != 0) return; /* a factor is at most 2 */
    l->sum += log(l->product);
    l->product = 1;
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
            if (!(fabs(room[c]) <= most[c])) most[c] = fabs(room[c]);
            if (!(room[k + c] <= most[k + c])) most[k + c] = room[k + c];
        }
    }
}

/* Threads have neighbouring chunks at the same time, so what they add up stays their own until the end. */
static void take_two(const work *w, int64_t first, int64_t end, double most[2], pli_sums *sums) {
    const pli_bin_rows *rows = w->rows;
    real               *all = (real *)(void *)w->to->cell;
    two_losses          losses = { .product = 1 };
    double              g = 0, h = 0;
    for (int64_t r = first; r < end; r++) {
        if (rows->held != NULL && rows->held[r]) continue;
        const double weight = (double)rows->weight[r], y = rows->target[r];
        real         x;
        const double e = of_two(rows->score[r], y, &x);
        x = (real){ x.g * weight, x.h * weight };
        all[r] = x;
        if (!(fabs(x.g) <= g)) g = fabs(x.g);
        if (!(x.h <= h)) h = x.h;
        if (w->losses) add_two(&losses, y * rows->score[r], e, weight, r);
        sums->weight += weight;
        sums->rows++;
    }
    sums->loss = losses.sum + log(losses.product);
    most[0] = g;
    most[1] = h;
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
            if (!(fabs(x.g) <= most[c])) most[c] = fabs(x.g);
            if (!(x.h <= most[k + c])) most[k + c] = x.h;
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
            if (!(fabs(x.g) <= most[0])) most[0] = fabs(x.g);
            if (!(x.h <= most[1])) most[1] = x.h;
        }
        sums->loss += loss;
        sums->weight++;
        sums->rows += (double)n;
        pli_free(slope);
    }
}

static void take_chunk(void *user, int64_t chunk, int32_t thread) {
    work         *w = user;
    const int64_t k = w->to->goal->columns, n = w->rows->n, end = (chunk + 1) * ROWS < n ? (chunk + 1) * ROWS : n;
    double        on_stack[6 * COLUMNS_ON_STACK];
    double       *room = k <= COLUMNS_ON_STACK ? on_stack : pli_array((size_t)k, 6 * sizeof *room);
    double       *most = w->most + chunk * 2 * k;
    pli_sums      sums = { 0 };
    (void)thread;
    for (int64_t c = 0; room == NULL && c < 2 * k; c++) most[c] = (double)NAN;
    if (room == NULL) return;
    memset(room, 0, 2 * (size_t)k * sizeof *room);
    if (w->to->base != NULL) take_bag(w, chunk * ROWS, end, room + 2 * k, room);
    else if (w->to->goal->loss->query != NULL) take_queries(w, chunk * ROWS, end, room, &sums);
    else if (w->to->goal->loss->target == PLI_TWO_CLASSES) take_two(w, chunk * ROWS, end, room, &sums);
    else take_any(w, chunk * ROWS, end, room + 2 * k, room, &sums);
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

static void round_chunk(void *user, int64_t chunk, int32_t thread) {
    const work   *w = user;
    const int64_t k = w->to->goal->columns, n = w->rows->n, end = (chunk + 1) * ROWS < n ? (chunk + 1) * ROWS : n;
    (void)thread;
    for (int64_t c = 0; c < k; c++) {
        const pli_sum_scale *s = &w->to->scale[c];
        const double         g = 1 / s->g, h = 1 / s->h;
        for (int64_t r = chunk * ROWS; r < end; r++) {
            pli_sum_cell *cell = &w->to->cell[c * n + r];
            real          x;
            if (w->rows->held != NULL && w->rows->held[r]) continue;
            memcpy(&x, cell, sizeof x);
            *cell = (pli_sum_cell){ llrint(x.g * g), (llrint(x.h * h) << s->count_bits) + 1 };
        }
    }
}

/* --- a round ------------------------------------------------------------------------------------------------------ */

plait_status pli_gradients_make(pli_run *run, const pli_bin_rows *rows, pli_gradients *to) {
    const size_t k = (size_t)to->goal->columns, cells = k * (size_t)rows->n;
    to->cell = cells <= SIZE_MAX / sizeof(pli_sum_cell) ? pli_aligned(cells * sizeof(pli_sum_cell)) : NULL;
    to->scale = pli_array(k, sizeof *to->scale);
    to->most = pli_array(k, 2 * sizeof *to->most);
    if (to->cell != NULL && to->scale != NULL && to->most != NULL) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients of %lld rows", (long long)rows->n);
}

/* Where each worker has the rows of all, one of them counts their losses. */
static plait_status agree(pli_run *run, const work *w, int64_t chunks) {
    pli_gradients *to = w->to;
    const int64_t  k = to->goal->columns;
    const bool     counts = !w->rows->of_all || plait_comm_rank(run->comm) == 0;
    to->loss = (pli_total){ 0 };
    memset(to->most, 0, (size_t)(2 * k) * sizeof *to->most);
    for (int64_t i = 0; i < chunks; i++) {
        if (counts) pli_total_add(&to->loss, &w->sums[i]);
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

plait_status pli_gradients_take(pli_run *run, const pli_bin_rows *rows, bool losses, pli_gradients *to) {
    const int64_t chunks = (rows->n + ROWS - 1) / ROWS, k = to->goal->columns;
    work          w = { .to = to, .rows = rows, .losses = losses };
    w.most = pli_array((size_t)chunks, 2 * (size_t)k * sizeof *w.most);
    w.sums = pli_calloc((size_t)chunks, sizeof *w.sums);
    plait_status status = w.most != NULL && w.sums != NULL
                              ? PLAIT_OK
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients");
    if (status >= 0) {
        pli_pool_for(run->pool, chunks, take_chunk, &w);
        status = agree(run, &w, chunks);
    }
    if (status >= 0) {
        set_scales(run, to);
        pli_pool_for(run->pool, chunks, round_chunk, &w);
    }
    pli_free(w.most);
    pli_free(w.sums);
    return status;
}
