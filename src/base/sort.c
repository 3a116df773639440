/* base/sort.c - radix sort of 64-bit keys.
 *
 * The least significant digit comes first (Knuth, TAOCP 3, 5.2.5, algorithm R): one stable pass for each byte,
 * lowest byte first, sorts the whole. All eight histograms are counted in one read of the keys. They also show which
 * passes would change nothing: those for a byte that is the same in every key. Keys of a table with a million rows
 * differ in three bytes, so they cost three passes, not eight. A few keys are sorted by insertion, which has no
 * histogram to clear. */
#include "base/sort.h"

#include <string.h>

#include "base/alloc.h"

enum { DIGITS = 8, VALUES = 256, FEW = 48 };

static void insertion_sort(int64_t n, uint64_t *keys, uint32_t *payload) {
    for (int64_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        uint32_t carried = payload != NULL ? payload[i] : 0;
        int64_t  at = i;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
            if (payload != NULL) payload[at] = payload[at - 1];
        }
        keys[at] = key;
        if (payload != NULL) payload[at] = carried;
    }
}

static void count_digits(int64_t n, const uint64_t *keys, int64_t count[DIGITS][VALUES]) {
    memset(count, 0, sizeof(int64_t[DIGITS][VALUES]));
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = keys[i];
        for (int d = 0; d < DIGITS; d++) count[d][(key >> (8 * d)) & 0xff]++;
    }
}

/* Turns counts into the place where the first key of each value goes. */
static void counts_to_places(int64_t count[VALUES]) {
    int64_t place = 0;
    for (int v = 0; v < VALUES; v++) {
        int64_t here = count[v];
        count[v] = place;
        place += here;
    }
}

static void pass(int64_t n, int shift, int64_t place[VALUES], const uint64_t *keys, const uint32_t *payload,
                 uint64_t *keys_out, uint32_t *payload_out) {
    if (payload == NULL) {
        for (int64_t i = 0; i < n; i++) keys_out[place[(keys[i] >> shift) & 0xff]++] = keys[i];
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t to = place[(keys[i] >> shift) & 0xff]++;
        keys_out[to] = keys[i];
        payload_out[to] = payload[i];
    }
}

static bool is_sorted(int64_t n, const uint64_t *keys) {
    for (int64_t i = 1; i < n; i++) {
        if (keys[i - 1] > keys[i]) return false;
    }
    return true;
}

/* Passes go from the caller's arrays to scratch and back; a result that ends in scratch is copied home. */
static void radix_sort(int64_t n, uint64_t *keys, uint32_t *payload, uint64_t *keys_scratch,
                       uint32_t *payload_scratch) {
    int64_t   count[DIGITS][VALUES];
    uint64_t *from = keys, *to = keys_scratch;
    uint32_t *carried = payload, *carried_to = payload != NULL ? payload_scratch : NULL;
    count_digits(n, keys, count);
    for (int d = 0; d < DIGITS; d++) {
        if (count[d][(keys[0] >> (8 * d)) & 0xff] == n) continue;
        counts_to_places(count[d]);
        pass(n, 8 * d, count[d], from, carried, to, carried_to);
        uint64_t *other = from;
        uint32_t *carried_other = carried;
        from = to, carried = carried_to;
        to = other, carried_to = carried_other;
    }
    if (from == keys) return;
    memcpy(keys, from, (size_t)n * sizeof *keys);
    if (payload != NULL) memcpy(payload, carried, (size_t)n * sizeof *payload);
}

bool pli_sort_u64(int64_t n, uint64_t *keys, uint32_t *payload) {
    if (n <= FEW) {
        insertion_sort(n, keys, payload);
        return true;
    }
    if (is_sorted(n, keys)) return true;
    size_t         item = sizeof *keys + (payload != NULL ? sizeof *payload : 0);
    unsigned char *scratch = (uint64_t)n > SIZE_MAX / 2 / item ? NULL : pli_aligned((size_t)n * item);
    if (scratch == NULL) return false;
    radix_sort(n, keys, payload, (uint64_t *)scratch, (uint32_t *)(scratch + (size_t)n * sizeof *keys));
    pli_free(scratch);
    return true;
}

bool pli_is_increasing_u64(int64_t n, const uint64_t *keys) {
    for (int64_t i = 1; i < n; i++) {
        if (keys[i - 1] >= keys[i]) return false;
    }
    return true;
}

int64_t pli_unique_u64(int64_t n, uint64_t *keys) {
    if (n <= 0) return 0;
    int64_t left = 1;
    for (int64_t i = 1; i < n; i++) {
        if (keys[i] != keys[left - 1]) keys[left++] = keys[i];
    }
    return left;
}

int pli_order_f64(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}
