/* rabenseifner: recursive halving and doubling. P groups (groups.h) start answerable for the whole vector. In each
 * round a group exchanges half of the part it is answerable for with another group, half as far away each time, and
 * reduces the half that it keeps. After log2 P rounds it holds one slice of the result; the same rounds backwards
 * gather the slices.
 *
 *     P = 4, slices a b c d     reduce                        gather
 *     worker 0                  ab with 2, then a with 1      a to 1, then ab to 2
 *     worker 3                  cd with 1, then d with 2      d to 2, then cd to 1
 *
 * It moves as many bytes as the ring if W is a power of two, with 2 log2 P messages for each worker instead of 2 (W -
 * 1): a thousand workers send 20000 messages instead of two million. If W is above P it moves up to twice as many
 * bytes, so long slices, whose bytes cost more than their messages, stay with the ring. The first half is a
 * reduce-scatter.
 *
 * Paper: Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004; Thakur, Rabenseifner, Gropp,
 * "Optimization of Collective Communication Operations in MPICH", 2005. */
#include "comm/forms/groups.h"

enum { RING_WORKERS = 8, RING_SLICE_BYTES = 32 << 10 };

static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    bool apart = hosts == NULL || hosts->count == 1 || hosts->count == workers,
         halves = workers > 2 && (workers & (workers - 1)) == 0;
    return apart && (workers > RING_WORKERS || halves) &&
           pli_coll_buffer_bytes(call) / (size_t)workers < RING_SLICE_BYTES;
}

static int64_t steps(const pli_coll *call, int32_t workers) {
    (void)call;
    return 2 * (int64_t)pli_floor_log2(workers) + 2;
}

/* A run of consecutive slices of the vector. */
typedef struct span {
    int32_t first, end;
} span;

/* The slices (numbered like groups) that a group is answerable for after `rounds` rounds of halving. */
static span span_of(const pli_groups *g, int32_t group, int32_t rounds) {
    int32_t width = g->p >> rounds, first = group & ~(width - 1);
    return (span){ first, first + width };
}

static void place(const pli_coll *c, span s, int32_t slices, size_t *at, size_t *bytes) {
    *at = pli_coll_slice_at(c, s.first, slices);
    *bytes = pli_coll_slice_at(c, s.end, slices) - *at;
}

static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    pli_groups g = pli_groups_of(me, workers);
    int64_t    last = 2 * g.rounds + 1;
    if (i == 0) {
        pli_group_give(&g, c, me, m);
    } else if (i == last) {
        pli_group_hear(&g, c, me, m);
    } else if (!g.second) {
        m->reduce = i <= g.rounds;
        int32_t round = (int32_t)(m->reduce ? i : last - i); /* 1 .. rounds, and back */
        int32_t other = pli_group_other(&g, round);
        span    mine = span_of(&g, g.group, round), theirs = span_of(&g, other, round);
        m->to = m->from = pli_group_lowest(&g, other);
        place(c, m->reduce ? theirs : mine, g.p, &m->send_at, &m->send_bytes);
        place(c, m->reduce ? mine : theirs, g.p, &m->recv_at, &m->recv_bytes);
    }
}

/* --- reduce-scatter: the vector has as many slices as there are workers, so a group has one or two
 * ------------------ */

static int64_t scatter_steps(int32_t workers) { return (int64_t)pli_floor_log2(workers) + 2; }

static span slices_of(const pli_groups *g, span groups) {
    return (span){ pli_group_lowest(g, groups.first), pli_group_lowest(g, groups.end) };
}

static void scatter_step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    pli_groups g = pli_groups_of(me, workers);
    if (i == 0) {
        pli_group_give(&g, c, me, m);
    } else if (i > g.rounds && g.paired) {
        span second = { g.second ? me : me + 1, g.second ? me + 1 : me + 2 };
        m->to = g.second ? -1 : me + 1;
        m->from = g.second ? me - 1 : -1;
        place(c, second, workers, g.second ? &m->recv_at : &m->send_at, g.second ? &m->recv_bytes : &m->send_bytes);
    } else if (i <= g.rounds && !g.second) {
        int32_t round = (int32_t)i, other = pli_group_other(&g, round);
        m->reduce = true;
        m->to = m->from = pli_group_lowest(&g, other);
        place(c, slices_of(&g, span_of(&g, other, round)), workers, &m->send_at, &m->send_bytes);
        place(c, slices_of(&g, span_of(&g, g.group, round)), workers, &m->recv_at, &m->recv_bytes);
    }
}

const pli_coll_form pli_form_rabenseifner = { .name = "rabenseifner", .id = 4, .suits = suits, .steps = steps,
                                              .step = step, .scatter_steps = scatter_steps,
                                              .scatter_step = scatter_step };
