/* watch/eventlocks.h - records of an event log about locks on vertices: SCOPES, LOCK, UNLOCK, USE, REST. eventlog.h has
 * their fields. */
#ifndef PLI_WATCH_EVENTLOCKS_H
#define PLI_WATCH_EVENTLOCKS_H

#include "watch/eventcode.h"

enum { PLI_LOG_USE_BYTES = 40 }; /* of a vertex in a USE, at most */

/** Writes the fields of an event; returns the address after them. */
unsigned char *pli_put_of_locks(unsigned char *at, const pli_event *event, pli_stream_memory *memory);

/* What the event that was read points to. */
typedef struct pli_locks_read {
    pli_event_lock   lock;
    pli_event_scopes scopes;
    char             text[PLI_LOG_TEXT_MAX];
    pli_event_use   *use; /* the caller frees it */
    int64_t          uses_capacity;
} pli_locks_read;

/** Reads the fields of event->kind; returns the address after them. NULL: they are no such fields, or *no_memory. */
const unsigned char *pli_take_of_locks(pli_locks_read *read, const unsigned char *at, const unsigned char *end,
                                       pli_stream_memory *memory, pli_event *event, bool *no_memory);

#endif
