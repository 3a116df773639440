/* calibrate - measures the cost of work on this machine, and writes it to a cluster file for simulations. A run never
 * measures, because it could not be repeated. Each figure is the best of several rounds, the one that other load has
 * disturbed least. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/calibrate.h"
#include "cli/cli.h"
#include "comm/cluster.h"
#include "comm/collective.h"
#include "comm/comm.h"
#include "data/formats/libsvm.h"
#include "learn/linear/linear.h"
#include "optim/optim.h"

typedef struct calibrate_settings {
    const char *out, *bandwidth, *latency;
    int64_t     hosts;
} calibrate_settings;

#define AT(field) offsetof(calibrate_settings, field)

static const pli_opt rows[] = {
    { "out", PLI_OPT_TEXT, AT(out), "-", "FILE", "write the cluster file here; -: standard output", 0, 0, "output" },
    { "hosts", PLI_OPT_I64, AT(hosts), "16", "N", "equal hosts of one core each, on one switch", 1, 100000, "cluster" },
    { "bandwidth", PLI_OPT_TEXT, AT(bandwidth), "10 Gb/s", "RATE", "bandwidth of each host's link", 0, 0, "cluster" },
    { "latency", PLI_OPT_TEXT, AT(latency), "10 us", "TIME", "latency from a host to the switch", 0, 0, "cluster" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

enum {
    N = 1 << 18,
    FEATURES = 1 << 14,
    PER_ROW = 16,
    ROUNDS = 7,
    PINGS = 50,
    PING_ROUNDS = 100,
    PING_PAIRS = 8,
    ENTRY_BYTES = 16
};

typedef struct bench {
    float    *a, *b, *state;
    double   *g, *label;
    uint64_t *keys;
    unsigned char *text; /* [text_bytes] rows of LIBSVM with N entries, followed by PLI_PARSE_PAD bytes */
    size_t    text_bytes;
    uint32_t *order, *col;
    int64_t  *start;
} bench;

typedef void measure_fn(bench *b);

static void sums(bench *b) { pli_reduce(b->a, b->a, b->b, N, PLAIT_F32, PLAIT_SUM); }
static void bytes(bench *b) { memcpy(b->a, b->b, N * sizeof *b->a); }

static void keys(bench *b) {
    for (int64_t i = 0; i < N; i++) {
        b->keys[i] = pli_hash_u64((uint64_t)i) % (1 << 20);
        b->order[i] = (uint32_t)i;
    }
    (void)pli_sort_u64(N, b->keys, b->order); /* a failure for want of memory does not matter here */
}

static void values(bench *b) {
    plait_rule_opts opts;
    plait_rule_numbers rule;
    plait_rule_opts_init(&opts);
    opts.name = "adagrad";
    if (pli_rule_make(&opts, NULL, &rule, NULL) < 0) return;
    plait_step step = pli_rule_step(&rule, 1, 1, 1, 1);
    float   *slot[] = { b->state, b->state };
    rule.ops->apply_f32(&rule, &step, N, b->a, slot, b->b, NULL);
}

static void entries(bench *b) {
    pli_linear      linear = { .goal = { .columns = 1, .classes = 2, .label = (const double[]){ -1, 1 } },
                               .features = FEATURES };
    pli_block block = { .rows = N / PER_ROW, .entries = N, .row_start = b->start, .col = b->col, .label = b->label };
    double          bias[1] = { 0 }, scratch[2];
    pli_weights     weights = { .f32 = b->a, .bias = bias };
    pli_visit       visit = { .part = { .block = &block, .rows = block.rows } };
    pli_sums        total = { 0 };
    if (pli_loss_find("logistic", 2, &linear.goal.loss, NULL) < 0) return;
    pli_linear_gradient(&linear, &weights, &visit, &(pli_slopes){ .f64 = b->g, .bias = bias }, &total, scratch);
}

static void parsed(bench *b) {
    pli_libsvm_rules rules = { .limit = UINT64_MAX };
    pli_rows         rows_read = { .row_capacity = 0 };
    pli_found        found = { .max_index = 0 };
    pli_bad          bad;
    (void)pli_libsvm_parse(&rules, b->text, b->text + b->text_bytes, &rows_read, &found, &bad);
    pli_rows_free(&rows_read);
    pli_found_free(&found);
}

/* The best time of several rounds, in nanoseconds a unit. */
static double best(measure_fn *measure, bench *b) {
    double least = INFINITY;
    for (int32_t round = 0; round < ROUNDS; round++) {
        uint64_t begun_ns = pli_now_ns();
        measure(b);
        double ns = (double)(pli_now_ns() - begun_ns) / N;
        if (ns < least) least = ns;
    }
    return least;
}

static void write_rows(bench *b) {
    char *at = (char *)b->text;
    for (int32_t i = 0; i < N; i++) {
        int32_t column = i % PER_ROW * 1000 + i % 997 + 1;
        if (i % PER_ROW == 0) at += snprintf(at, ENTRY_BYTES, "%s1", i % (2 * PER_ROW) == 0 ? "+" : "-");
        at += snprintf(at, ENTRY_BYTES, " %d:0.%03d%s", column, i % 1000, i % PER_ROW == PER_ROW - 1 ? "\n" : "");
    }
    b->text_bytes = (size_t)(at - (char *)b->text);
    memset(at, 0, PLI_PARSE_PAD);
}

static void fill(bench *b) {
    memset(b->a, 0, N * sizeof *b->a);
    memset(b->state, 0, N * sizeof *b->state);
    for (int64_t i = 0; i < N; i++) {
        b->b[i] = 1e-3F;
        b->col[i] = (uint32_t)(pli_hash_u64((uint64_t)i) % FEATURES);
    }
    for (int64_t r = 0; r <= N / PER_ROW; r++) {
        b->start[r] = r * PER_ROW;
        if (r < N / PER_ROW) b->label[r] = r % 2 == 0 ? 1 : -1;
    }
    write_rows(b);
}

/* Two ranks on threads send a small message to and fro. */
static plait_status ping(plait_comm *comm, void *user) {
    int32_t  me = plait_comm_rank(comm), turn = 0;
    size_t   got;
    double  *least = user;
    for (int32_t round = 0; round < PING_ROUNDS; round++) {
        uint64_t begun_ns = pli_now_ns();
        for (int32_t i = 0; i < PINGS; i++) {
            if (me == i % 2) PLI_TRY(plait_comm_send(comm, 1 - me, 1, &turn, sizeof turn));
            else PLI_TRY(plait_comm_recv(comm, 1 - me, 1, &turn, sizeof turn, &got, NULL));
        }
        double ns = (double)(pli_now_ns() - begun_ns) / PINGS / 2;
        if (me == 0 && ns < *least) *least = ns;
    }
    return PLAIT_OK;
}

/* The least time of several pairs of threads: the cores on which a pair runs can make a tenfold difference. */
static plait_status measure_message(double *least_ns, plait_error *err) {
    plait_comm_opts comm;
    plait_comm_opts_init(&comm);
    comm.transport = "threads";
    comm.workers = 2;
    *least_ns = INFINITY;
    for (int32_t pair = 0; pair < PING_PAIRS; pair++) PLI_TRY(plait_comm_run(&comm, ping, least_ns, err));
    return PLAIT_OK;
}

static void add_cost(pli_text *text, const char *name, double ns, const char *what) {
    char value[32];
    snprintf(value, sizeof value, ns < 1000 ? "%.4g ns" : "%.0f ns", ns);
    pli_text_add(text, "  %s: %-*s # %s\n", name, 17 - (int)strlen(name), value, what);
}

static void add_graph(pli_text *text, const pli_graph_cost *cost) {
    add_cost(text, "flop", cost->flop_ns, "an operation of a graph's node,");
    add_cost(text, "tap", cost->tap_ns, "of a convolution,");
    add_cost(text, "step", cost->step_ns, "of pooling and scattering");
    add_cost(text, "moved", cost->moved_ns, "a byte that a node reads or writes");
    add_cost(text, "node", cost->node_ns, "to begin a node");
}

static plait_status write_cluster(const calibrate_settings *s, bench *b, pli_text *text, plait_error *err) {
    double         message_ns;
    pli_graph_cost graph;
    PLI_TRY(measure_message(&message_ns, err));
    PLI_TRY(pli_calibrate_graph(&graph, err));
    fill(b);
    double entry_ns = best(entries, b);
    pli_text_add(
        text,
        "# Written by `plait calibrate`: costs of one core of this machine. docs/simulation.md explains all keys.\n");
    pli_text_add(text, "version: 1\nhosts:\n  - {count: %lld, bandwidth: %s, latency: %s}\ncost:\n",
                 (long long)s->hosts, s->bandwidth, s->latency);
    add_cost(text, "parsed", best(parsed, b), "an entry of LIBSVM read");
    add_cost(text, "entry", entry_ns, "of a row, in a gradient pass");
    add_cost(text, "key", best(keys, b), "sorted or looked up");
    add_cost(text, "value", best(values, b), "an update rule applied");
    add_cost(text, "sum", best(sums, b), "added");
    add_graph(text, &graph);
    add_cost(text, "message", message_ns, "to send or take one");
    add_cost(text, "byte", best(bytes, b) / sizeof(float), "and each of its bytes");
    return text->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for a cluster's file") : PLAIT_OK;
}

static plait_status measure_all(const calibrate_settings *s, pli_text *text, plait_error *err) {
    bench        b = { .a = pli_array(N, sizeof(float)),
                       .b = pli_array(N, sizeof(float)),
                       .state = pli_array(N, sizeof(float)),
                       .g = pli_calloc(FEATURES, sizeof(double)),
                       .label = pli_array(N / PER_ROW, sizeof(double)),
                       .keys = pli_array(N, sizeof(uint64_t)),
                       .text = pli_array(N * ENTRY_BYTES + PLI_PARSE_PAD, 1),
                       .order = pli_array(N, sizeof(uint32_t)),
                       .col = pli_array(N, sizeof(uint32_t)),
                       .start = pli_array(N / PER_ROW + 1, sizeof(int64_t)) };
    bool  whole = b.a && b.b && b.state && b.g && b.label && b.keys && b.text && b.order && b.col && b.start;
    plait_status status =
        whole ? write_cluster(s, &b, text, err) : pli_fail(err, PLAIT_ENOMEM, "no memory to measure in");
    pli_free(b.a);
    pli_free(b.b);
    pli_free(b.state);
    pli_free(b.g);
    pli_free(b.label);
    pli_free(b.keys);
    pli_free(b.text);
    pli_free(b.order);
    pli_free(b.col);
    pli_free(b.start);
    return status;
}

static plait_status save(const char *path, const pli_text *text, plait_error *err) {
    pli_outfile *file = NULL;
    PLI_TRY(pli_outfile_open(path, &file, err));
    plait_status status = pli_outfile_write(file, text->data, text->length, err);
    if (status >= 0) return pli_outfile_commit(&file, err);
    pli_outfile_abandon(&file);
    return status;
}

static int calibrate(int argc, char *const *argv) {
    calibrate_settings set = { 0 };
    pli_opts          *opts = NULL;
    pli_text           text = { 0 };
    plait_error        err = { .rank = -1 };
    int                code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_calibrate, argc, argv, &set, NULL, &opts, &code)) return code;
    if (pli_cluster_check_host("bandwidth", set.bandwidth, &err) < 0 ||
        pli_cluster_check_host("latency", set.latency, &err) < 0 || measure_all(&set, &text, &err) < 0) {
        pli_fail_at(&err, "calibrate");
        code = pli_cli_fail(&err);
    } else if (strcmp(set.out, "-") == 0) {
        code = pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
        text = (pli_text){ 0 };
    } else {
        code = save(set.out, &text, &err) < 0 ? pli_cli_fail(&err) : PLI_EXIT_DONE;
    }
    pli_text_free(&text);
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_calibrate = {
    .name = "calibrate",
    .usage = "calibrate [--out FILE]",
    .summary = "measure this machine for --transport sim",
    .details = "Writes a cluster file of equal hosts, whose costs are those measured on one core of this machine. Edit "
               "it (hosts, racks, sites, events), then use it with train --transport sim --cluster FILE.",
    .rows = rows,
    .run = calibrate,
};
