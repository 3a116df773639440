/* The public collectives, of all workers (plait/comm.h) and of a group's members (plait/group.h), and those of tables.
 * Each kind is written once, with the group as an argument; NULL: all workers. comm.c runs them. */
#include <string.h>

#include "comm/call.h"
#include "comm/callback.h"

/* --- barriers ----------------------------------------------------------------------------------------------------- */

static plait_status barrier(plait_comm *comm, plait_group *group, const char *name) {
    PLI_TRY(pli_comm_usable(comm, name));
    pli_coll call = { .kind = PLI_COLL_BARRIER, .type = PLAIT_U8, .group = group };
    return pli_call_run(comm, &call, name);
}

plait_status plait_comm_barrier(plait_comm *comm) { return barrier(comm, NULL, "plait_comm_barrier"); }
plait_status plait_group_barrier(plait_group *group) {
    return group == NULL ? PLAIT_EINVAL : barrier(group->comm, group, "plait_group_barrier");
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

/* Checks a reduction's arguments, and makes it. */
static plait_status reduction(plait_comm *comm, plait_group *group, const char *name, pli_coll_kind kind, void *buf,
                              int64_t n, plait_type type, plait_reduce op, pli_coll *call) {
    PLI_TRY(pli_comm_usable(comm, name));
    PLI_TRY(pli_comm_given_memory(comm, name, "buf", buf, n > 0));
    bool floats = type == PLAIT_F32 || type == PLAIT_F64, exact = op == PLAIT_SUM_EXACT;
    bool known = exact ? floats : (floats || type == PLAIT_I64) && pli_reducer_find(type, op) != NULL;
    if (!known) {
        pli_fail(&comm->error, PLAIT_EINVAL, "%s: type %d, op %d: there is no such reduction", name, (int)type,
                 (int)op);
        return pli_comm_failed(comm);
    }
    int64_t most = pli_comm_most_bytes(comm) / (int64_t)pli_type_bytes(exact ? pli_cells_of(type) : type);
    if (n < 0 || n > most) {
        pli_fail(&comm->error, PLAIT_EINVAL, "%s: n is %lld; expected 0 to %lld", name, (long long)n, (long long)most);
        return pli_comm_failed(comm);
    }
    *call = (pli_coll){ .kind = kind, .type = type, .op = op, .group = group, .n = n, .buf = buf };
    return PLAIT_OK;
}

/* The two names of a reduction: of all workers, and of a group. */
#define NAME(group, what) ((group) == NULL ? "plait_comm_" what : "plait_group_" what)

static plait_status reduce(plait_comm *comm, plait_group *group, pli_coll_kind kind, void *buf, int64_t n,
                           plait_type type, plait_reduce op) {
    const char *name = kind == PLI_ALLREDUCE ? NAME(group, "allreduce") : NAME(group, "reduce_scatter");
    pli_coll    call;
    PLI_TRY(reduction(comm, group, name, kind, buf, n, type, op, &call));
    return pli_call_run(comm, &call, name);
}

static plait_status begin(plait_comm *comm, plait_group *group, pli_coll_kind kind, void *buf, int64_t n,
                          plait_type type, plait_reduce op, plait_request **request_out) {
    const char *name = kind == PLI_ALLREDUCE ? NAME(group, "allreduce_begin") : NAME(group, "reduce_scatter_begin");
    pli_coll    call;
    PLI_TRY(reduction(comm, group, name, kind, buf, n, type, op, &call));
    PLI_TRY(pli_comm_given(comm, name, "request_out", request_out));
    return pli_call_begin_reduction(comm, &call, request_out);
}

plait_status plait_comm_allreduce(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op) {
    return reduce(comm, NULL, PLI_ALLREDUCE, buf, n, type, op);
}
plait_status plait_group_allreduce(plait_group *group, void *buf, int64_t n, plait_type type, plait_reduce op) {
    return group == NULL ? PLAIT_EINVAL : reduce(group->comm, group, PLI_ALLREDUCE, buf, n, type, op);
}

plait_status plait_comm_reduce_scatter(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op) {
    return reduce(comm, NULL, PLI_REDUCE_SCATTER, buf, n, type, op);
}
plait_status plait_group_reduce_scatter(plait_group *group, void *buf, int64_t n, plait_type type, plait_reduce op) {
    return group == NULL ? PLAIT_EINVAL : reduce(group->comm, group, PLI_REDUCE_SCATTER, buf, n, type, op);
}

plait_status plait_comm_allreduce_begin(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op,
                                        plait_request **request_out) {
    return begin(comm, NULL, PLI_ALLREDUCE, buf, n, type, op, request_out);
}
plait_status plait_group_allreduce_begin(plait_group *group, void *buf, int64_t n, plait_type type, plait_reduce op,
                                         plait_request **request_out) {
    return group == NULL ? PLAIT_EINVAL : begin(group->comm, group, PLI_ALLREDUCE, buf, n, type, op, request_out);
}

plait_status plait_comm_reduce_scatter_begin(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op,
                                             plait_request **request_out) {
    return begin(comm, NULL, PLI_REDUCE_SCATTER, buf, n, type, op, request_out);
}
plait_status plait_group_reduce_scatter_begin(plait_group *group, void *buf, int64_t n, plait_type type,
                                              plait_reduce op, plait_request **request_out) {
    return group == NULL ? PLAIT_EINVAL : begin(group->comm, group, PLI_REDUCE_SCATTER, buf, n, type, op, request_out);
}

static void slice(int64_t n, int32_t worker, int32_t workers, int64_t *first_out, int64_t *count_out) {
    *first_out = pli_slice_first(n, worker, workers);
    *count_out = pli_slice_first(n, worker + 1, workers) - *first_out;
}

void plait_comm_slice(const plait_comm *comm, int64_t n, int32_t worker, int64_t *first_out, int64_t *count_out) {
    if (comm == NULL || first_out == NULL || count_out == NULL) return;
    slice(n, worker, comm->world->place.workers, first_out, count_out);
}
void plait_group_slice(const plait_group *group, int64_t n, int32_t number, int64_t *first_out, int64_t *count_out) {
    if (group == NULL || first_out == NULL || count_out == NULL) return;
    slice(n, number, group->numbers.members, first_out, count_out);
}

/* --- broadcast and allgather -------------------------------------------------------------------------------------- */

static plait_status broadcast(plait_comm *comm, plait_group *group, const char *name, void *buf, size_t bytes,
                              int32_t root) {
    PLI_TRY(pli_comm_usable(comm, name));
    PLI_TRY(pli_comm_given_memory(comm, name, "buf", buf, bytes > 0));
    PLI_TRY(pli_comm_at_most(comm, name, bytes, pli_comm_most_bytes(comm)));
    if (root < 0 || root >= pli_call_workers(comm, group)) {
        pli_fail(&comm->error, PLAIT_EINVAL, "broadcast: %zu bytes from %s %d of %d", bytes,
                 group == NULL ? "worker" : "member", root, pli_call_workers(comm, group));
        return pli_comm_failed(comm);
    }
    pli_coll call = { .kind = PLI_BROADCAST, .type = PLAIT_U8, .group = group, .root = root, .n = (int64_t)bytes,
                      .buf = buf };
    return pli_call_run(comm, &call, name);
}

plait_status plait_comm_broadcast(plait_comm *comm, void *buf, size_t bytes, int32_t root) {
    return broadcast(comm, NULL, "plait_comm_broadcast", buf, bytes, root);
}
plait_status plait_group_broadcast(plait_group *group, void *buf, size_t bytes, int32_t root) {
    return group == NULL ? PLAIT_EINVAL : broadcast(group->comm, group, "plait_group_broadcast", buf, bytes, root);
}

static plait_status allgather(plait_comm *comm, plait_group *group, const char *name, const void *mine, size_t bytes,
                              void *all) {
    PLI_TRY(pli_comm_usable(comm, name));
    PLI_TRY(pli_comm_given_memory(comm, name, "mine", mine, bytes > 0));
    PLI_TRY(pli_comm_given_memory(comm, name, "all", all, bytes > 0));
    PLI_TRY(pli_comm_at_most(comm, name, bytes, pli_comm_most_bytes(comm)));
    const int32_t me = pli_call_me(comm, group);
    if (me >= 0 && bytes > 0) memmove((unsigned char *)all + (size_t)me * bytes, mine, bytes);
    pli_coll call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .group = group, .n = (int64_t)bytes, .buf = all };
    return pli_call_run(comm, &call, name);
}

plait_status plait_comm_allgather(plait_comm *comm, const void *mine, size_t bytes, void *all) {
    return allgather(comm, NULL, "plait_comm_allgather", mine, bytes, all);
}
plait_status plait_group_allgather(plait_group *group, const void *mine, size_t bytes, void *all) {
    return group == NULL ? PLAIT_EINVAL
                         : allgather(group->comm, group, "plait_group_allgather", mine, bytes, all);
}

/* --- pieces of different lengths ---------------------------------------------------------------------------------- */

static plait_status pieces_given(plait_comm *comm, const char *call, const void *mine, size_t bytes,
                                 const size_t *sizes, void *const *all_out) {
    PLI_TRY(pli_comm_usable(comm, call));
    PLI_TRY(pli_comm_given_memory(comm, call, "mine", mine, bytes > 0));
    PLI_TRY(pli_comm_given(comm, call, "sizes", sizes));
    PLI_TRY(pli_comm_given(comm, call, "all_out", all_out));
    return pli_comm_at_most(comm, call, bytes, pli_comm_most_bytes(comm));
}

static plait_status begin_allgatherv(plait_comm *comm, plait_group *group, const char *name, const void *mine,
                                     size_t bytes, size_t *sizes, void **all_out, plait_request **request_out) {
    PLI_TRY(pieces_given(comm, name, mine, bytes, sizes, all_out));
    PLI_TRY(pli_comm_given(comm, name, "request_out", request_out));
    pli_msg *own = pli_msg_new(bytes);
    if (own == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", bytes);
        return pli_comm_failed(comm);
    }
    if (bytes > 0) memcpy(pli_msg_body(own), mine, bytes);
    return pli_call_begin_pieces(comm, own, &(pli_call){ .coll.group = group, .sizes = sizes, .all_out = all_out },
                                 request_out);
}

plait_status plait_comm_allgatherv_begin(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes,
                                         void **all_out, plait_request **request_out) {
    return begin_allgatherv(comm, NULL, __func__, mine, bytes, sizes, all_out, request_out);
}
plait_status plait_group_allgatherv_begin(plait_group *group, const void *mine, size_t bytes, size_t *sizes,
                                          void **all_out, plait_request **request_out) {
    if (group == NULL) return PLAIT_EINVAL;
    return begin_allgatherv(group->comm, group, __func__, mine, bytes, sizes, all_out, request_out);
}

static plait_status gather_pieces(plait_comm *comm, plait_group *group, const char *name, const void *mine,
                                  size_t bytes, const size_t *starts, void **all_out) {
    int32_t workers = pli_call_workers(comm, group);
    size_t  total = starts[workers];
    void   *all = pli_malloc(total);
    if (all == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", total);
        return pli_comm_failed(comm);
    }
    if (bytes > 0) memcpy((unsigned char *)all + starts[pli_call_me(comm, group)], mine, bytes);
    pli_coll     call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .group = group, .n = (int64_t)total, .buf = all,
                          .starts = starts };
    plait_status status = pli_call_run(comm, &call, name);
    if (status < 0) {
        pli_free(all);
    } else {
        *all_out = all;
    }
    return status;
}

static plait_status gather_lengths_and_pieces(plait_comm *comm, plait_group *group, const char *name,
                                              const void *mine, size_t bytes, size_t *sizes, void **all_out) {
    PLI_TRY(allgather(comm, group, name, &bytes, sizeof bytes, sizes));
    int32_t workers = pli_call_workers(comm, group);
    size_t *starts = pli_array((size_t)workers + 1, sizeof *starts);
    if (starts == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %d sizes", workers);
        return pli_comm_failed(comm);
    }
    starts[0] = 0;
    for (int32_t r = 0; r < workers; r++) starts[r + 1] = starts[r] + sizes[r];
    plait_status status = gather_pieces(comm, group, name, mine, bytes, starts, all_out);
    pli_free(starts);
    return status;
}

/* One collective gathers sizes and pieces: with two, a rank that dies in between would be missing from the second
 * alone. */
static plait_status gather_at_once(plait_comm *comm, plait_group *group, const void *mine, size_t bytes, size_t *sizes,
                                   void **all_out) {
    plait_request *request;
    if (group != NULL) PLI_TRY(plait_group_allgatherv_begin(group, mine, bytes, sizes, all_out, &request));
    else PLI_TRY(plait_comm_allgatherv_begin(comm, mine, bytes, sizes, all_out, &request));
    return plait_request_wait(&request);
}

plait_status plait_comm_allgatherv(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes, void **all_out) {
    static const char name[] = "plait_comm_allgatherv";
    PLI_TRY(pieces_given(comm, name, mine, bytes, sizes, all_out));
    pli_comm_enter(comm, name);
    return pli_comm_leave(comm, comm->carriage.carrier.gather != NULL
                                    ? gather_at_once(comm, NULL, mine, bytes, sizes, all_out)
                                    : gather_lengths_and_pieces(comm, NULL, name, mine, bytes, sizes, all_out));
}

plait_status plait_group_allgatherv(plait_group *group, const void *mine, size_t bytes, size_t *sizes,
                                     void **all_out) {
    static const char name[] = "plait_group_allgatherv";
    if (group == NULL) return PLAIT_EINVAL;
    plait_comm *comm = group->comm;
    PLI_TRY(pieces_given(comm, name, mine, bytes, sizes, all_out));
    pli_comm_enter(comm, name);
    return pli_comm_leave(comm, group->carriage.carrier.gather != NULL
                                    ? gather_at_once(comm, group, mine, bytes, sizes, all_out)
                                    : gather_lengths_and_pieces(comm, group, name, mine, bytes, sizes, all_out));
}

/* --- of tables ---------------------------------------------------------------------------------------------------- */

static plait_status reduce_cells(plait_comm *comm, plait_group *group, pli_coll_kind kind, bool wide, int64_t n,
                                 void *cells) {
    const pli_coll call = { .kind = kind, .type = wide ? PLI_CELLS_F64 : PLI_CELLS_F32, .op = PLAIT_SUM,
                            .group = group, .n = n, .buf = cells };
    return pli_call_run(comm, &call, "the exact sum of a clock");
}

plait_status pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells) {
    return reduce_cells(comm, NULL, PLI_ALLREDUCE, wide, n, cells);
}

plait_status pli_comm_scatter_cells(plait_comm *comm, plait_group *group, bool wide, int64_t n, void *cells) {
    return reduce_cells(comm, group, PLI_REDUCE_SCATTER, wide, n, cells);
}

plait_status pli_comm_sum_tables(plait_comm *comm, plait_group *group, plait_type type, plait_reduce op, int64_t n,
                                 void *buf, bool spares_bytes, plait_request **request_out) {
    pli_coll coll = { .kind = PLI_ALLREDUCE, .type = type, .op = op, .group = group, .root = PLI_COLL_OF_TABLES,
                      .n = n, .buf = buf, .spares_bytes = spares_bytes };
    return request_out != NULL ? pli_call_begin_reduction(comm, &coll, request_out)
                               : pli_call_run(comm, &coll, "the sum of a clock");
}

plait_status pli_comm_pieces_begin(plait_comm *comm, plait_group *group, pli_msg *mine, pli_msg **piece,
                                   plait_request **request_out) {
    const pli_call to = { .coll = { .group = group, .root = PLI_COLL_OF_TABLES }, .piece_out = piece };
    return pli_call_begin_pieces(comm, mine, &to, request_out);
}

plait_status pli_comm_exchange_begin(plait_comm *comm, plait_group *group, pli_msg **given, pli_msg **piece,
                                     plait_request **request_out) {
    const pli_call to = { .coll = { .group = group, .root = PLI_COLL_OF_TABLES }, .piece_out = piece };
    return pli_call_begin_exchange(comm, given, &to, request_out);
}

plait_status pli_comm_gather_slices(plait_comm *comm, plait_group *group, void *buf, int64_t n, int64_t cut,
                                    size_t element_bytes) {
    int32_t workers = pli_call_workers(comm, group);
    size_t *starts = pli_array((size_t)workers + 1, sizeof *starts);
    if (starts == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgather: no memory for %d sizes", workers);
        return pli_comm_failed(comm);
    }
    for (int32_t r = 0; r <= workers; r++) {
        int64_t first = pli_slice_first(cut, r, workers);
        starts[r] = (size_t)(first < n ? first : n) * element_bytes;
    }
    pli_coll     call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .group = group, .n = (int64_t)starts[workers],
                          .buf = buf, .starts = starts };
    plait_status status = pli_call_run(comm, &call, "the allgather of a table's slices");
    pli_free(starts);
    return status;
}
