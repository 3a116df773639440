/* Turns plain structs into bytes. The messages lie in an arena and point to the structs' arrays; protobuf-c packs
 * them. */
#include <string.h>

#include "codec.h"
#include "onnx.pb-c.h"

typedef struct writer {
    pli_arena arena;
    bool      failed; /* there was no memory; all later calls return NULL */
} writer;

static void *array(writer *w, int64_t n, size_t bytes) {
    void *memory = w->failed || (size_t)n > SIZE_MAX / bytes ? NULL : pli_arena_take(&w->arena, (size_t)n * bytes);
    if (memory == NULL) w->failed = true;
    return memory;
}

static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

static Onnx__TensorProto *tensor_of(writer *w, const pli_onnx_tensor *from) {
    Onnx__TensorProto *t = array(w, 1, sizeof *t);
    const int64_t      n = plait_shape_elements(&from->tensor.shape);
    if (t == NULL) return NULL;
    onnx__tensor_proto__init(t);
    t->name = text_of(from->name);
    t->n_dims = (size_t)from->tensor.shape.rank;
    t->dims = (int64_t *)(uintptr_t)from->tensor.shape.dim;
    t->has_data_type = 1;
    t->data_type = from->text != NULL ? PLI_ONNX_STRING : pli_onnx_type(from->tensor.type);
    if (from->text == NULL) {
        t->has_raw_data = 1;
        t->raw_data = (ProtobufCBinaryData){ (size_t)n * plait_type_bytes(from->tensor.type), from->tensor.data };
        return t;
    }
    t->string_data = array(w, n, sizeof *t->string_data);
    t->n_string_data = (size_t)n;
    for (int64_t i = 0; !w->failed && i < n; i++)
        t->string_data[i] = (ProtobufCBinaryData){ strlen(from->text[i]), (uint8_t *)text_of(from->text[i]) };
    return t;
}

static Onnx__AttributeProto *attr_of(writer *w, const pli_onnx_attr *from) {
    Onnx__AttributeProto *a = array(w, 1, sizeof *a);
    if (a == NULL) return NULL;
    onnx__attribute_proto__init(a);
    a->name = text_of(from->name);
    a->has_type = 1;
    a->type = (int32_t)from->kind;
    a->has_f = from->kind == PLI_ONNX_FLOAT;
    a->f = from->f;
    a->has_i = from->kind == PLI_ONNX_INT;
    a->i = from->i;
    if (from->kind == PLI_ONNX_TEXT) {
        a->has_s = 1;
        a->s = (ProtobufCBinaryData){ strlen(from->text), (uint8_t *)text_of(from->text) };
    } else if (from->kind == PLI_ONNX_TENSOR) {
        a->t = tensor_of(w, from->tensor);
    } else if (from->kind == PLI_ONNX_INTS) {
        a->n_ints = (size_t)from->n;
        a->ints = (int64_t *)(uintptr_t)from->ints;
    } else if (from->kind == PLI_ONNX_FLOATS) {
        a->n_floats = (size_t)from->n;
        a->floats = (float *)(uintptr_t)from->floats;
    } else if (from->kind == PLI_ONNX_TEXTS) {
        a->strings = array(w, from->n, sizeof *a->strings);
        a->n_strings = (size_t)from->n;
        for (int32_t i = 0; !w->failed && i < from->n; i++)
            a->strings[i] = (ProtobufCBinaryData){ strlen(from->texts[i]), (uint8_t *)text_of(from->texts[i]) };
    }
    return a;
}

static Onnx__NodeProto *node_of(writer *w, const pli_onnx_node *from) {
    Onnx__NodeProto *n = array(w, 1, sizeof *n);
    if (n == NULL) return NULL;
    onnx__node_proto__init(n);
    n->name = text_of(from->name);
    n->op_type = text_of(from->op);
    if (from->domain[0] != '\0') n->domain = text_of(from->domain);
    n->n_input = (size_t)from->n_in;
    n->input = (char **)(uintptr_t)from->in;
    n->n_output = (size_t)from->n_out;
    n->output = (char **)(uintptr_t)from->out;
    n->n_attribute = (size_t)from->n_attrs;
    n->attribute = array(w, from->n_attrs, sizeof *n->attribute);
    for (int32_t i = 0; !w->failed && i < from->n_attrs; i++) n->attribute[i] = attr_of(w, &from->attr[i]);
    return n;
}

static Onnx__TensorShapeProto *shape_of(writer *w, const pli_onnx_value *from) {
    Onnx__TensorShapeProto *s = array(w, 1, sizeof *s);
    if (s == NULL) return NULL;
    onnx__tensor_shape_proto__init(s);
    s->n_dim = (size_t)from->tensor.shape.rank;
    s->dim = array(w, from->tensor.shape.rank, sizeof *s->dim);
    for (int32_t i = 0; !w->failed && i < from->tensor.shape.rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = s->dim[i] = array(w, 1, sizeof *d);
        if (d == NULL) break;
        onnx__tensor_shape_proto__dimension__init(d);
        if (from->tensor.shape.dim[i] >= 0) {
            d->has_dim_value = 1;
            d->dim_value = from->tensor.shape.dim[i];
        } else if (i == 0 && from->axis != NULL) {
            d->dim_param = text_of(from->axis);
        }
    }
    return s;
}

static Onnx__ValueInfoProto *value_of(writer *w, const pli_onnx_value *from) {
    Onnx__ValueInfoProto    *v = array(w, 1, sizeof *v);
    Onnx__TypeProto         *type = array(w, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = array(w, 1, sizeof *tensor);
    if (w->failed) return NULL;
    onnx__value_info_proto__init(v);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    v->name = text_of(from->name);
    v->type = type;
    type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = from->is_text ? PLI_ONNX_STRING : pli_onnx_type(from->tensor.type);
    if (!from->open) tensor->shape = shape_of(w, from);
    return v;
}

static Onnx__GraphProto *graph_of(writer *w, const pli_onnx_model *from) {
    Onnx__GraphProto *g = array(w, 1, sizeof *g);
    if (g == NULL) return NULL;
    onnx__graph_proto__init(g);
    g->name = text_of(from->name);
    g->node = array(w, from->n_nodes, sizeof *g->node);
    g->initializer = array(w, from->n_tensors, sizeof *g->initializer);
    g->input = array(w, from->n_in, sizeof *g->input);
    g->output = array(w, from->n_out, sizeof *g->output);
    for (int64_t i = 0; !w->failed && i < from->n_nodes; i++) g->node[g->n_node++] = node_of(w, &from->node[i]);
    for (int64_t i = 0; !w->failed && i < from->n_tensors; i++)
        g->initializer[g->n_initializer++] = tensor_of(w, &from->tensor[i]);
    for (int64_t i = 0; !w->failed && i < from->n_in; i++) g->input[g->n_input++] = value_of(w, &from->in[i]);
    for (int64_t i = 0; !w->failed && i < from->n_out; i++) g->output[g->n_output++] = value_of(w, &from->out[i]);
    return g;
}

static void add_notes(writer *w, const pli_onnx_model *from, Onnx__ModelProto *m) {
    m->metadata_props = array(w, from->n_notes, sizeof *m->metadata_props);
    for (int64_t i = 0; !w->failed && i < from->n_notes; i++) {
        Onnx__StringStringEntryProto *note = m->metadata_props[m->n_metadata_props++] = array(w, 1, sizeof *note);
        if (note == NULL) break;
        onnx__string_string_entry_proto__init(note);
        note->key = text_of(from->note[2 * i]);
        note->value = text_of(from->note[2 * i + 1]);
    }
}

plait_status pli_onnx_encode(const pli_onnx_model *model, void **bytes_out, size_t *n_out, plait_error *err) {
    writer                   w = { .failed = false };
    Onnx__ModelProto         m = ONNX__MODEL_PROTO__INIT;
    Onnx__OperatorSetIdProto set = ONNX__OPERATOR_SET_ID_PROTO__INIT, ml = set, *sets[] = { &set, &ml };
    pli_arena_init(&w.arena, 1 << 16);
    m.has_ir_version = 1;
    m.ir_version = model->ir;
    m.producer_name = text_of(model->producer);
    m.producer_version = text_of(model->producer_version);
    set.domain = text_of("");
    set.has_version = 1;
    set.version = model->opset;
    ml.domain = text_of(PLI_ONNX_ML);
    ml.has_version = 1;
    ml.version = model->ml;
    m.n_opset_import = model->ml > 0 ? 2 : 1;
    m.opset_import = sets;
    m.graph = graph_of(&w, model);
    add_notes(&w, model, &m);
    const size_t n = w.failed ? 0 : onnx__model_proto__get_packed_size(&m);
    uint8_t     *bytes = w.failed ? NULL : pli_malloc(n);
    if (bytes != NULL) onnx__model_proto__pack(&m, bytes);
    pli_arena_destroy(&w.arena);
    if (bytes == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to write an ONNX model");
    *bytes_out = bytes;
    *n_out = n;
    return PLAIT_OK;
}

void pli_onnx_release(void *bytes) { pli_free(bytes); }
