/* Simulates the first clocks of a job in a child process. The child has the parent's rows (fork shares their pages), so
 * batches, and how many clocks an epoch has, are those of the whole job, though few clocks are simulated: the clock
 * that ends them sets the run's stop flag, as a signal would. */
#include "cli/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/record.h"
#include "cli/spawn.h"
#include "comm/comm.h"

/* How much longer a clock may take than was simulated, and how much shorter: the least and the greatest ratio that
 * bench/simulated has measured on shaped links (docs/simulation.md). */
static const double REAL_LEAST = 0.82, REAL_MOST = 1.52;

typedef struct child_job {
    pli_plan_run     run; /* first: what the leading rank fills */
    plait_train_opts train;
    int64_t          most; /* clocks to simulate; 0: all */
    int              stop;
} child_job;

static void progress(void *user, const plait_progress *p) {
    child_job *job = user;
    job->run.all_clocks = p->clocks;
    /* pairs with train's read of *stop */
    if (job->most > 0 && p->clock >= job->most) __atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
}

static plait_status work(plait_comm *comm, void *user) {
    child_job   *job = user;
    plait_report report;
    plait_model *model = NULL;
    pli_record_init(&report);
    const plait_status status = plait_train(comm, &job->train, &report, &model);
    if (status >= 0 && pli_comm_leads(comm)) {
        job->run.ended = !report.interrupted;
        job->run.clocks = report.clocks;
        job->run.seconds = report.train_seconds;
        job->run.idle_share = report.idle_share;
        job->run.bytes = (double)report.bytes_sent;
        job->run.objective = report.objective;
        snprintf(job->run.optimizer, sizeof job->run.optimizer, "%s", report.optimizer);
    }
    plait_model_destroy(&model);
    return status;
}

typedef struct order {
    pli_plan         *plan;
    pli_plan_setting *setting;
    uint64_t          seed;
} order;

/* In the child: returns what it writes to the parent. */
static plait_status simulate(void *user, void *result) {
    const order     *o = user;
    child_job        job = { .train = o->plan->plan.train, .most = o->plan->set.clocks };
    plait_comm_opts  comm = o->plan->plan.comm;
    plait_error      err = { .rank = -1 };
    const int64_t    before = pli_peak_rss_bytes(), ranks = o->setting->workers + comm.servers;
    comm.log = NULL;
    comm.transport = "sim";
    comm.workers = o->setting->workers;
    comm.seed = o->seed;
    job.train.data = NULL;
    job.train.memory = o->plan->data;
    job.train.test = NULL;
    job.train.topology = o->setting->pair.topology;
    job.train.consistency = o->setting->pair.consistency;
    job.train.seed = o->seed;
    job.train.stop = &job.stop;
    job.train.progress = progress;
    job.train.user = &job;
    job.run.objective = NAN;
    job.run.status = plait_comm_run(&comm, work, &job, &err);
    job.run.rank_bytes = (double)(pli_peak_rss_bytes() - before) / (double)ranks;
    snprintf(job.run.why, sizeof job.run.why, "%s", err.text);
    memcpy(result, &job.run, sizeof job.run);
    return PLAIT_OK;
}

static int by_clock(const void *left, const void *right) {
    const pli_plan_run *a = left, *b = right;
    const double        x = a->seconds / (double)a->clocks, y = b->seconds / (double)b->clocks;
    return (x > y) - (x < y);
}

/* Fills the setting from its runs, in order of time. */
static void foretell(const pli_plan *plan, pli_plan_setting *s, const pli_plan_run *run, int64_t n) {
    const pli_plan_run *middle = &run[n / 2], *last = &run[n - 1];
    const double        clocks = (double)middle->clocks;
    const double        all = middle->ended ? clocks : (double)middle->all_clocks;
    s->typical = *middle;
    s->clock_seconds = middle->seconds / clocks;
    s->low = run[0].seconds / (double)run[0].clocks * REAL_LEAST;
    s->high = last->seconds / (double)last->clocks * REAL_MOST;
    s->seconds = s->clock_seconds * all;
    s->bytes = middle->bytes / clocks * all;
    s->cost = s->seconds / 3600 * plan->set.price * (s->workers + plan->plan.comm.servers);
}

plait_status pli_plan_simulate(pli_plan *plan, pli_plan_setting *setting, plait_error *err) {
    pli_plan_run run[PLI_PLAN_SEEDS];
    int64_t      n = 0;
    for (int64_t seed = 0; seed < plan->set.seeds; seed++) {
        order   o = { plan, setting, (uint64_t)(plan->job.seed + seed) };
        int32_t code = 0;
        PLI_TRY(pli_fork(simulate, &o, &run[n], sizeof run[n], &code, err));
        if (pli_spawn_stopped() != 0) return PLAIT_EINTERRUPTED;
        if (code != PLI_EXIT_DONE) {
            run[n] = (pli_plan_run){ .status = PLAIT_EPEER };
            snprintf(run[n].why, sizeof run[n].why, "its simulation was ended by exit code %d; is there memory for so "
                     "many ranks?", code);
        } else if (run[n].status >= 0 && run[n].clocks == 0) {
            run[n].status = PLAIT_EINVAL;
            snprintf(run[n].why, sizeof run[n].why, "it has no clock");
        }
        if (run[n].status < 0) {
            setting->typical = run[n];
            setting->done = true;
            return PLAIT_OK;
        }
        n++;
    }
    qsort(run, (size_t)n, sizeof *run, by_clock);
    foretell(plan, setting, run, n);
    setting->done = true;
    return PLAIT_OK;
}
