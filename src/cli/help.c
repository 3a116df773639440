/* help - of the program, a command, a model; which topologies and consistencies go together; the manual page and the
 * completion script. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "learn/learn.h"
#include "table/topology/topology.h"

typedef struct help_settings {
    bool        man;
    const char *completion;
} help_settings;

static const pli_opt rows[] = {
    { "man", PLI_OPT_FLAG, offsetof(help_settings, man), NULL, NULL, "write the manual page (roff)", 0, 0, "output" },
    { "completion", PLI_OPT_CHOICE, offsetof(help_settings, completion), NULL, "bash",
      "write the completion script of a shell", 0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

static const struct topic {
    const char *name, *text;
} models[] = {
    { "logistic", "logistic regression: classification, binary or multinomial.\n"
                  "  loss     ln(1 + exp(-y f)) with y = -1, +1; -ln softmax(f)[y] with more than two classes\n"
                  "  labels   any integers or texts; two make a binary model, more one weight column a class\n"
                  "  tells    loss, accuracy, and the area under the curve (binary); predict --proba\n" },
    { "hinge", "linear support vector machine: classification, binary or multiclass.\n"
               "  loss     max(0, 1 - y f) with y = -1, +1; max(0, 1 + max over k of f[k] - f[y]) with more classes\n"
               "  tells    loss, accuracy, and the area under the curve (binary); it has no probabilities\n" },
    { "squared", "linear regression by least squares.\n"
                 "  loss     (f - y)^2 / 2\n"
                 "  tells    loss, root mean squared error, mean absolute error\n" },
    { "huber", "linear regression that outliers move little.\n"
               "  loss     r^2 / 2 where |r| = |f - y| is at most delta, else delta (|r| - delta / 2); --huber-delta\n"
               "  tells    loss, root mean squared error, mean absolute error\n" },
};
enum { MODELS = sizeof models / sizeof models[0] };

static const char objective[] =
    "\nWhat is made small: the weighted mean of the loss + l2/2 |w|^2 + l1 |w|, the intercept never "
    "penalised.\nOptions of all models: --l1 --l2 --no-intercept --class-weight --normalize --optimizer;\n"
    "see 'plait help train'.\n";

static void add_tables(pli_text *text) {
    const pli_model_table *table = pli_model_tables();
    int                    width = pli_terminal_columns(1);
    pli_text_add(text, "\nTables, as --table NAME:topology=T,consistency=C,filter=F names them:\n");
    for (; table->name != NULL; table++) {
        pli_text_add(text, "  %-9s", table->name);
        pli_cli_wrap(text, table->what, 11, width < 100 ? width : 100);
    }
}

static void overview(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    pli_text_add(text, "usage: plait COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        pli_text_add(text, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    pli_text_add(text, "\nmodels:\n ");
    for (int i = 0; i < MODELS; i++) pli_text_add(text, " %s", models[i].name);
    pli_text_add(text, "\n\nmore: plait help COMMAND, plait help MODEL, plait help consistency, plait help pairs, plait help "
                       "filters\n");
}

/* --- help pairs ------------------------------------------------------------------------------------- */

/* A policy with an example of its parameters: "ssp:2". */
static void example(const plait_consistency *policy, char spec[48]) {
    snprintf(spec, 48, "%s", policy->name);
    for (const char *c = policy->parameters; c != NULL && *c != '\0'; c++) {
        if (*c == ':' && strlen(spec) + 3 < 48) strcat(spec, ":2");
    }
}

enum { REASONS_MAX = 64, REASON_BYTES = sizeof((plait_error *)0)->text };

/* Why pairs are refused: pairs for the same reason share its number. */
typedef struct reasons {
    char text[REASONS_MAX][REASON_BYTES];
    int  n;
} reasons;

/* The number of a reason, in which the pair's own policy is called C. */
static int number_of(reasons *all, const char *why, const char *spec) {
    char   general[REASON_BYTES] = "", own[64];
    size_t used = 0;
    snprintf(own, sizeof own, " x %s", spec);
    for (const char *at = why; *at != '\0' && used + sizeof own < sizeof general;) {
        size_t length = strlen(own);
        bool   is_own = strncmp(at, own, length) == 0 && strchr(" ,;", at[length]) != NULL;
        if (is_own) used += (size_t)snprintf(general + used, sizeof general - used, " x C");
        else general[used++] = *at;
        at += is_own ? length : 1;
    }
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->text[i], general) == 0) return i + 1;
    if (all->n < REASONS_MAX) memcpy(all->text[all->n++], general, sizeof general);
    return all->n;
}

static bool trains_with(pli_pair pair, pli_fill fill) {
    pair.fill = fill;
    return pli_pair_check(&pair, NULL) >= 0;
}

/* The columns are topologies, the rows policies; a refusal has a number that its reason is told under. */
static void pairs_of(pli_text *text, reasons *all, bool one_process) {
    const pli_topology_kind *const      *topology = pli_topologies();
    const plait_consistency *const *policy = pli_consistencies();
    pli_text_add(text, "%-16s", "");
    for (int t = 0; topology[t] != NULL; t++) pli_text_add(text, topology[t + 1] != NULL ? "%-13s" : "%s", topology[t]->name);
    pli_text_add(text, "\n");
    for (int p = 0; policy[p] != NULL; p++) {
        char spec[48];
        example(policy[p], spec);
        pli_text_add(text, "%-16s", spec);
        for (int t = 0; topology[t] != NULL; t++) {
            plait_error err = { 0 };
            char        cell[32] = "trains";
            char        example[PLI_TOPOLOGY_TEXT];
            pli_pair    pair = { .topology = example, .consistency = spec, .one_process = one_process };
            pli_topology_example(topology[t], example);
            if (pli_pair_check(&pair, &err) < 0) snprintf(cell, sizeof cell, "refused [%d]", number_of(all, err.text, spec));
            else if (!trains_with(pair, PLI_FILL_DENSE)) snprintf(cell, sizeof cell, "sparse only");
            else if (!trains_with(pair, PLI_FILL_SPARSE)) snprintf(cell, sizeof cell, "dense only");
            pli_text_add(text, topology[t + 1] != NULL ? "%-13s" : "%s", cell);
        }
        pli_text_add(text, "\n");
    }
}

static void pairs(pli_text *text) {
    reasons *all = pli_calloc(1, sizeof *all);
    int      width = pli_terminal_columns(1);
    if (all == NULL) {
        text->failed = true;
        return;
    }
    pli_text_add(text, "Ranks are threads of one process:\n\n");
    pairs_of(text, all, true);
    pli_text_add(text, "\nRanks are processes (mpi), or simulated (sim):\n\n");
    pairs_of(text, all, false);
    pli_text_add(text, "\nWhy, where C is the consistency of the row:\n\n");
    for (int i = 0; i < all->n; i++) {
        char mark[16];
        snprintf(mark, sizeof mark, "[%d]", i + 1);
        pli_text_add(text, "%-5s", mark);
        pli_cli_wrap(text, all->text[i], 5, width < 100 ? width : 100);
    }
    pli_free(all);
}

/* --- help consistency, help ssp --------------------------------------------------------------------- */

static void consistencies(pli_text *text) {
    const plait_consistency *const *policy = pli_consistencies();
    int                             width = pli_terminal_columns(1);
    pli_text_add(text, "--consistency says what a read may miss:\n\n");
    for (int p = 0; policy[p] != NULL; p++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", policy[p]->name, policy[p]->parameters);
        pli_text_add(text, "  %-16s ", name);
        pli_cli_wrap(text, policy[p]->summary, 19, width < 100 ? width : 100);
    }
    pli_text_add(text, "\nmore: plait help pairs\n");
}

static void add_topologies(const char *spec, bool one_process, pli_text *text) {
    int n = 0;
    for (int t = 0; pli_topologies()[t] != NULL; t++) {
        const pli_topology_kind *kind = pli_topologies()[t];
        char                     example[PLI_TOPOLOGY_TEXT];
        pli_topology_example(kind, example);
        if (pli_pair_check(&(pli_pair){ .topology = example, .consistency = spec, .one_process = one_process }, NULL) >= 0)
            pli_text_add(text, "%s%s%s%s", n++ > 0 ? ", " : "", kind->name, kind->parameters[0] != '\0' ? ":" : "", kind->parameters);
    }
    pli_text_add(text, "\n");
}

static void consistency(const plait_consistency *policy, pli_text *text) {
    char spec[48];
    example(policy, spec);
    pli_text_add(text, "%s%s: a consistency, as --consistency %s\n", policy->name, policy->parameters, spec);
    pli_text_add(text, "  means                    ");
    pli_cli_wrap(text, policy->summary, 27, pli_terminal_columns(1));
    pli_text_add(text, "  topologies on threads    ");
    add_topologies(spec, true, text);
    pli_text_add(text, "  topologies on mpi, sim   ");
    add_topologies(spec, false, text);
    pli_text_add(text, "more: plait help consistency, plait help pairs\n");
}

/* The policy that "ssp" or "ssp:2" names; NULL: none. */
static const plait_consistency *find_policy(const char *name) {
    for (int p = 0; pli_consistencies()[p] != NULL; p++) {
        const plait_consistency *policy = pli_consistencies()[p];
        if (strlen(policy->name) == strcspn(name, ":") && strncmp(policy->name, name, strlen(policy->name)) == 0) return policy;
    }
    return NULL;
}

/* --- the command ------------------------------------------------------------------------------------ */

static bool topic(const char *name, pli_text *text) {
    const pli_command *command = pli_command_find(name);
    if (command != NULL) {
        pli_cli_help(command, pli_terminal_columns(1), text);
        return true;
    }
    if (strcmp(name, "pairs") == 0) {
        pairs(text);
        return true;
    }
    if (strcmp(name, "consistency") == 0) {
        consistencies(text);
        return true;
    }
    if (find_policy(name) != NULL) {
        consistency(find_policy(name), text);
        return true;
    }
    if (strcmp(name, "filters") == 0) {
        pli_cli_help_filters(text);
        return true;
    }
    for (int i = 0; i < MODELS; i++) {
        if (strcmp(name, models[i].name) == 0) {
            pli_text_add(text, "%s: %s%s", models[i].name, models[i].text, objective);
            add_tables(text);
            return true;
        }
    }
    return false;
}

size_t pli_cli_topics(const char *names[PLI_CLI_TOPICS_MAX]) {
    size_t n = 0;
    for (size_t i = 0; pli_commands()[i] != NULL && n < PLI_CLI_TOPICS_MAX / 2; i++) names[n++] = pli_commands()[i]->name;
    for (int i = 0; i < MODELS; i++) names[n++] = models[i].name;
    names[n++] = "pairs";
    names[n++] = "consistency";
    names[n++] = "filters";
    for (size_t i = 0; pli_consistencies()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++) names[n++] = pli_consistencies()[i]->name;
    return n;
}

static int unknown(const char *name) {
    const char *known[PLI_CLI_TOPICS_MAX];
    return pli_cli_unknown("topic", name, known, pli_cli_topics(known));
}

static int help(int argc, char *const *argv) {
    help_settings set = { 0 };
    pli_opts     *opts = NULL;
    pli_text_list words = { 0 };
    pli_text      text = { 0 };
    int           code = PLI_EXIT_DONE;
    if (!pli_cli_read(&pli_command_help, argc, argv, &set, &words, &opts, &code)) return code;
    if (set.man) {
        pli_cli_manual(&text);
    } else if (set.completion != NULL) {
        pli_cli_completion(&text);
    } else if (words.n == 0) {
        overview(&text);
    } else if (!topic(words.item[0], &text)) {
        code = unknown(words.item[0]);
    }
    pli_opts_free(&opts);
    if (code != PLI_EXIT_DONE) {
        pli_text_free(&text);
        return code;
    }
    return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
}

const pli_command pli_command_help = {
    .name = "help",
    .usage = "help [COMMAND|MODEL|pairs|consistency|filters] [--man] [--completion bash]",
    .summary = "tell about a command or a model",
    .details =
        "'plait help pairs' shows which topologies and consistencies train together, and why the others are refused; 'plait help "
        "consistency' lists what a read may miss; 'plait help filters' what makes messages smaller.",
    .rows = rows,
    .run = help,
};
