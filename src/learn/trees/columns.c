/* Workers exchange bins: each has read some of the rows, and gets its own features of all rows. Used features are dealt
 * out in their order, and all rows are in the order of the workers, so all workers have the same rows at the same
 * places. What a row has beside its bins (its label, weight, number and scores) goes to every worker.
 *
 *     before                          after
 *     worker 0   rows 0 1  all bins   worker 0   rows 0 1 2 3  bins of features 0 1
 *     worker 1   rows 2 3  all bins   worker 1   rows 0 1 2 3  bins of features 2 3
 *
 * While they are exchanged, the memory of both is there. With two replicas nothing is exchanged (columns_read.c). */
#include <string.h>

#include "learn/trees/grow.h"

enum { TAG = 0x7ee5, TURNED = 4096 };

typedef struct exchange {
    pli_run            *run;
    const pli_bins     *bins;
    const pli_bin_rows *from;  /* own rows      */
    pli_bin_rows       *to;    /* all rows      */
    int32_t             workers, me;
    int64_t            *first; /* [workers + 1] first row of each */
} exchange;

static int32_t first_of(const pli_bins *bins, int32_t workers, int32_t worker) {
    return (int32_t)((int64_t)bins->used * worker / workers);
}

int32_t pli_bins_owner(const pli_bins *bins, int32_t workers, int32_t j) {
    int32_t w = (int32_t)((int64_t)j * workers / bins->used);
    while (w + 1 < workers && first_of(bins, workers, w + 1) <= j) w++;
    return w;
}

static plait_status no_memory(const exchange *x) {
    return pli_fail(x->run->err, PLAIT_ENOMEM, "no memory for the columns of %lld rows",
                    (long long)x->first[x->workers]);
}

/* --- what all workers get ----------------------------------------------------------------------------------------- */

/* Gathers `bytes` of each row. *out is allocated. */
static plait_status gather(const exchange *x, const void *mine, size_t bytes, void *out) {
    size_t      *sizes = pli_array((size_t)x->workers, sizeof *sizes);
    void        *all = NULL;
    plait_status status = sizes != NULL ? PLAIT_OK : no_memory(x);
    if (status >= 0)
        status = plait_comm_allgatherv(x->run->comm, mine, (size_t)x->from->n * bytes, sizes, &all);
    if (status >= 0) memcpy(out, all, (size_t)x->to->n * bytes);
    plait_comm_free(all);
    pli_free(sizes);
    return status;
}

static bool make_arrays(const exchange *x, int64_t columns) {
    const pli_bin_rows *from = x->from;
    pli_bin_rows       *to = x->to;
    const size_t        n = (size_t)to->n;
    to->weight = pli_array(n, sizeof *to->weight);
    to->target = pli_array(n, sizeof *to->target);
    to->number = pli_array(n, sizeof *to->number);
    to->score = pli_array(n, (size_t)columns * sizeof *to->score);
    if (from->held != NULL) to->held = pli_array(n, sizeof *to->held);
    if (from->votes != NULL) to->votes = pli_array(n, sizeof *to->votes);
    return to->weight != NULL && to->target != NULL && to->number != NULL && to->score != NULL &&
           (from->held == NULL || to->held != NULL) && (from->votes == NULL || to->votes != NULL);
}

static plait_status gather_rows(const exchange *x) {
    const pli_bin_rows *from = x->from;
    pli_bin_rows       *to = x->to;
    const int64_t       columns = pli_fit_of(x->run)->goal.columns;
    if (!make_arrays(x, columns)) return no_memory(x);
    PLI_TRY(gather(x, from->weight, sizeof *to->weight, to->weight));
    PLI_TRY(gather(x, from->target, sizeof *to->target, to->target));
    PLI_TRY(gather(x, from->number, sizeof *to->number, to->number));
    if (from->held != NULL) PLI_TRY(gather(x, from->held, sizeof *to->held, to->held));
    if (from->votes != NULL) PLI_TRY(gather(x, from->votes, sizeof *to->votes, to->votes));
    for (int64_t c = 0; c < columns; c++)
        PLI_TRY(gather(x, from->score + c * from->n, sizeof *to->score, to->score + c * to->n));
    return PLAIT_OK;
}

/* Where queries begin. */
static plait_status gather_queries(const exchange *x) {
    const int64_t queries = x->from->queries, base = x->first[x->me];
    if (x->from->query == NULL) return PLAIT_OK;
    size_t      *sizes = pli_array((size_t)x->workers, sizeof *sizes), bytes = 0;
    int64_t     *mine = pli_array((size_t)queries + 1, sizeof *mine);
    void        *all = NULL;
    plait_status status = sizes != NULL && mine != NULL ? PLAIT_OK : no_memory(x);
    for (int64_t q = 0; status >= 0 && q < queries; q++) mine[q] = x->from->query[q] + base;
    if (status >= 0)
        status = plait_comm_allgatherv(x->run->comm, mine, (size_t)queries * sizeof *mine, sizes, &all);
    for (int32_t w = 0; status >= 0 && w < x->workers; w++) bytes += sizes[w];
    if (status >= 0) {
        x->to->queries = (int64_t)(bytes / sizeof *mine);
        x->to->query = pli_array((size_t)x->to->queries + 1, sizeof *mine);
        status = x->to->query != NULL ? PLAIT_OK : no_memory(x);
    }
    if (status >= 0) {
        if (bytes > 0) memcpy(x->to->query, all, bytes);
        x->to->query[x->to->queries] = x->to->n;
    }
    plait_comm_free(all);
    pli_free(mine);
    pli_free(sizes);
    return status;
}

/* --- dense bins --------------------------------------------------------------------------------------------------- */

static void turn(void *user, int64_t c, int32_t thread) {
    pli_bin_rows *rows = user;
    const int64_t end = (c + 1) * TURNED < rows->n ? (c + 1) * TURNED : rows->n;
    (void)thread;
    for (int32_t s = 0; s < rows->stretches; s++) {
        const int32_t width = rows->dense[s] != NULL ? rows->first[s + 1] - rows->first[s] : 0;
        for (int32_t j = 0; j < width; j++) {
            const uint8_t *from = rows->column[rows->first[s] + j];
            uint8_t       *to = rows->dense[s] + j;
            for (int64_t r = c * TURNED; r < end; r++) to[r * pli_rows_stride(width)] = from[r];
        }
    }
}

/* Up to which feature those from j on are alike: the worker has them, or lacks them. */
static int32_t end_of_run(const pli_bins *bins, int32_t j) {
    int32_t end = j + 1;
    while (end < bins->to && pli_bins_has(bins, end) == pli_bins_has(bins, j)) end++;
    return end;
}

/* Cuts the features into stretches of own ones, and of those that the worker lacks, which have no memory. first NULL:
 * counts. */
static int32_t cut_stretches(const pli_bins *bins, int32_t *first) {
    int32_t n = 0;
    for (int32_t j = bins->from, end; j < bins->to; j = end) {
        end = end_of_run(bins, j);
        const int32_t pieces = pli_bins_has(bins, j) ? (end - j + PLI_ROWS_WIDTH - 1) / PLI_ROWS_WIDTH : 1;
        for (int32_t i = 0; i < pieces; i++, n++)
            if (first != NULL) first[n] = j + (int32_t)((int64_t)(end - j) * i / pieces);
    }
    return n;
}

bool pli_columns_stretch(const pli_run *run, const pli_bins *bins, pli_bin_rows *to) {
    const int32_t cut = cut_stretches(bins, NULL), stretches = cut > 0 ? cut : 1; /* one of no feature */
    to->stretches = stretches;
    to->first = pli_array((size_t)stretches + 1, sizeof *to->first);
    to->dense = pli_calloc((size_t)stretches, sizeof *to->dense);
    if (to->first == NULL || to->dense == NULL) return false;
    to->first[0] = bins->from;
    (void)cut_stretches(bins, to->first);
    to->first[stretches] = bins->to;
    for (int32_t s = 0; s < stretches; s++) {
        const int32_t width = to->first[s + 1] - to->first[s];
        if (width > 0 && !pli_bins_has(bins, to->first[s])) continue;
        to->dense[s] = pli_aligned(((size_t)to->n + 1) * (size_t)pli_rows_stride(width));
        if (to->dense[s] == NULL) return false;
    }
    pli_pool_for(run->pool, (to->n + TURNED - 1) / TURNED, turn, to);
    return true;
}

/* A worker's features lie one behind the other. The message of worker w has them of its rows. */
static plait_status receive_dense(const exchange *x, int32_t w, uint8_t *room) {
    const int64_t n = x->first[w + 1] - x->first[w];
    const int32_t from = x->bins->from, end = x->bins->to;
    const uint8_t *at = room;
    if (w != x->me)
        PLI_TRY(plait_comm_recv(x->run->comm, w, TAG, room, (size_t)(end - from) * (size_t)n, NULL, NULL));
    else at = n > 0 && end > from ? x->from->column[from] : room;
    for (int32_t j = from; j < end; j++, at += n) memcpy(x->to->column[j] + x->first[w], at, (size_t)n);
    return PLAIT_OK;
}

static plait_status exchange_dense(const exchange *x) {
    pli_bin_rows *to = x->to;
    const int32_t from = x->bins->from, used = x->bins->to - from;
    int64_t       most = 0;
    for (int32_t w = 0; w < x->workers; w++) { /* a send waits for nobody */
        const int32_t first = first_of(x->bins, x->workers, w), end = first_of(x->bins, x->workers, w + 1);
        const int64_t n = x->first[w + 1] - x->first[w];
        if (n > most) most = n;
        if (w != x->me)
            PLI_TRY(plait_comm_send(x->run->comm, w, TAG, x->from->columns + (int64_t)first * x->from->n,
                                    (size_t)(end - first) * (size_t)x->from->n));
    }
    to->column = pli_calloc((size_t)x->bins->used, sizeof *to->column);
    to->columns = pli_aligned(((size_t)to->n + 1) * ((size_t)used + 1));
    uint8_t     *room = pli_array((size_t)most + 1, (size_t)used + 1);
    plait_status status = to->column != NULL && to->columns != NULL && room != NULL ? PLAIT_OK : no_memory(x);
    for (int32_t j = 0; status >= 0 && j < used; j++) to->column[from + j] = to->columns + j * to->n;
    for (int32_t w = 0; status >= 0 && w < x->workers; w++) status = receive_dense(x, w, room);
    pli_free(room);
    if (status < 0) return status;
    return pli_columns_stretch(x->run, x->bins, to) ? PLAIT_OK : no_memory(x);
}

/* --- sparse bins -------------------------------------------------------------------------------------------------- */

/* The entries of own rows that are of worker w's features: how many each row has, and these. *count_out, *entry_out
 * are allocated. */
static bool pick(const exchange *x, int32_t w, uint32_t **count_out, uint32_t **entry_out, int64_t *entries_out) {
    const pli_bin_rows *rows = x->from;
    const int64_t       low = x->bins->offset[first_of(x->bins, x->workers, w)],
                        high = x->bins->offset[first_of(x->bins, x->workers, w + 1)];
    uint32_t           *count = pli_calloc((size_t)rows->n + 1, sizeof *count);
    uint32_t           *entry = pli_array((size_t)rows->start[rows->n] + 1, sizeof *entry);
    int64_t             n = 0;
    *count_out = count;
    *entry_out = entry;
    if (count == NULL || entry == NULL) return false;
    for (int64_t r = 0; r < rows->n; r++)
        for (int64_t e = rows->start[r]; e < rows->start[r + 1]; e++) {
            if ((int64_t)rows->entry[e] < low || (int64_t)rows->entry[e] >= high) continue;
            entry[n++] = rows->entry[e];
            count[r]++;
        }
    *entries_out = n;
    return true;
}

static plait_status send_sparse(const exchange *x, int32_t w) {
    uint32_t    *count = NULL, *entry = NULL;
    int64_t      n = 0;
    plait_status status = pick(x, w, &count, &entry, &n) ? PLAIT_OK : no_memory(x);
    if (status >= 0)
        status = plait_comm_send(x->run->comm, w, TAG, count, (size_t)x->from->n * sizeof *count);
    if (status >= 0) status = plait_comm_send(x->run->comm, w, TAG, entry, (size_t)n * sizeof *entry);
    pli_free(count);
    pli_free(entry);
    return status;
}

static plait_status receive_sparse(const exchange *x, int32_t w, uint32_t *count, int64_t *capacity) {
    pli_bin_rows *to = x->to;
    const int64_t first = x->first[w], n = x->first[w + 1] - first;
    void         *entry = to->entry;
    PLI_TRY(plait_comm_recv(x->run->comm, w, TAG, count, (size_t)n * sizeof *count, NULL, NULL));
    for (int64_t r = 0; r < n; r++) to->start[first + r + 1] = to->start[first + r] + count[r];
    const bool ok = pli_grow(&entry, capacity, to->start[first + n] + 1, sizeof *to->entry);
    to->entry = entry;
    if (!ok) return no_memory(x);
    return plait_comm_recv(x->run->comm, w, TAG, to->entry + to->start[first],
                           (size_t)(to->start[first + n] - to->start[first]) * sizeof *to->entry, NULL, NULL);
}

static plait_status exchange_sparse(const exchange *x) {
    pli_bin_rows *to = x->to;
    int64_t       capacity = 0;
    for (int32_t w = 0; w < x->workers; w++) PLI_TRY(send_sparse(x, w)); /* to itself, too */
    to->start = pli_calloc((size_t)to->n + 1, sizeof *to->start);
    uint32_t    *count = pli_array((size_t)to->n + 1, sizeof *count);
    plait_status status = to->start != NULL && count != NULL ? PLAIT_OK : no_memory(x);
    for (int32_t w = 0; status >= 0 && w < x->workers; w++) status = receive_sparse(x, w, count, &capacity);
    pli_free(count);
    return status;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* first [workers + 1] */
static plait_status count_rows(exchange *x) {
    PLI_TRY(plait_comm_allgather(x->run->comm, &x->from->n, sizeof x->from->n, x->first + 1));
    for (int32_t w = 0; w < x->workers; w++) x->first[w + 1] += x->first[w];
    x->to->n = x->first[x->workers];
    if (x->to->n <= UINT32_MAX) return PLAIT_OK;
    return pli_fail(x->run->err, PLAIT_EREFUSED, "--trees-by features is refused on %lld rows: a worker takes fewer "
                                                 "than 2^32; take --trees-by rows", (long long)x->to->n);
}

plait_status pli_bin_rows_exchange(pli_run *run, pli_bins *bins, pli_bin_rows *rows) {
    pli_bin_rows all = { .of_all = true };
    exchange     x = { .run = run, .bins = bins, .from = rows, .to = &all, .workers = plait_comm_workers(run->comm),
                       .me = plait_comm_rank(run->comm) };
    x.first = pli_calloc((size_t)x.workers + 1, sizeof *x.first);
    plait_status status = x.first != NULL ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory to exchange rows");
    bins->from = first_of(bins, x.workers, x.me);
    bins->to = first_of(bins, x.workers, x.me + 1);
    if (status >= 0) status = count_rows(&x);
    if (status >= 0) status = gather_rows(&x);
    if (status >= 0) status = gather_queries(&x);
    if (status >= 0) status = rows->dense != NULL ? exchange_dense(&x) : exchange_sparse(&x);
    const int64_t first = status >= 0 ? x.first[x.me] : 0;
    pli_free(x.first);
    if (status < 0) {
        pli_bin_rows_free(&all);
        return status;
    }
    all.parts = rows->parts;
    all.part = rows->part;
    rows->part = NULL;
    for (int32_t p = 0; p < all.parts; p++) all.part[p].first += first;
    pli_bin_rows_free(rows);
    *rows = all;
    return PLAIT_OK;
}
