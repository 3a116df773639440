/* Long cuts, ranks that are started anew, and what they do to membership. If the script cuts a link for longer than the
 * patience (`cost: {patience}` or the run's heartbeat), or starts a rank anew, each rank has a log of members and a
 * membership machine of its own (comm/apart.c), and one more actor drives these machines: it tells each rank whom it
 * has not heard for so long, and when it hears them again, as the script has it; it carries what the machines say to
 * each other, which a cut link loses; and it gives them their turns. Signs of life and votes cost nothing, and are no
 * part of the trace. A rank that is started anew asks for its vote as soon as its body has ended; once it has that, its
 * body may run again. A run whose script has neither has no such actor, and the trace that it would have without this
 * file. */
#include <math.h>

#include "comm/sim/sim.h"

enum { TURNS = 20 /* within the patience */ };
#define NEVER_NS UINT64_C(5000000000) /* nobody is suspected, but votes have deadlines, too */

typedef struct sim_vote {
    pli_msg *msg;
    uint64_t due_ns;
} sim_vote;

struct sim_cuts {
    sim_actor actor;
    double    patience;
    sim_vote *vote; /* [votes] on their way, in the order in which they were sent */
    int64_t   votes, capacity;
    bool     *silent; /* [size, size] the first was told that it does not hear the second */
};

plait_status pli_sim_open_cuts(pli_transport *sim, uint64_t heartbeat_ns, pli_place *place, plait_error *err) {
    double patience = sim->cluster.cost.patience;
    if (patience == 0) patience = heartbeat_ns == UINT64_MAX ? (double)INFINITY : (double)heartbeat_ns * 1e-9;
    const bool revives = !isinf(pli_script_next_revival(&sim->cluster, -1));
    if (sim->size < 2 || (!revives && pli_script_longest_cut(&sim->cluster) <= patience)) return PLAIT_OK;
    struct sim_cuts *cuts = sim->cuts = pli_calloc(1, sizeof *cuts);
    if (cuts != NULL) cuts->silent = pli_calloc((size_t)sim->size * (size_t)sim->size, sizeof *cuts->silent);
    if (cuts == NULL || cuts->silent == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks that may be cut off from each other", sim->size);
    cuts->patience = patience;
    place->cut_off_ns = isinf(patience) ? NEVER_NS : (uint64_t)llround(patience * 1e9);
    return PLAIT_OK;
}

void pli_sim_close_cuts(pli_transport *sim) {
    struct sim_cuts *cuts = sim->cuts;
    sim->cuts = NULL;
    if (cuts == NULL) return;
    for (int64_t i = 0; i < cuts->votes; i++) pli_msg_free(&cuts->vote[i].msg);
    pli_free(cuts->vote);
    pli_free(cuts->silent);
    pli_free(cuts);
}

sim_actor *pli_sim_cuts_actor(pli_transport *sim) { return sim->cuts != NULL ? &sim->cuts->actor : NULL; }

bool pli_sim_hears(const pli_transport *sim, int32_t observer, int32_t rank) {
    return isinf(pli_script_cut(&sim->cluster, observer, rank, pli_sim_clock()));
}

void pli_sim_vote(pli_transport *sim, pli_msg *msg) {
    struct sim_cuts *cuts = sim->cuts;
    if (msg != NULL && pli_sim_hears(sim, msg->head.dst, msg->head.src) &&
        pli_grow((void **)&cuts->vote, &cuts->capacity, cuts->votes + 1, sizeof *cuts->vote)) {
        const double way =
            pli_cluster_latency(&sim->cluster, sim->rank[msg->head.src].host, sim->rank[msg->head.dst].host);
        cuts->vote[cuts->votes++] = (sim_vote){ msg, pli_sim_now(sim) + (uint64_t)llround(way * 1e9) };
        msg = NULL;
    } /* without memory it is lost, and will be said again */
    pli_msg_free(&msg);
    pli_sim_wake(sim, &cuts->actor);
}

static bool is_frozen(const pli_transport *sim, int32_t rank, double now) {
    return pli_script_thaw(&sim->cluster, rank, now) > now;
}

/* Hands on what has come. A frozen rank takes it when it thaws. */
static void deliver(pli_transport *sim) {
    struct sim_cuts *cuts = sim->cuts;
    const double     now = pli_sim_clock();
    const uint64_t   now_ns = pli_sim_now(sim);
    for (int64_t i = 0; i < cuts->votes;) {
        pli_msg *msg = cuts->vote[i].msg;
        if (cuts->vote[i].due_ns > now_ns || is_frozen(sim, msg->head.dst, now)) {
            i++;
            continue;
        }
        for (int64_t k = i + 1; k < cuts->votes; k++) cuts->vote[k - 1] = cuts->vote[k];
        cuts->votes--;
        pli_world_vote(sim->world, msg);
        i = 0; /* another actor may have sent more meanwhile */
    }
}

/* Tells each rank whom it does not hear any more, and whom it hears. */
static void listen(pli_transport *sim, int32_t observer) {
    struct sim_cuts *cuts = sim->cuts;
    for (int32_t r = 0; r < sim->size; r++) {
        const double now = pli_sim_clock(), since = pli_script_cut(&sim->cluster, observer, r, now);
        bool        *silent = &cuts->silent[(size_t)observer * (size_t)sim->size + (size_t)r];
        if (r == observer || sim->over) continue;
        if (isinf(since)) {
            *silent = false;
            if (!is_frozen(sim, r, now)) pli_world_heard(sim->world, observer, r);
        } else if (!*silent && now >= since + cuts->patience) {
            *silent = true;
            pli_world_silent(sim->world, observer, r);
        }
    }
}

static double least(double a, double b) { return a < b ? a : b; }

/* When something happens next, as far as is known. */
static double next_turn(const pli_transport *sim, bool unsettled) {
    const struct sim_cuts *cuts = sim->cuts;
    const double           now = pli_sim_clock();
    double                 next = pli_script_next_cut(&sim->cluster, cuts->patience, now);
    next = least(next, pli_script_next_revival(&sim->cluster, now));
    if (unsettled || cuts->votes > 0) next = least(next, now + least(cuts->patience, NEVER_NS * 1e-9) / TURNS);
    for (int64_t i = 0; i < cuts->votes; i++)
        if ((double)cuts->vote[i].due_ns * 1e-9 > now) next = least(next, (double)cuts->vote[i].due_ns * 1e-9);
    return next;
}

static void revive(sim_rank *r) {
    const pli_transport *sim = r->sim;
    if (!r->revived && r->dead && r->ended && pli_script_revival(&sim->cluster, r->rank) <= pli_sim_clock())
        r->revived = pli_world_revive(sim->world, r->rank);
    if (r->revived && r->dead && pli_world_renew(sim->world, r->rank)) pli_sim_run_again(r);
}

void pli_sim_run_cuts(sim_actor *me) {
    pli_transport *sim = me->rank->sim;
    while (!sim->over) {
        bool unsettled = false;
        deliver(sim);
        pli_world_learn(sim->world);
        for (int32_t r = 0; r < sim->size && !sim->over; r++) {
            if (is_frozen(sim, r, pli_sim_clock())) continue;
            revive(&sim->rank[r]);
            if (pli_world_decides(sim->world, r)) listen(sim, r);
            unsettled = pli_world_turn(sim->world, r, pli_sim_now(sim)) || unsettled;
        }
        pli_world_learn(sim->world); /* a view may have a rank whose end was not to be told before */
        me->owed = 0; /* nobody computes this */
        pli_sim_settle(sim);
        if (!sim->over) pli_sim_rest(me, next_turn(sim, unsettled));
    }
}
