/* The linear models as learners: logistic, hinge, squared, huber, quantile, poisson. They differ only by their loss. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/linear/coordinates.h"
#include "learn/linear/newton.h"
#include "learn/linear/online.h"
#include "learn/solve/lbfgs_run.h"
#include "learn/solve/solver.h"
#include "table/topology/topology.h"

static const plait_learner_table tables[] = {
    { .name = "w",
      .what =
          "the weights, one row for each feature, then one row of intercepts; if features grow by key, rows by key and "
          "no intercepts; with lbfgs its other vectors travel in the same way; with newton sums of weights, slopes and "
          "curvature, and with online 2K + 2 values for each feature, K the number of scores" },
    { .name = "b", .what = "the intercepts, one dense row, if features grow by key", .small = 1 },
    { .name = NULL },
};

/* --- decisions from options and data ------------------------------------------------------------------------------ */

#define SOLVER_BYTES 80.0 /* of the vectors of L-BFGS, for each weight */
#define NEWTON_BYTES 350.0
#define HUNDREDS     384.0 /* weights from which the curvature of each pair costs more than passes by rows */
#define FEW_VECTORS  524288.0 /* weights whose vectors cost little, however few the data: the 2^18 of VW text */
#define MIRROR_BYTES 128.0 /* more, where workers average mirrors: copies on their way, and the average */
#define CURVATURE_WORK 1e11 /* a few seconds a pass */

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

static plait_status check(pli_run *run) {
    const plait_train_opts *o = run->opts;
    pli_linear_fit         *l = run->state;
    l->fit.ops = &pli_linear_fit_ops;
    l->fit.wanted = o->model;
    l->fit.raw = o->normalize != NULL && strcmp(o->normalize, "none") == 0;
    if (o->layers != NULL)
        return pli_fail(run->err, PLAIT_EINVAL, "layers %s: model %s has no layers; take --model mlp",
                        o->layers, o->model);
    const pli_loss *loss = NULL;
    if (o->loss != NULL && pli_loss_find(o->loss, 0, &loss, NULL) == PLAIT_OK && loss->query != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED, "loss %s with model %s is refused: only trees of --model gbdt learn "
                                                  "rankings", o->loss, o->model);
    if (o->loss != NULL)
        return pli_fail(run->err, PLAIT_EINVAL, "loss %s: model %s has its own loss; take --model %s",
                        o->loss, o->model, o->loss);
    if (o->graph_file != NULL)
        return pli_fail(run->err, PLAIT_EINVAL, "graph %s: model %s is not read from a file; take --model graph, or no "
                                                "--model",
                        o->graph_file, o->model);
    return PLAIT_OK;
}

/* The rate of a run without --learning-rate, as measured (docs/models.md); 0: the rule's own default. */
static double default_rate(const pli_run *run) {
    const pli_linear_fit *l = run->state;
    if (run->solver == &pli_solver_online) return 0.6; /* of the labels' spread */
    if (!l->rowwise) return pli_fit_rate(run);
    return strcmp(run->optimizer, "adagrad") == 0 ? 0.08 * l->fit.label_spread * (run->start != NULL ? 0.1 : 1) : 0;
}

/* Enough clocks to come near the optimum; an epoch row by row is worth several by batch. */
static int64_t default_epochs(const pli_run *run) {
    const pli_linear_fit *l = run->state;
    if (run->lbfgs) return 2000;
    if (run->solver == &pli_solver_cd) return 10000; /* passes by rows are cheap */
    if (run->solver == &pli_solver_coordinates) return 1000 + 50 * run->opts->path;
    if (run->solver == &pli_solver_newton) return l->fit.goal.loss->smoothed != NULL ? 3000 : 1000;
    return clamp((l->rowwise ? 600 : 2400) / run->clocks, 5, 100);
}

/* How many weights a batch touches decides the layout. On servers it is the share of one worker: of many workers, each
 * touches little of what all of them touch. */
static pli_form default_form(const pli_run *run) {
    const pli_topology_kind *topology = pli_topology_find(run->topology);
    const int64_t            columns = pli_fit_of(run)->goal.columns;
    double values = (double)run->features * (double)columns;
    double touched = (double)run->entries / (double)run->rows * (double)run->batch * (double)columns;
    bool   dense = values <= 4096 || values <= 2 * touched;
    if (values > 4096 && !run->exact && topology->on_servers)
        dense = dense && values <= 16 * touched / pli_run_holders(run);
    if (run->solver == &pli_solver_coordinates) return PLI_KEYED;
    if (run->solver != NULL && run->solver != &pli_solver_online) return PLI_DENSE;
    if (run->features == 0 || values > (double)(INT64_C(1) << 28)) return PLI_SPARSE;
    return dense && run->solver == NULL ? PLI_DENSE : PLI_KEYED;
}

static double weights_of(const pli_run *run) {
    return ((double)run->features + 1) * (double)pli_fit_of(run)->goal.columns;
}

/* Products of a pass that adds up the curvature of each pair of weights. */
static double curvature_work(const pli_run *run) {
    const double k = (double)pli_fit_of(run)->goal.columns, d = (double)run->features + 1;
    const double entries = (double)run->entries / (double)run->rows + 1;
    return (double)run->train_rows * k * k / 2 * (entries > d / 2 ? d * d : entries * entries);
}

/* Are the weights so few that newton can keep the curvature of each pair? */
static bool has_whole_curvature(const pli_run *run) {
    const double n = weights_of(run);
    return n * (n + 1) / 2 <= PLI_NEWTON_VALUES && curvature_work(run) <= CURVATURE_WORK;
}

/* Why the dual problem (dual.h) does not suit; NULL: it does. */
static const char *unsuited_dual(const pli_run *run, double there) {
    const plait_train_opts *o = run->opts;
    const double            rows = (double)run->train_rows * (double)pli_fit_of(run)->goal.columns;
    if (pli_fit_of(run)->goal.loss->smoothed == NULL)
        return "it knows hinge, by its dual problem, and squared and logistic, by coordinates";
    if (o->l2 <= 0 || o->l1 > 0) return "it needs a penalty: --l2 above 0, and no --l1";
    if (run->start != NULL) return "it cannot begin from a model";
    if (there > 0 && 32 * weights_of(run) + 8 * rows > there) return "rows and weights are too many for its vectors";
    return NULL;
}

/* Why coordinates (coordinates.h) do not suit; NULL: they do. */
static const char *unsuited_coordinates(const pli_run *run, double there) {
    const double bytes = 12 * (double)run->entries + 64 * (double)run->rows + 128 * weights_of(run);
    if (pli_fit_of(run)->goal.columns > 1) return "it fits one score, and more than two classes have a score each";
    if (run->opts->l1 <= 0 && run->opts->path == 0) return "it needs --l1 above 0, or a --path of them";
    if (run->start != NULL && run->opts->path > 0) return "a path begins at weights 0, not at those of --init-model";
    if (there > 0 && bytes > there) return "a copy of the rows by columns does not fit into the memory";
    return NULL;
}

/* Why the data do not suit the solver; NULL: they do. there: memory, on the worker that has least. */
static const char *unsuited(const pli_run *run, double there) {
    const bool   newton = run->solver == &pli_solver_newton;
    const double n = weights_of(run);
    if (run->solver == &pli_solver_online) return NULL;
    if (run->features == 0 || n > (double)(INT64_C(1) << 28))
        return "the features are too many, so weights grow by key";
    if (run->solver == &pli_solver_cd) return unsuited_dual(run, there);
    if (run->solver == &pli_solver_coordinates) return unsuited_coordinates(run, there);
    const bool mirrors = pli_pair_averages(pli_topology_find(run->topology), run->consistency, NULL);
    const double bytes = newton ? NEWTON_BYTES + (mirrors ? MIRROR_BYTES : 0) : SOLVER_BYTES;
    if (there > 0 && n * bytes > there)
        return "the weights are too many for a solver's vectors";
    if (newton && n > FEW_VECTORS && n > 16 * (double)run->entries * (double)pli_fit_of(run)->goal.columns)
        return "there are far more weights than values in the data";
    if (newton && pli_fit_of(run)->goal.loss->smoothed != NULL && !has_whole_curvature(run))
        return "of a loss with a kink newton keeps the curvature of each pair of weights, and the weights are too many "
               "for that";
    if (newton && run->opts->l1 > 0 && !has_whole_curvature(run))
        return "with --l1 newton keeps the curvature of each pair of weights, and the weights are too many for that";
    return NULL;
}

/* In two cases lbfgs needs far more passes: its orthants (OWL-QN) take small steps, and kinks between many classes bend
 * in ways that its metric, one block for each score, does not know. */
static void prefer_newton(pli_run *run) {
    const bool kinks = pli_fit_of(run)->goal.loss->smoothed != NULL && pli_fit_of(run)->goal.columns > 1;
    if (!run->chooses || !run->lbfgs || !has_whole_curvature(run)) return;
    if (run->opts->l1 > 0)
        (void)pli_run_try_solver(run, &pli_solver_newton,
                                 "rows stay and weights are few: with --l1 sums of quadratic models take fewer passes "
                                 "than L-BFGS");
    else if (kinks)
        (void)pli_run_try_solver(run, &pli_solver_newton,
                                 "rows stay and weights are few: the curvature of each pair knows the loss's kinks");
}

/* Are features in units of about one size: is the largest spread at most 64 times the median? Collective. */
static plait_status has_even_units(pli_run *run, bool *even_out) {
    pli_scale   *scale = &pli_fit_of(run)->scale;
    int64_t      n = 0;
    plait_status status = pli_fit_measure_scale(run);
    for (int64_t j = 0; scale->factor != NULL && j < scale->features; j++)
        if (scale->factor[j] > 0) scale->factor[n++] = scale->factor[j];
    if (n > 0) qsort(scale->factor, (size_t)n, sizeof *scale->factor, pli_order_f64); /* 1 / spread */
    *even_out = n == 0 || scale->factor[n / 2] <= 64 * scale->factor[0];
    pli_scale_destroy(scale);
    return status;
}

/* Smoothing comes near kinks in few passes where the curvature of each pair of weights is kept, whatever the features'
 * scales; but a pass costs the square of the weights, and with fewer rows than features it cannot tell how far it is.
 * So with more weights, or in these two cases with features of one unit, rows are taken one by one in the dual
 * problem. */
static plait_status prefer_dual(pli_run *run, double there) {
    bool even = true;
    if (!run->chooses || run->solver == &pli_solver_online || unsuited_dual(run, there) != NULL) return PLAIT_OK;
    if (has_whole_curvature(run) && weights_of(run) < HUNDREDS && run->train_rows >= run->features) return PLAIT_OK;
    if (has_whole_curvature(run)) PLI_TRY(has_even_units(run, &even));
    if (even) (void)pli_run_try_solver(run, &pli_solver_cd, pli_solver_cd.why);
    return PLAIT_OK;
}

/* A path of penalties is taken by coordinates alone. */
static plait_status check_path(pli_run *run) {
    if (run->opts->path == 0 || run->solver == &pli_solver_coordinates) return PLAIT_OK;
    if (run->chooses && pli_run_try_solver(run, &pli_solver_coordinates, pli_solver_coordinates.why)) return PLAIT_OK;
    if (run->chooses)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "--path with these options is refused: only --optimizer cd takes a path of penalties, and it "
                        "does not go with all of them; with --optimizer cd the run says which");
    return pli_fail(run->err, PLAIT_EREFUSED,
                    "--path with optimizer %s and model %s is refused: coordinates alone take a path of penalties; "
                    "nearest is --optimizer cd, with --model squared or logistic", run->optimizer, run->opts->model);
}

/* Collective, since every worker must decide the same. */
static plait_status check_solver(pli_run *run) {
    double there = (double)pli_memory_bytes();
    PLI_TRY(check_path(run));
    if (run->solver == NULL) return PLAIT_OK;
    PLI_TRY(plait_comm_allreduce(run->comm, &there, 1, PLAIT_F64, PLAIT_MIN));
    prefer_newton(run);
    PLI_TRY(prefer_dual(run, there));
    const char *why = unsuited(run, there);
    if (why == NULL || (!run->chooses && run->lbfgs)) return PLAIT_OK;
    if (run->opts->path > 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "--path is refused: %s (%lld feature%s, %lld score%s); leave out "
                                                  "--path and take one penalty: --l1 X --optimizer %s", why,
                        (long long)run->features, pli_plural(run->features), (long long)pli_fit_of(run)->goal.columns,
                        pli_plural(pli_fit_of(run)->goal.columns), run->learner->optimizer);
    if (!run->chooses)
        return pli_fail(run->err, PLAIT_EREFUSED, "optimizer %s is refused: %s (%lld feature%s, %lld score%s); "
                                                  "nearest is --optimizer %s", run->optimizer, why,
                        (long long)run->features, pli_plural(run->features), (long long)pli_fit_of(run)->goal.columns,
                        pli_plural(pli_fit_of(run)->goal.columns), run->learner->optimizer);
    pli_run_leave_solver(run, why);
    return PLAIT_OK;
}

/* The rows of a clock. Of several workers none sees what the others learn from the rows of its clock. */
static int64_t default_batch(const pli_run *run) {
    const pli_linear_fit *l = run->state;
    const bool            alone = pli_run_holders(run) == 1;
    if (run->solver == &pli_solver_online && !l->rowwise)
        return alone ? clamp(run->train_rows / 64, 1, 8192) : clamp(run->train_rows / 2000, 4, 1024);
    return clamp(run->train_rows / 64, 16, l->rowwise ? 8192 : 1024);
}

/* A penalty grows with the square of the labels' unit, and losses that are straight far out do not: in cents, 1/n would
 * hold quantile and huber at a constant. So the default is at most 1/n where labels have a spread of 1. Returns what it
 * is of 1/n. */
static double penalty_share(const pli_run *run) {
    const pli_fit *fit = pli_fit_of(run);
    const double   spread = fit->label_spread;
    const bool     numbers = fit->goal.loss->target == PLI_NUMBER && !fit->goal.loss->log_mean;
    const double   share = numbers ? pli_goal_unit(&fit->goal, spread) / (spread * spread) : 1;
    return share < 1 ? share : 1;
}

static void settle_penalty(pli_run *run) {
    const double share = penalty_share(run);
    if (!isnan(run->opts->l2) || !(share < 1)) return;
    run->l2 *= share;
    if (pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "penalty: --l2 %.3g, which is 1/rows in units of the labels' spread, %.3g", run->l2,
                pli_fit_of(run)->label_spread);
}

void pli_linear_count_again(pli_run *run) {
    if (run->opts->batch <= 0) run->batch = default_batch(run);
    if (isnan(run->opts->l2)) run->l2 = penalty_share(run) / (double)run->train_labels;
}

/* Defaults that were measured: see docs/models.md. */
static void settle_defaults(pli_run *run) {
    const plait_train_opts *o = run->opts;
    pli_linear_fit         *l = run->state;
    bool unlocked = pli_pair_is_unlocked(pli_topology_find(run->topology), run->consistency, NULL);
    l->rowwise = unlocked && (run->solver == NULL || run->solver == &pli_solver_online) && o->batch <= 1;
    pli_fit_settle(run, o->batch > 0 && !l->rowwise ? o->batch : default_batch(run), default_epochs);
    settle_penalty(run);
    run->rate = o->learning_rate > 0 ? o->learning_rate : default_rate(run);
    l->form = default_form(run);
    const bool either = l->form != PLI_SPARSE;
    if (either && run->resume_layout >= 0 && run->resume_layout != PLI_SPARSE)
        l->form = (pli_form)run->resume_layout; /* the run before may have had another number of workers */
    run->layout = l->form;
    run->examples = l->rowwise ? 1 : run->batch;
    run->weights = l->form == PLI_SPARSE ? 0 : (run->features + l->fit.intercept) * l->fit.goal.columns;
}

static plait_status settle_tables(pli_run *run) {
    const pli_linear_fit *l = run->state;
    const bool            apart = l->form == PLI_SPARSE && (l->fit.intercept || run->solver == &pli_solver_online);
    const pli_planned     planned[] = {
        { .name = "w", .sparse = l->form != PLI_DENSE, .grows = l->form == PLI_SPARSE },
        { .name = "b", .hinted = true,
          .absent = apart              ? NULL
                    : l->fit.intercept ? "its intercepts are the last row of table w"
                                       : "it fits no intercept" },
    };
    return pli_tables_settle(run, planned, 2);
}

static plait_status check_start(pli_run *run) {
    const pli_linear_fit *l = run->state;
    if (run->start == NULL) return PLAIT_OK;
    PLI_TRY(pli_fit_check_start(run, &pli_fitted_of(run->start)->goal, plait_model_features(run->start)));
    if (l->form == PLI_SPARSE || pli_fitted_solution(run->start)->key != NULL)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "a start from a model whose features grow by key is refused; hash them: --hash-bits 22");
    return PLAIT_OK;
}

/* What training keeps for each weight, at most. */
static double bytes_of(const pli_run *run) {
    return run->solver == &pli_solver_online ? 40 : run->solver != NULL ? SOLVER_BYTES : 24;
}

static plait_status check_memory(pli_run *run) {
    const pli_linear_fit *l = run->state;
    double values = ((double)run->features + 1) * (double)l->fit.goal.columns;
    double bytes = values * bytes_of(run), there = (double)pli_memory_bytes();
    if (l->form == PLI_SPARSE || there <= 0 || bytes < there) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM,
                    "%.0f weights need about %.1f GB, but only %.1f GB are free; hash the features, as with "
                    "--hash-bits 22", values,
                    bytes / 1e9, there / 1e9);
}

static plait_status prepare(pli_run *run) {
    pli_linear_fit *l = run->state;
    PLI_TRY(pli_labels_settle(run));
    l->linear = (pli_linear){ .features = run->features, .intercept = l->fit.intercept };
    PLI_TRY(check_solver(run));
    settle_defaults(run);
    l->linear.goal = l->fit.goal; /* with its class weights */
    if (run->solver != NULL && (run->solver->demand.traits & PLAIT_SMOOTH) != 0) pli_linear_soften(&l->linear);
    PLI_TRY(settle_tables(run));
    PLI_TRY(check_start(run));
    return check_memory(run);
}

static plait_status measured(pli_run *run) {
    pli_linear_fit *l = run->state;
    l->fit.scale = (pli_scale){ .features = run->features };
    if (l->fit.raw || l->form == PLI_SPARSE || (run->l1 > 0 && run->l2 > 0)) return PLAIT_OK;
    if (run->solver == &pli_solver_coordinates) return PLAIT_OK; /* each weight has its own curvature */
    if (run->solver == &pli_solver_cd) return PLAIT_OK; /* the penalty's units are those of its problem */
    PLI_TRY(pli_fit_measure_scale(run));
    if (run->solver == &pli_solver_online && l->fit.scale.centre == NULL) pli_scale_destroy(&l->fit.scale);
    return PLAIT_OK; /* online learning scales as it learns, and takes centres alone */
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static plait_status train(pli_run *run) {
    const pli_linear_fit *l = run->state;
    if (run->lbfgs) return pli_lbfgs_run(run, &pli_lbfgs_linear);
    if (run->solver == &pli_solver_cd) return pli_loop_run(run, &pli_dual_steps);
    if (run->solver == &pli_solver_coordinates) return pli_coordinates_train(run);
    if (run->solver == &pli_solver_newton)
        return pli_loop_run(run, has_whole_curvature(run) ? &pli_newton_steps : &pli_limited_steps);
    if (run->solver == &pli_solver_online)
        return pli_loop_run(run, pli_online_fits_in_place(run) ? &pli_online_steps_in_place : &pli_online_steps);
    return pli_loop_run(run, l->rowwise ? &pli_hogwild_steps : &pli_linear_steps);
}

static plait_status finish(pli_run *run, plait_model *model) {
    PLI_TRY(pli_fitted_take(run, model));
    return pli_linear_open_model(model);
}

static int32_t functions(plait_comm *comm, const plait_train_opts *opts, plait_function *functions_out) {
    return pli_lbfgs_add_functions(comm, opts->exact != 0, functions_out);
}

/* With an intercept, a score of x - c says the same as one of x. */
static void reads(const pli_run *run, plait_data_opts *files) { files->origins = !run->opts->no_intercept; }

static void describe(const pli_run *run, pli_text *json) {
    pli_json_bool(json, "intercept", pli_fit_of(run)->intercept);
}

/* By coordinates the record says how often a weight moved. */
static void report(const pli_run *run, plait_report *r) {
    pli_fit_report(run, r);
    if (run->solver != &pli_solver_coordinates || r->n_figures == PLAIT_FIGURES) return;
    r->figures[r->n_figures++] = (plait_figure){ .name = "updates",
                                                 .value = (double)pli_linear_fit_of(run)->updates };
}

static const pli_solver *const solvers[] = { &pli_solver_online, &pli_solver_lbfgs, &pli_solver_newton,
                                             &pli_solver_cd, NULL };
static const pli_solver *const solvers_by_weight[] = { &pli_solver_online, &pli_solver_lbfgs, &pli_solver_newton,
                                                       &pli_solver_coordinates, NULL };

/* Beside the tables: of a path of penalties its own arrays, else the best epoch. */
static int32_t kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]) {
    const pli_coordinates *c = pli_linear_fit_of(run)->coordinates;
    return c != NULL ? pli_coordinates_kept(c, kept_out) : pli_fit_kept(run, kept_out);
}

static plait_status restore(pli_run *run) {
    pli_coordinates *c = pli_linear_fit_of(run)->coordinates;
    return c != NULL ? pli_coordinates_restore(c) : pli_fit_restore(run);
}

static void options(const pli_run *run, pli_text *text) {
    if (run->opts->path > 0) pli_text_add(text, "--path %lld\n", (long long)run->opts->path);
}

static bool declares(const plait_learner *learner) { return learner->labels == PLAIT_LABELS_CLASSES; }

#define MORE                                                                                                           \
    .functions = functions, .live = pli_online_may_live, .reads = reads, .check_judged = pli_fit_check_judged,         \
    .finite = pli_fit_solved, .judge = pli_fit_judge, .describe = describe, .kept = kept, .restore = restore,          \
    .options = options, .worth = pli_fit_worth, .report = report, .declares = declares,                                \
    .model = &pli_linear_model_ops

static const pli_learner_more more = { MORE, .solvers = solvers };
static const pli_learner_more more_by_weight = { MORE, .solvers = solvers_by_weight }; /* smooth, one score */

#define OBJECTIVE                                                                                                      \
    "\nObjective: the weighted mean of the loss + l2/2 |w|^2 + l1 |w|; the intercept is never penalised.\n"            \
    "Options of all models: --l1 --l2 --no-intercept --class-weight --normalize --optimizer; see 'plait help train'.\n"

/* --- the learners ------------------------------------------------------------------------------------------------- */

#define LINEAR                                                                                                         \
    .size = sizeof(plait_learner), .ways = PLAIT_LEARNER_STREAMS, .optimizer = "adagrad", .tables = tables,            \
    .state_bytes = sizeof(pli_linear_fit), .model_bytes = sizeof(pli_linear_model), .check = check,                    \
    .prepare = prepare, .measured = measured, .train = train, .finish = finish, .end = pli_fit_end,                    \
    .close = pli_fitted_close, .export_onnx = pli_linear_export

const plait_learner pli_logistic = {
    LINEAR, .more = &more_by_weight,
    .name = "logistic", .labels = PLAIT_LABELS_CLASSES,
    .summary = "logistic regression; softmax regression for more than two classes",
    .help = "logistic regression: classification, binary or multinomial.\n"
            "  loss     ln(1 + exp(-y f)) with y = -1, +1; with more than two classes -ln softmax(f)[y]\n"
            "  labels   any integers or texts; two give a binary model, more give one weight column for each class\n"
            "  reports  loss, accuracy, and for two classes the area under the ROC curve; predict --proba\n"
            OBJECTIVE
};
const plait_learner pli_hinge = {
    LINEAR, .more = &more,
    .name = "hinge", .labels = PLAIT_LABELS_CLASSES, .summary = "a linear support vector machine",
    .help = "linear support vector machine: classification, binary or multiclass.\n"
            "  loss     max(0, 1 - y f) with y = -1, +1; with more classes max(0, 1 + max over k of f[k] - f[y])\n"
            "  reports  loss, accuracy, and for two classes the area under the ROC curve; it has no probabilities\n"
            OBJECTIVE
};
const plait_learner pli_squared = {
    LINEAR, .more = &more_by_weight,
    .name = "squared", .labels = PLAIT_LABELS_NUMBERS, .summary = "least squares, ridge, lasso",
    .help = "linear regression by least squares.\n"
            "  loss     (f - y)^2 / 2\n"
            "  reports  loss, root mean squared error, mean absolute error\n"
            OBJECTIVE
};
const plait_learner pli_huber = {
    LINEAR, .more = &more,
    .name = "huber", .labels = PLAIT_LABELS_NUMBERS, .summary = "regression that outliers move little",
    .help = "linear regression that outliers move little.\n"
            "  loss     r^2 / 2 if |r| = |f - y| is at most delta (--huber-delta), else delta (|r| - delta / 2)\n"
            "  reports  loss, root mean squared error, mean absolute error\n"
            OBJECTIVE
};
const plait_learner pli_quantile = {
    LINEAR, .more = &more,
    .name = "quantile", .labels = PLAIT_LABELS_NUMBERS, .summary = "quantiles, as the median, of numbers",
    .help = "linear quantile regression: the score is the quantile --quantile of the label; 0.5 is the median.\n"
            "  loss     q r if r = y - f is above 0, else (q - 1) r\n"
            "  reports  loss, root mean squared error, mean absolute error\n"
            OBJECTIVE
};
const plait_learner pli_poisson = {
    LINEAR, .more = &more,
    .name = "poisson", .labels = PLAIT_LABELS_NUMBERS, .summary = "Poisson regression of counts",
    .help = "Poisson regression: the score is the logarithm of the mean; predict gives the mean.\n"
            "  loss     exp(f) - y - y (f - ln y), half the deviance\n"
            "  labels   numbers of 0 or more, such as counts\n"
            "  reports  loss, and of the mean: root mean squared error, mean absolute error\n"
            OBJECTIVE
};
