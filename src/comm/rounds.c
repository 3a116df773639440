/* The doctor's rounds. A first round looks at ranks along the graph, from those here that wait. If some of them seem
 * stuck, rounds with counts follow until two looks in a row prove it (doctor.h), or something moves.
 *
 * Costs: nothing while nobody waits for longer than LOOK_AFTER_NS; then, each LOOK_EVERY_NS, a look at the ranks of
 * the process, and one short message each way for every rank elsewhere that is waited for. The thread that drives
 * the transport there answers it, even while its rank computes, so silence means that the process, or the way to it,
 * is gone. (Under mpi every process has a thread for that. It cannot answer while all workers are within one large
 * MPI_Allreduce; but then they do not ask either.) Silence is reported, but ends nothing: a process that was frozen
 * may come back, and if it does not, the wait has a deadline. */
#include "comm/rounds_impl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOK_AFTER_NS  UINT64_C(250000000)
#define LOOK_EVERY_NS  UINT64_C(250000000)
#define PROOF_EVERY_NS UINT64_C(100000000)
#define SERVES_EVERY_NS UINT64_C(2000000000) /* while only servers wait here, for the end of the job */
#define PATIENCE_NS    UINT64_C(400000000)   /* for answers within a round                         */
#define POLL_NS        UINT64_C(5000000)
#define SILENT_NS      UINT64_C(8000000000)
enum { ASK_ALL_MAX = 64 };

#ifdef PLI_TESTING /* tests shorten the times, so that healthy runs are looked at often and at any moment */
_Atomic uint64_t pli_doctor_haste = 1, pli_doctor_rounds, pli_doctor_doubts;
#define HASTE (pli_doctor_haste)
#define COUNT(counter) ((void)(counter)++)
#else
#define HASTE UINT64_C(1)
#define COUNT(counter) ((void)0)
#endif

/* --- a round ------------------------------------------------------------------------------------------------------ */

static void want(pli_world *world, int32_t rank) {
    if (rank >= 0 && rank < world->size) world->doctor->wanted[rank] = true;
}

static void want_those(pli_world *world, int32_t first, int32_t n) {
    for (int32_t i = 0; i < n; i++) want(world, first + i);
}

/* Asks for looks at the ranks that a wait points to. A transport may know only one of the workers that a collective
 * lacks. If there are too many to ask all, only that one is asked, and its own wait points on. */
static void want_targets(pli_world *world, const pli_wait *on) {
    int32_t workers = world->place.workers;
    want(world, on->peer);
    switch ((pli_wait_kind)on->kind) {
    case PLI_WAIT_RECV:
        if (on->peer < 0) want_those(world, 0, world->size);
        return;
    case PLI_WAIT_COLLECTIVE:
    case PLI_WAIT_WORKERS:
        if (workers <= ASK_ALL_MAX) want_those(world, 0, workers);
        return;
    case PLI_WAIT_TABLE:
        want_those(world, on->first_server, on->servers);
        if (on->any) want_those(world, 0, workers);
        return;
    case PLI_WAIT_OTHER:
    case PLI_WAIT_KINDS: return;
    }
}

/* Asks the ranks that were not asked yet in this round, and takes the answers that have come. true: some answers are
 * still to come. */
static bool gather(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    bool        more = true, missing = false;
    pthread_mutex_lock(&d->mail_lock);
    while (more) {
        more = missing = false;
        for (int32_t r = 0; r < world->size; r++) {
            if (!d->wanted[r] || d->now[r].state != PLI_LOOK_NONE) continue;
            if (pli_world_has_ended(world, r)) {
                d->now[r] = (pli_look){ .state = PLI_LOOK_ENDED, .begun = UINT64_MAX, .joined = UINT64_MAX };
                continue; /* its machines know how far it got */
            }
            if (!d->asked[r]) {
                d->asked[r] = true;
                if (d->asked_since_ns[r] == 0) d->asked_since_ns[r] = now_ns;
                pli_doctor_ask(world, r, d->number, d->proving);
            }
            const pli_doctor_mail *m = &d->mail[r];
            if (m->round < d->number) {
                missing = true;
                continue;
            }
            d->now[r] = m->look;
            d->asked_since_ns[r] = 0;
            if (m->look.state == PLI_LOOK_WAITS) want_targets(world, &m->look.on);
            more = true;
        }
    }
    pthread_mutex_unlock(&d->mail_lock);
    return missing;
}

static void look_here(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    for (int32_t i = 0; i < world->place.count; i++) {
        pli_look *look = &d->now[world->place.first + i];
        pli_doctor_look_at(&world->local[i], now_ns, look);
        want_targets(world, &look->on);
    }
}

static void begin_round(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    size_t      size = (size_t)world->size;
    memset(d->now, 0, size * sizeof *d->now);
    memset(d->wanted, 0, size * sizeof *d->wanted);
    memset(d->asked, 0, size * sizeof *d->asked);
    pthread_mutex_lock(&d->mail_lock);
    d->number = ++d->rounds;
    pthread_mutex_unlock(&d->mail_lock);
    d->until_ns = now_ns + PATIENCE_NS;
    d->asking = true;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Is no message on its way between the ranks in question? These are the stuck ranks, and also the others that were
 * asked, since they may go on when such a message arrives. */
static bool nothing_on_its_way(const pli_world *world) {
    pli_doctor *d = world->doctor;
    bool        quiet = true;
    size_t      size = (size_t)world->size;
    if (world->place.resend_after_ns > 0) {
        for (size_t r = 0; quiet && r < size; r++) quiet = d->now[r].state == PLI_LOOK_NONE || !d->now[r].owes;
        return quiet;
    }
    for (size_t i = 0; d->flying != NULL && quiet && i < size * size; i++)
        quiet = (!d->stuck[i / size] && !d->stuck[i % size]) || atomic_load(&d->flying[i]) == 0;
    if (d->mail == NULL) return quiet;
    pthread_mutex_lock(&d->mail_lock);
    for (int32_t a = 0; quiet && a < world->size; a++) {
        if (d->now[a].state != PLI_LOOK_WAITS && d->now[a].state != PLI_LOOK_RUNS) continue;
        for (int32_t b = 0; quiet && b < world->size; b++) {
            bool here_a = pli_world_is_local(world, a), here_b = pli_world_is_local(world, b);
            if (a == b || (d->now[b].state != PLI_LOOK_WAITS && d->now[b].state != PLI_LOOK_RUNS)) continue;
            if ((!here_a && d->mail[a].counted_round < d->number) ||
                (!here_b && d->mail[b].counted_round < d->number)) {
                quiet = false;
                continue;
            }
            uint64_t sent = here_a ? atomic_load(&d->sent[b]) : d->mail[a].moved[b];
            uint64_t received = here_b ? atomic_load(&d->received[a]) : d->mail[b].moved[world->size + a];
            quiet = sent == received;
        }
    }
    pthread_mutex_unlock(&d->mail_lock);
    return quiet;
}

static bool is_proven(const pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    for (int32_t r = 0; r < ward->size; r++)
        if (d->stuck[r] && !pli_doctor_confirms(&d->before[r], &d->now[r])) return false;
    return nothing_on_its_way(world);
}

static void doom(plait_comm *comm, uint64_t wait, const plait_error *why) {
    pthread_mutex_lock(&comm->failed_lock);
    if (atomic_load_explicit(&comm->doomed, memory_order_relaxed) != wait) { /* if it is, the first cause stays */
        comm->doomed_why = *why;
        atomic_store_explicit(&comm->doomed, wait, memory_order_release);
    }
    pthread_mutex_unlock(&comm->failed_lock);
    pli_comm_ring(comm);
}

/* The first stuck rank, if it is here, logs for all what they wait for, since an error's text may be too short for
 * it. */
static void say_waits(const pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    int32_t           first = 0;
    while (first < ward->size && !d->stuck[first]) first++;
    if (first == ward->size || !pli_world_is_local(world, first)) return;
    for (int32_t r = first; r < ward->size; r++) {
        char text[480];
        if (!d->stuck[r]) continue;
        pli_doctor_tell(&ward->look[r], r, text, sizeof text);
        pli_log(world->log, PLAIT_LOG_ERROR, r, "comm", "%s, which never comes", text);
    }
}

static void sentence(pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    plait_error       why;
    say_waits(world, ward);
    for (int32_t i = 0; i < world->place.count; i++) {
        int32_t r = world->place.first + i;
        if (!d->stuck[r]) continue;
        pli_doctor_explain_stuck(ward, d->stuck, r, &why);
        doom(&world->local[i], ward->look[r].wait, &why);
    }
}

/* If two ranks make different calls at the same place, it is proof enough that both are still in them. */
static bool find_mismatches(pli_world *world, const pli_ward *ward) {
    const pli_doctor *d = world->doctor;
    bool              any = false;
    for (int32_t i = 0; i < world->place.count; i++) {
        int32_t r = world->place.first + i, other = pli_doctor_mismatch(ward, r);
        if (other < 0) continue;
        any = true;
        if (!d->proving || d->before[r].state != PLI_LOOK_WAITS || d->before[other].state != PLI_LOOK_WAITS ||
            d->before[r].wait != d->now[r].wait || d->before[other].wait != d->now[other].wait)
            continue;
        plait_error why;
        pli_doctor_explain_mismatch(ward, r, other, &why);
        doom(&world->local[i], ward->look[r].wait, &why);
    }
    return any;
}

/* Do the kept looks still hold for all ranks that seem stuck now? Then the proof goes on from them. */
static bool are_same(const pli_doctor *d, const pli_ward *ward) {
    for (int32_t r = 0; r < ward->size; r++)
        if (d->stuck[r] &&
            (!d->before[r].settled || d->before[r].state != PLI_LOOK_WAITS || d->before[r].wait != d->now[r].wait))
            return false;
    return true;
}

/* Writes "15:04:05", or "second 12.5" of a simulated time. */
static void tell_time(const pli_world *world, uint64_t now_ns, uint64_t at_ns, char *text, size_t bytes) {
    struct tm parts;
    time_t    at = time(NULL) - (time_t)((now_ns - at_ns) / 1000000000);
    if (world->ops->now != NULL || localtime_r(&at, &parts) == NULL || strftime(text, bytes, "%H:%M:%S", &parts) == 0)
        snprintf(text, bytes, "second %.1f", (double)at_ns * 1e-9);
}

/* The rank that reports which others are silent. If ranks are processes, it is this process's rank. In a simulated
 * cluster it is the first rank that waits, is not frozen, and hears most of the others, since a rank that is cut off
 * hears nobody. -1: none. */
static int32_t observer(const pli_world *world) {
    const pli_doctor *d = world->doctor;
    if (d->mail != NULL) return world->place.first;
    for (int32_t r = 0; world->ops->silent_since != NULL && r < world->size; r++) {
        int32_t silent = 0;
        if (d->now[r].state != PLI_LOOK_WAITS || world->ops->silent_since(world->transport, r, r) != 0) continue;
        for (int32_t o = 0; o < world->size; o++) silent += world->ops->silent_since(world->transport, r, o) != 0;
        if (2 * silent <= world->size) return r;
    }
    return -1;
}

/* 0: the rank is heard, or nobody has asked it. */
static uint64_t silent_since(const pli_world *world, int32_t me, int32_t rank) {
    const pli_doctor *d = world->doctor;
    if (d->mail != NULL) return d->asked_since_ns[rank];
    return d->wanted[rank] ? world->ops->silent_since(world->transport, me, rank) : 0;
}

static void tell_silence(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    int32_t     me = observer(world);
    for (int32_t r = 0; me >= 0 && r < world->size; r++) {
        uint64_t since_ns = silent_since(world, me, r);
        if (since_ns == 0 && d->mail == NULL) pli_doctor_tell_life(world, r);
        if (since_ns == 0 || now_ns - since_ns < SILENT_NS || pli_world_has_ended(world, r)) continue;
        if (atomic_exchange(&d->silent[r], true)) continue;
        char text[480], since[32];
        pli_doctor_tell(&d->now[me], me, text, sizeof text);
        tell_time(world, now_ns, since_ns, since, sizeof since);
        pli_log(world->log, PLAIT_LOG_ERROR, me, "comm", "rank %d: no sign of life since %s (%.1f s); %s", r, since,
                (double)(now_ns - since_ns) * 1e-9, text);
    }
}

/* Keeps the looks of this round as the first ones of a proof, unless those that are kept will do. same: all that seem
 * stuck now were in the same waits then. What a server has said of holders is as new as what had reached it. So the
 * first looks are sound if all messages had arrived in the round before them. */
static void keep_looks(pli_world *world, bool same) {
    pli_doctor *d = world->doctor;
    if (same && d->sound) return;
    d->sound = same && d->calm;
    d->calm = nothing_on_its_way(world);
    pli_look *kept = d->before;
    d->before = d->now;
    d->now = kept;
}

static void judge(pli_world *world, uint64_t now_ns) {
    pli_doctor *d = world->doctor;
    pli_ward    ward = { .look = d->now, .size = world->size, .workers = world->place.workers };
    bool        any = false;
    int32_t     n = pli_doctor_stuck(&ward, d->stuck);
    COUNT(pli_doctor_rounds);
    for (int32_t i = 0; i < world->place.count; i++) any |= d->stuck[world->place.first + i];
    any |= find_mismatches(world, &ward);
    tell_silence(world, now_ns);
    if (any && d->proving && d->sound && is_proven(world, &ward)) sentence(world, &ward);
    if (any) keep_looks(world, n > 0 && d->proving && are_same(d, &ward));
    if (any) COUNT(pli_doctor_doubts);
    d->proving = any;
}

static uint64_t pause_ns(const pli_world *world) {
    const pli_doctor *d = world->doctor;
    if (d->proving) return PROOF_EVERY_NS;
    for (int32_t i = 0; i < world->place.count; i++) {
        uint8_t kind = d->now[world->place.first + i].on.kind;
        if (kind != PLI_WAIT_WORKERS && kind != PLI_WAIT_OTHER) return LOOK_EVERY_NS;
    }
    return SERVES_EVERY_NS;
}

uint64_t pli_doctor_turn(plait_comm *comm, uint64_t start_ns, uint64_t now_ns) {
    pli_world  *world = comm->world;
    pli_doctor *d = world->doctor;
    uint64_t    next_ns = atomic_load_explicit(&d->next_ns, memory_order_relaxed);
    if (d->muted) return PLI_NEVER; /* the rank has ended and nobody waits for it; only its own thread sets this */
    if (now_ns < start_ns + LOOK_AFTER_NS / HASTE) return start_ns + LOOK_AFTER_NS / HASTE;
    if (now_ns < next_ns) return next_ns;
    if (pthread_mutex_trylock(&d->lock) != 0) return now_ns + POLL_NS / HASTE;
    if (!d->asking) begin_round(world, now_ns);
    look_here(world, now_ns);
    if (gather(world, now_ns) && now_ns < d->until_ns) {
        next_ns = now_ns + POLL_NS / HASTE;
    } else {
        d->asking = false;
        judge(world, now_ns);
        next_ns = now_ns + pause_ns(world) / HASTE;
    }
    atomic_store_explicit(&d->next_ns, next_ns, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
    return next_ns;
}
