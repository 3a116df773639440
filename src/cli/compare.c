/* compare - the same job under several settings: which suits it, and by how much.
 *
 * Every pair of topology and consistency is run as a process of its own (SimGrid takes one platform a process,
 * and a run that dies must not take the others along), which is this program with `train`: first once with an event
 * log, for the staleness that reads had and to warm the page cache, not timed; then --repeats times, in turns, so
 * that what disturbs the machine for a while disturbs all alike. What they leave lies in a temporary directory
 * until it is read. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/paths.h"
#include "cli/settings.h"
#include "cli/spawn.h"
#include "cli/talk.h"
#include "comm/launcher.h"
#include "table/topology/topology.h"
#include "watch/compare/compare.h"

enum { CURVE_POINTS = 48, PAIRS_MAX = 1024, OUTPUT_BYTES_MAX = 16 << 20, WORDS_MAX = 32 };

typedef struct compare_settings {
    const char *report;
    int64_t     repeats;
    double      target;
} compare_settings;

#define AT(field) offsetof(compare_settings, field)

static const pli_opt rows[] = {
    { "report", PLI_OPT_TEXT, AT(report), NULL, "FILE", "write one HTML page that needs no network", 0, 0, "compare" },
    { "repeats", PLI_OPT_I64, AT(repeats), "3", "N", "timed runs of each pair; their spread is the noise", 1, 1000,
      "compare" },
    { "target", PLI_OPT_F64, AT(target), NULL, "X",
      "the objective that all are to reach; default 1 % above the lowest reached", -INFINITY, INFINITY, "compare" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

typedef struct work {
    compare_settings   set;
    pli_train_settings job;
    pli_opts          *own_opts, *job_opts;
    pli_comparison     result;
    pli_talk           talk;
    bool              *out; /* [pairs] does not run, or not any more */
    char             **env;
    char              *directory, *config, *metrics, *events, *printed, *said;
    char               program[4096 + 8];
    pli_text           settings, title;
    int64_t            done, planned; /* runs */
} work;

/* --- options -------------------------------------------------------------------------------------------------- */

/* What compare sets itself, or what would be lost. */
static const char *const not_of_job[] = { "topology", "consistency", "table",  "out",  "metrics", "curve",   "events",
                                          "trace",    "tensorboard", "config", "json", "quiet",   "dry-run", NULL };
static const char *const refused[] = { "table", "out",         "metrics", "curve", "events",
                                       "trace", "tensorboard", "dry-run", NULL };

static bool is_one_of(const char *name, const char *const *names) {
    while (*names != NULL && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

static bool given(const pli_opts *opts, const char *name) {
    return pli_opts_origin(opts, name, NULL) != PLI_FROM_DEFAULT;
}

/* The row of compare's own that a word names; *with_value: "--name=value". */
static const pli_opt *own_row(const char *word, bool *with_value) {
    *with_value = false;
    if (strncmp(word, "--", 2) != 0) return NULL;
    for (const pli_opt *row = rows; row->name != NULL; row++) {
        size_t length = strlen(row->name);
        if (strncmp(word + 2, row->name, length) != 0) continue;
        *with_value = word[2 + length] == '=';
        if (*with_value || word[2 + length] == '\0') return row;
    }
    return NULL;
}

/* Its own options go to one list, train's to the other; each [argc + 1]. */
static void part_words(int argc, char *const *argv, char **own, int *n_own, char **job, int *n_job) {
    for (int i = 0; i < argc; i++) {
        bool with_value;
        if (own_row(argv[i], &with_value) == NULL) {
            job[(*n_job)++] = argv[i];
            continue;
        }
        own[(*n_own)++] = argv[i];
        if (!with_value && i + 1 < argc) own[(*n_own)++] = argv[++i];
    }
}

/* The page must be none of what the runs read. */
static bool check_report(const work *w) {
    const pli_train_settings *job = &w->job;
    const pli_path            written = { "--report", w->set.report, false };
    const pli_path read[] = { { "--test", job->test, false },       { "--validation", job->validation, false },
                              { "--label", pli_input_label_file(&job->in), false }, { "--config", job->config, false },
                              { "--cluster", job->cluster, false }, { "--init-model", job->init_model, false } };
    if (w->set.report == NULL || strcmp(w->set.report, "-") != 0)
        return pli_paths_apart("compare", &written, 1, read, sizeof read / sizeof *read, &job->in.data);
    pli_cli_usage(
        "compare: --report -: the page is not written to standard output; name a file, as --report page.html");
    return false;
}

static bool check(const work *w) {
    for (const char *const *name = refused; *name != NULL; name++) {
        if (pli_opts_origin(w->job_opts, *name, NULL) != PLI_FROM_FLAG) continue;
        pli_cli_usage("compare: --%s is for a single run; compare many, then 'plait train' with the setting that suits",
                      *name);
        return false;
    }
    for (int64_t i = 0; i < w->job.in.data.n; i++) {
        if (!pli_is_pipe(w->job.in.data.item[i])) continue;
        pli_cli_usage("compare: %s can be read only once, but every run reads it; put it into a file",
                      w->job.in.data.item[i]);
        return false;
    }
    plait_error  err;
    pli_launcher launcher = pli_launcher_find();
    if (w->job.transport == NULL && pli_launcher_check_alone(&err) < 0) {
        pli_cli_usage("compare: %s", err.text);
        return false;
    }
    if (launcher.name != NULL && launcher.size > 1) {
        pli_cli_usage(
            "compare: started as %d processes by %s; start one, with --transport mpi it launches each run's ranks",
            launcher.size, launcher.name);
        return false;
    }
    if (w->job.in.data.n == 0) pli_cli_usage("compare: no data; say --data D");
    return w->job.in.data.n > 0 && check_report(w);
}

static bool read_options(work *w, int argc, char *const *argv, int *code) {
    char      **words = pli_calloc(2 * (size_t)argc + 2, sizeof *words), **own = words, **job = words + argc + 1;
    int         n_own = 0, n_job = 0;
    pli_command as_train = pli_command_train;
    as_train.name = "compare";
    if (words == NULL) return pli_cli_usage("out of memory"), false;
    part_words(argc, argv, own, &n_own, job, &n_job);
    bool ok = pli_cli_read(&pli_command_compare, n_own, own, &w->set, NULL, &w->own_opts, code) &&
              pli_train_settings_read(&as_train, n_job, job, &w->job, &w->job_opts, code) && check(w);
    pli_free(words);
    return ok;
}

/* --- pairs ----------------------------------------------------------------------------------------------------- */

/* Is there such a topology, such a consistency? Whether they go together is for the run to say. */
static bool are_names(const pli_compared_pair *pair) {
    plait_error  err = { .rank = -1 };
    pli_topology topology;
    pli_policy   policy;
    if (pli_topology_make(pair->topology, PLI_FILL_ANY, &topology, &err) < 0 ||
        pli_policy_make(pair->consistency, NULL, &policy, &err) < 0) {
        pli_cli_usage("compare: %s", err.text);
        return false;
    }
    pli_policy_destroy(&policy);
    return true;
}

static bool add_pair(work *w, const char *topology, size_t t, const char *consistency, size_t c) {
    pli_comparison *r = &w->result;
    if (t >= sizeof r->pair->topology || c >= sizeof r->pair->consistency || t == 0 || c == 0 ||
        r->pairs == PAIRS_MAX) {
        pli_cli_usage("compare: --topology and --consistency take names, separated by commas, of at most %d pairs",
                      PAIRS_MAX);
        return false;
    }
    pli_compared_pair *pair = &r->pair[r->pairs++];
    memcpy(pair->topology, topology, t);
    memcpy(pair->consistency, consistency, c);
    for (const pli_compared_pair *before = r->pair; before < pair; before++) {
        if (strcmp(before->topology, pair->topology) != 0 || strcmp(before->consistency, pair->consistency) != 0)
            continue;
        pli_cli_usage("compare: %s x %s is named twice", pair->topology, pair->consistency);
        return false;
    }
    return are_names(pair);
}

static bool cross(work *w, const char *topologies, const char *consistencies) {
    if (*topologies == '\0' || *consistencies == '\0') return add_pair(w, "", 0, "", 0);
    for (const char *t = topologies; *t != '\0';) {
        size_t t_bytes = strcspn(t, ",");
        for (const char *c = consistencies; *c != '\0';) {
            size_t c_bytes = strcspn(c, ",");
            if (!add_pair(w, t, t_bytes, c, c_bytes)) return false;
            c += c_bytes + (c[c_bytes] == ',');
        }
        t += t_bytes + (t[t_bytes] == ',');
    }
    return true;
}

static bool make_pairs(work *w) {
    pli_text    all = { 0 };
    const char *topologies = w->job.topology;
    const char *consistencies = given(w->job_opts, "consistency") ? w->job.consistency : "bsp,ssp:2,async";
    for (size_t i = 0; pli_topologies()[i] != NULL; i++) {
        char example[PLI_TOPOLOGY_TEXT];
        pli_topology_example(pli_topologies()[i], example);
        pli_text_add(&all, "%s%s", i == 0 ? "" : ",", example);
    }
    if (topologies == NULL) topologies = all.data;
    w->result.pair = pli_calloc(PAIRS_MAX, sizeof *w->result.pair);
    w->out = pli_calloc(PAIRS_MAX, sizeof *w->out);
    bool ok = w->result.pair != NULL && w->out != NULL && topologies != NULL;
    if (!ok) pli_cli_usage("compare: out of memory");
    ok = ok && cross(w, topologies, consistencies);
    pli_text_free(&all);
    return ok;
}

/* --- what is the same for all runs ------------------------------------------------------------------------------- */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* A list of YAML as words: "[a, b]" -> "a b". Returns how long they are. */
static size_t take_brackets(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (*from != '[' && *from != ']' && *from != ',') *to++ = *from;
    *to = '\0';
    return (size_t)(to - text);
}

/* The job as a configuration file and as words. */
static bool write_job(work *w, plait_error *err) {
    pli_text     yaml = { 0 };
    pli_outfile *file = NULL;
    for (const pli_opt *row = pli_train_rows; row->name != NULL; row++) {
        if (row->kind == PLI_OPT_LATER || is_one_of(row->name, not_of_job) || !given(w->job_opts, row->name)) continue;
        pli_text_add(&yaml, "%s: ", row->name);
        pli_opts_value(row, &w->job, &yaml);
        pli_text_add(&yaml, "\n");
        pli_text_add(&w->settings, "%s--%s", w->settings.length > 0 ? " " : "", row->name);
        if (row->kind == PLI_OPT_FLAG) continue;
        size_t begin = w->settings.length;
        pli_text_add(&w->settings, " ");
        pli_opts_value(row, &w->job, &w->settings);
        if (row->kind == PLI_OPT_LIST && !w->settings.failed)
            w->settings.length = begin + take_brackets(w->settings.data + begin);
    }
    pli_text_add(&w->title, "%s on %s", w->job.model, last_part(w->job.in.data.item[0]));
    bool ok = !yaml.failed && !w->settings.failed && !w->title.failed && pli_outfile_open(w->config, &file, err) >= 0;
    if (ok) ok = pli_outfile_write(file, yaml.data != NULL ? yaml.data : "", yaml.length, err) >= 0;
    if (ok)
        ok = pli_outfile_commit(&file, err) >= 0;
    else
        pli_outfile_abandon(&file);
    pli_text_free(&yaml);
    return ok;
}

static bool make_place(work *w, plait_error *err) {
    char own[4096];
    pli_own_directory(own);
    snprintf(w->program, sizeof w->program, "%s/plait", own);
    w->directory = pli_temporary_directory("plait-compare");
    if (w->directory == NULL) return pli_fail(err, PLAIT_EIO, "no place for temporary files; set TMPDIR"), false;
    w->config = pli_format("%s/job.yaml", w->directory);
    w->metrics = pli_format("%s/metrics", w->directory);
    w->events = pli_format("%s/events", w->directory);
    w->printed = pli_format("%s/out", w->directory);
    w->said = pli_format("%s/err", w->directory);
    w->env = pli_env_without(pli_train_rows);
    if (w->config == NULL || w->metrics == NULL || w->events == NULL || w->printed == NULL || w->said == NULL ||
        w->env == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "out of memory"), false;
    return write_job(w, err);
}

static void describe_machine(pli_machine *m) {
    pli_host_name(m->host);
    pli_cpu_name(m->cpu);
    pli_kernel_name(m->kernel);
    snprintf(m->version, sizeof m->version, "%s", PLI_VERSION);
    m->cores = pli_cores();
    m->memory_bytes = pli_memory_total_bytes();
    m->load = pli_load();
}

/* --- a run
 * --------------------------------------------------------------------------------------------------------- */

static bool simulates(const work *w) { return w->job.transport != NULL && strcmp(w->job.transport, "sim") == 0; }
static bool launches(const work *w) { return w->job.transport != NULL && strcmp(w->job.transport, "mpi") == 0; }

/* Ranks of processes write a log each. */
static int32_t logs_of(const work *w) {
    return launches(w) ? (int32_t)((w->job.workers > 0 ? w->job.workers : 1) + w->job.servers) : 1;
}

static char *log_name(const work *w, int32_t log) {
    return launches(w) ? pli_format("%s.%" PRId32, w->events, log) : pli_strdup(w->events);
}

typedef struct words {
    char *item[WORDS_MAX];
    int   n;
} words;
static void add(words *list, const char *word) { list->item[list->n++] = (char *)(uintptr_t)word; }
static void add_two(words *list, const char *name, const char *value) {
    add(list, name);
    add(list, value);
}

static plait_status start(work *w, const pli_compared_pair *pair, int32_t repeat, bool watched, int32_t *exit_out,
                          plait_error *err) {
    words list = { .n = 0 };
    char  ranks[16], seed[24], points[16], workers[16];
    snprintf(workers, sizeof workers, "%" PRId32, pair->workers);
    snprintf(ranks, sizeof ranks, "%" PRId32, logs_of(w));
    snprintf(seed, sizeof seed, "%" PRId64, w->job.seed + repeat);
    snprintf(points, sizeof points, "%d", CURVE_POINTS);
    add(&list, w->program);
    if (launches(w)) {
        add(&list, "launch");
        add_two(&list, "-n", ranks);
        add_two(&list, "--", w->program);
    }
    add(&list, "train");
    add_two(&list, "--config", w->config);
    add_two(&list, "--topology", pair->topology);
    add_two(&list, "--consistency", pair->consistency);
    add_two(&list, "--metrics", w->metrics);
    add_two(&list, "--json", "--quiet");
    if (watched)
        add_two(&list, "--events", w->events);
    else
        add_two(&list, "--curve", points);
    if (pair->servers_work > 0) {
        add_two(&list, "--workers", workers);
        add_two(&list, "--servers", "0");
    }
    if (simulates(w)) add_two(&list, "--seed", seed); /* the same seed would repeat the run bit for bit */
    add(&list, NULL);
    return pli_spawn(list.item, w->env, w->printed, w->said, exit_out, err);
}

/* The first line that the run has said, without "plait: ". */
static char *reason_of(const work *w, int32_t code) {
    pli_text    text = { 0 };
    plait_error err;
    char       *reason = NULL;
    (void)pli_read_whole(w->said, OUTPUT_BYTES_MAX, &text, &err);
    for (const char *line = text.data; line != NULL && *line != '\0' && reason == NULL;) {
        size_t length = strcspn(line, "\n");
        bool   said = length > 7 && strncmp(line, "plait: ", 7) == 0 && strncmp(line + 7, "warning", 7) != 0;
        if (said) reason = pli_format("%.*s", (int)length - 7, line + 7);
        line += length + (line[length] == '\n');
    }
    pli_text_free(&text);
    char *colon = reason != NULL && strncmp(reason, "rank ", 5) == 0 ? strstr(reason, ": ") : NULL;
    if (colon != NULL && code == PLI_EXIT_USAGE)
        memmove(reason, colon + 2, strlen(colon + 2) + 1); /* all ranks refuse alike */
    if (reason == NULL && code > PLI_EXIT_SIGNAL) return pli_format("ended by signal %" PRId32, code - PLI_EXIT_SIGNAL);
    if (reason == NULL && code == PLI_EXIT_INTERRUPTED) return pli_strdup("it was interrupted");
    return reason != NULL ? reason : pli_format("exit code %" PRId32, code);
}

/* A topology without servers has nothing for those ranks to hold, as the run says: then their hosts work. */
static bool lets_servers_work(const work *w, pli_compared_pair *pair, int32_t code) {
    if (code != PLI_EXIT_USAGE || w->job.servers == 0 || pair->servers_work > 0) return false;
    char      *reason = reason_of(w, code);
    const bool idle = reason != NULL && strstr(reason, "servers would stand idle") != NULL;
    pli_free(reason);
    if (!idle) return false;
    pair->servers_work = (int32_t)w->job.servers;
    pair->workers = (int32_t)((w->job.workers > 0 ? w->job.workers : 1) + w->job.servers);
    return true;
}

static pli_outcome outcome_of(int32_t code) {
    if (code == PLI_EXIT_DONE) return PLI_RAN;
    if (code == PLI_EXIT_USAGE) return PLI_RUN_REFUSED;
    return code == PLI_EXIT_INTERRUPTED || pli_spawn_stopped() != 0 ? PLI_RUN_STOPPED : PLI_RUN_FAILED;
}

static plait_status read_logs(work *w, pli_compared_pair *pair, plait_error *err) {
    int32_t      n = logs_of(w);
    char       **path = pli_calloc((size_t)n, sizeof *path);
    plait_status status = path == NULL ? pli_fail(err, PLAIT_ENOMEM, "out of memory") : PLAIT_OK;
    for (int32_t i = 0; i < n && status >= 0; i++)
        if ((path[i] = log_name(w, i)) == NULL) status = pli_fail(err, PLAIT_ENOMEM, "out of memory");
    if (status >= 0) status = pli_compare_audit(pair, (const char *const *)path, n, err);
    for (int32_t i = 0; path != NULL && i < n; i++) {
        if (path[i] != NULL) remove(path[i]);
        pli_free(path[i]);
    }
    pli_free(path);
    return status;
}

static plait_status read_run(const work *w, pli_compared_run *run, plait_error *err) {
    pli_text     text = { 0 };
    plait_status status = pli_read_whole(w->printed, OUTPUT_BYTES_MAX, &text, err);
    if (status >= 0) status = pli_compare_read(run, text.data != NULL ? text.data : "", w->metrics, err);
    pli_text_free(&text);
    return status;
}

static void tell(work *w, const pli_compared_pair *pair, int32_t repeat) {
    char name[104];
    w->done++;
    if (w->talk.quiet || !w->talk.terminal) return;
    pli_compare_name(pair, name);
    fprintf(stderr, "\r\033[Krun %" PRId64 " of %" PRId64 ": %s%s", w->done, w->planned, name,
            repeat < 0 ? " (not timed)" : "");
}

/* repeat -1: the run with an event log. Only memory and the file system can fail it; what goes wrong in a run is a
 * row. */
static plait_status run_one(work *w, int32_t number, int32_t repeat, plait_error *err) {
    pli_compared_pair *pair = &w->result.pair[number];
    int32_t            code = 0;
    bool               watched = repeat < 0;
    tell(w, pair, repeat);
    PLI_TRY(start(w, pair, watched ? 0 : repeat, watched, &code, err));
    if (watched && lets_servers_work(w, pair, code)) PLI_TRY(start(w, pair, 0, true, &code, err));
    if (code == PLI_EXIT_DONE && watched) {
        plait_error why = { 0 };
        if (read_logs(w, pair, &why) < 0)
            pli_talk_say(&w->talk, "no staleness of %s x %s: %s", pair->topology, pair->consistency, why.text);
        return PLAIT_OK;
    }
    pli_compared_run *run = pli_compare_add(&w->result);
    if (run == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for another run");
    run->pair = number;
    run->repeat = watched ? 0 : repeat;
    run->exit_code = code;
    run->outcome = outcome_of(code);
    plait_error why = { 0 };
    if (run->outcome == PLI_RAN && read_run(w, run, &why) < 0) {
        run->outcome = PLI_RUN_FAILED;
        run->reason = pli_strdup(why.text);
    } else if (run->outcome != PLI_RAN) {
        run->reason = reason_of(w, code);
    }
    w->out[number] = run->outcome != PLI_RAN;
    return PLAIT_OK;
}

/* --- all runs
 * -------------------------------------------------------------------------------------------------------- */

static plait_status run_all(work *w, plait_error *err) {
    pli_comparison *r = &w->result;
    w->planned = (int64_t)r->pairs * (r->repeats + 1);
    for (int32_t repeat = -1; repeat < r->repeats && !r->interrupted; repeat++) {
        if (repeat < 0)
            pli_talk_say(&w->talk, "%d pair%s, each once with an event log, not timed", r->pairs, pli_plural(r->pairs));
        else if (!w->talk.terminal)
            pli_talk_say(&w->talk, "repeat %d of %d", repeat + 1, r->repeats);
        for (int32_t pair = 0; pair < r->pairs && !r->interrupted; pair++) {
            if (!w->out[pair]) PLI_TRY(run_one(w, pair, repeat, err));
            r->interrupted = pli_spawn_stopped() != 0;
        }
    }
    return PLAIT_OK;
}

/* --- what comes of it
 * -------------------------------------------------------------------------------------------------- */

static plait_status write_report(const work *w, plait_error *err) {
    pli_text     page = { 0 };
    pli_outfile *file = NULL;
    pli_compare_page(&w->result, &page);
    plait_status status = page.failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for the page") : PLAIT_OK;
    if (status >= 0) status = pli_outfile_open(w->set.report, &file, err);
    if (status >= 0) {
        status = pli_outfile_write(file, page.data, page.length, err);
        if (status < 0)
            pli_outfile_abandon(&file);
        else
            status = pli_outfile_commit(&file, err);
    }
    pli_text_free(&page);
    return status;
}

/* That of the first that did not run, where none did. */
static int32_t code_of(const pli_comparison *r) {
    int32_t code = PLI_EXIT_FAILED;
    for (int64_t i = r->runs - 1; i >= 0; i--) {
        if (r->run[i].outcome == PLI_RAN) return PLI_EXIT_DONE;
        code = r->run[i].exit_code != PLI_EXIT_DONE ? r->run[i].exit_code : PLI_EXIT_FAILED;
    }
    return code;
}

static int show(work *w, plait_error *err) {
    pli_comparison *r = &w->result;
    pli_text        text = { 0 };
    if (pli_compare_judge(r, err) < 0) return pli_cli_fail(err);
    if (w->set.report != NULL && write_report(w, err) < 0) return pli_cli_fail(err);
    pli_compare_table(r, pli_terminal_columns(1), &text);
    if (w->job.json) {
        pli_compare_json(r, &text);
        pli_text_add(&text, "\n");
    }
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    if (w->set.report != NULL) pli_talk_say(&w->talk, "the page: %s", w->set.report);
    return pli_cli_end(r->interrupted ? PLI_EXIT_INTERRUPTED : code_of(r));
}

/* Fails before the work, not after it. */
static bool can_report(const work *w, plait_error *err) {
    pli_outfile *file = NULL;
    if (w->set.report == NULL) return true;
    if (pli_outfile_open(w->set.report, &file, err) < 0) return false;
    pli_outfile_abandon(&file);
    return true;
}

static int run(work *w) {
    plait_error     err = { .rank = -1 };
    pli_comparison *r = &w->result;
    int             code = PLI_EXIT_FAILED;
    if (!make_pairs(w)) return PLI_EXIT_USAGE;
    if (!can_report(w, &err) || !make_place(w, &err)) return pli_cli_fail(&err);
    r->repeats = (int32_t)w->set.repeats;
    r->target_given = given(w->own_opts, "target") ? w->set.target : (double)NAN;
    r->settings = w->settings.data != NULL ? w->settings.data : "";
    r->title = w->title.data;
    r->transport = w->job.transport != NULL ? w->job.transport : "threads";
    describe_machine(&r->machine);
    if (w->job.workers <= 1)
        pli_talk_say(&w->talk, "note: one worker has nobody to exchange updates with; --workers N takes more");
    pli_spawn_begin();
    plait_status status = run_all(w, &err);
    if (w->talk.terminal && !w->talk.quiet) fputs("\r\033[K", stderr);
    code = status < 0 ? pli_cli_fail(&err) : show(w, &err);
    pli_spawn_end();
    return code;
}

static void end(work *w) {
    if (w->directory != NULL) pli_remove_directory(w->directory);
    char *texts[] = { w->directory, w->config, w->metrics, w->events, w->printed, w->said };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) pli_free(texts[i]);
    pli_compare_free(&w->result);
    pli_text_free(&w->settings);
    pli_text_free(&w->title);
    pli_free(w->env);
    pli_free(w->out);
    pli_opts_free(&w->job_opts);
    pli_opts_free(&w->own_opts);
}

static int compare(int argc, char *const *argv) {
    work w = { 0 };
    int  code = PLI_EXIT_USAGE;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "-h") != 0 && strcmp(argv[i], "--help") != 0) continue;
        pli_text text = { 0 };
        pli_cli_help(&pli_command_compare, pli_terminal_columns(1), &text);
        return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
    }
    if (read_options(&w, argc, argv, &code)) {
        pli_talk_open(&w.talk, w.job.quiet);
        code = run(&w);
        pli_talk_close(&w.talk);
    }
    end(&w);
    return code;
}

const pli_command pli_command_compare = {
    .name = "compare",
    .usage = "compare [options of train] --topology A,B --consistency X,Y [--report F.html]",
    .summary = "which setting suits a job, and by how much",
    .details = "Runs the job that train's options describe under every pair of the topologies and consistencies listed "
               "(default: all "
               "topologies, and bsp,ssp:2,async), on threads, by MPI or in simulated time as --transport says, each "
               "--repeats times in "
               "turns. All are held to the same objective; the one that first reaches it in the median wins, if a "
               "Mann-Whitney test "
               "tells it from the others at one in twenty. A refused pair is a row with its reason.\n\n"
               "Ctrl-C ends the run at hand, reports those that are done and exits with 75. --json prints everything "
               "as one object.",
    .rows = rows,
    .run = compare,
};
