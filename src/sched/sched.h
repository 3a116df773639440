/* sched - schedules: what a step updates, on whichever worker it is asked. See plait/schedule.h.
 *
 *     fenwick.c   draws a variable with a chance in proportion to its weight
 *     order.c     the candidates of a step, by the order that the program names
 *     rotate.c    the ring of blocks
 *     pairs.c     how much candidates interfere: asked for once, kept in a bounded cache
 *     choose.c    which candidates are taken, and who owns them
 *     paces.c     how fast each worker is: who is slow gets fewer
 *     schedule.c  the object: its options, its table
 *     changes.c   how the changes of owned variables become known to all
 *     step.c      one step; what the event log hears of it
 *
 * All workers compute the same plan. So nothing here may depend on the rank, save which variables are the own ones.
 *
 * With two replicas a plan still gives variables to *homes*, dead or not; plait_job_holder says who has a dead home's
 * variables in the next steps, plait_job_inherits who has them in the step that it died in. Rows that only one worker
 * can add to, paces and changes, have no heir: then they go by collectives in place of tables.
 */
#ifndef PLI_SCHED_H
#define PLI_SCHED_H

#include <plait/schedule.h>

#include "base/base.h"
#include "base/event.h"

/* --- fenwick.c ---------------------------------------------------------------------------------------------------- */

/* Weights of variables, with sums of prefixes in O(log n): node i (from 1) holds the sum of the i & -i weights that end
 * with it. Rounding adds up in the nodes, so they are made anew now and then. */
typedef struct pli_fenwick {
    int64_t n;
    double *weight; /* [n]     */
    double *node;   /* [n + 1] */
    int64_t since;  /* changes since the nodes were made */
} pli_fenwick;

bool pli_fenwick_init(pli_fenwick *f, int64_t n, double weight); /* false: out of memory */
void pli_fenwick_destroy(pli_fenwick *f);
void pli_fenwick_set(pli_fenwick *f, int64_t i, double weight);
/** The variable in whose share of the total the point lies, 0 <= share < 1. -1: all weights are 0. */
int64_t pli_fenwick_find(const pli_fenwick *f, double share);

/* --- order.c ------------------------------------------------------------------------------------------------------ */

typedef enum pli_order { PLI_ROUND_ROBIN, PLI_RANDOM_ORDER, PLI_PRIORITY, PLI_ROTATE, PLI_ORDERS } pli_order;

/* Variables with an owner each (each 0), or without (owner -1). */
typedef struct pli_plan {
    int64_t  n, capacity;
    int64_t *variable;
    int32_t *owner;
} pli_plan;

/** The order of this name; NULL: round-robin. Errors: ENAME. */
plait_status pli_order_find(const char *name, pli_order *order_out, plait_error *err);
/** Writes the candidates of a step to s->candidate, none twice. */
plait_status pli_order_candidates(plait_schedule *s);
/** round-robin: keeps those candidates that were not taken for the next step. */
void         pli_order_settle(plait_schedule *s);

/* --- pairs.c ------------------------------------------------------------------------------------------------------ */

typedef struct pli_pairs {
    int64_t          slots; /* a power of two, or 0 */
    plait_variables *pair;  /* [slots]; a -1: free  */
    double          *value;
    int64_t          asked; /* pairs of which the program was asked */
    /* of a step: candidates x candidates */
    double          *matrix;
    plait_variables *missing;
    double          *answer;
    int64_t          matrix_capacity, missing_capacity, answer_capacity;
} pli_pairs;

bool         pli_pairs_init(pli_pairs *p, int64_t cache);
void         pli_pairs_destroy(pli_pairs *p);
void         pli_pairs_forget(pli_pairs *p);
/** Fills p->matrix [n, n] with the interference of the candidates. Errors: EINVAL an answer below 0 or NaN. */
plait_status pli_pairs_fill(plait_schedule *s, int64_t n, const int64_t *candidate);

/* --- choose.c ----------------------------------------------------------------------------------------------------- */

/** Makes s->plan of the step from s->candidate. */
plait_status pli_choose(plait_schedule *s);

/* --- paces.c ------------------------------------------------------------------------------------------------------ */

/* Seconds that each worker takes for a variable. */
typedef struct pli_paces {
    plait_table *table;       /* [workers]; NULL: no leases, or two replicas                  */
    double      *known;       /* [workers] as all know them; infinite: dead                    */
    double       share;       /* seconds of a step for each of its variables, if all are busy; 0: not known */
    double       least;       /* of the fastest worker                                        */
    double       told;        /* the own pace in the table; 0: none is                        */
    double       seconds;     /* since it was told: computed so long,                         */
    int64_t      variables;   /* on so many                                                   */
    uint64_t     began_ns;
} pli_paces;

/** Makes the table, if the program wants leases. */
plait_status pli_paces_make(plait_schedule *s);
/** Called around the program's push for n variables. */
void         pli_paces_begin(plait_schedule *s);
void         pli_paces_end(plait_schedule *s, int64_t n);
/** Before push: tells the own pace, if it is time. */
plait_status pli_paces_tell(plait_schedule *s);
/** Before the plan: learns all workers' paces, if it is time. */
plait_status pli_paces_hear(plait_schedule *s);
/** The time that a worker's variables of a step may take. */
double       pli_paces_most(const plait_schedule *s);

/* --- changes.c ---------------------------------------------------------------------------------------------------- */

/** Before the plan: learns what the owners of earlier steps have told. */
plait_status pli_changes_hear(plait_schedule *s);
/** Before push: tells the changes of the last step. */
plait_status pli_changes_tell(plait_schedule *s);
/** Takes a step's changes of the own variables, of which pull has told. */
void         pli_changes_take(plait_schedule *s);

/* --- the object --------------------------------------------------------------------------------------------------- */

struct plait_schedule {
    plait_job          *job;
    plait_error        *err;
    plait_schedule_opts opts;
    char                name[48];
    pli_order           order;
    int32_t             workers, rank;
    int32_t             homes;      /* workers that plans give variables to: all but spares */
    bool                copied;     /* the job has two replicas */
    int64_t             take, room; /* the most variables of a step; the most candidates */
    int64_t             step, updates;
    int64_t             checked;    /* how many of the job's tables promise as much as the job */
    uint64_t            hash;       /* of all plans so far */
    /* order */
    pli_fenwick weights;            /* priority */
    int64_t    *stamp;              /* [variables] 1 + the step in which the variable was a candidate or taken */
    int64_t     cursor;             /* round-robin */
    int64_t    *waiting, n_waiting; /* round-robin: candidates that were not taken [room] */
    int64_t    *candidate, n_candidates;
    double     *held;               /* [room] priority: weights of the candidates drawn, while they cannot be drawn */
    pli_pairs   pairs;
    double     *sum;                /* choose: [room] interference of those taken */
    pli_paces   pace;
    int32_t    *count;              /* choose: [workers] how many each has */
    pli_plan    plan, was, before;  /* of the last three steps */
    int64_t    *own, n_own;         /* [room] of this step, those of the dead included */
    int64_t    *own_at;             /* [room] where they are in the plan */
    double     *change;             /* [room] */
    /* priority of owned variables: changes travel in a table. An owner incs those of step s in step s + 1, and all read
     * them in step s + 2, when they are whole. With two replicas all tell them before step s + 1, in a sum. */
    plait_table *table;
    double      *known;             /* [variables] of the table, as of the last read */
    int64_t     *told, n_told;      /* the own variables of the last step, whose changes are to be inc'ed, */
    int64_t     *told_at;           /* where they were in the plan */
    double      *told_change;       /* and these */
    uint64_t    *key;               /* [room] */
    double      *value;             /* [2 room] */
    pli_event_touch *touch;
    plait_touch     *touched;
    int64_t          touch_capacity, touched_capacity;
};

/** Sets the weight that a variable is drawn with after it has changed by so much. */
static inline void pli_schedule_weigh(plait_schedule *s, int64_t variable, double change) {
    if (s->order == PLI_PRIORITY) pli_fenwick_set(&s->weights, variable, s->opts.floor + change);
}

/** step.c: plait_schedule_step in two parts, for a caller that ends the job's clock itself. begin:
 *  plans and pushes. end: pulls, so it comes past the clock if there is a pull. */
plait_status pli_schedule_begin_step(plait_schedule *s);
plait_status pli_schedule_end_step(plait_schedule *s);
/** step.c: for a caller that ends the clock itself, with replicas: the worker's part of the turns of those that have
 *  died in it. */
plait_status pli_schedule_stand_in(plait_schedule *s);
/** step.c: a worker that was away goes on with this step. Of `rotate` alone, whose plans follow from the step. */
void         pli_schedule_skip_to(plait_schedule *s, int64_t step);
/** The worker was away in the step of this clock, of a schedule that it no longer has: it tells the event log. */
void         pli_schedule_tell_missed(plait_comm *comm, int64_t clock);

/** Are the tables that have come since the last call as strict as the job? Errors: EREFUSED. */
plait_status pli_schedule_check_tables(plait_schedule *s);

#endif
