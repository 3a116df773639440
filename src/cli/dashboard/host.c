/* Requests to a dashboard. The carrier's thread checks path and token; a second thread takes samples, which may need a
 * moment when a rank is frozen, and answers. See host.h. */
#include "cli/dashboard/host.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/module.h"
#include "cli/serve/serve.h"
#include "watch/prometheus.h"

#define SAMPLE_NS  UINT64_C(500000000)   /* an older sample is taken anew */
#define LOOKING_NS UINT64_C(3000000000)  /* who has asked since then still looks */
#define LINGER_NS  UINT64_C(1500000000)  /* the page asks once a second */
#define IDLE_NS    UINT64_C(30000000000)
enum { CONNECTIONS = 64, WAITING = 64 };

struct pli_dash_host {
    char                token[PLI_DASH_TOKEN];
    pli_dash           *dash;
    pli_dash_ask_fn    *ask;
    void               *user;
    const pli_http_ops *ops;
    void               *module;
    pli_http           *http;
    pthread_t           thread;
    pthread_mutex_t     mutex; /* guards what follows */
    pthread_cond_t      waits, looked;
    pli_request_queue   queue;
    uint64_t            looked_ns; /* when the page last got its data; 0: never */
    bool                ending;
};

plait_status pli_dash_token(char token[PLI_DASH_TOKEN], plait_error *err) {
    static const char digits[] = "0123456789abcdef";
    unsigned char     bytes[(PLI_DASH_TOKEN - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return pli_fail_errno(err, errno, "dashboard: no random numbers for its token");
    for (size_t i = 0; i < sizeof bytes; i++) {
        token[2 * i] = digits[bytes[i] >> 4];
        token[2 * i + 1] = digits[bytes[i] & 15];
    }
    token[PLI_DASH_TOKEN - 1] = '\0';
    return PLAIT_OK;
}

plait_status pli_dash_check(plait_error *err) {
    void        *module = NULL;
    const void  *given = NULL;
    plait_status status = pli_module_load("http", PLI_HTTP_ABI, &module, &given, err);
    pli_module_close(&module);
    return status;
}

/* --- requests: on the carrier's thread ---------------------------------------------------------------------------- */

static const char *const paths[] = { "/", "/data", "/metrics" };
enum { PATHS = sizeof paths / sizeof *paths };

/* Takes as long for a wrong token as for the right one. */
static bool has_token(const pli_dash_host *h, const pli_http_request *r) {
    for (int32_t i = 0; i < r->args && i < PLI_HTTP_ARGS; i++) {
        unsigned char differs = 0;
        if (strcmp(r->name[i], "token") != 0 || strlen(r->value[i]) != PLI_DASH_TOKEN - 1) continue;
        for (int32_t k = 0; k < PLI_DASH_TOKEN; k++) differs |= (unsigned char)(r->value[i][k] ^ h->token[k]);
        return differs == 0;
    }
    return false;
}

static bool begin(void *user, pli_http_request *r) {
    const pli_dash_host *h = user;
    bool                 known = false;
    for (int32_t p = 0; p < PATHS; p++) known = known || strcmp(r->path, paths[p]) == 0;
    if (!has_token(h, r)) {
        pli_serve_refuse(r, 403,
                         "the token is missing or wrong; open the address that plait printed, with its ?token=");
    } else if (!known) {
        const char *near = pli_nearest(r->path, paths, PATHS);
        pli_serve_refuse(r, 404, "no path %s%s%s%s There are /, /data and /metrics", r->path,
                         near != NULL ? ": did you mean " : "", near != NULL ? near : "", near != NULL ? "?" : ".");
    } else if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0) {
        r->allow = "GET, HEAD";
        pli_serve_refuse(r, 405, "%s takes %s, not %s", r->path, r->allow, r->method);
    }
    return r->code == 0;
}

static bool room(void *user, pli_http_request *r, size_t bytes) {
    (void)user;
    (void)bytes;
    pli_serve_refuse(r, 413, "a request to a dashboard has no body");
    return false;
}

static bool ready(void *user, pli_http_request *r) {
    pli_dash_host *h = user;
    pthread_mutex_lock(&h->mutex);
    const bool queue = !h->ending && h->queue.n < WAITING;
    if (queue) {
        pli_request_queue_add(&h->queue, r);
        pthread_cond_signal(&h->waits);
    }
    pthread_mutex_unlock(&h->mutex);
    if (queue) return false;
    pli_serve_refuse(r, 503, "the dashboard is busy, or its run is ending; come again in a second");
    r->retry = true;
    return true;
}

static void done(void *user, pli_http_request *r) {
    (void)user;
    (void)r;
}

/* --- answers: on a thread of their own ---------------------------------------------------------------------------- */

static void take_sample(pli_dash_host *h) {
    pthread_mutex_lock(&h->dash->mutex);
    const bool old = h->dash->sample == NULL || pli_now_ns() - h->dash->sampled_ns > SAMPLE_NS;
    pthread_mutex_unlock(&h->dash->mutex);
    char *sample = old ? h->ask(h->user) : NULL;
    if (sample != NULL) pli_dash_sample(h->dash, sample);
    pli_free(sample);
}

static void answer(pli_dash_host *h, pli_http_request *r) {
    const bool page = strcmp(r->path, "/") == 0, data = strcmp(r->path, "/data") == 0;
    if (!page) take_sample(h);
    if (page) pli_dash_page(&r->answer);
    else if (data) pli_dash_json(h->dash, &r->answer);
    else pli_dash_figures(h->dash, &r->answer);
    r->code = 200;
    r->answer_type = page ? "text/html; charset=utf-8" : data ? "application/json" : pli_prometheus_type;
    if (!data) return;
    pthread_mutex_lock(&h->mutex);
    h->looked_ns = pli_now_ns();
    pthread_cond_signal(&h->looked);
    pthread_mutex_unlock(&h->mutex);
}

static void *work(void *user) {
    pli_dash_host *h = user;
    pthread_mutex_lock(&h->mutex);
    while (!h->ending || h->queue.n > 0) {
        pli_http_request *r = pli_request_queue_take(&h->queue, 1);
        if (r == NULL) {
            pthread_cond_wait(&h->waits, &h->mutex);
            continue;
        }
        pthread_mutex_unlock(&h->mutex);
        answer(h, r);
        h->ops->resume(r);
        pthread_mutex_lock(&h->mutex);
    }
    pthread_mutex_unlock(&h->mutex);
    return NULL;
}

/* --- its life ----------------------------------------------------------------------------------------------------- */

static void free_host(pli_dash_host *h) {
    pli_module_close(&h->module);
    pthread_cond_destroy(&h->looked);
    pthread_cond_destroy(&h->waits);
    pthread_mutex_destroy(&h->mutex);
    pli_free(h);
}

static plait_status start(pli_dash_host *h, int32_t port, plait_error *err) {
    const void *given = NULL;
    PLI_TRY(pli_module_load("http", PLI_HTTP_ABI, &h->module, &given, err));
    h->ops = given;
    const pli_http_handler handler = { .begin = begin, .room = room, .ready = ready, .done = done, .user = h,
                                       .option = "--dashboard", .port = port, .connections = CONNECTIONS,
                                       .idle_ns = IDLE_NS, .body_ns = IDLE_NS, .body_why = "of a dashboard" };
    PLI_TRY(h->ops->open(&handler, &h->http, err));
    const int errnum = pthread_create(&h->thread, NULL, work, h);
    if (errnum == 0) return PLAIT_OK;
    h->ops->close(&h->http);
    return pli_fail_errno(err, errnum, "dashboard: a thread cannot be started");
}

plait_status pli_dash_host_open(int32_t port, const char token[PLI_DASH_TOKEN], pli_dash *dash, pli_dash_ask_fn *ask,
                                void *user, pli_dash_host **host_out, plait_error *err) {
    pli_dash_host *h = pli_calloc(1, sizeof *h);
    if (h == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a dashboard");
    memcpy(h->token, token, PLI_DASH_TOKEN);
    h->dash = dash;
    h->ask = ask;
    h->user = user;
    pthread_mutex_init(&h->mutex, NULL);
    pthread_cond_init(&h->waits, NULL);
    pthread_cond_init(&h->looked, NULL);
    const plait_status status = start(h, port, err);
    if (status < 0) free_host(h);
    else *host_out = h;
    return status;
}

int32_t pli_dash_host_port(const pli_dash_host *h) { return h->ops->port(h->http); }

/* Gives a page that is open the time to ask once more. */
static void linger(pli_dash_host *h) {
    struct timespec until;
    const uint64_t  now_ns = pli_now_ns();
    int             bad = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t end_ns = (uint64_t)until.tv_nsec + LINGER_NS;
    until.tv_sec += (time_t)(end_ns / 1000000000u);
    until.tv_nsec = (long)(end_ns % 1000000000u);
    pthread_mutex_lock(&h->mutex);
    const uint64_t before_ns = h->looked_ns;
    const bool     looks = before_ns > 0 && now_ns - before_ns < LOOKING_NS;
    while (looks && h->looked_ns == before_ns && bad == 0) bad = pthread_cond_timedwait(&h->looked, &h->mutex, &until);
    pthread_mutex_unlock(&h->mutex);
}

void pli_dash_host_close(pli_dash_host **host) {
    pli_dash_host *h = *host;
    if (h == NULL) return;
    *host = NULL;
    linger(h);
    h->ops->quiesce(h->http);
    pthread_mutex_lock(&h->mutex);
    h->ending = true;
    pthread_cond_signal(&h->waits);
    pthread_mutex_unlock(&h->mutex);
    pthread_join(h->thread, NULL);
    h->ops->close(&h->http);
    free_host(h);
}
