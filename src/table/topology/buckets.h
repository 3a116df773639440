/* table/topology/buckets.h - what of a clock's sums travels together, and when.
 *
 * In each clock a job has one sum for each table under allreduce (mirror.h). What one collective sums is a *bucket*:
 *
 *   small sums    of the same type and combine share a bucket, side by side, until it is no longer small. So a clock of
 *                 small tables costs one collective, and not one for each table. A sum is small up to PLI_JOIN_BYTES:
 *                 up to there a collective takes about as long to begin as to move the bytes
 *   a large sum   that goes by messages is cut into several buckets of PLI_BUCKET_BYTES. While one is under way, the
 *                 one before it is applied. They go one after the other, the last first, since what the rule must know
 *                 stands behind the last values
 *
 * Smaller buckets would overlap more, but each costs the steps of a collective. Among 8 hosts a ring's 14 steps take
 * 0.3 ms and 4 MiB take 7 ms at 10 Gb/s. So less than 5 % is lost there, and less than 1 % on slower networks. If the
 * transport sums by itself (shared memory), all workers work on one sum: nothing could overlap, so sums are not cut.
 *
 * The tables alone decide what a bucket holds and where it stands among the others. Buckets are laid out from the table
 * that was created last to the first, in the order in which the gradients of a net come. Those that go by messages, and
 * the lists of keyed tables, are begun in this order, whenever their sums were taken, and before those that the
 * transport sums by itself. So all workers begin the same collectives in the same order, even if they have flushed
 * different tables, or in another order:
 *
 *   lay    makes the clock's buckets, empty: at the first flush, or as the clock ends
 *   add    a table's sum is taken: its parts are full now
 *   leave  after each flush: begins the buckets that are full and have only begun ones before them
 *   begin  the clock ends, so all buckets are full: begins the others
 *
 * Papers: Sergeev and Del Balso, "Horovod", 2018 (tensor fusion); Li et al., "PyTorch Distributed", VLDB 2020
 * (buckets). */
#ifndef PLI_TABLE_TOPOLOGY_BUCKETS_H
#define PLI_TABLE_TOPOLOGY_BUCKETS_H

#include "table/copies/mirror.h"
#include "table/table.h"

enum { PLI_BUCKET_BYTES = 4 << 20, PLI_JOIN_BYTES = PLI_BUCKET_BYTES / 16 };

/** Lays out the buckets of this clock for all tables of the job, if that is not done yet. table: lays them out for a
 *  sum of this table alone, which is none of the job's. Errors: ENOMEM. */
plait_status pli_buckets_lay(plait_job *job, plait_error *err);
plait_status pli_buckets_lay_table(plait_table *table, plait_error *err);
/** The table's newest sum, which was just taken: it fills its buckets' parts. */
void         pli_buckets_add(plait_table *table, pli_sum *sum);
/** Begins what may go before the clock ends. Errors: ENOMEM, and those of a collective. */
plait_status pli_buckets_leave(plait_job *job, plait_error *err);
/** All was added: the clock ends. at_once: the caller waits for it next. Then a transport may sum buckets by itself,
 *  and the others go one after the other; sums that fly, and lists, are only begun. Errors as above. */
plait_status pli_buckets_begin(plait_job *job, bool at_once, plait_error *err);
/** Waits until no bucket is left to begin: other collectives of the clock may follow. */
plait_status pli_buckets_begin_all(plait_job *job, plait_error *err);
/** Waits until the sum is complete: its parts are handed to the mirror as they land. */
plait_status pli_buckets_land(plait_table *table, pli_sum *sum, plait_error *err);
/** Gives up what is under way for this table: its memory is no longer lent to anybody. */
void pli_buckets_drop(const plait_table *table);

/** Does a table's sum of n values go by messages, even where it is waited for at once? */
bool pli_buckets_go_by_messages(const plait_table *table, int64_t n);
/** How many parts a table's sum of n values is cut into, and where part i = 0, 1, ... begins. */
int64_t pli_buckets_of(const plait_table *table, int64_t n);
int64_t pli_bucket_first(const plait_table *table, int64_t n, int64_t i);

#ifdef PLI_TESTING /* tests have small tables and want many buckets */
extern _Atomic int64_t pli_bucket_bytes;
#endif

#endif
