/* One process of a test over MPI: ranks SCENARIO [apart]. It exits with 0 if this rank saw what it should see.
 * apart: the ranks share no memory, as if on several hosts. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "comm/comm.h"
#include "comm/launcher.h"
#include "group_story.h"
#include "tensor/exact_cells.h"

static double input(int32_t rank, int64_t i) { return (double)((rank + 1) * 37 + i * 11 % 101) / 7.0; }

static bool        apart;
static const char *collective; /* used by the runs that follow */

static plait_status reduce(plait_comm *comm, int64_t n, double *buf, bool begin) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    for (int64_t i = 0; i < n; i++) buf[i] = input(me, i);
    plait_request *request = NULL;
    if (begin) {
        CHECK(plait_comm_allreduce_begin(comm, buf, n, PLAIT_F64, PLAIT_SUM, &request) == PLAIT_OK);
        CHECK(plait_request_wait(&request) == PLAIT_OK);
    } else {
        CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_F64, PLAIT_SUM) == PLAIT_OK);
    }
    for (int64_t i = 0; i < n; i++) {
        double want = 0;
        for (int32_t r = 0; r < w; r++) want += input(r, i);
        CHECK(buf[i] - want < 1e-9 && want - buf[i] < 1e-9);
        if (!apart && !begin && collective == NULL) CHECK(buf[i] == want); /* added in the order of ranks, as on
                                                                            * threads */
    }
    int64_t lowest = (int64_t)pli_hash_bytes(buf, (size_t)n * sizeof *buf, 0), highest = lowest;
    CHECK(plait_comm_allreduce(comm, &lowest, 1, PLAIT_I64, PLAIT_MIN) == PLAIT_OK);
    CHECK(plait_comm_allreduce(comm, &highest, 1, PLAIT_I64, PLAIT_MAX) == PLAIT_OK);
    CHECK(lowest == highest); /* the same bits on all workers */
    return PLAIT_OK;
}

/* Adds 24 numbers of very different sizes in each place. Dealt out to the workers, they must give the same bits as
 * here on one worker. */
static plait_status reduce_exactly(plait_comm *comm, int64_t n, double *buf) {
    enum { TERMS = 24 };
    int32_t  me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    uint64_t mine[PLI_CELL_BYTES_F64 / 8] = { 0 }, all[PLI_CELL_BYTES_F64 / 8] = { 0 };
    for (int32_t t = 0; t < TERMS; t++) {
        double x = input(t, 3 * t) * (double)(INT64_C(1) << 7 * t % 60) * (t % 2 ? -1 : 1);
        pli_cells_add(true, 1, &x, all);
        if (t % w == me) pli_cells_add(true, 1, &x, mine);
        if (t == me)
            for (int64_t i = 0; i < n; i++) buf[i] = x;
    }
    CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_F64, PLAIT_SUM_EXACT) == PLAIT_OK);
    CHECK(pli_comm_sum_cells(comm, true, 1, mine) == PLAIT_OK);
    CHECK(memcmp(mine, all, sizeof all) == 0);
    memset(mine, 0, sizeof mine);
    for (int32_t t = 0; t < w; t++) {
        double x = input(t, 3 * t) * (double)(INT64_C(1) << 7 * t % 60) * (t % 2 ? -1 : 1);
        pli_cells_add(true, 1, &x, mine);
    }
    pli_cells_round(true, 1, mine, mine);
    for (int64_t i = 0; i < n; i++) CHECK(memcmp(&buf[i], mine, sizeof *buf) == 0);
    return PLAIT_OK;
}

enum { N_MAX = 200000, FLIGHTS = 4 };

/* Several sums of different sizes are under way, with one that is waited for at once between them; they are waited
 * for from the last to the first. */
static plait_status several(plait_comm *comm, double *buf) {
    static const int64_t lengths[FLIGHTS] = { N_MAX / FLIGHTS, 10, 5000, 40000 };
    plait_request       *request[FLIGHTS];
    int32_t              w = plait_comm_workers(comm);
    for (int k = 0; k < FLIGHTS; k++) {
        double *mine = buf + k * (N_MAX / FLIGHTS);
        for (int64_t i = 0; i < lengths[k]; i++) mine[i] = (double)(plait_comm_rank(comm) + 1) * (double)(i + k);
        CHECK(plait_comm_allreduce_begin(comm, mine, lengths[k], PLAIT_F64, PLAIT_SUM, &request[k]) == PLAIT_OK);
        if (k == 1) {
            static double between[9000];
            for (int64_t i = 0; i < 9000; i++) between[i] = 1;
            CHECK(plait_comm_allreduce(comm, between, 9000, PLAIT_F64, PLAIT_SUM) == PLAIT_OK && between[8999] == w);
        }
    }
    for (int k = FLIGHTS - 1; k >= 0; k--) {
        const double *mine = buf + k * (N_MAX / FLIGHTS);
        CHECK(plait_request_wait(&request[k]) == PLAIT_OK);
        for (int64_t i = 0; i < lengths[k]; i++) CHECK(mine[i] == (double)(w * (w + 1) / 2) * (double)(i + k));
    }
    return PLAIT_OK;
}

static plait_status exchange(plait_comm *comm, double *buf, unsigned char *all) {
    static const int64_t lengths[] = { 0, 1, 300, 2049, 5000, N_MAX };
    int32_t              me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        int64_t n = lengths[k];
        PLI_TRY(reduce(comm, n, buf, false));
        PLI_TRY(reduce(comm, n, buf, true));
        PLI_TRY(reduce_exactly(comm, n, buf));
        for (int32_t root = 0; root < w; root++) {
            for (int64_t i = 0; i < n; i++) buf[i] = me == root ? (double)(i + root) : -1;
            CHECK(plait_comm_broadcast(comm, buf, (size_t)n * sizeof *buf, root) == PLAIT_OK);
            for (int64_t i = 0; i < n; i++) CHECK(buf[i] == (double)(i + root));
        }
        memset(buf, me, (size_t)n);
        CHECK(plait_comm_allgather(comm, buf, (size_t)n, all) == PLAIT_OK);
        for (int64_t i = 0; i < n * w; i++) CHECK(all[i] == i / n);
        CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    }
    for (int round = 0; round < 5; round++) PLI_TRY(several(comm, buf));
    return PLAIT_OK;
}

/* Collects how many bytes every rank has sent: the same on every transport. */
static plait_status collect(plait_comm *comm, void *user) {
    uint64_t *sent = user;
    if (plait_comm_rank(comm) >= plait_comm_workers(comm)) return PLAIT_OK;
    double        *buf = calloc(N_MAX, sizeof *buf);
    unsigned char *all = calloc((size_t)plait_comm_size(comm), N_MAX);
    plait_status   status = buf != NULL && all != NULL ? exchange(comm, buf, all) : PLAIT_ENOMEM;
    free(buf);
    free(all);
    sent[plait_comm_rank(comm)] = plait_comm_bytes_sent(comm);
    return status;
}

static plait_status scatter(plait_comm *comm, int64_t n, double *buf) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    int64_t first, count;
    plait_comm_slice(comm, n, me, &first, &count);
    for (int64_t i = 0; i < n; i++) buf[i] = input(me, i);
    CHECK(plait_comm_reduce_scatter(comm, buf, n, PLAIT_F64, PLAIT_SUM) == PLAIT_OK);
    for (int64_t i = first; i < first + count; i++) {
        double want = 0;
        for (int32_t r = 0; r < w; r++) want += input(r, i);
        CHECK(buf[i] - want < 1e-9 && want - buf[i] < 1e-9);
    }
    return PLAIT_OK;
}

static plait_status sums(plait_comm *comm, void *user) {
    static double buf[5000];
    (void)user;
    for (int64_t n = 0; n < 5000; n = 3 * n + 1) {
        PLI_TRY(reduce(comm, n, buf, false));
        PLI_TRY(reduce(comm, n, buf, true));
        PLI_TRY(scatter(comm, n, buf));
    }
    return PLAIT_OK;
}

static plait_status messages(plait_comm *comm, void *user) {
    (void)user;
    static const size_t sizes[] = { 0, 8, 3840, 3841, 100000, 3000000 };
    enum { SIZES = sizeof sizes / sizeof sizes[0], ROUNDS = 5, LARGEST = 3000000 };
    int32_t        me = plait_comm_rank(comm), size = plait_comm_size(comm), from;
    unsigned char *data = malloc(LARGEST);
    CHECK(data != NULL);
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < SIZES; k++) {
            memset(data, me * 7 + k + round, sizes[k]);
            for (int32_t to = 0; to < size; to++) CHECK(plait_comm_send(comm, to, 1, data, sizes[k]) == PLAIT_OK);
        }
    for (int32_t src = 0; src < size; src++)
        for (int i = 0; i < ROUNDS * SIZES; i++) {
            size_t bytes;
            CHECK(plait_comm_recv(comm, src, 1, data, LARGEST, &bytes, &from) == PLAIT_OK);
            CHECK(bytes == sizes[i % SIZES] && from == src);
            for (size_t b = 0; b < bytes; b++) CHECK(data[b] == (unsigned char)(src * 7 + i % SIZES + i / SIZES));
        }
    free(data);
    return PLAIT_OK;
}

/* Machines answer each other until arg64 is used up. */
struct counter { _Atomic int64_t told; };
static void count_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    (void)now_ns;
    struct counter *c = state;
    c->told++;
    pli_out_ring(out);
    if (msg->head.arg64 > 0) {
        pli_msg *answer = pli_msg_of_slab(msg->body, msg->offset, msg->head.body_bytes);
        answer->head.dst = msg->head.src;
        answer->head.port = PLI_PORT_SERVER;
        answer->head.arg64 = msg->head.arg64 - 1;
        pli_out_send(out, answer);
    }
    pli_msg_free(&msg);
}
static const pli_machine_ops counter_ops = { .name = "counter", .on_message = count_message };
struct await { struct counter *counter; int64_t n; };
static bool has_counted(void *arg) {
    struct await *a = arg;
    return a->counter->told >= a->n;
}

static plait_status machines(plait_comm *comm, void *user) {
    (void)user;
    struct counter c = { 0 };
    pli_port      *port = NULL;
    enum { GAMES = 20, LENGTH = 49 };
    PLI_TRY(pli_port_open(comm, PLI_PORT_SERVER, &counter_ops, &c, &port, pli_comm_error(comm)));
    for (int i = 0; i < GAMES; i++)
        for (int32_t to = 0; to < plait_comm_size(comm); to++) {
            uint64_t now_ns;
            pli_out  out;
            pli_port_enter(port, &now_ns, &out);
            pli_msg *msg = pli_msg_new((size_t)i * 1000);
            msg->head.dst = to;
            msg->head.port = PLI_PORT_SERVER;
            msg->head.arg64 = LENGTH;
            pli_out_send(&out, msg);
            pli_port_leave(port, &out);
        }
    struct await await = { .counter = &c, .n = (int64_t)plait_comm_size(comm) * GAMES * (LENGTH + 1) };
    PLI_TRY(pli_comm_wait(comm, has_counted, &await, NULL, pli_comm_error(comm)));
    if (pli_comm_is_worker(comm)) CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    pli_port_close(&port);
    CHECK(c.told == await.n);
    return PLAIT_OK;
}

static plait_status mismatch(plait_comm *comm, void *user) {
    (void)user;
    static double buf[10000];
    return plait_comm_allreduce(comm, buf, plait_comm_rank(comm) == 2 ? 9000 : 10000, PLAIT_F64, PLAIT_SUM);
}

/* Rank 1 fails; the others wait for it in a collective (a large one, by MPI) or for a message. */
static plait_status fail_one(plait_comm *comm, void *user) {
    (void)user;
    static double buf[10000];
    if (plait_comm_rank(comm) == 1) return pli_fail(pli_comm_error(comm), PLAIT_EFORMAT, "the dog ate it");
    if (plait_comm_rank(comm) == 2) return plait_comm_recv(comm, 1, 0, buf, 8, NULL, NULL);
    return plait_comm_allreduce(comm, buf, 10000, PLAIT_F64, PLAIT_SUM);
}

static plait_status leave_one(plait_comm *comm, void *user) {
    (void)user;
    char byte;
    if (plait_comm_rank(comm) == 1) return PLAIT_OK;
    if (plait_comm_rank(comm) == 2)
        return plait_comm_recv(comm, 1, 0, &byte, 1, NULL, NULL) == PLAIT_EPEER ? 0 : PLAIT_EIO;
    return plait_comm_barrier(comm) == PLAIT_EPEER ? PLAIT_OK : PLAIT_EIO;
}

/* --- processes that die or freeze, with an MPI that tells of deaths (mpirun --with-ft ulfm) ----------------------- */

/* Rank 1 is killed or stopped while all others wait, each in another way. Their own clocks tell how long the news
 * took. */
static plait_status lose_one(plait_comm *comm, void *user) {
    static double buf[100000];
    int           by = *(const int *)user;
    char          byte;
    int32_t       me = plait_comm_rank(comm);
    if (me == 1) {
        for (int32_t r = 0; r < plait_comm_size(comm); r++)
            if (r != 1) CHECK(plait_comm_recv(comm, r, 1, &byte, 1, NULL, NULL) == PLAIT_OK);
        raise(by);
        return plait_comm_recv(comm, 0, 9, &byte, 1, NULL, NULL); /* it was stopped, and goes on too late */
    }
    CHECK(plait_comm_send(comm, 1, 1, "x", 1) == PLAIT_OK);
    raise(SIGPIPE); /* as a write to the dead rank would, if it came in time */
    return me % 2 == 0 ? plait_comm_allreduce(comm, buf, 100000, PLAIT_F64, PLAIT_SUM)
                       : plait_comm_recv(comm, 1, 0, buf, 8, NULL, NULL);
}

/* The job goes on without the dead rank: a call that needs it ends with EPEER, messages pass. */
static plait_status outlive(plait_comm *comm, void *user) {
    static double buf[100000], other[100000];
    plait_request *request = NULL;
    int32_t        me = plait_comm_rank(comm), size = plait_comm_size(comm);
    pli_comm_survive(comm);
    plait_status status = lose_one(comm, user);
    CHECK(me != 1 && status == PLAIT_EPEER && strstr(plait_comm_error(comm)->text, "rank 1") != NULL);
    CHECK(plait_comm_barrier(comm) == PLAIT_EPEER && strstr(plait_comm_error(comm)->text, "has died") != NULL);
    CHECK(plait_comm_allgather(comm, &me, sizeof me, buf) == PLAIT_EPEER);
    CHECK(strstr(plait_comm_error(comm)->text, "rank 1 on host ") != NULL);
    CHECK(plait_comm_allreduce(comm, buf, 100000, PLAIT_F64, PLAIT_SUM) == PLAIT_EPEER);
    CHECK(plait_comm_recv(comm, 1, 0, buf, 8, NULL, NULL) == PLAIT_EPEER);
    status = plait_comm_allreduce_begin(comm, buf, 100000, PLAIT_F64, PLAIT_SUM, &request);
    CHECK((status == PLAIT_OK ? plait_request_wait(&request) : status) == PLAIT_EPEER);
    for (int64_t i = 0; i < 100000; i++) buf[i] = (double)(me + i);
    for (int32_t to = 0; to < size; to++) CHECK(to == 1 || plait_comm_send(comm, to, 4, buf, sizeof buf) == PLAIT_OK);
    for (int32_t from = 0; from < size; from++) {
        if (from == 1) continue;
        CHECK(plait_comm_recv(comm, from, 4, other, sizeof other, NULL, NULL) == PLAIT_OK);
        CHECK(other[0] == from && other[99999] == from + 99999);
    }
    CHECK(!pli_comm_has_failed(comm));
    return PLAIT_OK;
}

/* Rank 0 gives its part and leaves; the others come to the collective when it has left. */
static plait_status come_late(plait_comm *comm, void *user) {
    (void)user;
    static unsigned char given[16000];
    char    byte;
    int32_t me = plait_comm_rank(comm);
    if (me == 0) memset(given, 7, sizeof given);
    else CHECK(plait_comm_recv(comm, 0, 0, &byte, 1, NULL, NULL) == PLAIT_EPEER);
    PLI_TRY(plait_comm_broadcast(comm, given, sizeof given, 0));
    CHECK(given[0] == 7 && given[sizeof given - 1] == 7);
    return PLAIT_OK;
}

/* Rank 0 waits in a collective to which rank 1 never comes. */
static plait_status miss(plait_comm *comm, void *user) {
    (void)user;
    char byte;
    if (plait_comm_rank(comm) == 0) return plait_comm_barrier(comm);
    return plait_comm_recv(comm, 0, 5, &byte, 1, NULL, NULL);
}

static plait_status wait_in_vain(plait_comm *comm, void *user) {
    (void)user;
    char byte;
    return plait_comm_recv(comm, 1 - plait_comm_rank(comm), 5, &byte, 1, NULL, NULL);
}

struct outcome {
    plait_status status;
    plait_error  err;
};
static struct outcome run(const char *transport, int32_t workers, int32_t servers, plait_body_fn *body, void *user) {
    plait_comm_opts opts;
    struct outcome  o;
    plait_comm_opts_init(&opts);
    opts.transport = transport;
    opts.workers = workers;
    opts.servers = servers;
    opts.collective = collective;
    opts.timeout_ns = body == wait_in_vain || body == miss ? 50000000 : UINT64_C(60000000000);
    o.status = plait_comm_run(&opts, body, user, &o.err);
    return o;
}

/* The verdict of a rank that has lost a peer: MPI was left in the middle, so its work at the end of a process must
 * not run. */
static int last_verdict(struct outcome o, bool right) {
    if (!right) fprintf(stderr, "rank %d: %s: %s\n", o.err.rank, plait_status_text(o.status), o.err.text);
    fflush(NULL);
    _exit(right ? 0 : 1);
}

static int verdict(struct outcome o, bool right) {
    if (!right) fprintf(stderr, "rank %d: %s: %s\n", o.err.rank, plait_status_text(o.status), o.err.text);
    return right ? 0 : 1;
}

static plait_status meet(plait_comm *comm, void *user) {
    (void)user;
    return plait_comm_barrier(comm);
}

/* From now on no rank gets shared memory. MPI has its own already. */
static bool live_apart(void) {
    struct rlimit limit;
    apart = run("mpi", 0, 0, meet, NULL).status == PLAIT_OK && getrlimit(RLIMIT_FSIZE, &limit) == 0;
    limit.rlim_cur = 1 << 16;
    signal(SIGXFSZ, SIG_IGN);
    return apart && setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static plait_status tell_story(plait_comm *comm, void *user) {
    (void)user;
    return group_story(comm);
}

static bool is_stopped(pid_t pid) {
    char  path[40], state = '?';
    FILE *file;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = '?';
    if (file != NULL) fclose(file);
    return state == 'T';
}

int main(int argc, char **argv) {
    const char    *what = argc > 1 ? argv[1] : "";
    uint64_t       sent[16] = { 0 };
    struct outcome o;
    /* Only Open MPI lets sent data wait for its receiver; another MPI ignores this setting. */
    if (strcmp(what, "groups") == 0) {
        o = run("mpi", 0, 0, tell_story, NULL);
        return verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "late") == 0) {
        setenv("OMPI_MCA_btl", "tcp,self", 0);
        setenv("OMPI_MCA_btl_tcp_eager_limit", "512", 0);
    }
    if (argc > 2 && !live_apart()) return 1;
    if (strcmp(what, "collect") == 0 || strcmp(what, "again") == 0) {
        o = run(NULL, 0, 0, collect, sent);
        if (strcmp(what, "again") == 0 && o.status == PLAIT_OK) o = run("mpi", 0, 1, collect, sent);
        return verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "forms") == 0) { /* each form on all ranks; then a form that one rank does not know */
        for (int32_t k = 0; k < PLI_COLLECTIVES; k++) {
            collective = pli_collectives[k];
            o = run("mpi", 0, 0, sums, NULL);
            if (o.status < 0) return verdict(o, false);
        }
        collective = pli_launcher_find().rank == 1 ? "tree" : "ring";
        o = run("mpi", 0, 0, sums, NULL);
        return verdict(o, o.status == PLAIT_EMISMATCH &&
                              strstr(o.err.text, "rank 1 with --collective tree, rank 0 with ring") != NULL);
    }
    if (strcmp(what, "messages") == 0) {
        o = run("mpi", 0, 0, messages, NULL);
        return verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "servers") == 0) {
        o = run("mpi", 2, 2, collect, sent);
        return verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "machines") == 0) {
        o = run("mpi", 0, 1, machines, NULL);
        return verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "mismatch") == 0) {
        o = run("mpi", 0, 0, mismatch, NULL);
        return verdict(o, (o.status == PLAIT_EMISMATCH || o.status == PLAIT_EPEER) &&
                              strstr(o.err.text, "rank 2 called") != NULL);
    }
    if (strcmp(what, "fail") == 0) {
        o = run("mpi", 0, 0, fail_one, NULL);
        return verdict(o, (o.status == PLAIT_EPEER || o.status == PLAIT_EFORMAT) &&
                              strstr(o.err.text, "the dog ate it") != NULL);
    }
    if (strcmp(what, "leave") == 0) {
        o = run("mpi", 0, 0, leave_one, NULL);
        return verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "late") == 0) {
        o = run("mpi", 0, 0, come_late, NULL);
        return verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "timeout") == 0 || strcmp(what, "miss") == 0) {
        o = run("mpi", 0, 0, strcmp(what, "miss") == 0 ? miss : wait_in_vain, NULL);
        return verdict(o, o.status == PLAIT_ETIMEOUT || o.status == PLAIT_EPEER);
    }
    if (strcmp(what, "killed") == 0) {
        int by = SIGKILL;
        o = run("mpi", 0, 0, lose_one, &by);
        return last_verdict(o, o.status == PLAIT_EPEER && strstr(o.err.text, "rank 1 on host ") != NULL &&
                                   strstr(o.err.text, "has died") != NULL);
    }
    if (strcmp(what, "survive") == 0) {
        int by = SIGKILL;
        o = run("mpi", 0, 0, outlive, &by);
        return last_verdict(o, o.status == PLAIT_OK);
    }
    if (strcmp(what, "frozen") == 0) { /* the stopped rank's own child lets it go on, much later */
        int by = SIGSTOP, me = pli_launcher_find().rank;
        if (me == 1 && fork() == 0) {
            const pid_t parent = getppid();
            while (getppid() == parent && !is_stopped(parent)) usleep(10000);
            sleep(12);
            if (getppid() == parent) kill(parent, SIGCONT);
            _exit(0);
        }
        o = run("mpi", 0, 0, lose_one, &by);
        return last_verdict(o, o.status == PLAIT_EPEER &&
                              (me == 1 || strstr(o.err.text, "rank 1 on host ") != NULL) &&
                              strstr(o.err.text, me == 1 ? "rank" : "has not been heard for 5 s") != NULL);
    }
    if (strcmp(what, "counts") == 0) {
        o = run("mpi", 7, 0, messages, NULL);
        if (o.status == PLAIT_EINVAL) o = run("mpi", 0, 2, messages, NULL);
        return verdict(o, o.status == PLAIT_EINVAL);
    }
    if (strcmp(what, "alone") == 0) { /* never N single runs; without its module an error with the remedy */
        o = run("threads", 0, 0, messages, NULL);
        return verdict(o, o.status == PLAIT_EINVAL && strstr(o.err.text, "has started 2") != NULL);
    }
    fprintf(stderr, "unknown scenario: %s\n", what);
    return 2;
}
