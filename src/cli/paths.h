/* cli/paths.h - what a command writes must be none of what it reads, nor twice the same: a slip of the hand would cost
 * the data. */
#ifndef PLI_CLI_PATHS_H
#define PLI_CLI_PATHS_H

#include "cli/cli.h"

typedef struct pli_path {
    const char *option; /* "--metrics" */
    const char *path;   /* NULL: not given */
    bool        a_rank; /* PATH.RANK as well, where ranks are processes */
} pli_path;

/** data [n_data]: as --data takes it. false: two are the same file; said. What is no regular file does not count. */
bool pli_paths_apart(const char *command, const pli_path *written, size_t n_written, const pli_path *read,
                     size_t n_read, const pli_text_list *data);

#endif
