/* Rows of sparse blocks through a net: some hundred at a time are made dense, run, and their scores handed on. */
#include <string.h>

#include "learn/net.h"
#include "tensor/tensor.h"

enum { ROWS_AT_ONCE = 256 };

void pli_net_row(const pli_block *block, int64_t row, int64_t features, const pli_scale *scale, float *x) {
    const bool scaled = scale != NULL && scale->factor != NULL;
    if (scaled && scale->centre != NULL)
        for (int64_t j = 0; j < features; j++) x[j] = (float)(-scale->centre[j] * scale->factor[j]);
    else
        memset(x, 0, (size_t)features * sizeof *x);
    for (int64_t e = block->row_start[row]; e < block->row_start[row + 1]; e++) {
        const uint64_t j = block->col != NULL ? block->col[e] : block->packed != NULL ? pli_packed_at(block->packed, e) : block->key[e];
        const double   value = block->value != NULL ? (double)block->value[e] : 1;
        if (j >= (uint64_t)features) continue; /* a feature that the model does not know */
        if (!scaled) x[j] = (float)value;
        else x[j] = (float)(scale->factor[j] * (scale->centre != NULL ? value - scale->centre[j] : value));
    }
}

void pli_net_feed(const pli_net *net, const float *values, plait_feed *feeds) {
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_tensor like = plait_graph_variable_initial(net->graph, p);
        feeds[p] = (plait_feed){ net->param[p].value, plait_tensor_of(PLAIT_F32, like.shape, values + net->param[p].at) };
    }
}

plait_status pli_net_score(const pli_net *net, plait_session *session, const float *values, const pli_block *block,
                           bool (*each)(void *user, int64_t row, const double *score), void *user, plait_error *err) {
    const int64_t f = net->linear->features, k = net->linear->columns;
    plait_feed    feeds[PLI_NET_PARAMS + 1];
    float        *x = pli_array((size_t)(ROWS_AT_ONCE * f), sizeof *x);
    float        *scores = pli_array((size_t)(ROWS_AT_ONCE * k), sizeof *scores);
    double       *score = pli_array((size_t)k, sizeof *score);
    plait_status  status = PLAIT_OK;
    bool          going = true;
    if (x == NULL || scores == NULL || score == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for a net's scores");
    pli_net_feed(net, values, feeds + 1);
    for (int64_t first = 0; status == PLAIT_OK && going && first < block->rows; first += ROWS_AT_ONCE) {
        const int64_t n = block->rows - first < ROWS_AT_ONCE ? block->rows - first : ROWS_AT_ONCE;
        for (int64_t r = 0; r < n; r++) pli_net_row(block, first + r, f, NULL, x + r * f);
        feeds[0] = (plait_feed){ net->x, plait_tensor_of(PLAIT_F32, plait_shape_2(n, f), x) };
        plait_fetch fetch = { .value = net->scores, .tensor = { .data = scores }, .bytes = (size_t)(n * k) * sizeof *scores };
        status = plait_session_run(session, feeds, net->n_params + 1, &fetch, 1, NULL, 0, err);
        for (int64_t r = 0; status == PLAIT_OK && going && r < n; r++) {
            for (int64_t c = 0; c < k; c++) score[c] = (double)scores[r * k + c];
            going = each(user, first + r, score);
        }
    }
    pli_free(x);
    pli_free(scores);
    pli_free(score);
    return status;
}
