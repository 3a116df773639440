/* Scores rows of blocks by a net, some hundred at a time. */
#include <string.h>

#include "learn/net/net.h"

enum { ROWS_AT_ONCE = 256, LABELS_AT_ONCE = 4096, SCORES_AT_ONCE = 1 << 22 };

void pli_net_feed(const pli_net *net, const float *values, plait_feed *feeds) {
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_tensor like = plait_graph_variable_initial(net->graph, p);
        feeds[p] =
            (plait_feed){ net->param[p].value, plait_tensor_of(PLAIT_F32, like.shape, values + net->param[p].at) };
    }
}

/* --- scores ------------------------------------------------------------------------------------------------------ */

/* The memory of a pass over a block's rows. */
typedef struct score_pass {
    pli_net_rows rows;
    float       *scores; /* [most row_labels, K] */
    double      *score;  /* [K] */
    int64_t      most;   /* so many rows at once */
} score_pass;

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a net's scores");
}

static plait_status score_rows(const pli_net *net, plait_session *session, plait_feed *feeds, const pli_block *block,
                               int64_t first, int64_t n, score_pass *p, plait_error *err) {
    for (int64_t r = 0; r < n; r++)
        if (pli_net_rows_put(net, block, first + r, NULL, &p->rows, r) < 0) return no_memory(err);
    const int32_t fed = pli_net_rows_feed(net, &p->rows, n, &feeds[net->n_params]);
    if (fed < 0) return no_memory(err);
    plait_fetch fetch = { .value = net->scores,
                          .tensor = { .data = p->scores },
                          .bytes = (size_t)(n * net->row_labels * net->goal->columns) * sizeof *p->scores };
    return plait_session_run(session, feeds, net->n_params + fed, &fetch, 1, NULL, 0, err);
}

static int64_t rows_at_once(int64_t labels, int64_t k) {
    const int64_t most = labels == 1 ? ROWS_AT_ONCE : (LABELS_AT_ONCE + labels - 1) / labels;
    const int64_t fit = SCORES_AT_ONCE / (labels * k);
    return fit < 1 ? 1 : fit < most ? fit : most;
}

plait_status pli_net_score(const pli_net *net, plait_session *session, const float *values, const pli_block *block,
                           bool (*each)(void *user, int64_t row, double label, const double *score), void *user,
                           plait_error *err) {
    const int64_t k = net->goal->columns, labels = net->row_labels;
    plait_feed    feeds[PLI_NET_PARAMS + PLI_NET_FEEDS];
    score_pass    p = { .most = rows_at_once(labels, k) };
    plait_status  status = PLAIT_OK;
    bool          going = true;
    p.scores = pli_array((size_t)(p.most * labels * k), sizeof *p.scores);
    p.score = pli_array((size_t)k, sizeof *p.score);
    if (p.scores == NULL || p.score == NULL || !pli_net_rows_reserve(net, &p.rows, p.most))
        status = no_memory(err);
    pli_net_feed(net, values, feeds);
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
