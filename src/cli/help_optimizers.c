/* help optimizer - the update rules and solvers, and when `--optimizer auto` takes which. Each name is a topic. */
#include <string.h>

#include "cli/cli.h"

enum { COLUMN = 11 };

typedef struct optimizer {
    const char *name, *summary, *more; /* more: lines of its own topic */
} optimizer;

static const optimizer solvers[] = {
    { "online", "one pass: each row is judged, then learnt from; needs no step size (linear models)",
      "auto takes it for --epochs 1, unless a step size, batch, schedule, penalty or --init-model is given, for "
      "settings that keep one copy of the values (not gossip, local-sgd) and sum plainly. It learns in the order "
      "of the files, and reviews a sample at the end if the first rows were forgotten. It applies no penalty: take "
      "--epochs 1, or --validation 0.1, which keeps the best epoch. Its figure is progressive_loss. Its table is "
      "w: for each feature 2K + 2 values, K the number of scores. docs/online.md" },
    { "lbfgs", "whole passes, with a line search; converges, whatever the features' scales",
      "auto takes it for several epochs where reads are whole clocks (bsp), for all losses but quantile; with few "
      "weights newton is taken instead under --l1, and for hinge of more than two classes. It ends by itself "
      "within --tolerance of the least objective; --epochs is an upper bound. docs/models.md" },
    { "newton", "whole passes, by sums of quadratic models; reads may be stale (linear models)",
      "auto takes it for several epochs under the loose consistencies (ssp, async, gossip, ...), not for quantile, "
      "nor for hinge with many weights. It ends by itself within --tolerance of the least objective; --epochs is "
      "an upper bound. Its table is w: the workers' sums of weights, slopes and curvature; with many weights also "
      "diagonal. docs/newton.md" },
    { "cd", "hinge: row by row in the dual problem; squared, logistic: weight by weight, with --l1 (linear models)",
      "Squared and logistic: auto takes it for --path N. It needs --l1 or --path, and no more than two classes; its "
      "gap is a duality gap. docs/optimizers.md. Hinge: auto takes it with more weights than newton keeps the "
      "curvature of, if there is a penalty --l2, no --l1 and one copy of the values (not gossip, local-sgd): of one "
      "worker, and of several under the loose consistencies. It ends by itself within --tolerance of the least "
      "objective, and its gap is certain; --epochs is an upper bound. Its table is w: the weights, and a row for the "
      "intercepts. docs/models.md" },
    { "als", "each side's factors in turn, the other side held; whole clocks (mf)",
      "auto takes it for --loss implicit. It solves a least squares problem for each user, then for each item; an "
      "epoch costs rank^2 operations a rating, and few epochs are needed. Its tables are users and "
      "items. docs/factors.md" },
    { NULL, NULL, NULL },
};

static const optimizer rules[] = {
    { "sgd", "a step along the gradient", "" },
    { "momentum", "sgd that keeps a share of its last step (--momentum)", "" },
    { "adagrad", "a step size for each weight, by its gradients so far",
      "auto takes it for linear models where no solver goes: a step size, batch or schedule was given, the loss is "
      "quantile, or a checkpoint or replicas are asked for." },
    { "adam", "a step size for each weight, by a moving mean of its gradients", "auto takes it for nets." },
    { "ftrl", "follows the regularised leader; with --l1 it leaves few weights other than 0", "" },
    { NULL, NULL, NULL },
};

static void list(const char *title, const optimizer *all, pli_text *text) {
    pli_text_add(text, "%s\n", title);
    for (; all->name != NULL; all++) {
        pli_text_add(text, "  %-*s", COLUMN - 2, all->name);
        pli_cli_wrap(text, all->summary, COLUMN, pli_cli_width());
    }
}

static bool one(const char *name, const optimizer *all, const char *kind, pli_text *text) {
    for (; all->name != NULL; all++) {
        if (strcmp(name, all->name) != 0) continue;
        pli_text_add(text, "%s: %s, as --optimizer %s\n  does     ", name, kind, name);
        pli_cli_wrap(text, all->summary, COLUMN, pli_cli_width());
        if (all->more[0] != '\0') {
            pli_text_add(text, "\n");
            pli_cli_wrap(text, all->more, 0, pli_cli_width());
        }
        pli_text_add(text, "more: plait help optimizer\n");
        return true;
    }
    return false;
}

bool pli_cli_help_optimizer(const char *name, pli_text *text) {
    if (strcmp(name, "optimizer") != 0)
        return one(name, solvers, "a solver", text) || one(name, rules, "an update rule", text);
    pli_cli_wrap(text, "--optimizer auto (the default) takes the first solver that goes with the model and all other "
                       "settings, else the model's update rule. The record's optimizer_why says why.",
                 0, pli_cli_width());
    list("\nsolvers, which find their steps and their end by themselves", solvers, text);
    list("\nupdate rules of the tables, which take a step for each batch", rules, text);
    pli_text_add(text, "\nmore: plait help NAME, for each of these names\n");
    return true;
}

size_t pli_cli_optimizers(const char **names) {
    size_t n = 0;
    names[n++] = "optimizer";
    for (const optimizer *o = solvers; o->name != NULL; o++) names[n++] = o->name;
    for (const optimizer *o = rules; o->name != NULL; o++) names[n++] = o->name;
    return n;
}
