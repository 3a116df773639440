/* plan.h - what a job would take on a cluster, shared by the files of its command: plan.c reads the options and the
 * data, plan_runs.c simulates a setting, plan_learn.c compares real runs with their simulations, plan_search.c tries
 * settings that nobody listed, plan_show.c shows what came of it. */
#ifndef PLI_CLI_PLAN_H
#define PLI_CLI_PLAN_H

#include <plait/train.h>

#include "base/base.h"
#include "cli/foretell.h"
#include "cli/talk.h"

typedef struct pli_plan_setting {
    pli_job_pair pair;
    int32_t      workers, servers;
    char         filter[40], collective[16]; /* "": the job's own */
    bool         done, searched; /* searched: nobody has listed it */
    pli_foretold typical; /* of the seeds: that with the middle time */
    double       clock_seconds, low, high; /* a clock: the middle of the seeds, the least and the most, as --runs
                                              corrects them */
    double       seconds, bytes, cost;     /* of the whole job */
} pli_plan_setting;

typedef struct pli_plan_words {
    int64_t     clocks, seeds;
    double      price;
    const char *sizes, *runs;
    bool        search;
} pli_plan_words;

/* How far real runs were off: real over simulated time of a clock. Without runs all are 1. */
typedef struct pli_plan_misses {
    int32_t n;
    double  least, middle, most;
} pli_plan_misses;

enum { PLI_PLAN_SETTINGS = 256, PLI_PLAN_SEEDS = 16 };

typedef struct pli_plan {
    pli_plan_words     set;
    pli_train_settings job;
    pli_opts          *own_opts, *job_opts;
    pli_train_plan     plan; /* of one run; the settings differ from it */
    pli_talk           talk;
    plait_data        *data;
    double             row_bytes; /* memory of all rows */
    pli_plan_misses    misses;
    int32_t            n;
    pli_plan_setting   setting[PLI_PLAN_SETTINGS]; /* [n] */
    bool               interrupted;
    bool               usual; /* neither topologies nor consistencies were named */
    bool               free_workers, free_servers, free_filter, free_collective; /* --search may choose them */
} pli_plan;

/** Simulates a setting with each seed, each in a child process, since a process can simulate once; fills the rest of
 *  it. A run that is refused or fails becomes its status. Errors: EIO no process; EINTERRUPTED a signal came. */
plait_status pli_plan_simulate(pli_plan *plan, pli_plan_setting *setting, plait_error *err);

/** Simulates the real runs whose records --runs names, and notes how far they were off. Without --runs nothing is off.
 *  Errors: EIO; EFORMAT with file and line; EINTERRUPTED. */
plait_status pli_plan_learn(pli_plan *plan, plait_error *err);

/** Goes on from the shortest setting, one step at a time, while the job gets shorter; adds what it simulates to the
 *  settings. Errors: as pli_plan_simulate. */
plait_status pli_plan_search(pli_plan *plan, plait_error *err);

void pli_plan_text(const pli_plan *plan, pli_text *text);
void pli_plan_json(const pli_plan *plan, pli_text *text);

#endif
