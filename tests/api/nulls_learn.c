/* Cases of plait/data.h, plait/model.h, plait/checkpoint.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/nulls.h"
#include "arrow_table.h"

static const double  label[2] = { 0, 1 };
static const double  weight[2] = { 1, 2 };
static const float   value[4] = { 1, 2, 3, 4 };
static const int64_t row_start[3] = { 0, 1, 3 };
static const uint32_t column[3] = { 0, 0, 1 };

static int data_opts_init(fixture *f, int arg) {
    plait_data_opts opts;
    (void)f;
    (plait_data_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static plait_data_opts data_opts(const fixture *f, const char **path) {
    plait_data_opts opts;
    plait_data_opts_init(&opts);
    *path = f->out_path;
    opts.paths = path;
    opts.n_paths = 1;
    opts.format = "libsvm";
    FILE *file = fopen(f->out_path, "w");
    if (file != NULL) fputs("0 1:1\n1 1:1 2:1\n", file);
    if (file != NULL) fclose(file);
    return opts;
}
static int data_read(fixture *f, int arg) {
    const char     *path;
    plait_data_opts opts = data_opts(f, &path);
    plait_data     *data = NULL;
    plait_status    status = plait_data_read(N(0, &opts), N(1, &data), N(2, &f->err));
    plait_data_destroy(&data);
    return status;
}
static int from_csr(fixture *f, int arg) {
    plait_data  *data = NULL;
    plait_status status = plait_data_from_csr(2, 2, N(2, row_start), N(3, column), N(4, value), N(5, label),
                                              N(6, weight), N(7, &data), N(8, &f->err));
    plait_data_destroy(&data);
    return status;
}
static int from_dense(fixture *f, int arg) {
    plait_data  *data = NULL;
    plait_status status =
        plait_data_from_dense(2, 2, N(2, value), N(3, label), N(4, weight), N(5, &data), N(6, &f->err));
    plait_data_destroy(&data);
    return status;
}
static int data_take(fixture *f, int arg) {
    plait_data         *data = NULL;
    const int64_t       rows[2] = { 1, 0 };
    const plait_status  status = plait_data_take(N(0, f->data), N(1, rows), 2, N(3, &data), N(4, &f->err));
    plait_data_destroy(&data);
    return status;
}
static int data_rows(fixture *f, int arg) { return NEUTRAL_IF(plait_data_rows(N(0, f->data)) == 0); }
static int data_labels(fixture *f, int arg) { return NEUTRAL_IF(plait_data_labels(N(0, f->data)) == 0); }
static int has_labels(fixture *f, int arg) { return NEUTRAL_IF(plait_data_has_labels(N(0, f->data)) == 0); }
static int data_features(fixture *f, int arg) { return NEUTRAL_IF(plait_data_features(N(0, f->data)) == 0); }
static int data_blocks(fixture *f, int arg) { return NEUTRAL_IF(plait_data_blocks(N(0, f->data)) == 0); }
static int block_rows(fixture *f, int arg) { return NEUTRAL_IF(plait_data_block_rows(N(0, f->data), 0) == 0); }
static int data_row(fixture *f, int arg) {
    plait_row row;
    int32_t   block = 0;
    while (plait_data_block_rows(f->data, block) == 0) block++;
    return plait_data_row(N(0, f->data), block, 0, N(3, &row), N(4, &f->err));
}
static int memory_opts_init(fixture *f, int arg) {
    plait_memory_opts opts;
    (void)f;
    (plait_memory_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int from_memory(fixture *f, int arg) {
    static const float x[2] = { 1, 2 };
    plait_memory_opts  opts;
    plait_data        *data = NULL;
    plait_memory_opts_init(&opts);
    opts.layout = PLAIT_DENSE_ROWS;
    opts.rows = 2, opts.features = 1, opts.values = x;
    plait_status status = plait_data_from_memory(N(0, &opts), N(1, &data), N(2, &f->err));
    plait_data_destroy(&data);
    return status;
}
static int arrow_opts_init(fixture *f, int arg) {
    plait_arrow_opts opts;
    (void)f;
    (plait_arrow_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int from_arrow(fixture *f, int arg) {
    plait_arrow_opts opts;
    arrow_table      table;
    plait_data      *data = NULL;
    plait_arrow_opts_init(&opts);
    arrow_table_make(&table);
    table.buffers[1][0] = NULL; /* no cell is missing */
    plait_status status = plait_data_from_arrow(N(0, &table.stream), N(1, &opts), N(2, &data), N(3, &f->err));
    plait_data_destroy(&data);
    return status;
}
static int data_column(fixture *f, int arg) {
    plait_memory_column found;
    const plait_status  status = plait_data_column(N(0, f->data), 0, N(2, &found), N(3, &f->err));
    return status == PLAIT_END ? PLAIT_OK : status; /* the fixture's rows have none */
}
static int data_dense(fixture *f, int arg) {
    float *out = calloc((size_t)(plait_data_rows(f->data) * plait_data_features(f->data)), sizeof *out);
    plait_status status = plait_data_dense(N(0, f->data), N(1, out), N(2, &f->err));
    free(out);
    return status;
}
static int is_lent(fixture *f, int arg) { return NEUTRAL_IF(plait_data_is_lent(N(0, f->data)) == (arg < 0)); }
static int data_destroy(fixture *f, int arg) {
    plait_data *none = NULL;
    (void)f;
    plait_data_destroy(N(0, &none));
    return NEUTRAL;
}

/* --- models ----------------------------------------------------------------------------------------------------- */

static int train_opts_init(fixture *f, int arg) {
    plait_train_opts opts;
    (void)f;
    (plait_train_opts_init)(N(0, &opts));
    return NEUTRAL;
}
/* Training needs a communicator without a job. */
typedef struct training {
    fixture     *f;
    int          arg;
    plait_status status;
} training;
static plait_status train_in(plait_comm *comm, void *user) {
    training        *t = user;
    int              arg = t->arg;
    plait_report     report;
    plait_model     *model = NULL;
    plait_train_opts opts;
    plait_train_opts_init(&opts);
    opts.memory = t->f->data;
    t->status = plait_train(N(0, comm), N(1, &opts), N(2, &report), N(3, &model));
    plait_model_destroy(&model);
    return t->status;
}
static int train(fixture *f, int arg) {
    training        t = { .f = f, .arg = arg };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    plait_comm_run(&opts, train_in, &t, &f->err);
    if (arg == 0) f->err.text[0] = '\0';
    return t.status;
}
static int fit(fixture *f, int arg) {
    plait_comm_opts  comm_opts;
    plait_train_opts opts;
    plait_report     report;
    plait_model     *model = NULL;
    plait_comm_opts_init(&comm_opts);
    plait_train_opts_init(&opts);
    comm_opts.threads = 1;
    opts.memory = f->data;
    plait_status status = plait_fit(N(0, &comm_opts), N(1, &opts), N(2, &report), N(3, &model), N(4, &f->err));
    plait_model_destroy(&model);
    return status;
}
static int save(fixture *f, int arg) {
    return plait_model_save(N(0, f->model), N(1, f->out_path), N(2, &f->err));
}
static int export_model(fixture *f, int arg) {
    plait_status status =
        plait_model_export(N(0, f->model), N(1, "onnx"), N(2, f->out_path), N(3, &f->err));
    return status == PLAIT_EMODULE && (arg < 0 || arg == 3) ? PLAIT_OK : status;
}
static int load(fixture *f, int arg) {
    plait_model *model = NULL;
    plait_status status = plait_model_load(N(0, f->model_path), N(1, &model), N(2, &f->err));
    plait_model_destroy(&model);
    return status;
}
static int model_destroy(fixture *f, int arg) {
    plait_model *none = NULL;
    (void)f;
    plait_model_destroy(N(0, &none));
    return NEUTRAL;
}
static int name(fixture *f, int arg) { return NEUTRAL_IF(strcmp(plait_model_name(N(0, f->model)), "") == 0); }
static int description(fixture *f, int arg) {
    return NEUTRAL_IF(strcmp(plait_model_description(N(0, f->model)), "") == 0);
}
static int features(fixture *f, int arg) { return NEUTRAL_IF(plait_model_features(N(0, f->model)) == 0); }
static int classes(fixture *f, int arg) { return NEUTRAL_IF(plait_model_classes(N(0, f->model)) == 0); }
static int label_of(fixture *f, int arg) { return NEUTRAL_IF(strcmp(plait_model_label(N(0, f->model), 0), "") == 0); }
static int feature(fixture *f, int arg) {
    return NEUTRAL_IF(strcmp(plait_model_feature(N(0, f->model), 0), "") == 0);
}
static int rows(fixture *f, int arg) { return NEUTRAL_IF(plait_model_rows(N(0, f->model)) == 0); }
static int key(fixture *f, int arg) { return NEUTRAL_IF(plait_model_key(N(0, f->model), 0) == 0); }
static int weight_of(fixture *f, int arg) { return NEUTRAL_IF(isnan(plait_model_weight(N(0, f->model), 0, 0))); }
static int columns(fixture *f, int arg) { return NEUTRAL_IF(plait_model_columns(N(0, f->model)) == 0); }
static int intercept(fixture *f, int arg) { return NEUTRAL_IF(isnan(plait_model_intercept(N(0, f->model), 0))); }
static int hash(fixture *f, int arg) {
    char hex[65] = "before";
    plait_model_hash(N(0, f->model), N(1, hex));
    return NEUTRAL_IF(strcmp(hex, arg == 0 ? "" : "before") == 0);
}
static int predict(fixture *f, int arg) {
    double scores[64];
    return plait_model_predict(N(0, f->model), N(1, f->data), 1, N(3, scores), N(4, &f->err));
}
static int model_read(fixture *f, int arg) {
    const char     *path;
    plait_data_opts opts = data_opts(f, &path);
    plait_data     *data = NULL;
    plait_status    status = plait_model_read(N(0, f->model), N(1, &opts), N(2, &data), N(3, &f->err));
    plait_data_destroy(&data);
    return status;
}
/* The model is linear, and has none. */
static int contributions(fixture *f, int arg) {
    double       out[1];
    plait_status status = plait_model_contributions(N(0, f->model), N(1, f->data), N(2, out), N(3, &f->err));
    return status == PLAIT_EREFUSED && (arg < 0 || arg == 3) ? PLAIT_OK : status;
}
static int eval(fixture *f, int arg) {
    plait_report report;
    return plait_model_eval(N(0, f->model), N(1, f->data), N(2, &report), N(3, &f->err));
}
static int confusion(fixture *f, int arg) {
    double weights[64];
    return plait_model_confusion(N(0, f->model), N(1, f->data), N(2, weights), N(3, &f->err));
}

/* --- checkpoints ------------------------------------------------------------------------------------------------ */

static int checkpoint_opts_init(fixture *f, int arg) {
    plait_checkpoint_opts opts;
    (void)f;
    (plait_checkpoint_opts_init)(N(0, &opts));
    return NEUTRAL;
}
static int checkpoint_save(fixture *f, int arg) {
    plait_checkpoint_opts opts;
    plait_table *const    tables[1] = { f->table };
    plait_checkpoint_opts_init(&opts);
    opts.dir = f->ckpt;
    return plait_checkpoint_save(N(0, f->job), N(1, tables), 1, N(3, &opts));
}
static int list(fixture *f, int arg) {
    int64_t                 n;
    plait_checkpoint_entry *entries = NULL;
    plait_status            status = plait_checkpoint_list(N(0, f->ckpt), N(1, &n), N(2, &entries), N(3, &f->err));
    plait_comm_free(entries);
    return status;
}
static int open(fixture *f, int arg) {
    plait_checkpoint *checkpoint = NULL;
    plait_status      status = plait_checkpoint_open(N(0, f->ckpt), N(1, plait_checkpoint_folder(f->checkpoint)),
                                                     N(2, &checkpoint), N(3, &f->err));
    plait_checkpoint_close(&checkpoint);
    return status;
}
static int close(fixture *f, int arg) {
    plait_checkpoint *none = NULL;
    (void)f;
    plait_checkpoint_close(N(0, &none));
    return NEUTRAL;
}
static int folder(fixture *f, int arg) {
    return NEUTRAL_IF(strcmp(plait_checkpoint_folder(N(0, f->checkpoint)), "") == 0);
}
static int clock_of(fixture *f, int arg) { return NEUTRAL_IF(plait_checkpoint_clock(N(0, f->checkpoint)) == 0); }
static int note(fixture *f, int arg) {
    return NEUTRAL_IF(strcmp(plait_checkpoint_note(N(0, f->checkpoint)), "") == 0);
}
static int tensor_at(fixture *f, int arg) {
    plait_checkpoint_tensor tensor;
    return plait_checkpoint_tensor_at(N(0, f->checkpoint), 0, N(2, &tensor));
}
static int read_tensor(fixture *f, int arg) {
    float out[8];
    return plait_checkpoint_read(N(0, f->checkpoint), N(1, "w.values"), 0, 4, N(4, out), N(5, &f->err));
}
static int restore(fixture *f, int arg) {
    return plait_checkpoint_restore(N(0, f->checkpoint), N(1, f->table), N(2, "w"));
}
static int load_table(fixture *f, int arg) {
    return plait_checkpoint_load(N(0, f->checkpoint), N(1, f->table), N(2, "w"));
}
/* In a directory of its own. */
static const char *own_dir(const fixture *f, plait_checkpoint_opts *opts, char own[600]) {
    plait_checkpoint_opts_init(opts);
    snprintf(own, 600, "%s.own", f->ckpt);
    return opts->dir = own;
}
static int save_session(fixture *f, int arg) {
    plait_checkpoint_opts opts;
    char                  own[600];
    (void)own_dir(f, &opts, own);
    return plait_checkpoint_save_session(N(0, f->session), 1, N(2, (const int32_t[]){ 0 }), 5, N(4, &opts),
                                         N(5, &f->err));
}
static int load_session(fixture *f, int arg) {
    plait_checkpoint_opts opts;
    plait_checkpoint     *checkpoint = NULL;
    char                  own[600];
    plait_status          status = plait_checkpoint_open(own_dir(f, &opts, own), NULL, &checkpoint, &f->err);
    if (status >= 0)
        status = plait_checkpoint_load_session(N(0, checkpoint), N(1, f->session), 0,
                                               N(3, plait_graph_variable_name(f->graph, 0)), N(4, &f->err));
    plait_checkpoint_close(&checkpoint);
    return status;
}

const null_case learn_cases[] = {
    { "memory_opts_init", memory_opts_init, NULL },
    { "data_from_memory", from_memory, NULL },
    { "arrow_opts_init", arrow_opts_init, NULL },
    { "data_from_arrow", from_arrow, "opts" },
    { "data_column", data_column, NULL },
    { "data_dense", data_dense, NULL },
    { "data_is_lent", is_lent, NULL },
    { "data_opts_init", data_opts_init, NULL },
    { "data_read", data_read, NULL },
    { "data_from_csr", from_csr, "value label weight" },
    { "data_from_dense", from_dense, "label weight" },
    { "data_take", data_take, NULL },
    { "data_rows", data_rows, NULL },
    { "data_labels", data_labels, NULL },
    { "data_has_labels", has_labels, NULL },
    { "data_features", data_features, NULL },
    { "data_blocks", data_blocks, NULL },
    { "data_block_rows", block_rows, NULL },
    { "data_row", data_row, NULL },
    { "data_destroy", data_destroy, "data" },
    { "train_opts_init", train_opts_init, NULL },
    { "train", train, "report_out" },
    { "fit", fit, "comm_opts report_out" },
    { "model_save", save, NULL },
    { "model_export", export_model, NULL },
    { "model_load", load, NULL },
    { "model_destroy", model_destroy, "model" },
    { "model_name", name, NULL },
    { "model_description", description, NULL },
    { "model_features", features, NULL },
    { "model_classes", classes, NULL },
    { "model_label", label_of, NULL },
    { "model_feature", feature, NULL },
    { "model_rows", rows, NULL },
    { "model_key", key, NULL },
    { "model_weight", weight_of, NULL },
    { "model_columns", columns, NULL },
    { "model_intercept", intercept, NULL },
    { "model_hash", hash, NULL },
    { "model_predict", predict, NULL },
    { "model_contributions", contributions, NULL },
    { "model_read", model_read, NULL },
    { "model_eval", eval, NULL },
    { "model_confusion", confusion, NULL },
    { "checkpoint_opts_init", checkpoint_opts_init, NULL },
    { "checkpoint_save", checkpoint_save, NULL },
    { "checkpoint_list", list, NULL },
    { "checkpoint_open", open, "folder" },
    { "checkpoint_close", close, "checkpoint" },
    { "checkpoint_folder", folder, NULL },
    { "checkpoint_clock", clock_of, NULL },
    { "checkpoint_note", note, NULL },
    { "checkpoint_tensor_at", tensor_at, NULL },
    { "checkpoint_read", read_tensor, NULL },
    { "checkpoint_restore", restore, "name" },
    { "checkpoint_load", load_table, "name" },
    { "checkpoint_save_session", save_session, "variables" },
    { "checkpoint_load_session", load_session, "name" },
    { NULL, NULL, NULL },
};
