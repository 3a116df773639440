/* Placements in the order of a pipeline's schedule: on chains narrow and wide, branches, convolutions and a recurrent
 * net, under each schedule, "auto" is never slower than equal runs of layers, and at most 10 % slower than the best of
 * 200 random placements. The ordinary test takes some of the cases; PLAIT_TEST_FULL takes all. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/nn.h>
#include <plait/ops.h>
#include <plait/place.h>

#include "base/random.h"
#include "graph/graph.h"

enum { ROWS = 16, IN = 64, LAYERS = 12, NODES = 512 };

static plait_error error;

/* A net whose forward nodes know their layer. */
typedef struct net {
    plait_graph     *g;
    plait_value      y, x;
    int32_t          layers;
    int64_t          first[LAYERS + 1]; /* node where a layer begins */
    plait_place_opts opts;
    plait_feed       feed;
    plait_value      fetch[64];
} net;

/* --- nets ------------------------------------------------------------------------------------------------------- */

static plait_value weight(net *t, plait_shape shape) {
    char name[16];
    snprintf(name, sizeof name, "w%d", plait_graph_variables(t->g));
    return plait_graph_variable(t->g, name, (plait_tensor){ .type = PLAIT_F32, .shape = shape });
}

static void begin_layer(net *t) { t->first[t->layers++] = plait_graph_nodes(t->g); }

static plait_value dense(net *t, plait_value x, int64_t in, int64_t out) {
    return plait_op_relu(t->g, plait_op_matmul(t->g, x, weight(t, plait_shape_2(in, out))));
}

static plait_value chain(net *t, int64_t width) {
    plait_value x = t->x;
    for (int64_t i = 0, in = IN; i < 9; i++, in = width) {
        begin_layer(t);
        x = dense(t, x, in, width);
    }
    return x;
}

static plait_value branches(net *t, int64_t width) {
    plait_value x = t->x;
    for (int64_t i = 0, in = IN; i < 6; i++, in = width) {
        begin_layer(t);
        const plait_value left = dense(t, x, in, width);
        x = plait_op_add(t->g, left, dense(t, x, in, width));
    }
    return x;
}

static plait_value convolutions(net *t, int64_t channels) {
    static const int64_t around[] = { 1, 1, 1, 1 };
    begin_layer(t);
    plait_value x = plait_op_reshape(t->g, t->x, plait_shape_4(-1, 1, 8, 8));
    for (int64_t i = 0, in = 1; i < 5; i++, in = channels) {
        if (i > 0) begin_layer(t);
        const plait_value filters = weight(t, plait_shape_4(channels, in, 3, 3));
        x = plait_op_relu(t->g, plait_op_conv2d(t->g, x, filters, NULL, around, NULL, 1));
    }
    begin_layer(t);
    return dense(t, plait_op_reshape(t->g, x, plait_shape_2(-1, channels * 64)), channels * 64, 10);
}

/* Five layers of a recurrent net over four steps of one row each; a layer's weights serve all its steps. */
static plait_value recurrent(net *t, int64_t width) {
    enum { STEPS = 4 };
    plait_value step[STEPS];
    for (int s = 0; s < STEPS; s++) step[s] = t->x;
    for (int64_t i = 0, in = IN; i < 5; i++, in = width) {
        begin_layer(t);
        const plait_value w = weight(t, plait_shape_2(in, width)), u = weight(t, plait_shape_2(width, width));
        for (int s = 0; s < STEPS; s++) {
            plait_value sum = plait_op_matmul(t->g, step[s], w);
            if (s > 0) sum = plait_op_add(t->g, sum, plait_op_matmul(t->g, step[s - 1], u));
            step[s] = plait_op_tanh(t->g, sum);
        }
    }
    return step[STEPS - 1];
}

typedef struct scene {
    const char *name;
    plait_value (*build)(net *, int64_t);
    int64_t width;
    double  flop_ns, speed[4]; /* 0: equal */
} scene;

static const scene scenes[] = {
    { "narrow chain", chain, 32, 0.01, { 0 } },
    { "narrow chain, slow cores", chain, 32, 1, { 0 } },
    { "wide chain", chain, 256, 0.1, { 0 } },
    { "narrow chain, uneven hosts", chain, 32, 1, { 1, 0.5, 1, 1 } },
    { "branches", branches, 48, 0.3, { 0 } },
    { "branches, uneven hosts", branches, 48, 0.3, { 1, 1, 0.5, 2 } },
    { "convolutions", convolutions, 6, 0.3, { 0 } },
    { "recurrent", recurrent, 48, 0.3, { 0 } },
};
enum { SCENES = sizeof scenes / sizeof *scenes };

static void build(net *t, const scene *s) {
    plait_value x[64], dx[64];
    char        name[16];
    *t = (net){ .g = NULL };
    assert_int_equal(plait_graph_create(NULL, 0, &t->g, &error), PLAIT_OK);
    t->x = plait_graph_placeholder(t->g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, IN));
    t->y = plait_op_sum(t->g, s->build(t, s->width), 0, NULL, 0);
    const int32_t n = plait_graph_variables(t->g);
    for (int32_t k = 0; k < n; k++) {
        snprintf(name, sizeof name, "w%d", k);
        x[k] = plait_graph_find(t->g, name);
    }
    assert_int_equal(plait_graph_gradients(t->g, t->y, n, x, dx), PLAIT_OK);
    t->fetch[0] = t->y;
    for (int32_t k = 0; k < n; k++) t->fetch[k + 1] = plait_op_inc(t->g, x[k], dx[k]);
    if (plait_graph_check(t->g, &error) < 0) fail_msg("%s: %s", s->name, error.text);
    t->feed = (plait_feed){ .value = t->x, .tensor = { .type = PLAIT_F32, .shape = plait_shape_2(ROWS, IN) } };
    plait_place_opts_init(&t->opts);
    t->opts.ranks = 4;
    t->opts.speed = s->speed[0] > 0 ? s->speed : NULL;
    t->opts.flop_ns = t->opts.tap_ns = s->flop_ns;
    t->opts.feeds = &t->feed;
    t->opts.n_feeds = 1;
    t->opts.fetches = t->fetch;
    t->opts.n_fetches = n + 1;
}

/* Places each forward node by its layer, and the others with them. */
static void by_cuts(const net *t, const int32_t *part_of_layer, int32_t *given) {
    for (int64_t k = 0; k < t->g->n_nodes; k++) {
        const int64_t of = t->g->node[k].forward >= 0 ? t->g->node[k].forward : k;
        int32_t       layer = 0;
        while (layer + 1 < t->layers && t->first[layer + 1] <= of) layer++;
        given[k] = part_of_layer[layer];
    }
}

/* Seconds; INFINITY: it is refused. */
static double place(net *t, const char *method, const int32_t *given) {
    plait_placement *p = NULL;
    t->opts.method = method;
    t->opts.given = given;
    const plait_status status = plait_placement_create(t->g, &t->opts, &p, &error);
    if (status != PLAIT_OK && status != PLAIT_EREFUSED) fail_msg("%s: %s", method, error.text);
    const double seconds = status == PLAIT_OK ? plait_placement_seconds(p) : (double)INFINITY;
    plait_placement_destroy(&p);
    return seconds;
}

static void equal_runs(const net *t, int32_t *given) {
    int32_t       part[LAYERS];
    const int32_t parts = t->opts.ranks * t->opts.chunks;
    for (int32_t i = 0; i < t->layers; i++) part[i] = (int32_t)((int64_t)i * parts / t->layers);
    by_cuts(t, part, given);
}

/* The best of n: of two, one has each unit anywhere, and one is a chain of layers cut anywhere. */
static double best_random(net *t, int32_t n) {
    const int32_t parts = t->opts.ranks * t->opts.chunks;
    int32_t       given[NODES], part[LAYERS];
    double        best = (double)INFINITY;
    assert_true(t->g->n_nodes <= NODES);
    for (int32_t i = 0; i < n; i++) {
        pli_random random = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)i, 3);
        for (int64_t k = 0; k < t->g->n_nodes; k++) given[k] = (int32_t)pli_random_below(&random, (uint64_t)parts);
        for (int32_t k = 0; k < t->layers; k++) part[k] = (int32_t)pli_random_below(&random, (uint64_t)parts);
        for (int32_t a = 1; a < t->layers; a++) /* in order */
            for (int32_t b = a; b > 0 && part[b] < part[b - 1]; b--) {
                const int32_t other = part[b];
                part[b] = part[b - 1];
                part[b - 1] = other;
            }
        if (i % 2 == 0) by_cuts(t, part, given);
        best = fmin(best, place(t, "given", given));
    }
    return best;
}

static void compare(const scene *s, const char *schedule, int32_t micro_batches) {
    net     t;
    int32_t given[NODES];
    build(&t, s);
    t.opts.schedule = schedule;
    t.opts.chunks = strcmp(schedule, "interleaved") == 0 ? 2 : 1;
    t.opts.micro_batches = micro_batches;
    const double random = best_random(&t, 200);
    equal_runs(&t, given);
    const double layers = place(&t, "given", given), chosen = place(&t, "auto", given);
    print_message("%-28s %-12s %2d: auto %.3f, layers %.3f, best of 200 random %.3f ms\n", s->name, schedule,
                  micro_batches, 1e3 * chosen, 1e3 * layers, 1e3 * random);
    assert_true(chosen <= layers && chosen > 0);
    if (!(chosen <= 1.1 * random)) fail_msg("%s, %s: %g s, random %g s", s->name, schedule, chosen, random);
    const double again = s == scenes ? place(&t, "auto", given) : chosen;
    if (memcmp(&chosen, &again, sizeof chosen) != 0) fail_msg("%s: another placement the second time", s->name);
    plait_graph_destroy(&t.g);
}

static void test_auto_in_the_order_that_runs(void **state) {
    static const char *const schedules[] = { "gpipe", "1f1b", "interleaved" };
    static const int32_t     micro_batches[] = { 4, 8, 16 };
    const bool               all = getenv("PLAIT_TEST_FULL") != NULL;
    (void)state;
    for (int32_t i = 0; i < SCENES; i++)
        for (int32_t k = 0; k < 3; k++)
            for (int32_t m = 0; m < 3; m++)
                if (all || (m == 0 && k == i % 3)) compare(&scenes[i], schedules[k], micro_batches[m]);
}

/* --- what a step comes to --------------------------------------------------------------------------------------- */

/* No cost of messages, and stages that take the same time (the first has three layers, but no gradient by the rows):
 * the share of time at work is that of the schedule. */
static void test_bubbles(void **state) {
    (void)state;
    net     t;
    int32_t given[NODES], part[LAYERS];
    double  free_links[16];
    build(&t, &(scene){ "even", chain, IN, 1, { 8.0 / 6, 1, 1, 1 } });
    for (int i = 0; i < 16; i++) free_links[i] = 0;
    t.opts.latency_s = free_links;
    t.opts.message_ns = t.opts.byte_ns = 0;
    t.opts.micro_batches = 1;
    t.opts.schedule = "gpipe";
    for (int32_t i = 0; i < t.layers; i++) part[i] = i == 0 ? 0 : (i - 1) / 2;
    by_cuts(&t, part, given);
    const double one = place(&t, "given", given); /* goes through all four stages, alone */
    for (int32_t m = 4; m <= 16; m *= 2)
        for (int k = 0; k < 2; k++) {
            t.opts.schedule = k == 0 ? "gpipe" : "1f1b";
            t.opts.micro_batches = m;
            const double share = m * one / 4 / place(&t, "given", given), ideal = m / (m + 3.0);
            if (!(share > 0.8 * ideal && share < 1.05 * ideal)) fail_msg("%d: %g of %g", m, share, ideal);
        }
    plait_graph_destroy(&t.g);
}

/* A stage between two halves of another waits in each micro-batch: only gpipe runs it, and slowly. */
static void test_no_chain(void **state) {
    (void)state;
    net     t;
    int32_t given[NODES], part[LAYERS];
    build(&t, &scenes[1]);
    t.opts.schedule = "1f1b";
    t.opts.micro_batches = 8;
    equal_runs(&t, given);
    const double layers = place(&t, "given", given);
    for (int32_t i = 0; i < t.layers; i++) part[i] = i < t.layers / 2 ? i % 4 : 3 - i % 4;
    by_cuts(&t, part, given);
    assert_true(place(&t, "given", given) > 1.5 * layers);
    t.opts.chain = 1;
    assert_true(isinf(place(&t, "given", given)));
    assert_non_null(strstr(error.text, "parts are no chain"));
    assert_true(place(&t, "auto", NULL) <= 1.05 * layers);
    t.opts.schedule = "1f1c";
    plait_placement *p = NULL;
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_ENAME);
    assert_non_null(strstr(error.text, "1f1b"));
    t.opts.schedule = NULL;
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EINVAL);
    t.opts.schedule = "interleaved";
    t.opts.chain = 0;
    t.opts.chunks = 2;
    t.opts.micro_batches = 6;
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EINVAL);
    assert_non_null(strstr(error.text, "take 8"));
    t.opts.micro_batches = 8;
    t.opts.method = "metis";
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EINVAL);
    plait_graph_destroy(&t.g);
}

/* 1f1b keeps fewer micro-batches than gpipe, so it needs less memory on the first rank. */
static void test_memory(void **state) {
    (void)state;
    net               t;
    int32_t           given[NODES];
    plait_place_share share[2];
    build(&t, &scenes[0]);
    t.opts.micro_batches = 16;
    t.opts.method = "given";
    t.opts.given = given;
    equal_runs(&t, given);
    for (int k = 0; k < 2; k++) {
        plait_placement *p = NULL;
        t.opts.schedule = k == 0 ? "gpipe" : "1f1b";
        assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_OK);
        assert_int_equal(plait_placement_share(p, 0, &share[k], &error), PLAIT_OK);
        plait_placement_destroy(&p);
    }
    assert_float_equal(share[0].activation_bytes, 4 * share[1].activation_bytes, 1);
    assert_float_equal(share[0].variable_bytes, share[1].variable_bytes, 0);
    plait_graph_destroy(&t.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_in_the_order_that_runs),
        cmocka_unit_test(test_bubbles),
        cmocka_unit_test(test_no_chain),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
