/* table/consistency/consistency.h - the policy interface: what a read may miss.
 *
 * A consistency policy answers "may this read be served from what is held, must it fetch, must it wait?" and
 * "what happens at a clock?". It knows nothing of topology, messages, shards or caches: each question comes
 * with the few numbers that a policy may look at. The same policy object type is asked in two places: in the
 * client (one worker's cache) and in the server (the shards of a rank). One file a policy, listed once in
 * policies.c; users will register their own.
 *
 * Meanings are contract.md's. Clocks count from 0; *version* v of a value means: it contains every update of
 * clocks < v of every worker (and perhaps more).
 */
#ifndef PLI_TABLE_CONSISTENCY_H
#define PLI_TABLE_CONSISTENCY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define PLI_NO_VERSION INT64_MIN

typedef enum pli_read { PLI_SERVE, PLI_FETCH, PLI_WAIT } pli_read;
typedef enum pli_apply {
    PLI_APPLY_NOW,      /* when a push arrives                                                         */
    PLI_APPLY_AT_CLOCK, /* when every worker has ended the push's clock: summed in worker order, once   */
} pli_apply;

/* What a policy may look at. Fields that make no sense where it is asked are -1. */
typedef struct pli_view {
    int32_t        workers, worker; /* how many; who reads or pushes                                   */
    int64_t        clock;           /* the reader's or pusher's clock                                  */
    int64_t        held;            /* client: version of the copy held, PLI_NO_VERSION: none          */
    int64_t        slowest;         /* server: lowest clock of a worker that has not left              */
    const int64_t *clocks;          /* server: each worker's clock [workers], INT64_MAX: has left      */
    int64_t        applied;         /* server: version of the values, counting what is applied only    */
} pli_view;

typedef struct pli_consistency_ops {
    const char *name;
    size_t      state_bytes; /* per table and side; zeroed by the table */
    const char *parameters;  /* "" | ":S" ...: shown in help and errors */
    const char *summary;     /* one line for help                       */
    pli_apply   apply;
    bool        shares_memory; /* may workers that share the values write them unlocked (Hogwild)? */
    /** Reads the parameters after the name's colon (NULL: none given). EINVAL says what is expected. */
    plait_status (*parse)(void *state, const char *parameters, plait_error *err);
    /** Client: may a copy be read in a later clock than the one that fetched it? Where not, none is kept. NULL: never. */
    bool (*reuses)(const void *state);
    /** Client: the worker reads. SERVE from the copy held or FETCH. Never WAIT. */
    pli_read (*on_get)(void *state, const pli_view *view);
    /** Server: a pull has come. SERVE now or WAIT (asked again when a clock or the values have moved). */
    pli_read (*on_pull)(void *state, const pli_view *view);
    /** Server: a worker has ended a clock; may be NULL. */
    void (*on_clock)(void *state, const pli_view *view);
} pli_consistency_ops;

/** All policies, NULL-terminated. */
const pli_consistency_ops *const *pli_consistencies(void);

/** The policy that a spec names, whatever its parameters ("ssp:2"); NULL: none. */
const pli_consistency_ops *pli_consistency_find(const char *spec);

/* A policy with its parameters, as a table holds it (one for the client side, one for the server side). */
typedef struct pli_policy {
    const pli_consistency_ops *ops;
    void                      *state;
    char                       spec[48]; /* "ssp:2" */
} pli_policy;

/** "ssp:2" -> policy. Errors: ENAME (nearest named), EINVAL. */
plait_status pli_policy_make(const char *spec, pli_policy *policy_out, plait_error *err);
void         pli_policy_destroy(pli_policy *policy);

#endif
