/* A thread waits for the second, because the reading thread blocks in read, or in the opening of a pipe without a
 * writer. If no path is a pipe, there is no thread. */
#include "cli/waiting.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_S = 1 };

static void *watch(void *user) {
    pli_waiting    *w = user;
    struct timespec until;
    int             bad = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&w->mutex);
    while (!w->over && bad != ETIMEDOUT) bad = pthread_cond_timedwait(&w->changed, &w->mutex, &until);
    if (!w->over) pli_talk_say(w->talk, "waiting for more data from %s", w->names);
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static void add_name(const char *path, pli_text *names) {
    const char *comma = names->length > 0 ? ", " : "";
    if (strcmp(path, "-") != 0) pli_text_add(names, "%sthe pipe %s", comma, path);
    else pli_text_add(names, "%sthe standard input%s", comma, pli_is_terminal(0) ? " (Ctrl-D ends it)" : "");
}

/* Starts the thread, which receives no signals. false: there is none; then the command waits silently. */
static bool start(pli_waiting *w) {
    sigset_t           all, before;
    pthread_condattr_t by_clock;
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->changed, &by_clock);
    pthread_condattr_destroy(&by_clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&w->thread, NULL, watch, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) return true;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    return false;
}

void pli_waiting_begin(pli_waiting *w, pli_talk *talk, const char *const *paths, int64_t n) {
    pli_text names = { 0 };
    *w = (pli_waiting){ .talk = talk };
    for (int64_t i = 0; i < n && !talk->quiet; i++)
        if (paths[i] != NULL && pli_is_pipe(paths[i])) add_name(paths[i], &names);
    if (names.data == NULL || names.failed) {
        pli_text_free(&names);
        return;
    }
    w->names = names.data;
    if (start(w)) return;
    pli_free(w->names);
    w->names = NULL;
}

void pli_waiting_is_over(pli_waiting *w) {
    if (w->names == NULL) return;
    pthread_mutex_lock(&w->mutex);
    w->over = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->mutex);
}

void pli_waiting_end(pli_waiting *w) {
    if (w->names == NULL) return;
    pli_waiting_is_over(w);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    pli_free(w->names);
    w->names = NULL;
}
