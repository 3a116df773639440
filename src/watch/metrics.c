/* The metrics file: a run's reports for plots and supervisors, one JSON object a line. The same lines may go to a
 * listener, such as a dashboard. */
#include "watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 1 << 16 };

struct pli_metrics {
    FILE   *file; /* NULL: a listener alone has the lines */
    char   *path;
    pli_metrics_take_fn *take; /* NULL: nobody listens */
    void   *user;
    int     errnum; /* errno of the first write that failed; 0: none */
    int64_t clock;  /* the last clock that was written               */
    int32_t lost;   /* a rank that was lost; -1: none                */
};

/* Each line is appended by a single write, because a former leader that was wrongly taken for dead may still write. */
static plait_status open_as(const char *path, int flags, pli_metrics **metrics_out, plait_error *err) {
    pli_metrics *m = pli_calloc(1, sizeof *m);
    int          fd = -1;
    plait_status status = PLAIT_OK;
    if (m != NULL) m->path = pli_strdup(path);
    if (m == NULL || m->path == NULL) status = pli_fail(err, PLAIT_ENOMEM, "metrics: no memory");
    if (status >= 0) fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666);
    if (fd >= 0) m->file = fdopen(fd, "a");
    if (status >= 0 && m->file == NULL) status = pli_fail_errno(err, errno, "%s: cannot be written (--metrics)", path);
    if (status >= 0) {
        m->lost = -1;
        setvbuf(m->file, NULL, _IOLBF, LINE_BYTES);
        *metrics_out = m;
        return PLAIT_OK;
    }
    if (fd >= 0) close(fd);
    if (m != NULL) pli_free(m->path);
    pli_free(m);
    return status;
}

plait_status pli_metrics_open(const char *path, pli_metrics **metrics_out, plait_error *err) {
    return open_as(path, O_TRUNC, metrics_out, err);
}

plait_status pli_metrics_listen(pli_metrics **metrics, pli_metrics_take_fn *take, void *user, plait_error *err) {
    if (*metrics == NULL) *metrics = pli_calloc(1, sizeof **metrics);
    if (*metrics == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the lines of a run");
    if ((*metrics)->file == NULL) (*metrics)->lost = -1;
    (*metrics)->take = take;
    (*metrics)->user = user;
    return PLAIT_OK;
}

/* Removes the rest of a line: the former writer was killed, perhaps in the middle of one. */
static void cut_to_whole_lines(const char *path) {
    long        whole = 0, bytes = 0;
    struct stat what;
    FILE       *file = stat(path, &what) == 0 && S_ISREG(what.st_mode) ? fopen(path, "r") : NULL;
    if (file == NULL) return; /* for example a pipe: there is nothing to cut */
    for (int c; (c = getc(file)) != EOF;) {
        bytes++;
        if (c == '\n') whole = bytes;
    }
    fclose(file);
    const bool cut = whole == bytes || truncate(path, whole) == 0;
    (void)cut; /* on failure one line stays torn; all others are there */
}

plait_status pli_metrics_go_on(const char *path, pli_metrics **metrics_out, plait_error *err) {
    cut_to_whole_lines(path);
    return open_as(path, 0, metrics_out, err);
}

/* Writes one line and frees it. flush: so that a reader who follows the file sees it now. */
static void put(pli_metrics *m, pli_text *line, bool flush) {
    pli_json_end(line);
    pli_text_add(line, "\n");
    if (m->take != NULL && !line->failed) m->take(m->user, line->data, line->length);
    if (m->file != NULL && m->errnum == 0) {
        if (line->failed) {
            m->errnum = ENOMEM;
        } else if (fwrite(line->data, 1, line->length, m->file) != line->length || (flush && fflush(m->file) != 0)) {
            m->errnum = errno;
        }
    }
    pli_text_free(line);
}

static void begin(pli_text *line, const char *event) {
    pli_json_begin(line);
    pli_json_text(line, "event", event);
}

void pli_metrics_start(pli_metrics *metrics, int32_t rank, const char *host, int32_t pid, const char *role) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    begin(&line, "start");
    pli_json_i64(&line, "rank", rank);
    pli_json_text(&line, "host", host);
    pli_json_i64(&line, "pid", pid);
    pli_json_text(&line, "role", role);
    put(metrics, &line, true);
}

static void put_progress(pli_metrics *m, const char *event, const plait_progress *p, bool flush) {
    pli_text line = { 0 };
    begin(&line, event);
    pli_json_i64(&line, "epoch", p->epoch);
    pli_json_i64(&line, "clock", p->clock);
    pli_json_f64(&line, "loss", p->loss);
    pli_json_f64(&line, "learning_rate", p->learning_rate);
    pli_json_f64(&line, "validation_loss", p->validation_loss);
    pli_json_f64(&line, "validation_accuracy", p->validation_accuracy);
    pli_json_f64(&line, "rows_per_second", p->rows_per_second);
    pli_json_f64(&line, "seconds", p->seconds);
    put(m, &line, flush);
}

void pli_metrics_progress(pli_metrics *metrics, const plait_progress *progress) {
    if (metrics == NULL) return;
    if (progress->clock != metrics->clock) put_progress(metrics, "clock", progress, false);
    if (progress->epoch_ended) put_progress(metrics, "epoch", progress, true);
    metrics->clock = progress->clock;
}

void pli_metrics_shares(pli_metrics *metrics, const plait_shares *shares) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    begin(&line, shares->stages > 0 ? "stages" : "shares");
    pli_json_i64(&line, "epoch", shares->epoch);
    pli_json_list(&line, shares->stages > 0 ? "seconds" : "rows");
    for (int32_t w = 0; w < shares->workers; w++) pli_json_i64(&line, NULL, shares->rows[w]);
    for (int32_t s = 0; s < shares->stages; s++) pli_json_f64(&line, NULL, shares->seconds[s]);
    pli_json_list_end(&line);
    put(metrics, &line, false);
}

void pli_metrics_penalty(pli_metrics *metrics, const plait_penalty *penalty) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    begin(&line, "penalty");
    pli_json_i64(&line, "number", penalty->number);
    pli_json_i64(&line, "of", penalty->of);
    pli_json_f64(&line, "lambda", penalty->l1);
    pli_json_i64(&line, "nonzeros", penalty->nonzeros);
    pli_json_f64(&line, "objective", penalty->objective);
    pli_json_f64(&line, "gap", penalty->gap);
    pli_json_f64(&line, "validation_loss", penalty->validation_loss);
    put(metrics, &line, false);
}

void pli_metrics_checkpoint(pli_metrics *metrics, const plait_checkpointed *c) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    begin(&line, "checkpoint");
    pli_json_i64(&line, "clock", c->clock);
    pli_json_text(&line, "folder", c->folder);
    pli_json_i64(&line, "bytes", c->bytes);
    pli_json_f64(&line, "seconds", c->seconds);
    pli_json_f64(&line, "stall_seconds", c->stall_seconds);
    put(metrics, &line, true);
}

void pli_metrics_lost(pli_metrics *metrics, int32_t rank, const char *why, const char *then) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    metrics->lost = rank;
    begin(&line, "rank_lost");
    pli_json_i64(&line, "rank", rank);
    pli_json_text(&line, "why", why);
    if (then != NULL) pli_json_text(&line, "then", then);
    put(metrics, &line, true);
}

void pli_metrics_point(pli_metrics *metrics, const plait_point *point) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    begin(&line, "point");
    pli_json_i64(&line, "clock", point->clock);
    pli_json_f64(&line, "seconds", point->seconds);
    pli_json_f64(&line, "bytes", point->bytes);
    pli_json_f64(&line, "objective", point->objective);
    pli_json_f64(&line, "train_loss", point->train_loss);
    put(metrics, &line, false);
}

void pli_metrics_rank(pli_metrics *metrics, int32_t rank, double compute, double wait, double network) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    begin(&line, "rank");
    pli_json_i64(&line, "rank", rank);
    pli_json_f64(&line, "compute_seconds", compute);
    pli_json_f64(&line, "wait_seconds", wait);
    pli_json_f64(&line, "network_seconds", network);
    put(metrics, &line, false);
}

/* Adds the learner's own figures, if it has any. */
static void add_figures(pli_text *line, const plait_report *report) {
    if (report->n_figures == 0) return;
    pli_json_object(line, "figures");
    for (int32_t i = 0; i < report->n_figures; i++)
        pli_json_f64(line, report->figures[i].name, report->figures[i].value);
    pli_json_end(line);
}

void pli_metrics_end(pli_metrics *metrics, const char *status, const plait_report *report) {
    if (metrics == NULL) return;
    pli_text line = { 0 };
    begin(&line, "end");
    pli_json_text(&line, "status", status);
    if (metrics->lost >= 0) pli_json_i64(&line, "rank_lost", metrics->lost);
    if (report != NULL) {
        pli_json_i64(&line, "epochs", report->epochs);
        pli_json_i64(&line, "clocks", report->clocks);
        pli_json_i64(&line, "replicas", report->replicas);
        pli_json_f64(&line, "objective", report->objective);
        pli_json_f64(&line, "train_loss", report->train_loss);
        pli_json_f64(&line, "test_loss", report->test_loss);
        pli_json_f64(&line, "seconds", report->train_seconds);
        pli_json_i64(&line, "bytes_sent", report->bytes_sent);
        pli_json_text(&line, "model_hash", report->model_hash);
        add_figures(&line, report);
    }
    put(metrics, &line, true);
}

plait_status pli_metrics_close(pli_metrics **metrics, plait_error *err) {
    pli_metrics *m = *metrics;
    if (m == NULL) return PLAIT_OK;
    *metrics = NULL;
    if (m->file != NULL && fclose(m->file) != 0 && m->errnum == 0) m->errnum = errno;
    plait_status status = PLAIT_OK;
    if (m->errnum != 0)
        status = pli_fail_errno(err, m->errnum, "%s: could not be written to its end (--metrics)", m->path);
    pli_free(m->path);
    pli_free(m);
    return status;
}
