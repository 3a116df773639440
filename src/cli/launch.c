/* launch - starts the ranks of a job as processes: mpirun, with the flags that one machine needs.
 *
 * A launcher's exit code does not tell whether the job is done: it may be 0 after a failure, or that of a rank which was
 * lost while the others ended well. So a train with --out ends by its completion record, FILE.done. */
#include "comm/launch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verdict.h"

typedef struct launch_settings {
    int64_t ranks;
} launch_settings;

static const pli_opt rows[] = {
    { "ranks", PLI_OPT_I64, offsetof(launch_settings, ranks), NULL, "N", "processes to start; -n N is short for it", 1,
      65536, "run" },
    { "spares", PLI_OPT_LATER, 0, NULL, "N", "comes with a later version", 0, 0, "run" },
    { "max-restarts", PLI_OPT_LATER, 0, NULL, "R", "comes with a later version", 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* The words of the command, its first one being a path: "plait" and a bare command name mean this program.
 * owned_out: what to free beside the array. NULL: no memory. */
static char **command_of(const pli_text_list *words, char **owned_out) {
    char        own[4096];
    bool        bare = pli_command_find(words->item[0]) != NULL;
    char      **argv = pli_calloc((size_t)words->n + 2, sizeof *argv);
    const char *first = words->item[0];
    int64_t     n = 0;
    *owned_out = NULL;
    if (argv == NULL) return NULL;
    if (bare || strcmp(first, "plait") == 0) {
        pli_own_directory(own);
        *owned_out = pli_format("%s/plait", own);
        if (*owned_out == NULL) {
            pli_free(argv);
            return NULL;
        }
        argv[n++] = *owned_out;
    }
    for (int64_t i = n > 0 && !bare; i < words->n; i++) argv[n++] = (char *)(uintptr_t)words->item[i];
    return argv;
}

/* FILE.done if the command is a train with --out FILE, else NULL. Freed by the caller. */
static char *record_of(const pli_text_list *words) {
    const char *out = NULL;
    bool        train = false;
    for (int64_t i = 0; i < words->n; i++) {
        const char *word = words->item[i];
        if (i < 2 && strcmp(word, "train") == 0) train = true;
        if (strcmp(word, "--dry-run") == 0) return NULL;
        if (strcmp(word, "--out") == 0 && i + 1 < words->n) out = words->item[i + 1];
        if (strncmp(word, "--out=", 6) == 0) out = word + 6;
    }
    return train && out != NULL ? pli_format("%s.done", out) : NULL;
}

/* mpirun's exit code should be that of the first rank that failed (verdict.c). One killed by a signal that nobody sends to end a job well is
 * a lost peer. */
static bool was_killed(int code) {
    static const int fatal[] = { SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE };
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        if (code == PLI_EXIT_SIGNAL + fatal[i]) return true;
    }
    return false;
}

static int start(const launch_settings *set, const pli_text_list *words) {
    plait_error err = { .rank = -1 };
    char       *owned = NULL, **argv = command_of(words, &owned), *record = record_of(words);
    char       *verdicts = pli_verdicts_open();
    int64_t     before = record != NULL ? pli_file_mtime_ns(record) : -1;
    int32_t     code = PLI_EXIT_FAILED;
    if (argv == NULL) {
        pli_cli_usage("launch: out of memory");
    } else if (pli_launch((int32_t)set->ranks, argv, &code, &err) < 0) {
        pli_fail_at(&err, "launch");
        code = pli_cli_fail(&err);
    } else if (record != NULL) {
        int64_t after = pli_file_mtime_ns(record);
        bool    done = after >= 0 && after != before;
        if (done) {
            code = PLI_EXIT_DONE;
        } else if (code == 0) {
            pli_cli_usage("launch: the ranks have ended, but not their work: there is no new %s", record);
            code = PLI_EXIT_FAILED;
        }
    }
    int32_t lost = -1;
    int     said = pli_verdicts_close(&verdicts, &lost);
    if (was_killed(code)) {
        char who[32] = "a rank";
        if (lost >= 0) snprintf(who, sizeof who, "rank %" PRId32, lost);
        pli_cli_usage("launch: %s was lost (signal %d), and with it the run; start it again", who,
                      code - PLI_EXIT_SIGNAL);
        code = PLI_EXIT_PEERS;
    } else if ((code != PLI_EXIT_DONE && said != 0) || said == PLI_EXIT_FAILED) {
        code = said; /* also where the work is done: what was to be written beside the model could not be */
    }
    pli_free(record);
    pli_free(argv);
    pli_free(owned);
    return code;
}

/* -n is the one short option, since every launcher has it. The words after -- stay as they are. */
static char *const *spell_out(int argc, char *const *argv, char **words) {
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        ended = ended || strcmp(argv[i], "--") == 0;
        words[i] = !ended && strcmp(argv[i], "-n") == 0 ? (char *)(uintptr_t) "--ranks" : argv[i];
    }
    words[argc] = NULL;
    return words;
}

static bool has_end(int argc, char *const *argv) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0 || strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return true;
    }
    return false;
}

static int launch(int argc, char *const *argv) {
    launch_settings set = { 0 };
    pli_opts       *opts = NULL;
    pli_text_list   words = { 0 };
    int             code = PLI_EXIT_USAGE;
    char          **spelled = pli_array((size_t)argc + 1, sizeof *spelled);
    if (spelled == NULL) return pli_cli_usage("launch: out of memory"), PLI_EXIT_FAILED;
    if (!has_end(argc, argv)) {
        pli_cli_usage("launch: no command; say 'plait launch -n N -- plait train ...'");
    } else if (pli_cli_read(&pli_command_launch, argc, spell_out(argc, argv, spelled), &set, &words, &opts, &code)) {
        if (set.ranks == 0) {
            pli_cli_usage("launch: how many? say 'plait launch -n N -- plait train ...'");
        } else if (words.n == 0) {
            pli_cli_usage("launch: no command after --; say 'plait launch -n N -- plait train ...'");
        } else {
            code = start(&set, &words);
        }
        pli_opts_free(&opts);
    }
    pli_free(spelled);
    return code;
}

const pli_command pli_command_launch = {
    .name = "launch",
    .usage = "launch -n N -- plait train ...",
    .summary = "start ranks as processes",
    .details =
        "Runs mpirun (of .venv/, else of the path, else of PLAIT_MPIRUN) with the settings that root, few slots and "
        "shared cores need, and hands signals on. mpirun and srun by hand do as well.",
    .rows = rows,
    .run = launch,
};
