/* Rows are judged by a net in parts (parts.c), through all ranks of a replica: forward alone, the pieces fed in the
 * tables' place, in the data's units.
 *
 *     a net that has scores     the first rank of the replica gets them, and judges rows as it would by a whole net:
 *                               the same rows at once, the same sums, so the same bits where layers lie in stages
 *     one without (classes.c)   the graph judges the rows, and only sums come back
 *
 * The ranks that hold rows lead; the others of a replica follow until there are no more. */
#include <string.h>

#include "learn/net/stages.h"

/* Feeds of all variables; only own ones have data. own: the rank's pieces. */
static void feed_pieces(const pli_run *run, const float *own, plait_feed *feeds) {
    const pli_net *net = pli_net_trained(run);
    int64_t        at[PLI_NET_PARAMS];
    (void)pli_net_own_values(run, at);
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_shape shape = plait_graph_variable_initial(net->graph, p).shape;
        const bool        has = pli_stages_have(pli_net_fit_of(run)->stages, p);
        feeds[p] = (plait_feed){ net->param[p].value, plait_tensor_of(PLAIT_F32, shape, has ? own + at[p] : NULL) };
    }
}

static bool leads(const pli_run *run) { return pli_stages_stage(pli_net_fit_of(run)->stages) == 0; }

/* --- by scores ---------------------------------------------------------------------------------------------------- */

typedef struct scorer {
    const pli_run *run;
    plait_feed     values[PLI_NET_PARAMS];
    plait_error   *err;
} scorer;

static plait_status follow(const scorer *s) {
    bool more = true;
    while (more) PLI_TRY(pli_stages_score(pli_net_fit_of(s->run)->stages, s->values, NULL, &more));
    return PLAIT_OK;
}

/* A rank of another stage than the first has no rows: it helps until those who have some are done. */
static plait_status open(const void *form, const pli_solution *solution, void **scorer_out, plait_error *err) {
    scorer *s = pli_calloc(1, sizeof *s);
    *scorer_out = s;
    if (s == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a net's scores");
    s->run = form;
    feed_pieces(s->run, pli_parts_own(s->run, solution), s->values);
    return leads(s->run) ? PLAIT_OK : follow(s);
}

/* If the others have gone, what follows says so. */
static void close(void *user) {
    scorer *s = user;
    bool    more;
    if (s != NULL && leads(s->run)) (void)pli_stages_score(pli_net_fit_of(s->run)->stages, s->values, NULL, &more);
    pli_free(s);
}

static plait_status score_rows(void *user, const pli_block *block, int64_t first, int64_t n, pli_scored *out,
                               plait_error *err) {
    scorer        *s = user;
    const pli_part part = { .block = block, .first = first, .rows = n };
    pli_stages    *stages = pli_net_fit_of(s->run)->stages;
    bool           more;
    plait_status   status = pli_stages_score(stages, s->values, &part, &more);
    if (status < 0 && err != NULL) *err = *s->run->err;
    *out = pli_stages_scored(stages);
    return status;
}

static plait_status score_block(const void *form, const pli_solution *solution, void *user, const pli_block *block,
                                pli_score_fn *each, void *each_user, plait_error *err) {
    const pli_net *net = pli_net_fit_of((const pli_run *)form)->net;
    pli_net_pass   pass = { .block = block, .each = each, .user = each_user };
    (void)solution;
    PLI_TRY(pli_net_pass_begin(net, &pass, err));
    const plait_status status = pli_net_score_by(net, score_rows, user, block, pli_net_pass_row, &pass, err);
    pli_net_pass_end(&pass);
    return status;
}

static const pli_scoring_ops by_scores = {
    .open = open, .close = close, .block = score_block, .one_by_one = true
};

pli_scoring pli_parts_scoring(const pli_run *run, const pli_solution *of) {
    const pli_net *net = pli_net_fit_of(run)->net;
    return (pli_scoring){ &by_scores, run, of, net->row_labels };
}

/* --- by sums ------------------------------------------------------------------------------------------------------ */

/* Rows of a block, as many at once as in training. */
typedef struct judging {
    const pli_run    *run;
    const plait_feed *values;
    bool (*want)(void *user, int64_t row);
    uint32_t *order; /* [most] the wanted ones of them */
    int64_t   most;
} judging;

static plait_status judge_rows(const judging *j, const pli_block *block, int64_t from, int64_t end, pli_sums *sums) {
    int64_t  n = 0;
    bool     more;
    pli_sums own;
    for (int64_t r = from; r < end; r++)
        if (j->want == NULL || j->want((void *)(uintptr_t)j->run, block->first_row + r)) j->order[n++] = (uint32_t)r;
    const pli_part part = { .block = block, .order = j->order, .rows = n };
    if (n == 0) return PLAIT_OK;
    PLI_TRY(pli_stages_judge(pli_net_fit_of(j->run)->stages, j->values, &part, &more, &own));
    pli_sums_add(sums, &own);
    return PLAIT_OK;
}

static plait_status judge_blocks(const judging *j, const pli_dataset *data, pli_total *total) {
    pli_sums none;
    bool     more = true;
    *total = (pli_total){ 0 };
    for (int32_t b = 0; leads(j->run) && b < pli_dataset_own_blocks(data); b++) {
        const pli_block *block = pli_dataset_block(data, b);
        pli_sums         sums = { 0 };
        for (int64_t from = 0; from < block->rows; from += j->most)
            PLI_TRY(judge_rows(j, block, from, from + j->most < block->rows ? from + j->most : block->rows, &sums));
        pli_total_add(total, &sums);
    }
    while (more) {
        PLI_TRY(pli_stages_judge(pli_net_fit_of(j->run)->stages, j->values, NULL, &more, &none));
        if (leads(j->run)) break;
    }
    return PLAIT_OK;
}

plait_status pli_parts_judged(const pli_run *run, const pli_goal *goal, const pli_solution *solution,
                              const pli_dataset *data, bool (*want)(void *user, int64_t row), pli_total *total_out,
                              bool *done_out) {
    pli_net_fit  *n = pli_net_fit_of(run);
    const int64_t share = run->batch / pli_run_holders(run), most = share > 0 ? share : 1;
    plait_feed    values[PLI_NET_PARAMS];
    *done_out = pli_net_in_parts(run) && n->pieces != NULL && n->pieces->loss >= 0;
    if (!*done_out) return PLAIT_OK;
    feed_pieces(run, pli_parts_own(run, solution), values);
    judging j = { .run = run, .values = values, .want = want, .most = most,
                  .order = pli_array((size_t)most, sizeof(uint32_t)) };
    if (j.order == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to judge rows");
    n->pieces->units.goal = goal;
    const plait_status status = judge_blocks(&j, data, total_out);
    n->pieces->units.goal = &n->fit.goal;
    pli_free(j.order);
    return status;
}
