/* Tests of cut graphs: a net of four layers trains with the same bits uncut and cut in 1 .. 5 parts, by sessions on
 * threads; cuts of single nodes at random; micro-batches under each schedule; refusals; waits that cannot end. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/session.h"

#include <cmocka.h>

#include <plait/nn.h>
#include <plait/ops.h>

#include "new_graph.h"

enum { LAYERS = 4, WIDTH = 6, ROWS = 12, STEPS = 3, PARTS_MAX = 8, TABLE = 5, VARIABLES = 2 * LAYERS + 2, BATCHES = 6 };

typedef struct net {
    plait_graph *graph;
    plait_value  x, rows, target, loss, inc[VARIABLES];
    plait_value  behind;            /* fetched, too, unless it is PLAIT_NONE */
    int64_t      begins[LAYERS + 1]; /* the first node of each layer, and of the loss */
    float        initial[VARIABLES][WIDTH * WIDTH];
} net;

static plait_value variable(net *n, int32_t k, const char *name, plait_shape shape) {
    for (int64_t i = 0; i < plait_shape_elements(&shape); i++)
        n->initial[k][i] = (float)((double)(pli_hash_u64((uint64_t)(97 * k + i)) % 1000) / 1000 - 0.5);
    return plait_graph_variable(n->graph, name, plait_tensor_of(PLAIT_F32, shape, n->initial[k]));
}

/* The rows of a table, then dense layers, the first two of which drop values, and a sum of squares. A variable, `s`, is
 * used by the second and the last layer. */
static void make_net(net *n) {
    *n = (net){ .graph = new_graph(), .behind = PLAIT_NONE };
    plait_graph *g = n->graph;
    plait_value  v[VARIABLES], dv[VARIABLES], h;
    char         name[16];
    n->x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, WIDTH));
    n->rows = plait_graph_placeholder(g, "rows", PLAIT_I64, plait_shape_1(PLAIT_ANY));
    n->target = plait_graph_placeholder(g, "target", PLAIT_F32, plait_shape_2(PLAIT_ANY, WIDTH));
    v[2 * LAYERS] = variable(n, 2 * LAYERS, "table", plait_shape_2(TABLE, WIDTH));
    v[2 * LAYERS + 1] = variable(n, 2 * LAYERS + 1, "s", plait_shape_1(WIDTH));
    h = plait_op_add(g, n->x, plait_op_2(g, "get_rows", v[2 * LAYERS], n->rows));
    for (int32_t l = 0; l < LAYERS; l++) {
        n->begins[l] = plait_graph_nodes(g);
        snprintf(name, sizeof name, "w%d", l);
        v[2 * l] = variable(n, 2 * l, name, plait_shape_2(WIDTH, WIDTH));
        snprintf(name, sizeof name, "b%d", l);
        v[2 * l + 1] = variable(n, 2 * l + 1, name, plait_shape_1(WIDTH));
        h = plait_op_tanh(g, plait_op_add(g, plait_op_matmul(g, h, v[2 * l]), v[2 * l + 1]));
        if (l < 2) h = plait_op_dropout(g, h, 0.25);
        if (l == 1 || l == LAYERS - 1) h = plait_op_mul(g, h, v[2 * LAYERS + 1]);
    }
    n->begins[LAYERS] = plait_graph_nodes(g);
    n->loss = plait_op_sum(g, plait_op_square(g, plait_op_sub(g, h, n->target)), 0, NULL, 0);
    assert_int_equal(plait_graph_gradients(g, n->loss, VARIABLES, v, dv), PLAIT_OK);
    for (int32_t k = 0; k < VARIABLES; k++)
        n->inc[k] = plait_op_2(g, "inc", v[k], plait_op_mul(g, dv[k], plait_graph_scalar(g, PLAIT_F32, -0.01)));
    assert_int_equal(plait_graph_check(g, NULL), PLAIT_OK);
}

/* What one part has after its steps. */
typedef struct outcome {
    float        loss[STEPS * BATCHES];
    float        value[VARIABLES][WIDTH * WIDTH];
    int64_t      version[VARIABLES];
    plait_status status;
    plait_error  error;
} outcome;

typedef struct part {
    net                  *net;
    const plait_cut      *cut;      /* NULL: uncut */
    const char           *schedule; /* NULL: one micro-batch a step */
    int32_t               batches, chunks, threads;
    plait_memory_channel *channel;
    outcome               out;
} part;

static void one_batch(const net *n, int32_t step, int32_t first, int32_t rows, bool given, float *x, int64_t *row,
                      float *target, plait_feed feeds[3]) {
    for (int32_t i = 0; i < rows * WIDTH; i++) {
        const uint64_t at = (uint64_t)(step * 100000 + first * WIDTH + i);
        x[i] = (float)(pli_hash_u64(at) % 100) / 100;
        target[i] = (float)(pli_hash_u64(at + 50000) % 100) / 100;
    }
    for (int32_t i = 0; i < rows; i++) row[i] = (first + i + step) % TABLE;
    feeds[0] = (plait_feed){ n->x, plait_tensor_of(PLAIT_F32, plait_shape_2(rows, WIDTH), given ? x : NULL) };
    feeds[1] = (plait_feed){ n->rows, plait_tensor_of(PLAIT_I64, plait_shape_1(rows), given ? row : NULL) };
    feeds[2] = (plait_feed){ n->target, plait_tensor_of(PLAIT_F32, plait_shape_2(rows, WIDTH), given ? target : NULL) };
}

static plait_status step(part *p, plait_session **sessions, int32_t k) {
    static const int32_t none = 0;
    const int32_t        each = ROWS / p->batches;
    float                x[BATCHES][ROWS * WIDTH], target[BATCHES][ROWS * WIDTH];
    int64_t              row[BATCHES][ROWS];
    plait_feed           feeds[BATCHES][3];
    plait_fetch          fetches[BATCHES][VARIABLES + 2];
    plait_batch          batch[BATCHES];
    const int32_t        wanted = VARIABLES + 1 + (p->net->behind != PLAIT_NONE);
    for (int32_t m = 0; m < p->batches; m++) {
        const bool given = p->cut == NULL || sessions[0]->cut.own == none; /* placeholders lie in part 0 */
        one_batch(p->net, k, m * each, each, given, x[m], row[m], target[m], feeds[m]);
        for (int32_t v = 0; v < VARIABLES; v++) fetches[m][v] = (plait_fetch){ .value = p->net->inc[v] };
        fetches[m][VARIABLES] = (plait_fetch){ .value = p->net->loss,
                                               .tensor = { .data = &p->out.loss[k * BATCHES + m] },
                                               .bytes = sizeof(float) };
        fetches[m][VARIABLES + 1] = (plait_fetch){ .value = p->net->behind };
        batch[m] = (plait_batch){ feeds[m], fetches[m], 3, wanted };
    }
    if (p->schedule != NULL)
        return plait_session_run_batches(sessions, p->chunks, p->schedule, batch, p->batches, &p->out.error);
    return plait_session_run(sessions[0], feeds[0], 3, fetches[0], wanted, NULL, 0, &p->out.error);
}

static void *run_part(void *user) {
    part          *p = user;
    plait_session *sessions[PARTS_MAX] = { NULL };
    plait_status   status = PLAIT_OK;
    const int32_t  ranks = p->cut != NULL ? p->cut->parts / p->chunks : 1;
    for (int32_t c = 0; status == PLAIT_OK && c < p->chunks; c++) {
        plait_session_opts opts;
        plait_cut          cut;
        plait_session_opts_init(&opts);
        opts.seed = 7;
        opts.threads = p->threads;
        if (p->cut != NULL) {
            cut = *p->cut;
            cut.own += c * ranks;
            opts.cut = &cut;
        }
        status = plait_session_create(p->net->graph, &opts, &sessions[c], &p->out.error);
    }
    for (int32_t k = 0; status == PLAIT_OK && k < STEPS; k++) status = step(p, sessions, k);
    for (int32_t v = 0; status == PLAIT_OK && v < VARIABLES; v++) {
        for (int32_t c = 0; c < p->chunks; c++) { /* the session that has changed it has it */
            plait_variable_info info;
            plait_session_variable_info(sessions[c], v, &info, NULL);
            p->out.version[v] += info.version;
            if (info.version > 0) plait_session_variable(sessions[c], v, p->out.value[v], NULL);
        }
    }
    for (int32_t c = 0; c < p->chunks; c++) plait_session_destroy(&sessions[c]);
    p->out.status = status;
    if (p->channel != NULL && p->cut != NULL) plait_memory_channel_leave(p->channel, p->cut->own % ranks);
    return NULL;
}

/* Runs all parts, and brings together what they have. */
static void run_cut(net *n, const int32_t *place, int64_t n_places, int32_t parts, int32_t chunks, int32_t threads,
                    const char *schedule, int32_t batches, outcome *out) {
    plait_memory_channel *channel = NULL;
    const int32_t         ranks = parts / chunks;
    part                  p[PARTS_MAX];
    plait_cut             cut[PARTS_MAX];
    pthread_t             thread[PARTS_MAX];
    const bool skips = chunks > 1 || n->behind != PLAIT_NONE; /* an edge may skip parts, and hold its producer up */
    assert_int_equal(plait_memory_channel_create(ranks, skips ? parts + 1 : 1, &channel, NULL), PLAIT_OK);
    memset(out, 0, sizeof *out);
    for (int32_t r = 0; r < ranks; r++) {
        plait_cut_init(&cut[r]);
        cut[r].parts = parts;
        cut[r].own = r;
        cut[r].place = place;
        cut[r].n_places = n_places;
        cut[r].channel = plait_memory_channel_calls(channel);
        memset(&p[r], 0, sizeof p[r]);
        p[r].net = n;
        p[r].cut = &cut[r];
        p[r].schedule = schedule;
        p[r].batches = batches;
        p[r].chunks = chunks;
        p[r].threads = threads;
        p[r].channel = channel;
        assert_int_equal(pthread_create(&thread[r], NULL, run_part, &p[r]), 0);
    }
    for (int32_t r = 0; r < ranks; r++) pthread_join(thread[r], NULL);
    for (int32_t r = 0; r < ranks; r++) {
        if (p[r].out.status != PLAIT_OK) fail_msg("part %d of %d: %s", r, parts, p[r].out.error.text);
        for (int32_t v = 0; v < VARIABLES; v++) {
            out->version[v] += p[r].out.version[v];
            if (p[r].out.version[v] > 0) memcpy(out->value[v], p[r].out.value[v], sizeof out->value[v]);
        }
        for (int32_t k = 0; k < STEPS * BATCHES; k++)
            if (p[r].out.loss[k] != 0) out->loss[k] = p[r].out.loss[k]; /* only the part that computes it */
    }
    plait_memory_channel_destroy(&channel);
    assert_null(channel);
}

static void run_uncut(net *n, outcome *out) {
    part p = { .net = n, .batches = 1, .chunks = 1, .threads = 1 };
    run_part(&p);
    assert_int_equal(p.out.status, PLAIT_OK);
    *out = p.out;
}

/* The part of each layer, if layers are dealt as equally as possible. */
static void place_layers(const net *n, int32_t parts, int32_t *place) {
    for (int64_t k = 0, layer = 0; k < n->begins[LAYERS] + 1; k++) {
        if (layer < LAYERS && k >= n->begins[layer]) layer++;
        place[k] = (int32_t)(layer * parts / (LAYERS + 1));
    }
}

static void check_same(const outcome *a, const outcome *b) {
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    for (int32_t v = 0; v < VARIABLES; v++) {
        assert_int_equal(a->version[v], STEPS);
        assert_int_equal(b->version[v], STEPS);
        assert_memory_equal(a->value[v], b->value[v], sizeof a->value[v]);
    }
}

static void test_layers_have_the_same_bits(void **state) {
    (void)state;
    net     n;
    outcome whole, cut;
    int32_t place[200];
    make_net(&n);
    run_uncut(&n, &whole);
    assert_true(whole.loss[0] > 0 && whole.loss[BATCHES] != whole.loss[0]);
    for (int32_t parts = 1; parts <= LAYERS + 1; parts++) {
        place_layers(&n, parts, place);
        for (int64_t k = 0; k < n.begins[LAYERS]; k++) /* s is used by two parts: it lies with its first reader */
            if (n.graph->node[k].op->n_attrs > 0 && strcmp(n.graph->node[k].op->name, "variable") == 0) place[k] = -1;
        run_cut(&n, place, n.begins[LAYERS] + 1, parts, 1, 1 + parts % 2, NULL, 1, &cut);
        check_same(&whole, &cut);
    }
    plait_graph_destroy(&n.graph);
}

/* Any cut works: values go to and fro between the parts. */
static void test_random_cuts_have_the_same_bits(void **state) {
    (void)state;
    net     n;
    outcome whole, cut;
    int32_t place[400];
    make_net(&n);
    run_uncut(&n, &whole);
    const int64_t all = plait_graph_nodes(n.graph);
    assert_true(all < 400);
    for (uint64_t seed = 0; seed < 60; seed++) {
        for (int64_t k = 0; k < all; k++) {
            const pli_node *node = &n.graph->node[k];
            const bool      store = (node->op->flags & PLAIT_OP_STORE) != 0;
            place[k] = store || strcmp(node->op->name, "placeholder") == 0
                           ? -1
                           : (int32_t)(pli_hash_u64(1000 * seed + (uint64_t)k) % 4);
        }
        run_cut(&n, place, all, 4, 1, 1, NULL, 1, &cut);
        check_same(&whole, &cut);
    }
    plait_graph_destroy(&n.graph);
}

/* Without dropout, since micro-batches draw other numbers. */
static void calm(net *n) {
    for (int64_t k = 0; k < n->graph->n_nodes; k++)
        if (strcmp(n->graph->node[k].op->name, "dropout") == 0) n->graph->attr[n->graph->node[k].attr].u.f = 0;
}

static void test_micro_batches_add_up(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        int32_t     parts, chunks, batches;
    } cases[] = { { "gpipe", 4, 1, 6 }, { "1f1b", 4, 1, 6 },        { "1f1b", 3, 1, 2 },
                  { "gpipe", 1, 1, 3 }, { "interleaved", 4, 2, 6 }, { "interleaved", 2, 1, 4 } };
    net     n;
    outcome whole, cut, first[2];
    int32_t place[200];
    make_net(&n);
    calm(&n);
    run_uncut(&n, &whole);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        place_layers(&n, cases[c].parts, place);
        for (int64_t k = 0; k < n.begins[LAYERS]; k++)
            if (strcmp(n.graph->node[k].op->name, "variable") == 0) place[k] = -1;
        run_cut(&n, place, n.begins[LAYERS] + 1, cases[c].parts, cases[c].chunks, 1, cases[c].schedule,
                cases[c].batches, &cut);
        if (c < 2) first[c] = cut;
        for (int32_t v = 0; v < VARIABLES; v++) {
            assert_int_equal(cut.version[v], STEPS); /* one inc for all micro-batches */
            for (int32_t i = 0; i < WIDTH * WIDTH; i++)
                assert_true(fabs((double)cut.value[v][i] - (double)whole.value[v][i]) < 1e-5);
        }
    }
    check_same(&first[0], &first[1]); /* the schedule changes no bit */
    plait_graph_destroy(&n.graph);
}

/* The sum of a variable's squares. */
static plait_value size_of(const net *n, const char *name) {
    return plait_op_sum(n->graph, plait_op_square(n->graph, plait_graph_find(n->graph, name)), 0, NULL, 0);
}

/* A value that was added behind the gradients, and goes from part to part: it belongs to the backward pass, or gpipe's
 * forward passes would wait for backward ones. */
static void test_values_behind_the_gradients(void **state) {
    (void)state;
    static const char *const schedules[] = { "gpipe", "1f1b" };
    net                      n;
    outcome                  whole, cut;
    int32_t                  place[200];
    make_net(&n);
    calm(&n);
    run_uncut(&n, &whole);
    n.behind = plait_op_add(n.graph, size_of(&n, "w0"), size_of(&n, "w1")); /* from part 0 to part 1 */
    assert_int_equal(plait_graph_check(n.graph, NULL), PLAIT_OK);
    for (int i = 0; i < 2; i++) {
        place_layers(&n, 3, place);
        for (int64_t k = 0; k < n.begins[LAYERS]; k++)
            if (strcmp(n.graph->node[k].op->name, "variable") == 0) place[k] = -1;
        run_cut(&n, place, n.begins[LAYERS] + 1, 3, 1, 1, schedules[i], 6, &cut);
        for (int32_t v = 0; v < VARIABLES; v++)
            for (int32_t j = 0; j < WIDTH * WIDTH; j++)
                assert_true(fabs((double)cut.value[v][j] - (double)whole.value[v][j]) < 1e-5);
    }
    plait_graph_destroy(&n.graph);
}

/* --- refusals -------------------------------------------------------------------------------------------------- */

static void refused_cut(const net *n, const plait_cut *cut, plait_status code, const char *part_of_text) {
    plait_session_opts opts;
    plait_session     *s = NULL;
    plait_error        err;
    plait_session_opts_init(&opts);
    opts.cut = cut;
    assert_int_equal(plait_session_create(n->graph, &opts, &s, &err), code);
    if (strstr(err.text, part_of_text) == NULL) fail_msg("'%s' does not say '%s'", err.text, part_of_text);
}

/* The graph's own places, as plait_graph_place and a file set them, are those of a cut that has none. */
static void test_places_of_the_graph(void **state) {
    (void)state;
    net     n;
    outcome uncut, cut;
    int32_t place[200];
    char    where[32];
    make_net(&n);
    run_uncut(&n, &uncut);
    place_layers(&n, 3, place);
    for (int64_t k = 0; k <= n.begins[LAYERS]; k++) {
        snprintf(where, sizeof where, "rank:%d/cpu:0", place[k]);
        const pli_node *node = &n.graph->node[k];
        if (node->op->n_attrs > 0 && strcmp(node->op->name, "variable") == 0) continue;
        if (place[k] >= 0 && strcmp(node->op->name, "placeholder") != 0) plait_graph_place(n.graph, node->value, where);
    }
    run_cut(&n, NULL, 0, 3, 1, 1, NULL, 1, &cut);
    check_same(&uncut, &cut);
    plait_cut cuts;
    plait_cut_init(&cuts);
    refused_cut(&n, &cuts, PLAIT_EINVAL, "is placed in part 1 of 1");
    plait_graph_destroy(&n.graph);
}

static void test_what_is_refused(void **state) {
    (void)state;
    net                   n;
    plait_memory_channel *channel = NULL;
    plait_session        *s = NULL;
    plait_session_opts    opts;
    plait_error           err;
    plait_cut             cut;
    int32_t               place[200];
    make_net(&n);
    plait_cut_init(&cut);
    cut.parts = 2;
    refused_cut(&n, &cut, PLAIT_EINVAL, "needs a channel");
    assert_int_equal(plait_memory_channel_create(0, 1, &channel, NULL), PLAIT_EINVAL);
    assert_int_equal(plait_memory_channel_create(2, 1, &channel, NULL), PLAIT_OK);
    cut.channel = plait_memory_channel_calls(channel);
    cut.own = 2;
    refused_cut(&n, &cut, PLAIT_EINVAL, "no part 2");
    cut.own = 0;
    for (int32_t k = 0; k < 200; k++) place[k] = 0;
    place[4] = 2;
    cut.place = place;
    cut.n_places = plait_graph_nodes(n.graph) < 200 ? plait_graph_nodes(n.graph) : 200;
    refused_cut(&n, &cut, PLAIT_EINVAL, "part 2 of 2");
    for (int64_t k = 0; k < cut.n_places; k++) place[k] = strcmp(n.graph->node[k].op->name, "get_rows") == 0;
    plait_session_opts_init(&opts);
    opts.cut = &cut;
    assert_int_equal(plait_session_create(n.graph, &opts, &s, NULL), PLAIT_OK);
    plait_fetch fetch = { .value = n.inc[0] };
    float       x[WIDTH] = { 0 };
    int64_t     row = 0;
    plait_feed  feeds[] = { { n.x, plait_tensor_of(PLAIT_F32, plait_shape_2(1, WIDTH), x) },
                            { n.rows, plait_tensor_of(PLAIT_I64, plait_shape_1(1), &row) },
                            { n.target, plait_tensor_of(PLAIT_F32, plait_shape_2(1, WIDTH), x) } };
    assert_int_equal(plait_session_run(s, feeds, 3, &fetch, 1, NULL, 0, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "place them together"));
    plait_batch batches[] = { { feeds, &fetch, 3, 1 }, { feeds, &fetch, 2, 1 } };
    assert_int_equal(plait_session_run_batches(&s, 1, "gpip", batches, 1, &err), PLAIT_ENAME);
    assert_int_equal(plait_session_run_batches(&s, 1, "gpipe", batches, 2, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "micro-batch 1"));
    assert_int_equal(plait_session_run_batches(&s, 1, "gpipe", batches, 0, &err), PLAIT_EINVAL);
    plait_session_destroy(&s);
    opts.cut = NULL;
    assert_int_equal(plait_session_create(n.graph, &opts, &s, NULL), PLAIT_OK);
    assert_int_equal(plait_session_run_batches(&s, 1, "gpipe", batches, 1, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "no cut"));
    plait_session_destroy(&s);
    plait_memory_channel_destroy(&channel);
    plait_graph_destroy(&n.graph);
}

/* --- waits that cannot end ------------------------------------------------------------------------------------- */

/* A part whose peer has left, or whose peer waits for it. */
static void test_waits_that_cannot_end(void **state) {
    (void)state;
    plait_memory_channel *channel = NULL;
    plait_error           err;
    float                 x = 1;
    const plait_tensor    t = plait_tensor_of(PLAIT_F32, plait_shape_1(1), &x), other = { .type = PLAIT_F64 };
    assert_int_equal(plait_memory_channel_create(2, 1, &channel, NULL), PLAIT_OK);
    const plait_channel *c = plait_memory_channel_calls(channel);
    const plait_edge     edge = { .value = 3, .from = 0, .to = 1, .micro_batch = 8 };
    plait_edge           next = edge;
    const void          *data;
    int                  taken;
    next.micro_batch++;
    assert_int_equal(c->receive(c->user, &edge, &t, &data, &err), PLAIT_OK);
    assert_null(data);
    assert_int_equal(c->send(c->user, &edge, &t, &taken, &err), PLAIT_OK);
    assert_int_equal(taken, 1);
    assert_int_equal(c->send(c->user, &next, &t, &taken, &err), PLAIT_OK);
    assert_int_equal(taken, 0); /* one is granted */
    assert_int_equal(c->wait(c->user, &edge, 0, &err), PLAIT_OK);
    assert_int_equal(c->receive(c->user, &edge, &other, &data, &err), PLAIT_ESHAPE);
    plait_memory_channel_leave(channel, 0);
    assert_int_equal(c->wait(c->user, &edge, 0, &err), PLAIT_OK); /* what has arrived can still be received */
    assert_int_equal(c->receive(c->user, &edge, &t, &data, &err), PLAIT_OK);
    assert_true(*(const float *)data == 1);
    c->release(c->user, &edge, data);
    assert_int_equal(c->wait(c->user, &next, 0, &err), PLAIT_EPEER);
    assert_non_null(strstr(err.text, "part 1 waits for part 0 to send value 3 of micro-batch 9: it has left"));
    plait_memory_channel_destroy(&channel);

    /* Of four parts on two threads, the second thread has parts 1 and 3. */
    const plait_edge far = { .value = 3, .from = 3, .to = 0 };
    assert_int_equal(plait_memory_channel_create(2, 1, &channel, NULL), PLAIT_OK);
    c = plait_memory_channel_calls(channel);
    plait_memory_channel_leave(channel, 1);
    assert_int_equal(c->wait(c->user, &far, 0, &err), PLAIT_EPEER);
    plait_memory_channel_destroy(&channel);

    assert_int_equal(plait_memory_channel_create(1, 1, &channel, NULL), PLAIT_OK);
    c = plait_memory_channel_calls(channel);
    assert_int_equal(c->wait(c->user, &edge, 0, &err), PLAIT_EDEADLOCK);
    assert_non_null(strstr(err.text, "wait for each other"));
    plait_memory_channel_destroy(&channel);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_layers_have_the_same_bits),
                                        cmocka_unit_test(test_random_cuts_have_the_same_bits),
                                        cmocka_unit_test(test_micro_batches_add_up),
                                        cmocka_unit_test(test_values_behind_the_gradients),
                                        cmocka_unit_test(test_places_of_the_graph),
                                        cmocka_unit_test(test_what_is_refused),
                                        cmocka_unit_test(test_waits_that_cannot_end) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
