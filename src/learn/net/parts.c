/* Training of a net that no rank gathers: one in stages or columns, whose ranks have their own pieces alone.
 *
 *     a rank's solution is its own pieces, in the data's units
 *     rows are judged through all ranks of a replica (parts_judge.c), after an epoch and at the end
 *     values are laid one after the other into a temporary file, a block of rows at a time, and mapped: where the
 *     weights are told (--tensorboard), where they are the best so far (--validation), and for the model
 *
 * So no rank needs memory for more than its own pieces. Whoever reads a whole solution's values reads them out of the
 * file.
 *
 * All ranks still gather the net where one of them may die (--replicas 2), since a broken replica judges nothing; where
 * rows are scored by another graph than that of training (dropout); and where a place by hand has put the first layer's
 * weights and biases apart, whose units depend on each other. */
#include <math.h>
#include <string.h>

#include "learn/net/stages.h"

enum { BLOCK_VALUES = 1 << 18 }; /* of a row block on its way to the file, about */

/* Is each piece of the first layer's weights on the rank that has its biases? */
static bool has_first_together(const pli_run *run) {
    const pli_net *net = pli_net_trained(run);
    const pli_stages *stages = pli_net_fit_of(run)->stages;
    for (int32_t p = 0; p < net->n_params; p++) {
        bool together = net->param[p].of != 0;
        for (int32_t b = 0; !together && b < net->n_params; b++)
            together = net->param[b].of == 1 && pli_stages_of(stages, b) == pli_stages_of(stages, p);
        if (!together) return false;
    }
    return true;
}

bool pli_net_in_parts(const pli_run *run) {
    const pli_net_fit *n = pli_net_fit_of(run);
    return n->stages != NULL && pli_run_stages(run) > 1 && run->opts->replicas < 2 && n->net->calm == NULL &&
           !n->file.drops && (n->net->kind->open != NULL || has_first_together(run));
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

/* The last layer's: a score is mean + spread (h w' + b'). */
static void last_to_data_units(const pli_run *run, const int64_t at[PLI_NET_PARAMS], float *values) {
    const pli_net       *net = pli_net_trained(run);
    const pli_net_units *u = &pli_net_fit_of(run)->net->units;
    const int32_t        biases = pli_net_fit_of(run)->net->n_params - 1;
    if (u->spread == 1 && u->mean == 0) return;
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *param = &net->param[p];
        if (param->of < biases - 1 || !pli_stages_have(pli_net_fit_of(run)->stages, p)) continue;
        for (int64_t i = 0; i < param->rows * param->cols; i++) {
            const double x = u->spread * (double)values[at[p] + i];
            values[at[p] + i] = (float)(param->of == biases ? u->mean + x : x);
        }
    }
}

/* A piece of the first layer has its columns of weights and biases, so it knows all that the scale asks for. */
static void to_data_units(const pli_run *run, float *values) {
    const pli_net_fit   *n = pli_net_fit_of(run);
    int64_t              at[PLI_NET_PARAMS];
    int32_t              w = 0, b = 0;
    const pli_net_param *weights = own_of(run, 0, &w), *biases = own_of(run, 1, &b);
    (void)pli_net_own_values(run, at);
    if (weights != NULL && biases != NULL) {
        pli_net_param first[] = { *weights, *biases };
        first[0].at = at[w];
        first[1].at = at[b];
        pli_net_features_to_data_units(n->net->even, first, &n->fit.scale, values);
    }
    last_to_data_units(run, at, values);
}

plait_status pli_parts_extract(pli_run *run, pli_solution *solution_out) {
    int64_t       at[PLI_NET_PARAMS];
    const int64_t own = pli_net_own_values(run, at);
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(pli_solution_make_flat(own > 0 ? own : 1, solution_out, run->err)); /* a stage may have no variables */
    PLI_TRY(pli_net_read_values(run, at, solution_out->flat));
    to_data_units(run, solution_out->flat);
    return PLAIT_OK;
}

const float *pli_parts_own(const pli_run *run, const pli_solution *solution) {
    const float *own = pli_net_fit_of(run)->parts.own;
    return own != NULL ? own : solution->flat;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* Sums over this rank's own pieces; the first rank of each replica has a share. */
static plait_status add_penalty(pli_run *run, const float *values) {
    const pli_net *net = pli_net_trained(run);
    int64_t        at[PLI_NET_PARAMS];
    double         sum = 0;
    (void)pli_net_own_values(run, at);
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *param = &net->param[p];
        const bool penalised = pli_net_fit_of(run)->net->param[param->of].penalised;
        if (!penalised || !pli_stages_have(pli_net_fit_of(run)->stages, p)) continue;
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

/* Takes own pieces out of a whole solution. */
static plait_status take_own(pli_run *run, const float *whole) {
    pli_net_fit   *n = pli_net_fit_of(run);
    const pli_net *net = pli_net_trained(run);
    int64_t        at[PLI_NET_PARAMS];
    const int64_t  own = pli_net_own_values(run, at);
    n->parts.own = pli_array((size_t)(own > 0 ? own : 1), sizeof *n->parts.own);
    if (n->parts.own == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a net's values");
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_param *of = &n->net->param[net->param[p].of];
        if (pli_stages_have(n->stages, p)) pli_columns_take(of, &net->param[p], whole + of->at, n->parts.own + at[p]);
    }
    return PLAIT_OK;
}

plait_status pli_parts_finish(pli_run *run) {
    const pli_solution *solution = &pli_net_fit_of(run)->fit.solution;
    if (solution->spool != NULL) PLI_TRY(take_own(run, solution->flat)); /* it is the best one */
    return add_penalty(run, pli_parts_own(run, solution));
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
    const pli_net_span   at = pli_columns_span(part);
    const size_t         bytes = (size_t)(n * at.cols) * sizeof *j->piece;
    pli_stages          *stages = pli_net_fit_of(j->run)->stages;
    for (int64_t r = 0; pli_stages_have(stages, p) && r < n; r++) {
        const float *row = j->own + j->at[p] + (first - at.row0 + r) * at.row_step;
        for (int64_t c = 0; c < at.cols; c++) j->piece[r * at.cols + c] = row[c * at.col_step];
    }
    PLI_TRY(plait_comm_broadcast(j->run->comm, j->piece, bytes, pli_stages_rank_of(stages, p)));
    for (int64_t r = 0; r < n; r++)
        memcpy(j->rows + r * cols + at.col0, j->piece + r * at.cols, (size_t)at.cols * sizeof *j->rows);
    return PLAIT_OK;
}

/* How many rows from `first` on have the same pieces, at most `most`. */
static int64_t rows_alike(const pli_net *net, int32_t of, int64_t first, int64_t most) {
    for (int32_t p = 0; p < net->n_params; p++) {
        const pli_net_span at = pli_columns_span(&net->param[p]);
        if (net->param[p].of != of) continue;
        if (at.row0 > first && at.row0 - first < most) most = at.row0 - first;
        const int64_t end = at.row0 + at.rows;
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
            const pli_net_span at = pli_columns_span(&pieces->param[p]);
            if (pieces->param[p].of == of && at.row0 <= first && first < at.row0 + at.rows)
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
    *solution = (pli_solution){ .rows = net->values, .flat = (float *)(uintptr_t)data, .spool = j->spool };
    j->spool = NULL;
    return PLAIT_OK;
}

static plait_status join_own(const pli_run *run, const float *own, pli_solution *whole_out) {
    joining j = { .run = run, .own = own };
    (void)pli_net_own_values(run, j.at);
    const plait_status status = join(&j, whole_out);
    pli_spool_destroy(&j.spool);
    pli_free(j.rows);
    pli_free(j.piece);
    return status;
}

plait_status pli_parts_join(const pli_run *run, pli_solution *solution) {
    pli_solution whole;
    if (!pli_net_in_parts(run) || solution->spool != NULL) return PLAIT_OK;
    PLI_TRY(join_own(run, solution->flat, &whole));
    pli_solution_free(solution);
    *solution = whole;
    return PLAIT_OK;
}

plait_status pli_parts_join_last(pli_run *run) {
    pli_solution *solution = &pli_net_fit_of(run)->fit.solution;
    if (solution->spool != NULL) return PLAIT_OK;
    float *own = solution->flat;
    PLI_TRY(join_own(run, own, solution));
    pli_net_fit_of(run)->parts.own = own;
    return PLAIT_OK;
}
