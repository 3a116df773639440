/* optim/rules.h - what the rules' files declare for the registry and share with each other. */
#ifndef PLI_OPTIM_RULES_H
#define PLI_OPTIM_RULES_H

#include "optim/optim.h"

extern const plait_rule pli_rule_sgd, pli_rule_momentum, pli_rule_adagrad, pli_rule_adam, pli_rule_ftrl;

/** Applies `clocks` proximal steps of size s to every value: the catch-up of rules whose steps are all equal. */
void pli_prox_even_f32(const plait_rule_numbers *rule, double s, int64_t clocks, int64_t n, float *w,
                       const float *penalty);
void pli_prox_even_f64(const plait_rule_numbers *rule, double s, int64_t clocks, int64_t n, double *w,
                       const double *penalty);

#endif
