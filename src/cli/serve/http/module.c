/* plait-http.so - carries requests for serve and for dashboards by libmicrohttpd.
 *
 * One thread waits for all connections by epoll. A request that must wait for its answer is suspended, so that it takes
 * neither a thread nor time, until `resume` is called. A connection has a buffer of CONNECTION_BYTES, in which a head
 * must fit, so 10,000 connections take at most 160 MiB. A refused body that has no declared length is read and dropped
 * up to PASS_BYTES, so that the client hears why; then the connection is closed. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/serve/http.h"

enum { CONNECTION_BYTES = 16 << 10, PASS_BYTES = 256 << 20, SPARE_FILES = 64, BACKLOG = 1024 };

struct pli_http {
    struct MHD_Daemon *daemon;
    pli_http_handler   handler;
    int                listening; /* once quiesced; -1 */
    _Atomic bool       quiet;     /* quiesced: an answer is the last on its connection */
};

/* --- a request ---------------------------------------------------------------------------------------------------- */

static void keep(char *to, size_t room, const char *from) {
    const size_t n = from == NULL ? 0 : strlen(from) < room - 1 ? strlen(from) : room - 1;
    if (n > 0) memcpy(to, from, n);
    to[n] = '\0';
}

static enum MHD_Result add_arg(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
    pli_http_request *r = user;
    (void)kind;
    if (r->args < PLI_HTTP_ARGS) {
        keep(r->name[r->args], sizeof r->name[0], name);
        keep(r->value[r->args], sizeof r->value[0], value);
    }
    r->args++;
    return MHD_YES;
}

static pli_http_request *new_request(struct MHD_Connection *c, const char *path, const char *method) {
    pli_http_request *r = pli_calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    r->connection = c;
    r->begun_ns = pli_now_ns();
    keep(r->method, sizeof r->method, method);
    keep(r->path, sizeof r->path, path);
    keep(r->type, sizeof r->type, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Type"));
    keep(r->accept, sizeof r->accept, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Accept"));
    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, add_arg, r);
    const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length");
    if (length == NULL || !pli_parse_i64(length, &r->declared)) r->declared = -1;
    return r;
}

static enum MHD_Result send_answer(const pli_http *http, struct MHD_Connection *c, pli_http_request *r) {
    const size_t         n = r->answer.failed ? 0 : r->answer.length;
    struct MHD_Response *response = MHD_create_response_from_buffer(n, n > 0 ? r->answer.data : (char *)"",
                                                                    MHD_RESPMEM_PERSISTENT);
    if (response == NULL) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", r->answer_type != NULL ? r->answer_type : "text/plain");
    if (http->quiet) MHD_add_response_header(response, "Connection", "close");
    if (r->allow != NULL) MHD_add_response_header(response, "Allow", r->allow);
    if (r->retry) MHD_add_response_header(response, "Retry-After", "1");
    const enum MHD_Result result = MHD_queue_response(c, (unsigned)(r->answer.failed ? 500 : r->code), response);
    MHD_destroy_response(response);
    return result;
}

/* A piece of the body has come. */
static enum MHD_Result take_piece(pli_http *http, pli_http_request *r, const char *data, size_t n) {
    const pli_http_handler *h = &http->handler;
    if (r->code == 0 && pli_now_ns() - r->begun_ns > h->body_ns) {
        r->code = 408;
        pli_text_add(&r->answer,
                     "{\"error\": \"the body has not come within %.3g s (%s); send it faster or in parts\"}\n",
                     (double)h->body_ns * 1e-9, h->body_why);
        r->answer_type = "application/json";
    }
    if (r->code == 0 && h->room(h->user, r, n)) {
        pli_text_add_bytes(&r->body, data, n);
        return r->body.failed ? MHD_NO : MHD_YES;
    }
    pli_text_free(&r->body);
    r->passed += n;
    return r->passed <= PASS_BYTES && pli_now_ns() - r->begun_ns <= 2 * h->body_ns ? MHD_YES : MHD_NO;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version, const char *data, size_t *bytes, void **state) {
    pli_http               *http = user;
    const pli_http_handler *h = &http->handler;
    pli_http_request       *r = *state;
    (void)version;
    if (r == NULL) {
        *state = r = new_request(c, path, method);
        if (r == NULL) return MHD_NO;
        return h->begin(h->user, r) ? MHD_YES : send_answer(http, c, r);
    }
    if (*bytes > 0) {
        const enum MHD_Result result = take_piece(http, r, data, *bytes);
        *bytes = 0;
        return result;
    }
    if (r->code != 0) return send_answer(http, c, r);
    MHD_suspend_connection(c); /* first, because a worker may resume it at once */
    if (h->ready(h->user, r)) MHD_resume_connection(c);
    return MHD_YES;
}

static void on_done(void *user, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why) {
    pli_http         *http = user;
    pli_http_request *r = *state;
    (void)c;
    (void)why;
    if (r == NULL) return;
    *state = NULL;
    http->handler.done(http->handler.user, r);
    pli_text_free(&r->body);
    pli_text_free(&r->answer);
    pli_free(r);
}

static void resume_request(pli_http_request *r) { MHD_resume_connection(r->connection); }

/* --- the daemon --------------------------------------------------------------------------------------------------- */

/* Each connection takes a file. Returns how many connections there may be. */
static int32_t allow_files(int32_t connections) {
    struct rlimit limit;
    const rlim_t  want = (rlim_t)connections + SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
    if (limit.rlim_cur < want) {
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= want) return connections;
    return limit.rlim_cur > 2 * SPARE_FILES ? (int32_t)limit.rlim_cur - SPARE_FILES : SPARE_FILES;
}

static plait_status cannot_listen(const pli_http_handler *h, int errnum, plait_error *err) {
    const char *why = errnum == EADDRINUSE ? "another program has it; "
                      : errnum == EACCES   ? "ports below 1024 are for root; "
                                           : "";
    return pli_fail(err, PLAIT_EIO,
                    "port %d of 127.0.0.1 cannot be used (%s): %schoose another %s, or 0 for a free one", (int)h->port,
                    strerror(errnum), why, h->option);
}

static plait_status open_http(const pli_http_handler *handler, pli_http **http_out, plait_error *err) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)handler->port) };
    pli_http          *http = pli_calloc(1, sizeof *http);
    if (http == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a server");
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    http->handler = *handler;
    http->listening = -1;
    const int32_t limit = allow_files(handler->connections);
    errno = 0;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC, 0, NULL, NULL, on_request, http,
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_NOTIFY_COMPLETED, on_done, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)limit, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)((handler->idle_ns + 999999999u) / 1000000000u),
        MHD_OPTION_LISTEN_BACKLOG_SIZE, (unsigned)BACKLOG, MHD_OPTION_END);
    if (http->daemon == NULL) {
        const int errnum = errno;
        pli_free(http);
        return cannot_listen(handler, errnum, err);
    }
    *http_out = http;
    return PLAIT_OK;
}

static int32_t port_of(const pli_http *http) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info != NULL ? info->port : 0;
}

static int32_t connections_of(pli_http *http) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info != NULL ? (int32_t)info->num_connections : 0;
}

static void quiesce(pli_http *http) {
    http->quiet = true;
    http->listening = MHD_quiesce_daemon(http->daemon);
}

static void close_http(pli_http **http) {
    MHD_stop_daemon((*http)->daemon);
    if ((*http)->listening >= 0) close((*http)->listening);
    pli_free(*http);
    *http = NULL;
}

static const pli_http_ops ops = { PLI_HTTP_ABI, open_http, port_of, connections_of, resume_request, quiesce,
                                  close_http };

__attribute__((visibility("default"))) const void *plait_http_module(void);
const void *plait_http_module(void) { return &ops; }
