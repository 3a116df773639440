#include "cli/chosen_columns.h"

#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "watch/compare/compare.h"

/* A run that is stopped takes a clock or two to end, and these count: few clocks would seem longer than they are. */
enum { CLOCKS = 20, CANDIDATES = 32 };

/* The fewest of the columns that are as good as the best within this share are taken. */
static const double AS_GOOD = 0.03;

typedef struct trial {
    int32_t columns;
    double  seconds; /* of a clock; INFINITY: it does not run, or was not simulated */
} trial;

typedef struct trials {
    trial       of[CANDIDATES]; /* [n] ascending */
    int32_t     n, simulated;
    int32_t     most;    /* the most columns that do not run; 0: all run */
    plait_error refused; /* why these do not */
} trials;

/* All divisors of the workers. */
static void list(trials *all, int32_t workers) {
    for (int32_t n = 1; n <= workers && all->n < CANDIDATES; n++)
        if (workers % n == 0) all->of[all->n++] = (trial){ .columns = n, .seconds = INFINITY };
}

static plait_status simulate(trials *all, int32_t i, const pli_ahead *like, uint64_t *left_ns, plait_error *err) {
    pli_train_plan plan = *like->plan;
    pli_ahead      ahead = *like;
    pli_foretold   told;
    plan.train.columns = all->of[i].columns;
    ahead.plan = &plan;
    ahead.clocks = CLOCKS;
    ahead.target = NAN;
    ahead.seconds = INFINITY;
    ahead.cpu_ns = *left_ns / (uint64_t)(all->n - i); /* each an equal share of what is left */
    PLI_TRY(pli_foretell(&ahead, &told, NULL, err));
    *left_ns -= told.cpu_ns < *left_ns ? told.cpu_ns : *left_ns;
    if (told.status >= 0) {
        all->of[i].seconds = told.seconds / (double)told.clocks;
        all->simulated++;
    } else {
        all->most = all->of[i].columns;
        pli_fail(&all->refused, told.status, "%s", told.why);
    }
    return PLAIT_OK;
}

static const trial *best_of(const trials *all) {
    const trial *best = &all->of[0];
    for (int32_t i = 1; i < all->n; i++)
        if (all->of[i].seconds < best->seconds) best = &all->of[i];
    const double good = (1 + AS_GOOD) * best->seconds;
    for (best = &all->of[0]; best->seconds > good;) best++;
    return best;
}

static void tell(const trials *all, const trial *best, pli_columns_choice *out) {
    char a[24], b[24];
    out->columns = best->columns;
    pli_compare_seconds(best->seconds, a);
    pli_compare_seconds(all->of[0].seconds, b);
    if (best->columns > 1 && isfinite(all->of[0].seconds))
        snprintf(out->why, sizeof out->why, "a clock takes %s, and %s with whole layers, of %d numbers simulated", a, b,
                 (int)all->simulated);
    else if (best->columns == 1 && all->most > 0)
        snprintf(out->why, sizeof out->why, "a clock takes %s, of %d number%s simulated; %d do not run: %s", a,
                 (int)all->simulated, pli_plural(all->simulated), (int)all->most, all->refused.text);
    else
        snprintf(out->why, sizeof out->why, "a clock takes %s, of %d number%s simulated%s", a, (int)all->simulated,
                 pli_plural(all->simulated), best->columns > 1 ? ", and whole layers do not run" : "");
}

plait_status pli_columns_choose(const pli_ahead *like, uint64_t *left_ns, pli_columns_choice *out, plait_error *err) {
    trials all = { .refused = { .rank = -1 } };
    list(&all, like->workers);
    for (int32_t i = 0; i < all.n; i++) PLI_TRY(simulate(&all, i, like, left_ns, err));
    if (all.simulated == 0) {
        *err = all.refused;
        return err->code;
    }
    tell(&all, best_of(&all), out);
    return PLAIT_OK;
}
