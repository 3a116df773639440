/* Drives the membership machine of a process. See views.h. */
#include "comm/views.h"

#include <string.h>

#include "comm/membership.h"
#include "comm/rounds.h"
#include "comm/world.h"

/* What is known of a rank's death, until a view has it. */
typedef struct news {
    plait_error why;
    bool        mute;
} news;

struct pli_views {
    pthread_mutex_t lock; /* before world->lock and the doctor's; nobody runs machines under it */
    pli_membership  m;
    news          **heard;   /* [size] NULL: nothing */
    _Atomic bool   *unheard; /* [size] see pli_views_is_unheard */
    bool            ended;   /* that this rank has stopped or is out was acted on */
};

enum { RETRIES = 20, DEADLINES = 5 /* two of them */ };

bool pli_views_open(pli_members *members, uint64_t patience_ns) {
    const pli_world *world = members->world;
    if (world->place.count == world->size && world->n_members == 1) return true;
    pli_views *v = members->views = pli_calloc(1, sizeof *v);
    if (v == NULL) return false;
    pthread_mutex_init(&v->lock, NULL);
    v->heard = pli_calloc((size_t)world->size, sizeof *v->heard);
    v->unheard = pli_calloc((size_t)world->size, sizeof *v->unheard);
    return v->heard != NULL && v->unheard != NULL &&
           pli_membership_init(&v->m, world->size, members->me, pli_comm_incarnation(&world->local[0]),
                               patience_ns / RETRIES, 2 * (patience_ns / DEADLINES), false);
}

void pli_views_close(pli_members *members) {
    pli_views *v = members->views;
    members->views = NULL;
    if (v == NULL) return;
    for (int32_t r = 0; v->heard != NULL && r < members->world->size; r++) pli_free(v->heard[r]);
    pli_free(v->heard);
    pli_free((void *)v->unheard);
    pli_membership_destroy(&v->m);
    pthread_mutex_destroy(&v->lock);
    pli_free(v);
}

static void note(pli_views *v, int32_t rank, const plait_error *why, bool mute) {
    if (v->heard[rank] != NULL || (v->heard[rank] = pli_malloc(sizeof(news))) == NULL) return;
    *v->heard[rank] = (news){ .why = *why, .mute = mute };
}

/* Does the view have a later life of the rank than the log of members? */
static bool lives_anew(const pli_members *members, const pli_views *v, int32_t rank) {
    return rank != members->me && pli_ranks_has(v->m.members, rank) && v->m.lives[rank] > members->life[rank];
}

/* The view has a later life of some ranks, of which the log has the end of the one before. */
static bool add_lives(pli_members *members, const pli_views *v) {
    bool any = false;
    if (!atomic_load(&members->world->renews)) return false; /* else they vote, and no more */
    for (int32_t r = 0; r < members->world->size; r++) {
        if (!lives_anew(members, v, r)) continue;
        any = pli_members_append(members, PLI_MEMBER_JOINED, r, NULL, false, (uint32_t)v->m.view) || any;
    }
    return any;
}

/* Tells the machines of the ranks whose life the view lacks. true: there are some. */
static bool add_deaths(pli_members *members, pli_views *v) {
    const pli_world *world = members->world;
    bool             any = false;
    for (int32_t r = 0; r < world->size; r++) {
        news known = { .mute = true };
        const bool has = pli_ranks_has(v->m.members, r) && !lives_anew(members, v, r);
        if (has || pli_members_have_end(members, r)) continue;
        if (v->heard[r] != NULL) {
            known = *v->heard[r];
        } else {
            char name[128];
            pli_world_name(world, r, name, sizeof name);
            pli_fail(&known.why, PLAIT_EPEER, "%s is not heard by others: it is frozen, or its link is cut", name);
            known.why.rank = r;
        }
        any = pli_members_append(members, PLI_MEMBER_DIED, r, &known.why, known.mute, (uint32_t)v->m.view) || any;
        pli_free(v->heard[r]); /* it was of this life */
        v->heard[r] = NULL;
    }
    return add_lives(members, v) || any;
}

/* This rank may not go on. true: that is new. */
static bool has_no_right(pli_members *members, pli_views *v, plait_error *why) {
    char text[400];
    if (v->ended || (v->m.state != PLI_MEMBERSHIP_STOPPED && v->m.state != PLI_MEMBERSHIP_OUT)) return false;
    v->ended = true;
    pli_membership_tell(&v->m, text, sizeof text);
    pli_fail(why, PLAIT_EPEER, "%s", text);
    why->rank = v->m.state == PLI_MEMBERSHIP_OUT ? members->me : -1;
    for (int32_t r = 0; r < members->world->size; r++)
        if (pli_ranks_has(v->m.suspected, r) || pli_ranks_has(v->m.attested, r)) atomic_store(&v->unheard[r], true);
    return true;
}

/* Sends and tells what an event has brought, and gives the lock back. */
static void finish(pli_members *members, pli_views *v, pli_out *out) {
    pli_world  *world = members->world;
    plait_error why;
    for (pli_msg *msg = out->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        if (world->apart != NULL) world->ops->vote(world->transport, msg);
        else pli_doctor_send(world, msg);
    }
    const bool lost = has_no_right(members, v, &why), died = !lost && !v->ended && add_deaths(members, v);
    pthread_mutex_unlock(&v->lock);
    if (lost && world->apart != NULL) pli_apart_stop(members, &why);
    else if (lost) pli_world_fail(world, &why);
    if (died) pli_members_announce(members);
    if (died) pli_members_take_early(members);
}

static pli_views *begin(pli_members *members, pli_out *out) {
    pli_out_init(out);
    if (members->views != NULL) pthread_mutex_lock(&members->views->lock);
    return members->views;
}

/* Takes the lock if views are decided here; NULL: they are not. Then *drops_out says whether the news goes no further:
 * to a rank without the right to go on nobody else is dead, since its machines would make safe what only this side has,
 * and tell others of this side, which may have noticed nothing yet. rank -1: there is no news. */
static pli_views *begin_news(pli_members *members, int32_t rank, pli_out *out, bool *drops_out) {
    *drops_out = false;
    if (!atomic_load(&members->world->survives)) return NULL;
    pli_views *v = begin(members, out);
    if (v == NULL || v->m.state == PLI_MEMBERSHIP_GOES_ON) return v;
    *drops_out = rank >= 0 && rank != v->m.me && (v->ended || v->m.state != PLI_MEMBERSHIP_LEFT);
    if (*drops_out) atomic_store(&v->unheard[rank], true); /* its end is not waited for */
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

bool pli_views_decide(pli_members *members) {
    pli_out    out;
    bool       drops;
    pli_views *v = begin_news(members, -1, &out, &drops);
    if (v != NULL) pthread_mutex_unlock(&v->lock);
    return v != NULL;
}

/* What the machine does with news of a rank: pli_membership_attest, pli_membership_suspect. */
typedef void (*event_fn)(pli_membership *m, uint64_t now_ns, int32_t rank, pli_out *out);

/* News of a rank. why NULL: nothing is noted. event NULL: the machine hears nothing. false: views are not decided
 * here. */
static bool bring_news(pli_members *members, int32_t rank, const plait_error *why, bool mute, event_fn event) {
    pli_out    out;
    bool       drops;
    pli_views *v = begin_news(members, rank, &out, &drops);
    if (v == NULL) return drops;
    if (why != NULL) note(v, rank, why, mute);
    if (event != NULL) event(&v->m, pli_world_now(members->world), rank, &out);
    finish(members, v, &out);
    return true;
}

bool pli_views_attest(pli_members *members, int32_t rank, const plait_error *why, bool mute) {
    return bring_news(members, rank, why, mute, pli_membership_attest);
}

bool pli_views_suspect(pli_members *members, int32_t rank, const plait_error *why) {
    return bring_news(members, rank, why, true, pli_membership_suspect);
}

bool pli_views_note(pli_members *members, int32_t rank, const plait_error *why) {
    const bool local = pli_world_is_local(members->world, rank);
    return bring_news(members, rank, local ? NULL : why, true, NULL);
}

void pli_views_hear(pli_members *members, int32_t rank, uint32_t view) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return;
    if (pli_ranks_has(v->m.suspected, rank)) { /* what was said of it is no longer true */
        pli_free(v->heard[rank]);
        v->heard[rank] = NULL;
    }
    pli_membership_hear(&v->m, pli_world_now(members->world), rank, v->m.lives[rank], view, &out);
    finish(members, v, &out);
}

void pli_views_take(pli_members *members, const pli_msg *msg) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return;
    pli_membership_take(&v->m, pli_world_now(members->world), msg, &out);
    finish(members, v, &out);
}

pli_msg *pli_views_leave(pli_members *members) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return NULL;
    pli_msg *word = pli_membership_leave(&v->m);
    pthread_mutex_unlock(&v->lock);
    return word;
}

void pli_views_left(pli_members *members, const pli_msg *msg) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return;
    pli_membership_take_leave(&v->m, pli_world_now(members->world), msg->head.src, pli_msg_body(msg),
                              msg->head.body_bytes, &out);
    finish(members, v, &out);
}

bool pli_views_revive(pli_members *members, uint32_t incarnation) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return true;
    const uint64_t retry_ns = v->m.retry_ns, deadline_ns = v->m.deadline_ns;
    for (int32_t r = 0; r < members->world->size; r++) {
        pli_free(v->heard[r]);
        v->heard[r] = NULL;
    }
    pli_membership_destroy(&v->m);
    v->ended = false;
    const bool made = pli_membership_init(&v->m, members->world->size, members->me, incarnation, retry_ns, deadline_ns,
                                          false);
    pthread_mutex_unlock(&v->lock);
    return made;
}

void pli_views_begin_life(pli_members *members, uint32_t life) {
    pli_out    out;
    pli_world *world = members->world;
    pli_views *v = begin(members, &out);
    if (v == NULL) return;
    pthread_mutex_lock(&world->lock);
    atomic_store(&members->n_events, 0);
    for (int32_t r = 0; r < world->size; r++) {
        atomic_store(&members->ended[r], 0);
        members->life[r] = r == members->me ? life : 1;
    }
    atomic_store(&members->lost, false);
    atomic_store(&members->view, (uint32_t)v->m.view);
    pthread_mutex_unlock(&world->lock);
    finish(members, v, &out);
}

bool pli_views_votes(pli_members *members) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return false;
    const bool votes = v->m.state == PLI_MEMBERSHIP_GOES_ON;
    pthread_mutex_unlock(&v->lock);
    return votes;
}

uint64_t pli_views_turn(pli_members *members, uint64_t now_ns) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return PLI_NEVER;
    pli_membership_wake(&v->m, now_ns, &out);
    const uint64_t retry_ns = v->m.retry_ns; /* a message may ask for an earlier turn */
    finish(members, v, &out);
    return now_ns + retry_ns;
}

bool pli_views_rest(pli_members *members) {
    pli_out    out;
    pli_views *v = begin(members, &out);
    if (v == NULL) return true;
    const bool rests = v->m.state == PLI_MEMBERSHIP_GOES_ON ? !v->m.unsettled && !v->m.tells
                                                            : v->m.state != PLI_MEMBERSHIP_WAITS;
    pthread_mutex_unlock(&v->lock);
    return rests;
}

bool pli_views_is_unheard(const pli_members *members, int32_t rank) {
    return members->views != NULL && atomic_load(&members->views->unheard[rank]);
}
