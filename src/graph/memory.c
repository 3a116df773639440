/* A session's own store: variables in plain memory, to which inc adds. A variable gets its memory in the first run that
 * reads or changes it: a variable that is always fed needs none.
 *
 * The deltas of a run stay lent, and are added after the run has succeeded: so all its gets see the values from before,
 * and a run that fails has changed nothing. A run that calls inc locks the memory for itself; runs that only read share
 * it. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/session.h"

typedef struct pending {
    int32_t        variable;
    int64_t        n; /* rows; -1: the whole variable */
    const int64_t *rows;
    const void    *delta;
} pending;

struct pli_memory {
    const plait_graph *graph;
    pli_pool          *pool; /* whose threads add; NULL: the caller alone adds */
    pthread_rwlock_t   lock; /* a run with an inc locks to write, others to read */
    void             **values; /* [n_values] NULL: no run has needed it yet */
    int64_t            n_values, values_capacity;
    pending           *pending; /* deltas of the run that writes */
    int64_t            n_pending, pending_capacity;
};

/* --- adding ---------------------------------------------------------------------------------------------------- */

void pli_memory_add(plait_type type, int64_t n, const void *delta, void *values) {
    if (type == PLAIT_F32) {
        const float *x = delta;
        float       *y = values;
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    } else if (type == PLAIT_F64) {
        const double *x = delta;
        double       *y = values;
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    } else if (type == PLAIT_I64) {
        const uint64_t *x = delta;
        uint64_t       *y = values;
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    } else if (type == PLAIT_I32) {
        const uint32_t *x = delta;
        uint32_t       *y = values;
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    } else {
        const plait_tensor x = { .type = type, .data = (void *)(uintptr_t)delta }, y = { .type = type, .data = values };
        for (int64_t i = 0; i < n; i++) pli_element_set(&y, i, pli_element(&y, i) + pli_element(&x, i));
    }
}

/* All threads add large deltas, because parts of them lie in the caches of other threads. */
enum { PIECE = 8192 }; /* elements that a thread adds at once */

typedef struct sum {
    plait_type  type;
    size_t      bytes; /* of one element */
    int64_t     n;
    const char *delta;
    char       *values;
} sum;

static void add_piece(void *user, int64_t i, int32_t thread) {
    const sum    *s = user;
    const int64_t first = i * PIECE, n = s->n - first < PIECE ? s->n - first : PIECE;
    (void)thread;
    pli_memory_add(s->type, n, s->delta + (size_t)first * s->bytes, s->values + (size_t)first * s->bytes);
}

static void apply(pli_memory *m, const pending *p) {
    const plait_tensor *shape = &m->graph->variable[p->variable].initial;
    const int64_t       all = plait_shape_elements(&shape->shape);
    if (p->n < 0) {
        sum s = { shape->type, plait_type_bytes(shape->type), all, p->delta, m->values[p->variable] };
        pli_pool_for(m->pool, (all + PIECE - 1) / PIECE, add_piece, &s);
        return;
    }
    const int64_t rows = shape->shape.dim[0], width = rows > 0 ? all / rows : 0;
    const size_t  bytes = (size_t)width * plait_type_bytes(shape->type);
    for (int64_t i = 0; i < p->n; i++)
        pli_memory_add(shape->type, width, (const char *)p->delta + (size_t)i * bytes,
            (char *)m->values[p->variable] + (size_t)p->rows[i] * bytes);
}

/* --- the store's calls ----------------------------------------------------------------------------------------- */

static plait_status get(void *user, int32_t variable, const void **values_out, plait_error *err) {
    (void)err;
    *values_out = ((pli_memory *)user)->values[variable];
    return PLAIT_OK;
}

static plait_status get_rows(void *user, int32_t variable, int64_t n, const int64_t *rows, void *values,
                             plait_error *err) {
    (void)err;
    const pli_memory   *m = user;
    const plait_tensor *shape = &m->graph->variable[variable].initial;
    const int64_t       all = shape->shape.dim[0];
    const size_t        bytes = all > 0 ? pli_tensor_bytes(shape) / (size_t)all : 0;
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)values + (size_t)i * bytes, (const char *)m->values[variable] + (size_t)rows[i] * bytes, bytes);
    return PLAIT_OK;
}

static plait_status keep(pli_memory *m, pending p, plait_error *err) {
    if (!pli_grow((void **)&m->pending, &m->pending_capacity, m->n_pending + 1, sizeof *m->pending))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to keep what is added to variables");
    m->pending[m->n_pending++] = p;
    return PLAIT_OK;
}

static plait_status inc(void *user, int32_t variable, const void *delta, plait_error *err) {
    return keep(user, (pending){ .variable = variable, .n = -1, .delta = delta }, err);
}

static plait_status inc_rows(void *user, int32_t variable, int64_t n, const int64_t *rows, const void *delta,
                             plait_error *err) {
    return keep(user, (pending){ .variable = variable, .n = n, .rows = rows, .delta = delta }, err);
}

static plait_status end(void *user, plait_status how, plait_error *err) {
    (void)err;
    pli_memory *m = user;
    for (int64_t i = 0; how == PLAIT_OK && i < m->n_pending; i++) apply(m, &m->pending[i]);
    if (m->n_pending > 0) m->n_pending = 0; /* runs that only read must not write here */
    return PLAIT_OK;
}

static const char *owner(void *user, int32_t variable) {
    (void)user;
    (void)variable;
    return "session";
}

/* --- life ------------------------------------------------------------------------------------------------------ */

/* The first values. */
static plait_status make(pli_memory *m, int32_t k, plait_error *err) {
    const plait_tensor *initial = &m->graph->variable[k].initial;
    const size_t        bytes = pli_tensor_bytes(initial);
    void               *values = pli_aligned(bytes);
    if (values == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for variable '%s': %zu bytes", m->graph->variable[k].name, bytes);
    if (initial->data != NULL)
        memcpy(values, initial->data, bytes);
    else
        memset(values, 0, bytes);
    m->values[k] = values;
    return PLAIT_OK;
}

static bool has(const pli_memory *m, int32_t k) { return k < m->n_values && m->values[k] != NULL; }

static plait_status make_all(pli_memory *m, int64_t n, const int32_t *variables, plait_error *err) {
    const int64_t want = m->graph->n_variables;
    if (!pli_grow((void **)&m->values, &m->values_capacity, want, sizeof *m->values))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld variables", (long long)want);
    while (m->n_values < want) m->values[m->n_values++] = NULL;
    for (int64_t i = 0; i < n; i++)
        if (!has(m, variables[i])) PLI_TRY(make(m, variables[i], err));
    return PLAIT_OK;
}

plait_status pli_memory_create(const plait_graph *graph, pli_pool *pool, pli_memory **memory_out,
                               plait_store *store_out, plait_error *err) {
    pli_memory *m = pli_calloc(1, sizeof *m);
    if (m == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a session");
    m->graph = graph;
    m->pool = pool;
    pthread_rwlock_init(&m->lock, NULL);
    *store_out = (plait_store){
        .user = m, .get = get, .get_rows = get_rows, .inc = inc, .inc_rows = inc_rows, .end = end, .owner = owner
    };
    *memory_out = m;
    return PLAIT_OK;
}

void pli_memory_destroy(pli_memory **memory) {
    pli_memory *m = *memory;
    if (m == NULL) return;
    for (int64_t k = 0; k < m->n_values; k++) pli_free(m->values[k]);
    pli_free(m->values);
    pli_free(m->pending);
    pthread_rwlock_destroy(&m->lock);
    pli_free(m);
    *memory = NULL;
}

plait_status pli_memory_enter(pli_memory *m, int64_t n, const int32_t *variables, bool incs, plait_error *err) {
    if (!incs) {
        int64_t there = 0;
        pthread_rwlock_rdlock(&m->lock);
        while (there < n && has(m, variables[there])) there++;
        if (there == n) return PLAIT_OK;
        pthread_rwlock_unlock(&m->lock);
    }
    pthread_rwlock_wrlock(&m->lock);
    const plait_status status = make_all(m, n, variables, err);
    if (status != PLAIT_OK) pthread_rwlock_unlock(&m->lock);
    return status;
}

void pli_memory_set(pli_memory *m, int32_t variable, const void *data) {
    const size_t bytes = pli_tensor_bytes(&m->graph->variable[variable].initial);
    if (bytes > 0) memcpy(m->values[variable], data, bytes);
}

void pli_memory_leave(pli_memory *m) { pthread_rwlock_unlock(&m->lock); }
