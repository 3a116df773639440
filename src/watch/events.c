/* Opens and closes the event log of a run (events.h). */
#include "watch/events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "watch/eventlog.h"

enum { TAG_ID = 0x7002, ID_BYTES = 17 };

typedef struct run_events {
    struct plait_events base; /* comm/comm.h */
    pthread_mutex_t     lock; /* guards log, which the first rank of the process opens */
    pli_eventlog       *log;
    char               *path;
    char                id[ID_BYTES];
} run_events;

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

static plait_status open_log(run_events *events, plait_comm *comm, const char *path, plait_error *err) {
    return pli_eventlog_open(path, plait_comm_size(comm), events->id, stamp, comm, &events->log, err);
}

/* The rank is a process: it writes a file of its own. */
static plait_status open_own(run_events *events, plait_comm *comm, plait_error *err) {
    char *own = pli_format("%s.%" PRId32, events->path, plait_comm_rank(comm));
    if (own == NULL) return pli_fail(err, PLAIT_ENOMEM, "event log: no memory");
    plait_status status = share_id(comm, events->id);
    if (status >= 0) status = open_log(events, comm, own, err);
    pli_free(own);
    return status;
}

static plait_status record(struct plait_events *base, plait_comm *comm) {
    run_events  *events = (run_events *)base;
    plait_error *err = pli_comm_error(comm);
    plait_status status = PLAIT_OK;
    if (pli_comm_events(comm) != NULL) return PLAIT_OK; /* an earlier job of the rank has set it */
    if (pli_comm_shares_process(comm)) {
        pthread_mutex_lock(&events->lock);
        if (events->log == NULL) status = open_log(events, comm, events->path, err);
        pthread_mutex_unlock(&events->lock);
    } else {
        status = open_own(events, comm, err);
    }
    if (status >= 0) pli_comm_set_events(comm, pli_eventlog_sink(events->log));
    return status;
}

void pli_run_id(char id[17]) {
    struct {
        uint64_t now;
        int64_t  pid;
        char     host[256];
    } key;
    memset(&key, 0, sizeof key);
    key.now = pli_now_ns();
    key.pid = pli_pid();
    pli_host_name(key.host);
    snprintf(id, 17, "%016" PRIx64, pli_hash_bytes(&key, sizeof key, 0));
}

plait_status pli_events_create(const char *path, const char id[17], plait_events **events_out, plait_error *err) {
    run_events *events = pli_calloc(1, sizeof *events);
    if (events != NULL) events->path = pli_strdup(path);
    if (events == NULL || events->path == NULL) {
        pli_free(events);
        return pli_fail(err, PLAIT_ENOMEM, "event log: no memory");
    }
    events->base.record = record;
    pthread_mutex_init(&events->lock, NULL);
    memcpy(events->id, id, sizeof events->id);
    *events_out = &events->base;
    return PLAIT_OK;
}

plait_status plait_events_create(const char *path, plait_events **events_out, plait_error *error_out) {
    char id[ID_BYTES];
    PLI_TRY(PLI_GIVEN(error_out, path));
    PLI_TRY(PLI_GIVEN(error_out, events_out));
    pli_run_id(id);
    return pli_events_create(path, id, events_out, error_out);
}

plait_status plait_events_record(plait_comm *comm, plait_events *events) {
    if (comm == NULL) return PLAIT_EINVAL;
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), events));
    return record(events, comm);
}

plait_status plait_events_close(plait_events **events_ptr, plait_error *error_out) {
    run_events *events = events_ptr == NULL ? NULL : (run_events *)*events_ptr;
    if (events == NULL) return PLAIT_OK;
    plait_status status = pli_eventlog_close(&events->log, error_out);
    pthread_mutex_destroy(&events->lock);
    pli_free(events->path);
    pli_free(events);
    *events_ptr = NULL;
    return status;
}
