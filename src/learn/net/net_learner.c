/* Nets as learners: mlp, cnn, lstm, and a graph out of a file. They differ only by how their graph is built
 * (pli_net_kind). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/kernel_set.h"
#include "graph/subgraph.h"
#include "learn/net/shift.h"
#include "learn/solve/lbfgs_run.h"
#include "learn/solve/solver.h"

/* --- options ------------------------------------------------------------------------------------------------------ */

const char *pli_net_kernels(const pli_run *run) {
    const char *name = run->opts->kernels;
    return name != NULL && strcmp(name, "own") != 0 ? name : NULL;
}

static plait_status check_kernels(const pli_run *run) {
    const pli_kernel_set *kernels = NULL;
    void                 *module = NULL;
    if (pli_net_kernels(run) == NULL) return PLAIT_OK;
    PLI_TRY(pli_kernel_set_open(run->opts->kernels, &module, &kernels, run->err));
    pli_module_close(&module);
    return PLAIT_OK;
}

/* Checks --sampled when labels and layers are known. */
static plait_status check_drawn(const pli_run *run) {
    const pli_net_fit *n = pli_net_fit_of(run);
    const long long    sampled = run->opts->sampled, classes = n->fit.goal.classes;
    if (sampled == 0) return PLAIT_OK;
    if (run->lbfgs)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "sampled %lld with optimizer lbfgs is refused: it needs the whole gradient; nearest is adam",
                        sampled);
    if (n->fit.goal.loss != &pli_loss_softmax)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "sampled %lld is refused: only a softmax draws classes, the logistic loss of three classes or "
                        "more; here the loss is %s%s; leave --sampled out",
                        sampled, n->fit.loss, classes == 2 ? " of two" : "");
    if (sampled > classes)
        return pli_fail(run->err, PLAIT_EINVAL,
                        "sampled %lld: there are %lld classes, and no more can be drawn; take --sampled %lld or less",
                        sampled, classes, classes);
    if (n->net->n_params == 2)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "sampled %lld of a net without hidden layers is refused: its only layer is read by feature, "
                        "not by class; take --layers",
                        sampled);
    return PLAIT_OK;
}

static plait_status check(pli_run *run) {
    const plait_train_opts *o = run->opts;
    const pli_net_kind     *kind = pli_net_kind_find(run->learner->name);
    pli_net_fit            *n = run->state;
    n->fit.ops = &pli_net_fit_ops;
    n->fit.wanted = o->loss;
    n->fit.raw = o->normalize != NULL && strcmp(o->normalize, "none") == 0 && o->graph_file == NULL;
    if (o->graph_file != NULL && kind->open == NULL)
        return pli_fail(run->err, PLAIT_EINVAL, "graph %s: model %s is not read from a file; take --model graph, or no "
                                                "--model",
                        o->graph_file, o->model);
    if (kind->open != NULL && o->graph_file == NULL)
        return pli_fail(run->err, PLAIT_EINVAL, "model %s needs a file: --graph FILE, in JSON (docs/graph.md) or ONNX",
                        o->model);
    if (kind->open != NULL && o->layers != NULL)
        return pli_fail(run->err, PLAIT_EINVAL, "layers %s: a graph has its own layers; leave --layers out", o->layers);
    if (o->columns > 1 && kind != &pli_net_mlp)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "columns with model %s is refused: only the dense layers of an mlp lie in columns; nearest is "
                        "--cut %d",
                        o->model, o->columns);
    if (kind->open == NULL) PLI_TRY(pli_net_check_layers(kind, o->layers, run->err));
    if (o->sampled > 0 && o->cut > 1)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "sampled %lld with --cut is refused: a last layer of which rows are drawn lies in columns or "
                        "is whole; nearest is --columns %d with --model mlp",
                        (long long)o->sampled, o->cut);
    return check_kernels(run);
}

/* Reads the graph, before the data are read. Each rank reads a file of its own, so all compare the hash. */
static plait_status read_graph(pli_run *run) {
    pli_net_fit *n = run->state;
    char         print[40];
    if (run->opts->graph_file == NULL) return PLAIT_OK;
    PLI_TRY(pli_net_file_read(run->opts->graph_file, run->opts->seed, run->opts->exclude, run->opts->train, &n->file,
                              run->err));
    run->drops = n->file.drops;
    const uint64_t hash = pli_hash_bytes(n->file.text, strlen(n->file.text), 0);
    snprintf(print, sizeof print, "--graph with hash %016" PRIx64,
             pli_hash_bytes(n->file.first, (size_t)n->file.values * sizeof *n->file.first, hash));
    return pli_agree_text(run->comm, "graphs", print, run->err);
}

/* Windows of text lie apart for models of sequences. A first layer of x w + b says the same of x - c as of x; images
 * and sequences have no such layer. */
static void reads(const pli_run *run, plait_data_opts *files) {
    const pli_net_kind *kind = pli_net_kind_find(run->learner->name);
    files->apart = kind->sequence;
    files->origins = kind->build != NULL && !kind->even && !kind->sequence;
}

/* --- decisions from the data -------------------------------------------------------------------------------------- */

/* Checks the subgraphs that are chosen. A table whose incs runs leave out is never pushed to, so it keeps its values: a
 * rule, with its penalty, is applied to what is pushed. */
static plait_status check_subgraphs(pli_run *run, const pli_net *net) {
    const plait_train_opts *o = run->opts;
    pli_choice              choice = { .n = 0 };
    if (o->exclude == NULL && o->train == NULL) return PLAIT_OK;
    PLI_TRY(pli_choice_read(net->graph, o->exclude, o->train, &choice, run->err));
    bool        *off = pli_calloc((size_t)net->graph->n_values, sizeof *off);
    plait_status status = off != NULL ? pli_choice_mark(&choice, net->graph, off, run->err)
                                      : pli_fail(run->err, PLAIT_ENOMEM, "no memory for subgraphs");
    int32_t trained = 0;
    for (int32_t p = 0; status == PLAIT_OK && p < net->n_params; p++) trained += !off[net->param[p].inc];
    if (status == PLAIT_OK && trained == 0)
        status = pli_fail(run->err, PLAIT_EINVAL, "exclude %s leaves no variable to train", o->exclude);
    pli_free(off);
    pli_choice_free(&choice);
    return status;
}

static double density_of(const pli_run *run) {
    return (double)run->entries / ((double)run->rows * (double)run->features);
}

plait_status pli_net_make_pieces(const pli_run *run, const int32_t *share, pli_net **net_out) {
    const pli_net_fit *n = pli_net_fit_of(run);
    const pli_net_trained_as as = { .columns = run->opts->columns, .share = share, .sampled = run->opts->sampled };
    return pli_net_create(n->net->kind, n->net->layers, run->schema, &n->fit.goal, run->features, density_of(run), &as,
                          net_out, run->err);
}

static plait_status make_net(pli_run *run) {
    pli_net_fit        *n = run->state;
    const pli_net_kind *kind = pli_net_kind_find(run->learner->name);
    const bool          of_file = n->file.text != NULL;
    const char         *layers = run->opts->layers;
    if (layers == NULL && run->start != NULL) layers = pli_net_of(run->start)->layers;
    plait_status status = pli_net_create(kind, of_file ? n->file.text : layers, run->schema, &n->fit.goal,
                                         run->features, density_of(run), NULL, &n->net, run->err);
    if (status < 0) return of_file ? pli_fail_at(run->err, "%s", run->opts->graph_file) : status;
    status = check_subgraphs(run, n->net);
    if (status < 0) return pli_fail_at(run->err, "%s", run->opts->graph_file);
    PLI_TRY(check_drawn(run));
    const bool in_pieces = run->opts->columns > 1 || run->opts->sampled > 0;
    return in_pieces ? pli_net_make_pieces(run, NULL, &n->pieces) : PLAIT_OK;
}

static int64_t default_epochs(const pli_run *run) { return run->lbfgs ? 100 : 10; }

enum { LAYOUT = 3 }; /* no linear model has this layout */

static int64_t between(int64_t low, int64_t n, int64_t high) { return n < low ? low : n > high ? high : n; }

/* Small sets of numbers take smaller batches than classes do: a net that needs few clocks has fewer of them. */
static int64_t default_batch(const pli_run *run) {
    const int64_t rows = run->train_rows, most = pli_net_fit_of(run)->net->kind->batch;
    if (run->classes > 0) return between(16, rows / 64, most);
    return between(8, rows / 256 > 64 ? rows / 256 : rows / 8 < 64 ? rows / 8 : 64, most);
}

/* 0: the rule's own. For numbers adam goes further on more rows: noise in few rows is soon learnt by heart. Up to
 * 30 epochs, more epochs make smaller steps, and do not go further. Measured (docs/models.md). */
static double default_rate(const pli_run *run) {
    const pli_net_fit *n = pli_net_fit_of(run);
    if (strcmp(run->optimizer, "adam") != 0) return 0;
    if (run->classes > 0 || n->fit.raw || n->net->kind->rate > 0 || n->net->kind->open != NULL)
        return n->net->kind->rate;
    const double rows = (double)run->train_rows, epochs = (double)run->epochs;
    return 0.01 * sqrt(fmin(1, rows / 4000)) * fmin(1, fmax(10 / epochs, 1.0 / 3));
}

/* The penalty of weights in the data's units weighs by the square of those units: if labels or a feature are small
 * numbers, 1/n would hold the net at the mean. So the default penalises no weight by more than 1/n in training's
 * units. */
static void settle_penalty(pli_run *run) {
    const pli_net_fit   *n = pli_net_fit_of(run);
    const pli_net_units *u = &n->net->units;
    const double         only = n->net->n_params == 2 ? u->spread * u->spread : 1; /* one layer is first and last */
    double               most = fmax(u->spread * u->spread, 1);
    if (!isnan(run->opts->l2) || run->classes > 0 || n->fit.raw || n->net->kind->open != NULL) return;
    for (int64_t j = 0; n->fit.scale.factor != NULL && j < n->fit.scale.features; j++)
        most = fmax(most, n->fit.scale.factor[j] * n->fit.scale.factor[j] * only);
    run->l2 *= fmin(1, u->unit / most);
}

static void settle_defaults(pli_run *run) {
    const plait_train_opts *o = run->opts;
    const pli_net          *net = pli_net_fit_of(run)->net;
    pli_fit_settle(run, o->batch > 0 ? o->batch : default_batch(run), default_epochs);
    run->rate = o->learning_rate > 0 ? o->learning_rate : default_rate(run);
    run->layout = LAYOUT;
    run->examples = run->batch * net->row_labels;
    run->weights = net->values;
}

static plait_status settle_tables(pli_run *run) {
    const pli_net    *net = pli_net_fit_of(run)->net;
    pli_planned       planned[PLI_NET_PARAMS];
    const pli_planned all = { .name = "w" };
    if (run->lbfgs && (run->opts->exclude != NULL || run->opts->train != NULL))
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "optimizer lbfgs with exclude or train is refused: it moves all values together; take an "
                        "update rule, such as adam");
    if (run->lbfgs) return pli_tables_settle(run, &all, 1);
    for (int32_t p = 0; p < net->n_params; p++) {
        const bool drawn = run->opts->sampled > 0 && p >= net->n_params - 2;
        planned[p] = (pli_planned){ .name = net->param[p].name, .sparse = drawn || pli_net_by_row(net, p) };
    }
    return pli_tables_settle(run, planned, net->n_params);
}

static plait_status check_start(pli_run *run) {
    const pli_net *net = pli_net_fit_of(run)->net;
    if (run->start == NULL) return PLAIT_OK;
    const pli_net *was = pli_net_of(run->start);
    PLI_TRY(pli_fit_check_start(run, &pli_fitted_of(run->start)->goal, plait_model_features(run->start)));
    if (net->text != NULL && strcmp(net->text, was->text) != 0)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s was trained on another graph than %s",
                        run->opts->init_model, run->opts->graph_file);
    if (run->opts->no_intercept && pli_fitted_of(run->start)->intercept)
        return pli_fail(run->err, PLAIT_EMISMATCH, "%s has biases, and with --no-intercept they would stay as they are",
                        run->opts->init_model);
    if (strcmp(net->layers, was->layers) == 0) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EMISMATCH, "%s has layers %s, not %s", run->opts->init_model, was->layers,
                    net->layers);
}

/* Values of the stage that has most, if no rank gathers them all. */
static int64_t values_of_a_rank(const pli_run *run) {
    const pli_net_fit *n = pli_net_fit_of(run);
    const pli_net     *net = pli_net_trained(run);
    int64_t            most = 0;
    if (!pli_net_in_parts(run)) return n->net->values;
    for (int32_t k = 0; k < pli_run_stages(run); k++) {
        int64_t values = 0;
        for (int32_t p = 0; p < net->n_params; p++)
            if (pli_stages_of(n->stages, p) == k) values += net->param[p].rows * net->param[p].cols;
        if (values > most) most = values;
    }
    return most;
}

static plait_status check_memory(pli_run *run) {
    const double values = (double)values_of_a_rank(run), there = (double)pli_memory_bytes();
    const double bytes = values * (run->lbfgs ? 80.0 : 24.0);
    if (there <= 0 || bytes < there) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "%.0f weights need about %.1f GB, but only %.1f GB are free; take smaller "
                                            "--layers",
                    values, bytes / 1e9, there / 1e9);
}

static plait_status prepare(pli_run *run) {
    PLI_TRY(pli_labels_settle(run));
    PLI_TRY(make_net(run));
    settle_defaults(run);
    PLI_TRY(settle_tables(run));
    PLI_TRY(check_start(run));
    PLI_TRY(pli_stages_plan(run, &pli_net_fit_of(run)->stages));
    PLI_TRY(check_memory(run));
    PLI_TRY(pli_net_room_check(run));
    PLI_TRY(pli_shift_settle(run));
    if (run->opts->sampled == 0 || !pli_run_takes_rows(run)) return PLAIT_OK;
    pli_net_fit *n = run->state;
    return pli_draws_create(run->classes, run->opts->sampled, run->opts->seed, n->fit.class_rows, &n->draws, run->err);
}

/* Measures training's units. A graph out of a file takes the data as they are. L-BFGS has one factor for both
 * penalties, so with both it trains in the labels' own spread. */
static plait_status measured(pli_run *run) {
    pli_net_fit *n = run->state;
    const bool   none = run->opts->normalize != NULL && strcmp(run->opts->normalize, "none") == 0;
    n->fit.scale = (pli_scale){ .features = run->features };
    if (!none && n->file.text == NULL && !(run->l1 > 0 && run->l2 > 0)) PLI_TRY(pli_fit_measure_scale(run));
    pli_net_even_scale(n->net, &n->fit.scale);
    const bool apart = run->lbfgs && run->l1 > 0 && run->l2 > 0;
    if (!none) pli_net_set_units(n->net, n->fit.label_mean, apart ? 1 : n->fit.label_spread);
    if (n->pieces != NULL) n->pieces->units = n->net->units;
    settle_penalty(run);
    return PLAIT_OK;
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static plait_status train(pli_run *run) {
    return run->lbfgs ? pli_lbfgs_run(run, &pli_lbfgs_nets) : pli_loop_run(run, &pli_net_steps);
}

static plait_status finish(pli_run *run, plait_model *model) {
    if (pli_net_in_parts(run)) PLI_TRY(pli_parts_join_last(run));
    PLI_TRY(pli_fitted_take(run, model));
    return pli_net_open_model(model, pli_net_form(pli_net_fit_of(run)->net), run->err);
}

static void end(pli_run *run) {
    pli_net_fit *n = run->state;
    pli_net_end_worker(run);
    pli_free(n->parts.own);
    pli_draws_destroy(&n->draws);
    pli_stages_destroy(&n->stages);
    pli_net_destroy(&n->pieces);
    pli_net_destroy(&n->net);
    pli_net_file_free(&n->file);
    pli_fit_end(run);
}

static int32_t functions(plait_comm *comm, const plait_train_opts *opts, plait_function *functions_out) {
    return pli_lbfgs_add_functions(comm, opts->exact != 0, functions_out);
}

static void options(const pli_run *run, pli_text *text) {
    const pli_net *net = pli_net_fit_of(run)->net;
    if (net->text != NULL)
        pli_text_add(text, "--graph of hash %016" PRIx64 "\n", pli_hash_bytes(net->text, strlen(net->text), 0));
    else pli_text_add(text, "--layers %s\n--loss %s\n", net->layers, pli_fit_of(run)->loss);
    if (run->opts->sampled > 0) pli_text_add(text, "--sampled %lld\n", (long long)run->opts->sampled);
}

static void describe(const pli_run *run, pli_text *json) {
    const pli_net *net = pli_net_fit_of(run)->net;
    pli_json_bool(json, "intercept", pli_fit_of(run)->intercept);
    if (net->text == NULL) pli_json_text(json, "layers", net->layers);
    pli_json_text(json, "loss", pli_fit_of(run)->loss);
    if (run->opts->sampled > 0) pli_json_i64(json, "sampled", run->opts->sampled);
}

static const plait_graph *graph(const pli_run *run) { return pli_net_fit_of(run)->net->graph; }

/* A sequence's classes are the characters of its text. */
static bool declares(const plait_learner *learner) { return !pli_net_kind_find(learner->name)->sequence; }

/* A graph from a file has a last layer of its own, which scores all classes. */
static bool samples(const plait_learner *learner) { return pli_net_kind_find(learner->name)->open == NULL; }

static const pli_solver *const solvers[] = { &pli_solver_lbfgs, NULL };

/* by_name_only: adam goes under every pair, and is the better for most nets. */
#define MORE                                                                                                           \
    .solvers = solvers, .by_name_only = true, .functions = functions, .open_files = read_graph, .declares = declares,  \
    .samples = samples, .reads = reads, .check_judged = pli_fit_check_judged, .finite = pli_fit_solved,                \
    .judge = pli_fit_judge, .options = options, .describe = describe, .kept = pli_fit_kept,                            \
    .restore = pli_fit_restore, .worth = pli_fit_worth, .graph = graph, .report = pli_fit_report,                      \
    .model = &pli_net_model_ops
static const pli_learner_more more = { MORE };
static const pli_learner_more more_of_graph = { MORE, .intercept = "its file says which of its layers have biases" };

#define OBJECTIVE                                                                                                      \
    "\nObjective: the weighted mean of the loss + l2/2 |w|^2 + l1 |w|; biases are never penalised.\n"                  \
    "In training, labels that are numbers are scaled. Their --l2 defaults to 1/rows, or less if units are small.\n" \
    "Options: --l1 --l2 --no-intercept --class-weight --normalize --optimizer (default adam); see "                    \
    "'plait help train'.\n"                                                                                            \
    "\n--table NAME:topology=T,consistency=C,filter=F names a table. With --optimizer lbfgs there is one table, w, "   \
    "with all values.\n"

/* --- the learners ------------------------------------------------------------------------------------------------- */

#define NET                                                                                                            \
    .size = sizeof(plait_learner), .ways = PLAIT_LEARNER_STREAMS, .optimizer = "adam", .labels = PLAIT_LABELS_EITHER,  \
    .state_bytes = sizeof(pli_net_fit), .model_bytes = sizeof(pli_net_model), .check = check, .prepare = prepare,      \
    .measured = measured, .train = train, .finish = finish, .end = end, .close = pli_net_close_model,                  \
    .export_onnx = pli_net_export

const plait_learner pli_mlp = {
    NET, .more = &more, .name = "mlp", .summary = "a perceptron of dense layers",
    .help =
        "a perceptron: hidden layers of ReLUs, each connected to the whole layer before it.\n"
        "  layers   --layers 512,256: hidden layer sizes, input side first; default 128; none (''): a linear model\n"
        "  loss     --loss logistic|hinge|squared|huber, the losses of those models; default logistic, or squared if "
        "the labels are numbers\n"
        "  classes  --sampled K: rows are trained on their own classes and K that a clock draws\n"
        "  tables   w1, b1, w2, b2, ...: weights and biases of each layer; each table may travel in its own way\n"
        "  reports  what the model of that loss reports\n" OBJECTIVE
};
const plait_learner pli_cnn = { NET, .more = &more, .name = "cnn", .summary = "convolutions for images",
    .help = "convolutions for images: each is 3 x 3, with a ReLU and a pooling of 2 x 2.\n"
            "  rows     images (--format idx), or features that form a square of pixels, line by line\n"
            "  layers   --layers 32,64,128, the default: filters of each convolution, then the size of a dense layer\n"
            "  loss, tables, reports: as for mlp\n"
            OBJECTIVE };
const plait_learner pli_lstm = {
    NET, .more = &more, .name = "lstm", .summary = "long short-term memory, for text and sequences",
    .help =
        "layers of long short-term memory; for text (--format text) it predicts each character from those before it.\n"
        "  rows     text: --window characters, and each step predicts the next one; images: one step for each line of "
        "pixels; other data: one step for each feature, in their order\n"
        "  layers   --layers 256,256: units of each layer; default 128\n"
        "  tables   w1, b1, r1, w2, ...: for each layer the weights, the biases and the weights between steps\n"
        "  loss, reports: as for mlp; for text in nats per character\n" OBJECTIVE
};
const plait_learner pli_graph = {
    NET, .more = &more_of_graph, .name = "graph", .summary = "a net from a file, in JSON or ONNX",
    .help =
        "a net of your own: --graph FILE, in JSON (docs/graph.md) or ONNX (docs/onnx.md).\n"
        "  graph    computes a value scores [any, K] from a placeholder x [any, features]; K is 1 for numbers and for "
        "two classes (or 2, whose difference counts), else the number of classes; scores come before a softmax\n"
        "  units    x holds the data in their own units: --normalize has no effect\n"
        "  tables   one for each variable, by its name; those of two or more axes are penalised\n"
        "  loss, reports: as for mlp\n" OBJECTIVE
};
