/* The third pass of the audit, a subject a file: own.c what a worker has done itself, rows.c rows that never go back,
 * others.c what is promised of the others, telling.c the words; reads.c goes through the events. */
#ifndef PLI_WATCH_AUDIT_READS_H
#define PLI_WATCH_AUDIT_READS_H

#include "watch/audit/model.h"

/* What a worker was last given of one shard, or of its mirror. */
typedef struct last_seen {
    int64_t  own;             /* audit_contained's hint                                    */
    int64_t  first, rows;     /* the last read by range; rows 0: none                      */
    uint64_t version;         /* of that                                                   */
    bool     in_map, mixed;   /* in_map: range and map know the same; mixed: rows were read by key since */
    int64_t  needs, needs_of; /* after that many barriers: the version that must be there */
    int32_t  needs_place;     /* the place of that copy */
} last_seen;

typedef struct table_reads {      /* what one worker has read of one table */
    uint64_t     incs, left_incs; /* so far; those that were never pushed, since the worker left */
    uint64_t     stood_incs;      /* those that were made before it began to stand in: a mirror does not show them, as
                                   * they are part of a sum, though that is pushed only when the clock ends */
    int64_t      pushes, oldest;  /* clock of the oldest inc not yet pushed       */
    int64_t      got;             /* clock of the last get                        */
    int64_t      zeros;           /* how often the worker has zeroed the table    */
    int64_t      calls;           /* how many of its calls have changed it        */
    last_seen   *shard;           /* [shards], or 1: the mirror                  */
    pli_keymap   rows;            /* the sampled rows, and ... */
    uint64_t    *version;         /* [rows.n] ... the version in which each was read last */
    int64_t      capacity;
    uint64_t     asked_ns, given_ns; /* of the get that was begun last        */
    audit_unseen unseen;
} table_reads;

typedef struct reader {
    int32_t      rank;
    int64_t      clock;
    bool         left;
    int64_t      barriers;
    bool         after_barrier; /* and has ended no clock since */
    bool         stands;        /* it stands in for a dead worker in this clock, of which its own updates have left */
    table_reads *table;              /* [tables] */
} reader;

/* One piece of a get, as the checks look at it. */
typedef struct view {
    audit_table           *table;
    table_reads           *reads;
    last_seen             *seen;
    const pli_event       *event;
    const pli_event_piece *piece;
    const audit_holder    *shard; /* the copy by whose log it is judged */
    int64_t                version;
    int64_t                missing, newest; /* turns of the others: see audit_state */
    int64_t                own;             /* pushes of the reader in the values    */
    bool                   unjudged;        /* some piece comes from a version of which no log tells */
    bool                   overtaken;       /* a get that was begun later was looked at before */
} view;

/* telling.c */
void audit_wrong_row(pli_audit *audit, const reader *r, const view *v, const char *rule, uint64_t row, const char *fmt,
                     ...) __attribute__((format(printf, 6, 7)));
/** The first row of the piece stands for it. */
#define audit_wrong(audit, r, v, rule, ...) audit_wrong_row(audit, r, v, rule, audit_first_row(v), __VA_ARGS__)
static inline uint64_t audit_first_row(const view *v) {
    return v->piece->first >= 0 ? (uint64_t)v->piece->first : v->piece->keys[0];
}
/** The updates of a turn (v->missing, v->newest) are not there, or should not be. */
void audit_misses(pli_audit *audit, const reader *r, const view *v, const char *rule);
void audit_sees_too_much(pli_audit *audit, const reader *r, const view *v, const char *rule);

/* own.c: false: the version cannot be the one that was read, and nothing else is to be judged by it. */
bool audit_check_own(pli_audit *audit, const reader *r, const view *v);
/** Additive: what was not pushed yet is laid over the values, all of it, once. */
void audit_check_own_incs(pli_audit *audit, const reader *r, const view *v);

/* rows.c: false: out of memory. */
bool audit_check_rows(pli_audit *audit, const reader *r, const view *v);

/* zeros.c: a get behind a zeroing is from no version before. */
void audit_check_zeroed(pli_audit *audit, const reader *r, const view *v);

/* calls.c: a get is of a version between two calls of its worker. */
void audit_check_called(pli_audit *audit, const reader *r, const view *v);

/* others.c */
int64_t audit_clock_of(const pli_audit *audit, int64_t turn);
void    audit_check_others(pli_audit *audit, const reader *r, const view *v);

#endif
