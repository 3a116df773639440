/* The learner bayes: what follows from options and data. */
#include <math.h>
#include <string.h>

#include "learn/bayes/bayes.h"

static const plait_learner_table tables[] = {
    { .name = "sums",
      .what = "one row for each feature: its sum in each class, for gaussian three sums; rows by key if features grow "
              "by key" },
    { .name = "rows", .what = "one dense row: the total weight of each class", .small = 1 },
    { .name = NULL },
};

static const plait_learner_option options[] = {
    { .name = "events-model",
      .kind = PLAIT_OPTION_NAME,
      .preset = "auto",
      .names = "auto multinomial bernoulli gaussian complement",
      .help =
          "what a feature is: a count (multinomial, complement), present or absent (bernoulli), a real number "
          "(gaussian); auto: gaussian if some values are negative, or if most values are given and some are not whole, "
          "else multinomial" },
    { .name = "alpha",
      .kind = PLAIT_OPTION_NUMBER,
      .preset = "1",
      .low = 1e-10,
      .help = "smoothing: added to each count, so that no probability is 0; not for gaussian" },
    { .name = "var-smoothing",
      .kind = PLAIT_OPTION_NUMBER,
      .preset = "1e-9",
      .low = 0,
      .help = "smoothing for gaussian: this times the largest variance of a feature is added to each variance" },
    { .name = "counts",
      .kind = PLAIT_OPTION_NAME,
      .preset = "auto",
      .names = "auto real",
      .help = "auto: exact counts in whole numbers if all values and weights are whole; real: floating point" },
    { .name = NULL },
};

static plait_status check(pli_run *run) {
    pli_fit *fit = pli_fit_of(run);
    fit->ops = &pli_bayes_fit_ops;
    fit->wanted = "logistic"; /* what its scores are judged by */
    return PLAIT_OK;
}

/* --- what the values are ------------------------------------------------------------------------------------------ */

/* 1 where it is so of some value, or of some row's weight. */
enum { NEGATIVE, NOT_WHOLE, WEIGHT_NOT_WHOLE, LOOKS };

static void look_at(const pli_fit *fit, const pli_block *block, double *seen) {
    double heaviest = 0;
    for (int64_t r = 0; r < block->rows; r++) {
        double y, weight;
        if (!pli_goal_target(&fit->goal, block->label[r], &y, &weight)) continue;
        if (block->weight != NULL) weight *= (double)block->weight[r];
        heaviest = fmax(heaviest, weight);
        if (!pli_tally_is_whole(weight)) seen[WEIGHT_NOT_WHOLE] = 1;
    }
    for (int64_t e = 0; block->value != NULL && e < block->entries; e++) {
        const double x = (double)block->value[e];
        if (x < 0) seen[NEGATIVE] = 1;
        if (!pli_tally_is_whole(fabs(x)) || fabs(x) * heaviest > PLI_TALLY_MOST) seen[NOT_WHOLE] = 1;
    }
}

/* Of a stream its sample tells; of features that grow by key it has no values, so they may be any. */
static plait_status look(pli_run *run, double *seen) {
    for (int32_t own = 0; own < pli_dataset_own_blocks(run->data); own++)
        look_at(pli_fit_of(run), pli_run_block(run, own), seen);
    if (run->stream && run->features == 0) seen[NOT_WHOLE] = 1;
    return plait_comm_allreduce(run->comm, seen, LOOKS, PLAIT_F64, PLAIT_MAX);
}

static bool is_dense(const pli_run *run) {
    return (double)run->entries > 0.5 * (double)run->rows * (double)run->features;
}

static pli_events settle_events(const pli_run *run, const double *seen) {
    const char   *said = plait_training_name(run, "events-model");
    const int32_t named = pli_events_find(said);
    const bool    real = seen[NOT_WHOLE] > 0 && is_dense(run) && run->features > 0;
    if (named >= 0) return (pli_events)named;
    const pli_events events = seen[NEGATIVE] > 0 || real ? PLI_EVENTS_GAUSSIAN : PLI_EVENTS_MULTINOMIAL;
    if (pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn", "events-model: %s, since %s",
                pli_events_name[events],
                seen[NEGATIVE] > 0              ? "values are negative"
                : events == PLI_EVENTS_GAUSSIAN ? "most values are given, and not all are whole numbers"
                : seen[NOT_WHOLE] > 0           ? "no value is negative, and most are 0"
                                                : "values are counts");
    return events;
}

/* All rows of a data set in memory have been looked at: nothing is left to be checked while they are counted. */
static plait_status settle_values(pli_run *run) {
    pli_bayes_fit  *b = pli_bayes_fit_of(run);
    pli_tally_form *t = &b->tally;
    double          seen[LOOKS] = { 0 };
    const bool      real = strcmp(plait_training_name(run, "counts"), "real") == 0;
    PLI_TRY(look(run, seen));
    t->events = settle_events(run, seen);
    if (t->events == PLI_EVENTS_GAUSSIAN)
        pli_run_note_unused(run, "alpha", "on events-model gaussian, which --var-smoothing smooths");
    else pli_run_note_unused(run, "var-smoothing", "on other events-models than gaussian, which --alpha smooths");
    b->rows_are_whole = !real && seen[WEIGHT_NOT_WHOLE] == 0;
    t->whole = b->rows_are_whole && t->events != PLI_EVENTS_GAUSSIAN &&
               (t->events == PLI_EVENTS_BERNOULLI || seen[NOT_WHOLE] == 0);
    t->goal = &b->fit.goal;
    t->width = pli_events_width(t->events, run->classes);
    b->scorer = (pli_bayes_scorer){ t->events, run->classes };
    const bool counts = t->events == PLI_EVENTS_MULTINOMIAL || t->events == PLI_EVENTS_COMPLEMENT;
    t->checks = run->stream || (counts && seen[NEGATIVE] > 0); /* then the row is named */
    return PLAIT_OK;
}

/* --- clocks and tables -------------------------------------------------------------------------------------------- */

enum { CLOCKS = 16, PUSHED = 8, ENTRIES_OF_CLOCK = 1 << 26 };

/* Few clocks, since each pushes the features that it touched: several entries are counted for a value that may be
 * pushed. A clock of large data is some tenths of a second nevertheless. */
static void settle_clocks(pli_run *run) {
    const double entries = fmax((double)run->entries / (double)run->rows, 1);
    const double values = run->features > 0 ? (double)run->features * (double)pli_bayes_fit_of(run)->tally.width : 0;
    double       batch = fmax((double)run->train_rows / CLOCKS, PUSHED * values / entries);
    batch = fmax(fmin(batch, ENTRIES_OF_CLOCK / entries), 16);
    run->batch = run->opts->batch > 0 ? run->opts->batch : (int64_t)fmin(batch, (double)run->train_rows);
    run->clocks = (run->train_rows + run->batch - 1) / run->batch;
    run->epochs = 1;
    run->examples = run->batch;
}

enum { DENSE_VALUES_MAX = 1 << 26 };

/* What a batch touches decides how sums travel. */
static plait_status settle_form(pli_run *run) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    const double   values = (double)run->features * (double)b->tally.width;
    const double   touched = (double)run->entries / (double)run->rows * (double)run->batch * (double)b->tally.width;
    b->form = run->features == 0 || values > DENSE_VALUES_MAX ? PLI_BAYES_SPARSE
              : values <= 4096 || values <= 2 * touched       ? PLI_BAYES_DENSE
                                                              : PLI_BAYES_KEYED;
    if (b->form == PLI_BAYES_SPARSE && b->tally.events == PLI_EVENTS_GAUSSIAN)
        return pli_fail(
            run->err, PLAIT_EREFUSED,
            "events-model gaussian with %lld features of %lld classes is refused: it looks at all features of each "
            "row, and keeps three sums for each; take --hash-bits 16, or --events-model multinomial",
            (long long)run->features, (long long)run->classes);
    if (b->form != PLI_BAYES_SPARSE && run->resume_layout >= 0 && run->resume_layout != PLI_BAYES_SPARSE)
        b->form = (pli_bayes_form)run->resume_layout; /* other workers may have chosen the other */
    run->layout = b->form;
    b->tally.features = b->form == PLI_BAYES_SPARSE ? 0 : run->features;
    b->tally.marks = b->form == PLI_BAYES_KEYED;
    return PLAIT_OK;
}

static plait_status settle_tables(pli_run *run) {
    const pli_bayes_form form = pli_bayes_fit_of(run)->form;
    const pli_planned    planned[] = {
        { .name = "sums", .sparse = form != PLI_BAYES_DENSE, .grows = form == PLI_BAYES_SPARSE },
        { .name = "rows", .hinted = true },
    };
    return pli_tables_settle(run, planned, 2);
}

static plait_status prepare(pli_run *run) {
    PLI_TRY(pli_labels_settle(run));
    PLI_TRY(settle_values(run));
    settle_clocks(run);
    PLI_TRY(settle_form(run));
    return settle_tables(run);
}

static plait_status measured(pli_run *run) {
    return pli_bayes_fit_of(run)->tally.events == PLI_EVENTS_GAUSSIAN ? pli_bayes_centre(run) : PLAIT_OK;
}

/* --- what was learnt ---------------------------------------------------------------------------------------------- */

static plait_status make_solution(pli_run *run, int64_t rows, const void *values, const void *of_class,
                                  pli_solution *solution_out) {
    const pli_bayes_fit *b = pli_bayes_fit_of(run);
    const bool           gaussian = b->tally.events == PLI_EVENTS_GAUSSIAN;
    const pli_bayes_sums sums = { .events = b->tally.events, .rows = rows, .classes = run->classes,
                                  .whole = b->tally.whole, .rows_are_whole = b->rows_are_whole, .sum = values,
                                  .of_class = of_class, .centre = b->centre,
                                  .alpha = plait_training_number(run, "alpha"),
                                  .smoothing = plait_training_number(run, "var-smoothing"),
                                  .pool = run->pool };
    PLI_TRY(pli_solution_make(rows, run->classes * (gaussian ? 2 : 1), b->form == PLI_BAYES_SPARSE, solution_out,
                              run->err));
    pli_bayes_estimate(&sums, solution_out);
    return PLAIT_OK;
}

static plait_status extract_keyed(pli_run *run, const void *of_class, pli_solution *solution_out) {
    int64_t      n = 0;
    uint64_t    *keys = NULL;
    void        *values = NULL;
    plait_status status = plait_table_dump(pli_bayes_fit_of(run)->sums, &n, &keys, &values);
    if (status >= 0) status = make_solution(run, n, values, of_class, solution_out);
    if (status >= 0) memcpy(solution_out->key, keys, (size_t)n * sizeof *keys);
    plait_comm_free(keys);
    plait_comm_free(values);
    return status;
}

static plait_status extract(pli_run *run, pli_solution *solution_out) {
    const pli_bayes_fit *b = pli_bayes_fit_of(run);
    const void          *values, *of_class;
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(plait_table_read(b->rows, 0, 1, &of_class));
    if (b->form == PLI_BAYES_SPARSE) return extract_keyed(run, of_class, solution_out);
    PLI_TRY(plait_table_read(b->sums, 0, b->tally.features, &values));
    return make_solution(run, b->tally.features, values, of_class, solution_out);
}

/* Nothing is penalised. */
static double penalty(const pli_run *run, const pli_solution *solution) {
    (void)run;
    (void)solution;
    return 0;
}

static void tell(const pli_run *run, const pli_solution *solution) {
    const bool gaussian = pli_bayes_fit_of(run)->tally.events == PLI_EVENTS_GAUSSIAN;
    pli_fit_tell(run, "sums", PLAIT_F64, solution->rows * run->classes * (gaussian ? 2 : 1), solution->weight);
    pli_fit_tell(run, "rows", PLAIT_F64, run->classes, solution->bias);
}

static pli_scoring scoring(const pli_run *run, const pli_solution *of) {
    return (pli_scoring){ &pli_bayes_scoring, &pli_bayes_fit_of(run)->scorer, of, 1 };
}

const pli_fit_ops pli_bayes_fit_ops = { .extract = extract, .penalty = penalty, .tell = tell, .scoring = scoring };

/* --- the learner -------------------------------------------------------------------------------------------------- */

static plait_status train(pli_run *run) { return pli_loop_run(run, &pli_bayes_steps); }

static plait_status finish(pli_run *run, plait_model *model) {
    PLI_TRY(pli_fitted_take(run, model));
    pli_bayes_open_model(model, pli_bayes_fit_of(run)->tally.events);
    return PLAIT_OK;
}

static void end(pli_run *run) {
    pli_free(pli_bayes_fit_of(run)->centre);
    pli_fit_end(run);
}

static void describe(const pli_run *run, pli_text *json) {
    pli_json_text(json, "events", pli_events_name[pli_bayes_fit_of(run)->tally.events]);
}

static const pli_learner_more more = { .check_judged = pli_fit_check_judged, .judge = pli_fit_judge,
                                       .describe = describe, .report = pli_fit_report, .model = &pli_bayes_model_ops };

const plait_learner pli_bayes = {
    .size = sizeof(plait_learner),
    .name = "bayes",
    .summary = "naive Bayes: multinomial, complement, Bernoulli or Gaussian, in one pass",
    .help = "naive Bayes: classification into two or more classes, in a single pass, by counting.\n"
            "  counts   multinomial: how often each feature occurs in a row, such as words in a text; complement: the "
            "same, estimated from all other classes, for classes of uneven size; bernoulli: whether each feature is "
            "above 0\n"
            "  numbers  gaussian: a mean and a variance for each feature and class\n"
            "  reports  loss, accuracy, and for two classes the area under the ROC curve; predict --proba\n"
            "A row counts by its own weight times the weight of its class (--class-weight). Sums of whole numbers are "
            "exact: the model has the same bits with any number of workers and any topology.\n",
    .labels = PLAIT_LABELS_CLASSES,
    .ways = PLAIT_LEARNER_ONE_EPOCH | PLAIT_LEARNER_STREAMS | PLAIT_LEARNER_VALIDATES,
    .needs = PLAIT_ONE_COPY,
    .options = options,
    .tables = tables,
    .state_bytes = sizeof(pli_bayes_fit),
    .model_bytes = sizeof(pli_bayes_model),
    .check = check,
    .prepare = prepare,
    .measured = measured,
    .train = train,
    .finish = finish,
    .end = end,
    .close = pli_fitted_close,
    .export_onnx = pli_bayes_export,
    .more = &more,
};
