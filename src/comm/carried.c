/* Collectives by a carrier. See carried.h. */
#include "comm/carried.h"

#include <string.h>

#include "comm/call.h"
#include "comm/world.h"

/* Stands before the bytes that a worker brings: the collective that it takes part in. */
typedef struct carried_head {
    uint32_t kind, type, op, begun, root, zero;
    int64_t  n;
} carried_head;

static carried_head head_of(const pli_coll *coll) {
    return (carried_head){ .kind = coll->kind,
                           .type = coll->type,
                           .op = coll->op,
                           .begun = coll->begun,
                           .root = (uint32_t)coll->root,
                           .n = coll->n };
}

/* The part of buf that a worker brings: its place, and its bytes. Pieces are not in buf. */
static size_t part_of(const pli_coll *coll, int32_t worker, size_t *bytes_out) {
    size_t at = 0;
    *bytes_out = 0;
    switch (coll->kind) {
    case PLI_ALLREDUCE:
    case PLI_REDUCE_SCATTER:
    case PLI_BROADCAST: *bytes_out = pli_coll_buffer_bytes(coll); break;
    case PLI_ALLGATHER:
        at = coll->starts != NULL ? coll->starts[worker] : (size_t)worker * (size_t)coll->n;
        *bytes_out = coll->starts != NULL ? coll->starts[worker + 1] - at : (size_t)coll->n;
        break;
    case PLI_PIECES:
    case PLI_EXCHANGE:
    case PLI_COLL_BARRIER: break;
    }
    return at;
}

/* The rank of the worker with this number in the group. */
static int32_t rank_of(const pli_coll *coll, int32_t worker) {
    return pli_numbers_rank(pli_group_numbers(coll->group), worker);
}

static plait_status check(const plait_comm *comm, const pli_coll *coll, int32_t from, const void *came, size_t bytes,
                          plait_error *err) {
    const carried_head mine = head_of(coll);
    carried_head       theirs;
    char               a[96], b[96];
    if (bytes < sizeof theirs)
        return pli_fail(err, PLAIT_EFORMAT, "rank %d took part in no collective", rank_of(coll, from));
    memcpy(&theirs, came, sizeof theirs);
    if (memcmp(&theirs, &mine, sizeof mine) == 0) return PLAIT_OK;
    pli_coll call = { .kind = (pli_coll_kind)theirs.kind,
                      .type = (plait_type)theirs.type,
                      .op = (plait_reduce)theirs.op,
                      .root = (int32_t)theirs.root,
                      .n = theirs.n };
    pli_coll_tell(&call, a, sizeof a);
    pli_coll_tell(coll, b, sizeof b);
    return pli_fail(err, PLAIT_EMISMATCH, "rank %d called %s where rank %d called %s", rank_of(coll, from), a,
                    comm->rank, b);
}

static plait_status no_memory(plait_comm *comm) {
    return pli_fail(&comm->error, PLAIT_ENOMEM, "no memory for a collective");
}

static plait_status take_piece(plait_comm *comm, const pli_coll *coll, int32_t from, const void *data, size_t bytes) {
    pli_msg_free(&coll->piece[from]);
    coll->piece[from] = pli_msg_new(bytes);
    if (coll->piece[from] == NULL) return no_memory(comm);
    if (bytes > 0) memcpy(pli_msg_body(coll->piece[from]), data, bytes);
    return PLAIT_OK;
}

/* Takes one worker's part; the parts come in the order of the workers. first: no part came before this one. */
static plait_status take_part(plait_comm *comm, const pli_coll *coll, int32_t from, const unsigned char *data,
                              size_t bytes, bool first) {
    size_t         due;
    const size_t   at = part_of(coll, from, &due);
    unsigned char *here = coll->buf == NULL ? NULL : (unsigned char *)coll->buf + at;
    if (coll->kind == PLI_PIECES)
        return from == pli_call_me(comm, coll->group) ? PLAIT_OK : take_piece(comm, coll, from, data, bytes);
    if (bytes != due)
        return pli_fail(&comm->error, PLAIT_EMISMATCH, "rank %d brought %zu bytes to a collective, %zu were due",
                        rank_of(coll, from), bytes, due);
    if (bytes == 0) return PLAIT_OK;
    if (pli_coll_reduces(coll) && !first)
        pli_reduce(here, here, data, coll->n, coll->type, coll->op);
    else if (coll->kind != PLI_BROADCAST || first || from == coll->root)
        memcpy(here, data, bytes);
    return PLAIT_OK;
}

/* Marks a worker that did not come as absent; the result has nothing of it. */
static plait_status do_without(plait_comm *comm, const pli_coll *coll, int32_t from) {
    size_t       bytes;
    const size_t at = part_of(coll, from, &bytes);
    pli_carriage *carriage = pli_carriage_of(comm, coll->group);
    carriage->n_absent += !carriage->absent[from];
    carriage->absent[from] = 1;
    if (coll->kind == PLI_PIECES) return take_piece(comm, coll, from, NULL, 0);
    if (coll->kind == PLI_ALLGATHER && bytes > 0) memset((unsigned char *)coll->buf + at, 0, bytes);
    return PLAIT_OK;
}

/* A worker that had left has come again. */
static void has_come(plait_comm *comm, const pli_coll *coll, int32_t from) {
    pli_carriage *carriage = pli_carriage_of(comm, coll->group);
    carriage->n_absent -= carriage->absent[from] != 0;
    carriage->absent[from] = 0;
}

/* Brings this worker's part, and receives all parts in came [workers], which are lent until held_out is freed. */
static plait_status bring(plait_comm *comm, const pli_coll *coll, pli_carried *came, pli_msg **held_out) {
    const carried_head head = head_of(coll);
    const pli_carrier *carrier = &pli_carriage_of(comm, coll->group)->carrier;
    const bool         pieces = coll->kind == PLI_PIECES;
    const int32_t      me = pli_call_me(comm, coll->group);
    size_t             bytes;
    const size_t       at = part_of(coll, me, &bytes);
    const pli_msg     *own = pieces ? coll->piece[me] : NULL;
    if (pieces) bytes = own->head.body_bytes;
    pli_msg *mine = bytes <= SIZE_MAX - sizeof head ? pli_msg_new(sizeof head + bytes) : NULL;
    if (mine == NULL) return no_memory(comm);
    unsigned char *to = pli_msg_body(mine);
    memcpy(to, &head, sizeof head);
    if (bytes > 0) memcpy(to + sizeof head, pieces ? pli_msg_body(own) : (const unsigned char *)coll->buf + at, bytes);
    plait_status status = carrier->gather(carrier->user, to, sizeof head + bytes, came, held_out, &comm->error);
    pli_msg_free(&mine);
    return status;
}

plait_status pli_carried_run(plait_comm *comm, const pli_coll *coll) {
    const int32_t workers = pli_call_workers(comm, coll->group);
    const size_t  head = sizeof(carried_head);
    pli_carried  *came = pli_calloc((size_t)workers, sizeof *came);
    pli_msg      *held = NULL;
    bool          first = true;
    if (coll->kind == PLI_EXCHANGE) {
        pli_free(came);
        return pli_fail(&comm->error, PLAIT_EREFUSED, "an exchange is refused where collectives are carried: what "
                                                      "comes to one worker comes to all; nearest is an allgather");
    }
    plait_status  status = came != NULL ? bring(comm, coll, came, &held) : no_memory(comm);
    for (int32_t w = 0; status >= 0 && w < workers; w++)
        status = came[w].data == NULL ? do_without(comm, coll, w)
                                      : check(comm, coll, w, came[w].data, came[w].bytes, &comm->error);
    for (int32_t w = 0; status >= 0 && w < workers; w++) {
        if (came[w].data == NULL) continue;
        has_come(comm, coll, w);
        status = take_part(comm, coll, w, (const unsigned char *)came[w].data + head, came[w].bytes - head, first);
        first = false;
    }
    pli_msg_free(&held);
    pli_free(came);
    return status;
}

static plait_status carry(pli_carriage *carriage, int32_t workers, const pli_carrier *carrier, plait_error *err) {
    if (carriage->absent == NULL) carriage->absent = pli_calloc((size_t)workers, sizeof *carriage->absent);
    if (carriage->absent == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of workers");
    carriage->carrier = *carrier;
    return PLAIT_OK;
}

plait_status pli_comm_carry(plait_comm *comm, const pli_carrier *carrier, plait_error *err) {
    return carry(&comm->carriage, comm->world->place.workers, carrier, err);
}

void pli_comm_carry_no_more(plait_comm *comm) { comm->carriage.carrier = (pli_carrier){ 0 }; }

plait_status pli_group_carry(plait_group *group, const pli_carrier *carrier, plait_error *err) {
    return carry(&group->carriage, group->numbers.members, carrier, err);
}

void pli_group_carry_no_more(plait_group *group) { group->carriage.carrier = (pli_carrier){ 0 }; }

int32_t        pli_comm_absent(const plait_comm *comm) { return comm->carriage.n_absent; }
const uint8_t *pli_comm_absentees(const plait_comm *comm) { return comm->carriage.absent; }
bool           pli_comm_is_absent(const plait_comm *comm, int32_t worker) {
    return comm->carriage.absent != NULL && comm->carriage.absent[worker];
}
