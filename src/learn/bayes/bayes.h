/* learn/bayes/bayes.h - naive Bayes: a row's features count as independent of each other, given its class. Four models
 * of how a class makes features (events); n_k is the weight of the rows of class k, N_jk what feature j adds up to in
 * them, a is alpha, d the number of features, s_k the score of a row x:
 *
 *     multinomial   s_k = log n_k/n + sum_j x_j log((N_jk + a) / (N_k + a d))          how often a feature occurs
 *     complement    s_k = -sum_j x_j log((N_j - N_jk + a) / (N - N_k + a d))           the same of all other classes
 *     bernoulli     s_k = log n_k/n + sum_j log(x_j > 0 ? p_jk : 1 - p_jk)             whether a feature occurs
 *                   p_jk = (N_jk + a) / (n_k + 2 a), N_jk the weight of the rows with x_j > 0
 *     gaussian      s_k = log n_k/n - 1/2 sum_j (log 2 pi v_jk + (x_j - m_jk)^2 / v_jk)  real numbers: mean, variance
 *
 * One pass adds up sums that only grow, in two tables, so every way in which updates travel gives the same sums: it is
 * no matter when an update arrives, nor in which order. Whole numbers are counted in I64, which is exact.
 *
 *     bayes_learner.c  the learner: what follows from options and data
 *     centre.c         where Gaussian sums are measured from
 *     tally.h          what rows add up to
 *     steps.c          a batch: tallied by some threads, pushed
 *     estimate.c       from sums to the model
 *     bayes_model.c    the model: scores, file, ONNX
 *
 * Papers: McCallum and Nigam, "A comparison of event models for naive Bayes text classification", 1998; Rennie et al.,
 * "Tackling the poor assumptions of naive Bayes text classifiers", ICML 2003 (complement).
 */
#ifndef PLI_LEARN_BAYES_BAYES_H
#define PLI_LEARN_BAYES_BAYES_H

#include "learn/bayes/tally.h"
#include "learn/solve/loop.h"
#include "learn/supervised/fitted.h"

/* How the sums lie in their table. */
typedef enum pli_bayes_form {
    PLI_BAYES_DENSE, /* a batch pushes all rows                             */
    PLI_BAYES_KEYED, /* dense, but a batch pushes the rows that it touched  */
    PLI_BAYES_SPARSE /* rows grow by key                                    */
} pli_bayes_form;

/* What a score is of a solution. */
typedef struct pli_bayes_scorer {
    pli_events events;
    int64_t    classes;
} pli_bayes_scorer;

/* A run. */
typedef struct pli_bayes_fit {
    pli_fit          fit;
    pli_tally_form   tally; /* what is counted */
    pli_bayes_scorer scorer;
    pli_bayes_form form;
    bool           rows_are_whole; /* so are the weights of all rows: the table of classes is I64 */
    bool           apart;          /* each block's sums are pushed by themselves                  */
    double        *centre;         /* [features, K] gaussian */
    plait_table   *sums, *rows;    /* [features, width]; [1, K] the weight of the rows of each class */
    pli_tally     *slot;           /* [slots] */
    int32_t        slots;
    uint64_t      *keys;
    uint32_t      *order;
    void          *push;
    int64_t       *class_push;
    int64_t        keys_capacity, order_capacity, push_capacity;
} pli_bayes_fit;

static inline pli_bayes_fit *pli_bayes_fit_of(const pli_run *run) { return run->state; }

/** Where the sums of a Gaussian model are measured from: the mean of each feature and class, as the first rows of the
 *  blocks have it. It changes no more than how sums are rounded. Collective. */
plait_status pli_bayes_centre(pli_run *run);

extern const pli_fit_ops pli_bayes_fit_ops;
extern const pli_steps   pli_bayes_steps;

/* --- from sums to the model (estimate.c) -------------------------------------------------------------------------- */

/* What the tables hold. */
typedef struct pli_bayes_sums {
    pli_events    events;
    int64_t       rows, classes;
    bool          whole, rows_are_whole;
    const void   *sum;      /* [rows, pli_events_width]: I64 where whole, else F64 */
    const void   *of_class; /* [classes]: likewise by rows_are_whole               */
    const double *centre;   /* [rows, classes] gaussian                            */
    double        alpha, smoothing;
    pli_pool     *pool; /* NULL: the caller computes alone */
} pli_bayes_sums;

/** The model: weight [rows, K] and bias [K], scores being linear in the features (bernoulli: in whether they are above
 *  0). Of gaussian: weight [2, rows, K], means and then variances, bias the logarithms of the classes' shares.
 *  solution is made by the caller. */
void pli_bayes_estimate(const pli_bayes_sums *sums, pli_solution *solution);

/* --- the fitted model (bayes_model.c) ----------------------------------------------------------------------------- */

typedef struct pli_bayes_model {
    pli_fitted       fitted;
    pli_bayes_scorer scorer;
} pli_bayes_model;

extern const pli_scoring_ops pli_bayes_scoring;
extern const pli_model_ops   pli_bayes_model_ops;
/** The solution is there: how it scores. */
void         pli_bayes_open_model(plait_model *model, pli_events events);
plait_status pli_bayes_export(const plait_model *model, struct pli_export *to, plait_error *err);

#endif
