/* plait/property.h - what a consistency policy, a topology, or a pair of them keeps to.
 *
 * A setting of a run (exact sums, a second copy of each shard, sums inside a host, a checkpoint, a filter) works with
 * some pairs of topology and consistency only, and so does a learner. Each asks for properties, as bits, and never for
 * the name of a policy or a topology: a policy of your own that says what it keeps to goes with everything that the
 * policies that come with Plait go with (plait_consistency.promises). `plait help pairs` prints with which pairs each
 * setting goes.
 *
 *     .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY     a learner that compares sums over all rows at one point
 *     .needs = 0                                       a learner that trains under every pair
 *
 * Clocks count from 0. "Others" are the other workers.
 */
#ifndef PLAIT_PROPERTY_H
#define PLAIT_PROPERTY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An or of PLAIT_ bits. */
typedef uint32_t plait_properties;

/* --- what a policy may promise: plait_consistency.promises ------------------------------------------------------- */

enum {
    /* A read in clock c holds every update of clocks < c, and of others nothing of clock c or later. So all workers
     * read the same values in the same clock. bsp, bounded-delay:0. */
    PLAIT_WHOLE_CLOCKS = 1 << 0,
    /* A read in clock c holds every update of clocks <= c - 1 - S, for a number S that does not change. So no worker
     * runs away from the others. All but vap, downpour and async. */
    PLAIT_BOUNDED_READS = 1 << 1,
    /* A read holds all that its reader has pushed in earlier clocks. All but vap and async, which may read it so, too,
     * but promise nothing. */
    PLAIT_OWN_WRITES = 1 << 2,
    /* The promise is about each update as it was pushed: whatever a filter takes off is an update that nobody sees.
     * sequential, vap. */
    PLAIT_VALUES = 1 << 3,
    /* The updates of a clock may come to a worker as one sum over all workers, and some clocks later: it waits for a
     * number of clocks, and for nothing of a single push. bsp, bounded-delay:T, local-sgd:H. */
    PLAIT_BY_SUMS = 1 << 4,
    /* An owner's answers follow from the workers' clocks alone, so whoever takes the owner's place, with its values and
     * the pushes that it had not confirmed, goes on as it would have. bsp, bounded-delay:0, ssp, essp, async. */
    PLAIT_REPLAYABLE = 1 << 5,
    /* plait_setting.backup is heeded: a clock is complete without so many of its workers, the slowest, whose late
     * updates are dropped. bsp, bounded-delay:0. */
    PLAIT_SKIPS_LATE = 1 << 6,
    /* Any read will do: a worker takes what has come and waits for nobody, whatever carries the updates. async. */
    PLAIT_ANY_READ = 1 << 7,
    /* Where a worker hears of its neighbours alone (gossip), a clock is a round with them; of the other promises
     * nothing is left there. bsp. */
    PLAIT_ROUNDS = 1 << 8,
};

/* --- what follows from the rest of a policy, and from the topology ------------------------------------------------ */

enum {
    /* All updates of a clock are applied at once, as one sum, when the clock is complete
     * (plait_consistency.applies). */
    PLAIT_CLOCK_SUMS = 1 << 10,
    /* There is one copy of the values, or copies that differ by updates under way alone; where workers move copies of
     * their own by the update rule (gossip, local-sgd), there is not. */
    PLAIT_ONE_COPY = 1 << 11,
    /* There are moments at which the values are whole, so a checkpoint can be taken: not where copies differ, nor where
     * workers write without a lock (async over local). */
    PLAIT_MOMENTS = 1 << 12,
    /* Each row has one owner, which takes in pushes one by one: ps, local. */
    PLAIT_OWNERS = 1 << 13,
    /* Values travel to and from owners in messages: ps. What does not hold here (filters, replicas) has nothing to
     * work on. */
    PLAIT_MESSAGES = 1 << 14,
    /* The workers of a host may add their updates up before anything leaves it. */
    PLAIT_HOST_SUMS = 1 << 15,
    /* A worker may leave before the others have ended: no clock needs a part of each. */
    PLAIT_LEAVING = 1 << 16,
    /* Server functions run (plait/server_function.h); those that update also need PLAIT_WHOLE_CLOCKS. */
    PLAIT_FUNCTIONS = 1 << 17,
    /* Values come only when a worker asks for them, so an owner knows from which of them a push was computed: not under
     * essp. */
    PLAIT_ASKED = 1 << 18,
};

/* --- what a learner, or its solver, asks of the settings that are no pair ----------------------------------------- */

/* An or of these bits. */
typedef uint32_t plait_traits;

enum {
    /* Each of its sums is over all rows: no backup workers. */
    PLAIT_ALL_ROWS = 1 << 0,
    /* It finds its steps by itself: no --schedule, no --staleness-aware. */
    PLAIT_OWN_STEPS = 1 << 1,
    /* What it has learnt is more than its tables hold: no checkpoint, and no state of a rule that could be in parts. */
    PLAIT_MORE_THAN_TABLES = 1 << 2,
    /* It ends by itself: no --patience. */
    PLAIT_OWN_END = 1 << 3,
    /* Its server functions update tables: no replicas. */
    PLAIT_FUNCTIONS_UPDATE = 1 << 4,
    /* It compares sums, or losses of one function: no filter that loses something, no dropout. */
    PLAIT_COMPARES = 1 << 5,
    /* Its loss must be smooth. */
    PLAIT_SMOOTH = 1 << 6,
    /* It needs each row where it is, clock after clock: no --balance dynamic. */
    PLAIT_ROWS_STAY = 1 << 7,
};

#ifdef __cplusplus
}
#endif
#endif
