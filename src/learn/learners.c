/* The learners, each listed once. */
#include <string.h>

#include "learn/learner.h"

extern const plait_learner pli_logistic, pli_hinge, pli_squared, pli_huber, pli_mlp, pli_cnn, pli_lstm, pli_graph, pli_bayes;

static const plait_learner *const learners[] = { &pli_logistic, &pli_hinge, &pli_squared, &pli_huber,
                                                 &pli_mlp,      &pli_cnn,   &pli_lstm,    &pli_graph,
                                                 &pli_bayes,    NULL };

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
