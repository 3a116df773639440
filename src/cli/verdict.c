/* What the ranks themselves say of their end, for `plait launch`.
 *
 * A launcher's exit code does not tell how a job ended: Open MPI's mpirun may answer 0 for a lost job, and 1 for ranks
 * that have all ended with 2. So launch names a file in the environment, and each process of the program that ends by
 * itself adds a line with its exit code: one short append, which the system does whole. Ranks on another host cannot;
 * for them the launcher's code stands. A rank that has begun, was not asked to end and gave no code was lost: launch
 * names it. The same file tells which process was the first to say what is wrong with the
 * command, so that it is said once: before ranks have met there is no other way to agree who speaks. */
#include "cli/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static const char variable[] = "PLAIT_VERDICTS";

char *pli_verdicts_open(void) {
    const char *folder = pli_env("TMPDIR");
    char       *path = pli_format("%s/plait-launch-XXXXXX", folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    int         fd = path != NULL ? mkstemp(path) : -1;
    if (fd >= 0 && setenv(variable, path, 1) == 0) {
        close(fd);
        return path;
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    pli_free(path);
    return NULL;
}

enum { LARGEST = 1 << 20 };

/* A lost peer, or a stop that the launcher asked of the others, follows from another process's end. */
static bool is_consequence(int code) { return code == PLI_EXIT_PEERS || code == PLI_EXIT_INTERRUPTED; }

static int verdict_of(const char *lines) {
    int code = 0;
    for (const char *at = lines; at != NULL && *at != '\0';) {
        int said = (int)strtol(at, NULL, 10);
        if (code == 0 || (is_consequence(code) && said != 0 && !is_consequence(said))) code = said;
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return code;
}

/* Is there a line "WORD PID", or, word NULL, one of an exit code? */
static bool has_line(const char *lines, const char *word, long pid) {
    for (const char *at = lines; at != NULL && *at != '\0';) {
        const char *space = strchr(at, ' ');
        size_t      length = space != NULL ? (size_t)(space - at) : 0;
        bool        right = word != NULL ? length == strlen(word) && memcmp(at, word, length) == 0
                                         : length > 0 && strspn(at, "0123456789") == length;
        if (right && strtol(space, NULL, 10) == pid) return true;
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return false;
}

/* The rank of which nothing more was heard; -1: none, or several, since the launcher kills those that do not end in time. */
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

int pli_verdicts_close(char **path, int32_t *lost_out) {
    pli_text text = { 0 };
    int      code = 0;
    *lost_out = -1;
    if (*path == NULL) return 0;
    if (pli_read_whole(*path, LARGEST, &text, NULL) >= 0) {
        code = verdict_of(text.data);
        *lost_out = lost_of(text.data);
    }
    pli_text_free(&text);
    unlink(*path);
    unsetenv(variable);
    pli_free(*path);
    *path = NULL;
    return code;
}

static void append(const char *line) {
    const char *path = pli_env(variable);
    FILE       *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) return;
    fputs(line, file);
    fclose(file);
}

void pli_verdict_give(int code) {
    char line[48];
    snprintf(line, sizeof line, "%d %d\n", code, (int)pli_pid());
    append(line);
}

void pli_verdict_begun(int32_t rank) {
    char line[48];
    snprintf(line, sizeof line, "begun %d %d\n", (int)pli_pid(), (int)rank);
    append(line);
}

void pli_verdict_asked(void) {
    char line[48];
    snprintf(line, sizeof line, "asked %d\n", (int)pli_pid());
    append(line);
}

/* Adds "said HASH PID", which as an exit code reads as 0, and looks who was the first. */
bool pli_verdict_was_said(const char *line) {
    const char *path = pli_env(variable);
    FILE       *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) return false;
    char     mark[32], mine[64];
    pli_text text = { 0 };
    snprintf(mark, sizeof mark, "said %016" PRIx64 " ", pli_hash_bytes(line, strlen(line), 0));
    snprintf(mine, sizeof mine, "%s%d\n", mark, (int)pli_pid());
    fputs(mine, file);
    fclose(file);
    const char *first =
        pli_read_whole(path, LARGEST, &text, NULL) >= 0 && text.data != NULL ? strstr(text.data, mark) : NULL;
    bool said = first != NULL && strncmp(first, mine, strlen(mine)) != 0;
    pli_text_free(&text);
    return said;
}
