/* table/consistency/policies.h - the policies that are built in; for policies.c and the policies themselves. */
#ifndef PLI_TABLE_POLICIES_H
#define PLI_TABLE_POLICIES_H

#include "table/consistency/consistency.h"

enum { PLI_CLOCKS_MAX = 1 << 30 }; /* the largest parameter that counts clocks; sums of them cannot overflow */

extern const plait_consistency pli_bsp_policy, pli_ssp_policy, pli_essp_policy, pli_asp_policy, pli_async_policy,
    pli_bounded_delay_policy, pli_sequential_policy, pli_vap_policy, pli_downpour_policy, pli_local_sgd_policy;

/** Reads "3:10" into numbers [n], whole and in [0, PLI_CLOCKS_MAX]. false: the text is not such. parameters may be
 *  NULL. */
bool pli_policy_counts(const char *parameters, int32_t n, int64_t *numbers);
/* What bsp promises, and any policy with the same model under another name (bounded-delay:0). */
#define PLI_PROMISES_OF_BSP                                                                                            \
    (PLAIT_WHOLE_CLOCKS | PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_BY_SUMS | PLAIT_REPLAYABLE | PLAIT_SKIPS_LATE)
/** How many clocks are complete if a clock may end without the `backup` slowest workers: the
 *  plait_consistency.server.complete of policies with PLAIT_SKIPS_LATE. A worker that has left counts as one of those
 *  slowest; a clock never needs more workers than are there. */
int64_t pli_policy_complete_without(int32_t backup, const plait_view *view);
/** OK if no parameters were given. */
plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err);

#endif
