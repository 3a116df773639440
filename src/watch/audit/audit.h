/* watch/audit/audit.h - the audit: proves or refutes, from event logs alone, what a run's consistency promised.
 *
 * For every table: each worker's updates were applied at every shard once and in order; a get holds the reader's own
 * updates; what a worker has read of a row never goes back; and what the table's consistency, or another that is asked
 * for, says of the others' updates. docs/audit.md has the exact words. It shares no code with the protocol, and takes
 * time and memory linear in the log. */
#ifndef PLI_WATCH_AUDIT_H
#define PLI_WATCH_AUDIT_H

#include "watch/eventlog.h"

typedef enum pli_audit_verdict {
    PLI_AUDIT_PROVEN,
    PLI_AUDIT_REFUTED,
    PLI_AUDIT_CUT,  /* the log is not whole, so nothing is proven; with copies a rank's may be that has died */
    PLI_AUDIT_EMPTY /* nothing has happened                       */
} pli_audit_verdict;

enum { PLI_AUDIT_BINS = 64 };

/* The figures of one table. */
typedef struct pli_audit_figures {
    int64_t gets, incs, pushes, applied, dropped;
    int64_t calls;                 /* of server functions that update it */
    int64_t lost;                  /* updates that were on their way when their worker died */
    int64_t again;                 /* updates that were applied once more, where that changes nothing */
    int64_t needless;              /* updates made in a dead worker's stead whose own had arrived after all */
    int64_t unjudged;              /* gets from a replica whose log is cut before them */
    int64_t stale[PLI_AUDIT_BINS]; /* gets by staleness; the last: that or more; none of copies that are averaged */
    int64_t staleness_max, staleness_sum;
    int64_t violations;
} pli_audit_figures;

typedef struct pli_audit_violation {
    const char *rule;  /* "staleness", "own updates", ... */
    int32_t     rank;  /* whose violation it is           */
    int64_t     clock; /* its clock; -1: none             */
    bool        has_row;
    uint64_t    row;
    uint64_t    time_ns;
    char        table[64], text[640];
} pli_audit_violation;

typedef struct pli_audit pli_audit;

/** as NULL: judges each table by its own consistency. file is borrowed. Errors: EINVAL parameters in `as`; ENAME a
 *  name in it; EFORMAT the log contradicts itself, or a rank's is missing; ENOMEM. */
plait_status      pli_audit_run(const pli_logfile *file, const char *as, pli_audit **audit_out, plait_error *err);
void              pli_audit_free(pli_audit **audit);
pli_audit_verdict pli_audit_result(const pli_audit *audit);
/** Why the run is neither proven nor refuted; NULL: it is one of them. */
const char       *pli_audit_why(const pli_audit *audit);
/** The first violation in time; NULL: none. */
const pli_audit_violation *pli_audit_first(const pli_audit *audit);
const pli_audit_figures   *pli_audit_table_figures(const pli_audit *audit, int32_t table);

/** The result as text for people, and as one JSON object. */
void pli_audit_text(const pli_audit *audit, pli_text *text);
void pli_audit_json(const pli_audit *audit, pli_text *text);

#endif
