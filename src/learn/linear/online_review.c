/* A review against forgetting, behind the last clock of a pass in the files' order.
 *
 * In a file that is sorted by label, or that drifts, the last rows teach the model to expect rows like them, and it
 * forgets the first ones. So each worker keeps a sample of its rows. Behind its last row it judges some of the sample's
 * rows by the model as it is. If the older half has become harder than the newer one, or if the sample is harder than
 * the rows were when they came, the worker learns the rows of the sample once more, in a random order. These rows are
 * not counted in the progressive loss. A shuffled file leaves a model that has forgotten nothing: nothing is learnt
 * twice.
 *
 * The sample keeps each row with the same chance, which is halved, and with it the sample, whenever its memory is full
 * (Gibbons and Matias, "New sampling-based summary statistics for improving approximate query answers", SIGMOD 1998).
 * Whether a row is in it depends on its number and the seed; so a run that resumes reads the rows before its checkpoint
 * once more, and has the sample of the run before. To learn a sample again is rehearsal: Robins, "Catastrophic
 * forgetting, rehearsal and pseudorehearsal", Connection Science 1995. Where workers do not see each other's review,
 * each adds its share of what it has learnt, so the model moves by the mean of the reviews: Zinkevich et al.,
 * "Parallelized stochastic gradient descent", NIPS 2010. */
#include "learn/linear/online.h"

#include <math.h>
#include <string.h>

#include "table/table.h"

enum { SAMPLE_BYTES = 16 << 20, ROW_BYTES = 40, ENTRY_BYTES = 8, PROBE = 4096, CHUNK = 1024 };

/* The loss of the older half over that of the newer one, and of the sample over the progressive loss, from which on the
 * model has forgotten. */
static const double OLDER = 1.1, HARDER = 1.05;

static pli_online *online_of(const pli_run *run) { return pli_linear_fit_of(run)->online; }

/* --- the sample --------------------------------------------------------------------------------------------------- */

static bool is_kept(const pli_run *run, uint64_t number, int32_t level) {
    return level == 0 || pli_hash_u64(number ^ pli_hash_u64(run->opts->seed)) >> (64 - level) == 0;
}

/* Memory for one more row of n entries. */
static bool reserve(pli_online_sample *s, int64_t n) {
    const int64_t rows = s->block.rows, entries = s->block.entries + n;
    if (!pli_grow((void **)&s->number, &s->rows_capacity, rows + 1, sizeof *s->number) ||
        !pli_grow((void **)&s->block.row_start, &s->start_capacity, rows + 2, sizeof *s->block.row_start) ||
        !pli_grow((void **)&s->block.label, &s->label_capacity, rows + 1, sizeof *s->block.label) ||
        !pli_grow((void **)&s->block.weight, &s->weight_capacity, rows + 1, sizeof *s->block.weight) ||
        !pli_grow((void **)&s->block.value, &s->value_capacity, entries, sizeof *s->block.value))
        return false;
    if (rows == 0) s->block.row_start[0] = 0;
    return s->block.key != NULL
               ? pli_grow((void **)&s->block.key, &s->key_capacity, entries, sizeof *s->block.key)
               : pli_grow((void **)&s->block.col, &s->col_capacity, entries, sizeof *s->block.col);
}

/* From now on the sample has wide keys. */
static bool widen(pli_online_sample *s) {
    uint64_t *key = pli_array((size_t)s->block.entries + 1, sizeof *key);
    if (key == NULL) return false;
    for (int64_t e = 0; e < s->block.entries; e++) key[e] = s->block.col[e];
    pli_free(s->block.col);
    s->block.col = NULL;
    s->block.key = key;
    s->key_capacity = s->block.entries + 1;
    return true;
}

static void copy_entries(pli_online_sample *s, const pli_block *from, int64_t first, int64_t n) {
    const int64_t at = s->block.entries;
    if (n == 0) return; /* the arrays may be NULL yet */
    if (from->value != NULL) memcpy(s->block.value + at, from->value + first, (size_t)n * sizeof *from->value);
    for (int64_t e = 0; e < n && from->value == NULL; e++) s->block.value[at + e] = 1;
    if (s->block.col != NULL) memcpy(s->block.col + at, from->col + first, (size_t)n * sizeof *from->col);
    for (int64_t e = 0; e < n && s->block.key != NULL; e++)
        s->block.key[at + e] = from->key != NULL ? from->key[first + e] : from->col[first + e];
}

static bool add(pli_online_sample *s, const pli_block *from, int64_t row) {
    const int64_t first = from->row_start[row], n = from->row_start[row + 1] - first, at = s->block.rows;
    if (from->key != NULL && s->block.key == NULL && !widen(s)) return false;
    if (!reserve(s, n)) return false;
    copy_entries(s, from, first, n);
    s->number[at] = (uint64_t)(from->first_row + row);
    s->block.label[at] = from->label[row];
    s->block.weight[at] = from->weight != NULL ? from->weight[row] : 1;
    s->block.rows++;
    s->block.entries += n;
    s->block.row_start[at + 1] = s->block.entries;
    return true;
}

/* Moves row `from` to the end of rows [0, to) and entries [0, at). */
static void move(pli_online_sample *s, int64_t from, int64_t to, int64_t at) {
    pli_block    *b = &s->block;
    const int64_t first = b->row_start[from], n = b->row_start[from + 1] - first;
    if (n > 0) memmove(b->value + at, b->value + first, (size_t)n * sizeof *b->value);
    if (b->col != NULL) memmove(b->col + at, b->col + first, (size_t)n * sizeof *b->col);
    if (b->key != NULL) memmove(b->key + at, b->key + first, (size_t)n * sizeof *b->key);
    s->number[to] = s->number[from];
    b->label[to] = b->label[from];
    b->weight[to] = b->weight[from];
}

static void halve(const pli_run *run, pli_online_sample *s) {
    int64_t rows = 0, entries = 0;
    s->level++;
    for (int64_t row = 0; row < s->block.rows; row++) {
        const int64_t n = s->block.row_start[row + 1] - s->block.row_start[row];
        if (!is_kept(run, s->number[row], s->level)) continue;
        move(s, row, rows, entries);
        s->block.row_start[rows++] = entries; /* rows <= row, so later starts are still as they were */
        entries += n;
    }
    s->block.row_start[rows] = entries;
    s->block.rows = rows;
    s->block.entries = entries;
}

/* All samples together have SAMPLE_BYTES. */
static bool is_full(const pli_run *run, const pli_online_sample *s) {
    return (s->block.rows * ROW_BYTES + s->block.entries * ENTRY_BYTES) * run->lanes > SAMPLE_BYTES;
}

plait_status pli_online_keep(const pli_run *run, pli_online_thread *thread, const pli_part *part) {
    pli_online_sample *s = &thread->sample;
    if (run->lanes == 0 || online_of(run)->rule.judges) return PLAIT_OK;
    for (int64_t i = 0; i < part->rows; i++) {
        const int64_t row = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        if (!is_kept(run, (uint64_t)(part->block->first_row + row), s->level)) continue;
        if (!add(s, part->block, row))
            return pli_fail(&thread->error, PLAIT_ENOMEM, "no memory for a sample of the rows");
        while (s->block.rows > 1 && is_full(run, s)) halve(run, s);
    }
    return PLAIT_OK;
}

plait_status pli_online_skipped(pli_run *run, const pli_batch *batch) {
    pli_online        *o = online_of(run);
    pli_online_thread *h = pli_online_alone(o);
    PLI_TRY(pli_online_find_order(run, batch->parts, batch->part));
    for (int64_t i = 0; i < o->ordered; i++) {
        if (pli_online_keep(run, h, &batch->part[o->order[i]]) >= 0) continue;
        *run->err = h->error;
        return run->err->code;
    }
    return PLAIT_OK;
}

void pli_online_sample_free(pli_online_sample *s) {
    pli_free(s->number);
    pli_free(s->order);
    pli_free(s->block.row_start);
    pli_free(s->block.col);
    pli_free(s->block.key);
    pli_free(s->block.value);
    pli_free(s->block.label);
    pli_free(s->block.weight);
    *s = (pli_online_sample){ .level = 0 };
}

/* --- has it forgotten? -------------------------------------------------------------------------------------------- */

/* The samples of the worker's threads. */
static plait_status begin(pli_run *run, pli_online_reviewed *review) {
    pli_online *o = online_of(run);
    review->part = pli_array((size_t)o->threads + 1, sizeof *review->part);
    if (review->part == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a review");
    for (int32_t t = 0; t <= o->threads; t++) {
        pli_online_sample *s = &o->thread[t].sample;
        if (s->block.rows < 2) continue;
        s->order = pli_array((size_t)s->block.rows, sizeof *s->order);
        if (s->order == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a review");
        s->block.first_row = (int64_t)s->number[0];
        review->part[review->parts++] = (pli_part){ .block = &s->block, .order = s->order };
    }
    return PLAIT_OK;
}

/* Judges the older half of the samples, or the newer one; PROBE rows of each at most. */
static plait_status judge(pli_run *run, pli_online_reviewed *review, bool newer, double *loss_out) {
    pli_online *o = online_of(run);
    pli_sums    sums = { 0 };
    pli_batch   batch = { .part = review->part, .parts = review->parts };
    for (int32_t p = 0; p < batch.parts; p++) {
        pli_part     *part = &batch.part[p];
        const int64_t half = part->block->rows / 2, from = newer ? half : 0;
        const int64_t n = newer ? part->block->rows - half : half;
        uint32_t     *order = (uint32_t *)part->order; /* it is the sample's */
        part->rows = n < PROBE ? n : PROBE;
        for (int64_t i = 0; i < part->rows; i++) order[i] = (uint32_t)(from + i * n / part->rows);
        batch.rows += part->rows;
    }
    o->rule.judges = true;
    plait_status status = pli_online_again(run, &batch, 1, &sums);
    o->rule.judges = false;
    *loss_out = pli_sums_loss(&sums);
    return status;
}

static plait_status look_back(pli_run *run, pli_online_reviewed *review) {
    const pli_sums sums = pli_total_sums(&run->progressive);
    double         older, newer;
    PLI_TRY(begin(run, review));
    if (review->parts == 0) return PLAIT_OK;
    PLI_TRY(judge(run, review, false, &older));
    PLI_TRY(judge(run, review, true, &newer));
    const bool forgot = older > OLDER * newer || (older + newer) / 2 > HARDER * pli_sums_loss(&sums);
    review->learns = forgot || (pli_run_holders(run) > 1 && run->clocks < PLI_ONLINE_FEW);
    if (!review->learns) return PLAIT_OK;
    for (int32_t p = 0; p < review->parts; p++) {
        const pli_block *block = review->part[p].block;
        pli_random r = pli_random_at(run->opts->seed, PLI_RANDOM_PERMUTE, (uint64_t)block->first_row, 1);
        pli_random_permutation(&r, block->rows, (uint32_t *)review->part[p].order);
    }
    if (pli_comm_leads(run->comm) && !forgot)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "there are few rows for %d workers, which saw little of each other: they are learnt once more",
                (int)pli_run_holders(run));
    else if (pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
                "the first rows were forgotten (loss %.4g, and %.4g for the last ones): a sample of all rows is learnt "
                "once more", older, newer);
    return PLAIT_OK;
}

/* --- the review --------------------------------------------------------------------------------------------------- */

/* By how much the steps of a review count. Rates follow from the slopes that were met in the pass: if more workers
 * review at once than there were, they would go too far together. So where workers come and go, the steps are shared as
 * if no more were in than from the first to the last clock. */
static double share_of(const pli_run *run) {
    const int32_t all = pli_run_holders(run);
    if (online_of(run)->in_place) return 1;
    return run->tail > 0 ? (double)(all - run->opts->slots) / (all - pli_job_away(run->job)) : 1.0 / all;
}

/* Learns share i of n of the samples. */
static plait_status learn_share(pli_run *run, const pli_online_reviewed *review, int64_t i, int64_t n) {
    const double share = share_of(run);
    pli_batch    batch = { .part = pli_array((size_t)review->parts, sizeof *batch.part), .parts = review->parts };
    pli_sums     unused = { 0 };
    if (batch.part == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a review");
    for (int32_t p = 0; p < batch.parts; p++) {
        const int64_t rows = review->part[p].block->rows, from = rows * i / n;
        batch.part[p] = review->part[p];
        batch.part[p].order += from;
        batch.part[p].rows = rows * (i + 1) / n - from;
        batch.rows += batch.part[p].rows;
    }
    plait_status status = batch.rows > 0 ? pli_online_again(run, &batch, share, &unused) : PLAIT_OK;
    pli_free(batch.part);
    return status;
}

plait_status pli_online_review(pli_run *run, int64_t clock) {
    pli_online_reviewed *review = &online_of(run)->review;
    const int64_t        clocks = run->tail > 0 ? run->tail : 1;
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    if (review->part == NULL) PLI_TRY(look_back(run, review));
    if (!review->learns) return PLAIT_OK;
    int64_t most = 1; /* rows of a thread's sample; few are learnt at a time: their features' values are read at once */
    for (int32_t p = 0; p < review->parts; p++)
        most = review->part[p].block->rows > most ? review->part[p].block->rows : most;
    const int64_t chunks = (most / clocks + CHUNK - 1) / CHUNK + 1, first = (clock - (run->clocks - clocks)) * chunks;
    for (int64_t c = 0; c < chunks; c++) PLI_TRY(learn_share(run, review, first + c, clocks * chunks));
    return PLAIT_OK;
}
