/* base/opts_help.c - the table of options as people read it.
 *
 * Help has two columns, in groups: what to type, and what it does. A text that does not fit beside its flag goes
 * below it. Options that are only announced (PLI_OPT_LATER) and internal options are left out. */
#include <stdio.h>
#include <string.h>

#include "base/opts_impl.h"

enum { LEFT_COLUMNS = 28, NARROWEST = 40 };

static const char *group_of(const pli_opt *row) { return row->group != NULL ? row->group : "options"; }

/* Is this the first shown row of its group? */
static bool begins_group(const pli_opt *rows, const pli_opt *row) {
    for (const pli_opt *other = rows; other < row; other++) {
        if (pli_opt_is_shown(other) && strcmp(group_of(other), group_of(row)) == 0) return false;
    }
    return true;
}

/* Adds words, and breaks the line before a word that would pass width; column is where the text stands now. */
static void add_wrapped(pli_text *text, const char *words, size_t column, size_t width) {
    bool begun = false;
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (begun && column + 1 + length > width) {
            pli_text_add(text, "\n%*s", LEFT_COLUMNS, "");
            column = LEFT_COLUMNS;
            begun = false;
        }
        pli_text_add(text, "%s%.*s", begun ? " " : "", (int)length, words);
        column += length + begun;
        begun = true;
        words += length + strspn(words + length, " ");
    }
}

/* Adds "  --name a|b|c"; a line too long for its choices goes on behind a bar. Returns the column where it ends. */
static size_t add_flag(pli_text *text, const pli_opt *row, size_t width) {
    enum { INDENT = 6 };
    const char *words = row->argument != NULL ? row->argument : "";
    size_t      column = strlen(row->name) + 4;
    pli_text_add(text, "  --%s", row->name);
    if (row->argument != NULL) pli_text_add(text, " ");
    column += row->argument != NULL;
    while (*words != '\0') {
        size_t length = strcspn(words, "|");
        length += words[length] == '|';
        if (column + length > width && column > INDENT) {
            pli_text_add(text, "\n%*s", INDENT, "");
            column = INDENT;
        }
        pli_text_add_bytes(text, words, length);
        column += length;
        words += length;
    }
    return column;
}

static void add_row(pli_text *text, const pli_opt *row, size_t width) {
    const size_t used = add_flag(text, row, width);
    pli_text words = { .data = NULL };
    pli_text_add(&words, "%s", row->help);
    if (row->preset != NULL && row->kind != PLI_OPT_FLAG) pli_text_add(&words, " (default: %s)", row->preset);
    if (used + 2 > LEFT_COLUMNS)
        pli_text_add(text, "\n%*s", LEFT_COLUMNS, "");
    else
        pli_text_add(text, "%*s", (int)(LEFT_COLUMNS - used), "");
    add_wrapped(text, words.data != NULL ? words.data : "", LEFT_COLUMNS, width);
    pli_text_add(text, "\n");
    text->failed = text->failed || words.failed;
    pli_text_free(&words);
}

void pli_opts_help(const pli_opt *rows, int width, pli_text *text) {
    size_t columns = width < NARROWEST ? NARROWEST : (size_t)width;
    bool   first = true;
    for (const pli_opt *head = rows; head->name != NULL; head++) {
        if (!pli_opt_is_shown(head) || !begins_group(rows, head)) continue;
        pli_text_add(text, "%s%s:\n", first ? "" : "\n", group_of(head));
        first = false;
        for (const pli_opt *row = head; row->name != NULL; row++) {
            if (pli_opt_is_shown(row) && strcmp(group_of(row), group_of(head)) == 0) add_row(text, row, columns);
        }
    }
}
