/* plait/group.h - named sets of workers.
 *
 * A *group* is some of a run's workers: the replicas of one stage of a cut graph, the vertex partitions of one region,
 * the sites of one federated round. Its *members* have collectives of their own, and a table may belong to a group
 * (plait_table_opts.group): then the members alone read and update it, and their clocks alone count for its
 * consistency.
 *
 * Members are numbered 0 .. size - 1 in order of rank. Groups may overlap, and a worker may be in none. Their
 * collectives do not mix: each group matches its calls in its own order, and those of all workers (plait/comm.h) in
 * theirs. A member that calls two groups in an order that crosses another member's order waits for it in vain; the
 * doctor names both (PLAIT_EDEADLOCK), save where a call was begun and is waited for later: that wait has its deadline.
 *
 * All groups of a run have numbers, and there are at most 4095 of them; a destroyed one keeps its number.
 *
 * Threads: as plait_comm, a group's handle belongs to its rank. Errors not listed at a call: EINVAL, ENOMEM, ETIMEOUT,
 * EPEER, ECOMM, EDEADLOCK; EREFUSED the caller is no member. The text is in plait_comm_error().
 *
 * Paper: the MPI Forum, "MPI: A Message-Passing Interface Standard", chapter 7 (groups, MPI_Comm_create); Dinan et al.,
 * "Noncollective Communicator Creation in MPI", EuroMPI 2011. */
#ifndef PLAIT_GROUP_H
#define PLAIT_GROUP_H

#include <plait/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_group plait_group; /* a rank's handle; lives until plait_group_destroy or the run's end */

/** Makes a group of the workers in `workers` [n], in any order, each once. name: up to 47 printable bytes; two groups
 *  may have the same. Every worker gets a handle, also one that is no member: it may ask for name, size and members.
 *  Errors: EINVAL a name or worker that is none, or one named twice; EMISMATCH the workers' arguments differ (the text
 *  names two that do); EREFUSED it is the 4096th group. Collective over all workers of the run, members or not.
 *  With opts.replicas 2 members may have died before, or die later: collectives of a group that has tables go on
 *  without them, and those of a group without tables end with EPEER. */
PLAIT_API plait_status plait_group_create(plait_comm *comm, const char *name, int32_t n, const int32_t *workers,
                                          plait_group **group_out);

/** Frees the caller's handle; *group may be NULL, and is NULL afterwards. Not collective: the others' handles live on,
 *  but a member calls it only when it has waited for all that it began. Errors: EINVAL a call that was begun is not
 *  waited for, or the job in which the group has tables, or has had some, has not ended; then the handle stays. */
PLAIT_API plait_status plait_group_destroy(plait_group **group);

PLAIT_API const char *plait_group_name(const plait_group *group);
PLAIT_API int32_t     plait_group_size(const plait_group *group);                   /* how many members; NULL: 0 */
PLAIT_API int32_t     plait_group_member(const plait_group *group, int32_t number); /* its rank; -1: there is none */
PLAIT_API int32_t     plait_group_rank(const plait_group *group); /* the caller's number; -1: it is no member */

/* --- collectives: among the members, called by all of them in the same order -------------------------- */

/* What plait/comm.h says of the collective of the same name holds here, with "member" in place of "worker". They go by
 * messages, in the form that opts.collective names or that suits the group's size and hosts; a group of one member
 * sends nothing. An exact sum has the same bits in whatever group the terms are summed. */

PLAIT_API plait_status plait_group_barrier(plait_group *group);

PLAIT_API plait_status plait_group_allreduce(plait_group *group, void *buf, int64_t n, plait_type type,
                                             plait_reduce op);
PLAIT_API plait_status plait_group_allreduce_begin(plait_group *group, void *buf, int64_t n, plait_type type,
                                                   plait_reduce op, plait_request **request_out);

/** The slice of a member: elements [*first_out, *first_out + *count_out) of n. */
PLAIT_API void plait_group_slice(const plait_group *group, int64_t n, int32_t number, int64_t *first_out,
                                 int64_t *count_out);
PLAIT_API plait_status plait_group_reduce_scatter(plait_group *group, void *buf, int64_t n, plait_type type,
                                                  plait_reduce op);
PLAIT_API plait_status plait_group_reduce_scatter_begin(plait_group *group, void *buf, int64_t n, plait_type type,
                                                        plait_reduce op, plait_request **request_out);

/** Copies buf [bytes] of the member with the number root to all members. */
PLAIT_API plait_status plait_group_broadcast(plait_group *group, void *buf, size_t bytes, int32_t root);

/** Gathers mine [bytes] of every member into all [size][bytes], ordered by member. */
PLAIT_API plait_status plait_group_allgather(plait_group *group, const void *mine, size_t bytes, void *all);

/** Gathers pieces of different lengths: sizes [size]; *all_out is freed with plait_comm_free. */
PLAIT_API plait_status plait_group_allgatherv(plait_group *group, const void *mine, size_t bytes, size_t *sizes,
                                              void **all_out);
PLAIT_API plait_status plait_group_allgatherv_begin(plait_group *group, const void *mine, size_t bytes, size_t *sizes,
                                                    void **all_out, plait_request **request_out);

/** Notes the caller's source line for the next call on group, and returns group; see plait_comm_at. */
PLAIT_API plait_group *plait_group_at(plait_group *group, const char *file, int32_t line);

#ifndef PLAIT_NO_SITES
#define plait_group_create(comm, ...)    plait_group_create(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_group_barrier(group)       plait_group_barrier(plait_group_at(group, PLAIT_FILE, __LINE__))
#define plait_group_allreduce(group, ...) \
    plait_group_allreduce(plait_group_at(group, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_group_reduce_scatter(group, ...) \
    plait_group_reduce_scatter(plait_group_at(group, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_group_broadcast(group, ...) \
    plait_group_broadcast(plait_group_at(group, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_group_allgather(group, ...) \
    plait_group_allgather(plait_group_at(group, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_group_allgatherv(group, ...) \
    plait_group_allgatherv(plait_group_at(group, PLAIT_FILE, __LINE__), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
