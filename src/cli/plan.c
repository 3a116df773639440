/* plan - what a job would take on a cluster, before there is one: the first clocks of each setting are simulated
 * (docs/simulation.md), and the whole job is reckoned from them. */
#include "cli/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job_words.h"
#include "cli/paths.h"
#include "cli/spawn.h"
#include "comm/cluster.h"
#include "learn/learn.h"

#define AT(field) offsetof(pli_plan_words, field)

static const pli_opt rows[] = {
    { "sizes", PLI_OPT_TEXT, AT(sizes), NULL, "N,N", "numbers of workers to plan for; default: --workers, else 2,4,8",
      0, 0, "plan" },
    { "clocks", PLI_OPT_I64, AT(clocks), "100", "N",
      "how many clocks to simulate, at least; 0: the whole job, whose objective is then shown as well", 0, INT32_MAX,
      "plan" },
    { "seeds", PLI_OPT_I64, AT(seeds), "3", "N",
      "simulations of each setting, each with another seed for stragglers and the order of messages", 1, PLI_PLAN_SEEDS,
      "plan" },
    { "price", PLI_OPT_F64, AT(price), "0", "P", "what a rank costs an hour, in any currency; 0: no costs are shown", 0,
      INFINITY, "plan" },
    { "search", PLI_OPT_FLAG, AT(search), NULL, NULL,
      "go on from the shortest setting: try other numbers of workers and servers, filters that lose nothing, and "
      "collectives, one step at a time, while the job gets shorter; what an option gives stays", 0, 0, "plan" },
    { "runs", PLI_OPT_TEXT, AT(runs), NULL, "FILE",
      "records of real runs of this job on this cluster (train --json), a line each: times are corrected, and ranges "
      "widened, by how far those were from their simulations", 0, 0, "plan" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Options that make sense for a single run only; a plan keeps nothing. */
static const char *const refused[] = { "out", "table", "cache", "test", "checkpoint", "resume", NULL };

static bool check(const pli_plan *plan) {
    if (pli_job_words_refuse(&pli_command_plan, plan->job_opts, refused) ||
        !pli_job_words_check_data(&pli_command_plan, &plan->job) ||
        !pli_job_words_check_alone(&pli_command_plan, &plan->job, "one process simulates all ranks"))
        return false;
    if (!pli_is(plan->job.transport, "sim")) {
        pli_cli_usage("plan: --transport %s is refused: a plan simulates; leave it out", plan->job.transport);
        return false;
    }
    if (plan->set.sizes == NULL || !pli_opts_is_given(plan->job_opts, "workers")) return true;
    pli_cli_usage("plan: --workers and --sizes both say how many workers; give one of them");
    return false;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

/* The settings of one number of workers. */
typedef struct sized {
    pli_plan *plan;
    int32_t   workers;
} sized;

static bool add_setting(void *user, const pli_job_pair *pair) {
    const sized *of = user;
    pli_plan    *plan = of->plan;
    if (plan->n == PLI_PLAN_SETTINGS)
        return pli_cli_usage("plan: more than %d settings; name fewer", PLI_PLAN_SETTINGS), false;
    plan->setting[plan->n++] = (pli_plan_setting){ .pair = *pair, .workers = of->workers,
                                                      .servers = (int32_t)plan->job.servers };
    return true;
}

static bool cross(pli_plan *plan, const char *topologies, const char *consistencies, int32_t workers) {
    sized of = { plan, workers };
    return pli_job_words_pairs(&pli_command_plan, topologies, consistencies, add_setting, &of);
}

static bool make_settings(pli_plan *plan) {
    const char *topologies = plan->job.topology != NULL ? plan->job.topology : "allreduce,ps";
    const bool  given = pli_opts_is_given(plan->job_opts, "consistency");
    const char *consistencies = given ? plan->job.consistency : "bsp,ssp:2,async";
    char        item[24];
    plan->usual = plan->job.topology == NULL && !given;
    plan->free_workers = plan->set.sizes == NULL && !pli_opts_is_given(plan->job_opts, "workers");
    plan->free_servers = !pli_opts_is_given(plan->job_opts, "servers");
    plan->free_filter = !pli_opts_is_given(plan->job_opts, "filter");
    plan->free_collective = !pli_opts_is_given(plan->job_opts, "collective");
    const char *sizes = plan->set.sizes != NULL ? plan->set.sizes : "2,4,8";
    if (plan->set.sizes == NULL && pli_opts_is_given(plan->job_opts, "workers"))
        return cross(plan, topologies, consistencies, (int32_t)plan->job.workers);
    while (*sizes != '\0') {
        int64_t n = 0;
        if (!pli_job_words_item(&sizes, item, sizeof item) || !pli_parse_i64(item, &n) || n < 1 || n > 4096)
            return pli_cli_usage("plan: --sizes %s: expected numbers of workers from 1 to 4096, separated by commas",
                                 plan->set.sizes != NULL ? plan->set.sizes : ""), false;
        if (!cross(plan, topologies, consistencies, (int32_t)n)) return false;
    }
    return plan->n > 0 || (pli_cli_usage("plan: --sizes: no number of workers"), false);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static plait_status read_data(pli_plan *plan, plait_error *err) {
    plait_data_opts files = plan->plan.data;
    const int64_t   before = pli_peak_rss_bytes();
    PLI_TRY(pli_train_reads(&plan->plan.train, &files, err));
    files.threads = (int32_t)pli_cores();
    PLI_TRY(plait_data_read(&files, &plan->data, err));
    plan->row_bytes = (double)(pli_peak_rss_bytes() - before);
    return PLAIT_OK;
}

static void tell(const pli_plan *plan, int32_t i) {
    const pli_plan_setting *s = &plan->setting[i];
    if (plan->talk.quiet || !plan->talk.terminal) return;
    fprintf(stderr, "\r\033[Ksetting %d of %d: %s x %s, %d workers", i + 1, plan->n, s->pair.topology,
            s->pair.consistency, s->workers);
}

/* A wrong file of a cluster is told once, before each setting would. */
static plait_status check_cluster(const pli_plan *plan, plait_error *err) {
    pli_cluster cluster = { 0 };
    if (plan->job.cluster == NULL) return PLAIT_OK;
    PLI_TRY(pli_paths_check_read(&plan->job.cluster, 1, err));
    const plait_status status = pli_cluster_read(plan->job.cluster, &cluster, err);
    pli_cluster_free(&cluster);
    return status;
}

static plait_status simulate_all(pli_plan *plan, plait_error *err) {
    plait_status status = PLAIT_OK;
    for (int32_t i = 0; i < plan->n && status >= 0; i++) {
        tell(plan, i);
        status = pli_plan_simulate(plan, &plan->setting[i], err);
    }
    if (status >= 0 && plan->set.search) status = pli_plan_search(plan, err);
    if (plan->talk.terminal && !plan->talk.quiet) fprintf(stderr, "\r\033[K");
    plan->interrupted = status == PLAIT_EINTERRUPTED;
    return plan->interrupted ? PLAIT_OK : status;
}

/* The exit code: 0 if any setting was simulated, else that of the first one's failure. */
static int code_of(const pli_plan *plan) {
    if (plan->interrupted) return PLI_EXIT_INTERRUPTED;
    for (int32_t i = 0; i < plan->n; i++)
        if (plan->setting[i].typical.status >= 0) return PLI_EXIT_DONE;
    return pli_cli_exit_code(plan->setting[0].typical.status);
}

static int plan_with(pli_plan *plan) {
    plait_error err = { .rank = -1 };
    pli_text    text = { 0 };
    if (!make_settings(plan)) return PLI_EXIT_USAGE;
    plan->job.topology = NULL; /* each setting has its own */
    plan->job.consistency = "bsp";
    if (!pli_train_plan_make(&plan->job, plan->job_opts, &plan->talk.log, &plan->plan)) return PLI_EXIT_USAGE;
    if (check_cluster(plan, &err) < 0) return pli_cli_fail(&err);
    if (plan->set.runs != NULL && pli_paths_check_read(&plan->set.runs, 1, &err) < 0) return pli_cli_fail(&err);
    if (read_data(plan, &err) < 0) return pli_cli_fail(&err);
    pli_spawn_begin();
    plait_status status = pli_plan_learn(plan, &err);
    if (status >= 0) status = simulate_all(plan, &err);
    pli_spawn_end();
    if (status < 0) return pli_cli_fail(&err);
    if (plan->job.json) pli_plan_json(plan, &text);
    else pli_plan_text(plan, &text);
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    return pli_cli_end(code_of(plan));
}

/* Adds "--transport sim" to the words, of which train's options know that --cluster belongs to it. */
static int plan_words(int argc, char *const *argv, pli_plan *plan) {
    char        name[] = "--transport", value[] = "sim";
    char      **words = pli_calloc((size_t)argc + 3, sizeof *words);
    int         code = PLI_EXIT_USAGE;
    if (words == NULL) return pli_cli_usage("plan: out of memory");
    words[0] = name;
    words[1] = value;
    memcpy(words + 2, argv, (size_t)argc * sizeof *words);
    const bool read = pli_job_words_read(&pli_command_plan, argc + 2, words, &plan->set, &plan->own_opts, &plan->job,
                                         &plan->job_opts, &code);
    pli_free(words);
    if (!read) return code;
    if (!check(plan)) return PLI_EXIT_USAGE;
    pli_talk_open(&plan->talk, plan->job.quiet);
    code = plan_with(plan);
    pli_talk_close(&plan->talk);
    return code;
}

static int plan(int argc, char *const *argv) {
    pli_plan *plan = pli_calloc(1, sizeof *plan);
    if (plan == NULL) return pli_cli_usage("plan: out of memory");
    const int code = plan_words(argc, argv, plan);
    plait_data_destroy(&plan->data);
    pli_opts_free(&plan->job_opts);
    pli_opts_free(&plan->own_opts);
    pli_free(plan);
    return code;
}

const pli_command pli_command_plan = {
    .name = "plan",
    .usage = "plan [options of train] [--cluster FILE] [--sizes N,N] [--topology NAME,...] [--consistency NAME,...]",
    .summary = "what a job would take on a cluster: time, bytes, memory and cost by setting",
    .details = "Simulates the first clocks of the job under each topology, consistency and number of workers, on the "
               "cluster that FILE describes (plait calibrate writes one with this machine's speed), and reckons the "
               "whole job from them. Nothing is kept.\n\n"
               "Settings that converge in fewer clocks than others are not told apart: plait compare --transport sim "
               "runs each to the same objective. Ctrl-C shows the settings that were finished, and exits with 75.",
    .rows = rows,
    .run = plan,
};
