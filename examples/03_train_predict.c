/* Train from memory, predict, save, load: logistic regression on points of a plane, by whatever ranks there are.
 * Usage: 03_train_predict [workers]. Under mpirun the processes are the workers. */
#include <math.h>
#include <plait/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 4000, FEATURES = 2 };

/* Points of [-1, 1)^2, labelled by the side of the line 3a - 2b + 0.5 = 0 on which they lie; every process makes
 * the same. */
static plait_status make_points(plait_data **data_out, plait_error *error) {
    static float  x[ROWS * FEATURES];
    static double label[ROWS];
    unsigned      state = 1;
    for (int i = 0; i < ROWS * FEATURES; i++) {
        state = state * 1103515245U + 12345U;
        x[i] = (float)(state >> 8) / (float)(1 << 23) - 1.0F;
    }
    for (int i = 0; i < ROWS; i++) label[i] = 3 * x[2 * i] - 2 * x[2 * i + 1] + 0.5F > 0 ? 1 : 0;
    return plait_data_from_dense(ROWS, FEATURES, x, label, NULL, data_out, error);
}

/* A file goes out and comes back; the model in it knows labels and features by itself. */
static plait_status predict(const plait_model *trained, const plait_data *data, plait_error *error) {
    static double proba[ROWS * 2];
    plait_model  *model = NULL;
    plait_report  report;
    char          path[] = "/tmp/plait-points-XXXXXX";
    int           file = mkstemp(path);
    plait_status  status = plait_model_save(trained, path, error);
    if (status == PLAIT_OK) status = plait_model_load(path, &model, error);
    if (status == PLAIT_OK) status = plait_model_predict(model, data, 1, proba, error);
    if (status == PLAIT_OK) status = plait_model_eval(model, data, &report, error);
    if (status == PLAIT_OK)
        printf("first point: %s with probability %.3f; accuracy %.3f\n", plait_model_label(model, proba[1] > 0.5),
               fmax(proba[0], proba[1]), report.test_accuracy);
    plait_model_destroy(&model);
    close(file);
    remove(path);
    return status == PLAIT_OK && report.test_accuracy < 0.99 ? PLAIT_EDIVERGED : status;
}

/* Runs on every rank. */
static plait_status train(plait_comm *comm, void *user) {
    plait_train_opts opts;
    plait_report     report;
    plait_model     *model;
    plait_error      error;
    plait_train_opts_init(&opts);
    opts.model = "logistic";
    opts.memory = user;
    plait_status status = plait_train(comm, &opts, &report, &model);
    if (status == PLAIT_OK && model != NULL && plait_comm_rank(comm) == 0) {
        printf("%lld workers, loss %.3f, weights %.2f %.2f, intercept %.2f\n", (long long)report.workers,
               report.train_loss, plait_model_weight(model, 0, 0), plait_model_weight(model, 1, 0),
               plait_model_intercept(model, 0));
        status = predict(model, user, &error);
    }
    plait_model_destroy(&model);
    return status;
}

int main(int argc, char **argv) {
    plait_error     error = { PLAIT_OK, -1, "" };
    plait_data     *data = NULL;
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    if (argc > 1) opts.workers = atoi(argv[1]);
    plait_status status = make_points(&data, &error);
    if (status == PLAIT_OK) status = plait_comm_run(&opts, train, data, &error);
    plait_data_destroy(&data);
    if (status < 0) fprintf(stderr, "%s: %s\n", plait_status_text(status), error.text);
    return status < 0;
}
