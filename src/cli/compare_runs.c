/* The runs of a comparison. Every run is its own process, this program with `train`, because SimGrid allows one
 * platform a process, and a run that dies must not end the others. Each setting first runs once with an event log,
 * which shows the staleness of reads and warms the page cache; this run is not timed. Then each runs --repeats times,
 * in turns, so that passing load on the machine disturbs all settings alike. Results lie in a temporary directory until
 * they are read. */
#include "cli/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/spawn.h"

typedef pli_compare_work work;

enum { CURVE_POINTS = 48, OUTPUT_BYTES_MAX = 16 << 20, WORDS_MAX = 32 };

/* --- a run -------------------------------------------------------------------------------------------------------- */

static bool simulates(const work *w) { return w->job.transport != NULL && strcmp(w->job.transport, "sim") == 0; }
static bool launches(const work *w) { return w->job.transport != NULL && strcmp(w->job.transport, "mpi") == 0; }

/* The number of event logs: if ranks are processes, each writes its own. */
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

/* The first line that the run has printed, without "plait: ". */
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
        memmove(reason, colon + 2, strlen(colon + 2) + 1); /* without the rank: all ranks refuse for the same reason */
    if (reason == NULL && code > PLI_EXIT_SIGNAL) return pli_format("ended by signal %" PRId32, code - PLI_EXIT_SIGNAL);
    if (reason == NULL && code == PLI_EXIT_INTERRUPTED) return pli_strdup("it was interrupted");
    return reason != NULL ? reason : pli_format("exit code %" PRId32, code);
}

/* Does the run say that its topology needs no servers? Then the ranks meant as servers become workers. */
static bool lets_servers_work(const work *w, pli_compared_pair *pair, int32_t code) {
    if (code != PLI_EXIT_USAGE || w->job.servers == 0 || pair->servers_work > 0) return false;
    char      *reason = reason_of(w, code);
    const bool idle = reason != NULL && strstr(reason, "servers would have nothing to do") != NULL;
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

/* Does one run. repeat -1: the run with an event log. It fails only for memory or files; a failure of the run becomes a
 * row of the result. */
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

/* --- all runs ----------------------------------------------------------------------------------------------------- */

/* Has any setting run so far? If none has, repeats are useless. */
static bool any_runs(const work *w) {
    for (int32_t pair = 0; pair < w->result.pairs; pair++)
        if (!w->out[pair]) return true;
    return false;
}

plait_status pli_compare_run_all(work *w, plait_error *err) {
    pli_comparison *r = &w->result;
    w->planned = (int64_t)r->pairs * (r->repeats + 1);
    for (int32_t repeat = -1; repeat < r->repeats && !r->interrupted && any_runs(w); repeat++) {
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
