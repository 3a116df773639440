/* A perceptron of two layers whose variables are parameter tables: each worker computes the gradient over its rows by
 * the graph, and the tables' owners apply Adam. Workers are threads, or processes: mpirun -n 4 07_mlp_in_tables ps
 * ssp:1 */
#include <math.h>
#include <plait/nn.h>
#include <plait/table_store.h>
#include <stdio.h>

enum { ROWS = 512, HIDDEN = 16, CLOCKS = 300 };

/* Makes the worker's rows of a ring around a disc: rows i with i % workers == worker. */
static int rows_of(int worker, int workers, float x[][2], int64_t *label) {
    int n = 0;
    for (int i = worker; i < ROWS; i += workers, n++) {
        double angle = 0.7 * i, radius = i % 2 == 0 ? 0.5 + 0.3 * sin(i) : 1.5 + 0.3 * cos(i);
        x[n][0] = (float)(radius * cos(angle)), x[n][1] = (float)(radius * sin(angle));
        label[n] = i % 2;
    }
    return n;
}

typedef struct net {
    plait_graph *g;
    plait_value  rows, labels, v[4], d[4], loss, hit;
} net;

static plait_tensor f32(plait_shape shape, float *data) { return plait_tensor_of(PLAIT_F32, shape, data); }

/* Builds the same graph on every worker. The loss is a sum over rows; the tables' owners divide by the number of
 * rows. */
static plait_status build(net *n) {
    float w1[2 * HIDDEN], w2[HIDDEN * 2];
    for (int i = 0; i < 2 * HIDDEN; i++)
        w1[i] = (float)sin(13 * (i + 1)) * 0.7F, w2[i] = (float)cos(17 * (i + 1)) * 0.7F;
    plait_graph_create(NULL, 0, &n->g, NULL);
    plait_graph *g = n->g;
    n->rows = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, 2));
    n->labels = plait_graph_placeholder(g, "label", PLAIT_I64, plait_shape_1(PLAIT_ANY));
    n->v[0] = plait_graph_variable(g, "w1", f32(plait_shape_2(2, HIDDEN), w1));
    n->v[1] = plait_graph_variable(g, "b1", f32(plait_shape_1(HIDDEN), NULL));
    n->v[2] = plait_graph_variable(g, "w2", f32(plait_shape_2(HIDDEN, 2), w2));
    n->v[3] = plait_graph_variable(g, "b2", f32(plait_shape_1(2), NULL));
    plait_value h = plait_op_tanh(g, plait_op_add(g, plait_op_matmul(g, n->rows, n->v[0]), n->v[1]));
    plait_value scores = plait_op_add(g, plait_op_matmul(g, h, n->v[2]), n->v[3]);
    plait_value hits = plait_op_equal(g, plait_op_argmax(g, scores, 1), n->labels);
    n->loss = plait_op_sum(g, plait_op_softmax_cross_entropy(g, scores, n->labels), 0, NULL, 0);
    n->hit = plait_op_sum(g, plait_op_cast(g, hits, PLAIT_I64), 0, NULL, 0);
    plait_graph_gradients(g, n->loss, 4, n->v, n->d);
    return plait_graph_check(g, NULL);
}

static plait_status train(plait_job *job, const net *n, plait_session *session, int64_t rows, float x[][2],
                          int64_t *label, int64_t *right) {
    const plait_feed feeds[] = { { n->rows, f32(plait_shape_2(rows, 2), &x[0][0]) },
                                 { n->labels, plait_tensor_of(PLAIT_I64, plait_shape_1(rows), label) } };
    plait_fetch      push[4], judge = { n->hit, { .data = right }, sizeof *right };
    plait_error      err = { 0 };
    plait_status     status = PLAIT_OK;
    for (int i = 0; i < 4; i++) push[i] = (plait_fetch){ .value = plait_op_inc(n->g, n->v[i], n->d[i]) };
    for (int clock = 0; clock < CLOCKS && status >= 0; clock++) {
        status = plait_session_run(session, feeds, 2, push, 4, NULL, 0, &err);
        if (status >= 0) status = plait_job_clock(job);
    }
    if (status >= 0) status = plait_job_barrier(job);
    return status < 0 ? status : plait_session_run(session, feeds, 2, &judge, 1, NULL, 0, &err);
}

static plait_status work(plait_job *job, void *user) {
    plait_comm            *comm = plait_job_comm(job);
    float                  x[ROWS][2];
    int64_t                label[ROWS], right = 0;
    const int              rows = rows_of(plait_comm_rank(comm), plait_comm_workers(comm), x, label);
    net                    n;
    plait_session         *session = NULL;
    plait_table_store     *store = NULL;
    plait_table_opts       like;
    plait_table_store_opts opts;
    plait_session_opts     session_opts;
    plait_table_opts_init(&like);
    like.rule.name = "adam", like.rule.learning_rate = 0.02;
    plait_table_store_opts_init(&opts);
    opts.like = &like;
    opts.flushes = 1; /* a gradient leaves while those of lower layers are computed */
    plait_session_opts_init(&session_opts);
    session_opts.threads = 1; /* each rank has a session, and ranks may share the cores of a process */
    plait_status status = build(&n);
    if (status >= 0) status = plait_table_store_create(job, n.g, &opts, &store);
    if (status >= 0) {
        session_opts.store = plait_table_store_calls(store);
        plait_table_store_examples(store, rows);
        status = plait_session_create(n.g, &session_opts, &session, NULL);
    }
    if (status >= 0) status = train(job, &n, session, rows, x, label, &right);
    if (status >= 0) status = plait_comm_allreduce(comm, &right, 1, PLAIT_I64, PLAIT_SUM);
    if (status >= 0 && plait_comm_rank(comm) == 0) printf("%lld of %d right\n", (long long)right, ROWS);
    if (plait_comm_rank(comm) == 0) *(int64_t *)user = right;
    plait_session_destroy(&session);
    plait_table_store_destroy(&store);
    plait_graph_destroy(&n.g);
    return status;
}

int main(int argc, char **argv) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     error = { 0 };
    int64_t         right = ROWS; /* written by worker 0 */
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    job.batch = ROWS;
    job.topology = argc > 1 ? argv[1] : NULL;
    job.consistency = argc > 2 ? argv[2] : NULL;
    comm.transport = argc > 3 ? argv[3] : NULL;
    if (argc > 3) comm.workers = 2; /* otherwise as many as the launcher started, or one */
    if (plait_run(&comm, &job, work, &right, &error) < 0) return fprintf(stderr, "%s\n", error.text), 2;
    return right >= ROWS * 99 / 100 ? 0 : 1;
}
