/* A command's own options among those of train. A word belongs to the command if one of its rows has that name, and the
 * word behind it, if it is the value; all others are train's, which says what is wrong with them. A configuration file
 * may have both. */
#include "cli/job_words.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/paths.h"
#include "comm/launcher.h"
#include "table/topology/topology.h"

/* The row of the command's own option that a word names; *with_value: the value is a word of its own. */
static const pli_opt *own_row(const pli_command *command, const char *word, bool *with_value) {
    if (strncmp(word, "--", 2) != 0) return NULL;
    for (const pli_opt *row = command->rows; row->name != NULL; row++) {
        const size_t length = strlen(row->name);
        if (strncmp(word + 2, row->name, length) != 0) continue;
        *with_value = word[2 + length] == '\0' && row->kind != PLI_OPT_FLAG;
        if (word[2 + length] == '=' || word[2 + length] == '\0') return row;
    }
    return NULL;
}

static bool is_help(const char *word) { return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0; }

/* Is the word a mistyped own option, and none of train's? Then it prints which, and returns true. */
static bool is_mistyped(const pli_command *command, const pli_opt *train, const char *word) {
    enum { MOST = 16 };
    const char  *names[MOST];
    size_t       n = 0;
    const size_t length = strcspn(word, "=");
    char         name[64];
    if (strncmp(word, "--", 2) != 0 || length - 2 >= sizeof name) return false;
    snprintf(name, sizeof name, "%.*s", (int)length - 2, word + 2);
    for (const pli_opt *row = train; row->name != NULL; row++)
        if (pli_is(name, row->name)) return false;
    for (const pli_opt *row = command->rows; row->name != NULL && n < MOST; row++) names[n++] = row->name;
    const char *nearest = pli_nearest(name, names, n);
    if (nearest == NULL) return false;
    pli_cli_usage("%s: unknown option --%s; did you mean --%s?", command->name, name, nearest);
    return true;
}

/* Sorts the words into mine [n] and others [n_others]. false: one is mistyped, which has been printed. */
static bool sort_words(const pli_command *command, const pli_opt *train, int argc, char *const *argv, char **mine,
                       int *n, char **others, int *n_others) {
    for (int i = 0; i < argc; i++) {
        bool with_value = false;
        if (is_help(argv[i]) || own_row(command, argv[i], &with_value) != NULL) mine[(*n)++] = argv[i];
        else if (!is_mistyped(command, train, argv[i])) others[(*n_others)++] = argv[i];
        else return false;
        if (with_value && i + 1 < argc) mine[(*n)++] = argv[++i];
    }
    return true;
}

bool pli_job_words_read(const pli_command *command, int argc, char *const *argv, void *own, pli_opts **own_opts_out,
                        pli_train_settings *job, pli_opts **job_opts_out, int *code_out) {
    char      **words = pli_calloc(2 * (size_t)argc + 2, sizeof *words), **mine = words, **others = words + argc + 1;
    int         n = 0, n_others = 0;
    pli_command as_train = pli_command_train, as_own = *command;
    pli_opt    *train = pli_command_rows(&pli_command_train);
    bool        ok = words != NULL && train != NULL, help = false;
    as_train.name = command->name;
    as_train.file.beside = command->rows;
    as_own.file.beside = train;
    *job_opts_out = *own_opts_out = NULL;
    if (!ok) pli_cli_usage("out of memory");
    for (int i = 0; i < argc; i++) help = help || is_help(argv[i]);
    ok = ok && sort_words(command, train, argc, argv, mine, &n, others, &n_others);
    if (ok && !help) ok = pli_train_settings_read(&as_train, n_others, others, job, job_opts_out, code_out);
    if (ok && !help) as_own.file.path = job->config;
    ok = ok && pli_cli_read(&as_own, n, mine, own, NULL, own_opts_out, code_out);
    if (!ok) pli_opts_free(job_opts_out);
    pli_free(words);
    pli_free(train);
    return ok;
}

static bool refuse(const pli_command *command, const pli_opts *job_opts, const char *const *names) {
    for (; *names != NULL; names++) {
        if (pli_opts_origin(job_opts, *names, NULL) != PLI_FROM_FLAG) continue;
        pli_cli_usage("%s: --%s is for a single run; leave it out, and use it with 'plait train' and the setting that "
                      "suits best", command->name, *names);
        return true;
    }
    return false;
}

bool pli_job_words_refuse(const pli_command *command, const pli_opts *job_opts, const char *const *names) {
    static const char *const by_all[] = { "metrics", "curve", "events", "trace", "tensorboard",
                                          "dashboard", "dry-run", NULL };
    return refuse(command, job_opts, by_all) || refuse(command, job_opts, names);
}

/* --- pairs of topology and consistency ---------------------------------------------------------------------------- */

bool pli_job_words_item(const char **at, char *item, size_t room) {
    const size_t length = strcspn(*at, ",");
    if (length == 0 || length >= room) return false;
    memcpy(item, *at, length);
    item[length] = '\0';
    *at += length + ((*at)[length] == ',');
    return true;
}

/* Do topology and consistency exist? The run will say whether they work together. */
static bool are_names(const pli_command *command, const pli_job_pair *pair) {
    plait_error  err = { .rank = -1 };
    pli_topology topology;
    pli_policy   policy;
    if (pli_topology_make(pair->topology, PLI_FILL_ANY, &topology, &err) < 0 ||
        pli_policy_make(pair->consistency, NULL, &policy, &err) < 0) {
        pli_cli_usage("%s: %s", command->name, err.text);
        return false;
    }
    pli_policy_destroy(&policy);
    return true;
}

/* Does the item stand in the list before `end`, where it has just been read? */
static bool stood_before(const char *list, const char *end, const char *item) {
    char before[sizeof((pli_job_pair *)NULL)->topology];
    int  n = 0;
    while (list < end && pli_job_words_item(&list, before, sizeof before)) n += strcmp(before, item) == 0;
    return n > 1;
}

bool pli_job_words_pairs(const pli_command *command, const char *topologies, const char *consistencies,
                         bool (*add)(void *user, const pli_job_pair *pair), void *user) {
    pli_job_pair pair;
    const char  *t = topologies;
    bool         ok = *topologies != '\0' && *consistencies != '\0';
    while (ok && *t != '\0') {
        const char *c = consistencies;
        ok = pli_job_words_item(&t, pair.topology, sizeof pair.topology);
        while (ok && *c != '\0') {
            if (!(ok = pli_job_words_item(&c, pair.consistency, sizeof pair.consistency))) break;
            if (stood_before(topologies, t, pair.topology) || stood_before(consistencies, c, pair.consistency)) {
                pli_cli_usage("%s: %s x %s is named twice", command->name, pair.topology, pair.consistency);
                return false;
            }
            if (!are_names(command, &pair) || !add(user, &pair)) return false;
        }
    }
    if (!ok) pli_cli_usage("%s: --topology and --consistency take names separated by commas", command->name);
    return ok;
}

bool pli_job_words_check_alone(const pli_command *command, const pli_train_settings *job, const char *why) {
    const pli_launcher launcher = pli_launcher_find();
    plait_error        err;
    if (job->transport == NULL && pli_launcher_check_alone(&err) < 0)
        pli_cli_usage("%s: %s", command->name, err.text);
    else if (launcher.name != NULL && launcher.size > 1)
        pli_cli_usage("%s: started as %d processes by %s; start only one: %s", command->name, launcher.size,
                      launcher.name, why);
    else
        return true;
    return false;
}

bool pli_job_words_check_data(const pli_command *command, const pli_train_settings *job) {
    for (int64_t i = 0; i < job->in.data.n; i++) {
        if (!pli_is_pipe(job->in.data.item[i])) continue;
        pli_cli_usage("%s: %s can be read only once, but every run reads it; put it into a file", command->name,
                      job->in.data.item[i]);
        return false;
    }
    if (job->in.data.n == 0) pli_cli_usage("%s: no data; say --data D", command->name);
    return job->in.data.n > 0;
}

bool pli_job_words_check_files(const pli_command *command, const pli_train_settings *job, const pli_job_files *own) {
    char          *done = own->out != NULL ? pli_format("%s.done", own->out) : NULL;
    const pli_path written[] = { { "--report", own->report, false },
                                 { "--trials-file", own->trials, false },
                                 { "--out", own->out, false },
                                 { "--out (FILE.done)", done, false } };
    const pli_path model = { "--init-model", job->init_model, false };
    const pli_path read[] = { { "--test", job->test, false },       { "--validation", job->validation, false },
                              { "--label", pli_input_label_file(&job->in), false }, { "--config", job->config, false },
                              { "--cluster", job->cluster, false }, { "--graph", job->graph, false },
                              { "--folds-from", own->folds_from, false } };
    const bool is_file = own->report == NULL || strcmp(own->report, "-") != 0;
    if (!is_file)
        pli_cli_usage("%s: --report -: the page is not written to standard output; name a file, such as --report "
                      "page.html", command->name);
    const bool apart = is_file &&
                       pli_paths_apart(command->name, written, 4, read, sizeof read / sizeof *read, &job->in.data) &&
                       pli_paths_apart(command->name, written, 2, &model, 1, &(pli_text_list){ 0 });
    pli_free(done);
    return apart;
}

/* --- what was asked for ------------------------------------------------------------------------------------------- */

/* Do the results depend on this option of train? */
static bool matters(const pli_opts *opts, const pli_opt *row) {
    static const char *const not_these[] = { "out", "json", "quiet", "test", "config", "threads" };
    for (size_t i = 0; i < sizeof not_these / sizeof *not_these; i++)
        if (pli_is(row->name, not_these[i])) return false;
    return pli_opts_is_given(opts, row->name);
}

void pli_job_words_json(const pli_opts *job_opts, const pli_train_settings *job, const char *key, pli_text *text) {
    pli_json_object(text, key);
    for (const pli_opt *row = pli_opts_rows(job_opts); row->name != NULL; row++) {
        pli_text value = { 0 };
        if (!matters(job_opts, row)) continue;
        pli_opts_value(row, job, &value);
        pli_json_text(text, row->name, value.data != NULL ? value.data : "");
        text->failed = text->failed || value.failed;
        pli_text_free(&value);
    }
    pli_json_end(text);
}
