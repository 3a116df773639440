#include "comm/launcher.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/base.h"

static const struct known {
    const char *name, *size, *rank;
    int64_t     at_least; /* srun sets its variables for a single task too; a job's script has no STEP variables */
} known[] = {
    { "mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", 1 },
    { "mpiexec (PMI)", "PMI_SIZE", "PMI_RANK", 1 },
    { "mpiexec (MVAPICH)", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", 1 },
    { "srun (Slurm)", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", 2 },
    { "a PMIx launcher", NULL, "PMIX_RANK", 0 },
};

static int64_t number(const char *variable, int64_t otherwise) {
    const char *text = variable == NULL ? NULL : pli_env(variable);
    int64_t     value;
    return text != NULL && pli_parse_i64(text, &value) && value >= 0 && value <= INT32_MAX ? value : otherwise;
}

pli_launcher pli_launcher_find(void) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        int64_t size = number(known[i].size, 0), rank = number(known[i].rank, -1);
        if (rank < 0 || size < known[i].at_least) continue;
        return (pli_launcher){ .name = known[i].name, .size = (int32_t)size, .rank = (int32_t)rank,
                               .is_slurm = known[i].at_least == 2 };
    }
    return (pli_launcher){ .name = NULL, .rank = -1 };
}

void pli_launcher_forget(void) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) unsetenv(known[i].rank);
}

/* --- launchers that bring no MPI --------------------------------------------------------------------------- */

/* The variables that each of them sets in every process: the number of processes, and a second one that must be
 * there as well, so that a stray WORLD_SIZE alone is not taken for a launcher. */
static const struct stranger {
    const char *name, *size, *beside;
} strangers[] = {
    { "torchrun", "WORLD_SIZE", "RANK" },
    { "horovodrun", "HOROVOD_SIZE", "HOROVOD_RANK" },
    { "a dmlc tracker (ps-lite, XGBoost)", "DMLC_NUM_WORKER", "DMLC_ROLE" },
    { "flux run", "FLUX_JOB_SIZE", "FLUX_TASK_RANK" },
};

plait_status pli_launcher_check_alone(plait_error *err) {
    if (pli_launcher_find().name != NULL) return PLAIT_OK;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        const struct stranger *s = &strangers[i];
        const int64_t          size = number(s->size, 0);
        const char            *beside = pli_env(s->beside);
        if (size < 2 || beside == NULL || beside[0] == '\0') continue;
        return pli_fail(err, PLAIT_EINVAL,
                        "%s=%" PRId64 " and %s are set, as %s sets them, but no MPI has started this process: each of "
                        "the %" PRId64 " would do the whole job alone. Start the ranks with `plait launch -n %" PRId64
                        " -- ...` or mpirun; to run alone all the same, say --transport threads (in C: "
                        "opts.transport = \"threads\"), or unset %s",
                        s->size, size, s->beside, s->name, size, size, s->size);
    }
    return PLAIT_OK;
}
