/* Deaths, for an MPI that goes on after one: ULFM, "user-level failure mitigation", the chapter on fault tolerance that
 * is proposed for MPI 5; Open MPI has it (`mpirun --with-ft ulfm`; `plait launch` asks for it).
 *
 * Point-to-point traffic needs little: a call that involves a dead process returns an error of its class; a receive
 * from any source does so once, until the failure is acknowledged, and stays open. So the driving thread meets the
 * error within microseconds of the MPI's own notice, acknowledges it, drops what was under way with the dead, and goes
 * on. Messages that the dead had sent before are taken in first; then the machines are told.
 *
 * MPI's own collectives are another matter: if a death interrupts one, some workers get an error and others wait for
 * those. So a worker that sees a death revokes the communicators of collectives, which ends all that is under way on
 * them everywhere. That is for good: afterwards collectives fail at once (pli_comm_survive).
 *
 * Paper: Bland, Bouteiller, Herault, Bosilca, Dongarra, "Post-failure recovery of MPI communication capability",
 * IJHPCA 2013. */
#include "comm/mpi/mpi.h"

#ifdef PLI_MPI_ULFM
#include <mpi-ext.h>

bool pli_mpi_can_tell(void) {
    int *on = NULL, there = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, (void *)&on, &there);
    return there != 0 && *on != 0;
}

static void note_dead(pli_transport *t, MPI_Group failed, int n) {
    MPI_Group all = MPI_GROUP_NULL;
    if (MPI_Comm_group(t->comm, &all) != MPI_SUCCESS) return;
    for (int i = 0; i < n; i++) {
        int rank = MPI_UNDEFINED;
        if (MPI_Group_translate_ranks(failed, 1, &i, all, &rank) != MPI_SUCCESS || rank == MPI_UNDEFINED) continue;
        t->has_news = t->has_news || !t->dead[rank];
        t->dead[rank] = true;
    }
    MPI_Group_free(&all);
}

static void acknowledge(pli_transport *t) {
    MPI_Group failed = MPI_GROUP_NULL;
    int       n = 0;
    bool      had_news = t->has_news;
    MPIX_Comm_failure_ack(t->comm);
    if (MPIX_Comm_failure_get_acked(t->comm, &failed) != MPI_SUCCESS) return;
    MPI_Group_size(failed, &n);
    note_dead(t, failed, n);
    if (failed != MPI_GROUP_EMPTY) MPI_Group_free(&failed);
    if (had_news || !t->has_news || t->workers_comm == MPI_COMM_NULL) return;
    MPIX_Comm_revoke(t->direct_comm);
    MPIX_Comm_revoke(t->workers_comm);
}

bool pli_mpi_is_death(pli_transport *t, int code) {
    int sort = MPI_SUCCESS;
    if (!t->tells || code == MPI_SUCCESS) return false;
    MPI_Error_class(code, &sort);
    if (sort != MPIX_ERR_PROC_FAILED && sort != MPIX_ERR_PROC_FAILED_PENDING && sort != MPIX_ERR_REVOKED) return false;
    acknowledge(t);
    return true;
}
#else
bool pli_mpi_can_tell(void) { return false; }

bool pli_mpi_is_death(pli_transport *t, int code) {
    (void)t;
    (void)code;
    return false;
}
#endif

/* MPI may only have lost the connection to a process on another host. */
static void tell_death(pli_transport *t, int32_t rank) {
    const int32_t *host_of = t->world->place.host_of;
    const char    *how = "has died: its process is gone";
    if (host_of[rank] == host_of[t->rank]) pli_world_died(t->world, rank, how);
    else pli_world_missed_rank(t->world, rank, how);
}

bool pli_mpi_tell_deaths(pli_transport *t) {
    if (!t->has_news) return false;
    t->has_news = false;
    for (int32_t r = 0; r < t->size; r++)
        if (t->dead[r]) tell_death(t, r);
    return true;
}
