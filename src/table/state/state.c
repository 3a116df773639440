/* What a table's state consists of: its arrays, their names, and which worker takes which rows. See state.h. */
#include "table/state/state.h"

#include <stdio.h>

#include "table/pairs/pairs.h"
#include "table/table.h"

plait_status pli_state_check(const plait_table *table, plait_error *err) {
    const pli_spec        *spec = &table->spec;
    const plait_job       *job = table->job;
    const pli_scope        scope = pli_layout_scope(&job->layout);
    const pli_filter_scope filters = pli_layout_filters(&job->layout);
    const pli_rule_scope   rules = pli_layout_rules(&job->layout);
    const pli_above        above = { .checkpoint = true };
    return pli_pair_check(&(pli_pair){ .topology = spec->topology.text,
                                       .consistency = spec->consistency,
                                       .table = spec->name,
                                       .group = job->group != NULL ? plait_group_name(job->group) : NULL,
                                       .scope = &scope,
                                       .one_process = plait_comm_one_process(job->comm) != 0,
                                       .rule = spec->ruled ? spec->rule.ops->name : NULL,
                                       .rules = &rules,
                                       .sharded = spec->sharded,
                                       .filter = spec->filter,
                                       .filters = &filters,
                                       .above = &above },
                          err);
}

int32_t pli_state_arrays(const plait_table *table, int32_t arrays[PLI_STATE_ARRAYS]) {
    int32_t n = 0;
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++)
        if (pli_state_row_bytes(&table->spec, a) > 0) arrays[n++] = a;
    return n;
}

const char *pli_state_name(const plait_table *table, int32_t array, char text[64]) {
    const plait_rule *rule = table->spec.rule.ops;
    const int32_t     slot = array - PLI_STATE_SLOT;
    if (array == PLI_STATE_VALUES) return "values";
    if (array == PLI_STATE_PAID) return "paid";
    if (array == PLI_STATE_KEYS) return "keys";
    if (rule->slot_name[slot] != NULL)
        snprintf(text, 64, "slot.%.40s", rule->slot_name[slot]);
    else
        snprintf(text, 64, "slot.%d", (int)slot);
    return text;
}

int64_t pli_state_bytes(const plait_table *table, int32_t array, plait_type *type_out) {
    *type_out = array >= PLI_STATE_PAID ? PLAIT_I64 : table->spec.type;
    return pli_state_row_bytes(&table->spec, array);
}

bool pli_state_is_copied(const plait_table *table) { return table->ops->copy != NULL; }

/* A worker's place among those of the job's workers that live: what a dead one would put back, others do. */
static void living(const plait_job *job, int32_t me, int32_t *place_out, int32_t *n_out) {
    *place_out = me;
    *n_out = job->layout.workers;
    for (int32_t w = 0; w < job->layout.workers; w++) {
        if (!pli_job_is_absent(job, w)) continue;
        *place_out -= w < me;
        --*n_out;
    }
}

bool pli_state_leads(const plait_table *table) {
    int32_t place, n;
    living(table->job, pli_job_me(table->job), &place, &n);
    return place == 0;
}

void pli_state_share(const plait_table *table, int64_t rows, int64_t *first_out, int64_t *n_out) {
    pli_state_share_of(table, pli_job_me(table->job), rows, first_out, n_out);
}

void pli_state_share_of(const plait_table *table, int32_t worker, int64_t rows, int64_t *first_out, int64_t *n_out) {
    int32_t place, workers;
    living(table->job, worker, &place, &workers);
    *first_out = rows / workers * place + (place < rows % workers ? place : rows % workers);
    *n_out = rows / workers + (place < rows % workers);
}
