/* Ballots on the next view: voters, and who proposes. Numbers (M1 to M5, Q1, Q2) are those of membership.h. */
#include "comm/membership_impl.h"

bool pli_membership_is_quorum(const pli_membership *m, const uint64_t *set, const uint64_t *voters,
                              const uint64_t *dead) {
    int32_t all = 0, own = 0;
    bool    lacks_dead = false;
    for (int32_t r = 0; r < m->size; r++) {
        if (!pli_ranks_has(voters, r)) continue;
        all++;
        if (pli_ranks_has(set, r)) own++;
        else lacks_dead = lacks_dead || pli_ranks_has(dead, r);
    }
    return 2 * own > all || (2 * own == all && lacks_dead); /* Q1, Q2 */
}

void pli_membership_forget_votes(pli_membership *m) {
    m->promised = m->accepted = m->left_promised = m->left_accepted = m->ballot = m->best = 0;
    m->accepting = false;
}

void pli_membership_note_leaver(pli_membership *m, const pli_membership_mail *mail) {
    if (mail->head.view != m->view) return; /* it has never voted on the next view */
    if (mail->head.ballot > m->left_promised) m->left_promised = mail->head.ballot;
    if (mail->head.accepted <= m->left_accepted) return;
    m->left_accepted = mail->head.accepted;
    pli_choice_copy(m, m->left_value, m->left_lives, mail->second, mail->second_lives);
}

static void send_all(const pli_membership *m, uint16_t kind, const uint64_t *second, const uint32_t *lives,
                     pli_out *out) {
    for (int32_t r = 0; r < m->size; r++)
        if (pli_is_present(m, r)) pli_membership_send(m, r, kind, m->ballot, 0, m->attested, second, lives, out);
}

static void count(pli_membership *m, pli_out *out);

/* The ranks that hear each other, those that have left, and those that return. */
static void propose_together(pli_membership *m) {
    pli_membership_gather(m);
    pli_choice_copy(m, m->proposal, m->proposal_lives, m->together, m->lives);
    for (int32_t r = 0; r < m->size; r++) {
        if (pli_is_member(m, r) && pli_ranks_has(m->left, r)) pli_ranks_add(m->proposal, r);
        if (!pli_membership_returns(m, r)) continue;
        pli_ranks_add(m->proposal, r);
        m->proposal_lives[r] = m->returns[r];
    }
}

static void begin_second_phase(pli_membership *m, pli_out *out) {
    if (m->left_accepted > m->best) { /* M2 */
        m->best = m->left_accepted;
        pli_choice_copy(m, m->proposal, m->proposal_lives, m->left_value, m->left_lives);
    }
    if (m->best == 0) propose_together(m);
    m->accepting = true;
    pli_set_clear(m, m->votes);
    send_all(m, PLI_MEMBERSHIP_ACCEPT, m->proposal, m->proposal_lives, out);
    if (m->promised <= m->ballot && pli_ranks_has(m->proposal, m->me)) {
        m->promised = m->accepted = m->ballot;
        pli_choice_copy(m, m->value, m->value_lives, m->proposal, m->proposal_lives);
        pli_ranks_add(m->votes, m->me);
    }
    count(m, out);
}

static void count(pli_membership *m, pli_out *out) {
    if (!pli_membership_is_quorum(m, m->votes, m->voters, m->dead)) return;
    if (m->accepting) pli_membership_announce(m, m->view + 1, m->proposal, m->proposal_lives, out);
    else begin_second_phase(m, out);
}

void pli_membership_begin(pli_membership *m, pli_out *out) {
    uint64_t over = m->highest;
    if (m->promised > over) over = m->promised;
    if (m->left_promised > over) over = m->left_promised; /* who has left would have refused a lower one */
    m->ballot = m->highest = (over / (uint64_t)m->size + 1) * (uint64_t)m->size + (uint64_t)m->me;
    m->accepting = false;
    pli_set_clear(m, m->votes);
    pli_set_copy(m, m->dead, m->attested);
    for (int32_t i = 0; i < m->words; i++) m->voters[i] = m->members[i] & ~m->left[i];
    m->promised = m->ballot;
    m->best = m->accepted;
    if (m->best > 0) pli_choice_copy(m, m->proposal, m->proposal_lives, m->value, m->value_lives);
    pli_ranks_add(m->votes, m->me);
    send_all(m, PLI_MEMBERSHIP_PREPARE, NULL, NULL, out);
    count(m, out);
}

static void on_prepare(pli_membership *m, int32_t src, uint64_t ballot, pli_out *out) {
    if (ballot < m->promised) { /* the promise was to a higher one */
        pli_membership_send(m, src, PLI_MEMBERSHIP_REFUSED, m->promised, 0, NULL, NULL, NULL, out);
        return;
    }
    m->promised = ballot;
    pli_membership_send(m, src, PLI_MEMBERSHIP_PROMISE, ballot, m->accepted, NULL, m->accepted > 0 ? m->value : NULL,
                        m->value_lives, out);
}

static void on_accept(pli_membership *m, int32_t src, const pli_membership_mail *mail, pli_out *out) {
    const uint64_t ballot = mail->head.ballot;
    if (ballot < m->promised) { /* M1 */
        pli_membership_send(m, src, PLI_MEMBERSHIP_REFUSED, m->promised, 0, NULL, NULL, NULL, out);
        return;
    }
    if (!pli_ranks_has(mail->second, m->me) || mail->second_lives[m->me] != m->incarnation) return; /* M3 */
    m->promised = m->accepted = ballot;
    pli_choice_copy(m, m->value, m->value_lives, mail->second, mail->second_lives);
    pli_membership_send(m, src, PLI_MEMBERSHIP_ACCEPTED, ballot, 0, NULL, NULL, NULL, out);
}

static void on_promise(pli_membership *m, int32_t src, const pli_membership_mail *mail, pli_out *out) {
    if (mail->head.ballot != m->ballot || m->ballot == 0 || m->accepting) return;
    if (mail->head.accepted > m->best) { /* M2 */
        m->best = mail->head.accepted;
        pli_choice_copy(m, m->proposal, m->proposal_lives, mail->second, mail->second_lives);
    }
    pli_ranks_add(m->votes, src);
    count(m, out);
}

void pli_membership_vote(pli_membership *m, const pli_msg *msg, const pli_membership_mail *mail, pli_out *out) {
    const int32_t  src = msg->head.src;
    const uint64_t ballot = mail->head.ballot;
    if (ballot == 0) return;
    if (ballot > m->highest) m->highest = ballot;
    switch (msg->head.kind) {
    case PLI_MEMBERSHIP_PREPARE: on_prepare(m, src, ballot, out); break;
    case PLI_MEMBERSHIP_PROMISE: on_promise(m, src, mail, out); break;
    case PLI_MEMBERSHIP_ACCEPT: on_accept(m, src, mail, out); break;
    case PLI_MEMBERSHIP_ACCEPTED:
        if (ballot != m->ballot || !m->accepting) break;
        pli_ranks_add(m->votes, src);
        count(m, out);
        break;
    default: break; /* refused: the next ballot is higher */
    }
}
