/* learn/solve/scale_plan.h - how many workers a run is to have from which clock on (plait_train_opts.plan):
 * "100:4,200:3" says 4 from clock 100 on, 3 from clock 200 on. The lowest ranks are in; the last ones come and go. */
#ifndef PLI_LEARN_SCALE_PLAN_H
#define PLI_LEARN_SCALE_PLAN_H

#include "learn/learner.h"

/** Errors: EINVAL the text is none, its clocks do not ascend, or a number is not from least to most. text NULL: no
 *  plan. */
plait_status pli_scale_check(const char *text, int32_t least, int32_t most, plait_error *err);
/** How many workers are in the clock; least before the plan's first. */
int32_t pli_scale_at(const char *text, int32_t least, int64_t clock);
/** The first clock from `clock` on, below `end`, in which the worker is in; end: there is none. */
int64_t pli_scale_next(const char *text, int32_t least, int32_t worker, int64_t clock, int64_t end);

#endif
