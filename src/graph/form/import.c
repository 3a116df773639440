/* Turns ONNX into a graph: names, order, then one node after the other (import.h has the view of its ops).
 *
 * Every value of an ONNX graph has a name. A name belongs to an input, an initialiser, or an output of a node. It
 * becomes a value of the graph when it is first used. So an initialiser that is only a shape or a list of axes never
 * becomes one, and an initialiser of floats that an op computes with becomes a variable, with its data as first values.
 * Versions are checked first, because the opset decides what an op means. */
#include "graph/form/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/kernel.h"

/* The value that a name stands for. */
typedef struct entry {
    const char         *name;
    plait_value         value;    /* PLAIT_NONE: not used yet */
    const plait_tensor *known;    /* NULL: computed                */
    int64_t             node;     /* the node that computes it; -1: none */
    plait_value         shape_of; /* if shapes: this value is the shape of shape_of */
    bool                initial;
    bool                shapes; /* it is the shape of shape_of */
    bool                used;   /* by a node, or as an output */
    bool                text;   /* it is strings, and neither a value nor known */
} entry;

struct pli_import_names {
    pli_keymap map;
    entry     *entry;
    int64_t    n, capacity;
    pli_arena  arena; /* arrays that ops made */
};

const pli_import_op *const pli_import_tables[] = { pli_import_elements,  pli_import_shapes,
                                                   pli_import_lengths,   pli_import_numbers,
                                                   pli_import_layers,    pli_import_images,
                                                   pli_import_recurrent, NULL };

/* --- names ---------------------------------------------------------------------------------------------------- */

static entry *find(const pli_import *im, const char *name) {
    const int64_t at = pli_keymap_find(&im->names->map, pli_hash_bytes(name, strlen(name), 0));
    return at >= 0 && strcmp(im->names->entry[at].name, name) == 0 ? &im->names->entry[at] : NULL;
}

static plait_status add(pli_import *im, const char *name, entry what) {
    struct pli_import_names *names = im->names;
    const int64_t            known = names->map.n;
    if (!pli_grow((void **)&names->entry, &names->capacity, known + 1, sizeof *names->entry))
        return pli_fail(im->err, PLAIT_ENOMEM, "no memory for names");
    const int64_t at = pli_keymap_add(&names->map, pli_hash_bytes(name, strlen(name), 0));
    if (at < 0) return pli_fail(im->err, PLAIT_ENOMEM, "no memory for names");
    if (at < known) return pli_fail(im->err, PLAIT_EFORMAT, "there are two values named '%.60s'", name);
    what.name = name;
    names->entry[at] = what;
    names->n = known + 1;
    return PLAIT_OK;
}

static const char *name_in(const pli_import *im, int32_t k) { return k < im->node->n_in ? im->node->in[k] : ""; }

bool pli_import_has(const pli_import *im, int32_t k) { return name_in(im, k)[0] != '\0'; }

/* --- for ops -------------------------------------------------------------------------------------------------- */

plait_status pli_import_fail(const pli_import *im, plait_status code, const char *format, ...) {
    char    text[300];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return pli_fail(im->err, code, "%s", text);
}

/* Makes the value: a variable if training may change it, else a constant. */
static plait_value made(pli_import *im, entry *e, bool fixed) {
    if (e->value >= 0 || e->known == NULL) return e->value;
    if (!fixed && e->initial && pli_type_is_float(e->known->type))
        return e->value = plait_graph_variable(im->g, e->name, *e->known);
    plait_value v = plait_graph_constant(im->g, *e->known);
    if (plait_graph_find(im->g, e->name) < 0) plait_graph_name(im->g, v, e->name);
    return fixed && e->initial ? v : (e->value = v);
}

plait_value pli_import_in(pli_import *im, int32_t k) {
    return pli_import_has(im, k) ? made(im, find(im, name_in(im, k)), false) : PLAIT_NONE;
}

plait_value pli_import_fixed(pli_import *im, int32_t k) {
    return pli_import_has(im, k) ? made(im, find(im, name_in(im, k)), true) : PLAIT_NONE;
}

const plait_tensor *pli_import_known(const pli_import *im, int32_t k) {
    return pli_import_has(im, k) ? find(im, name_in(im, k))->known : NULL;
}

plait_status pli_import_ints(const pli_import *im, int32_t k, int32_t most, int64_t *ints, int32_t *n_out) {
    const plait_tensor *t = pli_import_known(im, k);
    *n_out = -1;
    if (!pli_import_has(im, k)) return PLAIT_OK;
    if (t == NULL)
        return pli_import_fail(im, PLAIT_EREFUSED, "input %d is computed, which is refused: it is to be a constant", k);
    const int64_t n = plait_shape_elements(&t->shape);
    if (pli_type_is_float(t->type) || t->type == PLAIT_BOOL || t->shape.rank > 1 || n > most)
        return pli_import_fail(im, PLAIT_ESHAPE, "input %d is to be at most %d integers", k, most);
    for (int64_t i = 0; i < n; i++) ints[i] = pli_element_int(t, i);
    *n_out = (int32_t)n;
    return PLAIT_OK;
}

plait_status pli_import_number(const pli_import *im, int32_t k, double absent, double *out) {
    const plait_tensor *t = pli_import_known(im, k);
    *out = absent;
    if (!pli_import_has(im, k)) return PLAIT_OK;
    if (t == NULL)
        return pli_import_fail(im, PLAIT_EREFUSED, "input %d is computed, which is refused: it is to be a constant", k);
    if (plait_shape_elements(&t->shape) != 1)
        return pli_import_fail(im, PLAIT_ESHAPE, "input %d is to be one number", k);
    *out = pli_element(t, 0);
    return PLAIT_OK;
}

bool pli_import_wants(const pli_import *im, int32_t k) { return k < im->node->n_out && im->node->out[k][0] != '\0'; }

void pli_import_out(pli_import *im, int32_t k, plait_value value) {
    if (pli_import_wants(im, k)) find(im, im->node->out[k])->value = value;
}

plait_status pli_import_out_known(pli_import *im, int32_t k, const plait_tensor *tensor) {
    PLI_TRY(pli_budget_count(&im->budget, tensor, im->err));
    const size_t  bytes = (size_t)plait_shape_elements(&tensor->shape) * plait_type_bytes(tensor->type);
    plait_tensor *copy = pli_arena_take(&im->names->arena, sizeof *copy);
    void         *data = pli_arena_take(&im->names->arena, bytes);
    if (copy == NULL || data == NULL) return pli_fail(im->err, PLAIT_ENOMEM, "no memory for a constant");
    if (bytes > 0) memcpy(data, tensor->data, bytes);
    *copy = plait_tensor_of(tensor->type, tensor->shape, data);
    if (pli_import_wants(im, k)) find(im, im->node->out[k])->known = copy;
    return PLAIT_OK;
}

void pli_import_out_shape_of(pli_import *im, int32_t k, plait_value x) {
    if (!pli_import_wants(im, k)) return;
    entry *e = find(im, im->node->out[k]);
    e->shapes = true;
    e->shape_of = x;
}

plait_value pli_import_shape_of(const pli_import *im, int32_t k) {
    const entry *e = pli_import_has(im, k) ? find(im, name_in(im, k)) : NULL;
    return e != NULL && e->shapes ? e->shape_of : PLAIT_NONE;
}

plait_value pli_import_scalar(pli_import *im, plait_value like, double x) {
    return like < 0 ? PLAIT_NONE : plait_graph_scalar(im->g, plait_graph_describe(im->g, like).type, x);
}

plait_shape pli_import_shape(const pli_import *im, plait_value value) {
    return plait_graph_describe(im->g, value).shape;
}

int32_t pli_import_axis(pli_import *im, plait_value x, int64_t axis) {
    const int32_t rank = pli_import_shape(im, x).rank;
    if (axis >= -rank && axis < rank) return (int32_t)(axis < 0 ? axis + rank : axis);
    if (x >= 0) pli_graph_failed(im->g, PLAIT_ESHAPE, "axis %lld of %d", (long long)axis, rank);
    return -1;
}

/* --- a node --------------------------------------------------------------------------------------------------- */

static plait_status unknown_op(const pli_import *im) {
    const char *names[160];
    size_t      n = 0;
    for (size_t t = 0; pli_import_tables[t] != NULL; t++)
        for (const pli_import_op *op = pli_import_tables[t]; op->name != NULL && n < 160; op++) names[n++] = op->name;
    return pli_fail_unknown(im->err, "op", im->node->op, names, n);
}

static bool takes_texts(const pli_import *im) {
    for (int32_t k = 0; k < im->node->n_in; k++)
        if (pli_import_has(im, k) && find(im, name_in(im, k))->text) return true;
    return false;
}

/* A model that ends in the names of its classes chooses, moves and returns strings. Plait's graphs cannot compute with
 * strings, so the outputs of such nodes get no value. */
static plait_status hand_texts_on(pli_import *im) {
    static const char *const moves[] = {
        "Gather", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"
    };
    bool moved = false;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) moved = moved || strcmp(im->node->op, moves[i]) == 0;
    if (!moved || !pli_import_has(im, 0) || !find(im, name_in(im, 0))->text)
        return pli_import_fail(im, PLAIT_EREFUSED, "an input of strings is refused: no graph computes with them");
    for (int32_t k = 0; k < im->node->n_out; k++)
        if (pli_import_wants(im, k)) find(im, im->node->out[k])->text = true;
    return PLAIT_OK;
}

static plait_status import_node(pli_import *im, const pli_onnx_node *node) {
    im->node = node;
    im->op = NULL;
    if (node->domain[0] != '\0' && strcmp(node->domain, "ai.onnx") != 0)
        return pli_fail(im->err, PLAIT_ENAME, "ops of the domain '%.40s' are not known, only ONNX's own", node->domain);
    for (size_t t = 0; im->op == NULL && pli_import_tables[t] != NULL; t++)
        for (const pli_import_op *op = pli_import_tables[t]; im->op == NULL && op->name != NULL; op++)
            if (strcmp(op->name, node->op) == 0) im->op = op;
    if (im->op == NULL) return unknown_op(im);
    PLI_TRY(pli_import_check_attrs(im));
    if (takes_texts(im)) return hand_texts_on(im);
    plait_status status = im->op->fn(im);
    PLI_TRY(plait_graph_check(im->g, im->err)); /* the first failure: that of the op may only follow from it */
    PLI_TRY(status);
    for (int32_t k = 0; k < node->n_out; k++) {
        const entry *e = pli_import_wants(im, k) ? find(im, node->out[k]) : NULL;
        if (e == NULL || e->known != NULL) continue;
        if (e->value < 0 && !e->used) continue;
        if (e->value < 0)
            return pli_import_fail(im, PLAIT_EREFUSED, "output %d ('%.40s') is refused: Plait does not compute it", k,
                                   e->name);
        if (plait_graph_find(im->g, e->name) < 0) plait_graph_name(im->g, e->value, e->name);
    }
    return plait_graph_check(im->g, im->err);
}

static plait_status at_node(const pli_import *im, const pli_onnx_node *node) {
    const char *name = node->name[0] != '\0' ? node->name : node->n_out > 0 ? node->out[0] : "";
    return pli_fail_at(im->err, "%.30s '%.60s'", node->op, name);
}

/* --- the graph ------------------------------------------------------------------------------------------------ */

static plait_status check_versions(const pli_onnx_model *m, plait_error *err) {
    if (m->ir > PLI_ONNX_IR_MAX || m->opset > PLI_ONNX_OPSET_MAX)
        return pli_fail(err, PLAIT_EVERSION,
                        "IR %lld with opset %lld is newer than this program knows (IR %d, opset %d); write it with "
                        "opset %d, or onnx.version_converter",
                        (long long)m->ir, (long long)m->opset, PLI_ONNX_IR_MAX, PLI_ONNX_OPSET_MAX, PLI_ONNX_OPSET_MAX);
    if (m->ir < PLI_ONNX_IR_MIN || m->opset < PLI_ONNX_OPSET_MIN)
        return pli_fail(err, PLAIT_EREFUSED,
                        "IR %lld with opset %lld is refused: it is older than IR %d and opset %d; bring it there with "
                        "onnx.version_converter",
                        (long long)m->ir, (long long)m->opset, PLI_ONNX_IR_MIN, PLI_ONNX_OPSET_MIN);
    return PLAIT_OK;
}

static plait_status add_inputs(pli_import *im) {
    const pli_onnx_model *m = im->model;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        if (m->tensor[i].text != NULL) {
            PLI_TRY(
                add(im, m->tensor[i].name, (entry){ .value = PLAIT_NONE, .node = -1, .initial = true, .text = true }));
            continue;
        }
        if (pli_budget_count(&im->budget, &m->tensor[i].tensor, im->err) < 0)
            return pli_fail_at(im->err, "tensor '%.60s'", m->tensor[i].name);
        PLI_TRY(add(im, m->tensor[i].name,
                    (entry){ .value = PLAIT_NONE, .known = &m->tensor[i].tensor, .node = -1, .initial = true }));
    }
    for (int64_t i = 0; i < m->n_in; i++) {
        const pli_onnx_value *in = &m->in[i];
        const entry          *e = find(im, in->name);
        if (e != NULL && e->initial) continue; /* a caller could feed it instead, but it stays an initialiser */
        if (in->is_text)
            return pli_fail(im->err, PLAIT_EREFUSED,
                            "input '%.60s' is of strings, which is refused: no graph computes with them", in->name);
        if (in->open)
            return pli_fail(im->err, PLAIT_EREFUSED,
                            "input '%.60s' has no shape, which is refused; give it one (lengths may have names)",
                            in->name);
        PLI_TRY(add(im, in->name, (entry){ .node = -1 }));
        find(im, in->name)->value = plait_graph_placeholder(im->g, in->name, in->tensor.type, in->tensor.shape);
        PLI_TRY(plait_graph_check(im->g, im->err));
    }
    for (int64_t i = 0; i < m->n_nodes; i++)
        for (int32_t k = 0; k < m->node[i].n_out; k++)
            if (m->node[i].out[k][0] != '\0' &&
                add(im, m->node[i].out[k], (entry){ .value = PLAIT_NONE, .node = i }) < 0)
                return at_node(im, &m->node[i]);
    return PLAIT_OK;
}

static plait_status unknown_value(const pli_import *im, const char *name) {
    enum { FEW = 4096 };
    const size_t n = (size_t)(im->names->n < FEW ? im->names->n : FEW);
    const char **names = pli_array(n, sizeof *names);
    if (names == NULL) return pli_fail(im->err, PLAIT_ENOMEM, "no memory for names");
    for (size_t i = 0; i < n; i++) names[i] = im->names->entry[i].name;
    plait_status status = pli_fail_unknown(im->err, "value", name, names, n);
    pli_free(names);
    return status;
}

static plait_status tell_cycle(const pli_import *im, const int64_t *cycle, int64_t n) {
    char   text[240] = "";
    size_t at = 0;
    for (int64_t i = 0; i < n && i < 5; i++) {
        const pli_onnx_node *node = &im->model->node[cycle[i]];
        at += (size_t)snprintf(text + at, sizeof text - at, "%.16s '%.24s' needs ", node->op,
                               node->n_out > 0 ? node->out[0] : "");
    }
    return pli_fail(im->err, PLAIT_EFORMAT, "the graph has a cycle: %s%sthe first", text, n > 5 ? "... " : "");
}

/* Lists the nodes that each node needs: first [n_nodes + 1], from [all inputs]. */
static plait_status find_edges(const pli_import *im, int64_t *first, int64_t *from) {
    int64_t edges = 0;
    for (int64_t i = 0; i < im->model->n_nodes; i++) {
        const pli_onnx_node *node = &im->model->node[i];
        first[i] = edges;
        for (int32_t k = 0; k < node->n_in; k++) {
            entry *e = node->in[k][0] != '\0' ? find(im, node->in[k]) : NULL;
            if (e != NULL) e->used = true;
            if (e != NULL && e->node >= 0) from[edges++] = e->node;
            if (e != NULL || node->in[k][0] == '\0') continue;
            unknown_value(im, node->in[k]);
            return at_node(im, node);
        }
    }
    first[im->model->n_nodes] = edges;
    return PLAIT_OK;
}

static plait_status import_nodes(pli_import *im) {
    const pli_onnx_model *m = im->model;
    const int64_t         n = m->n_nodes;
    int64_t               edges = 0;
    for (int64_t i = 0; i < n; i++) edges += m->node[i].n_in;
    int64_t *order = pli_array((size_t)(4 * n + 1 + edges), sizeof *order);
    if (order == NULL) return pli_fail(im->err, PLAIT_ENOMEM, "no memory for %lld nodes", (long long)n);
    for (int64_t i = 0; i < m->n_out; i++) {
        entry *e = find(im, m->out[i].name);
        if (e != NULL) e->used = true; /* a missing output is reported at the end */
    }
    int64_t     *first = order + 3 * n, *from = first + n + 1, cycle = 0;
    plait_status status = find_edges(im, first, from);
    if (status == PLAIT_OK) cycle = pli_form_order(n, first, from, order, order + n);
    if (cycle > 0) status = tell_cycle(im, order, cycle);
    for (int64_t i = 0; status == PLAIT_OK && i < n; i++)
        if ((status = import_node(im, &m->node[order[i]])) < 0) at_node(im, &m->node[order[i]]);
    pli_free(order);
    return status;
}

static bool agree(const plait_tensor *said, const plait_tensor *is) {
    bool same = said->type == is->type && said->shape.rank == is->shape.rank;
    for (int32_t i = 0; same && i < is->shape.rank; i++)
        same = said->shape.dim[i] == is->shape.dim[i] || said->shape.dim[i] < 0 || is->shape.dim[i] < 0;
    return same;
}

static plait_status check_output(pli_import *im, const pli_onnx_value *out) {
    entry *e = find(im, out->name);
    if (e == NULL) {
        unknown_value(im, out->name);
        return pli_fail_at(im->err, "output");
    }
    if (e->text != out->is_text)
        return pli_fail(im->err, PLAIT_ESHAPE, "output '%.60s' is %s strings, but is said to be %s", out->name,
                        e->text ? "of" : "not of", e->text ? "of another type" : "so");
    if (e->text) return PLAIT_OK;
    plait_tensor said = out->tensor, is = plait_graph_describe(im->g, made(im, e, false));
    char         a[128], b[128], from[80];
    PLI_TRY(plait_graph_check(im->g, im->err));
    if (out->open || agree(&said, &is)) return PLAIT_OK;
    pli_shape_text(&said, a);
    pli_shape_text(&is, b);
    pli_value_text(im->g, e->value, from);
    return pli_fail(im->err, PLAIT_ESHAPE, "output '%.60s' is said to be %s, but %s is %s", out->name, a, from, b);
}

/* Names the first input x, and the first output that is not of strings scores, unless these names are taken. */
static plait_status name_ends(pli_import *im) {
    const pli_onnx_model *m = im->model;
    for (int64_t i = 0; i < m->n_out; i++) PLI_TRY(check_output(im, &m->out[i]));
    for (int64_t i = 0; i < m->n_in && plait_graph_find(im->g, "x") < 0; i++)
        if (!find(im, m->in[i].name)->initial) plait_graph_name(im->g, find(im, m->in[i].name)->value, "x");
    for (int64_t i = 0; i < m->n_out && plait_graph_find(im->g, "scores") < 0; i++)
        if (!m->out[i].is_text) plait_graph_name(im->g, find(im, m->out[i].name)->value, "scores");
    return plait_graph_check(im->g, im->err);
}

static plait_status import_model(const pli_onnx_model *model, const plait_graph_file_opts *opts,
                                 plait_graph **graph_out, plait_error *err) {
    struct pli_import_names names = { .n = 0 };
    pli_import              im = { .model = model, .err = err, .names = &names, .budget = { opts->values_bytes } };
    pli_keymap_init(&names.map);
    pli_arena_init(&names.arena, 1 << 12);
    plait_status status = check_versions(model, err);
    if (status == PLAIT_OK) status = plait_graph_create(opts->ops, opts->n_ops, &im.g, err);
    if (status == PLAIT_OK) status = add_inputs(&im);
    if (status == PLAIT_OK) status = import_nodes(&im);
    if (status == PLAIT_OK) status = name_ends(&im);
    if (status == PLAIT_OK)
        *graph_out = im.g;
    else
        plait_graph_destroy(&im.g);
    pli_free(names.entry);
    pli_keymap_destroy(&names.map);
    pli_arena_destroy(&names.arena);
    return status;
}

plait_status pli_form_of_onnx(const char *name, const void *bytes, size_t n, const plait_graph_file_opts *opts,
                              plait_graph **graph_out, plait_error *err) {
    void                 *handle = NULL;
    const pli_onnx_codec *codec = NULL;
    pli_onnx_model        model = { 0 };
    plait_error           own;
    plait_graph          *graph = NULL;
    if (err == NULL) err = &own;
    PLI_TRY(pli_onnx_open(&handle, &codec, err));
    plait_status status = codec->decode(bytes, n, &model, err);
    if (status == PLAIT_OK) status = import_model(&model, opts, &graph, err);
    for (int64_t i = 0; status == PLAIT_OK && i < model.n_notes; i++)
        if (strcmp(model.note[2 * i], PLI_FORM_PLACE_NOTE) == 0)
            status = pli_form_place_text(graph, "metadata '" PLI_FORM_PLACE_NOTE "'", model.note[2 * i + 1],
                                         strlen(model.note[2 * i + 1]), err);
    if (status == PLAIT_OK)
        *graph_out = graph;
    else
        plait_graph_destroy(&graph);
    codec->free(&model);
    pli_module_close(&handle);
    return status < 0 ? pli_fail_at(err, "%s", name) : PLAIT_OK;
}
