/* cli/lines.h - where a command's lines go: to a file that appears when it is complete, or to stdout. They are written
 * in large pieces. */
#ifndef PLI_CLI_LINES_H
#define PLI_CLI_LINES_H

#include "base/base.h"

typedef struct pli_lines {
    pli_outfile *file; /* NULL: stdout                                        */
    pli_text     text; /* the caller adds lines to it, and calls pli_lines_go */
} pli_lines;

/** path NULL: stdout. Errors: EIO. */
plait_status pli_lines_open(pli_lines *lines, const char *path, plait_error *err);
/** Writes the text if there is enough of it. Errors: ENOMEM, EIO; END stdout takes no more (pli_cli_end says why). */
plait_status pli_lines_go(pli_lines *lines, plait_error *err);
/** Writes the rest, and makes the file appear if status is good; it is what the lines' maker answered. Returns the
 *  first failure. Call it also if open has failed. */
plait_status pli_lines_close(pli_lines *lines, plait_status status, plait_error *err);

#endif
