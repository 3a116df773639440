/* plait/table_store.h - a graph's variables in parameter tables, with any topology and consistency.
 *
 *     plait_table_store_create(job, graph, &opts, &store);
 *     session_opts.store = plait_table_store_calls(store);
 *     ... plait_session_run(session, ...), plait_job_clock(job) ...
 *
 * One table a variable, of its name and first values: a variable of shape [n, rest] is n rows of as many columns as the
 * rest has values, a single number one row of one. A run asks for the variables that it needs, in the order in which it
 * needs them, before it computes, and waits for each just before its first use; what is pushed by inc leaves with the
 * worker's clock, or as soon as the consistency has it. On a table with an update rule what is pushed is a gradient,
 * summed over rows of data, and on one without it is added.
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
    const plait_table_opts *like; /* of every table: rule, topology, consistency, ...; NULL: an additive one of the
                                     job's topology and consistency */
    void (*each)(void *user, int32_t variable,
                 plait_table_opts *opts); /* changes what `like` says for one variable, as `keyed` where rows are got
                                             and pushed, which then travel alone; not its name, shape, type or first
                                             values; may be NULL */
    void *user;
    int   flushes; /* 1: a clock pushes each variable at most once, so that a gradient leaves while those of other
                      variables are computed (plait_table_flush); default 0 */
} plait_table_store_opts;

PLAIT_API void plait_table_store_opts_init(plait_table_store_opts *opts);

/** Makes the tables. opts may be NULL. graph is borrowed for the store's life; variables that it gets later are not in
 *  it. Errors: EINVAL a variable that is neither float32 nor float64, or is empty (named); those of plait_table_create,
 *  told in plait_comm_error of the job's communicator. Collective over the workers, before the first clock. */
PLAIT_API plait_status plait_table_store_create(plait_job *job, const plait_graph *graph,
                                                const plait_table_store_opts *opts, plait_table_store **store_out);
/** After its sessions; the tables are the job's, and stay. *store may be NULL. */
PLAIT_API void plait_table_store_destroy(plait_table_store **store);

/** For plait_session_opts.store; lives as long as the store. */
PLAIT_API const plait_store *plait_table_store_calls(const plait_table_store *store);

/** Of how many rows of data the gradients are the sum that the runs from now on push; at first 0, as additive tables
 *  have it. */
PLAIT_API void plait_table_store_examples(plait_table_store *store, int64_t examples);

/** The table of a variable: to save it, to read it, to set it by inc. */
PLAIT_API plait_table *plait_table_store_table(const plait_table_store *store, int32_t variable);

#ifdef __cplusplus
}
#endif
#endif
