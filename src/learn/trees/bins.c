/* Cuts at quantiles. The rows that are looked at are all rows, or those that a hash of the row's number picks, about
 * SAMPLE of them: so they are the same for each number of workers. By the inequality of Dvoretzky, Kiefer and Wolfowitz
 * a sample of m rows has every quantile within sqrt(log(2 / p) / 2m) of its rank, but for a chance of p: with 200,000
 * rows within 0.36 % of the rows, 99 times of 100. A bin of 255 has 0.39 %.
 *
 * All workers gather all sampled values and find the same cuts. Each value becomes a 64-bit number: the value, so that
 * its order is that of the numbers, and the row's weight in 32 bits. Sums of such weights are exact. */
#include <math.h>
#include <string.h>

#include "base/sort.h"
#include "learn/solve/block.h"
#include "learn/trees/bins.h"

#define SAMPLE  200000.0
#define ENTRIES 8000000.0 /* values of the sample, at most about so many */

enum { WEIGHT_BITS = 30 };

/* --- the sample --------------------------------------------------------------------------------------------------- */

/* A sampled row, as workers send it, in words of 32 bits: its weight; how many values it has, times two, plus 1 if they
 * are those of all features in order; then each value's order, behind its feature where it is not told by its place. */
#define MISSING UINT32_MAX /* in place of a value's order, which no number has */

/* What all rows hold, not only the sampled ones. */
enum { HEAVIEST, ROWS_SAMPLED, LOOKS };

static uint64_t order_of(float value) {
    uint32_t bits;
    value += 0.0f; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

static float value_of(uint64_t order) {
    const uint32_t o = (uint32_t)order, bits = (o & 0x80000000u) != 0 ? o & 0x7fffffffu : ~o;
    float          value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double weight_of(const pli_run *run, const pli_block *block, int64_t r) {
    double y, weight;
    if (run->fraction > 0 && pli_run_holds_back((void *)(uintptr_t)run, block->first_row + r)) return 0;
    if (!pli_goal_target(&pli_fit_of(run)->goal, block->label[r], &y, &weight)) return 0;
    return block->weight != NULL ? weight * (double)block->weight[r] : weight;
}

static bool is_sampled(const pli_run *run, int64_t row, double share) {
    if (share >= 1) return true;
    pli_random random = pli_random_at(run->opts->seed, PLI_RANDOM_TREES, UINT64_MAX, (uint64_t)row);
    return pli_random_f64(&random) < share;
}

/* Looks at all own rows: the heaviest, and which features lack a value somewhere. */
static void look(const pli_run *run, const pli_fields *fields, double *heaviest, double *missing) {
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        for (int64_t r = 0; r < block->rows; r++) *heaviest = fmax(*heaviest, weight_of(run, block, r));
        for (int64_t e = 0; block->value != NULL && e < block->entries; e++)
            if (isnan(block->value[e])) {
                const int64_t f = pli_field_of(fields, pli_block_column(block, e));
                if (f >= 0) missing[f] = 1;
            }
    }
}

static bool is_whole(const pli_fields *fields, const pli_block *block, int64_t r, int64_t features) {
    const int64_t first = block->row_start[r];
    if (block->row_start[r + 1] - first != features) return false;
    for (int64_t f = 0; f < features; f++)
        if (pli_field_of(fields, pli_block_column(block, first + f)) != f) return false;
    return true;
}

static void put(pli_text *to, uint32_t word) { pli_text_add_bytes(to, &word, sizeof word); }

static bool sample_row(const pli_fields *fields, const pli_block *block, int64_t r, int64_t features, uint32_t weight,
                       pli_text *to) {
    const bool whole = is_whole(fields, block, r, features);
    uint32_t   n = 0;
    for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++)
        n += pli_field_of(fields, pli_block_column(block, e)) >= 0;
    put(to, weight);
    put(to, n << 1 | whole);
    for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
        const uint64_t key = pli_block_column(block, e);
        const int64_t  f = pli_field_of(fields, key);
        if (f < 0) continue;
        const float value = pli_field_value(fields, f, key, block->value != NULL ? block->value[e] : 1);
        if (!whole) put(to, (uint32_t)f);
        put(to, isnan(value) ? MISSING : (uint32_t)order_of(value));
    }
    return !to->failed;
}

/* The own rows of the sample. */
static plait_status take_sample(const pli_run *run, const pli_bins *bins, double heaviest, pli_text *to) {
    const double rows = (double)run->rows, entries = fmax((double)run->entries, 1);
    const double share = fmin(SAMPLE / rows, ENTRIES / entries), unit = heaviest / (double)((uint64_t)1 << WEIGHT_BITS);
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        for (int64_t r = 0; r < block->rows; r++) {
            const double weight = weight_of(run, block, r);
            if (!(weight > 0) || !is_sampled(run, block->first_row + r, share)) continue;
            const uint64_t units = (uint64_t)llrint(weight / unit);
            if (!sample_row(bins->fields, block, r, bins->features, units > 0 ? (uint32_t)units : 1, to))
                return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a sample of the rows");
        }
    }
    return PLAIT_OK;
}

/* --- cuts of a feature -------------------------------------------------------------------------------------------- */

/* The different values of a feature, increasing, and the weight of each. */
typedef struct values {
    int64_t  n;
    float   *value;
    int64_t *weight;
} values;

typedef struct cutter {
    const values *v;
    int64_t       most, n; /* cuts so far */
    double       *cut;
} cutter;

static void cut_behind(cutter *c, int64_t i) {
    c->cut[c->n++] = ((double)c->v->value[i] + (double)c->v->value[i + 1]) / 2;
}

/* A value as heavy as a whole bin has a bin of its own; the others share what is left evenly. */
static void cut_evenly(cutter *c) {
    const values *v = c->v;
    int64_t       total = 0, rest = 0, bins = c->most, sum = 0;
    for (int64_t i = 0; i < v->n; i++) total += v->weight[i];
    const double heavy = (double)total / (double)c->most;
    for (int64_t i = 0; i < v->n; i++) {
        if ((double)v->weight[i] >= heavy) bins--;
        else rest += v->weight[i];
    }
    double mean = bins > 0 ? (double)rest / (double)bins : (double)total;
    for (int64_t i = 0; i + 1 < v->n && c->n + 1 < c->most; i++) {
        const bool is_heavy = (double)v->weight[i] >= heavy, next = (double)v->weight[i + 1] >= heavy;
        sum += v->weight[i];
        if (!is_heavy) rest -= v->weight[i];
        if (!is_heavy && (double)sum < mean && !(next && (double)sum >= mean / 2)) continue;
        cut_behind(c, i);
        sum = 0;
        if (!is_heavy) bins--;
        if (bins > 0) mean = (double)rest / (double)bins;
    }
}

static void cut_values(cutter *c) {
    if (c->v->n > c->most) cut_evenly(c);
    else
        for (int64_t i = 0; i + 1 < c->v->n; i++) cut_behind(c, i);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* The heaviest codes have bins of their own, in the order of codes. The values are codes + 1; 0 is no text. false: out
 * of memory. */
static bool keep_codes(cutter *c) {
    const values *v = c->v;
    const int64_t first = v->n > 0 && v->value[0] == 0, n = v->n - first;
    uint64_t     *key = pli_array((size_t)n, sizeof *key);
    uint32_t     *order = pli_array((size_t)n, sizeof *order);
    bool         *kept = pli_calloc((size_t)n, sizeof *kept);
    bool          ok = key != NULL && order != NULL && kept != NULL;
    for (int64_t i = 0; ok && i < n; i++) {
        key[i] = UINT64_MAX - (uint64_t)v->weight[first + i];
        order[i] = (uint32_t)i;
    }
    ok = ok && pli_sort_u64(n, key, order); /* it keeps the order of equal keys */
    for (int64_t i = 0; ok && i < n && i < c->most; i++) kept[order[i]] = true;
    for (int64_t i = 0; ok && i < n; i++)
        if (kept[i]) c->cut[c->n++] = (double)v->value[first + i] - 1;
    pli_free(key);
    pli_free(order);
    pli_free(kept);
    return ok;
}

/* --- all features ------------------------------------------------------------------------------------------------- */

typedef struct work {
    pli_bins      *bins;
    int64_t        most, zeros_of_all; /* the weight of all sampled rows */
    const int64_t *first;              /* [features + 1] */
    uint64_t      *key;                /* by feature: values that are given */
    const int64_t *missing_weight;     /* [features] */
    const double  *missing;            /* [features] 1: some row lacks a value */
    int64_t       *cuts;               /* [features] how many: -1: one bin     */
    double        *cut;                /* [features, most]                     */
    int32_t       *common;             /* [features] */
    int64_t       *common_weight;      /* [features] */
    bool           failed;             /* set by any thread, read past the loop */
} work;

/* Merges equal values, and puts zeros, which rows do not name, among them. */
static void gather_values(const work *w, int64_t f, values *v) {
    const uint64_t mask = 0xffffffffu, zero = order_of(0);
    int64_t        zeros = w->zeros_of_all - w->missing_weight[f];
    for (int64_t i = w->first[f]; i < w->first[f + 1]; i++) zeros -= (int64_t)(w->key[i] & mask);
    for (int64_t i = w->first[f]; i <= w->first[f + 1]; i++) {
        const bool     end = i == w->first[f + 1];
        const uint64_t order = end ? UINT64_MAX : w->key[i] >> 32;
        if (zeros > 0 && order > zero) {
            const bool there = v->n > 0 && v->value[v->n - 1] == 0;
            if (!there) v->value[v->n] = 0, v->weight[v->n++] = 0;
            v->weight[v->n - 1] += zeros;
            zeros = 0;
        }
        if (end) break;
        const float value = value_of(order);
        if (v->n == 0 || v->value[v->n - 1] != value) v->value[v->n] = value, v->weight[v->n++] = 0;
        v->weight[v->n - 1] += (int64_t)(w->key[i] & mask);
    }
}

/* Which bin of a column of texts has the most weight: c->n is that of rows without a bin. */
static void find_common_code(work *w, int64_t f, const values *v, const cutter *c) {
    int64_t rest = 0;
    w->common_weight[f] = -1;
    for (int64_t i = 0, bin = 0; i < v->n; i++) {
        const bool kept = bin < c->n && c->cut[bin] + 1 == (double)v->value[i];
        if (!kept) rest += v->weight[i];
        else if (v->weight[i] > w->common_weight[f]) w->common_weight[f] = v->weight[i], w->common[f] = (int32_t)bin;
        bin += kept;
    }
    if (rest > w->common_weight[f]) w->common_weight[f] = rest, w->common[f] = (int32_t)c->n;
}

/* Which bin has the most weight. */
static void find_common(work *w, int64_t f, const values *v, const cutter *c) {
    int64_t sum = 0, bin = 0;
    w->common_weight[f] = -1;
    for (int64_t i = 0; i < v->n; i++) {
        while (bin < c->n && c->cut[bin] < (double)v->value[i]) bin++, sum = 0;
        sum += v->weight[i];
        if (sum > w->common_weight[f]) w->common_weight[f] = sum, w->common[f] = (int32_t)bin;
    }
}

static void cut_feature(void *user, int64_t f, int32_t thread) {
    work         *w = user;
    const int64_t n = w->first[f + 1] - w->first[f];
    values        v = { .value = pli_array((size_t)n + 1, sizeof *v.value),
                        .weight = pli_array((size_t)n + 1, sizeof *v.weight) };
    cutter        c = { .v = &v, .most = w->most, .cut = w->cut + f * w->most };
    (void)thread;
    bool good = v.value != NULL && v.weight != NULL && pli_sort_u64(n, w->key + w->first[f], NULL);
    if (good) {
        gather_values(w, f, &v);
        if (pli_field_is_text(w->bins->fields, f)) {
            good = keep_codes(&c);
            find_common_code(w, f, &v, &c);
            w->cuts[f] = v.n > 1 ? c.n : -1;
        } else {
            cut_values(&c);
            find_common(w, f, &v, &c);
            w->cuts[f] = c.n > 0 || w->missing[f] > 0 ? c.n : -1;
        }
    }
    if (!good) {
        __atomic_store_n(&w->failed, true, __ATOMIC_RELAXED); /* pairs with cut_all's load, past the loop */
    }
    pli_free(v.value);
    pli_free(v.weight);
}

/* Hears of the sample's values: counts them, or, with key, puts them at first[f + 1] and moves that on. */
static void walk_sample(int64_t words, const uint32_t *s, int64_t *first, uint64_t *key, int64_t *missing_weight,
                        int64_t *total) {
    for (int64_t i = 0; i < words;) {
        const uint32_t weight = s[i], n = s[i + 1] >> 1, whole = s[i + 1] & 1;
        i += 2;
        if (key == NULL) *total += weight;
        for (uint32_t v = 0; v < n; v++) {
            const uint32_t f = whole ? v : s[i++], order = s[i++];
            if (order != MISSING && key != NULL) key[first[f + 1]++] = (uint64_t)order << 32 | weight;
            else if (order != MISSING) first[f + 2]++;
            else if (key == NULL) missing_weight[f] += weight;
        }
    }
}

/* Sorts the sample by feature. first [features + 2] */
static void by_feature(int64_t words, const uint32_t *s, int64_t features, int64_t *first, uint64_t *key,
                       int64_t *missing_weight, int64_t *total) {
    walk_sample(words, s, first, NULL, missing_weight, total);
    for (int64_t f = 0; f < features; f++) first[f + 2] += first[f + 1];
    walk_sample(words, s, first, key, missing_weight, total);
}

static bool make_arrays(pli_bins *b, int64_t used, int64_t cuts) {
    b->feature = pli_array((size_t)used, sizeof *b->feature);
    b->place = pli_array((size_t)b->features, sizeof *b->place);
    b->cut = pli_array((size_t)cuts, sizeof *b->cut);
    b->cut_start = pli_array((size_t)used + 1, sizeof *b->cut_start);
    b->count = pli_array((size_t)used, sizeof *b->count);
    b->of_code = pli_calloc((size_t)used, sizeof *b->of_code);
    b->missing = pli_array((size_t)used, sizeof *b->missing);
    b->zero = pli_array((size_t)used, sizeof *b->zero);
    b->common = pli_array((size_t)used, sizeof *b->common);
    b->offset = pli_array((size_t)used + 1, sizeof *b->offset);
    return b->feature != NULL && b->place != NULL && b->cut != NULL && b->cut_start != NULL && b->count != NULL &&
           b->of_code != NULL &&
           b->missing != NULL && b->zero != NULL && b->common != NULL && b->offset != NULL;
}

static plait_status no_memory(const pli_run *run, int64_t used) {
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the bins of %lld features", (long long)used);
}

/* Texts without a bin are with the rows that have none. */
static bool number_codes(pli_bins *b, int32_t j) {
    const int32_t codes = b->fields->codes[b->feature[j]], bins = (int32_t)(b->cut_start[j + 1] - b->cut_start[j]);
    b->count[j] = bins;
    b->missing[j] = true;
    b->of_code[j] = pli_array((size_t)codes, 1);
    if (b->of_code[j] == NULL) return false;
    memset(b->of_code[j], bins, (size_t)codes);
    for (int32_t bin = 0; bin < bins; bin++) b->of_code[j][(int64_t)b->cut[b->cut_start[j] + bin]] = (uint8_t)bin;
    return true;
}

/* Keeps the features that have more than one bin. */
static plait_status keep_used(const pli_run *run, const work *w) {
    pli_bins *b = w->bins;
    int64_t   used = 0, cuts = 0;
    double    common = 0;
    for (int64_t f = 0; f < b->features; f++)
        if (w->cuts[f] >= 0) used++, cuts += w->cuts[f];
    if (used == 0)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "model %s finds nothing to split rows by: each feature has the same value in all rows",
                        run->learner->name);
    if (used > INT32_MAX / 2 || !make_arrays(b, used, cuts)) return no_memory(run, used);
    b->cut_start[0] = b->offset[0] = 0;
    for (int64_t f = 0; f < b->features; f++) {
        const int32_t j = b->used;
        b->place[f] = w->cuts[f] < 0 ? -1 : j;
        if (w->cuts[f] < 0) continue;
        b->feature[j] = (int32_t)f;
        memcpy(b->cut + b->cut_start[j], w->cut + f * w->most, (size_t)w->cuts[f] * sizeof *b->cut);
        b->cut_start[j + 1] = b->cut_start[j] + w->cuts[f];
        b->count[j] = (int32_t)w->cuts[f] + 1;
        b->missing[j] = w->missing[f] > 0;
        if (pli_field_is_text(b->fields, f) && !number_codes(b, j)) return no_memory(run, used);
        b->zero[j] = pli_bins_of(b, j, 0);
        b->common[j] = w->common[f];
        b->offset[j + 1] = b->offset[j] + b->count[j] + b->missing[j];
        common += (double)w->common_weight[f];
        b->used++;
    }
    b->to = b->used;
    b->filled = w->zeros_of_all > 0 ? 1 - common / ((double)w->zeros_of_all * (double)b->used) : 1;
    return PLAIT_OK;
}

static plait_status cut_all(const pli_run *run, const uint32_t *s, int64_t n, const double *missing, int64_t most,
                            pli_bins *bins) {
    const int64_t d = bins->features;
    int64_t      *first = pli_calloc((size_t)d + 2, sizeof *first), *lost = pli_calloc((size_t)d, 3 * sizeof *lost);
    work          w = { .bins = bins, .most = most, .first = first, .missing_weight = lost, .missing = missing };
    w.key = pli_array((size_t)n, sizeof *w.key);
    w.cut = pli_array((size_t)d, (size_t)most * sizeof *w.cut);
    w.common = pli_array((size_t)d, sizeof *w.common);
    bool         ok = false;
    plait_status status = PLAIT_OK;
    if (first != NULL && lost != NULL && w.key != NULL && w.cut != NULL && w.common != NULL) {
        w.cuts = lost + d;
        w.common_weight = lost + 2 * d;
        by_feature(n, s, d, first, w.key, lost, &w.zeros_of_all);
        pli_pool_for(run->pool, d, cut_feature, &w);
        ok = !__atomic_load_n(&w.failed, __ATOMIC_RELAXED);
    }
    if (ok) status = keep_used(run, &w);
    else status = pli_fail(run->err, PLAIT_ENOMEM, "no memory to cut %lld features into bins", (long long)d);
    pli_free(first);
    pli_free(lost);
    pli_free(w.key);
    pli_free(w.cut);
    pli_free(w.common);
    return status;
}

/* The order of the workers does not matter: values are sorted. Alone, a worker has the whole sample. */
static plait_status gather(pli_run *run, double heaviest, const double *missing, int64_t most, pli_bins *bins) {
    pli_text     own = { 0 };
    uint32_t    *all = NULL;
    int64_t      n = 0;
    plait_status status = take_sample(run, bins, heaviest, &own);
    if (plait_comm_workers(run->comm) == 1) {
        n = (int64_t)(own.length / sizeof *all);
        if (status >= 0) status = cut_all(run, (const uint32_t *)(const void *)own.data, n, missing, most, bins);
        pli_text_free(&own);
        return status;
    }
    if (status >= 0) status = pli_sample_gather(run, &own, &all, &n);
    pli_text_free(&own);
    if (status >= 0) status = cut_all(run, all, n, missing, most, bins);
    pli_free(all);
    return status;
}

plait_status pli_bins_make(pli_run *run, int64_t most, const pli_trees *trees, pli_bins *bins) {
    double       heaviest = 0, *missing = pli_calloc((size_t)trees->features, sizeof *missing);
    plait_status status = PLAIT_OK;
    *bins = (pli_bins){ .features = trees->features, .fields = &trees->fields };
    if (missing == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for %lld features",
                                         (long long)run->features);
    look(run, bins->fields, &heaviest, missing);
    status = plait_comm_allreduce(run->comm, &heaviest, 1, PLAIT_F64, PLAIT_MAX);
    if (status >= 0) status = plait_comm_allreduce(run->comm, missing, bins->features, PLAIT_F64, PLAIT_MAX);
    if (status >= 0) status = gather(run, heaviest, missing, most, bins);
    pli_free(missing);
    return status;
}

void pli_bins_free(pli_bins *b) {
    pli_free(b->feature);
    pli_free(b->place);
    pli_free(b->cut);
    pli_free(b->cut_start);
    pli_free(b->count);
    for (int32_t j = 0; b->of_code != NULL && j < b->used; j++) pli_free(b->of_code[j]);
    pli_free(b->of_code);
    pli_free(b->missing);
    pli_free(b->zero);
    pli_free(b->common);
    pli_free(b->offset);
    pli_free(b->lacks);
    *b = (pli_bins){ 0 };
}
