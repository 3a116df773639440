/* table/events.h - what tables raise for the event log (base/event.h), and what must be remembered for that: the
 * version of its shard that each copy has. A job without a sink does nothing of this. */
#ifndef PLI_TABLE_EVENTS_H
#define PLI_TABLE_EVENTS_H

#include "table/client/client.h"
#include "table/server/functions.h"
#include "table/server/server.h"

/** Raises an event that has no fields, of a rank as worker or server: BARRIER, LEAVE, STAND, DONE. */
void pli_raise(const pli_event_sink *sink, int32_t rank, bool server, pli_event_kind kind);

/* --- of a worker -------------------------------------------------------------------------------------------------- */

void pli_raise_job(const pli_event_sink *sink, int32_t rank, uint32_t life, const pli_layout *layout);
/** The worker's job goes on at this clock, from a checkpoint of this name; "": that is not known (yet). */
void pli_raise_begin(const pli_event_sink *sink, int32_t rank, int64_t clock, const char *from);
void pli_raise_table(const pli_event_sink *sink, int32_t rank, const pli_spec *spec, pli_event_way way);
/** From now on the client raises events, and servers say with each answer which updates their shard has applied. */
void pli_client_listen(pli_client *client, const pli_event_sink *sink);

/** An inc was accepted: keys [n], or the rows first .. first + n - 1. */
void pli_raise_inc(const pli_event_sink *sink, int32_t rank, const pli_spec *spec, int64_t n, const uint64_t *keys,
                   int64_t first, const void *delta);
/** One push is made of the table's pending updates; or (SUM) the sum of all workers' updates was applied to a
 *  mirror. */
void pli_raise_push(const pli_event_sink *sink, int32_t rank, pli_event_kind kind, int32_t table, int64_t clock);
/** A PUSH or CLOCK message leaves; its number is the stream's next. */
void pli_raise_send(const pli_client *client, int32_t server, const pli_msg *msg);
void pli_raise_clock(const pli_event_sink *sink, int32_t rank, int64_t clock);
/** The worker has zeroed the table, as all others have. */
void pli_raise_zero(const pli_event_sink *sink, int32_t rank, int32_t table, int64_t clock);
/** All workers have dropped the table. */
void pli_raise_drop(const pli_event_sink *sink, int32_t rank, int32_t table, int64_t clock);
/** From now on the worker's clocks end together with those of the group's other members; NULL: no more. Errors:
 *  ENOMEM. */
plait_status pli_raise_fellows(const pli_event_sink *sink, int32_t rank, int64_t clock, const plait_group *group,
                               plait_error *err);
/** The worker says that it stands in for `whom`, by the message that leaves for the server next. */
void pli_raise_view(const pli_client *client, int32_t server, int32_t whom);
/** With replicas: writes what was raised to the log before others can hear of it. */
void pli_client_keep_events(const pli_client *client);

/** A get is complete. */
void pli_raise_get(const pli_client *client, const pli_ask *ask);
/* What a get from a mirror is made of: so many sums, and the worker's own updates that are added to them: the pushes
 * from .. to - 1, which are part of sums under way, and the incs of the current clock. */
typedef struct pli_mirror_seen {
    uint64_t version, incs, from, to;
} pli_mirror_seen;
void pli_raise_mirror_get(const pli_event_sink *sink, int32_t rank, const pli_spec *spec, int64_t clock,
                           const pli_mirror_seen *seen, int64_t n, const uint64_t *keys, int64_t first);

/** The worker has the answers of its call of a server function that updates tables [n_tables], numbers: ran [n], one
 *  for each shard, or one of its own mirrors. n 0: it has failed. number: of the worker's calls that update, with this
 *  one. */
void pli_raise_call(const pli_event_sink *sink, int32_t rank, int64_t clock, uint64_t number, int32_t n_tables,
                    const int32_t *tables, const pli_function_call *call, int32_t n, const pli_event_ran *ran);

/** Notes that the rows keys [n] have come from the answer, and are held now. */
void pli_note_rows(const pli_client *client, pli_client_table *table, const pli_msg *answer, int64_t n,
                   const uint64_t *keys);
/** Notes the versions of those keys of the ask that copies serve: all but missing [m], in order. */
void pli_note_taken(const pli_client *client, pli_ask *ask, const uint32_t *missing, int64_t m);

/* --- of a server -------------------------------------------------------------------------------------------------- */

/** An event of the server about no table (-1). */
pli_event pli_event_of_server(const pli_server *server, pli_event_kind kind);
void pli_raise_server_job(const pli_server *server);
void pli_raise_server_table(const pli_server *server, const pli_spec *spec);
/** A part of a message was applied (or, kind DROP, dropped). */
void pli_raise_part(const pli_server *server, pli_event_kind kind, const pli_msg *msg, pli_server_table *table);
/** The shard was zeroed, which counts as a version of its own. */
void pli_raise_zeroed(const pli_server *server, pli_server_table *table);
/** The shards of those tables [n], numbers, have run the workers' call of that number: a version of its own, of each.
 *  wrote: pli_function_call's. */
void pli_raise_called(pli_server *server, uint64_t number, int32_t n_tables, const uint32_t *tables,
                      const pli_function_call *call, const void *answer, uint32_t wrote);
void pli_raise_tick(const pli_server *server, const pli_msg *msg);
/** The same for a SUM: the part that a worker's message has brought, and the clock that it has ended. */
void pli_raise_summed(const pli_server *server, pli_server_table *table, int32_t worker, uint64_t seq, int64_t clock);
void pli_raise_summed_tick(const pli_server *server, int32_t worker, uint64_t seq, int64_t clock);
/** This replica, which is not at place 0, serves from now on. */
void pli_raise_serve(const pli_server *server);
/** The replica is out (copies/moves.h). */
void pli_raise_out(const pli_server *server);
/** This replica, which serves, begins to hand its current state to a new replica on that rank, at that place. */
void pli_raise_handed(const pli_server *server, int32_t rank, int32_t place);
/** This new replica begins with exactly what the one on that rank, at that place, has handed to it. (Its rows may
 *  follow, but count as there: whatever is applied meanwhile is in them.) */
void pli_raise_copied(const pli_server *server, int32_t rank, int32_t place);
void pli_server_keep_events(const pli_server *server);
void pli_raise_gone(const pli_server *server, int32_t worker);

#endif
