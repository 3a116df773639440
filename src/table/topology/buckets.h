/* table/topology/buckets.h - what of a clock's sums travels together, and when.
 *
 * A clock of a job has a sum for each table under allreduce (replica.h). What one collective sums is a *bucket*:
 *
 *   small sums of the same type lie in one side by side, so that a clock costs one collective and not one a table.
 *   Small is what a collective takes about as long to begin as to move: up to PLI_JOIN_BYTES
 *   a large sum is cut into several of PLI_BUCKET_BYTES, where it goes by messages: while one is under way, the one
 *   before it is applied. They go one after the other, from the last to the first, since behind the last values stands
 *   what the rule must know
 *
 * Smaller buckets would overlap more, but each costs the steps of a collective: among 8 hosts a ring's 14 steps take
 * 0.3 ms and 4 MiB take 7 ms at 10 Gb/s, so that what is lost is below 5 % there, and below 1 % on what is slower. A
 * transport that sums by itself (shared memory) has all workers at work on one sum: nothing is left to overlap, and it
 * is not cut.
 *
 * What a bucket holds depends on the tables and their order alone, so all workers make the same ones.
 *
 * Papers: Sergeev and Del Balso, "Horovod", 2018 (tensor fusion); Li et al., "PyTorch Distributed", VLDB 2020
 * (buckets). */
#ifndef PLI_TABLE_TOPOLOGY_BUCKETS_H
#define PLI_TABLE_TOPOLOGY_BUCKETS_H

#include "table/replica.h"
#include "table/table.h"

enum { PLI_BUCKET_BYTES = 4 << 20, PLI_JOIN_BYTES = PLI_BUCKET_BYTES / 16 };

/** Takes values that are to be summed (DENSE, MARKED), the table's newest sum, for the buckets of this clock. Errors:
 *  ENOMEM. */
plait_status pli_buckets_add(plait_table *table, pli_sum *sum, plait_error *err);
/** Begins what was added. at_once: it is waited for next, so that a transport may sum it by itself; sums that fly are
 *  only begun. Errors: ENOMEM, and those of a collective. */
plait_status pli_buckets_begin(plait_job *job, bool at_once, plait_error *err);
/** Waits until the sum is complete: its parts are handed to the replica as they land. */
plait_status pli_buckets_land(plait_table *table, pli_sum *sum, plait_error *err);
/** Gives up what is under way of this table: nothing lends its memory any more. */
void pli_buckets_drop(const plait_table *table);

/** Does a table's sum of n values go by messages, even where it is waited for at once? */
bool pli_buckets_go_by_messages(const plait_table *table, int64_t n);
/** How many parts a table's sum of n values is cut into, and where part i = 0, 1, ... begins. */
int64_t pli_buckets_of(const plait_table *table, int64_t n);
int64_t pli_bucket_first(const plait_table *table, int64_t n, int64_t i);

#endif
