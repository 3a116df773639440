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

/* --- a graph cut in parts ------------------------------------------------------------------------------------- */

/* An edge of a cut: a value that one part makes and another reads. */
typedef struct plait_edge {
    plait_value value;       /* in the graph                                                          */
    int32_t     from, to;    /* parts: the producer and the reader                                    */
    int32_t     replica;     /* of the graph (plait_cut)                                              */
    int64_t     micro_batch; /* the number of the run; the same in all parts, and never used again    */
} plait_edge;

/* Carries values along the edges of a cut. Sessions of all parts use it: `send` in the producer's session, the other
 * three in the reader's. A session calls it on the thread that runs the session.
 * Flow control: a reader grants each edge of the graph a number of tensors that are sent and not yet received. A
 * producer that has no grant left is told so and keeps the tensor, so neither side piles up memory. */
typedef struct plait_channel {
    void *user;
    /** Begins to send a tensor. It is lent for this call only. *taken_out is set to 1; or to 0, if the reader has
     *  granted no more: then nothing has happened, and the session tries again after `wait`. */
    plait_status (*send)(void *user, const plait_edge *edge, const plait_tensor *tensor, int *taken_out,
                         plait_error *error);
    /** Receives the edge's tensor, if it has arrived: sets *data_out, which belongs to the channel and is lent until
     *  `release`; this grants the producer one more. *data_out NULL: it has not arrived. `like` is the type and shape
     *  that the reader expects (ESHAPE if the producer has sent another). Never waits. */
    plait_status (*receive)(void *user, const plait_edge *edge, const plait_tensor *like, const void **data_out,
                            plait_error *error);
    /** Gives back what receive has lent. */
    void (*release)(void *user, const plait_edge *edge, const void *data);
    /** Waits until the edge can go on: the tensor has arrived, or (sends 1) the reader grants one more. The reason of
     *  the wait names producer, reader, value and micro-batch.
     *  Errors: EPEER the other part is gone; EDEADLOCK parts wait for each other; ETIMEOUT. */
    plait_status (*wait)(void *user, const plait_edge *edge, int sends, plait_error *error);
} plait_channel;

/* Which part of a graph a session computes. All parts have the same graph and cut; each has a session, with `own` of
 * its own, and all sessions make the same runs in the same order, with the same feeds and fetches.
 *     A node without a place: one of a gradient lies with the node that it differentiates; a variable with the first
 * node that reads it; an inc with its variable; a placeholder in part 0; another with the last part that it reads
 * from. Constants, and nodes that read only shapes, are computed wherever they are needed. A variable that several
 * parts read is sent by the part that has it. get_rows and incs must lie with their variable.
 *     All parts feed the shapes of all feeds; data are read only in the part of the fed value's node (elsewhere they
 * may be NULL). A fetch is filled in the part that computes it, and is left as it is in the others.
 *     Values have the same bits as uncut, random ones too. */
typedef struct plait_cut {
    size_t               size;    /* set by plait_cut_init                                                  */
    int32_t              parts;   /* number of parts                                                        */
    int32_t              own;     /* the part of this session, from 0                                       */
    int32_t              replica; /* of the graph; part of each edge, otherwise not looked at               */
    const int32_t       *place;   /* [n_places] the part of each node; -1: none. NULL: those of plait_graph_place, a
                                     rank as the part of its number. Nodes count in the order in which they were added
                                     (plait_graph_nodes). Copied                                                     */
    int64_t              n_places; /* nodes after these have no place                                        */
    const plait_channel *channel; /* copied; needed if there are several parts                              */
} plait_cut;

PLAIT_API void plait_cut_init(plait_cut *cut);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_cut_init_sized(plait_cut *cut, size_t size);
#define plait_cut_init(cut) plait_cut_init_sized(cut, sizeof(plait_cut))

/** A channel in memory, for sessions of one process. threads: how many threads run them, one for each rank. grants:
 *  how many tensors of an edge of the graph may be sent and not yet received, 1 or more. An edge that skips parts may
 *  make its producer wait, unless grants is at least parts + 1. If all threads wait and none can go on, the waits
 *  end with EDEADLOCK; other waits have no deadline. Errors: EINVAL; ENOMEM. Any thread. */
typedef struct plait_memory_channel plait_memory_channel;
PLAIT_API plait_status plait_memory_channel_create(int32_t threads, int32_t grants, plait_memory_channel **channel_out,
                                                   plait_error *error_out);
/** What a plait_cut takes; valid as long as the channel. */
PLAIT_API const plait_channel *plait_memory_channel_calls(const plait_memory_channel *channel);
/** The thread of a part makes no more runs, as after a failure. Waits for it end with EPEER once nothing of it is
 *  left. */
PLAIT_API void plait_memory_channel_leave(plait_memory_channel *channel, int32_t part);
/** After the last session that uses it. *channel may be NULL. */
PLAIT_API void plait_memory_channel_destroy(plait_memory_channel **channel);

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
    const char *exclude; /* subgraphs that runs leave out, "aux,tail" (plait_graph_subgraph); NULL: none      */
    const char *train;   /* the subgraphs whose variables runs change: incs of all others are left out; NULL: all */
    const plait_cut *cut; /* the session computes one part of the graph; copied; NULL: all of it */
} plait_session_opts;

PLAIT_API void plait_session_opts_init(plait_session_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_session_opts_init_sized(plait_session_opts *opts, size_t size);
#define plait_session_opts_init(opts) plait_session_opts_init_sized(opts, sizeof(plait_session_opts))

/** Makes a session. opts may be NULL. The graph is borrowed for the session's life; it may grow between runs.
 *      What exclude names is not computed and not got, in no run: a placeholder there needs no feed, gradients of its
 *  nodes and incs of its variables are left out, and its variables keep their values. A run whose fetches need one of
 *  its values is refused, unless the value is fed. Incs that train leaves out are not computed either; fetch them like
 *  the others, for their effects.
 *  Errors: what plait_graph_check says; ENAME unknown pass, kernels or subgraph; EINVAL a subgraph is both excluded and
 *  trained, or train names no variable; EMODULE the kernels' module is missing (the text
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

/* A micro-batch. All micro-batches of a call feed and fetch the same values; their shapes may differ. */
typedef struct plait_batch {
    const plait_feed *feeds;
    plait_fetch      *fetches;
    int32_t           n_feeds, n_fetches;
} plait_batch;

/** Runs micro-batches [n] through the parts of a cut graph, as a pipeline: while a later part works on one, an earlier
 *  part works on the next. sessions [n_sessions]: those of this rank, in the order of their parts. n_sessions 1: rank r
 *  has part r. More (for "interleaved"): of `ranks` ranks, rank r has the parts r, r + ranks, r + 2 ranks, ...
 *  schedule: "gpipe": all micro-batches forward, then all backward (Huang et al., NeurIPS 2019); "1f1b": in turns, so
 *  that at most `parts` are under way (PipeDream-flush: Narayanan et al., SC 2021); "interleaved": 1f1b over several
 *  parts a rank; n is a multiple of the ranks.
 *  Variables are got once, so all micro-batches read the same values. What their incs add up to is one inc, at the end.
 *  Collective over the ranks of a cut. Errors: ENAME schedule; EINVAL; those of plait_session_run and of the channel.
 *  No other run of these sessions may be under way. */
PLAIT_API plait_status plait_session_run_batches(plait_session *const *sessions, int32_t n_sessions,
                                                 const char *schedule, plait_batch *batches, int32_t n,
                                                 plait_error *error_out);

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
