/* local x async: Hogwild - the workers of a process, and the threads of a worker, update the shared values in place,
 * without locks (hogwild_memory.h). A step may overwrite what others have done to a value since the step read it
 * (hogwild_test.c counts that), which stochastic gradient descent on sparse data bears; increments of an additive table
 * are never lost: compare and swap.
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
#include "table/shown.h"
#include "table/topology/hogwild_memory.h"

enum { PACK = PLI_HOGWILD_PACK, WHAT_BYTES = 128 };

static struct pli_hogwild *hogwild_of(const plait_table *table) { return table->state; }

/* --- creation ----------------------------------------------------------------------------------------------------- */

static void close_dense(struct pli_hogwild *h) {
    pli_free(h->dense);
    pli_free(h->paid);
    pli_free(h->penalty);
    h->dense = h->penalty = NULL;
    h->paid = NULL;
}

/* Rows lie side by side where there is no rule, and a rule's table adds. */
static void clear_dense(const struct pli_hogwild *h) {
    if (h->spec.ruled) memset(h->dense, 0, (size_t)(h->spec.rows * h->stride));
    else pli_merge_clear(h->spec.merge, h->spec.rows * h->spec.cols, h->dense);
}

static plait_status open_dense(struct pli_hogwild *h, const void *initial, const void *penalty, plait_error *err) {
    const pli_spec *spec = &h->spec;
    int64_t         row_bytes = pli_row_bytes(spec);
    size_t          bytes = (size_t)(spec->rows * row_bytes);
    h->stride = row_bytes * (1 + pli_hogwild_slots(spec));
    h->dense = pli_aligned((size_t)(spec->rows * h->stride));
    if (spec->lazy) h->paid = pli_calloc((size_t)spec->rows, sizeof *h->paid);
    if (penalty != NULL) h->penalty = pli_aligned(bytes);
    if (h->dense == NULL || (spec->lazy && h->paid == NULL) || (penalty != NULL && h->penalty == NULL)) {
        close_dense(h);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows of table %s", (long long)spec->rows, spec->name);
    }
    clear_dense(h);
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
    snprintf(what, sizeof what, "hogwild table %d of group %u", table->spec.id, pli_group_id(job->group));
    table->state = pli_comm_shared(job->comm, what, sizeof(struct pli_hogwild));
    if (table->state == NULL) {
        status = pli_fail(err, PLAIT_ENOMEM, "no shared memory for table %s", table->spec.name);
    } else {
        atomic_fetch_add(&hogwild_of(table)->refs, 1);
        if (pli_job_me(job) == table->spec.id % job->layout.workers)
            status = open_shared(table, initial, penalty, err);
    }
    snprintf(what, sizeof what, "table %s", table->spec.name);
    pli_raise_table(pli_job_events(job), pli_job_me(job), &table->spec, PLI_WAY_SHARED);
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

/* Fetches a line that is about to be written as the core's own, where the processor has an instruction for it.
 * Otherwise the core would first share it with the core that wrote it last, and ask for it again at the store. */
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
    pli_hogwild_row p = pli_hogwild_place(h, row, row_bytes);
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

static int64_t paid_of(const pli_hogwild_row *p) { return pli_relaxed_load_i64(p->paid); }

/* --- a pack: copies of a few rows --------------------------------------------------------------------------------- */

typedef struct pack {
    pli_hogwild_row at[PACK];
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
        pli_hogwild_row at = p->at[i] = pli_hogwild_place(h, rows[i], row_bytes);
        pli_relaxed_load_row(at.values, p->w + i * row_bytes, row_bytes, spec->width);
        for (int32_t k = 0; (state || spec->lazy) && spec->ruled && k < spec->rule.ops->slots; k++)
            pli_relaxed_load_row(at.slot[k], p->slot[k] + i * row_bytes, row_bytes, spec->width);
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
        const pli_hogwild_row *at = &p->at[i];
        pli_relaxed_store_row(p->w + i * row_bytes, at->values, row_bytes, spec->width);
        for (int32_t k = 0; k < spec->rule.ops->slots; k++)
            pli_relaxed_store_row(p->slot[k] + i * row_bytes, at->slot[k], row_bytes, spec->width);
        if (spec->lazy)
            pli_relaxed_store_i64(paid_of(at) + (p->owed[i] > 0 ? p->owed[i] * spec->batch : 0) + examples, at->paid);
    }
}

/* Memory for a pack: on the stack for short rows, otherwise on the heap. */
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
        if (rows[i] < 0) pli_merge_clear(h->spec.merge, h->spec.cols, to);
        else pli_relaxed_load_row(pli_hogwild_place(h, rows[i], row_bytes).values, to, row_bytes, h->spec.width);
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
        pli_relaxed_store_row(p.w, p.at[0].values, row_bytes, h->spec.width);
        pli_relaxed_store_i64(paid_of(&p.at[0]) + p.owed[0] * h->spec.batch, p.at[0].paid);
    }
    pli_free(memory.heap);
    return true;
}

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: out of memory", table->spec.name);
}

static plait_status hogwild_get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    const struct pli_hogwild *h = table->state;
    int64_t                   at[PACK], row_bytes = pli_row_bytes(&h->spec);
    if (pli_hogwild_is_single(&h->spec, rows)) {
        pli_hogwild_get_singles(h, rows->n, rows->keys, values);
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

/* Lends a copy, since a caller's loads of the live values would not be atomic. */
static plait_status hogwild_read(plait_table *table, int64_t first, int64_t n, const void **values_out,
                                 plait_error *err) {
    return pli_table_read_copy(table, first, n, values_out, err);
}

bool pli_table_place(const plait_table *table, unsigned char **memory_out, int64_t *stride_out) {
    const struct pli_hogwild *h = table->state;
    const pli_spec           *spec = &table->spec;
    if (table->ops != &pli_hogwild_ops || spec->rows == 0 || spec->ruled || spec->type != PLAIT_F32) return false;
    *memory_out = h->dense;
    *stride_out = h->stride;
    return true;
}

plait_status pli_table_place_grow(plait_table *table, int64_t rows, plait_error *err) {
    struct pli_hogwild *h = table->state;
    const int64_t       before = h->spec.rows * h->stride, bytes = rows * h->stride;
    unsigned char      *dense = pli_aligned((size_t)bytes);
    if (dense == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows of table %s", (long long)rows, table->spec.name);
    memcpy(dense, h->dense, (size_t)before);
    memset(dense + before, 0, (size_t)(bytes - before));
    pli_free(h->dense);
    h->dense = dense;
    h->spec.rows = table->spec.rows = rows;
    pli_sheet_set(table->shown, PLI_SHOWN_ROWS, rows);
    pli_sheet_set(table->shown, PLI_SHOWN_HELD, rows);
    return PLAIT_OK;
}

/* --- inc ---------------------------------------------------------------------------------------------------------- */

static void add_pack(const struct pli_hogwild *h, int64_t n, const int64_t *rows, const void *delta) {
    int64_t row_bytes = pli_row_bytes(&h->spec), cols = h->spec.cols;
    for (int64_t i = 0; i < n; i++) {
        void       *to = pli_hogwild_place(h, rows[i], row_bytes).values;
        const void *from = pli_at_const(delta, i * row_bytes);
        if (!h->spec.combine->adds) {
            for (int64_t j = 0; j < cols; j++)
                pli_relaxed_fold(h->spec.merge, pli_at(to, j * h->spec.width), pli_at_const(from, j * h->spec.width));
        } else if (h->spec.type == PLAIT_F32) {
            for (int64_t j = 0; j < cols; j++) pli_relaxed_add_f32((float *)to + j, ((const float *)from)[j]);
        } else if (h->spec.type == PLAIT_F64) {
            for (int64_t j = 0; j < cols; j++) pli_relaxed_add_f64((double *)to + j, ((const double *)from)[j]);
        } else {
            for (int64_t j = 0; j < cols; j++) pli_relaxed_add_i64((int64_t *)to + j, ((const int64_t *)from)[j]);
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

/* The rows of a pack must differ, or one of two steps would be lost. So keys that are out of order go one by one. */
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
    if (pli_hogwild_is_single(spec, rows)) {
        for (int64_t from = 0; from < rows->n; from += n) {
            n = pack_length(rows, from, rows->n - from < PACK ? rows->n - from : PACK);
            pli_hogwild_apply_singles(h, n, rows->keys + from, &step, examples, (const float *)delta + from);
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

/* All workers stand between two collectives, so only this one touches the rows. */
static plait_status hogwild_zero(plait_table *table, int64_t number, plait_error *err) {
    struct pli_hogwild *h = table->state;
    const pli_spec     *spec = &h->spec;
    (void)number;
    if (pli_job_me(table->job) != spec->id % table->job->layout.workers) return PLAIT_OK;
    if (spec->rows == 0) {
        pli_hogwild_rows_close(&h->rows);
        return pli_hogwild_rows_open(&h->rows, spec) ? PLAIT_OK : no_memory(table, err);
    }
    clear_dense(h);
    for (int64_t row = 0; spec->lazy && row < spec->rows; row++)
        h->paid[row] = atomic_load_explicit(&h->examples, memory_order_relaxed);
    return PLAIT_OK;
}

static plait_status slice_of(plait_table *table, const pli_function_call *call, plait_slice *slice,
                             plait_error *err) {
    uint64_t *keys = NULL;
    *slice = (plait_slice){ .type = table->spec.type, .cols = table->spec.cols };
    if (table->spec.rows > 0) {
        const pli_rows rows = { .first = call->first, .n = call->rows };
        slice->first = rows.first;
        slice->rows = rows.n;
        slice->values = pli_array((size_t)rows.n, (size_t)pli_row_bytes(&table->spec));
        return slice->values == NULL ? no_memory(table, err) : hogwild_get(table, &rows, slice->values, err);
    }
    slice->first = -1;
    plait_status status = hogwild_dump(table, &slice->rows, &keys, &slice->values, err);
    slice->keys = keys;
    return status;
}

/* Runs functions that only read: those that update are refused outside of whole clocks. */
static plait_status hogwild_call(plait_table *const *tables, int32_t n, const pli_function_call *call, void *answer,
                                 plait_error *err) {
    const plait_function *fn = call->fn;
    plait_status          status = PLAIT_OK;
    if (call->answer_bytes > 0) memset(answer, 0, call->answer_bytes);
    if (tables[0]->spec.rows > 0 && call->rows == 0) return PLAIT_OK;
    plait_slice *slices = pli_calloc((size_t)n, sizeof *slices);
    if (slices == NULL) return no_memory(tables[0], err);
    for (int32_t i = 0; status >= 0 && i < n; i++) status = slice_of(tables[i], call, &slices[i], err);
    if (status >= 0) {
        status = fn->run(fn->user, slices, n, call->args, call->args_bytes, answer, call->answer_bytes);
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
