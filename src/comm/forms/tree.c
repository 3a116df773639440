/* tree: the vector is reduced along a binomial tree to worker 0 and comes back the same way. It has the fewest messages
 * of all forms: 2 (W - 1) of all workers together, where recursive doubling has W log2 W. But they follow each other in
 * 2 ceil(log2 W) rounds instead of log2 W, and half of the workers wait meanwhile.
 *
 *     W = 5      round 0: 1 -> 0, 3 -> 2     round 1: 2 -> 0     round 2: 4 -> 0     then backwards
 *
 * Paper: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005. */
#include "comm/forms/forms.h"

static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    (void)call, (void)workers, (void)hosts;
    return false;
}

static int64_t steps(const pli_coll *call, int32_t workers) {
    (void)call;
    return 2 * (int64_t)pli_ceil_log2(workers);
}

/* In round k of the way up, a worker whose lowest set bit is k sends to the worker without that bit. */
static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    int32_t rounds = pli_ceil_log2(workers);
    bool    up = i < rounds;
    int32_t bit = 1 << (up ? i : 2 * rounds - 1 - i);
    if ((me & (bit - 1)) != 0) return;
    if ((me & bit) != 0) {
        pli_form_whole(c, up ? me - bit : -1, up ? -1 : me - bit, false, m);
    } else if (me + bit < workers) {
        pli_form_whole(c, up ? -1 : me + bit, up ? me + bit : -1, up, m);
    }
}

const pli_coll_form pli_form_tree = { .name = "tree", .id = 2, .suits = suits, .steps = steps, .step = step };
