/* table/consistency/policies.h - the policies that are built in; for policies.c and the policies themselves. */
#ifndef PLI_TABLE_POLICIES_H
#define PLI_TABLE_POLICIES_H

#include "table/consistency/consistency.h"

enum { PLI_CLOCKS_MAX = 1 << 30 }; /* bound of a parameter that counts clocks, so that sums cannot overflow */

extern const plait_consistency pli_bsp_policy, pli_ssp_policy, pli_essp_policy, pli_asp_policy, pli_async_policy,
    pli_bounded_delay_policy, pli_sequential_policy, pli_vap_policy, pli_downpour_policy, pli_local_sgd_policy;

/** "3:10" -> numbers [n], whole and in [0, PLI_CLOCKS_MAX]. false: not that. parameters may be NULL. */
bool pli_policy_counts(const char *parameters, int32_t n, int64_t *numbers);
/** OK where no parameters were given. */
plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err);

#endif
