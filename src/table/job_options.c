/* The options of a job: they are checked, copied, and hashed as far as they must be the same on all ranks. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "comm/cluster.h"
#include "table/copies/moves.h"
#include "table/pairs/pairs.h"
#include "table/table.h"

enum { LOGICAL_EACH = 8 /* logical servers for each worker: docs/elastic.md has the figures */ };

static uint64_t hash_text(const char *text, uint64_t seed) { return pli_hash_bytes(text, strlen(text), seed); }

/* Hashes the options that servers must know, too. The batch and the first clock are not among them: they follow from
 * data and checkpoint, which only workers read, and come with a table. */
static uint64_t job_hash(const plait_job *job) {
    uint64_t hash = 3 + (uint64_t)job->layout.replicas * 53 + (uint64_t)job->layout.backup * 31 +
                    (uint64_t)job->exact * 37 + (uint64_t)job->layout.aggregates * 41 +
                    (uint64_t)job->layout.spares * 131101 + (uint64_t)job->layout.slots * 262147 +
                    (uint64_t)job->layout.homes * 524309 + (uint64_t)job->layout.servers * 1048583 +
                    job->layout.move_rate * 2097169 + (uint64_t)job->layout.cut_fine * 4194319 +
                    (uint64_t)job->revives * 8388617;
    hash = hash_text(job->consistency, hash_text(job->topology, hash));
    for (int32_t i = 0; i < job->layout.n_functions; i++)
        hash = hash_text(job->functions[i].name, hash) + (uint64_t)(job->functions[i].updates != 0);
    for (int32_t i = 0; i < job->layout.n_policies; i++) hash = hash_text(job->policies[i].name, hash);
    for (int32_t i = 0; i < job->layout.n_filters; i++) hash = hash_text(job->filters[i].name, hash);
    for (int32_t i = 0; i < job->layout.n_rules; i++) hash = hash_text(job->rules[i].name, hash + 43);
    if (job->filter[0] != '\0')
        hash = hash_text(job->filter, pli_hash_bytes(&job->layout.seed, sizeof job->layout.seed, hash));
    return hash;
}

/* --- what the program registers --------------------------------------------------------------------------------- */

static plait_status copy_functions(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    if (opts->n_functions < 0 || (opts->n_functions > 0 && opts->functions == NULL))
        return pli_fail(err, PLAIT_EINVAL, "a job with %d server functions", opts->n_functions);
    job->functions = pli_calloc((size_t)opts->n_functions, sizeof *job->functions);
    if (job->functions == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    for (int32_t i = 0; i < opts->n_functions; i++) {
        if (opts->functions[i].name == NULL || opts->functions[i].run == NULL)
            return pli_fail(err, PLAIT_EINVAL, "server function %d has no name or nothing to run", i);
        job->functions[i] = opts->functions[i];
        job->functions[i].name = pli_strdup(opts->functions[i].name);
        job->layout.n_functions = i + 1;
        if (job->functions[i].name == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    }
    job->layout.functions = job->functions;
    return PLAIT_OK;
}

static plait_status copy_policies(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    PLI_TRY(pli_consistencies_check(opts->policies, opts->n_policies, err));
    job->policies = pli_calloc((size_t)opts->n_policies, sizeof *job->policies);
    if (job->policies == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    if (opts->n_policies > 0) memcpy(job->policies, opts->policies, (size_t)opts->n_policies * sizeof *job->policies);
    job->layout.policies = job->policies;
    job->layout.n_policies = opts->n_policies;
    return PLAIT_OK;
}

static plait_status copy_rules(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    PLI_TRY(pli_rules_check_own(opts->rules, opts->n_rules, err));
    job->rules = pli_calloc((size_t)opts->n_rules, sizeof *job->rules);
    if (job->rules == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    if (opts->n_rules > 0) memcpy(job->rules, opts->rules, (size_t)opts->n_rules * sizeof *job->rules);
    job->layout.rules = job->rules;
    job->layout.n_rules = opts->n_rules;
    return PLAIT_OK;
}

static plait_status copy_filters(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    PLI_TRY(pli_filters_check_own(opts->filters, opts->n_filters, err));
    job->filters = pli_calloc((size_t)opts->n_filters, sizeof *job->filters);
    if (job->filters == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    if (opts->n_filters > 0) memcpy(job->filters, opts->filters, (size_t)opts->n_filters * sizeof *job->filters);
    job->layout.filters = job->filters;
    job->layout.n_filters = opts->n_filters;
    job->layout.seed = opts->seed;
    const char *names = opts->filter == NULL ? "" : opts->filter;
    if (strlen(names) >= sizeof job->filter)
        return pli_fail(err, PLAIT_EINVAL, "filters '%.40s...': the list is too long; at most %zu bytes are possible",
                        names, sizeof job->filter - 1);
    strcpy(job->filter, names);
    pli_filters_list       list;
    const pli_filter_scope scope = pli_layout_filters(&job->layout);
    return pli_filters_read(names, &scope, &list, err);
}

/* With slots, unless ranks only serve, servers are logical, and move with those who come and go (copies/moves.h). */
static plait_status take_moves(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    const bool    moves = opts->slots > 0 && job->layout.first_server == 0 && !job->revives;
    const int32_t workers = job->layout.workers, most = PLI_LOGICAL_MAX / workers;
    const char   *of_moves = opts->move_rate > 0 ? "move_rate" : opts->logical_servers != 0 ? "logical_servers" : NULL;
    if (!moves) return of_moves == NULL ? PLAIT_OK : pli_moves_check(of_moves, opts->slots, job->revives, err);
    if (opts->logical_servers < 0 || opts->logical_servers > most || most == 0)
        return pli_fail(err, PLAIT_EINVAL,
                        "%d logical servers for each of %d workers; expected 0 to %d, since a job has at most %d",
                        opts->logical_servers, workers, most, (int)PLI_LOGICAL_MAX);
    const int32_t each = opts->logical_servers > 0 ? opts->logical_servers : LOGICAL_EACH < most ? LOGICAL_EACH : most;
    job->layout.homes = workers - opts->slots;
    job->layout.servers = each * workers;
    job->layout.cut_fine = opts->logical_servers > 0;
    job->layout.move_rate = opts->move_rate;
    return PLAIT_OK;
}

plait_status pli_job_take_options(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    bool        one_process = plait_comm_one_process(job->comm);
    const char *topology = opts->topology != NULL ? opts->topology : pli_topology_default(one_process)->name;
    const char *consistency = opts->consistency != NULL ? opts->consistency : PLI_CONSISTENCY_DEFAULT;
    int32_t     workers = plait_comm_workers(job->comm), servers = plait_comm_servers(job->comm);
    job->batch = opts->batch;
    if (opts->batch <= 0)
        return pli_fail(err, PLAIT_EINVAL, "a batch of %lld rows; expected 1 or more", (long long)opts->batch);
    job->layout = (pli_layout){ .workers = workers, .servers = servers > 0 ? servers : workers,
                                .first_server = servers > 0 ? workers : 0,
                                .resend_after_ns = pli_comm_resend_after_ns(job->comm) };
    if (opts->backup < 0 || (opts->backup > 0 && opts->backup >= workers))
        return pli_fail(err, PLAIT_EINVAL, "%d backup workers of %d workers: a clock must wait for at least one worker",
                        opts->backup, workers);
    job->layout.backup = opts->backup;
    if (opts->first_clock < 0)
        return pli_fail(err, PLAIT_EINVAL, "a job that begins at clock %lld; expected 0 or more",
                        (long long)opts->first_clock);
    job->layout.first_clock = opts->first_clock;
    atomic_store_explicit(&job->clock, opts->first_clock, memory_order_relaxed);
    if (opts->aggregate != NULL && strcmp(opts->aggregate, "host") != 0)
        return pli_fail_unknown(err, "aggregation", opts->aggregate, &(const char *){ "host" }, 1);
    job->layout.aggregates = opts->aggregate != NULL;
    if (opts->replicas < 0) return pli_fail(err, PLAIT_EINVAL, "%d replicas; expected 1, 2 or 3", opts->replicas);
    job->layout.replicas = opts->replicas;
    PLI_TRY(pli_spares_check(opts->spares, workers, err));
    job->layout.spares = opts->spares;
    PLI_TRY(pli_slots_check(opts->slots, workers, err));
    job->layout.slots = opts->slots;
    job->revives = opts->revives != 0;
    PLI_TRY(pli_revives_check(job->revives, opts->slots, plait_comm_transport(job->comm),
                              pli_comm_cluster(job->comm) != NULL, pli_job_lives_anew(job), err));
    if (pli_comm_cluster(job->comm) != NULL)
        PLI_TRY(pli_script_check_turns(pli_comm_cluster(job->comm), workers, opts->slots, err));
    job->left = plait_comm_rank(job->comm) < workers &&
                (plait_comm_rank(job->comm) >= workers - opts->slots || pli_job_lives_anew(job));
    if (servers == 0) job->layout.servers -= opts->spares > 0 ? opts->spares : opts->slots;
    PLI_TRY(take_moves(job, opts, err));
    job->exact = opts->exact != 0;
    PLI_TRY(copy_policies(job, opts, err));
    PLI_TRY(copy_filters(job, opts, err));
    PLI_TRY(copy_rules(job, opts, err));
    pli_scope scope = pli_layout_scope(&job->layout);
    scope.setting.backup = 0; /* checked for each table, which may have its own consistency */
    PLI_TRY(pli_pair_check(
        &(pli_pair){ .topology = topology, .consistency = consistency, .scope = &scope, .one_process = one_process,
                     .replicas = opts->replicas, .spares = opts->spares, .slots = opts->slots,
                     .servers = pli_layout_holders(&job->layout),
                     .aggregates = opts->replicas > 1 && job->layout.aggregates },
        err));
    snprintf(job->topology, sizeof job->topology, "%s", topology);
    snprintf(job->consistency, sizeof job->consistency, "%s", consistency);
    PLI_TRY(copy_functions(job, opts, err));
    job->layout.job_hash = job_hash(job);
    return PLAIT_OK;
}
