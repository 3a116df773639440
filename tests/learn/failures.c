/* Tests that, whichever allocation fails, training, saving, loading and predicting end with an error and leak
 * nothing. */
#include <unistd.h>

#include "learn/train.h"

static const char path[] = "learn_failures.safetensors";

static char told[512]; /* the text of the last failure */

typedef struct job {
    const plait_data *data;
    plait_model      *model; /* for save, load and predict */
    const char       *optimizer, *consistency, *topology, *net;
    int32_t           workers;
} job;

static plait_status do_train(job *j) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = j->data;
    t.opts.test_memory = j->data;
    t.opts.optimizer = j->optimizer;
    if (j->net != NULL) t.opts.model = j->net;
    t.opts.consistency = j->consistency;
    t.opts.topology = j->topology;
    t.opts.epochs = 2;
    t.opts.batch = strcmp(j->consistency, "async") == 0 ? 0 : 50;
    t.opts.validation = strcmp(j->optimizer, "lbfgs") == 0 ? NULL : "0.2";
    plait_status status = train(&t, j->workers, 1);
    if (status < 0) snprintf(told, sizeof told, "%s", t.error.text);
    plait_model_destroy(&t.model);
    return status;
}

static plait_status do_save(job *j) { return plait_model_save(j->model, path, NULL); }

static plait_status do_load(job *j) {
    plait_model *model = NULL;
    plait_error  error;
    (void)j;
    plait_status status = plait_model_load(path, &model, &error);
    assert_true((status == PLAIT_OK) == (model != NULL));
    plait_model_destroy(&model);
    return status;
}

static plait_status do_predict(job *j) {
    static double scores[400 * 3];
    plait_report  report;
    plait_status  status = plait_model_predict(j->model, j->data, 1, scores, NULL);
    return status == PLAIT_OK ? plait_model_eval(j->model, j->data, &report, NULL) : status;
}

static void fail_each(const char *what, plait_status (*run)(job *j), job *j) {
    int64_t k = 0;
    for (;; k++) {
        int64_t live = pli_alloc_live();
        pli_alloc_fail_after(k);
        plait_status status = run(j);
        pli_alloc_fail_after(-1);
        if (pli_alloc_live() != live)
            fail_msg("%s: allocation %lld failed and %lld are left", what, (long long)k,
                     (long long)(pli_alloc_live() - live));
        if (status == PLAIT_OK) break;
        if (status > PLAIT_OK) fail_msg("%s: allocation %lld failed: %s", what, (long long)k, told);
    }
    printf("%s: %lld allocations\n", what, (long long)k);
    assert_true(k > 0);
}

static void test_train(void **state) {
    (void)state;
    plait_data *data = points(400, 3, 3, 2);
    job         jobs[] = {
        { .optimizer = "adagrad", .consistency = "bsp", .topology = "local", .workers = 1 },
        { .optimizer = "adagrad", .consistency = "async", .topology = "local", .workers = 1 },
        { .optimizer = "adam", .consistency = "ssp:1", .topology = "ps", .workers = 1 },
        { .optimizer = "sgd", .consistency = "bsp", .topology = "allreduce", .workers = 1 },
        { .optimizer = "lbfgs", .consistency = "bsp", .topology = "local", .workers = 1 },
        { .optimizer = "adagrad", .consistency = "local-sgd:2", .topology = "ps", .workers = 1 },
        { .optimizer = "sgd", .consistency = "local-sgd:2", .topology = "allreduce", .workers = 1 },
        { .optimizer = "adagrad", .consistency = "bsp", .topology = "ps", .workers = 2 },
        { .optimizer = "adam", .consistency = "bsp", .topology = "local", .workers = 1, .net = "mlp" },
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char what[64];
        jobs[i].data = data;
        snprintf(what, sizeof what, "%s %s %s x %d", jobs[i].optimizer, jobs[i].topology, jobs[i].consistency,
                 (int)jobs[i].workers);
        fail_each(what, do_train, &jobs[i]);
    }
    plait_data_destroy(&data);
}

static void test_model(void **state) {
    (void)state;
    plait_data *data = points(400, 3, 3, 2);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.epochs = 2;
    assert_int_equal(train(&t, 1, 1), PLAIT_OK);
    job j = { .data = data, .model = t.model };
    fail_each("save", do_save, &j);
    fail_each("load", do_load, &j);
    fail_each("predict", do_predict, &j);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_model), cmocka_unit_test(test_train) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
