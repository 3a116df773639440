/* Your own consistency policy: under `majority` a get in clock c waits until more than half of the workers have ended
 * all clocks before c. One or two slow workers hold up no other; the others see their updates whenever they come. */
#include <plait/table.h>
#include <stdio.h>
#include <stdlib.h>
enum { CLOCKS = 50, WORKERS_MAX = 64 };

static plait_status parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    (void)state, (void)setting;
    if (parameters == NULL) return PLAIT_OK;
    snprintf(err->text, sizeof err->text, "consistency majority takes no parameters, not '%s'", parameters);
    return err->code = PLAIT_EINVAL;
}

/* A copy can be used in the clock that fetched it. */
static plait_read on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_read on_pull(void *state, const plait_view *view) {
    int as_far = 0;
    (void)state;
    for (int w = 0; w < view->workers; w++) as_far += view->clocks[w] >= view->clock;
    return 2 * as_far > view->workers ? PLAIT_SERVE : PLAIT_WAIT;
}

static const plait_consistency majority = {
    .name = "majority",
    .parameters = "",
    .summary = "more than half of the workers have ended all clocks before",
    .parse = parse,
    .worker.on_get = on_get,
    .server.on_pull = on_pull,
};

/* Each worker counts its clocks in its own column of one row. 1: every get has seen what the policy promises. */
static plait_status work(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    int              me = plait_comm_rank(comm), workers = plait_comm_workers(comm), *good = user;
    double           row[WORKERS_MAX], mine[WORKERS_MAX] = { 0 };
    plait_table     *table = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "clocks";
    opts.type = PLAIT_F64;
    opts.rows = 1;
    opts.cols = workers;
    mine[me] = 1;
    plait_status status = plait_table_create(job, &opts, &table);
    for (int clock = 0; clock < CLOCKS && status >= 0; clock++) {
        int as_far = 0;
        if ((status = plait_table_get_range(table, 0, 1, row)) < 0) break;
        for (int w = 0; w < workers; w++) as_far += row[w] >= clock;
        if (2 * as_far <= workers || row[me] != clock) return PLAIT_EDIVERGED;
        if ((status = plait_table_inc_range(table, 0, 1, mine, 0)) >= 0) status = plait_job_clock(job);
    }
    if (status >= 0 && (status = plait_job_barrier(job)) >= 0) status = plait_table_get_range(table, 0, 1, row);
    for (int w = 0; w < workers && status >= 0; w++)
        if (row[w] != CLOCKS) status = PLAIT_EDIVERGED;
    if (me == 0) *good = status >= 0;
    return status;
}

int main(int argc, char **argv) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     error = { 0 };
    int             good = 1; /* written by worker 0 */
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.transport = argc > 1 ? argv[1] : NULL;
    comm.workers = argc > 2 ? atoi(argv[2]) : 0;
    job.policies = &majority;
    job.n_policies = 1;
    job.consistency = "majority";
    if (plait_run(&comm, &job, work, &good, &error) < 0) return fprintf(stderr, "%s\n", error.text), 2;
    return good ? 0 : 1;
}
