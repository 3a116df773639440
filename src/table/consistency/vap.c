/* consistency vap:V, vap:V:weak - value-bounded: when a server answers a get, the accepted updates of other workers
 * that the answer lacks are smaller than V in their largest absolute value. Strong: their sum over all workers is;
 * weak: each worker's are.
 *
 * Each worker adds up the norms of its incs, and has a budget for them: V / (workers - 1), or V if weak. The norm of an
 * inc is the largest absolute value that it adds to one element: repeats of a key are added up first. An inc that would
 * reach the budget first sends what was accepted before, and waits until that is applied. An inc that reaches the
 * budget alone is applied before it returns. Sums of norms are at least norms of sums, so the bound holds, with room to
 * spare. Every get fetches, because copies would miss what is applied. On a ruled table the norm is that of the
 * gradient sum given to inc, divided by the job's batch: the mean that a step uses.
 *
 * Papers: Dai et al., "High-Performance Distributed ML at Scale through Parameter Server Consistency Models", AAAI
 * 2015; Wei et al., "Managed Communication and Consistency for Fast Data-Parallel Iterative Analytics", SoCC 2015. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table/consistency/policies.h"

struct vap_state {
    double budget; /* of one worker                                                           */
    double unseen; /* worker: the sum of the norms of accepted updates that are not known to be applied */
};

static plait_status vap_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    struct vap_state *vap = state;
    char              text[PLI_CONSISTENCY_TEXT] = "";
    double            bound = 0;
    if (parameters != NULL && strlen(parameters) < sizeof text) strcpy(text, parameters);
    char *colon = strchr(text, ':');
    bool  weak = colon != NULL && strcmp(colon, ":weak") == 0;
    if (weak) *colon = '\0';
    if (!pli_parse_f64(text, &bound) || !(bound > 0) || isinf(bound))
        return pli_fail(err, PLAIT_EINVAL,
                        "consistency vap:V needs a bound V > 0 on values, such as vap:0.1 or vap:0.1:weak, "
                        "not '%s'",
                        parameters == NULL ? "" : parameters);
    vap->budget = weak || setting->workers <= 2 ? bound : bound / (setting->workers - 1);
    return PLAIT_OK;
}

static plait_properties vap_promises(const void *state) {
    (void)state;
    return PLAIT_VALUES | PLAIT_REPLAYABLE;
}

static plait_read vap_on_get(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_FETCH;
}

static int vap_on_inc(void *state, const plait_view *view) {
    struct vap_state *vap = state;
    if (vap->unseen + view->norm < vap->budget) {
        vap->unseen += view->norm;
        return 0;
    }
    if (view->norm < vap->budget) {
        vap->unseen = view->norm;
        return PLAIT_SETTLE_FIRST;
    }
    vap->unseen = 0; /* a NaN comes here, too */
    return PLAIT_SETTLE_FIRST | PLAIT_SETTLE;
}

static plait_read vap_on_pull(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_SERVE;
}

const plait_consistency pli_vap_policy = {
    .name = "vap",
    .parameters = ":V",
    .summary = "the updates of all others that a get misses stay below V; vap:V:weak: those of each other worker stay "
               "below V",
    .state_bytes = sizeof(struct vap_state),
    .reads_norms = 1,
    .waits_for_slowest = 1,
    .parse = vap_parse,
    .promises = vap_promises,
    .worker.on_get = vap_on_get,
    .worker.on_inc = vap_on_inc,
    .server.on_pull = vap_on_pull,
};
