/* comm/membership_impl.h - what the files of the membership machine share. No other file includes it. */
#ifndef PLI_COMM_MEMBERSHIP_IMPL_H
#define PLI_COMM_MEMBERSHIP_IMPL_H

#include <string.h>

#include "comm/membership.h"

/* The fixed part of a message's body; three sets of `words` words follow: the sender's view, first and second. Then,
 * from a sender that has met an incarnation other than the first, uint32_t [size] those of its view, [size] of
 * second. */
typedef struct pli_membership_head {
    uint64_t view, serial, ballot, accepted;
    uint64_t words;
} pli_membership_head;

typedef struct pli_membership_mail {
    pli_membership_head head;
    const uint64_t     *members, *first, *second;
    const uint32_t     *lives, *second_lives; /* [size] */
    bool                renewed;              /* the sender says them */
} pli_membership_mail;

static inline size_t pli_set_bytes(const pli_membership *m) { return (size_t)m->words * sizeof(uint64_t); }
static inline void pli_set_copy(const pli_membership *m, uint64_t *to, const uint64_t *from) {
    memcpy(to, from, pli_set_bytes(m));
}
static inline size_t pli_lives_bytes(const pli_membership *m) { return (size_t)m->size * sizeof(uint32_t); }
/* A view that is proposed or accepted, with its incarnations. */
static inline void pli_choice_copy(const pli_membership *m, uint64_t *to, uint32_t *to_lives, const uint64_t *from,
                                   const uint32_t *from_lives) {
    pli_set_copy(m, to, from);
    memcpy(to_lives, from_lives, pli_lives_bytes(m));
}
/* How many words a message's sets and incarnations take. */
static inline size_t pli_mail_words(const pli_membership *m) { return 3 * (size_t)m->words + (size_t)m->size; }
static inline void pli_set_clear(const pli_membership *m, uint64_t *set) { memset(set, 0, pli_set_bytes(m)); }
static inline bool pli_is_member(const pli_membership *m, int32_t r) { return pli_ranks_has(m->members, r); }
/* Is it a member that is not known to have ended? */
static inline bool pli_is_present(const pli_membership *m, int32_t r) {
    return pli_is_member(m, r) && !pli_ranks_has(m->attested, r) && !pli_ranks_has(m->left, r);
}

/* Does a new life of the rank ask to return, which is no member? Who has left in good order does not return. */
static inline bool pli_membership_returns(const pli_membership *m, int32_t r) {
    return m->returns[r] > m->lives[r] && !pli_is_member(m, r) && !pli_ranks_has(m->left, r);
}

/* membership_wire.c */
/** A message of the kind, without receiver; sets may be NULL: empty. second_lives: of a view; NULL: second is none.
 *  NULL: no memory. */
pli_msg *pli_membership_msg(const pli_membership *m, uint16_t kind, uint64_t ballot, uint64_t accepted,
                            const uint64_t *first, const uint64_t *second, const uint32_t *second_lives);
void pli_membership_send(const pli_membership *m, int32_t to, uint16_t kind, uint64_t ballot, uint64_t accepted,
                         const uint64_t *first, const uint64_t *second, const uint32_t *second_lives, pli_out *out);
void pli_membership_send_state(pli_membership *m, int32_t to, pli_out *out);
/** Reads a body. copy [pli_mail_words] receives the sets and incarnations, aligned. false: malformed. */
bool pli_membership_read(const pli_membership *m, const void *body, size_t bytes, uint64_t *copy,
                         pli_membership_mail *mail);

/* membership.c */
/** The view is decided. */
void pli_membership_adopt(pli_membership *m, uint64_t number, const uint64_t *members, const uint32_t *lives);
/** The same here first: the others are told, also those who are out. */
void pli_membership_announce(pli_membership *m, uint64_t number, const uint64_t *members, const uint32_t *lives,
                             pli_out *out);
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
