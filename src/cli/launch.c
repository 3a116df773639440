/* launch - starts the ranks of a job as processes: mpirun, with the flags that one machine needs; and starts them
 * again.
 *
 * A launcher's exit code does not tell whether the job is done: it may be 0 after a failure, or that of a rank which
 * was lost while the others ended well. So a train with --out ends by its completion record, FILE.done, and by
 * nothing else. Without --out, what the ranks have said of themselves counts (verdict.c), then the launcher's code.
 *
 * With --max-restarts R a job that was lost is started again, up to R times: the same command, and for a train with
 * --checkpoint DIR from the newest good checkpoint there (--resume DIR; where there is none yet, from the beginning).
 *
 *   how it ended                                   | again | because
 *   3: a rank was killed, froze or was cut off      | yes   | the next life may have better luck
 *   a rank died of a signal of its own (11, 6, ...) | yes   | memory or machine may be at fault; R ends it if not
 *   mpirun was killed, or its host's ranks with it  | yes   | nothing of the job was at fault
 *   ended, but without FILE.done                    | yes   | a lost rank that nobody has told of
 *   0 with the record                               | no    | it is done
 *   1: failed (a file, the disk, memory)            | no    | the message would only repeat
 *   1: mpirun itself, in a life after the first     | yes   | a host may be away for a while: after a pause
 *   2: usage, refused; 4: the answer is no          | no    | so would they
 *   75, or a signal asked to stop                   | no    | somebody wants it to stop
 *
 * --spares S starts S processes more, and tells the train of them (train --spares): a rank that dies has its place
 * taken while the run goes on, and a restart, where it comes to that, begins with all of them again.
 *
 * Before a restart nothing is left of the life before: comm/launch.c ends whatever mpirun leaves behind. And what
 * hangs, after a rank has ended badly or all have ended, is ended after some seconds, since no rank leaves before all
 * are done. */
#include "comm/launch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/keeper.h"
#include "cli/verdict.h"
#include "table/pairs/pairs.h"

#define PATIENCE_NS        UINT64_C(5000000000)
#define HOSTFILE_MAX_BYTES (1 << 20)

typedef struct launch_settings {
    const char *hosts, *hostfile;
    int64_t     ranks, spares, max_restarts;
    bool        keeper;
} launch_settings;

static const pli_opt rows[] = {
    { "ranks", PLI_OPT_I64, offsetof(launch_settings, ranks), NULL, "N", "processes to start; -n N is the short form",
      1, 65536, "run" },
    { "hosts", PLI_OPT_TEXT, offsetof(launch_settings, hosts), NULL, "A,B:4",
      "machines to start them on, each with its number of processes (1 if none is given); default: this machine", 0, 0,
      "run" },
    { "hostfile", PLI_OPT_TEXT, offsetof(launch_settings, hostfile), NULL, "F",
      "a file with one machine a line, as mpirun reads it: 'b slots=4'", 0, 0, "run" },
    { "spares", PLI_OPT_I64, offsetof(launch_settings, spares), "0", "N",
      "for a train with --replicas 2: start N more processes, which take the place of ranks that die", 0, 65536,
      "run" },
    { "max-restarts", PLI_OPT_I64, offsetof(launch_settings, max_restarts), "0", "R",
      "restart a lost job up to R times, from its newest checkpoint", 0, 1000000, "run" },
    /* launch's own: runs the command as one rank, and tells by which signal it ended */
    { "keeper", PLI_OPT_FLAG, offsetof(launch_settings, keeper), NULL, NULL, NULL, 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* The command to run. Words of its own are owned. */
typedef struct command {
    char **argv; /* NULL: no memory */
    char  *path, *spares;
} command;

static void free_command(command *c) {
    pli_free(c->argv);
    pli_free(c->path);
    pli_free(c->spares);
    *c = (command){ 0 };
}

/* Its first word is a path: "plait" and a bare command name mean this program. */
static command command_of(const pli_text_list *words, int64_t spares) {
    char        own[4096];
    const char *first = words->item[0];
    const bool  bare = pli_command_find(first) != NULL, is_own = bare || strcmp(first, "plait") == 0;
    command     c = { .argv = pli_calloc((size_t)words->n + 3, sizeof *c.argv) };
    int64_t     n = 0;
    pli_own_directory(own);
    if (is_own) c.path = pli_format("%s/plait", own);
    if (spares > 0) c.spares = pli_format("--spares=%" PRId64, spares);
    if (c.argv == NULL || (is_own && c.path == NULL) || (spares > 0 && c.spares == NULL)) {
        free_command(&c);
        return c;
    }
    if (is_own) c.argv[n++] = c.path;
    for (int64_t i = is_own && !bare; i < words->n; i++) c.argv[n++] = (char *)(uintptr_t)words->item[i];
    if (spares > 0) c.argv[n++] = c.spares;
    return c;
}

static bool is_train(const pli_text_list *words) {
    for (int64_t i = 0; i < words->n && i < 2; i++)
        if (strcmp(words->item[i], "train") == 0) return true;
    return false;
}

/* The value of a train's option, as last given; NULL: it is no train, or has none. Freed by the caller. */
static char *value_of(const pli_text_list *words, const char *option) {
    const char *value = NULL;
    size_t      length = strlen(option);
    for (int64_t i = 0; i < words->n; i++) {
        const char *word = words->item[i];
        if (strcmp(word, option) == 0 && i + 1 < words->n) value = words->item[i + 1];
        if (strncmp(word, option, length) == 0 && word[length] == '=') value = word + length + 1;
    }
    return is_train(words) && value != NULL ? pli_strdup(value) : NULL;
}

/* FILE.done if the command is a train with --out FILE, else NULL. Freed by the caller. */
static char *record_of(const pli_text_list *words) {
    char *out = value_of(words, "--out"), *record = NULL;
    for (int64_t i = 0; i < words->n; i++) {
        if (strcmp(words->item[i], "--dry-run") != 0) continue;
        pli_free(out);
        return NULL;
    }
    if (out != NULL) record = pli_format("%s.done", out);
    pli_free(out);
    return record;
}

/* See the table above. A signal that nobody sends to end a job well counts as a lost peer by now. */
static bool is_worth_a_restart(int code) { return code == PLI_EXIT_PEERS || code > PLI_EXIT_SIGNAL; }

/* --- a life of the job ------------------------------------------------------------------------------------ */

typedef struct supervisor {
    const launch_settings *set;
    const pli_text_list   *words;
    char      *record;     /* FILE.done; NULL: the command leaves none         */
    char      *checkpoint; /* DIR of a train with --checkpoint; NULL: it has none */
    pli_verdict_file verdicts; /* of this life */
    int64_t    before;     /* when FILE.done was written that is there already; -1: there is none */
    uint64_t   over_ns;    /* since when what is left cannot end well by itself; 0: it can */
} supervisor;

/* Ranks end together, since none leaves before all are done. So where one has ended badly, or all that had begun have
 * ended, what is still there some seconds later hangs: in MPI_Finalize, or stopped. So does all where one was killed
 * before the ranks had met, for which MPI_Init waits. */
static bool is_over(void *user) {
    supervisor  *s = user;
    pli_verdicts v;
    pli_verdicts_read(s->verdicts.path, &v);
    bool over = v.failed || (v.begun > 0 && v.ended >= v.begun) || (v.died && v.begun == 0);
    const int64_t record = s->record != NULL ? pli_file_mtime_ns(s->record) : -1;
    over = over || (v.ended > 0 && record >= 0 && record != s->before); /* the same, of who was to lead */
    over = over || v.survived; /* the work is done: who was taken for lost may be stopped */
    if (!over) s->over_ns = 0;
    else if (s->over_ns == 0) s->over_ns = pli_now_ns();
    return over && pli_now_ns() - s->over_ns >= PATIENCE_NS;
}

static bool was_killed(int code) {
    static const int fatal[] = { SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE };
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        if (code == PLI_EXIT_SIGNAL + fatal[i]) return true;
    }
    return false;
}

/* How a life ended. */
typedef struct ending {
    int       code;
    bool      asked, ran;
    bool      launchers; /* no rank has said anything, or was killed: it is mpirun itself that failed */
    pli_cause cause;
} ending;

/* The completion record comes first; then what the ranks have said; then the launcher's code. */
static int code_of(const supervisor *s, const pli_launch_job *job, const pli_verdicts *v) {
    int64_t after = s->record != NULL ? pli_file_mtime_ns(s->record) : -1;
    bool    done = after >= 0 && after != s->before;
    if (done) return v->code == PLI_EXIT_FAILED ? v->code : PLI_EXIT_DONE; /* what was to be written beside it failed */
    if (v->survived && v->code == PLI_EXIT_DONE && s->record == NULL) return PLI_EXIT_DONE;
    bool lost = job->was_ended || was_killed(job->code) || v->died;
    if (lost && !job->was_asked && (v->code == PLI_EXIT_DONE || v->code == PLI_EXIT_PEERS || v->died))
        return PLI_EXIT_PEERS;
    if (v->code != PLI_EXIT_DONE) return v->code;
    if (job->code == PLI_EXIT_DONE && s->record != NULL) {
        pli_cli_usage("launch: the ranks have ended, but not their work: there is no new %s", s->record);
        return job->was_asked ? PLI_EXIT_FAILED : PLI_EXIT_PEERS;
    }
    return job->code;
}

static ending live(supervisor *s, char *const *argv) {
    char           own[4200];
    plait_error    err = { .rank = -1 };
    pli_verdicts   v;
    ending         end = { .code = PLI_EXIT_FAILED, .cause = { .rank = -1 } };
    pli_own_directory(own);
    strncat(own, "/plait", sizeof own - strlen(own) - 1);
    char *const    keeper[] = { own, (char *)(uintptr_t) "launch", (char *)(uintptr_t) "--keeper",
                                (char *)(uintptr_t) "--", NULL };
    pli_launch_job job = { .processes = (int32_t)(s->set->ranks + s->set->spares), .argv = argv, .keeper = keeper,
                           .hosts = s->set->hosts, .hostfile = s->set->hostfile, .is_over = is_over, .user = s };
    s->before = s->record != NULL ? pli_file_mtime_ns(s->record) : -1;
    pli_verdicts_open(&s->verdicts);
    s->over_ns = 0;
    end.ran = pli_launch(&job, &err) >= 0;
    if (end.ran && job.unreached) {
        end.asked = job.was_asked;
        end.launchers = true;
        pli_cli_usage("launch: no rank was started: %s; each machine must be reached by 'ssh HOST true' without a "
                      "password", job.why);
    } else if (end.ran) {
        pli_verdicts_read(s->verdicts.path, &v);
        end.code = code_of(s, &job, &v);
        end.cause = v.cause;
        end.asked = job.was_asked;
        end.launchers = end.code == PLI_EXIT_FAILED && v.begun == 0 && !v.failed && !v.died;
        if (end.cause.signal == 0 && end.cause.text[0] == '\0' && was_killed(job.code))
            end.cause.signal = job.code - PLI_EXIT_SIGNAL;
    } else {
        pli_fail_at(&err, "launch");
        end.code = pli_cli_fail(&err);
    }
    pli_verdicts_close(&s->verdicts);
    return end;
}

/* "rank 2 on host b was lost (signal 9), having said: ..." */
static void tell_cause(const pli_cause *c, pli_text *text) {
    if (c->signal == 0 && c->text[0] != '\0') { /* its own words name who it is */
        pli_text_add(text, "%s", c->text);
        return;
    }
    if (c->rank >= 0) pli_text_add(text, "rank %" PRId32, c->rank);
    else pli_text_add(text, "a rank, or mpirun,");
    if (c->host[0] != '\0') pli_text_add(text, " on host %s", c->host);
    if (c->signal != 0) pli_text_add(text, " was lost (signal %d)", c->signal);
    else pli_text_add(text, " was lost");
    if (c->signal != 0 && c->text[0] != '\0') pli_text_add(text, ", having said \"%s\"", c->text);
}

/* The command of the lives after the first. Freed by the caller, as an array. NULL: no memory. */
static char **going_on(const supervisor *s, char *const *argv) {
    size_t n = 0;
    bool   has = false;
    for (; argv[n] != NULL; n++) has = has || strcmp(argv[n], "--resume") == 0 || strncmp(argv[n], "--resume=", 9) == 0;
    char **all = pli_array(n + 3, sizeof *all);
    if (all == NULL) return NULL;
    memcpy(all, argv, n * sizeof *all);
    if (s->checkpoint != NULL && !has) {
        all[n++] = (char *)(uintptr_t) "--resume";
        all[n++] = s->checkpoint;
    }
    all[n] = NULL;
    return all;
}

static void say_end(const supervisor *s, const ending *end, int64_t restarts) {
    pli_text text = { 0 };
    tell_cause(&end->cause, &text);
    if (restarts > 0) pli_text_add(&text, "; it was restarted %" PRId64 " times", restarts);
    if (s->checkpoint != NULL)
        pli_text_add(&text, "; the run is lost with it; to go on from its newest checkpoint: the same command with "
                            "--resume %s", s->checkpoint);
    else pli_text_add(&text, "; the run is lost with it: start it again");
    pli_cli_usage("launch: %s", text.data != NULL ? text.data : "out of memory");
    pli_text_free(&text);
}

static void say_restart(const supervisor *s, const ending *end, int64_t restart) {
    pli_text text = { 0 };
    tell_cause(&end->cause, &text);
    pli_cli_usage("launch: %s; restart %" PRId64 " of %" PRId64 "%s%s",
                  text.data != NULL ? text.data : "out of memory", restart, s->set->max_restarts,
                  s->checkpoint != NULL ? ", from the newest checkpoint in " : ", from the beginning",
                  s->checkpoint != NULL ? s->checkpoint : "");
    pli_text_free(&text);
}

/* What kept mpirun from starting may take its time to pass: 2, 4, 8, ... up to 32 s. A signal ends the wait, and
 * launch. */
static void pause_before(int64_t restart) {
    _Atomic uint32_t nobody_rings = 0;
    uint64_t         ns = UINT64_C(1000000000) << (restart < 5 ? restart : 5), until_ns = pli_now_ns() + ns;
    for (uint64_t now_ns; (now_ns = pli_now_ns()) < until_ns;) pli_futex_wait(&nobody_rings, 0, until_ns - now_ns);
}

static int supervise(supervisor *s) {
    command c = command_of(s->words, s->set->spares);
    if (c.argv == NULL) return pli_cli_usage("launch: out of memory"), PLI_EXIT_FAILED;
    ending  end = live(s, c.argv);
    int64_t restarts = 0;
    char  **again = going_on(s, c.argv);
    while (again != NULL && end.ran && !end.asked && restarts < s->set->max_restarts &&
           (is_worth_a_restart(end.code) || (end.launchers && restarts > 0))) {
        say_restart(s, &end, ++restarts);
        if (end.launchers) pause_before(restarts);
        end = live(s, again);
    }
    if (end.ran && end.code == PLI_EXIT_PEERS) say_end(s, &end, restarts);
    pli_free(again);
    free_command(&c);
    return end.code;
}

/* "a", "a,b:4", "10.0.0.1:2,[fe80::1]". */
static bool are_hosts(const char *text) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:,[]";
    const size_t      n = strlen(text);
    return n > 0 && strspn(text, allowed) == n && text[0] != ',' && text[0] != '-' && text[n - 1] != ',' &&
           strstr(text, ",,") == NULL;
}

/* 0: the ranks can be started where the options say; else the exit code, told. */
static int check_where(const launch_settings *set) {
    plait_error err = { .rank = -1 };
    pli_text    lines = { 0 };
    if (set->hosts != NULL && !are_hosts(set->hosts)) {
        pli_cli_usage("launch: --hosts '%s'; expected names with their places, such as a,b:4", set->hosts);
        return PLI_EXIT_USAGE;
    }
    if (set->hostfile == NULL) return PLI_EXIT_DONE;
    plait_status status = pli_read_whole(set->hostfile, HOSTFILE_MAX_BYTES, &lines, &err);
    pli_text_free(&lines);
    if (status >= 0) return PLI_EXIT_DONE;
    pli_fail_at(&err, "launch: --hostfile");
    return pli_cli_fail(&err);
}

static int start(const launch_settings *set, const pli_text_list *words) {
    supervisor s = { .set = set, .words = words, .record = record_of(words) };
    s.checkpoint = value_of(words, "--checkpoint");
    char      *events = value_of(words, "--events"), *spares = value_of(words, "--spares");
    plait_error     err = { .rank = -1 };
    const pli_above above = { .checkpoint = s.checkpoint != NULL, .restarts = set->max_restarts > 0 };
    int        code = PLI_EXIT_USAGE;
    if (set->spares > 0 && !is_train(words)) {
        pli_cli_usage("launch: --spares %" PRId64
                      " with %s is refused: train alone takes spares; a program sets plait_job_opts.spares itself, and "
                      "is started with -n %" PRId64,
                      set->spares, words->item[0], set->ranks + set->spares);
    } else if (set->spares > 0 && spares != NULL) {
        pli_cli_usage("launch: --spares %" PRId64 ", and train --spares %s: say it once, to launch, which starts so "
                      "many processes more and tells train",
                      set->spares, spares);
    } else if (set->ranks + set->spares > 65536) {
        pli_cli_usage("launch: %" PRId64 " processes and %" PRId64 " spares; expected 65536 at most", set->ranks,
                      set->spares);
    } else if (pli_job_check(&(pli_pair){ .logged = events != NULL, .above = &above }, &err) < 0) {
        pli_cli_usage("launch: %s", err.text);
    } else if ((code = check_where(set)) == PLI_EXIT_DONE) {
        code = supervise(&s);
    }
    pli_free(events);
    pli_free(spares);
    pli_free(s.record);
    pli_free(s.checkpoint);
    return code;
}

static int keep(const pli_text_list *words) {
    char **argv = pli_calloc((size_t)words->n + 1, sizeof *argv);
    if (argv == NULL) return pli_cli_usage("launch: out of memory"), PLI_EXIT_FAILED;
    for (int64_t i = 0; i < words->n; i++) argv[i] = (char *)(uintptr_t)words->item[i];
    int code = pli_keep(argv);
    pli_free(argv);
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
        if (set.keeper && words.n > 0) {
            code = keep(&words);
        } else if (set.ranks == 0) {
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
    .usage = "launch -n N [--hosts A,B:4] [--spares S] [--max-restarts R] -- plait train ...",
    .summary = "start ranks as processes",
    .details =
        "Runs mpirun with the settings that root, few slots and shared cores need, and passes signals on. It takes "
        "mpirun from .venv/, else from the path, else from PLAIT_MPIRUN. mpirun and srun also work by hand.\n\n"
        "With --hosts or --hostfile the ranks are started on these machines, by ssh. Plait and the data must have the "
        "same paths there.\n\n"
        "A train with --out FILE is complete when FILE.done says so. With --max-restarts a job that lost a rank, a "
        "host or mpirun is started again; a train with --checkpoint DIR then continues from its newest good "
        "checkpoint.\n\n"
        "With --spares S and a train with --replicas 2, N + S ranks are started. The last S are spares: when a rank "
        "dies, a spare takes its place and the run continues.",
    .rows = rows,
    .run = launch,
};
