/* plait/consistency.h - consistency policies: what a get may miss, and when an update travels.
 *
 * A policy is an object that *decides*: a table tells it events (a worker reads, updates, ends a clock; an owner is
 * asked for values, receives a push, sees a clock end), and the policy answers with one of a few actions (serve from
 * the copy held, fetch, let wait; send what is pending now or keep it back, wait until it is applied; drop a push, push
 * fresh rows to those who read them). It knows no message, shard, cache or topology: those belong to the table, which
 * carries out what the policy says. Every policy that Plait brings is written against this header. A program registers
 * its own by plait_job_opts.policies, under a new name, on every rank:
 *
 *     static const plait_consistency every_other = { .name = "every-other", .parse = ..., .worker = {...},
 *                                                    .server = {...} };
 *     opts.policies = &every_other; opts.n_policies = 1; opts.consistency = "every-other";
 *
 * For each table there is one state of the policy at each worker and one at each server; these states share nothing.
 * Calls with the same state come one at a time; none may block, allocate or call into plait. A worker's events come on
 * the worker's thread, a server's on whichever thread runs it. Answers must depend on state and view alone, so that a
 * run can be repeated.
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

/* What a policy may look at when it is asked. Fields that have no meaning for an event are 0. */
typedef struct plait_view {
    int32_t        workers, worker; /* number of workers; the worker of this event                       */
    int64_t        clock;           /* that worker's clock                                               */
    double         norm;            /* inc, push, if the policy reads norms: largest absolute value added to an element
                                       (repeats of a key in one inc are added up first); on a ruled table, the largest
                                       of the gradient's sum divided by the job's batch                  */
    int64_t        held;            /* get: version of the copy held, or PLAIT_NO_VERSION                */
    int64_t        fetched;         /* get: the worker's clock when that copy came                       */
    uint64_t       now_ns;          /* server: the driver's time                                         */
    int64_t        slowest;         /* server: lowest clock of a worker that has not left; PLAIT_LEFT: all have */
    int64_t        applied;         /* server: how many clocks' pushes are applied, under PLAIT_APPLY_AT_CLOCK */
    const int64_t *clocks;          /* server: each worker's clock [workers]                             */
} plait_view;

/* Settings of the job that a policy's rules may depend on. */
typedef struct plait_setting {
    int32_t workers; /* 0: not known yet, only the parameters are checked */
    int32_t backup;  /* plait_job_opts.backup                             */
} plait_setting;

/* The answer to a read. A worker answers SERVE (from the copy held) or FETCH. A server answers SERVE (the values it
 * has) or WAIT: then it is asked again after every change there, or only after those that waits_for_slowest names. */
typedef enum plait_read { PLAIT_SERVE, PLAIT_FETCH, PLAIT_WAIT } plait_read;

/* When pushes reach the values. */
typedef enum plait_apply {
    PLAIT_APPLY_NOW,     /* each as it comes                                                          */
    PLAIT_APPLY_AT_CLOCK /* all of a clock at once, summed in worker order, when the clock is complete */
} plait_apply;

/* The answer to an inc, before the inc is accepted: an or of these actions, which are taken in this order. 0: the inc
 * is kept until the clock ends. */
enum {
    PLAIT_TURN = 1,         /* first wait until the servers would serve a get of this clock            */
    PLAIT_SETTLE_FIRST = 2, /* first send what was accepted before, and wait until it is applied       */
    PLAIT_SEND = 4,         /* send it at once                                                         */
    PLAIT_SETTLE = 8        /* send it at once, and wait until it is applied                           */
};

/* The answer when a worker ends its clock: pending updates leave now, or are kept back for a later clock (a barrier and
 * the worker's departure send them in any case). */
typedef enum plait_end { PLAIT_END_SEND, PLAIT_END_KEEP } plait_end;

/* The answer to a push that has come to a server. */
typedef enum plait_push { PLAIT_TAKE, PLAIT_DROP } plait_push;

/* The answer of a server when a worker's clock has ended. */
enum { PLAIT_REFRESH = 1 /* push to every worker fresh values of the rows that it has read before */ };

/* One policy. A slot may be NULL if its comment says what happens then. `state` has state_bytes + workers *
 * worker_bytes, zeroed before parse. The texts are borrowed while the job lives. */
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
    /** What the policy promises (plait/property.h). Settings, filters and learners that need more are refused. NULL:
     *  nothing. Asked after parse. */
    plait_properties (*promises)(const void *state);
    /** May a copy be read in a later clock than the one that fetched it? If not, no copy is kept. NULL: no. */
    int (*reuses)(const void *state);
    int reads_norms;   /* 1: view.norm must be filled (it costs a pass over the update)               */
    int refreshes;     /* 1: server.on_clock may answer PLAIT_REFRESH, so servers note who reads what */
    int sees_own; /* 1, ruled tables: a worker's gradients move its copy at once, by plain steps of the table's rate */
    /* 1: on_pull's WAIT depends only on view.slowest, view.applied and what changes with them, so a waiting pull is
       asked about again only when one of the two has changed. 0 is always correct: it is asked about after every change
       by any worker, which with many workers is most of a server's work. */
    int waits_for_slowest;
    int averages; /* 1: each worker moves its own values by the table's rule; the values of all workers are averaged
                     before a clock that must wait for all (server.on_pull) */
    int shares_memory; /* 1: workers that share the values may write them without a lock, and the policy is not asked
                          (Hogwild) */

    struct {
        /** The worker reads: SERVE from the copy, or FETCH. */
        plait_read (*on_get)(void *state, const plait_view *view);
        /** The worker updates: PLAIT_TURN and the following. NULL: 0. */
        int (*on_inc)(void *state, const plait_view *view);
        /** The worker ends its clock. NULL: PLAIT_END_SEND, which PLAIT_APPLY_AT_CLOCK requires. */
        plait_end (*on_clock)(void *state, const plait_view *view);
    } worker;

    struct {
        /** A worker asks for values: SERVE or WAIT. The slowest worker must get SERVE in the end, or all workers
         *  wait for ever. */
        plait_read (*on_pull)(void *state, const plait_view *view);
        /** A push has come: TAKE or DROP. Dropped pushes are counted. NULL: PLAIT_TAKE. */
        plait_push (*on_push)(void *state, const plait_view *view);
        /** Clocks below the returned number are complete; under PLAIT_APPLY_AT_CLOCK their pushes are applied. The
         *  number never goes down. NULL: view->slowest. */
        int64_t (*complete)(const void *state, const plait_view *view);
        /** A worker has ended the clock before view->clock, and all pushes that can be applied are: 0 or PLAIT_REFRESH.
         *  NULL: 0. */
        int (*on_clock)(void *state, const plait_view *view);
        /** A worker has left or died. NULL: nothing. */
        void (*on_member)(void *state, const plait_view *view);
        /** A worker that may leave out clocks (of the program's learners, those whose steps are gradients) gets its
         *  answer: the clock with which it is to go on, since it is slow; view->clock: with this one. NULL: always. */
        int64_t (*leap)(void *state, const plait_view *view);
    } server;
} plait_consistency;

#ifdef __cplusplus
}
#endif
#endif
