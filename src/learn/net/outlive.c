/* Binds the ranks of a replica together. See outlive.h. */
#include "learn/net/outlive.h"

#include <string.h>

#include "comm/comm.h"
#include "table/table.h"

static plait_status must_have_variables(const pli_run *run, const int32_t *stage_of, int32_t n) {
    const int32_t stages = pli_run_stages(run);
    for (int32_t k = 0; k < stages; k++) {
        int32_t p = 0;
        while (p < n && stage_of[p] != k) p++;
        if (p == n)
            return pli_fail(run->err, PLAIT_EREFUSED,
                            "cut %d with 2 replicas is refused: stage %d has no variables, so no table would tell it "
                            "who has died; nearest is another --place, or replicas 1", stages, k);
    }
    return PLAIT_OK;
}

/* Either all tables of a replica are stood in for, or none is. */
static plait_status must_be_alike(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    const char             *whole = o->consistency != NULL ? o->consistency : PLI_CONSISTENCY_DEFAULT;
    for (int32_t i = 0; i < o->n_tables; i++)
        if (o->tables[i].consistency != NULL && strcmp(o->tables[i].consistency, whole) != 0)
            return pli_fail(run->err, PLAIT_EREFUSED,
                            "cut %d with 2 replicas and --table %s:consistency=%s is refused: a replica's stages end "
                            "their clocks together; nearest is --consistency %s for all tables", pli_run_stages(run),
                            o->tables[i].name, o->tables[i].consistency, whole);
    return PLAIT_OK;
}

plait_status pli_outlive_check(const pli_run *run, const int32_t *stage_of, int32_t n) {
    if (run->opts->replicas < 2 || pli_run_stages(run) == 1) return PLAIT_OK;
    PLI_TRY(must_have_variables(run, stage_of, n));
    return must_be_alike(run);
}

plait_status pli_outlive_begin(pli_run *run, plait_group *replica) {
    if (run->opts->replicas < 2) return pli_job_end_clocks_with(run->job, replica, run->err);
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
