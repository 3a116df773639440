/* A graph of your own, cut by hand over 4 ranks: each rank has one layer, and micro-batches go through the ranks as a
 * pipeline. The last rank trains the same graph uncut beside it, and the losses are the same.
 *
 *     examples/12_pipeline [threads|sim|mpi] [gpipe|1f1b|interleaved]       mpirun -n 4 examples/12_pipeline mpi */
#include <math.h>
#include <plait/comm_channel.h>
#include <plait/ops.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 4, WIDTH = 32, ROWS = 16, BATCHES = 8, CLOCKS = 20, NODES = 256 };

typedef struct net {
    plait_graph *graph;
    plait_value  x, target, loss, inc[RANKS];
    int32_t      place[NODES]; /* the part of each node */
} net;

static float weight[RANKS][WIDTH][WIDTH];

/* Four layers h = tanh(h w). The nodes that a layer adds are placed on its rank; gradients follow by themselves. */
static plait_status build(net *n, plait_error *err) {
    plait_value w[RANKS], dw[RANKS];
    char        name[8];
    if (plait_graph_create(NULL, 0, &n->graph, err) < 0) return err->code;
    plait_graph *g = n->graph;
    plait_value  h = n->x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, WIDTH));
    n->target = plait_graph_placeholder(g, "target", PLAIT_F32, plait_shape_2(PLAIT_ANY, WIDTH));
    for (int32_t k = 0; k < NODES; k++) n->place[k] = -1;
    for (int32_t r = 0; r < RANKS; r++) {
        const int64_t first = plait_graph_nodes(g);
        snprintf(name, sizeof name, "w%d", r);
        w[r] = plait_graph_variable(g, name, plait_tensor_of(PLAIT_F32, plait_shape_2(WIDTH, WIDTH), weight[r]));
        h = plait_op_tanh(g, plait_op_matmul(g, h, w[r]));
        if (r == RANKS - 1) n->loss = plait_op_sum(g, plait_op_square(g, plait_op_sub(g, h, n->target)), 0, NULL, 0);
        for (int64_t k = first; k < plait_graph_nodes(g); k++) n->place[k] = r;
    }
    plait_graph_gradients(g, n->loss, RANKS, w, dw);
    for (int32_t r = 0; r < RANKS; r++)
        n->inc[r] = plait_op_inc(g, w[r], plait_op_mul(g, dw[r], plait_graph_scalar(g, PLAIT_F32, -1e-4)));
    return plait_graph_check(g, err);
}

/* Trains on micro-batches of ROWS / BATCHES rows; *loss_out: their sum in the last clock, on the rank that has it. */
static plait_status train(const net *n, const plait_cut *cut, const char *schedule, double *loss_out,
                          plait_error *err) {
    plait_session_opts opts;
    plait_session     *session = NULL;
    static const int   rows = ROWS / BATCHES;
    plait_session_opts_init(&opts);
    opts.threads = 1;
    opts.cut = cut;
    plait_status status = plait_session_create(n->graph, &opts, &session, err);
    for (int clock = 0; status == PLAIT_OK && clock < CLOCKS; clock++) {
        float       x[BATCHES][ROWS * WIDTH / BATCHES], target[BATCHES][ROWS * WIDTH / BATCHES], loss[BATCHES] = { 0 };
        plait_feed  feeds[BATCHES][2];
        plait_fetch fetches[BATCHES][RANKS + 1];
        plait_batch batch[BATCHES];
        for (int m = 0; m < BATCHES; m++) {
            for (int i = 0; i < rows * WIDTH; i++) {
                x[m][i] = (float)sin(clock + m * 0.7 + i * 1.3);
                target[m][i] = x[m][i] * 0.5F;
            }
            const plait_shape shape = plait_shape_2(rows, WIDTH);
            feeds[m][0] = (plait_feed){ n->x, plait_tensor_of(PLAIT_F32, shape, x[m]) };
            feeds[m][1] = (plait_feed){ n->target, plait_tensor_of(PLAIT_F32, shape, target[m]) };
            for (int r = 0; r < RANKS; r++) fetches[m][r] = (plait_fetch){ .value = n->inc[r] };
            fetches[m][RANKS] = (plait_fetch){ .value = n->loss, .tensor = { .data = &loss[m] }, .bytes = 4 };
            batch[m] = (plait_batch){ feeds[m], fetches[m], 2, RANKS + 1 };
        }
        status = plait_session_run_batches(&session, 1, schedule, batch, BATCHES, err);
        *loss_out = 0;
        for (int m = 0; m < BATCHES; m++) *loss_out += loss[m];
    }
    plait_session_destroy(&session);
    return status;
}

static plait_status body(plait_comm *comm, void *user) {
    static const int32_t ranks[RANKS] = { 0, 1, 2, 3 };
    plait_comm_channel  *channel = NULL;
    plait_error          err = { .code = PLAIT_OK };
    plait_cut            cut, whole;
    net                  n = { 0 };
    double               loss = 0, uncut = 0;
    if (plait_comm_workers(comm) != RANKS) return PLAIT_EINVAL;
    plait_cut_init(&whole); /* one part */
    plait_cut_init(&cut);
    cut.parts = RANKS;
    cut.own = plait_comm_rank(comm);
    cut.place = n.place;
    plait_status status = build(&n, &err);
    cut.n_places = status == PLAIT_OK && plait_graph_nodes(n.graph) < NODES ? plait_graph_nodes(n.graph) : NODES;
    if (status == PLAIT_OK) status = plait_comm_channel_create(comm, RANKS, ranks, RANKS + 1, &channel);
    cut.channel = plait_comm_channel_calls(channel);
    if (status == PLAIT_OK) status = train(&n, &cut, user, &loss, &err);
    if (status == PLAIT_OK && cut.own == RANKS - 1) {
        status = train(&n, &whole, user, &uncut, &err);
        printf("loss %.9g over %d ranks, %.9g on one\n", loss, RANKS, uncut);
        if (status == PLAIT_OK && !(loss > 0 && loss == uncut)) status = PLAIT_EDIVERGED;
    }
    if (status != PLAIT_OK) fprintf(stderr, "rank %d: %s\n", cut.own, err.text);
    plait_comm_channel_destroy(&channel);
    plait_graph_destroy(&n.graph);
    return status;
}

int main(int argc, char **argv) {
    plait_comm_opts opts;
    plait_error     err;
    for (int i = 0; i < RANKS * WIDTH * WIDTH; i++) (&weight[0][0][0])[i] = (float)sin(i * 12.9898) * 0.3F;
    plait_comm_opts_init(&opts);
    opts.transport = argc > 1 ? argv[1] : "threads";
    opts.workers = RANKS;
    if (plait_comm_run(&opts, body, argc > 2 ? argv[2] : "1f1b", &err) == PLAIT_OK) return EXIT_SUCCESS;
    fprintf(stderr, "%s\n", err.text);
    return EXIT_FAILURE;
}
