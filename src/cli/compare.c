/* compare - runs the same job under several settings, and says which suits it best, and by how much. */
#include "cli/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job_words.h"
#include "cli/paths.h"
#include "cli/spawn.h"
#include "watch/page/page.h"

typedef pli_compare_work work;

#define AT(field) offsetof(pli_compare_settings, field)

static const pli_opt rows[] = {
    { "report", PLI_OPT_TEXT, AT(report), NULL, "FILE", "write one HTML page that needs no network", 0, 0, "compare" },
    { "repeats", PLI_OPT_I64, AT(repeats), "3", "N", "timed runs of each pair; their spread is the noise", 1, 1000,
      "compare" },
    { "target", PLI_OPT_F64, AT(target), NULL, "X",
      "the objective that all runs must reach; default: 1 % above the lowest that was reached", -INFINITY, INFINITY,
      "compare" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* --- options -------------------------------------------------------------------------------------------------- */

/* Options that make sense for a single run only. */
static const char *const refused[] = { "table", "out", NULL };

/* compare draws each run's curve, which a net that is cut over ranks does not have. */
static bool check_cut(const work *w) {
    const bool cut = w->job.cut > 1;
    if (!cut && w->job.columns <= 1) return true;
    pli_cli_usage("compare: --%s is refused: compare draws each run's loss over time, but no worker reads the weights "
                  "of all layers while it trains; leave it out, or run 'plait train' for each setting",
                  cut ? "cut" : "columns");
    return false;
}

static bool check(const work *w) {
    if (pli_job_words_refuse(&pli_command_compare, w->job_opts, refused) ||
        !pli_job_words_check_data(&pli_command_compare, &w->job) ||
        !pli_job_words_check_alone(&pli_command_compare, &w->job,
                                   "with --transport mpi it launches each run's ranks"))
        return false;
    const pli_job_files files = { .report = w->set.report };
    return check_cut(w) && pli_job_words_check_files(&pli_command_compare, &w->job, &files);
}

/* --- the result --------------------------------------------------------------------------------------------- */

static void describe_machine(pli_machine *m) {
    pli_host_name(m->host);
    pli_cpu_name(m->cpu);
    pli_kernel_name(m->kernel);
    snprintf(m->version, sizeof m->version, "%s", PLI_VERSION);
    m->cores = pli_cores();
    m->memory_bytes = pli_memory_total_bytes();
    m->load = pli_load();
}

static plait_status write_report(const work *w, plait_error *err) {
    pli_text json = { 0 };
    pli_compare_json(&w->result, &json);
    const plait_status status = pli_page_write(w->set.report, "compare", &json, err);
    pli_text_free(&json);
    return status;
}

/* The exit code: if no pair ran, that of the first pair. */
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

static bool can_report(const work *w, plait_error *err) {
    return w->set.report == NULL || pli_page_check(w->set.report, err) >= 0;
}

/* What all runs read is looked for once, before the first of them begins. */
static bool can_read(const work *w, plait_error *err) {
    const char *const *test = (const char *const *)&w->job.test;
    return pli_paths_check_read(w->job.in.data.item, w->job.in.data.n, err) >= 0 &&
           (*test == NULL || pli_paths_check_read(test, 1, err) >= 0);
}

static int run(work *w) {
    plait_error     err = { .rank = -1 };
    pli_comparison *r = &w->result;
    int             code = PLI_EXIT_FAILED;
    if (!pli_compare_make_pairs(w)) return PLI_EXIT_USAGE;
    if (!can_read(w, &err) || !can_report(w, &err) || !pli_compare_make_place(w, &err)) return pli_cli_fail(&err);
    r->repeats = (int32_t)w->set.repeats;
    r->target_given = pli_opts_is_given(w->own_opts, "target") ? w->set.target : (double)NAN;
    r->settings = w->settings.data != NULL ? w->settings.data : "";
    r->title = w->title.data;
    r->transport = w->job.transport != NULL ? w->job.transport : "threads";
    describe_machine(&r->machine);
    if (w->job.workers <= 1)
        pli_talk_say(&w->talk, "note: a single worker has nobody to exchange updates with; --workers N sets more");
    pli_spawn_begin();
    plait_status status = pli_compare_run_all(w, &err);
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
    if (pli_job_words_read(&pli_command_compare, argc, argv, &w.set, &w.own_opts, &w.job, &w.job_opts, &code) &&
        check(&w)) {
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
    .summary = "run a job under several settings and show which suits it best",
    .details = "Runs the job that train's options describe under every pair of the listed topologies and consistencies "
               "(default: all topologies, and bsp,ssp:2,async). --transport says whether the runs use threads, MPI or "
               "simulated time. The pairs take turns, and each runs --repeats times. The winner is the pair whose "
               "median run reaches the common objective first, if a Mann-Whitney test separates it from the others at "
               "the level of one in twenty. A refused pair is a row with its reason.\n\n"
               "Ctrl-C ends the current run, reports the finished ones and exits with 75. --json prints everything as "
               "one object.",
    .rows = rows,
    .run = compare,
};
