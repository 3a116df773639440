/* Collectives of workers that are all on one host, in memory that they share; mpi.h has the idea.
 *
 * A call goes in rounds. In a round each worker puts its part into its own seat and comes to the first meeting; then it
 * takes what it needs from all seats. A small sum needs no more: every worker adds up everything. In a large sum worker
 * r adds up piece r and leaves it in its seat; after the second meeting every worker takes the other pieces from there.
 * No worker touches another's buffer, so a worker may give up at any time. Sums go in the order of ranks, as on
 * `threads`.
 *
 * Invariants:
 *   1. Before the second meeting of round r a worker puts its part of round r + 1 into its seat, so that it has work
 *   while others finish. There are 3 buffers: a worker that writes the part of r + 3 has met all at r + 2, and they
 *   came there after they were done with r.
 *   2. `in` counts arrivals at first, or at second, meetings. No worker comes to the next one before the last is
 *   complete, so the m-th is complete when in >= m * workers, and stays so. The last to arrive rings if a worker
 *   sleeps.
 *   3. Sleep and ring are an event count (comm/wait.c): `resting` is counted before the last look, and read after
 *   the arrival. */
#include <stdio.h>
#include <string.h>

#include "comm/mpi/mpi.h"
#include "tensor/exact.h"

enum {
    BUFFERS = 3,
    SEAT_BYTES = 256 << 10,
    SMALL_BYTES = 8 << 10,
    BLOCK_BYTES = 16 << 10,
    LINE_BYTES = 64,
    WORKERS_MAX = 1024
};
enum { FIRST = 0, SECOND = 1 };

struct pli_mpi_seat {
    _Alignas(LINE_BYTES) _Atomic uint64_t
        came; /* 2 r + 1: it has come to the first meeting of round r, 2 r + 2: to the second; release */
    pli_mpi_stamp stamp[BUFFERS];
    _Alignas(LINE_BYTES) unsigned char data[BUFFERS][SEAT_BYTES];
};

/* Lies in front of the seats. */
struct pli_mpi_porch {
    struct { _Alignas(LINE_BYTES) _Atomic uint64_t count; } in[2]; /* arrivals at first and at second meetings */
    _Alignas(LINE_BYTES) _Atomic int32_t resting;
    _Atomic uint32_t bell;
};

/* --- opening ------------------------------------------------------------------------------------------------------ */

static bool share_host(const pli_transport *t, const int32_t *host_of) {
    for (int32_t r = 1; r < t->workers; r++)
        if (host_of[r] != host_of[0]) return false;
    return t->workers > 1 && t->workers <= WORKERS_MAX;
}

static size_t hall_bytes(int32_t workers) {
    return sizeof(struct pli_mpi_porch) + (size_t)workers * sizeof(struct pli_mpi_seat);
}

/* The hall is opened only if all workers get the memory; otherwise calls go as between hosts. */
void pli_mpi_open_hall(pli_transport *t, const int32_t *host_of) {
    pli_hall *hall = &t->hall;
    if (t->workers_comm == MPI_COMM_NULL || !share_host(t, host_of)) return;
    pli_shared_ticket ticket = { 0 };
    int               fine, all_fine = 0;
    void             *memory = t->rank == 0 ? pli_shared_make(hall_bytes(t->workers), &ticket) : NULL;
    MPI_Bcast(&ticket, (int)sizeof ticket, MPI_BYTE, 0, t->workers_comm);
    if (t->rank != 0) memory = pli_shared_join(&ticket);
    hall->term = pli_calloc((size_t)t->workers, sizeof *hall->term);
    fine = memory != NULL && hall->term != NULL;
    MPI_Allreduce(&fine, &all_fine, 1, MPI_INT, MPI_MIN, t->workers_comm);
    if (t->rank == 0 && memory != NULL) pli_shared_settle(&ticket);
    hall->porch = memory;
    if (all_fine) {
        hall->seat = (struct pli_mpi_seat *)(hall->porch + 1);
        return;
    }
    pli_mpi_close_hall(t);
    pli_log(t->world->log, PLAIT_LOG_DEBUG, t->rank, "comm",
            "the workers share a host, but get no memory in common: collectives go through MPI");
}

void pli_mpi_close_hall(pli_transport *t) {
    pli_hall *hall = &t->hall;
    pli_shared_leave(hall->porch, hall_bytes(t->workers));
    pli_free(hall->term);
    *hall = (pli_hall){ 0 };
}

/* --- meetings ----------------------------------------------------------------------------------------------------- */

static void come(pli_transport *t, int sort) {
    pli_hall             *hall = &t->hall;
    struct pli_mpi_porch *porch = hall->porch;
    uint64_t              target = ++hall->meetings[sort] * (uint64_t)t->workers;
    hall->came[sort] = 2 * hall->meetings[FIRST] - (sort == FIRST);
    atomic_store_explicit(&hall->seat[t->rank].came, hall->came[sort], memory_order_release);
    if (atomic_fetch_add(&porch->in[sort].count, 1) + 1 < target || atomic_load(&porch->resting) == 0) return;
    atomic_fetch_add(&porch->bell, 1);
    pli_futex_wake_shared(&porch->bell, INT32_MAX);
}

static bool is_complete(const pli_transport *t) {
    const pli_hall *hall = &t->hall;
    return atomic_load(&hall->porch->in[hall->sort].count) >= hall->meetings[hall->sort] * (uint64_t)t->workers;
}

static bool has_come(const pli_transport *t, int32_t worker) {
    return atomic_load_explicit(&t->hall.seat[worker].came, memory_order_acquire) >= t->hall.came[t->hall.sort];
}

/* A worker that has ended without coming to the meeting, or -1. */
static int32_t who_is_gone(const pli_transport *t) {
    if (atomic_load(&t->world->members->n_events) == 0) return -1;
    for (int32_t r = 0; r < t->workers; r++)
        if (pli_world_has_ended(t->world, r) && !has_come(t, r)) return r;
    return -1;
}

static bool have_met(void *arg) { return is_complete(arg) || who_is_gone(arg) >= 0; }

bool pli_mpi_nap(pli_transport *t, uint64_t ns) {
    const pli_hall *hall = &t->hall;
    if (hall->call == NULL) return false;
    uint32_t bell = atomic_load(&hall->porch->bell);
    if (!is_complete(t)) pli_futex_wait_shared(&hall->porch->bell, bell, ns);
    return true;
}

static int32_t who_is_late(const pli_transport *t) {
    int32_t late = 0;
    while (late < t->workers && has_come(t, late)) late++;
    return late < t->workers ? late : -1;
}

static void tell_meeting(const void *arg, char *text, size_t bytes) {
    const pli_transport *t = arg;
    char                 what[96];
    int32_t              late = who_is_late(t);
    pli_coll_tell(&t->hall.call->coll, what, sizeof what);
    if (late >= 0) snprintf(text, bytes, "%s, held up by rank %d", what, late);
    else snprintf(text, bytes, "%s", what);
}

static void show_meeting(const void *arg, pli_wait *wait) {
    const pli_transport *t = arg;
    pli_comm_show_call(t->hall.call, wait);
    wait->peer = who_is_late(t);
    wait->joins = true;
}

static plait_status meet(pli_transport *t, int sort, plait_error *err) {
    pli_hall        *hall = &t->hall;
    const pli_reason reason = { .tell = tell_meeting, .show = show_meeting, .arg = t };
    hall->sort = sort;
    plait_status status = pli_comm_watch(hall->call->comm, &hall->porch->resting, have_met, t, &reason, err);
    if (is_complete(t)) return PLAIT_OK;
    if (status < 0) return status;
    return pli_world_missed(t->world, &hall->call->coll, who_is_gone(t), err);
}

/* --- the data ----------------------------------------------------------------------------------------------------- */

/* How a call is cut. In each round, as many elements are taken of each slice of the vector, or as many bytes of each
 * worker's part or of the whole. */
typedef struct plan {
    pli_coll coll;
    size_t   size;   /* bytes of an element; 1 for gathers and broadcasts */
    int64_t  rounds, piece;
    bool     sliced; /* worker r adds up slice r */
    int      buffer; /* buffer of the first round */
} plan;

static int64_t largest_part(const plan *p, int32_t workers) {
    const pli_coll *coll = &p->coll;
    int64_t         largest = coll->n;
    if (p->sliced) return pli_slice_first(coll->n, 1, workers);
    for (int32_t r = 0; coll->starts != NULL && r < workers; r++) {
        int64_t part = (int64_t)(coll->starts[r + 1] - coll->starts[r]);
        largest = r == 0 || part > largest ? part : largest;
    }
    return largest;
}

static plan make_plan(const pli_transport *t, const pli_coll *coll) {
    bool sums = pli_coll_reduces(coll);
    plan p = { .coll = *coll,
               .size = sums ? pli_type_bytes(coll->type) : 1,
               .buffer = (int)(t->hall.meetings[FIRST] % BUFFERS) };
    p.sliced = coll->kind == PLI_REDUCE_SCATTER || (sums && pli_coll_buffer_bytes(coll) > SMALL_BYTES);
    int64_t part = largest_part(&p, t->workers), room = SEAT_BYTES;
    if (p.sliced) room = SEAT_BYTES / t->workers / LINE_BYTES * LINE_BYTES;
    p.piece = room / (int64_t)p.size;
    p.rounds = part > p.piece ? (part + p.piece - 1) / p.piece : 1;
    p.piece = (part + p.rounds - 1) / p.rounds;
    return p;
}

/* The part for one round of something that begins at `first` and has n elements. */
typedef struct piece {
    int64_t first, n;
} piece;

static piece piece_of(const plan *p, int64_t round, int64_t first, int64_t n) {
    int64_t at = round * p->piece;
    return at >= n ? (piece){ first, 0 } : (piece){ first + at, n - at < p->piece ? n - at : p->piece };
}

static piece slice_piece(const pli_transport *t, const plan *p, int64_t round, int32_t slice) {
    int64_t first = pli_slice_first(p->coll.n, slice, t->workers);
    return piece_of(p, round, first, pli_slice_first(p->coll.n, slice + 1, t->workers) - first);
}

/* What worker r contributes to a gather or broadcast. */
static piece given_piece(const plan *p, int64_t round, int32_t worker) {
    const pli_coll *coll = &p->coll;
    if (coll->kind == PLI_BROADCAST) return piece_of(p, round, 0, coll->root == worker ? coll->n : 0);
    if (coll->starts == NULL) return piece_of(p, round, worker * coll->n, coll->n);
    return piece_of(p, round, (int64_t)coll->starts[worker],
                    (int64_t)(coll->starts[worker + 1] - coll->starts[worker]));
}

static unsigned char *place(const pli_transport *t, const plan *p, int64_t round, int32_t worker) {
    return t->hall.seat[worker].data[(p->buffer + round) % BUFFERS];
}

static unsigned char *slice_place(const pli_transport *t, const plan *p, int64_t round, int32_t worker, int32_t slice) {
    size_t stride = ((size_t)p->piece * p->size + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    return place(t, p, round, worker) + (size_t)slice * stride;
}

static unsigned char *own(const plan *p, piece part) {
    return (unsigned char *)p->coll.buf + (size_t)part.first * p->size;
}

static void lay_out(const pli_transport *t, const plan *p, int64_t round) {
    if (p->sliced) {
        for (int32_t s = 0; s < t->workers; s++) {
            piece part = slice_piece(t, p, round, s);
            if (s != t->rank && part.n > 0)
                memcpy(slice_place(t, p, round, t->rank, s), own(p, part), (size_t)part.n * p->size);
        }
        return;
    }
    piece part = pli_coll_reduces(&p->coll) ? (piece){ 0, p->coll.n } : given_piece(p, round, t->rank);
    if (part.n > 0) memcpy(place(t, p, round, t->rank), own(p, part), (size_t)part.n * p->size);
}

/* out [n] = the sum of all workers' terms, none of which lies in out; block by block, so that it stays in the cache. */
static void add_up(const pli_transport *t, const plan *p, int64_t n, unsigned char *out) {
    const pli_coll *coll = &p->coll;
    const void    **term = t->hall.term;
    int64_t         block = BLOCK_BYTES / (int64_t)p->size;
    if (coll->op == PLAIT_SUM_EXACT && coll->type == PLAIT_F64)
        pli_exact_sum_f64(t->workers, (const double *const *)term, n, (double *)out);
    else if (coll->op == PLAIT_SUM_EXACT) pli_exact_sum_f32(t->workers, (const float *const *)term, n, (float *)out);
    else
        for (int64_t i = 0; i < n; i += block) {
            size_t         at = (size_t)i * p->size;
            int64_t        m = n - i < block ? n - i : block;
            unsigned char *sum = out + at;
            pli_reduce(sum, (const unsigned char *)term[0] + at, (const unsigned char *)term[1] + at, m, coll->type,
                       coll->op);
            for (int32_t r = 2; r < t->workers; r++)
                pli_reduce(sum, sum, (const unsigned char *)term[r] + at, m, coll->type, coll->op);
        }
}

static void add_slice(const pli_transport *t, const plan *p, int64_t round) {
    piece          part = slice_piece(t, p, round, t->rank);
    unsigned char *sum = slice_place(t, p, round, t->rank, t->rank);
    if (part.n == 0) return;
    for (int32_t r = 0; r < t->workers; r++) t->hall.term[r] = slice_place(t, p, round, r, t->rank);
    t->hall.term[t->rank] = own(p, part);
    add_up(t, p, part.n, sum);
    memcpy(own(p, part), sum, (size_t)part.n * p->size);
}

/* Called after the first meeting: takes what this worker needs from all seats. */
static void help_oneself(const pli_transport *t, const plan *p, int64_t round) {
    if (p->sliced) {
        add_slice(t, p, round);
        return;
    }
    if (pli_coll_reduces(&p->coll)) {
        for (int32_t r = 0; r < t->workers; r++) t->hall.term[r] = place(t, p, round, r);
        if (p->coll.n > 0) add_up(t, p, p->coll.n, p->coll.buf);
        return;
    }
    for (int32_t r = 0; p->coll.n > 0 && r < t->workers; r++) {
        piece part = given_piece(p, round, r);
        if (r != t->rank && part.n > 0) memcpy(own(p, part), place(t, p, round, r), (size_t)part.n);
    }
}

/* Called after the second meeting: takes the other workers' sums. */
static void take_sums(const pli_transport *t, const plan *p, int64_t round) {
    for (int32_t s = 0; s < t->workers; s++) {
        piece part = slice_piece(t, p, round, s);
        if (s != t->rank && part.n > 0) memcpy(own(p, part), slice_place(t, p, round, s, s), (size_t)part.n * p->size);
    }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static plait_status check_stamps(const pli_transport *t, const plan *p, plait_error *err) {
    const pli_mpi_stamp *first = &t->hall.seat[0].stamp[p->buffer];
    for (int32_t r = 1; r < t->workers; r++) {
        const pli_mpi_stamp *stamp = &t->hall.seat[r].stamp[p->buffer];
        if (memcmp(stamp, first, sizeof *stamp) == 0) continue;
        char     his[96], zeros[96];
        pli_coll a = pli_mpi_stamped(stamp), b = pli_mpi_stamped(first);
        pli_coll_tell(&a, his, sizeof his);
        pli_coll_tell(&b, zeros, sizeof zeros);
        pli_fail(err, PLAIT_EMISMATCH, "collective %llu: rank %d called %s where rank 0 called %s",
                 (unsigned long long)first->number, r, his, zeros);
        err->rank = r;
        return err->code;
    }
    return PLAIT_OK;
}

static void lay_out_and_come(pli_transport *t, const plan *p, int64_t round) {
    lay_out(t, p, round);
    come(t, FIRST);
}

static plait_status go_through(pli_transport *t, const plan *p, plait_error *err) {
    bool twice = p->sliced && p->coll.kind == PLI_ALLREDUCE;
    t->hall.seat[t->rank].stamp[p->buffer] = pli_mpi_stamp_of(t->hall.call);
    lay_out_and_come(t, p, 0);
    for (int64_t round = 0; round < p->rounds; round++) {
        PLI_TRY(meet(t, FIRST, err));
        if (round == 0) PLI_TRY(check_stamps(t, p, err));
        help_oneself(t, p, round);
        if (twice) come(t, SECOND);
        if (round + 1 < p->rounds) lay_out_and_come(t, p, round + 1);
        if (!twice) continue;
        PLI_TRY(meet(t, SECOND, err));
        take_sums(t, p, round);
    }
    return PLAIT_OK;
}

bool pli_mpi_goes_by_hall(const pli_transport *t, const pli_coll *coll) {
    return t->hall.seat != NULL && !coll->begun && coll->kind != PLI_PIECES;
}

plait_status pli_mpi_call_in_hall(pli_transport *t, pli_call *call, plait_error *err) {
    pli_hall  *hall = &t->hall;
    const plan p = make_plan(t, &call->coll);
    if (hall->error.code < 0) { /* a worker that has left one call half way cannot take part in another */
        *err = hall->error;
        return err->code;
    }
    call->run.number = UINT64_MAX; /* no number: a failure here fails no call that was begun before */
    hall->call = call;
    plait_status status = go_through(t, &p, err);
    hall->call = NULL;
    if (status < 0) hall->error = *err;
    return status;
}
