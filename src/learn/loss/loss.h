/* learn/loss/loss.h - losses: what the scores of a row cost. Each loss is a file, listed once in losses.c.
 *
 * A row has K scores (K = 1, or one a class) and a target: for two classes y = -1 or +1, for more the class
 * number 0 .. K-1, for regression the number itself. A loss gives its value and its slope, the derivative by
 * each score (a subgradient where it has a kink). Nothing here knows of rows, weights or penalties.
 */
#ifndef PLI_LEARN_LOSS_H
#define PLI_LEARN_LOSS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <plait/status.h>

typedef enum pli_target {
    PLI_TWO_CLASSES, /* one score; y = -1, +1            */
    PLI_CLASSES,     /* one score a class; y = 0 .. K-1  */
    PLI_NUMBER       /* one score; y is the number       */
} pli_target;

/* Which option is the loss's parameter. */
typedef enum pli_parameter {
    PLI_PARAMETER_DELTA,   /* --huber-delta; also of losses that have none */
    PLI_PARAMETER_QUANTILE /* --quantile                                   */
} pli_parameter;

typedef struct pli_loss {
    const char *model;  /* the name that --model knows                                  */
    pli_target  target;
    pli_parameter parameter;
    bool        log_mean; /* the score is the logarithm of the answer; labels are 0 or more */
    bool        smooth; /* it has a gradient everywhere, so L-BFGS may be used          */
    double      curvature; /* an upper bound of the second derivative by one score      */
    /** The loss of one row, and its slope [k] by the scores [k]. parameter: Huber's delta, the quantile, or unused. */
    double (*at)(double parameter, int64_t k, const double *score, double y, double *slope);
    /** The same for n rows of one score: y, loss and slope are [n]. NULL: `at` is called for each row. The last digit
     *  may differ from that of `at`. */
    void (*many)(int64_t n, const double *score, const double *y, double *loss, double *slope);
    /** The second derivative [k, k] of the loss by the scores, or, where the loss is straight, a curvature that keeps
     *  the parabola above it. NULL: has none. reach: how far a score may move with that parabola still fair; 0: any
     *  distance. */
    void (*second)(double parameter, int64_t k, const double *score, double y, double *h);
    double reach;
    /** The smooth loss that solvers take in place of one with a kink. NULL: there is none. */
    const struct pli_loss *smoothed;
    /** Of a smoothed loss, whose parameter is its width: how much more the loss with the kink is, at these scores, than
     *  its dual at the smoothed loss's slopes. It is never below 0. NULL: the loss is not a smoothed one. The curvature
     *  is then to be divided by the width, and the reach to be taken times it. */
    double (*excess)(double parameter, int64_t k, const double *score, double y);
    const struct pli_loss *kinked; /* of a smoothed loss: the one that it replaces */
    /** The conjugate: the largest value of slope score - loss over all scores. Slopes [k] for which there is none are
     *  first moved to such as have one; slopes of 0 always do. Of a smoothed loss it is that of the loss with the kink.
     *  NULL: unknown. */
    double (*conjugate)(double parameter, int64_t k, double y, double *slope);
    /** Probabilities of the classes from the scores: p [2] for two classes, [k] for more. NULL: has none. */
    void (*probability)(int64_t k, const double *score, double *p);
    /** One score: how far it moves if it follows the loss downhill, ds/dt = -slope(s), for the time `step`; in closed
     *  form. So a step of any size stops short of the least loss, and a step of 2 is two of 1 (Karampatziakis and
     *  Langford, "Online Importance Weight Aware Updates", UAI 2011). NULL: the slope is integrated
     *  (linear/online.h). */
    double (*invariant)(double parameter, double score, double y, double step);
    /** A loss of rankings: the loss of a query's n rows together, and its NDCG@10; NaN: out of memory. slope and h [n]
     *  are what trees are fitted to, not always the loss's own derivatives; NULL: not wanted. Labels are whole numbers
     *  from 0 to PLI_QUERY_LABEL_MOST, and `at` is always 0. NULL: rows have losses of their own. */
    double (*query)(int64_t n, const double *score, const double *y, double *slope, double *h, double *ndcg_out);
} pli_loss;

enum { PLI_QUERY_LABEL_MOST = 31 };

extern const pli_loss pli_loss_logistic, pli_loss_softmax, pli_loss_hinge, pli_loss_hinge_classes, pli_loss_squared,
    pli_loss_huber, pli_loss_quantile, pli_loss_poisson, pli_loss_ndcg, pli_loss_pairwise;
/* Not listed: no model asks for them. */
extern const pli_loss pli_loss_hinge_smooth, pli_loss_hinge_classes_smooth;

/** x ln x, which goes to 0 with x. */
static inline double pli_x_log_x(double x) { return x > 0 ? x * log(x) : 0; }

/** curvature and reach with this parameter. */
static inline double pli_loss_curvature(const pli_loss *loss, double parameter) {
    return loss->excess != NULL ? loss->curvature / parameter : loss->curvature;
}
static inline double pli_loss_reach(const pli_loss *loss, double parameter) {
    return loss->excess != NULL ? loss->reach * parameter : loss->reach;
}

/** All losses, NULL-terminated. */
const pli_loss *const *pli_losses(void);

/** Finds the loss of this name for so many classes (a loss of numbers ignores them). Errors: ENAME, with the nearest
 *  name. */
plait_status pli_loss_find(const char *model, int64_t classes, const pli_loss **loss_out, plait_error *err);

/** Does the loss of this name learn classes? Errors: ENAME. */
plait_status pli_loss_is_class(const char *model, bool *classes_out, plait_error *err);

#endif
