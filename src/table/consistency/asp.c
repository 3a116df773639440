/* consistency asp:S:W - adaptive synchronous parallel: ssp with a bound that each server fits to the workers' speeds as
 * it sees them, between 1 (0 if S is 0) and S. There is also a barrier each time the slowest worker has done W clocks
 * since the last one: a get in clock c also contains every update of clocks below the last multiple of W. A get fetches
 * what the server has, once a clock.
 *
 * The rule: a bound costs when it makes workers wait, and pays when it keeps a lead small that has grown by chance; a
 * lead that nobody takes costs nothing. So the server watches, over spans of eight clocks of the slowest worker, the
 * share of the workers' time that was spent waiting for the bound (not for a barrier) and the largest lead that was
 * taken:
 *     share > 1/20              the bound doubles, up to S: somebody is slower, for now or for ever, and waiting for
 *                               him is what a larger bound can save
 *     lead < bound all along    the bound falls by one: the cluster has become even again, and the next to fall behind
 *                               is noticed sooner
 * The bound starts at S, so that in a short run nobody waits until the server has learned of the first straggler. The
 * slowest worker has lead 0, so no bound ever holds it up, and all go on. Each server decides for itself: a get from
 * several servers waits for the strictest.
 *
 * Paper: Zhang et al., "An Adaptive Synchronous Parallel Strategy for Distributed Machine Learning", IEEE Access
 * 2018. */
#include "table/consistency/policies.h"

enum { SPAN = 8 /* clocks of the slowest worker */, MUCH = 20 /* a twentieth of the time */ };

struct asp_worker {
    uint64_t since_ns; /* has waited for the bound since then; 0: does not wait */
};

struct asp_state {
    int64_t           limits[2]; /* S, W */
    int64_t           bound;
    int64_t           span_clock; /* the slowest's when the span began */
    uint64_t          span_ns;    /* when it began; 0: none has yet    */
    uint64_t          waited_ns;  /* in the span, summed over all workers */
    int64_t           lead;       /* the largest in the span           */
    struct asp_worker worker[];
};

static plait_status asp_parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    struct asp_state *asp = state;
    (void)setting;
    if (!pli_policy_counts(parameters, 2, asp->limits) || asp->limits[1] < 1)
        return pli_fail(err, PLAIT_EINVAL,
                        "consistency asp:S:W needs the largest staleness S >= 0 and the clocks W >= 1 between "
                        "barriers, such as asp:8:100, not '%s'",
                        parameters == NULL ? "" : parameters);
    asp->bound = asp->limits[0];
    return PLAIT_OK;
}

static plait_properties asp_promises(const void *state) {
    (void)state;
    return PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES; /* each server has its own bounds; a replica's would differ */
}

static plait_read asp_on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

/* Counts the waiting time of a wait that ends, or goes on into the next span, in this span. */
static void count_wait(struct asp_state *asp, struct asp_worker *worker, uint64_t now_ns) {
    if (worker->since_ns == 0) return;
    asp->waited_ns += now_ns - (worker->since_ns > asp->span_ns ? worker->since_ns : asp->span_ns);
}

static plait_read asp_on_pull(void *state, const plait_view *view) {
    struct asp_state  *asp = state;
    struct asp_worker *worker = &asp->worker[view->worker];
    int64_t            lead = view->slowest == PLAIT_LEFT ? 0 : view->clock - view->slowest;
    if (lead > asp->lead) asp->lead = lead;
    bool late = lead > asp->bound, barrier = view->slowest < view->clock - view->clock % asp->limits[1];
    if (late && !barrier) {
        if (worker->since_ns == 0) worker->since_ns = view->now_ns;
    } else {
        count_wait(asp, worker, view->now_ns);
        worker->since_ns = 0;
    }
    return late || barrier ? PLAIT_WAIT : PLAIT_SERVE;
}

static void adapt(struct asp_state *asp, const plait_view *view) {
    uint64_t elapsed_ns = view->now_ns - asp->span_ns;
    int64_t  least = asp->limits[0] < 1 ? asp->limits[0] : 1;
    for (int32_t w = 0; w < view->workers; w++) count_wait(asp, &asp->worker[w], view->now_ns);
    if (asp->waited_ns / (uint64_t)view->workers > elapsed_ns / MUCH) asp->bound *= 2;
    else if (asp->lead < asp->bound) asp->bound--;
    if (asp->bound > asp->limits[0]) asp->bound = asp->limits[0];
    if (asp->bound < least) asp->bound = least;
}

static int asp_on_clock(void *state, const plait_view *view) {
    struct asp_state *asp = state;
    if (view->slowest == PLAIT_LEFT || (asp->span_ns != 0 && view->slowest < asp->span_clock + SPAN)) return 0;
    if (asp->span_ns != 0) adapt(asp, view);
    asp->span_clock = view->slowest;
    asp->span_ns = view->now_ns;
    asp->waited_ns = 0;
    asp->lead = 0;
    return 0;
}

static void asp_on_member(void *state, const plait_view *view) {
    ((struct asp_state *)state)->worker[view->worker].since_ns = 0;
}

const plait_consistency pli_asp_policy = {
    .name = "asp",
    .parameters = ":S:W",
    .summary = "ssp whose bound adapts to the workers' speeds, up to S; a barrier every W clocks",
    .state_bytes = sizeof(struct asp_state),
    .worker_bytes = sizeof(struct asp_worker),
    .waits_for_slowest = 1,
    .parse = asp_parse,
    .promises = asp_promises,
    .worker.on_get = asp_on_get,
    .server.on_pull = asp_on_pull,
    .server.on_clock = asp_on_clock,
    .server.on_member = asp_on_member,
};
