/* The creation of tables: the options are checked, all workers agree on them, and the table's topology gets them. */
#include <string.h>

#include "table/copies/moves.h"
#include "table/pairs/pairs.h"
#include "table/shown.h"
#include "table/table.h"

void (plait_table_opts_init)(plait_table_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_table_opts){ .size = sizeof *opts, .type = PLAIT_F32, .cols = 1 };
    plait_rule_opts_init(&opts->rule);
}

void plait_table_opts_init_sized(plait_table_opts *opts, size_t size) {
    plait_table_opts all;
    (plait_table_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
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

/* Others may be ahead: all must be in one clock, with nothing under way. */
static bool is_late(const plait_job *job) { return plait_job_clock_now(job) > job->layout.first_clock; }

enum { MOVED_SHARD_BYTES = 64 << 10 };

/* Where shards move: a table has more than the first ranks need, for those who come, only if they are so large that the
 * messages for each, in each clock, matter little; or if the program says how many. */
static int32_t most_that_move(const pli_layout *layout, const pli_spec *spec) {
    const int64_t bytes = pli_row_bytes(spec), large = spec->rows / ((MOVED_SHARD_BYTES + bytes - 1) / bytes);
    const int32_t most = layout->cut_fine ? layout->servers : pli_moves_cut(layout, large);
    return spec->most_shards > 0 && spec->most_shards < most ? spec->most_shards : most;
}

static plait_status make_spec(plait_job *job, const plait_table_opts *opts, plait_table *table, plait_error *err) {
    const char *topology = opts->topology != NULL ? opts->topology : job->topology;
    const char *consistency = opts->consistency != NULL ? opts->consistency : job->consistency;
    if (job->left && (job->layout.slots == 0 || is_late(job)))
        return pli_fail(err, PLAIT_EINVAL, "table %s: plait_table_create after plait_job_leave", opts->name);
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
                                        .late = is_late(job),
                                        .sharded = opts->sharded != 0,
                                        .exact = own.exact != 0,
                                        .aggregates = job->layout.aggregates,
                                        .logged = pli_comm_events(job->comm) != NULL,
                                        .replicas = job->layout.replicas,
                                        .spares = job->layout.spares,
                                        .slots = job->layout.slots,
                                        .servers = pli_layout_holders(&job->layout),
                                        .group = job->group != NULL ? plait_group_name(job->group) : NULL,
                                        .only_servers = job->group != NULL ? plait_comm_servers(job->comm) : 0,
                                        .collective = pli_comm_collective(job->comm),
                                        .filter = own.filter,
                                        .filters = &filters,
                                        .rules = &rules },
                           err));
    PLI_TRY(pli_spec_make(job->next_id, &own, topology, consistency, job->batch, &rules, &table->spec, err));
    pli_spec *spec = &table->spec;
    if (pli_moves_are_on(&job->layout)) spec->most_shards = most_that_move(&job->layout, spec);
    const pli_topology_kind *kind = spec->topology.kind;
    spec->placement = pli_placement_make(spec->rows, pli_row_bytes(spec),
                                         kind->one_process || !kind->on_servers ? 1 : spec->most_shards,
                                         job->layout.servers, job->layout.first_server);
    if (pli_moves_are_on(&job->layout)) spec->placement = pli_moves_placement(&job->layout, spec);
    return note_properties(table, &scope, err);
}

/* What all workers agree on before anybody makes anything. */
static plait_status prepare(plait_job *job, const plait_table_opts *opts, bool taken, plait_table **table_out) {
    plait_error  *err = pli_job_error(job);
    const int64_t clock = plait_job_clock_now(job);
    uint64_t      hash = 0;
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "plait_table_create is for workers; this rank is a server");
    PLI_TRY(pli_job_must_have_ended(job, "plait_table_create",
                                    err)); /* before any collective, and without one: others may not have flushed */
    PLI_TRY(pli_job_finish_clock(job, err));
    plait_table *table = pli_calloc(1, sizeof *table);
    plait_status status = table == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory for a table") : PLAIT_OK;
    if (status >= 0 && !pli_grow((void **)&job->table, &job->tables_capacity, job->tables + 1, sizeof(void *)))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for a table");
    if (status >= 0) status = make_spec(job, opts, table, err);
    if (status >= 0 && taken) status = pli_fail(err, PLAIT_EINVAL, "a table named %s exists already", table->spec.name);
    if (status >= 0) hash = pli_hash_bytes(&clock, sizeof clock, pli_spec_hash(&table->spec, opts->initial,
                                                                                opts->penalty));
    status = pli_job_agree(job, "a table's creation", hash, status, err);
    job->next_id++;
    if (status < 0) pli_free(table);
    else *table_out = table;
    return status;
}

static plait_status open(plait_job *job, const plait_table_opts *opts, plait_table *table) {
    const pli_scope scope = pli_layout_scope(&job->layout);
    table->job = job;
    table->ops = ops_of(&table->spec, &scope);
    plait_status status = table->ops->open(table, opts->initial, opts->penalty, pli_job_error(job));
    if (status < 0) table->ops->close(table);
    if (status < 0) return status;
    job->table[job->tables++] = table;
    pli_shown_table(table);
    return PLAIT_OK;
}

static bool has_table(const plait_job *job, const char *name) {
    for (int64_t i = 0; i < job->tables; i++)
        if (strcmp(job->table[i]->spec.name, name) == 0) return true;
    for (int64_t i = 0; i < job->parts; i++)
        if (has_table(job->part[i], name)) return true;
    return false;
}

/* The job that the table will belong to: the whole, or the part of its group. */
static plait_status find_job(plait_job *job, const plait_table_opts *opts, plait_job **job_out) {
    plait_error *err = pli_job_error(job);
    *job_out = job;
    if (opts->group == NULL) return PLAIT_OK;
    const char *name = opts->name != NULL ? opts->name : "";
    if (opts->group->comm != job->comm)
        return pli_fail(err, PLAIT_EINVAL, "table %s: group %s is of another run or rank", name,
                        plait_group_name(opts->group));
    if (plait_group_rank(opts->group) < 0)
        return pli_fail(err, PLAIT_EREFUSED, "table %s of group %s: rank %d is no member", name,
                        plait_group_name(opts->group), plait_comm_rank(job->comm));
    PLI_TRY(pli_job_must_have_ended(job, "plait_table_create", err));
    PLI_TRY(pli_job_finish_clock(job, err));
    return pli_job_part(job, opts->group, job_out, err);
}

plait_status pli_table_opts_take(const plait_table_opts *given, plait_table_opts *own, plait_error *err) {
    plait_table_opts_init(own);
    return pli_sized_take(own, sizeof *own, PLI_SIZED_END(plait_table_opts, initial), given, "plait_table_opts", err);
}

static plait_status create(plait_job *job, const plait_table_opts *opts, plait_table **table_out) {
    plait_table *table = NULL;
    const bool taken = opts->name != NULL && has_table(job, opts->name);
    pli_comm_enter(job->comm, "plait_table_create");
    PLI_TRY(pli_comm_leave(job->comm, find_job(job, opts, &job)));
    pli_comm_enter(job->comm, "plait_table_create");
    PLI_TRY(pli_comm_leave(job->comm, prepare(job, opts, taken, &table)));
    plait_status status = is_late(job) ? plait_job_barrier(job) : PLAIT_OK;
    pli_comm_enter(job->comm, "plait_table_create");
    status = pli_comm_leave(job->comm, status < 0 ? status : open(job, opts, table));
    if (status < 0) pli_free(table);
    else *table_out = table;
    return status;
}

plait_status plait_table_create(plait_job *job, const plait_table_opts *opts, plait_table **table_out) {
    plait_table_opts own;
    PLI_TRY(pli_job_usable(job, __func__));
    PLI_TRY(PLI_GIVEN(pli_job_error(job), opts));
    PLI_TRY(PLI_GIVEN(pli_job_error(job), table_out));
    PLI_TRY(pli_table_opts_take(opts, &own, pli_job_error(job)));
    return create(job, &own, table_out);
}

plait_status pli_table_check_late(const plait_table *table, plait_error *err) {
    const plait_job *job = table->job;
    const pli_scope  scope = pli_layout_scope(&job->layout);
    return pli_pair_check(&(pli_pair){ .topology = table->spec.topology.text,
                                       .consistency = table->spec.consistency,
                                       .scope = &scope,
                                       .table = table->spec.name,
                                       .one_process = plait_comm_one_process(job->comm),
                                       .replicas = job->layout.replicas,
                                       .servers = pli_layout_holders(&job->layout),
                                       .late = true },
                          err);
}
