/* plait_fit: the model of plait_train, on the caller's thread, with its callbacks there; stopped, and refused. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <plait/fit.h>

enum { ROWS = 600, FEATURES = 5 };

static plait_data *data;

static int setup(void **state) {
    static float  x[ROWS * FEATURES];
    static double label[ROWS];
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < FEATURES; j++) x[i * FEATURES + j] = (float)((i * 7 + j * 13) % 11) / 10;
        label[i] = x[i * FEATURES] + x[i * FEATURES + 1] > 1;
    }
    return plait_data_from_dense(ROWS, FEATURES, x, label, NULL, &data, NULL) < 0;
}

static int teardown(void **state) {
    (void)state;
    plait_data_destroy(&data);
    return 0;
}

typedef struct seen {
    pthread_t self;
    int       calls, elsewhere, stop, stop_at;
} seen;

static void note(seen *s) {
    s->elsewhere += !pthread_equal(pthread_self(), s->self);
    if (++s->calls == s->stop_at) s->stop = 1;
}
static void loaded(void *user) { note(user); }
static void progress(void *user, const plait_progress *p) { (void)p, note(user); }
static void weights(void *user, const plait_weights *w) { (void)w, note(user); }

static plait_train_opts options(seen *s) {
    plait_train_opts opts;
    plait_train_opts_init(&opts);
    opts.memory = data;
    opts.optimizer = "adagrad";
    opts.epochs = 20;
    opts.batch = 32;
    opts.user = s;
    opts.stop = &s->stop;
    opts.loaded = loaded;
    opts.progress = progress;
    opts.weights = weights;
    *s = (seen){ .self = pthread_self() };
    return opts;
}

static plait_status train_in(plait_comm *comm, void *user) {
    plait_model *model = NULL;
    plait_report report;
    seen         s;
    plait_train_opts opts = options(&s);
    plait_status     status = plait_train(comm, &opts, &report, &model);
    if (status >= 0) plait_model_hash(model, user);
    plait_model_destroy(&model);
    return status;
}

static void test_the_same_model_on_the_callers_thread(void **state) {
    (void)state;
    seen             s;
    plait_report     report;
    plait_error      err;
    plait_model     *model = NULL;
    plait_train_opts opts = options(&s);
    char             hash[65] = "", trained[65] = "";
    if (plait_fit(NULL, &opts, &report, &model, &err) < 0) fail_msg("%s", err.text);
    plait_model_hash(model, hash);
    plait_model_destroy(&model);
    assert_string_equal(report.model_hash, hash);
    assert_int_equal(report.epochs, 20);
    assert_int_equal(report.interrupted, 0);
    assert_true(s.calls > 20);
    assert_int_equal(s.elsewhere, 0);
    assert_int_equal(plait_comm_run(NULL, train_in, trained, NULL), PLAIT_OK);
    assert_string_equal(trained, hash);
}

static void test_several_workers(void **state) {
    (void)state;
    seen             s;
    plait_report     report;
    plait_model     *model = NULL;
    plait_comm_opts  comm_opts;
    plait_train_opts opts = options(&s);
    plait_comm_opts_init(&comm_opts);
    comm_opts.transport = "threads";
    comm_opts.workers = 3;
    opts.loaded = NULL; /* it comes on each rank's thread at once */
    assert_int_equal(plait_fit(&comm_opts, &opts, &report, &model, NULL), PLAIT_OK);
    assert_int_equal(report.workers, 3);
    assert_int_equal(plait_model_features(model), FEATURES);
    plait_model_destroy(&model);
}

static void test_a_stop(void **state) {
    (void)state;
    seen             s;
    plait_report     report;
    plait_error      err = { 0 };
    plait_model     *model = NULL;
    plait_train_opts opts = options(&s);
    s.stop_at = 5;
    assert_int_equal(plait_fit(NULL, &opts, &report, &model, &err), PLAIT_EINTERRUPTED);
    assert_non_null(model);
    assert_non_null(strstr(err.text, "stopped after clock"));
    assert_int_equal(report.interrupted, 1);
    assert_true(report.clocks < 20 * (ROWS / 32));
    assert_int_equal(plait_model_features(model), FEATURES);
    plait_model_destroy(&model);
}

static void test_failures_have_a_text(void **state) {
    (void)state;
    seen             s;
    plait_error      err = { 0 };
    plait_model     *model = NULL;
    plait_train_opts opts = options(&s);
    opts.model = "logistick";
    assert_int_equal(plait_fit(NULL, &opts, NULL, &model, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "logistic"));
    assert_null(model);
    opts = options(&s);
    opts.memory = NULL;
    assert_int_equal(plait_fit(NULL, &opts, NULL, &model, &err), PLAIT_EINVAL);
    assert_true(err.text[0] != '\0');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_model_on_the_callers_thread),
        cmocka_unit_test(test_several_workers),
        cmocka_unit_test(test_a_stop),
        cmocka_unit_test(test_failures_have_a_text),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
