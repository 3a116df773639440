/* The machine that owns locks and values, and asks for scopes. See locks.h. */
#include "vertex/locks/locks.h"

#include "vertex/locks/wire.h"

#ifdef PLI_TESTING
_Atomic int32_t pli_lock_planted;
#define PLANTED(mistake) (pli_lock_planted == (mistake))
#else
#define PLANTED(mistake) false
#endif

static void no_memory(pli_out *out) { pli_out_fail(out, PLAIT_ENOMEM, "no memory for a lock's messages"); }

static bool owns(const pli_locks *l, uint64_t vertex) {
    return vertex >= (uint64_t)l->first[l->rank] && vertex < (uint64_t)l->first[l->rank + 1];
}

static pli_lock *lock_of(pli_locks *l, uint64_t vertex) { return &l->lock[vertex - (uint64_t)l->first[l->rank]]; }

void *pli_locks_value(pli_locks *l, int64_t vertex) {
    return l->value + (size_t)(vertex - l->first[l->rank]) * l->value_bytes;
}

/* --- one lock ----------------------------------------------------------------------------------------------------- */

/* Is there room beside those that have it? (L2) */
static bool has_room(const pli_lock *lock, uint32_t mode) {
    if (mode == PLI_LOCK_NONE) return true;
    if (PLANTED(PLI_MISTAKE_READS_WRITTEN) && mode == PLI_LOCK_READ) return true;
    if (PLANTED(PLI_MISTAKE_WRITES_READ) && mode == PLI_LOCK_WRITE) return lock->readers >= 0;
    if (PLANTED(PLI_MISTAKE_TWO_WRITERS) && mode == PLI_LOCK_WRITE) return lock->readers <= 0;
    return mode == PLI_LOCK_READ ? lock->readers >= 0 : lock->readers == 0;
}

static void take_lock(pli_lock *lock, uint32_t mode) {
    if (mode == PLI_LOCK_WRITE) lock->readers = -1;
    else if (mode == PLI_LOCK_READ) lock->readers = lock->readers < 0 ? 1 : lock->readers + 1;
}

static void free_lock(pli_lock *lock, uint32_t mode) {
    const int32_t gone = PLANTED(PLI_MISTAKE_FREES_TWICE) ? 2 : 1;
    if (mode == PLI_LOCK_WRITE) lock->readers = 0;
    else if (mode == PLI_LOCK_READ) lock->readers = lock->readers > gone ? lock->readers - gone : 0;
}

/* An event about a lock: for the audit, which proves by them what an update has read. at: how many locks of its scope
 * had been taken before. */
static void raise_lock(const pli_locks *l, pli_event_kind kind, const pli_lock_entry *entry, int32_t origin,
                       uint32_t number, uint32_t at, uint64_t version) {
    if (l->sink == NULL) return;
    const pli_event_lock lock = { .vertex = entry->vertex, .version = version, .origin = origin, .number = number,
                                  .at = at, .mode = entry->mode,
                                  .wrote = kind == PLI_EVENT_UNLOCK && entry->wrote != 0 };
    pli_event_raise(l->sink, &(pli_event){ .kind = kind, .rank = l->rank, .info.lock = &lock });
}

/* --- a request's way ---------------------------------------------------------------------------------------------- */

void pli_lock_free_scope(pli_lock_scope *s) {
    pli_msg_free(&s->msg);
    pli_free(s);
}

/* Takes a message that was checked, and that nobody else reads. NULL: no memory, and the message is freed. */
static pli_lock_scope *scope_of(pli_msg *msg) {
    pli_lock_scope *s = pli_calloc(1, sizeof *s);
    if (s == NULL) {
        pli_msg_free(&msg);
        return NULL;
    }
    const pli_lock_head *head = pli_msg_body(msg);
    s->origin = head->origin;
    s->n = head->n;
    s->at = head->at;
    s->number = head->number;
    s->tag = head->tag;
    s->msg = msg;
    s->entry = (pli_lock_entry *)((char *)pli_msg_body(msg) + sizeof *head);
    s->value = (unsigned char *)(s->entry + s->n);
    return s;
}

/* The vertex that is next on the way: they are visited from the lowest on (L1). */
static uint32_t next_of(const pli_lock_scope *s) {
    return PLANTED(PLI_MISTAKE_BACKWARDS) && s->tag % 2 == 1 ? s->n - 1 - s->at : s->at;
}

static void add_value(pli_locks *l, pli_lock_scope *s, uint32_t i) {
    s->entry[i].version = lock_of(l, s->entry[i].vertex)->version;
    memcpy(s->value + i * l->value_bytes, pli_locks_value(l, (int64_t)s->entry[i].vertex), l->value_bytes);
}

static void give_lock(pli_locks *l, const pli_lock_scope *s, uint32_t i) {
    pli_lock *lock = lock_of(l, s->entry[i].vertex);
    take_lock(lock, s->entry[i].mode);
    raise_lock(l, PLI_EVENT_LOCK, &s->entry[i], s->origin, s->number, s->at, lock->version);
}

static void grant(pli_locks *l, pli_lock_scope *s, pli_out *out) {
    s->next = NULL;
    *l->granted_last = s;
    l->granted_last = &s->next;
    l->passive = false;
    pli_out_ring(out);
}

/* Hands a request on: to the owner of its next vertex or, if it has all, to who asked. */
static void hand_on(pli_locks *l, uint64_t now_ns, pli_lock_scope *s, pli_out *out) {
    pli_lock_head *head = pli_msg_body(s->msg);
    const bool     all = s->at == s->n;
    if (all && s->origin == l->rank) {
        grant(l, s, out);
        return;
    }
    head->at = s->at;
    const int32_t to = all ? s->origin : pli_lock_owner(l, s->entry[next_of(s)].vertex);
    if (!pli_lock_send(l, now_ns, to, all ? PLI_LOCKS_GRANT : PLI_LOCKS_ACQUIRE, s->msg, out)) no_memory(out);
    s->msg = NULL; /* taken in any case */
    pli_free(s);
}

/* Takes the locks that are here, one after the other. Where one is not free, the request waits behind others (L4). */
static void go_on(pli_locks *l, uint64_t now_ns, pli_lock_scope *s, pli_out *out) {
    for (; s->at < s->n && owns(l, s->entry[next_of(s)].vertex); s->at++) {
        const uint32_t  i = next_of(s);
        const uint32_t  mode = s->entry[i].mode;
        pli_lock       *lock = lock_of(l, s->entry[i].vertex);
        const bool      skips = PLANTED(PLI_MISTAKE_SKIPS_LAST) && s->at == s->n - 1;
        if (mode != PLI_LOCK_NONE && !skips && (lock->first != NULL || !has_room(lock, mode))) {
            if (PLANTED(PLI_MISTAKE_READS_EARLY)) add_value(l, s, i);
            s->next = NULL;
            if (lock->first == NULL) lock->first = s;
            else lock->last->next = s;
            lock->last = s;
            l->waits++;
            return;
        }
        if (!skips) give_lock(l, s, i);
        add_value(l, s, i);
    }
    hand_on(l, now_ns, s, out);
}

/* Lets those in that wait for a lock, as far as there is room, and sends them on their way. */
static void wake(pli_locks *l, uint64_t now_ns, uint64_t vertex, pli_out *out) {
    pli_lock *lock = lock_of(l, vertex);
    while (lock->first != NULL && !PLANTED(PLI_MISTAKE_FORGETS_WAITING)) {
        pli_lock_scope *s = lock->first;
        const uint32_t  i = next_of(s);
        if (!has_room(lock, s->entry[i].mode)) return;
        lock->first = s->next;
        give_lock(l, s, i);
        if (!PLANTED(PLI_MISTAKE_READS_EARLY)) add_value(l, s, i);
        s->at++;
        go_on(l, now_ns, s, out);
    }
}

/* --- what a rank asks --------------------------------------------------------------------------------------------- */

bool pli_locks_ask(pli_locks *l, uint64_t now_ns, uint64_t tag, int64_t n, const pli_lock_entry *entry, pli_out *out) {
    pli_msg *msg = n < UINT32_MAX ? pli_msg_new(pli_lock_bytes(l, (uint64_t)n, (uint64_t)n)) : NULL;
    if (msg == NULL) return false;
    memset(pli_msg_body(msg), 0, msg->head.body_bytes);
    *(pli_lock_head *)pli_msg_body(msg) =
        (pli_lock_head){ .origin = l->rank, .n = (uint32_t)n, .number = (uint32_t)l->asked, .tag = tag };
    pli_lock_scope *s = scope_of(msg);
    if (s == NULL) return false;
    for (int64_t i = 0; i < n; i++) s->entry[i] = (pli_lock_entry){ entry[i].vertex, 0, entry[i].mode, 0 };
    l->asked++;
    l->held++;
    l->passive = false;
    go_on(l, now_ns, s, out);
    return true;
}

pli_lock_scope *pli_locks_next(pli_locks *l) {
    pli_lock_scope *s = l->granted;
    if (s == NULL) return NULL;
    l->granted = s->next;
    if (l->granted == NULL) l->granted_last = &l->granted;
    return s;
}

static void get_lock_back(pli_locks *l, const pli_lock_head *of, const pli_lock_entry *entry) {
    pli_lock *lock = lock_of(l, entry->vertex);
    free_lock(lock, entry->mode);
    if (entry->mode != PLI_LOCK_NONE || entry->wrote)
        raise_lock(l, PLI_EVENT_UNLOCK, entry, of->origin, of->number, 0, lock->version);
}

/* A part of a scope goes back to this rank: stores what is new, then frees the locks, then looks who waits. */
static void take_back(pli_locks *l, uint64_t now_ns, const pli_lock_head *of, uint32_t n, const pli_lock_entry *entry,
                      const unsigned char *value, bool packed, pli_out *out) {
    if (PLANTED(PLI_MISTAKE_WAKES_EARLY))
        for (uint32_t i = 0; i < n; i++) {
            get_lock_back(l, of, &entry[i]);
            wake(l, now_ns, entry[i].vertex, out);
        }
    for (uint32_t i = 0; i < n; i++) {
        if (entry[i].wrote) {
            pli_lock *lock = lock_of(l, entry[i].vertex);
            const bool lost = PLANTED(PLI_MISTAKE_LOSES_WRITE) && lock->version % 7 == 3;
            if (!lost) memcpy(pli_locks_value(l, (int64_t)entry[i].vertex), value, l->value_bytes);
            lock->version++;
        }
        if (entry[i].wrote || !packed) value += l->value_bytes;
        if (!PLANTED(PLI_MISTAKE_WAKES_EARLY)) get_lock_back(l, of, &entry[i]);
    }
    for (uint32_t i = 0; i < n && !PLANTED(PLI_MISTAKE_WAKES_EARLY); i++) wake(l, now_ns, entry[i].vertex, out);
}

/* The part of a scope that another rank owns: its entries, and the values that are new. */
static bool send_back(pli_locks *l, uint64_t now_ns, int32_t to, const pli_lock_scope *s, uint32_t i, uint32_t n,
                      pli_out *out) {
    uint64_t written = 0;
    for (uint32_t k = 0; k < n; k++) written += s->entry[i + k].wrote;
    pli_msg *msg = pli_msg_new(pli_lock_bytes(l, n, written));
    if (msg == NULL) return false;
    pli_lock_head *head = pli_msg_body(msg);
    *head = (pli_lock_head){ .origin = l->rank, .n = n, .at = n, .number = s->number, .tag = s->tag };
    memcpy(head + 1, &s->entry[i], n * sizeof *s->entry);
    unsigned char *value = (unsigned char *)(head + 1) + n * sizeof *s->entry;
    for (uint32_t k = 0; k < n; k++) {
        if (!s->entry[i + k].wrote) continue;
        memcpy(value, s->value + (i + k) * l->value_bytes, l->value_bytes);
        value += l->value_bytes;
    }
    return pli_lock_send(l, now_ns, to, PLI_LOCKS_RELEASE, msg, out);
}

bool pli_locks_release(pli_locks *l, uint64_t now_ns, pli_lock_scope *scope, pli_out *out) {
    bool sent = true;
    for (uint32_t i = 0; i < scope->n;) {
        const int32_t owner = pli_lock_owner(l, scope->entry[i].vertex);
        uint32_t      n = 1;
        while (i + n < scope->n && scope->entry[i + n].vertex < (uint64_t)l->first[owner + 1]) n++;
        if (owner == l->rank)
            take_back(l, now_ns, pli_msg_body(scope->msg), n, &scope->entry[i], scope->value + i * l->value_bytes,
                      false, out);
        else
            sent = send_back(l, now_ns, owner, scope, i, n, out) && sent;
        i += n;
    }
    l->held--;
    pli_lock_free_scope(scope);
    return sent;
}

/* --- notices ------------------------------------------------------------------------------------------------------ */

static void note(pli_locks *l, pli_msg *msg, pli_out *out) {
    msg->next = NULL;
    *l->notice_last = msg;
    l->notice_last = &msg->next;
    l->passive = false;
    pli_out_ring(out);
}

bool pli_locks_notify(pli_locks *l, uint64_t now_ns, int32_t to, const pli_lock_notice *notice, pli_out *out) {
    const pli_lock_told told = { notice->vertex, notice->version, notice->change };
    pli_msg            *msg = pli_msg_new(sizeof told + 2 * l->value_bytes);
    if (msg == NULL) return false;
    char *body = pli_msg_body(msg);
    memcpy(body, &told, sizeof told);
    memcpy(body + sizeof told, notice->was, l->value_bytes);
    memcpy(body + sizeof told + l->value_bytes, notice->value, l->value_bytes);
    if (to != l->rank) return pli_lock_send(l, now_ns, to, PLI_LOCKS_NOTICE, msg, out);
    msg->head.src = l->rank;
    note(l, msg, out);
    return true;
}

bool pli_locks_noticed(pli_locks *l, pli_lock_notice *notice_out) {
    pli_msg *msg = l->notice;
    if (msg == NULL) return false;
    l->notice = msg->next;
    if (l->notice == NULL) l->notice_last = &l->notice;
    const char   *body = pli_msg_body(msg);
    pli_lock_told told;
    memcpy(&told, body, sizeof told);
    *notice_out = (pli_lock_notice){ told.vertex, told.version, told.change, body + sizeof told,
                                     body + sizeof told + l->value_bytes, msg };
    return true;
}

/* --- messages ----------------------------------------------------------------------------------------------------- */

/* Do all entries that this rank is to take back belong to it? */
static bool owns_all(const pli_locks *l, const pli_msg *msg) {
    const pli_lock_head  *head = pli_msg_body(msg);
    const pli_lock_entry *entry = (const void *)(head + 1);
    for (uint32_t i = 0; i < head->n; i++)
        if (!owns(l, entry[i].vertex)) return false;
    return true;
}

/* Is a request here right: its next vertex is this rank's, or it has all and comes back to who asked? */
static bool is_here(const pli_locks *l, uint16_t kind, const pli_msg *msg) {
    const pli_lock_head  *head = pli_msg_body(msg);
    const pli_lock_entry *entry = (const void *)(head + 1);
    if (kind == PLI_LOCKS_GRANT) return head->at == head->n && head->origin == l->rank;
    const bool     back = PLANTED(PLI_MISTAKE_BACKWARDS) && head->tag % 2 == 1;
    const uint32_t i = back ? head->n - 1 - head->at : head->at;
    return head->at < head->n && owns(l, entry[i].vertex);
}

static void take_scope(pli_locks *l, uint64_t now_ns, bool all, pli_msg *msg, pli_out *out) {
    pli_lock_scope *s = scope_of(msg);
    if (s == NULL) no_memory(out);
    else if (all) grant(l, s, out);
    else go_on(l, now_ns, s, out);
}

static void take_release(pli_locks *l, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const pli_lock_head  *head = pli_msg_body(msg);
    const pli_lock_entry *entry = (const void *)(head + 1);
    l->received++;
    take_back(l, now_ns, head, head->n, entry, (const unsigned char *)(entry + head->n), true, out);
    pli_msg_free(&msg);
}

static bool is_notice(const pli_locks *l, const pli_msg *msg) {
    pli_lock_told told;
    if (msg->head.body_bytes != sizeof told + 2 * l->value_bytes) return false;
    memcpy(&told, pli_msg_body(msg), sizeof told);
    return told.vertex < (uint64_t)l->first[l->ranks];
}

static void take(pli_locks *l, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const uint32_t era = msg->head.kind >> PLI_LOCKS_ERA_SHIFT;
    const uint16_t kind = msg->head.kind & ((1 << PLI_LOCKS_ERA_SHIFT) - 1);
    const int32_t  src = msg->head.src;
    if (era != l->era % PLI_LOCKS_ERAS && !PLANTED(PLI_MISTAKE_TAKES_OLD)) { /* it was sent before all began anew */
        pli_msg_free(&msg);
        return;
    }
    if (kind <= PLI_LOCKS_RELEASE) msg = pli_lock_own(msg);
    if (msg == NULL) no_memory(out);
    else if ((kind == PLI_LOCKS_ACQUIRE || kind == PLI_LOCKS_GRANT) && pli_lock_check(l, msg, false) &&
             is_here(l, kind, msg))
        take_scope(l, now_ns, kind == PLI_LOCKS_GRANT, msg, out);
    else if (kind == PLI_LOCKS_RELEASE && pli_lock_check(l, msg, true) && owns_all(l, msg))
        take_release(l, now_ns, msg, out);
    else if (kind == PLI_LOCKS_NOTICE && is_notice(l, msg)) {
        l->received++;
        note(l, msg, out);
    } else if (kind >= PLI_LOCKS_PROBE && kind <= PLI_LOCKS_QUIET) {
        pli_rest_on_message(l, now_ns, kind, msg, out);
        pli_msg_free(&msg);
    } else {
        pli_out_fail(out, PLAIT_EFORMAT, "a message about locks from rank %d is not one (kind %u)", src, kind);
        pli_msg_free(&msg);
    }
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_locks    *l = state;
    const int32_t src = msg->head.src;
    for (msg = pli_links_take(&l->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&l->links, src))
        take(l, now_ns, msg, out);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_locks *l = state;
    pli_links_wakeup(&l->links, now_ns, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_locks *l = state;
    (void)now_ns;
    if (event->kind != PLI_MEMBER_JOINED) pli_links_forget(&l->links, event->rank);
    if (event->kind == PLI_MEMBER_DIED && event->rank >= 0 && event->rank < l->ranks) l->died[event->rank] = 1;
    pli_out_ring(out);
}

const pli_machine_ops pli_locks_ops = {
    .name = "locks", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member
};
