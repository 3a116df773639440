/* A graph in Plait's JSON form, a node a line, in the graph's own order. A value without a name gets one of its op and
 * number. */
#include <string.h>

#include "graph/form/form.h"

/* The name by which nodes refer to output 0 of a node, into text. */
typedef struct name_list {
    const char **own; /* [n_nodes] NULL: none was given */
} name_list;

static void add_name(const plait_graph *g, const name_list *names, int32_t node, pli_text *text) {
    char        made[80];
    const char *name = names->own[node];
    if (name == NULL) {
        pli_node_name(g, node, made);
        name = made;
    }
    pli_text_add_quoted(text, name);
}

static void add_reference(const plait_graph *g, const name_list *names, plait_value v, pli_text *text) {
    const int32_t node = g->value[v].node, output = v - g->node[node].value;
    if (output > 0) pli_text_add(text, "[");
    add_name(g, names, node, text);
    if (output > 0) pli_text_add(text, ", %d]", output);
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
    pli_text_add(text, "\"type\": \"%s\", \"shape\": ", plait_type_name(t->type));
    pli_form_add_shape(text, &t->shape);
    if (t->data == NULL) return;
    pli_text_add(text, ", \"%s\": ", values);
    pli_form_add_values(text, t);
}

static void add_attr(const plait_attr *attr, pli_text *text) {
    pli_text_add_quoted(text, attr->name);
    pli_text_add(text, ": ");
    switch (attr->kind) {
    case PLAIT_ATTR_INT: pli_text_add(text, "%lld", (long long)attr->u.i); break;
    case PLAIT_ATTR_FLOAT: pli_form_add_f64(text, attr->u.f); break;
    case PLAIT_ATTR_TEXT: pli_text_add_quoted(text, attr->u.text); break;
    case PLAIT_ATTR_TYPE: pli_text_add(text, "\"%s\"", plait_type_name((plait_type)attr->u.i)); break;
    case PLAIT_ATTR_INTS:
        for (int32_t i = 0; i < attr->n; i++)
            pli_text_add(text, "%s%lld", i == 0 ? "[" : ", ", (long long)attr->u.ints[i]);
        pli_text_add(text, attr->n == 0 ? "[]" : "]");
        break;
    case PLAIT_ATTR_TENSOR:
        pli_text_add(text, "{");
        add_tensor(attr->u.tensor, "values", text);
        pli_text_add(text, "}");
        break;
    }
}

static void add_op(const plait_graph *g, const name_list *names, const pli_node *node, pli_text *text) {
    bool any = false;
    for (int32_t k = 0; k < node->n_inputs; k++) {
        pli_text_add(text, k == 0 ? ", \"inputs\": [" : ", ");
        add_reference(g, names, g->input[node->input + k], text);
    }
    if (node->n_inputs > 0) pli_text_add(text, "]");
    for (int32_t k = 0; k < node->op->n_attrs; k++) {
        const plait_attr *attr = &g->attr[node->attr + k];
        if (!node->op->attrs[k].required && is_preset(attr, &node->op->attrs[k].preset)) continue;
        pli_text_add(text, any ? ", " : ", \"attrs\": {");
        add_attr(attr, text);
        any = true;
    }
    if (any) pli_text_add(text, "}");
}

static void add_node(const plait_graph *g, const name_list *names, int32_t i, bool values, pli_text *text) {
    const pli_node *node = &g->node[i];
    const char     *op = node->op->name;
    pli_text_add(text, "  {\"name\": ");
    add_name(g, names, i, text);
    pli_text_add(text, ", \"op\": ");
    pli_text_add_quoted(text, op);
    if (strcmp(op, "placeholder") == 0 || strcmp(op, "variable") == 0 || strcmp(op, "constant") == 0) {
        const bool   is_constant = op[0] == 'c';
        plait_tensor t = pli_value_tensor(g, node->value);
        if (op[0] == 'v' && values) t.data = g->attr[node->attr + 1].u.tensor->data;
        if (is_constant) t.data = g->attr[node->attr].u.tensor->data;
        pli_text_add(text, ", ");
        add_tensor(&t, is_constant ? "values" : "initial", text);
    } else {
        add_op(g, names, node, text);
    }
    pli_text_add(text, "}");
}

/* First names of outputs 0 are the nodes'; the others are listed. */
static void add_outputs(const plait_graph *g, const name_list *names, pli_text *text) {
    bool any = false;
    for (int64_t i = 0; i < g->n_named; i++) {
        const plait_value v = g->named[i].value;
        const int32_t     node = g->value[v].node;
        if (g->node[node].value == v && names->own[node] == g->named[i].name) continue;
        pli_text_add(text, any ? ", " : ",\n \"outputs\": {");
        pli_text_add_quoted(text, g->named[i].name);
        pli_text_add(text, ": ");
        add_reference(g, names, v, text);
        any = true;
    }
    if (any) pli_text_add(text, "}");
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
    pli_text_add(text, "}\n");
    pli_free(names.own);
    return text->failed ? pli_fail(err, PLAIT_ENOMEM, "no memory to write a graph of %lld nodes", (long long)g->n_nodes)
                        : PLAIT_OK;
}
