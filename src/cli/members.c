/* Workers send their lines by a collective. Servers take part in no collective, so each sends its line to the leading
 * rank as a message. */
#include "cli/members.h"

#include <stdio.h>

enum { TAG_START = 0x7001 };

/* The leading rank hears the servers. */
static plait_status hear_servers(plait_comm *comm, pli_told_member *all) {
    for (int32_t i = plait_comm_workers(comm); i < plait_comm_size(comm); i++) {
        size_t bytes = 0;
        PLI_TRY(plait_comm_recv(comm, i, TAG_START, &all[i], sizeof all[i], &bytes, NULL));
    }
    return PLAIT_OK;
}

plait_status pli_members_tell(plait_comm *comm, int32_t spares, pli_metrics *metrics, pli_told_member **all_out) {
    const int32_t   workers = plait_comm_workers(comm), size = plait_comm_size(comm);
    const bool      leads = pli_comm_leads(comm);
    pli_told_member mine = { .rank = plait_comm_rank(comm), .pid = pli_pid() };
    snprintf(mine.host, sizeof mine.host, "%s", plait_comm_host(comm));
    snprintf(mine.role, sizeof mine.role, "%s",
             mine.rank >= workers ? "server" : mine.rank >= workers - spares ? "spare" : "worker");
    if (mine.rank >= workers) return plait_comm_send(comm, pli_comm_lead(comm), TAG_START, &mine, sizeof mine);
    pli_told_member *all = pli_array((size_t)size, sizeof *all);
    if (all == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allgather(comm, &mine, sizeof mine, all);
    if (status >= 0 && leads) status = hear_servers(comm, all);
    for (int32_t i = 0; i < size && leads && status >= 0; i++)
        pli_metrics_start(metrics, all[i].rank, all[i].host, all[i].pid, all[i].role);
    if (status >= 0 && all_out != NULL && size > workers)
        status = plait_comm_broadcast(comm, all + workers, (size_t)(size - workers) * sizeof *all, pli_comm_lead(comm));
    if (status >= 0 && all_out != NULL) *all_out = all;
    else pli_free(all);
    return status;
}

plait_status pli_members_tell_times(plait_comm *comm, const plait_report *report, pli_metrics *metrics) {
    double  mine[3] = { report->compute_seconds, report->wait_seconds, report->network_seconds };
    int32_t workers = plait_comm_workers(comm);
    double *all = pli_array((size_t)workers, sizeof mine);
    if (all == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allgather(comm, mine, sizeof mine, all);
    for (int32_t i = 0; i < workers && status >= 0; i++)
        pli_metrics_rank(metrics, i, all[3 * i], all[3 * i + 1], all[3 * i + 2]);
    pli_free(all);
    return status;
}
