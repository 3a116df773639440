/* The lines of predict, transform and recommend. See lines.h. */
#include "cli/lines.h"

#include <stdio.h>

enum { PIECE_BYTES = 1 << 16 };

static plait_status drain(pli_lines *lines, size_t at_least, plait_error *err) {
    const size_t n = lines->text.length;
    if (lines->text.failed) return pli_fail(err, PLAIT_ENOMEM, "out of memory for lines");
    if (n < at_least || n == 0) return PLAIT_OK;
    lines->text.length = 0;
    if (lines->file != NULL) return pli_outfile_write(lines->file, lines->text.data, n, err);
    return fwrite(lines->text.data, 1, n, stdout) == n ? PLAIT_OK : PLAIT_END;
}

plait_status pli_lines_open(pli_lines *lines, const char *path, plait_error *err) {
    *lines = (pli_lines){ 0 };
    return path != NULL ? pli_outfile_open(path, &lines->file, err) : PLAIT_OK;
}

plait_status pli_lines_go(pli_lines *lines, plait_error *err) { return drain(lines, PIECE_BYTES, err); }

plait_status pli_lines_close(pli_lines *lines, plait_status status, plait_error *err) {
    if (status == PLAIT_OK) status = drain(lines, 0, err);
    if (lines->file != NULL && status >= 0) status = pli_outfile_commit(&lines->file, err);
    else if (lines->file != NULL) pli_outfile_abandon(&lines->file);
    pli_text_free(&lines->text);
    return status;
}
