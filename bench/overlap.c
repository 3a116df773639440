/* bench/overlap.c - measures how much of a net's communication overlaps with its backward pass.
 *
 *   overlap [--net cnn|deep|wide] [--rows N] [--clocks N] [--topology NAME] [--collective NAME] [--workers N]
 *           [--servers N] [--transport NAME]
 *
 *   cnn   28 x 28 images, 3 x 3 convolutions of 32 and 64 filters, each pooled by 2, 128 dense, 10 classes
 *   deep  64 features, 12 layers of 512, 10 classes
 *   wide  784-512-256-10: the last gradient is that of nearly all values
 *
 * Each worker has so many rows, which are random and the same in each clock; each variable is a table under sgd and
 * bsp. Five things are timed in turn, each from one barrier of all workers to the next: the forward pass; forward and
 * backward; a clock's communication alone, with gradients that are computed already; a whole clock in which each
 * gradient leaves as soon as it is computed (plait_table_flush); and a whole clock in which they leave at its end.
 * Prints one JSON object: median seconds, and
 *
 *   hidden = (communication + forward and backward - all of it) / min(communication, backward) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <plait/nn.h>
#include <plait/session.h>
#include <plait/table.h>

#include "base/base.h"
#include "comm/comm.h"
#include "graph/session.h"

enum { VARIABLES_MAX = 32, CLOCKS_MAX = 1000, WARM = 2 };
enum { FORWARD, BACKWARD, MESSAGES, FLUSHED, TOGETHER, PHASES };

typedef struct run {
    const char *net, *topology;
    int64_t     rows, clocks, servers, workers;
} run;

typedef struct net {
    plait_job    *job;
    plait_graph  *g;
    plait_value   x, label, loss, sum, variable[VARIABLES_MAX], inc[VARIABLES_MAX];
    plait_shape   x_shape;
    int64_t       rows;
    int32_t       n;
    plait_table  *table[VARIABLES_MAX];
    int64_t       table_rows[VARIABLES_MAX], cols[VARIABLES_MAX];
    float        *values[VARIABLES_MAX], *gradient[VARIABLES_MAX];
    plait_request *got[VARIABLES_MAX];
    int           phase;
} net;

/* --- nets ------------------------------------------------------------------------------------------------------ */

static plait_value variable(net *n, plait_shape shape, int64_t fan_in) {
    const int64_t all = plait_shape_elements(&shape), rows = shape.rank > 1 ? shape.dim[0] : 1;
    char          name[16];
    pli_random    r = pli_random_at(1, PLI_RANDOM_INIT, (uint64_t)n->n, 0);
    float        *values = n->values[n->n] = pli_array((size_t)all, sizeof *values);
    n->gradient[n->n] = pli_calloc((size_t)all, sizeof *values);
    if (values == NULL || n->gradient[n->n] == NULL) return PLAIT_NONE;
    for (int64_t i = 0; i < all; i++)
        values[i] = fan_in > 0 ? (float)(sqrt(2 / (double)fan_in) * pli_random_normal(&r)) : 0;
    n->table_rows[n->n] = rows;
    n->cols[n->n] = all / rows;
    snprintf(name, sizeof name, "v%d", n->n);
    return n->variable[n->n++] = plait_graph_variable(n->g, name, plait_tensor_of(PLAIT_F32, shape, values));
}

static plait_value dense(net *n, plait_value x, int64_t in, int64_t out) {
    const plait_value w = variable(n, plait_shape_2(in, out), in);
    return plait_op_add(n->g, plait_op_matmul(n->g, x, w), variable(n, plait_shape_1(out), 0));
}

static plait_value layers(net *n, const int64_t *width, int count) {
    plait_value h = n->x = plait_graph_placeholder(n->g, "x", PLAIT_F32, n->x_shape = plait_shape_2(n->rows, width[0]));
    for (int i = 0; i < count; i++) {
        h = dense(n, h, width[i], width[i + 1]);
        if (i + 1 < count) h = plait_op_relu(n->g, h);
    }
    return h;
}

static plait_value convolve(net *n, plait_value x, int64_t in, int64_t out) {
    static const int64_t one[] = { 1, 1, 1, 1 }, two[] = { 2, 2 };
    const plait_value    w = variable(n, plait_shape_4(out, in, 3, 3), 9 * in);
    const plait_value    y = plait_op_conv2d(n->g, x, w, NULL, one, NULL, 1);
    const plait_value    b = variable(n, (plait_shape){ 3, { out, 1, 1 } }, 0);
    return plait_op_pool2d(n->g, "max_pool2d", plait_op_relu(n->g, plait_op_add(n->g, y, b)), two, NULL, NULL);
}

static plait_value cnn(net *n) {
    const plait_shape flat = plait_shape_2(n->rows, 3136);
    n->x = plait_graph_placeholder(n->g, "x", PLAIT_F32, n->x_shape = plait_shape_4(n->rows, 1, 28, 28));
    const plait_value h = convolve(n, convolve(n, n->x, 1, 32), 32, 64);
    const plait_value d = plait_op_relu(n->g, dense(n, plait_op_reshape(n->g, h, flat), 3136, 128));
    return dense(n, d, 128, 10);
}

static plait_status build(net *n, const char *name, plait_error *err) {
    static const int64_t deep[] = { 64, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 512, 10 },
                         wide[] = { 784, 512, 256, 10 };
    plait_value scores, d[VARIABLES_MAX];
    PLI_TRY(plait_graph_create(NULL, 0, &n->g, err));
    if (strcmp(name, "deep") == 0) scores = layers(n, deep, 13);
    else scores = strcmp(name, "wide") == 0 ? layers(n, wide, 3) : cnn(n);
    n->label = plait_graph_placeholder(n->g, "label", PLAIT_I64, plait_shape_1(n->rows));
    n->loss = plait_op_softmax_cross_entropy(n->g, scores, n->label);
    n->sum = plait_op_sum(n->g, n->loss, 0, NULL, 0);
    PLI_TRY(plait_graph_check(n->g, err));
    PLI_TRY(plait_graph_gradients(n->g, n->sum, n->n, n->variable, d));
    for (int32_t i = 0; i < n->n; i++) n->inc[i] = plait_op_2(n->g, "inc", n->variable[i], d[i]);
    return plait_graph_check(n->g, err);
}

/* --- the store: tables, or memory alone --------------------------------------------------------------------------- */

static bool by_tables(const net *n) { return n->phase >= FLUSHED; }

static plait_status expect(void *user, int32_t count, const int32_t *variables, plait_error *err) {
    net *n = user;
    (void)err;
    for (int32_t i = 0; by_tables(n) && i < count; i++) {
        const int32_t v = variables[i];
        PLI_TRY(plait_table_get_range_begin(n->table[v], 0, n->table_rows[v], n->values[v], &n->got[v]));
    }
    return PLAIT_OK;
}

static plait_status get(void *user, int32_t v, const void **values_out, plait_error *err) {
    net *n = user;
    (void)err;
    *values_out = n->values[v];
    return plait_request_wait(&n->got[v]);
}

static plait_status get_rows(void *user, int32_t v, int64_t n, const int64_t *rows, void *values, plait_error *err) {
    (void)user, (void)v, (void)n, (void)rows, (void)values;
    return pli_fail(err, PLAIT_EINVAL, "no variable is read by rows");
}

static plait_status inc(void *user, int32_t v, const void *delta, plait_error *err) {
    net *n = user;
    (void)err;
    if (n->phase == BACKWARD) memcpy(n->gradient[v], delta, (size_t)(n->table_rows[v] * n->cols[v]) * sizeof(float));
    if (!by_tables(n)) return PLAIT_OK;
    PLI_TRY(plait_table_inc_range(n->table[v], 0, n->table_rows[v], delta, n->rows));
    return n->phase == FLUSHED ? plait_table_flush(n->table[v]) : PLAIT_OK;
}

static plait_status inc_rows(void *user, int32_t v, int64_t n, const int64_t *rows, const void *delta,
                             plait_error *err) {
    (void)delta;
    return get_rows(user, v, n, rows, NULL, err);
}

static plait_status end(void *user, plait_status how, plait_error *err) {
    (void)user, (void)how, (void)err;
    return PLAIT_OK;
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

static plait_status compute(net *n, plait_session *s, const float *x, const int64_t *label, plait_error *err) {
    float            sum;
    const plait_feed feeds[] = { { n->x, plait_tensor_of(PLAIT_F32, n->x_shape, (void *)(uintptr_t)x) },
                                 { n->label,
                                   plait_tensor_of(PLAIT_I64, plait_shape_1(n->rows), (void *)(uintptr_t)label) } };
    plait_fetch fetches[VARIABLES_MAX + 1] = { { .value = n->sum, .tensor = { .data = &sum }, .bytes = sizeof sum } };
    for (int32_t i = 0; i < n->n; i++) fetches[1 + i] = (plait_fetch){ .value = n->inc[i] };
    return plait_session_run(s, feeds, 2, fetches, n->phase == FORWARD ? 1 : 1 + n->n, NULL, 0, err);
}

/* Communicates like the passes, but computes nothing: reads values in order, and pushes gradients, the last first. */
static plait_status communicate(net *n) {
    for (int32_t v = 0; v < n->n; v++)
        PLI_TRY(plait_table_get_range_begin(n->table[v], 0, n->table_rows[v], n->values[v], &n->got[v]));
    for (int32_t v = 0; v < n->n; v++) PLI_TRY(plait_request_wait(&n->got[v]));
    for (int32_t v = n->n; v-- > 0;) {
        PLI_TRY(plait_table_inc_range(n->table[v], 0, n->table_rows[v], n->gradient[v], n->rows));
        PLI_TRY(plait_table_flush(n->table[v]));
    }
    return PLAIT_OK;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static plait_status time_phases(net *n, const run *r, plait_session *s, const float *x, const int64_t *label) {
    static double seconds[PHASES][CLOCKS_MAX];
    double        cpu[PHASES] = { 0 };
    plait_comm   *comm = plait_job_comm(n->job);
    plait_error   err = { 0 };
    for (int64_t clock = -WARM; clock < r->clocks; clock++)
        for (n->phase = 0; n->phase < PHASES; n->phase++) {
            PLI_TRY(plait_comm_barrier(comm));
            const uint64_t start = pli_now_ns(), cpu_start = pli_cpu_ns();
            plait_status   status = n->phase == MESSAGES ? communicate(n) : compute(n, s, x, label, &err);
            if (status == PLAIT_OK && n->phase >= MESSAGES) status = plait_job_clock(n->job);
            if (status < 0) return err.code < 0 ? pli_fail(pli_comm_error(comm), err.code, "%s", err.text) : status;
            PLI_TRY(plait_comm_barrier(comm));
            if (clock >= 0) cpu[n->phase] += (double)(pli_cpu_ns() - cpu_start) * 1e-9 / (double)r->clocks;
            if (clock >= 0) seconds[n->phase][clock] = (double)(pli_now_ns() - start) * 1e-9;
        }
    if (plait_comm_rank(comm) != 0) return PLAIT_OK;
    double at[PHASES], values = 0;
    for (int p = 0; p < PHASES; p++) {
        qsort(seconds[p], (size_t)r->clocks, sizeof(double), by_size);
        at[p] = seconds[p][r->clocks / 2];
    }
    for (int32_t v = 0; v < n->n; v++) values += (double)(n->table_rows[v] * n->cols[v]);
    const double backward = at[BACKWARD] - at[FORWARD], least = backward < at[MESSAGES] ? backward : at[MESSAGES];
    printf("{\"values\":%.0f,\"forward\":%.6f,\"backward\":%.6f,\"communication\":%.6f,\"both\":%.6f,\"one_after_the_"
           "other\":%.6f,\"cpu\":[%.4f,%.4f,%.4f],\"hidden\":%.4f}\n",
           values, at[FORWARD], backward, at[MESSAGES], at[FLUSHED], at[TOGETHER], cpu[BACKWARD], cpu[MESSAGES],
           cpu[FLUSHED], (at[MESSAGES] + at[BACKWARD] - at[FLUSHED]) / least);
    return PLAIT_OK;
}

static plait_status create_tables(net *n) {
    for (int32_t v = 0; v < n->n; v++) {
        char             name[16];
        plait_table_opts opts;
        plait_table_opts_init(&opts);
        snprintf(name, sizeof name, "v%d", v);
        opts.name = name;
        opts.rows = n->table_rows[v];
        opts.cols = n->cols[v];
        opts.rule.name = "sgd";
        opts.rule.learning_rate = 1e-3;
        opts.initial = n->values[v];
        PLI_TRY(plait_table_create(n->job, &opts, &n->table[v]));
    }
    return PLAIT_OK;
}

static plait_status measure(net *n, const run *r, plait_error *err) {
    plait_session *s = NULL;
    PLI_TRY(build(n, r->net, err));
    PLI_TRY(create_tables(n));
    const int64_t all = plait_shape_elements(&n->x_shape);
    float        *x = pli_array((size_t)all, sizeof *x);
    int64_t      *label = pli_array((size_t)n->rows, sizeof *label);
    pli_random    random = pli_random_at(2, PLI_RANDOM_DATA, 0, 0);
    for (int64_t i = 0; x != NULL && i < all; i++) x[i] = (float)pli_random_normal(&random);
    for (int64_t i = 0; label != NULL && i < n->rows; i++) label[i] = (int64_t)pli_random_below(&random, 10);
    const plait_store store = {
        .user = n, .expect = expect, .get = get, .get_rows = get_rows, .inc = inc, .inc_rows = inc_rows, .end = end
    };
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.store = &store;
    plait_status status = x != NULL && label != NULL
                              ? pli_session_create(n->g, &opts, pli_comm_pool(plait_job_comm(n->job)), &s, err)
                              : PLAIT_ENOMEM;
    if (status == PLAIT_OK) status = time_phases(n, r, s, x, label);
    plait_session_destroy(&s);
    pli_free(x);
    pli_free(label);
    return status;
}

static plait_status work(plait_job *job, void *user) {
    const run   *r = user;
    net          n = { .job = job, .rows = r->rows };
    plait_error  err = { 0 };
    plait_status status = measure(&n, r, &err);
    if (status < 0 && err.code < 0) (void)pli_fail(pli_comm_error(plait_job_comm(job)), status, "%s", err.text);
    for (int32_t v = 0; v < n.n; v++) {
        (void)plait_request_wait(&n.got[v]);
        pli_free(n.values[v]);
        pli_free(n.gradient[v]);
    }
    plait_graph_destroy(&n.g);
    return status;
}

int main(int argc, char **argv) {
    run             r = { .net = "cnn", .topology = "allreduce", .rows = 64, .clocks = 9 };
    plait_error     err = { 0 };
    plait_comm_opts opts;
    plait_job_opts  job;
    plait_comm_opts_init(&opts);
    plait_job_opts_init(&job);
    bool good = argc % 2 == 1;
    for (int i = 1; good && i + 1 < argc; i += 2) {
        int64_t *number = strcmp(argv[i], "--rows") == 0      ? &r.rows
                          : strcmp(argv[i], "--clocks") == 0  ? &r.clocks
                          : strcmp(argv[i], "--servers") == 0 ? &r.servers
                          : strcmp(argv[i], "--workers") == 0 ? &r.workers
                                                              : NULL;
        const char **word = strcmp(argv[i], "--net") == 0          ? &r.net
                            : strcmp(argv[i], "--topology") == 0   ? &r.topology
                            : strcmp(argv[i], "--collective") == 0 ? &opts.collective
                            : strcmp(argv[i], "--transport") == 0  ? &opts.transport
                                                                   : NULL;
        if (word != NULL) *word = argv[i + 1];
        else good = number != NULL && pli_parse_i64(argv[i + 1], number) && *number >= 0;
    }
    good = good && (strcmp(r.net, "cnn") == 0 || strcmp(r.net, "deep") == 0 || strcmp(r.net, "wide") == 0);
    if (!good || r.rows < 1 || r.clocks < 1 || r.clocks > CLOCKS_MAX) {
        fputs("overlap [--net cnn|deep|wide] [--rows N] [--clocks N] [--topology NAME] [--collective NAME] [--workers "
              "N] [--servers N] "
              "[--transport NAME]\n",
              stderr);
        return 2;
    }
    opts.workers = (int32_t)r.workers;
    opts.servers = (int32_t)r.servers;
    opts.threads = 1;
    job.topology = r.topology;
    job.batch = r.rows * (r.workers > 0 ? r.workers : 1);
    plait_status status = plait_run(&opts, &job, work, &r, &err);
    if (status < 0) fprintf(stderr, "overlap: %s: %s\n", plait_status_text(status), err.text);
    return status < 0 ? 1 : 0;
}
