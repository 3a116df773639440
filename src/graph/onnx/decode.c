/* Turns bytes into plain structs. protobuf-c unpacks the message, which lives as long as the structs, because they
 * point to its texts and raw data. All lengths in the file are checked here against its contents: a tensor has the
 * bytes that its shape needs. Raw data are little-endian, like the machines that Plait runs on. */
#include <string.h>

#include "codec.h"
#include "onnx.pb-c.h"

typedef struct owner {
    Onnx__ModelProto *message;
    pli_arena         arena;
} owner;

/* protobuf-c allocates by these functions, so that tests can make an allocation fail. */
static void *take(void *unused, size_t bytes) {
    (void)unused;
    return pli_malloc(bytes);
}
static void give(void *unused, void *memory) {
    (void)unused;
    pli_free(memory);
}
static const ProtobufCAllocator plain = { .alloc = take, .free = give };

static ProtobufCAllocator *allocator(void) { return (ProtobufCAllocator *)(uintptr_t)&plain; }

static const char *text_of(const char *text) { return text != NULL ? text : ""; }

/* Takes an array of n elements from the arena. n cannot be huge: it counts parts of the message, each with bytes in the
 * file. */
static void *array(owner *o, size_t n, size_t bytes) {
    return n > SIZE_MAX / bytes ? NULL : pli_arena_take(&o->arena, n * bytes);
}

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to read an ONNX model");
}

/* --- tensors -------------------------------------------------------------------------------------------------- */

static plait_status read_shape(const Onnx__TensorProto *t, plait_shape *shape_out, plait_error *err) {
    plait_shape shape = { .rank = (int32_t)t->n_dims };
    if (t->n_dims > PLAIT_RANK_MAX)
        return pli_fail(err, PLAIT_ESHAPE, "tensor '%.60s' has %zu axes; at most %d", text_of(t->name), t->n_dims,
                        PLAIT_RANK_MAX);
    for (size_t i = 0; i < t->n_dims; i++) {
        shape.dim[i] = t->dims[i];
        if (t->dims[i] < 0)
            return pli_fail(err, PLAIT_EFORMAT, "tensor '%.60s' has a length of %lld", text_of(t->name),
                            (long long)t->dims[i]);
    }
    if (plait_shape_elements(&shape) < 0)
        return pli_fail(err, PLAIT_ESHAPE, "tensor '%.60s' is larger than any array can be", text_of(t->name));
    *shape_out = shape;
    return PLAIT_OK;
}

static plait_status wrong_count(const Onnx__TensorProto *t, size_t have, int64_t want, const char *what,
                                plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "tensor '%.60s' has %zu %s, its shape asks for %lld", text_of(t->name), have,
                    what, (long long)want);
}

/* Reads elements that are not raw from the list of their type, or of a wider type. */
static plait_status read_list(owner *o, const Onnx__TensorProto *t, int64_t n, plait_tensor *out, plait_error *err) {
    const plait_type type = out->type;
    const size_t     have = type == PLAIT_F32   ? t->n_float_data
                            : type == PLAIT_F64 ? t->n_double_data
                            : type == PLAIT_I64 ? t->n_int64_data
                                                : t->n_int32_data;
    if (have != (size_t)n) return wrong_count(t, have, n, "elements", err);
    if (type == PLAIT_F32) out->data = t->float_data;
    if (type == PLAIT_F64) out->data = t->double_data;
    if (type == PLAIT_I64) out->data = t->int64_data;
    if (type == PLAIT_I32) out->data = t->int32_data;
    if (type != PLAIT_BOOL && type != PLAIT_U8 && type != PLAIT_BF16) return PLAIT_OK;
    unsigned char *copy = array(o, have, plait_type_bytes(type));
    if (copy == NULL) return no_memory(err);
    for (size_t i = 0; i < have; i++) {
        const uint16_t half = (uint16_t)t->int32_data[i];
        if (type == PLAIT_BOOL)
            copy[i] = t->int32_data[i] != 0;
        else if (type == PLAIT_U8)
            copy[i] = (unsigned char)t->int32_data[i];
        else
            memcpy(copy + 2 * i, &half, 2);
    }
    out->data = copy;
    return PLAIT_OK;
}

static plait_status read_raw(owner *o, const Onnx__TensorProto *t, int64_t n, plait_tensor *out, plait_error *err) {
    const size_t bytes = (size_t)n * plait_type_bytes(out->type);
    if (t->raw_data.len != bytes) return wrong_count(t, t->raw_data.len, (int64_t)bytes, "bytes", err);
    out->data = t->raw_data.data;
    if (out->type != PLAIT_BOOL && (uintptr_t)out->data % plait_type_bytes(out->type) == 0) return PLAIT_OK;
    unsigned char *copy = array(o, bytes, 1);
    if (copy == NULL) return no_memory(err);
    if (bytes > 0) memcpy(copy, t->raw_data.data, bytes);
    for (size_t i = 0; out->type == PLAIT_BOOL && i < bytes; i++) copy[i] = copy[i] != 0;
    out->data = copy;
    return PLAIT_OK;
}

/* Copies bytes of the message to a text that ends with a zero byte; NULL: no memory. */
static const char *kept_text(owner *o, const ProtobufCBinaryData *bytes) {
    char *text = array(o, bytes->len + 1, 1);
    if (text == NULL) return NULL;
    if (bytes->len > 0) memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = '\0';
    return text;
}

static plait_status read_texts(owner *o, size_t n, const ProtobufCBinaryData *from, const char *const **out,
                               plait_error *err) {
    const char **texts = array(o, n, sizeof *texts);
    if (texts == NULL) return no_memory(err);
    for (size_t i = 0; i < n; i++)
        if ((texts[i] = kept_text(o, &from[i])) == NULL) return no_memory(err);
    *out = texts;
    return PLAIT_OK;
}

/* texts: strings are accepted, too. */
static plait_status read_tensor(owner *o, const Onnx__TensorProto *t, bool texts, pli_onnx_tensor *out,
                                plait_error *err) {
    const int32_t type = pli_onnx_type_of(t->data_type);
    *out = (pli_onnx_tensor){ .name = text_of(t->name) };
    if (t->data_location != 0 || t->n_external_data > 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "tensor '%.60s' lies in another file, which is refused: loading a graph opens no other "
                        "file; write the model with its data inside (onnx.save without external data)",
                        out->name);
    const bool is_text = texts && t->data_type == PLI_ONNX_STRING;
    if (type < 0 && !is_text)
        return pli_fail(err, PLAIT_EREFUSED, "tensor '%.60s' is of ONNX's type %d; known are " PLI_ONNX_TYPES,
                        out->name, t->data_type);
    PLI_TRY(read_shape(t, &out->tensor.shape, err));
    const int64_t n = plait_shape_elements(&out->tensor.shape);
    if (is_text) {
        if (t->n_string_data != (size_t)n) return wrong_count(t, t->n_string_data, n, "elements", err);
        return read_texts(o, t->n_string_data, t->string_data, &out->text, err);
    }
    out->tensor.type = (plait_type)type;
    if (t->has_raw_data) return read_raw(o, t, n, &out->tensor, err);
    return read_list(o, t, n, &out->tensor, err);
}

/* --- nodes ---------------------------------------------------------------------------------------------------- */

static plait_status read_attr(owner *o, const Onnx__AttributeProto *a, const char *op, pli_onnx_attr *out,
                              plait_error *err) {
    *out = (pli_onnx_attr){ .name = text_of(a->name), .kind = (pli_onnx_kind)a->type, .text = "" };
    pli_onnx_tensor *tensor;
    switch (a->type) {
    case PLI_ONNX_FLOAT: out->f = a->f; return PLAIT_OK;
    case PLI_ONNX_INT: out->i = a->i; return PLAIT_OK;
    case PLI_ONNX_FLOATS:
    case PLI_ONNX_INTS:
        if (a->n_floats > INT32_MAX || a->n_ints > INT32_MAX) break;
        out->n = (int32_t)(a->type == PLI_ONNX_INTS ? a->n_ints : a->n_floats);
        out->floats = a->floats;
        out->ints = a->ints;
        return PLAIT_OK;
    case PLI_ONNX_TEXT: return (out->text = kept_text(o, &a->s)) != NULL ? PLAIT_OK : no_memory(err);
    case PLI_ONNX_TEXTS:
        if (a->n_strings > INT32_MAX) break;
        out->n = (int32_t)a->n_strings;
        return read_texts(o, a->n_strings, a->strings, &out->texts, err);
    case PLI_ONNX_TENSOR:
        out->tensor = tensor = array(o, 1, sizeof *tensor);
        if (tensor == NULL) return no_memory(err);
        if (a->t == NULL) break;
        return read_tensor(o, a->t, false, tensor, err);
    default:
        return pli_fail(err, PLAIT_EREFUSED,
                        "%.40s: attribute '%.40s' is of ONNX's kind %d (a graph, a list of tensors or the like), "
                        "which no op of Plait's has",
                        op, out->name, a->type);
    }
    return pli_fail(err, PLAIT_EFORMAT, "%.40s: attribute '%.40s' is not whole", op, out->name);
}

static plait_status read_node(owner *o, const Onnx__NodeProto *n, pli_onnx_node *out, plait_error *err) {
    if (n->n_input > INT32_MAX || n->n_output > INT32_MAX || n->n_attribute > INT32_MAX)
        return pli_fail(err, PLAIT_EFORMAT, "a node of more than 2^31 inputs");
    pli_onnx_attr *attr = array(o, n->n_attribute, sizeof *attr);
    *out = (pli_onnx_node){ .name = text_of(n->name),
                            .op = text_of(n->op_type),
                            .domain = text_of(n->domain),
                            .n_in = (int32_t)n->n_input,
                            .n_out = (int32_t)n->n_output,
                            .n_attrs = (int32_t)n->n_attribute,
                            .in = (const char *const *)n->input,
                            .out = (const char *const *)n->output,
                            .attr = attr };
    if (attr == NULL) return no_memory(err);
    for (size_t i = 0; i < n->n_attribute; i++) PLI_TRY(read_attr(o, n->attribute[i], out->op, &attr[i], err));
    return PLAIT_OK;
}

/* --- inputs and outputs --------------------------------------------------------------------------------------- */

static plait_status read_value(const Onnx__ValueInfoProto *v, pli_onnx_value *out, plait_error *err) {
    const Onnx__TypeProto__Tensor *type = v->type != NULL ? v->type->tensor_type : NULL;
    *out = (pli_onnx_value){ .name = text_of(v->name) };
    if (type == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "'%.60s' is no tensor (a sequence, a map or the like)", out->name);
    const int32_t known = pli_onnx_type_of(type->elem_type);
    out->is_text = type->elem_type == PLI_ONNX_STRING;
    if (known < 0 && !out->is_text)
        return pli_fail(err, PLAIT_EREFUSED, "'%.60s' is of ONNX's type %d; known are " PLI_ONNX_TYPES, out->name,
                        type->elem_type);
    out->tensor.type = known >= 0 ? (plait_type)known : PLAIT_F32;
    out->open = type->shape == NULL;
    if (out->open) return PLAIT_OK;
    if (type->shape->n_dim > PLAIT_RANK_MAX)
        return pli_fail(err, PLAIT_ESHAPE, "'%.60s' has %zu axes; at most %d", out->name, type->shape->n_dim,
                        PLAIT_RANK_MAX);
    out->tensor.shape.rank = (int32_t)type->shape->n_dim;
    for (size_t i = 0; i < type->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = type->shape->dim[i];
        if (d->has_dim_value && d->dim_value < -1)
            return pli_fail(err, PLAIT_EFORMAT, "'%.60s' has a length of %lld", out->name, (long long)d->dim_value);
        out->tensor.shape.dim[i] = d->has_dim_value ? d->dim_value : PLAIT_ANY;
    }
    return PLAIT_OK;
}

static plait_status read_values(owner *o, size_t n, Onnx__ValueInfoProto **from, const pli_onnx_value **out,
                                plait_error *err) {
    pli_onnx_value *value = array(o, n, sizeof *value);
    if (value == NULL) return no_memory(err);
    *out = value;
    for (size_t i = 0; i < n; i++) PLI_TRY(read_value(from[i], &value[i], err));
    return PLAIT_OK;
}

/* --- the model ------------------------------------------------------------------------------------------------ */

static plait_status read_opset(const Onnx__ModelProto *m, pli_onnx_model *out, plait_error *err) {
    out->opset = -1;
    for (size_t i = 0; i < m->n_opset_import; i++) {
        const char *domain = text_of(m->opset_import[i]->domain);
        if (domain[0] != '\0' && strcmp(domain, "ai.onnx") != 0) continue;
        const int64_t version = m->opset_import[i]->version;
        if (out->opset >= 0 && out->opset != version)
            return pli_fail(err, PLAIT_EFORMAT, "two opsets of ONNX's own ops, %lld and %lld: which is meant?",
                            (long long)out->opset, (long long)version);
        out->opset = version;
    }
    return PLAIT_OK;
}

static plait_status read_model(owner *o, pli_onnx_model *out, plait_error *err) {
    const Onnx__ModelProto *m = o->message;
    const Onnx__GraphProto *g = m->graph;
    if (g == NULL || !m->has_ir_version)
        return pli_fail(err, PLAIT_EFORMAT, "no ONNX model: there is no graph, or no IR version, in it");
    out->ir = m->ir_version;
    out->producer = text_of(m->producer_name);
    out->producer_version = text_of(m->producer_version);
    out->name = text_of(g->name);
    PLI_TRY(read_opset(m, out, err));
    if (g->n_sparse_initializer > 0)
        return pli_fail(err, PLAIT_EREFUSED, "sparse initialisers are refused; write them dense");
    pli_onnx_node   *node = array(o, g->n_node, sizeof *node);
    pli_onnx_tensor *tensor = array(o, g->n_initializer, sizeof *tensor);
    if (node == NULL || tensor == NULL) return no_memory(err);
    for (size_t i = 0; i < g->n_node; i++) PLI_TRY(read_node(o, g->node[i], &node[i], err));
    for (size_t i = 0; i < g->n_initializer; i++) PLI_TRY(read_tensor(o, g->initializer[i], true, &tensor[i], err));
    PLI_TRY(read_values(o, g->n_input, g->input, &out->in, err));
    PLI_TRY(read_values(o, g->n_output, g->output, &out->out, err));
    const char **note = array(o, 2 * m->n_metadata_props, sizeof *note);
    if (note == NULL) return no_memory(err);
    for (size_t i = 0; i < m->n_metadata_props; i++) {
        note[2 * i] = text_of(m->metadata_props[i]->key);
        note[2 * i + 1] = text_of(m->metadata_props[i]->value);
    }
    out->note = note;
    out->n_notes = (int64_t)m->n_metadata_props;
    out->node = node;
    out->tensor = tensor;
    out->n_nodes = (int64_t)g->n_node;
    out->n_tensors = (int64_t)g->n_initializer;
    out->n_in = (int64_t)g->n_input;
    out->n_out = (int64_t)g->n_output;
    return PLAIT_OK;
}

plait_status pli_onnx_decode(const void *bytes, size_t n, pli_onnx_model *model_out, plait_error *err) {
    pli_onnx_model model = { 0 };
    owner         *o = pli_calloc(1, sizeof *o);
    if (o == NULL) return no_memory(err);
    pli_arena_init(&o->arena, 1 << 16);
    model.owner = o;
    o->message = onnx__model_proto__unpack(allocator(), n, bytes);
    plait_status status =
        o->message != NULL
            ? read_model(o, &model, err)
            : pli_fail(err, PLAIT_EFORMAT, "no graph in JSON, and no ONNX model, or one that was cut or "
                                          "altered: its bytes are no message");
    if (status == PLAIT_OK)
        *model_out = model;
    else
        pli_onnx_free(&model);
    return status;
}

void pli_onnx_free(pli_onnx_model *model) {
    owner *o = model->owner;
    if (o == NULL) return;
    if (o->message != NULL) onnx__model_proto__free_unpacked(o->message, allocator());
    pli_arena_destroy(&o->arena);
    pli_free(o);
    *model = (pli_onnx_model){ 0 };
}
