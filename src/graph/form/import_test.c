/* Imports ONNX with each allocation failing in turn, on the graphs of the fuzzer's corpus. tests/graph/onnx_ops.py
 * compares the values with onnxruntime's. */
#include "graph/form/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static plait_status import(const pli_text *file, plait_graph **g, plait_error *err) {
    plait_graph_file_opts opts;
    plait_graph_file_opts_init(&opts);
    opts.values_bytes = 1 << 20;
    return plait_graph_parse("g.onnx", file->data, file->length, &opts, g, err);
}

/* Returns the number of allocations; -1: there is no module. */
static int64_t survive(const pli_text *file) {
    const int64_t before = pli_alloc_live();
    /* successes in a row: the search for the module survives when the allocation of its text fails */
    int32_t well = 0;
    for (int64_t k = 0;; k++) {
        plait_graph *g = NULL;
        plait_error  err = { 0 };
        pli_alloc_fail_after(k);
        plait_status status = import(file, &g, &err);
        pli_alloc_fail_after(-1);
        plait_graph_destroy(&g);
        assert_int_equal(pli_alloc_live(), before);
        well = status == PLAIT_OK ? well + 1 : 0;
        if (well == 4) return k;
        if (status == PLAIT_OK) continue;
        if (status == PLAIT_EMODULE && strstr(err.text, "there is no module") != NULL) return -1;
        if (status != PLAIT_ENOMEM) fail_msg("allocation %d: %s", (int)k, err.text);
    }
}

/* The budget counts all initialisers and constants together: one byte less than they take is too little. */
static void test_values_have_a_budget(void **state) {
    const char *root = getenv("PLAIT_SOURCE_DIR");
    char       *path = pli_format("%s/tests/fuzz/corpus/graph.form.import/ops3.onnx", root != NULL ? root : ".");
    plait_graph_file_opts opts;
    pli_text              file = { 0 };
    plait_error           err = { 0 };
    plait_status          status = PLAIT_ENOMEM;
    size_t                bytes = 0;
    (void)state;
    plait_graph_file_opts_init(&opts);
    assert_int_equal(pli_read_whole(path, 1 << 20, &file, NULL), PLAIT_OK);
    while (status == PLAIT_ENOMEM && bytes < 1 << 16) {
        plait_graph *g = NULL;
        opts.values_bytes = ++bytes; /* from 1, because 0 means all free memory */
        status = plait_graph_parse("g.onnx", file.data, file.length, &opts, &g, &err);
        plait_graph_destroy(&g);
        if (status == PLAIT_ENOMEM) assert_non_null(strstr(err.text, "left for values"));
    }
    pli_text_free(&file);
    pli_free(path);
    if (status == PLAIT_EMODULE) skip();
    if (status != PLAIT_OK || bytes < 4) fail_msg("%zu bytes: %s", bytes, err.text);
}

static void test_every_failed_allocation_is_survived(void **state) {
    const char *root = getenv("PLAIT_SOURCE_DIR");
    char       *folder = pli_format("%s/tests/fuzz/corpus/graph.form.import", root != NULL ? root : ".");
    pli_text    names = { 0 };
    char       *rest = NULL;
    (void)state;
    pli_alloc_fail_after(0);
    void      *probe = pli_malloc(1);
    const bool fails = probe == NULL; /* in the installed library allocations never fail */
    pli_alloc_fail_after(-1);
    pli_free(probe);
    assert_int_equal(pli_list_directory(folder, &names, NULL), PLAIT_OK);
    for (char *name = strtok_r(names.data, "\n", &rest); name != NULL; name = strtok_r(NULL, "\n", &rest)) {
        char    *path = pli_format("%s/%s", folder, name);
        pli_text file = { 0 };
        assert_int_equal(pli_read_whole(path, 1 << 20, &file, NULL), PLAIT_OK);
        const int64_t took = survive(&file);
        pli_text_free(&file);
        pli_free(path);
        if (took < 0) skip();
        if (fails && took <= 10) fail_msg("%s took %d", name, (int)took);
    }
    pli_text_free(&names);
    pli_free(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_failed_allocation_is_survived),
                                        cmocka_unit_test(test_values_have_a_budget) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
