/* plait_comm_run: choosing the transport, making the world, running the body on each rank that lives here, ending. */
#include <stdio.h>
#include <string.h>

#include "base/module.h"
#include "comm/callback.h"
#include "comm/rounds.h"
#include "comm/tell_launch.h"
#include "comm/views.h"
#include "comm/world.h"

enum { RANKS_MAX = 1 << 16, GO = 1, GO_HOME = 2 };
#define STACK_BYTES ((size_t)8 << 20)
#define TIMEOUT_NS  (UINT64_C(300) * 1000000000)
#define BEAT_NS     (UINT64_C(1000000000))
#define HEARTBEAT_NS (5 * BEAT_NS)
#define HEARTBEAT_MIN_NS (BEAT_NS / 2)
#define GRACE_NS    (UINT64_C(3) * 1000000000) /* how long the others have to end, once the job is lost */

void (plait_comm_opts_init)(plait_comm_opts *opts) {
    if (opts == NULL) return;
    memset(opts, 0, sizeof *opts);
    opts->size = sizeof *opts;
    opts->timeout_ns = TIMEOUT_NS;
}

void plait_comm_opts_init_sized(plait_comm_opts *opts, size_t size) {
    plait_comm_opts all;
    (plait_comm_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- the transport ------------------------------------------------------------------------------------- */

/* A module is never unloaded: an MPI lives until the process ends. */
static plait_status load_module(const char *name, const pli_transport_ops **ops_out, plait_error *err) {
    void       *handle = NULL;
    const void *given = NULL;
    PLI_TRY(pli_module_load(name, PLI_TRANSPORT_ABI, &handle, &given, err));
    *ops_out = given;
    return PLAIT_OK;
}

/* Without this check, each process that a launcher has started would run the whole job, if all ranks live in one
 * process. */
static plait_status check_launcher(const pli_launcher *launcher, const char *transport, plait_error *err) {
    if (launcher->size <= 1) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "%s has started %d processes; with the transport %s each would run the "
                    "whole job by itself: leave the transport out, or start one process",
                    launcher->name, launcher->size, transport);
}

static plait_status choose(const plait_comm_opts *opts, const pli_transport_ops **ops_out, plait_error *err) {
    static const char *const names[] = { "threads", "mpi", "sim" }; /* threads is built in, the others are modules */
    pli_launcher             launcher = pli_launcher_find();
    const char              *name = opts->transport;
    if (name == NULL) PLI_TRY(pli_launcher_check_alone(err));
    if (name == NULL) name = launcher.name != NULL ? "mpi" : "threads";
    if (strcmp(name, "threads") == 0) {
        PLI_TRY(check_launcher(&launcher, name, err));
        *ops_out = &pli_threads_ops;
        return PLAIT_OK;
    }
    for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        if (strcmp(name, "sim") == 0) PLI_TRY(check_launcher(&launcher, name, err));
        plait_status status = load_module(name, ops_out, err);
        if (status < 0 && launcher.name != NULL) pli_fail_at(err, "started by %s", launcher.name);
        return status;
    }
    return pli_fail_unknown(err, "transport", name, names, sizeof names / sizeof *names);
}

static plait_status check_opts(const plait_comm_opts *given, plait_comm_opts *opts, plait_error *err) {
    plait_comm_opts_init(opts);
    if (given == NULL) return PLAIT_OK;
    PLI_TRY(pli_sized_take(opts, sizeof *opts, PLI_SIZED_END(plait_comm_opts, log), given, "plait_comm_opts", err));
    if (opts->workers < 0 || opts->servers < 0 || opts->threads < 0 || opts->workers > RANKS_MAX ||
        opts->servers > RANKS_MAX)
        return pli_fail(
            err, PLAIT_EINVAL,
            "%d workers, %d servers, %d threads: expected 0 to %d workers and servers, threads not negative",
            opts->workers, opts->servers, opts->threads, (int)RANKS_MAX);
    PLI_TRY(pli_collective_find(opts->collective, NULL, err));
    if (opts->timeout_ns == 0) opts->timeout_ns = TIMEOUT_NS;
    if (opts->heartbeat_ns == 0) opts->heartbeat_ns = HEARTBEAT_NS;
    if (opts->heartbeat_ns < HEARTBEAT_MIN_NS)
        return pli_fail(err, PLAIT_EINVAL,
                        "a process counts as lost after %.3g s without a sign of life: expected at least %.3g s",
                        (double)opts->heartbeat_ns * 1e-9, (double)HEARTBEAT_MIN_NS * 1e-9);
    return PLAIT_OK;
}

/* --- the world -------------------------------------------------------------------------------------------- */

static void init_comm(plait_comm *comm, pli_world *world, int32_t rank) {
    memset(comm, 0, sizeof *comm);
    comm->world = world;
    comm->members = pli_world_members(world, rank);
    comm->rank = rank;
    comm->life = 1;
    comm->error.rank = -1;
    comm->result_why.rank = rank;
    pli_sheet_init(&comm->sheet);
    pthread_mutex_init(&comm->reason_lock, NULL);
    pthread_mutex_init(&comm->failed_lock, NULL);
    for (uint32_t p = 0; p < PLI_PORT_MAX; p++) pli_port_init(&comm->ports[p], comm, p);
}

/* Frees messages for ports that were never opened. */
static void destroy_comm(plait_comm *comm) {
    uint32_t at = 0;
    for (pli_port *port; (port = pli_comm_next_port(comm, &at)) != NULL;)
        for (pli_msg *msg = atomic_exchange(&port->inbox, NULL), *next; msg != NULL; msg = next) {
            next = msg->next;
            pli_msg_free(&msg);
        }
    pli_comm_free_ports(comm);
    pli_msg_free_list(&comm->early);
    pli_free(comm->carriage.absent);
    pli_pool_destroy(&comm->pool);
    pli_sheet_destroy(&comm->sheet);
    pthread_mutex_destroy(&comm->reason_lock);
    pthread_mutex_destroy(&comm->failed_lock);
    pli_free(comm->fellows);
}

/* What it has sent counts on, and the job in which its former life was killed is to be its first. */
void pli_comm_begin_life(plait_comm *comm, uint32_t life) {
    pli_world     *world = comm->world;
    const int32_t  rank = comm->rank;
    const uint16_t jobs = (uint16_t)(comm->died_in - 1);
    uint64_t       sent[PLI_PORT_MAX];
    for (int32_t p = 0; p < PLI_PORT_MAX; p++) sent[p] = atomic_load_explicit(&comm->sent[p], memory_order_relaxed);
    destroy_comm(comm);
    init_comm(comm, world, rank);
    for (int32_t p = 0; p < PLI_PORT_MAX; p++) atomic_store_explicit(&comm->sent[p], sent[p], memory_order_relaxed);
    comm->life = life;
    comm->jobs = jobs;
}

static bool init_hosts(pli_world *world) {
    const pli_place *place = &world->place;
    int32_t         *one = place->host_of == NULL ? pli_calloc((size_t)place->workers, sizeof *one) : NULL;
    if (place->host_of == NULL && one == NULL) return false;
    bool made = pli_hosts_make(one != NULL ? one : place->host_of, place->workers, &world->hosts);
    pli_free(one);
    return made;
}

/* Starts heartbeats if ranks are processes. A beat comes five times within the patience, but at most once a second. */
static bool init_heart(pli_world *world, uint64_t patience_ns) {
    uint64_t period_ns = patience_ns / 5 < BEAT_NS ? patience_ns / 5 : BEAT_NS;
    if (world->place.count == world->size) return true;
    world->heard = pli_calloc((size_t)world->size, sizeof *world->heard);
    if (world->heard == NULL || patience_ns == UINT64_MAX) return world->heard != NULL;
    world->beats = pli_array((size_t)world->size, 2 * sizeof *world->beats);
    return world->beats != NULL &&
           pli_heartbeat_init(&world->heart, world->size, world->place.first, period_ns, patience_ns, pli_now_ns());
}

/* Links may be cut where one process plays all ranks: then each knows the others by a log of its own. */
static bool init_members(pli_world *world) {
    const size_t size = (size_t)world->size;
    world->n_members = world->place.cut_off_ns > 0 ? world->size : 1;
    world->members = pli_calloc((size_t)world->n_members, sizeof *world->members);
    for (int32_t i = 0; world->members != NULL && i < world->n_members; i++) {
        pli_members *members = &world->members[i];
        members->world = world;
        members->me = world->place.first + i;
        atomic_store(&members->view, 1);
        members->events = pli_calloc(size * PLI_MEMBER_EVENTS, sizeof *members->events);
        members->ended = pli_calloc(size, sizeof *members->ended);
        members->life = pli_calloc(size, sizeof *members->life);
        if (members->events == NULL || members->ended == NULL || members->life == NULL) return false;
        for (size_t r = 0; r < size; r++) members->life[r] = 1;
    }
    return world->members != NULL && (world->n_members == 1 || pli_apart_open(world));
}

static void free_members(pli_world *world) {
    for (int32_t i = 0; world->members != NULL && i < world->n_members; i++) {
        pli_views_close(&world->members[i]);
        pli_free(world->members[i].events);
        pli_free((void *)world->members[i].ended);
        pli_free(world->members[i].life);
    }
    pli_apart_close(world);
    pli_free(world->members);
}

static bool open_views(pli_world *world, uint64_t heartbeat_ns) {
    uint64_t patience_ns = world->place.cut_off_ns;
    if (patience_ns == 0) patience_ns = heartbeat_ns == UINT64_MAX ? HEARTBEAT_NS : heartbeat_ns;
    for (int32_t i = 0; i < world->n_members; i++)
        if (!pli_views_open(&world->members[i], patience_ns)) return false;
    return true;
}

static plait_status init_world(pli_world *world, const plait_comm_opts *opts, plait_error *err) {
    const pli_place *place = &world->place;
    world->size = place->workers + place->servers;
    world->timeout_ns = opts->timeout_ns;
    world->log = opts->log;
    world->by_messages = opts->collective != NULL && strcmp(opts->collective, "messages") == 0;
    world->form = opts->collective != NULL ? pli_form_find(opts->collective) : NULL;
    int32_t cores = pli_cores(), share = cores / (place->ranks_on_host > 0 ? place->ranks_on_host : 1);
    world->threads = opts->threads > 0 ? opts->threads : share > 0 ? share : 1;
    world->may_spin = place->ranks_on_host <= cores;
    world->local = pli_aligned((size_t)place->count * sizeof *world->local);
    if (world->local == NULL || !init_members(world) || !init_hosts(world) ||
        !init_heart(world, opts->heartbeat_ns)) {
        pli_free(world->local);
        world->local = NULL;
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", world->size);
    }
    for (int32_t i = 0; i < place->count; i++) init_comm(&world->local[i], world, place->first + i);
    if (!pli_doctor_open(world) || !open_views(world, opts->heartbeat_ns))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", world->size);
    return PLAIT_OK;
}

void pli_world_free(pli_world **world_ptr) {
    pli_world *world = *world_ptr;
    *world_ptr = NULL;
    for (int32_t i = 0; world->local != NULL && i < world->place.count; i++) destroy_comm(&world->local[i]);
    pli_shared_free_all(world);
    pli_doctor_close(world);
    free_members(world);
    pli_free(world->local);
    pli_heartbeat_destroy(&world->heart);
    pli_free(world->beats);
    pli_free((void *)world->heard);
    pli_free(world->place.host_of);
    pli_free(world->place.host_name);
    pli_hosts_free(&world->hosts);
    pthread_mutex_destroy(&world->lock);
    pli_free(world);
}

plait_comm *pli_world_comm(pli_world *world, int32_t rank) { return &world->local[rank - world->place.first]; }
void        pli_world_ring(pli_world *world, int32_t rank) { pli_comm_ring(pli_world_comm(world, rank)); }

uint64_t pli_world_wakeups(pli_world *world, uint64_t now_ns) {
    uint64_t next = PLI_NEVER;
    for (int32_t i = 0; i < world->place.count; i++) {
        uint64_t at = pli_comm_wakeups(&world->local[i], now_ns);
        if (at < next) next = at;
    }
    return next;
}

/* --- one rank ----------------------------------------------------------------------------------------------- */

static plait_status open_own_ports(plait_comm *comm) {
    pli_world *world = comm->world;
    bool       worker = pli_comm_is_worker(comm);
    if (!pli_user_init(&comm->user, world->size, world->place.resend_after_ns) ||
        (worker &&
         !pli_collective_init(&comm->collective, comm->rank, world->place.workers, world->place.resend_after_ns)))
        return pli_fail(&comm->error, PLAIT_ENOMEM, "no memory to begin with");
    PLI_TRY(pli_port_open(comm, PLI_PORT_USER, &pli_user_ops, &comm->user, &comm->user_port, &comm->error));
    if (!worker) return PLAIT_OK;
    return pli_port_open(comm, PLI_PORT_COLLECTIVE, &pli_collective_ops, &comm->collective, &comm->collective_port,
                         &comm->error);
}

bool pli_comm_retire(plait_comm *comm, void *state, void (*release)(void *state)) {
    if (comm->world->place.resend_after_ns == 0 || comm->retired != NULL) return false;
    comm->retired = state;
    comm->release = release;
    return true;
}

static bool owes_nothing(void *comm) { return !pli_comm_owes(comm); }

static void tell_last_words(const void *arg, char *text, size_t bytes) {
    (void)arg;
    snprintf(text, bytes, "the others to receive what was sent");
}

static void show_last_words(const void *arg, pli_wait *wait) {
    (void)arg;
    wait->kind = PLI_WAIT_WORKERS;
    wait->peer = -1;
}

/* If messages may be lost, a rank may have to send its last ones again. So it stays until all have arrived, or the
 * ranks that lack them have ended. Of two ranks, the last to end always hears of the other's end, since that news
 * cannot be lost. */
static plait_status see_off(plait_comm *comm) {
    const pli_reason reason = { .tell = tell_last_words, .show = show_last_words };
    if (comm->world->place.resend_after_ns == 0) return PLAIT_OK;
    pli_comm_wakeups(comm, PLI_NEVER - 1); /* acts on all that has been heard since the last wake-ups */
    return pli_comm_wait(comm, owes_nothing, comm, &reason, &comm->error);
}

static void release_retired(plait_comm *comm) {
    if (comm->retired != NULL) comm->release(comm->retired);
    comm->retired = NULL;
}

plait_status pli_comm_next_job(plait_comm *comm) {
    if (comm->in_job)
        return pli_fail(&comm->error, PLAIT_EINVAL,
                        "rank %d is already in a job, and a communicator has one at a time: end it by "
                        "plait_job_destroy before the next begins, or run the next in its own plait_run",
                        comm->rank);
    if (comm->retired != NULL) PLI_TRY(see_off(comm));
    release_retired(comm);
    comm->jobs++;
    comm->in_job = true;
    return PLAIT_OK;
}

void pli_comm_end_job(plait_comm *comm) { comm->in_job = false; }

int32_t pli_comm_job(const plait_comm *comm) { return comm->jobs; }

static void close_ports(plait_comm *comm) {
    release_retired(comm);
    uint32_t at = 1;
    for (pli_port *port; (port = pli_comm_next_port(comm, &at)) != NULL;)
        pli_port_close(&port); /* ports of rooms above too, if a body has left one open */
    pli_groups_free(comm);
    pli_user_destroy(&comm->user);
    pli_collective_destroy(&comm->collective);
}

static void note_failure(pli_world *world, const plait_comm *comm) {
    int32_t nobody = -1, living = -1;
    atomic_compare_exchange_strong(&world->first_failed, &nobody, comm->rank - world->place.first);
    /* The others end well without it. So they do without one that was started anew, and comes to nothing. */
    const bool again = comm->life > 1 && comm->result == PLAIT_EPEER;
    if ((atomic_load(&comm->killed) || again) && world->place.count == world->size) return;
    atomic_compare_exchange_strong(&world->first_living, &living, comm->rank - world->place.first);
}

plait_status pli_world_begin_rank(plait_comm *comm) {
    comm->begun_ns = pli_world_now(comm->world);
    return open_own_ports(comm);
}

void pli_world_finish_rank(plait_comm *comm, plait_status status) {
    pli_world *world = comm->world;
    if (status >= 0) status = see_off(comm);
    /* The rank was killed at the very end. */
    if (status >= 0 && atomic_load(&comm->failed)) status = pli_comm_is_lost(comm, NULL, &comm->error);
    comm->result = status < 0 ? status : PLAIT_OK;
    if (status < 0) {
        if (comm->error.code == status) {
            comm->result_why = comm->error;
        } else {
            pli_fail(&comm->result_why, status, "%s", plait_status_text(status));
        }
        if (comm->result_why.rank < 0) comm->result_why.rank = comm->rank;
        note_failure(world, comm);
    }
    pli_comm_end_calls(comm, status < 0);
    close_ports(comm);
    pli_world_end_rank(world, comm->rank, status, &comm->result_why);
}

void pli_world_run_rank(pli_world *world, int32_t rank) {
    plait_comm  *comm = pli_world_comm(world, rank);
    plait_status status = pli_world_begin_rank(comm);
    if (status >= 0) status = world->body(comm, world->user);
    pli_world_finish_rank(comm, status);
}

/* --- ranks as threads --------------------------------------------------------------------------------------- */

static void *rank_thread(void *arg) {
    plait_comm *comm = arg;
    pli_world  *world = comm->world;
    while (atomic_load(&world->go) == 0) pli_futex_wait(&world->go, 0, PLI_NEVER);
    if (atomic_load(&world->go) == GO) pli_world_run_rank(world, comm->rank);
    return NULL;
}

static plait_status run_threads(pli_world *world, plait_error *err) {
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    int32_t started = 0;
    int     bad = 0;
    for (; started < world->place.count; started++)
        if ((bad = pthread_create(&world->local[started].thread, &attr, rank_thread, &world->local[started])) != 0)
            break;
    pthread_attr_destroy(&attr);
    atomic_store(&world->go, bad == 0 ? GO : GO_HOME);
    pli_futex_wake(&world->go, INT32_MAX);
    for (int32_t i = 0; i < started; i++) pthread_join(world->local[i].thread, NULL);
    if (bad == 0) return PLAIT_OK;
    return pli_fail_errno(err, bad, "cannot start thread %d of %d", started + 1, world->place.count);
}

/* --- a rank as a process ------------------------------------------------------------------------------------- */

struct ending {
    pli_world *world;
    bool       patient; /* no rank has failed so far */
};

static bool have_all_ended(void *arg) {
    const struct ending *e = arg;
    int32_t              unheard = 0;
    for (int32_t r = 0; r < e->world->size; r++)
        unheard += pli_views_is_unheard(e->world->members, r) && !pli_world_has_ended(e->world, r);
    return atomic_load(&e->world->members->n_events) + unheard == e->world->size ||
           (e->patient && atomic_load(&e->world->members->lost)) ||
           atomic_load(&e->world->local[0].killed); /* it died with another: it moves no more messages */
}

static void tell_ending(const void *arg, char *text, size_t bytes) {
    const struct ending *e = arg;
    int32_t              rank = 0;
    while (rank < e->world->size && pli_world_has_ended(e->world, rank)) rank++;
    pli_text what = { 0 };
    pli_text_add(&what, "the end of the job, held up by rank %d", rank);
    if (bytes > 0 && what.data != NULL) {
        size_t n = what.length < bytes ? what.length : bytes - 1;
        memcpy(text, what.data, n);
        text[n] = '\0';
    }
    pli_text_free(&what);
}

static void show_ending(const void *arg, pli_wait *wait) {
    (void)arg;
    wait->kind = PLI_WAIT_WORKERS;
    wait->peer = -1;
}

/* Stays, because the others may still need this process to move their messages. true: all ranks have ended. */
bool pli_world_await(pli_world *world) {
    struct ending e = { .world = world, .patient = true };
    pli_reason    reason = { .tell = tell_ending, .show = show_ending, .arg = &e };
    plait_comm   *comm = &world->local[0];
    pli_comm_wait_sure(comm, have_all_ended, &e, &reason, PLI_NEVER);
    e.patient = false;
    return pli_comm_wait_sure(comm, have_all_ended, &e, &reason, GRACE_NS);
}

/* If several ranks failed with the same words, the lowest reports for all. If the failure is a rank that died
 * without a word, the lowest living rank reports it. Under world->lock. */
static int32_t speaker(const pli_world *world, const plait_error *why) {
    int32_t lowest = why->rank;
    if (why->rank >= 0 && pli_world_is_gone(world, why->rank)) {
        lowest = 0;
        while (lowest < world->place.first && pli_world_is_gone(world, lowest)) lowest++;
        return lowest;
    }
    for (int32_t i = 0; i < atomic_load(&world->members->n_events); i++) {
        const pli_member_event *event = &world->members->events[i];
        plait_error             same;
        if (event->kind != PLI_MEMBER_DIED || event->rank >= lowest) continue;
        pli_member_reason(&same, event->rank, why->text);
        if (strcmp(same.text, event->why.text) == 0) lowest = event->rank;
    }
    return lowest;
}

/* Dead ranks do not fail a run that goes on without them; but a run whose workers are all dead has failed. */
static bool has_no_survivor(const pli_world *world) {
    const bool all = world->place.count == world->size;
    int32_t    dead = 0;
    for (int32_t w = 0; all && w < world->place.workers; w++) dead += world->local[w].result < 0;
    return all && dead == world->place.workers;
}

/* Tells `plait launch` what it cannot see from outside: that a job goes on without its dead, and that this rank ends
 * alone, since the others took it for dead, or since it hears no majority. */
static void tell_survival(pli_world *world, plait_status status) {
    const int32_t rank = world->place.first;
    if (world->place.count == world->size || !atomic_load(&world->survives)) return;
    /* Without a rank of its own to blame, it has stopped: others, with a majority, may go on. */
    if (atomic_load(&world->members->lost) && world->members->lost_why.code == PLAIT_EPEER &&
        (world->members->lost_why.rank == rank || world->members->lost_why.rank < 0))
        pli_tell_launch_lost(rank, pli_pid(), 0, world->members->lost_why.text);
    if (status < 0 && atomic_load(&world->local[0].killed)) /* it has died with another */
        pli_tell_launch_lost(rank, pli_pid(), 0, world->local[0].failed_why.text);
    for (int32_t i = 0; status >= 0 && i < atomic_load(&world->members->n_events); i++) {
        if (world->members->events[i].kind != PLI_MEMBER_DIED) continue;
        pli_tell_launch("without %d %d\n", (int)pli_pid(), (int)world->members->events[i].rank);
    }
}

/* ------------------------------------------------------------------------------------------------------------- */

static bool is_process(const pli_world *world) { return world->place.count < world->size; }

plait_status pli_world_start(pli_world *world, plait_error *err) {
    if (world->ops->start != NULL) PLI_TRY(world->ops->start(world->transport, err));
    if (is_process(world)) pli_tell_launch("begun %d %d\n", (int)pli_pid(), (int)world->place.first);
    return PLAIT_OK;
}

plait_status pli_world_finish(pli_world *world, plait_status status, bool all_ended, plait_error *err) {
    int32_t failed = atomic_load(atomic_load(&world->survives) ? &world->first_living : &world->first_failed);
    if (status >= 0 && failed < 0 && has_no_survivor(world)) failed = 0;
    if (status >= 0 && failed >= 0) {
        status = world->local[failed].result;
        *err = world->local[failed].result_why;
        pthread_mutex_lock(&world->lock);
        err->rank = speaker(world, err);
        pthread_mutex_unlock(&world->lock);
    }
    tell_survival(world, status);
    world->ops->close(&world->transport, all_ended && status != PLAIT_ECOMM);
    return status;
}

static plait_status run_world(pli_world *world, plait_error *err) {
    plait_status status = pli_world_start(world, err);
    bool         all_ended = true;
    if (status >= 0 && world->ops->run != NULL) {
        status = world->ops->run(world->transport, err);
    } else if (status >= 0 && world->ops->shares_memory) {
        status = run_threads(world, err);
    } else if (status >= 0) {
        pli_world_run_rank(world, world->place.first);
        all_ended = pli_world_await(world);
    }
    return pli_world_finish(world, status, all_ended, err);
}

/* Only a rank that has this process to itself can be opened without a body: others would need threads of the
 * library, or a thread that plays them in turn. */
static plait_status check_alone(const plait_comm_opts *opts, const pli_transport_ops *ops, plait_error *err) {
    const int32_t workers = opts->workers > 0 ? opts->workers : 1;
    if (ops->run == NULL && (!ops->shares_memory || workers + opts->servers == 1)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "plait_comm_open with %d workers and %d servers on %s: it opens one rank, on the caller's thread; "
                    "nearest is plait_comm_run, or a process for each rank (mpi)",
                    workers, opts->servers, ops->name);
}

plait_status pli_world_open(const plait_comm_opts *given, bool alone, pli_world **world_out, plait_error *err) {
    plait_comm_opts          opts;
    const pli_transport_ops *ops = NULL;
    PLI_TRY(check_opts(given, &opts, err));
    PLI_TRY(choose(&opts, &ops, err));
    if (alone) PLI_TRY(check_alone(&opts, ops, err));
    pli_world *world = pli_calloc(1, sizeof *world);
    if (world == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a run");
    world->ops = ops;
    atomic_init(&world->first_failed, -1);
    atomic_init(&world->first_living, -1);
    pthread_mutex_init(&world->lock, NULL);
    plait_status status = ops->open(&opts, world, &world->place, &world->transport, err);
    if (status >= 0) {
        status = init_world(world, &opts, err);
        if (status < 0) ops->close(&world->transport, false);
    }
    if (status < 0) pli_world_free(&world);
    *world_out = world;
    return status;
}

plait_status plait_comm_run(const plait_comm_opts *given, plait_body_fn *body, void *user, plait_error *err) {
    plait_error own;
    pli_world  *world = NULL;
    if (err == NULL) err = &own;
    *err = (plait_error){ .rank = -1 };
    PLI_TRY(pli_callback_refuses(__func__));
    PLI_TRY(PLI_GIVEN(err, body));
    PLI_TRY(pli_world_open(given, false, &world, err));
    world->body = body;
    world->user = user;
    plait_status status = run_world(world, err);
    pli_world_free(&world);
    return status;
}
