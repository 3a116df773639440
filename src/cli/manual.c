/* Writes help, the manual page and the completion script from the tables of commands and options. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "table/consistency/consistency.h"

void pli_cli_wrap(pli_text *text, const char *words, int indent, int width) {
    int column = indent;
    while (*words != '\0') {
        if (*words == '\n') {
            pli_text_add(text, "\n");
            column = indent;
            words++;
            continue;
        }
        int length = (int)strcspn(words, " \n");
        bool begins = column == indent;
        if (!begins && column + 1 + length > width) {
            pli_text_add(text, "\n%*s", indent, "");
            column = indent;
            begins = true;
        }
        pli_text_add(text, "%s%.*s", begins ? "" : " ", length, words);
        column += length + !begins;
        words += length;
        words += strspn(words, " ");
    }
    pli_text_add(text, "\n");
}

void pli_cli_help(const pli_command *command, int width, pli_text *text) {
    if (width > 100) width = 100;
    if (width < 40) width = 40;
    pli_text usage = { 0 };
    pli_text_add(&usage, "usage: plait %s", command->usage);
    pli_cli_wrap(text, usage.data != NULL ? usage.data : "", 0, width);
    pli_text_free(&usage);
    pli_text_add(text, "\n");
    pli_cli_wrap(text, command->summary, 0, width);
    if (command->details != NULL) {
        pli_text_add(text, "\n");
        pli_cli_wrap(text, command->details, 0, width);
    }
    pli_opt *rows = pli_command_rows(command);
    text->failed = text->failed || rows == NULL;
    if (rows != NULL && rows[0].name != NULL) {
        pli_text_add(text, "\n");
        pli_opts_help(rows, width, text);
    }
    pli_free(rows);
}

/* --- roff ------------------------------------------------------------------------------------------- */

/* Adds plain text to roff: \ and - are escaped, and no line begins with . or ', so nothing is a request or an
 * escape. */
static void roff(pli_text *text, const char *words) {
    bool begin = true;
    for (const char *c = words; *c != '\0'; c++) {
        if (begin && (*c == '.' || *c == '\'')) pli_text_add(text, "\\&");
        if (*c == '\\') {
            pli_text_add(text, "\\e");
        } else if (*c == '-') {
            pli_text_add(text, "\\-");
        } else if (*c == '\n' && c[1] == '\n') {
            pli_text_add(text, "\n.PP\n");
            c++;
        } else {
            pli_text_add_bytes(text, c, 1);
        }
        begin = *c == '\n';
    }
    pli_text_add(text, "\n");
}

static void roff_option(pli_text *text, const pli_opt *row) {
    pli_text_add(text, ".TP\n\\fB");
    pli_text line = { 0 };
    pli_text_add(&line, "--%s", row->name);
    roff(text, line.data != NULL ? line.data : "");
    pli_text_free(&line);
    text->length--; /* the newline: the argument follows */
    pli_text_add(text, "\\fR");
    if (row->argument != NULL) {
        pli_text_add(text, " \\fI");
        roff(text, row->argument);
        text->length--;
        pli_text_add(text, "\\fR");
    }
    pli_text_add(text, "\n");
    roff(text, row->help);
    if (row->preset != NULL && row->kind != PLI_OPT_FLAG) {
        pli_text_add(text, "(default: ");
        roff(text, row->preset);
        text->length--;
        pli_text_add(text, ")\n");
    }
}

void pli_cli_manual(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    pli_text_add(text, ".TH PLAIT 1 \"\" \"plait %s\" \"User Commands\"\n", plait_version());
    pli_text_add(text, ".SH NAME\nplait \\- distributed training of machine\\-learning models\n");
    pli_text_add(text, ".SH SYNOPSIS\n\\fBplait\\fR \\fICOMMAND\\fR [options]\n");
    pli_text_add(text, ".SH DESCRIPTION\n");
    roff(text,
         "Data goes to standard output, messages go to standard error. Options may come in any order; -h after any "
         "command lists its options. An option is set by its flag, else by the variable PLAIT_NAME "
         "(PLAIT_LEARNING_RATE for --learning-rate), else by the --config file, else it has its default.");
    pli_text_add(text, ".SH COMMANDS\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        pli_text_add(text, ".SS \"plait ");
        roff(text, commands[i]->usage);
        text->length--;
        pli_text_add(text, "\"\n");
        roff(text, commands[i]->summary);
        if (commands[i]->details != NULL) {
            pli_text_add(text, ".PP\n");
            roff(text, commands[i]->details);
        }
        pli_opt *rows = pli_command_rows(commands[i]);
        text->failed = text->failed || rows == NULL;
        for (const pli_opt *row = rows; row != NULL && row->name != NULL; row++) {
            if (pli_opt_is_shown(row)) roff_option(text, row);
        }
        pli_free(rows);
    }
    pli_text_add(text, ".SH EXIT STATUS\n");
    static const char *const codes[][2] = {
        { "0", "done" },
        { "1", "failed" },
        { "2", "wrong usage, or a refused combination" },
        { "3", "peers were lost" },
        { "4", "ran, and the answer is no" },
        { "75", "interrupted by SIGINT or SIGTERM, and can go on" },
        { "128+n", "ended by signal n" },
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        pli_text_add(text, ".TP\n%s\n%s\n", codes[i][0], codes[i][1]);
    pli_text_add(text, ".SH EXAMPLES\n.nf\n");
    roff(text, "plait train --model logistic --data a9a --test a9a.t --out model");
    roff(text, "plait train --model logistic --data a9a --workers 4 --topology ps --consistency ssp:2");
    roff(text, "plait predict --model-file model --data a9a.t --proba");
    pli_text_add(text, ".fi\n");
}

/* --- bash ------------------------------------------------------------------------------------------- */

static void complete_words(pli_text *text, const char *const *words, size_t n) {
    pli_text_add(text, " COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; i < n; i++) pli_text_add(text, "%s%s", i > 0 ? " " : "", words[i]);
    pli_text_add(text, "\" -- \"$word\"));");
}

static void complete_consistency(pli_text *text) {
    const char *names[PLI_CLI_TOPICS_MAX];
    size_t      n = 0;
    for (; n < PLI_CLI_TOPICS_MAX && pli_consistencies()[n] != NULL; n++) names[n] = pli_consistencies()[n]->name;
    complete_words(text, names, n);
}

/* Completes the value of an option: choices, policies, or files. */
static void complete_value(pli_text *text, const pli_opt *row) {
    if (row->kind == PLI_OPT_FLAG || row->kind == PLI_OPT_LATER) return;
    pli_text_add(text, "        --%s)", row->name);
    if (strcmp(row->name, "consistency") == 0 || strcmp(row->name, "as") == 0) {
        complete_consistency(text);
    } else if (row->kind == PLI_OPT_CHOICE || (row->argument != NULL && islower((unsigned char)row->argument[0]))) {
        pli_text_add(text, " COMPREPLY=($(compgen -W \"");
        for (const char *c = row->argument; *c != '\0'; c++) pli_text_add_bytes(text, *c == '|' ? " " : c, 1);
        pli_text_add(text, "\" -- \"$word\"));");
    } else if (row->kind == PLI_OPT_TEXT || row->kind == PLI_OPT_LIST) {
        pli_text_add(text, " COMPREPLY=($(compgen -f -- \"$word\"));");
    }
    pli_text_add(text, " return ;;\n");
}

/* more: the command whose options are completed, too; NULL: none. */
static void complete_command(pli_text *text, const pli_command *command, const pli_command *more) {
    const pli_command *const of[] = { command, more };
    pli_opt                 *rows[2] = { NULL, NULL };
    pli_text_add(text, "    %s)\n        case $before in\n", command->name);
    for (size_t i = 0; i < 2 && of[i] != NULL; i++) {
        rows[i] = pli_command_rows(of[i]);
        text->failed = text->failed || rows[i] == NULL;
        for (const pli_opt *row = rows[i]; row != NULL && row->name != NULL; row++) complete_value(text, row);
    }
    pli_text_add(text, "        esac\n        options=\"--help");
    for (size_t i = 0; i < 2; i++) {
        for (const pli_opt *row = rows[i]; row != NULL && row->name != NULL; row++)
            if (pli_opt_is_shown(row)) pli_text_add(text, " --%s", row->name);
        pli_free(rows[i]);
    }
    pli_text_add(text, "\" ;;\n");
}

/* Completes a word that is not an option: a topic after help, a command's own words directly after it, else a file. */
static void complete_topics(pli_text *text) {
    const char *names[PLI_CLI_TOPICS_MAX];
    size_t      n = pli_cli_topics(names);
    pli_text_add(text, "    *)\n        if [ \"${COMP_WORDS[at]}\" = help ]; then\n           ");
    complete_words(text, names, n);
    for (const pli_command *const *command = pli_commands(); *command != NULL; command++) {
        size_t known = 0;
        if ((*command)->words == NULL) continue;
        while ((*command)->words[known] != NULL) known++;
        pli_text_add(text,
                     "\n        elif [ \"${COMP_WORDS[at]} $((COMP_CWORD - at))\" = '%s 1' ]; then\n           ",
                     (*command)->name);
        complete_words(text, (*command)->words, known);
    }
    pli_text_add(text, "\n        else\n            COMPREPLY=($(compgen -f -- \"$word\"))\n        fi ;;\n");
}

void pli_cli_completion(pli_text *text) {
    const pli_command *const *commands = pli_commands();
    /* $at: index of the command; after `launch ... --`, that of the program to start, which "plait" may precede */
    pli_text_add(text,
                 "# bash completion of plait; written by: plait help --completion bash\n_plait() {\n"
                 "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= at=1 i\n"
                 "    for ((i = 2; i < COMP_CWORD && at == 1; i++)); do\n"
                 "        [ \"${COMP_WORDS[1]} ${COMP_WORDS[i]}\" = 'launch --' ] && at=$((i + 1))\n    done\n"
                 "    [ \"$at\" -gt 1 ] && [ \"$at\" -lt \"$COMP_CWORD\" ] && [ \"${COMP_WORDS[at]##*/}\" = plait ] && "
                 "at=$((at + 1))\n"
                 "    if [ \"$COMP_CWORD\" -eq \"$at\" ]; then\n        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; commands[i] != NULL; i++) pli_text_add(text, "%s%s", i > 0 ? " " : "", commands[i]->name);
    pli_text_add(text, "\" -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[at]} in\n");
    for (size_t i = 0; commands[i] != NULL; i++) {
        /* these commands also take the options of train */
        bool both = strcmp(commands[i]->name, "config") == 0 || strcmp(commands[i]->name, "compare") == 0;
        complete_command(text, commands[i], both ? &pli_command_train : NULL);
    }
    pli_text_add(text, "    esac\n    case $word in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n");
    complete_topics(text);
    pli_text_add(text, "    esac\n}\ncomplete -o filenames -F _plait plait\n");
}
