/* What the ranks themselves say of their end, for `plait launch`.
 *
 * A launcher's exit code does not tell how a job ended: Open MPI's mpirun may answer 0 for a lost job, and 1 for ranks
 * that have all ended with 2. So launch names a file in the environment, and each process of the program that ends by
 * itself adds a line with its exit code: one short append, which the system does whole. Ranks on another host cannot;
 * for them the launcher's code stands. The same file tells which process was the first to say what is wrong with the
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

int pli_verdicts_close(char **path) {
    pli_text text = { 0 };
    int      code = 0;
    if (*path == NULL) return 0;
    if (pli_read_whole(*path, LARGEST, &text, NULL) >= 0) code = verdict_of(text.data);
    pli_text_free(&text);
    unlink(*path);
    unsetenv(variable);
    pli_free(*path);
    *path = NULL;
    return code;
}

void pli_verdict_give(int code) {
    const char *path = pli_env(variable);
    FILE       *file = path != NULL ? fopen(path, "a") : NULL;
    if (file == NULL) return;
    fprintf(file, "%d\n", code);
    fclose(file);
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
