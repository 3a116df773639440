/* Classes that are drawn: how often each comes, and what that says of a softmax. The loss and the slopes of a sampled
 * softmax are tested beside the whole one's: by finite differences, and by their means over many draws. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <plait/nn.h>

#include "graph/session.h"
#include "learn/net/net.h"

enum { CLASSES = 24, ROWS = 5, CLOCKS = 8000 };

/* --- draws -------------------------------------------------------------------------------------------------------- */

/* Few classes have most rows, as words of a language have. */
static void count_rows(double *rows, int64_t n) {
    for (int64_t c = 0; c < n; c++) rows[c] = (double)(600 / (1 + (c * 7) % n));
}

static pli_draws *draws_of(int64_t classes, int64_t wanted, uint64_t seed, const double *rows) {
    pli_draws *d = NULL;
    assert_int_equal(pli_draws_create(classes, wanted, seed, rows, &d, NULL), PLAIT_OK);
    return d;
}

static void check_clock(const pli_draws *d, int64_t wanted) {
    assert_true(d->n >= 1 && d->n <= wanted);
    for (int64_t i = 0; i < d->n; i++) {
        assert_true(d->drawn[i] >= 0 && d->drawn[i] < d->classes && isfinite(d->bonus[i]));
        assert_true(i == 0 || d->drawn[i] > d->drawn[i - 1]);
    }
}

/* A class counts exp(bonus) when it is drawn, which is 1 on the average. The error is three deviations of the mean. */
static void check_means(int64_t wanted, const double *rows) {
    double     sum[CLASSES] = { 0 }, square[CLASSES] = { 0 }, expected = 0;
    pli_draws *d = draws_of(CLASSES, wanted, 5, rows);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        pli_draws_clock(d, clock);
        check_clock(d, wanted);
        for (int64_t i = 0; i < d->n; i++) {
            sum[d->drawn[i]] += exp(d->bonus[i]);
            square[d->drawn[i]] += exp(2 * d->bonus[i]);
        }
    }
    for (int64_t c = 0; c < CLASSES; c++) {
        const double mean = sum[c] / CLOCKS, spread = sqrt(fmax(square[c] / CLOCKS - mean * mean, 0));
        if (fabs(mean - 1) > 4 * spread / sqrt(CLOCKS) + 1e-12)
            fail_msg("class %d of %lld draws counts %g, deviation %g", (int)c, (long long)wanted, mean, spread);
        expected += pli_draws_expected(d, c);
        assert_true(pli_draws_expected(d, c) <= 1 + 1e-12);
    }
    assert_true(fabs(expected - (double)wanted) < 1e-9);
    pli_draws_destroy(&d);
}

static void test_each_class_counts_1_on_the_average(void **state) {
    (void)state;
    double rows[CLASSES];
    count_rows(rows, CLASSES);
    for (int64_t wanted = 1; wanted <= CLASSES; wanted += 3) {
        check_means(wanted, rows);
        check_means(wanted, NULL);
    }
}

static void test_frequent_classes_come_always_and_all_if_asked_for(void **state) {
    (void)state;
    double rows[CLASSES];
    count_rows(rows, CLASSES);
    pli_draws *few = draws_of(CLASSES, 6, 1, rows), *all = draws_of(CLASSES, CLASSES, 1, rows);
    assert_true(few->certain > 0 && few->certain < 6);
    assert_true(pli_draws_expected(few, 0) == 1); /* it has most rows */
    pli_draws_clock(few, 3);
    assert_true(few->drawn[0] == 0 && few->bonus[0] == 0);
    pli_draws_clock(all, 3);
    assert_int_equal(all->n, CLASSES);
    for (int64_t c = 0; c < CLASSES; c++) assert_true(all->drawn[c] == c && all->bonus[c] == 0);
    pli_draws_destroy(&few);
    pli_draws_destroy(&all);
}

static void test_a_draw_depends_on_seed_and_clock_alone(void **state) {
    (void)state;
    enum { MANY = 100000, K = 200 };
    pli_draws *a = draws_of(MANY, K, 1, NULL), *b = draws_of(MANY, K, 1, NULL), *other = draws_of(MANY, K, 2, NULL);
    int64_t    first[K];
    pli_draws_clock(a, 0);
    memcpy(first, a->drawn, sizeof first);
    pli_draws_clock(a, 7);
    pli_draws_clock(b, 7);
    pli_draws_clock(other, 7);
    assert_int_equal(a->n, K); /* each stratum has whole classes here */
    assert_memory_equal(a->drawn, b->drawn, sizeof first);
    assert_memory_equal(a->bonus, b->bonus, K * sizeof(double));
    assert_memory_not_equal(a->drawn, first, sizeof first);
    assert_memory_not_equal(a->drawn, other->drawn, sizeof first);
    pli_draws_destroy(&a);
    pli_draws_destroy(&b);
    pli_draws_destroy(&other);
}

/* --- the loss ----------------------------------------------------------------------------------------------------- */

/* Rows with scores of all classes, and the ops by which a part of them is judged, in one part or two. */
typedef struct scene {
    pli_net        net;
    pli_goal       goal;
    plait_op       op[PLI_CLASS_OPS];
    plait_graph   *graph;
    plait_session *session;
    plait_value    scores[2], candidates[2], bonus[2], slopes[2], label_in, weight_in, sums, share;
    double         name[CLASSES], label[ROWS], weight[ROWS];
    float          z[ROWS][CLASSES];
    pli_candidates found;
} scene;

static plait_value with_first(scene *s, const char *op, const plait_value *in, int32_t n, int32_t part) {
    const plait_attr first = { .name = "first", .kind = PLAIT_ATTR_INT,
                               .u.i = pli_columns_edge(&s->net, CLASSES, part) };
    return plait_graph_op(s->graph, op, in, n, &first, 1);
}

static void build(scene *s, bool sampled) {
    plait_value in[4], share[2];
    s->label_in = in[0] = plait_graph_placeholder(s->graph, "label", PLAIT_F64, plait_shape_1(PLAIT_ANY));
    s->weight_in = in[1] = plait_graph_placeholder(s->graph, "weight", PLAIT_F64, plait_shape_1(PLAIT_ANY));
    for (int32_t p = 0; p < s->net.columns; p++) {
        s->scores[p] = plait_graph_placeholder(s->graph, p == 0 ? "z0" : "z1", PLAIT_F32,
                                               plait_shape_2(PLAIT_ANY, PLAIT_ANY));
        s->candidates[p] = plait_graph_placeholder(s->graph, p == 0 ? "c0" : "c1", PLAIT_I64, plait_shape_1(PLAIT_ANY));
        s->bonus[p] = plait_graph_placeholder(s->graph, p == 0 ? "b0" : "b1", PLAIT_F64, plait_shape_1(PLAIT_ANY));
        const plait_value of[] = { s->scores[p], s->label_in, s->candidates[p], s->bonus[p] };
        in[2 + p] = with_first(s, "class_part", of, sampled ? 4 : 2, p);
    }
    const plait_value joined = plait_graph_op(s->graph, "class_loss", in, 2 + s->net.columns, NULL, 0);
    s->sums = plait_graph_output(s->graph, joined, 1);
    for (int32_t p = 0; p < s->net.columns; p++) {
        const plait_value of[] = { s->scores[p], joined, s->label_in, s->weight_in, s->candidates[p], s->bonus[p] };
        s->slopes[p] = with_first(s, "class_slopes", of, sampled ? 6 : 4, p);
        share[p] = plait_graph_output(s->graph, s->slopes[p], 1);
    }
    s->share = plait_graph_op(s->graph, "add_n", share, s->net.columns, NULL, 0);
}

static void begin(scene *s, int32_t columns, bool sampled) {
    plait_error  err = { 0 };
    pli_random   r = pli_random_at(3, PLI_RANDOM_DATA, 0, 0);
    plait_session_opts opts;
    memset(s, 0, sizeof *s);
    s->goal = (pli_goal){ .loss = &pli_loss_softmax, .columns = CLASSES, .classes = CLASSES, .label = s->name };
    s->net.goal = &s->goal;
    s->net.columns = columns;
    s->net.units = (pli_net_units){ .goal = &s->goal, .spread = 1, .unit = 1 };
    for (int64_t c = 0; c < CLASSES; c++) s->name[c] = (double)(10 * c);
    for (int64_t i = 0; i < ROWS; i++) {
        s->label[i] = s->name[(i * 11 + 2) % CLASSES];
        s->weight[i] = i == 3 ? 0 : 1 + (double)i / 2;
        for (int64_t c = 0; c < CLASSES; c++) s->z[i][c] = (float)(1.5 * pli_random_normal(&r));
    }
    pli_class_ops(&s->net.units, s->op);
    const plait_op *own[] = { &s->op[0], &s->op[1], &s->op[2] };
    assert_int_equal(plait_graph_create(own, PLI_CLASS_OPS, &s->graph, &err), PLAIT_OK);
    build(s, sampled);
    plait_session_opts_init(&opts);
    opts.threads = 1;
    if (plait_session_create(s->graph, &opts, &s->session, &err) != PLAIT_OK) fail_msg("%s", err.text);
}

static void end(scene *s) {
    plait_session_destroy(&s->session);
    plait_graph_destroy(&s->graph);
    pli_candidates_free(&s->found);
}

/* Judges the rows by the candidates at hand, or by all classes: the loss, and the slopes of all classes (NULL: not
 * wanted), 0 of those that are no candidates. */
static double judge(scene *s, bool sampled, double slopes[ROWS][CLASSES]) {
    float        z[2][ROWS * CLASSES], slope[2][ROWS * CLASSES], share;
    plait_feed   feeds[8] = { { s->label_in, plait_tensor_of(PLAIT_F64, plait_shape_1(ROWS), s->label) },
                              { s->weight_in, plait_tensor_of(PLAIT_F64, plait_shape_1(ROWS), s->weight) } };
    plait_fetch  fetches[4];
    pli_sums     sums;
    plait_error  err = { 0 };
    int64_t      at = 0, class[2][CLASSES], n[2] = { 0, 0 };
    int32_t      fed = 2;
    for (int32_t p = 0; p < s->net.columns; p++) {
        const int64_t first = pli_columns_edge(&s->net, CLASSES, p), all = pli_columns_edge(&s->net, CLASSES, p + 1);
        n[p] = sampled ? s->found.of_part[p] : all - first;
        for (int64_t c = 0; c < n[p]; c++) class[p][c] = first + (sampled ? s->found.row[at + c] : c);
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t c = 0; c < n[p]; c++) z[p][i * n[p] + c] = s->z[i][class[p][c]];
        const plait_shape shape = plait_shape_2(ROWS, n[p]), of = plait_shape_1(n[p]);
        feeds[fed++] = (plait_feed){ s->scores[p], plait_tensor_of(PLAIT_F32, shape, z[p]) };
        if (sampled) {
            feeds[fed++] = (plait_feed){ s->candidates[p], plait_tensor_of(PLAIT_I64, of, s->found.row + at) };
            feeds[fed++] = (plait_feed){ s->bonus[p], plait_tensor_of(PLAIT_F64, of, s->found.bonus + at) };
        }
        fetches[p] = (plait_fetch){ .value = s->slopes[p], .tensor = { .data = slope[p] }, .bytes = sizeof slope[p] };
        at += n[p];
    }
    const int32_t parts = s->net.columns;
    fetches[parts] = (plait_fetch){ .value = s->sums, .tensor = { .data = &sums }, .bytes = sizeof sums };
    fetches[parts + 1] = (plait_fetch){ .value = s->share, .tensor = { .data = &share }, .bytes = sizeof share };
    if (plait_session_run(s->session, feeds, fed, fetches, parts + 2, NULL, 0, &err) != PLAIT_OK)
        fail_msg("%s", err.text);
    /* What is differentiated is the loss. */
    assert_true(fabs((double)share - sums.loss) < 1e-5 * (1 + fabs(sums.loss)));
    if (slopes == NULL) return sums.loss;
    memset(slopes, 0, sizeof(double[ROWS][CLASSES]));
    for (int32_t p = 0; p < parts; p++)
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t c = 0; c < n[p]; c++) slopes[i][class[p][c]] += (double)slope[p][i * n[p] + c];
    return sums.loss;
}

static void draw(scene *s, pli_draws *d, int64_t clock) {
    pli_draws_clock(d, clock);
    s->found.draws = d;
    assert_true(pli_candidates_find(&s->net, &s->found, ROWS, s->label));
}

static void test_slopes_are_those_of_the_loss(void **state) {
    (void)state;
    const float h = 1.0F / 64;
    for (int32_t columns = 1; columns <= 2; columns++)
        for (int64_t wanted = 1; wanted <= CLASSES; wanted += 5) {
            scene      s;
            double     slope[ROWS][CLASSES];
            pli_draws *d = draws_of(CLASSES, wanted, 9, NULL);
            begin(&s, columns, true);
            draw(&s, d, wanted);
            (void)judge(&s, true, slope);
            for (int64_t i = 0; i < ROWS; i++)
                for (int64_t c = 0; c < CLASSES; c++) {
                    const float z = s.z[i][c];
                    s.z[i][c] = z + h;
                    const double above = judge(&s, true, NULL);
                    s.z[i][c] = z - h;
                    const double found = (above - judge(&s, true, NULL)) / (double)(2 * h);
                    s.z[i][c] = z;
                    if (fabs(found - slope[i][c]) > 2e-4)
                        fail_msg("%lld drawn, row %d, class %d: %g, differences say %g", (long long)wanted, (int)i,
                                 (int)c, slope[i][c], found);
                }
            end(&s);
            pli_draws_destroy(&d);
        }
}

/* Z' of the only row that counts, out of its loss log Z' - z[own]. */
static double sum_of(scene *s, bool sampled, int64_t own) {
    return exp(judge(s, sampled, NULL) + (double)s->z[0][own]);
}

static void test_the_mean_of_sampled_sums_is_the_whole_sum(void **state) {
    (void)state;
    for (int64_t wanted = 1; wanted < CLASSES; wanted += 7) {
        const int64_t own = 2; /* of row 0 */
        scene         s, all;
        double        sum = 0, square = 0;
        pli_draws    *d = draws_of(CLASSES, wanted, 33, NULL);
        begin(&s, 1, true);
        begin(&all, 1, false);
        for (int64_t i = 0; i < ROWS; i++) s.weight[i] = all.weight[i] = i == 0;
        s.z[0][own] = all.z[0][own] = 3; /* it is a good part of the sum */
        for (int64_t clock = 0; clock < CLOCKS; clock++) {
            draw(&s, d, clock);
            const double z = sum_of(&s, true, own);
            sum += z / CLOCKS;
            square += z * z / CLOCKS;
        }
        const double whole = sum_of(&all, false, own), deviation = sqrt((square - sum * sum) / CLOCKS);
        if (fabs(sum - whole) > 4 * deviation)
            fail_msg("%lld drawn: Z is %g, the mean of Z' %g, deviation %g", (long long)wanted, whole, sum, deviation);
        end(&s);
        end(&all);
        pli_draws_destroy(&d);
    }
}

/* || mean over draws of the sampled slopes - whole slopes || / || whole slopes ||. */
static double bias(int64_t wanted, int64_t clocks, const double *rows) {
    double     whole[ROWS][CLASSES], mean[ROWS][CLASSES] = { { 0 } }, one[ROWS][CLASSES], off = 0, size = 0;
    scene      s, all;
    pli_draws *d = draws_of(CLASSES, wanted, 21, rows);
    begin(&all, 1, false);
    (void)judge(&all, false, whole);
    begin(&s, 1, true);
    for (int64_t clock = 0; clock < clocks; clock++) {
        draw(&s, d, clock);
        (void)judge(&s, true, one);
        for (int64_t i = 0; i < ROWS * CLASSES; i++) (&mean[0][0])[i] += (&one[0][0])[i] / (double)clocks;
    }
    for (int64_t i = 0; i < ROWS * CLASSES; i++) {
        off += pow((&mean[0][0])[i] - (&whole[0][0])[i], 2);
        size += pow((&whole[0][0])[i], 2);
    }
    end(&s);
    end(&all);
    pli_draws_destroy(&d);
    return sqrt(off / size);
}

/* Z is met on the average; the slopes have Z below the line, so they are off by about 1 / K. */
static void test_the_mean_of_sampled_slopes_nears_the_whole_ones(void **state) {
    (void)state;
    static const int64_t wanted[] = { 3, 6, 12, 20, CLASSES };
    double               rows[CLASSES], before = 1;
    count_rows(rows, CLASSES);
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        const double off = bias(wanted[k], 2000, NULL), by_rows = bias(wanted[k], 2000, rows);
        print_message("%2lld of %d drawn: the mean of 2,000 slopes is off by %.4f, by rows %.4f\n",
                      (long long)wanted[k], CLASSES, off, by_rows);
        if (off >= before) fail_msg("%lld drawn: off by %g, fewer by %g", (long long)wanted[k], off, before);
        before = off;
        assert_true(by_rows < 0.5);
    }
    assert_true(bias(12, 2000, NULL) < 0.12);
    assert_true(bias(CLASSES, 1, NULL) == 0 && bias(CLASSES, 1, rows) == 0);
}

static void test_parts_have_their_own_candidates(void **state) {
    (void)state;
    scene      whole, parts;
    double     a[ROWS][CLASSES], b[ROWS][CLASSES];
    pli_draws *d = draws_of(CLASSES, 4, 2, NULL);
    begin(&whole, 1, true);
    begin(&parts, 2, true);
    for (int64_t clock = 0; clock < 50; clock++) {
        draw(&whole, d, clock);
        draw(&parts, d, clock);
        assert_true(fabs(judge(&whole, true, a) - judge(&parts, true, b)) < 1e-12);
        for (int64_t i = 0; i < ROWS * CLASSES; i++) assert_true(fabs((&a[0][0])[i] - (&b[0][0])[i]) < 1e-6);
    }
    for (int64_t i = 0; i < ROWS; i++) parts.label[i] = parts.name[CLASSES - 1];
    pli_draws *one = draws_of(CLASSES, 1, 2, NULL);
    bool empty = false;
    for (int64_t clock = 0; clock < 20; clock++) {
        draw(&parts, one, clock);
        empty = empty || parts.found.of_part[0] == 0;
        assert_true(isfinite(judge(&parts, true, NULL)));
    }
    assert_true(empty); /* a part may have no candidates */
    pli_draws_destroy(&one);
    end(&whole);
    end(&parts);
    pli_draws_destroy(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_class_counts_1_on_the_average),
        cmocka_unit_test(test_frequent_classes_come_always_and_all_if_asked_for),
        cmocka_unit_test(test_a_draw_depends_on_seed_and_clock_alone),
        cmocka_unit_test(test_slopes_are_those_of_the_loss),
        cmocka_unit_test(test_the_mean_of_sampled_sums_is_the_whole_sum),
        cmocka_unit_test(test_the_mean_of_sampled_slopes_nears_the_whole_ones),
        cmocka_unit_test(test_parts_have_their_own_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
