/* Writes a graph in Plait's JSON form, one node a line, in the graph's order. A value without a name gets a name made
 * of its op and number. */
#include <stdio.h>
#include <string.h>

#include "graph/form/form.h"
#include "graph/subgraph.h"

/* The names by which nodes refer to each other's outputs. */
typedef struct name_list {
    const char **own; /* [n_nodes] the name given to output 0; NULL: none */
} name_list;

static void add_name(const plait_graph *g, const name_list *names, int32_t node, const char *key, pli_text *text) {
    char        made[80];
    const char *name = names->own[node];
    if (name == NULL) {
        pli_node_name(g, node, made);
        name = made;
    }
    pli_json_text(text, key, name);
}

/* "add", or ["split", 1] of an output that is not the first. */
static void add_reference(const plait_graph *g, const name_list *names, plait_value v, const char *key,
                          pli_text *text) {
    const int32_t node = g->value[v].node, output = v - g->node[node].value;
    if (output == 0) {
        add_name(g, names, node, key, text);
        return;
    }
    pli_json_list(text, key);
    add_name(g, names, node, NULL, text);
    pli_json_i64(text, NULL, output);
    pli_json_list_end(text);
}

static bool is_preset(const plait_attr *attr, const plait_attr *preset) {
    switch (attr->kind) {
    case PLAIT_ATTR_INT:
    case PLAIT_ATTR_TYPE: return attr->u.i == preset->u.i;
    case PLAIT_ATTR_FLOAT: return memcmp(&attr->u.f, &preset->u.f, sizeof attr->u.f) == 0;
    case PLAIT_ATTR_INTS: return attr->n == 0 && preset->n == 0;
    case PLAIT_ATTR_TEXT: return preset->u.text != NULL && strcmp(attr->u.text, preset->u.text) == 0;
    case PLAIT_ATTR_TENSOR: return false;
    }
    return false;
}

static void add_tensor(const plait_tensor *t, const char *values, pli_text *text) {
    pli_json_text(text, "type", plait_type_name(t->type));
    pli_form_add_shape(text, "shape", &t->shape);
    if (t->data != NULL) pli_form_add_values(text, values, t);
}

static void add_attr(const plait_attr *attr, pli_text *text) {
    switch (attr->kind) {
    case PLAIT_ATTR_INT: pli_json_i64(text, attr->name, attr->u.i); break;
    case PLAIT_ATTR_FLOAT: pli_form_add_f64(text, attr->name, attr->u.f); break;
    case PLAIT_ATTR_TEXT: pli_json_text(text, attr->name, attr->u.text); break;
    case PLAIT_ATTR_TYPE: pli_json_text(text, attr->name, plait_type_name((plait_type)attr->u.i)); break;
    case PLAIT_ATTR_INTS:
        pli_json_list(text, attr->name);
        for (int32_t i = 0; i < attr->n; i++) pli_json_i64(text, NULL, attr->u.ints[i]);
        pli_json_list_end(text);
        break;
    case PLAIT_ATTR_TENSOR:
        pli_json_object(text, attr->name);
        add_tensor(attr->u.tensor, "values", text);
        pli_json_end(text);
        break;
    }
}

static void add_op(const plait_graph *g, const name_list *names, const pli_node *node, pli_text *text) {
    bool any = false;
    if (node->n_inputs > 0) pli_json_list(text, "inputs");
    for (int32_t k = 0; k < node->n_inputs; k++)
        add_reference(g, names, g->input[node->input + k], NULL, text);
    if (node->n_inputs > 0) pli_json_list_end(text);
    for (int32_t k = 0; k < node->op->n_attrs; k++) {
        const plait_attr *attr = &g->attr[node->attr + k];
        if (!node->op->attrs[k].required && is_preset(attr, &node->op->attrs[k].preset)) continue;
        if (!any) pli_json_object(text, "attrs");
        add_attr(attr, text);
        any = true;
    }
    if (any) pli_json_end(text);
}

static void add_node(const plait_graph *g, const name_list *names, int32_t i, bool values, pli_text *text) {
    const pli_node *node = &g->node[i];
    const char     *op = node->op->name;
    pli_text_add(text, "  ");
    pli_json_begin(text);
    add_name(g, names, i, "name", text);
    pli_json_text(text, "op", op);
    if (strcmp(op, "placeholder") == 0 || strcmp(op, "variable") == 0 || strcmp(op, "constant") == 0) {
        const bool   is_constant = op[0] == 'c';
        plait_tensor t = pli_value_tensor(g, node->value);
        if (op[0] == 'v' && values) t.data = g->attr[node->attr + 1].u.tensor->data;
        if (is_constant) t.data = g->attr[node->attr].u.tensor->data;
        add_tensor(&t, is_constant ? "values" : "initial", text);
    } else {
        add_op(g, names, node, text);
    }
    pli_json_end(text);
}

/* The first name of an output 0 is its node's name; all others are listed under "outputs", on a line of their own. */
static void add_outputs(const plait_graph *g, const name_list *names, pli_text *text) {
    pli_text outputs = { 0 };
    for (int64_t i = 0; i < g->n_named; i++) {
        const plait_value v = g->named[i].value;
        const int32_t     node = g->value[v].node;
        if (g->node[node].value == v && names->own[node] == g->named[i].name) continue;
        if (outputs.length == 0) pli_json_begin(&outputs);
        add_reference(g, names, v, g->named[i].name, &outputs);
    }
    if (outputs.length > 0) {
        pli_json_end(&outputs);
        pli_text_add(text, ",\n \"outputs\": ");
        pli_text_add_bytes(text, outputs.data, outputs.length);
    }
    text->failed = text->failed || outputs.failed;
    pli_text_free(&outputs);
}

/* --- places ------------------------------------------------------------------------------------------------------- */

static void add_places(const plait_graph *g, const name_list *names, pli_text *text) {
    bool any = false;
    char where[32];
    for (int32_t i = 0; i < g->n_nodes; i++) {
        if (g->node[i].rank < 0) continue;
        if (!any) pli_json_object(text, "nodes");
        any = true;
        snprintf(where, sizeof where, "rank:%d/cpu:0", g->node[i].rank);
        char        made[80];
        const char *name = names->own[i];
        if (name == NULL) pli_node_name(g, i, made);
        pli_json_text(text, name != NULL ? name : made, where);
    }
    if (any) pli_json_end(text);
}

static void add_rules(const plait_graph *g, const name_list *names, plait_place_rule_kind kind, const char *key,
                      pli_text *text) {
    bool any = false;
    char where[32];
    for (int64_t i = 0; i < g->n_place_rules; i++) {
        const plait_place_rule *r = &g->place_rule[i];
        if (r->kind != kind) continue;
        if (!any) pli_json_list(text, key);
        any = true;
        pli_json_list(text, NULL);
        add_name(g, names, g->value[r->a].node, NULL, text);
        snprintf(where, sizeof where, "rank:%d", r->rank);
        if (kind == PLAIT_PLACE_NEVER)
            pli_json_text(text, NULL, where);
        else
            add_name(g, names, g->value[r->b].node, NULL, text);
        pli_json_list_end(text);
    }
    if (any) pli_json_list_end(text);
}

static void add_memory(const plait_graph *g, pli_text *text) {
    char where[32];
    bool any = false;
    for (int64_t r = 0; r < g->n_place_memory; r++) {
        if (g->place_memory[r] == 0) continue;
        if (!any) pli_json_object(text, "memory");
        any = true;
        snprintf(where, sizeof where, "rank:%lld", (long long)r);
        pli_json_i64(text, where, (int64_t)(g->place_memory[r] < INT64_MAX ? g->place_memory[r] : INT64_MAX));
    }
    if (any) pli_json_end(text);
}

static bool has_place(const plait_graph *g) {
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->node[i].rank >= 0) return true;
    for (int64_t r = 0; r < g->n_place_memory; r++)
        if (g->place_memory[r] > 0) return true;
    return g->n_place_rules > 0;
}

static void add_subgraphs(const plait_graph *g, const name_list *names, pli_text *text) {
    if (g->n_subgraphs == 0) return;
    pli_text sets = { 0 };
    pli_json_begin(&sets);
    for (int64_t s = 0; s < g->n_subgraphs; s++) {
        pli_json_list(&sets, g->subgraph[s].name);
        for (int64_t i = 0; i < g->subgraph[s].n; i++) add_name(g, names, g->subgraph[s].node[i], NULL, &sets);
        pli_json_list_end(&sets);
    }
    pli_json_end(&sets);
    pli_text_add(text, ",\n \"subgraphs\": ");
    pli_text_add_bytes(text, sets.data, sets.length);
    text->failed = text->failed || sets.failed;
    pli_text_free(&sets);
}

/* What place.c reads. */
static void add_place(const plait_graph *g, const name_list *names, pli_text *text) {
    if (!has_place(g)) return;
    pli_text place = { 0 };
    pli_json_begin(&place);
    add_places(g, names, &place);
    add_rules(g, names, PLAIT_PLACE_TOGETHER, "together", &place);
    add_rules(g, names, PLAIT_PLACE_APART, "apart", &place);
    add_rules(g, names, PLAIT_PLACE_NEVER, "forbid", &place);
    add_memory(g, &place);
    pli_json_end(&place);
    pli_text_add(text, ",\n \"place\": ");
    pli_text_add_bytes(text, place.data, place.length);
    text->failed = text->failed || place.failed;
    pli_text_free(&place);
}

plait_status pli_form_to_json(const plait_graph *g, bool values, pli_text *text, plait_error *err) {
    PLI_TRY(plait_graph_check(g, err));
    name_list names = { pli_calloc((size_t)g->n_nodes, sizeof *names.own) };
    if (names.own == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory to write a graph of %lld nodes", (long long)g->n_nodes);
    for (int64_t i = 0; i < g->n_named; i++) {
        const int32_t node = g->value[g->named[i].value].node;
        if (g->node[node].value == g->named[i].value && names.own[node] == NULL) names.own[node] = g->named[i].name;
    }
    pli_text_add(text, "{\"plait_graph\": 1,\n \"nodes\": [\n");
    for (int32_t i = 0; i < g->n_nodes; i++) {
        add_node(g, &names, i, values, text);
        pli_text_add(text, i + 1 < g->n_nodes ? ",\n" : "\n");
    }
    pli_text_add(text, " ]");
    add_outputs(g, &names, text);
    add_subgraphs(g, &names, text);
    add_place(g, &names, text);
    pli_text_add(text, "}\n");
    pli_free(names.own);
    return text->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory to write a graph of %lld nodes", (long long)g->n_nodes)
                        : PLAIT_OK;
}
