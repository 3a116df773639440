/* Reads a graph in Plait's JSON form (docs/graph.md): a list of nodes, each with a name, an op, inputs by name and
 * attributes.
 *
 * Nodes may come in any order: names are looked up first, then the nodes are ordered, or the cycle is reported. Then
 * they are built one by one, so that an error of the graph can be reported with the node's line. jansson checks the
 * text; only for an error, a walk over the text finds the line where the node begins. */
#include <string.h>

#include "graph/form/form.h"

enum { VERSION = 1, NODES_MAX = 1 << 24 };

typedef struct reader {
    const char                  *name; /* the file's */
    const char                  *text;
    size_t                       bytes;
    const plait_graph_file_opts *opts;
    plait_error                 *err;
    plait_graph                 *graph;
    const json_t                *nodes;
    int64_t                      n;
    pli_keymap                   by_name;      /* hash of a node's name -> its index          */
    const char                 **node_name;    /* [n] by index                              */
    int64_t                     *first, *from; /* [n + 1], [edges] indices of inputs' nodes */
    int64_t                      edges, edge_capacity;
    plait_value                 *value; /* [n] output 0, once built */
    pli_budget                   budget;
} reader;

/* --- where and what ------------------------------------------------------------------------------------------- */

/* The line of element `index` of the outermost object's array "nodes"; 1 if it is not found. The text is valid JSON, so
 * quotes and brackets match. */
static int64_t line_of(const reader *r, int64_t index) {
    int64_t line = 1, depth = 0, at = -1;
    bool    in_nodes = false, begins = false;
    for (size_t i = 0; i < r->bytes; i++) {
        const char c = r->text[i];
        if (c == '\n') line++;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
        if (begins && c != ']' && ++at == index) return line;
        begins = false;
        if (c == '"') {
            const size_t start = i + 1;
            for (i++; i < r->bytes && r->text[i] != '"'; i++) i += r->text[i] == '\\';
            if (depth == 1 && i - start == 5 && memcmp(r->text + start, "nodes", 5) == 0) in_nodes = true;
        } else if (c == '{' || c == '[') {
            depth++;
            begins = in_nodes && depth == 2 && c == '[';
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == ',') {
            begins = in_nodes && depth == 2;
            in_nodes = in_nodes && depth > 1;
        }
    }
    return 1;
}

/* Puts "FILE:LINE: node 'h': " before the text of err. */
static plait_status at_node(const reader *r, int64_t i) {
    return r->node_name[i] != NULL
               ? pli_fail_at(r->err, "%s:%lld: node '%.60s'", r->name, (long long)line_of(r, i), r->node_name[i])
               : pli_fail_at(r->err, "%s:%lld: node %lld", r->name, (long long)line_of(r, i), (long long)i);
}

static plait_status check_keys(const json_t *object, const char *const *keys, size_t n, plait_error *err) {
    const char *key;
    json_t     *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) {
        size_t k = 0;
        while (k < n && strcmp(keys[k], key) != 0) k++;
        if (k == n) return pli_fail_unknown(err, "key", key, keys, n);
    }
    return PLAIT_OK;
}

/* --- names and edges ------------------------------------------------------------------------------------------ */

static int64_t find(const reader *r, const char *name) {
    const int64_t at = pli_keymap_find(&r->by_name, pli_hash_bytes(name, strlen(name), 0));
    return at >= 0 && strcmp(r->node_name[at], name) == 0 ? at : -1;
}

static plait_status read_name(reader *r, int64_t i) {
    const json_t *node = json_array_get(r->nodes, (size_t)i);
    const char   *name = json_string_value(json_object_get(node, "name"));
    if (!json_is_object(node)) return pli_fail(r->err, PLAIT_EFORMAT, "a node is to be an object");
    if (name == NULL || name[0] == '\0') return pli_fail(r->err, PLAIT_EFORMAT, "a node needs a \"name\"");
    const int64_t at = pli_keymap_add(&r->by_name, pli_hash_bytes(name, strlen(name), 0));
    if (at < 0) return pli_fail(r->err, PLAIT_ENOMEM, "no memory for names");
    if (at < i)
        return pli_fail(r->err, PLAIT_EFORMAT, "there are two nodes named '%.60s'; the first is in line %lld", name,
                        (long long)line_of(r, at));
    r->node_name[i] = name;
    return PLAIT_OK;
}

static plait_status unknown_input(const reader *r, const char *name) {
    enum { FEW = 4096 };
    return pli_fail_unknown(r->err, "input", name, r->node_name, (size_t)(r->n < FEW ? r->n : FEW));
}

/* Reads "h", or ["h", 1], which is output 1 of node h. *node_out: the node's index. */
static plait_status read_reference(const reader *r, const json_t *value, int64_t *node_out, int64_t *output_out) {
    const json_t *number = json_array_get(value, 1);
    const char   *name = json_string_value(json_is_array(value) ? json_array_get(value, 0) : value);
    *output_out = json_is_array(value) ? json_integer_value(number) : 0;
    if (name == NULL || (json_is_array(value) && (json_array_size(value) != 2 || !json_is_integer(number))))
        return pli_fail(r->err, PLAIT_EFORMAT, "an input is a node's name, or [name, number of its output]");
    *node_out = find(r, name);
    return *node_out >= 0 ? PLAIT_OK : unknown_input(r, name);
}

static plait_status read_edges(reader *r, int64_t i) {
    const json_t *inputs = json_object_get(json_array_get(r->nodes, (size_t)i), "inputs");
    r->first[i] = r->edges;
    if (inputs != NULL && !json_is_array(inputs))
        return pli_fail(r->err, PLAIT_EFORMAT, "inputs are to be an array of names");
    for (size_t k = 0; k < json_array_size(inputs); k++) {
        int64_t node, output;
        PLI_TRY(read_reference(r, json_array_get(inputs, k), &node, &output));
        if (!pli_grow((void **)&r->from, &r->edge_capacity, r->edges + 1, sizeof *r->from))
            return pli_fail(r->err, PLAIT_ENOMEM, "no memory for edges");
        r->from[r->edges++] = node;
    }
    return PLAIT_OK;
}

static plait_status tell_cycle(const reader *r, const int64_t *cycle, int64_t n) {
    char   text[200] = "";
    size_t at = 0;
    for (int64_t i = 0; i < n && i < 5; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "'%.24s' needs ", r->node_name[cycle[i]]);
    if (n > 5) snprintf(text + at, sizeof text - at, "... ");
    pli_fail(r->err, PLAIT_EFORMAT, "the graph has a cycle: %s'%.24s'", text, r->node_name[cycle[0]]);
    return pli_fail_at(r->err, "%s:%lld", r->name, (long long)line_of(r, cycle[0]));
}

/* --- attributes ----------------------------------------------------------------------------------------------- */

/* The attributes of one node, and the data that they point to until the node is built. */
typedef struct attr_list {
    plait_attr   attr[16];
    int64_t     *ints[16];
    plait_tensor tensor;
    int32_t      n;
} attr_list;

static void free_attrs(attr_list *list) {
    for (int32_t i = 0; i < list->n; i++) pli_free(list->ints[i]);
    pli_free(list->tensor.data);
}

static plait_status read_ints(const json_t *value, plait_attr *attr, int64_t **memory, plait_error *err) {
    const size_t n = json_array_size(value);
    bool         all = json_is_array(value) && n < 1 << 20;
    *memory = pli_array(all ? n : 0, sizeof **memory);
    if (*memory == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for an attribute");
    for (size_t i = 0; all && i < n; i++) {
        const json_t *x = json_array_get(value, i);
        all = json_is_integer(x);
        (*memory)[i] = json_integer_value(x);
    }
    attr->n = (int32_t)n;
    attr->u.ints = *memory;
    return all ? PLAIT_OK : pli_fail(err, PLAIT_EFORMAT, "attribute %.40s is to be an array of integers", attr->name);
}

/* Reads {"type": .., "shape": .., "values": ..}. */
static plait_status read_tensor(const json_t *value, plait_tensor *tensor, pli_budget *budget, plait_error *err) {
    PLI_TRY(pli_form_type(json_object_get(value, "type"), &tensor->type, err));
    PLI_TRY(pli_form_shape(json_object_get(value, "shape"), false, &tensor->shape, err));
    return pli_form_values(json_object_get(value, "values"), tensor, budget, err);
}

static plait_status read_attr(reader *r, const plait_attr_spec *spec, const json_t *value, attr_list *list) {
    plait_attr *attr = &list->attr[list->n];
    plait_type  type;
    *attr = (plait_attr){ .name = spec->preset.name, .kind = spec->preset.kind };
    list->ints[list->n++] = NULL;
    switch (attr->kind) {
    case PLAIT_ATTR_INT:
        attr->u.i = json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
        if (json_is_integer(value) || json_is_boolean(value)) return PLAIT_OK;
        return pli_fail(r->err, PLAIT_EFORMAT, "attribute %.40s is to be an integer", attr->name);
    case PLAIT_ATTR_FLOAT:
        if (pli_form_f64(value, &attr->u.f)) return PLAIT_OK;
        return pli_fail(r->err, PLAIT_EFORMAT, "attribute %.40s is to be a number", attr->name);
    case PLAIT_ATTR_INTS: return read_ints(value, attr, &list->ints[list->n - 1], r->err);
    case PLAIT_ATTR_TEXT:
        if ((attr->u.text = json_string_value(value)) != NULL) return PLAIT_OK;
        return pli_fail(r->err, PLAIT_EFORMAT, "attribute %.40s is to be a text", attr->name);
    case PLAIT_ATTR_TYPE:
        PLI_TRY(pli_form_type(value, &type, r->err));
        attr->u.i = type;
        return PLAIT_OK;
    case PLAIT_ATTR_TENSOR:
        if (list->tensor.data != NULL)
            return pli_fail(r->err, PLAIT_EFORMAT, "a node has one array among its attributes, not two");
        attr->u.tensor = &list->tensor;
        return read_tensor(value, &list->tensor, &r->budget, r->err);
    }
    return pli_fail(r->err, PLAIT_EFORMAT, "attribute %.40s is of no kind that a file can hold", attr->name);
}

static plait_status read_attrs(reader *r, const plait_op *op, const json_t *attrs, attr_list *list) {
    const char *key;
    json_t     *value;
    if (attrs != NULL && !json_is_object(attrs)) return pli_fail(r->err, PLAIT_EFORMAT, "attrs are to be an object");
    json_object_foreach((json_t *)(uintptr_t)attrs, key, value) {
        const char *names[16];
        int32_t     k = 0;
        while (k < op->n_attrs && strcmp(op->attrs[k].preset.name, key) != 0) {
            names[k] = op->attrs[k].preset.name;
            k++;
        }
        if (op->n_attrs == 0)
            return pli_fail(r->err, PLAIT_ENAME, "%s has no attributes, and so no '%.60s'", op->name, key);
        if (k == op->n_attrs) return pli_fail_unknown(r->err, "attribute", key, names, (size_t)op->n_attrs);
        PLI_TRY(read_attr(r, &op->attrs[k], value, list));
    }
    return PLAIT_OK;
}

/* --- nodes ---------------------------------------------------------------------------------------------------- */

static plait_status build_op(reader *r, const json_t *node, const char *name, int64_t i) {
    static const char *const keys[] = { "name", "op", "inputs", "attrs" };
    const json_t            *inputs = json_object_get(node, "inputs");
    const char              *op_name = json_string_value(json_object_get(node, "op"));
    const int32_t            n = (int32_t)json_array_size(inputs);
    const plait_op          *op = pli_op_find(r->graph, op_name);
    attr_list                list = { .n = 0 };
    PLI_TRY(check_keys(node, keys, sizeof keys / sizeof *keys, r->err));
    plait_value *in = pli_array((size_t)n, sizeof *in);
    if (in == NULL) return pli_fail(r->err, PLAIT_ENOMEM, "no memory for %d inputs", n);
    plait_status status = PLAIT_OK;
    for (int32_t k = 0; status == PLAIT_OK && k < n; k++) {
        int64_t from, output;
        status = read_reference(r, json_array_get(inputs, (size_t)k), &from, &output);
        in[k] = status == PLAIT_OK && output >= 0 && output <= INT32_MAX
                    ? plait_graph_output(r->graph, r->value[from], (int32_t)output)
                    : PLAIT_NONE;
        if (status == PLAIT_OK && in[k] < 0)
            status = pli_fail(r->err, PLAIT_EFORMAT, "input %d: node '%.60s' has no output %lld", k, r->node_name[from],
                              (long long)output);
    }
    if (status == PLAIT_OK && op != NULL) status = read_attrs(r, op, json_object_get(node, "attrs"), &list);
    if (status == PLAIT_OK)
        r->value[i] = plait_graph_name(r->graph, plait_graph_op(r->graph, op_name, in, n, list.attr, list.n), name);
    free_attrs(&list);
    pli_free(in);
    return status;
}

/* Builds a placeholder, variable or constant: it has no inputs, but a type and a shape. */
static plait_status build_leaf(reader *r, const json_t *node, const char *op, const char *name, int64_t i) {
    static const char *const keys[] = { "name", "op", "type", "shape", "initial", "values" };
    const bool               is_variable = strcmp(op, "variable") == 0, is_constant = strcmp(op, "constant") == 0;
    plait_tensor             t = { .type = PLAIT_F32, .shape = { .rank = 0 } };
    PLI_TRY(check_keys(node, keys, sizeof keys / sizeof *keys, r->err));
    if ((!is_variable && json_object_get(node, "initial") != NULL) ||
        (!is_constant && json_object_get(node, "values") != NULL))
        return pli_fail(r->err, PLAIT_EFORMAT, "\"initial\" is for variables, \"values\" for constants");
    if (json_object_get(node, "type") != NULL) PLI_TRY(pli_form_type(json_object_get(node, "type"), &t.type, r->err));
    PLI_TRY(pli_form_shape(json_object_get(node, "shape"), !is_variable && !is_constant, &t.shape, r->err));
    if (is_constant) {
        PLI_TRY(pli_form_values(json_object_get(node, "values"), &t, &r->budget, r->err));
        r->value[i] = plait_graph_name(r->graph, plait_graph_constant(r->graph, t), name);
    } else if (is_variable) {
        PLI_TRY(pli_form_initial(json_object_get(node, "initial"), &t, r->opts->seed, plait_graph_variables(r->graph),
                                 &r->budget, r->err));
        r->value[i] = plait_graph_variable(r->graph, name, t);
    } else {
        r->value[i] = plait_graph_placeholder(r->graph, name, t.type, t.shape);
    }
    pli_free(t.data);
    return PLAIT_OK;
}

static plait_status build_node(reader *r, int64_t i) {
    const json_t *node = json_array_get(r->nodes, (size_t)i);
    const char   *op = json_string_value(json_object_get(node, "op"));
    if (op == NULL) return pli_fail(r->err, PLAIT_EFORMAT, "a node needs an \"op\"");
    if (strcmp(op, "placeholder") == 0 || strcmp(op, "variable") == 0 || strcmp(op, "constant") == 0)
        PLI_TRY(build_leaf(r, node, op, r->node_name[i], i));
    else
        PLI_TRY(build_op(r, node, r->node_name[i], i));
    return plait_graph_check(r->graph, r->err);
}

/* Gives further names to outputs: "outputs": {"loss": ["l", 1]}. */
static plait_status name_outputs(reader *r, const json_t *outputs) {
    const char *key;
    json_t     *value;
    if (outputs != NULL && !json_is_object(outputs))
        return pli_fail(r->err, PLAIT_EFORMAT, "%s: outputs are to be an object of names", r->name);
    json_object_foreach((json_t *)(uintptr_t)outputs, key, value) {
        int64_t node, output;
        if (read_reference(r, value, &node, &output) < 0)
            return pli_fail_at(r->err, "%s: output '%.60s'", r->name, key);
        const plait_value v = output >= 0 && output <= INT32_MAX
                                  ? plait_graph_output(r->graph, r->value[node], (int32_t)output)
                                  : PLAIT_NONE;
        if (v < 0)
            return pli_fail(r->err, PLAIT_EFORMAT, "%s: output '%.60s': node '%.60s' has no output %lld", r->name, key,
                            r->node_name[node], (long long)output);
        plait_graph_name(r->graph, v, key);
        if (plait_graph_check(r->graph, r->err) < 0) return pli_fail_at(r->err, "%s: output '%.60s'", r->name, key);
    }
    return PLAIT_OK;
}

static plait_status build_all(reader *r, const int64_t *order) {
    for (int64_t i = 0; i < r->n; i++)
        if (build_node(r, order[i]) < 0) return at_node(r, order[i]);
    return PLAIT_OK;
}

static plait_status read_nodes(reader *r) {
    int64_t     *order = pli_array((size_t)r->n, 3 * sizeof *order);
    plait_status status = PLAIT_OK;
    r->node_name = pli_calloc((size_t)r->n, sizeof *r->node_name);
    r->first = pli_array((size_t)r->n + 1, sizeof *r->first);
    r->value = pli_array((size_t)r->n, sizeof *r->value);
    if (order == NULL || r->node_name == NULL || r->first == NULL || r->value == NULL)
        status = pli_fail(r->err, PLAIT_ENOMEM, "no memory for a graph of %lld nodes", (long long)r->n);
    for (int64_t i = 0; status == PLAIT_OK && i < r->n; i++)
        if ((status = read_name(r, i)) < 0) at_node(r, i);
    for (int64_t i = 0; status == PLAIT_OK && i < r->n; i++)
        if ((status = read_edges(r, i)) < 0) at_node(r, i);
    if (status == PLAIT_OK) {
        r->first[r->n] = r->edges;
        const int64_t cycle = pli_form_order(r->n, r->first, r->from, order, order + r->n);
        status = cycle > 0 ? tell_cycle(r, order, cycle) : build_all(r, order);
    }
    pli_free(order);
    return status;
}

/* --- the file ------------------------------------------------------------------------------------------------- */

static plait_status check_whole(reader *r, const json_t *root) {
    static const char *const keys[] = { "plait_graph", "nodes", "outputs", "about", "place", "subgraphs" };
    const json_t            *version = json_object_get(root, "plait_graph");
    if (!json_is_object(root) || !json_is_integer(version))
        return pli_fail(r->err, PLAIT_EFORMAT, "%s: no graph: it is to begin {\"plait_graph\": 1, \"nodes\": [",
                        r->name);
    if (json_integer_value(version) != VERSION)
        return pli_fail(r->err, PLAIT_EVERSION, "%s: graphs of version %lld are not known, only of %d", r->name,
                        (long long)json_integer_value(version), VERSION);
    if (check_keys(root, keys, sizeof keys / sizeof *keys, r->err) < 0) return pli_fail_at(r->err, "%s", r->name);
    r->nodes = json_object_get(root, "nodes");
    r->n = (int64_t)json_array_size(r->nodes);
    if (!json_is_array(r->nodes) || r->n > NODES_MAX)
        return pli_fail(r->err, PLAIT_EFORMAT, "%s: \"nodes\" is to be an array of at most %d", r->name, NODES_MAX);
    return PLAIT_OK;
}

plait_status pli_form_of_json(const char *name, const char *text, size_t bytes, const plait_graph_file_opts *opts,
                              plait_graph **graph_out, plait_error *err) {
    plait_error  own;
    pli_json_where where;
    reader       r = { .name = name,
                       .text = text,
                       .bytes = bytes,
                       .opts = opts,
                       .err = err != NULL ? err : &own,
                       .budget = { opts->values_bytes } };
    json_t      *root = pli_json_read(text, bytes, &where);
    if (root == NULL) return pli_fail(err, PLAIT_EFORMAT, "%s:%d: %s", name, where.line, where.text);
    pli_keymap_init(&r.by_name);
    plait_status status = check_whole(&r, root);
    if (status == PLAIT_OK) status = plait_graph_create(opts->ops, opts->n_ops, &r.graph, r.err);
    if (status == PLAIT_OK) status = read_nodes(&r);
    if (status == PLAIT_OK) status = name_outputs(&r, json_object_get(root, "outputs"));
    const json_t *place = json_object_get(root, "place"), *subgraphs = json_object_get(root, "subgraphs");
    if (status == PLAIT_OK && subgraphs != NULL && (status = pli_form_subgraphs(r.graph, subgraphs, r.err)) < 0)
        pli_fail_at(r.err, "%s", name);
    if (status == PLAIT_OK && place != NULL && (status = pli_form_place(r.graph, place, r.err)) < 0)
        pli_fail_at(r.err, "%s", name);
    if (status == PLAIT_OK)
        *graph_out = r.graph;
    else
        plait_graph_destroy(&r.graph);
    pli_keymap_destroy(&r.by_name);
    pli_free(r.node_name);
    pli_free(r.first);
    pli_free(r.from);
    pli_free(r.value);
    json_decref(root);
    return status;
}
