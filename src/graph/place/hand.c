/* Placing by hand: a node keeps the rank that the program gave it, and the graph keeps rules for the others. */
#include <plait/place.h>
#include <stdlib.h>
#include <string.h>

#include "graph/place/place.h"

plait_status pli_place_parse(const char *where, int32_t *rank_out, plait_error *err) {
    char *end = NULL;
    long  rank = -1;
    if (strncmp(where, "rank:", 5) == 0 && where[5] >= '0' && where[5] <= '9') rank = strtol(where + 5, &end, 10);
    if (rank < 0 || rank > INT32_MAX || (*end != '\0' && *end != '/'))
        return pli_fail(err, PLAIT_EINVAL, "place '%.40s': expected a rank, such as rank:1 or rank:1/cpu:0", where);
    if (*end == '/' && strcmp(end, "/cpu:0") != 0)
        return pli_fail(err, PLAIT_ENAME, "place '%.40s': there is no device '%.20s'; each rank has one, cpu:0", where,
                        end + 1);
    *rank_out = (int32_t)rank;
    return PLAIT_OK;
}

plait_value plait_graph_place(plait_graph *graph, plait_value value, const char *where) {
    plait_error why = { 0 };
    int32_t     rank;
    if (graph == NULL || value < 0) return PLAIT_NONE;
    if (value >= graph->n_values) return pli_graph_failed(graph, PLAIT_EINVAL, "place: no value of this graph");
    if (where == NULL) return pli_graph_failed(graph, PLAIT_EINVAL, "plait_graph_place: where is NULL");
    if (pli_place_parse(where, &rank, &why) < 0) return pli_graph_failed(graph, why.code, "%s", why.text);
    graph->node[graph->value[value].node].rank = rank;
    return value;
}

int32_t plait_graph_placed(const plait_graph *graph, plait_value value) {
    if (graph == NULL || value < 0 || value >= graph->n_values) return -1;
    return pli_value_node(graph, value)->rank;
}

plait_status plait_graph_place_rule(plait_graph *graph, const plait_place_rule *rule, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, graph));
    PLI_TRY(PLI_GIVEN(error_out, rule));
    const bool two = rule->kind != PLAIT_PLACE_NEVER;
    if (rule->a < 0 || rule->a >= graph->n_values || (two && (rule->b < 0 || rule->b >= graph->n_values)))
        return pli_fail(error_out, PLAIT_EINVAL, "a rule of placement names no value of this graph");
    if (!two && rule->rank < 0)
        return pli_fail(error_out, PLAIT_EINVAL, "a rule of placement: there is no rank %d", rule->rank);
    if (!pli_grow((void **)&graph->place_rule, &graph->place_rule_capacity, graph->n_place_rules + 1,
                  sizeof *graph->place_rule))
        return pli_fail(error_out, PLAIT_ENOMEM, "no memory for a rule of placement");
    graph->place_rule[graph->n_place_rules++] = *rule;
    return PLAIT_OK;
}

plait_status plait_graph_place_memory(plait_graph *graph, int32_t rank, uint64_t bytes, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, graph));
    if (rank < 0 || rank >= PLI_PLACE_RANKS_MAX)
        return pli_fail(error_out, PLAIT_EINVAL, "memory of rank %d: a placement has at most %d ranks", rank,
                        PLI_PLACE_RANKS_MAX);
    if (!pli_grow((void **)&graph->place_memory, &graph->place_memory_capacity, (int64_t)rank + 1,
                  sizeof *graph->place_memory))
        return pli_fail(error_out, PLAIT_ENOMEM, "no memory for the ranks' memory");
    while (graph->n_place_memory <= rank) graph->place_memory[graph->n_place_memory++] = 0;
    graph->place_memory[rank] = bytes;
    return PLAIT_OK;
}
