/* Modules: one that is missing, one that does not load, and PLAIT_MODULES comes first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/os.h"

static void test_own_directory(void **state) {
    (void)state;
    char own[4096], path[5000];
    pli_own_directory(own);
    snprintf(path, sizeof path, "%s/test_base_os_module", own);
    assert_true(own[0] == '/' && pli_file_exists(path));
}

static void test_missing_says_where_it_looked(void **state) {
    (void)state;
    void       *handle = NULL, *symbol = NULL;
    plait_error err;
    setenv("PLAIT_MODULES", "/nowhere/a::/nowhere/b", 1);
    assert_int_equal(pli_module_open("nosuch", "entry", &handle, &symbol, &err), PLAIT_EMODULE);
    assert_non_null(strstr(err.text, "no module nosuch"));
    assert_non_null(strstr(err.text, "/nowhere/a, /nowhere/b, "));
    assert_true(handle == NULL && symbol == NULL);
    assert_int_equal(pli_module_open("../x", "entry", &handle, &symbol, &err), PLAIT_EINVAL);
    assert_int_equal(pli_module_open("", "entry", &handle, &symbol, &err), PLAIT_EINVAL);
    unsetenv("PLAIT_MODULES");
}

static void test_broken_says_why(void **state) {
    (void)state;
    char        dir[] = "os_module_test.XXXXXX", path[100];
    void       *handle = NULL, *symbol = NULL;
    plait_error err;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/plait-broken.so", dir);
    FILE *file = fopen(path, "w");
    fputs("no ELF", file);
    fclose(file);
    setenv("PLAIT_MODULES", dir, 1);
    assert_int_equal(pli_module_open("broken", "entry", &handle, &symbol, &err), PLAIT_EMODULE);
    assert_non_null(strstr(err.text, "the module broken does not load"));
    assert_non_null(strstr(err.text, "plait-broken.so"));
    unsetenv("PLAIT_MODULES");
    unlink(path);
    rmdir(dir);
}

/* Any shared library will do, and libm is always there. A link to it in PLAIT_MODULES makes it a module. */
static void test_found_and_closed(void **state) {
    (void)state;
#if defined(__aarch64__)
    static const char *const places[] = { "/lib/aarch64-linux-gnu/libm.so.6", "/usr/lib/libm.so.6" };
#else
    static const char *const places[] = { "/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6" };
#endif
    char                     dir[] = "os_module_test.XXXXXX", path[100];
    const char              *libm = NULL;
    void                    *handle = NULL, *symbol = NULL;
    plait_error              err;
    for (size_t i = 0; libm == NULL && i < sizeof places / sizeof *places; i++) {
        if (pli_file_exists(places[i])) libm = places[i];
    }
    if (libm == NULL) skip();
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/plait-libm.so", dir);
    assert_int_equal(symlink(libm, path), 0);
    setenv("PLAIT_MODULES", dir, 1);
    assert_int_equal(pli_module_open("libm", "cos", &handle, &symbol, &err), PLAIT_OK);
    assert_true(handle != NULL && symbol != NULL);
    pli_module_close(&handle);
    pli_module_close(&handle);
    assert_int_equal(pli_module_open("libm", "plait_no_such_entry", &handle, &symbol, &err), PLAIT_EMODULE);
    assert_string_equal(err.text, "the module libm has no entry plait_no_such_entry");
    assert_null(handle);
    unsetenv("PLAIT_MODULES");
    unlink(path);
    rmdir(dir);
}

static void test_out_of_memory(void **state) {
    (void)state;
    int64_t before = pli_alloc_live();
    for (int64_t k = 0; k < 40; k++) {
        void       *handle = NULL, *symbol = NULL;
        plait_error err;
        pli_alloc_fail_after(k);
        plait_status status = pli_module_open("nosuch", "entry", &handle, &symbol, &err);
        pli_alloc_fail_after(-1);
        assert_true(status == PLAIT_ENOMEM || status == PLAIT_EMODULE);
        assert_int_equal(pli_alloc_live(), before);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_directory),   cmocka_unit_test(test_missing_says_where_it_looked),
        cmocka_unit_test(test_broken_says_why), cmocka_unit_test(test_found_and_closed),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("base.os_module", tests, NULL, NULL);
}
