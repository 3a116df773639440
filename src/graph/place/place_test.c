/* Placements against random ones: on each of a dozen graphs, chains and branches, equal and uneven hosts, with and
 * without bounds of memory, "auto" is at most 10 % slower than the best of 200 random placements (in simulated
 * time), and never needs more memory than a rank has. PLAIT_TEST_FULL draws 2,000. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/graph_file.h>
#include <plait/nn.h>
#include <plait/ops.h>
#include <plait/place.h>

#include "base/module.h"
#include "base/random.h"
#include "graph/form/export.h"
#include "graph/graph.h"
#include "base/cutter.h"

enum { BATCH = 64, RANKS_MAX = 8 };

static plait_error error;

/* --- graphs ----------------------------------------------------------------------------------------------------- */

static plait_value layer(plait_graph *g, plait_value x, int64_t in, int64_t out, const char *name) {
    const plait_tensor w = { .type = PLAIT_F32, .shape = plait_shape_2(in, out) };
    return plait_op_relu(g, plait_op_matmul(g, x, plait_graph_variable(g, name, w)));
}

static plait_value chain(plait_graph *g, plait_value x, int64_t n, int64_t step) {
    char    name[16];
    int64_t width = 64;
    for (int64_t i = 0; i < n; i++, width += step) {
        snprintf(name, sizeof name, "w%lld", (long long)i);
        x = layer(g, x, width, width + step, name);
    }
    return plait_op_sum(g, x, 0, NULL, 0);
}

/* Branches of different lengths from one input, summed at the end. */
static plait_value branches(plait_graph *g, plait_value x, int64_t n, int64_t depth) {
    plait_value y[16];
    char        name[16];
    for (int64_t i = 0; i < n; i++) {
        y[i] = x;
        for (int64_t d = 0; d < depth + i % 2; d++) {
            snprintf(name, sizeof name, "w%lld.%lld", (long long)i, (long long)d);
            y[i] = layer(g, y[i], 64, 64, name);
        }
    }
    const plait_value sum = plait_graph_op(g, "add_n", y, (int32_t)n, NULL, 0);
    return plait_op_sum(g, sum, 0, NULL, 0);
}

/* Blocks of two branches, one after the other, as in an inception net. */
static plait_value ladder(plait_graph *g, plait_value x, int64_t n, int64_t width) {
    char name[16];
    (void)width;
    for (int64_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, "l%lld", (long long)i);
        const plait_value left = layer(g, x, 64, 64, name);
        snprintf(name, sizeof name, "r%lld", (long long)i);
        x = plait_op_add(g, left, layer(g, x, 64, 64, name));
    }
    return plait_op_sum(g, x, 0, NULL, 0);
}

/* A grid of layers: each reads its neighbours in the row before, as stencils and graph nets do. */
static plait_value grid(plait_graph *g, plait_value x, int64_t rows, int64_t columns) {
    plait_value row[16], next[16];
    char        name[16];
    for (int64_t c = 0; c < columns; c++) row[c] = x;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++) {
            snprintf(name, sizeof name, "g%lld.%lld", (long long)r, (long long)c);
            const plait_value in = c > 0 ? plait_op_add(g, row[c], row[c - 1]) : row[c];
            next[c] = layer(g, in, 64, 64, name);
        }
        memcpy(row, next, sizeof row);
    }
    const plait_value sum = plait_graph_op(g, "add_n", row, (int32_t)columns, NULL, 0);
    return plait_op_sum(g, sum, 0, NULL, 0);
}

/* Convolutions in two branches after a first one, n times, then a dense layer: an image net, 8 x 8 pixels. */
static plait_value inception(plait_graph *g, plait_value x, int64_t n, int64_t channels) {
    static const int64_t around[] = { 1, 1, 1, 1 };
    char                 name[16];
    int64_t              in = 1;
    x = plait_op_reshape(g, x, plait_shape_4(-1, 1, 8, 8));
    for (int64_t i = 0; i < n; i++) {
        plait_value side[2];
        for (int64_t k = 0; k < 2; k++) {
            const plait_tensor w = { .type = PLAIT_F32, .shape = plait_shape_4(channels, in, 3, 3) };
            snprintf(name, sizeof name, "c%lld.%lld", (long long)i, (long long)k);
            const plait_value filters = plait_graph_variable(g, name, w);
            side[k] = plait_op_relu(g, plait_op_conv2d(g, x, filters, NULL, around, NULL, 1));
        }
        x = plait_op_add(g, side[0], side[1]);
        in = channels;
    }
    const int64_t flat = in * 64;
    x = layer(g, plait_op_reshape(g, x, plait_shape_2(-1, flat)), flat, 32, "dense");
    return layer(g, x, 32, 10, "last");
}

typedef struct scene {
    const char *name;
    plait_value (*build)(plait_graph *, plait_value, int64_t, int64_t);
    int64_t n, size;
    int32_t ranks, micro;
    double  speed[RANKS_MAX]; /* 0: equal */
    double  node_ns, bandwidth;
    double  memory; /* a rank's share of what one rank would need; 0: no bound */
    bool    train;
} scene;

static const scene scenes[] = {
    { "chain of 6, one batch", chain, 6, 0, 2, 1, { 0 }, 2e5, 1.25e9, 0, true },
    { "chain of 8, 4 micro-batches", chain, 8, 0, 4, 4, { 0 }, 2e5, 1.25e9, 0, true },
    { "chain of 8 that widens", chain, 8, 16, 3, 4, { 0 }, 1e5, 1.25e9, 0, true },
    { "chain of 12, uneven hosts", chain, 12, 0, 4, 4, { 1, 0.5, 2, 1 }, 2e5, 1.25e9, 0, true },
    { "chain of 8, half the memory", chain, 8, 0, 3, 2, { 0 }, 1e5, 1.25e9, 0.6, true },
    { "4 branches", branches, 4, 2, 4, 1, { 0 }, 3e5, 1.25e9, 0, true },
    { "6 branches, 2 hosts", branches, 6, 1, 2, 1, { 0 }, 3e5, 1.25e9, 0, true },
    { "5 branches, uneven hosts", branches, 5, 2, 3, 1, { 3, 1, 1 }, 3e5, 1.25e9, 0, true },
    { "4 branches, slow links", branches, 4, 2, 4, 1, { 0 }, 1e4, 1e7, 0, true },
    { "ladder of 5", ladder, 5, 0, 2, 1, { 0 }, 3e5, 1.25e9, 0, true },
    { "ladder of 4, 2 micro-batches, uneven", ladder, 4, 0, 3, 2, { 1, 2, 1 }, 3e5, 1.25e9, 0, true },
    { "grid of 6 x 8, trained, 4 ranks", grid, 6, 8, 4, 2, { 0 }, 2e5, 1.25e8, 0.4, true },
    { "branches without training, less memory", branches, 6, 2, 3, 1, { 0 }, 3e5, 1.25e9, 0.55, false },
    /* hundreds of nodes take many seconds each: the long form of the test has them */
    { "grid of 24 x 8, 4 ranks", grid, 24, 8, 4, 1, { 0 }, 2e5, 1.25e9, 0, false },
    { "grid of 24 x 8, 8 ranks, 4 micro-batches", grid, 24, 8, 8, 4, { 0 }, 1e5, 1.25e9, 0, false },
    { "12 branches of 16, 6 ranks", branches, 12, 16, 6, 1, { 0 }, 1e5, 1.25e8, 0, false },
    { "chain of 200, 8 ranks, 8 micro-batches", chain, 200, 0, 8, 8, { 0 }, 1e5, 1.25e9, 0, false },
};
enum { SCENES = sizeof scenes / sizeof *scenes, LARGE = 4 };

/* --- a scene ---------------------------------------------------------------------------------------------------- */

typedef struct stage {
    plait_graph     *g;
    plait_place_opts opts;
    plait_feed       feed;
    plait_value      fetch[64];
    double           bandwidth[RANKS_MAX * RANKS_MAX];
    uint64_t         memory[RANKS_MAX];
} stage;

static void add_training(stage *t, plait_value y) {
    plait_value x[64], dx[64];
    char        name[16];
    int32_t     n = 0;
    for (int32_t k = 0; k < plait_graph_variables(t->g); k++) {
        snprintf(name, sizeof name, "%.15s", plait_graph_variable_name(t->g, k));
        x[n++] = plait_graph_find(t->g, name);
    }
    assert_int_equal(plait_graph_gradients(t->g, y, n, x, dx), PLAIT_OK);
    for (int32_t k = 0; k < n; k++) t->fetch[t->opts.n_fetches++] = plait_op_inc(t->g, x[k], dx[k]);
}

static void build(stage *t, const scene *s) {
    *t = (stage){ .g = NULL };
    assert_int_equal(plait_graph_create(NULL, 0, &t->g, &error), PLAIT_OK);
    plait_place_opts_init(&t->opts);
    t->feed.value = plait_graph_placeholder(t->g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, 64));
    t->feed.tensor = (plait_tensor){ .type = PLAIT_F32, .shape = plait_shape_2(BATCH, 64) };
    const plait_value y = s->build(t->g, t->feed.value, s->n, s->size);
    t->fetch[t->opts.n_fetches++] = y;
    if (s->train) add_training(t, y);
    if (plait_graph_check(t->g, &error) < 0) fail_msg("%s: %s", s->name, error.text);
    for (int32_t i = 0; i < s->ranks * s->ranks; i++) t->bandwidth[i] = s->bandwidth;
    t->opts.ranks = s->ranks;
    t->opts.speed = s->speed[0] > 0 ? s->speed : NULL;
    t->opts.bandwidth = t->bandwidth;
    t->opts.node_ns = s->node_ns;
    t->opts.micro_batches = s->micro;
    t->opts.state_values = 2;
    t->opts.feeds = &t->feed;
    t->opts.n_feeds = 1;
    t->opts.fetches = t->fetch;
    t->opts.seed = 5;
}

static plait_placement *place(stage *t, const char *method, const int32_t *given) {
    plait_placement *p = NULL;
    t->opts.method = method;
    t->opts.given = given;
    const plait_status status = plait_placement_create(t->g, &t->opts, &p, &error);
    if (status != PLAIT_OK && status != PLAIT_EREFUSED) fail_msg("%s: %s", method, error.text);
    return p;
}

/* What one rank would need for the whole graph. */
static double whole_bytes(stage *t) {
    int32_t          *zeros = calloc((size_t)plait_graph_nodes(t->g), sizeof *zeros);
    plait_place_share share;
    plait_placement  *p = place(t, "given", zeros);
    assert_int_equal(plait_placement_share(p, 0, &share, &error), PLAIT_OK);
    plait_placement_destroy(&p);
    free(zeros);
    return share.variable_bytes + share.activation_bytes;
}

/* The best of n random placements of the units. A unit takes the rank that its first node drew. */
static double best_random(stage *t, int64_t n, int64_t *fitted) {
    const int64_t nodes = plait_graph_nodes(t->g);
    int32_t      *given = calloc((size_t)nodes, sizeof *given);
    double        best = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        pli_random random = pli_random_at(9, PLI_RANDOM_DATA, (uint64_t)i, 1);
        for (int64_t k = 0; k < nodes; k++) given[k] = (int32_t)pli_random_below(&random, (uint64_t)t->opts.ranks);
        plait_placement *p = place(t, "given", given);
        if (p == NULL) continue;
        ++*fitted;
        best = fmin(best, plait_placement_seconds(p));
        plait_placement_destroy(&p);
    }
    free(given);
    return best;
}

static void check_memory(const stage *t, const plait_placement *p, const char *name) {
    for (int32_t r = 0; r < t->opts.ranks; r++) {
        plait_place_share share;
        assert_int_equal(plait_placement_share(p, r, &share, &error), PLAIT_OK);
        if (share.variable_bytes + share.activation_bytes > (double)t->memory[r])
            fail_msg("%s: rank %d needs %.0f bytes", name, r, share.variable_bytes + share.activation_bytes);
    }
}

/* The best of `auto` beside random ones; destroys the stage. */
static void compare(stage *t, const scene *s, int64_t draws) {
    int64_t      fitted = 0;
    const double whole = whole_bytes(t);
    for (int32_t r = 0; r < t->opts.ranks; r++) t->memory[r] = (uint64_t)(whole * s->memory);
    if (s->memory > 0) t->opts.memory_bytes = t->memory;
    const double     random = best_random(t, draws, &fitted);
    plait_placement *p = place(t, "auto", NULL);
    if (p == NULL) fail_msg("%s: %s", s->name, error.text);
    if (t->opts.memory_bytes != NULL) check_memory(t, p, s->name);
    const double chosen = plait_placement_seconds(p);
    plait_placement_destroy(&p);
    p = place(t, "chain", NULL);
    print_message("%-40s auto %8.3f ms, best of %lld random %8.3f ms, chain %8.3f ms\n", s->name, chosen * 1e3,
                  (long long)fitted, random * 1e3, p != NULL ? plait_placement_seconds(p) * 1e3 : NAN);
    if (!(chosen <= 1.1 * random)) fail_msg("%s: %g s, random %g s", s->name, chosen, random);
    plait_placement_destroy(&p);
    plait_graph_destroy(&t->g);
}

static int64_t draws(void) { return getenv("PLAIT_TEST_FULL") != NULL ? 2000 : 200; }

static void test_auto_against_random(void **state) {
    (void)state;
    for (size_t i = 0; i < SCENES - (draws() > 200 ? 0 : LARGE); i++) {
        stage t;
        build(&t, &scenes[i]);
        compare(&t, &scenes[i], draws());
    }
}

/* --- an ONNX model ---------------------------------------------------------------------------------------------- */

/* Writes the scene's graph as an ONNX model with values, and reads it back; false: there is no plait-onnx.so. */
static bool through_onnx(const plait_graph *g, plait_value y, plait_graph **graph_out) {
    char         path[] = "/tmp/plait-place-XXXXXX";
    plait_tensor variable[64];
    pli_export   to;
    const int32_t n = plait_graph_variables(g);
    close(mkstemp(path));
    for (int32_t k = 0; k < n; k++) {
        variable[k] = plait_graph_variable_initial(g, k);
        variable[k].data = calloc((size_t)plait_shape_elements(&variable[k].shape), sizeof(float));
    }
    pli_export_init(&to);
    const char *x = pli_export_input(&to, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, 64), "rows");
    pli_export_begin(&to, g, variable);
    pli_export_bind(&to, plait_graph_find(g, "x"), x);
    pli_export_output(&to, pli_export_value(&to, y), "scores", PLAIT_F32, false, plait_shape_2(PLAIT_ANY, 10), "rows");
    plait_status status = pli_export_save(&to, path, "place", &error);
    pli_export_destroy(&to);
    if (status == PLAIT_OK) status = plait_graph_load(path, NULL, graph_out, &error);
    for (int32_t k = 0; k < n; k++) free(variable[k].data);
    unlink(path);
    if (status != PLAIT_OK && status != PLAIT_EMODULE) fail_msg("%s", error.text);
    return status == PLAIT_OK;
}

static const scene models[] = {
    { "ONNX, 3 ranks", inception, 4, 8, 3, 1, { 0 }, 1e4, 1.25e9, 0, true },
    { "ONNX, uneven hosts, 2 micro-batches", inception, 4, 8, 4, 2, { 1, 0.5, 2, 1 }, 1e4, 1.25e9, 0, true },
    { "ONNX, 0.7 of the memory, uneven", inception, 3, 8, 3, 1, { 1, 0.5, 1 }, 1e4, 1.25e9, 0.7, false },
};

static void test_an_onnx_model_against_random(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        stage        t;
        plait_graph *model = NULL;
        scene        s = models[i];
        s.train = false;
        build(&t, &s);
        const bool read = through_onnx(t.g, t.fetch[0], &model);
        plait_graph_destroy(&t.g);
        if (!read) skip();
        t.g = model;
        t.feed.value = plait_graph_find(model, "x");
        t.fetch[0] = plait_graph_find(model, "scores");
        assert_true(t.feed.value >= 0 && t.fetch[0] >= 0);
        assert_int_equal(plait_graph_variables(model), 2 * models[i].n + 2);
        if (models[i].train) add_training(&t, plait_op_sum(model, t.fetch[0], 0, NULL, 0));
        if (plait_graph_check(model, &error) < 0) fail_msg("%s: %s", s.name, error.text);
        compare(&t, &models[i], draws());
    }
}

/* METIS' starts are among those of the method "metis", so it is never worse than auto; it keeps to memory and rules. */
static void test_metis(void **state) {
    (void)state;
    void       *handle = NULL;
    const void *given = NULL;
    if (pli_module_load("metis", PLI_CUTTER_ABI, &handle, &given, &error) < 0) {
        assert_non_null(strstr(error.text, "libmetis-dev"));
        skip();
    }
    const pli_cutter *cutter = given;
    /* two triangles and a light edge between them */
    static const int32_t first[] = { 0, 2, 4, 7, 10, 12, 14 }, to[] = { 1, 2, 0, 2, 0, 1, 3, 2, 4, 5, 3, 5, 3, 4 },
                         edge[] = { 9, 9, 9, 9, 9, 9, 1, 1, 9, 9, 9, 9, 9, 9 }, weight[] = { 1, 1, 1, 1, 1, 1 };
    static const float   half[] = { 0.5f, 0.5f };
    int32_t              part[6];
    assert_true(cutter->cut(&(pli_cut_graph){ 6, 1, first, to, edge, weight }, 2, half, 3, part));
    assert_true(part[0] == part[1] && part[1] == part[2] && part[3] == part[4] && part[4] == part[5]);
    assert_int_not_equal(part[0], part[3]);
    pli_module_close(&handle);
    for (size_t i = 0; i < SCENES - LARGE - 2; i++) {
        stage t;
        build(&t, &scenes[i]);
        const double whole = whole_bytes(&t);
        for (int32_t r = 0; r < t.opts.ranks; r++) t.memory[r] = (uint64_t)(whole * scenes[i].memory);
        if (scenes[i].memory > 0) t.opts.memory_bytes = t.memory;
        plait_graph_place(t.g, t.fetch[0], "rank:1");
        plait_placement *p = place(&t, "auto", NULL), *m = place(&t, "metis", NULL);
        if (p == NULL || m == NULL) fail_msg("%s: %s", scenes[i].name, error.text);
        if (t.opts.memory_bytes != NULL) check_memory(&t, m, scenes[i].name);
        assert_int_equal(plait_placement_parts(m)[t.g->value[t.fetch[0]].node], 1);
        if (!(plait_placement_seconds(m) <= plait_placement_seconds(p)))
            fail_msg("%s: metis %g s, auto %g s", scenes[i].name, plait_placement_seconds(m),
                     plait_placement_seconds(p));
        plait_placement_destroy(&p);
        plait_placement_destroy(&m);
        plait_graph_destroy(&t.g);
    }
}

/* A chain of equal layers on one rank takes the sum of its nodes; nothing is sent, and there are no bubbles. */
static void test_one_rank_is_busy(void **state) {
    (void)state;
    stage             t;
    plait_place_share share;
    build(&t, &scenes[0]);
    int32_t         *zeros = calloc((size_t)plait_graph_nodes(t.g), sizeof *zeros);
    plait_placement *p = place(&t, "given", zeros);
    assert_int_equal(plait_placement_share(p, 0, &share, &error), PLAIT_OK);
    assert_float_equal(share.sent_bytes, 0, 0);
    assert_float_equal(share.busy_s, plait_placement_seconds(p), 1e-12);
    /* six products forward; backward six by weights and five by inputs, none by the placeholder: 17 of 2 * 64^3 */
    assert_true(share.operations >= 17 * 2.0 * 64 * 64 * 64 && share.operations < 18 * 2.0 * 64 * 64 * 64);
    assert_float_equal(share.variable_bytes, 6 * 64 * 64 * 4 * 3.0, 0); /* with two values of state */
    assert_int_equal(plait_placement_share(p, 2, &share, &error), PLAIT_EINVAL);
    plait_placement_destroy(&p);
    free(zeros);
    plait_graph_destroy(&t.g);
}

/* Where each byte takes a nanosecond, and nothing else does, two micro-batches take twice as long as one, and besides
 * the time to add their incs up: each delta and sum is read, and the sum is written. */
static void test_incs_of_micro_batches_are_added_up(void **state) {
    (void)state;
    stage  t;
    double seconds[3];
    build(&t, &scenes[0]);
    int32_t *zeros = calloc((size_t)plait_graph_nodes(t.g), sizeof *zeros);
    t.opts.flop_ns = t.opts.tap_ns = t.opts.step_ns = t.opts.node_ns = t.opts.message_ns = t.opts.byte_ns = 0;
    t.opts.moved_ns = 1;
    for (int32_t m = 1; m <= 2; m++) {
        t.opts.micro_batches = m;
        plait_placement *p = place(&t, "given", zeros);
        assert_non_null(p);
        seconds[m] = plait_placement_seconds(p);
        plait_placement_destroy(&p);
    }
    assert_float_equal(seconds[2] - 2 * seconds[1], 2 * 6 * 3 * 64 * 64 * 4 * 1e-9, 1e-12);
    free(zeros);
    plait_graph_destroy(&t.g);
}

static void test_by_hand_and_rules(void **state) {
    (void)state;
    stage t;
    build(&t, &scenes[1]);
    const plait_value first = plait_graph_find(t.g, "w0"), last = plait_graph_find(t.g, "w7"),
                      middle = plait_graph_find(t.g, "w3");
    assert_int_equal(plait_graph_placed(t.g, first), -1);
    assert_int_equal(plait_graph_place(t.g, first, "rank:3/cpu:0"), first);
    assert_int_equal(plait_graph_placed(t.g, first), 3);
    const plait_place_rule rules[] = { { PLAIT_PLACE_TOGETHER, first, last, 0 },
                                       { PLAIT_PLACE_NEVER, middle, 0, 1 },
                                       { PLAIT_PLACE_NEVER, middle, 0, 3 },
                                       { PLAIT_PLACE_NEVER, middle, 0, 0 } };
    t.opts.rules = rules;
    t.opts.n_rules = 4;
    plait_placement *p = place(&t, "auto", NULL);
    assert_non_null(p);
    const int32_t *part = plait_placement_parts(p);
    assert_int_equal(part[t.g->value[first].node], 3);
    assert_int_equal(part[t.g->value[last].node], 3);
    assert_int_equal(part[t.g->value[middle].node], 2);
    for (int64_t k = 0; k < t.g->n_nodes; k++) /* a gradient is where its forward node is */
        if (t.g->node[k].forward >= 0) assert_int_equal(part[k], part[t.g->node[k].forward]);
    plait_placement_destroy(&p);
    plait_graph_place(t.g, last, "rank:1");
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EINVAL);
    assert_non_null(strstr(error.text, "'w7' is placed on rank 1, but what belongs to it on rank 3"));
    plait_graph_destroy(&t.g);
}

/* The rules that a graph keeps: pairs that are to be apart, and the ranks' memory. */
static void test_rules_of_the_graph(void **state) {
    (void)state;
    stage t;
    build(&t, &scenes[0]);
    t.opts.ranks = 3;
    t.opts.bandwidth = NULL;
    t.opts.node_ns = 100; /* so cheap that nothing is sent unless it must be */
    static const char *const names[] = { "w0", "w2", "w5" };
    plait_value              v[3];
    plait_placement         *p = place(&t, "auto", NULL);
    for (int i = 0; i < 3; i++) v[i] = plait_graph_find(t.g, names[i]);
    const int32_t *part = plait_placement_parts(p);
    assert_int_equal(part[t.g->value[v[0]].node], part[t.g->value[v[1]].node]);
    plait_placement_destroy(&p);
    for (int i = 0; i < 3; i++) {
        const plait_place_rule apart = { PLAIT_PLACE_APART, v[i], v[(i + 1) % 3], 0 };
        assert_int_equal(plait_graph_place_rule(t.g, &apart, &error), PLAIT_OK);
    }
    const plait_place_rule nowhere = { PLAIT_PLACE_NEVER, v[0], 0, 7 }; /* a rank that is not there */
    assert_int_equal(plait_graph_place_rule(t.g, &nowhere, &error), PLAIT_OK);
    p = place(&t, "auto", NULL);
    assert_non_null(p);
    part = plait_placement_parts(p);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(part[t.g->value[v[i]].node], part[t.g->value[v[(i + 1) % 3]].node]);
    plait_placement_destroy(&p);
    t.opts.ranks = 2; /* three cannot be apart on two */
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EREFUSED);
    assert_non_null(strstr(error.text, "keeps all nodes apart"));
    t.opts.ranks = 3;
    assert_int_equal(plait_graph_place_memory(t.g, 1, 1000, &error), PLAIT_OK); /* rank 1 holds nothing, so */
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EREFUSED);
    assert_non_null(strstr(error.text, "rank 1 needs "));
    assert_null(strstr(error.text, "rank 0 needs ")); /* which has no bound */
    assert_int_equal(plait_graph_place_memory(t.g, 1, 0, &error), PLAIT_OK);
    p = place(&t, "auto", NULL);
    assert_non_null(p);
    plait_placement_destroy(&p);
    plait_graph_place(t.g, v[0], "rank:1");
    plait_graph_place(t.g, v[1], "rank:1");
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EINVAL);
    assert_non_null(strstr(error.text, "are to be apart, but both are placed on rank 1"));
    int32_t *zeros = calloc((size_t)plait_graph_nodes(t.g), sizeof *zeros);
    plait_graph_place(t.g, v[2], "rank:5");
    p = place(&t, "given", zeros); /* is judged as it is, whatever the graph keeps */
    assert_non_null(p);
    assert_int_equal(plait_placement_parts(p)[t.g->value[v[2]].node], 0);
    plait_placement_destroy(&p);
    free(zeros);
    const plait_place_rule bad = { PLAIT_PLACE_APART, v[0], 1 << 20, 0 };
    assert_int_equal(plait_graph_place_rule(t.g, &bad, &error), PLAIT_EINVAL);
    assert_int_equal(plait_graph_place_memory(t.g, 4096, 1, &error), PLAIT_EINVAL);
    plait_graph_destroy(&t.g);
}

static void refuse_place(const char *where, plait_status status, const char *part) {
    plait_graph *g = NULL;
    assert_int_equal(plait_graph_create(NULL, 0, &g, &error), PLAIT_OK);
    const plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_1(1));
    assert_int_equal(plait_graph_place(g, x, where), PLAIT_NONE);
    assert_int_equal(plait_graph_check(g, &error), status);
    if (strstr(error.text, part) == NULL) fail_msg("'%s' does not say '%s'", error.text, part);
    plait_graph_destroy(&g);
}

static void test_refusals(void **state) {
    (void)state;
    refuse_place("rank:0/gpu:0", PLAIT_ENAME, "no device 'gpu:0'; each rank has one, cpu:0");
    refuse_place("cpu:0", PLAIT_EINVAL, "expected a rank");
    refuse_place("rank:-1", PLAIT_EINVAL, "expected a rank");
    stage            t;
    plait_placement *p = NULL;
    build(&t, &scenes[0]);
    t.opts.method = "atuo";
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_ENAME);
    assert_non_null(strstr(error.text, "auto"));
    t.opts.method = "auto";
    t.memory[0] = t.memory[1] = 1000;
    t.opts.memory_bytes = t.memory;
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EREFUSED);
    assert_non_null(strstr(error.text, "rank 1 needs "));
    assert_null(p);
    t.opts.ranks = 0;
    assert_int_equal(plait_placement_create(t.g, &t.opts, &p, &error), PLAIT_EINVAL);
    plait_graph_destroy(&t.g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto_against_random),
        cmocka_unit_test(test_an_onnx_model_against_random),
        cmocka_unit_test(test_metis),
        cmocka_unit_test(test_one_rank_is_busy),
        cmocka_unit_test(test_incs_of_micro_batches_are_added_up),
        cmocka_unit_test(test_by_hand_and_rules),
        cmocka_unit_test(test_rules_of_the_graph),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
