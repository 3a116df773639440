/* A regression as a graph: y = x w + b, its squared loss, the gradient by w and b, and steps against the gradient. */
#include <plait/session.h>
#include <stdio.h>

enum { ROWS = 200 };

static plait_value op(plait_graph *g, const char *name, plait_value a, plait_value b) {
    const plait_value in[] = { a, b };
    return plait_graph_op(g, name, in, b == PLAIT_NONE ? 1 : 2, NULL, 0);
}

int main(void) {
    plait_graph *g = NULL;
    if (plait_graph_create(NULL, 0, &g, NULL) != PLAIT_OK) return 1;
    const plait_tensor zeros_w = { PLAIT_F32, { 2, { 2, 1 } }, NULL }, zero = { PLAIT_F32, { 1, { 1 } }, NULL };
    plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, 2)), d[2];
    plait_value t = plait_graph_placeholder(g, "t", PLAIT_F32, plait_shape_2(PLAIT_ANY, 1));
    plait_value by[] = { plait_graph_variable(g, "w", zeros_w), plait_graph_variable(g, "b", zero) };
    plait_value y = op(g, "add", op(g, "matmul", x, by[0]), by[1]);
    plait_value loss = op(g, "mean", op(g, "square", op(g, "sub", y, t), PLAIT_NONE), PLAIT_NONE);
    plait_value rate = plait_graph_scalar(g, PLAIT_F32, -0.2);
    plait_graph_gradients(g, loss, 2, by, d);
    float xs[ROWS][2], ts[ROWS], l = 0, w[2] = { 0 }, b = 0;
    for (int i = 0; i < ROWS; i++) {
        xs[i][0] = (float)(i % 20) / 10 - 1, xs[i][1] = (float)(i / 20) / 5 - 1;
        ts[i] = 3 * xs[i][0] - 2 * xs[i][1] + 0.5F;
    }
    const plait_feed feeds[] = { { x, plait_tensor_of(PLAIT_F32, plait_shape_2(ROWS, 2), xs) },
                                 { t, plait_tensor_of(PLAIT_F32, plait_shape_2(ROWS, 1), ts) } };
    plait_fetch      fetches[] = { { loss, { .data = &l }, sizeof l },
                                   { .value = op(g, "inc", by[0], op(g, "mul", d[0], rate)) },
                                   { .value = op(g, "inc", by[1], op(g, "mul", d[1], rate)) } };
    plait_session *s = NULL;
    plait_error    err = { .code = PLAIT_OK };
    plait_status   status = plait_session_create(g, NULL, &s, &err);
    for (int step = 0; step < 200 && status == PLAIT_OK; step++)
        status = plait_session_run(s, feeds, 2, fetches, 3, NULL, 0, &err);
    if (status == PLAIT_OK && (status = plait_session_variable(s, 0, w, &err)) == PLAIT_OK)
        status = plait_session_variable(s, 1, &b, &err);
    printf("%sy = %.3f x0 %+.3f x1 %+.3f, loss %.2g\n", status == PLAIT_OK ? "" : err.text, (double)w[0], (double)w[1],
           (double)b, (double)l);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
    return status == PLAIT_OK && l < 1e-6F ? 0 : 1;
}
