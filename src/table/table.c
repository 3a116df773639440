/* The public calls on tables: arguments are checked here, then the table's topology does the work. */
#include <string.h>

#include "table/table.h"

void plait_table_opts_init(plait_table_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_table_opts){ .size = sizeof *opts, .type = PLAIT_F32, .cols = 1 };
    plait_rule_opts_init(&opts->rule);
}

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

/* Where several threads may call, nobody waits; so nothing is noted there. */
static bool may_wait(const plait_table *table) { return !table->ops->any_thread; }

static void enter(plait_table *table, const char *call) {
    if (may_wait(table)) pli_comm_enter(table->job->comm, call);
}

static plait_status leave(plait_table *table, plait_status status) {
    return may_wait(table) ? pli_comm_leave(table->job->comm, status) : status;
}

plait_table *plait_table_at(plait_table *table, const char *file, int32_t line) {
    if (table != NULL && may_wait(table)) plait_comm_at(table->job->comm, file, line);
    return table;
}

plait_job *plait_job_at(plait_job *job, const char *file, int32_t line) {
    if (job != NULL) plait_comm_at(job->comm, file, line);
    return job;
}

/* --- creation --------------------------------------------------------------------------------------------------- */

bool pli_table_needs_all(const plait_table *table) {
    const pli_scope scope = pli_layout_scope(&table->job->layout);
    return table->job->layout.aggregates || !(pli_pair_properties(table->spec.topology.kind, table->spec.consistency,
                                                                  &scope) & PLAIT_LEAVING);
}

void pli_table_ahead(const plait_table *table, int64_t n, const uint64_t *keys) {
    if (table->ops->ahead != NULL) table->ops->ahead(table, n, keys);
}

static const pli_topology_ops *ops_of(const pli_spec *spec, const pli_scope *scope) {
    const pli_topology_kind *kind = spec->topology.kind;
    if (pli_pair_is_unlocked(kind, spec->consistency, scope)) return kind->unlocked;
    return pli_pair_averages(kind, spec->consistency, scope) && !kind->averages ? &pli_local_sgd_ops : kind->ops;
}

static plait_status make_spec(plait_job *job, const plait_table_opts *opts, plait_table *table, plait_error *err) {
    if (opts->size != sizeof *opts)
        return pli_fail(err, PLAIT_EINVAL, "table options not filled by plait_table_opts_init");
    const char *topology = opts->topology != NULL ? opts->topology : job->topology;
    const char *consistency = opts->consistency != NULL ? opts->consistency : job->consistency;
    if (job->left || plait_job_clock_now(job) > job->layout.first_clock)
        return pli_fail(err, PLAIT_EINVAL, "a table is created before the first clock");
    const pli_scope scope = pli_layout_scope(&job->layout);
    const pli_filter_scope filters = pli_layout_filters(&job->layout);
    const pli_rule_scope   rules = pli_layout_rules(&job->layout);
    plait_table_opts       own = *opts;
    if (own.filter == NULL) own.filter = job->filter;
    own.exact = own.exact != 0 || job->exact;
    PLI_TRY(pli_pair_check(&(pli_pair){ .topology = topology,
                                        .consistency = consistency,
                                        .scope = &scope,
                                        .fill = pli_fill_of(opts),
                                        .one_process = plait_comm_one_process(job->comm),
                                        .staleness_aware = opts->rule.name != NULL && opts->rule.staleness_aware,
                                        .rule = opts->rule.name,
                                        .type = opts->type,
                                        .sharded = opts->sharded != 0,
                                        .exact = own.exact != 0,
                                        .aggregates = job->layout.aggregates,
                                        .logged = pli_comm_events(job->comm) != NULL,
                                        .replicas = job->layout.replicas,
                                        .spares = job->layout.spares,
                                        .servers = job->layout.servers,
                                        .collective = pli_comm_collective(job->comm),
                                        .filter = own.filter,
                                        .filters = &filters,
                                        .rules = &rules },
                           err));
    PLI_TRY(pli_spec_make(job->next_id, &own, topology, consistency, job->batch, &rules, &table->spec, err));
    for (int64_t i = 0; i < job->tables; i++)
        if (strcmp(job->table[i]->spec.name, table->spec.name) == 0)
            return pli_fail(err, PLAIT_EINVAL, "a table named %s exists already", table->spec.name);
    pli_spec *spec = &table->spec;
    const pli_topology_kind *kind = spec->topology.kind;
    spec->placement = pli_placement_make(spec->rows, pli_row_bytes(spec),
                                         kind->one_process || !kind->on_servers, job->layout.servers,
                                         job->layout.first_server);
    return PLAIT_OK;
}

static plait_status create(plait_job *job, const plait_table_opts *opts, plait_table **table_out) {
    plait_error *err = pli_job_error(job);
    uint64_t     hash = 0;
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "plait_table_create is for workers; this rank only serves");
    PLI_TRY(pli_job_must_have_ended(job, "plait_table_create",
                                    err)); /* before any collective, and alone: others may not have flushed */
    plait_table *table = pli_calloc(1, sizeof *table);
    plait_status status = table == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory for a table") : PLAIT_OK;
    if (status >= 0 && !pli_grow((void **)&job->table, &job->tables_capacity, job->tables + 1, sizeof(void *)))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for a table");
    if (status >= 0) status = make_spec(job, opts, table, err);
    if (status >= 0) hash = pli_spec_hash(&table->spec, opts->initial, opts->penalty);
    status = pli_job_agree(job, "a table's creation", hash, status, err);
    job->next_id++;
    if (status < 0) {
        pli_free(table);
        return status;
    }
    table->job = job;
    const pli_scope scope = pli_layout_scope(&job->layout);
    table->ops = ops_of(&table->spec, &scope);
    status = table->ops->open(table, opts->initial, opts->penalty, err);
    if (status < 0) {
        table->ops->close(table);
        pli_free(table);
        return status;
    }
    job->table[job->tables++] = table;
    *table_out = table;
    return PLAIT_OK;
}

plait_status plait_table_create(plait_job *job, const plait_table_opts *opts, plait_table **table_out) {
    PLI_TRY(pli_job_usable(job, __func__));
    PLI_TRY(PLI_GIVEN(pli_job_error(job), opts));
    PLI_TRY(PLI_GIVEN(pli_job_error(job), table_out));
    pli_comm_enter(job->comm, "plait_table_create");
    return pli_comm_leave(job->comm, create(job, opts, table_out));
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

/* Calls look for NULL themselves, under the names of their arguments. */
static plait_status usable(const plait_table *table, const char *call) {
    return table == NULL ? PLAIT_EINVAL : pli_job_usable(table->job, call);
}

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

static plait_status check_range(const plait_table *table, int64_t first, int64_t n, plait_error *err) {
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

/* What a rank does by itself with the rows that it names. */
static void charge(const plait_table *table, const pli_rows *rows) {
    if (rows->keys != NULL) pli_comm_work(table->job->comm, PLI_WORK_KEYS, (uint64_t)rows->n);
    pli_comm_work(table->job->comm, PLI_WORK_SUMS, (uint64_t)(rows->n * table->spec.cols));
}

/* --- get ---------------------------------------------------------------------------------------------------------- */

static plait_status get(plait_table *table, const pli_rows *rows, void *values, plait_error *err) {
    PLI_TRY(pli_job_finish_clock(table->job, err));
    charge(table, rows);
    return table->ops->get(table, rows, values, err);
}

plait_status plait_table_get(plait_table *table, int64_t n, const uint64_t *keys, void *values) {
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, keys));
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(check_keys(table, n, keys, err));
    if (n == 0) return PLAIT_OK;
    enter(table, "plait_table_get");
    return leave(table, get(table, &(pli_rows){ .keys = keys, .n = n }, values, err));
}

plait_status plait_table_get_range(plait_table *table, int64_t first, int64_t n, void *values) {
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(check_range(table, first, n, err));
    if (n == 0) return PLAIT_OK;
    enter(table, "plait_table_get_range");
    return leave(table, get(table, &(pli_rows){ .first = first, .n = n }, values, err));
}

static plait_status get_begin(plait_table *table, const pli_rows *rows, void *values, plait_request **request_out,
                              plait_error *err) {
    if (rows->n > 0 && table->ops->get_begin != NULL) {
        PLI_TRY(pli_job_finish_clock(table->job, err));
        charge(table, rows);
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
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, keys));
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(PLI_GIVEN(err, request_out));
    PLI_TRY(check_keys(table, n, keys, err));
    return get_begin(table, &(pli_rows){ .keys = keys, .n = n }, values, request_out, err);
}

plait_status plait_table_get_range_begin(plait_table *table, int64_t first, int64_t n, void *values,
                                         plait_request **request_out) {
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, values));
    PLI_TRY(PLI_GIVEN(err, request_out));
    PLI_TRY(check_range(table, first, n, err));
    return get_begin(table, &(pli_rows){ .first = first, .n = n }, values, request_out, err);
}

plait_status plait_table_read(plait_table *table, int64_t first, int64_t n, const void **values_out) {
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN(err, values_out));
    PLI_TRY(check_range(table, first, n, err));
    enter(table, "plait_table_read");
    plait_status status = pli_job_finish_clock(table->job, err);
    return leave(table, status < 0 ? status : table->ops->read(table, first, n, values_out, err));
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
    if (may_wait(table)) table->updated = plait_job_clock_now(table->job) + 1;
    return table->ops->inc(table, rows, delta, examples, err);
}

/* With n = 0 too: the rows of data count. */
plait_status plait_table_inc(plait_table *table, int64_t n, const uint64_t *keys, const void *delta, int64_t examples) {
    PLI_TRY(usable(table, __func__));
    plait_error   *err = pli_job_error(table->job);
    const uint64_t none = 0;
    PLI_TRY(PLI_GIVEN_OF(err, n, keys));
    PLI_TRY(PLI_GIVEN_OF(err, n, delta));
    PLI_TRY(check_inc(table, examples, err));
    PLI_TRY(check_keys(table, n, keys, err));
    return inc(table, &(pli_rows){ .keys = n == 0 ? &none : keys, .n = n }, delta, examples, err);
}

plait_status plait_table_inc_range(plait_table *table, int64_t first, int64_t n, const void *delta, int64_t examples) {
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, delta));
    PLI_TRY(check_inc(table, examples, err));
    PLI_TRY(check_range(table, first, n, err));
    return inc(table, &(pli_rows){ .first = first, .n = n }, delta, examples, err);
}

typedef struct inc_request {
    plait_request base; /* first: a plait_request is this */
    plait_table  *table;
} inc_request;

/* The updates could not be sent at once. */
static plait_status wait_for_flush(plait_request *base) {
    plait_table *table = ((inc_request *)base)->table;
    bool         sent;
    pli_free(base);
    enter(table, "plait_request_wait of plait_table_inc_begin");
    return leave(table, table->ops->flush(table, true, &sent, pli_job_error(table->job)));
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
    PLI_TRY(usable(table, __func__));
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
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    PLI_TRY(PLI_GIVEN_OF(err, n, delta));
    PLI_TRY(PLI_GIVEN(err, request_out));
    PLI_TRY(check_inc(table, examples, err));
    PLI_TRY(check_range(table, first, n, err));
    return inc_begin(table, &(pli_rows){ .first = first, .n = n }, delta, examples, request_out, err);
}

/* An additive table's own updates must stay visible: they leave with the clock. */
static plait_status flush(plait_table *table, plait_error *err) {
    PLI_TRY(pli_job_finish_clock(table->job, err));
    if (table->flushed) return PLAIT_OK;
    if (table->job->client.ending) return PLAIT_OK; /* all goes at once, in a dead one's stead */
    if (table->spec.ruled && table->ops->depart != NULL) PLI_TRY(table->ops->depart(table, err));
    table->flushed = true;
    table->job->flushed++;
    return PLAIT_OK;
}

plait_status plait_table_flush(plait_table *table) {
    PLI_TRY(usable(table, __func__));
    plait_error *err = pli_job_error(table->job);
    if (table->job->left) return pli_fail(err, PLAIT_EINVAL, "table %s: flush after plait_job_leave", table->spec.name);
    if (!may_wait(table)) return PLAIT_OK;
    enter(table, "plait_table_flush");
    return leave(table, flush(table, err));
}

/* --- server functions --------------------------------------------------------------------------------------------- */

static plait_status find_function(const plait_job *job, const char *name, int32_t *at_out, plait_error *err) {
    for (int32_t i = 0; i < job->layout.n_functions; i++)
        if (strcmp(job->functions[i].name, name) == 0) {
            *at_out = i;
            return PLAIT_OK;
        }
    const char *names[64];
    size_t      n = job->layout.n_functions < 64 ? (size_t)job->layout.n_functions : 64;
    for (size_t i = 0; i < n; i++) names[i] = job->functions[i].name;
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

plait_status plait_table_call(plait_table *const *tables, int32_t n_tables, const char *name, const void *args,
                              size_t args_bytes, void *answer, size_t answer_bytes) {
    if (n_tables < 1 || tables == NULL) return PLAIT_EINVAL; /* of no job, whose error could say so */
    PLI_TRY(usable(tables[0], __func__));
    plait_job   *job = tables[0]->job;
    plait_error *err = pli_job_error(job);
    int32_t      function = 0;
    PLI_TRY(PLI_GIVEN(err, name));
    PLI_TRY(PLI_GIVEN_OF(err, args_bytes, args));
    PLI_TRY(PLI_GIVEN_OF(err, answer_bytes, answer));
    if (n_tables > PLI_CALL_TABLES_MAX || answer_bytes > PLI_ANSWER_BYTES_MAX || args_bytes > SIZE_MAX / 2)
        return pli_fail(err, PLAIT_EINVAL,
                        "server function %s over %d tables with arguments of %zu bytes and an answer of %zu; "
                        "expected at most %d tables and an answer of %d bytes",
                        name, n_tables, args_bytes, answer_bytes, PLI_CALL_TABLES_MAX, PLI_ANSWER_BYTES_MAX);
    for (int32_t i = 1; i < n_tables; i++)
        if (tables[i] == NULL) return pli_fail(err, PLAIT_EINVAL, "%s: tables[%d] is NULL", __func__, i);
    PLI_TRY(find_function(job, name, &function, err));
    PLI_TRY(check_aligned(tables, n_tables, err));
    if (job->functions[function].updates && strcmp(tables[0]->spec.consistency, "bsp") != 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "server function %s updates; only bsp tables can be updated so, and %s is %s", name,
                        tables[0]->spec.name, tables[0]->spec.consistency);
    enter(tables[0], "plait_table_call");
    plait_status status = pli_job_finish_clock(job, err);
    return leave(tables[0], status < 0 ? status
                                       : tables[0]->ops->call(tables, n_tables, function, args, args_bytes, answer,
                                                              answer_bytes, err));
}

/* --- dump --------------------------------------------------------------------------------------------------------- */

static plait_status dump_dense(plait_table *table, uint64_t **keys_out, void **values_out, plait_error *err) {
    const pli_spec *spec = &table->spec;
    uint64_t       *keys = pli_array((size_t)spec->rows, sizeof *keys);
    void           *values = pli_array((size_t)spec->rows, (size_t)pli_row_bytes(spec));
    plait_status    status = PLAIT_OK;
    if (keys == NULL || values == NULL)
        status = pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a dump", spec->name);
    else status = get(table, &(pli_rows){ .n = spec->rows }, values, err);
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

/* Rows into the order of keys; values is replaced. */
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
    PLI_TRY(usable(table, __func__));
    PLI_TRY(PLI_GIVEN(pli_job_error(table->job), n_out));
    PLI_TRY(PLI_GIVEN(pli_job_error(table->job), keys_out));
    PLI_TRY(PLI_GIVEN(pli_job_error(table->job), values_out));
    enter(table, "plait_table_dump");
    return leave(table, dump(table, n_out, keys_out, values_out));
}
