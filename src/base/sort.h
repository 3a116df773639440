/* base/sort.h - radix sort of 64-bit keys with their positions, removal of repeats, an order for qsort, and the lesser
 * and the greater of two. */
#ifndef PLI_BASE_SORT_H
#define PLI_BASE_SORT_H

#include <stdbool.h>
#include <stdint.h>

/** Sorts keys [n] increasingly and stably; payload [n] (NULL: none) moves with its keys. Allocates its scratch
 *  memory; false: out of memory, and nothing changed. LSD radix sort; bytes that are equal in all keys cost no pass. */
bool pli_sort_u64(int64_t n, uint64_t *keys, uint32_t *payload);

/** Are keys strictly increasing? */
bool pli_is_increasing_u64(int64_t n, const uint64_t *keys);

/** Removes keys that equal their neighbour; returns how many are left. */
int64_t pli_unique_u64(int64_t n, uint64_t *keys);

/** The order of two doubles, the smaller first, for qsort and bsearch. */
int pli_order_f64(const void *left, const void *right);

static inline int64_t pli_lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t pli_greater(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
