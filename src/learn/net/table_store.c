/* A session's store over tables. Each variable has memory for its values: the store asks for them when a run begins
 * (expect), waits for them when the run needs them (get), and keeps them until the run ends. The next run asks anew,
 * since it may see the pushes of this one. A store that is bound to tables keeps the values until the next clock
 * instead, and asks at once for all that the last run got, so the answers are on their way while the batch is laid
 * out. */
#include "learn/net/table_store.h"

#include <string.h>

#include "base/base.h"
#include "comm/comm.h"
#include "table/table.h"

typedef struct variable {
    plait_table   *table;
    int64_t        rows, cols;
    size_t         row_bytes;
    void          *values; /* [rows, cols] */
    plait_request *asked;  /* under way    */
    bool           here;   /* got in this run (or clock, if bound) */
    bool           keyed;  /* runs get single rows: all of it is asked for only when a run wants all */
    bool           stays;   /* what runs add to it is dropped */
    bool           counted; /* a run counts its examples once for each table, with its first push */
} variable;

struct plait_table_store {
    plait_store calls;
    plait_comm *comm;
    int64_t     examples;
    bool        flushes;
    bool        bound; /* tables and values are the caller's, and values stay until the next clock */
    int32_t    *order; /* bound: [n_ordered] variables that the last run got */
    int32_t     n_ordered;
    int32_t     n;
    variable    variable[];
};

void (plait_table_store_opts_init)(plait_table_store_opts *opts) {
    if (opts != NULL) *opts = (plait_table_store_opts){ .size = sizeof *opts };
}

void plait_table_store_opts_init_sized(plait_table_store_opts *opts, size_t size) {
    plait_table_store_opts all;
    (plait_table_store_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* Tables put an error's text at their communicator; this copies it to where a store's caller looks. */
static plait_status told(const plait_table_store *store, plait_status status, plait_error *err) {
    if (status < 0 && err != NULL) *err = *plait_comm_error(store->comm);
    return status;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static plait_status ask(variable *v) {
    if (v->here || v->asked != NULL || v->table == NULL) return PLAIT_OK;
    return plait_table_get_range_begin(v->table, 0, v->rows, v->values, &v->asked);
}

static plait_status ask_for(plait_table_store *store, int32_t n, const int32_t *variables) {
    for (int32_t i = 0; i < n; i++) {
        variable *v = &store->variable[variables[i]];
        if (!v->keyed) PLI_TRY(ask(v));
    }
    return PLAIT_OK;
}

static plait_status expect(void *user, int32_t n, const int32_t *variables, plait_error *err) {
    plait_table_store *store = user;
    if (store->order != NULL) {
        memcpy(store->order, variables, (size_t)n * sizeof *variables);
        store->n_ordered = n;
    }
    return told(store, ask_for(store, n, variables), err);
}

static plait_status get(void *user, int32_t k, const void **values_out, plait_error *err) {
    plait_table_store *store = user;
    variable          *v = &store->variable[k];
    plait_status       status = ask(v);
    if (status >= 0 && v->asked != NULL) status = plait_request_wait(&v->asked);
    if (status < 0) return told(store, status, err);
    v->here = true;
    *values_out = v->values;
    return PLAIT_OK;
}

/* Takes rows from the variable if all of it was asked for, else from the table, whose keys are the rows' numbers. */
static plait_status get_rows(void *user, int32_t k, int64_t n, const int64_t *rows, void *values, plait_error *err) {
    plait_table_store *store = user;
    variable          *v = &store->variable[k];
    const void        *all;
    if (!v->here && v->asked == NULL)
        return told(store, plait_table_get(v->table, n, (const uint64_t *)rows, values), err);
    PLI_TRY(get(user, k, &all, err));
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)values + (size_t)i * v->row_bytes, (const char *)all + (size_t)rows[i] * v->row_bytes,
               v->row_bytes);
    return PLAIT_OK;
}

static int64_t examples_of(const plait_table_store *store, variable *v) {
    const int64_t examples = v->counted ? 0 : store->examples;
    v->counted = true;
    return examples;
}

static plait_status pushed(const plait_table_store *store, const variable *v, plait_status status, plait_error *err) {
    if (status >= 0 && store->flushes) status = plait_table_flush(v->table);
    return told(store, status, err);
}

static plait_status inc(void *user, int32_t k, const void *delta, plait_error *err) {
    plait_table_store *store = user;
    variable          *v = &store->variable[k];
    if (v->stays) return PLAIT_OK;
    return pushed(store, v, plait_table_inc_range(v->table, 0, v->rows, delta, examples_of(store, v)), err);
}

static plait_status inc_rows(void *user, int32_t k, int64_t n, const int64_t *rows, const void *delta,
                             plait_error *err) {
    plait_table_store *store = user;
    variable          *v = &store->variable[k];
    if (v->stays) return PLAIT_OK;
    return pushed(store, v, plait_table_inc(v->table, n, (const uint64_t *)rows, delta, examples_of(store, v)), err);
}

/* Waits for all gets under way. */
static plait_status wait_for_all(plait_table_store *store) {
    plait_status status = PLAIT_OK;
    for (int32_t k = 0; k < store->n; k++) {
        variable *v = &store->variable[k];
        if (v->asked == NULL) continue;
        const plait_status waited = plait_request_wait(&v->asked);
        if (status >= 0) status = waited;
        v->here = waited >= 0;
    }
    return status;
}

static void forget(plait_table_store *store) {
    for (int32_t k = 0; k < store->n; k++) store->variable[k].here = false;
}

/* A run may end before it uses all that was asked for, as one that failed: waits for the rest, whose memory is lent. */
static plait_status end(void *user, plait_status how, plait_error *err) {
    plait_table_store *store = user;
    (void)how;
    for (int32_t k = 0; k < store->n; k++) store->variable[k].counted = false;
    if (store->bound) return PLAIT_OK;
    const plait_status status = wait_for_all(store);
    forget(store);
    return told(store, status, err);
}

plait_status pli_table_store_clock(plait_table_store *store) {
    PLI_TRY(wait_for_all(store));
    forget(store);
    return ask_for(store, store->n_ordered, store->order);
}

plait_status pli_table_store_read(plait_table_store *store, bool all_rows) {
    plait_status status = PLAIT_OK;
    for (int32_t k = 0; status >= 0 && k < store->n; k++) {
        variable *v = &store->variable[k];
        if (v->table == NULL) continue;
        status = v->keyed ? plait_table_get_range(v->table, 0, all_rows ? v->rows : 1, v->values) : ask(v);
    }
    const plait_status waited = wait_for_all(store);
    return status < 0 ? status : waited;
}

static const char *owner(void *user, int32_t k) {
    return plait_table_topology(((const plait_table_store *)user)->variable[k].table);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static plait_status add(plait_table_store *store, plait_job *job, const plait_graph *graph,
                        const plait_table_store_opts *opts) {
    const int32_t      k = store->n;
    variable          *v = &store->variable[k];
    const plait_tensor initial = plait_graph_variable_initial(graph, k);
    const int64_t      all = plait_shape_elements(&initial.shape);
    plait_table_opts   t;
    plait_error       *err = pli_comm_error(store->comm);
    if (all <= 0 || (initial.type != PLAIT_F32 && initial.type != PLAIT_F64))
        return pli_fail(err, PLAIT_EINVAL,
                        "variable '%s' is %s of %lld values; tables are of float32 or float64, and not empty",
                        plait_graph_variable_name(graph, k), plait_type_name(initial.type), (long long)all);
    v->rows = initial.shape.rank > 0 ? initial.shape.dim[0] : 1;
    v->cols = all / v->rows;
    v->row_bytes = (size_t)v->cols * plait_type_bytes(initial.type);
    if (opts->like != NULL) t = *opts->like;
    else plait_table_opts_init(&t);
    if (opts->each != NULL) opts->each(opts->user, k, &t);
    t.name = plait_graph_variable_name(graph, k);
    t.type = initial.type;
    t.rows = v->rows;
    t.cols = v->cols;
    t.initial = initial.data;
    v->keyed = t.keyed != 0;
    v->values = pli_aligned((size_t)v->rows * v->row_bytes);
    if (v->values == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for variable '%s'", t.name);
    store->n++;
    return plait_table_create(job, &t, &v->table);
}

static plait_status store_for(plait_comm *comm, int32_t n, plait_table_store **store_out) {
    plait_table_store *store = pli_calloc(1, sizeof *store + (size_t)n * sizeof *store->variable);
    if (store == NULL) return pli_fail(pli_comm_error(comm), PLAIT_ENOMEM, "no memory for a store of %d variables", n);
    store->comm = comm;
    store->calls = (plait_store){ .user = store,
                                  .expect = expect,
                                  .get = get,
                                  .get_rows = get_rows,
                                  .inc = inc,
                                  .inc_rows = inc_rows,
                                  .end = end,
                                  .owner = owner };
    *store_out = store;
    return PLAIT_OK;
}

plait_status plait_table_store_create(plait_job *job, const plait_graph *graph, const plait_table_store_opts *opts,
                                      plait_table_store **store_out) {
    PLI_TRY(pli_job_usable(job, __func__));
    plait_comm            *comm = plait_job_comm(job);
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), graph));
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), store_out));
    plait_table_store_opts own;
    plait_table_opts       like;
    const int32_t          n = plait_graph_variables(graph);
    plait_table_store_opts_init(&own);
    PLI_TRY(pli_sized_take(&own, sizeof own, PLI_SIZED_END(plait_table_store_opts, user), opts,
                           "plait_table_store_opts", pli_comm_error(comm)));
    PLI_TRY(pli_table_opts_take(own.like, &like, pli_comm_error(comm)));
    if (own.like != NULL) own.like = &like;
    plait_table_store *store = NULL;
    PLI_TRY(store_for(comm, n, &store));
    store->flushes = own.flushes != 0;
    plait_status status = PLAIT_OK;
    while (status >= 0 && store->n < n) status = add(store, job, graph, &own);
    if (status < 0) {
        plait_table_store_destroy(&store);
        return status;
    }
    *store_out = store;
    return PLAIT_OK;
}

plait_status pli_table_store_bind(plait_comm *comm, int32_t n, const pli_stored *variables,
                                  plait_table_store **store_out) {
    plait_table_store *store = NULL;
    PLI_TRY(store_for(comm, n, &store));
    store->bound = true;
    store->order = pli_array((size_t)n, sizeof *store->order);
    if (store->order == NULL) {
        plait_table_store_destroy(&store);
        return pli_fail(pli_comm_error(comm), PLAIT_ENOMEM, "no memory for a store of %d variables", n);
    }
    for (; store->n < n; store->n++) {
        const pli_stored *v = &variables[store->n];
        store->variable[store->n] =
            (variable){ .table = v->table, .values = v->values, .keyed = v->by_row, .stays = v->stays };
        if (v->table == NULL) continue;
        variable *own = &store->variable[store->n];
        own->rows = v->table->spec.rows;
        own->cols = v->table->spec.cols;
        own->row_bytes = (size_t)own->cols * plait_type_bytes(v->table->spec.type);
    }
    *store_out = store;
    return PLAIT_OK;
}

void plait_table_store_destroy(plait_table_store **store_ptr) {
    plait_table_store *store = store_ptr == NULL ? NULL : *store_ptr;
    if (store == NULL) return;
    *store_ptr = NULL;
    for (int32_t k = 0; k < store->n; k++) {
        (void)plait_request_wait(&store->variable[k].asked);
        if (!store->bound) pli_free(store->variable[k].values);
    }
    pli_free(store->order);
    pli_free(store);
}

const plait_store *plait_table_store_calls(const plait_table_store *store) {
    return store == NULL ? NULL : &store->calls;
}
void plait_table_store_examples(plait_table_store *store, int64_t examples) {
    if (store != NULL) store->examples = examples;
}
void pli_table_store_flushes(plait_table_store *store, bool flushes) { store->flushes = flushes; }

plait_table *plait_table_store_table(const plait_table_store *store, int32_t k) {
    return store == NULL || k < 0 || k >= store->n ? NULL : store->variable[k].table;
}
