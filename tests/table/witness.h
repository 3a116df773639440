/* witness.h - an event log of a test's run, kept in memory, and the audit of it at the end. PLAIT_EVENTS=file keeps the
 * log. */
#ifndef PLI_TESTS_TABLE_WITNESS_H
#define PLI_TESTS_TABLE_WITNESS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "watch/audit/audit.h"

typedef struct witness {
    int           fd;
    char          path[32];
    pli_eventlog *log;
} witness;

/** now NULL: by the clock. */
static inline bool witness_open(witness *of, int32_t ranks, uint64_t (*now)(void *user), void *user) {
    const char *keep = getenv("PLAIT_EVENTS");
    of->fd = keep == NULL ? memfd_create("events", 0) : open(keep, O_CREAT | O_TRUNC | O_RDWR, 0644);
    snprintf(of->path, sizeof of->path, "/proc/self/fd/%d", of->fd);
    return pli_eventlog_open(of->path, ranks, "schedule", now, user, &of->log, NULL) == PLAIT_OK;
}

static inline const pli_event_sink *witness_sink(const witness *of) { return pli_eventlog_sink(of->log); }

/** whole: all ranks came to their end, or died. true: nothing is refuted, what is whole is proven; else why [bytes]. */
static inline bool witness_close(witness *of, bool whole, char *why, size_t bytes) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_error  err = { 0 };
    const char  *path = of->path;
    why[0] = '\0';
    if (pli_eventlog_close(&of->log, &err) < 0 || pli_logfile_open(&path, 1, &file, &err) < 0 ||
        pli_audit_run(file, NULL, &audit, &err) < 0) {
        snprintf(why, bytes, "%s", err.text);
    } else {
        const pli_audit_violation *first = pli_audit_first(audit);
        pli_audit_verdict          verdict = pli_audit_result(audit);
        if (first != NULL)
            snprintf(why, bytes, "%s", first->text);
        else if (whole && verdict != PLI_AUDIT_PROVEN && verdict != PLI_AUDIT_EMPTY)
            snprintf(why, bytes, "a whole log is called cut");
    }
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    close(of->fd);
    return why[0] == '\0';
}

/** The same of a seeded schedule, whose failure prints what replays it. judges: the audit alone does, and says no by
 *  exit code 4. Needs cmocka.h before. */
static inline void witness_judge(witness *of, bool whole, uint64_t seed, bool judges) {
    char why[640];
    if (witness_close(of, whole, why, sizeof why)) return;
    if (!judges)
        fail_msg("the audit: %s\nreplay: PLAIT_SEED=%llu %s", why, (unsigned long long)seed, program_invocation_name);
    printf("PLAIT_SEED=%llu %s\n", (unsigned long long)seed, why);
    fflush(stdout);
    _exit(4);
}

#endif
