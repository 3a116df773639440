/* Collectives as their caller sees them. They run by the transport's own collective, by messages in steps, or by a
 * carrier (carried.h); the caller waits at once, or begins them and waits later. */
#include <stdio.h>
#include <string.h>

#include "comm/callback.h"
#include "comm/carried.h"
#include "comm/handle.h"

static bool is_done(void *arg) { return pli_coll_is_done(&((pli_call *)arg)->run); }

void pli_comm_tell_call(const void *arg, char *text, size_t bytes) {
    const pli_call *call = arg;
    char            what[96];
    pli_coll_tell(&call->coll, what, sizeof what);
    int32_t for_rank = atomic_load_explicit(&call->run.waits_for, memory_order_relaxed);
    if (for_rank >= 0) {
        snprintf(text, bytes, "%s, held up by rank %d", what, for_rank);
    } else {
        snprintf(text, bytes, "%s", what);
    }
}

void pli_comm_show_call(const void *arg, pli_wait *wait) {
    const pli_call *call = arg;
    const pli_coll *coll = &call->coll;
    wait->kind = PLI_WAIT_COLLECTIVE;
    wait->peer = atomic_load_explicit(&call->run.waits_for, memory_order_relaxed);
    wait->number = call->number;
    wait->coll_kind = (uint8_t)(coll->kind | coll->begun << 7);
    wait->coll_form = coll->form != NULL ? coll->form->id : 0;
    wait->coll_type = (uint8_t)coll->type;
    wait->coll_op = (uint8_t)coll->op;
    wait->root = coll->root;
    wait->n = coll->n;
}

static void begin_messages(plait_comm *comm, pli_call *call, const pli_coll *coll) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(comm->collective_port, &now_ns, &out);
    pli_collective_begin(&comm->collective, now_ns, coll, &call->run, &out);
    pli_port_leave(comm->collective_port, &out);
}

/* If the transport runs begun calls by itself, the workers may need messages to find out that all have come. */
static bool meets_by_messages(const pli_world *world, const pli_coll *coll) {
    return coll->begun && world->ops->meets_by_messages;
}

static plait_status begin_native(plait_comm *comm, pli_call *call) {
    pli_world *world = comm->world;
    int32_t    workers = world->place.workers;
    pli_coll   charged = call->coll; /* bytes are charged as if it went by messages */
    if (charged.op == PLAIT_SUM_EXACT) charged.type = pli_cells_of(charged.type);
    pli_coll_choose(&charged, NULL, workers, &world->hosts);
    uint64_t bytes = pli_coll_bytes(&charged, comm->rank, workers);
    if (meets_by_messages(world, &call->coll)) {
        pli_coll meeting = call->coll;
        meeting.meet = true;
        bytes -= pli_coll_bytes(&meeting, comm->rank, workers); /* the meeting's messages are counted when they are
                                                                 * sent */
        begin_messages(comm, call, &meeting);
    }
    atomic_fetch_add_explicit(&comm->bytes_sent, bytes, memory_order_relaxed);
    return world->ops->begin(world->transport, call, &comm->error);
}

static bool is_native(const pli_world *world, const pli_coll *coll) {
    bool named = pli_coll_reduces(coll) && world->form != NULL;
    return world->place.workers > 1 && !named && !world->by_messages && world->ops->takes != NULL &&
           world->ops->takes(world->transport, coll);
}

static plait_status begin_call(plait_comm *comm, const pli_coll *coll, pli_call *call) {
    pli_world *world = comm->world;
    if (!pli_comm_is_worker(comm)) {
        pli_fail(&comm->error, PLAIT_EINVAL, "rank %d is a server; only workers call collectives", comm->rank);
        return pli_comm_failed(comm);
    }
    if (pli_comm_is_lost(comm, NULL, &comm->error) < 0) return pli_comm_failed(comm);
    call->comm = comm;
    call->coll = *coll;
    call->carried = comm->carrier.gather != NULL;
    call->native = !call->carried && is_native(world, coll);
    const bool by_cells = coll->op == PLAIT_SUM_EXACT && !call->native;
    if (by_cells && pli_exact_begin(call, &comm->error) < 0) return pli_comm_failed(comm);
    atomic_init(&call->run.waits_for, -1);
    /* Release: pairs with the doctor's acquire, like that of joined. */
    call->number = atomic_fetch_add_explicit(&comm->begun, 1, memory_order_release) + 1;
    if (world->place.workers == 1) return PLAIT_OK;
    if (call->carried) {
        plait_status status = pli_carried_run(comm, &call->coll);
        if (status < 0 && call->cells != NULL) pli_exact_end(call, status);
        return status < 0 ? pli_comm_failed(comm) : PLAIT_OK;
    }
    if (call->native) return begin_native(comm, call) < 0 ? pli_comm_failed(comm) : PLAIT_OK;
    pli_coll_choose(&call->coll, world->form, world->place.workers, &world->hosts);
    begin_messages(comm, call, &call->coll);
    return PLAIT_OK;
}

/* Gives the buffer back to the caller: the machine must not touch it any more. */
static void abort_call(plait_comm *comm, pli_call *call, const plait_error *why) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(comm->collective_port, &now_ns, &out);
    pli_collective_abort(&comm->collective, &call->run, why, &out);
    pli_port_leave(comm->collective_port, &out);
}

static plait_status wait_for_messages(plait_comm *comm, pli_call *call) {
    pli_reason  reason = { .tell = pli_comm_tell_call, .show = pli_comm_show_call, .arg = call };
    plait_error why = { .rank = -1 };
    if (pli_comm_wait(comm, is_done, call, &reason, &why) < 0) {
        abort_call(comm, call, &why);
        comm->error = why;
        return why.code;
    }
    if (call->run.error.code >= 0) return PLAIT_OK;
    comm->error = call->run.error;
    return comm->error.code;
}

static plait_status end_call(plait_comm *comm, pli_call *call) {
    const pli_world *world = comm->world;
    plait_status     status = PLAIT_OK;
    if (call->number > atomic_load_explicit(&comm->joined, memory_order_relaxed))
        atomic_store_explicit(&comm->joined, call->number, memory_order_release);
    if (world->place.workers > 1 && !call->carried)
        status = call->native ? world->ops->wait(world->transport, call, &comm->error) : wait_for_messages(comm, call);
    if (status < 0 && call->native && world->ops->meets_by_messages) abort_call(comm, call, &comm->error);
    if (call->cells != NULL) pli_exact_end(call, status);
    return status < 0 ? pli_comm_failed(comm) : PLAIT_OK;
}

static plait_status run_call(plait_comm *comm, const pli_coll *coll, const char *name) {
    pli_call call = { 0 };
    pli_comm_enter(comm, name);
    plait_status status = begin_call(comm, coll, &call);
    return pli_comm_leave(comm, status < 0 ? status : end_call(comm, &call));
}

plait_status plait_comm_barrier(plait_comm *comm) {
    PLI_TRY(pli_comm_usable(comm, __func__));
    pli_coll call = { .kind = PLI_COLL_BARRIER, .type = PLAIT_U8 };
    return run_call(comm, &call, "plait_comm_barrier");
}

static plait_status reduction(plait_comm *comm, const char *name, pli_coll_kind kind, void *buf, int64_t n,
                              plait_type type, plait_reduce op, pli_coll *call) {
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
    *call = (pli_coll){ .kind = kind, .type = type, .op = op, .n = n, .buf = buf };
    return PLAIT_OK;
}

plait_status plait_comm_allreduce(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op) {
    pli_coll     call;
    plait_status status = reduction(comm, __func__, PLI_ALLREDUCE, buf, n, type, op, &call);
    return status < 0 ? status : run_call(comm, &call, "plait_comm_allreduce");
}

void plait_comm_slice(const plait_comm *comm, int64_t n, int32_t worker, int64_t *first_out, int64_t *count_out) {
    if (comm == NULL || first_out == NULL || count_out == NULL) return;
    int32_t workers = comm->world->place.workers;
    *first_out = pli_slice_first(n, worker, workers);
    *count_out = pli_slice_first(n, worker + 1, workers) - *first_out;
}

plait_status plait_comm_reduce_scatter(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op) {
    pli_coll     call;
    plait_status status = reduction(comm, __func__, PLI_REDUCE_SCATTER, buf, n, type, op, &call);
    return status < 0 ? status : run_call(comm, &call, "plait_comm_reduce_scatter");
}

static plait_status reduce_cells(plait_comm *comm, pli_coll_kind kind, bool wide, int64_t n, void *cells) {
    const pli_coll call = { .kind = kind, .type = wide ? PLI_CELLS_F64 : PLI_CELLS_F32, .op = PLAIT_SUM, .n = n,
                            .buf = cells };
    return run_call(comm, &call, "the exact sum of a clock");
}

plait_status pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells) {
    return reduce_cells(comm, PLI_ALLREDUCE, wide, n, cells);
}

plait_status pli_comm_scatter_cells(plait_comm *comm, bool wide, int64_t n, void *cells) {
    return reduce_cells(comm, PLI_REDUCE_SCATTER, wide, n, cells);
}

/* --- begun, and waited for later -------------------------------------------------------------------------- */

static void free_pieces(pli_call *call) {
    for (int32_t r = 0; call->coll.piece != NULL && r < call->comm->world->place.workers; r++)
        pli_msg_free(&call->coll.piece[r]);
    pli_free(call->coll.piece);
}

static plait_status take_pieces(plait_comm *comm, const pli_call *call) {
    size_t         total = 0;
    int32_t        workers = comm->world->place.workers;
    pli_msg      **piece = call->coll.piece;
    if (call->piece_out != NULL) {
        memcpy(call->piece_out, piece, (size_t)workers * sizeof *piece);
        memset(piece, 0, (size_t)workers * sizeof *piece);
        return PLAIT_OK;
    }
    for (int32_t r = 0; r < workers; r++) total += call->sizes[r] = piece[r]->head.body_bytes;
    unsigned char *all = pli_malloc(total), *at = all;
    if (all == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", total);
        return pli_comm_failed(comm);
    }
    for (int32_t r = 0; r < workers; at += call->sizes[r++])
        if (call->sizes[r] > 0) memcpy(at, pli_msg_body(piece[r]), call->sizes[r]);
    *call->all_out = all;
    return PLAIT_OK;
}

static void free_begun(pli_call *call) {
    pli_call **at = &call->comm->under_way;
    while (*at != call) at = &(*at)->next;
    *at = call->next;
    free_pieces(call);
    pli_free(call->cells);
    pli_free(call);
}

static plait_status end_begun(pli_call *call) {
    plait_status status = end_call(call->comm, call);
    if (status >= 0 && call->coll.piece != NULL) status = take_pieces(call->comm, call);
    free_begun(call);
    return status;
}

void pli_comm_drop(plait_request **request_ptr) {
    pli_call *call = (pli_call *)*request_ptr;
    *request_ptr = NULL;
    if (call == NULL) return;
    const pli_world *world = call->comm->world;
    plait_error      why;
    pli_fail(&why, PLAIT_ECOMM, "an earlier collective was given up, so no further one can run");
    if (world->place.workers > 1 && !call->carried) abort_call(call->comm, call, &why);
    if (call->native) world->ops->drop(world->transport, call);
    free_begun(call);
}

static plait_status wait_request(plait_request *request) {
    pli_call   *call = (pli_call *)request;
    plait_comm *comm = call->comm;
    pli_comm_enter(comm, call->coll.kind == PLI_PIECES ? "plait_request_wait of plait_comm_allgatherv_begin"
                                                       : call->coll.kind == PLI_REDUCE_SCATTER
                                                          ? "plait_request_wait of plait_comm_reduce_scatter_begin"
                                                          : "plait_request_wait of plait_comm_allreduce_begin");
    return pli_comm_leave(comm, end_begun(call));
}

static plait_status begin_later(plait_comm *comm, pli_call *call, const pli_coll *coll, plait_request **request_out) {
    plait_status status = begin_call(comm, coll, call);
    if (status < 0) {
        pli_free(call);
        return status;
    }
    call->request.wait = wait_request;
    call->next = comm->under_way;
    comm->under_way = call;
    *request_out = &call->request;
    return PLAIT_OK;
}

static pli_call *new_call(plait_comm *comm, const char *what) {
    pli_call *call = pli_calloc(1, sizeof *call);
    if (call == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "%s: no memory for a request", what);
        (void)pli_comm_failed(comm);
    }
    return call;
}

static plait_status begin_reduction(plait_comm *comm, pli_coll *coll, plait_request **request_out) {
    pli_call *call = new_call(comm, coll->kind == PLI_ALLREDUCE ? "allreduce" : "reduce-scatter");
    if (call == NULL) return comm->error.code;
    coll->begun = true;
    return begin_later(comm, call, coll, request_out);
}

plait_status pli_comm_sum_tables(plait_comm *comm, plait_type type, plait_reduce op, int64_t n, void *buf,
                                 plait_request **request_out) {
    pli_coll coll = {
        .kind = PLI_ALLREDUCE, .type = type, .op = op, .root = PLI_COLL_OF_TABLES, .n = n, .buf = buf
    };
    return request_out != NULL ? begin_reduction(comm, &coll, request_out)
                               : run_call(comm, &coll, "the sum of a clock");
}

plait_status plait_comm_allreduce_begin(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op,
                                        plait_request **request_out) {
    pli_coll coll;
    PLI_TRY(reduction(comm, __func__, PLI_ALLREDUCE, buf, n, type, op, &coll));
    PLI_TRY(pli_comm_given(comm, __func__, "request_out", request_out));
    return begin_reduction(comm, &coll, request_out);
}

plait_status plait_comm_reduce_scatter_begin(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op,
                                             plait_request **request_out) {
    pli_coll coll;
    PLI_TRY(reduction(comm, __func__, PLI_REDUCE_SCATTER, buf, n, type, op, &coll));
    PLI_TRY(pli_comm_given(comm, __func__, "request_out", request_out));
    return begin_reduction(comm, &coll, request_out);
}

/* to: where the result goes, and (by its root) whether the pieces are of tables. */
static plait_status begin_pieces(plait_comm *comm, pli_msg *own, const pli_call *to, plait_request **request_out) {
    pli_coll  coll = { .kind = PLI_PIECES, .type = PLAIT_U8, .root = to->coll.root, .begun = true };
    pli_call *call = new_call(comm, "allgatherv");
    if (call != NULL) coll.piece = pli_calloc((size_t)comm->world->place.workers, sizeof *coll.piece);
    if (coll.piece == NULL) {
        pli_free(call);
        pli_msg_free(&own);
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %d pieces", comm->world->place.workers);
        return pli_comm_failed(comm);
    }
    call->sizes = to->sizes;
    call->all_out = to->all_out;
    call->piece_out = to->piece_out;
    if (pli_comm_is_worker(comm)) coll.piece[comm->rank] = own;
    else pli_msg_free(&own);
    plait_status status = begin_later(comm, call, &coll, request_out);
    if (status >= 0) return status;
    for (int32_t r = 0; r < comm->world->place.workers; r++) pli_msg_free(&coll.piece[r]);
    pli_free(coll.piece);
    return status;
}

static plait_status pieces_given(plait_comm *comm, const char *call, const void *mine, size_t bytes,
                                 const size_t *sizes, void *const *all_out) {
    PLI_TRY(pli_comm_usable(comm, call));
    PLI_TRY(pli_comm_given_memory(comm, call, "mine", mine, bytes > 0));
    PLI_TRY(pli_comm_given(comm, call, "sizes", sizes));
    PLI_TRY(pli_comm_given(comm, call, "all_out", all_out));
    return pli_comm_at_most(comm, call, bytes, pli_comm_most_bytes(comm));
}

plait_status plait_comm_allgatherv_begin(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes,
                                         void **all_out, plait_request **request_out) {
    PLI_TRY(pieces_given(comm, __func__, mine, bytes, sizes, all_out));
    PLI_TRY(pli_comm_given(comm, __func__, "request_out", request_out));
    pli_msg *own = pli_msg_new(bytes);
    if (own == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", bytes);
        return pli_comm_failed(comm);
    }
    if (bytes > 0) memcpy(pli_msg_body(own), mine, bytes);
    return begin_pieces(comm, own, &(pli_call){ .sizes = sizes, .all_out = all_out }, request_out);
}

plait_status pli_comm_pieces_begin(plait_comm *comm, pli_msg *mine, pli_msg **piece, plait_request **request_out) {
    return begin_pieces(comm, mine, &(pli_call){ .coll.root = PLI_COLL_OF_TABLES, .piece_out = piece }, request_out);
}

plait_status plait_request_wait(plait_request **request_ptr) {
    plait_request *request = request_ptr == NULL ? NULL : *request_ptr;
    if (request != NULL) PLI_TRY(pli_callback_refuses(__func__));
    if (request != NULL) *request_ptr = NULL;
    return request == NULL ? PLAIT_OK : request->wait(request);
}

void pli_comm_end_calls(plait_comm *comm, bool failed_itself) {
    while (comm->under_way != NULL) {
        plait_request *request = &comm->under_way->request;
        if (failed_itself) pli_comm_drop(&request);
        else (void)plait_request_wait(&request);
    }
}

plait_status plait_comm_broadcast(plait_comm *comm, void *buf, size_t bytes, int32_t root) {
    PLI_TRY(pli_comm_usable(comm, __func__));
    PLI_TRY(pli_comm_given_memory(comm, __func__, "buf", buf, bytes > 0));
    PLI_TRY(pli_comm_at_most(comm, __func__, bytes, pli_comm_most_bytes(comm)));
    if (root < 0 || root >= comm->world->place.workers) {
        pli_fail(&comm->error, PLAIT_EINVAL, "broadcast: %zu bytes from worker %d of %d", bytes, root,
                 comm->world->place.workers);
        return pli_comm_failed(comm);
    }
    pli_coll call = { .kind = PLI_BROADCAST, .type = PLAIT_U8, .root = root, .n = (int64_t)bytes, .buf = buf };
    return run_call(comm, &call, "plait_comm_broadcast");
}

plait_status plait_comm_allgather(plait_comm *comm, const void *mine, size_t bytes, void *all) {
    PLI_TRY(pli_comm_usable(comm, __func__));
    PLI_TRY(pli_comm_given_memory(comm, __func__, "mine", mine, bytes > 0));
    PLI_TRY(pli_comm_given_memory(comm, __func__, "all", all, bytes > 0));
    PLI_TRY(pli_comm_at_most(comm, __func__, bytes, pli_comm_most_bytes(comm)));
    if (pli_comm_is_worker(comm) && bytes > 0) memmove((unsigned char *)all + (size_t)comm->rank * bytes, mine, bytes);
    pli_coll call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .n = (int64_t)bytes, .buf = all };
    return run_call(comm, &call, "plait_comm_allgather");
}

static plait_status gather_pieces(plait_comm *comm, const void *mine, size_t bytes, const size_t *starts,
                                  void **all_out) {
    int32_t workers = comm->world->place.workers;
    size_t  total = starts[workers];
    void   *all = pli_malloc(total);
    if (all == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %zu bytes", total);
        return pli_comm_failed(comm);
    }
    if (bytes > 0) memcpy((unsigned char *)all + starts[comm->rank], mine, bytes);
    pli_coll     call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .n = (int64_t)total, .buf = all, .starts = starts };
    plait_status status = run_call(comm, &call, "plait_comm_allgatherv");
    if (status < 0) {
        pli_free(all);
    } else {
        *all_out = all;
    }
    return status;
}

bool pli_comm_sums_by_messages(const plait_comm *comm, int64_t n, plait_type type) {
    const pli_coll sum = { .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .n = n };
    return comm->world->place.workers > 1 && !is_native(comm->world, &sum);
}

bool pli_comm_scatters_alike(const plait_comm *comm, int64_t n, plait_type type) {
    const pli_world *world = comm->world;
    pli_coll         whole = { .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .n = n }, part = whole;
    part.kind = PLI_REDUCE_SCATTER;
    bool native = is_native(world, &whole);
    if (pli_is_cells(type)) return true; /* any order gives the same bits */
    if (native || is_native(world, &part)) return native && is_native(world, &part);
    pli_coll_choose(&whole, world->form, world->place.workers, &world->hosts);
    return pli_form_scatters(&whole.form);
}

plait_status pli_comm_gather_slices(plait_comm *comm, void *buf, int64_t n, int64_t cut, size_t element_bytes) {
    int32_t workers = comm->world->place.workers;
    size_t *starts = pli_array((size_t)workers + 1, sizeof *starts);
    if (starts == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgather: no memory for %d sizes", workers);
        return pli_comm_failed(comm);
    }
    for (int32_t r = 0; r <= workers; r++) {
        int64_t first = pli_slice_first(cut, r, workers);
        starts[r] = (size_t)(first < n ? first : n) * element_bytes;
    }
    pli_coll     call = { .kind = PLI_ALLGATHER, .type = PLAIT_U8, .n = (int64_t)starts[workers], .buf = buf,
                          .starts = starts };
    plait_status status = run_call(comm, &call, "the allgather of a table's slices");
    pli_free(starts);
    return status;
}

static plait_status gather_lengths_and_pieces(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes,
                                              void **all_out) {
    PLI_TRY(plait_comm_allgather(comm, &bytes, sizeof bytes, sizes));
    int32_t workers = comm->world->place.workers;
    size_t *starts = pli_array((size_t)workers + 1, sizeof *starts);
    if (starts == NULL) {
        pli_fail(&comm->error, PLAIT_ENOMEM, "allgatherv: no memory for %d sizes", workers);
        return pli_comm_failed(comm);
    }
    starts[0] = 0;
    for (int32_t r = 0; r < workers; r++) starts[r + 1] = starts[r] + sizes[r];
    plait_status status = gather_pieces(comm, mine, bytes, starts, all_out);
    pli_free(starts);
    return status;
}

/* One collective gathers sizes and pieces: with two, a rank that dies in between would be missing from the second
 * alone. */
static plait_status gather_at_once(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes, void **all_out) {
    plait_request *request;
    PLI_TRY(plait_comm_allgatherv_begin(comm, mine, bytes, sizes, all_out, &request));
    return plait_request_wait(&request);
}

plait_status plait_comm_allgatherv(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes, void **all_out) {
    PLI_TRY(pieces_given(comm, __func__, mine, bytes, sizes, all_out));
    pli_comm_enter(comm, "plait_comm_allgatherv");
    return pli_comm_leave(comm, comm->carrier.gather != NULL
                                    ? gather_at_once(comm, mine, bytes, sizes, all_out)
                                    : gather_lengths_and_pieces(comm, mine, bytes, sizes, all_out));
}
