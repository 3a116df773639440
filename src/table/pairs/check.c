/* Checks a pair and its settings against the matrix and the rules. See pairs.h. */
#include <stdio.h>
#include <string.h>

#include "table/pairs/facts.h"

enum { WORD_BYTES = 128 };

/* --- what stands for a word in braces ----------------------------------------------------------------------------- */

static const char *what_is_lost(const plait_filter *filter) {
    return filter->loss == PLAIT_KEPT_BACK ? "keeps whole rows of updates back"
           : filter->loss == PLAIT_SKIPPED ? "lets updates fall"
                                           : "rounds updates";
}

static const char *number(int32_t n, char text[WORD_BYTES]) {
    snprintf(text, WORD_BYTES, "%d", (int)n);
    return text;
}

/* Does this pair train, and does it keep to what is needed? */
static bool would_do(const pli_facts *f, const pli_topology_kind *kind, const char *topology, const char *consistency,
                     plait_properties needs) {
    const pli_pair pair = { .topology = topology, .consistency = consistency, .scope = f->pair->scope,
                            .one_process = f->pair->one_process };
    return (pli_pair_properties(kind, consistency, f->pair->scope) & needs) == needs &&
           pli_pair_check(&pair, NULL) >= 0;
}

/* The nearest choice that the rule would not refuse: another policy under the same topology, or else another
 * topology. */
static const char *nearest(const pli_facts *f, const pli_pair_rule *rule, char text[WORD_BYTES]) {
    const pli_topology_kind *const *kinds = pli_topologies();
    const plait_consistency *const *policies = pli_consistencies();
    for (int p = 0; policies[p] != NULL; p++) {
        if (policies[p]->parameters[0] != '\0' || /* needs a number that nobody has given */
            !would_do(f, f->kind, f->pair->topology, policies[p]->name, rule->needs))
            continue;
        snprintf(text, WORD_BYTES, "consistency %s", policies[p]->name);
        return text;
    }
    for (int t = 0; kinds[t] != NULL; t++) {
        if (kinds[t]->one_process || kinds[t]->dense != NULL ||
            !would_do(f, kinds[t], kinds[t]->name, f->pair->consistency, rule->needs))
            continue;
        snprintf(text, WORD_BYTES, "topology %s", kinds[t]->name);
        return text;
    }
    return "topology ps with consistency bsp";
}

static const char *of_filter(const pli_facts *f, const pli_pair_rule *rule, bool losses) {
    const plait_filter *filter = pli_facts_filter(f, rule->of);
    if (filter == NULL) return "";
    return losses ? what_is_lost(filter) : filter->name;
}

static const char *who(const pli_demand *demand, char text[WORD_BYTES]) {
    if (demand == NULL) return "";
    snprintf(text, WORD_BYTES, "%s%s%s", demand->who, demand->name != NULL ? " " : "",
             demand->name != NULL ? demand->name : "");
    return text;
}

static bool is_stdin(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

static const char *word_of(const pli_facts *f, const pli_pair_rule *rule, const char *name, char text[WORD_BYTES]) {
    const pli_pair *p = f->pair;
    if (strcmp(name, "nearest") == 0) return nearest(f, rule, text);
    if (strcmp(name, "who") == 0) return who(pli_facts_demand(f, rule->on), text);
    const struct {
        const char *name, *word;
    } words[] = {
        { "topology", p->topology },
        { "consistency", p->consistency },
        { "policy", f->policy.ops != NULL ? f->policy.ops->name : NULL },
        { "table", p->table != NULL ? p->table : "" },
        { "rule", p->rule },
        { "combine", p->combine },
        { "collective", p->collective },
        { "filter", of_filter(f, rule, false) },
        { "loses", of_filter(f, rule, true) },
        { "replicas", strcmp(name, "replicas") == 0 ? number(p->replicas, text) : NULL },
        { "spares", strcmp(name, "spares") == 0 ? number(p->spares, text) : NULL },
        { "slots", strcmp(name, "slots") == 0 ? number(p->slots, text) : NULL },
        { "group", p->group },
        { "servers", strcmp(name, "servers") == 0 ? number(p->only_servers, text) : NULL },
        { "default", p->by_default ? " (the default)" : "" },
        { "instead", f->above->instead },
        { "optimizer", f->above->optimizer },
        { "model", f->above->model },
        { "of loss", f->above->loss_by_option ? "loss" : "model" },
        { "loss", f->above->loss },
        { "intercept", f->above->intercept },
        { "kernels", f->above->kernels },
        { "cut", f->above->columns ? "columns" : "cut" },
        { "kept", f->above->checkpoint ? "a checkpoint" : "a resumed run" },
        { "pipe", is_stdin(f->above->pipe) ? "the standard input (-)" : f->above->pipe },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, name) == 0) return words[i].word != NULL ? words[i].word : "";
    return name;
}

static void fill_in(const pli_facts *f, const pli_pair_rule *rule, const char *pattern, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    while (*pattern != '\0' && used + 1 < bytes) {
        char         name[24], text[WORD_BYTES];
        const size_t plain = strcspn(pattern, "{");
        used += (size_t)snprintf(out + used, bytes - used, "%.*s", (int)plain, pattern);
        pattern += plain;
        if (*pattern == '\0' || used + 1 >= bytes) return;
        const size_t length = strcspn(pattern, "}");
        snprintf(name, sizeof name, "%.*s", (int)length - 1, pattern + 1);
        used += (size_t)snprintf(out + used, bytes - used, "%s", word_of(f, rule, name, text));
        pattern += length + 1;
    }
}

/* --- the check ---------------------------------------------------------------------------------------------------- */

static bool refuses(const pli_facts *f, const pli_pair_rule *rule) {
    if ((f->on & rule->on) != rule->on || (f->on & rule->off) != 0) return false;
    if ((f->of & rule->of) != rule->of || (f->of & rule->not_of) != 0) return false;
    if ((rule->promise | rule->needs | rule->bars) == 0) return true;
    return (f->promises & rule->promise) != rule->promise || (f->has & rule->needs) != rule->needs ||
           (f->has & rule->bars) != 0;
}

static plait_status tell(const pli_facts *f, const pli_pair_rule *rule, plait_error *err) {
    char what[256], why[256], remedy[256];
    fill_in(f, rule, rule->what, what, sizeof what);
    fill_in(f, rule, rule->why, why, sizeof why);
    fill_in(f, rule, rule->remedy, remedy, sizeof remedy);
    return pli_fail(err, PLAIT_EREFUSED, "%s refused: %s; %s", what, why, remedy);
}

static plait_status check_rules(const pli_facts *f, bool of_tables, plait_error *err) {
    for (const pli_pair_rule *rule = pli_pair_rules(); rule->what != NULL; rule++)
        if (pli_rule_is_of_table(rule) == of_tables && refuses(f, rule)) return tell(f, rule, err);
    return PLAIT_OK;
}

/* What a learner is told if it gives no reason of its own. */
static const char *what_lacks(plait_properties lacking) {
    static const struct {
        plait_properties property;
        const char      *why;
    } all[] = {
        { PLAIT_ONE_COPY, "it needs one copy of its values, but here each worker updates its own mirror" },
        { PLAIT_WHOLE_CLOCKS, "it needs reads that hold all updates of earlier clocks and none of later ones" },
        { PLAIT_BOUNDED_READS, "it needs reads that miss a bounded number of clocks" },
        { PLAIT_OWN_WRITES, "it needs to read all that it has written" },
        { PLAIT_VALUES, "it needs each update applied exactly" },
        { PLAIT_CLOCK_SUMS, "it needs the updates of a clock to be applied together" },
        { PLAIT_MOMENTS, "it needs moments at which its values are whole" },
        { PLAIT_FUNCTIONS, "it needs server functions, which need one owner of each row" },
        { PLAIT_OWNERS, "it needs owners that apply each update separately" },
        { PLAIT_LEAVING, "it needs workers that may leave" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((lacking & all[i].property) != 0) return all[i].why;
    return "it needs a property that this pair does not have";
}

/* Checks what the learner or solver needs of the pair. */
static plait_status check_demand(const pli_facts *f, const pli_demand *demand, plait_error *err) {
    const pli_pair_rule rule = { .needs = demand->needs };
    char                text[WORD_BYTES], name[WORD_BYTES];
    if ((f->has & rule.needs) == rule.needs) return PLAIT_OK;
    const char *take = nearest(f, &rule, text);
    const bool  other_policy = strncmp(take, "consistency ", 12) == 0;
    return pli_fail(err, PLAIT_EREFUSED, "%s with %s %s is refused: %s; the nearest is %s", who(demand, name),
                    other_policy ? "consistency" : "topology", other_policy ? f->pair->consistency : f->pair->topology,
                    demand->why != NULL ? demand->why : what_lacks(rule.needs & ~f->has), strchr(take, ' ') + 1);
}

static plait_status check_table(const pli_facts *f, plait_error *err) {
    PLI_TRY(pli_matrix_check(f, err));
    for (int i = 0; i < PLI_DEMANDS; i++) PLI_TRY(check_demand(f, &f->above->demand[i], err));
    return check_rules(f, true, err);
}

/* Begins a refusal with the table's name if other tables have other pairs. */
static plait_status of_table(const pli_pair *pair, plait_status status, plait_error *err) {
    if (status < 0 && pair->apart) pli_fail_at(err, "table %s", pair->table);
    return status;
}

static plait_status check_kind(const pli_pair *pair, const pli_topology_kind *kind, plait_error *err) {
    pli_facts    facts;
    plait_status status = pli_facts_make(pair, kind, &facts, err);
    if (status < 0) return of_table(pair, status, err);
    status = check_rules(&facts, false, err);
    if (status >= 0) status = of_table(pair, check_table(&facts, err), err);
    pli_facts_free(&facts);
    return status;
}

/* For a topology whose tables travel by one of two others: checks the pair of the one that is meant; if that is not
 * known, it is enough that one of them trains. */
static plait_status check_mixed(const pli_topology_kind *kind, const pli_pair *pair, plait_error *err) {
    const bool dense = pair->fill == PLI_FILL_DENSE;
    pli_pair   of = *pair;
    of.apart = false;
    of.topology = kind->dense->name;
    if (pair->fill == PLI_FILL_ANY && pli_pair_check(&of, NULL) >= 0) return PLAIT_OK;
    if (!dense) of.topology = kind->sparse->name;
    plait_status status = pli_pair_check(&of, err);
    if (status >= 0) return PLAIT_OK;
    if (pair->fill != PLI_FILL_ANY)
        pli_fail_at(err, "under %s a table with %s updates travels by %s", kind->name, dense ? "dense" : "sparse",
                    of.topology);
    return of_table(pair, status, err);
}

plait_status pli_pair_check(const pli_pair *pair, plait_error *err) {
    pli_topology topology;
    plait_status status = pli_topology_make(pair->topology, PLI_FILL_ANY, &topology, err);
    if (status < 0) return of_table(pair, status, err);
    return topology.kind->dense != NULL ? check_mixed(topology.kind, pair, err) : check_kind(pair, topology.kind, err);
}

plait_status pli_job_check(const pli_pair *pair, plait_error *err) {
    const pli_facts facts = pli_facts_of_job(pair);
    return check_rules(&facts, false, err);
}

plait_status pli_spares_check(int32_t spares, int32_t workers, plait_error *err) {
    if (spares >= 0 && (spares == 0 || spares < workers)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "--spares %d of %d worker%s: expected 0 or more, and at least one worker that "
                                       "is not a spare",
                    spares, workers, pli_plural(workers));
}

plait_status pli_slots_check(int32_t slots, int32_t workers, plait_error *err) {
    if (slots >= 0 && (slots == 0 || slots < workers)) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL, "%d slots of %d worker%s: expected 0 or more, and at least one worker that is "
                                       "in from the first",
                    slots, workers, pli_plural(workers));
}

plait_status pli_moves_check(const char *option, int32_t slots, bool revives, plait_error *err) {
    if (slots > 0 && revives)
        return pli_fail(err, PLAIT_EREFUSED,
                        "plait_job_opts.%s with revives is refused: a worker that was started anew does not know where "
                        "shards have moved to; nearest is a job without revives", option);
    if (slots > 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "plait_job_opts.%s with ranks that only serve is refused: all shards stay there; nearest is a "
                        "job without such ranks", option);
    return pli_fail(err, PLAIT_EREFUSED,
                    "plait_job_opts.%s in a job without slots is refused: no shard moves; nearest is "
                    "plait_job_opts.slots", option);
}

plait_status pli_revives_check(bool revives, int32_t slots, const char *transport, bool simulated, bool anew,
                               plait_error *err) {
    if (!revives && anew)
        return pli_fail(err, PLAIT_EREFUSED, "a rank that was started anew joins no job that does not say so; nearest "
                                             "is plait_job_opts.revives");
    if (!revives) return PLAIT_OK;
    if (slots == 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "revives is refused in a job without slots: who returns is away, and nobody says at a clock's "
                        "end who is in; nearest is plait_job_opts.slots");
    if (simulated) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED,
                    "revives over %s is refused: no rank of a running job is started anew there; nearest is sim",
                    transport);
}
