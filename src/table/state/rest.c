/* What filters have kept of this worker's updates, whichever way these travel. See rest.h. */
#include "table/state/rest.h"

#include "table/table.h"

bool pli_rest_is_kept(const plait_table *table) {
    const pli_filter_scope scope = pli_layout_filters(&table->job->layout);
    pli_filters_list       list;
    return table->ops->rest_take != NULL && table->spec.filter[0] != '\0' &&
           pli_filters_read(table->spec.filter, &scope, &list, NULL) >= 0 &&
           (pli_filters_have(&list, PLAIT_ROUNDED) || pli_filters_have(&list, PLAIT_KEPT_BACK));
}

plait_status pli_rest_take(plait_table *table, pli_rest *rest_out, plait_error *err) {
    *rest_out = (pli_rest){ 0 };
    plait_status status = table->ops->rest_take != NULL ? table->ops->rest_take(table, rest_out) : PLAIT_OK;
    if (status >= 0) return PLAIT_OK;
    pli_rest_free(rest_out);
    return pli_fail(err, status, "table %s: no memory for what its filters have kept", table->spec.name);
}

void pli_rest_free(pli_rest *rest) {
    pli_free(rest->keys);
    pli_free(rest->values);
    *rest = (pli_rest){ 0 };
}

plait_status pli_rest_add(plait_table *table, const pli_rest *rest, plait_error *err) {
    if (table->ops->rest_add == NULL) return PLAIT_OK;
    const plait_status status = table->ops->rest_add(table, rest);
    if (status >= 0) return PLAIT_OK;
    return pli_fail(err, status,
                    status == PLAIT_ENOMEM ? "table %s: no memory for what its filters had kept"
                                           : "table %s: what its filters had kept is of another shape or type",
                    table->spec.name);
}

void pli_rest_forget(plait_table *table) {
    if (table->ops->rest_forget != NULL) table->ops->rest_forget(table);
}
