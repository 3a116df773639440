/* Workers send their lines by a collective. Servers take part in no collective, so each sends its line to the leading
 * rank as a message. */
#include "cli/members.h"

#include <stdio.h>

enum { TAG_START = 0x7001 };

typedef struct member {
    int32_t rank, pid;
    char    host[256];
} member;

plait_status pli_members_tell(plait_comm *comm, int32_t spares, pli_metrics *metrics) {
    member mine = { .rank = plait_comm_rank(comm), .pid = pli_pid() };
    snprintf(mine.host, sizeof mine.host, "%s", plait_comm_host(comm));
    int32_t workers = plait_comm_workers(comm), holders = workers - spares;
    if (mine.rank >= workers) return plait_comm_send(comm, pli_comm_lead(comm), TAG_START, &mine, sizeof mine);
    member *all = pli_array((size_t)workers, sizeof *all);
    if (all == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allgather(comm, &mine, sizeof mine, all);
    for (int32_t i = 0; i < workers && status >= 0; i++)
        pli_metrics_start(metrics, all[i].rank, all[i].host, all[i].pid, i < holders ? "worker" : "spare");
    for (int32_t i = workers; i < plait_comm_size(comm) && pli_comm_leads(comm) && status >= 0; i++) {
        size_t bytes = 0;
        status = plait_comm_recv(comm, i, TAG_START, &mine, sizeof mine, &bytes, NULL);
        if (status >= 0) pli_metrics_start(metrics, mine.rank, mine.host, mine.pid, "server");
    }
    pli_free(all);
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
