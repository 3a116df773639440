/* Turns rows of blocks into the form that a net is fed: dense rows, numbers of symbols, or entries.
 *
 * The keys of all rows put are sorted, and an entry names its feature by the place of its key (Li et al., OSDI 2014).
 * So only the rows of the first layer's weights that some entry names take part. So it is with the last layer's of a
 * sampled softmax, whose classes come from the labels and a draw (candidates.h). */
#include <math.h>
#include <string.h>

#include "learn/net/net.h"
#include "learn/solve/block.h"

bool pli_net_rows_reserve(const pli_net *net, pli_net_rows *to, int64_t rows) {
    const size_t bytes = net->symbols > 0 ? sizeof(int64_t) : sizeof(float);
    return pli_grow(&to->x, &to->x_capacity, rows * net->row_values, bytes) &&
           pli_grow((void **)&to->label, &to->label_capacity, rows * net->row_labels, sizeof *to->label) &&
           pli_grow((void **)&to->weight, &to->weight_capacity, rows * net->row_labels, sizeof *to->weight);
}

void pli_net_rows_free(pli_net_rows *rows) {
    pli_free(rows->x);
    pli_free(rows->label);
    pli_free(rows->weight);
    pli_free(rows->key);
    pli_free(rows->order);
    pli_free(rows->row);
    pli_free(rows->column);
    pli_free(rows->value);
    pli_candidates_free(&rows->candidates);
    *rows = (pli_net_rows){ 0 };
}

static void put_dense(const pli_block *block, int64_t row, int64_t features, const pli_scale *scale, float *x) {
    const bool scaled = scale != NULL && scale->factor != NULL;
    if (scaled && scale->centre != NULL)
        for (int64_t j = 0; j < features; j++) x[j] = (float)(-scale->centre[j] * scale->factor[j]);
    else
        memset(x, 0, (size_t)features * sizeof *x);
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t j = pli_block_column(block, e);
        const double   value = block->value != NULL ? (double)block->value[e] : 1;
        if (j >= (uint64_t)features) continue; /* a feature that the model does not know */
        if (!scaled)
            x[j] = (float)value;
        else
            x[j] = (float)(scale->factor[j] * (scale->centre != NULL ? value - scale->centre[j] : value));
    }
}

static bool grow_entries(pli_net_rows *to, int64_t n) {
    return pli_grow((void **)&to->key, &to->key_capacity, n, sizeof *to->key) &&
           pli_grow((void **)&to->order, &to->order_capacity, n, sizeof *to->order) &&
           pli_grow((void **)&to->row, &to->row_capacity, n, sizeof *to->row) &&
           pli_grow((void **)&to->column, &to->column_capacity, n, sizeof *to->column) &&
           pli_grow((void **)&to->value, &to->value_capacity, n, sizeof *to->value);
}

/* Adds the row's entries to those that are there. Sparse data have no centre. */
static bool put_entries(const pli_net *net, const pli_block *block, int64_t row, const pli_scale *scale,
                        pli_net_rows *to, int64_t at) {
    if (!grow_entries(to, to->entries + block->row_start[row + 1] - block->row_start[row])) return false;
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t j = pli_block_column(block, e);
        const double   value = block->value != NULL ? (double)block->value[e] : 1;
        if (j >= (uint64_t)net->features) continue;
        to->key[to->entries] = j;
        to->row[to->entries] = at;
        to->value[to->entries++] = (float)(scale != NULL && scale->factor != NULL ? scale->factor[j] * value : value);
    }
    return true;
}

/* Sorts the keys, each once; column says where the key of each entry is. */
static bool number_columns(pli_net_rows *from) {
    const int64_t n = from->entries;
    if (n > UINT32_MAX || !grow_entries(from, 1)) return false;
    for (int64_t i = 0; i < n; i++) from->order[i] = (uint32_t)i;
    if (!pli_sort_u64(n, from->key, from->order)) return false;
    from->unique = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || from->key[i] != from->key[from->unique - 1]) from->key[from->unique++] = from->key[i];
        from->column[from->order[i]] = from->unique - 1;
    }
    return true;
}

/* Writes the numbers of symbols. A place without a symbol gets the number of an unknown one. */
static void put_symbols(const pli_net *net, const pli_block *block, int64_t row, int64_t *x) {
    const uint64_t width = (uint64_t)net->symbols + 1;
    for (int64_t t = 0; t < net->row_values; t++) x[t] = net->symbols;
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t key = pli_block_column(block, e);
        if (key < width * (uint64_t)net->row_values) x[key / width] = (int64_t)(key % width);
    }
}

/* The label of a step is the symbol of the next step; the label of the last step is the row's own. */
static double step_label(const pli_net *net, const pli_block *block, int64_t row, const int64_t *x, int64_t t) {
    if (t == net->row_labels - 1) return block->label[row];
    return x[t + 1] < net->symbols ? net->goal->label[x[t + 1]] : NAN;
}

int64_t pli_net_rows_put(const pli_net *net, const pli_block *block, int64_t row, const pli_scale *scale,
                         pli_net_rows *to, int64_t at) {
    const double  weight = block->weight != NULL ? (double)block->weight[row] : 1;
    const int64_t labels = pli_block_labels(block, row), first = net->row_labels - labels;
    if (at == 0) to->entries = 0;
    if (net->sparse && !put_entries(net, block, row, scale, to, at)) return -1;
    if (net->symbols == 0) {
        if (!net->sparse)
            put_dense(block, row, net->row_values, scale, (float *)to->x + at * net->row_values);
        to->label[at] = block->label[row];
        to->weight[at] = weight;
        return 1;
    }
    int64_t *x = (int64_t *)to->x + at * net->row_values;
    put_symbols(net, block, row, x);
    for (int64_t t = 0; t < net->row_labels; t++) {
        to->label[at * net->row_labels + t] = t < first ? net->goal->label[0] : step_label(net, block, row, x, t);
        to->weight[at * net->row_labels + t] = t < first ? 0 : weight;
    }
    return labels;
}

/* The feeds of x and of its entries, whose keys are sorted. */
static int32_t feed_x(const pli_net *net, const pli_net_rows *from, int64_t rows, plait_feed feeds[PLI_NET_FEEDS]) {
    plait_tensor x = plait_graph_describe(net->graph, net->x); /* a graph of the user's may have more axes than two */
    x.shape.dim[0] = rows;
    feeds[0] = (plait_feed){ net->x, plait_tensor_of(x.type, x.shape, from->x) };
    if (!net->sparse) return 1;
    const plait_shape entries = plait_shape_1(from->entries);
    feeds[1] = (plait_feed){ net->keys, plait_tensor_of(PLAIT_I64, plait_shape_1(from->unique), from->key) };
    feeds[2] = (plait_feed){ net->row, plait_tensor_of(PLAIT_I64, entries, from->row) };
    feeds[3] = (plait_feed){ net->column, plait_tensor_of(PLAIT_I64, entries, from->column) };
    feeds[4] = (plait_feed){ net->value, plait_tensor_of(PLAIT_F32, entries, from->value) };
    return PLI_NET_FEEDS;
}

int32_t pli_net_rows_feed(const pli_net *net, pli_net_rows *from, int64_t rows, plait_feed feeds[PLI_NET_FEEDS]) {
    if (net->sparse && !number_columns(from)) return -1;
    return feed_x(net, from, rows, feeds);
}

/* The feeds of a sampled softmax's candidates; where they are not known, of as many as there may be. */
static int32_t feed_candidates(const pli_net *net, const pli_net_rows *from, int64_t rows, plait_feed *feeds) {
    const pli_candidates *c = &from->candidates;
    int64_t               at = 0;
    if (net->sampled == 0) return 0;
    for (int32_t p = 0; p < net->columns; p++) {
        const int64_t     n = c->of_part != NULL ? c->of_part[p] : net->sampled / net->columns + rows;
        const plait_shape shape = plait_shape_1(n);
        feeds[2 * p] = (plait_feed){ net->candidates[p],
                                     plait_tensor_of(PLAIT_I64, shape, c->row != NULL ? c->row + at : NULL) };
        feeds[2 * p + 1] = (plait_feed){ net->bonus[p],
                                         plait_tensor_of(PLAIT_F64, shape, c->bonus != NULL ? c->bonus + at : NULL) };
        at += n;
    }
    return 2 * net->columns;
}

int32_t pli_net_feeds_of(const pli_net *net, const pli_net_rows *from, int64_t rows,
                         plait_feed feeds[PLI_NET_TRAIN_FEEDS]) {
    const plait_shape labels = plait_shape_1(rows * net->row_labels);
    feeds[0] = (plait_feed){ net->label, plait_tensor_of(PLAIT_F64, labels, from->label) };
    feeds[1] = (plait_feed){ net->weight, plait_tensor_of(PLAIT_F64, labels, from->weight) };
    const int32_t n = 2 + feed_candidates(net, from, rows, &feeds[2]);
    return n + feed_x(net, from, rows, &feeds[n]);
}

int32_t pli_net_feed_rows(const pli_net *net, pli_net_rows *from, int64_t rows, plait_feed feeds[PLI_NET_TRAIN_FEEDS]) {
    if (net->sparse && !number_columns(from)) return -1;
    const int64_t labels = rows * net->row_labels;
    if (net->sampled > 0 && !pli_candidates_find(net, &from->candidates, labels, from->label)) return -1;
    return pli_net_feeds_of(net, from, rows, feeds);
}
