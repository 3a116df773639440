/* table/consistency/policies.h - the policies that are built in; for policies.c and the policies themselves. */
#ifndef PLI_TABLE_POLICIES_H
#define PLI_TABLE_POLICIES_H

#include "table/consistency/consistency.h"

enum { PLI_CLOCKS_MAX = 1 << 30 }; /* bound of a parameter that counts clocks, so that sums cannot overflow */

extern const plait_consistency pli_bsp_policy, pli_ssp_policy, pli_async_policy;

/** OK where no parameters were given. */
plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err);

#endif
