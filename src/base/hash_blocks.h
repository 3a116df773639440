/* base/hash_blocks.h - SHA-256 by the processor's own instructions; for hash.c and its test. */
#ifndef PLI_BASE_HASH_BLOCKS_H
#define PLI_BASE_HASH_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

extern const uint32_t pli_sha256_k[64]; /* the constants of FIPS 180-4, section 4.2.2 */

/** Adds blocks of 64 bytes to the state. The processor must have SHA and SSE4.1; x86 only. */
void pli_sha256_blocks_shani(uint32_t state[8], const uint8_t *block, size_t blocks);

#endif
