/* The options of a run: checks them before anything is read, and that they are equal on every rank. */
#include "learn/learn.h"

#include "learn/keep/keep.h"
#include "learn/run/run.h"
#include "learn/solve/scale_plan.h"
#include "learn/solve/solver.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comm/cluster.h"
#include "graph/pipeline.h"
#include "learn/loss/loss.h"
#include "table/filter/filter.h"

enum { MICRO_BATCHES_MAX = 4096 };

static plait_status one_of(const char *what, const char *name, const char *const *names, plait_error *err) {
    size_t n = 0;
    for (; names[n] != NULL; n++)
        if (strcmp(names[n], name) == 0) return PLAIT_OK;
    return pli_fail_unknown(err, what, name, names, n);
}

static plait_status check_number(const char *name, double value, bool above_0, plait_error *err) {
    if (isfinite(value) && (above_0 ? value > 0 : value >= 0)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "%s is %g: expected a number %s 0", name, value, above_0 ? "above" : "from");
}

static plait_status check_validation(pli_run *run) {
    const plait_train_opts *o = run->opts;
    double                  fraction;
    if (o->patience < 0)
        return pli_fail(run->err, PLAIT_EINVAL, "patience is %lld: expected 0 or more", (long long)o->patience);
    if (o->validation == NULL) {
        if (o->patience > 0)
            return pli_fail(run->err, PLAIT_EINVAL,
                            "patience needs validation data: --validation FILE or a fraction such as 0.1");
        return PLAIT_OK;
    }
    if (!pli_parse_f64(o->validation, &fraction)) return PLAIT_OK; /* a file */
    if (!(fraction > 0 && fraction < 1))
        return pli_fail(run->err, PLAIT_EINVAL, "validation is %s: expected a file or a fraction between 0 and 1",
                        o->validation);
    run->fraction = fraction;
    return PLAIT_OK;
}

/* The file of a simulated cluster may say who is in, in place of the plan. */
static plait_status check_turns(const pli_run *run) {
    const pli_cluster *cluster = pli_comm_cluster(run->comm);
    if (cluster == NULL || !pli_script_has_turns(cluster)) return PLAIT_OK;
    if (run->opts->scale != NULL)
        return pli_fail(run->err, PLAIT_EINVAL,
                        "--scale beside `join` and `leave` in %.300s is refused: each says who is in; leave one of the "
                        "two out",
                        cluster->path);
    return pli_script_check_turns(cluster, plait_comm_workers(run->comm), run->opts->slots, run->err);
}

/* Can each filter of the first table work on it? Asked before the data are read, so with one column. */
static plait_status check_filters(pli_run *run) {
    const plait_train_opts  *o = run->opts;
    const plait_filter_table table = { .name = pli_run_first_table(run), .type = PLAIT_F32, .cols = 1,
                                       .rule = pli_run_rule(run), .l1 = o->l1,
                                       .workers = plait_comm_workers(run->comm), .servers = 1 };
    pli_filters_list         list;
    PLI_TRY(pli_filters_read(pli_run_travel(run, pli_run_first_table(run)).filter, NULL, &list, run->err));
    return pli_filters_check_table(&list, &table, run->err);
}

/* Checks --loss and --kernels. *classes_out: may the model have classes? Asked before the labels are read. */
static plait_status check_model(const pli_run *run, bool *classes_out) {
    static const char *const names[] = { "own", "onednn", NULL };
    const plait_train_opts  *o = run->opts;
    *classes_out = run->learner->labels != PLAIT_LABELS_NUMBERS && run->learner->labels != PLAIT_LABELS_NONE;
    if (run->learner->labels == PLAIT_LABELS_EITHER && o->loss != NULL)
        PLI_TRY(pli_loss_is_class(o->loss, classes_out, run->err));
    if ((o->exclude != NULL || o->train != NULL) && o->graph_file == NULL)
        return pli_fail(run->err, PLAIT_EINVAL, "%s %s names a subgraph, and only a graph out of a file has them; take "
                        "--graph FILE", o->exclude != NULL ? "exclude" : "train",
                        o->exclude != NULL ? o->exclude : o->train);
    return o->kernels == NULL ? PLAIT_OK : one_of("kernels", o->kernels, names, run->err);
}

/* Checks pointers that the options must give, and the program's own learners. */
static plait_status check_given(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    if (o->model == NULL) return pli_fail_null(run->err, "plait_train", "opts->model");
    if (o->n_learners > 0 && o->learners == NULL) return pli_fail_null(run->err, "plait_train", "opts->learners");
    if (o->n_settings > 0 && o->settings == NULL) return pli_fail_null(run->err, "plait_train", "opts->settings");
    for (int32_t i = 0; i < o->n_learners; i++)
        if (o->learners[i].size != sizeof(plait_learner) || o->learners[i].name == NULL)
            return pli_fail(run->err, PLAIT_EINVAL, "learner %d has no name, or size is not sizeof(plait_learner)",
                            (int)i);
        else if (o->learners[i].row_cols < 0 || o->learners[i].row_cols > PLAIT_ROW_COLS ||
                 (o->learners[i].row_cols > 0 && (o->learners[i].ways & PLAIT_LEARNER_STREAMS) != 0))
            return pli_fail(run->err, PLAIT_EINVAL,
                            "learner %s keeps %lld values for each row: expected 0 to %d, and 0 for a learner that "
                            "streams, which sees each row once",
                            o->learners[i].name, (long long)o->learners[i].row_cols, PLAIT_ROW_COLS);
    if (o->n_tables > 0 && o->tables == NULL) return pli_fail_null(run->err, "plait_train", "opts->tables");
    for (int32_t i = 0; i < o->n_tables; i++)
        if (o->tables[i].name == NULL) return pli_fail_null(run->err, "plait_train", "the name of one of opts->tables");
    if (o->data != NULL) PLI_TRY(pli_paths_check(o->data->paths, o->data->n_paths, run->err));
    return o->test == NULL ? PLAIT_OK : pli_paths_check(o->test->paths, o->test->n_paths, run->err);
}

/* A file's contents are read when the graph is known. */
static plait_status check_place(const pli_run *run) {
    static const char *const ways[] = { "auto", "layers" };
    const char              *place = run->opts->place;
    if (place == NULL) return PLAIT_OK;
    if (run->opts->cut <= 1)
        return pli_fail(run->err, PLAIT_EINVAL, "place %s needs stages: take --cut 2 or more", place);
    if (strcmp(place, "auto") == 0 || strcmp(place, "layers") == 0 || pli_file_exists(place)) return PLAIT_OK;
    const char *meant = pli_nearest(place, ways, sizeof ways / sizeof *ways);
    if (meant != NULL)
        return pli_fail(run->err, PLAIT_ENAME, "place %s: no such file; did you mean '%s'?", place, meant);
    return pli_fail(run->err, PLAIT_EIO, "place %s: no such file; expected auto, layers, or a file with places", place);
}

/* A path of penalties needs a solver that takes one. */
static plait_status check_path(const pli_run *run) {
    static const char *const orders[] = { "priority", "random", "round-robin", NULL };
    const pli_learner_more *more = run->learner->more;
    if (run->opts->path < 0)
        return pli_fail(run->err, PLAIT_EINVAL, "path is %lld: expected 0 or more", (long long)run->opts->path);
    if (run->opts->together < 0 || run->opts->interference < 0)
        return pli_fail(run->err, PLAIT_EINVAL, "together %lld, interference %g: expected 0 or more of each",
                        (long long)run->opts->together, run->opts->interference);
    if (run->opts->order != NULL) PLI_TRY(one_of("order", run->opts->order, orders, run->err));
    if (run->opts->path == 0) return PLAIT_OK;
    for (int i = 0; more != NULL && more->solvers != NULL && more->solvers[i] != NULL; i++)
        if (more->solvers[i] == &pli_solver_coordinates) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL, "path with model %s: only squared and logistic have a path of penalties; "
                                            "take --model squared or logistic", run->opts->model);
}

/* Checks --cut, --place, --micro-batches and --pipeline. */
static plait_status check_stages(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    const int32_t           stages = pli_run_stages(run), workers = plait_comm_workers(run->comm);
    const int32_t           micro_batches = o->micro_batches > 1 ? o->micro_batches : 1;
    pli_pipeline            pipeline;
    if (o->cut > 1 && o->columns > 1)
        return pli_fail(run->err, PLAIT_EINVAL, "cut %d with columns %d: a net is cut in one way; take one of the two",
                        o->cut, o->columns);
    if (o->cut < 0 || o->columns < 0 || o->micro_batches < 0 || o->micro_batches > MICRO_BATCHES_MAX)
        return pli_fail(run->err, PLAIT_EINVAL,
                        "cut %d, columns %d, micro-batches %d: expected 1 or more of each, and at most %d "
                        "micro-batches",
                        o->cut, o->columns, o->micro_batches, MICRO_BATCHES_MAX);
    if (o->spares > 0 && o->spares % stages != 0)
        return pli_fail(run->err, PLAIT_EINVAL,
                        "%s %d with %d spare%s: a replica of the model takes %d workers, and so does a spare one; take "
                        "--spares %d",
                        o->columns > 1 ? "columns" : "cut", stages, o->spares, pli_plural(o->spares), stages,
                        (o->spares / stages + 1) * stages);
    if (workers % stages != 0)
        return pli_fail(run->err, PLAIT_EINVAL,
                        "%s %d over %d worker%s: a replica of the model takes %d workers, so their number must be a "
                        "multiple of it; take --workers %d",
                        o->columns > 1 ? "columns" : "cut", stages, workers, pli_plural(workers), stages,
                        (workers / stages + 1) * stages);
    if (o->pipeline != NULL && o->cut <= 1)
        return pli_fail(run->err, PLAIT_EINVAL, "pipeline %s needs stages: take --cut 2 or more", o->pipeline);
    PLI_TRY(check_place(run));
    return pli_pipeline_init(&pipeline, pli_run_pipeline(run), stages, 1, micro_batches, 0, run->err);
}

/* Checks --classes. */
static bool declares(const plait_learner *learner) {
    return learner->more != NULL && learner->more->declares != NULL && learner->more->declares(learner);
}

/* An option that only some learners have. which: what they are. */
static plait_status refuse_of(const pli_run *run, const char *option, long long value, const char *which,
                              bool (*has)(const plait_learner *learner)) {
    pli_text names = { 0 };
    for (const plait_learner *const *l = pli_learners(); *l != NULL; l++)
        if (has(*l)) pli_text_add(&names, "%s%s", names.length > 0 ? ", " : "", (*l)->name);
    const plait_status status =
        pli_fail(run->err, PLAIT_EINVAL,
                 "%s %lld with model %s is refused: only these have %s: %s; take one of them, or no --%s", option,
                 value, run->opts->model, which, names.data != NULL ? names.data : "none", option);
    pli_text_free(&names);
    return status;
}

static plait_status check_classes(const pli_run *run) {
    const int64_t classes = run->opts->classes;
    if (classes == 0) return PLAIT_OK;
    if (!declares(run->learner)) return refuse_of(run, "classes", classes, "classes that no row has", declares);
    if (classes >= 2 && classes <= PLI_LABELS_DECLARED) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL, "classes %lld: expected 2 to %d", (long long)classes, PLI_LABELS_DECLARED);
}

/* Checks --sampled. */
static bool samples(const plait_learner *learner) {
    return learner->more != NULL && learner->more->samples != NULL && learner->more->samples(learner);
}

static plait_status check_sampled(const pli_run *run) {
    const long long sampled = run->opts->sampled;
    if (sampled < 0) return pli_fail(run->err, PLAIT_EINVAL, "sampled %lld: expected 1 or more", sampled);
    if (sampled == 0 || samples(run->learner)) return PLAIT_OK;
    return refuse_of(run, "sampled", sampled, "a softmax that may draw classes", samples);
}

/* --balance, which a learner's check looks at. */
static plait_status check_balance(pli_run *run) {
    static const char *const balances[] = { "static", "dynamic", NULL };
    const plait_train_opts  *o = run->opts;
    if (o->balance != NULL) PLI_TRY(one_of("balance", o->balance, balances, run->err));
    const bool dynamic = pli_is(o->balance, "dynamic");
    run->shifts = dynamic && pli_run_stages(run) > 1;
    run->balanced = dynamic && (!run->shifts || pli_run_holders(run) > 1); /* one replica has all rows */
    return PLAIT_OK;
}

plait_status pli_options_check(pli_run *run) {
    static const char *const schedules[] = { "constant", "invsqrt", "cosine", NULL };
    static const char *const scalings[] = { "auto", "none", NULL };
    const plait_train_opts  *o = run->opts;
    plait_error             *err = run->err;
    bool                     is_class;
    PLI_TRY(check_given(run));
    run->learner = pli_learner_find(o->model, o->learners, o->n_learners);
    if (run->learner == NULL) return pli_learner_unknown(o->model, o->learners, o->n_learners, err);
    if (run->learner->n_functions < 0 || (run->learner->n_functions > 0 && run->learner->functions == NULL))
        return pli_fail(err, PLAIT_EINVAL, "model %s has %d server functions, but no list of them", o->model,
                        run->learner->n_functions);
    PLI_TRY(pli_run_make_state(run));
    run->ways = run->learner->ways;
    run->needs = run->learner->needs;
    run->topology = pli_run_travel(run, pli_run_first_table(run)).topology;
    run->consistency = pli_run_travel(run, pli_run_first_table(run)).consistency;
    if ((o->data != NULL) == (o->memory != NULL))
        return pli_fail(err, PLAIT_EINVAL, "train needs data: either files or a data set in memory");
    PLI_TRY(check_stages(run));
    PLI_TRY(check_model(run, &is_class));
    PLI_TRY(check_classes(run));
    PLI_TRY(check_sampled(run));
    PLI_TRY(pli_settings_check(run));
    PLI_TRY(check_balance(run));
    if (run->learner->check != NULL) PLI_TRY(run->learner->check(run));
    PLI_TRY(pli_run_name_optimizer(run));
    PLI_TRY(check_path(run));
    if (o->schedule != NULL) PLI_TRY(one_of("schedule", o->schedule, schedules, err));
    if (o->normalize != NULL) PLI_TRY(one_of("normalization", o->normalize, scalings, err));
    PLI_TRY(check_number("l1", o->l1, false, err));
    if (!isnan(o->l2)) PLI_TRY(check_number("l2", o->l2, false, err));
    PLI_TRY(check_number("learning-rate", o->learning_rate, false, err));
    if (!isnan(o->tolerance) && !(o->tolerance >= 0 && o->tolerance < 1))
        return pli_fail(err, PLAIT_EINVAL, "tolerance is %g: expected a share, from 0 to below 1", o->tolerance);
    PLI_TRY(check_number("huber-delta", o->huber_delta, true, err));
    if (o->names_bytes < 0) return pli_fail(err, PLAIT_EINVAL, "names is %lld: expected 0 or more",
                                            (long long)o->names_bytes);
    if (!(o->quantile > 0 && o->quantile < 1))
        return pli_fail(err, PLAIT_EINVAL, "quantile is %g: expected a number above 0 and below 1", o->quantile);
    if (!(o->momentum >= 0 && o->momentum < 1))
        return pli_fail(err, PLAIT_EINVAL, "momentum is %g: expected a number from 0 to below 1", o->momentum);
    if (o->epochs < 0) return pli_fail(err, PLAIT_EINVAL, "epochs is %lld: expected 1 or more", (long long)o->epochs);
    if (o->batch < 0) return pli_fail(err, PLAIT_EINVAL, "batch is %lld: expected 1 or more", (long long)o->batch);
    if (o->class_weight != NULL && !is_class)
        return pli_fail(err, PLAIT_EINVAL, "class-weight: model %s has no classes", o->model);
    static const char *const states[] = { "whole", "sharded", NULL };
    if (o->optimizer_state != NULL) PLI_TRY(one_of("optimizer state", o->optimizer_state, states, err));
    run->sharded = o->optimizer_state != NULL && strcmp(o->optimizer_state, "sharded") == 0;
    PLI_TRY(check_validation(run));
    run->exact = o->exact != 0;
    run->stream = pli_run_streams(run);
    PLI_TRY(pli_keep_check(run));
    PLI_TRY(pli_spares_check(o->spares, plait_comm_workers(run->comm), err));
    PLI_TRY(pli_slots_check(o->slots, plait_comm_workers(run->comm), err));
    PLI_TRY(pli_scale_check(o->scale, plait_comm_workers(run->comm) - o->slots, plait_comm_workers(run->comm), err));
    if (o->move_rate < 0 || (o->move_rate > 0 && o->slots == 0))
        return pli_fail(err, PLAIT_EINVAL, "a move rate of %lld%s: expected 0, or with slots bytes a second",
                        (long long)o->move_rate, o->slots == 0 ? " in a run without slots" : "");
    PLI_TRY(check_turns(run));
    pli_run_choose_optimizer(run);
    PLI_TRY(pli_tables_check(run));
    return check_filters(run);
}

plait_status pli_train_check(plait_comm *comm, const plait_train_opts *opts, plait_error *err) {
    pli_run      run = { .comm = comm, .opts = opts, .err = err };
    plait_status status = pli_options_check(&run);
    pli_run_free_state(&run);
    return status;
}

/* --- agreement ------------------------------------------------------------------------------------------- */

/* Copies the first line in which two texts differ, cut to fit. */
static void differing_line(const char *a, const char *b, char *line_a, char *line_b, size_t bytes) {
    size_t start = 0, i = 0;
    for (; a[i] != '\0' && a[i] == b[i]; i++)
        if (a[i] == '\n') start = i + 1;
    snprintf(line_a, bytes, "%.*s", (int)strcspn(a + start, "\n"), a + start);
    snprintf(line_b, bytes, "%.*s", (int)strcspn(b + start, "\n"), b + start);
}

plait_status pli_agree_is_same(plait_comm *comm, const char *text, bool *same_out) {
    int64_t hash = (int64_t)(pli_hash_bytes(text, strlen(text), 0) >> 1), low[2] = { hash, -hash };
    PLI_TRY(plait_comm_allreduce(comm, low, 2, PLAIT_I64, PLAIT_MIN));
    *same_out = low[0] == -low[1];
    return PLAIT_OK;
}

plait_status pli_agree_text(plait_comm *comm, const char *what, const char *text, plait_error *err) {
    int32_t      workers = plait_comm_workers(comm);
    void        *all = NULL;
    bool         same = false;
    plait_status status = pli_agree_is_same(comm, text, &same);
    if (status < 0 || same) return status;
    size_t *sizes = pli_array((size_t)workers, sizeof *sizes);
    if (sizes == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to agree on %s", what);
    status = plait_comm_allgatherv(comm, text, strlen(text) + 1, sizes, &all);
    const char *first = all, *other = all;
    for (int32_t w = 0; status == PLAIT_OK && w < workers; other += sizes[w], w++) {
        char mine[160], theirs[160];
        if (strcmp(first, other) == 0) continue;
        differing_line(first, other, mine, theirs, sizeof mine);
        status = pli_fail(err, PLAIT_EMISMATCH, "ranks were started with different %s: rank %d has '%s', rank 0 '%s'",
                          what, (int)w, theirs, mine);
    }
    plait_comm_free(all);
    pli_free(sizes);
    return status;
}
