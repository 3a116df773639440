#include "cli/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/described.h"
#include "cli/signal_pipe.h"
#include "cli/verdict.h"
#include "watch/dashboard/dashboard.h"

#define PATIENCE_NS UINT64_C(1000000000) /* the time for ranks of other processes to say what they wait for */
#define GLANCE_NS   UINT64_C(250000000)  /* likewise for a dashboard, which asks again soon */

static const int handled[] = { SIGINT, SIGTERM, SIGUSR1, SIGUSR2 };
enum { HANDLED = sizeof handled / sizeof handled[0] };

static sigset_t set_of_handled(void) {
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < HANDLED; i++) sigaddset(&set, handled[i]);
    return set;
}

/* Ends the process by the signal itself, so that its parent sees the signal. */
static void end_now(int number) {
    sigset_t set = set_of_handled();
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(PLI_EXIT_SIGNAL + number);
}

/* One line for each rank of the job: what it waits for. NULL: no memory. */
static char *waits(pli_signals *s) {
    char *text = NULL;
    pthread_mutex_lock(&s->mutex);
    if (s->n == 0) {
        text = pli_strdup("no rank runs here at this moment\n");
    } else {
        size_t bytes = 1 + 512 * (size_t)plait_comm_size(s->comm[0]);
        text = pli_malloc(bytes);
        if (text != NULL) plait_comm_doctor(s->comm[0], PATIENCE_NS, text, bytes);
    }
    pthread_mutex_unlock(&s->mutex);
    return text;
}

/* One line for each rank's part of each table. NULL: no memory. */
static char *tables(pli_signals *s) {
    pli_text text = { 0 };
    pthread_mutex_lock(&s->mutex);
    if (s->n == 0) pli_text_add(&text, "no rank runs here at this moment\n");
    else pli_described_tell(s->comm[0], PATIENCE_NS, &text);
    pthread_mutex_unlock(&s->mutex);
    if (text.failed) pli_text_free(&text);
    return text.data;
}

char *pli_signals_sample(pli_signals *s) {
    pli_text text = { 0 };
    pthread_mutex_lock(&s->mutex);
    if (s->n > 0) pli_sample_tell(s->comm[0], GLANCE_NS, &text);
    pthread_mutex_unlock(&s->mutex);
    if (text.failed) pli_text_free(&text);
    return text.data;
}

/* The answer to `plait doctor`, or to a dashboard. NULL: no memory. */
static char *answer_to(pli_signals *s, pli_question question) {
    if (question == PLI_ASK_TABLES) return tables(s);
    if (question == PLI_ASK_WAITS) return waits(s);
    char *sample = pli_signals_sample(s);
    return sample != NULL ? sample : pli_strdup("{}");
}

static void tell_waits(pli_signals *s) {
    char *text = waits(s), *rest = NULL;
    for (char *line = text == NULL ? NULL : strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        pli_talk_tell(s->talk, "%s", line);
    pli_free(text);
}

static void answer(pli_signals *s) {
    int caller = pli_ask_accept(s->asked);
    if (caller < 0) return;
    char *text = answer_to(s, pli_ask_question(caller));
    pli_ask_answer(caller, text != NULL ? text : "out of memory\n");
    pli_free(text);
}

static const char *name_of(int number) {
    return number == SIGINT ? "SIGINT" : number == SIGTERM ? "SIGTERM" : "asked by the launcher";
}

/* Ends a run that has not begun to train, because what it waits for (a pipe, a disk) may never come. Other threads are
 * left as they are, since they have nothing to keep: no rank trains before all have their data. */
static void end_unbegun(pli_signals *s, const char *what) {
    pthread_mutex_lock(&s->mutex);
    if (!s->begun) {
        s->unbegun(s->user, what);
        pli_verdict_give(PLI_EXIT_INTERRUPTED);
        _exit(PLI_EXIT_INTERRUPTED);
    }
    pthread_mutex_unlock(&s->mutex);
}

static bool has_ended(pli_signals *s) {
    pthread_mutex_lock(&s->mutex);
    const bool ended = s->ended;
    pthread_mutex_unlock(&s->mutex);
    return ended;
}

static void stop(pli_signals *s, const pli_signal *came) {
    const int number = came->number;
    if (__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
        if (pli_stop_is_repeated(s->first_ns, came->came_ns)) end_now(number);
        return;
    }
    s->first_ns = came->came_ns;
    __atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
    if (has_ended(s)) return;
    pli_verdict_asked();
    end_unbegun(s, name_of(number));
    if (!s->talk->quiet)
        pli_talk_tell_once(s->talk, "%s: the run ends after this clock; a second signal, at least one second from now, "
                                    "ends it at once",
                           name_of(number));
}

static void *serve(void *user) {
    pli_signals *s = user;
    sigset_t     set = set_of_handled();
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    for (;;) {
        pli_signal    came = { .number = 0 };
        struct pollfd ready[] = { { .fd = s->pipe[0], .events = POLLIN }, { .fd = s->asked, .events = POLLIN } };
        if (poll(ready, 2, -1) < 0 && errno != EINTR) return NULL;
        if (ready[1].revents & POLLIN) answer(s);
        if (ready[0].revents == 0) continue;
        if (!pli_signal_pipe_next(s->pipe[0], &came) && errno == EINTR) continue;
        if (came.number == 0) return NULL;
        if (came.number == SIGUSR1) tell_waits(s);
        else stop(s, &came);
    }
}

plait_status pli_signals_open(pli_signals *signals, pli_talk *talk, void (*unbegun)(void *user, const char *what),
                              void *user, plait_error *err) {
    *signals = (pli_signals){ .talk = talk, .unbegun = unbegun, .user = user };
    sigset_t set = set_of_handled();
    PLI_TRY(pli_signal_pipe_open(signals->pipe, err));
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_mutex_init(&signals->mutex, NULL);
    signals->asked = pli_ask_listen();
    int errnum = pthread_create(&signals->thread, NULL, serve, signals);
    if (errnum != 0) {
        pthread_mutex_destroy(&signals->mutex);
        if (signals->asked >= 0) close(signals->asked);
        close(signals->pipe[0]);
        close(signals->pipe[1]);
        return pli_fail_errno(err, errnum, "the thread that takes signals cannot be started");
    }
    /* SIGINT, too, if a shell ignores it: a user who sends it by hand means it. */
    pli_signal_pipe_take(signals->pipe[1], handled, HANDLED);
    return PLAIT_OK;
}

void pli_signals_close(pli_signals *s) {
    for (int i = 0; i < HANDLED; i++)
        signal(handled[i], handled[i] == SIGUSR1 || handled[i] == SIGUSR2 ? SIG_IGN : SIG_DFL);
    pli_signal_pipe_leave(s->pipe[1]);
    pthread_join(s->thread, NULL);
    if (s->asked >= 0) close(s->asked);
    close(s->pipe[0]);
    close(s->pipe[1]);
    pthread_mutex_destroy(&s->mutex);
    pli_free(s->comm);
}

void pli_signals_begun(pli_signals *s) {
    pthread_mutex_lock(&s->mutex);
    s->begun = true;
    pthread_mutex_unlock(&s->mutex);
}

void pli_signals_ended(pli_signals *s) {
    pthread_mutex_lock(&s->mutex);
    s->ended = true;
    pthread_mutex_unlock(&s->mutex);
}

void pli_signals_enter(pli_signals *s, plait_comm *comm) {
    pthread_mutex_lock(&s->mutex);
    void *list = s->comm;
    if (pli_grow(&list, &s->capacity, s->n + 1, sizeof(plait_comm *))) {
        s->comm = list;
        s->comm[s->n++] = comm;
    }
    pthread_mutex_unlock(&s->mutex);
}

void pli_signals_leave(pli_signals *s, plait_comm *comm) {
    pthread_mutex_lock(&s->mutex);
    for (int64_t i = 0; i < s->n; i++) {
        if (s->comm[i] == comm) s->comm[i--] = s->comm[--s->n];
    }
    pthread_mutex_unlock(&s->mutex);
}
