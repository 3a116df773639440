/* serve - answers requests for predictions over HTTP on loopback, until it is asked to end.
 *
 * The first thread takes the signals: SIGHUP reads the model anew while other threads go on answering. A handler writes
 * the signal's number to a pipe, because libraries may have threads that do not block signals. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/serve/serve.h"
#include "cli/signal_pipe.h"
#include "cli/talk.h"

typedef struct serve_settings {
    const char    *model_file;
    pli_serve_opts opts;
    bool           quiet;
} serve_settings;

#define AT(field) offsetof(serve_settings, field)
#define PATIENCE_NS UINT64_C(10000000000)

static const pli_opt rows[] = {
    { "model-file", PLI_OPT_TEXT, AT(model_file), NULL, "FILE",
      "the model, as train --out wrote it; SIGHUP reads it anew", 0, 0, "model" },
    { "port", PLI_OPT_I64, AT(opts.port), "8642", "P", "port of 127.0.0.1; 0: a free one, which it prints", 0, 65535,
      "server" },
    { "threads", PLI_OPT_I64, AT(opts.threads), NULL, "N", "threads that predict; default: one for each core", 1, 4096,
      "server" },
    { "max-body", PLI_OPT_BYTES, AT(opts.max_body), "64M", "BYTES",
      "the largest body of a request; a larger one is refused (413) while it comes; bodies together may take 4 times "
      "as much", 1024, 1e12, "server" },
    { "queue", PLI_OPT_I64, AT(opts.queue), "4096", "N",
      "how many requests may wait; the answer to more is 503, come again", 1, 1e6, "server" },
    { "connections", PLI_OPT_I64, AT(opts.connections), "10000", "N",
      "how many connections may be open; more wait until one is closed", 1, 1e6, "server" },
    { "idle-timeout", PLI_OPT_DURATION, AT(opts.idle_ns), "30s", "TIME",
      "a connection on which nothing moves for so long is closed; a body may take twice as long", 1, 1e6, "server" },
    { "quiet", PLI_OPT_FLAG, AT(quiet), NULL, NULL, "print only errors", 0, 0, "server" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* --- signals ------------------------------------------------------------------------------------------------------ */

static const int handled[] = { SIGINT, SIGTERM, SIGHUP };
static plait_status take_signals(int pipe_out[2], plait_error *err) {
    PLI_TRY(pli_signal_pipe_open(pipe_out, err));
    pli_signal_pipe_take(pipe_out[1], handled, sizeof handled / sizeof *handled);
    signal(SIGPIPE, SIG_IGN); /* a client that leaves is none of the server's troubles */
    return PLAIT_OK;
}

static int next_signal(int fd) {
    pli_signal came = { .number = 0 };
    while (!pli_signal_pipe_next(fd, &came) && errno == EINTR) {}
    return came.number != 0 ? came.number : SIGTERM;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static void reload(pli_serve *serve, const serve_settings *set, pli_talk *talk) {
    plait_error err = { .rank = -1 };
    pli_served *served = NULL;
    if (pli_serve_load(set->model_file, &served, &err) < 0) {
        pli_serve_reload_failed(serve);
        pli_talk_tell(talk, "SIGHUP: the old model stays, because the new one cannot be used: %s", err.text);
        return;
    }
    pli_talk_say(talk, "SIGHUP: now the model %s with the hash %.12s answers", plait_model_name(served->model),
                 served->hash);
    pli_serve_put(serve, served);
}

/* The server listens before the model is there, so that /healthz tells that it is being read. */
static plait_status serve_until_asked(const serve_settings *set, int fd, pli_talk *talk, plait_error *err) {
    pli_serve   serve;
    pli_served *served = NULL;
    PLI_TRY(pli_serve_open(&set->opts, &serve, err));
    plait_status status = pli_serve_load(set->model_file, &served, err);
    if (status < 0) {
        pli_serve_close(&serve, 0);
        return status;
    }
    pli_serve_put(&serve, served);
    pli_talk_tell(talk, "serving %s on http://127.0.0.1:%d", set->model_file, (int)pli_serve_port(&serve));
    int number = next_signal(fd);
    for (; number == SIGHUP; number = next_signal(fd)) reload(&serve, set, talk);
    const int64_t left = pli_serve_close(&serve, PATIENCE_NS);
    pli_talk_say(talk, "%s: the server has ended%s", number == SIGINT ? "SIGINT" : "SIGTERM",
                 left > 0 ? "; some requests had not come whole within 10 seconds"
                      : ", and every request has its answer");
    return PLAIT_OK;
}

static int serve(int argc, char *const *argv) {
    serve_settings set = { 0 };
    pli_opts      *opts = NULL;
    plait_error    err = { .rank = -1 };
    pli_talk       talk;
    int            code = PLI_EXIT_USAGE, pipe_of[2] = { -1, -1 };
    if (!pli_cli_read(&pli_command_serve, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.model_file == NULL) {
        pli_cli_usage("serve: no model; name it with --model-file FILE");
    } else {
        if (set.opts.threads == 0) set.opts.threads = pli_cores();
        pli_talk_open(&talk, set.quiet);
        plait_status status = take_signals(pipe_of, &err);
        if (status >= 0) status = serve_until_asked(&set, pipe_of[0], &talk, &err);
        code = status < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
        pli_talk_close(&talk);
        for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) signal(handled[i], SIG_IGN);
        if (pipe_of[0] >= 0) close(pipe_of[0]);
        if (pipe_of[1] >= 0) close(pipe_of[1]);
    }
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_serve = {
    .name = "serve",
    .usage = "serve --model-file FILE [--port P]",
    .summary = "answer requests for predictions over HTTP on this machine",
    .details = "POST /predict takes rows as JSON (lists of numbers, or objects of column: value), as text/csv or as "
               "text/plain (LIBSVM), and answers what 'plait predict' prints for them; ?proba=1 asks for "
               "probabilities. GET /metrics has figures for Prometheus; GET /healthz is 200 once the model is there. "
               "It listens on 127.0.0.1 alone. SIGHUP reads the model file anew, without a lost request; SIGINT and "
               "SIGTERM answer what has come, and end.",
    .rows = rows,
    .run = serve,
};
