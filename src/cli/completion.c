/* What the completion scripts of all shells share: which options a command has, and what may follow each. */
#include "cli/completion.h"

#include <ctype.h>
#include <string.h>

#include "table/topology/topology.h"

/* --- the options of a command --------------------------------------------------------------------------------- */

/* These commands also take the options of train. */
static bool takes_train(const pli_command *command) {
    const pli_command *const all[] = { &pli_command_config, &pli_command_compare, &pli_command_cv, &pli_command_tune,
                                       &pli_command_plan };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] == command) return true;
    return false;
}

bool pli_offers_open(const pli_command *command, pli_offers *offers) {
    const bool both = takes_train(command);
    *offers = (pli_offers){ { pli_command_rows(command), both ? pli_command_rows(&pli_command_train) : NULL } };
    return offers->rows[0] != NULL && (!both || offers->rows[1] != NULL);
}

void pli_offers_close(pli_offers *offers) {
    for (size_t i = 0; i < 2; i++) pli_free(offers->rows[i]);
    *offers = (pli_offers){ { NULL, NULL } };
}

static const pli_opt *find(const pli_opt *rows, const char *name) {
    while (rows != NULL && rows->name != NULL && strcmp(rows->name, name) != 0) rows++;
    return rows != NULL && rows->name != NULL ? rows : NULL;
}

/* Is the row in the command's own table? */
static bool is_own(const pli_offers *offers, const pli_opt *row) {
    const pli_opt *end = offers->rows[0];
    while (end->name != NULL) end++;
    return row >= offers->rows[0] && row <= end;
}

const pli_opt *pli_offers_next(const pli_offers *offers, const pli_opt *last) {
    const pli_opt *row = last != NULL ? last + 1 : offers->rows[0];
    for (;; row++) {
        const bool own = is_own(offers, row);
        if (row->name == NULL && (!own || offers->rows[1] == NULL)) return NULL;
        if (row->name == NULL) row = offers->rows[1];
        const bool again = (!own || row == offers->rows[1]) && find(offers->rows[0], row->name) != NULL;
        if (pli_opt_is_shown(row) && !again) return row;
    }
}

/* --- what follows an option ------------------------------------------------------------------------------------- */

void pli_offer_words(pli_text *text, const char *const *words, size_t n) {
    for (size_t i = 0; i < n && words[i] != NULL; i++) pli_text_add(text, "%s%s", i > 0 ? " " : "", words[i]);
}

static void add_policies(pli_text *words) {
    for (size_t i = 0; pli_consistencies()[i] != NULL; i++)
        pli_text_add(words, "%s%s", i > 0 ? " " : "", pli_consistencies()[i]->name);
}

static void add_word(pli_text *words, const char *word, size_t length) {
    pli_text_add(words, "%s%.*s", words->length > 0 ? " " : "", (int)length, word);
}

/* Adds gossip:ring and the like for gossip:G. */
static void add_topology(pli_text *words, const char *word, size_t name) {
    for (size_t i = 0; pli_topologies()[i] != NULL; i++) {
        const pli_topology_kind *is = pli_topologies()[i];
        if (strncmp(is->name, word, name) != 0 || is->name[name] != '\0') continue;
        for (const char *c = is->parameters; *c != '\0'; c += strcspn(c, "|"), c += *c == '|') {
            add_word(words, word, name + 1);
            pli_text_add_bytes(words, c, strcspn(c, "|"));
        }
    }
}

/* Adds the choices of "auto|layers|FILE" that can be typed as they stand. */
static pli_offer add_choices(pli_text *words, const char *choices) {
    pli_offer offer = PLI_OFFER_WORDS;
    for (const char *c = choices; *c != '\0'; c += *c == '|') {
        const size_t length = strcspn(c, "|");
        size_t       lower = 0;
        while (lower < length && !isupper((unsigned char)c[lower])) lower++;
        if (lower == length) add_word(words, c, length);
        else if (strncmp(c, "FILE", length) == 0) offer = PLI_OFFER_BOTH;
        else if (lower > 1) add_topology(words, c, lower - 1);
        c += length;
    }
    return offer;
}

pli_offer pli_offer_of(const pli_opt *row, pli_text *words) {
    words->length = 0;
    if (row->kind == PLI_OPT_FLAG || row->kind == PLI_OPT_LATER) return PLI_OFFER_NOTHING;
    if (strcmp(row->name, "consistency") == 0 || strcmp(row->name, "as") == 0) {
        add_policies(words);
        return PLI_OFFER_WORDS;
    }
    if (row->kind == PLI_OPT_CHOICE || (row->argument != NULL && islower((unsigned char)row->argument[0])))
        return add_choices(words, row->argument);
    return row->kind == PLI_OPT_TEXT || row->kind == PLI_OPT_LIST ? PLI_OFFER_FILES : PLI_OFFER_VALUE;
}

void pli_offer_help(pli_text *text, const char *help, const char *escaped, const char *escape) {
    for (const char *c = help; *c != '\0' && !(c > help && *c == ';'); c++) {
        if (strchr(escaped, *c) != NULL) pli_text_add(text, "%s", escape);
        pli_text_add_bytes(text, *c == '\n' ? " " : c, 1);
    }
}

/* --- bash and zsh ----------------------------------------------------------------------------------------------- */

/* The options that the command takes behind its word; word NULL: behind any. */
static void add_options(pli_text *text, const pli_command *command, const pli_offers *offers, const char *word,
                        const pli_completion_case *shell) {
    pli_text_add(text, "%s", shell->begin);
    shell->option(text, "help", "describe the command");
    for (const pli_opt *row = NULL; (row = pli_offers_next(offers, row)) != NULL;)
        if (word == NULL || command->takes(word, row)) shell->option(text, row->name, row->help);
    pli_text_add(text, "%s ;;\n", shell->end);
}

static void add_case(pli_text *text, const pli_command *command, const pli_completion_case *shell) {
    pli_offers offers;
    if (!pli_offers_open(command, &offers)) {
        text->failed = true;
        pli_offers_close(&offers);
        return;
    }
    pli_text_add(text, "    %s)\n        case $before in\n", command->name);
    for (const pli_opt *row = NULL; (row = pli_offers_next(&offers, row)) != NULL;) shell->value(text, row);
    pli_text_add(text, "        esac\n        ");
    if (command->takes != NULL) {
        pli_text_add(text, "case %s in\n", shell->first);
        for (size_t i = 0; command->words[i] != NULL; i++) {
            pli_text_add(text, "        %s) ", command->words[i]);
            add_options(text, command, &offers, command->words[i], shell);
        }
        pli_text_add(text, "        *) ");
    }
    add_options(text, command, &offers, NULL, shell);
    if (command->takes != NULL) pli_text_add(text, "        esac ;;\n");
    pli_offers_close(&offers);
}

void pli_completion_cases(pli_text *text, const pli_completion_case *shell) {
    for (size_t i = 0; pli_commands()[i] != NULL; i++) add_case(text, pli_commands()[i], shell);
}

/* --- words by their place --------------------------------------------------------------------------------------- */

/* word NULL: directly behind the command */
static void add_place(pli_text *text, const pli_completion_places *shell, const char *command, const char *word) {
    pli_text_add(text, "%s%s", shell->behind[0], command);
    if (word != NULL) pli_text_add(text, " %s", word);
    pli_text_add(text, "%s", shell->behind[1]);
}

void pli_completion_add_places(pli_text *text, const pli_completion_places *shell) {
    for (const pli_command *const *command = pli_commands(); *command != NULL; command++) {
        if ((*command)->words == NULL) continue;
        add_place(text, shell, (*command)->name, NULL);
        shell->words(text, (*command)->words, SIZE_MAX);
        if ((*command)->names == NULL) continue;
        add_place(text, shell, (*command)->name, (*command)->before_names);
        shell->words(text, (*command)->names(), SIZE_MAX);
    }
}

/* --- by name ---------------------------------------------------------------------------------------------------- */

void pli_cli_completion(const char *shell, pli_text *text) {
    if (strcmp(shell, "zsh") == 0) pli_completion_zsh(text);
    else if (strcmp(shell, "fish") == 0) pli_completion_fish(text);
    else pli_completion_bash(text);
}
