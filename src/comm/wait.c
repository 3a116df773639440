/* Waiting: an event count on a futex. A waiter reads the bell, looks, and sleeps only while the bell still has the
 * value that it read; a thread that changes something rings after the change. No wake-up is lost: either the
 * waiter's look sees the change, or its sleep sees the rung bell. sleepers saves the ringer a system call. bell,
 * sleepers and futex are sequentially consistent: the waiter counts itself before it compares, the ringer rings
 * before it looks for sleepers. */
#include <sched.h>
#include <stdio.h>

#include "comm/rounds.h"
#include "comm/world.h"

#ifdef PLI_TESTING /* see world.h */
#define SHAKE() pli_comm_shake()
#else
#define SHAKE() ((void)0)
#endif

enum { SPIN_NS = 5000, GLANCE_NS = 500, YIELD_NS = 50000, NAP_MIN_NS = 10000, NAP_MAX_NS = 200000 };

#ifdef PLI_TESTING
_Atomic bool pli_comm_shaken;
void pli_comm_shake(void) {
    if (!atomic_load_explicit(&pli_comm_shaken, memory_order_relaxed)) return;
    _Atomic uint32_t nobody_rings = 0;
    if (pli_now_ns() % 8 == 0) pli_futex_wait(&nobody_rings, 0, 100000); /* some pauses are long, most are short */
    else sched_yield();
}
#endif

void pli_comm_ring_since(plait_comm *comm, uint64_t cause_ns) {
    atomic_store_explicit(&comm->cause_ns, cause_ns, memory_order_relaxed);
    pli_comm_ring(comm);
}

void pli_comm_ring(plait_comm *comm) {
    atomic_fetch_add(&comm->bell, 1);
    SHAKE();
    const pli_world *world = comm->world;
    if (world->ops->ring != NULL) world->ops->ring(world->transport, comm->rank);
    else if (atomic_load(&comm->sleepers) != 0) pli_futex_wake(&comm->bell, INT32_MAX);
}

static void set_reason(plait_comm *comm, const pli_reason *reason, uint64_t since_ns) {
    pthread_mutex_lock(&comm->reason_lock);
    comm->reason = reason;
    comm->waits_at = comm->site;
    comm->waits_since_ns = since_ns;
    if (reason != NULL) comm->waits++;
    pthread_mutex_unlock(&comm->reason_lock);
}

void pli_comm_awaits(plait_comm *comm, const pli_reason *reason) {
    set_reason(comm, reason, reason != NULL ? pli_world_now(comm->world) : 0);
}

void pli_comm_tell(const pli_reason *reason, char *text, size_t bytes) {
    text[0] = '\0';
    if (reason != NULL && reason->tell != NULL) reason->tell(reason->arg, text, bytes);
    if (text[0] == '\0') snprintf(text, bytes, "something unnamed");
}

plait_status pli_comm_is_lost(plait_comm *comm, const pli_reason *reason, plait_error *err) {
    const plait_error *why = NULL;
    if (atomic_load_explicit(&comm->failed, memory_order_acquire)) {
        why = &comm->failed_why;
    } else if (atomic_load_explicit(&comm->members->lost, memory_order_acquire)) {
        why = &comm->members->lost_why;
    }
    if (why == NULL) return PLAIT_OK;
    char what[256];
    if (err == NULL) return why->code;
    if (reason == NULL) {
        *err = *why;
        return why->code;
    }
    pli_comm_tell(reason, what, sizeof what);
    pli_fail(err, why->code, "%.320s (while waiting for %.150s)", why->text, what);
    err->rank = why->rank;
    return why->code;
}

static plait_status expired(plait_comm *comm, const pli_reason *reason, plait_error *err) {
    char what[320];
    pli_comm_tell(reason, what, sizeof what);
    plait_error mine;
    plait_status status = pli_fail(&mine, PLAIT_ETIMEOUT, "rank %d waited %.3g s%s for %s", comm->rank,
                                   (double)comm->world->timeout_ns * 1e-9,
                                   comm->world->ops->now != NULL ? " of simulated time" : "", what);
    mine.rank = comm->rank;
    pli_log(comm->world->log, PLAIT_LOG_ERROR, comm->rank, "comm", "%s", mine.text);
    if (err != NULL) *err = mine;
    return status;
}

/* Has the doctor found that this wait cannot end? */
static plait_status is_doomed(plait_comm *comm, plait_error *err) {
    if (atomic_load_explicit(&comm->doomed, memory_order_acquire) != comm->waits) return PLAIT_OK;
    pthread_mutex_lock(&comm->failed_lock);
    plait_status status = comm->doomed_why.code;
    if (err != NULL) *err = comm->doomed_why;
    pthread_mutex_unlock(&comm->failed_lock);
    return status;
}

/* For how long a rank looks before it gives way: not at all if there are more ranks than cores, and almost not at all
 * if its last look was in vain. */
static uint64_t look_ns(const plait_comm *comm) {
    return !comm->world->may_spin ? 0 : comm->spun_in_vain ? GLANCE_NS : SPIN_NS;
}

/* Looks at the bell for a moment, and then gives its core to other ranks, YIELD_NS in all; true: it has rung. So ranks
 * that share a core take turns without a system call that wakes a thread; such a call costs more than a small clock's
 * work if it must start an idle core. */
static bool spin(plait_comm *comm, uint32_t bell, uint64_t start_ns) {
    const uint64_t own_ns = look_ns(comm);
    for (uint64_t now_ns = start_ns; now_ns - start_ns < YIELD_NS; now_ns = pli_now_ns()) {
        if (now_ns - start_ns >= own_ns) sched_yield();
        for (int i = 0; i < 16; i++) {
            if (atomic_load_explicit(&comm->bell, memory_order_acquire) != bell) {
                comm->spun_in_vain = now_ns - start_ns > own_ns;
                return true;
            }
            pli_relax();
        }
    }
    comm->spun_in_vain = true;
    return false;
}

/* Sleeps until the bell rings, or until_ns. */
static void rest(plait_comm *comm, uint32_t bell, uint64_t now_ns, uint64_t until_ns, uint64_t nap_ns) {
    pli_world *world = comm->world;
    if (world->ops->sleep != NULL) {
        world->ops->sleep(world->transport, comm, bell, until_ns);
        return;
    }
    uint64_t sleep_ns = until_ns == PLI_NEVER ? 3600000000000u : until_ns > now_ns ? until_ns - now_ns : 0;
    if (sleep_ns > nap_ns) sleep_ns = nap_ns;
    if (sleep_ns > 0 && world->ops->nap != NULL && world->ops->nap(world->transport, sleep_ns)) return;
    SHAKE();
    atomic_fetch_add(&comm->sleepers, 1);
    if (sleep_ns > 0 && atomic_load(&comm->bell) == bell) pli_futex_wait(&comm->bell, bell, sleep_ns);
    atomic_fetch_sub(&comm->sleepers, 1);
}

/* For how long a transport that must be asked has had nothing to do. */
typedef struct idleness {
    uint64_t since_ns; /* 0: it has had something */
    int32_t  naps;
} idleness;

/* For a transport that must be asked: spin, yield, then naps that grow. true: something has moved, look again. */
static bool lend_time(plait_comm *comm, uint32_t bell, idleness *idle, uint64_t *nap_ns_out) {
    const pli_world *world = comm->world;
    *nap_ns_out = PLI_NEVER;
    if (world->ops->progress == NULL || world->ops->sleep != NULL) return false;
    uint64_t now_ns = pli_now_ns();
    if (idle->since_ns == 0) *idle = (idleness){ .since_ns = now_ns };
    do {
        if (world->ops->progress(world->transport) || atomic_load(&comm->bell) != bell) {
            idle->since_ns = 0;
            return true;
        }
        now_ns = pli_now_ns();
    } while (now_ns - idle->since_ns < SPIN_NS);
    if (now_ns - idle->since_ns < YIELD_NS) {
        sched_yield();
        return true;
    }
    uint64_t nap = (uint64_t)NAP_MIN_NS << (idle->naps < 6 ? idle->naps++ : 6);
    *nap_ns_out = nap < NAP_MAX_NS ? nap : NAP_MAX_NS;
    return false;
}

/* Accounts for a wait that is over. Until the cause of its end began, another rank was late; from then on messages
 * were on their way (the wait state "late sender" of Wolf, Mohr: "Automatic Performance Analysis of Hybrid
 * MPI/OpenMP Applications", 2003, followed back along the messages that set off each other). */
static void note_wait(plait_comm *comm, uint64_t start_ns, uint64_t now_ns) {
    uint64_t cause_ns = atomic_load_explicit(&comm->cause_ns, memory_order_relaxed);
    if (cause_ns < start_ns) cause_ns = start_ns;
    if (cause_ns > now_ns) cause_ns = now_ns;
    atomic_fetch_add_explicit(&comm->waited_ns, now_ns - start_ns, memory_order_relaxed);
    pli_tally(&comm->in_flight_ns, now_ns - cause_ns);
    if (comm->depth == 0) pli_tally(&comm->in_calls_ns, now_ns - start_ns);
}

/* Hands the wait to the trace, with what it was for. */
static void tell_span(const plait_comm *comm, const char *why, uint64_t start_ns, uint64_t end_ns) {
    if (comm->spans != NULL && end_ns > start_ns)
        comm->spans->take(comm->spans->user, &(pli_span){ .kind = PLI_SPAN_WAIT,
                                                          .rank = comm->rank,
                                                          .name = "wait",
                                                          .detail = why,
                                                          .number = -1,
                                                          .begin_ns = start_ns,
                                                          .end_ns = end_ns });
}

/* sure: a lost job does not end the wait, and timeout_ns is its own. spun: spinning is not worth it, or is done. */
static plait_status wait(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason, bool sure,
                         bool spun, uint64_t timeout_ns, plait_error *err) {
    plait_status status = PLAIT_OK;
    bool         told = false;
    pli_world   *world = comm->world;
    idleness     idle = { 0 };
    uint64_t     start_ns = 0, deadline_ns = PLI_NEVER;
    char         why[256] = ""; /* for the trace: what held it up while it waited, which is gone when the wait is
                                 * over */
    pli_world_settle(world); /* computing does not count as waiting */
    for (;;) {
        uint32_t bell = atomic_load(&comm->bell);
        if (ready(arg)) break;
        if (!sure && (status = pli_comm_is_lost(comm, reason, err)) < 0) break;
        if (told && !sure && reason != NULL && (status = is_doomed(comm, err)) < 0) break;
        uint64_t now_ns = pli_world_now(world);
        if (start_ns == 0) {
            start_ns = now_ns;
            if (comm->spans != NULL) pli_comm_tell(reason, why, sizeof why);
            if (timeout_ns < PLI_NEVER - now_ns) deadline_ns = now_ns + timeout_ns;
        }
        if (now_ns >= deadline_ns) {
            status = sure ? PLAIT_ETIMEOUT : expired(comm, reason, err);
            break;
        }
        if (!spun) {
            spun = true;
            if (spin(comm, bell, now_ns)) continue;
        }
        uint64_t until_ns = pli_comm_wakeups(comm, now_ns), nap_ns;
        if (lend_time(comm, bell, &idle, &nap_ns)) continue;
        if (!told) {
            told = true;
            set_reason(comm, reason, start_ns);
        }
        atomic_store(&comm->looked, bell);
        if (until_ns > deadline_ns) until_ns = deadline_ns;
        if (reason != NULL && reason->show != NULL) {
            uint64_t turn_ns = pli_doctor_turn(comm, start_ns, now_ns);
            if (until_ns > turn_ns) until_ns = turn_ns;
        }
        rest(comm, bell, now_ns, until_ns, nap_ns);
    }
    if (told) set_reason(comm, NULL, 0);
    if (start_ns == 0) return status;
    uint64_t end_ns = pli_world_now(world);
    note_wait(comm, start_ns, end_ns);
    tell_span(comm, why, start_ns, end_ns);
    return status;
}

/* Where a transport must be asked, or runs the ranks by itself, nobody rings meanwhile. */
static bool is_no_use_to_spin(const pli_world *world) {
    return world->ops->progress != NULL || world->ops->sleep != NULL;
}

plait_status pli_comm_wait(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason,
                           plait_error *err) {
    return wait(comm, ready, arg, reason, false, is_no_use_to_spin(comm->world), comm->world->timeout_ns, err);
}

plait_status pli_comm_wait_long(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason,
                                plait_error *err) {
    return wait(comm, ready, arg, reason, false, is_no_use_to_spin(comm->world), PLI_NEVER, err);
}

bool pli_comm_wait_sure(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason,
                        uint64_t timeout_ns) {
    return wait(comm, ready, arg, reason, true, is_no_use_to_spin(comm->world), timeout_ns, NULL) == PLAIT_OK;
}

/* Looks for a moment, and then gives way to the ranks that it waits for, which may have no core. If the last moment
 * was in vain, it gives way almost at once. */
static bool watch(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason) {
    char why[256];
    if (ready(arg)) return true;
    uint64_t start_ns = pli_now_ns(), now_ns = start_ns, spin_ns = look_ns(comm);
    bool     is = false;
    while (!is && now_ns - start_ns < YIELD_NS) {
        if (now_ns - start_ns >= spin_ns) sched_yield();
        for (int i = 0; !(is = ready(arg)) && i < 16; i++) pli_relax();
        now_ns = pli_now_ns();
    }
    comm->spun_in_vain = now_ns - start_ns > spin_ns;
    atomic_fetch_add_explicit(&comm->waited_ns, now_ns - start_ns, memory_order_relaxed); /* another rank was late */
    if (comm->depth == 0) pli_tally(&comm->in_calls_ns, now_ns - start_ns);
    if (comm->spans != NULL) {
        pli_comm_tell(reason, why, sizeof why);
        tell_span(comm, why, start_ns, now_ns);
    }
    return is;
}

plait_status pli_comm_watch(plait_comm *comm, _Atomic int32_t *resting, pli_ready_fn *ready, void *arg,
                            const pli_reason *reason, plait_error *err) {
    if (watch(comm, ready, arg, reason)) return PLAIT_OK;
    SHAKE();
    atomic_fetch_add(resting, 1); /* counted before the wait's first look; a thread that makes it ready reads it
                                   * afterwards */
    SHAKE();
    plait_status status = wait(comm, ready, arg, reason, false, true, comm->world->timeout_ns, err);
    atomic_fetch_sub(resting, 1);
    return status;
}
