/* Loops for Hogwild's commonest table, of single float32 values by key. They are so short that many loads are under
 * way at once. When a row is read it pays what it owes, as one proximal step that is as large as all the steps it owes
 * (its factor on the penalty is multiplied by their number). For l1 that is equal; for l2 it differs in the second
 * order of step x l2. */
#include "table/topology/hogwild_memory.h"

enum { PACK = PLI_HOGWILD_PACK };

/* The value of a row, which its slots follow. */
static inline float *single(const struct pli_hogwild *h, uint64_t key) {
    return (float *)(h->dense + (int64_t)key * h->stride);
}

/* Copies the rows of a pack and pays, in memory too, what they owe. */
static void get_lazy(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, float *values) {
    const float     *factor = (const float *)h->penalty;
    const plait_rule_numbers *rule = &h->spec.rule;
    int64_t          units = atomic_load_explicit(&h->examples, memory_order_relaxed);
    plait_step                due = pli_rule_step(rule, units / h->spec.batch, 1, h->spec.batch, 1);
    float            state[PLI_RULE_SLOTS_MAX][PACK], penalty[PACK], *slot[PLI_RULE_SLOTS_MAX];
    const float      part = 1.0F / (float)h->spec.batch;
    for (int64_t i = 0; i < n; i++) values[i] = pli_relaxed_load_f32(single(h, keys[i]));
    for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = state[k];
    for (int32_t k = 0; k < rule->ops->slots; k++)
        for (int64_t i = 0; i < n; i++) state[k][i] = pli_relaxed_load_f32(single(h, keys[i]) + k + 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t owed = units - pli_relaxed_load_i64(h->paid + keys[i]);
        penalty[i] = owed > 0 ? (float)owed * part : 0.0F;
    }
    for (int64_t i = 0; factor != NULL && i < n; i++) penalty[i] *= factor[keys[i]];
    rule->ops->catch_up_f32(rule, &due, 1, n, values, slot, penalty);
    for (int64_t i = 0; i < n; i++) pli_relaxed_store_f32(single(h, keys[i]), values[i]);
    for (int64_t i = 0; i < n; i++) pli_relaxed_store_i64(units, h->paid + keys[i]);
}

void pli_hogwild_get_singles(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, float *values) {
    for (int64_t from = 0; h->spec.lazy && from < n; from += PACK)
        get_lazy(h, n - from < PACK ? n - from : PACK, keys + from, values + from);
    for (int64_t i = 0; !h->spec.lazy && i < n; i++) values[i] = pli_relaxed_load_f32(single(h, keys[i]));
}

void pli_hogwild_apply_singles(const struct pli_hogwild *h, int64_t n, const uint64_t *keys, const plait_step *step,
                         int64_t examples, const float *g) {
    const float     *factor = (const float *)h->penalty;
    const plait_rule_numbers *rule = &h->spec.rule;
    float            w[PACK], state[PLI_RULE_SLOTS_MAX][PACK], penalty[PACK] = { 0 }, *slot[PLI_RULE_SLOTS_MAX];
    for (int64_t i = 0; i < n; i++) w[i] = pli_relaxed_load_f32(single(h, keys[i]));
    for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = state[k];
    for (int32_t k = 0; k < rule->ops->slots; k++)
        for (int64_t i = 0; i < n; i++) state[k][i] = pli_relaxed_load_f32(single(h, keys[i]) + k + 1);
    for (int64_t i = 0; factor != NULL && i < n; i++) penalty[i] = factor[keys[i]];
    rule->ops->apply_f32(rule, step, n, w, slot, g, factor != NULL ? penalty : NULL);
    for (int64_t i = 0; i < n; i++) pli_relaxed_store_f32(single(h, keys[i]), w[i]);
    for (int32_t k = 0; k < rule->ops->slots; k++)
        for (int64_t i = 0; i < n; i++) pli_relaxed_store_f32(single(h, keys[i]) + k + 1, state[k][i]);
    for (int64_t i = 0; h->spec.lazy && i < n; i++) { /* this step has paid for its own rows of data */
        int64_t *paid = h->paid + keys[i];
        pli_relaxed_store_i64(pli_relaxed_load_i64(paid) + examples, paid);
    }
}
