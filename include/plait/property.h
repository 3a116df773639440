/* plait/property.h - properties of a consistency policy, a topology, or a pair of them.
 *
 * A setting of a run (exact sums, replicas, sums inside a host, a checkpoint, a filter) works with
 * some pairs of topology and consistency only, and so does a learner. Each asks for properties, as bits, and never for
 * the name of a policy or a topology. So your own policy works with all settings and learners whose properties it
 * promises (plait_consistency.promises). `plait help pairs` prints which pairs each setting works with.
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

/* An or of the bits below. */
typedef uint32_t plait_properties;

/* --- promises of a policy: plait_consistency.promises. Each comment ends with the policies that promise it -------- */

enum {
    /* A read in clock c holds every update of clocks < c, and nothing of clock c or later from other workers. So all
     * workers read the same values in the same clock. bsp, bounded-delay:0. */
    PLAIT_WHOLE_CLOCKS = 1 << 0,
    /* A read in clock c holds every update of clocks <= c - 1 - S, for a number S that does not change. So no worker
     * runs away from the others. All but vap, downpour and async. */
    PLAIT_BOUNDED_READS = 1 << 1,
    /* A read holds all updates that its reader has pushed in earlier clocks. All but vap and async, whose reads may
     * hold them, but which do not promise it. */
    PLAIT_OWN_WRITES = 1 << 2,
    /* The promise is about each update as it was pushed, so a filter that takes something off breaks it. sequential,
     * vap. */
    PLAIT_VALUES = 1 << 3,
    /* The updates of a clock may reach a worker as one sum over all workers, and some clocks later: the worker waits
     * for numbers of clocks, never for a single push. bsp, bounded-delay:T, local-sgd:H. */
    PLAIT_BY_SUMS = 1 << 4,
    /* An owner keeps its promise by its values and the workers' clocks. So another rank that has these, and gets the
     * pushes that were not confirmed, can take its place. All. */
    PLAIT_REPLAYABLE = 1 << 5,
    /* The policy obeys plait_setting.backup: a clock is complete without its so many slowest workers, whose late
     * updates are dropped. bsp, bounded-delay:0. */
    PLAIT_SKIPS_LATE = 1 << 6,
    /* A worker reads what has come and waits for nobody, whatever topology carries the updates. async. */
    PLAIT_ANY_READ = 1 << 7,
    /* Under gossip, where a worker hears from its neighbours alone, a clock is a round with them; none of the other
     * promises holds there. bsp. */
    PLAIT_ROUNDS = 1 << 8,
};

/* --- properties that follow from the rest of a policy, and from the topology -------------------------------------- */

enum {
    /* All updates of a clock are applied at once, as one sum, when the clock is complete
     * (plait_consistency.applies). */
    PLAIT_CLOCK_SUMS = 1 << 10,
    /* There is one copy of the values, or all copies differ only by updates under way. It does not hold if workers move
     * their own copies by the update rule (gossip, local-sgd). */
    PLAIT_ONE_COPY = 1 << 11,
    /* There are moments at which the values are whole, so a checkpoint can be taken. It does not hold if copies differ,
     * nor if workers write without a lock (async over local). */
    PLAIT_MOMENTS = 1 << 12,
    /* Each row has one owner, which receives pushes one by one: ps, local. */
    PLAIT_OWNERS = 1 << 13,
    /* Values travel to and from owners in messages: ps. Filters and replicas need such messages. */
    PLAIT_MESSAGES = 1 << 14,
    /* The workers of a host may add up their updates before a message leaves the host. */
    PLAIT_HOST_SUMS = 1 << 15,
    /* A worker may leave before the others have ended, because no clock needs a part from each worker. */
    PLAIT_LEAVING = 1 << 16,
    /* Server functions run (plait/server_function.h); functions that update also need PLAIT_WHOLE_CLOCKS. */
    PLAIT_FUNCTIONS = 1 << 17,
    /* Values come only when a worker asks for them, so an owner knows which values a push was computed from. Not under
     * essp. */
    PLAIT_ASKED = 1 << 18,
};

/* --- what a learner, or its solver, demands of settings other than the pair --------------------------------------- */

/* An or of these bits. */
typedef uint32_t plait_traits;

enum {
    /* Each of its sums is over all rows: no backup workers. */
    PLAIT_ALL_ROWS = 1 << 0,
    /* It finds the sizes of its steps itself, without an update rule: no --schedule, no --staleness-aware, no sharded
     * state of a rule. */
    PLAIT_OWN_STEPS = 1 << 1,
    /* It decides when it ends: no --patience. */
    PLAIT_OWN_END = 1 << 3,
    /* It compares sums or losses of one function: no filter with a loss, no dropout. */
    PLAIT_COMPARES = 1 << 5,
    /* Its loss must be smooth. */
    PLAIT_SMOOTH = 1 << 6,
    /* What a worker has added to the tables stands for its rows, and it takes that back when it adds anew: no replicas,
     * whose heirs cannot take it back (but see PLAIT_SUMS_ANEW), and no exact sums. */
    PLAIT_HOLDS_SHARE = 1 << 8,
    /* It learns from row after row, so what a worker adds depends on which rows it has had: no exact sums. */
    PLAIT_IN_SEQUENCE = 1 << 9,
    /* When a worker dies, all others make their sums anew. */
    PLAIT_SUMS_ANEW = 1 << 10,
};

#ifdef __cplusplus
}
#endif
#endif
