/* vertex/async/rounds.h - the asynchronous engine where a worker may die: rounds that are made again.
 *
 * While a round is under way, values, queues and locks lie in their owners' memory, and what a worker has read of
 * others' goes into what it tells on. So nothing of a round can be saved when a worker dies in it: the living begin the
 * round again, with the vertices dealt out anew among them. What a round has come to must lie in tables as a whole, or
 * not at all. So there are two tables, NAME.round0 and NAME.round1, and rounds write to one and the other in turn:
 *
 *     vote    has everybody come to the end of the round, and is nobody absent who was there at its beginning?
 *     push    each owner writes its vertices to the table that is not the last good round's: values and who waits in
 *             queues. The clock ends. If a worker dies in it, others push in its stead that nothing changes
 *     vote    is nobody absent yet? Then the round is good, and its table is what the next one begins with
 *
 * Votes are collectives, of which all living workers get the same (comm/carried.h). A "no" begins a new *era*: the lock
 * machines forget all (locks.h), and all load what the last good round has left. A table holds bits, as whole numbers
 * that changes are added to: what is in it of a round that was not good is overwritten. */
#ifndef PLI_VERTEX_ROUNDS_H
#define PLI_VERTEX_ROUNDS_H

#include "vertex/async/async.h"

/** Makes the tables: run->rounds. Errors: ENOMEM; those of tables. Collective over the workers. */
plait_status pli_rounds_make(pli_vertex_run *run);
void         pli_rounds_free(pli_vertex_run *run); /* run->rounds may be NULL */
/** Does it have a good round? Then values, queue and unsaid changes of own vertices become those. */
plait_status pli_rounds_load(pli_async *a, bool *loaded_out);
/** Is everybody at the end of the round who was there at the beginning of the era? well: this worker is. Collective. */
plait_status pli_rounds_vote(pli_async *a, bool well, bool *good_out);
/** Writes the own vertices, and ends the clock. */
plait_status pli_rounds_push(pli_async *a);
/** The round was good. */
void pli_rounds_commit(pli_async *a);
/** Begins a new era: deals the vertices out among the living. What the caller keeps of its part was freed before. */
plait_status pli_rounds_begin_era(pli_async *a);
/** The values of the last good round: [vertices, values]. Any worker. */
plait_status pli_rounds_values(pli_vertex_run *run, void *values_out);

#endif
