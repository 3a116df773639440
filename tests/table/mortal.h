/* mortal.h - what tests of deaths on threads share: a rank of a job with two replicas, which another thread may
 * strike. */
#ifndef PLI_TESTS_TABLE_MORTAL_H
#define PLI_TESTS_TABLE_MORTAL_H

#include <stdatomic.h>

#include "comm/comm.h"
#include "table/table.h"

/* Runs work in a job with two replicas over ps, and abandons the job if work fails, as a dead process would. opts has
 * the other settings. comm_out: another thread finds the rank there. */
static inline plait_status run_mortal(plait_comm *comm, const plait_job_opts *opts, const pli_event_sink *sink,
                                      _Atomic(plait_comm *) *comm_out,
                                      plait_status (*work)(void *user, plait_job *job), void *user) {
    plait_job_opts o = *opts;
    plait_job     *job = NULL;
    o.topology = "ps";
    if (o.replicas < 2) o.replicas = 2;
    pli_comm_set_events(comm, sink);
    PLI_TRY(plait_job_create(comm, &o, &job));
    atomic_store_explicit(comm_out, comm, memory_order_release);
    const plait_status status = work(user, job);
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

#endif
