/* audited.h - runs a job of a test with an event log, and has the audit judge it. */
#ifndef PLI_TESTS_TABLE_AUDITED_H
#define PLI_TESTS_TABLE_AUDITED_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "table/table.h"
#include "watch/audit/audit.h"
#include "watch/eventlog.h"

typedef struct audited {
    plait_work_fn     *work;
    void              *user;
    pli_eventlog      *log;
    char               path[64];
    pli_audit_verdict  verdict;
    char               said[768]; /* the first violation, or why nothing is proven */
} audited;

static inline uint64_t audited_stamp(void *comm) { return pli_comm_stamp(comm); }

static inline plait_status audited_body(plait_comm *comm, void *user) {
    audited   *a = user;
    plait_job *job = NULL;
    pli_comm_set_events(comm, pli_eventlog_sink(a->log));
    PLI_TRY(plait_job_create(comm, NULL, &job));
    plait_status status = pli_comm_is_worker(comm) ? a->work(job, a->user) : PLAIT_OK;
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

/* simulated: times are those of the simulation, and so of one rank's handle; ranks of the first call open the log. */
static inline plait_status audited_in_sim(plait_comm *comm, void *user) {
    audited *a = user;
    if (a->log == NULL)
        PLI_TRY(pli_eventlog_open(a->path, plait_comm_size(comm), "audited", audited_stamp, comm, &a->log,
                                  pli_comm_error(comm)));
    return audited_body(comm, user);
}

static inline plait_status audited_judge(audited *a, plait_error *err) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    const char  *path = a->path;
    plait_status status = pli_eventlog_close(&a->log, err);
    if (status >= 0) status = pli_logfile_open(&path, 1, &file, err);
    if (status >= 0) status = pli_audit_run(file, NULL, &audit, err);
    if (status >= 0) {
        const pli_audit_violation *first = pli_audit_first(audit);
        const char                *why = pli_audit_why(audit);
        a->verdict = pli_audit_result(audit);
        snprintf(a->said, sizeof a->said, "%s", first != NULL ? first->text : why != NULL ? why : "");
    }
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    return status;
}

/* Runs the work, whose ranks share a process, and judges what its log says, whether it ended well or not. */
static inline plait_status run_audited(const plait_comm_opts *opts, plait_work_fn *work, void *user, audited *a,
                                       plait_error *err) {
    const bool simulated = opts->transport != NULL && strcmp(opts->transport, "sim") == 0;
    *a = (audited){ .work = work, .user = user };
    snprintf(a->path, sizeof a->path, "audited.%d.events", (int)getpid());
    if (!simulated)
        PLI_TRY(pli_eventlog_open(a->path, opts->workers + opts->servers, "audited", NULL, NULL, &a->log, err));
    plait_status status = plait_comm_run(opts, simulated ? audited_in_sim : audited_body, a, err);
    plait_error  own = *err;
    if (a->log == NULL) return status;
    plait_status judged = audited_judge(a, err);
    unlink(a->path);
    if (status < 0) *err = own;
    return status < 0 ? status : judged;
}

#endif
