/* Placing by hand: a node keeps the rank that the program gave it. */
#include <plait/place.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

plait_value plait_graph_place(plait_graph *graph, plait_value value, const char *where) {
    if (graph == NULL || value < 0) return PLAIT_NONE;
    if (value >= graph->n_values) return pli_graph_failed(graph, PLAIT_EINVAL, "place: no value of this graph");
    if (where == NULL) return pli_graph_failed(graph, PLAIT_EINVAL, "plait_graph_place: where is NULL");
    char *end = NULL;
    long  rank = -1;
    if (strncmp(where, "rank:", 5) == 0 && where[5] >= '0' && where[5] <= '9') rank = strtol(where + 5, &end, 10);
    if (rank < 0 || rank > INT32_MAX || (*end != '\0' && *end != '/'))
        return pli_graph_failed(graph, PLAIT_EINVAL, "place '%.40s': expected a rank, such as rank:1 or rank:1/cpu:0",
                                where);
    if (*end == '/' && strcmp(end, "/cpu:0") != 0)
        return pli_graph_failed(graph, PLAIT_ENAME,
                                "place '%.40s': there is no device '%.20s'; each rank has one, cpu:0", where, end + 1);
    graph->node[graph->value[value].node].rank = (int32_t)rank;
    return value;
}

int32_t plait_graph_placed(const plait_graph *graph, plait_value value) {
    if (graph == NULL || value < 0 || value >= graph->n_values) return -1;
    return pli_value_node(graph, value)->rank;
}
