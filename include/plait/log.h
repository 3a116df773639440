/* plait/log.h - log lines: a caller's function receives them.
 *
 * The library never prints. A caller who wants the log lines sets a plait_log in the options of an object
 * (plait_comm_opts, plait_data_opts, ...). There is no global sink: two jobs may live in one process. The level says
 * how many lines to expect: error, warn, info (a few a run), debug (per object), trace (per message).
 */
#ifndef PLAIT_LOG_H
#define PLAIT_LOG_H

#include <plait/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum plait_log_level {
    PLAIT_LOG_NONE = 0,
    PLAIT_LOG_ERROR = 1,
    PLAIT_LOG_WARN = 2,
    PLAIT_LOG_INFO = 3,
    PLAIT_LOG_DEBUG = 4,
    PLAIT_LOG_TRACE = 5
} plait_log_level;

/** Receives one log line, without newline. Called from any thread, also from several at once.
 *  rank is -1 if the line is about no rank; room is the part of the library that writes it ("comm", "table", ...). */
typedef void plait_log_fn(void *user, plait_log_level level, int32_t rank, const char *room, const char *text);

/* A sink. The object that it is given to borrows it, so it must outlive that object. A NULL plait_log * is silence. */
typedef struct plait_log {
    plait_log_fn   *fn;
    void           *user;
    plait_log_level max_level; /* lines of a higher level are not even formatted */
} plait_log;

#ifdef __cplusplus
}
#endif
#endif
