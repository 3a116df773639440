/* vertex/locks/wire.h - messages between lock machines, and what their files share. Little-endian. A message's
 * kind has the era in its upper bits.
 *
 *     ACQUIRE, GRANT   head, entry [n], value [n]
 *     RELEASE          head, entry [n], values of the entries that are written, in order
 *     NOTICE           notice, the value before, the value
 *     PROBE, QUIET     nothing; head.arg64 of the message is the links', so the number of the round is in its clock
 *     STATE            how many messages were sent, and received; the number of the round as above */
#ifndef PLI_VERTEX_LOCKS_WIRE_H
#define PLI_VERTEX_LOCKS_WIRE_H

#include <string.h>

#include "base/base.h"
#include "vertex/locks/locks.h"

enum { PLI_LOCKS_ACQUIRE = 1, PLI_LOCKS_GRANT, PLI_LOCKS_RELEASE, PLI_LOCKS_NOTICE, PLI_LOCKS_PROBE, PLI_LOCKS_STATE,
       PLI_LOCKS_QUIET };
enum { PLI_LOCKS_ERA_SHIFT = 4, PLI_LOCKS_ERAS = 1 << 12 };

typedef struct pli_lock_head {
    int32_t  origin;
    uint32_t n, at, number; /* number: of the scope, among all that the origin has asked for in its era */
    uint64_t tag;
} pli_lock_head;

typedef struct pli_lock_told {
    uint64_t vertex, version;
    double   change;
} pli_lock_told;

typedef struct pli_lock_state {
    uint64_t sent, received;
} pli_lock_state;

_Static_assert(sizeof(pli_lock_entry) == 24 && sizeof(pli_lock_head) == 24, "as they travel");

static inline size_t pli_lock_bytes(const pli_locks *l, uint64_t n, uint64_t values) {
    return sizeof(pli_lock_head) + (size_t)n * sizeof(pli_lock_entry) + (size_t)values * l->value_bytes;
}

/** A message that may be written to, with the same head and body (taken); NULL: no memory. */
pli_msg *pli_lock_own(pli_msg *msg);
/** Checks the body of an ACQUIRE, GRANT or RELEASE: its size, increasing vertices that exist, modes. */
bool pli_lock_check(const pli_locks *l, const pli_msg *msg, bool packed);
/** Sends to a rank that is not the own one. false: no memory. */
bool pli_lock_send(pli_locks *l, uint64_t now_ns, int32_t to, uint16_t kind, pli_msg *msg, pli_out *out);

/** Frees a scope that is nowhere any more, and its message. */
void pli_lock_free_scope(pli_lock_scope *s);

/* rest.c */
void pli_rest_on_message(pli_locks *l, uint64_t now_ns, uint16_t kind, const pli_msg *msg, pli_out *out);

#endif
