/* plan.h - what a job would take on a cluster, shared by the files of its command: plan.c reads the options and the
 * data, plan_runs.c simulates a setting, plan_show.c shows what came of it. */
#ifndef PLI_CLI_PLAN_H
#define PLI_CLI_PLAN_H

#include <plait/train.h>

#include "base/base.h"
#include "cli/job_words.h"
#include "cli/talk.h"

/* The first clocks of a simulated job. */
typedef struct pli_plan_run {
    plait_status status;
    char         why[400]; /* status < 0: what it said */
    char         optimizer[32];
    bool         ended;    /* the job was over before the clocks that are simulated were */
    int64_t      clocks, all_clocks; /* simulated; of the whole job, which a solver that converges may end earlier */
    double       seconds, idle_share; /* simulated: of training */
    double       bytes; /* sent by all ranks in training */
    double       objective; /* ended: of the model; else NaN */
    double       rank_bytes; /* memory of a rank besides its rows, on average, as the simulator's process shows it */
} pli_plan_run;

typedef struct pli_plan_setting {
    pli_job_pair pair;
    int32_t      workers;
    bool         done;
    pli_plan_run typical; /* of the seeds: that with the middle time */
    double       clock_seconds, low, high; /* a clock: the middle of the seeds; the least and the most, with the
                                              simulation's own error */
    double       seconds, bytes, cost;     /* of the whole job */
} pli_plan_setting;

typedef struct pli_plan_words {
    int64_t     clocks, seeds;
    double      price;
    const char *sizes;
} pli_plan_words;

enum { PLI_PLAN_SETTINGS = 256, PLI_PLAN_SEEDS = 16 };

typedef struct pli_plan {
    pli_plan_words     set;
    pli_train_settings job;
    pli_opts          *own_opts, *job_opts;
    pli_train_plan     plan; /* of one run; the settings differ from it */
    pli_talk           talk;
    plait_data        *data;
    double             row_bytes; /* memory of all rows */
    int32_t            n;
    pli_plan_setting   setting[PLI_PLAN_SETTINGS]; /* [n] */
    bool               interrupted;
} pli_plan;

/** Simulates a setting with each seed, each in a child process, since a process can simulate once; fills the rest of
 *  it. A run that is refused or fails becomes its status. Errors: EIO no process; EINTERRUPTED a signal came. */
plait_status pli_plan_simulate(pli_plan *plan, pli_plan_setting *setting, plait_error *err);

void pli_plan_text(const pli_plan *plan, pli_text *text);
void pli_plan_json(const pli_plan *plan, pli_text *text);

#endif
