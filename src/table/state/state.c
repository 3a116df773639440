/* What a table's state consists of: its arrays, their names, and which worker takes which rows. See state.h. */
#include "table/state/state.h"

#include <stdio.h>

#include "table/table.h"

plait_status pli_state_check(const plait_table *table, plait_error *err) {
    const pli_spec *spec = &table->spec;
    const char     *nearest = "--optimizer-state whole", *why = NULL;
    if (spec->sharded) why = "its rule's state lies in slices";
    else if (table->ops->no_capture != NULL) why = table->ops->no_capture(table, &nearest);
    if (why == NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_EREFUSED, "a checkpoint of table %s under %s x %s is refused: %s; nearest is %s",
                    spec->name, spec->topology.text, spec->consistency, why, nearest);
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

void pli_state_share(const plait_comm *comm, int64_t rows, int64_t *first_out, int64_t *n_out) {
    int32_t me, workers;
    pli_comm_living(comm, &me, &workers);
    *first_out = rows / workers * me + (me < rows % workers ? me : rows % workers);
    *n_out = rows / workers + (me < rows % workers);
}
