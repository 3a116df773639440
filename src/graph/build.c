/* Builds a graph: checks each node, infers its outputs' types and shapes, and appends it.
 *
 * A node costs a few hundred bytes written and no allocation of its own: the arrays grow by doubling, and an output
 * with the shape of an input shares its lengths. Differentiating a large graph spends most of its time here. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/kernel.h"
#include "graph/paths.h"
#include "graph/subgraph.h"

enum { ARENA_CHUNK_BYTES = 1 << 16, INPUTS_MAX = 1 << 20 };

/* --- life ------------------------------------------------------------------------------------------------------ */

static plait_status add_ops(plait_graph *g, const plait_op *const *ops, int64_t n, plait_error *err) {
    for (int64_t i = 0; i < n; i++) {
        PLI_TRY(pli_op_check(ops[i], err));
        int64_t known = g->by_op.n;
        int64_t at = pli_keymap_add(&g->by_op, pli_hash_bytes(ops[i]->name, strlen(ops[i]->name), 0));
        if (at < 0) return pli_fail(err, PLAIT_ENOMEM, "no memory for the names of ops");
        if (at < known)
            return pli_fail(err, PLAIT_EINVAL, "op %s exists already; give yours another name", ops[i]->name);
        g->op[at] = ops[i];
    }
    return PLAIT_OK;
}

plait_status plait_graph_create(const plait_op *const *ops, int32_t n_ops, plait_graph **graph_out,
                                plait_error *error_out) {
    PLI_TRY(PLI_GIVEN_OF(error_out, n_ops, ops));
    PLI_TRY(PLI_GIVEN(error_out, graph_out));
    if (n_ops < 0) return pli_fail(error_out, PLAIT_EINVAL, "plait_graph_create: %d ops; expected 0 or more", n_ops);
    int64_t n_builtin = 0;
    while (pli_ops()[n_builtin] != NULL) n_builtin++;
    plait_graph *g = pli_calloc(1, sizeof *g);
    if (g == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory for a graph");
    pli_arena_init(&g->arena, ARENA_CHUNK_BYTES);
    pli_keymap_init(&g->by_op);
    pli_keymap_init(&g->by_name);
    g->op = pli_array((size_t)(n_builtin + n_ops), sizeof *g->op);
    plait_status status = g->op == NULL ? pli_fail(error_out, PLAIT_ENOMEM, "no memory for the names of ops")
                                        : add_ops(g, pli_ops(), n_builtin, error_out);
    if (status == PLAIT_OK) status = add_ops(g, ops, n_ops, error_out);
    if (status == PLAIT_OK)
        *graph_out = g;
    else
        plait_graph_destroy(&g);
    return status;
}

void plait_graph_destroy(plait_graph **graph) {
    plait_graph *g = graph == NULL ? NULL : *graph;
    if (g == NULL) return;
    for (int64_t i = 0; i < g->n_paths; i++) pli_paths_destroy(&g->paths[i]);
    pli_free(g->paths);
    pli_free(g->named);
    for (int64_t i = 0; i < g->n_subgraphs; i++) pli_free(g->subgraph[i].node);
    pli_free(g->subgraph);
    pli_free(g->place_rule);
    pli_free(g->place_memory);
    pli_free(g->op);
    pli_keymap_destroy(&g->by_name);
    pli_keymap_destroy(&g->by_op);
    pli_arena_destroy(&g->arena);
    pli_free(g->variable);
    pli_free(g->attr);
    pli_free(g->dim);
    pli_free(g->value);
    pli_free(g->input);
    pli_free(g->node);
    pli_free(g);
    *graph = NULL;
}

plait_value pli_graph_failed(plait_graph *g, plait_status code, const char *format, ...) {
    if (g->status != PLAIT_OK) return PLAIT_NONE;
    char    text[sizeof g->error.text];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    g->status = pli_fail(&g->error, code, "%s", text);
    return PLAIT_NONE;
}

/* Is a required argument given? If it is NULL, the graph (unless it is NULL too) keeps the error. */
static bool given(plait_graph *g, const char *call, const char *name, const void *argument) {
    if (g != NULL && argument == NULL) pli_graph_failed(g, PLAIT_EINVAL, "%s: %s is NULL", call, name);
    return g != NULL && argument != NULL;
}

static plait_value out_of_memory(plait_graph *g) {
    return pli_graph_failed(g, PLAIT_ENOMEM, "no memory for a graph of %lld nodes", (long long)g->n_nodes);
}

plait_status plait_graph_check(const plait_graph *graph, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, graph));
    if (graph->status != PLAIT_OK && error_out != NULL) *error_out = graph->error;
    return graph->status;
}

/* --- ops by name ----------------------------------------------------------------------------------------------- */

const plait_op *pli_op_find(const plait_graph *graph, const char *name) {
    int64_t at = pli_keymap_find(&graph->by_op, pli_hash_bytes(name, strlen(name), 0));
    return at >= 0 && strcmp(graph->op[at]->name, name) == 0 ? graph->op[at] : NULL;
}

static plait_value unknown_op(plait_graph *g, const char *name) {
    const char **names = pli_array((size_t)g->by_op.n, sizeof *names);
    if (names == NULL) return out_of_memory(g);
    for (int64_t i = 0; i < g->by_op.n; i++) names[i] = g->op[i]->name;
    plait_error err;
    pli_fail_unknown(&err, "op", name, names, (size_t)g->by_op.n);
    pli_free(names);
    return pli_graph_failed(g, PLAIT_ENAME, "%s", err.text);
}

/* "add: <why>; its inputs are relu 'h' f32[?, 4], variable 'w' f32[3]" */
static plait_value failed_node(plait_graph *g, const plait_op *op, const plait_value *inputs, int32_t n,
                               plait_status code, const char *why) {
    char   text[400] = "";
    size_t at = 0;
    for (int32_t i = 0; i < n && i < 4 && at < sizeof text - 1; i++) {
        char         from[80], shape[128];
        plait_tensor t = pli_value_tensor(g, inputs[i]);
        pli_value_text(g, inputs[i], from);
        pli_shape_text(&t, shape);
        at +=
            (size_t)snprintf(text + at, sizeof text - at, "%s%s %s", i == 0 ? "; its inputs are " : ", ", from, shape);
    }
    return pli_graph_failed(g, code, "%s: %s%s", op->name, why, text);
}

/* --- a node ---------------------------------------------------------------------------------------------------- */

static bool room_for(plait_graph *g, int64_t inputs, int64_t outputs, int64_t attrs) {
    return pli_grow((void **)&g->node, &g->node_capacity, g->n_nodes + 1, sizeof *g->node) &&
           pli_grow((void **)&g->input, &g->input_capacity, g->n_inputs + inputs, sizeof *g->input) &&
           pli_grow((void **)&g->value, &g->value_capacity, g->n_values + outputs, sizeof *g->value) &&
           pli_grow((void **)&g->dim, &g->dim_capacity, g->n_dims + outputs * PLAIT_RANK_MAX, sizeof *g->dim) &&
           pli_grow((void **)&g->attr, &g->attr_capacity, g->n_attrs + attrs, sizeof *g->attr);
}

static void *keep(plait_graph *g, const void *data, size_t bytes) {
    void *copy = pli_arena_take(&g->arena, bytes);
    if (copy != NULL && bytes > 0) memcpy(copy, data, bytes);
    return copy;
}

/* Copies what the attribute points to into the graph. */
static bool keep_attr(plait_graph *g, plait_attr *attr) {
    if (attr->kind == PLAIT_ATTR_TEXT) return (attr->u.text = keep(g, attr->u.text, strlen(attr->u.text) + 1)) != NULL;
    if (attr->kind == PLAIT_ATTR_INTS)
        return (attr->u.ints = keep(g, attr->u.ints, (size_t)attr->n * sizeof *attr->u.ints)) != NULL;
    if (attr->kind != PLAIT_ATTR_TENSOR) return true;
    plait_tensor *tensor = keep(g, attr->u.tensor, sizeof *tensor);
    if (tensor == NULL) return false;
    size_t bytes = (size_t)plait_shape_elements(&tensor->shape) * plait_type_bytes(tensor->type);
    if (tensor->data != NULL && (tensor->data = keep(g, tensor->data, bytes)) == NULL) return false;
    attr->u.tensor = tensor;
    return true;
}

/* May an output share the lengths of input 0 if they are equal but some are unknown? Shared lengths are the same in
 * every run. Those of an elementwise op are, if no other input decides an unknown length. */
static bool may_share_unknown(const plait_graph *g, const plait_op *op, const plait_tensor *t, const plait_value *in,
                              int32_t n) {
    if (op->infer != NULL) return false;
    for (int32_t k = 1; k < n; k++) {
        const pli_value *v = &g->value[in[k]];
        for (int32_t i = 0; i < t->shape.rank && v->dim != g->value[in[0]].dim; i++) {
            const int32_t at = i - (t->shape.rank - v->rank);
            if (t->shape.dim[i] < 0 && at >= 0 && g->dim[v->dim + at] != 1) return false;
        }
    }
    return true;
}

/* Appends one output, which shares the lengths of the node's first input if they are equal. */
static void append_value(plait_graph *g, const plait_op *op, const plait_tensor *t, const plait_value *in, int32_t n) {
    int32_t at = -1;
    bool    known = true;
    for (int32_t i = 0; i < t->shape.rank; i++) known = known && t->shape.dim[i] >= 0;
    if (n > 0) {
        const pli_value *first = &g->value[in[0]];
        if (first->rank == t->shape.rank &&
            memcmp(g->dim + first->dim, t->shape.dim, (size_t)first->rank * sizeof *g->dim) == 0 &&
            (known || may_share_unknown(g, op, t, in, n)))
            at = first->dim;
    }
    if (at < 0) {
        at = (int32_t)g->n_dims;
        memcpy(g->dim + at, t->shape.dim, (size_t)t->shape.rank * sizeof *g->dim);
        g->n_dims += t->shape.rank;
    }
    g->value[g->n_values++] =
        (pli_value){ .node = (int32_t)g->n_nodes, .dim = at, .rank = (int16_t)t->shape.rank, .type = (int16_t)t->type };
}

static bool is_whole_shape(const plait_tensor *t) {
    if ((uint32_t)t->type >= PLAIT_TYPES || t->shape.rank < 0 || t->shape.rank > PLAIT_RANK_MAX) return false;
    int64_t n = 1;
    for (int32_t i = 0; i < t->shape.rank; i++) {
        int64_t d = t->shape.dim[i];
        if (d < PLAIT_ANY || (d > 0 && n > INT64_MAX / 8 / d)) return false;
        if (d > 0) n *= d;
    }
    return true;
}

/* Appends the node itself, whose n_out outputs are appended afterwards. */
static bool append_node(plait_graph *g, const plait_op *op, const plait_value *inputs, int32_t n,
                        const plait_attr *attrs, int64_t n_out) {
    if (g->n_values + n_out > INT32_MAX || g->n_inputs + n > INT32_MAX || !room_for(g, n, n_out, op->n_attrs))
        return false;
    g->node[g->n_nodes] = (pli_node){ .op = op,
                                      .input = (int32_t)g->n_inputs,
                                      .n_inputs = n,
                                      .value = (int32_t)g->n_values,
                                      .n_values = (int32_t)n_out,
                                      .attr = (int32_t)g->n_attrs,
                                      .forward = g->forward - 1,
                                      .rank = -1 };
    for (int32_t i = 0; i < n; i++) g->input[g->n_inputs + i] = inputs[i];
    g->n_inputs += n;
    if (op->n_attrs > 0) memcpy(g->attr + g->n_attrs, attrs, (size_t)op->n_attrs * sizeof *attrs);
    g->n_attrs += op->n_attrs;
    return true;
}

/* Is the node elementwise, with inputs that all share their lengths? Then there is nothing to infer. Most nodes of
 * large graphs are. */
static bool is_plain(const plait_graph *g, const plait_op *op, const plait_value *inputs, int32_t n) {
    if (op->infer != NULL || n == 0) return false;
    const pli_value *first = &g->value[inputs[0]];
    for (int32_t i = 1; i < n; i++) {
        const pli_value *v = &g->value[inputs[i]];
        if (v->dim != first->dim || v->rank != first->rank || v->type != first->type) return false;
    }
    return op->map[first->type] != NULL;
}

static plait_value append_plain(plait_graph *g, const plait_op *op, const plait_value *inputs, int32_t n,
                                const plait_attr *attrs) {
    pli_value value = g->value[inputs[0]];
    if (!append_node(g, op, inputs, n, attrs, 1)) return out_of_memory(g);
    value.node = (int32_t)g->n_nodes++;
    if ((op->flags & PLAIT_OP_BOOL) != 0) value.type = PLAIT_BOOL;
    g->value[g->n_values] = value;
    return (plait_value)g->n_values++;
}

/* Appends a node whose attributes are in the op's order already, and point to memory of the graph. */
static plait_value append(plait_graph *g, const plait_op *op, const plait_value *inputs, int32_t n,
                          const plait_attr *attrs) {
    enum { FEW = 8 };
    if (is_plain(g, op, inputs, n)) return append_plain(g, op, inputs, n, attrs);
    plait_tensor  few[FEW], out[PLI_OUTPUTS_MAX], *in = n <= FEW ? few : pli_array((size_t)n, sizeof *in);
    const int64_t n_out = op->outputs > 0 ? op->outputs : attrs[0].u.i;
    if (in == NULL) return out_of_memory(g);
    plait_error err; /* not cleared: clearing it would be most of the work */
    err.text[0] = '\0';
    const plait_call call = {
        .in = in, .out = out, .n_in = n, .n_out = (int32_t)n_out, .attr = attrs, .user = op->user, .error = &err
    };
    plait_status status = PLAIT_OK;
    if (n_out < 1 || n_out > PLI_OUTPUTS_MAX)
        status = plait_call_fail(&call, PLAIT_EINVAL, "%lld outputs; it has 1 to %d", (long long)n_out,
                                 PLI_OUTPUTS_MAX);
    for (int32_t i = 0; i < n; i++) in[i] = pli_value_tensor(g, inputs[i]);
    for (int64_t i = 0; status == PLAIT_OK && i < n_out; i++) out[i] = (plait_tensor){ .type = PLAIT_F32 };
    if (status == PLAIT_OK) status = op->infer != NULL ? op->infer(&call) : pli_infer_map(op, &call);
    for (int64_t i = 0; status == PLAIT_OK && i < n_out; i++)
        if (!is_whole_shape(&out[i]))
            status = plait_call_fail(&call, PLAIT_ESHAPE, "output %d is larger than any array can be", (int)i);
    if (in != few) pli_free(in);
    if (status != PLAIT_OK) return failed_node(g, op, inputs, n, status, err.text);
    if (!append_node(g, op, inputs, n, attrs, n_out)) return out_of_memory(g);
    const plait_value first = (plait_value)g->n_values;
    for (int64_t i = 0; i < n_out; i++) append_value(g, op, &out[i], inputs, n);
    g->n_nodes++;
    return first;
}

static plait_value check_inputs(plait_graph *g, const plait_op *op, const plait_value *inputs, int32_t n) {
    if (g->status != PLAIT_OK) return PLAIT_NONE;
    if (n < op->min_inputs || n > op->max_inputs)
        return op->min_inputs == op->max_inputs
                   ? pli_graph_failed(g, PLAIT_EINVAL, "%s takes %d inputs, not %d", op->name, op->min_inputs, n)
                   : pli_graph_failed(g, PLAIT_EINVAL, "%s takes %d to %d inputs, not %d", op->name, op->min_inputs,
                                      op->max_inputs, n);
    for (int32_t i = 0; i < n; i++)
        if (inputs[i] < 0 || inputs[i] >= g->n_values)
            return pli_graph_failed(g, PLAIT_EINVAL, "%s: input %d is no value of this graph", op->name, i);
    if ((op->flags & PLAIT_OP_STORE) != 0 && n > 0 && strcmp(pli_value_node(g, inputs[0])->op->name, "variable") != 0)
        return failed_node(g, op, inputs, n, PLAIT_EINVAL, "input 0 is to be a variable");
    return 0;
}

plait_value pli_graph_node(plait_graph *g, const plait_op *op, const plait_value *inputs, int32_t n,
                           const plait_attr *attrs) {
    enum { ATTRS_MAX = 16 };
    if (check_inputs(g, op, inputs, n) < 0) return PLAIT_NONE;
    if (op->n_attrs == 0) return append(g, op, inputs, n, NULL);
    plait_attr kept[ATTRS_MAX]; /* pli_op_check refuses ops with more */
    for (int32_t i = 0; i < op->n_attrs; i++) {
        kept[i] = attrs[i];
        if (!keep_attr(g, &kept[i])) return out_of_memory(g);
    }
    return append(g, op, inputs, n, kept);
}

/* --- attributes by name ---------------------------------------------------------------------------------------- */

static plait_value unknown_attr(plait_graph *g, const plait_op *op, const char *name) {
    const char *names[16];
    for (int32_t i = 0; i < op->n_attrs; i++) names[i] = op->attrs[i].preset.name;
    if (op->n_attrs == 0)
        return pli_graph_failed(g, PLAIT_ENAME, "%s has no attributes, and so no '%.60s'", op->name, name);
    plait_error err;
    pli_fail_unknown(&err, "attribute", name, names, (size_t)op->n_attrs);
    return pli_graph_failed(g, PLAIT_ENAME, "%s: %s", op->name, err.text);
}

static bool attr_is_whole(const plait_attr *attr) {
    switch (attr->kind) {
    case PLAIT_ATTR_INT:
    case PLAIT_ATTR_FLOAT: return true;
    case PLAIT_ATTR_TYPE: return attr->u.i >= 0 && attr->u.i < PLAIT_TYPES;
    case PLAIT_ATTR_INTS: return attr->n == 0 || (attr->n > 0 && attr->u.ints != NULL);
    case PLAIT_ATTR_TEXT: return attr->u.text != NULL;
    case PLAIT_ATTR_TENSOR:
        return attr->u.tensor != NULL && is_whole_shape(attr->u.tensor) &&
               plait_shape_elements(&attr->u.tensor->shape) >= 0;
    }
    return false;
}

/* Puts the given attributes and the presets of the others in the op's order. */
static plait_value order_attrs(plait_graph *g, const plait_op *op, const plait_attr *given, int32_t n,
                               plait_attr *attrs) {
    bool set[16] = { false };
    for (int32_t i = 0; i < op->n_attrs; i++) attrs[i] = op->attrs[i].preset;
    for (int32_t k = 0; k < n; k++) {
        int32_t at = 0;
        while (at < op->n_attrs && strcmp(attrs[at].name, given[k].name) != 0) at++;
        if (at == op->n_attrs) return unknown_attr(g, op, given[k].name);
        plait_attr value = given[k];
        if (attrs[at].kind == PLAIT_ATTR_FLOAT && value.kind == PLAIT_ATTR_INT) {
            value.kind = PLAIT_ATTR_FLOAT;
            value.u.f = (double)given[k].u.i;
        }
        if (value.kind != attrs[at].kind || !attr_is_whole(&value))
            return pli_graph_failed(g, PLAIT_EINVAL, "%s: attribute %s is of another kind", op->name, attrs[at].name);
        value.name = op->attrs[at].preset.name;
        attrs[at] = value;
        set[at] = true;
    }
    for (int32_t i = 0; i < op->n_attrs; i++)
        if (op->attrs[i].required && !set[i])
            return pli_graph_failed(g, PLAIT_EINVAL, "%s needs the attribute %s", op->name, attrs[i].name);
    return 0;
}

plait_value plait_graph_op(plait_graph *g, const char *name, const plait_value *inputs, int32_t n_inputs,
                           const plait_attr *attrs_given, int32_t n_attrs) {
    if (!given(g, __func__, "op", name) || (n_inputs > 0 && !given(g, __func__, "inputs", inputs)) ||
        (n_attrs > 0 && !given(g, __func__, "attrs", attrs_given)))
        return PLAIT_NONE;
    if (g->status != PLAIT_OK) return PLAIT_NONE;
    for (int32_t i = 0; i < n_attrs; i++)
        if (attrs_given[i].name == NULL)
            return pli_graph_failed(g, PLAIT_EINVAL, "%s: the name of attrs[%d] is NULL", __func__, i);
    const plait_op *op = pli_op_find(g, name);
    if (op == NULL) return unknown_op(g, name);
    plait_attr attrs[16];
    if (order_attrs(g, op, attrs_given, n_attrs, attrs) < 0) return PLAIT_NONE;
    return pli_graph_node(g, op, inputs, n_inputs, attrs);
}

/* --- values that no op computes -------------------------------------------------------------------------------- */

static bool kept_name(plait_graph *g, plait_value value, const char *name) {
    int64_t known = g->by_name.n;
    if (!pli_grow((void **)&g->named, &g->named_capacity, known + 1, sizeof *g->named)) return false;
    const char *copy = keep(g, name, strlen(name) + 1);
    int64_t     at = copy == NULL ? -1 : pli_keymap_add(&g->by_name, pli_hash_bytes(name, strlen(name), 0));
    if (at < 0) return false;
    if (at == known) g->named[g->n_named++] = (struct pli_named){ copy, value };
    return true;
}

plait_value plait_graph_name(plait_graph *g, plait_value value, const char *name) {
    if (!given(g, __func__, "name", name) || value < 0 || g->status != PLAIT_OK) return PLAIT_NONE;
    if (name[0] == '\0')
        return pli_graph_failed(g, PLAIT_EINVAL, "a name is to have at least one byte");
    if (plait_graph_find(g, name) >= 0)
        return pli_graph_failed(g, PLAIT_EINVAL, "there are two values named '%.60s'", name);
    return kept_name(g, value, name) ? value : out_of_memory(g);
}

plait_value plait_graph_find(const plait_graph *g, const char *name) {
    if (g == NULL || name == NULL) return PLAIT_NONE;
    int64_t at = pli_keymap_find(&g->by_name, pli_hash_bytes(name, strlen(name), 0));
    return at >= 0 && strcmp(g->named[at].name, name) == 0 ? g->named[at].value : PLAIT_NONE;
}

plait_value plait_graph_placeholder(plait_graph *g, const char *name, plait_type type, plait_shape shape) {
    if (!given(g, __func__, "name", name)) return PLAIT_NONE;
    if (shape.rank < 0 || shape.rank > PLAIT_RANK_MAX)
        return pli_graph_failed(g, PLAIT_ESHAPE, "placeholder '%.60s' has %d axes, which no array has", name,
                                shape.rank);
    const plait_attr attrs[] = { { .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = type },
                                 { .name = "shape", .kind = PLAIT_ATTR_INTS, .n = shape.rank, .u.ints = shape.dim } };
    return plait_graph_name(g, plait_graph_op(g, "placeholder", NULL, 0, attrs, 2), name);
}

plait_value plait_graph_constant(plait_graph *g, plait_tensor tensor) {
    if (g == NULL) return PLAIT_NONE;
    const plait_attr attr = { .name = "value", .kind = PLAIT_ATTR_TENSOR, .u.tensor = &tensor };
    if (tensor.data == NULL && plait_shape_elements(&tensor.shape) != 0)
        return pli_graph_failed(g, PLAIT_EINVAL, "a constant needs its values");
    return plait_graph_op(g, "constant", NULL, 0, &attr, 1);
}

plait_value plait_graph_scalar(plait_graph *g, plait_type type, double value) {
    if (g == NULL) return PLAIT_NONE;
    uint64_t           room = 0;
    const plait_tensor scalar = { .type = type, .shape = { .rank = 0 }, .data = &room };
    if (plait_type_bytes(type) == 0)
        return pli_graph_failed(g, PLAIT_EINVAL, "a scalar of type %d, which is none", (int)type);
    pli_element_set(&scalar, 0, value);
    return plait_graph_constant(g, scalar);
}

plait_value plait_graph_variable(plait_graph *g, const char *name, plait_tensor initial) {
    if (!given(g, __func__, "name", name) || g->status != PLAIT_OK) return PLAIT_NONE;
    const plait_attr attrs[] = { { .name = "number", .kind = PLAIT_ATTR_INT, .u.i = g->n_variables },
                                 { .name = "initial", .kind = PLAIT_ATTR_TENSOR, .u.tensor = &initial } };
    if (!pli_grow((void **)&g->variable, &g->variable_capacity, g->n_variables + 1, sizeof *g->variable))
        return out_of_memory(g);
    plait_value value = plait_graph_name(g, plait_graph_op(g, "variable", NULL, 0, attrs, 2), name);
    if (value < 0) return PLAIT_NONE;
    const plait_attr *kept = &g->attr[pli_value_node(g, value)->attr];
    g->variable[g->n_variables++] = (pli_variable){ g->named[g->n_named - 1].name, value, *kept[1].u.tensor };
    return value;
}

/* --- looking --------------------------------------------------------------------------------------------------- */

plait_value plait_graph_output(const plait_graph *g, plait_value value, int32_t k) {
    if (g == NULL || value < 0 || value >= g->n_values) return PLAIT_NONE;
    const pli_node *node = pli_value_node(g, value);
    return k >= 0 && k < node->n_values ? node->value + k : PLAIT_NONE;
}

plait_tensor plait_graph_describe(const plait_graph *g, plait_value value) {
    return g != NULL && value >= 0 && value < g->n_values ? pli_value_tensor(g, value)
                                                          : (plait_tensor){ .shape = { .rank = 0 } };
}

int64_t plait_graph_nodes(const plait_graph *g) { return g == NULL ? 0 : g->n_nodes; }
int32_t plait_graph_variables(const plait_graph *g) { return g == NULL ? 0 : (int32_t)g->n_variables; }

const char *plait_graph_variable_name(const plait_graph *g, int32_t k) {
    if (g == NULL) return "";
    return k >= 0 && k < g->n_variables ? g->variable[k].name : NULL;
}

plait_tensor plait_graph_variable_initial(const plait_graph *g, int32_t k) {
    return g != NULL && k >= 0 && k < g->n_variables ? g->variable[k].initial
                                                     : (plait_tensor){ .shape = { .rank = 0 } };
}
