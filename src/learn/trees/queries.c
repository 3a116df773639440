/* The queries of a worker's rows, for losses of rankings. The data's blocks are cut between queries, so each query is
 * whole on one worker, and its gradients need no other. */
#include <stdio.h>
#include <stdlib.h>

#include "learn/trees/bins.h"

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

/* A query, and the number of its first row. */
typedef struct seen {
    uint64_t id;
    int64_t  row;
} seen;

/* Finds where the queries of a block begin; its first row is own row `first`. */
static plait_status walk(const pli_run *run, const pli_dataset *data, const pli_block *block, int64_t first,
                         pli_bin_rows *rows) {
    for (int64_t r = 0; r < block->rows; r++) {
        if (block->query == NULL || block->query[r] == 0)
            return fail_at(run, data, block->first_row + r,
                           block->query == NULL ? NAMELESS " (and leave out --cache: it keeps no queries)" : NAMELESS,
                           0);
        if (r > 0 && block->query[r] == block->query[r - 1]) continue;
        rows->query[rows->queries++] = first + r;
    }
    return PLAIT_OK;
}

static int by_id(const void *a, const void *b) {
    const seen *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->row > y->row) - (x->row < y->row);
}

/* No query may come again; all [n], those of all workers, are sorted. The first row that is out of order is named. */
static plait_status check_again(const pli_run *run, const pli_dataset *data, int64_t n, seen *all) {
    const seen *first = NULL;
    if (n > 0) qsort(all, (size_t)n, sizeof *all, by_id);
    for (int64_t i = 1; i < n; i++)
        if (all[i].id == all[i - 1].id && (first == NULL || all[i].row < first->row)) first = &all[i];
    return first == NULL ? PLAIT_OK : fail_at(run, data, first->row, AGAIN, first->id);
}

/* All workers see the queries of all. */
static plait_status agree(const pli_run *run, const pli_dataset *data, int64_t queries, const seen *own) {
    const int32_t workers = plait_comm_workers(run->comm);
    size_t       *bytes = pli_calloc((size_t)workers, sizeof *bytes), n = 0;
    void         *all = NULL;
    if (bytes == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the queries");
    plait_status status = plait_comm_allgatherv(run->comm, own, (size_t)queries * sizeof *own, bytes, &all);
    for (int32_t w = 0; w < workers; w++) n += bytes[w];
    if (status >= 0) status = check_again(run, data, (int64_t)(n / sizeof *own), all);
    plait_comm_free(all);
    pli_free(bytes);
    return status;
}

plait_status pli_bin_rows_query(const pli_run *run, const pli_dataset *data, int32_t n, const pli_block *const *block,
                                pli_bin_rows *rows) {
    if (pli_fit_of(run)->goal.loss->query == NULL) return PLAIT_OK;
    rows->query = pli_array((size_t)rows->n + 1, sizeof *rows->query);
    if (rows->query == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the queries");
    for (int32_t b = 0; b < n; b++) PLI_TRY(walk(run, data, block[b], rows->part[b].first, rows));
    rows->query[rows->queries] = rows->n;
    return PLAIT_OK;
}

/* own [queries]. */
static void list_own(const pli_dataset *data, seen *own) {
    int64_t q = 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(data); b++) {
        const pli_block *block = pli_dataset_block(data, b);
        for (int64_t r = 0; r < block->rows; r++)
            if (r == 0 || block->query[r] != block->query[r - 1])
                own[q++] = (seen){ block->query[r], block->first_row + r };
    }
}

plait_status pli_bin_rows_agree(const pli_run *run, const pli_dataset *data, const pli_bin_rows *rows) {
    if (rows->query == NULL) return PLAIT_OK;
    seen *own = pli_array((size_t)rows->queries + 1, sizeof *own);
    if (own == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the queries");
    list_own(data, own);
    plait_status status = agree(run, data, rows->queries, own);
    pli_free(own);
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
