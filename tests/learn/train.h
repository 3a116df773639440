/* tests/learn/train.h - what tests of training share: a run on threads that hands over rank 0's model, and test
 * data. */
#ifndef PLAIT_TESTS_LEARN_TRAIN_H
#define PLAIT_TESTS_LEARN_TRAIN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/model.h>

#include "base/base.h"

/* cmocka would compare as float. */
#define assert_near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

typedef struct training {
    plait_train_opts opts;
    plait_report     report;
    plait_model     *model; /* of rank 0 */
    const char      *collective; /* NULL: auto */
    plait_error      error;
} training;

static inline plait_status train_body(plait_comm *comm, void *user) {
    training    *t = user;
    plait_report report;
    plait_model *model = NULL;
    plait_status status = plait_train(comm, &t->opts, &report, &model);
    if (status == PLAIT_OK && model != NULL && plait_comm_rank(comm) == 0) {
        t->report = report;
        t->model = model;
    } else {
        plait_model_destroy(&model);
    }
    return status;
}

static inline plait_status train(training *t, int32_t workers, int32_t threads) {
    plait_comm_opts c;
    plait_comm_opts_init(&c);
    c.transport = "threads";
    c.workers = workers;
    c.threads = threads;
    c.collective = t->collective;
    c.timeout_ns = UINT64_C(60000000000);
    t->model = NULL;
    t->error = (plait_error){ PLAIT_OK, -1, "" };
    return plait_comm_run(&c, train_body, t, &t->error);
}

static inline void must_train(training *t, int32_t workers) {
    if (train(t, workers, 1) != PLAIT_OK) fail_msg("%s", t->error.text);
}

/* The training of a perceptron of these layers; its data are its test set as well. */
static inline training net_of(const plait_data *data, const char *layers) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = t.opts.test_memory = data;
    t.opts.model = "mlp";
    t.opts.layers = layers;
    t.opts.epochs = 4;
    t.opts.batch = 50;
    return t;
}

/* || a - b || / || b ||, intercepts included. */
static inline double distance(const plait_model *a, const plait_model *b) {
    double off = 0, size = 0;
    assert_int_equal(plait_model_rows(a), plait_model_rows(b));
    for (int64_t k = 0; k < plait_model_columns(a); k++) {
        for (int64_t j = 0; j < plait_model_rows(a); j++) {
            double x = plait_model_weight(a, j, k), y = plait_model_weight(b, j, k);
            off += (x - y) * (x - y);
            size += y * y;
        }
        if (isnan(plait_model_intercept(b, k))) continue; /* a net has its intercepts among the rows */
        off += pow(plait_model_intercept(a, k) - plait_model_intercept(b, k), 2);
        size += pow(plait_model_intercept(b, k), 2);
    }
    return sqrt(off / size);
}

static inline const char *source_file(const char *name, char path[1024]) {
    const char *root = getenv("PLAIT_SOURCE_DIR");
    snprintf(path, 1024, "%s/%s", root != NULL ? root : ".", name);
    return path;
}

/* Points with a few real features. Their labels are `classes` classes that lines separate, but for noise; or, with 0
 * classes, numbers. */
static inline plait_data *points(int64_t rows, int64_t features, int64_t classes, uint64_t seed) {
    float      *x = pli_array((size_t)(rows * features), sizeof *x);
    double     *label = pli_array((size_t)rows, sizeof *label);
    plait_data *data = NULL;
    for (int64_t i = 0; i < rows; i++) {
        pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, 0, (uint64_t)i);
        double     best = -1e9, number = 0;
        for (int64_t j = 0; j < features; j++)
            x[i * features + j] = (float)(pli_random_normal(&r) * (double)(1 + j) + 3);
        for (int64_t k = 0; k < (classes > 0 ? classes : 1); k++) {
            double score = 0.7 * pli_random_normal(&r);
            for (int64_t j = 0; j < features; j++)
                score += sin((double)(j * 5 + k * 3 + 1)) * ((double)x[i * features + j] - 3) / (double)(1 + j);
            if (score > best) label[i] = (double)k, best = score;
            number = score;
        }
        if (classes == 0) label[i] = number + 10;
    }
    assert_int_equal(plait_data_from_dense(rows, features, x, label, NULL, &data, NULL), PLAIT_OK);
    pli_free(x);
    pli_free(label);
    return data;
}

#endif
