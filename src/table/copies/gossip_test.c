/* Averaging with neighbours over networks that lose, double and reorder messages: mixing never changes the average,
 * rounds give the same bits in every schedule, and what a worker sends arrives once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/comm.h"
#include "direct/direct.h"
#include "table/copies/gossip.h"
#include "table/state/values.h"

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static bool has(int32_t n, const int32_t *list, int32_t x) {
    for (int32_t i = 0; i < n; i++)
        if (list[i] == x) return true;
    return false;
}

static void check_round(pli_graph graph, int32_t workers, int64_t round) {
    int32_t to[PLI_NEIGHBOURS_MAX], from[PLI_NEIGHBOURS_MAX], back[PLI_NEIGHBOURS_MAX], degree = -1;
    for (int32_t w = 0; w < workers; w++) {
        int32_t n = pli_neighbours_to(graph, workers, w, round, to),
                m = pli_neighbours_from(graph, workers, w, round, from);
        if (degree < 0) degree = n;
        assert_int_equal(n, degree); /* so equal weights are doubly stochastic */
        assert_int_equal(m, degree);
        for (int32_t i = 0; i < n; i++) {
            assert_true(to[i] >= 0 && to[i] < workers && to[i] != w && (i == 0 || to[i] > to[i - 1]));
            assert_true(has(pli_neighbours_from(graph, workers, to[i], round, back), back, w));
            assert_true(has(pli_neighbours_ever_to(graph, workers, w, back), back, to[i]));
            assert_true(has(pli_neighbours_ever_from(graph, workers, to[i], back), back, w));
        }
        int32_t next = pli_neighbours_next(graph, workers, w, round);
        assert_true(workers == 1 ? next == -1 : has(n, to, next));
    }
    assert_true(workers < 2 || degree > 0);
}

static void test_graphs_are_regular(void **state) {
    (void)state;
    for (int32_t workers = 1; workers <= 33; workers++)
        for (int g = 0; g < PLI_GRAPHS; g++)
            for (int64_t round = 0; round < 7; round++) check_round((pli_graph)g, workers, round);
    int32_t list[PLI_NEIGHBOURS_MAX];
    assert_int_equal(pli_neighbours_to(PLI_TORUS, 12, 0, 0, list), 4);
    assert_true(list[0] == 1 && list[1] == 3 && list[2] == 4 && list[3] == 8); /* 3 x 4 */
    assert_int_equal(pli_neighbours_to(PLI_RING, 2, 0, 0, list), 1);
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

enum { MOST = 9, N = 5 };

typedef struct worker {
    pli_gossip        gossip;
    pli_gossip_table *table;
    double            x[N], weight;
    int64_t           clock, ends;
    bool              waits, marked;
} worker;

typedef struct network {
    direct   *d;
    int32_t   workers;
    pli_graph graph;
    bool      rounds;
    worker    w[MOST];
} network;

static void open_network(network *net, uint64_t seed, int32_t workers, pli_graph graph, bool rounds, int64_t clocks,
                         bool lossy) {
    const direct_opts opts = { .reorder = 0.3, .drop = lossy ? 0.2 : 0, .twice = lossy ? 0.2 : 0, .early_wake = 0.01 };
    memset(net, 0, sizeof *net);
    net->d = direct_new(seed, workers, &opts);
    net->workers = workers;
    net->graph = graph;
    net->rounds = rounds;
    for (int32_t i = 0; i < workers; i++) {
        worker *w = &net->w[i];
        assert_true(pli_gossip_init(&w->gossip, i, workers, 1000000));
        w->table = pli_gossip_add(&w->gossip, 3, PLAIT_F64, N, rounds);
        assert_non_null(w->table);
        w->weight = 1;
        w->ends = clocks;
        for (int32_t j = 0; j < N; j++) w->x[j] = (double)((i * 7 + j * 3) % 11);
        direct_add(net->d, i, PLI_PORT_GOSSIP, &pli_gossip_ops, &w->gossip);
    }
}

static void close_network(network *net) {
    direct_free(&net->d);
    for (int32_t i = 0; i < net->workers; i++) pli_gossip_destroy(&net->w[i].gossip);
}

static pli_msg *copy_of(const network *net, const worker *w) {
    size_t   before = net->rounds ? 0 : sizeof w->weight;
    pli_msg *msg = pli_msg_new(before + sizeof w->x);
    assert_non_null(msg);
    if (before > 0) memcpy(pli_msg_body(msg), &w->weight, before);
    memcpy((char *)pli_msg_body(msg) + before, w->x, sizeof w->x);
    return msg;
}

static void begin_round(network *net, int32_t me, uint64_t now, pli_out *out) {
    worker *w = &net->w[me];
    int32_t list[PLI_NEIGHBOURS_MAX], n = pli_neighbours_to(net->graph, net->workers, me, w->clock, list);
    for (int32_t i = 0; i < n; i++)
        assert_int_equal(pli_gossip_give(&w->gossip, w->table, now, w->clock, list[i], copy_of(net, w), out, NULL),
                         PLAIT_OK);
    n = pli_neighbours_from(net->graph, net->workers, me, w->clock, list);
    pli_gossip_await(w->table, PLI_GOSSIP_COPY, w->clock, n, list);
    w->waits = true;
}

static void end_round(network *net, int32_t me) {
    worker *w = &net->w[me];
    double  sum[N];
    int32_t list[PLI_NEIGHBOURS_MAX], n = pli_neighbours_from(net->graph, net->workers, me, w->clock, list);
    memcpy(sum, w->x, sizeof sum);
    for (int32_t i = 0; i < n; i++) {
        pli_msg *copy = pli_gossip_take(w->table, w->clock, list[i]);
        assert_non_null(copy);
        pli_values_add_scaled(PLAIT_F64, N, 1, pli_msg_body(copy), sum);
        pli_msg_free(&copy);
        assert_null(pli_gossip_take(w->table, w->clock, list[i]));
    }
    for (int32_t j = 0; j < N; j++) w->x[j] = sum[j] / (n + 1);
    w->waits = false;
    w->clock++;
}

static void pass_on(network *net, int32_t me, uint64_t now, pli_out *out) {
    worker *w = &net->w[me];
    int32_t to = pli_neighbours_next(net->graph, net->workers, me, w->clock);
    pli_gossip_mix(w->table, &w->weight, w->x);
    w->weight /= 2;
    assert_int_equal(pli_gossip_give(&w->gossip, w->table, now, w->clock++, to, copy_of(net, w), out, NULL), PLAIT_OK);
}

static void mark(network *net, int32_t me, uint64_t now, pli_out *out) {
    worker *w = &net->w[me];
    int32_t list[PLI_NEIGHBOURS_MAX], n = pli_neighbours_ever_to(net->graph, net->workers, me, list);
    assert_int_equal(pli_gossip_mark(&w->gossip, w->table, now, PLI_GOSSIP_MARK, 0, n, list, out, NULL), PLAIT_OK);
    n = pli_neighbours_ever_from(net->graph, net->workers, me, list);
    pli_gossip_await(w->table, PLI_GOSSIP_MARK, 0, n, list);
    w->waits = w->marked = true;
}

/* Lets a worker go on, if it can. */
static bool go_on(network *net, int32_t me) {
    worker  *w = &net->w[me];
    uint64_t now;
    if (w->waits && !pli_gossip_is_there(w->table)) return false;
    if (!w->waits && w->clock == w->ends && (net->rounds || w->marked)) return false;
    pli_out *out = direct_enter(net->d, me, PLI_PORT_GOSSIP, &now);
    if (w->marked) {
        pli_gossip_mix(w->table, &w->weight, w->x);
        w->waits = false;
    } else if (w->waits) {
        end_round(net, me);
    } else if (w->clock == w->ends) {
        mark(net, me, now, out);
    } else if (net->rounds) {
        begin_round(net, me, now, out);
    } else {
        pass_on(net, me, now, out);
    }
    direct_leave(net->d, me, PLI_PORT_GOSSIP);
    return true;
}

static bool is_over(const network *net) {
    for (int32_t i = 0; i < net->workers; i++)
        if (net->w[i].waits || net->w[i].clock < net->w[i].ends || (!net->rounds && !net->w[i].marked)) return false;
    return true;
}

static void run(network *net) {
    for (int64_t steps = 0; !is_over(net); steps++) {
        assert_true(steps < 2000000);
        if (direct_pick(net->d, 3) == 0 && go_on(net, (int32_t)direct_pick(net->d, (uint64_t)net->workers))) continue;
        (void)direct_step(net->d);
    }
}

/* --- what must hold ----------------------------------------------------------------------------------------------- */

static void average(const network *net, double *mean, double *weight) {
    *weight = 0;
    memset(mean, 0, N * sizeof *mean);
    for (int32_t i = 0; i < net->workers; i++) {
        *weight += net->w[i].weight;
        for (int32_t j = 0; j < N; j++) mean[j] += net->w[i].weight * net->w[i].x[j];
    }
    for (int32_t j = 0; j < N; j++) mean[j] /= *weight;
}

static void check_average(const network *net, const double *before) {
    double after[N], weight;
    average(net, after, &weight);
    assert_true(fabs(weight - net->workers) < 1e-9);
    for (int32_t j = 0; j < N; j++) assert_true(fabs(after[j] - before[j]) < 1e-9);
}

static double spread(const network *net) {
    double most = 0;
    for (int32_t i = 1; i < net->workers; i++)
        for (int32_t j = 0; j < N; j++) most = fmax(most, fabs(net->w[i].x[j] - net->w[0].x[j]));
    return most;
}

static void test_rounds_keep_the_average_and_repeat(void **state) {
    (void)state;
    for (int g = 0; g < PLI_GRAPHS; g++)
        for (int32_t workers = 2; workers <= MOST; workers++) {
            double  before[N], weight, first[MOST][N] = { { 0 } };
            network net;
            for (uint64_t seed = 1; seed <= 6; seed++) {
                open_network(&net, seed, workers, (pli_graph)g, true, 12, seed > 1);
                average(&net, before, &weight);
                run(&net);
                check_average(&net, before);
                for (int32_t i = 0; i < workers; i++) {
                    if (seed == 1) memcpy(first[i], net.w[i].x, sizeof first[i]);
                    assert_memory_equal(first[i], net.w[i].x, sizeof first[i]);
                }
                assert_true(spread(&net) < 10 * pow(0.9, 12)); /* they were up to 10 apart at first */
                close_network(&net);
            }
        }
}

static void test_exp_makes_all_equal_in_log_rounds(void **state) {
    (void)state;
    network net;
    open_network(&net, 1, 8, PLI_EXP, true, 3, true);
    run(&net);
    assert_true(spread(&net) < 1e-12);
    close_network(&net);
}

static void test_async_keeps_the_weighted_average(void **state) {
    (void)state;
    for (int g = 0; g < PLI_GRAPHS; g++)
        for (uint64_t seed = 1; seed <= 40; seed++) {
            double  before[N], weight;
            network net;
            open_network(&net, seed, 2 + (int32_t)(seed % (MOST - 1)), (pli_graph)g, false, 20, true);
            net.w[0].ends = 5; /* workers may take different numbers of clocks */
            average(&net, before, &weight);
            run(&net);
            check_average(&net, before);
            assert_true(spread(&net) < 9);
            close_network(&net);
        }
}

static void test_what_does_not_fit_fails_the_rank(void **state) {
    (void)state;
    for (int32_t wrong = 0; wrong < 4; wrong++) {
        pli_gossip gossip;
        pli_out    out;
        assert_true(pli_gossip_init(&gossip, 0, 2, 0));
        pli_gossip_table *table = pli_gossip_add(&gossip, 3, PLAIT_F32, 4, wrong != 3);
        pli_msg          *msg = pli_msg_new(wrong == 1 ? 12 : wrong == 3 ? 24 : 16); /* 3: a weight of 0 */
        memset(pli_msg_body(msg), 0, msg->head.body_bytes);
        msg->head.kind = wrong == 0 ? 7 : PLI_GOSSIP_COPY;
        msg->head.arg32 = wrong == 2 ? 4 : 3;
        msg->head.src = 1;
        msg->head.incarnation = 1;
        msg->head.seq = 1;
        pli_out_init(&out);
        pli_gossip_ops.on_message(&gossip, 1, msg, &out);
        assert_int_equal(out.error.code, PLAIT_EFORMAT);
        assert_null(pli_gossip_take(table, 0, 1));
        pli_out_drop(&out);
        pli_gossip_destroy(&gossip);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graphs_are_regular),
        cmocka_unit_test(test_rounds_keep_the_average_and_repeat),
        cmocka_unit_test(test_exp_makes_all_equal_in_log_rounds),
        cmocka_unit_test(test_async_keeps_the_weighted_average),
        cmocka_unit_test(test_what_does_not_fit_fails_the_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
