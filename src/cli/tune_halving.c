/* Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2020). All
 * trials begin in rung 0, with a small share of the rows; the best of a rung, one in `factor`, rise to the next, which
 * has `factor` times the share. A trial rises as soon as it is among the best of those that are known, so that nobody
 * waits for a rung to be full. A random search or a grid is a search with one rung. */
#include <math.h>

#include "cli/tune.h"

double pli_halving_share(const pli_halving *h, int32_t rung) {
    return pow((double)h->factor, (double)(rung + 1 - h->rungs));
}

static bool better(const pli_halving *h, int64_t a, int64_t b, int32_t rung) {
    const double left = pli_halving_run(h, a, rung)->loss, right = pli_halving_run(h, b, rung)->loss;
    return left < right || (left == right && a < b);
}

static bool is_done(const pli_halving *h, int64_t trial, int32_t rung) {
    return pli_halving_run(h, trial, rung)->state == PLI_TUNE_DONE;
}

/* The best trial of a rung that is done and, if `to_rise`, has not risen; -1: none. */
static int64_t best_of(const pli_halving *h, int32_t rung, bool to_rise) {
    int64_t best = -1;
    for (int64_t t = 0; t < h->trials; t++) {
        if (!is_done(h, t, rung) || !isfinite(pli_halving_run(h, t, rung)->loss)) continue;
        if (to_rise && pli_halving_run(h, t, rung + 1)->state != PLI_TUNE_NONE) continue;
        if (best < 0 || better(h, t, best, rung)) best = t;
    }
    return best;
}

/* The trial that may rise from the rung; -1: none is among the best that has not risen. */
static int64_t rising(const pli_halving *h, int32_t rung) {
    const int64_t t = best_of(h, rung, true);
    int64_t       done = 0, before = 0;
    if (t < 0) return -1;
    for (int64_t other = 0; other < h->trials; other++) {
        if (!is_done(h, other, rung)) continue;
        done++;
        before += other != t && better(h, other, t, rung);
    }
    return before < done / h->factor ? t : -1;
}

int64_t pli_halving_best(const pli_halving *h, int32_t *rung_out) {
    for (*rung_out = h->rungs - 1; *rung_out >= 0; --*rung_out) {
        const int64_t t = best_of(h, *rung_out, false);
        if (t >= 0) return t;
    }
    return -1;
}

static bool any_runs(const pli_halving *h) {
    for (int64_t i = 0; i < h->trials * h->rungs; i++)
        if (h->run[i].state == PLI_TUNE_RUNS) return true;
    return false;
}

static bool take(pli_halving *h, int64_t trial, int32_t rung, int64_t *trial_out, int32_t *rung_out) {
    pli_halving_run(h, trial, rung)->state = PLI_TUNE_RUNS;
    *trial_out = trial;
    *rung_out = rung;
    return true;
}

bool pli_halving_next(pli_halving *h, int64_t *trial_out, int32_t *rung_out, bool *ended_out) {
    *ended_out = false;
    for (int32_t rung = h->rungs - 2; rung >= 0; rung--) {
        const int64_t t = rising(h, rung);
        if (t >= 0) return take(h, t, rung + 1, trial_out, rung_out);
    }
    while (h->begun < h->trials && pli_halving_run(h, h->begun, 0)->state != PLI_TUNE_NONE) h->begun++;
    if (h->begun < h->trials) return take(h, h->begun, 0, trial_out, rung_out);
    if (any_runs(h)) return false;
    /* Few trials: nobody has come to anything in the last rung. One that has failed in the next rung does not rise to
     * it again. */
    int32_t       rung;
    const bool    more = pli_halving_best(h, &rung) >= 0 && rung < h->rungs - 1;
    const int64_t t = more ? best_of(h, rung, true) : -1;
    *ended_out = t < 0;
    return *ended_out ? false : take(h, t, rung + 1, trial_out, rung_out);
}
