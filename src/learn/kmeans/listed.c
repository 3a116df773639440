/* Lists of rows that all workers get to see. */
#include <string.h>

#include "learn/kmeans/kmeans.h"

static bool reserve(pli_listed *list, int64_t n) {
    return pli_grow((void **)&list->row, &list->capacity[0], n, sizeof *list->row) &&
           pli_grow((void **)&list->key, &list->capacity[1], n, sizeof *list->key) &&
           pli_grow((void **)&list->x, &list->capacity[2], n * list->d, sizeof *list->x);
}

static void lay_out(const pli_block *block, int64_t row, int64_t d, float *to) {
    memset(to, 0, (size_t)d * sizeof *to);
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint32_t column = block->col != NULL ? block->col[e] : pli_packed_at(block->packed, e);
        to[column] = block->value != NULL ? block->value[e] : 1;
    }
}

bool pli_listed_add(pli_listed *list, const pli_block *block, int64_t row, double key) {
    if (!reserve(list, list->n + 1)) return false;
    list->row[list->n] = block->first_row + row;
    list->key[list->n] = key;
    lay_out(block, row, list->d, list->x + list->n * list->d);
    list->n++;
    return true;
}

/* The other way round of what a worker has sent: its numbers, its keys, its rows. */
static const char *take(pli_listed *all, int64_t n, const char *at) {
    const struct {
        void  *to;
        size_t bytes;
    } array[] = { { all->row + all->n, sizeof *all->row },
                  { all->key + all->n, sizeof *all->key },
                  { all->x + all->n * all->d, (size_t)all->d * sizeof *all->x } };
    for (size_t i = 0; i < 3; i++) {
        if (n > 0) memcpy(array[i].to, at, (size_t)n * array[i].bytes);
        at += (size_t)n * array[i].bytes;
    }
    all->n += n;
    return at;
}

static plait_status gather(pli_run *run, const pli_text *bytes, size_t *sizes, pli_listed *all) {
    const size_t each = sizeof *all->row + sizeof *all->key + (size_t)all->d * sizeof *all->x;
    void        *got = NULL;
    size_t       total = 0;
    PLI_TRY(plait_comm_allgatherv(run->comm, bytes->data, bytes->length, sizes, &got));
    for (int32_t w = 0; w < plait_comm_workers(run->comm); w++) total += sizes[w];
    plait_status status = reserve(all, all->n + (int64_t)(total / each))
                              ? PLAIT_OK
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of rows");
    const char *at = got;
    for (int32_t w = 0; status >= 0 && w < plait_comm_workers(run->comm); w++)
        at = take(all, (int64_t)(sizes[w] / each), at);
    plait_comm_free(got);
    return status;
}

plait_status pli_listed_share(pli_run *run, const pli_listed *mine, pli_listed *all) {
    pli_text bytes = { 0 };
    size_t  *sizes = pli_array((size_t)plait_comm_workers(run->comm), sizeof *sizes);
    if (mine->n > 0) {
        pli_text_add_bytes(&bytes, mine->row, (size_t)mine->n * sizeof *mine->row);
        pli_text_add_bytes(&bytes, mine->key, (size_t)mine->n * sizeof *mine->key);
        pli_text_add_bytes(&bytes, mine->x, (size_t)(mine->n * mine->d) * sizeof *mine->x);
    }
    plait_status status = sizes != NULL && !bytes.failed
                              ? gather(run, &bytes, sizes, all)
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of rows");
    pli_text_free(&bytes);
    pli_free(sizes);
    return status;
}

/* Copies list's rows behind each other as from [n] names them. */
static bool reorder(pli_listed *list, int64_t first, int64_t n, const uint32_t *from) {
    double *key = pli_array((size_t)n, sizeof *key);
    float  *x = pli_array((size_t)n, (size_t)list->d * sizeof *x);
    if (key != NULL && x != NULL) {
        for (int64_t i = 0; i < n; i++) {
            key[i] = list->key[first + from[i]];
            memcpy(x + i * list->d, list->x + (first + from[i]) * list->d, (size_t)list->d * sizeof *x);
        }
        memcpy(list->key + first, key, (size_t)n * sizeof *key);
        memcpy(list->x + first * list->d, x, (size_t)(n * list->d) * sizeof *x);
    }
    const bool ok = key != NULL && x != NULL;
    pli_free(key);
    pli_free(x);
    return ok;
}

/* They are in order already unless a worker has lent its rows to others. */
bool pli_listed_sort(pli_listed *list, int64_t first) {
    const int64_t n = list->n - first;
    int64_t       sorted = 1;
    while (sorted < n && list->row[first + sorted - 1] < list->row[first + sorted]) sorted++;
    if (sorted >= n) return true;
    uint64_t *row = pli_array((size_t)n, sizeof *row);
    uint32_t *from = pli_array((size_t)n, sizeof *from);
    for (int64_t i = 0; row != NULL && from != NULL && i < n; i++) {
        row[i] = (uint64_t)list->row[first + i];
        from[i] = (uint32_t)i;
    }
    bool ok = row != NULL && from != NULL && n <= UINT32_MAX && pli_sort_u64(n, row, from);
    ok = ok && reorder(list, first, n, from);
    for (int64_t i = 0; ok && i < n; i++) list->row[first + i] = (int64_t)row[i];
    pli_free(row);
    pli_free(from);
    return ok;
}

void pli_listed_free(pli_listed *list) {
    pli_free(list->row);
    pli_free(list->key);
    pli_free(list->x);
    *list = (pli_listed){ .d = list->d };
}
