/* cli/paths.h - looks for the files that a command reads, and for the place of those that it writes, before its work
 * begins. Refuses a command that would write to a file that it reads, or twice to the same file: a typo would destroy
 * the data. */
#ifndef PLI_CLI_PATHS_H
#define PLI_CLI_PATHS_H

#include "cli/cli.h"

typedef struct pli_path {
    const char *option; /* "--metrics" */
    const char *path;   /* NULL: not given */
    bool        a_rank; /* it also stands for PATH.RANK, if ranks are processes */
} pli_path;

/** data [n_data]: values of --data. false: two paths are the same file; it has printed which. Only regular files count.
 */
bool pli_paths_apart(const char *command, const pli_path *written, size_t n_written, const pli_path *read,
                     size_t n_read, const pli_text_list *data);

/** Can all files that the names stand for be opened? Errors: EIO one is not there or may not be read, or nothing
 *  matches. */
plait_status pli_paths_check_read(const char *const *names, int64_t n, plait_error *err);

/** Could the file be written? It is not: what would be its temporary file goes again. What is no regular file is not
 *  touched. Errors: those of pli_outfile_open. */
plait_status pli_paths_check_write(const char *path, plait_error *err);

/** Are both names given, and the same but for slashes at the end? */
bool pli_paths_same_directory(const char *a, const char *b);

#endif
