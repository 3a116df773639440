/* A worker's rows in the dual problem of a hinge loss: the shares of each, and passes over them. See dual.h.
 *
 * Two classes have one score and one share a in [0, 1], of the row's own class. More classes have a score each; the
 * shares of a row are 1 - p for its own class and -p for the others, with p a point of the simplex. So they sum to 0.
 *
 * A row whose shares have not changed is left out of one pass, then of three, at most of seven: most rows of a trained
 * model have no share, or a whole one. */
#include <math.h>
#include <string.h>

#include "learn/keep/row_values.h"
#include "learn/linear/dual.h"

enum { GROUPS = 4, PAUSE_MAX = 7 };

typedef struct group {
    pli_dual_sums sums;
    double       *flow, *score, *scratch; /* [classes, classes]; [columns] each */
} group;

struct pli_dual_rows {
    pli_run              *run;
    const pli_linear     *linear;
    const pli_dual_frame *frame;
    int64_t               rows, columns, classes;
    int64_t              *begin; /* [parts] the number of each part's first row */
    double               *share; /* [rows, columns]             */
    double               *y, *weight; /* [rows] the target; 0: the row does not count */
    double               *square; /* [rows] |x - mean|^2 + constant */
    double               *cross; /* [rows] x mean               */
    uint8_t              *pause, *patience; /* [rows] passes to leave out now; the last number of those */
    uint32_t             *order; /* [rows]                      */
    int32_t              *part;  /* [rows] the part of each row */
    double               *score, *p; /* [columns] each */
    group                 group[GROUPS];
    /* of the judgement at hand */
    const pli_batch      *batch;
    const pli_dual_point *point;
};

typedef struct row {
    const uint32_t *col;
    const float    *value; /* NULL: ones */
    int64_t         n;
} row;

static row row_of(const pli_dual_rows *r, const pli_batch *batch, int32_t part, int64_t number) {
    const pli_part  *p = &batch->part[part];
    const pli_block *block = p->block;
    const int64_t    i = number - r->begin[part];
    const int64_t    at = p->order != NULL ? (int64_t)p->order[i] : p->first + i, first = block->row_start[at];
    return (row){ block->col + first, block->value != NULL ? block->value + first : NULL,
                  block->row_start[at + 1] - first };
}

static double value_of(const row *x, int64_t e) { return x->value != NULL ? (double)x->value[e] : 1.0; }

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void measure(pli_dual_rows *r, const pli_batch *batch, int32_t part, int64_t number) {
    const pli_part *p = &batch->part[part];
    const int64_t   i = number - r->begin[part];
    const int64_t   at = p->order != NULL ? (int64_t)p->order[i] : p->first + i;
    const row       x = row_of(r, batch, part, number);
    const double   *mean = r->frame->mean;
    double          square = 0, cross = 0;
    for (int64_t e = 0; e < x.n; e++) {
        square += value_of(&x, e) * value_of(&x, e);
        if (mean != NULL) cross += value_of(&x, e) * mean[x.col[e]];
    }
    r->part[number] = part;
    r->cross[number] = cross;
    r->square[number] = fmax(square - 2 * cross + r->frame->mean_square, 0) + r->frame->constant;
    if (!pli_linear_weigh(r->linear, p->block, at, &r->y[number], &r->weight[number])) r->weight[number] = 0;
    if (!(r->weight[number] > 0)) r->y[number] = r->columns > 1 ? 0 : 1;
}

static bool take_memory(pli_dual_rows *r, int32_t parts) {
    const size_t n = (size_t)r->rows + 1, k = (size_t)r->columns;
    bool         ok = true;
    r->begin = pli_calloc((size_t)parts + 1, sizeof *r->begin);
    r->share = pli_calloc(n, k * sizeof *r->share);
    double **const each[] = { &r->y, &r->weight, &r->square, &r->cross };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        *each[i] = pli_calloc(n, sizeof(double));
        ok = ok && *each[i] != NULL;
    }
    r->pause = pli_calloc(n, 1);
    r->patience = pli_calloc(n, 1);
    r->order = pli_calloc(n, sizeof *r->order);
    r->part = pli_calloc(n, sizeof *r->part);
    r->score = pli_calloc(k, sizeof *r->score);
    r->p = pli_calloc(k, sizeof *r->p);
    for (int g = 0; g < GROUPS; g++) {
        r->group[g].flow = pli_calloc((size_t)(r->classes * r->classes), sizeof(double));
        r->group[g].score = pli_calloc(k, sizeof(double));
        r->group[g].scratch = pli_calloc(k, sizeof(double));
        ok = ok && r->group[g].flow != NULL && r->group[g].score != NULL && r->group[g].scratch != NULL;
    }
    return ok && r->begin != NULL && r->share != NULL && r->pause != NULL && r->patience != NULL && r->order != NULL &&
           r->part != NULL && r->score != NULL && r->p != NULL;
}

plait_status pli_dual_rows_make(pli_run *run, const pli_dual_frame *frame, const pli_batch *batch,
                                pli_dual_rows **rows_out) {
    pli_dual_rows *r = pli_calloc(1, sizeof *r);
    *rows_out = r;
    if (r == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for rows");
    r->run = run;
    r->linear = &pli_linear_fit_of(run)->linear;
    r->frame = frame;
    r->columns = r->linear->goal.columns;
    r->classes = r->columns > 1 ? r->columns : 2;
    for (int32_t p = 0; p < batch->parts; p++) r->rows += batch->part[p].rows;
    if (r->rows > (int64_t)UINT32_MAX || !take_memory(r, batch->parts))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the dual variables of %lld rows", (long long)r->rows);
    int64_t number = 0;
    for (int32_t p = 0; p < batch->parts; p++) {
        r->begin[p] = number;
        for (int64_t i = 0; i < batch->part[p].rows; i++) measure(r, batch, p, number++);
    }
    r->begin[batch->parts] = number;
    return PLAIT_OK;
}

void pli_dual_rows_free(pli_dual_rows **rows) {
    pli_dual_rows *r = *rows;
    *rows = NULL;
    if (r == NULL) return;
    for (int g = 0; g < GROUPS; g++) {
        pli_free(r->group[g].flow);
        pli_free(r->group[g].score);
        pli_free(r->group[g].scratch);
    }
    void *const all[] = { r->begin, r->share, r->y, r->weight, r->square, r->cross, r->pause, r->patience, r->order,
                          r->part, r->score, r->p };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
    pli_free(r);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

/* Of each row its shares, and how long it pauses. */
enum { PAUSES = 2 };

int64_t pli_dual_row_numbers(int64_t columns) { return columns + PAUSES; }

/* Where a checkpoint holds row i of a part. */
static double *kept_of(const pli_dual_rows *r, const pli_part *part, int64_t i) {
    const int64_t at = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
    return (double *)pli_row_values_of_block(r->run, part->block->number) + at * pli_dual_row_numbers(r->columns);
}

void pli_dual_rows_save(const pli_dual_rows *r, const pli_batch *batch) {
    const int64_t k = r->columns;
    for (int32_t p = 0; p < batch->parts; p++)
        for (int64_t i = 0; i < batch->part[p].rows; i++) {
            const int64_t number = r->begin[p] + i;
            double       *to = kept_of(r, &batch->part[p], i);
            memcpy(to, r->share + number * k, (size_t)k * sizeof *to);
            to[k] = r->pause[number];
            to[k + 1] = r->patience[number];
        }
}

void pli_dual_rows_load(pli_dual_rows *r, const pli_batch *batch) {
    const int64_t k = r->columns;
    for (int32_t p = 0; p < batch->parts; p++)
        for (int64_t i = 0; i < batch->part[p].rows; i++) {
            const int64_t number = r->begin[p] + i;
            const double *from = kept_of(r, &batch->part[p], i);
            memcpy(r->share + number * k, from, (size_t)k * sizeof *from);
            r->pause[number] = (uint8_t)from[k];
            r->patience[number] = (uint8_t)from[k + 1];
        }
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* inner := u mean: what the scores of all rows have in common. */
static void find_inner(const pli_dual_rows *r, const pli_dual_point *at) {
    memset(at->inner, 0, (size_t)r->columns * sizeof *at->inner);
    for (int64_t j = 0; r->frame->mean != NULL && j < at->features; j++)
        for (int64_t c = 0; c < r->columns; c++) at->inner[c] += r->frame->mean[j] * at->u[j * r->columns + c];
}

/* The scores of a row: (u - t mean) (x - mean) + base + constant t. */
static void find_scores(const pli_dual_rows *r, const pli_dual_point *at, const row *x, double cross, double *score) {
    const int64_t k = r->columns;
    const double  own = r->frame->mean_square + r->frame->constant - cross;
    for (int64_t c = 0; c < k; c++) score[c] = at->base[c] - at->inner[c] + at->t[c] * own;
    if (k == 1) {
        double sum = 0;
        for (int64_t e = 0; e < x->n; e++) sum += value_of(x, e) * at->u[x->col[e]];
        score[0] += sum;
        return;
    }
    for (int64_t e = 0; e < x->n; e++) {
        const double  v = value_of(x, e);
        const double *u = at->u + (int64_t)x->col[e] * k;
        for (int64_t c = 0; c < k; c++) score[c] += v * u[c];
    }
}

/* u, t += change times the row. change [columns] */
static void add_row(pli_dual_rows *r, pli_dual_point *at, const row *x, double cross, const double *change) {
    const int64_t k = r->columns;
    for (int64_t e = 0; e < x->n; e++) {
        const double v = value_of(x, e);
        double      *u = at->u + (int64_t)x->col[e] * k;
        for (int64_t c = 0; c < k; c++) u[c] += v * change[c];
    }
    for (int64_t c = 0; c < k && r->frame->mean != NULL; c++) {
        at->t[c] += change[c];
        at->inner[c] += cross * change[c];
    }
}

/* --- a pass of ascent --------------------------------------------------------------------------------------------- */

void pli_simplex_project(int64_t n, double *z) {
    double  sum = 0, above = 0;
    int64_t kept = n, before = n + 1;
    for (int64_t c = 0; c < n; c++) sum += z[c];
    while (kept < before) { /* what lies at or below the level is 0, and the level rises */
        above = (sum - 1) / (double)kept;
        before = kept;
        kept = 0;
        sum = 0;
        for (int64_t c = 0; c < n; c++)
            if (z[c] > above) {
                sum += z[c];
                kept++;
            }
        if (kept == 0) break; /* by rounding, all are the largest */
    }
    for (int64_t c = 0; c < n; c++) z[c] = z[c] > above ? z[c] - above : 0;
}

/* Finds the best shares of a row, if its effect on its own scores is `effect` for each share. change [columns]: by how
 * much they have moved. false: not at all. */
static bool move_shares(pli_dual_rows *r, int64_t number, double effect, double *change) {
    const int64_t k = r->columns, own = k > 1 ? (int64_t)r->y[number] : 0;
    double       *share = r->share + number * k;
    bool          moved = false;
    effect = fmax(effect, 1e-12);
    if (k == 1) {
        const double y = r->y[number], to = share[0] + (1 - y * r->score[0]) / effect;
        const double next = to > 1 ? 1 : to > 0 ? to : 0;
        change[0] = y * (next - share[0]);
        moved = next != share[0];
        share[0] = next;
        return moved;
    }
    for (int64_t c = 0; c < k; c++)
        change[c] = (c == own ? 1 - share[c] : -share[c]) + (r->score[c] - r->score[own] + (c != own)) / effect;
    pli_simplex_project(k, change);
    for (int64_t c = 0; c < k; c++) {
        const double next = (c == own ? 1 : 0) - change[c];
        change[c] = next - share[c];
        moved = moved || fabs(change[c]) > 1e-14;
        share[c] = next;
    }
    return moved;
}

static double loss_of(const pli_dual_rows *r, double y, const double *score, double *scratch) {
    return r->linear->goal.loss->at(r->linear->goal.parameter, r->columns, score, y, scratch);
}

static void visit(pli_dual_rows *r, const pli_batch *batch, int64_t number, pli_dual_point *point,
                  pli_sums *sums) {
    const row    x = row_of(r, batch, r->part[number], number);
    const double weight = r->weight[number], unit = weight * r->frame->per_row;
    find_scores(r, point, &x, r->cross[number], r->score);
    sums->loss += weight * loss_of(r, r->y[number], r->score, r->p);
    sums->weight += weight;
    sums->rows++;
    if (!move_shares(r, number, unit * r->square[number], r->p)) {
        const int longer = 2 * r->patience[number] + 1;
        r->pause[number] = r->patience[number] = (uint8_t)(longer < PAUSE_MAX ? longer : PAUSE_MAX);
        return;
    }
    r->patience[number] = 0;
    for (int64_t c = 0; c < r->columns; c++) r->p[c] *= unit;
    add_row(r, point, &x, r->cross[number], r->p);
}

void pli_dual_rows_sum(pli_dual_rows *r, const pli_batch *batch, pli_dual_point *point) {
    const int64_t k = r->columns;
    for (int64_t number = 0; number < r->rows; number++) {
        const row    x = row_of(r, batch, r->part[number], number);
        const double unit = r->weight[number] * r->frame->per_row * (k == 1 ? r->y[number] : 1);
        for (int64_t c = 0; c < k; c++) r->p[c] = unit * r->share[number * k + c];
        if (r->weight[number] > 0) add_row(r, point, &x, r->cross[number], r->p);
    }
}

int64_t pli_dual_rows_count(const pli_dual_rows *r) { return r->rows; }

void pli_dual_shuffle(pli_dual_rows *r, const pli_batch *batch, uint64_t pass) {
    const int64_t first = batch->parts > 0 && r->rows > 0 ? batch->part[0].block->number : 0;
    pli_random    random = pli_random_at(r->run->opts->seed, PLI_RANDOM_DUAL, (uint64_t)first, pass);
    pli_random_permutation(&random, r->rows, r->order);
}

int64_t pli_dual_touched(const pli_dual_rows *r, const pli_batch *batch, int64_t first, int64_t end, int64_t most,
                         uint8_t *mark, uint64_t *keys) {
    int64_t n = 0;
    for (int64_t i = first; i < end && n <= most; i++) {
        const row x = row_of(r, batch, r->part[r->order[i]], r->order[i]);
        for (int64_t e = 0; e < x.n && n <= most; e++) {
            if (mark[x.col[e]] || n++ == most) continue;
            mark[x.col[e]] = 1;
            keys[n - 1] = x.col[e];
        }
    }
    for (int64_t i = 0; i < (n < most ? n : most); i++) mark[keys[i]] = 0;
    return n <= most && pli_sort_u64(n, keys, NULL) ? n : -1;
}

void pli_dual_ascend(pli_dual_rows *r, const pli_batch *batch, int64_t first, int64_t end, pli_dual_point *point,
                     pli_sums *sums_out) {
    *sums_out = (pli_sums){ 0 };
    for (int64_t i = first; i < end; i++) {
        const int64_t number = r->order[i];
        if (!(r->weight[number] > 0)) continue;
        if (r->pause[number] > 0) r->pause[number]--;
        else visit(r, batch, number, point, sums_out);
    }
}

/* --- sums over rows ----------------------------------------------------------------------------------------------- */

static void judge_row(pli_dual_rows *r, group *g, int64_t number) {
    const int64_t k = r->columns, n = r->classes;
    const row     x = row_of(r, r->batch, r->part[number], number);
    const double  weight = r->weight[number], y = r->y[number], *share = r->share + number * k;
    double       *score = g->score;
    if (!(weight > 0)) return;
    find_scores(r, r->point, &x, r->cross[number], score);
    g->sums.loss += weight * loss_of(r, y, score, g->scratch);
    if (k == 1) {
        const int64_t own = y > 0, other = 1 - own;
        g->sums.gain += weight * share[0];
        g->flow[own * n + own] += weight * share[0];
        g->flow[other * n + own] -= weight * share[0];
        return;
    }
    const int64_t own = (int64_t)y;
    g->sums.gain += weight * share[own];
    for (int64_t c = 0; c < k; c++) g->flow[c * n + own] += weight * share[c];
}

static void judge_group(void *user, int64_t i, int32_t thread) {
    pli_dual_rows *r = user;
    group         *g = &r->group[i];
    (void)thread;
    g->sums = (pli_dual_sums){ 0 };
    memset(g->flow, 0, (size_t)(r->classes * r->classes) * sizeof(double));
    for (int64_t number = r->rows * i / GROUPS; number < r->rows * (i + 1) / GROUPS; number++) judge_row(r, g, number);
}

void pli_dual_judge(pli_dual_rows *r, const pli_batch *batch, const pli_dual_point *point, pli_dual_sums *sums_out,
                    double *flow) {
    r->batch = batch;
    r->point = point;
    find_inner(r, point);
    pli_pool_for(r->run->pool, GROUPS, judge_group, r);
    for (int g = 0; g < GROUPS; g++) {
        sums_out->loss += r->group[g].sums.loss;
        sums_out->gain += r->group[g].sums.gain;
        for (int64_t i = 0; i < r->classes * r->classes; i++) flow[i] += r->group[g].flow[i];
    }
}

void pli_dual_scaled(const pli_dual_rows *r, const pli_batch *batch, const double *factor, double *u, double *gain) {
    const int64_t k = r->columns;
    for (int64_t number = 0; number < r->rows; number++) {
        const int64_t own = k > 1 ? (int64_t)r->y[number] : r->y[number] > 0;
        const double *share = r->share + number * k, by = factor[own] * r->weight[number];
        const row     x = row_of(r, batch, r->part[number], number);
        if (!(r->weight[number] > 0)) continue;
        *gain += by * share[k > 1 ? own : 0];
        const double sign = k == 1 ? r->y[number] : 1;
        bool         any = false;
        for (int64_t c = 0; c < k; c++) any = any || share[c] != 0;
        for (int64_t e = 0; any && e < x.n; e++) {
            const double v = value_of(&x, e) * by * sign * r->frame->per_row;
            for (int64_t c = 0; c < k; c++) u[(int64_t)x.col[e] * k + c] += v * share[c];
        }
    }
}
