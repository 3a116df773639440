/* comm/membership_impl.h - what the files of the membership machine share. No other file includes it. */
#ifndef PLI_COMM_MEMBERSHIP_IMPL_H
#define PLI_COMM_MEMBERSHIP_IMPL_H

#include <string.h>

#include "comm/membership.h"

/* The fixed part of a message's body; three sets of `words` words follow: the sender's view, first and second. */
typedef struct pli_membership_head {
    uint64_t view, serial, ballot, accepted;
    uint64_t words;
} pli_membership_head;

typedef struct pli_membership_mail {
    pli_membership_head head;
    const uint64_t     *members, *first, *second; /* in the body */
} pli_membership_mail;

static inline size_t pli_set_bytes(const pli_membership *m) { return (size_t)m->words * sizeof(uint64_t); }
static inline void pli_set_copy(const pli_membership *m, uint64_t *to, const uint64_t *from) {
    memcpy(to, from, pli_set_bytes(m));
}
static inline void pli_set_clear(const pli_membership *m, uint64_t *set) { memset(set, 0, pli_set_bytes(m)); }
static inline bool pli_is_member(const pli_membership *m, int32_t r) { return pli_ranks_has(m->members, r); }
/* Is it a member that is not known to have ended? */
static inline bool pli_is_present(const pli_membership *m, int32_t r) {
    return pli_is_member(m, r) && !pli_ranks_has(m->attested, r) && !pli_ranks_has(m->left, r);
}

/* membership_wire.c */
/** A message of the kind, without receiver; sets may be NULL: empty. NULL: no memory. */
pli_msg *pli_membership_msg(const pli_membership *m, uint16_t kind, uint64_t ballot, uint64_t accepted,
                            const uint64_t *first, const uint64_t *second);
void pli_membership_send(const pli_membership *m, int32_t to, uint16_t kind, uint64_t ballot, uint64_t accepted,
                         const uint64_t *first, const uint64_t *second, pli_out *out);
void pli_membership_send_state(pli_membership *m, int32_t to, pli_out *out);
/** Reads a body. copy [3 * words] receives the sets, aligned. false: malformed. */
bool pli_membership_read(const pli_membership *m, const void *body, size_t bytes, uint64_t *copy,
                         pli_membership_mail *mail);

/* membership.c */
/** The view is decided. */
void pli_membership_adopt(pli_membership *m, uint64_t number, const uint64_t *members);
/** The same here first: the others are told, also those who are out. */
void pli_membership_announce(pli_membership *m, uint64_t number, const uint64_t *members, pli_out *out);
/** Fills together with the members that hear each other, this rank among them. */
void pli_membership_gather(pli_membership *m);

/* membership_vote.c */
bool pli_membership_is_quorum(const pli_membership *m, const uint64_t *set, const uint64_t *voters,
                              const uint64_t *dead);
void pli_membership_begin(pli_membership *m, pli_out *out);
void pli_membership_vote(pli_membership *m, const pli_msg *msg, const pli_membership_mail *mail, pli_out *out);
void pli_membership_note_leaver(pli_membership *m, const pli_membership_mail *mail);
void pli_membership_forget_votes(pli_membership *m);

#endif
