/* cli/trace.h - the trace of a run (--trace F, watch/trace/trace.h): one file F for all ranks. Where ranks are
 * processes the leading worker asks the others for their spans when training is over, one after the other, and writes
 * them; a run that fails leaves F.RANK of each process instead. */
#ifndef PLI_CLI_TRACE_H
#define PLI_CLI_TRACE_H

#include <pthread.h>

#include <plait/comm.h>

#include "watch/trace/trace.h"

typedef struct pli_run_trace {
    pthread_mutex_t lock;   /* of what follows, which the first rank makes */
    pli_trace      *trace;
    pli_trace_rank *rank;   /* [ranks], of which each rank of this process fills its own */
    int32_t         ranks, alone; /* alone: the rank, where it has the process for itself; else -1 */
    char            transport[32];
    bool            simulated, written;
    uint64_t        origin_ns;
    uint64_t        dropped; /* of what was written */
    plait_status    status;  /* of the file, and why it failed, told by close */
    plait_error     why;
} pli_run_trace;

#define PLI_RUN_TRACE_INIT { .lock = PTHREAD_MUTEX_INITIALIZER, .alone = -1 }

/** From here on the rank's calls, waits and steps are traced. Collective over all ranks. */
plait_status pli_run_trace_open(pli_run_trace *run, plait_comm *comm, plait_error *err);
/** Training is over: where ranks are processes their spans come together and are written to path. Errors: those of
 *  comm; that path could not be written says close. Collective over all ranks. */
plait_status pli_run_trace_gather(pli_run_trace *run, plait_comm *comm, const char *path, plait_error *err);
/** After the run, once a process: writes what was not written yet. Errors: those of the files. */
plait_status pli_run_trace_close(pli_run_trace *run, const char *path, uint64_t *dropped_out, plait_error *err);

#endif
