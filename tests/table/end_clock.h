/* end_clock.h - a clock ended at once, or begun and then waited for. */
#ifndef PLI_TESTS_TABLE_END_CLOCK_H
#define PLI_TESTS_TABLE_END_CLOCK_H

#include <plait/table.h>

#include "base/base.h"

static inline plait_status end_clock(plait_job *job, bool begun) {
    plait_request *request;
    if (!begun) return plait_job_clock(job);
    PLI_TRY(plait_job_clock_begin(job, &request));
    return plait_request_wait(&request);
}

#endif
