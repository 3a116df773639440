/* Ranks as threads: messages, collectives in both forms, failures, waits. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "comm/shared.h"
#include "comm/world.h"

/* A body runs on a thread of its own, from which cmocka's asserts may not jump: it returns an error, whose text has
 * the line. */
static plait_comm_opts opts_of(int32_t workers, int32_t servers, const char *collective) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.workers = workers;
    opts.servers = servers;
    opts.collective = collective;
    opts.timeout_ns = UINT64_C(600) * 1000000000; /* ranks that are shaken take minutes of a busy machine */
    return opts;
}

static void run_ok(int32_t workers, int32_t servers, const char *collective, plait_body_fn *body, void *user) {
    plait_comm_opts opts = opts_of(workers, servers, collective);
    plait_error     err;
    int64_t         live = pli_alloc_live();
    if (plait_comm_run(&opts, body, user, &err) < 0)
        fail_msg("%d+%d ranks: rank %d: %s", workers, servers, err.rank, err.text);
    assert_int_equal(pli_alloc_live(), live);
}

static const char *const forms[] = { "auto", "messages" }, *const named[] = { "ring", "tree", "recursive",
                                                                              "rabenseifner", "hierarchical" };
static const int32_t     counts[] = { 1, 2, 3, 4, 5, 7, 8 };

/* --- messages ------------------------------------------------------------------------------------------- */

static plait_status pass_round(plait_comm *comm, void *user) {
    (void)user;
    int32_t me = plait_comm_rank(comm), size = plait_comm_size(comm), from;
    size_t  bytes;
    for (int32_t i = 0; i < 50; i++)
        for (int32_t to = 0; to < size; to++) {
            int32_t data[2] = { me, i };
            CHECK(plait_comm_send(comm, to, i % 3, data, sizeof data) == PLAIT_OK);
        }
    for (int32_t src = 0; src < size; src++)
        for (int32_t tag = 2; tag >= 0; tag--)
            for (int32_t i = tag; i < 50; i += 3) {
                int32_t data[2];
                CHECK(plait_comm_recv(comm, src, tag, data, sizeof data, &bytes, &from) == PLAIT_OK);
                CHECK(bytes == sizeof data && from == src && data[0] == src && data[1] == i);
            }
    CHECK(plait_comm_bytes_sent(comm) == (uint64_t)(size - 1) * 50 * (64 + 8));
    return PLAIT_OK;
}

static void test_messages_arrive_in_order_by_tag(void **state) {
    (void)state;
    run_ok(1, 0, NULL, pass_round, NULL);
    run_ok(2, 2, NULL, pass_round, NULL);
    run_ok(5, 0, NULL, pass_round, NULL);
}

static plait_status misuse(plait_comm *comm, void *user) {
    (void)user;
    char   text[4];
    size_t bytes = 0;
    CHECK(plait_comm_send(comm, 1, 0, "x", 1) == PLAIT_EINVAL);
    CHECK(plait_comm_send(comm, 0, -1, "x", 1) == PLAIT_EINVAL);
    CHECK(plait_comm_error(comm)->code == PLAIT_EINVAL && plait_comm_error(comm)->rank == 0);
    CHECK(plait_comm_recv(comm, 3, 0, text, 4, &bytes, NULL) == PLAIT_EINVAL);
    CHECK(plait_comm_send(comm, 0, 7, "0123456", 7) == PLAIT_OK);
    CHECK(plait_comm_recv(comm, -1, 7, text, 4, &bytes, NULL) == PLAIT_ESHAPE && bytes == 7);
    char room[7];
    CHECK(plait_comm_recv(comm, -1, 7, room, 7, &bytes, NULL) == PLAIT_OK && memcmp(room, "0123456", 7) == 0);
    CHECK(plait_comm_recv(comm, -1, 7, room, 7, &bytes, NULL) == PLAIT_EPEER); /* nobody is left to send one */
    CHECK(plait_comm_allreduce(comm, NULL, 3, PLAIT_F32, PLAIT_SUM) == PLAIT_EINVAL);
    CHECK(plait_comm_allreduce(comm, room, 3, PLAIT_U8, PLAIT_SUM) == PLAIT_EINVAL);
    CHECK(plait_comm_reduce_scatter(comm, room, 3, PLAIT_U8, PLAIT_SUM) == PLAIT_EINVAL);
    CHECK(plait_comm_broadcast(comm, room, 3, 1) == PLAIT_EINVAL);
    CHECK(plait_comm_size(comm) == 1 && plait_comm_workers(comm) == 1 && plait_comm_servers(comm) == 0);
    CHECK(plait_comm_one_process(comm) && strcmp(plait_comm_transport(comm), "threads") == 0);
    CHECK(plait_comm_host(comm)[0] != '\0' && plait_comm_threads(comm) >= 1);
    return PLAIT_OK;
}

static void test_misuse_is_answered(void **state) {
    (void)state;
    run_ok(1, 0, NULL, misuse, NULL);
    plait_comm_opts opts = opts_of(1, 0, NULL);
    plait_error     err;
    opts.transport = "thread";
    assert_int_equal(plait_comm_run(&opts, misuse, NULL, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "threads"));
    opts = opts_of(-1, 0, NULL);
    assert_int_equal(plait_comm_run(&opts, misuse, NULL, &err), PLAIT_EINVAL);
    opts = opts_of(1, 0, "smoke");
    assert_int_equal(plait_comm_run(&opts, misuse, NULL, NULL), PLAIT_ENAME);
}

/* --- collectives ----------------------------------------------------------------------------------------- */

static double input(int32_t rank, int64_t i) { return (double)((rank + 1) * 37 + i * 11 % 101) / 7.0; }

/* Scatters at once and begun; gathering the slices gives the whole. */
static plait_status scatter_f64(plait_comm *comm, int64_t n, double *buf) {
    int32_t        me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    plait_request *request = NULL;
    int64_t        first, count;
    plait_comm_slice(comm, n, me, &first, &count);
    for (int begun = 0; begun < 2; begun++) {
        for (int64_t i = 0; i < n; i++) buf[i] = input(me, i);
        if (begun) {
            CHECK(plait_comm_reduce_scatter_begin(comm, buf, n, PLAIT_F64, PLAIT_SUM, &request) == PLAIT_OK);
            CHECK(plait_comm_barrier(comm) == PLAIT_OK && plait_request_wait(&request) == PLAIT_OK);
        } else {
            CHECK(plait_comm_reduce_scatter(comm, buf, n, PLAIT_F64, PLAIT_SUM) == PLAIT_OK);
        }
        for (int64_t i = 0; i < n; i++)
            if (i < first || i >= first + count) buf[i] = -1;
        CHECK(pli_comm_gather_slices(comm, NULL, buf, n, n, sizeof *buf) == PLAIT_OK);
        for (int64_t i = 0; i < n; i++) {
            double want = 0;
            for (int32_t r = 0; r < w; r++) want += input(r, i);
            CHECK(buf[i] - want < 1e-9 && want - buf[i] < 1e-9);
        }
    }
    return PLAIT_OK;
}

static plait_status reduce_f64(plait_comm *comm, int64_t n, double *buf) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    static const plait_reduce ops[] = { PLAIT_SUM, PLAIT_MIN, PLAIT_MAX };
    for (int k = 0; k < 3; k++) {
        for (int64_t i = 0; i < n; i++) buf[i] = input(me, i);
        CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_F64, ops[k]) == PLAIT_OK);
        for (int64_t i = 0; i < n; i++) {
            double want = k == 1 ? input(0, i) : k == 2 ? input(w - 1, i) : 0;
            for (int32_t r = 0; k == 0 && r < w; r++) want += input(r, i);
            double off = buf[i] - want;
            CHECK(off < 1e-9 && off > -1e-9);
        }
    }
    uint64_t mine = pli_hash_bytes(buf, (size_t)n * sizeof *buf, 0), lowest = mine, highest = mine;
    CHECK(plait_comm_allreduce(comm, &lowest, 1, PLAIT_I64, PLAIT_MIN) == PLAIT_OK);
    CHECK(plait_comm_allreduce(comm, &highest, 1, PLAIT_I64, PLAIT_MAX) == PLAIT_OK);
    CHECK(lowest == highest); /* the same bits everywhere */
    return PLAIT_OK;
}

static plait_status collect(plait_comm *comm, void *user) {
    uint64_t    *sent = user;
    int32_t      me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    if (me >= w) {
        CHECK(plait_comm_barrier(comm) == PLAIT_EINVAL);
        return PLAIT_OK;
    }
    static const int64_t lengths[] = { 0, 1, 5, 300, 2049, 5000 };
    static _Thread_local double buf[5000];
    static _Thread_local unsigned char all[8 * 9000];
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        int64_t n = lengths[k];
        PLI_TRY(reduce_f64(comm, n, buf));
        PLI_TRY(scatter_f64(comm, n, buf));
        for (int32_t root = 0; root < w; root++) {
            for (int64_t i = 0; i < n; i++) buf[i] = me == root ? (double)(i + root) : -1;
            CHECK(plait_comm_broadcast(comm, buf, (size_t)n * sizeof *buf, root) == PLAIT_OK);
            for (int64_t i = 0; i < n; i++) CHECK(buf[i] == (double)(i + root));
        }
        memset(all, 0xee, sizeof all);
        memset(buf, me, (size_t)n);
        CHECK(plait_comm_allgather(comm, buf, (size_t)n, all) == PLAIT_OK);
        for (int64_t i = 0; i < n * w; i++) CHECK(all[i] == i / n);
        CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    }
    float f[3] = { 1, (float)me, 2 };
    plait_request *request = NULL;
    CHECK(plait_comm_allreduce_begin(comm, f, 3, PLAIT_F32, PLAIT_SUM, &request) == PLAIT_OK);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(plait_request_wait(&request) == PLAIT_OK && request == NULL && plait_request_wait(&request) == PLAIT_OK);
    CHECK(f[0] == (float)w && f[1] == (float)(w * (w - 1) / 2) && f[2] == (float)(2 * w));
    size_t sizes[16];
    void  *pieces = NULL;
    memset(buf, me, 1000);
    CHECK(plait_comm_allgatherv(comm, buf, (size_t)me * 100, sizes, &pieces) == PLAIT_OK);
    size_t at = 0;
    for (int32_t r = 0; r < w; r++) {
        CHECK(sizes[r] == (size_t)r * 100);
        for (size_t i = 0; i < sizes[r]; i++) CHECK(((unsigned char *)pieces)[at++] == r);
    }
    plait_comm_free(pieces);
    sent[me] = plait_comm_bytes_sent(comm);
    return PLAIT_OK;
}

static void test_collectives_in_both_forms_send_the_same_bytes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint64_t sent[2][16] = { { 0 } };
        for (int form = 0; form < 2; form++) run_ok(counts[i], i % 2, forms[form], collect, sent[form]);
        assert_memory_equal(sent[0], sent[1], sizeof sent[0]);
        assert_true(counts[i] == 1 || sent[0][0] > 0);
    }
}

static plait_status many_begun(plait_comm *comm, void *user);

static void test_forms_that_are_named(void **state) {
    (void)state;
    uint64_t sent[16];
    for (size_t form = 0; form < sizeof named / sizeof named[0]; form++)
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            run_ok(counts[i], i % 2, named[form], collect, sent);
            run_ok(counts[i], 0, named[form], many_begun, NULL);
        }
}

static plait_status many_small(plait_comm *comm, void *user) {
    const int64_t times = user != NULL ? *(const int64_t *)user : 3000;
    for (int64_t i = 0; i < times; i++) {
        int64_t x = i + plait_comm_rank(comm), w = plait_comm_workers(comm);
        CHECK(plait_comm_allreduce(comm, &x, 1, PLAIT_I64, PLAIT_SUM) == PLAIT_OK);
        CHECK(x == i * w + w * (w - 1) / 2);
    }
    return PLAIT_OK;
}

static void test_many_small_collectives(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) run_ok(4, 0, forms[form], many_small, NULL);
}

/* An exchange: worker r has r + 2 to + k bytes for worker `to`, each of which is 16 r + to. */
typedef struct swap {
    plait_request *request;
    pli_msg       *came[16];
} swap;

static plait_status exchange_begin(plait_comm *comm, int k, swap *s) {
    pli_msg *given[16] = { NULL };
    int32_t  me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    memset(s, 0, sizeof *s);
    for (int32_t to = 0; to < w; to++) {
        if (to == me) continue;
        given[to] = pli_msg_new((size_t)(me + 2 * to + k));
        CHECK(given[to] != NULL);
        if (given[to]->head.body_bytes > 0)
            memset(pli_msg_body(given[to]), 16 * me + to, (size_t)given[to]->head.body_bytes);
    }
    return pli_comm_exchange_begin(comm, NULL, given, s->came, &s->request);
}

static bool exchange_end(plait_comm *comm, int k, swap *s) {
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    bool    good = plait_request_wait(&s->request) == PLAIT_OK;
    for (int32_t from = 0; from < w; from++) {
        const pli_msg       *msg = s->came[from];
        const unsigned char *body = msg == NULL ? NULL : pli_msg_body(msg);
        good = good && (msg == NULL) == (from == me);
        good = good && (msg == NULL || msg->head.body_bytes == (uint64_t)(from + 2 * me + k));
        for (uint64_t i = 0; good && msg != NULL && i < msg->head.body_bytes; i++) good = body[i] == 16 * from + me;
        pli_msg_free(&s->came[from]);
    }
    return good;
}

/* Up to five sums and gathers are under way and are waited for in another order; rank 1 is slow. */
static plait_status many_begun(plait_comm *comm, void *user) {
    (void)user;
    enum { FLIGHTS = 5, LONG = 3000 };
    int32_t me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    double *buf = malloc(FLIGHTS * LONG * sizeof *buf);
    size_t  sizes[FLIGHTS][16];
    void   *all[FLIGHTS] = { NULL };
    char    mine[64];
    CHECK(buf != NULL);
    for (int round = 0; round < 9; round++) {
        plait_request *request[FLIGHTS], *pieces[FLIGHTS];
        swap           swaps[FLIGHTS];
        int64_t        n = round % 3 == 0 ? LONG : round % 3;
        for (int k = 0; k < FLIGHTS; k++) {
            for (int64_t i = 0; i < n; i++) buf[k * LONG + i] = (double)(me + 1) * (double)(i + k);
            memset(mine, me + k, sizeof mine);
            CHECK(plait_comm_allreduce_begin(comm, buf + (size_t)k * LONG, n, PLAIT_F64, PLAIT_SUM, &request[k]) ==
                  PLAIT_OK);
            CHECK(plait_comm_allgatherv_begin(comm, mine, (size_t)(me * 3 + k), sizes[k], &all[k], &pieces[k]) ==
                  PLAIT_OK);
            if (round % 3 == 1) CHECK(exchange_begin(comm, k, &swaps[k]) == PLAIT_OK);
            if (k == 2 && round % 4 == 0) CHECK(plait_comm_barrier(comm) == PLAIT_OK);
            if (me == 1) sched_yield();
        }
        for (int k = FLIGHTS - 1; k >= 0; k--) {
            CHECK(plait_request_wait(&pieces[k]) == PLAIT_OK);
            if (round % 3 == 1) CHECK(exchange_end(comm, k, &swaps[k]));
            CHECK(plait_request_wait(&request[k]) == PLAIT_OK);
            for (int64_t i = 0; i < n; i++) CHECK(buf[k * LONG + i] == (double)(w * (w + 1) / 2) * (double)(i + k));
            const unsigned char *at = all[k];
            for (int32_t r = 0; r < w; r++) {
                CHECK(sizes[k][r] == (size_t)(r * 3 + k));
                for (size_t i = 0; i < sizes[k][r]; i++) CHECK(*at++ == r + k);
            }
            plait_comm_free(all[k]);
        }
    }
    free(buf);
    return PLAIT_OK;
}

static void test_many_collectives_under_way(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++)
        for (int32_t workers = 1; workers < 6; workers++) run_ok(workers, 0, forms[form], many_begun, NULL);
}

/* A rank that fails gives up the collectives it has begun, though no other rank will ever come. */
static plait_status fails_with_sums_under_way(plait_comm *comm, void *user) {
    (void)user;
    static _Thread_local double buf[4096];
    plait_request              *request[2];
    if (plait_comm_rank(comm) == 1) return plait_comm_recv(comm, 0, 0, buf, 8, NULL, NULL);
    for (int k = 0; k < 2; k++)
        PLI_TRY(plait_comm_allreduce_begin(comm, buf + 2048 * k, 2048, PLAIT_F64, PLAIT_SUM, &request[k]));
    return pli_fail(pli_comm_error(comm), PLAIT_EFORMAT, "the cat did");
}

static void test_who_fails_gives_up_what_it_has_begun(void **state) {
    (void)state;
    plait_comm_opts opts = opts_of(2, 0, NULL);
    plait_error     err;
    assert_int_equal(plait_comm_run(&opts, fails_with_sums_under_way, NULL, &err), PLAIT_EFORMAT);
    assert_string_equal(err.text, "the cat did");
}

static plait_status disagree(plait_comm *comm, void *user) {
    const int *what = user;
    float      x[4] = { 0 };
    int        odd = plait_comm_rank(comm) == 2;
    switch (*what) {
    case 0: return plait_comm_allreduce(comm, x, odd ? 3 : 4, PLAIT_F32, PLAIT_SUM);
    case 1: return plait_comm_allreduce(comm, x, 2, odd ? PLAIT_F64 : PLAIT_F32, PLAIT_SUM);
    case 2: return plait_comm_allreduce(comm, x, 2, PLAIT_F32, odd ? PLAIT_MIN : PLAIT_SUM);
    case 3: PLI_TRY(odd ? plait_comm_barrier(comm) : plait_comm_broadcast(comm, x, 4, 0)); break;
    default: PLI_TRY(plait_comm_broadcast(comm, x, 4, odd ? 1 : 0));
    }
    return plait_comm_barrier(comm); /* by messages, a rank that only sends in a call finds out in a later one */
}

static void test_calls_that_differ_are_named(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++)
        for (int what = 0; what < 5; what++) {
            plait_comm_opts opts = opts_of(4, 0, forms[form]);
            plait_error     err;
            plait_status    status = plait_comm_run(&opts, disagree, &what, &err);
            assert_int_equal(status, PLAIT_EMISMATCH);
            assert_non_null(strstr(err.text, "rank 2 called"));
        }
}

/* --- failures ------------------------------------------------------------------------------------------------ */

struct story {
    int          wait_for; /* what the other ranks do: 0 barrier, 1 large allreduce, 2 recv, 3 begun allreduce */
    plait_status result;   /* of rank 1 */
    _Atomic int  lost;
};

static plait_status one_ends(plait_comm *comm, void *user) {
    struct story *story = user;
    static _Thread_local double buf[4096];
    if (plait_comm_rank(comm) == 1)
        return story->result < 0 ? pli_fail(pli_comm_error(comm), story->result, "the dog ate it") : PLAIT_OK;
    plait_status   status;
    plait_request *request = NULL;
    switch (story->wait_for) {
    case 0: status = plait_comm_barrier(comm); break;
    case 1: status = plait_comm_allreduce(comm, buf, 4096, PLAIT_F64, PLAIT_SUM); break;
    case 2: status = plait_comm_recv(comm, 1, 0, buf, 8, NULL, NULL); break;
    default:
        status = plait_comm_allreduce_begin(comm, buf, 4096, PLAIT_F64, PLAIT_SUM, &request);
        if (status == PLAIT_OK) status = plait_request_wait(&request);
    }
    if (status == PLAIT_EPEER && strstr(plait_comm_error(comm)->text, "rank 1") != NULL)
        atomic_fetch_add(&story->lost, 1);
    return story->result < 0 ? status : PLAIT_OK;
}

static void test_who_ends_never_leaves_the_others_hanging(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++)
        for (int wait_for = 0; wait_for < 4; wait_for++) {
            struct story    story = { .wait_for = wait_for, .result = PLAIT_EFORMAT };
            plait_comm_opts opts = opts_of(4, 1, forms[form]);
            plait_error     err;
            if (wait_for != 2) opts.servers = 0;
            assert_int_equal(plait_comm_run(&opts, one_ends, &story, &err), PLAIT_EFORMAT);
            assert_int_equal(err.rank, 1);
            assert_string_equal(err.text, "the dog ate it");
            assert_int_equal(story.lost, opts.workers + opts.servers - 1);
            story = (struct story){ .wait_for = wait_for, .result = PLAIT_OK };
            assert_int_equal(plait_comm_run(&opts, one_ends, &story, &err), PLAIT_OK);
            assert_int_equal(story.lost > 0, 1);
        }
}

/* --- a rank dies ------------------------------------------------------------------------------------------- */

struct death {
    int         wait_for; /* as in a story */
    bool        survives;
    _Atomic int events, ended; /* deaths that machines were told of; calls that a death ended */
};

static void drop_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    (void)state;
    (void)now_ns;
    (void)out;
    pli_msg_free(&msg);
}

static void count_death(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    _Atomic int *seen = state;
    (void)now_ns;
    if (event->kind == PLI_MEMBER_DIED && event->rank == 1 && strstr(event->why.text, "unplugged") != NULL)
        atomic_fetch_add(seen, 1);
    pli_out_ring(out);
}

static const pli_machine_ops mourner_ops = { .name = "mourner", .on_message = drop_message, .on_member = count_death };

static bool has_seen_one(void *seen) { return atomic_load((_Atomic int *)seen) > 0; }

/* Rank 1 dies while the others wait for it, or just before. */
static plait_status die(plait_comm *comm, const struct death *death) {
    plait_error why = { .rank = 1 };
    char        byte;
    for (int32_t r = 0; r < plait_comm_size(comm); r++)
        if (r != 1) CHECK(plait_comm_recv(comm, r, 1, &byte, 1, NULL, NULL) == PLAIT_OK);
    pli_fail(&why, PLAIT_EPEER, "unplugged");
    pli_comm_kill(comm, &why);
    CHECK(plait_comm_send(comm, 0, 2, "x", 1) <= 0); /* it goes nowhere */
    plait_status status = plait_comm_recv(comm, 0, 9, &byte, 1, NULL, NULL);
    CHECK(status == PLAIT_EPEER && strstr(plait_comm_error(comm)->text, "unplugged") != NULL);
    return death->survives ? PLAIT_OK : status; /* a dead rank's own answer does not matter */
}

static plait_status call(plait_comm *comm, int what, double *buf) {
    plait_request *request = NULL;
    switch (what) {
    case 0: return plait_comm_barrier(comm);
    case 1: return plait_comm_allreduce(comm, buf, 4096, PLAIT_F64, PLAIT_SUM);
    case 2: return plait_comm_recv(comm, 1, 0, buf, 8, NULL, NULL);
    default: break;
    }
    plait_status status = plait_comm_allreduce_begin(comm, buf, 4096, PLAIT_F64, PLAIT_SUM, &request);
    return status == PLAIT_OK ? plait_request_wait(&request) : status;
}

/* For survivors, a call that needs the dead rank ends soon and everywhere; all else goes on. */
static plait_status outlive(plait_comm *comm, const struct death *death, double *buf) {
    int32_t me = plait_comm_rank(comm), size = plait_comm_size(comm), got;
    for (int what = 0; what < 4; what++)
        if (pli_comm_is_worker(comm) || what == 2) CHECK(call(comm, what, buf) == PLAIT_EPEER);
    for (int32_t to = 0; to < size; to++) CHECK(to == 1 || plait_comm_send(comm, to, 3, &me, sizeof me) == PLAIT_OK);
    for (int32_t from = 0; from < size; from++) {
        if (from == 1) continue;
        CHECK(plait_comm_recv(comm, from, 3, &got, sizeof got, NULL, NULL) == PLAIT_OK && got == from);
    }
    CHECK(plait_comm_recv(comm, 1, 2, buf, 8, NULL, NULL) == PLAIT_EPEER);
    CHECK(!pli_comm_has_failed(comm) && death->survives);
    return PLAIT_OK;
}

static plait_status one_dies(plait_comm *comm, void *user) {
    struct death *death = user;
    _Atomic int   seen = 0;
    pli_port     *port = NULL;
    double       *buf = pli_calloc(4096, sizeof *buf);
    CHECK(buf != NULL);
    if (death->survives) pli_comm_survive(comm);
    PLI_TRY(pli_port_open(comm, PLI_PORT_SERVER, &mourner_ops, &seen, &port, pli_comm_error(comm)));
    plait_status status = PLAIT_OK;
    if (plait_comm_rank(comm) == 1) {
        status = die(comm, death);
    } else {
        status = plait_comm_send(comm, 1, 1, "x", 1);
        if (status == PLAIT_OK) status = call(comm, pli_comm_is_worker(comm) ? death->wait_for : 2, buf);
        if (status == PLAIT_EPEER) atomic_fetch_add(&death->ended, 1);
        if (death->survives) {
            status = pli_comm_wait(comm, has_seen_one, &seen, NULL, pli_comm_error(comm));
            if (status == PLAIT_OK) status = outlive(comm, death, buf);
        }
    }
    pli_port_close(&port);
    atomic_fetch_add(&death->events, seen);
    pli_free(buf);
    return status;
}

static void test_a_death_is_an_event_to_who_survives(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++)
        for (int wait_for = 0; wait_for < 4; wait_for++)
            for (int survives = 0; survives < 2; survives++) {
                struct death    death = { .wait_for = wait_for, .survives = survives };
                plait_comm_opts opts = opts_of(4, wait_for == 2, forms[form]);
                plait_error     err;
                int64_t         live = pli_alloc_live();
                plait_status    status = plait_comm_run(&opts, one_dies, &death, &err);
                if (status != (survives ? PLAIT_OK : PLAIT_EPEER)) fail_msg("%d %d: %s", wait_for, survives, err.text);
                assert_int_equal(death.ended, opts.workers + opts.servers - 1);
                if (survives) assert_int_equal(death.events, opts.workers + opts.servers - 1);
                assert_int_equal(pli_alloc_live(), live);
            }
}

static plait_status wait_in_vain(plait_comm *comm, void *user) {
    plait_status *got = user;
    int32_t       me = plait_comm_rank(comm);
    char          byte;
    got[me] = plait_comm_recv(comm, (me + 1) % 2, 5, &byte, 1, NULL, NULL);
    return got[me];
}

static void test_a_wait_expires_and_says_who_held_it_up(void **state) {
    (void)state;
    plait_comm_opts opts = opts_of(2, 0, NULL);
    plait_status    got[2];
    plait_error     err;
    opts.timeout_ns = 20000000;
    assert_int_equal(plait_comm_run(&opts, wait_in_vain, got, &err), PLAIT_ETIMEOUT);
    assert_non_null(strstr(err.text, "held up by rank"));
}

/* What rank 0 waits for comes when rank 1 likes, long behind the deadline of all other waits. */
struct turn {
    plait_comm *_Atomic waits;
    _Atomic bool        there;
    int32_t             complaints; /* one rank's thread writes it */
};

static bool is_there(void *user) { return atomic_load(&((struct turn *)user)->there); }

static plait_status wait_for_turn(plait_comm *comm, void *user) {
    struct turn *turn = user;
    if (plait_comm_rank(comm) == 0) {
        atomic_store(&turn->waits, comm);
        CHECK(pli_comm_wait_long(comm, is_there, turn, NULL, pli_comm_error(comm)) == PLAIT_OK);
        return PLAIT_OK;
    }
    while (atomic_load(&turn->waits) == NULL) sched_yield();
    const uint64_t start_ns = pli_now_ns();
    while (pli_now_ns() - start_ns < 60000000) {}
    atomic_store(&turn->there, true);
    pli_comm_ring(atomic_load(&turn->waits));
    return PLAIT_OK;
}

static void complain(void *user, plait_log_level level, int32_t rank, const char *room, const char *text) {
    (void)level, (void)rank, (void)room, (void)text;
    ((struct turn *)user)->complaints++;
}

static void test_a_long_wait_has_no_deadline(void **state) {
    (void)state;
    struct turn     turn = { 0 };
    plait_log       log = { .fn = complain, .user = &turn, .max_level = PLAIT_LOG_ERROR };
    plait_comm_opts opts = opts_of(2, 0, NULL);
    plait_error     err;
    opts.timeout_ns = 20000000;
    opts.log = &log;
    if (plait_comm_run(&opts, wait_for_turn, &turn, &err) < 0) fail_msg("rank %d: %s", err.rank, err.text);
    assert_int_equal(turn.complaints, 0);
}

struct watch {
    _Atomic int seen;
};

/* Rank 1 waits for rank 0 in a barrier; rank 0 reads that, and only then comes. */
static plait_status look_at_waits(plait_comm *comm, void *user) {
    struct watch *watch = user;
    if (plait_comm_rank(comm) == 0) {
        char text[400];
        while (plait_comm_waits(comm, text, sizeof text) == 0) {}
        CHECK(strstr(text, "rank 1 waits for barrier, held up by rank 0 (plait_comm_barrier, call 1, comm_test.c:") ==
              text);
        CHECK(plait_comm_waits(comm, text, 5) >= 0 && strlen(text) <= 4);
        atomic_fetch_add(&watch->seen, 1);
    }
    return plait_comm_barrier(comm);
}

static void test_waits_are_told_from_another_thread(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct watch watch = { 0 };
        run_ok(2, 0, forms[form], look_at_waits, &watch);
        assert_int_equal(watch.seen, 1);
    }
}

static plait_status use_shared(plait_comm *comm, void *user) {
    (void)user;
    _Atomic int64_t *counter = pli_comm_shared(comm, "counter", 64);
    CHECK(counter != NULL && (uintptr_t)counter % 64 == 0);
    CHECK(pli_comm_shared(comm, "counter", 128) == NULL);
    atomic_fetch_add(counter, 1);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(atomic_load(counter) == plait_comm_workers(comm));
    pli_comm_shared_release(comm, counter);
    return PLAIT_OK;
}

static void test_shared_memory_is_one_for_all(void **state) {
    (void)state;
    run_ok(4, 0, NULL, use_shared, NULL);
}

struct left {
    atomic_int ended, released, early; /* early: how many ranks had ended when it was released */
};

static void release_left(void *state) {
    struct left *left = state;
    atomic_store(&left->early, atomic_load(&left->ended));
    atomic_fetch_add(&left->released, 1);
}

/* Rank 0 ends at once; the others have seen that before they look at what it has left. */
static plait_status leave_behind(plait_comm *comm, void *user) {
    struct left *left = user;
    if (plait_comm_rank(comm) == 0) CHECK(pli_comm_leave_behind(comm, left, release_left));
    CHECK(pli_comm_shared(comm, "other", 64) != NULL); /* found by its name beside what has none */
    while (plait_comm_rank(comm) > 0 && atomic_load(&left->ended) < plait_comm_rank(comm)) sched_yield();
    CHECK(atomic_load(&left->released) == 0);
    atomic_fetch_add(&left->ended, 1);
    return PLAIT_OK;
}

static void test_what_a_rank_leaves_behind_outlives_all(void **state) {
    struct left left = { 0 };
    (void)state;
    run_ok(3, 0, NULL, leave_behind, &left);
    assert_int_equal(atomic_load(&left.released), 1);
    assert_int_equal(atomic_load(&left.early), 3);
}

static void test_a_run_survives_every_failed_allocation(void **state) {
    (void)state;
    for (int form = 0; form < 2; form++) {
        uint64_t     sent[16];
        plait_status status = PLAIT_ENOMEM;
        for (int64_t k = 0; status != PLAIT_OK; k += 1 + k / 20) {
            plait_comm_opts opts = opts_of(3, 1, forms[form]);
            plait_error     err;
            int64_t         live = pli_alloc_live();
            pli_alloc_fail_after(k);
            status = plait_comm_run(&opts, collect, sent, &err);
            pli_alloc_fail_after(-1);
            assert_true(status == PLAIT_OK || status == PLAIT_ENOMEM || status == PLAIT_EPEER ||
                        status == PLAIT_EDIVERGED);
            assert_int_equal(pli_alloc_live(), live);
        }
    }
}

/* --- machines -------------------------------------------------------------------------------------------------- */

/* Counts messages and answers until the number in arg64 is used up: no deep recursion, no message lost. */
struct counter {
    int32_t         me;
    int64_t         plain; /* only the port's holder writes it: a race would show */
    _Atomic int64_t told;
};

static void count_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    (void)now_ns;
    struct counter *c = state;
    atomic_store_explicit(&c->told, ++c->plain, memory_order_release);
    pli_out_ring(out);
    if (msg->head.arg64 > 0) {
        pli_msg *answer = pli_msg_new(0);
        answer->head.dst = msg->head.src;
        answer->head.port = PLI_PORT_SERVER;
        answer->head.arg64 = msg->head.arg64 - 1;
        pli_out_send(out, answer);
    }
    pli_msg_free(&msg);
}

static const pli_machine_ops counter_ops = { .name = "counter", .on_message = count_message };

struct await {
    struct counter *counter;
    int64_t         n;
};
static bool has_counted(void *arg) {
    struct await *a = arg;
    return atomic_load_explicit(&a->counter->told, memory_order_acquire) >= a->n;
}

static plait_status play(plait_comm *comm, void *user) {
    (void)user;
    struct counter c = { .me = plait_comm_rank(comm) };
    pli_port      *port = NULL;
    int32_t        size = plait_comm_size(comm);
    enum { GAMES = 50, LENGTH = 99 };
    CHECK(pli_port_open(comm, PLI_PORT_SERVER, &counter_ops, &c, &port, pli_comm_error(comm)) == PLAIT_OK);
    CHECK(pli_port_open(comm, PLI_PORT_SERVER, &counter_ops, &c, &port, NULL) == PLAIT_EINVAL);
    for (int i = 0; i < GAMES; i++)
        for (int32_t to = 0; to < size; to++) {
            uint64_t now_ns;
            pli_out  out;
            pli_port_enter(port, &now_ns, &out);
            pli_msg *msg = pli_msg_new(0);
            msg->head.dst = to;
            msg->head.port = PLI_PORT_SERVER;
            msg->head.arg64 = LENGTH;
            pli_out_send(&out, msg);
            pli_port_leave(port, &out);
        }
    struct await await = { .counter = &c, .n = (int64_t)size * GAMES * (LENGTH + 1) };
    PLI_TRY(pli_comm_wait(comm, has_counted, &await, NULL, pli_comm_error(comm)));
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    pli_port_close(&port);
    CHECK(c.plain == await.n);
    return PLAIT_OK;
}

static void test_machines_run_in_place_and_lose_nothing(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) run_ok(4, 0, NULL, play, NULL);
    run_ok(1, 0, NULL, play, NULL);
}

/* Ranks send their last message and end at once, while the receiver's machine may be running: no message is lost,
 * none comes after the news of its rank's end, and nobody sleeps through either. */
static plait_status say_and_end(plait_comm *comm, void *user) {
    (void)user;
    int32_t me = plait_comm_rank(comm), value;
    size_t  bytes;
    if (me > 0) return plait_comm_send(comm, 0, 1, &me, sizeof me);
    for (int32_t from = 1; from < plait_comm_size(comm); from++) {
        CHECK(plait_comm_recv(comm, from, 1, &value, sizeof value, &bytes, NULL) == PLAIT_OK);
        CHECK(value == from);
    }
    return PLAIT_OK;
}

static void test_no_message_is_lost_however_threads_cross(void **state) {
    (void)state;
    const bool    full = getenv("PLAIT_TEST_FULL") != NULL;
    const int64_t times = full ? 600 : 150; /* where it is shaken a rank gives its core away again and again */
    atomic_store(&pli_comm_shaken, true);
    for (int64_t i = 0; i < times; i++) run_ok(5, 0, NULL, say_and_end, NULL);
    for (int i = 0; i < 5; i++) run_ok(4, 0, NULL, play, NULL);
    run_ok(3, 0, NULL, pass_round, NULL);
    run_ok(4, 0, "messages", many_small, (void *)&times);
    atomic_store(&pli_comm_shaken, false);
}

/* A message is pushed while another rank's thread runs the machine, after that thread took the inbox. The sender
 * does not wait and does not come back, so the thread that unlocks must look again. Rank 1 runs rank 0's machine
 * with the first message until rank 2 has pushed the second. */
struct relay {
    _Atomic int inside, pushed, counted;
};

static void hold(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    (void)now_ns;
    struct relay *r = state;
    if (msg->head.src == 1) {
        atomic_store(&r->inside, 1);
        while (atomic_load(&r->pushed) == 0) sched_yield();
    }
    atomic_fetch_add(&r->counted, 1);
    pli_out_ring(out);
    pli_msg_free(&msg);
}

static const pli_machine_ops relay_ops = { .name = "relay", .on_message = hold };

static bool both_counted(void *arg) { return atomic_load(&((struct relay *)arg)->counted) == 2; }

static plait_status push_while_held(plait_comm *comm, void *user) {
    struct relay *relay = user;
    int32_t       me = plait_comm_rank(comm);
    pli_port     *port = NULL;
    uint64_t      now_ns;
    pli_out       out;
    CHECK(pli_port_open(comm, PLI_PORT_SERVER, &relay_ops, relay, &port, pli_comm_error(comm)) == PLAIT_OK);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    while (me == 2 && atomic_load(&relay->inside) == 0) sched_yield();
    if (me > 0) {
        pli_port_enter(port, &now_ns, &out);
        pli_msg *msg = pli_msg_new(0);
        msg->head.dst = 0;
        msg->head.port = PLI_PORT_SERVER;
        pli_out_send(&out, msg);
        pli_port_leave(port, &out);
    }
    if (me == 2) atomic_store(&relay->pushed, 1);
    if (me == 0) PLI_TRY(pli_comm_wait(comm, both_counted, relay, NULL, pli_comm_error(comm)));
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    pli_port_close(&port);
    return PLAIT_OK;
}

static void test_who_unlocks_looks_again(void **state) {
    (void)state;
    struct relay    relay = { 0 };
    plait_comm_opts opts = opts_of(3, 0, NULL);
    plait_error     err;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    if (plait_comm_run(&opts, push_while_held, &relay, &err) < 0) fail_msg("rank %d: %s", err.rank, err.text);
}

/* The change comes between a waiter's look and its sleep, so it must not sleep. */
struct late {
    plait_comm *comm;
    bool        changed;
};

static bool change_after_looking(void *arg) {
    struct late *late = arg;
    bool         looked = late->changed;
    late->changed = true;
    if (!looked) pli_comm_ring(late->comm);
    return looked;
}

static plait_status wait_for_late(plait_comm *comm, void *user) {
    (void)user;
    for (int i = 0; i < 3; i++) {
        struct late late = { .comm = comm };
        uint64_t    start_ns = pli_now_ns();
        PLI_TRY(pli_comm_wait(comm, change_after_looking, &late, NULL, pli_comm_error(comm)));
        CHECK(pli_now_ns() - start_ns < UINT64_C(60) * 1000000000); /* it was woken before its deadline */
    }
    return PLAIT_OK;
}

static void test_no_change_is_slept_over(void **state) {
    (void)state;
    plait_comm_opts opts = opts_of(2, 0, NULL);
    plait_error     err;
    opts.timeout_ns = UINT64_C(120) * 1000000000;
    if (plait_comm_run(&opts, wait_for_late, NULL, &err) < 0) fail_msg("rank %d: %s", err.rank, err.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_arrive_in_order_by_tag),
        cmocka_unit_test(test_misuse_is_answered),
        cmocka_unit_test(test_collectives_in_both_forms_send_the_same_bytes),
        cmocka_unit_test(test_forms_that_are_named),
        cmocka_unit_test(test_many_small_collectives),
        cmocka_unit_test(test_many_collectives_under_way),
        cmocka_unit_test(test_who_fails_gives_up_what_it_has_begun),
        cmocka_unit_test(test_calls_that_differ_are_named),
        cmocka_unit_test(test_who_ends_never_leaves_the_others_hanging),
        cmocka_unit_test(test_a_death_is_an_event_to_who_survives),
        cmocka_unit_test(test_a_wait_expires_and_says_who_held_it_up),
        cmocka_unit_test(test_a_long_wait_has_no_deadline),
        cmocka_unit_test(test_waits_are_told_from_another_thread),
        cmocka_unit_test(test_shared_memory_is_one_for_all),
        cmocka_unit_test(test_what_a_rank_leaves_behind_outlives_all),
        cmocka_unit_test(test_a_run_survives_every_failed_allocation),
        cmocka_unit_test(test_machines_run_in_place_and_lose_nothing),
        cmocka_unit_test(test_no_message_is_lost_however_threads_cross),
        cmocka_unit_test(test_who_unlocks_looks_again),
        cmocka_unit_test(test_no_change_is_slept_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
