/* plait/table_store.h - a graph's variables in parameter tables, with any topology and consistency.
 *
 *     plait_table_store_create(job, graph, &opts, &store);
 *     session_opts.store = plait_table_store_calls(store);
 *     ... plait_session_run(session, ...), plait_job_clock(job) ...
 *
 * Each variable has one table with its name and first values. A variable of shape [n, rest] has n rows, with one column
 * for each value of the rest; a scalar has one row with one column. Before a run computes, it asks for the variables
 * that it needs, in the order of their use, and it waits for each just before its first use. Updates by inc leave at
 * the end of the worker's clock, or as soon as the consistency allows. If the table has an update rule, an update is a
 * gradient, summed over rows of data; if not, it is added.
 *
 * Threads: runs of a session with this store belong to the rank's thread, as the job does, one after the other.
 */
#ifndef PLAIT_TABLE_STORE_H
#define PLAIT_TABLE_STORE_H

#include <plait/session.h>
#include <plait/table.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_table_store plait_table_store;

typedef struct plait_table_store_opts {
    size_t                  size; /* set by plait_table_store_opts_init */
    const plait_table_opts *like; /* options of every table: rule, topology, consistency, ...; NULL: additive tables
                                     with the job's topology and consistency */
    void (*each)(void *user, int32_t variable,
                 plait_table_opts *opts); /* changes the options in `like` for one variable, for example sets `keyed`,
                                             so that only the rows that a graph gets or pushes travel; must not change
                                             name, shape, type or first values; may be NULL */
    void *user;
    int   flushes; /* 1: the program pushes each variable at most once a clock, so a gradient can leave while those of
                      other variables are computed (plait_table_flush); default 0 */
} plait_table_store_opts;

PLAIT_API void plait_table_store_opts_init(plait_table_store_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_table_store_opts_init_sized(plait_table_store_opts *opts, size_t size);
#define plait_table_store_opts_init(opts) plait_table_store_opts_init_sized(opts, sizeof(plait_table_store_opts))

/** Makes the tables. opts may be NULL. graph is borrowed for the store's life; variables that are added to it later
 *  have no table. Errors: EINVAL a variable that is neither float32 nor float64, or is empty (named); those of
 *  plait_table_create. The text is in plait_comm_error of the job's communicator. Collective over the workers, before
 *  the first clock. */
PLAIT_API plait_status plait_table_store_create(plait_job *job, const plait_graph *graph,
                                                const plait_table_store_opts *opts, plait_table_store **store_out);
/** Call it after the store's sessions are destroyed. The tables belong to the job, and stay. *store may be NULL. */
PLAIT_API void plait_table_store_destroy(plait_table_store **store);

/** The store's functions for plait_session_opts.store, valid as long as the store. */
PLAIT_API const plait_store *plait_table_store_calls(const plait_table_store *store);

/** Says over how many rows of data the gradients of later runs are summed; at first 0, which fits additive tables. */
PLAIT_API void plait_table_store_examples(plait_table_store *store, int64_t examples);

/** The table of a variable, for example to save it, read it, or set it by inc. */
PLAIT_API plait_table *plait_table_store_table(const plait_table_store *store, int32_t variable);

#ifdef __cplusplus
}
#endif
#endif
