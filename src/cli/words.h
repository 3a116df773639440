/* cli/words.h - other tools' words, answered with ours. They are never accepted: a run is what its command says. */
#ifndef PLI_CLI_WORDS_H
#define PLI_CLI_WORDS_H

#include "cli/cli.h"

/* Of commands, options and values that users may know of already. */
#define PLI_LATER "comes with a later version"

/** What to say of an option (without dashes) that is none of rows: "here it is --learning-rate". NULL: nothing. */
const char *pli_words_option(const pli_opt *rows, const char *name);
/** What to say of a value of option, by its name or as a variable spells it ("MODEL"): "here it is hinge". NULL:
 *  nothing; value may be NULL. */
const char *pli_words_value(const char *option, const char *value);
/** What to say of a command. NULL: nothing. */
const char *pli_words_command(const char *name);

#endif
