/* The queries of a worker's rows, for losses of rankings. The data's blocks are cut between queries, so each query is
 * whole on one worker, and its gradients need no other. */
#include <stdio.h>
#include <stdlib.h>

#include "learn/trees/trees.h"

#define NAMELESS "the row names no query: write label qid:N index:value ..."
#define AGAIN "its rows do not stand together: sort the file by query"

/* "file:line: query 7: what", or "row 12: what". query 0: none. */
static plait_status fail_at(const pli_run *run, const pli_dataset *data, int64_t row, const char *what,
                            uint64_t query) {
    pli_text place = { 0 };
    char     which[40] = "";
    pli_dataset_place(data, row, &place);
    if (place.data == NULL) pli_text_add(&place, "row %lld", (long long)row + 1);
    if (query > 0) snprintf(which, sizeof which, "query %llu: ", (unsigned long long)pli_query_id(query));
    const plait_status status = pli_fail(run->err, PLAIT_EFORMAT, "%s: %s%s", place.data != NULL ? place.data : "",
                                         which, what);
    pli_text_free(&place);
    return status;
}

/* Finds where the queries of a block begin. row [queries]: the first of each; id [queries]. */
static plait_status walk(const pli_run *run, const pli_dataset *data, const pli_block *block, int64_t first,
                         pli_bin_rows *rows, uint64_t *id) {
    for (int64_t r = 0; r < block->rows; r++) {
        if (block->query == NULL || block->query[r] == 0)
            return fail_at(run, data, block->first_row + r,
                           block->query == NULL ? NAMELESS " (and leave out --cache, which keeps no queries)" : NAMELESS,
                           0);
        if (r > 0 && block->query[r] == block->query[r - 1]) continue;
        id[rows->queries] = block->query[r];
        rows->query[rows->queries++] = first + r;
    }
    return PLAIT_OK;
}

/* A query of all workers, and its place among them. */
typedef struct seen {
    uint64_t id;
    int64_t  at;
} seen;

static int by_id(const void *a, const void *b) {
    const seen *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->at > y->at) - (x->at < y->at);
}

/* No query may come again. all [n]: those of all workers; the own ones begin at first. */
static plait_status check_again(const pli_run *run, const pli_dataset *data, int64_t n, const uint64_t *all,
                                const pli_bin_rows *rows, int64_t first) {
    seen        *s = pli_array((size_t)n + 1, sizeof *s);
    plait_status status = PLAIT_OK;
    if (s == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld queries", (long long)n);
    for (int64_t i = 0; i < n; i++) s[i] = (seen){ all[i], i };
    qsort(s, (size_t)n, sizeof *s, by_id);
    for (int64_t i = 1; i < n && status >= 0; i++) {
        const int64_t own = s[i].at - first;
        if (s[i].id != s[i - 1].id) continue;
        if (own >= 0 && own < rows->queries)
            status = fail_at(run, data, rows->number[rows->query[own]], AGAIN, s[i].id);
        else
            status = pli_fail(run->err, PLAIT_EFORMAT, "query %llu: " AGAIN,
                              (unsigned long long)pli_query_id(s[i].id));
    }
    pli_free(s);
    return status;
}

/* All workers see the queries of all. id [queries]: the own ones. */
static plait_status agree(const pli_run *run, const pli_dataset *data, const uint64_t *id, const pli_bin_rows *rows) {
    const int32_t workers = plait_comm_workers(run->comm), me = plait_comm_rank(run->comm);
    size_t       *bytes = pli_calloc((size_t)workers, sizeof *bytes), n = 0, first = 0;
    void         *all = NULL;
    if (bytes == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the queries");
    plait_status status = plait_comm_allgatherv(run->comm, id, (size_t)rows->queries * sizeof *id, bytes, &all);
    for (int32_t w = 0; w < workers; w++) {
        if (w == me) first = n;
        n += bytes[w];
    }
    if (status >= 0)
        status = check_again(run, data, (int64_t)(n / sizeof *id), all, rows, (int64_t)(first / sizeof *id));
    plait_comm_free(all);
    pli_free(bytes);
    return status;
}

plait_status pli_bin_rows_query(pli_run *run, const pli_dataset *data, pli_bin_rows *rows) {
    if (pli_fit_of(run)->goal.loss->query == NULL) return PLAIT_OK;
    uint64_t    *id = pli_array((size_t)rows->n + 1, sizeof *id);
    plait_status status = PLAIT_OK;
    int64_t      first = 0;
    rows->query = pli_array((size_t)rows->n + 1, sizeof *rows->query);
    if (id == NULL || rows->query == NULL) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for the queries");
    for (int32_t b = 0; status >= 0 && b < pli_dataset_own_blocks(data); b++) {
        const pli_block *block = pli_dataset_block(data, b);
        status = walk(run, data, block, first, rows, id);
        first += block->rows;
    }
    if (status >= 0) rows->query[rows->queries] = rows->n;
    if (status >= 0) status = agree(run, data, id, rows);
    pli_free(id);
    return status;
}

int64_t pli_bin_rows_query_from(const pli_bin_rows *rows, int64_t row) {
    int64_t low = 0, high = rows->queries;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (rows->query[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low;
}
