/* launch - starts the ranks of a job as processes, by mpirun with the flags that one machine needs, and restarts them.
 *
 * A launcher's exit code does not tell whether the job is done: it may be 0 after a failure, or the code of a rank that
 * was lost while the others succeeded. So a train with --out is done only if it has its completion record, FILE.done.
 * Without --out, the ranks' own reports count (verdict.c), then the launcher's code.
 *
 * With --max-restarts R a lost job is restarted up to R times: by the same command, and, for a train or a graph run
 * with --checkpoint DIR, from the newest good checkpoint there (--resume DIR; if there is none yet, from the
 * beginning).
 *
 *   how it ended                                    | again | because
 *   3: a rank was killed, froze or was cut off      | yes   | the next life may have better luck
 *   a rank died of a signal of its own (11, 6, ...) | yes   | memory or machine may be at fault; if not, R ends it
 *   mpirun was killed, or its host's ranks with it  | yes   | the job was not at fault
 *   ended, but without FILE.done                    | yes   | a rank was lost without a report
 *   0 with the record                               | no    | it is done
 *   1: failed (a file, the disk, memory)            | no    | it would fail again with the same message
 *   1: mpirun itself, in a life after the first     | yes   | after a pause: a host may be away for a while
 *   2: usage, refused; 4: the answer is no          | no    | it would end in the same way
 *   75, or a signal asked to stop                   | no    | the user wants it to stop
 *
 * If a signal n that asks to stop has killed a rank, the code is 128+n. train saves and ends with 75 instead.
 *
 * --spares S starts S more processes, and tells the train of them (train --spares): a spare takes the place of a rank
 * that dies while the run goes on, and a restart begins with all of them again.
 *
 * Before a restart comm/launch.c ends all processes that mpirun leaves behind. Since no rank leaves before all are
 * done, processes that are left some seconds after a rank has ended badly, or after all have ended, hang, and are
 * ended. */
#include "comm/launch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/dashboard/watched.h"
#include "cli/keeper.h"
#include "cli/verdict.h"
#include "table/pairs/pairs.h"

#define PATIENCE_NS        UINT64_C(5000000000)
#define HOSTFILE_MAX_BYTES (1 << 20)

typedef struct launch_settings {
    const char *hosts, *hostfile;
    int64_t     ranks, spares, max_restarts, dashboard;
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
    { "dashboard", PLI_OPT_I64, offsetof(launch_settings, dashboard), NULL, "PORT",
      "show the train and all its ranks on a page of this machine, with figures for Prometheus; 0: any free port; the "
      "address is printed; it outlives ranks and restarts", 0, 65535, "run" },
    /* for launch itself: runs the command as one rank, and reports the signal that ended it */
    { "keeper", PLI_OPT_FLAG, offsetof(launch_settings, keeper), NULL, NULL, NULL, 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* The command to run. It owns the words that were added. */
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

/* Makes the command; its first word is a path. "plait", or the bare name of a command, means this program. */
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

/* Are the words of graph those of graph run, a job? The first of graph's own words says so; later ones, as in `graph
 * place net.json --out run`, are something else. */
static bool is_graph_run(const pli_text_list *words) {
    for (int64_t i = 1; i < words->n; i++)
        for (const char *const *own = pli_command_graph.words; *own != NULL; own++)
            if (strcmp(words->item[i], *own) == 0) return strcmp(*own, "run") == 0;
    return false;
}

/* The command of ours that the words name, if it works in one process: each of several would do and print the same.
 * NULL: it joins a job, or is another program. */
static const char *works_alone(const pli_text_list *words) {
    const char *first = words->item[0], *slash = strrchr(first, '/'), *base = slash != NULL ? slash + 1 : first;
    const bool  named = strcmp(base, "plait") == 0 && words->n > 1;
    const pli_command *found = pli_command_find(named ? words->item[1] : first);
    const bool  joins = found == &pli_command_train || found == &pli_command_version || found == &pli_command_help ||
                       (found == &pli_command_graph && is_graph_run(words));
    return found == NULL || joins ? NULL : found->name;
}

/* Do the words run a job of ours that may keep checkpoints: train, graph run? */
static bool keeps_checkpoints(const pli_text_list *words) {
    for (int64_t i = 0; i + 1 < words->n && i < 2; i++)
        if (strcmp(words->item[i], "graph") == 0) return is_graph_run(words);
    return is_train(words);
}

/* The last value given for an option; NULL: there is none, or the command does not run such a job. The caller frees
 * it. */
static char *value_of(const pli_text_list *words, const char *option) {
    const char *value = NULL;
    size_t      length = strlen(option);
    for (int64_t i = 0; i < words->n; i++) {
        const char *word = words->item[i];
        if (strcmp(word, option) == 0 && i + 1 < words->n) value = words->item[i + 1];
        if (strncmp(word, option, length) == 0 && word[length] == '=') value = word + length + 1;
    }
    return keeps_checkpoints(words) && value != NULL ? pli_strdup(value) : NULL;
}

/* FILE.done if the command is a train with --out FILE, and FILE is no device, else NULL. The caller frees it. */
static char *record_of(const pli_text_list *words) {
    char *out = is_train(words) ? value_of(words, "--out") : NULL, *record = NULL;
    for (int64_t i = 0; i < words->n; i++) {
        if (strcmp(words->item[i], "--dry-run") != 0) continue;
        pli_free(out);
        return NULL;
    }
    if (out != NULL && !pli_is_pipe(out)) record = pli_format("%s.done", out);
    pli_free(out);
    return record;
}

/* Is a restart useful (see the table above)? A code of a signal that is no request to stop counts like a lost peer. */
static bool is_worth_a_restart(int code) { return code == PLI_EXIT_PEERS || code > PLI_EXIT_SIGNAL; }

/* --- a life of the job ------------------------------------------------------------------------------------ */

typedef struct supervisor {
    const launch_settings *set;
    const pli_text_list   *words;
    char      *record;     /* FILE.done; NULL: the command writes none         */
    char      *checkpoint; /* DIR of --checkpoint; NULL: it has none           */
    pli_verdict_file verdicts; /* of this life */
    int64_t    before;     /* time of an old FILE.done; -1: there is none */
    pli_watched *watched;  /* its dashboard; NULL: none */
    uint64_t   over_ns;    /* the time since which the rest cannot end well by itself; 0: it can */
} supervisor;

/* Has the job hung? Ranks end together, since none leaves before all are done. So if one has ended badly, or all that
 * had begun have ended, processes that are left some seconds later hang in MPI_Finalize, or are stopped. If a rank was
 * killed before the ranks had met, all hang, because MPI_Init waits for it. */
static bool is_over(void *user) {
    supervisor  *s = user;
    pli_verdicts v;
    pli_verdicts_read(s->verdicts.path, &v);
    bool over = v.failed || (v.begun > 0 && v.ended >= v.begun) || (v.died && v.begun == 0);
    const int64_t record = s->record != NULL ? pli_file_mtime_ns(s->record) : -1;
    over = over || (v.ended > 0 && record >= 0 && record != s->before); /* a new record: the work is done */
    over = over || v.survived; /* the work is done; ranks that were taken for lost may be stopped */
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
    bool      launchers; /* mpirun itself failed: no rank has reported anything, or was killed */
    pli_cause cause;
} ending;

/* The exit code of a life: the completion record counts first, then the ranks' reports, then the launcher's code. */
static int code_of(const supervisor *s, const pli_launch_job *job, const pli_verdicts *v) {
    int64_t after = s->record != NULL ? pli_file_mtime_ns(s->record) : -1;
    bool    done = after >= 0 && after != s->before;
    if (done) return v->code == PLI_EXIT_FAILED ? v->code : PLI_EXIT_DONE; /* another output failed */
    if (v->survived && v->code == PLI_EXIT_DONE && s->record == NULL) return PLI_EXIT_DONE;
    if (v->stopped) return PLI_EXIT_INTERRUPTED;
    bool lost = job->was_ended || was_killed(job->code) || v->died;
    if (lost && job->asked == 0 && (v->code == PLI_EXIT_DONE || v->code == PLI_EXIT_PEERS || v->died))
        return PLI_EXIT_PEERS;
    if (v->code != PLI_EXIT_DONE) return v->code;
    if (job->asked != 0 && v->died && !was_killed(job->code)) return PLI_EXIT_SIGNAL + job->asked; /* mpirun says 0 */
    if (job->code == PLI_EXIT_DONE && s->record != NULL) {
        pli_cli_usage("launch: the ranks have ended, but their work is not complete: there is no new %s", s->record);
        return job->asked != 0 ? PLI_EXIT_FAILED : PLI_EXIT_PEERS;
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
    job.hears = s->verdicts.path != NULL;
    s->over_ns = 0;
    end.ran = pli_launch(&job, &err) >= 0;
    if (end.ran && job.unreached) {
        end.asked = job.asked != 0;
        end.launchers = true;
        pli_cli_usage("launch: no rank was started: %s; each machine must be reached by 'ssh HOST true' without a "
                      "password", job.why);
    } else if (end.ran) {
        pli_verdicts_read(s->verdicts.path, &v);
        end.code = code_of(s, &job, &v);
        end.cause = v.cause;
        end.asked = job.asked != 0;
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

/* Adds "rank 2 on host b was lost (signal 9), having said: ...". */
static void tell_cause(const pli_cause *c, pli_text *text) {
    if (c->signal == 0 && c->text[0] != '\0') { /* the rank's own text names it */
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

/* The command for lives after the first. The caller frees the array. NULL: no memory. */
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
    else pli_text_add(&text, "; the run is lost with it: start it again%s",
                      restarts > 0 || s->set->max_restarts > 0 ? "" : " (launch --max-restarts R does)");
    pli_cli_usage("launch: %s", text.data != NULL ? text.data : "out of memory");
    pli_watched_note(s->watched, "end", text.data);
    pli_text_free(&text);
}

static void say_restart(const supervisor *s, const ending *end, int64_t restart) {
    pli_text text = { 0 };
    tell_cause(&end->cause, &text);
    pli_cli_usage("launch: %s; restart %" PRId64 " of %" PRId64 "%s%s",
                  text.data != NULL ? text.data : "out of memory", restart, s->set->max_restarts,
                  s->checkpoint != NULL ? ", from the newest checkpoint in " : ", from the beginning",
                  s->checkpoint != NULL ? s->checkpoint : "");
    pli_text_add(&text, "; restart %" PRId64 " of %" PRId64, restart, s->set->max_restarts);
    pli_watched_note(s->watched, "restart", text.data);
    pli_text_free(&text);
}

/* Waits 2, 4, 8, ... up to 32 s before a restart, because what kept mpirun from starting may last. A signal ends the
 * wait, and launch. */
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

/* Is the text a list of hosts: "a", "a,b:4", "10.0.0.1:2,[fe80::1]"? */
static bool are_hosts(const char *text) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:,[]";
    const size_t      n = strlen(text);
    return n > 0 && strspn(text, allowed) == n && text[0] != ',' && text[0] != '-' && text[n - 1] != ',' &&
           strstr(text, ",,") == NULL;
}

/* Checks that the ranks can be started where the options say. 0: they can; else an exit code, after it has printed
 * why. */
static int check_where(const launch_settings *set) {
    plait_error err = { .rank = -1 };
    pli_text    lines = { 0 };
    if (set->hosts != NULL && !are_hosts(set->hosts)) {
        pli_cli_usage("launch: --hosts '%s': expected names, each with its number of processes, such as a,b:4",
                      set->hosts);
        return PLI_EXIT_USAGE;
    }
    if (set->hostfile == NULL) return PLI_EXIT_DONE;
    plait_status status = pli_read_whole(set->hostfile, HOSTFILE_MAX_BYTES, &lines, &err);
    pli_text_free(&lines);
    if (status >= 0) return PLI_EXIT_DONE;
    pli_fail_at(&err, "launch: --hostfile");
    return pli_cli_fail(&err);
}

/* Opens the dashboard that launch or the train itself is asked for. 0: it is there, or none was asked for; else an exit
 * code, after it has printed why. */
static int open_dashboard(supervisor *s, bool asked) {
    char       *of_train = value_of(s->words, "--dashboard");
    plait_error err = { .rank = -1 };
    int64_t     port = s->set->dashboard;
    int         code = PLI_EXIT_USAGE;
    if (!asked && of_train == NULL) return PLI_EXIT_DONE;
    if (!is_train(s->words)) {
        pli_cli_usage("launch: --dashboard with '%s%s%s' is refused: only train tells a dashboard of itself; 'plait "
                      "doctor PID' asks any run", s->words->item[0], s->words->n > 1 ? " " : "",
                      s->words->n > 1 ? s->words->item[1] : "");
    } else if (asked && of_train != NULL) {
        pli_cli_usage("launch: --dashboard %" PRId64 ", and train --dashboard %s: give it only to launch, whose page "
                      "shows all ranks", port, of_train);
    } else if (!asked && (!pli_parse_i64(of_train, &port) || port < 0 || port > 65535)) {
        code = PLI_EXIT_DONE; /* train refuses it */
    } else if (pli_watched_open((int32_t)port, &s->watched, &err) < 0) {
        pli_fail_at(&err, "launch");
        code = pli_cli_fail(&err);
    } else {
        code = PLI_EXIT_DONE;
    }
    pli_free(of_train);
    return code;
}

static int start(const launch_settings *set, const pli_text_list *words, bool dashboard) {
    supervisor s = { .set = set, .words = words, .record = record_of(words) };
    s.checkpoint = value_of(words, "--checkpoint");
    char       *spares = value_of(words, "--spares");
    const char *alone = set->ranks > 1 ? works_alone(words) : NULL;
    int         code = PLI_EXIT_USAGE;
    if (alone != NULL) {
        pli_cli_usage("launch: %s works in one process, and each of %" PRId64 " would do and print the same: "
                      "run 'plait %s ...' without launch", alone, set->ranks, alone);
    } else if (set->spares > 0 && !is_train(words)) {
        pli_cli_usage("launch: --spares %" PRId64
                      " with %s is refused: train alone takes spares; a program sets plait_job_opts.spares itself, and "
                      "is started with -n %" PRId64,
                      set->spares, words->item[0], set->ranks + set->spares);
    } else if (set->spares > 0 && spares != NULL) {
        pli_cli_usage("launch: --spares %" PRId64 ", and train --spares %s: give it only to launch, which starts that "
                                                  "many more processes and passes it to train",
                      set->spares, spares);
    } else if (set->ranks + set->spares > 65536) {
        pli_cli_usage("launch: %" PRId64 " processes and %" PRId64 " spares; expected 65536 at most", set->ranks,
                      set->spares);
    } else if ((code = check_where(set)) == PLI_EXIT_DONE && (code = open_dashboard(&s, dashboard)) == PLI_EXIT_DONE) {
        code = supervise(&s);
        pli_watched_close(&s.watched);
    }
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

/* Replaces -n by its long form. It is the only short option, because every launcher has it. Words after -- do not
 * change.
 */
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
        pli_cli_usage("launch: no command: it stands behind --, as in 'plait launch -n N -- plait train ...'");
    } else if (pli_cli_read(&pli_command_launch, argc, spell_out(argc, argv, spelled), &set, &words, &opts, &code)) {
        if (set.keeper && words.n > 0) {
            code = keep(&words);
        } else if (set.ranks == 0) {
            pli_cli_usage("launch: no number of processes; say 'plait launch -n N -- plait train ...'");
        } else if (words.n == 0) {
            pli_cli_usage("launch: no command after --; say 'plait launch -n N -- plait train ...'");
        } else {
            code = start(&set, &words, pli_opts_is_given(opts, "dashboard"));
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
        "host or mpirun is started again; a train or a graph run with --checkpoint DIR then continues from its newest "
        "good checkpoint.\n\n"
        "With --spares S and a train with --replicas 2, N + S ranks are started. The last S are spares: when a rank "
        "dies, a spare takes its place and the run continues.\n\n"
        "With --dashboard PORT (also if it is given to the train) launch itself shows the run on a page: it stays "
        "there when ranks die and when the job is restarted.",
    .rows = rows,
    .run = launch,
};
