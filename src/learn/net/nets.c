/* The registry of nets, and what all kinds share: reading layers, variables, initial values. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <plait/nn.h>

#include "graph/graph.h"
#include "learn/net/net.h"

/* Dense rows have at most FEATURES_MAX features. Rows of SPARSE_FEATURES and more are fed by entries, if fewer than one
 * in SPARSE_ONE_OF is given. */
enum { FEATURES_MAX = 1 << 18, SPARSE_FEATURES = 1 << 10, SPARSE_ONE_OF = 32 };

static const pli_net_kind *const kinds[] = { &pli_net_mlp, &pli_net_cnn, &pli_net_lstm, &pli_net_graph, NULL };

const pli_net_kind *const *pli_net_kinds(void) { return kinds; }

const pli_net_kind *pli_net_kind_find(const char *name) {
    for (size_t i = 0; kinds[i] != NULL; i++)
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}

/* --- layers ------------------------------------------------------------------------------------------------------ */

/* layers NULL: the kind's default. */
static plait_status read_layers(const pli_net_kind *kind, const char *layers, int64_t width[PLI_NET_LAYERS],
                                int32_t *n_out, plait_error *err) {
    const char *text = layers != NULL ? layers : kind->layers;
    int32_t     n = 0;
    if (strlen(text) >= sizeof((pli_net *)NULL)->layers)
        return pli_fail(err, PLAIT_EINVAL, "layers %.40s...: the list is too long", text);
    for (const char *at = text; *at != '\0';) {
        char         word[24];
        const size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (n == PLI_NET_LAYERS - 1)
            return pli_fail(err, PLAIT_EINVAL, "layers %s: at most %d of them", text, PLI_NET_LAYERS - 1);
        if (length >= sizeof word || !pli_parse_i64(word, &width[n]) || width[n] < 1 || width[n] > 1 << 20)
            return pli_fail(err, PLAIT_EINVAL,
                            "layers %s: expected sizes from 1 to 1048576 separated by commas, such as 512,256", text);
        n++;
        at += length + (at[length] == ',');
        if (at[-1] == ',' && *at == '\0') return pli_fail(err, PLAIT_EINVAL, "layers %s: it ends in a comma", text);
    }
    *n_out = n;
    return PLAIT_OK;
}

plait_status pli_net_check_layers(const pli_net_kind *kind, const char *layers, plait_error *err) {
    int64_t width[PLI_NET_LAYERS];
    int32_t n;
    return read_layers(kind, layers, width, &n, err);
}

/* --- building ---------------------------------------------------------------------------------------------------- */

plait_value pli_net_variable(pli_net *net, char letter, int32_t layer, plait_shape shape, double spread) {
    pli_net_param *p = &net->param[net->n_params];
    const int64_t  n = plait_shape_elements(&shape);
    if (n < 0 || net->values > (INT64_C(1) << 40) - n || net->n_params == PLI_NET_PARAMS)
        return pli_graph_failed(net->graph, PLAIT_EREFUSED,
                                "layer %d has more weights than a net may have; take smaller layers", (int)layer);
    const int64_t rows = shape.rank > 1 ? shape.dim[0] : 1;
    *p = (pli_net_param){
        .rows = rows, .cols = n / rows, .at = net->values, .spread = spread, .penalised = letter != 'b',
        .of = net->n_params
    };
    snprintf(p->name, sizeof p->name, "%c%d", letter, (int)layer);
    p->value = plait_graph_variable(net->graph, p->name, plait_tensor_of(PLAIT_F32, shape, NULL));
    if (p->value < 0) return PLAIT_NONE;
    net->n_params++;
    net->values += n;
    return p->value;
}

plait_value pli_net_piece(pli_net *net, const pli_net_param *piece, const char *variable, plait_shape shape) {
    pli_net_param *p = &net->param[net->n_params];
    *p = *piece;
    p->at = net->values;
    p->value = plait_graph_variable(net->graph, variable, plait_tensor_of(PLAIT_F32, shape, NULL));
    if (p->value < 0) return PLAIT_NONE;
    net->n_params++;
    net->values += p->rows * p->cols;
    return p->value;
}

/* The spread of first weights [n, width]. Classes are learnt fastest from weights that keep the variance of what goes
 * forward. For numbers smaller ones generalise better (docs/models.md). */
static double first_spread(const pli_net *net, int64_t n, int64_t width, double gain) {
    return net->goal->classes > 0 ? sqrt(3 * gain / (double)n) : sqrt(6 / (double)(n + width));
}

plait_value pli_net_dense(pli_net *net, plait_value x, int64_t n, int64_t width, int32_t layer, double gain) {
    const double      spread = first_spread(net, n, width, gain);
    const plait_value w = pli_net_variable(net, 'w', layer, plait_shape_2(n, width), spread);
    const plait_value b = pli_net_variable(net, 'b', layer, plait_shape_1(width), 0);
    return plait_op_add(net->graph, plait_op_matmul(net->graph, x, w), b);
}

plait_value pli_net_first(pli_net *net, int64_t width, double gain) {
    const int64_t n = net->features;
    if (!net->sparse) return pli_net_dense(net, net->x, n, width, 1, gain);
    const plait_value w =
        pli_net_variable(net, 'w', 1, plait_shape_2(n, width), first_spread(net, n, width, gain));
    const plait_value b = pli_net_variable(net, 'b', 1, plait_shape_1(width), 0);
    const plait_value rows = plait_op_get_rows(net->graph, w, net->keys);
    const plait_value product = plait_op_sparse_matmul(net->graph, net->row, net->column, net->value, rows, net->x);
    return plait_op_add(net->graph, product, b);
}

void pli_net_last(pli_net *net, plait_value h, int64_t n, int32_t layer) {
    if (net->sampled > 0) pli_classes_sample(net, &h, 1, n, layer);
    else net->scores = pli_net_dense(net, h, n, net->goal->columns, layer, 1);
}

/* Adds the loss, the gradient of each variable, and its inc. */
static plait_status add_gradients(pli_net *net, plait_error *err) {
    plait_graph      *g = net->graph;
    const plait_value in[] = { net->scores, net->label, net->weight };
    plait_value       loss = net->loss;
    if (loss < 0) {
        const plait_value slopes = plait_graph_op(g, net->loss_op.name, in, 3, NULL, 0);
        loss = plait_graph_output(g, slopes, 1);
        net->sums = plait_graph_output(g, slopes, 2);
    }
    for (int32_t i = 0; loss >= 0 && i < net->n_params; i++) {
        plait_value gradient = PLAIT_NONE;
        plait_graph_gradients(g, loss, 1, &net->param[i].value, &gradient);
        net->param[i].inc = plait_op_inc(g, net->param[i].value, gradient);
    }
    return plait_graph_check(g, err);
}

static plait_value placeholder(pli_net *net, const char *name) {
    return plait_graph_placeholder(net->graph, name, PLAIT_F64, plait_shape_1(PLAIT_ANY));
}

static plait_status build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    const plait_op *own[] = { &net->loss_op, &net->class_op[0], &net->class_op[1], &net->class_op[2] };
    _Static_assert(sizeof own / sizeof *own == 1 + PLI_CLASS_OPS, "all ops of a net");
    if (net->kind->open != NULL) {
        PLI_TRY(net->kind->open(net, err));
        net->label = placeholder(net, "row_label");
        net->weight = placeholder(net, "row_weight");
        return add_gradients(net, err);
    }
    PLI_TRY(plait_graph_create(own, 1 + PLI_CLASS_OPS, &net->graph, err));
    net->x = plait_graph_placeholder(net->graph, "x", net->symbols > 0 ? PLAIT_I64 : PLAIT_F32,
                                     plait_shape_2(PLAIT_ANY, net->row_values));
    net->label = placeholder(net, "label");
    net->weight = placeholder(net, "weight");
    if (net->sparse) {
        const plait_shape any = plait_shape_1(PLAIT_ANY);
        net->keys = plait_graph_placeholder(net->graph, "keys", PLAIT_I64, any);
        net->row = plait_graph_placeholder(net->graph, "row", PLAIT_I64, any);
        net->column = plait_graph_placeholder(net->graph, "column", PLAIT_I64, any);
        net->value = plait_graph_placeholder(net->graph, "value", PLAIT_F32, any);
    }
    PLI_TRY(net->kind->build(net, width, n, err));
    PLI_TRY(plait_graph_check(net->graph, err));
    if (net->goal->classes == 0) net->param[net->n_params - 2].spread /= 10; /* it begins near the mean label */
    return add_gradients(net, err);
}

static void train_as(pli_net *net, const pli_net_trained_as *as) {
    net->columns = as != NULL && as->columns > 1 ? as->columns : 1;
    net->sampled = as != NULL ? as->sampled : 0;
    for (int32_t k = 0; as != NULL && as->share != NULL && k < net->columns && k < PLI_NET_PARAMS; k++)
        net->share[k] = as->share[k];
}

plait_status pli_net_create(const pli_net_kind *kind, const char *layers, const pli_schema *schema,
                            const pli_goal *goal, int64_t features, double density, const pli_net_trained_as *as,
                            pli_net **net_out, plait_error *err) {
    const bool large = features > FEATURES_MAX;
    const bool few = features >= SPARSE_FEATURES && density * SPARSE_ONE_OF < 1;
    int64_t width[PLI_NET_LAYERS];
    int32_t n = 0;
    if (kind->open == NULL) PLI_TRY(read_layers(kind, layers, width, &n, err));
    if (features < 1)
        return pli_fail(err, PLAIT_EFORMAT,
                        "the data have no features for model %s; if they are a text, read it by characters: --format "
                        "text",
                        kind->name);
    if (large && !kind->entries)
        return pli_fail(err, PLAIT_EREFUSED,
                        "model %s over %lld features is refused: it takes dense rows of at most %d; hash the features, "
                        "as with --hash-bits 14, or take --model mlp",
                        kind->name, (long long)features, FEATURES_MAX);
    pli_net *net = pli_calloc(1, sizeof *net);
    if (net == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a net");
    net->kind = kind;
    net->goal = goal;
    net->features = features;
    train_as(net, as);
    net->units = (pli_net_units){ .goal = goal, .spread = 1, .unit = 1 };
    net->loss_op = pli_net_loss_op(&net->units);
    net->loss = net->judged = net->scores = PLAIT_NONE;
    pli_class_ops(&net->units, net->class_op);
    net->axes = pli_schema_row_shape(schema, net->length);
    net->even = kind->even;
    net->symbols = kind->sequence ? pli_schema_symbols(schema) : 0;
    net->sparse = kind->entries && (large || few);
    net->row_values = net->symbols > 0 ? net->length[0] : net->sparse ? 0 : features;
    net->row_labels = net->symbols > 0 ? net->length[0] : 1;
    if (kind->open != NULL) net->text = pli_strdup(layers);
    else snprintf(net->layers, sizeof net->layers, "%s", layers != NULL ? layers : kind->layers);
    plait_status status = kind->open != NULL && net->text == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory for a net")
                                                                  : build(net, width, n, err);
    if (status < 0) pli_net_destroy(&net);
    else *net_out = net;
    return status;
}

void pli_net_destroy(pli_net **net) {
    if (*net == NULL) return;
    plait_graph_destroy(&(*net)->graph);
    plait_graph_destroy(&(*net)->calm);
    pli_free((*net)->text);
    pli_free((*net)->place);
    pli_free(*net);
    *net = NULL;
}

/* --- values ------------------------------------------------------------------------------------------------------ */

/* Row and column are those of the whole parameter. */
void pli_net_initial_piece(const pli_net *net, const pli_net_param *part, uint64_t seed, float *values) {
    const pli_net_param *param = &net->param[part->of];
    const pli_net_span    at = pli_columns_span(part);
    for (int64_t r = 0; r < at.rows; r++) {
        pli_random random = pli_random_at(seed, PLI_RANDOM_INIT, (uint64_t)part->of, (uint64_t)(at.row0 + r));
        for (int64_t c = 0; c < at.col0 + at.cols; c++) {
            const float drawn =
                param->spread > 0 ? (float)(param->spread * (2 * pli_random_f64(&random) - 1)) : 0;
            const bool one = c >= param->ones && c < param->ones + param->n_ones;
            if (c >= at.col0) values[r * at.row_step + (c - at.col0) * at.col_step] = one ? 1 : drawn;
        }
    }
}

void pli_net_initial(const pli_net *net, int32_t p, uint64_t seed, float *values) {
    const pli_net_param whole = { .of = p, .rows = net->param[p].rows, .cols = net->param[p].cols };
    pli_net_initial_piece(net, &whole, seed, values);
}

void pli_net_value_name(const pli_net *net, int64_t i, pli_text *text) {
    int32_t p = 0;
    while (p + 1 < net->n_params && i >= net->param[p + 1].at) p++;
    const plait_shape shape = plait_graph_variable_initial(net->graph, p).shape;
    int64_t           step = net->param[p].rows * net->param[p].cols, at = i - net->param[p].at;
    pli_text_add(text, "%s ", net->param[p].name);
    for (int32_t d = 0; d < shape.rank; d++) {
        step /= shape.dim[d];
        pli_text_add(text, "%s%lld", d > 0 ? "," : "", (long long)(at / step % shape.dim[d]));
    }
}

double pli_net_penalty(const pli_net *net, const float *values, double l1, double l2) {
    double square = 0, absolute = 0;
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *param = &net->param[p];
        for (int64_t i = 0; param->penalised && i < param->rows * param->cols; i++) {
            const double x = (double)values[param->at + i];
            square += x * x;
            absolute += fabs(x);
        }
    }
    return l2 / 2 * square + l1 * absolute;
}
