/* When an option has an effect beside the others: one line each, from which a run's notes follow. What cannot be
 * together is refused elsewhere; what only the data can tell (a label column of LIBSVM data) is noted when they are
 * read. */
#include <string.h>

#include "cli/settings.h"
#include "comm/launcher.h"

static bool fits_huber(const pli_train_settings *s) { return pli_is(s->model, "huber") || pli_is(s->loss, "huber"); }
static bool has_momentum(const pli_train_settings *s) { return pli_is(s->optimizer, "momentum"); }
static bool has_steps(const pli_train_settings *s) { return !pli_is(s->optimizer, "lbfgs"); }
static bool has_checkpoints(const pli_train_settings *s) { return s->checkpoint != NULL; }
static bool has_metrics(const pli_train_settings *s) { return s->metrics != NULL || s->curve == 0; }
static bool is_scaled(const pli_train_settings *s) { return s->graph == NULL; }
static bool is_processes(const pli_train_settings *s) {
    return s->transport != NULL ? pli_is(s->transport, "mpi") : pli_launcher_find().name != NULL;
}
static bool is_shared(const pli_train_settings *s) {
    return is_processes(s) || s->workers > 1 || !pli_is(s->balance, "dynamic");
}

static bool is_summed(const char *topology) { return pli_is(topology, "allreduce") || pli_is(topology, "hybrid"); }

/* Some table's updates are summed by a collective. */
static bool has_sums(const pli_train_settings *s) {
    bool sums = is_summed(s->topology) || pli_is(s->collective, "auto") || s->aggregate != NULL;
    for (int64_t i = 0; i < s->table.n; i++)
        sums = sums || strstr(s->table.item[i], "topology=allreduce") != NULL ||
               strstr(s->table.item[i], "topology=hybrid") != NULL;
    return sums;
}

static const struct effect {
    const char *option;
    bool (*has)(const pli_train_settings *settings);
    const char *without; /* behind "--OPTION has no effect " */
} effects[] = {
    { "huber-delta", fits_huber, "without --model huber or --loss huber" },
    { "momentum", has_momentum, "without --optimizer momentum" },
    { "learning-rate", has_steps, "on --optimizer lbfgs, which finds its steps itself" },
    { "batch", has_steps, "on --optimizer lbfgs, whose passes are over all rows" },
    { "schedule", has_steps, "on --optimizer lbfgs, which finds its steps itself" },
    { "checkpoint-every", has_checkpoints, "without --checkpoint DIR" },
    { "curve", has_metrics, "without --metrics FILE" },
    { "normalize", is_scaled, "on a graph of --graph, whose x is the data as they are" },
    { "collective", has_sums, "in this run: a collective sums updates only under --topology allreduce or hybrid" },
    { "heartbeat", is_processes, "in this run: it watches ranks that are processes, which only --transport mpi has" },
    { "balance", is_shared, "with one worker" },
};

void pli_train_notes(const pli_train_settings *s, const pli_opts *opts, pli_text *text) {
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++)
        if (pli_opts_origin(opts, effects[i].option, NULL) != PLI_FROM_DEFAULT && !effects[i].has(s))
            pli_text_add(text, "--%s has no effect %s\n", effects[i].option, effects[i].without);
    if (s->out == NULL && !s->dry_run) pli_text_add(text, "the model is not kept; --out FILE writes it\n");
}
