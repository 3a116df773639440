/* local x async: Hogwild - the workers of a process, and the threads of a worker, update the shared values in place,
 * without locks. This is the one file that breaks the rule that nobody writes what others read: it holds the relaxed
 * atomics on values. A step may overwrite what others did to the same value since it was read (hogwild_test.c counts
 * that), which stochastic gradient descent on sparse data bears; increments of an additive table are never lost:
 * compare and swap.
 *
 * What bounds it are lines of memory that travel between the cores which write them: a dense row and its rule's state
 * lie side by side, so that a step to a short row moves one line.
 *
 * Short rows are handled in packs: rows are fetched ahead of their turn, copied together, the rule runs over the pack,
 * and the rows go back.
 *
 * Paper: Niu, Recht, Re, Wright, "Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent", NIPS
 * 2011. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "table/events.h"
#include "table/server/functions.h"
#include "table/state/values.h"
#include "table/table.h"
#include "table/topology/hogwild_rows.h"

enum { PACK = 64, WHAT_BYTES = 128 };

/* In memory that all ranks of the process see; whoever closes last frees what it holds. */
struct pli_hogwild {
    pli_spec         spec;
    _Atomic int32_t  refs;
    bool             opened; /* by the creator, before the others look (a collective lies between) */
    unsigned char   *dense;  /* a row's values and then its rule's slots: what a step touches lies in one line */
    int64_t          stride; /* bytes from row to row of dense */
    int64_t         *paid;   /* dense and lazy: units up to which each row has paid */
    unsigned char   *penalty; /* dense: factors of the penalties, or NULL: 1 */
    pli_hogwild_rows rows;   /* sparse */
    _Alignas(64) _Atomic int64_t examples; /* lazy penalties: rows of data that were applied so far */
};

static struct pli_hogwild *hogwild_of(const plait_table *table) { return table->state; }

/* Where a row lies. */
typedef struct place {
    void    *values, *slot[PLI_RULE_SLOTS_MAX];
    int64_t *paid;
    void    *penalty;
} place;

static inline int32_t slots_of(const pli_spec *spec) { return spec->ruled ? spec->rule.ops->slots : 0; }

static inline place place_in_dense(const struct pli_hogwild *h, int64_t row, int64_t row_bytes) {
    place p = { .values = h->dense + row * h->stride };
    for (int32_t k = 0; k < slots_of(&h->spec); k++) p.slot[k] = pli_at(p.values, (k + 1) * row_bytes);
    p.paid = h->paid == NULL ? NULL : &h->paid[row];
    p.penalty = h->penalty == NULL ? NULL : h->penalty + row * row_bytes;
    return p;
}

static inline place place_of(const struct pli_hogwild *h, int64_t row, int64_t row_bytes) {
    int64_t within;
    if (h->spec.rows > 0) return place_in_dense(h, row, row_bytes);
    const pli_chunk *chunk = &h->rows.chunk[pli_hogwild_chunk_of(row, &within)];
    place            p = { .values = pli_at(chunk->values, within * row_bytes) };
    for (int k = 0; k < PLI_RULE_SLOTS_MAX; k++)
        p.slot[k] = chunk->slot[k] == NULL ? NULL : pli_at(chunk->slot[k], within * row_bytes);
    p.paid = chunk->paid == NULL ? NULL : &chunk->paid[within];
    return p;
}

/* --- relaxed atomics ---------------------------------------------------------------------------------------------- */

static inline void load_row(const void *from, void *to, int64_t bytes, int64_t width) {
    if (width == 4) {
        for (int64_t i = 0; i < bytes; i += 4)
            __atomic_load((const uint32_t *)pli_at_const(from, i), (uint32_t *)pli_at(to, i), __ATOMIC_RELAXED);
    } else {
        for (int64_t i = 0; i < bytes; i += 8)
            __atomic_load((const uint64_t *)pli_at_const(from, i), (uint64_t *)pli_at(to, i), __ATOMIC_RELAXED);
    }
}

static inline void store_row(const void *from, void *to, int64_t bytes, int64_t width) {
    if (width == 4) {
        for (int64_t i = 0; i < bytes; i += 4)
            __atomic_store((uint32_t *)pli_at(to, i), (uint32_t *)(uintptr_t)pli_at_const(from, i), __ATOMIC_RELAXED);
    } else {
        for (int64_t i = 0; i < bytes; i += 8)
            __atomic_store((uint64_t *)pli_at(to, i), (uint64_t *)(uintptr_t)pli_at_const(from, i), __ATOMIC_RELAXED);
    }
}

static inline void add_f32(float *to, float x) {
    float was, sum;
    __atomic_load(to, &was, __ATOMIC_RELAXED);
    do sum = was + x;
    while (!__atomic_compare_exchange(to, &was, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline void add_f64(double *to, double x) {
    double was, sum;
    __atomic_load(to, &was, __ATOMIC_RELAXED);
    do sum = was + x;
    while (!__atomic_compare_exchange(to, &was, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static inline void add_i64(int64_t *to, int64_t x) { __atomic_fetch_add(to, x, __ATOMIC_RELAXED); } /* wraps around */

static int64_t paid_of(const place *p) { return __atomic_load_n(p->paid, __ATOMIC_RELAXED); }

/* --- creation ----------------------------------------------------------------------------------------------------- */

static void close_dense(struct pli_hogwild *h) {
    pli_free(h->dense);
    pli_free(h->paid);
    pli_free(h->penalty);
    h->dense = h->penalty = NULL;
    h->paid = NULL;
}

static plait_status open_dense(struct pli_hogwild *h, const void *initial, const void *penalty, plait_error *err) {
    const pli_spec *spec = &h->spec;
    int64_t         row_bytes = pli_row_bytes(spec);
    size_t          bytes = (size_t)(spec->rows * row_bytes);
    h->stride = row_bytes * (1 + slots_of(spec));
    h->dense = pli_aligned((size_t)(spec->rows * h->stride));
    if (spec->lazy) h->paid = pli_calloc((size_t)spec->rows, sizeof *h->paid);
    if (penalty != NULL) h->penalty = pli_aligned(bytes);
    if (h->dense == NULL || (spec->lazy && h->paid == NULL) || (penalty != NULL && h->penalty == NULL)) {
        close_dense(h);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows of table %s", (long long)spec->rows, spec->name);
    }
    memset(h->dense, 0, (size_t)(spec->rows * h->stride));
    for (int64_t i = 0; initial != NULL && i < spec->rows; i++)
        memcpy(h->dense + i * h->stride, pli_at_const(initial, i * row_bytes), (size_t)row_bytes);
    if (penalty != NULL) memcpy(h->penalty, penalty, bytes);
    return PLAIT_OK;
}

static plait_status open_shared(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    struct pli_hogwild *h = table->state;
    const pli_spec     *spec = &table->spec;
    h->spec = *spec;
    h->opened = true;
    if (spec->rows > 0) return open_dense(h, initial, penalty, err);
    if (pli_hogwild_rows_open(&h->rows, &h->spec)) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for table %s", spec->name);
}

static plait_status hogwild_open(plait_table *table, const void *initial, const void *penalty, plait_error *err) {
    plait_job   *job = table->job;
    plait_status status = PLAIT_OK;
    char         what[WHAT_BYTES];
    snprintf(what, sizeof what, "hogwild table %d", table->spec.id);
    table->state = pli_comm_shared(job->comm, what, sizeof(struct pli_hogwild));
    if (table->state == NULL) {
        status = pli_fail(err, PLAIT_ENOMEM, "no shared memory for table %s", table->spec.name);
    } else {
        atomic_fetch_add(&hogwild_of(table)->refs, 1);
        if (plait_comm_rank(job->comm) == table->spec.id % job->layout.workers)
            status = open_shared(table, initial, penalty, err);
    }
    snprintf(what, sizeof what, "table %s", table->spec.name);
    pli_raise_table(pli_comm_events(job->comm), plait_comm_rank(job->comm), &table->spec, PLI_WAY_SHARED);
    return pli_job_agree(job, what, 0, status, err);
}

static void hogwild_close(plait_table *table) {
    struct pli_hogwild *h = table->state;
    table->state = NULL;
    if (h == NULL) return;
    pli_table_unpin(table);
    if (atomic_fetch_sub(&h->refs, 1) == 1 && h->opened) {
        if (h->spec.rows > 0) close_dense(h);
        else pli_hogwild_rows_close(&h->rows);
        h->opened = false;
    }
    pli_comm_shared_release(table->job->comm, h);
}

/* --- rows of a call ----------------------------------------------------------------------------------------------- */

static void find_rows(const struct pli_hogwild *h, const pli_rows *rows, int64_t from, int64_t n, int64_t *at) {
    if (h->spec.rows == 0) {
        pli_hogwild_rows_find(&h->rows, n, rows->keys + from, at);
    } else {
        for (int64_t i = 0; i < n; i++)
            at[i] = rows->keys == NULL ? rows->first + from + i : (int64_t)rows->keys[from + i];
    }
}

static bool add_rows(struct pli_hogwild *h, const pli_rows *rows, int64_t from, int64_t n, int64_t *at) {
    if (h->spec.rows > 0) {
        find_rows(h, rows, from, n, at);
        return true;
    }
    return pli_hogwild_rows_add(&h->rows, n, rows->keys + from,
                                atomic_load_explicit(&h->examples, memory_order_relaxed), at);
}

/* A line that is about to be written is fetched as the core's own at once, where there is an instruction for it,
 * instead of shared with the core that wrote it last and asked for again by the store. */
static inline void fetch_to_write(const void *at) {
#ifdef __x86_64__
    __asm__("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

static inline bool crosses_lines(const void *at, int64_t bytes) {
    return (((uintptr_t)at ^ ((uintptr_t)at + (uintptr_t)bytes - 1)) & ~(uintptr_t)63) != 0;
}

/* state: the row is about to be updated. */
static inline void prefetch(const struct pli_hogwild *h, int64_t row, int64_t row_bytes, bool state) {
    if (row < 0) return;
    place p = place_of(h, row, row_bytes);
    if (!state) {
        __builtin_prefetch(p.values, 1);
        return;
    }
    fetch_to_write(p.values);
    if (h->spec.rows > 0 && crosses_lines(p.values, h->stride)) fetch_to_write((const char *)p.values + h->stride - 1);
    for (int k = 0; h->spec.rows == 0 && k < PLI_RULE_SLOTS_MAX; k++)
        if (p.slot[k] != NULL) fetch_to_write(p.slot[k]);
    if (p.paid != NULL) fetch_to_write(p.paid);
}

/* --- a pack: copies of a few rows --------------------------------------------------------------------------------- */

typedef struct pack {
    place   at[PACK];
    int64_t owed[PACK], units;
    plait_step     due; /* lazy: the step of the application to come, in which what is owed is counted */
    unsigned char *w, *slot[PLI_RULE_SLOTS_MAX], *penalty; /* [rows, cols] each */
} pack;

/* Pays what row i of the pack owes, in the copy. */
static void pay(const struct pli_hogwild *h, pack *p, int64_t i) {
    const pli_spec *spec = &h->spec;
    int64_t         at = i * pli_row_bytes(spec);
    const void     *penalty = p->at[i].penalty;
    if (spec->type == PLAIT_F32) {
        float *slot[PLI_RULE_SLOTS_MAX];
        for (int k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = (float *)(p->slot[k] + at);
        spec->rule.ops->catch_up_f32(&spec->rule, &p->due, p->owed[i], spec->cols, (float *)(p->w + at), slot, penalty);
    } else {
        double *slot[PLI_RULE_SLOTS_MAX];
        for (int k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = (double *)(p->slot[k] + at);
        spec->rule.ops->catch_up_f64(&spec->rule, &p->due, p->owed[i], spec->cols, (double *)(p->w + at), slot,
                                     penalty);
    }
}

static void load_pack(const struct pli_hogwild *h, int64_t n, const int64_t *rows, bool state, pack *p) {
    const pli_spec *spec = &h->spec;
    int64_t         row_bytes = pli_row_bytes(spec);
    for (int64_t i = 0; i < n; i++) {
        place at = p->at[i] = place_of(h, rows[i], row_bytes);
        load_row(at.values, p->w + i * row_bytes, row_bytes, spec->width);
        for (int32_t k = 0; (state || spec->lazy) && spec->ruled && k < spec->rule.ops->slots; k++)
            load_row(at.slot[k], p->slot[k] + i * row_bytes, row_bytes, spec->width);
        if (state && at.penalty != NULL) memcpy(p->penalty + i * row_bytes, at.penalty, (size_t)row_bytes);
        if (!spec->lazy) continue;
        p->owed[i] = p->units - paid_of(&at);
        if (spec->batch > 1) p->owed[i] = p->owed[i] < spec->batch ? 0 : p->owed[i] / spec->batch;
        if (p->owed[i] > 0) pay(h, p, i);
    }
}

static void store_pack(const struct pli_hogwild *h, int64_t n, int64_t examples, const pack *p) {
    const pli_spec *spec = &h->spec;
    int64_t         row_bytes = pli_row_bytes(spec);
    for (int64_t i = 0; i < n; i++) {
        const place *at = &p->at[i];
        store_row(p->w + i * row_bytes, at->values, row_bytes, spec->width);
        for (int32_t k = 0; k < spec->rule.ops->slots; k++)
            store_row(p->slot[k] + i * row_bytes, at->slot[k], row_bytes, spec->width);
        if (spec->lazy)
            __atomic_store_n(at->paid, paid_of(at) + (p->owed[i] > 0 ? p->owed[i] * spec->batch : 0) + examples,
                             __ATOMIC_RELAXED);
    }
}

/* Memory for a pack: on the stack for short rows, else of the heap. */
typedef struct pack_memory {
    _Alignas(64) unsigned char bytes[(PLI_RULE_SLOTS_MAX + 2) * PACK * 8];
    unsigned char *heap;
    int64_t        most; /* rows that fit */
} pack_memory;

static bool open_pack(const struct pli_hogwild *h, pack_memory *m, pack *p) {
    const pli_spec *spec = &h->spec;
    int64_t         row_bytes = pli_row_bytes(spec), area = PACK * 8;
    if (spec->lazy) {
        p->units = atomic_load_explicit(&h->examples, memory_order_relaxed);
        p->due = pli_rule_step(&spec->rule, p->units / spec->batch, 1, spec->batch, 1);
    }
    m->heap = NULL;
    m->most = area / row_bytes < PACK ? area / row_bytes : PACK;
    unsigned char *base = m->bytes;
    if (m->most == 0) {
        m->most = 1;
        area = row_bytes;
        base = m->heap = pli_aligned((size_t)(area * (PLI_RULE_SLOTS_MAX + 2)));
        if (base == NULL) return false;
    }
    p->w = base;
    for (int k = 0; k < PLI_RULE_SLOTS_MAX; k++) p->slot[k] = base + (k + 1) * area;
    p->penalty = base + (PLI_RULE_SLOTS_MAX + 1) * area;
    return true;
}

/* --- get ---------------------------------------------------------------------------------------------------------- */

static void get_plain(const struct pli_hogwild *h, int64_t n, const int64_t *rows, void *values) {
    int64_t row_bytes = pli_row_bytes(&h->spec);
    for (int64_t i = 0; i < n; i++) {
        void *to = pli_at(values, i * row_bytes);
        if (rows[i] < 0) memset(to, 0, (size_t)row_bytes);
        else load_row(place_of(h, rows[i], row_bytes).values, to, row_bytes, h->spec.width);
    }
}

static bool get_paid(const struct pli_hogwild *h, int64_t n, const int64_t *rows, void *values) {
    int64_t     row_bytes = pli_row_bytes(&h->spec);
    pack_memory memory;
    pack        p;
    if (!open_pack(h, &memory, &p)) return false;
    for (int64_t i = 0; i < n; i++) {
        void *to = pli_at(values, i * row_bytes);
        if (rows[i] < 0) {
            memset(to, 0, (size_t)row_bytes);
            continue;
        }
        load_pack(h, 1, &rows[i], false, &p);
        memcpy(to, p.w, (size_t)row_bytes);
        if (p.owed[0] <= 0) continue; /* else it is kept: who reads a row is about to update it */
        store_row(p.w, p.at[0].values, row_bytes, h->spec.width);
        __atomic_store_n(p.at[0].paid, paid_of(&p.at[0]) + p.owed[0] * h->spec.batch, __ATOMIC_RELAXED);
    }
    pli_free(memory.heap);
    return true;
}

/* --- single values ---------------------------------------------------------------------------------------------------

   The commonest table, of single float32 values by key, has loops of its own, so short that many loads are under way at
   once. What a row owes is paid when it is read, as one proximal step of the size of all (its factor on the penalty is
   multiplied by how many): of the second order in step x l2, and equal for l1. */

static bool is_simple(const pli_spec *spec, const pli_rows *rows) {
    return spec->rows > 0 && spec->cols == 1 && spec->type == PLAIT_F32 && spec->ruled && rows->keys != NULL;
}

static inline float load_f32(const float *from) {
    float x;
    __atomic_load(from, &x, __ATOMIC_RELAXED);
    return x;
}

static inline void store_f32(float *to, float x) { __atomic_store(to, &x, __ATOMIC_RELAXED); }

/* The value of a row, which its slots follow. */
static inline float *single(const struct pli_hogwild *h, uint64_t key) {
    return (float *)(h->dense + (int64_t)key * h->stride);
}

/* Copies the rows of a pack and pays, in memory too, what they owe. */
static void get_lazy(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, float *values) {
    const float     *factor = (const float *)h->penalty;
    const plait_rule_numbers *rule = &h->spec.rule;
    int64_t          units = atomic_load_explicit(&h->examples, memory_order_relaxed);
    plait_step                due = pli_rule_step(rule, units / h->spec.batch, 1, h->spec.batch, 1);
    float            state[PLI_RULE_SLOTS_MAX][PACK], penalty[PACK], *slot[PLI_RULE_SLOTS_MAX];
    const float      part = 1.0F / (float)h->spec.batch;
    for (int64_t i = 0; i < n; i++) values[i] = load_f32(single(h, keys[i]));
    for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = state[k];
    for (int32_t k = 0; k < rule->ops->slots; k++)
        for (int64_t i = 0; i < n; i++) state[k][i] = load_f32(single(h, keys[i]) + k + 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t owed = units - __atomic_load_n(h->paid + keys[i], __ATOMIC_RELAXED);
        penalty[i] = owed > 0 ? (float)owed * part : 0.0F;
    }
    for (int64_t i = 0; factor != NULL && i < n; i++) penalty[i] *= factor[keys[i]];
    rule->ops->catch_up_f32(rule, &due, 1, n, values, slot, penalty);
    for (int64_t i = 0; i < n; i++) store_f32(single(h, keys[i]), values[i]);
    for (int64_t i = 0; i < n; i++) __atomic_store_n(h->paid + keys[i], units, __ATOMIC_RELAXED);
}

static void get_simple(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, float *values) {
    for (int64_t from = 0; h->spec.lazy && from < n; from += PACK)
        get_lazy(h, n - from < PACK ? n - from : PACK, keys + from, values + from);
    for (int64_t i = 0; !h->spec.lazy && i < n; i++) values[i] = load_f32(single(h, keys[i]));
}

/* Keys of a pack differ. */
static void apply_simple(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, const plait_step *step,
                         int64_t examples, const float *g) {
    const float     *factor = (const float *)h->penalty;
    const plait_rule_numbers *rule = &h->spec.rule;
    float            w[PACK], state[PLI_RULE_SLOTS_MAX][PACK], penalty[PACK], *slot[PLI_RULE_SLOTS_MAX];
    for (int64_t i = 0; i < n; i++) w[i] = load_f32(single(h, keys[i]));
    for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = state[k];
    for (int32_t k = 0; k < rule->ops->slots; k++)
        for (int64_t i = 0; i < n; i++) state[k][i] = load_f32(single(h, keys[i]) + k + 1);
    for (int64_t i = 0; factor != NULL && i < n; i++) penalty[i] = factor[keys[i]];
    rule->ops->apply_f32(rule, step, n, w, slot, g, factor != NULL ? penalty : NULL);
    for (int64_t i = 0; i < n; i++) store_f32(single(h, keys[i]), w[i]);
    for (int32_t k = 0; k < rule->ops->slots; k++)
        for (int64_t i = 0; i < n; i++) store_f32(single(h, keys[i]) + k + 1, state[k][i]);
    for (int64_t i = 0; h->spec.lazy && i < n; i++) { /* this step has paid for its rows of data */
        int64_t *paid = h->paid + keys[i];
        __atomic_store_n(paid, __atomic_load_n(paid, __ATOMIC_RELAXED) + examples, __ATOMIC_RELAXED);
    }
}

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: out of memory", table->spec.name);
}

static plait_status hogwild_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    const struct pli_hogwild *h = table->state;
    int64_t                   at[PACK], row_bytes = pli_row_bytes(&h->spec);
    if (is_simple(&h->spec, rows)) {
        get_simple(h, rows->n, rows->keys, values);
        return PLAIT_OK;
    }
    for (int64_t from = 0; from < rows->n; from += PACK) {
        int64_t n = rows->n - from < PACK ? rows->n - from : PACK;
        void   *to = pli_at(values, from * row_bytes);
        find_rows(h, rows, from, n, at);
        for (int64_t i = 0; i < n; i++) prefetch(h, at[i], row_bytes, h->spec.lazy);
        if (!h->spec.lazy) get_plain(h, n, at, to);
        else if (!get_paid(h, n, at, to)) return no_memory(table, err);
    }
    return PLAIT_OK;
}

/* A copy: nobody else's loads of the live values would be atomic. */
static plait_status hogwild_read(plait_table *table, int64_t first, int64_t n, const void **values_out,
                                 plait_error *err) {
    return pli_table_read_copy(table, first, n, values_out, err);
}

/* --- inc ---------------------------------------------------------------------------------------------------------- */

static void add_pack(const struct pli_hogwild *h, int64_t n, const int64_t *rows, const void *delta) {
    int64_t row_bytes = pli_row_bytes(&h->spec), cols = h->spec.cols;
    for (int64_t i = 0; i < n; i++) {
        void       *to = place_of(h, rows[i], row_bytes).values;
        const void *from = pli_at_const(delta, i * row_bytes);
        if (h->spec.type == PLAIT_F32) {
            for (int64_t j = 0; j < cols; j++) add_f32((float *)to + j, ((const float *)from)[j]);
        } else if (h->spec.type == PLAIT_F64) {
            for (int64_t j = 0; j < cols; j++) add_f64((double *)to + j, ((const double *)from)[j]);
        } else {
            for (int64_t j = 0; j < cols; j++) add_i64((int64_t *)to + j, ((const int64_t *)from)[j]);
        }
    }
}

static void apply_pack(const struct pli_hogwild *h, int64_t n, const plait_step *step, const void *g, pack *p) {
    const pli_spec *spec = &h->spec;
    const void     *penalty = h->penalty == NULL ? NULL : p->penalty;
    if (spec->type == PLAIT_F32) {
        float *slot[PLI_RULE_SLOTS_MAX];
        for (int k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = (float *)p->slot[k];
        spec->rule.ops->apply_f32(&spec->rule, step, n * spec->cols, (float *)p->w, slot, g, penalty);
    } else {
        double *slot[PLI_RULE_SLOTS_MAX];
        for (int k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = (double *)p->slot[k];
        spec->rule.ops->apply_f64(&spec->rule, step, n * spec->cols, (double *)p->w, slot, g, penalty);
    }
}

/* Rows of a pack must differ, or one of two steps would be lost: keys out of order go one by one. */
static int64_t pack_length(const pli_rows *rows, int64_t from, int64_t n) {
    for (int64_t i = 1; rows->keys != NULL && i < n; i++)
        if (rows->keys[from + i] <= rows->keys[from + i - 1]) return i;
    return n;
}

static plait_status apply_rows(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                               plait_error *err) {
    struct pli_hogwild *h = table->state;
    const pli_spec     *spec = &h->spec;
    int64_t             at[PACK], row_bytes = pli_row_bytes(spec), m = examples < 1 ? 1 : examples, n;
    plait_step          step = pli_rule_step(&spec->rule, plait_job_clock_now(table->job), m, spec->batch, 0);
    pack_memory         memory;
    pack                p;
    if (is_simple(spec, rows)) {
        for (int64_t from = 0; from < rows->n; from += n) {
            n = pack_length(rows, from, rows->n - from < PACK ? rows->n - from : PACK);
            apply_simple(h, n, rows->keys + from, &step, examples, (const float *)delta + from);
        }
        if (spec->lazy) atomic_fetch_add_explicit(&h->examples, examples, memory_order_relaxed);
        return PLAIT_OK;
    }
    if (!open_pack(h, &memory, &p)) return no_memory(table, err);
    for (int64_t from = 0; from < rows->n; from += n) {
        n = rows->n - from < memory.most ? rows->n - from : memory.most;
        n = pack_length(rows, from, n);
        if (!add_rows(h, rows, from, n, at)) {
            pli_free(memory.heap);
            return no_memory(table, err);
        }
        for (int64_t i = 0; i < n; i++) prefetch(h, at[i], row_bytes, true);
        load_pack(h, n, at, true, &p);
        apply_pack(h, n, &step, pli_at_const(delta, from * row_bytes), &p);
        store_pack(h, n, examples, &p);
    }
    pli_free(memory.heap);
    if (spec->lazy) atomic_fetch_add_explicit(&h->examples, examples, memory_order_relaxed);
    return PLAIT_OK;
}

static plait_status hogwild_inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                                plait_error *err) {
    struct pli_hogwild *h = table->state;
    int64_t             at[PACK], row_bytes = pli_row_bytes(&h->spec);
    if (h->spec.ruled) return apply_rows(table, rows, delta, examples, err);
    for (int64_t from = 0; from < rows->n; from += PACK) {
        int64_t n = rows->n - from < PACK ? rows->n - from : PACK;
        if (!add_rows(h, rows, from, n, at)) return no_memory(table, err);
        for (int64_t i = 0; i < n; i++) prefetch(h, at[i], row_bytes, false);
        add_pack(h, n, at, pli_at_const(delta, from * row_bytes));
    }
    return PLAIT_OK;
}

/* --- functions and dumps: over a copy ----------------------------------------------------------------------------- */

static plait_status hogwild_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out,
                                 plait_error *err) {
    const pli_hogwild_rows *rows = &hogwild_of(table)->rows;
    int64_t                 n = atomic_load_explicit(&rows->n, memory_order_acquire);
    uint64_t               *keys = pli_calloc((size_t)n, sizeof *keys);
    void                   *values = pli_array((size_t)n, (size_t)pli_row_bytes(&table->spec));
    if (keys == NULL || values == NULL) {
        pli_free(keys);
        pli_free(values);
        return no_memory(table, err);
    }
    pli_hogwild_rows_keys(rows, n, keys);
    plait_status status = hogwild_get(table, &(pli_rows){ .keys = keys, .n = n }, values, err);
    if (status < 0) {
        pli_free(keys);
        pli_free(values);
        return status;
    }
    *n_out = n;
    *keys_out = keys;
    *values_out = values;
    return PLAIT_OK;
}

/* All workers are between two collectives, so one alone touches the rows. */
static plait_status hogwild_zero(plait_table *table, int64_t number, plait_error *err) {
    struct pli_hogwild *h = table->state;
    const pli_spec     *spec = &h->spec;
    (void)number;
    if (plait_comm_rank(table->job->comm) != spec->id % table->job->layout.workers) return PLAIT_OK;
    if (spec->rows == 0) {
        pli_hogwild_rows_close(&h->rows);
        return pli_hogwild_rows_open(&h->rows, spec) ? PLAIT_OK : no_memory(table, err);
    }
    memset(h->dense, 0, (size_t)(spec->rows * h->stride));
    for (int64_t row = 0; spec->lazy && row < spec->rows; row++)
        h->paid[row] = atomic_load_explicit(&h->examples, memory_order_relaxed);
    return PLAIT_OK;
}

static plait_status slice_of(plait_table *table, plait_slice *slice, plait_error *err) {
    uint64_t *keys = NULL;
    *slice = (plait_slice){ .type = table->spec.type, .rows = table->spec.rows, .cols = table->spec.cols };
    if (table->spec.rows > 0) {
        slice->values = pli_array((size_t)table->spec.rows, (size_t)pli_row_bytes(&table->spec));
        return slice->values == NULL ? no_memory(table, err)
                                     : hogwild_get(table, &(pli_rows){ .n = table->spec.rows }, slice->values, err);
    }
    slice->first = -1;
    plait_status status = hogwild_dump(table, &slice->rows, &keys, &slice->values, err);
    slice->keys = keys;
    return status;
}

/* Get-type only: update-type functions are refused outside of bsp. */
static plait_status hogwild_call(plait_table *const *tables, int32_t n, int32_t function, const void *args,
                                 size_t args_bytes, void *answer, size_t answer_bytes, plait_error *err) {
    const plait_function *fn = &tables[0]->job->functions[function];
    plait_status          status = PLAIT_OK;
    plait_slice          *slices = pli_calloc((size_t)n, sizeof *slices);
    if (slices == NULL) return no_memory(tables[0], err);
    if (answer_bytes > 0) memset(answer, 0, answer_bytes);
    for (int32_t i = 0; status >= 0 && i < n; i++) status = slice_of(tables[i], &slices[i], err);
    if (status >= 0) {
        status = fn->run(fn->user, slices, n, args, args_bytes, answer, answer_bytes);
        if (status < 0) pli_fail(err, status, "server function %s: %s", fn->name, plait_status_text(status));
    }
    for (int32_t i = 0; i < n; i++) {
        pli_free((void *)slices[i].keys);
        pli_free(slices[i].values);
    }
    pli_free(slices);
    return status;
}

static void hogwild_ahead(const plait_table *table, int64_t n, const uint64_t *keys) {
    const struct pli_hogwild *h = table->state;
    int64_t                   row_bytes = pli_row_bytes(&h->spec);
    if (h->spec.rows == 0) pli_hogwild_rows_ahead(&h->rows, n, keys);
    for (int64_t i = 0; h->spec.rows > 0 && i < n; i++)
        if (keys[i] < (uint64_t)h->spec.rows) prefetch(h, (int64_t)keys[i], row_bytes, true);
}

const pli_topology_ops pli_hogwild_ops = {
    .any_thread = true,
    .open = hogwild_open, .close = hogwild_close, .get = hogwild_get, .read = hogwild_read, .inc = hogwild_inc,
    .zero = hogwild_zero, .call = hogwild_call, .dump = hogwild_dump, .ahead = hogwild_ahead,
};
