/* Seeded hangs of a cut graph's channel, each of which must be named, with its edge, micro-batch and ranks, long before
 * the waits' deadline:
 *
 *     circle      ranks that wait for each other: for tensors, or to be granted more, in any mixture
 *     producer    a rank leaves, or is killed, before it has sent what another waits for
 *     receiver    a rank never takes what another sends: it has left, waits in a barrier, or for a message
 *
 *     channels [--transport threads|sim] [--cases N] [--seed S]
 *
 * In simulated time each must end within a second, or within a second after the death
 * is noticed. A hang that is not found ends by the deadline and so fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <plait/comm.h>
#include <plait/comm_channel.h>

#include "base/random.h"
#include "comm/comm.h"

enum { RANKS_MAX = 5, SAYS = 2, SAY_BYTES = 96 };
#define DEADLINE_NS (UINT64_C(60) * 1000000000)

typedef enum kind { CIRCLE, PRODUCER, RECEIVER, KINDS } kind;
typedef enum other { LEFT, BARRIER, MESSAGE, OTHERS } other;

typedef struct hang {
    plait_error  heard; /* killed: what the one that waits for the dead rank has heard */
    kind         kind;
    other        other; /* what the receiver does; CIRCLE: LEFT: ranks outside leave, else they wait for the circle */
    int32_t      ranks, members, grants, sent;
    int32_t      rank[RANKS_MAX];  /* a permutation; the first `members` take part */
    bool         sends[RANKS_MAX]; /* CIRCLE: member i waits to send to the next, else to receive from it */
    int32_t      value[RANKS_MAX];
    bool         killed;      /* PRODUCER, in simulated time: it does not leave, but dies after a second */
    int64_t      micro_batch; /* the first of those that are sent */
    plait_status code;
    char         says[SAYS][SAY_BYTES];
    _Atomic uint64_t took_ns; /* the longest wait that ended; relaxed, it is read when all ranks have ended */
} hang;

/* --- what the ranks do -------------------------------------------------------------------------------------------- */

static plait_edge edge_of(const hang *h, int32_t i, int32_t from, int32_t to, int64_t m) {
    return (plait_edge){ .value = h->value[i], .from = from, .to = to, .micro_batch = h->micro_batch + m };
}

/* Sends micro-batches until no more is granted, `most` of them at most, and then, if there are more, waits. */
static plait_status send_along(const hang *h, plait_comm_channel *channel, int32_t i, int32_t from, int32_t to,
                               int32_t most) {
    const plait_channel *c = plait_comm_channel_calls(channel);
    float                x[] = { 1, 2, 3 };
    const plait_tensor   t = plait_tensor_of(PLAIT_F32, plait_shape_1(3), x);
    for (int64_t m = 0; m < most; m++) {
        const plait_edge edge = edge_of(h, i, from, to, m);
        int              taken = 0;
        while (taken == 0) {
            PLI_TRY(c->send(c->user, &edge, &t, &taken, NULL));
            if (taken == 0) PLI_TRY(c->wait(c->user, &edge, 1, NULL));
        }
    }
    return PLAIT_OK;
}

/* Receives micro-batches [n] along an edge. */
static plait_status receive_along(const hang *h, plait_comm_channel *channel, int32_t i, int32_t from, int32_t to,
                                  int32_t n) {
    const plait_channel *c = plait_comm_channel_calls(channel);
    const plait_tensor   like = { .type = PLAIT_F32, .shape = plait_shape_1(3) };
    for (int64_t m = 0; m < n; m++) {
        const plait_edge edge = edge_of(h, i, from, to, m);
        const void      *data = NULL;
        PLI_TRY(c->wait(c->user, &edge, 0, NULL));
        PLI_TRY(c->receive(c->user, &edge, &like, &data, NULL));
        if (data == NULL) return PLAIT_EDIVERGED;
        c->release(c->user, &edge, data);
    }
    return PLAIT_OK;
}

static plait_status in_circle(const hang *h, plait_comm_channel *channel, int32_t i) {
    const int32_t me = h->rank[i], next = h->rank[(i + 1) % h->members];
    return h->sends[i] ? send_along(h, channel, i, me, next, h->grants + 1) : receive_along(h, channel, i, next, me, 1);
}

static plait_status never_takes(const hang *h, plait_comm *comm) {
    char byte;
    if (h->other == BARRIER) return plait_comm_barrier(comm);
    return h->other == MESSAGE ? plait_comm_recv(comm, h->rank[0], 7, &byte, 1, NULL, NULL) : PLAIT_OK;
}

static plait_status act(const hang *h, plait_comm *comm, plait_comm_channel *channel) {
    int32_t i = 0;
    while (h->rank[i] != plait_comm_rank(comm)) i++;
    if (i >= h->members && h->kind == RECEIVER) return never_takes(h, comm);
    if (i >= h->members) /* outside of it all */
        return h->kind == CIRCLE && h->other != LEFT ? receive_along(h, channel, 0, h->rank[0], h->rank[i], 1)
                                                     : PLAIT_OK;
    if (h->kind == CIRCLE) return in_circle(h, channel, i);
    if (h->kind == PRODUCER && i == 0 && h->killed) {
        PLI_TRY(send_along(h, channel, 0, h->rank[0], h->rank[1], h->sent));
        pli_comm_work(comm, PLI_WORK_ENTRIES, INT64_C(1000000000000)); /* it dies long before this ends */
        return plait_comm_barrier(comm);
    }
    if (h->kind == PRODUCER)
        return i == 0 ? send_along(h, channel, 0, h->rank[0], h->rank[1], h->sent)
                      : receive_along(h, channel, 0, h->rank[0], h->rank[1], h->sent + 1);
    return i == 0 ? send_along(h, channel, 0, h->rank[0], h->rank[1], h->grants + 1) : never_takes(h, comm);
}

static plait_status body(plait_comm *comm, void *user) {
    hang               *h = user;
    plait_comm_channel *channel = NULL;
    const int32_t       ranks[RANKS_MAX] = { 0, 1, 2, 3, 4 };
    PLI_TRY(plait_comm_channel_create(comm, h->ranks, ranks, h->grants, &channel));
    const uint64_t     begun_ns = pli_comm_stamp(comm);
    const plait_status status = act(h, comm, channel);
    const uint64_t     took_ns = pli_comm_stamp(comm) - begun_ns;
    if (status < 0 && took_ns > h->took_ns) h->took_ns = took_ns;
    if (h->killed && status < 0 && plait_comm_rank(comm) == h->rank[1]) h->heard = *pli_comm_error(comm);
    plait_comm_channel_destroy(&channel);
    return status;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* The text of member i's wait. */
static void say_wait(const hang *h, int32_t i, int32_t peer, bool sends, int64_t m, char text[SAY_BYTES]) {
    const int32_t me = h->rank[i];
    if (sends)
        snprintf(text, SAY_BYTES, "part %d on rank %d to receive value %d of part %d, micro-batch %lld", peer, peer,
                 h->value[i], me, (long long)(h->micro_batch + m));
    else
        snprintf(text, SAY_BYTES, "value %d of part %d on rank %d for part %d, micro-batch %lld",
                 h->value[i == 1 && h->kind == PRODUCER ? 0 : i], peer, peer, me, (long long)(h->micro_batch + m));
}

/* How many waits of a circle the text names whole; a text that is too long is cut. */
static int32_t count_named(const hang *h, const char *text) {
    char    wait[SAY_BYTES];
    int32_t n = 0;
    for (int32_t i = 0; i < h->members; i++) {
        say_wait(h, i, h->rank[(i + 1) % h->members], h->sends[i], h->sends[i] ? h->grants : 0, wait);
        n += strstr(text, wait) != NULL;
    }
    return n;
}

/* What the text must say of the others. */
static void say(hang *h) {
    say_wait(h, h->kind == PRODUCER, h->rank[h->kind == PRODUCER ? 0 : 1], h->kind == RECEIVER,
             h->kind == PRODUCER ? h->sent : h->grants, h->says[0]);
    if (h->killed)
        snprintf(h->says[1], SAY_BYTES, "rank %d", h->rank[0]);
    else if (h->kind == PRODUCER || h->other == LEFT)
        snprintf(h->says[1], SAY_BYTES, "rank %d has left; this rank waited for ", h->rank[h->kind == RECEIVER]);
    else
        snprintf(h->says[1], SAY_BYTES,
                 h->other == BARRIER ? "rank %d waits for barrier" : "rank %d waits for a message", h->rank[1]);
}

static void draw(hang *h, uint64_t seed, int32_t number, bool simulated) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, (uint64_t)number, 1);
    *h = (hang){ .kind = (kind)(number % KINDS), .other = (other)(number / KINDS % OTHERS) };
    h->killed = simulated && h->kind == PRODUCER && h->other != LEFT;
    h->ranks = 2 + (int32_t)pli_random_below(&r, RANKS_MAX - 1);
    h->members = h->kind == CIRCLE ? 2 + (int32_t)pli_random_below(&r, (uint64_t)h->ranks - 1) : 2;
    h->grants = 1 + (int32_t)pli_random_below(&r, 3);
    h->sent = (int32_t)pli_random_below(&r, (uint64_t)h->grants + 1);
    h->micro_batch = (int64_t)pli_random_below(&r, 1000);
    for (int32_t i = 0; i < h->ranks; i++) {
        const int32_t at = (int32_t)pli_random_below(&r, (uint64_t)i + 1);
        h->rank[i] = h->rank[at];
        h->rank[at] = i;
        h->sends[i] = pli_random_below(&r, 2) == 0;
        h->value[i] = 10 * i + (int32_t)pli_random_below(&r, 10); /* each edge has its own */
    }
    h->code = h->kind == CIRCLE || (h->kind == RECEIVER && h->other != LEFT) ? PLAIT_EDEADLOCK : PLAIT_EPEER;
    if (h->kind != CIRCLE) say(h);
}

/* Writes the cluster of a case in which a rank is killed. */
static bool write_cluster(const hang *h, char path[32]) {
    snprintf(path, 32, "/tmp/plait-channels-XXXXXX");
    const int fd = mkstemp(path);
    FILE     *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) return false;
    fprintf(file, "version: 1\nhosts:\n  - {count: %d}\nevents:\n  - kill: {ranks: %d, at: 1 s}\n", h->ranks,
            h->rank[0]);
    return fclose(file) == 0;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static bool run(hang *h, const char *transport, int32_t number) {
    static const char *const kinds[] = { "circle", "producer", "receiver" };
    plait_comm_opts          opts;
    plait_error              err = { .code = PLAIT_OK };
    const bool               simulated = strcmp(transport, "sim") == 0;
    plait_comm_opts_init(&opts);
    opts.transport = transport;
    opts.workers = h->ranks;
    opts.timeout_ns = DEADLINE_NS;
    char path[32] = "";
    if (h->killed && !write_cluster(h, path)) return false;
    if (h->killed) opts.cluster = path;
    const plait_status status = plait_comm_run(&opts, body, h, &err);
    if (h->killed) unlink(path);
    if (h->killed) err = h->heard; /* the run's own error is that of the rank that was killed */
    const double seconds = (double)h->took_ns * 1e-9;
    bool         right = status == h->code;
    for (int i = 0; i < SAYS; i++) right = right && strstr(err.text, h->says[i]) != NULL;
    if (h->kind == CIRCLE) right = right && count_named(h, err.text) >= 2;
    if (simulated && seconds > (h->killed ? 2.5 : 1)) right = false; /* 1 s of life, and the notice */
    printf("%s %2d %-8s of %d in %d ranks %5.2f s  %s: %s\n", right ? "named " : "FAILED", number, kinds[h->kind],
           h->members, h->ranks, seconds, plait_status_text(status), err.text);
    for (int i = 0; i < SAYS && !right; i++) printf("       expected: %s\n", h->says[i]);
    fflush(stdout);
    return right;
}

/* Each case is a process of its own: a simulated platform is one a process. */
static bool run_apart(const char *transport, uint64_t seed, int32_t number) {
    int         status = 0;
    const pid_t child = fork();
    if (child == 0) {
        static hang h;
        draw(&h, seed, number, strcmp(transport, "sim") == 0);
        _exit(run(&h, transport, number) ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv) {
    const char *transport = "threads";
    int32_t     cases = 50, failed = 0;
    uint64_t    seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--transport") == 0) transport = argv[i + 1];
        if (strcmp(argv[i], "--cases") == 0) cases = (int32_t)strtol(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) seed = strtoull(argv[i + 1], NULL, 10);
    }
    for (int32_t k = 0; k < cases; k++) failed += !run_apart(transport, seed, k);
    printf("%d hangs of channels, %d not named\n", cases, failed);
    return cases == 0 || failed > 0;
}
