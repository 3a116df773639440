/* comm/launcher.h - was this process started as one of many? Told by the launcher's variables, without any MPI. */
#ifndef PLI_COMM_LAUNCHER_H
#define PLI_COMM_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include <plait/status.h>

typedef struct pli_launcher {
    const char *name; /* "mpirun (Open MPI)", ...; NULL: started alone */
    int32_t     size; /* processes; 0: not told                        */
    int32_t     rank; /* -1: not told                                  */
    bool        is_slurm;
} pli_launcher;

pli_launcher pli_launcher_find(void);

/** Has something that is no MPI started this process as one of several (torchrun, horovodrun, ...)? Without an MPI each
 *  of them would do the whole job alone, so a run whose transport nobody has named is refused. Errors: EINVAL, which
 *  names the variables and what to say instead. */
plait_status pli_launcher_check_alone(plait_error *err);

#endif
