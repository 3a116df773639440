/* watch/trace/trace.h - `--trace F` writes how every rank spent its time, as a Chrome trace (Google, "Trace Event
 * Format", JSON Object Format), which chrome://tracing and ui.perfetto.dev show.
 *
 *     trace.c        the sink: packs spans (base/span.h) as they come, in a list of chunks for each thread of a rank
 *     trace_json.c   packed spans to JSON, where each rank is a process and each thread a track
 *
 * Memory is bounded: spans that come when the budget is spent are counted and dropped, and the trace says so. A rank
 * can send its packed spans (pli_trace_pack), after a description of itself (pli_trace_pack_rank), to another process,
 * which writes them:
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

/** Makes a trace of ranks [0, ranks) with threads [0, threads); those of this process report spans. It takes at most
 *  budget_bytes of memory. */
plait_status pli_trace_create(int32_t ranks, int32_t threads, size_t budget_bytes, pli_trace **trace_out,
                              plait_error *err);
void         pli_trace_destroy(pli_trace **trace);
/** The sink, which lives as long as the trace. Spans of other ranks or threads are dropped. */
const pli_span_sink *pli_trace_sink(const pli_trace *trace);
/** Appends a rank's packed spans. No thread may report spans of the rank meanwhile. */
void pli_trace_pack(const pli_trace *trace, int32_t rank, pli_text *packed);

/* --- JSON -------------------------------------------------------------------------------------------------------- */

typedef struct pli_trace_rank {
    int32_t rank, pid; /* pid 0: none (a simulated rank has none) */
    bool    server;
    char    host[256];
    int64_t shift_ns;  /* add this to its times to get the writer's times */
} pli_trace_rank;

typedef struct pli_trace_file pli_trace_file;

/** Appends the description of a rank, which comes before its spans. */
void pli_trace_pack_rank(const pli_trace_rank *rank, pli_text *packed);

/** Opens the file. Its times count from origin_ns. transport: a text for the file. Errors: those of a file. */
plait_status pli_trace_file_open(const char *path, const char *transport, bool simulated, uint64_t origin_ns,
                                 pli_trace_file **file_out, plait_error *err);
/** Adds a rank. Errors: EFORMAT pli_trace_pack did not make `packed`; those of a file. */
plait_status pli_trace_file_add(pli_trace_file *file, const pli_trace_rank *rank, const void *packed, size_t bytes,
                                plait_error *err);
/** Adds rank `number` from what another process has sent: its description, then its spans. Errors: as
 *  pli_trace_file_add; EVERSION another version has packed it. */
plait_status pli_trace_file_add_sent(pli_trace_file *file, int32_t number, const void *sent, size_t bytes,
                                     plait_error *err);
/** The number of dropped spans over all added ranks. */
uint64_t pli_trace_file_dropped(const pli_trace_file *file);
/** close ends the file, also after a failure; abandon leaves no file. *file may be NULL. */
plait_status pli_trace_file_close(pli_trace_file **file, plait_error *err);
void         pli_trace_file_abandon(pli_trace_file **file);

#endif
