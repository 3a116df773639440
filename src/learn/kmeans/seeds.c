/* k centres of a few weighted rows: k-means++ (Arthur and Vassilvitskii, SODA 2007) and some passes of Lloyd, from many
 * beginnings of which the best is kept. Each beginning is a serial computation whose random numbers are its own, so the
 * living workers, and each worker's threads, share them out, and the result is the same however many there are. */
#include <math.h>
#include <string.h>

#include "learn/kmeans/kmeans.h"

/* Beginnings at most, passes of each at most; products that all of them may take in any case, and passes over the whole
 * data that they may be worth besides. */
enum { BEGINNINGS = 24, PASSES = 60, WORTH = 10 };
#define PRODUCTS 2e10
#define CLOSE    1e-5 /* a pass that lowers the inertia by less than this share of it is the last */

typedef struct seeding {
    const pli_run *run;
    int64_t        k, d, n;
    const float   *x;      /* [n, d] */
    const float   *weight; /* [n]    */
    int32_t        first, step; /* this worker's beginnings: first, first + step, ... */
    int32_t        whose[BEGINNINGS]; /* the worker that computes it */
    float         *best;   /* [beginnings, k, d]: of those it has */
    double        *cost;   /* [beginnings] INFINITY: another's, or no memory for it */
} seeding;

/* Of one beginning, while it is computed. */
typedef struct attempt {
    const seeding *of;
    float         *centre; /* [k, d] */
    void          *ready, *scratch;
    uint32_t      *nearest;  /* [n] */
    double        *distance; /* [n] */
    double        *now, *chosen; /* [n] each: distances with the row at hand, and with the best so far */
    double        *sum, *mass;
} attempt;

/* --- k-means++ ---------------------------------------------------------------------------------------------------- */

/* The row in which a running sum of weight times distance passes share of the whole. */
static int64_t pick(const seeding *s, const double *distance, double share) {
    double  total = 0, sum = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < s->n; i++) total += (double)s->weight[i] * distance[i];
    for (int64_t i = 0; i < s->n; i++) {
        const double term = (double)s->weight[i] * distance[i];
        if (term > 0) last = i;
        sum += term;
        if (sum > share * total) return i;
    }
    return last;
}

/* The distances to be, were row `row` a centre, too; answers the inertia. */
static double try_row(const attempt *a, bool first, int64_t row, double *now) {
    const seeding     *s = a->of;
    const pli_kernels *kernels = pli_kernels_get();
    double             cost = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const double distance = kernels->distance_f32(s->d, s->x + i * s->d, s->x + row * s->d);
        now[i] = first || distance < a->distance[i] ? distance : a->distance[i];
        cost += (double)s->weight[i] * now[i];
    }
    return cost;
}

/* Each centre is the best of a few rows that are drawn: greedy k-means++, of the same paper. */
static void plant(attempt *a, int64_t beginning) {
    const seeding *s = a->of;
    const int      tries = 2 + (int)log((double)s->k);
    pli_random random = pli_random_at(s->run->opts->seed, PLI_RANDOM_CENTRES, 1 << 20, (uint64_t)beginning);
    for (int64_t i = 0; i < s->n; i++) a->distance[i] = 1;
    for (int64_t j = 0; j < s->k; j++) {
        double least = INFINITY;
        for (int t = 0; t < (j == 0 ? 1 : tries); t++) {
            const int64_t row = pick(s, a->distance, pli_random_f64(&random));
            const double  cost = try_row(a, j == 0, row, a->now);
            if (t > 0 && !(cost < least)) continue;
            least = cost;
            memcpy(a->centre + j * s->d, s->x + row * s->d, (size_t)s->d * sizeof *a->centre);
            double *chosen = a->now;
            a->now = a->chosen;
            a->chosen = chosen;
        }
        double *chosen = a->chosen;
        a->chosen = a->distance;
        a->distance = chosen;
    }
}

/* --- Lloyd -------------------------------------------------------------------------------------------------------- */

/* One pass; answers the inertia before it. A centre that nothing is nearest to stays. */
static double improve(const attempt *a) {
    const seeding     *s = a->of;
    const pli_assigned out = { .nearest = a->nearest, .distance = a->distance, .weight = s->weight, .sum = a->sum,
                               .mass = a->mass };
    pli_centres        centres;
    double             cost = 0;
    memset(a->sum, 0, (size_t)(s->k * s->d) * sizeof *a->sum);
    memset(a->mass, 0, (size_t)s->k * sizeof *a->mass);
    pli_centres_prepare(&centres, s->k, s->d, a->centre, true, a->ready);
    pli_nearest_dense(&centres, s->n, s->x, s->d, a->scratch, &out);
    for (int64_t i = 0; i < s->n; i++) cost += (double)s->weight[i] * a->distance[i];
    for (int64_t j = 0; j < s->k; j++)
        for (int64_t l = 0; a->mass[j] > 0 && l < s->d; l++)
            a->centre[j * s->d + l] = (float)(a->sum[j * s->d + l] / a->mass[j]);
    return cost;
}

static double settle(const attempt *a) {
    double last = improve(a);
    for (int pass = 1; pass < PASSES; pass++) {
        const double cost = improve(a);
        if (last - cost <= CLOSE * last) return cost;
        last = cost;
    }
    return last;
}

static void attempt_one(void *user, int64_t i, int32_t thread) {
    const seeding *s = user;
    const int64_t  beginning = s->first + i * s->step;
    attempt        a = { .of = s };
    (void)thread;
    a.centre = s->best + beginning * s->k * s->d;
    a.ready = pli_array(1, pli_centres_bytes(s->k, s->d));
    a.scratch = pli_array(1, pli_nearest_scratch_bytes(s->k, s->d));
    a.nearest = pli_array((size_t)s->n, sizeof *a.nearest);
    a.distance = pli_array((size_t)s->n, 3 * sizeof *a.distance);
    double *distances = a.distance;
    a.now = distances != NULL ? distances + s->n : NULL;
    a.chosen = distances != NULL ? distances + 2 * s->n : NULL;
    a.sum = pli_array((size_t)(s->k * s->d), sizeof *a.sum);
    a.mass = pli_array((size_t)s->k, sizeof *a.mass);
    if (a.ready != NULL && a.scratch != NULL && a.nearest != NULL && distances != NULL && a.sum != NULL &&
        a.mass != NULL) {
        plant(&a, beginning);
        s->cost[beginning] = settle(&a);
    }
    pli_free(a.ready);
    pli_free(a.scratch);
    pli_free(a.nearest);
    pli_free(distances);
    pli_free(a.sum);
    pli_free(a.mass);
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

/* What they cost beside Lloyd's passes over the data is bounded. */
static int32_t beginnings_of(const pli_run *run, const seeding *s) {
    const double one = (double)s->n * (double)s->k * (double)s->d * PASSES;
    const double data = WORTH * (double)run->entries * (double)s->k;
    const double many = (data > PRODUCTS ? data : PRODUCTS) / one;
    return many < 1 ? 1 : many > BEGINNINGS ? BEGINNINGS : (int32_t)many;
}

/* Whoever has the best shows it to all. */
static plait_status choose(pli_run *run, const seeding *s, int32_t beginnings) {
    pli_kmeans *m = run->state;
    double      cost[BEGINNINGS];
    int32_t     best = 0;
    memcpy(cost, s->cost, sizeof cost);
    PLI_TRY(plait_comm_allreduce(run->comm, cost, beginnings, PLAIT_F64, PLAIT_MIN));
    for (int32_t b = 1; b < beginnings; b++)
        if (cost[b] < cost[best]) best = b;
    if (!isfinite(cost[best]))
        return pli_fail(run->err, PLAIT_EDIVERGED,
                        "model %s: the rows' distances are not finite: look for huge values in the data",
                        run->learner->name);
    if (best % s->step == s->first)
        memcpy(m->centre, s->best + best * s->k * s->d, (size_t)(s->k * s->d) * sizeof *m->centre);
    return plait_comm_broadcast(run->comm, m->centre, (size_t)(s->k * s->d) * sizeof *m->centre, s->whose[best]);
}

/* There are no more candidates than clusters: rows on one place leave clusters empty, which are refilled later. */
static void copy_all(pli_kmeans *m, int64_t n, const float *x) {
    for (int64_t j = 0; j < m->k; j++)
        memcpy(m->centre + j * m->d, x + j % n * m->d, (size_t)m->d * sizeof *x);
}

/* The living workers take turns. */
static void share_out(const plait_comm *comm, seeding *s) {
    pli_comm_living(comm, &s->first, &s->step);
    for (int32_t b = 0, worker = -1; b < BEGINNINGS; b++) {
        do worker = (worker + 1) % plait_comm_workers(comm);
        while (pli_comm_is_absent(comm, worker));
        s->whose[b] = worker;
    }
}

plait_status pli_kmeans_seeds(pli_run *run, int64_t n, const float *x, const float *weight) {
    pli_kmeans *m = run->state;
    double      cost[BEGINNINGS];
    seeding     s = { .run = run, .k = m->k, .d = m->d, .n = n, .x = x, .weight = weight, .cost = cost };
    if (n <= m->k) {
        copy_all(m, n, x);
        return PLAIT_OK;
    }
    share_out(run->comm, &s);
    const int32_t beginnings = beginnings_of(run, &s);
    for (int32_t b = 0; b < BEGINNINGS; b++) cost[b] = INFINITY;
    s.best = pli_array((size_t)beginnings, (size_t)(m->k * m->d) * sizeof *s.best);
    if (s.best == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to cluster candidates");
    const int32_t mine = s.first < beginnings ? (beginnings - s.first + s.step - 1) / s.step : 0;
    pli_pool_for(run->pool, mine, attempt_one, &s);
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(n * m->d * m->k * PASSES / 2 * mine));
    plait_status status = choose(run, &s, beginnings);
    pli_free(s.best);
    return status;
}
