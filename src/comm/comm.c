/* How a collective runs: by the transport's own collective, by messages in steps, or by a carrier (carried.h); the
 * caller waits at once, or begins it and waits later. A group's collectives always go by messages, by a machine of
 * its own. collectives.c has the public calls. */
#include <stdio.h>
#include <string.h>

#include "comm/call.h"
#include "comm/callback.h"
#include "comm/carried.h"

static bool is_done(void *arg) { return pli_coll_is_done(&((pli_call *)arg)->run); }

void pli_comm_tell_call(const void *arg, char *text, size_t bytes) {
    const pli_call *call = arg;
    char            what[PLI_COLL_TEXT];
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
    if (coll->group != NULL) {
        /* A member that sends nothing is not in this call yet, or waits itself for what it is to pass on: so this is
         * a wait for that member's message. A call that was begun may go on while its member waits elsewhere. */
        wait->kind = coll->begun || wait->peer < 0 ? PLI_WAIT_OTHER : PLI_WAIT_RECV;
        return;
    }
    wait->number = call->number;
    wait->coll_kind = (uint8_t)(coll->kind | coll->begun << 7);
    wait->coll_form = coll->form != NULL ? coll->form->id : 0;
    wait->coll_type = (uint8_t)coll->type;
    wait->coll_op = (uint8_t)coll->op;
    wait->root = coll->root;
    wait->n = coll->n;
}

static pli_port *port_of(const plait_comm *comm, const pli_coll *coll) {
    return coll->group != NULL ? coll->group->port : comm->collective_port;
}

static pli_collective *machine_of(plait_comm *comm, const pli_coll *coll) {
    return coll->group != NULL ? &coll->group->collective : &comm->collective;
}

static void begin_messages(plait_comm *comm, pli_call *call, const pli_coll *coll) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(port_of(comm, coll), &now_ns, &out);
    pli_collective_begin(machine_of(comm, coll), now_ns, coll, &call->run, &out);
    pli_port_leave(port_of(comm, coll), &out);
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
    atomic_fetch_add_explicit(&comm->sent[PLI_PORT_COLLECTIVE], bytes, memory_order_relaxed);
    return world->ops->begin(world->transport, call, &comm->error);
}

static bool is_native(const pli_world *world, const pli_coll *coll) {
    bool named = pli_coll_reduces(coll) && world->form != NULL;
    return coll->group == NULL && world->place.workers > 1 && !named && !world->by_messages &&
           world->ops->takes != NULL && world->ops->takes(world->transport, coll);
}

static plait_status may_call(plait_comm *comm, const plait_group *group) {
    if (!pli_comm_is_worker(comm))
        pli_fail(&comm->error, PLAIT_EINVAL, "rank %d is a server; only workers call collectives", comm->rank);
    else if (group != NULL && group->me < 0)
        pli_fail(&comm->error, PLAIT_EREFUSED, "rank %d is no member of group %s", comm->rank, group->name);
    else if (comm->life > 1 && pli_carriage_of(comm, (plait_group *)group)->carrier.gather == NULL)
        pli_fail(&comm->error, PLAIT_EREFUSED,
                 "a collective of rank %d, which was started anew (plait_comm_life), is refused outside of its job: "
                 "the others have gone on without it",
                 comm->rank);
    else
        return PLAIT_OK;
    return pli_comm_failed(comm);
}

/* The call's number among the rank's, from 1. Release: pairs with the doctor's acquire, like that of joined. */
static uint64_t number_call(plait_comm *comm, plait_group *group) {
    if (group != NULL) return ++group->begun;
    return atomic_fetch_add_explicit(&comm->begun, 1, memory_order_release) + 1;
}

static const pli_hosts *hosts_of(const plait_comm *comm, const plait_group *group) {
    return group != NULL ? &group->hosts : &comm->world->hosts;
}

static plait_status begin_call(plait_comm *comm, const pli_coll *coll, pli_call *call) {
    pli_world    *world = comm->world;
    const int32_t workers = pli_call_workers(comm, coll->group);
    PLI_TRY(may_call(comm, coll->group));
    if (pli_comm_is_lost(comm, NULL, &comm->error) < 0) return pli_comm_failed(comm);
    call->comm = comm;
    call->coll = *coll;
    call->carried = pli_carriage_of(comm, coll->group)->carrier.gather != NULL;
    call->native = !call->carried && is_native(world, coll);
    const bool by_cells = coll->op == PLAIT_SUM_EXACT && !call->native;
    if (by_cells && pli_exact_begin(call, &comm->error) < 0) return pli_comm_failed(comm);
    atomic_init(&call->run.waits_for, -1);
    call->number = number_call(comm, coll->group);
    if (workers == 1) return PLAIT_OK;
    if (call->carried) {
        plait_status status = pli_carried_run(comm, &call->coll);
        if (status < 0 && call->cells != NULL) pli_exact_end(call, status);
        return status < 0 ? pli_comm_failed(comm) : PLAIT_OK;
    }
    if (call->native) return begin_native(comm, call) < 0 ? pli_comm_failed(comm) : PLAIT_OK;
    pli_coll_choose(&call->coll, world->form, workers, hosts_of(comm, coll->group));
    begin_messages(comm, call, &call->coll);
    return PLAIT_OK;
}

/* Gives the buffer back to the caller: the machine must not touch it any more. */
static void abort_call(plait_comm *comm, pli_call *call, const plait_error *why) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(port_of(comm, &call->coll), &now_ns, &out);
    pli_collective_abort(machine_of(comm, &call->coll), &call->run, why, &out);
    pli_port_leave(port_of(comm, &call->coll), &out);
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
    const int32_t    workers = pli_call_workers(comm, call->coll.group);
    if (call->coll.group == NULL && call->number > atomic_load_explicit(&comm->joined, memory_order_relaxed))
        atomic_store_explicit(&comm->joined, call->number, memory_order_release);
    if (workers > 1 && !call->carried)
        status = call->native ? world->ops->wait(world->transport, call, &comm->error) : wait_for_messages(comm, call);
    if (status < 0 && call->native && world->ops->meets_by_messages) abort_call(comm, call, &comm->error);
    if (call->cells != NULL) pli_exact_end(call, status);
    return status < 0 ? pli_comm_failed(comm) : PLAIT_OK;
}

plait_status pli_call_run(plait_comm *comm, const pli_coll *coll, const char *name) {
    pli_call call = { 0 };
    pli_comm_enter(comm, name);
    plait_status status = begin_call(comm, coll, &call);
    return pli_comm_leave(comm, status < 0 ? status : end_call(comm, &call));
}

/* --- begun, and waited for later -------------------------------------------------------------------------- */

static void free_pieces(pli_call *call) {
    const int32_t n = pli_coll_pieces(&call->coll, pli_call_workers(call->comm, call->coll.group));
    for (int32_t r = 0; r < n; r++) pli_msg_free(&call->coll.piece[r]);
    pli_free(call->coll.piece);
}

static plait_status take_pieces(plait_comm *comm, const pli_call *call) {
    size_t         total = 0;
    int32_t        workers = pli_call_workers(comm, call->coll.group);
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
    if (call->coll.group != NULL) call->coll.group->uses--;
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
    const int32_t    workers = pli_call_workers(call->comm, call->coll.group);
    plait_error      why;
    pli_fail(&why, PLAIT_ECOMM, "an earlier collective was given up, so no further one can run");
    if (workers > 1 && !call->carried) abort_call(call->comm, call, &why);
    if (call->native) world->ops->drop(world->transport, call);
    free_begun(call);
}

static const char *name_of_wait(const pli_coll *coll) {
    const bool group = coll->group != NULL;
    switch (coll->kind) {
    case PLI_PIECES:
        return group ? "plait_request_wait of plait_group_allgatherv_begin"
                     : "plait_request_wait of plait_comm_allgatherv_begin";
    case PLI_EXCHANGE: return "the wait for an exchange";
    case PLI_REDUCE_SCATTER:
        return group ? "plait_request_wait of plait_group_reduce_scatter_begin"
                     : "plait_request_wait of plait_comm_reduce_scatter_begin";
    case PLI_COLL_BARRIER:
    case PLI_ALLREDUCE:
    case PLI_BROADCAST:
    case PLI_ALLGATHER: break;
    }
    return group ? "plait_request_wait of plait_group_allreduce_begin"
                 : "plait_request_wait of plait_comm_allreduce_begin";
}

static plait_status wait_request(plait_request *request) {
    pli_call   *call = (pli_call *)request;
    plait_comm *comm = call->comm;
    pli_comm_enter(comm, name_of_wait(&call->coll));
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
    if (coll->group != NULL) coll->group->uses++;
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

plait_status pli_call_begin_reduction(plait_comm *comm, pli_coll *coll, plait_request **request_out) {
    pli_call *call = new_call(comm, coll->kind == PLI_ALLREDUCE ? "allreduce" : "reduce-scatter");
    if (call == NULL) return comm->error.code;
    coll->begun = true;
    return begin_later(comm, call, coll, request_out);
}

/* Begins a call whose pieces are `given`, from place `at` on, all of which it takes. */
static plait_status begin_with_pieces(plait_comm *comm, pli_coll *coll, const pli_call *to, const char *what,
                                      int32_t at, int32_t n, pli_msg **given, plait_request **request_out) {
    const int32_t workers = pli_call_workers(comm, coll->group);
    pli_call     *call = new_call(comm, what);
    coll->begun = true;
    if (call != NULL) coll->piece = pli_calloc((size_t)pli_coll_pieces(coll, workers), sizeof *coll->piece);
    if (coll->piece == NULL) {
        pli_free(call);
        for (int32_t i = 0; i < n; i++) pli_msg_free(&given[i]);
        pli_fail(&comm->error, PLAIT_ENOMEM, "%s: no memory for %d pieces", what, workers);
        return pli_comm_failed(comm);
    }
    call->sizes = to->sizes;
    call->all_out = to->all_out;
    call->piece_out = to->piece_out;
    memcpy(coll->piece + at, given, (size_t)n * sizeof *given);
    memset(given, 0, (size_t)n * sizeof *given);
    plait_status status = begin_later(comm, call, coll, request_out);
    if (status >= 0) return status;
    for (int32_t r = 0; r < pli_coll_pieces(coll, workers); r++) pli_msg_free(&coll->piece[r]);
    pli_free(coll->piece);
    return status;
}

plait_status pli_call_begin_pieces(plait_comm *comm, pli_msg *own, const pli_call *to, plait_request **request_out) {
    pli_coll      coll = { .kind = PLI_PIECES, .type = PLAIT_U8, .group = to->coll.group, .root = to->coll.root };
    const int32_t me = pli_call_me(comm, coll.group);
    if (me < 0) pli_msg_free(&own);
    return begin_with_pieces(comm, &coll, to, "allgatherv", me >= 0 ? me : 0, me >= 0, &own, request_out);
}

plait_status pli_call_begin_exchange(plait_comm *comm, pli_msg **given, const pli_call *to,
                                     plait_request **request_out) {
    pli_coll      coll = { .kind = PLI_EXCHANGE, .type = PLAIT_U8, .group = to->coll.group, .root = to->coll.root };
    const int32_t workers = pli_call_workers(comm, coll.group);
    return begin_with_pieces(comm, &coll, to, "exchange", workers, workers, given, request_out);
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

bool pli_comm_sums_by_messages(const plait_comm *comm, const plait_group *group, int64_t n, plait_type type) {
    const pli_coll sum = { .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .group = (plait_group *)group,
                           .n = n };
    return pli_call_workers(comm, group) > 1 && !is_native(comm->world, &sum);
}

bool pli_comm_scatters_alike(const plait_comm *comm, const plait_group *group, int64_t n, plait_type type) {
    const pli_world *world = comm->world;
    pli_coll         whole = { .kind = PLI_ALLREDUCE, .type = type, .op = PLAIT_SUM, .group = (plait_group *)group,
                               .n = n };
    pli_coll         part = whole;
    part.kind = PLI_REDUCE_SCATTER;
    bool native = is_native(world, &whole);
    if (pli_is_cells(type)) return true; /* any order gives the same bits */
    if (native || is_native(world, &part)) return native && is_native(world, &part);
    pli_coll_choose(&whole, world->form, pli_call_workers(comm, group), hosts_of(comm, group));
    return pli_form_scatters(&whole.form);
}
