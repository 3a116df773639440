/* Makes the settings to compare, and the job that they share: train's options as a configuration file, without those
 * that the comparison sets itself and those whose outputs would be lost. */
#include "cli/compare.h"

#include <stdio.h>
#include <string.h>

#include "cli/job_words.h"
#include "table/topology/topology.h"

typedef pli_compare_work work;

enum { PAIRS_MAX = 1024 };

/* --- pairs ----------------------------------------------------------------------------------------------------- */

static bool add_pair(void *user, const pli_job_pair *names) {
    pli_comparison *r = user;
    if (r->pairs == PAIRS_MAX)
        return pli_cli_usage("compare: there are more than %d pairs; name fewer", PAIRS_MAX), false;
    pli_compared_pair *pair = &r->pair[r->pairs++];
    memcpy(pair->topology, names->topology, sizeof pair->topology);
    memcpy(pair->consistency, names->consistency, sizeof pair->consistency);
    return true;
}

bool pli_compare_make_pairs(work *w) {
    pli_text    all = { 0 };
    const char *topologies = w->job.topology;
    const bool  given = pli_opts_is_given(w->job_opts, "consistency");
    const char *consistencies = given ? w->job.consistency : "bsp,ssp:2,async";
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
    ok = ok && pli_job_words_pairs(&pli_command_compare, topologies, consistencies, add_pair, &w->result);
    pli_text_free(&all);
    return ok;
}

/* --- the job of all runs ------------------------------------------------------------------------------- */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* Turns a YAML list into words: "[a, b]" becomes "a b". Returns the length. */
static size_t take_brackets(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (*from != '[' && *from != ']' && *from != ',') *to++ = *from;
    *to = '\0';
    return (size_t)(to - text);
}

/* Options that compare sets itself, or whose outputs would be lost. */
static const char *const not_of_job[] = { "topology", "consistency", "table",  "out",  "metrics", "curve",   "events",
                                          "trace",    "tensorboard", "dashboard",   "config", "json", "quiet",
                                          "dry-run",  NULL };

static bool is_one_of(const char *name, const char *const *names) {
    while (*names != NULL && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

/* Writes the job as a configuration file and as words. */
static bool write_job(work *w, plait_error *err) {
    pli_text     yaml = { 0 };
    pli_outfile *file = NULL;
    for (const pli_opt *row = pli_opts_rows(w->job_opts); row->name != NULL; row++) {
        if (row->kind == PLI_OPT_LATER || is_one_of(row->name, not_of_job)) continue;
        if (!pli_opts_is_given(w->job_opts, row->name)) continue;
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

bool pli_compare_make_place(work *w, plait_error *err) {
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
    w->env = pli_env_without(pli_opts_rows(w->job_opts));
    if (w->config == NULL || w->metrics == NULL || w->events == NULL || w->printed == NULL || w->said == NULL ||
        w->env == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "out of memory"), false;
    return write_job(w, err);
}
