/* table/state/shard.h - one shard: a store, and how pushes change it. A server's machine, a mirror under allreduce and
 * (only its store) Hogwild use it alike. There is no message, clock vector or lock in here. */
#ifndef PLI_TABLE_SHARD_H
#define PLI_TABLE_SHARD_H

#include "table/client/pending.h"
#include "table/state/rowset.h"
#include "table/state/store.h"

/* The most rows of data in a push: no sum of a clock's pushes overflows, nor a sum over as many clocks as a run can
 * have. */
#define PLI_EXAMPLES_MAX (INT64_C(1) << 40)

/* One worker's push to one shard of one table. Points into a message's body or a buffer. */
typedef struct pli_push_part {
    bool            touched;  /* the worker has pushed to the table in this clock, here or at another shard */
    bool            keyed;    /* as the table is: keys without repeats; else the rows first .. first + n - 1    */
    bool            increasing; /* the sender says that the keys increase; whoever applies them checks       */
    int64_t         examples; /* of the whole push                                                          */
    int64_t         first, n;
    const uint64_t *keys;
    const void     *values; /* [n, cols]: a sum of updates (updates.h), under a stale policy values */
} pli_push_part;

/** What is pending, as one push. Points into it. */
pli_push_part pli_push_part_of(const pli_pending *pending);

typedef struct pli_shard {
    pli_spec   spec;
    int32_t    index;
    int64_t    first, rows; /* dense: the rows of this shard */
    pli_store  store;
    int64_t    applied; /* pushes applied */
    /* for summing a clock's pushes */
    void      *sum;
    int64_t    sum_capacity;
    pli_rowset set;
    int64_t   *at;
    int64_t    at_capacity;
} pli_shard;

/** initial, penalty: of this shard's rows, or NULL. at_clock: it applies whole clocks (bsp), else each push. */
plait_status pli_shard_open(pli_shard *shard, const pli_spec *spec, int32_t index, bool at_clock, const void *initial,
                            const void *penalty, plait_error *err);
/** The same of a shard whose rows come by slices (slice.h). */
plait_status pli_shard_open_empty(pli_shard *shard, const pli_spec *spec, int32_t index, bool at_clock,
                                  plait_error *err);
void         pli_shard_close(pli_shard *shard);

/** Does the part lie within the shard (rows, keys)? The error says what is wrong. That keys increase is checked when
 *  they are applied. */
plait_status pli_shard_check(const pli_shard *shard, const pli_push_part *part, plait_error *err);

/** A clock's parts [n], in worker order: summed, divided by the sum of examples, the rule applied once (additive: all
 *  added). Exact sums are rounded once, before that. Nothing happens where no part was touched. Errors: ENOMEM;
 *  EFORMAT: keys that should increase do not, or lie outside (some are applied, then). */
plait_status pli_shard_apply_clock(pli_shard *shard, int64_t clock, int32_t n, const pli_push_part *parts,
                                   plait_error *err);

/** What the values of a dense shard, neither lazy nor sharded, are once this part is applied as a clock's only one: to
 *  [rows, cols]. The shard stays as it is. Errors: as above. */
plait_status pli_shard_foretell(pli_shard *shard, int64_t clock, const pli_push_part *part, void *to,
                                plait_error *err);

/** Makes the same sum, but applies nothing: one part for all [n], which lies in the shard's memory until its next
 *  call, or in a part's. Applied as a clock's only part it does what they would. touched false: no part was. Errors: as
 *  above. */
plait_status pli_shard_sum_clock(pli_shard *shard, int32_t n, const pli_push_part *parts, pli_push_part *sum_out,
                                 plait_error *err);

/** A clock of a dense table in parts: adds to, or applies the rule to, the values first .. first + n - 1. The input is
 *  the sum of all workers' updates to them (updates.h), over so many examples. state: pli_store_update_values'. Errors:
 *  ENOMEM. */
plait_status pli_shard_apply_values(pli_shard *shard, int64_t clock, int64_t examples, int64_t first, int64_t n,
                                    int64_t state, const void *sum, plait_error *err);

/** Applies one push of a worker by itself, under a stale policy. staleness >= 1: its step is divided by this. */
plait_status pli_shard_apply_push(pli_shard *shard, int32_t worker, int64_t clock, int64_t staleness,
                                  const pli_push_part *part, plait_error *err);

/** Applies a worker's own push to its own copy of a ruled table, if `workers` copies are averaged later. The step is
 *  `workers` times as long, so that the average moves as far as all the clock's pushes would have moved one copy. */
plait_status pli_shard_apply_own(pli_shard *shard, int64_t clock, int32_t workers, const pli_push_part *part,
                                 plait_error *err);

#endif
