/* comm/rounds.h - the doctor's rounds: when ranks of this process have waited for longer than a moment, one of their
 * threads looks at the ranks here, asks those elsewhere, and judges (doctor.h). */
#ifndef PLI_COMM_ROUNDS_H
#define PLI_COMM_ROUNDS_H

#include "comm/doctor.h"
#include "comm/transport.h"

typedef struct pli_doctor pli_doctor;

/* Kinds of messages for port 0, beside those of members (pli_member_kind). */
enum {
    PLI_CONTROL_ASK = 16, /* arg64: number of the round; arg32 1: with counts */
    PLI_CONTROL_LOOK = 17, /* the same; body: pli_look and, with counts, sent [size] and received [size] */
    PLI_CONTROL_BEAT = 18,  /* a sign of life, like any other message */
    PLI_CONTROL_ASK_SHEET = 20, /* arg64: number of the question */
    PLI_CONTROL_SHEET = 21,     /* the same; body: the rows of the rank's sheet (sheet.h) */
    PLI_CONTROL_DEAD = 19   /* arg32: a rank that is silent; body: how, as for pli_world_died */
};

bool pli_doctor_open(pli_world *world); /* false: no memory */
void pli_doctor_close(pli_world *world);

/** A waiter's turn; its wait has a reason and began at start_ns. Returns when it wants another turn. */
uint64_t pli_doctor_turn(plait_comm *comm, uint64_t start_ns, uint64_t now_ns);

/** Takes a message (lent) of these kinds. */
void pli_doctor_control(pli_world *world, const pli_msg *msg);

/** The rank of this process ends: from now on it neither asks nor answers. Call it before the others are told of the
 *  end. */
void pli_doctor_mute(pli_world *world);

/** Sends a message to port 0 of another process's rank; it has no answer. After mute nothing is sent. Any thread. */
void pli_doctor_tell_control(pli_world *world, int32_t to, uint16_t kind, uint32_t number, const void *body,
                             size_t bytes);

/** The same for a message (taken) that has been made already. */
void pli_doctor_send(pli_world *world, pli_msg *msg);

/** Count the messages that a transport carries. */
void pli_doctor_sent(pli_world *world, int32_t from, int32_t to);
void pli_doctor_received(pli_world *world, int32_t from, int32_t to);

#ifdef PLI_TESTING
extern _Atomic uint64_t pli_doctor_doubts; /* rounds in which something seemed stuck */
#endif

#endif
