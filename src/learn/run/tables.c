/* The tables of a model, and how each travels in a run: what was said of it by name, else what was said of the run. */
#include <stdio.h>
#include <string.h>

#include "learn/learn.h"
#include "learn/run/run.h"
#include "table/topology/topology.h"

static const pli_model_table tables[] = {
    { "w",
      "the weights, a row a feature, and behind them a row of intercepts; rows by key and without intercepts where "
      "features grow by key; with lbfgs its other vectors travel as w does, and a net has all its values in it" },
    { "b", "the intercepts, a dense row, where features grow by key" },
    { NULL, NULL },
};

const pli_model_table *pli_model_tables(void) { return tables; }

pli_travel pli_run_travel(const pli_run *run, const char *name) {
    const plait_train_opts *o = run->opts;
    pli_travel              travel = {
        .topology = o->topology != NULL ? o->topology
                                        : pli_topology_default(plait_comm_one_process(run->comm) != 0)->name,
        .consistency = o->consistency != NULL ? o->consistency : PLI_CONSISTENCY_DEFAULT,
        .filter = o->filter != NULL && strcmp(name, "b") != 0 ? o->filter : "", /* b: one row, nothing to save */
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

/* Of a net: known when it is built. */
static plait_status check_names(const pli_run *run) {
    const char *names[PLI_NET_PARAMS];
    size_t      n = 0;
    if (run->net == NULL && !run->lbfgs && pli_net_kind_find(run->opts->model) != NULL) return PLAIT_OK;
    for (; run->net != NULL && !run->lbfgs && n < (size_t)run->net->n_params; n++) names[n] = run->net->param[n].name;
    for (; (run->net == NULL || run->lbfgs) && tables[n].name != NULL; n++) names[n] = tables[n].name;
    for (int32_t i = 0; i < run->opts->n_tables; i++) {
        size_t t = 0;
        while (t < n && strcmp(names[t], run->opts->tables[i].name) != 0) t++;
        if (t == n) return pli_fail_unknown(run->err, "table", run->opts->tables[i].name, names, n);
    }
    return PLAIT_OK;
}

static plait_status check_pair(const pli_run *run, const char *name, pli_fill fill) {
    const pli_travel travel = pli_run_travel(run, name);
    const pli_scope  scope = { .setting = { .workers = plait_comm_workers(run->comm), .backup = run->opts->backup } };
    const pli_rule_scope rules = pli_run_rules(run);
    const int32_t        servers = plait_comm_servers(run->comm);
    const pli_pair       pair = { .topology = travel.topology,
                                  .consistency = travel.consistency,
                                  .scope = &scope,
                                  .fill = fill,
                                  .one_process = plait_comm_one_process(run->comm) != 0,
                                  .staleness_aware = run->opts->staleness_aware != 0,
                                  .rule = run->optimizer,
                                  .rules = &rules,
                                  .exact = run->exact,
                                  .filter = travel.filter,
                                  .aggregates = run->opts->aggregate != NULL,
                                  .replicas = run->opts->replicas,
                                  .spares = run->opts->spares,
                                  .servers = servers > 0 ? servers : pli_run_holders(run),
                                  .logged = pli_comm_events(run->comm) != NULL,
                                  .collective = pli_comm_collective(run->comm),
                                  .sharded = run->sharded && strcmp(name, "b") != 0 };
    bool             all_alike = run->opts->n_tables == 0 && fill == PLI_FILL_ANY;
    plait_status     status = pli_pair_check(&pair, run->err);
    return status < 0 && !all_alike ? pli_fail_at(run->err, "table %s", name) : status;
}

static bool was_named(const pli_run *run, const char *name) {
    for (int32_t i = 0; i < run->opts->n_tables; i++)
        if (strcmp(run->opts->tables[i].name, name) == 0) return true;
    return false;
}

/* Ranks that only hold shards need a table that lies on them. */
static plait_status check_servers(const pli_run *run, const char *topology, pli_fill fill) {
    pli_topology t;
    int32_t      servers = plait_comm_servers(run->comm);
    PLI_TRY(pli_topology_make(topology, fill, &t, run->err));
    bool on_servers = t.kind->on_servers && !t.kind->one_process,
         may_be = fill == PLI_FILL_ANY && t.kind->sparse != NULL;
    if (servers == 0 || on_servers || may_be) return PLAIT_OK;
    const char *as = strcmp(t.text, topology) != 0      ? ", by which dense tables travel under hybrid,"
                     : run->opts->topology == NULL ? " (the default)"
                                                   : "";
    return pli_fail(run->err, PLAIT_EREFUSED,
                    "--servers %d with topology %s%s is refused: its workers hold the values themselves, so "
                    "servers would stand idle; nearest is --topology ps, or no --servers",
                    (int)servers, t.text, as);
}

plait_status pli_tables_check(const pli_run *run) {
    PLI_TRY(check_names(run));
    PLI_TRY(check_pair(run, "w", PLI_FILL_ANY));
    if (was_named(run, "b")) PLI_TRY(check_pair(run, "b", PLI_FILL_DENSE));
    for (int32_t i = 0; i < run->opts->n_tables; i++) /* a net's: which there are is known when it is built */
        PLI_TRY(check_pair(run, run->opts->tables[i].name, PLI_FILL_ANY));
    return check_servers(run, pli_run_travel(run, "w").topology, PLI_FILL_ANY);
}

/* --- when it is known how they lie ---------------------------------------------------------------------------- */

/* What is said of the run is often meant for its weights: the intercepts may take another. */
static plait_status advise(const pli_run *run, const char *name, plait_status status) {
    plait_error why = *run->err;
    if (status != PLAIT_EREFUSED || strcmp(name, "b") != 0 || was_named(run, name)) return status;
    return pli_fail(run->err, status, "%s; or, for this table alone, --table b:consistency=bsp", why.text);
}

static plait_status settle(pli_run *run, const char *name, pli_fill fill) {
    const pli_travel travel = pli_run_travel(run, name);
    pli_topology     topology;
    plait_status   status = check_pair(run, name, fill);
    if (status < 0) return advise(run, name, status);
    PLI_TRY(pli_topology_make(travel.topology, fill, &topology, run->err));
    plait_report_table *table = &run->table[run->n_tables++];
    snprintf(table->name, sizeof table->name, "%s", name);
    snprintf(table->topology, sizeof table->topology, "%s", topology.text);
    snprintf(table->consistency, sizeof table->consistency, "%s", travel.consistency);
    snprintf(table->filter, sizeof table->filter, "%s", travel.filter);
    return PLAIT_OK;
}

static plait_status settle_net(pli_run *run) {
    PLI_TRY(check_names(run));
    const pli_fill first = run->net->sparse ? PLI_FILL_SPARSE : PLI_FILL_DENSE;
    for (int32_t p = 0; p < run->net->n_params; p++)
        PLI_TRY(settle(run, run->net->param[p].name, p == 0 ? first : PLI_FILL_DENSE));
    return check_servers(run, pli_run_travel(run, run->net->param[0].name).topology, first);
}

plait_status pli_tables_settle(pli_run *run) {
    if (run->net != NULL && !run->lbfgs) return settle_net(run);
    pli_fill fill = run->form == PLI_DENSE || run->net != NULL ? PLI_FILL_DENSE : PLI_FILL_SPARSE;
    bool     apart = run->form == PLI_SPARSE && run->linear.intercept;
    PLI_TRY(settle(run, "w", fill));
    PLI_TRY(check_servers(run, pli_run_travel(run, "w").topology, fill));
    if (apart) return settle(run, "b", PLI_FILL_DENSE);
    if (!was_named(run, "b")) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL, "table b is not in this run: %s",
                    run->linear.intercept ? "its intercepts are the last row of table w" : "it fits no intercept");
}
