/* The completion script for fish: a line for each option, with the commands that have it.
 *
 * Several commands share most of train's options, so a line names all commands whose option means the same. In single
 * quotes only the quote and the backslash are special. */
#include "cli/completion.h"

#include <string.h>

enum { COMMANDS_MAX = 64 };

typedef struct all_offers {
    pli_offers of[COMMANDS_MAX];
    size_t     n;
} all_offers;

static bool open_all(all_offers *all) {
    const pli_command *const *commands = pli_commands();
    bool                      open = true;
    for (all->n = 0; commands[all->n] != NULL && all->n < COMMANDS_MAX; all->n++)
        open = pli_offers_open(commands[all->n], &all->of[all->n]) && open;
    return open;
}

/* The option of a command that reads as `row` does; NULL: it has none. */
static const pli_opt *same_option(const pli_offers *offers, const pli_opt *row) {
    for (const pli_opt *at = NULL; (at = pli_offers_next(offers, at)) != NULL;) {
        if (strcmp(at->name, row->name) != 0) continue;
        const bool alike = at->argument != NULL && row->argument != NULL ? strcmp(at->argument, row->argument) == 0
                                                                        : at->argument == row->argument;
        return alike && strcmp(at->help, row->help) == 0 ? at : NULL;
    }
    return NULL;
}

static void complete_value(pli_text *text, const pli_opt *row) {
    pli_text        words = { 0 };
    const pli_offer offer = pli_offer_of(row, &words);
    if (offer == PLI_OFFER_WORDS) pli_text_add(text, " -x -a '%.*s'", (int)words.length, words.data);
    if (offer == PLI_OFFER_FILES) pli_text_add(text, " -r -F");
    if (offer == PLI_OFFER_BOTH) pli_text_add(text, " -r -F -a '%.*s'", (int)words.length, words.data);
    if (offer == PLI_OFFER_VALUE) pli_text_add(text, " -x");
    text->failed = text->failed || words.failed;
    pli_text_free(&words);
}

/* Adds where the option may stand, as __plait_of reads it: behind the command, or behind it and a word. */
static void add_command(pli_text *text, const pli_command *command, const pli_opt *row) {
    bool all = true;
    for (size_t i = 0; command->takes != NULL && command->words[i] != NULL; i++)
        all = all && command->takes(command->words[i], row);
    if (all) pli_text_add(text, " %s", command->name);
    for (size_t i = 0; !all && command->words[i] != NULL; i++)
        if (command->takes(command->words[i], row)) pli_text_add(text, " %s:%s", command->name, command->words[i]);
}

/* Writes the option of command `first` for all commands that have it, unless an earlier command has written it. */
static void complete_option(pli_text *text, const all_offers *all, size_t first, const pli_opt *row) {
    for (size_t i = 0; i < first; i++)
        if (same_option(&all->of[i], row) != NULL) return;
    pli_text_add(text, "complete -c plait -n '__plait_of");
    for (size_t i = first; i < all->n; i++)
        if (same_option(&all->of[i], row) != NULL) add_command(text, pli_commands()[i], row);
    pli_text_add(text, "' -l %s", row->name);
    complete_value(text, row);
    pli_text_add(text, " -d '");
    pli_offer_help(text, row->help, "'\\", "\\");
    pli_text_add(text, "'\n");
}

static const pli_completion_places places = {
    .behind = { "'\ncomplete -c plait -n '__plait_behind ", "' -f -a '" },
    .words = pli_offer_words,
};

static void complete_topics(pli_text *text) {
    const char *names[PLI_CLI_TOPICS_MAX];
    size_t      n = pli_cli_topics(names);
    pli_text_add(text, "complete -c plait -n '__plait_of help' -f -a '");
    pli_offer_words(text, names, n);
    pli_completion_add_places(text, &places);
    pli_text_add(text, "'\n");
}

static const char functions[] =
    "# fish completion of plait; written by: plait help --completion fish\n"
    "function __plait_words --description 'the words from the command on, also behind launch ... --'\n"
    "    set -l words (commandline -opc)\n"
    "    set -e words[1]\n"
    "    if test (count $words) -gt 0; and test $words[1] = launch; and contains -- -- $words\n"
    "        set -l at (contains -i -- -- $words)\n"
    "        set -e words[1..$at]\n"
    "        test (count $words) -gt 0; and string match -qr '(^|/)plait$' -- $words[1]; and set -e words[1]\n"
    "    end\n"
    "    test (count $words) -gt 0; and printf '%s\\n' $words\n"
    "end\n"
    "function __plait_at_command\n"
    "    test (count (__plait_words)) -eq 0\n"
    "end\n"
    "function __plait_of --description 'behind one of these: COMMAND, or COMMAND:WORD'\n"
    "    set -l words (__plait_words)\n"
    "    test (count $words) -gt 0; or return 1\n"
    "    contains -- $words[1] $argv; and return 0\n"
    "    set -l word '*'\n"
    "    test (count $words) -gt 1; and string match -qr '^[^-]' -- $words[2]; and set word $words[2]\n"
    "    string match -q -- \"$words[1]:$word\" $argv\n"
    "end\n"
    "function __plait_behind --description 'directly behind these words'\n"
    "    set -l words (__plait_words)\n"
    "    test \"$words\" = \"$argv\"\n"
    "end\n"
    "function __plait_is_launched --description 'fish offers no options behind --'\n"
    "    contains -- -- (commandline -opc); and not __plait_at_command\n"
    "end\n"
    "function __plait_launched --description 'what fish would offer without launch ... --'\n"
    "    complete -C (string join ' ' -- plait (__plait_words | string escape) (commandline -ct))\n"
    "end\n"
    "complete -c plait -e\n"
    "complete -c plait -n __plait_is_launched -f -a '(__plait_launched)'\n"
    "complete -c plait -s h -l help -d 'describe the command'\n";

void pli_completion_fish(pli_text *text) {
    all_offers *all = pli_calloc(1, sizeof *all);
    const bool  open = all != NULL && open_all(all);
    text->failed = text->failed || !open;
    pli_text_add(text, "%s", functions);
    for (size_t i = 0; pli_commands()[i] != NULL; i++) {
        pli_text_add(text, "complete -c plait -n __plait_at_command -f -a %s -d '", pli_commands()[i]->name);
        pli_offer_help(text, pli_commands()[i]->summary, "'\\", "\\");
        pli_text_add(text, "'\n");
    }
    for (size_t i = 0; open && i < all->n; i++)
        for (const pli_opt *row = NULL; (row = pli_offers_next(&all->of[i], row)) != NULL;)
            complete_option(text, all, i, row);
    complete_topics(text);
    for (size_t i = 0; all != NULL && i < all->n; i++) pli_offers_close(&all->of[i]);
    pli_free(all);
}
