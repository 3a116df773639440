/* table/copies/coded.h - the filters of a table's sums. A sum of mirrors (mirror.h) is no push to a server, so a filter
 * has two places in it: at the worker whose part travels, and at the worker that adds the parts up.
 *
 *   stripes   a table of ranges among three workers or more. It is cut into one *stripe* a worker. Each worker encodes
 *             its part of each other's stripe and sends it to that stripe's *owner*, which decodes the parts, adds
 *             them in the order of workers, encodes the sum and sends it to all. Everybody decodes the same bytes, the
 *             owner too, so all mirrors stay equal bit for bit. Both encoders keep what they could not send and add it
 *             to what they encode next (error feedback where the error arises): the worker that of its updates, the
 *             owner that of the sum. A worker sends 2 (W - 1)/W times an encoded table, what a ring sends of a plain
 *             one: so a filter that makes n times fewer bytes makes n times fewer bytes of a sum of any number of
 *             workers.
 *   whole     everything else: each worker sends its encoded part to all, who add the parts in the order of workers.
 *             Nothing is encoded twice. It costs (W - 1) times an encoded part: as much as stripes between two workers.
 *             Lists of keys go so, since workers' lists differ; and sums that fly (bounded-delay:T), because stripes
 *             need all workers at a second moment, between the clocks.
 *
 * A tree's or a ring's inner node would decode, add and encode once a level: log W or W errors on top of each other
 * instead of two.
 *
 * Where a sum may have to be made again, without a worker that has died (mirror.h, holds), the table is cut among those
 * that live. Each of them keeps what it kept, wherever the stripes are now: what an owner kept of its stripe's sum goes
 * with its own updates of the values that another owns from then on, and is in their next sum once, as before. What the
 * dead worker kept, of its updates and of its stripe's sum, is lost.
 *
 * To filters a dense table is one column: a *value* is a row of it. So topk:0.01 chooses a hundredth of the values, as
 * the papers mean it, and onebit has two means for each 256 values. The sum of what was applied and of all residuals is
 * the sum of what was pushed, up to the rounding of these additions themselves.
 *
 * This is a machine without messages: topology/coded_sums.c, mirror_lists.c and tests feed it.
 *
 * Papers: Seide, Fu, Droppo, Li, Yu, "1-Bit Stochastic Gradient Descent", Interspeech 2014, section 3 (stripes whose
 * owners quantise the sum again, with a residual of their own); Strom, "Scalable Distributed DNN Training Using
 * Commodity GPU Cloud Computing", Interspeech 2015 (sparse residuals); Stich, Cordonnier, Jaggi, "Sparsified SGD with
 * Memory", NeurIPS 2018; Karimireddy et al., "Error Feedback Fixes SignSGD", ICML 2019; Tang et al., "DoubleSqueeze",
 * ICML 2019 (why feedback at both places converges as fast as without filters). */
#ifndef PLI_TABLE_CODED_H
#define PLI_TABLE_CODED_H

#include "table/client/pending.h"
#include "table/filter/filter.h"
#include "table/state/rest.h"
#include "table/state/shard.h"

/* The worker, and what its job says of filters. */
typedef struct pli_coded_place {
    pli_filter_scope scope;
    uint64_t         seed;
    int32_t          rank, workers;
    bool             whole; /* dense tables go whole, too: their sums fly */
    bool             holds; /* a sum may be put back */
} pli_coded_place;

/* One worker's end of a table's filtered sums. */
typedef struct pli_coded {
    const pli_spec  *spec; /* borrowed */
    pli_coded_place  place;
    bool             in_stripes;
    plait_type       type;       /* the table as filters see it: */
    int64_t          rows, cols; /* dense: [values, 1]           */
    pli_filters_list list;
    uint8_t         *dead;    /* [workers] 1: the table is not cut for this one, and nothing comes from it */
    int32_t         *living;  /* [workers] the others, n_living of them, in order: stripe s is living[s]'s */
    int32_t          n_living;
    int32_t          mine;    /* in stripes: the own one; else 0                                           */
    int32_t          stripes; /* 1: whole                                                                  */
    pli_chain       *up;      /* [stripes] encodes the own part of a stripe; keeps what is left of it      */
    pli_chain       *from;    /* [workers] decodes a worker's part of the own stripe, or of everything     */
    pli_chain       *of;      /* [stripes] in stripes: decodes the sum of a stripe                         */
    pli_chain        down;    /* in stripes: encodes the sum of the own stripe; keeps what is left of it   */
    pli_chain        scratch; /* lends its memory to the chain that works                                  */
    pli_bytes        body;
    /* place.holds: what the chains kept before they made the parts of the sum that is under way */
    void            *before;  /* dense: [rows]; keyed: of the rows that the worker has touched             */
    int64_t          before_bytes;
    uint8_t         *saved;   /* [stripes] 1: of that stripe's chain it is there                           */
} pli_coded;

/** spec, and the filters that place->scope names, are borrowed; spec->filter is not empty. Errors: ENOMEM, EREFUSED. */
plait_status pli_coded_open(const pli_spec *spec, const pli_coded_place *place, pli_coded **coded_out,
                            plait_error *err);
void         pli_coded_close(pli_coded **coded);

/** From now on parts are of those that live: all but the dead [workers]. What is kept stays, but lists that filters
 *  have learned are forgotten, so all workers do this between the same two sums. Does nothing if the dead are the same
 *  as before. Errors: ENOMEM; the filters are of no use any more then. */
plait_status pli_coded_recut(pli_coded *coded, const uint8_t *dead, plait_error *err);
/** place.holds: the sum whose parts were put is not made. What is kept is as it was before, and pli_coded_recut
 *  follows. own: the part that was put. Errors: ENOMEM. */
plait_status pli_coded_put_back(pli_coded *coded, const pli_pending *own, plait_error *err);
/** place.holds: it is made. */
void pli_coded_settle(pli_coded *coded);

/** The values [first, first + n) of the dense table that a stripe has. */
void pli_coded_stripe(const pli_coded *coded, int32_t stripe, int64_t *first_out, int64_t *n_out);

/* What the workers have pushed in a clock, as far as it is known. */
typedef struct pli_coded_push {
    bool    touched;
    int64_t examples;
} pli_coded_push;

/** Appends the worker's part of a stripe (whole tables: of everything, stripe 0) to out. If the worker has not touched
 *  the table, nothing but that is said, and what is kept stays. Errors: ENOMEM; what a filter says. */
plait_status pli_coded_put(pli_coded *coded, int32_t stripe, int64_t clock, const pli_pending *own, pli_bytes *out,
                           plait_error *err);
/** Dense: reads what `from` has put for this worker, adds it to sum [values of the table] where it belongs, and to
 *  push. *at moves on. Errors: EFORMAT, ENOMEM. */
plait_status pli_coded_add(pli_coded *coded, int32_t from, int64_t clock, const unsigned char **at,
                           const unsigned char *end, void *sum, pli_coded_push *push, plait_error *err);
/** Keyed: reads what `from` has put. part lies in decoded, which the caller frees. Errors: EFORMAT, ENOMEM. */
plait_status pli_coded_take_rows(pli_coded *coded, int32_t from, int64_t clock, const unsigned char **at,
                                 const unsigned char *end, pli_push_part *part, pli_decoded *decoded,
                                 plait_error *err);

/** In stripes, at the owner: appends the sum [values of the table] of the own stripe. push: of all workers. */
plait_status pli_coded_put_sum(pli_coded *coded, int64_t clock, const pli_coded_push *push, const void *sum,
                               pli_bytes *out, plait_error *err);
/** Of a table whose owners apply the sums of their stripes themselves (topology/sharded.h), so that these are not put:
 *  adds what is kept of the own stripe's sum to sum [values of the table]. There is some where a checkpoint's workers
 *  were cut otherwise, or the table was cut when a worker had died. Errors: ENOMEM. */
plait_status pli_coded_spend(pli_coded *coded, void *sum, plait_error *err);
/** Reads what a stripe's owner has put into sum. *at moves on. Errors: EFORMAT, ENOMEM. */
plait_status pli_coded_take_sum(pli_coded *coded, int32_t stripe, int64_t clock, const pli_coded_push *push,
                                const unsigned char **at, const unsigned char *end, void *sum, plait_error *err);

/* --- what is kept ------------------------------------------------------------------------------------------------ */

/** Copies what this worker keeps of its own updates, and of the sums of its own stripe, to rest, which is empty and
 *  has what is there after an error, too. Errors: ENOMEM. */
plait_status pli_coded_rest(const pli_coded *coded, pli_rest *rest);
/** Adds it to what is kept, wherever the stripes lie now; values NULL: only looks whether it fits. Errors: EMISMATCH,
 *  ENOMEM. */
plait_status pli_coded_rest_add(pli_coded *coded, const pli_rest *rest);

/* For tests (dense tables): */

/** Writes [values of the table]: what this worker keeps of its own updates; or, of_sums, what it keeps of the sums of
 *  its own stripe (0 elsewhere). */
void pli_coded_kept(const pli_coded *coded, bool of_sums, void *values);
/** Adds to what is kept. of_sums: only the own stripe's values are taken. The worker sends nothing to its own stripe:
 *  an update of it is kept with that stripe's sum. Errors: ENOMEM. */
plait_status pli_coded_keep(pli_coded *coded, bool of_sums, const void *values, plait_error *err);
/** Forgets what is kept. */
void pli_coded_forget(pli_coded *coded);

#endif
