/* The ranks' own reports about their end, for `plait launch`.
 *
 * A launcher's exit code does not tell how a job ended: Open MPI's mpirun may return 0 for a lost job, and 1 for ranks
 * that have all ended with 2. So launch names a file in the environment, and each process of the program that ends by
 * itself appends a line with its exit code, in one short write, which the system does atomically. Ranks on another host
 * cannot; for them the launcher's code counts. A rank that is killed cannot either: its keeper writes the line
 * (keeper.c). The first line with a cause counts for the job, because consequences come later. The file also says which
 * process was the first to print an error in the command, so that it is printed once: before the ranks have met they
 * have no other way to agree. */
#include "cli/verdict.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "comm/tell_launch.h"

static const char prefix[] = "plait-launch-";

/* Removes files of launches that were killed, when no process can be using them. Their names say whose they are. */
static void sweep(const char *folder) {
    DIR *all = opendir(folder);
    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0) continue;
        char      *rest = NULL;
        const long pid = strtol(entry->d_name + sizeof prefix - 1, &rest, 10);
        if (pid > 0 && pid <= INT32_MAX && *rest == '-') pli_remove_left_over(dirfd(all), entry->d_name, (int32_t)pid);
    }
    if (all != NULL) closedir(all);
}

/* Makes a new file at path, which ends in XXXXXX, and locks it: the lock tells a launch in another container that this
 * one lives. Returns -1 if there is no file, or if another launch has just removed it. If the file system has no locks,
 * no launch removes the file. */
static int create_locked(char *path) {
    struct stat info;
    int         fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0 || (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK)) return fd;
    if (fstat(fd, &info) == 0 && info.st_nlink > 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    close(fd);
    return -1;
}

void pli_verdicts_open(pli_verdict_file *file) {
    const char *given = pli_env("TMPDIR"), *folder = given != NULL && given[0] != '\0' ? given : "/tmp";
    *file = (pli_verdict_file){ .fd = -1 };
    sweep(folder);
    char *path = pli_format("%s/%s%d-XXXXXX", folder, prefix, (int)pli_pid());
    int   fd = path != NULL ? create_locked(path) : -1;
    if (fd >= 0 && setenv(pli_launch_variable, path, 1) == 0) {
        *file = (pli_verdict_file){ .path = path, .fd = fd };
        return;
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    pli_free(path);
}

enum { LARGEST = 1 << 20 };

/* Does the code follow from another process's end? A lost peer does, and a stop that the launcher has requested. */
static bool is_consequence(int code) { return code == PLI_EXIT_PEERS || code == PLI_EXIT_INTERRUPTED; }

/* The beginning of the next line; NULL: there is none. */
static const char *next_line(const char *at) {
    const char *end = strchr(at, '\n');
    return end != NULL && end[1] != '\0' ? end + 1 : NULL;
}

static int verdict_of(const char *lines) {
    int code = 0;
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        int said = (int)strtol(at, NULL, 10);
        if (code == 0 || (is_consequence(code) && said != 0 && !is_consequence(said))) code = said;
    }
    return code;
}

/* Is there a line "WORD PID", or, if word is NULL, a line with an exit code? */
static bool has_line(const char *lines, const char *word, long pid) {
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        const char *space = strchr(at, ' ');
        size_t      length = space != NULL ? (size_t)(space - at) : 0;
        bool        right = word != NULL ? length == strlen(word) && memcmp(at, word, length) == 0
                                         : length > 0 && strspn(at, "0123456789") == length;
        if (right && strtol(space, NULL, 10) == pid) return true;
    }
    return false;
}

/* The rank that has not reported its end; -1: none, or several, because the launcher kills those that do not end in
 * time. For ranks without a keeper. */
static int32_t lost_of(const char *lines) {
    int32_t lost = -1;
    for (const char *at = lines; (at = at != NULL ? strstr(at, "begun ") : NULL) != NULL; at++) {
        char *rest = NULL;
        long  pid = strtol(at + strlen("begun "), &rest, 10), rank = strtol(rest, NULL, 10);
        if (has_line(lines, "asked", pid) || has_line(lines, NULL, pid)) continue;
        if (lost >= 0) return -1;
        lost = (int32_t)rank;
    }
    return lost;
}

static void copy_line(char *to, size_t bytes, const char *from) {
    size_t n = strcspn(from, "\n");
    if (n >= bytes) n = bytes - 1;
    memcpy(to, from, n);
    to[n] = '\0';
}

/* Reads "lost PID RANK SIGNAL HOST TEXT" or "why PID RANK TEXT"; false: the line is neither. */
static bool read_cause(const char *line, pli_cause *cause) {
    char *rest = NULL;
    bool  lost = strncmp(line, "lost ", 5) == 0;
    if (!lost && strncmp(line, "why ", 4) != 0) return false;
    *cause = (pli_cause){ 0 };
    (void)strtol(line + (lost ? 5 : 4), &rest, 10);
    cause->rank = (int32_t)strtol(rest, &rest, 10);
    if (lost) {
        cause->signal = (int)strtol(rest, &rest, 10);
        size_t n = 0;
        rest += *rest == ' ';
        while (rest[n] > ' ' && n + 1 < sizeof cause->host) n++;
        memcpy(cause->host, rest, n);
        rest += n;
    }
    copy_line(cause->text, sizeof cause->text, rest + (*rest == ' '));
    return true;
}

/* Reads at most `room` numbers from the rest of a line; returns how many. */
static int read_numbers(const char *at, long *value, int room) {
    int n = 0;
    while (n < room && (*at == '-' || (*at >= '0' && *at <= '9'))) {
        char *rest = NULL;
        long  number = strtol(at, &rest, 10);
        if (*rest != ' ' && *rest != '\n' && *rest != '\0') break;
        value[n++] = number;
        if (*rest != ' ') break;
        at = rest + 1;
    }
    return n;
}

/* The same for a line that begins with word. */
static int read_line(const char *at, const char *word, long *value, int room) {
    const size_t length = strlen(word);
    return strncmp(at, word, length) == 0 && at[length] == ' ' ? read_numbers(at + length + 1, value, room) : 0;
}

/* A rank that has begun, and its end. If a script has started the program, its process is not the one that the keeper
 * knows; the rank is the same. */
typedef struct fate {
    bool ended, well, missed; /* missed: the others went on to the end without it */
} fate;

static fate fate_of(const char *lines, long of_pid, long of_rank) {
    fate f = { 0 };
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        long coded[3] = { 0, 0, -1 }, lost[2] = { 0, -1 }, without[2]; /* CODE PID [RANK]; PID RANK */
        bool is_coded = read_numbers(at, coded, 3) >= 2, is_lost = read_line(at, "lost", lost, 2) == 2;
        bool is_its = is_coded ? coded[1] == of_pid || coded[2] == of_rank : lost[0] == of_pid || lost[1] == of_rank;
        if ((is_coded || is_lost) && is_its) {
            f.well = is_coded && coded[0] == PLI_EXIT_DONE && (f.well || !f.ended);
            f.ended = true;
        }
        f.missed = f.missed || (read_line(at, "without", without, 2) == 2 && without[1] == of_rank);
    }
    return f;
}

/* Counts the ranks that have begun and those that have ended; finds whether all have succeeded, except ranks without
 * which the others went on. */
static void count_ranks(const char *lines, pli_verdicts *v) {
    bool well = true, missed = false;
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        long begun[2]; /* PID RANK */
        if (read_line(at, "begun", begun, 2) != 2) continue;
        const fate f = fate_of(lines, begun[0], begun[1]);
        v->begun++;
        v->ended += f.ended;
        well = well && (f.well || f.missed);
        missed = missed || f.missed;
    }
    v->survived = v->survived || (well && missed);
    v->stopped = missed && v->code == PLI_EXIT_INTERRUPTED;
}

static void count_lines(const char *lines, pli_verdicts *v) {
    bool found = false;
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        v->survived = v->survived || strncmp(at, "survived", 8) == 0;
        v->died = v->died || strncmp(at, "lost ", 5) == 0;
        v->failed = v->failed || strtol(at, NULL, 10) != 0;
        if (!found) found = read_cause(at, &v->cause);
    }
    count_ranks(lines, v);
    if (!found) v->cause = (pli_cause){ .rank = -1 };
    if (v->cause.rank < 0 && v->cause.signal == 0 && v->cause.text[0] == '\0') v->cause.rank = lost_of(lines);
}

void pli_verdicts_read(const char *path, pli_verdicts *v) {
    pli_text text = { 0 };
    *v = (pli_verdicts){ .cause = { .rank = -1 } };
    if (path != NULL && pli_read_whole(path, LARGEST, &text, NULL) >= 0 && text.data != NULL) {
        v->code = verdict_of(text.data);
        count_lines(text.data, v);
    }
    pli_text_free(&text);
}

void pli_verdicts_close(pli_verdict_file *file) {
    if (file->path == NULL) return;
    unlink(file->path);
    close(file->fd);
    unsetenv(pli_launch_variable);
    pli_free(file->path);
    *file = (pli_verdict_file){ .fd = -1 };
}

void pli_verdict_why(int32_t rank, const char *text) {
    pli_tell_launch("why %d %d %.400s\n", (int)pli_pid(), (int)rank, text);
}

void pli_verdict_give(int code) { pli_tell_launch("%d %d\n", code, (int)pli_pid()); }

void pli_verdict_survived(void) { pli_tell_launch("survived\n"); }

void pli_verdict_asked(void) { pli_tell_launch("asked %d\n", (int)pli_pid()); }

/* Was this rank taken for lost? Its program may be another process than the keeper's child. */
static bool is_outcast(const char *lines, long pid, long rank) {
    for (const char *at = lines; at != NULL; at = next_line(at)) {
        long lost[2];
        if (read_line(at, "lost", lost, 2) == 2 && (lost[0] == pid || lost[1] == rank)) return true;
    }
    return false;
}

int pli_verdict_keep(int32_t rank, int32_t pid, int code) {
    pli_text    text = { 0 };
    const char *path = pli_env(pli_launch_variable);
    bool        read = path != NULL && pli_read_whole(path, LARGEST, &text, NULL) >= 0 && text.data != NULL;
    bool        outcast = read && is_outcast(text.data, pid, rank);
    if (!outcast && !(read && has_line(text.data, NULL, pid))) pli_tell_launch("%d %d %d\n", code, (int)pid, (int)rank);
    pli_text_free(&text);
    return outcast ? PLI_EXIT_DONE : code;
}

/* Appends "said HASH PID", which as an exit code would read as 0, and checks which process was the first. */
bool pli_verdict_was_said(const char *line) {
    const char *path = pli_env(pli_launch_variable);
    if (path == NULL) return false;
    char     mark[32], mine[64];
    pli_text text = { 0 };
    snprintf(mark, sizeof mark, "said %016" PRIx64 " ", pli_hash_bytes(line, strlen(line), 0));
    snprintf(mine, sizeof mine, "%s%d\n", mark, (int)pli_pid());
    pli_tell_launch("%s", mine);
    const char *first =
        pli_read_whole(path, LARGEST, &text, NULL) >= 0 && text.data != NULL ? strstr(text.data, mark) : NULL;
    bool said = first != NULL && strncmp(first, mine, strlen(mine)) != 0;
    pli_text_free(&text);
    return said;
}
