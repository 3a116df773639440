/* Collectives by a carrier. See carried.h. */
#include "comm/carried.h"

#include <string.h>

#include "comm/world.h"

/* Before what a worker brings: which collective it takes part in. */
typedef struct carried_head {
    uint32_t kind, type, op, begun;
    int64_t  n;
} carried_head;

static carried_head head_of(const pli_coll *coll) {
    return (carried_head){ .kind = coll->kind, .type = coll->type, .op = coll->op, .begun = coll->begun, .n = coll->n };
}

/* What this worker brings. */
static const void *own_part(const plait_comm *comm, const pli_coll *coll, size_t *bytes_out) {
    const unsigned char *buf = coll->buf;
    const int32_t        me = comm->rank;
    *bytes_out = 0;
    switch (coll->kind) {
    case PLI_ALLREDUCE:
    case PLI_REDUCE_SCATTER:
    case PLI_BROADCAST: *bytes_out = pli_coll_buffer_bytes(coll); return buf;
    case PLI_ALLGATHER:
        *bytes_out = coll->starts != NULL ? coll->starts[me + 1] - coll->starts[me] : (size_t)coll->n;
        return *bytes_out == 0 ? NULL : buf + (coll->starts != NULL ? coll->starts[me] : (size_t)me * (size_t)coll->n);
    case PLI_PIECES: *bytes_out = coll->piece[me]->head.body_bytes; return pli_msg_body(coll->piece[me]);
    case PLI_COLL_BARRIER: break;
    }
    return NULL;
}

static plait_status check(const plait_comm *comm, const pli_coll *coll, int32_t from, const void *came, size_t bytes,
                          plait_error *err) {
    const carried_head mine = head_of(coll);
    carried_head       theirs;
    char               a[96], b[96];
    if (bytes < sizeof theirs) return pli_fail(err, PLAIT_EFORMAT, "rank %d took part in no collective", from);
    memcpy(&theirs, came, sizeof theirs);
    if (memcmp(&theirs, &mine, sizeof mine) == 0) return PLAIT_OK;
    pli_coll call = { .kind = (pli_coll_kind)theirs.kind, .type = (plait_type)theirs.type, .op = (plait_reduce)theirs.op,
                      .n = theirs.n };
    pli_coll_tell(&call, a, sizeof a);
    pli_coll_tell(coll, b, sizeof b);
    return pli_fail(err, PLAIT_EMISMATCH, "rank %d called %s where rank %d called %s", from, a, comm->rank, b);
}

/* One worker's part, in the order of the workers; first: none came before. */
static plait_status take_part(plait_comm *comm, const pli_coll *coll, int32_t from, const unsigned char *part,
                              size_t bytes, bool *first) {
    const bool   pieces = coll->kind == PLI_PIECES;
    const size_t at = coll->starts != NULL ? coll->starts[from] : (size_t)from * (size_t)coll->n;
    size_t       due = 0;
    switch (coll->kind) {
    case PLI_ALLREDUCE:
    case PLI_REDUCE_SCATTER:
    case PLI_BROADCAST: due = pli_coll_buffer_bytes(coll); break;
    case PLI_ALLGATHER: due = coll->starts != NULL ? coll->starts[from + 1] - coll->starts[from] : (size_t)coll->n; break;
    case PLI_PIECES:
    case PLI_COLL_BARRIER: break;
    }
    if (!pieces && bytes != due)
        return pli_fail(&comm->error, PLAIT_EMISMATCH, "rank %d brought %zu bytes to a collective, %zu were due", from,
                        bytes, due);
    if (pieces && from != comm->rank) {
        pli_msg_free(&coll->piece[from]);
        coll->piece[from] = pli_msg_new(bytes);
        if (coll->piece[from] == NULL) return pli_fail(&comm->error, PLAIT_ENOMEM, "no memory for a collective");
        if (bytes > 0) memcpy(pli_msg_body(coll->piece[from]), part, bytes);
    } else if (coll->kind == PLI_ALLGATHER) {
        if (bytes > 0) memcpy((unsigned char *)coll->buf + at, part, bytes);
    } else if (pli_coll_reduces(coll) && !*first) {
        pli_reduce(coll->buf, coll->buf, part, coll->n, coll->type, coll->op);
    } else if (bytes > 0 && !pieces && (*first || from == coll->root)) {
        memcpy(coll->buf, part, bytes);
    }
    *first = false;
    return PLAIT_OK;
}

/* Who did not come: nothing of them is in the outcome. */
static plait_status do_without(plait_comm *comm, const pli_coll *coll, int32_t from) {
    if (!comm->absent[from]) comm->n_absent++;
    comm->absent[from] = 1;
    if (coll->kind == PLI_ALLGATHER) {
        const size_t at = coll->starts != NULL ? coll->starts[from] : (size_t)from * (size_t)coll->n;
        const size_t n = coll->starts != NULL ? coll->starts[from + 1] - coll->starts[from] : (size_t)coll->n;
        memset((unsigned char *)coll->buf + at, 0, n);
    }
    if (coll->kind != PLI_PIECES) return PLAIT_OK;
    pli_msg_free(&coll->piece[from]);
    coll->piece[from] = pli_msg_new(0);
    return coll->piece[from] != NULL ? PLAIT_OK
                                     : pli_fail(&comm->error, PLAIT_ENOMEM, "no memory for a collective");
}

plait_status pli_carried_run(plait_comm *comm, const pli_coll *coll) {
    const int32_t workers = comm->world->place.workers;
    size_t        bytes = 0;
    const void   *part = own_part(comm, coll, &bytes);
    carried_head  head = head_of(coll);
    bool          first = true;
    pli_msg      *mine = bytes <= SIZE_MAX - sizeof head ? pli_msg_new(sizeof head + bytes) : NULL;
    pli_carried  *came = pli_calloc((size_t)workers, sizeof *came);
    pli_msg      *held = NULL;
    plait_status  status = PLAIT_OK;
    if (mine == NULL || came == NULL) status = pli_fail(&comm->error, PLAIT_ENOMEM, "no memory for a collective");
    if (status >= 0) {
        memcpy(pli_msg_body(mine), &head, sizeof head);
        if (bytes > 0) memcpy((unsigned char *)pli_msg_body(mine) + sizeof head, part, bytes);
        status = comm->carrier.gather(comm->carrier.user, pli_msg_body(mine), sizeof head + bytes, came, &held,
                                      &comm->error);
    }
    for (int32_t w = 0; status >= 0 && w < workers; w++) {
        if (came[w].data == NULL) {
            status = do_without(comm, coll, w);
            continue;
        }
        status = check(comm, coll, w, came[w].data, came[w].bytes, &comm->error);
        if (status >= 0)
            status = take_part(comm, coll, w, (const unsigned char *)came[w].data + sizeof head,
                               came[w].bytes - sizeof head, &first);
    }
    pli_msg_free(&held);
    pli_msg_free(&mine);
    pli_free(came);
    return status;
}

plait_status pli_comm_carry(plait_comm *comm, const pli_carrier *carrier, plait_error *err) {
    if (comm->absent == NULL) comm->absent = pli_calloc((size_t)comm->world->place.workers, sizeof *comm->absent);
    if (comm->absent == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of workers");
    comm->carrier = *carrier;
    return PLAIT_OK;
}

void pli_comm_carry_no_more(plait_comm *comm) { comm->carrier = (pli_carrier){ 0 }; }

int32_t        pli_comm_absent(const plait_comm *comm) { return comm->n_absent; }
const uint8_t *pli_comm_absentees(const plait_comm *comm) { return comm->absent; }
bool pli_comm_is_absent(const plait_comm *comm, int32_t worker) { return comm->absent != NULL && comm->absent[worker]; }
