/* table/topology/buckets.h - what of a clock's sums travels together, and when.
 *
 * A clock of a job has a sum for each table under allreduce (mirror.h). What one collective sums is a *bucket*:
 *
 *   small sums of the same type and combine lie in one side by side until it is no more small, so that a clock of
 *   small tables costs one collective and not one a table. Small is what a collective takes about as long to begin as
 *   to move: up to PLI_JOIN_BYTES
 *   a large sum is cut into several of PLI_BUCKET_BYTES, where it goes by messages: while one is under way, the one
 *   before it is applied. They go one after the other, from the last to the first, since behind the last values stands
 *   what the rule must know
 *
 * Smaller buckets would overlap more, but each costs the steps of a collective: among 8 hosts a ring's 14 steps take
 * 0.3 ms and 4 MiB take 7 ms at 10 Gb/s, so that what is lost is below 5 % there, and below 1 % on what is slower. A
 * transport that sums by itself (shared memory) has all workers at work on one sum: nothing is left to overlap, and it
 * is not cut.
 *
 * What a bucket holds, and where it stands among the others, depends on the tables alone: they are laid out from the
 * table that was created last to the first, as the gradients of a net come. Buckets that go by messages (and the lists
 * of keyed tables) are begun in this order and before those that the transport sums by itself, whenever their sums were
 * taken. So all workers begin the same collectives in the same order, though some may have flushed a table, in whatever
 * order, that others have not:
 *
 *   lay    the clock's buckets are there, empty, from the first flush or the clock's end on
 *   add    a table's sum is taken: its parts are full
 *   leave  what is full, and has nothing before it that is not, is begun: after each flush
 *   begin  the clock ends: all is full
 *
 * Papers: Sergeev and Del Balso, "Horovod", 2018 (tensor fusion); Li et al., "PyTorch Distributed", VLDB 2020
 * (buckets). */
#ifndef PLI_TABLE_TOPOLOGY_BUCKETS_H
#define PLI_TABLE_TOPOLOGY_BUCKETS_H

#include "table/copies/mirror.h"
#include "table/table.h"

enum { PLI_BUCKET_BYTES = 4 << 20, PLI_JOIN_BYTES = PLI_BUCKET_BYTES / 16 };

/** Lays out the buckets of this clock for all tables of the job, if that is not done yet; or (table) of a table that is
 *  none of the job's, for a sum of its own. Errors: ENOMEM. */
plait_status pli_buckets_lay(plait_job *job, plait_error *err);
plait_status pli_buckets_lay_table(plait_table *table, plait_error *err);
/** The table's newest sum, which was just taken: it fills its buckets' parts. */
void         pli_buckets_add(plait_table *table, pli_sum *sum);
/** Begins what may go before the clock ends. Errors: ENOMEM, and those of a collective. */
plait_status pli_buckets_leave(plait_job *job, plait_error *err);
/** All was added: the clock ends. at_once: it is waited for next, so that a transport may sum it by itself, and of the
 *  others one goes after the other; sums that fly, and lists, are only begun. Errors as above. */
plait_status pli_buckets_begin(plait_job *job, bool at_once, plait_error *err);
/** Waits until nothing is left to be begun: other collectives of the clock may follow. */
plait_status pli_buckets_begin_all(plait_job *job, plait_error *err);
/** Waits until the sum is complete: its parts are handed to the mirror as they land. */
plait_status pli_buckets_land(plait_table *table, pli_sum *sum, plait_error *err);
/** Gives up what is under way of this table: nothing lends its memory any more. */
void pli_buckets_drop(const plait_table *table);

/** Does a table's sum of n values go by messages, even where it is waited for at once? */
bool pli_buckets_go_by_messages(const plait_table *table, int64_t n);
/** How many parts a table's sum of n values is cut into, and where part i = 0, 1, ... begins. */
int64_t pli_buckets_of(const plait_table *table, int64_t n);
int64_t pli_bucket_first(const plait_table *table, int64_t n, int64_t i);

#endif
