/* Loading a module: an unknown name, a module that is missing, one of another version; and the table is complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/module.h"
#include "base/os.h"

static void test_unknown_is_answered_with_the_nearest(void **state) {
    (void)state;
    void       *handle = NULL;
    const void *given = NULL;
    plait_error err;
    assert_int_equal(pli_module_load("onxn", 1, &handle, &given, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "did you mean 'onnx'"));
    assert_true(handle == NULL && given == NULL);
}

/* Directories in PLAIT_MODULES come first, so a file there that is no library hides the module that was built. */
static void test_each_says_what_installs_it(void **state) {
    (void)state;
    char dir[] = "module_test.XXXXXX", path[100];
    assert_non_null(mkdtemp(dir));
    int n = 0;
    for (const pli_module *m = pli_modules(); m->name != NULL; m++, n++) {
        void       *handle = NULL;
        const void *given = NULL;
        plait_error err;
        snprintf(path, sizeof path, "%s/plait-%s.so", dir, m->name);
        FILE *file = fopen(path, "w");
        fputs("no ELF", file);
        fclose(file);
        setenv("PLAIT_MODULES", dir, 1);
        assert_true(m->symbol != NULL && m->gives != NULL && m->install != NULL);
        assert_int_equal(pli_module_load(m->name, 1u << 31, &handle, &given, &err), PLAIT_EMODULE);
        assert_non_null(strstr(err.text, m->install));
        assert_non_null(strstr(err.text, m->gives));
        assert_non_null(strstr(err.text, "does not load"));
        assert_true(handle == NULL && given == NULL);
        unlink(path);
    }
    unsetenv("PLAIT_MODULES");
    rmdir(dir);
    assert_int_equal(n, 8);
}

static void test_another_version_is_refused(void **state) {
    (void)state;
    for (const pli_module *m = pli_modules(); m->name != NULL; m++) {
        void       *handle = NULL, *symbol = NULL;
        const void *given = NULL;
        plait_error err;
        if (strcmp(m->name, "mpi") == 0) continue; /* MPI's module is never closed once it was opened */
        const bool there = pli_module_open(m->name, m->symbol, &handle, &symbol, &err) == PLAIT_OK;
        if (there) pli_module_close(&handle);
        assert_int_equal(pli_module_load(m->name, 1u << 31, &handle, &given, &err), PLAIT_EMODULE);
        assert_non_null(strstr(err.text, there ? "of another version" : m->install));
        assert_true(handle == NULL && given == NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_is_answered_with_the_nearest),
        cmocka_unit_test(test_each_says_what_installs_it),
        cmocka_unit_test(test_another_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
