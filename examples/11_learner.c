/* Your own learner: `centroids` adds up the rows of each class, and predicts the class with the nearest mean (Rocchio).
 * The run does all the rest. docs/learners.md explains it slot by slot.
 *     11_learner --data D [--topology T] [--workers N] [--out FILE] ...      fits
 *     11_learner --data D --model-file FILE                                  predicts: a label a line */
#include <math.h>
#include <plait/learner.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fills x with all features of a row [cols - 1], followed by a 1. */
static void spread(const plait_row *row, int64_t cols, double *x) {
    memset(x, 0, (size_t)cols * sizeof *x);
    for (int64_t e = 0; e < row->n; e++)
        x[row->column != NULL ? row->column[e] : row->key[e]] = row->value != NULL ? (double)row->value[e] : 1;
    x[cols - 1] = 1;
}

/* The state of a run is one table, [classes, features + 1]: sums of rows, and numbers of rows. */
static plait_status begin(plait_training *run) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "sums", opts.type = PLAIT_F64;
    opts.rows = plait_training_classes(run), opts.cols = plait_training_features(run) + 1;
    return plait_training_table(run, &opts, plait_training_state(run));
}

/* A worker's clock: it adds up its rows of the batch, and adds these sums to the table. */
static plait_status step(plait_training *run, const plait_batch *batch, plait_step_sums *told) {
    plait_table  *table = *(plait_table **)plait_training_state(run);
    const int64_t classes = plait_table_rows(table), cols = plait_table_cols(table);
    double       *sum = calloc((size_t)((classes + 1) * cols), sizeof *sum), *x = sum + classes * cols;
    if (sum == NULL) return plait_training_fail(run, PLAIT_ENOMEM, "no memory for sums");
    for (int64_t i = 0; i < plait_batch_rows(batch); i++) {
        plait_row row;
        (void)plait_batch_row(batch, i, &row);
        spread(&row, cols, x);
        const int64_t k = plait_training_class(run, row.label);
        for (int64_t j = 0; k >= 0 && j < cols; j++) sum[k * cols + j] += row.weight * x[j];
        told->rows++; /* there is no loss yet */
    }
    const plait_status status = plait_table_inc_range(table, 0, classes, sum, 1);
    free(sum);
    return status;
}

/* All clocks have ended, so all workers read the same sums. */
static plait_status finish(plait_training *run, plait_model *model) {
    plait_table  *table = *(plait_table **)plait_training_state(run);
    const int64_t shape[2] = { plait_table_rows(table), plait_table_cols(table) };
    const void   *sums;
    plait_status  status = plait_table_read(table, 0, shape[0], &sums);
    return status < 0 ? status : plait_model_put(model, "sums", PLAIT_F64, 2, shape, sums, plait_training_error(run));
}

static int64_t width(const plait_model *model, plait_answer answer) {
    return answer == PLAIT_ANSWER_LABEL ? 1 : answer == PLAIT_ANSWER_TRANSFORM ? plait_model_classes(model) : 0;
}

/* Predicts the class with the nearest mean; for transform, a row's distances to all means. */
static plait_status predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                            plait_error *err) {
    int64_t       shape[2] = { 0 };
    const double *sums = plait_model_value(model, "sums", PLAIT_F64, 2, shape);
    double       *x = malloc((size_t)shape[1] * sizeof *x + 1);
    if (sums == NULL || x == NULL) return free(x), err->code = sums == NULL ? PLAIT_EFORMAT : PLAIT_ENOMEM;
    for (int64_t i = 0; i < plait_rows_count(rows); i++) {
        plait_row row;
        double    least = INFINITY;
        (void)plait_rows_row(rows, i, &row);
        spread(&row, shape[1], x);
        for (int64_t k = 0; k < shape[0]; k++) {
            const double *sum = sums + k * shape[1];
            double        far = 0;
            for (int64_t j = 0; j < shape[1]; j++) far += pow(x[j] - sum[j] / sum[shape[1] - 1], 2);
            if (answer == PLAIT_ANSWER_TRANSFORM) out[i * shape[0] + k] = sqrt(far);
            else if (far < least) least = far, out[i] = (double)k;
        }
    }
    free(x);
    return PLAIT_OK;
}

static const plait_learner_table tables[] = { { "sums", "sums of each class's rows", 0 }, { .name = NULL } };
static const plait_learner       centroids = {
          .size = sizeof centroids, .name = "centroids", .summary = "the class whose mean is the nearest",
          .labels = PLAIT_LABELS_CLASSES, .ways = PLAIT_LEARNER_ONE_EPOCH | PLAIT_LEARNER_STREAMS, .tables = tables,
          .state_bytes = sizeof(plait_table *), .begin = begin, .step = step, .finish = finish, .width = width,
          .predict = predict };

/* --- the program: flags as those of plait train --------------------------------------------------------------- */

static const char known[] = "--data --topology --consistency --transport --cluster --workers --replicas --checkpoint "
                            "--every --resume --out --model-file";
static char **words;

static const char *flag(const char *name) {
    for (char **word = words + 1; word[0] != NULL && word[1] != NULL; word += 2)
        if (strcmp(word[0], name) == 0) return word[1];
    return NULL;
}
static int number(const char *name) { return flag(name) != NULL ? atoi(flag(name)) : 0; }

static void trained(void *user, const plait_report *report, const plait_model *model) {
    plait_error err;
    (void)user;
    printf("%s %s, %lld clocks\n", report->model, report->model_hash, (long long)report->clocks);
    if (flag("--out") && plait_model_save(model, flag("--out"), &err) < 0) fprintf(stderr, "%s\n", err.text);
}

static plait_status fit(plait_comm *comm, void *data) {
    plait_model     *model = NULL;
    plait_report     report;
    plait_train_opts o;
    plait_train_opts_init(&o);
    o.learners = &centroids, o.n_learners = 1, o.model = "centroids", o.data = data, o.trained = trained;
    o.topology = flag("--topology"), o.consistency = flag("--consistency"), o.replicas = number("--replicas");
    o.checkpoint = flag("--checkpoint"), o.checkpoint_clocks = number("--every"), o.resume = flag("--resume");
    const plait_status status = plait_train(comm, &o, &report, &model);
    plait_model_destroy(&model);
    return status;
}

static plait_status say_labels(const plait_data_opts *from, plait_error *err) {
    plait_model *model = NULL;
    plait_data  *data = NULL;
    plait_status status = plait_model_load_with(flag("--model-file"), &centroids, 1, &model, err);
    if (status >= 0) status = plait_model_read(model, from, &data, err);
    double *best = calloc((size_t)plait_data_rows(data) + 1, sizeof *best);
    if (status >= 0 && best != NULL) status = plait_model_predict(model, data, 0, best, err);
    for (int64_t i = 0; status >= 0 && i < plait_data_rows(data); i++) puts(plait_model_label(model, (int64_t)best[i]));
    free(best), plait_data_destroy(&data), plait_model_destroy(&model);
    return status;
}

int main(int argc, char **argv) {
    const char     *path = ((void)(words = argv), flag("--data"));
    plait_data_opts data;
    plait_comm_opts comm;
    plait_error     err = { 0 };
    for (int i = 1; i < argc; i += 2)
        if (strstr(known, argv[i]) == NULL) return fprintf(stderr, "unknown flag %s; known: %s\n", argv[i], known), 2;
    if (path == NULL) return fprintf(stderr, "usage: 11_learner --data FILE [FLAG VALUE]...; flags: %s\n", known), 2;
    plait_data_opts_init(&data), plait_comm_opts_init(&comm), data.paths = &path, data.n_paths = 1;
    comm.transport = flag("--transport"), comm.cluster = flag("--cluster"), comm.workers = number("--workers");
    plait_status status = flag("--model-file") ? say_labels(&data, &err) : plait_comm_run(&comm, fit, &data, &err);
    if (status < 0) fprintf(stderr, "%s\n", err.text);
    return status < 0;
}
