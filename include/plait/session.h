/* plait/session.h - running a graph: partial runs of what is asked for, with variables in a store.
 *
 * A session makes a *plan* of each set of feeds, shapes and fetches: which nodes are needed, what passes made of them,
 * where each value lies in one block of memory. Running a plan again allocates nothing. Nodes run as soon as their
 * inputs are there, the parts of large ones side by side; the values do not depend on the number of threads.
 */
#ifndef PLAIT_SESSION_H
#define PLAIT_SESSION_H

#include <plait/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where variables lie. The graph calls these from the thread that calls run, one at a time; variable is its number.
 * A failure ends the run. In one run all gets of a variable come before its incs. */
typedef struct plait_store {
    void *user;
    /** A run will get these [n], in this order. NULL: nothing to prepare. */
    plait_status (*expect)(void *user, int32_t n, const int32_t *variables, plait_error *error);
    /** All values, in the variable's type and shape, borrowed until end. */
    plait_status (*get)(void *user, int32_t variable, const void **values_out, plait_error *error);
    /** Rows (of axis 0; repeats allowed, each in range), copied to values [n, the rest of the shape]. */
    plait_status (*get_rows)(void *user, int32_t variable, int64_t n, const int64_t *rows, void *values,
                             plait_error *error);
    /** delta has the variable's shape (inc_rows: [n, the rest]); it and rows are lent until end. What it means is the
     *  store's: an addition, or a gradient for an update rule. What was borrowed by get stays as it is until end. */
    plait_status (*inc)(void *user, int32_t variable, const void *delta, plait_error *error);
    plait_status (*inc_rows)(void *user, int32_t variable, int64_t n, const int64_t *rows, const void *delta,
                             plait_error *error);
    /** The run is over, well (OK) or not; what was borrowed and lent is given back. */
    plait_status (*end)(void *user, plait_status how, plait_error *error);
    /** Who owns the variable, for plait_session_variable_info: a word, good as long as the store. Any thread.
     *  NULL: it is "store". */
    const char *(*owner)(void *user, int32_t variable);
} plait_store;

typedef struct plait_session plait_session;

typedef struct plait_session_opts {
    size_t             size;  /* set by plait_session_opts_init                                               */
    const plait_store *store; /* copied; NULL: the session's own memory, in which inc adds                    */
    uint64_t           seed;  /* of random ops                                                                */
    const plait_log   *log;   /* where print speaks; NULL: silence                                            */
    int32_t            threads; /* that compute, the caller one of them; 0: as many as there are cores, for this
                                   session alone. Where each rank of a job has one, and they share a host, as on the
                                   transport threads, give each its share: cores / ranks, or plait_comm_threads  */
    const char        *passes; /* of "fold,merge,sparse,fuse,memory" those that are made, or "none"; NULL: all */
    const char        *dump;  /* a folder for Graphviz files of each plan, before and after each pass; NULL: none */
    void (*trace)(void *user, const char *name, int32_t thread, uint64_t begin_ns, uint64_t end_ns); /* called after
                                                                                                        each
                                 node, or a thread's part of it, by that thread; may be
                                 NULL */
    void *trace_user;
    const char *kernels; /* of a module, taken before Plait's own: "onednn" (convolutions); NULL: Plait's
                            own */
} plait_session_opts;

PLAIT_API void plait_session_opts_init(plait_session_opts *opts);

/** opts may be NULL. The graph is borrowed for the session's life; it may grow between runs.
 *  Errors: what plait_graph_check says; ENAME an unknown pass, or kernels; EMODULE the kernels' module is
 *  not there, with what installs it; EINVAL a store that is not whole; ENOMEM. */
PLAIT_API plait_status plait_session_create(const plait_graph *graph, const plait_session_opts *opts,
                                            plait_session **session_out, plait_error *error_out);
PLAIT_API void         plait_session_destroy(plait_session **session); /* *session may be NULL; while nobody runs it */

/* A value and an array. A feed is read. A fetch's data is the caller's, of at least `bytes`; run fills type and shape.
 * data NULL: computed for its effects only (inc, print, assert). */
typedef struct plait_feed {
    plait_value  value;
    plait_tensor tensor;
} plait_feed;
typedef struct plait_fetch {
    plait_value  value;
    plait_tensor tensor;
    size_t       bytes;
} plait_fetch;

/** Computes the fetches, and what they need, and nothing else. Any value may be fed, not placeholders alone. What a
 *  fetch needs of exclude [n_exclude] must be fed; what would be computed for its effects only and stands there is left
 *  out. Lengths that were PLAIT_ANY are those of the feeds. The plan of a set of feeds, shapes and fetches is made
 *  once; the 64 that were run last are kept.
 *  Errors: EINVAL a placeholder is needed that was not fed, a fetch's memory is too small (named); ESHAPE; ENOMEM; what
 *  an op or the store answered. Then nothing was added to a variable of the session's own memory.
 *  Any thread; several runs at once have memory of their own. Making a plan holds the session's lock: other runs
 *  that begin or end wait for it. With the session's own store, runs that inc wait for those before them. */
PLAIT_API plait_status plait_session_run(plait_session *session, const plait_feed *feeds, int32_t n_feeds,
                                         plait_fetch *fetches, int32_t n_fetches, const plait_value *exclude,
                                         int32_t n_exclude, plait_error *error_out);

/** All values of variable k as the store has them, copied to data [its bytes]: a run that gets nothing else.
 *  Errors: EINVAL there is no such variable; ENOMEM; what the store answered. Any thread. Of the session's own
 *  memory it waits for runs with an inc that are under way, so it sees none of them by half; a store of the
 *  program's is called by this thread. */
PLAIT_API plait_status plait_session_variable(plait_session *session, int32_t k, void *data, plait_error *error_out);

/** Sets all values of variable k, which lies in the session's own memory, to data [its bytes]; runs that begin
 *  afterwards get them. Errors: EINVAL there is no such variable; EREFUSED it lies in a store of the program's; ENOMEM.
 *  Any thread; waits for runs that are under way. */
PLAIT_API plait_status plait_session_set_variable(plait_session *session, int32_t k, const void *data,
                                                  plait_error *error_out);

/* What is known of a variable. Runs are numbered from 1 on, in the order in which they began to compute. */
typedef struct plait_variable_info {
    const char *name; /* the graph's                                                                         */
    plait_type  type;
    plait_shape shape;
    const char *owner;    /* who has its values: "session", or what the store says, as "ps" of one in tables     */
    int64_t     version;  /* how often this session has changed it: incs of runs that ended well, and
                             plait_session_set_variable; what others push into a store is not counted            */
    int64_t     last_get; /* the last run that got it, or rows of it; 0: none. Runs that failed do not count      */
    int64_t     last_inc; /* the last run that pushed into it; 0: none                                            */
} plait_variable_info;

/** Of variable k, as of the runs that have returned. Errors: EINVAL there is no such variable. Any thread. */
PLAIT_API plait_status plait_session_variable_info(plait_session *session, int32_t k, plait_variable_info *info_out,
                                                   plait_error *error_out);

#ifdef __cplusplus
}
#endif
#endif
