/* comm/doctor.h - the wait-for doctor: which of the blocked waits can never end, and why.
 *
 * A *look* says of one rank what it does at a moment. The looks at all ranks form a graph: a rank that waits points to
 * those that can end its wait. Most waits need all of them (a collective needs every worker that has not come yet), a
 * receive from any rank needs one. A rank that computes may go on; so may one that waits only for such. What is left
 * when that has been followed through can never go on: a cycle, or a wait for a rank that has ended (doctor.c, a pure
 * function of the looks).
 *
 * Looks are not taken at one moment, and messages may be on their way, so what two looks in turn say counts only if
 *   - each rank in question was in the same wait at both (its waits are numbered), so that they all waited together
 *     from the later first look to the earlier second;
 *   - it had looked for what it waits for since it was rung last, and nothing lay before its machines (`settled`);
 *   - where ranks are processes, no message was between them: what one has sent to another by his second look, the
 *     other had received by his; where messages may be lost, all were acknowledged;
 *   - where servers say who holds a wait up, they were asked after the first look.
 * So it never cries without cause, however slow machines and networks are. rounds.c has the looks taken, while a rank
 * has waited for longer than a moment and at no other time: on its own ranks directly, on others by messages to port 0
 * (rounds_mail.c).
 *
 * Papers: Chandy, Misra, Haas, "Distributed deadlock detection", ACM TOCS 1983 (the graph of "and" and "or" waits);
 * Mattern, "Algorithms for distributed termination detection", 1987 (counting messages between two looks). */
#ifndef PLI_COMM_DOCTOR_H
#define PLI_COMM_DOCTOR_H

#include <stddef.h>

#include <plait/status.h>

#include "comm/blocked.h"

typedef enum pli_look_state {
    PLI_LOOK_NONE, /* nobody has looked, or there was no answer */
    PLI_LOOK_RUNS,
    PLI_LOOK_WAITS,
    PLI_LOOK_ENDED,
    PLI_LOOK_STATES
} pli_look_state;

/* Fixed-width and without padding: it travels as it lies here, little-endian. */
typedef struct pli_look {
    uint64_t wait;          /* number of the wait, where it waits       */
    uint64_t waited_ns;
    uint64_t begun, joined; /* collectives                              */
    uint64_t ordinal;       /* the public call that it waits in         */
    pli_wait on;
    int32_t  line;
    uint8_t  state;         /* pli_look_state                           */
    uint8_t  settled;
    uint8_t  owes;          /* messages that were not acknowledged yet  */
    uint8_t  zero;
    char     what[168];     /* "a message with tag 7, held up by rank 1" */
    char     call[48], file[48];
} pli_look;
_Static_assert(sizeof(pli_wait) == 56 && sizeof(pli_look) == 40 + 56 + 8 + 264, "no padding: looks travel as they lie");

/* What is known of a job; looks [size], of which the first `workers` are the workers'. */
typedef struct pli_ward {
    const pli_look *look;
    int32_t         size, workers;
} pli_ward;

/** Marks the ranks that can never go on, [size]; returns how many. */
int32_t pli_doctor_stuck(const pli_ward *ward, bool *stuck);

/** The rank that holds a stuck one up; of several one that is stuck or has ended itself. -1: none. */
int32_t pli_doctor_next(const pli_ward *ward, const bool *stuck, int32_t rank);

/** A worker that calls another collective, or another shape, at the same place as rank. -1: none. */
int32_t pli_doctor_mismatch(const pli_ward *ward, int32_t rank);

/** Was rank in the same wait at both looks, and had it seen all that came? */
bool pli_doctor_confirms(const pli_look *before, const pli_look *now);

/** "rank 1 waits for barrier, held up by rank 0 (plait_comm_barrier, call 3, ring.c:21; 0.4 s)", or what else it
 *  does. */
void pli_doctor_tell(const pli_look *look, int32_t rank, char *text, size_t bytes);
/** The call alone: "plait_comm_barrier, call 3, ring.c:21"; empty where there is none. */
void pli_doctor_tell_site(const char *call, uint64_t ordinal, const char *file, int32_t line, char *text, size_t bytes);

/** The whole story for a rank that is stuck, or of a mismatch with other. */
void pli_doctor_explain_stuck(const pli_ward *ward, const bool *stuck, int32_t rank, plait_error *err_out);
void pli_doctor_explain_mismatch(const pli_ward *ward, int32_t rank, int32_t other, plait_error *err_out);

/** A look from a wire: every number in bounds, every text ended and printable. Errors: EFORMAT. */
plait_status pli_look_decode(const void *data, size_t bytes, int32_t size, pli_look *look_out, plait_error *err);

#endif
