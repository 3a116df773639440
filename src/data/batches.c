/* Batches over loaded blocks.
 *
 * Clock k of C takes its share of rows (pli_share) of each block's own permutation, a function of seed, block and
 * epoch. So a batch is the same set of rows however blocks are spread over workers, and an epoch meets each once. */
#include "data/batches.h"

#include <string.h>

static void shuffle_block(pli_batches *s, int32_t i, int64_t epoch) {
    int64_t    n = s->n_kept[i];
    pli_random r = pli_random_at(s->seed, PLI_RANDOM_PERMUTE, (uint64_t)s->dataset->rows[i].b.number, (uint64_t)epoch);
    pli_random_permutation(&r, n, s->order[i]);
    for (int64_t k = 0; s->kept[i] != NULL && k < n; k++) s->order[i][k] = s->kept[i][s->order[i][k]];
}

static plait_status get_loaded(pli_batches *s, int64_t epoch, int64_t clock, pli_batch *batch_out, plait_error *err) {
    if (epoch < 0 || clock < 0 || clock >= s->clocks)
        return pli_fail(err, PLAIT_EINVAL, "clock %lld of epoch %lld: an epoch has %lld clocks", (long long)clock,
                        (long long)epoch, (long long)s->clocks);
    for (int32_t i = 0; s->shuffle && s->epoch != epoch && i < s->dataset->own; i++) shuffle_block(s, i, epoch);
    s->epoch = epoch;
    *batch_out = (pli_batch){ .part = s->part, .parts = s->dataset->own };
    for (int32_t i = 0; i < s->dataset->own; i++) {
        int64_t         block = s->dataset->rows[i].b.number, n = s->n_kept[i];
        int64_t         from = pli_share(block, n, clock, s->clocks), to = pli_share(block, n, clock + 1, s->clocks);
        const uint32_t *order = s->shuffle ? s->order[i] : s->kept[i];
        s->part[i] = (pli_part){ .block = &s->dataset->rows[i].b, .rows = to - from };
        if (order != NULL)
            s->part[i].order = order + from;
        else
            s->part[i].first = from;
        batch_out->rows += to - from;
    }
    return PLAIT_OK;
}

static void destroy_loaded(pli_batches *s) {
    for (int32_t i = 0; i < s->dataset->own; i++) {
        if (s->kept != NULL) pli_free(s->kept[i]);
        if (s->order != NULL) pli_free(s->order[i]);
    }
    pli_free(s->kept);
    pli_free(s->order);
    pli_free(s->n_kept);
}

static const pli_batches_ops loaded_ops = { .get = get_loaded, .destroy = destroy_loaded };

/* Which rows of block i stay. */
static bool keep_rows(pli_batches *s, int32_t i, bool (*skip)(void *user, int64_t row), void *user) {
    const pli_block *block = &s->dataset->rows[i].b;
    s->n_kept[i] = block->rows;
    if (skip == NULL) return true;
    uint32_t *kept = pli_array((size_t)block->rows, sizeof *kept);
    int64_t   n = 0;
    if (kept == NULL) return false;
    for (int64_t row = 0; row < block->rows; row++)
        if (!skip(user, block->first_row + row)) kept[n++] = (uint32_t)row;
    s->n_kept[i] = n;
    s->kept[i] = kept;
    return true;
}

static bool prepare(pli_batches *s, bool (*skip)(void *user, int64_t row), void *user) {
    size_t own = (size_t)s->dataset->own;
    s->part = pli_calloc(own, sizeof *s->part);
    s->kept = pli_calloc(own, sizeof *s->kept);
    s->order = pli_calloc(own, sizeof *s->order);
    s->n_kept = pli_calloc(own, sizeof *s->n_kept);
    bool good = s->part != NULL && s->kept != NULL && s->order != NULL && s->n_kept != NULL;
    for (int32_t i = 0; good && i < s->dataset->own; i++) {
        good = keep_rows(s, i, skip, user);
        if (good && s->shuffle) good = (s->order[i] = pli_array((size_t)s->n_kept[i], sizeof **s->order)) != NULL;
    }
    return good;
}

plait_status pli_batches_create(pli_dataset *dataset, uint64_t seed, int64_t clocks, bool shuffle,
                                bool (*skip)(void *user, int64_t row), void *user, pli_batches **batches_out,
                                plait_error *err) {
    if (clocks < 1) return pli_fail(err, PLAIT_EINVAL, "%lld clocks an epoch: expected at least 1", (long long)clocks);
    if (!dataset->loaded) return pli_fail(err, PLAIT_EINVAL, "batches of a data set that is not loaded");
    for (int32_t i = 0; i < dataset->own; i++)
        if (dataset->rows[i].b.rows > UINT32_MAX) return pli_fail(err, PLAIT_EINVAL, "a block of more than 2^32 rows");
    pli_batches *s = pli_calloc(1, sizeof *s);
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for batches");
    *s = (pli_batches){
        .ops = &loaded_ops, .dataset = dataset, .clocks = clocks, .seed = seed, .shuffle = shuffle, .epoch = -1
    };
    if (!prepare(s, skip, user)) {
        pli_batches_destroy(&s);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for the order of rows");
    }
    *batches_out = s;
    return PLAIT_OK;
}

plait_status pli_batches_get(pli_batches *batches, int64_t epoch, int64_t clock, pli_batch *batch_out,
                             plait_error *err) {
    return batches->ops->get(batches, epoch, clock, batch_out, err);
}

int64_t pli_batches_clocks(const pli_batches *batches) { return batches->clocks; }

void pli_batches_destroy(pli_batches **batches) {
    if (batches == NULL || *batches == NULL) return;
    (*batches)->ops->destroy(*batches);
    pli_free((*batches)->part);
    pli_free(*batches);
    *batches = NULL;
}
