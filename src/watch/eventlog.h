/* watch/eventlog.h - the event log: what every rank of a run did, compact enough to be written while it runs.
 *
 * A file is a head, chunks, and an end. All numbers are little-endian.
 *
 *     head    "plaitlog", u32 version, u32 0, char [16] of the run
 *     chunk   u8 'R', u8 side (0 worker, 1 server, 2 copies of servers' shards at places > 0), u16 0, u32 rank,
 *             u32 bytes, u32 checksum, records [bytes]
 *     end     a chunk 'E' without side and rank, whose 8 bytes are the number of chunks before it
 *
 * The records of one rank and side, over its chunks, are one *stream*; each is written by one thread at a time, into a
 * buffer of its own, so that logging takes no lock until a buffer is full. A checksum is the low half of XXH3-64 over
 * the chunk's first 12 bytes and its records. A file without its end was cut: a run that crashed leaves what it had
 * written, readable up to there, which is why a log is written in place and not under another name. Where shards have
 * copies, so that a run goes on without a rank that was killed, a stream is written to the file before anybody can hear
 * of what it tells.
 *
 * A record is its kind (a byte), the time since the stream's last one in nanoseconds, then its fields, as
 * variable-length integers of 7 bits a byte, low ones first. z: zigzag (signed). What is predictable is written as the
 * difference from its prediction, which reader and writer compute alike (pli_stream_memory); n*(...) repeats.
 *
 *     WHOSE    (kind 0, and without a time) home, place > 0: of which copy the records that follow are. In streams of
 *              side 2, before the first record and wherever it changes; in no other
 *     JOB      workers, servers, first_server, backup, replicas, spares
 *     TABLE    table, rows, cols, shards, flags (1 ruled, 2 * way, 8 it does not add), texts (length, bytes): name,
 *              topology, consistency, and of one that does not add its combine
 *     GET      table, z clock - stream's clock, time it took, incs, n*(shard + 1, z version, z from, to - from, age,
 *              flags (1: the same rows as the shard's last piece, 2: no turn was waited for, 4 * place of the copy),
 *              rows, z first or -1; by key: keys, z difference of each)
 *     INC      table, rows, row, float32 bits of norm
 *     PUSH     table, z clock
 *     SEND     server, z seq, z clock, n*(table, shard)
 *     SUM      table, z clock
 *     GIVE     table, worker, z clock; MIX the same, z clock in which it was given
 *     CLOCK    z clock; BARRIER, LEAVE, DONE nothing
 *     APPLY    table, worker, z seq, z clock, z shard's number; DROP the same
 *     TICK     worker, z seq, z clock; GONE worker
 *     STAND, SERVE nothing
 *     VIEW     server, z seq, z clock, the dead worker
 *     HAND     rank, place of the new replica; COPY rank, place of that from which it was made
 *     ZERO     table, z clock, z shard's number; a worker's: -1
 *
 * Of the keys of a get a sample is written: the first, and those that are multiples of a power of two, large enough
 * that few are left; so what is sampled in one get is sampled in the next.
 */
#ifndef PLI_WATCH_EVENTLOG_H
#define PLI_WATCH_EVENTLOG_H

#include "base/base.h"

enum { PLI_EVENTLOG_VERSION = 5, PLI_EVENTLOG_SAMPLE = 8 };

/* --- writing --------------------------------------------------------------------------------------------------- */

typedef struct pli_eventlog pli_eventlog;

/** ranks: their numbers are below it. run: 16 characters, the same in all files of a run. now NULL: pli_now_ns; else
 *  the driver's time. Errors: EIO, ENOMEM. */
plait_status pli_eventlog_open(const char *path, int32_t ranks, const char *run, uint64_t (*now)(void *user),
                               void *user, pli_eventlog **log_out, plait_error *err);
/** For the ranks whose events go to this log; valid until it is closed. */
const pli_event_sink *pli_eventlog_sink(const pli_eventlog *log);
/** Writes what is left and the end. A write that failed on the way is told here, so that a full disk does not cost the
 *  training. */
plait_status pli_eventlog_close(pli_eventlog **log, plait_error *err);

/** How many low bits of a row's number must be 0, so that few of n rows are left; the first row counts in any case. */
static inline int pli_eventlog_sample_bits(int64_t n) {
    int bits = 0;
    while (n >> bits > PLI_EVENTLOG_SAMPLE) bits++;
    return bits;
}

/* --- reading --------------------------------------------------------------------------------------------------- */

typedef struct pli_logfile pli_logfile; /* files of one run, mapped */

/** Errors: EIO; EFORMAT no event log, or garbled (the text says where), or of a newer version, or of another run than
 *  the first. A cut file is no error here. */
plait_status pli_logfile_open(const char *const *paths, int32_t n, pli_logfile **file_out, plait_error *err);
void         pli_logfile_close(pli_logfile **file);
/** NULL: all files are whole; else the path of the first that is cut. */
const char *pli_logfile_cut(const pli_logfile *file);
int32_t     pli_logfile_streams(const pli_logfile *file);
int32_t     pli_logfile_rank(const pli_logfile *file, int32_t stream);
bool        pli_logfile_is_server(const pli_logfile *file, int32_t stream);
/** Is the file in which the stream ends cut? */
bool pli_logfile_stream_is_cut(const pli_logfile *file, int32_t stream);

/* One stream from its beginning. */
typedef struct pli_log_cursor pli_log_cursor;
plait_status pli_log_cursor_open(const pli_logfile *file, int32_t stream, pli_log_cursor **cursor_out,
                                 plait_error *err);
/** The next event, valid until the next call; NULL: the end, or *err has EFORMAT. */
const pli_event *pli_log_cursor_next(pli_log_cursor *cursor, plait_error *err);
void             pli_log_cursor_close(pli_log_cursor **cursor);

#endif
