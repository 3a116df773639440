/* The result of a search: one JSON object with every outcome, or a table of the best trials. */
#include <inttypes.h>
#include <math.h>

#include "base/json.h"
#include "cli/tune.h"

enum { SHOWN = 10 };

static int64_t count_runs(const pli_tune *tune) {
    int64_t n = 0;
    for (int64_t i = 0; i < tune->halving.trials * tune->halving.rungs; i++)
        n += tune->halving.run[i].state == PLI_TUNE_DONE;
    return n;
}

static void add_search(const pli_tune *tune, pli_text *text) {
    pli_json_text(text, "model", pli_train_model(&tune->job, tune->job_opts));
    pli_json_text(text, "search", tune->set.search);
    pli_json_text(text, "halve", tune->set.halve);
    pli_json_text(text, "by", tune->set.by);
    pli_json_i64(text, "folds", tune->validates ? 0 : tune->folds.n);
    pli_json_list(text, "try");
    for (int32_t i = 0; i < tune->space.n; i++) pli_json_text(text, NULL, tune->space.range[i].given);
    pli_json_list_end(text);
    pli_job_words_json(tune->job_opts, &tune->job, "options", text);
}

void pli_tune_json(const pli_tune *tune, int64_t best, int32_t rung, bool whole, pli_text *text) {
    const pli_halving *h = &tune->halving;
    pli_json_begin(text);
    add_search(tune, text);
    pli_json_i64(text, "trials", h->trials);
    pli_json_i64(text, "rungs", h->rungs);
    pli_json_i64(text, "runs", count_runs(tune));
    pli_json_bool(text, "interrupted", !whole);
    if (best >= 0) {
        pli_json_object(text, "best");
        pli_tune_json_trial(tune, best, rung, text);
        pli_json_end(text);
    } else {
        pli_json_null(text, "best");
    }
    pli_json_f64(text, "test_loss", tune->refit.test_loss);
    pli_json_f64(text, "test_accuracy", tune->refit.test_accuracy);
    pli_json_f64(text, "test_rmse", tune->refit.test_rmse);
    pli_json_text(text, "out", tune->saved ? tune->job.out : NULL);
    pli_json_list(text, "runs_done");
    for (int64_t t = 0; t < h->trials; t++)
        for (int32_t r = 0; r < h->rungs; r++) {
            if (pli_halving_run(h, t, r)->state != PLI_TUNE_DONE) continue;
            pli_json_object(text, NULL);
            pli_tune_json_trial(tune, t, r, text);
            pli_json_end(text);
        }
    pli_json_list_end(text);
    pli_json_end(text);
    pli_text_add(text, "\n");
}

/* The next trial by rung, from the last down, and by loss, behind (rung, trial); false: there is none. */
static bool next_shown(const pli_halving *h, int32_t *rung, int64_t *trial) {
    for (; *rung >= 0; --*rung, *trial = -1) {
        const double from = *trial >= 0 ? pli_halving_run(h, *trial, *rung)->loss : -(double)INFINITY;
        int64_t      next = -1;
        for (int64_t t = 0; t < h->trials; t++) {
            const pli_tune_run *run = pli_halving_run(h, t, *rung);
            if (run->state != PLI_TUNE_DONE || !isfinite(run->loss)) continue;
            if (run->loss < from || (run->loss <= from && t <= *trial)) continue;
            if (next < 0 || run->loss < pli_halving_run(h, next, *rung)->loss) next = t;
        }
        if ((*trial = next) >= 0) return true;
    }
    return false;
}

void pli_tune_text(const pli_tune *tune, int64_t best, pli_text *text) {
    const pli_halving *h = &tune->halving;
    int32_t            rung = h->rungs - 1;
    int64_t            trial = -1;
    pli_text_add(text, "%7s %7s %12s %12s  options\n", "trial", tune->set.halve, tune->set.by, "deviation");
    for (int i = 0; i < SHOWN && next_shown(h, &rung, &trial); i++) {
        const pli_tune_run *run = pli_halving_run(h, trial, rung);
        pli_text_add(text, "%7" PRId64 " %5.1f %% %12.6g ", trial + 1, 100 * pli_halving_share(h, rung),
                     fabs(run->loss));
        if (isfinite(run->deviation)) pli_text_add(text, "%12.4g  ", run->deviation);
        else pli_text_add(text, "%12s  ", "-");
        pli_tune_words(tune, trial, text);
        pli_text_add(text, "\n");
    }
    pli_text_add(text, "\nbest      ");
    pli_tune_words(tune, best, text);
    pli_text_add(text, "\n");
    if (isfinite(tune->refit.test_loss)) pli_text_add(text, "test loss %.6g\n", tune->refit.test_loss);
    if (isfinite(tune->refit.test_accuracy)) pli_text_add(text, "accuracy  %.6g\n", tune->refit.test_accuracy);
    if (isfinite(tune->refit.test_rmse)) pli_text_add(text, "test RMSE %.6g\n", tune->refit.test_rmse);
    if (tune->saved) pli_text_add(text, "model     %s\n", tune->job.out);
}
