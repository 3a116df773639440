/* help - prints help for the program, a command, a model, a setting (help_choices.c, help_filters.c,
 * help_optimizers.c), or an option (help_options.c); prints the manual page and the completion script. */
#include <plait/learner.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "learn/learn.h"
#include "table/topology/topology.h"
#include "vertex/vertex.h"

typedef struct help_settings {
    bool        man;
    const char *completion;
} help_settings;

static const pli_opt rows[] = {
    { "man", PLI_OPT_FLAG, offsetof(help_settings, man), NULL, NULL, "write the manual page (roff)", 0, 0, "output" },
    { "completion", PLI_OPT_CHOICE, offsetof(help_settings, completion), NULL, "bash|zsh|fish",
      "write the completion script of a shell", 0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* Adds lines, each wrapped. A line that begins with two spaces is an item, whose text has its own column. */
static void add_lines(pli_text *text, const char *lines) {
    enum { ITEM = 11 };
    while (*lines != '\0') {
        const int indent = lines[0] == ' ' ? ITEM : 0, length = (int)strcspn(lines, "\n");
        pli_text  line = { 0 };
        pli_text_add(&line, "%.*s", length - indent, lines + indent);
        pli_text_add(text, "%.*s", indent, lines);
        pli_cli_wrap(text, line.data != NULL ? line.data : "", indent, pli_cli_width());
        pli_text_free(&line);
        lines += length + (lines[length] == '\n');
    }
}

static void add_tables(const plait_learner *learner, pli_text *text) {
    if (learner->tables == NULL) return;
    add_lines(text, "\nTables, as --table NAME:topology=T,consistency=C,filter=F names them:\n");
    for (const plait_learner_table *table = learner->tables; table->name != NULL; table++) {
        pli_text_add(text, "  %-9s", table->name);
        pli_cli_wrap(text, table->what, 11, pli_cli_width());
    }
}

/* Adds the argument after an option's name, as in 'plait help train': N, X, FILE, or its choices. */
static void add_argument(pli_text *item, const plait_learner_option *o) {
    if (o->kind == PLAIT_OPTION_FLAG) return;
    pli_text_add(item, " ");
    if (o->names == NULL)
        pli_text_add(item, o->kind == PLAIT_OPTION_COUNT ? "N" : o->kind == PLAIT_OPTION_FILE ? "FILE" : "X");
    for (const char *at = o->names; at != NULL && *at != '\0'; at++) pli_text_add_bytes(item, *at == ' ' ? "|" : at, 1);
}

enum { OPTION_COLUMN = 20 };

static void add_option(pli_text *text, const plait_learner_option *o) {
    const bool has_preset = o->preset != NULL && o->preset[0] != '\0' && o->kind != PLAIT_OPTION_FLAG;
    pli_text   item = { 0 }, line = { 0 };
    pli_text_add(&item, "  --%s", o->name);
    add_argument(&item, o);
    if (item.length >= OPTION_COLUMN) pli_text_add(&item, "\n%*s", OPTION_COLUMN, "");
    pli_text_add(&line, has_preset ? "%s; default %s" : "%s", o->help, o->preset);
    if (item.data != NULL && line.data != NULL) {
        pli_text_add(text, "%-*s", OPTION_COLUMN, item.data);
        pli_cli_wrap(text, line.data, OPTION_COLUMN, pli_cli_width());
    }
    pli_text_free(&item);
    pli_text_free(&line);
}

static void add_options(const plait_learner *learner, pli_text *text) {
    if (learner->options == NULL) return;
    pli_text_add(text, "\nIts own options:\n");
    for (const plait_learner_option *o = learner->options; o->name != NULL; o++) add_option(text, o);
}

static void add_learner(const plait_learner *learner, pli_text *text) {
    pli_text all = { 0 };
    pli_text_add(&all, "%s: %s", learner->name, learner->help != NULL ? learner->help : learner->summary);
    add_lines(text, all.data != NULL ? all.data : "");
    pli_text_free(&all);
    add_options(learner, text);
    add_tables(learner, text);
}

void pli_cli_list(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    for (size_t i = 0; commands[i] != NULL; i++) {
        pli_text_add(text, "  %-10s ", commands[i]->name);
        pli_cli_wrap(text, commands[i]->summary, 13, pli_cli_width());
    }
}

static void overview(pli_text *text) {
    pli_text_add(text, "usage: plait COMMAND [options]\n\ncommands:\n");
    pli_cli_list(text);
    pli_text names = { 0 };
    for (size_t i = 0; pli_learners()[i] != NULL; i++)
        pli_text_add(&names, i > 0 ? " %s" : "%s", pli_learners()[i]->name);
    pli_text_add(text, "\nmodels:\n  ");
    pli_cli_wrap(text, names.data != NULL ? names.data : "", 2, pli_cli_width());
    pli_text_free(&names);
    add_lines(text, "\nmore: plait help COMMAND, plait help MODEL, plait help topology, plait help consistency, "
                    "plait help pairs, plait help filters, plait help optimizer\n");
}

/* --- the command ------------------------------------------------------------------------------------ */

static const plait_learner *find_learner(const char *name) {
    size_t i = 0;
    while (pli_learners()[i] != NULL && strcmp(name, pli_learners()[i]->name) != 0) i++;
    return pli_learners()[i];
}

static bool topic(const char *name, pli_text *text) {
    const pli_command *command = pli_command_find(name);
    if (command != NULL) {
        pli_cli_help(command, pli_terminal_columns(1), text);
        if (find_learner(name) == NULL) return true;
        pli_text_add(text, "\nThe model of this name:\n\n"); /* graph is both */
    }
    if (pli_cli_help_choice(name, text) || pli_cli_help_filter(name, text)) return true;
    if (pli_cli_help_optimizer(name, text)) { /* als is both */
        pli_text program = { 0 };
        if (pli_cli_help_program(name, &program)) pli_text_add(text, "\n%s", program.data);
        pli_text_free(&program);
        return true;
    }
    if (find_learner(name) == NULL && pli_cli_help_program(name, text)) return true;
    if (find_learner(name) == NULL) return pli_cli_help_option(name, text) || pli_cli_help_value(name, text);
    add_learner(find_learner(name), text);
    return true;
}

size_t pli_cli_topics(const char *names[PLI_CLI_TOPICS_MAX]) {
    size_t n = 0;
    for (size_t i = 0; pli_commands()[i] != NULL && n < PLI_CLI_TOPICS_MAX / 2; i++)
        names[n++] = pli_commands()[i]->name;
    for (size_t i = 0; pli_learners()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++)
        if (pli_command_find(pli_learners()[i]->name) == NULL) names[n++] = pli_learners()[i]->name;
    static const char *const settings[] = { "pairs", "topology", "consistency", "filters" };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) names[n++] = settings[i];
    n += pli_cli_optimizers(names + n);
    for (size_t i = 0; pli_topologies()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++)
        names[n++] = pli_topologies()[i]->name;
    for (size_t i = 0; pli_consistencies()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++)
        names[n++] = pli_consistencies()[i]->name;
    for (size_t i = 0; pli_filters()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++) names[n++] = pli_filters()[i]->name;
    for (size_t i = 0; pli_vertex_names()[i] != NULL && n < PLI_CLI_TOPICS_MAX; i++) names[n++] = pli_vertex_names()[i];
    return n;
}

static int unknown(const char *name) {
    const char *known[PLI_CLI_TOPICS_MAX];
    return pli_cli_unknown("topic", name, known, pli_cli_topics(known));
}

/* --man and --completion, which are options of help itself. */
static bool is_own(const char *name) {
    const pli_opt *row = rows;
    while (row->name != NULL && strcmp(row->name, name) != 0) row++;
    return row->name != NULL;
}

static int help(int argc, char *const *argv) {
    help_settings set = { 0 };
    pli_opts     *opts = NULL;
    pli_text_list words = { 0 };
    pli_text      text = { 0 };
    int           code = PLI_EXIT_DONE;
    if (argc > 0 && strncmp(argv[0], "--", 2) == 0 && pli_cli_help_option(argv[0] + 2, &text) && !is_own(argv[0] + 2))
        return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
    pli_text_free(&text);
    if (!pli_cli_read(&pli_command_help, argc, argv, &set, &words, &opts, &code)) return code;
    if (set.man) {
        pli_cli_manual(&text);
    } else if (set.completion != NULL) {
        pli_cli_completion(set.completion, &text);
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
    .usage = "help [COMMAND|MODEL|OPTION|pairs|topology|consistency|filters|optimizer] [--man] "
             "[--completion bash|zsh|fish]",
    .summary = "describe a command, a model, a setting or an option",
    .details = "'plait help pairs' shows which topologies and consistencies train together, and why the others are "
               "refused. 'plait help topology' lists how updates travel, 'plait help consistency' what a read may "
               "miss, 'plait help filters' what makes messages smaller, 'plait help optimizer' what "
               "trains. Each name in these lists is a topic, too, and so is each option: 'plait help l2'; so is "
               "each word that an option takes: 'plait help bpr'.",
    .rows = rows,
    .run = help,
};
