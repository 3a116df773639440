/* comm/launcher.h - was this process started as one of many? The launcher's variables tell, without any MPI. */
#ifndef PLI_COMM_LAUNCHER_H
#define PLI_COMM_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include <plait/status.h>

typedef struct pli_launcher {
    const char *name; /* "mpirun (Open MPI)", ...; NULL: started alone */
    int32_t     size; /* processes; 0: not known */
    int32_t     rank; /* -1: not known */
    bool        is_slurm;
} pli_launcher;

pli_launcher pli_launcher_find(void);
/** Makes this process one that was started alone, as far as it can tell: for a child of a rank that works by itself. It
 *  changes the environment, so no other thread may read that. */
void pli_launcher_forget(void);

/** Fails if a launcher that brings no MPI (torchrun, horovodrun, ...) has started this process as one of several.
 *  Without an MPI each of them would do the whole job alone, so a run without a named transport is refused. Errors:
 *  EINVAL, which names the variables and what to do instead. */
plait_status pli_launcher_check_alone(plait_error *err);

#endif
