/* Train and predict from memory: a ring of points around the origin, and those within, told apart by their squares. */
#include <math.h>
#include <plait/model.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 2000, FEATURES = 4 };

typedef struct task {
    plait_data  *data;
    plait_model *model; /* of worker 0 */
} task;

static plait_status train(plait_comm *comm, void *user) {
    task            *t = user;
    plait_train_opts opts;
    plait_model     *model = NULL;
    plait_report     report;
    plait_train_opts_init(&opts);
    opts.model = "logistic";
    opts.memory = t->data;
    opts.topology = "ps";
    opts.consistency = "ssp:1";
    plait_status status = plait_train(comm, &opts, &report, &model);
    if (status >= 0 && plait_comm_rank(comm) == 0) {
        printf("%lld rows, %lld epochs: loss %.4f\n", (long long)report.rows, (long long)report.epochs,
               report.train_loss);
        t->model = model;
        return status;
    }
    plait_model_destroy(&model);
    return status;
}

/* 1: wrong; both rows and labels are functions of the row's number. */
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
    static double   label[ROWS], score[ROWS];
    task            t = { 0 };
    plait_comm_opts comm;
    plait_error     error = { 0 };
    int             right = 0;
    make(x, label);
    plait_comm_opts_init(&comm);
    comm.transport = "threads";
    comm.workers = 2;
    plait_status status = plait_data_from_dense(ROWS, FEATURES, &x[0][0], label, NULL, &t.data, &error);
    if (status >= 0) status = plait_comm_run(&comm, train, &t, &error);
    if (status >= 0) status = plait_model_predict(t.model, t.data, 0, score, &error);
    for (int i = 0; i < ROWS && status >= 0; i++) {
        right += strcmp(plait_model_label(t.model, (int64_t)score[i]), label[i] == 1 ? "1" : "0") == 0;
    }
    if (status < 0)
        fprintf(stderr, "%s\n", error.text);
    else
        printf("%d of %d right\n", right, ROWS);
    plait_model_destroy(&t.model);
    plait_data_destroy(&t.data);
    return status >= 0 && right > ROWS * 99 / 100 ? 0 : 1;
}
