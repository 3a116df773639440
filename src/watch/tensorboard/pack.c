/* The module plait-tensorboard: turns events into bytes. Messages lie in an arena and point to the event's arrays;
 * protobuf-c packs them. event.proto defines the messages. */
#include <string.h>

#include "event.pb-c.h"
#include "watch/board/codec.h"

const void *plait_board_module(void) __attribute__((visibility("default")));

/* The number of a type in DataType of types.proto; 0: it has none. */
static int32_t type_number(plait_type type) {
    switch (type) {
    case PLAIT_F32: return 1;
    case PLAIT_F64: return 2;
    case PLAIT_I32: return 3;
    case PLAIT_I64: return 9;
    case PLAIT_BOOL: return 10;
    case PLAIT_BF16: return 14;
    default: return 0;
    }
}

static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

static void *take(pli_arena *arena, int64_t n, size_t bytes, bool *ok) {
    void *memory = *ok ? pli_arena_take(arena, (size_t)(n > 0 ? n : 1) * bytes) : NULL;
    *ok = memory != NULL;
    return memory;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static Tensorboard__HistogramProto *histogram_of(pli_arena *arena, const pli_board_histogram *from, bool *ok) {
    Tensorboard__HistogramProto *h = take(arena, 1, sizeof *h, ok);
    if (h == NULL) return NULL;
    tensorboard__histogram_proto__init(h);
    h->min = from->min;
    h->max = from->max;
    h->num = (double)from->n;
    h->sum = from->sum;
    h->sum_squares = from->sum_squares;
    h->n_bucket_limit = h->n_bucket = (size_t)from->buckets;
    h->bucket_limit = (double *)(uintptr_t)from->limit;
    h->bucket = (double *)(uintptr_t)from->count;
    return h;
}

static Tensorboard__Summary *summary_of(pli_arena *arena, const pli_board_event *event, bool *ok) {
    Tensorboard__Summary *s = take(arena, 1, sizeof *s, ok);
    if (s == NULL) return NULL;
    tensorboard__summary__init(s);
    Tensorboard__Summary__Value *values = take(arena, event->n_values, sizeof *values, ok);
    s->value = take(arena, event->n_values, sizeof *s->value, ok);
    s->n_value = (size_t)event->n_values;
    for (int64_t i = 0; *ok && i < event->n_values; i++) {
        const pli_board_value *from = &event->value[i];
        tensorboard__summary__value__init(&values[i]);
        values[i].tag = text_of(from->tag);
        values[i].value_case = from->histogram == NULL ? TENSORBOARD__SUMMARY__VALUE__VALUE_SIMPLE_VALUE
                                                       : TENSORBOARD__SUMMARY__VALUE__VALUE_HISTO;
        if (from->histogram == NULL) values[i].simple_value = (float)from->scalar;
        else values[i].histo = histogram_of(arena, from->histogram, ok);
        s->value[i] = &values[i];
    }
    return s;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static Tensorboard__TensorShapeProto *shape_of(pli_arena *arena, const plait_shape *from, bool *ok) {
    Tensorboard__TensorShapeProto *shape = take(arena, 1, sizeof *shape, ok);
    if (shape == NULL) return NULL;
    tensorboard__tensor_shape_proto__init(shape);
    Tensorboard__TensorShapeProto__Dim *dims = take(arena, from->rank, sizeof *dims, ok);
    shape->dim = take(arena, from->rank, sizeof *shape->dim, ok);
    shape->n_dim = (size_t)from->rank;
    for (int32_t d = 0; *ok && d < from->rank; d++) {
        tensorboard__tensor_shape_proto__dim__init(&dims[d]);
        dims[d].size = from->dim[d]; /* -1, here as in TensorBoard, for a length that a run decides */
        shape->dim[d] = &dims[d];
    }
    return shape;
}

static Tensorboard__NodeDef__AttrEntry *attr_of(pli_arena *arena, const char *key, bool *ok) {
    Tensorboard__NodeDef__AttrEntry *entry = take(arena, 1, sizeof *entry, ok);
    if (entry == NULL) return NULL;
    tensorboard__node_def__attr_entry__init(entry);
    entry->key = text_of(key);
    entry->value = take(arena, 1, sizeof *entry->value, ok);
    if (*ok) tensorboard__attr_value__init(entry->value);
    return entry;
}

/* Adds what TensorBoard shows of a node: the type of its first output, and on its edges the shapes of all outputs. */
static void add_attrs(pli_arena *arena, const pli_board_node *from, Tensorboard__NodeDef *node, bool *ok) {
    node->attr = take(arena, 2, sizeof *node->attr, ok);
    Tensorboard__NodeDef__AttrEntry     *type = attr_of(arena, "T", ok), *shapes = attr_of(arena, "_output_shapes", ok);
    Tensorboard__AttrValue__ListValue   *list = take(arena, 1, sizeof *list, ok);
    if (!*ok) return;
    type->value->value_case = TENSORBOARD__ATTR_VALUE__VALUE_TYPE;
    type->value->type = type_number(from->output[0].type);
    tensorboard__attr_value__list_value__init(list);
    list->shape = take(arena, from->n_outputs, sizeof *list->shape, ok);
    for (int32_t i = 0; *ok && i < from->n_outputs; i++) list->shape[i] = shape_of(arena, &from->output[i].shape, ok);
    list->n_shape = (size_t)from->n_outputs;
    shapes->value->value_case = TENSORBOARD__ATTR_VALUE__VALUE_LIST;
    shapes->value->list = list;
    node->attr[0] = type;
    node->attr[1] = shapes;
    node->n_attr = 2;
}

static ProtobufCBinaryData graph_of(pli_arena *arena, const pli_board_event *event, bool *ok) {
    Tensorboard__GraphDef   graph = TENSORBOARD__GRAPH_DEF__INIT;
    Tensorboard__VersionDef version = TENSORBOARD__VERSION_DEF__INIT;
    ProtobufCBinaryData     bytes = { 0 };
    Tensorboard__NodeDef   *nodes = take(arena, event->n_nodes, sizeof *nodes, ok);
    graph.node = take(arena, event->n_nodes, sizeof *graph.node, ok);
    graph.n_node = (size_t)event->n_nodes;
    version.producer = 22; /* the first GraphDef of TensorFlow 1.0 */
    graph.versions = &version;
    for (int64_t i = 0; *ok && i < event->n_nodes; i++) {
        const pli_board_node *from = &event->node[i];
        tensorboard__node_def__init(&nodes[i]);
        nodes[i].name = text_of(from->name);
        nodes[i].op = text_of(from->op);
        nodes[i].n_input = (size_t)from->n_inputs;
        nodes[i].input = (char **)(uintptr_t)from->input;
        if (from->n_outputs > 0) add_attrs(arena, from, &nodes[i], ok);
        graph.node[i] = &nodes[i];
    }
    if (!*ok) return bytes;
    bytes.len = tensorboard__graph_def__get_packed_size(&graph);
    bytes.data = take(arena, (int64_t)bytes.len, 1, ok);
    if (*ok) tensorboard__graph_def__pack(&graph, bytes.data);
    return bytes;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

static bool pack(const pli_board_event *from, void (*give)(void *user, const void *bytes, size_t n), void *user) {
    pli_arena          arena;
    bool               ok = true;
    Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
    pli_arena_init(&arena, 1 << 16);
    event.wall_time = from->wall_seconds;
    event.step = from->step;
    if (from->version != NULL) {
        event.what_case = TENSORBOARD__EVENT__WHAT_FILE_VERSION;
        event.file_version = text_of(from->version);
    } else if (from->n_nodes > 0) {
        event.what_case = TENSORBOARD__EVENT__WHAT_GRAPH_DEF;
        event.graph_def = graph_of(&arena, from, &ok);
    } else {
        event.what_case = TENSORBOARD__EVENT__WHAT_SUMMARY;
        event.summary = summary_of(&arena, from, &ok);
    }
    const size_t size = ok ? tensorboard__event__get_packed_size(&event) : 0;
    uint8_t     *bytes = take(&arena, (int64_t)size, 1, &ok);
    if (ok) {
        tensorboard__event__pack(&event, bytes);
        give(user, bytes, size);
    }
    pli_arena_destroy(&arena);
    return ok;
}

const void *plait_board_module(void) {
    static const pli_board_codec codec = { .abi = PLI_BOARD_ABI, .pack = pack };
    return &codec;
}
