/* When mpirun cannot reach a machine, it writes a page of general advice to standard output, ssh writes a line to
 * standard error, and mpirun ends with 255. Without ssh it writes another page, and ends with 250. Then no rank has
 * been started, since mpirun first starts a daemon on each machine. So as long as nothing else has come, text that
 * looks like mpirun's own is held back: lines of ssh, and pages between two rules of dashes. At the first other byte
 * the held text is passed on, and from then on all text goes through as it comes. */
#include "comm/launch_words.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

enum { STREAMS = 2, PIECE = 1 << 16, HELD_MAX = 1 << 16, LOOK_EVERY_MS = 100, RULE_MIN = 40 };

typedef struct pli_launch_stream stream;

static void put(int to, const char *data, size_t bytes) {
    for (ssize_t n; bytes > 0; data += n, bytes -= (size_t)n) {
        n = write(to, data, bytes);
        if (n < 0 && errno == EINTR) n = 0;
        if (n < 0) return; /* nobody reads it any more */
    }
}

static void pass_on(stream *s) {
    if (s->held.length > 0) put(s->to, s->held.data, s->held.length);
    pli_text_free(&s->held);
    s->through = true;
}

static bool is_rule(const char *line, size_t length) {
    size_t dashes = 0;
    while (dashes < length && line[dashes] == '-') dashes++;
    return length >= RULE_MIN && dashes == length;
}

/* Is the line ssh's, or the launcher's note on it: "[host:pid] plm:ssh: ..."? */
static bool is_of_ssh(const char *line, size_t length) {
    if (length >= 5 && memcmp(line, "ssh: ", 5) == 0) return true;
    return length > 0 && line[0] == '[' && memmem(line, length, "] plm:", 6) != NULL;
}

/* Can the text that has come so far be mpirun's own words? */
static bool is_mpiruns(const pli_text *text) {
    const char *at = text->data, *end = at + text->length;
    bool        in_page = false;
    while (at < end) {
        const char  *newline = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((newline != NULL ? newline : end) - at);
        if (newline == NULL) return in_page || strchr("-s[", *at) != NULL;
        if (is_rule(at, length)) in_page = !in_page;
        else if (!in_page && length > 0 && !is_of_ssh(at, length)) return false;
        at = newline + 1;
    }
    return true;
}

static void take(stream *s, const char *data, size_t bytes) {
    if (s->through) {
        put(s->to, data, bytes);
        return;
    }
    pli_text_add_bytes(&s->held, data, bytes);
    if (s->held.failed || s->held.length > HELD_MAX || !is_mpiruns(&s->held)) pass_on(s);
}

/* Takes the bytes that have come; false: no more at the moment, or ever. */
static bool drain(stream *s) {
    char    data[PIECE];
    ssize_t n = read(s->pipe[0], data, sizeof data);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
    s->open = n > 0;
    if (n > 0) take(s, data, (size_t)n);
    return s->open;
}

/* Listens until both streams end. A process that ssh has left behind may keep them open; then it stops once mpirun
 * has ended and nothing more comes. */
static void *listen_to_all(void *user) {
    pli_launch_words *w = user;
    for (;;) {
        struct pollfd ready[STREAMS];
        for (int i = 0; i < STREAMS; i++)
            ready[i] = (struct pollfd){ .fd = w->stream[i].open ? w->stream[i].pipe[0] : -1, .events = POLLIN };
        if (!w->stream[0].open && !w->stream[1].open) return NULL;
        const bool over = atomic_load(&w->over) != 0;
        const int  any = poll(ready, STREAMS, LOOK_EVERY_MS);
        for (int i = 0; any > 0 && i < STREAMS; i++)
            if (ready[i].revents != 0) drain(&w->stream[i]);
        if (any <= 0 && over) return NULL;
    }
}

static void close_ends(pli_launch_words *w) {
    for (int i = 0; i < STREAMS; i++)
        for (int end = 0; end < 2; end++)
            if (w->stream[i].pipe[end] >= 0) close(w->stream[i].pipe[end]);
}

bool pli_launch_words_open(pli_launch_words *w) {
    sigset_t all, before;
    *w = (pli_launch_words){ .stream = { { .pipe = { -1, -1 }, .to = STDOUT_FILENO, .open = true },
                                         { .pipe = { -1, -1 }, .to = STDERR_FILENO, .open = true } } };
    bool good = pipe2(w->stream[0].pipe, O_CLOEXEC) == 0 && pipe2(w->stream[1].pipe, O_CLOEXEC) == 0;
    for (int i = 0; good && i < STREAMS; i++) good = fcntl(w->stream[i].pipe[0], F_SETFL, O_NONBLOCK) == 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the launcher's thread */
    good = good && pthread_create(&w->thread, NULL, listen_to_all, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!good) close_ends(w);
    return good;
}

void pli_launch_words_become(const pli_launch_words *w) {
    for (int i = 0; i < STREAMS; i++) dup2(w->stream[i].pipe[1], w->stream[i].to);
}

void pli_launch_words_begin(pli_launch_words *w) {
    for (int i = 0; i < STREAMS; i++) {
        close(w->stream[i].pipe[1]);
        w->stream[i].pipe[1] = -1;
    }
}

/* Copies to why the line of text that begins with `begin`, without its first `skip` bytes. false: there is no such
 * line. */
static bool copy_line(const pli_text *text, const char *begin, size_t skip, const char *before,
                      char why[PLI_LAUNCH_WHY]) {
    const char *at = text->data;
    while (at != NULL && strncmp(at, begin, strlen(begin)) != 0) {
        at = strchr(at, '\n');
        if (at != NULL) at++;
    }
    if (at == NULL) return false;
    at += skip;
    at += strspn(at, " ");
    snprintf(why, PLI_LAUNCH_WHY, "%s%.*s", before, (int)strcspn(at, "\r\n"), at);
    return true;
}

/* Has mpirun found no ssh to start daemons by? The page may come on either stream. */
static bool lacks_ssh(const pli_launch_words *w, char why[PLI_LAUNCH_WHY]) {
    for (int i = 0; i < STREAMS; i++) {
        const pli_text *page = &w->stream[i].held;
        if (w->stream[i].through || page->data == NULL) continue;
        if (strstr(page->data, "No available launching agents") == NULL) continue;
        snprintf(why, PLI_LAUNCH_WHY,
                 "mpirun finds no ssh, or not what PRTE_MCA_plm_ssh_agent names (apt-get install openssh-client)");
        return true;
    }
    return false;
}

static bool is_unreached(const pli_launch_words *w, char why[PLI_LAUNCH_WHY]) {
    if (lacks_ssh(w, why)) return true;
    static const char host[] = "  Remote host:";
    const pli_text   *page = &w->stream[0].held;
    if (w->stream[0].through || page->data == NULL || strstr(page->data, "daemon failed to report back") == NULL)
        return false;
    return (!w->stream[1].through && copy_line(&w->stream[1].held, "ssh: ", 0, "", why)) ||
           copy_line(page, host, sizeof host - 1, "no daemon of mpirun's came up on ", why);
}

bool pli_launch_words_close(pli_launch_words *w, int code, char why[PLI_LAUNCH_WHY]) {
    atomic_store(&w->over, 1);
    pthread_join(w->thread, NULL);
    const bool unreached = code != 0 && is_unreached(w, why);
    for (int i = 0; i < STREAMS; i++) {
        if (!unreached) pass_on(&w->stream[i]);
        pli_text_free(&w->stream[i].held);
    }
    close_ends(w);
    return unreached;
}
