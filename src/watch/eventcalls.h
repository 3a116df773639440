/* watch/eventcalls.h - the record of an event log about a server function that updates tables: CALL. eventlog.h has its
 * fields. */
#ifndef PLI_WATCH_EVENTCALLS_H
#define PLI_WATCH_EVENTCALLS_H

#include "watch/eventcode.h"

enum { PLI_LOG_CALL_TABLES_MAX = 64, PLI_LOG_RAN_BYTES = 20 /* of what ran at a shard, at most */ };

/** Does the stream know all tables and shards of the event? Else it cannot be read again. */
bool pli_call_is_known(const pli_stream_memory *memory, const pli_event *event);
/** Writes the fields behind the clock; returns the address after them. */
unsigned char *pli_put_call(unsigned char *at, const pli_event *event);

/* What the event that was read points to. */
typedef struct pli_call_read {
    pli_event_call call;
    char           text[PLI_LOG_TEXT_MAX];
    int32_t        table[PLI_LOG_CALL_TABLES_MAX];
    pli_event_ran *ran; /* the caller frees it */
    int64_t        ran_capacity;
} pli_call_read;

/** Reads the fields behind the clock; returns the address after them. NULL: they are no such fields, or *no_memory. */
const unsigned char *pli_take_call(pli_call_read *read, const unsigned char *at, const unsigned char *end,
                                   const pli_stream_memory *memory, pli_event *event, bool *no_memory);

#endif
