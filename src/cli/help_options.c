/* help OPTION - what an option means, and which commands take it. Commands whose text of it is the same stand
 * together. help VALUE - the options that take the word as a value. */
#include <string.h>

#include "cli/cli.h"
#include "cli/settings.h"
#include "cli/words.h"

static const pli_opt *find(const pli_opt *rows, const char *name) {
    while (rows != NULL && rows->name != NULL && strcmp(rows->name, name) != 0) rows++;
    return rows != NULL && rows->name != NULL && pli_opt_is_shown(rows) ? rows : NULL;
}

/* Adds the row as 'plait help COMMAND' has it, without the line of its group. false: no memory. */
static bool add_row(const pli_opt *row, pli_text *text) {
    const pli_opt one[] = { *row, { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL } };
    pli_text      line = { 0 };
    pli_opts_help(one, pli_cli_width(), &line);
    if (line.data == NULL) return false;
    pli_text_add(text, "%s", strchr(line.data, '\n') + 1);
    pli_text_free(&line);
    return true;
}

static bool same_text(const char *a, const char *b) { return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0); }

static bool same(const pli_opt *a, const pli_opt *b) {
    return same_text(a->argument, b->argument) && same_text(a->preset, b->preset) && strcmp(a->help, b->help) == 0;
}

/* Adds "train, compare" for the commands whose rows are the same as that of command `first`. */
static void add_owners(pli_opt *const *tables, size_t first, const char *name, pli_text *text) {
    pli_text owners = { 0 };
    for (size_t i = first; pli_commands()[i] != NULL; i++) {
        const pli_opt *other = find(tables[i], name);
        if (other != NULL && same(other, find(tables[first], name)))
            pli_text_add(&owners, "%s%s", i > first ? ", " : "", pli_commands()[i]->name);
    }
    pli_text_add(&owners, ":");
    if (owners.data != NULL) pli_cli_wrap(text, owners.data, 0, pli_cli_width());
    pli_text_free(&owners);
}

/* Has a command before number i a row that is the same? */
static bool was_told(pli_opt *const *tables, size_t i, const pli_opt *row) {
    for (size_t k = 0; k < i; k++) {
        const pli_opt *other = find(tables[k], row->name);
        if (other != NULL && same(other, row)) return true;
    }
    return false;
}

/* Adds what 'plait tune' tries of the option, by model. */
static void add_ranges(const char *name, pli_text *text) {
    pli_text all = { 0 };
    for (const pli_opt_range *range = pli_train_ranges; range->option != NULL; range++) {
        if (strcmp(range->option, name) != 0) continue;
        pli_text_add(&all, "%s%s %s", all.data == NULL ? "'plait tune' tries by default: " : "; ", range->models,
                     range->tried);
    }
    if (all.data != NULL) pli_text_add(text, "\n");
    if (all.data != NULL) pli_cli_wrap(text, all.data, 2, pli_cli_width());
    pli_text_free(&all);
}

bool pli_cli_help_option(const char *name, pli_text *text) {
    size_t n = 0, told = 0;
    while (pli_commands()[n] != NULL) n++;
    pli_opt **tables = pli_calloc(n, sizeof *tables);
    for (size_t i = 0; tables != NULL && i < n; i++) tables[i] = pli_command_rows(pli_commands()[i]);
    for (size_t i = 0; tables != NULL && i < n; i++) {
        const pli_opt *row = find(tables[i], name);
        if (row == NULL || was_told(tables, i, row)) continue;
        if (told++ > 0) pli_text_add(text, "\n");
        add_owners(tables, i, name, text);
        if (!add_row(row, text)) break;
    }
    if (told > 0) add_ranges(name, text);
    for (size_t i = 0; tables != NULL && i < n; i++) pli_free(tables[i]);
    pli_free(tables);
    return told > 0;
}

/* --- help VALUE --------------------------------------------------------------------------------------------------- */

/* Is the word one of the values "a|b|c" of the row? */
static bool takes(const pli_opt *row, const char *word) {
    const size_t length = strlen(word);
    if (row->argument == NULL || !pli_opt_is_shown(row) || strchr(row->argument, '|') == NULL) return false;
    for (const char *at = row->argument; *at != '\0'; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == length && length > 0 && memcmp(at, word, length) == 0) return true;
    return false;
}

/* Adds the rows of a command that take the word, but for those that a command before it has told. */
static int add_takers(pli_opt *const *tables, size_t i, const char *word, pli_text *text) {
    int n = 0;
    for (const pli_opt *row = tables[i]; row != NULL && row->name != NULL; row++) {
        if (!takes(row, word) || was_told(tables, i, row)) continue;
        pli_text_add(text, "%s: a value of --%s of plait %s\n", word, row->name, pli_commands()[i]->name);
        (void)add_row(row, text);
        n++;
    }
    return n;
}

bool pli_cli_help_value(const char *word, pli_text *text) {
    size_t n = 0;
    int    told = 0;
    while (pli_commands()[n] != NULL) n++;
    pli_opt **tables = pli_calloc(n, sizeof *tables);
    for (size_t i = 0; tables != NULL && i < n; i++) tables[i] = pli_command_rows(pli_commands()[i]);
    for (size_t i = 0; tables != NULL && i < n; i++) told += add_takers(tables, i, word, text);
    for (const pli_opt *row = tables != NULL && told == 0 ? tables[0] : NULL; row != NULL && row->name != NULL; row++) {
        const char *say = pli_words_value(row->name, word);
        if (say == NULL) continue;
        pli_text_add(text, "%s, as --%s: %s\n", word, row->name, say);
        told++;
    }
    for (size_t i = 0; tables != NULL && i < n; i++) pli_free(tables[i]);
    pli_free(tables);
    return told > 0;
}
