/* Records about locks on vertices, as the writer and the reader of event logs need them. See eventlocks.h. */
#include "watch/eventlocks.h"

#include <string.h>

#include "watch/eventspan.h"

/* --- writing ------------------------------------------------------------------------------------------------------ */

static unsigned char *put(unsigned char *at, uint64_t x) { return pli_put_varint(at, x); }
static unsigned char *put_z(unsigned char *at, uint64_t x) { return pli_put_varint(at, pli_zigzag((int64_t)x)); }

static unsigned char *put_scopes(unsigned char *at, const pli_event_scopes *scopes) {
    const size_t length = strnlen(scopes->program, PLI_LOG_TEXT_MAX - 1);
    at = put(put(put(at, (uint64_t)scopes->scope), (uint64_t)scopes->round), length);
    memcpy(at, scopes->program, length);
    return at + length;
}

static unsigned char *put_lock(unsigned char *at, const pli_event_lock *lock, pli_stream_memory *memory) {
    at = put(put_z(at, lock->vertex - memory->vertex), 2 * (uint64_t)lock->mode + lock->wrote);
    at = put_z(put(at, (uint64_t)lock->origin), lock->number - memory->number);
    memory->vertex = lock->vertex;
    memory->number = lock->number;
    return put(put(at, lock->at), lock->version);
}

static unsigned char *put_use(unsigned char *at, const pli_event *event) {
    uint64_t vertex = 0;
    at = put(put(put(at, event->seq), event->row), (uint64_t)event->n);
    for (int64_t i = 0; i < event->n; i++) {
        const pli_event_use *use = &event->info.use[i];
        at = put_z(put_z(at, use->vertex - vertex), use->id - use->vertex);
        at = pli_put_u32(put(put(at, use->version), use->wrote), use->digest);
        if (use->wrote) at = pli_put_u32(at, use->fresh);
        vertex = use->vertex;
    }
    return at;
}

unsigned char *pli_put_of_locks(unsigned char *at, const pli_event *event, pli_stream_memory *memory) {
    switch (event->kind) {
    case PLI_EVENT_SCOPES: return put_scopes(at, event->info.scopes);
    case PLI_EVENT_LOCK:
    case PLI_EVENT_UNLOCK: return put_lock(at, event->info.lock, memory);
    case PLI_EVENT_USE: return put_use(at, event);
    default: return put(at, event->seq); /* REST */
    }
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static bool take_near(pli_log_span *s, uint64_t base, uint64_t *out) {
    if (!pli_log_take(s, UINT64_MAX, out)) return false;
    *out = base + (uint64_t)pli_unzigzag(*out);
    return true;
}

static bool take_scopes(pli_locks_read *read, pli_log_span *s, pli_event *event) {
    uint64_t scope, round;
    if (!pli_log_take(s, 2, &scope) || !pli_log_take(s, INT32_MAX, &round) || !pli_log_take_text(s, read->text))
        return false;
    read->scopes = (pli_event_scopes){ .program = read->text, .scope = (int32_t)scope, .round = (int64_t)round };
    event->info.scopes = &read->scopes;
    return true;
}

static bool take_lock(pli_locks_read *read, pli_log_span *s, pli_stream_memory *memory, pli_event *event) {
    uint64_t vertex, kind, origin, number, at, version;
    if (!take_near(s, memory->vertex, &vertex) || !pli_log_take(s, 5, &kind) ||
        !pli_log_take(s, PLI_LOG_RANKS_MAX - 1, &origin) || !take_near(s, memory->number, &number) ||
        number > UINT32_MAX || !pli_log_take(s, UINT32_MAX, &at) || !pli_log_take(s, UINT64_MAX, &version))
        return false;
    memory->vertex = vertex;
    memory->number = number;
    read->lock = (pli_event_lock){ .vertex = vertex,
                                   .version = version,
                                   .origin = (int32_t)origin,
                                   .number = (uint32_t)number,
                                   .at = (uint32_t)at,
                                   .mode = (uint32_t)(kind >> 1),
                                   .wrote = (kind & 1) != 0 };
    event->info.lock = &read->lock;
    return true;
}

static bool take_use(pli_locks_read *read, pli_log_span *s, pli_event *event, bool *no_memory) {
    uint64_t vertex = 0, n;
    if (!pli_log_take(s, UINT32_MAX, &event->seq) || !pli_log_take(s, UINT64_MAX, &event->row) ||
        !pli_log_take(s, UINT32_MAX, &n) || n > (uint64_t)(s->end - s->at)) /* each takes more than a byte */
        return false;
    event->n = (int64_t)n;
    *no_memory = !pli_grow((void **)&read->use, &read->uses_capacity, event->n + 1, sizeof *read->use);
    if (*no_memory) return false;
    for (uint64_t i = 0; i < n; i++) {
        pli_event_use *use = &read->use[i];
        uint64_t       wrote;
        if (!take_near(s, vertex, &vertex) || !take_near(s, vertex, &use->id) ||
            !pli_log_take(s, UINT64_MAX, &use->version) || !pli_log_take(s, 1, &wrote) ||
            !pli_log_take_u32(s, &use->digest))
            return false;
        use->vertex = vertex;
        use->wrote = wrote != 0;
        use->fresh = use->digest;
        if (use->wrote && !pli_log_take_u32(s, &use->fresh)) return false;
    }
    event->info.use = read->use;
    return true;
}

const unsigned char *pli_take_of_locks(pli_locks_read *read, const unsigned char *at, const unsigned char *end,
                                       pli_stream_memory *memory, pli_event *event, bool *no_memory) {
    pli_log_span s = { at, end };
    bool         taken;
    switch (event->kind) {
    case PLI_EVENT_SCOPES: taken = take_scopes(read, &s, event); break;
    case PLI_EVENT_LOCK:
    case PLI_EVENT_UNLOCK: taken = take_lock(read, &s, memory, event); break;
    case PLI_EVENT_USE: taken = take_use(read, &s, event, no_memory); break;
    default: taken = pli_log_take(&s, INT32_MAX, &event->seq); /* REST */
    }
    return taken ? s.at : NULL;
}
