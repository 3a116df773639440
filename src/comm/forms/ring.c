/* ring: to the right neighbour goes what came from the left one a step before. In W - 1 steps each slice is reduced on its
 * way round, in W - 1 further ones it is handed on finished; the first half is a reduce-scatter. No form sends fewer bytes; each worker sends to one other only,
 * so links between the halves of a network carry each slice once; the price is 2 (W - 1) messages one after the other.
 *
 * Paper: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009. */
#include "comm/forms/forms.h"

static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    (void)call, (void)workers, (void)hosts;
    return true;
}

static int64_t steps(const pli_coll *call, int32_t workers) {
    (void)call;
    return 2 * ((int64_t)workers - 1);
}

static int32_t wrapped(int64_t rank, int32_t workers) {
    int64_t r = rank % workers;
    return (int32_t)(r < 0 ? r + workers : r);
}

static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    m->to = wrapped((int64_t)me + 1, workers);
    m->from = wrapped((int64_t)me - 1, workers);
    m->reduce = i < workers - 1;
    int64_t j = m->reduce ? i + 1 : i - workers + 1; /* after the first half each has finished its own slice */
    int32_t out = wrapped(me - j, workers), in = wrapped(me - j - 1, workers);
    m->send_at = pli_coll_slice_at(c, out, workers);
    m->send_bytes = pli_coll_slice_at(c, out + 1, workers) - m->send_at;
    m->recv_at = pli_coll_slice_at(c, in, workers);
    m->recv_bytes = pli_coll_slice_at(c, in + 1, workers) - m->recv_at;
}

static int64_t scatter_steps(int32_t workers) { return (int64_t)workers - 1; }

const pli_coll_form pli_form_ring = { .name = "ring", .id = 1, .suits = suits, .steps = steps, .step = step,
                                      .scatter_steps = scatter_steps, .scatter_step = step };
