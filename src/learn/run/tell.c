/* What the caller hears of the weights. */
#include "learn/run/run.h"

static void tell(const pli_run *run, const char *table, plait_type type, int64_t n, const void *values) {
    const plait_weights weights = {
        .table = table, .epoch = run->epochs_done, .clock = run->clocks_done, .type = type, .n = n, .values = values
    };
    run->opts->weights(run->opts->user, &weights);
}

void pli_run_tell_weights(const pli_run *run, const pli_solution *solution) {
    const int64_t k = run->linear.columns;
    if (run->opts->weights == NULL || !pli_comm_leads(run->comm)) return;
    for (int32_t p = 0; run->net != NULL && p < run->net->n_params; p++) {
        const pli_net_param *param = &run->net->param[p];
        tell(run, param->name, PLAIT_F32, param->rows * param->cols, solution->net + param->at);
    }
    if (run->net != NULL) return;
    tell(run, "w", PLAIT_F64, solution->rows * k, solution->weight);
    if (run->linear.intercept) tell(run, "b", PLAIT_F64, k, solution->bias);
}
