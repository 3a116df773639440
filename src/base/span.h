/* base/span.h - the seam through which a trace sees where a rank's time goes: a *span* is a stretch of time on one
 * of a rank's threads, with a name. Rooms hand finished spans to a sink that they were given; without a sink a span
 * costs one comparison. Two spans of one thread are nested or apart. The inner span is told first, since it ends
 * first. */
#ifndef PLI_BASE_SPAN_H
#define PLI_BASE_SPAN_H

#include <stdint.h>

typedef enum pli_span_kind {
    PLI_SPAN_PHASE, /* part of a run: load, train, judge; epoch, clock */
    PLI_SPAN_STEP,  /* part of a learner's step: fetch, get, compute, inc */
    PLI_SPAN_CALL,  /* a public call that may wait: "plait_job_clock"                */
    PLI_SPAN_WAIT,  /* detail: what is waited for */
    PLI_SPAN_OP,    /* a node of a graph, or a thread's part of it: "matmul#12"      */
    PLI_SPAN_PIECE, /* a micro-batch in a part of a cut graph, forward or backward, or a bubble in it */
    PLI_SPAN_KINDS
} pli_span_kind;

typedef struct pli_span {
    pli_span_kind kind;
    int32_t       rank, thread; /* thread 0: the rank's own                          */
    const char   *name, *detail; /* borrowed for the call; detail NULL: none         */
    int64_t       number;       /* number of the epoch, clock or micro-batch, from 0; -1: none */
    uint64_t      begin_ns, end_ns; /* in the transport's time */
} pli_span;

typedef struct pli_span_sink {
    void (*take)(void *user, const pli_span *span); /* any thread, one at a time for each (rank, thread); must not
                                                     * call back */
    void *user;
} pli_span_sink;

#endif
