/* Options: every kind of value from every place, which place overrules which, refusals with the nearest name, help,
 * and the n-th allocation that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "base/os.h"

struct target {
    int64_t       guard; /* belongs to no row, so it must not change */
    bool          json;
    int64_t       epochs;
    double        l2;
    const char   *optimizer, *out, *layers, *config;
    pli_text_list data;
    uint64_t      timeout;
};

static const pli_opt rows[] = {
    { "data", PLI_OPT_LIST, offsetof(struct target, data), NULL, "FILE", "files to read", 0, 0, "data" },
    { "epochs", PLI_OPT_I64, offsetof(struct target, epochs), "10", "N", "passes over the data", 1, 1000, "model" },
    { "l2", PLI_OPT_F64, offsetof(struct target, l2), NULL, "X", "penalty", 0, INFINITY, "model" },
    { "optimizer", PLI_OPT_CHOICE, offsetof(struct target, optimizer), "sgd", "sgd|adam|ftrl", "update rule", 0, 0,
      "model" },
    { "layers", PLI_OPT_TEXT, offsetof(struct target, layers), NULL, "N,...", "hidden widths", 0, 0, "model" },
    { "json", PLI_OPT_FLAG, offsetof(struct target, json), NULL, NULL, "one object as the last line", 0, 0, "run" },
    { "out", PLI_OPT_TEXT, offsetof(struct target, out), NULL, "FILE", "where the model goes", 0, 0, "run" },
    { "timeout", PLI_OPT_DURATION, offsetof(struct target, timeout), "30s", "S", "give up after", 0, 0, "run" },
    { "config", PLI_OPT_TEXT, offsetof(struct target, config), NULL, "FILE", "options from a file", 0, 0, "run" },
    { "gpu-tax", PLI_OPT_LATER, 0, NULL, NULL, "not there yet", 0, 0, "run" },
    { 0 },
};

struct result {
    struct target target;
    pli_text_list rest;
    bool          help;
    pli_opts     *opts;
    plait_status  status;
    plait_error   err;
};

enum { WORDS = 24 };

/* Reads words up to the first NULL. */
static void read_words(struct result *result, const char *const words[WORDS]) {
    char *argv[WORDS] = { NULL };
    int   argc = 0;
    for (; words[argc] != NULL; argc++) argv[argc] = (char *)(uintptr_t)words[argc];
    *result = (struct result){ .target.guard = 4711 };
    result->status =
        pli_opts_read(rows, argc, argv, &result->target, &result->rest, &result->help, &result->opts, &result->err);
    assert_int_equal(result->target.guard, 4711);
}

#define READ(result, ...) read_words(result, (const char *const[WORDS]){ __VA_ARGS__ })

static void refused(plait_status code, const char *text, const char *const words[WORDS]) {
    struct result r;
    read_words(&r, words);
    assert_string_equal(r.err.text, text);
    assert_int_equal(r.status, code);
    assert_null(r.opts);
    assert_true(r.target.out == NULL && r.target.optimizer == NULL && r.target.data.item == NULL && r.rest.n == 0);
}

#define REFUSED(code, text, ...) refused(code, text, (const char *const[WORDS]){ __VA_ARGS__ })

static void config_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_defaults(void **state) {
    (void)state;
    struct result r;
    READ(&r, NULL);
    assert_int_equal(r.status, PLAIT_OK);
    assert_true(!r.help && !r.target.json && r.target.epochs == 10 && r.target.l2 == 0);
    assert_string_equal(r.target.optimizer, "sgd");
    assert_true(r.target.out == NULL && r.target.data.n == 0 && r.target.timeout == UINT64_C(30000000000));
    assert_int_equal(pli_opts_origin(r.opts, "epochs", NULL), PLI_FROM_DEFAULT);
    pli_opts_free(&r.opts);
    pli_opts_free(&r.opts);
}

static void test_flags_in_any_order(void **state) {
    (void)state;
    struct result r;
    const char   *place;
    READ(&r, "first", "--epochs", "3", "--data=a", "--json", "--l2", "-0", "-", "--data", "b=c", "--optimizer=adam",
         "--", "--out");
    assert_int_equal(r.status, PLAIT_OK);
    assert_true(r.target.epochs == 3 && r.target.json && r.target.out == NULL);
    assert_string_equal(r.target.optimizer, "adam");
    assert_int_equal(r.target.data.n, 2);
    assert_string_equal(r.target.data.item[0], "a");
    assert_string_equal(r.target.data.item[1], "b=c");
    assert_int_equal(r.rest.n, 3);
    assert_string_equal(r.rest.item[0], "first");
    assert_string_equal(r.rest.item[1], "-");
    assert_string_equal(r.rest.item[2], "--out");
    assert_int_equal(pli_opts_origin(r.opts, "epochs", &place), PLI_FROM_FLAG);
    assert_string_equal(place, "flag");
    pli_opts_free(&r.opts);
    READ(&r, "--json=false", "--epochs=1", "--epochs=2"); /* the last wins */
    assert_true(!r.target.json && r.target.epochs == 2);
    pli_opts_free(&r.opts);
}

static void test_flag_over_variable_over_file_over_default(void **state) {
    (void)state;
    struct result r;
    const char   *place;
    config_file("opts_test.yaml", "# a run\nepochs: 2\nout: from-file\ndata: [x, 'y z']\nlayers: [512, 256]\nl2: ~\n");
    setenv("PLAIT_EPOCHS", "3", 1);
    setenv("PLAIT_DATA", "v1\nv2", 1);
    setenv("PLAIT_OUT", "", 1); /* empty counts as unset */
    setenv("PLAIT_TIMEOUT", "1.5h", 1);
    READ(&r, "--config", "opts_test.yaml", "--epochs", "4");
    assert_int_equal(r.status, PLAIT_OK);
    assert_int_equal(r.target.epochs, 4);
    assert_string_equal(r.target.out, "from-file");
    assert_string_equal(r.target.layers, "512,256");
    assert_int_equal(r.target.data.n, 2); /* the variable replaces the file's list */
    assert_string_equal(r.target.data.item[1], "v2");
    assert_int_equal(r.target.timeout, UINT64_C(5400000000000));
    assert_int_equal(pli_opts_origin(r.opts, "out", &place), PLI_FROM_FILE);
    assert_string_equal(place, "opts_test.yaml:3");
    assert_int_equal(pli_opts_origin(r.opts, "data", &place), PLI_FROM_VARIABLE);
    assert_string_equal(place, "PLAIT_DATA");
    assert_int_equal(pli_opts_origin(r.opts, "l2", &place), PLI_FROM_DEFAULT);
    pli_opts_free(&r.opts);
    setenv("PLAIT_CONFIG", "opts_test.yaml", 1); /* the file's name may itself come from a variable */
    unsetenv("PLAIT_EPOCHS");
    unsetenv("PLAIT_DATA");
    READ(&r, NULL);
    assert_true(r.target.epochs == 2 && r.target.data.n == 2);
    assert_string_equal(r.target.data.item[1], "y z");
    pli_opts_free(&r.opts);
    unsetenv("PLAIT_CONFIG");
    unsetenv("PLAIT_TIMEOUT");
    unsetenv("PLAIT_OUT");
    unlink("opts_test.yaml");
}

static void test_refusals(void **state) {
    (void)state;
    REFUSED(PLAIT_ENAME, "unknown option --epoch; did you mean --epochs?", "--epoch=3");
    REFUSED(PLAIT_ENAME, "unknown option --zzzzzzzz", "--json", "--zzzzzzzz", "3");
    REFUSED(PLAIT_ENAME, "unknown option -e", "-e");
    REFUSED(PLAIT_ENAME, "unknown option -json; did you mean --json?", "-json");
    REFUSED(PLAIT_EINVAL, "--epochs wants a value: --epochs N", "--epochs");
    REFUSED(PLAIT_EINVAL, "--epochs wants a value: --epochs N", "--epochs", "--json");
    REFUSED(PLAIT_EINVAL, "--out is empty: expected FILE, or leave it out", "--out", "");
    REFUSED(PLAIT_EINVAL, "--data is empty: expected FILE, or leave it out", "--data=");
    REFUSED(PLAIT_EINVAL, "--epochs wants a whole number from 1 to 1000, not '1.5'", "--epochs", "1.5");
    REFUSED(PLAIT_EINVAL, "--epochs wants a whole number from 1 to 1000, not '0'", "--epochs=0");
    REFUSED(PLAIT_EINVAL, "--l2 wants a number of at least 0, not '-1'", "--l2", "-1");
    REFUSED(PLAIT_EINVAL, "--l2 wants a number of at least 0, not 'nan'", "--l2", "nan");
    REFUSED(PLAIT_EINVAL, "--json wants true or false, not 'x'", "--json=x");
    REFUSED(PLAIT_EINVAL, "--optimizer wants one of sgd|adam|ftrl, not 'adan'; did you mean adam?", "--optimizer",
            "adan");
    REFUSED(PLAIT_EINVAL, "--optimizer wants one of sgd|adam|ftrl, not ''", "--optimizer=");
    REFUSED(PLAIT_EINVAL, "--timeout wants a time, such as 500ms, 30s, 2m or 1.5h, not '3 s'", "--timeout", "3 s");
    REFUSED(PLAIT_EREFUSED, "--gpu-tax: not there yet", "--gpu-tax");
    REFUSED(PLAIT_EIO, "none.yaml: No such file or directory", "--config", "none.yaml");
    setenv("PLAIT_EPOCHS", "many", 1);
    REFUSED(PLAIT_EINVAL, "PLAIT_EPOCHS wants a whole number from 1 to 1000, not 'many'", NULL);
    unsetenv("PLAIT_EPOCHS");
}

static void test_files_that_are_refused(void **state) {
    (void)state;
    static const struct {
        plait_status code;
        const char  *text, *why;
    } bad[] = {
        { PLAIT_ENAME, "json: true\nepoch: 3\n", "c.yaml:2: unknown option 'epoch'; did you mean epochs?" },
        { PLAIT_EINVAL, "\nepochs: x\n", "c.yaml:2: epochs wants a whole number from 1 to 1000, not 'x'" },
        { PLAIT_EREFUSED, "gpu-tax: 1", "c.yaml:1: gpu-tax: not there yet" },
        { PLAIT_EFORMAT, "epochs: 1\nepochs: 2\n", "c.yaml:2: an option given twice" },
        { PLAIT_EFORMAT, "out: { a: b }", "c.yaml:1: a value is wanted here, or a list of values" },
        { PLAIT_EFORMAT, "data: [a, [b]]", "c.yaml:1: a value is wanted here, or a list of values" },
        { PLAIT_EFORMAT, "out: &x a\ndata: [*x]", "c.yaml:2: a value is wanted here, or a list of values" },
        { PLAIT_EFORMAT, "- a\n", "c.yaml:1: lines of `option: value` are wanted" },
        { PLAIT_EFORMAT, "just words", "c.yaml:1: lines of `option: value` are wanted" },
        { PLAIT_EFORMAT, "json: true\n---\njson: false\n", "c.yaml:2: a second document" },
        { PLAIT_EFORMAT, "out: \"a\\0b\"", "c.yaml:1: a NUL byte in a text" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        config_file("c.yaml", bad[i].text);
        REFUSED(bad[i].code, bad[i].why, "--config", "c.yaml");
    }
    struct result r;
    config_file("c.yaml", "out: [a\n\n");
    READ(&r, "--config", "c.yaml");
    assert_int_equal(r.status, PLAIT_EFORMAT);
    assert_memory_equal(r.err.text, "c.yaml:", 7);
    static const char *const empty[] = { "", "# nothing\n", "---\n", "{}", "~" };
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        config_file("c.yaml", empty[i]);
        READ(&r, "--config", "c.yaml");
        assert_int_equal(r.status, PLAIT_OK);
        pli_opts_free(&r.opts);
    }
    unlink("c.yaml");
}

static void test_bytes(void **state) {
    static const struct {
        const char *text, *back;
        int64_t     bytes; /* -1: refused */
    } cases[] = { { "0", "0", 0 },
                  { "1000", "1000", 1000 },
                  { "64K", "64K", 65536 },
                  { "4G", "4G", INT64_C(4) << 30 },
                  { "2048", "2K", 2048 },
                  { "7T", "7T", INT64_C(7) << 40 },
                  { "5X", NULL, -1 },
                  { "K", NULL, -1 },
                  { "-1", NULL, -1 },
                  { "1.5G", NULL, -1 },
                  { "4GB", NULL, -1 },
                  { "", NULL, -1 },
                  { "9223372036854775807K", NULL, -1 } };
    static const pli_opt row[] = { { "limit", PLI_OPT_BYTES, 0, NULL, "BYTES", "most", 0, 0, "run" }, { 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char        word[64], *argv[] = { word };
        int64_t     bytes = -7;
        bool        help = false;
        pli_opts   *opts = NULL;
        plait_error err;
        pli_text    back = { 0 };
        snprintf(word, sizeof word, "--limit=%s", cases[i].text);
        plait_status status = pli_opts_read(row, 1, argv, &bytes, NULL, &help, &opts, &err);
        assert_int_equal(status, cases[i].bytes >= 0 ? PLAIT_OK : PLAIT_EINVAL);
        if (status == PLAIT_OK) {
            assert_int_equal(bytes, cases[i].bytes);
            pli_opts_value(row, &bytes, &back);
            assert_string_equal(back.data, cases[i].back);
        }
        pli_text_free(&back);
        pli_opts_free(&opts);
    }
}

static void sizes_and_times_have_bounds(void **state) {
    static const struct {
        const char *word, *said;
    } cases[] = { { "--limit=2K", NULL },
                  { "--limit=1K", NULL },
                  { "--limit=0", "a number of bytes from 1024 to 4096" },
                  { "--limit=5K", "a number of bytes from 1024 to 4096" },
                  { "--wait=2m", NULL },
                  { "--wait=500ms", "a time in seconds from 1 to 600" },
                  { "--wait=11m", "a time in seconds from 1 to 600" } };
    static const pli_opt bounded[] = { { "limit", PLI_OPT_BYTES, 0, NULL, "BYTES", "most", 1024, 4096, "run" },
                                       { "wait", PLI_OPT_DURATION, 8, NULL, "TIME", "longest", 1, 600, "run" },
                                       { 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char        word[64], *argv[] = { word };
        int64_t     values[2] = { 0 };
        bool        help = false;
        pli_opts   *opts = NULL;
        plait_error err;
        snprintf(word, sizeof word, "%s", cases[i].word);
        const plait_status status = pli_opts_read(bounded, 1, argv, values, NULL, &help, &opts, &err);
        assert_int_equal(status, cases[i].said == NULL ? PLAIT_OK : PLAIT_EINVAL);
        if (status < 0) assert_non_null(strstr(err.text, cases[i].said));
        pli_opts_free(&opts);
    }
}

static void test_durations(void **state) {
    (void)state;
    static const struct {
        const char *text, *back;
        uint64_t    ns;
    } known[] = { { "1", "1s", 1000000000 },
                  { "0.5", "500ms", 500000000 },
                  { "30s", "30s", 30000000000 },
                  { "500ms", "500ms", 500000000 },
                  { "2m", "120s", 120000000000 },
                  { "1.5us", "1500ns", 1500 },
                  { "0", "0s", 0 },
                  { "1e3s", "1000s", 1000000000000 } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct result r;
        pli_text      text = { .data = NULL };
        READ(&r, "--timeout", known[i].text);
        assert_int_equal(r.target.timeout, known[i].ns);
        pli_opts_value(&rows[7], &r.target, &text);
        assert_string_equal(text.data, known[i].back);
        pli_text_free(&text);
        pli_opts_free(&r.opts);
    }
    struct result            r;
    static const char *const bad[] = { "", "s", "-1s", "1 s", "1x", "1e30s", "1s1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        READ(&r, "--timeout", bad[i]);
        assert_int_equal(r.status, PLAIT_EINVAL);
    }
}

/* pli_opts_value writes a configuration file that gives the same values when read. */
static void test_values_there_and_back(void **state) {
    (void)state;
    struct result a, b;
    pli_text      text = { .data = NULL };
    READ(&a, "--out", "a \"b\"\\\n\t#: -", "--layers=- x", "--l2", "0.1", "--json", "--data", "null", "--data", "x,y",
         "--data", "[z]", "--data", "caf\xc3\xa9", "--timeout", "7ms");
    assert_int_equal(a.status, PLAIT_OK);
    for (const pli_opt *row = rows; row->name != NULL; row++) {
        if (row->kind == PLI_OPT_LATER) continue;
        pli_text_add(&text, "%s: ", row->name);
        pli_opts_value(row, &a.target, &text);
        pli_text_add(&text, "\n");
    }
    config_file("back.yaml", text.data);
    READ(&b, "--config", "back.yaml");
    assert_int_equal(b.status, PLAIT_OK);
    assert_string_equal(b.target.out, a.target.out);
    assert_string_equal(b.target.layers, "- x");
    assert_true(b.target.l2 == 0.1 && b.target.json && b.target.timeout == 7000000);
    assert_int_equal(b.target.data.n, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(b.target.data.item[i], a.target.data.item[i]);
    pli_text_free(&text);
    pli_opts_free(&a.opts);
    pli_opts_free(&b.opts);
    unlink("back.yaml");
}

static void test_help(void **state) {
    (void)state;
    struct result r;
    pli_text      text = { .data = NULL };
    READ(&r, "--nonsense", "-h"); /* a user who asks for help is not told of errors */
    assert_true(r.status == PLAIT_OK && r.help && r.target.epochs == 10);
    pli_opts_free(&r.opts);
    READ(&r, "--", "-h");
    assert_true(r.status == PLAIT_OK && !r.help);
    pli_opts_free(&r.opts);
    pli_opts_help(rows, 44, &text);
    assert_string_equal(text.data, "data:\n"
                                   "  --data FILE               files to read\n"
                                   "\n"
                                   "model:\n"
                                   "  --epochs N                passes over the\n"
                                   "                            data (default:\n"
                                   "                            10)\n"
                                   "  --l2 X                    penalty\n"
                                   "  --optimizer sgd|adam|ftrl\n"
                                   "                            update rule\n"
                                   "                            (default: sgd)\n"
                                   "  --layers N,...            hidden widths\n"
                                   "\n"
                                   "run:\n"
                                   "  --json                    one object as\n"
                                   "                            the last line\n"
                                   "  --out FILE                where the model\n"
                                   "                            goes\n"
                                   "  --timeout S               give up after\n"
                                   "                            (default: 30s)\n"
                                   "  --config FILE             options from a\n"
                                   "                            file\n");
    pli_text_free(&text);
}

static void test_positionals_where_none_are_wanted(void **state) {
    (void)state;
    struct target target;
    pli_opts     *opts = NULL;
    plait_error   err;
    char          word[] = "stray", *argv[] = { word };
    assert_int_equal(pli_opts_read(rows, 1, argv, &target, NULL, NULL, &opts, &err), PLAIT_EINVAL);
    assert_string_equal(err.text, "'stray' is not wanted here");
    assert_int_equal(pli_opts_read(rows, 0, argv, &target, NULL, NULL, &opts, &err), PLAIT_OK);
    pli_opts_free(&opts);
}

static void test_long_lists(void **state) {
    (void)state;
    enum { N = 3000 };
    struct target target;
    pli_opts     *opts = NULL;
    char          text[N][16], *argv[N];
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "--data=%d", i);
        argv[i] = text[i];
    }
    assert_int_equal(pli_opts_read(rows, N, argv, &target, NULL, NULL, &opts, NULL), PLAIT_OK);
    assert_int_equal(target.data.n, N);
    for (int i = 0; i < N; i++) assert_int_equal(atoi(target.data.item[i]), i);
    pli_opts_free(&opts);
}

static void test_out_of_memory(void **state) {
    (void)state;
    int64_t       before = pli_alloc_live();
    struct result r;
    config_file("mem.yaml", "data: [a, b, c]\nlayers: [1, 2]\nout: x\n");
    setenv("PLAIT_OUT", "y", 1);
    for (int64_t k = 0;; k++) {
        pli_alloc_fail_after(k);
        READ(&r, "--config", "mem.yaml", "--optimizer", "adam", "rest");
        pli_alloc_fail_after(-1);
        if (r.status == PLAIT_OK) break;
        assert_int_equal(r.status, PLAIT_ENOMEM);
        assert_int_equal(pli_alloc_live(), before);
    }
    pli_opts_free(&r.opts);
    for (int64_t k = 0;; k++) { /* naming the nearest option takes memory as well */
        pli_alloc_fail_after(k);
        READ(&r, "--epoch", "3");
        pli_alloc_fail_after(-1);
        assert_int_equal(pli_alloc_live(), before);
        if (r.status == PLAIT_ENAME) break;
        assert_int_equal(r.status, PLAIT_ENOMEM);
    }
    unsetenv("PLAIT_OUT");
    unlink("mem.yaml");
}

static void test_variables_that_nobody_knows(void **state) {
    (void)state;
    static const pli_opt     more[] = { { "proba", PLI_OPT_FLAG, 0, NULL, NULL, "", 0, 0, NULL }, { 0 } };
    const pli_opt *const     tables[] = { rows, more };
    static const char *const others[] = { "PLAIT_TREE", "PLAIT_HOST_*" };
    static const struct {
        const char *name, *value, *text; /* text of the refusal; NULL: known */
    } cases[] = {
        { "PLAIT_EPOCHS", "3", NULL },
        { "PLAIT_PROBA", "1", NULL },
        { "PLAIT_GPU_TAX", "1", NULL }, /* the command that has this option refuses it */
        { "PLAIT_TREE", "x", NULL },
        { "PLAIT_HOST_1", "x", NULL },
        { "PLAIT_EPOCH", "", NULL },
        { "PLAITS_EPOCH", "3", NULL },
        { "PLAIT_EPOCH", "3", "unknown variable PLAIT_EPOCH; did you mean PLAIT_EPOCHS?" },
        { "PLAIT_epochs", "3", "unknown variable PLAIT_epochs; did you mean PLAIT_EPOCHS?" },
        { "PLAIT_TREES", "x", "unknown variable PLAIT_TREES: no option has that name; unset it" },
        { "PLAIT_ZZZZ", "x", "unknown variable PLAIT_ZZZZ: no option has that name; unset it" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plait_error err = { 0 };
        char        variable[64], *mine[] = { variable, NULL }, **theirs = environ;
        snprintf(variable, sizeof variable, "%s=%s", cases[i].name, cases[i].value);
        environ = mine;
        plait_status status = pli_opts_check_variables(tables, 2, others, 2, &err);
        environ = theirs;
        assert_int_equal(status, cases[i].text == NULL ? PLAIT_OK : PLAIT_ENAME);
        assert_string_equal(err.text, cases[i].text == NULL ? "" : cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_flags_in_any_order),
        cmocka_unit_test(test_flag_over_variable_over_file_over_default),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_files_that_are_refused),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(sizes_and_times_have_bounds),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_values_there_and_back),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_positionals_where_none_are_wanted),
        cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_variables_that_nobody_knows),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("base.opts", tests, NULL, NULL);
}
