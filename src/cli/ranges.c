/* The ranges that 'plait tune' tries of train's options unless --try says others: rows that stand beside the table of
 * options, since a good range of an option differs by model. A trial's
 * values depend on their order. A range's scale is a logarithm unless it ends in :linear or
 * begins at 0. Values between bars are a list. */
#include <string.h>

#include "cli/settings.h"

const pli_opt_range pli_train_ranges[] = {
    { "epochs", "gbdt", "30..300" },
    { "epochs", "forest", "50..300" },
    { "learning-rate", "gbdt", "0.02..0.3" },
    { "learning-rate", "mlp cnn lstm graph", "1e-3..0.1" },
    { "leaves", "gbdt", "4..128" },
    { "min-rows", "gbdt", "1..60" },
    { "min-rows", "forest", "1..20" },
    { "depth", "forest", "4..40" },
    { "l2", "logistic hinge squared huber quantile poisson", "1e-8..1" },
    { "l2", "gbdt", "1e-3..30" },
    { "l2", "mlp cnn lstm graph", "1e-7..1e-2" },
    { "components", "mf", "4..64" },
    { "l2", "mf", "1e-3..1" },
    { "subsample", "gbdt", "0.5..1:linear" },
    { "colsample", "gbdt", "0.3..1:linear" },
    { "layers", "mlp", "32|64|128|256|128,64" },
    { "batch", "mlp", "16..256" },
    { "alpha", "bayes", "1e-3..10" },
    { NULL, NULL, NULL },
};

bool pli_opt_range_is_of(const pli_opt_range *range, const char *model) {
    const size_t n = strlen(model);
    for (const char *at = range->models; *at != '\0'; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (length == n && strncmp(at, model, n) == 0) return true;
        at += length;
    }
    return false;
}
