/* one_group.h - what tests of a single group's table with two replicas share: the job, the table, a rank's death. */
#ifndef PLI_TESTS_TABLE_ONE_GROUP_H
#define PLI_TESTS_TABLE_ONE_GROUP_H

#include "check.h"
#include "table/table.h"

static inline plait_status open_job(plait_comm *comm, int64_t first_clock, plait_job **job_out) {
    plait_job_opts opts;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.consistency = "bsp";
    opts.replicas = 2;
    opts.first_clock = first_clock;
    return plait_job_create(comm, &opts, job_out);
}

static inline plait_status make(plait_job *job, plait_group *group, int64_t rows, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "w";
    opts.rows = rows;
    opts.group = group;
    return plait_table_create(job, &opts, table_out);
}

/* The body returns at once, as that of a process that is no more. */
static inline plait_status die(plait_job *job) {
    plait_comm       *comm = plait_job_comm(job);
    const plait_error why = { .code = PLAIT_EPEER, .rank = plait_comm_rank(comm), .text = "killed by the test" };
    pli_comm_kill(comm, &why);
    pli_job_abandon(&job);
    return PLAIT_EPEER;
}

/* Ends a clock, however often that has to be asked for when somebody dies meanwhile. */
static inline plait_status end_clock_at_last(plait_job *job) {
    plait_status status;
    while ((status = plait_job_clock(job)) == PLAIT_STAND_IN) {}
    return status;
}

#endif
