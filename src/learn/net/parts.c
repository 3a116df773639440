/* The end of a training whose net no rank has as a whole: one whose classes lie over ranks (classes.c).
 *
 *     a rank's solution is its own pieces, while it is judged
 *     rows are judged as they are trained on: forward through the ranks, the pieces fed in the tables' place
 *     the model's values are laid one after the other into a temporary file, a block of rows at a time, and mapped
 *
 * So no rank needs memory for more than its own pieces. Whoever reads such a model's values reads them out of the
 * file. A run that validates, or tells its weights (--tensorboard), needs the whole net after each epoch; then every
 * rank gathers it, as a net in stages does. */
#include <math.h>
#include <string.h>

#include "learn/net/stages.h"

enum { BLOCK_VALUES = 1 << 18 }; /* of a row block on its way to the file, about */

bool pli_net_in_parts(const pli_run *run) {
    const pli_net *pieces = pli_net_fit_of(run)->pieces;
    return pieces != NULL && pieces->loss >= 0 && run->validation == NULL && !(run->fraction > 0) &&
           run->opts->weights == NULL && pli_net_fit_of(run)->fit.best.flat == NULL;
}

/* --- own pieces --------------------------------------------------------------------------------------------------- */

int64_t pli_net_own_values(const pli_run *run, int64_t at[PLI_NET_PARAMS]) {
    const pli_net *net = pli_net_trained(run);
    int64_t        values = 0;
    for (int32_t p = 0; p < net->n_params; p++) {
        at[p] = values;
        if (pli_stages_have(pli_net_fit_of(run)->stages, p)) values += net->param[p].rows * net->param[p].cols;
    }
    return values;
}

plait_status pli_parts_extract(pli_run *run, pli_solution *solution_out) {
    int64_t at[PLI_NET_PARAMS];
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(pli_solution_make_flat(pli_net_own_values(run, at), solution_out, run->err));
    return pli_net_read_values(run, at, solution_out->flat);
}

/* The parameter that this rank has of the whole net's parameter `of`; NULL: none. */
static const pli_net_param *own_of(const pli_run *run, int32_t of, int32_t *p_out) {
    const pli_net *net = pli_net_trained(run);
    for (int32_t p = 0; p < net->n_params; p++)
        if (net->param[p].of == of && pli_stages_have(pli_net_fit_of(run)->stages, p)) {
            *p_out = p;
            return &net->param[p];
        }
    return NULL;
}

/* A piece of the first layer has its columns of weights and biases, so it knows all that the scale asks for. */
static void to_data_units(const pli_run *run, float *values) {
    const pli_net_fit   *n = pli_net_fit_of(run);
    int64_t              at[PLI_NET_PARAMS];
    int32_t              w = 0, b = 0;
    const pli_net_param *weights = own_of(run, 0, &w), *biases = own_of(run, 1, &b);
    (void)pli_net_own_values(run, at);
    if (weights == NULL || biases == NULL) return;
    pli_net_param first[] = { *weights, *biases };
    first[0].at = at[w];
    first[1].at = at[b];
    pli_net_features_to_data_units(n->net->even, first, &n->fit.scale, values);
}

/* Sums over this rank's own pieces; the first rank of each replica has a share. */
static plait_status add_penalty(pli_run *run, const float *values) {
    const pli_net *net = pli_net_trained(run);
    int64_t        at[PLI_NET_PARAMS];
    double         sum = 0;
    (void)pli_net_own_values(run, at);
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *param = &net->param[p];
        if (!param->penalised || !pli_stages_have(pli_net_fit_of(run)->stages, p)) continue;
        for (int64_t i = 0; i < param->rows * param->cols; i++) {
            const double x = (double)values[at[p] + i];
            sum += run->l2 / 2 * x * x + run->l1 * fabs(x);
        }
    }
    if (pli_stages_replica(pli_net_fit_of(run)->stages) > 0) sum = 0;
    PLI_TRY(plait_comm_allreduce(run->comm, &sum, 1, PLAIT_F64, PLAIT_SUM));
    pli_net_fit_of(run)->parts.penalty = sum;
    return PLAIT_OK;
}

/* --- judged ------------------------------------------------------------------------------------------------------- */

/* Feeds of all variables; only own ones have data. */
static void feed_pieces(const pli_run *run, const float *values, plait_feed *feeds) {
    const pli_net *net = pli_net_trained(run);
    int64_t        at[PLI_NET_PARAMS];
    (void)pli_net_own_values(run, at);
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_shape shape = plait_graph_variable_initial(net->graph, p).shape;
        const bool        own = pli_stages_have(pli_net_fit_of(run)->stages, p);
        feeds[p] = (plait_feed){ net->param[p].value, plait_tensor_of(PLAIT_F32, shape, own ? values + at[p] : NULL) };
    }
}

/* The replica's own rows of a block, as many at once as in training. */
static plait_status judge_block(const pli_run *run, const plait_feed *values, const pli_block *block,
                                pli_total *total) {
    const int64_t share = run->batch / pli_run_holders(run), most = share > 0 ? share : 1;
    pli_sums      sums = { 0 };
    for (int64_t from = 0; from < block->rows; from += most) {
        const int64_t  n = block->rows - from < most ? block->rows - from : most;
        const pli_part part = { .block = block, .first = from, .rows = n };
        pli_sums       own;
        bool           more;
        PLI_TRY(pli_stages_judge(pli_net_fit_of(run)->stages, values, &part, &more, &own));
        pli_sums_add(&sums, &own);
    }
    pli_total_add(total, &sums);
    return PLAIT_OK;
}

/* The ranks that hold rows lead; the others of a replica follow until there are no more. */
static plait_status judge(const pli_run *run, const pli_dataset *data, const float *flat, pli_total *total) {
    pli_stages *stages = pli_net_fit_of(run)->stages;
    plait_feed  values[PLI_NET_PARAMS];
    pli_sums    none;
    bool        more = true;
    *total = (pli_total){ 0 };
    feed_pieces(run, flat, values);
    if (plait_comm_rank(run->comm) < pli_run_holders(run)) {
        for (int32_t b = 0; b < pli_dataset_own_blocks(data); b++)
            PLI_TRY(judge_block(run, values, pli_dataset_block(data, b), total));
        return pli_stages_judge(stages, values, NULL, &more, &none);
    }
    while (more) PLI_TRY(pli_stages_judge(stages, values, NULL, &more, &none));
    return PLAIT_OK;
}

/* While the sessions are there. The goal of a test has no class weights. */
static plait_status judge_all(pli_run *run, const float *flat) {
    pli_net_fit *n = pli_net_fit_of(run);
    pli_goal     plain = n->fit.goal;
    bool         ends = run->interrupted;
    PLI_TRY(plait_comm_broadcast(run->comm, &ends, sizeof ends, pli_comm_lead(run->comm)));
    if (ends) return PLAIT_OK;
    if (!run->stream) PLI_TRY(judge(run, run->data, flat, &n->parts.trained));
    if (run->test == NULL) return PLAIT_OK;
    plain.class_weight = NULL;
    n->pieces->units.goal = &plain;
    const plait_status status = judge(run, run->test, flat, &n->parts.tested);
    n->pieces->units.goal = &n->fit.goal;
    return status;
}

plait_status pli_parts_finish(pli_run *run) {
    float *flat = pli_net_fit_of(run)->fit.solution.flat;
    PLI_TRY(judge_all(run, flat));
    to_data_units(run, flat);
    return add_penalty(run, flat);
}

bool pli_parts_judged(const pli_run *run, const pli_dataset *data, pli_total *total_out) {
    const pli_net_fit *n = pli_net_fit_of(run);
    if (!pli_net_in_parts(run)) return false;
    *total_out = data == run->test ? n->parts.tested : n->parts.trained;
    return true;
}

/* --- joined ------------------------------------------------------------------------------------------------------- */

typedef struct joining {
    const pli_run *run;
    const float   *own;    /* this rank's pieces */
    int64_t        at[PLI_NET_PARAMS];
    float         *rows;   /* of the whole parameter */
    float         *piece;  /* as many values */
    pli_spool     *spool;
} joining;

/* Puts rows first .. first + n - 1 of a piece to their columns of j->rows, on all ranks. */
static plait_status take_piece(joining *j, int32_t p, int64_t first, int64_t n, int64_t cols) {
    const pli_net_param *part = &pli_net_trained(j->run)->param[p];
    const size_t         bytes = (size_t)(n * part->cols) * sizeof *j->piece;
    pli_stages          *stages = pli_net_fit_of(j->run)->stages;
    if (pli_stages_have(stages, p)) memcpy(j->piece, j->own + j->at[p] + (first - part->row0) * part->cols, bytes);
    PLI_TRY(plait_comm_broadcast(j->run->comm, j->piece, bytes, pli_stages_rank_of(stages, p)));
    for (int64_t r = 0; r < n; r++)
        memcpy(j->rows + r * cols + part->col0, j->piece + r * part->cols, (size_t)part->cols * sizeof *j->rows);
    return PLAIT_OK;
}

/* How many rows from `first` on have the same pieces, at most `most`. */
static int64_t rows_alike(const pli_net *net, int32_t of, int64_t first, int64_t most) {
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *part = &net->param[p];
        if (part->of != of) continue;
        if (part->row0 > first && part->row0 - first < most) most = part->row0 - first;
        const int64_t end = part->row0 + part->rows;
        if (end > first && end - first < most) most = end - first;
    }
    return most;
}

static plait_status join_param(joining *j, int32_t of, int64_t block) {
    const pli_net       *pieces = pli_net_trained(j->run);
    const pli_net_param *whole = &pli_net_fit_of(j->run)->net->param[of];
    for (int64_t first = 0, n; first < whole->rows; first += n) {
        const int64_t left = whole->rows - first;
        n = rows_alike(pieces, of, first, left < block / whole->cols ? left : block / whole->cols);
        for (int32_t p = 0; p < pieces->n_params; p++) {
            const pli_net_param *part = &pieces->param[p];
            if (part->of == of && part->row0 <= first && first < part->row0 + part->rows)
                PLI_TRY(take_piece(j, p, first, n, whole->cols));
        }
        PLI_TRY(pli_spool_add(j->spool, j->rows, (size_t)(n * whole->cols) * sizeof *j->rows, j->run->err));
    }
    return PLAIT_OK;
}

static plait_status join(joining *j, pli_solution *solution) {
    const pli_net       *net = pli_net_fit_of(j->run)->net;
    const unsigned char *data = NULL;
    int64_t              block = BLOCK_VALUES;
    size_t               bytes = 0;
    for (int32_t p = 0; p < net->n_params; p++)
        if (net->param[p].cols > block) block = net->param[p].cols;
    PLI_TRY(pli_spool_create(1 << 20, NULL, &j->spool, j->run->err));
    j->rows = pli_array((size_t)block, sizeof *j->rows);
    j->piece = pli_array((size_t)block, sizeof *j->piece);
    if (j->rows == NULL || j->piece == NULL) return pli_fail(j->run->err, PLAIT_ENOMEM, "no memory to join a net");
    for (int32_t p = 0; p < net->n_params; p++) PLI_TRY(join_param(j, p, block));
    PLI_TRY(pli_spool_end(j->spool, &data, &bytes, j->run->err));
    pli_solution_free(solution);
    *solution = (pli_solution){ .rows = net->values, .flat = (float *)(uintptr_t)data, .spool = j->spool };
    j->spool = NULL;
    return PLAIT_OK;
}

plait_status pli_parts_join(pli_run *run) {
    pli_solution *solution = &pli_net_fit_of(run)->fit.solution;
    joining       j = { .run = run, .own = solution->flat };
    (void)pli_net_own_values(run, j.at);
    const plait_status status = join(&j, solution);
    pli_spool_destroy(&j.spool);
    pli_free(j.rows);
    pli_free(j.piece);
    return status;
}
