/* The tables of a net: one for each parameter that this rank has, with the run's update rule, first values and
 * penalties.
 *
 * First values depend on the seed and the parameter's place in the net, never on who has it. Where a rank has a piece
 * of a parameter (columns.c), values and penalties are those of the whole, of which the piece is taken. */
#include <string.h>

#include "learn/net/stages.h"
#include "table/table.h"

static bool is_scaled(const pli_run *run, int32_t p) {
    return p == 0 && pli_net_fit_of(run)->fit.scale.factor != NULL && (run->l1 > 0 || run->l2 > 0);
}

/* The penalty's factors of a piece of a parameter. */
static void factors_of(const pli_run *run, const pli_net_param *part, float *factor) {
    const pli_net_fit *n = pli_net_fit_of(run);
    for (int64_t r = 0; r < part->rows; r++) {
        const int64_t feature = n->net->even ? 0 : part->row0 + r;
        const float   own = is_scaled(run, part->of)
                                ? (float)pli_scale_penalty(&n->fit.scale, feature, run->l1, run->l2)
                                : n->net->param[part->of].penalised;
        for (int64_t c = 0; c < part->cols; c++) factor[r * part->cols + c] = own;
    }
}

void pli_net_penalty_factors(const pli_run *run, int32_t p, float *factor) {
    const pli_net_param *param = &pli_net_fit_of(run)->net->param[p];
    factors_of(run, &(pli_net_param){ .of = p, .rows = param->rows, .cols = param->cols }, factor);
}

/* The penalty's factors of a piece; NULL: all 1. */
static plait_status penalty_of(const pli_run *run, const pli_net_param *part, float **penalty_out) {
    *penalty_out = NULL;
    if (part->penalised && !is_scaled(run, part->of)) return PLAIT_OK;
    float *factor = pli_array((size_t)(part->rows * part->cols), sizeof *factor);
    if (factor == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for penalties");
    factors_of(run, part, factor);
    *penalty_out = factor;
    return PLAIT_OK;
}

void pli_net_first_values(const pli_run *run, float *values) {
    const pli_net *net = pli_net_fit_of(run)->net;
    if (run->start == NULL) {
        if (pli_net_fit_of(run)->file.text != NULL)
            memcpy(values, pli_net_fit_of(run)->file.first, (size_t)net->values * sizeof *values);
        else
            for (int32_t p = 0; p < net->n_params; p++)
                pli_net_initial(net, p, run->opts->seed, values + net->param[p].at);
        return;
    }
    memcpy(values, pli_fitted_solution(run->start)->flat, (size_t)net->values * sizeof *values);
    pli_net_from_data_units(net, &pli_net_fit_of(run)->fit.scale, values);
}

/* Where first values come from; both NULL: they are drawn. */
typedef struct origin {
    float         *given; /* of the whole net */
    pli_net_start *start; /* a model's file */
} origin;

/* The first values of a piece. */
static plait_status first_of(const pli_run *run, const pli_net_param *part, const origin *from, float **values_out) {
    const pli_net       *net = pli_net_fit_of(run)->net;
    const pli_net_param *whole = &net->param[part->of];
    *values_out = pli_array((size_t)(part->rows * part->cols), sizeof **values_out);
    if (*values_out == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the first weights");
    if (from->given != NULL) pli_columns_take(whole, part, from->given + whole->at, *values_out);
    else if (from->start != NULL) pli_net_start_piece(from->start, part, *values_out);
    else pli_net_initial_piece(net, part, run->opts->seed, *values_out);
    return PLAIT_OK;
}

static plait_status make_table(pli_run *run, const plait_table_opts *like, int32_t p, const float *initial,
                               const float *penalty) {
    pli_net_fit         *n = pli_net_fit_of(run);
    const pli_net_param *part = &pli_net_trained(run)->param[p];
    plait_table_opts     t = *like;
    double               l1, l2;
    t.name = part->name;
    t.rows = part->rows;
    t.cols = part->cols;
    t.keyed = pli_net_by_row(pli_net_trained(run), p);
    if (t.keyed) t.sharded = 0;
    t.initial = initial;
    t.penalty = penalty;
    t.group = pli_stages_group(n->stages);
    pli_net_last_factors(n->net, part->of, &l1, &l2);
    t.rule.l1 *= l1 / n->net->units.unit;
    t.rule.l2 *= l2 / n->net->units.unit;
    PLI_TRY(pli_run_make_table(run, &t, &n->table[p]));
    const pli_net_param *of = &n->net->param[part->of];
    const pli_piece      whole = { part->by_class ? of->cols : of->rows, part->by_class ? of->rows : of->cols,
                                   part->row0, part->col0 };
    if (part->rows != whole.rows || part->cols != whole.cols) n->table[p]->whole = whole;
    return PLAIT_OK;
}

static plait_status create_table(pli_run *run, const plait_table_opts *like, int32_t p, const origin *from) {
    const pli_net_param *part = &pli_net_trained(run)->param[p];
    float               *initial = NULL, *penalty = NULL;
    plait_status         status = first_of(run, part, from, &initial);
    if (status >= 0) status = penalty_of(run, part, &penalty);
    if (status >= 0) status = make_table(run, like, p, initial, penalty);
    pli_free(initial);
    pli_free(penalty);
    return status;
}

plait_status pli_net_make_table(pli_run *run, int32_t p) {
    plait_table_opts like;
    float           *penalty = NULL;
    PLI_TRY(pli_run_table_opts(run, &like));
    plait_status status = penalty_of(run, &pli_net_trained(run)->param[p], &penalty);
    if (status >= 0) status = make_table(run, &like, p, NULL, penalty);
    pli_free(penalty);
    return status;
}

static plait_status find_origin(const pli_run *run, origin *from) {
    const pli_net_fit *n = pli_net_fit_of(run);
    *from = (origin){ NULL, NULL };
    if (run->start == NULL && n->file.text == NULL) return PLAIT_OK;
    if (run->start != NULL && pli_run_stages(run) > 1) return pli_net_start_open(run, &from->start);
    from->given = pli_array((size_t)n->net->values, sizeof *from->given);
    if (from->given == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the first weights");
    pli_net_first_values(run, from->given);
    return PLAIT_OK;
}

/* Drawn values are made table by table: no rank needs memory for those of other ranks. */
plait_status pli_net_create_tables(pli_run *run) {
    plait_table_opts like;
    origin           from;
    PLI_TRY(find_origin(run, &from));
    plait_status status = pli_run_table_opts(run, &like);
    for (int32_t p = 0; status == PLAIT_OK && p < pli_net_trained(run)->n_params; p++)
        if (pli_stages_have(pli_net_fit_of(run)->stages, p)) status = create_table(run, &like, p, &from);
    pli_free(from.given);
    pli_net_start_close(&from.start);
    return status;
}
