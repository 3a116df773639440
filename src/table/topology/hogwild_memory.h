/* table/topology/hogwild_memory.h - the memory that Hogwild's workers share, and how they read and write it.
 *
 * This is the one file that breaks the rule that nobody writes what others read: it holds the relaxed atomics on
 * values. A value is read and written whole, in no order with others; what is read of a row may be of several moments.
 *
 * What bounds Hogwild are lines of memory that travel between the cores which write them: a dense row and its rule's
 * state lie side by side, so that a step to a short row moves one line. */
#ifndef PLI_TABLE_HOGWILD_MEMORY_H
#define PLI_TABLE_HOGWILD_MEMORY_H

#include <stdatomic.h>

#include "table/state/values.h"
#include "table/table.h"
#include "table/topology/hogwild_rows.h"

enum { PLI_HOGWILD_PACK = 64 }; /* rows that are handled together */

/* Lies in memory that all ranks of the process see. Whoever closes last frees what it holds. */
struct pli_hogwild {
    pli_spec         spec;
    _Atomic int32_t  refs;
    bool             opened; /* the creator sets it before the others look (a collective lies between) */
    unsigned char   *dense;  /* a row's values, then its rule's slots: a step touches one line */
    int64_t          stride; /* bytes from row to row of dense */
    int64_t         *paid;   /* dense and lazy: units up to which each row has paid */
    unsigned char   *penalty; /* dense: factors of the penalties, or NULL: 1 */
    pli_hogwild_rows rows;   /* sparse */
    _Alignas(64) _Atomic int64_t examples; /* lazy penalties: rows of data that were applied so far */
};

/* Where a row lies. */
typedef struct pli_hogwild_row {
    void    *values, *slot[PLI_RULE_SLOTS_MAX];
    int64_t *paid;
    void    *penalty;
} pli_hogwild_row;

static inline int32_t pli_hogwild_slots(const pli_spec *spec) { return spec->ruled ? spec->rule.ops->slots : 0; }

static inline pli_hogwild_row pli_hogwild_dense_row(const struct pli_hogwild *h, int64_t row, int64_t row_bytes) {
    pli_hogwild_row p = { .values = h->dense + row * h->stride };
    for (int32_t k = 0; k < pli_hogwild_slots(&h->spec); k++) p.slot[k] = pli_at(p.values, (k + 1) * row_bytes);
    p.paid = h->paid == NULL ? NULL : &h->paid[row];
    p.penalty = h->penalty == NULL ? NULL : h->penalty + row * row_bytes;
    return p;
}

static inline pli_hogwild_row pli_hogwild_place(const struct pli_hogwild *h, int64_t row, int64_t row_bytes) {
    int64_t within;
    if (h->spec.rows > 0) return pli_hogwild_dense_row(h, row, row_bytes);
    const pli_chunk *chunk = &h->rows.chunk[pli_hogwild_chunk_of(row, &within)];
    pli_hogwild_row  p = { .values = pli_at(chunk->values, within * row_bytes) };
    for (int k = 0; k < PLI_RULE_SLOTS_MAX; k++)
        p.slot[k] = chunk->slot[k] == NULL ? NULL : pli_at(chunk->slot[k], within * row_bytes);
    p.paid = chunk->paid == NULL ? NULL : &chunk->paid[within];
    return p;
}

/* --- relaxed atomics ---------------------------------------------------------------------------------------------- */

static inline void pli_relaxed_load_row(const void *from, void *to, int64_t bytes, int64_t width) {
    if (width == 4) {
        for (int64_t i = 0; i < bytes; i += 4)
            __atomic_load((const uint32_t *)pli_at_const(from, i), (uint32_t *)pli_at(to, i), __ATOMIC_RELAXED);
    } else {
        for (int64_t i = 0; i < bytes; i += 8)
            __atomic_load((const uint64_t *)pli_at_const(from, i), (uint64_t *)pli_at(to, i), __ATOMIC_RELAXED);
    }
}

static inline void pli_relaxed_store_row(const void *from, void *to, int64_t bytes, int64_t width) {
    if (width == 4) {
        for (int64_t i = 0; i < bytes; i += 4)
            __atomic_store((uint32_t *)pli_at(to, i), (uint32_t *)(uintptr_t)pli_at_const(from, i), __ATOMIC_RELAXED);
    } else {
        for (int64_t i = 0; i < bytes; i += 8)
            __atomic_store((uint64_t *)pli_at(to, i), (uint64_t *)(uintptr_t)pli_at_const(from, i), __ATOMIC_RELAXED);
    }
}

static inline void pli_relaxed_add_f32(float *to, float x) {
    float was, sum;
    __atomic_load(to, &was, __ATOMIC_RELAXED);
    do sum = was + x;
    while (!__atomic_compare_exchange(to, &was, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline void pli_relaxed_add_f64(double *to, double x) {
    double was, sum;
    __atomic_load(to, &was, __ATOMIC_RELAXED);
    do sum = was + x;
    while (!__atomic_compare_exchange(to, &was, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline void pli_relaxed_add_i64(int64_t *to, int64_t x) { /* wraps around */
    __atomic_fetch_add(to, x, __ATOMIC_RELAXED);
}

/* Any other combine: a value at a time, by compare and swap, so that nothing is lost. */
static inline void pli_relaxed_fold(const pli_merge *merge, void *to, const void *x) {
    uint64_t was = 0, next;
    uint32_t was_4 = 0, next_4;
    if (merge->width == 4) {
        __atomic_load((uint32_t *)to, &was_4, __ATOMIC_RELAXED);
        do {
            next_4 = was_4;
            merge->fold(1, x, &next_4);
        } while (!__atomic_compare_exchange((uint32_t *)to, &was_4, &next_4, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return;
    }
    __atomic_load((uint64_t *)to, &was, __ATOMIC_RELAXED);
    do {
        next = was;
        merge->fold(1, x, &next);
    } while (!__atomic_compare_exchange((uint64_t *)to, &was, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline float pli_relaxed_load_f32(const float *from) {
    float x;
    __atomic_load(from, &x, __ATOMIC_RELAXED);
    return x;
}

static inline void pli_relaxed_store_f32(float *to, float x) { __atomic_store(to, &x, __ATOMIC_RELAXED); }

static inline int64_t pli_relaxed_load_i64(const int64_t *from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
static inline void    pli_relaxed_store_i64(int64_t x, int64_t *to) { __atomic_store_n(to, x, __ATOMIC_RELAXED); }

/* --- single values: hogwild_single.c ------------------------------------------------------------------------------ */

/** Is the call one on the commonest table, of single float32 values by key? */
static inline bool pli_hogwild_is_single(const pli_spec *spec, const pli_rows *rows) {
    return spec->rows > 0 && spec->cols == 1 && spec->type == PLAIT_F32 && spec->ruled && rows->keys != NULL;
}
void pli_hogwild_get_singles(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, float *values);
/** The rule is applied to keys [n], n <= PLI_HOGWILD_PACK, which differ. */
void pli_hogwild_apply_singles(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, const plait_step *step,
                               int64_t examples, const float *g);

#endif
