/* table/client/pending.h - a worker's updates of the current clock to one table, combined, until they leave.
 *
 * A dense table has an array of all values, zero outside of the rows touched. A keyed table has the touched keys in the
 * order of their first update, and a row of values for each (updates.h says what a value is). On an additive table
 * pending updates are added to what is read. */
#ifndef PLI_TABLE_PENDING_H
#define PLI_TABLE_PENDING_H

#include "table/state/rowset.h"
#include "table/state/spec.h"

typedef struct pli_pending {
    const pli_spec *spec; /* borrowed */
    bool            touched;
    int64_t         examples;
    void           *sum;      /* dense: [rows, cols] and `extra` values more; keyed: [set.n, cols] */
    int64_t         capacity; /* keyed: rows of sum                                                */
    int64_t         extra;
    int64_t         low, high; /* dense: the rows touched are in [low, high)                       */
    pli_rowset      set;       /* keyed                                                            */
} pli_pending;

/** extra: further values at the end of a dense sum, zeroed with it (a collective's own). */
void pli_pending_init(pli_pending *pending, const pli_spec *spec, int64_t extra);
void pli_pending_destroy(pli_pending *pending);
/** Adds delta [n, cols] to keys [n], which are in range. Errors: ENOMEM. */
plait_status pli_pending_add(pli_pending *pending, int64_t n, const uint64_t *keys, const void *delta, int64_t examples,
                             plait_error *err);
plait_status pli_pending_add_range(pli_pending *pending, int64_t first, int64_t n, const void *delta, int64_t examples,
                                   plait_error *err);
/** Calls the right one of the two: for keys [n], or (keys NULL) for the rows first .. first + n - 1. */
static inline plait_status pli_pending_add_rows(pli_pending *pending, int64_t n, const uint64_t *keys, int64_t first,
                                                const void *delta, int64_t examples, plait_error *err) {
    return keys != NULL ? pli_pending_add(pending, n, keys, delta, examples, err)
                        : pli_pending_add_range(pending, first, n, delta, examples, err);
}
/** Adds the sums [n, cols] that another worker has pending for the same table: to keys [n], or (keys NULL) to the rows
 *  first .. first + n - 1 of a table that is not keyed. Errors: ENOMEM. */
plait_status pli_pending_merge(pli_pending *pending, int64_t n, const uint64_t *keys, int64_t first, const void *sums,
                               int64_t examples, plait_error *err);
/** The largest absolute value that delta [n, cols] adds to one element; repeats of keys [n] are added up first. keys
 *  NULL: a range, in which nothing repeats. On a ruled table the value is divided by the batch. Errors: ENOMEM. */
plait_status pli_update_norm(const pli_spec *spec, int64_t n, const uint64_t *keys, const void *delta, double *norm_out,
                             plait_error *err);
/** Dense: makes sure that sum exists (all zero). Errors: ENOMEM. */
plait_status pli_pending_reserve(pli_pending *pending, plait_error *err);
/** Adds what is pending for these rows, times scale, to values. scale 0: nothing is done. */
void pli_pending_overlay(const pli_pending *pending, double scale, int64_t n, const uint64_t *keys, void *values);
void pli_pending_overlay_range(const pli_pending *pending, double scale, int64_t first, int64_t n, void *values);
/** For a dump: keys [held] and values are what the servers hold, with room for set.n rows more. Appends the keys that
 *  only this worker has touched yet, and adds what is pending times scale. false: out of memory. */
bool pli_pending_append(const pli_pending *pending, double scale, int64_t held, uint64_t *keys, void *values,
                        int64_t *n_out);
void pli_pending_clear(pli_pending *pending);

#endif
