/* Messages of the lock machines: made, checked, sent. See wire.h. */
#include "vertex/locks/wire.h"

#include "vertex/owner.h"

pli_msg *pli_lock_own(pli_msg *msg) {
    if (msg->body == NULL || (pli_slab_is_mine(msg->body) && (uintptr_t)pli_msg_body(msg) % 8 == 0)) return msg;
    pli_msg *mine = pli_msg_new(msg->head.body_bytes);
    if (mine != NULL) {
        mine->head = msg->head;
        mine->origin_ns = msg->origin_ns;
        memcpy(pli_msg_body(mine), pli_msg_body(msg), msg->head.body_bytes);
    }
    pli_msg_free(&msg);
    return mine;
}

int32_t pli_lock_owner(const pli_locks *l, uint64_t vertex) {
    return pli_owner_of(l->first, l->ranks, (int64_t)vertex);
}

bool pli_lock_check(const pli_locks *l, const pli_msg *msg, bool packed) {
    pli_lock_head head;
    uint64_t      written = 0;
    if (msg->head.body_bytes < sizeof head) return false;
    memcpy(&head, pli_msg_body(msg), sizeof head);
    if (head.origin < 0 || head.origin >= l->ranks || head.n == 0 || head.at > head.n) return false;
    if (msg->head.body_bytes < pli_lock_bytes(l, head.n, 0)) return false;
    const pli_lock_entry *entry = (const void *)((const char *)pli_msg_body(msg) + sizeof head);
    for (uint32_t i = 0; i < head.n; i++) {
        if (entry[i].vertex >= (uint64_t)l->first[l->ranks] || entry[i].mode >= PLI_LOCK_MODES) return false;
        if (entry[i].wrote > 1 || (i > 0 && entry[i].vertex <= entry[i - 1].vertex)) return false;
        written += entry[i].wrote;
    }
    return msg->head.body_bytes == pli_lock_bytes(l, head.n, packed ? written : head.n);
}

bool pli_lock_send(pli_locks *l, uint64_t now_ns, int32_t to, uint16_t kind, pli_msg *msg, pli_out *out) {
    msg->head.dst = to;
    msg->head.kind = (uint16_t)(kind | l->era % PLI_LOCKS_ERAS << PLI_LOCKS_ERA_SHIFT);
    if (kind == PLI_LOCKS_RELEASE || kind == PLI_LOCKS_NOTICE) l->sent++;
    if (l->keeps && l->sink != NULL && l->sink->keep != NULL)
        l->sink->keep(l->sink->user, NULL, l->rank, PLI_SIDE_LOCKS);
    return pli_links_send(&l->links, now_ns, msg, out);
}
