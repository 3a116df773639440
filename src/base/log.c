/* base/log.c - hands a line of talk to the sink that the caller was given.
 *
 * The level is a volume and is looked at before anything is formatted: a trace line that nobody wants costs one
 * comparison. The text handed on is safe to show on a terminal. There is no global sink; a room that talks holds a
 * plait_log, or NULL and is silent. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

void pli_log(const plait_log *log, plait_log_level level, int32_t rank, const char *room, const char *fmt, ...) {
    if (log == NULL || log->fn == NULL || level == PLAIT_LOG_NONE || level > log->max_level) return;
    char    text[1024], shown[1024]; /* a longer line is cut */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pli_printable(shown, sizeof shown, text);
    log->fn(log->user, level, rank, room, shown);
}
