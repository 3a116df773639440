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
    pthread_mutex_t     lock; /* guards log, which the first rank of the process opens, and came */
    pli_eventlog       *log;
    uint8_t            *came; /* [ranks] where all are in one process: has the rank set the log? */
    int32_t             ranks;
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

/* A rank comes to a log once in a run, so who comes again is of another run. The log's clock is that of the first. */
static plait_status refuse_again(const run_events *events, plait_error *err) {
    return pli_fail(err, PLAIT_EINVAL, "event log %s is of another run; make one for each run", events->path);
}

/* All ranks are in this process, and share a file. Under the lock. */
static plait_status open_shared(run_events *events, plait_comm *comm, plait_error *err) {
    const int32_t rank = plait_comm_rank(comm);
    if (events->came == NULL) {
        events->ranks = plait_comm_size(comm);
        events->came = pli_calloc((size_t)events->ranks, 1);
        if (events->came == NULL) return pli_fail(err, PLAIT_ENOMEM, "event log: no memory");
    }
    if (rank >= events->ranks || events->came[rank]) return refuse_again(events, err);
    if (events->log == NULL) PLI_TRY(open_log(events, comm, events->path, err));
    events->came[rank] = 1;
    return PLAIT_OK;
}

static plait_status open_either(run_events *events, plait_comm *comm, plait_error *err) {
    if (!pli_comm_shares_process(comm))
        return events->log != NULL ? refuse_again(events, err) : open_own(events, comm, err);
    pthread_mutex_lock(&events->lock);
    const plait_status status = open_shared(events, comm, err);
    pthread_mutex_unlock(&events->lock);
    return status;
}

static bool is_set(run_events *events, plait_comm *comm) {
    pthread_mutex_lock(&events->lock);
    const bool set = events->log != NULL && pli_comm_events(comm) == pli_eventlog_sink(events->log);
    pthread_mutex_unlock(&events->lock);
    return set;
}

static plait_status record(struct plait_events *base, plait_comm *comm) {
    run_events  *events = (run_events *)base;
    plait_error *err = pli_comm_error(comm);
    if (is_set(events, comm)) return PLAIT_OK; /* by an earlier job of the rank */
    if (pli_comm_events(comm) != NULL)
        return pli_fail(err, PLAIT_EINVAL, "event log %s: the run has another event log already", events->path);
    PLI_TRY(open_either(events, comm, err));
    pli_comm_set_events(comm, pli_eventlog_sink(events->log));
    return PLAIT_OK;
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
    pli_free(events->came);
    pli_free(events->path);
    pli_free(events);
    *events_ptr = NULL;
    return status;
}
