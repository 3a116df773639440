/* Makes a self-contained HTML page: page.html with the comparison's JSON inserted. */
#include <string.h>

#include "watch/compare/compare.h"

static const unsigned char page[] = {
#include "page_html.inc" /* page.html's bytes, written by CMakeLists.txt */
};

static const char place[] = "@COMPARISON@";

/* Adds JSON as the text of a script, escaped so that no "</script>" or "<!--" ends it. */
static void add_safe(pli_text *text, const char *json) {
    for (const char *at = json; *at != '\0';) {
        size_t plain = strcspn(at, "<");
        pli_text_add_bytes(text, at, plain);
        at += plain;
        if (*at == '<') {
            pli_text_add(text, "\\u003c");
            at++;
        }
    }
}

static size_t find_place(void) {
    size_t at = 0;
    while (at + sizeof place - 1 <= sizeof page && memcmp(page + at, place, sizeof place - 1) != 0) at++;
    return at;
}

void pli_compare_page(const pli_comparison *comparison, pli_text *text) {
    pli_text json = { 0 };
    size_t   at = find_place();
    pli_compare_json(comparison, &json);
    pli_text_add_bytes(text, page, at);
    if (json.data != NULL) add_safe(text, json.data);
    pli_text_add_bytes(text, page + at + sizeof place - 1, sizeof page - at - (sizeof place - 1));
    text->failed = text->failed || json.failed;
    pli_text_free(&json);
}
