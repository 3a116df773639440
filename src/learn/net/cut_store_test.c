/* Tests cut graphs whose variables lie in tables: R replicas of a graph of two layers, each over two ranks, which take
 * 1 / R of the rows in micro-batches. Every rank pushes its own layer alone. One replica learns the same bits as the
 * graph uncut on one worker, two learn the same up to the order of sums. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/comm_channel.h>
#include <plait/ops.h>
#include <plait/table_store.h>

enum { PARTS = 2, WIDTH = 5, ROWS = 8, BATCHES = 2, CLOCKS = 6, NODES = 64 };

typedef struct net {
    plait_graph *g;
    plait_value  x, loss, inc[PARTS];
    int32_t      place[NODES];
} net;

static void build(net *n) {
    float       first[PARTS][WIDTH * WIDTH];
    plait_value w[PARTS], d[PARTS];
    char        name[8];
    assert_int_equal(plait_graph_create(NULL, 0, &n->g, NULL), PLAIT_OK);
    plait_value h = n->x = plait_graph_placeholder(n->g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, WIDTH));
    for (int k = 0; k < NODES; k++) n->place[k] = -1;
    for (int p = 0; p < PARTS; p++) {
        const int64_t from = plait_graph_nodes(n->g);
        for (int i = 0; i < WIDTH * WIDTH; i++) first[p][i] = (float)sin(i + 3 * p + 1) / 2;
        snprintf(name, sizeof name, "w%d", p);
        w[p] = plait_graph_variable(n->g, name, plait_tensor_of(PLAIT_F32, plait_shape_2(WIDTH, WIDTH), first[p]));
        h = plait_op_tanh(n->g, plait_op_matmul(n->g, h, w[p]));
        for (int64_t k = from; k < plait_graph_nodes(n->g); k++) n->place[k] = p;
    }
    n->loss = plait_op_sum(n->g, plait_op_square(n->g, h), 0, NULL, 0);
    assert_int_equal(plait_graph_gradients(n->g, n->loss, PARTS, w, d), PLAIT_OK);
    for (int p = 0; p < PARTS; p++)
        n->inc[p] = plait_op_inc(n->g, w[p], plait_op_mul(n->g, d[p], plait_graph_scalar(n->g, PLAIT_F32, -0.05)));
    assert_int_equal(plait_graph_check(n->g, NULL), PLAIT_OK);
}

typedef struct setting {
    const char *topology, *consistency;
    int         replicas, cut;
    float       found[PARTS][WIDTH * WIDTH];
} setting;

/* A clock of one replica: its rows, in micro-batches. */
static plait_status clock_of(const net *n, plait_session *session, int clock, int replica, int replicas,
                             plait_error *err) {
    float       x[BATCHES][ROWS * WIDTH];
    plait_feed  feed[BATCHES];
    plait_fetch fetch[BATCHES][PARTS];
    plait_batch batch[BATCHES];
    const int   rows = ROWS / replicas / BATCHES;
    for (int m = 0; m < BATCHES; m++) {
        for (int i = 0; i < rows * WIDTH; i++)
            x[m][i] = (float)cos(clock * 31 + (replica * BATCHES + m) * rows * WIDTH + i);
        feed[m] = (plait_feed){ n->x, plait_tensor_of(PLAIT_F32, plait_shape_2(rows, WIDTH), x[m]) };
        for (int p = 0; p < PARTS; p++) fetch[m][p] = (plait_fetch){ .value = n->inc[p] };
        batch[m] = (plait_batch){ &feed[m], fetch[m], 1, PARTS };
    }
    return plait_session_run_batches(&session, 1, "1f1b", batch, BATCHES, err);
}

static plait_status train(plait_job *job, const net *n, setting *s, plait_session *session, plait_table_store *store) {
    plait_comm  *comm = plait_job_comm(job);
    plait_error  err = { .code = PLAIT_OK };
    plait_status status = PLAIT_OK;
    float        found[PARTS][WIDTH * WIDTH];
    for (int clock = 0; status >= 0 && clock < CLOCKS; clock++) {
        status = clock_of(n, session, clock, plait_comm_rank(comm) / (s->cut ? PARTS : 1), s->replicas, &err);
        if (status < 0) fprintf(stderr, "rank %d: %s\n", plait_comm_rank(comm), err.text);
        if (status >= 0) status = plait_job_clock(job);
    }
    if (status >= 0) status = plait_job_barrier(job);
    for (int p = 0; status >= 0 && p < PARTS; p++)
        status = plait_table_get_range(plait_table_store_table(store, p), 0, WIDTH, found[p]);
    if (status >= 0 && plait_comm_rank(comm) == 0) memcpy(s->found, found, sizeof found);
    return status;
}

static plait_status work(plait_job *job, void *user) {
    setting            *s = user;
    plait_comm         *comm = plait_job_comm(job);
    plait_comm_channel *channel = NULL;
    plait_table_store  *store = NULL;
    plait_session      *session = NULL;
    plait_session_opts  opts;
    plait_cut           cut;
    plait_error         err = { .code = PLAIT_OK };
    net                 n;
    const int32_t       first = plait_comm_rank(comm) / PARTS * PARTS, ranks[PARTS] = { first, first + 1 };
    build(&n);
    plait_cut_init(&cut);
    plait_status status = plait_table_store_create(job, n.g, NULL, &store);
    if (s->cut && status >= 0) status = plait_comm_channel_create(comm, PARTS, ranks, PARTS + 1, &channel);
    if (s->cut) {
        cut.parts = PARTS;
        cut.own = plait_comm_rank(comm) - first;
        cut.replica = first / PARTS;
        cut.place = n.place;
        cut.n_places = plait_graph_nodes(n.g) < NODES ? plait_graph_nodes(n.g) : NODES;
        cut.channel = plait_comm_channel_calls(channel);
    }
    plait_session_opts_init(&opts);
    opts.threads = 1;
    opts.store = plait_table_store_calls(store);
    opts.cut = &cut;
    if (status >= 0) status = plait_session_create(n.g, &opts, &session, &err);
    if (status >= 0) status = train(job, &n, s, session, store);
    plait_session_destroy(&session);
    plait_comm_channel_destroy(&channel);
    plait_table_store_destroy(&store);
    plait_graph_destroy(&n.g);
    return status;
}

static void run(setting *s) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { .code = PLAIT_OK };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.transport = "threads";
    comm.workers = s->replicas * (s->cut ? PARTS : 1);
    job.topology = s->topology;
    job.consistency = s->consistency;
    if (plait_run(&comm, &job, work, s, &err) < 0) fail_msg("%s %s: %s", s->topology, s->consistency, err.text);
}

static void test_tables(void **state) {
    (void)state;
    static const struct {
        const char *topology, *consistency;
    } pairs[] = { { "ps", "bsp" }, { "allreduce", "bsp" }, { "local", "bsp" } };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        for (int replicas = 1; replicas <= 2; replicas++) {
            setting uncut = { .topology = pairs[k].topology,
                              .consistency = pairs[k].consistency,
                              .replicas = replicas };
            setting cut = uncut;
            cut.cut = 1;
            run(&uncut);
            run(&cut);
            if (replicas == 1) assert_memory_equal(uncut.found, cut.found, sizeof cut.found);
            for (int p = 0; p < PARTS; p++)
                for (int i = 0; i < WIDTH * WIDTH; i++)
                    assert_true(fabs((double)uncut.found[p][i] - (double)cut.found[p][i]) < 1e-6);
            assert_true(cut.found[0][0] != 0 && fabs((double)cut.found[0][0] - sin(1) / 2) > 1e-3); /* it has learned */
        }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tables) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
