/* base/log.h - rooms talk through a plait_log that they were given; NULL is silence. */
#ifndef PLI_BASE_LOG_H
#define PLI_BASE_LOG_H

#include <plait/log.h>

/** Formats and hands on one line if the sink wants this level. Any thread. */
void pli_log(const plait_log *log, plait_log_level level, int32_t rank, const char *room, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
