/* Says when a setting is on. See facts.h. */
#include "table/pairs/facts.h"

#include <string.h>

#include "optim/optim.h"

static bool is_lossy(const plait_filter *filter) { return filter->loss != PLAIT_EXACT; }
static bool skips(const plait_filter *filter) { return filter->loss == PLAIT_SKIPPED; }
static bool changes(const plait_filter *filter) {
    return is_lossy(filter) || filter->values.encode != NULL || filter->rows.choose != NULL;
}

static const struct {
    uint64_t of;
    bool (*is)(const plait_filter *filter);
} of_filters[] = {
    { PLI_OF(LOSSY), is_lossy },
    { PLI_OF(SKIPPING), skips },
    { PLI_OF(CHANGING), changes },
};
enum { OF_FILTERS = sizeof of_filters / sizeof *of_filters };

const plait_filter *pli_facts_filter(const pli_facts *f, uint64_t of) {
    for (int k = OF_FILTERS - 1; k >= 0; k--) /* the narrowest first */
        for (int32_t i = 0; (of & of_filters[k].of) != 0 && i < f->filters.n; i++)
            if (of_filters[k].is(f->filters.filter[i])) return f->filters.filter[i];
    return NULL;
}

static uint64_t filters_of(const pli_facts *f) {
    uint64_t of = f->filters.n > 0 ? PLI_OF(FILTERS) : 0;
    for (int k = 0; k < OF_FILTERS; k++)
        if (pli_facts_filter(f, of_filters[k].of) != NULL) of |= of_filters[k].of;
    return of;
}

static uint64_t demand_on(const pli_demand *demand) {
    static const struct {
        plait_traits trait;
        uint64_t     on;
    } all[] = {
        { PLAIT_ALL_ROWS, PLI_ON(ALL_ROWS) },
        { PLAIT_OWN_STEPS, PLI_ON(OWN_STEPS) },
        { PLAIT_OWN_END, PLI_ON(OWN_END) },
        { PLAIT_COMPARES, PLI_ON(COMPARES) },
        { PLAIT_SMOOTH, PLI_ON(SMOOTH) },
        { PLAIT_HOLDS_SHARE, PLI_ON(SHARE) },
        { PLAIT_IN_SEQUENCE, PLI_ON(SEQUENCE) },
        { PLAIT_SUMS_ANEW, PLI_ON(ANEW) },
    };
    uint64_t on = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if ((demand->traits & all[i].trait) != 0) on |= all[i].on;
    return on;
}

const pli_demand *pli_facts_demand(const pli_facts *f, uint64_t on) {
    for (int i = 0; i < PLI_DEMANDS; i++)
        if ((demand_on(&f->above->demand[i]) & on) != 0) return &f->above->demand[i];
    return NULL;
}

static uint64_t bit(bool is, uint64_t on) { return is ? on : 0; }

static uint64_t model_on(const pli_above *a) {
    return demand_on(&a->demand[0]) | demand_on(&a->demand[1]) |
           bit(a->net, PLI_ON(NET)) | bit(a->no_intercept, PLI_ON(NO_INTERCEPT)) |
           bit(a->kernels != NULL, PLI_ON(KERNELS)) | bit(a->kinked, PLI_ON(KINKED)) |
           bit(a->dropout, PLI_ON(DROPOUT)) | bit(a->adds, PLI_ON(ADDS)) | bit(a->one_pass, PLI_ON(ONE_PASS)) |
           bit(a->cut, PLI_ON(CUT)) | bit(a->columns, PLI_ON(COLUMNS)) |
           bit(a->micro_batches, PLI_ON(MICRO_BATCHES)) | bit(a->curve, PLI_ON(CURVE)) |
           bit(a->intercept != NULL, PLI_ON(INTERCEPT)) | bit(a->unjudged, PLI_ON(UNJUDGED)) |
           bit(a->classless, PLI_ON(CLASSLESS)) | bit(a->each_update, PLI_ON(EACH_UPDATE)) |
           bit(a->two_passes, PLI_ON(TWO_PASSES)) | bit(a->whole_passes, PLI_ON(WHOLE_PASSES)) |
           bit(a->net_options, PLI_ON(NET_OPTIONS));
}

static uint64_t above_on(const pli_above *a) {
    return model_on(a) | bit(a->checkpoint || a->resume, PLI_ON(KEPT)) | bit(a->checkpoint, PLI_ON(CHECKPOINT)) |
           bit(a->resume, PLI_ON(RESUME)) | bit(a->balanced, PLI_ON(BALANCED)) |
           bit(a->single, PLI_ON(SINGLE)) | bit(a->streamed, PLI_ON(STREAM)) | bit(a->standard_input, PLI_ON(STDIN)) |
           bit(a->pipe != NULL, PLI_ON(PIPE)) | bit(a->processes, PLI_ON(PROCESSES)) |
           bit(a->patience, PLI_ON(PATIENCE)) | bit(a->schedule, PLI_ON(SCHEDULE)) |
           bit(a->class_balance, PLI_ON(CLASS_BALANCE)) | bit(a->optimizer != NULL, PLI_ON(OPTIMIZER)) |
           bit(a->rate, PLI_ON(RATE)) | bit(a->penalty, PLI_ON(PENALTY)) | bit(a->validation, PLI_ON(VALIDATION)) |
           bit(a->start, PLI_ON(START)) | bit(a->epochs, PLI_ON(EPOCHS)) | bit(a->batch, PLI_ON(BATCH));
}

/* Does the named collective ignore hosts? If ranks share memory, hosts do not matter. */
static bool is_flat(const pli_pair *p) {
    return !p->one_process && p->collective != NULL && strcmp(p->collective, "hierarchical") != 0;
}

static uint64_t job_on(const pli_pair *p) {
    return bit(p->scope != NULL && p->scope->setting.backup > 0, PLI_ON(BACKUPS)) |
           bit(p->replicas > 1, PLI_ON(REPLICAS)) |
           bit(p->replicas > 3, PLI_ON(MORE_REPLICAS)) |
           bit(p->replicas == 3 && p->servers + p->spares < 3, PLI_ON(FEW_RANKS)) |
           bit(p->spares > 0, PLI_ON(SPARES)) | bit(p->slots > 0, PLI_ON(SLOTS)) |
           bit(p->aggregates, PLI_ON(HOST_SUMS)) | bit(p->logged, PLI_ON(EVENTS)) |
           bit(p->servers == 1, PLI_ON(ONE_SERVER)) | bit(p->only_servers > 0, PLI_ON(SERVERS)) |
           bit(is_flat(p), PLI_ON(FLAT_SUMS));
}

static bool is_mirrored(const pli_facts *f) { return !f->kind->on_servers && (f->has & PLAIT_BY_SUMS) != 0; }

static uint64_t table_of(const pli_facts *f) {
    const pli_pair   *p = f->pair;
    const plait_rule *rule = p->rule != NULL ? pli_rule_find(p->rule, p->rules) : NULL;
    const bool        averages = pli_pair_averages(f->kind, p->consistency, p->scope);
    return bit(p->staleness_aware, PLI_OF(STALE_STEPS)) | bit(p->late, PLI_OF(LATE)) |
           bit(p->group != NULL, PLI_OF(GROUP)) | bit(p->exact, PLI_OF(EXACT)) |
           bit(p->sharded, PLI_OF(SHARDED)) | bit(p->rule == NULL, PLI_OF(ADDITIVE)) |
           bit(p->rule != NULL, PLI_OF(RULED)) | bit(p->type == PLAIT_I64, PLI_OF(INTEGERS)) |
           bit(!f->combine->adds, PLI_OF(PICKS)) | bit(f->combine->replaces, PLI_OF(REPLACES)) |
           bit(f->policy.ops->worker.on_clock != NULL, PLI_OF(GATHERS)) |
           bit(f->policy.ops->reads_norms != 0, PLI_OF(NORMS)) |
           bit(p->rule != NULL && averages, PLI_OF(AVERAGED)) | bit(rule != NULL && rule->derives, PLI_OF(DERIVES)) |
           bit(p->fill == PLI_FILL_SPARSE, PLI_OF(BY_KEY)) | bit(p->grows, PLI_OF(GROWS)) |
           bit(f->kind->one_process, PLI_OF(SHARED)) | bit(f->kind->on_servers, PLI_OF(SERVED)) |
           bit(f->kind->averages, PLI_OF(NEIGHBOURS)) | bit(is_mirrored(f), PLI_OF(MIRRORS));
}

pli_facts pli_facts_of_job(const pli_pair *pair) {
    static const pli_above nothing;
    const pli_above       *above = pair->above != NULL ? pair->above : &nothing;
    return (pli_facts){ .pair = pair, .above = above, .on = job_on(pair) | above_on(above) };
}

plait_status pli_facts_make(const pli_pair *pair, const pli_topology_kind *kind, pli_facts *facts_out,
                            plait_error *err) {
    pli_facts *f = facts_out;
    *f = pli_facts_of_job(pair);
    f->kind = kind;
    PLI_TRY(pli_filters_read(pair->filter, pair->filters, &f->filters, err));
    PLI_TRY(pli_combine_find(pair->combine, &f->combine, err));
    PLI_TRY(pli_policy_make(pair->consistency, pair->scope, &f->policy, err));
    f->promises = pli_policy_promises(&f->policy);
    f->has = pli_policy_properties(kind, &f->policy);
    f->of = table_of(f) | filters_of(f);
    return PLAIT_OK;
}

void pli_facts_free(pli_facts *facts) { pli_policy_destroy(&facts->policy); }
