/* How far apart the workers ran under a policy that applies updates as they come.
 *
 * Where nothing bounds how far one worker may be ahead, and the work is short beside the machine's time slices, one ends
 * before another is far. Whoever comes last then moves the model to its own rows. Two things tell it: order (each worker
 * sends word to one of them when it has done most of its clocks and when it ends, and an end comes before another's word)
 * and loss (the model fits some workers' rows much worse than the whole). Alike shares stand the first without the
 * second, sorted data the second without the first. */
#include "learn/run.h"

#include <math.h>

/* The loss on one worker's rows, as a multiple of that on all, from which a share counts as left behind. */
static const double UNEVEN = 1.2;

enum { TAG_PACE = -0x7001 };
enum { FAR = 1, ENDED = 2 };

plait_status pli_pace_begin(pli_run *run) {
    pli_policy policy;
    PLI_TRY(pli_policy_make(run->consistency, NULL, &policy, run->err));
    run->paced = plait_comm_workers(run->comm) > 1 && !pli_policy_at_clock(&policy);
    pli_policy_destroy(&policy);
    return PLAIT_OK;
}

static plait_status tell(pli_run *run, int32_t what) {
    return pli_comm_send(run->comm, 0, TAG_PACE, &what, sizeof what);
}

plait_status pli_pace_clock(pli_run *run) {
    bool far = !run->told_far && run->clocks_done >= run->clocks * run->epochs * 3 / 4;
    if (!far || !run->paced) return PLAIT_OK;
    run->told_far = true;
    return tell(run, FAR);
}

plait_status pli_pace_end(pli_run *run) {
    if (!run->paced) return PLAIT_OK;
    if (!run->told_far) PLI_TRY(tell(run, FAR));
    return tell(run, ENDED);
}

bool pli_pace_apart(const int32_t *told, int64_t n) {
    bool ended = false;
    for (int64_t i = 0; i < n; i++) {
        if (told[i] == FAR && ended) return true;
        ended = ended || told[i] == ENDED;
    }
    return false;
}

/* The words that have come, as many as all workers send. */
static plait_status hear(pli_run *run, bool *apart_out) {
    int64_t  n = 2 * (int64_t)plait_comm_workers(run->comm);
    int32_t *told = pli_array((size_t)n, sizeof *told);
    if (told == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to compare the workers' pace");
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; i < n && status == PLAIT_OK; i++)
        status = pli_comm_recv(run->comm, -1, TAG_PACE, &told[i], sizeof told[i], NULL, NULL);
    if (status == PLAIT_OK) *apart_out = pli_pace_apart(told, n);
    pli_free(told);
    return status;
}

plait_status pli_pace_judge(pli_run *run, const pli_sums *own) {
    if (!run->paced) return PLAIT_OK;
    bool     apart = false;
    double   worst = pli_sums_loss(own), all;
    pli_sums sums = *own;
    if (isnan(worst)) worst = 0; /* no rows */
    PLI_TRY(plait_comm_allreduce(run->comm, &worst, 1, PLAIT_F64, PLAIT_MAX));
    PLI_TRY(pli_sums_agree(run->comm, &sums));
    if (plait_comm_rank(run->comm) != 0) return PLAIT_OK;
    PLI_TRY(hear(run, &apart));
    all = pli_sums_loss(&sums);
    if (!apart || run->interrupted || !(worst > UNEVEN * all)) return PLAIT_OK;
    pli_log(
        pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
        "the workers did not run together, which %s does not prevent: the loss is %.3g, on one worker's rows %.3g; on "
        "little or sorted data take --consistency ssp:2 or bsp",
        run->consistency, all, worst);
    return PLAIT_OK;
}
