/* The texts for values, nodes and shapes in errors, pictures, traces and files. A graph keeps a list of its few names;
 * a caller who needs the names of many values has the list inverted once. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

const char *pli_value_name(const plait_graph *graph, plait_value value) {
    for (int64_t i = 0; i < graph->n_named; i++)
        if (graph->named[i].value == value) return graph->named[i].name;
    return NULL;
}

const char **pli_value_names(const plait_graph *graph) {
    const char **names = pli_calloc((size_t)graph->n_values, sizeof *names);
    for (int64_t i = 0; names != NULL && i < graph->n_named; i++)
        if (names[graph->named[i].value] == NULL) names[graph->named[i].value] = graph->named[i].name;
    return names;
}

void pli_value_text_as(const plait_graph *graph, plait_value value, const char *name, char text[80]) {
    const char *op = pli_value_node(graph, value)->op->name;
    if (name != NULL)
        snprintf(text, 80, "%.24s '%.40s'", op, name);
    else
        snprintf(text, 80, "%.40s#%d", op, graph->value[value].node);
}

void pli_value_text(const plait_graph *graph, plait_value value, char text[80]) {
    pli_value_text_as(graph, value, pli_value_name(graph, value), text);
}

void pli_node_name(const plait_graph *graph, int64_t node, char text[80]) {
    size_t n = (size_t)snprintf(text, 80, "%.40s_%lld", graph->node[node].op->name, (long long)node);
    for (; plait_graph_find(graph, text) >= 0 && n + 1 < 80; text[n] = '\0') text[n++] = '_';
}

void pli_shape_text(const plait_tensor *t, char text[128]) {
    size_t at = (size_t)snprintf(text, 128, "%s[", plait_type_name(t->type));
    for (int32_t i = 0; i < t->shape.rank && at < 120; i++) {
        const char *comma = i > 0 ? ", " : "";
        if (t->shape.dim[i] < 0)
            at += (size_t)snprintf(text + at, 128 - at, "%s?", comma);
        else
            at += (size_t)snprintf(text + at, 128 - at, "%s%lld", comma, (long long)t->shape.dim[i]);
    }
    if (at < 126) snprintf(text + at, 128 - at, "]");
}
