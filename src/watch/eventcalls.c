/* Records about server functions that update tables, as the writer and the reader of event logs need them. See
 * eventcalls.h. */
#include "watch/eventcalls.h"

#include <string.h>

#include "watch/eventspan.h"

bool pli_call_is_known(const pli_stream_memory *memory, const pli_event *event) {
    const pli_event_call *call = event->info.call;
    if (call->tables < 1 || call->tables > PLI_LOG_CALL_TABLES_MAX) return false;
    for (int32_t t = 0; t < call->tables; t++) {
        if (pli_memory_piece_of(memory, call->table[t], -1) == NULL) return false;
        for (int64_t i = 0; i < event->n; i++)
            if (pli_memory_piece_of(memory, call->table[t], call->ran[i].shard) == NULL) return false;
    }
    return !event->server || (event->n == 1 && call->ran[0].shard >= 0);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

unsigned char *pli_put_call(unsigned char *at, const pli_event *event) {
    const pli_event_call *call = event->info.call;
    const size_t          length = strnlen(call->function, PLI_LOG_TEXT_MAX - 1);
    at = pli_put_varint(pli_put_varint(at, event->seq), length);
    memcpy(at, call->function, length);
    at = pli_put_u32(at + length, call->asked);
    at = pli_put_varint(at, (uint64_t)call->tables);
    for (int32_t t = 0; t < call->tables; t++) at = pli_put_varint(at, (uint64_t)call->table[t]);
    at = pli_put_varint(at, (uint64_t)event->n);
    for (int64_t i = 0; i < event->n; i++) {
        at = pli_put_varint(at, (uint64_t)(call->ran[i].shard + 1));
        at = pli_put_u32(pli_put_u32(at, call->ran[i].answer), call->ran[i].wrote);
    }
    return at;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool take_tables(pli_call_read *read, pli_log_span *s) {
    uint64_t n, table;
    if (!pli_log_take(s, PLI_LOG_CALL_TABLES_MAX, &n)) return false;
    for (uint64_t t = 0; t < n; t++) {
        if (!pli_log_take(s, PLI_LOG_TABLES_MAX - 1, &table)) return false;
        read->table[t] = (int32_t)table;
    }
    read->call = (pli_event_call){ .function = read->text, .tables = (int32_t)n, .table = read->table };
    return true;
}

static bool take_ran(pli_call_read *read, pli_log_span *s, pli_event *event, bool *no_memory) {
    uint64_t n, shard;
    if (!pli_log_take(s, PLI_LOG_SHARDS_MAX, &n) || n > (uint64_t)(s->end - s->at))
        return false; /* each has nine bytes */
    event->n = (int64_t)n;
    *no_memory = !pli_grow((void **)&read->ran, &read->ran_capacity, event->n + 1, sizeof *read->ran);
    if (*no_memory) return false;
    for (uint64_t i = 0; i < n; i++) {
        pli_event_ran *ran = &read->ran[i];
        if (!pli_log_take(s, PLI_LOG_SHARDS_MAX, &shard) || !pli_log_take_u32(s, &ran->answer) ||
            !pli_log_take_u32(s, &ran->wrote))
            return false;
        ran->shard = (int32_t)shard - 1;
    }
    read->call.ran = read->ran;
    return true;
}

const unsigned char *pli_take_call(pli_call_read *read, const unsigned char *at, const unsigned char *end,
                                   const pli_stream_memory *memory, pli_event *event, bool *no_memory) {
    pli_log_span s = { at, end };
    uint32_t     asked;
    if (!pli_log_take(&s, INT64_MAX, &event->seq) || !pli_log_take_text(&s, read->text) ||
        !pli_log_take_u32(&s, &asked) || !take_tables(read, &s) || !take_ran(read, &s, event, no_memory))
        return NULL;
    read->call.asked = asked;
    event->info.call = &read->call;
    return pli_call_is_known(memory, event) ? s.at : NULL;
}
