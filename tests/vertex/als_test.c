/* Alternating least squares over a bipartite graph gives what a plain loop gives, side by side: for each number of
 * workers and topology with the same bits. Vertex by vertex it comes to the same optimum. A vertex that is user and
 * item is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "settings.h"
#include "tensor/factors/factors.h"
#include "vertex/als.h"

enum { USERS = 40, ITEMS = 25, N = USERS + ITEMS, M = 420, RANK = 3, COLS = RANK + 1 };

typedef struct ratings {
    uint64_t     user[M], item[M]; /* ids: users 100 .., items 500 .. */
    float        value[M];
    plait_edges *edges;
} ratings;

static ratings draw(uint64_t seed) {
    pli_random  random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    ratings     r;
    plait_error err;
    for (int k = 0; k < M; k++) { /* everybody has a rating; some rate twice */
        const int u = k < USERS ? k : (int)(pli_random_f64(&random) * USERS),
                  i = k < ITEMS ? k : (int)(pli_random_f64(&random) * ITEMS);
        r.user[k] = 100 + (uint64_t)u;
        r.item[k] = 500 + (uint64_t)i;
        r.value[k] = (float)(3 + sin(u) + cos(i) + sin(2 * u) * cos(3 * i) + 0.2 * pli_random_f64(&random));
    }
    if (plait_edges_from_memory(M, r.user, r.item, r.value, NULL, &r.edges, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(plait_edges_vertices(r.edges), N);
    return r;
}

/* --- a plain loop ------------------------------------------------------------------------------------------------- */

static int user_of(const ratings *r, int k) { return (int)r->user[k] - 100; }
static int item_of(const ratings *r, int k) { return USERS + (int)r->item[k] - 500; }

static double mean_of(const ratings *r) {
    double sum = 0;
    for (int k = 0; k < M; k++) sum += (double)r->value[k];
    return sum / M;
}

/* Gauss' elimination of a positive definite system, b beside a. */
static void eliminate(double a[COLS][COLS + 1]) {
    for (int p = 0; p < COLS; p++)
        for (int row = 0; row < COLS; row++)
            if (row != p)
                for (int j = COLS; j >= p; j--) a[row][j] -= a[p][j] * (a[row][p] / a[p][p]);
}

static void solve_plain(const ratings *r, double l2, double mean, int v, double value[N][COLS]) {
    double a[COLS][COLS + 1] = { { 0 } };
    for (int k = 0; k < M; k++) {
        if (user_of(r, k) != v && item_of(r, k) != v) continue;
        const double *other = value[v < USERS ? item_of(r, k) : user_of(r, k)], *factors = other;
        for (int i = 0; i < COLS; i++) {
            const double x = i == 0 ? 1 : factors[i];
            for (int j = 0; j < COLS; j++) a[i][j] += x * (j == 0 ? 1 : factors[j]);
            a[i][COLS] += x * ((double)r->value[k] - mean - other[0]);
            a[i][i] += l2;
        }
    }
    eliminate(a);
    for (int i = 0; i < COLS; i++) value[v][i] = a[i][COLS] / a[i][i];
}

static void first_values(uint64_t seed, double value[N][COLS]) {
    for (int v = 0; v < N; v++) {
        float factor[RANK];
        pli_factor_draw(seed, v >= USERS, (uint64_t)(v < USERS ? v : v - USERS), RANK, factor);
        value[v][0] = 0;
        for (int j = 0; j < RANK; j++) value[v][1 + j] = (double)factor[j];
    }
}

static void plain(const ratings *r, double l2, int supersteps, double value[N][COLS]) {
    const double mean = mean_of(r);
    for (int step = 0; step < supersteps; step++)
        for (int v = step % 2 == 0 ? 0 : USERS; v < (step % 2 == 0 ? USERS : N); v++)
            solve_plain(r, l2, mean, v, value);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static const engine_setting settings[] = {
    { "local", "sync", NULL, NULL, 1, NULL },       { "ps", "sync", NULL, NULL, 2, NULL },
    { "ps", "sync", NULL, NULL, 4, NULL },          { "allreduce", "sync", NULL, NULL, 3, NULL },
    { "local", "async", "edge", NULL, 1, NULL },    { "ps", "async", "vertex", NULL, 4, NULL },
    { "local", "async", "full", NULL, 3, NULL },
};
enum { SETTINGS = sizeof settings / sizeof *settings, SYNC = 4 };

static double run_ratings(const ratings *r, const engine_setting *s, double l2, double tolerance, int64_t limit,
                          float *value, plait_vertex_report *report) {
    const pli_vertex_asked asked = { .components = RANK, .l2 = l2 };
    pli_vertex_choice      choice = { r->edges, -1, 0, tolerance, 17, NULL };
    plait_vertex_program   program;
    pli_figure             figure[PLI_FIGURES];
    plait_error            err;
    if (make_named("als", &asked, &choice, &program, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(program.values, COLS);
    if (run_setting(s, r->edges, &program, limit, value, report, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(pli_figures_als(&choice, (const int64_t *)(const void *)value, figure), 4);
    assert_int_equal(figure[0].whole, USERS);
    assert_true(fabs(figure[1].real - mean_of(r)) < 1e-12);
    pli_als_release(&choice.own);
    return figure[3].real;
}

static void test_sides_take_turns_as_in_a_plain_loop(void **state) {
    (void)state;
    for (int supersteps = 1; supersteps <= 8; supersteps++) {
        const ratings       r = draw(1);
        double              wanted[N][COLS];
        float               first[N][COLS], value[N][COLS];
        plait_vertex_report report;
        first_values(17, wanted);
        plain(&r, 0.05, supersteps, wanted);
        for (int s = 0; s < SYNC; s++) {
            (void)run_ratings(&r, &settings[s], 0.05, 0, supersteps, s == 0 ? first[0] : value[0], &report);
            assert_int_equal(report.supersteps, supersteps);
            assert_int_equal(report.updates, (supersteps + 1) / 2 * USERS + supersteps / 2 * ITEMS);
            if (s > 0) assert_memory_equal(value, first, sizeof first);
        }
        for (int v = 0; v < N; v++)
            for (int j = 0; j < COLS; j++)
                if (!(fabs((double)first[v][j] - wanted[v][j]) < 2e-5))
                    fail_msg("superstep %d: number %d of vertex %d is %g instead of %g", supersteps, j, v,
                             (double)first[v][j], wanted[v][j]);
        plait_edges_destroy((plait_edges **)&r.edges);
    }
}

/* The objective of all ways to get there; that of the plain loop is summed up here. */
static void test_engines_come_to_the_same_optimum(void **state) {
    (void)state;
    const ratings       r = draw(2);
    const double        l2 = 0.1, mean = mean_of(&r);
    double              best[N][COLS], sum = 0;
    float               value[N][COLS];
    plait_vertex_report report;
    first_values(17, best);
    plain(&r, l2, 2000, best);
    for (int k = 0; k < M; k++) {
        const double *u = best[user_of(&r, k)], *i = best[item_of(&r, k)];
        double        off = (double)r.value[k] - mean - u[0] - i[0];
        for (int j = 1; j < COLS; j++) off -= u[j] * i[j];
        sum += off * off;
        for (int j = 0; j < COLS; j++) sum += l2 * (u[j] * u[j] + i[j] * i[j]);
    }
    for (int s = 0; s < SETTINGS; s++) {
        const double objective = run_ratings(&r, &settings[s], l2, 1e-5, 4000, value[0], &report);
        assert_int_equal(report.still, 1);
        if (!(fabs(objective - sum / (2 * M)) < 1e-6))
            fail_msg("setting %d: the objective is %.12g instead of %.12g", s, objective, sum / (2 * M));
    }
    plait_edges_destroy((plait_edges **)&r.edges);
}

static void test_refusals(void **state) {
    static const uint64_t from[] = { 1, 2, 3 }, to[] = { 5, 5, 1 };
    pli_vertex_asked      asked = { .components = 2, .l2 = 1 };
    pli_vertex_choice     choice = { NULL, -1, 0, 0, 0, NULL };
    plait_vertex_program  program;
    plait_edges          *edges;
    plait_error           err;
    (void)state;
    assert_int_equal(plait_edges_from_memory(3, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    choice.edges = edges;
    assert_int_equal(make_named("als", &asked, &choice, &program, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "the vertex 1 has edges to others and from others"));
    pli_als_release(&choice.own);
    asked.l2 = 0;
    assert_int_equal(make_named("als", &asked, &choice, &program, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "--l2 must be above 0"));
    pli_als_release(&choice.own);
    plait_edges_destroy(&edges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sides_take_turns_as_in_a_plain_loop),
        cmocka_unit_test(test_engines_come_to_the_same_optimum),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
