/* The step size of sgd where none was given. How large steps may be depends on how many ratings a row has: with three
 * a user, large steps fit the noise; with twenty, small ones do not come far enough. So a few rates are tried on nine
 * tenths of the ratings, and the one that predicts the last tenth best is taken (Chin et al., PAKDD 2015, choose by
 * held-out ratings as well). The choice follows from data, seed and options alone: the first worker gets all ratings,
 * in their own order, and tells the others.
 *
 * Many ratings are not tried on: trying would cost several times what training does, and with many ratings a row the
 * usual rate is good. */
#include <math.h>
#include <string.h>

#include "comm/comm.h"
#include "learn/factors/factors.h"

static const double rates[] = { 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4 };
enum { RATES = sizeof rates / sizeof *rates, HELD_OUT = 10 };

/* The most ratings, and the most steps times rank of all rates: about a second. */
enum { RATINGS_MOST = 300000 };
static const double work_most = 1.5e9, bytes_most = 128 << 20;

typedef struct probe {
    const pli_run *run;
    const pli_mf  *m;
    pli_rating    *rating; /* those to train on, in the order of steps; behind them those held out */
    int64_t        n, held, epochs;
    double         loss[RATES]; /* of those held out; NaN: no memory */
} probe;

static bool is_held_out(const pli_rating *r) {
    return pli_hash_u64((uint64_t)r->user << 32 | r->item) % HELD_OUT == 0;
}

/* Shuffles those to train on, and puts those held out behind them. */
static bool part(probe *p, const pli_ratings *all) {
    pli_random random = pli_random_at(p->m->seed, PLI_RANDOM_FACTORS, UINT64_MAX, 0);
    uint32_t  *order = pli_array((size_t)all->ratings, sizeof *order);
    p->rating = pli_array((size_t)all->ratings, sizeof *p->rating);
    if (order != NULL && p->rating != NULL) {
        pli_random_permutation(&random, all->ratings, order);
        for (int64_t i = 0; i < all->ratings; i++) {
            const pli_rating *r = &all->rating[order[i]];
            if (is_held_out(r)) p->rating[all->ratings - ++p->held] = *r;
            else p->rating[p->n++] = *r;
        }
    }
    pli_free(order);
    return order != NULL && p->rating != NULL;
}

static bool draw(const pli_mf *m, uint64_t table, pli_factor_rows *rows, int64_t n) {
    float *values = pli_array((size_t)n, (size_t)m->cols * sizeof *values);
    const bool made = pli_factor_rows_make(rows, n, m->rank) && values != NULL;
    if (made) {
        pli_mf_draw_rows(m, m->seed, table, n, values);
        pli_factor_rows_read(rows, n, values);
    }
    pli_free(values);
    return made;
}

static double judge(const probe *p, const pli_factor_rows *user, const pli_factor_rows *item) {
    double sum = 0;
    for (int64_t i = p->n; i < p->n + p->held; i++) {
        const pli_rating *r = &p->rating[i];
        const float value = (float)p->m->mean + user->side[2 * r->user] + item->side[2 * r->item] +
                            pli_factor_kernels_get()->dot(user->width, user->row + r->user * user->width,
                                                          item->row + r->item * item->width);
        sum += (double)(r->weight * (r->value - value) * (r->value - value));
    }
    return sum;
}

static void try_rate(void *user, int64_t k, int32_t thread) {
    probe          *p = user;
    const pli_mf   *m = p->m;
    pli_factor_rows users = { 0 }, items = { 0 };
    (void)thread;
    p->loss[k] = NAN;
    if (draw(m, 0, &users, m->pair.users) && draw(m, 1, &items, m->pair.items)) {
        pli_factor_step step = { .user = { users.row, users.side }, .item = { items.row, items.side },
                                 .width = users.width, .rank = (int32_t)m->rank, .mean = (float)m->mean,
                                 .l2 = (float)p->run->l2 };
        for (int64_t epoch = 0; epoch < p->epochs; epoch++) {
            step.rate = (float)pli_mf_rate(p->run, rates[k], epoch, p->epochs);
            (void)pli_factor_kernels_get()->squared(&step, p->n, p->rating);
        }
        p->loss[k] = judge(p, &users, &items);
    }
    pli_factor_rows_free(&users);
    pli_factor_rows_free(&items);
}

static double best_rate(probe *p, const pli_ratings *all, double usual) {
    double least = INFINITY, rate = usual;
    if (!part(p, all) || p->n == 0 || p->held == 0) return usual;
    pli_pool_for(p->run->pool, RATES, try_rate, p);
    for (int k = RATES - 1; k >= 0; k--)
        if (p->loss[k] < least) {
            least = p->loss[k];
            rate = rates[k];
        }
    if (pli_comm_charges(p->run->comm))
        pli_comm_work(p->run->comm, PLI_WORK_ENTRIES, (uint64_t)(6 * RATES * p->epochs * p->n * p->m->rank));
    return rate;
}

/* A run that may resume for more epochs must try as many as before. */
static int64_t epochs_to_try(const pli_run *run, int64_t usual) {
    return run->schedule != NULL && strcmp(run->schedule, "cosine") == 0 ? run->epochs : usual;
}

static bool is_worth_it(const pli_run *run, const pli_mf *m, int64_t epochs) {
    const double rows = (double)(m->pair.users + m->pair.items);
    return m->loss == PLI_FACTORS_SQUARED && !m->als && !(run->opts->learning_rate > 0) &&
           run->train_rows <= RATINGS_MOST &&
           (double)RATES * (double)epochs * (double)run->train_rows * (double)m->rank <= work_most &&
           rows * (double)(m->rank + PLI_FACTOR_LANES) * 4 * RATES <= bytes_most;
}

/* Steps that divide by past slopes come near to the optimum late, so twice as many passes are better on few ratings,
 * unless the least rate wins: then the optimum fits the noise, and the run should stop before it. */
static bool may_be_longer(const pli_run *run) {
    return run->opts->epochs == 0 && run->schedule != NULL && strcmp(run->schedule, "cosine") == 0;
}

plait_status pli_mf_probe(pli_run *run, int64_t usual_epochs) {
    pli_mf       *m = pli_mf_of(run);
    const int32_t workers = plait_comm_workers(run->comm);
    probe         p = { .run = run, .m = m, .epochs = epochs_to_try(run, usual_epochs) };
    pli_ratings   all = { 0 };
    const bool    longer = may_be_longer(run) && is_worth_it(run, m, 2 * p.epochs);
    if (longer) p.epochs *= 2;
    if (!is_worth_it(run, m, p.epochs)) return PLAIT_OK;
    int64_t *cut = pli_array((size_t)workers + 1, sizeof *cut);
    if (cut == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to try rates");
    for (int32_t w = 0; w <= workers; w++) cut[w] = w == 0 ? 0 : m->pair.users;
    plait_status status = pli_ratings_share(run, &m->pair, false, cut, &all);
    if (status >= 0 && plait_comm_rank(run->comm) == 0) run->rate = best_rate(&p, &all, run->rate);
    if (status >= 0) status = plait_comm_broadcast(run->comm, &run->rate, sizeof run->rate, 0);
    if (status >= 0 && longer && run->rate > rates[0]) run->epochs = p.epochs;
    if (status >= 0 && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "learning rate: %g, which of %d rates predicts a tenth of the ratings best",
                run->rate, (int)RATES);
    pli_free(p.rating);
    pli_ratings_free(&all);
    pli_free(cut);
    return status;
}
