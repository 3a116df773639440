/* comm/views.h - a process's part in deciding who lives: feeds its membership machine (membership.h) with what the
 * process knows, sends what the machine says, and turns decided views into news of deaths for all machines here. Where
 * simulated ranks may be cut off from each other, each has such a part (apart.c).
 *
 * Where all ranks live in one process otherwise, there is nothing to decide: a death is certain, and makes the next
 * view at once. The same holds before a job goes on without its dead (pli_comm_survive), since a death ends it then,
 * and for a rank that has left, since nothing is acknowledged to it any more. Any thread. */
#ifndef PLI_COMM_VIEWS_H
#define PLI_COMM_VIEWS_H

#include "comm/transport.h"

typedef struct pli_views   pli_views;
typedef struct pli_members pli_members; /* world.h */

/** patience_ns: after which a silent rank is suspected (heartbeat.h); times of the machine follow from it. */
bool pli_views_open(pli_members *members, uint64_t patience_ns); /* false: no memory */
void pli_views_close(pli_members *members);

/** Do views decide on deaths here? */
bool pli_views_decide(pli_members *members);
/** News of a death: certain, or a suspicion. why: the whole text if it is mute, else the rank's own words. false: there
 *  is nothing to decide, and it counts at once. (A rank that has stopped or is out takes it, and nothing follows.) */
bool pli_views_attest(pli_members *members, int32_t rank, const plait_error *why, bool mute);
bool pli_views_suspect(pli_members *members, int32_t rank, const plait_error *why);
/** Another has found the rank silent, and says how: for the text alone. false: as above. */
bool pli_views_note(pli_members *members, int32_t rank, const plait_error *why);
/** Something has come from the rank, in this view of its own. */
void pli_views_hear(pli_members *members, int32_t rank, uint32_t view);
void pli_views_take(pli_members *members, const pli_msg *msg); /* of the machine's kinds */
/** The rank of this process ends, and decides nothing any more. The message that tells it carries its last word:
 *  NULL: none. */
pli_msg *pli_views_leave(pli_members *members);
void     pli_views_left(pli_members *members, const pli_msg *msg);
/** The rank of this log has died and was started anew, in this incarnation: its machine asks to return, and votes then;
 *  nothing else of it lives. false: no memory. votes: is it in a view again? */
bool pli_views_revive(pli_members *members, uint32_t incarnation);
bool pli_views_votes(pli_members *members);
/** A view has this life of the log's own rank, whose body begins: the log forgets what the former life knew, and begins
 *  with who is dead, and who lives anew. */
void pli_views_begin_life(pli_members *members, uint32_t life);
/** Due work. Returns when it wants another turn. */
uint64_t pli_views_turn(pli_members *members, uint64_t now_ns);
/** Does its machine need no turn before the next event? */
bool pli_views_rest(pli_members *members);
/** Does this rank, which has stopped or is out, not hear that one, or has that one ended since? */
bool pli_views_is_unheard(const pli_members *members, int32_t rank);

#endif
