/* Reads the functions that the public headers declare, with the names of their arguments and which of them are
 * pointers. It reads the same text as a compiler, without comments and preprocessor lines. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/nulls.h"

enum { TEXT_MAX = 1 << 20 };

/* Replaces comments and preprocessor lines by blanks. */
static void blank_out(char *text) {
    int comment = 0, directive = 0;
    for (char *c = text; *c != '\0'; c++) {
        if (comment && c[0] == '*' && c[1] == '/') {
            c[0] = c[1] = ' ';
            comment = 0;
        } else if (!comment && c[0] == '/' && c[1] == '*') {
            comment = 1;
        }
        if (!comment && *c == '#') directive = 1;
        if (*c == '\n' && c[-1] != '\\') directive = 0;
        if (comment || directive) *c = ' ';
    }
}

/* "const char *const *paths" is a pointer named paths; a function's type, "char hex[65]" and "f *body" are pointers,
 * too. */
static void take_argument(const char *from, const char *to, declared *d) {
    const char *end = to;
    const char *bracket = memchr(from, '[', (size_t)(to - from));
    int         pointer = bracket != NULL || memchr(from, '*', (size_t)(to - from)) != NULL;
    const char *function = strstr(from, "(*");
    if (function != NULL && function < to) {
        from = function + 2;
        end = memchr(from, ')', (size_t)(to - from));
    } else if (bracket != NULL) {
        end = bracket;
    }
    while (end > from && isspace((unsigned char)end[-1])) end--;
    const char *name = end;
    while (name > from && (isalnum((unsigned char)name[-1]) || name[-1] == '_')) name--;
    if (d->n_args == (int32_t)(sizeof d->arg / sizeof *d->arg)) abort();
    snprintf(d->arg[d->n_args].name, sizeof d->arg->name, "%.*s", (int)(end - name), name);
    d->arg[d->n_args++].pointer = pointer;
}

/* at: the place behind PLAIT_API. false: no function is declared there. */
static int take_declaration(const char *at, declared *d) {
    const char *end = strchr(at, ';'), *open = strchr(at, '('), *name = open;
    if (end == NULL || open == NULL || open > end) return 0;
    while (isalnum((unsigned char)name[-1]) || name[-1] == '_') name--;
    memset(d, 0, sizeof *d);
    if (strncmp(name, "plait_", 6) != 0) abort();
    snprintf(d->function, sizeof d->function, "%.*s", (int)(open - name - 6), name + 6);
    int         depth = 0;
    const char *from = open + 1;
    for (const char *c = open; c < end; c++) {
        if (*c == '(') depth++;
        int last = *c == ')' && --depth == 0;
        if ((last || (*c == ',' && depth == 1)) && strncmp(from, "void)", 5) != 0) take_argument(from, c, d);
        if (last) break;
        if (*c == ',' && depth == 1) from = c + 1;
    }
    if (d->n_args > 0 && strcmp(d->arg[d->n_args - 1].name, "") == 0) d->n_args--; /* the argument was ... */
    return 1;
}

static char *read_header(const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    char *text = calloc(1, TEXT_MAX);
    if (file == NULL || text == NULL || fread(text, 1, TEXT_MAX - 1, file) == 0) abort();
    fclose(file);
    return text;
}

declared *read_headers(const char *folder, int32_t *n_out) {
    enum { MOST = 1024 };
    DIR      *dir = opendir(folder);
    declared *all = calloc(MOST, sizeof *all);
    *n_out = 0;
    for (struct dirent *entry; dir != NULL && all != NULL && (entry = readdir(dir)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".h") != 0) continue;
        char *text = read_header(folder, entry->d_name);
        blank_out(text);
        for (const char *at = text; (at = strstr(at, "PLAIT_API ")) != NULL;) {
            at += strlen("PLAIT_API ");
            if (*n_out == MOST) abort();
            *n_out += take_declaration(at, &all[*n_out]);
        }
        free(text);
    }
    if (dir != NULL) closedir(dir);
    return all;
}
