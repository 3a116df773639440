/* learn/net/fit.h - a run of a net: one table for each variable of its graph. */
#ifndef PLI_LEARN_NET_FIT_H
#define PLI_LEARN_NET_FIT_H

#include "learn/net/net.h"
#include "learn/solve/loop.h"
#include "learn/supervised/fitted.h"

typedef struct pli_net_worker pli_net_worker;
typedef struct pli_stages     pli_stages; /* stages.h */

typedef struct pli_net_fit {
    pli_fit         fit;
    pli_net        *net;
    pli_net_file    file; /* the file that the net was made from; text NULL: none */
    plait_table    *table[PLI_NET_PARAMS]; /* NULL: another stage has it */
    pli_net        *pieces; /* the net in columns, or with a sampled softmax; NULL: net itself is trained */
    pli_draws      *draws;  /* of a sampled softmax, on workers that have rows; else NULL */
    pli_stages     *stages; /* NULL: the net is whole, and so are its batches */
    pli_net_worker *worker; /* net_train.c */
    struct {                /* parts.c: of a net that no rank has as a whole */
        float *own; /* this rank's pieces, when the solution is whole */
        double penalty;
    } parts;
} pli_net_fit;

static inline pli_net_fit *pli_net_fit_of(const pli_run *run) { return run->state; }
/** The net whose graph is trained: its parameters are the run's tables. */
static inline const pli_net *pli_net_trained(const pli_run *run) {
    return pli_net_fit_of(run)->pieces != NULL ? pli_net_fit_of(run)->pieces : pli_net_fit_of(run)->net;
}

/** Does the parameter keep its first values? Biases do under --no-intercept. */
static inline bool pli_net_stays(const pli_run *run, const pli_net_param *param) {
    return run->opts->no_intercept != 0 && !param->penalised;
}

/** Makes the net that is trained, in columns or with a sampled softmax, of a run whose net is made. share: as
 *  pli_net_trained_as has it. */
plait_status pli_net_make_pieces(const pli_run *run, const int32_t *share, pli_net **net_out);
/** The module of kernels that the run's sessions use; NULL: Plait's own kernels. */
const char *pli_net_kernels(const pli_run *run);

/** net_train.c. A session of the net's graph, whose nodes a simulation charges one by one. */
plait_status pli_net_session_create(pli_run *run, const plait_session_opts *opts, plait_session **session_out);
/** Ends what trains: sessions, channel, store. Nothing if it has ended. */
void         pli_net_end_worker(pli_run *run);
/** Charges a simulation for making the arrays of a batch. */
void pli_net_charge_rows(const pli_run *run, const pli_batch *batch);
/** net_tables.c. Makes this rank's tables. */
plait_status pli_net_create_tables(pli_run *run);
/** Makes the table of parameter p, whose values will come from elsewhere. Collective over the rank's stage. */
plait_status pli_net_make_table(pli_run *run, int32_t p);
/** net_tables.c. The first values [net->values] of the whole net, in training's units. */
void pli_net_first_values(const pli_run *run, float *values);
/* net_start.c. The values of run->opts->init_model, of a model that was loaded bare. Errors: EFORMAT, EIO, ENOMEM. */
typedef struct pli_net_start pli_net_start;
plait_status pli_net_start_open(const pli_run *run, pli_net_start **start_out);
void         pli_net_start_close(pli_net_start **start); /* *start may be NULL */
/** The first values [part->rows, part->cols] of a piece, in training's units. */
void pli_net_start_piece(const pli_net_start *start, const pli_net_param *part, float *values);
/** The penalty's factors [rows, cols] of parameter p, in training's units. */
void pli_net_penalty_factors(const pli_run *run, int32_t p, float *factor);
/** Puts rows from .. from + n - 1 of a part at place `at` and after it; scale NULL: in the data's units. Returns how
 *  many labels they have; -1: no memory. */
int64_t pli_net_take_rows(const pli_run *run, const pli_scale *scale, const pli_part *part, int64_t from, int64_t n,
                          pli_net_rows *to, int64_t at);

/** Where the values of this rank's own parameters begin, one after the other; returns how many they are. */
int64_t      pli_net_own_values(const pli_run *run, int64_t at[PLI_NET_PARAMS]);
/** Gets all values of this rank's tables, to these places. */
plait_status pli_net_read_values(const pli_run *run, const int64_t at[PLI_NET_PARAMS], float *values);

/* parts.c. Does no rank gather the net? Then a rank's solution is its own pieces; and whole, but in a file, when it has
 * been joined. Collective, but for in_parts and own. */
bool         pli_net_in_parts(const pli_run *run);
plait_status pli_parts_extract(pli_run *run, pli_solution *solution_out);
plait_status pli_parts_finish(pli_run *run); /* training is over */
/** Makes a solution whole. Nothing if it is, or if the net is not in parts. */
plait_status pli_parts_join(const pli_run *run, pli_solution *solution);
/** The same of the run's own solution, whose pieces are kept, to judge rows by. */
plait_status pli_parts_join_last(pli_run *run);
/** The rank's own pieces of a solution. */
const float *pli_parts_own(const pli_run *run, const pli_solution *solution);
/* parts_judge.c. Rows are judged through all ranks of a replica, while the sessions are there; collective. scoring: of
 * a net with scores. judged: of another one; *done_out: it was one. */
pli_scoring  pli_parts_scoring(const pli_run *run, const pli_solution *of);
plait_status pli_parts_judged(const pli_run *run, const pli_goal *goal, const pli_solution *solution,
                              const pli_dataset *data, bool (*want)(void *user, int64_t row), pli_total *total_out,
                              bool *done_out);

extern const pli_steps   pli_net_steps;
extern const pli_fit_ops pli_net_fit_ops;

struct pli_lbfgs_pass;
extern const struct pli_lbfgs_pass pli_lbfgs_nets;

/* --- the fitted model --------------------------------------------------------------------------------------------- */

typedef struct pli_net_model {
    pli_fitted fitted;
    pli_net   *net;
} pli_net_model;

static inline const pli_net *pli_net_of(const plait_model *model) { return ((const pli_net_model *)model->own)->net; }

extern const pli_scoring_ops pli_net_scoring;
extern const pli_model_ops   pli_net_model_ops;
/** Makes the net of form (pli_net_form), and sets what scores rows by it. */
plait_status pli_net_open_model(plait_model *model, const char *form, plait_error *err);
void         pli_net_close_model(plait_model *model);
plait_status pli_net_export(const plait_model *model, struct pli_export *to, plait_error *err);

/* --- scores (net_score.c) ---------------------------------------------------------------------------------------- */

/* A pass over a block's rows for those who judge them: what gets their scores, as pli_scoring_ops.block has it. */
typedef struct pli_net_pass {
    const pli_block *block;
    pli_score_fn    *each;
    void            *user;
    double          *scratch; /* [2 columns] */
} pli_net_pass;
/** Makes scratch. Errors: ENOMEM. */
plait_status pli_net_pass_begin(const pli_net *net, pli_net_pass *pass, plait_error *err);
void         pli_net_pass_end(pli_net_pass *pass);
/** For pli_net_score and pli_net_score_by; pass: a pli_net_pass. */
bool pli_net_pass_row(void *pass, int64_t row, double label, const double *score);

#endif
