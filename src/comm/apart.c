/* Ranks of one process that may be cut off from each other, as those of a simulated cluster with cut links: each has a
 * log of members and a membership machine of its own (views.h), as if it were a process. Ranks learn how others have
 * ended from here, as soon as they hear them: what the transport knows for certain is told, not found out.
 *
 * A rank that has died may be started anew. Its machine asks to return to the view, and its vote counts from then on
 * (membership.h; Paris, "Voting with witnesses", ICDCS 1986, on voters that hold nothing). As a rule it is that and
 * nothing else, and the job's machines know it as dead. In a run that renews its dead (pli_comm_renews) its body runs
 * again as soon as a view has it. Each other rank knows it as dead until its own view has the new life, and then tells
 * its machines that the rank has JOINED; a message that comes before waits until then. What the former life sent, and
 * is still on its way, is dropped from then on. How the new life ends is told as the end of any other, but only to
 * ranks that know it.
 *
 * All of this runs on one thread of the system, whose actors take turns; a turn may end wherever a log's machines are
 * told. So what is told is noted before. */
#include <string.h>

#include "comm/views.h"
#include "comm/world.h"

typedef struct ending {
    bool            is;
    pli_member_kind kind;
    plait_error     why;
    pli_msg        *word; /* the last word of its machine */
} ending;

struct pli_apart {
    ending *of;    /* [size] */
    bool   *knows; /* [size, size] has the first learned of the second's end? */
    bool   *anew;  /* [size] it has died, and was started anew; its body does not run */
    uint32_t *life; /* [size] whose end `of` tells, if it tells one */
};

bool pli_apart_open(pli_world *world) {
    const size_t      size = (size_t)world->size;
    struct pli_apart *apart = world->apart = pli_calloc(1, sizeof *apart);
    if (apart == NULL) return false;
    apart->of = pli_calloc(size, sizeof *apart->of);
    apart->knows = pli_calloc(size * size, sizeof *apart->knows);
    apart->anew = pli_calloc(size, sizeof *apart->anew);
    apart->life = pli_calloc(size, sizeof *apart->life);
    for (size_t r = 0; apart->life != NULL && r < size; r++) apart->life[r] = 1;
    return apart->of != NULL && apart->knows != NULL && apart->anew != NULL && apart->life != NULL;
}

void pli_apart_close(pli_world *world) {
    struct pli_apart *apart = world->apart;
    world->apart = NULL;
    if (apart == NULL) return;
    for (int32_t r = 0; apart->of != NULL && r < world->size; r++) pli_msg_free(&apart->of[r].word);
    pli_free(apart->of);
    pli_free(apart->knows);
    pli_free(apart->anew);
    pli_free(apart->life);
    pli_free(apart);
}

/* Does the rank do nothing any more? */
static bool is_over(const pli_world *world, int32_t rank) {
    return world->apart->of[rank].is || atomic_load(&world->local[rank].killed);
}

/* Has it a machine that decides? */
static bool decides(const pli_world *world, int32_t rank) {
    return !is_over(world, rank) || (world->apart->anew[rank] && pli_views_votes(&world->members[rank]));
}

static void add(pli_members *members, int32_t rank, const ending *end) {
    if (pli_members_append(members, end->kind, rank, &end->why, false, 0)) pli_members_announce(members);
}

static void learn(pli_members *members, int32_t rank) {
    const ending *end = &members->world->apart->of[rank];
    if (end->kind == PLI_MEMBER_DIED && pli_views_attest(members, rank, &end->why, false)) return;
    if (end->kind == PLI_MEMBER_LEFT && end->word != NULL) pli_views_left(members, end->word);
    add(members, rank, end);
}

void pli_world_learn(pli_world *world) {
    struct pli_apart *apart = world->apart;
    const int32_t     size = world->size;
    const bool        together = !atomic_load(&world->survives); /* the first news ends all */
    for (int32_t o = 0; o < size; o++)
        for (int32_t r = 0; r < size && decides(world, o); r++) {
            bool *knows = &apart->knows[(size_t)o * (size_t)size + (size_t)r];
            if (*knows || !apart->of[r].is || world->members[o].life[r] != apart->life[r]) continue;
            if (!together && !world->ops->hears(world->transport, o, r)) continue;
            *knows = true;
            learn(&world->members[o], r);
        }
}

void pli_apart_end(pli_world *world, pli_member_kind kind, int32_t rank, const plait_error *why) {
    ending *end = &world->apart->of[rank];
    if (end->is) return;
    *end = (ending){ .is = true, .kind = kind, .word = pli_views_leave(&world->members[rank]) };
    if (why != NULL) end->why = *why;
    if (end->word != NULL) end->word->head.src = rank;
    add(&world->members[rank], rank, end);
    pli_world_learn(world);
    world->ops->vote(world->transport, NULL);
}

void pli_apart_stop(pli_members *members, const plait_error *why) {
    plait_comm *comm = pli_world_comm(members->world, members->me);
    pli_log(members->world->log, PLAIT_LOG_ERROR, members->me, "comm", "%s", why->text);
    pli_comm_kill(comm, why);
    pli_comm_ring(comm);
}

bool pli_world_revive(pli_world *world, int32_t rank) {
    struct pli_apart *apart = world->apart;
    const size_t      size = (size_t)world->size;
    if (!apart->of[rank].is || apart->of[rank].kind != PLI_MEMBER_DIED || !atomic_load(&world->survives)) return false;
    apart->anew[rank] = pli_views_revive(&world->members[rank], apart->life[rank] + 1);
    memset(apart->knows + (size_t)rank * size, 0, size * sizeof *apart->knows);
    for (size_t o = 0; o < size; o++) apart->knows[o * size + (size_t)rank] = true; /* that it asks says it */
    pli_log(world->log, PLAIT_LOG_INFO, rank, "comm", "rank %d was started anew, and asks to vote again", rank);
    return apart->anew[rank];
}

bool pli_world_renew(pli_world *world, int32_t rank) {
    struct pli_apart *apart = world->apart;
    const size_t      size = (size_t)world->size;
    pli_members      *members = &world->members[rank];
    plait_comm       *comm = pli_world_comm(world, rank);
    if (!apart->anew[rank] || !atomic_load(&world->renews) || rank >= world->place.workers || comm->died_in == 0 ||
        !pli_views_votes(members))
        return false;
    apart->anew[rank] = false;
    apart->life[rank]++;
    pli_msg_free(&apart->of[rank].word);
    apart->of[rank] = (ending){ 0 };
    memset(apart->knows + (size_t)rank * size, 0, size * sizeof *apart->knows);
    for (size_t o = 0; o < size; o++) apart->knows[o * size + (size_t)rank] = false;
    pli_comm_begin_life(comm, apart->life[rank]);
    pli_views_begin_life(members, apart->life[rank]);
    pli_log(world->log, PLAIT_LOG_INFO, rank, "comm", "rank %d lives anew, for the %s time", rank,
            apart->life[rank] == 2 ? "second" : "next");
    pli_world_learn(world);
    return true;
}

bool pli_world_decides(const pli_world *world, int32_t rank) { return decides(world, rank); }

void pli_world_silent(pli_world *world, int32_t observer, int32_t rank) {
    plait_error why;
    if (!decides(world, observer)) return;
    pli_fail(&why, PLAIT_EPEER, "rank %d has not been heard for %.3g s: it is frozen, or its link is cut", rank,
             (double)world->place.cut_off_ns * 1e-9);
    why.rank = rank;
    (void)pli_views_suspect(&world->members[observer], rank, &why);
}

void pli_world_heard(pli_world *world, int32_t observer, int32_t rank) {
    if (!decides(world, observer) || !decides(world, rank)) return;
    const bool anew = world->apart->anew[rank]; /* its log is its former life's, and so is the view there */
    pli_views_hear(&world->members[observer], rank, anew ? 1 : atomic_load(&world->members[rank].view));
}

void pli_world_vote(pli_world *world, pli_msg *msg) {
    const int32_t dst = msg->head.dst;
    if (!is_over(world, dst) || world->apart->anew[dst]) pli_views_take(&world->members[dst], msg);
    pli_msg_free(&msg);
}

bool pli_world_turn(pli_world *world, int32_t rank, uint64_t now_ns) {
    if (is_over(world, rank) && !world->apart->anew[rank]) return false;
    (void)pli_views_turn(&world->members[rank], now_ns);
    return !pli_views_rest(&world->members[rank]);
}
