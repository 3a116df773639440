/* comm/doctor.h - the wait-for doctor: which of the blocked waits can never end, and why.
 *
 * A *look* tells what one rank does at a moment. The looks at all ranks form a graph: a rank that waits points to the
 * ranks that can end its wait. Most waits need all of them (a collective needs every worker that has not come yet); a
 * receive from any rank needs one. A rank that computes may go on, and so may a rank that waits only for ranks that
 * may. The ranks that remain can never go on: they form a cycle, or wait for a rank that has ended (doctor.c, a pure
 * function of the looks).
 *
 * Looks are not all taken at one moment, and messages may be on their way. So two rounds of looks are compared, behind
 * a round in which messages had come to rest. Their verdict counts only if
 *   - each rank in question was in the same wait in both rounds (its waits are numbered), so that all of them waited
 *   together from the last first look to the first second look;
 *   - it had looked for what it waits for since it was last rung, and nothing lay before its machines (`settled`);
 *   - where ranks are processes, no message was between them: what one rank had sent to another by its second look, the
 *   other had received by its own; where messages may be lost, all were acknowledged;
 *   - where servers say who holds a wait up, they were asked after the first look, and no message was on its way
 *   before it: else a server might name a rank whose message was about to arrive.
 * So there is no false alarm, however slow machines and networks are. rounds.c takes the looks, only while a rank has
 * waited for longer than a moment: at its own ranks directly, at others by messages to port 0 (rounds_mail.c).
 *
 * Papers: Chandy, Misra, Haas, "Distributed deadlock detection", ACM TOCS 1983 (the graph of "and" and "or" waits);
 * Mattern, "Algorithms for distributed termination detection", 1987 (counting messages between two looks). */
#ifndef PLI_COMM_DOCTOR_H
#define PLI_COMM_DOCTOR_H

#include <stddef.h>

#include <plait/status.h>

#include "comm/blocked.h"

typedef enum pli_look_state {
    PLI_LOOK_NONE, /* no look was taken, or there was no answer */
    PLI_LOOK_RUNS,
    PLI_LOOK_WAITS,
    PLI_LOOK_ENDED,
    PLI_LOOK_STATES
} pli_look_state;

/* Fixed-width and without padding: it is sent as it lies in memory, little-endian. */
typedef struct pli_look {
    uint64_t wait;          /* number of the wait, if it waits */
    uint64_t waited_ns;
    uint64_t begun, joined; /* collectives that it has begun; that it has waited for */
    uint64_t ordinal;       /* number of the public call that it waits in */
    pli_wait on;
    int32_t  line;
    uint8_t  state;         /* pli_look_state                           */
    uint8_t  settled;
    uint8_t  owes;          /* messages that were not acknowledged yet */
    uint8_t  zero;
    char     what[168];     /* "a message with tag 7, held up by rank 1" */
    char     call[48], file[48];
} pli_look;
_Static_assert(sizeof(pli_wait) == 56 && sizeof(pli_look) == 40 + 56 + 8 + 264, "no padding: looks travel as they lie");

/* The known state of a job; look [size], the workers' first. */
typedef struct pli_ward {
    const pli_look *look;
    int32_t         size, workers;
} pli_ward;

/** Marks the ranks that can never go on in stuck [size]; returns how many they are. */
int32_t pli_doctor_stuck(const pli_ward *ward, bool *stuck);

/** The rank that holds a stuck rank up; if there are several, one that is stuck or has ended. -1: none. */
int32_t pli_doctor_next(const pli_ward *ward, const bool *stuck, int32_t rank);

/** A worker that waits in another collective than rank does, or in one of another shape, though both calls have the
 *  same number. -1: none. */
int32_t pli_doctor_mismatch(const pli_ward *ward, int32_t rank);

/** Was the rank in the same wait at both looks, and had it seen all that came? */
bool pli_doctor_confirms(const pli_look *before, const pli_look *now);

/** Writes "rank 1 waits for barrier, held up by rank 0 (plait_comm_barrier, call 3, ring.c:21; 0.4 s)", or what else
 *  the rank does. */
void pli_doctor_tell(const pli_look *look, int32_t rank, char *text, size_t bytes);
/** Writes the call alone: "plait_comm_barrier, call 3, ring.c:21"; nothing if there is no call. */
void pli_doctor_tell_site(const char *call, uint64_t ordinal, const char *file, int32_t line, char *text, size_t bytes);

/** Write the whole explanation for a stuck rank, or for a mismatch between rank and other. */
void pli_doctor_explain_stuck(const pli_ward *ward, const bool *stuck, int32_t rank, plait_error *err_out);
void pli_doctor_explain_mismatch(const pli_ward *ward, int32_t rank, int32_t other, plait_error *err_out);

/** Decodes a look from a wire: every number in bounds, every text ended and printable. Errors: EFORMAT. */
plait_status pli_look_decode(const void *data, size_t bytes, int32_t size, pli_look *look_out, plait_error *err);

#endif
