/* MPI's own allreduces: those that were begun and are waited for later. mpi.h has the ideas. */
#include <string.h>

#include "comm/mpi/mpi.h"
#include "tensor/exact.h"

static const MPI_Datatype types[] = { [PLAIT_F32] = MPI_FLOAT, [PLAIT_F64] = MPI_DOUBLE, [PLAIT_I64] = MPI_INT64_T };
static const MPI_Op       ops[] = { [PLAIT_SUM] = MPI_SUM, [PLAIT_MIN] = MPI_MIN, [PLAIT_MAX] = MPI_MAX };

/* Has MPI this reducer, too? Internal types and operations go by messages. */
bool pli_mpi_can_sum(const pli_transport *t, const pli_coll *coll) {
    return !t->by_tcp && coll->kind == PLI_ALLREDUCE && (size_t)coll->type < sizeof types / sizeof *types &&
           (size_t)coll->op < sizeof ops / sizeof *ops && coll->n <= CHUNK_BYTES;
}

int pli_mpi_sum(pli_transport *t, const pli_coll *coll) {
    return MPI_Allreduce(MPI_IN_PLACE, coll->buf, (int)coll->n, types[coll->type], ops[coll->op], t->direct_comm);
}

/* --- exact sums: workers exchange slices, so that each has all terms of its own slice at once
 * ----------------------- */

typedef struct terms {
    int *count, *at;           /* [workers] slices of the buffer */
    int *own_count, *own_at;   /* [workers] where the workers' terms of the own slice go */
    const void **term;         /* [workers] */
    unsigned char *values;     /* [workers, own slice] */
} terms;

static int slice_of(const pli_transport *t, const pli_coll *coll, int32_t worker) {
    return (int)(pli_slice_first(coll->n, worker + 1, t->workers) - pli_slice_first(coll->n, worker, t->workers));
}

void *pli_mpi_terms(const pli_transport *t, const pli_coll *coll) {
    size_t w = (size_t)t->workers, own = (size_t)slice_of(t, coll, t->rank) * pli_type_bytes(coll->type);
    size_t head = (sizeof(terms) + w * sizeof(void *) + 4 * w * sizeof(int) + 63) / 64 * 64;
    terms *in = pli_aligned(head + w * own);
    if (in == NULL) return NULL;
    in->term = (const void **)(in + 1);
    in->count = (int *)(in->term + w);
    in->at = in->count + w;
    in->own_count = in->at + w;
    in->own_at = in->own_count + w;
    in->values = (unsigned char *)in + head;
    for (int32_t r = 0; r < t->workers; r++) {
        in->count[r] = slice_of(t, coll, r);
        in->at[r] = (int)pli_slice_first(coll->n, r, t->workers);
        in->own_count[r] = slice_of(t, coll, t->rank);
        in->own_at[r] = r * in->own_count[r];
        in->term[r] = in->values + (size_t)r * own;
    }
    return in;
}

int pli_mpi_sum_exactly(pli_transport *t, const pli_coll *coll, void *memory) {
    const terms *in = memory;
    int64_t      own = in->count[t->rank];
    void        *out = (unsigned char *)coll->buf + (size_t)in->at[t->rank] * pli_type_bytes(coll->type);
    MPI_Datatype type = types[coll->type];
    int          code =
        MPI_Alltoallv(coll->buf, in->count, in->at, type, in->values, in->own_count, in->own_at, type, t->direct_comm);
    if (code != MPI_SUCCESS) return code;
    if (coll->type == PLAIT_F64) pli_exact_sum_f64(t->workers, (const double *const *)in->term, own, out);
    else pli_exact_sum_f32(t->workers, (const float *const *)in->term, own, out);
    return MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, coll->buf, in->count, in->at, type, t->direct_comm);
}

bool pli_mpi_takes(const pli_transport *t, const pli_coll *coll) {
    if (!coll->begun) return pli_mpi_goes_by_hall(t, coll) || pli_mpi_goes_directly(t, coll);
    return pli_mpi_can_sum(t, coll) && coll->form == NULL && pli_coll_buffer_bytes(coll) > DIRECT_BYTES;
}

plait_status pli_mpi_begin(pli_transport *t, pli_call *call, plait_error *err) {
    const pli_coll *coll = &call->coll;
    size_t          bytes = pli_coll_buffer_bytes(coll);
    if (pli_mpi_goes_by_hall(t, coll)) return PLAIT_OK; /* the wait does all of it */
    if (!coll->begun) return pli_mpi_begin_directly(t, call, err);
    native *sum = call->flight = pli_calloc(1, sizeof *sum);
    void   *copy = sum != NULL ? pli_malloc(bytes) : NULL;
    if (copy == NULL) {
        pli_free(sum);
        call->flight = NULL;
        return pli_fail(err, PLAIT_ENOMEM, "no memory for an allreduce of %zu bytes", bytes);
    }
    memcpy(copy, coll->buf, bytes);
    *sum = (native){ .call = call, .request = MPI_REQUEST_NULL, .copy = copy };
    native **at = &t->reducing;
    pli_mpi_lock(t);
    while (*at != NULL) at = &(*at)->next;
    *at = sum;
    pli_mpi_unlock(t);
    return PLAIT_OK;
}

/* If the cause is a death, the caller waits until it hears of it. */
static void fail(pli_transport *t, native *sum, int code) {
    sum->broken = pli_mpi_is_death(t, code);
    if (sum->broken) sum->request = MPI_REQUEST_NULL; /* MPI may still have a part of it: the copy stays */
    else pli_mpi_fail(t, PLAIT_ECOMM, code, "MPI_Iallreduce failed");
}

static void finish(pli_transport *t, native *sum, int code) {
    if (code != MPI_SUCCESS) {
        fail(t, sum, code);
        return;
    }
    if (sum->call != NULL) memcpy(sum->call->coll.buf, sum->copy, pli_coll_buffer_bytes(&sum->call->coll));
    atomic_store_explicit(&sum->done, true, memory_order_release);
    pli_world_ring(t->world, t->rank);
}

/* All workers have come to this call, and so have the threads that drive their MPI. */
static bool start(pli_transport *t, native *sum) {
    const pli_coll *coll = &sum->call->coll;
    pli_mpi_send_all(t); /* others may need these messages to see that all have come */
    int code = MPI_Iallreduce(MPI_IN_PLACE, sum->copy, (int)coll->n, types[coll->type], ops[coll->op], t->workers_comm,
                              &sum->request);
    if (code != MPI_SUCCESS) fail(t, sum, code);
    return code == MPI_SUCCESS;
}

static bool is_started(const native *sum) {
    return sum->broken || sum->request != MPI_REQUEST_NULL || atomic_load_explicit(&sum->done, memory_order_relaxed);
}

static bool have_met(const pli_call *call) { return pli_coll_is_done(&call->run) && call->run.error.code >= 0; }

bool pli_mpi_reduce(pli_transport *t) {
    bool any = false;
    for (native *sum = t->reducing; sum != NULL && !t->failed; sum = sum->next) {
        if (!is_started(sum)) {
            if (t->gave_up || !have_met(sum->call) || !start(t, sum)) break; /* then no later one may start either */
            any = true;
        }
        if (sum->request == MPI_REQUEST_NULL) continue; /* done */
        int done = 0, code = MPI_Test(&sum->request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS || done) {
            finish(t, sum, code);
            any = true;
        }
    }
    return any;
}

static bool is_over(void *arg) {
    const pli_call *call = arg;
    const native   *sum = call->flight;
    plait_error     why;
    return atomic_load_explicit(&sum->done, memory_order_acquire) ||
           (pli_coll_is_done(&call->run) && call->run.error.code < 0) ||
           pli_world_dead_below(call->comm->world, call->comm->world->place.workers, &why) >= 0 ||
           atomic_load(&call->comm->world->transport->gave_up);
}

/* Takes the sum from the driver; a sum that MPI still has is left to the driver. */
static bool land(pli_transport *t, pli_call *call) {
    native *sum = call->flight;
    pli_mpi_lock(t);
    bool done = atomic_load_explicit(&sum->done, memory_order_relaxed);
    if (done || !is_started(sum)) {
        native **at = &t->reducing;
        while (*at != sum) at = &(*at)->next;
        *at = sum->next;
        pli_free(sum->copy);
        pli_free(sum);
    } else {
        sum->call = NULL;
    }
    call->flight = NULL;
    if (!done) atomic_store(&t->gave_up, true);
    pli_mpi_unlock(t);
    return done;
}

plait_status pli_mpi_wait(pli_transport *t, pli_call *call, plait_error *err) {
    if (pli_mpi_goes_by_hall(t, &call->coll)) return pli_mpi_call_in_hall(t, call, err);
    if (!call->coll.begun) return pli_mpi_wait_directly(t, call, err);
    pli_reason   reason = { .tell = pli_comm_tell_call, .show = pli_comm_show_call, .arg = call };
    plait_status status = pli_comm_wait(call->comm, is_over, call, &reason, err);
    if (land(t, call)) return PLAIT_OK;
    if (status < 0) return status;
    if (pli_world_dead_below(t->world, t->workers, err) >= 0) return err->code;
    *err = call->run.error;
    return err->code < 0 ? err->code
                         : pli_fail(err, PLAIT_ECOMM, "an earlier allreduce was given up, so no further one can run");
}

void pli_mpi_drop(pli_transport *t, pli_call *call) { (void)land(t, call); }

bool pli_mpi_is_reducing(pli_transport *t) {
    pli_mpi_lock(t);
    bool any = false;
    for (const native *sum = t->reducing; sum != NULL; sum = sum->next) any = any || sum->request != MPI_REQUEST_NULL;
    pli_mpi_unlock(t);
    return any && !t->failed;
}

bool pli_mpi_end_reducing(pli_transport *t) {
    native **at = &t->reducing;
    while (*at != NULL) {
        native *sum = *at;
        if (sum->broken || sum->request != MPI_REQUEST_NULL) {
            at = &sum->next;
            continue;
        }
        *at = sum->next;
        pli_free(sum->copy);
        pli_free(sum);
    }
    return t->reducing == NULL;
}
