/* Writes help and the manual page from the tables of commands and options. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

int pli_cli_width(void) { return pli_terminal_columns(1) < 100 ? pli_terminal_columns(1) : 100; }

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
