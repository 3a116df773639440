/* The steps of each form, taken by plain loops: every number of workers, short and empty vectors, workers on any
 * hosts. All workers end with the same bits, and messages and bytes are as few as promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "comm/comm.h"
#include "comm/forms/forms.h"

enum { WORKERS_MAX = 33 };

typedef struct letter {
    struct letter *next;
    size_t         bytes;
    double         body[];
} letter;

typedef struct team {
    letter  *first[WORKERS_MAX][WORKERS_MAX], **last[WORKERS_MAX][WORKERS_MAX]; /* from, to */
    double  *buf[WORKERS_MAX];
    int64_t  at[WORKERS_MAX], messages, between_hosts;
    size_t   bytes[WORKERS_MAX];
    uint64_t bits; /* of the result, or of each worker's slice */
    bool     sent[WORKERS_MAX];
} team;

static void send_part(team *t, const pli_coll *call, int32_t me, const pli_coll_move *m) {
    letter *l = malloc(sizeof *l + m->send_bytes);
    assert_non_null(l);
    *l = (letter){ .bytes = m->send_bytes };
    memcpy(l->body, (char *)t->buf[me] + m->send_at, m->send_bytes);
    *t->last[me][m->to] = l;
    t->last[me][m->to] = &l->next;
    t->messages++;
    t->bytes[me] += m->send_bytes + sizeof(pli_head);
    if (call->hosts != NULL && call->hosts->host[me] != call->hosts->host[m->to]) t->between_hosts++;
}

static bool take_part(team *t, int32_t me, const pli_coll_move *m) {
    letter *l = t->first[m->from][me];
    if (l == NULL) return false;
    if ((t->first[m->from][me] = l->next) == NULL) t->last[m->from][me] = &t->first[m->from][me];
    assert_int_equal(l->bytes, m->recv_bytes);
    double *mine = (double *)((char *)t->buf[me] + m->recv_at);
    if (!m->reduce) memcpy(mine, l->body, l->bytes);
    for (size_t i = 0; m->reduce && i < l->bytes / sizeof(double); i++)
        mine[i] = m->from < me ? l->body[i] + mine[i] : mine[i] + l->body[i];
    free(l);
    return true;
}

/* true: the worker has made progress */
static bool take_step(team *t, const pli_coll *call, int32_t me, int32_t workers) {
    pli_coll_move m = { .to = -1, .from = -1 };
    if (!pli_coll_step(call, me, workers, t->at[me], &m)) return false;
    if (m.to >= 0 && !t->sent[me]) send_part(t, call, me, &m);
    t->sent[me] = true;
    if (m.from >= 0 && !take_part(t, me, &m)) return false;
    t->sent[me] = false;
    t->at[me]++;
    return true;
}

static const team *run_kind(pli_coll_kind kind, const pli_coll_form *form, int32_t workers, int64_t n,
                            const pli_hosts *hosts) {
    static team t;
    pli_coll    call = { .kind = kind, .type = PLAIT_F64, .op = PLAIT_SUM, .n = n };
    pli_coll_choose(&call, form, workers, hosts);
    memset(&t, 0, sizeof t);
    for (int32_t a = 0; a < workers; a++) {
        t.buf[a] = malloc((size_t)(n + 1) * sizeof(double));
        for (int64_t i = 0; i < n; i++) t.buf[a][i] = (double)(a + 1) * (double)(i + 1) / 3;
        for (int32_t b = 0; b < workers; b++) t.last[a][b] = &t.first[a][b];
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t w = 0; w < workers; w++) moved = take_step(&t, &call, w, workers) || moved;
    }
    for (int32_t a = 0; a < workers; a++) {
        pli_coll_move m;
        assert_false(pli_coll_step(&call, a, workers, t.at[a], &m)); /* no worker is stuck */
        assert_int_equal(t.bytes[a], pli_coll_bytes(&call, a, workers));
        for (int32_t b = 0; b < workers; b++) assert_null(t.first[a][b]);
        bool scattered = kind == PLI_REDUCE_SCATTER;
        for (int64_t i = scattered ? pli_slice_first(n, a, workers) : 0;
             i < (scattered ? pli_slice_first(n, a + 1, workers) : n); i++) {
            double want = (double)workers * (double)(workers + 1) / 2 * (double)(i + 1) / 3;
            assert_true(t.buf[a][i] > want * (1 - 1e-12) && t.buf[a][i] < want * (1 + 1e-12));
        }
        if (!scattered) assert_memory_equal(t.buf[a], t.buf[0], (size_t)n * sizeof(double));
    }
    for (int32_t a = 0; a < workers; a++) {
        int64_t first = pli_slice_first(n, a, workers), count = pli_slice_first(n, a + 1, workers) - first;
        t.bits = pli_hash_bytes(t.buf[a] + first, (size_t)count * sizeof(double), t.bits);
        free(t.buf[a]);
    }
    return &t;
}

static const team *run(const pli_coll_form *form, int32_t workers, int64_t n, const pli_hosts *hosts) {
    return run_kind(PLI_ALLREDUCE, form, workers, n, hosts);
}

/* With fewer values than workers some slices are empty. */
static void test_any_number_of_workers_and_values(void **state) {
    (void)state;
    const int64_t lengths[] = { 0, 1, 3, 31, 100, 2049, 5000 };
    for (int32_t workers = 1; workers <= WORKERS_MAX; workers += workers < 17 ? 1 : 8)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int f = -1; f < PLI_FORMS; f++) {
                run(f < 0 ? NULL : pli_forms[f], workers, lengths[i], NULL);
                run_kind(PLI_REDUCE_SCATTER, f < 0 ? NULL : pli_forms[f], workers, lengths[i], NULL);
            }
}

/* Hosts in order, dealt round, one host for all, one for each, and uneven ones. */
static void test_workers_on_any_hosts(void **state) {
    (void)state;
    for (int32_t workers = 1; workers <= 17; workers++)
        for (int how = 0; how < 5; how++)
            for (int64_t n = 1; n <= 5000; n += 4999) {
                int32_t   host_of[WORKERS_MAX];
                pli_hosts hosts;
                for (int32_t w = 0; w < workers; w++)
                    host_of[w] = how == 0 ? 7 + w / 4 : how == 1 ? w % 3 - 1 : how == 2 ? 5 : how == 3 ? -w : w * w % 5;
                assert_true(pli_hosts_make(host_of, workers, &hosts));
                int64_t leads = hosts.count;
                const team *t = run(&pli_form_hierarchical, workers, n, &hosts);
                if (how == 3) assert_int_equal(t->messages, t->between_hosts);
                /* only the leads send between hosts */
                if (n == 1) assert_true(t->between_hosts <= leads * (pli_floor_log2((int32_t)leads) + 2));
                else assert_true(t->between_hosts <= 2 * leads * (leads - 1));
                run(NULL, workers, n, &hosts);
                pli_hosts_free(&hosts);
            }
}

static void test_a_map_of_hosts(void **state) {
    (void)state;
    const int32_t host_of[] = { 9, 4, 9, 4, 1, 9 }, member[] = { 0, 2, 5, 1, 3, 4 }, host[] = { 0, 1, 0, 1, 2, 0 },
                  place[] = { 0, 0, 1, 1, 0, 2 }, first[] = { 0, 3, 5, 6 };
    pli_hosts hosts;
    assert_true(pli_hosts_make(host_of, 6, &hosts));
    assert_int_equal(hosts.count, 3);
    assert_memory_equal(hosts.member, member, sizeof member);
    assert_memory_equal(hosts.host, host, sizeof host);
    assert_memory_equal(hosts.place, place, sizeof place);
    assert_memory_equal(hosts.first, first, sizeof first);
    pli_hosts_free(&hosts);
    pli_hosts_free(&hosts);
}

static int64_t messages(const pli_coll_form *form, int32_t workers, int64_t n) {
    return run(form, workers, n, NULL)->messages;
}

static const char *chosen(int32_t workers, int64_t bytes, const pli_hosts *hosts) {
    pli_coll call = { .kind = PLI_ALLREDUCE, .type = PLAIT_F64, .op = PLAIT_SUM, .n = bytes / 8 };
    pli_coll_choose(&call, NULL, workers, hosts);
    return call.form->name;
}

static const char *sparing(int32_t workers, int64_t bytes) {
    pli_coll call = { .kind = PLI_ALLREDUCE, .type = PLAIT_F64, .op = PLAIT_SUM, .n = bytes / 8, .spares_bytes = true };
    pli_coll_choose(&call, NULL, workers, NULL);
    return call.form->name;
}

static uint64_t bytes_of(const pli_coll_form *form, int32_t workers, int64_t n) {
    pli_coll call = { .kind = PLI_ALLREDUCE, .type = PLAIT_F64, .op = PLAIT_SUM, .n = n };
    uint64_t bytes = 0;
    pli_coll_choose(&call, form, workers, NULL);
    for (int32_t r = 0; r < workers; r++) bytes += pli_coll_bytes(&call, r, workers);
    return bytes;
}

/* A call that spares bytes sends no more than recursive doubling or the ring would, heads included, up to 16 KiB. */
static void test_a_call_that_spares_bytes(void **state) {
    (void)state;
    assert_string_equal(sparing(4, 256), "recursive");
    assert_string_equal(sparing(4, 264), "rabenseifner");
    assert_string_equal(sparing(2, 16 << 10), "recursive");
    assert_string_equal(sparing(6, 16 << 10), "ring");
    for (int32_t workers = 2; workers <= 8; workers++)
        for (int64_t n = 1; n <= 2048; n = n * 3 / 2 + 1) {
            const uint64_t taken = bytes_of(pli_form_find(sparing(workers, n * 8)), workers, n);
            assert_true(taken <= bytes_of(&pli_form_recursive, workers, n));
            assert_true(taken <= bytes_of(&pli_form_ring, workers, n));
        }
}

/* forms.h says what auto takes, docs/collectives.md says why. */
static void test_what_auto_takes(void **state) {
    (void)state;
    const int32_t packed[] = { 0, 0, 0, 0, 1, 1, 1, 1 }, dealt[] = { 0, 1, 0, 1, 0, 1, 0, 1 };
    pli_hosts     hosts;
    assert_string_equal(chosen(8, 16 << 10, NULL), "recursive");
    assert_string_equal(chosen(8, 17 << 10, NULL), "rabenseifner");
    assert_string_equal(chosen(8, 256 << 10, NULL), "ring");
    assert_string_equal(chosen(6, 17 << 10, NULL), "ring");
    assert_string_equal(chosen(9, 17 << 10, NULL), "rabenseifner");
    assert_string_equal(chosen(2, 17 << 10, NULL), "ring");
    assert_true(pli_hosts_make(packed, 8, &hosts));
    assert_string_equal(chosen(8, 1 << 10, &hosts), "recursive");
    assert_string_equal(chosen(8, 4 << 10, &hosts), "hierarchical");
    assert_string_equal(chosen(8, 32 << 10, &hosts), "ring");
    pli_hosts_free(&hosts);
    assert_true(pli_hosts_make(dealt, 8, &hosts));
    assert_string_equal(chosen(8, 1 << 10, &hosts), "recursive");
    assert_string_equal(chosen(8, 32 << 20, &hosts), "hierarchical");
    pli_hosts_free(&hosts);
}

static void test_messages_are_as_few_as_promised(void **state) {
    (void)state;
    assert_int_equal(messages(NULL, 7, 5000), 7 * 12);        /* the ring, 2 (W - 1) for each worker */
    assert_int_equal(messages(NULL, 8, 5000), 8 * 6);         /* rabenseifner: 2 log2 W   */
    assert_int_equal(messages(NULL, 32, 5000), 32 * 10);      /* rabenseifner: 2 log2 W   */
    assert_int_equal(messages(NULL, 33, 5000), 32 * 10 + 2);
    assert_int_equal(messages(NULL, 9, 9 * 8 << 10), 9 * 16); /* long slices: the ring    */
    assert_int_equal(messages(&pli_form_recursive, 16, 5), 16 * 4);
    assert_int_equal(messages(&pli_form_recursive, 17, 5), 16 * 4 + 2);
    for (int32_t workers = 1; workers <= 17; workers++) {
        assert_int_equal(messages(&pli_form_tree, workers, 5), 2 * (workers - 1));
        assert_int_equal(messages(&pli_form_ring, workers, 5), workers * 2 * (workers - 1));
    }
}

/* Bytes follow the formulas of forms.h. In no form do workers send fewer bytes on average than in the ring, 2 M (W -
 * 1) / W. */
static void test_bytes_are_as_few_as_promised(void **state) {
    (void)state;
    const int64_t n = 16 * 15 * 14 * 13; /* slices of equal length for many W */
    const size_t  m = (size_t)n * 8;
    for (int32_t workers = 2; workers <= 17; workers++) {
        size_t w = (size_t)workers, slice = m / w + 8, head = sizeof(pli_head),
               p = (size_t)1 << pli_floor_log2(workers);
        for (int f = 0; f < PLI_FORMS; f++) {
            const team *t = run(pli_forms[f], workers, n, NULL);
            size_t      all = 0, most = 0;
            for (int32_t r = 0; r < workers; r++) {
                all += t->bytes[r];
                if (t->bytes[r] > most) most = t->bytes[r];
            }
            assert_true(all >= 2 * m * (w - 1));
            if (pli_forms[f] == &pli_form_ring) {
                assert_int_equal(all, 2 * m * (w - 1) + w * 2 * (w - 1) * head);
                assert_true(most <= 2 * (w - 1) * (slice + head));
                if (m / 8 % w == 0) assert_int_equal(most, 2 * (w - 1) * (m / w + head));
            }
            if (pli_forms[f] == &pli_form_tree) assert_int_equal(all, 2 * (w - 1) * (m + head));
            if (pli_forms[f] == &pli_form_rabenseifner && w == p)
                assert_true(most <= 2 * (m / p * (p - 1)) + 2 * (size_t)pli_floor_log2(workers) * (head + 8));
            if (pli_forms[f] == &pli_form_recursive && w == p)
                assert_int_equal(most, (m + head) * (size_t)pli_floor_log2(workers));
        }
    }
}

/* By ring each worker sends M (W - 1) / W; by halving the same if W is a power of two, in log2 W messages. */
static void test_a_reduce_scatter_sends_half(void **state) {
    (void)state;
    const int64_t n = 16 * 15 * 14 * 13;
    for (int32_t workers = 2; workers <= 16; workers++) {
        size_t      w = (size_t)workers, m = (size_t)n * 8, rounds = (size_t)pli_floor_log2(workers);
        const team *t = run_kind(PLI_REDUCE_SCATTER, &pli_form_ring, workers, n, NULL);
        for (int32_t r = 0; r < workers && (size_t)n % w == 0; r++)
            assert_int_equal(t->bytes[r], (w - 1) * (m / w + sizeof(pli_head)));
        t = run_kind(PLI_REDUCE_SCATTER, &pli_form_recursive, workers, n, NULL);
        for (int32_t r = 0; r < workers && w == (size_t)1 << rounds; r++)
            assert_int_equal(t->bytes[r], (w - 1) * (m / w) + rounds * sizeof(pli_head));
    }
}

/* Long slices of a ring go in chunks: more messages, the same values and the same order of each sum. */
static void test_a_long_ring_goes_in_chunks(void **state) {
    (void)state;
    for (int32_t workers = 2; workers <= 5; workers++) {
        int64_t     n = 70000 * workers + 3, rounds = 2 * ((int64_t)workers - 1); /* of 547 KiB each: 4 chunks */
        uint64_t    bits = run_kind(PLI_REDUCE_SCATTER, &pli_form_ring, workers, n, NULL)->bits;
        const team *t = run(&pli_form_ring, workers, n, NULL);
        assert_true(t->bits == bits);
        assert_int_equal(t->messages, rounds * 4 * workers);
        for (int32_t r = 0; r < workers; r++)
            assert_true(t->bytes[r] <= (size_t)rounds * ((size_t)n / (size_t)workers * 8 + 8 + 4 * sizeof(pli_head)));
    }
}

/* --optimizer-state sharded relies on this. */
static void test_slices_have_the_bits_of_the_whole(void **state) {
    (void)state;
    for (int32_t workers = 2; workers <= 17; workers++)
        for (int f = 0; f < PLI_FORMS; f++) {
            const pli_coll_form *form = pli_forms[f];
            if (!pli_form_scatters(&form)) continue;
            uint64_t whole = run(pli_forms[f], workers, 1000, NULL)->bits;
            assert_true(run_kind(PLI_REDUCE_SCATTER, pli_forms[f], workers, 1000, NULL)->bits == whole);
            assert_true(pli_forms[f] == &pli_form_ring || run(&pli_form_recursive, workers, 1000, NULL)->bits == whole);
        }
}

static void test_names(void **state) {
    (void)state;
    plait_error err;
    int32_t     at = -1;
    for (int32_t i = 0; i < PLI_COLLECTIVES; i++) {
        assert_int_equal(pli_collective_find(pli_collectives[i], &at, &err), PLAIT_OK);
        assert_int_equal(at, i);
    }
    for (int f = 0; f < PLI_FORMS; f++) {
        assert_ptr_equal(pli_form_numbered(pli_forms[f]->id), pli_forms[f]);
        assert_int_equal(pli_collective_find(pli_forms[f]->name, NULL, &err), PLAIT_OK);
    }
    assert_int_equal(pli_collective_find("rign", NULL, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "ring"));
    assert_null(pli_form_numbered(0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_workers_and_values),
        cmocka_unit_test(test_workers_on_any_hosts),
        cmocka_unit_test(test_a_map_of_hosts),
        cmocka_unit_test(test_what_auto_takes),
        cmocka_unit_test(test_a_call_that_spares_bytes),
        cmocka_unit_test(test_messages_are_as_few_as_promised),
        cmocka_unit_test(test_bytes_are_as_few_as_promised),
        cmocka_unit_test(test_a_reduce_scatter_sends_half),
        cmocka_unit_test(test_a_long_ring_goes_in_chunks),
        cmocka_unit_test(test_slices_have_the_bits_of_the_whole),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
