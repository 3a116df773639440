/* table/copies/coded_impl.h - what the files of filtered sums share. No other file includes it. */
#ifndef PLI_TABLE_CODED_IMPL_H
#define PLI_TABLE_CODED_IMPL_H

#include "table/copies/coded.h"

static inline plait_status pli_coded_no_memory(const pli_coded *c, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a filtered sum", c->spec->name);
}

/* coded.c. open_anew: chains that keep nothing, cut for those that live. */
plait_part   pli_coded_part_of(const pli_coded *c, int32_t worker, int32_t stripe, int64_t clock);
plait_status pli_coded_open_anew(pli_coded *c, const uint8_t *dead, plait_error *err);

/* coded_kept.c: the chain is about to put this part of the stripe. Notes what it keeps of these rows. */
plait_status pli_coded_save(pli_coded *c, pli_chain *chain, int32_t stripe, const plait_part *part, plait_error *err);

#endif
