/* watch/audit/promise.h - what a consistency's name promises, read from contract and papers anew: the audit shares no
 * code with the policies that it judges. */
#ifndef PLI_WATCH_PROMISE_H
#define PLI_WATCH_PROMISE_H

#include "base/base.h"

/* Every promise is a few numbers; each is checked by itself. */
typedef struct pli_promise {
    char    spec[64];
    bool    known;      /* false: a policy of the program's own, whose bound the audit does not know           */
    int64_t bound;      /* a get in clock c holds all updates of others of clocks < c - bound; -1: no bound */
    bool    exact;      /* bsp: and it holds no updates of clock c or later */
    bool    turns;      /* sequential: it holds exactly the updates of all earlier turns                       */
    int64_t fetch;      /* values are at most that many clocks old, less one; 0: no such promise               */
    int64_t push;       /* an update leaves within that many clocks; 0: no such promise                        */
    int64_t barrier;    /* asp: a get misses nothing of clocks below the last multiple of it; 0: no such promise */
    int64_t rounds;     /* averaged copies: all are mixed every so many clocks; 0: no such promise             */
    double  value;      /* vap: bound on the sum of the norms of the updates of others that a get misses; 0: none */
    bool    value_each; /* vap weak: the bound is for each other worker alone */
} pli_promise;

/** Errors: EINVAL. A name that Plait does not know is no error: known is false. */
plait_status pli_promise_read(const char *spec, pli_promise *promise_out, plait_error *err);
/** ENAME, with the nearest name whose promise is known, and all of them. */
plait_status pli_promise_unknown(const char *spec, plait_error *err);

#endif
