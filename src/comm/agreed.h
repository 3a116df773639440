/* comm/agreed.h - steps that all living ranks end, or none does.
 *
 * Ranks go through steps 0, 1, ... together. In each of them they make a sum, by any collective, and then use it: where
 * every rank has a copy of a table, the sum of a clock is applied to it. If a rank dies in between, some of the others
 * may have the sum and some may lack it. Then either all of them use it, or none: the sum is dropped, somebody stands
 * in for the dead rank, and the step is tried again by those who live. This machine decides which.
 *
 * What is tried is an *attempt*: a step and the ranks that were known to be dead as it began. In an attempt a rank is
 *
 *   open        its sum is not there: it has not begun, or is under way
 *   summed      its sum is there, but others may lack it. It takes part in a barrier of those that are summed
 *               (dissemination: ceil(log2 W) rounds)
 *   confirmed   the barrier is over, so every other rank is or was summed. The step is *committed*: its sum may be used
 *
 * When a rank hears of another death, its attempt is over. It *tells* all living ranks the dead that it knows, its
 * step, and whether it is summed. When all living ranks have told the same dead, each of them decides from the same
 * words:
 *
 *   one is a step ahead, or all are summed    commit: the dead rank's part is in the sum, so nobody stands in for it in
 *                                             this step
 *   else                                      drop: whoever has the sum drops it, and the step begins again, among the
 *                                             living. The dead rank's part must be made by another
 *
 * That is enough, since
 *
 *   A1  A rank that has told of a death never becomes summed, or confirmed, in an older attempt. So what it has told
 *       stays true until it decides.
 *   A2  A rank is confirmed only if all ranks of its attempt were summed. So all that live tell "summed" afterwards, or
 *       are a step ahead: they commit as well.
 *   A3  A new attempt needs the part of every living rank, and a rank gives its part only when it has decided. So no
 *       two ranks are summed in different attempts of a step.
 *   A4  If further ranks die before all have decided, those who have decided are a step ahead (commit), or no longer
 *       summed (drop): the others follow. Nobody can have decided otherwise, since all have heard the same words.
 *
 * The ranks of a committed attempt are the same on all of them; so all agree for whom somebody stood in (`of`), and who
 * has what the dead had from the next step on. News of a death itself would not allow that: it comes to each rank at
 * another moment of its steps.
 *
 * Pure: no clock, thread or socket. Messages of one rank come in order, each once (comm/links.h). All ranks hear of the
 * same deaths in the end (comm/membership.h), in any order. Whoever was taken for dead and lives commits nothing more:
 * the barrier would need the others, which have told. agreed_sums.c drives it, with the sums;
 * tests/comm/agreed_test.c goes through all interleavings of small worlds.
 *
 * Papers: Skeen, "Nonblocking commit protocols", SIGMOD 1981 (a state between "has voted" and "has committed", so that
 * those who live can tell what the dead have done); Birman, Joseph, "Exploiting virtual synchrony in distributed
 * systems", SOSP 1987 (a message is delivered to all members of a view or to none); Hensgen, Finkel, Manber, "Two
 * algorithms for barrier synchronization", IJPP 1988. */
#ifndef PLI_COMM_AGREED_H
#define PLI_COMM_AGREED_H

#include "comm/machine.h"

/* Kinds of messages. Those of collectives, which share a port with them, have no such ones. head.clock: the step. */
enum {
    PLI_AGREED_SUMMED = 0x10, /* a round of the barrier. arg32: the round; flags: how many dead are left out */
    PLI_AGREED_TELLS = 0x20   /* arg32 1: summed; body: the dead, a bit each, [words] of uint64_t            */
};

/* What a rank has told last. */
typedef struct pli_agreed_word {
    int64_t step;
    bool    summed;
} pli_agreed_word;

typedef struct pli_agreed {
    int32_t   me, ranks, words;
    uint64_t *dead;     /* [words] the dead that this rank knows, of ranks 0 .. ranks - 1            */
    int32_t   n_dead;
    bool      decided;  /* all living ranks have told the same dead, and this rank has decided: attempts go on */
    int64_t   step;     /* how many are committed: the number of the step that is open or summed     */
    bool      summed;
    uint64_t *of;       /* [words] whom the attempt that was committed last left out                 */
    int32_t   round;    /* of the barrier: the round whose message is awaited                        */
    uint32_t  come[2];  /* rounds whose messages have come, of this step and the next (by step % 2), in which others
                         * may be already                                                             */
    uint64_t *attempt;  /* [words] the dead of the attempts since this rank decided last             */
    pli_agreed_word *word; /* [ranks] what they have told last, of ...                               */
    uint64_t *word_of;     /* [ranks, words] ... these dead. None: nothing                           */
} pli_agreed;

bool pli_agreed_init(pli_agreed *a, int32_t me, int32_t ranks); /* false: no memory */
void pli_agreed_destroy(pli_agreed *a);

/** The sum of this attempt is there: of the step a->step, among the ranks that are not in a->attempt. Does nothing if
 *  the rank has told of a death since. */
void pli_agreed_summed(pli_agreed *a, pli_out *out);
/** A rank has died: the attempt is over. Its sum, if it is not there yet, counts no more. */
void pli_agreed_died(pli_agreed *a, int32_t rank, pli_out *out);
/** A message (lent) of one of the kinds above, from head.src. What is malformed is dropped. */
void pli_agreed_take(pli_agreed *a, const pli_msg *msg, pli_out *out);

static inline bool pli_agreed_is_dead(const uint64_t *set, int32_t rank) {
    return (set[rank / 64] >> (rank % 64) & 1) != 0;
}

#endif
