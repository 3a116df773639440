/* The collective machine: takes the steps of the call in flight as far as messages have come.
 *
 * A message says which call it is of, so that ranks that do different things find out:
 *   kind   low byte the collective; high byte, with that of flags: the root
 *   flags  bits 0-3 type, 4-7 op, 8-15 low byte of the root
 *   arg32  number of the call, modulo 2^32       clock  n       body  the part of the buffer
 *
 * Since streams are in order, the k-th message of a peer in a call is for the k-th step that receives from it; a peer
 * may be calls ahead, then its messages wait in its fifo. */
#include "comm/collective.h"

#include <stdatomic.h>
#include <string.h>

#include "comm/comm.h"

static void stamp(pli_msg *msg, const pli_coll *call, uint64_t number) {
    msg->head.kind = (uint16_t)((unsigned)call->kind | (unsigned)(call->root >> 8 & 0xff) << 8);
    msg->head.flags = (uint16_t)((unsigned)call->type | (unsigned)call->op << 4 | (unsigned)(call->root & 0xff) << 8);
    msg->head.arg32 = (uint32_t)number;
    msg->head.clock = call->n;
}

static pli_coll read_stamp(const pli_msg *msg) {
    return (pli_coll){ .kind = (pli_coll_kind)(msg->head.kind & 0xff),
                       .type = (plait_type)(msg->head.flags & 0xf),
                       .op = (plait_reduce)(msg->head.flags >> 4 & 0xf),
                       .root = (int32_t)((msg->head.kind >> 8) << 8 | msg->head.flags >> 8),
                       .n = msg->head.clock };
}

static bool same_call(const pli_coll *a, const pli_coll *b) {
    return a->kind == b->kind && a->type == b->type && a->op == b->op && (a->root & 0xffff) == (b->root & 0xffff) &&
           a->n == b->n;
}

static void finish(pli_collective *c, pli_out *out) {
    pli_msg_free(&c->passing);
    atomic_store_explicit(&c->waits_for, -1, memory_order_relaxed);
    atomic_store_explicit(&c->finished, c->started, memory_order_release);
    pli_out_ring(out);
}

static void out_of_memory(pli_collective *c) {
    pli_fail(&c->error, PLAIT_ENOMEM, "no memory for a message of a collective");
}

static bool send_part(pli_collective *c, uint64_t now_ns, const pli_coll_move *s, pli_out *out) {
    pli_msg *msg;
    if (c->passing != NULL && s->send_at == c->passing_at && s->send_bytes == c->passing->head.body_bytes && s->send_bytes > 0) {
        msg = pli_msg_of_slab(c->passing->body, c->passing->offset, s->send_bytes);
    } else {
        msg = pli_msg_new(s->send_bytes);
        if (msg != NULL && s->send_bytes > 0)
            memcpy(pli_msg_body(msg), (const unsigned char *)c->call.buf + s->send_at, s->send_bytes);
    }
    if (msg == NULL) return false;
    stamp(msg, &c->call, c->started);
    msg->head.dst = s->to;
    return pli_links_send(&c->links, now_ns, msg, out);
}

/* Is msg of the call in flight? Otherwise the call has failed, and the error names both. */
static bool check_part(pli_collective *c, const pli_coll_move *s, const pli_msg *msg) {
    pli_coll theirs = read_stamp(msg);
    if (msg->head.arg32 == (uint32_t)c->started && same_call(&theirs, &c->call) && msg->head.body_bytes == s->recv_bytes)
        return true;
    char     a[96], b[96];
    bool     is_left = msg->head.arg32 == (uint32_t)(c->started - 1); /* of the last call: it should have been taken there */
    uint64_t number = c->started - is_left;
    pli_coll_tell(&theirs, a, sizeof a);
    pli_coll_tell(is_left ? &c->last : &c->call, b, sizeof b);
    pli_fail(&c->error, PLAIT_EMISMATCH, "collective %llu: rank %d called %s where rank %d called %s",
             (unsigned long long)number, s->from, a, c->me, b);
    return false;
}

/* Keeps msg where the next step passes on just what has been copied: a ring's second half, a tree's inner node. */
static void apply_part(pli_collective *c, const pli_coll_move *s, pli_msg *msg, pli_out *out) {
    unsigned char *mine = (unsigned char *)c->call.buf + s->recv_at;
    const void    *theirs = pli_msg_body(msg);
    pli_msg_free(&c->passing);
    if (s->reduce) {
        int64_t n = (int64_t)(s->recv_bytes / pli_type_bytes(c->call.type));
        bool    lower = s->from < c->me;
        pli_reduce(mine, lower ? theirs : mine, lower ? mine : theirs, n, c->call.type, c->call.op);
        pli_out_work(out, PLI_WORK_SUMS, (uint64_t)n);
        pli_msg_free(&msg);
    } else {
        if (s->recv_bytes > 0) memcpy(mine, theirs, s->recv_bytes);
        c->passing = msg;
        c->passing_at = s->recv_at;
    }
}

static pli_msg *pop(struct pli_fifo *fifo) {
    pli_msg *msg = fifo->first;
    if (msg == NULL) return NULL;
    fifo->first = msg->next;
    if (fifo->first == NULL) fifo->last = &fifo->first;
    msg->next = NULL;
    return msg;
}

/* Takes one step if it can. false: it waits, or the call is over (finished says). */
static bool take_step(pli_collective *c, uint64_t now_ns, pli_out *out) {
    pli_coll_move s;
    if (!pli_coll_step(&c->call, c->me, c->workers, c->step, &s)) {
        finish(c, out);
        return false;
    }
    if (s.to >= 0 && !c->sent) {
        if (!send_part(c, now_ns, &s, out)) {
            out_of_memory(c);
            finish(c, out);
            return false;
        }
        c->sent = true;
    }
    if (s.from >= 0) {
        pli_msg *msg = pop(&c->come[s.from]);
        if (msg == NULL && !c->left[s.from]) {
            atomic_store_explicit(&c->waits_for, s.from, memory_order_relaxed);
            return false;
        }
        if (msg == NULL) {
            char what[96];
            pli_coll_tell(&c->call, what, sizeof what);
            pli_fail(&c->error, PLAIT_EPEER, "%s: rank %d has left without taking part", what, s.from);
            c->error.rank = s.from;
        } else if (!check_part(c, &s, msg)) {
            pli_msg_free(&msg);
        } else {
            apply_part(c, &s, msg, out);
        }
        if (c->error.code < 0) {
            finish(c, out);
            return false;
        }
    }
    c->sent = false;
    c->step++;
    return true;
}

static void advance(pli_collective *c, uint64_t now_ns, pli_out *out) {
    while (c->started > atomic_load_explicit(&c->finished, memory_order_relaxed) && take_step(c, now_ns, out)) {}
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_collective *c = state;
    int32_t         src = msg->head.src;
    if (src < 0 || src >= c->workers) {
        pli_msg_free(&msg);
        return;
    }
    for (msg = pli_links_take(&c->links, now_ns, msg, out); msg != NULL; msg = pli_links_next(&c->links, src)) {
        msg->next = NULL;
        *c->come[src].last = msg;
        c->come[src].last = &msg->next;
    }
    advance(c, now_ns, out);
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_collective *c = state;
    pli_links_wakeup(&c->links, now_ns, out);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_collective *c = state;
    if (event->kind == PLI_MEMBER_JOINED || event->rank >= c->workers) return;
    c->left[event->rank] = true;
    pli_links_forget(&c->links, event->rank);
    advance(c, now_ns, out);
}

const pli_machine_ops pli_collective_ops = {
    .name = "collective", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member
};

bool pli_collective_init(pli_collective *c, int32_t me, int32_t workers, uint64_t resend_after_ns) {
    memset(c, 0, sizeof *c);
    c->me = me;
    c->workers = workers;
    atomic_init(&c->finished, 0);
    atomic_init(&c->waits_for, -1);
    c->come = pli_array((size_t)workers, sizeof *c->come);
    c->left = pli_calloc((size_t)workers, sizeof *c->left);
    if (c->come == NULL || c->left == NULL || !pli_links_init(&c->links, workers, PLI_PORT_COLLECTIVE, resend_after_ns)) {
        pli_free(c->come);
        pli_free(c->left);
        c->come = NULL;
        c->left = NULL;
        return false;
    }
    for (int32_t r = 0; r < workers; r++) {
        c->come[r].first = NULL;
        c->come[r].last = &c->come[r].first;
    }
    return true;
}

void pli_collective_destroy(pli_collective *c) {
    for (int32_t r = 0; c->come != NULL && r < c->workers; r++) {
        pli_msg *msg;
        while ((msg = pop(&c->come[r])) != NULL) pli_msg_free(&msg);
    }
    pli_msg_free(&c->passing);
    pli_links_destroy(&c->links);
    pli_free(c->come);
    pli_free(c->left);
    c->come = NULL;
    c->left = NULL;
}

void pli_collective_begin(pli_collective *c, uint64_t now_ns, const pli_coll *call, pli_out *out) {
    c->last = c->call;
    c->call = *call;
    c->step = 0;
    c->sent = false;
    c->started++;
    if (c->error.code < 0) { /* the order of messages is lost for good */
        finish(c, out);
        return;
    }
    advance(c, now_ns, out);
}

void pli_collective_abort(pli_collective *c, const plait_error *why) {
    if (c->error.code >= 0) c->error = *why;
    pli_msg_free(&c->passing);
    atomic_store_explicit(&c->finished, c->started, memory_order_release);
}
