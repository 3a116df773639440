/* Scores rows of blocks by a net, some hundred at a time. */
#include <string.h>

#include "learn/net/fit.h"

enum { ROWS_AT_ONCE = 256, LABELS_AT_ONCE = 4096, SCORES_AT_ONCE = 1 << 22 };

void pli_net_feed(const pli_net *net, const float *values, plait_feed *feeds) {
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_tensor like = plait_graph_variable_initial(net->graph, p);
        feeds[p] =
            (plait_feed){ net->param[p].value, plait_tensor_of(PLAIT_F32, like.shape, values + net->param[p].at) };
    }
}

/* --- scores ------------------------------------------------------------------------------------------------------ */

/* The memory of a pass over a block's rows in one session. */
typedef struct score_pass {
    const pli_net *net;
    plait_session *session;
    plait_feed     feeds[PLI_NET_PARAMS + PLI_NET_FEEDS];
    pli_net_rows   rows;
    float         *scores; /* [most row_labels, K] */
} score_pass;

static plait_status no_memory(plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory for a net's scores");
}

static plait_status score_rows(void *user, const pli_block *block, int64_t first, int64_t n, pli_scored *out,
                               plait_error *err) {
    score_pass    *p = user;
    const pli_net *net = p->net;
    for (int64_t r = 0; r < n; r++)
        if (pli_net_rows_put(net, block, first + r, NULL, &p->rows, r) < 0) return no_memory(err);
    const int32_t fed = pli_net_rows_feed(net, &p->rows, n, &p->feeds[net->n_params]);
    if (fed < 0) return no_memory(err);
    plait_fetch fetch = { .value = net->scores,
                          .tensor = { .data = p->scores },
                          .bytes = (size_t)(n * net->row_labels * net->goal->columns) * sizeof *p->scores };
    *out = (pli_scored){ p->scores, p->rows.label };
    return plait_session_run(p->session, p->feeds, net->n_params + fed, &fetch, 1, NULL, 0, err);
}

static int64_t rows_at_once(int64_t labels, int64_t k) {
    const int64_t most = labels == 1 ? ROWS_AT_ONCE : (LABELS_AT_ONCE + labels - 1) / labels;
    const int64_t fit = SCORES_AT_ONCE / (labels * k);
    return fit < 1 ? 1 : fit < most ? fit : most;
}

plait_status pli_net_score_by(const pli_net *net, pli_net_score_fn *rows, void *rows_user, const pli_block *block,
                              bool (*each)(void *user, int64_t row, double label, const double *score), void *user,
                              plait_error *err) {
    const int64_t k = net->goal->columns, labels = net->row_labels, most = rows_at_once(labels, k);
    double       *score = pli_array((size_t)k, sizeof *score);
    plait_status  status = score != NULL ? PLAIT_OK : no_memory(err);
    bool          going = true;
    for (int64_t first = 0; status == PLAIT_OK && going && first < block->rows; first += most) {
        const int64_t n = block->rows - first < most ? block->rows - first : most;
        pli_scored    scored = { NULL, NULL };
        status = rows(rows_user, block, first, n, &scored, err);
        for (int64_t i = 0; status == PLAIT_OK && going && i < n * labels; i++) {
            const int64_t row = first + i / labels;
            if (i % labels < labels - pli_block_labels(block, row) && labels > 1) continue;
            for (int64_t c = 0; c < k; c++) score[c] = (double)scored.scores[i * k + c];
            going = each(user, row, scored.label[i], score);
        }
    }
    pli_free(score);
    return status;
}

plait_status pli_net_score(const pli_net *net, plait_session *session, const float *values, const pli_block *block,
                           bool (*each)(void *user, int64_t row, double label, const double *score), void *user,
                           plait_error *err) {
    const int64_t k = net->goal->columns, labels = net->row_labels, most = rows_at_once(labels, k);
    score_pass    p = { .net = net, .session = session };
    plait_status  status = PLAIT_OK;
    p.scores = pli_array((size_t)(most * labels * k), sizeof *p.scores);
    if (p.scores == NULL || !pli_net_rows_reserve(net, &p.rows, most)) status = no_memory(err);
    pli_net_feed(net, values, p.feeds);
    if (status == PLAIT_OK) status = pli_net_score_by(net, score_rows, &p, block, each, user, err);
    pli_net_rows_free(&p.rows);
    pli_free(p.scores);
    return status;
}

plait_status pli_net_pass_begin(const pli_net *net, pli_net_pass *pass, plait_error *err) {
    pass->scratch = pli_array((size_t)net->goal->columns, 2 * sizeof *pass->scratch);
    return pass->scratch != NULL ? PLAIT_OK : no_memory(err);
}

void pli_net_pass_end(pli_net_pass *pass) { pli_free(pass->scratch); }

bool pli_net_pass_row(void *pass, int64_t row, double label, const double *score) {
    const pli_net_pass *p = pass;
    return p->each(p->user, p->block, row, label, score, p->scratch);
}
