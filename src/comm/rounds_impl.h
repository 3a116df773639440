/* comm/rounds_impl.h - the doctor's state, between rounds.c (rounds and judgements), rounds_mail.c (looks, questions
 * and answers) and rounds_report.c (what users are told). Nobody else includes it. Fields are the round's (under
 * `lock`, which nobody waits for), or the mail's (under `mail_lock`: answers as they come). */
#ifndef PLI_COMM_ROUNDS_IMPL_H
#define PLI_COMM_ROUNDS_IMPL_H

#include "comm/rounds.h"
#include "comm/world.h"

typedef struct pli_doctor_mail {
    pli_look look;
    uint64_t round, counted_round; /* of the look, and of the last one with counts */
    uint64_t heard_ns;
    uint64_t *moved; /* sent [size], received [size], of counted_round */
} pli_doctor_mail;

struct pli_doctor {
    _Atomic uint64_t next_ns; /* nobody needs a turn earlier */
    pthread_mutex_t  lock;
    uint64_t         number;  /* of the round                                  */
    bool             asking;  /* answers are still to come                     */
    bool             proving; /* `before` holds looks at which some seemed stuck */
    uint64_t         until_ns;
    pli_look        *now, *before; /* [size] */
    bool            *stuck, *wanted, *asked; /* [size] */
    uint64_t        *asked_since_ns; /* [size] without an answer; 0: not asked */
    _Atomic bool    *silent; /* [size] and that was told; answers end it at once */

    pthread_mutex_t mail_lock;
    pli_doctor_mail *mail;  /* [size]; NULL in one process */
    bool            muted;  /* the rank here has ended: see ask */
    uint64_t        rounds, asked_first; /* the last number handed out; from where on */
    _Atomic uint32_t came;  /* counts answers; a report sleeps on it */
    _Atomic uint64_t *sent, *received; /* [size] messages to and from ranks of other processes       */
    _Atomic int32_t  *flying; /* [size, size] on their way between two ranks here, where they are carried */
};

/** What a rank of this process does now. */
void pli_doctor_look_at(plait_comm *comm, uint64_t now_ns, pli_look *look);
/** Asks a rank elsewhere what it does. Under mail_lock. Once this process has told that its rank has ended, it sends
 *  nothing any more: the others may close as soon as they have heard that of all, and what comes after would be left
 *  over for whoever opens next. */
void pli_doctor_ask(pli_world *world, int32_t rank, uint64_t round, bool counted);
/** A rank that was silent is heard. */
void pli_doctor_tell_life(pli_world *world, int32_t rank);

#endif
