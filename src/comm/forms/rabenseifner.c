/* rabenseifner: recursive halving and doubling. Of the largest power of two P of workers each exchanges half of what it is
 * answerable for with a partner, half as far away each round, and reduces what it keeps; after log2 P rounds it holds one
 * slice of the result, which the same rounds backwards gather. A worker beyond P gives its values to a partner before and
 * gets the result after.
 *
 *     P = 4, slices a b c d     reduce                        gather
 *     worker 0                  ab with 2, then a with 1      a to 1, then ab to 2
 *     worker 3                  cd with 1, then d with 2      d to 2, then cd to 1
 *
 * It moves as many bytes as the ring where W is a power of two, with 2 log2 P messages a worker and not 2 (W - 1): of a
 * thousand workers 20000 messages and not two million. Beyond P it moves up to twice as many bytes, so long slices, whose
 * bytes cost more than their messages, keep to the ring.
 *
 * Paper: Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004; Thakur, Rabenseifner, Gropp,
 * "Optimization of Collective Communication Operations in MPICH", 2005. */
#include "comm/forms/forms.h"

enum { RING_WORKERS = 8, RING_SLICE_BYTES = 32 << 10, SMALL_BYTES = 16 << 10 };

static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    (void)hosts;
    if (call->kind == PLI_REDUCE_SCATTER && pli_form_bytes(call) <= SMALL_BYTES) return true;
    return workers > RING_WORKERS && pli_form_bytes(call) / (size_t)workers < RING_SLICE_BYTES;
}

static int64_t steps(const pli_coll *call, int32_t workers) {
    (void)call;
    return 2 * (int64_t)pli_floor_log2(workers) + 2;
}

typedef struct span { /* slices [first, end) of P */
    int32_t first, end;
} span;

/* What `worker` is answerable for after `rounds` rounds of halving. */
static span span_of(int32_t worker, int32_t p, int32_t rounds) {
    int32_t width = p >> rounds, first = worker & ~(width - 1);
    return (span){ first, first + width };
}

static void place(const pli_coll *c, span s, int32_t p, size_t *at, size_t *bytes) {
    *at = pli_coll_slice_at(c, s.first, p);
    *bytes = pli_coll_slice_at(c, s.end, p) - *at;
}

static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    int32_t rounds = pli_floor_log2(workers), p = 1 << rounds;
    int32_t partner = me >= p ? me - p : me < workers - p ? me + p : -1;
    int64_t last = 2 * rounds + 1;
    if (i == 0) {
        pli_form_whole(c, me >= p ? partner : -1, me >= p ? -1 : partner, true, m);
    } else if (i == last) {
        pli_form_whole(c, me >= p ? -1 : partner, me >= p ? partner : -1, false, m);
    } else if (me < p) {
        m->reduce = i <= rounds;
        int32_t round = (int32_t)(m->reduce ? i : last - i); /* 1 .. rounds, and back */
        int32_t other = me ^ p >> round;
        span    mine = span_of(me, p, round), theirs = span_of(other, p, round);
        m->to = m->from = other;
        place(c, m->reduce ? theirs : mine, p, &m->send_at, &m->send_bytes);
        place(c, m->reduce ? mine : theirs, p, &m->recv_at, &m->recv_bytes);
    }
}

/* --- reduce-scatter ------------------------------------------------------------------------------------------
 * The first half, among P groups of neighbors: the first W - P groups have two workers, whose second gives its values to the
 * first before and gets its slice of the result after; so a group's slices lie side by side. */

static int64_t scatter_steps(int32_t workers) { return (int64_t)pli_floor_log2(workers) + 2; }

static int32_t group_at(int32_t group, int32_t extra) { return group < extra ? 2 * group : group + extra; }

static void place_groups(const pli_coll *c, span s, int32_t extra, int32_t workers, size_t *at, size_t *bytes) {
    *at = pli_coll_slice_at(c, group_at(s.first, extra), workers);
    *bytes = pli_coll_slice_at(c, group_at(s.end, extra), workers) - *at;
}

static void scatter_step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    int32_t rounds = pli_floor_log2(workers), p = 1 << rounds, extra = workers - p;
    bool    paired = me < 2 * extra, second = paired && me % 2 != 0;
    int32_t group = paired ? me / 2 : me - extra;
    if (i == 0) {
        if (paired) pli_form_whole(c, second ? me - 1 : -1, second ? -1 : me + 1, true, m);
    } else if (i <= rounds && !second) {
        int32_t other = group ^ p >> i;
        m->reduce = true;
        m->to = m->from = group_at(other, extra);
        place_groups(c, span_of(other, p, (int32_t)i), extra, workers, &m->send_at, &m->send_bytes);
        place_groups(c, span_of(group, p, (int32_t)i), extra, workers, &m->recv_at, &m->recv_bytes);
    } else if (i > rounds && paired) {
        int32_t owner = second ? me : me + 1;
        m->to = second ? -1 : me + 1;
        m->from = second ? me - 1 : -1;
        *(second ? &m->recv_at : &m->send_at) = pli_coll_slice_at(c, owner, workers);
        *(second ? &m->recv_bytes : &m->send_bytes) = pli_coll_slice_at(c, owner + 1, workers) - pli_coll_slice_at(c, owner, workers);
    }
}

const pli_coll_form pli_form_rabenseifner = { .name = "rabenseifner", .id = 4, .suits = suits, .steps = steps, .step = step,
                                              .scatter_steps = scatter_steps, .scatter_step = scatter_step };
