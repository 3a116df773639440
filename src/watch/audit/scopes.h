/* watch/audit/scopes.h - proves from an event log what a vertex program has read under its locks
 * (vertex/locks/locks.h).
 *
 * Two sides have logged it, apart from each other: the owner of a vertex each lock that it gave and got back, with the
 * version of the value, and a worker what each update has read and written, by version and digest of the value. The
 * order of a vertex's locks in its owner's log is the *lock order*. The audit proves
 *
 *     lock      an update reads no vertex of its scope without a lock of the mode that the scope promises: its own
 *               vertex, under full its neighbors too, to write; neighbors under edge to read
 *     beside    a lock has one writer, or readers
 *     order     the locks of a scope were taken in the order of the vertices' numbers, so nobody waits in a circle
 *     early     no lock was given back before the update had ended (where the owner is the worker itself)
 *     back      a lock is given back once, by who has it; when all are at rest nobody has one
 *     version   the value that was given is that of the last update before it by lock order
 *     stale     an update has read the version that was given with the lock
 *     value     ... and the value that the update had written that made the version; version 0: all read the same,
 *               after a death what the last good round has left
 *     lost      what an update has written is there when its lock comes back, and nothing else was
 *
 * A part of a log between two beginnings (SCOPES) is an *era*: after a death all begin anew. What was under way in an
 * era that a death has ended has never been, and its locks need not come back. */
#ifndef PLI_WATCH_SCOPES_H
#define PLI_WATCH_SCOPES_H

#include "watch/audit/audit.h"

typedef struct pli_scopes_proof {
    pli_audit_verdict verdict;
    bool    lacks;                        /* a file is cut whose rank nobody holds for dead: nothing is judged */
    int32_t scope;                        /* 0 vertex, 1 edge, 2 full: by which it was judged */
    int32_t workers;
    int64_t updates, reads, writes, locks; /* reads: vertices that updates have read */
    int64_t rounds, deaths;               /* deaths: how often all began anew */
    int64_t violations;
    char    program[64];
    pli_audit_violation first;            /* the first in time; row is the vertex's id */
    int32_t other;                        /* the other worker of it; -1: there is none */
} pli_scopes_proof;

/** as: "vertex", "edge", "full"; NULL: by the run's own scope. Errors: ENAME another word; EFORMAT the log is garbled,
 *  or ranks tell of different programs; ENOMEM. */
plait_status pli_scopes_prove(const pli_logfile *file, const char *as, pli_scopes_proof *proof_out, plait_error *err);
void         pli_scopes_text(const pli_scopes_proof *proof, pli_text *text);
void         pli_scopes_json(const pli_scopes_proof *proof, pli_text *text);

#endif
