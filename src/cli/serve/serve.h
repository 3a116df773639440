/* cli/serve/serve.h - a model behind HTTP: what is answered to whom, whatever carries the requests.
 *
 *     http.h       the seam to the module that carries them, one thread
 *     serve.c      paths, refusals, the bounded queue, workers, the model and its replacement
 *     answer.c     from bodies to answers: read, predict, write
 *     body.c       JSON rows to lines
 *     metrics.c    what is counted, in Prometheus' text form
 *
 * The carrier's thread only puts whole requests into the queue. A worker takes all that waits, up to a number of
 * requests; requests whose rows may be joined are read and predicted as one. A model is counted by its users: it is
 * destroyed when its last request has its answer, so a new one replaces it at any time. */
#ifndef PLI_SERVE_SERVE_H
#define PLI_SERVE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>

#include <plait/model.h>

#include "cli/serve/http.h"
#include "cli/serve/queue.h"

/* A model in use. */
typedef struct pli_served {
    plait_model    *model;
    _Atomic int32_t users;
    double          load_seconds;
    char            hash[65];
} pli_served;

enum { PLI_SERVE_BUCKETS = 14, PLI_SERVE_CODES = 16, PLI_SERVE_PATHS = 5 };
extern const double pli_serve_bounds[PLI_SERVE_BUCKETS]; /* seconds */

/* What is counted; under its own mutex. */
typedef struct pli_serve_counts {
    pthread_mutex_t mutex;
    int             code[PLI_SERVE_CODES]; /* those that were answered; 0: free */
    uint64_t        answered[PLI_SERVE_CODES][PLI_SERVE_PATHS];
    uint64_t        within[PLI_SERVE_BUCKETS + 1], batches, reloads, reloads_failed;
    int64_t         rows;
    double          seconds;
} pli_serve_counts;

typedef struct pli_serve_opts {
    int64_t port, threads, max_body, queue, connections;
    uint64_t idle_ns;
} pli_serve_opts;

typedef struct pli_serve {
    pli_serve_opts      opts;
    const pli_http_ops *http_ops;
    void               *module;
    pli_http           *http;
    pthread_mutex_t     mutex; /* guards what follows */
    pthread_cond_t      waits, idle;
    pli_request_queue   queue;
    int64_t             open;         /* requests that have begun, and are not done */
    size_t              held;         /* bytes of bodies */
    bool                ending;       /* no worker waits any more, so nothing may come into the queue */
    pli_served         *served;       /* NULL: the first model is not there yet */
    pthread_t          *worker;
    int64_t             workers;
    pli_serve_counts    counts;
} pli_serve;

/** Listens and starts the workers; the model comes by pli_serve_put. Errors: EMODULE, EIO, ENOMEM. */
plait_status pli_serve_open(const pli_serve_opts *opts, pli_serve *serve, plait_error *err);
int32_t      pli_serve_port(const pli_serve *serve);
/** Loads a model for pli_serve_put. Errors: those of plait_model_load; EREFUSED it predicts nothing. */
plait_status pli_serve_load(const char *path, pli_served **served_out, plait_error *err);
/** From now on requests are answered by this model. */
void         pli_serve_put(pli_serve *serve, pli_served *served);
void         pli_serve_reload_failed(pli_serve *serve);
/** Takes no new connections, answers the requests that have begun, for at most patience_ns, and ends. Returns how many
 *  requests it leaves. */
int64_t      pli_serve_close(pli_serve *serve, uint64_t patience_ns);

/* answer.c */
/** Answers n requests, a list by next, with this model; each has a code then. Returns how often it predicted. */
int64_t pli_serve_answer(const plait_model *model, pli_http_request *list);
/** Sets code and a JSON object with the error. */
void    pli_serve_refuse(pli_http_request *request, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/** Is the query one that predict knows? If not, it is refused. */
bool    pli_serve_check_query(pli_http_request *request);
/** Is its Content-Type one of those that rows may have? If not, it is refused. */
bool    pli_serve_check_type(pli_http_request *request);

/* metrics.c */
void pli_serve_count(pli_serve_counts *counts, const pli_http_request *request, double seconds);
/** Adds all figures in Prometheus' text form. */
void pli_serve_metrics(pli_serve *serve, pli_text *text);
extern const char *const pli_serve_paths[PLI_SERVE_PATHS]; /* "/predict", ...; the last stands for all others */

#endif
