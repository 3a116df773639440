/* vertex/owner.h - vertices are dealt out in order: rank, or part, r has first[r] .. first[r + 1] - 1, perhaps none. */
#ifndef PLI_VERTEX_OWNER_H
#define PLI_VERTEX_OWNER_H

#include <stdint.h>

/** Who has the vertex? The last of n whose first one is not above it. */
static inline int32_t pli_owner_of(const int64_t *first, int32_t n, int64_t vertex) {
    int32_t low = 0, high = n - 1;
    while (low < high) {
        const int32_t middle = low + (high - low + 1) / 2;
        if (first[middle] <= vertex) low = middle;
        else high = middle - 1;
    }
    return low;
}

#endif
