/* help - of the program, a command, a model, or (help_choices.c, help_filters.c) a setting; the manual page and the
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
    bool        net;
} models[] = {
    { "logistic",
      "logistic regression: classification, binary or multinomial.\n"
      "  loss     ln(1 + exp(-y f)) with y = -1, +1; -ln softmax(f)[y] with more than two classes\n"
      "  labels   any integers or texts; two make a binary model, more one weight column a class\n"
      "  tells    loss, accuracy, and the area under the curve (binary); predict --proba\n",
      false },
    { "hinge",
      "linear support vector machine: classification, binary or multiclass.\n"
      "  loss     max(0, 1 - y f) with y = -1, +1; max(0, 1 + max over k of f[k] - f[y]) with more classes\n"
      "  tells    loss, accuracy, and the area under the curve (binary); it has no probabilities\n",
      false },
    { "squared",
      "linear regression by least squares.\n"
      "  loss     (f - y)^2 / 2\n"
      "  tells    loss, root mean squared error, mean absolute error\n",
      false },
    { "huber",
      "linear regression that outliers move little.\n"
      "  loss     r^2 / 2 where |r| = |f - y| is at most delta, else delta (|r| - delta / 2); --huber-delta\n"
      "  tells    loss, root mean squared error, mean absolute error\n",
      false },
    { "mlp",
      "a perceptron: hidden layers of ReLUs, each connected to all of the one before.\n"
      "  layers   --layers 512,256: hidden widths from the data's end on, default 128; none (''): a linear model\n"
      "  loss     --loss logistic|hinge|squared|huber, as those models have it; default logistic, or squared where "
      "labels are no classes\n"
      "  tables   w1, b1, w2, b2, ...: weights and biases a layer; each may travel in its own way\n"
      "  tells    as the model of that loss\n",
      true },
    { "cnn",
      "convolutions for images: each of 3 x 3, with a ReLU and a pooling of 2 x 2.\n"
      "  rows     images (--format idx), or features as a square of pixels, line by line\n"
      "  layers   --layers 32,64,128, the default: filters of each convolution, then the width of a dense layer\n"
      "  loss, tables, tells: as mlp has them\n",
      true },
    { "lstm",
      "layers of long short-term memory: for text by characters (--format text), each foretold from those before.\n"
      "  rows     of text: --window characters, each but the first the answer of a step; of images: their lines of "
      "pixels; else: the features, in their order\n"
      "  layers   --layers 256,256: units of each layer, default 128\n"
      "  tables   w1, b1, r1, w2, ...: weights, biases, and weights between steps, a layer\n"
      "  loss, tells: as mlp has them; of text in nats a character\n",
      true },
    { "graph",
      "a net of your own: --graph FILE, in JSON (docs/graph.md) or ONNX (docs/onnx.md).\n"
      "  graph    from a placeholder x [any, features] to a value scores [any, K]: K is 1 for numbers and for two "
      "classes (or 2, whose difference counts), else the number of classes; scores are before a softmax\n"
      "  units    x is the data as they are: --normalize has no effect\n"
      "  tables   its variables, by their names; those of two axes and more are penalised\n"
      "  loss, tells: as mlp has them\n",
      true },
};
enum { MODELS = sizeof models / sizeof models[0] };

static const char objective[] =
    "\nWhat is made small: the weighted mean of the loss + l2/2 |w|^2 + l1 |w|, the intercept never penalised.\n"
    "Options of all models: --l1 --l2 --no-intercept --class-weight --normalize --optimizer; see 'plait help train'.\n";

static const char objective_of_net[] =
    "\nWhat is made small: the weighted mean of the loss + l2/2 |w|^2 + l1 |w|, biases never penalised.\n"
    "Options: --l1 --l2 --class-weight --normalize --optimizer (default adam); see 'plait help train'.\n"
    "\nA table is named in --table NAME:topology=T,consistency=C,filter=F; with --optimizer lbfgs there is one, w, of "
    "all values.\n";

static int width(void) { return pli_terminal_columns(1) < 100 ? pli_terminal_columns(1) : 100; }

/* Each line wrapped; of those that begin with two spaces, an item, what it says stands in a column of its own. */
static void add_lines(pli_text *text, const char *lines) {
    enum { ITEM = 11 };
    while (*lines != '\0') {
        const int indent = lines[0] == ' ' ? ITEM : 0, length = (int)strcspn(lines, "\n");
        pli_text  line = { 0 };
        pli_text_add(&line, "%.*s", length - indent, lines + indent);
        pli_text_add(text, "%.*s", indent, lines);
        pli_cli_wrap(text, line.data != NULL ? line.data : "", indent, width());
        pli_text_free(&line);
        lines += length + (lines[length] == '\n');
    }
}

static void add_tables(pli_text *text) {
    const pli_model_table *table = pli_model_tables();
    add_lines(text, "\nTables, as --table NAME:topology=T,consistency=C,filter=F names them:\n");
    for (; table->name != NULL; table++) {
        pli_text_add(text, "  %-9s", table->name);
        pli_cli_wrap(text, table->what, 11, width());
    }
}

void pli_cli_list(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    for (size_t i = 0; commands[i] != NULL; i++) {
        pli_text_add(text, "  %-10s ", commands[i]->name);
        pli_cli_wrap(text, commands[i]->summary, 13, width());
    }
}

static void overview(pli_text *text) {
    pli_text_add(text, "usage: plait COMMAND [options]\n\ncommands:\n");
    pli_cli_list(text);
    pli_text_add(text, "\nmodels:\n ");
    for (int i = 0; i < MODELS; i++) pli_text_add(text, " %s", models[i].name);
    add_lines(text, "\n\nmore: plait help COMMAND, plait help MODEL, plait help topology, plait help consistency, "
                    "plait help pairs, plait help filters\n");
}

/* --- the command ------------------------------------------------------------------------------------ */

static bool topic(const char *name, pli_text *text) {
    const pli_command *command = pli_command_find(name);
    if (command != NULL) {
        pli_cli_help(command, pli_terminal_columns(1), text);
        return true;
    }
    if (pli_cli_help_choice(name, text) || pli_cli_help_filter(name, text)) return true;
    for (int i = 0; i < MODELS; i++) {
        if (strcmp(name, models[i].name) == 0) {
            pli_text all = { 0 };
            pli_text_add(&all, "%s: %s%s", models[i].name, models[i].text,
                         models[i].net ? objective_of_net : objective);
            add_lines(text, all.data != NULL ? all.data : "");
            pli_text_free(&all);
            if (!models[i].net) add_tables(text);
            return true;
        }
    }
    return false;
}

size_t pli_cli_topics(const char *names[PLI_CLI_TOPICS_MAX]) {
    size_t n = 0;
    for (size_t i = 0; pli_commands()[i] != NULL && n < PLI_CLI_TOPICS_MAX / 2; i++)
        names[n++] = pli_commands()[i]->name;
    for (int i = 0; i < MODELS; i++) names[n++] = models[i].name;
    static const char *const settings[] = { "pairs", "topology", "consistency", "filters" };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) names[n++] = settings[i];
    for (size_t i = 0; pli_topologies()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++)
        names[n++] = pli_topologies()[i]->name;
    for (size_t i = 0; pli_consistencies()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++)
        names[n++] = pli_consistencies()[i]->name;
    for (size_t i = 0; pli_filters()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++) names[n++] = pli_filters()[i]->name;
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
    .usage = "help [COMMAND|MODEL|pairs|topology|consistency|filters] [--man] [--completion bash]",
    .summary = "tell about a command or a model",
    .details = "'plait help pairs' shows which topologies and consistencies train together, and why the others are "
               "refused; 'plait help "
               "topology' lists how updates travel, 'plait help consistency' what a read may miss, 'plait help "
               "filters' what makes "
               "messages smaller; each of their names is a topic, too.",
    .rows = rows,
    .run = help,
};
