/* watch/board/record.h - TFRecord, the framing of TensorFlow's event files: u64 length, masked crc of the length,
 * bytes, masked crc of the bytes, all little-endian. Crcs are masked because the crc of bytes that contain crcs is
 * otherwise problematic (tensorflow/core/lib/hash/crc32c.h). */
#ifndef PLI_BOARD_RECORD_H
#define PLI_BOARD_RECORD_H

#include <stdio.h>

#include "base/base.h"

/** The cyclic redundancy check of Castagnoli, Bräuer and Herrmann (IEEE Trans. Commun., 1993), as in iSCSI. */
uint32_t pli_crc32c(const void *bytes, size_t n);

/** Writes one record; false: see errno. */
bool pli_record_write(FILE *file, const void *bytes, size_t n);

#endif
