/* Seeded hangs and mismatches, each of which the doctor must name, with ranks and calls, long before the waits'
 * deadline.
 *
 *     hangs [--transport NAME] [--workers N] [name...]     all that are called so or begin so; without one: all
 *
 * On threads N workers are started for each; under a launcher its processes are the workers, and each judges what it
 * has seen. A hang that is not found ends by the deadline, with PLAIT_ETIMEOUT, and so fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <plait/comm.h>
#include <plait/table.h>

#include "comm/comm.h"

enum { HANGS_MAX = 96, SAYS_MAX = 3, LARGE = 10000 };
#define DEADLINE_NS (UINT64_C(60) * 1000000000)

typedef struct hang hang;
struct hang {
    char          name[48];
    plait_status  code;             /* of a rank that finds it; the others may hear of its failure first */
    const char   *says[SAYS_MAX];   /* in the text */
    plait_body_fn *body;            /* one of the two */
    plait_work_fn *work;
    const char   *topology, *consistency;
    int32_t       n, others, servers, least; /* least: workers needed */
    plait_status  or_code;          /* where a transport makes another end of it */
};

/* --- messages ------------------------------------------------------------------------------------------------- */

enum { END = 0, FOLLOW = 1, WORK = 2 };

static void work_a_while(plait_comm *comm) {
    bool simulated = pli_comm_charges(comm);
    pli_comm_work(comm, PLI_WORK_ENTRIES, 1000000000); /* seconds of simulated time */
    for (int i = 0; i < 150 && !simulated; i++) nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

/* Rank r < n waits for rank r + 1, the last for rank 0; the others end, wait for them too, or compute. */
static plait_status ring(plait_comm *comm, void *user) {
    const hang *h = user;
    int32_t     me = plait_comm_rank(comm);
    char        byte;
    if (me < h->n) return plait_comm_recv(comm, (me + 1) % h->n, 7, &byte, 1, NULL, NULL);
    if (h->others == FOLLOW) return plait_comm_recv(comm, me - 1, 7, &byte, 1, NULL, NULL);
    if (h->others == WORK) work_a_while(comm);
    return PLAIT_OK;
}

static plait_status anybody(plait_comm *comm, void *user) {
    const hang *h = user;
    char        byte;
    if (plait_comm_rank(comm) >= h->n) return PLAIT_OK;
    return plait_comm_recv(comm, -1, 7, &byte, 1, NULL, NULL);
}

/* What is asked for never comes; another message does. */
static plait_status wrong_tag(plait_comm *comm, void *user) {
    (void)user;
    int32_t me = plait_comm_rank(comm);
    char    byte = 0;
    if (me > 1) return PLAIT_OK;
    PLI_TRY(plait_comm_send(comm, 1 - me, 8, &byte, 1));
    return plait_comm_recv(comm, 1 - me, 7, &byte, 1, NULL, NULL);
}

static plait_status from_one_that_left(plait_comm *comm, void *user) {
    (void)user;
    char byte;
    return plait_comm_rank(comm) == 1 ? PLAIT_OK : plait_comm_recv(comm, 1, 7, &byte, 1, NULL, NULL);
}

/* --- collectives ------------------------------------------------------------------------------------------------ */

static plait_status recv_of(plait_comm *comm, int32_t from) {
    char byte;
    return plait_comm_recv(comm, from, 9, &byte, 1, NULL, NULL);
}

static plait_status sum(plait_comm *comm, int64_t n, plait_type type, plait_reduce op) {
    double *buf = calloc((size_t)n, sizeof *buf);
    if (buf == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allreduce(comm, buf, n, type, op);
    free(buf);
    return status;
}

static plait_status copy_of(plait_comm *comm, size_t bytes, int32_t root) {
    char *buf = calloc(bytes, 1);
    if (buf == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_broadcast(comm, buf, bytes, root);
    free(buf);
    return status;
}

static plait_status all_of(plait_comm *comm, size_t bytes) {
    char *all = calloc((size_t)plait_comm_size(comm), bytes);
    if (all == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allgather(comm, all, bytes, all);
    free(all);
    return status;
}

/* Rank 1 does another thing than the rest. */
static bool is_odd(const plait_comm *comm) { return plait_comm_rank(comm) == 1; }

static plait_status op(plait_comm *comm, void *user) {
    (void)user;
    return sum(comm, 4, PLAIT_F64, is_odd(comm) ? PLAIT_MAX : PLAIT_SUM);
}
static plait_status dtype(plait_comm *comm, void *user) {
    (void)user;
    return sum(comm, 4, is_odd(comm) ? PLAIT_I64 : PLAIT_F64, PLAIT_SUM);
}
static plait_status count(plait_comm *comm, void *user) {
    const hang *h = user;
    return sum(comm, is_odd(comm) ? h->n - 1 : h->n, PLAIT_F32, PLAIT_SUM);
}
static plait_status root(plait_comm *comm, void *user) {
    (void)user;
    PLI_TRY(copy_of(comm, 100, is_odd(comm) ? 1 : 0));
    return plait_comm_barrier(comm); /* a root does not wait */
}
static plait_status length(plait_comm *comm, void *user) {
    (void)user;
    PLI_TRY(copy_of(comm, is_odd(comm) ? 50 : 100, 0));
    return plait_comm_barrier(comm);
}
static plait_status piece(plait_comm *comm, void *user) {
    (void)user;
    return all_of(comm, is_odd(comm) ? 50 : 100);
}
static plait_status barrier_or_sum(plait_comm *comm, void *user) {
    (void)user;
    return is_odd(comm) ? sum(comm, 4, PLAIT_F64, PLAIT_SUM) : plait_comm_barrier(comm);
}
static plait_status gather_or_sum(plait_comm *comm, void *user) {
    (void)user;
    return is_odd(comm) ? sum(comm, LARGE, PLAIT_F64, PLAIT_SUM) : all_of(comm, 8);
}
static plait_status order(plait_comm *comm, void *user) {
    (void)user;
    if (is_odd(comm)) {
        PLI_TRY(sum(comm, 4, PLAIT_F64, PLAIT_SUM));
        return plait_comm_barrier(comm);
    }
    PLI_TRY(plait_comm_barrier(comm));
    return sum(comm, 4, PLAIT_F64, PLAIT_SUM);
}
/* Two differ, and the third has not come and will not. */
static plait_status differ_before_all_came(plait_comm *comm, void *user) {
    (void)user;
    if (plait_comm_rank(comm) >= 2) work_a_while(comm);
    if (plait_comm_rank(comm) >= 2) return recv_of(comm, 0);
    return sum(comm, is_odd(comm) ? 4 : 5, PLAIT_F64, PLAIT_SUM);
}

/* The k-th kind of collective, without rank 1. */
static plait_status nth(plait_comm *comm, int32_t k) {
    if (k == 0) return plait_comm_barrier(comm);
    if (k == 1) return sum(comm, 4, PLAIT_F64, PLAIT_SUM);
    if (k == 2) return sum(comm, LARGE, PLAIT_F64, PLAIT_SUM);
    if (k == 3) return all_of(comm, 100);
    return copy_of(comm, 100, 1);
}
static plait_status without_one_that_left(plait_comm *comm, void *user) {
    return is_odd(comm) ? PLAIT_OK : nth(comm, ((const hang *)user)->n);
}
static plait_status without_one_that_receives(plait_comm *comm, void *user) {
    return is_odd(comm) ? recv_of(comm, 0) : nth(comm, ((const hang *)user)->n);
}
/* Where data is shared, a sum ends when all wait for it; else it may end before, and rank 0 leaves. */
static plait_status begun_and_not_waited_for(plait_comm *comm, void *user) {
    (void)user;
    static double  buf[16][LARGE];
    plait_request *request = NULL;
    int32_t        me = plait_comm_rank(comm);
    PLI_TRY(plait_comm_allreduce_begin(comm, buf[me], LARGE, PLAIT_F64, PLAIT_SUM, &request));
    if (is_odd(comm)) PLI_TRY(recv_of(comm, 0));
    return plait_request_wait(&request);
}
static plait_status chain_to_a_barrier(plait_comm *comm, void *user) {
    (void)user;
    if (plait_comm_rank(comm) == 2) return recv_of(comm, 1);
    return is_odd(comm) ? recv_of(comm, 0) : plait_comm_barrier(comm);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static plait_status none(void *user, const plait_slice *slices, int32_t n_slices, const void *args, size_t args_bytes,
                         void *answer, size_t answer_bytes) {
    (void)user, (void)slices, (void)n_slices, (void)args, (void)args_bytes, (void)answer, (void)answer_bytes;
    return PLAIT_OK;
}
static const plait_function functions[] = { { .name = "none", .updates = 1, .run = none } };

static plait_status make_table(plait_job *job, const char *name, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = 64;
    opts.cols = 64;
    return plait_table_create(job, &opts, table_out);
}

/* Clocks until a get has to wait for rank 1, which does not clock. */
static plait_status run_ahead(plait_job *job, plait_table *table, bool begin) {
    float values[64 * 64];
    for (int i = 0; i < 6; i++) {
        plait_request *request = NULL;
        if (begin) {
            PLI_TRY(plait_table_get_range_begin(table, 0, 64, values, &request));
            PLI_TRY(plait_request_wait(&request));
        } else {
            PLI_TRY(plait_table_get_range(table, 0, 64, values));
        }
        PLI_TRY(plait_job_clock(job));
    }
    return PLAIT_OK;
}
static plait_status never_clocks(plait_job *job, void *user) {
    const hang  *h = user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table = NULL;
    PLI_TRY(make_table(job, "w", &table));
    if (!is_odd(comm)) return run_ahead(job, table, h->n == 3);
    if (h->n == 1) return plait_comm_barrier(comm);
    if (h->n == 2) return sum(comm, LARGE, PLAIT_F64, PLAIT_SUM);
    return recv_of(comm, 0);
}
static plait_status table_barrier(plait_job *job, void *user) {
    const hang  *h = user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table = NULL;
    PLI_TRY(make_table(job, "w", &table));
    if (!is_odd(comm)) return plait_job_barrier(job);
    return h->n == 0 ? sum(comm, 4, PLAIT_F64, PLAIT_SUM) : recv_of(comm, 0);
}
static plait_status call_without_one(plait_job *job, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table = NULL;
    PLI_TRY(make_table(job, "w", &table));
    return is_odd(comm) ? plait_comm_barrier(comm) : plait_table_call(&table, 1, "none", NULL, 0, NULL, 0);
}
static plait_status end_without_one(plait_job *job, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table = NULL;
    PLI_TRY(make_table(job, "w", &table));
    return is_odd(comm) ? plait_comm_barrier(comm) : PLAIT_OK; /* the others leave the job, which all do together */
}
static plait_status clock_or_barrier(plait_job *job, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table = NULL;
    float        values[64 * 64] = { 0 };
    PLI_TRY(make_table(job, "w", &table));
    if (is_odd(comm)) return plait_comm_barrier(comm);
    PLI_TRY(plait_table_inc_range(table, 0, 64, values, 1));
    return plait_job_clock(job);
}
static plait_status create_or_barrier(plait_job *job, void *user) {
    (void)user;
    plait_table *table = NULL;
    return is_odd(plait_job_comm(job)) ? plait_comm_barrier(plait_job_comm(job)) : make_table(job, "w", &table);
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static int32_t add_rings(hang *all, int32_t n, int32_t workers) {
    static const char *const others[] = { "end", "follow", "work" };
    for (int32_t length = 1; length <= workers; length++)
        for (int32_t kind = END; kind <= WORK; kind++) {
            if (length == workers && kind != END) continue; /* there are no others */
            hang *h = &all[n++];
            *h = (hang){ .code = PLAIT_EDEADLOCK, .body = ring, .n = length, .others = kind,
                         .says = { "waits for a message with tag 7, held up by rank",
                                   "plait_comm_recv, call 1, hangs.c:" } };
            snprintf(h->name, sizeof h->name, "ring-of-%d-others-%s", length, others[kind]);
        }
    return n;
}

static int32_t add_collectives(hang *all, int32_t n) {
    static const char *const kinds[] = { "barrier", "sum", "large-sum", "allgather", "broadcast" };
    static const char *const calls[] = {
        "(plait_comm_barrier, call 1, hangs.c:", "(plait_comm_allreduce, call 1, hangs.c:",
        "(plait_comm_allreduce, call 1, hangs.c:", "(plait_comm_allgather, call 1, hangs.c:",
        "(plait_comm_broadcast, call 1, hangs.c:"
    };
    for (int32_t k = 0; k < 5; k++) {
        all[n] = (hang){ .code = PLAIT_EPEER, .body = without_one_that_left, .n = k,
                         .says = { "rank 1 has left", calls[k] } };
        snprintf(all[n++].name, sizeof all->name, "%s-one-left", kinds[k]);
        all[n] = (hang){ .code = PLAIT_EDEADLOCK, .body = without_one_that_receives, .n = k,
                         .says = { calls[k], "rank 1 waits for a message with tag 9, held up by rank 0 "
                                             "(plait_comm_recv, call 1" } };
        snprintf(all[n++].name, sizeof all->name, "%s-one-receives", kinds[k]);
    }
    return n;
}

static const hang others[] = {
    { .name = "anybody", .code = PLAIT_EDEADLOCK, .body = anybody, .n = 99, .says = { "of any rank", "hangs.c:" } },
    { .name = "anybody-of-two", .code = PLAIT_EDEADLOCK, .body = anybody, .n = 2,
      .says = { "of any rank", "hangs.c:" } },
    { .name = "nobody-left", .code = PLAIT_EPEER, .body = anybody, .n = 1,
      .says = { "all other ranks have left", "hangs.c:" } },
    { .name = "wrong-tag", .code = PLAIT_EDEADLOCK, .body = wrong_tag, .says = { "with tag 7", "hangs.c:" } },
    { .name = "recv-one-left", .code = PLAIT_EPEER, .body = from_one_that_left,
      .says = { "rank 1 has left", "(plait_comm_recv, call 1, hangs.c:" } },
    { .name = "differ-op", .code = PLAIT_EMISMATCH, .body = op,
      .says = { "of 4 f64 (sum)", "of 4 f64 (max)", "hangs.c:" } },
    { .name = "differ-type", .code = PLAIT_EMISMATCH, .body = dtype, .says = { "of 4 f64", "of 4 i64", "hangs.c:" } },
    { .name = "differ-count", .code = PLAIT_EMISMATCH, .body = count, .n = 5,
      .says = { "of 5 f32", "of 4 f32", "hangs.c:" } },
    { .name = "differ-large-count", .code = PLAIT_EMISMATCH, .body = count, .n = LARGE,
      .says = { "of 10000 f32", "of 9999 f32", "hangs.c:" } },
    { .name = "differ-forms", .code = PLAIT_EMISMATCH, .body = count, .n = 4097,
      .says = { "of 4097 f32", "of 4096 f32", "hangs.c:" } },
    { .name = "differ-root", .code = PLAIT_EMISMATCH, .body = root,
      .says = { "from rank 0", "from rank 1", "hangs.c:" } },
    { .name = "differ-length", .code = PLAIT_EMISMATCH, .body = length,
      .says = { "of 100 bytes", "of 50 bytes", "hangs.c:" } },
    { .name = "differ-piece", .code = PLAIT_EMISMATCH, .body = piece,
      .says = { "of 100 bytes", "of 50 bytes", "hangs.c:" } },
    { .name = "differ-kind", .code = PLAIT_EMISMATCH, .body = barrier_or_sum,
      .says = { "barrier", "allreduce of 4 f64", "hangs.c:" } },
    { .name = "differ-kind-large", .code = PLAIT_EMISMATCH, .body = gather_or_sum,
      .says = { "allgather", "allreduce of 10000 f64", "hangs.c:" } },
    { .name = "differ-order", .code = PLAIT_EMISMATCH, .body = order,
      .says = { "barrier", "allreduce of 4 f64", "hangs.c:" } },
    { .name = "differ-early", .code = PLAIT_EMISMATCH, .body = differ_before_all_came, .least = 3,
      .says = { "allreduce of", "hangs.c:" } },
    { .name = "begun", .code = PLAIT_EDEADLOCK, .or_code = PLAIT_EPEER, .body = begun_and_not_waited_for,
      .says = { "plait_comm_recv, call", "hangs.c:" } },
    { .name = "chain-to-barrier", .code = PLAIT_EDEADLOCK, .body = chain_to_a_barrier, .least = 3,
      .says = { "barrier", "rank 1 waits for", "hangs.c:" } },

    { .name = "bsp-one-receives", .code = PLAIT_EDEADLOCK, .work = never_clocks, .consistency = "bsp",
      .says = { "of table w, held up by rank 1 (in clock 0) (plait_table_get_range, call",
                "rank 1 waits for a message with tag 9" } },
    { .name = "bsp-one-in-barrier", .code = PLAIT_EDEADLOCK, .work = never_clocks, .n = 1, .consistency = "bsp",
      .says = { "of table w, held up by rank 1", "rank 1 waits for barrier" } },
    { .name = "bsp-begun-get", .code = PLAIT_EDEADLOCK, .work = never_clocks, .n = 3, .consistency = "bsp",
      .says = { "of table w, held up by rank 1", "plait_request_wait of plait_table_get_begin",
                "rank 1 waits for a message with tag 9" } },
    { .name = "ssp-one-receives", .code = PLAIT_EDEADLOCK, .work = never_clocks, .consistency = "ssp:2",
      .says = { "of table w, held up by rank 1 (in clock 0)", "rank 1 waits for a message with tag 9" } },
    { .name = "ssp-one-in-sum", .code = PLAIT_EDEADLOCK, .work = never_clocks, .n = 2, .consistency = "ssp:1",
      .says = { "of table w, held up by rank 1", "rank 1 waits for allreduce" } },
    { .name = "bsp-apart", .code = PLAIT_EDEADLOCK, .work = never_clocks, .consistency = "bsp", .servers = 1,
      .least = 2, .says = { "of table w, held up by rank 1", "rank 1 waits for a message with tag 9" } },
    { .name = "table-barrier-and-sum", .code = PLAIT_EDEADLOCK, .work = table_barrier, .consistency = "bsp",
      .says = { "barrier, held up by rank 1", "(plait_job_barrier, call", "rank 1 waits for allreduce" } },
    { .name = "table-barrier-and-recv", .code = PLAIT_EDEADLOCK, .work = table_barrier, .n = 1, .consistency = "async",
      .says = { "barrier, held up by rank 1", "(plait_job_barrier, call", "rank 1 waits for a message" } },
    { .name = "call-and-barrier", .code = PLAIT_EDEADLOCK, .work = call_without_one, .consistency = "bsp",
      .says = { "held up by rank 1", "plait_table_call, call", "rank 1 waits for barrier" } },
    { .name = "end-and-barrier", .code = PLAIT_EDEADLOCK, .work = end_without_one, .consistency = "bsp",
      .says = { "the end of the job, held up by rank 1", "plait_job_destroy, call", "rank 1 waits for barrier" } },
    { .name = "clock-and-barrier", .code = PLAIT_EMISMATCH, .work = clock_or_barrier, .topology = "allreduce",
      .consistency = "bsp", .says = { "allreduce of", "barrier" } },
    { .name = "create-and-barrier", .code = PLAIT_EMISMATCH, .work = create_or_barrier, .consistency = "bsp",
      .says = { "allgather", "barrier" } },
};

static int32_t make_all(hang *all, int32_t workers) {
    int32_t n = add_collectives(all, add_rings(all, 0, workers < 6 ? workers : 6));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (workers - others[i].servers >= others[i].least) all[n++] = others[i];
    return n;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static bool says_all(const hang *h, const char *text) {
    for (int32_t i = 0; i < SAYS_MAX; i++)
        if (h->says[i] != NULL && strstr(text, h->says[i]) == NULL) return false;
    return true;
}

/* One who hears of another's failure first gets its text, perhaps cut: then the other has the whole. */
static bool is_right(const hang *h, bool one_process, plait_status status, const plait_error *err) {
    if (status == h->code || (h->or_code != 0 && status == h->or_code))
        return h->or_code != 0 || says_all(h, err->text);
    if (one_process) return false;
    return status == PLAIT_OK || (status == PLAIT_EPEER && strstr(err->text, "has failed: ") != NULL);
}

static bool run(const hang *h, const char *transport, int32_t workers) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err;
    bool            one_process = transport != NULL && strcmp(transport, "mpi") != 0;
    plait_comm_opts_init(&comm);
    comm.transport = transport;
    comm.workers = one_process ? workers - h->servers : 0;
    comm.servers = h->servers;
    comm.timeout_ns = DEADLINE_NS;
    plait_job_opts_init(&job);
    job.topology = h->topology != NULL ? h->topology : "ps";
    job.consistency = h->consistency;
    job.functions = functions;
    job.n_functions = 1;
    uint64_t     start_ns = pli_now_ns();
    plait_status status = h->body != NULL ? plait_comm_run(&comm, h->body, (void *)(uintptr_t)h, &err)
                                          : plait_run(&comm, &job, h->work, (void *)(uintptr_t)h, &err);
    double seconds = (double)(pli_now_ns() - start_ns) * 1e-9;
    bool   right = is_right(h, one_process, status, &err);
    if (!right || one_process)
        printf("%s %-28s %5.2f s  %s: %s\n", right ? "named " : "FAILED", h->name, seconds, plait_status_text(status),
               status < 0 ? err.text : "");
    fflush(stdout);
    return right;
}

/* A simulated platform is one a process. */
static bool run_apart(const hang *h, const char *transport, int32_t workers) {
    int   status = 0;
    pid_t child = fork();
    if (child == 0) _exit(run(h, transport, workers) ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv) {
    static hang all[HANGS_MAX];
    const char *transport = "threads";
    int32_t     workers = 4, failed = 0, ran = 0;
    int         first = 1;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--transport") == 0) transport = argv[first + 1];
        if (strcmp(argv[first], "--workers") == 0) workers = (int32_t)strtol(argv[first + 1], NULL, 10);
    }
    int32_t n = make_all(all, workers);
    for (int32_t i = 0; i < n; i++) {
        bool wanted = first >= argc;
        for (int k = first; k < argc; k++) wanted = wanted || strncmp(all[i].name, argv[k], strlen(argv[k])) == 0;
        if (!wanted) continue;
        ran++;
        failed +=
            strcmp(transport, "sim") == 0 ? !run_apart(&all[i], transport, workers) : !run(&all[i], transport, workers);
    }
    if (failed > 0 || strcmp(transport, "mpi") != 0) printf("%d hangs, %d not named\n", ran, failed);
    return ran == 0 || failed > 0;
}
