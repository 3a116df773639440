/* The public calls on tables' rows: arguments are checked here, then the table's topology does the work. */
#include <string.h>

#include "table/shown.h"
#include "table/table.h"

const char *plait_table_name(const plait_table *table) { return table == NULL ? "" : table->spec.name; }
int64_t     plait_table_rows(const plait_table *table) { return table == NULL ? 0 : table->spec.rows; }
int64_t     plait_table_cols(const plait_table *table) { return table == NULL ? 0 : table->spec.cols; }
const char *plait_table_topology(const plait_table *table) { return table == NULL ? "" : table->spec.topology.text; }
const char *plait_table_consistency(const plait_table *table) { return table == NULL ? "" : table->spec.consistency; }

static plait_status wait_for_nothing(plait_request *request) {
    pli_free(request);
    return PLAIT_OK;
}

plait_request *pli_done_request(void) {
    plait_request *request = pli_calloc(1, sizeof *request);
    if (request != NULL) request->wait = wait_for_nothing;
    return request;
}

/* --- public calls ------------------------------------------------------------------------------------------------- */

plait_table *plait_table_at(plait_table *table, const char *file, int32_t line) {
    if (table != NULL && !table->ops->any_thread) plait_comm_at(table->job->comm, file, line);
    return table;
}

plait_job *plait_job_at(plait_job *job, const char *file, int32_t line) {
    if (job != NULL) plait_comm_at(job->comm, file, line);
    return job;
}

void pli_table_ahead(const plait_table *table, int64_t n, const uint64_t *keys) {
    if (table->ops->ahead != NULL) table->ops->ahead(table, n, keys);
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static plait_status check_keys(const plait_table *table, int64_t n, const uint64_t *keys, plait_error *err) {
    const pli_spec *spec = &table->spec;
    const int64_t   fit = PLI_TABLE_VALUES_MAX / spec->cols, most = fit < INT32_MAX ? fit : INT32_MAX;
    if (n < 0 || n > most)
        return pli_fail(err, PLAIT_EINVAL, "table %s: %lld keys; expected 0 to %lld", spec->name, (long long)n,
                        (long long)most);
    if (spec->rows == 0) return PLAIT_OK;
    uint64_t outside = 0, rows = (uint64_t)spec->rows;
    for (int64_t i = 0; i < n; i++) outside |= (uint64_t)(keys[i] >= rows);
    if (outside == 0) return PLAIT_OK;
    int64_t at = 0;
    while (keys[at] < rows) at++;
    return pli_fail(err, PLAIT_EINVAL, "table %s: key %llu is outside of its %lld rows", spec->name,
                    (unsigned long long)keys[at], (long long)spec->rows);
}

plait_status pli_table_check_range(const plait_table *table, int64_t first, int64_t n, plait_error *err) {
    const pli_spec *spec = &table->spec;
    if (spec->rows == 0)
        return pli_fail(err, PLAIT_EINVAL, "table %s is sparse; its rows are named by key", spec->name);
    if (first < 0 || n < 0 || first > spec->rows || n > spec->rows - first)
        return pli_fail(err, PLAIT_EINVAL,
                        "table %s: first is %lld and n %lld; expected rows among its %lld, which are numbered from 0",
                        spec->name, (long long)first, (long long)n, (long long)spec->rows);
    return PLAIT_OK;
}

static plait_status check_inc(const plait_table *table, int64_t examples, plait_error *err) {
    if (table->job->left) return pli_fail(err, PLAIT_EINVAL, "table %s: inc after plait_job_leave", table->spec.name);
    if (examples < 0)
        return pli_fail(err, PLAIT_EINVAL, "table %s: inc: examples is %lld; expected 0 or more",
                        table->spec.name, (long long)examples);
    if (examples > PLI_EXAMPLES_MAX)
        return pli_fail(err, PLAIT_EINVAL,
                        "table %s: inc: examples is %lld; expected at most %lld rows of data in one",
                        table->spec.name, (long long)examples, (long long)PLI_EXAMPLES_MAX);
    return PLAIT_OK;
}

/* Charges what a rank does by itself with the rows that it names. */
static void charge(const plait_table *table, const pli_rows *rows) {
    if (rows->keys != NULL) pli_comm_work(table->job->comm, PLI_WORK_KEYS, (uint64_t)rows->n);
    pli_comm_work(table->job->comm, PLI_WORK_SUMS, (uint64_t)(rows->n * table->spec.cols));
}

/* --- get ---------------------------------------------------------------------------------------------------------- */

/* Others see when the rank last read, or pushed. */
static void show(const plait_table *table, int32_t what) {
    pli_sheet_set(table->shown, what, plait_job_clock_now(table->job) + 1);
}

static plait_status get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    PLI_TRY(pli_job_finish_clock(table->job, err));
    charge(table, rows);
    show(table, PLI_SHOWN_GET);
    return table->ops->get(table, rows, values, err);
}

plait_status plait_table_get(plait_table *table, int64_t n, const uint64_t *keys, void *values) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, keys));
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(check_keys(table, n, keys, err));
    if (n == 0) return PLAIT_OK;
    pli_table_enter(table, "plait_table_get");
    return pli_table_leave(table, get(table, &(pli_rows){ .keys = keys, .n = n }, values, err));
}

plait_status plait_table_get_range(plait_table *table, int64_t first, int64_t n, void *values) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(pli_table_check_range(table, first, n, err));
    if (n == 0) return PLAIT_OK;
    pli_table_enter(table, "plait_table_get_range");
    return pli_table_leave(table, get(table, &(pli_rows){ .first = first, .n = n }, values, err));
}

static plait_status get_begin(plait_table *table, const pli_rows *rows, void *values, plait_request **request_out,
                              plait_error *err) {
    if (rows->n > 0 && table->ops->get_begin != NULL) {
        PLI_TRY(pli_job_finish_clock(table->job, err));
        charge(table, rows);
        show(table, PLI_SHOWN_GET);
        return table->ops->get_begin(table, rows, values, request_out, err);
    }
    plait_request *request = pli_done_request();
    if (request == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a get", table->spec.name);
    plait_status status = rows->n == 0 ? PLAIT_OK : get(table, rows, values, err);
    if (status < 0) plait_request_wait(&request);
    *request_out = request;
    return status;
}

plait_status plait_table_get_begin(plait_table *table, int64_t n, const uint64_t *keys, void *values,
                                   plait_request **request_out) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, keys));
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(PLI_GIVEN(err, request_out));
    PLI_TRY(check_keys(table, n, keys, err));
    return get_begin(table, &(pli_rows){ .keys = keys, .n = n }, values, request_out, err);
}

plait_status plait_table_get_range_begin(plait_table *table, int64_t first, int64_t n, void *values,
                                         plait_request **request_out) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(PLI_GIVEN(err, request_out));
    PLI_TRY(pli_table_check_range(table, first, n, err));
    return get_begin(table, &(pli_rows){ .first = first, .n = n }, values, request_out, err);
}

plait_status plait_table_read(plait_table *table, int64_t first, int64_t n, const void **values_out) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN(err, values_out));
    PLI_TRY(pli_table_check_range(table, first, n, err));
    pli_table_enter(table, "plait_table_read");
    plait_status status = pli_job_finish_clock(table->job, err);
    if (status >= 0) show(table, PLI_SHOWN_GET);
    return pli_table_leave(table, status < 0 ? status : table->ops->read(table, first, n, values_out, err));
}

void pli_table_unpin(plait_table *table) {
    while (table->pins != NULL) {
        pli_msg *pin = table->pins;
        table->pins = pin->next;
        pli_msg_free(&pin);
    }
}

void pli_table_pin(plait_table *table, pli_msg *msg) {
    msg->next = table->pins;
    table->pins = msg;
}

plait_status pli_table_read_copy(plait_table *table, int64_t first, int64_t n, const void **values_out,
                                 plait_error *err) {
    pli_msg *copy = pli_msg_new((size_t)(n * pli_row_bytes(&table->spec)));
    if (copy == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a read", table->spec.name);
    *values_out = pli_msg_body(copy);
    pli_table_pin(table, copy);
    return n == 0 ? PLAIT_OK : table->ops->get(table, &(pli_rows){ .first = first, .n = n }, pli_msg_body(copy), err);
}

/* --- inc ---------------------------------------------------------------------------------------------------------- */

static plait_status inc(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                        plait_error *err) {
    PLI_TRY(pli_job_finish_clock(table->job, err));
    if (table->flushed)
        return pli_fail(err, PLAIT_EINVAL, "table %s: inc after plait_table_flush in clock %lld", table->spec.name,
                        (long long)plait_job_clock_now(table->job));
    charge(table, rows);
    show(table, PLI_SHOWN_PUSH);
    if (!table->ops->any_thread) table->updated = plait_job_clock_now(table->job) + 1;
    if (pli_table_has_ended(table)) return PLAIT_OK;
    return table->ops->inc(table, rows, delta, examples, err);
}

/* A call with n = 0 counts, too: its rows of data do. */
plait_status plait_table_inc(plait_table *table, int64_t n, const uint64_t *keys, const void *delta, int64_t examples) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error   *err = pli_job_error(table->job);
    const uint64_t none = 0;
    PLI_TRY(PLI_GIVEN_OF(err, n, keys));
    PLI_TRY(PLI_GIVEN_OF(err, n, delta));
    PLI_TRY(check_inc(table, examples, err));
    PLI_TRY(check_keys(table, n, keys, err));
    return inc(table, &(pli_rows){ .keys = n == 0 ? &none : keys, .n = n }, delta, examples, err);
}

plait_status plait_table_inc_range(plait_table *table, int64_t first, int64_t n, const void *delta, int64_t examples) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, delta));
    PLI_TRY(check_inc(table, examples, err));
    PLI_TRY(pli_table_check_range(table, first, n, err));
    return inc(table, &(pli_rows){ .first = first, .n = n }, delta, examples, err);
}

typedef struct inc_request {
    plait_request base; /* first, so that a pointer to this is one to a plait_request */
    plait_table  *table;
} inc_request;

/* The updates that could not be sent at once are sent now. */
static plait_status wait_for_flush(plait_request *base) {
    plait_table *table = ((inc_request *)base)->table;
    bool         sent;
    pli_free(base);
    pli_table_enter(table, "plait_request_wait of plait_table_inc_begin");
    return pli_table_leave(table, table->ops->flush(table, true, &sent, pli_job_error(table->job)));
}

static plait_status inc_begin(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                              plait_request **request_out, plait_error *err) {
    bool         sent = true;
    inc_request *request = pli_calloc(1, sizeof *request);
    if (request == NULL) return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for an inc", table->spec.name);
    plait_status status = inc(table, rows, delta, examples, err);
    if (status >= 0 && table->ops->flush != NULL) status = table->ops->flush(table, false, &sent, err);
    request->table = table;
    request->base.wait = sent ? wait_for_nothing : wait_for_flush;
    *request_out = &request->base;
    if (status < 0) {
        pli_free(request);
        *request_out = NULL;
    }
    return status;
}

plait_status plait_table_inc_begin(plait_table *table, int64_t n, const uint64_t *keys, const void *delta,
                                   int64_t examples, plait_request **request_out) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error   *err = pli_job_error(table->job);
    const uint64_t none = 0;
    PLI_TRY(PLI_GIVEN_OF(err, n, keys));
    PLI_TRY(PLI_GIVEN_OF(err, n, delta));
    PLI_TRY(PLI_GIVEN(err, request_out));
    PLI_TRY(check_inc(table, examples, err));
    PLI_TRY(check_keys(table, n, keys, err));
    return inc_begin(table, &(pli_rows){ .keys = n == 0 ? &none : keys, .n = n }, delta, examples, request_out, err);
}

plait_status plait_table_inc_range_begin(plait_table *table, int64_t first, int64_t n, const void *delta,
                                         int64_t examples, plait_request **request_out) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, delta));
    PLI_TRY(PLI_GIVEN(err, request_out));
    PLI_TRY(check_inc(table, examples, err));
    PLI_TRY(pli_table_check_range(table, first, n, err));
    return inc_begin(table, &(pli_rows){ .first = first, .n = n }, delta, examples, request_out, err);
}

/* An additive table's own updates must stay visible, so they leave with the clock. */
static plait_status flush(plait_table *table, plait_error *err) {
    PLI_TRY(pli_job_finish_clock(table->job, err));
    if (table->flushed) return PLAIT_OK;
    if (table->job->client.ending) return PLAIT_OK; /* all updates go at once, in a dead one's stead */
    if (table->spec.ruled && table->ops->depart != NULL) PLI_TRY(table->ops->depart(table, err));
    table->flushed = true;
    table->job->flushed++;
    return PLAIT_OK;
}

plait_status plait_table_flush(plait_table *table) {
    PLI_TRY(pli_table_usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    if (table->job->left) return pli_fail(err, PLAIT_EINVAL, "table %s: flush after plait_job_leave", table->spec.name);
    if (table->ops->any_thread) return PLAIT_OK;
    pli_table_enter(table, "plait_table_flush");
    return pli_table_leave(table, flush(table, err));
}
