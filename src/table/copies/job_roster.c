/* A worker leaves a job that runs, and joins it. roster.h has the idea. In simulated time the cluster's file may say
 * when (comm/cluster.h). */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "comm/cluster.h"
#include "table/copies/roster.h"
#include "table/shown.h"
#include "table/table.h"

bool pli_job_may_go(const plait_job *job, plait_error *err) {
    if (job->parts > 0 || job->agreed != NULL || job->client.n_used == 0 || job->layout.backup > 0) {
        pli_fail(err, PLAIT_EREFUSED,
                 "plait_job_leave with %d replicas is refused %s; nearest is to continue with empty clocks",
                 job->layout.replicas,
                 job->parts > 0        ? "where groups have tables: a group's members are fixed"
                 : job->agreed != NULL ? "under allreduce: its sums go on without the dead alone"
                 : job->client.n_used == 0
                     ? "in a job without tables: it has no clocks on servers"
                     : "with backup workers: who is in changes between two clocks that all end, and some do not");
        return false;
    }
    for (int64_t i = 0; i < job->client.tables; i++) {
        const pli_client_table *table = job->client.table[i];
        if (table->at_clock && (pli_policy_promises(&table->policy) & PLAIT_WHOLE_CLOCKS) != 0 &&
            !table->policy.ops->averages)
            continue;
        pli_fail(err, PLAIT_EREFUSED,
                 "table %s: plait_job_leave with %d replicas under %s is refused: who is in changes between two clocks "
                 "that all end together; nearest is ps x bsp",
                 table->spec.name, job->layout.replicas, table->spec.consistency);
        return false;
    }
    return true;
}

plait_status pli_job_take_back(plait_job *job, plait_error *err) {
    uint64_t     now_ns;
    pli_out      out;
    plait_status status = PLAIT_OK;
    if (job->client.ending) return PLAIT_OK; /* the clock's end is sent; what it sends now is a dead one's */
    pli_port_enter(job->client_port, &now_ns, &out);
    for (int64_t i = 0; status >= 0 && i < job->client.tables; i++)
        status = pli_client_take_back(job->client.table[i], err);
    pli_port_leave(job->client_port, &out);
    return status;
}

plait_status pli_job_has_left(plait_job *job, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_say_leaves(&job->client, now_ns, &out, err);
    pli_port_leave(job->client_port, &out);
    job->left = status >= 0;
    return status;
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

typedef struct waiting {
    const plait_job *job;
    pli_ticket       ticket;
} waiting;

static bool is_answered(void *arg) { return pli_ticket_done(&((waiting *)arg)->ticket); }

static void tell_join(const void *arg, char *text, size_t bytes) {
    (void)arg;
    snprintf(text, bytes, "its turn to join the job");
}

/* Any rank that goes on may bring it: those that are in, if only by ending the job. Two that wait to join do not wait
 * for each other. */
static void show_join(const void *arg, pli_wait *wait) {
    (void)arg;
    wait->kind = PLI_WAIT_RECV;
    wait->peer = -1;
}

/* A slot may be vacant for as long as the job lasts. */
static plait_status await(plait_job *job, waiting *w, plait_error *err) {
    const pli_reason   reason = { .tell = tell_join, .show = show_join, .arg = w };
    const plait_status status = pli_comm_wait_long(job->comm, is_answered, w, &reason, err);
    return status < 0 ? status : pli_comm_is_lost(job->comm, &reason, err);
}

/* Does a cluster's file say when workers come and go? */
static bool is_told(const plait_job *job) {
    const pli_cluster *cluster = pli_comm_cluster(job->comm);
    return cluster != NULL && pli_script_has_turns(cluster);
}

/* When it says that this worker joins next; PLI_NEVER: it does not. */
static uint64_t join_time(const plait_job *job) {
    const double now = (double)pli_comm_now(job->comm) * 1e-9;
    const double next = pli_script_next_join(pli_comm_cluster(job->comm), plait_comm_rank(job->comm), now);
    return next < 1e9 ? (uint64_t)llround(next * 1e9) : PLI_NEVER;
}

int plait_job_wanted(const plait_job *job) {
    if (job == NULL) return 0;
    const int32_t rank = plait_comm_rank(job->comm);
    return !is_told(job) || pli_script_wants(pli_comm_cluster(job->comm), rank,
                                             rank < job->layout.workers - job->layout.slots,
                                             (double)pli_comm_now(job->comm) * 1e-9);
}

int64_t plait_job_moved(const plait_job *job) {
    return job == NULL ? 0 : (int64_t)atomic_load_explicit(&job->hosted.moved.moves, memory_order_relaxed);
}

int64_t plait_job_moved_bytes(const plait_job *job) {
    return job == NULL ? 0 : (int64_t)atomic_load_explicit(&job->hosted.moved.bytes, memory_order_relaxed);
}

plait_status pli_job_join(plait_job *job, int64_t from, plait_error *err) {
    waiting      w = { .job = job };
    pli_exchange x;
    bool         over = false;
    const uint64_t soon_ns = is_told(job) ? join_time(job) : PLI_NEVER;
    if (is_told(job) && plait_job_wanted(job)) from = 0;
    pli_exchange_begin(&x, job, &w.ticket);
    plait_status status = pli_client_ask_join(&job->client, x.now_ns, from, soon_ns, &w.ticket, &x.out, err);
    status = pli_exchange_send(&x, status);
    if (status >= 0) status = await(job, &w, err);
    if (!pli_ticket_done(&w.ticket)) pli_job_drop_ticket(job, &w.ticket);
    if (status >= 0 && w.ticket.failure.code < 0) {
        *err = w.ticket.failure;
        status = err->code;
    }
    if (status >= 0) {
        uint64_t now_ns;
        pli_out  out;
        pli_port_enter(job->client_port, &now_ns, &out);
        status = pli_client_take_join(&job->client, now_ns, w.ticket.replies, &over, &out, err);
        pli_port_leave(job->client_port, &out);
    }
    pli_ticket_free(&w.ticket);
    if (status < 0) return status;
    job->left = over;
    atomic_store_explicit(&job->clock, job->client.clock, memory_order_relaxed);
    pli_shown_clock(job);
    return over ? PLAIT_END : PLAIT_OK;
}

static plait_status join(plait_job *job, int64_t from) {
    plait_error *err = pli_job_error(job);
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "plait_job_join is for workers; this rank is a server");
    if (job->layout.slots == 0)
        return pli_fail(err, PLAIT_EREFUSED, "plait_job_join in a job without slots is refused: nobody says at a "
                                             "clock's end who is in; nearest is plait_job_opts.slots");
    if (!job->left) return pli_fail(err, PLAIT_EINVAL, "plait_job_join by a worker that is in");
    if (from < 0) return pli_fail(err, PLAIT_EINVAL, "plait_job_join from clock %lld on", (long long)from);
    const plait_status status = pli_job_join(job, from, err);
    return status == PLAIT_OK ? pli_job_tell_zeros(job, true, err) : status;
}

plait_status plait_job_join(plait_job *job, int64_t from) {
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_job_join");
    return pli_comm_leave(job->comm, join(job, from));
}

bool pli_job_is_away(const plait_job *job, int32_t worker) {
    return job->client.away != NULL && job->client.away[worker] != 0;
}

int32_t pli_job_away(const plait_job *job) {
    int32_t n = 0;
    for (int32_t w = 0; w < job->layout.workers; w++) n += pli_job_is_away(job, w);
    return n;
}

bool pli_job_roster_changed(const plait_job *job) { return job->client.changed; }

void pli_job_shut(plait_job *job, bool shut) { job->client.shut = shut; }

uint64_t pli_job_calls(const plait_job *job) { return job->client.calls; }

void pli_job_take_calls(plait_job *job, uint64_t calls) {
    job->client.calls = calls;
    job->client.lost_count = false;
}

int32_t plait_job_present(const plait_job *job) {
    int32_t n = 0;
    if (job == NULL) return 0;
    for (int32_t w = 0; w < job->layout.workers; w++)
        n += job->client.replaced == NULL || !(job->client.replaced[w] || job->client.dead[w]);
    return n;
}
