/* The life of a lock machine: its eras, each with owners of its own. See locks.h. */
#include "vertex/locks/wire.h"

/* Locks and values of the own vertices. */
static bool make_own(pli_locks *l, const int64_t *first) {
    const size_t owned = (size_t)(first[l->rank + 1] - first[l->rank]);
    l->first = first;
    l->granted_last = &l->granted;
    l->notice_last = &l->notice;
    l->lock = pli_calloc(owned, sizeof *l->lock);
    l->value = pli_calloc(owned, l->value_bytes);
    return l->lock != NULL && l->value != NULL;
}

static void free_own(pli_locks *l) {
    const int64_t owned = l->lock != NULL ? l->first[l->rank + 1] - l->first[l->rank] : 0;
    for (int64_t v = 0; v < owned; v++)
        for (pli_lock_scope *s = l->lock[v].first, *next; s != NULL; s = next) {
            next = s->next;
            pli_lock_free_scope(s);
        }
    for (pli_lock_scope *s; (s = pli_locks_next(l)) != NULL;) pli_lock_free_scope(s);
    pli_msg_free_list(&l->notice);
    pli_free(l->lock);
    pli_free(l->value);
    l->lock = NULL;
    l->value = NULL;
}

bool pli_locks_init(pli_locks *l, int32_t rank, int32_t ranks, const int64_t *first, size_t value_bytes,
                    uint64_t resend_after_ns) {
    *l = (pli_locks){ .rank = rank, .ranks = ranks, .value_bytes = value_bytes, .living = ranks };
    l->absent = pli_calloc((size_t)ranks, 1);
    l->died = pli_calloc((size_t)ranks, 1);
    if (l->absent != NULL && l->died != NULL && make_own(l, first) &&
        pli_links_init(&l->links, ranks, PLI_PORT_LOCKS, resend_after_ns))
        return true;
    free_own(l);
    pli_free(l->absent);
    pli_free(l->died);
    *l = (pli_locks){ 0 };
    return false;
}

bool pli_locks_begin_anew(pli_locks *l, const int64_t *first, const uint8_t *absent) {
    free_own(l);
    memcpy(l->absent, absent, (size_t)l->ranks);
    l->living = 0;
    for (int32_t r = l->ranks - 1; r >= 0; r--) {
        if (absent[r]) continue;
        l->lead = r;
        l->living++;
    }
    l->era++;
    l->asked = l->held = 0;
    l->sent = l->received = l->probe = 0;
    memset(&l->round, 0, sizeof l->round);
    pli_locks_active(l);
    return make_own(l, first);
}

bool pli_locks_lost(const pli_locks *l) {
    for (int32_t r = 0; r < l->ranks; r++)
        if (l->died[r] && !l->absent[r]) return true;
    return false;
}

void pli_locks_destroy(pli_locks *l) {
    if (l->absent == NULL) return;
    free_own(l);
    pli_links_destroy(&l->links);
    pli_free(l->absent);
    pli_free(l->died);
    *l = (pli_locks){ 0 };
}
