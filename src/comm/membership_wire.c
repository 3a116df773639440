/* The messages of the membership machine. Each carries the sender's view, so whoever is behind catches up by any. */
#include "base/base.h"
#include "comm/membership_impl.h"

pli_msg *pli_membership_msg(const pli_membership *m, uint16_t kind, uint64_t ballot, uint64_t accepted,
                            const uint64_t *first, const uint64_t *second, const uint32_t *second_lives) {
    const pli_membership_head head = {
        .view = m->view, .serial = m->states, .ballot = ballot, .accepted = accepted, .words = (uint64_t)m->words
    };
    const uint64_t *const sets[] = { m->members, first, second };
    const size_t          lives = m->renewed ? 2 * pli_lives_bytes(m) : 0;
    pli_msg              *msg = pli_msg_new(sizeof head + 3 * pli_set_bytes(m) + lives);
    if (msg == NULL) return NULL;
    unsigned char *at = pli_msg_body(msg);
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (size_t i = 0; i < 3; i++, at += pli_set_bytes(m)) {
        if (sets[i] != NULL) memcpy(at, sets[i], pli_set_bytes(m));
        else memset(at, 0, pli_set_bytes(m));
    }
    if (lives > 0) {
        memcpy(at, m->lives, pli_lives_bytes(m));
        memcpy(at + pli_lives_bytes(m), second_lives != NULL ? second_lives : m->lives, pli_lives_bytes(m));
    }
    msg->head.kind = kind;
    msg->head.src = m->me;
    msg->head.epoch = (uint32_t)m->view;
    msg->head.incarnation = m->incarnation;
    return msg;
}

void pli_membership_send(const pli_membership *m, int32_t to, uint16_t kind, uint64_t ballot, uint64_t accepted,
                         const uint64_t *first, const uint64_t *second, const uint32_t *second_lives, pli_out *out) {
    pli_msg *msg = to == m->me ? NULL : pli_membership_msg(m, kind, ballot, accepted, first, second, second_lives);
    if (msg == NULL) return; /* without memory it is as lost on the way, and will be tried again */
    msg->head.dst = to;
    pli_out_send(out, msg);
}

void pli_membership_send_state(pli_membership *m, int32_t to, pli_out *out) {
    m->states++;
    pli_membership_send(m, to, PLI_MEMBERSHIP_STATE, 0, m->serial[to], m->attested, m->suspected, NULL, out);
}

/* Has the set no rank beyond the last? */
static bool is_within(const pli_membership *m, const uint64_t *set) {
    const int32_t over = m->size % 64;
    return over == 0 || set[m->words - 1] >> over == 0;
}

bool pli_membership_read(const pli_membership *m, const void *body, size_t bytes, uint64_t *copy,
                         pli_membership_mail *mail) {
    const size_t sets = 3 * pli_set_bytes(m), both = 2 * pli_lives_bytes(m);
    uint32_t    *lives = (uint32_t *)(copy + 3 * (size_t)m->words);
    if (body == NULL || (bytes != sizeof mail->head + sets && bytes != sizeof mail->head + sets + both)) return false;
    memcpy(&mail->head, body, sizeof mail->head);
    memcpy(copy, (const unsigned char *)body + sizeof mail->head, sets);
    mail->renewed = bytes > sizeof mail->head + sets;
    if (mail->renewed) memcpy(lives, (const unsigned char *)body + sizeof mail->head + sets, both);
    else
        for (int32_t i = 0; i < 2 * m->size; i++) lives[i] = 1;
    mail->lives = lives;
    mail->second_lives = lives + m->size;
    mail->members = copy;
    mail->first = copy + m->words;
    mail->second = copy + 2 * (size_t)m->words;
    return mail->head.words == (uint64_t)m->words && mail->head.view > 0 && mail->head.view < UINT32_MAX &&
           mail->head.serial < UINT64_MAX / 4 && mail->head.ballot < UINT64_MAX / 4 &&
           mail->head.accepted < UINT64_MAX / 4 && is_within(m, mail->members) &&
           is_within(m, mail->first) && is_within(m, mail->second);
}
