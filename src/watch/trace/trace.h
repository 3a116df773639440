/* watch/trace/trace.h - `--trace F`: where the time of every rank went, as a Chrome trace (Google, "Trace Event
 * Format", JSON Object Format), which chrome://tracing and ui.perfetto.dev show.
 *
 *     trace.c        the sink: spans (base/span.h) packed as they come, a list of chunks a thread of a rank
 *     trace_json.c   packed spans to JSON, a process a rank, a track a thread
 *
 * Memory is bounded: what comes when the budget is spent is counted and dropped, and the trace says so. A rank's spans
 * packed (pli_trace_pack) can be sent to another process, which writes them; before them stands who it is
 * (pli_trace_pack_rank):
 *
 *     who    varint version (PLI_TRACE_VERSION), pid, zigzag(shift); u8 server; u8 length, host
 *     rank   per track: varint thread, dropped, bytes; spans [bytes]
 *     span   u8 kind, varint zigzag(begin - the last span's end), varint duration, varint number + 1,
 *            u8 length, name; varint length, detail */
#ifndef PLI_WATCH_TRACE_H
#define PLI_WATCH_TRACE_H

#include "base/base.h"

enum { PLI_TRACE_VERSION = 1, PLI_TRACE_NAME_MAX = 255, PLI_TRACE_DETAIL_MAX = 511 };

typedef struct pli_trace pli_trace;

/** A trace of ranks [0, ranks) with threads [0, threads), of which those of this process tell. budget_bytes: of memory.
 *  */
plait_status pli_trace_create(int32_t ranks, int32_t threads, size_t budget_bytes, pli_trace **trace_out,
                              plait_error *err);
void         pli_trace_destroy(pli_trace **trace);
/** The sink lives as long as the trace. A span of other ranks or threads is dropped. */
const pli_span_sink *pli_trace_sink(const pli_trace *trace);
/** Appends a rank's spans, packed. While nobody tells spans of it. */
void pli_trace_pack(const pli_trace *trace, int32_t rank, pli_text *packed);

/* --- JSON -------------------------------------------------------------------------------------------------------- */

typedef struct pli_trace_rank {
    int32_t rank, pid; /* pid 0: not said (a simulated rank has none) */
    bool    server;
    char    host[256];
    int64_t shift_ns;  /* that its times must be moved by to be the writer's */
} pli_trace_rank;

typedef struct pli_trace_file pli_trace_file;

/** Appends who the rank is; its spans come behind. */
void pli_trace_pack_rank(const pli_trace_rank *rank, pli_text *packed);

/** Times are told since origin_ns. transport: told in the file. Errors: those of a file. */
plait_status pli_trace_file_open(const char *path, const char *transport, bool simulated, uint64_t origin_ns,
                                 pli_trace_file **file_out, plait_error *err);
/** Adds a rank. Errors: EFORMAT packed is not what pli_trace_pack made; those of a file. */
plait_status pli_trace_file_add(pli_trace_file *file, const pli_trace_rank *rank, const void *packed, size_t bytes,
                                plait_error *err);
/** Adds rank `number`, of which another process has sent all: who it is, then its spans. Errors: as of
 *  pli_trace_file_add; EVERSION it was packed by another version. */
plait_status pli_trace_file_add_sent(pli_trace_file *file, int32_t number, const void *sent, size_t bytes,
                                     plait_error *err);
/** Spans that were dropped, of all ranks added. */
uint64_t pli_trace_file_dropped(const pli_trace_file *file);
/** Ends the file, also when it fails; *file may be NULL. abandon: leaves none. */
plait_status pli_trace_file_close(pli_trace_file **file, plait_error *err);
void         pli_trace_file_abandon(pli_trace_file **file);

#endif
