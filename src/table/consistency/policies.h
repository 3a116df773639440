/* table/consistency/policies.h - the policies that are built in; for policies.c and the policies themselves. */
#ifndef PLI_TABLE_POLICIES_H
#define PLI_TABLE_POLICIES_H

#include "table/consistency/consistency.h"

enum { PLI_CLOCKS_MAX = 1 << 30 }; /* bound of a parameter that counts clocks, so that sums cannot overflow */

extern const pli_consistency_ops pli_bsp_ops, pli_ssp_ops, pli_async_ops;

/** OK where no parameters were given. */
plait_status pli_policy_takes_none(const char *name, const char *parameters, plait_error *err);

#endif
