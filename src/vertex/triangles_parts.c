/* Triangles where each process has its own part of the graph alone. See triangles.c, whose counts these are.
 *
 * A triangle u, v, w is found at u, whose rank is the lowest: v is in the row of u, and w in those of u and v. The row
 * of v may lie with another worker. So rows go into a table, and a worker reads all others' once, some at a time:
 *
 *     first clock    how many neighbors of a higher rank each vertex has: the table NAME.lengths, by which every worker
 *                    knows where each row begins
 *     second clock   the rows themselves: NAME.rows, two vertices in each whole number
 *     third clock    each worker goes through all rows with its own in mind, and pushes what it has counted
 *
 * In rows vertices stand by their numbers, so those of a row that are in the piece at hand stand together. All pushes
 * follow from the text, or from tables: who takes over a dead worker's part reads that part again for the first two
 * clocks, and its rows from the table for the third.
 *
 * Memory: of edges 4 bytes for each of the own part and of the table's share, and a piece; of vertices 16 bytes, and 8
 * for each thread. Bytes: 4 for each edge and worker. Paper: Arifuzzaman, Khan and Marathe, "PATRIC", CIKM 2013 (rows
 * of neighbors of a higher rank, by parts). */
#include <stdio.h>

#include "vertex/direct.h"
#include "vertex/triangles.h"

enum { PIECE = 1 << 20 /* vertices of rows that are read at once */, TOGETHER = 64 /* rows of a thread's piece */ };

/* Rows of vertices first .. last - 1, as the table has them. */
typedef struct slab {
    int64_t  first, last, cell; /* its first cell */
    int64_t *cells;
} slab;

typedef struct counting {
    pli_direct  *d;
    plait_table *lengths, *rows;
    int64_t     *start;    /* [n + 1] where each row begins, in vertices */
    slab         mine, piece; /* rows of the share that is counted, and those at hand */
    int64_t    **count;    /* [threads][n] */
    uint64_t   **mark;     /* [threads][words] */
    bool        *failed;   /* [threads] */
} counting;

static plait_status no_memory(const counting *c) {
    return pli_fail(c->d->err, PLAIT_ENOMEM, "%s: no memory for %lld edges", c->d->name, (long long)c->d->edges->m);
}

static bool is_above(const plait_edges *e, int64_t a, int64_t than) {
    return e->degree[a] != e->degree[than] ? e->degree[a] > e->degree[than] : a > than;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static plait_status make_table(const counting *c, const char *what, int64_t rows, plait_table **out) {
    plait_table_opts t;
    char             name[64];
    plait_table_opts_init(&t);
    snprintf(name, sizeof name, "%s.%s", c->d->name, what);
    t.name = name;
    t.type = PLAIT_I64;
    t.rows = rows;
    return plait_table_create(c->d->job, &t, out);
}

/* Each edge of the simple graph is in the row of its lower end. */
static plait_status make_tables(counting *c) {
    const plait_edges *e = c->d->edges;
    int64_t            twice = 0;
    for (int64_t v = 0; v < e->n; v++) twice += e->degree[v];
    PLI_TRY(make_table(c, "lengths", e->n, &c->lengths));
    return make_table(c, "rows", twice / 4 + 1, &c->rows);
}

/* Pushes what worker `home` pushes in a clock, in its place. */
typedef plait_status again_fn(counting *c, int32_t home);

/* The worker has pushed for its own part. It does so for those of the dead that are its own in this clock, and ends the
 * clock. Then what all have pushed can be read. */
static plait_status end_clock(counting *c, again_fn *again) {
    pli_direct  *d = c->d;
    plait_status status;
    for (int32_t w = 0; d->job->layout.replicas > 1 && w < d->workers; w++)
        if (w != d->rank && plait_job_holder(d->job, w, 0) == d->rank) PLI_TRY(again(c, w));
    while ((status = plait_job_clock(d->job)) == PLAIT_STAND_IN)
        for (int32_t w = 0; w < d->workers; w++)
            if (plait_job_inherits(d->job, w, 0)) PLI_TRY(again(c, w));
    if (status == PLAIT_OK && !d->all_is_read) status = plait_job_barrier(d->job);
    return status;
}

/* --- rows go into the tables -------------------------------------------------------------------------------------- */

static int64_t length_of(const counting *c, const pli_part *part, int64_t local) {
    const int64_t u = pli_part_vertex(part, local);
    int64_t       n = 0;
    for (int64_t k = part->rows.start[local]; k < part->rows.start[local + 1]; k++)
        n += is_above(c->d->edges, pli_part_vertex(part, part->rows.near[k]), u);
    return n;
}

static plait_status push_lengths(counting *c, const pli_part *part) {
    int64_t *length = pli_array((size_t)part->owned, sizeof *length);
    if (length == NULL) return no_memory(c);
    for (int64_t i = 0; i < part->owned; i++) length[i] = length_of(c, part, part->own + i);
    const plait_status status =
        part->owned > 0 ? plait_table_inc_range(c->lengths, pli_part_vertex(part, part->own), part->owned, length, 0)
                        : PLAIT_OK;
    pli_free(length);
    return status;
}

static bool make_slab(const counting *c, int64_t first, int64_t last, slab *s) {
    *s = (slab){ .first = first, .last = last, .cell = c->start[first] / 2 };
    s->cells = pli_calloc((size_t)((c->start[last] + 1) / 2 - s->cell) + 1, sizeof *s->cells);
    return s->cells != NULL;
}

static int64_t cells_of(const counting *c, const slab *s) { return (c->start[s->last] + 1) / 2 - s->cell; }

/* Entry k of all rows. */
static uint32_t entry(const slab *s, int64_t k) {
    return (uint32_t)((uint64_t)s->cells[k / 2 - s->cell] >> (k % 2 * 32));
}

/* A cell may have entries of two workers: each pushes its own half of it, beside zeros. */
static void fill(const counting *c, const pli_part *part, slab *s) {
    for (int64_t i = part->own; i < part->own + part->owned; i++) {
        const int64_t u = pli_part_vertex(part, i);
        int64_t       to = c->start[u];
        for (int64_t k = part->rows.start[i]; k < part->rows.start[i + 1]; k++) {
            const int64_t v = pli_part_vertex(part, part->rows.near[k]);
            if (!is_above(c->d->edges, v, u)) continue;
            int64_t *cell = &s->cells[to / 2 - s->cell];
            *cell = (int64_t)((uint64_t)*cell | (uint64_t)v << (to % 2 * 32));
            to++;
        }
    }
}

static plait_status push_rows(counting *c, const pli_part *part, int32_t worker, slab *s) {
    const int64_t *first = c->d->cut->first + worker;
    if (!make_slab(c, first[0], first[1], s)) return no_memory(c);
    fill(c, part, s);
    const int64_t n = cells_of(c, s);
    return n > 0 ? plait_table_inc_range(c->rows, s->cell, n, s->cells, 0) : PLAIT_OK;
}

static plait_status lengths_again(counting *c, int32_t worker) {
    pli_part part;
    PLI_TRY(pli_part_make(c->d->cut, worker, false, &part, c->d->err));
    const plait_status status = push_lengths(c, &part);
    pli_part_free(&part);
    return status;
}

static plait_status rows_again(counting *c, int32_t worker) {
    pli_part part;
    slab     s = { 0 };
    PLI_TRY(pli_part_make(c->d->cut, worker, false, &part, c->d->err));
    const plait_status status = push_rows(c, &part, worker, &s);
    pli_free(s.cells);
    pli_part_free(&part);
    return status;
}

/* Where rows begin. */
static plait_status find_starts(counting *c) {
    const int64_t n = c->d->edges->n;
    int64_t       to = 0;
    c->start = pli_array((size_t)n + 1, sizeof *c->start);
    if (c->start == NULL) return no_memory(c);
    PLI_TRY(plait_table_get_range(c->lengths, 0, n, c->start));
    for (int64_t v = 0; v < n; v++) {
        const int64_t length = c->start[v];
        c->start[v] = to;
        to += length;
    }
    c->start[n] = to;
    return PLAIT_OK;
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

static bool has_scratch(counting *c, int32_t thread) {
    const int64_t n = c->d->edges->n;
    if (c->count[thread] == NULL) c->count[thread] = pli_calloc((size_t)n, sizeof **c->count);
    if (c->mark[thread] == NULL) c->mark[thread] = pli_calloc(pli_bit_words(n), sizeof **c->mark);
    c->failed[thread] = c->count[thread] == NULL || c->mark[thread] == NULL;
    return !c->failed[thread];
}

/* The first entry of a row that is `vertex` or more. */
static int64_t find_from(const slab *s, int64_t low, int64_t high, int64_t vertex) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (entry(s, middle) < vertex) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void count_at(const counting *c, int64_t u, uint64_t *mark, int64_t *count) {
    const slab   *own = &c->mine, *of = &c->piece;
    const int64_t begin = c->start[u], end = c->start[u + 1];
    const int64_t from = find_from(own, begin, end, of->first), to = find_from(own, from, end, of->last);
    int64_t       all = 0;
    if (end - begin < 2 || from == to) return;
    for (int64_t k = begin; k < end; k++) pli_bit_set(mark, entry(own, k));
    for (int64_t k = from; k < to; k++) {
        const uint32_t v = entry(own, k);
        int64_t        here = 0;
        for (int64_t j = c->start[v]; j < c->start[v + 1]; j++) {
            const uint32_t w = entry(of, j);
            const int64_t  hit = pli_bit_is(mark, w);
            here += hit;
            count[w] += hit;
        }
        count[v] += here;
        all += here;
    }
    count[u] += all;
    for (int64_t k = begin; k < end; k++) mark[entry(own, k) / 64] = 0;
}

static void count_piece(void *user, int64_t i, int32_t thread) {
    counting     *c = user;
    const int64_t first = c->mine.first + i * TOGETHER, last = first + TOGETHER;
    if (!has_scratch(c, thread)) return;
    for (int64_t u = first; u < last && u < c->mine.last; u++) count_at(c, u, c->mark[thread], c->count[thread]);
}

/* Pushes the counts of all threads, those that are not 0. */
static plait_status push_counts(counting *c) {
    const int64_t n = c->d->edges->n;
    const int32_t threads = pli_pool_threads(c->d->pool);
    int64_t       hits = 0, *value = pli_array((size_t)n, sizeof *value);
    uint64_t     *key = pli_array((size_t)n, sizeof *key);
    plait_status  status = key != NULL && value != NULL ? PLAIT_OK : no_memory(c);
    for (int64_t v = 0; status == PLAIT_OK && v < n; v++) {
        int64_t sum = 0;
        for (int32_t t = 0; t < threads; t++)
            if (c->count[t] != NULL) {
                sum += c->count[t][v];
                c->count[t][v] = 0;
            }
        if (sum == 0) continue;
        key[hits] = (uint64_t)v;
        value[hits++] = sum;
    }
    if (status == PLAIT_OK && hits > 0) status = plait_table_inc(c->d->value, hits, key, value, 0);
    pli_free(key);
    pli_free(value);
    return status;
}

static plait_status count_with(counting *c, int64_t first, int64_t last) {
    pli_direct *d = c->d;
    if (!make_slab(c, first, last, &c->piece)) return no_memory(c);
    const int64_t n = cells_of(c, &c->piece);
    plait_status  status = n > 0 ? plait_table_get_range(c->rows, c->piece.cell, n, c->piece.cells) : PLAIT_OK;
    if (status == PLAIT_OK) {
        pli_pool_for(d->pool, (c->mine.last - c->mine.first + TOGETHER - 1) / TOGETHER, count_piece, c);
        for (int32_t t = 0; t < pli_pool_threads(d->pool); t++)
            if (c->failed[t]) status = no_memory(c);
    }
    pli_free(c->piece.cells);
    c->piece.cells = NULL;
    return status;
}

/* All triangles of the rows in c->mine. */
static plait_status count_share(counting *c) {
    const int64_t n = c->d->edges->n;
    for (int64_t first = 0, last; first < n; first = last) {
        last = first + 1;
        while (last < n && c->start[last + 1] - c->start[first] <= PIECE) last++;
        PLI_TRY(count_with(c, first, last));
    }
    return push_counts(c);
}

static plait_status count_again(counting *c, int32_t worker) {
    const int64_t *first = c->d->cut->first + worker;
    pli_free(c->mine.cells);
    if (!make_slab(c, first[0], first[1], &c->mine)) return no_memory(c);
    const int64_t n = cells_of(c, &c->mine);
    if (n > 0) PLI_TRY(plait_table_get_range(c->rows, c->mine.cell, n, c->mine.cells));
    return count_share(c);
}

/* --- the run ------------------------------------------------------------------------------------------------------ */

static plait_status make_scratch(counting *c) {
    const size_t threads = (size_t)pli_pool_threads(c->d->pool);
    c->count = pli_calloc(threads, sizeof *c->count);
    c->mark = pli_calloc(threads, sizeof *c->mark);
    c->failed = pli_calloc(threads, sizeof *c->failed);
    return c->count != NULL && c->mark != NULL && c->failed != NULL ? PLAIT_OK : no_memory(c);
}

static plait_status go(counting *c) {
    pli_direct *d = c->d;
    PLI_TRY(make_scratch(c));
    PLI_TRY(make_tables(c));
    PLI_TRY(push_lengths(c, &d->part));
    PLI_TRY(end_clock(c, lengths_again));
    PLI_TRY(find_starts(c));
    PLI_TRY(push_rows(c, &d->part, d->rank, &c->mine));
    PLI_TRY(end_clock(c, rows_again));
    PLI_TRY(count_share(c));
    PLI_TRY(end_clock(c, count_again));
    if (d->job->layout.replicas > 1) return PLAIT_OK; /* tables stay until the job ends */
    PLI_TRY(plait_table_drop(&c->rows));
    return plait_table_drop(&c->lengths);
}

plait_status pli_triangles_by_parts(pli_direct *d) {
    counting     c = { .d = d };
    plait_status status = go(&c);
    for (int32_t t = 0; t < pli_pool_threads(d->pool); t++) {
        if (c.count != NULL) pli_free(c.count[t]);
        if (c.mark != NULL) pli_free(c.mark[t]);
    }
    pli_free(c.count);
    pli_free(c.mark);
    pli_free(c.failed);
    pli_free(c.start);
    pli_free(c.mine.cells);
    return status;
}
