#include "cli/ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REFUSED "\1" /* first byte of the answer to a caller who may not ask */

static socklen_t address_of(int64_t pid, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int n = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "plait-waits-%lld", (long long)pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static bool peer_of(int fd, struct ucred *peer) {
    socklen_t bytes = sizeof *peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &bytes) == 0;
}

int pli_ask_listen(void) {
    struct sockaddr_un address;
    socklen_t          bytes = address_of(getpid(), &address);
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (bind(fd, (struct sockaddr *)&address, bytes) == 0 && listen(fd, 4) == 0) return fd;
    close(fd);
    return -1;
}

pli_question pli_ask_question(int caller) {
    char          letter = PLI_ASK_WAITS;
    struct pollfd ready = { .fd = caller, .events = POLLIN };
    if (poll(&ready, 1, 200) <= 0 || recv(caller, &letter, 1, MSG_DONTWAIT) != 1) return PLI_ASK_WAITS;
    return letter == PLI_ASK_TABLES || letter == PLI_ASK_SAMPLE ? (pli_question)letter : PLI_ASK_WAITS;
}

int pli_ask_accept(int listening) {
    struct ucred peer;
    int          fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return -1;
    if (peer_of(fd, &peer) && (peer.uid == geteuid() || peer.uid == 0)) return fd;
    (void)pli_ask_question(fd); /* an end that is closed with something unread loses what it has sent */
    pli_ask_answer(fd, REFUSED);
    return -1;
}

/* Waits only a short time for a caller who does not read, because this thread also handles signals. */
void pli_ask_answer(int caller, const char *text) {
    size_t         left = strlen(text);
    struct timeval patience = { .tv_sec = 2 };
    setsockopt(caller, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    while (left > 0) {
        ssize_t n = send(caller, text, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        text += n;
        left -= (size_t)n;
    }
    close(caller);
}

/* --- the other end ------------------------------------------------------------------------------------------------ */

/* The letter of the process's state, such as 'T' for stopped; '?': not known. */
static char state_of(int64_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) return '?';
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end != NULL && end[1] == ' ' ? end[2] : '?';
}

static plait_status cannot_ask(int64_t pid, int errnum, plait_error *err) {
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return pli_fail(err, PLAIT_EINVAL, "there is no process %lld", (long long)pid);
    if (errnum == ECONNREFUSED || errnum == ENOENT)
        return pli_fail(err, PLAIT_EINVAL,
                        "process %lld is not a running plait train; under a launcher name one of the ranks that it has "
                        "started ('pgrep plait' lists them)",
                        (long long)pid);
    return pli_fail_errno(err, errnum, "process %lld cannot be reached", (long long)pid);
}

static plait_status no_answer(int64_t pid, uint64_t timeout_ns, plait_error *err) {
    char state = state_of(pid);
    if (state == 'T' || state == 't')
        return pli_fail(err, PLAIT_ETIMEOUT,
                        "process %lld is stopped and cannot answer; 'kill -CONT %lld' lets it go on", (long long)pid,
                        (long long)pid);
    return pli_fail(err, PLAIT_ETIMEOUT, "no sign of life of process %lld within %.3g s", (long long)pid,
                    (double)timeout_ns * 1e-9);
}

static plait_status read_answer(int fd, int64_t pid, uint64_t timeout_ns, pli_text *answer, plait_error *err) {
    uint64_t until_ns = pli_now_ns() + timeout_ns;
    for (;;) {
        char          text[4096];
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        uint64_t      now_ns = pli_now_ns();
        int           any = now_ns < until_ns ? poll(&ready, 1, (int)((until_ns - now_ns) / 1000000) + 1) : 0;
        if (any < 0 && errno == EINTR) continue;
        if (any <= 0) return no_answer(pid, timeout_ns, err);
        ssize_t n = recv(fd, text, sizeof text - 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pli_fail_errno(err, errno, "the answer of process %lld", (long long)pid);
        if (n == 0) break;
        text[n] = '\0';
        pli_text_add(answer, "%s", text);
    }
    if (answer->failed) return pli_fail(err, PLAIT_ENOMEM, "no memory for an answer");
    if (answer->length == 0)
        return pli_fail(err, PLAIT_EIO, "process %lld closed the connection without an answer", (long long)pid);
    if (answer->data[0] != REFUSED[0]) return PLAIT_OK;
    pli_text_free(answer);
    return pli_fail(err, PLAIT_EREFUSED, "process %lld belongs to another user; ask as that user, or as root",
                    (long long)pid);
}

plait_status pli_ask(int64_t pid, pli_question question, uint64_t timeout_ns, pli_text *answer, plait_error *err) {
    const char         letter = (char)question;
    struct sockaddr_un address;
    struct ucred       peer;
    socklen_t          bytes = address_of(pid, &address);
    int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return pli_fail_errno(err, errno, "a socket cannot be opened");
    plait_status status;
    if (connect(fd, (struct sockaddr *)&address, bytes) != 0) {
        status = cannot_ask(pid, errno, err);
    } else if (!peer_of(fd, &peer) || peer.pid != (pid_t)pid) {
        status = pli_fail(err, PLAIT_EIO, "another process answers for process %lld", (long long)pid);
    } else if (send(fd, &letter, 1, MSG_NOSIGNAL) != 1 && errno != EPIPE && errno != ECONNRESET) {
        status = pli_fail_errno(err, errno, "process %lld cannot be asked", (long long)pid);
    } else {
        status = read_answer(fd, pid, timeout_ns, answer, err);
    }
    close(fd);
    return status;
}
