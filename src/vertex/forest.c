/* See forest.h. */
#include "vertex/forest.h"

#include "base/sort.h"

enum { PIECE = 4096, LOOKED_AT = 1024 }; /* PIECE: rows of a task; whole words of bits */

typedef struct joining {
    pli_forest          *f;
    const pli_neighbors *rows;
    int64_t              first, last;
} joining;

static uint64_t bit_of(uint32_t v) { return UINT64_C(1) << (v % 64); }

static bool has(const _Atomic uint64_t *bits, uint32_t v) {
    return (atomic_load_explicit(&bits[v / 64], memory_order_relaxed) & bit_of(v)) != 0;
}

static void add(const pli_forest *f, _Atomic uint64_t *bits, uint32_t v) {
    _Atomic uint64_t *word = &bits[v / 64];
    const uint64_t    old = atomic_load_explicit(word, memory_order_relaxed);
    if ((old & bit_of(v)) != 0) return;
    if (f->alone) atomic_store_explicit(word, old | bit_of(v), memory_order_relaxed);
    else atomic_fetch_or_explicit(word, bit_of(v), memory_order_relaxed);
}

/* --- joins -------------------------------------------------------------------------------------------------------- */

/* Hangs the root `high` under `low`. false: it is no root any more. */
static bool hang(const pli_forest *f, uint32_t high, uint32_t low) {
    uint32_t none = 0;
    if (!f->alone)
        return atomic_compare_exchange_strong_explicit(&f->up[high], &none, high - low, memory_order_relaxed,
                                                       memory_order_relaxed);
    if (atomic_load_explicit(&f->up[high], memory_order_relaxed) != 0) return false;
    atomic_store_explicit(&f->up[high], high - low, memory_order_relaxed);
    return true;
}

/* Shortens the way to an ancestor. Of a root there is none: only its join may write what it has. */
static void shorten(const pli_forest *f, uint32_t v, uint32_t to) {
    if (pli_forest_parent(f, v) > to && pli_forest_parent(f, v) != v)
        atomic_store_explicit(&f->up[v], v - to, memory_order_relaxed);
}

void pli_forest_join(pli_forest *f, uint32_t u, uint32_t v) {
    uint32_t a = pli_forest_root(f, u), b = pli_forest_root(f, v);
    while (a != b) {
        const uint32_t high = a > b ? a : b, low = a > b ? b : a;
        if (hang(f, high, low)) {
            a = b = low;
        } else {
            a = pli_forest_root(f, high);
            b = pli_forest_root(f, low);
        }
    }
    shorten(f, u, a);
    shorten(f, v, a);
}

/* Joins u to the seed's tree. *top: a vertex of that tree, best its root. */
static void join_great(pli_forest *f, uint32_t u, uint32_t *top) {
    if (u <= *top || !hang(f, u, *top)) {
        pli_forest_join(f, u, f->seed);
        *top = pli_forest_root(f, f->seed);
    }
    add(f, f->great, u);
}

static void join_row(pli_forest *f, const uint32_t *near, int64_t n, uint32_t v, uint32_t *top) {
    if (!has(f->great, v)) {
        int64_t k = 0;
        while (k < n && !has(f->great, near[k])) k++;
        if (k < n) {
            join_great(f, v, top);
        } else {
            for (k = 0; k < n; k++)
                if (pli_forest_parent(f, near[k]) != pli_forest_parent(f, v)) pli_forest_join(f, near[k], v);
            if (pli_forest_root(f, v) == pli_forest_root(f, f->seed)) add(f, f->great, v);
            return;
        }
    }
    for (int64_t k = 0; k < n; k++)
        if (!has(f->great, near[k])) join_great(f, near[k], top);
}

static void join_piece(void *user, int64_t i, int32_t thread) {
    const joining       *j = user;
    const pli_neighbors *rows = j->rows;
    const int64_t        first = j->first + i * PIECE, last = pli_lesser(first + PIECE, j->last);
    uint32_t             top = pli_forest_root(j->f, j->f->seed);
    (void)thread;
    for (int64_t v = first; v < last; v++)
        join_row(j->f, rows->near + rows->start[v], rows->start[v + 1] - rows->start[v], (uint32_t)v, &top);
}

/* The vertex from which most of a thousand edges come, of several the least. */
static uint32_t find_seed(const pli_neighbors *rows, int64_t first, int64_t last) {
    uint64_t      from[LOOKED_AT];
    const int64_t begin = rows->start[first], edges = rows->start[last] - begin;
    const int64_t n = pli_lesser(edges, LOOKED_AT);
    uint32_t      seed = (uint32_t)first;
    for (int64_t k = 0; k < n; k++) from[k] = rows->near[begin + edges / n * k];
    if (n == 0 || !pli_sort_u64(n, from, NULL)) return n == 0 ? seed : rows->near[begin];
    for (int64_t k = 0, most = 0, end; k < n; k = end) {
        for (end = k + 1; end < n && from[end] == from[k];) end++;
        if (end - k <= most) continue;
        most = end - k;
        seed = (uint32_t)from[k];
    }
    return seed;
}

void pli_forest_join_rows(pli_forest *f, const pli_neighbors *rows, int64_t first, int64_t last) {
    if (first >= last) return;
    f->seed = find_seed(rows, first, last);
    add(f, f->great, f->seed);
    pli_pool_for(f->pool, (last - first + PIECE - 1) / PIECE, join_piece, &(joining){ f, rows, first, last });
}

/* --- which trees there are ---------------------------------------------------------------------------------------- */

static void split_piece(void *user, int64_t i, int32_t thread) {
    pli_forest    *f = user;
    const int64_t  first = i * PIECE, last = pli_lesser(first + PIECE, f->n);
    const uint32_t top = pli_forest_root(f, f->seed);
    (void)thread;
    for (int64_t at = first; at < last; at += 64) {
        const uint64_t great = atomic_load_explicit(&f->great[at / 64], memory_order_relaxed);
        if (great == UINT64_MAX) continue;
        for (int64_t v = at, end = pli_lesser(at + 64, last); v < end; v++) {
            if (atomic_load_explicit(&f->up[v], memory_order_relaxed) == 0 || (great >> (v - at) & 1) != 0) continue;
            const uint32_t root = pli_forest_root(f, (uint32_t)v);
            add(f, root == top ? f->great : f->small, (uint32_t)v);
            if (root != top) add(f, f->small, root);
        }
    }
}

void pli_forest_split(pli_forest *f) {
    add(f, f->great, pli_forest_root(f, f->seed));
    pli_pool_for(f->pool, (f->n + PIECE - 1) / PIECE, split_piece, f);
}

void pli_forest_forget_great(pli_forest *f) {
    for (size_t w = 0; w < f->words; w++) {
        f->small[w] |= f->great[w]; /* no task runs here */
        f->great[w] = 0;
    }
}

/* --- making ------------------------------------------------------------------------------------------------------- */

plait_status pli_forest_make(pli_forest *f, pli_pool *pool, int64_t n, plait_error *err) {
    *f = (pli_forest){ .pool = pool, .alone = pli_pool_threads(pool) == 1, .n = n, .words = pli_bit_words(n) };
    f->up = pli_calloc((size_t)n, sizeof *f->up);
    f->great = pli_calloc(f->words, sizeof *f->great);
    f->small = pli_calloc(f->words, sizeof *f->small);
    if (f->up != NULL && f->great != NULL && f->small != NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for trees of %lld vertices", (long long)n);
}

void pli_forest_destroy(pli_forest *f) {
    pli_free((void *)f->up);
    pli_free((void *)f->great);
    pli_free((void *)f->small);
    *f = (pli_forest){ 0 };
}
