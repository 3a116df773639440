/* plait/log.h - where the library's talk goes.
 *
 * The library never prints. A caller who wants to hear it hands a plait_log to the options of the object
 * at hand (plait_comm_opts, plait_data_opts, ...). There is no global sink: two jobs may live in one
 * process. Level = volume: error, warn, info (a few a run), debug (per object), trace (per message).
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

/** Receives one line of talk, without newline. Called from any thread, also from several at once.
 *  rank is -1 where no rank is meant; room is the part that speaks ("comm", "table", ...). */
typedef void plait_log_fn(void *user, plait_log_level level, int32_t rank, const char *room, const char *text);

/* A sink: borrowed by whoever it is given to, must outlive it. A NULL plait_log * is silence. */
typedef struct plait_log {
    plait_log_fn   *fn;
    void           *user;
    plait_log_level max_level; /* lines above are not formatted at all */
} plait_log;

#ifdef __cplusplus
}
#endif
#endif
