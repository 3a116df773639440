/* comm/forms/forms.h - the forms of an allreduce: which worker sends which part to whom, step by step. Each form is one
 * file.
 *
 * For W workers and M bytes, this is what one worker sends; P is the largest power of two <= W:
 *
 *   form            steps                        bytes, messages
 *   ring            2 (W - 1)                    2 M (W - 1) / W, 2 (W - 1): the least bytes that any form can have
 *   tree            2 ceil(log2 W)               up to M ceil(log2 W) (the root; half of the workers: M); all workers
 *                                                together send 2 (W - 1) messages
 *   recursive       log2 P, + 2 if W > P         M log2 P, + M if W > P; as many messages
 *   rabenseifner    2 log2 P, + 2 if W > P       2 M (P - 1) / P, + M if W > P; 2 log2 P messages, + 1
 *   hierarchical    inside a host a tree to its lead, another form among the leads, and back
 *
 * A reduce-scatter goes by ring, with W - 1 steps and messages, and M (W - 1) / W bytes; or by rabenseifner's halving,
 * which recursive uses, too: log2 P messages, M (P - 1) / P bytes, and M more of some workers if W > P.
 *
 * A reduce-scatter takes the form that an allreduce would take, and its slices have the same bits. If that form has
 * none (tree, hierarchical), it takes one that suits it.
 *
 * The choice of auto follows from simulated clusters of 10 Gb/s and 10 us (docs/collectives.md has the times): up to 16
 * KiB recursive, else rabenseifner while slices are below 32 KiB and the workers are a power of two or more than 8,
 * else the ring. Where workers share hosts: up to 2 KiB recursive, then hierarchical while slices are below 4 KiB, then
 * the ring; if the workers of a host do not have consecutive numbers, hierarchical from 2 KiB on. The tree is never the
 * fastest; it is for users who count messages. A call that spares bytes takes recursive only where its heads are what
 * counts (of 4 workers: up to 256 bytes), and so sends no more than the ring.
 *
 * A form that the user names is taken for every call. Otherwise the first form in the table that suits a call is taken.
 *
 * Papers: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH", 2005;
 * Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009. */
#ifndef PLI_COMM_FORMS_H
#define PLI_COMM_FORMS_H

#include "comm/collective.h"

struct pli_coll_form {
    const char *name;
    uint8_t     id; /* 1 .. 7: on the wire; 0 is no form */
    /** Is it the best of the forms from here on in the table? hosts NULL: all workers are on one. */
    bool (*suits)(const pli_coll *call, int32_t workers, const pli_hosts *hosts);
    /** How many steps a worker takes: the same for all workers, though some steps of a worker may be empty. workers
     *  > 1. */
    int64_t (*steps)(const pli_coll *call, int32_t workers);
    /** Step i < steps of worker me. On entry step_out has neither to nor from. */
    void (*step)(const pli_coll *call, int32_t me, int32_t workers, int64_t i, pli_coll_move *step_out);
    /** The same for a reduce-scatter, after which worker r has slice r of W. NULL: the form has none. */
    int64_t (*scatter_steps)(int32_t workers);
    void (*scatter_step)(const pli_coll *call, int32_t me, int32_t workers, int64_t i, pli_coll_move *step_out);
};

extern const pli_coll_form pli_form_ring, pli_form_tree, pli_form_recursive, pli_form_rabenseifner,
    pli_form_hierarchical;

enum { PLI_FORMS = 5 };
extern const pli_coll_form *const pli_forms[PLI_FORMS]; /* in the order in which they are asked whether they suit */

/** NULL: no form has this name, or this id. */
const pli_coll_form *pli_form_find(const char *name);
const pli_coll_form *pli_form_numbered(unsigned id);

/** Has this form of an allreduce a reduce-scatter that sums in the same order? *form becomes the form that has it. */
bool pli_form_scatters(const pli_coll_form **form);

/* --- what forms share ------------------------------------------------------------------------------------ */

/** A step in which the whole vector goes to `to` and comes from `from` (-1: not). */
void pli_form_whole(const pli_coll *call, int32_t to, int32_t from, bool reduce, pli_coll_move *step_out);

static inline int32_t pli_floor_log2(int32_t n) { /* n > 0 */
    int32_t rounds = 0;
    while (2 << rounds <= n && rounds < 30) rounds++;
    return rounds;
}
static inline int32_t pli_ceil_log2(int32_t n) { return pli_floor_log2(n) + ((n & (n - 1)) != 0); }

#endif
