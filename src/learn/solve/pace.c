/* Measures how far apart the workers ran under a policy that applies updates as they come.
 *
 * If nothing bounds how far one worker may run ahead, and the work is short beside the machine's time slices, one
 * worker ends before another is far. The last worker then moves the model to its own rows. Two signs together show it.
 * Order: each worker notes when it has done most of its clocks and when it ends; the first end is compared with the
 * last time a worker came far. Loss: the model fits some worker's rows much worse than all rows. If shares are alike,
 * the first sign does no harm; if data are sorted, the second comes without the first.
 *
 * For models whose objective has one least point the damage itself is measured: how far the objective lies above that
 * point. Then the two signs are not asked. */
#include "learn/solve/progress.h"

#include <math.h>
#include <string.h>

/* A worker's rows count as left behind if their loss is so many times the loss on all rows. */
static const double UNEVEN = 1.2;

/* An objective so far above the least, as a share of it, is told. */
static const double FAR_ABOVE = 0.02;

/* Hosts have clocks of their own; each measures from the barrier that all have just passed. Workers on one host share a
 * clock and use it as it is, since a worker may have woken up late from that barrier. */
plait_status pli_pace_begin(pli_run *run) {
    pli_policy policy;
    bool       one_clock = pli_comm_shares_process(run->comm);
    PLI_TRY(pli_policy_make(run->consistency, NULL, &policy, run->err));
    /* What a single pass adds up is the same however far apart the workers run. */
    const bool adds = (run->ways & PLAIT_LEARNER_ONE_EPOCH) != 0 && run->learner->optimizer == NULL;
    run->paced = plait_comm_workers(run->comm) > 1 && !pli_policy_at_clock(&policy) && !adds;
    pli_policy_destroy(&policy);
    if (!run->paced) return PLAIT_OK;
    if (!one_clock) PLI_TRY(pli_agree_is_same(run->comm, plait_comm_host(run->comm), &one_clock));
    run->pace_ns = one_clock ? 0 : pli_comm_now(run->comm);
    return PLAIT_OK;
}

static double seconds(const pli_run *run) { return (double)(pli_comm_now(run->comm) - run->pace_ns) * 1e-9; }

void pli_pace_clock(pli_run *run) {
    bool far = run->clocks_done >= run->clocks * run->epochs * 3 / 4;
    if (run->paced && far && run->far_seconds == 0) run->far_seconds = seconds(run);
}

void pli_pace_end(pli_run *run) {
    if (!run->paced) return;
    run->end_seconds = seconds(run);
    if (run->far_seconds == 0) run->far_seconds = run->end_seconds;
}

static bool trains(const pli_run *run, const char *consistency) {
    plait_error    err;
    const pli_pair pair = { .topology = run->topology,
                            .consistency = consistency,
                            .one_process = pli_comm_shares_process(run->comm) };
    return pli_pair_check(&pair, &err) >= 0;
}

/* A bound of some clocks is none on a run that has not many more. Only what the topology goes with is named. */
static const char *stricter(const pli_run *run) {
    const bool bounded = (pli_promises_of(run->consistency, NULL) & PLAIT_BOUNDED_READS) != 0;
    return bounded || !trains(run, "ssp:2") ? "bsp" : "ssp:2 or bsp";
}

plait_status pli_pace_tell(pli_run *run, double gap) {
    if (!pli_comm_leads(run->comm) || run->interrupted || pli_comm_absent(run->comm) > 0 || !(gap > FAR_ABOVE))
        return PLAIT_OK;
    pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
            "the objective is %.3g times the least that a few more passes find: workers ran apart, as %s allows, or "
            "there were too few epochs; take --consistency %s, or more --epochs", 1 + gap, run->consistency,
            stricter(run));
    return PLAIT_OK;
}

plait_status pli_pace_judge(pli_run *run, const pli_sums *own) {
    if (!run->paced) return PLAIT_OK;
    double   all, loss = pli_sums_loss(own);
    double   worst[3] = { isnan(loss) ? 0 : loss /* NaN: no rows */, run->far_seconds, -run->end_seconds };
    pli_sums sums = *own;
    PLI_TRY(plait_comm_allreduce(run->comm, worst, 3, PLAIT_F64, PLAIT_MAX));
    PLI_TRY(pli_sums_agree(run->comm, &sums));
    all = pli_sums_loss(&sums);
    bool apart = -worst[2] < worst[1];
    if (!pli_comm_leads(run->comm) || !apart || run->interrupted || !(worst[0] > UNEVEN * all)) return PLAIT_OK;
    pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
            "some workers ran far ahead of others, which %s allows: the loss is %.3g, but %.3g on one worker's rows; "
            "on little or sorted data take --consistency %s", run->consistency, all, worst[0], stricter(run));
    return PLAIT_OK;
}
