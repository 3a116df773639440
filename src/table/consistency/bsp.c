/* consistency bsp - bulk synchronous parallel: clock c starts when every worker's updates of clocks < c are applied,
 * and a worker sees no other worker's updates of clock c or later. The owner keeps a clock's pushes until all workers
 * have ended it and applies them at once, so a version of the values is exactly the sum of whole clocks.
 *
 * With N backup workers a clock is complete when all but N have ended it; the late ones' updates are dropped.
 *
 * Papers: Valiant, "A Bridging Model for Parallel Computation", CACM 1990; Chen et al., "Revisiting Distributed
 * Synchronous SGD", ICLR workshop 2016 (backup workers). */
#include "table/consistency/policies.h"

struct bsp_state {
    int32_t backup;
};

static plait_status bsp_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    ((struct bsp_state *)state)->backup = setting->backup;
    return pli_policy_takes_none("bsp", parameters, err);
}

static plait_apply bsp_applies(const void *state) {
    (void)state;
    return PLAIT_APPLY_AT_CLOCK;
}

static plait_properties bsp_promises(const void *state) {
    (void)state;
    return PLI_PROMISES_OF_BSP | PLAIT_ROUNDS;
}

static plait_read bsp_on_get(void *state, const plait_view *view) {
    (void)state;
    return view->held >= view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_read bsp_on_pull(void *state, const plait_view *view) {
    (void)state;
    return view->applied >= view->clock ? PLAIT_SERVE : PLAIT_WAIT;
}

static int64_t bsp_complete(const void *state, const plait_view *view) {
    return pli_policy_complete_without(((const struct bsp_state *)state)->backup, view);
}

const plait_consistency pli_bsp_policy = {
    .name = "bsp",
    .parameters = "",
    .summary = "clock c starts when all updates of earlier clocks are applied",
    .state_bytes = sizeof(struct bsp_state),
    .waits_for_slowest = 1,
    .parse = bsp_parse,
    .promises = bsp_promises,
    .applies = bsp_applies,
    .worker.on_get = bsp_on_get,
    .server.on_pull = bsp_on_pull,
    .server.complete = bsp_complete,
};
