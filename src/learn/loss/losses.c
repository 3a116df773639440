/* The registry of losses. */
#include "learn/loss/loss.h"

#include <string.h>

#include "base/base.h"

static const pli_loss *const losses[] = { &pli_loss_logistic, &pli_loss_softmax, &pli_loss_hinge,
                                          &pli_loss_hinge_classes, &pli_loss_squared, &pli_loss_huber,
                                          &pli_loss_quantile,      &pli_loss_poisson,
                                          &pli_loss_ndcg,          &pli_loss_pairwise, NULL };

const pli_loss *const *pli_losses(void) { return losses; }

static plait_status unknown(const char *model, plait_error *err) {
    const char *names[sizeof losses / sizeof *losses];
    size_t      n = 0;
    for (int32_t i = 0; losses[i] != NULL; i++)
        if (n == 0 || strcmp(names[n - 1], losses[i]->model) != 0) names[n++] = losses[i]->model;
    return pli_fail_unknown(err, "loss", model, names, n);
}

plait_status pli_loss_is_class(const char *model, bool *classes_out, plait_error *err) {
    for (int32_t i = 0; losses[i] != NULL; i++) {
        if (strcmp(losses[i]->model, model) != 0) continue;
        *classes_out = losses[i]->target != PLI_NUMBER;
        return PLAIT_OK;
    }
    return unknown(model, err);
}

plait_status pli_loss_find(const char *model, int64_t classes, const pli_loss **loss_out, plait_error *err) {
    for (int32_t i = 0; losses[i] != NULL; i++) {
        if (strcmp(losses[i]->model, model) != 0) continue;
        if (losses[i]->target != PLI_NUMBER && (losses[i]->target == PLI_CLASSES) != (classes > 2)) continue;
        *loss_out = losses[i];
        return PLAIT_OK;
    }
    return unknown(model, err);
}
