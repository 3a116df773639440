/* Batches over loaded blocks.
 *
 * Clock k of C takes its share of rows (pli_share) of each block's own permutation, a function of seed, block and
 * epoch. So a batch is the same set of rows however blocks are spread over workers, and an epoch has each row once. */
#include "data/dataset/batches.h"

#include "data/cache/cache.h"
#include "data/dataset/stream.h"

#include <string.h>

/* The epoch's permutation of a block's kept rows. kept NULL: all rows. */
static void shuffle_block(const pli_batches *s, int64_t block, int64_t epoch, const uint32_t *kept, int64_t n,
                          uint32_t *order) {
    pli_random r = pli_random_at(s->seed, PLI_RANDOM_PERMUTE, (uint64_t)block, (uint64_t)epoch);
    pli_random_permutation(&r, n, order);
    for (int64_t k = 0; kept != NULL && k < n; k++) order[k] = kept[order[k]];
}

/* One clock's part of a block with n kept rows; order NULL: in their own order. */
static pli_part part_of(const pli_batches *s, const pli_block *block, const uint32_t *order, int64_t n, int64_t clock) {
    const int64_t from = pli_batches_share(s, block->number, n, clock),
                  to = pli_batches_share(s, block->number, n, clock + 1);
    return (pli_part){ .block = block,
                       .order = order != NULL ? order + from : NULL,
                       .first = order != NULL ? 0 : from,
                       .rows = to - from };
}

static plait_status check_clock(const pli_batches *s, int64_t epoch, int64_t clock, plait_error *err) {
    if (epoch >= 0 && clock >= 0 && clock < s->clocks) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "clock %lld of epoch %lld: an epoch has %lld clocks", (long long)clock,
                    (long long)epoch, (long long)s->clocks);
}

static void enter_epoch(pli_batches *s, int64_t epoch) {
    if (s->epoch == epoch) return;
    s->epoch = epoch;
    for (int32_t i = 0; !pli_batches_are_in_order(s) && i < s->dataset->own; i++)
        shuffle_block(s, s->dataset->rows[i].b.number, epoch, s->kept[i], s->n_kept[i], s->order[i]);
}

static pli_part own_part(const pli_batches *s, int32_t i, int64_t clock) {
    return part_of(s, &s->dataset->rows[i].b, pli_batches_are_in_order(s) ? s->kept[i] : s->order[i], s->n_kept[i],
                   clock);
}

static plait_status get_loaded(pli_batches *s, int64_t epoch, int64_t clock, pli_batch *batch_out, plait_error *err) {
    PLI_TRY(check_clock(s, epoch, clock, err));
    enter_epoch(s, epoch);
    *batch_out = (pli_batch){ .part = s->part, .parts = s->dataset->own };
    for (int32_t i = 0; i < s->dataset->own; i++) {
        s->part[i] = own_part(s, i, clock);
        batch_out->rows += s->part[i].rows;
    }
    return clock == s->clocks - 1 ? pli_datacache_check(s->dataset, err) : PLAIT_OK;
}

static void free_guest(pli_guest **guest) {
    if (*guest == NULL) return;
    if ((*guest)->owned) pli_rows_free(&(*guest)->rows);
    pli_free((*guest)->kept);
    pli_free((*guest)->order);
    pli_free(*guest);
    *guest = NULL;
}

static void destroy_loaded(pli_batches *s) {
    for (int32_t i = 0; i < s->dataset->own; i++) {
        if (s->kept != NULL) pli_free(s->kept[i]);
        if (s->order != NULL) pli_free(s->order[i]);
    }
    for (int32_t b = 0; s->guest != NULL && b < s->dataset->blocks; b++) free_guest(&s->guest[b]);
    pli_free(s->guest);
    pli_free(s->kept);
    pli_free(s->order);
    pli_free(s->n_kept);
}

static const pli_batches_ops loaded_ops = { .get = get_loaded, .destroy = destroy_loaded };

/* Finds which rows of a block are kept. *kept_out NULL: all. */
static bool keep_rows(const pli_batches *s, const pli_block *block, uint32_t **kept_out, int64_t *n_out) {
    *n_out = block->rows;
    if (s->skip == NULL) return true;
    uint32_t *kept = pli_array((size_t)block->rows, sizeof *kept);
    int64_t   n = 0;
    if (kept == NULL) return false;
    for (int64_t row = 0; row < block->rows; row++)
        if (!s->skip(s->user, block->first_row + row)) kept[n++] = (uint32_t)row;
    *n_out = n;
    *kept_out = kept;
    return true;
}

static bool prepare(pli_batches *s) {
    size_t own = (size_t)s->dataset->own;
    s->part = pli_calloc(own, sizeof *s->part);
    s->kept = pli_calloc(own, sizeof *s->kept);
    s->order = pli_calloc(own, sizeof *s->order);
    s->n_kept = pli_calloc(own, sizeof *s->n_kept);
    bool good = s->part != NULL && s->kept != NULL && s->order != NULL && s->n_kept != NULL;
    for (int32_t i = 0; good && i < s->dataset->own; i++) {
        good = keep_rows(s, &s->dataset->rows[i].b, &s->kept[i], &s->n_kept[i]);
        if (good && s->shuffle) good = (s->order[i] = pli_array((size_t)s->n_kept[i], sizeof **s->order)) != NULL;
    }
    return good;
}

/* --- blocks of other workers -------------------------------------------------------------------------------- */

static plait_status invite(const pli_batches *s, int32_t block, pli_guest **guest_out, plait_error *err) {
    pli_guest *guest = pli_calloc(1, sizeof *guest);
    if (guest == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a block");
    guest->epoch = -1;
    plait_status status = pli_dataset_fetch(s->dataset, block, &guest->rows, &guest->owned, err);
    bool         good = status == PLAIT_OK && keep_rows(s, &guest->rows.b, &guest->kept, &guest->n_kept);
    if (good && s->shuffle) good = (guest->order = pli_array((size_t)guest->n_kept, sizeof *guest->order)) != NULL;
    if (status == PLAIT_OK && !good) status = pli_fail(err, PLAIT_ENOMEM, "no memory for the order of rows");
    if (status < 0) free_guest(&guest);
    *guest_out = guest;
    return status;
}

plait_status pli_batches_part(pli_batches *s, int32_t block, int64_t epoch, int64_t clock, pli_part *part_out,
                              plait_error *err) {
    const pli_dataset *d = s->dataset;
    PLI_TRY(check_clock(s, epoch, clock, err));
    if (block < 0 || block >= d->blocks || (s->stream != NULL && (s->stream->live || epoch > 0)))
        return pli_fail(err, PLAIT_EINVAL, "block %d of %d, or of a stream that is over", block, d->blocks);
    if (s->stream != NULL) return pli_stream_block_part(s, block, clock, part_out, err);
    enter_epoch(s, epoch);
    const bool shuffles = !pli_batches_are_in_order(s);
    if (block >= d->first && block < d->first + d->own) {
        *part_out = own_part(s, block - d->first, clock);
        return PLAIT_OK;
    }
    if (s->guest == NULL) s->guest = pli_calloc((size_t)d->blocks, sizeof *s->guest);
    if (s->guest == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of blocks");
    if (s->guest[block] == NULL) PLI_TRY(invite(s, block, &s->guest[block], err));
    pli_guest *guest = s->guest[block];
    if (shuffles && guest->epoch != epoch) shuffle_block(s, block, epoch, guest->kept, guest->n_kept, guest->order);
    guest->epoch = epoch;
    *part_out = part_of(s, &guest->rows.b, shuffles ? guest->order : guest->kept, guest->n_kept, clock);
    return PLAIT_OK;
}

void pli_batches_drop(pli_batches *s, int32_t block) {
    if (s->stream != NULL) pli_stream_drop_guest(s->stream, block);
    if (s->guest != NULL) free_guest(&s->guest[block]);
}

/* --- life --------------------------------------------------------------------------------------------------- */

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
        .ops = &loaded_ops, .dataset = dataset, .clocks = clocks, .seed = seed, .shuffle = shuffle, .epoch = -1,
        .skip = skip, .user = user
    };
    if (!prepare(s)) {
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

void pli_batches_begin_in_order(pli_batches *batches) { batches->first_in_order = true; }

int64_t pli_batches_clocks(const pli_batches *batches) { return batches->clocks; }

void pli_batches_destroy(pli_batches **batches) {
    if (batches == NULL || *batches == NULL) return;
    (*batches)->ops->destroy(*batches);
    pli_free((*batches)->part);
    pli_free((*batches)->turn);
    pli_free(*batches);
    *batches = NULL;
}
