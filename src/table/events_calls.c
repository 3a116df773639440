/* What server functions that update tables raise for the event log: a worker, that it has its answers; a shard, or a
 * worker's own mirrors, that the function has run there, with digests of what it answered and wrote. So the audit can
 * tell that each call ran once at each replica, in one order, and came to the same. */
#include "table/events.h"

void pli_raise_call(const pli_event_sink *sink, int32_t rank, int64_t clock, uint64_t number, int32_t n_tables,
                    const int32_t *tables, const pli_function_call *call, int32_t n, const pli_event_ran *ran) {
    if (sink == NULL) return;
    const pli_event_call of = { .function = call->fn->name, .asked = pli_function_asked(call), .tables = n_tables,
                                .table = tables, .ran = ran };
    pli_event_raise(sink, &(pli_event){ .kind = PLI_EVENT_CALL, .rank = rank, .table = -1, .clock = clock,
                                        .seq = number, .n = n, .info.call = &of });
}

void pli_raise_called(pli_server *server, uint64_t number, int32_t n_tables, const uint32_t *tables,
                      const pli_function_call *call, const void *answer, uint32_t wrote) {
    int32_t table[PLI_CALL_TABLES_MAX];
    for (int32_t i = 0; i < n_tables; i++) {
        table[i] = (int32_t)tables[i];
        server->table[tables[i]]->state++;
    }
    if (server->sink == NULL) return;
    const pli_event_ran  ran = { .shard = server->table[tables[0]]->shard.index,
                                 .answer = pli_function_answered(answer, answer == NULL ? 0 : call->answer_bytes),
                                 .wrote = wrote };
    const pli_event_call of = { .function = call->fn->name, .asked = pli_function_asked(call), .tables = n_tables,
                                .table = table, .ran = &ran };
    pli_event            event = pli_event_of_server(server, PLI_EVENT_CALL);
    event.clock = server->applied;
    event.seq = number;
    event.n = 1;
    event.info.call = &of;
    pli_event_raise(server->sink, &event);
}
