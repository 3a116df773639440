/* data/formats/foreign.h - files of other programs: recognised by their first bytes; the error says what they are
 * and what makes them readable. */
#ifndef PLI_DATA_FOREIGN_H
#define PLI_DATA_FOREIGN_H

#include "data/source/source.h"

/** Fails with EFORMAT if the bytes are rows in no format that is read: packed by another program, an archive, a
 *  binary table, text of two bytes a character. Errors call the file `name`. */
plait_status pli_foreign_check(const char *name, const unsigned char *data, size_t bytes, plait_error *err);
/** The same for text that is no table, if no format was asked for: JSON, HTML, ARFF. */
plait_status pli_foreign_check_text(const pli_source *source, plait_error *err);

#endif
