/* Binds the ranks of a replica together. See outlive.h. */
#include "learn/net/outlive.h"

#include "comm/comm.h"
#include "table/table.h"

plait_status pli_outlive_begin(pli_run *run, plait_group *replica) {
    const int32_t me = plait_comm_rank(run->comm), size = plait_group_size(replica);
    int32_t      *rank = pli_array((size_t)size, sizeof *rank), n = 0;
    if (rank == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the ranks of a replica");
    for (int32_t k = 0; k < size; k++)
        if (plait_group_member(replica, k) != me) rank[n++] = plait_group_member(replica, k);
    plait_status status = pli_comm_die_with(run->comm, n, rank, run->err);
    pli_free(rank);
    return status < 0 ? status : pli_job_end_clocks_with(run->job, replica, run->err);
}

void pli_outlive_end(pli_run *run) {
    if (run->job != NULL) (void)pli_job_end_clocks_with(run->job, NULL, run->err);
    (void)pli_comm_die_with(run->comm, 0, NULL, run->err);
}
