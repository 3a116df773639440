/* program.h - a small scheduled program, run by the tests on threads and in simulated time: blocks of a table, each
 * added to by its owner, whose log the audit judges. */
#ifndef PLI_TESTS_SCHED_PROGRAM_H
#define PLI_TESTS_SCHED_PROGRAM_H

#include <plait/schedule.h>

#include "check.h"
#include "comm/comm.h"
#include "table/table.h"
#include "watch/audit/schedule.h"

/* ../table/witness.h keeps the log in memory; both audits read it. */
#include "table/witness.h"

typedef struct program {
    const char *transport, *topology, *consistency, *order;
    const char *own;          /* the table's consistency; NULL: the job's */
    int         leases;
    const char *cluster;      /* sim */
    uint64_t    cost;         /* entries that a variable costs */
    double      seconds;      /* of all steps, on worker 0 */
    int         late;         /* the table comes after the schedule */
    int32_t     workers, servers;
    int64_t     variables, take, steps;
    int         each, near;   /* near: variables whose numbers differ by so little conflict, as the program says */
    int         truly;        /* and as is true: their keys overlap; 0: as near */
    double      allowed;
    int64_t     cache;
    int         astray;       /* the worker that is told other changes; 0: none */
    uint64_t    hash[8];      /* of each worker's turns */
    int64_t     asked, updates;
    int64_t     had[8][64];   /* how many times each worker has had each of the first variables */
} program;

/* A worker's part. */
typedef struct part {
    program     *of;
    plait_job   *job;
    plait_table *table;
    int64_t      asked;
    uint64_t     hash;
} part;

static inline plait_status conflict_of(void *user, int64_t n, const plait_variables *pairs, double *out) {
    part *p = user;
    for (int64_t i = 0; i < n; i++) out[i] = pairs[i].b - pairs[i].a <= p->of->near ? 1 : 0;
    p->asked += n;
    return PLAIT_OK;
}

/* A variable writes the keys v .. v + truly. */
static inline int64_t touches_of(void *user, int64_t variable, int64_t room, plait_touch *touch) {
    const part   *p = user;
    const int64_t n = 1 + (p->of->truly != 0 ? p->of->truly : p->of->near);
    for (int64_t i = 0; i < n && i < room; i++)
        touch[i] = (plait_touch){ .space = 3, .writes = 1, .key = (uint64_t)(variable + i) };
    return n;
}

static inline plait_status push_of(void *user, const plait_turn *turn) {
    part        *p = user;
    const double one = 1;
    p->hash = pli_hash_bytes(turn->variable, (size_t)turn->n * sizeof *turn->variable, p->hash + (uint64_t)turn->step);
    for (int64_t i = 0; i < turn->n; i++) {
        const uint64_t key = (uint64_t)turn->variable[i];
        double         before;
        if (key < 64) p->of->had[plait_comm_rank(plait_job_comm(p->job))][key]++;
        PLI_TRY(plait_table_get(p->table, 1, &key, &before));
        PLI_TRY(plait_table_inc(p->table, 1, &key, &one, 0));
        if (p->of->cost > 0) pli_comm_work(plait_job_comm(p->job), PLI_WORK_ENTRIES, p->of->cost);
    }
    return PLAIT_OK;
}

/* The change of a variable falls with its number, so priority prefers low numbers. */
static inline plait_status pull_of(void *user, const plait_turn *turn, double *change) {
    part *p = user;
    for (int64_t i = 0; i < turn->n; i++) change[i] = 1.0 / (double)(1 + turn->variable[i]);
    if (p->of->astray == plait_comm_rank(plait_job_comm(p->job)) && p->of->astray > 0)
        for (int64_t i = 0; i < turn->n; i++) change[i] = (double)turn->variable[i];
    return PLAIT_OK;
}

static inline plait_status make_table_of(part *p) {
    plait_table_opts t;
    plait_table_opts_init(&t);
    t.name = "w";
    t.type = PLAIT_F64;
    t.rows = p->of->variables;
    t.keyed = 1;
    t.consistency = p->of->own;
    return plait_table_create(p->job, &t, &p->table);
}

static inline plait_status steps_of(part *p, plait_schedule *s) {
    program    *of = p->of;
    plait_comm *comm = plait_job_comm(p->job);
    const uint64_t began = pli_comm_now(comm);
    for (int64_t i = 0; i < of->steps; i++) PLI_TRY(plait_schedule_step(s));
    if (plait_comm_rank(comm) == 0) of->seconds = (double)(pli_comm_now(comm) - began) * 1e-9;
    CHECK(plait_schedule_steps(s) == of->steps);
    const plait_status same = plait_schedule_agree(s);
    of->hash[plait_comm_rank(comm)] = p->hash;
    if (plait_comm_rank(comm) == 0) {
        of->asked = plait_schedule_asked(s);
        of->updates = plait_schedule_updates(s);
        CHECK(of->asked == p->asked);
    }
    return same;
}

/* Nothing that was pushed is lost: the table's values add up to the updates. */
static inline plait_status count_of(part *p, plait_schedule *s) {
    plait_comm *comm = plait_job_comm(p->job);
    double      sum = 0;
    const void *values;
    PLI_TRY(plait_job_barrier(p->job));
    PLI_TRY(plait_table_read(p->table, 0, p->of->variables, &values));
    for (int64_t i = 0; i < p->of->variables; i++) sum += ((const double *)values)[i];
    CHECK(sum == (double)plait_schedule_updates(s) * (p->of->each ? p->of->workers : 1));
    return PLAIT_OK;
}

static inline plait_status work_of(plait_job *job, void *user) {
    part                p = { .of = user, .job = job };
    plait_schedule     *s = NULL;
    plait_schedule_opts opts;
    plait_schedule_opts_init(&opts);
    opts.variables = p.of->variables;
    opts.order = p.of->order;
    opts.take = p.of->take;
    opts.each = p.of->each;
    opts.seed = 5;
    opts.allowed = p.of->allowed;
    if (p.of->cache > 0) opts.cache = p.of->cache;
    opts.conflict = p.of->near > 0 ? conflict_of : NULL;
    opts.leases = p.of->leases;
    opts.touches = touches_of;
    opts.push = push_of;
    opts.pull = pull_of;
    opts.user = &p;
    if (!p.of->late) PLI_TRY(make_table_of(&p));
    PLI_TRY(plait_schedule_create(job, &opts, &s));
    plait_status status = p.of->late ? make_table_of(&p) : PLAIT_OK;
    if (status == PLAIT_OK) status = steps_of(&p, s);
    if (status == PLAIT_OK) status = count_of(&p, s);
    plait_schedule_destroy(&s);
    return status;
}

typedef struct run {
    program       *of;
    plait_job_opts job;
    witness        witness;
} run;

static inline plait_status body_of(plait_comm *comm, void *user) {
    run       *r = user;
    plait_job *job = NULL;
    pli_comm_set_events(comm, witness_sink(&r->witness));
    PLI_TRY(plait_job_create(comm, &r->job, &job));
    plait_status status = pli_comm_is_worker(comm) ? work_of(job, r->of) : PLAIT_OK;
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

/** Runs the program. *proof_out: what its log proves; the other promises are judged, too. */
static inline plait_status play(program *of, pli_schedule_proof *proof_out, plait_error *err) {
    run             r = { .of = of };
    plait_comm_opts c;
    char            why[640];
    const char     *path = r.witness.path;
    pli_logfile    *file = NULL;
    plait_comm_opts_init(&c);
    plait_job_opts_init(&r.job);
    c.transport = of->transport;
    c.workers = of->workers;
    c.servers = of->servers;
    c.cluster = of->cluster;
    c.timeout_ns = UINT64_C(60) * 1000000000;
    r.job.topology = of->topology;
    r.job.consistency = of->consistency;
    if (!witness_open(&r.witness, of->workers + of->servers, NULL, NULL)) return PLAIT_ENOMEM;
    plait_status status = plait_comm_run(&c, body_of, &r, err);
    const int    fd = dup(r.witness.fd);
    if (!witness_close(&r.witness, status >= 0, why, sizeof why))
        status = pli_fail(err, PLAIT_EDIVERGED, "the audit: %s", why);
    snprintf(r.witness.path, sizeof r.witness.path, "/proc/self/fd/%d", fd);
    if (status >= 0) status = pli_logfile_open(&path, 1, &file, err);
    if (status >= 0) status = pli_schedule_prove(file, NULL, proof_out, err);
    pli_logfile_close(&file);
    close(fd);
    return status;
}

#endif
