/* plait/consistency.h - consistency policies: what a get may miss, and when an update travels.
 *
 * A policy is an object that *acts*: a table raises events at it (a worker reads, updates, ends a clock; an owner
 * is asked for values, receives a push, sees a clock end) and it answers with one of a few actions (serve from the
 * copy held, fetch, let wait; send what is pending now or keep it back, wait until it is applied; drop a push, push
 * fresh rows to those who read them). It knows no message, shard, cache or topology: those belong to the table, which
 * carries out what the policy says. Every policy that Plait brings is written against this header, and a program
 * registers its own by plait_job_opts.policies, under a name of its own, on every rank:
 *
 *     static const plait_consistency every_other = { .name = "every-other", .parse = ..., .worker = {...},
 *                                                    .server = {...} };
 *     opts.policies = &every_other; opts.n_policies = 1; opts.consistency = "every-other";
 *
 * Each table has one state of the policy at each worker and one at each server, which never meet. All calls about one
 * state come one at a time; none may block, allocate or call into plait. Worker's events come in the worker's thread,
 * a server's in whichever thread runs it. Answers must depend on state and view alone, so that a run repeats.
 *
 * Clocks count from 0. *Version* v of a value means: it contains every update of clocks < v of every worker, and
 * perhaps more. Meanings of the policies that come with Plait: docs/consistency.md.
 */
#ifndef PLAIT_CONSISTENCY_H
#define PLAIT_CONSISTENCY_H

#include <stddef.h>
#include <stdint.h>

#include <plait/property.h>
#include <plait/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLAIT_NO_VERSION INT64_MIN /* no copy is held                     */
#define PLAIT_LEFT       INT64_MAX /* the clock of a worker that has left */

/* What a policy may look at when it is asked. Fields that make no sense for an event are 0. */
typedef struct plait_view {
    int32_t        workers, worker; /* how many; whose event                                             */
    int64_t        clock;           /* that worker's clock                                               */
    double         norm;            /* inc, push: largest absolute value added to an element, where the policy reads
                                       norms (repeats of a key in one inc are added up first); on a ruled table that of
                                       the gradient's sum divided by the job's batch                     */
    int64_t        held;            /* get: version of the copy held, or PLAIT_NO_VERSION                */
    int64_t        fetched;         /* get: the worker's clock when it came                              */
    uint64_t       now_ns;          /* server: the driver's time                                         */
    int64_t        slowest;         /* server: lowest clock of a worker that has not left; PLAIT_LEFT    */
    int64_t        applied;         /* server: clocks whose pushes are applied, where that is at clocks  */
    const int64_t *clocks;          /* server: each worker's clock [workers]                             */
} plait_view;

/* How many there are, for those whose rules depend on it. */
typedef struct plait_setting {
    int32_t workers; /* 0: not known yet, only the parameters are checked */
    int32_t backup;  /* plait_job_opts.backup                             */
} plait_setting;

/* A read. At the worker SERVE from the copy held, or FETCH; at the server SERVE what is there, or let WAIT: it is asked
 * again after every change there, or after those that waits_for_slowest names. */
typedef enum plait_read { PLAIT_SERVE, PLAIT_FETCH, PLAIT_WAIT } plait_read;

/* When pushes reach the values. */
typedef enum plait_apply {
    PLAIT_APPLY_NOW,     /* each as it comes                                                          */
    PLAIT_APPLY_AT_CLOCK /* all of a clock at once, summed in worker order, when the clock is complete */
} plait_apply;

/* An inc, asked before it is accepted: any of these, in this order. 0: kept until the clock ends. */
enum {
    PLAIT_TURN = 1,         /* first wait until the servers would serve a get of this clock            */
    PLAIT_SETTLE_FIRST = 2, /* first send what was accepted before, and wait until it is applied       */
    PLAIT_SEND = 4,         /* send it at once                                                         */
    PLAIT_SETTLE = 8        /* send it at once, and wait until it is applied                           */
};

/* A worker's end of a clock: what is pending leaves with it, or is kept back for a later clock (a barrier and the
 * worker's departure send it in any case). */
typedef enum plait_end { PLAIT_END_SEND, PLAIT_END_KEEP } plait_end;

/* A push at a server. */
typedef enum plait_push { PLAIT_TAKE, PLAIT_DROP } plait_push;

/* A worker's clock has ended at a server. */
enum { PLAIT_REFRESH = 1 /* push fresh rows to every worker, of those that it has read before */ };

/* One policy. Slots may be NULL where the text says what happens then. `state` is state_bytes + workers * worker_bytes,
 * zeroed before parse; the texts are borrowed while the job lives. */
typedef struct plait_consistency {
    const char *name;       /* "ssp" */
    const char *parameters; /* ":S": shown in help and errors; "" for none */
    const char *summary;    /* one line for help */
    size_t      state_bytes, worker_bytes;
    /** Reads the parameters after the name's colon (NULL: none given) into state. EINVAL: *err says what is
     *  expected. */
    plait_status (*parse)(void *state, const char *parameters, const plait_setting *setting, plait_error *err);
    /** When are pushes applied? NULL: now. Asked once, after parse. */
    plait_apply (*applies)(const void *state);
    /** What it promises (plait/property.h), by which settings, filters and learners that need it are let through. NULL:
     *  nothing. Asked after parse. */
    plait_properties (*promises)(const void *state);
    /** May a copy be read in a later clock than the one that fetched it? Where not, none is kept. NULL: no. */
    int (*reuses)(const void *state);
    int reads_norms;   /* view.norm is to be filled (it costs a pass over the update)                 */
    int refreshes;     /* server.on_clock may answer PLAIT_REFRESH: servers note who reads what       */
    int sees_own; /* ruled tables: the worker's gradients move its copy at once, by plain steps of the table's rate */
    /* on_pull lets wait by view.slowest, view.applied and what changes with them alone, so that one who waits is asked
       for again only when one of the two has moved. 0, which is always right: after every change, by any worker; with
       many workers that is most of a server's work. */
    int waits_for_slowest;
    int averages; /* each worker moves values of its own by the table's rule; before a clock that must wait for all
                     (server.on_pull) those of all are averaged */
    int shares_memory; /* workers that share the values may write them unlocked, and are asked nothing
                          (Hogwild) */

    struct {
        /** The worker reads. SERVE from the copy or FETCH. */
        plait_read (*on_get)(void *state, const plait_view *view);
        /** The worker updates: see PLAIT_TURN and the following. NULL: 0. */
        int (*on_inc)(void *state, const plait_view *view);
        /** The worker ends its clock. NULL: PLAIT_END_SEND, as it must be where pushes are applied at clocks. */
        plait_end (*on_clock)(void *state, const plait_view *view);
    } worker;

    struct {
        /** A worker wants values. SERVE or WAIT. To the slowest worker it must be SERVE in the end: else all wait. */
        plait_read (*on_pull)(void *state, const plait_view *view);
        /** A push has come. TAKE or DROP, which is counted. NULL: PLAIT_TAKE. */
        plait_push (*on_push)(void *state, const plait_view *view);
        /** Clocks below the answer are complete and their pushes are applied, where that is at clocks; it never goes
         *  down. NULL: view->slowest. */
        int64_t (*complete)(const void *state, const plait_view *view);
        /** A worker has ended the clock before view->clock, and what can be applied is. 0 or PLAIT_REFRESH. NULL: 0. */
        int (*on_clock)(void *state, const plait_view *view);
        /** A worker has left or died. NULL: nothing. */
        void (*on_member)(void *state, const plait_view *view);
    } server;
} plait_consistency;

#ifdef __cplusplus
}
#endif
#endif
