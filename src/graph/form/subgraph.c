/* Reads a graph file's subgraphs: { "aux": ["h2", "w2"], ... } (docs/graph.md). */
#include "graph/subgraph.h"
#include "graph/form/form.h"

static plait_status read_one(plait_graph *g, const char *name, const json_t *list, plait_error *err) {
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || n > INT32_MAX) return pli_fail(err, PLAIT_EFORMAT, "expected an array of nodes' names");
    plait_value *value = pli_array(n, sizeof *value);
    plait_status status = value != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for a subgraph");
    for (size_t i = 0; status == PLAIT_OK && i < n; i++)
        status = pli_form_value(g, json_string_value(json_array_get(list, i)), &value[i], err);
    if (status == PLAIT_OK) status = plait_graph_subgraph(g, name, value, (int32_t)n, err);
    pli_free(value);
    return status;
}

plait_status pli_form_subgraphs(plait_graph *graph, const json_t *subgraphs, plait_error *err) {
    const char *key;
    json_t     *value;
    plait_error own;
    if (err == NULL) err = &own;
    if (!json_is_object(subgraphs)) return pli_fail(err, PLAIT_EFORMAT, "subgraphs: expected an object of lists");
    json_object_foreach((json_t *)(uintptr_t)subgraphs, key,
                        value) if (read_one(graph, key, value, err) < 0) return pli_fail_at(err, "subgraph '%.60s'",
                                                                                            key);
    return PLAIT_OK;
}
