/* doctor - shows which rank of a live run waits for what, or which has what of its tables. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/cli.h"

#define PATIENCE_NS (UINT64_C(5) * 1000000000)

typedef struct doctor_settings {
    int tables;
} doctor_settings;

static const pli_opt rows[] = {
    { "tables", PLI_OPT_FLAG, offsetof(doctor_settings, tables), NULL, NULL,
      "show which rank has what of each table, and when it last read and pushed", 0, 0, NULL },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

static bool read_pid(const char *word, int64_t *pid_out) {
    char *end = NULL;
    errno = 0;
    long long pid = strtoll(word, &end, 10);
    if (errno != 0 || end == word || *end != '\0' || pid <= 0 || pid > INT32_MAX) return false;
    *pid_out = pid;
    return true;
}

static int doctor(int argc, char *const *argv) {
    pli_opts     *opts = NULL;
    pli_text_list words = { 0 };
    pli_text      answer = { 0 };
    plait_error   err = { .rank = -1 };
    int64_t       pid = 0;
    doctor_settings set = { 0 };
    int           code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_doctor, argc, argv, &set, &words, &opts, &code)) return code;
    if (words.n != 1) {
        pli_cli_usage("doctor: %s; say 'plait doctor PID'", words.n == 0 ? "no process" : "more than one process");
    } else if (!read_pid(words.item[0], &pid)) {
        pli_cli_usage("doctor: '%s' is not a process number; say 'plait doctor PID'", words.item[0]);
    } else if (pli_ask(pid, set.tables ? PLI_ASK_TABLES : PLI_ASK_WAITS, PATIENCE_NS, &answer, &err) < 0) {
        pli_fail_at(&err, "doctor");
        pli_cli_fail(&err);
        code = PLI_EXIT_FAILED;
    } else {
        code = pli_cli_print(&answer) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
    }
    pli_text_free(&answer);
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_doctor = {
    .name = "doctor",
    .usage = "doctor [--tables] PID",
    .summary = "show who waits for what in a live run, or who has what of its tables",
    .details = "PID is any process of the run. One line for each rank of the job says what it waits for, which rank "
               "holds it up, in which call of the library, and for how long; a rank that computes \"works\". Ranks in "
               "other processes are asked, and have one second to answer. 'kill -USR1 PID' makes the process print the "
               "same on its standard error. With --tables there is one line for each table and rank: rows and bytes "
               "that lie there, up to which clock they are, and the worker's clock, last get and last push.",
    .rows = rows,
    .run = doctor,
};
