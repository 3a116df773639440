/* The child process of a simulation (foretell.h). It looks at the run where the run tells of itself; what ends it sets
 * the run's stop flag, as a signal would. */
#include "cli/foretell.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "cli/record.h"
#include "cli/spawn.h"
#include "comm/comm.h"
#include "comm/launcher.h"

typedef struct told {
    pli_foretold run;
    pli_looks    looks;
} told;

typedef struct child_job {
    const pli_ahead *ahead;
    told             told; /* what the leading rank fills */
    plait_train_opts train;
    int              stop;
} child_job;

/* How many clocks of a whole job of `all` are simulated; 0: all of them. */
static int64_t most_of(const pli_ahead *a, int64_t all) {
    const int64_t half = a->half ? (all + 1) / 2 : 0;
    return half > 0 && (a->clocks == 0 || half < a->clocks) ? half : a->clocks;
}

/* A pass over the data; less, if few of its clocks are simulated. */
static double window_of(int64_t most, const plait_progress *p) {
    const int64_t pass = p->epochs > 0 && p->clocks > p->epochs ? p->clocks / p->epochs : 1;
    return most > 0 && pass > most / 4 ? fmax(1, (double)most / 4) : (double)pass;
}

static bool is_over(child_job *job, const plait_progress *p) {
    const pli_ahead *a = job->ahead;
    pli_foretold    *run = &job->told.run;
    const int64_t    most = most_of(a, p->clocks);
    double           seconds = 0, loss = NAN;
    run->late = a->cpu_ns > 0 && pli_cpu_ns() > a->cpu_ns;
    if (run->late || (most > 0 && p->clock >= most)) return true;
    if (isnan(a->target) || !pli_looks_last(&job->told.looks, run->window, &seconds, &loss)) return false;
    return loss <= a->target || seconds > a->seconds;
}

static void progress(void *user, const plait_progress *p) {
    child_job *job = user;
    job->told.run.all_clocks = p->clocks;
    job->told.run.window = window_of(most_of(job->ahead, p->clocks), p);
    pli_looks_add(&job->told.looks, p->clock, p->seconds, p->loss);
    /* pairs with train's read of *stop */
    if (is_over(job, p)) __atomic_store_n(&job->stop, 1, __ATOMIC_RELEASE);
}

static plait_status work(plait_comm *comm, void *user) {
    child_job    *job = user;
    pli_foretold *run = &job->told.run;
    plait_report  report;
    plait_model  *model = NULL;
    pli_record_init(&report);
    const plait_status status = plait_train(comm, &job->train, &report, &model);
    if (status >= 0 && pli_comm_leads(comm)) {
        run->ended = !report.interrupted;
        run->clocks = report.clocks;
        run->seconds = report.train_seconds;
        run->idle_share = report.idle_share;
        run->bytes = (double)report.bytes_sent;
        run->objective = report.objective;
        snprintf(run->optimizer, sizeof run->optimizer, "%s", report.optimizer);
    }
    plait_model_destroy(&model);
    return status;
}

/* The options of the simulated run: it has the rows in memory, and writes nothing. */
static void settle(child_job *job) {
    const pli_ahead  *a = job->ahead;
    plait_train_opts *t = &job->train;
    *t = a->plan->train;
    t->data = t->test = NULL;
    t->memory = a->data;
    t->checkpoint = t->resume = NULL;
    t->dry_run = 0;
    t->curve = 0;
    if (a->pair.topology[0] != '\0') t->topology = a->pair.topology;
    if (a->pair.consistency[0] != '\0') t->consistency = a->pair.consistency;
    t->seed = a->seed;
    t->stop = &job->stop;
    t->progress = progress;
    t->user = job;
}

/* Ends the process when it has computed so long: a clock may be too long for a look. */
static void set_alarm(uint64_t cpu_ns) {
    const struct itimerval at = { .it_value = { .tv_sec = (time_t)(cpu_ns / 1000000000) + 1 } };
    if (cpu_ns > 0) setitimer(ITIMER_PROF, &at, NULL);
}

/* In the child: returns what it writes to the parent. */
static plait_status simulate(void *user, void *result) {
    const pli_ahead *a = user;
    child_job       *job = pli_calloc(1, sizeof *job);
    plait_comm_opts  comm = a->plan->comm;
    plait_error      err = { .rank = -1 };
    const int64_t    before = pli_peak_rss_bytes(), ranks = a->workers + comm.servers;
    if (job == NULL) return PLAIT_ENOMEM;
    pli_launcher_forget();
    job->ahead = a;
    settle(job);
    comm.log = NULL;
    comm.transport = "sim";
    comm.workers = a->workers;
    comm.seed = a->stragglers;
    pli_looks_begin(&job->told.looks);
    job->told.run.objective = NAN;
    set_alarm(a->cpu_ns);
    pli_foretold *run = &job->told.run;
    run->status = plait_comm_run(&comm, work, job, &err);
    run->cpu_ns = pli_cpu_ns();
    run->rank_bytes = (double)(pli_peak_rss_bytes() - before) / (double)ranks;
    snprintf(run->why, sizeof run->why, "%s", err.text);
    memcpy(result, &job->told, sizeof job->told);
    pli_free(job);
    return PLAIT_OK;
}

static plait_status fetch(const pli_ahead *ahead, told *t, plait_error *err) {
    pli_foretold *run = &t->run;
    int32_t       code = 0;
    PLI_TRY(pli_fork(simulate, (void *)(uintptr_t)ahead, t, sizeof *t, &code, err));
    if (pli_spawn_stopped() != 0) return PLAIT_EINTERRUPTED;
    if (code == PLI_EXIT_SIGNAL + SIGPROF) {
        *run = (pli_foretold){ .status = PLAIT_ETIMEOUT, .late = true, .cpu_ns = ahead->cpu_ns };
        snprintf(run->why, sizeof run->why, "its simulation took too long");
    } else if (code != PLI_EXIT_DONE) {
        *run = (pli_foretold){ .status = PLAIT_EPEER };
        snprintf(run->why, sizeof run->why, "its simulation was ended by exit code %d; is there memory for so many "
                 "ranks?", code);
    } else if (run->status >= 0 && run->clocks == 0) {
        run->status = PLAIT_EINVAL;
        snprintf(run->why, sizeof run->why, "it has no clock");
    }
    return PLAIT_OK;
}

plait_status pli_foretell(const pli_ahead *ahead, pli_foretold *out, pli_looks *looks_out, plait_error *err) {
    told *t = pli_calloc(1, sizeof *t);
    if (t == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a simulation's result");
    const plait_status status = fetch(ahead, t, err);
    *out = t->run;
    if (looks_out != NULL) *looks_out = t->looks;
    pli_free(t);
    return status;
}
