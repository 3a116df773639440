/* Opens and closes the event log of a run (events.h). */
#include "cli/events.h"

#include <inttypes.h>
#include <string.h>

#include "comm/comm.h"

enum { TAG_ID = 0x7002, ID_BYTES = 17 };

/* Events have the transport's time, like all other times of a run. The handle lives as long as the run. */
static uint64_t stamp(void *comm) { return pli_comm_stamp(comm); }

/* Gives all ranks the id of the leading worker. */
static plait_status share_id(plait_comm *comm, char id[ID_BYTES]) {
    int32_t lead = pli_comm_lead(comm), workers = plait_comm_workers(comm);
    size_t  bytes = 0;
    if (!pli_comm_is_worker(comm)) return plait_comm_recv(comm, lead, TAG_ID, id, ID_BYTES, &bytes, NULL);
    PLI_TRY(plait_comm_broadcast(comm, id, ID_BYTES, lead));
    for (int32_t server = workers; pli_comm_leads(comm) && server < plait_comm_size(comm); server++)
        PLI_TRY(plait_comm_send(comm, server, TAG_ID, id, ID_BYTES));
    return PLAIT_OK;
}

static plait_status open_own(pli_run_events *events, plait_comm *comm, const char *path, const char *id,
                             plait_error *err) {
    char  shared[ID_BYTES];
    char *own = pli_format("%s.%" PRId32, path, plait_comm_rank(comm));
    memcpy(shared, id, sizeof shared);
    plait_status status = own == NULL ? pli_fail(err, PLAIT_ENOMEM, "event log: no memory") : share_id(comm, shared);
    if (own != NULL && status < 0) *err = *plait_comm_error(comm);
    if (status >= 0) status = pli_eventlog_open(own, plait_comm_size(comm), shared, stamp, comm, &events->log, err);
    pli_free(own);
    return status;
}

plait_status pli_run_events_open(pli_run_events *events, plait_comm *comm, const char *path, const char id[17],
                                 plait_error *err) {
    plait_status status = PLAIT_OK;
    if (pli_comm_shares_process(comm)) {
        pthread_mutex_lock(&events->lock);
        if (events->log == NULL)
            status = pli_eventlog_open(path, plait_comm_size(comm), id, stamp, comm, &events->log, err);
        pthread_mutex_unlock(&events->lock);
    } else {
        status = open_own(events, comm, path, id, err);
    }
    if (status >= 0) pli_comm_set_events(comm, pli_eventlog_sink(events->log));
    return status;
}

plait_status pli_run_events_close(pli_run_events *events, plait_error *err) {
    plait_status status = pli_eventlog_close(&events->log, err);
    pthread_mutex_destroy(&events->lock);
    return status;
}
