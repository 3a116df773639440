/* table/consistency/policies.h - the policies that are built in; for policies.c and the policies themselves. */
#ifndef PLI_TABLE_POLICIES_H
#define PLI_TABLE_POLICIES_H

#include "table/consistency/consistency.h"

enum { PLI_CLOCKS_MAX = 1 << 30 }; /* bound of a parameter that counts clocks, so that sums cannot overflow */

extern const plait_consistency pli_bsp_policy, pli_ssp_policy, pli_essp_policy, pli_asp_policy, pli_async_policy,
    pli_bounded_delay_policy, pli_sequential_policy, pli_vap_policy, pli_downpour_policy, pli_local_sgd_policy;

/** "3:10" -> numbers [n], whole and in [0, PLI_CLOCKS_MAX]. false: not that. parameters may be NULL. */
bool pli_policy_counts(const char *parameters, int32_t n, int64_t *numbers);
/* What bsp promises of all workers, and whoever is its model under another name (bounded-delay:0). */
#define PLI_PROMISES_OF_BSP                                                                                            \
    (PLAIT_WHOLE_CLOCKS | PLAIT_BOUNDED_READS | PLAIT_OWN_WRITES | PLAIT_BY_SUMS | PLAIT_REPLAYABLE | PLAIT_SKIPS_LATE)
/** Clocks that are complete where they end without the `backup` slowest workers: plait_consistency.server.complete of
 *  who has PLAIT_SKIPS_LATE. Who has left counts as one of them; those who are there are never asked for more than all
 *  of them. */
int64_t pli_policy_complete_without(int32_t backup, const plait_view *view);
/** OK where no parameters were given. */
plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err);

#endif
