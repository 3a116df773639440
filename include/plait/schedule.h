/* plait/schedule.h - scheduled work: which variables are updated next, and which of them may be updated together.
 *
 * Gradient descent updates all parameters at once. Coordinate descent, factorisation and samplers update a few
 * *variables* at a time (ids 0 .. variables - 1: coordinates, or blocks of a matrix's rows or columns), and it matters
 * which: some would move far, others hardly; and two that interfere must not move at the same time. A program gives
 *
 *     push(turn)          computes for the turn's variables, and incs tables
 *     pull(turn, change)  the clock has ended: reads sums, commits, and says how much each variable has changed
 *     conflict(pairs)     how much two variables interfere (optional)
 *     schedule(step)      which variables come next (optional: else one of the orders below)
 *
 * and plait_schedule_step() takes one step: it makes the plan, calls push, ends the job's clock, calls pull.
 *
 *     order         the candidates of a step
 *     round-robin   0, 1, 2, ...
 *     random        drawn by the seed, none twice in a step
 *     priority      drawn with a chance in proportion to `floor` + the variable's last change (a Fenwick tree)
 *     rotate        blocks lie on a ring; each step every worker takes one, and all move on by one
 *
 * There is no scheduler rank. Every worker computes the whole plan of a step, from the seed, the number of the step,
 * and the changes that it has been told; so all must be told the same changes. plait_schedule_agree checks it.
 *
 * *Dependencies.* With a conflict function the candidates are gone through in order. One is taken if its interference
 * with those taken before adds up to `allowed` at most, for it and for each of them. So in a set of coordinates each
 * row of the Gram matrix is dominated by its diagonal, and a step with all of them together goes downhill. Interference
 * is asked for once a pair, many pairs in one call, and kept in a cache of `cache` pairs.
 *
 * *Owners.* With `each` 0 a variable of a step has one owner, a worker, which updates its own variables one after
 * another; only variables of different workers are updated together, and only they can conflict. With `each` 1 every
 * worker has part of the data of each variable: all workers push for all variables of a step, and pull reads the sums.
 * Then the variables of a step are updated together, and the changes that pull tells must be the same on all workers.
 *
 * *What a consistency promises.* Under bsp (and bounded-delay:0) a step sees all updates of earlier steps: the run
 * equals one in which one worker updates set after set. Under ssp:S, essp:S a step may miss the last S steps of other
 * workers. Rotation of P blocks over W workers hands each block on after floor(P / W) steps, so with P >= W (S + 1) it
 * misses nothing, and equals a run under bsp; with fewer blocks, and in the other orders, steps that lie S apart may
 * conflict. Under async nothing bounds what a step misses; that each block has one owner in a step of a given number
 * holds even so. `priority` with owners, `leases`, and `each`, need the same values on all workers: whole clocks
 * (PLAIT_WHOLE_CLOCKS), else EREFUSED.
 *
 * *Deaths.* In a job of two replicas (plait_job_opts.replicas), under bsp, a worker may die at any instant. Its
 * variables of the step go to living workers: these get one more turn in the same step (`stands_in`), and from the next
 * step on they have what plans give to the dead worker; with leases plans give it nothing more. No variable is lost,
 * and none counts twice: each shard takes either what the dead worker has pushed or what its heir pushes
 * (plait_job_clock). So push must be a function of the turn's step and variables and of what gets return, whichever
 * worker computes it, must read again in a turn that stands in, and may inc nothing else; and pull must inc nothing.
 * With `each` an heir gets such a turn for each dead worker, with all variables of the step: it incs the same rows as
 * that worker, with what comes from its data, and from the next step on adds it to its own part (plait_job_holder). A
 * program that cannot know that part, since it is a difference from what only the dead worker knew, incs zeros there,
 * and makes its sums anew.
 * With spares, plans give variables to the other workers, and the dead one's go to spares first.
 *
 * *Proof.* With an event log each worker records the keys that its variables touch. `plait audit --schedule` proves
 * from them alone that no two steps that may have missed each other touch the same key, one of them writing it, or
 * names the two (docs/scheduling.md). It does not ask the conflict function.
 *
 * Threads: as its job, a schedule belongs to the rank's thread. Errors not listed at a call: EINVAL, ENOMEM, and those
 * of tables; the text is in plait_comm_error().
 *
 * Papers: Lee, Kim, Zheng, Ho, Gibson and Xing, "On Model Parallelization and Scheduling Strategies for Distributed
 * Machine Learning", NIPS 2014; Kim, Ho, Lee, Zheng, Dai, Gibson and Xing, "STRADS: A Distributed Framework for
 * Scheduled Model Parallel Machine Learning", EuroSys 2016; Gemulla, Nijkamp, Haas and Sismanis, "Large-Scale Matrix
 * Factorization with Distributed Stochastic Gradient Descent", KDD 2011 (rotation); Fenwick, "A New Data Structure for
 * Cumulative Frequency Tables", Software: Practice and Experience 24(3), 1994. */
#ifndef PLAIT_SCHEDULE_H
#define PLAIT_SCHEDULE_H

#include <plait/job.h>
#include <plait/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_schedule plait_schedule;

/* What a worker does in a step. The array is borrowed: valid until the next call on the schedule. */
typedef struct plait_turn {
    int64_t        step;     /* 0, 1, 2, ...: the same on all workers                                            */
    int64_t        n;        /* may be 0: nothing is left for this worker                                        */
    const int64_t *variable; /* [n]                                                                              */
    int32_t        stands_in; /* of push: 1: the variables of workers that have died in this step                */
    int32_t        home;     /* of push, with `each` and stands_in: the dead worker whose part it is; else the caller */
} plait_turn;

typedef struct plait_variables {
    int64_t a, b;
} plait_variables; /* two of them, a < b */

/* A key that the update of a variable reads or writes. Programs number what they share as they like: rows of a table,
 * with the table's number; vertices; cells. */
typedef struct plait_touch {
    int32_t  space;  /* which table, or kind of thing: 0 .. 255 */
    int32_t  writes; /* 1: it is written; 0: only read */
    uint64_t key;
} plait_touch;

typedef struct plait_schedule_opts {
    size_t      size;      /* set by plait_schedule_opts_init                                                    */
    const char *name;      /* of at most 47 bytes; NULL: "schedule"                                              */
    int64_t     variables; /* > 0                                                                                */
    const char *order;     /* "round-robin" (default) | "random" | "priority" | "rotate"                         */
    int64_t     take;      /* the most variables of a step, of all workers together; default 1 for each worker.
                              `rotate` takes one for each worker, whatever this says                             */
    int64_t     candidates; /* how many a step chooses from, if there is a conflict function; 0: 4 x take        */
    int         each;      /* 1: every worker pushes for each variable of a step. Not with rotate               */
    uint64_t    seed;      /* of random and priority                                                            */
    double      floor;     /* priority: what each variable has beside its last change, so that none is forgotten;
                              > 0. Default: 1e-6; before its first change a variable counts as 1                 */
    double      allowed;   /* the most interference in a set; default 0: none                                    */
    int64_t     cache;     /* pairs whose interference is kept; default 2^16. 0: none                            */

    /** out [n]: how much the variables of each pair interfere, >= 0, as a share (of correlated columns: |correlation|).
     *  Every worker calls it in the same step with the same pairs, so it may add up over workers; all must get the same
     *  answers. NULL: no two variables interfere. */
    plait_status (*conflict)(void *user, int64_t n, const plait_variables *pairs, double *out);
    /** The candidates of a step: at most `room` ids, none twice, the same on every worker. NULL: as `order` says. */
    plait_status (*schedule)(void *user, int64_t step, int64_t room, int64_t *variable, int64_t *n_out);
    /** Required. */
    plait_status (*push)(void *user, const plait_turn *turn);
    /** change [n], zeros at first: how much each variable of the turn has changed, >= 0. NULL: nothing is read. */
    plait_status (*pull)(void *user, const plait_turn *turn, double *change);
    /** The keys that the update of a variable touches: writes at most `room` of them, returns how many there are; it is
     *  called again if there was too little room. Only with an event log. NULL: the variable's id, written. */
    int64_t (*touches)(void *user, int64_t variable, int64_t room, plait_touch *touch);
    void *user;
    int   leases; /* 1: variables go to workers by speed; who is slow gets fewer. Not with `each` or rotate. Speeds are
                     measured, so plans differ from run to run, save in simulated time */
} plait_schedule_opts;

PLAIT_API void plait_schedule_opts_init(plait_schedule_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_schedule_opts_init_sized(plait_schedule_opts *opts, size_t size);
#define plait_schedule_opts_init(opts) plait_schedule_opts_init_sized(opts, sizeof(plait_schedule_opts))

/** Makes a schedule of the job. With order `priority`, a pull and `each` 0 it creates a table of one float64 for each
 *  variable, named NAME.change; with leases one for each worker, named NAME.pace. Copies opts. Errors: ENAME an order
 *  that is none; EINVAL no push, fewer blocks than workers (rotate), `each` with rotate; EMISMATCH the workers' options
 *  differ; EREFUSED the job's consistency lacks whole clocks where they are needed (with two replicas: always), or
 *  leases with `each` or rotate, or the job has backup workers, whose clocks may lack a worker's part, or a table of
 *  the job promises less than the job (ssp:2 in a job of bsp), here or, of tables that come later, at the next step.
 *  Collective over the workers of the job. */
PLAIT_API plait_status plait_schedule_create(plait_job *job, const plait_schedule_opts *opts,
                                             plait_schedule **schedule_out);
/** *schedule may be NULL, and is NULL afterwards. Its table stays with the job. Not collective. */
PLAIT_API void plait_schedule_destroy(plait_schedule **schedule);

/** One step: plans, pushes, ends the job's clock, pulls. Errors: what push, pull, conflict or schedule return; EINVAL
 *  own candidates or changes that are none (an id twice or out of range, a change below 0). All workers take the same
 *  number of steps. */
PLAIT_API plait_status plait_schedule_step(plait_schedule *schedule);

/** How many steps this worker has taken. */
PLAIT_API int64_t plait_schedule_steps(const plait_schedule *schedule);
/** How many variables the steps so far have updated, of all workers. */
PLAIT_API int64_t plait_schedule_updates(const plait_schedule *schedule);
/** How many pairs the conflict function was asked for. */
PLAIT_API int64_t plait_schedule_asked(const plait_schedule *schedule);

/** The owner of a block in a step of `rotate`, as a worker's rank; -1: nobody. A pure function of its arguments. */
PLAIT_API int32_t plait_schedule_owner(int64_t blocks, int32_t workers, int64_t step, int64_t block);

/** Sets a variable's priority, as if its last change had been this; on every worker alike, between steps. */
PLAIT_API plait_status plait_schedule_set(plait_schedule *schedule, int64_t variable, double change);
/** Forgets all interference: the data that it was computed from have changed. On every worker alike. */
PLAIT_API void plait_schedule_forget(plait_schedule *schedule);

/** Have all workers made the same plans so far? EMISMATCH if not: they were told different changes, or their functions
 *  differ. The text names a worker. Collective over the workers; costs one small sum. */
PLAIT_API plait_status plait_schedule_agree(plait_schedule *schedule);

#ifdef __cplusplus
}
#endif
#endif
