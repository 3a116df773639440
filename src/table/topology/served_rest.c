/* What filters have kept of a worker's updates to a table on servers: each of the worker's ends of a shard's messages
 * has its own, and a checkpoint gets one table's (state/rest.h). */
#include <string.h>

#include "table/state/rest.h"
#include "table/state/values.h"
#include "table/table.h"

static bool is_kept(const pli_residual *rest) { return rest->values != NULL && (!rest->keyed || rest->set.n > 0); }

/* Of a sparse table the shards' rows follow one another. */
static plait_status copy_rest(const pli_client_table *table, pli_rest *rest) {
    const pli_spec *spec = &table->spec;
    int64_t         n = 0, at = 0, row_bytes = 0;
    for (int32_t i = 0; table->chain != NULL && i < spec->placement.shards; i++) {
        const pli_residual *of = &table->chain[i].residual;
        if (!is_kept(of)) continue;
        n += spec->keyed ? of->set.n : 0;
        row_bytes = of->row_bytes;
        *rest = (pli_rest){ .type = of->type, .n = spec->keyed ? n : spec->rows, .cols = of->cols };
    }
    if (rest->n == 0) return PLAIT_OK;
    rest->values = pli_calloc((size_t)rest->n, (size_t)row_bytes);
    if (spec->keyed) rest->keys = pli_array((size_t)rest->n, sizeof *rest->keys);
    if (rest->values == NULL || (spec->keyed && rest->keys == NULL)) return PLAIT_ENOMEM;
    for (int32_t i = 0; i < spec->placement.shards; i++) {
        const pli_residual *of = &table->chain[i].residual;
        const int64_t       rows = spec->keyed ? of->set.n : of->rows;
        if (!is_kept(of)) continue;
        memcpy(pli_at(rest->values, (spec->keyed ? at : of->first) * row_bytes), of->values,
               (size_t)(rows * row_bytes));
        if (spec->keyed) memcpy(rest->keys + at, of->set.keys, (size_t)rows * sizeof *rest->keys);
        at += rows;
    }
    return PLAIT_OK;
}

static plait_status add_rows(pli_client_table *table, const pli_rest *rest, int64_t row_bytes) {
    for (int64_t i = 0; i < rest->n; i++) {
        const int32_t    shard = pli_placement_shard_of(&table->spec.placement, rest->keys[i]);
        const plait_part part = { .n = 1, .keys = rest->keys + i, .type = rest->type, .cols = rest->cols };
        PLI_TRY(pli_residual_add(&table->chain[shard].residual, &part, pli_at(rest->values, i * row_bytes)));
    }
    return PLAIT_OK;
}

static plait_status add_rest(pli_client_table *table, const pli_rest *rest) {
    const pli_spec *spec = &table->spec;
    if (table->chain == NULL || spec->placement.shards == 0 || !table->chain[0].feedback) return PLAIT_OK;
    const pli_residual *first = &table->chain[0].residual;
    if (rest->type != first->type || rest->cols != first->cols || (!spec->keyed && rest->n != spec->rows))
        return PLAIT_EMISMATCH;
    if (rest->values == NULL) return PLAIT_OK;
    if (spec->keyed) return add_rows(table, rest, first->row_bytes);
    for (int32_t i = 0; i < spec->placement.shards; i++) {
        pli_residual    *of = &table->chain[i].residual;
        const plait_part part = { .n = of->rows, .first = of->first, .type = of->type, .cols = of->cols };
        PLI_TRY(pli_residual_add(of, &part, pli_at(rest->values, of->first * of->row_bytes)));
    }
    return PLAIT_OK;
}

/* In the machine: takes what is kept, adds to it, or (both NULL) forgets it. */
static plait_status enter(plait_table *table, pli_rest *taken, const pli_rest *added) {
    pli_client_table *served = pli_served_of(table);
    plait_status      status = PLAIT_OK;
    uint64_t          now_ns;
    pli_out           out;
    pli_port_enter(table->job->client_port, &now_ns, &out);
    if (taken != NULL) status = copy_rest(served, taken);
    else if (added != NULL) status = add_rest(served, added);
    else pli_client_forget_rest(served);
    pli_port_leave(table->job->client_port, &out);
    return status;
}

plait_status pli_served_rest_take(plait_table *table, pli_rest *rest_out) { return enter(table, rest_out, NULL); }

plait_status pli_served_rest_add(plait_table *table, const pli_rest *rest) { return enter(table, NULL, rest); }

void pli_served_rest_forget(plait_table *table) { (void)enter(table, NULL, NULL); }
