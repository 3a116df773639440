/* What serve counts, in Prometheus' text form (watch/prometheus.h). A histogram's buckets are cumulative and end with
 * +Inf, which equals its count. */
#include <string.h>

#include "cli/serve/serve.h"
#include "watch/prometheus.h"

const double pli_serve_bounds[PLI_SERVE_BUCKETS] = { 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02,
                                                     0.05,   0.1,   0.25,  0.5,   1,     2.5,  10 };
const char *const pli_serve_paths[PLI_SERVE_PATHS] = { "/predict", "/metrics", "/healthz", "/", "other" };

static int path_of(const char *path) {
    int p = 0;
    while (p < PLI_SERVE_PATHS - 1 && strcmp(pli_serve_paths[p], path) != 0) p++;
    return p;
}

void pli_serve_count(pli_serve_counts *c, const pli_http_request *request, double seconds) {
    int k = 0, b = 0;
    pthread_mutex_lock(&c->mutex);
    while (k < PLI_SERVE_CODES - 1 && c->code[k] != request->code && c->code[k] != 0) k++;
    c->code[k] = request->code;
    c->answered[k][path_of(request->path)]++;
    c->rows += request->rows;
    if (path_of(request->path) == 0) {
        while (b < PLI_SERVE_BUCKETS && seconds > pli_serve_bounds[b]) b++;
        c->within[b]++;
        c->seconds += seconds;
    }
    pthread_mutex_unlock(&c->mutex);
}

static void add_answered(pli_text *text, const pli_serve_counts *c) {
    pli_prom_head(text, "plait_requests_total", "counter",
                  "Requests answered, by code and path; 499: the client left.");
    for (int k = 0; k < PLI_SERVE_CODES; k++)
        for (int p = 0; p < PLI_SERVE_PATHS; p++)
            if (c->answered[k][p] > 0)
                pli_text_add(text, "plait_requests_total{code=\"%d\",path=\"%s\"} %llu\n", c->code[k],
                             pli_serve_paths[p], (unsigned long long)c->answered[k][p]);
}

static void add_latency(pli_text *text, const pli_serve_counts *c) {
    const char *name = "plait_request_seconds";
    uint64_t    sum = 0;
    pli_prom_head(text, name, "histogram", "Time of a request to /predict, from its head to the end of its answer.");
    for (int b = 0; b < PLI_SERVE_BUCKETS; b++)
        pli_text_add(text, "%s_bucket{le=\"%g\"} %llu\n", name, pli_serve_bounds[b],
                     (unsigned long long)(sum += c->within[b]));
    sum += c->within[PLI_SERVE_BUCKETS];
    pli_text_add(text, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.9g\n%s_count %llu\n", name, (unsigned long long)sum, name,
                 c->seconds, name, (unsigned long long)sum);
}

static void add_counts(pli_text *text, pli_serve_counts *c) {
    pthread_mutex_lock(&c->mutex);
    add_answered(text, c);
    add_latency(text, c);
    pli_prom_one(text, "plait_rows_total", "counter", "Rows predicted.", (double)c->rows);
    pli_prom_one(text, "plait_batches_total", "counter", "Calls of the model; each answers the rows that waited.",
                 (double)c->batches);
    pli_prom_head(text, "plait_model_reloads_total", "counter", "Times that the model file was read anew.");
    pli_text_add(text, "plait_model_reloads_total{result=\"ok\"} %llu\n", (unsigned long long)c->reloads);
    pli_text_add(text, "plait_model_reloads_total{result=\"failed\"} %llu\n", (unsigned long long)c->reloads_failed);
    pthread_mutex_unlock(&c->mutex);
}

void pli_serve_metrics(pli_serve *s, pli_text *text) {
    add_counts(text, &s->counts);
    pthread_mutex_lock(&s->mutex);
    pli_prom_one(text, "plait_queue_length", "gauge", "Requests that wait for a worker.", (double)s->queue.n);
    pli_prom_one(text, "plait_queue_limit", "gauge", "Requests that may wait; beyond, the answer is 503.",
                 (double)s->opts.queue);
    pli_prom_one(text, "plait_body_bytes", "gauge", "Bytes of requests' bodies in memory.", (double)s->held);
    if (s->served != NULL) {
        pli_prom_one(text, "plait_model_load_seconds", "gauge", "Time that reading the model took.",
                     s->served->load_seconds);
        pli_prom_head(text, "plait_model_info", "gauge", "The model in use: its kind and hash.");
        pli_text_add(text, "plait_model_info{model=\"%s\",hash=\"%s\"} 1\n", plait_model_name(s->served->model),
                     s->served->hash);
    }
    pthread_mutex_unlock(&s->mutex);
    pli_prom_one(text, "plait_connections", "gauge", "Open connections.", s->http_ops->connections(s->http));
}
