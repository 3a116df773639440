/* table/copies/estimates.h - filters between neighbours (gossip.h): what both ends of a link think of the sender's
 * mirror, and messages that make it better.
 *
 * A mirror is no update: what a filter left out of one message would not be in the next one. So both ends of a link
 * keep an *estimate* of the sender's mirror. A message carries the difference between mirror and estimate, through the
 * filters, and both ends add what has arrived to the estimate. What was rounded or kept back is in the next difference
 * by itself (error feedback), and promises are of what was sent. If the filters lose nothing, mirrors travel.
 *
 * Who mixes estimates must move by as much as the others move the other way, else the average of all mirrors drifts. In
 * rounds a worker adds what it knows of each neighbour that it hears, and takes off what each neighbour to whom it
 * speaks knows of it:
 *     x <- x + share / (k + 1) (sum of what it hears - sum of what it said),     k neighbours
 * Both sums are the same over all workers. Without rounds it sends part of its weight (u of w, at most share / 2)
 * with its estimate e, and keeps what is missing: x <- x + u / (w - u) (x - e), so that w x is what it was.
 *
 * The *share* follows from how much the filters let through. A worker measures that when the table opens, alike on all:
 * it sends normally distributed numbers, and their cubes, again and again what is missing of them. The less gets
 * through, the older estimates are, and the less they may pull: with a whole share, errors that estimates keep would
 * feed each other and grow without bound. In rounds the share is 1 for fp16 and fixed8, else half of what gets through:
 * some 0.2 for topk:0.1, F / 2 for randk:F, 0.03 for onebit (it is worst at what it leaves of a vector). Without
 * rounds x moves away from each estimate as often as the worker sends to anybody, so the share is smaller (share_of).
 *
 * In rounds of a ring or torus all neighbours hear the same, so there is one estimate for all of them. Estimates begin
 * with the table's initial values, which all know. They are as large as mirrors: a ring needs three, exp one each way
 * for each of log2 W neighbours.
 *
 * No wait, thread or message in here; topology/gossip.c, the machine of gossip.h and tests drive it.
 *
 * Papers: Koloskova, Stich, Jaggi, "Decentralized Stochastic Optimization and Gossip Algorithms with Compressed
 * Communication", ICML 2019, algorithm 2 (CHOCO-SGD; its step gamma is the share here); Tang, Gan, Zhang, Zhang, Liu,
 * "Communication Compression for Decentralized Training", NeurIPS 2018 (differences to what neighbours know); Taheri et
 * al., "Quantized Decentralized Stochastic Learning over Directed Graphs", ICML 2020 (the same with push-sum). */
#ifndef PLI_TABLE_ESTIMATES_H
#define PLI_TABLE_ESTIMATES_H

#include "table/copies/neighbours.h"
#include "table/filter/filter.h"
#include "table/state/spec.h"

/* The worker, and what its job says of filters. */
typedef struct pli_estimates_place {
    pli_filter_scope scope; /* borrowed */
    uint64_t         seed;
    int32_t          rank, workers;
    pli_among        among;  /* who averages, of the workers; n 0: all of them. Borrowed until it is opened */
    pli_graph        graph;
    bool             rounds;
} pli_estimates_place;

/* One link, or all that a worker speaks to. */
typedef struct pli_estimate {
    int32_t   peer;
    void     *values; /* [n] */
    pli_chain put;    /* to a peer: encodes; unused from one */
    pli_chain take;   /* decodes: at both ends alike */
} pli_estimate;

typedef struct pli_estimates {
    pli_spec            spec;
    pli_estimates_place place;
    pli_filters_list    list;
    int64_t             n;      /* values */
    bool                exact;  /* the filters lose nothing: a neighbour's mirror is known */
    bool                shared; /* all hear the same: one estimate, to[0]                       */
    double              share;
    pli_estimate        to[PLI_NEIGHBOURS_MAX], from[PLI_NEIGHBOURS_MAX];
    int32_t             n_to, n_from;
    void               *difference; /* [n] scratch */
} pli_estimates;

/** values [n]: what all mirrors begin with. The filters that place names are borrowed; spec->filter is not empty.
 *  Errors: ENOMEM, EREFUSED. */
plait_status pli_estimates_open(const pli_spec *spec, const pli_estimates_place *place, const void *values,
                                pli_estimates **estimates_out, plait_error *err);
void         pli_estimates_close(pli_estimates **estimates);
/** All mirrors are these values [n] now, NULL: zeros, and nothing is on its way. */
void         pli_estimates_reset(pli_estimates *estimates, const void *values);

/** Appends what goes to a neighbour to out; the estimate is better then. Where all hear the same, once a round for any
 *  of them. Errors: ENOMEM; what a filter says. */
plait_status pli_estimates_put(pli_estimates *estimates, int32_t to, int64_t clock, const void *mirror, pli_bytes *out,
                               plait_error *err);
/** The other end of it: bytes [size] have come, in the order in which they were put. *known_out: what is known of that
 *  neighbour's mirror now, [n] until the next. Errors: EFORMAT what does not add up, or is of no neighbour; ENOMEM. */
plait_status pli_estimates_take(pli_estimates *estimates, int32_t from, int64_t clock, const void *bytes, int64_t size,
                                const void **known_out, plait_error *err);
/** What is known of a neighbour, and what that one knows of this worker, [n]; NULL: it is none. */
const void  *pli_estimates_of(const pli_estimates *estimates, int32_t from);
const void  *pli_estimates_own(const pli_estimates *estimates, int32_t to);

#endif
