/* graph/session.h - a session: a graph, its plans, and where its variables lie. */
#ifndef PLI_GRAPH_SESSION_H
#define PLI_GRAPH_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "graph/plan.h"
#include "graph/subgraph.h"

typedef struct pli_memory pli_memory; /* memory.c */
typedef struct pli_gather pli_gather; /* gather.h */

/* What a session notes about a variable, for plait_variable_info. */
typedef struct pli_variable_use {
    int64_t version, last_get, last_inc;
} pli_variable_use;

/** A node has been computed. */
typedef void pli_charge_fn(void *user, const pli_weight *weight);

/* A piece of a pipeline: a micro-batch goes through a part. A bubble is a wait within a piece. */
typedef enum pli_piece { PLI_PIECE_FORWARD, PLI_PIECE_BACKWARD, PLI_PIECE_BUBBLE, PLI_PIECES } pli_piece;
/** A piece begins, or ends. micro_batch: of the call of plait_session_run_batches, from 0. */
typedef void pli_piece_fn(void *user, pli_piece piece, int32_t micro_batch, bool ends);

struct plait_session {
    const plait_graph *graph;
    plait_session_opts opts;
    plait_store        store;
    pli_memory        *memory; /* the session's own store, or NULL                     */
    pli_pool          *pool;   /* NULL: the caller is the only thread                  */
    bool               own_pool;
    pli_plan_opts      plan_opts;
    char              *dump;   /* a copy                                               */
    void              *module; /* the module of kernels, or NULL                     */
    plait_cut          cut;     /* of a session of one part, whose plan_opts.cut points here ...  */
    plait_channel      channel; /* ... a copy ...                                                */
    int32_t           *place;   /* ... a copy                                                    */
    pli_choice         choice; /* of subgraphs; plan_opts.choice points here, if there is any */
    pli_gather        *gather;  /* during runs of several micro-batches: adds up their incs; else NULL */
    pthread_mutex_t    lock;   /* guards plans, the lists of their free instances, and use */
    pli_plan          *plans;
    pli_variable_use  *use; /* [n_used] one for each variable */
    int64_t            n_used, use_capacity;
    pli_charge_fn     *charge; /* told of the work of each node; NULL: nobody asks        */
    void              *charge_user;
    pli_piece_fn      *piece; /* told of the pieces of a pipeline; NULL: nobody asks      */
    void              *piece_user;
    _Atomic uint64_t   runs; /* every run counts itself; relaxed, it publishes nothing */
    uint64_t           draws; /* added to a run's number where random ops draw by it   */
};

/** As plait_session_create, but with the threads of pool (borrowed; NULL: only the caller); opts->threads is not
 *  used. */
plait_status pli_session_create(const plait_graph *graph, const plait_session_opts *opts, pli_pool *pool,
                                plait_session **session_out, plait_error *err);

/** Tells fn of each node that was computed: for transports that simulate time. Runs then use their caller's thread
 *  alone, and fn is called on it after each node. Set it before the first run. */
static inline void pli_session_charge(plait_session *session, pli_charge_fn *fn, void *user) {
    session->charge = fn;
    session->charge_user = user;
}

/** The random ops of the next run draw by this number, and those of later runs by the ones that follow. Without it a
 *  session counts its runs from 0. Called by the thread that runs the session, between runs. */
static inline void pli_session_draw_from(plait_session *session, uint64_t number) {
    session->draws = number - atomic_load_explicit(&session->runs, memory_order_relaxed);
}

/** Tells fn of each piece of a pipeline, on the thread that runs it. Set it before the first run. */
static inline void pli_session_watch(plait_session *session, pli_piece_fn *fn, void *user) {
    session->piece = fn;
    session->piece_user = user;
}

/** The session's own store. */
plait_status pli_memory_create(const plait_graph *graph, pli_pool *pool, pli_memory **memory_out,
                               plait_store *store_out, plait_error *err);
void         pli_memory_destroy(pli_memory **memory);
/** values += delta. Integers wrap; BOOL is a logical or. */
void pli_memory_add(plait_type type, int64_t n, const void *delta, void *values);
/** Sets a variable. Call it between enter (with incs) and leave. */
void         pli_memory_set(pli_memory *memory, int32_t variable, const void *data);
/** Called before and after a run: a run with incs has the memory for itself. enter gives the variables [n] memory and
 *  first values. */
plait_status pli_memory_enter(pli_memory *memory, int64_t n, const int32_t *variables, bool incs, plait_error *err);
void         pli_memory_leave(pli_memory *memory);

/** metadata.c; the caller holds the session's lock. Makes room for all variables that the graph now has. */
plait_status pli_metadata_reserve(plait_session *session, plait_error *err);
/** Notes that a run of the plan has succeeded. */
void pli_metadata_note(plait_session *session, const pli_plan *plan, int64_t run);

/** session.c. Takes the plan of a key, and a free instance; makes what is missing. give: gives the instance back; well:
 *  a run used it and succeeded, which is noted. */
plait_status pli_session_take(plait_session *session, const pli_plan_key *key, pli_plan **plan_out,
                              pli_instance **instance_out, plait_error *err);
void         pli_session_give(plait_session *session, pli_plan *plan, pli_instance *instance, bool well);
/** Checks what plait_session_run is given; then the memory of its feeds and fetches, which need the plan. */
plait_status pli_session_check_key(const plait_session *session, const pli_plan_key *key, plait_error *err);
plait_status pli_session_check_memory(const pli_plan *plan, const pli_plan_key *key, plait_error *err);
/** Copies what a run has computed to the fetches. */
void pli_session_hand_out(const pli_plan *plan, const pli_instance *instance, plait_fetch *fetches);

/** Begins a run of a cut graph, which then goes on by steps. number: of the run, the same in all parts. */
void pli_plan_begin(const pli_plan *plan, pli_instance *instance, const pli_plan_key *key, int64_t number);
/** Runs nodes before `until`, as far as possible without waiting. *waits_out: true: the run waits for *edge_out (to be
 *  sent if *sends_out, else to arrive), and goes on at the next call; false: it has come to `until`. */
plait_status pli_plan_step(plait_session *session, const pli_plan *plan, pli_instance *instance, int64_t until,
                          bool *waits_out, bool *sends_out, plait_edge *edge_out, plait_error *err);
/** Gives back to the channel what the run has received. */
void pli_plan_release(plait_session *session, const pli_plan *plan, pli_instance *instance);

/** Runs a plan in an instance. Values borrowed from the store are not given back yet. */
plait_status pli_run_plan(plait_session *session, const pli_plan *plan, pli_instance *instance, const pli_plan_key *key,
                          plait_error *err);

#endif
