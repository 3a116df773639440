/* Adds up the incs of several micro-batches. See gather.h. Deltas are added in the order in which the micro-batches
 * come, which is the same under every schedule (pipeline.h), and so are the sums' bits. */
#include "graph/gather.h"

#include <string.h>

#include "graph/session.h"

typedef struct sum {
    plait_value    inc;
    int32_t        variable, came; /* micro-batches so far */
    unsigned char *dense;          /* NULL: none has come dense */
    int64_t       *row;            /* [n_rows] */
    unsigned char *delta;          /* [n_rows, row_bytes] */
    int64_t        n_rows, row_capacity, delta_capacity;
} sum;

struct pli_gather {
    int32_t n;
    sum    *sum;
    int64_t n_sums, capacity;
};

plait_status pli_gather_create(int32_t n, pli_gather **gather_out, plait_error *err) {
    pli_gather *g = pli_calloc(1, sizeof *g);
    if (g == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to add up micro-batches");
    g->n = n;
    *gather_out = g;
    return PLAIT_OK;
}

void pli_gather_destroy(pli_gather **gather) {
    pli_gather *g = *gather;
    if (g == NULL) return;
    for (int64_t i = 0; i < g->n_sums; i++) {
        pli_free(g->sum[i].dense);
        pli_free(g->sum[i].row);
        pli_free(g->sum[i].delta);
    }
    pli_free(g->sum);
    pli_free(g);
    *gather = NULL;
}

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to add up the gradients of micro-batches");
}

static plait_status find(pli_gather *g, plait_value inc, int32_t variable, sum **sum_out, plait_error *err) {
    int64_t at = 0;
    while (at < g->n_sums && g->sum[at].inc != inc) at++;
    if (at == g->n_sums) {
        if (!pli_grow((void **)&g->sum, &g->capacity, g->n_sums + 1, sizeof *g->sum)) return no_memory(err);
        g->sum[g->n_sums++] = (sum){ .inc = inc, .variable = variable };
    }
    *sum_out = &g->sum[at];
    return PLAIT_OK;
}

/* Tells the store, if this was the last micro-batch. */
static plait_status count(const pli_gather *g, sum *s, const plait_store *store, plait_error *err) {
    if (++s->came < g->n) return PLAIT_OK;
    if (s->dense != NULL) PLI_TRY(store->inc(store->user, s->variable, s->dense, err));
    if (s->row != NULL) PLI_TRY(store->inc_rows(store->user, s->variable, s->n_rows, s->row, s->delta, err));
    return PLAIT_OK;
}

plait_status pli_gather_inc(pli_gather *g, const plait_store *store, plait_value inc, int32_t variable,
                            const plait_tensor *delta, plait_error *err) {
    sum         *s;
    const size_t bytes = pli_tensor_bytes(delta);
    PLI_TRY(find(g, inc, variable, &s, err));
    if (s->dense != NULL) {
        pli_memory_add(delta->type, plait_shape_elements(&delta->shape), delta->data, s->dense);
    } else {
        s->dense = pli_aligned(bytes);
        if (s->dense == NULL) return no_memory(err);
        if (bytes > 0) memcpy(s->dense, delta->data, bytes);
    }
    return count(g, s, store, err);
}

plait_status pli_gather_inc_rows(pli_gather *g, const plait_store *store, plait_value inc, int32_t variable,
                                 const plait_tensor *rows, const plait_tensor *delta, plait_error *err) {
    sum          *s;
    const int64_t n = plait_shape_elements(&rows->shape);
    const size_t  bytes = pli_tensor_bytes(delta);
    PLI_TRY(find(g, inc, variable, &s, err));
    const size_t there = s->n_rows > 0 && n > 0 ? bytes / (size_t)n * (size_t)s->n_rows : 0;
    size_t       all;
    if (__builtin_add_overflow(there, bytes, &all) || all > INT64_MAX || s->n_rows > INT64_MAX - n ||
        !pli_grow((void **)&s->row, &s->row_capacity, s->n_rows + n + 1, sizeof *s->row) ||
        !pli_grow((void **)&s->delta, &s->delta_capacity, (int64_t)all + 1, 1))
        return no_memory(err);
    if (n > 0) {
        memcpy(s->row + s->n_rows, rows->data, (size_t)n * sizeof *s->row);
        memcpy(s->delta + there, delta->data, bytes);
    }
    s->n_rows += n;
    return count(g, s, store, err);
}
