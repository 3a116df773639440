/* How each table of a model travels in a run: as --table says of its name, else as the run's own options say. */
#include <stdio.h>
#include <string.h>

#include "learn/run/run.h"
#include "table/table.h"
#include "table/pairs/pairs.h"

/* The learner's line about a table; NULL: none. */
static const plait_learner_table *said_of(const pli_run *run, const char *name) {
    const plait_learner_table *table = run->learner != NULL ? run->learner->tables : NULL;
    for (; table != NULL && table->name != NULL; table++)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}

static bool is_small(const pli_run *run, const char *name) {
    const plait_learner_table *table = said_of(run, name);
    return table != NULL && table->small != 0;
}

pli_travel pli_run_travel(const pli_run *run, const char *name) {
    const plait_train_opts *o = run->opts;
    pli_travel              travel = {
        .topology = o->topology != NULL ? o->topology
                                        : pli_topology_default(plait_comm_one_process(run->comm) != 0)->name,
        .consistency = o->consistency != NULL ? o->consistency : PLI_CONSISTENCY_DEFAULT,
        .filter = o->filter != NULL && !is_small(run, name) ? o->filter : "",
    };
    for (int32_t i = 0; i < o->n_tables; i++) {
        const plait_table_setting *said = &o->tables[i];
        if (strcmp(said->name, name) != 0) continue;
        if (said->topology != NULL) travel.topology = said->topology;
        if (said->consistency != NULL) travel.consistency = said->consistency;
        if (said->filter != NULL) travel.filter = said->filter;
    }
    return travel;
}

/* --- before the data are read -------------------------------------------------------------------------------- */

/* Is each name in --table a table of the model? The learner names its tables beforehand (n 0), or plans them when the
 * data are read (planned). */
static plait_status check_names(const pli_run *run, const pli_planned *planned, int32_t n) {
    const char *names[PLI_TABLES];
    size_t      known = 0;
    if (n == 0 && run->learner->tables == NULL && !run->lbfgs) return PLAIT_OK;
    for (int32_t i = 0; i < n; i++) names[known++] = planned[i].name;
    for (const plait_learner_table *t = run->learner->tables; n == 0 && t != NULL && t->name != NULL; t++)
        names[known++] = t->name;
    if (known == 0) names[known++] = "w"; /* L-BFGS has all values in one table */
    for (int32_t i = 0; i < run->opts->n_tables; i++) {
        size_t t = 0;
        while (t < known && strcmp(names[t], run->opts->tables[i].name) != 0) t++;
        if (t == known) return pli_fail_unknown(run->err, "table", run->opts->tables[i].name, names, known);
    }
    return PLAIT_OK;
}

/* Only the first table's pair is held against ranks that only serve: other tables may do without servers. */
static plait_status check_pair(const pli_run *run, const char *name, pli_fill fill, bool grows) {
    const plait_train_opts *o = run->opts;
    const pli_travel        travel = pli_run_travel(run, name);
    const bool           cut = pli_run_stages(run) > 1;
    const pli_scope      scope = { .setting = { .workers = cut ? pli_run_holders(run) : plait_comm_workers(run->comm),
                                                .backup = o->backup } };
    const pli_rule_scope rules = pli_run_rules(run);
    const pli_above      above = pli_run_above(run);
    const int32_t        servers = plait_comm_servers(run->comm);
    const bool           first = strcmp(name, pli_run_first_table(run)) == 0;
    return pli_pair_check(&(pli_pair){ .topology = travel.topology,
                                       .consistency = travel.consistency,
                                       .table = name,
                                       .apart = o->n_tables > 0 || fill != PLI_FILL_ANY,
                                       .scope = &scope,
                                       .fill = fill,
                                       .grows = grows,
                                       .one_process = plait_comm_one_process(run->comm) != 0,
                                       .by_default = o->topology == NULL,
                                       .staleness_aware = o->staleness_aware != 0,
                                       .rule = pli_run_rule(run),
                                       .rules = &rules,
                                       .exact = run->exact,
                                       .filter = travel.filter,
                                       .aggregates = o->aggregate != NULL,
                                       .replicas = o->replicas,
                                       .spares = o->spares,
                                       .slots = o->slots,
                                       .servers = servers > 0 ? servers : pli_run_holders(run) - o->slots,
                                       .only_servers = first ? servers : 0,
                                       .group = cut ? "stage 0" : NULL,
                                       .logged = pli_comm_events(run->comm) != NULL,
                                       .collective = pli_comm_collective(run->comm),
                                       .sharded = run->sharded && !is_small(run, name),
                                       .above = &above },
                          run->err);
}

static bool was_named(const pli_run *run, const char *name) {
    for (int32_t i = 0; i < run->opts->n_tables; i++)
        if (strcmp(run->opts->tables[i].name, name) == 0) return true;
    return false;
}

const char *pli_run_first_table(const pli_run *run) {
    return run->learner->tables != NULL ? run->learner->tables[0].name : "w";
}

plait_status pli_tables_check(const pli_run *run) {
    const char *first = pli_run_first_table(run);
    PLI_TRY(check_names(run, NULL, 0));
    PLI_TRY(check_pair(run, first, PLI_FILL_ANY, false));
    for (const plait_learner_table *t = run->learner->tables; t != NULL && t->name != NULL; t++)
        if (t->small != 0 && was_named(run, t->name)) PLI_TRY(check_pair(run, t->name, PLI_FILL_DENSE, false));
    for (int32_t i = 0; i < run->opts->n_tables; i++) /* they may turn out not to be in this run */
        PLI_TRY(check_pair(run, run->opts->tables[i].name, PLI_FILL_ANY, false));
    return PLAIT_OK;
}

/* --- when their layout is known ------------------------------------------------------------------------------- */

/* The run's setting is often meant for its weights alone; then the intercepts may take another. */
static plait_status advise(const pli_run *run, const pli_planned *planned, plait_status status) {
    plait_error why = *run->err;
    if (status != PLAIT_EREFUSED || !planned->hinted || was_named(run, planned->name)) return status;
    return pli_fail(run->err, status, "%s; or, only for this table, --table %s:consistency=bsp", why.text,
                    planned->name);
}

static plait_status settle(pli_run *run, const pli_planned *planned) {
    const pli_travel travel = pli_run_travel(run, planned->name);
    const pli_fill   fill = planned->sparse ? PLI_FILL_SPARSE : PLI_FILL_DENSE;
    pli_topology     topology;
    if (planned->absent != NULL)
        return !was_named(run, planned->name) ? PLAIT_OK
                                              : pli_fail(run->err, PLAIT_EINVAL, "table %s is not in this run: %s",
                                                         planned->name, planned->absent);
    plait_status status = check_pair(run, planned->name, fill, planned->grows);
    if (status < 0) return advise(run, planned, status);
    PLI_TRY(pli_topology_make(travel.topology, fill, &topology, run->err));
    plait_report_table *table = &run->table[run->n_tables++];
    snprintf(table->name, sizeof table->name, "%s", planned->name);
    snprintf(table->topology, sizeof table->topology, "%s", topology.text);
    snprintf(table->consistency, sizeof table->consistency, "%s", travel.consistency);
    snprintf(table->filter, sizeof table->filter, "%s", travel.filter);
    return PLAIT_OK;
}

plait_status pli_tables_settle(pli_run *run, const pli_planned *planned, int32_t n) {
    PLI_TRY(check_names(run, planned, n));
    for (int32_t i = 0; i < n; i++) PLI_TRY(settle(run, &planned[i]));
    return PLAIT_OK;
}

/* --- creation --------------------------------------------------------------------------------------------------- */

plait_status pli_run_table_opts(pli_run *run, plait_table_opts *opts_out) {
    const plait_train_opts *o = run->opts;
    const pli_rule_scope    rules = pli_run_rules(run);
    plait_table_opts        t;
    plait_table_opts_init(&t);
    t.type = PLAIT_F32;
    t.sharded = run->sharded;
    t.rule.name = run->optimizer;
    t.rule.learning_rate = run->rate;
    t.rule.momentum = o->momentum;
    t.rule.l1 = run->l1;
    t.rule.l2 = run->l2;
    t.rule.schedule = run->schedule;
    t.rule.staleness_aware = o->staleness_aware;
    t.rule.schedule_clocks = run->clocks * run->epochs > 0 ? run->clocks * run->epochs : 1;
    if (run->schedule != NULL && strcmp(run->schedule, "invsqrt") == 0)
        t.rule.schedule_clocks = run->clocks > 0 ? run->clocks : 1;
    PLI_TRY(pli_rule_make(&t.rule, &rules, &run->rule, run->err));
    *opts_out = t;
    return PLAIT_OK;
}

plait_status pli_run_add_table(pli_run *run, plait_table *table) {
    if (run->n_made == PLI_TABLES)
        return pli_fail(run->err, PLAIT_EINVAL, "table %s: a model has at most %d tables", plait_table_name(table),
                        (int)PLI_TABLES);
    run->made[run->n_made++] = table;
    return PLAIT_OK;
}

plait_status pli_run_make_table(pli_run *run, const plait_table_opts *opts, plait_table **table_out) {
    const pli_travel travel = pli_run_travel(run, opts->name);
    plait_table_opts t = *opts;
    t.topology = travel.topology;
    t.consistency = travel.consistency;
    t.filter = travel.filter;
    PLI_TRY(plait_table_create(run->job, &t, table_out));
    return pli_run_add_table(run, *table_out);
}

plait_status pli_run_drop_table(pli_run *run, plait_table **table) {
    int32_t left = 0;
    for (int32_t i = 0; i < run->n_made; i++)
        if (run->made[i] != *table) run->made[left++] = run->made[i];
    run->n_made = left;
    return plait_table_drop(table);
}

plait_status plait_training_table(plait_training *run, const plait_table_opts *opts, plait_table **table_out) {
    if (run == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    PLI_TRY(PLI_GIVEN(run->err, opts));
    PLI_TRY(PLI_GIVEN(run->err, table_out));
    plait_table_opts own;
    PLI_TRY(pli_table_opts_take(opts, &own, run->err));
    if (own.name == NULL) return pli_fail_null(run->err, __func__, "opts->name");
    return pli_run_make_table(run, &own, table_out);
}

plait_status pli_run_table(pli_run *run, const char *name, plait_type type, int64_t rows, int64_t cols,
                           const void *initial, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.type = type;
    opts.rows = rows;
    opts.cols = cols;
    opts.initial = initial;
    return plait_training_table(run, &opts, table_out);
}
