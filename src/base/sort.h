/* base/sort.h - radix sort of 64-bit keys with their positions, and removal of repeats. */
#ifndef PLI_BASE_SORT_H
#define PLI_BASE_SORT_H

#include <stdbool.h>
#include <stdint.h>

/** Sorts keys [n] increasingly, stable, and carries payload [n] (NULL: none) along. scratch memory is
 *  allocated inside; false: out of memory (nothing changed). LSD radix, bytes that are all equal skipped. */
bool pli_sort_u64(int64_t n, uint64_t *keys, uint32_t *payload);

/** Are keys strictly increasing? */
bool pli_is_increasing_u64(int64_t n, const uint64_t *keys);

/** Removes neighbours that are equal; returns how many are left. */
int64_t pli_unique_u64(int64_t n, uint64_t *keys);

#endif
