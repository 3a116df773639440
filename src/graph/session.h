/* graph/session.h - a session: a graph, its plans, and where its variables lie. */
#ifndef PLI_GRAPH_SESSION_H
#define PLI_GRAPH_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "graph/plan.h"

typedef struct pli_memory pli_memory; /* memory.c */

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
    pthread_mutex_t    lock;   /* of plans, and the lists of their free instances      */
    pli_plan          *plans;
    _Atomic uint64_t   runs; /* any run: counts them; relaxed, it publishes nothing  */
};

/** As plait_session_create, with the threads of pool (borrowed; NULL: the caller's alone), whatever opts say of threads. */
plait_status pli_session_create(const plait_graph *graph, const plait_session_opts *opts, pli_pool *pool,
                                plait_session **session_out, plait_error *err);

/** The session's own store. */
plait_status pli_memory_create(const plait_graph *graph, pli_memory **memory_out, plait_store *store_out,
                               plait_error *err);
void         pli_memory_destroy(pli_memory **memory);
/** Between enter (as one that incs) and leave. */
void         pli_memory_set(pli_memory *memory, int32_t variable, const void *data);
/** Before and after a run: one that incs has the memory alone. Variables that the graph has by now are there afterwards. */
plait_status pli_memory_enter(pli_memory *memory, bool incs, plait_error *err);
void         pli_memory_leave(pli_memory *memory);

/** Runs a plan in an instance; what was borrowed from the store is not given back yet. */
plait_status pli_run_plan(plait_session *session, const pli_plan *plan, pli_instance *instance, const pli_plan_key *key,
                          plait_error *err);

#endif
