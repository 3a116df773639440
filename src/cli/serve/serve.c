/* Requests, the queue, the workers, and the model that answers. See serve.h. */
#include "cli/serve/serve.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/module.h"
#include "cli/answers.h"
#include "watch/prometheus.h"

enum { HELD_BODIES = 4, TAKEN = 256 }; /* so many of the largest bodies may be held; requests that a worker takes */

static const char *const paths_text =
    "plait serve: predictions of a model\n\n"
    "POST /predict   rows as JSON ([[1, 2], ...] or [{\"column\": 1}, ...]), text/csv, or text/plain (LIBSVM);\n"
    "                ?proba=1: probabilities; ?contributions=1: of trees, what each feature adds; ?header=yes|no\n"
    "GET  /metrics   figures for Prometheus\n"
    "GET  /healthz   200 if a model is there, else 503\n";

/* --- the model ---------------------------------------------------------------------------------------------------- */

static void leave_model(pli_served *served) {
    if (served == NULL || atomic_fetch_sub(&served->users, 1) > 1) return;
    plait_model_destroy(&served->model);
    pli_free(served);
}

static pli_served *take_model(pli_serve *s) {
    pthread_mutex_lock(&s->mutex);
    pli_served *served = s->served;
    if (served != NULL) atomic_fetch_add(&served->users, 1);
    pthread_mutex_unlock(&s->mutex);
    return served;
}

plait_status pli_serve_load(const char *path, pli_served **served_out, plait_error *err) {
    const uint64_t begun_ns = pli_now_ns();
    pli_served    *served = pli_calloc(1, sizeof *served);
    if (served == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a model");
    served->users = 1;
    plait_status status = plait_model_load(path, &served->model, err);
    if (status >= 0) status = pli_answer_check(served->model, PLAIT_ANSWER_LABEL, err);
    if (status < 0) {
        leave_model(served);
        return status;
    }
    plait_model_hash(served->model, served->hash);
    served->load_seconds = (double)(pli_now_ns() - begun_ns) * 1e-9;
    *served_out = served;
    return PLAIT_OK;
}

void pli_serve_put(pli_serve *s, pli_served *served) {
    pthread_mutex_lock(&s->mutex);
    pli_served *old = s->served;
    s->served = served;
    pthread_mutex_unlock(&s->mutex);
    if (old == NULL) return;
    leave_model(old);
    pthread_mutex_lock(&s->counts.mutex);
    s->counts.reloads++;
    pthread_mutex_unlock(&s->counts.mutex);
}

void pli_serve_reload_failed(pli_serve *s) {
    pthread_mutex_lock(&s->counts.mutex);
    s->counts.reloads_failed++;
    pthread_mutex_unlock(&s->counts.mutex);
}

/* --- requests: on the carrier's thread ---------------------------------------------------------------------------- */

static void refuse_size(const pli_serve *s, pli_http_request *r) {
    pli_serve_refuse(r, 413, "the body has more than %lld bytes; send fewer rows in a request, or start plait serve "
                     "with a larger --max-body", (long long)s->opts.max_body);
}

/* limit: of the option that set it, in force; option NULL: none did. */
static void refuse_busy(pli_http_request *r, const char *what, const char *option, int64_t limit) {
    if (option == NULL) pli_serve_refuse(r, 503, "%s; come again in a second", what);
    else pli_serve_refuse(r, 503, "%s (%s %lld); come again in a second", what, option, (long long)limit);
    r->retry = true;
}

static bool check_path(pli_http_request *r) {
    int p = 0;
    while (p < PLI_SERVE_PATHS - 1 && strcmp(pli_serve_paths[p], r->path) != 0) p++;
    if (p == PLI_SERVE_PATHS - 1) {
        const char *near = pli_nearest(r->path, pli_serve_paths, PLI_SERVE_PATHS - 1);
        pli_serve_refuse(r, 404, "no path %s%s%s%s There are POST /predict, GET /metrics, GET /healthz and GET /",
                         r->path, near != NULL ? ": did you mean " : "", near != NULL ? near : "",
                         near != NULL ? "?" : ".");
        return false;
    }
    const bool get = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    if (p == 0 ? strcmp(r->method, "POST") == 0 : get) return true;
    r->allow = p == 0 ? "POST" : "GET, HEAD";
    pli_serve_refuse(r, 405, "%s takes %s, not %s", r->path, r->allow, r->method);
    return false;
}

static bool begin(void *user, pli_http_request *r) {
    pli_serve *s = user;
    pthread_mutex_lock(&s->mutex);
    s->open++;
    pthread_mutex_unlock(&s->mutex);
    if (!check_path(r)) return false;
    if (strcmp(r->path, "/predict") != 0) return true;
    if (!pli_serve_check_query(r) || !pli_serve_check_type(r)) return false;
    if (r->declared <= s->opts.max_body) return true;
    refuse_size(s, r);
    return false;
}

/* The body doubles its memory as it grows, and its lines may take as much again: a byte counts once, the limit has
 * room. */
static bool room(void *user, pli_http_request *r, size_t bytes) {
    pli_serve *s = user;
    if (r->held + bytes > (size_t)s->opts.max_body) {
        refuse_size(s, r);
        return false;
    }
    pthread_mutex_lock(&s->mutex);
    const bool fits = s->held + bytes <= HELD_BODIES * (size_t)s->opts.max_body;
    if (fits) {
        s->held += bytes;
        r->held += bytes;
    }
    pthread_mutex_unlock(&s->mutex);
    if (!fits)
        refuse_busy(r, "the bodies of other requests fill the memory for them", "4 times --max-body", s->opts.max_body);
    return fits;
}

static void answer_healthz(pli_http_request *r, bool there) {
    r->code = there ? 200 : 503;
    r->retry = !there;
    r->answer_type = "text/plain; charset=utf-8";
    pli_text_add(&r->answer, "%s\n", there ? "ok" : "loading the model");
}

static bool ready(void *user, pli_http_request *r) {
    pli_serve *s = user;
    pthread_mutex_lock(&s->mutex);
    const bool there = s->served != NULL, full = s->queue.n >= s->opts.queue;
    const bool ending = s->ending, queue = strcmp(r->path, "/predict") == 0 && there && !full && !ending;
    if (queue) {
        pli_request_queue_add(&s->queue, r);
        pthread_cond_signal(&s->waits);
    }
    pthread_mutex_unlock(&s->mutex);
    if (queue) return false;
    if (strcmp(r->path, "/healthz") == 0) answer_healthz(r, there);
    else if (strcmp(r->path, "/predict") == 0)
        refuse_busy(r, ending ? "the server is ending" : there ? "too many requests wait" : "the model is being read",
                    there && !ending ? "--queue" : NULL, s->opts.queue);
    else {
        r->code = 200;
        r->answer_type = pli_prometheus_type;
        if (strcmp(r->path, "/metrics") == 0) pli_serve_metrics(s, &r->answer);
        else pli_text_add(&r->answer, "%s", paths_text);
    }
    return true;
}

static void done(void *user, pli_http_request *r) {
    pli_serve *s = user;
    if (r->code == 0) r->code = 499; /* the client has gone without an answer */
    pli_serve_count(&s->counts, r, (double)(pli_now_ns() - r->begun_ns) * 1e-9);
    pthread_mutex_lock(&s->mutex);
    s->open--;
    s->held -= r->held;
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->mutex);
}

/* --- workers ------------------------------------------------------------------------------------------------------ */

/* Takes what waits: this worker's share of it, at least one and at most TAKEN requests. NULL: it is the end. */
static pli_http_request *take_waiting(pli_serve *s) {
    pthread_mutex_lock(&s->mutex);
    while (s->queue.n == 0 && !s->ending) pthread_cond_wait(&s->waits, &s->mutex);
    const int64_t     share = (s->queue.n + s->workers - 1) / s->workers;
    pli_http_request *list = pli_request_queue_take(&s->queue, share < TAKEN ? share : TAKEN);
    pthread_mutex_unlock(&s->mutex);
    return list;
}

static void *work(void *user) {
    pli_serve *s = user;
    for (pli_http_request *list = take_waiting(s); list != NULL; list = take_waiting(s)) {
        pli_served   *served = take_model(s);
        const int64_t calls = pli_serve_answer(served->model, list);
        leave_model(served);
        pthread_mutex_lock(&s->counts.mutex);
        s->counts.batches += (uint64_t)calls;
        pthread_mutex_unlock(&s->counts.mutex);
        while (list != NULL) { /* once resumed, a request may be gone */
            pli_http_request *next = list->next;
            s->http_ops->resume(list);
            list = next;
        }
    }
    return NULL;
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

static plait_status start_workers(pli_serve *s, plait_error *err) {
    s->worker = pli_calloc((size_t)s->opts.threads, sizeof *s->worker);
    if (s->worker == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld threads", (long long)s->opts.threads);
    pthread_mutex_lock(&s->mutex); /* workers read how many they are */
    int errnum = 0;
    while (s->workers < s->opts.threads && errnum == 0) {
        errnum = pthread_create(&s->worker[s->workers], NULL, work, s);
        if (errnum == 0) s->workers++;
    }
    pthread_mutex_unlock(&s->mutex);
    return errnum == 0 ? PLAIT_OK : pli_fail_errno(err, errnum, "a thread cannot be started");
}

plait_status pli_serve_open(const pli_serve_opts *opts, pli_serve *s, plait_error *err) {
    const void *given = NULL;
    *s = (pli_serve){ .opts = *opts };
    PLI_TRY(pli_module_load("http", PLI_HTTP_ABI, &s->module, &given, err));
    s->http_ops = given;
    pthread_mutex_init(&s->mutex, NULL);
    pthread_mutex_init(&s->counts.mutex, NULL);
    pthread_cond_init(&s->waits, NULL);
    pthread_cond_init(&s->idle, NULL);
    const pli_http_handler handler = { .begin = begin, .room = room, .ready = ready, .done = done, .user = s,
                                       .option = "--port", .port = (int32_t)opts->port,
                                       .connections = (int32_t)opts->connections,
                                       .idle_ns = opts->idle_ns, .body_ns = 2 * opts->idle_ns,
                                       .body_why = "twice --idle-timeout" };
    plait_status status = s->http_ops->open(&handler, &s->http, err);
    if (status >= 0) status = start_workers(s, err);
    if (status < 0) pli_serve_close(s, 0);
    return status;
}

int32_t pli_serve_port(const pli_serve *s) { return s->http_ops->port(s->http); }

/* Waits until all requests that have begun are done. */
static int64_t drain(pli_serve *s, uint64_t patience_ns) {
    struct timespec until;
    int             bad = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(patience_ns / 1000000000u);
    pthread_mutex_lock(&s->mutex);
    while (s->open > 0 && bad != ETIMEDOUT) bad = pthread_cond_timedwait(&s->idle, &s->mutex, &until);
    const int64_t left = s->open;
    pthread_mutex_unlock(&s->mutex);
    return left;
}

int64_t pli_serve_close(pli_serve *s, uint64_t patience_ns) {
    int64_t left = 0;
    if (s->http != NULL) {
        s->http_ops->quiesce(s->http);
        left = drain(s, patience_ns);
    }
    pthread_mutex_lock(&s->mutex);
    s->ending = true;
    pthread_cond_broadcast(&s->waits);
    pthread_mutex_unlock(&s->mutex);
    for (int64_t i = 0; i < s->workers; i++) pthread_join(s->worker[i], NULL);
    if (s->http != NULL) s->http_ops->close(&s->http);
    leave_model(s->served);
    pli_free(s->worker);
    pthread_cond_destroy(&s->idle);
    pthread_cond_destroy(&s->waits);
    pthread_mutex_destroy(&s->counts.mutex);
    pthread_mutex_destroy(&s->mutex);
    pli_module_close(&s->module);
    return left;
}
