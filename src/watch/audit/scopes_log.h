/* watch/audit/scopes_log.h - what the audit of scopes (scopes.h) keeps of a log: each lock and each read, sorted. */
#ifndef PLI_WATCH_SCOPES_LOG_H
#define PLI_WATCH_SCOPES_LOG_H

#include "watch/audit/scopes.h"

enum { SCOPE_VERTEX, SCOPE_EDGE, SCOPE_FULL };
enum { MODE_NONE, MODE_READ, MODE_WRITE };

/* A lock that an owner gave, or (back) got back. */
typedef struct scope_lock {
    uint64_t vertex, version, time_ns;
    int64_t  order;  /* in the owner's log */
    int64_t  pair;   /* of one that was given: the one that came back in lock[], -1: none */
    uint32_t number, at;
    int32_t  era, owner, origin;
    uint8_t  mode, wrote, back;
} scope_lock;

/* A vertex that an update has read. */
typedef struct scope_read {
    uint64_t vertex, id, version, center, time_ns;
    int64_t  order; /* in the worker's log */
    uint32_t number, digest, fresh;
    int32_t  era, rank;
    bool     wrote;
} scope_read;

/* All are at rest, as a rank has heard. */
typedef struct scope_rest {
    int64_t order, round;
    int32_t era, rank;
} scope_rest;

typedef struct scope_era {
    int64_t round; /* how many rounds were good before */
    int32_t scope, ranks;
    char    program[64];
} scope_era;

typedef struct scope_log {
    scope_lock *lock; /* by era, vertex, order */
    scope_read *read; /* by era, vertex, version; of one version the one that wrote last */
    scope_rest *rest;
    scope_era  *era;
    int64_t     locks, reads, rests, eras, locks_capacity, reads_capacity, rests_capacity, eras_capacity;
    int64_t     updates;
    int32_t     workers;
    uint64_t    begun_ns;
} scope_log;

/** Reads all streams of locks. Errors: EFORMAT, ENOMEM. */
plait_status scope_log_read(scope_log *log, const pli_logfile *file, plait_error *err);
void         scope_log_free(scope_log *log);
/** Where the rank's log says that the era's round is over; -1: it does not. round -1: the last one. */
int64_t scope_rest_of(const scope_log *log, int32_t era, int32_t rank, int64_t round);
/** The first lock, the first read of a vertex in an era; their number where there is none. */
int64_t scope_find_lock(const scope_log *log, int32_t era, uint64_t vertex);
int64_t scope_find_read(const scope_log *log, int32_t era, uint64_t vertex);
/** The update that made this version of a vertex; NULL: none has. */
const scope_read *scope_maker_of(const scope_log *log, int32_t era, uint64_t vertex, uint64_t version);
/** The era that has ended the rounds with which this one begins; -1: there is none. */
int32_t scope_era_before(const scope_log *log, int32_t era);
/** The version that a vertex had in an era when the round was over. */
uint64_t scope_version_at(const scope_log *log, int32_t era, uint64_t vertex, int64_t round);

#endif
