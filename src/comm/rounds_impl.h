/* comm/rounds_impl.h - the doctor's state, shared by rounds.c (rounds and judgements), rounds_mail.c (looks,
 * questions and answers) and rounds_report.c (what users are told). No other file includes it. Fields belong to the
 * round (under `lock`, which nobody waits for), or to the mail (under `mail_lock`: answers as they come). */
#ifndef PLI_COMM_ROUNDS_IMPL_H
#define PLI_COMM_ROUNDS_IMPL_H

#include "comm/rounds.h"
#include "comm/world.h"

typedef struct pli_doctor_mail {
    pli_look look;
    uint64_t round, counted_round; /* of the look, and of the last answer with counts */
    uint64_t heard_ns;
    uint64_t *sheet; /* [sheet_rows] of the last answer; NULL: none, or it was taken */
    int64_t   sheet_rows;
    uint64_t  sheet_round;
    uint64_t *moved; /* sent [size], received [size], of counted_round */
} pli_doctor_mail;

struct pli_doctor {
    _Atomic uint64_t next_ns; /* no turn is needed before */
    pthread_mutex_t  lock;
    uint64_t         number;  /* of the current round */
    bool             asking;  /* answers are still to come */
    bool             proving; /* `before` holds looks in which some ranks seemed stuck */
    bool             calm;    /* no message was on its way when those had been taken ... */
    bool             sound;   /* ... nor in the round before, in which the ranks were in the same waits */
    uint64_t         until_ns;
    pli_look        *now, *before; /* [size] */
    bool            *stuck, *wanted, *asked; /* [size] */
    uint64_t        *asked_since_ns; /* [size] asked since then without an answer; 0: not asked */
    _Atomic bool    *silent; /* [size] that it is silent was reported; an answer ends it at once */

    pthread_mutex_t mail_lock;
    pli_doctor_mail *mail;  /* [size]; NULL in one process */
    bool            muted;  /* the rank here has ended: see ask */
    uint64_t        rounds, asked_first; /* the last number handed out; the number before the first */
    _Atomic uint32_t came;  /* counts answers; a report sleeps on it */
    _Atomic uint64_t *sent, *received; /* [size] messages to and from ranks of other processes       */
    _Atomic int32_t  *flying; /* [size, size] messages on their way between two ranks here, if the transport carries
                               * them */
};

/** Looks at what a rank of this process does now. */
void pli_doctor_look_at(plait_comm *comm, uint64_t now_ns, pli_look *look);
/** Asks a rank elsewhere what it does. Under mail_lock. Once this process has told that its rank has ended, it sends
 *  nothing any more: the others may close as soon as they have heard that of all ranks, and a later message would be
 *  left over for the next run. */
void pli_doctor_ask(pli_world *world, int32_t rank, uint64_t round, bool counted);
/** Asks all ranks elsewhere for their sheets; returns the question's number. */
uint64_t pli_doctor_ask_sheets(pli_world *world);
/** Reports that a silent rank is heard again. */
void pli_doctor_tell_life(pli_world *world, int32_t rank);

#endif
