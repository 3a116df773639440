/* Runs the collectives of attempts, and feeds the machine that agrees on them. See agreed_sums.h. */
#include "comm/agreed_sums.h"

#include <string.h>

#include "comm/comm.h"
#include "comm/forms/forms.h"

/* --- attempts ----------------------------------------------------------------------------------------------------- */

static bool is_exchange(const pli_agreed_part *part) { return part->gives != NULL; }
static bool has_pieces(const pli_agreed_part *part) { return part->list != NULL || is_exchange(part); }

static void free_pieces(pli_agreed_sums *s) {
    for (int64_t i = 0; i < s->n_parts; i++) {
        const int32_t n = is_exchange(&s->parts[i]) ? 2 * s->n_pieces : s->n_pieces;
        for (int32_t w = 0; s->piece[i] != NULL && w < n; w++) pli_msg_free(&s->piece[i][w]);
        pli_free(s->piece[i]);
        s->piece[i] = NULL;
    }
}

/* The messages of collectives get what tells their attempt, and go to ranks. */
static void forward(const pli_agreed_sums *s, pli_out *from, pli_out *out) {
    for (pli_msg *msg = from->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        msg->head.dst = s->living[msg->head.dst];
        msg->head.port = PLI_PORT_AGREED;
        msg->head.server = (uint16_t)(s->agreed.n_dead + 1);
        pli_out_send(out, msg);
    }
    for (int kind = 0; kind < PLI_WORK_KINDS; kind++) pli_out_work(out, (pli_work_kind)kind, from->work[kind]);
    if (from->wake_at_ns < PLI_NEVER) pli_out_wake(out, from->wake_at_ns);
    if (from->ring) pli_out_ring(out);
    out->keeps = out->keeps || from->keeps;
}

/* The messages of the agreement go through its own streams. */
static void forward_words(pli_agreed_sums *s, uint64_t now_ns, pli_out *from, pli_out *out) {
    for (pli_msg *msg = from->first, *next; msg != NULL; msg = next) {
        next = msg->next;
        msg->next = NULL;
        if (!pli_links_send(&s->links, now_ns, msg, out)) pli_out_fail(out, PLAIT_ENOMEM, "no memory for a message");
    }
    if (from->ring) pli_out_ring(out);
    if (from->error.code < 0 && out->error.code >= 0) out->error = from->error;
}

static const plait_error *failure(const pli_agreed_sums *s) {
    for (int64_t i = 0; s->begun && i < s->n_parts; i++)
        if (pli_coll_is_done(&s->run[i]) && s->run[i].error.code < 0) return &s->run[i].error;
    return NULL;
}

/* The collectives have gone on: is the sum there? */
static void look(pli_agreed_sums *s, uint64_t now_ns, pli_out *out) {
    pli_agreed *a = &s->agreed;
    pli_out     words;
    if (!s->begun || !a->decided || a->summed || a->step > s->step) return;
    if (failure(s) != NULL) {
        pli_out_ring(out);
        return;
    }
    for (int64_t i = 0; i < s->n_parts; i++)
        if (!pli_coll_is_done(&s->run[i])) {
            atomic_store_explicit(&s->waits_for, atomic_load_explicit(&s->run[i].waits_for, memory_order_relaxed),
                                  memory_order_relaxed);
            return;
        }
    pli_out_init(&words);
    pli_agreed_summed(a, &words);
    forward_words(s, now_ns, &words, out);
}

static bool make_hosts(pli_agreed_sums *s) {
    int32_t *host_of = pli_array((size_t)s->n_living, sizeof *host_of);
    for (int32_t i = 0; host_of != NULL && i < s->n_living; i++) host_of[i] = s->host_of[s->living[i]];
    const bool made = host_of != NULL && pli_hosts_make(host_of, s->n_living, &s->hosts);
    pli_free(host_of);
    return made;
}

static int32_t place_of(const pli_agreed_sums *s, int32_t rank) {
    for (int32_t i = 0; i < s->n_living; i++)
        if (s->living[i] == rank) return i;
    return -1;
}

/* Collectives among those that live now. */
static bool open_collective(pli_agreed_sums *s) {
    const pli_agreed *a = &s->agreed;
    s->n_living = 0;
    for (int32_t r = 0; r < a->ranks; r++) {
        if (pli_agreed_is_dead(a->dead, r)) continue;
        s->name[s->n_living] = s->rank != NULL ? s->rank[r] : r;
        s->living[s->n_living++] = r;
    }
    if (!pli_collective_init(&s->collective, place_of(s, a->me), s->n_living, s->links.resend_after_ns)) return false;
    s->collective.rank = s->name;
    for (int32_t i = 0; i < s->n_living; i++) s->collective.left[i] = s->left[s->living[i]] != 0;
    return make_hosts(s);
}

static void close_collective(pli_agreed_sums *s) {
    if (s->collective.come != NULL) pli_collective_destroy(&s->collective);
    pli_hosts_free(&s->hosts);
}

/* Another message with the same bytes, which nobody changes. */
static pli_msg *lend(const pli_msg *msg) { return pli_msg_of_slab(msg->body, msg->offset, msg->head.body_bytes); }

/* Along a graph: [n_living] from which places something comes. */
static uint8_t *heard_at(const pli_agreed_sums *s, int64_t i) { return (uint8_t *)(s->piece[i] + 2 * s->n_living); }

static bool make_pieces(pli_agreed_sums *s, int64_t i) {
    const pli_agreed_part *part = &s->parts[i];
    const int32_t          me = place_of(s, s->agreed.me);
    s->piece[i] = pli_calloc((size_t)s->n_living * 3, sizeof **s->piece); /* bytes in the last third: heard_at */
    if (s->piece[i] == NULL) return false;
    if (!is_exchange(part)) return (s->piece[i][me] = lend(part->list)) != NULL;
    for (int32_t p = 0; p < s->n_living; p++) {
        if (part->hears != NULL) heard_at(s, i)[p] = part->hears[s->living[p]];
        if (p == me || part->gives[s->living[p]] == NULL) continue;
        s->piece[i][s->n_living + p] = lend(part->gives[s->living[p]]);
        if (s->piece[i][s->n_living + p] == NULL) return false;
    }
    return true;
}

static pli_coll call_of(const pli_agreed_sums *s, int64_t i) {
    const pli_agreed_part *part = &s->parts[i];
    if (has_pieces(part))
        return (pli_coll){ .kind = is_exchange(part) ? PLI_EXCHANGE : PLI_PIECES, .type = PLAIT_U8,
                           .root = PLI_COLL_OF_TABLES, .piece = s->piece[i], .begun = true,
                           .hears = part->hears != NULL ? heard_at(s, i) : NULL };
    pli_coll call = { .kind = PLI_ALLREDUCE, .type = part->type, .op = part->op, .root = PLI_COLL_OF_TABLES,
                      .n = part->n, .buf = part->values, .begun = true, .spares_bytes = part->spares_bytes };
    pli_coll_choose(&call, s->form, s->n_living, &s->hosts);
    return call;
}

/* Begins an attempt. The values that are summed are copies: another attempt may need the worker's own. */
static plait_status begin(pli_agreed_sums *s, uint64_t now_ns, pli_out *out, plait_error *err) {
    pli_out calls;
    free_pieces(s);
    s->n_pieces = s->n_living;
    for (int64_t i = 0; i < s->n_parts; i++) {
        const pli_agreed_part *part = &s->parts[i];
        if (has_pieces(part) && !make_pieces(s, i))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of a step");
        if (!has_pieces(part) && part->n > 0)
            memcpy(part->values, part->given, (size_t)part->n * pli_type_bytes(part->type));
    }
    s->begun = true;
    pli_out_init(&calls);
    for (int64_t i = 0; i < s->n_parts; i++) {
        const pli_coll call = call_of(s, i);
        if (s->n_living > 1) {
            pli_collective_begin(&s->collective, now_ns, &call, &s->run[i], &calls);
        } else {
            s->run[i] = (pli_coll_run){ .call = call };
            atomic_init(&s->run[i].done, true);
        }
    }
    forward(s, &calls, out);
    look(s, now_ns, out);
    return PLAIT_OK;
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

static void take_word(pli_agreed_sums *s, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const int32_t src = msg->head.src;
    pli_out       words;
    pli_out_init(&words);
    for (msg = pli_links_take(&s->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&s->links, src)) {
        pli_agreed_take(&s->agreed, msg, &words);
        pli_msg_free(&msg);
    }
    forward_words(s, now_ns, &words, out);
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_agreed_sums *s = state;
    const int32_t    place = place_of(s, msg->head.src);
    if (msg->head.src == s->agreed.me) { /* nobody sends to itself */
        pli_msg_free(&msg);
        return;
    }
    if (msg->head.server == 0) {
        take_word(s, now_ns, msg, out);
        return;
    }
    if (place < 0 || msg->head.server != s->agreed.n_dead + 1) { /* of an attempt that is over */
        pli_msg_free(&msg);
        return;
    }
    pli_out calls;
    pli_out_init(&calls);
    msg->head.src = place;
    pli_collective_ops.on_message(&s->collective, now_ns, msg, &calls);
    forward(s, &calls, out);
    look(s, now_ns, out);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_agreed_sums *s = state;
    pli_out          calls;
    pli_out_init(&calls);
    pli_links_wakeup(&s->links, now_ns, out);
    pli_collective_ops.on_wakeup(&s->collective, now_ns, &calls);
    forward(s, &calls, out);
}

static void on_death(pli_agreed_sums *s, uint64_t now_ns, int32_t rank, pli_out *out) {
    pli_out words;
    if (pli_agreed_is_dead(s->agreed.dead, rank)) return;
    pli_out_init(&words);
    pli_links_forget(&s->links, rank);
    close_collective(s);
    s->begun = false; /* if the sum is there, it may yet be decided for; else the next attempt begins anew */
    pli_agreed_died(&s->agreed, rank, &words);
    if (!open_collective(s)) pli_out_fail(out, PLAIT_ENOMEM, "no memory for the sums of those who live");
    forward_words(s, now_ns, &words, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_agreed_sums *s = state;
    if (event->kind == PLI_MEMBER_JOINED || event->rank < 0 || event->rank >= s->agreed.ranks) return;
    if (event->kind == PLI_MEMBER_DIED) {
        on_death(s, now_ns, event->rank, out);
        return;
    }
    pli_out          calls;
    pli_member_event own = *event;
    own.rank = place_of(s, event->rank);
    s->left[event->rank] = 1;
    pli_links_forget(&s->links, event->rank);
    if (own.rank < 0) return;
    pli_out_init(&calls);
    pli_collective_ops.on_member(&s->collective, now_ns, &own, &calls);
    forward(s, &calls, out);
    look(s, now_ns, out);
}

static pli_msg *late(const pli_msg *msg) {
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) return NULL;
    ack->head.kind = PLI_LINK_ACK;
    ack->head.port = PLI_PORT_AGREED;
    ack->head.server = msg->head.server;
    ack->head.arg64 = msg->head.seq;
    return ack;
}

const pli_machine_ops pli_agreed_sums_ops = {
    .name = "agreed sums", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member, .late = late
};

/* --- opening ------------------------------------------------------------------------------------------------------ */

bool pli_agreed_sums_init(pli_agreed_sums *s, int32_t me, int32_t workers, const int32_t *rank, const int32_t *host_of,
                          const pli_coll_form *form, uint64_t resend_after_ns) {
    memset(s, 0, sizeof *s);
    atomic_init(&s->waits_for, -1);
    s->form = form;
    s->rank = rank;
    s->host_of = pli_array((size_t)workers, sizeof *s->host_of);
    s->living = pli_array((size_t)workers, sizeof *s->living);
    s->name = pli_array((size_t)workers, sizeof *s->name);
    s->left = pli_calloc((size_t)workers, 1);
    s->stood = pli_calloc((size_t)workers, 1);
    s->next = pli_calloc((size_t)workers, 1);
    bool made = s->host_of != NULL && s->living != NULL && s->name != NULL && s->left != NULL && s->stood != NULL &&
                s->next != NULL;
    if (made) memcpy(s->host_of, host_of, (size_t)workers * sizeof *host_of);
    made = made && pli_agreed_init(&s->agreed, me, workers) &&
           pli_links_init(&s->links, workers, PLI_PORT_AGREED, resend_after_ns) && open_collective(s);
    if (!made) pli_agreed_sums_destroy(s);
    return made;
}

void pli_agreed_sums_destroy(pli_agreed_sums *s) {
    free_pieces(s);
    close_collective(s);
    pli_agreed_destroy(&s->agreed);
    if (s->links.link != NULL) pli_links_destroy(&s->links);
    pli_free(s->run);
    pli_free(s->piece);
    pli_free(s->host_of);
    pli_free(s->living);
    pli_free(s->name);
    pli_free(s->left);
    pli_free(s->stood);
    pli_free(s->next);
}

/* --- the worker's calls ------------------------------------------------------------------------------------------- */

static plait_status make_room(pli_agreed_sums *s, int64_t n, plait_error *err) {
    if (n <= s->room) return PLAIT_OK;
    pli_free(s->run);
    pli_free(s->piece);
    s->room = 0;
    s->run = pli_array((size_t)n, sizeof *s->run);
    s->piece = pli_calloc((size_t)n, sizeof *s->piece);
    if (s->run == NULL || s->piece == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of a step");
    s->room = n;
    return PLAIT_OK;
}

plait_status pli_agreed_sums_give(pli_agreed_sums *s, int64_t n, const pli_agreed_part *parts, plait_error *err) {
    PLI_TRY(make_room(s, n, err));
    memcpy(s->stood, s->next, (size_t)s->agreed.ranks);
    s->parts = parts;
    s->n_parts = n;
    return PLAIT_OK;
}

/* Does the worker stand in for those that the attempts leave out now? If not, next says for whom it has to. */
static bool stands_in(pli_agreed_sums *s) {
    const pli_agreed *a = &s->agreed;
    for (int32_t r = 0; r < a->ranks; r++) s->next[r] = pli_agreed_is_dead(a->attempt, r);
    return memcmp(s->next, s->stood, (size_t)a->ranks) == 0;
}

plait_status pli_agreed_sums_go_on(pli_agreed_sums *s, uint64_t now_ns, pli_out *out, plait_error *err) {
    if (s->agreed.step > s->step) return PLAIT_OK;
    if (!s->agreed.decided) return PLAIT_PENDING;
    if (!stands_in(s)) return PLAIT_STAND_IN;
    if (!s->begun) PLI_TRY(begin(s, now_ns, out, err));
    if (s->agreed.step > s->step) return PLAIT_OK;
    const plait_error *why = failure(s);
    if (why == NULL) return PLAIT_PENDING;
    *err = *why;
    return why->code;
}

/* Hands lists and messages over, by ranks. */
static plait_status hand_over(pli_agreed_sums *s, plait_error *err) {
    for (int64_t i = 0; i < s->n_parts; i++) {
        pli_msg **to = s->parts[i].piece;
        if (!has_pieces(&s->parts[i])) continue;
        for (int32_t r = 0, place = 0; r < s->agreed.ranks; r++) {
            pli_msg_free(&to[r]);
            if (!s->stood[r]) {
                to[r] = s->piece[i][place];
                s->piece[i][place++] = NULL;
            }
            if (to[r] == NULL) to[r] = pli_msg_new(0);
            if (to[r] == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for the sums of a step");
        }
    }
    return PLAIT_OK;
}

plait_status pli_agreed_sums_end(pli_agreed_sums *s, plait_status status, plait_error *err) {
    pli_out calls;
    pli_out_init(&calls);
    if (status < 0 && s->begun && s->collective.first != NULL)
        pli_collective_abort(&s->collective, s->collective.first, err, &calls);
    pli_out_drop(&calls);
    if (status == PLAIT_OK) status = hand_over(s, err);
    if (status == PLAIT_OK) s->step++;
    free_pieces(s);
    s->n_parts = 0;
    s->parts = NULL;
    s->begun = false;
    return status;
}
