/* See forest.h. */
#include "vertex/forest.h"

#include "base/sort.h"

enum { PIECE = 4096, LOOKED_AT = 1024 }; /* PIECE: rows of a task; whole words of bits */

typedef struct joining {
    pli_forest          *f;
    const pli_neighbors *rows;
    int64_t              first, last;
    _Atomic uint64_t    *later; /* [words] rows */
} joining;

static uint64_t bit_of(uint32_t v) { return UINT64_C(1) << (v % 64); }

static bool has(const _Atomic uint64_t *bits, uint32_t v) {
    return (atomic_load_explicit(&bits[v / 64], memory_order_relaxed) & bit_of(v)) != 0;
}

/* true: v is new there. In one order with all others and with is_also. */
static bool add(const pli_forest *f, _Atomic uint64_t *bits, uint32_t v) {
    _Atomic uint64_t *word = &bits[v / 64];
    const uint64_t    old = atomic_load_explicit(word, memory_order_relaxed);
    if ((old & bit_of(v)) != 0) return false;
    if (!f->alone) return (atomic_fetch_or_explicit(word, bit_of(v), memory_order_seq_cst) & bit_of(v)) == 0;
    atomic_store_explicit(word, old | bit_of(v), memory_order_relaxed);
    return true;
}

static bool is_also(const _Atomic uint64_t *bits, uint32_t v) {
    return (atomic_load_explicit(&bits[v / 64], memory_order_seq_cst) & bit_of(v)) != 0;
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

/* A vertex that comes to be both great and linked is joined to the seed by whom comes second, so by one at least. */
static void add_great(pli_forest *f, uint32_t v) {
    if (add(f, f->great, v) && is_also(f->linked, v)) pli_forest_join(f, v, f->seed);
}

static void link(pli_forest *f, uint32_t v) {
    if (add(f, f->linked, v) && is_also(f->great, v)) pli_forest_join(f, v, f->seed);
}

static void join_edge(pli_forest *f, uint32_t u, uint32_t v) {
    link(f, u);
    link(f, v);
    if (pli_forest_parent(f, u) != pli_forest_parent(f, v)) pli_forest_join(f, u, v);
}

/* Is the row's vertex in the great tree, or one that it has an edge from? Then all are. */
static bool join_great_row(pli_forest *f, const uint32_t *near, int64_t n, uint32_t v) {
    int64_t k = 0;
    while (!has(f->great, v) && k < n && !has(f->great, near[k])) k++;
    if (k == n) return n == 0;
    add_great(f, v);
    for (k = 0; k < n; k++)
        if (!has(f->great, near[k])) add_great(f, near[k]);
    return true;
}

static void join_small_row(pli_forest *f, const uint32_t *near, int64_t n, uint32_t v) {
    for (int64_t k = 0; k < n; k++) join_edge(f, near[k], v);
    if (pli_forest_root(f, v) == pli_forest_root(f, f->seed)) add_great(f, v);
}

static const uint32_t *row_of(const joining *j, int64_t v, int64_t *n_out) {
    *n_out = j->rows->start[v + 1] - j->rows->start[v];
    return j->rows->near + j->rows->start[v];
}

/* Leaves rows that are not near the great tree yet for later: by then most are, and need no parents. */
static void join_piece(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    const int64_t  first = j->first + i * PIECE, last = pli_lesser(first + PIECE, j->last);
    (void)thread;
    for (int64_t v = first, n; v < last; v++) {
        const uint32_t *near = row_of(j, v, &n);
        if (!join_great_row(j->f, near, n, (uint32_t)v)) add(j->f, j->later, (uint32_t)v);
    }
}

static void join_later(void *user, int64_t i, int32_t thread) {
    const joining *j = user;
    const size_t   first = (size_t)i * (PIECE / 64), end = first + PIECE / 64;
    (void)thread;
    for (size_t w = first; w < end && w < j->f->words; w++)
        for (uint64_t left = j->later[w]; left != 0; left &= left - 1) {
            const uint32_t  v = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(left);
            int64_t         n;
            const uint32_t *near = row_of(j, v, &n);
            if (!join_great_row(j->f, near, n, v)) join_small_row(j->f, near, n, v);
        }
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
    joining j = { f, rows, first, last, (_Atomic uint64_t *)f->small };
    if (f->n == 0) return;
    f->seed = first < last ? find_seed(rows, first, last) : 0; /* so great has one vertex at least */
    add_great(f, f->seed);
    link(f, f->seed);
    pli_pool_for(f->pool, (last - first + PIECE - 1) / PIECE, join_piece, &j);
    pli_pool_for(f->pool, (f->n + PIECE - 1) / PIECE, join_later, &j);
}

/* --- which trees there are ---------------------------------------------------------------------------------------- */

void pli_forest_split(pli_forest *f) {
    const uint32_t top = f->n > 0 ? pli_forest_root(f, f->seed) : 0;
    for (size_t w = 0; w < f->words; w++)
        for (uint64_t left = f->linked[w] & ~f->great[w]; left != 0; left &= left - 1) { /* no task runs here */
            const uint32_t v = (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(left);
            if (pli_forest_root(f, v) == top) add(f, f->great, v);
        }
    for (size_t w = 0; w < f->words; w++) f->small[w] = f->linked[w] & ~f->great[w];
}

void pli_forest_forget_great(pli_forest *f) {
    for (size_t w = 0; w < f->words; w++)
        for (uint64_t left = f->great[w]; left != 0; left &= left - 1)
            pli_forest_join(f, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(left), f->seed);
    for (size_t w = 0; w < f->words; w++) {
        f->small[w] |= f->great[w];
        f->great[w] = 0;
    }
}

/* --- making ------------------------------------------------------------------------------------------------------- */

plait_status pli_forest_make(pli_forest *f, pli_pool *pool, int64_t n, plait_error *err) {
    *f = (pli_forest){ .pool = pool, .alone = pli_pool_threads(pool) == 1, .n = n, .words = pli_bit_words(n) };
    f->up = pli_calloc((size_t)n, sizeof *f->up);
    f->great = pli_calloc(f->words, sizeof *f->great);
    f->linked = pli_calloc(f->words, sizeof *f->linked);
    f->small = pli_calloc(f->words, sizeof *f->small);
    if (f->up != NULL && f->great != NULL && f->linked != NULL && f->small != NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for trees of %lld vertices", (long long)n);
}

void pli_forest_destroy(pli_forest *f) {
    pli_free((void *)f->up);
    pli_free((void *)f->great);
    pli_free((void *)f->linked);
    pli_free(f->small);
    *f = (pli_forest){ 0 };
}
