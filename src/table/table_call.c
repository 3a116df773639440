/* The public calls on whole tables: server functions, and dumps. */
#include <string.h>

#include "table/events.h"
#include "table/server/functions.h"
#include "table/table.h"

/* --- server functions --------------------------------------------------------------------------------------------- */

static plait_status find_function(const plait_job *job, const char *name, int32_t *at_out, plait_error *err) {
    for (int32_t i = 0; i < job->layout.n_functions; i++)
        if (strcmp(job->layout.functions[i].name, name) == 0) {
            *at_out = i;
            return PLAIT_OK;
        }
    const char *names[64];
    size_t      n = job->layout.n_functions < 64 ? (size_t)job->layout.n_functions : 64;
    for (size_t i = 0; i < n; i++) names[i] = job->layout.functions[i].name;
    return pli_fail_unknown(err, "server function", name, names, n);
}

static plait_status check_aligned(plait_table *const *tables, int32_t n, plait_error *err) {
    const pli_spec *first = &tables[0]->spec;
    for (int32_t i = 1; i < n; i++) {
        const pli_spec *spec = &tables[i]->spec;
        if (tables[i]->job != tables[0]->job || spec->rows != first->rows || spec->cols != first->cols ||
            spec->type != first->type || spec->topology.kind != first->topology.kind ||
            strcmp(spec->consistency, first->consistency) != 0)
            return pli_fail(err, PLAIT_ESHAPE, "tables %s and %s differ in rows, cols, type, topology or consistency",
                            first->name, spec->name);
        if (spec->rows == 0)
            return pli_fail(err, PLAIT_ESHAPE, "a server function over several tables needs dense ones; %s is sparse",
                            spec->name);
    }
    return PLAIT_OK;
}

/* A server function needs one owner for each row. A function that updates also needs clocks, of which it is a part as a
 * whole. */
static plait_status check_callable(const plait_table *table, bool updates, const char *name, plait_error *err) {
    const char *topology = table->spec.topology.text, *consistency = table->spec.consistency;
    if ((table->has & PLAIT_FUNCTIONS) == 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "table %s: server functions need one owner of each row, but under %s x %s each worker has its "
                        "own mirror; nearest is allreduce x bsp", table->spec.name, topology, consistency);
    if (updates && (table->has & PLAIT_WHOLE_CLOCKS) == 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "server function %s updates tables; that needs whole clocks, as under bsp, but table %s is "
                        "under %s", name, table->spec.name, consistency);
    return PLAIT_OK;
}

static plait_status check_bytes(int32_t n_tables, const char *name, size_t args_bytes, size_t answer_bytes,
                                plait_error *err) {
    if (n_tables <= PLI_CALL_TABLES_MAX && answer_bytes <= PLI_ANSWER_BYTES_MAX && args_bytes <= SIZE_MAX / 2)
        return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "server function %s over %d tables with arguments of %zu bytes and an answer of %zu; "
                    "expected at most %d tables and an answer of %d bytes",
                    name, n_tables, args_bytes, answer_bytes, PLI_CALL_TABLES_MAX, PLI_ANSWER_BYTES_MAX);
}

void pli_table_raise_call(plait_table *const *tables, int32_t n_tables, const pli_function_call *call, int32_t n,
                          const pli_event_ran *ran) {
    const plait_job *job = tables[0]->job;
    int32_t          ids[PLI_CALL_TABLES_MAX];
    for (int32_t i = 0; i < n_tables; i++) ids[i] = tables[i]->spec.id;
    pli_raise_call(pli_job_events(job), pli_job_me(job), plait_job_clock_now(job), job->client.calls, n_tables, ids,
                   call, n, ran);
}

/* c->rows < 0: all rows. */
static plait_status call(plait_table *const *tables, int32_t n_tables, const char *name, pli_function_call *c,
                         const char *caller, void *answer) {
    plait_job   *job = tables[0]->job;
    plait_error *err = pli_job_error(job);
    int32_t      function = 0;
    PLI_TRY(check_bytes(n_tables, name, c->args_bytes, c->answer_bytes, err));
    for (int32_t i = 1; i < n_tables; i++)
        if (tables[i] == NULL) return pli_fail(err, PLAIT_EINVAL, "%s: tables[%d] is NULL", caller, i);
    PLI_TRY(find_function(job, name, &function, err));
    c->fn = &job->layout.functions[function];
    PLI_TRY(check_aligned(tables, n_tables, err));
    if (c->rows < 0) c->rows = tables[0]->spec.rows;
    PLI_TRY(check_callable(tables[0], c->fn->updates != 0, name, err));
    pli_table_enter(tables[0], caller);
    plait_status status = pli_job_finish_clock(job, err);
    return pli_table_leave(tables[0],
                           status < 0 ? status : tables[0]->ops->call(tables, n_tables, c, answer, err));
}

plait_status plait_table_call(plait_table *const *tables, int32_t n_tables, const char *name, const void *args,
                              size_t args_bytes, void *answer, size_t answer_bytes) {
    if (n_tables < 1 || tables == NULL) return PLAIT_EINVAL; /* there is no job to keep the error's text */
    PLI_TRY(pli_table_usable(tables[0], __func__));
    plait_error *err = pli_job_error(tables[0]->job);
    PLI_TRY(PLI_GIVEN(err, name));
    PLI_TRY(PLI_GIVEN_OF(err, args_bytes, args));
    PLI_TRY(PLI_GIVEN_OF(err, answer_bytes, answer));
    pli_function_call c = { .rows = -1, .args = args, .args_bytes = args_bytes, .answer_bytes = answer_bytes };
    return call(tables, n_tables, name, &c, __func__, answer);
}

plait_status plait_table_call_range(plait_table *const *tables, int32_t n_tables, int64_t first, int64_t n,
                                    const char *name, const void *args, size_t args_bytes, void *answer,
                                    size_t answer_bytes) {
    if (n_tables < 1 || tables == NULL) return PLAIT_EINVAL; /* there is no job to keep the error's text */
    PLI_TRY(pli_table_usable(tables[0], __func__));
    plait_error *err = pli_job_error(tables[0]->job);
    PLI_TRY(PLI_GIVEN(err, name));
    PLI_TRY(PLI_GIVEN_OF(err, args_bytes, args));
    PLI_TRY(PLI_GIVEN_OF(err, answer_bytes, answer));
    PLI_TRY(pli_table_check_range(tables[0], first, n, err));
    pli_function_call c = { .first = first, .rows = n, .args = args, .args_bytes = args_bytes,
                            .answer_bytes = answer_bytes };
    return call(tables, n_tables, name, &c, __func__, answer);
}

/* --- dump --------------------------------------------------------------------------------------------------------- */

static plait_status get_all(plait_table *table, void *values, plait_error *err) {
    const pli_spec *spec = &table->spec;
    pli_comm_work(table->job->comm, PLI_WORK_SUMS, (uint64_t)(spec->rows * spec->cols));
    return table->ops->get(table, &(pli_rows){ .n = spec->rows }, values, err);
}

static plait_status dump_dense(plait_table *table, uint64_t **keys_out, void **values_out, plait_error *err) {
    const pli_spec *spec = &table->spec;
    uint64_t       *keys = pli_array((size_t)spec->rows, sizeof *keys);
    void           *values = pli_array((size_t)spec->rows, (size_t)pli_row_bytes(spec));
    plait_status    status = PLAIT_OK;
    if (keys == NULL || values == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a dump", spec->name);
    else status = get_all(table, values, err);
    if (status < 0) {
        pli_free(keys);
        pli_free(values);
        return status;
    }
    for (int64_t i = 0; i < spec->rows; i++) keys[i] = (uint64_t)i;
    *keys_out = keys;
    *values_out = values;
    return PLAIT_OK;
}

/* Sorts the rows by key; values is replaced. */
static plait_status sort_rows(const plait_table *table, int64_t n, uint64_t *keys, void **values, plait_error *err) {
    int64_t   row_bytes = pli_row_bytes(&table->spec);
    uint32_t *from = pli_array((size_t)n, sizeof *from);
    void     *sorted = pli_array((size_t)n, (size_t)row_bytes);
    if (from == NULL || sorted == NULL || n > UINT32_MAX) goto no_memory;
    for (int64_t i = 0; i < n; i++) from[i] = (uint32_t)i;
    if (!pli_sort_u64(n, keys, from)) goto no_memory;
    for (int64_t i = 0; i < n; i++)
        memcpy((unsigned char *)sorted + i * row_bytes, (unsigned char *)*values + (int64_t)from[i] * row_bytes,
               (size_t)row_bytes);
    pli_free(from);
    pli_free(*values);
    *values = sorted;
    return PLAIT_OK;
no_memory:
    pli_free(from);
    pli_free(sorted);
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a dump of %lld rows", table->spec.name, (long long)n);
}

static plait_status dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out) {
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(pli_job_finish_clock(table->job, err));
    if (table->spec.rows > 0) {
        *n_out = table->spec.rows;
        return dump_dense(table, keys_out, values_out, err);
    }
    int64_t   n = 0;
    uint64_t *keys = NULL;
    void     *values = NULL;
    PLI_TRY(table->ops->dump(table, &n, &keys, &values, err));
    plait_status status = sort_rows(table, n, keys, &values, err);
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

plait_status plait_table_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out) {
    PLI_TRY(pli_table_usable(table, __func__));
    PLI_TRY(PLI_GIVEN(pli_job_error(table->job), n_out));
    PLI_TRY(PLI_GIVEN(pli_job_error(table->job), keys_out));
    PLI_TRY(PLI_GIVEN(pli_job_error(table->job), values_out));
    pli_table_enter(table, "plait_table_dump");
    return pli_table_leave(table, dump(table, n_out, keys_out, values_out));
}
