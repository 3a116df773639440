/* Belief propagation gives what a plain loop over messages gives, on a grid with weights of both signs; on trees what
 * counting all labelings gives. For each number of workers and topology, with the same bits superstep by superstep, and
 * vertex by vertex the same fixed point. What is no field of priors is refused by file and line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "settings.h"
#include "vertex/beliefs.h"

enum { MOST = 64, EDGES = 128, LABELS = 4 };

/* A field over vertices 0 .. n - 1. */
typedef struct field {
    int      n, m, labels;
    uint64_t from[EDGES], to[EDGES];
    float    weight[EDGES];
    double   prior[MOST][LABELS]; /* all 1 where the file has no line */
    bool     told[MOST];          /* it has one */
    char     file[64];
} field;

static double chance(pli_random *random) { return pli_random_f64(random); }

/* Priors go through a file. Vertex 3 has none, and vertex 1 cannot have label 0. */
static void draw_priors(field *f, pli_random *random) {
    snprintf(f->file, sizeof f->file, "priors-%d", (int)getpid());
    FILE *file = fopen(f->file, "w");
    assert_non_null(file);
    fprintf(file, "# priors\n");
    for (int v = f->n - 1; v >= 0; v--) {
        f->told[v] = v != 3;
        for (int i = 0; i < f->labels; i++)
            f->prior[v][i] = v == 3 ? 1 : v == 1 && i == 0 ? 0 : 0.05 + chance(random);
        if (!f->told[v]) continue;
        fprintf(file, "%d", v);
        for (int i = 0; i < f->labels; i++) fprintf(file, "%s%.17g", i % 2 ? "\t" : " ", f->prior[v][i]);
        fprintf(file, "\n");
    }
    assert_int_equal(fclose(file), 0);
}

static void join(field *f, pli_random *random, int u, int v) {
    f->from[f->m] = (uint64_t)u;
    f->to[f->m] = (uint64_t)v;
    f->weight[f->m++] = (float)(chance(random) * 1.2 - 0.2);
}

static field draw_grid(uint64_t seed, int wide, int high, int labels) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    field      f = { .n = wide * high, .labels = labels };
    for (int v = 0; v < f.n; v++) {
        if (v % wide + 1 < wide) join(&f, &random, v, v + 1);
        if (v + wide < f.n) join(&f, &random, v + wide, v);
    }
    draw_priors(&f, &random);
    return f;
}

static field draw_tree(uint64_t seed, int n, int labels) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    field      f = { .n = n, .labels = labels };
    for (int v = 1; v < n; v++) join(&f, &random, (int)(chance(&random) * v), v);
    draw_priors(&f, &random);
    return f;
}

static plait_edges *edges_of(const field *f, bool twice) {
    uint64_t     from[2 * EDGES], to[2 * EDGES];
    float        weight[2 * EDGES];
    plait_edges *edges = NULL;
    plait_error  err;
    int          m = 0;
    for (int k = 0; k < f->m; k++)
        for (int back = 0; back <= twice; back++) {
            from[m] = back ? f->to[k] : f->from[k];
            to[m] = back ? f->from[k] : f->to[k];
            weight[m++] = f->weight[k];
        }
    if (plait_edges_from_memory(m, from, to, weight, NULL, &edges, &err) < 0) fail_msg("%s", err.text);
    return edges;
}

/* --- references --------------------------------------------------------------------------------------------------- */

static void share(int n, double *x) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    for (int i = 0; i < n; i++) x[i] /= sum;
}

/* What v holds but for what came along edge `but` (-1: all), in a fixed order. message [edge][0]: from -> to. */
static void plain_held(const field *f, double message[][2][LABELS], int v, int but, double *held) {
    memcpy(held, f->prior[v], sizeof f->prior[v]);
    for (int k = 0; k < f->m; k++)
        for (int back = 0; back < 2; back++)
            if ((int)(back ? f->from[k] : f->to[k]) == v && k != but)
                for (int i = 0; i < f->labels; i++) held[i] *= message[k][back][i];
}

static void plain_loop(const field *f, bool most, double smoothing, double belief[][LABELS]) {
    static double message[EDGES][2][LABELS], next[EDGES][2][LABELS];
    for (int k = 0; k < f->m; k++)
        for (int i = 0; i < f->labels; i++) message[k][0][i] = message[k][1][i] = 1.0 / f->labels;
    for (int round = 0; round < 4000; round++) {
        for (int k = 0; k < f->m; k++)
            for (int back = 0; back < 2; back++) {
                double held[LABELS], *m = next[k][back];
                plain_held(f, message, (int)(back ? f->to[k] : f->from[k]), k, held);
                for (int i = 0; i < f->labels; i++) {
                    m[i] = 0;
                    for (int j = 0; j < f->labels; j++) {
                        const double part = held[j] * (i == j ? 1 : exp(-smoothing * (double)f->weight[k]));
                        m[i] = most ? fmax(m[i], part) : m[i] + part;
                    }
                }
                share(f->labels, m);
            }
        memcpy(message, next, sizeof message);
    }
    for (int v = 0; v < f->n; v++) {
        plain_held(f, message, v, -1, belief[v]);
        share(f->labels, belief[v]);
    }
}

/* All labelings. */
static void plain_count(const field *f, bool most, double smoothing, double belief[][LABELS]) {
    int64_t all = 1;
    for (int v = 0; v < f->n; v++) all *= f->labels;
    for (int v = 0; v < f->n; v++)
        for (int i = 0; i < f->labels; i++) belief[v][i] = 0;
    for (int64_t one = 0; one < all; one++) {
        int     label[MOST];
        int64_t rest = one;
        double  p = 1;
        for (int v = 0; v < f->n; v++, rest /= f->labels) {
            label[v] = (int)(rest % f->labels);
            p *= f->prior[v][label[v]];
        }
        for (int k = 0; k < f->m; k++)
            if (label[f->from[k]] != label[f->to[k]]) p *= exp(-smoothing * (double)f->weight[k]);
        for (int v = 0; v < f->n; v++) {
            double *b = &belief[v][label[v]];
            *b = most ? fmax(*b, p) : *b + p;
        }
    }
    for (int v = 0; v < f->n; v++) share(f->labels, belief[v]);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static const engine_setting settings[] = {
    { "local", "sync", NULL, NULL, 1, NULL },       { "ps", "sync", NULL, NULL, 2, NULL },
    { "ps", "sync", NULL, NULL, 4, NULL },          { "allreduce", "sync", NULL, NULL, 3, NULL },
    { "local", "async", "vertex", NULL, 1, NULL },  { "ps", "async", "vertex", NULL, 4, NULL },
    { "local", "async", "edge", NULL, 3, NULL },
};
enum { SETTINGS = sizeof settings / sizeof *settings, SYNC = 4 };

typedef struct result {
    double             *value; /* [n, width] */
    int64_t             width;
    plait_vertex_report report;
} result;

static result run_field(const field *f, const engine_setting *s, const plait_edges *edges, bool most, double smoothing,
                        double tolerance) {
    const pli_vertex_asked asked = { .priors = f->file, .most_probable = most, .smoothing = smoothing };
    pli_vertex_choice      choice = { edges, -1, 0, tolerance, 0, NULL };
    plait_vertex_program   program;
    plait_error            err;
    result                 r;
    if (make_named("beliefs", &asked, &choice, &program, &err) < 0) fail_msg("%s", err.text);
    r.width = program.values;
    r.value = calloc((size_t)f->n * (size_t)r.width, sizeof *r.value);
    if (run_setting(s, edges, &program, 5000, r.value, &r.report, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(r.report.still, 1);
    pli_beliefs_release(&choice.own);
    assert_null(choice.own);
    return r;
}

static void compare(const field *f, const char *what, int s, const result *r, double wanted[][LABELS], double within) {
    for (int v = 0; v < f->n; v++)
        for (int i = 0; i < f->labels; i++)
            if (!(fabs(r->value[v * r->width + i] - wanted[v][i]) < within))
                fail_msg("%s, setting %d: vertex %d has label %d with %.12g instead of %.12g", what, s, v, i,
                         r->value[v * r->width + i], wanted[v][i]);
}

static void test_a_grid_comes_to_the_fixed_point_of_a_plain_loop(void **state) {
    (void)state;
    for (int most = 0; most < 2; most++) {
        const field  f = draw_grid(1, 6, 5, 4);
        double       wanted[MOST][LABELS];
        result       first = { NULL, 0, { 0 } };
        plait_edges *edges = edges_of(&f, false);
        plain_loop(&f, most, 0.8, wanted);
        for (int s = 0; s < SETTINGS; s++) {
            result r = run_field(&f, &settings[s], edges, most, 0.8, 1e-12);
            compare(&f, most ? "max" : "sum", s, &r, wanted, 1e-9);
            if (s == 0) first = r;
            else if (s < SYNC) assert_memory_equal(r.value, first.value, (size_t)(f.n * r.width) * sizeof *r.value);
            if (s > 0) free(r.value);
        }
        free(first.value);
        plait_edges_destroy(&edges);
        remove(f.file);
    }
}

static void test_a_tree_comes_to_what_counting_gives(void **state) {
    (void)state;
    for (uint64_t seed = 2; seed < 6; seed++)
        for (int most = 0; most < 2; most++) {
            const field  f = draw_tree(seed, 9, 3);
            double       wanted[MOST][LABELS];
            plait_edges *edges = edges_of(&f, false);
            plain_count(&f, most, 2, wanted);
            for (int s = 0; s < SETTINGS; s++) {
                result r = run_field(&f, &settings[s], edges, most, 2, 1e-13);
                compare(&f, most ? "max" : "sum", s, &r, wanted, 1e-11);
                if (s < SYNC) assert_in_range(r.report.supersteps, 2, 12); /* messages end at the leaves */
                free(r.value);
            }
            plait_edges_destroy(&edges);
            remove(f.file);
        }
}

/* Costs that no double has the exponential of: the tree's labels all follow the strongest prior. */
static void test_strong_costs_do_not_underflow(void **state) {
    (void)state;
    field        f = draw_tree(7, 9, 3);
    double       all[LABELS] = { 1, 1, 1 };
    for (int k = 0; k < f.m; k++) f.weight[k] = 1;
    plait_edges *edges = edges_of(&f, false);
    for (int v = 0; v < f.n; v++)
        for (int i = 0; i < 3; i++) all[i] *= f.prior[v][i];
    share(3, all);
    result r = run_field(&f, &settings[0], edges, false, 2000, 1e-13);
    for (int v = 0; v < f.n; v++)
        for (int i = 0; i < 3; i++) assert_true(fabs(r.value[v * r.width + i] - all[i]) < 1e-9);
    free(r.value);
    plait_edges_destroy(&edges);
    remove(f.file);
}

/* An edge that stands there both ways, twice, counts once; a loop not at all. */
static void test_the_simple_graph_counts(void **state) {
    (void)state;
    field        f = draw_grid(8, 5, 4, 3);
    plait_edges *once = edges_of(&f, false);
    result       a = run_field(&f, &settings[0], once, false, 1, 1e-12);
    f.from[f.m] = f.to[f.m] = 5;
    f.weight[f.m++] = 9;
    plait_edges *twice = edges_of(&f, true);
    assert_int_equal(plait_edges_loops(twice), 2);
    for (int s = 0; s < SYNC; s++) {
        result b = run_field(&f, &settings[s], twice, false, 1, 1e-12);
        assert_memory_equal(a.value, b.value, (size_t)(f.n * a.width) * sizeof *a.value);
        free(b.value);
    }
    free(a.value);
    plait_edges_destroy(&once);
    plait_edges_destroy(&twice);
    remove(f.file);
}

/* Vertex by vertex, changes within the tolerance tell nobody: a loose one takes far fewer updates. */
static void test_the_tolerance_saves_updates(void **state) {
    (void)state;
    const field  f = draw_grid(9, 6, 5, 4);
    plait_edges *edges = edges_of(&f, false);
    result       loose = run_field(&f, &settings[4], edges, false, 0.8, 1e-2),
           tight = run_field(&f, &settings[4], edges, false, 0.8, 1e-12);
    assert_true(loose.report.updates * 2 < tight.report.updates);
    free(loose.value);
    free(tight.value);
    plait_edges_destroy(&edges);
    remove(f.file);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refused(const plait_edges *edges, const char *text, const char *words) {
    pli_beliefs        b = { 0 };
    plait_error        err = { .text = "" };
    const plait_status status = pli_beliefs_parse("here", text, strlen(text), edges, &b, &err);
    free(b.prior);
    if (status != PLAIT_EFORMAT || strstr(err.text, words) == NULL)
        fail_msg("'%s': expected '%s', and got %d: %s", text, words, status, err.text);
}

static void test_refusals(void **state) {
    field                f = draw_grid(10, 4, 4, 3);
    plait_edges         *edges = edges_of(&f, false), *unlike;
    pli_vertex_choice    choice = { edges, -1, 0, 1e-9, 0, NULL };
    pli_vertex_asked     asked = { .priors = f.file, .smoothing = 1 };
    plait_vertex_program program;
    plait_error          err;
    (void)state;
    refused(edges, "# none\n", "here: it has no prior");
    refused(edges, "1 0.5\n", "here:1: expected an id and a number for each label, 2 to 256 labels");
    refused(edges, "1 0.5 0.5\n\n2 0.5\n", "here:3: expected as many numbers as in the lines before: the line ends");
    refused(edges, "1 0.5 0.5\n2 1 1 1\n", "here:2: expected the end of the line, as in the lines before: '1'");
    refused(edges, "1 0.5 -0.5\n", "here:1: expected a number of 0 or more: '-0.5'");
    refused(edges, "1 0.5 nan\n", "here:1: expected a finite number: 'nan'");
    refused(edges, "1 0.5 0.x\n", "here:1: expected a finite number: '0.x'");
    refused(edges, "1 0 0\n", "here:1: expected a number above 0 for some label");
    refused(edges, "1 1 1\n77 1 1\n", "here:2: the graph has no such vertex: '77'");
    refused(edges, "1 1 1\n2 1 1\n1 1 1\n", "here:3: the vertex has a line before: '1'");
    /* Two weights for one pair; a vertex that would send too much. */
    f.from[f.m] = f.to[0], f.to[f.m] = f.from[0], f.weight[f.m++] = 7;
    unlike = edges_of(&f, false);
    choice.edges = unlike;
    assert_int_equal(make_named("beliefs", &asked, &choice, &program, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "have the weights"));
    pli_beliefs_release(&choice.own);
    plait_edges_destroy(&unlike);
    uint64_t hub[2000], leaf[2000];
    for (uint64_t k = 0; k < 2000; k++) hub[k] = 0, leaf[k] = k + 1;
    assert_int_equal(plait_edges_from_memory(2000, hub, leaf, NULL, NULL, &unlike, &err), PLAIT_OK);
    choice.edges = unlike;
    assert_int_equal(make_named("beliefs", &asked, &choice, &program, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "a vertex has 2000 neighbors, and with 3 labels a value would have 6003 numbers"));
    pli_beliefs_release(&choice.own);
    plait_edges_destroy(&unlike);
    plait_edges_destroy(&edges);
    remove(f.file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_grid_comes_to_the_fixed_point_of_a_plain_loop),
        cmocka_unit_test(test_a_tree_comes_to_what_counting_gives),
        cmocka_unit_test(test_strong_costs_do_not_underflow),
        cmocka_unit_test(test_the_simple_graph_counts),
        cmocka_unit_test(test_the_tolerance_saves_updates),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
