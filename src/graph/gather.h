/* graph/gather.h - adds up the incs of several micro-batches, so that the store hears of each inc once, when the last
 * micro-batch has come to it. */
#ifndef PLI_GRAPH_GATHER_H
#define PLI_GRAPH_GATHER_H

#include <plait/session.h>

#include "base/base.h"

typedef struct pli_gather pli_gather;

/** For n micro-batches. The sums lie here until destroy; the store may borrow them until its `end`. */
plait_status pli_gather_create(int32_t n, pli_gather **gather_out, plait_error *err);
void         pli_gather_destroy(pli_gather **gather);

/** Adds one micro-batch's delta; inc: the value of the inc in the graph. Errors: ENOMEM; the
 *  store's. */
plait_status pli_gather_inc(pli_gather *gather, const plait_store *store, plait_value inc, int32_t variable,
                            const plait_tensor *delta, plait_error *err);
/** Keeps one micro-batch's rows [n] and deltas [n, width], after those of the others. */
plait_status pli_gather_inc_rows(pli_gather *gather, const plait_store *store, plait_value inc, int32_t variable,
                                 const plait_tensor *rows, const plait_tensor *delta, plait_error *err);

#endif
