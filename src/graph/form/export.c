/* Writes ONNX: names, arrays, nodes. A walk over the graph writes the nodes that a value needs, inputs first. */
#include "graph/form/export.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/kernel.h"

#define FILE_BYTES_MAX (((size_t)2 << 30) - 1) /* the limit of protocol buffers for a message */

/* Names for outputs; no other value has one of them. */
static const char *const ends[] = { "probabilities", "label", "scores", "prediction" };

const char *pli_export_fail(pli_export *to, plait_status code, const char *format, ...) {
    char    text[300];
    va_list list;
    if (to->error.code != PLAIT_OK) return "";
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    pli_fail(&to->error, code, "%s", text);
    return "";
}

static const char *no_memory(pli_export *to) {
    return pli_export_fail(to, PLAIT_ENOMEM, "no memory for an ONNX model");
}

/* Copies data into the arena; NULL: no memory, and the writer has failed. */
static const void *kept(pli_export *to, const void *data, size_t bytes) {
    void *copy = pli_arena_take(&to->arena, bytes);
    if (copy == NULL) {
        no_memory(to);
        return NULL;
    }
    if (bytes > 0) memcpy(copy, data, bytes);
    return copy;
}

static const char *kept_text(pli_export *to, const char *text) {
    const char *copy = kept(to, text, strlen(text) + 1);
    return copy != NULL ? copy : "";
}

/* A name like `want` that no other value has. */
static const char *unique(pli_export *to, const char *want) {
    char name[200];
    snprintf(name, sizeof name, "%.150s", want);
    for (;;) {
        const int64_t known = to->names.n, at = pli_keymap_add(&to->names, pli_hash_bytes(name, strlen(name), 0));
        if (at < 0) return no_memory(to);
        if (at == known) return kept_text(to, name);
        snprintf(name, sizeof name, "%.150s_%lld", want, (long long)++to->made);
    }
}

void pli_export_init(pli_export *to) {
    *to = (pli_export){ .n_nodes = 0 };
    pli_arena_init(&to->arena, 1 << 14);
    pli_keymap_init(&to->names);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) unique(to, ends[i]);
}

void pli_export_destroy(pli_export *to) {
    pli_free(to->node);
    pli_free(to->tensor);
    pli_free(to->value);
    pli_keymap_destroy(&to->names);
    pli_arena_destroy(&to->arena);
}

/* --- ends and arrays -------------------------------------------------------------------------------------------- */

const char *pli_export_input(pli_export *to, const char *name, plait_type type, plait_shape shape, const char *axis) {
    const char *own = unique(to, name);
    to->in[to->n_in++] = (pli_onnx_value){ .name = own, .tensor = { .type = type, .shape = shape }, .axis = axis };
    return own;
}

void pli_export_output(pli_export *to, const char *value, const char *name, plait_type type, bool is_text,
                       plait_shape shape, const char *axis) {
    const char *const in[] = { value, NULL };
    const int64_t     before = to->n_nodes;
    pli_onnx_node    *node;
    (void)pli_export_node(to, "Identity", in, NULL, 0);
    if (to->n_nodes == before) return;
    node = &to->node[before];
    node->out = kept(to, &name, sizeof name);
    to->out[to->n_out++] =
        (pli_onnx_value){ .name = name, .tensor = { .type = type, .shape = shape }, .is_text = is_text, .axis = axis };
}

void pli_export_note(pli_export *to, const char *key, const char *text) {
    to->note[2 * to->n_notes] = kept_text(to, key);
    to->note[2 * to->n_notes + 1] = kept_text(to, text);
    to->n_notes++;
}

static const char *add_tensor(pli_export *to, pli_onnx_tensor tensor) {
    if (to->error.code != PLAIT_OK) return "";
    if (!pli_grow((void **)&to->tensor, &to->tensor_capacity, to->n_tensors + 1, sizeof *to->tensor))
        return no_memory(to);
    to->tensor[to->n_tensors++] = tensor;
    return tensor.name;
}

const char *pli_export_array(pli_export *to, const char *name, const plait_tensor *tensor, bool lent) {
    const size_t    bytes = (size_t)plait_shape_elements(&tensor->shape) * plait_type_bytes(tensor->type);
    pli_onnx_tensor own = { .name = unique(to, name), .tensor = *tensor };
    if (!lent) own.tensor.data = (void *)(uintptr_t)kept(to, tensor->data, bytes);
    return add_tensor(to, own);
}

const char *pli_export_ints(pli_export *to, int32_t n, const int64_t *ints) {
    const plait_tensor t = plait_tensor_of(PLAIT_I64, plait_shape_1(n), ints);
    return pli_export_array(to, "numbers", &t, false);
}

const char *pli_export_number(pli_export *to, plait_type type, double x) {
    uint64_t           room = 0;
    const plait_tensor t = { .type = type, .shape = { .rank = 0 }, .data = &room };
    pli_element_set(&t, 0, x);
    return pli_export_array(to, "number", &t, false);
}

const char *pli_export_texts(pli_export *to, int64_t n, const char *const *texts) {
    const char **copy = pli_arena_take(&to->arena, (size_t)n * sizeof *copy);
    if (copy == NULL) return no_memory(to);
    for (int64_t i = 0; i < n; i++) copy[i] = kept_text(to, texts[i]);
    const pli_onnx_tensor own = { .name = unique(to, "texts"), .tensor = { .shape = plait_shape_1(n) }, .text = copy };
    return add_tensor(to, own);
}

/* --- nodes ------------------------------------------------------------------------------------------------------ */

/* Copies the attributes and the data that they point to; texts themselves are constants. */
static const pli_onnx_attr *kept_attrs(pli_export *to, const pli_onnx_attr *attrs, int32_t n) {
    pli_onnx_attr *copy = (pli_onnx_attr *)(uintptr_t)kept(to, attrs, (size_t)n * sizeof *attrs);
    for (int32_t i = 0; copy != NULL && i < n; i++) {
        const size_t m = (size_t)attrs[i].n;
        if (copy[i].kind == PLI_ONNX_INTS) copy[i].ints = kept(to, attrs[i].ints, m * sizeof *attrs[i].ints);
        if (copy[i].kind == PLI_ONNX_TEXTS) copy[i].texts = kept(to, attrs[i].texts, m * sizeof *attrs[i].texts);
        if (copy[i].kind != PLI_ONNX_TENSOR) continue;
        pli_onnx_tensor *tensor = (pli_onnx_tensor *)(uintptr_t)kept(to, attrs[i].tensor, sizeof *tensor);
        if (tensor == NULL) break;
        tensor->tensor.data = (void *)(uintptr_t)kept(
            to, tensor->tensor.data,
            (size_t)plait_shape_elements(&tensor->tensor.shape) * plait_type_bytes(tensor->tensor.type));
        copy[i].tensor = tensor;
    }
    return copy;
}

void pli_export_nodes(pli_export *to, const char *op, const char *const *in, const pli_onnx_attr *attrs,
                      int32_t n_attrs, int32_t n_out, const char **names_out) {
    pli_onnx_node node = { .op = op, .domain = "", .n_out = n_out, .n_attrs = n_attrs };
    for (int32_t k = 0; k < n_out; k++) names_out[k] = "";
    while (in[node.n_in] != NULL) node.n_in++;
    if (to->error.code != PLAIT_OK) return;
    for (int32_t k = 0; k < n_out; k++) names_out[k] = unique(to, op);
    node.name = names_out[0];
    node.in = kept(to, in, (size_t)node.n_in * sizeof *in);
    node.out = kept(to, names_out, (size_t)n_out * sizeof *names_out);
    node.attr = kept_attrs(to, attrs, n_attrs);
    if (!pli_grow((void **)&to->node, &to->node_capacity, to->n_nodes + 1, sizeof *to->node))
        no_memory(to);
    else if (to->error.code == PLAIT_OK)
        to->node[to->n_nodes++] = node;
}

const char *pli_export_node(pli_export *to, const char *op, const char *const *in, const pli_onnx_attr *attrs,
                            int32_t n_attrs) {
    const char *name;
    pli_export_nodes(to, op, in, attrs, n_attrs, 1, &name);
    return name;
}

const char *pli_export_ml_node(pli_export *to, const char *op, const char *const *in, const pli_onnx_attr *attrs,
                               int32_t n_attrs) {
    const int64_t before = to->n_nodes;
    const char   *name = pli_export_node(to, op, in, attrs, n_attrs);
    if (to->n_nodes > before) to->node[before].domain = PLI_ONNX_ML;
    to->ml = true;
    return name;
}

const char *pli_export_1(pli_export *to, const char *op, const char *a) {
    const char *const in[] = { a, NULL };
    return pli_export_node(to, op, in, NULL, 0);
}

const char *pli_export_2(pli_export *to, const char *op, const char *a, const char *b) {
    const char *const in[] = { a, b, NULL };
    return pli_export_node(to, op, in, NULL, 0);
}

const char *pli_export_cast(pli_export *to, const char *a, plait_type type) {
    const pli_onnx_attr kind = pli_export_int("to", pli_onnx_type(type));
    const char *const   in[] = { a, NULL };
    return pli_export_node(to, "Cast", in, &kind, 1);
}

/* --- a graph ---------------------------------------------------------------------------------------------------- */

static void write_node(pli_export *to, const pli_node *node) {
    const plait_graph *g = to->graph;
    const char        *op = node->op->name;
    if (strcmp(op, "variable") == 0) {
        const int64_t k = g->attr[node->attr].u.i;
        to->value[node->value] = pli_export_array(to, g->variable[k].name, &to->variable[k], true);
        return;
    }
    if (strcmp(op, "constant") == 0) {
        to->value[node->value] = pli_export_array(to, "constant", g->attr[node->attr].u.tensor, true);
        return;
    }
    const pli_export_op *const tables[] = { pli_export_ops, pli_export_layers };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const pli_export_op *known = tables[t]; known->name != NULL; known++) {
            if (strcmp(known->name, op) != 0) continue;
            known->fn(to, known, node);
            return;
        }
    char text[80];
    pli_value_text(g, node->value, text);
    pli_export_fail(to, PLAIT_EREFUSED, "%s is refused: ONNX has no such op, or Plait does not write it", text);
}

void pli_export_begin(pli_export *to, const plait_graph *graph, const plait_tensor *variable) {
    to->graph = graph;
    to->variable = variable;
    to->value = pli_calloc((size_t)graph->n_values, sizeof *to->value);
    if (to->value == NULL) no_memory(to);
}

void pli_export_bind(pli_export *to, plait_value value, const char *name) {
    if (to->value != NULL) to->value[value] = name;
}

const char *pli_export_unwritten(pli_export *to, plait_value value) {
    const pli_node *node = pli_value_node(to->graph, value);
    char            text[80];
    pli_value_text(to->graph, node->value, text);
    return pli_export_fail(to, PLAIT_EREFUSED, "output %d of %s is refused: Plait does not write it",
                           value - node->value, text);
}

/* The nodes of a graph are in an order in which they can be written; a walk from the last marks the needed ones. */
const char *pli_export_value(pli_export *to, plait_value value) {
    const plait_graph *g = to->graph;
    const int32_t      last = g->value[value].node;
    bool              *needed = pli_calloc((size_t)last + 1, sizeof *needed);
    if (needed == NULL) return no_memory(to);
    needed[last] = true;
    for (int32_t i = last; i >= 0 && to->error.code == PLAIT_OK; i--) {
        const pli_node *node = &g->node[i];
        needed[i] = needed[i] && to->value[node->value] == NULL;
        for (int32_t k = 0; needed[i] && k < node->n_inputs; k++)
            needed[g->value[g->input[node->input + k]].node] = true;
    }
    for (int32_t i = 0; i <= last && to->error.code == PLAIT_OK; i++)
        if (needed[i]) write_node(to, &g->node[i]);
    pli_free(needed);
    if (to->error.code != PLAIT_OK) return "";
    return to->value[value] != NULL ? to->value[value] : pli_export_unwritten(to, value);
}

/* --- the file --------------------------------------------------------------------------------------------------- */

static plait_status write_file(const char *path, const void *bytes, size_t n, plait_error *err) {
    pli_outfile *file = NULL;
    PLI_TRY(pli_outfile_open(path, &file, err));
    plait_status status = pli_outfile_write(file, bytes, n, err);
    if (status == PLAIT_OK) return pli_outfile_commit(&file, err);
    pli_outfile_abandon(&file);
    return status;
}

/* About what the attributes of a node take in a file: large ones are those of trees. */
static size_t attrs_bytes(const pli_onnx_node *node) {
    size_t bytes = 0;
    for (int32_t i = 0; i < node->n_attrs; i++) {
        const pli_onnx_attr *a = &node->attr[i];
        bytes += (size_t)a->n * 6; /* a number of up to 2^31 takes at most five bytes and a tag */
        for (int32_t k = 0; a->kind == PLI_ONNX_TEXTS && k < a->n; k++) bytes += strlen(a->texts[k]);
        if (a->kind == PLI_ONNX_TENSOR) bytes += (size_t)plait_shape_elements(&a->tensor->tensor.shape) * 8;
    }
    return bytes;
}

plait_status pli_export_save(pli_export *to, const char *path, const char *name, plait_error *err) {
    void                 *handle = NULL, *bytes = NULL;
    const pli_onnx_codec *codec = NULL;
    size_t                n = 0, values = 0;
    const pli_onnx_model  model = { .ir = PLI_EXPORT_IR,
                                    .opset = PLI_EXPORT_OPSET,
                                    .ml = to->ml ? PLI_EXPORT_ML : 0,
                                    .producer = "plait",
                                    .producer_version = PLI_VERSION,
                                    .name = name,
                                    .n_nodes = to->n_nodes,
                                    .n_tensors = to->n_tensors,
                                    .n_in = to->n_in,
                                    .n_out = to->n_out,
                                    .n_notes = to->n_notes,
                                    .node = to->node,
                                    .tensor = to->tensor,
                                    .in = to->in,
                                    .out = to->out,
                                    .note = to->note };
    if (to->error.code != PLAIT_OK) return pli_fail(err, to->error.code, "%s", to->error.text);
    for (int64_t i = 0; i < to->n_tensors; i++)
        if (to->tensor[i].text == NULL)
            values +=
                (size_t)plait_shape_elements(&to->tensor[i].tensor.shape) * plait_type_bytes(to->tensor[i].tensor.type);
    for (int64_t i = 0; i < to->n_nodes; i++) values += attrs_bytes(&to->node[i]);
    if (values > FILE_BYTES_MAX - FILE_BYTES_MAX / 16)
        return pli_fail(err, PLAIT_EREFUSED, "a model of %zu bytes is refused: an ONNX file holds at most 2 GiB",
                        values);
    PLI_TRY(pli_onnx_open(&handle, &codec, err));
    plait_status status = codec->encode(&model, &bytes, &n, err);
    if (status == PLAIT_OK) status = write_file(path, bytes, n, err);
    if (bytes != NULL) codec->release(bytes);
    pli_module_close(&handle);
    return status;
}
