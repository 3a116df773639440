/* launch's end of the link: takes the processes' lines, and notes whose connection ends. See link.h. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/dashboard/host.h"
#include "cli/dashboard/link.h"

#define PATIENCE_NS UINT64_C(2000000000)
enum { LINE = 1 << 16, BACKLOG = 128 };

typedef struct caller {
    int     fd;
    int32_t pid, rank; /* rank -1: it has not said yet */
} caller;

struct pli_dash_hub {
    pli_dash       *dash;
    int             listening, end; /* end: an event that ends the thread */
    pthread_t       thread;
    pthread_mutex_t mutex; /* guards what follows, which the thread alone changes */
    caller         *caller; /* [n] */
    int64_t         n, capacity;
    int32_t         answers; /* the process that has answered last; 0: none. The asker's */
    char            line[LINE]; /* the thread's */
};

/* --- the thread --------------------------------------------------------------------------------------------------- */

static void take_caller(pli_dash_hub *h) {
    struct ucred peer;
    socklen_t    bytes = sizeof peer;
    const int    fd = accept4(h->listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    const bool mine = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
    pthread_mutex_lock(&h->mutex);
    const bool kept = mine && pli_grow((void **)&h->caller, &h->capacity, h->n + 1, sizeof *h->caller);
    if (kept) h->caller[h->n++] = (caller){ .fd = fd, .pid = (int32_t)peer.pid, .rank = -1 };
    pthread_mutex_unlock(&h->mutex);
    if (!kept) close(fd);
}

/* The caller's own line "start" says which rank it is. */
static void find_rank(caller *c, const char *line, size_t bytes) {
    json_t       *value = c->rank < 0 ? pli_json_read(line, bytes, NULL) : NULL;
    const json_t *rank = json_object_get(value, "rank");
    if (pli_is(pli_json_text_of(value, "event"), "start") && json_is_integer(rank) &&
        json_integer_value(json_object_get(value, "pid")) == c->pid)
        c->rank = (int32_t)json_integer_value(rank);
    json_decref(value);
}

static void drop(pli_dash_hub *h, int64_t i) {
    const caller c = h->caller[i];
    pthread_mutex_lock(&h->mutex);
    h->caller[i] = h->caller[--h->n];
    pthread_mutex_unlock(&h->mutex);
    close(c.fd);
    if (c.rank >= 0) pli_dash_gone(h->dash, c.rank);
}

static void hear(pli_dash_hub *h, int64_t i) {
    ssize_t n;
    do n = recv(h->caller[i].fd, h->line, sizeof h->line, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        drop(h, i);
    } else if (n > 0) {
        pthread_mutex_lock(&h->mutex);
        find_rank(&h->caller[i], h->line, (size_t)n);
        pthread_mutex_unlock(&h->mutex);
        pli_dash_line(h->dash, h->line, (size_t)n);
    }
}

static void *listen_to_all(void *user) {
    pli_dash_hub  *h = user;
    struct pollfd *ready = NULL;
    int64_t        room = 0;
    for (;;) {
        const int64_t n = h->n;
        void         *list = ready;
        if (!pli_grow(&list, &room, n + 2, sizeof *ready)) break;
        ready = list;
        ready[0] = (struct pollfd){ .fd = h->end, .events = POLLIN };
        ready[1] = (struct pollfd){ .fd = h->listening, .events = POLLIN };
        for (int64_t i = 0; i < n; i++) ready[i + 2] = (struct pollfd){ .fd = h->caller[i].fd, .events = POLLIN };
        if (poll(ready, (nfds_t)n + 2, -1) < 0 && errno != EINTR) break;
        for (int64_t i = n - 1; i >= 0; i--) /* backwards, since one that goes is replaced by the last */
            if (ready[i + 2].revents != 0) hear(h, i);
        if (ready[0].revents != 0) break;
        if (ready[1].revents != 0) take_caller(h);
    }
    pli_free(ready);
    return NULL;
}

/* --- for launch --------------------------------------------------------------------------------------------------- */

static plait_status listen_at(const char *name, int *fd_out, plait_error *err) {
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const int          fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(address.sun_path + 1, name, strlen(name));
    if (fd >= 0 &&
        bind(fd, (struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0 &&
        listen(fd, BACKLOG) == 0) {
        *fd_out = fd;
        return PLAIT_OK;
    }
    const int errnum = errno;
    if (fd >= 0) close(fd);
    return pli_fail_errno(err, errnum, "dashboard: no socket for the ranks");
}

static plait_status start(pli_dash_hub *h, plait_error *err) {
    char name[64], token[PLI_DASH_TOKEN];
    PLI_TRY(pli_dash_token(token, err));
    snprintf(name, sizeof name, "plait-dashboard-%d-%.16s", (int)pli_pid(), token);
    PLI_TRY(listen_at(name, &h->listening, err));
    h->end = eventfd(0, EFD_CLOEXEC);
    if (h->end < 0 || setenv(pli_dash_variable, name, 1) != 0)
        return pli_fail_errno(err, errno, "dashboard: no memory for the link to the ranks");
    const int errnum = pthread_create(&h->thread, NULL, listen_to_all, h);
    return errnum == 0 ? PLAIT_OK : pli_fail_errno(err, errnum, "dashboard: a thread cannot be started");
}

static void free_hub(pli_dash_hub *h) {
    for (int64_t i = 0; i < h->n; i++) close(h->caller[i].fd);
    if (h->listening >= 0) close(h->listening);
    if (h->end >= 0) close(h->end);
    pthread_mutex_destroy(&h->mutex);
    pli_free(h->caller);
    pli_free(h);
}

plait_status pli_dash_hub_open(pli_dash *dash, pli_dash_hub **hub_out, plait_error *err) {
    pli_dash_hub *h = pli_calloc(1, sizeof *h);
    if (h == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a dashboard");
    h->dash = dash;
    h->listening = h->end = -1;
    pthread_mutex_init(&h->mutex, NULL);
    const plait_status status = start(h, err);
    if (status < 0) free_hub(h);
    else *hub_out = h;
    return status;
}

/* The process of the lowest rank above `above`; 0: none. */
static int32_t next_pid(pli_dash_hub *h, int32_t *above) {
    int32_t pid = 0, best = INT32_MAX;
    pthread_mutex_lock(&h->mutex);
    for (int64_t i = 0; i < h->n; i++) {
        if (h->caller[i].rank <= *above || h->caller[i].rank >= best) continue;
        best = h->caller[i].rank;
        pid = h->caller[i].pid;
    }
    pthread_mutex_unlock(&h->mutex);
    *above = best;
    return pid;
}

/* NULL: it does not answer. */
static char *ask(pli_dash_hub *h, int32_t pid) {
    pli_text    answer = { 0 };
    plait_error err = { .rank = -1 };
    const bool  good = pli_ask(pid, PLI_ASK_SAMPLE, PATIENCE_NS, &answer, &err) >= 0;
    h->answers = good ? pid : 0;
    if (!good) pli_text_free(&answer);
    return answer.data;
}

/* A process that is stopped costs time, so one that has answered is asked again. */
char *pli_dash_hub_ask(void *user) {
    pli_dash_hub *h = user;
    enum { ASKED = 3 };
    int32_t above = -1, pid;
    char   *sample = h->answers != 0 ? ask(h, h->answers) : NULL;
    for (int32_t asked = 0; sample == NULL && asked < ASKED && (pid = next_pid(h, &above)) != 0; asked++)
        sample = ask(h, pid);
    return sample;
}

void pli_dash_hub_close(pli_dash_hub **hub) {
    pli_dash_hub  *h = *hub;
    const uint64_t one = 1;
    if (h == NULL) return;
    *hub = NULL;
    while (write(h->end, &one, sizeof one) < 0 && errno == EINTR) {}
    pthread_join(h->thread, NULL);
    unsetenv(pli_dash_variable);
    free_hub(h);
}
