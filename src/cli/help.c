/* help - of the program, a command, a model; which topologies and consistencies go together; the manual page and the
 * completion script. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
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

static void overview(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    pli_text_add(text, "usage: plait COMMAND [options]\n\ncommands:\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        pli_text_add(text, "  %-9s %s\n", commands[i]->name, commands[i]->summary);
    pli_text_add(text, "\nmodels:\n ");
    for (int i = 0; i < MODELS; i++) pli_text_add(text, " %s", models[i].name);
    pli_text_add(text, "\n\nmore: plait help COMMAND, plait help MODEL, plait help pairs\n");
}

/* --- help pairs ------------------------------------------------------------------------------------- */

/* A policy with an example of its parameters: "ssp:2". */
static void example(const plait_consistency *policy, char spec[48]) {
    snprintf(spec, 48, "%s", policy->name);
    for (const char *c = policy->parameters; c != NULL && *c != '\0'; c++) {
        if (*c == ':' && strlen(spec) + 3 < 48) strcat(spec, ":2");
    }
}

/* The columns are topologies, the rows policies; a refusal has a number that its reason is told under. */
static void pairs_of(pli_text *text, pli_text *reasons, bool one_process, int *refused) {
    const pli_topology *const        *topology = pli_topologies();
    const plait_consistency *const *policy = pli_consistencies();
    pli_text_add(text, "%-16s", "");
    for (int t = 0; topology[t] != NULL; t++) pli_text_add(text, "%-12s", topology[t]->name);
    pli_text_add(text, "\n");
    for (int p = 0; policy[p] != NULL; p++) {
        char spec[48];
        example(policy[p], spec);
        pli_text_add(text, "%-16s", spec);
        for (int t = 0; topology[t] != NULL; t++) {
            plait_error err = { 0 };
            if (pli_pair_check(topology[t]->name, spec, NULL, one_process, &err) >= 0) {
                pli_text_add(text, "%-12s", "trains");
            } else {
                char mark[32];
                snprintf(mark, sizeof mark, "refused [%d]", ++*refused);
                pli_text_add(text, "%-12s", mark);
                pli_text_add(reasons, "[%d] %s\n", *refused, err.text);
            }
        }
        pli_text_add(text, "\n");
    }
}

static void pairs(pli_text *text) {
    pli_text reasons = { 0 };
    int      refused = 0;
    pli_text_add(text, "Ranks are threads of one process:\n\n");
    pairs_of(text, &reasons, true, &refused);
    pli_text_add(text, "\nRanks are processes (mpi):\n\n");
    pairs_of(text, &reasons, false, &refused);
    pli_text_add(text, "\n%s", reasons.data != NULL ? reasons.data : "");
    text->failed = text->failed || reasons.failed;
    pli_text_free(&reasons);
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
    for (int i = 0; i < MODELS; i++) {
        if (strcmp(name, models[i].name) == 0) {
            pli_text_add(text, "%s: %s%s", models[i].name, models[i].text, objective);
            return true;
        }
    }
    return false;
}

static int unknown(const char *name) {
    const pli_command *const *commands = pli_commands();
    const char               *known[32];
    size_t                    n = 0;
    for (size_t i = 0; commands[i] != NULL; i++) known[n++] = commands[i]->name;
    for (int i = 0; i < MODELS; i++) known[n++] = models[i].name;
    known[n++] = "pairs";
    return pli_cli_unknown("topic", name, known, n);
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
    .usage = "help [COMMAND|MODEL|pairs] [--man] [--completion bash]",
    .summary = "tell about a command or a model",
    .details =
        "'plait help pairs' shows which topologies and consistencies train together, and why the others are refused.",
    .rows = rows,
    .run = help,
};
