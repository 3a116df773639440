/* prox - catches up on proximal steps of one size. */
#include "optim/prox.h"
#include "optim/rules.h"

void pli_prox_even_f32(const plait_rule_numbers *rule, double s, int64_t clocks, int64_t n, float *w,
                       const float *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    if (penalty == NULL) {
        const pli_prox_line line = pli_prox_power(s * rule->l1, s * rule->l2, clocks);
        for (int64_t i = 0; i < n; i++) w[i] = (float)pli_prox_apply(line, (double)w[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double p = (double)penalty[i];
        w[i] = (float)pli_prox_apply(pli_prox_power(s * rule->l1 * p, s * rule->l2 * p, clocks), (double)w[i]);
    }
}

void pli_prox_even_f64(const plait_rule_numbers *rule, double s, int64_t clocks, int64_t n, double *w,
                       const double *penalty) {
    if (clocks <= 0 || !pli_rule_penalises(rule)) return;
    if (penalty == NULL) {
        const pli_prox_line line = pli_prox_power(s * rule->l1, s * rule->l2, clocks);
        for (int64_t i = 0; i < n; i++) w[i] = pli_prox_apply(line, w[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double p = penalty[i];
        w[i] = pli_prox_apply(pli_prox_power(s * rule->l1 * p, s * rule->l2 * p, clocks), w[i]);
    }
}
