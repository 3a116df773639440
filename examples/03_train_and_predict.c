/* Trains and predicts from memory: the model separates points on a ring from points inside it, by their squares. */
#include <math.h>
#include <plait/model.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 2000, FEATURES = 4 };

/* Runs on every worker: each gets the whole model, and evaluates it. */
static plait_status train(plait_comm *comm, void *user) {
    const plait_data *data = user;
    plait_train_opts  opts;
    plait_model      *model = NULL;
    plait_report      report;
    double            score[ROWS];
    int               right = 0;
    plait_train_opts_init(&opts);
    opts.model = "logistic";
    opts.memory = data;
    opts.topology = "ps";
    opts.consistency = "ssp:1";
    plait_status status = plait_train(comm, &opts, &report, &model);
    if (status >= 0) status = plait_model_predict(model, data, 0, score, NULL);
    for (int i = 0; i < ROWS && status >= 0; i++) {
        right += strcmp(plait_model_label(model, (int64_t)score[i]), i % 2 == 1 ? "1" : "0") == 0;
    }
    plait_model_destroy(&model);
    if (status >= 0 && plait_comm_rank(comm) == 0) {
        printf("%lld rows, %lld epochs: loss %.4f, %d right\n", (long long)report.rows, (long long)report.epochs,
               report.train_loss, right);
    }
    return status < 0 || right > ROWS * 99 / 100 ? status : PLAIT_EFORMAT;
}

/* Makes the data: odd rows lie on the ring. */
static void make(float x[ROWS][FEATURES], double label[ROWS]) {
    for (int i = 0; i < ROWS; i++) {
        double angle = 0.7 * i, radius = i % 2 == 0 ? 0.5 + 0.3 * sin(i) : 1.5 + 0.3 * cos(i);
        x[i][0] = (float)(radius * cos(angle));
        x[i][1] = (float)(radius * sin(angle));
        x[i][2] = x[i][0] * x[i][0];
        x[i][3] = x[i][1] * x[i][1];
        label[i] = i % 2;
    }
}

int main(void) {
    static float    x[ROWS][FEATURES];
    static double   label[ROWS];
    plait_data     *data = NULL;
    plait_comm_opts comm;
    plait_error     error = { 0 };
    make(x, label);
    plait_comm_opts_init(&comm);
    comm.workers = 2;
    plait_status status = plait_data_from_dense(ROWS, FEATURES, &x[0][0], label, NULL, &data, &error);
    if (status >= 0) status = plait_comm_run(&comm, train, data, &error);
    if (status < 0) fprintf(stderr, "%s\n", error.text);
    plait_data_destroy(&data);
    return status >= 0 ? 0 : 1;
}
