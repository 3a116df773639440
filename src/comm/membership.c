/* The view, what is known of the ranks, and when a new view is needed. membership.h has the ideas. */
#include "comm/membership.h"

#include <stdio.h>

#include "base/base.h"
#include "comm/membership_impl.h"

/* In units of retry_ns: how long a rank waits before it proposes, for news of others to come. A death is certain. One
 * that suspects a rank itself will soon suspect others behind the same link. That another suspects a rank may only
 * mean that it noticed first; acting at once, one might leave out the wrong one of the two. */
enum { AFTER_DEATH = 0, AFTER_OWN = 1, AFTER_OTHERS = 6, TURN = 2 };
enum { ASK_AGAIN = 4 /* a rank that was started anew */ };
enum { HOPELESS = 4 /* deadlines after which a rank stops though it hears a quorum: they do not agree */ };

enum { SETS = 12, LIVES = 5 };

bool pli_membership_init(pli_membership *m, int32_t size, int32_t me, uint32_t incarnation, uint64_t retry_ns,
                         uint64_t deadline_ns, bool has_judge) {
    *m = (pli_membership){ .size = size, .me = me, .words = (size + 63) / 64, .incarnation = incarnation,
                           .retry_ns = retry_ns, .deadline_ns = deadline_ns, .has_judge = has_judge, .view = 1,
                           .tick_ns = PLI_NEVER, .ballot_ns = PLI_NEVER };
    uint64_t *sets = pli_calloc(SETS * (size_t)m->words, sizeof *sets);
    m->members = sets;
    m->lives = pli_calloc(LIVES * (size_t)size, sizeof *m->lives);
    m->complaints = pli_calloc((size_t)size, sizeof *m->complaints);
    m->serial = pli_calloc((size_t)size, sizeof *m->serial);
    m->seen = pli_calloc((size_t)size, sizeof *m->seen);
    m->degree = pli_calloc((size_t)size, sizeof *m->degree);
    if (sets == NULL || m->lives == NULL || m->complaints == NULL || m->serial == NULL || m->seen == NULL ||
        m->degree == NULL) {
        pli_membership_destroy(m);
        return false;
    }
    uint64_t **const own[] = { &m->members, &m->attested, &m->left,  &m->suspected, &m->value,    &m->left_value,
                               &m->voters,  &m->dead,     &m->votes, &m->proposal,  &m->together,
                               &m->scratch };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) *own[i] = sets + i * (size_t)m->words;
    uint32_t **const lives[] = { &m->lives, &m->returns, &m->value_lives, &m->left_lives, &m->proposal_lives };
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) *lives[i] = m->lives + i * (size_t)size;
    for (int32_t r = 0; r < size; r++) {
        pli_ranks_add(m->members, r);
        m->lives[r] = 1;
        m->seen[r] = 1;
    }
    if (incarnation == m->lives[me]) return true;
    m->renewed = true;
    m->state = has_judge ? PLI_MEMBERSHIP_OUT : PLI_MEMBERSHIP_WAITS; /* M4 */
    m->tick_ns = 0;
    return true;
}

void pli_membership_destroy(pli_membership *m) {
    for (int32_t r = 0; m->complaints != NULL && r < m->size; r++) pli_free(m->complaints[r]);
    pli_free(m->complaints);
    pli_free(m->members);
    pli_free(m->lives);
    pli_free(m->serial);
    pli_free(m->seen);
    pli_free(m->degree);
    *m = (pli_membership){ 0 };
}

int32_t pli_ranks_count(const uint64_t *set, int32_t words) {
    int32_t n = 0;
    for (int32_t i = 0; i < words; i++) n += __builtin_popcountll(set[i]);
    return n;
}

/* The rank is in its next life: what is known of the one before says nothing of it. */
static void forget_life(pli_membership *m, int32_t r) {
    pli_ranks_remove(m->attested, r);
    pli_ranks_remove(m->left, r);
    pli_ranks_remove(m->suspected, r);
    pli_free(m->complaints[r]);
    m->complaints[r] = NULL;
    for (int32_t by = 0; by < m->size; by++)
        if (m->complaints[by] != NULL) pli_ranks_remove(m->complaints[by], r);
    m->serial[r] = m->seen[r] = 0;
}

void pli_membership_adopt(pli_membership *m, uint64_t number, const uint64_t *members, const uint32_t *lives) {
    m->view = number;
    for (int32_t r = 0; r < m->size; r++) {
        if (lives[r] != m->lives[r] && r != m->me) forget_life(m, r);
        m->renewed = m->renewed || lives[r] != 1;
        m->lives[r] = lives[r];
        if (m->returns[r] <= m->lives[r]) m->returns[r] = 0;
    }
    pli_set_copy(m, m->members, members);
    for (int32_t i = 0; i < m->words; i++) m->suspected[i] &= m->members[i];
    pli_membership_forget_votes(m);
    m->tells = m->unsettled = m->asks = false;
    m->seen[m->me] = number;
    if (!pli_is_member(m, m->me)) m->state = PLI_MEMBERSHIP_OUT;
}

void pli_membership_announce(pli_membership *m, uint64_t number, const uint64_t *members, const uint32_t *lives,
                             pli_out *out) {
    for (int32_t i = 0; i < m->words; i++) m->scratch[i] = m->members[i] | members[i];
    pli_membership_adopt(m, number, members, lives);
    m->tells = m->state == PLI_MEMBERSHIP_GOES_ON;
    for (int32_t r = 0; m->tells && r < m->size; r++)
        if (pli_ranks_has(m->scratch, r) && !pli_ranks_has(m->attested, r) && !pli_ranks_has(m->left, r))
            pli_membership_send_state(m, r, out);
}

/* --- whom to leave out ----------------------------------------------------------------------------------------- */

/* Counts for each rank of `together` how many others of them suspect it, or it suspects. Does any? */
static bool count_complaints(pli_membership *m) {
    bool any = false;
    memset(m->degree, 0, (size_t)m->size * sizeof *m->degree);
    for (int32_t by = 0; by < m->size; by++) {
        if (m->complaints[by] == NULL || !pli_ranks_has(m->together, by)) continue;
        for (int32_t r = 0; r < m->size; r++) {
            if (!pli_ranks_has(m->complaints[by], r) || !pli_ranks_has(m->together, r) || r == by) continue;
            m->degree[by]++;
            m->degree[r]++;
            any = true;
        }
    }
    return any;
}

/* Without those whom this rank does not hear; of two others that do not hear each other, the one goes that more have
 * trouble with. */
void pli_membership_gather(pli_membership *m) {
    for (int32_t i = 0; i < m->words; i++)
        m->together[i] = m->members[i] & ~m->attested[i] & ~m->left[i] & ~m->suspected[i];
    while (count_complaints(m)) {
        int32_t worst = -1;
        for (int32_t r = 0; r < m->size; r++)
            if (r != m->me && m->degree[r] > 0 && (worst < 0 || m->degree[r] >= m->degree[worst])) worst = r;
        pli_ranks_remove(m->together, worst);
    }
}

/* Does the rank say that it does not hear one that is a member still? */
static bool complains(const pli_membership *m, int32_t r) {
    if (m->complaints[r] == NULL || !pli_is_present(m, r)) return false;
    for (int32_t v = 0; v < m->size; v++)
        if (pli_ranks_has(m->complaints[r], v) && pli_is_present(m, v)) return true;
    return false;
}

/* How long to wait before proposing, in retries; -1: no new view is needed. Ranks that return are not counted. */
static int32_t need(const pli_membership *m) {
    int32_t wait = -1;
    for (int32_t r = 0; r < m->size; r++) {
        if (!pli_is_member(m, r) || pli_ranks_has(m->left, r)) continue; /* who has left stays, also if it dies then */
        if (pli_ranks_has(m->attested, r)) return AFTER_DEATH;
        if (pli_ranks_has(m->suspected, r)) wait = AFTER_OWN;
        if (wait < 0 && complains(m, r)) wait = AFTER_OTHERS;
    }
    return wait < 0 && (m->accepted > 0 || m->newest > m->view) ? AFTER_OTHERS : wait;
}

static bool some_return(const pli_membership *m) {
    bool some = false;
    for (int32_t r = 0; r < m->size; r++) some = some || pli_membership_returns(m, r);
    return some;
}

/* This rank's place among those that may propose. */
static int32_t place(pli_membership *m) {
    int32_t before = 0;
    pli_membership_gather(m);
    for (int32_t r = 0; r < m->me; r++) before += pli_ranks_has(m->together, r);
    return before;
}

static void refresh(pli_membership *m, uint64_t now_ns) {
    int32_t       wait = m->state == PLI_MEMBERSHIP_GOES_ON ? need(m) : -1;
    const bool    presses = wait >= 0;
    if (wait < 0 && m->state == PLI_MEMBERSHIP_GOES_ON && some_return(m)) wait = AFTER_OTHERS;
    if (presses && !m->presses && m->unsettled) m->since_ns = now_ns; /* nobody stops because a rank returns */
    m->presses = presses;
    if (wait < 0) {
        m->unsettled = m->asks = false;
        m->ballot_ns = PLI_NEVER;
        m->ballot = 0;
        m->tick_ns = m->state != PLI_MEMBERSHIP_GOES_ON || !m->tells ? PLI_NEVER
                     : m->tick_ns == PLI_NEVER                        ? now_ns + m->retry_ns
                                                                      : m->tick_ns;
        return;
    }
    if (!m->unsettled) {
        m->unsettled = true;
        m->since_ns = m->tick_ns = now_ns;
        m->ballot_ns = PLI_NEVER;
        m->ticks = 0;
    }
    if (m->ballot_ns != PLI_NEVER && wait >= m->wait) return;
    const uint64_t at_ns = now_ns + (uint64_t)(wait + TURN * place(m)) * m->retry_ns;
    if (at_ns < m->ballot_ns) m->ballot_ns = at_ns;
    m->wait = wait;
}

/* --- time --------------------------------------------------------------------------------------------------------- */

/* Does the rank hear a quorum? */
static bool hears_quorum(pli_membership *m) {
    uint64_t *hears = m->together, *voters = m->scratch;
    for (int32_t i = 0; i < m->words; i++) {
        voters[i] = m->members[i] & ~m->left[i];
        hears[i] = voters[i] & ~m->attested[i] & ~m->suspected[i];
    }
    return pli_membership_is_quorum(m, hears, voters, m->attested);
}

static void propose(pli_membership *m, uint64_t now_ns, pli_out *out) {
    const int32_t mine = place(m); /* fills together */
    m->ballot_ns = now_ns + (uint64_t)(TURN + TURN * mine) * m->retry_ns;
    if (m->has_judge) {
        pli_set_copy(m, m->proposal, m->together);
        for (int32_t i = 0; i < m->words; i++) m->proposal[i] |= m->members[i] & m->left[i];
        m->asks = true;
        return;
    }
    if (m->newest <= m->view && hears_quorum(m)) pli_membership_begin(m, out);
}

/* To those that may propose: the first, and from time to time one more; and to those that complain, which answer if
 * they do so no more. */
static void tell_proposers(pli_membership *m, pli_out *out) {
    int32_t left = 1 + m->ticks;
    pli_membership_gather(m);
    for (int32_t r = 0; r < m->size; r++) {
        const bool proposes = left > 0 && pli_ranks_has(m->together, r);
        left -= proposes;
        if (proposes || complains(m, r)) pli_membership_send_state(m, r, out);
    }
}

static void tell_laggards(pli_membership *m, pli_out *out) {
    bool any = false;
    for (int32_t r = 0; r < m->size; r++) {
        if (!pli_is_present(m, r) || r == m->me || m->seen[r] >= m->view) continue;
        if (pli_ranks_has(m->suspected, r)) continue;
        pli_membership_send_state(m, r, out);
        any = true;
    }
    m->tells = any;
}

static void tick(pli_membership *m, uint64_t now_ns, pli_out *out) {
    m->tick_ns = now_ns + m->retry_ns;
    if (m->tells) tell_laggards(m, out);
    if (!m->unsettled) return;
    const uint64_t waited_ns = now_ns - m->since_ns;
    if (!m->presses && waited_ns >= m->deadline_ns) {
        memset(m->returns, 0, pli_lives_bytes(m)); /* they ask again */
        return;
    }
    if (waited_ns >= m->deadline_ns * HOPELESS ||
        (waited_ns >= m->deadline_ns && (m->newest > m->view || (!m->has_judge && !hears_quorum(m))))) {
        m->state = PLI_MEMBERSHIP_STOPPED; /* M5 */
        return;
    }
    tell_proposers(m, out);
    if (m->newest > m->view) pli_membership_send_state(m, m->newest_rank, out); /* which asks for the view */
    m->ticks++;
}

/* This rank was started anew: it asks all others whether a view may have it. */
static void ask_to_return(pli_membership *m, uint64_t now_ns, pli_out *out) {
    if (now_ns >= m->tick_ns) {
        m->tick_ns = now_ns + ASK_AGAIN * m->retry_ns;
        for (int32_t r = 0; r < m->size; r++)
            pli_membership_send(m, r, PLI_MEMBERSHIP_RETURN, 0, 0, NULL, NULL, NULL, out);
    }
    pli_out_wake(out, m->tick_ns);
}

/* After each event: what is due is done, and the next wake-up asked for. */
static void go_on(pli_membership *m, uint64_t now_ns, pli_out *out) {
    if (m->state == PLI_MEMBERSHIP_WAITS) {
        ask_to_return(m, now_ns, out);
        return;
    }
    refresh(m, now_ns);
    if (m->unsettled && now_ns >= m->ballot_ns) {
        propose(m, now_ns, out);
        refresh(m, now_ns);
    }
    if (now_ns >= m->tick_ns) {
        tick(m, now_ns, out);
        refresh(m, now_ns);
    }
    pli_out_wake(out, m->tick_ns < m->ballot_ns ? m->tick_ns : m->ballot_ns);
}

/* --- events ------------------------------------------------------------------------------------------------------- */

void pli_membership_attest(pli_membership *m, uint64_t now_ns, int32_t rank, pli_out *out) {
    if (m->state != PLI_MEMBERSHIP_GOES_ON || rank == m->me || pli_ranks_has(m->attested, rank)) return;
    pli_ranks_add(m->attested, rank);
    m->ballot_ns = PLI_NEVER; /* a ballot under way may not count on it: a new one */
    go_on(m, now_ns, out);
}

void pli_membership_suspect(pli_membership *m, uint64_t now_ns, int32_t rank, pli_out *out) {
    if (m->state != PLI_MEMBERSHIP_GOES_ON || rank == m->me || !pli_is_present(m, rank)) return;
    pli_ranks_add(m->suspected, rank);
    go_on(m, now_ns, out);
}

void pli_membership_hear(pli_membership *m, uint64_t now_ns, int32_t rank, uint32_t incarnation, uint64_t view,
                         pli_out *out) {
    if (m->state != PLI_MEMBERSHIP_GOES_ON) return;
    if (!pli_is_member(m, rank) || incarnation != m->lives[rank]) {
        pli_membership_send_state(m, rank, out);
        return;
    }
    if (view > m->newest) {
        m->newest = view;
        m->newest_rank = rank;
        if (view > m->view) go_on(m, now_ns, out);
    }
    if (pli_ranks_has(m->suspected, rank)) {
        pli_ranks_remove(m->suspected, rank);
        m->withdrew = m->states + 1;
        for (int32_t r = 0; r < m->size; r++) /* all that may have been told of the suspicion */
            if (pli_is_present(m, r)) pli_membership_send_state(m, r, out);
        go_on(m, now_ns, out);
    }
}

static void merge_one(pli_membership *m, int32_t r) {
    if (pli_ranks_has(m->attested, r) || r == m->me) return;
    pli_ranks_add(m->attested, r);
    m->ballot_ns = PLI_NEVER;
}

static void merge_attested(pli_membership *m, const uint64_t *attested) {
    for (int32_t r = 0; r < m->size; r++)
        if (pli_ranks_has(attested, r)) merge_one(m, r);
}

static void take_state(pli_membership *m, int32_t src, const pli_membership_mail *mail, pli_out *out) {
    if (mail->head.accepted < m->withdrew) pli_membership_send_state(m, src, out); /* what was sent to it was lost */
    if (mail->head.serial <= m->serial[src]) return;
    m->serial[src] = mail->head.serial;
    bool any = false;
    for (int32_t i = 0; i < m->words; i++) any = any || mail->second[i] != 0;
    if (m->complaints[src] == NULL && any) m->complaints[src] = pli_malloc(pli_set_bytes(m));
    if (m->complaints[src] != NULL) pli_set_copy(m, m->complaints[src], mail->second); /* else it will come again */
}

/* Brings both to the newer view. true: they are in the same one. */
static bool catch_up(pli_membership *m, int32_t src, const pli_membership_mail *mail, bool answers, pli_out *out) {
    if (mail->head.view > m->seen[src]) m->seen[src] = mail->head.view;
    if (mail->head.view > m->view) {
        pli_membership_adopt(m, mail->head.view, mail->members, mail->lives);
        if (m->state == PLI_MEMBERSHIP_GOES_ON && answers) pli_membership_send_state(m, src, out);
    } else if (mail->head.view < m->view) {
        pli_membership_send_state(m, src, out);
        return false; /* what is older is refused by the view */
    }
    return m->state == PLI_MEMBERSHIP_GOES_ON;
}

/* A rank that was started anew asks to return. */
static void on_return(pli_membership *m, int32_t r, uint32_t incarnation, pli_out *out) {
    if (m->has_judge) return;
    m->renewed = true;
    if (incarnation > m->lives[r] && incarnation > m->returns[r]) m->returns[r] = incarnation;
    if (incarnation <= m->lives[r]) pli_membership_send_state(m, r, out); /* it is in, or has been */
    else if (pli_is_present(m, r)) merge_one(m, r);
}

/* This rank was started anew: it looks for a view that has it. */
static void take_waiting(pli_membership *m, const pli_membership_mail *mail) {
    if (mail->head.view < m->view) return;
    const bool is_in = pli_ranks_has(mail->members, m->me) && mail->lives[m->me] == m->incarnation;
    pli_membership_adopt(m, mail->head.view, mail->members, mail->lives);
    m->state = is_in ? PLI_MEMBERSHIP_GOES_ON
               : mail->lives[m->me] < m->incarnation ? PLI_MEMBERSHIP_WAITS
                                                     : PLI_MEMBERSHIP_OUT;
    if (is_in) m->tick_ns = m->ballot_ns = PLI_NEVER;
}

void pli_membership_take(pli_membership *m, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    const int32_t       src = msg->head.src;
    const bool          waits = m->state == PLI_MEMBERSHIP_WAITS;
    pli_membership_mail mail;
    if ((m->state != PLI_MEMBERSHIP_GOES_ON && !waits) || src < 0 || src >= m->size || src == m->me) return; /* M5 */
    uint64_t *copy = pli_array(pli_mail_words(m), sizeof *copy);
    if (copy != NULL && pli_membership_read(m, pli_msg_body(msg), msg->head.body_bytes, copy, &mail)) {
        m->renewed = m->renewed || mail.renewed; /* what it accepts it says as it was */
        if (msg->head.kind == PLI_MEMBERSHIP_RETURN) {
            if (!waits) on_return(m, src, msg->head.incarnation, out);
        } else if (waits) {
            take_waiting(m, &mail);
        } else if (msg->head.incarnation == m->lives[src] && /* M4; hear tells it */
            catch_up(m, src, &mail, msg->head.kind == PLI_MEMBERSHIP_STATE, out) && pli_is_member(m, src)) {
            if (msg->head.kind == PLI_MEMBERSHIP_STATE) take_state(m, src, &mail, out);
            if (msg->head.kind == PLI_MEMBERSHIP_STATE || msg->head.kind == PLI_MEMBERSHIP_PREPARE ||
                msg->head.kind == PLI_MEMBERSHIP_ACCEPT)
                merge_attested(m, mail.first);
            pli_membership_vote(m, msg, &mail, out);
        }
    }
    pli_free(copy);
    go_on(m, now_ns, out);
}

void pli_membership_wake(pli_membership *m, uint64_t now_ns, pli_out *out) {
    if (m->state == PLI_MEMBERSHIP_GOES_ON || m->state == PLI_MEMBERSHIP_WAITS) go_on(m, now_ns, out);
}

void pli_membership_judged(pli_membership *m, uint64_t now_ns, uint64_t number, const uint64_t *members, pli_out *out) {
    if (m->state != PLI_MEMBERSHIP_GOES_ON || number <= m->view) return;
    pli_membership_announce(m, number, members, m->lives, out);
    go_on(m, now_ns, out);
}

pli_msg *pli_membership_leave(pli_membership *m) {
    m->state = PLI_MEMBERSHIP_LEFT; /* M5 */
    return pli_membership_msg(m, PLI_MEMBERSHIP_STATE, m->promised, m->accepted, NULL, m->value, m->value_lives);
}

void pli_membership_take_leave(pli_membership *m, uint64_t now_ns, int32_t rank, const void *word, size_t bytes,
                               pli_out *out) {
    pli_membership_mail mail;
    if (m->state != PLI_MEMBERSHIP_GOES_ON || rank == m->me || pli_ranks_has(m->left, rank)) return;
    uint64_t *copy = pli_array(pli_mail_words(m), sizeof *copy);
    if (copy != NULL && pli_membership_read(m, word, bytes, copy, &mail)) {
        m->renewed = m->renewed || mail.renewed;
        if (mail.head.view > m->view) pli_membership_adopt(m, mail.head.view, mail.members, mail.lives);
        pli_membership_note_leaver(m, &mail);
        pli_ranks_add(m->left, rank);
        m->ballot = 0; /* whoever left is a voter of it no more: a new one */
        m->ballot_ns = PLI_NEVER;
    } /* else its vote is not known, and it stays a voter that is silent */
    pli_free(copy);
    go_on(m, now_ns, out);
}

/* --- words -------------------------------------------------------------------------------------------------------- */

void pli_membership_tell(const pli_membership *m, char *text, size_t bytes) {
    int32_t  voters = 0;
    pli_text heard = { 0 };
    for (int32_t r = 0; r < m->size; r++) {
        if (!pli_is_member(m, r) || pli_ranks_has(m->left, r)) continue;
        voters++;
        if (r == m->me || pli_ranks_has(m->attested, r) || pli_ranks_has(m->suspected, r)) continue;
        pli_text_add(&heard, "%s%d", heard.length > 0 ? ", " : "", r);
    }
    if (m->state == PLI_MEMBERSHIP_OUT)
        snprintf(text, bytes, "the others took this rank for lost, and go on without it (view %llu)",
                 (unsigned long long)m->view);
    else
        snprintf(text, bytes,
                 "rank %d stops: of the %d ranks of view %llu it hears %s%.160s, and only a majority, %d of them, may "
                 "go on without the others; mend the link, and start again from the newest checkpoint",
                 m->me, voters, (unsigned long long)m->view,
                 heard.length == 0 ? "nobody" : strchr(heard.data, ',') != NULL ? "ranks " : "rank ",
                 heard.data != NULL ? heard.data : "", voters / 2 + 1);
    pli_text_free(&heard);
}
