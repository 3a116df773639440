/* Alternating least squares: with the items' rows held, each user's row is the solution of a small system of linear
 * equations, and so on in turn. A clock is one side: a worker reads the other side whole, solves its own rows and
 * pushes by how much they have changed. A row follows from its own ratings, in their order, so the bits depend on
 * neither the workers nor the threads.
 *
 *     squared   (sum of w (x tx + l2 I)) row = sum of w (r - mean - other's bias) x,  x = (1, other's factors)
 *     implicit  (tY Y + sum of w alpha r y ty + l2 I) row = sum of w (1 + alpha r) y; tY Y is computed once a clock, so
 *               a pair without a rating costs nothing
 *
 * Papers: Zhou, Wilkinson, Schreiber and Pan, "Large-Scale Parallel Collaborative Filtering for the Netflix Prize",
 * AAIM 2008; Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008. */
#include <math.h>
#include <string.h>

#include "learn/factors/factors.h"
#include "tensor/spectral/cholesky.h"

enum { BATCH = 64, ROWS = 32 }; /* ratings added at once; rows of a task */

/* One side is solved. */
typedef struct solving {
    pli_run                  *run;
    const pli_mf             *m;
    const pli_factor_kernels *kernels;
    const pli_ratings        *own;
    const float              *other;  /* [others, cols] the other side's table                     */
    const float              *before; /* [own->n, cols] the own rows                               */
    float                    *delta;  /* [own->n, cols]                                            */
    const double             *gram;   /* [d, d] implicit: tY Y, on and right of the diagonal; NULL */
    double                   *memory; /* [threads, share]                                          */
    int64_t                   d, share, unknowns; /* d: unknowns rounded up to a register           */
    pli_sums                 *sums;   /* [tasks] */
    bool                     *failed; /* [tasks] */
} solving;

/* Memory of a thread. */
typedef struct scratch {
    double *a, *b, *x, *weight, *value; /* [d, d], [d], [BATCH, d], [BATCH], [BATCH] */
} scratch;

static int64_t scratch_values(int64_t d) { return d * d + d + BATCH * d + 2 * BATCH; }

static scratch scratch_at(const solving *s, int32_t thread) {
    scratch m = { .a = s->memory + (int64_t)thread * s->share };
    m.b = m.a + s->d * s->d;
    m.x = m.b + s->d;
    m.weight = m.x + BATCH * s->d;
    m.value = m.weight + BATCH;
    return m;
}

/* The other side's row as the equations have it. */
static void lay_out(const solving *s, const float *row, double *x) {
    const int64_t bias = s->gram == NULL;
    if (bias) x[0] = 1;
    for (int64_t k = 0; k < s->m->rank; k++) x[bias + k] = (double)row[PLI_FACTOR_FIRST + k];
    for (int64_t k = s->unknowns; k < s->d; k++) x[k] = 0;
}

static double target_of(const solving *s, const pli_rating *r) {
    return (double)r->value - s->m->mean - (double)s->other[(int64_t)r->item * s->m->cols + PLI_FACTOR_BIAS];
}

/* Adds a row's ratings to a and b; returns the sum of their weights. */
static double add_ratings(const solving *s, const pli_rating *rating, int64_t n, scratch *m) {
    double mass = 0;
    for (int64_t from = 0; from < n; from += BATCH) {
        const int64_t some = n - from < BATCH ? n - from : BATCH;
        for (int64_t i = 0; i < some; i++) {
            const pli_rating *r = &rating[from + i];
            const double      w = (double)r->weight, trust = s->m->confidence * (double)r->value;
            lay_out(s, s->other + (int64_t)r->item * s->m->cols, m->x + i * s->d);
            m->weight[i] = s->gram != NULL ? w * trust : w;
            m->value[i] = s->gram != NULL ? w * (1 + trust) : w * target_of(s, r);
            mass += w;
        }
        s->kernels->outer(s->d, some, m->x, m->weight, m->value, m->a, m->b);
    }
    return mass;
}

static double product(int64_t n, const double *a, const double *b) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
}

/* The loss of the row's ratings with its new values b. */
static void judge(const solving *s, const pli_rating *rating, int64_t n, scratch *m, pli_sums *sums) {
    for (int64_t i = 0; i < n; i++) {
        const double w = (double)rating[i].weight;
        lay_out(s, s->other + (int64_t)rating[i].item * s->m->cols, m->x);
        const double trust = s->gram != NULL ? 1 + s->m->confidence * (double)rating[i].value : 1;
        const double off = (s->gram != NULL ? 1 : target_of(s, &rating[i])) - product(s->unknowns, m->x, m->b);
        sums->loss += w * trust * off * off / 2;
        sums->weight += w * trust;
        sums->rows++;
    }
}

static bool solve_row(const solving *s, int64_t row, scratch *m, pli_sums *sums) {
    const pli_rating *rating = s->own->rating + s->own->start[row];
    const int64_t     n = s->own->start[row + 1] - s->own->start[row], d = s->d, bias = s->gram == NULL;
    float            *delta = s->delta + row * s->m->cols;
    const float      *before = s->before + row * s->m->cols;
    memset(delta, 0, (size_t)s->m->cols * sizeof *delta);
    if (s->gram != NULL) memcpy(m->a, s->gram, (size_t)(d * d) * sizeof *m->a);
    else memset(m->a, 0, (size_t)(d * d) * sizeof *m->a);
    memset(m->b, 0, (size_t)d * sizeof *m->b);
    const double mass = add_ratings(s, rating, n, m), l2 = s->run->l2 * (s->gram != NULL ? 1 : mass);
    for (int64_t k = 0; k < d; k++) m->a[k * d + k] += k < s->unknowns ? l2 : 1;
    if (n > 0) {
        if (!pli_cholesky(d, m->a)) return false;
        pli_cholesky_solve(d, m->a, m->b);
    }
    if (bias) delta[PLI_FACTOR_BIAS] = (float)m->b[0] - before[PLI_FACTOR_BIAS];
    for (int64_t k = 0; k < s->m->rank; k++)
        delta[PLI_FACTOR_FIRST + k] = (float)m->b[bias + k] - before[PLI_FACTOR_FIRST + k];
    judge(s, rating, n, m, sums);
    return true;
}

static void solve_some(void *user, int64_t task, int32_t thread) {
    const solving *s = user;
    const int64_t  end = (task + 1) * ROWS < s->own->n ? (task + 1) * ROWS : s->own->n;
    scratch        m = scratch_at(s, thread);
    for (int64_t row = task * ROWS; row < end && !s->failed[task]; row++)
        s->failed[task] = !solve_row(s, row, &m, &s->sums[task]);
}

/* tY Y of all rows of the other side, in chunks that threads take; their order of addition is fixed. */
static plait_status make_gram(solving *s, int64_t others, double *gram) {
    double *one = pli_array((size_t)BATCH, 2 * sizeof *one), *x = pli_array((size_t)(BATCH * s->d), sizeof *x);
    double *b = pli_calloc((size_t)s->d, sizeof *b);
    const bool good = one != NULL && x != NULL && b != NULL;
    s->gram = gram;
    for (int64_t i = 0; good && i < BATCH; i++) one[i] = 1, one[BATCH + i] = 0;
    for (int64_t from = 0; good && from < others; from += BATCH) {
        const int64_t some = others - from < BATCH ? others - from : BATCH;
        for (int64_t i = 0; i < some; i++) lay_out(s, s->other + (from + i) * s->m->cols, x + i * s->d);
        s->kernels->outer(s->d, some, x, one, one + BATCH, gram, b);
    }
    pli_free(one);
    pli_free(x);
    pli_free(b);
    return good ? PLAIT_OK : pli_fail(s->run->err, PLAIT_ENOMEM, "no memory for products of rows");
}

static plait_status solve_all(solving *s, pli_sums *sums) {
    const int64_t tasks = (s->own->n + ROWS - 1) / ROWS;
    bool          good = true;
    pli_pool_for(s->run->pool, tasks, solve_some, s);
    for (int64_t t = 0; t < tasks; t++) {
        good = good && !s->failed[t];
        pli_sums_add(sums, &s->sums[t]);
    }
    return good ? PLAIT_OK
                : pli_fail(s->run->err, PLAIT_EDIVERGED, "a row's equations have no solution in double precision; give "
                                                         "a larger --l2, or look for huge values in the data");
}

/* Solves the own rows of one side and pushes them. */
static plait_status solve_side(pli_run *run, const pli_ratings *own, plait_table *table, plait_table *from,
                               pli_sums *sums) {
    pli_mf       *m = pli_mf_of(run);
    const void   *other, *before = NULL;
    const bool    implicit = m->loss == PLI_FACTORS_IMPLICIT;
    const int64_t tasks = (own->n + ROWS - 1) / ROWS, threads = pli_pool_threads(run->pool);
    solving       s = { .run = run, .m = m, .kernels = pli_factor_kernels_get(), .own = own };
    s.unknowns = m->rank + !implicit;
    s.d = (s.unknowns + PLI_OUTER_LANES - 1) / PLI_OUTER_LANES * PLI_OUTER_LANES;
    s.share = scratch_values(s.d);
    PLI_TRY(plait_table_read(from, 0, plait_table_rows(from), &other));
    s.other = other;
    if (own->n > 0) PLI_TRY(plait_table_read(table, own->first, own->n, &before));
    s.before = before;
    s.memory = pli_array((size_t)(threads * s.share), sizeof *s.memory);
    s.delta = pli_array((size_t)(own->n * m->cols), sizeof *s.delta);
    s.sums = pli_calloc((size_t)tasks, sizeof *s.sums);
    s.failed = pli_calloc((size_t)tasks, sizeof *s.failed);
    double      *gram = pli_calloc((size_t)(s.d * s.d), sizeof *gram);
    const bool   good = s.memory != NULL && s.delta != NULL && s.sums != NULL && s.failed != NULL && gram != NULL;
    plait_status status = good ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for equations");
    if (status >= 0 && implicit) status = make_gram(&s, plait_table_rows(from), gram);
    if (status >= 0) status = solve_all(&s, sums);
    if (status >= 0 && own->n > 0) status = plait_table_inc_range(table, own->first, own->n, s.delta, 0);
    if (pli_comm_charges(run->comm)) pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(own->ratings * s.d * s.d));
    pli_free(s.memory);
    pli_free(s.delta);
    pli_free(s.sums);
    pli_free(s.failed);
    pli_free(gram);
    return status;
}

static plait_status solve_users(pli_run *run, const pli_ratings *share) {
    const pli_mf *m = pli_mf_of(run);
    pli_sums      before = { 0 };
    return solve_side(run, share, m->users, m->items, &before);
}

static plait_status solve_items(pli_run *run, const pli_ratings *share) {
    pli_mf *m = pli_mf_of(run);
    return solve_side(run, share, m->items, m->users, &m->sums);
}

/* The second clock of an epoch is of the items. */
static plait_status solve_heirs(pli_run *run, bool inherited) {
    const bool of_items = pli_mf_of(run)->done == 1;
    return pli_mf_heirs_each(run, of_items, inherited, of_items ? solve_items : solve_users);
}

static plait_status stand_in(pli_run *run) { return solve_heirs(run, true); }

/* A clock: the own rows of one side, and those of workers that have died, before it or in it, or are away. */
static plait_status one_side(pli_run *run) {
    const pli_mf *m = pli_mf_of(run);
    bool          came;
    pli_recut_begin_work(run);
    PLI_TRY(m->done == 1 ? solve_items(run, &m->of_items) : solve_users(run, &m->own.ratings));
    pli_recut_end_work(run);
    PLI_TRY(solve_heirs(run, false));
    return pli_mf_clock(run, stand_in, &came);
}

plait_status pli_als_epoch(pli_run *run) {
    plait_status status = PLAIT_OK;
    while (status == PLAIT_OK && pli_mf_of(run)->done < PLI_ALS_CLOCKS) status = one_side(run);
    return status;
}
