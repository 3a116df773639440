/* ring: in each step a worker sends to its right neighbour what came from the left one a step before. In W - 1 rounds
 * each slice is reduced on its way round, in W - 1 further ones it is handed on finished; the first half is a
 * reduce-scatter. No form sends fewer bytes. Each worker sends to one other only, so links between the halves of a
 * network carry each slice once. The price is 2 (W - 1) messages one after the other.
 *
 * Long slices of an allreduce go in chunks, one for each step, and a few chunks are on their way while one is taken in:
 * no link waits for what the ends do in between. But they are only a few, since on a slow link all that is under way is
 * a queue, and acknowledgements wait behind it. With two chunks a slice, worker 1 of 4:
 *
 *     step 0   send a0
 *     step 1   send a1, receive d0 from worker 0
 *     step 2   send d0, receive d1
 *
 * Paper: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009. */
#include "comm/forms/forms.h"

static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    (void)call, (void)workers, (void)hosts;
    return true;
}

enum { CHUNK_BYTES = 128 << 10, DEPTH = 8 };

static int64_t chunks_of(const pli_coll *call, int32_t workers) {
    if (call->kind != PLI_ALLREDUCE) return 1;
    int64_t chunks = (int64_t)(pli_coll_buffer_bytes(call) / (size_t)workers / CHUNK_BYTES);
    return chunks < 1 ? 1 : chunks;
}

/* How many chunks are on their way to a worker, including the one that it takes in. */
static int64_t depth_of(const pli_coll *call, int32_t workers) {
    int64_t chunks = chunks_of(call, workers);
    return chunks < DEPTH ? chunks : DEPTH;
}

static int64_t rounds_of(const pli_coll *call, int32_t workers) {
    return (call->kind == PLI_REDUCE_SCATTER ? 1 : 2) * ((int64_t)workers - 1);
}

static int64_t steps(const pli_coll *call, int32_t workers) {
    return rounds_of(call, workers) * chunks_of(call, workers) + depth_of(call, workers) - 1;
}

static int32_t wrapped(int64_t rank, int32_t workers) {
    int64_t r = rank % workers;
    return (int32_t)(r < 0 ? r + workers : r);
}

/* Where in the buffer the i-th chunk lies that worker `me` sends, which is the i-th that its right neighbour
 * receives. */
static void place(const pli_coll *c, int32_t me, int32_t workers, int64_t i, size_t *at, size_t *bytes) {
    int64_t chunks = chunks_of(c, workers), round = i / chunks, chunk = i % chunks;
    /* after the first half each worker has finished its own slice */
    int32_t slice = wrapped(me - (round < workers - 1 ? round + 1 : round - workers + 1), workers);
    size_t  first = pli_coll_slice_at(c, slice, workers), size = pli_type_bytes(c->type);
    int64_t n = (int64_t)((pli_coll_slice_at(c, slice + 1, workers) - first) / size);
    int64_t from = n * chunk / chunks, to = n * (chunk + 1) / chunks;
    *at = first + (size_t)from * size;
    *bytes = (size_t)(to - from) * size;
}

static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    int64_t chunks = chunks_of(c, workers), in = i - (depth_of(c, workers) - 1);
    if (i < rounds_of(c, workers) * chunks) {
        m->to = wrapped((int64_t)me + 1, workers);
        place(c, me, workers, i, &m->send_at, &m->send_bytes);
    }
    if (in < 0) return;
    m->from = wrapped((int64_t)me - 1, workers);
    m->reduce = in / chunks < workers - 1;
    place(c, m->from, workers, in, &m->recv_at, &m->recv_bytes);
}

static int64_t scatter_steps(int32_t workers) { return (int64_t)workers - 1; }

const pli_coll_form pli_form_ring = { .name = "ring", .id = 1, .suits = suits, .steps = steps, .step = step,
                                      .scatter_steps = scatter_steps, .scatter_step = step };
