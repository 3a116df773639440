/* What learners of labelled rows do alike in a run: they validate, keep the best weights, and judge the trained model.
 * See fit.h. */
#include "learn/supervised/fit.h"

#include <math.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/solve/loop.h"
#include "learn/solve/solver.h"
#include "learn/supervised/fitted.h"

#define BEST        "best.weight"
#define BEST_BIAS   "best.bias"
#define BEST_KEYS   "best.keys"
#define BEST_VALUES "best.values"

/* --- what was found --------------------------------------------------------------------------------------------- */

void pli_fit_tell(const pli_run *run, const char *table, plait_type type, int64_t n, const void *values) {
    const plait_weights weights = {
        .table = table, .epoch = run->epochs_done, .clock = run->clocks_done, .type = type, .n = n, .values = values
    };
    run->opts->weights(run->opts->user, &weights);
}

static plait_status make_whole(const pli_run *run, pli_solution *solution) {
    const pli_fit_ops *ops = pli_fit_of(run)->ops;
    return ops->whole != NULL ? ops->whole(run, solution) : PLAIT_OK;
}

static void tell(const pli_run *run, const pli_solution *solution) {
    if (run->opts->weights != NULL && pli_comm_leads(run->comm)) pli_fit_of(run)->ops->tell(run, solution);
}

plait_status pli_fit_told(pli_run *run) {
    pli_solution now = { 0 };
    if (run->opts->weights == NULL) return PLAIT_OK;
    plait_status status = pli_fit_of(run)->ops->extract(run, &now);
    if (status >= 0) status = make_whole(run, &now);
    if (status >= 0) tell(run, &now);
    pli_solution_free(&now);
    return status;
}

void pli_fit_end(pli_run *run) {
    pli_fit *fit = pli_fit_of(run);
    pli_scale_destroy(&fit->scale);
    pli_solution_free(&fit->solution);
    pli_solution_free(&fit->best);
    pli_free(fit->class_weight);
    pli_free(fit->class_rows);
    fit->class_weight = NULL;
}

static bool has_best(const pli_fit *fit) { return fit->best.weight != NULL || fit->best.flat != NULL; }

plait_status pli_fit_finish(pli_run *run) {
    pli_fit *fit = pli_fit_of(run);
    if (!has_best(fit)) return fit->ops->extract(run, &fit->solution);
    fit->solution = fit->best;
    fit->best = (pli_solution){ 0 };
    run->validation_loss = run->best_loss;
    run->best = run->best_epoch + 1;
    return PLAIT_OK;
}

/* --- the best weights, in a checkpoint --------------------------------------------------------------------------- */

int32_t pli_fit_kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]) {
    const pli_fit      *fit = pli_fit_of(run);
    const pli_solution *best = &fit->best;
    const int64_t       k = fit->goal.columns;
    int32_t             n = 0;
    if (best->flat != NULL) kept_out[n++] = (pli_kept){ BEST_VALUES, "F32", best->rows, 0, best->flat };
    if (best->weight == NULL) return n;
    kept_out[n++] = (pli_kept){ BEST, "F64", best->rows, k, best->weight };
    kept_out[n++] = (pli_kept){ BEST_BIAS, "F64", k, 0, best->bias };
    if (best->key != NULL) kept_out[n++] = (pli_kept){ BEST_KEYS, "U64", best->rows, 0, best->key };
    return n;
}

/* Where ranks have parts of the model, its values are in a file: no rank needs memory for all. */
static plait_status restore_flat(pli_run *run, pli_solution *best) {
    enum { AT_ONCE = 1 << 18 };
    const unsigned char *data = NULL;
    size_t               bytes = 0;
    if (pli_fit_of(run)->ops->whole == NULL || pli_run_stages(run) == 1) {
        PLI_TRY(pli_solution_make_flat(run->weights, best, run->err));
        return pli_resume_array(run, BEST_VALUES, run->weights, 4, best->flat);
    }
    float       *some = pli_array(AT_ONCE, sizeof *some);
    pli_spool   *spool = NULL;
    plait_status status = some != NULL ? pli_spool_create(1 << 20, NULL, &spool, run->err)
                                       : pli_fail(run->err, PLAIT_ENOMEM, "no memory to read a checkpoint");
    for (int64_t at = 0, n; status >= 0 && at < run->weights; at += n) {
        n = run->weights - at < AT_ONCE ? run->weights - at : AT_ONCE;
        status = pli_resume_rows(run, BEST_VALUES, at, n, run->weights, 4, some);
        if (status >= 0) status = pli_spool_add(spool, some, (size_t)n * sizeof *some, run->err);
    }
    if (status >= 0) status = pli_spool_end(spool, &data, &bytes, run->err);
    if (status >= 0) *best = (pli_solution){ .rows = run->weights, .flat = (float *)(uintptr_t)data, .spool = spool };
    else pli_spool_destroy(&spool);
    pli_free(some);
    return status;
}

plait_status pli_fit_restore(pli_run *run) {
    pli_fit      *fit = pli_fit_of(run);
    pli_solution *best = &fit->best;
    const int64_t k = fit->goal.columns;
    int64_t       rows = 0;
    pli_solution_free(best); /* of a worker that has come again */
    if (pli_resume_has(run, BEST_VALUES, &rows)) return restore_flat(run, best);
    if (!pli_resume_has(run, BEST, &rows)) return PLAIT_OK;
    const bool keyed = pli_resume_has(run, BEST_KEYS, NULL);
    PLI_TRY(pli_solution_make(rows, k, keyed, best, run->err));
    PLI_TRY(pli_resume_array(run, BEST, rows, k * 8, best->weight));
    if (keyed) PLI_TRY(pli_resume_array(run, BEST_KEYS, rows, 8, best->key));
    return pli_resume_array(run, BEST_BIAS, k, 8, best->bias);
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Judges the rows of the blocks that are this worker's now; want, if given, says which, and its user is the run. */
static plait_status judge_now(const pli_run *run, const pli_goal *goal, const pli_solution *solution,
                              const pli_dataset *data, bool (*want)(void *user, int64_t row), pli_total *total_out,
                              pli_ranking *ranking) {
    const pli_fit_ops *ops = pli_fit_of(run)->ops;
    bool               done = false;
    if (ops->judged != NULL) PLI_TRY(ops->judged(run, goal, solution, data, want, total_out, &done));
    if (done) return PLAIT_OK;
    const pli_scoring scoring = ops->scoring(run, solution);
    pli_living        held;
    plait_status      status = pli_living_blocks(run, data, &held);
    if (status >= 0)
        status = pli_judge_blocks(goal, &scoring, data, held.n, held.block, run->pool, want, (void *)(uintptr_t)run,
                                  total_out, ranking, run->err);
    pli_living_blocks_free(&held);
    return status;
}

/* Judges the rows that are trained on. */
static plait_status judge_trained(const pli_run *run, const pli_solution *solution, pli_total *total_out) {
    return judge_now(run, &pli_fit_of(run)->goal, solution, run->data, run->fraction > 0 ? pli_run_trains : NULL,
                     total_out, NULL);
}

plait_status pli_fit_worth(pli_run *run, plait_type type, const void *values, double *loss, double *weight,
                           double *penalty) {
    const pli_fit_ops *ops = pli_fit_of(run)->ops;
    pli_solution       solution = { 0 };
    pli_total          total;
    pli_sums           sums = { 0 };
    PLI_TRY(ops->solution(run, type, values, &solution));
    plait_status status = judge_trained(run, &solution, &total);
    if (status == PLAIT_OK) status = pli_total_agree(run->comm, &total, &sums);
    *loss = sums.loss;
    *weight = sums.weight;
    *penalty = ops->penalty(run, &solution);
    pli_solution_free(&solution);
    return status;
}

static plait_status validate_once(const pli_run *run, const pli_solution *solution, double *loss_out,
                                  double *accuracy_out) {
    pli_total total;
    pli_sums  sums;
    bool      split = run->fraction > 0;
    *loss_out = *accuracy_out = NAN;
    if (!split && run->validation == NULL) return PLAIT_OK;
    pli_goal goal = pli_fit_of(run)->goal;
    goal.class_weight = NULL;
    PLI_TRY(judge_now(run, &goal, solution, split ? run->data : run->validation, split ? pli_run_holds_back : NULL,
                      &total, NULL));
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(run->own_entries * goal.columns));
    PLI_TRY(pli_total_agree(run->comm, &total, &sums));
    PLI_TRY(pli_sums_check(&sums, "the validation", run->err));
    *loss_out = pli_sums_loss(&sums);
    if (goal.classes > 0 && sums.weight > 0) *accuracy_out = sums.right / sums.weight;
    return PLAIT_OK;
}

plait_status pli_fit_validate(const pli_run *run, const pli_solution *solution, double *loss_out,
                              double *accuracy_out) {
    int32_t absent = pli_comm_absent(run->comm);
    do PLI_TRY(validate_once(run, solution, loss_out, accuracy_out));
    while (pli_run_again(run, &absent));
    return PLAIT_OK;
}

/* --- after an epoch ---------------------------------------------------------------------------------------------- */

/* Judges the weights on the rows held back; again if a worker dies meanwhile. Collective. */
static plait_status measure(pli_run *run, pli_solution *now, double *loss, double *accuracy) {
    int32_t absent = pli_comm_absent(run->comm);
    do {
        pli_solution_free(now);
        PLI_TRY(pli_fit_of(run)->ops->extract(run, now));
        PLI_TRY(pli_fit_validate(run, now, loss, accuracy));
    } while (pli_run_again(run, &absent));
    return PLAIT_OK;
}

/* Validates, and keeps the best weights; *end_out: stop now. Collective, so all workers stop at once. */
static plait_status validate(pli_run *run, int64_t epoch, bool *end_out) {
    pli_fit     *fit = pli_fit_of(run);
    pli_solution now = { 0 };
    double       stopped = pli_run_stops_here(run), loss = NAN, accuracy = NAN;
    plait_status status = measure(run, &now, &loss, &accuracy);
    const bool better = !(loss >= run->best_loss);
    if (status == PLAIT_OK && (better || run->opts->weights != NULL)) status = make_whole(run, &now);
    if (status == PLAIT_OK) tell(run, &now);
    if (status == PLAIT_OK) status = plait_comm_allreduce(run->comm, &stopped, 1, PLAIT_F64, PLAIT_MAX);
    if (status == PLAIT_OK) {
        run->validation_loss = loss;
        run->validation_accuracy = accuracy;
        if (better) {
            run->best_loss = loss;
            run->best_epoch = epoch;
            pli_solution_free(&fit->best);
            fit->best = now;
            now = (pli_solution){ 0 };
        }
        run->interrupted = run->interrupted || stopped != 0;
        const bool patient = run->opts->patience == 0 || epoch - run->best_epoch < run->opts->patience;
        run->stopped_early = !patient && stopped == 0 && epoch + 1 < run->epochs;
        *end_out = *end_out || stopped != 0 || !patient;
    }
    pli_solution_free(&now);
    return status;
}

plait_status pli_fit_epoch(pli_run *run, int64_t epoch, bool *end_out) {
    uint64_t at = pli_comm_span_begin(run->comm);
    if (run->validation == NULL && !(run->fraction > 0)) return pli_fit_told(run);
    PLI_TRY(validate(run, epoch, end_out));
    pli_run_phase(run, "validate", epoch, &at);
    return PLAIT_OK;
}

/* --- what went wrong ---------------------------------------------------------------------------------------------- */

plait_status pli_fit_finite(const pli_run *run, double loss, int64_t clock) {
    if (isfinite(loss)) return PLAIT_OK;
    if (run->solver != NULL && run->solver->passes)
        return pli_fail(run->err, PLAIT_EDIVERGED,
                        "the loss is not finite in iteration %lld: look for huge values in the "
                        "data, or take --normalize auto",
                        (long long)clock);
    const double rate = run->rule.ops != NULL ? run->rule.learning_rate : run->rate;
    return pli_fail(run->err, PLAIT_EDIVERGED, "the loss is not finite in clock %lld: %stake a smaller step, such as "
                                               "--learning-rate %g, or --optimizer lbfgs", (long long)clock,
                    pli_fit_of(run)->raw ? "the features are not scaled: take --normalize auto; or " : "", rate / 2);
}

plait_status pli_fit_solved(pli_run *run) {
    const pli_fit *fit = pli_fit_of(run);
    return pli_fit_finite(run, fit->ops->penalty(run, &fit->solution), run->clocks_done);
}

/* Adds the loss of an own row: of a softmax the weight alone, and seen [classes] notes its class. */
static void add_row(const pli_fit *fit, double *score, double label, double weight, float *seen, pli_sums *sums) {
    double y, class_weight;
    if (seen == NULL) {
        (void)pli_goal_judge(&fit->goal, score, label, weight, score + fit->goal.columns, sums);
    } else if (pli_goal_target(&fit->goal, label, &y, &class_weight)) {
        sums->loss += weight * class_weight;
        seen[(int64_t)y] = 1;
    }
}

/* The logarithm of how many classes the rows of all workers have: declared ones (--classes) may not occur. */
static plait_status log_of_seen(const pli_run *run, int64_t classes, float *seen, double *log_out) {
    int64_t n = 0;
    PLI_TRY(plait_comm_allreduce(run->comm, seen, classes, PLAIT_F32, PLAIT_MAX));
    for (int64_t c = 0; c < classes; c++) n += seen[c] > 0;
    *log_out = log(n > 0 ? (double)n : 1);
    return PLAIT_OK;
}

static plait_status add_rows(pli_run *run, double *score, float *seen, double *loss_out) {
    const pli_fit *fit = pli_fit_of(run);
    pli_sums       sums = { 0 };
    double         each = 1;
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        for (int64_t r = 0; r < block->rows; r++) {
            const double weight = block->weight != NULL ? (double)block->weight[r] : 1;
            if (run->fraction > 0 && pli_run_holds_back(run, block->first_row + r)) continue;
            add_row(fit, score, block->label[r], weight, seen, &sums);
        }
    }
    if (seen != NULL) PLI_TRY(log_of_seen(run, fit->goal.columns, seen, &each));
    PLI_TRY(pli_sums_agree(run->comm, &sums));
    *loss_out = each * sums.loss / (double)run->train_rows; /* a row's label stands for all of its window */
    return PLAIT_OK;
}

/* The loss, on the rows trained on, of a model that knows nothing: its scores are 0, or the mean label of numbers. Of a
 * softmax that is the logarithm of the number of classes, whatever the label is. */
static plait_status loss_of_nothing(pli_run *run, double *loss_out) {
    const pli_fit *fit = pli_fit_of(run);
    const int64_t  k = fit->goal.columns;
    const bool     even = fit->goal.loss == &pli_loss_softmax;
    double        *score = pli_calloc(even ? 1 : (size_t)k, 2 * sizeof *score);
    float         *seen = even ? pli_calloc((size_t)k, sizeof *seen) : NULL;
    plait_status   status = PLAIT_OK;
    if (score == NULL || (even && seen == NULL)) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for scores");
    for (int64_t c = 0; status >= 0 && !even && c < k; c++) score[c] = fit->label_mean;
    if (status >= 0) status = add_rows(run, score, seen, loss_out);
    pli_free(score);
    pli_free(seen);
    return status;
}

/* A run whose loss is so much less than that of nothing has come far, and the penalty is what makes it worse. */
#define LEARNT 0.1

/* Warns if the model is worse than one that knows nothing: the run went astray, or has not come far. The loss at the
 * beginning tells which: if that was higher (first weights of a net are random, a model to start from may not fit), the
 * run has not come far, and the steps were not too large. */
static plait_status warn_if_astray(pli_run *run, double objective, double train_loss) {
    const bool raw = pli_fit_of(run)->raw;
    double     nothing = 0;
    pli_sums   first = run->first;
    PLI_TRY(loss_of_nothing(run, &nothing));
    PLI_TRY(pli_sums_agree(run->comm, &first));
    const double began = first.rows > 0 ? pli_sums_loss(&first) : (double)NAN;
    const bool whole = pli_comm_absent(run->comm) == 0; /* else the sums above lack the rows of the dead */
    if (run->interrupted || !whole || !pli_comm_leads(run->comm)) return PLAIT_OK;
    if (run->solver != NULL && !run->solver->passes) objective = train_loss; /* it does not apply the penalty */
    const double rounding = 1e-20; /* what is left where all labels are equal */
    if (!(objective > nothing * (1 + 1e-6) + rounding)) return PLAIT_OK;
    const bool stale = (pli_promises_of(run->consistency, NULL) & PLAIT_WHOLE_CLOCKS) == 0;
    if (nothing - train_loss > LEARNT * fabs(nothing))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "the objective is %.4g, of which the penalty of the weights is %.4g, but a model that always gives the "
                "same answer has %.4g: take a smaller --l2, or more --epochs",
                objective, objective - train_loss, nothing);
    else if (run->solver != NULL || train_loss < began)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "the objective is %.4g, but a model that always gives the same answer has %.4g: the loss was still "
                "falling; take more --epochs%s", objective, nothing,
                run->solver != NULL ? "" : ", or a larger --learning-rate");
    else
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "the objective is %.4g, but a model that always gives the same answer has %.4g: steps were too "
                "large%s%s; take %sa smaller --learning-rate%s",
                objective, nothing, raw ? " for features that are not scaled" : "",
                stale ? ", or updates too stale" : "", raw ? "--normalize auto, or " : "",
                stale ? ", or --consistency bsp" : "");
    return PLAIT_OK;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Judges the test set. The solution is the model's by now. */
static plait_status judge_test(pli_run *run, const pli_solution *solution, plait_report *report) {
    pli_total   total;
    pli_sums    sums;
    pli_ranking ranking = { 0 };
    double      auc = NAN;
    pli_goal    goal = pli_fit_of(run)->goal;
    goal.class_weight = NULL;
    if (run->test == NULL) return PLAIT_OK;
    plait_status status = judge_now(run, &goal, solution, run->test, NULL, &total, &ranking);
    if (status == PLAIT_OK) status = pli_total_agree(run->comm, &total, &sums);
    if (status == PLAIT_OK) status = pli_sums_check(&sums, "the test set", run->err);
    if (status == PLAIT_OK && goal.loss->target == PLI_TWO_CLASSES)
        status = pli_ranking_auc(&ranking, run->comm, &auc, run->err);
    if (status == PLAIT_OK) pli_judge_report(report, &goal, &sums, auc);
    pli_ranking_free(&ranking);
    return status;
}

/* Judges whether workers that ran apart did harm. own: sums over the own rows. A solver measures its gap itself. */
static plait_status judge_pace(pli_run *run, const pli_solution *solution, const pli_sums *own) {
    const pli_fit_ops *ops = pli_fit_of(run)->ops;
    double             gap = NAN;
    if (!run->paced || run->solver != NULL) return PLAIT_OK;
    if (ops->gap != NULL) PLI_TRY(ops->gap(run, solution, &gap));
    return isnan(gap) ? pli_pace_judge(run, own) : pli_pace_tell(run, gap);
}

/* Fills the losses of the report: train_loss and objective by one more pass over the rows trained on, then the test. */
plait_status pli_fit_judge(pli_run *run, const plait_model *model, plait_report *report) {
    const pli_fit      *fit = pli_fit_of(run);
    const pli_solution *solution = pli_fitted_solution(model);
    const double        penalty = fit->ops->penalty(run, solution);
    pli_total           total;
    if (run->stream) return judge_test(run, solution, report);
    PLI_TRY(judge_trained(run, solution, &total));
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(run->own_entries * fit->goal.columns));
    pli_sums sums = pli_total_sums(&total);
    PLI_TRY(judge_pace(run, solution, &sums));
    PLI_TRY(pli_total_agree(run->comm, &total, &sums));
    report->train_loss = pli_sums_loss(&sums);
    const bool ranks = pli_fit_of(run)->goal.loss->query != NULL; /* the mean is over queries */
    report->objective = ranks ? report->train_loss : sums.loss / (double)run->train_labels + penalty;
    if (run->learner->optimizer != NULL) PLI_TRY(warn_if_astray(run, report->objective, report->train_loss));
    return judge_test(run, solution, report);
}

void pli_fit_report(const pli_run *run, plait_report *report) {
    const bool ends = run->solver != NULL && run->solver->passes && !run->interrupted; /* it knows where it is */
    report->converged = ends ? run->converged : -1;
    report->gap = ends ? run->gap : (double)NAN;
}

plait_status pli_fit_solved_at(pli_run *run, plait_type type, const void *values) {
    pli_fit *fit = pli_fit_of(run);
    PLI_TRY(fit->ops->solution(run, type, values, &fit->solution));
    if (!run->interrupted) /* a run that was stopped is not judged */
        PLI_TRY(pli_fit_validate(run, &fit->solution, &run->validation_loss, &run->validation_accuracy));
    tell(run, &fit->solution);
    return PLAIT_OK;
}

/* --- before the first clock --------------------------------------------------------------------------------------- */

plait_status pli_fit_measure_scale(pli_run *run) {
    pli_fit       *fit = pli_fit_of(run);
    pli_scale_rows rows = { .own = pli_dataset_own_blocks(run->data), .blocks = pli_dataset_blocks(run->data),
                            .rows = run->seen_rows, .entries = run->seen_entries, .sampled = run->stream,
                            .skip = run->fraction > 0 ? pli_run_holds_back : NULL, .user = run };
    const pli_block **block = pli_array((size_t)rows.own, sizeof *block);
    if (block == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < rows.own; b++) block[b] = pli_run_block(run, b);
    rows.block = block;
    plait_status status = pli_scale_measure(run->comm, run->features, fit->intercept, &rows, &fit->scale, run->err);
    pli_free(block);
    return status;
}

void pli_fit_settle(pli_run *run, int64_t batch, int64_t (*epochs)(const pli_run *run)) {
    const plait_train_opts *o = run->opts;
    run->batch = run->solver != NULL && run->solver->passes ? run->train_rows : batch;
    run->clocks = (run->train_rows + run->batch - 1) / run->batch;
    run->epochs = o->epochs > 0 ? o->epochs : epochs(run);
    run->schedule = o->schedule;
    if (o->schedule == NULL && run->epochs > 1 && strcmp(run->optimizer, "ftrl") != 0 && run->solver == NULL)
        run->schedule = "cosine";
    run->l1 = o->l1;
    run->l2 = isnan(o->l2) ? 1.0 / (double)run->train_labels : o->l2;
    pli_shares_tell(run); /* now that the solver is known */
}

double pli_fit_rate(const pli_run *run) {
    static const struct {
        const char *rule;
        double      batch;
        bool        metric;
    } rates[] = {
        { "sgd", 1.0, false },  { "momentum", 0.1, false }, { "adagrad", 1.0, true },
        { "adam", 0.05, true }, { "ftrl", 1.0, true },
    };
    const pli_fit *fit = pli_fit_of(run);
    const double   spread = fit->label_spread * (run->start != NULL ? 0.1 : 1); /* keep what the start has reached */
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (strcmp(run->optimizer, rates[i].rule) != 0) continue;
        if (rates[i].metric) return rates[i].batch * spread;
        const double level = fit->goal.loss->log_mean ? fmax(1, exp(fit->label_mean)) : 1;
        return rates[i].batch / 4 / (fit->goal.loss->curvature * level);
    }
    return 0;
}

plait_status pli_fit_check_start(const pli_run *run, const pli_goal *was, int64_t features) {
    const pli_goal *now = &pli_fit_of(run)->goal;
    bool            same = was->classes == now->classes && features == run->features;
    for (int64_t k = 0; same && k < was->classes; k++) same = was->label[k] == now->label[k];
    if (same) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EMISMATCH,
                    "%s has %lld features and %lld labels, but the data have %lld and %lld (or other labels): training "
                    "cannot start from it", run->opts->init_model, (long long)features, (long long)was->classes,
                    (long long)run->features, (long long)now->classes);
}
