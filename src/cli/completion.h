/* cli/completion.h - what a shell may offer after the words of a command; for the writers of completion scripts, one
 * file a shell (completion_bash.c, completion_zsh.c, completion_fish.c).
 *
 * A script is written once, at installation, from the tables of commands and options. So it knows every option and
 * every choice, and asks the program nothing while the user types. */
#ifndef PLI_CLI_COMPLETION_H
#define PLI_CLI_COMPLETION_H

#include "cli/cli.h"

/* The options of a command: its own, then train's if it takes those too. */
typedef struct pli_offers {
    pli_opt *rows[2];
} pli_offers;

typedef enum pli_offer {
    PLI_OFFER_NOTHING,
    PLI_OFFER_VALUE,
    PLI_OFFER_WORDS,
    PLI_OFFER_FILES,
    PLI_OFFER_BOTH /* words, and the names of files */
} pli_offer;

/** false: no memory. Close it in any case. */
bool pli_offers_open(const pli_command *command, pli_offers *offers);
void pli_offers_close(pli_offers *offers);
/** The option behind `last` (NULL: the first) that help shows; each name once. NULL: there is none. */
const pli_opt *pli_offers_next(const pli_offers *offers, const pli_opt *last);
/** What follows the option: nothing (a flag), a value that only the user knows, one of the words that are added to
 *  `words` with blanks between, the name of a file, or one of both. A word is never a placeholder: of gossip:G there
 *  are gossip:ring and the like, of K:X nothing. */
pli_offer pli_offer_of(const pli_opt *row, pli_text *words);
/** Adds the first clause of a help text without newlines; each character of `escaped` gets `escape` before it. */
void pli_offer_help(pli_text *text, const char *help, const char *escaped, const char *escape);
/** Adds words with blanks between; n SIZE_MAX: NULL ends them. */
void pli_offer_words(pli_text *text, const char *const *words, size_t n);

/* How a shell with `case` words completes one command: by the word before, a value of that option; else its options. */
typedef struct pli_completion_case {
    const char *begin, *end; /* of the list of options                 */
    const char *first;       /* the word behind the command, expanded  */
    void (*value)(pli_text *text, const pli_opt *row);
    void (*option)(pli_text *text, const char *name, const char *help);
} pli_completion_case;
/** Adds a branch for each command: "    NAME)\n        case $before in ... esac\n        BEGIN...END ;;\n". */
void pli_completion_cases(pli_text *text, const pli_completion_case *shell);

/* How a shell completes words that are not options by their place: all words from the command to the cursor. */
typedef struct pli_completion_places {
    const char *behind[2];                                             /* stand before and after a place's words */
    void (*words)(pli_text *text, const char *const *words, size_t n); /* adds what may follow there              */
} pli_completion_places;
/** Adds the places of all commands' own words, and of the names behind one of them. The caller ends the last. */
void pli_completion_add_places(pli_text *text, const pli_completion_places *shell);

/* One script each. */
void pli_completion_bash(pli_text *text);
void pli_completion_zsh(pli_text *text);
void pli_completion_fish(pli_text *text);

#endif
