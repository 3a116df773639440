/* Makes self-contained HTML pages: a template, with head, style, script and data put in the
 * places that it names. */
#include "watch/page/page.h"

#include <string.h>

/* The files' bytes, written by CMakeLists.txt. */
static const unsigned char head[] = {
#include "head_html.inc"
};
static const unsigned char top[] = {
#include "top_html.inc"
};
static const unsigned char script[] = {
#include "script_html.inc"
};
static const unsigned char style[] = {
#include "style_css.inc"
};
static const unsigned char tools[] = {
#include "tools_js.inc"
};
static const unsigned char compare[] = {
#include "compare_html.inc"
};
static const unsigned char cv[] = {
#include "cv_html.inc"
};
static const unsigned char tune[] = {
#include "tune_html.inc"
};

typedef struct piece {
    const char          *name;
    const unsigned char *bytes;
    size_t               n;
} piece;

static const piece templates[] = {
    { "compare", compare, sizeof compare },
    { "cv", cv, sizeof cv },
    { "tune", tune, sizeof tune },
};

/* Adds JSON as the text of a script, escaped so that no "</script>" or "<!--" ends it. */
static void add_safe(const char *json, pli_text *text) {
    for (const char *at = json; *at != '\0';) {
        const size_t plain = strcspn(at, "<");
        pli_text_add_bytes(text, at, plain);
        at += plain;
        if (*at == '<') {
            pli_text_add(text, "\\u003c");
            at++;
        }
    }
}

/* What stands in a template's places. "@DATA@" is none: the JSON object goes there. */
static const piece parts[] = {
    { "@HEAD@\n", head, sizeof head },
    { "@STYLE@", style, sizeof style },
    { "@TOP@\n", top, sizeof top },
    { "@SCRIPT@\n", script, sizeof script },
    { "@TOOLS@", tools, sizeof tools },
};

static bool begins(const unsigned char *at, size_t left, const char *name) {
    return left >= strlen(name) && memcmp(at, name, strlen(name)) == 0;
}

static void fill(const piece *page, const char *json, pli_text *text);

/* Adds what belongs to the place at `at` of the template; returns the place's length, 0: there is none. */
static size_t add_place(const unsigned char *at, size_t left, const char *json, pli_text *text) {
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!begins(at, left, parts[i].name)) continue;
        fill(&parts[i], json, text);
        return strlen(parts[i].name);
    }
    if (!begins(at, left, "@DATA@")) return 0;
    add_safe(json, text);
    return strlen("@DATA@");
}

/* Adds a template, or a part of one, which may have places itself. */
static void fill(const piece *page, const char *json, pli_text *text) {
    size_t from = 0, at = 0;
    while (at < page->n) {
        const unsigned char *mark = memchr(page->bytes + at, '@', page->n - at);
        if (mark == NULL) break;
        at = (size_t)(mark - page->bytes);
        pli_text_add_bytes(text, page->bytes + from, at - from);
        const size_t n = add_place(mark, page->n - at, json, text);
        from = at + n;
        at += n > 0 ? n : 1;
    }
    pli_text_add_bytes(text, page->bytes + from, page->n - from);
}

void pli_page_add(const char *name, const char *json, pli_text *text) {
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        if (!pli_is(name, templates[i].name)) continue;
        fill(&templates[i], json, text);
        return;
    }
    text->failed = true;
}

plait_status pli_page_write(const char *path, const char *name, const pli_text *json, plait_error *err) {
    pli_text     page = { 0 };
    pli_outfile *file = NULL;
    if (json->data != NULL) pli_page_add(name, json->data, &page);
    const bool   whole = json->data != NULL && !json->failed && !page.failed;
    plait_status status = whole ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for the page");
    if (status >= 0) status = pli_outfile_open(path, &file, err);
    if (status >= 0) {
        status = pli_outfile_write(file, page.data, page.length, err);
        if (status < 0) pli_outfile_abandon(&file);
        else status = pli_outfile_commit(&file, err);
    }
    pli_text_free(&page);
    return status;
}

plait_status pli_page_check(const char *path, plait_error *err) {
    pli_outfile *file = NULL;
    PLI_TRY(pli_outfile_open(path, &file, err));
    pli_outfile_abandon(&file);
    return PLAIT_OK;
}
