/* Each page is whole, asks the network for nothing, and cannot be broken by its data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "watch/page/page.h"

static const char *const names[] = { "compare", "cv", "tune" };
enum { PAGES = sizeof names / sizeof *names };

static void test_pages_are_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < PAGES; i++) {
        pli_text page = { 0 };
        pli_page_add(names[i], "{\"key\": \"</script><!--\"}", &page);
        assert_false(page.failed);
        assert_int_equal(strncmp(page.data, "<!doctype html>", 15), 0);
        assert_non_null(strstr(page.data, "</html>"));
        assert_non_null(strstr(page.data, "{\"key\": \"\\u003c/script>\\u003c!--\"}"));
        assert_non_null(strstr(page.data, "function ticksLinear"));
        assert_non_null(strstr(page.data, "color-scheme"));
        pli_text_free(&page);
    }
}

static void test_pages_ask_for_nothing(void **state) {
    static const char *const never[] = { "http",     "@DATA@", "@STYLE@", "@TOOLS@", "@TOP@",
                                         "@SCRIPT@", " src=",  "@import", "url(",    "fetch(" };
    (void)state;
    for (size_t i = 0; i < PAGES; i++) {
        pli_text page = { 0 };
        pli_page_add(names[i], "{}", &page);
        for (size_t k = 0; k < sizeof never / sizeof *never; k++) {
            const char *found = strstr(page.data, never[k]);
            if (found != NULL && strncmp(found, "http-equiv", 10) == 0) found = strstr(found + 10, never[k]);
            if (found != NULL) fail_msg("%s has %.40s", names[i], found);
        }
        pli_text_free(&page);
    }
}

static void test_unknown_page(void **state) {
    pli_text page = { 0 };
    (void)state;
    pli_page_add("cvs", "{}", &page);
    assert_true(page.failed);
    pli_text_free(&page);
}

static void test_files(void **state) {
    plait_error err;
    pli_text    json = { 0 };
    (void)state;
    assert_int_equal(pli_page_check("nowhere/page.html", &err), PLAIT_EIO);
    assert_int_equal(pli_page_write("page.html", "cv", &json, &err), PLAIT_ENOMEM); /* there is no JSON */
    pli_text_add(&json, "{}");
    assert_int_equal(pli_page_write("nowhere/page.html", "cv", &json, &err), PLAIT_EIO);
    assert_non_null(strstr(err.text, "nowhere"));
    pli_text_free(&json);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pages_are_whole),
                                        cmocka_unit_test(test_pages_ask_for_nothing),
                                        cmocka_unit_test(test_unknown_page), cmocka_unit_test(test_files) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
