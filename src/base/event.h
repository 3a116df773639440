/* base/event.h - the one seam through which the event log sees reads, updates and clocks: rooms raise events into a sink
 * that they were given; no sink costs one comparison. The machines of tables raise them today, a job gives no sink yet. */
#ifndef PLI_BASE_EVENT_H
#define PLI_BASE_EVENT_H

#include <stdint.h>

typedef enum pli_event_kind {
    PLI_EVENT_GET,   /* a worker was given values: version and what of its own they contain */
    PLI_EVENT_INC,   /* a worker added an update to its buffer or sent it                    */
    PLI_EVENT_CLOCK, /* a worker ended a clock                                               */
    PLI_EVENT_APPLY, /* an owner applied a push                                              */
    PLI_EVENT_DROP   /* an owner dropped a push: it came too late, or its policy said so     */
} pli_event_kind;

typedef struct pli_event {
    pli_event_kind kind;
    int32_t        rank, peer;     /* whose event; apply: the pusher                             */
    int32_t        table, shard;   /* -1: all                                                    */
    int64_t        first, rows;    /* dense range; first -1: `rows` rows by key                  */
    int64_t        clock, version; /* the worker's clock; of the values                          */
    uint64_t       seq;            /* apply: of the message in the pusher's stream; get: applied */
} pli_event;

typedef struct pli_event_sink {
    void (*raise)(void *user, const pli_event *event); /* must not call back; any thread */
    void *user;
} pli_event_sink;

static inline void pli_event_raise(const pli_event_sink *sink, const pli_event *event) {
    if (sink != 0 && sink->raise != 0) sink->raise(sink->user, event);
}

#endif
