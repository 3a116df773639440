/* The creation of tables: the options are checked, all workers agree on them, and the table's topology gets them. */
#include <string.h>

#include "table/pairs/pairs.h"
#include "table/table.h"

void plait_table_opts_init(plait_table_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_table_opts){ .size = sizeof *opts, .type = PLAIT_F32, .cols = 1 };
    plait_rule_opts_init(&opts->rule);
}

static const pli_topology_ops *ops_of(const pli_spec *spec, const pli_scope *scope) {
    const pli_topology_kind *kind = spec->topology.kind;
    if (pli_pair_is_unlocked(kind, spec->consistency, scope)) return kind->unlocked;
    return pli_pair_averages(kind, spec->consistency, scope) && !kind->averages ? &pli_local_sgd_ops : kind->ops;
}

static plait_status note_properties(plait_table *table, const pli_scope *scope, plait_error *err) {
    pli_policy policy;
    PLI_TRY(pli_policy_make(table->spec.consistency, scope, &policy, err));
    table->has = pli_policy_properties(table->spec.topology.kind, &policy);
    pli_policy_destroy(&policy);
    return PLAIT_OK;
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
                                        .table = opts->name,
                                        .fill = pli_fill_of(opts),
                                        .grows = opts->rows == 0,
                                        .one_process = plait_comm_one_process(job->comm),
                                        .staleness_aware = opts->rule.name != NULL && opts->rule.staleness_aware,
                                        .rule = opts->rule.name,
                                        .type = opts->type,
                                        .combine = opts->combine,
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
    return note_properties(table, &scope, err);
}

static plait_status create(plait_job *job, const plait_table_opts *opts, plait_table **table_out) {
    plait_error *err = pli_job_error(job);
    uint64_t     hash = 0;
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "plait_table_create is for workers; this rank is a server");
    PLI_TRY(pli_job_must_have_ended(job, "plait_table_create",
                                    err)); /* before any collective, and without one: others may not have flushed */
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
