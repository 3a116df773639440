/* watch/board/record.h - TFRecord, the framing of TensorFlow's event files: u64 length, masked crc of it, bytes, masked
 * crc of these, all little-endian. The mask turns a crc of bytes that contain crcs into one that is not predictable
 * from them (tensorflow/core/lib/hash/crc32c.h). */
#ifndef PLI_BOARD_RECORD_H
#define PLI_BOARD_RECORD_H

#include <stdio.h>

#include "base/base.h"

/** The cyclic redundancy check of Castagnoli, Bräuer and Herrmann (IEEE Trans. Commun., 1993), as iSCSI has it. */
uint32_t pli_crc32c(const void *bytes, size_t n);

/** Writes one record; false: see errno. */
bool pli_record_write(FILE *file, const void *bytes, size_t n);

#endif
