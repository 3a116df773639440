/* The learners, each listed once. */
#include <string.h>

#include "learn/learner.h"

/* One line for each learner. */
#define LEARNERS(EACH)                                                                                                 \
    EACH(pli_logistic)                                                                                                 \
    EACH(pli_hinge)                                                                                                    \
    EACH(pli_squared)                                                                                                  \
    EACH(pli_huber)                                                                                                    \
    EACH(pli_quantile)                                                                                                 \
    EACH(pli_poisson)                                                                                                  \
    EACH(pli_mlp)                                                                                                      \
    EACH(pli_cnn)                                                                                                      \
    EACH(pli_lstm)                                                                                                     \
    EACH(pli_graph)                                                                                                    \
    EACH(pli_bayes)                                                                                                    \
    EACH(pli_pca_learner)                                                                                              \
    EACH(pli_kmeans_learner)                                                                                           \
    EACH(pli_gbdt_learner)                                                                                             \
    EACH(pli_forest_learner)                                                                                           \
    EACH(pli_mf_learner)                                                                                               \
    EACH(pli_lda_learner)

#define DECLARED(name) extern const plait_learner name;
#define LISTED(name)   &name,
LEARNERS(DECLARED)
static const plait_learner *const learners[] = { LEARNERS(LISTED) NULL };
#undef DECLARED
#undef LISTED

const plait_learner *const *pli_learners(void) { return learners; }

const plait_learner *pli_learner_find(const char *name, const plait_learner *own, int32_t n_own) {
    for (int32_t i = 0; i < n_own; i++)
        if (strcmp(own[i].name, name) == 0) return &own[i];
    for (size_t i = 0; learners[i] != NULL; i++)
        if (strcmp(learners[i]->name, name) == 0) return learners[i];
    return NULL;
}

plait_status pli_learner_unknown(const char *name, const plait_learner *own, int32_t n_own, plait_error *err) {
    const char *names[64];
    size_t      n = 0;
    for (int32_t i = 0; i < n_own && n < 32; i++) names[n++] = own[i].name;
    for (size_t i = 0; learners[i] != NULL && n < 64; i++) names[n++] = learners[i]->name;
    return pli_fail_unknown(err, "model", name, names, n);
}
