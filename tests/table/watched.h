/* watched.h - a job over threads with an event log, which the audit must prove. */
#ifndef PLI_TESTS_TABLE_WATCHED_H
#define PLI_TESTS_TABLE_WATCHED_H

#include "table/table.h"

#include "witness.h"

typedef struct watched {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_work_fn  *work;
    void           *user;
    bool            logs; /* aggregation by host has no event log */
    witness         witness;
} watched;

static inline watched watched_run_of(plait_work_fn *work, void *user, int32_t workers, int32_t servers) {
    watched run = { .work = work, .user = user, .logs = true };
    plait_comm_opts_init(&run.comm);
    plait_job_opts_init(&run.job);
    run.comm.transport = "threads";
    run.comm.workers = workers;
    run.comm.servers = servers;
    run.comm.timeout_ns = UINT64_C(60) * 1000000000;
    return run;
}

static inline plait_status watched_body(plait_comm *comm, void *user) {
    watched   *run = user;
    plait_job *job = NULL;
    if (run->logs) pli_comm_set_events(comm, witness_sink(&run->witness));
    PLI_TRY(plait_job_create(comm, &run->job, &job));
    plait_status status = pli_comm_is_worker(comm) ? run->work(job, run->user) : PLAIT_OK;
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

/** why [bytes]: what failed, or what the audit says. */
static inline bool watched_play(watched *run, char *why, size_t bytes) {
    plait_error  err = { 0 };
    char         said[640];
    plait_status status = PLAIT_ENOMEM;
    if (witness_open(&run->witness, run->comm.workers + run->comm.servers, NULL, NULL))
        status = plait_comm_run(&run->comm, watched_body, run, &err);
    const bool kept = witness_close(&run->witness, status >= 0 && run->logs, said, sizeof said) || !run->logs;
    snprintf(why, bytes, "%s", status < 0 ? err.text : said);
    return status >= 0 && kept;
}

#endif
