/* Steps of several weights at once, as a schedule chooses them (plait/schedule.h). See coordinates.h.
 *
 * Rows are cut over the workers, so all of them push for every weight of a step (`each`): the products of its column
 * with their residuals. The table holds the sums. All workers read them, and move the weights alike.
 *
 *     push   table[j] += own part of the slope, less what the worker had added before
 *     pull   slope of j = table[j]; each weight moves to its best value as if the others of the step stayed
 *
 * If a worker dies in a step (--replicas 2), an heir pushes for the weights that the dead worker pushed for: nothing to
 * the slope, and a *mark*, 1 in the column beside it. Where a server has the dead worker's part, what the heir pushes
 * does not count. So a mark says that a slope lacks a part. All workers read the same marks, and if there is one, no
 * weight moves. (That a worker stands in says less: it may do so in vain, while others have ended the step and count
 * the dead one out in the next.) Then the dead worker's rows are others' (coordinates_rows.c), and sums of slopes count
 * from what the table holds at that moment.
 *
 * Weights whose columns are alike would all correct the same error, and together overshoot. With columns of length 1, n
 * of them that move together have a Gram matrix of largest value up to n; steps by the diagonal alone then drive each
 * other up (Bradley, Kyrola, Bickson and Guestrin, "Parallel coordinate descent for L1-regularized loss minimization",
 * ICML 2011). So interference is |correlation|, and a set is taken only if it adds up to --interference at most in each
 * row: then the largest value is below 1 + that, and below 2 each step goes downhill.
 *
 * The priority of a weight that is not 0 is 1 and, up to FAR, how much longer than usual its last move was, or after a
 * look its next one. A weight that stays 0 comes seldom; the next look finds it if it must move. */
#include "learn/linear/coordinates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <plait/schedule.h>

#include "table/table.h"

enum { TOGETHER = 8, WINDOWS = 200, PROVEN_COLUMNS = 2048, CACHE = 1 << 19 };
#define INTERFERENCE 0.5
#define FLOOR 1e-9
#define AT_REST 0.2 /* the priority of a weight that stays 0 */
#define FAR 8.0     /* how much longer than usual a move is worth */

struct pli_steps_by_weight {
    plait_schedule *schedule;
    double         *told;       /* [features] what the own part of a slope was when it was last pushed */
    double         *base;       /* [features, 2] what the table held before any of these */
    int64_t         take;
    uint64_t       *key;        /* [take]  */
    double         *value;      /* [take, 2] */
    double          usual;      /* how long a move was lately, on average */
    double          fall;       /* what the step at hand lowers the objective by, if nothing interferes */
    bool            lacks;      /* a slope of the last step lacks a dead worker's part */
    double         *products;   /* [features, features] with an event log; NULL: none, or too many      */
};
typedef struct pli_steps_by_weight steps;

/* --- push and pull ------------------------------------------------------------------------------------------------ */

static int by_variable(const void *x, const void *y) {
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static void sort_keys(steps *s, const plait_turn *turn) {
    for (int64_t i = 0; i < turn->n; i++) s->key[i] = (uint64_t)turn->variable[i];
    qsort(s->key, (size_t)turn->n, sizeof *s->key, by_variable);
}

static plait_status push(void *user, const plait_turn *turn) {
    pli_coordinates *c = user;
    steps           *s = c->steps;
    sort_keys(s, turn);
    for (int64_t i = 0; i < turn->n; i++) {
        const int64_t j = (int64_t)s->key[i];
        const double  own = turn->stands_in ? s->told[j] : pli_column_dot(&c->columns, j, c->q);
        s->value[2 * i] = turn->stands_in;
        s->value[2 * i + 1] = own - s->told[j];
        s->told[j] = own;
        pli_comm_work(c->run->comm, PLI_WORK_ENTRIES, (uint64_t)(c->columns.start[j + 1] - c->columns.start[j]));
    }
    return turn->n > 0 ? plait_table_inc(c->table, turn->n, s->key, s->value, 0) : PLAIT_OK;
}

/* The priority of a weight that has moved by this, or would. */
static double priority_of(const pli_coordinates *c, int64_t j, double by) {
    const double fall = sqrt((c->h[j] + c->l2) / 2) * fabs(by), usual = c->steps->usual;
    if (c->w[j] == 0 && by == 0) return AT_REST;
    return 1 + (usual > 0 ? fmin(fall / usual, FAR) : 0);
}

/* The curvature of a logistic loss is known for the working set alone. */
static double way_of(const pli_coordinates *c, int64_t j, double slope) {
    const bool known = c->in[j] || (!c->logistic && !c->out[j]);
    return known && c->h[j] > 0 ? pli_coordinates_best(c, j, slope) - c->w[j] : 0;
}

/* All ways are computed before any weight moves. */
static plait_status pull(void *user, const plait_turn *turn, double *change) {
    pli_coordinates *c = user;
    steps           *s = c->steps;
    sort_keys(s, turn);
    s->fall = 0;
    if (turn->n == 0 || pli_coordinates_died(c)) return PLAIT_OK;
    PLI_TRY(plait_table_get(c->table, turn->n, s->key, s->value));
    for (int64_t i = 0; i < turn->n; i++) s->lacks = s->lacks || s->value[2 * i] - s->base[2 * s->key[i]] > 0.5;
    if (s->lacks) return PLAIT_OK;
    for (int64_t i = 0; i < turn->n; i++) {
        const int64_t j = (int64_t)s->key[i];
        s->value[2 * i] = way_of(c, j, s->value[2 * i + 1] - s->base[2 * j + 1] - c->lag * c->first[j]);
        const double fall = (c->h[j] + c->l2) / 2 * s->value[2 * i] * s->value[2 * i];
        s->fall += fall;
        if (c->w[j] != 0 || fall > 0) s->usual = 0.98 * s->usual + 0.02 * sqrt(fall);
    }
    if (!isfinite(s->fall)) s->fall = INFINITY;
    for (int64_t i = 0; i < turn->n && isfinite(s->fall); i++) {
        const int64_t j = (int64_t)s->key[i];
        if (s->value[2 * i] != 0 && !c->in[j]) pli_coordinates_take_in(c, j);
        pli_coordinates_move(c, j, s->value[2 * i]);
    }
    for (int64_t i = 0; i < turn->n && isfinite(s->fall); i++) {
        const uint64_t key = (uint64_t)turn->variable[i];
        const uint64_t *at = bsearch(&key, s->key, (size_t)turn->n, sizeof key, by_variable);
        change[i] = priority_of(c, turn->variable[i], s->value[2 * (at - s->key)]);
    }
    return PLAIT_OK;
}

/* --- interference ------------------------------------------------------------------------------------------------- */

/* sum v x_j x_k over own rows. Rows increase within a column. */
static double product_of(const pli_columns *x, int64_t j, int64_t k) {
    double  sum = 0;
    int64_t a = x->start[j], b = x->start[k];
    while (a < x->start[j + 1] && b < x->start[k + 1]) {
        if (x->row[a] == x->row[b])
            sum += x->v[x->row[a]] * (x->value != NULL ? (double)x->value[a] * (double)x->value[b] : 1);
        const uint32_t at = x->row[a];
        a += at <= x->row[b];
        b += x->row[b] <= at;
    }
    return sum;
}

static plait_status conflict(void *user, int64_t n, const plait_variables *pairs, double *out) {
    pli_coordinates *c = user;
    for (int64_t i = 0; i < n; i++) out[i] = product_of(&c->columns, pairs[i].a, pairs[i].b);
    PLI_TRY(pli_coordinates_sum(c, out, n));
    for (int64_t i = 0; i < n; i++) {
        const int64_t a = pairs[i].a, b = pairs[i].b;
        const double  length = sqrt(c->spread[a] * c->spread[b]);
        out[i] = length > 0 ? fabs(out[i] - c->all * c->mean[a] * c->mean[b]) / length : 0;
    }
    return PLAIT_OK;
}

/* --- the event log ------------------------------------------------------------------------------------------------ */

/* A move writes the weight (space 0), and one key (space 1) for each column that is too much alike, which that one's
 * move writes too. So a step with both of them is refuted. The products are computed from whole rows, apart from what
 * conflict() says. */
static int64_t touches(void *user, int64_t variable, int64_t room, plait_touch *touch) {
    const pli_coordinates *c = user;
    const int64_t          d = c->columns.features;
    const double          *gram = c->steps->products;
    int64_t                n = 1;
    if (room > 0) touch[0] = (plait_touch){ .space = 0, .writes = 1, .key = (uint64_t)variable };
    for (int64_t k = 0; gram != NULL && k < d; k++) {
        const double product = fabs(gram[variable * d + k]), low = gram[variable * d + variable] * gram[k * d + k];
        if (k == variable || !(product > INTERFERENCE * sqrt(low) * (1 + 1e-9)) || !(low > 0)) continue;
        const uint64_t key = (uint64_t)(k < variable ? k * d + variable : variable * d + k);
        if (n < room) touch[n] = (plait_touch){ .space = 1, .writes = 1, .key = key };
        n++;
    }
    return n;
}

static plait_status make_products(pli_coordinates *c) {
    const int64_t d = c->columns.features;
    steps        *s = c->steps;
    if (pli_comm_events(c->run->comm) == NULL) return PLAIT_OK;
    if (d > PROVEN_COLUMNS) {
        if (pli_comm_leads(c->run->comm))
            pli_log(pli_comm_log(c->run->comm), PLAIT_LOG_INFO, -1, "learn",
                    "of more than %d features the event log does not say which columns are alike, so that audit "
                    "--schedule proves owners and steps alone", PROVEN_COLUMNS);
        return PLAIT_OK;
    }
    s->products = pli_array((size_t)(d * d) + 1, sizeof *s->products);
    if (s->products == NULL) return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for products of columns");
    PLI_TRY(pli_columns_products(c->run, &c->columns, c->intercept ? c->mean : NULL, s->products));
    return pli_coordinates_sum(c, s->products, d * d);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

plait_status pli_coordinates_steps_make(pli_coordinates *c) {
    const plait_train_opts *o = c->run->opts;
    const size_t            d = (size_t)c->columns.features;
    steps                  *s = c->steps = pli_calloc(1, sizeof *s);
    plait_schedule_opts     opts;
    if (s == NULL) return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for steps");
    s->take = o->together > 0 ? o->together : TOGETHER;
    if (s->take > (int64_t)d) s->take = (int64_t)d;
    s->told = pli_calloc(d + 1, sizeof *s->told);
    s->base = pli_calloc(d + 1, 2 * sizeof *s->base);
    s->key = pli_calloc((size_t)s->take, sizeof *s->key);
    s->value = pli_calloc((size_t)s->take, 2 * sizeof *s->value);
    if (s->told == NULL || s->base == NULL || s->key == NULL || s->value == NULL)
        return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for steps of %lld weights", (long long)s->take);
    PLI_TRY(make_products(c));
    plait_schedule_opts_init(&opts);
    opts.name = "coordinates";
    opts.variables = (int64_t)d;
    opts.order = o->order != NULL ? o->order : "priority";
    opts.take = s->take;
    opts.candidates = 2 * s->take; /* each pair of them costs two columns, once */
    opts.cache = CACHE;
    opts.each = 1;
    opts.seed = o->seed;
    opts.floor = FLOOR;
    opts.allowed = isnan(o->interference) ? INTERFERENCE : fmin(o->interference, 1e6);
    opts.conflict = s->take > 1 ? conflict : NULL;
    opts.push = push;
    opts.pull = pull;
    opts.touches = touches;
    opts.user = c;
    return plait_schedule_create(c->run->job, &opts, &s->schedule);
}

void pli_coordinates_steps_free(pli_coordinates *c) {
    steps *s = c->steps;
    if (s == NULL) return;
    plait_schedule_destroy(&s->schedule);
    void *const all[] = { s->told, s->base, s->key, s->value, s->products };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) pli_free(all[i]);
    pli_free(s);
    c->steps = NULL;
}

/* Takes the marks out of the table again, where the weights will be. */
static plait_status take_marks(pli_coordinates *c) {
    const int64_t d = c->columns.features;
    double       *base = c->steps->base, *less = pli_calloc((size_t)d + 1, 2 * sizeof *less);
    bool          any = false;
    if (less == NULL) return pli_fail(c->run->err, PLAIT_ENOMEM, "no memory for %lld weights", (long long)d);
    for (int64_t j = 0; j <= d; j++) {
        any = any || base[2 * j] != 0;
        less[2 * j] = -base[2 * j];
        base[2 * j] = 0;
    }
    const plait_status status = any ? pli_coordinates_lead_adds(c, less) : PLAIT_OK;
    pli_free(less);
    return status;
}

plait_status pli_coordinates_steps_anew(pli_coordinates *c) {
    steps *s = c->steps;
    if (s == NULL) return PLAIT_OK;
    PLI_TRY(pli_coordinates_clock(c)); /* what the dead pushed last is in the table, or never will be */
    PLI_TRY(plait_table_get_range(c->table, 0, c->columns.features + 1, s->base));
    PLI_TRY(take_marks(c));
    memset(s->told, 0, (size_t)c->columns.features * sizeof *s->told);
    s->lacks = false;
    plait_schedule_forget(s->schedule);
    return PLAIT_OK;
}

/* After a look all slopes are known. */
static plait_status set_priorities(pli_coordinates *c) {
    for (int64_t j = 0; j < c->columns.features; j++)
        PLI_TRY(plait_schedule_set(c->steps->schedule, j,
                                   c->in[j] ? priority_of(c, j, way_of(c, j, c->g[j])) : 0));
    return PLAIT_OK;
}

static plait_status diverged(const pli_coordinates *c) {
    return pli_fail(c->run->err, PLAIT_EDIVERGED,
                    "the objective rises in clock %lld: weights that move together drive each other up; take "
                    "--interference %g, or a smaller --together than %lld", (long long)c->run->clocks_done,
                    INTERFERENCE, (long long)c->steps->take);
}

/* If steps go downhill they lower the objective by half of `fall` at least, so the sum has a bound. The parabola that
 * stands for a logistic loss may be deeper than the objective, but not by far. */
plait_status pli_coordinates_steps_take(pli_coordinates *c, double target) {
    steps        *s = c->steps;
    const char   *order = c->run->opts->order;
    const bool    all = order != NULL && strcmp(order, "priority") != 0; /* columns of no use come, too */
    const int64_t window = all ? c->columns.features : c->n_working;
    double        sum = 0;
    PLI_TRY(set_priorities(c));
    for (int w = 0; w < WINDOWS; w++) {
        const int64_t until = plait_schedule_updates(s->schedule) + window;
        double        lately = 0;
        while (plait_schedule_updates(s->schedule) < until) {
            PLI_TRY(plait_schedule_step(s->schedule));
            c->run->clocks_done++;
            PLI_TRY(pli_coordinates_note_step(c));
            if (s->lacks || pli_coordinates_died(c)) return PLAIT_OK;
            lately += s->fall;
            sum += s->fall;
            if (!(sum <= (c->logistic ? 1e6 : 8) * c->look.primal)) return diverged(c);
        }
        PLI_TRY(pli_run_hear(c->run, &c->run->interrupted));
        if (!(lately > target) || c->run->interrupted) return PLAIT_OK;
    }
    return PLAIT_OK;
}
