/* The completion script for zsh: one function that describes what fits, as `#compdef` files hold it.
 *
 * A word with a description is 'word:what it is' in single quotes, in which only the quote itself is special. */
#include "cli/completion.h"

#include <string.h>

static void describe(pli_text *text, const char *before, const char *word, const char *help) {
    pli_text all = { 0 };
    pli_offer_help(&all, help, "", "");
    pli_text_add(text, "\n            '%s%s:", before, word);
    for (size_t i = 0; i < all.length; i++)
        pli_text_add_bytes(text, all.data[i] == '\'' ? "'\\''" : &all.data[i], all.data[i] == '\'' ? 4 : 1);
    pli_text_add(text, "'");
    text->failed = text->failed || all.failed;
    pli_text_free(&all);
}

static void complete_value(pli_text *text, const pli_opt *row) {
    pli_text        words = { 0 };
    const pli_offer offer = pli_offer_of(row, &words);
    if (offer == PLI_OFFER_WORDS || offer == PLI_OFFER_BOTH)
        pli_text_add(text, "        --%s) compadd -- %.*s; %sreturn ;;\n", row->name, (int)words.length, words.data,
                     offer == PLI_OFFER_BOTH ? "_files; " : "");
    if (offer == PLI_OFFER_FILES) pli_text_add(text, "        --%s) _files; return ;;\n", row->name);
    if (offer == PLI_OFFER_VALUE)
        pli_text_add(text, "        --%s) _message '%s'; return ;;\n", row->name,
                     row->argument != NULL ? row->argument : "X");
    text->failed = text->failed || words.failed;
    pli_text_free(&words);
}

static void offer_option(pli_text *text, const char *name, const char *help) { describe(text, "--", name, help); }

static const pli_completion_places places = {
    .behind = { "\n    elif [[ $place == '", "' ]]; then\n        compadd -- " },
    .words = pli_offer_words,
};

/* Completes a word that is not an option: a topic after help, a command's own words directly after it, else a file. */
static void complete_topics(pli_text *text) {
    const char *names[PLI_CLI_TOPICS_MAX];
    size_t      n = pli_cli_topics(names);
    pli_text_add(text, "    elif [[ $words[at] == help ]]; then\n        compadd -- ");
    pli_offer_words(text, names, n);
    pli_completion_add_places(text, &places);
    pli_text_add(text, "\n    else\n        _files\n    fi\n");
}

void pli_completion_zsh(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    /* at: index of the command; after `launch ... --`, that of the program to start, which "plait" may precede */
    pli_text_add(text, "#compdef plait\n# zsh completion of plait; written by: plait help --completion zsh\n"
                       "_plait() {\n"
                       "    local -a offers\n    local before=$words[CURRENT-1]\n    local -i at=2 i\n"
                       "    if [[ $words[CURRENT] == --*=* ]]; then\n"
                       "        before=${words[CURRENT]%%%%=*}\n        compset -P 1 '*='\n    fi\n"
                       "    for ((i = 3; i < CURRENT && at == 2; i++)); do\n"
                       "        [[ \"$words[2] $words[i]\" == 'launch --' ]] && at=$((i + 1))\n    done\n"
                       "    ((at > 2 && at < CURRENT)) && [[ ${words[at]:t} == plait ]] && at=$((at + 1))\n"
                       "    if ((CURRENT == at)); then\n        offers=(");
    for (size_t i = 0; commands[i] != NULL; i++) describe(text, "", commands[i]->name, commands[i]->summary);
    pli_text_add(text, "\n        )\n        _describe -t commands command offers\n        return\n    fi\n"
                       "    case $words[at] in\n");
    pli_completion_cases(text, &(pli_completion_case){ "offers=(", "\n        )", "$words[at+1]", complete_value,
                                                       offer_option });
    pli_text_add(text, "    esac\n    local place=\"${(j: :)words[at,CURRENT-1]}\"\n"
                       "    if [[ $words[CURRENT] == -* ]]; then\n"
                       "        _describe -o -t options option offers\n");
    complete_topics(text);
    pli_text_add(text, "}\nif [[ $funcstack[1] == _plait ]]; then\n    _plait \"$@\"\n"
                       "else\n    compdef _plait plait\nfi\n");
}
