/* A batch of naive Bayes: its rows are tallied, and what they add up to is pushed. Some threads tally some blocks each.
 * How many tallies there are may show in how real numbers are rounded, so their number follows from the data alone
 * then. Nothing that is read changes what is pushed: a step reads one row, so as to keep in step with the others. */
#include "learn/bayes/bayes.h"

#include <math.h>
#include <string.h>

#include "table/table.h"

enum { REAL_SLOTS = 8, SLOT_VALUES_MAX = 1 << 22 };

static plait_type type_of(bool whole) { return whole ? PLAIT_I64 : PLAIT_F64; }

/* --- tables and memory -------------------------------------------------------------------------------------------- */

static plait_status create_tables(pli_run *run) {
    pli_bayes_fit   *b = pli_bayes_fit_of(run);
    plait_table_opts t;
    plait_table_opts_init(&t);
    t.name = "sums";
    t.type = type_of(b->tally.whole);
    t.rows = b->tally.features;
    t.cols = b->tally.width;
    t.keyed = b->form == PLI_BAYES_KEYED;
    PLI_TRY(pli_run_make_table(run, &t, &b->sums));
    t.name = "rows";
    t.type = type_of(b->rows_are_whole);
    t.rows = 1;
    t.cols = b->fit.goal.classes;
    t.keyed = 0;
    return pli_run_make_table(run, &t, &b->rows);
}

/* Where each block is pushed by itself there is one; where tallies are large, too. */
static int32_t slots_of(const pli_run *run) {
    const pli_bayes_fit *b = pli_bayes_fit_of(run);
    if (b->apart || b->tally.features * b->tally.width > SLOT_VALUES_MAX) return 1;
    return b->tally.whole ? pli_pool_threads(run->pool) : REAL_SLOTS;
}

static plait_status begin(pli_run *run) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    b->apart = run->exact && !b->tally.whole;
    const int32_t slots = slots_of(run);
    PLI_TRY(create_tables(run));
    b->slot = pli_calloc((size_t)slots, sizeof *b->slot);
    b->class_push = pli_calloc((size_t)b->fit.goal.classes, sizeof *b->class_push);
    if (b->slot == NULL || b->class_push == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for sums");
    for (; b->slots < slots; b->slots++) PLI_TRY(pli_tally_init(&b->tally, &b->slot[b->slots], run->err));
    return PLAIT_OK;
}

static void end(pli_run *run) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    for (int32_t i = 0; i < b->slots; i++) pli_tally_destroy(&b->slot[i]);
    pli_free(b->slot);
    pli_free(b->keys);
    pli_free(b->order);
    pli_free(b->push);
    pli_free(b->class_push);
    b->slots = 0;
}

/* --- what is pushed ----------------------------------------------------------------------------------------------- */

static plait_status reserve(pli_run *run, int64_t rows) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    if (pli_grow((void **)&b->keys, &b->keys_capacity, rows, sizeof *b->keys) &&
        pli_grow((void **)&b->order, &b->order_capacity, rows, sizeof *b->order) &&
        pli_grow(&b->push, &b->push_capacity, rows * b->tally.width, sizeof(double)))
        return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory to push the sums of %lld features", (long long)rows);
}

static void copy_row(pli_bayes_fit *b, int64_t to, const pli_tally *tally, int64_t row) {
    const int64_t width = b->tally.width;
    memcpy((double *)b->push + to * width, (const double *)tally->sum + row * width, (size_t)width * sizeof(double));
}

static plait_status push_marked(pli_run *run, const pli_tally *tally) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    const int64_t  words = (b->tally.features + 63) / 64;
    int64_t        n = 0, at = 0;
    for (int64_t w = 0; w < words; w++) n += __builtin_popcountll(tally->mark[w]);
    PLI_TRY(reserve(run, n));
    for (int64_t w = 0; w < words; w++)
        for (uint64_t bits = tally->mark[w]; bits != 0; bits &= bits - 1) {
            const int64_t j = 64 * w + __builtin_ctzll(bits);
            b->keys[at] = (uint64_t)j;
            copy_row(b, at++, tally, j);
        }
    pli_comm_work(run->comm, PLI_WORK_KEYS, (uint64_t)n);
    return plait_table_inc(b->sums, n, b->keys, b->push, 0);
}

static plait_status push_keys(pli_run *run, const pli_tally *tally) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    const int64_t  n = tally->map.n;
    PLI_TRY(reserve(run, n));
    pli_keymap_keys(&tally->map, b->keys);
    for (int64_t i = 0; i < n; i++) b->order[i] = (uint32_t)i;
    if (!pli_sort_u64(n, b->keys, b->order)) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to sort features");
    for (int64_t i = 0; i < n; i++) copy_row(b, i, tally, b->order[i]);
    pli_comm_work(run->comm, PLI_WORK_KEYS, (uint64_t)n);
    return plait_table_inc(b->sums, n, b->keys, b->push, 0);
}

static plait_status push_rows(pli_run *run, const pli_tally *tally) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    int64_t       *whole = b->class_push;
    for (int64_t k = 0; k < b->fit.goal.classes; k++) whole[k] = (int64_t)tally->of_class[k];
    return plait_table_inc_range(b->rows, 0, 1, b->rows_are_whole ? (const void *)whole : tally->of_class, 0);
}

/* Pushes what the first tally holds, and empties it. */
static plait_status push(pli_run *run) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    pli_tally     *tally = &b->slot[0];
    PLI_TRY(push_rows(run, tally));
    PLI_TRY(b->form == PLI_BAYES_DENSE   ? plait_table_inc_range(b->sums, 0, b->tally.features, tally->sum, 0)
            : b->form == PLI_BAYES_KEYED ? push_marked(run, tally)
                                         : push_keys(run, tally));
    pli_tally_clear(&b->tally, tally);
    return PLAIT_OK;
}

/* --- a batch ------------------------------------------------------------------------------------------------------ */

/* Parts are tallied by the thread that takes them; where their order shows, by runs of parts, each with its tally. */
typedef struct tallying {
    pli_run        *run;
    const pli_part *part; /* NULL: a stream's, parsed by the thread that tallies them */
    int64_t         first, parts, clock; /* parts first .. first + parts - 1 */
    bool            by_thread;
    int64_t         parsed; /* entries of a stream's rows, counted where simulated hosts are charged for them */
} tallying;

static plait_status tally_part(const tallying *t, pli_tally *tally, int64_t p, int32_t thread) {
    pli_part part;
    if (t->part != NULL) {
        part = t->part[p];
    } else {
        PLI_TRY(pli_stream_part(t->run->loop->batches, t->clock, (int32_t)p, thread, &part, &tally->error));
        if (pli_comm_charges(t->run->comm)) tally->entries += pli_part_entries(&part);
    }
    return pli_tally_add(&pli_bayes_fit_of(t->run)->tally, tally, &part, &tally->error);
}

static void tally_some(void *user, int64_t i, int32_t thread) {
    const tallying *t = user;
    pli_bayes_fit  *b = pli_bayes_fit_of(t->run);
    pli_tally      *tally = &b->slot[t->by_thread ? thread : i];
    const int64_t   runs = t->by_thread ? t->parts : b->slots;
    for (int64_t p = t->parts * i / runs; p < t->parts * (i + 1) / runs && tally->error.code >= 0; p++)
        if (tally_part(t, tally, t->first + p, thread) < 0) return;
}

static plait_status add_up(pli_run *run) {
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    for (int32_t i = 0; i < b->slots; i++)
        if (b->slot[i].error.code < 0) {
            *run->err = b->slot[i].error;
            return run->err->code;
        }
    for (int32_t i = 1; i < b->slots; i++) PLI_TRY(pli_tally_merge(&b->tally, &b->slot[0], &b->slot[i], run->err));
    return PLAIT_OK;
}

/* All rows to the first tally. The loss of a row is not known before all have been counted. */
static plait_status tally_batch(tallying *t, pli_sums *sums_out) {
    pli_run       *run = t->run;
    pli_bayes_fit *b = pli_bayes_fit_of(run);
    t->by_thread = b->tally.whole && b->slots == pli_pool_threads(run->pool);
    pli_loop_work_begin(run);
    pli_pool_for(run->pool, t->by_thread ? t->parts : b->slots, tally_some, t);
    PLI_TRY(add_up(run));
    pli_loop_work_end(run);
    t->parsed = b->slot[0].entries;
    *sums_out = (pli_sums){ .loss = NAN, .weight = b->slot[0].weight, .rows = b->slot[0].rows };
    return PLAIT_OK;
}

/* Under --reduce exact sums of real numbers are those of blocks, each pushed by itself. */
static plait_status step_apart(tallying *all, pli_sums *sums_out) {
    for (int64_t p = 0; p < all->parts; p++) {
        tallying one = { .run = all->run, .part = all->part, .first = p, .parts = 1, .clock = all->clock };
        pli_sums sums;
        PLI_TRY(tally_batch(&one, &sums));
        all->parsed += one.parsed;
        if (sums.rows == 0) continue;
        PLI_TRY(push(all->run));
        pli_sums_add(sums_out, &sums);
    }
    return PLAIT_OK;
}

/* A worker that reads nothing would run ahead of the others: where one dies, nobody would be near enough to take
 * over. */
static plait_status keep_in_step(pli_run *run) {
    const void *ignored;
    return plait_table_read(pli_bayes_fit_of(run)->rows, 0, 1, &ignored);
}

/* What the clock cost, in a simulation. */
static void charge(const tallying *t, const pli_batch *batch) {
    const pli_bayes_fit *b = pli_bayes_fit_of(t->run);
    const int64_t        values = b->form == PLI_BAYES_DENSE ? b->tally.features * b->tally.width : 0;
    if (batch != NULL) {
        pli_run_charge(t->run, batch, 1, values);
    } else if (pli_comm_charges(t->run->comm)) {
        pli_comm_work(t->run->comm, PLI_WORK_PARSED, (uint64_t)t->parsed);
        pli_comm_work(t->run->comm, PLI_WORK_ENTRIES, (uint64_t)t->parsed);
        pli_comm_work(t->run->comm, PLI_WORK_SUMS, (uint64_t)values);
    }
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    const pli_bayes_fit *b = pli_bayes_fit_of(run);
    tallying             t = { .run = run, .clock = clock, .part = batch != NULL ? batch->part : NULL,
                               .parts = batch != NULL ? batch->parts : pli_dataset_own_blocks(run->data) };
    uint64_t             at = pli_comm_span_begin(run->comm);
    PLI_TRY(keep_in_step(run));
    pli_run_step(run, "get", &at);
    if (b->apart) {
        PLI_TRY(step_apart(&t, sums_out));
    } else {
        PLI_TRY(tally_batch(&t, sums_out));
        PLI_TRY(push(run));
    }
    charge(&t, batch);
    if (run->exact) pli_total_add(&run->loop->total, sums_out);
    pli_run_step(run, "compute", &at);
    return PLAIT_OK;
}

const pli_steps pli_bayes_steps = { .parses = true, .begin = begin, .end = end, .step = step, .idle = keep_in_step,
                                    .epoch = pli_fit_epoch, .finish = pli_fit_finish };
