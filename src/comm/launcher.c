#include "comm/launcher.h"

#include <stddef.h>

#include "base/base.h"

static const struct known {
    const char *name, *size, *rank;
    int64_t     at_least; /* a batch system sets its variables for a single task too */
} known[] = {
    { "mpirun (Open MPI)", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", 1 },
    { "mpiexec (PMI)", "PMI_SIZE", "PMI_RANK", 1 },
    { "mpiexec (MVAPICH)", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK", 1 },
    { "srun (Slurm)", "SLURM_NTASKS", "SLURM_PROCID", 2 },
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
                               .may_be_batch = known[i].at_least == 2 };
    }
    return (pli_launcher){ .name = NULL, .rank = -1 };
}
