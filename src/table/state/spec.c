/* See spec.h. */
#include "table/state/spec.h"

#include <string.h>

#include "tensor/exact_cells.h"

static plait_status check_shape(const plait_table_opts *opts, plait_error *err) {
    const char *name = opts->name == NULL ? "" : opts->name;
    if (name[0] == '\0' || strlen(name) > PLI_TABLE_NAME_MAX)
        return pli_fail(err, PLAIT_EINVAL, "a table needs a name of 1 to %d bytes", PLI_TABLE_NAME_MAX);
    if (opts->type != PLAIT_F32 && opts->type != PLAIT_F64 && opts->type != PLAIT_I64)
        return pli_fail(err, PLAIT_EINVAL, "table %s: values are float32, float64 or int64, not type %d", name,
                        (int)opts->type);
    if (opts->rows < 0 || opts->cols <= 0)
        return pli_fail(err, PLAIT_EINVAL, "table %s: %lld rows of %lld columns; rows >= 0 and cols > 0 are needed",
                        name, (long long)opts->rows, (long long)opts->cols);
    int64_t rows = opts->rows == 0 ? 1 : opts->rows;
    if (opts->cols > PLI_TABLE_VALUES_MAX / rows)
        return pli_fail(err, PLAIT_EINVAL,
                        "table %s: %lld rows of %lld columns are too large; at most %lld values are possible", name,
                        (long long)opts->rows, (long long)opts->cols, (long long)PLI_TABLE_VALUES_MAX);
    if (opts->shards < 0 || (opts->rows == 0 && opts->shards > 0))
        return pli_fail(err, PLAIT_EINVAL, "table %s: at most %d shards; a dense table may have 1 or more, or 0 for no "
                        "bound, and a sparse one has a shard on every server", name, (int)opts->shards);
    if (opts->rows == 0 && (opts->initial != NULL || opts->penalty != NULL))
        return pli_fail(err, PLAIT_EINVAL, "table %s: a sparse table has no initial values and no penalty factors",
                        name);
    return PLAIT_OK;
}

static void finish(pli_spec *spec) {
    spec->merge = &spec->combine->of[spec->type];
    spec->width = spec->merge->width;
    spec->exact = spec->exact && spec->type != PLAIT_I64 && spec->combine->adds; /* all others are exact anyway */
    spec->sum_width = spec->exact ? pli_cell_bytes(spec->type == PLAIT_F64) : spec->width;
    bool penalised = spec->ruled && (spec->rule.l1 != 0 || spec->rule.l2 != 0);
    spec->lazy = penalised && spec->keyed && spec->rule.ops->catch_up_f32 != NULL;
}

plait_status pli_spec_make(int32_t id, const plait_table_opts *opts, const char *topology, const char *consistency,
                           int64_t batch, const pli_rule_scope *rules, pli_spec *spec_out, plait_error *err) {
    PLI_TRY(check_shape(opts, err));
    pli_spec spec = { .id = id, .type = opts->type, .rows = opts->rows, .cols = opts->cols, .batch = batch,
                      .exact = opts->exact != 0, .sharded = opts->sharded != 0, .most_shards = opts->shards };
    strcpy(spec.name, opts->name);
    if (strlen(consistency) >= sizeof spec.consistency)
        return pli_fail(err, PLAIT_EINVAL,
                        "table %s: consistency '%.20s...' is too long; at most %zu bytes are possible", opts->name,
                        consistency, sizeof spec.consistency - 1);
    strcpy(spec.consistency, consistency);
    const char *filter = opts->filter == NULL ? "" : opts->filter;
    if (strlen(filter) >= sizeof spec.filter)
        return pli_fail(err, PLAIT_EINVAL,
                        "table %s: filters '%.40s...': the list is too long; at most %zu bytes are possible",
                        opts->name, filter, sizeof spec.filter - 1);
    strcpy(spec.filter, filter);
    spec.keyed = pli_fill_of(opts) == PLI_FILL_SPARSE;
    spec.ruled = opts->rule.name != NULL;
    if (spec.ruled && pli_rule_make(&opts->rule, rules, &spec.rule, err) < 0)
        return pli_fail_at(err, "table %s", opts->name);
    if (spec.ruled && spec.type == PLAIT_F64 && spec.rule.ops->apply_f64 == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "table %s: update rule %s has no apply_f64, so its tables must have "
                                             "float32 values",
                        opts->name, spec.rule.ops->name);
    spec.staleness_aware = spec.ruled && opts->rule.staleness_aware != 0;
    PLI_TRY(pli_combine_find(opts->combine, &spec.combine, err));
    if (!spec.ruled && opts->penalty != NULL)
        return pli_fail(err, PLAIT_EINVAL, "table %s: penalty factors need an update rule", opts->name);
    PLI_TRY(pli_topology_make(topology, pli_fill_of(opts), &spec.topology, err));
    finish(&spec);
    *spec_out = spec;
    return PLAIT_OK;
}

pli_spec pli_spec_additive(const pli_spec *spec) {
    pli_spec additive = *spec;
    additive.ruled = additive.staleness_aware = false;
    additive.rule = (plait_rule_numbers){ 0 };
    finish(&additive);
    return additive;
}

void pli_spec_encode(const pli_spec *spec, pli_wire_spec *wire) {
    const plait_rule_numbers *rule = &spec->rule;
    memset(wire, 0, sizeof *wire);
    wire->id = (uint32_t)spec->id;
    wire->type = (uint32_t)spec->type;
    wire->keyed = spec->keyed;
    wire->ruled = spec->ruled;
    wire->staleness_aware = spec->staleness_aware;
    wire->exact = spec->exact;
    wire->sharded = spec->sharded;
    wire->most_shards = (uint32_t)spec->most_shards;
    wire->rows = spec->rows;
    wire->cols = spec->cols;
    wire->batch = spec->batch;
    strcpy(wire->name, spec->name);
    strcpy(wire->topology, spec->topology.text);
    strcpy(wire->consistency, spec->consistency);
    strcpy(wire->combine, spec->combine->name);
    if (!spec->ruled) return;
    wire->schedule = (uint32_t)rule->schedule;
    wire->schedule_clocks = rule->schedule_clocks;
    wire->learning_rate = rule->learning_rate;
    wire->momentum = rule->momentum;
    wire->beta1 = rule->beta1;
    wire->beta2 = rule->beta2;
    wire->epsilon = rule->epsilon;
    wire->ftrl_beta = rule->ftrl_beta;
    wire->l1 = rule->l1;
    wire->l2 = rule->l2;
    strncpy(wire->rule, rule->ops->name, sizeof wire->rule - 1);
}

static plait_status decode_rule(const pli_wire_spec *wire, const pli_rule_scope *rules, plait_rule_numbers *rule,
                                plait_error *err) {
    const plait_rule *ops = pli_rule_find(wire->rule, rules);
    if (ops == NULL || (wire->type == PLAIT_F64 && ops->apply_f64 == NULL) || wire->type == PLAIT_I64 ||
        wire->schedule > PLI_COSINE || strcmp(wire->combine, PLI_COMBINE_DEFAULT) != 0)
        return pli_fail(err, PLAIT_ENAME, "table %s: unknown rule '%s' or schedule", wire->name, wire->rule);
    *rule = (plait_rule_numbers){ .ops = ops,
                                  .learning_rate = wire->learning_rate,
                                  .momentum = wire->momentum,
                                  .beta1 = wire->beta1,
                                  .beta2 = wire->beta2,
                                  .epsilon = wire->epsilon,
                                  .ftrl_beta = wire->ftrl_beta,
                                  .l1 = wire->l1,
                                  .l2 = wire->l2,
                                  .schedule = (int)wire->schedule,
                                  .schedule_clocks = wire->schedule_clocks };
    return PLAIT_OK;
}

static bool is_text(const char *text, size_t bytes) { return memchr(text, '\0', bytes) != NULL; }

plait_status pli_spec_decode(const pli_wire_spec *wire, const pli_rule_scope *rules, int32_t servers,
                             int32_t first_rank, pli_spec *spec_out, plait_error *err) {
    if (!is_text(wire->name, sizeof wire->name) || !is_text(wire->consistency, sizeof wire->consistency) ||
        !is_text(wire->topology, sizeof wire->topology) || !is_text(wire->rule, sizeof wire->rule) ||
        !is_text(wire->combine, sizeof wire->combine))
        return pli_fail(err, PLAIT_EFORMAT, "a table's description is malformed");
    plait_table_opts opts = { .name = wire->name, .type = (plait_type)wire->type, .rows = wire->rows,
                              .cols = wire->cols, .shards = wire->rows == 0 ? 0 : (int32_t)wire->most_shards };
    PLI_TRY(check_shape(&opts, err));
    pli_topology topology;
    if (wire->id > INT32_MAX || wire->most_shards > INT32_MAX || wire->batch <= 0 ||
        pli_topology_make(wire->topology, PLI_FILL_ANY, &topology, err) < 0)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: its description is malformed", wire->name);
    pli_spec spec = { .id = (int32_t)wire->id, .type = opts.type, .rows = wire->rows, .cols = wire->cols,
                      .keyed = wire->rows == 0 || wire->keyed != 0, .ruled = wire->ruled != 0,
                      .staleness_aware = wire->ruled != 0 && wire->staleness_aware != 0, .batch = wire->batch,
                      .exact = wire->exact != 0, .most_shards = (int32_t)wire->most_shards, .topology = topology };
    strcpy(spec.name, wire->name);
    strcpy(spec.consistency, wire->consistency);
    PLI_TRY(pli_combine_find(wire->combine, &spec.combine, err));
    if (spec.combine->replaces && !spec.keyed)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: rows that are replaced, without keys", spec.name);
    if (spec.ruled) PLI_TRY(decode_rule(wire, rules, &spec.rule, err));
    finish(&spec);
    spec.placement =
        pli_placement_make(spec.rows, pli_row_bytes(&spec), topology.kind->one_process ? 1 : spec.most_shards, servers,
                           first_rank);
    *spec_out = spec;
    return PLAIT_OK;
}

uint64_t pli_spec_hash(const pli_spec *spec, const void *initial, const void *penalty) {
    pli_wire_spec wire;
    pli_spec_encode(spec, &wire);
    size_t   bytes = (size_t)(spec->rows * pli_row_bytes(spec));
    uint64_t hash = pli_hash_bytes(&wire, sizeof wire, 1);
    if (spec->filter[0] != '\0') hash = pli_hash_bytes(spec->filter, strlen(spec->filter), hash);
    hash = initial == NULL ? hash : pli_hash_bytes(initial, bytes, hash);
    return penalty == NULL ? hash : pli_hash_bytes(penalty, bytes, hash ^ 2);
}
