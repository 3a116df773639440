/* data/formats/foreign.h - files of other programs: known by their first bytes, and named with what makes them
 * readable. */
#ifndef PLI_DATA_FOREIGN_H
#define PLI_DATA_FOREIGN_H

#include "data/source/source.h"

/** Fails with EFORMAT where the bytes are no rows in any format that is read: packed otherwise, an archive, a binary
 *  table, text of two bytes a character. name is for messages. */
plait_status pli_foreign_check(const char *name, const unsigned char *data, size_t bytes, plait_error *err);
/** The same of text that is no table, where the format is for the content to say: JSON, HTML, Vowpal Wabbit. */
plait_status pli_foreign_check_text(const pli_source *source, plait_error *err);

#endif
