/* A rank's figures: a row of its sheet that is written when somebody asks. See figures.h. */
#include "comm/figures.h"

#include <string.h>

#include "comm/world.h"

/* Words of the row. */
enum { LIVED = 1, WAIT, NETWORK, IN_FLIGHT, SENT, HAS_TOLD = SENT + PLI_SENT_KINDS, TOLD, WORDS = TOLD + PLI_TOLD };
_Static_assert(WORDS <= (int)PLI_SHEET_WORDS, "a row has room for the figures");

const char *const pli_sent_kinds[PLI_SENT_KINDS] = {
    "program", "sums", "to servers", "from servers", "gossip", "replicas", "stages", "locks", "lasting sums",
};
_Static_assert(PLI_SENT_KINDS == PLI_PORT_MAX - PLI_PORT_USER && PLI_PORT_AGREED == PLI_PORT_MAX - 1,
               "each port has its kind of bytes, in their order");

/* The wait that goes on, so far. */
static uint64_t waiting_ns(plait_comm *comm, uint64_t now_ns) {
    pthread_mutex_lock(&comm->reason_lock);
    const bool     waits = comm->reason != NULL && comm->waits_since_ns < now_ns;
    const uint64_t ns = waits ? now_ns - comm->waits_since_ns : 0;
    pthread_mutex_unlock(&comm->reason_lock);
    return ns;
}

static uint64_t load(const _Atomic uint64_t *figure) { return atomic_load_explicit(figure, memory_order_relaxed); }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* The counts are read one after the other while the rank goes on, so a difference may be short of 0 by a moment. */
static void count(plait_comm *comm, uint64_t word[PLI_SHEET_WORDS]) {
    const pli_world *world = comm->world;
    const uint64_t   now_ns = pli_world_now(world), in_calls = load(&comm->in_calls_ns);
    const uint64_t   waited = load(&comm->waited_ns), in_flight = load(&comm->in_flight_ns);
    const bool       known = world->place.count == world->size;
    const uint64_t   wait = known ? less(waited, in_flight) : waited;
    word[0] = PLI_SHEET_FIGURES;
    word[LIVED] = less(now_ns, load(&comm->begun_ns));
    word[WAIT] = wait + waiting_ns(comm, now_ns);
    word[NETWORK] = less(in_calls, wait);
    word[IN_FLIGHT] = known;
    for (int32_t k = 0; k < PLI_SENT_KINDS; k++) word[SENT + k] = load(&comm->sent[PLI_PORT_USER + k]);
    word[HAS_TOLD] = atomic_load_explicit(&comm->has_told, memory_order_acquire);
    for (int32_t i = 0; i < PLI_TOLD; i++) word[TOLD + i] = load(&comm->told[i]);
}

void pli_comm_tell_figures(plait_comm *comm, const double told[PLI_TOLD]) {
    for (int32_t i = 0; i < PLI_TOLD; i++) {
        uint64_t bits;
        memcpy(&bits, &told[i], sizeof bits);
        atomic_store_explicit(&comm->told[i], bits, memory_order_relaxed);
    }
    atomic_store_explicit(&comm->has_told, true, memory_order_release);
}

void pli_figures_show(plait_comm *comm) {
    uint64_t       word[PLI_SHEET_WORDS] = { 0 };
    pli_sheet_row *row = atomic_load_explicit(&comm->figures, memory_order_acquire), *none = NULL;
    count(comm, word);
    if (row != NULL) {
        for (int32_t i = 1; i < WORDS; i++) pli_sheet_set(row, i, (int64_t)word[i]);
        return;
    }
    row = pli_sheet_add(&comm->sheet, word);
    if (!atomic_compare_exchange_strong(&comm->figures, &none, row)) pli_sheet_free(row); /* another was faster */
}

static pli_figures read_figures(const uint64_t *word) {
    pli_figures f = { .heard = true, .in_flight = word[IN_FLIGHT] != 0, .lived_ns = word[LIVED],
                      .wait_ns = word[WAIT], .network_ns = word[NETWORK] };
    for (int32_t k = 0; k < PLI_SENT_KINDS; k++) f.sent[k] = word[SENT + k];
    f.has_told = word[HAS_TOLD] != 0;
    memcpy(f.told, &word[TOLD], sizeof f.told);
    return f;
}

plait_status pli_comm_figures(const plait_comm *comm, uint64_t timeout_ns, pli_figures **figures_out,
                              plait_error *err) {
    const int32_t   size = plait_comm_size(comm);
    pli_sheet_read *reads = NULL;
    pli_figures    *all = pli_calloc((size_t)size, sizeof *all);
    plait_status    status = all == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory for the figures of %d ranks", size)
                                         : pli_sheets_read(comm, timeout_ns, &reads, err);
    for (int32_t r = 0; status >= 0 && r < size; r++)
        for (int64_t i = 0; i < reads[r].n; i++)
            if (reads[r].row[i * PLI_SHEET_WORDS] == PLI_SHEET_FIGURES)
                all[r] = read_figures(reads[r].row + i * PLI_SHEET_WORDS);
    pli_sheets_free(&reads, size);
    if (status < 0) pli_free(all);
    else *figures_out = all;
    return status;
}
