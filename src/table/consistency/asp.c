/* consistency asp:S:W - adaptive synchronous parallel: ssp with a bound that each server fits to the workers' speeds as
 * it sees them, between 1 (0 if S is 0) and S. There is also a barrier each time the slowest worker has done W clocks
 * since the last one: a get in clock c also contains every update of clocks below the last multiple of W. A get fetches
 * what the server has, once a clock.
 *
 * Two things make workers wait, and each has its remedy.
 *
 * Leads that grow by chance. A bound costs when it makes workers wait, and pays when it keeps such a lead small; a lead
 * that nobody takes costs nothing. So the server watches, over spans of eight clocks of the slowest worker, the share
 * of the workers' time that was spent waiting for the bound (not for a barrier) and the largest lead that was taken:
 *     share > 1/20              the bound doubles, up to S
 *     lead < bound all along    the bound falls by one: the cluster has become even again
 * The bound starts at S, so that in a short run nobody waits until the server has learned of the first straggler.
 *
 * A worker that is slow for long. No bound helps for long against it: the others gain S clocks once, and then run at
 * its pace. So it leaps: the server tells it to leave out the clocks by which it is behind, and to go on with that of
 * the others (plait_consistency.server.leap). In the time of one of its clocks it then does one clock, and no more is
 * asked of it; under async it would do no more, either. The promise stays as it is, since clocks that are left out
 * have no updates. A worker is slow for long if its own time for a clock (from the answer to its get to its next get,
 * without waits; mean and variance over about the last 32 clocks) is more than a tenth above that of the fast ones,
 * and this is no chance: by four standard errors. The fast ones are those below the mean of all workers. It leaps
 *     when it is S/2 clocks behind those that are not slow: seldom, since each leap costs it one more get; or
 *     to the next barrier, if they will be there before it has done another clock.
 * When one is slow for long, the bound is S.
 *
 * The slowest worker has lead 0, so no bound ever holds it up, and all go on. Each server decides for itself: a get
 * from several servers waits for the strictest, and a worker leaps as far as the farthest tells it.
 *
 * Papers: Zhang et al., "An Adaptive Synchronous Parallel Strategy for Distributed Machine Learning", IEEE Access 2018.
 * Leaving out what a slow worker lacks is the idea of backup workers: Chen et al., "Revisiting Distributed Synchronous
 * SGD", 2016. */
#include "table/consistency/policies.h"

enum { SPAN = 8 /* clocks of the slowest worker */, MUCH = 20 /* a twentieth of the time */, MEMORY = 32 /* clocks */ };

struct asp_worker {
    uint64_t since_ns;       /* has waited for the bound since then; 0: does not wait */
    uint64_t served_ns;      /* its get of clock `asked` was answered then; 0: it was not */
    int64_t  asked;          /* the clock of its last get */
    double   mean, variance; /* of its own time for a clock, in ns */
    int32_t  n;              /* clocks that they are of, up to MEMORY */
    bool     slow;           /* for long */
};

struct asp_state {
    int64_t           limits[2]; /* S, W */
    int64_t           bound;
    int64_t           span_clock; /* the slowest's when the span began */
    uint64_t          span_ns;    /* when it began; 0: none has yet    */
    uint64_t          waited_ns;  /* in the span, summed over all workers */
    int64_t           lead;       /* the largest in the span           */
    bool              asked;      /* somebody has pulled in the span   */
    int64_t           judged;     /* the fastest's clock when workers were last told apart */
    double            fast;       /* own time of the fast ones, in ns  */
    bool              any_slow;
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
    return PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_REPLAYABLE;
}

static plait_read asp_on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

/* --- who is slow for long? ---------------------------------------------------------------------------------------- */

static void note_time(struct asp_worker *worker, double ns) {
    const double off = ns - worker->mean;
    worker->n += worker->n < MEMORY;
    const double share = 1.0 / worker->n;
    worker->mean += share * off;
    worker->variance = (1 - share) * (worker->variance + share * off * off);
}

/* A get of a clock is asked about often, but has come once. If the worker left out the clocks before, its time says
 * nothing. */
static void note_get(struct asp_worker *worker, const plait_view *view) {
    if (view->clock == worker->asked) return;
    if (worker->served_ns != 0 && view->clock == worker->asked + 1)
        note_time(worker, (double)(view->now_ns - worker->served_ns));
    worker->asked = view->clock;
    worker->served_ns = 0;
}

static bool is_known(const struct asp_worker *worker) { return worker->n >= SPAN; }

/* The mean own time of the known workers whose own time is at most `most`. */
static double mean_below(const struct asp_state *asp, const plait_view *view, double most) {
    double  sum = 0;
    int32_t n = 0;
    for (int32_t w = 0; w < view->workers; w++) {
        if (!is_known(&asp->worker[w]) || asp->worker[w].mean > most) continue;
        sum += asp->worker[w].mean;
        n++;
    }
    return n > 0 ? sum / n : most;
}

static void tell_apart(struct asp_state *asp, const plait_view *view) {
    double fast = 1e300;
    for (int turn = 0; turn < 2; turn++) fast = mean_below(asp, view, fast);
    asp->fast = fast;
    asp->any_slow = false;
    for (int32_t w = 0; w < view->workers; w++) {
        struct asp_worker *worker = &asp->worker[w];
        const double       above = worker->mean - fast;
        worker->slow = is_known(worker) && view->clocks[w] != PLAIT_LEFT && above > 0.1 * fast &&
                       above * above * worker->n > 16 * worker->variance;
        asp->any_slow = asp->any_slow || worker->slow;
    }
}

/* The clock with which a slow worker goes on. */
static int64_t goes_on_with(const struct asp_state *asp, const plait_view *view) {
    int64_t sum = 0, n = 0;
    for (int32_t w = 0; w < view->workers; w++) {
        if (asp->worker[w].slow || view->clocks[w] == PLAIT_LEFT) continue;
        sum += view->clocks[w];
        n++;
    }
    const int64_t others = n > 0 ? sum / n : view->clock, least = asp->limits[0] > 1 ? asp->limits[0] / 2 : 1;
    const int64_t barrier = (view->clock / asp->limits[1] + 1) * asp->limits[1];
    if (others <= view->clock) return view->clock;
    if ((double)(barrier - others) * asp->fast < asp->worker[view->worker].mean) return barrier;
    return others - view->clock < least ? view->clock : others < barrier ? others : barrier;
}

static int64_t asp_leap(void *state, const plait_view *view) {
    struct asp_state  *asp = state;
    struct asp_worker *me = &asp->worker[view->worker];
    const int64_t      to = me->slow ? goes_on_with(asp, view) : view->clock;
    if (to > view->clock) me->served_ns = 0; /* it does not compute this clock */
    return to;
}

/* --- who waits? --------------------------------------------------------------------------------------------------- */

/* Counts the waiting time of a wait that ends, or goes on into the next span, in this span. */
static void count_wait(struct asp_state *asp, struct asp_worker *worker, uint64_t now_ns) {
    if (worker->since_ns == 0) return;
    asp->waited_ns += now_ns - (worker->since_ns > asp->span_ns ? worker->since_ns : asp->span_ns);
}

static plait_read asp_on_pull(void *state, const plait_view *view) {
    struct asp_state  *asp = state;
    struct asp_worker *worker = &asp->worker[view->worker];
    int64_t            lead = view->slowest == PLAIT_LEFT ? 0 : view->clock - view->slowest;
    note_get(worker, view);
    if (lead > asp->lead) asp->lead = lead;
    asp->asked = true;
    bool late = lead > asp->bound, barrier = view->slowest < view->clock - view->clock % asp->limits[1];
    if (late && !barrier) {
        if (worker->since_ns == 0) worker->since_ns = view->now_ns;
    } else {
        count_wait(asp, worker, view->now_ns);
        worker->since_ns = 0;
    }
    if (late || barrier) return PLAIT_WAIT;
    if (worker->served_ns == 0) worker->served_ns = view->now_ns;
    return PLAIT_SERVE;
}

/* The replica of a shard that does not serve is told of clocks and never asked. It has nothing to learn from, so the
 * bound stays where it began; when it has to serve it begins to learn. Any bound up to S keeps the promise. */
static void adapt(struct asp_state *asp, const plait_view *view) {
    uint64_t elapsed_ns = view->now_ns - asp->span_ns;
    int64_t  least = asp->limits[0] < 1 ? asp->limits[0] : 1;
    for (int32_t w = 0; w < view->workers; w++) count_wait(asp, &asp->worker[w], view->now_ns);
    if (asp->any_slow) asp->bound = asp->limits[0];
    else if (asp->waited_ns / (uint64_t)view->workers > elapsed_ns / MUCH) asp->bound *= 2;
    else if (asp->lead < asp->bound) asp->bound--;
    if (asp->bound > asp->limits[0]) asp->bound = asp->limits[0];
    if (asp->bound < least) asp->bound = least;
}

static int asp_on_clock(void *state, const plait_view *view) {
    struct asp_state *asp = state;
    if (view->clock >= asp->judged + SPAN) {
        tell_apart(asp, view);
        asp->judged = view->clock;
    }
    if (view->slowest == PLAIT_LEFT || (asp->span_ns != 0 && view->slowest < asp->span_clock + SPAN)) return 0;
    if (asp->span_ns != 0 && asp->asked) adapt(asp, view);
    asp->asked = false;
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
    .summary = "ssp whose bound adapts to the workers' speeds, up to S; a barrier every W clocks; "
               "a worker slow for long leaves out clocks",
    .state_bytes = sizeof(struct asp_state),
    .worker_bytes = sizeof(struct asp_worker),
    .waits_for_slowest = 1,
    .parse = asp_parse,
    .promises = asp_promises,
    .worker.on_get = asp_on_get,
    .server.on_pull = asp_on_pull,
    .server.leap = asp_leap,
    .server.on_clock = asp_on_clock,
    .server.on_member = asp_on_member,
};
