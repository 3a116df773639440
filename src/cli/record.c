#include "cli/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/settings.h"
#include "cli/talk.h"
#include "watch/watch.h"

void pli_record_init(plait_report *r) {
    *r = (plait_report){
        .rows = -1, .features = -1, .workers = -1, .spares = -1, .replicas = -1, .epochs = -1, .clocks = -1,
        .bytes_sent = -1,
        .peak_rss_bytes = -1, .updates_dropped = -1, .clocks_skipped = -1, .shards_moved = -1, .moved_bytes = -1,
        .best_epoch = -1, .stopped_early = -1,
        .converged = -1
    };
    r->objective = r->train_loss = r->progressive_loss = NAN;
    r->test_loss = r->test_accuracy = r->test_auc = r->test_rmse = r->test_mae = NAN;
    r->validation_loss = r->gap = r->oob_loss = r->oob_accuracy = NAN;
    r->load_seconds = r->train_seconds = r->cpu_seconds = r->clocks_per_second = r->idle_share = NAN;
    r->compute_seconds = r->wait_seconds = r->network_seconds = NAN;
}

static void name(pli_text *text, const char *key, const char *value) {
    pli_json_text(text, key, value[0] != '\0' ? value : NULL);
}

static void count(pli_text *text, const char *key, int64_t value) {
    if (value < 0) {
        pli_json_null(text, key);
    } else {
        pli_json_i64(text, key, value);
    }
}

/* Adds a boolean; -1: it does not apply. */
static void truth(pli_text *text, const char *key, int value) {
    if (value < 0) {
        pli_json_null(text, key);
    } else {
        pli_json_bool(text, key, value != 0);
    }
}

static void tables(pli_text *text, const plait_report *r) {
    pli_json_list(text, "tables");
    for (int32_t i = 0; i < r->n_tables; i++) {
        const plait_report_table *t = &r->tables[i];
        pli_json_object(text, NULL);
        pli_json_text(text, "name", t->name);
        pli_json_text(text, "topology", t->topology);
        pli_json_text(text, "consistency", t->consistency);
        name(text, "filter", t->filter);
        pli_json_end(text);
    }
    pli_json_list_end(text);
}

/* Adds the learner's own options: numbers as numbers, and "events-model" under the key "events_model". */
static void own_options(pli_text *text, const plait_report *r) {
    for (int32_t i = 0; i < r->n_options; i++) {
        const plait_option_value   *o = &r->options[i];
        const plait_learner_option *as = pli_own_option_find(r->model, o->name);
        char                        key[sizeof o->name];
        int64_t                     whole;
        double                      number;
        snprintf(key, sizeof key, "%s", o->name);
        for (char *c = key; *c != '\0'; c++)
            if (*c == '-') *c = '_';
        if (as != NULL && as->kind == PLAIT_OPTION_FLAG) pli_json_bool(text, key, pli_is(o->value, "1"));
        else if (as != NULL && as->kind == PLAIT_OPTION_COUNT && pli_parse_i64(o->value, &whole))
            pli_json_i64(text, key, whole);
        else if (as != NULL && as->kind == PLAIT_OPTION_NUMBER && pli_parse_f64(o->value, &number))
            pli_json_f64(text, key, number);
        else name(text, key, o->value);
    }
}

void pli_path_add(pli_path *path, const plait_penalty *penalty) {
    if (penalty->number == 1) path->n = 0;
    if (!pli_grow((void **)&path->at, &path->capacity, path->n + 1, sizeof *path->at)) return;
    path->at[path->n++] = *penalty;
}

static void add_path(pli_text *text, const pli_path *path) {
    if (path == NULL || path->n == 0) {
        pli_json_null(text, "path");
        return;
    }
    pli_json_list(text, "path");
    for (int64_t i = 0; i < path->n; i++) {
        pli_json_object(text, NULL);
        pli_json_f64(text, "lambda", path->at[i].l1);
        pli_json_i64(text, "nonzeros", path->at[i].nonzeros);
        pli_json_f64(text, "objective", path->at[i].objective);
        pli_json_f64(text, "gap", path->at[i].gap);
        pli_json_f64(text, "validation_loss", path->at[i].validation_loss);
        pli_json_end(text);
    }
    pli_json_list_end(text);
}

static void path_text(pli_text *text, const pli_path *path) {
    if (path == NULL || path->n == 0) return;
    const bool judged = isfinite(path->at[0].validation_loss);
    pli_text_add(text, "%-18s %-12s %9s %12s %9s%s\n", "path", "l1", "weights", "objective", "gap",
                 judged ? "   validation" : "");
    for (int64_t i = 0; i < path->n; i++) {
        const plait_penalty *p = &path->at[i];
        pli_text_add(text, "%18" PRId64 " %-12.6g %9" PRId64 " %12.6g %9.2g", p->number, p->l1, p->nonzeros,
                     p->objective, p->gap);
        if (judged) pli_text_add(text, " %12.6g", p->validation_loss);
        pli_text_add(text, "\n");
    }
}

static void add_lost(pli_text *text, const pli_lost *lost) {
    pli_json_list(text, "ranks_lost");
    for (int64_t i = 0; lost != NULL && i < lost->n; i++) pli_json_i64(text, NULL, lost->rank[i]);
    pli_json_list_end(text);
}

void pli_record_keys(const plait_report *r, const plait_simulated *simulated, const pli_path *path,
                     const pli_lost *lost, pli_text *text) {
    name(text, "model", r->model);
    count(text, "rows", r->rows);
    count(text, "features", r->features);
    count(text, "classes", r->classes > 0 ? r->classes : -1);
    count(text, "workers", r->workers);
    count(text, "spares", r->spares);
    count(text, "replicas", r->replicas);
    name(text, "transport", r->transport);
    name(text, "topology", r->topology);
    name(text, "consistency", r->consistency);
    name(text, "collective", r->collective);
    name(text, "optimizer", r->optimizer);
    count(text, "epochs", r->epochs);
    count(text, "clocks", r->clocks);
    pli_json_f64(text, "objective", r->objective);
    pli_json_f64(text, "train_loss", r->train_loss);
    pli_json_f64(text, "progressive_loss", r->progressive_loss);
    pli_json_f64(text, "test_loss", r->test_loss);
    pli_json_f64(text, "test_accuracy", r->test_accuracy);
    pli_json_f64(text, "test_auc", r->test_auc);
    pli_json_f64(text, "test_rmse", r->test_rmse);
    pli_json_f64(text, "test_mae", r->test_mae);
    pli_json_f64(text, "load_seconds", r->load_seconds);
    pli_json_f64(text, "train_seconds", r->train_seconds);
    pli_json_f64(text, "cpu_seconds", r->cpu_seconds);
    pli_json_f64(text, "clocks_per_second", r->clocks_per_second);
    count(text, "bytes_sent", r->bytes_sent);
    count(text, "peak_rss_bytes", r->peak_rss_bytes);
    count(text, "updates_dropped", r->updates_dropped);
    count(text, "clocks_skipped", r->clocks_skipped);
    count(text, "shards_moved", r->shards_moved);
    count(text, "moved_bytes", r->moved_bytes);
    name(text, "model_hash", r->model_hash);
    pli_json_f64(text, "idle_share", r->idle_share);
    pli_json_f64(text, "virtual_seconds", simulated != NULL ? simulated->virtual_seconds : NAN);
    name(text, "trace_hash", simulated != NULL ? simulated->trace_hash : "");
    count(text, "messages", simulated != NULL ? simulated->messages : -1);
    tables(text, r);
    name(text, "optimizer_why", r->optimizer_why);
    name(text, "pair_why", r->pair_why);
    if (r->columns_why[0] != '\0') {
        pli_json_i64(text, "columns", r->columns);
        name(text, "columns_why", r->columns_why);
    }
    name(text, "label", r->label);
    truth(text, "converged", r->converged);
    pli_json_f64(text, "gap", r->gap);
    pli_json_f64(text, "validation_loss", r->validation_loss);
    pli_json_f64(text, "oob_loss", r->oob_loss);
    pli_json_f64(text, "oob_accuracy", r->oob_accuracy);
    count(text, "best_epoch", r->best_epoch);
    truth(text, "stopped_early", r->stopped_early);
    add_path(text, path);
    add_lost(text, lost);
    own_options(text, r);
    for (int32_t i = 0; i < r->n_figures; i++) pli_json_f64(text, r->figures[i].name, r->figures[i].value);
}

void pli_record_json(const plait_report *r, const plait_simulated *simulated, const pli_path *path,
                     const pli_lost *lost, pli_text *text) {
    pli_json_begin(text);
    pli_record_keys(r, simulated, path, lost, text);
    pli_json_end(text);
    pli_text_add(text, "\n");
}

static void figure(pli_text *text, const char *what, double value) {
    if (isfinite(value)) pli_text_add(text, "%-18s %.6g\n", what, value);
}

static void own_options_text(pli_text *text, const plait_report *r) {
    for (int32_t i = 0; i < r->n_options; i++) {
        const plait_option_value   *o = &r->options[i];
        const plait_learner_option *as = pli_own_option_find(r->model, o->name);
        const bool                  flag = as != NULL && as->kind == PLAIT_OPTION_FLAG;
        const char                 *value = !flag ? o->value : pli_is(o->value, "1") ? "yes" : "no";
        const bool                  open = as != NULL && pli_own_option_leaves(as, o->value);
        if (value[0] != '\0' && !open) pli_text_add(text, "%-18s %s\n", o->name, value);
    }
}

/* Adds the learner's own figures, "test_inertia" as "test inertia". */
static void own_figures(pli_text *text, const plait_report *r) {
    for (int32_t i = 0; i < r->n_figures; i++) {
        char what[sizeof r->figures[i].name];
        snprintf(what, sizeof what, "%s", r->figures[i].name);
        for (char *c = what; *c != '\0'; c++)
            if (*c == '_') *c = ' ';
        figure(text, what, r->figures[i].value);
    }
}

static void validation(pli_text *text, const plait_report *r) {
    if (!isfinite(r->validation_loss)) return;
    pli_text_add(text, "%-18s %.6g", "validation loss", r->validation_loss);
    if (r->best_epoch >= 0) pli_text_add(text, ", of epoch %" PRId64, r->best_epoch);
    pli_text_add(text, "%s\n", r->stopped_early > 0 ? "; stopped early" : "");
}

/* Ends the line of clocks. The gap is a share of the objective, and an estimate, so two digits are enough. */
static void convergence(pli_text *text, const plait_report *r) {
    if (r->converged > 0) pli_text_add(text, ", converged");
    if (r->converged == 0) pli_text_add(text, ", not converged");
    const double above = 100 * r->gap / (1 - r->gap);
    if (r->converged == 0 && r->gap < 0.99)
        pli_text_add(text, above < 10 ? ": about %.2g %% above the least objective"
                                      : ": about %.0f %% above the least objective", above);
    if (r->converged == 0 && r->gap >= 0.99) pli_text_add(text, ": far above the least objective");
    pli_text_add(text, "\n");
}

void pli_record_text(const plait_report *r, const plait_simulated *simulated, const pli_path *path, pli_text *text) {
    if (r->model[0] != '\0') pli_text_add(text, "%-18s %s\n", "model", r->model);
    if (r->rows >= 0) pli_text_add(text, "%-18s %" PRId64 "\n", "rows", r->rows);
    if (r->features >= 0) pli_text_add(text, "%-18s %" PRId64 "\n", "features", r->features);
    if (r->classes > 0) pli_text_add(text, "%-18s %" PRId64 "\n", "classes", r->classes);
    if (r->topology[0] != '\0') {
        pli_text_add(text, "%-18s %" PRId64, "workers", r->workers);
        if (r->spares > 0) pli_text_add(text, " (%" PRId64 " of them spare)", r->spares);
        pli_text_add(text, " on %s, %s, %s, %s%s\n", r->transport, r->topology, r->consistency, r->optimizer,
                     r->replicas > 1 ? ", goes on without dead ranks" : "");
    }
    if (r->pair_why[0] != '\0')
        pli_text_add(text, "%-18s %s x %s: %s\n", "chosen", r->topology, r->consistency, r->pair_why);
    if (r->columns_why[0] != '\0')
        pli_text_add(text, "%-18s columns %" PRId64 ": %s\n", "chosen", r->columns, r->columns_why);
    own_options_text(text, r);
    for (int32_t i = 0; i < r->n_tables; i++) {
        const plait_report_table *t = &r->tables[i];
        bool as_run = strcmp(t->topology, r->topology) == 0 && strcmp(t->consistency, r->consistency) == 0;
        if (!as_run) pli_text_add(text, "%-18s %s by %s, %s\n", "table", t->name, t->topology, t->consistency);
    }
    if (r->clocks >= 0) {
        pli_text_add(text, "%-18s %" PRId64 " in %" PRId64 " epoch%s", "clocks", r->clocks, r->epochs,
                     pli_plural(r->epochs));
        convergence(text, r);
    }
    path_text(text, path);
    figure(text, "objective", r->objective);
    figure(text, "train loss", r->train_loss);
    figure(text, "progressive loss", r->progressive_loss);
    figure(text, "oob loss", r->oob_loss);
    figure(text, "oob accuracy", r->oob_accuracy);
    validation(text, r);
    figure(text, "test loss", r->test_loss);
    figure(text, "test accuracy", r->test_accuracy);
    figure(text, "test AUC", r->test_auc);
    figure(text, "test RMSE", r->test_rmse);
    figure(text, "test MAE", r->test_mae);
    own_figures(text, r);
    if (isfinite(r->train_seconds))
        pli_text_add(text, "%-18s %.3g loading, %.3g training\n", "seconds", r->load_seconds, r->train_seconds);
    if (simulated != NULL)
        pli_text_add(text, "%-18s %.6g, trace %.16s\n", "simulated seconds", simulated->virtual_seconds,
                     simulated->trace_hash);
    if (r->bytes_sent > 0) pli_text_add(text, "%-18s %" PRId64 "\n", "bytes sent", r->bytes_sent);
    if (r->shards_moved > 0)
        pli_text_add(text, "%-18s %" PRId64 " parts of tables, to and from workers that came and left\n", "moved",
                     r->shards_moved);
    if (r->updates_dropped >= 0)
        pli_text_add(text, "%-18s %" PRId64 " updates dropped, %" PRId64 " clocks skipped\n", "late",
                     r->updates_dropped, r->clocks_skipped);
    else if (r->clocks_skipped > 0)
        pli_text_add(text, "%-18s %" PRId64 " clocks left out by workers that are slow for long\n", "late",
                     r->clocks_skipped);
    if (r->model_hash[0] != '\0') pli_text_add(text, "%-18s %.16s\n", "model hash", r->model_hash);
}

/* --- F.done ----------------------------------------------------------------------------------------- */

void pli_done_remove(const char *path) {
    if (pli_is_pipe(path)) return; /* nor does /dev/null have one */
    char *done = pli_format("%s.done", path);
    if (done != NULL) remove(done); /* it may not exist */
    pli_free(done);
}

plait_status pli_done_write(const char *path, const char *run, int64_t clocks, const char *model_hash,
                            const pli_lost *lost, plait_error *err) {
    plait_status status = PLAIT_OK;
    pli_outfile *file = NULL;
    pli_text     text = { 0 };
    if (pli_is_pipe(path)) return PLAIT_OK;
    char *done = pli_format("%s.done", path);
    if (done == NULL) goto no_memory;
    pli_json_begin(&text);
    pli_json_i64(&text, "version", 1);
    pli_json_text(&text, "run", run);
    pli_json_i64(&text, "clocks", clocks);
    pli_json_text(&text, "model_hash", model_hash);
    add_lost(&text, lost);
    pli_json_end(&text);
    pli_text_add(&text, "\n");
    if (text.failed) goto no_memory;
    status = pli_outfile_open(done, &file, err);
    if (status < 0) goto end;
    status = pli_outfile_write(file, text.data, text.length, err);
    if (status < 0) {
        pli_outfile_abandon(&file);
        goto end;
    }
    status = pli_outfile_commit(&file, err);
    goto end;
no_memory:
    status = pli_fail(err, PLAIT_ENOMEM, "%s.done: out of memory", path);
end:
    pli_text_free(&text);
    pli_free(done);
    return status;
}
