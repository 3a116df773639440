/* Joining and leaving the MPI job. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/mpi.h"

#define FLUSH_NS (UINT64_C(5) * 1000000000)

/* --- MPI itself: started once in a process, for all runs in it
 * ------------------------------------------------------ */

/* An MPI can be started only once in a process, so it outlives the run that started it and ends with the process.
 * After a failure it is not ended at all: MPI_Finalize would wait for peers that will not come. The launcher sees a
 * process end without it, and ends the others. The name of MPI_COMM_SELF notes that the MPI is broken, since that is
 * the MPI's state, not ours. In Open MPI 5 a new name must not be longer than the first one. */
#define BROKEN_NAME "plait: broken"
_Static_assert(sizeof BROKEN_NAME <= sizeof "MPI_COMM_SELF", "it is written over the first name");

static void set_broken(void) { MPI_Comm_set_name(MPI_COMM_SELF, BROKEN_NAME); }

static bool is_broken(void) {
    char name[MPI_MAX_OBJECT_NAME + 1] = "";
    int  length = 0;
    MPI_Comm_get_name(MPI_COMM_SELF, name, &length);
    return strcmp(name, BROKEN_NAME) == 0;
}

static void finalize(void) {
    int over = 0;
    MPI_Finalized(&over);
    if (!over && !is_broken()) MPI_Finalize();
}

/* A process that writes to one that has just died gets SIGPIPE, which would end it; Open MPI's TCP does not prevent
 * that. An error code is enough. A handler of the host program stays. */
static void outlive_broken_pipes(void) {
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

static plait_status start_mpi(plait_error *err) {
    int running = 0, over = 0, provided = 0, size = 0;
    MPI_Initialized(&running);
    MPI_Finalized(&over);
    if (over) return pli_fail(err, PLAIT_EMODULE, "this process has already ended its MPI; it cannot be started again");
    outlive_broken_pipes();
    if (running) {
        MPI_Query_thread(&provided);
    } else {
        pli_mpi_settle();
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
            return pli_fail(err, PLAIT_EMODULE, "MPI does not start");
        atexit(finalize);
        if (MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS && size == 1) pli_mpi_leave_nothing();
    }
    if (provided < MPI_THREAD_SERIALIZED)
        return pli_fail(err, PLAIT_EMODULE, "this MPI gives thread level %d only; MPI_THREAD_SERIALIZED is needed",
                        provided);
    return PLAIT_OK;
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

static plait_status check_launcher(int size, plait_error *err) {
    pli_launcher launcher = pli_launcher_find();
    if (launcher.size <= 0 || launcher.size == size) return PLAIT_OK;
    if (launcher.is_slurm)
        return pli_fail(err, PLAIT_EMODULE,
                        "%s has started %d processes, but their MPI sees %d: Slurm did not tell it about the others. "
                        "Use `srun --mpi=pmix ...` (`srun --mpi=list` shows whether this Slurm has it), or inside the "
                        "allocation `plait launch -n %d -- ...`",
                        launcher.name, launcher.size, size, launcher.size);
    return pli_fail(
        err, PLAIT_EMODULE,
        "%s has started %d processes, but the MPI that Plait was built with sees %d: it is another MPI's launcher. "
        "Use `plait launch -n %d -- ...`, or build with that MPI's mpicc (script/bootstrap --all gets one)",
        launcher.name, launcher.size, size, launcher.size);
}

/* Checks that every process was started with the same counts. */
static plait_status agree(pli_transport *t, const plait_comm_opts *opts, plait_error *err) {
    int32_t  mine[4] = { (int32_t)PLI_WIRE_VERSION, opts->workers, opts->servers };
    int32_t *all = pli_array((size_t)t->size * 4, sizeof *all);
    (void)pli_collective_find(opts->collective, &mine[3], NULL);
    int      fine = all != NULL, all_fine = 0;
    MPI_Allreduce(&fine, &all_fine, 1, MPI_INT, MPI_MIN, t->comm);
    plait_status status = PLAIT_OK;
    if (all_fine) {
        MPI_Allgather(mine, 4, MPI_INT32_T, all, 4, MPI_INT32_T, t->comm);
        for (int32_t r = 1; status == PLAIT_OK && r < t->size; r++) {
            const int32_t *his = all + 4 * (size_t)r;
            if (memcmp(his, all, sizeof mine) == 0) continue;
            if (his[3] != all[3] && memcmp(his, all, 3 * sizeof *his) == 0) {
                status =
                    pli_fail(err, PLAIT_EMISMATCH,
                             "the processes were started differently: rank %d with --collective %s, rank 0 with %s", r,
                             pli_collectives[his[3]], pli_collectives[all[3]]);
                break;
            }
            status = pli_fail(
                err, PLAIT_EMISMATCH,
                "the processes were started differently: rank %d with %d workers and %d servers (wire version %d), "
                "rank 0 with %d and %d (%d)",
                r, his[1], his[2], his[0], all[1], all[2], all[0]);
        }
    } else {
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", t->size);
    }
    pli_free(all);
    return status;
}

static plait_status count(pli_transport *t, const plait_comm_opts *opts, pli_place *place, plait_error *err) {
    if (opts->servers >= t->size)
        return pli_fail(err, PLAIT_EINVAL,
                        "%d process%s started, and with --servers %d no worker is left: start more processes, or take "
                        "fewer servers",
                        t->size, t->size == 1 ? " was" : "es were", opts->servers);
    const int32_t workers = t->size - opts->servers, wanted = opts->workers + opts->servers;
    if (opts->workers != 0 && opts->workers != workers) {
        char less[32] = "";
        if (opts->servers > 0) snprintf(less, sizeof less, ", less --servers %d", opts->servers);
        return pli_fail(err, PLAIT_EINVAL,
                        "%d process%s started%s, which makes %d worker%s, not %d: leave --workers out, or start %d "
                        "processes (`plait launch -n %d -- ...`)",
                        t->size, t->size == 1 ? " was" : "es were", less, workers, pli_plural(workers), opts->workers,
                        wanted, wanted);
    }
    place->workers = t->workers = workers;
    place->servers = opts->servers;
    place->first = t->rank;
    place->count = 1;
    pli_host_name(place->host);
    return PLAIT_OK;
}

/* Workers that share memory share a host; the host's number is its lowest rank. */
static plait_status map_hosts(pli_transport *t, MPI_Comm here, pli_place *place, plait_error *err) {
    int      lowest = t->rank, fine, all_fine = 0;
    int32_t *host_of = pli_array((size_t)t->size, sizeof *host_of);
    char     mine[PLI_HOST_NAME_BYTES] = "", (*name)[PLI_HOST_NAME_BYTES] = pli_calloc((size_t)t->size, sizeof *name);
    fine = host_of != NULL && name != NULL;
    MPI_Allreduce(&fine, &all_fine, 1, MPI_INT, MPI_MIN, t->comm);
    if (all_fine) {
        MPI_Bcast(&lowest, 1, MPI_INT, 0, here);
        MPI_Allgather(&lowest, 1, MPI_INT, host_of, 1, MPI_INT32_T, t->comm);
        snprintf(mine, sizeof mine, "%s", place->host);
        MPI_Allgather(mine, (int)sizeof mine, MPI_CHAR, name, (int)sizeof mine, MPI_CHAR, t->comm);
        place->host_of = host_of;
        place->host_name = name;
        return PLAIT_OK;
    }
    pli_free(host_of);
    pli_free(name);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", t->size);
}

static bool has_entries(const char *path) {
    DIR *folder = opendir(path);
    int  entries = 0;
    while (folder != NULL && readdir(folder) != NULL) entries++;
    if (folder != NULL) closedir(folder);
    return entries > 2; /* more than "." and ".." */
}

/* Is there more than one host, and has one of them nothing but Ethernet? Then MPI goes by TCP between them. */
static bool goes_by_tcp(const pli_transport *t, const int32_t *host_of) {
    int  fast = has_entries("/sys/class/infiniband") || has_entries("/sys/class/cxi"), all_fast = 0;
    bool apart = false;
    MPI_Allreduce(&fast, &all_fast, 1, MPI_INT, MPI_MIN, t->comm);
    for (int32_t r = 1; r < t->size; r++) apart = apart || host_of[r] != host_of[0];
    return apart && !all_fast;
}

static plait_status split(pli_transport *t, pli_place *place, plait_error *err) {
    MPI_Comm here = MPI_COMM_NULL;
    int      ranks = 1;
    if (MPI_Comm_split_type(t->comm, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL, &here) != MPI_SUCCESS ||
        MPI_Comm_split(t->comm, t->rank < t->workers ? 0 : MPI_UNDEFINED, t->rank, &t->workers_comm) != MPI_SUCCESS ||
        (t->workers_comm != MPI_COMM_NULL && MPI_Comm_dup(t->workers_comm, &t->direct_comm) != MPI_SUCCESS))
        return pli_fail(err, PLAIT_ECOMM, "MPI cannot split its communicator");
    MPI_Comm_size(here, &ranks);
    plait_status status = map_hosts(t, here, place, err);
    if (status >= 0) t->by_tcp = goes_by_tcp(t, place->host_of);
    MPI_Comm_free(&here);
    if (t->workers_comm != MPI_COMM_NULL) {
        MPI_Comm_set_errhandler(t->workers_comm, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(t->direct_comm, MPI_ERRORS_RETURN);
    }
    if (status >= 0) pli_mpi_open_hall(t, place->host_of);
    place->ranks_on_host = ranks;
    return status;
}

static void free_transport(pli_transport *t) {
    for (int32_t r = 0; t->fifo != NULL && r < t->size; r++)
        for (flight *f = t->fifo[r].first, *next; f != NULL; f = next) {
            next = f->next;
            pli_msg_free(&f->msg);
            pli_free(f);
        }
    for (pli_msg *msg = atomic_exchange(&t->out, NULL), *next; msg != NULL; msg = next) {
        next = msg->next;
        pli_msg_free(&msg);
    }
    pli_free(t->request);
    pli_free(t->owner);
    pli_free(t->done);
    pli_free(t->status);
    pli_free(t->dead);
    pli_free(t->fifo);
    pli_free(t->left_after);
    pli_mpi_close_hall(t);
    pli_free(t);
}

static plait_status join(pli_transport *t, const plait_comm_opts *opts, pli_place *place, plait_error *err) {
    t->fifo = pli_array((size_t)t->size, sizeof *t->fifo);
    t->left_after = pli_calloc((size_t)t->size, sizeof *t->left_after);
    t->dead = pli_calloc((size_t)t->size, sizeof *t->dead);
    if (t->fifo == NULL || t->left_after == NULL || t->dead == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %d ranks", t->size);
    for (int32_t r = 0; r < t->size; r++) {
        t->fifo[r].first = NULL;
        t->fifo[r].last = &t->fifo[r].first;
    }
    PLI_TRY(agree(t, opts, err));
    PLI_TRY(count(t, opts, place, err));
    return split(t, place, err);
}

static plait_status open_mpi(const plait_comm_opts *opts, pli_world *world, pli_place *place, pli_transport **out,
                             plait_error *err) {
    int rank = 0, size = 1;
    PLI_TRY(start_mpi(err));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    PLI_TRY(check_launcher(size, err));
    pli_transport *t = pli_aligned(sizeof *t);
    if (t == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the transport");
    memset(t, 0, sizeof *t);
    t->world = world;
    t->rank = rank;
    t->size = size;
    t->workers_comm = t->direct_comm = MPI_COMM_NULL;
    t->direct.receive = t->direct.send[0] = t->direct.send[1] = MPI_REQUEST_NULL;
    for (int32_t i = 0; i < RING; i++) t->ring[i] = MPI_REQUEST_NULL;
    plait_status status = PLAIT_OK;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &t->comm) != MPI_SUCCESS) {
        status = pli_fail(err, PLAIT_ECOMM, "MPI cannot copy its communicator");
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN);
        t->tells = pli_mpi_can_tell();
        status = join(t, opts, place, err);
    }
    if (status < 0) {
        free_transport(t);
        return status;
    }
    *out = t;
    return PLAIT_OK;
}

static plait_status start(pli_transport *t, plait_error *err) {
    PLI_TRY(pli_mpi_begin_receiving(t, err));
    int bad = pthread_create(&t->service, NULL, pli_mpi_service, t);
    if (bad != 0) return pli_fail_errno(err, bad, "cannot start the service thread");
    t->started = true;
    return PLAIT_OK;
}

/* --- leaving ------------------------------------------------------------------------------------------------------ */

/* A sum that was begun and given up ends all the same if every worker has begun it; then MPI can still be finalized. */
static bool has_work_left(pli_transport *t, bool all_ended) {
    return !pli_mpi_is_idle(t) || (all_ended && !pli_world_is_gone(t->world, -1) && pli_mpi_is_reducing(t));
}

static void close_mpi(pli_transport **transport, bool all_ended) {
    pli_transport *t = *transport;
    if (t == NULL) return;
    for (uint64_t until = pli_now_ns() + FLUSH_NS; t->started && has_work_left(t, all_ended) && pli_now_ns() < until;) {
        pli_mpi_progress(t);
        sched_yield();
    }
    if (t->started) {
        atomic_store(&t->stop, 1);
        pli_futex_wake(&t->stop, 1);
        pthread_join(t->service, NULL);
    }
    *transport = NULL; /* until now messages came in, and some of them had to be answered */
    bool has_sum = !pli_mpi_end_reducing(t);
    if (!all_ended || pli_world_is_gone(t->world, -1) || t->failed || has_sum) set_broken();
    if (!is_broken()) {
        pli_mpi_end_receiving(t);
        bool kept = !pli_mpi_end_steps(t);
        if (t->workers_comm != MPI_COMM_NULL) {
            MPI_Comm_free(&t->workers_comm);
            MPI_Comm_free(&t->direct_comm);
        }
        MPI_Comm_free(&t->comm);
        if (!kept) free_transport(t);
    } /* otherwise MPI may still write into its buffers */
}

static const pli_transport_ops mpi_ops = {
    .abi = PLI_TRANSPORT_ABI,
    .name = "mpi",
    .meets_by_messages = true,
    .open = open_mpi,
    .start = start,
    .send = pli_mpi_send,
    .progress = pli_mpi_progress,
    .nap = pli_mpi_nap,
    .takes = pli_mpi_takes,
    .begin = pli_mpi_begin,
    .wait = pli_mpi_wait,
    .drop = pli_mpi_drop,
    .close = close_mpi,
};

__attribute__((visibility("default"))) const void *plait_transport_module(void);
const void *plait_transport_module(void) { return &mpi_ops; }
