/* What a vertex program may be made of, beside a tell, a combine and an apply: values of several numbers, edges with
 * numbers of their own, a gather of its own, update, scatter that signals, sums that stop a run. Each against a plain
 * loop, for several numbers of workers, cuts and consistencies; and what does not go together is refused by name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ways.h"

static const setting whole[] = { { "local", "bsp", "range", 1 }, { "ps", "bsp", "range", 3 },
                                 { "ps", "bsp", "hdrf", 4 },     { "allreduce", "bsp", "range", 2 } };
enum { WHOLE = sizeof whole / sizeof *whole };

/* --- values of several numbers ------------------------------------------------------------------------------------ */

/* Three numbers: how many edges have come in all, the sum of weights times the teller's number, a constant. */
static void three(void *user, const plait_vertex *v, void *value) {
    double *x = value;
    (void)user;
    x[0] = 0, x[1] = (double)v->index, x[2] = 7;
}
static void tell_two(void *user, const plait_vertex *v, const void *value, void *told) {
    const double *x = value;
    double       *t = told;
    (void)user;
    t[0] = 1, t[1] = x[1] / (double)(v->out > 0 ? v->out : 1);
}
static void gather_two(void *user, const plait_vertex_edge *e, void *gathered) {
    const double *t = e->told;
    double       *g = gathered;
    (void)user;
    g[0] += t[0];
    g[1] += (double)e->weight * t[1] + ((const double *)e->value)[2];
}
static double apply_two(void *user, const plait_vertex *v, const void *gathered, void *value) {
    const double *g = gathered;
    double       *x = value;
    (void)user;
    (void)v;
    x[0] += g[0];
    x[1] = g[1] / 8;
    return 1;
}

static void test_values_of_several_numbers(void **state) {
    const graph          g = draw(1);
    plait_vertex_program p = program_of("three");
    double               x[N][3] = { { 0 } };
    int                  out[N] = { 0 };
    (void)state;
    p.values = 3, p.tells = 2;
    p.init = three, p.tell = tell_two, p.gather = gather_two, p.apply = apply_two;
    for (int k = 0; k < M; k++) out[g.from[k]]++;
    for (int v = 0; v < N; v++) x[v][1] = v, x[v][2] = 7;
    for (int step = 0; step < 4; step++) {
        double sum[N][2] = { { 0 } };
        for (int k = 0; k < M; k++) {
            sum[g.to[k]][0]++;
            sum[g.to[k]][1] += (double)g.weight[k] * x[g.from[k]][1] / out[g.from[k]] + 7;
        }
        for (int v = 0; v < N; v++) x[v][0] += sum[v][0], x[v][1] = sum[v][1] / 8;
    }
    for (int s = 0; s < WHOLE; s++) {
        doing       d;
        plait_error err;
        if (run(&whole[s], g.edges, &p, 4, &d, &err) < 0) fail_msg("%s", err.text);
        for (int i = 0; i < 3 * N; i++)
            if (!(fabs(d.value[i] - ((double *)x)[i]) < 1e-9))
                fail_msg("setting %d: number %d is %g instead of %g", s, i, d.value[i], ((double *)x)[i]);
        assert_int_equal(d.report.updates, 4 * N);
    }
    plait_edges_destroy((plait_edges **)&g.edges);
}

static void one_f32(void *user, const plait_vertex *v, void *value) {
    (void)user;
    (void)v;
    ((float *)value)[0] = 1, ((float *)value)[1] = 0.5f;
}
static void gather_max(void *user, const plait_vertex_edge *e, void *gathered) {
    float *g = gathered;
    (void)user;
    if (e->weight > g[0]) g[0] = e->weight;
    if (((const float *)e->told)[1] > g[1]) g[1] = ((const float *)e->told)[1];
}
static double take_f32(void *user, const plait_vertex *v, const void *gathered, void *value) {
    (void)user;
    (void)v;
    ((float *)value)[0] = ((const float *)gathered)[0];
    return 0;
}

static void test_floats_begin_as_combine_says(void **state) {
    const graph          g = draw(2);
    plait_vertex_program p = program_of("floats");
    float                most[N];
    (void)state;
    p.type = PLAIT_F32, p.values = 2, p.combine = "max";
    p.init = one_f32, p.gather = gather_max, p.apply = take_f32;
    for (int v = 0; v < N; v++) most[v] = -INFINITY;
    for (int k = 0; k < M; k++)
        if (g.weight[k] > most[g.to[k]]) most[g.to[k]] = g.weight[k];
    for (int32_t w = 1; w <= 3; w++) {
        doing        d;
        plait_error  err;
        const float *value = (const float *)d.value;
        if (run(&(setting){ "ps", "bsp", "range", w }, g.edges, &p, 1, &d, &err) < 0) fail_msg("%s", err.text);
        for (int v = 0; v < N; v++) assert_true(isinf(most[v]) || value[2 * v] == most[v]);
        for (int v = 0; v < N; v++) assert_true(value[2 * v + 1] == 0.5f);
    }
    plait_edges_destroy((plait_edges **)&g.edges);
}

/* --- edges with numbers of their own ------------------------------------------------------------------------------ */

static void edge_begins(void *user, const plait_vertex_edge *e) {
    (void)user;
    assert_null(e->told);
    ((int64_t *)e->data)[0] = (int64_t)e->weight;
    ((int64_t *)e->data)[1] = 100 * (int64_t)e->at->index + (int64_t)e->other->index;
}
static void edge_counts(void *user, const plait_vertex_edge *e, void *gathered) {
    int64_t *data = e->data;
    (void)user;
    data[0] += 10; /* as often as it was seen */
    *(int64_t *)gathered += data[0] + data[1];
}
static double keep(void *user, const plait_vertex *v, const void *gathered, void *value) {
    (void)user;
    (void)v;
    *(int64_t *)value = *(const int64_t *)gathered;
    return 1;
}

static void test_edges_keep_numbers(void **state) {
    const graph          g = draw(3);
    plait_vertex_program p = program_of("edges");
    int64_t              wanted[N] = { 0 };
    (void)state;
    p.type = PLAIT_I64, p.edge_values = 2;
    p.edge_init = edge_begins, p.gather = edge_counts, p.apply = keep;
    for (int k = 0; k < M; k++)
        wanted[g.to[k]] += (int64_t)g.weight[k] + 50 + 100 * (int64_t)g.to[k] + (int64_t)g.from[k];
    for (int s = 0; s < WHOLE; s++) {
        doing       d;
        plait_error err;
        if (run(&whole[s], g.edges, &p, 5, &d, &err) < 0) fail_msg("%s", err.text);
        assert_memory_equal(d.value, wanted, sizeof wanted);
    }
    plait_edges_destroy((plait_edges **)&g.edges);
}

/* --- scatter: a shortest way, where only signaled vertices apply -------------------------------------------------- */

static void gather_way(void *user, const plait_vertex_edge *e, void *gathered) {
    const double way = *(const double *)e->told + (double)e->weight;
    (void)user;
    if (way < *(double *)gathered) *(double *)gathered = way;
}

static void test_scatter_signals_who_must_look(void **state) {
    static const setting settings[] = { { "local", "bsp", "range", 1 }, { "ps", "bsp", "range", 3 },
                                        { "ps", "ssp:2", "range", 4 },  { "ps", "async", "range", 3 },
                                        { "local", "async", "range", 2 } };
    (void)state;
    for (uint64_t seed = 10; seed < 14; seed++)
        for (int own = 0; own < 2; own++)
            for (int s = 0; s < 5; s++) {
                const graph          g = draw(seed);
                plait_vertex_program p = program_of("signals");
                double               way[N];
                doing                d;
                plait_error          err;
                p.combine = "min", p.along = PLAIT_ALONG_PLUS;
                p.init = all_far, p.apply = source_or_less, p.scatter = gets_nearer, p.starts = is_first;
                if (own) p.gather = gather_way;
                plain_ways(&g, way);
                if (run(&settings[s], g.edges, &p, 0, &d, &err) < 0) fail_msg("%s", err.text);
                for (int v = 0; v < N; v++)
                    if (d.value[v] != (way[v] >= 1e9 ? 1e9 : way[v]))
                        fail_msg("setting %d: vertex %d is %g away instead of %g", s, v, d.value[v], way[v]);
                assert_int_equal(d.report.still, 1);
                if (s == 0) assert_true(d.report.updates < d.report.supersteps * N / 2); /* few look */
                plait_edges_destroy((plait_edges **)&g.edges);
            }
}

/* --- update, again ------------------------------------------------------------------------------------------------ */

/* The least number that no neighbor has, if a neighbor with a higher index has the same: greedy colors. */
static double recolor(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *e, void *value) {
    int64_t *color = value;
    (void)user;
    bool clash = false;
    for (int64_t i = 0; i < n; i++)
        clash = clash || (e[i].other->index < v->index && *(const int64_t *)e[i].told == *color);
    if (!clash) return 0;
    for (*color = 0;; ++*color) {
        bool taken = false;
        for (int64_t i = 0; i < n; i++) taken = taken || *(const int64_t *)e[i].told == *color;
        if (!taken) return 1;
    }
}
static int always(void *user, const plait_vertex_edge *e) {
    (void)user;
    return e->other->index < e->at->index;
}

static void test_update_sees_all_edges(void **state) {
    (void)state;
    for (int32_t w = 1; w <= 4; w++) {
        const graph          g = draw(20);
        plait_vertex_program p = program_of("colors");
        doing                d;
        plait_error          err;
        const int64_t       *color = (const int64_t *)d.value;
        p.type = PLAIT_I64, p.near = PLAIT_NEAR_BOTH;
        p.update = recolor, p.scatter = always, p.again = 1;
        if (run(&(setting){ "ps", "bsp", "range", w }, g.edges, &p, 0, &d, &err) < 0) fail_msg("%s", err.text);
        for (int k = 0; k < M; k++)
            if (g.from[k] != g.to[k]) assert_int_not_equal(color[g.from[k]], color[g.to[k]]);
        assert_int_equal(d.report.still, 1);
        plait_edges_destroy((plait_edges **)&g.edges);
    }
}

/* --- sums that stop a run ----------------------------------------------------------------------------------------- */

static double grow(void *user, const plait_vertex *v, const void *gathered, void *value) {
    (void)user;
    (void)v;
    (void)gathered;
    *(double *)value += 1;
    return 1;
}
static void total(void *user, const plait_vertex *v, const void *value, double *sum) {
    (void)user;
    (void)v;
    sum[0] += *(const double *)value;
}
static void total_edge(void *user, const plait_vertex_edge *e, double *sum) {
    (void)user;
    sum[1] += (double)e->weight * *(const double *)e->value;
}
static int stop(void *user, int64_t superstep, const double *sum) {
    const double *weights = user;
    assert_true(sum[0] == (double)(N * superstep) && sum[1] == *weights * (double)superstep);
    return superstep == 6;
}

static void test_sums_stop_a_run(void **state) {
    const graph          g = draw(30);
    plait_vertex_program p = program_of("sums");
    double               weights = 0;
    (void)state;
    for (int k = 0; k < M; k++) weights += (double)g.weight[k];
    p.apply = grow, p.totals = 2, p.total = total, p.total_edge = total_edge, p.stop = stop, p.user = &weights;
    for (int s = 0; s < WHOLE; s++) {
        doing       d;
        plait_error err;
        if (run(&whole[s], g.edges, &p, 0, &d, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(d.report.stopped, 1);
        assert_int_equal(d.report.still, 0);
        assert_int_equal(d.report.supersteps, 6);
        for (int v = 0; v < N; v++) assert_true(d.value[v] == 6);
    }
    plait_edges_destroy((plait_edges **)&g.edges);
}

/* --- what does not go together ------------------------------------------------------------------------------------ */

static void refused(const graph *g, const plait_vertex_program *p, const char *cut, plait_status code,
                    const char *words) {
    doing       d;
    plait_error err = { .text = "" };
    const plait_status status = run(&(setting){ "ps", "bsp", cut, 2 }, g->edges, p, 1, &d, &err);
    if (status != code || strstr(err.text, words) == NULL)
        fail_msg("expected %d and '%s', and got %d: %s", code, words, status, err.text);
}

static int post_none(void *user, const plait_vertex_edge *e, void *gathered) {
    (void)user;
    (void)e;
    (void)gathered;
    return 0;
}

static void test_refusals(void **state) {
    const graph          g = draw(40);
    plait_vertex_program p = program_of("p");
    (void)state;
    p.apply = keep, p.values = 2;
    refused(&g, &p, "range", PLAIT_EREFUSED, "need gather or update");
    p.values = 5000;
    refused(&g, &p, "range", PLAIT_EINVAL, "are 0 to 4096");
    p.values = 0, p.type = PLAIT_F32;
    refused(&g, &p, "range", PLAIT_EREFUSED, "PLAIT_F32, need gather or update");
    p = program_of("p"), p.gather = edge_counts, p.combine = "min";
    refused(&g, &p, "range", PLAIT_EREFUSED, "need apply or update");
    p = program_of("p"), p.apply = keep, p.gather = edge_counts, p.tells = 2;
    refused(&g, &p, "range", PLAIT_EINVAL, "without tell");
    p.tells = 0, p.update = recolor;
    refused(&g, &p, "range", PLAIT_EINVAL, "in place of gather and apply");
    p = program_of("p"), p.apply = keep, p.again = 1;
    refused(&g, &p, "range", PLAIT_EREFUSED, "starts and again need scatter");
    p.again = 0, p.edge_values = 1;
    refused(&g, &p, "range", PLAIT_EINVAL, "edge_init fills edge_values");
    p.edge_values = 0, p.totals = 1, p.total = total;
    refused(&g, &p, "range", PLAIT_EINVAL, "come together");
    p = program_of("p"), p.update = recolor, p.type = PLAIT_I64;
    refused(&g, &p, "hdrf", PLAIT_EREFUSED, "update over a vertex cut");
    p = program_of("p"), p.apply = grow, p.scatter = always;
    refused(&g, &p, "random", PLAIT_EREFUSED, "scatter over a vertex cut");
    p = program_of("p"), p.apply = grow, p.scatter = always, p.post_delta = post_none;
    refused(&g, &p, "range", PLAIT_EINVAL, "post_delta changes what gather has made");
    plait_edges_destroy((plait_edges **)&g.edges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_several_numbers),
        cmocka_unit_test(test_floats_begin_as_combine_says),
        cmocka_unit_test(test_edges_keep_numbers),
        cmocka_unit_test(test_scatter_signals_who_must_look),
        cmocka_unit_test(test_update_sees_all_edges),
        cmocka_unit_test(test_sums_stop_a_run),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
