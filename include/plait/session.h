/* plait/session.h - runs a graph: a run computes only what is fetched; variables lie in a store.
 *
 * A session makes a *plan* for each set of feeds, shapes and fetches: which nodes are needed, how passes change them,
 * and where each value lies in one block of memory. Running a plan again allocates nothing. Nodes run as soon as their
 * inputs are ready, and parts of large nodes run in parallel; the values do not depend on the number of threads.
 */
#ifndef PLAIT_SESSION_H
#define PLAIT_SESSION_H

#include <plait/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where variables lie. A session calls these functions one at a time, on the thread that calls plait_session_run;
 * `variable` is the variable's number. A failure ends the run. In one run all gets of a variable come before its incs.
 */
typedef struct plait_store {
    void *user;
    /** Announces that a run will get variables [n], in this order. NULL: there is nothing to prepare. */
    plait_status (*expect)(void *user, int32_t n, const int32_t *variables, plait_error *error);
    /** Gets all values, in the variable's type and shape, borrowed until end. */
    plait_status (*get)(void *user, int32_t variable, const void **values_out, plait_error *error);
    /** Copies rows [n] (of axis 0; they may repeat, and are in range) to values [n, the rest of the shape]. */
    plait_status (*get_rows)(void *user, int32_t variable, int64_t n, const int64_t *rows, void *values,
                             plait_error *error);
    /** Changes a variable by delta, which has the variable's shape (inc_rows: [n, the rest]). delta and rows are lent
     *  until end. The store decides whether it adds delta or takes it as a gradient for an update rule. Values borrowed
     *  by get do not change until end. */
    plait_status (*inc)(void *user, int32_t variable, const void *delta, plait_error *error);
    plait_status (*inc_rows)(void *user, int32_t variable, int64_t n, const int64_t *rows, const void *delta,
                             plait_error *error);
    /** The run has ended; how is OK, or the failure. What was borrowed or lent is given back. */
    plait_status (*end)(void *user, plait_status how, plait_error *error);
    /** The owner's name for plait_session_variable_info, valid as long as the store. Any thread. NULL: "store". */
    const char *(*owner)(void *user, int32_t variable);
} plait_store;

typedef struct plait_session plait_session;

typedef struct plait_session_opts {
    size_t             size;  /* set by plait_session_opts_init                                               */
    const plait_store *store; /* copied; NULL: the session's own memory, in which inc adds                    */
    uint64_t           seed;  /* of random ops                                                                */
    const plait_log   *log;   /* receives what op print writes; NULL: silence                                 */
    int32_t            threads; /* number of computing threads, the caller included; 0: as many as there are cores, for
                                   this session alone. If several ranks on a host have a session (transport threads),
                                   give each its share: cores / ranks, or plait_comm_threads                     */
    const char        *passes; /* passes to run, some of "fold,merge,sparse,fuse,memory", or "none"; NULL: all */
    const char        *dump;  /* a folder for Graphviz files of each plan, before and after each pass; NULL: none */
    void (*trace)(void *user, const char *name, int32_t thread, uint64_t begin_ns,
                  uint64_t end_ns); /* called after each node, or each thread's part of a node, on that thread; may be
                                       NULL */
    void *trace_user;
    const char *kernels; /* a module whose kernels are preferred: "onednn" (convolutions); NULL: Plait's own alone */
} plait_session_opts;

PLAIT_API void plait_session_opts_init(plait_session_opts *opts);

/** Makes a session. opts may be NULL. The graph is borrowed for the session's life; it may grow between runs.
 *  Errors: what plait_graph_check says; ENAME unknown pass or kernels; EMODULE the kernels' module is missing (the text
 *  has the command that installs it); EINVAL the store lacks a function; ENOMEM. */
PLAIT_API plait_status plait_session_create(const plait_graph *graph, const plait_session_opts *opts,
                                            plait_session **session_out, plait_error *error_out);
PLAIT_API void         plait_session_destroy(plait_session **session); /* *session may be NULL; no run is under way */

/* A value and an array. A run reads feeds and fills fetches. The caller provides a fetch's data, of at least `bytes`;
 * the run fills data, type and shape. data NULL: the value is computed for its effects only (inc, print, assert). */
typedef struct plait_feed {
    plait_value  value;
    plait_tensor tensor;
} plait_feed;
typedef struct plait_fetch {
    plait_value  value;
    plait_tensor tensor;
    size_t       bytes;
} plait_fetch;

/** Computes the fetches, the values that they need, and nothing else. Any value may be fed, not only placeholders.
 *  Values in exclude [n_exclude] are not computed: those that a fetch needs must be fed, and fetches for effects only
 *  are left out. Lengths that were PLAIT_ANY are those of the feeds. The plan for a set of feeds, shapes and fetches is
 *  made once; the session keeps the 64 plans that were run last.
 *  Errors: EINVAL a needed placeholder was not fed, or a fetch's memory is too small (both are named); ESHAPE; ENOMEM;
 *  the error of an op or of the store. After an error, no variable in the session's own memory has changed.
 *  Any thread; each of several runs at once has its own memory. While a plan is made the session is locked: other runs
 *  wait to begin or end. With the session's own store, a run that calls inc waits for earlier such runs. */
PLAIT_API plait_status plait_session_run(plait_session *session, const plait_feed *feeds, int32_t n_feeds,
                                         plait_fetch *fetches, int32_t n_fetches, const plait_value *exclude,
                                         int32_t n_exclude, plait_error *error_out);

/** Copies all values of variable k, as the store has them, to data [its bytes]; it is a run that only gets the
 *  variable.
 *  Errors: EINVAL there is no such variable; ENOMEM; the store's error. Any thread. With the session's own memory it
 *  waits for runs under way that call inc, so it never sees half of one; a store of the program's is called on this
 *  thread. */
PLAIT_API plait_status plait_session_variable(plait_session *session, int32_t k, void *data, plait_error *error_out);

/** Sets all values of variable k in the session's own memory to data [its bytes]; runs that begin afterwards get them.
 *  Errors: EINVAL there is no such variable; EREFUSED it lies in a store of the program's; ENOMEM. Any thread; waits
 *  for runs that are under way. */
PLAIT_API plait_status plait_session_set_variable(plait_session *session, int32_t k, const void *data,
                                                  plait_error *error_out);

/* What a session knows of a variable. Runs are numbered from 1, in the order in which they began to compute. */
typedef struct plait_variable_info {
    const char *name; /* the graph's                                                                         */
    plait_type  type;
    plait_shape shape;
    const char *owner;    /* who holds its values: "session", or the store's answer, such as "ps" for a table    */
    int64_t     version;  /* how often this session has changed it, by incs of runs that succeeded and by
                             plait_session_set_variable; changes that others push into a store do not count      */
    int64_t     last_get; /* the last successful run that got it, or rows of it; 0: none                          */
    int64_t     last_inc; /* the last successful run that called inc for it; 0: none                              */
} plait_variable_info;

/** Describes variable k after the runs that have returned. Errors: EINVAL there is no such variable. Any thread. */
PLAIT_API plait_status plait_session_variable_info(plait_session *session, int32_t k, plait_variable_info *info_out,
                                                   plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
