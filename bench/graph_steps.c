/* bench/graph_steps.c - times whole training steps of small networks in sessions: forward, backward, plain SGD.
 *
 *   graph_steps mlp|small|cnn|lstm [--threads N] [--steps N] [--nodes 1] [--kernels onednn]
 *
 *   mlp     784-512-256-10, batches of 256 rows
 *   small   128-256-256-10, batches of 32
 *   cnn     28 x 28 images, two 3 x 3 convolutions of 32 and 64 filters, each pooled by 2, 128 dense, batches of 64
 *   lstm    64 -> 128 units over 64 steps, a dense layer of 64 classes at each step, batches of 16
 *
 * Feeds are random, and the same in each step. Prints one JSON object: the median seconds of a step; multiplications
 * and additions a second in its products, and in the best of some products of 512 to 1024 rows and columns on as many
 * threads; and the peak of memory before these products. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/graph.h>
#include <plait/session.h>

#include "base/base.h"

enum { VARIABLES_MAX = 16, STEPS_MAX = 100000 };

typedef struct net {
    plait_graph *g;
    plait_value  x, label, loss; /* loss: one for each row */
    plait_value  variable[VARIABLES_MAX];
    int32_t      n_variables;
    plait_shape  x_shape, label_shape;
    int64_t      classes;
    double       flops; /* in the products of a step */
} net;

static int die(const char *what) {
    fprintf(stderr, "graph_steps: %s\n", what);
    exit(1);
}

static float *randoms(int64_t n, double scale) {
    float     *x = malloc((size_t)n * sizeof *x + 1);
    pli_random r = pli_random_at(1, PLI_RANDOM_DATA, (uint64_t)n, 0);
    if (x == NULL) die("no memory");
    for (int64_t i = 0; i < n; i++) x[i] = (float)(scale * pli_random_normal(&r));
    return x;
}

static plait_value variable(net *n, plait_shape shape, int64_t fan_in) {
    char              name[16];
    float            *initial = randoms(plait_shape_elements(&shape), fan_in > 0 ? sqrt(2 / (double)fan_in) : 0);
    const plait_value v = (snprintf(name, sizeof name, "v%d", n->n_variables),
                           plait_graph_variable(n->g, name, plait_tensor_of(PLAIT_F32, shape, initial)));
    free(initial);
    return n->variable[n->n_variables++] = v;
}

static plait_value op1(net *n, const char *op, plait_value a) { return plait_graph_op(n->g, op, &a, 1, NULL, 0); }
static plait_value op2(net *n, const char *op, plait_value a, plait_value b) {
    const plait_value in[] = { a, b };
    return plait_graph_op(n->g, op, in, 2, NULL, 0);
}

static plait_value reshape(net *n, plait_value x, plait_shape shape) {
    const plait_attr attr = { .name = "shape", .kind = PLAIT_ATTR_INTS, .n = shape.rank, .u.ints = shape.dim };
    return plait_graph_op(n->g, "reshape", &x, 1, &attr, 1);
}

/* passes: products of this size in a step, 3, or 2 if the derivative by x is not needed. */
static plait_value dense(net *n, plait_value x, int64_t rows, int64_t in, int64_t out, int passes) {
    const plait_value w = variable(n, plait_shape_2(in, out), in), b = variable(n, plait_shape_1(out), 0);
    n->flops += passes * 2.0 * (double)rows * (double)in * (double)out;
    return op2(n, "add", op2(n, "matmul", x, w), b);
}

static void feeds(net *n, plait_shape x, plait_shape label, int64_t classes) {
    n->x_shape = x;
    n->label_shape = label;
    n->classes = classes;
    n->x = plait_graph_placeholder(n->g, "x", PLAIT_F32, x);
    n->label = plait_graph_placeholder(n->g, "label", PLAIT_I64, label);
}

static void mlp(net *n, int64_t rows, const int64_t *width, int layers) {
    feeds(n, plait_shape_2(rows, width[0]), plait_shape_1(rows), width[layers]);
    plait_value h = n->x;
    for (int i = 0; i < layers; i++) {
        h = dense(n, h, rows, width[i], width[i + 1], i == 0 ? 2 : 3);
        if (i + 1 < layers) h = op1(n, "relu", h);
    }
    n->loss = op2(n, "softmax_cross_entropy", h, n->label);
}

static plait_value convolve(net *n, plait_value x, int64_t rows, int64_t in, int64_t out, int64_t side, int passes) {
    static const int64_t one[] = { 1, 1, 1, 1 }, two[] = { 2, 2 };
    const plait_value    in2[] = { x, variable(n, plait_shape_4(out, in, 3, 3), 9 * in) };
    const plait_value    b = variable(n, (plait_shape){ 3, { out, 1, 1 } }, 0);
    const plait_attr     padding = { .name = "padding", .kind = PLAIT_ATTR_INTS, .n = 4, .u.ints = one };
    const plait_attr     window = { .name = "window", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = two };
    n->flops += passes * 2.0 * (double)(rows * side * side * out * in * 9);
    const plait_value y = op1(n, "relu", op2(n, "add", plait_graph_op(n->g, "conv2d", in2, 2, &padding, 1), b));
    return plait_graph_op(n->g, "max_pool2d", &y, 1, &window, 1);
}

static void cnn(net *n) {
    const int64_t rows = 64;
    feeds(n, plait_shape_4(rows, 1, 28, 28), plait_shape_1(rows), 10);
    plait_value h = convolve(n, n->x, rows, 1, 32, 28, 2);
    h = convolve(n, h, rows, 32, 64, 14, 3);
    h = op1(n, "relu", dense(n, reshape(n, h, plait_shape_2(rows, 3136)), rows, 3136, 128, 3));
    n->loss = op2(n, "softmax_cross_entropy", dense(n, h, rows, 128, 10, 3), n->label);
}

static void lstm(net *n) {
    const int64_t steps = 64, rows = 16, in = 64, units = 128, classes = 64;
    feeds(n, plait_shape_2(steps * rows, in), plait_shape_1(steps * rows), classes);
    const plait_value z =
        reshape(n, dense(n, n->x, steps * rows, in, 4 * units, 2), (plait_shape){ 3, { steps, rows, 4 * units } });
    const plait_shape state = plait_shape_2(rows, units);
    float            *zeros = calloc((size_t)(rows * units), sizeof *zeros);
    const plait_value first = plait_graph_constant(n->g, plait_tensor_of(PLAIT_F32, state, zeros));
    const plait_value inputs[] = { z, variable(n, plait_shape_2(units, 4 * units), 4 * units), first, first };
    const plait_value h = plait_graph_op(n->g, "lstm", inputs, 4, NULL, 0);
    n->flops += 3 * 2.0 * (double)(steps * rows * units * 4 * units);
    const plait_value y = dense(n, reshape(n, h, plait_shape_2(steps * rows, units)), steps * rows, units, classes, 3);
    n->loss = op2(n, "softmax_cross_entropy", y, n->label);
    free(zeros);
}

static void build(net *n, const char *name) {
    static const int64_t wide[] = { 784, 512, 256, 10 }, small[] = { 128, 256, 256, 10 };
    if (strcmp(name, "mlp") == 0)
        mlp(n, 256, wide, 3);
    else if (strcmp(name, "small") == 0)
        mlp(n, 32, small, 3);
    else if (strcmp(name, "cnn") == 0)
        cnn(n);
    else if (strcmp(name, "lstm") == 0)
        lstm(n);
    else
        die("mlp, small, cnn or lstm");
}

/* Fetches the sum of the losses first, then the updates. */
static int32_t train(net *n, plait_fetch *fetches, float *sum) {
    plait_value       d[VARIABLES_MAX];
    const int64_t     rows = plait_shape_elements(&n->label_shape);
    const plait_value total = op2(n, "sum_like", n->loss, plait_graph_scalar(n->g, PLAIT_F32, 0));
    const plait_value step = plait_graph_scalar(n->g, PLAIT_F32, -0.01 / (double)rows);
    if (plait_graph_gradients(n->g, total, n->n_variables, n->variable, d) == PLAIT_OK) {
        fetches[0] = (plait_fetch){ .value = total, .tensor = { .data = sum }, .bytes = sizeof *sum };
        for (int32_t i = 0; i < n->n_variables; i++)
            fetches[1 + i] = (plait_fetch){ .value = op2(n, "inc", n->variable[i], op2(n, "mul", d[i], step)) };
    }
    plait_error err;
    if (plait_graph_check(n->g, &err) != PLAIT_OK) die(err.text);
    return 1 + n->n_variables;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of a session's run: the quantile `at` of some runs. */
static double timed(plait_session *s, const plait_feed *feed, int32_t n_feeds, plait_fetch *fetches, int32_t n,
                    int64_t steps, double at) {
    static double seconds[STEPS_MAX];
    plait_error   err;
    for (int64_t i = -steps / 5 - 3; i < steps; i++) {
        const uint64_t begin = pli_now_ns();
        if (plait_session_run(s, feed, n_feeds, fetches, n, NULL, 0, &err) != PLAIT_OK) die(err.text);
        if (i >= 0) seconds[i] = (double)(pli_now_ns() - begin) * 1e-9;
    }
    qsort(seconds, (size_t)steps, sizeof *seconds, by_value);
    return seconds[(int64_t)(at * (double)(steps - 1))];
}

/* Prints begin, duration and thread of each node, for --nodes. */
static void trace(void *user, const char *name, int32_t thread, uint64_t begin, uint64_t end) {
    (void)user;
    fprintf(stderr, "%12.1f %8.1f us  %d  %s\n", (double)(begin % 10000000000) * 1e-3, (double)(end - begin) * 1e-3,
            thread, name);
}

static plait_session *session(const plait_graph *g, int32_t threads, bool nodes, const char *kernels) {
    plait_session     *s = NULL;
    plait_session_opts opts;
    plait_error        err;
    plait_session_opts_init(&opts);
    opts.threads = threads;
    if (nodes) opts.trace = trace;
    opts.kernels = kernels;
    if (plait_session_create(g, &opts, &s, &err) != PLAIT_OK) die(err.text);
    return s;
}

/* Multiplications and additions a second in one large product. */
static double peak_of(int64_t side, int32_t threads) {
    net         n = { 0 };
    plait_error err;
    if (plait_graph_create(NULL, 0, &n.g, &err) != PLAIT_OK) die(err.text);
    float            *a = randoms(side * side, 1), *c = randoms(side * side, 1);
    const plait_value x = plait_graph_placeholder(n.g, "a", PLAIT_F32, plait_shape_2(side, side));
    const plait_feed  feed = { x, plait_tensor_of(PLAIT_F32, plait_shape_2(side, side), a) };
    plait_fetch       fetch = { .value = op2(&n, "matmul", x, x),
                                .tensor = { .data = c },
                                .bytes = (size_t)(side * side) * 4 };
    plait_session    *s = session(n.g, threads, false, NULL);
    const double      seconds = timed(s, &feed, 1, &fetch, 1, 20, 0);
    plait_session_destroy(&s);
    plait_graph_destroy(&n.g);
    free(a);
    free(c);
    return 2.0 * (double)side * (double)side * (double)side / seconds;
}

/* The best of some sizes, because some sizes use the caches badly. */
static double peak(int32_t threads) {
    double best = 0;
    for (int64_t side = 512; side <= 1024; side += 256) best = fmax(best, peak_of(side, threads));
    return best;
}

int main(int argc, char **argv) {
    int64_t     steps = 200;
    int32_t     threads = 2;
    bool        nodes = false;
    const char *kernels = NULL;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--steps") == 0)
            steps = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--nodes") == 0)
            nodes = atoi(argv[i + 1]) != 0;
        else if (strcmp(argv[i], "--kernels") == 0)
            kernels = argv[i + 1];
        else
            return die("--threads N, --steps N, --nodes 1, --kernels onednn");
    }
    if (argc < 2 || argc % 2 != 0 || steps < 1 || steps > STEPS_MAX || threads < 1)
        return die("NET [--threads N] [--steps N] [--nodes 1] [--kernels onednn]");
    net         n = { 0 };
    plait_error err;
    if (plait_graph_create(NULL, 0, &n.g, &err) != PLAIT_OK) return die(err.text);
    build(&n, argv[1]);
    plait_fetch   fetches[1 + VARIABLES_MAX];
    float         loss, *x = randoms(plait_shape_elements(&n.x_shape), 1);
    const int64_t rows = plait_shape_elements(&n.label_shape);
    int64_t      *label = malloc((size_t)rows * sizeof *label);
    const int32_t n_fetches = train(&n, fetches, &loss);
    for (int64_t i = 0; i < rows; i++) label[i] = i * 7 % n.classes;
    const plait_feed feed[] = { { n.x, plait_tensor_of(PLAIT_F32, n.x_shape, x) },
                                { n.label, plait_tensor_of(PLAIT_I64, n.label_shape, label) } };
    plait_session   *s = session(n.g, threads, nodes, kernels);
    const double     seconds = timed(s, feed, 2, fetches, n_fetches, steps, 0.5);
    const int64_t    bytes = pli_peak_rss_bytes();
    const double     best = peak(threads);
    printf("{\"net\": \"%s\", \"threads\": %d, \"step_seconds\": %.9g, \"gflop_s\": %.4g, \"sgemm_gflop_s\": %.4g, "
           "\"peak_mib\": %.1f, \"loss\": %.9g}\n",
           argv[1], threads, seconds, n.flops / seconds / 1e9, best / 1e9, (double)bytes / 1048576,
           (double)loss / (double)rows);
    plait_session_destroy(&s);
    plait_graph_destroy(&n.g);
    free(x);
    free(label);
    return 0;
}
