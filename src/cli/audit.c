/* audit - proves or refutes, from event logs, that a run kept the promises of its consistency. */
#include <stdio.h>

#include "cli/cli.h"
#include "watch/audit/schedule.h"
#include "watch/audit/scopes.h"

typedef struct audit_settings {
    const char *as;
    bool        json, schedule, scopes;
} audit_settings;

#define AT(field) offsetof(audit_settings, field)

static const pli_opt rows[] = {
    { "as", PLI_OPT_TEXT, AT(as), NULL, "CONSISTENCY", "prove this consistency instead of the run's own", 0, 0,
      "audit" },
    { "schedule", PLI_OPT_FLAG, AT(schedule), NULL, NULL,
      "prove that no two scheduled steps that may have missed each other conflicted", 0, 0, "audit" },
    { "scopes", PLI_OPT_FLAG, AT(scopes), NULL, NULL,
      "prove what updates of a vertex program (graph run --engine async) read under their locks", 0, 0, "audit" },
    { "json", PLI_OPT_FLAG, AT(json), NULL, NULL, "print one JSON object", 0, 0, "output" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

static int code_of(pli_audit_verdict verdict) {
    if (verdict == PLI_AUDIT_PROVEN) return PLI_EXIT_DONE;
    return verdict == PLI_AUDIT_REFUTED ? PLI_EXIT_NO : PLI_EXIT_FAILED;
}

static int report(const audit_settings *set, const pli_audit *result) {
    pli_text    text = { 0 };
    const char *why = pli_audit_why(result);
    if (set->json) {
        pli_audit_json(result, &text);
        pli_text_add(&text, "\n");
    } else {
        pli_audit_text(result, &text);
    }
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    if (why != NULL) pli_cli_usage("audit: %s", why); /* this says why; the code says that it failed */
    return pli_cli_end(code_of(pli_audit_result(result)));
}

static int report_schedule(const audit_settings *set, const pli_logfile *file) {
    pli_text           text = { 0 };
    pli_schedule_proof proof;
    plait_error        err = { .rank = -1 };
    if (pli_schedule_prove(file, set->as, &proof, &err) < 0) return pli_cli_fail(&err);
    if (set->json) pli_schedule_json(&proof, &text);
    else pli_schedule_text(&proof, &text);
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    if (proof.verdict == PLI_AUDIT_EMPTY)
        pli_cli_usage("audit: the log has no scheduled steps: nothing to prove");
    if (proof.verdict == PLI_AUDIT_CUT)
        pli_cli_usage("audit: %s is cut: the run did not end, so nothing is proven", pli_logfile_cut(file));
    return pli_cli_end(code_of(proof.verdict));
}

static int report_scopes(const audit_settings *set, const pli_logfile *file) {
    pli_text         text = { 0 };
    pli_scopes_proof proof;
    plait_error      err = { .rank = -1 };
    if (pli_scopes_prove(file, set->as, &proof, &err) < 0) return pli_cli_fail(&err);
    if (set->json) pli_scopes_json(&proof, &text);
    else pli_scopes_text(&proof, &text);
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    if (proof.verdict == PLI_AUDIT_EMPTY)
        pli_cli_usage("audit: the log has no locks of a vertex program: nothing to prove");
    if (proof.lacks)
        pli_cli_usage("audit: %s: the event log is cut: it may lack locks, so nothing is concluded from it",
                      pli_logfile_cut(file));
    else if (proof.verdict == PLI_AUDIT_CUT)
        pli_cli_usage("audit: the log ends before all workers were at rest: up to there nothing is refuted");
    return pli_cli_end(code_of(proof.verdict));
}

/* false: a file is missing, but FILE.RANK, written by ranks that are processes, exists; an error was printed. */
static bool check_names(const pli_text_list *files) {
    bool right = true;
    for (int64_t i = 0; right && i < files->n; i++) {
        char *own = pli_format("%s.0", files->item[i]);
        right = own == NULL || pli_file_exists(files->item[i]) || !pli_file_exists(own);
        if (!right)
            pli_cli_usage("%s: no such file; did you mean %s.*? If ranks are processes each writes its own file, and "
                          "the audit needs all of them",
                          files->item[i], files->item[i]);
        pli_free(own);
    }
    return right;
}

static int audit(int argc, char *const *argv) {
    audit_settings set = { 0 };
    pli_opts      *opts = NULL;
    pli_text_list  files = { 0 };
    pli_logfile   *file = NULL;
    pli_audit     *result = NULL;
    plait_error    err = { .rank = -1 };
    int            code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_audit, argc, argv, &set, &files, &opts, &code)) return code;
    if (set.schedule && set.scopes) {
        pli_cli_usage("audit: --schedule and --scopes are two questions: ask one after the other");
    } else if (files.n == 0) {
        pli_cli_usage("audit: no event log; say 'plait audit FILE...' with the file that train or graph run --events "
                      "FILE has written");
    } else if (!check_names(&files)) {
        code = PLI_EXIT_FAILED; /* as for any file that cannot be read */
    } else if (pli_logfile_open((const char *const *)files.item, (int32_t)files.n, &file, &err) < 0 ||
               (!set.schedule && !set.scopes && pli_audit_run(file, set.as, &result, &err) < 0)) {
        code = pli_cli_fail(&err);
    } else if (set.scopes) {
        code = report_scopes(&set, file);
    } else if (set.schedule) {
        code = report_schedule(&set, file);
    } else {
        code = report(&set, result);
    }
    pli_audit_free(&result);
    pli_logfile_close(&file);
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_audit = {
    .name = "audit",
    .usage = "audit [--as CONSISTENCY] [--schedule | --scopes] [--json] FILE...",
    .summary = "prove or refute from event logs what a run's consistency promised",
    .details =
        "Reads the event log that train or graph run --events FILE has written. If ranks are processes there is one "
        "file for each (FILE.0, FILE.1, ...); give them all.\n\n"
        "For every table it proves four things: each update was applied once at every shard; a get holds the reader's "
        "own updates; what a worker reads of a row never goes back; a get holds the updates of others that the table's "
        "consistency promises. It prints how stale the gets were, and names the first violation by rank, row and "
        "clock.\n\n"
        "With --schedule it judges scheduled steps (plait/schedule.h) alone: that no two turns that may have missed "
        "each other touch the same key, one of them writing it. It names the two.\n\n"
        "With --scopes it judges the locks of plait graph run --engine async: that each update read under locks of its "
        "--scope, and of every vertex the value of the last update before it by the order of locks. It names the "
        "vertex and the two workers. --as is vertex, edge or full there.\n\n"
        "Exit code 0: proven. 4: refuted. 1: the log cannot be read, is cut off or is empty; standard error says why.",
    .rows = rows,
    .run = audit,
};
