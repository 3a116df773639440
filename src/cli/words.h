/* cli/words.h - words of other tools, for which errors suggest ours. They are never accepted as options or values. */
#ifndef PLI_CLI_WORDS_H
#define PLI_CLI_WORDS_H

#include "cli/cli.h"

/* For options and values that users may expect. */
#define PLI_LATER "comes with a later version"

/** A hint for an option (without dashes) that is not in rows: "here it is --learning-rate". NULL: none. */
const char *pli_words_option(const pli_opt *rows, const char *name);
/** A hint for a value of option, whose name may be spelled as a variable's ("MODEL"): "here it is hinge". NULL: none;
 *  value may be NULL. */
const char *pli_words_value(const char *option, const char *value);
/** A hint for a command. NULL: none. */
const char *pli_words_command(const char *name);

#endif
