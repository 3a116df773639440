/* The things that cases call with: one worker in a job, and one object of each kind. */
#include <stdio.h>
#include <string.h>

#include "api/nulls.h"

plait_graph *fresh_graph(fixture *f) {
    plait_graph_destroy(&f->fresh);
    plait_graph_create(NULL, 0, &f->fresh, NULL);
    return f->fresh;
}

int built(fixture *f, plait_value value) {
    if (value != PLAIT_NONE) return OTHER;
    const plait_status status = plait_graph_check(f->fresh, &f->err);
    return status < 0 ? status : NEUTRAL;
}

/* --- setting up ------------------------------------------------------------------------------------------------- */

static plait_status sum(void *user, const plait_slice *slices, int32_t n_slices, const void *args, size_t args_bytes,
                        void *answer, size_t answer_bytes) {
    const float *values = slices[0].values;
    double       total = 0;
    (void)user, (void)n_slices, (void)args, (void)args_bytes, (void)answer_bytes;
    for (int64_t i = 0; i < slices[0].rows * slices[0].cols; i++) total += (double)values[i];
    memcpy(answer, &total, sizeof total);
    return PLAIT_OK;
}

static plait_status make_data(fixture *f) {
    static float  x[40];
    static double label[20];
    for (int i = 0; i < 20; i++) {
        label[i] = i % 2;
        x[2 * i] = (float)(i % 2);
        x[2 * i + 1] = (float)(i % 3);
    }
    return plait_data_from_dense(20, 2, x, label, NULL, &f->data, &f->err);
}

static plait_status train_in(plait_comm *comm, void *user) {
    fixture         *f = user;
    plait_train_opts opts;
    plait_train_opts_init(&opts);
    opts.memory = f->data;
    opts.epochs = 1;
    return plait_train(comm, &opts, NULL, &f->model);
}

static plait_status make_model(fixture *f) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.threads = 1;
    plait_status status = plait_comm_run(&opts, train_in, f, &f->err);
    return status < 0 ? status : plait_model_save(f->model, f->model_path, &f->err);
}

static plait_status make_graph(fixture *f) {
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.threads = 1;
    plait_status status = plait_graph_create(NULL, 0, &f->graph, &f->err);
    if (status < 0) return status;
    f->x = plait_graph_placeholder(f->graph, "x", PLAIT_F32, plait_shape_1(2));
    f->v = plait_graph_variable(f->graph, "v", plait_tensor_of(PLAIT_F32, plait_shape_1(2), NULL));
    f->y = plait_op_add(f->graph, f->x, f->v);
    plait_value dx;
    status = plait_graph_gradients(f->graph, f->y, 1, &f->x, &dx);
    if (status >= 0) status = plait_graph_check(f->graph, &f->err);
    if (status >= 0) status = plait_graph_place_memory(f->graph, 0, 1 << 30, &f->err); /* so the file has a place */
    if (status >= 0) status = plait_graph_save(f->graph, f->graph_path, 1, &f->err);
    return status < 0 ? status : plait_session_create(f->graph, &opts, &f->session, &f->err);
}

static plait_status make_tables(fixture *f) {
    plait_table_opts      opts;
    plait_checkpoint_opts to;
    plait_table_opts_init(&opts);
    plait_checkpoint_opts_init(&to);
    opts.name = "w";
    opts.rows = 4;
    opts.cols = 2;
    to.dir = f->ckpt;
    to.note = "a note";
    plait_status status = plait_table_create(f->job, &opts, &f->table);
    if (status >= 0) status = plait_table_store_create(f->job, f->graph, NULL, &f->store);
    if (status >= 0) status = plait_checkpoint_save(f->job, &f->table, 1, &to);
    return status < 0 ? status : plait_checkpoint_open(f->ckpt, NULL, &f->checkpoint, &f->err);
}

typedef struct whole {
    fixture *f;
    void (*body)(fixture *f, void *user);
    void *user;
} whole;

static plait_status in_comm(plait_comm *comm, void *user) {
    whole               *w = user;
    fixture             *f = w->f;
    const plait_function function = { .name = "sum", .run = sum };
    plait_job_opts       opts;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.functions = &function;
    opts.n_functions = 1;
    f->comm = comm;
    plait_status status = plait_job_create(comm, &opts, &f->job);
    if (status >= 0) status = make_tables(f);
    if (status >= 0) w->body(f, w->user);
    plait_checkpoint_close(&f->checkpoint);
    plait_table_store_destroy(&f->store);
    plait_status left = plait_job_destroy(&f->job);
    return status < 0 ? status : left;
}

plait_status with_fixture(const char *dir, void (*body)(fixture *f, void *user), void *user, plait_error *err) {
    fixture         f = { .dir = dir };
    whole           w = { &f, body, user };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.threads = 1;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    snprintf(f.model_path, sizeof f.model_path, "%s/model", dir);
    snprintf(f.graph_path, sizeof f.graph_path, "%s/graph.json", dir);
    snprintf(f.out_path, sizeof f.out_path, "%s/out", dir);
    snprintf(f.ckpt, sizeof f.ckpt, "%s/ckpt", dir);
    plait_status status = make_data(&f);
    if (status >= 0) status = make_model(&f);
    if (status >= 0) status = make_graph(&f);
    if (status >= 0) status = plait_comm_run(&opts, in_comm, &w, &f.err);
    *err = f.err;
    plait_session_destroy(&f.session);
    plait_graph_destroy(&f.fresh);
    plait_graph_destroy(&f.graph);
    plait_model_destroy(&f.model);
    plait_data_destroy(&f.data);
    return status;
}
