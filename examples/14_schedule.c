/* Scheduled work: a chain of masses on springs comes to rest. Each mass moves to the middle of its neighbours, so two
 * neighbours must not move at the same time; and the masses that moved farthest are the next to look at.
 * 14_schedule [TOPOLOGY [TRANSPORT [WORKERS [LOG]]]]; then plait audit --schedule LOG proves that none did */
#include <math.h>
#include <plait/events.h>
#include <plait/schedule.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 24, STEPS = 3000 };
typedef struct chain {
    plait_table *place; /* [N] where each mass is; the ends are tied to 0 and 1 */
    double       moved[N];
} chain;

static double middle(const double *place, int64_t i) {
    return ((i > 0 ? place[i - 1] : 0) + (i + 1 < N ? place[i + 1] : 1)) / 2;
}

/* Neighbours interfere. */
static plait_status conflict(void *user, int64_t n, const plait_variables *pairs, double *out) {
    (void)user;
    for (int64_t i = 0; i < n; i++) out[i] = pairs[i].b - pairs[i].a == 1;
    return PLAIT_OK;
}

/* For the audit: a mass writes its own place and reads those beside it. */
static int64_t touches(void *user, int64_t i, int64_t room, plait_touch *touch) {
    (void)user;
    for (int64_t k = 0; k < 3 && k < room; k++)
        touch[k] = (plait_touch){ .writes = k == 1, .key = (uint64_t)(i + k) }; /* the first tie is key 0 */
    return 3;
}

static plait_status push(void *user, const plait_turn *turn) {
    chain *c = user;
    for (int64_t k = 0; k < turn->n; k++) {
        const int64_t  i = turn->variable[k];
        const uint64_t key = (uint64_t)i;
        const void    *place;
        plait_status   status = plait_table_read(c->place, 0, N, &place);
        if (status < 0) return status;
        c->moved[i] = middle(place, i) - ((const double *)place)[i];
        if ((status = plait_table_inc(c->place, 1, &key, &c->moved[i], 0)) < 0) return status;
    }
    return PLAIT_OK;
}

static plait_status pull(void *user, const plait_turn *turn, double *change) {
    chain *c = user;
    for (int64_t k = 0; k < turn->n; k++) change[k] = fabs(c->moved[turn->variable[k]]);
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    chain               c = { 0 };
    plait_schedule     *schedule = NULL;
    plait_schedule_opts opts;
    plait_table_opts    table;
    const void         *place = NULL;
    plait_table_opts_init(&table);
    table.name = "place", table.type = PLAIT_F64, table.rows = N, table.keyed = 1;
    plait_schedule_opts_init(&opts);
    opts.variables = N, opts.order = "priority", opts.floor = 1e-3; /* none is forgotten */
    opts.take = 2 * plait_comm_workers(plait_job_comm(job));
    opts.conflict = conflict, opts.touches = touches, opts.push = push, opts.pull = pull, opts.user = &c;
    plait_status status = plait_table_create(job, &table, &c.place);
    if (status >= 0) status = plait_schedule_create(job, &opts, &schedule);
    for (int step = 0; step < STEPS && status >= 0; step++) status = plait_schedule_step(schedule);
    if (status >= 0 && (status = plait_job_barrier(job)) >= 0) status = plait_table_read(c.place, 0, N, &place);
    for (int64_t i = 0; place != NULL && plait_comm_rank(plait_job_comm(job)) == 0 && i < N; i++)
        *(double *)user = fmax(*(double *)user, fabs(((const double *)place)[i] - (double)(i + 1) / (N + 1)));
    plait_schedule_destroy(&schedule);
    return status;
}

int main(int argc, char **argv) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     error;
    double          off = 0; /* written by worker 0 */
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    job.topology = argc > 1 ? argv[1] : NULL;
    comm.transport = argc > 2 ? argv[2] : NULL;
    comm.workers = argc > 3 ? atoi(argv[3]) : 2;
    if (argc > 4 && plait_events_create(argv[4], &job.events, &error) < 0)
        return fprintf(stderr, "%s\n", error.text), 2;
    plait_status ran = plait_run(&comm, &job, work, &off, &error);
    if (plait_events_close(&job.events, ran < 0 ? NULL : &error) < 0 || ran < 0)
        return fprintf(stderr, "%s\n", error.text), 2;
    printf("the farthest mass is %.2g from its place of rest\n", off);
    return off < 1e-2 ? 0 : 1;
}
