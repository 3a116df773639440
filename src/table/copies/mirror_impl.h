/* table/copies/mirror_impl.h - what the files of a mirror share. No other file includes it. */
#ifndef PLI_TABLE_MIRROR_IMPL_H
#define PLI_TABLE_MIRROR_IMPL_H

#include "table/copies/mirror.h"

static inline plait_status pli_mirror_no_memory(const pli_mirror *mirror, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory to sum a clock", mirror->spec->name);
}

/* mirror.c */
void         pli_mirror_free_sum(pli_sum *sum, int32_t workers);
void         pli_mirror_put_extra(const pli_pending *own, void *values, int64_t at);
plait_status pli_mirror_apply_dense(pli_mirror *mirror, pli_sum *sum, int64_t first, int64_t to, plait_error *err);

/* mirror_lists.c: this worker's part as sum->list; then all parts, sum->piece, are applied. */
plait_status pli_mirror_make_coded(pli_mirror *mirror, pli_sum *sum, plait_error *err);
plait_status pli_mirror_apply_coded(pli_mirror *mirror, pli_sum *sum, plait_error *err);
plait_status pli_mirror_decode(pli_mirror *mirror, pli_sum *sum, plait_error *err); /* filtered parts become plain */
plait_status pli_mirror_make_list(pli_mirror *mirror, pli_sum *sum, plait_error *err);
plait_status pli_mirror_apply_lists(pli_mirror *mirror, pli_sum *sum, plait_error *err);

/* mirror_held.c: keeps the memory of a result that was applied; a take follows on a sum that was put back. */
void         pli_mirror_keep_result(pli_mirror *mirror, pli_sum *sum);
plait_status pli_mirror_join(pli_mirror *mirror, plait_error *err);

#endif
