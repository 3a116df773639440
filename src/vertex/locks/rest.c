/* When are all ranks at rest? The four counter method: see locks.h. */
#include "vertex/locks/wire.h"

#ifdef PLI_TESTING
#define PLANTED(mistake) (pli_lock_planted == (mistake))
#else
#define PLANTED(mistake) false
#endif

static void answer(pli_locks *l, uint64_t now_ns, pli_out *out) {
    const pli_lock_state state = { l->sent, l->received };
    pli_msg             *msg = pli_msg_new(sizeof state);
    if (msg == NULL) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to tell that a rank is at rest");
        return;
    }
    memcpy(pli_msg_body(msg), &state, sizeof state);
    msg->head.clock = (int64_t)l->probe;
    l->probe = 0;
    if (!pli_lock_send(l, now_ns, l->lead, PLI_LOCKS_STATE, msg, out))
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to tell that a rank is at rest");
}

static void tell_all(pli_locks *l, uint64_t now_ns, uint16_t kind, pli_out *out) {
    for (int32_t r = 0; r < l->ranks; r++) {
        if (r == l->rank || l->absent[r]) continue;
        pli_msg *msg = pli_msg_new(0);
        if (msg != NULL) msg->head.clock = (int64_t)l->round.number;
        if (msg == NULL || !pli_lock_send(l, now_ns, r, kind, msg, out))
            pli_out_fail(out, PLAIT_ENOMEM, "no memory to ask whether all ranks are at rest");
    }
}

/* All have answered: true if nothing is on its way, and nothing has happened since the round before. */
static bool judge(pli_locks *l) {
    const bool even = l->round.sent == l->round.received,
               same = l->round.has_last && l->round.sent == l->round.was_sent &&
                      l->round.received == l->round.was_received;
    l->round.under_way = false;
    l->round.has_last = true;
    l->round.was_sent = l->round.sent;
    l->round.was_received = l->round.received;
    return PLANTED(PLI_MISTAKE_RESTS_EARLY) ? true : even && same;
}

/* The lead begins rounds while it is passive; those that nobody else has to answer end at once. */
static void ask_all(pli_locks *l, uint64_t now_ns, pli_out *out) {
    while (l->rank == l->lead && l->passive && !l->quiet && !l->round.under_way) {
        l->round.under_way = true;
        l->round.number++;
        l->round.answers = 1;
        l->round.sent = l->sent;
        l->round.received = l->received;
        tell_all(l, now_ns, PLI_LOCKS_PROBE, out);
        if (l->round.answers == l->living) l->quiet = judge(l);
    }
    if (l->quiet) pli_out_ring(out);
}

static void take_state(pli_locks *l, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    pli_lock_state state;
    if (!l->round.under_way || (uint64_t)msg->head.clock != l->round.number || msg->head.body_bytes != sizeof state)
        return;
    memcpy(&state, pli_msg_body(msg), sizeof state);
    l->round.sent += state.sent;
    l->round.received += state.received;
    if (++l->round.answers < l->living) return;
    l->quiet = judge(l);
    if (l->quiet) tell_all(l, now_ns, PLI_LOCKS_QUIET, out);
    ask_all(l, now_ns, out);
}

void pli_rest_on_message(pli_locks *l, uint64_t now_ns, uint16_t kind, const pli_msg *msg, pli_out *out) {
    if (kind == PLI_LOCKS_STATE && l->rank == l->lead) {
        take_state(l, now_ns, msg, out);
    } else if (kind == PLI_LOCKS_PROBE && msg->head.src == l->lead) {
        l->probe = (uint64_t)msg->head.clock;
        if (l->passive) answer(l, now_ns, out);
    } else if (kind == PLI_LOCKS_QUIET && msg->head.src == l->lead) {
        l->quiet = true;
        pli_out_ring(out);
    }
}

void pli_locks_rest(pli_locks *l, uint64_t now_ns, pli_out *out) {
    l->passive = l->notice == NULL && l->granted == NULL && l->held == 0;
    if (!l->passive) return;
    if (l->probe != 0) answer(l, now_ns, out);
    ask_all(l, now_ns, out);
}

void pli_locks_active(pli_locks *l) {
    l->passive = l->quiet = false;
    l->round.has_last = false;
}
