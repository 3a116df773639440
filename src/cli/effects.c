/* Notes options that have no effect. Every option of train has a line here, which says when the option has an effect,
 * given the other options; an option that was given without effect is noted. A test checks that each option has its
 * line. Combinations that are not allowed are refused elsewhere (table/pairs/). If only the data can tell (a label
 * column of LIBSVM data), the note comes when the data are read. */
#include <stdio.h>
#include <string.h>

#include "cli/settings.h"
#include "comm/launcher.h"
#include "learn/learner.h"
#include "learn/solve/solver.h"
#include "table/topology/topology.h"

static bool fits_huber(const pli_train_settings *s) { return pli_is(s->model, "huber") || pli_is(s->loss, "huber"); }
static bool fits_quantile(const pli_train_settings *s) {
    return pli_is(s->model, "quantile") || pli_is(s->loss, "quantile");
}
static bool is_saved(const pli_train_settings *s) { return s->out != NULL; }
static bool has_momentum(const pli_train_settings *s) { return pli_is(s->optimizer, "momentum"); }
static bool has_steps(const pli_train_settings *s) {
    return s->optimizer == NULL || pli_solver_find(s->optimizer) == NULL;
}
static bool takes_rate(const pli_train_settings *s) { return has_steps(s) || pli_is(s->optimizer, "online"); }
static bool is_net(const pli_train_settings *s) {
    const plait_learner *learner = s->model != NULL ? pli_learner_find(s->model, NULL, 0) : NULL;
    return s->graph != NULL || (learner != NULL && learner->more != NULL && learner->more->graph != NULL);
}
/* Trees split by the order of values, and factors belong to names: both take all their rounds. */
static bool has_weights(const pli_train_settings *s) {
    return !(pli_is(s->model, "gbdt") || pli_is(s->model, "forest") || pli_is(s->model, "mf"));
}
/* Does a solver train that ends by itself? Nets are trained by a rule unless one is named. */
static bool converges(const pli_train_settings *s) {
    if (!has_weights(s)) return false;
    return s->optimizer == NULL || pli_is(s->optimizer, "auto") ? !is_net(s)
                                                               : !has_steps(s) && !pli_is(s->optimizer, "online");
}
static bool is_run(const pli_train_settings *s) { return !s->dry_run; }
static bool has_checkpoints(const pli_train_settings *s) { return s->checkpoint != NULL; }
static bool has_metrics(const pli_train_settings *s) { return s->metrics != NULL || s->curve == 0; }
static bool has_raw_x(const pli_train_settings *s) { return s->graph == NULL; }
static bool is_processes(const pli_train_settings *s) {
    return s->transport != NULL ? pli_is(s->transport, "mpi") : pli_launcher_find().name != NULL;
}
static bool is_threads(const pli_train_settings *s) { return !is_processes(s) && !pli_is(s->transport, "sim"); }
static bool has_others(const pli_train_settings *s) { return is_processes(s) || s->workers > 1; }
static bool has_slots(const pli_train_settings *s) { return s->workers > s->least; }
static bool has_peers(const pli_train_settings *s) { return has_others(s) || s->servers > 0; }
static bool is_shared(const pli_train_settings *s) { return has_others(s) || !pli_is(s->balance, "dynamic"); }
static bool is_parted(const pli_train_settings *s) { return has_others(s) || !pli_is(s->optimizer_state, "sharded"); }

/* Can features be scaled? With both penalties they cannot: a scaled weight would have another penalty. */
static bool is_scalable(const pli_train_settings *s) { return !(s->l1 > 0 && s->l2 > 0); }
static bool is_by_weight(const pli_train_settings *s) {
    return (pli_is(s->model, "squared") || pli_is(s->model, "logistic")) && (pli_is(s->optimizer, "cd") || s->path > 0);
}
static bool is_scheduled(const pli_train_settings *s) { return is_by_weight(s) && (s->together > 0 || has_others(s)); }
static bool is_not_by_weight(const pli_train_settings *s) { return !pli_is(s->optimizer, "cd"); }

/* May the run begin anew, so that it needs first weights? A resumed run has its own, but a run with --checkpoint may
 * find an empty folder. */
static bool may_begin(const pli_train_settings *s) { return s->resume == NULL || s->checkpoint != NULL; }

/* Does the run draw random numbers? L-BFGS of a linear model does not: it passes over all rows, and begins at zero. */
static bool draws(const pli_train_settings *s) {
    double            fraction;
    const pli_solver *solver = s->optimizer != NULL ? pli_solver_find(s->optimizer) : NULL;
    return has_steps(s) || (solver != NULL && solver->draws) || is_net(s) ||
           (s->validation != NULL && pli_parse_f64(s->validation, &fraction));
}

static bool has_convolutions(const pli_train_settings *s) {
    return pli_is(s->kernels, "own") || !(pli_is(s->model, "mlp") || pli_is(s->model, "lstm"));
}

/* Does this topology sum updates over all workers, for some tables at least? */
static bool is_summed(const char *topology) {
    const pli_topology_kind *kind = topology != NULL ? pli_topology_find(topology) : NULL;
    if (kind != NULL && kind->dense != NULL) kind = kind->dense;
    return kind != NULL && !kind->on_servers && !kind->averages;
}

static bool some_table_is_summed(const pli_train_settings *s) {
    static const char said[] = "topology=";
    for (int64_t i = 0; i < s->table.n; i++) {
        const char *at = strstr(s->table.item[i], said);
        char        name[PLI_TOPOLOGY_TEXT];
        if (at == NULL) continue;
        at += sizeof said - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (is_summed(name)) return true;
    }
    return is_summed(s->topology);
}

static bool has_sums(const pli_train_settings *s) {
    return some_table_is_summed(s) || pli_is(s->collective, "auto") || s->aggregate != NULL;
}

/* Do sums inside a host make a difference? Not for threads of one process, which share memory anyway. */
static bool has_hosts(const pli_train_settings *s) { return !(is_threads(s) && is_summed(s->topology)); }

static const struct effect {
    const char *option;
    bool (*has)(const pli_train_settings *settings); /* NULL: always */
    const char *without; /* what follows "--OPTION has no effect " */
} effects[] = {
    { "model", NULL, NULL },
    { "l1", NULL, NULL },
    { "l2", NULL, NULL },
    { "path", NULL, NULL },
    { "together", is_by_weight, "on an optimizer that moves all weights at once" },
    { "order", is_scheduled, "without --together N or several workers by --optimizer cd" },
    { "interference", is_scheduled, "without --together N or several workers by --optimizer cd" },
    { "no-intercept", NULL, NULL },
    { "quantile", fits_quantile, "without --model quantile or --loss quantile" },
    { "huber-delta", fits_huber, "without --model huber or --loss huber" },
    { "class-weight", NULL, NULL },
    { "normalize", has_raw_x, "on a net of --graph, whose x holds the data in their own units" },
    { "normalize", has_weights, "on trees and factors, which do not depend on the features' scales" },
    { "normalize", is_not_by_weight, "with --optimizer cd, whose steps do not depend on scales" },
    { "normalize", is_scalable, "with both --l1 and --l2: features are then never scaled" },
    { "init-model", may_begin, "on a run that resumes from --resume DIR" },
    { "layers", NULL, NULL },
    { "graph", NULL, NULL },
    { "exclude", NULL, NULL },
    { "train", NULL, NULL },
    { "loss", NULL, NULL },
    { "kernels", has_convolutions, "on a model without convolutions, since the module computes nothing else" },
    { "cut", NULL, NULL },
    { "place", NULL, NULL },
    { "columns", NULL, NULL },
    { "classes", NULL, NULL },
    { "sampled", NULL, NULL },
    { "micro-batches", NULL, NULL },
    { "pipeline", NULL, NULL },

    { "data", NULL, NULL },
    { "test", NULL, NULL },
    { "validation", NULL, NULL },
    { "format", NULL, NULL },
    { "index-base", NULL, NULL },
    { "header", NULL, NULL },
    { "delimiter", NULL, NULL },
    { "label", NULL, NULL },
    { "weight-column", NULL, NULL },
    { "text-columns", NULL, NULL },
    { "window", NULL, NULL },
    { "hash-bits", NULL, NULL },
    { "names", is_saved, "without --out FILE" },
    { "interactions", NULL, NULL },
    { "ngram", NULL, NULL },
    { "spill-limit", NULL, NULL },
    { "blocks", NULL, NULL },
    { "cache", NULL, NULL },

    { "optimizer", NULL, NULL },
    { "optimizer-state", is_parted, "with one worker" },
    { "epochs", NULL, NULL },
    { "batch", has_steps, "on an optimizer whose passes are over all rows" },
    { "learning-rate", takes_rate, "on an optimizer that finds its own step sizes" },
    { "tolerance", converges, "on an optimizer that does not end by itself" },
    { "momentum", has_momentum, "without --optimizer momentum" },
    { "schedule", has_steps, "on an optimizer that finds its own step sizes" },
    { "staleness-aware", has_others, "with one worker" },
    { "patience", NULL, NULL },
    { "seed", draws, "on this optimizer of a linear model, which uses no random numbers" },

    { "workers", NULL, NULL },
    { "scale", has_slots, "without --workers MIN:MAX" },
    { "move-rate", NULL, NULL },
    { "servers", NULL, NULL },
    { "threads", NULL, NULL },
    { "transport", NULL, NULL },
    { "topology", NULL, NULL },
    { "consistency", NULL, NULL },
    { "backup", NULL, NULL },
    { "table", NULL, NULL },
    { "reduce", NULL, NULL },
    { "balance", is_shared, "with one worker" },
    { "replicas", NULL, NULL },
    { "spares", NULL, NULL },
    { "collective", has_sums, "in this run: a collective sums updates only under --topology allreduce or hybrid" },
    { "aggregate", has_others, "with one worker" },
    { "aggregate", has_hosts, "on sums among threads of one process, which share its memory anyway" },
    { "filter", NULL, NULL },
    { "cluster", NULL, NULL },
    { "join", NULL, NULL },

    { "out", NULL, NULL },
    { "json", NULL, NULL },
    { "metrics", NULL, NULL },
    { "curve", has_metrics, "without --metrics FILE" },
    { "events", NULL, NULL },
    { "trace", NULL, NULL },
    { "tensorboard", NULL, NULL },
    { "dashboard", is_run, "on a dry run, which trains nothing" },
    { "config", NULL, NULL },
    { "timeout", has_peers, "with a single worker, which waits for no other" },
    { "heartbeat", is_processes, "in this run: it watches processes, and only --transport mpi has ranks in processes" },
    { "dry-run", NULL, NULL },
    { "quiet", NULL, NULL },
    { "checkpoint", NULL, NULL },
    { "checkpoint-every", has_checkpoints, "without --checkpoint DIR" },
    { "resume", NULL, NULL },
};
enum { EFFECTS = sizeof effects / sizeof *effects };

bool pli_train_effect_is_known(const char *option) {
    for (size_t i = 0; i < EFFECTS; i++)
        if (strcmp(effects[i].option, option) == 0) return true;
    return false;
}

/* Is the word among names, which are separated by blanks? */
static bool is_among(const char *names, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = names; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0) return true;
    return false;
}

/* --events gaussian beside bayes is an event log in a file of that name, which hardly anybody means. */
static void note_events(const pli_train_settings *s, const pli_opts *opts, pli_text *text) {
    const plait_learner_option *kind = pli_own_option_find(pli_train_model(s, opts), "events-model");
    if (s->events == NULL || kind == NULL || kind->names == NULL || !is_among(kind->names, s->events)) return;
    pli_text_add(text, "--events %s writes an event log to the file %s; the kind of features is --events-model %s\n",
                 s->events, s->events, s->events);
}

void pli_train_notes(const pli_train_settings *s, const pli_opts *opts, pli_text *text) {
    const char *noted = "";
    for (size_t i = 0; i < EFFECTS; i++) {
        const struct effect *e = &effects[i];
        if (e->has == NULL || strcmp(e->option, noted) == 0 || e->has(s) ||
            !pli_opts_is_given(opts, e->option))
            continue;
        pli_text_add(text, "--%s has no effect %s\n", e->option, e->without);
        noted = e->option; /* one note an option is enough */
    }
    note_events(s, opts, text);
    if (pli_is(s->optimizer, "online") && s->epochs != 1)
        pli_text_add(text, "online applies no penalty, so in more than one epoch the model follows the rows ever "
                           "closer; --validation 0.1 keeps the best epoch\n");
    if (s->out == NULL && !s->dry_run) pli_text_add(text, "the model is not saved; --out FILE saves it\n");
}
