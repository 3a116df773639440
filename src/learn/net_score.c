/* Rows of sparse blocks as a net takes them, made dense or numbers of symbols; and scored so, some hundred at a time. */
#include <math.h>
#include <string.h>

#include "learn/net.h"
#include "tensor/tensor.h"

enum { ROWS_AT_ONCE = 256, LABELS_AT_ONCE = 4096 };

/* --- rows as a net takes them ------------------------------------------------------------------------------------ */

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
    *rows = (pli_net_rows){ 0 };
}

static uint64_t key_at(const pli_block *block, int64_t entry) {
    return block->col != NULL      ? block->col[entry]
           : block->packed != NULL ? pli_packed_at(block->packed, entry)
                                   : block->key[entry];
}

static void put_dense(const pli_block *block, int64_t row, int64_t features, const pli_scale *scale, float *x) {
    const bool scaled = scale != NULL && scale->factor != NULL;
    if (scaled && scale->centre != NULL)
        for (int64_t j = 0; j < features; j++) x[j] = (float)(-scale->centre[j] * scale->factor[j]);
    else
        memset(x, 0, (size_t)features * sizeof *x);
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t j = key_at(block, e);
        const double   value = block->value != NULL ? (double)block->value[e] : 1;
        if (j >= (uint64_t)features) continue; /* a feature that the model does not know */
        if (!scaled)
            x[j] = (float)value;
        else
            x[j] = (float)(scale->factor[j] * (scale->centre != NULL ? value - scale->centre[j] : value));
    }
}

/* Numbers of symbols; a place that has none is as one that is not known. */
static void put_symbols(const pli_net *net, const pli_block *block, int64_t row, int64_t *x) {
    const uint64_t width = (uint64_t)net->symbols + 1;
    for (int64_t t = 0; t < net->row_values; t++) x[t] = net->symbols;
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t key = key_at(block, e);
        if (key < width * (uint64_t)net->row_values) x[key / width] = (int64_t)(key % width);
    }
}

/* A step's label is the symbol of the next; the last one's is the row's own. */
static double step_label(const pli_net *net, const pli_block *block, int64_t row, const int64_t *x, int64_t t) {
    if (t == net->row_labels - 1) return block->label[row];
    return x[t + 1] < net->symbols ? net->linear->label[x[t + 1]] : NAN;
}

int64_t pli_net_rows_put(const pli_net *net, const pli_block *block, int64_t row, const pli_scale *scale,
                         pli_net_rows *to, int64_t at) {
    const double  weight = block->weight != NULL ? (double)block->weight[row] : 1;
    const int64_t labels = pli_block_labels(block, row), first = net->row_labels - labels;
    if (net->symbols == 0) {
        put_dense(block, row, net->row_values, scale, (float *)to->x + at * net->row_values);
        to->label[at] = block->label[row];
        to->weight[at] = weight;
        return 1;
    }
    int64_t *x = (int64_t *)to->x + at * net->row_values;
    put_symbols(net, block, row, x);
    for (int64_t t = 0; t < net->row_labels; t++) {
        to->label[at * net->row_labels + t] = t < first ? net->linear->label[0] : step_label(net, block, row, x, t);
        to->weight[at * net->row_labels + t] = t < first ? 0 : weight;
    }
    return labels;
}

void pli_net_rows_feed(const pli_net *net, const pli_net_rows *from, int64_t rows, plait_feed *feed) {
    plait_tensor x = plait_graph_describe(net->graph, net->x); /* a graph of the user's may have more axes than two */
    x.shape.dim[0] = rows;
    *feed = (plait_feed){ net->x, plait_tensor_of(x.type, x.shape, from->x) };
}

void pli_net_feed(const pli_net *net, const float *values, plait_feed *feeds) {
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_tensor like = plait_graph_variable_initial(net->graph, p);
        feeds[p] =
            (plait_feed){ net->param[p].value, plait_tensor_of(PLAIT_F32, like.shape, values + net->param[p].at) };
    }
}

/* --- scores ------------------------------------------------------------------------------------------------------ */

/* Where a pass over a block's rows has its memory. */
typedef struct score_pass {
    pli_net_rows rows;
    float       *scores; /* [most row_labels, K] */
    double      *score;  /* [K] */
    int64_t      most;   /* rows at once */
} score_pass;

static plait_status score_rows(const pli_net *net, plait_session *session, plait_feed *feeds, const pli_block *block,
                               int64_t first, int64_t n, score_pass *p, plait_error *err) {
    for (int64_t r = 0; r < n; r++) pli_net_rows_put(net, block, first + r, NULL, &p->rows, r);
    pli_net_rows_feed(net, &p->rows, n, &feeds[0]);
    plait_fetch fetch = { .value = net->scores,
                          .tensor = { .data = p->scores },
                          .bytes = (size_t)(n * net->row_labels * net->linear->columns) * sizeof *p->scores };
    return plait_session_run(session, feeds, net->n_params + 1, &fetch, 1, NULL, 0, err);
}

plait_status pli_net_score(const pli_net *net, plait_session *session, const float *values, const pli_block *block,
                           bool (*each)(void *user, int64_t row, double label, const double *score), void *user,
                           plait_error *err) {
    const int64_t k = net->linear->columns, labels = net->row_labels;
    plait_feed    feeds[PLI_NET_PARAMS + 1];
    score_pass    p = { .most = labels == 1 ? ROWS_AT_ONCE : (LABELS_AT_ONCE + labels - 1) / labels };
    plait_status  status = PLAIT_OK;
    bool          going = true;
    p.scores = pli_array((size_t)(p.most * labels * k), sizeof *p.scores);
    p.score = pli_array((size_t)k, sizeof *p.score);
    if (p.scores == NULL || p.score == NULL || !pli_net_rows_reserve(net, &p.rows, p.most))
        status = pli_fail(err, PLAIT_ENOMEM, "no memory for a net's scores");
    pli_net_feed(net, values, feeds + 1);
    for (int64_t first = 0; status == PLAIT_OK && going && first < block->rows; first += p.most) {
        const int64_t n = block->rows - first < p.most ? block->rows - first : p.most;
        status = score_rows(net, session, feeds, block, first, n, &p, err);
        for (int64_t i = 0; status == PLAIT_OK && going && i < n * labels; i++) {
            const int64_t row = first + i / labels;
            if (i % labels < labels - pli_block_labels(block, row) && labels > 1) continue;
            for (int64_t c = 0; c < k; c++) p.score[c] = (double)p.scores[i * k + c];
            going = each(user, row, p.rows.label[i], p.score);
        }
    }
    pli_net_rows_free(&p.rows);
    pli_free(p.scores);
    pli_free(p.score);
    return status;
}
