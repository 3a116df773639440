/* learn/net/draws.h - the classes that a sampled softmax scores at a clock (--sampled K), and how their scores count.
 *
 * A row's loss is log Z - z[own], Z = sum over all classes of exp z. The sampled softmax estimates Z by the row's own
 * class, which is always there, and by drawn ones (importance sampling: Bengio and Senecal, "Adaptive Importance
 * Sampling to Accelerate Training of a Neural Probabilistic Language Model", IEEE Trans. Neural Networks 2008; one draw
 * for all rows of a step: Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation", ACL
 * 2015):
 *
 *     Z' = exp z[own] + sum over drawn c, c != own, of exp(z[c] + bonus[c])     bonus[c] = log(times drawn / expected)
 *
 * The mean of Z' over draws is Z. A class is expected to be drawn in proportion to its rows + 1, so that frequent
 * classes, which most rows compete with, are seldom missed. Those that would be drawn more than once by that are taken
 * at every clock instead, with a bonus of 0. The rest is cut in as many strata of equal weight as draws are left, and
 * each stratum gives one class. So with K = all classes Z' is Z.
 *
 * The draw of a clock depends on the seed, the clock and the rows' labels, never on the worker: all workers, and those
 * who take over from a dead one, score the same classes. */
#ifndef PLI_LEARN_DRAWS_H
#define PLI_LEARN_DRAWS_H

#include <stdint.h>

#include <plait/status.h>

typedef struct pli_draws {
    int64_t  classes, certain;
    uint64_t seed;
    double  *upto;   /* [classes] the weights of the classes up to each, those of certain ones being 0 */
    int64_t *always; /* [certain] increasing: taken at every clock */
    int64_t  strata; /* of the other classes */
    int64_t  n;      /* of the clock at hand */
    int64_t *drawn;  /* [n] increasing */
    double  *bonus;  /* [n] */
} pli_draws;

/** wanted: at most that many of the classes are drawn, 1 <= wanted <= classes. rows [classes]: how many rows each has;
 *  NULL: not known, so all are alike. Errors: ENOMEM. */
plait_status pli_draws_create(int64_t classes, int64_t wanted, uint64_t seed, const double *rows, pli_draws **draws_out,
                              plait_error *err);
void         pli_draws_destroy(pli_draws **draws);
/** Draws for a clock. */
void         pli_draws_clock(pli_draws *draws, int64_t clock);
/** How many times class c is drawn at a clock, on the average. */
double       pli_draws_expected(const pli_draws *draws, int64_t c);

#endif
