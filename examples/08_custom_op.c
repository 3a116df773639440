/* Your own op: `gaussian` [n, k] is exp(-|x - c|^2 / 2) for each row of x [n, d] and each centre of c [k, d]. Here are
 * its shape rule, its kernel, its gradient made of other ops, and a check of the gradient against differences. */
#include <math.h>
#include <plait/op.h>
#include <plait/ops.h>
#include <plait/session.h>
#include <stdio.h>

enum { N = 5, D = 3, K = 4 };

static plait_status infer(const plait_call *call) {
    const plait_tensor *x = &call->in[0], *c = &call->in[1];
    if (x->type != PLAIT_F64 || c->type != PLAIT_F64 || x->shape.rank != 2 || c->shape.rank != 2 ||
        x->shape.dim[1] != c->shape.dim[1])
        return plait_call_fail(call, PLAIT_ESHAPE, "takes rows [n, d] and centres [k, d] of float64, of equal d");
    call->out[0] = (plait_tensor){ .type = PLAIT_F64, .shape = plait_shape_2(x->shape.dim[0], c->shape.dim[0]) };
    return PLAIT_OK;
}

/* A row is an item: several threads can compute a batch, and no bit depends on their number. */
static int64_t items(const plait_call *call) { return call->in[0].shape.dim[0]; }

static plait_status run(const plait_call *call, int64_t row) {
    const int64_t d = call->in[0].shape.dim[1], k = call->in[1].shape.dim[0];
    const double *x = (const double *)call->in[0].data + row * d, *c = call->in[1].data;
    double       *out = (double *)call->out[0].data + row * k;
    for (int64_t j = 0; j < k; j++) {
        double far = 0;
        for (int64_t i = 0; i < d; i++) far += (x[i] - c[j * d + i]) * (x[i] - c[j * d + i]);
        out[j] = exp(-far / 2);
    }
    return PLAIT_OK;
}

/* With y the output and s = y dy: dx = s c - (sum of s over centres) x, dc = s' x - (sum of s over rows)' c. */
static void gradient(const plait_gradient *at) {
    plait_graph  *g = at->graph;
    const int64_t over_centres = 1, swap[2] = { 1, 0 };
    plait_value   s = plait_op_mul(g, at->out[0], at->d_out[0]), turned = plait_op_transpose(g, s, 2, swap);
    plait_value   of_rows = plait_op_sum(g, s, 1, &over_centres, 1),
                of_centres = plait_op_sum(g, turned, 1, &over_centres, 1);
    at->d_in[0] = plait_op_sub(g, plait_op_matmul(g, s, at->in[1]), plait_op_mul(g, of_rows, at->in[0]));
    at->d_in[1] = plait_op_sub(g, plait_op_matmul(g, turned, at->in[0]), plait_op_mul(g, of_centres, at->in[1]));
}

static const plait_kernel        kernel = { .name = "rows", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &kernel, NULL };
static const plait_op            gaussian = { .size = sizeof(plait_op),
                                              .name = "gaussian",
                                              .summary = "exp(-|x - c|^2 / 2)",
                                              .min_inputs = 2,
                                              .max_inputs = 2,
                                              .outputs = 1,
                                              .infer = infer,
                                              .gradient = gradient,
                                              .kernels = kernels };

int main(void) {
    const plait_op *const own[] = { &gaussian };
    plait_graph          *g = NULL;
    plait_session        *session = NULL;
    plait_error           err = { 0 };
    double                x[N * D], c[K * D], dx[N * D], dc[K * D], sum, worst = 0;
    if (plait_graph_create(own, 1, &g, &err) != PLAIT_OK) return 2;
    plait_tensor zeros = { PLAIT_F64, plait_shape_2(K, D), NULL };
    plait_value  by[2] = { plait_graph_placeholder(g, "x", PLAIT_F64, plait_shape_2(PLAIT_ANY, D)),
                           plait_graph_variable(g, "c", zeros) },
                d[2];
    plait_value  y = plait_op_sum(g, plait_op_square(g, plait_graph_op(g, "gaussian", by, 2, NULL, 0)), 0, NULL, 0);
    plait_graph_gradients(g, y, 2, by, d);
    plait_status status = plait_session_create(g, NULL, &session, &err);
    for (int i = 0; i < N * D; i++) x[i] = sin(i + 1.0);
    for (int i = 0; i < K * D; i++) c[i] = cos(2.0 * i);
    plait_feed  feed = { by[0], plait_tensor_of(PLAIT_F64, plait_shape_2(N, D), x) };
    plait_fetch fetches[] = { { y, { .data = &sum }, sizeof sum },
                              { d[0], { .data = dx }, sizeof dx },
                              { d[1], { .data = dc }, sizeof dc } };
    if (status == PLAIT_OK) status = plait_session_set_variable(session, 0, c, &err);
    if (status == PLAIT_OK) status = plait_session_run(session, &feed, 1, fetches, 3, NULL, 0, &err);
    for (int i = 0; status == PLAIT_OK && i < (N + K) * D; i++) { /* changes each number a little up and down */
        double *at = i < N * D ? &x[i] : &c[i - N * D], kept = *at, said = i < N * D ? dx[i] : dc[i - N * D], f[2];
        for (int side = 0; side < 2 && status == PLAIT_OK; side++) {
            *at = kept + (side == 0 ? 1e-5 : -1e-5);
            if ((status = plait_session_set_variable(session, 0, c, &err)) == PLAIT_OK)
                status = plait_session_run(session, &feed, 1, fetches, 1, NULL, 0, &err);
            f[side] = sum;
        }
        *at = kept;
        worst = fmax(worst, fabs((f[0] - f[1]) / 2e-5 - said));
    }
    if (status != PLAIT_OK) fprintf(stderr, "%s\n", err.text);
    printf("%d derivatives, at most %.1g from differences\n", (N + K) * D, worst);
    plait_session_destroy(&session);
    plait_graph_destroy(&g);
    return status == PLAIT_OK && worst < 1e-8 ? 0 : 1;
}
