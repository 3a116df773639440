/* graph/session.h - a session: a graph, its plans, and where its variables lie. */
#ifndef PLI_GRAPH_SESSION_H
#define PLI_GRAPH_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "graph/plan.h"

typedef struct pli_memory pli_memory; /* memory.c */

/* What a session notes of a variable: plait_variable_info. */
typedef struct pli_variable_use {
    int64_t version, last_get, last_inc;
} pli_variable_use;

struct plait_session {
    const plait_graph *graph;
    plait_session_opts opts;
    plait_store        store;
    pli_memory        *memory; /* the session's own store, or NULL                     */
    pli_pool          *pool;   /* NULL: no threads beside the caller                   */
    bool               own_pool;
    pli_plan_opts      plan_opts;
    char              *dump;   /* a copy                                               */
    void              *module; /* of kernels, or NULL                                */
    pthread_mutex_t    lock;   /* of plans, the lists of their free instances, and use */
    pli_plan          *plans;
    pli_variable_use  *use; /* [n_used] of variables */
    int64_t            n_used, use_capacity;
    _Atomic uint64_t   runs; /* any run: counts them; relaxed, it publishes nothing  */
};

/** As plait_session_create, with the threads of pool (borrowed; NULL: the caller's alone), whatever opts say of
 *  threads. */
plait_status pli_session_create(const plait_graph *graph, const plait_session_opts *opts, pli_pool *pool,
                                plait_session **session_out, plait_error *err);

/** The session's own store. */
plait_status pli_memory_create(const plait_graph *graph, pli_pool *pool, pli_memory **memory_out,
                               plait_store *store_out, plait_error *err);
void         pli_memory_destroy(pli_memory **memory);
/** Between enter (as one that incs) and leave. */
void         pli_memory_set(pli_memory *memory, int32_t variable, const void *data);
/** Before and after a run: one that incs has the memory alone. Of the variables [n] there are values afterwards. */
plait_status pli_memory_enter(pli_memory *memory, int64_t n, const int32_t *variables, bool incs, plait_error *err);
void         pli_memory_leave(pli_memory *memory);

/** metadata.c; all with the session's lock. Room to note uses of all variables that the graph has by now. */
plait_status pli_metadata_reserve(plait_session *session, plait_error *err);
/** A run of the plan has ended well. */
void pli_metadata_note(plait_session *session, const pli_plan *plan, int64_t run);

/** Runs a plan in an instance; what was borrowed from the store is not given back yet. */
plait_status pli_run_plan(plait_session *session, const pli_plan *plan, pli_instance *instance, const pli_plan_key *key,
                          plait_error *err);

#endif
