/* watch/eventspan.h - how records about locks and calls are taken from the bytes of a log: nothing beyond the end is
 * read, and what takes nothing leaves the rest as it was. */
#ifndef PLI_WATCH_EVENTSPAN_H
#define PLI_WATCH_EVENTSPAN_H

#include <string.h>

#include "watch/eventfile.h"

typedef struct pli_log_span {
    const unsigned char *at, *end;
} pli_log_span;

/** Takes a number that is at most max; false: there is none. */
static inline bool pli_log_take(pli_log_span *s, uint64_t max, uint64_t *out) {
    const unsigned char *after = pli_get_varint(s->at, s->end, out);
    if (after == NULL || *out > max) return false;
    s->at = after;
    return true;
}

static inline bool pli_log_take_u32(pli_log_span *s, uint32_t *out) {
    if (s->end - s->at < 4) return false;
    *out = pli_log_u32(s->at);
    s->at += 4;
    return true;
}

/** Takes a text behind its length; false: there is none, or it has a zero. */
static inline bool pli_log_take_text(pli_log_span *s, char text[PLI_LOG_TEXT_MAX]) {
    uint64_t length;
    if (!pli_log_take(s, PLI_LOG_TEXT_MAX - 1, &length) || length > (size_t)(s->end - s->at) ||
        memchr(s->at, '\0', length) != NULL)
        return false;
    memcpy(text, s->at, length);
    text[length] = '\0';
    s->at += length;
    return true;
}

#endif
