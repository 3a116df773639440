/* A worker's ratings. Rows of the data lie with whoever has their block; here each goes to the worker that has its
 * user, or its item. Ratings are then sorted, so that what a worker has does not depend on how the data were cut. */
#include <string.h>

#include "learn/factors/factors.h"

enum { TAG = 0x6d66 };

void pli_ratings_free(pli_ratings *r) {
    pli_free(r->start);
    pli_free(r->rating);
    *r = (pli_ratings){ 0 };
}

void pli_ratings_free_rows(pli_ratings *r) {
    pli_free(r->rating);
    r->rating = NULL;
}

/* --- cuts --------------------------------------------------------------------------------------------------------- */

/* A part ends with the row that brings it to its share of the sum; each row counts as one more, for rows without
 * ratings. */
void pli_ratings_cut(int64_t n, const int64_t *count, int64_t parts, int64_t *cut) {
    pli_ratings_cut_by(n, count, parts, NULL, cut);
}

void pli_ratings_cut_by(int64_t n, const int64_t *count, int64_t parts, const double *share, int64_t *cut) {
    double  all = 0, sum = 0, until = share != NULL ? share[0] * (double)parts : 1; /* of parts of all */
    int64_t part = 1;
    for (int64_t i = 0; i < n; i++) all += (double)count[i] + 1;
    cut[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)count[i] + 1;
        while (part < parts && sum * (double)parts >= all * until) {
            until += share != NULL ? share[part] * (double)parts : 1;
            cut[part++] = i + 1;
        }
    }
    while (part <= parts) cut[part++] = n;
    cut[parts] = n;
}

static int32_t part_of(const int64_t *cut, int32_t parts, int64_t row) {
    int32_t low = 0, high = parts - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (cut[middle] <= row) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* --- rows of the data --------------------------------------------------------------------------------------------- */

/* The rating of a row that is trained on. Weight 0 leaves a row out. */
static bool rating_of(const pli_run *run, const pli_schema_pair *pair, const pli_block *block, int64_t i,
                      pli_rating *out) {
    plait_row row;
    (void)run;
    pli_block_row(block, i, &row);
    if (!(row.weight > 0)) return false;
    for (int64_t e = 0; e < row.n; e++) {
        const uint64_t key = row.column != NULL ? row.column[e] : row.key[e];
        if (key - pair->first_user < (uint64_t)pair->users) out->user = (uint32_t)(key - pair->first_user);
        else out->item = (uint32_t)(key - pair->first_item);
    }
    out->value = isnan(row.label) ? 1 : (float)row.label;
    out->weight = (float)row.weight;
    return row.n == 2;
}

plait_status pli_ratings_count(pli_run *run, const pli_schema_pair *pair, int64_t *users, int64_t *items) {
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        pli_rating       r;
        for (int64_t i = 0; i < block->rows; i++) {
            if (!rating_of(run, pair, block, i, &r)) continue;
            users[r.user]++;
            items[r.item]++;
        }
    }
    PLI_TRY(plait_comm_allreduce(run->comm, users, pair->users, PLAIT_I64, PLAIT_SUM));
    return plait_comm_allreduce(run->comm, items, pair->items, PLAIT_I64, PLAIT_SUM);
}

/* --- the exchange ------------------------------------------------------------------------------------------------- */

/* The own rows of the data by the worker that they go to: at[w] .. at[w + 1] - 1. */
typedef struct parcels {
    int64_t    *at; /* [workers + 1] */
    pli_rating *rating;
} parcels;

static uint32_t own_row(const pli_rating *r, bool of_items) { return of_items ? r->item : r->user; }

/* Calls of `place` NULL count; else ratings are put where place[w] says. */
static void sort_out(const pli_run *run, const pli_schema_pair *pair, bool of_items, const int64_t *cut, int64_t *place,
                     pli_rating *to) {
    const int32_t workers = plait_comm_workers(run->comm);
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        pli_rating       r;
        for (int64_t i = 0; i < block->rows; i++) {
            if (!rating_of(run, pair, block, i, &r)) continue;
            const int32_t w = part_of(cut, workers, own_row(&r, of_items));
            const int64_t at = place[w]++;
            if (to == NULL) continue;
            to[at] = r;
            if (of_items) to[at].user = r.item, to[at].item = r.user;
        }
    }
}

static plait_status pack(const pli_run *run, const pli_schema_pair *pair, bool of_items, const int64_t *cut,
                         parcels *out) {
    const int32_t workers = plait_comm_workers(run->comm);
    int64_t      *place = pli_calloc((size_t)workers, sizeof *place);
    out->at = pli_calloc((size_t)workers + 1, sizeof *out->at);
    if (place != NULL) sort_out(run, pair, of_items, cut, place, NULL);
    for (int32_t w = 0; place != NULL && out->at != NULL && w < workers; w++) {
        out->at[w + 1] = out->at[w] + place[w];
        place[w] = out->at[w];
    }
    out->rating = out->at != NULL ? pli_array((size_t)out->at[workers], sizeof *out->rating) : NULL;
    const bool good = place != NULL && out->rating != NULL;
    if (good) sort_out(run, pair, of_items, cut, place, out->rating);
    pli_free(place);
    return good ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for ratings");
}

/* Sends each worker its parcel, and receives those of all others behind the own one. sizes [workers, workers]: who has
 * how many for whom. */
static plait_status swap(pli_run *run, const parcels *own, const int64_t *sizes, pli_ratings *out) {
    const int32_t workers = plait_comm_workers(run->comm), rank = plait_comm_rank(run->comm);
    int64_t       at = 0;
    for (int32_t w = 0; w < workers; w++)
        if (w != rank)
            PLI_TRY(plait_comm_send(run->comm, w, TAG, own->rating + own->at[w],
                                    (size_t)(own->at[w + 1] - own->at[w]) * sizeof(pli_rating)));
    for (int32_t w = 0; w < workers; w++) {
        const int64_t n = sizes[w * workers + rank];
        if (w == rank) memcpy(out->rating + at, own->rating + own->at[w], (size_t)n * sizeof(pli_rating));
        else PLI_TRY(plait_comm_recv(run->comm, w, TAG, out->rating + at, (size_t)n * sizeof(pli_rating), NULL, NULL));
        at += n;
    }
    return PLAIT_OK;
}

static plait_status exchange(pli_run *run, const parcels *own, pli_ratings *out) {
    const int32_t workers = plait_comm_workers(run->comm), rank = plait_comm_rank(run->comm);
    int64_t      *mine = pli_array((size_t)workers, sizeof *mine);
    int64_t      *sizes = pli_array((size_t)workers, (size_t)workers * sizeof *sizes);
    plait_status  status = mine != NULL && sizes != NULL ? PLAIT_OK
                                                         : pli_fail(run->err, PLAIT_ENOMEM, "no memory for ratings");
    for (int32_t w = 0; status >= 0 && w < workers; w++) mine[w] = own->at[w + 1] - own->at[w];
    if (status >= 0) status = plait_comm_allgather(run->comm, mine, (size_t)workers * sizeof *mine, sizes);
    for (int32_t w = 0; status >= 0 && w < workers; w++) out->ratings += sizes[w * workers + rank];
    if (status >= 0 && (out->rating = pli_array((size_t)out->ratings, sizeof *out->rating)) == NULL)
        status = pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld ratings", (long long)out->ratings);
    if (status >= 0) status = swap(run, own, sizes, out);
    pli_free(mine);
    pli_free(sizes);
    return status;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Sorts by row, other row, value, weight: equal ratings are alike, so the order of the data does not matter. Last comes
 * what counts most, since the sort is stable. */
static plait_status sort(pli_ratings *r, plait_error *err) {
    const size_t n = (size_t)r->ratings;
    uint64_t    *key = pli_array(n, sizeof *key);
    uint32_t    *from = pli_array(n, sizeof *from);
    pli_rating  *sorted = pli_array(n, sizeof *sorted);
    bool         good = key != NULL && from != NULL && sorted != NULL && r->ratings <= (int64_t)UINT32_MAX;
    for (int pass = 0; good && pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            const pli_rating *a = &r->rating[i];
            from[i] = (uint32_t)i;
            key[i] = pass == 0 ? (uint64_t)bits_of(a->value) << 32 | bits_of(a->weight)
                               : (uint64_t)a->user << 32 | a->item;
        }
        good = pli_sort_u64(r->ratings, key, from);
        for (size_t i = 0; good && i < n; i++) sorted[i] = r->rating[from[i]];
        if (!good) break;
        pli_rating *before = r->rating;
        r->rating = sorted;
        sorted = before;
    }
    pli_free(key);
    pli_free(from);
    pli_free(sorted);
    return good ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory to sort %lld ratings of a worker",
                                      (long long)r->ratings);
}

static plait_status index_rows(pli_ratings *r, plait_error *err) {
    r->start = pli_calloc((size_t)r->n + 1, sizeof *r->start);
    if (r->start == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)r->n);
    for (int64_t i = 0; i < r->ratings; i++) {
        r->rating[i].user -= (uint32_t)r->first;
        r->start[r->rating[i].user + 1]++;
    }
    for (int64_t i = 0; i < r->n; i++) r->start[i + 1] += r->start[i];
    return PLAIT_OK;
}

plait_status pli_ratings_share(pli_run *run, const pli_schema_pair *pair, bool of_items, const int64_t *cut,
                               pli_ratings *out) {
    const int32_t rank = plait_comm_rank(run->comm);
    parcels       own = { NULL, NULL };
    *out = (pli_ratings){ .first = cut[rank], .n = cut[rank + 1] - cut[rank] };
    plait_status status = pack(run, pair, of_items, cut, &own);
    if (status >= 0) status = exchange(run, &own, out);
    pli_free(own.at);
    pli_free(own.rating);
    if (status >= 0) status = sort(out, run->err);
    return status >= 0 ? index_rows(out, run->err) : status;
}

/* --- without an exchange ------------------------------------------------------------------------------------------ */

/* Adds the ratings of a block that are of the share's rows. */
static plait_status add_block(const pli_run *run, const pli_schema_pair *pair, bool of_items, const pli_block *block,
                              int64_t *capacity, pli_ratings *out) {
    void      *room = out->rating;
    const bool ok = pli_grow(&room, capacity, out->ratings + block->rows, sizeof *out->rating);
    out->rating = room;
    if (!ok) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the ratings of a dead worker");
    for (int64_t i = 0; i < block->rows; i++) {
        pli_rating r;
        if (!rating_of(run, pair, block, i, &r)) continue;
        if ((uint64_t)(own_row(&r, of_items) - out->first) >= (uint64_t)out->n) continue;
        out->rating[out->ratings] = r;
        if (of_items) out->rating[out->ratings].user = r.item, out->rating[out->ratings].item = r.user;
        out->ratings++;
    }
    return PLAIT_OK;
}

plait_status pli_ratings_read(pli_run *run, const pli_schema_pair *pair, bool of_items, const int64_t *cut,
                              pli_ratings *out) {
    int64_t      capacity = 0;
    plait_status status = PLAIT_OK;
    *out = (pli_ratings){ .first = cut[0], .n = cut[1] - cut[0] };
    for (int32_t b = 0; status >= 0 && b < pli_dataset_blocks(run->data); b++) {
        pli_borrowed *lent = NULL;
        status = pli_dataset_borrow(run->data, b, &lent, run->err);
        if (status >= 0) status = add_block(run, pair, of_items, pli_borrowed_block(lent), &capacity, out);
        pli_borrowed_free(&lent);
    }
    if (status >= 0) status = sort(out, run->err);
    return status >= 0 ? index_rows(out, run->err) : status;
}
