#include "comm/threads/threads.h"

#include <string.h>

/* Far above any machine's cores. Beyond it the first meeting alone takes minutes, and the stacks tens of gigabytes. */
enum { THREADS_MAX = 1024 };

static void close_threads(pli_transport **transport, bool all_ended) {
    (void)all_ended;
    pli_transport *t = *transport;
    *transport = NULL;
    if (t == NULL) return;
    pthread_mutex_destroy(&t->finding_lock);
    for (int32_t r = 0; r < t->workers; r++) pli_free(t->seat[r].term);
    pli_free(t->seat);
    pli_free(t);
}

static plait_status open_threads(const plait_comm_opts *opts, pli_world *world, pli_place *place, pli_transport **out,
                                 plait_error *err) {
    place->workers = opts->workers > 0 ? opts->workers : 1;
    place->servers = opts->servers;
    place->first = 0;
    place->count = place->workers + place->servers;
    if (place->count > THREADS_MAX)
        return pli_fail(err, PLAIT_EREFUSED,
                        "%d ranks as threads of one process are refused: there may be at most %d; nearest is "
                        "--transport sim, or mpi on several machines",
                        place->count, (int)THREADS_MAX);
    place->ranks_on_host = place->count;
    pli_host_name(place->host);
    pli_transport *t = pli_aligned(sizeof *t);
    pli_seat      *seat = pli_aligned((size_t)place->workers * sizeof *seat);
    if (t == NULL || seat == NULL) {
        pli_free(t);
        pli_free(seat);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %d workers", place->workers);
    }
    memset(t, 0, sizeof *t);
    memset(seat, 0, (size_t)place->workers * sizeof *seat);
    t->workers = place->workers;
    t->seat = seat;
    t->world = world;
    pthread_mutex_init(&t->finding_lock, NULL);
    *out = t;
    return PLAIT_OK;
}

const pli_transport_ops pli_threads_ops = {
    .abi = PLI_TRANSPORT_ABI,
    .name = "threads",
    .shares_memory = true,
    .open = open_threads,
    .takes = pli_threads_takes,
    .begin = pli_threads_begin,
    .wait = pli_threads_wait,
    .close = close_threads,
};
