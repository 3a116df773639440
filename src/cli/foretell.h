/* foretell.h - simulates the first clocks of a job, for commands that choose among settings before there is a run. The
 * child process has the parent's rows (fork shares their pages), so batches, messages and waits are those of the whole
 * job, though few clocks are simulated. */
#ifndef PLI_CLI_FORETELL_H
#define PLI_CLI_FORETELL_H

#include <plait/train.h>

#include "cli/job_words.h"
#include "cli/looks.h"
#include "cli/settings.h"

/* What to simulate, and when to stop: at the first look at which one of the bounds is reached. */
typedef struct pli_ahead {
    const pli_train_plan *plan;
    const plait_data     *data;
    pli_job_pair          pair; /* "": as the plan has it */
    int32_t               workers;
    uint64_t              seed, stragglers; /* of the job; of what the cluster's file draws */
    int64_t               clocks;           /* 0: all */
    bool                  half;             /* no more than half of the job's clocks */
    double                target, seconds;  /* a loss, and how much simulated time it may take; NaN, INFINITY: none */
    uint64_t              cpu_ns;           /* of this machine's processor; 0: no bound */
} pli_ahead;

/* The first clocks of a simulated job. */
typedef struct pli_foretold {
    plait_status status;
    char         why[400]; /* status < 0: what it said */
    char         optimizer[32];
    bool         ended;    /* the job was over before the clocks that are simulated were */
    bool         late;     /* cpu_ns has stopped it */
    uint64_t     cpu_ns;   /* what it took */
    double       window;   /* clocks over which a loss counts */
    int64_t      clocks, all_clocks; /* simulated; of the whole job, which a solver that converges may end earlier */
    double       seconds, idle_share; /* simulated: of training */
    double       bytes; /* sent by all ranks in training */
    double       objective; /* ended: of the model; else NaN */
    double       rank_bytes; /* memory of a rank besides its rows, on average, as the simulator's process shows it */
} pli_foretold;

/** Simulates in a child process, since a process can simulate once. A run that is refused or fails becomes its status.
 *  looks_out: the losses that it told; may be NULL. Errors: EIO no process; EINTERRUPTED a signal came. */
plait_status pli_foretell(const pli_ahead *ahead, pli_foretold *out, pli_looks *looks_out, plait_error *err);

#endif
