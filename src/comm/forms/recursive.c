/* recursive: recursive doubling. In each round every worker exchanges all that it has with the worker whose number
 * differs in one bit, and both reduce: after log2 W rounds everyone has the result. No form takes fewer rounds, which
 * is what counts for short vectors. If the number of workers is no power of two, they form groups (groups.h).
 *
 * Paper: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005. */
#include "comm/forms/groups.h"

enum { SMALL_BYTES = 16 << 10 };

/* Do all workers together send no more bytes than in the form that would be taken otherwise, heads included? In that
 * one 2 (W - 1) vectors travel, in more messages. */
static bool sends_least(const pli_coll *call, int32_t workers) {
    const pli_groups g = pli_groups_of(0, workers);
    const int64_t    bytes = (int64_t)pli_coll_buffer_bytes(call), messages = (int64_t)g.p * g.rounds + 2 * g.extra;
    const int64_t    others = 2 * (int64_t)workers * (g.extra == 0 ? g.rounds : workers - 1);
    return (messages - 2 * (workers - 1)) * bytes <= (others - messages) * (int64_t)sizeof(pli_head);
}

static bool suits(const pli_coll *call, int32_t workers, const pli_hosts *hosts) {
    (void)hosts;
    return pli_coll_buffer_bytes(call) <= SMALL_BYTES && (!call->spares_bytes || sends_least(call, workers));
}

static int64_t steps(const pli_coll *call, int32_t workers) {
    (void)call;
    return pli_floor_log2(workers) + 2;
}

static void step(const pli_coll *c, int32_t me, int32_t workers, int64_t i, pli_coll_move *m) {
    pli_groups g = pli_groups_of(me, workers);
    if (i == 0) {
        pli_group_give(&g, c, me, m);
    } else if (i > g.rounds) {
        pli_group_hear(&g, c, me, m);
    } else if (!g.second) {
        int32_t other = pli_group_lowest(&g, pli_group_other(&g, (int32_t)i));
        pli_form_whole(c, other, other, true, m);
    }
}

const pli_coll_form pli_form_recursive = { .name = "recursive", .id = 3, .suits = suits, .steps = steps, .step = step };
