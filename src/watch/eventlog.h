/* watch/eventlog.h - the event log: a record of what every rank did, compact enough to be written during the run.
 *
 * A file is a head, chunks, and an end. All numbers are little-endian.
 *
 *     head    "plaitlog", u32 version, u32 0, char [16] name of the run
 *     chunk   u8 'R', u8 side (0 worker, 1 server, 2 copies of servers' shards at places > 0, 3 locks on vertices; 4 n:
 *             the worker in life n + 1 of its rank), u16 group, u32 rank, u32 bytes, u32 checksum, records [bytes].
 *             group 0: of all workers' tables; else of the group's tables
 *     end     a chunk 'E' without side and rank, whose 8 bytes are the number of chunks before it
 *
 * The records of one group, rank and side, over all chunks, are one *stream*. One thread at a time writes a stream,
 * into the stream's own buffer, so logging takes no lock until a buffer is full. A checksum is the low half of XXH3-64
 * over the chunk's first 12 bytes and its records. A file without its end was cut. A log is written in place, and not
 * under a temporary name, because a run that crashes then leaves a log that can be read as far as it was written. If a
 * job has replicas, it goes on without a rank that was killed; then a stream's records are written to the file before
 * any other rank can learn of what they record.
 *
 * A record has its kind (a byte), the time since the stream's last record in nanoseconds, and its fields, as
 * variable-length integers of 7 bits a byte, low bits first. z means zigzag (signed). A predictable field is written as
 * its difference from the prediction, which reader and writer both compute (pli_stream_memory). n*(...) repeats.
 *
 *     WHOSE    (kind 0, without a time) home, place > 0: the copy to which the following records belong. Only in
 *     streams
 *              of side 2, before the first record and whenever the copy changes
 *     JOB      workers, servers, first_server, backup, replicas + 4 * homes, spares; in a stream of a group also its
 *              name (length, bytes), z first clock, n*(rank - the one before - 1). All ranks in its other records are
 *              numbers in that list
 *     TABLE    table, rows, cols, shards, flags (1 ruled, 2 * way, 8 it does not add), texts (length, bytes): name,
 *              topology, consistency, and of one that does not add its combine
 *     GET      table, z clock - stream's clock, duration, incs, n*(shard + 1, z version, z from, to - from, age,
 *              flags (1: the same rows as the shard's last piece, 2: it did not wait for a turn, 4 * place of the
 *              copy), rows, z first or -1; by key: keys, z difference of each)
 *     INC      table, rows, row, float32 bits of norm
 *     PUSH     table, z clock
 *     SEND     server, z seq, z clock, n*(table, shard)
 *     SUM      table, z clock
 *     GIVE     table, worker, z clock; MIX the same, and z clock of the GIVE
 *     CLOCK    z clock; BARRIER, LEAVE, DONE no fields
 *     APPLY    table, worker, z seq, z clock, z shard's number; DROP the same
 *     TICK     worker, z seq, z clock; GONE the dead worker, + 2^17 (its life - 1)
 *     STAND, SERVE, OUT no fields
 *     VIEW     server, z seq, z clock, the dead worker as in GONE
 *     HAND     rank, place of the new replica; COPY rank, place of the replica from which it was made
 *     ZERO     table, z clock, z shard's number (-1: a worker's; -2: it has dropped it)
 *     TURN     step, z clock, flags (1: all workers take the same, 2: in place of dead ones, 4 * the variables of
 *              all workers in the step), n*(z variable - the one before, 2 * (space + 1) +
 *              writes, z key - the one before): all keys of a scheduled step
 *     SCOPES   scope, round, program (length, bytes); only in streams of side 3, as the following
 *     LOCK     z vertex - the last lock's, 2 * mode + wrote, origin, z number of its scope - the last lock's, at,
 *              version; UNLOCK the same
 *     USE      number of the scope, vertex, n*(z vertex - the one before, z id - vertex, version, wrote, u32 digest; if
 *              it wrote also u32 digest of the new value)
 *     REST     round
 *     FELLOWS  z clock, n*(rank - the one before - 1): ranks of the run, with whose the worker's clocks end
 *     BEGIN    z clock in which the job goes on, checkpoint (length, bytes): its folder and its manifest's checksum
 *     CALL     z clock - stream's clock, the call's number, function (length, bytes), u32 digest of what was asked,
 *              n*(table), n*(shard + 1, u32 digest of its answer, u32 digest of what it wrote): of a shard one, its own
 *
 * Only a sample of a get's keys is written: the first, and all multiples of a power of two that is so large that few
 * are left. So a key that is sampled in one get is sampled in the next.
 *
 * Version 5 knows no groups: its chunks have 0 in the place of the group. Before version 8 turns do not tell how many
 * variables a step has. Before version 9 there are no locks, and nobody tells of fellows;
 * before version 10 all jobs begin at clock 0, before version 11 there are no calls, and a shard's version does not
 * count them, before version 12 no shards move, before version 13 no rank is started anew. All are read as well.
 */
#ifndef PLI_WATCH_EVENTLOG_H
#define PLI_WATCH_EVENTLOG_H

#include "base/base.h"

enum { PLI_EVENTLOG_VERSION = 13, PLI_EVENTLOG_OLDEST = 5, PLI_EVENTLOG_SAMPLE = 8 };

/* --- writing --------------------------------------------------------------------------------------------------- */

typedef struct pli_eventlog pli_eventlog;

/** Creates a log for ranks 0 .. ranks - 1. run: 16 characters, the same in all files of a run. now: the driver's time;
 *  NULL: pli_now_ns. Errors: EIO, ENOMEM. */
plait_status pli_eventlog_open(const char *path, int32_t ranks, const char *run, uint64_t (*now)(void *user),
                               void *user, pli_eventlog **log_out, plait_error *err);
/** The sink for the ranks whose events go to this log; valid until the log is closed. */
const pli_event_sink *pli_eventlog_sink(const pli_eventlog *log);
/** Writes the buffered records and the end. Earlier failures of writes are reported here, so that a full disk does not
 *  stop the training. */
plait_status pli_eventlog_close(pli_eventlog **log, plait_error *err);

/** The number of low bits of a row's number that must be 0 for a row in the sample, so that few of n rows are in it;
 *  the first row always is. */
static inline int pli_eventlog_sample_bits(int64_t n) {
    int bits = 0;
    while (n >> bits > PLI_EVENTLOG_SAMPLE) bits++;
    return bits;
}

/* --- reading --------------------------------------------------------------------------------------------------- */

typedef struct pli_logfile pli_logfile; /* the mapped files of one run */

/** Opens the files of a run. Errors: EIO; EFORMAT a file is no event log, or damaged (the text says where), or of a
 *  newer version, or of another run than the first, or given twice. A cut file is no error here. */
plait_status pli_logfile_open(const char *const *paths, int32_t n, pli_logfile **file_out, plait_error *err);
void         pli_logfile_close(pli_logfile **file);
/** The path of the first file that is cut; NULL: all files are whole. */
const char *pli_logfile_cut(const pli_logfile *file);
int32_t     pli_logfile_streams(const pli_logfile *file);
int32_t     pli_logfile_rank(const pli_logfile *file, int32_t stream);
/** Which life of the rank the stream is of; 1 but for a worker that was started anew. */
int32_t     pli_logfile_life(const pli_logfile *file, int32_t stream);
bool        pli_logfile_is_server(const pli_logfile *file, int32_t stream);
/** Is it the stream of the rank's locks on vertices? */
bool        pli_logfile_is_locks(const pli_logfile *file, int32_t stream);
/** The number of the group whose tables the stream is about; 0: all workers'. */
uint32_t    pli_logfile_group(const pli_logfile *file, int32_t stream);
/** Is the file cut in which the stream ends? */
bool pli_logfile_stream_is_cut(const pli_logfile *file, int32_t stream);

/* Reads one stream from its beginning. */
typedef struct pli_log_cursor pli_log_cursor;
plait_status pli_log_cursor_open(const pli_logfile *file, int32_t stream, pli_log_cursor **cursor_out,
                                 plait_error *err);
/** The next event, valid until the next call; NULL: the end, or *err has EFORMAT. */
const pli_event *pli_log_cursor_next(pli_log_cursor *cursor, plait_error *err);
void             pli_log_cursor_close(pli_log_cursor **cursor);

#endif
