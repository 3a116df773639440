/* Cases of plait/learner.h: each call is made inside a learner's functions, in a run of one worker. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <plait/learner.h>

#include "api/nulls.h"

/* Where a call is made, and its answer. */
typedef enum place { IN_BEGIN, IN_STEP, IN_FINISH, IN_PREDICT } place;
typedef struct probe {
    fixture *f;
    int      turn, answer;
    place    place;
    int (*call)(struct probe *p);
    plait_training    *run;
    const plait_batch *batch;
    plait_model       *model;
    const plait_rows  *rows;
} probe;

static probe *now; /* one case at a time */

static plait_status begin(plait_training *run) {
    now->run = run;
    if (now->place == IN_BEGIN) now->answer = now->call(now);
    return PLAIT_OK;
}
static plait_status step(plait_training *run, const plait_batch *batch, plait_step_sums *sums_out) {
    now->run = run;
    now->batch = batch;
    (void)sums_out;
    if (now->place == IN_STEP) now->answer = now->call(now);
    return PLAIT_OK;
}
static plait_status finish(plait_training *run, plait_model *model) {
    const int64_t shape[1] = { 2 };
    const double  values[2] = { 1, 2 };
    now->run = run;
    now->model = model;
    if (now->place == IN_FINISH) now->answer = now->call(now);
    return plait_model_put(model, "known", PLAIT_F64, 1, shape, values, plait_training_error(run));
}
static int64_t one_wide(const plait_model *model, plait_answer answer) {
    (void)model;
    return answer == PLAIT_ANSWER_PROBABILITIES ? 0 : 1;
}
static plait_status predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                            plait_error *err) {
    (void)model;
    (void)answer;
    (void)err;
    now->rows = rows;
    if (now->place == IN_PREDICT) now->answer = now->call(now);
    for (int64_t i = 0; i < plait_rows_count(rows); i++) out[i] = 1;
    return PLAIT_OK;
}

static const plait_learner_option options[] = {
    { .name = "number", .kind = PLAIT_OPTION_NUMBER, .preset = "2", .help = "a number" },
    { .name = "word", .kind = PLAIT_OPTION_NAME, .preset = "one", .help = "a word", .names = "one two" },
    { .name = NULL },
};
static const plait_learner learner = {
    .size = sizeof learner, .name = "probe", .summary = "calls", .options = options, .state_bytes = 8,
    .row_type = PLAIT_F64, .row_cols = 1, .model_bytes = 8, .begin = begin, .step = step, .finish = finish,
    .width = one_wide, .predict = predict
};

static plait_status train_in(plait_comm *comm, void *user) {
    probe           *p = user;
    plait_model     *model = NULL;
    double           scores[256];
    plait_train_opts opts;
    plait_train_opts_init(&opts);
    opts.memory = p->f->data;
    opts.model = "probe";
    opts.learners = &learner;
    opts.n_learners = 1;
    opts.epochs = 1;
    plait_status status = plait_train(comm, &opts, NULL, &model);
    p->model = model;
    if (status >= 0) status = plait_model_predict(model, p->f->data, 0, scores, &p->f->err);
    plait_model_destroy(&model);
    return status;
}

static int in(fixture *f, int arg, place at, int (*call)(probe *p)) {
    probe           p = { .f = f, .turn = arg, .place = at, .call = call, .answer = OTHER };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    now = &p;
    const plait_status status = plait_comm_run(&opts, train_in, &p, &f->err);
    return status < 0 && p.answer == OTHER ? status : p.answer;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

/* The k-th argument: NULL in its turn. */
#define P(k, value) (p->turn == (k) ? NULL : (value))
static int call_state(probe *p) { return NEUTRAL_IF(plait_training_state(P(0, p->run)) == NULL); }
static int call_comm(probe *p) { return NEUTRAL_IF(plait_training_comm(P(0, p->run)) == NULL); }
static int call_job(probe *p) { return NEUTRAL_IF(plait_training_job(P(0, p->run)) == NULL); }
static int call_error(probe *p) { return NEUTRAL_IF(plait_training_error(P(0, p->run)) == NULL); }
static int call_fail(probe *p) {
    const plait_status status = plait_training_fail(P(0, p->run), PLAIT_ESHAPE, P(2, "text"));
    if (p->turn >= 0) p->f->err = *plait_training_error(p->run);
    return status == PLAIT_ESHAPE ? PLAIT_OK : status;
}
static int call_number(probe *p) { return NEUTRAL_IF(isnan(plait_training_number(P(0, p->run), P(1, "number")))); }
static int call_count(probe *p) { return NEUTRAL_IF(plait_training_count(P(0, p->run), P(1, "number")) == 0); }
static int call_name(probe *p) { return NEUTRAL_IF(plait_training_name(P(0, p->run), P(1, "word")) == NULL); }
static int call_rows(probe *p) { return NEUTRAL_IF(plait_training_rows(P(0, p->run)) == 0); }
static int call_features(probe *p) { return NEUTRAL_IF(plait_training_features(P(0, p->run)) == 0); }
static int call_classes(probe *p) { return NEUTRAL_IF(plait_training_classes(P(0, p->run)) == 0 && p->turn >= 0); }
static int call_seed(probe *p) { return NEUTRAL_IF(plait_training_seed(P(0, p->run)) == 0 && p->turn >= 0); }
static int call_class(probe *p) { return NEUTRAL_IF(plait_training_class(P(0, p->run), 1) == -1 && p->turn >= 0); }
static int call_epochs(probe *p) { return NEUTRAL_IF(plait_training_epochs(P(0, p->run)) == 0); }
static int call_clocks(probe *p) { return NEUTRAL_IF(plait_training_clocks(P(0, p->run)) == 0); }
static int call_table(probe *p) {
    plait_table_opts opts;
    plait_table     *table = NULL;
    plait_table_opts_init(&opts);
    opts.name = "probe";
    opts.rows = 2;
    const plait_status status = plait_training_table(P(0, p->run), P(1, &opts), P(2, &table));
    p->f->err = *plait_training_error(p->run);
    return status;
}
static int call_batch_rows(probe *p) { return NEUTRAL_IF(plait_batch_rows(P(0, p->batch)) == 0); }
static int call_batch_row(probe *p) {
    plait_row row;
    return plait_batch_row(P(0, p->batch), 0, P(2, &row));
}
static int call_row_values(probe *p) {
    return NEUTRAL_IF(plait_training_row_values(P(0, p->run), P(1, p->batch), 0) == NULL);
}

/* --- a model ------------------------------------------------------------------------------------------------------ */

static int call_put(probe *p) {
    const int64_t shape[1] = { 2 };
    const double  values[2] = { 1, 2 };
    return plait_model_put(P(0, p->model), P(1, "v"), PLAIT_F64, 1, P(4, shape), P(5, values), P(6, &p->f->err));
}
static int call_value(probe *p) {
    int64_t shape[1];
    return NEUTRAL_IF(plait_model_value(P(0, p->model), P(1, "known"), PLAIT_F64, 1, P(4, shape)) == NULL);
}
static int call_model_number(probe *p) { return NEUTRAL_IF(isnan(plait_model_number(P(0, p->model), P(1, "number")))); }
static int call_model_state(probe *p) { return NEUTRAL_IF(plait_model_state(P(0, p->model)) == NULL); }
static int call_model_options(probe *p) {
    plait_option_value out[PLAIT_OPTION_VALUES];
    return NEUTRAL_IF(plait_model_options(P(0, p->model), P(1, out)) == 0);
}
static int call_array(probe *p) {
    plait_model_array array;
    return plait_model_array_at(P(0, p->model), 0, P(2, &array));
}
static int call_width(probe *p) { return NEUTRAL_IF(plait_model_width(P(0, p->model), PLAIT_ANSWER_LABEL) == 0); }
static int call_transform(probe *p) {
    double out[256];
    p->place = IN_FINISH; /* finish predicts: predict must not make the call again */
    return plait_model_transform(P(0, p->model), P(1, p->f->data), P(2, out), P(3, &p->f->err));
}
static int call_rows_count(probe *p) { return NEUTRAL_IF(plait_rows_count(P(0, p->rows)) == 0 && p->turn >= 0); }
static int call_rows_row(probe *p) {
    plait_row row;
    for (int64_t i = 0; p->turn < 0 && i < plait_rows_count(p->rows); i++)
        if (plait_rows_row(p->rows, i, &row) < 0) return PLAIT_EINVAL;
    return p->turn < 0 ? PLAIT_OK : plait_rows_row(P(0, p->rows), 0, P(2, &row));
}
static int call_load_with(probe *p) {
    plait_model *model = NULL;
    plait_status status =
        plait_model_load_with(P(0, p->f->model_path), P(1, &learner), 1, P(3, &model), P(4, &p->f->err));
    plait_model_destroy(&model);
    return status;
}
#undef P

#define CASE(name, at) \
    static int name(fixture *f, int arg) { return in(f, arg, at, call_##name); }
CASE(state, IN_BEGIN)
CASE(comm, IN_BEGIN)
CASE(job, IN_BEGIN)
CASE(error, IN_BEGIN)
CASE(fail, IN_BEGIN)
CASE(number, IN_BEGIN)
CASE(count, IN_BEGIN)
CASE(name, IN_BEGIN)
CASE(rows, IN_BEGIN)
CASE(features, IN_BEGIN)
CASE(classes, IN_BEGIN)
CASE(seed, IN_BEGIN)
CASE(class, IN_BEGIN)
CASE(epochs, IN_BEGIN)
CASE(clocks, IN_BEGIN)
CASE(table, IN_BEGIN)
CASE(batch_rows, IN_STEP)
CASE(batch_row, IN_STEP)
CASE(row_values, IN_STEP)
CASE(put, IN_FINISH)
CASE(value, IN_PREDICT)
CASE(model_number, IN_PREDICT)
CASE(model_state, IN_PREDICT)
CASE(model_options, IN_PREDICT)
CASE(array, IN_PREDICT)
CASE(width, IN_PREDICT)
CASE(transform, IN_PREDICT)
CASE(rows_count, IN_PREDICT)
CASE(rows_row, IN_PREDICT)
CASE(load_with, IN_BEGIN)
#undef CASE

const null_case learner_cases[] = {
    { "training_state", state, NULL },
    { "training_comm", comm, NULL },
    { "training_job", job, NULL },
    { "training_error", error, NULL },
    { "training_fail", fail, NULL },
    { "training_number", number, NULL },
    { "training_count", count, NULL },
    { "training_name", name, NULL },
    { "training_rows", rows, NULL },
    { "training_features", features, NULL },
    { "training_classes", classes, NULL },
    { "training_seed", seed, NULL },
    { "training_class", class, NULL },
    { "training_epochs", epochs, NULL },
    { "training_clocks", clocks, NULL },
    { "training_table", table, NULL },
    { "batch_rows", batch_rows, NULL },
    { "batch_row", batch_row, NULL },
    { "training_row_values", row_values, NULL },
    { "model_put", put, NULL },
    { "model_value", value, "shape_out" },
    { "model_number", model_number, NULL },
    { "model_state", model_state, NULL },
    { "model_options", model_options, NULL },
    { "model_array_at", array, NULL },
    { "model_width", width, NULL },
    { "model_transform", transform, NULL },
    { "rows_count", rows_count, NULL },
    { "rows_row", rows_row, NULL },
    { "model_load_with", load_with, NULL },
    { NULL, NULL, NULL },
};
