/* Parts the rows of a leaf that is split. Each chunk of rows parts its own, and when all know how many rows go left in
 * the chunks before, each puts its two parts where they belong: both passes run on all threads, and the order of the
 * rows is the same for any number of them. */
#include <string.h>

#include "learn/trees/grow.h"

enum { ROWS = 4096 }; /* rows that a thread moves at once */

typedef struct moving {
    const pli_grower *g;
    const uint32_t   *order;
    int64_t           n, begin;
    const uint8_t    *column; /* of the feature; NULL: sparse */
    int32_t           used;
    uint8_t           goes_left[PLI_BINS_MOST + 1]; /* [bin] 1: its rows go left */
    const uint64_t   *side; /* what another worker says of the leaf's rows; NULL: this one sees it by itself */
    uint32_t         *to;   /* = order, in the second pass */
    int64_t          *left; /* [chunks + 1] how many of each chunk go left; then how many of the chunks before it */
} moving;

static bool goes_left(const moving *m, uint32_t row) {
    const int32_t bin = m->column != NULL ? m->column[row] : pli_bin_rows_at(m->g->rows, m->g->bins, row, m->used);
    return m->goes_left[bin] != 0;
}

/* Rows of the usual kind, n of them; returns how many go left. Both sides are written: no branch to guess. */
static int64_t part_dense(const moving *m, int64_t n, const uint32_t *order, uint32_t *left, uint32_t *right) {
    const uint8_t *column = m->column, *is_left = m->goes_left;
    int64_t        lefts = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t row = order[i];
        left[lefts] = row;
        right[i - lefts] = row;
        lefts += is_left[column[row]];
    }
    return lefts;
}

static void part_chunk(void *user, int64_t c, int32_t thread) {
    const moving *m = user;
    const int64_t first = c * ROWS, end = first + ROWS < m->n ? first + ROWS : m->n;
    uint32_t     *left = m->g->moved[0] + m->begin + first, *right = m->g->moved[1] + m->begin + first;
    int64_t       lefts = 0, rights = 0;
    (void)thread;
    if (m->side == NULL && m->column != NULL) {
        m->left[c] = part_dense(m, end - first, m->order + first, left, right);
        return;
    }
    for (int64_t i = first; i < end; i++) {
        const uint32_t row = m->order[i];
        const bool     is_left = m->side != NULL ? (m->side[i / 64] >> (i % 64) & 1) != 0 : goes_left(m, row);
        left[lefts] = row;
        right[rights] = row;
        lefts += is_left;
        rights += !is_left;
    }
    m->left[c] = lefts;
}

static void join_chunk(void *user, int64_t c, int32_t thread) {
    const moving *m = user;
    const int64_t first = c * ROWS, n = first + ROWS < m->n ? ROWS : m->n - first, chunks = (m->n + ROWS - 1) / ROWS;
    const int64_t lefts = m->left[c + 1] - m->left[c], rights_before = first - m->left[c];
    (void)thread;
    memcpy(m->to + m->left[c], m->g->moved[0] + m->begin + first, (size_t)lefts * sizeof *m->to);
    memcpy(m->to + m->left[chunks] + rights_before, m->g->moved[1] + m->begin + first,
           (size_t)(n - lefts) * sizeof *m->to);
}

static moving moving_of(const pli_grower *g, const pli_growing_leaf *leaf) {
    const pli_split    *s = &leaf->split;
    const pli_bin_rows *r = g->rows;
    const int32_t       missing = g->bins->missing[s->used] ? g->bins->count[s->used] : -1;
    moving m = { .g = g, .order = g->order + leaf->begin, .n = leaf->n, .begin = leaf->begin, .used = s->used,
                 .side = leaf->side, .to = g->order + leaf->begin };
    for (int32_t b = 0; b <= PLI_BINS_MOST; b++)
        m.goes_left[b] = s->by_set ? pli_set_has(s->set, b) : b == missing ? s->missing_left : b <= s->bin;
    if (r->dense != NULL) m.column = r->column[s->used];
    return m;
}

typedef struct telling {
    moving    m;
    uint64_t *side;
} telling;

static void tell_chunk(void *user, int64_t c, int32_t thread) {
    const telling *t = user;
    const int64_t  first = c * ROWS, end = first + ROWS < t->m.n ? first + ROWS : t->m.n;
    (void)thread;
    for (int64_t i = first; i < end; i++)
        t->side[i / 64] |= (uint64_t)goes_left(&t->m, t->m.order[i]) << (i % 64);
}

void pli_part_sides(const pli_grower *g, const pli_growing_leaf *leaf, uint64_t *side) {
    telling t = { .m = moving_of(g, leaf), .side = side };
    _Static_assert(ROWS % 64 == 0, "no word belongs to two chunks");
    memset(side, 0, (size_t)(leaf->n + 63) / 64 * sizeof *side);
    pli_pool_for(g->run->pool, (leaf->n + ROWS - 1) / ROWS, tell_chunk, &t);
}

int64_t pli_part_rows(pli_grower *g, const pli_growing_leaf *leaf) {
    const int64_t chunks = (leaf->n + ROWS - 1) / ROWS;
    moving        m = moving_of(g, leaf);
    m.left = pli_array((size_t)chunks + 1, sizeof *m.left);
    if (m.left == NULL) return -1;
    pli_pool_for(g->run->pool, chunks, part_chunk, &m);
    int64_t lefts = 0;
    for (int64_t c = 0; c < chunks; c++) {
        const int64_t own = m.left[c];
        m.left[c] = lefts;
        lefts += own;
    }
    m.left[chunks] = lefts;
    pli_pool_for(g->run->pool, chunks, join_chunk, &m);
    pli_free(m.left);
    return lefts;
}
