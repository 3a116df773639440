/* Tests of graphs in JSON: a graph that is written is read back, first values are drawn by seed, and errors name their
 * line. */
#include "graph/form/form.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/nn.h>
#include <plait/session.h>

static plait_status parse(const char *text, uint64_t seed, plait_graph **graph, plait_error *err) {
    plait_graph_file_opts opts;
    plait_graph_file_opts_init(&opts);
    opts.seed = seed;
    opts.values_bytes = 1 << 20;
    *err = (plait_error){ 0 };
    return plait_graph_parse("g.json", text, strlen(text), &opts, graph, err);
}

static plait_graph *must_parse(const char *text, uint64_t seed) {
    plait_graph *g = NULL;
    plait_error  err;
    if (parse(text, seed, &g, &err) != PLAIT_OK) fail_msg("%s", err.text);
    return g;
}

/* The example of docs/graph.md. */
static char *example(void) {
    const char *root = getenv("PLAIT_SOURCE_DIR");
    char       *path = pli_format("%s/docs/graph.md", root != NULL ? root : ".");
    pli_text    page = { 0 };
    assert_int_equal(pli_read_whole(path, 1 << 20, &page, NULL), PLAIT_OK);
    char *begin = strstr(page.data, "```json\n"), *end = begin != NULL ? strstr(begin + 8, "```") : NULL;
    assert_non_null(end);
    char *text = pli_format("%.*s", (int)(end - begin - 8), begin + 8);
    pli_text_free(&page);
    pli_free(path);
    return text;
}

static void score(const plait_graph *g, const float *x, float *scores) {
    plait_session   *session = NULL;
    plait_error      err;
    const plait_feed feed = { plait_graph_find(g, "x"), plait_tensor_of(PLAIT_F32, plait_shape_2(2, 4), x) };
    plait_fetch      fetch = { .value = plait_graph_find(g, "scores"),
                               .tensor = { .data = scores },
                               .bytes = 6 * sizeof *scores };
    assert_int_equal(plait_session_create(g, NULL, &session, &err), PLAIT_OK);
    if (plait_session_run(session, &feed, 1, &fetch, 1, NULL, 0, &err) != PLAIT_OK) fail_msg("%s", err.text);
    plait_session_destroy(&session);
}

static void test_the_documented_example_computes_and_comes_back(void **state) {
    (void)state;
    const float  x[8] = { 5.1f, 3.5f, 1.4f, 0.2f, 6.3f, 2.8f, 5.1f, 1.5f };
    float        a[6], b[6], c[6];
    char        *text = example();
    plait_graph *g = must_parse(text, 5), *other = must_parse(text, 6), *again = NULL;
    char         path[] = "/tmp/plait-form-XXXXXX";
    plait_error  err;
    close(mkstemp(path));
    assert_int_equal(plait_graph_save(g, path, 1, &err), PLAIT_OK);
    if (plait_graph_load(path, NULL, &again, &err) != PLAIT_OK) fail_msg("%s", err.text);
    score(g, x, a);
    score(again, x, b);
    score(other, x, c);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a); /* another seed */
    assert_int_equal(plait_graph_nodes(g), plait_graph_nodes(again));
    pli_text first = { 0 }, second = { 0 };
    assert_int_equal(pli_form_to_json(g, true, &first, &err), PLAIT_OK);
    assert_int_equal(pli_form_to_json(again, true, &second, &err), PLAIT_OK);
    assert_string_equal(first.data, second.data);
    pli_text_free(&first);
    pli_text_free(&second);
    plait_graph_destroy(&g);
    plait_graph_destroy(&other);
    plait_graph_destroy(&again);
    unlink(path);
    pli_free(text);
}

/* Every kind of attribute and literal, names of further outputs, inputs that are not output 0, nodes in any order. */
static void test_all_that_a_graph_has_is_written(void **state) {
    (void)state;
    static const char text[] =
        "{\"plait_graph\": 1, \"about\": \"n\\u00f6thing\", \"nodes\": [\n"
        "{\"name\": \"top\", \"op\": \"top_k\", \"inputs\": [\"clipped\"], \"attrs\": {\"k\": 2}},\n"
        "{\"name\": \"clipped\", \"op\": \"clip\", \"inputs\": [\"x\"], \"attrs\": {\"high\": \"inf\", \"low\": "
        "-0.1}},\n"
        "{\"name\": \"x\", \"op\": \"placeholder\", \"shape\": [null, 4]},\n"
        "{\"name\": \"half\", \"op\": \"cast\", \"inputs\": [[\"top\", 1]], \"attrs\": {\"type\": \"bf16\"}},\n"
        "{\"name\": \"said\", \"op\": \"print\", \"inputs\": [\"half\"], \"attrs\": {\"text\": \"a \\\"b\\\"\\n\"}},\n"
        "{\"name\": \"c\", \"op\": \"constant\", \"type\": \"f64\", \"shape\": [3], \"values\": [0.1, \"nan\", "
        "\"-inf\"]},\n"
        "{\"name\": \"i\", \"op\": \"constant\", \"type\": \"i64\", \"shape\": [2], \"values\": [9223372036854775807, "
        "-1]},\n"
        "{\"name\": \"t\", \"op\": \"constant\", \"type\": \"bool\", \"shape\": [], \"values\": [true]},\n"
        "{\"name\": \"v\", \"op\": \"variable\", \"type\": \"f64\", \"shape\": [2, 2], \"initial\": {\"fill\": 0.1}},\n"
        "{\"name\": \"turned\", \"op\": \"transpose\", \"inputs\": [\"v\"], \"attrs\": {\"perm\": [1, 0]}},\n"
        "{\"name\": \"bytes\", \"op\": \"constant\", \"type\": \"u8\", \"shape\": [2], \"values\": [0, 255]},\n"
        "{\"name\": \"whole\", \"op\": \"cast\", \"inputs\": [\"bytes\"], \"attrs\": {\"type\": \"f32\"}},\n"
        "{\"name\": \"one\", \"op\": \"reshape\", \"inputs\": [\"t\"], \"attrs\": {\"shape\": []}}],\n"
        "\"outputs\": {\"where\": [\"top\", 1], \"best\": \"top\"},\n"
        "\"subgraphs\": {\"a\": [\"where\", \"v\"], \"b b\": [\"x\"]},\n"
        "\"place\": {\"nodes\": {\"clipped\": \"rank:3\", \"turned\": \"rank:0/cpu:0\"}, \"memory\": {\"rank:2\": "
        "77},\n"
        "  \"forbid\": [[\"v\", \"rank:1\"]], \"apart\": [[\"top\", \"v\", \"c\"]], \"together\": [[\"x\", \"where\", "
        "\"half\"]]}}";
    plait_graph *g = must_parse(text, 0), *again = NULL;
    pli_text     first = { 0 }, second = { 0 };
    plait_error  err;
    assert_int_equal(plait_graph_describe(g, plait_graph_find(g, "where")).type, PLAIT_I64);
    assert_int_equal(plait_graph_find(g, "best"), plait_graph_find(g, "top"));
    assert_true(*(const double *)plait_graph_variable_initial(g, 0).data == 0.1);
    assert_int_equal(pli_form_to_json(g, true, &first, &err), PLAIT_OK);
    again = must_parse(first.data, 0);
    assert_int_equal(pli_form_to_json(again, true, &second, &err), PLAIT_OK);
    assert_string_equal(first.data, second.data);
    static const char *const parts[] = { "\"text\": \"a \\\"b\\\"\\u000a\"",
                                         "[0.1, \"nan\", \"-inf\"]",
                                         "9223372036854775807",
                                         "\"values\": [true]",
                                         "\"type\": \"bf16\"",
                                         "\"perm\": [1, 0]",
                                         "\"values\": [0, 255]",
                                         "\"type\": \"f32\"}", /* required, so written even if 0 or empty */
                                         "\"shape\": []}",
                                         "[null, 4]",
                                         "\"subgraphs\": {\"a\": [\"top\", \"v\"], \"b b\": [\"x\"]}",
                                         "\"place\": {\"nodes\": {\"clipped\": \"rank:3/cpu:0\", \"turned\": "
                                         "\"rank:0/cpu:0\"}, \"together\": [[\"x\", \"top\"], [\"top\", \"half\"]]",
                                         "\"apart\": [[\"top\", \"v\"], [\"top\", \"c\"], [\"v\", \"c\"]], \"forbid\": "
                                         "[[\"v\", \"rank:1\"]], \"memory\": {\"rank:2\": 77}}" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(first.data, parts[i]) == NULL) fail_msg("no %s in %s", parts[i], first.data);
    assert_null(strstr(first.data, "\"high\"")); /* it has its preset */
    pli_text_free(&first);
    pli_text_free(&second);
    plait_graph_destroy(&g);
    plait_graph_destroy(&again);
}

/* A place that is wrong is refused, and leaves the graph as it was. */
static void test_wrong_places(void **state) {
    (void)state;
    static const struct {
        const char  *place, *part;
        plait_status code;
    } wrong[] = {
        { "[]", "place: it is to be an object", PLAIT_EFORMAT },
        { "{\"node\": {}}", "did you mean 'nodes'", PLAIT_ENAME },
        { "{\"nodes\": []}", "an object of places", PLAIT_EFORMAT },
        { "{\"nodes\": {\"x\": \"rank:1\", \"yy\": \"rank:1\"}}", "unknown node 'yy'; did you mean 'y'", PLAIT_ENAME },
        { "{\"nodes\": {\"x\": \"rank:1\", \"y\": \"rank:1/gpu:0\"}}", "no device 'gpu:0'", PLAIT_ENAME },
        { "{\"nodes\": {\"x\": 1}}", "a place is to be a text", PLAIT_EFORMAT },
        { "{\"together\": {}}", "array of lists", PLAIT_EFORMAT },
        { "{\"together\": [[\"x\", \"y\"], [\"x\"]]}", "together, list 2: expected lists of two", PLAIT_EFORMAT },
        { "{\"apart\": [[\"x\", 3]]}", "apart, list 1: a node's name", PLAIT_EFORMAT },
        { "{\"forbid\": [[\"x\", \"0\"]]}", "forbid, list 1: place '0'", PLAIT_EINVAL },
        { "{\"forbid\": [\"x\"]}", "a node and a rank", PLAIT_EFORMAT },
        { "{\"memory\": {\"rank:0\": 0}}", "above 0", PLAIT_EFORMAT },
        { "{\"memory\": {\"rank:4096\": 1}}", "at most 4096 ranks", PLAIT_EINVAL },
        { "{\"memory\": [1]}", "is to be an object", PLAIT_EFORMAT },
    };
    static const char net[] =
        "{\"plait_graph\": 1, \"nodes\": [{\"name\": \"x\", \"op\": \"placeholder\", \"shape\": [2]},"
        "{\"name\": \"y\", \"op\": \"relu\", \"inputs\": [\"x\"]}]%s%s}";
    char        *plain = pli_format(net, "", "");
    plait_graph *g = must_parse(plain, 0);
    pli_text     before = { 0 }, after = { 0 };
    plait_error  err;
    assert_int_equal(pli_form_to_json(g, true, &before, &err), PLAIT_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        plait_graph *none = NULL;
        char        *text = pli_format(net, ", \"place\": ", wrong[i].place);
        assert_int_equal(parse(text, 0, &none, &err), wrong[i].code);
        if (strstr(err.text, wrong[i].part) == NULL) fail_msg("'%s' does not say '%s'", err.text, wrong[i].part);
        assert_null(none);
        assert_int_equal(pli_form_place_text(g, "p", wrong[i].place, strlen(wrong[i].place), &err), wrong[i].code);
        assert_memory_equal(err.text, "p: place", 8);
        pli_free(text);
    }
    assert_int_equal(pli_form_place_text(g, "p", plain, strlen(plain), &err), PLAIT_EFORMAT); /* without a place */
    assert_int_equal(pli_form_to_json(g, true, &after, &err), PLAIT_OK);
    assert_string_equal(before.data, after.data);
    pli_text_free(&before);
    pli_text_free(&after);
    pli_free(plain);
    plait_graph_destroy(&g);
}

static void test_first_values_follow_their_rule(void **state) {
    (void)state;
    plait_graph *g =
        must_parse("{\"plait_graph\": 1, \"nodes\": [\n"
                   "{\"name\": \"a\", \"op\": \"variable\", \"shape\": [300, 100], \"initial\": \"he\"},\n"
                   "{\"name\": \"b\", \"op\": \"variable\", \"shape\": [64, 16, 3, 3], \"initial\": \"glorot\"},\n"
                   "{\"name\": \"c\", \"op\": \"variable\", \"shape\": [100], \"initial\": {\"normal\": 2}},\n"
                   "{\"name\": \"d\", \"op\": \"variable\", \"shape\": [1000000000, 1000000000]}]}",
                   3);
    const double want[] = { 2.0 / 300, 1.0 / 144, 4 };
    for (int32_t k = 0; k < 3; k++) {
        const plait_tensor t = plait_graph_variable_initial(g, k);
        const int64_t      n = plait_shape_elements(&t.shape);
        double             square = 0;
        for (int64_t i = 0; i < n; i++)
            square += (double)((const float *)t.data)[i] * (double)((const float *)t.data)[i];
        assert_true(fabs(square / (double)n / want[k] - 1) < (n < 1000 ? 0.5 : 0.05));
    }
    assert_null(plait_graph_variable_initial(g, 3).data); /* zeros take no memory */
    plait_graph_destroy(&g);
}

#define HEAD "{\"plait_graph\": 1,\n\"nodes\": [\n"
#define X    "{\"name\": \"x\", \"op\": \"placeholder\", \"shape\": [null, 4]},\n"

static void test_what_is_wrong_is_told_with_its_line(void **state) {
    (void)state;
    static const struct {
        const char  *text, *part[2];
        plait_status code;
    } wrong[] = {
        { "", { "empty" }, PLAIT_EFORMAT },
        { "{\"plait_graph\": 1,\n\"nodes\": [,]}", { "g.json:2:" }, PLAIT_EFORMAT },
        { "{\"a\": 1}", { "no graph" }, PLAIT_EFORMAT },
        { "{\"plait_graph\": 2, \"nodes\": []}", { "version 2" }, PLAIT_EVERSION },
        { "{\"plait_graph\": 1, \"node\": []}", { "'node'", "'nodes'" }, PLAIT_ENAME },
        { HEAD X "{\"name\": \"y\", \"op\": \"mat_mul\", \"inputs\": [\"x\"]}]}",
          { "g.json:4: node 'y'", "'matmul'" },
          PLAIT_ENAME },
        { HEAD X "{\"name\": \"y\", \"op\": \"relu\", \"inputs\": [\"xx\"]}]}",
          { "g.json:4: node 'y'", "'x'" },
          PLAIT_ENAME },
        { HEAD X "{\"name\": \"x\", \"op\": \"relu\", \"inputs\": [\"x\"]}]}",
          { "g.json:4: node 1", "'x'; the first is in line 3" },
          PLAIT_EFORMAT },
        { HEAD X "{\"name\": \"y\", \"op\": \"relu\", \"inputs\": [[\"x\", 1]]}]}",
          { "g.json:4:", "no output 1" },
          PLAIT_EFORMAT },
        { HEAD X "{\"name\": \"y\", \"op\": \"relu\", \"inputs\": \"x\"}]}",
          { "g.json:4:", "array of names" },
          PLAIT_EFORMAT },
        { HEAD X "{\"name\": \"y\", \"op\": \"relu\", \"inputs\": [\"x\"], \"attr\": {}}]}",
          { "g.json:4:", "'attrs'" },
          PLAIT_ENAME },
        { HEAD X "{\"name\": \"y\", \"op\": \"softmax\", \"inputs\": [\"x\"], \"attrs\": {\"axes\": 1}}]}",
          { "g.json:4:", "'axis'" },
          PLAIT_ENAME },
        { HEAD X "{\"name\": \"y\", \"op\": \"softmax\", \"inputs\": [\"x\"], \"attrs\": {\"axis\": 1.5}}]}",
          { "g.json:4:", "integer" },
          PLAIT_EFORMAT },
        { HEAD X "{\"name\": \"y\", \"op\": \"reshape\", \"inputs\": [\"x\"], \"attrs\": {\"shape\": [\"a\"]}}]}",
          { "g.json:4:", "array of integers" },
          PLAIT_EFORMAT },
        { HEAD X "{\"name\": \"y\", \"op\": \"cast\", \"inputs\": [\"x\"], \"attrs\": {\"type\": \"f23\"}}]}",
          { "g.json:4:", "'f32'" },
          PLAIT_ENAME },
        { HEAD "{\"op\": \"relu\"}]}", { "g.json:3: node 0", "\"name\"" }, PLAIT_EFORMAT },
        { HEAD "{\"name\": \"y\"}]}", { "g.json:3: node 'y'", "\"op\"" }, PLAIT_EFORMAT },
        { HEAD "7]}", { "g.json:3: node 0", "object" }, PLAIT_EFORMAT },
        { HEAD "{\"name\": \"a\", \"op\": \"relu\", \"inputs\": [\"b\"]},\n{\"name\": \"b\", \"op\": \"relu\", "
               "\"inputs\": [\"a\"]}]}",
          { "g.json:3:", "'a' needs 'b' needs 'a'" },
          PLAIT_EFORMAT },
        { HEAD X "{\"name\": \"w\", \"op\": \"variable\", \"shape\": [5, 2]},\n{\"name\": \"y\", \"op\": \"matmul\", "
                 "\"inputs\": [\"x\", \"w\"]}]}",
          { "g.json:5: node 'y'", "placeholder 'x' f32[?, 4], variable 'w' f32[5, 2]" },
          PLAIT_ESHAPE },
        { HEAD "{\"name\": \"w\", \"op\": \"variable\", \"shape\": [4000000000, 4000000000], \"initial\": \"he\"}]}",
          { "g.json:3:", "larger" },
          PLAIT_ESHAPE },
        { HEAD "{\"name\": \"w\", \"op\": \"variable\", \"shape\": [40000, 4000], \"initial\": \"he\"}]}",
          { "g.json:3:", "left for values" },
          PLAIT_ENOMEM },
        { HEAD "{\"name\": \"w\", \"op\": \"variable\", \"shape\": [2, null]}]}",
          { "g.json:3:", "integers from 0" },
          PLAIT_EFORMAT },
        { HEAD "{\"name\": \"w\", \"op\": \"variable\", \"shape\": [2], \"initial\": \"ha\"}]}",
          { "g.json:3:", "'he'" },
          PLAIT_ENAME },
        { HEAD "{\"name\": \"w\", \"op\": \"variable\", \"shape\": [2], \"initial\": {\"uniform\": -1}}]}",
          { "g.json:3:", "from 0" },
          PLAIT_EFORMAT },
        { HEAD "{\"name\": \"w\", \"op\": \"variable\", \"type\": \"i32\", \"shape\": [2], \"initial\": \"he\"}]}",
          { "g.json:3:", "not drawn" },
          PLAIT_EFORMAT },
        { HEAD "{\"name\": \"c\", \"op\": \"constant\", \"shape\": [2], \"values\": [1]}]}",
          { "g.json:3:", "1 values for f32[2]" },
          PLAIT_ESHAPE },
        { HEAD "{\"name\": \"c\", \"op\": \"constant\", \"type\": \"i32\", \"shape\": [1], \"values\": [3000000000]}]}",
          { "g.json:3:", "none of type i32" },
          PLAIT_EFORMAT },
        { HEAD X "{\"name\": \"y\", \"op\": \"relu\", \"inputs\": [\"x\"]}],\n\"outputs\": {\"z\": \"yy\"}}",
          { "output 'z'", "'y'" },
          PLAIT_ENAME },
        { HEAD X "{\"name\": \"y\", \"op\": \"relu\", \"inputs\": [\"x\"]}],\n\"outputs\": {\"x\": \"y\"}}",
          { "output 'x'", "two values named" },
          PLAIT_EINVAL },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        plait_graph *g = NULL;
        plait_error  err;
        plait_status status = parse(wrong[i].text, 0, &g, &err);
        bool         told = status == wrong[i].code && g == NULL;
        for (int k = 0; k < 2 && wrong[i].part[k] != NULL; k++)
            told = told && strstr(err.text, wrong[i].part[k]) != NULL;
        if (!told) fail_msg("%s\nanswered %d: %s", wrong[i].text, (int)status, err.text);
        assert_int_equal(err.code, status);
    }
}

static void test_every_failed_allocation_is_survived(void **state) {
    (void)state;
    char   *text = example();
    int64_t before = pli_alloc_live();
    for (int64_t k = 0;; k++) {
        plait_graph *g = NULL;
        plait_error  err;
        pli_alloc_fail_after(k);
        plait_status status = parse(text, 1, &g, &err);
        pli_alloc_fail_after(-1);
        plait_graph_destroy(&g);
        assert_int_equal(pli_alloc_live(), before);
        if (status == PLAIT_OK) break;
        assert_int_equal(status, PLAIT_ENOMEM);
    }
    pli_free(text);
}

/* A host program may run under a locale with a decimal comma, which JSON does not allow. */
static void test_a_comma_of_the_host_stays_out(void **state) {
    (void)state;
    static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE" };
    const plait_tensor       single = plait_tensor_of(PLAIT_F32, plait_shape_2(1, 2), (float[]){ 0.1f, -2.5f });
    const plait_tensor       doubles = plait_tensor_of(PLAIT_F64, plait_shape_1(2), (double[]){ 0.1, 1e-300 });
    locale_t                 locale = (locale_t)0, before = (locale_t)0;
    pli_text                 text = { 0 };
    for (size_t i = 0; locale == (locale_t)0 && i < sizeof commas / sizeof *commas; i++)
        locale = newlocale(LC_ALL_MASK, commas[i], (locale_t)0);
    if (locale != (locale_t)0) before = uselocale(locale); /* without such a locale, the test runs under the host's */
    pli_form_add_values(&text, NULL, &single);
    pli_text_add(&text, "\n");
    pli_form_add_values(&text, NULL, &doubles);
    if (locale != (locale_t)0) {
        uselocale(before);
        freelocale(locale);
    }
    assert_string_equal(text.data, "[0.10000000149011612, -2.5]\n[0.1, 1e-300]");
    pli_text_free(&text);
}

static void test_options_are_looked_at(void **state) {
    (void)state;
    static const char     text[] = "{\"plait_graph\": 1, \"nodes\": [{\"name\": \"v\", \"op\": \"variable\", "
                                   "\"shape\": [64], \"initial\": \"he\"}]}";
    plait_graph_file_opts opts = { .values_bytes = 256 };
    plait_graph          *g = NULL;
    plait_error           err;
    assert_int_equal(plait_graph_parse("g", text, strlen(text), &opts, &g, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "plait_graph_file_opts_init"));
    plait_graph_file_opts_init(&opts);
    opts.values_bytes = 255;
    assert_int_equal(plait_graph_parse("g", text, strlen(text), &opts, &g, &err), PLAIT_ENOMEM);
    opts.values_bytes = 256;
    assert_int_equal(plait_graph_parse("g", text, strlen(text), &opts, &g, &err), PLAIT_OK);
    plait_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_documented_example_computes_and_comes_back),
        cmocka_unit_test(test_all_that_a_graph_has_is_written),
        cmocka_unit_test(test_wrong_places),
        cmocka_unit_test(test_first_values_follow_their_rule),
        cmocka_unit_test(test_what_is_wrong_is_told_with_its_line),
        cmocka_unit_test(test_a_comma_of_the_host_stays_out),
        cmocka_unit_test(test_options_are_looked_at),
        cmocka_unit_test(test_every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
