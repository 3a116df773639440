/* A step where each worker has some of the rows: it adds up their gradients, the table `histogram` sums these over the
 * workers, and each worker searches all of it. A step is one clock, and sends a histogram for each leaf. */
#include <string.h>

#include "learn/trees/grow.h"

typedef struct by_rows {
    plait_table  *table;  /* [slots x cells, 2] I64 */
    pli_sum_cell *before; /* [slots, cells] what the table held before the step */
    pli_sum_cell *own;    /* [slots, cells] */
    int64_t            n; /* leaves of the step at hand */
    pli_growing_leaf **leaf;
} by_rows;

static plait_status tables(pli_grower *g) {
    by_rows *own = g->shared = pli_calloc(1, sizeof *own);
    if (own == NULL) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees");
    return pli_run_table(g->run, "histogram", PLAIT_I64, g->slots * pli_bins_cells(g->bins), 2, NULL, &own->table);
}

static plait_status make(pli_grower *g) {
    by_rows     *own = g->shared;
    const size_t cells = (size_t)g->slots * (size_t)g->histograms.size;
    own->before = pli_aligned(cells * sizeof *own->before);
    own->own = pli_aligned(cells * sizeof *own->own);
    if (own->before != NULL && own->own != NULL) return PLAIT_OK;
    return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for histograms of %lld bins", (long long)g->histograms.size);
}

static plait_status begin(pli_grower *g) {
    by_rows      *own = g->shared;
    const int64_t cells = g->slots * g->histograms.size;
    const void   *values;
    PLI_TRY(plait_table_read(own->table, 0, cells, &values));
    memcpy(own->before, values, (size_t)cells * sizeof *own->before);
    return PLAIT_OK;
}

static void end(pli_grower *g) {
    by_rows *own = g->shared;
    pli_free(own->before);
    pli_free(own->own);
    pli_free(own);
    g->shared = NULL;
}

/* What has come into the table since the step before. */
static plait_status read_sums(pli_grower *g, int64_t n, pli_growing_leaf *const *leaf) {
    by_rows      *own = g->shared;
    const int64_t size = g->histograms.size;
    const void   *values;
    PLI_TRY(plait_table_read(own->table, 0, n * size, &values));
    const int64_t *now = values;
    for (int64_t i = 0; i < n; i++) {
        pli_sum_cell *to = leaf[i]->sums, *before = own->before + i * size;
        for (int64_t b = 0; b < size; b++, now += 2) {
            to[b].g = (int64_t)((uint64_t)now[0] - (uint64_t)before[b].g);
            to[b].hn = (int64_t)((uint64_t)now[1] - (uint64_t)before[b].hn);
            before[b] = (pli_sum_cell){ now[0], now[1] };
        }
        pli_histograms_complete(&g->histograms, to);
    }
    return PLAIT_OK;
}

/* Adds up the worker's rows of the step's leaves. */
static plait_status push(pli_grower *g) {
    by_rows *own = g->shared;
    int64_t  rows = 0;
    pli_grow_add_up(g, own->n, own->leaf, own->own);
    for (int64_t i = 0; i < own->n; i++) rows += own->leaf[i]->n;
    return rows > 0 ? plait_table_inc_range(own->table, 0, own->n * g->histograms.size, own->own, 0) : PLAIT_OK;
}

static plait_status push_inherited(pli_grower *g) {
    PLI_TRY(pli_heirs_begin(g));
    PLI_TRY(push(g));
    return pli_heirs_end(g);
}

static plait_status search(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    by_rows *own = g->shared;
    own->n = n;
    own->leaf = small;
    PLI_TRY(push(g));
    uint64_t at = pli_comm_span_begin(g->run->comm);
    PLI_TRY(pli_grow_clock(g, push_inherited));
    PLI_TRY(read_sums(g, n, small));
    pli_run_step(g->run, "sums", &at);
    if (large == NULL) small[0]->total = small[0]->sums[g->histograms.size - 1];
    pli_grow_search(g, n, small, large);
    return PLAIT_OK;
}

const pli_tree_cut pli_cut_rows = { .name = "rows", .tables = tables, .make = make, .begin = begin, .search = search,
                                    .free = end };
