/* cli/trace.h - the trace of a run (--trace F, watch/trace/trace.h): one file F for all ranks. If ranks are processes,
 * the leading worker asks the others for their spans, one after the other, when training is over, and writes them. If
 * the run fails, each process writes F.RANK instead. */
#ifndef PLI_CLI_TRACE_H
#define PLI_CLI_TRACE_H

#include <pthread.h>

#include <plait/comm.h>

#include "watch/trace/trace.h"

typedef struct pli_run_trace {
    pthread_mutex_t lock;   /* guards the fields below, which the first rank sets */
    pli_trace      *trace;
    pli_trace_rank *rank;   /* [ranks]; each rank of this process fills its own entry */
    int32_t         ranks, alone; /* alone: the process's only rank; -1: there are several */
    char            transport[32];
    bool            simulated, written;
    uint64_t        origin_ns;
    uint64_t        dropped; /* spans that are missing in the file */
    plait_status    status;  /* of the file, and why it failed; close reports it */
    plait_error     why;
} pli_run_trace;

#define PLI_RUN_TRACE_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .alone = -1 }

/** Begins to trace the rank's calls, waits and steps. Collective over all ranks. */
plait_status pli_run_trace_open(pli_run_trace *run, plait_comm *comm, plait_error *err);
/** Called when training is over: if ranks are processes, collects their spans and writes them to path. Errors: those of
 *  comm; if path cannot be written, close reports it. Collective over all ranks. */
plait_status pli_run_trace_gather(pli_run_trace *run, plait_comm *comm, const char *path, plait_error *err);
/** Called after the run, once in a process: writes what was not written yet. Errors: those of the files. */
plait_status pli_run_trace_close(pli_run_trace *run, const char *path, uint64_t *dropped_out, plait_error *err);

#endif
