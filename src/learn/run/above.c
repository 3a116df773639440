/* The settings of a run that its tables do not see, noted for table/pairs/, which decides what goes together. */
#include <string.h>

#include "learn/loss/loss.h"
#include "learn/run/run.h"
#include "learn/solve/solver.h"

/* What the learner's own server functions demand. */
static void note_functions(const plait_learner *learner, plait_properties *needs) {
    for (int32_t i = 0; i < learner->n_functions; i++) {
        *needs |= PLAIT_FUNCTIONS;
        if (learner->functions[i].updates) *needs |= PLAIT_WHOLE_CLOCKS;
    }
}

void pli_learner_note(const plait_learner *learner, uint32_t ways, plait_properties needs, const pli_solver *solver,
                      pli_above *above) {
    static const pli_learner_more none;
    const pli_learner_more       *more = learner->more != NULL ? learner->more : &none;
    note_functions(learner, &needs);
    above->model = learner->name;
    above->net = more->graph != NULL;
    above->intercept = more->intercept;
    above->each_update = more->each_update;
    above->two_passes = more->two_passes;
    above->unjudged = (learner->optimizer == NULL || more->adds) && (ways & PLAIT_LEARNER_VALIDATES) == 0;
    above->classless = learner->labels == PLAIT_LABELS_NONE || learner->labels == PLAIT_LABELS_NUMBERS;
    above->adds = learner->optimizer == NULL;
    above->one_pass = (ways & PLAIT_LEARNER_ONE_EPOCH) != 0;
    above->whole_passes = (ways & PLAIT_LEARNER_PASSES) != 0;
    above->instead = learner->optimizer != NULL ? learner->optimizer : "another model";
    above->demand[0] = (pli_demand){ .who = "model", .name = learner->name, .needs = needs,
                                     .traits = above->whole_passes || above->one_pass ? PLAIT_ALL_ROWS : 0 };
    if (solver != NULL) above->demand[1] = solver->demand;
}

/* Asked before the labels are read: a loss that is chosen by them (NULL here) has no kink. Solvers of linear models
 * smooth some kinks themselves. */
static bool is_kinked(const char *loss, bool net) {
    const pli_loss *found;
    return loss != NULL && pli_loss_find(loss, 2, &found, NULL) >= 0 && !found->smooth &&
           (net || found->smoothed == NULL);
}

/* The first path that can be read only once; NULL: none. */
static const char *pipe_of(const plait_data_opts *files) {
    for (int64_t i = 0; files != NULL && i < files->n_paths; i++)
        if (pli_is_pipe(files->paths[i])) return files->paths[i];
    return NULL;
}

static bool has_stdin(const plait_data_opts *files) {
    for (int64_t i = 0; files != NULL && i < files->n_paths; i++)
        if (pli_is(files->paths[i], "-")) return true;
    return false;
}

static void note_data(const pli_run *run, pli_above *above) {
    const plait_train_opts *o = run->opts;
    above->pipe = pipe_of(o->data) != NULL ? pipe_of(o->data) : pipe_of(o->test);
    if (above->pipe == NULL && o->validation != NULL && run->fraction == 0 && pli_is_pipe(o->validation))
        above->pipe = o->validation;
    above->standard_input = has_stdin(o->data);
    above->processes = !pli_comm_shares_process(run->comm);
    above->streamed = run->stream;
    above->balanced = run->balanced;
    above->class_balance = pli_is(o->class_weight, "balanced");
}

static void note_model(const pli_run *run, pli_above *above) {
    const plait_train_opts *o = run->opts;
    const plait_learner    *learner = run->learner;
    const bool              by_option = learner->labels == PLAIT_LABELS_EITHER; /* --loss chooses it */
    above->loss_by_option = by_option;
    above->loss = by_option ? o->loss : learner->name;
    above->kinked = is_kinked(above->loss, above->net);
    above->dropout = run->drops;
    above->cut = pli_run_stages(run) > 1;
    above->columns = o->columns > 1;
    above->micro_batches = o->micro_batches > 1;
    above->curve = o->curve > 0;
    above->kernels = o->kernels != NULL && strcmp(o->kernels, "own") != 0 ? o->kernels : NULL;
    above->no_intercept = o->no_intercept != 0;
}

static void note_training(const pli_run *run, pli_above *above) {
    const plait_train_opts *o = run->opts;
    const bool              steps = (run->ways & PLAIT_LEARNER_STEPS) != 0;
    above->optimizer = o->optimizer != NULL && !pli_is(o->optimizer, "auto") ? o->optimizer : NULL;
    above->schedule = o->schedule != NULL && !pli_is(o->schedule, "constant");
    above->rate = o->learning_rate > 0 && !steps;
    above->penalty = (o->l1 > 0 || o->l2 > 0) && !steps;
    above->validation = o->validation != NULL || o->patience > 0;
    above->patience = o->patience > 0;
    above->start = o->init_model != NULL && (run->ways & PLAIT_LEARNER_STARTS) == 0;
    above->net_options = o->layers != NULL || (o->loss != NULL && !steps) || o->graph_file != NULL;
    above->epochs = o->epochs > 1;
    above->single = o->epochs == 1;
    above->batch = o->batch > 0;
    above->checkpoint = o->checkpoint != NULL;
    above->resume = o->resume != NULL;
}

pli_above pli_run_above(const pli_run *run) {
    pli_above above = { .model = NULL };
    pli_learner_note(run->learner, run->ways, run->needs, run->solver, &above);
    note_data(run, &above);
    note_model(run, &above);
    note_training(run, &above);
    return above;
}
