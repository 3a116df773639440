/* cli/serve/http.h - the seam between what is answered (by serve, and by a run's dashboard) and what carries the
 * requests: the module plait-http.so, by libmicrohttpd. The module knows no models, and those who answer know no
 * sockets.
 *
 * A request goes through the handler's functions in this order, on the module's one thread:
 *
 *     begin      its head is known: refuse it before its body comes?
 *     room       (for each piece of the body) may so many more bytes be held?
 *     ready      it is whole: it is answered at once (true), or `resume` will be called once it is (false)
 *     done       its answer was sent, or its client has gone
 */
#ifndef PLI_SERVE_HTTP_H
#define PLI_SERVE_HTTP_H

#include "base/base.h"

#define PLI_HTTP_ABI 2u

enum { PLI_HTTP_ARGS = 4 };

typedef struct pli_http_request {
    void    *connection; /* the module's own */
    char     method[12], path[128], type[64], accept[128]; /* cut short if they are longer */
    char     name[PLI_HTTP_ARGS][32], value[PLI_HTTP_ARGS][64]; /* of the query: ?proba=1 */
    int32_t  args;      /* how many there are, also beyond PLI_HTTP_ARGS */
    int64_t  declared;  /* Content-Length; -1: none */
    pli_text body;
    uint64_t passed;    /* bytes that came and were not kept */
    int      code;      /* of the answer; 0: there is none yet */
    pli_text answer;
    const char *answer_type, *allow; /* allow: for 405; NULL: none */
    bool     retry;     /* tells the client to come again in a second */
    uint64_t begun_ns;
    int64_t  rows;      /* that were answered */
    size_t   held;      /* bytes that the handler has counted for it */
    struct pli_http_request *next;
} pli_http_request;

typedef struct pli_http_handler {
    bool (*begin)(void *user, pli_http_request *request); /* false: refused; code and answer say why */
    bool (*room)(void *user, pli_http_request *request, size_t bytes); /* likewise */
    bool (*ready)(void *user, pli_http_request *request);
    void (*done)(void *user, pli_http_request *request);
    void *user;
    const char *option; /* that names the port: "--port" */
    int32_t  port, connections;
    uint64_t idle_ns; /* a connection on which nothing moves for so long is closed */
    uint64_t body_ns; /* a body that has not come after so long is refused */
    const char *body_why; /* what sets that time: "twice --idle-timeout" */
} pli_http_handler;

typedef struct pli_http pli_http;

typedef struct pli_http_ops {
    uint32_t abi;
    /** Listens on 127.0.0.1. The handler is copied. Errors: EIO the port is taken, or may not be used. */
    plait_status (*open)(const pli_http_handler *handler, pli_http **http_out, plait_error *err);
    int32_t (*port)(const pli_http *http);
    int32_t (*connections)(pli_http *http); /* open ones */
    void (*resume)(pli_http_request *request); /* any thread */
    void (*quiesce)(pli_http *http);        /* takes no new connections */
    void (*close)(pli_http **http);
} pli_http_ops;

#endif
