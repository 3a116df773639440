/* consistency bsp - bulk synchronous parallel: clock c starts when every worker's updates of clocks < c are
 * applied, and sees nothing of c or later of the others. The owner keeps a clock's pushes until all workers have
 * ended it and applies them at once, so a version of the values is exactly the sum of whole clocks.
 *
 * Paper: Valiant, "A Bridging Model for Parallel Computation", CACM 1990. */
#include "table/consistency/policies.h"

static plait_status bsp_parse(void *state, const char *parameters, plait_error *err) {
    (void)state;
    return pli_policy_takes_none("bsp", parameters, err);
}

static pli_read bsp_on_get(void *state, const pli_view *view) {
    (void)state;
    return view->held >= view->clock ? PLI_SERVE : PLI_FETCH;
}

static pli_read bsp_on_pull(void *state, const pli_view *view) {
    (void)state;
    return view->applied >= view->clock ? PLI_SERVE : PLI_WAIT;
}

const pli_consistency_ops pli_bsp_ops = {
    .name = "bsp",
    .parameters = "",
    .summary = "clock c starts when all updates of earlier clocks are applied",
    .apply = PLI_APPLY_AT_CLOCK,
    .parse = bsp_parse,
    .on_get = bsp_on_get,
    .on_pull = bsp_on_pull,
};
